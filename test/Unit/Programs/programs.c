/*
 * programs.c - small programs in the form that artifacts hold, written by hand, for tests of the runtime.
 *
 * Compiled once per program with -DPROGRAM_<NAME>, freestanding, into a shared object without imports.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tcrt/artifact_abi.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const tcrt_imports_t *imports;

static int32_t refuse(tcrt_frame_t *frame, int32_t code, const char *message) {
  uint64_t length = 0;
  while (message[length])
    ++length;
  return imports->fail(frame, code, message, length);
}

#if defined(PROGRAM_BASIC)
/* Inputs x f32 (n, 4), b f32 (4) with a default; outputs y = 2x + b (n, 4) and p f32 (?): the positive elements of y.
 * Weights: 16 bytes of b's default, and at 64 the factor 2. Sizes of n above 60 are refused by the program. */
typedef struct args_t {
  const float *x, *b;
  float *y;
  float factor;
} args_t;

static void kernel(const void *data, int64_t begin, int64_t end, int64_t worker) {
  const args_t *args = data;
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < 4; ++j)
      args->y[4 * i + j] = args->factor * args->x[4 * i + j] + args->b[j];
}

/* Relocated pointers, so that the loader has something to relocate. */
static const char *const messages[] = {"input \"x\": n is above 60", "the run is refused by value"};
static tcrt_kernel_fn const kernels[] = {kernel};

static int32_t infer(tcrt_frame_t *frame) {
  int64_t n = frame->symbols[0];
  if (n > 60)
    return refuse(frame, TCRT_CODE_REFUSED, messages[0]);
  frame->symbols[1] = 4 * n;
  frame->output_dims[0] = n;
  frame->output_dims[1] = 4;
  frame->output_dims[2] = -1;
  frame->arena_size = (uint64_t)n * 16;
  return TCRT_CODE_OK;
}

static int32_t run(tcrt_frame_t *frame) {
  int64_t n = frame->symbols[0];
  args_t args = {frame->inputs[0], frame->inputs[1], frame->outputs[0], *(const float *)(frame->weights + 64)};
  if (n > 0 && args.x[0] == 666.0f)
    return refuse(frame, TCRT_CODE_REFUSED, messages[1]);
  imports->launch(frame, 0, kernels[0], &args, n, 1);
  /* A first element of 555 asks for more than is needed. */
  float *found = imports->allocate(frame, (uint64_t)n * (n > 0 && args.x[0] == 555.0f ? 16 << 12 : 16));
  if (!found)
    return TCRT_CODE_NO_MEMORY;
  int64_t count = 0;
  for (int64_t i = 0; i < 4 * n; ++i)
    if (args.y[i] > 0)
      found[count++] = args.y[i];
  float *out = imports->output(frame, 1, &count);
  if (!out)
    return TCRT_CODE_NO_MEMORY;
  for (int64_t i = 0; i < count; ++i)
    out[i] = found[i];
  imports->release(frame, found);
  return TCRT_CODE_OK;
}

#elif defined(PROGRAM_VALUES)
/* Inputs text strings (n), parts a sequence of f32 tensors, maybe an optional f32 tensor. Outputs twice strings (n):
 * each text by the function "twice" of the caller; more = parts and, at the end, an f32 tensor (n) of 1 where a text is
 * the constant string 1, else 0; same = maybe. */
static void describe(tcrt_operand_t *operand, void *data, uint32_t dtype, uint32_t rank, const int64_t *dims) {
  operand->data = data;
  operand->dims = dims;
  operand->dtype = dtype;
  operand->rank = rank;
}

static int32_t infer(tcrt_frame_t *frame) {
  frame->output_dims[0] = frame->symbols[0];
  frame->arena_size = 8 * (uint64_t)frame->symbols[0] + 8;
  return TCRT_CODE_OK;
}

static int32_t run(tcrt_frame_t *frame) {
  int64_t n = frame->symbols[0];
  const int64_t *text = frame->inputs[0];
  float *flags = (float *)frame->arena;
  for (int64_t i = 0; i < n; ++i)
    flags[i] = text[i] == 1;
  tcrt_operand_t operands[2], results[1];
  tcrt_call_t call = {0, 1, 1, 5, "node0", operands, results};
  describe(&operands[0], (void *)frame->inputs[0], TCRT_DTYPE_STRING, 1, &n);
  describe(&results[0], frame->outputs[0], TCRT_DTYPE_STRING, 1, &n);
  int32_t code = imports->call(frame, &call);
  if (code)
    return code;
  call.function = 1;
  call.operand_count = 2;
  describe(&operands[0], (void *)frame->inputs[1], TCRT_DTYPE_INVALID, 0, &n);
  describe(&operands[1], flags, TCRT_DTYPE_F32, 1, &n);
  describe(&results[0], frame->outputs[1], TCRT_DTYPE_INVALID, 0, &n);
  code = imports->call(frame, &call);
  *(int64_t *)frame->outputs[2] = *(const int64_t *)frame->inputs[2];
  return code;
}

#elif defined(PROGRAM_STRESS)
/* Input tasks i64 (1), output problems i64 (1): launches of all sizes up to tasks[0], alone and in groups of parts of
 * them; each task must be done once, with a worker number that no other thread uses at that time. The arena holds a
 * mark per task and a line per worker. Launches in steps: a task must find the marks that the step before left. */
typedef struct args_t {
  uint8_t *marks;
  int64_t *lines;
  int64_t workers;
  int64_t *problems;
  int64_t tasks; /* of a launch in steps */
} args_t;

static void kernel(const void *data, int64_t begin, int64_t end, int64_t worker) {
  const args_t *args = data;
  if (worker < 0 || worker >= args->workers) {
    __atomic_fetch_add(args->problems, 1, __ATOMIC_RELAXED);
    return;
  }
  int64_t *line = args->lines + 8 * worker;
  if (__atomic_exchange_n(line, 1, __ATOMIC_RELAXED) != 0)
    __atomic_fetch_add(args->problems, 1, __ATOMIC_RELAXED);
  for (int64_t i = begin; i < end; ++i)
    args->marks[i]++;
  __atomic_store_n(line, 0, __ATOMIC_RELAXED);
}

static void step_kernel(const void *data, int64_t begin, int64_t end, int64_t worker) {
  const args_t *args = data;
  int64_t step = begin / args->tasks, bad = end > (step + 1) * args->tasks || worker < 0 || worker >= args->workers;
  int64_t *line = args->lines + 8 * (bad ? 0 : worker);
  bad |= __atomic_exchange_n(line, 1, __ATOMIC_RELAXED) != 0;
  for (int64_t i = 0; i < args->tasks; ++i) {
    uint8_t mark = __atomic_load_n(&args->marks[i], __ATOMIC_RELAXED);
    bad |= mark != (uint8_t)step && mark != (uint8_t)(step + 1);
  }
  for (int64_t i = begin; i < end && !bad; ++i)
    __atomic_fetch_add(&args->marks[i - step * args->tasks], 1, __ATOMIC_RELAXED);
  if (bad)
    __atomic_fetch_add(args->problems, 1, __ATOMIC_RELAXED);
  __atomic_store_n(line, 0, __ATOMIC_RELAXED);
}

/* Launches of 0 to 18 tasks in `steps` steps, alone and in groups. */
static void run_steps(tcrt_frame_t *frame, const args_t *given, int64_t steps) {
  args_t parts[10];
  tcrt_launch_t group[10];
  for (uint32_t members = 1; members <= 10; members += members < 3 ? 1 : 7) {
    int64_t all = 0;
    for (uint32_t i = 0; i < members; ++i) {
      parts[i] = *given;
      parts[i].marks += all;
      parts[i].tasks = members > 1 ? 2 * i : 1 + steps % 18;
      group[i] = (tcrt_launch_t){step_kernel, &parts[i], parts[i].tasks, 1 + steps % 3, 0, 0};
      all += parts[i].tasks;
    }
    for (int64_t i = 0; i < all; ++i)
      *(volatile uint8_t *)&given->marks[i] = 0;
    imports->launch_steps(frame, members, group, steps);
    for (int64_t i = 0; i < all; ++i)
      if (given->marks[i] != (uint8_t)steps)
        ++*given->problems;
  }
}

static int32_t infer(tcrt_frame_t *frame) {
  frame->output_dims[0] = 1;
  frame->arena_size = 65536 + 64 * (uint64_t)frame->worker_count;
  return TCRT_CODE_OK;
}

static int32_t run(tcrt_frame_t *frame) {
  int64_t most = *(const int64_t *)frame->inputs[0];
  int64_t *problems = frame->outputs[0];
  *problems = 0;
  args_t args = {frame->arena, (int64_t *)(frame->arena + 65536), frame->worker_count, problems, 0};
  for (int64_t i = 0; i < 8 * frame->worker_count; ++i)
    args.lines[i] = 0;
  for (int64_t tasks = 0; tasks <= most; tasks = tasks < 20 ? tasks + 1 : tasks + tasks / 3) {
    for (int64_t i = 0; i < tasks; ++i)
      *(volatile uint8_t *)&args.marks[i] = 0;
    imports->launch(frame, 0, kernel, &args, tasks, 1 + tasks % 7);
    for (int64_t i = 0; i < tasks; ++i)
      if (args.marks[i] != 1)
        ++*problems;
    /* Members of 0, 1, 2, ... tasks, more members than the runtime takes at once; the last one has the rest. */
    args_t parts[12];
    tcrt_launch_t group[12];
    for (int64_t i = 0, done = 0; i < 12; ++i) {
      parts[i] = args;
      parts[i].marks += done;
      int64_t left = tasks - done, count = i < 11 && i < left ? i : left;
      group[i] = (tcrt_launch_t){kernel, &parts[i], count, 1 + i % 3, 0, 0};
      done += count;
    }
    imports->launch_group(frame, 12, group);
    for (int64_t i = 0; i < tasks; ++i)
      if (args.marks[i] != 2)
        ++*problems;
  }
  for (int64_t steps = 0; steps < 400 && steps <= most; steps = steps < 20 ? steps + 1 : 2 * steps)
    run_steps(frame, &args, steps);
  return TCRT_CODE_OK;
}

#elif defined(PROGRAM_MATHS)
/* Input x f64 (21), output y f64 (21): one function of the import table per element. */
static int32_t infer(tcrt_frame_t *frame) {
  frame->output_dims[0] = 21;
  return TCRT_CODE_OK;
}

static int32_t run(tcrt_frame_t *frame) {
  const double *x = frame->inputs[0];
  double *y = frame->outputs[0];
  double (*const one[])(double) = {imports->exp_f64,   imports->log_f64,   imports->sin_f64,  imports->cos_f64,
                                   imports->tan_f64,   imports->asin_f64,  imports->acos_f64, imports->atan_f64,
                                   imports->sinh_f64,  imports->cosh_f64,  imports->tanh_f64, imports->asinh_f64,
                                   imports->acosh_f64, imports->atanh_f64, imports->erf_f64,  imports->log1p_f64,
                                   imports->expm1_f64, imports->cbrt_f64};
  double (*const two[])(double, double) = {imports->pow_f64, imports->fmod_f64, imports->atan2_f64};
  for (uint64_t i = 0; i < COUNT(one); ++i)
    y[i] = one[i](x[i]);
  for (uint64_t i = 0; i < COUNT(two); ++i)
    y[18 + i] = two[i](x[18 + i], 2.5);
  return TCRT_CODE_OK;
}

#elif defined(PROGRAM_DEVICE)
/* A GPU variant. Inputs x f32 (n), outputs y f32 (n) = factor * x and z f32 (?) = the first half of y. Weights: the
 * factor at 64. Device kernel 0: y[i] = *factor * x[i] for i < n. */
static int32_t infer(tcrt_frame_t *frame) {
  frame->output_dims[0] = frame->symbols[0];
  frame->output_dims[1] = -1;
  frame->arena_size = 4 * (uint64_t)frame->symbols[0] + 64;
  return TCRT_CODE_OK;
}

static int32_t run(tcrt_frame_t *frame) {
  int64_t n = frame->symbols[0];
  float first = 0;
  int32_t code = n > 0 ? imports->copy(frame, &first, frame->inputs[0], sizeof first, TCRT_COPY_DEVICE_TO_HOST) : 0;
  if (code)
    return code;
  if (first == 666.0f)
    return refuse(frame, TCRT_CODE_REFUSED, "the run is refused by value");
  /* Through memory of the run and the arena, so that every import is used. */
  float *factor = imports->allocate(frame, sizeof(float)), host_factor = 0;
  if (!factor)
    return TCRT_CODE_NO_MEMORY;
  code = imports->copy(frame, &host_factor, frame->weights + 64, sizeof host_factor, TCRT_COPY_DEVICE_TO_HOST);
  if (!code)
    code = imports->copy(frame, factor, &host_factor, sizeof host_factor, TCRT_COPY_HOST_TO_DEVICE);
  host_factor = -1;
  const void *x = frame->inputs[0], *arena = frame->arena;
  _Alignas(TCRT_PARAMETER_ALIGN) const struct {
    const void *x, *y, *factor;
    int64_t n;
  } parameters = {x, arena, factor, n};
  const tcrt_device_launch_t launch = {.grid = {(uint32_t)((n + 127) / 128), 1, 1},
                                       .block = {128, 1, 1},
                                       .cluster = {1, 1, 1},
                                       .graph = 1,
                                       .parameter_size = sizeof parameters,
                                       .parameters = &parameters};
  if (!code)
    code = imports->launch_device(frame, &launch);
  if (!code)
    code = imports->copy(frame, frame->outputs[0], frame->arena, 4 * (uint64_t)n, TCRT_COPY_DEVICE_TO_DEVICE);
  int64_t half = n / 2;
  void *z = code ? 0 : imports->output(frame, 1, &half);
  if (!code && !z)
    code = TCRT_CODE_NO_MEMORY;
  if (!code)
    code = imports->copy(frame, z, frame->arena, 4 * (uint64_t)half, TCRT_COPY_DEVICE_TO_DEVICE);
  imports->release(frame, factor);
  return code;
}

#elif defined(PROGRAM_CHAIN)
/* A GPU variant of several launches. Input x f32 (n), output y f32 (n) = factor^4 * x, where n is odd factor^7 * x, in
 * two rows of launches with a look at y in between. Kernel and weights as of PROGRAM_DEVICE. Where n % 8 is 6, a launch
 * has clusters. */
static int32_t infer(tcrt_frame_t *frame) {
  frame->output_dims[0] = frame->symbols[0];
  frame->arena_size = 8 * (uint64_t)frame->symbols[0] + 256;
  return TCRT_CODE_OK;
}

static int32_t scale(tcrt_frame_t *frame, const void *x, void *y, uint32_t cluster) {
  int64_t n = frame->symbols[0];
  _Alignas(TCRT_PARAMETER_ALIGN) const struct {
    const void *x, *y, *factor;
    int64_t n;
  } parameters = {x, y, frame->weights + 64, n};
  uint32_t blocks = (uint32_t)((n + 127) / 128);
  const tcrt_device_launch_t launch = {.grid = {(blocks + cluster - 1) / cluster * cluster, 1, 1},
                                       .block = {128, 1, 1},
                                       .cluster = {cluster, 1, 1},
                                       .graph = 1,
                                       .parameter_size = sizeof parameters,
                                       .parameters = &parameters};
  return imports->launch_device(frame, &launch);
}

static int32_t run(tcrt_frame_t *frame) {
  int64_t n = frame->symbols[0];
  uint8_t *first = frame->arena, *second = first + (4 * n + 127) / 128 * 128, *y = frame->outputs[0];
  int32_t code = scale(frame, frame->inputs[0], first, n % 8 == 6 ? 2 : 1);
  code = code ? code : scale(frame, first, second, 1);
  code = code ? code : scale(frame, second, first, 1);
  code = code ? code : scale(frame, first, y, 1);
  if (code || n % 2 == 0)
    return code;
  float value = 0;
  code = imports->copy(frame, &value, y, sizeof value, TCRT_COPY_DEVICE_TO_HOST);
  if (!code && value == 81 * 666.0f)
    return refuse(frame, TCRT_CODE_REFUSED, "the run is refused by value");
  code = code ? code : scale(frame, y, second, 1);
  code = code ? code : scale(frame, second, first, 1);
  return code ? code : scale(frame, first, y, 1);
}

#elif defined(PROGRAM_STATES)
/* Function 0, "add": input x f32 (2), output y f32 (2); the states sum f32 (2) += x, runs i64 += 1, y = sum. Function
 * 1, "look": input x f32 (n), outputs runs i64 and scaled f32 (n, 2) = x * sum, through the arena; n of 13 fails after
 * it has made runs -1. */
static int32_t infer(tcrt_frame_t *frame) {
  frame->output_dims[0] = 2;
  return TCRT_CODE_OK;
}

static int32_t run(tcrt_frame_t *frame) {
  const float *x = frame->inputs[0];
  float *sum = frame->states[0], *y = frame->outputs[0];
  for (int i = 0; i < 2; ++i)
    y[i] = sum[i] += x[i];
  ++*(int64_t *)frame->states[1];
  return TCRT_CODE_OK;
}

static int32_t infer_look(tcrt_frame_t *frame) {
  frame->output_dims[0] = frame->symbols[0];
  frame->output_dims[1] = 2;
  frame->arena_size = 8 * (uint64_t)frame->symbols[0];
  return TCRT_CODE_OK;
}

static int32_t run_look(tcrt_frame_t *frame) {
  const float *x = frame->inputs[0], *sum = frame->states[0];
  float *product = (float *)frame->arena, *scaled = frame->outputs[1];
  if (frame->symbols[0] == 13) {
    *(int64_t *)frame->states[1] = -1;
    return refuse(frame, TCRT_CODE_REFUSED, "the run is refused by size");
  }
  for (int64_t i = 0; i < 2 * frame->symbols[0]; ++i)
    product[i] = x[i / 2] * sum[i % 2];
  for (int64_t i = 0; i < 2 * frame->symbols[0]; ++i)
    scaled[i] = product[i];
  *(int64_t *)frame->outputs[0] = *(const int64_t *)frame->states[1];
  return TCRT_CODE_OK;
}

#define MORE_ROUTINES                                                                                                  \
  , { infer_look, run_look }

#elif defined(PROGRAM_OLD)
/* Asks for a newer runtime. */
static int32_t infer(tcrt_frame_t *frame) { return refuse(frame, TCRT_CODE_INTERNAL, "never called"); }
static int32_t run(tcrt_frame_t *frame) { return infer(frame); }
#endif

#ifndef MORE_ROUTINES
#define MORE_ROUTINES
#endif

static const tcrt_routine_t routines[] = {{infer, run} MORE_ROUTINES};
static const tcrt_program_t program = {TCRT_ABI_VERSION, sizeof(tcrt_program_t), COUNT(routines), 0, routines};

__attribute__((visibility("default"))) const tcrt_program_t *tc_entry(const tcrt_imports_t *table) {
  imports = table;
#if defined(PROGRAM_OLD)
  return 0;
#else
  if (table->abi_version != TCRT_ABI_VERSION || table->size < sizeof(tcrt_imports_t))
    return 0;
  return &program;
#endif
}
