//===- ToolVersion.h - what --version prints ------------------------------------------------------------*- C++ -*-===//
//
// The commit stands in this text alone, and never in an artifact: the same sources make the same bytes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_TOOLVERSION_H
#define TC_SUPPORT_TOOLVERSION_H

#include <string>

namespace tc {

/// `tc-run 0.1.0 (LLVM 22.1.8, commit 0123456789ab)`; without the commit where the sources are no clone.
std::string getVersionText(const std::string &tool);

} // namespace tc

#endif // TC_SUPPORT_TOOLVERSION_H
