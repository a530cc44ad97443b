//===- Tune.h - tc-run --tune ---------------------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TOOLS_TC_RUN_TUNE_H
#define TC_TOOLS_TC_RUN_TUNE_H

#include "Options.h"

namespace tc::run {

/// Measures the schedules of a file that tc-compile --tuning-candidates wrote, and keeps what is the fastest in a
/// database. The exit code; errors are thrown as Failure.
int tuneHere(const Options &options);
/// What such a file is, and what to do with it, where it is given as an artifact.
[[noreturn]] void refuseTuneFile(const std::string &path);

} // namespace tc::run

#endif // TC_TOOLS_TC_RUN_TUNE_H
