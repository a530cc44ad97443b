//===- Ranges.h - ranges of values that were seen -------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_RANGES_H
#define TC_LIB_DRIVER_RANGES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tc::driver {

/// How the range that bytes stand for follows from what was seen.
struct RangeRule {
  enum Kind { MinMax, Percentile, Entropy } kind = MinMax;
  double percent = 99.99; ///< of the values that are within, of Percentile
};
/// "minmax", "percentile", "percentile:99.9" or "entropy".
std::optional<RangeRule> parseRangeRule(llvm::StringRef text);

/// x = (q - zero) * scale, with q from 0 to 255.
struct ByteScale {
  float scale = 1;
  int64_t zero = 0;
  bool isKnown = true; ///< false: the value was 0 everywhere, and any scale does
};

/// The values of one tensor in all runs: looked at once, and, for rules that ask how often, once more.
class SeenRange {
public:
  void look(llvm::ArrayRef<float> values);
  void count(llvm::ArrayRef<float> values);

  /// Whether there were values, all of them finite.
  bool isFinite() const { return finite && low <= high; }
  double getLow() const { return low; }
  double getHigh() const { return high; }
  /// The range by `rule`, with 0 in it.
  std::pair<double, double> getRange(const RangeRule &rule) const;
  static ByteScale getScale(std::pair<double, double> range);

private:
  std::pair<double, double> cutTails(double percent) const;
  std::pair<double, double> keepInformation() const;
  double binEdge(size_t bin) const { return low + (high - low) * double(bin) / double(bins.size()); }

  bool finite = true;
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  std::vector<uint64_t> bins;
  uint64_t zeros = 0; ///< in no bin: they are exact in any range, and would hide what is next to them
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_RANGES_H
