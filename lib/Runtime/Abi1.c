/*
 * Abi1.c - runs code of ABI 1, whose program is one function.
 *
 * Its table of imports has the entries of ABI 2 up to set_cost at the same places, but launch_device takes what
 * cuLaunchKernel does. Its frame is the beginning of today's.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Internal.h"

#include <pthread.h>
#include <string.h>

typedef int32_t (*launch_device_1_fn)(struct tcrt_frame_t *frame, uint32_t id, uint32_t index, const uint32_t grid[3],
                                      const uint32_t block[3], uint32_t dynamic_smem, void **params);

typedef struct program_1_t {
  uint32_t abi_version;
  uint32_t size;
  int32_t (*infer)(tcrt_frame_t *frame);
  int32_t (*run)(tcrt_frame_t *frame);
} program_1_t;

#define IMPORTS_1_SIZE (offsetof(tcrt_imports_t, set_cost) + sizeof(void *))

static _Alignas(tcrt_imports_t) uint8_t imports_1[IMPORTS_1_SIZE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int32_t launch_device(struct tcrt_frame_t *frame, uint32_t id, uint32_t index, const uint32_t grid[3],
                             const uint32_t block[3], uint32_t dynamic_smem, void **params) {
  tcrt_device_launch_t launch = {.id = id,
                                 .kernel = index,
                                 .grid = {grid[0], grid[1], grid[2]},
                                 .block = {block[0], block[1], block[2]},
                                 .cluster = {1, 1, 1},
                                 .dynamic_smem = dynamic_smem};
  return tcrt_launch_device(frame->runtime, &launch, params);
}

static void make_imports(void) {
  const uint32_t head[2] = {1, IMPORTS_1_SIZE};
  const launch_device_1_fn function = launch_device;
  memcpy(imports_1, &tcrt_imports, sizeof imports_1);
  memcpy(imports_1, head, sizeof head);
  memcpy(imports_1 + offsetof(tcrt_imports_t, launch_device), &function, sizeof function);
}

int tcrt_abi_1_load(tcrt_loaded_variant_t *loaded) {
  const program_1_t *(*entry_1)(const void *imports);
  memcpy(&entry_1, &loaded->image.entry, sizeof entry_1);
  pthread_once(&once, make_imports);
  const program_1_t *program = entry_1(imports_1);
  if (!program || program->abi_version != 1 || program->size < sizeof *program || !program->infer || !program->run)
    return 0;
  loaded->abi_1 = (tcrt_routine_t){program->infer, program->run};
  loaded->imports = (const tcrt_imports_t *)imports_1;
  loaded->routines = &loaded->abi_1;
  return 1;
}
