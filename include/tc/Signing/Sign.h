/*
 * Sign.h - makes keys and signatures of artifacts; tcrt/verify.h checks these.
 *
 * Keys are PEM files, as openssl genpkey -algorithm ed25519 makes them: PKCS #8 for the private one,
 * SubjectPublicKeyInfo for the public one. Signed is a text that holds the SHA-256 and the size of all of an artifact's
 * bytes:
 *
 *   tc artifact signature 1
 *   sha256 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
 *   bytes 123456
 *
 * It is made anew from the artifact whenever a signature is checked, so that nothing that a signature's file says is
 * believed. That file is three lines, and no byte of it can be another one:
 *
 *   tc-signature 1 ed25519
 *   key 0123456789abcdef            the first 16 hex digits of the public key's SHA-256
 *   <the signature: 128 hex digits>
 *
 * All functions return 1 where they succeeded; where not, `why` gets one line, without a name in front.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_SIGNING_SIGN_H
#define TC_SIGNING_SIGN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TC_STATEMENT_BYTES = 160, /* the longest statement, with its NUL */
  TC_SIGNATURE_BYTES = 173, /* a signature's file */
  TC_KEY_ID_BYTES = 17      /* with its NUL */
};

typedef struct tc_signing_key_t tc_signing_key_t;

/* The text that is signed for these bytes. */
int tc_make_statement(const void *data, uint64_t size_bytes, char *statement, char *why, size_t why_bytes);

/* A new pair of keys as PEM, which the caller frees with free(). A password that is not NULL encrypts the private one.
 */
int tc_make_keys(const char *password, char **private_pem, char **public_pem, char *id, char *why, size_t why_bytes);

/* Reads a private key from PEM; `password` may be NULL. The caller frees it with tc_free_key. */
int tc_read_private_key(const char *pem, size_t pem_bytes, const char *password, tc_signing_key_t **key, char *why,
                        size_t why_bytes);
void tc_free_key(tc_signing_key_t *key);

/* The text of a signature's file, TC_SIGNATURE_BYTES without a NUL. */
int tc_sign_statement(const tc_signing_key_t *key, const char *statement, char *signature, char *why, size_t why_bytes);

/* The id of a private key. */
const char *tc_key_id(const tc_signing_key_t *key);

#ifdef __cplusplus
}
#endif

#endif /* TC_SIGNING_SIGN_H */
