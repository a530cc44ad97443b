//===- TuneThere.h - measure the schedules of a file, where there is no compiler ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_MEASURE_TUNETHERE_H
#define TC_MEASURE_TUNETHERE_H

#include "tc/Measure/Choose.h"
#include "tc/Measure/Machine.h"
#include "tc/Measure/TuneFile.h"

#include <functional>
#include <optional>
#include <string>

namespace tc::measure {

/// What became of one kernel.
struct TuneResult {
  enum class State { Measured, Recorded, Failed } state = State::Failed;
  std::string text; ///< a sentence, without the kernel's nodes
  std::string machine, variant, schedule;
  double us = 0, defaultUs = 0;
};

struct TuneThereOptions {
  std::string database;            ///< a file, which is extended
  std::optional<Machine> cpu, gpu; ///< nullopt: kernels of its kind are left alone
  /// Called before each kernel that is measured, with its number in the file. May be null.
  std::function<void(size_t number)> begin;
  /// Called after each kernel, with its number in the file. May be null.
  std::function<void(size_t number, const TuneResult &result)> end;
};

/// Measures each kernel that has no record of its machine yet. An error is a sentence about the database; empty: none.
std::string tuneThere(const TuneFile &file, const TuneThereOptions &options);

} // namespace tc::measure

#endif // TC_MEASURE_TUNETHERE_H
