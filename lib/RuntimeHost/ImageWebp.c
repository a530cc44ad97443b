/*
 * ImageWebp.c - WebP through libwebp; of an animation the first frame.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

static int read_still(tcrt_image_t *image) {
  uint64_t stride = 3 * (uint64_t)image->width, bytes = stride * image->height;
  uint8_t *pixels = image->format == TCRT_IMAGE_GRAY ? malloc(bytes) : image->pixels;
  if (!pixels)
    return tcrt_image_fail(image, "no memory is left");
  int done = image->format == TCRT_IMAGE_BGR
                 ? WebPDecodeBGRInto(image->bytes, image->size, pixels, bytes, (int)stride) != NULL
                 : WebPDecodeRGBInto(image->bytes, image->size, pixels, bytes, (int)stride) != NULL;
  if (pixels != image->pixels) {
    for (uint32_t y = 0; done && y < image->height; ++y)
      tcrt_image_put_rgb(image, y, pixels + y * stride);
    free(pixels);
  }
  return done ? 1 : tcrt_image_fail(image, "its data is damaged or ends too early");
}

static int read_animation(tcrt_image_t *image) {
  WebPData data = {image->bytes, image->size};
  WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, NULL);
  uint8_t *frame = NULL, *row = malloc(3 * (size_t)image->width);
  int time, done = row && decoder && WebPAnimDecoderGetNext(decoder, &frame, &time);
  for (uint32_t y = 0; done && y < image->height; ++y) {
    for (uint32_t x = 0; x < image->width; ++x, frame += 4)
      memcpy(row + 3 * (size_t)x, frame, 3);
    tcrt_image_put_rgb(image, y, row);
  }
  WebPAnimDecoderDelete(decoder);
  free(row);
  return done ? 1 : tcrt_image_fail(image, "its first frame is damaged");
}

int tcrt_image_read_webp(tcrt_image_t *image) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(image->bytes, image->size, &features) != VP8_STATUS_OK)
    return tcrt_image_fail(image, "its header is damaged");
  if (!tcrt_image_begin(image, (uint64_t)features.width, (uint64_t)features.height))
    return 0;
  return features.has_animation ? read_animation(image) : read_still(image);
}
