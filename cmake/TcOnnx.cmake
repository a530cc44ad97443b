# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ONNX's C++ library (proto classes, schemas, checker, shape inference) as the static library `onnx`, from the unpacked
# source archive of its Python package. Debian's package is too old: it stops at opset 17.
if(TC_ONNX_SOURCE_DIR STREQUAL "")
  set(TC_ONNX_SOURCE_DIR ${CMAKE_SOURCE_DIR}/third_party/onnx-1.23.2)
endif()
if(NOT EXISTS ${TC_ONNX_SOURCE_DIR}/onnx/onnx.in.proto)
  message(FATAL_ERROR "The ONNX 1.23.2 source is missing in \"${TC_ONNX_SOURCE_DIR}\"; run scripts/setup.sh, which "
                      "downloads and unpacks it, or pass -DTC_ONNX_SOURCE_DIR=<unpacked source archive>.")
endif()
if(CMAKE_VERSION VERSION_LESS 3.26)
  message(FATAL_ERROR "ONNX 1.23.2 needs CMake 3.26 or newer, this is ${CMAKE_VERSION}; run scripts/setup.sh.")
endif()

# In a function, so that ONNX's options and flags stay out of our own targets.
function(tc_add_onnx)
  set(ONNX_ML ON)
  set(ONNX_USE_UNITY_BUILD ON)
  set(ONNX_BUILD_PYTHON OFF)
  set(ONNX_BUILD_TESTS OFF)
  set(ONNX_BUILD_CUSTOM_PROTOBUF OFF)
  set(ONNX_INSTALL OFF)
  set(ONNX_WERROR OFF)
  set(ONNX_GEN_PB_TYPE_STUBS OFF)
  set(BUILD_SHARED_LIBS OFF)
  add_subdirectory(${TC_ONNX_SOURCE_DIR} ${CMAKE_BINARY_DIR}/third_party/onnx EXCLUDE_FROM_ALL SYSTEM)
  foreach(target onnx onnx_proto)
    # Its warnings are not ours.
    target_compile_options(${target} PRIVATE -w)
    if(NOT TC_BUILD_TESTS) # packed for other machines: no paths of this one, which its macros name
      target_compile_options(${target} PRIVATE -ffile-prefix-map=${TC_ONNX_SOURCE_DIR}/=)
    endif()
  endforeach()
endfunction()
tc_add_onnx()
