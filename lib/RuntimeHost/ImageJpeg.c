/*
 * ImageJpeg.c - JPEG through libjpeg-turbo, with its default inverse transform and smooth upsampling, which the
 * operator's specification asks for.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

/* A progressive file of a few bytes a scan may ask for hours of work. */
#define MAX_SCANS 500

typedef struct jpeg_state_t {
  struct jpeg_error_mgr error; /* first: libjpeg's pointer to it is one to the whole */
  struct jpeg_progress_mgr progress;
  struct jpeg_decompress_struct decoder;
  jmp_buf failed;
  tcrt_image_t *image;
  uint8_t *row;
} jpeg_state_t;

static void on_error(j_common_ptr decoder) {
  jpeg_state_t *state = (jpeg_state_t *)decoder->err;
  char text[JMSG_LENGTH_MAX];
  decoder->err->format_message(decoder, text);
  tcrt_image_fail(state->image, "%s", text);
  longjmp(state->failed, 1);
}

static void on_message(j_common_ptr decoder, int level) { (void)decoder, (void)level; }

static void on_progress(j_common_ptr decoder) {
  jpeg_state_t *state = (jpeg_state_t *)decoder->err;
  if (state->decoder.input_scan_number > MAX_SCANS) {
    tcrt_image_fail(state->image, "it has more than %d scans", MAX_SCANS);
    longjmp(state->failed, 1);
  }
}

/* libjpeg would make up an end of the image; a file that is cut off is refused instead. */
static boolean on_end_of_bytes(j_decompress_ptr decoder) {
  jpeg_state_t *state = (jpeg_state_t *)decoder->err;
  tcrt_image_fail(state->image, "it ends too early");
  longjmp(state->failed, 1);
}

static uint8_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = a * b + 128;
  return (uint8_t)(((product >> 8) + product) >> 8);
}

/* Four inks to three colours, in place. Adobe's files hold them inverted, and then libjpeg's values are amounts of
 * light. */
static void from_cmyk(uint8_t *row, uint32_t width, int is_inverted) {
  const uint8_t *from = row;
  for (uint32_t x = 0; x < width; ++x, from += 4, row += 3) {
    uint32_t light = is_inverted ? from[3] : 255u - from[3];
    for (int c = 0; c < 3; ++c) {
      uint8_t ink = multiply(is_inverted ? 255u - from[c] : from[c], light);
      row[c] = (uint8_t)(light > ink ? light - ink : 0);
    }
  }
}

static int read_jpeg(jpeg_state_t *state) {
  tcrt_image_t *image = state->image;
  struct jpeg_decompress_struct *decoder = &state->decoder;
  if (setjmp(state->failed))
    return 0;
  jpeg_create_decompress(decoder);
  decoder->progress = &state->progress;
  jpeg_mem_src(decoder, image->bytes, (unsigned long)image->size);
  decoder->src->fill_input_buffer = on_end_of_bytes;
  jpeg_read_header(decoder, TRUE);
  if (!tcrt_image_begin(image, decoder->image_width, decoder->image_height))
    return 0;
  int is_gray = decoder->jpeg_color_space == JCS_GRAYSCALE;
  int is_cmyk = decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK;
  decoder->out_color_space = is_gray ? JCS_GRAYSCALE : is_cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(decoder);
  state->row = malloc(4 * (size_t)image->width);
  if (!state->row)
    return tcrt_image_fail(image, "no memory is left");
  for (uint32_t y = 0; y < image->height; ++y) {
    JSAMPROW rows[1] = {state->row};
    jpeg_read_scanlines(decoder, rows, 1);
    if (is_cmyk)
      from_cmyk(state->row, image->width, decoder->saw_Adobe_marker);
    if (is_gray)
      tcrt_image_put_gray(image, y, state->row);
    else
      tcrt_image_put_rgb(image, y, state->row);
  }
  return 1;
}

int tcrt_image_read_jpeg(tcrt_image_t *image) {
  jpeg_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_image_fail(image, "no memory is left");
  state->image = image;
  state->decoder.err = jpeg_std_error(&state->error);
  state->error.error_exit = on_error;
  state->error.emit_message = on_message;
  state->progress.progress_monitor = on_progress;
  int done = read_jpeg(state);
  jpeg_destroy_decompress(&state->decoder);
  free(state->row);
  free(state);
  return done;
}
