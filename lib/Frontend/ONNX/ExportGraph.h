//===- ExportGraph.h - ops of the graph dialect to ONNX protos ------------------------------------------*- C++ -*-===//
//
// The way back: for one node, whose schema's body depends on it (ExpandFunction.cpp), and for a whole model
// (ExportOnnx.cpp).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_ONNX_EXPORTGRAPH_H
#define TC_LIB_FRONTEND_ONNX_EXPORTGRAPH_H

#include "mlir/IR/BuiltinAttributes.h"
#include "onnx/onnx_pb.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <string>
#include <vector>

namespace tc::onnxfe {

/// Values get names by first use.
class GraphExporter {
public:
  /// Large constants go to `tensors`, and the protos name them by kAttrLocation; null: all stand in the protos.
  explicit GraphExporter(std::vector<mlir::Attribute> *tensors) : tensors(tensors) {}

  llvm::MapVector<mlir::Value, std::string> names;
  /// Names that no value gets by itself.
  llvm::StringSet<> reserved;

  std::string getName(mlir::Value value);
  /// Leaves the proto unset for unknown types. `dims` has names of open ones, or is null.
  void exportType(mlir::Type type, onnx::TypeProto &proto, mlir::ArrayAttr dims = {});
  llvm::LogicalResult exportTensor(mlir::Attribute attr, onnx::TensorProto &proto);
  llvm::LogicalResult exportAttribute(llvm::StringRef name, mlir::Attribute attr, onnx::AttributeProto &proto);
  llvm::LogicalResult exportNode(graph::NodeOp node, onnx::NodeProto &proto);
  /// Nodes and constants of a block. Constants are initializers of `graph`, or, where there is none, nodes.
  llvm::LogicalResult exportBlock(mlir::Block &block, google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                                  onnx::GraphProto *graph);

private:
  llvm::LogicalResult exportGraph(mlir::Region &region, onnx::GraphProto &graph);

  std::vector<mlir::Attribute> *tensors;
};

} // namespace tc::onnxfe

#endif // TC_LIB_FRONTEND_ONNX_EXPORTGRAPH_H
