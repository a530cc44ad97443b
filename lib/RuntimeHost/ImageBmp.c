/*
 * ImageBmp.c - Windows and OS/2 bitmaps: 1, 2, 4 and 8 bits with a palette, run lengths, 16, 24 and 32 bits with or
 * without masks. Source: the pages on BITMAPINFOHEADER and its relatives in Microsoft's documentation.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Image.h"

#include <stdlib.h>
#include <string.h>

enum { BI_RGB = 0, BI_RLE8 = 1, BI_RLE4 = 2, BI_BITFIELDS = 3, BI_ALPHABITFIELDS = 6 };

typedef struct bmp_state_t {
  tcrt_image_t *image;
  uint32_t bits, compression;
  uint64_t pixels; /* offset */
  int is_top_down;
  uint32_t masks[3];
  uint8_t palette[256][3];
} bmp_state_t;

static uint32_t word(const uint8_t *at) { return (uint32_t)(at[0] | at[1] << 8); }
static uint32_t dword(const uint8_t *at) { return word(at) | word(at + 2) << 16; }

static uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (!mask)
    return 0;
  unsigned shift = (unsigned)__builtin_ctz(mask);
  uint32_t most = mask >> shift, value = (pixel & mask) >> shift;
  return (uint8_t)((uint64_t)value * 255 / most);
}

/* Palette numbers of all pixels, bottom row first. What runs leave out is 0. */
static int unpack_runs(bmp_state_t *state, uint8_t *to) {
  tcrt_image_t *image = state->image;
  uint64_t at = state->pixels, width = image->width, height = image->height, x = 0, y = 0;
  int is_4 = state->compression == BI_RLE4;
  while (y < height) {
    if (image->size - at < 2)
      return tcrt_image_fail(image, "it ends too early");
    uint32_t count = image->bytes[at], value = image->bytes[at + 1];
    at += 2;
    if (count) {
      for (uint32_t i = 0; i < count && x < width; ++i, ++x)
        to[y * width + x] = (uint8_t)(is_4 ? (i & 1 ? value & 15 : value >> 4) : value);
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      if (image->size - at < 2)
        return tcrt_image_fail(image, "it ends too early");
      x += image->bytes[at];
      y += image->bytes[at + 1];
      at += 2;
    } else {
      uint64_t bytes = is_4 ? (value + 1) / 2 : value;
      if (image->size - at < bytes)
        return tcrt_image_fail(image, "it ends too early");
      for (uint32_t i = 0; i < value && x < width; ++i, ++x)
        to[y * width + x] =
            is_4 ? (i & 1 ? image->bytes[at + i / 2] & 15 : image->bytes[at + i / 2] >> 4) : image->bytes[at + i];
      at += bytes + (bytes & 1);
      if (at > image->size)
        at = image->size;
    }
  }
  return 1;
}

/* Row y from the bottom of what is stored, as three bytes a pixel. */
static void unpack_row(const bmp_state_t *state, const uint8_t *from, uint8_t *row) {
  uint32_t width = state->image->width, bits = state->bits;
  for (uint32_t x = 0; x < width; ++x, row += 3) {
    if (bits <= 8) {
      uint32_t per_byte = 8 / bits, shift = 8 - bits * (x % per_byte + 1);
      memcpy(row, state->palette[from[x / per_byte] >> shift & ((1u << bits) - 1)], 3);
    } else if (bits == 24) {
      row[0] = from[3 * (size_t)x + 2], row[1] = from[3 * (size_t)x + 1], row[2] = from[3 * (size_t)x];
    } else {
      uint32_t pixel = bits == 16 ? word(from + 2 * (size_t)x) : dword(from + 4 * (size_t)x);
      for (int c = 0; c < 3; ++c)
        row[c] = masked(pixel, state->masks[c]);
    }
  }
}

static int read_rows(bmp_state_t *state) {
  tcrt_image_t *image = state->image;
  uint64_t width = image->width, height = image->height, stride = (width * state->bits + 31) / 32 * 4;
  uint8_t *row = malloc(3 * width), *numbers = NULL;
  const uint8_t *from = image->bytes + state->pixels;
  int done = row != NULL;
  if (state->compression == BI_RLE8 || state->compression == BI_RLE4) {
    numbers = calloc(height, width);
    done = done && numbers;
    from = numbers;
    stride = width;
  }
  if (!done)
    tcrt_image_fail(image, "no memory is left");
  if (numbers) {
    done = done && unpack_runs(state, numbers);
    state->bits = 8;
  }
  for (uint32_t y = 0; done && y < height; ++y) {
    unpack_row(state, from + y * stride, row);
    tcrt_image_put_rgb(image, state->is_top_down ? y : (uint32_t)height - 1 - y, row);
  }
  free(row);
  free(numbers);
  return done;
}

static int read_header(bmp_state_t *state, uint64_t *width, uint64_t *height) {
  tcrt_image_t *image = state->image;
  const uint8_t *bytes = image->bytes;
  if (image->size < 14 + 12)
    return tcrt_image_fail(image, "it ends too early");
  uint64_t header = dword(bytes + 14), palette_at = 14 + header, entry_bytes = 4, colours = 0;
  state->pixels = dword(bytes + 10);
  if (header > image->size - 14)
    return tcrt_image_fail(image, "it ends too early");
  if (header == 12) {
    *width = word(bytes + 18);
    *height = word(bytes + 20);
    state->bits = word(bytes + 24);
    entry_bytes = 3;
  } else if (header >= 16 && (header <= 64 || header == 108 || header == 124)) {
    int32_t w = (int32_t)dword(bytes + 18), h = (int32_t)dword(bytes + 22);
    state->is_top_down = h < 0;
    *width = w < 0 ? 0 : (uint64_t)w;
    *height = h < 0 ? (uint64_t)(-(int64_t)h) : (uint64_t)h;
    state->bits = word(bytes + 28);
    state->compression = header >= 20 ? dword(bytes + 30) : BI_RGB;
    colours = header >= 36 ? dword(bytes + 46) : 0;
  } else {
    return tcrt_image_fail(image, "its header has %llu bytes, which is no kind of bitmap", (unsigned long long)header);
  }
  uint32_t bits = state->bits, compression = state->compression;
  int is_masked = compression == BI_BITFIELDS || compression == BI_ALPHABITFIELDS;
  int fits = compression == BI_RLE8   ? bits == 8
             : compression == BI_RLE4 ? bits == 4
             : is_masked ? bits == 16 || bits == 32
                         : compression == BI_RGB && (bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 ||
                                                     bits == 24 || bits == 32);
  if (!fits)
    return tcrt_image_fail(image, "%u bits a pixel in the coding %u are not known", bits, compression);
  if (is_masked) {
    uint64_t masks_at = 54;
    if (header == 40)
      palette_at += compression == BI_BITFIELDS ? 12 : 16;
    if (image->size < masks_at + 12)
      return tcrt_image_fail(image, "it ends too early");
    for (int c = 0; c < 3; ++c)
      state->masks[c] = dword(bytes + masks_at + 4 * (uint64_t)c);
  } else {
    const uint32_t masks[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    memcpy(state->masks, masks[bits == 32], sizeof state->masks);
  }
  if (bits <= 8) {
    uint64_t most = UINT64_C(1) << bits, room = palette_at < image->size ? (image->size - palette_at) / entry_bytes : 0;
    colours = colours == 0 || colours > most ? most : colours;
    colours = colours > room ? room : colours;
    for (uint64_t i = 0; i < colours; ++i) {
      const uint8_t *entry = bytes + palette_at + i * entry_bytes;
      state->palette[i][0] = entry[2], state->palette[i][1] = entry[1], state->palette[i][2] = entry[0];
    }
  }
  return state->pixels <= image->size ? 1 : tcrt_image_fail(image, "it ends too early");
}

int tcrt_image_read_bmp(tcrt_image_t *image) {
  bmp_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return tcrt_image_fail(image, "no memory is left");
  state->image = image;
  uint64_t width = 0, height = 0;
  int done = read_header(state, &width, &height);
  int has_runs = state->compression == BI_RLE8 || state->compression == BI_RLE4;
  /* Sizes fit 32 bits, so that these products fit 64. */
  if (done && !has_runs && (width * state->bits + 31) / 32 * 4 * height > image->size - state->pixels)
    done = tcrt_image_fail(image, "it ends too early");
  done = done && tcrt_image_begin(image, width, height) && read_rows(state);
  free(state);
  return done;
}
