//===- ATen.cpp - meaning of PyTorch's ATen operators -------------------------------------------------------------===//
//
// The functional operators that torch.export leaves in a program. Operands carry the names of the operator's schema in
// the attribute `arg_names`. Source: the native function schemas of PyTorch
// (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

#include <utility>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// x w^T + bias.
FailureOr<Value> linear(Call &c, Value x, Value w, Value bias) {
  PrimBuilder &b = c.b;
  int64_t rank = b.rankOf(x);
  if (b.elementOf(x) != b.elementOf(w))
    return c.ctx.invalid("operands " + describe(x) + " and " + describe(w) + " differ in element type");
  Sizes sizes = getSizes(x);
  sizes.back() = getSizes(w)[1];
  FailureOr<Value> rows = c.ctx.castSizes(x, sizes);
  if (failed(rows))
    return failure();
  Value y = DotGeneralOp::create(b, *rows, w, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{rank - 1},
                                 ArrayRef<int64_t>{1});
  if (!bias)
    return y;
  if (b.elementOf(bias) != b.elementOf(y))
    return c.ctx.invalid("bias " + describe(bias) + " is not of the operands' element type");
  FailureOr<Value> spread = c.ctx.broadcastOnto(bias, getSizes(y));
  if (failed(spread))
    return failure();
  return b.add(y, *spread);
}

/// An operand that is a tensor or a number, as a tensor of the other one's element type.
template <typename Op> LogicalResult arithmetic(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type element = ctx.b.elementOf(*self);
  if (!ctx.b.isFloat(*self) && !isa<IntegerType>(element))
    return ctx.unsupported("of " + describe(*self) + " is not supported");
  Value other = c.tensor("other");
  // Of integers PyTorch makes f32 to divide them, and beside a number that is none.
  bool isDivision = std::is_same_v<Op, DivOp>, beside = !other && isa_and_nonnull<FloatAttr>(ctx.attr("other"));
  if (isa<IntegerType>(element) && (isDivision || beside)) {
    self = ctx.b.convert(*self, ctx.b.getF32Type());
    if (other && isa<IntegerType>(ctx.b.elementOf(other)))
      other = ctx.b.convert(other, ctx.b.getF32Type());
  }
  if (ctx.b.elementOf(*self).isInteger(1))
    return ctx.unsupported("of bool is not supported");
  if (!other)
    other = ctx.b.scalar(ctx.b.elementOf(*self), c.number("other", 0));
  if (ctx.b.elementOf(other) != ctx.b.elementOf(*self)) {
    // A 0-D tensor takes the other's type; all else must agree, as torch.export has made conversions explicit.
    if (ctx.b.rankOf(other) == 0)
      other = ctx.b.convert(other, ctx.b.elementOf(*self));
    else
      return ctx.unsupported("of two element types is not supported: " + describe(*self) + " and " + describe(other));
  }
  if (double alpha = c.number("alpha", 1); alpha != 1)
    other = ctx.b.binary<MulOp>(other, alpha);
  Value operands[] = {*self, other};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  return ctx.result(ctx.b.binary<Op>(operands[0], operands[1]));
}

template <typename Op> LogicalResult unary(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self", /*orIntegers=*/true);
  return failed(self) ? failure() : ctx.result(ctx.b.unary<Op>(*self));
}

/// Of integers, too: what it gives is of their type. `ofIntegers`: whether it changes them.
template <typename Op, bool ofIntegers> LogicalResult unaryOfNumbers(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (ctx.b.isFloat(*self))
    return ctx.result(ctx.b.unary<Op>(*self));
  if (!isa<IntegerType>(ctx.b.elementOf(*self)) || ctx.b.elementOf(*self).isInteger(1))
    return ctx.unsupported("of " + describe(*self) + " is not supported");
  return ctx.result(ofIntegers ? ctx.b.unary<Op>(*self) : *self);
}

LogicalResult viewAs(NodeContext &ctx, StringRef name) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> sizes = c.sizes(name);
  if (failed(self) || failed(sizes))
    return failure();
  AffineExpr known = ctx.b.size(1);
  std::optional<size_t> inferred;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (getConstantSize(size) != -1)
      known = known * size;
    else if (std::exchange(inferred, i))
      return ctx.invalid("argument \"" + name + "\" leaves two sizes open");
  }
  if (inferred) {
    known = simplifySize(known);
    if (getConstantSize(known) == 0)
      return ctx.invalid("argument \"" + name + "\" leaves a size open beside one of 0");
    (*sizes)[*inferred] = ctx.divide(ctx.countElements(*self), known);
  }
  FailureOr<Value> view = ctx.reshape(*self, *sizes);
  return failed(view) ? failure() : ctx.result(*view);
}

LogicalResult swapDims(NodeContext &ctx, int64_t dim0, int64_t dim1) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  int64_t rank = ctx.b.rankOf(*self);
  if (rank < 2)
    return ctx.result(*self);
  FailureOr<int64_t> a = ctx.axis(dim0, rank), z = ctx.axis(dim1, rank);
  if (failed(a) || failed(z))
    return failure();
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[*a], permutation[*z]);
  return ctx.result(ctx.b.transpose(*self, permutation));
}

template <ReduceKind kind, bool isMean> LogicalResult reduceDims(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = isMean ? c.floats("self") : c.required("self");
  if (failed(self))
    return failure();
  // Sums of integers are of int64.
  if (isa<IntegerType>(ctx.b.elementOf(*self)) && kind == ReduceKind::Sum)
    self = ctx.b.convert(*self, ctx.b.getI64Type());
  if (!ctx.b.isFloat(*self) && !isa<IntegerType>(ctx.b.elementOf(*self)))
    return ctx.unsupported("of " + describe(*self) + " is not supported");
  int64_t rank = ctx.b.rankOf(*self);
  SmallVector<int64_t> dims = c.integers("dim").value_or(SmallVector<int64_t>{});
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  FailureOr<SmallVector<int64_t>> axes = ctx.axes(dims, rank);
  if (failed(axes))
    return failure();
  bool keep = c.flag("keepdim");
  return ctx.result(isMean ? ctx.b.mean(*self, *axes, keep) : ctx.b.reduce(kind, *self, *axes, keep));
}

LogicalResult softmax(NodeContext &ctx, bool log) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), ctx.b.rankOf(*self));
  if (failed(axis))
    return failure();
  return ctx.result(SoftmaxOp::create(ctx.b, self->getType(), *self, *axis, log));
}

LogicalResult layerNorm(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = c.floats("input");
  std::optional<SmallVector<int64_t>> shape = c.integers("normalized_shape");
  if (failed(x) || !shape || shape->empty() || int64_t(shape->size()) > ctx.b.rankOf(*x))
    return ctx.invalid("normalized_shape does not fit the input");
  int64_t rank = ctx.b.rankOf(*x);
  for (auto [size, normalized] : llvm::zip(llvm::reverse(getSizes(*x)), llvm::reverse(*shape)))
    if (failed(ctx.requireEqual(size, ctx.b.size(normalized), "an input of the normalized_shape")))
      return failure();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank - shape->size(), rank));
  Value y = ctx.b.norm(*x, dims, c.number("eps", 1e-5), /*rms=*/false);
  for (StringRef name : {"weight", "bias"}) {
    Value factor = c.tensor(name);
    if (!factor)
      continue;
    if (ctx.b.elementOf(factor) != ctx.b.elementOf(y))
      return ctx.unsupported("of two element types is not supported: " + describe(*x) + " and " + describe(factor));
    FailureOr<Value> spread = ctx.broadcastOnto(factor, getSizes(y));
    if (failed(spread))
      return failure();
    y = name == "weight" ? ctx.b.mul(y, *spread) : ctx.b.add(y, *spread);
  }
  return ctx.result(y);
}

LogicalResult gelu(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  return ctx.result(emitGelu(ctx.b, *self, ctx.getString("approximate", "none") == "tanh"));
}

LogicalResult attention(NodeContext &ctx) {
  Call c(ctx);
  Value q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value"), mask = c.tensor("attn_mask");
  if (!q || !k || !v)
    return ctx.invalid("needs query, key and value");
  PrimBuilder &b = ctx.b;
  int64_t rank = b.rankOf(q);
  if (rank < 3 || b.rankOf(k) != rank || b.rankOf(v) != rank || c.flag("enable_gqa") || c.number("dropout_p", 0) != 0)
    return ctx.unsupported("with grouped heads, dropout or operands of different ranks is not supported");
  if (!b.isFloat(q) || b.elementOf(k) != b.elementOf(q) || b.elementOf(v) != b.elementOf(q))
    return ctx.invalid("query, key and value must be floats of one type, but are " + describe(q) + ", " + describe(k) +
                       " and " + describe(v));
  // Leading dims are alike, keys are as deep as queries, and there are as many values as keys.
  Sizes keys(SizesRef(getSizes(q)).drop_back(2)), rows(keys);
  keys.append({getSizes(k)[rank - 2], getSizes(q).back()});
  rows.append({getSizes(k)[rank - 2], getSizes(v).back()});
  FailureOr<Value> fittingKeys = ctx.castSizes(k, keys), fittingValues = ctx.castSizes(v, rows);
  if (failed(fittingKeys) || failed(fittingValues))
    return failure();
  k = *fittingKeys;
  v = *fittingValues;
  std::optional<int64_t> depth = getConstantSize(getSizes(q).back());
  if (!depth)
    return ctx.unsupported("with an unknown head size is not supported");
  double scale = c.number("scale", 1 / std::sqrt(double(*depth)));
  Sizes sizes = getSizes(q), scores = getSizes(q);
  sizes.back() = getSizes(v).back();
  scores.back() = getSizes(k)[rank - 2];
  if (mask) {
    if (b.elementOf(mask).isInteger(1)) {
      Value none = b.splat(b.elementOf(q), getSizes(mask), -INFINITY),
            zero = b.splat(b.elementOf(q), getSizes(mask), 0);
      mask = b.select(mask, zero, none);
    }
    if (b.elementOf(mask) != b.elementOf(q))
      return ctx.invalid("attn_mask " + describe(mask) + " is neither of bools nor of the query's type");
    FailureOr<Value> spread = ctx.broadcastOnto(mask, scores);
    if (failed(spread))
      return failure();
    mask = *spread;
  }
  return ctx.result(AttentionOp::create(b, makeType(b.elementOf(q), sizes), q, k, v, mask, b.getF64FloatAttr(scale),
                                        c.flag("is_causal") ? b.getUnitAttr() : UnitAttr(), /*zeroNan=*/UnitAttr()));
}

LogicalResult unbind(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (failed(
          ctx.requireEqual(getSizes(*self)[*axis], ctx.b.size(ctx.numResults()), "a result for each index of its dim")))
    return failure();
  for (size_t i = 0; i < ctx.numResults(); ++i)
    if (failed(ctx.set(i, ctx.b.take(*self, *axis, i))))
      return failure();
  return success();
}

LogicalResult cat(NodeContext &ctx) {
  Call c(ctx);
  SmallVector<Value> tensors = c.tensors("tensors");
  if (tensors.empty())
    return ctx.invalid("needs a tensor");
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(tensors[0]));
  if (failed(axis))
    return failure();
  for (Value &v : tensors) {
    if (ctx.b.elementOf(v) != ctx.b.elementOf(tensors[0]) || ctx.b.rankOf(v) != ctx.b.rankOf(tensors[0]))
      return ctx.invalid("tensors differ in rank or element type: " + describe(tensors[0]) + " and " + describe(v));
    Sizes sizes = getSizes(tensors[0]);
    sizes[*axis] = getSizes(v)[*axis];
    FailureOr<Value> fitting = ctx.castSizes(v, sizes);
    if (failed(fitting))
      return failure();
    v = *fitting;
  }
  return ctx.result(ctx.b.concat(tensors, *axis));
}

LogicalResult convert(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  auto type = dyn_cast_or_null<TypeAttr>(ctx.attr("dtype"));
  if (type && !isa<FloatType, IntegerType>(type.getValue()))
    return ctx.unsupported("to complex numbers is not supported");
  return ctx.result(type ? ctx.b.convert(*self, type.getValue()) : *self);
}

LogicalResult same(NodeContext &ctx) {
  Call c(ctx);
  Value self = c.tensor("self") ? c.tensor("self") : c.tensor("input");
  return self ? ctx.result(self) : ctx.invalid("needs an operand");
}

} // namespace

void tc::populateATen(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("add.Tensor", arithmetic<AddOp>);
  on("add.Scalar", arithmetic<AddOp>);
  on("sub.Tensor", arithmetic<SubOp>);
  on("mul.Tensor", arithmetic<MulOp>);
  on("mul.Scalar", arithmetic<MulOp>);
  on("div.Tensor", arithmetic<DivOp>);
  on("div.Scalar", arithmetic<DivOp>);
  on("maximum.default", arithmetic<MaxOp>, 2);
  on("minimum.default", arithmetic<MinOp>, 2);
  on("abs.default", unaryOfNumbers<AbsOp, true>);
  on("neg.default", unaryOfNumbers<NegOp, true>);
  on("exp.default", unary<ExpOp>);
  on("log.default", unary<LogOp>);
  on("sqrt.default", unary<SqrtOp>);
  on("rsqrt.default", unary<RsqrtOp>);
  on("reciprocal.default", unary<ReciprocalOp>);
  on("sigmoid.default", unary<LogisticOp>);
  on("tanh.default", unary<TanhOp>);
  on("erf.default", unary<ErfOp>);
  on("sin.default", unary<SinOp>);
  on("cos.default", unary<CosOp>);
  on("floor.default", unaryOfNumbers<FloorOp, false>);
  on("ceil.default", unaryOfNumbers<CeilOp, false>);
  for (StringRef name : {"relu.default", "relu_.default"})
    on(name, [](NodeContext &ctx) {
      Call c(ctx);
      FailureOr<Value> self = c.required("self");
      if (failed(self))
        return failure();
      if (ctx.b.elementOf(*self).isInteger(1))
        return ctx.invalid("takes no bools");
      return ctx.result(ctx.b.binary<MaxOp>(*self, 0.0));
    });
  on("silu.default", [](NodeContext &ctx) {
    Call c(ctx);
    FailureOr<Value> self = c.floats("self");
    return failed(self) ? failure() : ctx.result(ctx.b.mul(*self, ctx.b.unary<LogisticOp>(*self)));
  });
  on("gelu.default", gelu);
  on(
      "linear.default",
      [](NodeContext &ctx) -> LogicalResult {
        Call c(ctx);
        FailureOr<Value> x = c.required("input"), w = c.required("weight");
        if (failed(x) || failed(w))
          return failure();
        FailureOr<Value> y = linear(c, *x, *w, c.tensor("bias"));
        return failed(y) ? failure() : ctx.result(*y);
      },
      2);
  for (StringRef name : {"matmul.default", "mm.default", "bmm.default"})
    on(
        name,
        [](NodeContext &ctx) -> LogicalResult {
          Call c(ctx);
          Value x = c.tensor("self"), y = c.tensor("other") ? c.tensor("other") : c.tensor("mat2");
          if (!x || !y)
            return ctx.invalid("needs two operands");
          FailureOr<Value> z = emitMatMul(ctx, x, y);
          return failed(z) ? failure() : ctx.result(*z);
        },
        2);
  on("layer_norm.default", layerNorm);
  on("softmax.int", [](NodeContext &ctx) { return softmax(ctx, /*log=*/false); });
  on("_softmax.default", [](NodeContext &ctx) { return softmax(ctx, /*log=*/false); });
  on("log_softmax.int", [](NodeContext &ctx) { return softmax(ctx, /*log=*/true); });
  on("scaled_dot_product_attention.default", attention, 3);
  for (StringRef name : {"view.default", "_unsafe_view.default"})
    on(name, [](NodeContext &ctx) { return viewAs(ctx, "size"); });
  on("reshape.default", [](NodeContext &ctx) { return viewAs(ctx, "shape"); });
  on("permute.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    std::optional<SmallVector<int64_t>> dims = c.integers("dims");
    if (failed(self) || !dims)
      return ctx.invalid("needs constant dims");
    SmallVector<int64_t> permutation;
    for (int64_t dim : *dims) {
      FailureOr<int64_t> axis = ctx.axis(dim, dims->size());
      if (failed(axis) || llvm::is_contained(permutation, *axis))
        return ctx.invalid("dims are no permutation");
      permutation.push_back(*axis);
    }
    return ctx.result(ctx.b.transpose(*self, permutation));
  });
  on("transpose.int", [](NodeContext &ctx) {
    Call c(ctx);
    return swapDims(ctx, c.integer("dim0", 0), c.integer("dim1", 1));
  });
  on("t.default", [](NodeContext &ctx) { return swapDims(ctx, 0, 1); });
  on("unbind.int", unbind);
  on("select.int", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self));
    if (failed(axis))
      return failure();
    int64_t index = c.integer("index", 0);
    std::optional<int64_t> size = getConstantSize(getSizes(*self)[*axis]);
    if (!size)
      return ctx.unsupported("along a dim of unknown size is not supported");
    if (index < -*size || index >= *size)
      return ctx.invalid("index " + Twine(index) + " is out of range for " + describe(*self));
    return ctx.result(ctx.b.take(*self, *axis, index < 0 ? index + *size : index));
  });
  on("unsqueeze.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self) + 1);
    return failed(axis) ? failure() : ctx.result(ctx.b.unsqueeze(*self, *axis));
  });
  on("cat.default", cat);
  on("mean.dim", reduceDims<ReduceKind::Sum, true>);
  on("mean.default", reduceDims<ReduceKind::Sum, true>);
  on("sum.dim_IntList", reduceDims<ReduceKind::Sum, false>);
  on("sum.default", reduceDims<ReduceKind::Sum, false>);
  on("amax.default", reduceDims<ReduceKind::Max, false>);
  on("amin.default", reduceDims<ReduceKind::Min, false>);
  for (StringRef name : {"to.dtype", "_to_copy.default"})
    on(name, convert);
  for (StringRef name : {"contiguous.default", "clone.default", "alias.default", "detach.default"})
    on(name, same);
  on("dropout.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    if (c.flag("train") && c.number("p", 0.5) != 0)
      return ctx.unsupported("in training is not supported; export the model after model.eval()");
    return same(ctx);
  });
}
