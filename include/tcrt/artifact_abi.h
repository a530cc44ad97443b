/*
 * artifact_abi.h - the one contract between the compiler and the runtime.
 *
 * Part 1 describes the artifact file (container, signature tables); part 2 the calling convention between the native
 * code in an artifact and the runtime that runs it. lib/Artifact/README.md is the byte-level specification and version
 * log.
 *
 * Rules: everything is little-endian; records have fixed sizes and no implicit padding; a record only ever grows at its
 * end, and its size is stored, so that an older reader can skip what it does not know. This header includes nothing but
 * stddef and stdint. Every offset and count in a file is untrusted until the loader has checked it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_ARTIFACT_ABI_H
#define TCRT_ARTIFACT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- part 1: the file ------------------------------- */

/* First eight bytes of every artifact. The last bytes catch text-mode transfers, as PNG's magic does. */
#define TCRT_MAGIC "tcart\r\n\x1a"
#define TCRT_MAGIC_SIZE 8
/* Raised when an old reader could misread a new file. */
#define TCRT_FORMAT_VERSION 1u
/* Alignment in bytes of every section in the file, so that sections can be mapped. */
#define TCRT_SECTION_ALIGN 4096u
/* Alignment in bytes of every constant in the weights section, of the arena and of every value in it. */
#define TCRT_DATA_ALIGN 64u
/* Alignment in bytes of a device kernel's block of parameters, enough for a tensor map (CUtensorMap) by value. */
#define TCRT_PARAMETER_ALIGN 128u
#define TCRT_MAX_RANK 16u

/* At offset 0 of the file. 80 bytes. */
typedef struct tcrt_file_header_t {
  uint8_t magic[TCRT_MAGIC_SIZE];
  uint32_t format_version; /* TCRT_FORMAT_VERSION */
  uint32_t header_size;    /* sizeof(tcrt_file_header_t) of the writer */
  uint64_t file_size;      /* bytes; a longer or shorter file is refused */
  uint64_t table_offset;   /* of the section table: section_count records of section_record_size bytes */
  uint32_t section_count;
  uint32_t section_record_size;
  uint32_t flags; /* 0; unknown flags are refused */
  uint32_t reserved;
  uint8_t table_sha256[32]; /* of the section table's bytes */
} tcrt_file_header_t;

enum {
  TCRT_SECTION_MANIFEST = 1,     /* JSON, for tools only */
  TCRT_SECTION_SIGNATURE = 2,    /* tcrt_signature_t and its tables */
  TCRT_SECTION_HOST_ELF = 3,     /* x86-64 ELF shared object: host program, and kernels of a CPU variant */
  TCRT_SECTION_CUBIN = 4,        /* device code for one SM version */
  TCRT_SECTION_PTX = 5,          /* device code that the driver can compile for newer GPUs, NUL-terminated */
  TCRT_SECTION_WEIGHTS = 6,      /* constants, each aligned to TCRT_DATA_ALIGN */
  TCRT_SECTION_WEIGHTS_FILE = 7, /* instead of WEIGHTS: tcrt_weights_file_t, the constants are in a file of their own */
  TCRT_SECTION_ARTIFACT = 8,     /* a whole artifact with the code for another device, TCRT_DEVICE_* in `arch` */
  TCRT_SECTION_STRINGS = 9       /* the program's constant strings: tcrt_string_table_t */
};

/* One entry of the section table. 64 bytes. Sections do not overlap and are sorted by offset. */
typedef struct tcrt_section_t {
  uint32_t kind; /* TCRT_SECTION_*; an unknown kind is ignored */
  uint32_t arch; /* CUBIN, PTX: ten times the SM version, 900 for sm_90, plus 1 for architecture-specific code, 901 for
                    sm_90a, which runs on exactly that version; a CUBIN else runs on its major version from its minor
                    version on, PTX on any version from it on; ARTIFACT: the device; other kinds: 0 */
  uint64_t offset;    /* from the start of the file, multiple of TCRT_SECTION_ALIGN */
  uint64_t size;      /* bytes, without padding */
  uint8_t sha256[32]; /* ARTIFACT: zero, what is inside has hashes of its own */
  uint64_t reserved;
} tcrt_section_t;

/* The file with the constants of artifact FILE is FILE.weights: a tcrt_weights_header_t, zeros up to
 * TCRT_SECTION_ALIGN, then what would be the WEIGHTS section. */
#define TCRT_WEIGHTS_MAGIC "tcwts\r\n\x1a"

/* What an artifact says about that file. */
typedef struct tcrt_weights_file_t {
  uint64_t size; /* bytes of constants */
  uint8_t sha256[32];
} tcrt_weights_file_t;

/* At the start of that file; `weights` is what the artifact says, too, so that files of different compiles are told
 * apart without reading them. */
typedef struct tcrt_weights_header_t {
  uint8_t magic[TCRT_MAGIC_SIZE];
  tcrt_weights_file_t weights;
} tcrt_weights_header_t;

/* Start of the STRINGS section: n strings of any bytes. String i is [offsets[i], offsets[i + 1]) of the characters,
 * which follow the offsets; its id in the program is i. String 0 is empty. */
typedef struct tcrt_string_table_t {
  uint64_t count;     /* n, at least 1 */
  uint64_t offsets[]; /* [n + 1], the first one 0 */
} tcrt_string_table_t;

/* Element types. Values are part of the format. Sub-byte types are packed low bits first, rounded up to a byte. */
typedef enum tcrt_dtype_t {
  TCRT_DTYPE_INVALID = 0,
  TCRT_DTYPE_F32 = 1,
  TCRT_DTYPE_U8 = 2,
  TCRT_DTYPE_I8 = 3,
  TCRT_DTYPE_U16 = 4,
  TCRT_DTYPE_I16 = 5,
  TCRT_DTYPE_I32 = 6,
  TCRT_DTYPE_I64 = 7,
  TCRT_DTYPE_STRING = 8,
  TCRT_DTYPE_BOOL = 9, /* one byte, 0 or 1 */
  TCRT_DTYPE_F16 = 10,
  TCRT_DTYPE_F64 = 11,
  TCRT_DTYPE_U32 = 12,
  TCRT_DTYPE_U64 = 13,
  TCRT_DTYPE_C64 = 14,  /* two f32 */
  TCRT_DTYPE_C128 = 15, /* two f64 */
  TCRT_DTYPE_BF16 = 16,
  TCRT_DTYPE_F8E4M3FN = 17,
  TCRT_DTYPE_F8E4M3FNUZ = 18,
  TCRT_DTYPE_F8E5M2 = 19,
  TCRT_DTYPE_F8E5M2FNUZ = 20,
  TCRT_DTYPE_U4 = 21,
  TCRT_DTYPE_I4 = 22,
  TCRT_DTYPE_F4E2M1 = 23,
  TCRT_DTYPE_F8E8M0 = 24,
  TCRT_DTYPE_U2 = 25,
  TCRT_DTYPE_I2 = 26,
  TCRT_DTYPE_F6E2M3 = 27, /* six-bit floats have a byte each, in its low bits */
  TCRT_DTYPE_F6E3M2 = 28
} tcrt_dtype_t; /* numbers follow ONNX TensorProto.DataType */

/* Start of the SIGNATURE section. Every *_offset counts from the start of the section and is a multiple of 8; the
 * tables hold `count` records of the sizes below. Names are (offset, length) in the string table, UTF-8 without NUL
 * bytes, not NUL-terminated. Of ABI 1, the signature ends before function_offset, its variants' records before `arch`:
 * it has one function, "main", to which all inputs, outputs, symbols and kernels belong, and no states. */
typedef struct tcrt_signature_t {
  uint32_t size;        /* sizeof(tcrt_signature_t) of the writer */
  uint32_t abi_version; /* that the code in the file was compiled for */
  uint32_t input_count, output_count, dim_count, symbol_count, variant_count, kernel_count;
  uint32_t string_size; /* bytes */
  uint32_t device_kernel_count;
  uint64_t input_offset;   /* tcrt_sig_value_t, function by function */
  uint64_t output_offset;  /* tcrt_sig_value_t, likewise */
  uint64_t dim_offset;     /* tcrt_sig_dim_t */
  uint64_t symbol_offset;  /* tcrt_sig_symbol_t, function by function */
  uint64_t variant_offset; /* tcrt_sig_variant_t, best first within a device */
  uint64_t kernel_offset;  /* tcrt_sig_kernel_t, in the order of the ids that the programs pass to `launch`, function by
                              function */
  uint64_t string_offset;
  uint64_t device_kernel_offset; /* tcrt_sig_device_kernel_t, variant by variant */
  /* A signature of ABI 1 may end before this; it has no host functions then. */
  uint64_t host_function_offset; /* tcrt_sig_name_t, in the order of tcrt_call_t::function */
  uint32_t host_function_count;
  uint32_t reserved;
  /* Since ABI 2. */
  uint64_t function_offset; /* tcrt_sig_function_t */
  uint64_t state_offset;    /* tcrt_sig_state_t */
  uint32_t function_count;  /* at least 1 */
  uint32_t state_count;
  /* A signature of ABI 2 may end before this; each function has the general entry alone then. */
  uint64_t entry_offset;      /* tcrt_sig_entry_t, function by function, in the order in which a run chooses */
  uint64_t entry_size_offset; /* tcrt_sig_entry_size_t, entry by entry */
  uint32_t entry_count;
  uint32_t entry_size_count;
} tcrt_signature_t;
/* Bytes of the signature of ABI 1, without and with host functions. */
#define TCRT_SIGNATURE_SIZE_0_1 104u
#define TCRT_SIGNATURE_SIZE_ABI_1 120u
/* Bytes of the signature of ABI 2 without entries. */
#define TCRT_SIGNATURE_SIZE_0_2 144u

typedef struct tcrt_sig_name_t {
  uint32_t offset, length;
} tcrt_sig_name_t;

/* A function: something that a caller runs. Its inputs, outputs, symbols and kernels are records of the tables above
 * that stand one after the other; the functions' follow each other and cover the tables. */
typedef struct tcrt_sig_function_t {
  tcrt_sig_name_t name; /* of its own */
  uint32_t first_input, input_count;
  uint32_t first_output, output_count;
  uint32_t first_symbol, symbol_count;
  uint32_t first_kernel, kernel_count;
} tcrt_sig_function_t;

/* Code that a function has for some sizes of its symbols: what the program chooses by itself, for tools and counters.
 * The entry for all other sizes, the last one, has no record. */
typedef struct tcrt_sig_entry_t {
  uint32_t function;
  uint32_t first_size, size_count; /* the entries' records follow each other and cover the table */
  uint32_t reserved;
} tcrt_sig_entry_t;

enum {
  TCRT_ENTRY_EQUAL = 0u,  /* the symbol has the size */
  TCRT_ENTRY_AT_MOST = 1u /* the symbol has at most the size, a bucket, to which the run is padded */
};

/* A run is the first entry's of which its symbols meet all these. */
typedef struct tcrt_sig_entry_size_t {
  uint32_t symbol;  /* number within the symbols of the function */
  uint32_t compare; /* TCRT_ENTRY_* */
  int64_t size;
} tcrt_sig_entry_size_t;

enum {
  TCRT_STATE_FLAG_INITIAL = 1u /* begins with the bytes at initial_offset of the weights section, else with zeros */
};

/* The name of the state that nodes which draw random numbers without a seed of their own read: i64 [2], the seed of the
 * context's sequence and the number of the run in it, which each run increments. Begins as zeros. */
#define TCRT_RANDOM_STATE "tc.random"

/* A state: a dense tensor of a context that outlives a run, seen by all functions. */
typedef struct tcrt_sig_state_t {
  tcrt_sig_name_t name; /* of its own */
  uint32_t dtype;       /* tcrt_dtype_t, not STRING */
  uint32_t rank;
  uint32_t first_dim;      /* index of the first of `rank` records of the dim table, all TCRT_DIM_STATIC */
  uint32_t flags;          /* TCRT_STATE_FLAG_* */
  uint64_t initial_offset; /* bytes into WEIGHTS, with TCRT_STATE_FLAG_INITIAL */
} tcrt_sig_state_t;

enum { TCRT_VALUE_TENSOR = 0, TCRT_VALUE_SEQUENCE = 1, TCRT_VALUE_OPTIONAL = 2, TCRT_VALUE_MAP = 3 };
enum {
  TCRT_VALUE_FLAG_UNUSED = 1u, /* the program does not read this input; it must still be well-formed if given */
  TCRT_VALUE_FLAG_DEFAULT = 2u /* input with a default value at default_offset of the weights section */
};

typedef struct tcrt_sig_value_t {
  tcrt_sig_name_t name;
  uint32_t kind;      /* TCRT_VALUE_* */
  uint32_t dtype;     /* tcrt_dtype_t, of the tensors inside where it is no tensor itself, of a map's values */
  uint32_t rank;      /* of a tensor; else 0 */
  uint32_t first_dim; /* index of the first of `rank` records of the dim table */
  uint32_t flags;
  uint32_t inner; /* sequence, optional: bits 0-7 the kind inside, bits 8-15 the kind inside of that; map (also inside):
                     bits 16-23 the keys' dtype */
  uint64_t default_offset; /* bytes into WEIGHTS, with TCRT_VALUE_FLAG_DEFAULT */
} tcrt_sig_value_t;

enum {
  TCRT_DIM_STATIC = 0, /* `value` is the size */
  TCRT_DIM_SYMBOL = 1, /* the size is symbol `symbol`; the first input dim that names a symbol binds it */
  TCRT_DIM_EXPR = 2    /* input: any size (the program checks it); output: known after `infer` or after `run` (-1) */
};

typedef struct tcrt_sig_dim_t {
  uint32_t kind;
  uint32_t symbol; /* number within the symbols of the function */
  int64_t value;
} tcrt_sig_dim_t;

/* A guard per symbol, checked by the runtime whenever shapes change: min <= s <= max and s % divisor == 0. */
typedef struct tcrt_sig_symbol_t {
  tcrt_sig_name_t name;
  int64_t min, max, divisor;
} tcrt_sig_symbol_t;

enum { TCRT_DEVICE_CPU = 0, TCRT_DEVICE_CUDA = 1 };

/* Whether the launches of a GPU variant are kept and enqueued as CUDA graphs, where the driver can: never; from the
 * second time on that the same launches come (sizes that never come back cost nothing); from the first. */
enum { TCRT_GRAPHS_DEFAULT = 0, TCRT_GRAPHS_OFF = 1, TCRT_GRAPHS_ON = 2, TCRT_GRAPHS_AT_ONCE = 3 };

typedef struct tcrt_sig_variant_t {
  tcrt_sig_name_t name;  /* "x86-64-v4", "cuda", "reference" */
  uint32_t device;       /* TCRT_DEVICE_* */
  uint32_t section;      /* index of its HOST_ELF section */
  uint64_t cpu_features; /* required TCRT_CPU_* bits */
  uint64_t weights_size; /* bytes of WEIGHTS that it may read */
  /* Since ABI 2. */
  uint32_t arch; /* the only GPU that it is for, as tcrt_section_t::arch; 0: any that its device code is for */
  uint32_t first_device_code, device_code_count;     /* sections; those of CUBIN and PTX hold its device code */
  uint32_t first_device_kernel, device_kernel_count; /* its records of the table of device kernels */
  uint32_t graphs; /* TCRT_GRAPHS_*: what a context does whose caller does not say; DEFAULT: ON */
} tcrt_sig_variant_t;
/* Bytes of a variant's record of ABI 1: device code and device kernels are those of all variants. */
#define TCRT_SIG_VARIANT_SIZE_ABI_1 32u

typedef struct tcrt_sig_kernel_t {
  tcrt_sig_name_t name;  /* symbol in the ELF */
  tcrt_sig_name_t nodes; /* the model's nodes that it computes, joined with '+' */
  uint64_t flops;        /* of one execution; 0 where it depends on symbols, then the program calls set_cost */
  uint64_t bytes;
} tcrt_sig_kernel_t;

/* A __global__ function in the device code of a variant, in the order of tcrt_device_launch_t::kernel. */
typedef struct tcrt_sig_device_kernel_t {
  tcrt_sig_name_t name;
  uint32_t max_threads;  /* per block */
  uint32_t dynamic_smem; /* bytes, of its largest launch */
} tcrt_sig_device_kernel_t;

/* CPU features that a variant may need. Bits are part of the format. */
#define TCRT_CPU_SSE42 (UINT64_C(1) << 0)
#define TCRT_CPU_AVX (UINT64_C(1) << 1)
#define TCRT_CPU_AVX2 (UINT64_C(1) << 2)
#define TCRT_CPU_FMA (UINT64_C(1) << 3)
#define TCRT_CPU_F16C (UINT64_C(1) << 4)
#define TCRT_CPU_BMI2 (UINT64_C(1) << 5) /* BMI1, BMI2, LZCNT, MOVBE */
#define TCRT_CPU_AVX512F (UINT64_C(1) << 6)
#define TCRT_CPU_AVX512BW (UINT64_C(1) << 7)
#define TCRT_CPU_AVX512CD (UINT64_C(1) << 8)
#define TCRT_CPU_AVX512DQ (UINT64_C(1) << 9)
#define TCRT_CPU_AVX512VL (UINT64_C(1) << 10)
#define TCRT_CPU_AVX512VNNI (UINT64_C(1) << 11)
#define TCRT_CPU_AVX512BF16 (UINT64_C(1) << 12)
#define TCRT_CPU_AVX512FP16 (UINT64_C(1) << 13)
#define TCRT_CPU_AVXVNNI (UINT64_C(1) << 14)
#define TCRT_CPU_AMX_TILE (UINT64_C(1) << 15)
#define TCRT_CPU_AMX_BF16 (UINT64_C(1) << 16)
#define TCRT_CPU_AMX_INT8 (UINT64_C(1) << 17)
#define TCRT_CPU_AVX512VBMI (UINT64_C(1) << 18)
#define TCRT_CPU_AVX512IFMA (UINT64_C(1) << 19)
#define TCRT_CPU_AVX512VBMI2 (UINT64_C(1) << 20)
#define TCRT_CPU_AVX512BITALG (UINT64_C(1) << 21)
#define TCRT_CPU_AVX512VPOPCNTDQ (UINT64_C(1) << 22)

/* ---------------------------------------------------------------- part 2: the code -------------------------------- */

/* The HOST_ELF section is an ELF64 shared object for x86-64: no DT_NEEDED, no undefined symbol, only R_X86_64_RELATIVE
 * relocations, no TLS, no constructors. Its e_entry is a function of type tcrt_entry_fn. */
#define TCRT_ABI_VERSION 2u
/* The oldest one that this runtime loads. */
#define TCRT_ABI_VERSION_OLDEST 1u

struct tcrt_frame_t;
struct tcrt_call_t;

/* A kernel: does tasks [begin, end) of one launch. `args` is an array of 8-byte words that the program filled:
 * addresses and sizes; its layout is private to the program. `worker` is in [0, frame->worker_count). At most 64 KiB of
 * stack. */
typedef void (*tcrt_kernel_fn)(const void *args, int64_t begin, int64_t end, int64_t worker);

/* One of several launches that run at the same time. */
typedef struct tcrt_launch_t {
  tcrt_kernel_fn fn;
  const void *args;
  int64_t tasks, grain; /* as for `launch` */
  uint32_t id;
  uint32_t reserved;
} tcrt_launch_t;

/* A launch on a device (GPU variants). */
typedef struct tcrt_device_launch_t {
  uint32_t id;     /* of the kernel in the signature, for profiles */
  uint32_t kernel; /* number among the variant's device kernels */
  uint32_t grid[3], block[3];
  uint32_t cluster[3];   /* blocks of a cluster, of which the grid is a multiple; 1, 1, 1: no clusters */
  uint32_t dynamic_smem; /* bytes */
  /* Launches in a row with the same `graph` form a segment: in between, the program does nothing else on the device,
   * and with the same sizes it launches the same in each run, so that a runtime may keep a segment as a graph. Segments
   * run one after the other, as do the launches of one stream within a segment; those of different streams do not
   * depend on each other. Running all in the order of the calls is right. */
  uint32_t graph, stream;
  uint32_t parameter_size; /* bytes of the block of parameters */
  uint32_t reserved;
  const void *parameters; /* as the kernel has them, aligned to TCRT_PARAMETER_ALIGN; read before the call returns */
} tcrt_device_launch_t;

/* What native code may call. The table is the runtime's; entries are only ever added at the end. All functions may be
 * called from the thread that called `run`; the maths entries from any. */
typedef struct tcrt_imports_t {
  uint32_t abi_version; /* TCRT_ABI_VERSION */
  uint32_t size;        /* bytes of the table */
  /* Runs kernel `id` over [0, tasks) on the frame's pool in ranges of at least `grain` tasks, and waits. Which worker
   * runs a range is not determined; the ranges' union is exact. tasks <= 0 does nothing. */
  void (*launch)(struct tcrt_frame_t *frame, uint32_t id, tcrt_kernel_fn fn, const void *args, int64_t tasks,
                 int64_t grain);
  /* Enqueues a launch (GPU variants). An empty grid does nothing. Non-zero: failed, `run` must return it. */
  int32_t (*launch_device)(struct tcrt_frame_t *frame, const tcrt_device_launch_t *launch);
  /* Device copies on the frame's stream; host-to-device copies capture the source before they return. Non-zero: failed.
   */
  int32_t (*copy)(struct tcrt_frame_t *frame, void *dst, const void *src, uint64_t bytes, uint32_t direction);
  /* Memory of data-dependent size, TCRT_DATA_ALIGN aligned, freed by `release` or at the end of the run. NULL: the
   * context's memory limit or the machine's memory is exceeded and the error is already set; `run` must return
   * TCRT_CODE_NO_MEMORY. */
  void *(*allocate)(struct tcrt_frame_t *frame, uint64_t bytes);
  void (*release)(struct tcrt_frame_t *frame, void *data);
  /* Gives output `index` its dims after the fact (TCRT_DIM_EXPR dims) and returns where to write it, or NULL as above.
   */
  void *(*output)(struct tcrt_frame_t *frame, uint32_t index, const int64_t *dims);
  /* Records a one-line error message (copied) for code `code` and returns `code`. */
  int32_t (*fail)(struct tcrt_frame_t *frame, int32_t code, const char *message, uint64_t length);
  /* f64 mathematics that is not inlined. */
  double (*exp_f64)(double), (*log_f64)(double), (*sin_f64)(double), (*cos_f64)(double), (*tan_f64)(double);
  double (*asin_f64)(double), (*acos_f64)(double), (*atan_f64)(double), (*sinh_f64)(double), (*cosh_f64)(double);
  double (*tanh_f64)(double), (*asinh_f64)(double), (*acosh_f64)(double), (*atanh_f64)(double), (*erf_f64)(double);
  double (*log1p_f64)(double), (*expm1_f64)(double), (*cbrt_f64)(double);
  double (*pow_f64)(double, double), (*fmod_f64)(double, double), (*atan2_f64)(double, double);
  /* Calls a host function (CPU variants). Non-zero: failed, the error is set, `run` must return it. */
  int32_t (*call)(struct tcrt_frame_t *frame, const struct tcrt_call_t *call);
  /* Runs `count` launches that do not depend on each other, and waits for all of them; ranges of one may run
   * beside ranges of another, a worker runs one range at a time. */
  void (*launch_group)(struct tcrt_frame_t *frame, uint32_t count, const tcrt_launch_t *launches);
  /* The same in steps: step s runs tasks [s * tasks, (s + 1) * tasks) of each launch, and begins when all tasks of the
   * steps before it are done and what they wrote can be read. No range is part of two steps. */
  void (*launch_steps)(struct tcrt_frame_t *frame, uint32_t count, const tcrt_launch_t *launches, int64_t steps);
  /* What one execution of launch `id` takes for the sizes of this run: called by `infer`, or by `run` before the launch
   * where sizes are bound by data. Replaces the kernel's figures in the signature. */
  void (*set_cost)(struct tcrt_frame_t *frame, uint32_t id, uint64_t flops, uint64_t bytes);
} tcrt_imports_t;

/* Values that are not tensors of numbers are 8-byte words in the program: an element of a string tensor is the string's
 * id, equal for equal strings; a sequence, optional or map is a 0-D tensor of a handle, 0 for an absent optional. Ids
 * and handles mean something to the context's run only. Strings and objects never change, so words are copied freely.
 */

/* A dense tensor that a host function reads or writes. */
typedef struct tcrt_operand_t {
  void *data;
  const int64_t *dims;
  uint32_t dtype; /* tcrt_dtype_t; STRING: ids. Handles: INVALID */
  uint32_t rank;
} tcrt_operand_t;

typedef struct tcrt_call_t {
  uint32_t function; /* index into the signature's functions */
  uint32_t operand_count;
  uint32_t result_count;
  uint32_t node_length;
  const char *node; /* name of the model's node, for messages */
  const tcrt_operand_t *operands;
  const tcrt_operand_t *results; /* to be filled; results do not overlap operands */
} tcrt_call_t;

enum { TCRT_COPY_HOST_TO_DEVICE = 0, TCRT_COPY_DEVICE_TO_HOST = 1, TCRT_COPY_DEVICE_TO_DEVICE = 2 };

/* Return codes of the program's functions; 0 is success. */
enum {
  TCRT_CODE_OK = 0,
  TCRT_CODE_REFUSED = 4, /* a guard over input sizes or values does not hold; message set through `fail` */
  TCRT_CODE_NO_MEMORY = 5,
  TCRT_CODE_INTERNAL = 6
};

/* One execution. Filled by the runtime, read by the program except where noted. Addresses are device addresses in GPU
 * variants except `symbols`, `input_dims`, `output_dims` and the arrays of addresses themselves. */
typedef struct tcrt_frame_t {
  const tcrt_imports_t *imports;
  void *runtime;             /* the runtime's own */
  const uint8_t *weights;    /* start of the WEIGHTS section, aligned to TCRT_SECTION_ALIGN */
  uint8_t *arena;            /* at least arena_size bytes, TCRT_DATA_ALIGN aligned */
  const void *const *inputs; /* [input_count] row-major, dense; strings and handles as words */
  void *const *outputs;      /* [output_count]; NULL where the size is not known before the run */
  const int64_t *input_dims; /* all inputs' dims, one after the other, in signature order */
  int64_t *output_dims;      /* likewise; written by `infer` (-1: known after the run) */
  int64_t *symbols;          /* [symbol_count]; bound from the inputs by the runtime, derived ones written by `infer` */
  int64_t worker_count;      /* upper bound of `worker` */
  uint64_t arena_size;       /* bytes; written by `infer` */
  /* Since ABI 2. */
  void *const *states; /* [state_count] of the signature; read and written by `run` */
} tcrt_frame_t;

/* The code of one function. */
typedef struct tcrt_routine_t {
  /* Given input_dims and the bound symbols: checks the model's remaining guards, writes derived symbols, output_dims
   * and arena_size. Called when input sizes change. Reads no tensor data. */
  int32_t (*infer)(tcrt_frame_t *frame);
  /* Computes outputs from inputs and states. Called after an `infer` for the same sizes. States keep what a run that
   * fails has written. */
  int32_t (*run)(tcrt_frame_t *frame);
} tcrt_routine_t;

/* What the entry point returns: a constant table in the code section. */
typedef struct tcrt_program_t {
  uint32_t abi_version; /* TCRT_ABI_VERSION */
  uint32_t size;        /* sizeof(tcrt_program_t) */
  uint32_t routine_count;
  uint32_t reserved;
  const tcrt_routine_t *routines; /* [routine_count], one for each function of the signature */
} tcrt_program_t;

/* ELF entry point. `imports` stays valid as long as the code is loaded. Returns NULL if it needs a newer runtime. */
typedef const tcrt_program_t *(*tcrt_entry_fn)(const tcrt_imports_t *imports);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_ARTIFACT_ABI_H */
