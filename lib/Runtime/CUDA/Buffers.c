/*
 * Buffers.c - memory of a GPU for callers, beyond contexts and models; order between streams.
 *
 * A block that is freed is kept for the next allocation of its size in its stream: what is enqueued there then comes
 * after all that used it, so nobody waits, and no driver is called. cuMemFree waits for the whole GPU, which is what
 * a block takes that other streams may still use.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* At most so much is kept. Larger results take the GPU longer to write than the driver to find memory. */
#define MOST_KEPT_BYTES (UINT64_C(256) << 20)
#define MOST_KEPT_BLOCKS 256

typedef struct block_t {
  struct block_t *next;
  void *data;
  uint64_t bytes;
  void *stream;
  int32_t gpu;
} block_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t *kept; /* the latest first */
static uint64_t kept_bytes, kept_blocks;

/* ---- the GPU of a call ---- */

/* The driver does not work in forks of the process that opened it: what is kept, and who holds the lock, is the
 * parent's. */
static int is_forked(void) {
  tcrt_cuda_open();
  return tcrt_cuda.process != getpid();
}

static const char *name_of(int32_t gpu, char name[32]) {
  snprintf(name, 32, "GPU %d", gpu);
  return name;
}

/* Makes the primary context of the GPU current until `leave`. */
static tcrt_status_t enter(int32_t gpu, CUdevice *device) {
  char name[32];
  int count = 0;
  if (is_forked())
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "error: this process was forked from one that used CUDA, which does not work in forks; start "
                     "processes without fork (spawn)");
  if (tcrt_cuda.problem[0])
    return tcrt_fail(TCRT_ERROR_MACHINE, "error: %s cannot be used: %s", name_of(gpu, name), tcrt_cuda.problem);
  CUresult error = tcrt_cuda.has_no_device ? CUDA_ERROR_NO_DEVICE : tcrt_cuda.cuDeviceGetCount(&count);
  if (error != CUDA_SUCCESS || gpu < 0 || gpu >= count)
    return tcrt_fail(TCRT_ERROR_MACHINE, "error: there is no GPU %d; this machine shows %d", gpu, count);
  CUcontext context = NULL;
  error = tcrt_cuda.cuDeviceGet(device, gpu);
  if (error == CUDA_SUCCESS)
    error = tcrt_cuda.cuDevicePrimaryCtxRetain(&context, *device);
  if (error == CUDA_SUCCESS) {
    error = tcrt_cuda.cuCtxPushCurrent(context);
    if (error != CUDA_SUCCESS)
      tcrt_cuda.cuDevicePrimaryCtxRelease(*device);
  }
  return error == CUDA_SUCCESS ? TCRT_OK : tcrt_cuda_fail(name_of(gpu, name), "its context", error);
}

/* `keeps`: memory that was allocated holds the context. */
static void leave(CUdevice device, int keeps) {
  CUcontext previous;
  tcrt_cuda.cuCtxPopCurrent(&previous);
  if (!keeps)
    tcrt_cuda.cuDevicePrimaryCtxRelease(device);
}

static CUstream stream_of(void *stream) { return stream ? stream : TCRT_DEFAULT_STREAM; }

static tcrt_status_t result_of(int32_t gpu, const char *what, CUresult error) {
  char name[32];
  return error == CUDA_SUCCESS ? TCRT_OK : tcrt_cuda_fail(name_of(gpu, name), what, error);
}

/* ---- memory ---- */

/* Sizes in steps of an eighth, so that those of one kind come again. 0: too large. */
static uint64_t rounded(uint64_t bytes) {
  uint64_t step = 256;
  if (bytes > (uint64_t)INT64_MAX / 2)
    return 0;
  while (step <= bytes / 16)
    step *= 2;
  return bytes ? (bytes + step - 1) / step * step : step;
}

static void give_to_driver(int32_t gpu, void *data) {
  CUdevice device;
  if (enter(gpu, &device) != TCRT_OK)
    return;
  tcrt_cuda.cuMemFree((CUdeviceptr)(uintptr_t)data);
  leave(device, 0);
  tcrt_cuda.cuDevicePrimaryCtxRelease(device); /* which the memory held */
}

static void free_all(block_t *blocks) {
  while (blocks) {
    block_t *next = blocks->next;
    give_to_driver(blocks->gpu, blocks->data);
    free(blocks);
    blocks = next;
  }
}

/* Takes the block at *place out of what is kept. */
static block_t *take(block_t **place) {
  block_t *block = *place;
  *place = block->next;
  block->next = NULL;
  kept_bytes -= block->bytes;
  --kept_blocks;
  return block;
}

static void *find_kept(int32_t gpu, uint64_t bytes, void *stream) {
  block_t *block = NULL;
  if (is_forked())
    return NULL;
  pthread_mutex_lock(&lock);
  for (block_t **place = &kept; *place && !block; place = &(*place)->next)
    if ((*place)->bytes == bytes && (*place)->stream == stream && (*place)->gpu == gpu) {
      block = take(place);
      break;
    }
  pthread_mutex_unlock(&lock);
  void *data = block ? block->data : NULL;
  free(block);
  return data;
}

int tcrt_cuda_trim(void) {
  if (is_forked())
    return 0;
  pthread_mutex_lock(&lock);
  block_t *blocks = kept;
  kept = NULL;
  kept_bytes = kept_blocks = 0;
  pthread_mutex_unlock(&lock);
  free_all(blocks);
  return blocks != NULL;
}

CUresult tcrt_cuda_allocate(CUdeviceptr *pointer, uint64_t bytes) {
  CUresult error = tcrt_cuda.cuMemAlloc(pointer, bytes);
  if (error == CUDA_ERROR_OUT_OF_MEMORY && tcrt_cuda_trim())
    error = tcrt_cuda.cuMemAlloc(pointer, bytes);
  return error;
}

tcrt_status_t tcrt_gpu_allocate(int32_t gpu, uint64_t bytes, void *stream, void **data) {
  TCRT_NEEDS(data);
  *data = NULL;
  char name[32], what[64];
  snprintf(what, sizeof what, "an array (%llu bytes)", (unsigned long long)bytes);
  const uint64_t size = rounded(bytes);
  if (!size)
    return tcrt_cuda_fail(name_of(gpu, name), what, CUDA_ERROR_OUT_OF_MEMORY);
  *data = find_kept(gpu, size, stream_of(stream));
  if (*data)
    return TCRT_OK;
  CUdevice device;
  tcrt_status_t status = enter(gpu, &device);
  if (status != TCRT_OK)
    return status;
  CUdeviceptr pointer = 0;
  CUresult error = tcrt_cuda_allocate(&pointer, size);
  leave(device, error == CUDA_SUCCESS);
  if (error == CUDA_SUCCESS)
    *data = (void *)(uintptr_t)pointer;
  return result_of(gpu, what, error);
}

void tcrt_gpu_free(int32_t gpu, void *data, uint64_t bytes, void *stream) {
  if (!data || is_forked())
    return;
  const uint64_t size = rounded(bytes);
  block_t *block = stream == TCRT_ANY_STREAM || size > MOST_KEPT_BYTES ? NULL : malloc(sizeof *block);
  if (!block) {
    give_to_driver(gpu, data);
    return;
  }
  *block = (block_t){NULL, data, size, stream_of(stream), gpu};
  block_t *too_many = NULL;
  pthread_mutex_lock(&lock);
  block->next = kept;
  kept = block;
  kept_bytes += size;
  ++kept_blocks;
  while (kept_bytes > MOST_KEPT_BYTES || kept_blocks > MOST_KEPT_BLOCKS) {
    block_t **last = &kept;
    while ((*last)->next)
      last = &(*last)->next;
    block_t *oldest = take(last);
    oldest->next = too_many;
    too_many = oldest;
  }
  pthread_mutex_unlock(&lock);
  free_all(too_many);
}

void tcrt_gpu_trim(void) { tcrt_cuda_trim(); }

/* ---- copies and order ---- */

tcrt_status_t tcrt_gpu_copy(int32_t gpu, void *dst, const void *src, uint64_t bytes, uint32_t direction, void *stream) {
  if (bytes == 0)
    return TCRT_OK;
  if (!dst || !src || bytes > PTRDIFF_MAX || direction > TCRT_COPY_DEVICE_TO_DEVICE)
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "error: a copy of %llu bytes from %p to %p in direction %u; give both addresses and one of "
                     "TCRT_COPY_*",
                     (unsigned long long)bytes, src, dst, direction);
  CUdevice device;
  tcrt_status_t status = enter(gpu, &device);
  if (status != TCRT_OK)
    return status;
  CUdeviceptr device_dst = (CUdeviceptr)(uintptr_t)dst, device_src = (CUdeviceptr)(uintptr_t)src;
  CUresult error = direction == TCRT_COPY_HOST_TO_DEVICE
                       ? tcrt_cuda.cuMemcpyHtoDAsync(device_dst, src, bytes, stream_of(stream))
                   : direction == TCRT_COPY_DEVICE_TO_HOST
                       ? tcrt_cuda.cuMemcpyDtoHAsync(dst, device_src, bytes, stream_of(stream))
                       : tcrt_cuda.cuMemcpyDtoDAsync(device_dst, device_src, bytes, stream_of(stream));
  if (error == CUDA_SUCCESS && direction != TCRT_COPY_DEVICE_TO_DEVICE)
    error = tcrt_cuda.cuStreamSynchronize(stream_of(stream));
  leave(device, 0);
  return result_of(gpu, "a copy", error);
}

tcrt_status_t tcrt_gpu_wait(int32_t gpu, void *stream) {
  CUdevice device;
  tcrt_status_t status = enter(gpu, &device);
  if (status != TCRT_OK)
    return status;
  CUresult error = tcrt_cuda.cuStreamSynchronize(stream_of(stream));
  leave(device, 0);
  return result_of(gpu, "a wait for results", error);
}

tcrt_status_t tcrt_gpu_order(int32_t gpu, void *first, void *then) {
  if (stream_of(first) == stream_of(then))
    return TCRT_OK;
  CUdevice device;
  tcrt_status_t status = enter(gpu, &device);
  if (status != TCRT_OK)
    return status;
  CUevent event = NULL;
  CUresult error = tcrt_cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  if (error == CUDA_SUCCESS) {
    error = tcrt_cuda.cuEventRecord(event, stream_of(first));
    if (error == CUDA_SUCCESS)
      error = tcrt_cuda.cuStreamWaitEvent(stream_of(then), event, 0);
    tcrt_cuda.cuEventDestroy(event); /* the driver keeps it until it is over */
  }
  leave(device, 0);
  return result_of(gpu, "the order of two streams", error);
}

tcrt_status_t tcrt_gpu_find(const void *data, int32_t *gpu) {
  TCRT_NEEDS(gpu);
  *gpu = -1;
  if (is_forked() || tcrt_cuda.problem[0] || tcrt_cuda.has_no_device || !data)
    return TCRT_OK;
  int type = 0, ordinal = -1;
  if (tcrt_cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)data) ==
          CUDA_SUCCESS &&
      type == CU_MEMORYTYPE_DEVICE &&
      tcrt_cuda.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)(uintptr_t)data) ==
          CUDA_SUCCESS)
    *gpu = ordinal;
  return TCRT_OK;
}
