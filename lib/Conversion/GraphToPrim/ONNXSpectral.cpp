//===- ONNXSpectral.cpp - Fourier transforms and mel filters of ONNX ----------------------------------------------===//
//
// What a model says of axes and frames is written around the transforms of Spectral.h.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Spectral.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// One size from a scalar operand.
FailureOr<AffineExpr> readSize(NodeContext &ctx, size_t operand, StringRef what) {
  FailureOr<Sizes> sizes = ctx.requireSizes(ctx.operand(operand), what);
  if (failed(sizes))
    return failure();
  if (sizes->size() != 1)
    return ctx.invalid(what + " must be one number, but is " + describe(ctx.operand(operand)));
  return sizes->front();
}

LogicalResult dft(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  int64_t rank = sizes.size();
  if (rank < 2 || !b.isFloat(x))
    return ctx.invalid("needs a float operand [.., length, 1 or 2], but has " + describe(x));
  std::optional<int64_t> axis = ctx.opset() < 20 ? ctx.getInt("axis", 1) : -2;
  if (ctx.has(2)) {
    std::optional<SmallVector<int64_t>> known = ctx.constantInts(ctx.operand(2));
    axis = known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  }
  // [P, L, Q, parts] around the axis.
  MLIRContext *context = b.getContext();
  AffineExpr before, extent, after;
  Value isAxis, extents;
  if (axis) {
    FailureOr<int64_t> normal = ctx.axis(*axis, rank);
    if (failed(normal))
      return failure();
    if (*normal == rank - 1)
      return ctx.invalid("axis is the last one, which holds the real and imaginary parts");
    axis = *normal;
    before = product(context, SizesRef(sizes).take_front(*axis));
    extent = sizes[*axis];
    after = product(context, SizesRef(sizes).slice(*axis + 1, rank - *axis - 2));
  } else {
    FailureOr<Value> given = ctx.scalar(ctx.operand(2), "axis");
    if (failed(given))
      return failure();
    Value v = b.convert(*given, b.getI64Type());
    v = b.select(b.compare(CompareKind::LT, v, 0), b.binary<AddOp>(v, double(rank)), v);
    extents = b.sizesValue(SizesRef(sizes).drop_back());
    Value dim = b.iota(b.getI64Type(), getSizes(extents), 0), wanted = b.broadcastTo(v, getSizes(extents));
    auto productWhere = [&](CompareKind kind) {
      Value kept = b.select(b.compare(kind, dim, wanted), extents, b.splatLike(extents, 1));
      return b.bindSymbol("dft", b.reduce(ReduceKind::Prod, kept, {0}));
    };
    isAxis = b.compare(CompareKind::EQ, dim, wanted);
    before = productWhere(CompareKind::LT);
    extent = productWhere(CompareKind::EQ);
    after = productWhere(CompareKind::GT);
  }
  bool inverse = ctx.getInt("inverse", 0), onesided = ctx.getInt("onesided", 0);
  Spectrum kind = !inverse ? Spectrum::Forward : onesided ? Spectrum::InverseOfHalf : Spectrum::Inverse;
  AffineExpr length = kind == Spectrum::InverseOfHalf ? simplifySize((extent - 1) * 2) : extent;
  if (ctx.has(1)) {
    FailureOr<AffineExpr> given = readSize(ctx, 1, "dft_length");
    if (failed(given))
      return failure();
    length = *given;
  }
  if (auto known = getConstantSize(length); known && *known < 1)
    return ctx.invalid("transforms " + Twine(*known) + " elements; it needs 1 or more");
  AffineExpr outputs = onesided && !inverse ? halfSpectrum(length) : length;
  Value y = emitSpectrum(b, b.reshape(x, {before, extent, after, sizes.back()}), outputs, length, kind,
                         inverse ? SpectrumScale::ByLength : SpectrumScale::None);
  Sizes result(sizes);
  if (axis) {
    result[*axis] = outputs;
  } else {
    Value all = b.select(isAxis, b.broadcastTo(b.sizeValue(outputs), getSizes(extents)), extents);
    for (int64_t i = 0; i + 1 < rank; ++i)
      result[i] = b.bindSymbol("dft", b.take(all, 0, i));
  }
  result.back() = getSizes(y).back();
  return ctx.result(b.reshape(y, result));
}

LogicalResult stft(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), window = ctx.operand(2);
  Sizes sizes = getSizes(x);
  if (sizes.size() == 2) // a real signal without its dim of parts
    x = b.unsqueeze(x, 2), sizes = getSizes(x);
  if (sizes.size() != 3 || !b.isFloat(x) || (window && b.rankOf(window) != 1))
    return ctx.invalid("needs a float signal [N, length, 1 or 2] and a 1-D window, but has " + describe(x));
  FailureOr<AffineExpr> step = readSize(ctx, 1, "frame_step"), length = AffineExpr();
  if (ctx.has(3))
    length = readSize(ctx, 3, "frame_length");
  else if (window)
    length = getSizes(window).front();
  else
    return ctx.invalid("needs a window or a frame_length");
  if (failed(step) || failed(length))
    return failure();
  if (auto known = getConstantSize(*length); known && *known < 1)
    return ctx.invalid("frame_length is " + Twine(*known) + "; it must be 1 or more");
  AffineExpr frames;
  if (auto constant = getConstantSize(*step)) {
    if (*constant < 1)
      return ctx.invalid("frame_step is " + Twine(*constant) + "; it must be 1 or more");
    frames = simplifySize((sizes[1] - *length).floorDiv(*constant) + 1);
  } else {
    Value count = b.div(b.sizeValue(simplifySize(sizes[1] - *length)), b.sizeValue(*step));
    frames = b.bindSymbol("frames", b.binary<AddOp>(count, 1));
  }
  Sizes grid{frames, *length};
  Value start = b.mul(b.iota(b.getI64Type(), grid, 0), b.broadcastTo(b.sizeValue(*step), grid));
  Value framed = GatherOp::create(b, x, b.add(start, b.iota(b.getI64Type(), grid, 1)), 1); // [N, F, length, parts]
  if (window) {
    FailureOr<Value> fitting = ctx.castSizes(window, {*length});
    if (failed(fitting))
      return failure();
    FailureOr<Value> spread = broadcastAlong(ctx, b.convert(*fitting, b.elementOf(x)), 2, getSizes(framed));
    if (failed(spread))
      return failure();
    framed = b.mul(framed, *spread);
  }
  AffineExpr outputs = ctx.getInt("onesided", 1) ? halfSpectrum(*length) : *length;
  AffineExpr rows = simplifySize(sizes[0] * frames);
  Value y = emitSpectrum(b, b.reshape(framed, {rows, *length, b.size(1), sizes[2]}), outputs, *length,
                         Spectrum::Forward, SpectrumScale::None);
  return ctx.result(b.reshape(y, {sizes[0], frames, outputs, b.size(2)}));
}

/// Triangles over the bins of a spectrum, evenly spaced on the mel scale. Computed in f64: bins are rounded down.
LogicalResult melWeightMatrix(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = readElementType(ctx, "output_datatype", /*defaultType=*/1);
  FailureOr<AffineExpr> bands = readSize(ctx, 0, "num_mel_bins"), length = readSize(ctx, 1, "dft_length");
  if (failed(type) || failed(bands) || failed(length))
    return failure();
  Type f64 = b.getF64Type();
  Sizes row{*bands}, grid{halfSpectrum(*length), *bands};
  SmallVector<Value> scalars; // rate, lower and upper edge
  for (const char *name : {"sample_rate", "lower_edge_hertz", "upper_edge_hertz"}) {
    FailureOr<Value> v = ctx.scalar(ctx.operand(2 + scalars.size()), name);
    if (failed(v))
      return failure();
    scalars.push_back(b.convert(*v, f64));
  }
  auto all = [&](Value v) { return b.broadcastTo(v, row); };
  auto toMel = [&](Value hertz) {
    return b.binary<MulOp>(b.unary<Log1pOp>(b.binary<DivOp>(hertz, 700)), 2595 / M_LN10);
  };
  Value low = toMel(scalars[1]), span = b.sub(toMel(scalars[2]), low);
  Value step = b.div(span, b.convert(b.sizeValue(simplifySize(*bands + 2)), f64));
  Value points = b.convert(b.sizeValue(simplifySize(*length + 1)), f64), rate = scalars[0];
  // The first bin of band i, its middle and its end are edges i, i + 1 and i + 2.
  auto edge = [&](int64_t offset) {
    Value number = b.binary<AddOp>(b.convert(b.iota(b.getI64Type(), row, 0), f64), double(offset));
    Value mel = b.add(b.mul(number, all(step)), all(low));
    Value hertz = b.binary<MulOp>(b.unary<Expm1Op>(b.binary<MulOp>(mel, M_LN10 / 2595)), 700);
    return b.broadcastTo(b.unary<FloorOp>(b.div(b.mul(hertz, all(points)), all(rate))), grid);
  };
  Value first = edge(0), middle = edge(1), end = edge(2), bin = b.convert(b.iota(b.getI64Type(), grid, 0), f64);
  Value zero = b.splatLike(bin, 0), one = b.splatLike(bin, 1);
  auto ratio = [&](Value a, Value c) { return b.div(a, b.max(c, one)); }; // whole numbers: 0 or 1 and more
  Value up = b.select(b.compare(CompareKind::EQ, first, middle), one, ratio(b.sub(bin, first), b.sub(middle, first)));
  Value down = ratio(b.sub(end, bin), b.sub(end, middle));
  Value isUp = b.binary<AndOp>(b.compare(CompareKind::GE, bin, first), b.compare(CompareKind::LE, bin, middle));
  Value isDown = b.binary<AndOp>(b.compare(CompareKind::GT, bin, middle), b.compare(CompareKind::LT, bin, end));
  return ctx.result(b.convert(b.select(isUp, up, b.select(isDown, down, zero)), *type));
}

} // namespace

void tc::populateONNXSpectral(OpRegistrar &onOp) {
  onOp("DFT", 17, dft);
  onOp("STFT", 17, stft, 2);
  onOp("MelWeightMatrix", 17, melWeightMatrix, 5);
}
