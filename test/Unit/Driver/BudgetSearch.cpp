//===- BudgetSearch.cpp -------------------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Driver/BudgetSearch.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace tc::driver;

namespace {

struct Asked {
  std::vector<size_t> counts;
  BudgetSearch search;
};

/// Errors of 10 less for each that stays.
Asked find(size_t most, double budget, double ofNone) {
  Asked asked;
  llvm::Expected<BudgetSearch> found = findFewest(most, budget, [&](size_t left) -> llvm::Expected<double> {
    asked.counts.push_back(left);
    return ofNone - 10 * double(left);
  });
  REQUIRE(bool(found));
  asked.search = *found;
  return asked;
}

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
