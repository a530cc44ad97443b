/*
 * states.c - several functions and states of a compiled model, with nothing but tcrt.h.
 *
 *   cc states.c $(pkg-config --cflags --libs tcrt) -o states && ./states model.bin
 *
 * Lists functions and states, runs the first function three times in one context and shows the state "runs", which such
 * a model counts in (test/Driver/functions.mlir is one), then resets all states. The function's inputs are tensors of
 * fixed sizes and begin as zeros.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tcrt/tcrt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The status doubles as exit code. */
static int fail(tcrt_status_t status) {
  fprintf(stderr, "%s\n", tcrt_last_error());
  return (int)status;
}

static tcrt_status_t list(const tcrt_model_t *model) {
  tcrt_status_t status = TCRT_OK;
  for (uint32_t i = 0; status == TCRT_OK && i < tcrt_model_function_count(model); ++i) {
    tcrt_function_info_t info;
    status = tcrt_model_function(model, i, &info);
    if (status == TCRT_OK)
      printf("function %" PRIu32 ": %s\n", i, info.name);
  }
  for (uint32_t i = 0; status == TCRT_OK && i < tcrt_model_state_count(model); ++i) {
    tcrt_state_info_t info;
    status = tcrt_model_state(model, i, &info);
    if (status == TCRT_OK)
      printf("state %" PRIu32 ": %s, %" PRIu64 " bytes\n", i, info.name, info.size_bytes);
  }
  return status;
}

/* Binds zeros to every input of the chosen function. The buffers stay in use until the context ends. */
static tcrt_status_t bind(const tcrt_model_t *model, tcrt_context_t *context, uint32_t count, void **buffers) {
  tcrt_status_t status = TCRT_OK;
  for (uint32_t i = 0; status == TCRT_OK && i < count; ++i) {
    tcrt_value_info_t info;
    status = tcrt_model_function_input(model, tcrt_context_function(context), i, &info);
    if (status != TCRT_OK)
      break;
    tcrt_tensor_t tensor = {info.dtype, info.rank, {0}, NULL, 0, TCRT_DEVICE_CPU};
    for (uint32_t d = 0; d < info.rank; ++d)
      tensor.dims[d] = info.dims[d];
    if (!tcrt_tensor_size(tensor.dtype, tensor.rank, tensor.dims, &tensor.size_bytes))
      return TCRT_ERROR_REFUSED;
    buffers[i] = tensor.data = calloc(1, tensor.size_bytes + 1);
    status = tensor.data ? tcrt_context_set_input(context, i, &tensor) : TCRT_ERROR_MACHINE;
  }
  return status;
}

static tcrt_status_t print_runs(tcrt_context_t *context, uint32_t state, const char *when) {
  int64_t runs = 0;
  tcrt_tensor_t tensor = {TCRT_DTYPE_I64, 0, {0}, &runs, sizeof runs, TCRT_DEVICE_CPU};
  tcrt_status_t status = tcrt_context_read_state(context, state, &tensor);
  if (status == TCRT_OK)
    printf("runs after %s: %" PRId64 "\n", when, runs);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: states ARTIFACT\n");
    return 1;
  }
  tcrt_model_t *model = NULL;
  tcrt_context_t *context = NULL;
  tcrt_function_info_t function = {0};
  uint32_t counter;
  void **buffers = NULL;
  tcrt_status_t status = tcrt_model_open_file(argv[1], NULL, &model);
  if (status == TCRT_OK)
    status = list(model);
  if (status == TCRT_OK)
    status = tcrt_model_find_state(model, "runs", &counter);
  if (status == TCRT_OK)
    status = tcrt_model_function(model, 0, &function);
  if (status == TCRT_OK)
    status = tcrt_context_create(model, NULL, &context);
  if (status == TCRT_OK) {
    buffers = calloc(function.input_count + 1, sizeof *buffers);
    status = buffers ? bind(model, context, function.input_count, buffers) : TCRT_ERROR_MACHINE;
  }
  for (int i = 0; status == TCRT_OK && i < 3; ++i)
    status = tcrt_context_run(context);
  if (status == TCRT_OK)
    status = print_runs(context, counter, "3 runs");
  if (status == TCRT_OK)
    status = tcrt_context_reset_state(context, TCRT_ALL_STATES);
  if (status == TCRT_OK)
    status = print_runs(context, counter, "a reset");
  int code = status == TCRT_OK ? 0 : fail(status);
  tcrt_context_destroy(context);
  tcrt_model_close(model);
  for (uint32_t i = 0; buffers && i < function.input_count; ++i)
    free(buffers[i]);
  free(buffers);
  return code;
}
