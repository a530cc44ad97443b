//===- Pool.cpp - Runs of the thread pool in steps ------------------------------------------------------*- C++ -*-===//
//
// Native programs are not built with sanitizers; here data that one step writes and the next one reads are seen by
// them.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Runtime/Internal.h"
#include "Runtime/Placement.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
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
        // Ordinary runs in the same slot are as before.
        for (int keepsRanges : {0, 1}) {
          run.values[0].assign(ranges, 0);
          tcrt_pool_run(pool, slot, advance, &run, ranges, workers, keepsRanges);
          wrong += run.values[1] != std::vector<int64_t>(ranges, 1);
        }
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
      tcrt_pool_run(pool, slot, advance, &run, 7, 4, i % 2);
      wrong += run.values[1] != std::vector<int64_t>(7, 1);
    }
    const bool sharesSoon = (tcrt_pool_leave(pool, slot) & TCRT_POOL_SHARED_SOON) != 0;
    wrong += sharesSoon && !shares;
  }
  CHECK(wrong == 0);
  CHECK(tcrt_pool_leave(pool, nullptr) == 0);
  tcrt_pool_destroy(pool);
}

TEST_CASE("helpers take part in runs that follow at once, and sleep when none does") {
  tcrt_pool_t *pool = tcrt_pool_create();
  REQUIRE(pool);
  tcrt_pool_grow(pool, 3);
  int64_t wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    tcrt_pool_slot_t *slot = tcrt_pool_enter(pool, 0);
    Run run{7, {std::vector<int64_t>(7, 0), std::vector<int64_t>(7, 0)}};
    tcrt_pool_run(pool, slot, advance, &run, 7, 4, i % 2);
    wrong += run.values[1] != std::vector<int64_t>(7, 1);
    tcrt_pool_leave(pool, slot);
    // Up to 12 us: some runs find helpers that look, some that go to sleep, some that sleep.
    for (const uint64_t end = tcrt_now_ns() + uint64_t(i % 7) * 2000; tcrt_now_ns() < end;)
      ;
  }
  CHECK(wrong == 0);
  // A helper that went on looking would take 100 ms of a processor's time.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(double(std::clock() - before) / CLOCKS_PER_SEC < 0.05);
  tcrt_pool_destroy(pool);
}

TEST_CASE("a launch is cut into as many ranges for each thread") {
  CHECK(tcrt_count_ranges(1000, 520, 32, 2) == 1);
  CHECK(tcrt_count_ranges(1040, 520, 32, 2) == 2);
  CHECK(tcrt_count_ranges(1600, 520, 32, 2) == 4); // not three, of which one thread would take two
  CHECK(tcrt_count_ranges(1600, 520, 32, 3) == 3);
  CHECK(tcrt_count_ranges(2100, 520, 32, 3) == 3);
  CHECK(tcrt_count_ranges(2600, 520, 32, 3) == 6);
  CHECK(tcrt_count_ranges(200, 10, 64, 16) == 16);
  // Nothing can be put together: each task is a range.
  CHECK(tcrt_count_ranges(5, 1, 32, 2) == 5);
  CHECK(tcrt_count_ranges(5, 0, 32, 2) == 5);
  // No more ranges than tasks, nor than asked for.
  for (int64_t tasks = 0; tasks < 200; ++tasks)
    for (int64_t grain = 0; grain < 20; ++grain)
      for (int64_t threads = 1; threads < 20; ++threads) {
        const int64_t ranges = tcrt_count_ranges(tasks, grain, 32, threads);
        if (ranges > tasks || ranges > 32 || ranges < 0 ||
            (ranges > threads && ranges < 32 && ranges < tasks && ranges % threads != 0))
          FAIL(tasks << " tasks, grain " << grain << ", " << threads << " threads: " << ranges);
      }
}

TEST_CASE("helpers are placed on cores of their own, without the caller's") {
  for (int cores : {2, 3, 7, 64}) {
    cpu_set_t usable;
    CPU_ZERO(&usable);
    for (int i = 0; i < cores; ++i)
      CPU_SET(3 * i + 1, &usable);
    for (int caller : {1, 3 * cores - 2, 0}) { // the last one is no usable core, as where the mask has just changed
      const int others = cores - (caller != 0);
      for (uint32_t helpers : {1u, 2u, 5u, 63u, 200u}) {
        std::vector<int> owners(CPU_SETSIZE);
        for (uint32_t i = 0; i < helpers; ++i) {
          cpu_set_t own;
          tcrt_cores_of_helper(&usable, caller, helpers, i, &own);
          CHECK(CPU_COUNT(&own) > 0);
          for (int core = 0; core < CPU_SETSIZE; ++core)
            owners[core] += CPU_ISSET(core, &own) != 0;
        }
        const auto [least, most] = [&] {
          int least = 1000, most = 0;
          for (int i = 0; i < cores; ++i)
            if (3 * i + 1 != caller)
              least = std::min(least, owners[3 * i + 1]), most = std::max(most, owners[3 * i + 1]);
          return std::pair(least, most);
        }();
        CHECK(std::count_if(owners.begin(), owners.end(), [](int n) { return n > 0; }) == others);
        CHECK(least >= 1);
        CHECK(most <= int(helpers + others - 1) / others);
        if (caller)
          CHECK(owners[caller] == 0);
      }
    }
  }
}

TEST_CASE("a forked process destroys a pool without its helpers") {
  tcrt_pool_t *pool = tcrt_pool_create();
  REQUIRE(pool);
  tcrt_pool_grow(pool, 3);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (!child) {
    alarm(20); // a wait for threads that are not there would have no end
    tcrt_pool_destroy(pool);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  tcrt_pool_destroy(pool);
}
