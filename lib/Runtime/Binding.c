/*
 * Binding.c - inputs and outputs of a context: what is bound to them, and what follows from the inputs' sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tcrt_model_has_static_inputs(const tcrt_model_t *model) {
  const tcrt_container_t *c = &model->container;
  for (uint32_t i = 0; i < c->signature->input_count; ++i)
    for (uint32_t d = 0; d < c->inputs[i].rank; ++d)
      if (c->dims[c->inputs[i].first_dim + d].kind != TCRT_DIM_STATIC)
        return 0;
  return 1;
}

/* ---- binding ---- */

int64_t *tcrt_context_output_dims(const tcrt_context_t *context, uint32_t index) {
  int64_t *dims = context->output_dims;
  for (uint32_t i = 0; i < index; ++i)
    dims += context->model->container.outputs[i].rank;
  return dims;
}

static void print_dims(const int64_t *dims, uint32_t rank, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "(");
  for (uint32_t i = 0; i < rank && used < size; ++i)
    used += (size_t)snprintf(text + used, size - used, i ? ", %lld" : "%lld", (long long)dims[i]);
  if (used < size)
    snprintf(text + used, size - used, ")");
}

/* "(batch, 3, ?)": what a value's shape may be. */
static void print_expected(const tcrt_model_t *model, const tcrt_sig_value_t *value, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "(");
  for (uint32_t i = 0; i < value->rank && used < size; ++i) {
    const tcrt_sig_dim_t *dim = &model->container.dims[value->first_dim + i];
    const char *comma = i ? ", " : "";
    if (dim->kind == TCRT_DIM_STATIC)
      used += (size_t)snprintf(text + used, size - used, "%s%lld", comma, (long long)dim->value);
    else
      used += (size_t)snprintf(text + used, size - used, "%s%s", comma,
                               dim->kind == TCRT_DIM_SYMBOL ? tcrt_model_symbol_name(model, dim->symbol) : "?");
  }
  if (used < size)
    snprintf(text + used, size - used, ")");
}

tcrt_status_t tcrt_context_not_given(const tcrt_model_t *model, uint32_t input) {
  const tcrt_sig_value_t *value = &model->container.inputs[input];
  char expected[512];
  print_expected(model, value, expected, sizeof expected);
  return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\" is not given; expected %s %s", model->name,
                   tcrt_model_input_name(model, input), tcrt_dtype_name((tcrt_dtype_t)value->dtype), expected);
}

static int is_device_usable(const tcrt_context_t *context, const tcrt_tensor_t *tensor) {
  return tensor->device == TCRT_DEVICE_CPU || tensor->device == context->driver->device;
}

static tcrt_status_t set_input(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  tcrt_model_t *model = context->model;
  const tcrt_container_t *c = &model->container;
  if (index >= c->signature->input_count)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: there is no input %u; the model has %u", model->name, index,
                     c->signature->input_count);
  tcrt_bound_t *bound = &context->inputs[index];
  if (!tensor) {
    if (bound->bound)
      context->shapes_are_known = 0;
    bound->bound = 0;
    context->overlap_checked = 0;
    return TCRT_OK;
  }
  const tcrt_sig_value_t *value = &c->inputs[index];
  const char *name = tcrt_model_input_name(model, index);
  if (value->kind != TCRT_VALUE_TENSOR)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\" is %s; give it by tcrt_context_set_input_value",
                     model->name, name, tcrt_kind_name(value->kind));
  if (tensor->dtype != (tcrt_dtype_t)value->dtype)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": its dtype is %s, expected %s", model->name, name,
                     tcrt_dtype_name(tensor->dtype), tcrt_dtype_name((tcrt_dtype_t)value->dtype));
  char expected[512], got[512];
  if (tensor->rank != value->rank) {
    print_expected(model, value, expected, sizeof expected);
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": its rank is %u, expected %u with dims %s",
                     model->name, name, tensor->rank, value->rank, expected);
  }
  for (uint32_t i = 0; i < value->rank; ++i) {
    const tcrt_sig_dim_t *dim = &c->dims[value->first_dim + i];
    if (tensor->dims[i] < 0 || (dim->kind == TCRT_DIM_STATIC && tensor->dims[i] != dim->value)) {
      print_expected(model, value, expected, sizeof expected);
      print_dims(tensor->dims, value->rank, got, sizeof got);
      return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": its dims are %s, expected %s", model->name, name,
                       got, expected);
    }
  }
  uint64_t size_bytes;
  print_dims(tensor->dims, value->rank, got, sizeof got);
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
                     tensor->device, context->driver->name);
  if (!bound->bound || memcmp(bound->tensor.dims, tensor->dims, value->rank * sizeof(int64_t)) != 0)
    context->shapes_are_known = context->shapes_are_known && tcrt_model_has_static_inputs(model);
  if (!bound->bound || bound->tensor.data != tensor->data || !context->shapes_are_known)
    context->overlap_checked = 0;
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
  const tcrt_container_t *c = &context->model->container;
  int is_tensor = index >= c->signature->input_count || c->inputs[index].kind == TCRT_VALUE_TENSOR;
  if (value && is_tensor && value->kind == TCRT_VALUE_TENSOR)
    return tcrt_context_leave(context, set_input(context, index, &value->tensor));
  if (!value || index >= c->signature->input_count)
    return tcrt_context_leave(context, set_input(context, index, NULL));
  tcrt_status_t status = tcrt_values_check(context->model, index, value);
  if (status != TCRT_OK)
    return tcrt_context_leave(context, status);
  tcrt_bound_t *bound = &context->inputs[index];
  memset(&bound->tensor, 0, sizeof bound->tensor);
  bound->value = *value;
  if (!bound->bound)
    context->shapes_are_known = context->shapes_are_known && tcrt_model_has_static_inputs(context->model);
  bound->bound = 1;
  return tcrt_context_leave(context, TCRT_OK);
}

static tcrt_status_t set_output(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  tcrt_model_t *model = context->model;
  if (index >= model->container.signature->output_count)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no output %u; the model has %u", model->name, index,
                     model->container.signature->output_count);
  tcrt_bound_t *bound = &context->outputs[index];
  context->overlap_checked = 0;
  bound->is_set = 0;
  if (!tensor) {
    bound->bound = 0;
    return TCRT_OK;
  }
  const tcrt_sig_value_t *value = &model->container.outputs[index];
  const char *name = tcrt_model_output_name(model, index);
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
                     name, tensor->device, context->driver->name);
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

/* Sets context->input_dims and binds symbols, each to the first dim of a given input that names it. */
static tcrt_status_t bind_symbols(tcrt_context_t *context) {
  const tcrt_model_t *model = context->model;
  const tcrt_container_t *c = &model->container;
  const tcrt_signature_t *s = c->signature;
  for (uint32_t i = 0; i < s->symbol_count; ++i)
    context->symbols[i] = -1;
  int64_t *dims = context->input_dims;
  for (uint32_t i = 0; i < s->input_count; dims += c->inputs[i].rank, ++i) {
    const tcrt_bound_t *bound = &context->inputs[i];
    for (uint32_t d = 0; d < c->inputs[i].rank; ++d) {
      const tcrt_sig_dim_t *dim = &c->dims[c->inputs[i].first_dim + d];
      dims[d] = bound->bound ? bound->tensor.dims[d] : dim->kind == TCRT_DIM_STATIC ? dim->value : -1;
      if (dims[d] < 0 || dim->kind != TCRT_DIM_SYMBOL)
        continue;
      const tcrt_sig_symbol_t *symbol = &c->symbols[dim->symbol];
      int64_t *value = &context->symbols[dim->symbol];
      if (*value < 0) {
        *value = dims[d];
        if (!meets_guard(symbol, *value)) {
          char guard[128];
          print_guard(symbol, guard, sizeof guard);
          return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": dim %u (%s) is %lld, expected %s", model->name,
                           tcrt_model_input_name(model, i), d, tcrt_model_symbol_name(model, dim->symbol),
                           (long long)*value, guard);
        }
      } else if (*value != dims[d]) {
        /* Find where it was bound. */
        for (uint32_t j = 0; j <= i; ++j)
          for (uint32_t e = 0; e < c->inputs[j].rank; ++e) {
            const tcrt_sig_dim_t *other = &c->dims[c->inputs[j].first_dim + e];
            if (context->inputs[j].bound && other->kind == TCRT_DIM_SYMBOL && other->symbol == dim->symbol)
              return tcrt_fail(
                  TCRT_ERROR_REFUSED,
                  "%s: error: input \"%s\": dim %u (%s) is %lld, expected %lld as in dim %u of input \"%s\"",
                  model->name, tcrt_model_input_name(model, i), d, tcrt_model_symbol_name(model, dim->symbol),
                  (long long)dims[d], (long long)*value, e, tcrt_model_input_name(model, j));
          }
      }
    }
  }
  /* Inputs that are not given. */
  dims = context->input_dims;
  for (uint32_t i = 0; i < s->input_count; dims += c->inputs[i].rank, ++i) {
    for (uint32_t d = 0; d < c->inputs[i].rank; ++d) {
      const tcrt_sig_dim_t *dim = &c->dims[c->inputs[i].first_dim + d];
      if (dims[d] >= 0)
        continue;
      if (!(c->inputs[i].flags & TCRT_VALUE_FLAG_UNUSED))
        return tcrt_context_not_given(model, i);
      if (dim->kind == TCRT_DIM_SYMBOL) {
        int64_t *value = &context->symbols[dim->symbol];
        if (*value < 0)
          *value = c->symbols[dim->symbol].min;
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

tcrt_status_t tcrt_context_infer_sizes(tcrt_context_t *context) {
  if (context->shapes_are_known)
    return TCRT_OK;
  const tcrt_model_t *model = context->model;
  const tcrt_container_t *c = &model->container;
  tcrt_status_t status = bind_symbols(context);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < model->output_dim_count; ++i)
    context->output_dims[i] = -1;
  context->frame.arena_size = 0;
  tcrt_context_clear_failure(context);
  status = tcrt_context_program_result(context, context->variant->program->infer(&context->frame));
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < c->signature->symbol_count; ++i) {
    if (context->symbols[i] >= 0 && !meets_guard(&c->symbols[i], context->symbols[i])) {
      char guard[128];
      print_guard(&c->symbols[i], guard, sizeof guard);
      return tcrt_fail(TCRT_ERROR_REFUSED,
                       "%s: error: the size %s, which follows from the inputs' sizes, is %lld, expected %s",
                       model->name, tcrt_model_symbol_name(model, i), (long long)context->symbols[i], guard);
    }
  }
  int64_t *dims = context->output_dims;
  for (uint32_t i = 0; i < c->signature->output_count; dims += c->outputs[i].rank, ++i) {
    tcrt_bound_t *output = &context->outputs[i];
    uint64_t size_bytes;
    output->is_known = 1;
    output->is_set = 0;
    for (uint32_t d = 0; d < c->outputs[i].rank; ++d)
      output->is_known &= dims[d] >= 0;
    if (output->is_known && !tcrt_tensor_size((tcrt_dtype_t)c->outputs[i].dtype, c->outputs[i].rank, dims, &size_bytes))
      return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: output \"%s\" would be too large for inputs of these sizes",
                       model->name, tcrt_model_output_name(model, i));
  }
  if (context->frame.arena_size > (uint64_t)INT64_MAX)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the run would need %llu bytes for inputs of these sizes",
                     model->name, (unsigned long long)context->frame.arena_size);
  for (uint32_t i = 0; context->memory_limit && i < c->signature->output_count; ++i) {
    tcrt_bound_t *output = &context->outputs[i];
    context->driver->release(context, output->own, output->own_bytes);
    tcrt_context_discharge(context, output->own_bytes);
    output->own = NULL;
    output->own_bytes = 0;
  }
  void *arena = context->frame.arena;
  status = tcrt_context_grow(context, &arena, &context->arena_bytes, context->frame.arena_size, "the arena");
  context->frame.arena = arena;
  if (status != TCRT_OK)
    return status;
  context->shapes_are_known = 1;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_infer(tcrt_context_t *context) {
  ENTER(context);
  return tcrt_context_leave(context, tcrt_context_infer_sizes(context));
}

tcrt_status_t tcrt_context_check_output(const tcrt_context_t *context, uint32_t index) {
  uint32_t count = context->model->container.signature->output_count;
  return index < count ? TCRT_OK
                       : tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no output %u; the model has %u",
                                   tcrt_context_file(context), index, count);
}

void tcrt_context_describe_output(const tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  const tcrt_sig_value_t *value = &context->model->container.outputs[index];
  tensor->dtype = (tcrt_dtype_t)value->dtype;
  tensor->rank = value->rank;
  memcpy(tensor->dims, tcrt_context_output_dims(context, index), tensor->rank * sizeof(int64_t));
  tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &tensor->size_bytes);
}

tcrt_status_t tcrt_context_output_shape(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  memset(tensor, 0, sizeof *tensor);
  ENTER(context);
  tcrt_status_t status = tcrt_context_check_output(context, index);
  if (status == TCRT_OK && !context->shapes_are_known)
    status = tcrt_fail(TCRT_ERROR_INVALID,
                       "%s: error: the outputs' sizes are not known; call tcrt_context_infer after setting inputs",
                       tcrt_context_file(context));
  if (status == TCRT_OK)
    tcrt_context_describe_output(context, index, tensor);
  return tcrt_context_leave(context, status);
}
