//===- Dump.h - values of a run, in a folder ----------------------------------------------------------*- C++ -*-===//
//
// A dump is a folder with values.npz, whose arrays stand in the order in which the model computes them: values inside
// of the model (tc-compile --outputs) and its outputs behind them; and inputs.npz, the inputs of that run.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_DUMP_H
#define TC_RUN_DUMP_H

#include "tc/Run/Session.h"

namespace tc::run {

/// The tensors of numbers that a session has computed, in that order; `left` is how many others there are.
NamedTensors dumpedValues(const Session &session, size_t &left);

/// Makes the folder and writes both files; of values those whose names `pattern` (as of a shell, where * is any text)
/// matches. How many; a Failure, and no folder, where none is.
size_t writeDump(const Session &session, const std::string &folder, const std::string &pattern);

/// The files of a dump.
std::string dumpedValuesFile(const std::string &folder);
std::string dumpedInputsFile(const std::string &folder);

} // namespace tc::run

#endif // TC_RUN_DUMP_H
