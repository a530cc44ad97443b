#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the C source of tc_compiler._tcrt, the binding of libtcrt.

usage: make_binding.py INCLUDE OUT.c [--cc cc]

The declarations are those of tcrt.h in the folder INCLUDE, as the preprocessor leaves them. The module uses the stable ABI of Python 3.11, so that
one file serves all later versions. Needs cffi.
"""
import argparse
import re
import subprocess

import cffi

CONSTANTS = ["TCRT_MAX_RANK", "TCRT_ALL_STATES"]
# A run is one call, so that the interpreter's lock is given up once.
RUN = "tcrt_status_t tc_run(tcrt_context_t *context, uint32_t input_count, const tcrt_tensor_t *inputs, uint32_t output_count, tcrt_tensor_t *outputs)"
# The same with the data of inputs and then outputs by their addresses; 0: of an output, none is bound. What does not wait is only enqueued on a GPU.
RUN_AT = "tcrt_status_t tc_run_at(tcrt_context_t *context, int waits, uint32_t input_count, tcrt_tensor_t *inputs, uint32_t output_count, tcrt_tensor_t *outputs, const uintptr_t *addresses)"
# A hash of the addresses of some tensors and of samples of their bytes, on the host: what was written past PyTorch's counters of versions is seen in most cases.
MARK = "uint64_t tc_mark(const uintptr_t *addresses, uint32_t count, const tc_static_t *tensors)"
# The same with arrays on a GPU: what was enqueued in `stream` comes before the run and, unless it waits, the run before what comes later in `stream`.
RUN_ON = "tcrt_status_t tc_run_on(tcrt_context_t *context, int32_t gpu, void *stream, int waits, uint32_t input_count, const tcrt_tensor_t *inputs, uint32_t output_count, tcrt_tensor_t *outputs)"
# Memory of a GPU that arrays of Python and DLPack's tensors share, freed by the last of them, whichever thread that is on: it needs no interpreter.
# DLPack's structures, of versions 0 and 1.
TYPES = """
typedef struct tc_static_t { uint32_t input; uint64_t bytes; } tc_static_t;
typedef struct tc_memory_t { void *data; uint64_t bytes; void *stream; int32_t gpu; int is_shared; int64_t references; } tc_memory_t;
typedef struct tc_dltensor_t {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tc_dltensor_t;
typedef struct tc_dlpack_t { tc_dltensor_t tensor; void *manager; void (*deleter)(struct tc_dlpack_t *self); } tc_dlpack_t;
typedef struct tc_dlpack_versioned_t {
  uint32_t major, minor;
  void *manager;
  void (*deleter)(struct tc_dlpack_versioned_t *self);
  uint64_t flags;
  tc_dltensor_t tensor;
} tc_dlpack_versioned_t;
"""
FUNCTIONS = """
tcrt_status_t tc_memory_create(int32_t gpu, uint64_t bytes, void *stream, tc_memory_t **memory);
void tc_memory_release(tc_memory_t *memory);
void tc_memory_share(tc_memory_t *memory);
void *tc_memory_export(tc_memory_t *memory, int is_versioned, int32_t gpu, int code, int bits, int32_t rank, const int64_t *shape);
void *tc_capsule_destructor(void);
void tc_team_of_openmp(uintptr_t parallel, uintptr_t number, tcrt_team_t *team);
"""
SOURCE = """
#include "tcrt/tcrt.h"

#include <string.h>
%s
/* Binds all inputs but those without dtype, and the outputs that have data; runs, to the end or not; says what the
 * outputs are. */
static tcrt_status_t run(tcrt_context_t *context, int waits, uint32_t input_count, const tcrt_tensor_t *inputs, uint32_t output_count, tcrt_tensor_t *outputs) {
  for (uint32_t i = 0; i < input_count; ++i) {
    const tcrt_status_t status = tcrt_context_set_input(context, i, inputs[i].dtype ? &inputs[i] : NULL);
    if (status != TCRT_OK)
      return status;
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    const tcrt_status_t status = tcrt_context_set_output(context, i, outputs[i].data ? &outputs[i] : NULL);
    if (status != TCRT_OK)
      return status;
  }
  tcrt_status_t status = waits ? tcrt_context_run(context) : tcrt_context_run_async(context);
  for (uint32_t i = 0; i < output_count && status == TCRT_OK; ++i)
    status = tcrt_context_get_output(context, i, &outputs[i]);
  return status;
}

static %s { return run(context, 1, input_count, inputs, output_count, outputs); }

static %s {
  for (uint32_t i = 0; i < input_count; ++i) {
    inputs[i].data = (void *)addresses[i];
    const tcrt_status_t status = tcrt_context_set_input(context, i, &inputs[i]);
    if (status != TCRT_OK)
      return status;
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    outputs[i].data = (void *)addresses[input_count + i];
    const tcrt_status_t status = tcrt_context_set_output(context, i, outputs[i].data ? &outputs[i] : NULL);
    if (status != TCRT_OK)
      return status;
  }
  return waits ? tcrt_context_run(context) : tcrt_context_run_async(context);
}

static %s {
  enum { SAMPLES = 8 };
  uint64_t mark = 14695981039346656037u;
  for (uint32_t i = 0; i < count; ++i) {
    const uintptr_t address = addresses[tensors[i].input];
    const uint64_t bytes = tensors[i].bytes, size = bytes < sizeof(uint64_t) ? bytes : sizeof(uint64_t);
    mark = (mark ^ address) * 1099511628211u;
    const int samples = bytes <= sizeof(uint64_t) ? bytes != 0 : SAMPLES;
    for (int s = 0; s < samples; ++s) {
      uint64_t word = 0;
      memcpy(&word, (const char *)address + (samples == 1 ? 0 : (bytes - size) / (SAMPLES - 1) * s), size);
      mark = (mark ^ word) * 1099511628211u;
      mark ^= mark >> 29;
    }
  }
  return mark;
}

static %s {
  void *own = tcrt_context_stream(context);
  if (own && own != stream) {
    const tcrt_status_t status = tcrt_gpu_order(gpu, stream, own);
    if (status != TCRT_OK)
      return status;
  }
  const tcrt_status_t status = run(context, waits, input_count, inputs, output_count, outputs);
  return status == TCRT_OK && !waits && own && own != stream ? tcrt_gpu_order(gpu, own, stream) : status;
}

/* `stream`: in which it is used first, and alone until somebody shares it with others. */
static tcrt_status_t tc_memory_create(int32_t gpu, uint64_t bytes, void *stream, tc_memory_t **memory) {
  tc_memory_t made = {NULL, bytes, stream, gpu, 0, 1};
  tcrt_status_t status = tcrt_gpu_allocate(gpu, bytes, stream, &made.data);
  *memory = status == TCRT_OK ? malloc(sizeof made) : NULL;
  if (*memory)
    **memory = made;
  else if (status == TCRT_OK) {
    tcrt_gpu_free(gpu, made.data, bytes, stream);
    return TCRT_ERROR_MACHINE;
  }
  return status;
}

static void tc_memory_release(tc_memory_t *memory) {
  if (!memory || __atomic_sub_fetch(&memory->references, 1, __ATOMIC_ACQ_REL))
    return;
  tcrt_gpu_free(memory->gpu, memory->data, memory->bytes, memory->is_shared ? TCRT_ANY_STREAM : memory->stream);
  free(memory);
}

static void tc_memory_share(tc_memory_t *memory) { __atomic_store_n(&memory->is_shared, 1, __ATOMIC_RELEASE); }

static void tc_delete(tc_dlpack_t *self) {
  tc_memory_release(self->manager);
  free(self);
}

static void tc_delete_versioned(tc_dlpack_versioned_t *self) {
  tc_memory_release(self->manager);
  free(self);
}

/* A DLPack tensor with its shape and strides behind it, which its deleter frees; NULL: no memory. */
static void *tc_memory_export(tc_memory_t *memory, int is_versioned, int32_t gpu, int code, int bits, int32_t rank, const int64_t *shape) {
  const size_t size = is_versioned ? sizeof(tc_dlpack_versioned_t) : sizeof(tc_dlpack_t);
  char *made = calloc(1, size + 2 * ((size_t)rank + 1) * sizeof(int64_t));
  if (!made)
    return NULL;
  if (memory)
    __atomic_add_fetch(&memory->references, 1, __ATOMIC_RELAXED);
  tc_dltensor_t *tensor = &((tc_dlpack_t *)made)->tensor;
  if (is_versioned) {
    tc_dlpack_versioned_t *versioned = (tc_dlpack_versioned_t *)made;
    *versioned = (tc_dlpack_versioned_t){.major = 1, .minor = 1, .manager = memory, .deleter = tc_delete_versioned};
    tensor = &versioned->tensor;
  } else {
    ((tc_dlpack_t *)made)->manager = memory;
    ((tc_dlpack_t *)made)->deleter = tc_delete;
  }
  int64_t *sizes = (int64_t *)(made + size), stride = 1;
  for (int32_t i = rank; i-- > 0; stride *= shape[i]) {
    sizes[i] = shape[i];
    sizes[rank + i] = stride;
  }
  *tensor = (tc_dltensor_t){memory ? memory->data : NULL, 2, gpu, rank, (uint8_t)code, (uint8_t)bits, 1, sizes, sizes + rank, 0};
  return made;
}

/* Of a capsule that nobody took, which would have renamed it. */
static void tc_destroy_capsule(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    tc_dlpack_t *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    tc_dlpack_versioned_t *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    managed->deleter(managed);
  }
}

static void *tc_capsule_destructor(void) { return (void *)(uintptr_t)tc_destroy_capsule; }

/* The OpenMP of the process: what compilers call for a parallel region, and which of its threads calls. */
static struct {
  void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
  int (*number)(void);
} openmp;

typedef struct region_t {
  void (*member)(void *data, uint32_t number);
  void *data;
} region_t;

static void run_region(void *data) {
  const region_t *region = data;
  region->member(region->data, (uint32_t)openmp.number());
}

static void run_in_region(void *user, uint32_t members, void (*member)(void *data, uint32_t number), void *data) {
  region_t region = {member, data};
  (void)user;
  openmp.parallel(run_region, &region, members, 0);
}

/* `parallel`, `number`: addresses of GOMP_parallel and omp_get_thread_num. */
static void tc_team_of_openmp(uintptr_t parallel, uintptr_t number, tcrt_team_t *team) {
  openmp.parallel = (void (*)(void (*)(void *), void *, unsigned, unsigned))parallel;
  openmp.number = (int (*)(void))number;
  *team = (tcrt_team_t){NULL, run_in_region};
}
""" % (TYPES, RUN, RUN_AT, MARK, RUN_ON)


def declarations(include, cc):
    """What tcrt.h declares, without the declarations of system headers and the records of the file format."""
    text = subprocess.run([cc, "-E", "-D__attribute__(x)=", f"-I{include}", f"{include}/tcrt/tcrt.h"], check=True, capture_output=True, text=True).stdout
    kept, header = [], ""
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            header = marker[1].rpartition("/")[2]
        elif header == "tcrt.h" or header == "artifact_abi.h" and not line.lstrip().startswith("#"):
            kept.append((header, line))
    records = "\n".join(line for name, line in kept if name == "artifact_abi.h")
    enums = re.findall(r"(?:typedef )?enum \w*\s*\{[^}]*\}\s*\w*;", records)
    return "\n".join(enums + [line for name, line in kept if name == "tcrt.h"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    ffi = cffi.FFI()
    ffi.cdef("\n".join(f"#define {name} ..." for name in CONSTANTS))
    ffi.cdef(declarations(options.include, options.cc))
    ffi.cdef(TYPES + FUNCTIONS + ";".join((RUN, RUN_AT, MARK, RUN_ON, "")))
    ffi.set_source("tc_compiler._tcrt", SOURCE, py_limited_api=True)
    ffi.emit_c_code(options.out)


if __name__ == "__main__":
    main()
