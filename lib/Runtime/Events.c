/*
 * Events.c - what a run tells the callback of its context (tcrt_event_t).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Internal.h"

#include <string.h>

static void emit(const tcrt_context_t *context, const tcrt_event_t *event) {
  context->event(context->event_user, event);
}

void tcrt_event_span(const tcrt_context_t *context, uint32_t kind, const char *name, uint64_t begin_ns) {
  emit(context, &(tcrt_event_t){.kind = kind,
                                .kernel = UINT32_MAX,
                                .name = name,
                                .nodes = "",
                                .begin_ns = begin_ns,
                                .end_ns = tcrt_now_ns()});
}

void tcrt_event_kernel(const tcrt_context_t *context, uint32_t id, uint32_t device, uint64_t begin_ns,
                       uint64_t end_ns) {
  emit(context, &(tcrt_event_t){.kind = TCRT_EVENT_KERNEL,
                                .device = device,
                                .kernel = id,
                                .name = context->model->kernel_names[id],
                                .nodes = context->model->kernel_nodes[id],
                                .begin_ns = begin_ns,
                                .end_ns = end_ns,
                                .flops = context->costs[id].flops,
                                .bytes = context->costs[id].bytes});
}

void tcrt_event_tasks(const tcrt_context_t *context, uint32_t id, int64_t worker, uint64_t begin_ns, int64_t first,
                      int64_t count) {
  if (id >= context->model->container.signature->kernel_count)
    return;
  emit(context, &(tcrt_event_t){.kind = TCRT_EVENT_TASKS,
                                .worker = (uint32_t)worker,
                                .kernel = id,
                                .name = context->model->kernel_names[id],
                                .nodes = context->model->kernel_nodes[id],
                                .begin_ns = begin_ns,
                                .end_ns = tcrt_now_ns(),
                                .first_task = first,
                                .task_count = count});
}

/* Puts a name that is not terminated into `text`, cut before a character that does not fit. */
static const char *terminate(char *text, size_t size, const char *name, uint32_t length) {
  size_t count = length;
  if (count >= size)
    for (count = size - 1; count && ((unsigned char)name[count] & 0xc0) == 0x80;)
      --count;
  memcpy(text, name, count);
  text[count] = 0;
  return text;
}

void tcrt_event_call(const tcrt_context_t *context, const tcrt_call_t *call, uint64_t begin_ns) {
  const uint64_t end_ns = tcrt_now_ns();
  const tcrt_container_t *container = &context->model->container;
  const tcrt_sig_name_t name = container->host_functions[call->function];
  char function[256], node[256];
  emit(context,
       &(tcrt_event_t){.kind = TCRT_EVENT_CALL,
                       .kernel = UINT32_MAX,
                       .name = terminate(function, sizeof function, container->strings + name.offset, name.length),
                       .nodes = terminate(node, sizeof node, call->node, call->node_length),
                       .begin_ns = begin_ns,
                       .end_ns = end_ns});
}
