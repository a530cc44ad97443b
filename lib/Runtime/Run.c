/*
 * Run.c - running a context: placing inputs and outputs, the program, delivering outputs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where outputs without elements point: never read or written, but not NULL. */
static _Alignas(TCRT_DATA_ALIGN) uint8_t nothing[TCRT_DATA_ALIGN];

int32_t tcrt_context_set_failure(tcrt_context_t *context, tcrt_status_t status, const char *message, uint64_t length) {
  if (context->run_status == TCRT_OK) {
    context->run_status = status;
    context->run_message = malloc(length + 1);
    if (context->run_message) {
      memcpy(context->run_message, message, length);
      context->run_message[length] = 0;
    }
  }
  return (int32_t)status;
}

tcrt_status_t tcrt_context_place_output(tcrt_context_t *context, uint32_t index) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_sig_value_t *value = &function->outputs[index];
  tcrt_bound_t *output = &context->bindings->outputs[index];
  uint64_t size_bytes;
  const char *name = function->output_names[index];
  if (!tcrt_tensor_size((tcrt_dtype_t)value->dtype, value->rank, tcrt_context_output_dims(context, index), &size_bytes))
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: output \"%s\" would be too large", tcrt_context_file(context),
                     name);
  if (output->bound && output->tensor.size_bytes < size_bytes)
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: output \"%s\": its buffer has %llu bytes and needs %llu; bind a larger one",
                     tcrt_context_file(context), name, (unsigned long long)output->tensor.size_bytes,
                     (unsigned long long)size_bytes);
  if (output->bound && output->tensor.device == context->driver->device && !tcrt_is_boxed(value)) {
    context->bindings->output_data[index] = size_bytes ? output->tensor.data : nothing;
    return TCRT_OK;
  }
  if (tcrt_is_boxed(value))
    tcrt_words_size(TCRT_DTYPE_STRING, value->rank, tcrt_context_output_dims(context, index), &size_bytes);
  tcrt_status_t status = tcrt_context_grow(context, &output->own, &output->own_bytes, size_bytes, "an output");
  context->bindings->output_data[index] = output->own;
  return status;
}

/* Bytes of a bound output that the run may write. */
static uint64_t written_bytes(const tcrt_context_t *context, uint32_t index) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_sig_value_t *value = &function->outputs[index];
  const tcrt_bound_t *output = &context->bindings->outputs[index];
  uint64_t bytes = output->tensor.size_bytes;
  if (output->is_known)
    tcrt_tensor_size((tcrt_dtype_t)value->dtype, value->rank, tcrt_context_output_dims(context, index), &bytes);
  return bytes;
}

/* Memory of the caller that a run reads or writes. */
typedef struct span_t {
  uintptr_t begin, end;
  uint32_t index; /* of the input or output */
  int is_output;
} span_t;

static int compare_spans(const void *a, const void *b) {
  const span_t *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

static void add_span(span_t *spans, size_t *count, const void *data, uint64_t bytes, uint32_t index, int is_output) {
  uintptr_t begin = (uintptr_t)data, end;
  if (__builtin_add_overflow(begin, bytes, &end))
    end = UINTPTR_MAX;
  if (bytes)
    spans[(*count)++] = (span_t){begin, end, index, is_output};
}

/* Refuses outputs that overlap inputs or each other: a walk along the addresses, in which the span that reaches
 * furthest is the one to compare with. */
static tcrt_status_t check_overlap(tcrt_context_t *context) {
  tcrt_bindings_t *bindings = context->bindings;
  const tcrt_model_function_t *function = bindings->function;
  size_t count = 0;
  for (uint32_t i = 0; i < function->output_count; ++i)
    count += bindings->outputs[i].bound;
  bindings->overlap_checked = count == 0;
  if (bindings->overlap_checked)
    return TCRT_OK;
  span_t *spans = malloc(((size_t)function->input_count + count) * sizeof *spans);
  if (!spans)
    return tcrt_context_no_memory(context, "a check of its buffers", (function->input_count + count) * sizeof *spans);
  count = 0;
  for (uint32_t i = 0; i < function->output_count; ++i)
    if (bindings->outputs[i].bound)
      add_span(spans, &count, bindings->outputs[i].tensor.data, written_bytes(context, i), i, 1);
  for (uint32_t i = 0; i < function->input_count; ++i)
    if (bindings->inputs[i].bound)
      add_span(spans, &count, bindings->inputs[i].tensor.data, bindings->inputs[i].tensor.size_bytes, i, 0);
  qsort(spans, count, sizeof *spans, compare_spans);
  tcrt_status_t status = TCRT_OK;
  const span_t *furthest[2] = {NULL, NULL}; /* of the inputs, of the outputs so far */
  for (size_t i = 0; status == TCRT_OK && i < count; ++i) {
    const span_t *span = &spans[i];
    for (int kind = !span->is_output; status == TCRT_OK && kind < 2; ++kind) {
      const span_t *other = furthest[kind];
      if (!other || other->end <= span->begin)
        continue;
      const span_t *output = span->is_output ? span : other, *second = span->is_output ? other : span;
      status =
          tcrt_fail(TCRT_ERROR_INVALID,
                    "%s: error: the buffer of output \"%s\" overlaps that of %s \"%s\"; give them separate memory",
                    context->model->name, function->output_names[output->index], second->is_output ? "output" : "input",
                    (second->is_output ? function->output_names : function->input_names)[second->index]);
    }
    if (!furthest[span->is_output] || furthest[span->is_output]->end < span->end)
      furthest[span->is_output] = span;
  }
  free(spans);
  bindings->overlap_checked = status == TCRT_OK;
  return status;
}

tcrt_status_t tcrt_context_name_error(const tcrt_context_t *context, tcrt_status_t status, const char *what,
                                      const char *name, uint64_t length) {
  char text[1024];
  snprintf(text, sizeof text, "%s", tcrt_last_error());
  if (strncmp(text, tcrt_context_file(context), strlen(tcrt_context_file(context))) == 0)
    return status;
  return tcrt_fail(status, "%s: error: %s \"%.*s\": %s", tcrt_context_file(context), what, (int)length, name, text);
}

static tcrt_status_t name_error(const tcrt_context_t *context, tcrt_status_t status, const char *what,
                                const char *name) {
  return tcrt_context_name_error(context, status, what, name, strlen(name));
}

/* Addresses of the inputs for the program; copies to the device what is not there. */
static tcrt_status_t place_inputs(tcrt_context_t *context) {
  const tcrt_model_function_t *function = context->bindings->function;
  for (uint32_t i = 0; i < function->input_count; ++i) {
    tcrt_bound_t *input = &context->bindings->inputs[i];
    const tcrt_sig_value_t *value = &function->inputs[i];
    if (!input->bound && (value->flags & TCRT_VALUE_FLAG_DEFAULT)) {
      context->bindings->input_data[i] = context->frame.weights + value->default_offset;
    } else if (!input->bound) {
      if (!(value->flags & TCRT_VALUE_FLAG_UNUSED))
        return tcrt_context_not_given(context, i);
      context->bindings->input_data[i] = NULL;
    } else if (tcrt_is_boxed(value)) {
      uint64_t bytes = 0;
      tcrt_words_size(TCRT_DTYPE_STRING, value->rank, input->tensor.dims, &bytes);
      tcrt_status_t status = tcrt_context_grow(context, &input->own, &input->own_bytes, bytes, "an input");
      /* Words are made on the host. */
      const int is_here = context->driver->device == TCRT_DEVICE_CPU;
      int64_t *words = is_here ? input->own : tcrt_host_allocate(context, bytes);
      if (status == TCRT_OK && !words)
        status = tcrt_context_no_memory(context, "an input", bytes);
      if (status == TCRT_OK)
        status = value->kind == TCRT_VALUE_TENSOR ? tcrt_values_intern(context->store, &input->tensor, words)
                                                  : tcrt_values_box(context->store, &input->value, words);
      if (status == TCRT_OK && !is_here)
        status = context->driver->copy(context, input->own, words, bytes, TCRT_COPY_HOST_TO_DEVICE);
      if (status == TCRT_OK && !is_here)
        status = context->driver->synchronize(context);
      if (!is_here && words)
        tcrt_host_release(context, words, bytes);
      if (status != TCRT_OK)
        return name_error(context, status, "input", function->input_names[i]);
      context->bindings->input_data[i] = input->own;
    } else if (input->tensor.device == context->driver->device) {
      context->bindings->input_data[i] = input->tensor.data;
    } else {
      tcrt_status_t status = tcrt_context_grow(context, &input->own, &input->own_bytes, input->tensor.size_bytes,
                                               "an input on the device");
      if (status == TCRT_OK)
        status = context->driver->copy(context, input->own, input->tensor.data, input->tensor.size_bytes,
                                       TCRT_COPY_HOST_TO_DEVICE);
      if (status != TCRT_OK)
        return status;
      context->bindings->input_data[i] = input->own;
    }
  }
  return TCRT_OK;
}

/* The strings whose ids lie at `own`, in the device's memory. */
static tcrt_status_t read_strings(tcrt_context_t *context, const void *own, uint64_t count, tcrt_string_t *strings) {
  if (context->driver->device == TCRT_DEVICE_CPU) {
    tcrt_values_strings(context->store, own, count, strings);
    return TCRT_OK;
  }
  const uint64_t bytes = count * sizeof(int64_t);
  int64_t *ids = tcrt_host_allocate(context, bytes);
  if (!ids)
    return tcrt_context_no_memory(context, "an output", bytes);
  tcrt_status_t status = context->driver->copy(context, ids, own, bytes, TCRT_COPY_DEVICE_TO_HOST);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  if (status == TCRT_OK)
    tcrt_values_strings(context->store, ids, count, strings);
  tcrt_host_release(context, ids, bytes);
  return status;
}

/* Brings outputs of device variants to where the caller wants them, without waiting. */
static tcrt_status_t deliver_outputs(tcrt_context_t *context) {
  const tcrt_model_function_t *function = context->bindings->function;
  for (uint32_t i = 0; i < function->output_count; ++i) {
    tcrt_bound_t *output = &context->bindings->outputs[i];
    output->is_set = 1;
    int is_strings = function->outputs[i].kind == TCRT_VALUE_TENSOR && function->outputs[i].dtype == TCRT_DTYPE_STRING;
    if (context->driver->device == TCRT_DEVICE_CPU && !is_strings)
      continue;
    uint64_t size_bytes;
    tcrt_tensor_size((tcrt_dtype_t)function->outputs[i].dtype, function->outputs[i].rank,
                     tcrt_context_output_dims(context, i), &size_bytes);
    void *target = NULL;
    if (output->bound && output->tensor.device == TCRT_DEVICE_CPU) {
      target = output->tensor.data;
    } else if (!output->bound && (!context->device_outputs || is_strings)) {
      if (!output->host || output->host_bytes < size_bytes) {
        /* The run before may still write it. */
        tcrt_status_t status = context->driver->synchronize(context);
        if (status != TCRT_OK)
          return status;
        tcrt_host_release(context, output->host, output->host_bytes);
        output->host_bytes = 0;
        output->host = tcrt_host_allocate(context, size_bytes);
        if (!output->host)
          return tcrt_context_no_memory(context, "an output", size_bytes);
        output->host_bytes = size_bytes;
      }
      target = output->host;
    }
    if (!target || !size_bytes)
      continue;
    if (is_strings) {
      tcrt_status_t status = read_strings(context, output->own, size_bytes / sizeof(tcrt_string_t), target);
      if (status != TCRT_OK)
        return status;
      continue;
    }
    tcrt_status_t status = context->driver->copy(context, target, output->own, size_bytes, TCRT_COPY_DEVICE_TO_HOST);
    if (status != TCRT_OK)
      return status;
  }
  return TCRT_OK;
}

/* Ends a run that went well so far or, with the error set, did not. */
static tcrt_status_t end_run(tcrt_context_t *context, tcrt_status_t status, int waits) {
  int has_ended = status == TCRT_OK;
  if (has_ended) {
    status = context->driver->run_end(context);
    if (status == TCRT_OK)
      status = deliver_outputs(context);
    if (status == TCRT_OK)
      return waits ? context->driver->finish(context) : TCRT_OK;
  }
  /* What was enqueued must be over before its memory is freed; the first error is the one to tell. */
  char *first = strdup(tcrt_last_error());
  if (!has_ended)
    context->driver->run_end(context);
  context->driver->finish(context);
  tcrt_fail(status, "%s", first ? first : "error: no memory left");
  free(first);
  return status;
}

/* Tells the event callback, if there is one, of a phase that began at *begin and ends now; the next one begins. */
static void end_phase(const tcrt_context_t *context, const char *name, uint64_t *begin) {
  if (!context->event)
    return;
  tcrt_event_span(context, TCRT_EVENT_PHASE, name, *begin);
  *begin = tcrt_now_ns();
}

/* A program that takes less time runs on the pool's helpers, which a run does not wait for until they have work: where
 * other programs keep the cores, a team's members come late. */
#define TEAM_NS 200000u

/* A program that the caller's team runs. */
typedef struct program_t {
  tcrt_context_t *context;
  int32_t code;
  int has_run;
  uint64_t ns; /* that it took */
} program_t;

static void run_program(program_t *program) {
  const uint64_t begin = program->context->has_team ? tcrt_now_ns() : 0;
  program->has_run = 1;
  program->code = program->context->bindings->routine->run(&program->context->frame);
  program->ns = begin ? tcrt_now_ns() - begin : 0;
}

static void run_member(void *data, uint32_t number) {
  program_t *program = data;
  tcrt_context_t *context = program->context;
  if (number) {
    tcrt_pool_assist(context->model->pool, context->slot, number);
  } else if (!program->has_run) {
    run_program(program);
    tcrt_pool_dismiss(context->slot);
  }
}

/* Runs the program on the model's pool, on the caller's team, or with the caller's executor. */
static tcrt_status_t run_program_with_threads(tcrt_context_t *context) {
  tcrt_pool_t *pool = context->model->pool;
  program_t program = {.context = context};
  if (context->threads > 1 && !context->has_executor && !tcrt_pool_in_range()) {
    const uint32_t helpers = (uint32_t)context->threads - 1;
    const int with_team = context->has_team && context->team_pays;
    if (context->has_team && !with_team && tcrt_pool_threads(pool) < helpers)
      tcrt_pool_grow(pool, helpers);
    context->slot =
        with_team ? tcrt_pool_enter_with_team(pool) : tcrt_pool_enter(pool, context->shares_soon ? helpers : 0);
    if (with_team && context->slot)
      context->team.run(context->team.user, helpers + 1, run_member, &program);
    else
      run_program(&program);
    const int did = tcrt_pool_leave(pool, context->slot);
    context->shares_soon = (did & TCRT_POOL_SHARED_SOON) != 0;
    context->team_pays = (did & TCRT_POOL_SHARED) && program.ns >= TEAM_NS;
  } else {
    run_program(&program);
  }
  context->slot = NULL;
  if (!program.has_run)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the team did not call its member 0; see tcrt_team_t",
                     tcrt_context_file(context));
  return tcrt_context_program_result(context, program.code);
}

static tcrt_status_t run_phases(tcrt_context_t *context, int waits, uint64_t begin) {
  const tcrt_model_function_t *function = context->bindings->function;
  if (context->bindings->stage == TCRT_STAGE_RUN)
    context->bindings->stage = TCRT_STAGE_INFERRED;
  context->last_run = context->bindings;
  if (context->store)
    tcrt_store_reset(context->store);
  tcrt_status_t status = tcrt_context_infer_sizes(context);
  if (status == TCRT_OK && !context->bindings->overlap_checked)
    status = check_overlap(context);
  end_phase(context, "sizes", &begin);
  if (status == TCRT_OK)
    status = context->driver->run_begin(context);
  if (status == TCRT_OK) {
    status = place_inputs(context);
    int64_t *dims = context->bindings->output_dims;
    for (uint32_t i = 0; status == TCRT_OK && i < function->output_count; dims += function->outputs[i].rank, ++i) {
      context->bindings->outputs[i].is_set = 0;
      if (context->bindings->outputs[i].is_known) {
        status = tcrt_context_place_output(context, i);
      } else {
        context->bindings->output_data[i] = NULL;
        for (uint32_t d = 0; d < function->outputs[i].rank; ++d)
          if (context->model->container.dims[function->outputs[i].first_dim + d].kind == TCRT_DIM_EXPR)
            dims[d] = -1;
      }
    }
    end_phase(context, "inputs", &begin);
    if (status == TCRT_OK) {
      tcrt_context_clear_failure(context);
      status = run_program_with_threads(context);
      end_phase(context, "program", &begin);
    }
    for (uint32_t i = 0; status == TCRT_OK && i < function->output_count; ++i)
      if (!context->bindings->output_data[i])
        status = tcrt_fail(TCRT_ERROR_INTERNAL,
                           "%s: error: the compiled program did not deliver output \"%s\"; please report "
                           "this",
                           tcrt_context_file(context), function->output_names[i]);
    status = end_run(context, status, waits);
    tcrt_context_release_blocks(context);
    end_phase(context, "outputs", &begin);
  }
  if (status == TCRT_OK) {
    context->bindings->stage = TCRT_STAGE_RUN;
    ++context->runs;
  }
  return status;
}

static tcrt_status_t run(tcrt_context_t *context, int waits) {
  const uint64_t begin = tcrt_now_ns();
  const tcrt_status_t status = run_phases(context, waits, begin);
  if (context->event)
    tcrt_event_span(context, TCRT_EVENT_RUN, context->bindings->function->name, begin);
  tcrt_count_run(context, status, tcrt_now_ns() - begin);
  return status;
}

tcrt_status_t tcrt_context_run(tcrt_context_t *context) {
  ENTER(context);
  return tcrt_context_leave(context, run(context, 1));
}

tcrt_status_t tcrt_context_run_async(tcrt_context_t *context) {
  ENTER(context);
  return tcrt_context_leave(context, run(context, context->times_runs));
}

tcrt_status_t tcrt_context_wait(tcrt_context_t *context) {
  ENTER(context);
  return tcrt_context_leave(context, context->driver->finish(context));
}

/* Refuses an output that the last run of the function has not delivered. Strings and what is no tensor lie in the
 * store, which the next run of any function empties. */
static tcrt_status_t check_delivered(const tcrt_context_t *context, uint32_t index) {
  tcrt_status_t status = tcrt_context_check_output(context, index);
  if (status != TCRT_OK)
    return status;
  const tcrt_bindings_t *bindings = context->bindings;
  int is_lost = tcrt_is_boxed(&bindings->function->outputs[index]) && context->last_run != bindings;
  if (bindings->stage == TCRT_STAGE_RUN && bindings->outputs[index].is_set && !is_lost)
    return TCRT_OK;
  return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there are no outputs for what is bound; run the context first",
                   tcrt_context_file(context));
}

static tcrt_status_t get_output(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  const tcrt_model_function_t *function = context->bindings->function;
  tcrt_status_t status = check_delivered(context, index);
  if (status != TCRT_OK)
    return status;
  const tcrt_bound_t *output = &context->bindings->outputs[index];
  const tcrt_sig_value_t *value = &function->outputs[index];
  if (value->kind != TCRT_VALUE_TENSOR)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: output \"%s\" is %s; get it by tcrt_context_get_output_value",
                     tcrt_context_file(context), function->output_names[index], tcrt_kind_name(value->kind));
  tcrt_context_describe_output(context, index, tensor);
  if (output->bound) {
    tensor->data = output->tensor.data;
    tensor->device = output->tensor.device;
  } else if (!tcrt_is_boxed(value) && (context->driver->device == TCRT_DEVICE_CPU || context->device_outputs)) {
    tensor->data = output->own;
    tensor->device = context->driver->device;
  } else {
    tensor->data = output->host;
  }
  return TCRT_OK;
}

tcrt_status_t tcrt_context_get_output(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  TCRT_NEEDS(tensor);
  memset(tensor, 0, sizeof *tensor);
  ENTER(context);
  return tcrt_context_leave(context, get_output(context, index, tensor));
}

tcrt_status_t tcrt_context_get_output_value(tcrt_context_t *context, uint32_t index, tcrt_value_t *value) {
  TCRT_NEEDS(value);
  memset(value, 0, sizeof *value);
  ENTER(context);
  const tcrt_model_function_t *function = context->bindings->function;
  if (index >= function->output_count || function->outputs[index].kind == TCRT_VALUE_TENSOR)
    return tcrt_context_leave(context, get_output(context, index, &value->tensor));
  tcrt_status_t status = check_delivered(context, index);
  if (status != TCRT_OK)
    return tcrt_context_leave(context, status);
  const void *own = context->bindings->outputs[index].own;
  int64_t handle = 0;
  if (context->driver->device == TCRT_DEVICE_CPU)
    memcpy(&handle, own, sizeof handle);
  else
    status = context->driver->copy(context, &handle, own, sizeof handle, TCRT_COPY_DEVICE_TO_HOST);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  if (status != TCRT_OK)
    return tcrt_context_leave(context, status);
  status = tcrt_values_unbox(context->store, handle, &function->outputs[index], value);
  if (status != TCRT_OK)
    name_error(context, status, "output", function->output_names[index]);
  return tcrt_context_leave(context, status);
}
