/*
 * Sign.c - statements, keys, signatures.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Internal.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tc_signing_key_t {
  EVP_PKEY *key;
  char id[TC_KEY_ID_BYTES];
};

int tc_refuse(char *why, size_t why_bytes, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (why_bytes)
    vsnprintf(why, why_bytes, format, arguments);
  va_end(arguments);
  return 0;
}

int tc_refuse_crypto(char *why, size_t why_bytes, const char *what) {
  const char *reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return tc_refuse(why, why_bytes, "%s (libcrypto: %s)", what, reason ? reason : "no reason given");
}

static void write_hex(const uint8_t *bytes, size_t count, char *text) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < count; ++i) {
    text[2 * i] = digits[bytes[i] >> 4];
    text[2 * i + 1] = digits[bytes[i] & 15];
  }
}

int tc_make_statement(const void *data, uint64_t size_bytes, char *statement, char *why, size_t why_bytes) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  char hex[65] = "";
  if (!EVP_Digest(data ? data : "", size_bytes, digest, NULL, EVP_sha256(), NULL))
    return tc_refuse_crypto(why, why_bytes, "its SHA-256 cannot be computed");
  write_hex(digest, 32, hex);
  snprintf(statement, TC_STATEMENT_BYTES, "tc artifact signature 1\nsha256 %s\nbytes %llu\n", hex,
           (unsigned long long)size_bytes);
  return 1;
}

int tc_make_key_id(const EVP_PKEY *key, char *id) {
  uint8_t raw[32], digest[EVP_MAX_MD_SIZE];
  size_t bytes = sizeof raw;
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519 || !EVP_PKEY_get_raw_public_key(key, raw, &bytes) ||
      !EVP_Digest(raw, bytes, digest, NULL, EVP_sha256(), NULL))
    return 0;
  write_hex(digest, (TC_KEY_ID_BYTES - 1) / 2, id);
  id[TC_KEY_ID_BYTES - 1] = 0;
  return 1;
}

/* What was written to `bio`, with a NUL. */
static char *take_text(BIO *bio) {
  char *data;
  const long bytes = BIO_get_mem_data(bio, &data);
  char *text = bytes > 0 ? malloc((size_t)bytes + 1) : NULL;
  if (text) {
    memcpy(text, data, (size_t)bytes);
    text[bytes] = 0;
  }
  return text;
}

int tc_make_keys(const char *password, char **private_pem, char **public_pem, char *id, char *why, size_t why_bytes) {
  *private_pem = *public_pem = NULL;
  EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
  /* What libcrypto wipes when it is freed. */
  BIO *secret = BIO_new(BIO_s_secmem()), *open = BIO_new(BIO_s_mem());
  int done = key && secret && open && tc_make_key_id(key, id) &&
             PEM_write_bio_PKCS8PrivateKey(secret, key, password ? EVP_aes_256_cbc() : NULL, password,
                                           password ? (int)strlen(password) : 0, NULL, NULL) &&
             PEM_write_bio_PUBKEY(open, key);
  if (done) {
    *private_pem = take_text(secret);
    *public_pem = take_text(open);
    done = *private_pem && *public_pem;
  }
  if (!done) {
    free(*private_pem);
    free(*public_pem);
    *private_pem = *public_pem = NULL;
    tc_refuse_crypto(why, why_bytes, "no keys can be made");
  }
  BIO_free(secret);
  BIO_free(open);
  EVP_PKEY_free(key);
  return done;
}

typedef struct password_t {
  const char *text;
  int was_asked;
} password_t;

/* Never asks at a terminal, as libcrypto would on its own. */
static int give_password(char *buffer, int size, int writes, void *user) {
  (void)writes;
  password_t *password = user;
  password->was_asked = 1;
  const size_t bytes = password->text ? strlen(password->text) : 0;
  if (!password->text || bytes > (size_t)size)
    return -1;
  memcpy(buffer, password->text, bytes);
  return (int)bytes;
}

int tc_read_private_key(const char *pem, size_t pem_bytes, const char *password, tc_signing_key_t **key, char *why,
                        size_t why_bytes) {
  *key = NULL;
  password_t given = {password, 0};
  BIO *bio = pem_bytes <= TC_MOST_KEY_FILE_BYTES ? BIO_new_mem_buf(pem, (int)pem_bytes) : NULL;
  EVP_PKEY *read = bio ? PEM_read_bio_PrivateKey(bio, NULL, give_password, &given) : NULL;
  BIO_free(bio);
  ERR_clear_error();
  tc_signing_key_t *made = read ? calloc(1, sizeof *made) : NULL;
  if (made && tc_make_key_id(read, made->id)) {
    made->key = read;
    *key = made;
    return 1;
  }
  free(made);
  EVP_PKEY_free(read);
  if (given.was_asked && !read)
    return tc_refuse(why, why_bytes, "it is encrypted, and %s",
                     password ? "the password does not open it" : "no password is given");
  return tc_refuse(why, why_bytes, "it is no private key of Ed25519 in PEM form");
}

void tc_free_key(tc_signing_key_t *key) {
  if (!key)
    return;
  EVP_PKEY_free(key->key);
  free(key);
}

const char *tc_key_id(const tc_signing_key_t *key) { return key->id; }

int tc_sign_statement(const tc_signing_key_t *key, const char *statement, char *signature, char *why,
                      size_t why_bytes) {
  uint8_t raw[TC_RAW_SIGNATURE_BYTES];
  size_t bytes = sizeof raw;
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  const int done = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key->key) == 1 &&
                   EVP_DigestSign(context, raw, &bytes, (const uint8_t *)statement, strlen(statement)) == 1 &&
                   bytes == sizeof raw;
  EVP_MD_CTX_free(context);
  if (!done)
    return tc_refuse_crypto(why, why_bytes, "it cannot be signed");
  const size_t head = sizeof TC_SIGNATURE_HEAD - 1, id = TC_KEY_ID_BYTES - 1;
  memcpy(signature, TC_SIGNATURE_HEAD, head);
  memcpy(signature + head, key->id, id);
  signature[head + id] = '\n';
  write_hex(raw, sizeof raw, signature + head + id + 1);
  signature[TC_SIGNATURE_BYTES - 1] = '\n';
  return 1;
}
