//===- QuantizeGraph.h - bytes around the products of a graph -------------------------------------------*- C++ -*-===//
//
// The form that prim makes products of bytes of: activations as ui8 with a scale and zero point for each tensor,
// weights as i8 with a scale for each channel of the result, biases as i32 of both scales, between ONNX's
// QuantizeLinear and DequantizeLinear whatever the graph is of.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_QUANTIZEGRAPH_H
#define TC_LIB_DRIVER_QUANTIZEGRAPH_H

#include "Ranges.h"
#include "tc/Dialect/Graph/IR/Graph.h"

#include "llvm/ADT/BitVector.h"

namespace tc::driver {

/// A node that multiplies a value of the run by a constant of f32.
struct Product {
  graph::NodeOp node;
  unsigned input = 0, weight = 1;
  std::optional<unsigned> bias; ///< a constant that is added as it is
  int64_t axis = 0;             ///< of the constant, along which the result's channels lie
  bool isConv = false;
  graph::ConstantOp constant;
  llvm::SmallVector<graph::NodeOp> moves; ///< from the constant to the node
  size_t value = 0;                       ///< the input's number in ProductGraph::values

  mlir::Value getInput() { return node.getInputs()[input]; }
};

/// The products of a graph. Equal graphs have equal ones, in one order.
struct ProductGraph {
  explicit ProductGraph(graph::FuncOp main);

  graph::FuncOp main;
  std::vector<Product> products;
  std::vector<mlir::Value> values; ///< inputs of products, each once
};

/// Puts the products in `which` between quantisations; `scales` are of ProductGraph::values.
void quantizeProducts(ProductGraph &graph, llvm::ArrayRef<ByteScale> scales, const llvm::BitVector &which);
/// What each of the products in `which` computes with bytes, while everything else stays in f32.
llvm::SmallVector<mlir::Value> addQuantizedTwins(ProductGraph &graph, llvm::ArrayRef<ByteScale> scales,
                                                 const llvm::BitVector &which);

/// Makes `values` the outputs of the graph, behind its own or instead of these.
void setOutputs(graph::FuncOp main, llvm::ArrayRef<mlir::Value> values, bool keepOwn);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_QUANTIZEGRAPH_H
