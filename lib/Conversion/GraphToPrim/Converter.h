//===- Converter.h - the walk over a graph that gives each node to its handler ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_CONVERTER_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_CONVERTER_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

#include "ArgumentSizes.h"
#include "IntValues.h"
#include "NodeContext.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace tc {

class Converter : public RegionConverter {
public:
  Converter(mlir::ModuleOp module, const GraphToPrimOptions &options, GraphToPrimReport &report)
      : module(module), options(options), report(report), symbols(module.getContext()),
        builder(module.getLoc(), module.getContext(), symbols), ints(symbols),
        argumentSizes(options, builder,
                      [this](mlir::Location loc, const llvm::Twine &message) { reportInvalid(loc, message); }) {}
  ~Converter() override {
    for (auto &region : regions)
      region->dropAllReferences();
  }

  mlir::FailureOr<mlir::func::FuncOp> convert(graph::FuncOp source);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> convertRegion(mlir::Region &region, mlir::ValueRange arguments,
                                                                mlir::Value iteration) override;
  llvm::ArrayRef<mlir::Value> getIterations() const override { return iterations; }
  mlir::Region &newRegion() override {
    regions.push_back(std::make_unique<mlir::Region>());
    return *regions.back();
  }
  int64_t takeStream() override { return streams++; }
  bool hasFailed() const { return failedNodes > 0; }
  /// Nodes that tc refuses and a function of the user's own computes: added to where one is met (allowHostOps), for the
  /// next try.
  void setHostNodes(llvm::DenseSet<mlir::Operation *> &nodes) { hostNodes = &nodes; }

  // --- of GraphTypes ---
  void addArguments(graph::FuncOp source, mlir::Block &block);
  /// Converts what a value needs. Null where that fails; then a diagnostic or the report says why.
  mlir::Value convertValue(mlir::Value graphValue);
  /// From now on the value is one that nothing is known of but its type.
  void replaceByArgument(mlir::Value graphValue, mlir::Block &block);
  IntValues &getInts() { return ints; }
  void forgetReport() {
    report = {};
    reasons.clear();
  }

private:
  mlir::FailureOr<mlir::RankedTensorType> argumentType(graph::FuncOp source, unsigned index);
  void convertStateWrite(graph::NodeOp node);
  void addStates(mlir::func::FuncOp function);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> convertBody(mlir::Block &block);
  void convertNode(graph::NodeOp node);
  void convertConstant(graph::ConstantOp constant);
  void convertEarly(graph::NodeOp node);
  bool convertDefinition(graph::NodeOp node, llvm::ArrayRef<mlir::Value> operands);
  void convertVarying(graph::NodeOp node, llvm::ArrayRef<unsigned> varying);
  void convertCall(graph::NodeOp node, graph::FuncOp callee, llvm::ArrayRef<mlir::Value> operands);
  void convertBackendPart(graph::NodeOp node, graph::FuncOp callee, llvm::ArrayRef<mlir::Value> operands);
  const CustomOperator *findCustom(graph::NodeOp node);
  void reportUnsupported(graph::NodeOp node, llvm::StringRef reason);
  void reportInvalid(mlir::Location loc, const llvm::Twine &message);
  void checkSkipped(graph::NodeOp node);
  bool admit(graph::NodeOp node, mlir::Value result);
  bool agrees(graph::NodeOp node, unsigned index, mlir::Value v);
  mlir::Value foldIntegers(mlir::Value v);
  mlir::Value refine(mlir::Value v, mlir::Type declared);
  void checkOutput(graph::FuncOp source, unsigned index, mlir::Value v);
  mlir::TypedAttr defaultWords(mlir::TypedAttr value);
  void drawRandom(mlir::func::FuncOp function);
  void eraseWordTypes(mlir::func::FuncOp function);
  /// Whether `v` is the result of something that failed.
  bool isPoisoned(mlir::Value v) const { return !values.count(v); }

  mlir::ModuleOp module;
  const GraphToPrimOptions &options;
  GraphToPrimReport &report;
  SymbolTableBuilder symbols;
  PrimBuilder builder;
  IntValues ints;
  ArgumentSizes argumentSizes;
  std::vector<std::unique_ptr<mlir::Region>> regions;
  /// Hold the definitions of nodes, whose values are keys of `values`.
  std::vector<mlir::OwningOpRef<graph::FuncOp>> definitions;
  /// Of graph values; null where an optional value is absent.
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  /// Constants that are states, as a node of the function writes them; and the value written last.
  llvm::MapVector<llvm::StringRef, graph::ConstantOp> states;
  llvm::MapVector<llvm::StringRef, mlir::Value> written;
  mlir::DictionaryAttr parameters;
  /// Values of varying rank that a branch yields: the terminator, and the operands' numbers.
  mlir::Operation *leavingFrom = nullptr;
  llvm::SmallVector<unsigned> leaving;
  int64_t failedNodes = 0, callDepth = 0, streams = 0;
  bool isEarly = false;  ///< in convertEarly
  graph::NodeOp unknown; ///< stands for what the front end does not know
  llvm::DenseSet<mlir::Operation *> *hostNodes = nullptr;
  llvm::SmallVector<mlir::Value> iterations;
  /// Symbols from this one on depend on data.
  unsigned inputSymbols = 0;
  /// Position of a reason in report.unsupported, and where it was met first.
  llvm::StringMap<std::pair<size_t, mlir::Location>> reasons;

public:
  void emitUnsupported();
};

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_CONVERTER_H
