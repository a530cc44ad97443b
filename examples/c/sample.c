/*
 * sample.c - loads a compiled model and runs it once, with nothing but tcrt.h.
 *
 *   cc sample.c $(pkg-config --cflags --libs tcrt) -o sample && ./sample model.bin
 *
 * Every input is filled with ones (symbolic sizes take the smallest value from 1 on that the model allows); the first
 * elements of every output are printed.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tcrt/tcrt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tcrt_model_t *model;
static tcrt_context_t *context;
static void **buffers;

/* The status doubles as exit code. */
static int fail(tcrt_status_t status) {
  fprintf(stderr, "%s\n", tcrt_last_error());
  return (int)status;
}

/* Fills one input with ones of its type. Types that this sample does not know are left at zero. */
static tcrt_status_t fill_input(uint32_t index) {
  tcrt_value_info_t info;
  tcrt_status_t status = tcrt_model_input(model, index, &info);
  if (status != TCRT_OK || (info.flags & TCRT_VALUE_FLAG_DEFAULT))
    return status;
  tcrt_tensor_t tensor = {info.dtype, info.rank, {0}, NULL, 0, TCRT_DEVICE_CPU};
  for (uint32_t i = 0; i < info.rank; ++i) {
    tensor.dims[i] = info.dims[i] >= 0 ? info.dims[i] : 1;
    if (info.symbols[i] >= 0) {
      tcrt_symbol_info_t symbol;
      status = tcrt_model_symbol(model, (uint32_t)info.symbols[i], &symbol);
      if (status != TCRT_OK)
        return status;
      int64_t size = symbol.min > 1 ? symbol.min : 1;
      tensor.dims[i] = (size + symbol.divisor - 1) / symbol.divisor * symbol.divisor;
    }
  }
  if (!tcrt_tensor_size(tensor.dtype, tensor.rank, tensor.dims, &tensor.size_bytes))
    return TCRT_ERROR_REFUSED;
  buffers[index] = tensor.data = calloc(1, tensor.size_bytes + 1);
  if (!tensor.data)
    return TCRT_ERROR_MACHINE;
  if (info.dtype == TCRT_DTYPE_F32)
    for (uint64_t i = 0; i < tensor.size_bytes / sizeof(float); ++i)
      ((float *)tensor.data)[i] = 1.0f;
  if (info.dtype == TCRT_DTYPE_I64)
    for (uint64_t i = 0; i < tensor.size_bytes / sizeof(int64_t); ++i)
      ((int64_t *)tensor.data)[i] = 1;
  return tcrt_context_set_input(context, index, &tensor);
}

static tcrt_status_t print_output(uint32_t index) {
  tcrt_value_info_t info;
  tcrt_tensor_t tensor;
  tcrt_status_t status = tcrt_model_output(model, index, &info);
  if (status == TCRT_OK)
    status = tcrt_context_get_output(context, index, &tensor);
  if (status != TCRT_OK)
    return status;
  printf("%s: %s (", info.name, tcrt_dtype_name(tensor.dtype));
  for (uint32_t i = 0; i < tensor.rank; ++i)
    printf("%s%" PRId64, i ? ", " : "", tensor.dims[i]);
  printf(")");
  if (tensor.dtype == TCRT_DTYPE_F32)
    for (uint64_t i = 0; i < 4 && i < tensor.size_bytes / sizeof(float); ++i)
      printf(" %g", (double)((const float *)tensor.data)[i]);
  printf("\n");
  return TCRT_OK;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: sample ARTIFACT\n");
    return 1;
  }
  printf("libtcrt %s\n", tcrt_version());
  tcrt_status_t status = tcrt_model_open_file(argv[1], NULL, &model);
  if (status != TCRT_OK)
    return fail(status);
  status = tcrt_context_create(model, NULL, &context);
  if (status == TCRT_OK) {
    uint32_t count = tcrt_model_input_count(model);
    buffers = calloc(count + 1, sizeof *buffers);
    for (uint32_t i = 0; buffers && status == TCRT_OK && i < count; ++i)
      status = fill_input(i);
    if (status == TCRT_OK)
      status = tcrt_context_run(context);
    for (uint32_t i = 0; status == TCRT_OK && i < tcrt_model_output_count(model); ++i)
      status = print_output(i);
    for (uint32_t i = 0; buffers && i < count; ++i)
      free(buffers[i]);
    free(buffers);
  }
  int code = status == TCRT_OK ? 0 : fail(status);
  tcrt_context_destroy(context);
  tcrt_model_close(model);
  return code;
}
