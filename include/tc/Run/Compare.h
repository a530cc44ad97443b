//===- Compare.h - Compares outputs with expected values ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_COMPARE_H
#define TC_RUN_COMPARE_H

#include "tc/Run/Tensor.h"

#include <optional>
#include <string>

namespace tc::run {

/// With maxRel: max|a-b| <= maxRel*max|b| over the tensor. Else per element |a-b| <= atol+rtol*|b|.
struct Tolerance {
  std::optional<double> maxRel;
  double rtol = 0, atol = 0;
};

struct Comparison {
  bool isEqual = false;
  double badness = 0;  ///< largest error over what is allowed; infinite where nothing is allowed
  std::string message; ///< the worst place, without the output's name
};

/// Dtypes and dims must be equal; integers, booleans and complex numbers are compared exactly; NaN equals NaN,
/// infinities compare by sign. Dtypes that NumPy lacks compare with what writeNpz makes of them.
Comparison compare(const Tensor &actual, const Tensor &expected, const Tolerance &tolerance);

} // namespace tc::run

#endif // TC_RUN_COMPARE_H
