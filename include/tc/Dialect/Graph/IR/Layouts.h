//===- Layouts.h - how the elements of a graph's tensors lay in memory ----------------------------------*- C++ -*-===//
//
// Whether some operators of PyTorch return another name of their operand or a copy depends on its strides, and what a
// write does depends on that. tc's own tensors have no strides: these are those of the tensors that the program was
// traced with. A node has the attribute where a result or an operand is not in row-major order, for each result:
//
//   [array<i64: 4, 3>, array<i64: 1, 4>]   sizes and strides of the example
//   "unknown"                              the front end has none
//   unit                                   it is no tensor
//
// A graph.constant has it as a node does. Of a function: the numbers of the arguments that are not in row-major order;
// its nodes without the attribute have results that are.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_IR_LAYOUTS_H
#define TC_DIALECT_GRAPH_IR_LAYOUTS_H

#include "mlir/IR/Builders.h"

namespace tc::graph {

inline constexpr llvm::StringLiteral kLayoutsAttr = "graph.layouts";
inline constexpr llvm::StringLiteral kUnknownLayout = "unknown";

/// Whether elements lie one behind the other, the last dim's first; so do none.
bool isRowMajor(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);
/// The entry of a result that lies so.
mlir::ArrayAttr makeLayoutEntry(mlir::Builder b, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);

} // namespace tc::graph

#endif // TC_DIALECT_GRAPH_IR_LAYOUTS_H
