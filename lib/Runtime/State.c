/*
 * State.c - the states of a context: device memory that is made with the context and outlives its runs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Context.h"

#include <stdlib.h>
#include <string.h>

static tcrt_status_t reset(tcrt_context_t *context, uint32_t index) {
  const tcrt_sig_state_t *state = &context->model->container.states[index];
  int64_t dims[TCRT_MAX_RANK];
  uint64_t bytes = tcrt_model_state_size(context->model, index, dims);
  if (state->flags & TCRT_STATE_FLAG_INITIAL)
    return context->driver->copy(context, context->states[index], context->frame.weights + state->initial_offset, bytes,
                                 TCRT_COPY_DEVICE_TO_DEVICE);
  return context->driver->clear(context, context->states[index], bytes);
}

tcrt_status_t tcrt_context_make_states(tcrt_context_t *context) {
  const uint32_t count = context->model->container.state_count;
  context->states = calloc((size_t)count + 1, sizeof *context->states);
  if (!context->states)
    return tcrt_context_no_memory(context, "a context", sizeof *context->states);
  context->frame.states = context->states;
  tcrt_status_t status = TCRT_OK;
  for (uint32_t i = 0; status == TCRT_OK && i < count; ++i) {
    int64_t dims[TCRT_MAX_RANK];
    uint64_t has = 0, bytes = tcrt_model_state_size(context->model, i, dims);
    status = tcrt_context_grow(context, &context->states[i], &has, bytes, "a state");
    if (status == TCRT_OK)
      status = reset(context, i);
  }
  return status == TCRT_OK ? context->driver->synchronize(context) : status;
}

void tcrt_context_free_states(tcrt_context_t *context) {
  int64_t dims[TCRT_MAX_RANK];
  for (uint32_t i = 0; context->states && i < context->model->container.state_count; ++i)
    if (context->states[i])
      context->driver->release(context, context->states[i], tcrt_model_state_size(context->model, i, dims));
  free(context->states);
}

tcrt_status_t tcrt_context_set_seed(tcrt_context_t *context, uint64_t seed) {
  ENTER(context);
  uint32_t index;
  /* Without such a state nothing is random. */
  if (tcrt_model_find_state(context->model, TCRT_RANDOM_STATE, &index) != TCRT_OK)
    return tcrt_context_leave(context, TCRT_OK);
  int64_t dims[TCRT_MAX_RANK];
  const int64_t value[2] = {(int64_t)seed, 0};
  if (context->model->container.states[index].dtype != TCRT_DTYPE_I64 ||
      tcrt_model_state_size(context->model, index, dims) != sizeof value)
    return tcrt_context_leave(context, tcrt_fail(TCRT_ERROR_INVALID,
                                                 "%s: error: state \"%s\" is not what random numbers are drawn from; "
                                                 "compile the model again",
                                                 tcrt_context_file(context), TCRT_RANDOM_STATE));
  tcrt_status_t status =
      context->driver->copy(context, context->states[index], value, sizeof value, TCRT_COPY_HOST_TO_DEVICE);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  return tcrt_context_leave(context, status);
}

static tcrt_status_t check_index(const tcrt_context_t *context, uint32_t index) {
  uint32_t count = context->model->container.state_count;
  return index < count ? TCRT_OK
                       : tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no state %u; the model has %u",
                                   tcrt_context_file(context), index, count);
}

tcrt_status_t tcrt_context_reset_state(tcrt_context_t *context, uint32_t index) {
  ENTER(context);
  const uint32_t count = context->model->container.state_count;
  tcrt_status_t status = index == TCRT_ALL_STATES ? TCRT_OK : check_index(context, index);
  uint32_t first = index == TCRT_ALL_STATES ? 0 : index, end = index == TCRT_ALL_STATES ? count : index + 1;
  for (uint32_t i = first; status == TCRT_OK && i < end; ++i)
    status = reset(context, i);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  return tcrt_context_leave(context, status);
}

/* Refuses a tensor that is not just as the state is. */
static tcrt_status_t check_tensor(const tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor,
                                  uint64_t *bytes) {
  tcrt_status_t status = check_index(context, index);
  if (status != TCRT_OK)
    return status;
  const tcrt_sig_state_t *state = &context->model->container.states[index];
  const char *name = context->model->state_names[index];
  int64_t dims[TCRT_MAX_RANK];
  *bytes = tcrt_model_state_size(context->model, index, dims);
  if (!tensor)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: state \"%s\": no tensor is given", tcrt_context_file(context),
                     name);
  if (tensor->dtype != (tcrt_dtype_t)state->dtype)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: state \"%s\": the tensor's dtype is %s, expected %s",
                     tcrt_context_file(context), name, tcrt_dtype_name(tensor->dtype),
                     tcrt_dtype_name((tcrt_dtype_t)state->dtype));
  if (tensor->rank != state->rank || memcmp(tensor->dims, dims, state->rank * sizeof *dims) != 0) {
    char expected[512], got[512];
    tcrt_print_dims(dims, state->rank, expected, sizeof expected);
    tcrt_print_dims(tensor->dims, tensor->rank < TCRT_MAX_RANK ? tensor->rank : TCRT_MAX_RANK, got, sizeof got);
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: state \"%s\": the tensor's dims are %s, expected %s",
                     tcrt_context_file(context), name, got, expected);
  }
  if (tensor->size_bytes < *bytes || (*bytes && !tensor->data))
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: state \"%s\": the buffer has %llu bytes, expected %llu",
                     tcrt_context_file(context), name, (unsigned long long)(tensor->data ? tensor->size_bytes : 0),
                     (unsigned long long)*bytes);
  if (tensor->device != TCRT_DEVICE_CPU && tensor->device != context->driver->device)
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: state \"%s\": the tensor's device is %u, expected host memory or that of %s",
                     tcrt_context_file(context), name, tensor->device, tcrt_device_name(context->driver->device));
  return TCRT_OK;
}

tcrt_status_t tcrt_context_read_state(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  ENTER(context);
  uint64_t bytes;
  tcrt_status_t status = check_tensor(context, index, tensor, &bytes);
  if (status == TCRT_OK)
    status = context->driver->copy(context, tensor->data, context->states[index], bytes,
                                   tensor->device == context->driver->device ? TCRT_COPY_DEVICE_TO_DEVICE
                                                                             : TCRT_COPY_DEVICE_TO_HOST);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  return tcrt_context_leave(context, status);
}

tcrt_status_t tcrt_context_write_state(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  ENTER(context);
  uint64_t bytes;
  tcrt_status_t status = check_tensor(context, index, tensor, &bytes);
  if (status == TCRT_OK)
    status = context->driver->copy(context, context->states[index], tensor->data, bytes,
                                   tensor->device == context->driver->device ? TCRT_COPY_DEVICE_TO_DEVICE
                                                                             : TCRT_COPY_HOST_TO_DEVICE);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  return tcrt_context_leave(context, status);
}
