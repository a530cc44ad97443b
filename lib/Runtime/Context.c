/*
 * Context.c - binding tensors, shapes, memory and running.
 *
 * A call on a context first takes its `busy` flag; so a second thread gets an error instead of a race. What was
 * computed for the bound sizes (symbols, output sizes, arena) is kept until a size changes: a run with unchanged sizes
 * goes straight to the program.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE (UINT64_C(2) << 20)
#define MAX_THREADS 1024u

/* Where outputs without elements point: never read or written, but not NULL. */
static _Alignas(TCRT_DATA_ALIGN) uint8_t nothing[TCRT_DATA_ALIGN];

static const char *file_name(const tcrt_context_t *context) { return context->model->name; }

/* ---- memory ---- */

void *tcrt_host_allocate(tcrt_context_t *context, uint64_t bytes) {
  if (bytes == 0)
    bytes = 1;
  if (bytes > (uint64_t)INT64_MAX - HUGE_PAGE)
    return NULL;
  if (context->has_allocator)
    return context->allocator.allocate(context->allocator.user, bytes, TCRT_DATA_ALIGN);
  if (bytes < HUGE_PAGE) {
    void *data = NULL;
    return posix_memalign(&data, TCRT_DATA_ALIGN, bytes) == 0 ? data : NULL;
  }
  /* Large blocks start at a huge page, so that the kernel can back them with huge pages: fewer TLB misses. */
  uint64_t length = (bytes + 4095) & ~UINT64_C(4095);
  uint8_t *start = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED)
    return NULL;
  uint64_t head = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
  if (head)
    munmap(start, head);
  if (HUGE_PAGE - head)
    munmap(start + head + length, HUGE_PAGE - head);
  madvise(start + head, length, MADV_HUGEPAGE);
  return start + head;
}

void tcrt_host_release(tcrt_context_t *context, void *data, uint64_t bytes) {
  if (!data)
    return;
  if (bytes == 0)
    bytes = 1;
  if (context->has_allocator)
    context->allocator.release(context->allocator.user, data, bytes);
  else if (bytes < HUGE_PAGE)
    free(data);
  else
    munmap(data, (bytes + 4095) & ~UINT64_C(4095));
}

int tcrt_context_charge(tcrt_context_t *context, uint64_t bytes, const char *what) {
  uint64_t total;
  if (!tcrt_add(context->memory_bytes, bytes, &total) || (context->memory_limit && total > context->memory_limit)) {
    tcrt_fail(TCRT_ERROR_MACHINE,
              "%s: error: the context's memory limit of %llu bytes is exceeded: it holds %llu and %s needs %llu; raise "
              "the limit "
              "or use smaller inputs",
              file_name(context), (unsigned long long)context->memory_limit, (unsigned long long)context->memory_bytes,
              what, (unsigned long long)bytes);
    return 0;
  }
  context->memory_bytes = total;
  if (total > context->peak_bytes)
    context->peak_bytes = total;
  return 1;
}

void tcrt_context_discharge(tcrt_context_t *context, uint64_t bytes) { context->memory_bytes -= bytes; }

static tcrt_status_t no_memory(const tcrt_context_t *context, const char *what, uint64_t bytes) {
  return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for %s (%llu bytes)", file_name(context), what,
                   (unsigned long long)bytes);
}

/* Makes *data at least `bytes` large; its contents are lost. Where memory is limited, nothing is kept in reserve. */
static tcrt_status_t grow(tcrt_context_t *context, void **data, uint64_t *has, uint64_t bytes, const char *what) {
  if (*data && *has >= bytes && !(context->memory_limit && *has != bytes))
    return TCRT_OK;
  if (*data) {
    context->driver->release(context, *data, *has);
    tcrt_context_discharge(context, *has);
    *data = NULL;
    *has = 0;
  }
  if (!tcrt_context_charge(context, bytes, what))
    return TCRT_ERROR_MACHINE;
  *data = context->driver->allocate(context, bytes);
  if (!*data) {
    tcrt_context_discharge(context, bytes);
    return no_memory(context, what, bytes);
  }
  *has = bytes;
  return TCRT_OK;
}

static void release_blocks(tcrt_context_t *context) {
  while (context->blocks) {
    tcrt_block_t *block = context->blocks;
    context->blocks = block->next;
    context->driver->release(context, block->data, block->bytes);
    tcrt_context_discharge(context, block->bytes);
    free(block);
  }
}

/* ---- making and freeing ---- */

static int has_static_inputs(const tcrt_model_t *model) {
  const tcrt_container_t *c = &model->container;
  for (uint32_t i = 0; i < c->signature->input_count; ++i)
    for (uint32_t d = 0; d < c->inputs[i].rank; ++d)
      if (c->dims[c->inputs[i].first_dim + d].kind != TCRT_DIM_STATIC)
        return 0;
  return 1;
}

static tcrt_status_t infer(tcrt_context_t *context);

tcrt_status_t tcrt_context_create(tcrt_model_t *model, const tcrt_context_options_t *given, tcrt_context_t **result) {
  *result = NULL;
  if (!model)
    return tcrt_fail(TCRT_ERROR_INVALID, "error: no model is given; open one first");
  if (given && (given->size < offsetof(tcrt_context_options_t, variant) || given->size > 4096))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the options' size is not set; set it to sizeof(tcrt_context_options_t)", model->name);
  tcrt_context_options_t options = {0};
  if (given)
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
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
  context->profile = options.profile;
  context->device_outputs = options.device_outputs;
  if (options.executor && options.executor->parallel_for) {
    context->executor = *options.executor;
    context->has_executor = 1;
  }
  if (options.allocator && options.allocator->allocate && options.allocator->release) {
    context->allocator = *options.allocator;
    context->has_allocator = 1;
  }
  context->inputs = calloc(s->input_count + 1, sizeof *context->inputs);
  context->outputs = calloc(s->output_count + 1, sizeof *context->outputs);
  context->input_data = calloc(s->input_count + 1, sizeof *context->input_data);
  context->output_data = calloc(s->output_count + 1, sizeof *context->output_data);
  context->input_dims = calloc(model->input_dim_count + 1, sizeof *context->input_dims);
  context->output_dims = calloc(model->output_dim_count + 1, sizeof *context->output_dims);
  context->symbols = calloc(s->symbol_count + 1, sizeof *context->symbols);
  context->costs = calloc(s->kernel_count + 1, sizeof *context->costs);
  context->profile_ns = calloc(s->kernel_count + 1, sizeof *context->profile_ns);
  context->profile_launches = calloc(s->kernel_count + 1, sizeof *context->profile_launches);
  if (!context->inputs || !context->outputs || !context->input_data || !context->output_data || !context->input_dims ||
      !context->output_dims || !context->symbols || !context->costs || !context->profile_ns ||
      !context->profile_launches) {
    status = no_memory(context, "a context", sizeof *context);
    tcrt_context_destroy(context);
    return status;
  }
  for (uint32_t i = 0; i < s->kernel_count; ++i)
    context->costs[i] = (tcrt_cost_t){model->container.kernels[i].flops, model->container.kernels[i].bytes};
  pthread_mutex_lock(model->lock);
  status = tcrt_model_load_variant(model, variant, &context->variant);
  int needs_store = model->container.function_count > 0;
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
      tcrt_store_init(context->store, context, model->container.string_table);
    else
      status = no_memory(context, "a context", sizeof *context->store);
  }
  if (status == TCRT_OK && context->threads > 1 && !context->has_executor) {
    uint32_t helpers = tcrt_pool_grow(model->pool, context->threads - 1);
    if (helpers < context->threads - 1)
      tcrt_model_log(model, TCRT_LOG_WARNING, "%s: only %u of %u threads could be made", model->name, helpers + 1,
                     context->threads);
  }
  if (status == TCRT_OK) {
    tcrt_frame_t *frame = &context->frame;
    frame->imports = &tcrt_imports;
    frame->runtime = context;
    frame->weights = context->variant->weights;
    frame->inputs = context->input_data;
    frame->outputs = context->output_data;
    frame->input_dims = context->input_dims;
    frame->output_dims = context->output_dims;
    frame->symbols = context->symbols;
    frame->worker_count = context->threads;
    /* With fixed sizes the first run finds everything ready. */
    if (has_static_inputs(model))
      status = infer(context);
  }
  if (status != TCRT_OK) {
    tcrt_context_destroy(context);
    return status;
  }
  *result = context;
  return TCRT_OK;
}

void tcrt_context_destroy(tcrt_context_t *context) {
  if (!context)
    return;
  const tcrt_signature_t *s = context->model->container.signature;
  if (context->store)
    tcrt_store_destroy(context->store);
  free(context->store);
  if (context->driver) {
    release_blocks(context);
    for (uint32_t i = 0; i < s->input_count; ++i)
      context->driver->release(context, context->inputs[i].own, context->inputs[i].own_bytes);
    for (uint32_t i = 0; i < s->output_count; ++i) {
      context->driver->release(context, context->outputs[i].own, context->outputs[i].own_bytes);
      tcrt_host_release(context, context->outputs[i].host, context->outputs[i].host_bytes);
    }
    context->driver->release(context, context->frame.arena, context->arena_bytes);
    context->driver->context_close(context);
  }
  if (context->variant) {
    pthread_mutex_lock(context->model->lock);
    --context->model->context_count;
    pthread_mutex_unlock(context->model->lock);
  }
  free(context->inputs);
  free(context->outputs);
  free(context->input_data);
  free(context->output_data);
  free(context->input_dims);
  free(context->output_dims);
  free(context->symbols);
  free(context->costs);
  free(context->profile_ns);
  free(context->profile_launches);
  free(context->run_message);
  free(context);
}

/* ---- one call at a time ---- */

static tcrt_status_t enter(tcrt_context_t *context) {
  if (!context)
    return tcrt_fail(TCRT_ERROR_INVALID, "error: no context is given; create one first");
  if (__atomic_exchange_n(&context->busy, 1, __ATOMIC_ACQUIRE))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the context is in use by another call; use one context per concurrent run",
                     file_name(context));
  return TCRT_OK;
}

static tcrt_status_t leave(tcrt_context_t *context, tcrt_status_t status) {
  __atomic_store_n(&context->busy, 0, __ATOMIC_RELEASE);
  return status;
}

#define ENTER(context)                                                                                                 \
  do {                                                                                                                 \
    tcrt_status_t entered = enter(context);                                                                            \
    if (entered != TCRT_OK)                                                                                            \
      return entered;                                                                                                  \
  } while (0)

const char *tcrt_context_variant(const tcrt_context_t *context) {
  return tcrt_model_variant_name(context->model, context->variant_index);
}

uint32_t tcrt_context_threads(const tcrt_context_t *context) { return context->threads; }

/* ---- binding ---- */

static int64_t *output_dims_of(const tcrt_context_t *context, uint32_t index) {
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

static tcrt_status_t not_given(const tcrt_model_t *model, uint32_t input) {
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
    context->shapes_are_known = context->shapes_are_known && has_static_inputs(model);
  if (!bound->bound || bound->tensor.data != tensor->data || !context->shapes_are_known)
    context->overlap_checked = 0;
  bound->tensor = *tensor;
  bound->tensor.size_bytes = size_bytes;
  bound->bound = 1;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_set_input(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor) {
  ENTER(context);
  return leave(context, set_input(context, index, tensor));
}

tcrt_status_t tcrt_context_set_input_value(tcrt_context_t *context, uint32_t index, const tcrt_value_t *value) {
  ENTER(context);
  const tcrt_container_t *c = &context->model->container;
  int is_tensor = index >= c->signature->input_count || c->inputs[index].kind == TCRT_VALUE_TENSOR;
  if (value && is_tensor && value->kind == TCRT_VALUE_TENSOR)
    return leave(context, set_input(context, index, &value->tensor));
  if (!value || index >= c->signature->input_count)
    return leave(context, set_input(context, index, NULL));
  tcrt_status_t status = tcrt_values_check(context->model, index, value);
  if (status != TCRT_OK)
    return leave(context, status);
  tcrt_bound_t *bound = &context->inputs[index];
  memset(&bound->tensor, 0, sizeof bound->tensor);
  bound->value = *value;
  if (!bound->bound)
    context->shapes_are_known = context->shapes_are_known && has_static_inputs(context->model);
  bound->bound = 1;
  return leave(context, TCRT_OK);
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
  return leave(context, set_output(context, index, tensor));
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
        return not_given(model, i);
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

/* Turns what the program returned, and what it or the runtime said on the way, into a status. */
static tcrt_status_t program_result(tcrt_context_t *context, int32_t code) {
  if (context->run_status != TCRT_OK)
    return tcrt_fail(context->run_status, "%s", context->run_message ? context->run_message : "error: no memory left");
  if (code == TCRT_CODE_OK)
    return TCRT_OK;
  if (code == TCRT_CODE_REFUSED)
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: the model does not take inputs of these sizes",
                     file_name(context));
  if (code == TCRT_CODE_NO_MEMORY)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for the run", file_name(context));
  return tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: the compiled program failed with code %d; please report this",
                   file_name(context), code);
}

static void clear_failure(tcrt_context_t *context) {
  context->run_status = TCRT_OK;
  free(context->run_message);
  context->run_message = NULL;
}

static tcrt_status_t infer(tcrt_context_t *context) {
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
  clear_failure(context);
  status = program_result(context, context->variant->program->infer(&context->frame));
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
  status = grow(context, &arena, &context->arena_bytes, context->frame.arena_size, "the arena");
  context->frame.arena = arena;
  if (status != TCRT_OK)
    return status;
  context->shapes_are_known = 1;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_infer(tcrt_context_t *context) {
  ENTER(context);
  return leave(context, infer(context));
}

/* Refuses an output that is not there. */
static tcrt_status_t check_output(const tcrt_context_t *context, uint32_t index) {
  uint32_t count = context->model->container.signature->output_count;
  return index < count ? TCRT_OK
                       : tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no output %u; the model has %u",
                                   file_name(context), index, count);
}

/* Dtype, dims and size of an output. */
static void describe_output(const tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  const tcrt_sig_value_t *value = &context->model->container.outputs[index];
  tensor->dtype = (tcrt_dtype_t)value->dtype;
  tensor->rank = value->rank;
  memcpy(tensor->dims, output_dims_of(context, index), tensor->rank * sizeof(int64_t));
  tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &tensor->size_bytes);
}

tcrt_status_t tcrt_context_output_shape(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  memset(tensor, 0, sizeof *tensor);
  ENTER(context);
  tcrt_status_t status = check_output(context, index);
  if (status == TCRT_OK && !context->shapes_are_known)
    status = tcrt_fail(TCRT_ERROR_INVALID,
                       "%s: error: the outputs' sizes are not known; call tcrt_context_infer after setting inputs",
                       file_name(context));
  if (status == TCRT_OK)
    describe_output(context, index, tensor);
  return leave(context, status);
}

/* ---- running ---- */

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
  const tcrt_sig_value_t *value = &context->model->container.outputs[index];
  tcrt_bound_t *output = &context->outputs[index];
  uint64_t size_bytes;
  const char *name = tcrt_model_output_name(context->model, index);
  if (!tcrt_tensor_size((tcrt_dtype_t)value->dtype, value->rank, output_dims_of(context, index), &size_bytes))
    return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: output \"%s\" would be too large", file_name(context), name);
  if (output->bound && output->tensor.size_bytes < size_bytes)
    return tcrt_fail(
        TCRT_ERROR_INVALID, "%s: error: output \"%s\": its buffer has %llu bytes and needs %llu; bind a larger one",
        file_name(context), name, (unsigned long long)output->tensor.size_bytes, (unsigned long long)size_bytes);
  if (output->bound && output->tensor.device == context->driver->device && !tcrt_is_boxed(value)) {
    context->output_data[index] = size_bytes ? output->tensor.data : nothing;
    return TCRT_OK;
  }
  if (tcrt_is_boxed(value))
    tcrt_words_size(TCRT_DTYPE_STRING, value->rank, output_dims_of(context, index), &size_bytes);
  tcrt_status_t status = grow(context, &output->own, &output->own_bytes, size_bytes, "an output");
  context->output_data[index] = output->own;
  return status;
}

static int overlaps(const tcrt_tensor_t *a, uint64_t a_bytes, const tcrt_tensor_t *b, uint64_t b_bytes) {
  uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  return a_bytes && b_bytes && (x <= y ? y - x < a_bytes : x - y < b_bytes);
}

/* Bytes of a bound output that the run may write. */
static uint64_t written_bytes(const tcrt_context_t *context, uint32_t index) {
  const tcrt_sig_value_t *value = &context->model->container.outputs[index];
  const tcrt_bound_t *output = &context->outputs[index];
  uint64_t bytes = output->tensor.size_bytes;
  if (output->is_known)
    tcrt_tensor_size((tcrt_dtype_t)value->dtype, value->rank, output_dims_of(context, index), &bytes);
  return bytes;
}

static tcrt_status_t check_overlap(tcrt_context_t *context) {
  const tcrt_model_t *model = context->model;
  const tcrt_signature_t *s = model->container.signature;
  for (uint32_t i = 0; i < s->output_count; ++i) {
    const tcrt_bound_t *output = &context->outputs[i];
    if (!output->bound)
      continue;
    uint64_t bytes = written_bytes(context, i);
    for (uint32_t j = 0; j < s->input_count; ++j)
      if (context->inputs[j].bound &&
          overlaps(&output->tensor, bytes, &context->inputs[j].tensor, context->inputs[j].tensor.size_bytes))
        return tcrt_fail(
            TCRT_ERROR_INVALID,
            "%s: error: the buffer of output \"%s\" overlaps that of input \"%s\"; give them separate memory",
            model->name, tcrt_model_output_name(model, i), tcrt_model_input_name(model, j));
    for (uint32_t j = 0; j < i; ++j)
      if (context->outputs[j].bound &&
          overlaps(&output->tensor, bytes, &context->outputs[j].tensor, written_bytes(context, j)))
        return tcrt_fail(
            TCRT_ERROR_INVALID,
            "%s: error: the buffer of output \"%s\" overlaps that of output \"%s\"; give them separate memory",
            model->name, tcrt_model_output_name(model, i), tcrt_model_output_name(model, j));
  }
  context->overlap_checked = 1;
  return TCRT_OK;
}

tcrt_status_t tcrt_context_name_error(const tcrt_context_t *context, tcrt_status_t status, const char *what,
                                      const char *name, uint64_t length) {
  char text[1024];
  snprintf(text, sizeof text, "%s", tcrt_last_error());
  if (strncmp(text, file_name(context), strlen(file_name(context))) == 0)
    return status;
  return tcrt_fail(status, "%s: error: %s \"%.*s\": %s", file_name(context), what, (int)length, name, text);
}

static tcrt_status_t name_error(const tcrt_context_t *context, tcrt_status_t status, const char *what,
                                const char *name) {
  return tcrt_context_name_error(context, status, what, name, strlen(name));
}

/* Addresses of the inputs for the program; copies to the device what is not there. */
static tcrt_status_t place_inputs(tcrt_context_t *context) {
  const tcrt_model_t *model = context->model;
  const tcrt_container_t *c = &model->container;
  for (uint32_t i = 0; i < c->signature->input_count; ++i) {
    tcrt_bound_t *input = &context->inputs[i];
    const tcrt_sig_value_t *value = &c->inputs[i];
    if (!input->bound && (value->flags & TCRT_VALUE_FLAG_DEFAULT)) {
      context->input_data[i] = context->frame.weights + value->default_offset;
    } else if (!input->bound) {
      if (!(value->flags & TCRT_VALUE_FLAG_UNUSED))
        return not_given(model, i);
      context->input_data[i] = NULL;
    } else if (tcrt_is_boxed(value)) {
      uint64_t bytes = 0;
      tcrt_words_size(TCRT_DTYPE_STRING, value->rank, input->tensor.dims, &bytes);
      tcrt_status_t status = grow(context, &input->own, &input->own_bytes, bytes, "an input");
      if (status == TCRT_OK)
        status = value->kind == TCRT_VALUE_TENSOR ? tcrt_values_intern(context->store, &input->tensor, input->own)
                                                  : tcrt_values_box(context->store, &input->value, input->own);
      if (status != TCRT_OK)
        return name_error(context, status, "input", tcrt_model_input_name(model, i));
      context->input_data[i] = input->own;
    } else if (input->tensor.device == context->driver->device) {
      context->input_data[i] = input->tensor.data;
    } else {
      tcrt_status_t status =
          grow(context, &input->own, &input->own_bytes, input->tensor.size_bytes, "an input on the device");
      if (status == TCRT_OK)
        status = context->driver->copy(context, input->own, input->tensor.data, input->tensor.size_bytes,
                                       TCRT_COPY_HOST_TO_DEVICE);
      if (status != TCRT_OK)
        return status;
      context->input_data[i] = input->own;
    }
  }
  return TCRT_OK;
}

/* Brings outputs of device variants to where the caller wants them. */
static tcrt_status_t deliver_outputs(tcrt_context_t *context) {
  const tcrt_container_t *c = &context->model->container;
  for (uint32_t i = 0; i < c->signature->output_count; ++i) {
    tcrt_bound_t *output = &context->outputs[i];
    output->is_set = 1;
    int is_strings = c->outputs[i].kind == TCRT_VALUE_TENSOR && c->outputs[i].dtype == TCRT_DTYPE_STRING;
    if (context->driver->device == TCRT_DEVICE_CPU && !is_strings)
      continue;
    uint64_t size_bytes;
    tcrt_tensor_size((tcrt_dtype_t)c->outputs[i].dtype, c->outputs[i].rank, output_dims_of(context, i), &size_bytes);
    void *target = NULL;
    if (output->bound && output->tensor.device == TCRT_DEVICE_CPU) {
      target = output->tensor.data;
    } else if (!output->bound && (!context->device_outputs || is_strings)) {
      if (!output->host || output->host_bytes < size_bytes) {
        tcrt_host_release(context, output->host, output->host_bytes);
        output->host_bytes = 0;
        output->host = tcrt_host_allocate(context, size_bytes);
        if (!output->host)
          return no_memory(context, "an output", size_bytes);
        output->host_bytes = size_bytes;
      }
      target = output->host;
    }
    if (!target || !size_bytes)
      continue;
    if (is_strings) {
      tcrt_values_strings(context->store, output->own, size_bytes / sizeof(tcrt_string_t), target);
      continue;
    }
    tcrt_status_t status = context->driver->copy(context, target, output->own, size_bytes, TCRT_COPY_DEVICE_TO_HOST);
    if (status != TCRT_OK)
      return status;
  }
  return TCRT_OK;
}

static tcrt_status_t run(tcrt_context_t *context) {
  const tcrt_signature_t *s = context->model->container.signature;
  context->has_run = 0;
  if (context->store)
    tcrt_store_reset(context->store);
  tcrt_status_t status = infer(context);
  if (status == TCRT_OK && !context->overlap_checked)
    status = check_overlap(context);
  if (status == TCRT_OK)
    status = context->driver->run_begin(context);
  if (status == TCRT_OK) {
    status = place_inputs(context);
    int64_t *dims = context->output_dims;
    for (uint32_t i = 0; status == TCRT_OK && i < s->output_count;
         dims += context->model->container.outputs[i].rank, ++i) {
      context->outputs[i].is_set = 0;
      if (context->outputs[i].is_known) {
        status = tcrt_context_place_output(context, i);
      } else {
        context->output_data[i] = NULL;
        for (uint32_t d = 0; d < context->model->container.outputs[i].rank; ++d)
          if (context->model->container.dims[context->model->container.outputs[i].first_dim + d].kind == TCRT_DIM_EXPR)
            dims[d] = -1;
      }
    }
    if (status == TCRT_OK) {
      clear_failure(context);
      int uses_pool = context->threads > 1 && !context->has_executor;
      uint32_t helpers_soon = context->shares_soon ? (uint32_t)context->threads - 1 : 0;
      context->slot = uses_pool ? tcrt_pool_enter(context->model->pool, helpers_soon) : NULL;
      int32_t code = context->variant->program->run(&context->frame);
      context->shares_soon = tcrt_pool_leave(context->model->pool, context->slot);
      context->slot = NULL;
      status = program_result(context, code);
    }
    for (uint32_t i = 0; status == TCRT_OK && i < s->output_count; ++i)
      if (!context->output_data[i])
        status = tcrt_fail(TCRT_ERROR_INTERNAL,
                           "%s: error: the compiled program did not deliver output \"%s\"; please report "
                           "this",
                           file_name(context), tcrt_model_output_name(context->model, i));
    if (status == TCRT_OK) {
      status = context->driver->run_end(context);
    } else {
      /* What was launched must be over before its memory is freed; the first error is the one to tell. */
      char *first = strdup(tcrt_last_error());
      context->driver->run_end(context);
      tcrt_fail(status, "%s", first ? first : "error: no memory left");
      free(first);
    }
    if (status == TCRT_OK)
      status = deliver_outputs(context);
    release_blocks(context);
  }
  if (status == TCRT_OK) {
    context->has_run = 1;
    ++context->runs;
  }
  return status;
}

tcrt_status_t tcrt_context_run(tcrt_context_t *context) {
  ENTER(context);
  return leave(context, run(context));
}

tcrt_status_t tcrt_context_get_output(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor) {
  memset(tensor, 0, sizeof *tensor);
  ENTER(context);
  tcrt_status_t status = check_output(context, index);
  if (status == TCRT_OK && (!context->has_run || !context->outputs[index].is_set))
    status =
        tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there are no outputs; run the context first", file_name(context));
  if (status != TCRT_OK)
    return leave(context, status);
  const tcrt_bound_t *output = &context->outputs[index];
  const tcrt_sig_value_t *value = &context->model->container.outputs[index];
  if (value->kind != TCRT_VALUE_TENSOR)
    return leave(context, tcrt_fail(TCRT_ERROR_INVALID,
                                    "%s: error: output \"%s\" is %s; get it by tcrt_context_get_output_value",
                                    file_name(context), tcrt_model_output_name(context->model, index),
                                    tcrt_kind_name(value->kind)));
  describe_output(context, index, tensor);
  if (output->bound) {
    tensor->data = output->tensor.data;
    tensor->device = output->tensor.device;
  } else if (!tcrt_is_boxed(value) && (context->driver->device == TCRT_DEVICE_CPU || context->device_outputs)) {
    tensor->data = output->own;
    tensor->device = context->driver->device;
  } else {
    tensor->data = output->host;
  }
  return leave(context, TCRT_OK);
}

tcrt_status_t tcrt_context_get_output_value(tcrt_context_t *context, uint32_t index, tcrt_value_t *value) {
  memset(value, 0, sizeof *value);
  const tcrt_container_t *c = context ? &context->model->container : NULL;
  if (!c || index >= c->signature->output_count || c->outputs[index].kind == TCRT_VALUE_TENSOR)
    return tcrt_context_get_output(context, index, &value->tensor);
  ENTER(context);
  if (!context->has_run || !context->outputs[index].is_set)
    return leave(context, tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there are no outputs; run the context first",
                                    file_name(context)));
  const int64_t *handle = context->outputs[index].own;
  tcrt_status_t status = tcrt_values_unbox(context->store, *handle, &c->outputs[index], value);
  if (status != TCRT_OK)
    name_error(context, status, "output", tcrt_model_output_name(context->model, index));
  return leave(context, status);
}

/* ---- statistics ---- */

tcrt_status_t tcrt_context_stats(tcrt_context_t *context, tcrt_context_stats_t *stats) {
  memset(stats, 0, sizeof *stats);
  ENTER(context);
  stats->arena_bytes = context->arena_bytes;
  stats->memory_bytes = context->memory_bytes;
  stats->peak_memory_bytes = context->peak_bytes;
  stats->runs = context->runs;
  stats->device_us = context->device_us;
  return leave(context, TCRT_OK);
}

uint32_t tcrt_context_profile_count(const tcrt_context_t *context) {
  return context->model->container.signature->kernel_count;
}

tcrt_status_t tcrt_context_profile(tcrt_context_t *context, uint32_t index, tcrt_profile_entry_t *entry) {
  memset(entry, 0, sizeof *entry);
  ENTER(context);
  const tcrt_model_t *model = context->model;
  if (index >= model->container.signature->kernel_count)
    return leave(context, tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no kernel %u; the model has %u",
                                    model->name, index, model->container.signature->kernel_count));
  entry->kernel = tcrt_model_kernel_name(model, index);
  entry->nodes = tcrt_model_kernel_nodes(model, index);
  entry->launches = context->profile_launches[index];
  entry->time_ns = context->profile_ns[index];
  entry->flops = context->costs[index].flops;
  entry->bytes = context->costs[index].bytes;
  return leave(context, TCRT_OK);
}

tcrt_status_t tcrt_context_profile_reset(tcrt_context_t *context) {
  ENTER(context);
  uint32_t count = context->model->container.signature->kernel_count;
  memset(context->profile_ns, 0, count * sizeof *context->profile_ns);
  memset(context->profile_launches, 0, count * sizeof *context->profile_launches);
  return leave(context, TCRT_OK);
}

/* ---- device memory for callers ---- */

tcrt_status_t tcrt_context_device_allocate(tcrt_context_t *context, uint64_t bytes, void **data) {
  *data = NULL;
  ENTER(context);
  *data = context->driver->allocate(context, bytes);
  return leave(context, *data ? TCRT_OK : no_memory(context, "a buffer", bytes));
}

void tcrt_context_device_free(tcrt_context_t *context, void *data, uint64_t bytes) {
  if (context)
    context->driver->release(context, data, bytes);
}

tcrt_status_t tcrt_context_device_copy(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes,
                                       uint32_t direction) {
  ENTER(context);
  tcrt_status_t status = context->driver->copy(context, dst, src, bytes, direction);
  if (status == TCRT_OK)
    status = context->driver->synchronize(context);
  return leave(context, status);
}
