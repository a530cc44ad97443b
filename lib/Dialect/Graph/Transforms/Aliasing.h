//===- Aliasing.h - what a PyTorch operator's results name ----------------------------------------------*- C++ -*-===//
//
// A tensor of PyTorch is a name: of memory, and of the part and order of it that the name shows. PyTorch's signatures
// say which results are new names of an operand's memory; what they leave open is answered here: names that are made
// only where the layout allows it (reshape, contiguous), and operators that return their operand without saying so.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_GRAPH_TRANSFORMS_ALIASING_H
#define TC_LIB_DIALECT_GRAPH_TRANSFORMS_ALIASING_H

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Layouts.h"
#include "tc/Dialect/Graph/Torch/Schemas.h"

#include "llvm/ADT/SmallVector.h"

namespace tc::graph {

/// How elements of a view lie in what it was made of, by how a write to it gets back there.
enum class ViewKind {
  Identity,
  Reshape,   ///< the same elements in the same order
  Permute,   ///< dims in another order
  Select,    ///< select_scatter
  Slice,     ///< slice_scatter
  Narrow,    ///< slice_scatter, by start and length
  Diagonal,  ///< diagonal_scatter
  AsStrided, ///< as_strided_scatter
  Pieces,    ///< consecutive parts along a dim, one each result
  Unbind,    ///< slices along a dim, one each result
  Expand,    ///< elements may show more than once
  Parts,     ///< view_as_real
  Whole,     ///< view_as_complex
  Other      ///< can be read, but not written through
};

/// How the results of a node relate to one operand's memory.
enum class Naming {
  Fresh,  ///< not at all
  Same,   ///< the operand itself
  View,   ///< another name of it
  Unsure, ///< a name of it or a copy: that depends on what is not known
};

struct Aliasing {
  Naming naming = Naming::Fresh;
  ViewKind kind = ViewKind::Other;
  unsigned operand = 0;
  /// Of a copy: sets of dims of the operand whose sizes are not known. Where all of one have the size 1, the result is
  /// another name after all.
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>, 0> unless = {};
};

/// Sizes and strides of a tensor, for an example of the dims that are not static. The order of its elements in memory.
struct Layout {
  enum class State { Contiguous, Strided, Unknown } state = State::Contiguous;
  llvm::SmallVector<int64_t> sizes, strides; ///< of Strided
};

/// Index of the operand that is called `name`, or nullopt.
std::optional<unsigned> findOperand(NodeOp node, llvm::StringRef name);
/// A constant integer argument, or its default; nullopt if it is symbolic or None.
std::optional<int64_t> getIntArgument(NodeOp node, const torch::Schema &schema, llvm::StringRef name);
bool getBoolArgument(NodeOp node, const torch::Schema &schema, llvm::StringRef name);
/// Whether the call gives it, other than as None.
bool hasArgument(NodeOp node, llvm::StringRef name);

/// How elements of a view by this operator lie.
ViewKind getViewKind(NodeOp node, const torch::Schema &schema);
/// `layout`: of an operand, by its index; asked only where the answer depends on it.
Aliasing getAliasing(NodeOp node, const torch::Schema &schema, llvm::function_ref<Layout(unsigned)> layout);
/// Layout of a result of a view of `kind` on a tensor of `parent`.
Layout getViewLayout(NodeOp node, const torch::Schema &schema, ViewKind kind, unsigned result, const Layout &parent);
Layout unknownLayout();
/// Layout that the front end gave a result, if it did.
std::optional<Layout> getGivenLayout(mlir::Value value);

/// The permutation of a view of kind Permute on a tensor of this rank; nullopt if it can't be told.
std::optional<llvm::SmallVector<int64_t>> getPermutation(NodeOp node, const torch::Schema &schema, int64_t rank);
/// The dim along which a view of kind Pieces, Unbind or Narrow takes parts.
std::optional<int64_t> getPartDim(NodeOp node, const torch::Schema &schema, int64_t rank);
/// Whether two views of `kind` on a tensor of type `parent` are known to have no element in common.
bool haveDisjointParts(NodeOp a, const torch::Schema &schemaOfA, NodeOp b, const torch::Schema &schemaOfB,
                       ViewKind kind, mlir::Type parent);

} // namespace tc::graph

#endif // TC_LIB_DIALECT_GRAPH_TRANSFORMS_ALIASING_H
