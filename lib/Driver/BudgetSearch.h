//===- BudgetSearch.h - how little has to stay as it is for an error to be within a budget --------------*- C++ -*-===//
//
// What a measurement of --quantize or --precision auto costs is a run of the model, or a compile. So these ask as
// little as the answer needs: lists in an order are halved, sets without one are cut where the error is.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_BUDGETSEARCH_H
#define TC_LIB_DRIVER_BUDGETSEARCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <vector>

namespace tc::driver {

/// How many of a list stay in f32, from its front on.
struct BudgetSearch {
  size_t left = 0;
  double error = 0;   ///< with so many
  double ofNone = 0;  ///< with none, if that was asked, as it is first without a guess
  bool isKept = true; ///< false: the error is above the budget with the most, too
};
/// The fewest, of at most `most`, whose error `measure` finds within the budget: from a guess on by doubling, then
/// halving. The last call of `measure` is for what it returns. Where errors do not fall with each that stays, a number
/// within the budget beside one that is not.
llvm::Expected<BudgetSearch> findFewest(size_t most, double budget,
                                        llvm::function_ref<llvm::Expected<double>(size_t)> measure, size_t guess = 0);

/// What `measure` returns where there is no time left to know an error: more than any budget.
inline constexpr double kNotKnown = std::numeric_limits<double>::infinity();

/// Elements of a list that follow each other, and their error without the others.
struct MeasuredPart {
  size_t begin, end;
  double error;
  size_t size() const { return end - begin; }
};
/// Whether the error of `part` elements is so small a part of the budget of `all` that it does not matter which of them
/// make it: with errors that add up in squares, all such parts together take a quarter of the budget's square.
bool isQuiet(double error, double budget, size_t part, size_t all);
/// A list whose error exceeds the budget, in parts: what is not quiet is cut in four, down to single elements, those of
/// most elements first. So k of n elements that make the error take about 4 k log4(n) measurements, n alike ones 4/3 n
/// or less. A part whose cuts are not known stays whole.
llvm::Expected<std::vector<MeasuredPart>>
splitByError(size_t size, double budget, llvm::function_ref<llvm::Expected<double>(size_t, size_t)> measure);

/// Which elements may change together, for most gain: `gains` has that of each. `alone` measures the error of a set
/// with nothing else, which only decides what is tried; `together` that of a set in its place, and what is returned is
/// the set of most gain that it found within the budget: at any end, the best so far.
llvm::Expected<llvm::BitVector>
findMixture(llvm::ArrayRef<double> gains, double budget,
            llvm::function_ref<llvm::Expected<double>(const llvm::BitVector &)> alone,
            llvm::function_ref<llvm::Expected<double>(const llvm::BitVector &)> together);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_BUDGETSEARCH_H
