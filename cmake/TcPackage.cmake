# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `cpack` makes in a build folder: a .deb for Debian 12, whose libraries are Debian's, and a .tar.xz that can be unpacked
# anywhere and holds LLVM and what it needs (component "bundle"). scripts/test_packages.sh installs both on a bare Debian 12.
set(CPACK_GENERATOR TXZ DEB)
set(CPACK_PACKAGE_NAME tc)
set(CPACK_PACKAGE_VENDOR "tc authors")
set(CPACK_PACKAGE_CONTACT "tc authors <tc@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ahead-of-time compiler for machine-learning models")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "tc turns ONNX and torch.export models into files of native code, which libtcrt, a C library of
a few hundred kilobytes, runs without Python, a framework or a compiler.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME tc-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_THREADS 0)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/TcPackageOptions.cmake)
include(CPack)
