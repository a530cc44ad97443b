/*
 * Store.c - the strings and objects of a run.
 *
 * Strings are interned: equal strings have equal ids, so that kernels compare, gather and move strings as words. Ids of
 * the artifact's constant strings are fixed; strings of a run get the ids behind them. Objects (tensors, sequences,
 * maps) never change once they are made, so handles are copied freely and nothing is counted: all goes when the next
 * run starts. Sequences that grow at the end share one list of elements, so that a loop of n appends takes O(n) memory.
 *
 * Memory comes from the owner: a context counts it against its limit, the compiler's interpreter takes the system's.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "tc/Functions/Store.h"

#include "tc/Format/Error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (UINT64_C(64) << 10)

struct tcrt_chunk_t {
  tcrt_chunk_t *next;
  uint64_t bytes; /* with this header */
  uint64_t used;
};

struct tcrt_kept_t {
  tcrt_kept_t *next;
  const void *key;
  void *value;
  void (*destroy)(void *value);
};

#define CHUNK_HEADER ((sizeof(tcrt_chunk_t) + TCRT_DATA_ALIGN - 1) / TCRT_DATA_ALIGN * TCRT_DATA_ALIGN)

/* ---- memory ---- */

static void *system_allocate(void *user, uint64_t bytes) {
  (void)user;
  void *data = NULL;
  if (posix_memalign(&data, TCRT_DATA_ALIGN, bytes) == 0)
    return data;
  tcrt_fail(TCRT_ERROR_MACHINE, "no memory left for strings and sequences (%llu bytes)", (unsigned long long)bytes);
  return NULL;
}

static void system_release(void *user, void *data, uint64_t bytes) {
  (void)user;
  (void)bytes;
  free(data);
}

static void no_warning(void *user, const tcrt_call_t *call, const char *text) {
  (void)user;
  (void)call;
  (void)text;
}

static const tcrt_store_owner_t system_owner = {NULL, system_allocate, system_release, no_warning, 1, 1};

static void *take(tcrt_store_t *store, uint64_t bytes) { return store->owner.allocate(store->owner.user, bytes); }

static void give_back(tcrt_store_t *store, void *data, uint64_t bytes) {
  if (data)
    store->owner.release(store->owner.user, data, bytes);
}

void *tcrt_store_allocate(tcrt_store_t *store, uint64_t bytes) {
  uint64_t rounded;
  if (!tcrt_add(bytes ? bytes : 1, TCRT_DATA_ALIGN - 1, &rounded) || rounded > (uint64_t)INT64_MAX / 2) {
    tcrt_fail(TCRT_ERROR_MACHINE, "no memory left for strings and sequences (%llu bytes)", (unsigned long long)bytes);
    return NULL;
  }
  rounded = rounded / TCRT_DATA_ALIGN * TCRT_DATA_ALIGN;
  tcrt_chunk_t *chunk = store->chunks;
  if (!chunk || chunk->bytes - chunk->used < rounded) {
    uint64_t total = CHUNK_HEADER + rounded > CHUNK_BYTES ? CHUNK_HEADER + rounded : CHUNK_BYTES;
    tcrt_chunk_t *made = take(store, total);
    if (!made)
      return NULL;
    made->bytes = total;
    made->used = CHUNK_HEADER;
    /* A large block leaves no room: the chunk in use goes on serving small ones. */
    if (chunk && total > CHUNK_BYTES) {
      made->next = chunk->next;
      chunk->next = made;
    } else {
      made->next = chunk;
      store->chunks = made;
    }
    chunk = made;
  }
  void *data = (uint8_t *)chunk + chunk->used;
  chunk->used += rounded;
  return data;
}

/* Small pieces without alignment: characters. */
static char *allocate_text(tcrt_store_t *store, uint64_t bytes) {
  if (bytes > store->text_left) {
    uint64_t block = bytes > 4096 ? bytes : 4096;
    char *data = tcrt_store_allocate(store, block);
    if (!data)
      return NULL;
    if (block - bytes < store->text_left && bytes > 2048)
      return data; /* a long string of its own */
    store->text = data;
    store->text_left = block;
  }
  char *data = store->text;
  store->text += bytes;
  store->text_left -= bytes;
  return data;
}

/* Makes *list hold one more element of `size` bytes. */
static int grow_list(tcrt_store_t *store, void **list, uint64_t count, uint64_t *capacity, size_t size) {
  if (count < *capacity)
    return 1;
  uint64_t wanted = *capacity ? *capacity * 2 : 64;
  void *made = take(store, wanted * size);
  if (!made)
    return 0;
  if (count)
    memcpy(made, *list, count * size);
  give_back(store, *list, *capacity * size);
  *list = made;
  *capacity = wanted;
  return 1;
}

void tcrt_store_init(tcrt_store_t *store, const tcrt_store_owner_t *owner, const tcrt_string_table_t *constants) {
  memset(store, 0, sizeof *store);
  store->owner = owner ? *owner : system_owner;
  store->constants = constants;
}

void tcrt_store_reset(tcrt_store_t *store) {
  while (store->chunks) {
    tcrt_chunk_t *chunk = store->chunks;
    if (!chunk->next && chunk->bytes == CHUNK_BYTES && store->owner.keeps_memory) {
      chunk->used = CHUNK_HEADER; /* the next run will want one */
      break;
    }
    store->chunks = chunk->next;
    give_back(store, chunk, chunk->bytes);
  }
  store->text = NULL;
  store->text_left = 0;
  if (store->string_count)
    memset(store->table, 0, store->table_size * sizeof *store->table);
  store->string_count = 0;
  store->object_count = 0;
}

void tcrt_store_destroy(tcrt_store_t *store) {
  while (store->kept) {
    tcrt_kept_t *kept = store->kept;
    store->kept = kept->next;
    if (kept->value && kept->destroy)
      kept->destroy(kept->value);
    give_back(store, kept, sizeof *kept);
  }
  while (store->chunks) {
    tcrt_chunk_t *chunk = store->chunks;
    store->chunks = chunk->next;
    give_back(store, chunk, chunk->bytes);
  }
  give_back(store, store->strings, store->string_capacity * sizeof *store->strings);
  give_back(store, store->objects, store->object_capacity * sizeof *store->objects);
  give_back(store, store->table, store->table_size * sizeof *store->table);
  give_back(store, store->constant_table, store->constant_table_size * sizeof *store->constant_table);
  memset(store, 0, sizeof *store);
}

/* ---- strings ---- */

static uint64_t constant_count(const tcrt_store_t *store) { return store->constants ? store->constants->count : 1; }

tcrt_string_t tcrt_store_string(const tcrt_store_t *store, int64_t id) {
  tcrt_string_t result = {NULL, 0};
  uint64_t constants = constant_count(store);
  if (id <= 0)
    return result;
  if ((uint64_t)id < constants) {
    const uint64_t *offsets = store->constants->offsets;
    result.data = (const char *)(offsets + constants + 1) + offsets[id];
    result.size_bytes = offsets[id + 1] - offsets[id];
  } else if ((uint64_t)id - constants < store->string_count) {
    result = store->strings[(uint64_t)id - constants];
  }
  return result;
}

/* FNV-1a with a final mix; tables are probed linearly. */
static uint64_t hash_of(const char *data, uint64_t size) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (uint64_t i = 0; i < size; ++i)
    hash = (hash ^ (uint8_t)data[i]) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 32;
}

/* The slot of the string in a table of ids (0: free). */
static uint64_t find_slot(const tcrt_store_t *store, const int64_t *table, uint64_t size, const char *data,
                          uint64_t bytes) {
  uint64_t at = hash_of(data, bytes) & (size - 1);
  for (; table[at]; at = (at + 1) & (size - 1)) {
    tcrt_string_t known = tcrt_store_string(store, table[at]);
    if (known.size_bytes == bytes && memcmp(known.data, data, bytes) == 0)
      break;
  }
  return at;
}

static int make_constant_table(tcrt_store_t *store) {
  uint64_t size = 16;
  while (size < 2 * constant_count(store))
    size *= 2;
  int64_t *table = take(store, size * sizeof *table);
  if (!table)
    return 0;
  memset(table, 0, size * sizeof *table);
  for (uint64_t id = 1; id < constant_count(store); ++id) {
    tcrt_string_t text = tcrt_store_string(store, (int64_t)id);
    if (text.size_bytes)
      table[find_slot(store, table, size, text.data, text.size_bytes)] = (int64_t)id;
  }
  store->constant_table = table;
  store->constant_table_size = size;
  return 1;
}

int64_t tcrt_store_intern(tcrt_store_t *store, const char *data, uint64_t size_bytes) {
  if (size_bytes == 0)
    return 0;
  if (constant_count(store) > 1) {
    if (!store->constant_table && !make_constant_table(store))
      return -1;
    int64_t id =
        store->constant_table[find_slot(store, store->constant_table, store->constant_table_size, data, size_bytes)];
    if (id)
      return id;
  }
  if (2 * (store->string_count + 1) > store->table_size) {
    uint64_t size = store->table_size ? 2 * store->table_size : 256;
    int64_t *table = take(store, size * sizeof *table);
    if (!table)
      return -1;
    memset(table, 0, size * sizeof *table);
    for (uint64_t i = 0; i < store->string_count; ++i)
      table[find_slot(store, table, size, store->strings[i].data, store->strings[i].size_bytes)] =
          (int64_t)(constant_count(store) + i);
    give_back(store, store->table, store->table_size * sizeof *store->table);
    store->table = table;
    store->table_size = size;
  }
  uint64_t slot = find_slot(store, store->table, store->table_size, data, size_bytes);
  if (store->table[slot])
    return store->table[slot];
  if (!grow_list(store, (void **)&store->strings, store->string_count, &store->string_capacity, sizeof *store->strings))
    return -1;
  char *copy = allocate_text(store, size_bytes);
  if (!copy)
    return -1;
  memcpy(copy, data, size_bytes);
  store->strings[store->string_count] = (tcrt_string_t){copy, size_bytes};
  store->table[slot] = (int64_t)(constant_count(store) + store->string_count);
  ++store->string_count;
  return store->table[slot];
}

/* ---- objects ---- */

static tcrt_object_t *add_object(tcrt_store_t *store, uint32_t kind, int64_t *handle) {
  if (!grow_list(store, (void **)&store->objects, store->object_count, &store->object_capacity, sizeof *store->objects))
    return NULL;
  tcrt_object_t *object = &store->objects[store->object_count++];
  memset(object, 0, sizeof *object);
  object->kind = kind;
  *handle = (int64_t)store->object_count;
  return object;
}

const tcrt_object_t *tcrt_store_object(const tcrt_store_t *store, int64_t handle) {
  return handle > 0 && (uint64_t)handle <= store->object_count ? &store->objects[handle - 1] : NULL;
}

/* Bytes of a tensor as the program holds it. */
int tcrt_words_size(uint32_t dtype, uint32_t rank, const int64_t *dims, uint64_t *size_bytes) {
  return tcrt_tensor_size(dtype == TCRT_DTYPE_STRING || dtype == TCRT_DTYPE_INVALID ? TCRT_DTYPE_I64
                                                                                    : (tcrt_dtype_t)dtype,
                          rank, dims, size_bytes);
}

tcrt_status_t tcrt_store_make_tensor(tcrt_store_t *store, uint32_t dtype, uint32_t rank, const int64_t *dims,
                                     void **data, int64_t *handle) {
  uint64_t bytes;
  if (rank > TCRT_MAX_RANK || !tcrt_words_size(dtype, rank, dims, &bytes))
    return tcrt_fail(TCRT_ERROR_REFUSED, "a tensor would be too large");
  int64_t *memory = tcrt_store_allocate(store, bytes + rank * sizeof(int64_t));
  tcrt_object_t *object = memory ? add_object(store, TCRT_VALUE_TENSOR, handle) : NULL;
  if (!object)
    return TCRT_ERROR_MACHINE;
  object->dtype = dtype;
  object->rank = rank;
  object->data = memory;
  object->bytes = bytes;
  object->dims = (int64_t *)((uint8_t *)memory + (bytes + 7) / 8 * 8);
  if (rank)
    memcpy(object->dims, dims, rank * sizeof(int64_t));
  *data = memory;
  return TCRT_OK;
}

tcrt_status_t tcrt_store_get_tensor(const tcrt_store_t *store, int64_t handle, tcrt_operand_t *tensor) {
  const tcrt_object_t *object = tcrt_store_object(store, handle);
  if (!object || object->kind != TCRT_VALUE_TENSOR)
    return tcrt_fail(TCRT_ERROR_REFUSED, object ? "a tensor is expected, but the value is a sequence or a map"
                                                : "the optional has no value");
  tensor->data = object->data;
  tensor->dims = object->dims;
  tensor->dtype = object->dtype;
  tensor->rank = object->rank;
  return TCRT_OK;
}

tcrt_status_t tcrt_store_make_list(tcrt_store_t *store, uint32_t kind, const int64_t *items, uint64_t count,
                                   int64_t *handle) {
  uint64_t bytes;
  if (!tcrt_mul(count, sizeof(int64_t), &bytes) || !tcrt_add(bytes, sizeof(tcrt_list_t), &bytes))
    return tcrt_fail(TCRT_ERROR_MACHINE, "no memory left for a sequence");
  tcrt_list_t *list = tcrt_store_allocate(store, bytes);
  tcrt_object_t *object = list ? add_object(store, kind, handle) : NULL;
  if (!object)
    return TCRT_ERROR_MACHINE;
  list->capacity = list->used = count;
  if (count)
    memcpy(list->items, items, count * sizeof *items);
  object->list = list;
  object->count = count;
  return TCRT_OK;
}

tcrt_status_t tcrt_store_append(tcrt_store_t *store, int64_t sequence, int64_t item, int64_t *handle) {
  tcrt_object_t known = *tcrt_store_object(store, sequence);
  tcrt_list_t *list = known.list;
  /* Somebody else may have put another element behind the same prefix: then the list is copied. */
  if (list->used != known.count || list->used == list->capacity) {
    uint64_t capacity = known.count < 4 ? 8 : 2 * known.count;
    tcrt_list_t *made = tcrt_store_allocate(store, sizeof *made + capacity * sizeof *made->items);
    if (!made)
      return TCRT_ERROR_MACHINE;
    made->capacity = capacity;
    made->used = known.count;
    if (known.count)
      memcpy(made->items, list->items, known.count * sizeof *made->items);
    list = made;
  }
  tcrt_object_t *object = add_object(store, TCRT_VALUE_SEQUENCE, handle);
  if (!object)
    return TCRT_ERROR_MACHINE;
  list->items[list->used++] = item;
  object->list = list;
  object->count = known.count + 1;
  return TCRT_OK;
}

/* ---- services ---- */

static void warn(tcrt_store_t *store, const tcrt_call_t *call, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  store->owner.warn(store->owner.user, call, text);
}

static void **keep(tcrt_store_t *store, const void *key, void (*destroy)(void *kept)) {
  for (tcrt_kept_t *kept = store->kept; kept; kept = kept->next)
    if (kept->key == key && kept->destroy == destroy)
      return &kept->value;
  tcrt_kept_t *made = take(store, sizeof *made);
  if (!made)
    return NULL;
  *made = (tcrt_kept_t){store->kept, key, NULL, destroy};
  store->kept = made;
  return &made->value;
}

static uint32_t threads(const tcrt_store_t *store) { return store->owner.threads; }

const tcrt_services_t tcrt_services = {
    .size = sizeof(tcrt_services_t),
    .string = tcrt_store_string,
    .intern = tcrt_store_intern,
    .make_tensor = tcrt_store_make_tensor,
    .get_tensor = tcrt_store_get_tensor,
    .fail = tcrt_fail,
    .warn = warn,
    .keep = keep,
    .threads = threads,
};
