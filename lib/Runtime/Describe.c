/*
 * Describe.c - what the API says of a model: functions, inputs, outputs, symbols, states, variants.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Internal.h"

#include <string.h>

tcrt_status_t tcrt_is_missing(const char *function, const char *argument) {
  return tcrt_fail(TCRT_ERROR_INVALID, "error: %s: %s is NULL; give its address", function, argument);
}

static tcrt_status_t bad_index(const tcrt_model_t *model, const char *what, uint32_t index, uint32_t count) {
  return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no %s %u; the model has %u", model->name, what, index,
                   count);
}

/* Position in the signature of the first one of this name, or `count`. */
static uint32_t find_name(const tcrt_name_t *sorted, uint32_t count, const char *name) {
  uint32_t begin = 0, end = name ? count : 0;
  while (begin < end) {
    uint32_t middle = begin + (end - begin) / 2;
    if (strcmp(sorted[middle].name, name) < 0)
      begin = middle + 1;
    else
      end = middle;
  }
  return name && begin < count && strcmp(sorted[begin].name, name) == 0 ? sorted[begin].index : count;
}

/* ---- functions ---- */

/* The function with this index, or NULL; the error is set. */
static const tcrt_model_function_t *function_at(const tcrt_model_t *model, uint32_t index) {
  if (index < model->container.function_count)
    return &model->functions[index];
  bad_index(model, "function", index, model->container.function_count);
  return NULL;
}

uint32_t tcrt_model_function_count(const tcrt_model_t *model) {
  TCRT_NEEDS_OR(model, 0);
  return model->container.function_count;
}

/* Checks the arguments of `api`, which describes a function or something of it, and empties `info`. */
static tcrt_status_t begin_info(const char *api, const tcrt_model_t *model, uint32_t index, void *info, size_t size,
                                const tcrt_model_function_t **function) {
  *function = NULL;
  if (!info)
    return tcrt_is_missing(api, "info");
  memset(info, 0, size);
  if (!model)
    return tcrt_is_missing(api, "model");
  *function = function_at(model, index);
  return *function ? TCRT_OK : TCRT_ERROR_INVALID;
}

tcrt_status_t tcrt_model_function(const tcrt_model_t *model, uint32_t index, tcrt_function_info_t *info) {
  const tcrt_model_function_t *function;
  tcrt_status_t status = begin_info(__func__, model, index, info, sizeof *info, &function);
  if (status != TCRT_OK)
    return status;
  info->name = function->name;
  info->input_count = function->input_count;
  info->output_count = function->output_count;
  info->symbol_count = function->symbol_count;
  return TCRT_OK;
}

tcrt_status_t tcrt_model_find_function(const tcrt_model_t *model, const char *name, uint32_t *index) {
  TCRT_NEEDS(index);
  *index = 0;
  TCRT_NEEDS(model);
  uint32_t count = model->container.function_count, found = find_name(model->sorted_functions, count, name);
  if (found < count) {
    *index = found;
    return TCRT_OK;
  }
  return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the model has no function \"%s\"; its first function is \"%s\"",
                   model->name, name ? name : "", model->functions[0].name);
}

/* ---- inputs and outputs ---- */

static void describe(const tcrt_model_t *model, const tcrt_sig_value_t *value, const char *name,
                     tcrt_value_info_t *info) {
  info->name = name;
  info->dtype = (tcrt_dtype_t)value->dtype;
  info->kind = value->kind;
  info->inner = value->inner;
  info->rank = value->rank;
  info->flags = value->flags;
  for (uint32_t i = 0; i < value->rank; ++i) {
    const tcrt_sig_dim_t *dim = &model->container.dims[value->first_dim + i];
    info->dims[i] = dim->kind == TCRT_DIM_STATIC ? dim->value : -1;
    info->symbols[i] = dim->kind == TCRT_DIM_SYMBOL ? (int32_t)dim->symbol : -1;
  }
}

tcrt_status_t tcrt_model_function_input(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                        tcrt_value_info_t *info) {
  const tcrt_model_function_t *f;
  tcrt_status_t status = begin_info(__func__, model, function, info, sizeof *info, &f);
  if (status != TCRT_OK)
    return status;
  if (index >= f->input_count)
    return bad_index(model, "input", index, f->input_count);
  describe(model, &f->inputs[index], f->input_names[index], info);
  return TCRT_OK;
}

tcrt_status_t tcrt_model_function_output(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                         tcrt_value_info_t *info) {
  const tcrt_model_function_t *f;
  tcrt_status_t status = begin_info(__func__, model, function, info, sizeof *info, &f);
  if (status != TCRT_OK)
    return status;
  if (index >= f->output_count)
    return bad_index(model, "output", index, f->output_count);
  describe(model, &f->outputs[index], f->output_names[index], info);
  return TCRT_OK;
}

tcrt_status_t tcrt_model_function_symbol(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                         tcrt_symbol_info_t *info) {
  const tcrt_model_function_t *f;
  tcrt_status_t status = begin_info(__func__, model, function, info, sizeof *info, &f);
  if (status != TCRT_OK)
    return status;
  if (index >= f->symbol_count)
    return bad_index(model, "symbol", index, f->symbol_count);
  const tcrt_sig_symbol_t *symbol = &f->symbols[index];
  info->name = f->symbol_names[index];
  info->min = symbol->min;
  info->max = symbol->max;
  info->divisor = symbol->divisor;
  return TCRT_OK;
}

uint32_t tcrt_model_input_count(const tcrt_model_t *model) {
  TCRT_NEEDS_OR(model, 0);
  return model->functions[0].input_count;
}
uint32_t tcrt_model_output_count(const tcrt_model_t *model) {
  TCRT_NEEDS_OR(model, 0);
  return model->functions[0].output_count;
}
uint32_t tcrt_model_symbol_count(const tcrt_model_t *model) {
  TCRT_NEEDS_OR(model, 0);
  return model->functions[0].symbol_count;
}

tcrt_status_t tcrt_model_input(const tcrt_model_t *model, uint32_t index, tcrt_value_info_t *info) {
  return tcrt_model_function_input(model, 0, index, info);
}

tcrt_status_t tcrt_model_output(const tcrt_model_t *model, uint32_t index, tcrt_value_info_t *info) {
  return tcrt_model_function_output(model, 0, index, info);
}

tcrt_status_t tcrt_model_symbol(const tcrt_model_t *model, uint32_t index, tcrt_symbol_info_t *info) {
  return tcrt_model_function_symbol(model, 0, index, info);
}

tcrt_status_t tcrt_model_find_input(const tcrt_model_t *model, const char *name, uint32_t *index) {
  return tcrt_model_function_find_input(model, 0, name, index);
}

tcrt_status_t tcrt_model_find_output(const tcrt_model_t *model, const char *name, uint32_t *index) {
  return tcrt_model_function_find_output(model, 0, name, index);
}

tcrt_status_t tcrt_model_function_find_input(const tcrt_model_t *model, uint32_t function, const char *name,
                                             uint32_t *index) {
  TCRT_NEEDS(index);
  *index = 0;
  TCRT_NEEDS(model);
  const tcrt_model_function_t *f = function_at(model, function);
  if (!f)
    return TCRT_ERROR_INVALID;
  uint32_t found = find_name(f->sorted_inputs, f->input_count, name);
  if (found == f->input_count)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: the model has no input \"%s\"; its first input is \"%s\"",
                     model->name, name ? name : "", f->input_count ? f->input_names[0] : "");
  *index = found;
  return TCRT_OK;
}

tcrt_status_t tcrt_model_function_find_output(const tcrt_model_t *model, uint32_t function, const char *name,
                                              uint32_t *index) {
  TCRT_NEEDS(index);
  *index = 0;
  TCRT_NEEDS(model);
  const tcrt_model_function_t *f = function_at(model, function);
  if (!f)
    return TCRT_ERROR_INVALID;
  uint32_t found = find_name(f->sorted_outputs, f->output_count, name);
  if (found == f->output_count)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the model has no output \"%s\"; its first output is \"%s\"",
                     model->name, name ? name : "", f->output_count ? f->output_names[0] : "");
  *index = found;
  return TCRT_OK;
}

/* ---- states ---- */

uint32_t tcrt_model_state_count(const tcrt_model_t *model) {
  TCRT_NEEDS_OR(model, 0);
  return model->container.state_count;
}

tcrt_status_t tcrt_model_state(const tcrt_model_t *model, uint32_t index, tcrt_state_info_t *info) {
  TCRT_NEEDS(info);
  memset(info, 0, sizeof *info);
  TCRT_NEEDS(model);
  if (index >= model->container.state_count)
    return bad_index(model, "state", index, model->container.state_count);
  info->name = model->state_names[index];
  info->dtype = (tcrt_dtype_t)model->container.states[index].dtype;
  info->rank = model->container.states[index].rank;
  info->size_bytes = tcrt_model_state_size(model, index, info->dims);
  return TCRT_OK;
}

tcrt_status_t tcrt_model_find_state(const tcrt_model_t *model, const char *name, uint32_t *index) {
  TCRT_NEEDS(index);
  *index = 0;
  TCRT_NEEDS(model);
  uint32_t count = model->container.state_count, found = find_name(model->sorted_states, count, name);
  if (found == count)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the model has no state \"%s\"; it has %u states", model->name,
                     name ? name : "", count);
  *index = found;
  return TCRT_OK;
}

/* ---- variants, manifest ---- */

uint32_t tcrt_model_variant_count(const tcrt_model_t *model) {
  TCRT_NEEDS_OR(model, 0);
  return model->container.signature->variant_count;
}

tcrt_status_t tcrt_model_variant(const tcrt_model_t *model, uint32_t index, tcrt_variant_info_t *info) {
  TCRT_NEEDS(info);
  memset(info, 0, sizeof *info);
  TCRT_NEEDS(model);
  if (index >= tcrt_model_variant_count(model))
    return bad_index(model, "variant", index, tcrt_model_variant_count(model));
  const tcrt_sig_variant_t variant = tcrt_container_variant(&model->container, index);
  info->name = tcrt_model_variant_name(model, index);
  info->device = variant.device;
  info->cpu_features = variant.cpu_features;
  info->usable = tcrt_is_usable(&variant, tcrt_cpu_features());
  info->code_bytes = model->container.sections[variant.section].size;
  return TCRT_OK;
}

tcrt_status_t tcrt_model_manifest(const tcrt_model_t *model, const char **text, uint64_t *size_bytes) {
  TCRT_NEEDS(text);
  TCRT_NEEDS(size_bytes);
  *text = "";
  *size_bytes = 0;
  TCRT_NEEDS(model);
  const tcrt_section_t *manifest = model->container.manifest;
  *text = manifest ? (const char *)model->container.data + manifest->offset : "";
  *size_bytes = manifest ? manifest->size : 0;
  return TCRT_OK;
}
