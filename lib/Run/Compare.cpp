//===- Compare.cpp - Compares outputs with expected values --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Compare.h"

#include "tc/Run/Npz.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace tc::run;

namespace {

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string place(const Tensor &tensor, int64_t index) {
  std::vector<int64_t> position(tensor.dims.size());
  for (size_t d = tensor.dims.size(); d-- > 0; index /= tensor.dims[d])
    position[d] = index % tensor.dims[d];
  return dimsText(position);
}

Comparison different(const std::string &message) { return {false, std::numeric_limits<double>::infinity(), message}; }

Comparison compareExactly(const Tensor &actual, const Tensor &expected) {
  int64_t count = actual.count(), differing = 0, first = -1;
  if (actual.data == expected.data)
    return {true, 0, "exactly equal"};
  if (!isInteger(actual.dtype) && actual.dtype != TCRT_DTYPE_BOOL)
    return different("the bytes differ");
  for (int64_t i = 0; i < count; ++i) {
    if (integerAt(actual, i) == integerAt(expected, i))
      continue;
    first = first < 0 ? i : first;
    ++differing;
  }
  // Padding bits of packed elements may differ.
  if (differing == 0)
    return {true, 0, "exactly equal"};
  return different(std::to_string(differing) + " of " + std::to_string(count) + " elements differ, first at " +
                   place(actual, first) + ": " + std::to_string(integerAt(actual, first)) + ", expected " +
                   std::to_string(integerAt(expected, first)));
}

Comparison compareFloats(const Tensor &actual, const Tensor &expected, const Tolerance &tolerance) {
  const double infinity = std::numeric_limits<double>::infinity();
  int64_t count = actual.count(), worst = -1;
  double largest = 0, worstBadness = -1, worstError = 0;
  for (int64_t i = 0; tolerance.maxRel && i < count; ++i) {
    double b = std::fabs(realAt(expected, i));
    if (std::isfinite(b) && b > largest)
      largest = b;
  }
  for (int64_t i = 0; i < count; ++i) {
    double a = realAt(actual, i), b = realAt(expected, i), badness, error;
    if ((std::isnan(a) && std::isnan(b)) || a == b) {
      badness = error = 0;
    } else if (!std::isfinite(a) || !std::isfinite(b)) {
      badness = error = infinity;
    } else {
      error = std::fabs(a - b);
      double allowed = tolerance.maxRel ? *tolerance.maxRel * largest : tolerance.atol + tolerance.rtol * std::fabs(b);
      badness = allowed > 0 ? error / allowed : infinity;
    }
    if (badness > worstBadness)
      worstBadness = badness, worst = i, worstError = error;
  }
  if (worst < 0 || worstBadness == 0)
    return {true, 0, count ? "equal" : "equal (no elements)"};
  std::string message = "max error " + number(worstError) + " at " + place(actual, worst) + ": " +
                        number(realAt(actual, worst)) + ", expected " + number(realAt(expected, worst));
  if (tolerance.maxRel && largest > 0)
    message += "; " + number(worstError / largest) + " of the largest value, allowed " + number(*tolerance.maxRel);
  else
    message += "; " + number(worstBadness) + " of what is allowed";
  return {worstBadness <= 1, worstBadness, message};
}

} // namespace

Comparison tc::run::compare(const Tensor &actual, const Tensor &expected, const Tolerance &tolerance) {
  if (actual.dtype != expected.dtype && expected.dtype != numpyDtype(actual.dtype))
    return different(std::string("dtype ") + tcrt_dtype_name(actual.dtype) + ", expected " +
                     tcrt_dtype_name(expected.dtype));
  if (actual.dims != expected.dims)
    return different("dims " + dimsText(actual.dims) + ", expected " + dimsText(expected.dims));
  if (isFloat(actual.dtype))
    return compareFloats(actual, expected, tolerance);
  return compareExactly(actual.dtype == expected.dtype ? actual : convert(actual, expected.dtype), expected);
}
