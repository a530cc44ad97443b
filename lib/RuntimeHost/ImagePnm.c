/*
 * ImagePnm.c - the portable formats P1 to P7 (PBM, PGM, PPM, PAM). Source: the Netpbm format pages.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdlib.h>
#include <string.h>

typedef struct pnm_state_t {
  tcrt_image_t *image;
  uint64_t at;
} pnm_state_t;

static int is_space(uint8_t c) { return c == ' ' || (c >= 9 && c <= 13); }

static void skip_space(pnm_state_t *state) {
  const tcrt_image_t *image = state->image;
  while (state->at < image->size) {
    uint8_t c = image->bytes[state->at];
    if (c == '#')
      while (state->at < image->size && image->bytes[state->at] != '\n')
        ++state->at;
    else if (is_space(c))
      ++state->at;
    else
      return;
  }
}

/* A decimal number of at most `most`. */
static int read_number(pnm_state_t *state, uint64_t most, uint64_t *number) {
  tcrt_image_t *image = state->image;
  skip_space(state);
  uint64_t digits = 0;
  *number = 0;
  for (; state->at < image->size; ++state->at, ++digits) {
    uint8_t c = image->bytes[state->at];
    if (c < '0' || c > '9')
      break;
    *number = *number * 10 + (c - '0');
    if (*number > most)
      return tcrt_image_fail(image, "the number at byte %llu is too large", (unsigned long long)state->at);
  }
  return digits ? 1 : tcrt_image_fail(image, "a number is missing at byte %llu", (unsigned long long)state->at);
}

/* The lines of a P7 header. */
static int read_pam_header(pnm_state_t *state, uint64_t *width, uint64_t *height, uint64_t *depth, uint64_t *most) {
  static const char *const names[] = {"WIDTH", "HEIGHT", "DEPTH", "MAXVAL"};
  uint64_t *const values[] = {width, height, depth, most};
  tcrt_image_t *image = state->image;
  for (;;) {
    skip_space(state);
    const uint8_t *word = image->bytes + state->at;
    uint64_t length = 0, left = image->size - state->at;
    while (length < left && !is_space(word[length]))
      ++length;
    state->at += length;
    if (length == 0)
      return tcrt_image_fail(image, "its header does not end");
    if (length == 6 && memcmp(word, "ENDHDR", 6) == 0)
      break;
    int is_known = 0;
    for (int i = 0; i < 4; ++i)
      if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0) {
        is_known = 1;
        if (!read_number(state, UINT32_MAX, values[i]))
          return 0;
      }
    if (!is_known) /* the kind of tuple, which the depth tells */
      while (state->at < image->size && image->bytes[state->at] != '\n')
        ++state->at;
  }
  return *depth >= 1 && *depth <= 4 ? 1 : tcrt_image_fail(image, "it has %llu channels", (unsigned long long)*depth);
}

/* Row by row: `depth` samples a pixel, of which alpha is dropped. */
static int read_rows(pnm_state_t *state, int is_text, int is_bits, uint32_t depth, uint32_t most) {
  tcrt_image_t *image = state->image;
  uint32_t width = image->width, channels = depth < 3 ? 1 : 3;
  const uint8_t *from = image->bytes + state->at;
  uint64_t sample_bytes = most > 255 ? 2 : 1;
  uint8_t *row = malloc(channels * (size_t)width);
  int done = row != NULL;
  if (!row)
    tcrt_image_fail(image, "no memory is left");
  for (uint32_t y = 0; done && y < image->height; ++y) {
    for (uint32_t x = 0; done && x < width; ++x)
      for (uint32_t c = 0; done && c < depth; ++c) {
        uint64_t value = 0, number = ((uint64_t)y * width + x) * depth + c;
        if (is_bits && is_text) {
          /* Digits need no space between them. */
          skip_space(state);
          uint8_t digit = state->at < image->size ? image->bytes[state->at++] : 0;
          if (digit != '0' && digit != '1')
            done = tcrt_image_fail(image, "0 or 1 is missing at byte %llu", (unsigned long long)state->at);
          value = digit == '0';
        } else if (is_bits) {
          value = !(from[(uint64_t)y * ((width + 7) / 8) + x / 8] >> (7 - x % 8) & 1);
        } else if (is_text) {
          done = read_number(state, most, &value);
        } else {
          const uint8_t *at = from + number * sample_bytes;
          value = sample_bytes == 2 ? (uint64_t)at[0] << 8 | at[1] : at[0];
          value = value > most ? most : value;
        }
        if (c < channels)
          row[channels * (size_t)x + c] = tcrt_image_scale((uint32_t)value, most);
      }
    if (done && channels == 1)
      tcrt_image_put_gray(image, y, row);
    else if (done)
      tcrt_image_put_rgb(image, y, row);
  }
  free(row);
  return done;
}

int tcrt_image_read_pnm(tcrt_image_t *image) {
  pnm_state_t state = {image, 2};
  int kind = image->bytes[1] - '0';
  int is_text = kind <= 3, is_bits = kind == 1 || kind == 4;
  uint64_t width = 0, height = 0, depth = kind == 3 || kind == 6 ? 3 : 1, most = is_bits ? 1 : 0;
  if (kind == 7) {
    if (!read_pam_header(&state, &width, &height, &depth, &most))
      return 0;
  } else if (!read_number(&state, UINT32_MAX, &width) || !read_number(&state, UINT32_MAX, &height) ||
             (!is_bits && !read_number(&state, UINT32_MAX, &most))) {
    return 0;
  }
  if (most < 1 || most > 65535)
    return tcrt_image_fail(image, "its largest value is %llu; it may be 1 to 65535", (unsigned long long)most);
  if (!is_text) {
    if (state.at >= image->size || !is_space(image->bytes[state.at]))
      return tcrt_image_fail(image, "its header does not end");
    ++state.at;
  }
  /* Checked before memory is taken; a sample in text has a digit at least. */
  uint64_t row_bytes = is_text ? width * depth : is_bits ? (width + 7) / 8 : width * depth * (most > 255 ? 2 : 1);
  if (!tcrt_image_is_too_large(width, height) && row_bytes * height > image->size - state.at)
    return tcrt_image_fail(image, "it ends too early");
  return tcrt_image_begin(image, width, height) && read_rows(&state, is_text, is_bits, (uint32_t)depth, (uint32_t)most);
}
