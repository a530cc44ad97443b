/*
 * Counters.c - what a process has run: per model, function and entry; as Prometheus' text and, with the sizes that came
 * most often, as JSON for tc-inspect --usage.
 *
 * A run adds to a few atomic numbers; the sizes of functions that have symbols are counted under a lock of the model,
 * which is held for a comparison with the row of the context's last run where sizes stay.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Internal.h"
#include "tc/Format/File.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Different sizes of a function that are counted at the same time. */
#define MOST_SIZES 64

typedef struct entry_counter_t {
  char *name;
  uint64_t runs, time_ns, input_bytes, output_bytes; /* atomic */
} entry_counter_t;

typedef struct sizes_counter_t {
  uint64_t runs, time_ns;
  uint32_t entry;
} sizes_counter_t;

typedef struct function_counter_t {
  entry_counter_t *entries; /* the general one is the last */
  uint32_t entry_count;
  uint64_t refused, failed; /* atomic */
  /* Under the lock: */
  uint32_t *symbols; /* that inputs bind */
  uint32_t symbol_count;
  uint32_t row_count;
  sizes_counter_t *rows;
  int64_t *sizes; /* of each row */
  uint64_t other_runs;
} function_counter_t;

struct tcrt_counters_t {
  tcrt_model_t *model;
  tcrt_counters_t *next; /* of the open models */
  uint64_t opened;       /* the how many-th one of the process */
  uint64_t memory_bytes; /* atomic, of contexts */
  pthread_mutex_t lock;
  function_counter_t *functions;
};

/* Of all open models, the latest first. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static tcrt_counters_t *open_models;
static uint64_t opened_models;

static void add(uint64_t *counter, uint64_t amount) { __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED); }
static uint64_t get(const uint64_t *counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

/* ---- entries ---- */

static int meets(const tcrt_sig_entry_size_t *size, int64_t value) {
  return size->compare == TCRT_ENTRY_AT_MOST ? value <= size->size : value == size->size;
}

uint32_t tcrt_choose_entry(const tcrt_model_t *model, const tcrt_model_function_t *function, const int64_t *symbols) {
  for (uint32_t i = 0; i < function->entry_count; ++i) {
    const tcrt_sig_entry_size_t *sizes = model->container.entry_sizes + function->entries[i].first_size;
    uint32_t same = 0;
    while (same < function->entries[i].size_count && meets(&sizes[same], symbols[sizes[same].symbol]))
      ++same;
    if (same == function->entries[i].size_count)
      return i;
  }
  return function->entry_count;
}

uint32_t tcrt_model_entry_count(const tcrt_model_t *model, uint32_t function) {
  TCRT_NEEDS_OR(model, 0);
  return function < model->container.function_count ? model->functions[function].entry_count + 1 : 0;
}

tcrt_status_t tcrt_model_entry(const tcrt_model_t *model, uint32_t function, uint32_t index, tcrt_entry_info_t *info) {
  TCRT_NEEDS(info);
  memset(info, 0, sizeof *info);
  TCRT_NEEDS(model);
  const uint32_t count = tcrt_model_entry_count(model, function);
  if (index >= count)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: there is no entry %u of function %u; it has %u", model->name,
                     index, function, count);
  info->name = model->counters->functions[function].entries[index].name;
  info->size_count = index + 1 < count ? model->functions[function].entries[index].size_count : 0;
  return TCRT_OK;
}

/* ---- text ---- */

/* Text that grows; NULL once memory has run out. */
typedef struct text_t {
  char *data;
  size_t size, capacity;
  int has_failed;
} text_t;

static void append(text_t *text, const char *data, size_t size) {
  if (text->size + size + 1 > text->capacity) {
    const size_t capacity = 2 * (text->size + size) + 4096;
    char *larger = text->has_failed ? NULL : realloc(text->data, capacity);
    if (!larger) {
      text->has_failed = 1;
      return;
    }
    text->data = larger;
    text->capacity = capacity;
  }
  memcpy(text->data + text->size, data, size);
  text->size += size;
  text->data[text->size] = 0;
}

static void put(text_t *text, const char *more) { append(text, more, strlen(more)); }

static void print(text_t *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(text_t *text, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  append(text, line, length < (int)sizeof line ? (size_t)length : sizeof line - 1);
}

/* A name in quotes, as Prometheus and JSON have it; other control characters than a line's end are no names. */
static void quote(text_t *text, const char *name) {
  put(text, "\"");
  for (const char *c = name; *c; ++c)
    if (*c == '"' || *c == '\\')
      print(text, "\\%c", *c);
    else if (*c == '\n')
      put(text, "\\n");
    else
      append(text, (unsigned char)*c < ' ' ? "?" : c, 1);
  put(text, "\"");
}

/* Hands the text over as the API has it. */
static tcrt_status_t deliver(text_t *made, const char *name, char *text, uint64_t size_bytes, uint64_t *needed_bytes) {
  tcrt_status_t status = TCRT_OK;
  if (made->has_failed)
    status = tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for a text of the counters", name);
  else
    *needed_bytes = made->size + 1;
  if (status == TCRT_OK && text && size_bytes < *needed_bytes)
    status = tcrt_fail(TCRT_ERROR_INVALID,
                       "%s: error: the text of the counters has %llu bytes, and there is room for "
                       "%llu; give more",
                       name, (unsigned long long)*needed_bytes, (unsigned long long)size_bytes);
  else if (status == TCRT_OK && text)
    memcpy(text, made->data, *needed_bytes);
  free(made->data);
  return status;
}

/* ---- making ---- */

/* "batch=8,seq<=128" for each entry of a function. */
static tcrt_status_t name_entries(const tcrt_model_t *model, const tcrt_model_function_t *function,
                                  function_counter_t *counter, uint64_t *bytes) {
  for (uint32_t i = 0; i < counter->entry_count; ++i) {
    text_t name = {0};
    if (i == function->entry_count) {
      print(&name, "general");
    } else {
      const tcrt_sig_entry_t *entry = &function->entries[i];
      for (uint32_t j = 0; j < entry->size_count && *bytes <= model->container.size_bytes; ++j) {
        const tcrt_sig_entry_size_t *size = &model->container.entry_sizes[entry->first_size + j];
        const char *symbol = function->symbol_names[size->symbol];
        put(&name, j ? "," : "");
        put(&name, symbol);
        *bytes += strlen(symbol);
        print(&name, size->compare == TCRT_ENTRY_AT_MOST ? "<=%" PRId64 : "=%" PRId64, size->size);
      }
    }
    counter->entries[i].name = name.data;
    if (name.has_failed)
      return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left to open the artifact", model->name);
    if (*bytes > model->container.size_bytes)
      return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the artifact is corrupt: its entries overlap; compile it again",
                       model->name);
  }
  return TCRT_OK;
}

static int make_function(const tcrt_model_t *model, const tcrt_model_function_t *function,
                         function_counter_t *counter) {
  counter->entry_count = function->entry_count + 1;
  counter->entries = calloc(counter->entry_count, sizeof *counter->entries);
  counter->symbols = calloc((size_t)function->symbol_count + 1, sizeof *counter->symbols);
  char *is_bound = calloc((size_t)function->symbol_count + 1, 1);
  for (uint32_t i = 0; is_bound && i < function->input_count; ++i)
    for (uint32_t d = 0; d < function->inputs[i].rank; ++d) {
      const tcrt_sig_dim_t *dim = &model->container.dims[function->inputs[i].first_dim + d];
      if (dim->kind == TCRT_DIM_SYMBOL)
        is_bound[dim->symbol] = 1;
    }
  for (uint32_t i = 0; is_bound && counter->symbols && i < function->symbol_count; ++i)
    if (is_bound[i])
      counter->symbols[counter->symbol_count++] = i;
  const int is_made = is_bound && counter->entries && counter->symbols;
  free(is_bound);
  return is_made;
}

tcrt_status_t tcrt_counters_open(tcrt_model_t *model) {
  const uint32_t count = model->container.function_count;
  tcrt_counters_t *counters = calloc(1, sizeof *counters);
  model->counters = counters;
  if (counters)
    counters->functions = calloc(count, sizeof *counters->functions);
  if (!counters || !counters->functions)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left to open the artifact", model->name);
  counters->model = model;
  pthread_mutex_init(&counters->lock, NULL);
  tcrt_status_t status = TCRT_OK;
  uint64_t bytes = 0;
  for (uint32_t i = 0; status == TCRT_OK && i < count; ++i) {
    if (!make_function(model, &model->functions[i], &counters->functions[i]))
      status = tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left to open the artifact", model->name);
    if (status == TCRT_OK)
      status = name_entries(model, &model->functions[i], &counters->functions[i], &bytes);
  }
  if (status != TCRT_OK)
    return status;
  pthread_mutex_lock(&open_lock);
  counters->opened = ++opened_models;
  counters->next = open_models;
  open_models = counters;
  pthread_mutex_unlock(&open_lock);
  return TCRT_OK;
}

void tcrt_counters_close(tcrt_model_t *model) {
  tcrt_counters_t *counters = model->counters;
  if (!counters)
    return;
  pthread_mutex_lock(&open_lock);
  for (tcrt_counters_t **at = &open_models; *at; at = &(*at)->next)
    if (*at == counters) {
      *at = counters->next;
      break;
    }
  pthread_mutex_unlock(&open_lock);
  for (uint32_t i = 0; counters->functions && i < model->container.function_count; ++i) {
    function_counter_t *function = &counters->functions[i];
    for (uint32_t j = 0; function->entries && j < function->entry_count; ++j)
      free(function->entries[j].name);
    free(function->entries);
    free(function->symbols);
    free(function->rows);
    free(function->sizes);
  }
  if (counters->model)
    pthread_mutex_destroy(&counters->lock);
  free(counters->functions);
  free(counters);
  model->counters = NULL;
}

/* ---- counting ---- */

static int is_row(const function_counter_t *counter, uint32_t row, const int64_t *symbols) {
  const int64_t *sizes = counter->sizes + (size_t)row * counter->symbol_count;
  for (uint32_t i = 0; i < counter->symbol_count; ++i)
    if (sizes[i] != symbols[counter->symbols[i]])
      return 0;
  return 1;
}

/* The row of these sizes; a new one takes the place of the one that came least often. */
static uint32_t find_row(function_counter_t *counter, const int64_t *symbols) {
  uint32_t row = 0, least = 0;
  for (; row < counter->row_count; ++row) {
    if (is_row(counter, row, symbols))
      return row;
    if (counter->rows[row].runs < counter->rows[least].runs)
      least = row;
  }
  if (counter->row_count < MOST_SIZES) {
    ++counter->row_count;
  } else {
    row = least;
    counter->other_runs += counter->rows[row].runs;
  }
  memset(&counter->rows[row], 0, sizeof counter->rows[row]);
  for (uint32_t i = 0; i < counter->symbol_count; ++i)
    counter->sizes[(size_t)row * counter->symbol_count + i] = symbols[counter->symbols[i]];
  return row;
}

static void count_sizes(tcrt_counters_t *counters, function_counter_t *counter, tcrt_bindings_t *bindings,
                        uint64_t time_ns) {
  pthread_mutex_lock(&counters->lock);
  if (!counter->rows) {
    counter->rows = calloc(MOST_SIZES, sizeof *counter->rows);
    counter->sizes = calloc((size_t)MOST_SIZES * counter->symbol_count, sizeof *counter->sizes);
  }
  if (!counter->rows || !counter->sizes) {
    ++counter->other_runs; /* no memory: nothing that a run should fail for */
    free(counter->rows);
    free(counter->sizes);
    counter->rows = NULL;
    counter->sizes = NULL;
  } else {
    if (bindings->usage >= counter->row_count || !is_row(counter, bindings->usage, bindings->symbols))
      bindings->usage = find_row(counter, bindings->symbols);
    sizes_counter_t *row = &counter->rows[bindings->usage];
    ++row->runs;
    row->time_ns += time_ns;
    row->entry = bindings->entry;
  }
  pthread_mutex_unlock(&counters->lock);
}

/* Bytes of the values of a run; of strings and what is no tensor, their words. */
static uint64_t value_bytes(const tcrt_sig_value_t *values, uint32_t count, const int64_t *dims) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < count; dims += values[i].rank, ++i) {
    uint64_t bytes = 0;
    tcrt_dtype_t word = tcrt_is_boxed(&values[i]) ? TCRT_DTYPE_I64 : (tcrt_dtype_t)values[i].dtype;
    tcrt_tensor_size(word, values[i].rank, dims, &bytes);
    all += bytes;
  }
  return all;
}

void tcrt_count_run(tcrt_context_t *context, tcrt_status_t status, uint64_t time_ns) {
  tcrt_counters_t *counters = context->model->counters;
  tcrt_bindings_t *bindings = context->bindings;
  const tcrt_model_function_t *function = bindings->function;
  function_counter_t *counter = &counters->functions[bindings - context->all];
  /* Differences of numbers without a sign add up, too. */
  add(&counters->memory_bytes, context->memory_bytes - context->counted_bytes);
  context->counted_bytes = context->memory_bytes;
  if (status != TCRT_OK) {
    add(status == TCRT_ERROR_REFUSED ? &counter->refused : &counter->failed, 1);
    return;
  }
  entry_counter_t *entry = &counter->entries[bindings->entry];
  add(&entry->runs, 1);
  add(&entry->time_ns, time_ns);
  add(&entry->input_bytes, value_bytes(function->inputs, function->input_count, bindings->input_dims));
  add(&entry->output_bytes, value_bytes(function->outputs, function->output_count, bindings->output_dims));
  if (counter->symbol_count)
    count_sizes(counters, counter, bindings, time_ns);
}

void tcrt_count_end(tcrt_context_t *context) {
  if (context->model->counters)
    add(&context->model->counters->memory_bytes, 0 - context->counted_bytes);
}

/* ---- Prometheus ---- */

static void print_family(text_t *text, const char *name, const char *type, const char *help) {
  print(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Labels of a model and, where they are given, of a function and an entry. */
static void print_labels(text_t *text, const char *family, const tcrt_counters_t *counters, const char *function,
                         const char *entry) {
  print(text, "%s{model=", family);
  quote(text, counters->model->name);
  print(text, ",opened=\"%" PRIu64 "\"", counters->opened);
  if (function) {
    put(text, ",function=");
    quote(text, function);
  }
  if (entry) {
    put(text, ",entry=");
    quote(text, entry);
  }
  put(text, "} ");
}

typedef struct family_t {
  const char *name, *help;
  size_t offset; /* of the counter in its record */
  double scale;
} family_t;

static void print_entries(text_t *text, const family_t *family) {
  print_family(text, family->name, "counter", family->help);
  for (const tcrt_counters_t *c = open_models; c; c = c->next)
    for (uint32_t i = 0; i < c->model->container.function_count; ++i)
      for (uint32_t j = 0; j < c->functions[i].entry_count; ++j) {
        const entry_counter_t *entry = &c->functions[i].entries[j];
        const uint64_t value = get((const uint64_t *)(const void *)((const char *)entry + family->offset));
        print_labels(text, family->name, c, c->model->functions[i].name, entry->name);
        if (family->scale == 1)
          print(text, "%" PRIu64 "\n", value);
        else
          print(text, "%.9f\n", (double)value * family->scale);
      }
}

static void print_functions(text_t *text, const family_t *family) {
  print_family(text, family->name, "counter", family->help);
  for (const tcrt_counters_t *c = open_models; c; c = c->next)
    for (uint32_t i = 0; i < c->model->container.function_count; ++i) {
      print_labels(text, family->name, c, c->model->functions[i].name, NULL);
      print(text, "%" PRIu64 "\n",
            get((const uint64_t *)(const void *)((const char *)&c->functions[i] + family->offset)));
    }
}

static uint32_t count_contexts(const tcrt_model_t *model) {
  pthread_mutex_lock(model->lock);
  const uint32_t count = model->context_count;
  pthread_mutex_unlock(model->lock);
  return count;
}

tcrt_status_t tcrt_metrics(char *text, uint64_t size_bytes, uint64_t *needed_bytes) {
  TCRT_NEEDS(needed_bytes);
  *needed_bytes = 0;
  static const family_t of_entries[] = {
      {"tcrt_runs_total", "Runs that went well.", offsetof(entry_counter_t, runs), 1},
      {"tcrt_run_seconds_total", "Time of these runs.", offsetof(entry_counter_t, time_ns), 1e-9},
      {"tcrt_input_bytes_total", "Bytes of their inputs.", offsetof(entry_counter_t, input_bytes), 1},
      {"tcrt_output_bytes_total", "Bytes of their outputs.", offsetof(entry_counter_t, output_bytes), 1}};
  static const family_t of_functions[] = {
      {"tcrt_refused_runs_total", "Runs whose inputs were refused.", offsetof(function_counter_t, refused), 1},
      {"tcrt_failed_runs_total", "Runs that failed otherwise.", offsetof(function_counter_t, failed), 1}};
  text_t made = {0};
  print_family(&made, "tcrt_build_info", "gauge", "The version of libtcrt.");
  print(&made, "tcrt_build_info{version=\"%s\"} 1\n", tcrt_version());
  pthread_mutex_lock(&open_lock);
  for (size_t i = 0; i < sizeof of_entries / sizeof *of_entries; ++i)
    print_entries(&made, &of_entries[i]);
  for (size_t i = 0; i < sizeof of_functions / sizeof *of_functions; ++i)
    print_functions(&made, &of_functions[i]);
  print_family(&made, "tcrt_contexts", "gauge", "Contexts that there are.");
  for (const tcrt_counters_t *c = open_models; c; c = c->next) {
    print_labels(&made, "tcrt_contexts", c, NULL, NULL);
    print(&made, "%" PRIu32 "\n", count_contexts(c->model));
  }
  print_family(&made, "tcrt_memory_bytes", "gauge",
               "Arenas, states, values and outputs that contexts held after their last run.");
  for (const tcrt_counters_t *c = open_models; c; c = c->next) {
    print_labels(&made, "tcrt_memory_bytes", c, NULL, NULL);
    print(&made, "%" PRIu64 "\n", get(&c->memory_bytes));
  }
  pthread_mutex_unlock(&open_lock);
  return deliver(&made, "tcrt_metrics", text, size_bytes, needed_bytes);
}

/* ---- usage ---- */

static void print_number(text_t *text, const char *key, uint64_t value) { print(text, "\"%s\": %" PRIu64, key, value); }

static void print_sizes(text_t *text, const tcrt_model_function_t *function, const function_counter_t *counter,
                        uint32_t row) {
  put(text, "{");
  for (uint32_t i = 0; i < counter->symbol_count; ++i) {
    put(text, i ? ", " : "");
    quote(text, function->symbol_names[counter->symbols[i]]);
    print(text, ": %" PRId64, counter->sizes[(size_t)row * counter->symbol_count + i]);
  }
  put(text, "}");
}

static void print_function(text_t *text, const tcrt_model_t *model, uint32_t index) {
  const tcrt_model_function_t *function = &model->functions[index];
  const function_counter_t *counter = &model->counters->functions[index];
  print(text, "%s\n    {\"name\": ", index ? "," : "");
  quote(text, function->name);
  put(text, ",\n     \"symbols\": [");
  for (uint32_t i = 0; i < counter->symbol_count; ++i) {
    const tcrt_sig_symbol_t *symbol = &function->symbols[counter->symbols[i]];
    put(text, i ? ", {\"name\": " : "{\"name\": ");
    quote(text, function->symbol_names[counter->symbols[i]]);
    print(text, ", \"min\": %" PRId64, symbol->min);
    if (symbol->max != INT64_MAX)
      print(text, ", \"max\": %" PRId64, symbol->max);
    print(text, ", \"divisor\": %" PRId64 "}", symbol->divisor);
  }
  put(text, "],\n     \"entries\": [");
  for (uint32_t i = 0; i < counter->entry_count; ++i) {
    print(text, "%s\n      {\"name\": ", i ? "," : "");
    quote(text, counter->entries[i].name);
    put(text, ", \"sizes\": {");
    for (uint32_t j = 0; i < function->entry_count && j < function->entries[i].size_count; ++j) {
      const tcrt_sig_entry_size_t *size = &model->container.entry_sizes[function->entries[i].first_size + j];
      put(text, j ? ", " : "");
      quote(text, function->symbol_names[size->symbol]);
      print(text, size->compare == TCRT_ENTRY_AT_MOST ? ": {\"at_most\": %" PRId64 "}" : ": %" PRId64, size->size);
    }
    put(text, "}, ");
    print_number(text, "runs", get(&counter->entries[i].runs));
    put(text, ", ");
    print_number(text, "time_ns", get(&counter->entries[i].time_ns));
    put(text, "}");
  }
  put(text, "],\n     \"sizes\": [");
  for (uint32_t i = 0; i < counter->row_count; ++i) {
    print(text, "%s\n      {\"sizes\": ", i ? "," : "");
    print_sizes(text, function, counter, i);
    put(text, ", \"entry\": ");
    quote(text, counter->entries[counter->rows[i].entry].name);
    put(text, ", ");
    print_number(text, "runs", counter->rows[i].runs);
    put(text, ", ");
    print_number(text, "time_ns", counter->rows[i].time_ns);
    put(text, "}");
  }
  put(text, "],\n     ");
  print_number(text, "runs_of_other_sizes", counter->other_runs);
  put(text, ", ");
  print_number(text, "refused_runs", get(&counter->refused));
  put(text, ", ");
  print_number(text, "failed_runs", get(&counter->failed));
  put(text, "}");
}

static void print_usage(text_t *text, const tcrt_model_t *model) {
  print(text, "{\"tc_usage\": 1,\n  \"artifact\": ");
  quote(text, model->name);
  put(text, ",\n  \"functions\": [");
  pthread_mutex_lock(&model->counters->lock);
  for (uint32_t i = 0; i < model->container.function_count; ++i)
    print_function(text, model, i);
  pthread_mutex_unlock(&model->counters->lock);
  put(text, "]}\n");
}

tcrt_status_t tcrt_model_usage(tcrt_model_t *model, char *text, uint64_t size_bytes, uint64_t *needed_bytes) {
  TCRT_NEEDS(needed_bytes);
  *needed_bytes = 0;
  TCRT_NEEDS(model);
  text_t made = {0};
  print_usage(&made, model);
  return deliver(&made, model->name, text, size_bytes, needed_bytes);
}

tcrt_status_t tcrt_model_write_usage(tcrt_model_t *model, const char *path) {
  TCRT_NEEDS(model);
  TCRT_NEEDS(path);
  text_t made = {0};
  print_usage(&made, model);
  tcrt_output_t output = {.fd = -1};
  tcrt_status_t status = TCRT_OK;
  if (made.has_failed)
    status = tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory left for a text of the counters", model->name);
  if (status == TCRT_OK)
    status = tcrt_output_open(path, &output);
  if (status == TCRT_OK)
    status = tcrt_output_write(&output, made.data, made.size);
  if (status == TCRT_OK)
    status = tcrt_output_keep(&output);
  tcrt_output_drop(&output);
  free(made.data);
  return status;
}
