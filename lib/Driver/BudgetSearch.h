//===- BudgetSearch.h - how little has to stay as it is for an error to be within a budget --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_BUDGETSEARCH_H
#define TC_LIB_DRIVER_BUDGETSEARCH_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace tc::driver {

/// How many of a list stay in f32, from its front on.
struct BudgetSearch {
  size_t left = 0;
  double error = 0;   ///< with so many
  double ofNone = 0;  ///< with none
  bool isKept = true; ///< false: the error is above the budget with the most, too
};
/// The fewest, of at most `most`, whose error `measure` finds within the budget: by doubling, then halving. The last
/// call of `measure` is for what it returns. Where errors do not fall with each that stays, a number within the budget
/// beside one that is not.
llvm::Expected<BudgetSearch> findFewest(size_t most, double budget,
                                        llvm::function_ref<llvm::Expected<double>(size_t)> measure);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_BUDGETSEARCH_H
