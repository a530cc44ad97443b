//===- CustomOperator.h - operators of the user's own ---------------------------------------------------*- C++ -*-===//
//
// A signature file (examples/custom-op/README.md) says what a node of such an operator takes, gives and writes. Front
// ends without types, the pass that makes values of writes, and the conversion, where the node becomes prim.host_call
// of a function that the runtime is given, all ask here.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_CUSTOM_CUSTOMOPERATOR_H
#define TC_DIALECT_GRAPH_CUSTOM_CUSTOMOPERATOR_H

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/Torch/Schemas.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
    // Only where there is a schema:
    bool written = false;    ///< in place
    bool isOptional = false; ///< may be None
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

  CustomOperator() = default;
  CustomOperator(const CustomOperator &) = delete; // the schema's words point into schemaText
  CustomOperator &operator=(const CustomOperator &) = delete;

  std::string domain, name, function;
  int64_t sinceVersion = 1;
  std::vector<Operand> operands;
  std::vector<Attribute> attributes;
  /// What the function makes: of the schema's results those that are no names of what it writes.
  std::vector<Result> results;
  /// PyTorch's, where the file gives it: operands and attributes in its order, and what the operator writes.
  std::string schemaText;
  std::optional<torch::Schema> schema;
  /// Arguments of the schema that a function is not given: calls must leave them at None.
  std::vector<std::string> omitted;

  bool writes() const { return schema && schema->writes(); }
};

namespace graph {
/// Unit attribute of a node of an operator that writes operands: it returns what it writes, behind what it makes.
inline constexpr llvm::StringLiteral kFunctionalAttr = "graph.functional";
} // namespace graph

/// Signatures by the order of their files.
using CustomOperators = std::vector<std::shared_ptr<const CustomOperator>>;

/// Appends the signatures of a JSON file; errors name the file.
llvm::Error readCustomOperators(llvm::StringRef path, CustomOperators &operators);

/// The signature for a node, or null. The greatest version that is not above the node's opset.
const CustomOperator *findCustomOperator(const CustomOperators &operators, graph::NodeOp node);
/// Likewise, for an operator of PyTorch by what archives call it: "my", "blend.default".
const CustomOperator *findCustomOperator(const CustomOperators &operators, llvm::StringRef domain, llvm::StringRef type,
                                         int64_t opset, bool hasOverloads);

} // namespace tc

#endif // TC_DIALECT_GRAPH_CUSTOM_CUSTOMOPERATOR_H
