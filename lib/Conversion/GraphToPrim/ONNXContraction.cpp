//===- ONNXContraction.cpp - matrix products and convolutions of ONNX ---------------------------------------------===//
//
// ONNX is channels-first, prim channels-last: convolutions stand between two transposes, which tc-canonicalize-prim
// cancels between layers. Filters are constants as a rule, so that their transposes fold.
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

/// States that two sizes are equal: both become the static one, or the first.
LogicalResult unify(NodeContext &ctx, Value &a, int64_t da, Value &b, int64_t db, StringRef what) {
  Sizes sa = getSizes(a), sb = getSizes(b);
  if (sa[da] == sb[db])
    return success();
  auto ca = getConstantSize(sa[da]), cb = getConstantSize(sb[db]);
  if (ca && cb)
    return ctx.invalid(what + " of " + describe(a) + " and " + describe(b) + " differ");
  if (failed(ctx.requireEqual(sa[da], sb[db], "equal " + what)))
    return failure();
  if (cb) {
    sa[da] = sb[db];
    a = ctx.b.reshape(a, sa);
  } else {
    sb[db] = sa[da];
    b = ctx.b.reshape(b, sb);
  }
  return success();
}

} // namespace

FailureOr<Value> tc::emitMatMul(NodeContext &ctx, Value lhs, Value rhs) {
  PrimBuilder &b = ctx.b;
  int64_t ra = b.rankOf(lhs), rb = b.rankOf(rhs);
  if (ra < 1 || rb < 1)
    return ctx.invalid("operands must have one dim or more: " + describe(lhs) + " and " + describe(rhs));
  if (b.elementOf(lhs) != b.elementOf(rhs))
    return ctx.invalid("operands differ in element type: " + describe(lhs) + " and " + describe(rhs));
  if (failed(unify(ctx, lhs, ra - 1, rhs, rb == 1 ? 0 : rb - 2, "inner sizes")))
    return failure();
  // A matrix on the right needs no batch dims: [.., K] x [K, N], the form of most linear layers.
  if (rb <= 2)
    return Value(DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{ra - 1},
                                      ArrayRef<int64_t>{0}));
  bool vector = ra == 1;
  if (vector)
    lhs = b.unsqueeze(lhs, 0), ra = 2;
  Sizes sa = getSizes(lhs), sb = getSizes(rhs);
  FailureOr<Sizes> batch = ctx.broadcastSizes({Sizes(sa.begin(), sa.end() - 2), Sizes(sb.begin(), sb.end() - 2)});
  if (failed(batch))
    return failure();
  Sizes fullA(*batch), fullB(*batch);
  fullA.append(sa.end() - 2, sa.end());
  fullB.append(sb.end() - 2, sb.end());
  lhs = b.broadcastTo(lhs, fullA);
  rhs = b.broadcastTo(rhs, fullB);
  int64_t n = batch->size();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, n));
  Value result = DotGeneralOp::create(b, lhs, rhs, dims, dims, ArrayRef<int64_t>{n + 1}, ArrayRef<int64_t>{n});
  if (vector) {
    Sizes sizes = getSizes(result);
    sizes.erase(sizes.end() - 2);
    result = b.reshape(result, sizes);
  }
  return result;
}

namespace {

LogicalResult matMul(NodeContext &ctx) {
  FailureOr<Value> result = emitMatMul(ctx, ctx.operand(0), ctx.operand(1));
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult gemm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value lhs = ctx.operand(0), rhs = ctx.operand(1);
  if (b.rankOf(lhs) != 2 || b.rankOf(rhs) != 2 || b.elementOf(lhs) != b.elementOf(rhs))
    return ctx.invalid("operands must be matrices of one element type, but are " + describe(lhs) + " and " +
                       describe(rhs));
  int64_t contractA = ctx.getInt("transA", 0) ? 0 : 1, contractB = ctx.getInt("transB", 0) ? 1 : 0;
  if (failed(unify(ctx, lhs, contractA, rhs, contractB, "inner sizes")))
    return failure();
  Value result = DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                      ArrayRef<int64_t>{contractA}, ArrayRef<int64_t>{contractB});
  double alpha = ctx.getFloat("alpha", 1), beta = ctx.getFloat("beta", 1);
  if (alpha != 1)
    result = b.binary<MulOp>(result, alpha);
  if (Value c = ctx.operand(2)) {
    if (b.elementOf(c) != b.elementOf(result) || b.rankOf(c) > 2)
      return ctx.invalid("C " + describe(c) + " can't be added to " + describe(result));
    if (beta != 1)
      c = b.binary<MulOp>(c, beta);
    FailureOr<Value> wide = ctx.broadcastOnto(c, getSizes(result));
    if (failed(wide))
      return failure();
    result = b.add(result, *wide);
  }
  return ctx.result(result);
}

} // namespace

FailureOr<Value> tc::emitConv(NodeContext &ctx, Value x, Value w, Value bias) {
  PrimBuilder &b = ctx.b;
  int64_t rank = b.rankOf(x), groups = ctx.getInt("group", 1);
  if (rank < 3 || b.rankOf(w) != rank || b.elementOf(x) != b.elementOf(w))
    return ctx.invalid("operands must be [N, C, ..] and [O, C / group, ..] of one element type, but are " +
                       describe(x) + " and " + describe(w));
  FailureOr<SmallVector<int64_t>> readSizes = readKernel(ctx, w);
  if (failed(readSizes))
    return failure();
  SmallVector<int64_t> kernel = *readSizes;
  Sizes in = getSizes(x), filter = getSizes(w);
  auto inputs = getConstantSize(in[1]), perGroup = getConstantSize(filter[1]), outputs = getConstantSize(filter[0]);
  if (groups < 1 || (inputs && perGroup && *inputs != *perGroup * groups) || (outputs && *outputs % groups != 0))
    return ctx.invalid("group " + Twine(groups) + " does not fit the operands " + describe(x) + " and " + describe(w));
  if (failed(ctx.requireEqual(in[1], filter[1] * groups, "the filter's channels, times group, in dim 1")))
    return failure();
  FailureOr<Window> window = readWindow(ctx, kernel, SizesRef(in).drop_front(2));
  if (failed(window))
    return failure();
  for (size_t i = 0; i < kernel.size(); ++i) {
    AffineExpr padded = in[i + 2] + window->low(b, i) + window->high(b, i);
    auto rest = getConstantSize(simplifySize(padded - window->dilations[i] * (kernel[i] - 1)));
    if (rest && *rest < 1)
      return ctx.invalid("the filter " + describe(w) + " is larger than the padded operand " + describe(x));
  }
  SmallVector<int64_t> filterLast;
  for (int64_t i = 2; i < rank; ++i)
    filterLast.push_back(i);
  filterLast.append({1, 0});
  x = emitPads(b, x, *window, b.scalar(b.elementOf(x), 0));
  Value result = ConvOp::create(b, b.transpose(x, toChannelsLast(rank)), b.transpose(w, filterLast), window->strides,
                                window->dilations, window->padLow, window->padHigh, groups);
  if (bias) {
    FailureOr<Value> wide = broadcastAlong(ctx, bias, rank - 1, getSizes(result));
    if (failed(wide))
      return failure();
    result = b.add(result, *wide);
  }
  return b.transpose(result, toChannelsFirst(rank));
}

namespace {

LogicalResult conv(NodeContext &ctx) {
  FailureOr<Value> result = emitConv(ctx, ctx.operand(0), ctx.operand(1), ctx.operand(2));
  return failed(result) ? failure() : ctx.result(*result);
}

/// A transposed convolution is a convolution of the operand, spread out by the strides, with the flipped filter.
LogicalResult convTranspose(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), w = ctx.operand(1);
  int64_t rank = b.rankOf(x), spatial = rank - 2, groups = ctx.getInt("group", 1);
  if (rank < 3 || b.rankOf(w) != rank || b.elementOf(x) != b.elementOf(w))
    return ctx.invalid("operands must be [N, C, ..] and [C, O / group, ..] of one element type, but are " +
                       describe(x) + " and " + describe(w));
  FailureOr<SmallVector<int64_t>> readSizes = readKernel(ctx, w);
  if (failed(readSizes))
    return failure();
  SmallVector<int64_t> kernel = *readSizes;
  Sizes in = getSizes(x), filter = getSizes(w);
  auto inputs = getConstantSize(in[1]), filterInputs = getConstantSize(filter[0]),
       perGroup = getConstantSize(filter[1]);
  if (!filterInputs || !perGroup)
    return ctx.unsupported("with a filter of unknown size is not supported");
  if (groups < 1 || (inputs && *inputs != *filterInputs) || *filterInputs % groups != 0)
    return ctx.invalid("group " + Twine(groups) + " does not fit the operands " + describe(x) + " and " + describe(w));
  if (failed(ctx.requireEqual(in[1], filter[0], "the filter's channels in dim 1")))
    return failure();
  SmallVector<int64_t> extra = ctx.getInts("output_padding").value_or(SmallVector<int64_t>(spatial, 0));
  std::string autoPad = ctx.getString("auto_pad", "NOTSET");
  auto outputShape = ctx.getInts("output_shape");
  auto strides = ctx.getInts("strides").value_or(SmallVector<int64_t>(spatial, 1));
  auto dilations = ctx.getInts("dilations").value_or(SmallVector<int64_t>(spatial, 1));
  auto pads = ctx.getInts("pads").value_or(SmallVector<int64_t>(2 * spatial, 0));
  auto positive = [](int64_t v) { return v >= 1 && v <= INT32_MAX; };
  if (int64_t(extra.size()) != spatial || int64_t(strides.size()) != spatial || int64_t(dilations.size()) != spatial ||
      int64_t(pads.size()) != 2 * spatial || !llvm::all_of(strides, positive) || !llvm::all_of(dilations, positive))
    return ctx.invalid("strides, dilations, output_padding (and pads, twice) must have a positive entry for each of " +
                       Twine(spatial) + " spatial dims");
  if (outputShape && int64_t(outputShape->size()) == rank)
    outputShape->erase(outputShape->begin(), outputShape->begin() + 2);
  if (outputShape && int64_t(outputShape->size()) != spatial)
    return ctx.invalid("output_shape must have one entry for each spatial dim");
  SmallVector<std::pair<AffineExpr, AffineExpr>> cropped; // what pads that are expressions take off; empty: nothing
  if (outputShape || autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    for (int64_t i = 0; i < spatial; ++i) {
      auto size = getConstantSize(in[i + 2]);
      int64_t full = dilations[i] * (kernel[i] - 1) + 1 + extra[i] - strides[i]; // beyond size * stride
      if (outputShape && !size) {
        // As below, for a size that only the run knows.
        AffineExpr reach = simplifySize(in[i + 2] * strides[i] + (full - (*outputShape)[i])), shared = reach;
        if (b.bounds(reach).first < 0)
          shared = b.bindSymbol("pads", b.binary<MaxOp>(b.sizeValue(reach), 0));
        AffineExpr small = simplifySize(shared.floorDiv(2)), large = simplifySize(shared - small);
        AffineExpr low = autoPad == "SAME_UPPER" ? small : large;
        cropped.resize(spatial, {b.size(0), b.size(0)});
        cropped[i] = {low, simplifySize(reach - low)};
        pads[i] = pads[i + spatial] = 0;
        continue;
      }
      int64_t total = outputShape ? *size * strides[i] + full - (*outputShape)[i] : std::max<int64_t>(full, 0);
      // A result larger than the products reach is filled up at its end.
      int64_t shared = std::max<int64_t>(total, 0), small = shared / 2, large = shared - small;
      pads[i] = autoPad == "SAME_UPPER" ? small : large;
      pads[i + spatial] = total - pads[i];
    }
  }
  SmallVector<int64_t> padLow, padHigh, ones(spatial, 1);
  x = b.transpose(x, toChannelsLast(rank));
  // [N, S, C] -> [N, S, 1, C] -> zeros after each element -> [N, S * stride, C]
  Sizes sizes = getSizes(x), split{sizes[0]}, spread{sizes[0]}, joined{sizes[0]};
  bool strided = false;
  for (int64_t i = 0; i < spatial; ++i) {
    split.append({sizes[i + 1], b.size(1)});
    spread.append({sizes[i + 1], b.size(strides[i])});
    joined.push_back(simplifySize(sizes[i + 1] * strides[i]));
    strided |= strides[i] != 1;
    int64_t reach = dilations[i] * (kernel[i] - 1);
    padLow.push_back(reach - pads[i]);
    padHigh.push_back(reach - pads[i + spatial] + extra[i] + 1 - strides[i]);
    if (auto size = getConstantSize(sizes[i + 1]);
        size && *size * strides[i] + padLow.back() + padHigh.back() < reach + 1)
      return ctx.invalid("pads leave nothing of dim " + Twine(i + 2));
  }
  split.push_back(sizes.back());
  spread.push_back(sizes.back());
  joined.push_back(sizes.back());
  if (strided) {
    Value zeros = b.pad(b.reshape(x, split), b.scalar(b.elementOf(x), 0), Sizes(split.size(), b.size(0)), spread);
    x = b.reshape(zeros, joined);
  }
  if (!cropped.empty()) { // all pads around the operand itself
    Sizes low(rank, b.size(0)), padded = getSizes(x);
    for (int64_t i = 0; i < spatial; ++i) {
      low[i + 1] = simplifySize(padLow[i] - cropped[i].first);
      padded[i + 1] = simplifySize(padded[i + 1] + padLow[i] + padHigh[i] - cropped[i].first - cropped[i].second);
    }
    x = b.pad(x, b.scalar(b.elementOf(x), 0), low, padded);
    padLow.assign(spatial, 0);
    padHigh.assign(spatial, 0);
  }
  // [C, O / g, K..] -> [K.., C / g, O], flipped along K.
  Sizes wide{b.size(groups), b.size(*filterInputs / groups), b.size(*perGroup)};
  wide.append(filter.begin() + 2, filter.end());
  SmallVector<int64_t> permutation, steps(rank, 1);
  Sizes flipped, starts(rank, b.size(0));
  for (int64_t i = 0; i < spatial; ++i) {
    permutation.push_back(i + 3);
    flipped.push_back(b.size(kernel[i]));
    starts[i] = b.size(std::max<int64_t>(kernel[i] - 1, 0));
    steps[i] = -1;
  }
  permutation.append({1, 0, 2});
  flipped.append({b.size(*filterInputs / groups), b.size(*perGroup * groups)});
  w = b.reshape(b.transpose(b.reshape(w, wide), permutation), flipped);
  if (llvm::any_of(kernel, [](int64_t k) { return k > 1; }))
    w = SliceOp::create(b, w.getType(), w, makeSizeMap(b.getContext(), starts), steps);
  Value result = ConvOp::create(b, x, w, ones, dilations, padLow, padHigh, groups);
  if (Value bias = ctx.operand(2)) {
    FailureOr<Value> wideBias = broadcastAlong(ctx, bias, rank - 1, getSizes(result));
    if (failed(wideBias))
      return failure();
    result = b.add(result, *wideBias);
  }
  return ctx.result(b.transpose(result, toChannelsFirst(rank)));
}

} // namespace

void tc::populateONNXContraction(OpRegistrar &onOp) {
  onOp("MatMul", 1, matMul, 2);
  onOp("Gemm", 1, gemm, 2);
  onOp("Conv", 1, conv, 2);
  onOp("ConvTranspose", 1, convTranspose, 2);
}
