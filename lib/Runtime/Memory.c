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
  if (!*data && context->idle_blocks.first) {
    tcrt_context_free_blocks(context);
    *data = context->driver->allocate(context, bytes);
  }
  if (!*data) {
    tcrt_context_discharge(context, bytes);
    return context->driver->no_memory(context, what, bytes);
  }
  *has = bytes;
  return TCRT_OK;
}

/* ---- values whose size depends on data ----
 *
 * A run asks the same sizes again as the run before, or about the same, and the kernel takes long to give memory: where
 * nobody limits it, blocks are kept, of sizes in steps of an eighth. Blocks that are in use and those that are idle are
 * together never more than the most that was in use at a time. */

/* Smaller blocks are the C library's. */
#define LEAST_KEPT UINT64_C(65536)

static int keeps_blocks(const tcrt_context_t *context) { return !context->memory_limit && !context->has_allocator; }

static void add_block(tcrt_blocks_t *blocks, tcrt_block_t *block) {
  block->previous = NULL;
  block->next = blocks->first;
  *(blocks->first ? &blocks->first->previous : &blocks->last) = block;
  blocks->first = block;
  blocks->bytes += block->bytes;
}

static void remove_block(tcrt_blocks_t *blocks, tcrt_block_t *block) {
  *(block->previous ? &block->previous->next : &blocks->first) = block->next;
  *(block->next ? &block->next->previous : &blocks->last) = block->previous;
  blocks->bytes -= block->bytes;
}

static void free_block(tcrt_context_t *context, tcrt_block_t *block) {
  context->driver->release(context, block->data, block->bytes);
  tcrt_context_discharge(context, block->bytes);
  free(block);
}

/* Frees idle blocks, the oldest first, until at most `most` bytes of them are left. */
static void free_idle(tcrt_context_t *context, uint64_t most) {
  while (context->idle_blocks.last && context->idle_blocks.bytes > most) {
    tcrt_block_t *block = context->idle_blocks.last;
    remove_block(&context->idle_blocks, block);
    free_block(context, block);
  }
}

static tcrt_block_t *make_block(tcrt_context_t *context, uint64_t bytes) {
  tcrt_block_t *block = malloc(sizeof *block);
  if (!block) {
    tcrt_context_no_memory(context, "a value", bytes);
    return NULL;
  }
  if (tcrt_context_charge(context, bytes, "a value")) {
    block->bytes = bytes;
    block->data = context->driver->allocate(context, bytes);
    if (!block->data && context->idle_blocks.first) {
      free_idle(context, 0);
      block->data = context->driver->allocate(context, bytes);
    }
    if (block->data)
      return block;
    tcrt_context_discharge(context, bytes);
    context->driver->no_memory(context, "a value", bytes);
  }
  free(block);
  return NULL;
}

void *tcrt_context_allocate_block(tcrt_context_t *context, uint64_t bytes) {
  tcrt_block_t *block = NULL;
  if (keeps_blocks(context) && bytes >= LEAST_KEPT && bytes <= INT64_MAX / 2) {
    uint64_t step = LEAST_KEPT / 8;
    while (step <= bytes / 16)
      step *= 2;
    bytes = (bytes + step - 1) / step * step;
    block = context->idle_blocks.first;
    while (block && block->bytes != bytes)
      block = block->next;
    if (block)
      remove_block(&context->idle_blocks, block);
    else if (context->blocks.bytes + bytes >= context->most_block_bytes)
      free_idle(context, 0);
    else
      free_idle(context, context->most_block_bytes - context->blocks.bytes - bytes);
  }
  if (!block && !(block = make_block(context, bytes)))
    return NULL;
  add_block(&context->blocks, block);
  if (context->blocks.bytes > context->most_block_bytes)
    context->most_block_bytes = context->blocks.bytes;
  return block->data;
}

static void end_block(tcrt_context_t *context, tcrt_block_t *block) {
  remove_block(&context->blocks, block);
  if (keeps_blocks(context) && block->bytes >= LEAST_KEPT)
    add_block(&context->idle_blocks, block);
  else
    free_block(context, block);
}

void tcrt_context_release_block(tcrt_context_t *context, void *data) {
  for (tcrt_block_t *block = context->blocks.first; data && block; block = block->next)
    if (block->data == data) {
      end_block(context, block);
      return;
    }
}

void tcrt_context_release_blocks(tcrt_context_t *context) {
  while (context->blocks.first)
    end_block(context, context->blocks.first);
}

void tcrt_context_free_blocks(tcrt_context_t *context) { free_idle(context, 0); }
