//===- Pool.cpp - Runs of the thread pool in steps ----------------------------------------------------------*- C++
//-*-===//
//
// Native programs are not built with sanitizers; here data that one step writes and the next one reads are seen by
// them.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Runtime/Internal.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

namespace {

struct Run {
  int64_t ranges;
  std::vector<int64_t> values[2]; // by the parity of the step
};

/// What a range writes depends on what all ranges wrote in the step before.
void advance(void *data, int64_t number, int64_t) {
  Run &run = *static_cast<Run *>(data);
  const int64_t step = number / run.ranges;
  const std::vector<int64_t> &previous = run.values[step % 2];
  const bool isWhole = *std::min_element(previous.begin(), previous.end()) == step &&
                       *std::max_element(previous.begin(), previous.end()) == step;
  run.values[(step + 1) % 2][number % run.ranges] = isWhole ? step + 1 : -1;
}

} // namespace

TEST_CASE("a step finds what all ranges of the step before wrote") {
  tcrt_pool_t *pool = tcrt_pool_create();
  REQUIRE(pool);
  tcrt_pool_grow(pool, 4);
  tcrt_pool_slot_t *slot = tcrt_pool_enter(pool, 0);
  int64_t wrong = 0;
  for (int64_t workers = 1; workers <= 5; ++workers)
    for (int64_t ranges : {1, 2, 3, 7, 20})
      for (int64_t steps : {0, 1, 2, 300}) {
        Run run{ranges, {std::vector<int64_t>(ranges, 0), std::vector<int64_t>(ranges, 0)}};
        tcrt_pool_run_steps(pool, slot, advance, &run, ranges, steps, workers);
        wrong += run.values[steps % 2] != std::vector<int64_t>(ranges, steps);
        // An ordinary run in the same slot is as before.
        run.values[0].assign(ranges, 0);
        tcrt_pool_run(pool, slot, advance, &run, ranges, workers);
        wrong += run.values[1] != std::vector<int64_t>(ranges, 1);
      }
  CHECK(wrong == 0);
  tcrt_pool_leave(pool, slot);
  tcrt_pool_destroy(pool);
}

TEST_CASE("helpers that are woken as a run enters do no harm, with work for them and without") {
  tcrt_pool_t *pool = tcrt_pool_create();
  REQUIRE(pool);
  tcrt_pool_grow(pool, 3);
  int64_t wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    tcrt_pool_slot_t *slot = tcrt_pool_enter(pool, i % 5);
    const bool shares = i % 3 != 0;
    if (shares) {
      Run run{7, {std::vector<int64_t>(7, 0), std::vector<int64_t>(7, 0)}};
      tcrt_pool_run(pool, slot, advance, &run, 7, 4);
      wrong += run.values[1] != std::vector<int64_t>(7, 1);
    }
    const bool sharesSoon = tcrt_pool_leave(pool, slot);
    wrong += sharesSoon && !shares;
  }
  CHECK(wrong == 0);
  CHECK(tcrt_pool_leave(pool, nullptr) == 0);
  tcrt_pool_destroy(pool);
}
