//===- Tune.h - schedules by measurement ----------------------------------------------------------------*- C++ -*-===//
//
// Stands between the phases fuse and schedule: gives regions the schedule attribute where a record of the tuning
// database, or a measurement made now, says that another schedule than the generators' first choice is faster. All
// other regions are left to tc-choose-schedule, so that without records the result is the same as without tuning.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_AUTOTUNE_TUNE_H
#define TC_AUTOTUNE_TUNE_H

#include "tc/Codegen/Schedules.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Measure/Machine.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tc::measure {
class TuneWriter;
}

namespace tc::autotune {

struct TuneOptions {
  /// Measure the regions that have no record.
  bool measure = false;
  /// Instead: gets them with all schedules that they may have, to be measured elsewhere. Null: nothing does.
  measure::TuneWriter *candidates = nullptr;
  /// File of the database; empty: there is none, and what is measured is forgotten.
  std::string database;
  /// Whose records are used, by their names in the database: those that are of the target's kind. None: those of this
  /// machine; of GPUs, where there is none here, those of the only one in the database.
  std::vector<std::string> machines;
  /// Of a run; 0: one per usable core.
  unsigned threads = 0;
  /// When all that is compiled has to be done; measuring stops early enough for the rest. Nullopt: whenever it is.
  std::optional<std::chrono::steady_clock::time_point> end;
  /// What `end` comes from: "--max-compile-time 60".
  std::string endReason;
  /// The CPU variants that are compiled, the best last.
  llvm::SmallVector<machine::CpuAttr> cpus;
  /// For GPUs, instead of CPUs: the chips that are compiled for, and what their kernels may use; and the GPU that is
  /// here, nullopt: none.
  llvm::SmallVector<machine::GpuAttr> gpus;
  std::optional<codegen::GpuLimitsOfRegions> limits;
  std::optional<measure::Machine> gpu;
};

/// What became of one region.
struct Outcome {
  /// A sentence; empty: there was nothing to choose.
  std::string text;
  /// What the schedule that the region has now and the generators' first choice took; 0: not known.
  double us = 0, defaultUs = 0;
};

struct TuneReport {
  std::vector<Outcome> regions; ///< in the order of a walk
  std::vector<std::string> notes;
};

/// The bytes of an artifact of a module that stands at the end of phase schedule, for these CPU variants or chips.
/// `mayDrop`: code that is not worth measuring, as of kernels whose values do not fit the registers, may be an error.
using BuildArtifact = llvm::function_ref<llvm::Expected<std::string>(
    mlir::ModuleOp module, llvm::ArrayRef<machine::MachineAttr> machines, bool mayDrop)>;

/// Tunes a module at the end of phase fuse. An error with a code of std::errc is about the database, one without a code
/// about the machine; both are complete sentences.
llvm::Expected<TuneReport> tuneSchedules(mlir::ModuleOp module, const TuneOptions &options, BuildArtifact build);

} // namespace tc::autotune

#endif // TC_AUTOTUNE_TUNE_H
