/*
 * File.h - the files that users name: artifacts, their weights, models, inputs, databases. Those that are read are
 * regular ones; those that are written appear whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FORMAT_FILE_H
#define TC_FORMAT_FILE_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a message about a file says of it. */
typedef struct tcrt_file_words_t {
  const char *of;     /* " with the weights", behind "the file" */
  const char *remedy; /* "; copy it", at the end */
} tcrt_file_words_t;

/* Opens a regular file of at most `limit` bytes for reading; the caller closes *fd. Devices, pipes and sockets, which
 * have no size and may never end, are refused without waiting for them. The error begins with the path; `words` may be
 * NULL. */
tcrt_status_t tcrt_file_open(const char *path, uint64_t limit, const tcrt_file_words_t *words, int *fd,
                             uint64_t *size_bytes);

/* Reads exactly `bytes` bytes at `offset`; fewer are an error, as the file has become shorter. */
tcrt_status_t tcrt_file_read(int fd, const char *path, uint64_t offset, void *data, uint64_t bytes);

/* A file that is being written. It has no name until it is kept, so that nothing stays behind whatever ends the
 * process; where the file system has no such files, it has the name `temporary`. */
typedef struct tcrt_output_t {
  int fd;          /* for writing and reading */
  char *path;      /* as given */
  char *target;    /* a link keeps being one: what it names is replaced */
  char *temporary; /* NULL: no name */
} tcrt_output_t;

/* Begins a file that will be `path`. What exists and is no regular file is refused. Errors begin with the path. */
tcrt_status_t tcrt_output_open(const char *path, tcrt_output_t *output);
/* Appends bytes. */
tcrt_status_t tcrt_output_write(tcrt_output_t *output, const void *data, uint64_t bytes);
/* Gives the file its name, in place of a file that has it, and ends `output`. */
tcrt_status_t tcrt_output_keep(tcrt_output_t *output);
/* Ends `output` without a file. One that was kept, or never opened (all zero with fd -1), is fine. */
void tcrt_output_drop(tcrt_output_t *output);

#ifdef __cplusplus
}
#endif

#endif /* TC_FORMAT_FILE_H */
