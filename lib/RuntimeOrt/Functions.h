/*
 * Functions.h - the host functions of libtcrt-ort.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_ORT_FUNCTIONS_H
#define TCRT_ORT_FUNCTIONS_H

#include "tcrt/function.h"

#ifdef __cplusplus
extern "C" {
#endif

/* onnxruntime_run(model, inputs...) -> outputs of a part of a model that tc-compile --backend-for cut out. */
tcrt_status_t tcrt_ort_onnxruntime_run(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);

/* What the library exports; `open` opens ONNX Runtime, or says what is missing. */
TCRT_API tcrt_status_t tcrt_library_open(const tcrt_services_t *services);
TCRT_API const tcrt_function_t *tcrt_library_functions(uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_ORT_FUNCTIONS_H */
