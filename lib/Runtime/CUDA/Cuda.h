/*
 * Cuda.h - what the files of the driver for GPU variants share: the CUDA driver API (Library.c), weights on their way
 * (Upload.c), launches that are kept and enqueued as graphs (Graphs.c), the driver itself (Driver.c), memory for
 * callers (Buffers.c).
 *
 * The few declarations of that API that we need are written out here (CUDA Driver API reference), so that libtcrt
 * builds and links without CUDA. libcuda.so.1 is opened at run time.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_CUDA_CUDA_H
#define TCRT_CUDA_CUDA_H

#include "../Internal.h"

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the driver API ---- */

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NOT_FOUND = 500,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_MEMORYTYPE_DEVICE = 2
};

/* Entries of `extra`. */
#define CU_LAUNCH_PARAM_END ((void *)(uintptr_t)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)(uintptr_t)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)(uintptr_t)2)

/* What cuLaunchKernelEx takes (since CUDA 11.8). */
typedef union CUlaunchAttributeValue {
  char size[64];
  unsigned cluster[3];
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute {
  int id;
  int pad;
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
  unsigned grid[3], block[3];
  unsigned smem;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attribute_count;
} CUlaunchConfig;

/* A kernel node of a graph. Older drivers read what stands before `kernel`. */
typedef struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction function;
  unsigned grid[3], block[3];
  unsigned smem;
  void **params;
  void **extra;
  void *kernel;      /* NULL: `function` counts */
  CUcontext context; /* NULL: the current one */
} CUDA_KERNEL_NODE_PARAMS;

#define CUDA_FUNCTIONS(X)                                                                                              \
  X(cuInit, "cuInit", (unsigned flags))                                                                                \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))                                         \
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
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **pointer, size_t bytes, unsigned flags))                                  \
  X(cuMemFreeHost, "cuMemFreeHost", (void *pointer))                                                                   \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))      \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *dst, CUdeviceptr src, size_t bytes, CUstream stream))            \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))      \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream))         \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                                             \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                          \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", (void *data, int attribute, CUdeviceptr pointer))                  \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags))                          \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                     \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                                 \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                                              \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                                  \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                                                         \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, CUevent start, CUevent end))                                 \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                                  \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned smem, CUstream stream, void **params, void **extra))

/* What an older driver may lack; NULL then. */
#define CUDA_NEWER_FUNCTIONS(X)                                                                                        \
  X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                                              \
    (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))                                  \
  X(cuGraphCreate, "cuGraphCreate", (CUgraph * graph, unsigned flags))                                                 \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph))                                                                 \
  X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2",                                                                   \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t after_count,                                  \
     const CUDA_KERNEL_NODE_PARAMS *params))                                                                           \
  X(cuGraphKernelNodeSetAttribute, "cuGraphKernelNodeSetAttribute",                                                    \
    (CUgraphNode node, int attribute, const CUlaunchAttributeValue *value))                                            \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec * exec, CUgraph graph, unsigned long long flags))  \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec exec))                                                      \
  X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2",                                               \
    (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))                                       \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))

typedef struct tcrt_cuda_t {
#define DECLARE(name, symbol, parameters) CUresult(*name) parameters;
  CUDA_FUNCTIONS(DECLARE)
  CUDA_NEWER_FUNCTIONS(DECLARE)
#undef DECLARE
  int has_graphs;    /* all that graphs need */
  int has_no_device; /* the driver is there, and sees no GPU */
  pid_t process;     /* that opened it */
  char problem[256]; /* why it cannot be used; empty: it can */
} tcrt_cuda_t;

/* Opens the driver, once. */
const tcrt_cuda_t *tcrt_cuda_open(void);
/* The same, after that. */
extern tcrt_cuda_t tcrt_cuda;

const char *tcrt_cuda_error_text(CUresult error);
/* Sets the error for a call that failed at `what` and returns its status. Memory and a lost context are the machine's
 * problem, anything else ours. */
tcrt_status_t tcrt_cuda_fail(const char *name, const char *what, CUresult error);

/* Copies from the host, with the CUDA context current, and waits for the end. */
CUresult tcrt_cuda_upload(CUcontext context, CUdeviceptr dst, const void *src, uint64_t bytes);

/* cuMemAlloc, with the CUDA context current; where memory runs out, after what Buffers.c keeps is freed. */
CUresult tcrt_cuda_allocate(CUdeviceptr *pointer, uint64_t bytes);
/* Frees that. False: there was nothing. */
int tcrt_cuda_trim(void);

/* ---- launches that are kept ---- */

/* A launch. No padding: launches are compared byte by byte. */
typedef struct tcrt_cuda_launch_t {
  CUfunction function;
  uint32_t kernel; /* number among the variant's device kernels */
  uint32_t grid[3], block[3], cluster[3];
  uint32_t smem;
  uint32_t parameter_size;
  uint64_t parameters_at; /* bytes, in what holds the parameters of the list */
} tcrt_cuda_launch_t;

/* Enqueues one. `parameters`: its block; `addresses`: those of the parameters instead, or NULL. */
CUresult tcrt_cuda_launch(const tcrt_cuda_launch_t *launch, const void *parameters, void **addresses, CUstream stream);

/* The list of launches of a context that are not enqueued yet, and the graphs that it made of earlier lists. Calls need
 * the CUDA context to be current. */
typedef struct tcrt_cuda_graphs_t tcrt_cuda_graphs_t;

/* `mode`: TCRT_GRAPHS_ON or _AT_ONCE. NULL: no memory. */
tcrt_cuda_graphs_t *tcrt_cuda_graphs_create(int mode);
/* Nothing that it enqueued may be under way. */
void tcrt_cuda_graphs_destroy(tcrt_cuda_graphs_t *graphs);
/* Keeps a launch with a copy of its parameters. False: it cannot; flush, and launch it. */
int tcrt_cuda_graphs_keep(tcrt_cuda_graphs_t *graphs, const tcrt_cuda_launch_t *launch, const void *parameters);
/* Enqueues what was kept, in order, by a graph or one by one, and before it `start`, if it is not NULL. On failure
 * *failed is the launch that the driver did not take; those after it are dropped. */
CUresult tcrt_cuda_graphs_flush(tcrt_cuda_graphs_t *graphs, CUstream stream, CUevent start, tcrt_cuda_launch_t *failed);
/* Whether nothing is kept. */
int tcrt_cuda_graphs_is_empty(const tcrt_cuda_graphs_t *graphs);
/* Frees the graphs that were made, for their memory; waits for the stream. False: there were none. */
int tcrt_cuda_graphs_trim(tcrt_cuda_graphs_t *graphs, CUstream stream);
/* Why a graph could not be made since the last call, or NULL. */
const char *tcrt_cuda_graphs_problem(tcrt_cuda_graphs_t *graphs);
void tcrt_cuda_graphs_stats(const tcrt_cuda_graphs_t *graphs, tcrt_graph_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_CUDA_CUDA_H */
