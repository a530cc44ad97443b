//===- Economics.cpp - whether compiling pays: the arithmetic -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Economics.h"
#include "tc/Support/PrintfText.h"

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace tc;
using namespace tc::bench;

namespace {

bool isTieOf(double ratio, double low, double high) {
  return (low <= 1 && high >= 1) || std::fabs(ratio - 1) < kLeastDifference;
}

/// `one`, which takes 1 where `other` takes `ratio`, between `low` and `high`.
Comparison compare(const EngineCost &one, const EngineCost &other, double ratio, double low, double high,
                   double runsPerDay) {
  Comparison result;
  result.name = other.name;
  result.ratio = ratio;
  result.low = low;
  result.high = high;
  result.moreSeconds = one.onceSeconds - other.onceSeconds;
  result.gainSeconds = one.runSeconds * (ratio - 1);
  result.gainSecondsPerDay = result.gainSeconds * runsPerDay;
  if (isTieOf(ratio, low, high))
    return result;
  const bool isFaster = ratio > 1;
  const bool isLater = result.moreSeconds > 0;
  result.outcome = isFaster ? (isLater ? Comparison::Outcome::Later : Comparison::Outcome::AtOnce)
                            : (isLater ? Comparison::Outcome::Never : Comparison::Outcome::FewRuns);
  if (result.outcome == Comparison::Outcome::AtOnce || result.outcome == Comparison::Outcome::Never)
    return result;
  auto runsWith = [&](double anyRatio) { return result.moreSeconds / (one.runSeconds * (anyRatio - 1)); };
  result.breakEvenRuns = runsWith(ratio);
  result.breakEvenEarliest = runsWith(isFaster ? high : low);
  result.breakEvenLatest = runsWith(isFaster ? low : high);
  return result;
}

/// Which line is the lowest where.
std::vector<Stretch> findCheapest(const std::vector<EngineCost> &costs) {
  const EngineCost *at = &costs.front();
  for (const EngineCost &cost : costs)
    if (cost.onceSeconds < at->onceSeconds || (cost.onceSeconds == at->onceSeconds && cost.runSeconds < at->runSeconds))
      at = &cost;
  std::vector<Stretch> stretches = {{at->name, 0}};
  for (;;) {
    const EngineCost *next = nullptr;
    double least = 0;
    for (const EngineCost &cost : costs) {
      if (cost.runSeconds >= at->runSeconds)
        continue;
      const double runs = (cost.onceSeconds - at->onceSeconds) / (at->runSeconds - cost.runSeconds);
      if (!next || runs < least || (runs == least && cost.runSeconds < next->runSeconds)) {
        next = &cost;
        least = runs;
      }
    }
    if (!next)
      return stretches;
    stretches.push_back({next->name, std::max(least, stretches.back().fromRuns)});
    at = next;
  }
}

} // namespace

bool EngineCost::isTie() const { return isTieOf(ratio, low, high); }

std::vector<EngineCost> tc::bench::costsOf(const ModelResult &model) {
  std::vector<EngineCost> costs;
  for (const EngineResult &engine : model.engines) {
    const bool isPeer = engine.kind == EngineKind::Peer;
    if (!engine.problem.empty() || (!isPeer && !engine.start.compileSeconds))
      continue;
    EngineCost cost;
    cost.name = engine.name;
    cost.kind = engine.kind;
    cost.ratio = engine.ratio;
    cost.low = engine.ratioLow;
    cost.high = engine.ratioHigh;
    cost.runSeconds = 1e-6 * model.engines.front().times.medianUs * engine.ratio;
    // The first run is slower than those that are timed.
    cost.startSeconds = (isPeer ? engine.start.buildSeconds : engine.start.loadSeconds) +
                        std::max(0.0, 1e-6 * engine.start.firstRunUs - cost.runSeconds);
    cost.onceSeconds = cost.startSeconds + (isPeer ? 0 : *engine.start.compileSeconds);
    costs.push_back(cost);
  }
  return costs;
}

Economics tc::bench::assess(std::vector<EngineCost> costs, double runsPerDay) {
  Economics result;
  result.runsPerDay = runsPerDay;
  if (costs.empty() || costs.front().kind != EngineKind::Tc)
    return result;
  const EngineCost &own = costs.front();
  for (const EngineCost &cost : costs) {
    if (cost.kind == EngineKind::Mode)
      result.modes.push_back(compare(cost, own, 1 / cost.ratio, 1 / cost.high, 1 / cost.low, runsPerDay));
    else if (cost.kind != EngineKind::Tc)
      result.peers.push_back(compare(own, cost, cost.ratio, cost.low, cost.high, runsPerDay));
    if (cost.kind == EngineKind::Mode)
      result.modes.back().name = cost.name;
  }
  // What cannot be told from tc's own speed is no reason for another engine at any number of runs.
  for (EngineCost &cost : costs)
    if (cost.isTie())
      cost.runSeconds = costs.front().runSeconds;
  // Of a mode, neither is a second of compiling.
  std::vector<EngineCost> candidates;
  std::copy_if(costs.begin(), costs.end(), std::back_inserter(candidates),
               [](const EngineCost &cost) { return cost.kind != EngineKind::Mode || !cost.isTie(); });
  result.cheapest = findCheapest(candidates);
  result.costs = std::move(costs);
  return result;
}

const Comparison *Economics::find(const std::string &name) const {
  for (const std::vector<Comparison> *all : {&peers, &modes})
    for (const Comparison &comparison : *all)
      if (comparison.name == name)
        return &comparison;
  return nullptr;
}

FusionTotals tc::bench::fusionOf(const Report &report, const ModelResult &model) {
  FusionTotals totals;
  for (const KernelResult &kernel : model.kernels) {
    if (!kernel.unfusedLaunches)
      continue;
    ++totals.kernels;
    totals.launches += kernel.calls;
    totals.unfusedLaunches += kernel.calls * double(kernel.unfusedLaunches);
    const double least = report.roofline().leastUs(kernel.flops, kernel.bytes), unfused = report.leastUnfusedUs(kernel);
    if (unfused <= 0 || !kernel.bytes)
      continue;
    totals.bytes += kernel.calls * double(kernel.bytes);
    totals.unfusedBytes += kernel.calls * double(kernel.unfusedBytes);
    totals.leastUs += kernel.calls * least;
    totals.unfusedLeastUs += kernel.calls * unfused;
    totals.us += kernel.us;
  }
  return totals;
}

std::string tc::bench::durationText(double seconds) {
  const double size = std::fabs(seconds);
  const std::pair<double, const char *> units[] = {{86400, "days"}, {3600, "h"},  {60, "min"},
                                                   {1, "s"},        {1e-3, "ms"}, {1e-6, "us"}};
  for (const auto &[unit, name] : units)
    // Two of a unit are easier to read than one and a half, except of seconds and below.
    if (size >= (unit > 1 ? 2 * unit : unit) || unit == 1e-6) {
      const double value = seconds / unit;
      return format(std::fabs(value) < 9.95 ? "%.1f %s" : "%.0f %s", value, name);
    }
  return "";
}

std::string tc::bench::countText(double count) {
  count = std::max(0.0, std::ceil(count));
  if (count >= 1e15)
    return format("%.1e", count);
  // Three digits are more than the figures hold.
  if (const double digits = count > 0 ? std::floor(std::log10(count)) + 1 : 1; digits > 3) {
    const double unit = std::pow(10, digits - 3);
    count = std::round(count / unit) * unit;
  }
  std::string text = format("%.0f", count);
  for (size_t at = text.size(); at > 3;)
    text.insert(at -= 3, ",");
  return text;
}
