//===- Choose.h - which schedule of a kernel is the fastest ---------------------------------------------*- C++ -*-===//
//
// The one rule of what a measurement decides, for the compiler and for tc-run --tune: each schedule runs in turn with
// the generators' first choice; the best one is measured again, and must win by more than the noise.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_MEASURE_CHOOSE_H
#define TC_MEASURE_CHOOSE_H

#include "tc/Measure/Runner.h"

#include <functional>
#include <optional>
#include <string>

namespace tc::measure {

/// The schedules that are measured beside the first one, which has number 0.
struct Contest {
  size_t count = 1; ///< with the first one
  /// Opens a schedule from number 1 on; nullopt: it is left out for this reason.
  std::function<std::optional<Runner>(size_t number, std::string &why)> open;
  /// What became of one: "measured" or "not measured", and the rest of the sentence. May be null.
  std::function<void(size_t number, const char *verb, const std::string &what)> tell;
  /// Called before each; `bestUs`: the least time so far, 0 before there is one. False ends measuring. May be null.
  std::function<bool(size_t number, double bestUs)> begin;
};

struct Choice {
  size_t best = 0;  ///< the schedule that counts
  size_t tried = 1; ///< with the first one; fewer than there are where measuring ended early
  double us = 0, defaultUs = 0;
  /// Why nothing runs any more, as after a fault of the GPU; empty: it does.
  std::string failure;
};

Choice choose(Runner &first, const Tensors &tensors, const Contest &contest);

/// What a choice among `count` schedules says, as a sentence. `where`: "x86-64-v4, 2 threads"; `change`: how the best
/// schedule differs from the first one.
std::string describeChoice(const Choice &choice, size_t count, const std::string &where, const std::string &change);
/// The same of a record.
std::string describeRecord(double us, double defaultUs, const std::string &where, const std::string &change);
/// What is said where nothing runs any more.
std::string describeLoss(const std::string &failure, bool onGpu);

/// What measuring gained, by the sum of all kernels that have a choice, and what it cost.
struct Gain {
  size_t kernels = 0, better = 0;
  double us = 0, defaultUs = 0;

  void add(double us, double defaultUs);
  /// In one line.
  std::string describe(double seconds) const;
};

} // namespace tc::measure

#endif // TC_MEASURE_CHOOSE_H
