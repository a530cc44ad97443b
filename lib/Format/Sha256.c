/*
 * Sha256.c - SHA-256 after FIPS 180-4, section 6.2, plain and with the x86 SHA extensions.
 *
 * Opening an artifact hashes all code in it, which must take a few milliseconds at most: the extensions are several
 * times faster. They are used where CPUID says so.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tc/Format/Sha256.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <string.h>

/* FIPS 180-4, 4.2.2, and its name. NOLINTNEXTLINE(readability-identifier-naming) */
static const uint32_t K[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

static void blocks_plain(uint32_t state[8], const uint8_t *data, uint64_t count) {
  for (; count; --count, data += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      uint32_t word;
      memcpy(&word, data + 4 * i, 4);
      w[i] = __builtin_bswap32(word);
    }
    for (int i = 16; i < 64; ++i) {
      uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    for (int i = 0; i < 64; ++i) {
      uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i];
      uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g,
        state[7] += h;
  }
}

__attribute__((target("sha,sse4.1,ssse3"))) static void blocks_sha(uint32_t state[8], const uint8_t *data,
                                                                   uint64_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  /* The instructions want the state as ABEF and CDGH. */
  __m128i dcba = _mm_loadu_si128((const __m128i *)&state[0]);
  __m128i hgfe = _mm_loadu_si128((const __m128i *)&state[4]);
  __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
  __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count; --count, data += 64) {
    __m128i abef0 = abef, cdgh0 = cdgh, w[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), swap);
      } else {
        /* w[t] = w[t-16] + s0(w[t-15]) + w[t-7] + s1(w[t-2]), four at a time. */
        __m128i x = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
        x = _mm_add_epi32(x, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(x, w[(i + 3) & 3]);
      }
      __m128i wk = _mm_add_epi32(w[i & 3], _mm_load_si128((const __m128i *)&K[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef0);
    cdgh = _mm_add_epi32(cdgh, cdgh0);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)&state[0], _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128((__m128i *)&state[4], _mm_alignr_epi8(dchg, feba, 8));
}

/* 0: unknown, 1: plain, 2: SHA extensions. Every thread finds the same, so the race is harmless and only needs
 * atomicity. */
static atomic_int implementation;

static int detect(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 9)) || !(c & (1u << 19)))
    return 1;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29)) ? 2 : 1;
}

static void blocks(uint32_t state[8], const uint8_t *data, uint64_t count) {
  int chosen = atomic_load_explicit(&implementation, memory_order_relaxed);
  if (!chosen) {
    chosen = detect();
    atomic_store_explicit(&implementation, chosen, memory_order_relaxed);
  }
  if (chosen == 2)
    blocks_sha(state, data, count);
  else
    blocks_plain(state, data, count);
}

void tcrt_sha256_allow_hardware(int allow) { atomic_store(&implementation, allow ? 0 : 1); }

void tcrt_sha256_init(tcrt_sha256_t *hash) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, start, sizeof start);
  hash->size_bytes = 0;
}

void tcrt_sha256_update(tcrt_sha256_t *hash, const void *data, uint64_t size_bytes) {
  const uint8_t *bytes = data;
  uint64_t used = hash->size_bytes & 63;
  hash->size_bytes += size_bytes;
  if (!size_bytes)
    return;
  if (used) {
    uint64_t part = 64 - used < size_bytes ? 64 - used : size_bytes;
    memcpy(hash->block + used, bytes, part);
    bytes += part, size_bytes -= part;
    if (used + part < 64)
      return;
    blocks(hash->state, hash->block, 1);
  }
  blocks(hash->state, bytes, size_bytes / 64);
  if (size_bytes & 63)
    memcpy(hash->block, bytes + (size_bytes & ~UINT64_C(63)), size_bytes & 63);
}

void tcrt_sha256_final(tcrt_sha256_t *hash, uint8_t digest[32]) {
  uint64_t used = hash->size_bytes & 63;
  uint64_t bits = __builtin_bswap64(hash->size_bytes * 8);
  hash->block[used++] = 0x80;
  if (used > 56) {
    memset(hash->block + used, 0, 64 - used);
    blocks(hash->state, hash->block, 1);
    used = 0;
  }
  memset(hash->block + used, 0, 56 - used);
  memcpy(hash->block + 56, &bits, 8);
  blocks(hash->state, hash->block, 1);
  for (int i = 0; i < 8; ++i) {
    uint32_t word = __builtin_bswap32(hash->state[i]);
    memcpy(digest + 4 * i, &word, 4);
  }
}

void tcrt_sha256(const void *data, uint64_t size_bytes, uint8_t digest[32]) {
  tcrt_sha256_t hash;
  tcrt_sha256_init(&hash);
  tcrt_sha256_update(&hash, data, size_bytes);
  tcrt_sha256_final(&hash, digest);
}
