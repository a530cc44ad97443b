/*
 * File.c - opens regular files, and nothing else; writes files that appear whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "tc/Format/File.h"

#include "tc/Format/Error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tcrt_status_t refuse(const char *path, const tcrt_file_words_t *words, const char *why) {
  return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the file%s cannot be read: %s%s", path, words ? words->of : "", why,
                   words ? words->remedy : "");
}

tcrt_status_t tcrt_file_open(const char *path, uint64_t limit, const tcrt_file_words_t *words, int *fd,
                             uint64_t *size_bytes) {
  *fd = -1;
  *size_bytes = 0;
  int opened;
  do
    opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer would wait */
  while (opened < 0 && errno == EINTR);
  if (opened < 0)
    return refuse(path, words, strerror(errno));
  struct stat info;
  tcrt_status_t status = TCRT_OK;
  if (fstat(opened, &info) != 0)
    status = refuse(path, words, strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = refuse(path, words, S_ISDIR(info.st_mode) ? "it is a directory" : "it is not a regular file");
  else if ((uint64_t)info.st_size > limit)
    status = tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the file has %llu bytes; at most %llu are read", path,
                       (unsigned long long)info.st_size, (unsigned long long)limit);
  if (status != TCRT_OK) {
    close(opened);
    return status;
  }
  *fd = opened;
  *size_bytes = (uint64_t)info.st_size;
  return TCRT_OK;
}

tcrt_status_t tcrt_file_read(int fd, const char *path, uint64_t offset, void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t piece = bytes - done < UINT64_C(1) << 30 ? bytes - done : UINT64_C(1) << 30;
    ssize_t got = pread(fd, (char *)data + done, piece, (off_t)(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return refuse(path, NULL, got < 0 ? strerror(errno) : "it has become shorter");
    done += (uint64_t)got;
  }
  return TCRT_OK;
}

/* ---- writing ---- */

static tcrt_status_t cannot_write(const tcrt_output_t *output, int error) {
  return tcrt_fail(error == ENOMEM ? TCRT_ERROR_MACHINE : TCRT_ERROR_INVALID,
                   "%s: error: the file cannot be written: %s", output->path ? output->path : "(output)",
                   strerror(error));
}

/* A name beside the target that no other process uses. */
static char *temporary_name(const char *target) {
  static int number;
  size_t size = strlen(target) + 48;
  char *name = malloc(size);
  if (name)
    snprintf(name, size, "%s.%ld-%d.tmp", target, (long)getpid(), __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
  return name;
}

/* An open file without a name in the target's folder, or -1. */
static int open_unnamed(const char *target) {
  const char *slash = strrchr(target, '/');
  char *folder = slash ? strndup(target, slash == target ? 1 : (size_t)(slash - target)) : strdup(".");
  /* It gets its name by way of /proc. */
  int fd = folder && access("/proc/self/fd", X_OK) == 0 ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
  free(folder);
  return fd;
}

tcrt_status_t tcrt_output_open(const char *path, tcrt_output_t *output) {
  *output = (tcrt_output_t){.fd = -1};
  output->path = strdup(path);
  struct stat info;
  tcrt_status_t status = TCRT_OK;
  int exists = stat(path, &info) == 0;
  output->target = exists ? realpath(path, NULL) : strdup(path);
  if (!output->path || !output->target)
    status = cannot_write(output, errno ? errno : ENOMEM);
  else if (exists && !S_ISREG(info.st_mode))
    status = tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the output exists and is not a regular file; give another name",
                       path);
  else if (exists && access(output->target, W_OK) != 0)
    status = cannot_write(output, errno);
  if (status == TCRT_OK) {
    output->fd = open_unnamed(output->target);
    if (output->fd < 0) {
      output->temporary = temporary_name(output->target);
      if (output->temporary)
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (output->fd < 0) {
        status = cannot_write(output, output->temporary ? errno : ENOMEM);
        free(output->temporary);
        output->temporary = NULL;
      }
    }
  }
  if (status != TCRT_OK)
    tcrt_output_drop(output);
  return status;
}

tcrt_status_t tcrt_output_write(tcrt_output_t *output, const void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t piece = bytes - done < UINT64_C(1) << 30 ? bytes - done : UINT64_C(1) << 30;
    ssize_t written = write(output->fd, (const char *)data + done, piece);
    if (written < 0 && errno != EINTR)
      return cannot_write(output, errno);
    done += written > 0 ? (uint64_t)written : 0;
  }
  return TCRT_OK;
}

/* For file systems that make files without a name and then give them none: a copy with a temporary one. */
static int copy_to_named(tcrt_output_t *output) {
  char *name = temporary_name(output->target);
  int fd = name ? open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  int error = fd >= 0 ? 0 : name ? errno : ENOMEM;
  tcrt_output_t copy = {.fd = fd, .path = output->path};
  char buffer[65536];
  for (off_t at = 0; !error;) {
    ssize_t got = pread(output->fd, buffer, sizeof buffer, at);
    if (got == 0)
      break;
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 || tcrt_output_write(&copy, buffer, (uint64_t)got) != TCRT_OK)
      error = errno;
    else
      at += got;
  }
  if (error) {
    if (fd >= 0) {
      unlink(name);
      close(fd);
    }
    free(name);
    return error;
  }
  close(output->fd);
  output->fd = fd;
  output->temporary = name;
  return 0;
}

/* Gives the file without a name the target's, or where that is taken a temporary one. Returns an errno. */
static int give_name(tcrt_output_t *output) {
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", output->fd);
  if (linkat(AT_FDCWD, self, AT_FDCWD, output->target, AT_SYMLINK_FOLLOW) == 0)
    return 0;
  if (errno != EEXIST)
    return copy_to_named(output);
  output->temporary = temporary_name(output->target);
  if (!output->temporary)
    return ENOMEM;
  if (linkat(AT_FDCWD, self, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0)
    return 0;
  int error = errno;
  free(output->temporary);
  output->temporary = NULL;
  return error;
}

tcrt_status_t tcrt_output_keep(tcrt_output_t *output) {
  int error = output->temporary ? 0 : give_name(output);
  if (!error && output->temporary) {
    if (rename(output->temporary, output->target) == 0) {
      free(output->temporary);
      output->temporary = NULL;
    } else {
      error = errno;
    }
  }
  if (close(output->fd) != 0 && !error)
    error = errno;
  output->fd = -1;
  tcrt_status_t status = error ? cannot_write(output, error) : TCRT_OK;
  tcrt_output_drop(output);
  return status;
}

void tcrt_output_drop(tcrt_output_t *output) {
  if (output->temporary)
    unlink(output->temporary);
  if (output->fd >= 0)
    close(output->fd);
  free(output->path);
  free(output->target);
  free(output->temporary);
  *output = (tcrt_output_t){.fd = -1};
}
