# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tc_llvm: LLVM and MLIR as their shared libraries, or, with TC_STATIC_LLVM, as static ones of which a tool takes what it uses.
# The option changes how tools are linked, and nothing that is compiled.

# FindZLIB would give the shared library that LLVM's package file has found before.
find_library(TC_ZLIB_STATIC NAMES libz.a)
if(NOT TC_ZLIB_STATIC)
  message(FATAL_ERROR "tc needs the static zlib (Debian: zlib1g-dev)")
endif()

add_library(tc_llvm INTERFACE)
if(TC_STATIC_LLVM)
  find_library(TC_ZSTD_STATIC NAMES libzstd.a)
  find_library(TC_PROTOBUF_STATIC NAMES libprotobuf.a)
  if(NOT TC_ZSTD_STATIC OR NOT TC_PROTOBUF_STATIC)
    message(FATAL_ERROR "TC_STATIC_LLVM needs the static Zstandard and Protocol Buffers (Debian: libzstd-dev, libprotobuf-dev)")
  endif()
  file(GLOB static CONFIGURE_DEPENDS ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  list(JOIN static "," static)
  target_link_libraries(tc_llvm INTERFACE "$<LINK_GROUP:RESCAN,${static}>" ${TC_ZLIB_STATIC} ${TC_ZSTD_STATIC} Threads::Threads ${CMAKE_DL_LIBS} m)
  set_target_properties(protobuf::libprotobuf PROPERTIES
    IMPORTED_LOCATION ${TC_PROTOBUF_STATIC} IMPORTED_LOCATION_RELEASE ${TC_PROTOBUF_STATIC})
else()
  target_link_libraries(tc_llvm INTERFACE MLIR LLVM z zstd)
endif()
