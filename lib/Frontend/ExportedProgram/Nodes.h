//===- Nodes.h - nodes of programs of torch.export to graph.node ----------------------------------------*- C++ -*-===//
//
// Nothing is interpreted here but regions that only set a mode of PyTorch's, whose nodes stand in their place.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_NODES_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_NODES_H

#include "Archive.h"
#include "Layouts.h"
#include "SizeExpr.h"

#include "tc/Dialect/Graph/IR/Graph.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/StringSaver.h"

namespace tc::exported {

/// A graph of the program and its values so far; nested graphs see none of the outer one's.
struct Scope {
  explicit Scope(const json &graph) : graph(graph) {}
  const json &graph;
  llvm::StringMap<mlir::Value> values;
  /// The element type of torch.autocast around it; null outside of such regions.
  mlir::Type autocast;
};

class NodeImporter {
public:
  NodeImporter(mlir::OpBuilder &builder, const Archive &archive, llvm::StringRef fileName, int64_t opset)
      : context(builder.getContext()), builder(builder), archive(archive), fileName(fileName), opset(opset) {}

  /// The type of a value of the graph. `sizes`, if given, receives an expression for each dim that is no number; one
  /// that cannot be read is nullopt.
  llvm::Expected<mlir::Type> typeOf(const Scope &scope, llvm::StringRef name,
                                    llvm::SmallVectorImpl<std::optional<SizeExpr>> *sizes = nullptr);
  /// Emits the graph's nodes.
  llvm::Error importNodes(Scope &scope);
  /// What an Argument (a tensor, a number) is as a value; None is graph.none.
  llvm::Expected<mlir::Value> valueOf(Scope &scope, llvm::StringRef reader, const json &argument);
  /// The value of this name; `reader` is who asks.
  llvm::Expected<mlir::Value> lookup(const Scope &scope, llvm::StringRef reader, llvm::StringRef name);
  /// The name of a value that an Argument names, "" where it is a constant.
  static llvm::StringRef nameOf(const json &argument);
  /// Whether an Argument is None, a number or a word.
  static bool isConstant(const json &argument);
  /// What the program says of a tensor; null if nothing.
  static const json *metaOf(const Scope &scope, llvm::StringRef name);

  /// Of nodes; whoever emits arguments and constants adds theirs.
  Layouts layouts;

private:
  struct Arguments {
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<llvm::StringRef> names;
    mlir::NamedAttrList attributes;
    llvm::SmallVector<std::pair<std::string, const json *>> graphs;
  };

  llvm::Error error(const llvm::Twine &what) { return archive.error(what); }
  llvm::Error nodeError(llvm::StringRef node, const llvm::Twine &what) {
    return error("node \"" + node + "\": " + what);
  }
  llvm::Expected<mlir::RankedTensorType> tensorType(llvm::StringRef name, const json &meta,
                                                    llvm::SmallVectorImpl<std::optional<SizeExpr>> *sizes);
  llvm::Error importNode(Scope &scope, const json &node);
  void describeMemory(const Scope &scope, const json &input, mlir::NamedAttrList &attributes);
  /// One argument: appends operands and their names, or an attribute.
  llvm::Error importArgument(Scope &scope, llvm::StringRef node, llvm::StringRef name, const json &argument,
                             Arguments &arguments);
  /// The values that a node's outputs name, in order.
  llvm::Error listResults(llvm::StringRef node, const json &outputs, llvm::SmallVectorImpl<llvm::StringRef> &names);
  /// Emits a nested graph where the builder stands, for these arguments; gives its outputs.
  llvm::Expected<llvm::SmallVector<mlir::Value>> importGraph(llvm::StringRef node, const json &graph,
                                                             mlir::ValueRange arguments, mlir::Type autocast);
  /// The nodes of a region that only sets a mode, in the place of the node that has it.
  llvm::Error inlineRegion(Scope &scope, llvm::StringRef node, llvm::StringRef type, const json &inputs,
                           llvm::ArrayRef<llvm::StringRef> results);
  /// Converts operands as torch.autocast does, where the results' types show it.
  void castOperands(mlir::Type autocast, llvm::StringRef type, mlir::Location loc, Arguments &arguments,
                    llvm::ArrayRef<mlir::Type> results);
  mlir::Value constant(mlir::Type element, mlir::Attribute value);

  mlir::MLIRContext *context;
  mlir::OpBuilder &builder;
  const Archive &archive;
  std::string fileName;
  int64_t opset;
  int64_t number = 0; ///< of the node, from 1 on
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver{allocator};
};

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_NODES_H
