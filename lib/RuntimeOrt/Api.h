/*
 * Api.h - what is called of ONNX Runtime.
 *
 * ONNX Runtime's C interface is a table of functions, to which versions only add at the end, so that the numbers below
 * hold for all. They and the types of the functions are those of OrtApi in include/onnxruntime/core/session/
 * onnxruntime_c_api.h (https://github.com/microsoft/onnxruntime, MIT licence), of which no text stands here.
 * The functions return NULL, or a status that says what failed.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_ORT_API_H
#define TCRT_ORT_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* That all entries below are in: of ONNX Runtime 1.12. */
#define ORT_NEEDED_VERSION 12u
#define ORT_NEEDED_RELEASE "1.12"

typedef struct ort_status_t ort_status_t;
typedef struct ort_env_t ort_env_t;
typedef struct ort_session_t ort_session_t;
typedef struct ort_options_t ort_options_t;
typedef struct ort_value_t ort_value_t;
typedef struct ort_memory_t ort_memory_t;
typedef struct ort_shape_t ort_shape_t;

/* OrtErrorCode, OrtLoggingLevel, OrtAllocatorType, OrtMemType. Element types have the numbers of tcrt_dtype_t. */
enum { ORT_INVALID_ARGUMENT = 2, ORT_LOG_ERROR = 3, ORT_DEVICE_ALLOCATOR = 0, ORT_MEMORY_DEFAULT = 0 };

/* Name in OrtApi, number of the entry, result, parameters. */
#define ORT_ENTRIES(ENTRY)                                                                                             \
  ENTRY(GetErrorCode, 1, int, (const ort_status_t *))                                                                  \
  ENTRY(GetErrorMessage, 2, const char *, (const ort_status_t *))                                                      \
  ENTRY(CreateEnv, 3, ort_status_t *, (int log_level, const char *log_id, ort_env_t **))                               \
  ENTRY(CreateSessionFromArray, 8, ort_status_t *,                                                                     \
        (const ort_env_t *, const void *model, size_t model_bytes, const ort_options_t *, ort_session_t **))           \
  ENTRY(Run, 9, ort_status_t *,                                                                                        \
        (ort_session_t *, const void *run_options, const char *const *input_names, const ort_value_t *const *inputs,   \
         size_t input_count, const char *const *output_names, size_t output_count, ort_value_t **outputs))             \
  ENTRY(CreateSessionOptions, 10, ort_status_t *, (ort_options_t **))                                                  \
  ENTRY(SetIntraOpNumThreads, 24, ort_status_t *, (ort_options_t *, int))                                              \
  ENTRY(CreateTensorWithDataAsOrtValue, 49, ort_status_t *,                                                            \
        (const ort_memory_t *, void *data, size_t data_bytes, const int64_t *dims, size_t rank, int dtype,             \
         ort_value_t **))                                                                                              \
  ENTRY(GetTensorMutableData, 51, ort_status_t *, (ort_value_t *, void **))                                            \
  ENTRY(GetTensorElementType, 60, ort_status_t *, (const ort_shape_t *, int *dtype))                                   \
  ENTRY(GetDimensionsCount, 61, ort_status_t *, (const ort_shape_t *, size_t *))                                       \
  ENTRY(GetDimensions, 62, ort_status_t *, (const ort_shape_t *, int64_t *dims, size_t rank))                          \
  ENTRY(GetTensorTypeAndShape, 65, ort_status_t *, (const ort_value_t *, ort_shape_t **))                              \
  ENTRY(CreateCpuMemoryInfo, 69, ort_status_t *, (int allocator, int memory, ort_memory_t **))                         \
  ENTRY(ReleaseStatus, 93, void, (ort_status_t *))                                                                     \
  ENTRY(ReleaseSession, 95, void, (ort_session_t *))                                                                   \
  ENTRY(ReleaseValue, 96, void, (ort_value_t *))                                                                       \
  ENTRY(ReleaseTensorTypeAndShapeInfo, 99, void, (ort_shape_t *))                                                      \
  ENTRY(ReleaseSessionOptions, 100, void, (ort_options_t *))                                                           \
  ENTRY(AddSessionConfigEntry, 130, ort_status_t *, (ort_options_t *, const char *key, const char *value))

/* One more than the last number. */
#define ORT_ENTRY_COUNT 131

typedef void (*ort_entry_fn)(void);

/* What OrtGetApiBase, the one function that the library exports, returns: `get_api` gives the table, or NULL where the
 * library is older than `version`. */
typedef struct ort_base_t {
  const ort_entry_fn *(*get_api)(uint32_t version);
  const char *(*get_version_string)(void);
} ort_base_t;
typedef const ort_base_t *(*ort_base_fn)(void);

/* The functions, taken out of the table. */
typedef struct ort_api_t {
#define ENTRY(name, number, result, parameters) result(*name) parameters;
  ORT_ENTRIES(ENTRY)
#undef ENTRY
} ort_api_t;

#ifdef __cplusplus
}
#endif

#endif /* TCRT_ORT_API_H */
