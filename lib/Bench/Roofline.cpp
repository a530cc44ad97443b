//===- Roofline.cpp - what the machine could do at most -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Roofline.h"

#include "MicroBenchmarks.h"
#include "tc/Run/Session.h"
#include "tc/Run/Tensor.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

using namespace tc::bench;
using tc::run::Clock;

namespace {

const tc_micro_t &microBenchmarks() {
  uint64_t features = tcrt_cpu_features();
  if (features & TCRT_CPU_AVX512F)
    return tc_micro_avx512;
  return (features & TCRT_CPU_AVX2) && (features & TCRT_CPU_FMA) ? tc_micro_avx2 : tc_micro_sse2;
}

struct Cache {
  int level;
  uint64_t bytes;
};

/// Data caches of the first CPU as the system describes them; empty where it does not.
std::vector<Cache> readCaches() {
  std::vector<Cache> caches;
  for (int index = 0;; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/", type, size;
    int level;
    if (!(std::ifstream(folder + "level") >> level) || !(std::ifstream(folder + "type") >> type) ||
        !(std::ifstream(folder + "size") >> size))
      return caches;
    char *unit;
    uint64_t bytes = std::strtoull(size.c_str(), &unit, 10);
    bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0;
    if (type != "Instruction" && bytes)
      caches.push_back({level, bytes});
  }
}

struct Free {
  void operator()(void *data) const { std::free(data); }
};
using Buffer = std::unique_ptr<uint8_t, Free>;

Buffer allocate(uint64_t bytes) {
  Buffer buffer(static_cast<uint8_t *>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
  if (!buffer)
    throw tc::run::Failure{5, "tc-bench: error: no memory is left to measure the machine's bandwidth"};
  return buffer;
}

/// Sum over threads of amount per second, the best of some windows. `work(thread)` does a short piece of work and
/// returns its amount; each thread calls it over and over, between a common start and a common end.
double bestRate(uint32_t threads, const std::function<double(uint32_t thread)> &work) {
  const auto window = std::chrono::milliseconds(30);
  double best = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {
    std::atomic<uint32_t> ready{0};
    std::atomic<bool> stop{false};
    std::vector<double> rates(threads);
    auto run = [&](uint32_t thread) {
      work(thread); // pages and clock rate
      ++ready;
      while (ready.load() < threads)
        std::this_thread::yield();
      Clock::time_point start = Clock::now(), end;
      double amount = 0;
      do {
        amount += work(thread);
        end = Clock::now();
      } while (!stop.load(std::memory_order_relaxed) && end - start < window);
      stop = true;
      rates[thread] = amount / std::chrono::duration<double>(end - start).count();
    };
    std::vector<std::thread> helpers;
    try {
      for (uint32_t i = 1; i < threads; ++i)
        helpers.emplace_back(run, i);
    } catch (const std::system_error &) {
      // The system gives no more threads.
    }
    run(0);
    for (std::thread &helper : helpers)
      helper.join();
    double rate = 0;
    for (double one : rates)
      rate += one;
    best = std::max(best, rate);
  }
  return best;
}

void measure(MemoryLevel &level, uint32_t threads, const tc_micro_t &micro) {
  const uint64_t chunk = 512; // what the loops take at once
  uint64_t each = std::max<uint64_t>(level.workingSetBytes / threads / chunk * chunk, 16 * chunk);
  level.workingSetBytes = each * threads;
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < threads; ++i) {
    buffers.push_back(allocate(each));
    std::fill_n(buffers.back().get(), each, uint8_t(1));
  }
  // Enough passes that taking the time does not count.
  uint64_t passes = std::max<uint64_t>((uint64_t(1) << 20) / each, 1);
  level.readGbs = 1e-9 * bestRate(threads, [&](uint32_t thread) {
                    float result;
                    for (uint64_t i = 0; i < passes; ++i)
                      micro.read(buffers[thread].get(), each, &result);
                    volatile float sink = result;
                    (void)sink;
                    return double(each * passes);
                  });
  uint64_t half = each / 2 / chunk * chunk;
  level.copyGbs = 1e-9 * bestRate(threads, [&](uint32_t thread) {
                    for (uint64_t i = 0; i < passes; ++i)
                      micro.copy(buffers[thread].get() + half, buffers[thread].get(), half);
                    return double(2 * half * passes);
                  });
}

} // namespace

const MemoryLevel &Roofline::levelFor(uint64_t bytes) const {
  for (const MemoryLevel &level : levels)
    if (bytes <= level.capacityBytes)
      return level;
  return levels.back();
}

double Roofline::leastUs(uint64_t flops, uint64_t bytes) const {
  return std::max(double(flops) / peakGflops, double(bytes) / levelFor(bytes).gbs()) / 1000;
}

bool Roofline::isMemoryBound(uint64_t flops, uint64_t bytes) const {
  return double(bytes) / levelFor(bytes).gbs() >= double(flops) / peakGflops;
}

Roofline tc::bench::measureRoofline(uint32_t threads) {
  const tc_micro_t &micro = microBenchmarks();
  Roofline roofline;
  roofline.threads = threads;
  roofline.instructions = micro.name;
  roofline.peakGflops = 1e-9 * bestRate(threads, [&](uint32_t) {
                          float result;
                          double flops = micro.multiply_add(20000, &result);
                          volatile float sink = result;
                          (void)sink;
                          return flops;
                        });
  // Half of a cache is measured, so that nothing else in it matters. L2 is each core's own, L3 is shared.
  uint64_t largest = 0, held = 0;
  for (const Cache &cache : readCaches()) {
    largest = std::max(largest, cache.bytes);
    uint64_t capacity = cache.level == 2 ? cache.bytes * threads : cache.bytes;
    if (cache.level < 2 || capacity / 2 <= held)
      continue;
    held = capacity;
    roofline.levels.push_back(
        {"L" + std::to_string(cache.level), capacity, std::min(capacity / 2, uint64_t(256) << 20)});
  }
  // Four times the last cache, within what a shared machine can spare.
  uint64_t memory = std::min(std::max<uint64_t>(4 * largest, uint64_t(64) << 20), uint64_t(512) << 20);
  roofline.levels.push_back({"memory", UINT64_MAX, memory});
  for (MemoryLevel &level : roofline.levels)
    measure(level, threads, micro);
  return roofline;
}
