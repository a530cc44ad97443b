//===- SummaryText.h - what the line at the end of a compile says ---------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_SUMMARYTEXT_H
#define TC_LIB_DRIVER_SUMMARYTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace tc::driver {

/// In a text that may be said of another output later, in place of its name.
constexpr char kOutputName = '\0';
std::string nameOutput(llvm::StringRef text, llvm::StringRef output);
/// "46.9 MB".
std::string describeSize(uint64_t bytes);
/// "1 kernel", "139 kernels in 1053 launches": regions that compute the same share a kernel.
std::string describeKernels(uint64_t kernels, uint64_t launches);
/// "x86-64-v3, -v4 and -v4-amx": what all names begin with, up to a dash, is said once.
std::string describeMachines(llvm::ArrayRef<std::string> names);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_SUMMARYTEXT_H
