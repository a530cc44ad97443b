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

/// The groups of a grouped product: group i has the elements of `dim` from offs[i - 1], or 0, up to offs[i].
struct Group {
  Value start; ///< 0-D i64
  AffineExpr size;
};

/// As many groups as there are offsets, within `extent` elements.
FailureOr<SmallVector<Group>> readGroups(Call &c, AffineExpr extent) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  FailureOr<Value> offsets = c.required("offs");
  if (failed(offsets))
    return failure();
  if (b.rankOf(*offsets) != 1)
    return LogicalResult(ctx.invalid("takes a vector as offs, but got " + describe(*offsets)));
  std::optional<int64_t> groups = getConstantSize(getSizes(*offsets)[0]);
  constexpr int64_t kMostGroups = 1024;
  if (!groups || *groups > kMostGroups)
    return LogicalResult(ctx.unsupported("of a number of groups that is not known, or above " + Twine(kMostGroups) +
                                         ", is not supported"));
  Value ends = b.convert(*offsets, b.getI64Type()), start = b.scalar(b.getI64Type(), 0);
  SmallVector<Group> all;
  AffineExpr count = b.size(0);
  for (int64_t group = 0; group < *groups; ++group) {
    Value end = b.take(ends, 0, group);
    const AffineExpr size = b.bindSymbol("rows", b.binary<MaxOp>(b.sub(end, start), 0));
    all.push_back({start, size});
    start = end;
    count = simplifySize(count + size);
  }
  if (failed(ctx.require(CompareKind::LE, count, extent, "offs within the rows")))
    return failure();
  return all;
}

/// The elements of a group along `dim`.
Value takeGroup(PrimBuilder &b, Value v, const Group &group, int64_t dim) {
  Value at = b.add(b.iota(b.getI64Type(), {group.size}, 0), b.broadcastTo(group.start, {group.size}));
  return GatherOp::create(b, v, at, dim);
}

/// Rows of x [S, K] times the matrix [K, N] of their group; or columns: the matrix [M, K] of their group times those of
/// y [K, S]. What is in no group gives 0.
FailureOr<Value> emitGroupsOfRows(Call &c, Value x, Value y) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  const bool hasRows = b.rankOf(x) == 2; // else columns of y
  const int64_t grouped = hasRows ? 0 : 1;
  Value &flat = hasRows ? x : y, &matrices = hasRows ? y : x;
  if (failed(unifySizes(ctx, x, b.rankOf(x) - 1, y, b.rankOf(y) - 2, "inner sizes")))
    return failure();
  FailureOr<SmallVector<Group>> groups = readGroups(c, getSizes(flat)[grouped]);
  if (failed(groups) ||
      failed(ctx.requireEqual(b.size(int64_t(groups->size())), getSizes(matrices)[0], "as many offs as matrices")))
    return failure();
  Sizes result{hasRows ? getSizes(x)[0] : getSizes(x)[1], hasRows ? getSizes(y)[2] : getSizes(y)[1]};
  SmallVector<Value> products;
  for (auto [i, group] : llvm::enumerate(*groups)) {
    Value part = takeGroup(b, flat, group, grouped), matrix = b.take(matrices, 0, int64_t(i));
    products.push_back(DotGeneralOp::create(b, hasRows ? part : matrix, hasRows ? matrix : part, ArrayRef<int64_t>{},
                                            ArrayRef<int64_t>{}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0}));
  }
  if (products.empty())
    return b.splat(b.elementOf(x), result, 0);
  return b.pad(b.concat(products, grouped), b.scalar(b.elementOf(x), 0), Sizes(2, b.size(0)), result);
}

/// The product [M, N] of each group of what x [M, S] and y [S, N] are multiplied along: [G, M, N].
FailureOr<Value> emitGroupsOfTerms(Call &c, Value x, Value y) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  if (failed(unifySizes(ctx, x, 1, y, 0, "inner sizes")))
    return failure();
  FailureOr<SmallVector<Group>> groups = readGroups(c, getSizes(x)[1]);
  if (failed(groups))
    return failure();
  SmallVector<Value> products;
  for (const Group &group : *groups)
    products.push_back(
        b.unsqueeze(DotGeneralOp::create(b, takeGroup(b, x, group, 1), takeGroup(b, y, group, 0), ArrayRef<int64_t>{},
                                         ArrayRef<int64_t>{}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0}),
                    0));
  if (products.empty())
    return b.splat(b.elementOf(x), {b.size(0), getSizes(x)[0], getSizes(y)[1]}, 0);
  return Value(b.concat(products, 0));
}

/// _grouped_mm: by groups of rows, of columns, or of terms; without offs one product for each pair of matrices.
LogicalResult groupedProduct(NodeContext &ctx, StringRef lhs, StringRef rhs) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> v = factors(c, {lhs, rhs});
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  const int64_t rx = b.rankOf(x), ry = b.rankOf(y);
  const bool hasOffsets = bool(c.tensor("offs"));
  if (rx < 2 || rx > 3 || ry < 2 || ry > 3 || hasOffsets == (rx == 3 && ry == 3))
    return ctx.invalid("takes matrices, or one for each group, and offs unless both sides have one for each group, but "
                       "got " +
                       describe(x) + " and " + describe(y));
  if (c.tensor("bias") || ctx.hasAttr("out_dtype"))
    return ctx.unsupported("with bias or out_dtype is not supported; add and convert afterwards");
  if (rx == 3 && ry == 3)
    return give(ctx, emitMatMul(ctx, x, y));
  return give(ctx, rx == 2 && ry == 2 ? emitGroupsOfTerms(c, x, y) : emitGroupsOfRows(c, x, y));
}

/// _trilinear: the sum over `sumdim` of three tensors, which lack the dims of `expand1`, `expand2` and `expand3`.
LogicalResult trilinear(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> v = factors(c, {"i1", "i2", "i3"});
  if (failed(v))
    return failure();
  SmallVector<SmallVector<int64_t>> lacking;
  for (StringRef name : {"expand1", "expand2", "expand3"})
    lacking.push_back(c.integers(name).value_or(SmallVector<int64_t>{}));
  const int64_t rank = b.rankOf((*v)[0]) + int64_t(lacking[0].size());
  constexpr int64_t kMostDims = 26; // the letters of an equation
  if (rank > kMostDims)
    return ctx.unsupported("of more than " + Twine(kMostDims) + " dims is not supported");
  std::string equation;
  auto append = [&](ArrayRef<int64_t> without) {
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(without, dim))
        equation += char('a' + dim);
  };
  for (auto [i, operand] : llvm::enumerate(*v)) {
    FailureOr<SmallVector<int64_t>> dims = ctx.axes(lacking[i], rank);
    if (failed(dims))
      return failure();
    if (b.rankOf(operand) + int64_t(dims->size()) != rank)
      return ctx.invalid("takes tensors of " + Twine(rank) + " dims, with those that they lack, but got " +
                         describe(operand));
    equation += i ? "," : "";
    append(*dims);
  }
  FailureOr<SmallVector<int64_t>> summed = ctx.axes(c.integers("sumdim").value_or(SmallVector<int64_t>{}), rank);
  if (failed(summed))
    return failure();
  equation += "->";
  append(*summed);
  return give(ctx, einsum(ctx, equation, *v));
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
  on("_grouped_mm.default", [](NodeContext &ctx) { return groupedProduct(ctx, "self", "mat2"); });
  on("_trilinear.default", trilinear, 3);
}

void tc::populateTransformers(OpRegistrar &onOp) {
  onOp(
      "grouped_mm_fallback.default", /*sinceVersion=*/1,
      [](NodeContext &ctx) { return groupedProduct(ctx, "input", "weight"); }, 3);
}
