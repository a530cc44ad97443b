/*
 * Upload.c - weights from the host's memory to the device's.
 *
 * From memory that is not pinned, as a mapped file is, the driver copies with one thread into buffers of its own, at a
 * fraction of what the bus carries. So several threads copy pieces into pinned buffers, two each, and the device takes
 * one while the other is filled.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* A piece is long enough that starting a copy costs nothing beside it, and stays in a core's caches. */
#define PIECE (UINT64_C(1) << 20)
/* Fewer bytes for a thread do not pay for making it and its buffers. */
#define LEAST_OF_THREAD (UINT64_C(16) << 20)
/* A core copies about 10 GB/s, the bus takes 50. */
#define MOST_THREADS 6u

typedef struct upload_t {
  CUcontext context;
  CUdeviceptr dst;
  const uint8_t *src;
  uint64_t bytes;
  _Atomic uint64_t next; /* offset of the first piece that nobody took */
  _Atomic int error;     /* CUresult; the first one */
} upload_t;

static void set_error(upload_t *upload, CUresult error) {
  int none = CUDA_SUCCESS;
  if (error != CUDA_SUCCESS)
    atomic_compare_exchange_strong(&upload->error, &none, error);
}

/* Copies pieces until none is left. Without buffers of its own a thread leaves them to the others. */
static void *copy_pieces(void *data) {
  upload_t *upload = data;
  CUcontext previous;
  CUstream stream = NULL;
  CUevent taken[2] = {NULL, NULL};
  void *pinned = NULL;
  if (tcrt_cuda.cuCtxPushCurrent(upload->context) != CUDA_SUCCESS)
    return NULL;
  int can = tcrt_cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
            tcrt_cuda.cuEventCreate(&taken[0], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
            tcrt_cuda.cuEventCreate(&taken[1], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
            tcrt_cuda.cuMemHostAlloc(&pinned, 2 * PIECE, 0) == CUDA_SUCCESS;
  CUresult error = CUDA_SUCCESS;
  for (unsigned turn = 0; can && error == CUDA_SUCCESS && atomic_load(&upload->error) == CUDA_SUCCESS; ++turn) {
    uint64_t at = atomic_fetch_add(&upload->next, PIECE);
    if (at >= upload->bytes)
      break;
    uint64_t bytes = upload->bytes - at < PIECE ? upload->bytes - at : PIECE;
    uint8_t *buffer = (uint8_t *)pinned + turn % 2 * PIECE;
    if (turn >= 2)
      error = tcrt_cuda.cuEventSynchronize(taken[turn % 2]);
    memcpy(buffer, upload->src + at, bytes);
    if (error == CUDA_SUCCESS)
      error = tcrt_cuda.cuMemcpyHtoDAsync(upload->dst + at, buffer, bytes, stream);
    if (error == CUDA_SUCCESS)
      error = tcrt_cuda.cuEventRecord(taken[turn % 2], stream);
  }
  if (stream && error == CUDA_SUCCESS)
    error = tcrt_cuda.cuStreamSynchronize(stream);
  set_error(upload, error);
  if (pinned)
    tcrt_cuda.cuMemFreeHost(pinned);
  for (int i = 0; i < 2; ++i)
    if (taken[i])
      tcrt_cuda.cuEventDestroy(taken[i]);
  if (stream)
    tcrt_cuda.cuStreamDestroy(stream);
  tcrt_cuda.cuCtxPopCurrent(&previous);
  return NULL;
}

CUresult tcrt_cuda_upload(CUcontext context, CUdeviceptr dst, const void *src, uint64_t bytes) {
  upload_t upload = {.context = context, .dst = dst, .src = src, .bytes = bytes};
  uint64_t wanted = bytes / LEAST_OF_THREAD;
  uint32_t cores = tcrt_usable_cores(), threads = wanted < MOST_THREADS ? (uint32_t)wanted : MOST_THREADS;
  threads = threads < cores ? threads : cores;
  if (threads > 1) {
    pthread_t helpers[MOST_THREADS];
    uint32_t made = 0;
    while (made < threads - 1 && pthread_create(&helpers[made], NULL, copy_pieces, &upload) == 0)
      ++made;
    copy_pieces(&upload);
    for (uint32_t i = 0; i < made; ++i)
      pthread_join(helpers[i], NULL);
    CUresult error = atomic_load(&upload.error);
    /* Else no thread had buffers. */
    if (error != CUDA_SUCCESS || atomic_load(&upload.next) >= bytes)
      return error;
  }
  /* In a stream of its own, as cuMemcpyHtoD returns before the device has all. */
  CUstream stream;
  CUresult error = tcrt_cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (error != CUDA_SUCCESS)
    return error;
  error = tcrt_cuda.cuMemcpyHtoDAsync(dst, src, bytes, stream);
  CUresult ended = tcrt_cuda.cuStreamSynchronize(stream);
  tcrt_cuda.cuStreamDestroy(stream);
  return error != CUDA_SUCCESS ? error : ended;
}
