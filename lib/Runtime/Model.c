/*
 * Model.c - opening artifacts, choosing and loading variants.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Values.h"
#include "tc/Format/File.h"
#include "tc/Format/Sha256.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static tcrt_status_t no_memory(const char *name) {
  return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left to open the artifact", name);
}

/* ---- names ---- */

/* All names are copied once into one block with NULs, table by table. */
static tcrt_status_t copy_names(tcrt_model_t *model) {
  const tcrt_container_t *c = &model->container;
  const tcrt_signature_t *s = c->signature;
  const uint32_t function_names = c->functions ? c->function_count : 0;
  uint64_t count = (uint64_t)s->input_count + s->output_count + s->symbol_count + s->variant_count +
                   2 * (uint64_t)s->kernel_count + c->state_count + function_names;
  uint64_t bytes = 0;
  char *text = NULL;
  for (int pass = 0; pass < 2; ++pass) {
    uint64_t at = 0, index = 0;
#define NAMES(n, expression)                                                                                           \
  for (uint32_t i = 0; i < (n); ++i) {                                                                                 \
    tcrt_sig_name_t name = (expression);                                                                               \
    if (pass) {                                                                                                        \
      memcpy(text + at, c->strings + name.offset, name.length);                                                        \
      text[at + name.length] = 0;                                                                                      \
      model->names[index++] = text + at;                                                                               \
    }                                                                                                                  \
    at += (uint64_t)name.length + 1;                                                                                   \
  }
    NAMES(s->input_count, c->inputs[i].name)
    NAMES(s->output_count, c->outputs[i].name)
    NAMES(s->symbol_count, c->symbols[i].name)
    NAMES(s->variant_count, tcrt_container_variant(c, i).name)
    NAMES(s->kernel_count, c->kernels[i].name)
    NAMES(s->kernel_count, c->kernels[i].nodes)
    NAMES(c->state_count, c->states[i].name)
    NAMES(function_names, c->functions[i].name)
#undef NAMES
    if (pass == 0) {
      /* A hostile file can let many records share one long name; copies of more than the file itself are no real model.
       */
      bytes = at;
      if (bytes > c->size_bytes + count)
        return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the artifact is corrupt: its names overlap; compile it again",
                         model->name);
      model->names = malloc((count + 1) * sizeof(char *) + bytes);
      if (!model->names)
        return no_memory(model->name);
      text = (char *)(model->names + count + 1);
    }
  }
  model->variant_names = model->names + s->input_count + s->output_count + s->symbol_count;
  model->kernel_names = model->variant_names + s->variant_count;
  model->kernel_nodes = model->kernel_names + s->kernel_count;
  model->state_names = model->kernel_nodes + s->kernel_count;
  return TCRT_OK;
}

static uint32_t count_dims(const tcrt_sig_value_t *values, uint32_t count) {
  uint32_t dims = 0;
  for (uint32_t i = 0; i < count; ++i)
    dims += values[i].rank;
  return dims;
}

static int compare_names(const void *a, const void *b) {
  const tcrt_name_t *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Fills `sorted`; of equal names the first one comes first. Returns what follows. */
static tcrt_name_t *sort_names(tcrt_name_t *sorted, char *const *names, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    sorted[i] = (tcrt_name_t){names[i], i};
  qsort(sorted, count, sizeof *sorted, compare_names);
  return sorted + count;
}

/* Callers find inputs, functions and states by their names, and what the compiler writes has no two alike. Outputs may
 * be one value twice. */
static tcrt_status_t refuse_twins(const char *file, const char *what, const tcrt_name_t *sorted, uint32_t count) {
  for (uint32_t i = 1; i < count; ++i)
    if (strcmp(sorted[i - 1].name, sorted[i].name) == 0)
      return tcrt_fail(TCRT_ERROR_INVALID,
                       "%s: error: the artifact is corrupt: two %s have the name \"%.100s\"; copy or compile it again",
                       file, what, sorted[i].name);
  return TCRT_OK;
}

/* Gives each function its part of the tables and of the names. */
static tcrt_status_t divide_functions(tcrt_model_t *model) {
  const tcrt_container_t *c = &model->container;
  const tcrt_signature_t *s = c->signature;
  static char only[] = "main";
  model->functions = calloc(c->function_count, sizeof *model->functions);
  model->sorted =
      calloc((size_t)s->input_count + s->output_count + c->state_count + c->function_count, sizeof *model->sorted);
  model->output_dims_at = calloc((size_t)s->output_count + 1, sizeof *model->output_dims_at);
  if (!model->functions || !model->sorted || !model->output_dims_at)
    return no_memory(model->name);
  tcrt_name_t *sorted = model->sorted;
  uint32_t entry = 0;
  tcrt_status_t status = TCRT_OK;
  for (uint32_t i = 0; i < c->function_count; ++i) {
    const tcrt_sig_function_t part = tcrt_container_function(c, i);
    tcrt_model_function_t *function = &model->functions[i];
    function->name = c->functions ? model->state_names[c->state_count + i] : only;
    function->input_names = model->names + part.first_input;
    function->output_names = model->names + s->input_count + part.first_output;
    function->symbol_names = model->names + s->input_count + s->output_count + part.first_symbol;
    function->inputs = c->inputs + part.first_input;
    function->outputs = c->outputs + part.first_output;
    function->symbols = c->symbols + part.first_symbol;
    function->input_count = part.input_count;
    function->output_count = part.output_count;
    function->symbol_count = part.symbol_count;
    function->sorted_inputs = sorted;
    function->sorted_outputs = sort_names(sorted, function->input_names, part.input_count);
    sorted = sort_names(function->sorted_outputs, function->output_names, part.output_count);
    if (status == TCRT_OK)
      status = refuse_twins(model->name, "inputs of a function", function->sorted_inputs, part.input_count);
    function->output_dims_at = model->output_dims_at + part.first_output;
    for (uint32_t j = 1; j < part.output_count; ++j)
      function->output_dims_at[j] = function->output_dims_at[j - 1] + function->outputs[j - 1].rank;
    function->input_dim_count = count_dims(function->inputs, part.input_count);
    function->output_dim_count = count_dims(function->outputs, part.output_count);
    while (entry < c->entry_count && c->entries[entry].function < i)
      ++entry;
    function->entries = c->entries + entry;
    while (entry < c->entry_count && c->entries[entry].function == i)
      ++entry, ++function->entry_count;
    function->has_static_inputs = 1;
    for (uint32_t j = 0; j < part.input_count; ++j)
      for (uint32_t d = 0; d < function->inputs[j].rank; ++d)
        function->has_static_inputs &= c->dims[function->inputs[j].first_dim + d].kind == TCRT_DIM_STATIC;
  }
  model->sorted_states = sorted;
  model->sorted_functions = sort_names(sorted, model->state_names, c->state_count);
  for (uint32_t i = 0; i < c->function_count; ++i)
    model->sorted_functions[i] = (tcrt_name_t){model->functions[i].name, i};
  qsort(model->sorted_functions, c->function_count, sizeof *sorted, compare_names);
  if (status == TCRT_OK)
    status = refuse_twins(model->name, "states", model->sorted_states, c->state_count);
  return status == TCRT_OK ? refuse_twins(model->name, "functions", model->sorted_functions, c->function_count)
                           : status;
}

const char *tcrt_model_variant_name(const tcrt_model_t *model, uint32_t index) { return model->variant_names[index]; }

uint64_t tcrt_model_state_size(const tcrt_model_t *model, uint32_t index, int64_t *dims) {
  const tcrt_sig_state_t *state = &model->container.states[index];
  uint64_t size_bytes;
  for (uint32_t i = 0; i < state->rank; ++i)
    dims[i] = model->container.dims[state->first_dim + i].value;
  tcrt_tensor_size((tcrt_dtype_t)state->dtype, state->rank, dims, &size_bytes);
  return size_bytes;
}

void tcrt_model_log(const tcrt_model_t *model, int level, const char *format, ...) {
  if (!model->options.log)
    return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  model->options.log(model->options.log_user, level, text);
}

/* ---- variants ---- */

static int is_amx(uint64_t features) {
  return (features & (TCRT_CPU_AMX_TILE | TCRT_CPU_AMX_BF16 | TCRT_CPU_AMX_INT8)) != 0;
}

int tcrt_is_usable(const tcrt_sig_variant_t *variant, uint64_t features) {
  return (variant->cpu_features & ~features) == 0 && (!is_amx(variant->cpu_features) || tcrt_request_amx());
}

/* Names of all variants for messages. */
static void list_variants(const tcrt_model_t *model, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < model->container.signature->variant_count && used < size; ++i) {
    int written = snprintf(text + used, size - used, "%s%s", i ? ", " : "", tcrt_model_variant_name(model, i));
    used += written > 0 ? (size_t)written : 0;
  }
}

tcrt_status_t tcrt_model_choose(const tcrt_model_t *model, const char *name, uint32_t *index) {
  const tcrt_container_t *c = &model->container;
  uint64_t features = tcrt_cpu_features();
  char list[512], missing[512];
  *index = UINT32_MAX;
  if (!name)
    name = model->options.variant;
  if (name) {
    for (uint32_t i = 0; i < c->signature->variant_count; ++i) {
      if (strcmp(tcrt_model_variant_name(model, i), name) != 0)
        continue;
      const tcrt_sig_variant_t variant = tcrt_container_variant(c, i);
      if (!tcrt_is_usable(&variant, features)) {
        tcrt_cpu_feature_names(variant.cpu_features & ~features, missing, sizeof missing);
        return tcrt_fail(
            TCRT_ERROR_MACHINE,
            "%s: error: variant \"%s\" does not run on this machine; it needs CPU features that are missing: %s",
            model->name, name, missing[0] ? missing : "amx-tile (not allowed by the system)");
      }
      *index = i;
      return TCRT_OK;
    }
    list_variants(model, list, sizeof list);
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the artifact has no variant \"%s\"; it has %s", model->name, name,
                     list);
  }
  uint32_t last = UINT32_MAX;
  for (uint32_t i = 0; i < c->signature->variant_count; ++i) {
    const tcrt_sig_variant_t variant = tcrt_container_variant(c, i);
    if (variant.device != model->options.device)
      continue;
    last = i;
    const tcrt_driver_t *driver = variant.device == TCRT_DEVICE_CUDA ? &tcrt_cuda_driver : &tcrt_cpu_driver;
    if (tcrt_is_usable(&variant, features) && driver->runs(model, &variant)) {
      *index = i;
      return TCRT_OK;
    }
  }
  list_variants(model, list, sizeof list);
  if (last == UINT32_MAX)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the artifact has no code for device %s; it has %s", model->name,
                     tcrt_device_name(model->options.device), list);
  if (model->options.device == TCRT_DEVICE_CUDA)
    return tcrt_fail(TCRT_ERROR_MACHINE,
                     "%s: error: no variant of the artifact runs on this GPU (it has %s); compile the model with --gpu "
                     "for this machine",
                     model->name, list);
  tcrt_cpu_feature_names(tcrt_container_variant(c, last).cpu_features & ~features, missing, sizeof missing);
  return tcrt_fail(
      TCRT_ERROR_MACHINE,
      "%s: error: no variant of the artifact runs on this CPU (it has %s); \"%s\" needs %s, so compile the model "
      "with --cpu for this machine",
      model->name, list, tcrt_model_variant_name(model, last), missing[0] ? missing : "AMX");
}

/* Calls the code's entry point. False: it needs another runtime. */
static int load_routines(const tcrt_model_t *model, tcrt_loaded_variant_t *loaded) {
  const tcrt_container_t *c = &model->container;
  if (c->signature->abi_version == 1)
    return tcrt_abi_1_load(loaded);
  tcrt_entry_fn entry;
  memcpy(&entry, &loaded->image.entry, sizeof entry);
  const tcrt_program_t *program = entry(&tcrt_imports);
  if (!program || program->abi_version != TCRT_ABI_VERSION || program->size < sizeof(tcrt_program_t) ||
      program->routine_count != c->function_count || !program->routines)
    return 0;
  loaded->imports = &tcrt_imports;
  loaded->routines = program->routines;
  for (uint32_t i = 0; i < c->function_count; ++i)
    if (!loaded->routines[i].infer || !loaded->routines[i].run)
      return 0;
  return 1;
}

tcrt_status_t tcrt_model_load_variant(tcrt_model_t *model, uint32_t index, tcrt_loaded_variant_t **result) {
  *result = model->loaded[index];
  if (*result)
    return TCRT_OK;
  const tcrt_container_t *c = &model->container;
  const tcrt_sig_variant_t variant = tcrt_container_variant(c, index);
  const tcrt_section_t *section = &c->sections[variant.section];
  const char *name = tcrt_model_variant_name(model, index);
  tcrt_loaded_variant_t *loaded = calloc(1, sizeof *loaded);
  if (!loaded)
    return no_memory(model->name);
  loaded->driver = variant.device == TCRT_DEVICE_CUDA ? &tcrt_cuda_driver : &tcrt_cpu_driver;
  /* Bytes that were accepted are those of the copy, not of the file. */
  const int fd = model->options.verify ? -1 : model->fd;
  tcrt_status_t status =
      tcrt_elf_load(c->data + section->offset, section->size, model->name, name, fd,
                    (uint64_t)(c->data - (const uint8_t *)model->mapping) + section->offset, &loaded->image);
  if (status != TCRT_OK) {
    free(loaded);
    return status;
  }
  if (!load_routines(model, loaded))
    status = tcrt_fail(
        TCRT_ERROR_INVALID,
        "%s: error: the code of variant \"%s\" needs another libtcrt than %s; compile the model with the tc of "
        "the same release",
        model->name, name, tcrt_version());
  else
    status = loaded->driver->variant_open(model, index, loaded);
  if (status != TCRT_OK) {
    tcrt_elf_unload(&loaded->image);
    free(loaded);
    return status;
  }
  tcrt_model_log(model, TCRT_LOG_INFO, "%s: loaded variant \"%s\"", model->name, name);
  model->loaded[index] = *result = loaded;
  return TCRT_OK;
}

/* ---- opening ---- */

static const char *const library_names[TCRT_LIBRARY_COUNT] = {"libtcrt-host", "libtcrt-ort"};

/* The functions of a library beside libtcrt; `problem`: why there are none. */
typedef struct library_t {
  const tcrt_function_t *functions;
  uint64_t count;
  const char *problem;
} library_t;

/* The library that a function is of which is neither the caller's nor libtcrt's. */
static int library_of(const char *name, uint32_t length) {
#define TCRT_ORT_FUNCTION(function)                                                                                    \
  if (length == strlen(#function) && memcmp(name, #function, length) == 0)                                             \
    return TCRT_LIBRARY_ORT;
#include "tc/Functions/HostLibrary.def"
  return TCRT_LIBRARY_HOST;
}

/* Fails where the library itself lacks what it needs. */
static tcrt_status_t open_library(tcrt_model_t *model, int which, library_t *library) {
  char soname[64];
  snprintf(soname, sizeof soname, "%s.so." TCRT_VERSION_MAJOR, library_names[which]);
  void *handle = model->function_libraries[which];
  if (!handle)
    handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    library->problem = dlerror();
    return TCRT_OK;
  }
  model->function_libraries[which] = handle;
  library->problem = "which lacks it";
  tcrt_library_open_fn open = NULL;
  void *symbol = dlsym(handle, "tcrt_library_open");
  memcpy(&open, &symbol, sizeof open);
  tcrt_status_t status = open ? open(&tcrt_services) : TCRT_OK;
  if (status != TCRT_OK) {
    char what[1024];
    snprintf(what, sizeof what, "%s", tcrt_last_error());
    return tcrt_fail(status, "%s: error: %s", model->name, what);
  }
  tcrt_library_fn functions_of = NULL;
  symbol = dlsym(handle, "tcrt_library_functions");
  memcpy(&functions_of, &symbol, sizeof functions_of);
  if (functions_of)
    library->functions = functions_of(&library->count);
  else
    library->problem = "it does not export tcrt_library_functions";
  return TCRT_OK;
}

static tcrt_function_fn find_in(const tcrt_function_t *functions, uint64_t count, const char *name, uint32_t length) {
  for (uint64_t i = 0; i < count; ++i)
    if (functions[i].name && strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
      return functions[i].function;
  return NULL;
}

/* Finds the functions that the program calls: the caller's, the library's own, then those of libraries beside it, which
 * are opened only for programs that need them. */
tcrt_status_t tcrt_model_find_functions(tcrt_model_t *model) {
  const tcrt_container_t *c = &model->container;
  if (model->host_functions)
    return TCRT_OK;
  void **functions = calloc((size_t)c->host_function_count + 1, sizeof *functions);
  if (!functions)
    return no_memory(model->name);
  library_t libraries[TCRT_LIBRARY_COUNT] = {{0}};
  for (uint32_t i = 0; i < c->host_function_count; ++i) {
    const char *name = c->strings + c->host_functions[i].offset;
    const uint32_t length = c->host_functions[i].length;
    tcrt_function_fn found = find_in(model->options.functions, model->options.function_count, name, length);
    if (!found)
      found = tcrt_find_function(name, length);
    const int which = library_of(name, length);
    library_t *library = &libraries[which];
    if (!found && !library->problem) {
      tcrt_status_t status = open_library(model, which, library);
      if (status != TCRT_OK) {
        free(functions);
        return status;
      }
    }
    if (!found)
      found = find_in(library->functions, library->count, name, length);
    if (!found) {
      free(functions);
      return tcrt_fail(TCRT_ERROR_MACHINE,
                       "%s: error: the model calls the function \"%.*s\", which is neither among those given to "
                       "tcrt_model_options_t nor in %s (%s); install %s, or give the function (tc-run --custom-op "
                       "LIB.so)",
                       model->name, (int)length, name, library_names[which], library->problem, library_names[which]);
    }
    memcpy(&functions[i], &found, sizeof found);
  }
  model->host_functions = functions;
  return TCRT_OK;
}

static tcrt_model_t *new_model(const char *name, const tcrt_model_options_t *options) {
  tcrt_model_t *model = calloc(1, sizeof *model);
  if (!model)
    return NULL;
  model->fd = -1;
  model->name = strdup(name ? name : "(memory)");
  pthread_mutex_t *lock = malloc(sizeof *lock);
  model->lock = lock;
  if (lock)
    pthread_mutex_init(lock, NULL);
  if (options) {
    size_t size = options->size < sizeof model->options ? options->size : sizeof model->options;
    memcpy(&model->options, options, size);
    if (model->options.variant)
      model->options.variant = strdup(model->options.variant);
  }
  if (!model->name || !lock || (options && options->variant && !model->options.variant)) {
    tcrt_model_close(model);
    return NULL;
  }
  return model;
}

static tcrt_status_t check_options(const char *name, const tcrt_model_options_t *options) {
  if (options && (options->size < offsetof(tcrt_model_options_t, device_index) || options->size > 4096))
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the options' size is not set; set it to sizeof(tcrt_model_options_t)",
                     name ? name : "(memory)");
  const size_t whole = offsetof(tcrt_model_options_t, function_count) + sizeof options->function_count;
  if (options && options->size >= whole && options->function_count && !options->functions)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: %llu functions are given, but their address is NULL",
                     name ? name : "(memory)", (unsigned long long)options->function_count);
  return TCRT_OK;
}

/* Page-aligned memory of the model's own, into `mapping`. */
static tcrt_status_t own_memory(tcrt_model_t *model, uint64_t size_bytes, void **mapping, uint64_t *mapping_bytes) {
  if (size_bytes == 0)
    return TCRT_OK;
  void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory for the artifact (%llu bytes)", model->name,
                     (unsigned long long)size_bytes);
  *mapping = memory;
  *mapping_bytes = size_bytes;
  return TCRT_OK;
}

/* The bytes of an open file: mapped, or where the caller decides whether they are accepted, a copy that stays what it
 * is. */
static tcrt_status_t take_file(tcrt_model_t *model, const char *path, int fd, uint64_t size_bytes, void **mapping,
                               uint64_t *mapping_bytes) {
  if (size_bytes == 0)
    return TCRT_OK;
  if (model->options.verify) {
    tcrt_status_t status = own_memory(model, size_bytes, mapping, mapping_bytes);
    if (status == TCRT_OK)
      status = tcrt_file_read(fd, path, 0, *mapping, size_bytes);
    if (status == TCRT_OK)
      mprotect(*mapping, size_bytes, PROT_READ);
    return status;
  }
  void *mapped = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the file cannot be mapped: %s", path, strerror(errno));
  *mapping = mapped;
  *mapping_bytes = size_bytes;
  return TCRT_OK;
}

/* Maps FILE.weights and checks that it belongs to the artifact. */
static tcrt_status_t map_weights(tcrt_model_t *model) {
  tcrt_container_t *c = &model->container;
  if (!c->weights_file)
    return TCRT_OK;
  if (model->fd < 0)
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the artifact's weights are in a file of their own; open the artifact by its path",
                     model->name);
  size_t length = strlen(model->name);
  char *path = malloc(length + sizeof ".weights");
  if (!path)
    return no_memory(model->name);
  memcpy(path, model->name, length);
  memcpy(path + length, ".weights", sizeof ".weights");
  tcrt_status_t status = TCRT_OK;
  uint64_t bytes = TCRT_SECTION_ALIGN + c->weights_size;
  uint64_t size_bytes;
  int fd;
  static const tcrt_file_words_t words = {" with the artifact's weights", "; keep it beside the artifact"};
  status = tcrt_file_open(path, UINT64_MAX, &words, &fd, &size_bytes);
  if (status != TCRT_OK) {
    /* Said. */
  } else if (size_bytes != bytes) {
    status = tcrt_fail(TCRT_ERROR_INVALID,
                       "%s: error: the file does not hold the weights of %s: it has %lld bytes and should have %llu; "
                       "copy or compile both again",
                       path, model->name, (long long)size_bytes, (unsigned long long)bytes);
  } else {
    status = take_file(model, path, fd, bytes, &model->weights_mapping, &model->weights_mapping_bytes);
    if (status == TCRT_OK) {
      c->weights = (const uint8_t *)model->weights_mapping + TCRT_SECTION_ALIGN;
      const tcrt_weights_header_t *header = model->weights_mapping;
      uint8_t digest[32];
      int fits = memcmp(header->magic, TCRT_WEIGHTS_MAGIC, TCRT_MAGIC_SIZE) == 0 &&
                 memcmp(&header->weights, c->weights_file, sizeof header->weights) == 0;
      /* All of its bytes are known then. */
      for (size_t i = sizeof *header; fits && model->options.verify && i < TCRT_SECTION_ALIGN; ++i)
        fits = ((const uint8_t *)header)[i] == 0;
      if (fits && (model->options.verify_weights || model->options.verify)) {
        tcrt_sha256(c->weights, c->weights_size, digest);
        fits = memcmp(digest, c->weights_file->sha256, sizeof digest) == 0;
      }
      if (!fits)
        status = tcrt_fail(TCRT_ERROR_INVALID,
                           "%s: error: the file does not hold the weights of %s; copy or compile both again", path,
                           model->name);
    }
  }
  if (fd >= 0)
    close(fd);
  free(path);
  return status;
}

static int has_code(const tcrt_model_t *model, uint32_t device) {
  for (uint32_t i = 0; i < model->container.signature->variant_count; ++i)
    if (tcrt_container_variant(&model->container, i).device == device)
      return 1;
  return 0;
}

/* Artifacts inside have hashes of their own, which the one around them does not repeat. */
static tcrt_status_t check_parts(const tcrt_model_t *model, uint32_t flags) {
  const tcrt_container_t *c = &model->container;
  tcrt_status_t status = TCRT_OK;
  for (uint32_t i = 0; status == TCRT_OK && (flags & TCRT_PARSE_ALL_HASHES) && i < c->section_count; ++i) {
    tcrt_container_t part = {0};
    if (c->sections[i].kind == TCRT_SECTION_ARTIFACT)
      status = tcrt_container_parse(c->data + c->sections[i].offset, c->sections[i].size, model->name, flags, &part);
  }
  return status;
}

/* Goes on with the artifact inside that is for the device which was asked for, if there is one. */
static tcrt_status_t choose_part(tcrt_model_t *model, uint32_t flags) {
  const tcrt_container_t *c = &model->container;
  if (has_code(model, model->options.device))
    return TCRT_OK;
  for (uint32_t i = 0; i < c->section_count; ++i) {
    const tcrt_section_t *section = &c->sections[i];
    if (section->kind == TCRT_SECTION_ARTIFACT && section->arch == model->options.device)
      return tcrt_container_parse(c->data + section->offset, section->size, model->name, flags, &model->container);
  }
  return TCRT_OK;
}

/* The same, but the part for CPUs where the caller allows that and the device cannot be used. */
static tcrt_status_t choose_usable_part(tcrt_model_t *model, uint32_t flags) {
  const tcrt_container_t whole = model->container;
  tcrt_status_t status = choose_part(model, flags);
  if (status != TCRT_OK || !model->options.cpu_instead || model->options.device != TCRT_DEVICE_CUDA)
    return status;
  int was_there = has_code(model, TCRT_DEVICE_CUDA);
  if (was_there && tcrt_cuda_driver.is_usable(model) == TCRT_OK)
    return TCRT_OK;
  const tcrt_container_t part = model->container;
  model->container = whole;
  model->options.device = TCRT_DEVICE_CPU;
  status = choose_part(model, flags);
  if (status == TCRT_OK && has_code(model, TCRT_DEVICE_CPU)) {
    if (was_there) {
      /* It is an error where nothing else runs. */
      const char *said = tcrt_last_error(), *why = strstr(said, ": error: ");
      tcrt_model_log(model, TCRT_LOG_WARNING, "%s: warning: %s; code for CPUs runs instead", model->name,
                     why ? why + strlen(": error: ") : said);
    }
  } else {
    /* Contexts say what the GPU lacks. */
    model->container = part;
    model->options.device = TCRT_DEVICE_CUDA;
  }
  return status;
}

/* Asks the caller whether the bytes are accepted. */
static tcrt_status_t verify(tcrt_model_t *model, const void *data, uint64_t size_bytes) {
  if (!model->options.verify)
    return TCRT_OK;
  char why[1024] = "it is not accepted";
  tcrt_status_t status =
      model->options.verify(model->options.verify_user, model->name, data, size_bytes, why, sizeof why);
  why[sizeof why - 1] = 0;
  return status == TCRT_OK ? TCRT_OK : tcrt_fail(status, "%s: error: %s", model->name, why);
}

/* Checks the bytes and finishes `model`, which is closed on failure. */
static tcrt_status_t finish(tcrt_model_t *model, const void *data, uint64_t size_bytes, tcrt_model_t **result) {
  uint32_t flags = TCRT_PARSE_HASHES | (model->options.verify_weights ? TCRT_PARSE_ALL_HASHES : 0);
  tcrt_status_t status = verify(model, data, size_bytes);
  if (status == TCRT_OK)
    status = tcrt_container_parse(data, size_bytes, model->name, flags, &model->container);
  if (status == TCRT_OK)
    status = check_parts(model, flags);
  if (status == TCRT_OK)
    status = choose_usable_part(model, flags);
  if (status == TCRT_OK)
    status = map_weights(model);
  if (status == TCRT_OK)
    status = copy_names(model);
  if (status == TCRT_OK)
    status = divide_functions(model);
  if (status == TCRT_OK && model->options.device > TCRT_DEVICE_CUDA)
    status = tcrt_fail(TCRT_ERROR_INVALID, "%s: error: device %u is not known", model->name, model->options.device);
  if (status == TCRT_OK) {
    const tcrt_signature_t *s = model->container.signature;
    model->loaded = calloc(s->variant_count, sizeof *model->loaded);
    model->pool = tcrt_pool_create();
    if (!model->loaded || !model->pool)
      status = no_memory(model->name);
  }
  if (status == TCRT_OK)
    status = tcrt_counters_open(model);
  if (status != TCRT_OK) {
    tcrt_model_close(model);
    return status;
  }
  *result = model;
  return TCRT_OK;
}

static tcrt_status_t open_file(const char *path, const tcrt_model_options_t *options, tcrt_model_t **result) {
  tcrt_status_t status = check_options(path, options);
  if (status != TCRT_OK)
    return status;
  tcrt_model_t *model = new_model(path, options);
  if (!model)
    return no_memory(path);
  uint64_t size_bytes;
  status = tcrt_file_open(path, UINT64_MAX, NULL, &model->fd, &size_bytes);
  if (status == TCRT_OK)
    status = take_file(model, path, model->fd, size_bytes, &model->mapping, &model->mapping_bytes);
  if (status != TCRT_OK) {
    tcrt_model_close(model);
    return status;
  }
  return finish(model, model->mapping, model->mapping_bytes, result);
}

tcrt_status_t tcrt_model_open_file(const char *path, const tcrt_model_options_t *options, tcrt_model_t **model) {
  TCRT_NEEDS(model);
  *model = NULL;
  TCRT_NEEDS(path);
  return open_file(path, options, model);
}

static tcrt_status_t open_memory(const void *data, uint64_t size_bytes, const char *name,
                                 const tcrt_model_options_t *options, tcrt_model_t **result) {
  tcrt_status_t status = check_options(name, options);
  if (status != TCRT_OK)
    return status;
  if (!data && size_bytes)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the artifact's address is NULL", name ? name : "(memory)");
  tcrt_model_t *model = new_model(name, options);
  if (!model)
    return no_memory(name ? name : "(memory)");
  if ((uintptr_t)data % TCRT_SECTION_ALIGN != 0) {
    status = own_memory(model, size_bytes, &model->mapping, &model->mapping_bytes);
    if (status != TCRT_OK) {
      tcrt_model_close(model);
      return status;
    }
    if (size_bytes) {
      memcpy(model->mapping, data, size_bytes);
      mprotect(model->mapping, size_bytes, PROT_READ);
    }
    data = model->mapping;
  }
  return finish(model, data, size_bytes, result);
}

tcrt_status_t tcrt_model_open_memory(const void *data, uint64_t size_bytes, const char *name,
                                     const tcrt_model_options_t *options, tcrt_model_t **model) {
  TCRT_NEEDS(model);
  *model = NULL;
  return open_memory(data, size_bytes, name, options, model);
}

static tcrt_status_t open_reader(const tcrt_reader_t *reader, const char *name, const tcrt_model_options_t *options,
                                 tcrt_model_t **result) {
  tcrt_status_t status = check_options(name, options);
  if (status != TCRT_OK)
    return status;
  if (!reader->read)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: no read callback is given", name ? name : "(reader)");
  tcrt_model_t *model = new_model(name ? name : "(reader)", options);
  if (!model)
    return no_memory(name ? name : "(reader)");
  status = own_memory(model, reader->size_bytes, &model->mapping, &model->mapping_bytes);
  const uint64_t piece = UINT64_C(64) << 20;
  for (uint64_t at = 0; status == TCRT_OK && at < reader->size_bytes; at += piece) {
    uint64_t bytes = reader->size_bytes - at < piece ? reader->size_bytes - at : piece;
    if (reader->read(reader->user, at, (uint8_t *)model->mapping + at, bytes) != 0)
      status = tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the artifact cannot be read at byte %llu", model->name,
                         (unsigned long long)at);
  }
  if (status != TCRT_OK) {
    tcrt_model_close(model);
    return status;
  }
  if (model->mapping)
    mprotect(model->mapping, model->mapping_bytes, PROT_READ);
  return finish(model, model->mapping, model->mapping_bytes, result);
}

tcrt_status_t tcrt_model_open_reader(const tcrt_reader_t *reader, const char *name, const tcrt_model_options_t *options,
                                     tcrt_model_t **model) {
  TCRT_NEEDS(model);
  *model = NULL;
  TCRT_NEEDS(reader);
  return open_reader(reader, name, options, model);
}

void tcrt_model_close(tcrt_model_t *model) {
  if (!model)
    return;
  if (model->context_count) {
    /* The last context frees it. */
    tcrt_model_log(model, TCRT_LOG_WARNING, "%s: closed while %u contexts are in use", model->name,
                   model->context_count);
    model->is_closed = 1;
    return;
  }
  tcrt_counters_close(model);
  tcrt_pool_destroy(model->pool);
  if (model->loaded) {
    for (uint32_t i = 0; i < model->container.signature->variant_count; ++i) {
      tcrt_loaded_variant_t *loaded = model->loaded[i];
      if (!loaded)
        continue;
      loaded->driver->variant_close(loaded);
      tcrt_elf_unload(&loaded->image);
      free(loaded);
    }
  }
  free(model->loaded);
  free(model->functions);
  free(model->sorted);
  free(model->output_dims_at);
  free(model->host_functions);
  for (int i = 0; i < TCRT_LIBRARY_COUNT; ++i)
    if (model->function_libraries[i])
      dlclose(model->function_libraries[i]);
  free(model->names);
  if (model->mapping)
    munmap(model->mapping, model->mapping_bytes);
  if (model->weights_mapping)
    munmap(model->weights_mapping, model->weights_mapping_bytes);
  if (model->fd >= 0)
    close(model->fd);
  if (model->lock)
    pthread_mutex_destroy(model->lock);
  free(model->lock);
  free((char *)model->options.variant);
  free(model->name);
  free(model);
}
