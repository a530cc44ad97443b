/*
 * Image.c - ImageDecoder: finds the format by content, and turns decoded rows into what the model wants.
 *
 * Colours are 8 bits a channel; what an image has in more is cut to its high byte, alpha is dropped, a gray image is
 * spread to three equal channels. Gray of colours is ITU-R 601-2 in 16-bit fixed point, as Pillow computes it.
 *
 * Bytes that cannot be decoded give an empty image [0, 0, channels], as ImageDecoder-20 says, and a warning that says
 * why. An image that is too large, or for which there is no memory, is an error: that is not the bytes' fault.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int tcrt_image_fail(tcrt_image_t *image, const char *format, ...) {
  if (image->problem[0])
    return 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(image->problem, sizeof image->problem, format, arguments);
  va_end(arguments);
  /* Codecs' messages may end in a full stop or a new line. */
  for (size_t n = strlen(image->problem); n && strchr(".\n ", image->problem[n - 1]); --n)
    image->problem[n - 1] = 0;
  return 0;
}

int tcrt_image_begin(tcrt_image_t *image, uint64_t width, uint64_t height) {
  if (width == 0 || height == 0)
    return tcrt_image_fail(image, "it has no pixels");
  if (tcrt_image_is_too_large(width, height)) {
    image->status = image->services->fail(
        TCRT_ERROR_REFUSED, "the image has %llu x %llu pixels; at most %llu in all are decoded",
        (unsigned long long)width, (unsigned long long)height, (unsigned long long)TCRT_IMAGE_MAX_PIXELS);
    return 0;
  }
  int64_t dims[3] = {(int64_t)height, (int64_t)width, image->format == TCRT_IMAGE_GRAY ? 1 : 3};
  void *data = NULL;
  image->status = image->services->make_tensor(image->store, TCRT_DTYPE_U8, 3, dims, &data, &image->handle);
  if (image->status != TCRT_OK)
    return 0;
  image->width = (uint32_t)width;
  image->height = (uint32_t)height;
  image->pixels = data;
  return 1;
}

void tcrt_image_put_rgb(tcrt_image_t *image, uint32_t y, const uint8_t *row) {
  uint64_t width = image->width;
  uint8_t *to = image->pixels + y * width * (image->format == TCRT_IMAGE_GRAY ? 1 : 3);
  switch (image->format) {
  case TCRT_IMAGE_GRAY:
    for (uint64_t x = 0; x < width; ++x, row += 3)
      to[x] = (uint8_t)((row[0] * 19595u + row[1] * 38470u + row[2] * 7471u + 0x8000u) >> 16);
    break;
  case TCRT_IMAGE_BGR:
    for (uint64_t x = 0; x < width; ++x, row += 3, to += 3)
      to[0] = row[2], to[1] = row[1], to[2] = row[0];
    break;
  default:
    memcpy(to, row, 3 * width);
  }
}

void tcrt_image_put_gray(tcrt_image_t *image, uint32_t y, const uint8_t *row) {
  uint64_t width = image->width;
  if (image->format == TCRT_IMAGE_GRAY) {
    memcpy(image->pixels + y * width, row, width);
    return;
  }
  uint8_t *to = image->pixels + 3 * y * width;
  for (uint64_t x = 0; x < width; ++x, to += 3)
    to[0] = to[1] = to[2] = row[x];
}

typedef struct tcrt_image_format_t {
  const char *name;
  uint64_t offset, size;
  const char *magic;
  int (*read)(tcrt_image_t *image);
} tcrt_image_format_t;

static const tcrt_image_format_t formats[] = {
    {"JPEG", 0, 3, "\xff\xd8\xff", tcrt_image_read_jpeg},
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n", tcrt_image_read_png},
    {"JPEG 2000", 0, 12, "\0\0\0\x0cjP  \r\n\x87\n", tcrt_image_read_jpeg2000},
    {"JPEG 2000", 0, 4, "\xff\x4f\xff\x51", tcrt_image_read_jpeg2000},
    {"WebP", 8, 4, "WEBP", tcrt_image_read_webp},
    {"TIFF", 0, 4, "II*\0", tcrt_image_read_tiff},
    {"TIFF", 0, 4, "MM\0*", tcrt_image_read_tiff},
    {"TIFF", 0, 4, "II+\0", tcrt_image_read_tiff},
    {"TIFF", 0, 4, "MM\0+", tcrt_image_read_tiff},
    {"BMP", 0, 2, "BM", tcrt_image_read_bmp},
    {"PNM", 0, 2, "P1", tcrt_image_read_pnm},
    {"PNM", 0, 2, "P2", tcrt_image_read_pnm},
    {"PNM", 0, 2, "P3", tcrt_image_read_pnm},
    {"PNM", 0, 2, "P4", tcrt_image_read_pnm},
    {"PNM", 0, 2, "P5", tcrt_image_read_pnm},
    {"PNM", 0, 2, "P6", tcrt_image_read_pnm},
    {"PNM", 0, 2, "P7", tcrt_image_read_pnm},
};

tcrt_status_t tcrt_host_image_decode(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  const tcrt_operand_t *bytes = &call->operands[0];
  tcrt_image_t image = {0};
  image.bytes = bytes->data;
  image.size = (uint64_t)bytes->dims[0];
  image.format = (int)*(const int64_t *)call->operands[1].data;
  image.services = services;
  image.store = store;
  image.status = TCRT_OK;
  const tcrt_image_format_t *format = NULL;
  for (size_t i = 0; i < sizeof formats / sizeof formats[0] && !format; ++i)
    if (image.size >= formats[i].offset + formats[i].size &&
        memcmp(image.bytes + formats[i].offset, formats[i].magic, formats[i].size) == 0)
      format = &formats[i];
  int64_t *handle = call->results[0].data;
  if (format && format->read(&image)) {
    *handle = image.handle;
    return TCRT_OK;
  }
  *handle = 0;
  if (image.status != TCRT_OK)
    return image.status;
  if (!format)
    services->warn(store, call,
                   "the bytes are no image of a format that is known, and the result is empty; known: BMP, "
                   "JPEG, JPEG 2000, PNG, PNM, TIFF, WebP");
  else
    services->warn(store, call, "the %s image cannot be decoded, and the result is empty: %s", format->name,
                   image.problem[0] ? image.problem : "it is damaged");
  int64_t dims[3] = {0, 0, image.format == TCRT_IMAGE_GRAY ? 1 : 3};
  void *data;
  return services->make_tensor(store, TCRT_DTYPE_U8, 3, dims, &data, handle);
}
