//===- NodeContext.h - what a handler sees of one node --------------------------------------------------*- C++ -*-===//
//
// The handlers' API: operands as prim values, attributes with defaults, a builder, errors in one form. Example:
//
//   LogicalResult leakyRelu(NodeContext &ctx) {
//     Value x = ctx.operand(0);
//     Value zero = ctx.b.splatLike(x, 0);
//     return ctx.result(ctx.b.select(ctx.b.compare(CompareKind::GE, x, zero), x,
//                                    ctx.b.binary<MulOp>(x, ctx.getFloat("alpha", 0.01))));
//   }
//
// A handler returns failure only after unsupported() (tc lacks it) or invalid() (the model contradicts itself). Helpers
// that return FailureOr have called invalid() or unsupported() themselves.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_NODECONTEXT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_NODECONTEXT_H

#include "IntValues.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "tc/Dialect/Graph/IR/Graph.h"

namespace tc {

/// Converts the nodes inside a region of a node (control flow); implemented by the conversion.
class RegionConverter {
public:
  virtual ~RegionConverter() = default;
  /// Emits the region's nodes at the builder's insertion point with its arguments replaced by `arguments`; returns what
  /// its terminator yields.
  /// `iteration`: of a loop, its number; null for branches.
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  convertRegion(mlir::Region &region, mlir::ValueRange arguments, mlir::Value iteration) = 0;
  /// The numbers of the iterations of the loops around the node that is converted, from the outside in.
  virtual llvm::ArrayRef<mlir::Value> getIterations() const = 0;
  /// An empty region to build in. What is not moved into an op is kept until the conversion ends, as values are
  /// remembered.
  virtual mlir::Region &newRegion() = 0;
  /// A number that no other node of the model gets: 0, 1, ... in the order of conversion.
  virtual int64_t takeStream() = 0;
};

class NodeContext {
public:
  /// `parameters` are the attribute parameters of the enclosing model-local function.
  NodeContext(graph::NodeOp node, PrimBuilder &builder, IntValues &ints, RegionConverter &regions,
              llvm::ArrayRef<mlir::Value> operands, mlir::DictionaryAttr parameters)
      : b(builder), op(node), ints(ints), regions(regions), operands(operands), parameters(parameters) {
    while (!this->operands.empty() && !this->operands.back())
      this->operands.pop_back();
  }

  PrimBuilder &b;

  // --- the node ---
  graph::NodeOp node() const { return op; }
  int64_t opset() const { return asOpset.value_or(graph::NodeOp(op).getOpset()); }
  /// Operands without trailing absent ones.
  size_t numOperands() const { return operands.size(); }
  bool has(size_t i) const { return i < operands.size() && operands[i]; }
  /// Null if absent.
  mlir::Value operand(size_t i) const { return i < operands.size() ? operands[i] : mlir::Value(); }
  llvm::ArrayRef<mlir::Value> allOperands() const { return operands; }
  size_t numResults() const { return asResults.value_or(op->getNumResults()); }
  /// Whether the node names result i and something reads it.
  bool isResultUsed(size_t i) const { return i < numResults() && (asResults || !op->getResult(i).use_empty()); }
  /// The subgraph of this name, or null.
  mlir::Region *region(llvm::StringRef name) { return op.getGraph(name); }
  mlir::Region &newRegion() { return regions.newRegion(); }
  int64_t takeStream() { return regions.takeStream(); }
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> convertRegion(mlir::Region &region, mlir::ValueRange arguments,
                                                                mlir::Value iteration = {}) {
    return regions.convertRegion(region, arguments, iteration);
  }
  llvm::ArrayRef<mlir::Value> getIterations() const { return regions.getIterations(); }

  /// The first result of ai.onnx's operator `type` on other operands, with this node's attributes.
  mlir::FailureOr<mlir::Value> emitAs(llvm::StringRef type, int64_t opset, llvm::ArrayRef<mlir::Value> operands);
  /// The first `count` results of another operator, on other operands and with attributes of its own.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> emitOperator(llvm::StringRef type, int64_t opset,
                                                               llvm::ArrayRef<mlir::Value> operands,
                                                               llvm::ArrayRef<mlir::NamedAttribute> attributes,
                                                               size_t count = 1, llvm::StringRef domain = "ai.onnx");

  /// Runs `handler` once for the real and once for the imaginary parts of complex operands, for result 0.
  mlir::LogicalResult emitByParts(llvm::function_ref<mlir::LogicalResult(NodeContext &)> handler);
  /// Whether the operands are imaginary parts: numbers in attributes are real, and 0 here.
  bool isImaginary() const { return imaginary; }

  // --- attributes; a wrong kind reads as absent ---
  mlir::Attribute attr(llvm::StringRef name) const;
  bool hasAttr(llvm::StringRef name) const { return bool(attr(name)); }
  int64_t getInt(llvm::StringRef name, int64_t defaultValue) const;
  double getFloat(llvm::StringRef name, double defaultValue) const;
  std::string getString(llvm::StringRef name, llvm::StringRef defaultValue) const;
  std::optional<llvm::SmallVector<int64_t>> getInts(llvm::StringRef name) const;
  std::optional<llvm::SmallVector<double>> getFloats(llvm::StringRef name) const;
  std::optional<llvm::SmallVector<std::string>> getStrings(llvm::StringRef name) const;

  // --- results ---
  mlir::LogicalResult set(size_t i, mlir::Value value);
  /// Sets result 0.
  mlir::LogicalResult result(mlir::Value value) { return set(0, value); }
  llvm::ArrayRef<mlir::Value> results() const { return produced; }

  // --- errors: one line without the node's name, which is put in front ---
  /// A valid node that tc lacks. `what` reads on from "<Type> (opset N)", for instance "with mode \"wrap\" is not
  /// supported; supported modes: constant, edge".
  mlir::LogicalResult unsupported(const llvm::Twine &what);
  /// The model contradicts itself or its operator's definition.
  mlir::LogicalResult invalid(const llvm::Twine &what);
  /// Refuses a node that lacks one of these operands.
  mlir::LogicalResult requireOperands(llvm::ArrayRef<size_t> required);
  /// Branches of the node give these results different ranks: what reads them must be converted inside the branches.
  mlir::LogicalResult ranksVary(llvm::ArrayRef<unsigned> results);
  llvm::ArrayRef<unsigned> resultsOfVaryingRank() const { return varying; }
  bool isUnsupported() const { return !unsupportedReason.empty(); }
  bool isInvalid() const { return !invalidReason.empty(); }
  llvm::StringRef reason() const { return isInvalid() ? invalidReason : unsupportedReason; }

  // --- integers ---
  /// Elements of an integer tensor as size expressions.
  std::optional<Sizes> intValues(mlir::Value v) { return ints.get(v); }
  /// The number of elements of `v`, in its shortest form.
  mlir::AffineExpr countElements(mlir::Value v) { return ints.countElements(v); }
  /// Elements as constants.
  std::optional<llvm::SmallVector<int64_t>> constantInts(mlir::Value v);
  /// One element as a double where it is a known constant.
  std::optional<double> constantScalar(mlir::Value v);
  /// Elements of a 1-D integer tensor as sizes: what can't be expressed gets a fresh symbol, computed from the data.
  /// Fails if the tensor's rank or element count isn't fixed.
  /// `min`: what they may be at least; from 0 on known ones outside of [min, 2^62) are refused, too.
  mlir::FailureOr<Sizes> requireSizes(mlir::Value v, llvm::StringRef what, int64_t min = 0);
  /// Constant integers of attribute `name`, or else of operand i; nullopt within if neither is there.
  mlir::FailureOr<std::optional<llvm::SmallVector<int64_t>>> intsOf(llvm::StringRef name, size_t i);
  /// An axis in [0, rank), from one that may be negative.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  mlir::FailureOr<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  // --- shapes ---
  /// NumPy broadcasting of sizes. Unequal unknown sizes give a fresh symbol (the one that is not 1 at run time); an
  /// unknown size against a static one other than 1 gives the static one, with prim.broadcast deciding at run time.
  mlir::FailureOr<Sizes> broadcastSizes(llvm::ArrayRef<Sizes> all);
  /// Broadcasts all to common sizes.
  mlir::LogicalResult broadcastTogether(llvm::MutableArrayRef<mlir::Value> values);
  /// States that sizes compare like this (EQ or LE), or (`orOne`) that the first is 1: where it can't be told, by a
  /// guard that is checked at run time. `what` completes the message "<Type> needs <what>".
  mlir::LogicalResult require(prim::CompareKind kind, mlir::AffineExpr a, mlir::AffineExpr b, const llvm::Twine &what,
                              bool orOne = false);
  mlir::LogicalResult requireEqual(mlir::AffineExpr a, mlir::AffineExpr b, const llvm::Twine &what) {
    return require(prim::CompareKind::EQ, a, b, what);
  }
  /// States that `v` has `sizes` (same rank): where they are not provably equal, by guards and a reshape.
  mlir::FailureOr<mlir::Value> castSizes(mlir::Value v, SizesRef sizes);
  /// The element of a tensor that has one, 0-D; sizes that are not known to be 1 get a guard.
  mlir::FailureOr<mlir::Value> scalar(mlir::Value v, const llvm::Twine &what);
  /// Broadcasts `v`, aligned on the right, to `sizes`, which it must not enlarge.
  mlir::FailureOr<mlir::Value> broadcastOnto(mlir::Value v, SizesRef sizes);
  /// A reshape that the operator's definition asks for: sizes that are not provably as many elements get a guard.
  mlir::FailureOr<mlir::Value> reshape(mlir::Value v, SizesRef sizes);
  /// a / b for sizes, exact where b divides a.
  mlir::AffineExpr divide(mlir::AffineExpr a, mlir::AffineExpr b) { return prim::simplifySize(a.floorDiv(b)); }

private:
  mlir::Value shortenSizes(mlir::Value value);
  mlir::LogicalResult runAs(NodeContext &other, llvm::StringRef domain, llvm::StringRef type, int64_t opset);

  graph::NodeOp op;
  IntValues &ints;
  RegionConverter &regions;
  llvm::SmallVector<mlir::Value> operands, produced;
  mlir::DictionaryAttr parameters;
  std::string unsupportedReason, invalidReason;
  llvm::SmallVector<unsigned> varying;
  /// Where the node stands for another operator: that one's opset.
  std::optional<int64_t> asOpset;
  /// And, where they are not the node's, its attributes and how many results are asked for.
  mlir::DictionaryAttr asAttributes;
  std::optional<size_t> asResults;
  bool imaginary = false;
};

/// "tensor<2x?xf32>" without encodings, for messages.
std::string describe(mlir::Value v);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_NODECONTEXT_H
