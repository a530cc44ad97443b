# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSOURCE=<folder> -DHEADER=<file> -P TcCommit.cmake: writes the commit of a clone into a header, where it is another than
# before. Run in each build, as a commit changes no file that a build depends on. Empty where the folder is no clone of its own.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed OR NOT EXISTS ${SOURCE}/.git)
  set(commit "")
endif()
set(text "#define TC_COMMIT \"${commit}\"\n")
if(EXISTS ${HEADER})
  file(READ ${HEADER} before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE ${HEADER} "${text}")
endif()
