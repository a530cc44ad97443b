/*
 * Parse.h - what the two files of the parser share: Container.c (the file and its sections), Signature.c (the tables).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FORMAT_PARSE_H
#define TC_FORMAT_PARSE_H

#include "tc/Format/Container.h"
#include "tc/Format/Error.h"

/* Sets the error that says what is wrong. */
tcrt_status_t tcrt_container_corrupt(const tcrt_container_t *container, const char *what);
/* Whether it is ten times an SM version, plus 1 for architecture-specific code. */
int tcrt_is_arch(uint32_t arch);
/* Finds and checks the tables of the signature, whose section has so many bytes. */
tcrt_status_t tcrt_signature_check(tcrt_container_t *container, uint64_t section_size);

#endif /* TC_FORMAT_PARSE_H */
