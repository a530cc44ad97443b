# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `ninja install` puts where, beside component "runtime": component "host" is libtcrt-host, for models that need it;
# component "tools" the command-line tools with their manual pages and completions.
include(TcInstallRuntime)

# Opened at run time, so that no package file names it.
install(TARGETS tcrt_host COMPONENT host)
install(FILES ${CMAKE_SOURCE_DIR}/include/tcrt/verify.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tcrt COMPONENT host)
set_target_properties(tcrt_host_shared PROPERTIES INSTALL_RPATH "$ORIGIN")
target_link_options(tcrt_host_shared PRIVATE -Wl,--disable-new-dtags)
install(TARGETS tcrt_host_shared RUNTIME_DEPENDENCY_SET tc_tools COMPONENT host)

foreach(tool tc-compile tc-run tc-bench tc-cache tc-refit tc-sign tc-reduce tc-compare tc-inspect tc-opt)
  if(TARGET ${tool})
    set_target_properties(${tool} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}"
      INSTALL_RPATH_USE_LINK_PATH ON) # of LLVM
    target_link_options(${tool} PRIVATE -Wl,--disable-new-dtags)
    install(TARGETS ${tool} RUNTIME_DEPENDENCY_SET tc_tools COMPONENT tools)
  endif()
endforeach()
# Libraries that not every Linux has, for the archive that cpack makes. Some of them have no path of their own in which the ones that
# they need are looked for; then that of the program counts, if it is of the old kind (--disable-new-dtags).
install(RUNTIME_DEPENDENCY_SET tc_tools
  PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+)\\.so" "^ld-linux"
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT bundle EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD_PARTY_NOTICES.md ${CMAKE_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models/digits DESTINATION ${CMAKE_INSTALL_DOCDIR}/models COMPONENT tools)
# Made by target tc-manuals. Debian's zsh looks into vendor-completions under /usr, others into site-functions.
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tools)
