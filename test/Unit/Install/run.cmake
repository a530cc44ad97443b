# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the runtime into a fresh folder and builds the project beside this file against it, by CMake and by pkg-config.
# cmake -DBUILD=<build> -DSOURCE=<source> -DWORK=<folder> -DARTIFACT=<tool> -DCC=<compiler> [-DPKG_CONFIG=<tool>] -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output ${output} PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component runtime --prefix ${WORK}/first)
# An installed tree can be moved.
file(RENAME ${WORK}/first ${WORK}/prefix)
run(${ARTIFACT} basic ${WORK}/model.bin)
# tc-compile MODEL -o OUT ...: copies.
file(WRITE ${WORK}/tc-compile "#!/bin/sh\nexec cp \"$1\" \"$3\"\n")
file(CHMOD ${WORK}/tc-compile PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/project -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_C_COMPILER=${CC} -DCMAKE_BUILD_TYPE=Release -DSAMPLE=${SOURCE}/examples/c/sample.c -DMODEL=${WORK}/model.bin
  -DTC_COMPILE=${WORK}/tc-compile)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/sample_static ${WORK}/build/copied.bin)
if(NOT output MATCHES "y: f32 \\(1, 4\\) 3 4 5 6")
  message(FATAL_ERROR "the sample printed\n${output}")
endif()
run(${WORK}/build/sample_shared ${WORK}/build/copied.bin)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${WORK}/prefix/tcrt.pc)
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs tcrt OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${CC} ${SOURCE}/examples/c/sample.c ${flags} -o ${WORK}/sample)
  file(GLOB_RECURSE library ${WORK}/prefix/libtcrt.so)
  cmake_path(GET library PARENT_PATH folder)
  set(ENV{LD_LIBRARY_PATH} ${folder})
  run(${WORK}/sample ${WORK}/model.bin)
endif()
file(REMOVE_RECURSE ${WORK})
