//===- ATenLoss.cpp - losses and distances of ATen ----------------------------------------------------------------===//
//
// Computed in f32 or wider, reduced and rounded once.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml) and the formulas of its
// documentation (torch.nn).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

FailureOr<int64_t> reductionOf(Call &c) {
  int64_t reduction = c.integer("reduction", kMean);
  if (reduction < kNone || reduction > kSum)
    return c.ctx.invalid("reduction is " + Twine(reduction) + "; it may be 0 (none), 1 (mean) or 2 (sum)");
  return reduction;
}

SmallVector<int64_t> allDims(Value v) { return llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(v))); }

LogicalResult reduced(Call &c, Value loss, Type type) {
  FailureOr<int64_t> reduction = reductionOf(c);
  if (failed(reduction))
    return failure();
  if (*reduction == kMean && !c.b.isFloat(loss))
    return c.ctx.invalid("has no mean of " + describe(loss) + "; use floats");
  if (*reduction == kMean)
    loss = c.b.mean(loss, allDims(loss));
  else if (*reduction == kSum)
    loss = c.b.reduce(ReduceKind::Sum, loss, allDims(loss));
  return c.rounded(loss, type);
}

/// A loss of tensors of one type, element by element.
template <typename Fn> NodeHandler loss(SmallVector<StringRef> names, Fn fn, Integers integers = Integers::Floats) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Type> type = c.commonType(names, integers);
    if (failed(type))
      return failure();
    if (isa<ComplexType>(*type) || type->isInteger(1))
      return ctx.unsupported("of bools or complex numbers is not supported; convert them by .to(torch.float32) before");
    auto v = c.promoted(names, Integers::Kept, /*inAccumulator=*/true, *type);
    if (failed(v))
      return failure();
    return reduced(c, fn(c, *v), *type);
  };
}

using Values = ArrayRef<Value>;

Value distance(PrimBuilder &b, Values v) { return b.unary<AbsOp>(b.sub(v[0], v[1])); }

Value squaredLoss(Call &c, Values v) {
  Value d = c.b.sub(v[0], v[1]);
  return c.b.mul(d, d);
}
Value absoluteLoss(Call &c, Values v) { return distance(c.b, v); }
/// Half the square below beta, in units of it; the distance less half of beta beyond.
Value smoothLoss(Call &c, Values v) {
  PrimBuilder &b = c.b;
  double beta = c.number("beta", 1);
  Value d = distance(b, v);
  if (beta == 0)
    return d;
  Value square = b.binary<DivOp>(b.binary<MulOp>(b.mul(d, d), 0.5), beta);
  return b.select(b.compare(CompareKind::LT, d, beta), square, b.binary<SubOp>(d, beta / 2));
}
Value huberLoss(Call &c, Values v) {
  PrimBuilder &b = c.b;
  double delta = c.number("delta", 1);
  Value d = distance(b, v), square = b.binary<MulOp>(b.mul(d, d), 0.5);
  Value line = b.binary<MulOp>(b.binary<SubOp>(d, delta / 2), delta);
  return b.select(b.compare(CompareKind::LE, d, delta), square, line);
}
/// log(1 + exp(-target * x)).
Value softMarginLoss(Call &c, Values v) { return emitSoftplus(c.b, c.b.unary<NegOp>(c.b.mul(v[0], v[1]))); }
Value divergence(Call &c, Values v) {
  PrimBuilder &b = c.b;
  if (c.flag("log_target"))
    return b.mul(b.unary<ExpOp>(v[1]), b.sub(v[1], v[0]));
  // Where the target is 0, so is the loss.
  Value plain = b.mul(v[1], b.sub(b.unary<LogOp>(v[1]), v[0]));
  return b.select(b.compare(CompareKind::GT, v[1], 0), plain, b.splatLike(plain, 0));
}
Value poissonLoss(Call &c, Values v) {
  PrimBuilder &b = c.b;
  Value x = v[0], target = v[1], result;
  if (c.flag("log_input", true))
    result = b.sub(b.unary<ExpOp>(x), b.mul(target, x));
  else
    result = b.sub(x, b.mul(target, b.unary<LogOp>(b.binary<AddOp>(x, c.number("eps", 1e-8)))));
  if (!c.flag("full"))
    return result;
  Value stirling = b.sub(b.mul(target, b.unary<LogOp>(target)), target);
  stirling = b.add(stirling, b.binary<MulOp>(b.unary<LogOp>(b.binary<MulOp>(target, 2 * M_PI)), 0.5));
  Value isSmall = b.compare(CompareKind::LE, target, 1);
  return b.add(result, b.select(isSmall, b.splatLike(stirling, 0), stirling));
}
Value rankingLoss(Call &c, Values v) {
  PrimBuilder &b = c.b;
  Value product = b.mul(b.unary<NegOp>(v[2]), b.sub(v[0], v[1]));
  return b.binary<MaxOp>(b.binary<AddOp>(product, c.number("margin", 0)), 0);
}
Value hingeLoss(Call &c, Values v) {
  PrimBuilder &b = c.b;
  Value zero = b.splatLike(v[0], 0);
  Value away = b.binary<MaxOp>(b.sub(b.splatLike(v[0], c.number("margin", 1)), v[0]), 0);
  return b.add(b.select(b.compare(CompareKind::NE, v[1], 1), away, zero),
               b.select(b.compare(CompareKind::NE, v[1], -1), v[0], zero));
}

/// Of probabilities; logarithms go no lower than -100.
Value crossEntropy(Call &c, Values v) {
  PrimBuilder &b = c.b;
  Value one = b.splatLike(v[0], 1);
  auto logarithm = [&](Value x) { return b.binary<MaxOp>(b.unary<LogOp>(x), -100); };
  Value result = b.sub(b.mul(b.sub(v[1], one), logarithm(b.sub(one, v[0]))), b.mul(v[1], logarithm(v[0])));
  return v.size() > 2 ? b.mul(result, v[2]) : result;
}

LogicalResult binaryCrossEntropy(NodeContext &ctx) {
  SmallVector<StringRef> names{"self", "target"};
  if (Call(ctx).tensor("weight"))
    names.push_back("weight");
  return loss(names, crossEntropy)(ctx);
}

/// Of logits: (1 - target) x + w log(1 + exp(-x)), with w = 1 + (posWeight - 1) target.
LogicalResult binaryCrossEntropyOfLogits(NodeContext &ctx) {
  Call c(ctx);
  SmallVector<StringRef> names{"self", "target"};
  bool hasWeight = c.tensor("weight") != nullptr, hasPositive = c.tensor("pos_weight") != nullptr;
  if (hasWeight)
    names.push_back("weight");
  if (hasPositive)
    names.push_back("pos_weight");
  return loss(names, [=](Call &c, Values v) {
    PrimBuilder &b = c.b;
    Value one = b.splatLike(v[0], 1), rest = emitSoftplus(b, b.unary<NegOp>(v[0]));
    if (hasPositive)
      rest = b.mul(b.add(b.mul(b.sub(v.back(), one), v[1]), one), rest);
    Value result = b.add(b.mul(b.sub(one, v[1]), v[0]), rest);
    return hasWeight ? b.mul(result, v[2]) : result;
  })(ctx);
}

//===--- classes
//------------------------------------------------------------------------------------------------------===//

/// -weight[target] * x[.., target, ..], and those weights, both of the target's sizes; 0 where the target is ignored.
struct ClassLoss {
  Value loss, weights;
};

/// The dim of classes of operands [C], [N, C] and [N, C, ..].
int64_t classDim(PrimBuilder &b, Value x) { return b.rankOf(x) == 1 ? 0 : 1; }

/// `v` [C] broadcast along the classes of `like`.
Value alongClasses(PrimBuilder &b, Value v, Value like) {
  return b.broadcastInDims(v, getSizes(like), {classDim(b, like)});
}

/// Argument "weight" [C], or null.
FailureOr<Value> classWeights(Call &c, Type type, Value x) {
  Value weight = c.tensor("weight");
  if (!weight)
    return Value();
  return c.ctx.castSizes(c.b.convert(weight, type), {getSizes(x)[classDim(c.b, x)]});
}

FailureOr<ClassLoss> classLoss(Call &c, Value x) {
  PrimBuilder &b = c.b;
  FailureOr<Value> target = c.required("target"), weight = classWeights(c, b.elementOf(x), x);
  if (failed(target) || failed(weight))
    return failure();
  if (!isa<IntegerType>(b.elementOf(*target)))
    return c.ctx.invalid("takes classes as integers, but got " + describe(*target));
  if (b.rankOf(x) < 1)
    return c.ctx.invalid("takes scores of one dim or more, but got " + describe(x));
  int64_t axis = classDim(b, x);
  Sizes sizes = getSizes(x);
  sizes.erase(sizes.begin() + axis);
  if (b.rankOf(x) == 1 && b.rankOf(*target) == 1) // one sample of one class
    sizes.push_back(b.size(1));
  FailureOr<Value> classes = c.ctx.castSizes(b.convert(*target, b.getI64Type()), sizes);
  if (failed(classes))
    return failure();
  Value isIgnored = b.compare(CompareKind::EQ, *classes, double(c.integer("ignore_index", -100)));
  Value at = b.select(isIgnored, b.splatLike(*classes, 0), *classes);
  Sizes one = getSizes(x);
  one[axis] = b.size(1);
  Value picked = GatherElementsOp::create(b, makeType(b.elementOf(x), one), x, b.reshape(at, one), axis);
  picked = b.unary<NegOp>(b.reshape(picked, sizes));
  Value weights = b.splatLike(picked, 1);
  if (*weight) {
    weights = GatherOp::create(b, *weight, at, 0);
    picked = b.mul(picked, weights);
  }
  Value zero = b.splatLike(picked, 0);
  return ClassLoss{b.select(isIgnored, zero, picked), b.select(isIgnored, zero, weights)};
}

Value total(PrimBuilder &b, Value v) { return b.reduce(ReduceKind::Sum, v, allDims(v)); }

/// A mean is over the weights, without which it is no number.
FailureOr<Value> reduceByWeight(Call &c, const ClassLoss &loss) {
  FailureOr<int64_t> reduction = reductionOf(c);
  if (failed(reduction) || *reduction == kNone)
    return failed(reduction) ? FailureOr<Value>(failure()) : FailureOr<Value>(loss.loss);
  Value sum = total(c.b, loss.loss);
  return *reduction == kSum ? sum : c.b.div(sum, total(c.b, loss.weights));
}

LogicalResult negativeLogLikelihood(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  Type type = ctx.b.elementOf(*self);
  FailureOr<ClassLoss> loss = classLoss(c, ctx.b.convert(*self, ctx.b.accumulatorOf(type)));
  FailureOr<Value> result = failed(loss) ? FailureOr<Value>(failure()) : reduceByWeight(c, *loss);
  if (failed(result))
    return failure();
  if (ctx.numResults() > 1) { // the sum of the weights, for the gradient
    Value weights = total(ctx.b, loss->weights);
    if (c.integer("reduction", kMean) == kNone)
      weights = ctx.b.splatLike(weights, 0);
    (void)c.rounded(weights, type, 1);
  }
  return c.rounded(*result, type);
}

Value logSoftmax(PrimBuilder &b, Value x) { return SoftmaxOp::create(b, x.getType(), x, classDim(b, x), /*log=*/true); }

/// The target is a probability for each class, of the scores' sizes.
LogicalResult crossEntropyOfProbabilities(Call &c, Value x, Type type, double smoothing) {
  PrimBuilder &b = c.b;
  FailureOr<Value> target = c.ctx.castSizes(b.convert(c.tensor("target"), b.elementOf(x)), getSizes(x));
  FailureOr<Value> weight = classWeights(c, b.elementOf(x), x);
  FailureOr<int64_t> reduction = reductionOf(c);
  if (failed(target) || failed(weight) || failed(reduction))
    return failure();
  int64_t axis = classDim(b, x);
  AffineExpr classes = getSizes(x)[axis];
  Value t = *target;
  if (smoothing > 0) {
    auto known = getConstantSize(classes);
    if (!known)
      return c.ctx.unsupported("with label smoothing over classes whose number only the run knows is not supported");
    t = b.binary<AddOp>(b.binary<MulOp>(t, 1 - smoothing), smoothing / double(*known));
  }
  Value loss = b.unary<NegOp>(b.mul(logSoftmax(b, x), t));
  if (*weight)
    loss = b.mul(loss, alongClasses(b, *weight, x));
  loss = b.reduce(ReduceKind::Sum, loss, {axis});
  if (*reduction == kMean)
    loss = b.mean(loss, allDims(loss));
  else if (*reduction == kSum)
    loss = total(b, loss);
  return c.rounded(loss, type);
}

LogicalResult crossEntropyLoss(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self"), target = c.required("target");
  if (failed(self) || failed(target))
    return failure();
  Type type = b.elementOf(*self);
  Value x = b.convert(*self, b.accumulatorOf(type));
  if (b.rankOf(x) < 1)
    return ctx.invalid("takes scores of one dim or more, but got " + describe(x));
  double smoothing = c.number("label_smoothing", 0);
  if (smoothing < 0 || smoothing > 1)
    return ctx.invalid("label_smoothing is " + std::to_string(smoothing) + "; it lies between 0 and 1");
  if (b.isFloat(*target))
    return crossEntropyOfProbabilities(c, x, type, smoothing);
  Value scores = logSoftmax(b, x);
  FailureOr<ClassLoss> loss = classLoss(c, scores);
  FailureOr<Value> result = failed(loss) ? FailureOr<Value>(failure()) : reduceByWeight(c, *loss);
  if (failed(result))
    return failure();
  if (smoothing > 0) {
    // Every class's score counts a little, but of ignored targets.
    int64_t axis = classDim(b, x);
    auto known = getConstantSize(getSizes(x)[axis]);
    if (!known)
      return ctx.unsupported("with label smoothing over classes whose number only the run knows is not supported");
    FailureOr<Value> weight = classWeights(c, b.elementOf(x), x);
    if (failed(weight))
      return failure();
    Value all = b.unary<NegOp>(scores);
    if (*weight)
      all = b.mul(all, alongClasses(b, *weight, x));
    all = b.reshape(b.reduce(ReduceKind::Sum, all, {axis}), getSizes(loss->loss));
    Value classes = b.reshape(b.convert(*target, b.getI64Type()), getSizes(all));
    Value isIgnored = b.compare(CompareKind::EQ, classes, double(c.integer("ignore_index", -100)));
    FailureOr<Value> smooth = reduceByWeight(c, {b.select(isIgnored, b.splatLike(all, 0), all), loss->weights});
    if (failed(smooth))
      return failure();
    result = b.add(b.binary<MulOp>(*result, 1 - smoothing), b.binary<MulOp>(*smooth, smoothing / double(*known)));
  }
  return c.rounded(*result, type);
}

/// Scores [C] or [N, C] as [N, C] in f32 or wider, and targets: one a row, or as many as scores.
FailureOr<std::pair<Value, Value>> rowsAndTargets(Call &c, bool targetsAreRows) {
  PrimBuilder &b = c.b;
  FailureOr<Value> self = c.floats("self"), target = c.required("target");
  if (failed(self) || failed(target))
    return failure();
  const Sizes sizes = getSizes(*self);
  if (sizes.empty() || sizes.size() > 2 || !isa<IntegerType>(b.elementOf(*target)))
    return c.ctx.invalid("takes scores of one dim or two and classes as integers, but got " + describe(*self) +
                         " and " + describe(*target));
  const Sizes rows{sizes.size() == 2 ? sizes[0] : b.size(1), sizes.back()};
  FailureOr<Value> classes = c.ctx.reshape(b.convert(*target, b.getI64Type()), targetsAreRows ? rows : Sizes{rows[0]});
  if (failed(classes))
    return failure();
  return std::pair(b.reshape(b.convert(*self, b.accumulatorOf(b.elementOf(*self))), rows), *classes);
}

/// `loss` [N] of scores, reduced: of scores without a batch it is one number.
LogicalResult reducedRows(Call &c, Value loss) {
  Value self = c.tensor("self");
  if (c.b.rankOf(self) == 1)
    loss = c.b.reshape(loss, Sizes{});
  return reduced(c, loss, c.b.elementOf(self));
}

/// The mean over classes of weight[target] * max(0, margin - x[target] + x[class])^p, of all but the target.
LogicalResult multiMarginLoss(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto rows = rowsAndTargets(c, /*targetsAreRows=*/false);
  if (failed(rows))
    return failure();
  auto [x, target] = *rows;
  const Sizes sizes = getSizes(x);
  const double p = c.number("p", 1);
  if (p != 1 && p != 2)
    return ctx.invalid("argument \"p\" is " + std::to_string(p) + "; it may be 1 or 2");
  Value at = b.unsqueeze(target, 1);
  Value own = GatherElementsOp::create(b, makeType(b.elementOf(x), {sizes[0], b.size(1)}), x, at, 1);
  Value over = b.binary<AddOp>(b.sub(x, b.broadcastTo(own, sizes)), c.number("margin", 1));
  over = b.binary<MaxOp>(over, 0);
  if (p == 2)
    over = b.mul(over, over);
  if (c.tensor("weight")) {
    FailureOr<Value> weight = ctx.castSizes(b.convert(c.tensor("weight"), b.elementOf(x)), {sizes[1]});
    if (failed(weight))
      return failure();
    over = b.mul(over, b.broadcastInDims(GatherOp::create(b, *weight, target, 0), sizes, {0}));
  }
  Value isOwn = b.compare(CompareKind::EQ, b.iota(b.getI64Type(), sizes, 1), b.broadcastTo(at, sizes));
  return reducedRows(c, b.mean(b.select(isOwn, b.splatLike(over, 0), over), {1}));
}

/// The sum over targets t (up to the first -1) and all other classes of max(0, 1 - x[t] + x[class]), over the number of
/// classes; and which classes are targets.
LogicalResult multilabelMarginLoss(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto rows = rowsAndTargets(c, /*targetsAreRows=*/true);
  if (failed(rows))
    return failure();
  auto [x, target] = *rows;
  const Type i64 = b.getI64Type();
  const Sizes sizes = getSizes(x), pairs{sizes[0], sizes[1], sizes[1]}; // targets, classes
  Value ended = b.convert(b.compare(CompareKind::LT, target, 0), i64);
  ended = ScanOp::create(b, ended.getType(), ReduceKind::Sum, ended, 1, /*exclusive=*/false, /*reverse=*/false);
  Value isListed = b.compare(CompareKind::EQ, ended, 0), at = b.select(isListed, target, b.splatLike(target, 0));
  Value names =
      b.binary<AndOp>(b.broadcastInDims(isListed, pairs, {0, 1}),
                      b.compare(CompareKind::EQ, b.broadcastInDims(at, pairs, {0, 1}), b.iota(i64, pairs, 2)));
  Value isTarget = b.reduce(ReduceKind::Or, names, {1});
  Value own = GatherElementsOp::create(b, x.getType(), x, at, 1);
  Value over = b.sub(b.broadcastInDims(x, pairs, {0, 2}), b.broadcastInDims(own, pairs, {0, 1}));
  over = b.binary<MaxOp>(b.binary<AddOp>(over, 1), 0);
  Value counts = b.binary<AndOp>(b.broadcastInDims(isListed, pairs, {0, 1}),
                                 b.unary<NotOp>(b.broadcastInDims(isTarget, pairs, {0, 2})));
  Value loss = b.reduce(ReduceKind::Sum, b.mean(b.select(counts, over, b.splatLike(over, 0)), {2}), {1});
  if (ctx.isResultUsed(1))
    (void)ctx.set(1, b.convert(b.reshape(isTarget, getSizes(c.tensor("target"))), b.elementOf(c.tensor("self"))));
  return reducedRows(c, loss);
}

//===--- distances
//----------------------------------------------------------------------------------------------------===//

/// The p-norm of `x` along `axis`.
Value normAlong(PrimBuilder &b, Value x, int64_t axis, double p, bool keep) {
  x = b.unary<AbsOp>(x);
  auto sum = [&](Value v) { return b.reduce(ReduceKind::Sum, v, {axis}, keep); };
  if (std::isinf(p))
    return b.reduce(p > 0 ? ReduceKind::Max : ReduceKind::Min, x, {axis}, keep);
  if (p == 0)
    return sum(b.convert(b.compare(CompareKind::NE, x, 0), b.elementOf(x)));
  if (p == 1)
    return sum(x);
  if (p == 2)
    return b.unary<SqrtOp>(sum(b.mul(x, x)));
  return b.binary<PowOp>(sum(b.binary<PowOp>(x, p)), 1 / p);
}

/// Two arguments of floats in their common type, broadcast.
FailureOr<SmallVector<Value>> pair(Call &c, ArrayRef<StringRef> names, Type &type) {
  FailureOr<Type> common = c.commonType(names, Integers::Floats);
  if (failed(common))
    return failure();
  if (!isa<FloatType>(*common))
    return c.ctx.unsupported("of complex numbers is not supported; use their parts");
  type = *common;
  return c.promoted(names, Integers::Floats, /*inAccumulator=*/true, type);
}

/// The norm of x1 - x2 + eps along the last dim.
Value pairwise(Call &c, Value x, Value y, bool keep) {
  PrimBuilder &b = c.b;
  Value d = b.binary<AddOp>(b.sub(x, y), c.number("eps", 1e-6));
  return normAlong(b, d, b.rankOf(d) - 1, c.number("p", 2), keep);
}

LogicalResult pairwiseDistance(NodeContext &ctx) {
  Call c(ctx);
  Type type;
  auto v = pair(c, {"x1", "x2"}, type);
  if (failed(v))
    return failure();
  if (ctx.b.rankOf((*v)[0]) < 1)
    return ctx.invalid("takes vectors, but got " + describe((*v)[0]));
  return c.rounded(pairwise(c, (*v)[0], (*v)[1], c.flag("keepdim")), type);
}

LogicalResult cosineSimilarity(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type type;
  auto v = pair(c, {"x1", "x2"}, type);
  if (failed(v))
    return failure();
  FailureOr<std::optional<int64_t>> dim = c.dim("dim", b.rankOf((*v)[0]), 1);
  if (failed(dim))
    return failure();
  SmallVector<int64_t> dims;
  if (*dim)
    dims.push_back(**dim);
  double eps = c.number("eps", 1e-8);
  auto unit = [&](Value x) {
    Value square = b.binary<MaxOp>(b.reduce(ReduceKind::Sum, b.mul(x, x), dims, /*keepDims=*/true), eps * eps);
    return b.div(x, b.broadcastTo(b.unary<SqrtOp>(square), getSizes(x)));
  };
  return c.rounded(b.reduce(ReduceKind::Sum, b.mul(unit((*v)[0]), unit((*v)[1])), dims), type);
}

/// 1 - cos of the angle for targets 1, and what it has above the margin for -1.
LogicalResult cosineEmbeddingLoss(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type type;
  auto v = pair(c, {"input1", "input2"}, type);
  FailureOr<Value> target = failed(v) ? FailureOr<Value>(failure()) : c.required("target");
  if (failed(target))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  int64_t axis = b.rankOf(x) - 1;
  if (axis < 0 || axis > 1 || b.rankOf(*target) != axis)
    return ctx.invalid("takes vectors and a target without dims, or rows and one target for each");
  auto sum = [&](Value u, Value w) { return b.reduce(ReduceKind::Sum, b.mul(u, w), {axis}); };
  Value squares = b.mul(b.binary<AddOp>(sum(x, x), 1e-12), b.binary<AddOp>(sum(y, y), 1e-12));
  Value cosine = b.div(sum(x, y), b.unary<SqrtOp>(squares));
  FailureOr<Value> wanted = ctx.broadcastOnto(b.convert(*target, b.elementOf(cosine)), getSizes(cosine));
  if (failed(wanted))
    return failure();
  Value zero = b.splatLike(cosine, 0);
  Value near = b.sub(b.splatLike(cosine, 1), cosine);
  Value far = b.binary<MaxOp>(b.binary<SubOp>(cosine, c.number("margin", 0)), 0);
  Value result = b.add(b.select(b.compare(CompareKind::EQ, *wanted, 1), near, zero),
                       b.select(b.compare(CompareKind::EQ, *wanted, -1), far, zero));
  return reduced(c, result, type);
}

LogicalResult tripletMarginLoss(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type type;
  auto v = pair(c, {"anchor", "positive", "negative"}, type);
  if (failed(v))
    return failure();
  if (b.rankOf((*v)[0]) < 1)
    return ctx.invalid("takes vectors, but got " + describe((*v)[0]));
  auto apart = [&](Value x, Value y) { return pairwise(c, x, y, /*keep=*/false); };
  Value near = apart((*v)[0], (*v)[1]), far = apart((*v)[0], (*v)[2]);
  if (c.flag("swap"))
    far = b.min(far, apart((*v)[1], (*v)[2]));
  Value margin = b.binary<AddOp>(b.sub(near, far), c.number("margin", 1));
  return reduced(c, b.binary<MaxOp>(margin, 0), type);
}

/// The p-norm of all differences.
LogicalResult dist(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type type;
  auto v = pair(c, {"self", "other"}, type);
  if (failed(v))
    return failure();
  Value d = b.sub((*v)[0], (*v)[1]);
  return c.rounded(normAlong(b, b.reshape(d, {product(b.getContext(), getSizes(d))}), 0, c.number("p", 2), false),
                   type);
}

/// Distances of the rows of x1 [.., P, M] and x2 [.., R, M]: [.., P, R]. Many of the 2-norm by a product of matrices,
/// as argument "compute_mode" leaves it to PyTorch, too.
LogicalResult rowDistances(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> first = c.floats("x1"), second = c.floats("x2");
  if (failed(first) || failed(second))
    return failure();
  Type type = b.elementOf(*first);
  if (b.elementOf(*second) != type || b.rankOf(*first) < 2 || b.rankOf(*second) < 2)
    return ctx.invalid("takes matrices of one element type, but got " + describe(*first) + " and " + describe(*second));
  Value x = b.convert(*first, b.accumulatorOf(type)), y = b.convert(*second, b.accumulatorOf(type));
  Value v[] = {b.unsqueeze(x, b.rankOf(x) - 1), b.unsqueeze(y, b.rankOf(y) - 2)};
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  Value d = b.sub(v[0], v[1]);
  return c.rounded(normAlong(b, d, b.rankOf(d) - 1, c.number("p", 2), /*keep=*/false), type);
}

/// The distances of all pairs of rows i < j, in order.
LogicalResult pairDistances(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  Type type = b.elementOf(*self);
  auto rows = b.rankOf(*self) == 2 ? getConstantSize(getSizes(*self)[0]) : std::nullopt;
  constexpr int64_t kMost = 2048;
  if (!rows || *rows > kMost)
    return ctx.unsupported("of " + describe(*self) + " is not supported; supported: matrices with up to " +
                           Twine(kMost) + " rows, whose number is a constant");
  SmallVector<int64_t> left, right;
  for (int64_t i = 0; i < *rows; ++i)
    for (int64_t j = i + 1; j < *rows; ++j) {
      left.push_back(i);
      right.push_back(j);
    }
  if (left.empty())
    return ctx.result(b.splat(type, {b.size(0)}, 0));
  auto take = [&](ArrayRef<int64_t> numbers) -> Value {
    auto tensor = RankedTensorType::get({int64_t(numbers.size())}, b.getI64Type());
    auto dense = DenseElementsAttr::get(tensor, numbers);
    TypedAttr value = dense;
    if (numbers.size() > 64 && !dense.isSplat())
      value = base::fromDense(dense);
    return GatherOp::create(b, b.convert(*self, b.accumulatorOf(type)), prim::ConstantOp::create(b, value), 0);
  };
  return c.rounded(normAlong(b, b.sub(take(left), take(right)), 1, c.number("p", 2), /*keep=*/false), type);
}

} // namespace

void tc::populateATenLoss(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, const NodeHandler &handler) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/2);
  };
  SmallVector<StringRef> two{"self", "target"};
  on({"mse_loss.default"}, loss(two, squaredLoss, Integers::Kept));
  on({"l1_loss.default"}, loss(two, absoluteLoss, Integers::Kept));
  on({"smooth_l1_loss.default"}, loss(two, smoothLoss, Integers::Kept));
  on({"huber_loss.default"}, loss(two, huberLoss, Integers::Kept));
  on({"soft_margin_loss.default"}, loss(two, softMarginLoss));
  on({"kl_div.default"}, loss(two, divergence));
  on({"hinge_embedding_loss.default"}, loss(two, hingeLoss));
  on({"poisson_nll_loss.default"}, loss({"input", "target"}, poissonLoss));
  on({"margin_ranking_loss.default"}, loss({"input1", "input2", "target"}, rankingLoss));
  on({"binary_cross_entropy.default"}, binaryCrossEntropy);
  on({"binary_cross_entropy_with_logits.default"}, binaryCrossEntropyOfLogits);
  on({"nll_loss.default", "nll_loss_nd.default", "nll_loss2d.default", "nll_loss_forward.default",
      "nll_loss2d_forward.default"},
     negativeLogLikelihood);
  on({"cross_entropy_loss.default"}, crossEntropyLoss);
  on({"multi_margin_loss.default"}, multiMarginLoss);
  on({"multilabel_margin_loss.default", "multilabel_margin_loss_forward.default"}, multilabelMarginLoss);
  on({"cosine_similarity.default"}, cosineSimilarity);
  on({"pairwise_distance.default"}, pairwiseDistance);
  on({"cosine_embedding_loss.default"}, cosineEmbeddingLoss);
  on({"triplet_margin_loss.default"}, tripletMarginLoss);
  on({"dist.default"}, dist);
  on({"cdist.default", "_cdist_forward.default", "_euclidean_dist.default"}, rowDistances);
  onOp("pdist.default", 1, pairDistances);
  onOp("_pdist_forward.default", 1, pairDistances);
}
