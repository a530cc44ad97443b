# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tc_add_model(<target> MODEL <file> [OUTPUT <file>] [FLAGS <tc-compile flag>...] [DEPENDS <file>...] [EXCLUDE_FROM_ALL])
#
# Adds a target that compiles a model when it is newer than its artifact. OUTPUT defaults to <target>.bin in the binary folder.
# The artifact's path is the target's property TC_ARTIFACT. DEPENDS names further files of the model, such as external data.
#
#   tc_add_model(resnet MODEL resnet18.onnx FLAGS --cpu x86-64-v3,x86-64-v4)
#   get_target_property(artifact resnet TC_ARTIFACT)
function(tc_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "EXCLUDE_FROM_ALL" "MODEL;OUTPUT" "FLAGS;DEPENDS")
  if(NOT ARG_MODEL OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tc_add_model(${target}) takes MODEL <file> [OUTPUT <file>] [FLAGS ...] [DEPENDS ...] [EXCLUDE_FROM_ALL]")
  endif()
  if(NOT TC_COMPILE)
    message(FATAL_ERROR "tc_add_model(${target}): tc-compile was not found; install tc's tools or set TC_COMPILE")
  endif()
  cmake_path(ABSOLUTE_PATH ARG_MODEL BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT ARG_OUTPUT)
    set(ARG_OUTPUT ${target}.bin)
  endif()
  cmake_path(ABSOLUTE_PATH ARG_OUTPUT BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  add_custom_command(OUTPUT ${ARG_OUTPUT}
    COMMAND ${TC_COMPILE} ${ARG_MODEL} -o ${ARG_OUTPUT} ${ARG_FLAGS}
    DEPENDS ${ARG_MODEL} ${ARG_DEPENDS} ${TC_COMPILE}
    COMMENT "Compiling model ${ARG_MODEL}" VERBATIM)
  set(all ALL)
  if(ARG_EXCLUDE_FROM_ALL)
    set(all)
  endif()
  add_custom_target(${target} ${all} DEPENDS ${ARG_OUTPUT})
  set_target_properties(${target} PROPERTIES TC_ARTIFACT ${ARG_OUTPUT})
endfunction()
