//===- Edits.h - what can be taken away from a graph ----------------------------------------------------*- C++ -*-===//
//
// A step is a kind of thing that a graph has some of, numbered in the order of the text, and an edit that takes away
// any of them at once. The edit leaves a graph that is well formed by itself: what it took away and others still use,
// they get as inputs of the model.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_REDUCE_EDITS_H
#define TC_LIB_REDUCE_EDITS_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Dialect/Graph/IR/Graph.h"

#include "llvm/ADT/BitVector.h"

namespace tc::reduce {

struct Step {
  llvm::StringLiteral name; ///< "fewer nodes"
  size_t (*count)(graph::FuncOp main);
  /// False where these can't be taken away; the graph is then lost.
  bool (*drop)(graph::FuncOp main, const llvm::BitVector &dropped);
};

/// In the order in which they pay.
llvm::ArrayRef<Step> getSteps();

/// The function that is the model; null where the module is none of phase import.
graph::FuncOp getMain(mlir::ModuleOp module);
/// All nodes, those of subgraphs behind the one that holds them.
std::vector<graph::NodeOp> getNodes(graph::FuncOp main);

/// The sizes from 2 on that inputs and constants have, the largest first.
std::vector<int64_t> getStaticSizes(graph::FuncOp main);
struct SizeChange {
  int64_t from, to;
  bool forget; ///< types of inner values, instead of changing the size in them
};
/// Gives dims of size `from` the size `to`, wherever it stands; constants lose their last elements. False as above.
bool changeSize(graph::FuncOp main, const SizeChange &change);

/// Gives values that have no sizes, or open ones, those that the conversion to prim finds for them.
void refineTypes(graph::FuncOp main, const GraphToPrimOptions &sizes);

} // namespace tc::reduce

#endif // TC_LIB_REDUCE_EDITS_H
