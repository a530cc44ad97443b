# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `ninja install` puts where, of what a program that runs artifacts needs, component "runtime": headers, libtcrt, tcrt.pc
# and the CMake package tc.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tc)
# In build folders, too: libtcrt-host is beside it there.
set_target_properties(tcrt_shared PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS tcrt tcrt_shared EXPORT tcTargets COMPONENT runtime)
# For artifacts with parts of ONNX Runtime alone, but as small as it is, it needs no component of its own.
install(TARGETS tcrt_ort_shared COMPONENT runtime)
install(FILES ${CMAKE_SOURCE_DIR}/include/tcrt/tcrt.h ${CMAKE_SOURCE_DIR}/include/tcrt/artifact_abi.h
              ${CMAKE_SOURCE_DIR}/include/tcrt/function.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tcrt COMPONENT runtime)
install(EXPORT tcTargets NAMESPACE tc:: DESTINATION ${TC_CMAKE_DIR} COMPONENT runtime)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tcConfig.cmake.in ${CMAKE_BINARY_DIR}/tcConfig.cmake
  INSTALL_DESTINATION ${TC_CMAKE_DIR} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# The prefix as seen from the file, so that an installed tree can be moved.
file(RELATIVE_PATH TC_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tcrt.pc.in ${CMAKE_BINARY_DIR}/tcrt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tcConfig.cmake ${CMAKE_BINARY_DIR}/tcConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TcAddModel.cmake DESTINATION ${TC_CMAKE_DIR} COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/tcrt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
