/*
 * operators.c - the functions of the operators of operators.json and torch_operators.json, as a library for the
 * runtime.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tcrt/function.h"

#include <string.h>

static int64_t count_of(const tcrt_operand_t *operand) {
  int64_t count = 1;
  for (uint32_t i = 0; i < operand->rank; ++i)
    count *= operand->dims[i];
  return count;
}

/* Polynomial(x; coefficients): y = c0 + c1 x + c2 x^2 + ..., of the dims of x. Attributes follow the operands. */
static tcrt_status_t polynomial(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const tcrt_operand_t *x = &call->operands[0], *coefficients = &call->operands[1];
  const float *from = x->data;
  const double *c = coefficients->data;
  float *to = call->results[0].data;
  if (coefficients->dims[0] == 0)
    return services->fail(TCRT_ERROR_REFUSED, "a polynomial needs a coefficient");
  for (int64_t i = 0; i < count_of(x); ++i) {
    double y = 0;
    for (int64_t k = coefficients->dims[0]; k-- > 0;)
      y = y * from[i] + c[k];
    to[i] = (float)y;
  }
  return TCRT_OK;
}

/* Above(x; limit): the elements of x above the limit. How many, only the function knows: it returns a handle. */
static tcrt_status_t above(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  const tcrt_operand_t *x = &call->operands[0];
  const float *from = x->data;
  double limit = *(const double *)call->operands[1].data;
  int64_t kept = 0;
  for (int64_t i = 0; i < count_of(x); ++i)
    kept += from[i] > limit;
  void *data;
  tcrt_status_t status =
      services->make_tensor(store, TCRT_DTYPE_F32, 1, &kept, &data, (int64_t *)call->results[0].data);
  if (status != TCRT_OK)
    return status;
  float *to = data;
  for (int64_t i = 0; i < count_of(x); ++i)
    if (from[i] > limit)
      *to++ = from[i];
  return TCRT_OK;
}

/* Label(x; prefix, digits): a string for each row of x, the prefix and the row's number: [rows]. */
static tcrt_status_t label(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  tcrt_string_t prefix = services->string(store, *(const int64_t *)call->operands[1].data);
  int64_t digits = *(const int64_t *)call->operands[2].data, *ids = call->results[0].data;
  char text[64];
  if (digits < 1 || digits > 18 || prefix.size_bytes > sizeof text - 18)
    return services->fail(TCRT_ERROR_REFUSED, "the label has up to 46 characters and 1 to 18 digits");
  if (prefix.size_bytes)
    memcpy(text, prefix.data, prefix.size_bytes);
  for (int64_t i = 0; i < call->results[0].dims[0]; ++i) {
    int64_t number = i;
    for (int64_t d = digits; d-- > 0; number /= 10)
      text[prefix.size_bytes + (uint64_t)d] = (char)('0' + number % 10);
    ids[i] = services->intern(store, text, prefix.size_bytes + (uint64_t)digits);
    if (ids[i] < 0)
      return TCRT_ERROR_MACHINE;
  }
  return TCRT_OK;
}

/* accumulate(x, total, decay) writes total = decay total + x and returns x - total. Behind the results stands what is
 * written, with the elements that it had; the operand keeps them. */
static tcrt_status_t accumulate(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const tcrt_operand_t *x = &call->operands[0];
  float decay = (float)*(const double *)call->operands[2].data;
  const float *from = x->data;
  float *result = call->results[0].data, *total = call->results[1].data;
  if (count_of(x) != count_of(&call->results[1]))
    return services->fail(TCRT_ERROR_REFUSED, "x and total have other sizes");
  for (int64_t i = 0; i < count_of(x); ++i) {
    total[i] = decay * total[i] + from[i];
    result[i] = from[i] - total[i];
  }
  return TCRT_OK;
}

/* bump(x, n) adds n times its number to each row of x, and returns nothing. */
static tcrt_status_t bump(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const tcrt_operand_t *x = &call->results[0];
  int64_t n = *(const int64_t *)call->operands[1].data;
  float *to = x->data;
  if (x->rank == 0)
    return services->fail(TCRT_ERROR_REFUSED, "a number has no rows");
  int64_t rows = x->dims[0], each = rows ? count_of(x) / rows : 0;
  for (int64_t i = 0; i < rows * each; ++i)
    to[i] += (float)(n * (i / each));
  return TCRT_OK;
}

/* exchange(x, y) gives each the elements of the other. */
static tcrt_status_t exchange(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  size_t size = sizeof(float) * (size_t)count_of(&call->operands[0]);
  if (count_of(&call->operands[0]) != count_of(&call->operands[1]))
    return services->fail(TCRT_ERROR_REFUSED, "x and y have other sizes");
  if (size) {
    memcpy(call->results[0].data, call->operands[1].data, size);
    memcpy(call->results[1].data, call->operands[0].data, size);
  }
  return TCRT_OK;
}

__attribute__((visibility("default"))) const tcrt_function_t *tcrt_library_functions(uint64_t *count) {
  static const tcrt_function_t functions[] = {
      {"example_polynomial", polynomial}, {"example_above", above}, {"example_label", label},
      {"example_accumulate", accumulate}, {"example_bump", bump},   {"example_exchange", exchange}};
  *count = sizeof functions / sizeof functions[0];
  return functions;
}
