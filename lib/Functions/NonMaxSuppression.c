/*
 * NonMaxSuppression.c - boxes that overlap a better one of their class too much are dropped.
 *
 * Greedy, as ONNX's operator of this name says: boxes that pass the threshold, the best first, each kept unless one
 * that is kept already overlaps it. Sorting comes behind the threshold, and a box is held against kept ones alone: n
 * boxes of a class, m of them above the threshold and k kept, take O(n + m log m + m k).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tc/Functions/Store.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kept boxes that are compared at once, and bands of the picture that they lie in by their upper edges: a box is held
 * against those of the bands that it may reach. Boxes of many classes, moved apart by their class, meet few others. */
enum { GROUP = 8, BANDS = 128 };

typedef struct {
  uint64_t key; /* rises as the score falls; NaN, above all numbers, first */
  int64_t box;
} candidate_t;

static uint64_t key_of(double score) {
  if (isnan(score))
    return 0;
  uint64_t bits;
  score += 0.0; /* -0 equals 0 */
  memcpy(&bits, &score, sizeof bits);
  return bits >> 63 ? bits : ~bits & INT64_MAX;
}

/* Stable, so that equal scores keep the order of their boxes. `other` has as many entries. Returns the sorted array. */
static candidate_t *sort_candidates(candidate_t *from, candidate_t *other, int64_t count) {
  if (count <= 32) {
    for (int64_t i = 1; i < count; ++i) {
      const candidate_t moved = from[i];
      int64_t at = i;
      for (; at > 0 && from[at - 1].key > moved.key; --at)
        from[at] = from[at - 1];
      from[at] = moved;
    }
    return from;
  }
  enum { BITS = 11, BUCKETS = 1 << BITS };
  for (int shift = 0; shift < 64; shift += BITS) {
    int64_t begin[BUCKETS] = {0}, sum = 0;
    for (int64_t i = 0; i < count; ++i)
      ++begin[from[i].key >> shift & (BUCKETS - 1)];
    if (begin[from[0].key >> shift & (BUCKETS - 1)] == count)
      continue; /* scores of f32 leave the low bits alone */
    for (int i = 0; i < BUCKETS; ++i) {
      const int64_t here = begin[i];
      begin[i] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < count; ++i)
      other[begin[from[i].key >> shift & (BUCKETS - 1)]++] = from[i];
    candidate_t *sorted = other;
    other = from;
    from = sorted;
  }
  return from;
}

static double float_at(const tcrt_operand_t *operand, int64_t index) {
  return operand->dtype == TCRT_DTYPE_F64 ? ((const double *)operand->data)[index]
                                          : (double)((const float *)operand->data)[index];
}

/* For boxes of type T: corners and areas, and whether a box overlaps any of those kept. */
#define FOR_TYPE(T, suffix)                                                                                            \
  typedef struct {                                                                                                     \
    T *y1, *x1, *y2, *x2, *area;                                                                                       \
  } boxes_##suffix;                                                                                                    \
                                                                                                                       \
  static boxes_##suffix boxes_in_##suffix(T *memory, int64_t count) {                                                  \
    return (boxes_##suffix){memory, memory + count, memory + 2 * count, memory + 3 * count, memory + 4 * count};       \
  }                                                                                                                    \
                                                                                                                       \
  static void read_##suffix(boxes_##suffix to, const T *from, int64_t count, int is_center) {                          \
    for (int64_t i = 0; i < count; ++i, from += 4) {                                                                   \
      if (is_center) { /* x, y, width, height */                                                                       \
        to.x1[i] = from[0] - from[2] / 2, to.x2[i] = from[0] + from[2] / 2;                                            \
        to.y1[i] = from[1] - from[3] / 2, to.y2[i] = from[1] + from[3] / 2;                                            \
      } else { /* two opposite corners, y before x */                                                                  \
        to.y1[i] = from[0] < from[2] ? from[0] : from[2], to.y2[i] = from[0] < from[2] ? from[2] : from[0];            \
        to.x1[i] = from[1] < from[3] ? from[1] : from[3], to.x2[i] = from[1] < from[3] ? from[3] : from[1];            \
      }                                                                                                                \
      to.area[i] = (to.y2[i] - to.y1[i]) * (to.x2[i] - to.x1[i]);                                                      \
    }                                                                                                                  \
  }                                                                                                                    \
                                                                                                                       \
  typedef struct {                                                                                                     \
    T y1[GROUP], x1[GROUP], y2[GROUP], x2[GROUP], area[GROUP];                                                         \
    int64_t count, next; /* next: the group before it in its band, or -1 */                                            \
  } group_##suffix;                                                                                                    \
                                                                                                                       \
  typedef struct {                                                                                                     \
    group_##suffix *groups;                                                                                            \
    T first, scale, height;                                                                                            \
    int64_t count, bands, last[BANDS]; /* last: of each band, or -1 */                                                 \
  } kept_##suffix;                                                                                                     \
                                                                                                                       \
  static int64_t band_##suffix(const kept_##suffix *kept, T y) {                                                       \
    const T at = (y - kept->first) * kept->scale;                                                                      \
    return at > 0 ? at < (T)(kept->bands - 1) ? (int64_t)at : kept->bands - 1 : 0;                                     \
  }                                                                                                                    \
                                                                                                                       \
  static void begin_##suffix(kept_##suffix *kept, void *memory, int64_t bands) {                                       \
    *kept = (kept_##suffix){.groups = memory, .bands = bands};                                                         \
    for (int64_t i = 0; i < bands; ++i)                                                                                \
      kept->last[i] = -1;                                                                                              \
  }                                                                                                                    \
                                                                                                                       \
  /* Bands of equal height from the first upper edge to the last. One band where edges are not finite, and where boxes \
   * that share nothing exceed `most` < 0. */                                                                          \
  static void divide_##suffix(kept_##suffix *kept, const boxes_##suffix *all, const candidate_t *candidates,           \
                              int64_t count, T most) {                                                                 \
    T first = INFINITY, last = -INFINITY, height = 0;                                                                  \
    for (int64_t i = 0; i < count; ++i) {                                                                              \
      const T y1 = all->y1[candidates[i].box], here = all->y2[candidates[i].box] - y1;                                 \
      first = y1 < first ? y1 : first, last = y1 > last ? y1 : last;                                                   \
      height = here <= height ? height : here; /* NaN stays */                                                         \
    }                                                                                                                  \
    const int is_divided = most >= 0 && last - first > 0 && isfinite(last - first) && isfinite(height);                \
    begin_##suffix(kept, kept->groups, is_divided ? BANDS : 1);                                                        \
    if (is_divided)                                                                                                    \
      kept->first = first, kept->scale = BANDS / (last - first), kept->height = height;                                \
  }                                                                                                                    \
                                                                                                                       \
  static inline int exceeds_##suffix(const group_##suffix *kept, int64_t i, T y1, T x1, T y2, T x2, T area, T most) {  \
    const T top = kept->y1[i] > y1 ? kept->y1[i] : y1, bottom = kept->y2[i] < y2 ? kept->y2[i] : y2;                   \
    const T left = kept->x1[i] > x1 ? kept->x1[i] : x1, right = kept->x2[i] < x2 ? kept->x2[i] : x2;                   \
    const T height = bottom > top ? bottom - top : 0, width = right > left ? right - left : 0;                         \
    const T shared = height * width;                                                                                   \
    return shared / (kept->area[i] + area - shared) > most; /* false for 0 / 0: two empty boxes */                     \
  }                                                                                                                    \
                                                                                                                       \
  static int overlaps_##suffix(const kept_##suffix *kept, const boxes_##suffix *all, int64_t box, T most) {            \
    const T y1 = all->y1[box], x1 = all->x1[box], y2 = all->y2[box], x2 = all->x2[box], area = all->area[box];         \
    /* Heights and the difference are rounded. */                                                                      \
    const T slack = 4 * (T)(sizeof(T) == 4 ? FLT_EPSILON : DBL_EPSILON) * ((y1 < 0 ? -y1 : y1) + kept->height);        \
    const int64_t to = band_##suffix(kept, y2);                                                                        \
    for (int64_t band = band_##suffix(kept, y1 - kept->height - slack); band <= to; ++band)                            \
      for (int64_t number = kept->last[band]; number >= 0; number = kept->groups[number].next) {                       \
        int any = 0;                                                                                                   \
        for (int64_t j = 0; j < GROUP; ++j)                                                                            \
          any |= exceeds_##suffix(&kept->groups[number], j, y1, x1, y2, x2, area, most);                               \
        if (any)                                                                                                       \
          return 1;                                                                                                    \
      }                                                                                                                \
    return 0;                                                                                                          \
  }                                                                                                                    \
                                                                                                                       \
  static void add_##suffix(kept_##suffix *kept, const boxes_##suffix *all, int64_t box) {                              \
    int64_t *last = &kept->last[band_##suffix(kept, all->y1[box])];                                                    \
    if (*last < 0 || kept->groups[*last].count == GROUP) {                                                             \
      group_##suffix *group = &kept->groups[kept->count];                                                              \
      group->count = 0, group->next = *last;                                                                           \
      for (int i = 0; i < GROUP; ++i) /* places that are free overlap nothing */                                       \
        group->y1[i] = group->x1[i] = group->y2[i] = group->x2[i] = 0, group->area[i] = NAN;                           \
      *last = kept->count++;                                                                                           \
    }                                                                                                                  \
    group_##suffix *group = &kept->groups[*last];                                                                      \
    const int64_t i = group->count++;                                                                                  \
    group->y1[i] = all->y1[box], group->x1[i] = all->x1[box], group->y2[i] = all->y2[box];                             \
    group->x2[i] = all->x2[box], group->area[i] = all->area[box];                                                      \
  }                                                                                                                    \
  static int64_t collect_##suffix(const T *scores, int64_t count, int has_threshold, T threshold, candidate_t *to) {   \
    int64_t passed = 0;                                                                                                \
    for (int64_t i = 0; i < count; ++i)                                                                                \
      if (!has_threshold || scores[i] > threshold)                                                                     \
        to[passed++] = (candidate_t){key_of((double)scores[i]), i};                                                    \
    return passed;                                                                                                     \
  }                                                                                                                    \
                                                                                                                       \
  /* Writes the numbers of the boxes that are kept of the sorted candidates, `most` at most; returns how many. */      \
  static int64_t keep_##suffix(const boxes_##suffix *all, void *memory, const candidate_t *candidates, int64_t count,  \
                               int64_t most, T overlap, int64_t *numbers) {                                            \
    kept_##suffix kept;                                                                                                \
    begin_##suffix(&kept, memory, 1);                                                                                  \
    int64_t found = 0;                                                                                                 \
    for (int64_t i = 0; i < count && found < most; ++i) {                                                              \
      const int64_t box = candidates[i].box;                                                                           \
      if (overlaps_##suffix(&kept, all, box, overlap))                                                                 \
        continue;                                                                                                      \
      add_##suffix(&kept, all, box);                                                                                   \
      numbers[found++] = box;                                                                                          \
      if (found == BANDS) { /* bands pay from so many on */                                                            \
        divide_##suffix(&kept, all, candidates, count, overlap);                                                       \
        for (int64_t j = 0; j < found; ++j)                                                                            \
          add_##suffix(&kept, all, numbers[j]);                                                                        \
      }                                                                                                                \
    }                                                                                                                  \
    return found;                                                                                                      \
  }

FOR_TYPE(float, f32)
FOR_TYPE(double, f64)

typedef struct {
  int64_t *triples; /* batch, class, box */
  uint64_t count, capacity;
} found_t;

static int append(found_t *found, int64_t batch, int64_t class, const int64_t *boxes, int64_t count) {
  if (found->count + (uint64_t)count > found->capacity) {
    const uint64_t capacity = 2 * found->capacity + (uint64_t)count;
    int64_t *more = realloc(found->triples, capacity * 3 * sizeof *more);
    if (!more)
      return 0;
    found->triples = more;
    found->capacity = capacity;
  }
  for (int64_t i = 0; i < count; ++i, ++found->count) {
    int64_t *to = found->triples + 3 * found->count;
    to[0] = batch, to[1] = class, to[2] = boxes[i];
  }
  return 1;
}

/* non_max_suppression(boxes [B, N, 4], scores [B, C, N], most kept per class, overlap, threshold, flags) -> handle of
 * [kept, 3], i64: batch, class and box, of each class the best first. `overlap` is of the boxes' type, f32 or f64.
 * Flags: 1: boxes are centers and sizes; 2: scores must be above the threshold. */
tcrt_status_t tcrt_non_max_suppression(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  const tcrt_operand_t *boxes = &call->operands[0], *scores = &call->operands[1];
  const int64_t batches = scores->dims[0], classes = scores->dims[1], count = scores->dims[2];
  const int64_t given = *(const int64_t *)call->operands[2].data, flags = *(const int64_t *)call->operands[5].data;
  const double overlap = float_at(&call->operands[3], 0), threshold = float_at(&call->operands[4], 0);
  const int64_t most = given < count ? given : count;
  const int is_wide = boxes->dtype == TCRT_DTYPE_F64;
  const size_t number = is_wide ? sizeof(double) : sizeof(float);

  found_t found = {0};
  int64_t handle = 0;
  tcrt_status_t status = TCRT_OK;
  char *memory = NULL;
  if (most > 0 && batches > 0 && classes > 0) {
    /* Candidates twice, the kept numbers, all boxes and the kept ones. */
    const size_t groups = ((size_t)count / GROUP + BANDS) * (is_wide ? sizeof(group_f64) : sizeof(group_f32));
    memory = malloc((size_t)count * (2 * sizeof(candidate_t) + sizeof(int64_t) + 5 * number) + 8 + groups);
    if (!memory)
      return services->fail(TCRT_ERROR_MACHINE, "no memory left for NonMaxSuppression");
    candidate_t *candidates = (candidate_t *)memory, *other = candidates + count;
    int64_t *numbers = (int64_t *)(other + count);
    void *all = numbers + count, *kept = (char *)all + ((size_t)count * 5 * number + 7) / 8 * 8;
    boxes_f32 all_f32 = boxes_in_f32(all, count);
    boxes_f64 all_f64 = boxes_in_f64(all, count);
    for (int64_t batch = 0; batch < batches && status == TCRT_OK; ++batch) {
      if (is_wide)
        read_f64(all_f64, (const double *)boxes->data + batch * count * 4, count, flags & 1);
      else
        read_f32(all_f32, (const float *)boxes->data + batch * count * 4, count, flags & 1);
      for (int64_t class = 0; class < classes; ++class) {
        const int64_t first = (batch * classes + class) * count;
        int64_t stays, passed;
        if (scores->dtype == TCRT_DTYPE_F64)
          passed = collect_f64((const double *)scores->data + first, count, flags & 2, threshold, candidates);
        else
          passed = collect_f32((const float *)scores->data + first, count, flags & 2, (float)threshold, candidates);
        const candidate_t *sorted = sort_candidates(candidates, other, passed);
        if (is_wide)
          stays = keep_f64(&all_f64, kept, sorted, passed, most, overlap, numbers);
        else
          stays = keep_f32(&all_f32, kept, sorted, passed, most, (float)overlap, numbers);
        if (!append(&found, batch, class, numbers, stays)) {
          status = services->fail(TCRT_ERROR_MACHINE, "no memory left for NonMaxSuppression");
          break;
        }
      }
    }
  }
  if (status == TCRT_OK) {
    const int64_t dims[2] = {(int64_t)found.count, 3};
    void *data;
    status = services->make_tensor(store, TCRT_DTYPE_I64, 2, dims, &data, &handle);
    if (status == TCRT_OK && found.count)
      memcpy(data, found.triples, found.count * 3 * sizeof(int64_t));
  }
  free(found.triples);
  free(memory);
  *(int64_t *)call->results[0].data = handle;
  return status;
}
