/*
 * Internal.h - what signing and verifying share.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_LIB_SIGNING_INTERNAL_H
#define TC_LIB_SIGNING_INTERNAL_H

#include "tc/Signing/Sign.h"

#include <openssl/evp.h>

#define TC_SIGNATURE_HEAD "tc-signature 1 ed25519\nkey "

enum { TC_RAW_SIGNATURE_BYTES = 64, TC_MOST_KEY_FILE_BYTES = 1 << 16 };

/* Sets `why`, and returns 0. */
int tc_refuse(char *why, size_t why_bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same of what libcrypto did not do: its own words follow. */
int tc_refuse_crypto(char *why, size_t why_bytes, const char *what);
/* The id of a key, with its NUL. 0: it is not of Ed25519. */
int tc_make_key_id(const EVP_PKEY *key, char *id);

#endif /* TC_LIB_SIGNING_INTERNAL_H */
