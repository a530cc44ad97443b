/*
 * Driver.c - the driver for GPU variants, on the CUDA driver API of libcuda.so.1, which is opened at run time.
 *
 * The few declarations of that API that we need are written out here (CUDA Driver API reference, versions _v2), so that
 * libtcrt builds and links without CUDA. Device code is loaded, and weights are copied to the device, once per model; a
 * context has one stream. The program of a variant runs on the host and enqueues launches; run_end waits for them.
 *
 * Of the cubins the best for the device is taken, see tcrt_section_t::arch; if none fits, or the driver does not take
 * it, PTX is compiled by the driver.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "../Internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver API ---- */

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
};

/* Entries of cuLaunchKernel's `extra`. */
#define CU_LAUNCH_PARAM_END ((void *)(uintptr_t)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)(uintptr_t)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)(uintptr_t)2)

#define CUDA_FUNCTIONS(X)                                                                                              \
  X(cuInit, "cuInit", (unsigned flags))                                                                                \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))                                         \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                                          \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                                                \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                      \
  X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))                                       \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))                        \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                      \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                                      \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))                                                      \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))                                                      \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                                          \
    (CUmodule * module, const void *image, unsigned count, int *options, void **values))                               \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                               \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char *name))            \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                         \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * pointer, size_t bytes))                                                \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr pointer))                                                                  \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr dst, const void *src, size_t bytes))                                 \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))      \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *dst, CUdeviceptr src, size_t bytes, CUstream stream))            \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))      \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream))         \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                                             \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                          \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                     \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                                 \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                                              \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                                  \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, CUevent start, CUevent end))                                 \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                                  \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned smem, CUstream stream, void **params, void **extra))

/* What cuLaunchKernelEx takes (since CUDA 11.8). */
typedef struct CUlaunchAttribute {
  int id;
  int pad;
  union {
    char size[64];
    unsigned cluster[3];
  } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
  unsigned grid[3], block[3];
  unsigned smem;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attribute_count;
} CUlaunchConfig;

static struct {
  CUresult (*cuLaunchKernelEx)(const CUlaunchConfig *config, CUfunction function, void **params,
                               void **extra); /* NULL: an older driver */
#define DECLARE(name, symbol, parameters) CUresult(*name) parameters;
  CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
  char problem[256]; /* why it cannot be used; empty: it can */
} cuda;

static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;

static const char *error_text(CUresult error) {
  const char *text = NULL;
  if (cuda.cuGetErrorString && cuda.cuGetErrorString(error, &text) == CUDA_SUCCESS && text)
    return text;
  return "unknown error";
}

static void load_cuda(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(cuda.problem, sizeof cuda.problem, "the NVIDIA driver (libcuda.so.1) is not installed");
    return;
  }
  /* Stays open: a driver does not survive being closed and opened again. */
#define LOOK_UP(name, symbol, parameters)                                                                              \
  {                                                                                                                    \
    void *address = dlsym(library, symbol);                                                                            \
    if (!address) {                                                                                                    \
      snprintf(cuda.problem, sizeof cuda.problem, "the NVIDIA driver is too old: it has no %s", symbol);               \
      return;                                                                                                          \
    }                                                                                                                  \
    memcpy(&cuda.name, &address, sizeof address);                                                                      \
  }
  CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  void *launch_ex = dlsym(library, "cuLaunchKernelEx");
  memcpy(&cuda.cuLaunchKernelEx, &launch_ex, sizeof launch_ex);
  CUresult error = cuda.cuInit(0);
  if (error != CUDA_SUCCESS)
    snprintf(cuda.problem, sizeof cuda.problem, "the NVIDIA driver does not start: %s", error_text(error));
}

/* ---- state ---- */

typedef struct device_state_t {
  const char *name; /* of the artifact */
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction *functions;
  uint32_t function_count;
  const tcrt_sig_device_kernel_t *kernels; /* that the functions are */
  CUdeviceptr weights;
} device_state_t;

typedef struct timed_launch_t {
  uint32_t id;
  CUevent start, end;
} timed_launch_t;

typedef struct stream_state_t {
  CUstream stream;
  int is_current; /* the CUDA context is pushed for the run */
  CUevent start, end;
  timed_launch_t *launches; /* of this run; events are kept for the next */
  uint32_t launch_count, launch_capacity;
} stream_state_t;

/* Memory is the machine's problem, anything else ours. */
static tcrt_status_t cuda_error(const char *name, const char *what, CUresult error) {
  if (error == CUDA_ERROR_OUT_OF_MEMORY)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the GPU has no memory left for %s", name, what);
  return tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: the GPU failed at %s: %s (CUDA error %d); please report this", name,
                   what, error_text(error), error);
}

static device_state_t *device_of(const tcrt_context_t *context) { return context->variant->driver_state; }
static stream_state_t *stream_of(const tcrt_context_t *context) { return context->driver_state; }

static void push(const tcrt_context_t *context) {
  if (!stream_of(context)->is_current)
    cuda.cuCtxPushCurrent(device_of(context)->context);
}

static void pop(const tcrt_context_t *context) {
  CUcontext previous;
  if (!stream_of(context)->is_current)
    cuda.cuCtxPopCurrent(&previous);
}

/* ---- device code and weights ---- */

/* 0: code for `arch` does not run on `sm` (90 for 9.0); larger is better. */
static uint32_t rate(uint32_t arch, int is_ptx, uint32_t sm) {
  uint32_t version = arch / 10;
  if (arch % 10 == 1)
    return version == sm ? arch : 0;
  if (!is_ptx && version / 10 != sm / 10)
    return 0;
  return version <= sm ? arch : 0;
}

static const tcrt_section_t *best_section(const tcrt_container_t *container, const tcrt_sig_variant_t *variant,
                                          uint32_t kind, uint32_t sm) {
  const tcrt_section_t *best = NULL;
  uint32_t best_rate = 0;
  for (uint32_t i = 0; i < variant->device_code_count; ++i) {
    const tcrt_section_t *section = &container->sections[variant->first_device_code + i];
    if (section->kind != kind)
      continue;
    uint32_t rated = rate(section->arch, kind == TCRT_SECTION_PTX, sm);
    if (rated > best_rate) {
      best = section;
      best_rate = rated;
    }
  }
  return best;
}

static tcrt_status_t load_module(tcrt_model_t *model, const tcrt_sig_variant_t *variant, device_state_t *state,
                                 uint32_t sm, const char *device_name) {
  const tcrt_container_t *container = &model->container;
  if (variant->device_kernel_count == 0)
    return TCRT_OK;
  const tcrt_section_t *choices[2] = {best_section(container, variant, TCRT_SECTION_CUBIN, sm),
                                      best_section(container, variant, TCRT_SECTION_PTX, sm)};
  if (!choices[0] && !choices[1])
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "%s: error: the artifact has no code for this GPU (%s, sm_%u); compile the model with --gpu sm_%u",
                     model->name, device_name, sm, sm);
  CUresult error = CUDA_SUCCESS;
  char log[512] = "";
  for (int i = 0; i < 2 && !state->module; ++i) {
    if (!choices[i])
      continue;
    tcrt_status_t status = tcrt_container_check_hash(container, choices[i]);
    if (status != TCRT_OK)
      return status;
    int options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)sizeof log};
    error = cuda.cuModuleLoadDataEx(&state->module, container->data + choices[i]->offset, 2, options, values);
    if (error != CUDA_SUCCESS)
      state->module = NULL;
    else {
      char arch[16];
      tcrt_arch_name(choices[i]->arch, arch, sizeof arch);
      tcrt_model_log(model, TCRT_LOG_INFO, "%s: uses the %s of %s on %s", model->name,
                     tcrt_section_kind_name(choices[i]->kind), arch, device_name);
    }
  }
  if (!state->module) {
    log[sizeof log - 1] = 0;
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
      return cuda_error(model->name, "device code", error);
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "%s: error: the GPU's driver does not load the device code: %s%s%s; a newer driver may",
                     model->name, error_text(error), log[0] ? ": " : "", log);
  }
  state->functions = calloc(variant->device_kernel_count, sizeof *state->functions);
  if (!state->functions)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for device code", model->name);
  state->function_count = variant->device_kernel_count;
  state->kernels = container->device_kernels + variant->first_device_kernel;
  for (uint32_t i = 0; i < state->function_count; ++i) {
    const tcrt_sig_device_kernel_t *kernel = &state->kernels[i];
    char *name = strndup(container->strings + kernel->name.offset, kernel->name.length);
    if (!name)
      return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for device code", model->name);
    error = cuda.cuModuleGetFunction(&state->functions[i], state->module, name);
    if (error != CUDA_SUCCESS)
      tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the device code has no kernel \"%s\"; compile the model again",
                model->name, name);
    free(name);
    if (error != CUDA_SUCCESS)
      return TCRT_ERROR_INVALID;
    /* More than 48 KiB must be asked for. */
    if (kernel->dynamic_smem > 48 * 1024) {
      error = cuda.cuFuncSetAttribute(state->functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      (int)kernel->dynamic_smem);
      if (error != CUDA_SUCCESS)
        return tcrt_fail(TCRT_ERROR_MACHINE,
                         "%s: error: a kernel needs %u bytes of shared memory, which this GPU (%s) does not have: %s",
                         model->name, kernel->dynamic_smem, device_name, error_text(error));
    }
  }
  return TCRT_OK;
}

static void variant_close(tcrt_loaded_variant_t *loaded) {
  device_state_t *state = loaded->driver_state;
  CUcontext previous;
  if (!state)
    return;
  if (state->context) {
    cuda.cuCtxPushCurrent(state->context);
    if (state->weights)
      cuda.cuMemFree(state->weights);
    if (state->module)
      cuda.cuModuleUnload(state->module);
    cuda.cuCtxPopCurrent(&previous);
    cuda.cuDevicePrimaryCtxRelease(state->device);
  }
  free(state->functions);
  free(state);
  loaded->driver_state = NULL;
}

static tcrt_status_t open_device(tcrt_model_t *model, uint32_t variant, tcrt_loaded_variant_t *loaded,
                                 device_state_t *state) {
  const tcrt_sig_variant_t record = tcrt_container_variant(&model->container, variant);
  int count = 0, major = 0, minor = 0;
  char device_name[128] = "";
  CUresult error = cuda.cuDeviceGetCount(&count);
  if (error != CUDA_SUCCESS || count <= 0)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: variant \"%s\" needs an NVIDIA GPU, and this machine shows none",
                     model->name, tcrt_model_variant_name(model, variant));
  if (model->options.device_index < 0 || model->options.device_index >= count)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: there is no GPU %d; this machine has %d", model->name,
                     model->options.device_index, count);
  error = cuda.cuDeviceGet(&state->device, model->options.device_index);
  if (error == CUDA_SUCCESS)
    error = cuda.cuDeviceGetName(device_name, sizeof device_name, state->device);
  if (error == CUDA_SUCCESS)
    error = cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, state->device);
  if (error == CUDA_SUCCESS)
    error = cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, state->device);
  if (error == CUDA_SUCCESS)
    error = cuda.cuDevicePrimaryCtxRetain(&state->context, state->device);
  if (error != CUDA_SUCCESS) {
    state->context = NULL;
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: GPU %d cannot be used: %s", model->name,
                     model->options.device_index, error_text(error));
  }
  cuda.cuCtxPushCurrent(state->context);
  tcrt_status_t status = load_module(model, &record, state, (uint32_t)(10 * major + minor), device_name);
  uint64_t weights_size = record.weights_size;
  if (status == TCRT_OK && weights_size) {
    error = cuda.cuMemAlloc(&state->weights, weights_size);
    if (error != CUDA_SUCCESS)
      state->weights = 0;
    else
      error = cuda.cuMemcpyHtoD(state->weights, model->container.weights, weights_size);
    if (error != CUDA_SUCCESS)
      status = cuda_error(model->name, "the weights", error);
    loaded->weights = (const uint8_t *)(uintptr_t)state->weights;
  }
  CUcontext previous;
  cuda.cuCtxPopCurrent(&previous);
  return status;
}

/* Without a GPU that can be asked, variant_open says what is missing. */
static int runs(const tcrt_model_t *model, const tcrt_sig_variant_t *variant) {
  CUdevice device;
  int major = 0, minor = 0;
  if (!variant->arch)
    return 1;
  pthread_once(&cuda_once, load_cuda);
  if (cuda.problem[0] || cuda.cuDeviceGet(&device, model->options.device_index) != CUDA_SUCCESS ||
      cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
      cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
    return 1;
  return rate(variant->arch, 0, (uint32_t)(10 * major + minor)) != 0;
}

static tcrt_status_t variant_open(tcrt_model_t *model, uint32_t variant, tcrt_loaded_variant_t *loaded) {
  pthread_once(&cuda_once, load_cuda);
  if (cuda.problem[0])
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: variant \"%s\" needs an NVIDIA GPU, and %s", model->name,
                     tcrt_model_variant_name(model, variant), cuda.problem);
  device_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for device code", model->name);
  state->name = model->name;
  loaded->driver_state = state;
  tcrt_status_t status = open_device(model, variant, loaded, state);
  if (status != TCRT_OK)
    variant_close(loaded);
  return status;
}

/* ---- contexts ---- */

static void context_close(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  if (!state)
    return;
  push(context);
  for (uint32_t i = 0; i < state->launch_capacity; ++i) {
    if (state->launches[i].start)
      cuda.cuEventDestroy(state->launches[i].start);
    if (state->launches[i].end)
      cuda.cuEventDestroy(state->launches[i].end);
  }
  if (state->start)
    cuda.cuEventDestroy(state->start);
  if (state->end)
    cuda.cuEventDestroy(state->end);
  if (state->stream)
    cuda.cuStreamDestroy(state->stream);
  pop(context);
  free(state->launches);
  free(state);
  context->driver_state = NULL;
}

static tcrt_status_t context_open(tcrt_context_t *context) {
  stream_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for a context", context->model->name);
  context->driver_state = state;
  push(context);
  CUresult error = cuda.cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING);
  if (error == CUDA_SUCCESS)
    error = cuda.cuEventCreate(&state->start, CU_EVENT_DEFAULT);
  if (error == CUDA_SUCCESS)
    error = cuda.cuEventCreate(&state->end, CU_EVENT_DEFAULT);
  pop(context);
  if (error == CUDA_SUCCESS)
    return TCRT_OK;
  tcrt_status_t status = cuda_error(context->model->name, "a stream", error);
  context_close(context);
  return status;
}

static void *allocate(tcrt_context_t *context, uint64_t bytes) {
  CUdeviceptr pointer = 0;
  push(context);
  CUresult error = cuda.cuMemAlloc(&pointer, bytes ? bytes : 1);
  pop(context);
  return error == CUDA_SUCCESS ? (void *)(uintptr_t)pointer : NULL;
}

static void release(tcrt_context_t *context, void *data, uint64_t bytes) {
  (void)bytes;
  if (!data)
    return;
  push(context);
  /* Waits for work that may still use it. */
  cuda.cuMemFree((CUdeviceptr)(uintptr_t)data);
  pop(context);
}

static tcrt_status_t synchronize(tcrt_context_t *context) {
  push(context);
  CUresult error = cuda.cuStreamSynchronize(stream_of(context)->stream);
  pop(context);
  return error == CUDA_SUCCESS ? TCRT_OK : cuda_error(context->model->name, "the end of the run", error);
}

static tcrt_status_t copy(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes, uint32_t direction) {
  if (!bytes)
    return TCRT_OK;
  CUstream stream = stream_of(context)->stream;
  CUdeviceptr device_dst = (CUdeviceptr)(uintptr_t)dst, device_src = (CUdeviceptr)(uintptr_t)src;
  CUresult error;
  push(context);
  switch (direction) {
  case TCRT_COPY_HOST_TO_DEVICE:
    error = cuda.cuMemcpyHtoDAsync(device_dst, src, bytes, stream);
    break;
  case TCRT_COPY_DEVICE_TO_HOST:
    error = cuda.cuMemcpyDtoHAsync(dst, device_src, bytes, stream);
    if (error == CUDA_SUCCESS)
      error = cuda.cuStreamSynchronize(stream);
    break;
  default:
    error = cuda.cuMemcpyDtoDAsync(device_dst, device_src, bytes, stream);
    break;
  }
  pop(context);
  return error == CUDA_SUCCESS ? TCRT_OK : cuda_error(context->model->name, "a copy", error);
}

static tcrt_status_t clear(tcrt_context_t *context, void *data, uint64_t bytes) {
  if (!bytes)
    return TCRT_OK;
  push(context);
  CUresult error = cuda.cuMemsetD8Async((CUdeviceptr)(uintptr_t)data, 0, bytes, stream_of(context)->stream);
  pop(context);
  return error == CUDA_SUCCESS ? TCRT_OK : cuda_error(context->model->name, "clearing memory", error);
}

/* Events around the next launch, or NULL: not measured. */
static timed_launch_t *next_timed_launch(stream_state_t *state, uint32_t id) {
  if (state->launch_count == state->launch_capacity) {
    uint32_t capacity = state->launch_capacity ? 2 * state->launch_capacity : 64;
    timed_launch_t *launches = realloc(state->launches, capacity * sizeof *launches);
    if (!launches)
      return NULL;
    memset(launches + state->launch_capacity, 0, (capacity - state->launch_capacity) * sizeof *launches);
    state->launches = launches;
    state->launch_capacity = capacity;
  }
  timed_launch_t *launch = &state->launches[state->launch_count];
  if ((!launch->start && cuda.cuEventCreate(&launch->start, CU_EVENT_DEFAULT) != CUDA_SUCCESS) ||
      (!launch->end && cuda.cuEventCreate(&launch->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS))
    return NULL;
  launch->id = id;
  ++state->launch_count;
  return launch;
}

static CUresult launch_function(CUfunction function, const tcrt_device_launch_t *launch, CUstream stream,
                                void **parameters) {
  size_t size = launch->parameter_size;
  void *block[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)launch->parameters, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &size, CU_LAUNCH_PARAM_END};
  void **extra = parameters ? NULL : block;
  const uint32_t *grid = launch->grid, *threads = launch->block, *cluster = launch->cluster;
  if (cluster[0] == 1 && cluster[1] == 1 && cluster[2] == 1)
    return cuda.cuLaunchKernel(function, grid[0], grid[1], grid[2], threads[0], threads[1], threads[2],
                               launch->dynamic_smem, stream, parameters, extra);
  CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                 .value.cluster = {cluster[0], cluster[1], cluster[2]}};
  CUlaunchConfig config = {.grid = {grid[0], grid[1], grid[2]},
                           .block = {threads[0], threads[1], threads[2]},
                           .smem = launch->dynamic_smem,
                           .stream = stream,
                           .attributes = &attribute,
                           .attribute_count = 1};
  return cuda.cuLaunchKernelEx(&config, function, parameters, extra);
}

static tcrt_status_t launch(tcrt_context_t *context, const tcrt_device_launch_t *launch, void **parameters) {
  device_state_t *device = device_of(context);
  stream_state_t *state = stream_of(context);
  const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
  if (launch->kernel >= device->function_count)
    return tcrt_fail(TCRT_ERROR_INTERNAL,
                     "%s: error: the compiled program launches device kernel %u of %u; please report this",
                     context->model->name, launch->kernel, device->function_count);
  /* An empty grid does nothing; CUDA would refuse it. */
  if (!grid[0] || !grid[1] || !grid[2])
    return TCRT_OK;
  if ((cluster[0] != 1 || cluster[1] != 1 || cluster[2] != 1) && !cuda.cuLaunchKernelEx)
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "%s: error: the NVIDIA driver is too old for clusters of blocks: it has no cuLaunchKernelEx",
                     context->model->name);
  push(context);
  timed_launch_t *timed = context->profile ? next_timed_launch(state, launch->id) : NULL;
  if (timed)
    cuda.cuEventRecord(timed->start, state->stream);
  CUresult error = launch_function(device->functions[launch->kernel], launch, state->stream, parameters);
  if (timed)
    cuda.cuEventRecord(timed->end, state->stream);
  pop(context);
  if (error == CUDA_SUCCESS)
    return TCRT_OK;
  const tcrt_sig_device_kernel_t *kernel = &device->kernels[launch->kernel];
  char what[256];
  snprintf(what, sizeof what, "the launch of kernel \"%.*s\" (grid %u x %u x %u, block %u x %u x %u, %u bytes)",
           kernel->name.length > 100 ? 100 : (int)kernel->name.length,
           context->model->container.strings + kernel->name.offset, grid[0], grid[1], grid[2], block[0], block[1],
           block[2], launch->dynamic_smem);
  return cuda_error(context->model->name, what, error);
}

static tcrt_status_t run_begin(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  CUresult error = cuda.cuCtxPushCurrent(device_of(context)->context);
  if (error != CUDA_SUCCESS)
    return cuda_error(context->model->name, "the start of the run", error);
  state->is_current = 1;
  state->launch_count = 0;
  if (context->times_runs)
    cuda.cuEventRecord(state->start, state->stream);
  return TCRT_OK;
}

static tcrt_status_t run_end(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  CUcontext previous;
  if (context->times_runs)
    cuda.cuEventRecord(state->end, state->stream);
  CUresult error = cuda.cuStreamSynchronize(state->stream);
  if (error == CUDA_SUCCESS && context->times_runs) {
    float ms = 0;
    if (cuda.cuEventElapsedTime(&ms, state->start, state->end) == CUDA_SUCCESS)
      context->device_us = 1000.0 * ms;
    for (uint32_t i = 0; i < state->launch_count; ++i) {
      const timed_launch_t *timed = &state->launches[i];
      if (timed->id >= context->model->container.signature->kernel_count ||
          cuda.cuEventElapsedTime(&ms, timed->start, timed->end) != CUDA_SUCCESS)
        continue;
      context->profile_ns[timed->id] += (uint64_t)(1e6 * ms);
      ++context->profile_launches[timed->id];
    }
  }
  state->is_current = 0;
  cuda.cuCtxPopCurrent(&previous);
  return error == CUDA_SUCCESS ? TCRT_OK : cuda_error(context->model->name, "the run", error);
}

const tcrt_driver_t tcrt_cuda_driver = {
    .device = TCRT_DEVICE_CUDA,
    .runs = runs,
    .variant_open = variant_open,
    .variant_close = variant_close,
    .context_open = context_open,
    .context_close = context_close,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .clear = clear,
    .synchronize = synchronize,
    .launch = launch,
    .run_begin = run_begin,
    .run_end = run_end,
};
