/*
 * Functions.h - the host functions of libtcrt-host.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_HOST_FUNCTIONS_H
#define TCRT_HOST_FUNCTIONS_H

#include "tcrt/function.h"

#ifdef __cplusplus
extern "C" {
#endif

/* image_decode(bytes, pixel format) -> handle of [height, width, channels] u8. ImageDecoder. Image.c */
tcrt_status_t tcrt_host_image_decode(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);

/* regex_full_match(strings, pattern) -> bools. RegexFullMatch. Regex.cpp */
tcrt_status_t tcrt_host_regex_full_match(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);

/* What the library exports; in the static library a table for tcrt_model_options_t. */
TCRT_API const tcrt_function_t *tcrt_library_functions(uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_HOST_FUNCTIONS_H */
