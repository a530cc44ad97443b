# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The only functions that define targets.

add_library(tc_options INTERFACE)
target_compile_options(tc_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(TC_WERROR)
  target_compile_options(tc_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(tc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Xclang -fno-pch-timestamp>)
else()
  # An Error returned as an Expected must be moved by the letter of C++17; g++ moves it anyway, and says so.
  target_compile_options(tc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-redundant-move>)
endif()
target_include_directories(tc_options INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include)

add_library(tc_mlir_options INTERFACE)
target_link_libraries(tc_mlir_options INTERFACE tc_options)
target_include_directories(tc_mlir_options SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(_tc_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(tc_mlir_options INTERFACE ${_tc_llvm_definitions} -Wno-deprecated-declarations)

# tc_add_tablegen(<target> TD <file> <output> <generator arguments>...)...
# One custom target for the generated headers of a folder under include/. Example: include/tc/Dialect/TC/IR/CMakeLists.txt.
function(tc_add_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(outputs ${ARGN})
  while(outputs)
    list(POP_FRONT outputs output arguments)
    separate_arguments(arguments UNIX_COMMAND "${arguments}")
    mlir_tablegen(${output} ${arguments} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR}/include ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_public_tablegen_target(${target})
  add_dependencies(tc-headers ${target})
  set_property(GLOBAL APPEND PROPERTY TC_TABLEGEN_TARGETS ${target})
endfunction()
add_custom_target(tc-headers)

# tc_add_library(<name> <sources>... [NO_MLIR] [PCH <target>] [EXCEPTIONS <sources>...] [LINK <libraries>...])
# A static library of the compiler. Unless NO_MLIR, it shares a precompiled header of MLIR's most used headers: that of
# tc_pch, or of tc_prim_pch or tc_kernel_pch (tc_add_pch), which have the dialects of these names, too.
# Sources under EXCEPTIONS are compiled with C++ exceptions, all others without.
function(tc_add_library name)
  cmake_parse_arguments(ARG "NO_MLIR" "PCH" "EXCEPTIONS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS} ${ARG_EXCEPTIONS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  add_dependencies(${name} tc-headers)
  if(ARG_NO_MLIR)
    target_link_libraries(${name} PUBLIC tc_options)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  else()
    target_link_libraries(${name} PUBLIC tc_mlir_options tc_pch_link)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
    if(NOT ARG_PCH)
      set(ARG_PCH tc_pch)
    endif()
    if(TARGET ${ARG_PCH} AND NOT ARG_PCH STREQUAL name)
      target_precompile_headers(${name} REUSE_FROM ${ARG_PCH})
    endif()
  endif()
  if(ARG_EXCEPTIONS)
    set_source_files_properties(${ARG_EXCEPTIONS} PROPERTIES COMPILE_OPTIONS -fexceptions SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# tc_add_pch(<name> <headers of dialects>...): the precompiled header of MLIR's headers and these.
function(tc_add_pch name)
  tc_add_library(${name} ${CMAKE_SOURCE_DIR}/lib/Support/PCH.cpp PCH ${name})
  get_target_property(headers tc_pch PRECOMPILE_HEADERS)
  target_precompile_headers(${name} PRIVATE ${headers} ${ARGN})
endfunction()

# tc_add_c_library(<name> <sources>... [LINK <libraries>...])
# What compiler and runtime share, in C11 on libc. Its objects alone are <name>_objects: libtcrt holds them itself.
function(tc_add_c_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name}_objects OBJECT ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name}_objects PROPERTIES C_EXTENSIONS OFF)
  target_compile_definitions(${name}_objects PRIVATE TCRT_VERSION="${PROJECT_VERSION}")
  target_compile_options(${name}_objects PRIVATE -O2 -Wall -Wextra -Wpedantic $<$<BOOL:${TC_WERROR}>:-Werror>)
  target_include_directories(${name}_objects PRIVATE ${CMAKE_SOURCE_DIR}/include)
  add_library(${name} STATIC $<TARGET_OBJECTS:${name}_objects>)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# tc_add_tool(<name> <sources>... [NO_MLIR] [LINK <libraries>...]): an executable in bin/, compiled with exceptions (CLI11).
function(tc_add_tool name)
  cmake_parse_arguments(ARG "NO_MLIR" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  add_dependencies(${name} tc-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} tc_options)
  if(NOT ARG_NO_MLIR)
    target_link_libraries(${name} PRIVATE tc_mlir_options tc_pch_link)
  endif()
endfunction()

add_library(tc_pch_link INTERFACE)
target_link_libraries(tc_pch_link INTERFACE MLIR LLVM)
