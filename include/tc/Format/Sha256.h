/*
 * Sha256.h - SHA-256 (FIPS 180-4), with the CPU's instructions where it has them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FORMAT_SHA256_H
#define TC_FORMAT_SHA256_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcrt_sha256_t {
  uint32_t state[8];
  uint64_t size_bytes;
  uint8_t block[64];
} tcrt_sha256_t;

void tcrt_sha256_init(tcrt_sha256_t *hash);
void tcrt_sha256_update(tcrt_sha256_t *hash, const void *data, uint64_t size_bytes);
void tcrt_sha256_final(tcrt_sha256_t *hash, uint8_t digest[32]);
void tcrt_sha256(const void *data, uint64_t size_bytes, uint8_t digest[32]);
/* Tests: 0 forbids the CPU's instructions, 1 allows them. */
void tcrt_sha256_allow_hardware(int allow);

#ifdef __cplusplus
}
#endif

#endif /* TC_FORMAT_SHA256_H */
