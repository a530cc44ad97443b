/*
 * Driver.c - the driver for CPU variants: memory is the host's, there is nothing to load and nothing to wait for.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "../Context.h"

#include <string.h>

static int runs(const tcrt_model_t *model, const tcrt_sig_variant_t *variant) {
  (void)model, (void)variant;
  return 1;
}

static tcrt_status_t is_usable(const tcrt_model_t *model) {
  (void)model;
  return TCRT_OK;
}

static tcrt_status_t variant_open(tcrt_model_t *model, uint32_t variant, tcrt_loaded_variant_t *loaded) {
  (void)variant;
  loaded->weights = model->container.weights;
  return TCRT_OK;
}

static void variant_close(tcrt_loaded_variant_t *loaded) { (void)loaded; }

static tcrt_status_t context_open(tcrt_context_t *context) {
  (void)context;
  return TCRT_OK;
}

static void context_close(tcrt_context_t *context) { (void)context; }

static void *stream(const tcrt_context_t *context) {
  (void)context;
  return NULL;
}

static void graph_stats(const tcrt_context_t *context, tcrt_graph_stats_t *stats) { (void)context, (void)stats; }

static tcrt_status_t copy(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes, uint32_t direction) {
  (void)context, (void)direction;
  if (bytes)
    memmove(dst, src, bytes);
  return TCRT_OK;
}

static tcrt_status_t clear(tcrt_context_t *context, void *data, uint64_t bytes) {
  (void)context;
  memset(data, 0, bytes);
  return TCRT_OK;
}

static tcrt_status_t launch(tcrt_context_t *context, const tcrt_device_launch_t *launch, void **parameters) {
  (void)parameters;
  return tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: a CPU variant launches device kernel %u; please report this",
                   context->model->name, launch->kernel);
}

static tcrt_status_t run_edge(tcrt_context_t *context) {
  (void)context;
  return TCRT_OK;
}

const tcrt_driver_t tcrt_cpu_driver = {
    .device = TCRT_DEVICE_CPU,
    .runs = runs,
    .is_usable = is_usable,
    .variant_open = variant_open,
    .variant_close = variant_close,
    .context_open = context_open,
    .context_close = context_close,
    .stream = stream,
    .graph_stats = graph_stats,
    .allocate = tcrt_host_allocate,
    .no_memory = tcrt_context_no_memory,
    .release = tcrt_host_release,
    .copy = copy,
    .clear = clear,
    .synchronize = run_edge,
    .launch = launch,
    .run_begin = run_edge,
    .run_end = run_edge,
    .finish = run_edge,
};
