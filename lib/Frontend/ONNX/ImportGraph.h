//===- ImportGraph.h - ONNX protos to ops of the graph dialect ------------------------------------------*- C++ -*-===//
//
// GraphImporter makes ops from nodes, for a whole file (ImportOnnx.cpp) and for one function body of a schema
// (ExpandFunction.cpp). The two differ in where values, types and constants come from, which are its public fields.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_ONNX_IMPORTGRAPH_H
#define TC_LIB_FRONTEND_ONNX_IMPORTGRAPH_H

#include "mlir/IR/Builders.h"
#include "onnx/onnx_pb.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Frontend/ONNX.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace tc::onnxfe {

/// `text` between quotes, on one line whatever it holds, and shortened.
std::string quote(llvm::StringRef text);

class GraphImporter {
public:
  using AttrResult = llvm::Expected<mlir::Attribute>;

  explicit GraphImporter(mlir::MLIRContext *context) : builder(context), context(context) {}

  //===--- what differs between a file and a function body --------------------------------------------------------===//

  /// Path for messages, and its last component for locations.
  std::string path, fileName;
  /// Blob of the model's file, for data at kSelfLocation.
  std::string modelBlob;
  ImportOptions options;
  int64_t irVersion = 0;
  /// Version of each imported domain, by names as graph.node has them.
  llvm::StringMap<int64_t> opsets;
  /// Model-local functions: "domain:type:overload" -> symbol.
  llvm::StringMap<std::string> functions;
  /// Whether references to attribute parameters are replaced by the values in `parameters` (absent: no attribute).
  bool substituteParameters = false;
  llvm::StringMap<mlir::Attribute> parameters;
  /// Subgraphs of the expanded node, for parameters of type GRAPH.
  llvm::StringMap<const onnx::GraphProto *> graphParameters;
  /// Constants for tensors that were made from attributes, by the index in their location (kAttrLocation).
  std::vector<mlir::Attribute> tensorAttrs;
  /// Prefix of the names of nodes; replaces their own name where it is not empty.
  std::string namePrefix;
  mlir::OpBuilder builder;

  //===--- scopes -------------------------------------------------------------------------------------------------===//

  struct Scope {
    llvm::StringMap<mlir::Value> values;
    /// Declared or inferred types of values.
    llvm::StringMap<mlir::Type> types;
    /// Which node makes each value of the graph, for messages about order.
    llvm::StringMap<int> producers;
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> *nodes = nullptr;
  };
  std::vector<std::unique_ptr<Scope>> scopes;
  Scope &pushScope() { return *scopes.emplace_back(std::make_unique<Scope>()); }
  void popScope() { scopes.pop_back(); }
  mlir::Value lookup(llvm::StringRef name) const;

  //===--- import -------------------------------------------------------------------------------------------------===//

  llvm::Error error(const llvm::Twine &what) const;
  llvm::Error nodeError(llvm::StringRef node, const llvm::Twine &what) const;
  llvm::Error setOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports);
  /// All nodes, in order, into the builder's block; values go to the innermost scope, which this fills.
  llvm::Error importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes);
  /// Initializers into the builder's block, but for those that `skip` names.
  llvm::Error importInitializers(const onnx::GraphProto &graph, const llvm::StringMap<mlir::Attribute> *skip);
  void declareTypes(Scope &scope, const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &infos);
  llvm::Error define(llvm::StringRef name, mlir::Value value, llvm::StringRef node);

  llvm::Expected<mlir::Type> importElementType(int dataType, llvm::StringRef what) const;
  /// !tc.unknown for a type that is not set.
  llvm::Expected<mlir::Type> importType(const onnx::TypeProto &type, llvm::StringRef what) const;
  AttrResult importTensor(const onnx::TensorProto &tensor, llvm::StringRef node, llvm::StringRef name);
  AttrResult importSparse(const onnx::SparseTensorProto &sparse, llvm::StringRef node, llvm::StringRef name);
  /// Null for a reference to an absent parameter. Not for attributes that are graphs.
  AttrResult importAttribute(const onnx::AttributeProto &attribute, llvm::StringRef node);
  mlir::Location getLocation(llvm::StringRef name, int index) const;

private:
  llvm::Error importNode(const onnx::NodeProto &node, int index);
  llvm::Error importSubgraph(const onnx::GraphProto &graph, mlir::Region &region, llvm::StringRef node);
  llvm::Error checkNode(const onnx::NodeProto &node, llvm::StringRef name, llvm::StringRef domain, int64_t opset);
  llvm::Error undefinedValue(llvm::StringRef value, llvm::StringRef node, int index);
  llvm::Expected<mlir::Attribute> importExternal(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                                 const llvm::Twine &where);
  const OnnxSchema *getSchema(llvm::StringRef domain, llvm::StringRef type, int64_t opset);

  mlir::MLIRContext *context;
  llvm::StringMap<std::optional<OnnxSchema>> schemas;
};

/// The TensorProto.DataType of an element type; UNDEFINED where there is none.
int getDataType(mlir::Type type);

/// Location of external data that stands for GraphImporter::tensorAttrs, followed by the index.
inline constexpr llvm::StringLiteral kAttrLocation = "\x01"
                                                     "attr";

} // namespace tc::onnxfe

#endif // TC_LIB_FRONTEND_ONNX_IMPORTGRAPH_H
