/*
 * ImagePng.c - PNG through libpng.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdlib.h>
#include <string.h>

#include <png.h>

typedef struct png_state_t {
  tcrt_image_t *image;
  png_structp decoder;
  png_infop info;
  uint64_t at;
  uint8_t *pixels;
  png_bytep *rows;
} png_state_t;

static void on_error(png_structp decoder, png_const_charp text) {
  tcrt_image_fail(((png_state_t *)png_get_error_ptr(decoder))->image, "%s", text);
  png_longjmp(decoder, 1);
}

static void on_warning(png_structp decoder, png_const_charp text) { (void)decoder, (void)text; }

static void on_read(png_structp decoder, png_bytep to, size_t bytes) {
  png_state_t *state = png_get_io_ptr(decoder);
  if (bytes > state->image->size - state->at)
    png_error(decoder, "it ends too early");
  memcpy(to, state->image->bytes + state->at, bytes);
  state->at += bytes;
}

static int read_png(png_state_t *state) {
  tcrt_image_t *image = state->image;
  state->decoder = png_create_read_struct(PNG_LIBPNG_VER_STRING, state, on_error, on_warning);
  state->info = state->decoder ? png_create_info_struct(state->decoder) : NULL;
  if (!state->info)
    return tcrt_image_fail(image, "no memory is left");
  png_structp decoder = state->decoder;
  if (setjmp(png_jmpbuf(decoder)))
    return 0;
  png_set_read_fn(decoder, state, on_read);
  png_set_user_limits(decoder, 0x7fffffff, 0x7fffffff); /* tcrt_image_begin has the limit */
  png_set_chunk_malloc_max(decoder, 8 << 20);
  png_read_info(decoder, state->info);
  uint64_t width = png_get_image_width(decoder, state->info), height = png_get_image_height(decoder, state->info);
  /* Deflate packs at most 1032 bytes into one, so that a small file cannot hold a large image, whatever it says. */
  if (!tcrt_image_is_too_large(width, height) && png_get_rowbytes(decoder, state->info) * height > 1032 * image->size)
    return tcrt_image_fail(image, "it ends too early");
  if (!tcrt_image_begin(image, width, height))
    return 0;
  png_set_strip_16(decoder);
  png_set_palette_to_rgb(decoder);
  png_set_expand_gray_1_2_4_to_8(decoder);
  png_set_strip_alpha(decoder);
  png_set_interlace_handling(decoder);
  png_read_update_info(decoder, state->info);
  size_t channels = png_get_channels(decoder, state->info), row_bytes = png_get_rowbytes(decoder, state->info);
  if ((channels != 1 && channels != 3) || row_bytes != channels * width)
    return tcrt_image_fail(image, "its pixels have a form that is not known");
  state->pixels = malloc(row_bytes * height);
  state->rows = malloc(height * sizeof *state->rows);
  if (!state->pixels || !state->rows)
    return tcrt_image_fail(image, "no memory is left");
  for (uint64_t y = 0; y < height; ++y)
    state->rows[y] = state->pixels + y * row_bytes;
  png_read_image(decoder, state->rows);
  for (uint32_t y = 0; y < height; ++y)
    if (channels == 1)
      tcrt_image_put_gray(image, y, state->rows[y]);
    else
      tcrt_image_put_rgb(image, y, state->rows[y]);
  return 1;
}

int tcrt_image_read_png(tcrt_image_t *image) {
  png_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_image_fail(image, "no memory is left");
  state->image = image;
  int done = read_png(state);
  png_destroy_read_struct(&state->decoder, &state->info, NULL);
  free(state->pixels);
  free(state->rows);
  free(state);
  return done;
}
