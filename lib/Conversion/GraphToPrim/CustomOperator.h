//===- CustomOperator.h - operators of the user's own ---------------------------------------------------*- C++ -*-===//
//
// A signature file (examples/custom-op/README.md) says what a node of such an operator takes and gives; the node
// becomes prim.host_call of a function that the runtime is given. Attributes follow the operands as constants.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_CUSTOMOPERATOR_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_CUSTOMOPERATOR_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

#include "NodeContext.h"

namespace tc {

struct CustomOperator {
  /// A step of an expression in reverse Polish notation.
  struct Step {
    enum Kind { Number, Dim, Add, Subtract, Multiply, Divide } kind;
    int64_t number = 0;   ///< or the dim
    unsigned operand = 0; ///< of a dim
  };
  using Expression = std::vector<Step>;
  struct Operand {
    std::string name;
    int64_t dtype = 0; ///< tcrt_dtype_t; 0: any
    int64_t rank = -1; ///< -1: any
  };
  struct Attribute {
    std::string name;
    enum Kind { Int, Float, String } kind = Int;
    bool isList = false, hasDefault = false;
    std::vector<int64_t> ints;
    std::vector<double> floats;
    std::vector<std::string> strings;
  };
  struct Result {
    int64_t dtype = 0;               ///< 0: as `like`
    unsigned like = 0;               ///< an operand
    std::optional<unsigned> dimsOf;  ///< dims are those of this operand
    std::optional<int64_t> freeRank; ///< only the function knows the dims: it returns a handle
    std::vector<Expression> dims;
  };
  std::string domain, name, function;
  int64_t sinceVersion = 1;
  std::vector<Operand> operands;
  std::vector<Attribute> attributes;
  std::vector<Result> results;
};

/// The signature for a node, or null.
const CustomOperator *findCustomOperator(const GraphToPrimOptions &options, graph::NodeOp node);
/// Sets the results of the node of `ctx`.
mlir::LogicalResult convertCustomOperator(NodeContext &ctx, const CustomOperator &custom);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_CUSTOMOPERATOR_H
