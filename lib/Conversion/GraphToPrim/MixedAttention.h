//===- MixedAttention.h - Attention of queries and values of different element types --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_MIXEDATTENTION_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_MIXEDATTENTION_H

#include "tc/Dialect/Graph/IR/Graph.h"

namespace tc {

/// ONNX lets the values of Attention have another element type than its queries and keys, but the function body in its
/// schema multiplies the two. So that the body holds, such a node is replaced by one on a type that holds both, between
/// Casts. Returns the new node, or `node` where there is nothing to do.
graph::NodeOp unifyAttention(graph::NodeOp node);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_MIXEDATTENTION_H
