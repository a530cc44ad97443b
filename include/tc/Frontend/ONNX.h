//===- ONNX.h - ONNX files to the graph dialect, and what ONNX's schemas say ----------------------------*- C++ -*-===//
//
// importOnnx turns a file into a module of the graph dialect: graph.func @main, and one private graph.func per
// model-local function. Weights stay in the mapped file (#tc.data). Import is total: it interprets nothing, and refuses
// only files that are not valid ONNX or of versions that the ONNX library does not know. No header of ONNX or protobuf
// is needed to use this one, and nothing here throws.
//
// Errors are one sentence: `<file>: error: node "<name>": <what is wrong>; <what to do>`, the node where there is one.
//
// Schemas: the conversion to prim asks which version of an operator a node is (getOnnxSchema), for the values of absent
// attributes (getOnnxAttributeDefault), and replaces an operator that it has no handler for by the body that the schema
// has (expandOnnxFunction). Domains are those of graph.node: "ai.onnx" is ONNX's own, never "".
//
// Thread safety: all functions may be called at the same time, with different contexts.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_FRONTEND_ONNX_H
#define TC_FRONTEND_ONNX_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class MLIRContext;
class Operation;
class RewriterBase;
} // namespace mlir

namespace tc {

/// How importOnnx reads a file.
struct ImportOptions {
  /// Refine the types that the file declares by ONNX's shape inference and data propagation.
  bool inferShapes = true;
  /// Compare nodes with their schemas: numbers of operands and results, attributes.
  bool checkNodes = true;
  /// Subgraphs within subgraphs, and types within types.
  unsigned maxDepth = 64;
  /// Nodes of all graphs and functions together.
  uint64_t maxNodes = 4'000'000;
};

/// Registers the dialects that importOnnx makes.
void registerOnnxDialects(mlir::DialectRegistry &registry);

/// Reads an ONNX file.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(mlir::MLIRContext *context, llvm::StringRef path,
                                                             const ImportOptions &options = {});

/// Writes a module that importOnnx made, or a part of it, as an ONNX file with all of its constants. The error is a
/// sentence that begins with the path.
llvm::Error exportOnnx(mlir::ModuleOp module, llvm::StringRef path);
/// The bytes of such a file. The error is what keeps the module from being one, without a place.
llvm::Expected<std::string> exportOnnxBytes(mlir::ModuleOp module);

/// One formal operand or result of an operator.
struct OnnxParameter {
  enum Kind { Single, Optional, Variadic };
  std::string name;
  Kind kind = Single;
};
/// One attribute of an operator; `kind` is ONNX's name of its type: "INT", "FLOATS", "GRAPH", ...
struct OnnxAttribute {
  std::string name;
  std::string kind;
  bool required = false;
  bool hasDefault = false;
};
/// What ONNX's schema says about one version of an operator.
struct OnnxSchema {
  std::string domain, type;
  /// The version of the domain that introduced this version of the operator.
  int64_t sinceVersion = 1;
  unsigned minInputs = 0, maxInputs = 0, minOutputs = 0, maxOutputs = 0;
  bool deprecated = false;
  /// Whether expandOnnxFunction may replace it: some bodies exist only from a later opset on, or for some operands.
  bool hasFunctionBody = false;
  std::vector<OnnxParameter> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  /// Element types that some operand or result may have, as ONNX names them (float, int64, ...), in alphabetical order.
  std::vector<std::string> elementTypes;
};

/// The schema of an operator at an opset of its domain; nullopt where ONNX has none.
std::optional<OnnxSchema> getOnnxSchema(llvm::StringRef domain, llvm::StringRef type, int64_t opset);
/// Only its since-version: cheap.
std::optional<int64_t> getOnnxSinceVersion(llvm::StringRef domain, llvm::StringRef type, int64_t opset);
/// The default of an attribute, as graph.node has it; null where there is none.
mlir::Attribute getOnnxAttributeDefault(mlir::MLIRContext *context, llvm::StringRef domain, llvm::StringRef type,
                                        int64_t opset, llvm::StringRef attribute);
/// First and last supported version of a domain that ONNX defines.
std::optional<std::pair<int64_t, int64_t>> getOnnxOpsetRange(llvm::StringRef domain);

/// A version of an operator that ONNX defines.
struct OnnxOperator {
  std::string domain, type;
  int64_t sinceVersion;
  bool deprecated;
};
/// All versions of all operators, ordered by domain, type, version.
std::vector<OnnxOperator> getOnnxOperators();
/// The operators in the function body that an operator has at an opset, those of subgraphs too, each once and with the
/// version that the body takes it at. A body that depends on its node is that of a plain one: operands of the first
/// element type allowed, the rank and the optional operands that a body needs, no attributes that may be left out.
/// nullopt where there is none.
std::optional<std::vector<OnnxOperator>> getOnnxBodyOperators(llvm::StringRef domain, llvm::StringRef type,
                                                              int64_t opset);

/// Replaces a graph.node by the nodes of the function body that its ONNX schema has at the node's opset (also of bodies
/// that depend on operand types). Types of the new inner values are !tc.unknown; results keep their types. New nodes
/// are named "<node>/<type>". Failure, with the node left alone and no diagnostic, where the schema has no body for it,
/// or one that depends on operand types of which some are unknown.
llvm::LogicalResult expandOnnxFunction(mlir::Operation *node, mlir::RewriterBase &rewriter);

/// Whether `node`, a graph.node that calls no model-local function, has a function body in its ONNX schema.
bool hasOnnxFunction(mlir::Operation *node);

/// What is wrong with operands of these types (null where absent) for `node`, a graph.node, by its operator's schema:
/// their kinds, element types, and which of them must be alike. Empty where nothing is, or where there is no schema.
std::string findOnnxOperandError(mlir::Operation *node, llvm::ArrayRef<mlir::Type> types);

} // namespace tc

#endif // TC_FRONTEND_ONNX_H
