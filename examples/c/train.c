/*
 * train.c - trains a model on a device, with nothing but tcrt.h: no Python, no framework.
 *
 *   cc train.c $(pkg-config --cflags --libs tcrt) -o train && ./train training.bin data.raw [decay]
 *
 * The artifact is one of tc_compiler.compile_training (docs/python.md). data.raw holds, for each step, the elements of
 * all inputs of the function "step" in their order, row-major. Prints the loss of each step. With `decay` the learning
 * rates are multiplied by it after each one. The states (parameters,
 * statistics, the optimiser's) stay in the context, where tcrt_context_read_state and tcrt_context_write_state save and
 * restore them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tcrt/tcrt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  tcrt_model_t *model;
  tcrt_context_t *context;
  uint32_t count; /* inputs of "step" */
  tcrt_tensor_t *inputs;
} trainer_t;

/* The element of a loss, which is of the module's float type. */
static double number_of(const tcrt_tensor_t *loss) {
  uint16_t bits;
  uint32_t wide;
  float value;
  if (loss->dtype == TCRT_DTYPE_F64)
    return *(const double *)loss->data;
  if (loss->dtype == TCRT_DTYPE_F32)
    return *(const float *)loss->data;
  memcpy(&bits, loss->data, sizeof bits);
  if (loss->dtype == TCRT_DTYPE_F16) {
    int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double size = exponent == 0x1f ? (fraction ? NAN : INFINITY)
                                   : ldexp(exponent ? fraction + 1024 : fraction, (exponent ? exponent : 1) - 25);
    return bits >> 15 ? -size : size;
  }
  wide = (uint32_t)bits << 16; /* bf16: the upper half of an f32 */
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Binds a buffer to every input. The buffers stay in use until the context ends. */
static tcrt_status_t open_trainer(const char *path, trainer_t *t) {
  tcrt_function_info_t info;
  uint32_t step;
  tcrt_status_t status = tcrt_model_open_file(path, NULL, &t->model);
  if (status == TCRT_OK)
    status = tcrt_model_find_function(t->model, "step", &step);
  if (status == TCRT_OK)
    status = tcrt_model_function(t->model, step, &info);
  if (status == TCRT_OK)
    status = tcrt_context_create(t->model, NULL, &t->context);
  if (status == TCRT_OK)
    status = tcrt_context_set_function(t->context, step);
  if (status != TCRT_OK)
    return status;
  t->inputs = calloc(info.input_count + 1, sizeof *t->inputs);
  for (; t->inputs && status == TCRT_OK && t->count < info.input_count; ++t->count) {
    tcrt_value_info_t value;
    status = tcrt_model_function_input(t->model, step, t->count, &value);
    if (status != TCRT_OK)
      return status;
    tcrt_tensor_t *tensor = &t->inputs[t->count];
    tensor->dtype = value.dtype;
    tensor->rank = value.rank;
    for (uint32_t d = 0; d < value.rank; ++d) {
      tensor->dims[d] = value.dims[d];
      if (value.dims[d] < 0) {
        fprintf(stderr,
                "train: %s: input \"%s\" has sizes of any kind (dynamic), which DATA does not tell; compile it for one "
                "size\n",
                path, value.name);
        return TCRT_ERROR_REFUSED;
      }
    }
    if (!tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &tensor->size_bytes))
      return TCRT_ERROR_REFUSED;
    tensor->data = malloc(tensor->size_bytes + 1);
    status = tensor->data ? tcrt_context_set_input(t->context, t->count, tensor) : TCRT_ERROR_MACHINE;
  }
  return t->inputs ? status : TCRT_ERROR_MACHINE;
}

/* Whether there was another batch. */
static int read_batch(FILE *file, trainer_t *t) {
  for (uint32_t i = 0; i < t->count; ++i)
    if (fread(t->inputs[i].data, 1, t->inputs[i].size_bytes, file) != t->inputs[i].size_bytes)
      return 0;
  return t->count > 0;
}

/* Learning rates are the state "optimizer.lr": f64, one for each group of parameters. */
static tcrt_status_t decay_rates(trainer_t *t, double decay) {
  uint32_t index;
  tcrt_state_info_t info;
  tcrt_status_t status = tcrt_model_find_state(t->model, "optimizer.lr", &index);
  if (status == TCRT_OK)
    status = tcrt_model_state(t->model, index, &info);
  if (status != TCRT_OK)
    return status;
  double *rates = malloc((size_t)info.dims[0] * sizeof *rates + 1);
  if (!rates)
    return TCRT_ERROR_MACHINE;
  tcrt_tensor_t tensor = {0};
  tensor.dtype = info.dtype;
  tensor.rank = info.rank;
  tensor.dims[0] = info.dims[0];
  tensor.data = rates;
  tensor.size_bytes = (size_t)info.dims[0] * sizeof *rates;
  status = tcrt_context_read_state(t->context, index, &tensor);
  for (int64_t i = 0; i < info.dims[0]; ++i)
    rates[i] *= decay;
  if (status == TCRT_OK)
    status = tcrt_context_write_state(t->context, index, &tensor);
  free(rates);
  return status;
}

int main(int argc, char **argv) {
  trainer_t t = {0};
  FILE *file = argc == 3 || argc == 4 ? fopen(argv[2], "rb") : NULL;
  if (!file) {
    if (argc == 3 || argc == 4)
      fprintf(stderr, "train: cannot read %s\n", argv[2]);
    else
      fprintf(stderr, "usage: train ARTIFACT DATA [DECAY]\n");
    return 1;
  }
  tcrt_status_t status = open_trainer(argv[1], &t);
  for (int step = 0; status == TCRT_OK && read_batch(file, &t); ++step) {
    tcrt_tensor_t loss;
    status = tcrt_context_run(t.context);
    if (status == TCRT_OK)
      status = tcrt_context_get_output(t.context, 0, &loss);
    if (status == TCRT_OK)
      printf("step %d: loss %.9g\n", step, number_of(&loss));
    if (status == TCRT_OK && argc == 4)
      status = decay_rates(&t, strtod(argv[3], NULL));
  }
  if (status != TCRT_OK && *tcrt_last_error())
    fprintf(stderr, "%s\n", tcrt_last_error());
  fclose(file);
  tcrt_context_destroy(t.context);
  tcrt_model_close(t.model);
  for (uint32_t i = 0; i < t.count; ++i)
    free(t.inputs[i].data);
  free(t.inputs);
  return (int)status;
}
