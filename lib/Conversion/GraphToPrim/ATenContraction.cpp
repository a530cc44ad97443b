//===- ATenContraction.cpp - matrix products of ATen --------------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
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

/// Operands of one element type that products are defined on, by their names.
FailureOr<SmallVector<Value>> factors(Call &c, ArrayRef<StringRef> names, bool orBools = false,
                                      bool orComplex = false) {
  SmallVector<Value> all;
  for (StringRef name : names) {
    FailureOr<Value> v = c.required(name);
    if (failed(v))
      return failure();
    const Type element = c.b.elementOf(*v);
    if ((!isa<IntegerType, FloatType>(element) && !(orComplex && isa<ComplexType>(element))) ||
        (element.isInteger(1) && !orBools))
      return c.ctx.unsupported("of " + describe(*v) + " is not supported; convert it to numbers");
    if (!all.empty() && element != c.b.elementOf(all[0]))
      return c.ctx.invalid("operands differ in element type: " + describe(all[0]) + " and " + describe(*v));
    all.push_back(*v);
  }
  return all;
}

/// A product of operands that is linear in each: of complex ones by the products of their parts.
FailureOr<Value> productByParts(NodeContext &ctx, ArrayRef<Value> operands,
                                llvm::function_ref<FailureOr<Value>(ArrayRef<Value>)> product) {
  PrimBuilder &b = ctx.b;
  SmallVector<unsigned> complex;
  for (auto [i, v] : llvm::enumerate(operands))
    if (b.isComplex(v))
      complex.push_back(i);
  if (complex.empty())
    return product(operands);
  constexpr size_t kMostComplex = 4; // the number of products doubles with each
  if (complex.size() > kMostComplex)
    return ctx.unsupported("of more than " + Twine(kMostComplex) +
                           " complex operands is not supported; multiply some "
                           "of them before");
  SmallVector<std::pair<Value, Value>> parts;
  for (unsigned i : complex)
    parts.push_back(splitComplex(b, operands[i]));
  Value sums[2]; // of the real and of the imaginary terms
  for (unsigned choice = 0; choice < 1u << complex.size(); ++choice) {
    SmallVector<Value> chosen(operands);
    for (auto [k, i] : llvm::enumerate(complex))
      chosen[i] = choice >> k & 1 ? parts[k].second : parts[k].first;
    FailureOr<Value> term = product(chosen);
    if (failed(term))
      return failure();
    const unsigned power = unsigned(llvm::popcount(choice)); // of i
    Value &sum = sums[power % 2];
    const bool isNegative = power % 4 >= 2;
    sum = !sum ? (isNegative ? b.unary<NegOp>(*term) : *term) : isNegative ? b.sub(sum, *term) : b.add(sum, *term);
  }
  return joinComplex(b, sums[0], sums[1]);
}

LogicalResult give(NodeContext &ctx, FailureOr<Value> value) { return failed(value) ? failure() : ctx.result(*value); }

/// x w^T + bias, where w is a matrix, or a vector, which the result has no dim of.
FailureOr<Value> linear(Call &c, Value x, Value w, Value bias) {
  PrimBuilder &b = c.b;
  int64_t rank = b.rankOf(x);
  Sizes sizes = getSizes(x);
  sizes.back() = getSizes(w).back();
  FailureOr<Value> rows = c.ctx.castSizes(x, sizes);
  if (failed(rows))
    return failure();
  Value y = DotGeneralOp::create(b, *rows, w, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{rank - 1},
                                 ArrayRef<int64_t>{b.rankOf(w) - 1});
  if (!bias)
    return y;
  if (b.elementOf(bias) != b.elementOf(y))
    return c.ctx.invalid("bias " + describe(bias) + " is not of the operands' element type");
  FailureOr<Value> spread = c.ctx.broadcastOnto(bias, getSizes(y));
  if (failed(spread))
    return failure();
  return b.add(y, *spread);
}

/// A product of two named operands, of these ranks (0: any).
NodeHandler productOf(StringRef lhs, StringRef rhs, int64_t lhsRank, int64_t rhsRank) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<SmallVector<Value>> v = factors(c, {lhs, rhs}, /*orBools=*/false, /*orComplex=*/true);
    if (failed(v))
      return failure();
    for (auto [value, rank] : {std::pair((*v)[0], lhsRank), std::pair((*v)[1], rhsRank)})
      if (rank && ctx.b.rankOf(value) != rank)
        return ctx.invalid("takes an operand of rank " + Twine(rank) + ", but got " + describe(value));
    return give(ctx,
                productByParts(ctx, *v, [&](ArrayRef<Value> parts) { return emitMatMul(ctx, parts[0], parts[1]); }));
  };
}

/// beta * self + alpha * product, where self broadcasts, and is not read where beta is 0.
FailureOr<Value> addScaled(Call &c, Value product) {
  PrimBuilder &b = c.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  const Type element = b.elementOf(product);
  if (element.isInteger(1)) {
    alpha = alpha != 0;
    beta = beta != 0;
  } else if (isa<IntegerType>(element)) { // converted to the elements' type
    alpha = std::trunc(alpha);
    beta = std::trunc(beta);
  }
  if (element.isInteger(1) && alpha == 0)
    product = b.splatLike(product, 0);
  else if (alpha != 1)
    product = b.binary<MulOp>(product, alpha);
  FailureOr<Value> spread = c.ctx.broadcastOnto(*self, getSizes(product));
  if (failed(spread) || beta == 0)
    return failed(spread) ? FailureOr<Value>(failure()) : product;
  if (b.elementOf(*self) != b.elementOf(product))
    return c.ctx.invalid("self " + describe(*self) + " is not of the factors' element type");
  Value term = beta == 1 ? *spread : b.binary<MulOp>(*spread, beta);
  return element.isInteger(1) ? b.binary<OrOp>(term, product) : b.add(term, product);
}

/// The product of elements; of bools, whether both are true.
Value times(PrimBuilder &b, Value x, Value y) {
  return b.elementOf(x).isInteger(1) ? b.binary<AndOp>(x, y) : b.mul(x, y);
}

/// addmm, addmv, baddbmm; with `isSummed`, addbmm.
NodeHandler addProduct(StringRef lhs, StringRef rhs, int64_t rank, bool isVector, bool isSummed = false) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<SmallVector<Value>> v = factors(c, {lhs, rhs});
    if (failed(v))
      return failure();
    if (ctx.b.rankOf((*v)[0]) != rank || ctx.b.rankOf((*v)[1]) != (isVector ? 1 : rank))
      return ctx.invalid("takes factors of rank " + Twine(rank) + (isVector ? " and 1" : "") + ", but got " +
                         describe((*v)[0]) + " and " + describe((*v)[1]));
    FailureOr<Value> product = emitMatMul(ctx, (*v)[0], (*v)[1]);
    if (failed(product))
      return failure();
    if (isSummed)
      product = ctx.b.reduce(ReduceKind::Sum, *product, {0});
    return give(ctx, addScaled(c, *product));
  };
}

/// The products of each element of a vector with each of another.
FailureOr<Value> outer(NodeContext &ctx, Value x, Value y) {
  PrimBuilder &b = ctx.b;
  if (b.rankOf(x) != 1 || b.rankOf(y) != 1)
    return ctx.invalid("takes two vectors, but got " + describe(x) + " and " + describe(y));
  const Sizes sizes{getSizes(x)[0], getSizes(y)[0]};
  return times(b, b.broadcastInDims(x, sizes, {0}), b.broadcastInDims(y, sizes, {1}));
}

FailureOr<Value> einsum(NodeContext &ctx, StringRef equation, ArrayRef<Value> operands) {
  NamedAttribute attr(ctx.b.getStringAttr("equation"), ctx.b.getStringAttr(equation));
  FailureOr<SmallVector<Value>> y = ctx.emitOperator("Einsum", 12, operands, attr);
  return failed(y) ? FailureOr<Value>(failure()) : y->front();
}

LogicalResult tensordot(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> v = factors(c, {"self", "other"});
  if (failed(v))
    return failure();
  Value lhs = (*v)[0], rhs = (*v)[1];
  FailureOr<SmallVector<int64_t>> of =
                                      ctx.axes(c.integers("dims_self").value_or(SmallVector<int64_t>{}), b.rankOf(lhs)),
                                  with = ctx.axes(c.integers("dims_other").value_or(SmallVector<int64_t>{}),
                                                  b.rankOf(rhs));
  if (failed(of) || failed(with))
    return failure();
  if (of->size() != with->size())
    return ctx.invalid("dims_self and dims_other differ in length");
  for (auto [i, j] : llvm::zip(*of, *with)) {
    const bool isOne = getConstantSize(getSizes(lhs)[i]) == 1, isOtherOne = getConstantSize(getSizes(rhs)[j]) == 1;
    if (isOne && !isOtherOne) // a dim of 1 stands for all of the other
      rhs = b.reduce(ReduceKind::Sum, rhs, {j}, /*keepDims=*/true);
    else if (isOtherOne && !isOne)
      lhs = b.reduce(ReduceKind::Sum, lhs, {i}, /*keepDims=*/true);
    else if (failed(unifySizes(ctx, lhs, i, rhs, j, "contracted sizes")))
      return failure();
  }
  return ctx.result(DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, *of, *with));
}

/// Products of matrices in the cheapest order; the first and the last may be vectors.
LogicalResult multiDot(NodeContext &ctx, StringRef name) {
  Call c(ctx);
  SmallVector<Value> all = c.tensors(name);
  if (all.empty() || all.size() > 25)
    return ctx.unsupported("of " + Twine(all.size()) + " matrices is not supported; supported are 1 to 25");
  std::string equation, result;
  for (auto [i, v] : llvm::enumerate(all)) {
    const bool isFirst = i == 0, isLast = i + 1 == all.size();
    const char left = char('a' + i), right = char('b' + i);
    const int64_t rank = ctx.b.rankOf(v);
    if (rank != 2 && !(rank == 1 && (isFirst || isLast)))
      return ctx.invalid("takes matrices, and vectors at its ends, but got " + describe(v));
    equation += isFirst ? "" : ",";
    if (rank == 2 || !isFirst)
      equation += left;
    if (rank == 2 || isFirst)
      equation += right;
    if (isFirst && rank == 2)
      result += left;
    if (isLast && rank == 2)
      result += right;
  }
  return give(ctx, einsum(ctx, equation + "->" + result, all));
}

/// Rows of x [S, K] times the matrix [K, N] of their group: rows up to offs[0] are of group 0, those up to offs[1] of
/// group 1, ..; rows of none give 0.
LogicalResult groupedProduct(NodeContext &ctx, StringRef lhs, StringRef rhs) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> v = factors(c, {lhs, rhs});
  FailureOr<Value> offsets = c.required("offs");
  if (failed(v) || failed(offsets))
    return failure();
  Value x = (*v)[0], w = (*v)[1];
  if (b.rankOf(x) != 2 || b.rankOf(w) != 3 || b.rankOf(*offsets) != 1 || c.tensor("bias") || ctx.hasAttr("out_dtype"))
    return ctx.unsupported(
        "of " + describe(x) + " and " + describe(w) +
        " is not supported; supported are rows [S, K] and matrices [G, K, N], with offs, and without "
        "bias and out_dtype");
  const Sizes rows = getSizes(x), matrices = getSizes(w);
  std::optional<int64_t> groups = getConstantSize(matrices[0]);
  constexpr int64_t kMostGroups = 1024;
  if (!groups || *groups > kMostGroups)
    return ctx.unsupported("of a number of groups that is not known, or above " + Twine(kMostGroups) +
                           ", is not supported");
  FailureOr<Value> ends = ctx.castSizes(b.convert(*offsets, b.getI64Type()), {matrices[0]});
  if (failed(ends) || failed(unifySizes(ctx, x, 1, w, 1, "inner sizes")))
    return failure();
  SmallVector<Value> products;
  Value start = b.scalar(b.getI64Type(), 0);
  AffineExpr count = b.size(0);
  for (int64_t group = 0; group < *groups; ++group) {
    Value end = b.take(*ends, 0, group);
    const AffineExpr size = b.bindSymbol("rows", b.binary<MaxOp>(b.sub(end, start), 0));
    Value at = b.add(b.iota(b.getI64Type(), {size}, 0), b.broadcastTo(start, {size}));
    products.push_back(DotGeneralOp::create(b, GatherOp::create(b, x, at, 0), b.take(w, 0, group), ArrayRef<int64_t>{},
                                            ArrayRef<int64_t>{}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0}));
    start = end;
    count = simplifySize(count + size);
  }
  const Sizes result{rows[0], matrices[2]};
  if (products.empty())
    return ctx.result(b.splat(b.elementOf(x), result, 0));
  if (failed(ctx.require(CompareKind::LE, count, rows[0], "offs within the rows")))
    return failure();
  Value all = b.concat(products, 0);
  return ctx.result(b.pad(all, b.scalar(b.elementOf(x), 0), Sizes(2, b.size(0)), result));
}

} // namespace

void tc::populateATenContraction(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 2) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("linear.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<SmallVector<Value>> v = factors(c, {"input", "weight"});
    return failed(v) ? failure() : give(ctx, linear(c, (*v)[0], (*v)[1], c.tensor("bias")));
  });
  on("matmul.default", productOf("self", "other", 0, 0));
  on("linalg_matmul.default", productOf("self", "other", 0, 0));
  on("mm.default", productOf("self", "mat2", 2, 2));
  on("bmm.default", productOf("self", "mat2", 3, 3));
  on("mv.default", productOf("self", "vec", 2, 1));
  onOp.takeComplex(ComplexUse::Moved,
                   {"matmul.default", "linalg_matmul.default", "mm.default", "bmm.default", "mv.default"});
  on("inner.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<SmallVector<Value>> v = factors(c, {"self", "other"});
    if (failed(v))
      return failure();
    Value x = (*v)[0], y = (*v)[1];
    const int64_t rx = b.rankOf(x), ry = b.rankOf(y);
    if (rx == 0 || ry == 0)
      return ctx.result(b.mul(b.broadcastTo(x, getSizes(ry ? y : x)), b.broadcastTo(y, getSizes(ry ? y : x))));
    if (failed(unifySizes(ctx, x, rx - 1, y, ry - 1, "last sizes")))
      return failure();
    return ctx.result(DotGeneralOp::create(b, x, y, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{rx - 1},
                                           ArrayRef<int64_t>{ry - 1}));
  });
  on("addmm.default", addProduct("mat1", "mat2", 2, /*isVector=*/false), 3);
  on("addmv.default", addProduct("mat", "vec", 2, /*isVector=*/true), 3);
  on("baddbmm.default", addProduct("batch1", "batch2", 3, /*isVector=*/false), 3);
  on("addbmm.default", addProduct("batch1", "batch2", 3, /*isVector=*/false, /*isSummed=*/true), 3);
  on(
      "addr.default",
      [](NodeContext &ctx) -> LogicalResult {
        Call c(ctx);
        FailureOr<SmallVector<Value>> v = factors(c, {"vec1", "vec2"}, /*orBools=*/true);
        if (failed(v))
          return failure();
        FailureOr<Value> product = outer(ctx, (*v)[0], (*v)[1]);
        return failed(product) ? failure() : give(ctx, addScaled(c, *product));
      },
      3);
  on(
      "bilinear.default",
      [](NodeContext &ctx) -> LogicalResult {
        Call c(ctx);
        FailureOr<SmallVector<Value>> v = factors(c, {"input1", "input2", "weight"});
        if (failed(v))
          return failure();
        FailureOr<Value> y = einsum(ctx, "...i,oij,...j->...o", {(*v)[0], (*v)[2], (*v)[1]});
        Value bias = c.tensor("bias");
        if (failed(y) || !bias)
          return give(ctx, y);
        FailureOr<Value> spread = ctx.broadcastOnto(bias, getSizes(*y));
        return failed(spread) ? failure() : ctx.result(ctx.b.add(*y, *spread));
      },
      3);
  on(
      "einsum.default",
      [](NodeContext &ctx) -> LogicalResult {
        Call c(ctx);
        // The order that is given with the node is a hint; tc chooses its own.
        return give(ctx, productByParts(ctx, c.tensors("tensors"), [&](ArrayRef<Value> parts) {
                      return einsum(ctx, ctx.getString("equation", ""), parts);
                    }));
      },
      1);
  onOp.takeComplex(ComplexUse::Moved, {"einsum.default"});
  on("tensordot.default", tensordot);
  on("chain_matmul.default", [](NodeContext &ctx) { return multiDot(ctx, "matrices"); }, 1);
  on("linalg_multi_dot.default", [](NodeContext &ctx) { return multiDot(ctx, "tensors"); }, 1);
  on("linalg_vecdot.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<SmallVector<Value>> v = factors(c, {"x", "y"});
    if (failed(v))
      return failure();
    if (failed(ctx.broadcastTogether(*v)))
      return failure();
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), ctx.b.rankOf((*v)[0]));
    if (failed(axis))
      return failure();
    return ctx.result(ctx.b.reduce(ReduceKind::Sum, ctx.b.mul((*v)[0], (*v)[1]), {*axis}));
  });
  on("_grouped_mm.default", [](NodeContext &ctx) { return groupedProduct(ctx, "self", "mat2"); }, 3);
}

void tc::populateTransformers(OpRegistrar &onOp) {
  onOp(
      "grouped_mm_fallback.default", /*sinceVersion=*/1,
      [](NodeContext &ctx) { return groupedProduct(ctx, "input", "weight"); }, 3);
}
