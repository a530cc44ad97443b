/*
 * Image.h - what the decoders of image formats share.
 *
 * A decoder reads the encoded bytes, says how large the image is (tcrt_image_begin) and hands over rows. It returns 1,
 * or 0 after tcrt_image_fail has said what is wrong with the bytes. Bytes may be anything: a decoder reads nothing
 * outside of them, and takes memory only after tcrt_image_begin has agreed to the size.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_HOST_IMAGE_H
#define TCRT_HOST_IMAGE_H

#include "Functions.h"

/* No image has more pixels: a small file may claim any size, and codecs take up to 16 bytes a pixel of memory that no
 * context counts. */
#define TCRT_IMAGE_MAX_PIXELS (UINT64_C(1) << 27)

enum { TCRT_IMAGE_RGB = 0, TCRT_IMAGE_BGR = 1, TCRT_IMAGE_GRAY = 2 };

typedef struct tcrt_image_t {
  const uint8_t *bytes; /* encoded */
  uint64_t size;
  int format; /* wanted: TCRT_IMAGE_* */
  const tcrt_services_t *services;
  tcrt_store_t *store;
  /* Set by tcrt_image_begin. */
  uint32_t width, height;
  uint8_t *pixels; /* [height, width, channels] */
  int64_t handle;
  tcrt_status_t status; /* not TCRT_OK: it is the machine that refused, and the error is set */
  char problem[256];    /* with the bytes: the first one, without full stop */
} tcrt_image_t;

/* Whether tcrt_image_begin refuses an image of this size. Products of smaller sizes fit 64 bits. */
static inline int tcrt_image_is_too_large(uint64_t width, uint64_t height) {
  return width > TCRT_IMAGE_MAX_PIXELS || (width && height > TCRT_IMAGE_MAX_PIXELS / width);
}

/* Makes the result. 0: refused. */
int tcrt_image_begin(tcrt_image_t *image, uint64_t width, uint64_t height);
/* Writes row y from `width` pixels of three bytes, or of one. */
void tcrt_image_put_rgb(tcrt_image_t *image, uint32_t y, const uint8_t *row);
void tcrt_image_put_gray(tcrt_image_t *image, uint32_t y, const uint8_t *row);
/* Notes a problem, if it is the first one. Returns 0. */
int tcrt_image_fail(tcrt_image_t *image, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* value * 255 / most, rounded to nearest, for value <= most. */
static inline uint8_t tcrt_image_scale(uint32_t value, uint32_t most) {
  return (uint8_t)(((uint64_t)value * 510 + most) / (2 * (uint64_t)most));
}

int tcrt_image_read_bmp(tcrt_image_t *image);
int tcrt_image_read_jpeg(tcrt_image_t *image);
int tcrt_image_read_jpeg2000(tcrt_image_t *image);
int tcrt_image_read_png(tcrt_image_t *image);
int tcrt_image_read_pnm(tcrt_image_t *image);
int tcrt_image_read_tiff(tcrt_image_t *image);
int tcrt_image_read_webp(tcrt_image_t *image);

#endif /* TCRT_HOST_IMAGE_H */
