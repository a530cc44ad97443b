//===- BudgetSearch.cpp - how little has to stay as it is for an error to be within a budget ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BudgetSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cmath>

using namespace tc::driver;
using llvm::BitVector;

// Into so many a part is cut: with two, n elements of which each makes an error would take 2 n measurements.
static constexpr size_t kCuts = 4;
// What quiet parts may take of the budget, in squares.
static constexpr double kShareOfQuiet = 0.25;
// So often it is measured whether more of what was too much together fits.
static constexpr unsigned kAdditions = 24;
// Beside that of f32.
static constexpr double kLeastError = 1e-9;

llvm::Expected<BudgetSearch> tc::driver::findFewest(size_t most, double budget,
                                                    llvm::function_ref<llvm::Expected<double>(size_t)> measure,
                                                    size_t guess) {
  BudgetSearch search;
  size_t last = 0;
  auto isKept = [&](size_t count) -> llvm::Expected<bool> {
    llvm::Expected<double> error = measure(count);
    if (!error)
      return error.takeError();
    last = count;
    search.error = *error;
    if (count == 0)
      search.ofNone = *error;
    return *error <= budget;
  };
  guess = std::min(guess, most);
  search.left = guess;
  llvm::Expected<bool> kept = isKept(guess);
  if (!kept)
    return kept.takeError();
  // The fewest are from `least` to `left`.
  size_t least = 0;
  if (*kept) {
    for (size_t distance = 1; search.left > least; distance *= 2) {
      const size_t fewer = guess - std::min(distance, guess);
      kept = isKept(fewer);
      if (!kept)
        return kept.takeError();
      (*kept ? search.left : least) = *kept ? fewer : fewer + 1;
      if (!*kept)
        break;
    }
  } else {
    search.isKept = false;
    for (size_t distance = 1; !search.isKept && search.left < most; distance *= 2) {
      least = search.left + 1;
      search.left = std::min(guess + distance, most);
      kept = isKept(search.left);
      if (!kept)
        return kept.takeError();
      search.isKept = *kept;
    }
  }
  while (search.isKept && search.left > least) {
    const size_t middle = least + (search.left - least) / 2;
    kept = isKept(middle);
    if (!kept)
      return kept.takeError();
    (*kept ? search.left : least) = *kept ? middle : middle + 1;
  }
  if (last != search.left) {
    kept = isKept(search.left);
    if (!kept)
      return kept.takeError();
  }
  return search;
}

bool tc::driver::isQuiet(double error, double budget, size_t part, size_t all) {
  return error * error * double(all) <= kShareOfQuiet * budget * budget * double(part);
}

llvm::Expected<std::vector<MeasuredPart>>
tc::driver::splitByError(size_t size, double budget,
                         llvm::function_ref<llvm::Expected<double>(size_t, size_t)> measure) {
  std::vector<MeasuredPart> parts{{0, size, kNotKnown}};
  while (true) {
    auto larger = [&](const MeasuredPart &a, const MeasuredPart &b) {
      auto sizeToCut = [&](const MeasuredPart &part) {
        return isQuiet(part.error, budget, part.size(), size) ? 1 : part.size();
      };
      return sizeToCut(a) < sizeToCut(b);
    };
    const auto largest = llvm::max_element(parts, larger);
    if (largest->size() < 2 || isQuiet(largest->error, budget, largest->size(), size))
      return parts;
    std::vector<MeasuredPart> cuts;
    // Cuts of one and two elements would ask again of those of two.
    const size_t count = largest->size() <= 2 * kCuts ? largest->size() : kCuts;
    for (size_t i = 0; i < count; ++i) {
      const size_t begin = largest->begin + largest->size() * i / count;
      const size_t end = largest->begin + largest->size() * (i + 1) / count;
      llvm::Expected<double> error = measure(begin, end);
      if (!error)
        return error.takeError();
      if (*error == kNotKnown)
        return parts;
      cuts.push_back({begin, end, *error});
    }
    parts.insert(parts.erase(largest), cuts.begin(), cuts.end());
  }
}

namespace {

/// One search for a mixture.
class Mixture {
public:
  Mixture(llvm::ArrayRef<double> gains, double budget,
          llvm::function_ref<llvm::Expected<double>(const BitVector &)> together)
      : gains(gains), budget(budget), together(together), best(gains.size()) {}

  double getGain(const BitVector &which) const {
    double gain = 0;
    for (unsigned i : which.set_bits())
      gain += gains[i];
    return gain;
  }
  llvm::Expected<double> tryThese(const BitVector &which) {
    llvm::Expected<double> error = together(which);
    if (error && *error <= budget && getGain(which) >= getGain(best)) {
      best = which;
      ofBest = *error;
    }
    return error;
  }
  /// Adds to the best what still fits; of `parts` the first are worth most. Those that fit by their errors alone are
  /// tried together, and less of them where that is too much.
  llvm::Error addMost(llvm::ArrayRef<std::pair<BitVector, double>> parts) {
    llvm::SmallVector<size_t> pending = llvm::to_vector(llvm::seq(parts.size()));
    for (unsigned tries = 0; tries < kAdditions;) {
      llvm::SmallVector<size_t> taken;
      double squares = ofBest * ofBest;
      for (size_t i : pending) {
        const double error = parts[i].second;
        if (squares + error * error > budget * budget)
          continue;
        squares += error * error;
        taken.push_back(i);
      }
      if (taken.empty())
        return llvm::Error::success();
      while (tries++ < kAdditions) {
        BitVector which = best;
        for (size_t i : taken)
          which |= parts[i].first;
        llvm::Expected<double> error = tryThese(which);
        if (!error || *error == kNotKnown)
          return error.takeError();
        if (*error <= budget || taken.size() == 1)
          break;
        taken.truncate(taken.size() / 2);
      }
      llvm::erase_if(pending, [&](size_t i) { return llvm::is_contained(taken, i); });
    }
    return llvm::Error::success();
  }

  llvm::ArrayRef<double> gains;
  const double budget;
  llvm::function_ref<llvm::Expected<double>(const BitVector &)> together;
  BitVector best;
  double ofBest = 0;
};

} // namespace

llvm::Expected<BitVector>
tc::driver::findMixture(llvm::ArrayRef<double> gains, double budget,
                        llvm::function_ref<llvm::Expected<double>(const BitVector &)> alone,
                        llvm::function_ref<llvm::Expected<double>(const BitVector &)> together) {
  const size_t size = gains.size();
  Mixture mixture(gains, budget, together);
  if (size == 0)
    return mixture.best;
  // Often all of them may change.
  llvm::Expected<double> ofAll = mixture.tryThese(BitVector(size, true));
  if (!ofAll)
    return ofAll.takeError();
  if (*ofAll <= budget || *ofAll == kNotKnown)
    return mixture.best;
  // Elements of one gain are often of one kind, and their errors alike.
  llvm::SmallVector<size_t> order = llvm::to_vector(llvm::seq(size));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return gains[a] > gains[b]; });
  auto setOf = [&](size_t begin, size_t end) {
    BitVector which(size);
    for (size_t i : llvm::ArrayRef(order).slice(begin, end - begin))
      which.set(i);
    return which;
  };
  auto split = splitByError(size, budget, [&](size_t begin, size_t end) { return alone(setOf(begin, end)); });
  if (!split)
    return split.takeError();
  std::vector<std::pair<BitVector, double>> parts;
  for (const MeasuredPart &part : *split)
    if (part.error <= budget)
      parts.emplace_back(setOf(part.begin, part.end), part.error);
  if (parts.empty())
    return mixture.best;
  auto worth = [&](const std::pair<BitVector, double> &part) {
    const double error = std::max(part.second, kLeastError);
    return mixture.getGain(part.first) / (error * error);
  };
  llvm::stable_sort(parts, [&](const auto &a, const auto &b) { return worth(a) < worth(b); });
  auto measure = [&](size_t left) {
    BitVector which(size);
    for (const auto &part : llvm::ArrayRef(parts).drop_front(left))
      which |= part.first;
    return mixture.tryThese(which);
  };
  // As many as fit by their errors alone.
  size_t guess = parts.size();
  for (double squares = 0; guess > 0; --guess) {
    squares += parts[guess - 1].second * parts[guess - 1].second;
    if (squares > budget * budget)
      break;
  }
  llvm::Expected<BudgetSearch> found = findFewest(parts.size(), budget, measure, guess);
  if (!found)
    return found.takeError();
  // Behind the first that is too much there may be others that are not.
  parts.resize(found->left);
  std::reverse(parts.begin(), parts.end());
  if (llvm::Error error = mixture.addMost(parts))
    return std::move(error);
  return mixture.best;
}
