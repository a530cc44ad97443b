# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Read by cpack for each kind of package.
set(CPACK_COMPONENTS_ALL runtime host tools)
if(CPACK_GENERATOR STREQUAL DEB)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
else()
  list(APPEND CPACK_COMPONENTS_ALL bundle)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
