/*
 * Imports.c - what the native code of an artifact calls (tcrt_imports_t).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Context.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A launch has up to so many ranges for every worker, and up to so many for a few workers, so that slow ranges or cores
 * do not hold up the others. More for many workers cost more than they gain, at the counter that gives them out. */
#define RANGES_PER_WORKER 4
#define RANGES_OF_FEW 64
/* In each step of a launch in steps: a worker is to find in its caches what it used in the step before, and takes
 * ranges of others only if these are held up. */
#define RANGES_OF_STEP 2

static tcrt_context_t *context_of(struct tcrt_frame_t *frame) { return frame->runtime; }

/* Keeps the error that a driver or a check has just set. */
static int32_t keep_error(tcrt_context_t *context, tcrt_status_t status) {
  const char *message = tcrt_last_error();
  return tcrt_context_set_failure(context, status, message, strlen(message));
}

/* Launches that run at the same time; their ranges have consecutive numbers. */
#define LAUNCHES 8
/* Ranges that a caller's executor is given at most. */
#define MOST_OUTSIDE 8192
typedef struct launch_t {
  uint32_t id;
  tcrt_kernel_fn fn;
  const void *args;
  int64_t end;           /* number of the first range behind this launch's */
  int64_t tasks, ranges; /* in a step */
  int64_t each, more;    /* ranges that a worker begins with; so many workers have one more */
} launch_t;

typedef struct launches_t {
  uint32_t count;
  const tcrt_context_t *traced; /* whose ranges are events; NULL: they are none */
  int waits_for_memory;         /* all of them do */
  /* Of an executor: */
  int64_t step;                              /* of its ranges; the pool's count on */
  int64_t workers;                           /* that there are */
  _Atomic int misuses;                       /* ranges or workers that there are not, ranges that came twice */
  _Atomic uint64_t taken[MOST_OUTSIDE / 64]; /* a bit for each range that was given out in this step */
  launch_t launches[LAUNCHES];
} launches_t;

/* Runs the range with that number. The ranges that a worker begins with hold its share of the tasks, longer ones first,
 * as threads that are done early take the last ones. */
static void run_tasks_of(const tcrt_context_t *traced, const launch_t *launch, int64_t before, int64_t number,
                         int64_t worker) {
  int64_t longer = launch->more * (launch->each + 1);
  int64_t ranges = number < longer ? launch->each + 1 : launch->each;
  int64_t within = (number < longer ? number : number - longer) % ranges, first = number - within;
  int64_t begin = launch->tasks * first / launch->ranges;
  int64_t count = launch->tasks * (first + ranges) / launch->ranges - begin, size = count / ranges;
  int64_t extra = count - size * ranges;
  begin += before + size * within + (within < extra ? within : extra);
  size += within < extra;
  const uint64_t start = traced ? tcrt_now_ns() : 0;
  launch->fn(launch->args, begin, begin + size, worker);
  if (traced)
    tcrt_event_tasks(traced, launch->id, worker, start, begin, size);
}

static void run_range_of(const launches_t *all, int64_t step, int64_t range, int64_t worker) {
  uint32_t i = 0;
  while (range >= all->launches[i].end)
    ++i;
  int64_t number = i ? range - all->launches[i - 1].end : range;
  run_tasks_of(all->traced, &all->launches[i], step * all->launches[i].tasks, number, worker);
}

static void run_range(void *data, int64_t range, int64_t worker) { run_range_of(data, 0, range, worker); }

/* As run_range, for ranges that count on from step to step. */
static void run_step_range(void *data, int64_t range, int64_t worker) {
  const launches_t *all = data;
  int64_t ranges = all->launches[all->count - 1].end;
  run_range_of(all, range / ranges, range % ranges, worker);
}

/* Whether the range is there and nobody took it before. */
static int take_range(launches_t *all, int64_t range) {
  uint64_t bit = UINT64_C(1) << range % 64;
  return !(atomic_fetch_or_explicit(&all->taken[range / 64], bit, memory_order_relaxed) & bit);
}

/* As run_range, on a thread of the caller's executor, which may ask for what there is not: kernels keep to their memory
 * whatever it does. */
static void run_range_outside(void *data, int64_t range, int64_t worker) {
  launches_t *all = data;
  if (range < 0 || range >= all->launches[all->count - 1].end || worker < 0 || worker >= all->workers ||
      !take_range(all, range)) {
    atomic_store_explicit(&all->misuses, 1, memory_order_relaxed);
    return;
  }
  int previous = tcrt_pool_begin_range();
  run_range_of(all, all->step, range, worker);
  tcrt_pool_end_range(previous);
}

/* Gives the ranges of a step to the caller's executor. What it leaves out is done here, so that later kernels find all
 * values in place; the run fails then. */
static void run_outside(tcrt_context_t *context, launches_t *all) {
  int64_t ranges = all->launches[all->count - 1].end;
  all->workers = context->threads;
  for (int64_t i = 0; i <= (ranges - 1) / 64; ++i)
    atomic_store_explicit(&all->taken[i], 0, memory_order_relaxed);
  atomic_store_explicit(&all->misuses, 0, memory_order_relaxed);
  context->executor.parallel_for(context->executor.user, ranges, run_range_outside, all);
  int misuses = atomic_load_explicit(&all->misuses, memory_order_relaxed);
  for (int64_t range = 0; range < ranges; ++range) {
    if (take_range(all, range)) {
      run_range_of(all, all->step, range, 0);
      misuses = 1;
    }
  }
  if (misuses) {
    tcrt_fail(TCRT_ERROR_INVALID,
              "%s: error: the executor did not call the task once for each of %lld ranges with a worker below %u; "
              "see tcrt_executor_t",
              context->model->name, (long long)ranges, context->threads);
    keep_error(context, TCRT_ERROR_INVALID);
  }
}

/* Whether ranges can run on several threads. */
static int is_parallel(const tcrt_context_t *context) {
  return context->threads > 1 && !tcrt_pool_in_range() && (context->slot || context->has_executor);
}

int64_t tcrt_count_ranges(int64_t tasks, int64_t grain, int64_t most, int64_t threads) {
  int64_t ranges = tasks / (grain > 1 ? grain : 1);
  if (ranges > threads && ranges < tasks)
    ranges = (ranges + threads / 2) / threads * threads;
  ranges = ranges < tasks ? ranges : tasks;
  return ranges < most ? ranges : most;
}

static int64_t most_ranges(const tcrt_context_t *context) {
  int64_t most = (int64_t)context->threads * RANGES_PER_WORKER;
  if (context->has_executor && most > MOST_OUTSIDE / LAUNCHES)
    most = MOST_OUTSIDE / LAUNCHES;
  return most < RANGES_OF_FEW ? RANGES_OF_FEW : most;
}

/* What takes fewer operations for each byte that it reads or writes waits for memory, if not for the caches. */
#define OPERATIONS_PER_BYTE 8

static void add_launch(const tcrt_context_t *context, launches_t *all, uint32_t id, tcrt_kernel_fn fn, const void *args,
                       int64_t tasks, int64_t ranges) {
  int64_t before = all->count ? all->launches[all->count - 1].end : 0, workers = context->threads;
  launch_t *launch = &all->launches[all->count++];
  launch->id = id;
  launch->fn = fn;
  launch->args = args;
  launch->tasks = tasks;
  launch->ranges = ranges;
  launch->each = ranges / workers;
  launch->more = ranges % workers;
  launch->end = before + ranges;
  int waits_for_memory = id < context->model->container.signature->kernel_count &&
                         context->costs[id].flops < OPERATIONS_PER_BYTE * context->costs[id].bytes;
  all->waits_for_memory = (!before || all->waits_for_memory) && waits_for_memory;
}

static void run_launches(tcrt_context_t *context, launches_t *all) {
  if (!all->count)
    return;
  int64_t ranges = all->launches[all->count - 1].end;
  all->step = 0;
  if (context->has_executor)
    run_outside(context, all);
  else
    tcrt_pool_run(context->model->pool, context->slot, run_range, all, ranges, context->threads, all->waits_for_memory);
}

static void run_steps(tcrt_context_t *context, launches_t *all, int64_t steps) {
  int64_t ranges = all->count ? all->launches[all->count - 1].end : 0;
  if (!context->has_executor && ranges > 1) {
    tcrt_pool_run_steps(context->model->pool, context->slot, run_step_range, all, ranges, steps, context->threads);
    return;
  }
  for (all->step = 0; all->step < steps && ranges; ++all->step)
    if (ranges > 1)
      run_outside(context, all);
    else
      run_range_of(all, all->step, 0, 0);
}

/* Nothing yet. */
static void begin_launches(const tcrt_context_t *context, launches_t *all) {
  all->count = 0;
  all->traced = context->event ? context : NULL;
}

/* When a launch that is measured begins. */
static uint64_t begin_measure(const tcrt_context_t *context) {
  return context->profile || context->event ? tcrt_now_ns() : 0;
}

static void end_measure(tcrt_context_t *context, uint32_t id, uint64_t start) {
  if ((!context->profile && !context->event) || id >= context->model->container.signature->kernel_count)
    return;
  const uint64_t end = tcrt_now_ns();
  if (context->profile) {
    context->profile_ns[id] += end - start;
    ++context->profile_launches[id];
  }
  if (context->event)
    tcrt_event_kernel(context, id, TCRT_DEVICE_CPU, start, end);
}

static void launch(struct tcrt_frame_t *frame, uint32_t id, tcrt_kernel_fn fn, const void *args, int64_t tasks,
                   int64_t grain) {
  tcrt_context_t *context = context_of(frame);
  if (tasks <= 0)
    return;
  uint64_t start = begin_measure(context);
  int64_t ranges = tcrt_count_ranges(tasks, grain, most_ranges(context), context->threads);
  if (ranges <= 1 || !is_parallel(context)) {
    fn(args, 0, tasks, 0);
  } else {
    launches_t all;
    begin_launches(context, &all);
    add_launch(context, &all, id, fn, args, tasks, ranges);
    run_launches(context, &all);
  }
  end_measure(context, id, start);
}

static void launch_group(struct tcrt_frame_t *frame, uint32_t count, const tcrt_launch_t *given) {
  tcrt_context_t *context = context_of(frame);
  /* A profile tells them apart. */
  if (context->profile || !is_parallel(context)) {
    for (uint32_t i = 0; i < count; ++i)
      launch(frame, given[i].id, given[i].fn, given[i].args, given[i].tasks, given[i].grain);
    return;
  }
  for (uint32_t start = 0; start < count; start += LAUNCHES) {
    launches_t all;
    begin_launches(context, &all);
    for (uint32_t i = start; i < count && i < start + LAUNCHES; ++i) {
      if (given[i].tasks <= 0)
        continue;
      int64_t ranges = tcrt_count_ranges(given[i].tasks, given[i].grain, most_ranges(context), context->threads);
      add_launch(context, &all, given[i].id, given[i].fn, given[i].args, given[i].tasks, ranges > 1 ? ranges : 1);
    }
    const uint64_t before = begin_measure(context);
    run_launches(context, &all);
    for (uint32_t i = 0; i < all.count; ++i)
      end_measure(context, all.launches[i].id, before);
  }
}

static void launch_steps(struct tcrt_frame_t *frame, uint32_t count, const tcrt_launch_t *given, int64_t steps) {
  tcrt_context_t *context = context_of(frame);
  /* Launches that depend on each other in no step may follow one another: a profile tells them apart. */
  uint32_t together = context->profile || !is_parallel(context) ? 1 : LAUNCHES;
  for (uint32_t start = 0; start < count; start += together) {
    launches_t all;
    begin_launches(context, &all);
    uint64_t before = begin_measure(context);
    uint32_t members = count - start < together ? count - start : together;
    int64_t share = is_parallel(context) ? (context->threads + members - 1) / members : 1;
    int64_t most = is_parallel(context) ? share * RANGES_OF_STEP : 1;
    for (uint32_t i = start; i < start + members; ++i) {
      if (given[i].tasks <= 0)
        continue;
      int64_t ranges = tcrt_count_ranges(given[i].tasks, given[i].grain, most, 1);
      /* As many for each worker: the others would wait for one that has more, in each step. */
      if (ranges > share)
        ranges -= ranges % share;
      add_launch(context, &all, given[i].id, given[i].fn, given[i].args, given[i].tasks, ranges > 1 ? ranges : 1);
    }
    run_steps(context, &all, steps);
    for (uint32_t i = 0; i < all.count && steps > 0; ++i)
      end_measure(context, all.launches[i].id, before);
  }
}

static void set_cost(struct tcrt_frame_t *frame, uint32_t id, uint64_t flops, uint64_t bytes) {
  tcrt_context_t *context = context_of(frame);
  if (id < context->model->container.signature->kernel_count)
    context->costs[id] = (tcrt_cost_t){flops, bytes};
}

int32_t tcrt_launch_device(tcrt_context_t *context, const tcrt_device_launch_t *launch, void **parameters) {
  tcrt_status_t status = context->driver->launch(context, launch, parameters);
  return status == TCRT_OK ? 0 : keep_error(context, status);
}

static int32_t launch_device(struct tcrt_frame_t *frame, const tcrt_device_launch_t *launch) {
  return tcrt_launch_device(context_of(frame), launch, NULL);
}

static int32_t copy(struct tcrt_frame_t *frame, void *dst, const void *src, uint64_t bytes, uint32_t direction) {
  tcrt_context_t *context = context_of(frame);
  tcrt_status_t status = context->driver->copy(context, dst, src, bytes, direction);
  /* The host's memory may change, or is read, as soon as we return. */
  if (status == TCRT_OK && direction != TCRT_COPY_DEVICE_TO_DEVICE)
    status = context->driver->synchronize(context);
  return status == TCRT_OK ? 0 : keep_error(context, status);
}

static void *allocate(struct tcrt_frame_t *frame, uint64_t bytes) {
  void *data = tcrt_context_allocate_block(context_of(frame), bytes);
  if (!data)
    keep_error(context_of(frame), TCRT_ERROR_MACHINE);
  return data;
}

static void release(struct tcrt_frame_t *frame, void *data) { tcrt_context_release_block(context_of(frame), data); }

static void *output(struct tcrt_frame_t *frame, uint32_t index, const int64_t *dims) {
  tcrt_context_t *context = context_of(frame);
  tcrt_bindings_t *bindings = context->bindings;
  const tcrt_model_function_t *function = bindings->function;
  if (index >= function->output_count) {
    tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: the compiled program delivers output %u of %u; please report this",
              context->model->name, index, function->output_count);
    keep_error(context, TCRT_ERROR_INTERNAL);
    return NULL;
  }
  if (function->outputs[index].rank)
    memcpy(tcrt_context_output_dims(context, index), dims, function->outputs[index].rank * sizeof *dims);
  tcrt_status_t status = tcrt_context_place_output(context, index);
  if (status == TCRT_OK)
    return bindings->output_data[index];
  keep_error(context, status);
  return NULL;
}

static int32_t fail(struct tcrt_frame_t *frame, int32_t code, const char *message, uint64_t length) {
  tcrt_context_t *context = context_of(frame);
  tcrt_status_t status = code == TCRT_CODE_REFUSED     ? TCRT_ERROR_REFUSED
                         : code == TCRT_CODE_NO_MEMORY ? TCRT_ERROR_MACHINE
                                                       : TCRT_ERROR_INTERNAL;
  int shown = length > 1500 ? 1500 : (int)length;
  tcrt_fail(status, "%s: error: %.*s", context->model->name, shown, message);
  keep_error(context, status);
  return code;
}

/* Calls a host function whose operands and results lie in the device's memory: by way of copies. What results hold
 * before is copied, too, as some are filled in part. */
static tcrt_status_t call_with_copies(tcrt_context_t *context, tcrt_function_fn function, const tcrt_call_t *call) {
  const tcrt_driver_t *driver = context->driver;
  const uint64_t count = (uint64_t)call->operand_count + call->result_count;
  const uint64_t records = (count * sizeof(tcrt_operand_t) + TCRT_DATA_ALIGN - 1) / TCRT_DATA_ALIGN * TCRT_DATA_ALIGN;
  uint64_t total = records;
  for (uint64_t i = 0; i < count; ++i) {
    const tcrt_operand_t *value =
        i < call->operand_count ? &call->operands[i] : &call->results[i - call->operand_count];
    uint64_t bytes = 0;
    tcrt_words_size(value->dtype, value->rank, value->dims, &bytes);
    total += (bytes + TCRT_DATA_ALIGN - 1) / TCRT_DATA_ALIGN * TCRT_DATA_ALIGN;
  }
  uint8_t *memory = tcrt_host_allocate(context, total);
  if (!memory)
    return tcrt_context_no_memory(context, "the operands of a host function", total);
  tcrt_operand_t *values = (tcrt_operand_t *)(void *)memory;
  if (call->operand_count)
    memcpy(values, call->operands, call->operand_count * sizeof *values);
  if (call->result_count)
    memcpy(values + call->operand_count, call->results, call->result_count * sizeof *values);
  tcrt_status_t status = TCRT_OK;
  uint64_t offset = records;
  for (uint64_t i = 0; i < count && status == TCRT_OK; ++i) {
    uint64_t bytes = 0;
    tcrt_words_size(values[i].dtype, values[i].rank, values[i].dims, &bytes);
    if (bytes)
      status = driver->copy(context, memory + offset, values[i].data, bytes, TCRT_COPY_DEVICE_TO_HOST);
    values[i].data = memory + offset;
    offset += (bytes + TCRT_DATA_ALIGN - 1) / TCRT_DATA_ALIGN * TCRT_DATA_ALIGN;
  }
  if (status == TCRT_OK)
    status = driver->synchronize(context);
  tcrt_call_t here = *call;
  here.operands = values;
  here.results = values + call->operand_count;
  if (status == TCRT_OK)
    status = function(&tcrt_services, context->store, &here);
  for (uint32_t i = 0; i < call->result_count && status == TCRT_OK; ++i) {
    uint64_t bytes = 0;
    tcrt_words_size(here.results[i].dtype, here.results[i].rank, here.results[i].dims, &bytes);
    if (bytes)
      status = driver->copy(context, call->results[i].data, here.results[i].data, bytes, TCRT_COPY_HOST_TO_DEVICE);
  }
  if (status == TCRT_OK)
    status = driver->synchronize(context); /* the copies read what is released now */
  tcrt_host_release(context, memory, total);
  return status;
}

static int32_t call(struct tcrt_frame_t *frame, const tcrt_call_t *call) {
  tcrt_context_t *context = context_of(frame);
  const tcrt_model_t *model = context->model;
  tcrt_status_t status;
  if (call->function >= model->container.host_function_count || !context->store) {
    tcrt_fail(TCRT_ERROR_INTERNAL, "%s: error: the compiled program calls function %u of %u; please report this",
              model->name, call->function, model->container.host_function_count);
    return keep_error(context, TCRT_ERROR_INTERNAL);
  }
  tcrt_function_fn function;
  memcpy(&function, &model->host_functions[call->function], sizeof function);
  const uint64_t start = context->event ? tcrt_now_ns() : 0;
  status = context->driver->device == TCRT_DEVICE_CPU ? function(&tcrt_services, context->store, call)
                                                      : call_with_copies(context, function, call);
  if (context->event)
    tcrt_event_call(context, call, start);
  if (status == TCRT_OK)
    return 0;
  tcrt_context_name_error(context, status, "node", call->node, call->node_length);
  return keep_error(context, status);
}

const tcrt_imports_t tcrt_imports = {
    .abi_version = TCRT_ABI_VERSION,
    .size = sizeof(tcrt_imports_t),
    .launch = launch,
    .launch_device = launch_device,
    .copy = copy,
    .allocate = allocate,
    .release = release,
    .output = output,
    .fail = fail,
    .exp_f64 = exp,
    .log_f64 = log,
    .sin_f64 = sin,
    .cos_f64 = cos,
    .tan_f64 = tan,
    .asin_f64 = asin,
    .acos_f64 = acos,
    .atan_f64 = atan,
    .sinh_f64 = sinh,
    .cosh_f64 = cosh,
    .tanh_f64 = tanh,
    .asinh_f64 = asinh,
    .acosh_f64 = acosh,
    .atanh_f64 = atanh,
    .erf_f64 = erf,
    .log1p_f64 = log1p,
    .expm1_f64 = expm1,
    .cbrt_f64 = cbrt,
    .pow_f64 = pow,
    .fmod_f64 = fmod,
    .atan2_f64 = atan2,
    .call = call,
    .launch_group = launch_group,
    .launch_steps = launch_steps,
    .set_cost = set_cost,
};
