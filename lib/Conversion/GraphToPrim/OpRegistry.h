//===- OpRegistry.h - which handler gives a node its meaning --------------------------------------------*- C++ -*-===//
//
// Handlers are keyed by domain, type and the first opset that they are for; a node takes the handler with the greatest
// such opset not above its own. Each family file has one populate function that OpRegistry::get() calls once. Nothing
// here knows ONNX: another front end registers under its own domain. Immutable after construction, so threads may share
// it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_OPREGISTRY_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_OPREGISTRY_H

#include "NodeContext.h"
#include "OperandRules.h"

#include <functional>
#include <map>
#include <string>

namespace tc {

/// Emits prim for one node and sets the node's results, or returns failure after ctx.unsupported or ctx.invalid.
using NodeHandler = std::function<mlir::LogicalResult(NodeContext &)>;

/// What a handler does with complex operands.
enum class ComplexUse {
  None,   ///< it does not take them
  Moved,  ///< it moves elements, or compares for equality: it is one handler for all types
  ByParts ///< what it computes is linear in its operand: it runs once for the real and once for the imaginary part
};

struct OpEntry {
  NodeHandler handler;
  /// Operands that must be present; the conversion checks it before the handler runs.
  size_t minOperands = 0;
  ComplexUse complexUse = ComplexUse::None;
  /// Any float type may stand where the definition asks for float: models that were converted to f16 as a whole have
  /// it.
  bool takesAnyFloat = false;
  /// Operand 0 may hold integers of any width from 8 bits on, which the definition does not have.
  bool takesAnyInteger = false;
};

class OpRegistry {
public:
  /// All handlers of tc.
  static const OpRegistry &get();

  void add(llvm::StringRef domain, llvm::StringRef type, int64_t sinceVersion, NodeHandler handler, size_t minOperands);
  /// For all versions that were added.
  void setComplexUse(llvm::StringRef domain, llvm::StringRef type, ComplexUse use);
  void setTakesAnyFloat(llvm::StringRef domain, llvm::StringRef type);
  void setTakesAnyInteger(llvm::StringRef domain, llvm::StringRef type);
  /// Null if there is none.
  const OpEntry *lookup(llvm::StringRef domain, llvm::StringRef type, int64_t opset) const;
  /// What OperandRules.def asks of such nodes, whether they have a handler or not; null if it has no line.
  const OperandRules *lookupRules(llvm::StringRef domain, llvm::StringRef type, int64_t opset) const;
  /// (domain, type) -> since-versions, in order: the table of supported operators.
  using Key = std::pair<std::string, std::string>;
  const std::map<Key, std::map<int64_t, OpEntry>> &entries() const { return table; }

private:
  std::map<Key, std::map<int64_t, OpEntry>> table;
  std::map<Key, std::map<int64_t, OperandRules>> rules;
};

/// Registers under one domain: `onOp("Add", /*sinceVersion=*/7, handler, /*minOperands=*/2)`.
class OpRegistrar {
public:
  OpRegistrar(OpRegistry &registry, llvm::StringRef domain) : registry(registry), domain(domain.str()) {}
  void operator()(llvm::StringRef type, int64_t sinceVersion, NodeHandler handler, size_t minOperands = 1) {
    registry.add(domain, type, sinceVersion, std::move(handler), minOperands);
  }
  /// Says of operators that were registered what they do with complex operands.
  void takeComplex(ComplexUse use, llvm::ArrayRef<llvm::StringRef> types) {
    for (llvm::StringRef type : types)
      registry.setComplexUse(domain, type, use);
  }
  void takeAnyFloat(llvm::StringRef type) { registry.setTakesAnyFloat(domain, type); }
  void takeAnyInteger(llvm::ArrayRef<llvm::StringRef> types) {
    for (llvm::StringRef type : types)
      registry.setTakesAnyInteger(domain, type);
  }

private:
  OpRegistry &registry;
  std::string domain;
};

void populateATenAttention(OpRegistrar &onOp);
void populateATenBackward(OpRegistrar &onOp);
void populateATenContraction(OpRegistrar &onOp);
void populateATenControlFlow(OpRegistrar &onOp);
void populateATenCreation(OpRegistrar &onOp);
void populateATenDropout(OpRegistrar &onOp);
void populateATenElementwise(OpRegistrar &onOp);
void populateATenFakeQuantization(OpRegistrar &onOp);
void populateATenForeach(OpRegistrar &onOp);
void populateATenFunctions(OpRegistrar &onOp);
void populateATenIndexing(OpRegistrar &onOp);
void populateATenLinalg(OpRegistrar &onOp);
void populateATenLoops(OpRegistrar &onOp);
void populateATenLoss(OpRegistrar &onOp);
void populateATenLu(OpRegistrar &onOp);
void populateATenMovement(OpRegistrar &onOp);
void populateATenNorm(OpRegistrar &onOp);
void populateATenOrder(OpRegistrar &onOp);
void populateATenParts(OpRegistrar &onOp);
void populateATenReduction(OpRegistrar &onOp);
void populateATenScan(OpRegistrar &onOp);
void populateATenScatterViews(OpRegistrar &onOp);
void populateATenPooling(OpRegistrar &onOp);
void populateATenResize(OpRegistrar &onOp);
void populateATenRnn(OpRegistrar &onOp);
void populateATenSpectral(OpRegistrar &onOp);
void populateATenSymbolic(OpRegistrar &onOp);
void populateATenVectors(OpRegistrar &onOp);
void populateATenWindows(OpRegistrar &onOp);
void populateMicrosoftAttention(OpRegistrar &onOp);
void populateMicrosoftFused(OpRegistrar &onOp);
void populateMicrosoftInverse(OpRegistrar &onOp);
void populateMicrosoftQuantization(OpRegistrar &onOp);
void populateONNXContraction(OpRegistrar &onOp);
void populateONNXControlFlow(OpRegistrar &onOp);
void populateONNXDeterminant(OpRegistrar &onOp);
void populateONNXEinsum(OpRegistrar &onOp);
void populateONNXElementwise(OpRegistrar &onOp);
void populateONNXImage(OpRegistrar &onOp);
void populateONNXLoss(OpRegistrar &onOp);
void populateONNXMLFeatures(OpRegistrar &onOp);
void populateONNXMLMaps(OpRegistrar &onOp);
void populateONNXMLModels(OpRegistrar &onOp);
void populateONNXMLTrees(OpRegistrar &onOp);
void populateONNXMovement(OpRegistrar &onOp);
void populateONNXNorm(OpRegistrar &onOp);
void populateONNXPooling(OpRegistrar &onOp);
void populateONNXQuantization(OpRegistrar &onOp);
void populateONNXRandom(OpRegistrar &onOp);
void populateONNXReduction(OpRegistrar &onOp);
void populateONNXResize(OpRegistrar &onOp);
void populateONNXRnn(OpRegistrar &onOp);
void populateONNXSample(OpRegistrar &onOp);
void populateONNXSelect(OpRegistrar &onOp);
void populateONNXSequence(OpRegistrar &onOp);
void populateONNXShape(OpRegistrar &onOp);
void populateONNXSpectral(OpRegistrar &onOp);
void populateONNXString(OpRegistrar &onOp);
void populateONNXTfIdf(OpRegistrar &onOp);
void populateONNXTraining(OpRegistrar &onOp);
void populateTorchNumbers(OpRegistrar &onOp);
void populateTorchQuantization(OpRegistrar &onOp);
void populateTorchVision(OpRegistrar &onOp);
void populateTransformers(OpRegistrar &onOp);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_OPREGISTRY_H
