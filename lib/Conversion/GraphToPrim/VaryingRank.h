//===- VaryingRank.h - results whose rank depends on data -----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_VARYINGRANK_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_VARYINGRANK_H

#include "tc/Dialect/Graph/IR/Graph.h"

namespace tc {

/// For an If whose branches give the results `varying` different ranks: moves the first node that reads them into both
/// branches, where the rank is known, so that what leaves the branches is that node's results. `node` itself stays for
/// its other results; a new If behind it has the moved node. Fails, and changes nothing, if the block yields the
/// values: then nothing in it gives them one rank.
mlir::LogicalResult moveUserIntoBranches(graph::NodeOp node, llvm::ArrayRef<unsigned> varying);

/// Which operands of the block's terminator are these results.
llvm::SmallVector<unsigned> yieldedAs(graph::NodeOp node, llvm::ArrayRef<unsigned> results);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_VARYINGRANK_H
