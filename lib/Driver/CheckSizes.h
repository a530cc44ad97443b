//===- CheckSizes.h - sizes on the command line ---------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_CHECKSIZES_H
#define TC_LIB_DRIVER_CHECKSIZES_H

#include "tc/Driver/Compile.h"

namespace tc::driver {

/// What is wrong with a --dim or --shape, without a file: its form, or a dim or an input with two sizes, of which one
/// would do nothing. Empty: nothing is.
std::string findSizeError(const CompileRequest &request);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_CHECKSIZES_H
