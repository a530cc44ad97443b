//===- Ranges.cpp - ranges of values that were seen ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Ranges.h"

#include <algorithm>
#include <cmath>

using namespace tc;
using namespace tc::driver;

static constexpr size_t kBins = 2048;

std::optional<RangeRule> tc::driver::parseRangeRule(llvm::StringRef text) {
  RangeRule rule;
  auto [name, number] = text.split(':');
  if (name == "percentile") {
    rule.kind = RangeRule::Percentile;
    if (text.contains(':') && (number.getAsDouble(rule.percent) || !(rule.percent > 50 && rule.percent <= 100)))
      return std::nullopt;
    return rule;
  }
  if (text == "entropy")
    rule.kind = RangeRule::Entropy;
  else if (text != "minmax")
    return std::nullopt;
  return rule;
}

void SeenRange::look(llvm::ArrayRef<float> values) {
  for (float value : values) {
    finite &= std::isfinite(value);
    low = std::min(low, double(value));
    high = std::max(high, double(value));
  }
}

void SeenRange::count(llvm::ArrayRef<float> values) {
  if (!isFinite() || low == high)
    return;
  bins.resize(kBins);
  const double perValue = double(kBins) / (high - low);
  for (float value : values)
    if (value == 0)
      ++zeros;
    else
      ++bins[std::clamp<int64_t>(int64_t((value - low) * perValue), 0, kBins - 1)];
}

std::pair<double, double> SeenRange::cutTails(double percent) const {
  uint64_t all = zeros;
  for (uint64_t count : bins)
    all += count;
  // Half of what is left out at either end.
  const double most = double(all) * (1 - percent / 100) / 2;
  size_t first = 0, last = bins.size();
  for (uint64_t sum = 0; first + 1 < last && double(sum + bins[first]) <= most; ++first)
    sum += bins[first];
  for (uint64_t sum = 0; last > first + 1 && double(sum + bins[last - 1]) <= most; --last)
    sum += bins[last - 1];
  return {binEdge(first), binEdge(last)};
}

/// Of the ranges [-t, t] within what was seen the one whose 256 steps tell most of how often values occur: the least
/// divergence (Kullback and Leibler) of what the steps repeat from what occurs, where the ends hold what is beyond.
std::pair<double, double> SeenRange::keepInformation() const {
  constexpr int kCandidates = 64;
  constexpr size_t kSteps = 256;
  const double most = std::max(std::abs(low), std::abs(high));
  double best = std::numeric_limits<double>::infinity();
  std::pair<double, double> range{low, high};
  for (int candidate = kCandidates / 8; candidate <= kCandidates; ++candidate) {
    const double t = most * candidate / kCandidates, from = std::max(low, -t), to = std::min(high, t);
    const double perBin = double(bins.size()) / (high - low);
    const size_t first = size_t((from - low) * perBin),
                 last = std::min(bins.size(), size_t(std::ceil((to - low) * perBin)));
    if (last <= first || last - first < kSteps)
      continue;
    std::vector<double> p(bins.begin() + first, bins.begin() + last);
    const std::vector<double> inside = p;
    for (size_t i = 0; i < bins.size(); ++i)
      if (i < first || i >= last)
        p[i < first ? 0 : p.size() - 1] += double(bins[i]);
    double divergence = 0, sumP = 0, sumQ = 0;
    std::vector<double> q(p.size());
    for (size_t step = 0; step < kSteps; ++step) {
      const size_t begin = step * p.size() / kSteps, end = (step + 1) * p.size() / kSteps;
      double sum = 0, filled = 0;
      for (size_t i = begin; i < end; ++i) {
        sum += inside[i];
        filled += p[i] > 0;
      }
      for (size_t i = begin; i < end; ++i)
        q[i] = p[i] > 0 ? sum / filled : 0;
    }
    for (size_t i = 0; i < p.size(); ++i) {
      sumP += p[i];
      sumQ += q[i];
    }
    // A step that nothing falls into, and that stands for something, is as if a ten-thousandth did.
    for (size_t i = 0; i < p.size() && sumQ > 0; ++i)
      if (p[i] > 0)
        divergence += p[i] / sumP * std::log(p[i] / sumP / std::max(q[i] / sumQ, 1e-4 / double(p.size())));
    if (sumQ > 0 && divergence < best) {
      best = divergence;
      range = {from, to};
    }
  }
  return range;
}

std::pair<double, double> SeenRange::getRange(const RangeRule &rule) const {
  std::pair<double, double> range{low, high};
  if (!bins.empty() && rule.kind == RangeRule::Percentile)
    range = cutTails(rule.percent);
  else if (!bins.empty() && rule.kind == RangeRule::Entropy)
    range = keepInformation();
  // 0 is exact: padding and what relu leaves are.
  return {std::min(range.first, 0.0), std::max(range.second, 0.0)};
}

ByteScale SeenRange::getScale(std::pair<double, double> range) {
  ByteScale scale;
  scale.scale = float((range.second - range.first) / 255);
  scale.isKnown = scale.scale > 1e-30f;
  if (!scale.isKnown)
    scale.scale = 1;
  scale.zero = std::clamp<int64_t>(std::llround(-range.first / scale.scale), 0, 255);
  return scale;
}
