/*
 * ImageJpeg2000.c - JPEG 2000 through OpenJPEG: files and bare code streams.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdlib.h>
#include <string.h>

#include <openjpeg.h>

typedef struct stream_state_t {
  tcrt_image_t *image;
  uint64_t at;
} stream_state_t;

static OPJ_SIZE_T on_read(void *to, OPJ_SIZE_T bytes, void *user) {
  stream_state_t *state = user;
  uint64_t left = state->image->size - state->at, count = bytes < left ? bytes : left;
  if (count == 0)
    return (OPJ_SIZE_T)-1;
  memcpy(to, state->image->bytes + state->at, count);
  state->at += count;
  return count;
}

static OPJ_OFF_T on_skip(OPJ_OFF_T bytes, void *user) {
  stream_state_t *state = user;
  if (bytes < 0 || (uint64_t)bytes > state->image->size - state->at)
    return -1;
  state->at += (uint64_t)bytes;
  return bytes;
}

static OPJ_BOOL on_seek(OPJ_OFF_T offset, void *user) {
  stream_state_t *state = user;
  if (offset < 0 || (uint64_t)offset > state->image->size)
    return OPJ_FALSE;
  state->at = (uint64_t)offset;
  return OPJ_TRUE;
}

static void on_error(const char *text, void *user) { tcrt_image_fail(user, "%s", text); }
static void on_message(const char *text, void *user) { (void)text, (void)user; }

/* A sample in 8 bits: shifted up or down, so that 0 stays 0. */
static uint8_t sample(const opj_image_comp_t *c, uint64_t x, uint64_t y, uint64_t width, uint64_t height) {
  /* Components may have fewer samples than the image has pixels. */
  uint64_t column = c->w == width ? x : x * c->w / width, row = c->h == height ? y : y * c->h / height;
  int64_t value = c->data[row * c->w + column];
  if (c->sgnd)
    value += INT64_C(1) << (c->prec - 1);
  value = c->prec > 8 ? value >> (c->prec - 8) : value * (1 << (8 - c->prec));
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static uint8_t clamp(double value) { return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : (int)(value + 0.5)); }

static void from_ycc(uint8_t *rgb) {
  double y = rgb[0], cb = rgb[1] - 128.0, cr = rgb[2] - 128.0;
  rgb[0] = clamp(y + 1.402 * cr);
  rgb[1] = clamp(y - 0.344136 * cb - 0.714136 * cr);
  rgb[2] = clamp(y + 1.772 * cb);
}

static int check_components(tcrt_image_t *image, const opj_image_t *decoded) {
  /* Gray or colours, with or without alpha. Each component takes memory of its own. */
  if (decoded->numcomps < 1 || decoded->numcomps > 4)
    return tcrt_image_fail(image, "it has %u components; gray, RGB and YCC are known, with or without alpha",
                           (unsigned)decoded->numcomps);
  if (decoded->color_space == OPJ_CLRSPC_CMYK || decoded->color_space == OPJ_CLRSPC_EYCC)
    return tcrt_image_fail(image, "its colours are neither gray nor RGB nor YCC");
  for (uint32_t i = 0; i < decoded->numcomps; ++i)
    if (decoded->comps[i].prec < 1 || decoded->comps[i].prec > 31)
      return tcrt_image_fail(image, "its samples have %u bits", (unsigned)decoded->comps[i].prec);
  return 1;
}

static int read_rows(tcrt_image_t *image, const opj_image_t *decoded) {
  uint32_t channels = decoded->numcomps < 3 ? 1 : 3;
  for (uint32_t i = 0; i < channels; ++i)
    if (!decoded->comps[i].data || decoded->comps[i].w == 0 || decoded->comps[i].h == 0)
      return tcrt_image_fail(image, "a component has no samples");
  int is_ycc = channels == 3 &&
               (decoded->color_space == OPJ_CLRSPC_SYCC ||
                (decoded->color_space != OPJ_CLRSPC_SRGB && decoded->comps[0].dx == 1 && decoded->comps[1].dx != 1));
  uint8_t *row = malloc(channels * (size_t)image->width);
  if (!row)
    return tcrt_image_fail(image, "no memory is left");
  for (uint32_t y = 0; y < image->height; ++y) {
    for (uint32_t x = 0; x < image->width; ++x) {
      uint8_t *pixel = row + channels * (size_t)x;
      for (uint32_t i = 0; i < channels; ++i)
        pixel[i] = sample(&decoded->comps[i], x, y, image->width, image->height);
      if (is_ycc)
        from_ycc(pixel);
    }
    if (channels == 1)
      tcrt_image_put_gray(image, y, row);
    else
      tcrt_image_put_rgb(image, y, row);
  }
  free(row);
  return 1;
}

static int read_image(tcrt_image_t *image, opj_codec_t *codec, opj_stream_t *stream, opj_image_t **decoded) {
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_set_error_handler(codec, on_error, image);
  opj_set_warning_handler(codec, on_message, image);
  opj_set_info_handler(codec, on_message, image);
  if (!opj_setup_decoder(codec, &parameters))
    return 0;
  opj_decoder_set_strict_mode(codec, OPJ_TRUE);
  if (!opj_read_header(stream, codec, decoded) || !check_components(image, *decoded))
    return 0;
  const opj_image_t *header = *decoded;
  if (header->x1 <= header->x0 || header->y1 <= header->y0)
    return tcrt_image_fail(image, "it has no pixels");
  if (!tcrt_image_begin(image, header->x1 - header->x0, header->y1 - header->y0))
    return 0;
  if (!opj_decode(codec, stream, *decoded) || !opj_end_decompress(codec, stream) || !check_components(image, *decoded))
    return 0;
  return read_rows(image, *decoded);
}

int tcrt_image_read_jpeg2000(tcrt_image_t *image) {
  stream_state_t state = {image, 0};
  opj_codec_t *codec = opj_create_decompress(image->bytes[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_stream_t *stream = opj_stream_create(1 << 16, OPJ_TRUE);
  opj_image_t *decoded = NULL;
  int done = 0;
  if (codec && stream) {
    opj_stream_set_user_data(stream, &state, NULL);
    opj_stream_set_user_data_length(stream, image->size);
    opj_stream_set_read_function(stream, on_read);
    opj_stream_set_skip_function(stream, on_skip);
    opj_stream_set_seek_function(stream, on_seek);
    done = read_image(image, codec, stream, &decoded);
  } else {
    tcrt_image_fail(image, "no memory is left");
  }
  opj_image_destroy(decoded);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  return done;
}
