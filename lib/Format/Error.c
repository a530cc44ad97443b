/*
 * Error.c - the calling thread's last error.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tc/Format/Error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[2048];

tcrt_status_t tcrt_fail(tcrt_status_t status, const char *format, ...) {
  /* The arguments may point into the last error, so it is written last. */
  char text[sizeof last_error];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t i = 0;
  for (; text[i]; ++i)
    last_error[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? ' ' : text[i];
  last_error[i] = 0;
  return status;
}

const char *tcrt_last_error(void) { return last_error; }
