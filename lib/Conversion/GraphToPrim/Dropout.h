//===- Dropout.h - elements that are left out at random -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_DROPOUT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_DROPOUT_H

#include "NodeContext.h"

namespace tc {

/// i1: which elements stay, each with probability 1 - p. Every call in one node gives the same.
mlir::Value emitKept(NodeContext &ctx, SizesRef sizes, double p);
/// x where `kept`, which has its sizes, holds, and 0, times what keeps the mean: x / (1 - p).
mlir::Value applyDropout(PrimBuilder &b, mlir::Value x, mlir::Value kept, double p);
/// A probability; fails with a message that names "p" or what the argument is called.
mlir::LogicalResult checkProbability(NodeContext &ctx, double p, llvm::StringRef name = "p");

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_DROPOUT_H
