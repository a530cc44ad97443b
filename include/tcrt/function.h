/*
 * function.h - host functions: C functions that compiled programs call, for what is no kernel: strings, sequences,
 * decoders, and operators of the user's own.
 *
 * A function reads operands and fills results, whose sizes the program knows before the call. What has a size that only
 * the function knows is returned as a handle (a 0-D result) to an object that it makes; the program then asks for the
 * object's dims and data. What a custom operator writes in place is a result that holds the operand's elements. Objects
 * and strings belong to the store and live until the context's next run.
 *
 *   static tcrt_status_t upper(const tcrt_services_t *s, tcrt_store_t *store, const tcrt_call_t *call) {
 *     const int64_t *x = call->operands[0].data;
 *     ...
 *       y[i] = s->intern(store, text, size);
 *   }
 *
 * Functions are called from the thread that runs the context. They must not keep pointers beyond the call.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_FUNCTION_H
#define TCRT_FUNCTION_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The strings and objects of one context's run. */
typedef struct tcrt_store_t tcrt_store_t;

/** What a function may ask of the runtime. */
typedef struct tcrt_services_t {
  size_t size; /**< bytes of this table; entries are only added at the end */
  /** The characters of a string; empty for an id that is none. */
  tcrt_string_t (*string)(const tcrt_store_t *store, int64_t id);
  /** The id of a string with these bytes, which are copied. -1: no memory, the error is set. */
  int64_t (*intern)(tcrt_store_t *store, const char *data, uint64_t size_bytes);
  /** A tensor object of these dims; `*data` is for the function to fill (ids for strings). */
  tcrt_status_t (*make_tensor)(tcrt_store_t *store, uint32_t dtype, uint32_t rank, const int64_t *dims, void **data,
                               int64_t *handle);
  /** The tensor behind a handle; refused if it is none. */
  tcrt_status_t (*get_tensor)(const tcrt_store_t *store, int64_t handle, tcrt_operand_t *tensor);
  /** Sets the error, a sentence without a file's or node's name, and returns `status`. */
  tcrt_status_t (*fail)(tcrt_status_t status, const char *format, ...);
  /** Gives a warning about the call's node to the model's log, likewise; the call goes on. */
  void (*warn)(tcrt_store_t *store, const tcrt_call_t *call, const char *format, ...);
  /** A place for what a function keeps from run to run: NULL at first, and the same one for the same key until the
   * context ends, when `destroy` is given what it then holds, unless that is NULL. Keys are addresses, such as that of
   * a constant operand's data. NULL: no memory, the error is set. */
  void **(*keep)(tcrt_store_t *store, const void *key, void (*destroy)(void *kept));
  /** How many threads a run of the context has. */
  uint32_t (*threads)(const tcrt_store_t *store);
} tcrt_services_t;

typedef tcrt_status_t (*tcrt_function_fn)(const tcrt_services_t *services, tcrt_store_t *store,
                                          const tcrt_call_t *call);

typedef struct tcrt_function_t {
  const char *name;
  tcrt_function_fn function;
} tcrt_function_t;

/** What a library of functions exports under the name "tcrt_library_functions". */
typedef const tcrt_function_t *(*tcrt_library_fn)(uint64_t *count);

/** What one of tc's own may export as "tcrt_library_open": called whenever a model that needs it is opened, before any
 * of its functions, it says by `fail` what is missing. */
typedef tcrt_status_t (*tcrt_library_open_fn)(const tcrt_services_t *services);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_FUNCTION_H */
