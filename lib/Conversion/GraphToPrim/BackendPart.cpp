//===- BackendPart.cpp - parts that another library computes ------------------------------------------------------===//
//
// A node that --backend-for made stands for a function of the graph, and a host function computes it. tc's own code for
// that function tells the sizes of the results, and what integers they hold where these depend on sizes alone (a target
// shape that goes on into Reshape); the rest of it has no users then, and goes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Converter.h"

#include "ConstantData.h"
#include "ONNXSupport.h"

#include "tc/Dialect/Graph/IR/Signature.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

/// What libtcrt-ort calls it.
static constexpr llvm::StringLiteral kRunFunction = "onnxruntime_run";

/// Whether a size is one that the function computes from data: a symbol from `first` on.
static bool isOfData(SizesRef sizes, unsigned first) {
  bool found = false;
  for (AffineExpr size : sizes)
    size.walk([&](AffineExpr part) {
      auto symbol = dyn_cast<AffineSymbolExpr>(part);
      found |= symbol && symbol.getPosition() >= first;
    });
  return found;
}

void Converter::convertBackendPart(graph::NodeOp node, graph::FuncOp callee, ArrayRef<Value> operands) {
  const unsigned firstSymbol = symbols.size();
  const int64_t failedBefore = failedNodes, invalidBefore = report.invalidCount;
  GraphToPrimReport reported = report;
  llvm::StringMap<std::pair<size_t, Location>> knownReasons = reasons;
  convertCall(node, callee, operands);
  // What tc lacks the other library may have; then the model's own types must do.
  const bool hasCode = failedNodes == failedBefore;
  if (!hasCode && report.invalidCount > invalidBefore)
    return;
  if (!hasCode) {
    failedNodes = failedBefore;
    report = std::move(reported);
    reasons = std::move(knownReasons);
  }
  builder.setLoc(node.getLoc());
  auto model = dyn_cast_or_null<base::DataAttr>(node.getNodeAttr(graph::kBackendModel));
  Value file = model ? makeConstant(builder, model) : Value();
  if (!file)
    return reportInvalid(node.getLoc(), "it has no ONNX file in its attribute " + graph::kBackendModel);
  SmallVector<Value> inputs{file};
  llvm::append_range(inputs, llvm::make_filter_range(operands, [](Value v) { return bool(v); }));
  SmallVector<Type> types;
  SmallVector<RankedTensorType> insides; // of results whose sizes only the run knows
  for (Value result : node.getOutputs()) {
    Value v = hasCode ? values.lookup(result) : Value();
    auto type = dyn_cast<RankedTensorType>(v ? v.getType() : result.getType());
    if (!type)
      return reportUnsupported(node, "with a result whose rank neither tc nor the model knows is not supported; leave "
                                     "the node that makes it out of --backend-for, or export the model with shapes");
    const Sizes sizes = v ? getSizes(v) : type.hasStaticShape() ? builder.sizes(type.getShape()) : Sizes();
    const bool isOpen = v ? isOfData(sizes, firstSymbol) : !type.hasStaticShape();
    insides.push_back(isOpen ? RankedTensorType::get(type.getShape(), type.getElementType()) : RankedTensorType());
    types.push_back(isOpen ? makeType(base::OptType::get(builder.getContext(), insides.back()), {})
                           : makeType(type.getElementType(), sizes));
  }
  SmallVector<Value> computed(builder.hostCall(kRunFunction, inputs, types));
  NodeContext ctx(node, builder, ints, *this, operands, parameters);
  for (auto [i, result] : llvm::enumerate(node.getOutputs())) {
    Value v = hasCode ? values.lookup(result) : Value();
    if (v && isa<IntegerType>(builder.elementOf(v)) && ints.get(v))
      continue;
    FailureOr<Value> taken = insides[i] ? takeOut(ctx, computed[i], insides[i]) : FailureOr<Value>(computed[i]);
    if (failed(taken))
      return reportUnsupported(node, ctx.reason());
    values[result] = *taken;
  }
}
