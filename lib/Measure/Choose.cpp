//===- Choose.cpp - which schedule of a kernel is the fastest -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Measure/Choose.h"

#include "tc/Support/PrintfText.h"

#include <algorithm>
#include <utility>

using namespace tc;
using namespace tc::measure;

namespace {

// A schedule must take at most this share of the default's time to be worth a change; all else is noise.
constexpr double kWorth = 0.97;
// Seconds, and pairs of runs at least, for a candidate and for the second measurement of the best one.
constexpr double kTrySeconds = 0.04, kVerifySeconds = 0.15;
constexpr size_t kTryPairs = 3, kVerifyPairs = 11;

} // namespace

Choice tc::measure::choose(Runner &first, const Tensors &tensors, const Contest &contest) {
  Choice choice;
  std::optional<Runner> ofBest;
  size_t best = 0;
  double bestRatio = kWorth, defaultSeconds = 0;
  auto tell = [&](const char *verb, const std::string &what) {
    if (contest.tell)
      contest.tell(choice.tried, verb, what);
  };
  for (; choice.tried < contest.count; ++choice.tried) {
    if (contest.begin && !contest.begin(choice.tried, 1e6 * defaultSeconds * (best ? bestRatio : 1)))
      break;
    std::string why;
    std::optional<Runner> runner = contest.open(choice.tried, why);
    if (!runner) {
      tell("not measured", why);
      continue;
    }
    // Tests of generators for GPUs need one, and most machines that run tests have none.
    if (const double difference = first.isOnGpu() ? runner->differFrom(first, tensors) : 0; difference > 1) {
      tell("not measured",
           format("its numbers differ from the default's by %.1e of what rounding explains", difference));
      if (!first.getFailure().empty())
        break;
      continue;
    }
    const Comparison comparison = compare(first, *runner, kTrySeconds, kTryPairs);
    if (!first.getFailure().empty())
      break;
    defaultSeconds = defaultSeconds ? std::min(defaultSeconds, comparison.leastA) : comparison.leastA;
    tell("measured", format("%.1f us, default %.1f us", comparison.leastB * 1e6, comparison.leastA * 1e6));
    if (comparison.leastRatio >= bestRatio)
      continue;
    bestRatio = comparison.leastRatio;
    best = choice.tried;
    ofBest = std::move(runner);
  }
  choice.us = choice.defaultUs = defaultSeconds * 1e6;
  if (best && first.getFailure().empty()) {
    const Comparison comparison = compare(first, *ofBest, kVerifySeconds, kVerifyPairs);
    if (comparison.leastRatio < kWorth && comparison.medianRatio < kWorth && comparison.fifthRatio < 1) {
      choice.best = best;
      choice.us = comparison.leastB * 1e6;
      choice.defaultUs = comparison.leastA * 1e6;
    }
  }
  // After a fault no kernel runs, as good as it may be.
  choice.failure = first.getFailure();
  return choice;
}

std::string tc::measure::describeChoice(const Choice &choice, size_t count, const std::string &where,
                                        const std::string &change) {
  if (choice.best)
    return format("measured: %.1f us instead of %.1f us (", choice.us, choice.defaultUs) + where + "): " + change;
  return format("measured: the default is the fastest of %zu schedules, %.1f us (", count, choice.us) + where + ")";
}

std::string tc::measure::describeRecord(double us, double defaultUs, const std::string &where,
                                        const std::string &change) {
  if (change.empty())
    return format("recorded: the default is the fastest schedule, %.1f us (", us) + where + ")";
  return format("recorded: %.1f us instead of %.1f us (", us, defaultUs) + where + "): " + change;
}

std::string tc::measure::describeLoss(const std::string &failure, bool onGpu) {
  return "a kernel stopped the " + std::string(onGpu ? "GPU" : "run") + ": " + failure;
}

void Gain::add(double ofKernel, double byDefault) {
  kernels += byDefault > 0;
  better += ofKernel < byDefault;
  us += ofKernel;
  defaultUs += byDefault;
}

std::string Gain::describe(double seconds) const {
  const std::string cost = format("; tuning took %.1f s", seconds);
  if (!kernels)
    return "no kernel was measured" + cost;
  if (!better)
    return format("the default schedules of %zu measured kernels are the fastest", kernels) + cost;
  return format("%zu of %zu measured kernels got a faster schedule: %.1f us in all instead of %.1f us, %.1f %% less",
                better, kernels, us, defaultUs, 100 * (1 - us / defaultUs)) +
         cost;
}
