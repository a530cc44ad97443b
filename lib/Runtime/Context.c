/*
 * Context.c - making and freeing contexts, one call at a time, statistics.
 *
 * A call on a context first takes its `busy` flag; so a second thread gets an error instead of a race. What was
 * computed for the bound sizes (symbols, output sizes, arena) is kept until a size changes: a run with unchanged sizes
 * goes straight to the program.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Context.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 1024u

/* ---- making and freeing ---- */

/* Room for what is bound to each function. */
static int make_bindings(tcrt_context_t *context) {
  const tcrt_model_t *model = context->model;
  context->all = calloc(model->container.function_count, sizeof *context->all);
  if (!context->all)
    return 0;
  for (uint32_t i = 0; i < model->container.function_count; ++i) {
    const tcrt_model_function_t *function = &model->functions[i];
    tcrt_bindings_t *bindings = &context->all[i];
    bindings->function = function;
    bindings->inputs = calloc(function->input_count + 1, sizeof *bindings->inputs);
    bindings->outputs = calloc(function->output_count + 1, sizeof *bindings->outputs);
    bindings->input_data = calloc(function->input_count + 1, sizeof *bindings->input_data);
    bindings->output_data = calloc(function->output_count + 1, sizeof *bindings->output_data);
    bindings->input_dims = calloc(function->input_dim_count + 1, sizeof *bindings->input_dims);
    bindings->output_dims = calloc(function->output_dim_count + 1, sizeof *bindings->output_dims);
    bindings->symbols = calloc(function->symbol_count + 1, sizeof *bindings->symbols);
    if (!bindings->inputs || !bindings->outputs || !bindings->input_data || !bindings->output_data ||
        !bindings->input_dims || !bindings->output_dims || !bindings->symbols)
      return 0;
  }
  return 1;
}

/* Needs no driver where no memory was made. */
static void free_bindings(tcrt_context_t *context) {
  for (uint32_t i = 0; context->all && i < context->model->container.function_count; ++i) {
    const tcrt_model_function_t *function = &context->model->functions[i];
    tcrt_bindings_t *bindings = &context->all[i];
    for (uint32_t j = 0; context->driver && j < function->input_count; ++j)
      context->driver->release(context, bindings->inputs[j].own, bindings->inputs[j].own_bytes);
    for (uint32_t j = 0; context->driver && j < function->output_count; ++j) {
      context->driver->release(context, bindings->outputs[j].own, bindings->outputs[j].own_bytes);
      tcrt_host_release(context, bindings->outputs[j].host, bindings->outputs[j].host_bytes);
    }
    free(bindings->inputs);
    free(bindings->outputs);
    free(bindings->input_data);
    free(bindings->output_data);
    free(bindings->input_dims);
    free(bindings->output_dims);
    free(bindings->symbols);
  }
  free(context->all);
}

static void choose_function(tcrt_context_t *context, uint32_t index) {
  tcrt_bindings_t *bindings = &context->all[index];
  tcrt_frame_t *frame = &context->frame;
  context->bindings = bindings;
  frame->inputs = bindings->input_data;
  frame->outputs = bindings->output_data;
  frame->input_dims = bindings->input_dims;
  frame->output_dims = bindings->output_dims;
  frame->symbols = bindings->symbols;
  frame->arena_size = bindings->arena_size;
}

/* ---- what the store asks its owner for ---- */

static void *take_for_store(void *user, uint64_t bytes) {
  tcrt_context_t *context = user;
  if (!tcrt_context_charge(context, bytes, "strings and sequences"))
    return NULL;
  void *data = tcrt_host_allocate(context, bytes);
  if (!data) {
    tcrt_context_discharge(context, bytes);
    tcrt_context_no_memory(context, "strings and sequences", bytes);
  }
  return data;
}

static void give_back_for_store(void *user, void *data, uint64_t bytes) {
  tcrt_host_release(user, data, bytes);
  tcrt_context_discharge(user, bytes);
}

static void warn_for_store(void *user, const tcrt_call_t *call, const char *text) {
  const tcrt_model_t *model = ((const tcrt_context_t *)user)->model;
  tcrt_model_log(model, TCRT_LOG_WARNING, "%s: warning: node \"%.*s\": %s", model->name, (int)call->node_length,
                 call->node, text);
}

/* Leaves the new context in *made, or frees it. */
static tcrt_status_t create(tcrt_model_t *model, const tcrt_context_options_t *given, tcrt_context_t **made) {
  if (given && (given->size < offsetof(tcrt_context_options_t, variant) || given->size > 4096))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the options' size is not set; set it to sizeof(tcrt_context_options_t)", model->name);
  tcrt_context_options_t options = {0};
  if (given)
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  if (options.graphs < TCRT_GRAPHS_DEFAULT || options.graphs > TCRT_GRAPHS_AT_ONCE)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: graphs = %d of the options is none of TCRT_GRAPHS_*", model->name,
                     options.graphs);
  uint32_t variant;
  tcrt_status_t status = tcrt_model_choose(model, options.variant, &variant);
  if (status != TCRT_OK)
    return status;
  const tcrt_signature_t *s = model->container.signature;
  tcrt_context_t *context = calloc(1, sizeof *context);
  if (!context)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for a context", model->name);
  context->model = model;
  context->variant_index = variant;
  context->threads = options.threads ? options.threads : tcrt_usable_cores();
  if (context->threads > MAX_THREADS)
    context->threads = MAX_THREADS;
  context->memory_limit = options.memory_limit;
  context->profile = options.profile == TCRT_PROFILE_KERNELS;
  context->event = options.event;
  context->event_user = options.event_user;
  context->times_runs = options.profile != TCRT_PROFILE_OFF || options.event;
  context->device_outputs = options.device_outputs;
  context->graphs = options.graphs;
  context->stream = options.stream;
  if (options.executor && options.executor->parallel_for) {
    context->executor = *options.executor;
    context->has_executor = 1;
  }
  if (options.team && options.team->run && !context->has_executor) {
    context->team = *options.team;
    context->has_team = 1;
    context->team_pays = 1;
  }
  if (options.allocator && options.allocator->allocate && options.allocator->release) {
    context->allocator = *options.allocator;
    context->has_allocator = 1;
  }
  context->costs = calloc(s->kernel_count + 1, sizeof *context->costs);
  context->profile_ns = calloc(s->kernel_count + 1, sizeof *context->profile_ns);
  context->profile_launches = calloc(s->kernel_count + 1, sizeof *context->profile_launches);
  if (!make_bindings(context) || !context->costs || !context->profile_ns || !context->profile_launches) {
    status = tcrt_context_no_memory(context, "a context", sizeof *context);
    tcrt_context_destroy(context);
    return status;
  }
  for (uint32_t i = 0; i < s->kernel_count; ++i)
    context->costs[i] = (tcrt_cost_t){model->container.kernels[i].flops, model->container.kernels[i].bytes};
  pthread_mutex_lock(model->lock);
  status = tcrt_model_load_variant(model, variant, &context->variant);
  int needs_store = model->container.host_function_count > 0;
  for (uint32_t i = 0; i < s->input_count + s->output_count; ++i)
    needs_store |=
        tcrt_is_boxed(i < s->input_count ? &model->container.inputs[i] : &model->container.outputs[i - s->input_count]);
  if (status == TCRT_OK && needs_store)
    status = tcrt_model_find_functions(model);
  if (context->variant)
    ++model->context_count;
  pthread_mutex_unlock(model->lock);
  if (status == TCRT_OK) {
    const tcrt_driver_t *driver = context->variant->driver;
    status = driver->context_open(context);
    if (status == TCRT_OK)
      context->driver = driver;
  }
  if (status == TCRT_OK && needs_store) {
    context->store = calloc(1, sizeof *context->store);
    if (context->store)
      tcrt_store_init(context->store,
                      &(tcrt_store_owner_t){context, take_for_store, give_back_for_store, warn_for_store,
                                            !context->memory_limit, context->threads},
                      model->container.string_table);
    else
      status = tcrt_context_no_memory(context, "a context", sizeof *context->store);
  }
  if (status == TCRT_OK && context->threads > 1 && !context->has_executor && !context->has_team) {
    uint32_t helpers = tcrt_pool_grow(model->pool, context->threads - 1);
    if (helpers < context->threads - 1)
      tcrt_model_log(model, TCRT_LOG_WARNING, "%s: only %u of %u threads could be made", model->name, helpers + 1,
                     context->threads);
  }
  if (status == TCRT_OK) {
    tcrt_frame_t *frame = &context->frame;
    frame->imports = context->variant->imports;
    frame->runtime = context;
    frame->weights = context->variant->weights;
    frame->worker_count = context->threads;
    for (uint32_t i = 0; i < model->container.function_count; ++i)
      context->all[i].routine = &context->variant->routines[i];
    choose_function(context, 0);
    status = tcrt_context_make_states(context);
    /* With fixed sizes the first run finds everything ready. */
    if (status == TCRT_OK && model->functions[0].has_static_inputs)
      status = tcrt_context_infer_sizes(context);
  }
  if (status != TCRT_OK) {
    tcrt_context_destroy(context);
    return status;
  }
  *made = context;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_create(tcrt_model_t *model, const tcrt_context_options_t *options,
                                  tcrt_context_t **context) {
  TCRT_NEEDS(context);
  *context = NULL;
  TCRT_NEEDS(model);
  return create(model, options, context);
}

void tcrt_context_destroy(tcrt_context_t *context) {
  if (!context)
    return;
  if (context->store)
    tcrt_store_destroy(context->store);
  free(context->store);
  if (context->driver) {
    /* A context that could not be made keeps its error. */
    if (context->runs)
      context->driver->finish(context);
    tcrt_context_release_blocks(context);
    tcrt_context_free_blocks(context);
    context->driver->release(context, context->arena, context->arena_bytes);
    tcrt_context_free_states(context);
  }
  free_bindings(context);
  if (context->driver)
    context->driver->context_close(context);
  tcrt_count_end(context);
  tcrt_model_t *closed = NULL;
  if (context->variant) {
    pthread_mutex_lock(context->model->lock);
    if (--context->model->context_count == 0 && context->model->is_closed)
      closed = context->model;
    pthread_mutex_unlock(context->model->lock);
  }
  free(context->costs);
  free(context->profile_ns);
  free(context->profile_launches);
  free(context->run_message);
  free(context);
  tcrt_model_close(closed);
}

/* ---- one call at a time ---- */

tcrt_status_t tcrt_context_enter(tcrt_context_t *context) {
  if (context->model->is_closed)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the model of the context is closed; close it after its contexts",
                     tcrt_context_file(context));
  if (__atomic_exchange_n(&context->busy, 1, __ATOMIC_ACQUIRE))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the context is in use by another call; use one context per concurrent run",
                     tcrt_context_file(context));
  return TCRT_OK;
}

tcrt_status_t tcrt_context_leave(tcrt_context_t *context, tcrt_status_t status) {
  __atomic_store_n(&context->busy, 0, __ATOMIC_RELEASE);
  return status;
}

const char *tcrt_context_variant(const tcrt_context_t *context) {
  TCRT_NEEDS_OR(context, "");
  return tcrt_model_variant_name(context->model, context->variant_index);
}

uint32_t tcrt_context_threads(const tcrt_context_t *context) {
  TCRT_NEEDS_OR(context, 0);
  return context->threads;
}

uint32_t tcrt_context_function(const tcrt_context_t *context) {
  TCRT_NEEDS_OR(context, 0);
  return (uint32_t)(context->bindings - context->all);
}

tcrt_status_t tcrt_context_set_function(tcrt_context_t *context, uint32_t index) {
  ENTER(context);
  uint32_t count = context->model->container.function_count;
  if (index >= count)
    return tcrt_context_leave(context,
                              tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no function %u; the model has %u",
                                        tcrt_context_file(context), index, count));
  choose_function(context, index);
  return tcrt_context_leave(context, TCRT_OK);
}

/* ---- statistics ---- */

tcrt_status_t tcrt_context_stats(tcrt_context_t *context, tcrt_context_stats_t *stats) {
  TCRT_NEEDS(stats);
  memset(stats, 0, sizeof *stats);
  ENTER(context);
  stats->arena_bytes = context->arena_bytes;
  stats->memory_bytes = context->memory_bytes;
  stats->peak_memory_bytes = context->peak_bytes;
  stats->runs = context->runs;
  stats->device_us = context->device_us;
  return tcrt_context_leave(context, TCRT_OK);
}

tcrt_status_t tcrt_context_time_runs(tcrt_context_t *context, int are_timed) {
  ENTER(context);
  context->times_runs = are_timed || context->profile || context->event;
  context->device_us = 0;
  return tcrt_context_leave(context, TCRT_OK);
}

tcrt_status_t tcrt_context_entry(tcrt_context_t *context, uint32_t *index) {
  TCRT_NEEDS(index);
  *index = 0;
  ENTER(context);
  if (context->bindings->stage < TCRT_STAGE_INFERRED)
    return tcrt_context_leave(context, tcrt_fail(TCRT_ERROR_INVALID,
                                                 "%s: error: no sizes are known that an entry could be chosen by; run "
                                                 "the context or call tcrt_context_infer first",
                                                 tcrt_context_file(context)));
  *index = context->bindings->entry;
  return tcrt_context_leave(context, TCRT_OK);
}

tcrt_status_t tcrt_context_graph_stats(tcrt_context_t *context, tcrt_graph_stats_t *stats) {
  TCRT_NEEDS(stats);
  const size_t size = stats->size;
  TCRT_NEEDS(context);
  if (size < offsetof(tcrt_graph_stats_t, refused_launches) + sizeof stats->refused_launches || size > 4096)
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the statistics' size is not set; set it to sizeof(tcrt_graph_stats_t)",
                     context->model->name);
  memset(stats, 0, size);
  stats->size = size;
  ENTER(context);
  tcrt_graph_stats_t all = {0};
  context->driver->graph_stats(context, &all);
  all.size = size;
  memcpy(stats, &all, size < sizeof all ? size : sizeof all);
  return tcrt_context_leave(context, TCRT_OK);
}

void *tcrt_context_stream(const tcrt_context_t *context) {
  TCRT_NEEDS_OR(context, NULL);
  return context->driver->stream(context);
}

uint32_t tcrt_context_profile_count(const tcrt_context_t *context) {
  TCRT_NEEDS_OR(context, 0);
  return context->model->container.signature->kernel_count;
}

tcrt_status_t tcrt_context_profile(tcrt_context_t *context, uint32_t index, tcrt_profile_entry_t *entry) {
  TCRT_NEEDS(entry);
  memset(entry, 0, sizeof *entry);
  ENTER(context);
  const tcrt_model_t *model = context->model;
  if (index >= model->container.signature->kernel_count)
    return tcrt_context_leave(context,
                              tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no kernel %u; the model has %u",
                                        model->name, index, model->container.signature->kernel_count));
  entry->kernel = model->kernel_names[index];
  entry->nodes = model->kernel_nodes[index];
  entry->launches = context->profile_launches[index];
  entry->time_ns = context->profile_ns[index];
  entry->flops = context->costs[index].flops;
  entry->bytes = context->costs[index].bytes;
  return tcrt_context_leave(context, TCRT_OK);
}

tcrt_status_t tcrt_context_profile_reset(tcrt_context_t *context) {
  ENTER(context);
  uint32_t count = context->model->container.signature->kernel_count;
  memset(context->profile_ns, 0, count * sizeof *context->profile_ns);
  memset(context->profile_launches, 0, count * sizeof *context->profile_launches);
  return tcrt_context_leave(context, TCRT_OK);
}

/* ---- device memory for callers ---- */

tcrt_status_t tcrt_context_device_allocate(tcrt_context_t *context, uint64_t bytes, void **data) {
  TCRT_NEEDS(data);
  *data = NULL;
  ENTER(context);
  *data = context->driver->allocate(context, bytes);
  return tcrt_context_leave(context, *data ? TCRT_OK : context->driver->no_memory(context, "a buffer", bytes));
}

void tcrt_context_device_free(tcrt_context_t *context, void *data, uint64_t bytes) {
  if (context)
    context->driver->release(context, data, bytes);
}

tcrt_status_t tcrt_context_device_copy(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes,
                                       uint32_t direction) {
  ENTER(context);
  if (bytes == 0)
    return tcrt_context_leave(context, TCRT_OK);
  if (!dst || !src || bytes > PTRDIFF_MAX || direction > TCRT_COPY_DEVICE_TO_DEVICE)
    return tcrt_context_leave(
        context, tcrt_fail(TCRT_ERROR_INVALID,
                           "%s: error: a copy of %llu bytes from %p to %p in direction %u; give both addresses and one "
                           "of TCRT_COPY_*",
                           tcrt_context_file(context), (unsigned long long)bytes, src, dst, direction));
  tcrt_status_t status = context->driver->copy(context, dst, src, bytes, direction);
  /* What follows within the device is in the same order. */
  if (status == TCRT_OK && direction != TCRT_COPY_DEVICE_TO_DEVICE)
    status = context->driver->synchronize(context);
  return tcrt_context_leave(context, status);
}
