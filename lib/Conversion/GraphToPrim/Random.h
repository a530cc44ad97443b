//===- Random.h - random numbers of all front ends ------------------------------------------------------*- C++ -*-===//
//
// Numbers are a function (Philox) of their position, the node's number and the state of random numbers, which a context
// of the runtime seeds; of attribute "seed" instead where the node has it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_RANDOM_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_RANDOM_H

#include "NodeContext.h"

namespace tc {

/// Uniform in [low, high).
mlir::Value emitUniform(NodeContext &ctx, SizesRef sizes, mlir::FloatType type, double low, double high);
mlir::Value emitNormal(NodeContext &ctx, SizesRef sizes, mlir::FloatType type, double mean, double scale);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_RANDOM_H
