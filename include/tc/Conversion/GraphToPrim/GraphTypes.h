//===- GraphTypes.h - types of values of a graph that is still being made -------------------------------*- C++ -*-===//
//
// A front end that runs code must know ranks, sizes and element types of what it has just computed. Here a value's
// nodes are converted as the conversion to prim will convert them later, once and only those that the answer needs.
//
//   GraphTypes types(function, options);        // its arguments have types and names
//   ... append nodes to the function's body ...
//   types.getType(node.getOutputs()[0]);        // tensor<2x?xf32>
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CONVERSION_GRAPHTOPRIM_GRAPHTYPES_H
#define TC_CONVERSION_GRAPHTOPRIM_GRAPHTYPES_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

#include "tc/Dialect/Graph/IR/Graph.h"

namespace tc {

class GraphTypes {
public:
  /// The function stands in a module and outlives this. Its body may grow, but what was asked for stays as it is.
  GraphTypes(graph::FuncOp function, const GraphToPrimOptions &options);
  ~GraphTypes();

  /// Sizes that only a run knows are dynamic. An operator that writes a tensor gives a tensor of the same type. The
  /// error is a sentence that names the node.
  llvm::Expected<mlir::RankedTensorType> getType(mlir::Value value);
  /// The value as primitives compute it, in a function that holds what was asked for so far, each op at the location of
  /// its node. Null where the node is refused.
  mlir::Value getConverted(mlir::Value value);
  /// The number in a tensor of one integer or bool, where it depends on sizes and constants that are known.
  std::optional<int64_t> getInteger(mlir::Value value);
  /// The tensor was written: its numbers are not known to nodes that are asked for from now on.
  void forgetNumbers(mlir::Value value);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tc

#endif // TC_CONVERSION_GRAPHTOPRIM_GRAPHTYPES_H
