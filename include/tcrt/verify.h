/*
 * verify.h - Ed25519 signatures of artifacts, which libtcrt-host checks while libtcrt opens a model.
 *
 *   char why[256];
 *   tcrt_verifier_t *verifier;
 *   if (tcrt_verifier_create("release.pub", NULL, &verifier, why, sizeof why))
 *     die(why);
 *   tcrt_model_options_t options = {.size = sizeof options, .verify = tcrt_verifier_check, .verify_user = verifier};
 *   if (tcrt_model_open_file("model.bin", &options, &model))
 *     die(tcrt_last_error());
 *
 * `tc-sign sign model.bin --key release.key` writes model.bin.sig. What was verified is what runs: the bytes are
 * checked in memory of the model's own (tcrt_model_options_t::verify). docs/security.md says what is signed.
 *
 * Threads: a verifier may be used by any number of threads at once, but for its end, and must outlive no model.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_VERIFY_H
#define TCRT_VERIFY_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcrt_verifier_t tcrt_verifier_t;

/** Reads the public keys of `key_path`, a PEM file with one or several: an artifact is accepted that one of them
 * signed. `signature_path` is the signature's file; NULL: the artifact's name with ".sig". On failure `why` gets one
 * line. The caller destroys the verifier. */
TCRT_API tcrt_status_t tcrt_verifier_create(const char *key_path, const char *signature_path,
                                            tcrt_verifier_t **verifier, char *why, uint64_t why_bytes);

/** For tcrt_model_options_t::verify, with the verifier as `verify_user`. */
TCRT_API tcrt_status_t tcrt_verifier_check(void *verifier, const char *name, const void *data, uint64_t size_bytes,
                                           char *why, uint64_t why_bytes);

/** NULL is fine. */
TCRT_API void tcrt_verifier_destroy(tcrt_verifier_t *verifier);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_VERIFY_H */
