/*
 * Binding.c - inputs and outputs of a context: what is bound to them, and what follows from the inputs' sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- binding ---- */

int64_t *tcrt_context_output_dims(const tcrt_context_t *context, uint32_t index) {
  return context->bindings->output_dims + context->bindings->function->output_dims_at[index];
}

void tcrt_print_dims(const int64_t *dims, uint32_t rank, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "(");
  for (uint32_t i = 0; i < rank && used < size; ++i)
    used += (size_t)snprintf(text + used, size - used, i ? ", %lld" : "%lld", (long long)dims[i]);
  if (used < size)
    snprintf(text + used, size - used, ")");
}

/* "(batch, 3, ?)": what a value's shape may be. */
static void print_expected(const tcrt_context_t *context, const tcrt_sig_value_t *value, char *text, size_t size) {
  const tcrt_model_function_t *function = context->bindings->function;
  size_t used = (size_t)snprintf(text, size, "(");
  for (uint32_t i = 0; i < value->rank && used < size; ++i) {
    const tcrt_sig_dim_t *dim = &context->model->container.dims[value->first_dim + i];
    const char *comma = i ? ", " : "";
    if (dim->kind == TCRT_DIM_STATIC)
      used += (size_t)snprintf(text + used, size - used, "%s%lld", comma, (long long)dim->value);
    else
      used += (size_t)snprintf(text + used, size - used, "%s%s", comma,
                               dim->kind == TCRT_DIM_SYMBOL ? function->symbol_names[dim->symbol] : "?");
  }
  if (used < size)
    snprintf(text + used, size - used, ")");
}

tcrt_status_t tcrt_context_not_given(const tcrt_context_t *context, uint32_t input) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_sig_value_t *value = &function->inputs[input];
  char expected[512];
  print_expected(context, value, expected, sizeof expected);
  return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\" is not given; expected %s %s",
                   tcrt_context_file(context), function->input_names[input],
                   tcrt_dtype_name((tcrt_dtype_t)value->dtype), expected);
}

static int is_device_usable(const tcrt_context_t *context, const tcrt_tensor_t *tensor) {
  return tensor->device == TCRT_DEVICE_CPU || tensor->device == context->driver->device;
}

/* Before sizes of inputs change. */
static void sizes_change(tcrt_bindings_t *bindings) { bindings->stage = TCRT_STAGE_BOUND; }

static tcrt_status_t set_input(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  const tcrt_model_function_t *function = context->bindings->function;
  tcrt_model_t *model = context->model;
  const tcrt_container_t *c = &model->container;
  if (index >= function->input_count)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: there is no input %u; the model has %u", model->name, index,
                     function->input_count);
  tcrt_bound_t *bound = &context->bindings->inputs[index];
  if (!tensor) {
    if (bound->bound)
      sizes_change(context->bindings);
    bound->bound = 0;
    context->bindings->overlap_checked = 0;
    return TCRT_OK;
  }
  const tcrt_sig_value_t *value = &function->inputs[index];
  const char *name = function->input_names[index];
  if (value->kind != TCRT_VALUE_TENSOR)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\" is %s; give it by tcrt_context_set_input_value",
                     model->name, name, tcrt_kind_name(value->kind));
  if (tensor->dtype != (tcrt_dtype_t)value->dtype)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": its dtype is %s, expected %s", model->name, name,
                     tcrt_dtype_name(tensor->dtype), tcrt_dtype_name((tcrt_dtype_t)value->dtype));
  char expected[512], got[512];
  if (tensor->rank != value->rank) {
    print_expected(context, value, expected, sizeof expected);
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": its rank is %u, expected %u with dims %s",
                     model->name, name, tensor->rank, value->rank, expected);
  }
  for (uint32_t i = 0; i < value->rank; ++i) {
    const tcrt_sig_dim_t *dim = &c->dims[value->first_dim + i];
    if (tensor->dims[i] < 0 || (dim->kind == TCRT_DIM_STATIC && tensor->dims[i] != dim->value)) {
      print_expected(context, value, expected, sizeof expected);
      tcrt_print_dims(tensor->dims, value->rank, got, sizeof got);
      return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": its dims are %s, expected %s", model->name, name,
                       got, expected);
    }
  }
  uint64_t size_bytes;
  tcrt_print_dims(tensor->dims, value->rank, got, sizeof got);
  if (!tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &size_bytes))
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": the size of dims %s overflows", model->name, name,
                     got);
  if (tensor->size_bytes < size_bytes || (size_bytes && !tensor->data))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: input \"%s\": its buffer has %llu bytes, expected %llu for dims %s", model->name, name,
                     (unsigned long long)(tensor->data ? tensor->size_bytes : 0), (unsigned long long)size_bytes, got);
  if (!is_device_usable(context, tensor))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: input \"%s\": its device is %u, expected host memory or that of %s", model->name, name,
                     tensor->device, tcrt_device_name(context->driver->device));
  if (!function->has_static_inputs &&
      (!bound->bound || memcmp(bound->tensor.dims, tensor->dims, value->rank * sizeof(int64_t)) != 0))
    sizes_change(context->bindings);
  if (!bound->bound || bound->tensor.data != tensor->data || context->bindings->stage < TCRT_STAGE_INFERRED)
    context->bindings->overlap_checked = 0;
  bound->tensor = *tensor;
  bound->tensor.size_bytes = size_bytes;
  bound->bound = 1;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_set_input(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  ENTER(context);
  return tcrt_context_leave(context, set_input(context, index, tensor));
}

tcrt_status_t tcrt_context_set_input_value(tcrt_context_t *context, uint32_t index, const tcrt_value_t *value) {
  ENTER(context);
  const tcrt_model_function_t *function = context->bindings->function;
  int is_tensor = index >= function->input_count || function->inputs[index].kind == TCRT_VALUE_TENSOR;
  if (value && is_tensor && value->kind == TCRT_VALUE_TENSOR)
    return tcrt_context_leave(context, set_input(context, index, &value->tensor));
  if (!value || index >= function->input_count)
    return tcrt_context_leave(context, set_input(context, index, NULL));
  tcrt_status_t status = tcrt_values_check(context, index, value);
  if (status != TCRT_OK)
    return tcrt_context_leave(context, status);
  tcrt_bound_t *bound = &context->bindings->inputs[index];
  if (!bound->bound && !function->has_static_inputs)
    sizes_change(context->bindings);
  memset(&bound->tensor, 0, sizeof bound->tensor);
  bound->value = *value;
  bound->bound = 1;
  return tcrt_context_leave(context, TCRT_OK);
}

static tcrt_status_t set_output(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  const tcrt_model_function_t *function = context->bindings->function;
  tcrt_model_t *model = context->model;
  if (index >= function->output_count)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no output %u; the model has %u", model->name, index,
                     function->output_count);
  tcrt_bound_t *bound = &context->bindings->outputs[index];
  context->bindings->overlap_checked = 0;
  bound->is_set = 0;
  if (!tensor) {
    bound->bound = 0;
    return TCRT_OK;
  }
  const tcrt_sig_value_t *value = &function->outputs[index];
  const char *name = function->output_names[index];
  if (value->kind != TCRT_VALUE_TENSOR)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: output \"%s\" is %s, which cannot be bound to a buffer",
                     model->name, name, tcrt_kind_name(value->kind));
  if (tensor->dtype != (tcrt_dtype_t)value->dtype)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: output \"%s\": the buffer's dtype is %s, expected %s", model->name,
                     name, tcrt_dtype_name(tensor->dtype), tcrt_dtype_name((tcrt_dtype_t)value->dtype));
  if (!tensor->data && tensor->size_bytes)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: output \"%s\": the buffer's address is NULL", model->name, name);
  if (!is_device_usable(context, tensor))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: output \"%s\": its device is %u, expected host memory or that of %s", model->name,
                     name, tensor->device, tcrt_device_name(context->driver->device));
  bound->tensor = *tensor;
  bound->bound = 1;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_set_output(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  ENTER(context);
  return tcrt_context_leave(context, set_output(context, index, tensor));
}

/* ---- shapes ---- */

/* min <= value <= max and value % divisor == 0, as text. */
static void print_guard(const tcrt_sig_symbol_t *symbol, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  if (symbol->min == symbol->max)
    used = (size_t)snprintf(text, size, "%lld", (long long)symbol->min);
  else if (symbol->max == INT64_MAX)
    used = (size_t)snprintf(text, size, "at least %lld", (long long)symbol->min);
  else
    used = (size_t)snprintf(text, size, "%lld to %lld", (long long)symbol->min, (long long)symbol->max);
  if (symbol->divisor > 1 && used < size)
    snprintf(text + used, size - used, " and a multiple of %lld", (long long)symbol->divisor);
}

static int meets_guard(const tcrt_sig_symbol_t *symbol, int64_t value) {
  return value >= symbol->min && value <= symbol->max && value % symbol->divisor == 0;
}

/* Sets the bindings' input_dims and binds symbols, each to the first dim of a given input that names it. */
static tcrt_status_t bind_symbols(tcrt_context_t *context) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_model_t *model = context->model;
  const tcrt_container_t *c = &model->container;
  for (uint32_t i = 0; i < function->symbol_count; ++i)
    context->bindings->symbols[i] = -1;
  int64_t *dims = context->bindings->input_dims;
  for (uint32_t i = 0; i < function->input_count; dims += function->inputs[i].rank, ++i) {
    const tcrt_bound_t *bound = &context->bindings->inputs[i];
    for (uint32_t d = 0; d < function->inputs[i].rank; ++d) {
      const tcrt_sig_dim_t *dim = &c->dims[function->inputs[i].first_dim + d];
      dims[d] = bound->bound ? bound->tensor.dims[d] : dim->kind == TCRT_DIM_STATIC ? dim->value : -1;
      if (dims[d] < 0 || dim->kind != TCRT_DIM_SYMBOL)
        continue;
      const tcrt_sig_symbol_t *symbol = &function->symbols[dim->symbol];
      int64_t *value = &context->bindings->symbols[dim->symbol];
      if (*value < 0) {
        *value = dims[d];
        if (!meets_guard(symbol, *value)) {
          char guard[128];
          print_guard(symbol, guard, sizeof guard);
          return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": dim %u (%s) is %lld, expected %s", model->name,
                           function->input_names[i], d, function->symbol_names[dim->symbol], (long long)*value, guard);
        }
      } else if (*value != dims[d]) {
        /* Find where it was bound. */
        for (uint32_t j = 0; j <= i; ++j)
          for (uint32_t e = 0; e < function->inputs[j].rank; ++e) {
            const tcrt_sig_dim_t *other = &c->dims[function->inputs[j].first_dim + e];
            if (context->bindings->inputs[j].bound && other->kind == TCRT_DIM_SYMBOL && other->symbol == dim->symbol)
              return tcrt_fail(
                  TCRT_ERROR_REFUSED,
                  "%s: error: input \"%s\": dim %u (%s) is %lld, expected %lld as in dim %u of input \"%s\"",
                  model->name, function->input_names[i], d, function->symbol_names[dim->symbol], (long long)dims[d],
                  (long long)*value, e, function->input_names[j]);
          }
      }
    }
  }
  /* Inputs that are not given. */
  dims = context->bindings->input_dims;
  for (uint32_t i = 0; i < function->input_count; dims += function->inputs[i].rank, ++i) {
    for (uint32_t d = 0; d < function->inputs[i].rank; ++d) {
      const tcrt_sig_dim_t *dim = &c->dims[function->inputs[i].first_dim + d];
      if (dims[d] >= 0)
        continue;
      if (!(function->inputs[i].flags & TCRT_VALUE_FLAG_UNUSED))
        return tcrt_context_not_given(context, i);
      if (dim->kind == TCRT_DIM_SYMBOL) {
        int64_t *value = &context->bindings->symbols[dim->symbol];
        if (*value < 0)
          *value = function->symbols[dim->symbol].min;
        dims[d] = *value;
      } else {
        dims[d] = 0;
      }
    }
  }
  return TCRT_OK;
}

tcrt_status_t tcrt_context_program_result(tcrt_context_t *context, int32_t code) {
  if (context->run_status != TCRT_OK)
    return tcrt_fail(context->run_status, "%s", context->run_message ? context->run_message : "error: no memory left");
  if (code == TCRT_CODE_OK)
    return TCRT_OK;
  if (code == TCRT_CODE_REFUSED)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: the model does not take inputs of these sizes",
                     tcrt_context_file(context));
  if (code == TCRT_CODE_NO_MEMORY)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for the run", tcrt_context_file(context));
  return tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: the compiled program failed with code %d; please report this",
                   tcrt_context_file(context), code);
}

void tcrt_context_clear_failure(tcrt_context_t *context) {
  context->run_status = TCRT_OK;
  free(context->run_message);
  context->run_message = NULL;
}

/* The arena for the sizes that are known: another function may have had a smaller one. */
static tcrt_status_t place_arena(tcrt_context_t *context) {
  tcrt_bindings_t *bindings = context->bindings;
  if (context->arena_bytes < bindings->arena_size) {
    tcrt_status_t status =
        tcrt_context_grow(context, &context->arena, &context->arena_bytes, bindings->arena_size, "the arena");
    if (status != TCRT_OK)
      return status;
  }
  context->frame.arena = context->arena;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_infer_sizes(tcrt_context_t *context) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_model_t *model = context->model;
  if (context->bindings->stage >= TCRT_STAGE_INFERRED)
    return place_arena(context);
  context->bindings->stage = TCRT_STAGE_BOUND;
  tcrt_status_t status = bind_symbols(context);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < function->output_dim_count; ++i)
    context->bindings->output_dims[i] = -1;
  context->frame.arena_size = 0;
  tcrt_context_clear_failure(context);
  status = tcrt_context_program_result(context, context->bindings->routine->infer(&context->frame));
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < function->symbol_count; ++i) {
    if (context->bindings->symbols[i] >= 0 && !meets_guard(&function->symbols[i], context->bindings->symbols[i])) {
      char guard[128];
      print_guard(&function->symbols[i], guard, sizeof guard);
      return tcrt_fail(TCRT_ERROR_REFUSED,
                       "%s: error: the size %s, which follows from the inputs' sizes, is %lld, expected %s",
                       model->name, function->symbol_names[i], (long long)context->bindings->symbols[i], guard);
    }
  }
  int64_t *dims = context->bindings->output_dims;
  for (uint32_t i = 0; i < function->output_count; dims += function->outputs[i].rank, ++i) {
    tcrt_bound_t *output = &context->bindings->outputs[i];
    uint64_t size_bytes;
    output->is_known = 1;
    output->is_set = 0;
    for (uint32_t d = 0; d < function->outputs[i].rank; ++d)
      output->is_known &= dims[d] >= 0;
    if (output->is_known &&
        !tcrt_tensor_size((tcrt_dtype_t)function->outputs[i].dtype, function->outputs[i].rank, dims, &size_bytes))
      return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: output \"%s\" would be too large for inputs of these sizes",
                       model->name, function->output_names[i]);
  }
  if (context->frame.arena_size > (uint64_t)INT64_MAX)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the run would need %llu bytes for inputs of these sizes",
                     model->name, (unsigned long long)context->frame.arena_size);
  for (uint32_t i = 0; context->memory_limit && i < function->output_count; ++i) {
    tcrt_bound_t *output = &context->bindings->outputs[i];
    context->driver->release(context, output->own, output->own_bytes);
    tcrt_context_discharge(context, output->own_bytes);
    output->own = NULL;
    output->own_bytes = 0;
  }
  context->bindings->arena_size = context->frame.arena_size;
  status = tcrt_context_grow(context, &context->arena, &context->arena_bytes, context->frame.arena_size, "the arena");
  if (status != TCRT_OK)
    return status;
  context->frame.arena = context->arena;
  context->bindings->entry = tcrt_choose_entry(model, function, context->bindings->symbols);
  context->bindings->stage = TCRT_STAGE_INFERRED;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_infer(tcrt_context_t *context) {
  ENTER(context);
  return tcrt_context_leave(context, tcrt_context_infer_sizes(context));
}

tcrt_status_t tcrt_context_check_output(const tcrt_context_t *context, uint32_t index) {
  const tcrt_model_function_t *function = context->bindings->function;
  uint32_t count = function->output_count;
  return index < count ? TCRT_OK
                       : tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no output %u; the model has %u",
                                   tcrt_context_file(context), index, count);
}

void tcrt_context_describe_output(const tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_sig_value_t *value = &function->outputs[index];
  tensor->dtype = (tcrt_dtype_t)value->dtype;
  tensor->rank = value->rank;
  memcpy(tensor->dims, tcrt_context_output_dims(context, index), tensor->rank * sizeof(int64_t));
  tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &tensor->size_bytes);
}

tcrt_status_t tcrt_context_output_shape(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  TCRT_NEEDS(tensor);
  memset(tensor, 0, sizeof *tensor);
  ENTER(context);
  tcrt_status_t status = tcrt_context_check_output(context, index);
  if (status == TCRT_OK && context->bindings->stage < TCRT_STAGE_INFERRED)
    status = tcrt_fail(TCRT_ERROR_INVALID,
                       "%s: error: the outputs' sizes are not known; call tcrt_context_infer after setting inputs",
                       tcrt_context_file(context));
  if (status == TCRT_OK)
    tcrt_context_describe_output(context, index, tensor);
  return tcrt_context_leave(context, status);
}
