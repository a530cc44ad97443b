//===- Usage.h - what a process ran, and which sizes would gain from code of their own ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TOOLS_TC_INSPECT_USAGE_H
#define TC_TOOLS_TC_INSPECT_USAGE_H

#include "llvm/Support/Error.h"

#include <nlohmann/json.hpp>

#include <string>

namespace tc::inspect {

/// Reads what tcrt_model_write_usage has written and adds "advice" to each function: `dims`, what to give tc-compile as
/// --dim, the `sizes` that would get code of their own with their `runs` and `time_ns`, and the entries that are
/// `unused`.
llvm::Expected<nlohmann::ordered_json> readUsage(const std::string &path);

/// In words.
void printUsage(const std::string &path, const nlohmann::ordered_json &usage);

} // namespace tc::inspect

#endif // TC_TOOLS_TC_INSPECT_USAGE_H
