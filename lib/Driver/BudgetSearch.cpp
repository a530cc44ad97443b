//===- BudgetSearch.cpp - how little has to stay as it is for an error to be within a budget ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BudgetSearch.h"

#include <algorithm>

using namespace tc::driver;

llvm::Expected<BudgetSearch> tc::driver::findFewest(size_t most, double budget,
                                                    llvm::function_ref<llvm::Expected<double>(size_t)> measure) {
  BudgetSearch search;
  size_t last = 0;
  auto isKept = [&](size_t count) -> llvm::Expected<bool> {
    llvm::Expected<double> error = measure(count);
    if (!error)
      return error.takeError();
    last = count;
    search.error = *error;
    return *error <= budget;
  };
  llvm::Expected<bool> kept = isKept(0);
  if (!kept)
    return kept.takeError();
  search.ofNone = search.error;
  // The fewest are between `tooFew` and `left`.
  size_t tooFew = 0;
  while (!*kept && search.left < most) {
    tooFew = search.left;
    search.left = std::min(std::max<size_t>(1, 2 * search.left), most);
    kept = isKept(search.left);
    if (!kept)
      return kept.takeError();
  }
  search.isKept = *kept;
  while (search.isKept && search.left > tooFew + 1) {
    const size_t middle = tooFew + (search.left - tooFew) / 2;
    kept = isKept(middle);
    if (!kept)
      return kept.takeError();
    (*kept ? search.left : tooFew) = middle;
  }
  if (last != search.left) {
    kept = isKept(search.left);
    if (!kept)
      return kept.takeError();
  }
  return search;
}
