/*
 * tcrt.h - the C API of libtcrt, which loads compiled models (artifacts) and runs them.
 *
 * A model (tcrt_model_t) is an opened artifact: checked, mapped, shared by all its contexts. A context (tcrt_context_t)
 * is what one run at a time needs: bound tensors, the arena, states, statistics. Contexts of a model share weights,
 * code and one pool of threads.
 *
 *   tcrt_model_t *model;
 *   tcrt_context_t *context;
 *   if (tcrt_model_open_file("model.bin", NULL, &model) || tcrt_context_create(model, NULL, &context))
 *     die(tcrt_last_error());
 *   tcrt_tensor_t x = {TCRT_DTYPE_F32, 2, {1, 4}, data, sizeof data};
 *   if (tcrt_context_set_input(context, 0, &x) || tcrt_context_run(context))
 *     die(tcrt_last_error());
 *   tcrt_tensor_t y;
 *   tcrt_context_get_output(context, 0, &y);
 *
 * Errors: every fallible call returns a tcrt_status_t, whose value is also the exit code of tc's tools, and leaves a
 * one-line sentence for tcrt_last_error. Results come last and are zeroed on entry. NULL for an address that a call
 * needs is refused with TCRT_ERROR_INVALID; counts of nothing are 0. Ownership: create/open pairs with destroy/close;
 * strings and tables that a model returns live until it is closed, tensors that a context returns until its next run or
 * its end. Input and output buffers belong to the caller, as does a stream that it gives. Threads: a model may be used
 * from any thread at any time, but for closing it; a context by one thread at a time, and while it runs every other
 * call on it is refused. Any number of contexts may run at once. fork: a child must not use models and contexts that
 * its parent opened (their threads are not there). Trust: damaged or hostile files are refused without harm as long as
 * their hashes are not made to fit; beyond that, an artifact is native code and must be trusted like any library. A
 * mapped file must not be overwritten or truncated while it is open; another may be renamed over it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_TCRT_H
#define TCRT_TCRT_H

#include "tcrt/artifact_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TCRT_STATIC)
#define TCRT_API
#else
#define TCRT_API __attribute__((visibility("default")))
#endif

/** Result of a call. Values are the exit codes of the tools; 2 and 3 belong to the compiler and to comparisons. */
typedef enum tcrt_status_t {
  TCRT_OK = 0,
  TCRT_ERROR_INVALID = 1, /**< wrong use, I/O error, not an artifact, corrupt, or of another version */
  TCRT_ERROR_REFUSED = 4, /**< an input has a dtype, rank, size or value that the model does not take */
  TCRT_ERROR_MACHINE = 5, /**< this machine cannot run it: CPU, GPU, driver, memory */
  TCRT_ERROR_INTERNAL = 6 /**< a defect in tc */
} tcrt_status_t;

/** The library's version, "major.minor.patch". */
TCRT_API const char *tcrt_version(void);

/** The last error of the calling thread: one line, never NULL, valid until the thread's next failing call. */
TCRT_API const char *tcrt_last_error(void);

/** "f32", "i64", ...; "invalid" for unknown numbers. */
TCRT_API const char *tcrt_dtype_name(tcrt_dtype_t dtype);

/** Bits of one element; 0 for strings and unknown numbers. */
TCRT_API uint32_t tcrt_dtype_bits(tcrt_dtype_t dtype);

/** The TCRT_CPU_* features of this machine that the operating system lets programs use. */
TCRT_API uint64_t tcrt_cpu_features(void);

/** A byte string, UTF-8 by convention. An element of a TCRT_DTYPE_STRING tensor's data. */
typedef struct tcrt_string_t {
  const char *data; /**< may be NULL where size_bytes is 0 */
  uint64_t size_bytes;
} tcrt_string_t;

/** A dense row-major tensor. Sub-byte elements are packed, low bits first; strings are tcrt_string_t. */
typedef struct tcrt_tensor_t {
  tcrt_dtype_t dtype;
  uint32_t rank;
  int64_t dims[TCRT_MAX_RANK]; /**< -1: known after the run */
  void *data;                  /**< may be NULL where there are no elements */
  uint64_t size_bytes;         /**< bytes at `data` */
  uint32_t device;             /**< TCRT_DEVICE_CPU or, for memory of the context's GPU, TCRT_DEVICE_CUDA */
} tcrt_tensor_t;

/** An input or output that may be a sequence, an optional or a map: a tree whose leaves are tensors. */
typedef struct tcrt_value_t {
  uint32_t kind;                       /**< TCRT_VALUE_* */
  uint64_t count;                      /**< elements: of a sequence any number, of an optional 0 or 1, of a map 2 */
  const struct tcrt_value_t *elements; /**< a map's: its keys and its values, 1-D tensors of equal length */
  tcrt_tensor_t tensor;                /**< of a tensor; in host memory */
} tcrt_value_t;

/** Bytes that a tensor of this dtype and these dims takes. False if a dim is negative or the size overflows. */
TCRT_API int tcrt_tensor_size(tcrt_dtype_t dtype, uint32_t rank, const int64_t *dims, uint64_t *size_bytes);

/* ------------------------------------------------------------------------------------------------------- models -- */

typedef struct tcrt_model_t tcrt_model_t;

enum { TCRT_LOG_INFO = 0, TCRT_LOG_WARNING = 1 };

/** Options of opening a model. Set `size` to sizeof(tcrt_model_options_t) and the rest to 0 for the defaults. */
typedef struct tcrt_model_options_t {
  size_t size;
  int verify_weights;   /**< also check the hashes of weights and device code, which reads the whole file */
  const char *variant;  /**< run this variant, whatever is best on the machine; NULL: choose */
  uint32_t device;      /**< TCRT_DEVICE_*: choose among variants for this device */
  int32_t device_index; /**< which GPU */
  void (*log)(void *user, int level, const char *message); /**< may be called from any thread that calls the library */
  void *log_user;
  const struct tcrt_function_t *functions; /**< custom operators' functions (tcrt/function.h); must outlive the model */
  uint64_t function_count;
  int cpu_instead; /**< with a GPU as `device`: where it cannot be used (no GPU, no driver, no code for it) variants for
                      CPUs are chosen, and the log says why. tcrt_model_variant tells the device of a variant */
  /** Decides whether an artifact is accepted, from all of its bytes, before anything in them is used; it holds the hash
   * of its weights file, which is checked, too. A file is then not mapped but read into memory of the model's own, so
   * that what is accepted is what runs, whoever writes to the file meanwhile. Other results than TCRT_OK refuse it:
   * `why` gets the sentence, without the file's name. tcrt/verify.h has one for Ed25519 signatures. */
  tcrt_status_t (*verify)(void *user, const char *name, const void *data, uint64_t size_bytes, char *why,
                          uint64_t why_bytes);
  void *verify_user;
} tcrt_model_options_t;

/** Maps the artifact at `path`. `options` may be NULL. The caller closes the model. */
TCRT_API tcrt_status_t tcrt_model_open_file(const char *path, const tcrt_model_options_t *options,
                                            tcrt_model_t **model);

/** Opens an artifact in memory. `data` stays the caller's and must stay valid and unchanged until the model is closed;
 * it is used in place if it is aligned to TCRT_SECTION_ALIGN and copied if not. `name` stands for the path in messages.
 */
TCRT_API tcrt_status_t tcrt_model_open_memory(const void *data, uint64_t size_bytes, const char *name,
                                              const tcrt_model_options_t *options, tcrt_model_t **model);

/** Where an artifact is read from piece by piece. */
typedef struct tcrt_reader_t {
  void *user;
  uint64_t size_bytes;
  /** Reads exactly `bytes` bytes at `offset`. Non-zero: failed. */
  int (*read)(void *user, uint64_t offset, void *data, uint64_t bytes);
} tcrt_reader_t;

/** Reads an artifact through a callback into memory of the model's own. */
TCRT_API tcrt_status_t tcrt_model_open_reader(const tcrt_reader_t *reader, const char *name,
                                              const tcrt_model_options_t *options, tcrt_model_t **model);

/** Closes a model. Contexts that are still there refuse all calls, and the last one that is destroyed frees the model.
 * NULL is fine. */
TCRT_API void tcrt_model_close(tcrt_model_t *model);

/** An input or output of a model. */
typedef struct tcrt_value_info_t {
  const char *name;
  tcrt_dtype_t dtype;
  uint32_t kind; /**< TCRT_VALUE_* */
  uint32_t rank;
  uint32_t flags;                 /**< TCRT_VALUE_FLAG_* */
  uint32_t inner;                 /**< what is inside: tcrt_sig_value_t::inner */
  int64_t dims[TCRT_MAX_RANK];    /**< size; -1 where symbolic or computed */
  int32_t symbols[TCRT_MAX_RANK]; /**< index of the dim's symbol, -1 without */
} tcrt_value_info_t;

/** A symbolic size: min <= s <= max and s % divisor == 0. */
typedef struct tcrt_symbol_info_t {
  const char *name;
  int64_t min, max, divisor;
} tcrt_symbol_info_t;

/** A function of a model. */
typedef struct tcrt_function_info_t {
  const char *name;
  uint32_t input_count, output_count, symbol_count;
} tcrt_function_info_t;

/** A state of a model: a tensor that each context has one of, and that outlives its runs. */
typedef struct tcrt_state_info_t {
  const char *name;
  tcrt_dtype_t dtype;
  uint32_t rank;
  int64_t dims[TCRT_MAX_RANK];
  uint64_t size_bytes;
} tcrt_state_info_t;

/** Code for one kind of machine. */
typedef struct tcrt_variant_info_t {
  const char *name;
  uint32_t device;       /**< TCRT_DEVICE_* */
  uint64_t cpu_features; /**< TCRT_CPU_* that it needs */
  int usable;            /**< whether this CPU has them */
  uint64_t code_bytes;   /**< of host code */
} tcrt_variant_info_t;

/** A model has one function or several, each with inputs, outputs and symbols of its own. They share weights and code,
 * and within a context the states. */
TCRT_API uint32_t tcrt_model_function_count(const tcrt_model_t *model);
TCRT_API tcrt_status_t tcrt_model_function(const tcrt_model_t *model, uint32_t index, tcrt_function_info_t *info);
/** Index of the function of this name. */
TCRT_API tcrt_status_t tcrt_model_find_function(const tcrt_model_t *model, const char *name, uint32_t *index);

/** Inputs, outputs and symbols of a function. */
TCRT_API tcrt_status_t tcrt_model_function_input(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                                 tcrt_value_info_t *info);
TCRT_API tcrt_status_t tcrt_model_function_output(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                                  tcrt_value_info_t *info);
TCRT_API tcrt_status_t tcrt_model_function_symbol(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                                  tcrt_symbol_info_t *info);
TCRT_API tcrt_status_t tcrt_model_function_find_input(const tcrt_model_t *model, uint32_t function, const char *name,
                                                      uint32_t *index);
TCRT_API tcrt_status_t tcrt_model_function_find_output(const tcrt_model_t *model, uint32_t function, const char *name,
                                                       uint32_t *index);

/** The same of function 0, which most models have alone. */
TCRT_API uint32_t tcrt_model_input_count(const tcrt_model_t *model);
TCRT_API uint32_t tcrt_model_output_count(const tcrt_model_t *model);
TCRT_API uint32_t tcrt_model_symbol_count(const tcrt_model_t *model);
TCRT_API tcrt_status_t tcrt_model_input(const tcrt_model_t *model, uint32_t index, tcrt_value_info_t *info);
TCRT_API tcrt_status_t tcrt_model_output(const tcrt_model_t *model, uint32_t index, tcrt_value_info_t *info);
TCRT_API tcrt_status_t tcrt_model_symbol(const tcrt_model_t *model, uint32_t index, tcrt_symbol_info_t *info);
TCRT_API tcrt_status_t tcrt_model_find_input(const tcrt_model_t *model, const char *name, uint32_t *index);
TCRT_API tcrt_status_t tcrt_model_find_output(const tcrt_model_t *model, const char *name, uint32_t *index);

TCRT_API uint32_t tcrt_model_state_count(const tcrt_model_t *model);
TCRT_API tcrt_status_t tcrt_model_state(const tcrt_model_t *model, uint32_t index, tcrt_state_info_t *info);
/** Index of the state of this name. */
TCRT_API tcrt_status_t tcrt_model_find_state(const tcrt_model_t *model, const char *name, uint32_t *index);

TCRT_API uint32_t tcrt_model_variant_count(const tcrt_model_t *model);
TCRT_API tcrt_status_t tcrt_model_variant(const tcrt_model_t *model, uint32_t index, tcrt_variant_info_t *info);

/** Code of a function for some sizes of its symbols: `tc-compile --dim batch=1,8,1..64` makes three, `--dim
 * batch=bucket:8,64` two. A run is by the first entry whose sizes it has; the last one is for all others. */
typedef struct tcrt_entry_info_t {
  const char *name;    /**< "batch=8", "batch=8,seq<=128"; "general" for the last one */
  uint32_t size_count; /**< how many symbols have a size of their own in it */
} tcrt_entry_info_t;

/** How many entries the function has, at least 1; 0 where there is no such function. */
TCRT_API uint32_t tcrt_model_entry_count(const tcrt_model_t *model, uint32_t function);
TCRT_API tcrt_status_t tcrt_model_entry(const tcrt_model_t *model, uint32_t function, uint32_t index,
                                        tcrt_entry_info_t *info);

/** The manifest (JSON text, not NUL-terminated). */
TCRT_API tcrt_status_t tcrt_model_manifest(const tcrt_model_t *model, const char **text, uint64_t *size_bytes);

/* ------------------------------------------------------------------------------------------------------ contexts -- */

typedef struct tcrt_context_t tcrt_context_t;

/** Runs ranges of a kernel on the caller's own threads instead of the model's pool. */
typedef struct tcrt_executor_t {
  void *user;
  /** Calls task(data, range, worker) exactly once for each range in [0, ranges), and returns when all have returned.
   * `worker` is in [0, threads of the context) and no two calls that overlap in time may share it. The run fails where
   * a range comes not once, or a number is not there. */
  void (*parallel_for)(void *user, int64_t ranges, void (*task)(void *data, int64_t range, int64_t worker), void *data);
} tcrt_executor_t;

/** Lends a context the caller's own threads for a whole run instead of the model's pool, as OpenMP's parallel regions
 * do: the cost of a launch is then the pool's, and threads of the program that still wait actively for work of their
 * own do not take cores from helpers. */
typedef struct tcrt_team_t {
  void *user;
  /** Calls member(data, number) once for each number in [0, members), 0 on the calling thread and the others on threads
   * of their own at the same time, and returns when all have returned. A member that is not called is missed by nobody,
   * but 0, without which the run fails. A run that follows one of less than 0.2 ms, or one that shared nothing,
   * has the model's pool: members of a team may come late, where a core is not free. */
  void (*run)(void *user, uint32_t members, void (*member)(void *data, uint32_t number), void *data);
} tcrt_team_t;

/** Where a context's host memory comes from. */
typedef struct tcrt_allocator_t {
  void *user;
  void *(*allocate)(void *user, uint64_t bytes,
                    uint64_t alignment); /**< NULL: no memory. Other addresses are refused */
  void (*release)(void *user, void *data, uint64_t bytes);
} tcrt_allocator_t;

/** What a context measures. */
enum {
  TCRT_PROFILE_OFF = 0,
  TCRT_PROFILE_KERNELS =
      1,                /**< each kernel, tcrt_context_profile; GPU: and the run as a whole, with events around each */
  TCRT_PROFILE_RUNS = 2 /**< GPU: the run as a whole, with nothing between its kernels */
};

/** What an event is about. */
enum {
  TCRT_EVENT_RUN = 0, /**< a whole run; its name is the function's */
  TCRT_EVENT_PHASE =
      1, /**< a part of it on the thread that runs the context: "sizes", "inputs", "program", "outputs" */
  TCRT_EVENT_KERNEL = 2, /**< a launch, until all of it is done; on a GPU the time in the stream. Launches that run
                            together without a profile have the same times */
  TCRT_EVENT_TASKS = 3,  /**< tasks of a launch that one worker ran in a row */
  TCRT_EVENT_CALL = 4 /**< a host function; its name is the function's, `nodes` the model's node, cut after 255 bytes */
};

/** Something that took time during a run. Times are of CLOCK_MONOTONIC; those of a GPU are placed there by the time
 * at which the first work of the run was enqueued. `name` and `nodes` live as long as the model, but those of a CALL
 * only as long as the callback. */
typedef struct tcrt_event_t {
  uint32_t kind;   /**< TCRT_EVENT_* */
  uint32_t device; /**< TCRT_DEVICE_*: whose time */
  uint32_t worker; /**< of the context's threads; 0 is the one that runs the context */
  uint32_t kernel; /**< KERNEL, TASKS: its index in tcrt_context_profile; else UINT32_MAX */
  const char *name;
  const char *nodes; /**< of the model; "" where there are none */
  uint64_t begin_ns, end_ns;
  uint64_t flops, bytes;          /**< KERNEL: as in tcrt_profile_entry_t */
  int64_t first_task, task_count; /**< TASKS */
} tcrt_event_t;

/** Options of a context. Set `size` to sizeof(tcrt_context_options_t) and the rest to 0 for the defaults. */
typedef struct tcrt_context_options_t {
  size_t size;
  uint32_t threads;      /**< that a run may use, the caller's included; 0: one per usable core; 1: no thread is made */
  uint64_t memory_limit; /**< bytes of arena, states, data-dependent values and outputs that the context may hold; 0: no
                            limit */
  const char *variant;   /**< instead of the model's choice */
  const tcrt_executor_t *executor;   /**< copied; NULL: the model's pool */
  const tcrt_allocator_t *allocator; /**< copied; NULL: the system's memory */
  int profile;                       /**< TCRT_PROFILE_* */
  int device_outputs;                /**< GPU: leave outputs that the context owns in device memory */
  int graphs;                        /**< GPU: TCRT_GRAPHS_*; a profile of kernels is without graphs */
  void *stream; /**< GPU: the caller's CUstream, of the primary context of the model's GPU, in which
                   everything is enqueued; it must outlive the context, and must not be captured.
                   TCRT_DEFAULT_STREAM is CUDA's. NULL: a stream of the context's own */
  /** Gets each event of a run when it has ended, on the thread on which it did: up to `threads` of them call at the
   * same time, so it must be thread-safe; it must not call the library with this context. All calls for a run are
   * over when the run returns. GPU: there are no graphs then, and tcrt_context_run_async waits. NULL: no events. */
  void (*event)(void *user, const tcrt_event_t *event);
  void *event_user;
  const tcrt_team_t *team; /**< copied; NULL: the model's pool. Not beside an executor */
} tcrt_context_options_t;

/** Makes a context. `options` may be NULL. The caller destroys it before the model is closed. */
TCRT_API tcrt_status_t tcrt_context_create(tcrt_model_t *model, const tcrt_context_options_t *options,
                                           tcrt_context_t **context);

/** Frees a context, which must not be running, and the outputs that it owns. NULL is fine. */
TCRT_API void tcrt_context_destroy(tcrt_context_t *context);

/** The name of the variant that runs. */
TCRT_API const char *tcrt_context_variant(const tcrt_context_t *context);

/** How many threads a run may use. */
TCRT_API uint32_t tcrt_context_threads(const tcrt_context_t *context);

/** Chooses the function that later calls bind inputs and outputs of, infer, run and ask; 0 at first. Each function of a
 * context keeps its bindings and outputs while others are chosen; states and the arena are shared. */
TCRT_API tcrt_status_t tcrt_context_set_function(tcrt_context_t *context, uint32_t index);

/** The index of the function that is chosen. */
TCRT_API uint32_t tcrt_context_function(const tcrt_context_t *context);

/** Binds an input to the caller's buffer, which is read by later runs and never written. Checks dtype, rank, static
 * sizes and the buffer's size. NULL unbinds it; an input with a default then takes the default. */
TCRT_API tcrt_status_t tcrt_context_set_input(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor);

/** Binds an output to the caller's buffer of `size_bytes` bytes; rank and dims are not looked at. If it turns out too
 * small, the run fails with TCRT_ERROR_INVALID and tcrt_context_output_shape says what is needed. NULL unbinds it: the
 * context then owns the output's memory. Buffers that begin at a multiple of 64 are written fastest. */
TCRT_API tcrt_status_t tcrt_context_set_output(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor);

/** As tcrt_context_set_input, for an input of any kind. The tree and its tensors stay the caller's, and must stay as
 * they are until the input is bound anew. */
TCRT_API tcrt_status_t tcrt_context_set_input_value(tcrt_context_t *context, uint32_t index, const tcrt_value_t *value);

/** Checks the bound inputs' sizes against each other and the model's guards, and computes the outputs' sizes. */
TCRT_API tcrt_status_t tcrt_context_infer(tcrt_context_t *context);

/** Dtype, dims and size of an output after infer or run (`data` is NULL). Sizes that only the run can know are -1, and
 * size_bytes is then 0. */
TCRT_API tcrt_status_t tcrt_context_output_shape(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor);

/** Runs the chosen function; returns when the outputs are there. Calls tcrt_context_infer if input sizes changed. */
TCRT_API tcrt_status_t tcrt_context_run(tcrt_context_t *context);

/** As tcrt_context_run, but returns when the run is enqueued, as far as the program does not need results itself. Its
 * outputs on the device are there for what comes later in the context's stream (an event that the caller records in it,
 * a kernel, a copy, another run); outputs in host memory are there after tcrt_context_wait. Bound buffers, host inputs
 * included, must stay as they are until then. An error of the GPU may come out at a later call. On a CPU, and where
 * the context has a profile, the same as tcrt_context_run. */
TCRT_API tcrt_status_t tcrt_context_run_async(tcrt_context_t *context);

/** Returns when all runs of the context are done. */
TCRT_API tcrt_status_t tcrt_context_wait(tcrt_context_t *context);

/** The CUstream in which the context enqueues its work, the caller's own or the context's; NULL on a CPU. It is the
 * context's as long as it lives; waiting for it and recording events in it are fine at any time. */
TCRT_API void *tcrt_context_stream(const tcrt_context_t *context);

/** The output of the last run of the chosen function: the bound buffer, or the context's own until the function's next
 * run, or, of strings and what is no tensor, the next run of any. Refused once inputs of other sizes are bound, and
 * after a run that failed. */
TCRT_API tcrt_status_t tcrt_context_get_output(tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor);

/** As tcrt_context_get_output, for an output of any kind. */
TCRT_API tcrt_status_t tcrt_context_get_output_value(tcrt_context_t *context, uint32_t index, tcrt_value_t *value);

/** Instead of the index of a state. */
#define TCRT_ALL_STATES UINT32_MAX

/** Gives a state, or with TCRT_ALL_STATES every state, the value that it had when the context was made. */
TCRT_API tcrt_status_t tcrt_context_reset_state(tcrt_context_t *context, uint32_t index);

/** Copies a state to the caller's buffer `tensor->data`, in host memory or that of the context's device, whose dtype,
 * dims and size are the state's. A run that failed leaves in the states what it wrote before. */
TCRT_API tcrt_status_t tcrt_context_read_state(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor);

/** Copies the caller's tensor, which has the state's dtype and dims, to a state. The buffer can be freed afterwards. */
TCRT_API tcrt_status_t tcrt_context_write_state(tcrt_context_t *context, uint32_t index, const tcrt_tensor_t *tensor);

/** Begins the context's sequence of random numbers anew, from `seed`. Nodes that draw random numbers and have no seed
 * of their own (RandomNormal, Bernoulli, Dropout in training, ...) draw others in each run; contexts begin with seed 0,
 * and two that were given the same one make the same numbers, run by run, in whatever process. A model without such
 * nodes takes any seed. The sequence is the state "tc.random", which tcrt_context_reset_state takes back to seed 0. */
TCRT_API tcrt_status_t tcrt_context_set_seed(tcrt_context_t *context, uint64_t seed);

/** What a context holds and has done. */
typedef struct tcrt_context_stats_t {
  uint64_t arena_bytes;
  uint64_t memory_bytes;      /**< arena, states, data-dependent values and own outputs now */
  uint64_t peak_memory_bytes; /**< the most it was */
  uint64_t runs;
  double device_us; /**< GPU time of the last run, where it was timed; else 0 */
} tcrt_context_stats_t;

TCRT_API tcrt_status_t tcrt_context_stats(tcrt_context_t *context, tcrt_context_stats_t *stats);

/** Whether the context's next runs are timed on a GPU, as those of a context with TCRT_PROFILE_RUNS are from the
 * beginning: by two events, of which a run takes a little longer, and with `device_us` 0 where they are not. With a
 * profile of kernels or an event callback all are timed. Any other number than 0 is yes. */
TCRT_API tcrt_status_t tcrt_context_time_runs(tcrt_context_t *context, int are_timed);

/** How the launches of a GPU context were enqueued since it was made. Set `size` to sizeof(tcrt_graph_stats_t). */
typedef struct tcrt_graph_stats_t {
  size_t size;
  uint64_t built;    /**< graphs that were made */
  uint64_t launched; /**< times that one was launched */
  uint64_t launches; /**< kernels that these ran */
  uint64_t updated;  /**< kernels that got new parameters, as buffers or values had changed */
  /* Launches one by one: */
  uint64_t off_launches;     /**< graphs are off, kernels are profiled, or the code is of ABI 1 */
  uint64_t few_launches;     /**< fewer than 3 between two points where the host needs results */
  uint64_t new_launches;     /**< that came in this order and with these grids for the first time */
  uint64_t full_launches;    /**< there were too many other graphs in use */
  uint64_t refused_launches; /**< the driver is too old for graphs, or did not make this one */
} tcrt_graph_stats_t;

TCRT_API tcrt_status_t tcrt_context_graph_stats(tcrt_context_t *context, tcrt_graph_stats_t *stats);

/** Which entry of the chosen function runs, or ran, for the bound sizes. Needs an infer or a run before. */
TCRT_API tcrt_status_t tcrt_context_entry(tcrt_context_t *context, uint32_t *index);

/** Time spent in one kernel since the context was made or last reset. */
typedef struct tcrt_profile_entry_t {
  const char *kernel;
  const char *nodes; /**< the model's nodes that it computes */
  uint64_t launches;
  uint64_t time_ns;
  uint64_t flops; /**< of one launch with the current input sizes, the last one where data decide; 0 where not known */
  uint64_t bytes;
} tcrt_profile_entry_t;

/** Number of profile entries: the model's kernels. */
TCRT_API uint32_t tcrt_context_profile_count(const tcrt_context_t *context);
TCRT_API tcrt_status_t tcrt_context_profile(tcrt_context_t *context, uint32_t index, tcrt_profile_entry_t *entry);
TCRT_API tcrt_status_t tcrt_context_profile_reset(tcrt_context_t *context);

/** Device memory of a GPU context's device, freed by tcrt_context_device_free. Host memory for CPU contexts. */
TCRT_API tcrt_status_t tcrt_context_device_allocate(tcrt_context_t *context, uint64_t bytes, void **data);
TCRT_API void tcrt_context_device_free(tcrt_context_t *context, void *data, uint64_t bytes);
/** Copies in `direction` (TCRT_COPY_*) and waits; within the device it does not wait, and the next run follows. */
TCRT_API tcrt_status_t tcrt_context_device_copy(tcrt_context_t *context, void *dst, const void *src, uint64_t bytes,
                                                uint32_t direction);

/* ------------------------------------------------------------------------------------------------ memory of GPUs -- */

/** Memory of a GPU for what callers have beyond a context: results that others go on with, inputs that stay there. No
 * model is needed; all calls may come from any thread. `gpu` is the index of the GPU, `stream` a CUstream of its
 * primary context, which must not be captured. NULL is the default stream, as TCRT_DEFAULT_STREAM is. In forks of a
 * process that used CUDA they fail, and free nothing. */

/** CUDA's default stream, also where a context is given a stream (there NULL is one of its own). */
#define TCRT_DEFAULT_STREAM ((void *)1)
/** Instead of a stream: any number of them. */
#define TCRT_ANY_STREAM ((void *)UINTPTR_MAX)

/** Memory for what is enqueued in `stream` from now on. The caller frees it. TCRT_ERROR_MACHINE: there is no such GPU,
 * or it has no memory left. */
TCRT_API tcrt_status_t tcrt_gpu_allocate(int32_t gpu, uint64_t bytes, void *stream, void **data);

/** Frees it. `stream`: where all that uses the memory was enqueued, or what waits for it. Nobody waits then: the memory
 * is kept for allocations in that stream, up to 256 MiB in all, which a context that finds no memory frees. The stream
 * may have been destroyed, once it had nothing left to do. TCRT_ANY_STREAM: other streams used it, too; waits for
 * all that the GPU has to do. NULL as `data` is fine. */
TCRT_API void tcrt_gpu_free(int32_t gpu, void *data, uint64_t bytes, void *stream);

/** Frees what is kept; waits for the GPU. */
TCRT_API void tcrt_gpu_trim(void);

/** Copies in `direction` (TCRT_COPY_*), in the stream, and waits for it; within the GPU it does not wait. */
TCRT_API tcrt_status_t tcrt_gpu_copy(int32_t gpu, void *dst, const void *src, uint64_t bytes, uint32_t direction,
                                     void *stream);

/** Returns when the stream has nothing left to do. */
TCRT_API tcrt_status_t tcrt_gpu_wait(int32_t gpu, void *stream);

/** What is enqueued in `then` from now on comes after what was enqueued in `first`. Does not wait. */
TCRT_API tcrt_status_t tcrt_gpu_order(int32_t gpu, void *first, void *then);

/** The index of the GPU whose memory is at this address; -1: of none. */
TCRT_API tcrt_status_t tcrt_gpu_find(const void *data, int32_t *gpu);

/* ------------------------------------------------------------------------------------------------------ counters -- */

/** What the process has run, in Prometheus' text format: runs, their seconds, bytes of inputs and outputs per model,
 * function and entry; refused and failed runs per function; contexts and their memory per model. Of all models that are
 * open; one that is opened again begins at 0 under another label `opened`. Writes the text and a NUL to `text`, and
 * the bytes of both to `needed_bytes`, which is all that is done where `text` is NULL. Fails with TCRT_ERROR_INVALID
 * where `size_bytes` is less, as it may be when runs end between two calls: ask for some more than was needed. May be
 * called from any thread while others run. */
TCRT_API tcrt_status_t tcrt_metrics(char *text, uint64_t size_bytes, uint64_t *needed_bytes);

/** How often each entry of the model ran, and with which sizes, as JSON, in the same way; of each function the 64 sizes
 * that came most often. `tc-inspect --usage` reads it and says for which sizes code of their own would be used. */
TCRT_API tcrt_status_t tcrt_model_usage(tcrt_model_t *model, char *text, uint64_t size_bytes, uint64_t *needed_bytes);

/** Writes that to a file, which is replaced as a whole. May be called from any thread while contexts run. */
TCRT_API tcrt_status_t tcrt_model_write_usage(tcrt_model_t *model, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_TCRT_H */
