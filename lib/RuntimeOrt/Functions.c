/*
 * Functions.c - parts of a model that ONNX Runtime computes.
 *
 * onnxruntime_run(model, inputs...) -> outputs: `model` is the ONNX file of the part, a constant u8, whose inputs are
 * x0, x1, ... and whose outputs are y0, y1, ... A result of known sizes is written where the program wants it; one that
 * is a handle is copied out of ONNX Runtime's memory. Each context has a session of its own for each part, made by the
 * first run that comes to it, with as many threads as the context.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Functions.h"

#include "Api.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 16 /* of "x4294967295" */

/* ---- the library ---- */

/* Opened once, and never closed: it has threads of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ort_api_t api;
static ort_env_t *env;
static ort_memory_t *memory;
static char version[32];

/* `status`'s message, on one line, into `text`; releases it. Returns its code. */
static int take_message(ort_status_t *status, char *text, size_t size) {
  const int code = api.GetErrorCode(status);
  snprintf(text, size, "%s", api.GetErrorMessage(status));
  for (char *at = text; *at; ++at)
    if (*at == '\n' || *at == '\r')
      *at = ' ';
  for (size_t length = strlen(text); length && text[length - 1] == ' ';)
    text[--length] = 0;
  api.ReleaseStatus(status);
  return code;
}

static tcrt_status_t open_runtime(const tcrt_services_t *services) {
  const char *given = getenv("TCRT_ONNXRUNTIME");
  const char *const names[] = {given && *given ? given : "libonnxruntime.so.1", "libonnxruntime.so"};
  void *library = dlopen(names[0], RTLD_NOW | RTLD_LOCAL);
  if (!library && names[0] != given)
    library = dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return services->fail(
        TCRT_ERROR_MACHINE,
        "ONNX Runtime computes parts of the model, and its library cannot be opened (%s); install it, "
        "and set TCRT_ONNXRUNTIME to its libonnxruntime.so, or compile without --backend-for",
        dlerror());
  ort_base_fn base_of = NULL;
  void *symbol = dlsym(library, "OrtGetApiBase");
  memcpy(&base_of, &symbol, sizeof base_of);
  const ort_base_t *base = base_of ? base_of() : NULL;
  const ort_entry_fn *table = base ? base->get_api(ORT_NEEDED_VERSION) : NULL;
  if (!table) {
    char release[32] = "";
    if (base)
      snprintf(release, sizeof release, " %s", base->get_version_string());
    dlclose(library);
    return services->fail(
        TCRT_ERROR_MACHINE,
        base ? "ONNX Runtime computes parts of the model, and%s is too old; install " ORT_NEEDED_RELEASE " or newer"
             : "%s is not ONNX Runtime; set TCRT_ONNXRUNTIME to its libonnxruntime.so",
        base ? release : names[0]);
  }
  snprintf(version, sizeof version, "%s", base->get_version_string());
#define ENTRY(name, number, result, parameters) memcpy(&api.name, &table[number], sizeof api.name);
  ORT_ENTRIES(ENTRY)
#undef ENTRY
  ort_env_t *made = NULL;
  ort_status_t *status = api.CreateEnv(ORT_LOG_ERROR, "tcrt", &made);
  if (!status)
    status = api.CreateCpuMemoryInfo(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &memory);
  if (status) {
    char text[512];
    take_message(status, text, sizeof text);
    return services->fail(TCRT_ERROR_MACHINE, "ONNX Runtime %s cannot begin: %s", version, text);
  }
  env = made;
  return TCRT_OK;
}

tcrt_status_t tcrt_library_open(const tcrt_services_t *services) {
  pthread_mutex_lock(&lock);
  tcrt_status_t status = env ? TCRT_OK : open_runtime(services);
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- sessions ---- */

static void release_session(void *session) { api.ReleaseSession(session); }

/* A session that computes `model`, with the threads of the context, which wait without work: kernels of tc run in
 * between. */
static ort_status_t *make_session(const tcrt_operand_t *model, uint32_t threads, ort_session_t **session) {
  ort_options_t *options = NULL;
  ort_status_t *status = api.CreateSessionOptions(&options);
  if (!status)
    status = api.SetIntraOpNumThreads(options, (int)threads);
  if (!status)
    status = api.AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0");
  if (!status)
    status = api.CreateSessionFromArray(env, model->data, (size_t)model->dims[0], options, session);
  if (options)
    api.ReleaseSessionOptions(options);
  return status;
}

/* ---- runs ---- */

/* The values of a run, which `release_values` frees. */
typedef struct values_t {
  ort_value_t **all; /* inputs, then outputs; NULL: ONNX Runtime makes it */
  char *names;       /* NAME_BYTES each */
  const char **name_of;
  uint32_t count;
} values_t;

static void release_values(values_t *values) {
  for (uint32_t i = 0; values->all && i < values->count; ++i)
    if (values->all[i])
      api.ReleaseValue(values->all[i]);
  free(values->all);
  free(values->names);
  free(values->name_of);
}

static int make_values(values_t *values, uint32_t inputs, uint32_t outputs) {
  values->count = inputs + outputs;
  values->all = calloc((size_t)values->count + 1, sizeof(ort_value_t *));
  values->names = calloc((size_t)values->count + 1, NAME_BYTES);
  values->name_of = calloc((size_t)values->count + 1, sizeof(const char *));
  if (!values->all || !values->names || !values->name_of)
    return 0;
  for (uint32_t i = 0; i < values->count; ++i) {
    char *name = values->names + (size_t)i * NAME_BYTES;
    snprintf(name, NAME_BYTES, "%c%" PRIu32, i < inputs ? 'x' : 'y', i < inputs ? i : i - inputs);
    values->name_of[i] = name;
  }
  return 1;
}

static size_t bytes_of(const tcrt_operand_t *tensor) {
  size_t bytes = 1;
  switch (tensor->dtype) {
  case TCRT_DTYPE_F16:
  case TCRT_DTYPE_BF16:
  case TCRT_DTYPE_I16:
  case TCRT_DTYPE_U16:
    bytes = 2;
    break;
  case TCRT_DTYPE_F32:
  case TCRT_DTYPE_I32:
  case TCRT_DTYPE_U32:
    bytes = 4;
    break;
  case TCRT_DTYPE_F64:
  case TCRT_DTYPE_I64:
  case TCRT_DTYPE_U64:
    bytes = 8;
    break;
  default:
    break; /* bool, i8, u8 */
  }
  for (uint32_t i = 0; i < tensor->rank; ++i)
    bytes *= (size_t)tensor->dims[i];
  return bytes;
}

/* The program's memory as ONNX Runtime's tensor. */
static ort_status_t *wrap(const tcrt_operand_t *tensor, ort_value_t **value) {
  static char nothing[8]; /* what has no elements may have no address */
  void *data = tensor->data ? tensor->data : nothing;
  return api.CreateTensorWithDataAsOrtValue(memory, data, bytes_of(tensor), tensor->dims, tensor->rank,
                                            (int)tensor->dtype, value);
}

static int is_handle(const tcrt_operand_t *tensor) { return tensor->dtype == TCRT_DTYPE_INVALID; }

/* Gives the program a tensor of ONNX Runtime's as the object that `result` is a handle of. */
static tcrt_status_t hand_out(const tcrt_services_t *services, tcrt_store_t *store, ort_value_t *value,
                              const tcrt_operand_t *result, ort_status_t **failed) {
  ort_shape_t *shape = NULL;
  int dtype = 0;
  size_t rank = 0;
  int64_t dims[TCRT_MAX_RANK];
  void *data = NULL, *copy = NULL;
  *failed = api.GetTensorTypeAndShape(value, &shape);
  if (!*failed)
    *failed = api.GetTensorElementType(shape, &dtype);
  if (!*failed)
    *failed = api.GetDimensionsCount(shape, &rank);
  const int fits = rank <= TCRT_MAX_RANK;
  if (!*failed && fits)
    *failed = api.GetDimensions(shape, dims, rank);
  if (shape)
    api.ReleaseTensorTypeAndShapeInfo(shape);
  if (!*failed && fits)
    *failed = api.GetTensorMutableData(value, &data);
  if (*failed)
    return TCRT_OK;
  if (!fits)
    return services->fail(TCRT_ERROR_REFUSED, "ONNX Runtime makes a tensor of %zu dims, and tc takes %d", rank,
                          TCRT_MAX_RANK);
  tcrt_status_t status = services->make_tensor(store, (uint32_t)dtype, (uint32_t)rank, dims, &copy, result->data);
  if (status != TCRT_OK)
    return status;
  const tcrt_operand_t made = {copy, dims, (uint32_t)dtype, (uint32_t)rank};
  const size_t bytes = bytes_of(&made);
  if (bytes)
    memcpy(copy, data, bytes);
  return TCRT_OK;
}

tcrt_status_t tcrt_ort_onnxruntime_run(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  tcrt_status_t done = tcrt_library_open(services);
  if (done != TCRT_OK)
    return done;
  const tcrt_operand_t *model = &call->operands[0];
  void **kept = services->keep(store, model->data, release_session);
  if (!kept)
    return TCRT_ERROR_MACHINE;
  char text[512];
  ort_status_t *status = NULL;
  if (!*kept) {
    ort_session_t *session = NULL;
    status = make_session(model, services->threads(store), &session);
    if (status) {
      take_message(status, text, sizeof text);
      return services->fail(TCRT_ERROR_MACHINE,
                            "ONNX Runtime %s does not take this part of the model: %s; compile without --backend-for "
                            "for its nodes, or use another version",
                            version, text);
    }
    *kept = session;
  }
  const uint32_t inputs = call->operand_count - 1, outputs = call->result_count;
  values_t values = {0};
  if (!make_values(&values, inputs, outputs)) {
    release_values(&values);
    return services->fail(TCRT_ERROR_MACHINE, "no memory left to call ONNX Runtime");
  }
  for (uint32_t i = 0; i < values.count && !status; ++i) {
    const tcrt_operand_t *tensor = i < inputs ? &call->operands[i + 1] : &call->results[i - inputs];
    if (!is_handle(tensor))
      status = wrap(tensor, &values.all[i]);
  }
  if (!status)
    status = api.Run(*kept, NULL, values.name_of, (const ort_value_t *const *)values.all, inputs,
                     values.name_of + inputs, outputs, values.all + inputs);
  for (uint32_t i = 0; i < outputs && !status && done == TCRT_OK; ++i)
    if (is_handle(&call->results[i]))
      done = hand_out(services, store, values.all[inputs + i], &call->results[i], &status);
  release_values(&values);
  if (!status)
    return done;
  const int code = take_message(status, text, sizeof text);
  return services->fail(code == ORT_INVALID_ARGUMENT ? TCRT_ERROR_REFUSED : TCRT_ERROR_MACHINE, "ONNX Runtime %s: %s",
                        version, text);
}

static const tcrt_function_t functions[] = {
#define TCRT_ORT_FUNCTION(name) {#name, tcrt_ort_##name},
#include "tc/Functions/HostLibrary.def"
};

const tcrt_function_t *tcrt_library_functions(uint64_t *count) {
  *count = sizeof functions / sizeof functions[0];
  return functions;
}
