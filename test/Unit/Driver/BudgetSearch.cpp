//===- BudgetSearch.cpp -------------------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Driver/BudgetSearch.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace tc::driver;
using llvm::BitVector;

namespace {

struct Asked {
  std::vector<size_t> counts;
  BudgetSearch search;
};

/// Errors of 10 less for each that stays.
Asked find(size_t most, double budget, double ofNone, size_t guess = 0) {
  Asked asked;
  auto measure = [&](size_t left) -> llvm::Expected<double> {
    CHECK(left <= most);
    asked.counts.push_back(left);
    return ofNone - 10 * double(left);
  };
  llvm::Expected<BudgetSearch> found = findFewest(most, budget, measure, guess);
  REQUIRE(bool(found));
  asked.search = *found;
  return asked;
}

/// A model whose errors add up in squares, and which counts how often it is asked.
struct Model {
  std::vector<double> errors, gains;
  double budget = 1;
  size_t mostAlone = 1000000, most = 1000000; ///< what there is time for
  size_t alone = 0, together = 0;

  explicit Model(size_t size, double error) : errors(size, error), gains(size, 1) {}
  double errorOf(const BitVector &which) const {
    double squares = 0;
    for (unsigned i : which.set_bits())
      squares += errors[i] * errors[i];
    return std::sqrt(squares);
  }
  double gainOf(const BitVector &which) const {
    double gain = 0;
    for (unsigned i : which.set_bits())
      gain += gains[i];
    return gain;
  }
  BitVector find() {
    auto measure = [&](const BitVector &which, size_t &count, size_t limit) -> llvm::Expected<double> {
      const bool isOver = count >= limit || alone + together >= most;
      ++count;
      return isOver ? kNotKnown : errorOf(which);
    };
    auto found = findMixture(
        gains, budget, [&](const BitVector &which) { return measure(which, alone, mostAlone); },
        [&](const BitVector &which) { return measure(which, together, most); });
    REQUIRE(bool(found));
    CHECK(errorOf(*found) <= budget);
    return *found;
  }
};

} // namespace

TEST_CASE("the fewest that keep a budget are found, by few measurements", "[driver]") {
  for (size_t most : {1, 2, 3, 7, 8, 9, 100})
    for (size_t fewest = 0; fewest <= most; ++fewest) {
      const Asked asked = find(most, 5, 10 * double(fewest) + 5);
      CHECK(asked.search.isKept);
      CHECK(asked.search.left == fewest);
      CHECK(asked.search.error == 5);
      CHECK(asked.search.ofNone == 10 * double(fewest) + 5);
      CHECK(asked.counts.back() == fewest);
      CHECK(asked.counts.size() <= 16);
    }
}

TEST_CASE("a guess is asked first, and a good one saves most of the rest", "[driver]") {
  for (size_t most : {1, 2, 7, 100})
    for (size_t fewest = 0; fewest <= most; ++fewest)
      for (size_t guess = 0; guess <= most + 1; ++guess) {
        const Asked asked = find(most, 5, 10 * double(fewest) + 5, guess);
        CHECK(asked.search.isKept);
        CHECK(asked.search.left == fewest);
        CHECK(asked.search.error == 5);
        CHECK(asked.counts.front() == std::min(guess, most));
        CHECK(asked.counts.back() == fewest);
        CHECK(asked.counts.size() <= 17);
        if (guess == fewest)
          CHECK(asked.counts.size() <= 3);
      }
  CHECK(!find(7, 5, 76, 3).search.isKept);
  CHECK(find(7, 5, 76, 3).search.left == 7);
}

TEST_CASE("a budget that the most do not keep is none", "[driver]") {
  for (size_t most : {0, 1, 2, 5}) {
    const Asked asked = find(most, 5, 10 * double(most) + 6);
    CHECK(!asked.search.isKept);
    CHECK(asked.search.left == most);
    CHECK(asked.search.error == 6);
    CHECK(asked.counts.back() == most);
  }
}

TEST_CASE("what is kept with none asks once, and what fails ends the search", "[driver]") {
  CHECK(find(100, 5, 5).counts.size() == 1);
  size_t asked = 0;
  auto fails = findFewest(8, 5, [&](size_t left) -> llvm::Expected<double> {
    ++asked;
    if (left == 2)
      return llvm::createStringError("a run failed");
    return 100;
  });
  CHECK(!fails);
  CHECK(llvm::toString(fails.takeError()) == "a run failed");
  CHECK(asked == 3);
}

TEST_CASE("a few elements that make the error are found by few measurements", "[driver]") {
  Model one(200, 0.01);
  one.errors[77] = 3;
  const BitVector most = one.find();
  CHECK(most.count() == 199);
  CHECK(!most.test(77));
  CHECK(one.alone <= 16);
  CHECK(one.together <= 4);

  Model three(200, 0.01);
  for (size_t i : {0, 101, 199})
    three.errors[i] = 3;
  CHECK(three.find().count() == 197);
  CHECK(three.alone <= 48);

  // Those of one kind are asked together, wherever they stand.
  Model kind(256, 0.01);
  for (size_t i = 3; i < 256; i += 4) {
    kind.errors[i] = 3;
    kind.gains[i] = 2;
  }
  CHECK(kind.find().count() == 192);
  CHECK(kind.alone <= 64 + 32);
}

TEST_CASE("nothing is asked twice of what may change as a whole, nor of what may not at all", "[driver]") {
  Model all(100, 0.09);
  CHECK(all.find().count() == 100);
  CHECK(all.together == 1);
  CHECK(all.alone == 0);
  Model none(64, 2);
  CHECK(none.find().none());
  CHECK(none.together == 1);
  CHECK(none.alone == 64 + 16 + 4);
  CHECK(Model(1, 2).find().none());
  CHECK(Model(0, 2).find().none());
}

TEST_CASE("of alike elements as many change as fit, of others those of most gain for their error", "[driver]") {
  Model alike(100, 0.125); // 64 fit
  CHECK(alike.find().count() == 64);
  CHECK(alike.alone <= 134);
  CHECK(alike.together <= 24);
  Model two(8, 0.9);
  two.gains[5] = 3;
  const BitVector best = two.find();
  CHECK(best.count() == 1);
  CHECK(best.test(5));
  // The second best is too much beside the best, the third is not.
  Model gap(3, 0.9);
  gap.gains = {10, 5, 0.1};
  gap.errors[2] = 0.3;
  CHECK(gap.find().count() == 2);
}

TEST_CASE("where the time ends, the best that was measured stays", "[driver]") {
  double before = 0;
  for (size_t most = 0; most < 120; ++most) {
    Model model(40, 0.01);
    for (size_t i : {3, 17, 18, 33})
      model.errors[i] = 0.5 + 0.1 * double(i);
    model.gains[18] = 5;
    model.most = most;
    const double gain = model.gainOf(model.find());
    CHECK(gain >= before);
    before = gain;
  }
  CHECK(before >= 36);
  // Time for few errors alone is time for a mixture, too.
  Model model(64, 0.01);
  model.errors[9] = 3;
  model.mostAlone = 4;
  CHECK(model.find().count() == 48);
}

TEST_CASE("a mixture whose measurement fails ends the search", "[driver]") {
  const std::vector<double> gains(4, 1);
  auto fails = [](const BitVector &) -> llvm::Expected<double> { return llvm::createStringError("a run failed"); };
  auto found = findMixture(gains, 1, fails, [](const BitVector &) -> llvm::Expected<double> { return 2; });
  CHECK(!found);
  CHECK(llvm::toString(found.takeError()) == "a run failed");
}
