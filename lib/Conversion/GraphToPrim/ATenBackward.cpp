//===- ATenBackward.cpp - backward operators of ATen --------------------------------------------------------------===//
//
// Most are the gradient of their forward operator, which is written down and differentiated; nothing of it is computed
// that the gradient does not read. Those that are given what the forward operator has saved are written by themselves.
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml) and its derivatives.yaml.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/Differentiate.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The gradient of y, whose own one is g, with respect to each of `xs`. What `constants` are computed from does not
/// count.
FailureOr<SmallVector<Value>> differentiate(NodeContext &ctx, Value y, Value g, ArrayRef<Value> xs,
                                            ArrayRef<Value> constants) {
  if (ctx.b.elementOf(y) != ctx.b.elementOf(g))
    g = ctx.b.convert(g, ctx.b.elementOf(y));
  FailureOr<Value> fitting = ctx.castSizes(g, getSizes(y));
  if (failed(fitting))
    return failure();
  SmallVector<Value> fixed(constants);
  fixed.push_back(*fitting);
  std::string why;
  FailureOr<SmallVector<Value>> gradients = emitGradients(ctx.b, ctx.b.mul(y, *fitting), xs, fixed, why);
  if (failed(gradients))
    return ctx.unsupported("with a gradient " + why + " is not supported");
  return gradients;
}

/// Whether result `i` is asked for: `output_mask` says so where there is one.
bool isAsked(NodeContext &ctx, size_t i) {
  auto mask = dyn_cast_or_null<DenseBoolArrayAttr>(ctx.attr("output_mask"));
  return !mask || (i < mask.asArrayRef().size() && mask.asArrayRef()[i]);
}

/// An operator that is the gradient of another of the same arguments.
struct Gradient {
  const char *backward, *forward;
  /// The tensors that it is the gradient of, a result each.
  std::vector<const char *> wanted;
  /// Further tensors that the forward operator takes.
  std::vector<const char *> others = {};
  /// The tensor that a mean is divided by; null where it is divided by the number of elements.
  const char *total = nullptr;
};

NodeHandler gradientOf(const Gradient &gradient) {
  return [gradient](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    Value g = c.tensor("grad_output") ? c.tensor("grad_output") : c.tensor("grad_out");
    if (!g)
      return ctx.invalid("argument \"grad_output\" is missing");
    SmallVector<TensorArgument> tensors;
    SmallVector<Value> xs, constants;
    for (const char *name : gradient.wanted) {
      FailureOr<Value> x = c.floats(name);
      if (failed(x))
        return failure();
      xs.push_back(*x);
      tensors.push_back({name, *x});
    }
    for (const char *name : gradient.others)
      if (Value other = c.tensor(name)) {
        constants.push_back(other);
        tensors.push_back({name, other});
      }
    // Numbers that the program computes, such as entries of padding.
    const SmallVector<TensorArgument> given(tensors);
    for (auto name : cast<ArrayAttr>(ctx.attr("arg_names")).getAsRange<StringAttr>())
      if (Value v = c.tensor(name.getValue());
          v && v != g && name != "is_target" && !(gradient.total && name == gradient.total) &&
          llvm::none_of(given, [&](auto &one) { return one.first == name.getValue(); }))
        tensors.push_back({name.getValue(), v});
    NamedAttrList attributes(ctx.node().getAttrs());
    for (StringRef own : {"arg_names", "output_mask", "is_target"})
      attributes.erase(own);
    if (gradient.total && c.integer("reduction", kMean) == kMean) {
      FailureOr<Value> total = c.required(gradient.total);
      if (failed(total))
        return failure();
      Value operands[] = {g, ctx.b.convert(*total, ctx.b.elementOf(g))};
      if (failed(ctx.broadcastTogether(operands)))
        return failure();
      g = ctx.b.div(operands[0], operands[1]);
      attributes.set("reduction", ctx.b.getI64IntegerAttr(kSum));
    }
    FailureOr<SmallVector<Value>> y = callATen(ctx, gradient.forward, tensors, attributes);
    if (failed(y))
      return failure();
    FailureOr<SmallVector<Value>> gradients = differentiate(ctx, (*y)[0], g, xs, constants);
    if (failed(gradients))
      return failure();
    for (auto [i, x] : llvm::enumerate(*gradients))
      if (isAsked(ctx, i) && failed(ctx.set(i, x)))
        return failure();
    return success();
  };
}

/// A movement: of a tensor of sizes `input_size` or `input_sizes`, whatever it holds.
/// `renamed`: arguments that the forward operator calls otherwise.
NodeHandler movementOf(std::string forward, std::string sizesName,
                       std::vector<std::pair<const char *, const char *>> renamed = {}) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    Value g = c.tensor("grad_output") ? c.tensor("grad_output") : c.tensor("grad_in");
    FailureOr<Sizes> sizes = c.sizes(sizesName);
    if (!g || failed(sizes))
      return ctx.invalid("needs a gradient and sizes");
    if (sizes->empty())
      return ctx.invalid("moves a tensor without dims");
    Value x = b.convert(b.iota(b.getI64Type(), *sizes, 0), b.elementOf(g)); // no constant: those would be folded
    NamedAttrList attributes(ctx.node().getAttrs());
    for (StringRef own : {StringRef("arg_names"), StringRef(sizesName)})
      attributes.erase(own);
    for (auto [from, to] : renamed)
      if (Attribute value = attributes.erase(from))
        attributes.set(to, value);
    SmallVector<TensorArgument> tensors{{"self", x}};
    // Numbers that the program computes, such as the end of a slice.
    for (auto name : cast<ArrayAttr>(ctx.attr("arg_names")).getAsRange<StringAttr>())
      if (c.tensor(name.getValue()) != g && !name.getValue().starts_with(sizesName))
        tensors.push_back({name.getValue(), c.tensor(name.getValue())});
    FailureOr<SmallVector<Value>> y = callATen(ctx, forward, tensors, attributes);
    if (failed(y))
      return failure();
    FailureOr<SmallVector<Value>> gradient = differentiate(ctx, (*y)[0], g, x, {});
    return failed(gradient) ? failure() : ctx.result((*gradient)[0]);
  };
}

/// convolution_backward: of input, weight and bias.
LogicalResult convolution(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), x = c.floats("input"), w = c.floats("weight");
  if (failed(g) || failed(x) || failed(w))
    return failure();
  NamedAttrList attributes(ctx.node().getAttrs());
  for (StringRef own : {"arg_names", "output_mask", "bias_sizes"})
    attributes.erase(own);
  SmallVector<Value> xs;
  const Value both[] = {*x, *w};
  for (auto [i, v] : llvm::enumerate(both))
    if (isAsked(ctx, i))
      xs.push_back(v);
  if (!xs.empty()) {
    FailureOr<SmallVector<Value>> y = callATen(ctx, "convolution.default", {{"input", *x}, {"weight", *w}}, attributes);
    if (failed(y))
      return failure();
    SmallVector<Value> fixed;
    for (Value v : both)
      if (!llvm::is_contained(xs, v))
        fixed.push_back(v);
    FailureOr<SmallVector<Value>> gradients = differentiate(ctx, (*y)[0], *g, xs, fixed);
    if (failed(gradients))
      return failure();
    size_t next = 0;
    for (size_t i = 0; i < 2; ++i)
      if (isAsked(ctx, i) && failed(ctx.set(i, (*gradients)[next++])))
        return failure();
  }
  if (!isAsked(ctx, 2))
    return success();
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < b.rankOf(*g); ++i)
    if (i != 1)
      dims.push_back(i);
  return ctx.set(2, b.reduce(ReduceKind::Sum, *g, dims));
}

/// _adaptive_avg_pool2d_backward and 3d: the size of the result is the gradient's.
NodeHandler adaptivePool(StringRef forward, int64_t spatial) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> g = c.floats("grad_output"), x = c.floats("self");
    if (failed(g) || failed(x))
      return failure();
    SmallVector<int64_t> sizes;
    for (AffineExpr size : SizesRef(getSizes(*g)).take_back(spatial)) {
      std::optional<int64_t> known = getConstantSize(size);
      if (!known)
        return ctx.unsupported("of an unknown output size is not supported");
      sizes.push_back(*known);
    }
    NamedAttrList attributes;
    attributes.set("output_size", ctx.b.getDenseI64ArrayAttr(sizes));
    FailureOr<SmallVector<Value>> y = callATen(ctx, forward, TensorArgument{"self", *x}, attributes);
    if (failed(y))
      return failure();
    FailureOr<SmallVector<Value>> gradient = differentiate(ctx, (*y)[0], *g, *x, {});
    return failed(gradient) ? failure() : ctx.result((*gradient)[0]);
  };
}

/// Each gradient goes to the element that its index names, within the last `spatial` dims.
NodeHandler maxPool(int64_t spatial) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> g = c.floats("grad_output"), x = c.floats("self"), indices = c.required("indices");
    if (failed(g) || failed(x) || failed(indices))
      return failure();
    const Sizes in = getSizes(*x), out = getSizes(*g);
    if (int64_t(in.size()) < spatial || in.size() != out.size() || out.size() != getSizes(*indices).size())
      return ctx.invalid("takes gradients and indices of the input's rank, but got " + describe(*g) + " and " +
                         describe(*indices));
    auto flat = [&](Value v, const Sizes &sizes) {
      return b.reshape(v, {product(b.getContext(), SizesRef(sizes).drop_back(spatial)),
                           product(b.getContext(), SizesRef(sizes).take_back(spatial))});
    };
    FailureOr<Value> fitting = ctx.castSizes(*indices, out);
    if (failed(fitting))
      return failure();
    Value zeros = b.splat(b.elementOf(*g), getSizes(flat(*x, in)), 0);
    NamedAttrList attributes;
    attributes.set("dim", b.getI64IntegerAttr(1));
    FailureOr<SmallVector<Value>> y =
        callATen(ctx, "scatter_add.default", {{"self", zeros}, {"index", flat(*fitting, out)}, {"src", flat(*g, out)}},
                 attributes);
    return failed(y) ? failure() : ctx.result(b.reshape((*y)[0], in));
  };
}

LogicalResult embedding(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), indices = c.required("indices");
  FailureOr<AffineExpr> rows = c.size("num_weights");
  if (failed(g) || failed(indices) || failed(rows))
    return failure();
  const Sizes sizes = getSizes(*g);
  if (sizes.empty() || !isa<IntegerType>(b.elementOf(*indices)))
    return ctx.invalid("takes integers as indices, but got " + describe(*indices));
  const AffineExpr width = sizes.back(), count = product(b.getContext(), SizesRef(sizes).drop_back());
  FailureOr<Value> flatIndices = ctx.reshape(*indices, {count});
  if (failed(flatIndices))
    return failure();
  Value index = b.convert(*flatIndices, b.getI64Type()), flat = b.reshape(*g, {count, width});
  auto addAt = [&](Value into, Value what) -> FailureOr<Value> {
    NamedAttrList attributes;
    attributes.set("dim", b.getI64IntegerAttr(0));
    FailureOr<SmallVector<Value>> y =
        callATen(ctx, "index_add.default", {{"self", into}, {"index", index}, {"source", what}}, attributes);
    return failed(y) ? FailureOr<Value>(failure()) : FailureOr<Value>((*y)[0]);
  };
  if (const int64_t padding = c.integer("padding_idx", -1); padding >= 0) {
    Value isKept = b.compare(CompareKind::NE, index, double(padding));
    flat = b.select(b.broadcastInDims(isKept, {count, width}, {0}), flat, b.splatLike(flat, 0));
  }
  if (c.flag("scale_grad_by_freq")) {
    FailureOr<Value> uses = addAt(b.splat(b.elementOf(flat), {*rows}, 0), b.splat(b.elementOf(flat), {count}, 1));
    if (failed(uses))
      return failure();
    flat = b.div(flat, b.broadcastInDims(GatherOp::create(b, *uses, index, 0), {count, width}, {0}));
  }
  FailureOr<Value> y = addAt(b.splat(b.elementOf(flat), {*rows, width}, 0), flat);
  return failed(y) ? failure() : ctx.result(*y);
}

//===--- norms, of the statistics that the forward operator has saved ---------------------------------------------===//

/// Gradients of y = (x - mean) * rstd * weight + bias, of x that is normalised over `dims`; all in f32 or wider, and of
/// x's sizes.
struct NormGradients {
  Value input, weighted, own; ///< of x; of weight and of bias before they are summed
};

NormGradients emitNormGradients(PrimBuilder &b, Value g, Value x, Value mean, Value rstd, Value weight,
                                ArrayRef<int64_t> dims) {
  Value normal = b.mul(b.sub(x, mean), rstd);
  Value scaled = weight ? b.mul(g, weight) : g;
  const Sizes sizes = getSizes(x);
  auto average = [&](Value v) { return b.broadcastTo(b.mean(v, dims, /*keepDims=*/true), sizes); };
  Value inner = b.sub(b.sub(scaled, average(scaled)), b.mul(normal, average(b.mul(scaled, normal))));
  return {b.mul(inner, rstd), b.mul(g, normal), g};
}

LogicalResult setSum(NodeContext &ctx, size_t result, Value v, ArrayRef<int64_t> dims, SizesRef sizes, Type type) {
  if (!isAsked(ctx, result))
    return success();
  return setFloats(ctx, result, ctx.b.reshape(ctx.b.reduce(ReduceKind::Sum, v, dims), sizes), type);
}

LogicalResult layerNorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_out"), x = c.floats("input"), mean = c.floats("mean"), rstd = c.floats("rstd");
  std::optional<SmallVector<int64_t>> shape = c.integers("normalized_shape");
  if (failed(g) || failed(x) || failed(mean) || failed(rstd) || !shape || int64_t(shape->size()) > b.rankOf(*x))
    return ctx.invalid("normalized_shape does not fit the input");
  const Sizes sizes = getSizes(*x);
  const int64_t rank = sizes.size(), first = rank - shape->size();
  Type wide = b.accumulatorOf(b.elementOf(*x)), type = b.elementOf(*x);
  auto spread = [&](Value v) -> FailureOr<Value> { return ctx.broadcastOnto(b.convert(v, wide), sizes); };
  FailureOr<Value> fg = ctx.castSizes(b.convert(*g, wide), sizes), fm = spread(*mean), fr = spread(*rstd);
  FailureOr<Value> fw = c.tensor("weight") ? spread(c.tensor("weight")) : FailureOr<Value>(Value());
  if (failed(fg) || failed(fm) || failed(fr) || failed(fw))
    return failure();
  SmallVector<int64_t> inner = llvm::to_vector(llvm::seq<int64_t>(first, rank)),
                       outer = llvm::to_vector(llvm::seq<int64_t>(0, first));
  NormGradients n = emitNormGradients(b, *fg, b.convert(*x, wide), *fm, *fr, *fw, inner);
  SizesRef own = SizesRef(sizes).drop_front(first);
  if (isAsked(ctx, 0) && failed(setFloats(ctx, 0, n.input, type)))
    return failure();
  return success(succeeded(setSum(ctx, 1, n.weighted, outer, own, type)) &&
                 succeeded(setSum(ctx, 2, n.own, outer, own, type)));
}

LogicalResult groupNorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_out"), x = c.floats("input"), mean = c.floats("mean"), rstd = c.floats("rstd");
  const int64_t groups = c.integer("group", 1);
  if (failed(g) || failed(x) || failed(mean) || failed(rstd))
    return failure();
  const Sizes sizes = getSizes(*x);
  std::optional<int64_t> channels = sizes.size() < 2 ? std::nullopt : getConstantSize(sizes[1]);
  if (!channels || groups < 1 || *channels % groups)
    return ctx.invalid("group " + Twine(groups) + " does not divide the channels of " + describe(*x));
  Type wide = b.accumulatorOf(b.elementOf(*x)), type = b.elementOf(*x);
  // [N, groups, channels of each, elements]
  const Sizes all{sizes[0], b.size(groups), b.size(*channels / groups),
                  product(b.getContext(), SizesRef(sizes).drop_front(2))};
  auto cut = [&](Value v) { return b.reshape(b.convert(v, wide), all); };
  auto statistic = [&](Value v) -> FailureOr<Value> {
    FailureOr<Value> flat = ctx.reshape(b.convert(v, wide), {sizes[0], b.size(groups)});
    return failed(flat) ? flat : FailureOr<Value>(b.broadcastInDims(*flat, all, {0, 1}));
  };
  FailureOr<Value> fg = ctx.castSizes(*g, sizes), fm = statistic(*mean), fr = statistic(*rstd);
  if (failed(fg) || failed(fm) || failed(fr))
    return failure();
  Value weight;
  if (Value w = c.tensor("weight")) {
    FailureOr<Value> fitting = ctx.reshape(b.convert(w, wide), {all[1], all[2]});
    if (failed(fitting))
      return failure();
    weight = b.broadcastInDims(*fitting, all, {1, 2});
  }
  NormGradients n = emitNormGradients(b, cut(*fg), cut(*x), *fm, *fr, weight, {2, 3});
  if (isAsked(ctx, 0) && failed(setFloats(ctx, 0, b.reshape(n.input, sizes), type)))
    return failure();
  return success(succeeded(setSum(ctx, 1, n.weighted, {0, 3}, sizes[1], type)) &&
                 succeeded(setSum(ctx, 2, n.own, {0, 3}, sizes[1], type)));
}

/// native_batch_norm_backward and the like: `mode` and `saved` are the names of the flag of training and of what was
/// saved of the variance.
LogicalResult emitBatchNorm(NodeContext &ctx, StringRef mode, StringRef saved) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_out"), x = c.floats("input");
  if (failed(g) || failed(x))
    return failure();
  const Sizes sizes = getSizes(*x);
  if (sizes.size() < 2)
    return ctx.invalid("takes an input of rank 2 or more, but got " + describe(*x));
  Type wide = b.accumulatorOf(b.elementOf(*x)), type = b.elementOf(*x);
  const bool isTraining = c.flag(mode);
  Value mean = c.tensor(isTraining ? "save_mean" : "running_mean"),
        scale = c.tensor(isTraining ? saved : "running_var");
  if (!mean || !scale)
    return ctx.invalid("lacks the statistics of its mode");
  auto spread = [&](Value v) -> FailureOr<Value> {
    FailureOr<Value> fitting = ctx.castSizes(v, {sizes[1]});
    return failed(fitting) ? fitting : FailureOr<Value>(b.broadcastInDims(*fitting, sizes, {1}));
  };
  scale = b.convert(scale, wide);
  if (!isTraining)
    scale = b.unary<RsqrtOp>(b.binary<AddOp>(scale, c.number("eps", 1e-5)));
  FailureOr<Value> fg = ctx.castSizes(b.convert(*g, wide), sizes), fm = spread(b.convert(mean, wide)),
                   fr = spread(scale);
  FailureOr<Value> fw = c.tensor("weight") ? spread(b.convert(c.tensor("weight"), wide)) : FailureOr<Value>(Value());
  if (failed(fg) || failed(fm) || failed(fr) || failed(fw))
    return failure();
  SmallVector<int64_t> dims{0};
  for (int64_t i = 2; i < int64_t(sizes.size()); ++i)
    dims.push_back(i);
  // The weight is the same wherever is summed: without it the sums are those of the other gradients, too.
  NormGradients n = emitNormGradients(b, *fg, b.convert(*x, wide), *fm, *fr, Value(), dims);
  // Statistics that were not computed from the input do not depend on it.
  Value input = isTraining ? n.input : b.mul(*fg, *fr);
  if (*fw)
    input = b.mul(input, *fw);
  if (isAsked(ctx, 0) && failed(setFloats(ctx, 0, input, type)))
    return failure();
  return success(succeeded(setSum(ctx, 1, n.weighted, dims, sizes[1], type)) &&
                 succeeded(setSum(ctx, 2, n.own, dims, sizes[1], type)));
}

//===--- of results -----------------------------------------------------------------------------------------------===//

/// A gradient that the forward operator's result tells: `emit` gets g and the result, in f32 or wider.
NodeHandler ofResult(std::function<Value(PrimBuilder &, Value, Value)> emit) {
  return [emit = std::move(emit)](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> g = c.floats("grad_output"), y = c.floats("output");
    if (failed(g) || failed(y))
      return failure();
    Type type = b.elementOf(*y), wide = b.accumulatorOf(type);
    Value operands[] = {b.convert(*g, wide), b.convert(*y, wide)};
    if (failed(ctx.broadcastTogether(operands)))
      return failure();
    return ctx.result(b.convert(emit(b, operands[0], operands[1]), type));
  };
}

/// _softmax_backward_data and (`isLog`) _log_softmax_backward_data.
NodeHandler softmax(bool isLog) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> g = c.floats("grad_output"), y = c.floats("output");
    if (failed(g) || failed(y))
      return failure();
    FailureOr<Type> type = c.dtype(b.elementOf(*g), "input_dtype");
    FailureOr<Value> fitting = ctx.castSizes(*g, getSizes(*y));
    if (failed(type) || failed(fitting))
      return failure();
    const int64_t rank = b.rankOf(*y);
    Type wide = b.accumulatorOf(b.elementOf(*y));
    Value fg = b.convert(*fitting, wide), fy = b.convert(*y, wide);
    if (rank == 0)
      return ctx.result(b.convert(b.splatLike(fg, 0), *type));
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), rank);
    if (failed(axis))
      return failure();
    auto total = [&](Value v) {
      return b.broadcastTo(b.reduce(ReduceKind::Sum, v, {*axis}, /*keepDims=*/true), getSizes(fy));
    };
    Value x = isLog ? b.sub(fg, b.mul(b.unary<ExpOp>(fy), total(fg))) : b.mul(fy, b.sub(fg, total(b.mul(fg, fy))));
    return ctx.result(b.convert(x, *type));
  };
}

/// A gradient that the operand tells: `emit` gets g and the values of `names`, the operand first, in f32 or wider and
/// of one shape. `isLoss`: g is that of the reduction of an element's losses.
template <typename Fn> NodeHandler ofOperand(std::vector<StringRef> names, Fn emit, bool isLoss = false) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> g = c.floats("grad_output"), x = c.floats(names.front());
    if (failed(g) || failed(x))
      return failure();
    const Type type = b.elementOf(*x), wide = b.accumulatorOf(type);
    SmallVector<Value> operands{b.convert(*g, wide)};
    for (StringRef name : names)
      if (Value v = c.tensor(name))
        operands.push_back(b.convert(v, wide));
    if (failed(ctx.broadcastTogether(operands)))
      return failure();
    if (isLoss && c.integer("reduction", 1) == 1) {
      Value count = b.convert(b.sizeValue(product(b.getContext(), getSizes(operands[1]))), wide);
      operands[0] = b.div(operands[0], b.broadcastTo(count, getSizes(operands[0])));
    }
    return ctx.result(b.convert(emit(c, operands[0], ArrayRef(operands).drop_front()), type));
  };
}

using Values = ArrayRef<Value>;

/// 0 up to `low`, `inside` below `high`, else `above`.
Value inParts(PrimBuilder &b, Value x, double low, double high, Value inside, Value above) {
  Value rest = b.select(b.compare(CompareKind::LT, x, high), inside, above);
  return b.select(b.compare(CompareKind::LE, x, low), b.splatLike(x, 0), rest);
}

/// What is no number passes, as in PyTorch.
Value hardtanh(Call &c, Value g, Values v) {
  PrimBuilder &b = c.b;
  Value zero = b.splatLike(g, 0), isAbove = b.compare(CompareKind::GE, v[0], c.number("max_val", 1));
  return b.select(b.compare(CompareKind::LE, v[0], c.number("min_val", -1)), zero, b.select(isAbove, zero, g));
}
Value hardsigmoid(Call &c, Value g, Values v) {
  return inParts(c.b, v[0], -3, 3, c.b.binary<DivOp>(g, 6), c.b.splatLike(g, 0));
}
Value hardswish(Call &c, Value g, Values v) {
  PrimBuilder &b = c.b;
  return inParts(b, v[0], -3, 3, b.mul(g, b.binary<AddOp>(b.binary<DivOp>(v[0], 3), 0.5)), g);
}
Value softplus(Call &c, Value g, Values v) {
  PrimBuilder &b = c.b;
  Value x = b.binary<MulOp>(v[0], c.number("beta", 1));
  return b.select(b.compare(CompareKind::GT, x, c.number("threshold", 20)), g, b.mul(g, b.unary<LogisticOp>(x)));
}
Value logSigmoid(Call &c, Value g, Values v) { return c.b.mul(g, c.b.unary<LogisticOp>(c.b.unary<NegOp>(v[0]))); }
Value softMarginLoss(Call &c, Value g, Values v) {
  PrimBuilder &b = c.b;
  Value away = b.unary<NegOp>(v[1]);
  return b.mul(g, b.mul(away, b.unary<LogisticOp>(b.mul(away, v[0]))));
}
/// Of a probability that is 0 or 1 it is finite.
Value crossEntropy(Call &c, Value g, Values v) {
  PrimBuilder &b = c.b;
  Value spread = b.binary<MaxOp>(b.mul(b.sub(b.splatLike(v[0], 1), v[0]), v[0]), 1e-12);
  Value slope = b.div(b.mul(g, b.sub(v[0], v[1])), spread);
  return v.size() > 2 ? b.mul(slope, v[2]) : slope;
}

LogicalResult threshold(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.required("grad_output"), x = c.required("self");
  if (failed(g) || failed(x))
    return failure();
  Value operands[] = {*g, *x};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  Value isBelow = b.compare(CompareKind::LE, operands[1], c.number("threshold", 0));
  return ctx.result(b.select(isBelow, b.splatLike(operands[0], 0), operands[0]));
}

LogicalResult dropout(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), mask = c.required("mask");
  if (failed(g) || failed(mask))
    return failure();
  FailureOr<Value> fitting = ctx.castSizes(b.convert(*mask, b.elementOf(*g)), getSizes(*g));
  if (failed(fitting))
    return failure();
  return ctx.result(b.binary<MulOp>(b.mul(*g, *fitting), c.number("scale", 1)));
}

/// elu, and of its result where that took the operand's place.
LogicalResult elu(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), x = c.floats("self_or_result");
  if (failed(g) || failed(x))
    return failure();
  Type type = b.elementOf(*x), wide = b.accumulatorOf(type);
  Value operands[] = {b.convert(*g, wide), b.convert(*x, wide)};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  const double alpha = c.number("alpha", 1), scale = c.number("scale", 1), inner = c.number("input_scale", 1);
  Value below = c.flag("is_result")
                    ? b.binary<MulOp>(b.binary<AddOp>(operands[1], alpha * scale), inner)
                    : b.binary<MulOp>(b.unary<ExpOp>(b.binary<MulOp>(operands[1], inner)), alpha * scale * inner);
  Value slope = b.select(b.compare(CompareKind::LE, operands[1], 0), below, b.splatLike(below, scale));
  return ctx.result(b.convert(b.mul(operands[0], slope), type));
}

/// The sign of the result is the operand's: it may be either.
LogicalResult emitLeakyRelu(Call &c, double slope) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), x = c.floats("self");
  if (failed(g) || failed(x))
    return failure();
  Type type = b.elementOf(*x), wide = b.accumulatorOf(type);
  Value operands[] = {b.convert(*g, wide), b.convert(*x, wide)};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  Value below = b.binary<MulOp>(operands[0], slope);
  return ctx.result(b.convert(b.select(b.compare(CompareKind::GT, operands[1], 0), operands[0], below), type));
}

LogicalResult leakyRelu(NodeContext &ctx) {
  Call c(ctx);
  return emitLeakyRelu(c, c.number("negative_slope", 0.01));
}

/// _prelu_kernel_backward: of the operand, and of a weight for each element.
LogicalResult prelu(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), x = c.floats("self"), w = c.floats("weight");
  if (failed(g) || failed(x) || failed(w))
    return failure();
  Value operands[] = {*g, *x, b.convert(*w, b.elementOf(*x))};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  Value isAbove = b.compare(CompareKind::GT, operands[1], 0), zero = b.splatLike(operands[0], 0);
  (void)ctx.set(1, b.select(isAbove, zero, b.mul(operands[0], operands[1])));
  return ctx.result(b.select(isAbove, operands[0], b.mul(operands[0], operands[2])));
}

/// The gradients that distances have: PyTorch called the argument otherwise up to 2.11.
FailureOr<Value> gradientOfDistances(Call &c) { return c.floats(c.tensor("grad") ? "grad" : "grad_output"); }

/// Of distances y of the rows of x1 [.., P, M] from those of x2 [.., R, M], with gradients g of y [.., P, R]: that of
/// x1. Rows that are equal get 0. The values are in f32 or wider.
FailureOr<Value> emitRowDistances(NodeContext &ctx, Value g, Value x1, Value x2, Value y, double p) {
  PrimBuilder &b = ctx.b;
  const int64_t rank = b.rankOf(x1);
  Value v[] = {b.unsqueeze(x1, rank - 1), b.unsqueeze(x2, rank - 2), b.unsqueeze(g, rank), b.unsqueeze(y, rank)};
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  Value d = b.sub(v[0], v[1]), sign = b.unary<SignOp>(d), size = b.unary<AbsOp>(d), part;
  if (p == 0)
    part = b.splatLike(d, 0);
  else if (p == 1)
    part = sign;
  else if (p == 2)
    part = b.div(d, v[3]);
  else if (std::isinf(p))
    part = b.select(b.compare(CompareKind::EQ, size, v[3]), sign, b.splatLike(d, 0));
  else
    part = b.mul(sign, b.binary<PowOp>(b.div(size, v[3]), p - 1));
  if (p != 1 && p != 0) {
    Value isFlat = b.compare(CompareKind::EQ, v[3], 0);
    if (p < 1)
      isFlat = b.binary<OrOp>(isFlat, b.compare(CompareKind::EQ, d, 0));
    part = b.select(isFlat, b.splatLike(d, 0), part);
  }
  return b.reduce(ReduceKind::Sum, b.mul(v[2], part), {rank - 1});
}

/// _cdist_backward: of x1 [.., P, M].
LogicalResult rowDistances(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = gradientOfDistances(c), x1 = c.floats("x1"), x2 = c.floats("x2"), y = c.floats("cdist");
  if (failed(g) || failed(x1) || failed(x2) || failed(y))
    return failure();
  const int64_t rank = b.rankOf(*g), shared = std::max(b.rankOf(*x1), b.rankOf(*x2));
  if (b.rankOf(*x1) < 2 || b.rankOf(*x2) < 2 || rank != shared || b.rankOf(*y) != rank)
    return ctx.invalid("takes matrices, of rank 2 or more, and distances of the higher rank of both, but got " +
                       describe(*x1) + ", " + describe(*x2) + " and " + describe(*g));
  Type type = b.elementOf(*x1), wide = b.accumulatorOf(type);
  auto isZero = [](AffineExpr size) { return getConstantSize(size) == std::optional<int64_t>(0); };
  if (llvm::any_of(getSizes(*x1), isZero) || llvm::any_of(getSizes(*g), isZero))
    return ctx.result(b.splatLike(*x1, 0)); // PyTorch leaves the dims in front as they are then
  auto lift = [&](Value v) {
    v = b.convert(v, wide);
    Sizes sizes(size_t(rank - b.rankOf(v)), b.size(1));
    llvm::append_range(sizes, getSizes(v));
    return b.reshape(v, sizes);
  };
  FailureOr<Value> gradient = emitRowDistances(ctx, lift(*g), lift(*x1), lift(*x2), lift(*y), c.number("p", 2));
  return failed(gradient) ? failure() : ctx.result(b.convert(*gradient, type));
}

/// _pdist_backward: of the rows of a matrix [N, M], whose distances are those of rows i < j in a row, as [N, N].
LogicalResult pairDistances(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = gradientOfDistances(c), x = c.floats("self"), y = c.floats("pdist");
  if (failed(g) || failed(x) || failed(y))
    return failure();
  if (b.rankOf(*x) != 2 || b.rankOf(*g) != 1 || b.rankOf(*y) != 1)
    return ctx.invalid("takes a matrix and two vectors, but got " + describe(*x) + ", " + describe(*g) + " and " +
                       describe(*y));
  const Type i64 = b.getI64Type(), type = b.elementOf(*x), wide = b.accumulatorOf(type);
  const AffineExpr rows = getSizes(*x)[0], pairs = getSizes(*y)[0];
  const Sizes all{rows, rows};
  Value i = b.iota(i64, all, 0), j = b.iota(i64, all, 1), low = b.min(i, j), high = b.max(i, j);
  Value count = b.broadcastTo(b.sizeValue(rows), all);
  // Before those of row i there are i (2 N - i - 1) / 2 others. The diagonal reads the 0 behind all of them.
  Value before = b.mul(low, b.binary<SubOp>(b.sub(b.add(count, count), low), 1));
  Value place = b.add(b.binary<DivOp>(before, 2), b.binary<SubOp>(b.sub(high, low), 1));
  place = b.select(b.compare(CompareKind::EQ, i, j), b.broadcastTo(b.sizeValue(pairs), all), place);
  FailureOr<Value> fitting = ctx.castSizes(*g, {pairs});
  if (failed(fitting))
    return failure();
  auto square = [&](Value v) -> Value {
    Value padded = b.pad(b.convert(v, wide), b.scalar(wide, 0), {b.size(0)}, {simplifySize(pairs + 1)});
    return GatherOp::create(b, padded, place, 0);
  };
  Value fx = b.convert(*x, wide);
  FailureOr<Value> gradient = emitRowDistances(ctx, square(*fitting), fx, fx, square(*y), c.number("p", 2));
  return failed(gradient) ? failure() : ctx.result(b.convert(*gradient, type));
}

/// _fused_rms_norm_backward: of input and weight.
LogicalResult rmsNorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_out"), x = c.floats("input"), rstd = c.floats("rstd");
  std::optional<SmallVector<int64_t>> shape = c.integers("normalized_shape");
  if (failed(g) || failed(x) || failed(rstd) || !shape || int64_t(shape->size()) > b.rankOf(*x))
    return ctx.invalid("normalized_shape does not fit the input");
  const Sizes sizes = getSizes(*x);
  const int64_t rank = sizes.size(), first = rank - shape->size();
  Type wide = b.accumulatorOf(b.elementOf(*x)), type = b.elementOf(*x);
  auto spread = [&](Value v) -> FailureOr<Value> { return ctx.broadcastOnto(b.convert(v, wide), sizes); };
  FailureOr<Value> fg = ctx.castSizes(b.convert(*g, wide), sizes), fr = spread(*rstd),
                   fw = c.tensor("weight") ? spread(c.tensor("weight")) : FailureOr<Value>(Value());
  if (failed(fg) || failed(fr) || failed(fw))
    return failure();
  SmallVector<int64_t> inner = llvm::to_vector(llvm::seq<int64_t>(first, rank)),
                       outer = llvm::to_vector(llvm::seq<int64_t>(0, first));
  Value normal = b.mul(b.convert(*x, wide), *fr), scaled = *fw ? b.mul(*fg, *fw) : *fg;
  Value average = b.broadcastTo(b.mean(b.mul(scaled, normal), inner, /*keepDims=*/true), sizes);
  if (isAsked(ctx, 0) && failed(ctx.set(0, b.convert(b.mul(b.sub(scaled, b.mul(normal, average)), *fr), type))))
    return failure();
  return setSum(ctx, 1, b.mul(*fg, normal), outer, SizesRef(sizes).drop_front(first), type);
}

/// _weight_norm_interface_backward: of v and g.
LogicalResult weightNorm(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> g = c.floats("grad_w"), v = c.floats("saved_v"), scale = c.floats("saved_g");
  if (failed(g) || failed(v) || failed(scale))
    return failure();
  NamedAttrList attributes;
  attributes.set("dim", ctx.b.getI64IntegerAttr(c.integer("dim", 0)));
  FailureOr<SmallVector<Value>> y =
      callATen(ctx, "_weight_norm_interface.default", {{"v", *v}, {"g", *scale}}, attributes);
  FailureOr<SmallVector<Value>> gradients = failed(y) ? y : differentiate(ctx, (*y)[0], *g, {*v, *scale}, {});
  if (failed(gradients))
    return failure();
  (void)ctx.set(0, (*gradients)[0]);
  return ctx.set(1, (*gradients)[1]);
}

/// The gradient of bags, which g is that of, with respect to `x`; `tensors` lacks the offsets, of which those of
/// PyTorch may have a last one that begins no bag.
FailureOr<SmallVector<Value>> differentiateBags(NodeContext &ctx, Value g, ArrayRef<TensorArgument> tensors,
                                                Value offsets, Value x) {
  PrimBuilder &b = ctx.b;
  NamedAttrList attributes;
  for (StringRef name : {"mode", "padding_idx"})
    if (Attribute value = ctx.attr(name))
      attributes.set(name, value);
  if (getSizes(offsets)[0] != getSizes(g)[0])
    offsets = b.sliceDim(offsets, 0, b.size(0), getSizes(g)[0]);
  SmallVector<TensorArgument> all(tensors);
  all.push_back({"offsets", offsets});
  FailureOr<SmallVector<Value>> y = callATen(ctx, "_embedding_bag.default", all, attributes);
  return failed(y) ? y : differentiate(ctx, (*y)[0], g, x, {});
}

/// _embedding_bag_backward: of the table [num_weights, D]. Sums and means are the gradient of the forward operator,
/// whose table does not count; of the largest, what it has saved says which rows those were.
LogicalResult embeddingBag(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad"), indices = c.required("indices"), offsets = c.required("offsets"),
                   largest = c.required("maximum_indices");
  FailureOr<AffineExpr> rows = c.size("num_weights");
  if (failed(g) || failed(indices) || failed(offsets) || failed(largest) || failed(rows))
    return failure();
  if (c.flag("scale_grad_by_freq"))
    return ctx.unsupported("with scale_grad_by_freq is not supported");
  if (b.rankOf(*g) != 2 || b.rankOf(*offsets) != 1)
    return ctx.invalid("takes a matrix of gradients, but got " + describe(*g));
  const Sizes sizes{*rows, getSizes(*g)[1]};
  const int64_t mode = c.integer("mode", 0);
  if (mode == 2) { // bags that are empty have -1
    FailureOr<Value> at = ctx.castSizes(b.convert(*largest, b.getI64Type()), getSizes(*g));
    if (failed(at))
      return failure();
    Value isEmpty = b.compare(CompareKind::LT, *at, 0);
    NamedAttrList attributes;
    attributes.set("dim", b.getI64IntegerAttr(0));
    FailureOr<SmallVector<Value>> y = callATen(ctx, "scatter_add.default",
                                               {{"self", b.splat(b.elementOf(*g), sizes, 0)},
                                                {"index", b.select(isEmpty, b.splatLike(*at, 0), *at)},
                                                {"src", b.select(isEmpty, b.splatLike(*g, 0), *g)}},
                                               attributes);
    return failed(y) ? failure() : ctx.result((*y)[0]);
  }
  Value table = b.convert(b.iota(b.getI64Type(), sizes, 0), b.elementOf(*g)); // no constant: those would be folded
  FailureOr<SmallVector<Value>> gradient = differentiateBags(
      ctx, *g, {{"weight", table}, {"indices", *indices}, {"per_sample_weights", c.tensor("per_sample_weights")}},
      *offsets, table);
  return failed(gradient) ? failure() : ctx.result((*gradient)[0]);
}

/// _embedding_bag_per_sample_weights_backward: of the weights, in which sums are linear: they do not count.
LogicalResult bagWeights(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad"), table = c.floats("weight"), indices = c.required("indices"),
                   offsets = c.required("offsets");
  if (failed(g) || failed(table) || failed(indices) || failed(offsets))
    return failure();
  if (b.rankOf(*g) != 2 || b.rankOf(*offsets) != 1 || b.rankOf(*indices) != 1)
    return ctx.invalid("takes a matrix of gradients and vectors of indices and offsets, but got " + describe(*g) +
                       ", " + describe(*indices) + " and " + describe(*offsets));
  Value weights = b.convert(b.iota(b.getI64Type(), getSizes(*indices), 0), b.elementOf(*g)); // no constant
  FailureOr<SmallVector<Value>> gradient = differentiateBags(
      ctx, *g, {{"weight", *table}, {"indices", *indices}, {"per_sample_weights", weights}}, *offsets, weights);
  return failed(gradient) ? failure() : ctx.result((*gradient)[0]);
}

//===--- others ---------------------------------------------------------------------------------------------------===//

/// masked_scatter_backward: the gradients where the mask is true, in a row, and 0 for what was not read of the source.
LogicalResult maskedScatter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.required("grad_output"), mask = c.required("mask");
  FailureOr<Sizes> sizes = c.sizes("sizes");
  if (failed(g) || failed(mask) || failed(sizes))
    return failure();
  FailureOr<Value> fitting = ctx.broadcastOnto(*mask, getSizes(*g));
  if (failed(fitting))
    return failure();
  const Type i64 = b.getI64Type();
  const AffineExpr count = product(b.getContext(), getSizes(*g)), wanted = product(b.getContext(), *sizes);
  Value isKept = b.reshape(*fitting, {count}), flat = b.reshape(*g, {count}), ones = b.convert(isKept, i64);
  Value place = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/true, /*reverse=*/false);
  // The others go behind the end, which is cut off.
  place = b.select(isKept, place, b.broadcastTo(b.sizeValue(wanted), {count}));
  Value room = b.splat(b.elementOf(flat), {simplifySize(wanted + 1)}, 0);
  Value all = ScatterElementsOp::create(b, room.getType(), room, place, flat, 0, ReduceKindAttr());
  return ctx.result(b.reshape(b.sliceDim(all, 0, b.size(0), wanted), *sizes));
}

/// rrelu_with_noise_backward: the noise holds the slopes; without training those are all the same.
LogicalResult rrelu(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_output"), noise = c.floats("noise");
  if (failed(g) || failed(noise))
    return failure();
  const double lower = c.number("lower", 1.0 / 8), upper = c.number("upper", 1.0 / 3);
  if (!c.flag("training") || upper - lower <= 1e-6) // as PyTorch has it
    return emitLeakyRelu(c, (lower + upper) / 2);
  Value operands[] = {*g, *noise};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  return ctx.result(b.mul(operands[0], operands[1]));
}

} // namespace

void tc::populateATenBackward(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler) { onOp(type, /*sinceVersion=*/1, std::move(handler), 1); };
  const Gradient gradients[] = {
      {"avg_pool2d_backward", "avg_pool2d.default", {"self"}},
      {"avg_pool3d_backward", "avg_pool3d.default", {"self"}},
      {"gelu_backward", "gelu.default", {"self"}},
      {"silu_backward", "silu.default", {"self"}},
      {"mish_backward", "mish.default", {"self"}},
      {"logit_backward", "logit.default", {"self"}},
      {"glu_backward", "glu.default", {"self"}},
      {"softshrink_backward", "softshrink.default", {"self"}},
      {"hardshrink_backward", "hardshrink.default", {"self"}},
      {"mse_loss_backward", "mse_loss.default", {"self"}, {"target"}},
      {"smooth_l1_loss_backward", "smooth_l1_loss.default", {"self"}, {"target"}},
      {"huber_loss_backward", "huber_loss.default", {"self"}, {"target"}},
      {"multi_margin_loss_backward", "multi_margin_loss.default", {"self"}, {"target", "weight"}},
      {"multilabel_margin_loss_backward", "multilabel_margin_loss_forward.default", {"self"}, {"target"}},
      {"nll_loss_backward", "nll_loss.default", {"self"}, {"target", "weight"}, "total_weight"},
      {"nll_loss2d_backward", "nll_loss2d.default", {"self"}, {"target", "weight"}, "total_weight"},
      {"grid_sampler_2d_backward", "grid_sampler_2d.default", {"input", "grid"}},
      {"grid_sampler_3d_backward", "grid_sampler_3d.default", {"input", "grid"}},
      {"reflection_pad1d_backward", "reflection_pad1d.default", {"self"}},
      {"reflection_pad2d_backward", "reflection_pad2d.default", {"self"}},
      {"reflection_pad3d_backward", "reflection_pad3d.default", {"self"}},
      {"replication_pad1d_backward", "replication_pad1d.default", {"self"}},
      {"replication_pad2d_backward", "replication_pad2d.default", {"self"}},
      {"replication_pad3d_backward", "replication_pad3d.default", {"self"}},
  };
  for (const Gradient &gradient : gradients)
    on((Twine(gradient.backward) + ".default").str(), gradientOf(gradient));
  for (StringRef name :
       {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
        "upsample_bicubic2d", "upsample_trilinear3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"})
    on((name + "_backward.default").str(), movementOf((name + ".default").str(), "input_size"));
  on("slice_backward.default", movementOf("slice.Tensor", "input_sizes"));
  on("select_backward.default", movementOf("select.int", "input_sizes"));
  on("unfold_backward.default", movementOf("unfold.default", "input_sizes", {{"dim", "dimension"}}));
  on("diagonal_backward.default", movementOf("diagonal.default", "input_sizes"));
  on("convolution_backward.default", convolution);
  on("_adaptive_avg_pool2d_backward.default", adaptivePool("_adaptive_avg_pool2d.default", 2));
  on("_adaptive_avg_pool3d_backward.default", adaptivePool("_adaptive_avg_pool3d.default", 3));
  on("max_pool2d_with_indices_backward.default", maxPool(2));
  on("max_pool3d_with_indices_backward.default", maxPool(3));
  on("adaptive_max_pool2d_backward.default", maxPool(2));
  on("adaptive_max_pool3d_backward.default", maxPool(3));
  on("fractional_max_pool2d_backward.default", maxPool(2));
  on("fractional_max_pool3d_backward.default", maxPool(3));
  on("embedding_dense_backward.default", embedding);
  on("native_layer_norm_backward.default", layerNorm);
  on("native_group_norm_backward.default", groupNorm);
  on("native_batch_norm_backward.default",
     [](NodeContext &ctx) { return emitBatchNorm(ctx, /*mode=*/"train", /*saved=*/"save_invstd"); });
  on("batch_norm_backward.default",
     [](NodeContext &ctx) { return emitBatchNorm(ctx, /*mode=*/"update", /*saved=*/"save_var"); });
  on("_softmax_backward_data.default", softmax(/*isLog=*/false));
  on("_log_softmax_backward_data.default", softmax(/*isLog=*/true));
  on("sigmoid_backward.default",
     ofResult([](PrimBuilder &b, Value g, Value y) { return b.mul(g, b.mul(b.sub(b.splatLike(y, 1), y), y)); }));
  on("tanh_backward.default",
     ofResult([](PrimBuilder &b, Value g, Value y) { return b.mul(g, b.sub(b.splatLike(y, 1), b.mul(y, y))); }));
  on("threshold_backward.default", threshold);
  on("hardtanh_backward.default", ofOperand({"self"}, hardtanh));
  on("hardsigmoid_backward.default", ofOperand({"self"}, hardsigmoid));
  on("hardswish_backward.default", ofOperand({"self"}, hardswish));
  on("softplus_backward.default", ofOperand({"self"}, softplus));
  on("log_sigmoid_backward.default", ofOperand({"self"}, logSigmoid));
  on("soft_margin_loss_backward.default", ofOperand({"self", "target"}, softMarginLoss, /*isLoss=*/true));
  on("binary_cross_entropy_backward.default", ofOperand({"self", "target", "weight"}, crossEntropy, /*isLoss=*/true));
  on("elu_backward.default", elu);
  on("leaky_relu_backward.default", leakyRelu);
  on("_prelu_kernel_backward.default", prelu);
  on("rrelu_with_noise_backward.default", rrelu);
  on("_cdist_backward.default", rowDistances);
  on("_pdist_backward.default", pairDistances);
  on("_fused_rms_norm_backward.default", rmsNorm);
  on("_weight_norm_interface_backward.default", weightNorm);
  on("_embedding_bag_backward.default", embeddingBag);
  on("_embedding_bag_per_sample_weights_backward.default", bagWeights);
  on("masked_scatter_backward.default", maskedScatter);
  on("native_dropout_backward.default", dropout);
}
