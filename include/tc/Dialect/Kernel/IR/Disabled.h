//===- Disabled.h - regions that are left as they are ---------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_KERNEL_IR_DISABLED_H
#define TC_DIALECT_KERNEL_IR_DISABLED_H

#include "llvm/ADT/StringRef.h"

namespace tc::kernel {

/// On a region of nodes that --disable names, from tc-fuse on: one primitive, which on CPUs runs by plain loops.
inline constexpr llvm::StringLiteral kDisabledAttr = "kernel.disabled";

} // namespace tc::kernel

#endif // TC_DIALECT_KERNEL_IR_DISABLED_H
