//===- ONNXLoss.cpp - loss functions of ONNX ----------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// -logProbabilities[n, labels[n, ..], ..] * weights[labels[n, ..]], 0 where the label is ignore_index; reduced as the
/// node says. `weights` may be null.
LogicalResult negativeLogLikelihood(NodeContext &ctx, Value logProbabilities, Value labels, Value weights) {
  PrimBuilder &b = ctx.b;
  std::string reduction = ctx.getString("reduction", "mean");
  Sizes sizes = getSizes(logProbabilities);
  sizes.erase(sizes.begin() + 1);
  FailureOr<Value> fitting = ctx.castSizes(labels, sizes);
  if (failed(fitting))
    return failure();
  Value label = b.convert(*fitting, b.getI64Type()), isCounted;
  if (ctx.hasAttr("ignore_index")) {
    isCounted = b.compare(CompareKind::NE, label, double(ctx.getInt("ignore_index", 0)));
    label = b.select(isCounted, label, b.splatLike(label, 0));
  }
  Value index = b.unsqueeze(label, 1);
  Value picked = GatherElementsOp::create(b, withElementType(index.getType(), b.elementOf(logProbabilities)),
                                          logProbabilities, index, 1);
  Value loss = b.unary<NegOp>(b.reshape(picked, sizes)), weight = b.splatLike(loss, 1);
  if (weights) {
    weight = GatherOp::create(b, weights, label, 0);
    loss = b.mul(loss, weight);
  }
  if (isCounted) {
    loss = b.select(isCounted, loss, b.splatLike(loss, 0));
    weight = b.select(isCounted, weight, b.splatLike(weight, 0));
  }
  if (reduction == "none")
    return ctx.result(loss);
  Type type = b.elementOf(loss), compute = b.accumulatorOf(type);
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
  auto sum = [&](Value v) { return b.reduce(ReduceKind::Sum, b.convert(v, compute), all); };
  return ctx.result(b.convert(reduction == "sum" ? sum(loss) : b.div(sum(loss), sum(weight)), type));
}

LogicalResult nllLoss(NodeContext &ctx) {
  return negativeLogLikelihood(ctx, ctx.operand(0), ctx.operand(1), ctx.operand(2));
}

LogicalResult softmaxCrossEntropy(NodeContext &ctx) {
  Value x = ctx.operand(0);
  Value logProbabilities = SoftmaxOp::create(ctx.b, x.getType(), x, /*axis=*/1, /*log=*/true);
  (void)ctx.set(1, logProbabilities);
  return negativeLogLikelihood(ctx, logProbabilities, ctx.operand(1), ctx.operand(2));
}

} // namespace

void tc::populateONNXLoss(OpRegistrar &onOp) {
  onOp("NegativeLogLikelihoodLoss", 12, nllLoss, 2);
  onOp("SoftmaxCrossEntropyLoss", 12, softmaxCrossEntropy, 2);
}
