//===- GraphToPrim.h - meaning of front-end nodes: graph to prim --------------------------------------------------===//
//
// Rewrites every function of `graph.node` ops into `prim` ops. One forward walk; each node is given to the handler that
// the registry (OpRegistry.h) holds for its domain, type and opset. Sizes are exact expressions over the function's
// symbols from the start: a symbolic dim of an input becomes a symbol, shape arithmetic is folded into expressions, and
// a size that depends on data gets a fresh symbol with prim.bind_symbol.
//
// Errors: all nodes that can't be converted are reported in one run as diagnostics on their locations and in the
// report. Nothing here asserts on what a model contains.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CONVERSION_GRAPHTOPRIM_GRAPHTOPRIM_H
#define TC_CONVERSION_GRAPHTOPRIM_GRAPHTOPRIM_H

#include "tc/Dialect/Graph/Custom/CustomOperator.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tc {

/// What the user said.
/// The sizes of a dim: all multiples of `divisor` from `min` to `max`; those in `listed` get code of their own beside.
/// Where there are `buckets`, rising, the last of which is `max`, a run is padded to the first that holds its size, and
/// `min` is 1.
struct DimSizes {
  int64_t min = 0, max = INT64_MAX, divisor = 1;
  std::vector<int64_t> listed, buckets;
  bool operator==(const DimSizes &other) const {
    return min == other.min && max == other.max && divisor == other.divisor && listed == other.listed &&
           buckets == other.buckets;
  }
};

struct GraphToPrimOptions {
  /// `--dim batch=1` is {"batch", {1, 1}}, and makes the dim static; `--dim batch=1..64` is {"batch", {1, 64}}, and
  /// `--dim batch=1,8,1..64` {"batch", {1, 64, 1, {1, 8}}}. `--dim batch=multiple-of:8,8..512` is {"batch", {8, 512,
  /// 8}}.
  std::map<std::string, DimSizes> dims;
  /// `--shape x=1,3,224,224`: the sizes of the input of that name; -1 leaves a dim as the model has it.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// `--shape x=batch,3:f32`: names of dims ("" of others), which only models without sizes of their own take, and the
  /// element type.
  std::map<std::string, std::vector<std::string>> shapeNames;
  std::map<std::string, std::string> elementTypes;
  /// Signatures of operators of the user's own, which go before tc's unless `allowHostOps` is set.
  CustomOperators customOperators;
  /// Signatures of operators that tc has are for the nodes that it refuses, instead of for all.
  bool allowHostOps = false;
};

/// Reads `batch=1`, `batch=1..64`, `batch=1,8,1..64`, one of these behind `multiple-of:8,`, or `batch=bucket:8,64` into
/// options.dims; false if it is of another form, or if its sizes contradict each other, which `conflict` then says.
/// Listed sizes without a range leave the dim open; those beyond the range are of another form.
inline constexpr llvm::StringLiteral kDimForms =
    "NAME=SIZE, NAME=MIN..MAX, NAME=SIZE,SIZE,MIN..MAX, NAME=multiple-of:N,MIN..MAX or NAME=bucket:SIZE,SIZE, with "
    "sizes from 0 on, N and buckets from 1 on, the smaller first, those listed within the range, whose MAX may be left "
    "out";
bool parseDimOption(llvm::StringRef text, GraphToPrimOptions &options, std::string *conflict = nullptr);
/// Brings the ends of a range of sizes to multiples of `divisor`; false, and the range as it was, if it has none.
bool alignToMultiples(int64_t &min, int64_t &max, int64_t divisor);
/// Reads `x=1,3,224,224` (or with x between the sizes; names for sizes; `:f32` behind them) into options.shapes; false
/// if it is of another form.
bool parseShapeOption(llvm::StringRef text, GraphToPrimOptions &options);

/// Whether nodes of a domain are constructs of code, such as loops, whose reasons are whole sentences.
inline bool isConstruct(llvm::StringRef domain) { return domain == "prim"; }

/// Nodes that fail for one reason.
struct UnsupportedNode {
  std::string name;               ///< of the first such node
  std::vector<std::string> names; ///< of all
  std::string domain, type;
  int64_t opset = 0;
  std::string reason;
  int64_t count = 0;
};

/// What the conversion found. Fills --explain and decides the exit code.
struct GraphToPrimReport {
  /// Valid nodes that tc lacks (exit code 2), grouped by type and reason.
  std::vector<UnsupportedNode> unsupported;
  /// Number of contradictions in the model, each reported as a diagnostic (exit code 1).
  int64_t invalidCount = 0;
};

/// Replaces a node that has no handler by the nodes of its operator's definition; failure, without a diagnostic, where
/// there is none. The front ends know such definitions; this library must not know the front ends, so the driver sets
/// the function (expandOnnxFunction) once, before any conversion.
using FunctionExpander = llvm::LogicalResult (*)(mlir::Operation *node, mlir::RewriterBase &rewriter);
/// Whether a node's operator has a definition, for some operands at least.
using DefinitionQuery = bool (*)(mlir::Operation *node);
void setFunctionExpander(FunctionExpander expander, DefinitionQuery hasDefinition);
/// What is wrong with operands of these types (null where absent), by the operator's definition: a text that reads on
/// from the node's name and operator; empty where nothing is. The driver sets it as well (findOnnxOperandError).
using OperandCheck = std::string (*)(mlir::Operation *node, llvm::ArrayRef<mlir::Type> types);
void setOperandCheck(OperandCheck check);

/// An operator that has a handler, and the opsets from which on it has one or another.
struct HandledOperator {
  std::string domain, type;
  std::vector<int64_t> sinceVersions;
  /// Whether operand 0 may hold integers of any width from 8 bits on, which the definition does not have.
  bool takesAnyInteger = false;
};
/// All of them, in order of domain and type.
std::vector<HandledOperator> getHandledOperators();
/// Whether nodes of this operator at this opset have a handler.
bool hasHandler(llvm::StringRef domain, llvm::StringRef type, int64_t opset);

/// Converts all functions of `module`. On failure diagnostics were emitted and the module still is a graph.
mlir::LogicalResult convertGraphToPrim(mlir::ModuleOp module, const GraphToPrimOptions &options = {},
                                       GraphToPrimReport *report = nullptr);

} // namespace tc

#endif // TC_CONVERSION_GRAPHTOPRIM_GRAPHTOPRIM_H
