/*
 * Store.h - the strings and objects of a run, and the functions that compiled programs call on them: in the runtime,
 * and in the compiler, whose interpreter calls the same ones.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FUNCTIONS_STORE_H
#define TC_FUNCTIONS_STORE_H

#include "tcrt/function.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcrt_chunk_t tcrt_chunk_t;
typedef struct tcrt_kept_t tcrt_kept_t;

/* Elements of sequences and maps; the first `used` belong to some object and never change. */
typedef struct tcrt_list_t {
  uint64_t capacity, used;
  int64_t items[]; /* handles */
} tcrt_list_t;

typedef struct tcrt_object_t {
  uint32_t kind; /* TCRT_VALUE_TENSOR, _SEQUENCE or _MAP (of two tensors) */
  uint32_t dtype, rank;
  int64_t *dims;
  void *data;
  uint64_t bytes;
  tcrt_list_t *list;
  uint64_t count; /* elements of the list that are this object's */
} tcrt_object_t;

/* Who owns a store: where its memory comes from, and where warnings go. */
typedef struct tcrt_store_owner_t {
  void *user;
  void *(*allocate)(void *user, uint64_t bytes); /* aligned to TCRT_DATA_ALIGN; NULL: none left, the error is set */
  void (*release)(void *user, void *data, uint64_t bytes);
  void (*warn)(void *user, const tcrt_call_t *call, const char *text);
  int keeps_memory; /* a reset may keep a block for what comes next */
  uint32_t threads; /* of a run */
} tcrt_store_owner_t;

struct tcrt_store_t {
  tcrt_store_owner_t owner;
  const tcrt_string_table_t *constants;
  int64_t *constant_table; /* of ids, by hash; made when first needed */
  uint64_t constant_table_size;
  tcrt_string_t *strings; /* of this run */
  uint64_t string_count, string_capacity;
  int64_t *table;
  uint64_t table_size;
  tcrt_object_t *objects;
  uint64_t object_count, object_capacity;
  tcrt_chunk_t *chunks;
  char *text;
  uint64_t text_left;
  tcrt_kept_t *kept; /* by functions, until the store goes */
};

extern const tcrt_services_t tcrt_services;

/* `owner` is copied; NULL: memory is the system's, warnings go nowhere. `constants` may be NULL: then there is the
 * empty string alone. */
void tcrt_store_init(tcrt_store_t *store, const tcrt_store_owner_t *owner, const tcrt_string_table_t *constants);
/* Forgets all but the constants. */
void tcrt_store_reset(tcrt_store_t *store);
void tcrt_store_destroy(tcrt_store_t *store);

/* Memory until the next reset, aligned to TCRT_DATA_ALIGN. NULL: none left, the error is set. */
void *tcrt_store_allocate(tcrt_store_t *store, uint64_t bytes);
tcrt_string_t tcrt_store_string(const tcrt_store_t *store, int64_t id);
int64_t tcrt_store_intern(tcrt_store_t *store, const char *data, uint64_t size_bytes);
/* NULL for handles that are none; valid until an object is made. */
const tcrt_object_t *tcrt_store_object(const tcrt_store_t *store, int64_t handle);
tcrt_status_t tcrt_store_make_tensor(tcrt_store_t *store, uint32_t dtype, uint32_t rank, const int64_t *dims,
                                     void **data, int64_t *handle);
tcrt_status_t tcrt_store_get_tensor(const tcrt_store_t *store, int64_t handle, tcrt_operand_t *tensor);
/* A sequence or map of these handles. */
tcrt_status_t tcrt_store_make_list(tcrt_store_t *store, uint32_t kind, const int64_t *items, uint64_t count,
                                   int64_t *handle);
/* The sequence with one more element. */
tcrt_status_t tcrt_store_append(tcrt_store_t *store, int64_t sequence, int64_t item, int64_t *handle);
/* Bytes of a tensor as the program holds it: strings and handles are words. False: too large. */
int tcrt_words_size(uint32_t dtype, uint32_t rank, const int64_t *dims, uint64_t *size_bytes);

/* Host functions that have a file of their own, by their names without "tcrt_". */
tcrt_status_t tcrt_determinant(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_cholesky(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_eigh(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_lu(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_qr(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_solve(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_solve_triangular(const tcrt_services_t *services, tcrt_store_t *store,
                                           const tcrt_call_t *call);
tcrt_status_t tcrt_linalg_svd(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);
tcrt_status_t tcrt_non_max_suppression(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call);

/* The function of this name in the library itself, or NULL. */
tcrt_function_fn tcrt_find_function(const char *name, uint64_t length);

#ifdef __cplusplus
}
#endif

#endif /* TC_FUNCTIONS_STORE_H */
