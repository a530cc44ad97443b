/*
 * ImageTiff.c - TIFF through libtiff, which turns all its kinds of pixels into colours; the first page.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

typedef struct tiff_state_t {
  tcrt_image_t *image;
  uint64_t at;
} tiff_state_t;

static tmsize_t on_read(thandle_t handle, void *to, tmsize_t bytes) {
  tiff_state_t *state = handle;
  /* The end is no error: libtiff 4.5 would count -1 bytes, and clear one before its buffer. */
  if (bytes < 0 || state->at > state->image->size)
    return 0;
  uint64_t left = state->image->size - state->at, count = (uint64_t)bytes < left ? (uint64_t)bytes : left;
  memcpy(to, state->image->bytes + state->at, count);
  state->at += count;
  return (tmsize_t)count;
}

static tmsize_t on_write(thandle_t handle, void *from, tmsize_t bytes) {
  (void)handle, (void)from, (void)bytes;
  return -1;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  tiff_state_t *state = handle;
  uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? state->at : state->image->size;
  state->at = base + offset;
  return state->at;
}

static int on_close(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t on_size(thandle_t handle) { return ((tiff_state_t *)handle)->image->size; }

static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
  (void)tiff, (void)module;
  char text[200];
  vsnprintf(text, sizeof text, format, arguments);
  tcrt_image_fail(user, "%s", text);
  return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
  (void)tiff, (void)user, (void)module, (void)format, (void)arguments;
  return 1;
}

static int read_tiff(tcrt_image_t *image, TIFF *tiff) {
  uint32_t width = 0, height = 0;
  char text[1024];
  if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) || !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height))
    return tcrt_image_fail(image, "it does not say its size");
  if (!TIFFRGBAImageOK(tiff, text))
    return tcrt_image_fail(image, "%s", text);
  if (!tcrt_image_begin(image, width, height))
    return 0;
  uint32_t *pixels = malloc(sizeof *pixels * width * height);
  uint8_t *row = malloc(3 * (size_t)width);
  int done = pixels && row && TIFFReadRGBAImageOriented(tiff, width, height, pixels, ORIENTATION_TOPLEFT, 1);
  for (uint32_t y = 0; done && y < height; ++y) {
    const uint32_t *from = pixels + (size_t)y * width;
    for (uint32_t x = 0; x < width; ++x) {
      row[3 * (size_t)x] = (uint8_t)TIFFGetR(from[x]);
      row[3 * (size_t)x + 1] = (uint8_t)TIFFGetG(from[x]);
      row[3 * (size_t)x + 2] = (uint8_t)TIFFGetB(from[x]);
    }
    tcrt_image_put_rgb(image, y, row);
  }
  if (!pixels || !row)
    tcrt_image_fail(image, "no memory is left");
  free(pixels);
  free(row);
  return done;
}

int tcrt_image_read_tiff(tcrt_image_t *image) {
  tiff_state_t state = {image, 0};
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (!options)
    return tcrt_image_fail(image, "no memory is left");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(4 * TCRT_IMAGE_MAX_PIXELS));
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, image);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, image);
  TIFF *tiff =
      TIFFClientOpenExt("image", "rm", &state, on_read, on_write, on_seek, on_close, on_size, NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  if (!tiff)
    return 0;
  int done = read_tiff(image, tiff);
  TIFFClose(tiff);
  return done;
}
