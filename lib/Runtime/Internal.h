/*
 * Internal.h - what the files of the runtime share: the pool, models, drivers, contexts.
 *
 * Nothing here is installed, and nobody but the unit tests includes it: what the compiler needs, too, stands in
 * tc/Format and tc/Functions.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_INTERNAL_H
#define TCRT_INTERNAL_H

#include "tc/Format/Container.h"
#include "tc/Format/Elf.h"
#include "tc/Format/Error.h"
#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

uint64_t tcrt_now_ns(void);

/* A function of the API begins with one for each address that it needs: without it there is nothing to do but to say
 * so. Names are those of the header. TCRT_NEEDS_OR is for functions that return no status. */
tcrt_status_t tcrt_is_missing(const char *function, const char *argument);
#define TCRT_NEEDS_OR(argument, otherwise)                                                                             \
  do {                                                                                                                 \
    if (!(argument)) {                                                                                                 \
      tcrt_is_missing(__func__, #argument);                                                                            \
      return otherwise;                                                                                                \
    }                                                                                                                  \
  } while (0)
#define TCRT_NEEDS(argument) TCRT_NEEDS_OR(argument, TCRT_ERROR_INVALID)

/* ---- CPU ---- */

/* Asks the system for AMX state once per process. False: not given. */
int tcrt_request_amx(void);
/* Cores that this process may run on. */
uint32_t tcrt_usable_cores(void);
/* Whether a hypervisor runs this system. */
int tcrt_is_virtual_machine(void);

/* ---- thread pool ---- */

typedef struct tcrt_pool_t tcrt_pool_t;
typedef struct tcrt_pool_slot_t tcrt_pool_slot_t;
typedef void (*tcrt_range_fn)(void *data, int64_t range, int64_t worker);

tcrt_pool_t *tcrt_pool_create(void);
void tcrt_pool_destroy(tcrt_pool_t *pool);
/* Makes sure that the pool has `helpers` threads beside callers. Returns how many it has (fewer if the system refuses).
 */
uint32_t tcrt_pool_grow(tcrt_pool_t *pool, uint32_t helpers);
/* What a run did, a bit each. */
enum {
  TCRT_POOL_SHARED = 1,     /* some launch */
  TCRT_POOL_SHARED_SOON = 2 /* the first one so soon that such a run should wake helpers at once */
};
/* Brackets a run: between these, helpers wait for work actively for a while; `helpers_soon` are woken at once. NULL: no
 * slot is free, run serially. To leave returns TCRT_POOL_*. */
tcrt_pool_slot_t *tcrt_pool_enter(tcrt_pool_t *pool, uint32_t helpers_soon);
int tcrt_pool_leave(tcrt_pool_t *pool, tcrt_pool_slot_t *slot);
/* A run with threads of the caller: as tcrt_pool_enter; those call tcrt_pool_assist with numbers from 1 on, which
 * returns when tcrt_pool_dismiss was called. */
tcrt_pool_slot_t *tcrt_pool_enter_with_team(tcrt_pool_t *pool);
void tcrt_pool_assist(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, uint32_t number);
void tcrt_pool_dismiss(tcrt_pool_slot_t *slot);
/* In how many ranges `tasks` are cut: at most `most`, of about `grain` tasks, and as many for each of `threads`, where
 * tasks can be put together; below 2: not worth sharing. */
int64_t tcrt_count_ranges(int64_t tasks, int64_t grain, int64_t most, int64_t threads);
/* Calls fn for all of [0, ranges) on the caller and at most workers-1 helpers, and waits. `keeps_ranges`: threads leave
 * most ranges to those that took them in launches before, even if these are slower. */
void tcrt_pool_run(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, tcrt_range_fn fn, void *data, int64_t ranges,
                   int64_t workers, int keeps_ranges);
/* Calls fn for all of [0, ranges * steps), for those from s * ranges on when all before them are done; else as
 * tcrt_pool_run. Who stays in one block of ranges in one step has the same block in all of them. */
void tcrt_pool_run_steps(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, tcrt_range_fn fn, void *data, int64_t ranges,
                         int64_t steps, int64_t workers);
/* Whether the calling thread is inside a range now, so that further parallelism must be inline. */
int tcrt_pool_in_range(void);
/* For executors of the caller: marks the thread as inside a range; returns what to give to the end call. */
int tcrt_pool_begin_range(void);
void tcrt_pool_end_range(int previous);
int64_t tcrt_pool_threads(tcrt_pool_t *pool);

/* ---- model ---- */

struct tcrt_driver_t;

/* Loaded code of a variant, made at the first context that needs it and kept until the model is closed. */
typedef struct tcrt_loaded_variant_t {
  tcrt_elf_image_t image;
  const tcrt_imports_t *imports;  /* that the code was given */
  const tcrt_routine_t *routines; /* one for each function */
  tcrt_routine_t abi_1;           /* that of an artifact of ABI 1 */
  const struct tcrt_driver_t *driver;
  void *driver_state;     /* device code and weights */
  const uint8_t *weights; /* address that the program gets */
} tcrt_loaded_variant_t;

/* Names in order, each with its position in the signature: so that callers who go through all inputs by name take time
 * in proportion to them. */
typedef struct tcrt_name_t {
  const char *name;
  uint32_t index;
} tcrt_name_t;

/* A function of a model: its part of the signature. */
typedef struct tcrt_model_function_t {
  char *name; /* NUL-terminated, as are the names below */
  char **input_names, **output_names, **symbol_names;
  tcrt_name_t *sorted_inputs, *sorted_outputs;
  const tcrt_sig_value_t *inputs, *outputs;
  const tcrt_sig_symbol_t *symbols;
  uint32_t input_count, output_count, symbol_count;
  uint32_t input_dim_count, output_dim_count;
  uint32_t *output_dims_at; /* where each output's dims begin among those of all outputs */
  int has_static_inputs;
  const tcrt_sig_entry_t *entries; /* with sizes of their own; one more runs for all others */
  uint32_t entry_count;
} tcrt_model_function_t;

typedef struct tcrt_counters_t tcrt_counters_t;

/* Libraries of host functions beside libtcrt. */
enum { TCRT_LIBRARY_HOST, TCRT_LIBRARY_ORT, TCRT_LIBRARY_COUNT };

struct tcrt_model_t {
  tcrt_container_t container;
  char *name;
  char **names; /* NUL-terminated copies of the signature's names */
  char **variant_names, **kernel_names, **kernel_nodes, **state_names;
  tcrt_model_function_t *functions;
  tcrt_name_t *sorted; /* inputs and outputs, function by function, then states, then functions */
  tcrt_name_t *sorted_states, *sorted_functions;
  uint32_t *output_dims_at; /* of all functions */
  void *mapping;            /* of the file, or an own copy */
  uint64_t mapping_bytes;
  void *weights_mapping; /* of the file with the weights, or NULL */
  uint64_t weights_mapping_bytes;
  int fd; /* -1: not a file */
  tcrt_model_options_t options;
  uint32_t chosen;                /* variant; UINT32_MAX: none on this machine */
  void *lock;                     /* pthread_mutex_t: loaded variants and the pool */
  tcrt_loaded_variant_t **loaded; /* per variant, NULL: not yet */
  tcrt_pool_t *pool;
  uint32_t context_count; /* under lock */
  int is_closed;          /* by the caller, while there were contexts; they serve no more, and the last one frees it */
  void **host_functions;  /* tcrt_function_fn per host function of the signature */
  void *function_libraries[TCRT_LIBRARY_COUNT]; /* of dlopen; NULL: not needed */
  tcrt_counters_t *counters;
};

/* What the model has run. Open models are listed for tcrt_metrics. */
tcrt_status_t tcrt_counters_open(tcrt_model_t *model);
void tcrt_counters_close(tcrt_model_t *model);
/* Counts a run of the context that has ended. */
void tcrt_count_run(tcrt_context_t *context, tcrt_status_t status, uint64_t time_ns);
/* The memory that a context held is given back. */
void tcrt_count_end(tcrt_context_t *context);
/* The number of the entry that runs for these sizes of the function's symbols. */
uint32_t tcrt_choose_entry(const tcrt_model_t *model, const tcrt_model_function_t *function, const int64_t *symbols);

/* Hand an event to the context's callback, which must be there. */
void tcrt_event_span(const tcrt_context_t *context, uint32_t kind, const char *name, uint64_t begin_ns);
void tcrt_event_kernel(const tcrt_context_t *context, uint32_t id, uint32_t device, uint64_t begin_ns, uint64_t end_ns);
void tcrt_event_tasks(const tcrt_context_t *context, uint32_t id, int64_t worker, uint64_t begin_ns, int64_t first,
                      int64_t count);
void tcrt_event_call(const tcrt_context_t *context, const tcrt_call_t *call, uint64_t begin_ns);

/* Of a state: its sizes, and the bytes that they make. */
uint64_t tcrt_model_state_size(const tcrt_model_t *model, uint32_t index, int64_t *dims);
const char *tcrt_model_variant_name(const tcrt_model_t *model, uint32_t index);
/* Whether a CPU of these features runs the variant's code. */
int tcrt_is_usable(const tcrt_sig_variant_t *variant, uint64_t features);
void tcrt_model_log(const tcrt_model_t *model, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Finds the variant of this name, or the model's choice for NULL, and checks that the CPU can run it. */
tcrt_status_t tcrt_model_choose(const tcrt_model_t *model, const char *variant, uint32_t *index);
/* Loads code once. Needs the model's lock. */
tcrt_status_t tcrt_model_load_variant(tcrt_model_t *model, uint32_t index, tcrt_loaded_variant_t **loaded);

/* Finds the host functions that the program calls, once. Needs the model's lock. */
tcrt_status_t tcrt_model_find_functions(tcrt_model_t *model);

/* ---- drivers ---- */

/* A kind of device. CPU/ and CUDA/ fill one each. Memory is the device's memory; `release` gets the size back. */
typedef struct tcrt_driver_t {
  uint32_t device;
  /* Whether the variant, whose host code this CPU runs, is for the machine's device, as far as can be told without
   * opening it. */
  int (*runs)(const tcrt_model_t *model, const tcrt_sig_variant_t *variant);
  /* Whether the machine has a device for one of the model's variants; else the error says why not. */
  tcrt_status_t (*is_usable)(const tcrt_model_t *model);
  /* Loads device code and brings weights to the device; sets loaded->driver_state and loaded->weights. */
  tcrt_status_t (*variant_open)(tcrt_model_t *model, uint32_t variant, tcrt_loaded_variant_t *loaded);
  void (*variant_close)(tcrt_loaded_variant_t *loaded);
  tcrt_status_t (*context_open)(tcrt_context_t *context);
  void (*context_close)(tcrt_context_t *context);
  void *(*stream)(const tcrt_context_t *context); /* of the device's own kind */
  void (*graph_stats)(const tcrt_context_t *context, tcrt_graph_stats_t *stats);
  void *(*allocate)(tcrt_context_t *context, uint64_t bytes); /* NULL: no memory */
  /* Sets the error for the last `allocate` that gave none. */
  tcrt_status_t (*no_memory)(const tcrt_context_t *context, const char *what, uint64_t bytes);
  void (*release)(tcrt_context_t *context, void *data, uint64_t bytes);
  /* Ordered with the launches of the context; host memory that it reads or writes must stay until `synchronize` or
   * `finish` returns. */
  tcrt_status_t (*copy)(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes, uint32_t direction);
  /* Makes bytes zero; ordered likewise. */
  tcrt_status_t (*clear)(tcrt_context_t *context, void *data, uint64_t bytes);
  tcrt_status_t (*synchronize)(tcrt_context_t *context);
  /* `parameters`: addresses of the kernel's parameters (ABI 1), or NULL: they are in the launch's block. */
  tcrt_status_t (*launch)(tcrt_context_t *context, const tcrt_device_launch_t *launch, void **parameters);
  tcrt_status_t (*run_begin)(tcrt_context_t *context);
  tcrt_status_t (*run_end)(tcrt_context_t *context); /* all of the run is enqueued; does not wait */
  tcrt_status_t (*finish)(tcrt_context_t *context);  /* waits for runs that ended; adds up profiles */
} tcrt_driver_t;

extern const tcrt_driver_t tcrt_cpu_driver;
extern const tcrt_driver_t tcrt_cuda_driver;

/* ---- context ---- */

typedef struct tcrt_bound_t {
  int bound; /* to a buffer of the caller */
  tcrt_tensor_t tensor;
  tcrt_value_t value; /* input that is no tensor */
  void *own;          /* device memory: staging copy or own output */
  uint64_t own_bytes;
  void *host; /* own output on the host, for GPU contexts; strings for the caller */
  uint64_t host_bytes;
  int is_known; /* output: size known before the run */
  int is_set;   /* output: delivered by the last run */
} tcrt_bound_t;

typedef struct tcrt_block_t {
  struct tcrt_block_t *next, *previous;
  void *data;
  uint64_t bytes;
} tcrt_block_t;

/* Blocks, the latest first, and their bytes. */
typedef struct tcrt_blocks_t {
  tcrt_block_t *first, *last;
  uint64_t bytes;
} tcrt_blocks_t;

typedef struct tcrt_cost_t {
  uint64_t flops, bytes;
} tcrt_cost_t;

/* How far a function of a context is. It goes back before any field that a later stage vouches for is written, and
 * ahead when all of them are; so what a call that failed half-way has left is never looked at.
 *
 *   call            takes                 leaves
 *   set_input       any                   BOUND if a size changes, else as it was
 *   set_output      any                   as it was, but that output is delivered by no run yet
 *   infer           any                   as it was from INFERRED on; BOUND where it fails
 *   run             any                   RUN; where it fails BOUND or INFERRED
 *   output_shape    INFERRED, RUN         as it was
 *   get_output      RUN                   as it was
 */
typedef enum tcrt_stage_t {
  TCRT_STAGE_UNBOUND = 0, /* nothing was bound */
  TCRT_STAGE_BOUND,       /* sizes may have changed: nothing is known of symbols, outputs and arena */
  TCRT_STAGE_INFERRED,    /* symbols, sizes of outputs and the arena are those of what is bound */
  TCRT_STAGE_RUN          /* outputs that are set hold the results of the last run, in these sizes */
} tcrt_stage_t;

/* What a context keeps for each function: its bindings, and what follows from them. */
typedef struct tcrt_bindings_t {
  const tcrt_model_function_t *function;
  const tcrt_routine_t *routine;
  tcrt_bound_t *inputs, *outputs;
  const void **input_data;
  void **output_data;
  int64_t *input_dims, *output_dims, *symbols;
  tcrt_stage_t stage;
  int overlap_checked;
  uint32_t entry;      /* that runs, from INFERRED on */
  uint32_t usage;      /* where the sizes were counted last */
  uint64_t arena_size; /* that a run needs */
} tcrt_bindings_t;

struct tcrt_context_t {
  tcrt_model_t *model;
  tcrt_loaded_variant_t *variant;
  const tcrt_driver_t *driver;
  void *driver_state;
  uint32_t variant_index;
  uint32_t threads;
  uint64_t memory_limit;
  tcrt_executor_t executor;
  int has_executor;
  tcrt_team_t team;
  int has_team;
  tcrt_allocator_t allocator;
  int has_allocator;
  int has_misaligned; /* it gave memory without the alignment that it was asked for */
  int profile;        /* times kernels */
  int times_runs;     /* on a device */
  int device_outputs;
  int graphs;   /* TCRT_GRAPHS_* */
  void *stream; /* the caller's, or NULL */
  int busy;     /* atomic */
  tcrt_frame_t frame;
  tcrt_pool_slot_t *slot;    /* during a run */
  int shares_soon;           /* the last run: wakes helpers at once */
  int team_pays;             /* the last run: was long enough for a team, and shared something */
  tcrt_bindings_t *all;      /* for each function */
  tcrt_bindings_t *bindings; /* of the function that is chosen, among them */
  tcrt_bindings_t *last_run; /* whose strings and objects the store holds */
  void **states;             /* device memory of each */
  void *arena;               /* shared by the functions */
  uint64_t arena_bytes;      /* allocated */
  uint64_t memory_bytes, peak_bytes;
  uint64_t counted_bytes; /* memory that the model's counters know of */
  void (*event)(void *user, const tcrt_event_t *event);
  void *event_user;
  uint64_t runs;
  double device_us;
  tcrt_blocks_t blocks;       /* data-dependent memory of this run */
  tcrt_blocks_t idle_blocks;  /* that values of this run or the last one had, for those to come */
  uint64_t most_block_bytes;  /* of `blocks` at any time: with the idle ones, there are never more */
  struct tcrt_store_t *store; /* strings and objects; NULL where the model has none */
  tcrt_status_t run_status;
  char *run_message;
  tcrt_cost_t *costs; /* of each kernel, for the sizes of the last infer or launch */
  uint64_t *profile_ns, *profile_launches;
};

extern const tcrt_imports_t tcrt_imports;

/* Enqueues a launch for a running program; `parameters` as for the driver. Non-zero: failed. */
int32_t tcrt_launch_device(tcrt_context_t *context, const tcrt_device_launch_t *launch, void **parameters);

/* Calls the entry point of code of ABI 1 and makes the one routine. False: it needs another runtime. */
int tcrt_abi_1_load(tcrt_loaded_variant_t *loaded);

/* Host memory of a context, from its allocator. */
void *tcrt_host_allocate(tcrt_context_t *context, uint64_t bytes);
void tcrt_host_release(tcrt_context_t *context, void *data, uint64_t bytes);
/* Counts memory against the limit; sets the error and returns false if it does not fit. */
int tcrt_context_charge(tcrt_context_t *context, uint64_t bytes, const char *what);
void tcrt_context_discharge(tcrt_context_t *context, uint64_t bytes);
/* Records a failure of the run; the first one stays. */
int32_t tcrt_context_set_failure(tcrt_context_t *context, tcrt_status_t status, const char *message, uint64_t length);
/* Puts the file's name, and that of a value or node, before the error that is set, if it has none. */
tcrt_status_t tcrt_context_name_error(const tcrt_context_t *context, tcrt_status_t status, const char *what,
                                      const char *name, uint64_t length);
/* Gives output `index` its memory for the dims in context->output_dims. */
tcrt_status_t tcrt_context_place_output(tcrt_context_t *context, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_INTERNAL_H */
