/*
 * Driver.c - the driver for GPU variants, on the CUDA driver API.
 *
 * Device code is loaded, and weights are copied to the device, once per model; a context has one stream, its own or the
 * caller's. The program of a variant runs on the host and enqueues launches, which Graphs.c may keep and enqueue
 * together; whatever must see what they wrote, or would come before them, enqueues them first (`flush`).
 *
 * Of the cubins the best for the device is taken, see tcrt_section_t::arch; if none fits, or the driver does not take
 * it, PTX is compiled by the driver.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- state ---- */

typedef struct device_state_t {
  const char *name; /* of the artifact */
  CUdevice device;
  CUcontext context;
  pid_t process; /* that opened it; the driver does not work in its forks */
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
  int owns_stream;
  int is_current;             /* the CUDA context is pushed for the run */
  tcrt_cuda_graphs_t *graphs; /* NULL: launches are enqueued at once */
  int has_said;               /* why a graph was not made */
  uint64_t plain_launches;    /* at once */
  CUresult allocate_error;    /* of the last allocation that failed */
  CUevent start, end;
  uint64_t start_ns;        /* when `start` was recorded */
  int has_started;          /* or need not: `start` is recorded before the first work of a run, not before the host's */
  timed_launch_t *launches; /* of this run; events are kept for the next */
  uint32_t launch_count, launch_capacity;
} stream_state_t;

static device_state_t *device_of(const tcrt_context_t *context) { return context->variant->driver_state; }
static stream_state_t *stream_of(const tcrt_context_t *context) { return context->driver_state; }

static int is_forked(const device_state_t *state) { return state->process != getpid(); }

static tcrt_status_t forked(const tcrt_context_t *context) {
  return tcrt_fail(TCRT_ERROR_MACHINE,
                   "%s: error: this process was forked from the one that opened the artifact, and CUDA does not work "
                   "in forks; start processes without fork (spawn), and open the artifact there",
                   context->model->name);
}

static void push(const tcrt_context_t *context) {
  if (!stream_of(context)->is_current)
    tcrt_cuda.cuCtxPushCurrent(device_of(context)->context);
}

static void pop(const tcrt_context_t *context) {
  CUcontext previous;
  if (!stream_of(context)->is_current)
    tcrt_cuda.cuCtxPopCurrent(&previous);
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

/* The first GPUs that tc-compile knows (Machines.def). */
#define OLDEST_SM 80u

static tcrt_status_t no_code(const tcrt_model_t *model, const char *device_name, uint32_t sm) {
  if (sm < OLDEST_SM)
    return tcrt_fail(
        TCRT_ERROR_MACHINE,
        "%s: error: this GPU (%s, sm_%u) is older than all that there is code for; run the artifact on one "
        "of sm_%u or newer",
        model->name, device_name, sm, OLDEST_SM);
  return tcrt_fail(TCRT_ERROR_MACHINE,
                   "%s: error: the artifact has no code for this GPU (%s, sm_%u); compile the model with --gpu sm_%u",
                   model->name, device_name, sm, sm);
}

static tcrt_status_t load_module(tcrt_model_t *model, const tcrt_sig_variant_t *variant, device_state_t *state,
                                 uint32_t sm, const char *device_name) {
  const tcrt_container_t *container = &model->container;
  if (variant->device_kernel_count == 0)
    return TCRT_OK;
  const tcrt_section_t *choices[2] = {best_section(container, variant, TCRT_SECTION_CUBIN, sm),
                                      best_section(container, variant, TCRT_SECTION_PTX, sm)};
  if (!choices[0] && !choices[1])
    return no_code(model, device_name, sm);
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
    error = tcrt_cuda.cuModuleLoadDataEx(&state->module, container->data + choices[i]->offset, 2, options, values);
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
      return tcrt_cuda_fail(model->name, "device code", error);
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "%s: error: the GPU's driver does not load the device code: %s%s%s; a newer driver may",
                     model->name, tcrt_cuda_error_text(error), log[0] ? ": " : "", log);
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
    error = tcrt_cuda.cuModuleGetFunction(&state->functions[i], state->module, name);
    tcrt_status_t status = TCRT_OK;
    if (error == CUDA_ERROR_NOT_FOUND)
      status = tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the device code has no kernel \"%s\"; compile the model again",
                         model->name, name);
    else if (error != CUDA_SUCCESS)
      status = tcrt_cuda_fail(model->name, "device code", error);
    free(name);
    if (status != TCRT_OK)
      return status;
    /* More than 48 KiB must be asked for. */
    if (kernel->dynamic_smem > 48 * 1024) {
      error = tcrt_cuda.cuFuncSetAttribute(state->functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           (int)kernel->dynamic_smem);
      if (error != CUDA_SUCCESS)
        return tcrt_fail(TCRT_ERROR_MACHINE,
                         "%s: error: a kernel needs %u bytes of shared memory, which this GPU (%s) does not have: %s",
                         model->name, kernel->dynamic_smem, device_name, tcrt_cuda_error_text(error));
    }
  }
  return TCRT_OK;
}

static void variant_close(tcrt_loaded_variant_t *loaded) {
  device_state_t *state = loaded->driver_state;
  CUcontext previous;
  if (!state)
    return;
  if (state->context && !is_forked(state)) {
    tcrt_cuda.cuCtxPushCurrent(state->context);
    if (state->weights)
      tcrt_cuda.cuMemFree(state->weights);
    if (state->module)
      tcrt_cuda.cuModuleUnload(state->module);
    tcrt_cuda.cuCtxPopCurrent(&previous);
    tcrt_cuda.cuDevicePrimaryCtxRelease(state->device);
  }
  free(state->functions);
  free(state);
  loaded->driver_state = NULL;
}

/* The GPU that the model was opened for, its name and its SM version. */
static tcrt_status_t find_device(const tcrt_model_t *model, const char *variant, CUdevice *device, char *name,
                                 int name_size, uint32_t *sm) {
  int count = 0, major = 0, minor = 0;
  tcrt_cuda_open();
  if (tcrt_cuda.problem[0])
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: variant \"%s\" needs an NVIDIA GPU, and %s", model->name, variant,
                     tcrt_cuda.problem);
  CUresult error = tcrt_cuda.has_no_device ? CUDA_ERROR_NO_DEVICE : tcrt_cuda.cuDeviceGetCount(&count);
  if (error != CUDA_SUCCESS || count <= 0)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: variant \"%s\" needs an NVIDIA GPU, and this machine shows none",
                     model->name, variant);
  if (model->options.device_index < 0 || model->options.device_index >= count)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: there is no GPU %d; this machine has %d", model->name,
                     model->options.device_index, count);
  error = tcrt_cuda.cuDeviceGet(device, model->options.device_index);
  if (error == CUDA_SUCCESS)
    error = tcrt_cuda.cuDeviceGetName(name, name_size, *device);
  if (error == CUDA_SUCCESS)
    error = tcrt_cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, *device);
  if (error == CUDA_SUCCESS)
    error = tcrt_cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, *device);
  *sm = (uint32_t)(10 * major + minor);
  return error == CUDA_SUCCESS
             ? TCRT_OK
             : tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: GPU %d cannot be used: %s (CUDA error %d)", model->name,
                         model->options.device_index, tcrt_cuda_error_text(error), error);
}

static tcrt_status_t open_device(tcrt_model_t *model, uint32_t variant, tcrt_loaded_variant_t *loaded,
                                 device_state_t *state) {
  const tcrt_sig_variant_t record = tcrt_container_variant(&model->container, variant);
  char device_name[128] = "";
  uint32_t sm = 0;
  tcrt_status_t status =
      find_device(model, tcrt_model_variant_name(model, variant), &state->device, device_name, sizeof device_name, &sm);
  if (status != TCRT_OK)
    return status;
  CUresult error = tcrt_cuda.cuDevicePrimaryCtxRetain(&state->context, state->device);
  if (error != CUDA_SUCCESS) {
    state->context = NULL;
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: GPU %d cannot be used: %s (CUDA error %d)", model->name,
                     model->options.device_index, tcrt_cuda_error_text(error), error);
  }
  tcrt_cuda.cuCtxPushCurrent(state->context);
  status = load_module(model, &record, state, sm, device_name);
  uint64_t weights_size = record.weights_size;
  if (status == TCRT_OK && weights_size) {
    error = tcrt_cuda_allocate(&state->weights, weights_size);
    if (error != CUDA_SUCCESS)
      state->weights = 0;
    else
      error = tcrt_cuda_upload(state->context, state->weights, model->container.weights, weights_size);
    if (error != CUDA_SUCCESS)
      status = tcrt_cuda_fail(model->name, "the weights", error);
    loaded->weights = (const uint8_t *)(uintptr_t)state->weights;
  }
  CUcontext previous;
  tcrt_cuda.cuCtxPopCurrent(&previous);
  return status;
}

/* Without a GPU that can be asked, variant_open says what is missing. */
static int runs(const tcrt_model_t *model, const tcrt_sig_variant_t *variant) {
  CUdevice device;
  char name[128];
  uint32_t sm;
  if (!variant->arch || find_device(model, "", &device, name, sizeof name, &sm) != TCRT_OK)
    return 1;
  return rate(variant->arch, 0, sm) != 0;
}

static tcrt_status_t is_usable(const tcrt_model_t *model) {
  const tcrt_container_t *container = &model->container;
  CUdevice device;
  char name[128] = "";
  uint32_t sm = 0;
  tcrt_status_t status = find_device(model, tcrt_device_name(TCRT_DEVICE_CUDA), &device, name, sizeof name, &sm);
  for (uint32_t i = 0; status == TCRT_OK && i < container->signature->variant_count; ++i) {
    const tcrt_sig_variant_t variant = tcrt_container_variant(container, i);
    if (variant.device == TCRT_DEVICE_CUDA && (!variant.arch || rate(variant.arch, 0, sm)) &&
        (!variant.device_kernel_count || best_section(container, &variant, TCRT_SECTION_CUBIN, sm) ||
         best_section(container, &variant, TCRT_SECTION_PTX, sm)))
      return TCRT_OK;
  }
  return status == TCRT_OK ? no_code(model, name, sm) : status;
}

static tcrt_status_t variant_open(tcrt_model_t *model, uint32_t variant, tcrt_loaded_variant_t *loaded) {
  device_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for device code", model->name);
  state->name = model->name;
  state->process = getpid();
  loaded->driver_state = state;
  tcrt_status_t status = open_device(model, variant, loaded, state);
  if (status != TCRT_OK)
    variant_close(loaded);
  return status;
}

/* ---- contexts ---- */

static void destroy_objects(tcrt_context_t *context, stream_state_t *state) {
  push(context);
  if (state->stream)
    tcrt_cuda.cuStreamSynchronize(state->stream);
  tcrt_cuda_graphs_destroy(state->graphs);
  for (uint32_t i = 0; i < state->launch_capacity; ++i) {
    if (state->launches[i].start)
      tcrt_cuda.cuEventDestroy(state->launches[i].start);
    if (state->launches[i].end)
      tcrt_cuda.cuEventDestroy(state->launches[i].end);
  }
  if (state->start)
    tcrt_cuda.cuEventDestroy(state->start);
  if (state->end)
    tcrt_cuda.cuEventDestroy(state->end);
  if (state->stream && state->owns_stream)
    tcrt_cuda.cuStreamDestroy(state->stream);
  pop(context);
}

static void context_close(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  if (!state)
    return;
  /* What belongs to the driver stays its parent's. */
  if (!is_forked(device_of(context)))
    destroy_objects(context, state);
  free(state->launches);
  free(state);
  context->driver_state = NULL;
}

/* TCRT_GRAPHS_*, what the caller asks for before what the model was compiled for. */
static int graphs_of(const tcrt_context_t *context) {
  int mode = context->graphs;
  if (mode == TCRT_GRAPHS_DEFAULT)
    mode = (int)tcrt_container_variant(&context->model->container, context->variant_index).graphs;
  /* Events around a kernel need it alone. */
  if (context->profile || context->event)
    return TCRT_GRAPHS_OFF;
  return mode == TCRT_GRAPHS_OFF || mode == TCRT_GRAPHS_AT_ONCE ? mode : TCRT_GRAPHS_ON;
}

static tcrt_status_t context_open(tcrt_context_t *context) {
  stream_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for a context", context->model->name);
  context->driver_state = state;
  int mode = graphs_of(context);
  if (mode != TCRT_GRAPHS_OFF && !(state->graphs = tcrt_cuda_graphs_create(mode))) {
    context_close(context);
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for a context", context->model->name);
  }
  state->stream = context->stream;
  state->owns_stream = !state->stream;
  state->has_started = 1;
  push(context);
  CUresult error = CUDA_SUCCESS;
  if (state->owns_stream)
    error = tcrt_cuda.cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING);
  if (error == CUDA_SUCCESS)
    error = tcrt_cuda.cuEventCreate(&state->start, CU_EVENT_DEFAULT);
  if (error == CUDA_SUCCESS)
    error = tcrt_cuda.cuEventCreate(&state->end, CU_EVENT_DEFAULT);
  pop(context);
  if (error == CUDA_SUCCESS)
    return TCRT_OK;
  tcrt_status_t status = tcrt_cuda_fail(context->model->name, "a stream", error);
  context_close(context);
  return status;
}

static void *stream(const tcrt_context_t *context) { return stream_of(context)->stream; }

static void graph_stats(const tcrt_context_t *context, tcrt_graph_stats_t *stats) {
  const stream_state_t *state = stream_of(context);
  if (state->graphs)
    tcrt_cuda_graphs_stats(state->graphs, stats);
  stats->off_launches = state->plain_launches;
}

/* ---- launches that are kept ---- */

static tcrt_status_t launch_failed(const tcrt_context_t *context, const tcrt_cuda_launch_t *launch, CUresult error) {
  const tcrt_sig_device_kernel_t *kernel = &device_of(context)->kernels[launch->kernel];
  const uint32_t *grid = launch->grid, *block = launch->block;
  char what[256];
  snprintf(what, sizeof what, "the launch of kernel \"%.*s\" (grid %u x %u x %u, block %u x %u x %u, %u bytes)",
           kernel->name.length > 100 ? 100 : (int)kernel->name.length,
           context->model->container.strings + kernel->name.offset, grid[0], grid[1], grid[2], block[0], block[1],
           block[2], launch->smem);
  return tcrt_cuda_fail(context->model->name, what, error);
}

/* Something is enqueued next. */
static void start(stream_state_t *state) {
  if (!state->has_started) {
    tcrt_cuda.cuEventRecord(state->start, state->stream);
    state->start_ns = tcrt_now_ns();
  }
  state->has_started = 1;
}

/* Enqueues the launches that were kept. The CUDA context is current. */
static tcrt_status_t flush(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  if (!state->graphs || tcrt_cuda_graphs_is_empty(state->graphs))
    return TCRT_OK;
  tcrt_cuda_launch_t failed;
  CUresult error =
      tcrt_cuda_graphs_flush(state->graphs, state->stream, state->has_started ? NULL : state->start, &failed);
  state->has_started = 1;
  const char *problem = tcrt_cuda_graphs_problem(state->graphs);
  if (problem && !state->has_said) {
    state->has_said = 1;
    tcrt_model_log(context->model, TCRT_LOG_INFO, "%s: runs without a CUDA graph, as the driver does not make %s",
                   context->model->name, problem);
  }
  return error == CUDA_SUCCESS ? TCRT_OK : launch_failed(context, &failed, error);
}

/* ---- memory ---- */

static void *allocate(tcrt_context_t *context, uint64_t bytes) {
  stream_state_t *state = stream_of(context);
  CUdeviceptr pointer = 0;
  push(context);
  CUresult error = tcrt_cuda_allocate(&pointer, bytes ? bytes : 1);
  /* Graphs hold memory of the device, and can be made again. */
  if (error == CUDA_ERROR_OUT_OF_MEMORY && state->graphs && tcrt_cuda_graphs_trim(state->graphs, state->stream))
    error = tcrt_cuda.cuMemAlloc(&pointer, bytes ? bytes : 1);
  pop(context);
  state->allocate_error = error;
  return error == CUDA_SUCCESS ? (void *)(uintptr_t)pointer : NULL;
}

static tcrt_status_t no_memory(const tcrt_context_t *context, const char *what, uint64_t bytes) {
  char text[128];
  snprintf(text, sizeof text, "%s (%llu bytes)", what, (unsigned long long)bytes);
  return tcrt_cuda_fail(context->model->name, text, stream_of(context)->allocate_error);
}

static void release(tcrt_context_t *context, void *data, uint64_t bytes) {
  (void)bytes;
  if (!data || is_forked(device_of(context)))
    return;
  push(context);
  /* What is kept may use it; what is under way is waited for by cuMemFree. An error is found again at the next call. */
  flush(context);
  tcrt_cuda.cuMemFree((CUdeviceptr)(uintptr_t)data);
  pop(context);
}

static tcrt_status_t synchronize(tcrt_context_t *context) {
  if (is_forked(device_of(context)))
    return forked(context);
  push(context);
  tcrt_status_t status = flush(context);
  CUresult error = status == TCRT_OK ? tcrt_cuda.cuStreamSynchronize(stream_of(context)->stream) : CUDA_SUCCESS;
  pop(context);
  return error == CUDA_SUCCESS ? status : tcrt_cuda_fail(context->model->name, "a wait for results", error);
}

static tcrt_status_t copy(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes, uint32_t direction) {
  if (!bytes)
    return TCRT_OK;
  CUstream stream = stream_of(context)->stream;
  CUdeviceptr device_dst = (CUdeviceptr)(uintptr_t)dst, device_src = (CUdeviceptr)(uintptr_t)src;
  CUresult error = CUDA_SUCCESS;
  push(context);
  tcrt_status_t status = flush(context);
  if (status == TCRT_OK)
    start(stream_of(context));
  if (status == TCRT_OK)
    error = direction == TCRT_COPY_HOST_TO_DEVICE ? tcrt_cuda.cuMemcpyHtoDAsync(device_dst, src, bytes, stream)
            : direction == TCRT_COPY_DEVICE_TO_HOST
                ? tcrt_cuda.cuMemcpyDtoHAsync(dst, device_src, bytes, stream)
                : tcrt_cuda.cuMemcpyDtoDAsync(device_dst, device_src, bytes, stream);
  pop(context);
  return error == CUDA_SUCCESS ? status : tcrt_cuda_fail(context->model->name, "a copy", error);
}

static tcrt_status_t clear(tcrt_context_t *context, void *data, uint64_t bytes) {
  if (!bytes)
    return TCRT_OK;
  CUresult error = CUDA_SUCCESS;
  push(context);
  tcrt_status_t status = flush(context);
  if (status == TCRT_OK)
    start(stream_of(context));
  if (status == TCRT_OK)
    error = tcrt_cuda.cuMemsetD8Async((CUdeviceptr)(uintptr_t)data, 0, bytes, stream_of(context)->stream);
  pop(context);
  return error == CUDA_SUCCESS ? status : tcrt_cuda_fail(context->model->name, "clearing memory", error);
}

/* ---- runs ---- */

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
  if ((!launch->start && tcrt_cuda.cuEventCreate(&launch->start, CU_EVENT_DEFAULT) != CUDA_SUCCESS) ||
      (!launch->end && tcrt_cuda.cuEventCreate(&launch->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS))
    return NULL;
  launch->id = id;
  ++state->launch_count;
  return launch;
}

static tcrt_status_t launch(tcrt_context_t *context, const tcrt_device_launch_t *launch, void **addresses) {
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
  if ((cluster[0] != 1 || cluster[1] != 1 || cluster[2] != 1) && !tcrt_cuda.cuLaunchKernelEx)
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "%s: error: the NVIDIA driver is too old for clusters of blocks: it has no cuLaunchKernelEx; "
                     "install a newer one (525 or later)",
                     context->model->name);
  tcrt_cuda_launch_t record = {.function = device->functions[launch->kernel],
                               .kernel = launch->kernel,
                               .grid = {grid[0], grid[1], grid[2]},
                               .block = {block[0], block[1], block[2]},
                               .cluster = {cluster[0], cluster[1], cluster[2]},
                               .smem = launch->dynamic_smem,
                               .parameter_size = launch->parameter_size};
  /* Of code of ABI 1 nobody knows how large its parameters are. */
  if (state->graphs && !addresses && tcrt_cuda_graphs_keep(state->graphs, &record, launch->parameters))
    return TCRT_OK;
  push(context);
  tcrt_status_t status = flush(context);
  if (status == TCRT_OK && state->graphs && !addresses &&
      tcrt_cuda_graphs_keep(state->graphs, &record, launch->parameters)) {
    pop(context);
    return TCRT_OK;
  }
  CUresult error = CUDA_SUCCESS;
  if (status == TCRT_OK) {
    start(state);
    timed_launch_t *timed = context->profile || context->event ? next_timed_launch(state, launch->id) : NULL;
    if (timed)
      tcrt_cuda.cuEventRecord(timed->start, state->stream);
    error = tcrt_cuda_launch(&record, launch->parameters, addresses, state->stream);
    if (timed)
      tcrt_cuda.cuEventRecord(timed->end, state->stream);
    ++state->plain_launches;
  }
  pop(context);
  return error == CUDA_SUCCESS ? status : launch_failed(context, &record, error);
}

static tcrt_status_t run_begin(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  if (is_forked(device_of(context)))
    return forked(context);
  CUresult error = tcrt_cuda.cuCtxPushCurrent(device_of(context)->context);
  if (error != CUDA_SUCCESS)
    return tcrt_cuda_fail(context->model->name, "the start of the run", error);
  state->is_current = 1;
  state->launch_count = 0;
  state->has_started = !context->times_runs;
  return TCRT_OK;
}

static tcrt_status_t run_end(tcrt_context_t *context) {
  stream_state_t *state = stream_of(context);
  CUcontext previous;
  tcrt_status_t status = flush(context);
  start(state);
  if (context->times_runs)
    tcrt_cuda.cuEventRecord(state->end, state->stream);
  state->is_current = 0;
  tcrt_cuda.cuCtxPopCurrent(&previous);
  return status;
}

static tcrt_status_t finish(tcrt_context_t *context) {
  if (is_forked(device_of(context)))
    return forked(context);
  stream_state_t *state = stream_of(context);
  push(context);
  CUresult error = tcrt_cuda.cuStreamSynchronize(state->stream);
  float ms = 0;
  if (error == CUDA_SUCCESS && context->times_runs &&
      tcrt_cuda.cuEventElapsedTime(&ms, state->start, state->end) == CUDA_SUCCESS)
    context->device_us = 1000.0 * ms;
  for (uint32_t i = 0; error == CUDA_SUCCESS && i < state->launch_count; ++i) {
    const timed_launch_t *timed = &state->launches[i];
    if (timed->id >= context->model->container.signature->kernel_count ||
        tcrt_cuda.cuEventElapsedTime(&ms, timed->start, timed->end) != CUDA_SUCCESS)
      continue;
    const uint64_t time_ns = (uint64_t)(1e6 * ms);
    context->profile_ns[timed->id] += time_ns;
    ++context->profile_launches[timed->id];
    if (context->event && tcrt_cuda.cuEventElapsedTime(&ms, state->start, timed->start) == CUDA_SUCCESS) {
      const uint64_t begin_ns = state->start_ns + (uint64_t)(1e6 * ms);
      tcrt_event_kernel(context, timed->id, TCRT_DEVICE_CUDA, begin_ns, begin_ns + time_ns);
    }
  }
  state->launch_count = 0;
  pop(context);
  return error == CUDA_SUCCESS ? TCRT_OK : tcrt_cuda_fail(context->model->name, "the run", error);
}

const tcrt_driver_t tcrt_cuda_driver = {
    .device = TCRT_DEVICE_CUDA,
    .runs = runs,
    .is_usable = is_usable,
    .variant_open = variant_open,
    .variant_close = variant_close,
    .context_open = context_open,
    .context_close = context_close,
    .stream = stream,
    .graph_stats = graph_stats,
    .allocate = allocate,
    .no_memory = no_memory,
    .release = release,
    .copy = copy,
    .clear = clear,
    .synchronize = synchronize,
    .launch = launch,
    .run_begin = run_begin,
    .run_end = run_end,
    .finish = finish,
};
