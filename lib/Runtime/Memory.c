/*
 * Memory.c - memory of a context: from its allocator or the system, counted against its limit.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Context.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE (UINT64_C(2) << 20)

void *tcrt_host_allocate(tcrt_context_t *context, uint64_t bytes) {
  if (bytes == 0)
    bytes = 1;
  if (bytes > (uint64_t)INT64_MAX - HUGE_PAGE)
    return NULL;
  if (context->has_allocator) {
    void *data = context->allocator.allocate(context->allocator.user, bytes, TCRT_DATA_ALIGN);
    if ((uintptr_t)data % TCRT_DATA_ALIGN == 0)
      return data;
    context->allocator.release(context->allocator.user, data, bytes);
    context->has_misaligned = 1;
    return NULL;
  }
  if (bytes < HUGE_PAGE) {
    void *data = NULL;
    return posix_memalign(&data, TCRT_DATA_ALIGN, bytes) == 0 ? data : NULL;
  }
  /* Large blocks start at a huge page, so that the kernel can back them with huge pages: fewer TLB misses. */
  uint64_t length = (bytes + 4095) & ~UINT64_C(4095);
  uint8_t *start = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED)
    return NULL;
  uint64_t head = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
  if (head)
    munmap(start, head);
  if (HUGE_PAGE - head)
    munmap(start + head + length, HUGE_PAGE - head);
  madvise(start + head, length, MADV_HUGEPAGE);
  return start + head;
}

void tcrt_host_release(tcrt_context_t *context, void *data, uint64_t bytes) {
  if (!data)
    return;
  if (bytes == 0)
    bytes = 1;
  if (context->has_allocator)
    context->allocator.release(context->allocator.user, data, bytes);
  else if (bytes < HUGE_PAGE)
    free(data);
  else
    munmap(data, (bytes + 4095) & ~UINT64_C(4095));
}

int tcrt_context_charge(tcrt_context_t *context, uint64_t bytes, const char *what) {
  uint64_t total;
  if (!tcrt_add(context->memory_bytes, bytes, &total) || (context->memory_limit && total > context->memory_limit)) {
    tcrt_fail(TCRT_ERROR_MACHINE,
              "%s: error: the context's memory limit of %llu bytes is exceeded: it holds %llu and %s needs %llu; raise "
              "the limit "
              "or use smaller inputs",
              tcrt_context_file(context), (unsigned long long)context->memory_limit,
              (unsigned long long)context->memory_bytes, what, (unsigned long long)bytes);
    return 0;
  }
  context->memory_bytes = total;
  if (total > context->peak_bytes)
    context->peak_bytes = total;
  return 1;
}

void tcrt_context_discharge(tcrt_context_t *context, uint64_t bytes) { context->memory_bytes -= bytes; }

tcrt_status_t tcrt_context_no_memory(const tcrt_context_t *context, const char *what, uint64_t bytes) {
  if (context->has_misaligned)
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the allocator gave memory for %s (%llu bytes) at an address that is no multiple of %u",
                     tcrt_context_file(context), what, (unsigned long long)bytes, TCRT_DATA_ALIGN);
  return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for %s (%llu bytes)", tcrt_context_file(context),
                   what, (unsigned long long)bytes);
}

tcrt_status_t tcrt_context_grow(tcrt_context_t *context, void **data, uint64_t *has, uint64_t bytes, const char *what) {
  if (*data && *has >= bytes && !(context->memory_limit && *has != bytes))
    return TCRT_OK;
  if (*data) {
    context->driver->release(context, *data, *has);
    tcrt_context_discharge(context, *has);
    *data = NULL;
    *has = 0;
  }
  if (!tcrt_context_charge(context, bytes, what))
    return TCRT_ERROR_MACHINE;
  *data = context->driver->allocate(context, bytes);
  if (!*data) {
    tcrt_context_discharge(context, bytes);
    return tcrt_context_no_memory(context, what, bytes);
  }
  *has = bytes;
  return TCRT_OK;
}

void tcrt_context_release_blocks(tcrt_context_t *context) {
  while (context->blocks) {
    tcrt_block_t *block = context->blocks;
    context->blocks = block->next;
    context->driver->release(context, block->data, block->bytes);
    tcrt_context_discharge(context, block->bytes);
    free(block);
  }
}
