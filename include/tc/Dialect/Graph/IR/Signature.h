//===- Signature.h - what programs of PyTorch say beyond tensors in and tensors out ---------------------*- C++ -*-===//
//
// Sizes. An argument's `graph.ranges` has the least and the greatest size of each of its dims (INT64_MAX: any); where
// they have a name in common, all hold. `graph.sizes` is a map from the sizes of all dims of all arguments, in order,
// to those of its own: what they are not equal to is refused when the model runs, and they count as the map says from
// then on. Here y is one longer than x, whose size lies in 3 to 10:
//
//   graph.func @main(%x: tensor<?xf32> {graph.dims = ["x.0"], graph.name = "x", graph.ranges = array<i64: 3, 10>},
//                    %y: tensor<?xf32> {graph.dims = ["y.0"], graph.name = "y",
//                                       graph.sizes = affine_map<()[s0, s1] -> (s0 + 1)>})
//
// States. A graph.constant with `graph.state` is a parameter or buffer of that name, which a node may write:
//
//   %n = graph.constant #tc.data<...> {graph.state = "calls"} : tensor<i64>
//   graph.node "tc":"write_state" opset 1(%n1) {state = "calls"} : (tensor<i64>) -> ()
//
// Then the artifact has a state of that name, which begins with the constant's value; %n is what it holds when the
// function is called, and %n1 what it holds afterwards. A constant whose state nothing writes is a constant.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_IR_SIGNATURE_H
#define TC_DIALECT_GRAPH_IR_SIGNATURE_H

#include "llvm/ADT/StringRef.h"

namespace tc::graph {

inline constexpr llvm::StringLiteral kRangesAttr = "graph.ranges";
inline constexpr llvm::StringLiteral kSizesAttr = "graph.sizes";
inline constexpr llvm::StringLiteral kStateAttr = "graph.state";
/// Of a state: the name of another one that lies in the same memory in part.
inline constexpr llvm::StringLiteral kSharesAttr = "graph.shares";
/// Of a constant: memory of its own, which a run may write. If it is no state, each run makes it anew.
inline constexpr llvm::StringLiteral kFreshAttr = "graph.fresh";
/// Nodes that stand for no operator of a framework.
inline constexpr llvm::StringLiteral kOwnDomain = "tc";
/// Writes its operand to the state that its attribute kStateParam names, at the end of the function.
inline constexpr llvm::StringLiteral kWriteState = "write_state";
inline constexpr llvm::StringLiteral kStateParam = "state";
/// A node of kOwnDomain that calls a private graph.func, and that ONNX Runtime computes: its attribute kBackendModel is
/// the ONNX file of that function (ui8), whose inputs are x0, x1, ... and whose outputs are y0, y1, ...
inline constexpr llvm::StringLiteral kOnnxRuntime = "onnxruntime";
inline constexpr llvm::StringLiteral kBackendModel = "model";

} // namespace tc::graph

#endif // TC_DIALECT_GRAPH_IR_SIGNATURE_H
