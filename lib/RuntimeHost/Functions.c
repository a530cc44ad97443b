/*
 * Functions.c - the table that libtcrt finds in this library.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Functions.h"

static const tcrt_function_t functions[] = {
#define TCRT_HOST_FUNCTION(name) {#name, tcrt_host_##name},
#include "tc/Functions/HostLibrary.def"
};

const tcrt_function_t *tcrt_library_functions(uint64_t *count) {
  *count = sizeof functions / sizeof functions[0];
  return functions;
}
