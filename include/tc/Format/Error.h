/*
 * Error.h - the calling thread's last error, and checked arithmetic, for whoever reads untrusted numbers.
 *
 * Error texts are complete sentences that start with the name of a file where there is one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FORMAT_ERROR_H
#define TC_FORMAT_ERROR_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the thread's last error and returns `status`. */
tcrt_status_t tcrt_fail(tcrt_status_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- checked arithmetic: true if it fits ---- */

static inline int tcrt_add(uint64_t a, uint64_t b, uint64_t *sum) { return !__builtin_add_overflow(a, b, sum); }
static inline int tcrt_mul(uint64_t a, uint64_t b, uint64_t *product) { return !__builtin_mul_overflow(a, b, product); }
/* Whether [offset, offset+size) lies in [0, limit). */
static inline int tcrt_in_range(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

#ifdef __cplusplus
}
#endif

#endif /* TC_FORMAT_ERROR_H */
