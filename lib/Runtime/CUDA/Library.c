/*
 * Library.c - the NVIDIA driver's library, opened at run time, and what its errors mean.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

tcrt_cuda_t tcrt_cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *tcrt_cuda_error_text(CUresult error) {
  const char *text = NULL;
  if (tcrt_cuda.cuGetErrorString && tcrt_cuda.cuGetErrorString(error, &text) == CUDA_SUCCESS && text)
    return text;
  return "unknown error";
}

static void load(void) {
  tcrt_cuda_t *cuda = &tcrt_cuda;
  cuda->process = getpid();
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(cuda->problem, sizeof cuda->problem, "the NVIDIA driver (libcuda.so.1) is not installed");
    return;
  }
  /* Stays open: a driver does not survive being closed and opened again. */
#define LOOK_UP(name, symbol, parameters)                                                                              \
  {                                                                                                                    \
    void *address = dlsym(library, symbol);                                                                            \
    memcpy(&cuda->name, &address, sizeof address);                                                                     \
  }
#define REQUIRE(name, symbol, parameters)                                                                              \
  LOOK_UP(name, symbol, parameters)                                                                                    \
  if (!cuda->name) {                                                                                                   \
    snprintf(cuda->problem, sizeof cuda->problem,                                                                      \
             "its driver is too old: it has no %s; install a newer one (525 or later)", symbol);                       \
    return;                                                                                                            \
  }
  CUDA_FUNCTIONS(REQUIRE)
  CUDA_NEWER_FUNCTIONS(LOOK_UP)
#undef REQUIRE
#undef LOOK_UP
  cuda->has_graphs = cuda->cuGraphCreate && cuda->cuGraphDestroy && cuda->cuGraphAddKernelNode &&
                     cuda->cuGraphInstantiate && cuda->cuGraphExecDestroy && cuda->cuGraphExecKernelNodeSetParams &&
                     cuda->cuGraphLaunch;
  CUresult error = cuda->cuInit(0);
  cuda->has_no_device = error == CUDA_ERROR_NO_DEVICE;
  if (error != CUDA_SUCCESS && !cuda->has_no_device)
    snprintf(cuda->problem, sizeof cuda->problem, "the NVIDIA driver does not start: %s (CUDA error %d)",
             tcrt_cuda_error_text(error), error);
}

const tcrt_cuda_t *tcrt_cuda_open(void) {
  pthread_once(&once, load);
  return &tcrt_cuda;
}

/* Errors after which the driver answers every call of the process with the same: those of kernels (700 an illegal
 * address, 702 a timeout, 710 an assertion, 714 to 719 illegal stacks, instructions, addresses and launches) and of the
 * hardware (214 and 220 errors of memory and links, 226 an error that was contained). */
static int is_lost(CUresult error) {
  return error == 214 || error == 220 || error == 226 || error == 700 || error == 702 || error == 710 ||
         (error >= 714 && error <= 719);
}

tcrt_status_t tcrt_cuda_fail(const char *name, const char *what, CUresult error) {
  if (error == CUDA_ERROR_OUT_OF_MEMORY)
    return tcrt_fail(
        TCRT_ERROR_MACHINE,
        "%s: error: the GPU has no memory left for %s; use smaller inputs, or free what other contexts and "
        "programs hold",
        name, what);
  if (is_lost(error))
    return tcrt_fail(
        TCRT_ERROR_MACHINE,
        "%s: error: the GPU is lost to this process, found at %s: %s (CUDA error %d); start a new process, "
        "and report this if it comes again",
        name, what, tcrt_cuda_error_text(error), error);
  return tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: the GPU failed at %s: %s (CUDA error %d); please report this", name,
                   what, tcrt_cuda_error_text(error), error);
}
