//===- SummaryText.cpp - what the line at the end of a compile says -----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "SummaryText.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tc;

std::string driver::nameOutput(llvm::StringRef text, llvm::StringRef output) {
  std::string named;
  for (char c : text)
    named += c == kOutputName ? output.str() : std::string(1, c);
  return named;
}

std::string driver::describeSize(uint64_t bytes) {
  if (bytes < 1000)
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (bytes < 1000000)
    return llvm::formatv("{0:f1} kB", double(bytes) / 1e3);
  return bytes < 1000000000 ? llvm::formatv("{0:f1} MB", double(bytes) / 1e6)
                            : llvm::formatv("{0:f2} GB", double(bytes) / 1e9);
}

std::string driver::describeKernels(uint64_t kernels, uint64_t launches) {
  return std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels") +
         (launches == kernels ? "" : " in " + std::to_string(launches) + (launches == 1 ? " launch" : " launches"));
}

std::string driver::describeMachines(llvm::ArrayRef<std::string> names) {
  size_t common = names.front().rfind('-');
  for (const std::string &name : names)
    while (common != std::string::npos && name.compare(0, common + 1, names.front(), 0, common + 1) != 0)
      common = common ? names.front().rfind('-', common - 1) : std::string::npos;
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i)
    text += (i + 1 == names.size() ? " and " : ", ") + names[i].substr(common == std::string::npos ? 0 : common);
  return text;
}
