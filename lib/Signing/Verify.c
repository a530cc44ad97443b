/*
 * Verify.c - whether a signature is of an artifact's bytes, and made with one of the keys.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "tcrt/verify.h"
#include "Internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_KEYS = 64 };

struct tcrt_verifier_t {
  char *key_path;
  char *signature_path; /* NULL: by the artifact's name */
  uint32_t count;
  struct {
    EVP_PKEY *key;
    char id[TC_KEY_ID_BYTES];
  } keys[MOST_KEYS];
};

_Static_assert(sizeof TC_SIGNATURE_HEAD - 1 + TC_KEY_ID_BYTES + 2 * TC_RAW_SIGNATURE_BYTES + 1 == TC_SIGNATURE_BYTES,
               "the parts of a signature's file");

/* Reads a regular file of at most `limit` bytes; *size_bytes is its size, which may be more. 0, with errno: it cannot
 * be read. libtcrt has such a function, too, but this library stands alone. */
static int read_small(const char *path, char *data, uint64_t limit, uint64_t *size_bytes) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer would wait */
  if (fd < 0)
    return 0;
  struct stat info;
  int error = fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : S_ISREG(info.st_mode) ? 0 : EINVAL;
  *size_bytes = error ? 0 : (uint64_t)info.st_size;
  for (uint64_t done = 0; !error && done < *size_bytes && *size_bytes <= limit;) {
    const ssize_t got = read(fd, data + done, *size_bytes - done);
    if (got == 0)
      *size_bytes = done; /* it has become shorter */
    else if (got > 0)
      done += (uint64_t)got;
    else if (errno != EINTR)
      error = errno;
  }
  close(fd);
  errno = error;
  return !error;
}

/* The keys of a PEM file, which holds nothing else. */
static int read_keys(tcrt_verifier_t *verifier, const char *pem, uint64_t bytes, char *why, uint64_t why_bytes) {
  BIO *bio = BIO_new_mem_buf(pem, (int)bytes);
  int fine = bio != NULL;
  char *name, *header;
  uint8_t *data;
  long length;
  while (fine && PEM_read_bio(bio, &name, &header, &data, &length)) {
    const uint8_t *at = data;
    EVP_PKEY *key = strcmp(name, PEM_STRING_PUBLIC) == 0 ? d2i_PUBKEY(NULL, &at, length) : NULL;
    fine = key && at == data + length && verifier->count < MOST_KEYS &&
           tc_make_key_id(key, verifier->keys[verifier->count].id);
    if (fine)
      verifier->keys[verifier->count++].key = key;
    else
      EVP_PKEY_free(key);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, (size_t)length);
  }
  /* The end of the file is no error; a block that is no key is. */
  fine = fine && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  BIO_free(bio);
  if (fine && verifier->count)
    return 1;
  return tc_refuse(why, why_bytes,
                   "%s: error: the file holds no public key of Ed25519 in PEM form, or something else, too; give the "
                   ".pub file that tc-sign keygen wrote",
                   verifier->key_path);
}

tcrt_status_t tcrt_verifier_create(const char *key_path, const char *signature_path, tcrt_verifier_t **verifier,
                                   char *why, uint64_t why_bytes) {
  if (!verifier)
    return TCRT_ERROR_INVALID;
  *verifier = NULL;
  if (!key_path) {
    tc_refuse(why, why_bytes, "no file with a public key is given");
    return TCRT_ERROR_INVALID;
  }
  tcrt_verifier_t *made = calloc(1, sizeof *made);
  if (made) {
    made->key_path = strdup(key_path);
    made->signature_path = signature_path ? strdup(signature_path) : NULL;
  }
  if (!made || !made->key_path || (signature_path && !made->signature_path)) {
    tcrt_verifier_destroy(made);
    tc_refuse(why, why_bytes, "%s: error: no memory is left to read it", key_path);
    return TCRT_ERROR_MACHINE;
  }
  char pem[TC_MOST_KEY_FILE_BYTES];
  uint64_t bytes = 0;
  int fine = read_small(key_path, pem, sizeof pem, &bytes);
  if (!fine)
    tc_refuse(why, why_bytes, "%s: error: the public key cannot be read: %s", key_path, strerror(errno));
  else
    fine = read_keys(made, pem, bytes <= sizeof pem ? bytes : 0, why, why_bytes);
  if (!fine) {
    tcrt_verifier_destroy(made);
    return TCRT_ERROR_INVALID;
  }
  *verifier = made;
  return TCRT_OK;
}

void tcrt_verifier_destroy(tcrt_verifier_t *verifier) {
  if (!verifier)
    return;
  for (uint32_t i = 0; i < verifier->count; ++i)
    EVP_PKEY_free(verifier->keys[i].key);
  free(verifier->key_path);
  free(verifier->signature_path);
  free(verifier);
}

static int read_hex(const char *text, size_t count, uint8_t *bytes) {
  for (size_t i = 0; i < 2 * count; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0)
      return 0;
    bytes[i / 2] = (uint8_t)(i % 2 ? bytes[i / 2] | digit : digit << 4);
  }
  return 1;
}

static int check(const tcrt_verifier_t *verifier, const char *path, const char *signature, uint64_t signature_bytes,
                 const void *data, uint64_t size_bytes, char *why, uint64_t why_bytes) {
  const size_t head = sizeof TC_SIGNATURE_HEAD - 1, id_length = TC_KEY_ID_BYTES - 1;
  const char *id = signature + head;
  uint8_t id_value[(TC_KEY_ID_BYTES - 1) / 2], raw[TC_RAW_SIGNATURE_BYTES];
  if (signature_bytes != TC_SIGNATURE_BYTES || memcmp(signature, TC_SIGNATURE_HEAD, head) != 0 ||
      !read_hex(id, sizeof id_value, id_value) || id[id_length] != '\n' ||
      !read_hex(id + id_length + 1, sizeof raw, raw) || signature[TC_SIGNATURE_BYTES - 1] != '\n')
    return tc_refuse(why, why_bytes, "%s is no signature, or a damaged one; take it from where the artifact was signed",
                     path);
  char statement[TC_STATEMENT_BYTES];
  if (!tc_make_statement(data, size_bytes, statement, why, why_bytes))
    return 0;
  for (uint32_t i = 0; i < verifier->count; ++i) {
    if (memcmp(verifier->keys[i].id, id, id_length) != 0)
      continue;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const int fine = context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, verifier->keys[i].key) == 1 &&
                     EVP_DigestVerify(context, raw, sizeof raw, (const uint8_t *)statement, strlen(statement)) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    if (fine)
      return 1;
    return tc_refuse(why, why_bytes,
                     "it is not the file that was signed: %s is of other bytes; take both from where they were signed",
                     path);
  }
  return tc_refuse(why, why_bytes, "it is signed with key %.*s, and %s has %s%s; take the public key of who signed it",
                   (int)id_length, id, verifier->key_path, verifier->count > 1 ? "other ones, the first " : "key ",
                   verifier->keys[0].id);
}

tcrt_status_t tcrt_verifier_check(void *user, const char *name, const void *data, uint64_t size_bytes, char *why,
                                  uint64_t why_bytes) {
  const tcrt_verifier_t *verifier = user;
  char *made = NULL;
  const char *path = verifier->signature_path;
  if (!path && asprintf(&made, "%s.sig", name) < 0) {
    tc_refuse(why, why_bytes, "no memory is left to check its signature");
    return TCRT_ERROR_MACHINE;
  }
  path = path ? path : made;
  char signature[TC_SIGNATURE_BYTES] = "";
  uint64_t bytes = 0;
  int fine = read_small(path, signature, sizeof signature, &bytes);
  if (fine)
    fine = check(verifier, path, signature, bytes, data, size_bytes, why, why_bytes);
  else if (errno == ENOENT)
    tc_refuse(why, why_bytes, "it is not signed: there is no %s; tc-sign sign makes one, for who has the private key",
              path);
  else
    tc_refuse(why, why_bytes, "its signature %s cannot be read: %s", path, strerror(errno));
  free(made);
  return fine ? TCRT_OK : TCRT_ERROR_INVALID;
}
