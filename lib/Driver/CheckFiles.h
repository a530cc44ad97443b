//===- CheckFiles.h - files that a compile reads and writes -------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_CHECKFILES_H
#define TC_LIB_DRIVER_CHECKFILES_H

#include "tc/Driver/Compile.h"
#include <set>

namespace tc::driver {

/// That a file which is written would replace one that is read, or another that is written; empty: none does.
/// `ofModel`: what the model was read from, once it is.
std::string findReplacedFile(const CompileRequest &request, const std::set<std::string> &ofModel = {});

} // namespace tc::driver

#endif // TC_LIB_DRIVER_CHECKFILES_H
