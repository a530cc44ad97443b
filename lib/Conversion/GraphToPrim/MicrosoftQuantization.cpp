//===- MicrosoftQuantization.cpp - quantised operators of com.microsoft -------------------------------------------===//
//
// What ONNX Runtime's quantiser and exporters of quantised language models write. An operator on quantised tensors is
// the operator on floats between a dequantisation and a quantisation; fusion makes one loop of them. Weights of 2, 4
// and 8 bits stay packed in the artifact: constant folding refuses to make constants larger, so that they are unpacked
// where they are read. Source: ONNX Runtime, docs/ContribOperators.md.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Shared.h"
#include "tc/Dialect/Prim/Utils/BlockWeights.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

//===--- dequantise, compute, quantise ----------------------------------------------------------------------------===//

/// A scale or zero point that is one number, as a tensor of `sizes`; null stays null.
FailureOr<Value> spreadScalar(NodeContext &ctx, Value v, SizesRef sizes) {
  if (!v)
    return Value();
  FailureOr<Value> scalar = ctx.reshape(v, {});
  return failed(scalar) ? FailureOr<Value>(failure()) : FailureOr<Value>(ctx.b.broadcastTo(*scalar, sizes));
}

/// (x - zeroPoint) * scale in f32. `zeroPoint` may be null.
FailureOr<Value> dequantize(NodeContext &ctx, Value x, Value scale, Value zeroPoint) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(x);
  FailureOr<Value> factor = spreadScalar(ctx, scale, sizes), offset = spreadScalar(ctx, zeroPoint, sizes);
  if (failed(factor) || failed(offset))
    return failure();
  return b.mul(b.convert(subtractZeroPoint(b, x, *offset), b.getF32Type()), b.convert(*factor, b.getF32Type()));
}

/// The same for the operands i, i + 1 and i + 2.
FailureOr<Value> dequantizeOperand(NodeContext &ctx, size_t i) {
  if (failed(ctx.requireOperands({i, i + 1})))
    return failure();
  return dequantize(ctx, ctx.operand(i), ctx.operand(i + 1), ctx.operand(i + 2));
}

/// y / scale + zeroPoint, rounded and saturated to `type`. `zeroPoint` may be null.
FailureOr<Value> quantize(NodeContext &ctx, Value y, Value scale, Value zeroPoint, Type type) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(y);
  FailureOr<Value> divisor = spreadScalar(ctx, scale, sizes), offset = spreadScalar(ctx, zeroPoint, sizes);
  if (failed(divisor) || failed(offset))
    return failure();
  return saturateTo(b, b.div(y, b.convert(*divisor, b.elementOf(y))), *offset, type);
}

/// Sets the result to the quantised y; operands i and i + 1 are scale and zero point.
LogicalResult setQuantized(NodeContext &ctx, FailureOr<Value> y, size_t i) {
  if (failed(y) || failed(ctx.requireOperands({i})))
    return failure();
  FailureOr<Value> result = quantize(ctx, *y, ctx.operand(i), ctx.operand(i + 1), ctx.b.elementOf(ctx.operand(0)));
  return failed(result) ? failure() : ctx.result(*result);
}

template <typename Op> LogicalResult qLinearBinary(NodeContext &ctx) {
  FailureOr<Value> lhs = dequantizeOperand(ctx, 0), rhs = dequantizeOperand(ctx, 3);
  if (failed(lhs) || failed(rhs))
    return failure();
  Value values[] = {*lhs, *rhs};
  if (failed(ctx.broadcastTogether(values)))
    return failure();
  return setQuantized(ctx, ctx.b.binary<Op>(values[0], values[1]), 6);
}

/// One operator of ai.onnx on floats, with the same attributes: X, its scale and zero point, those of Y.
NodeHandler qLinearUnary(StringRef type, int64_t opset) {
  return [type, opset](NodeContext &ctx) -> LogicalResult {
    FailureOr<Value> x = dequantizeOperand(ctx, 0);
    return failed(x) ? failure() : setQuantized(ctx, ctx.emitAs(type, opset, {*x}), 3);
  };
}

LogicalResult qLinearSoftmax(NodeContext &ctx) {
  FailureOr<Value> x = dequantizeOperand(ctx, 0);
  if (failed(x))
    return failure();
  return setQuantized(ctx, ctx.emitAs("Softmax", ctx.getInt("opset", 13), {*x}), 3);
}

/// A pool in either layout.
NodeHandler qLinearPool(StringRef type, int64_t opset) {
  return [type, opset](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    FailureOr<Value> x = dequantizeOperand(ctx, 0);
    if (failed(x))
      return failure();
    int64_t rank = b.rankOf(*x);
    bool channelsLast = ctx.getInt("channels_last", 0) && rank > 2;
    FailureOr<Value> y = ctx.emitAs(type, opset, {channelsLast ? b.transpose(*x, toChannelsFirst(rank)) : *x});
    if (failed(y))
      return failure();
    return setQuantized(ctx, channelsLast ? b.transpose(*y, toChannelsLast(rank)) : *y, 3);
  };
}

LogicalResult qLinearConcat(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  if (ctx.numOperands() % 3 != 2)
    return ctx.invalid("needs a scale, a zero point, and three operands for each tensor, but has " +
                       Twine(ctx.numOperands()) + " operands");
  SmallVector<Value> parts;
  for (size_t i = 2; i < ctx.numOperands(); i += 3) {
    FailureOr<Value> part = dequantizeOperand(ctx, i);
    if (failed(part))
      return failure();
    parts.push_back(*part);
  }
  FailureOr<Value> joined = ctx.emitAs("Concat", 13, parts);
  if (failed(joined))
    return failure();
  FailureOr<Value> result = quantize(ctx, *joined, ctx.operand(0), ctx.operand(1), b.elementOf(ctx.operand(2)));
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult qLinearWhere(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = dequantizeOperand(ctx, 1), y = dequantizeOperand(ctx, 4);
  if (failed(x) || failed(y) || failed(ctx.requireOperands({7})))
    return failure();
  Value values[] = {ctx.operand(0), *x, *y};
  if (failed(ctx.broadcastTogether(values)))
    return failure();
  FailureOr<Value> result = quantize(ctx, b.select(values[0], values[1], values[2]), ctx.operand(7), ctx.operand(8),
                                     b.elementOf(ctx.operand(1)));
  return failed(result) ? failure() : ctx.result(*result);
}

/// QLinearConv of ai.onnx, also with channels last.
LogicalResult qLinearConv(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  SmallVector<Value> operands(ctx.allOperands());
  int64_t rank = b.rankOf(operands[0]);
  bool channelsLast = ctx.getInt("channels_last", 0) && rank > 2;
  if (channelsLast)
    operands[0] = b.transpose(operands[0], toChannelsFirst(rank));
  FailureOr<Value> y = ctx.emitAs("QLinearConv", 10, operands);
  if (failed(y))
    return failure();
  return ctx.result(channelsLast ? b.transpose(*y, toChannelsLast(rank)) : *y);
}

/// A node that means what ai.onnx's node of this name does.
NodeHandler sameAs(StringRef type, int64_t opset) {
  return [type, opset](NodeContext &ctx) -> LogicalResult {
    FailureOr<Value> y = ctx.emitAs(type, opset, ctx.allOperands());
    return failed(y) ? failure() : ctx.result(*y);
  };
}

//===--- products of integers that give floats --------------------------------------------------------------------===//

/// A parameter of the right side: one number, or one for each column; of a tensor of `sizes`. Null stays null.
FailureOr<Value> spreadColumns(NodeContext &ctx, Value v, SizesRef sizes) {
  if (!v)
    return Value();
  if (getConstantSize(product(ctx.b.getContext(), getSizes(v))) == 1)
    return spreadScalar(ctx, v, sizes);
  return ctx.broadcastOnto(v, sizes);
}

/// The product of integers less their zero points.
FailureOr<Value> emitIntegerProduct(NodeContext &ctx, Value lhs, Value lhsZero, Value rhs, Value rhsZero) {
  FailureOr<Value> lhsOffset = spreadScalar(ctx, lhsZero, getSizes(lhs)),
                   rhsOffset = spreadColumns(ctx, rhsZero, getSizes(rhs));
  if (failed(lhsOffset) || failed(rhsOffset))
    return failure();
  return emitMatMul(ctx, subtractZeroPoint(ctx.b, lhs, *lhsOffset), subtractZeroPoint(ctx.b, rhs, *rhsOffset));
}

} // namespace

FailureOr<Value> tc::emitScaledProduct(NodeContext &ctx, Value lhs, Value lhsScale, Value lhsZero, Value rhs,
                                       Value rhsScale, Value rhsZero, Value bias) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> sum = emitIntegerProduct(ctx, lhs, lhsZero, rhs, rhsZero);
  if (failed(sum))
    return failure();
  Sizes sizes = getSizes(*sum);
  Type type = b.elementOf(rhsScale);
  FailureOr<Value> left = spreadScalar(ctx, lhsScale, sizes), right = spreadColumns(ctx, rhsScale, sizes),
                   addend = spreadColumns(ctx, bias, sizes);
  if (failed(left) || failed(right) || failed(addend))
    return failure();
  Type f32 = b.getF32Type();
  Value y = b.mul(b.convert(*sum, f32), b.mul(b.convert(*left, f32), b.convert(*right, f32)));
  if (*addend)
    y = b.add(y, b.convert(*addend, f32));
  return b.convert(y, type);
}

namespace {

LogicalResult matMulIntegerToFloat(NodeContext &ctx) {
  FailureOr<Value> y = emitScaledProduct(ctx, ctx.operand(0), ctx.operand(2), ctx.operand(4), ctx.operand(1),
                                         ctx.operand(3), ctx.operand(5), ctx.operand(6));
  return failed(y) ? failure() : ctx.result(*y);
}

/// x as ui8 with one scale and zero point for all, as DynamicQuantizeLinear-11 finds them.
struct DynamicallyQuantized {
  Value values, scale, zeroPoint;
};

DynamicallyQuantized quantizeDynamically(PrimBuilder &b, Value x) {
  Type type = b.getIntegerType(8, /*isSigned=*/false);
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(x)));
  // The range includes 0.
  Value high = b.binary<MaxOp>(b.reduce(ReduceKind::Max, x, dims), 0);
  Value low = b.binary<MinOp>(b.reduce(ReduceKind::Min, x, dims), 0);
  Value scale = b.binary<DivOp>(b.sub(high, low), 255);
  scale = b.select(b.compare(CompareKind::EQ, scale, 0), b.splatLike(scale, 1), scale);
  Value zero = saturateTo(b, b.unary<NegOp>(b.div(low, scale)), Value(), type);
  Sizes sizes = getSizes(x);
  return {saturateTo(b, b.div(x, b.broadcastTo(scale, sizes)), b.broadcastTo(zero, sizes), type), scale, zero};
}

LogicalResult dynamicQuantizeMatMul(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  DynamicallyQuantized lhs = quantizeDynamically(b, ctx.operand(0));
  FailureOr<Value> y = emitScaledProduct(ctx, lhs.values, lhs.scale, lhs.zeroPoint, ctx.operand(1), ctx.operand(2),
                                         ctx.operand(3), ctx.operand(4));
  return failed(y) ? failure() : ctx.result(*y);
}

LogicalResult qGemm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  if (failed(ctx.requireOperands({3, 4})))
    return failure();
  Value lhs = ctx.operand(0), rhs = ctx.operand(3);
  if (ctx.getInt("transA", 0))
    lhs = b.transpose(lhs, {1, 0});
  if (ctx.getInt("transB", 0))
    rhs = b.transpose(rhs, {1, 0});
  FailureOr<Value> sum = emitIntegerProduct(ctx, lhs, ctx.operand(2), rhs, ctx.operand(5));
  if (failed(sum))
    return failure();
  Sizes sizes = getSizes(*sum);
  if (Value c = ctx.operand(6)) { // at the scale of the product
    FailureOr<Value> wide = ctx.broadcastOnto(c, sizes);
    if (failed(wide))
      return failure();
    sum = b.add(*sum, *wide);
  }
  FailureOr<Value> left = spreadScalar(ctx, ctx.operand(1), sizes), right = spreadColumns(ctx, ctx.operand(4), sizes);
  if (failed(left) || failed(right))
    return failure();
  Value y = b.mul(b.convert(*sum, b.getF32Type()), b.mul(*left, *right));
  if (double alpha = ctx.getFloat("alpha", 1); alpha != 1)
    y = b.binary<MulOp>(y, alpha);
  if (!ctx.has(7))
    return ctx.result(y);
  if (!ctx.has(8))
    return ctx.invalid("has y_scale without y_zero_point, which tells the result's type");
  FailureOr<Value> result = quantize(ctx, y, ctx.operand(7), ctx.operand(8), b.elementOf(ctx.operand(8)));
  return failed(result) ? failure() : ctx.result(*result);
}

//===--- weights of few bits --------------------------------------------------------------------------------------===//

LogicalResult matMulNBits(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type f32 = b.getF32Type();
  Value x = ctx.operand(0), packed = ctx.operand(1), scales = ctx.operand(2), zeros = ctx.operand(3),
        groups = ctx.operand(4);
  const int64_t n = ctx.getInt("N", 0), k = ctx.getInt("K", 0), bits = ctx.getInt("bits", 4),
                block = ctx.getInt("block_size", 0);
  if (ctx.getInt("weight_prepacked", 0))
    return ctx.unsupported("with weight_prepacked is not supported; supported: weights as ai.onnx stores them");
  if (bits != 2 && bits != 4 && bits != 8)
    return ctx.unsupported("with bits " + Twine(bits) + " is not supported; supported: 2, 4 and 8");
  if (!llvm::isPowerOf2_64(block))
    return ctx.invalid("block_size is " + Twine(block) + "; it must be a power of 2");
  const int64_t blocks = llvm::divideCeil(k, block), zeroBytes = llvm::divideCeil(blocks * bits, 8);
  Sizes sizes = getSizes(x);
  sizes.back() = b.size(k);
  FailureOr<Value> rows = ctx.castSizes(b.convert(x, f32), sizes),
                   bytes = ctx.reshape(packed, b.sizes({n, blocks * block * bits / 8})),
                   factors = ctx.reshape(scales, b.sizes({n, blocks})), offsets = Value();
  if (zeros)
    offsets = ctx.reshape(zeros, b.sizes({n, b.isFloat(zeros) ? blocks : zeroBytes}));
  if (failed(rows) || failed(bytes) || failed(factors) || failed(offsets))
    return failure();
  const int64_t last = sizes.size() - 1;
  Value y;
  if (groups) {
    // g_idx names the block whose scale and zero point a row of K takes.
    Value first = b.sliceDim(b.reshape(groups, {product(b.getContext(), getSizes(groups))}), 0, b.size(0), b.size(k));
    FailureOr<Value> checked = ctx.castSizes(first, {b.size(k)});
    if (failed(checked))
      return failure();
    Value weights = emitBlockWeights(b, {*bytes, *factors, *offsets, bits, block}, b.size(k),
                                     [&](Value v) -> Value { return GatherOp::create(b, v, *checked, 1); });
    y = DotGeneralOp::create(b, *rows, weights, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{last},
                             ArrayRef<int64_t>{1});
  } else {
    sizes.back() = b.size(n);
    y = BlockDotOp::create(b, makeType(f32, sizes), *rows, *bytes, *factors, *offsets, bits, block);
  }
  if (Value bias = ctx.operand(5)) {
    FailureOr<Value> wide = broadcastAlong(ctx, b.convert(bias, f32), last, getSizes(y));
    if (failed(wide))
      return failure();
    y = b.add(y, *wide);
  }
  return ctx.result(b.convert(y, b.elementOf(x)));
}

LogicalResult gatherBlockQuantized(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type f32 = b.getF32Type();
  Value data = ctx.operand(0), indices = ctx.operand(1), scales = ctx.operand(2), zeros = ctx.operand(3);
  const int64_t bits = ctx.getInt("bits", 4), block = ctx.getInt("block_size", 128), rank = b.rankOf(data);
  FailureOr<int64_t> gatherAxis = ctx.axis(ctx.getInt("gather_axis", 0), rank),
                     quantizeAxis = ctx.axis(ctx.getInt("quantize_axis", 1), rank);
  if (failed(gatherAxis) || failed(quantizeAxis))
    return failure();
  Type stored = b.elementOf(data);
  if (!isa<IntegerType>(stored) || b.rankOf(scales) != rank || *gatherAxis == *quantizeAxis || block < 1)
    return ctx.unsupported("of " + describe(data) + " with scales " + describe(scales) + ", gather_axis " +
                           Twine(*gatherAxis) + ", quantize_axis " + Twine(*quantizeAxis) + " and block_size " +
                           Twine(block) + " is not supported; supported: integers, scales of the same rank, two axes");
  const bool isPacked = stored.isUnsignedInteger(8) && bits < 8;
  if (stored.isUnsignedInteger(8) && bits != 2 && bits != 4 && bits != 8)
    return ctx.invalid("bits is " + Twine(bits) + "; it may be 2, 4 or 8");
  auto pick = [&](Value v) -> Value { return GatherOp::create(b, v, indices, *gatherAxis); };
  // Where the quantised axis stands behind the indices' dims.
  const int64_t axis = *quantizeAxis < *gatherAxis ? *quantizeAxis : *quantizeAxis + b.rankOf(indices) - 1;
  Value numbers = pick(data);
  if (isPacked)
    numbers = b.unpackBits(numbers, bits);
  Sizes sizes = getSizes(numbers);
  // One number for each block, spread along the axis.
  auto spread = [&](Value v) -> FailureOr<Value> {
    v = b.convert(pick(v), f32);
    Sizes wide = getSizes(v);
    SmallVector<int64_t> dims;
    for (int64_t i = 0; i < int64_t(wide.size()); ++i)
      dims.push_back(i <= axis ? i : i + 1);
    Sizes joined = wide;
    joined[axis] = simplifySize(wide[axis] * block);
    if (failed(ctx.require(CompareKind::LE, sizes[axis], joined[axis], "a scale and zero point for each block")))
      return failure();
    wide.insert(wide.begin() + axis + 1, b.size(block));
    v = b.sliceDim(b.reshape(b.broadcastInDims(v, wide, dims), joined), axis, b.size(0), sizes[axis]);
    return ctx.castSizes(v, sizes);
  };
  FailureOr<Value> factor = spread(scales);
  double centre = stored.isUnsignedInteger(8) ? double(1 << (bits - 1)) : 0;
  FailureOr<Value> offset = b.splat(f32, sizes, centre);
  if (zeros) {
    Value table = zeros;
    if (isPacked) { // rows are filled up to whole bytes
      table = b.unpackBits(zeros, bits);
      table = b.sliceDim(table, rank - 1, b.size(0), getSizes(scales)[rank - 1]);
    }
    offset = spread(table);
  }
  if (failed(factor) || failed(offset))
    return failure();
  Value y = b.mul(b.sub(b.convert(numbers, f32), *offset), *factor);
  // Indices out of range give zeros.
  Value count = b.broadcastTo(b.sizeValue(getSizes(data)[*gatherAxis]), getSizes(indices));
  Value at = b.convert(indices, b.getI64Type());
  Value isInside =
      b.binary<AndOp>(b.compare(CompareKind::LT, at, count), b.compare(CompareKind::GE, at, b.unary<NegOp>(count)));
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(*gatherAxis, *gatherAxis + b.rankOf(indices)));
  y = b.select(b.broadcastInDims(isInside, sizes, dims), y, b.splatLike(y, 0));
  return ctx.result(b.convert(y, b.elementOf(scales)));
}

} // namespace

void tc::populateMicrosoftQuantization(OpRegistrar &onOp) {
  onOp("QLinearAdd", 1, qLinearBinary<AddOp>);
  onOp("QLinearMul", 1, qLinearBinary<MulOp>);
  onOp("QLinearSigmoid", 1, qLinearUnary("Sigmoid", 13));
  onOp("QLinearLeakyRelu", 1, qLinearUnary("LeakyRelu", 16));
  onOp("QLinearSoftmax", 1, qLinearSoftmax);
  onOp("QLinearAveragePool", 1, qLinearPool("AveragePool", 22));
  onOp("QLinearGlobalAveragePool", 1, qLinearPool("GlobalAveragePool", 22));
  onOp("QLinearConcat", 1, qLinearConcat);
  onOp("QLinearWhere", 1, qLinearWhere);
  onOp("QLinearConv", 1, qLinearConv, 8);
  onOp("QuantizeLinear", 1, sameAs("QuantizeLinear", 21), 2);
  onOp("DequantizeLinear", 1, sameAs("DequantizeLinear", 21), 2);
  onOp("MatMulIntegerToFloat", 1, matMulIntegerToFloat, 4);
  onOp("DynamicQuantizeMatMul", 1, dynamicQuantizeMatMul, 3);
  onOp("QGemm", 1, qGemm, 2);
  onOp("MatMulNBits", 1, matMulNBits, 3);
  onOp("GatherBlockQuantized", 1, gatherBlockQuantized, 3);
}
