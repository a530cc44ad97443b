//===- ONNXMLSupport.cpp - what the handlers of ai.onnx.ml share --------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXMLSupport.h"

#include "tc/Dialect/TC/IR/TC.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::makeFloats(PrimBuilder &b, Type type, ArrayRef<double> values) {
  return makeFloats(b, type, {int64_t(values.size())}, values);
}

Value tc::makeFloats(PrimBuilder &b, Type type, ArrayRef<int64_t> shape, ArrayRef<double> values) {
  return prim::ConstantOp::create(b, toAttribute(fromDoubles(type, shape, values)));
}

Value tc::makeInts(PrimBuilder &b, Type type, ArrayRef<int64_t> values) {
  return prim::ConstantOp::create(b, toAttribute(fromInts(type, {int64_t(values.size())}, values)));
}

Value tc::emitIsNan(PrimBuilder &b, Value x) {
  return IsNanOp::create(b, withElementType(x.getType(), b.getI1Type()), x);
}

FailureOr<Tensor> tc::readTensor(NodeContext &ctx, StringRef name) {
  Attribute attr = ctx.attr(name);
  if (!attr)
    return ctx.invalid("needs the attribute " + name);
  std::optional<Tensor> tensor = fromAttribute(attr);
  if (!tensor)
    return ctx.unsupported("with an attribute " + name +
                           " of this kind is not supported; supported: tensors of integers or floats");
  return *tensor;
}

FailureOr<std::optional<std::vector<double>>> tc::readNumbers(NodeContext &ctx, StringRef name) {
  using Numbers = std::optional<std::vector<double>>;
  if (std::optional<SmallVector<double>> list = ctx.getFloats(name))
    return Numbers(std::vector<double>(list->begin(), list->end()));
  std::string tensorName = (name + "_as_tensor").str();
  if (!ctx.hasAttr(tensorName))
    return Numbers();
  FailureOr<Tensor> tensor = readTensor(ctx, tensorName);
  return failed(tensor) ? FailureOr<Numbers>(failure()) : FailureOr<Numbers>(toDoubles(*tensor));
}

FailureOr<Value> tc::readFeatures(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  int64_t rank = b.rankOf(x);
  if (rank < 1 || rank > 2)
    return ctx.invalid("needs an operand [C] or [N, C], but has " + describe(x));
  if (rank == 1)
    x = b.unsqueeze(x, 0);
  return b.convert(x, b.elementOf(x).isF64() ? b.getF64Type() : Type(b.getF32Type()));
}

std::optional<std::vector<std::string>> tc::readStrings(NodeContext &ctx, StringRef name) {
  if (auto data = dyn_cast_or_null<base::DataAttr>(ctx.attr(name)))
    if (FailureOr<SmallVector<StringRef>> texts = base::getStrings(data); succeeded(texts))
      return std::vector<std::string>(texts->begin(), texts->end());
  std::optional<SmallVector<std::string>> list = ctx.getStrings(name);
  if (!list)
    return std::nullopt;
  return std::vector<std::string>(list->begin(), list->end());
}

FailureOr<Value> tc::readLabels(NodeContext &ctx, StringRef ints, StringRef strings) {
  if (auto names = readStrings(ctx, strings); names && !names->empty()) {
    SmallVector<StringRef> texts(names->begin(), names->end());
    return ctx.b.strings(texts, {int64_t(texts.size())});
  }
  std::optional<SmallVector<int64_t>> numbers = ctx.getInts(ints);
  if (!numbers || numbers->empty())
    return Value();
  return ctx.b.constantI64s(*numbers);
}

FailureOr<PostTransform> tc::readPostTransform(NodeContext &ctx) {
  std::string name = ctx.getString("post_transform", "NONE");
  auto transform = llvm::StringSwitch<std::optional<PostTransform>>(name)
                       .Case("NONE", PostTransform::None)
                       .Case("SOFTMAX", PostTransform::Softmax)
                       .Case("LOGISTIC", PostTransform::Logistic)
                       .Case("SOFTMAX_ZERO", PostTransform::SoftmaxZero)
                       .Case("PROBIT", PostTransform::Probit)
                       .Default(std::nullopt);
  if (!transform)
    return ctx.invalid("post_transform is \"" + name + "\"; it may be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
  return *transform;
}

FailureOr<ScoreModel> tc::readScoreModel(NodeContext &ctx, StringRef intLabels) {
  FailureOr<Value> x = readFeatures(ctx), labels = Value();
  if (!intLabels.empty())
    labels = readLabels(ctx, intLabels, "classlabels_strings");
  FailureOr<PostTransform> transform = readPostTransform(ctx);
  if (failed(x) || failed(labels) || failed(transform))
    return failure();
  return ScoreModel{*x, *labels, *transform};
}

namespace {

/// Softmax along the last dim in which scores near 0 count 0.
Value softmaxZero(PrimBuilder &b, Value scores) {
  Sizes sizes = getSizes(scores);
  int64_t last = sizes.size() - 1;
  Value highest = b.broadcastTo(b.reduce(ReduceKind::Max, scores, {last}, /*keepDims=*/true), sizes);
  Value isZero = b.compare(CompareKind::LE, b.unary<AbsOp>(scores), 1e-7);
  Value weights =
      b.select(isZero, b.mul(scores, b.unary<ExpOp>(b.unary<NegOp>(highest))), b.unary<ExpOp>(b.sub(scores, highest)));
  Value counted = b.select(isZero, b.splatLike(weights, 0), weights);
  Value sum = b.broadcastTo(b.reduce(ReduceKind::Sum, counted, {last}, /*keepDims=*/true), sizes);
  // All scores 0: ONNX's reference gives 0.5 for each.
  return b.select(b.compare(CompareKind::EQ, sum, 0), b.splatLike(weights, 0.5), b.div(weights, sum));
}

/// sqrt(2) * erfinv(2 s - 1), with the approximation that ONNX's reference uses. Source: S. Winitzki, "A handy
/// approximation for the error function and its inverse".
Value probit(PrimBuilder &b, Value scores) {
  constexpr double kA = 0.147;
  Value x = b.binary<SubOp>(b.binary<MulOp>(scores, 2), 1);
  Value ones = b.splatLike(x, 1), log = b.unary<LogOp>(b.mul(b.sub(ones, x), b.add(ones, x)));
  Value half = b.binary<AddOp>(b.binary<MulOp>(log, 0.5), 2 / (llvm::numbers::pi * kA));
  Value square = b.sub(b.mul(half, half), b.binary<MulOp>(log, 1 / kA));
  Value root = b.unary<SqrtOp>(b.sub(b.unary<SqrtOp>(square), half));
  Value sign = b.select(b.compare(CompareKind::LT, x, 0), b.splatLike(x, -1), ones);
  return b.binary<MulOp>(b.mul(sign, root), llvm::numbers::sqrt2);
}

} // namespace

Value tc::emitPostTransform(PrimBuilder &b, Value scores, PostTransform transform, SecondClass second) {
  int64_t last = b.rankOf(scores) - 1;
  if (getConstantSize(getSizes(scores)[last]) == 1) {
    if (second == SecondClass::None) {
      if (transform != PostTransform::Probit)
        return scores;
    } else {
      bool isComplement =
          transform == PostTransform::Probit || (transform == PostTransform::None && second == SecondClass::Complement);
      Value other = isComplement ? b.sub(b.splatLike(scores, 1), scores) : b.unary<NegOp>(scores);
      scores = b.concat({other, scores}, last);
    }
  }
  switch (transform) {
  case PostTransform::None:
    return scores;
  case PostTransform::Logistic:
    return b.unary<LogisticOp>(scores);
  case PostTransform::Softmax:
    return SoftmaxOp::create(b, scores.getType(), scores, last, /*log=*/false);
  case PostTransform::SoftmaxZero:
    return softmaxZero(b, scores);
  case PostTransform::Probit:
    return probit(b, scores);
  }
  llvm_unreachable("every transform is handled");
}
