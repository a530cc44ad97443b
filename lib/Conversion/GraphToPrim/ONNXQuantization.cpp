//===- ONNXQuantization.cpp - casts, quantised tensors and integer products of ONNX -------------------------------===//
//
// Everything becomes conversions and arithmetic that fusion sees. Integer products subtract the zero points before they
// multiply, in i32: sums are exact, and padding with 0 stands for the zero point.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

bool isNarrowFloat(Type type) { return isa<FloatType>(type) && isNarrowElement(type); }

/// f8E8M0FNU holds a power of two and no sign: the exponent field of an f32, rounded. Source: ONNX Cast-24.
Value castToExponent(PrimBuilder &b, Value x, bool saturate, StringRef roundMode) {
  Type u32 = b.getIntegerType(32, /*isSigned=*/false);
  Value bits = BitcastOp::create(b, b.convert(x, b.getF32Type()), u32);
  auto constant = [&](double value) { return b.splatLike(bits, value); };
  Value exponent = b.binary<AndOp>(b.binary<ShrOp>(bits, 23), 0xff), fraction = b.binary<AndOp>(bits, 0x7fffff);
  Value roundsUp = b.compare(CompareKind::GT, fraction, roundMode == "nearest" ? 0x400000 : 0);
  if (roundMode == "nearest")
    roundsUp = b.binary<OrOp>(roundsUp, b.binary<AndOp>(b.compare(CompareKind::EQ, fraction, 0x400000),
                                                        b.compare(CompareKind::GT, exponent, 0)));
  if (roundMode == "down")
    roundsUp = b.splatLike(roundsUp, 0);
  Value isLast = b.compare(CompareKind::GE, exponent, saturate ? 0xfe : 0xff); // 0xff: NaN and infinity
  Value code = b.select(isLast, exponent, b.add(exponent, b.convert(roundsUp, u32)));
  return BitcastOp::create(b, b.convert(b.min(code, constant(0xff)), b.getIntegerType(8, false)),
                           Float8E8M0FNUType::get(b.getContext()));
}

LogicalResult castTo(NodeContext &ctx, Type to) {
  if (isa<base::StringType>(to) || ctx.b.isString(ctx.operand(0))) {
    FailureOr<Value> result = castStrings(ctx, ctx.operand(0), to);
    return failed(result) ? failure() : ctx.result(*result);
  }
  std::string roundMode = ctx.getString("round_mode", "up");
  if (roundMode != "up" && roundMode != "down" && roundMode != "nearest")
    return ctx.invalid("round_mode is \"" + roundMode + "\"; it may be up, down or nearest");
  return ctx.result(castElements(ctx.b, ctx.operand(0), to, ctx.getInt("saturate", 1), roundMode));
}

LogicalResult castNode(NodeContext &ctx) {
  FailureOr<Type> to = readElementType(ctx, "to", /*defaultType=*/0, /*orString=*/true);
  return failed(to) ? failure() : castTo(ctx, *to);
}

LogicalResult castLike(NodeContext &ctx) { return castTo(ctx, ctx.b.elementOf(ctx.operand(1))); }

LogicalResult bitCast(NodeContext &ctx) {
  FailureOr<Type> to = readElementType(ctx, "to", /*defaultType=*/0, /*orString=*/false, /*orComplex=*/true);
  if (failed(to))
    return failure();
  Value x = ctx.operand(0);
  if (getElementBits(*to) != getElementBits(ctx.b.elementOf(x)))
    return ctx.invalid("an element of the operand " + describe(x) +
                       " has another number of bits than one of the result");
  // bool is a byte that holds 0 or 1.
  Type byte = ctx.b.getIntegerType(8);
  if (ctx.b.elementOf(x).isInteger(1))
    x = ctx.b.convert(x, byte);
  if (to->isInteger(1))
    return ctx.result(ctx.b.convert(BitcastOp::create(ctx.b, x, byte), *to));
  return ctx.result(ctx.b.elementOf(x) == *to ? x : BitcastOp::create(ctx.b, x, *to).getResult());
}

//===--- QuantizeLinear and DequantizeLinear ----------------------------------------------------------------------===//

/// A scale or zero point for each element of a tensor of `sizes`: one for all, one for each index of `axis`, or (as
/// many dims as the tensor) one for each block along it.
FailureOr<Value> spreadParameter(NodeContext &ctx, Value v, SizesRef sizes) {
  PrimBuilder &b = ctx.b;
  Sizes own = getSizes(v);
  if (llvm::all_of(own, [&](AffineExpr size) { return getConstantSize(size) == 1; }))
    return b.broadcastTo(b.reshape(v, {}), sizes);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 1), sizes.size());
  if (failed(axis))
    return failure();
  int64_t block = ctx.getInt("block_size", 0);
  if (own.size() == 1 && block == 0)
    return broadcastAlong(ctx, v, *axis, sizes);
  if (own.size() != sizes.size() || block < 1)
    return ctx.invalid("a scale or zero point " + describe(v) +
                       " must be a scalar, 1-D, or of the operand's rank with a block_size");
  AffineExpr blocks = own[*axis];
  if (failed(ctx.requireEqual(blocks, simplifySize(sizes[*axis].ceilDiv(block)),
                              "a scale and zero point for each block of " + Twine(block) + " elements")))
    return failure();
  own.insert(own.begin() + *axis + 1, b.size(1));
  Sizes wide(own);
  wide[*axis + 1] = b.size(block);
  v = BroadcastOp::create(b, makeType(b.elementOf(v), wide), b.reshape(v, own),
                          llvm::to_vector(llvm::seq<int64_t>(0, wide.size())));
  wide.erase(wide.begin() + *axis);
  wide[*axis] = simplifySize(blocks * block);
  v = b.sliceDim(b.reshape(v, wide), *axis, b.size(0), sizes[*axis]);
  return ctx.castSizes(v, sizes);
}

/// As spreadParameter, for the zero point beside `scale`: if that is one for all, a vector of unknown size is so too.
FailureOr<Value> spreadZeroPoint(NodeContext &ctx, Value v, Value scale, SizesRef sizes) {
  if (ctx.b.rankOf(scale) != 0 || ctx.b.rankOf(v) != 1 || getConstantSize(getSizes(v)[0]))
    return spreadParameter(ctx, v, sizes);
  FailureOr<Value> only = ctx.scalar(v, "the zero point of a scalar scale");
  if (failed(only))
    return failure();
  return ctx.b.broadcastTo(*only, sizes);
}

/// The type of arithmetic with a scale of this type: narrow floats only hold scales.
Type arithmeticType(PrimBuilder &b, Type scale) { return isNarrowFloat(scale) ? Type(b.getF32Type()) : scale; }

} // namespace

Value tc::saturateTo(PrimBuilder &b, Value q, Value zeroPoint, Type to,
                     std::optional<std::pair<double, double>> range) {
  q = b.convert(b.unary<RoundOp>(q), b.accumulatorOf(b.elementOf(q)));
  if (zeroPoint)
    q = b.add(q, b.convert(zeroPoint, b.elementOf(q)));
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  double high = double((uint64_t(1) << (isUnsigned ? width : width - 1)) - 1), low = isUnsigned ? 0 : -high - 1;
  if (range)
    std::tie(low, high) = *range;
  q = b.min(b.max(q, b.splatLike(q, low)), b.splatLike(q, high));
  return b.convert(b.convert(q, b.getI32Type()), to);
}

Value tc::subtractZeroPoint(PrimBuilder &b, Value x, Value zeroPoint) {
  if (isa<IntegerType>(b.elementOf(x)))
    x = b.convert(x, b.getI32Type());
  return zeroPoint ? b.sub(x, b.convert(zeroPoint, b.elementOf(x))) : x;
}

namespace {

/// The element type that attribute `name` tells; `otherwise` where it is absent or 0.
FailureOr<Type> elementTypeOr(NodeContext &ctx, StringRef name, Type otherwise) {
  return ctx.getInt(name, 0) ? readElementType(ctx, name, 0) : FailureOr<Type>(otherwise);
}

LogicalResult quantizeLinear(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), scale = ctx.operand(1), zeroPoint = ctx.operand(2);
  FailureOr<Type> target = zeroPoint ? FailureOr<Type>(b.elementOf(zeroPoint))
                                     : elementTypeOr(ctx, "output_dtype", b.getIntegerType(8, /*isSigned=*/false)),
                  precision =
                      elementTypeOr(ctx, "precision",
                                    isa<IntegerType>(b.elementOf(scale)) ? Type(b.getF32Type())
                                                                         : arithmeticType(b, b.elementOf(scale)));
  if (failed(target) || failed(precision))
    return failure();
  const Type to = *target, compute = *precision;
  if (!isa<FloatType>(compute))
    return ctx.invalid("y_scale must have a float element type, but is " + describe(scale));
  FailureOr<Value> spread = spreadParameter(ctx, scale, getSizes(x)), offset = Value();
  if (zeroPoint)
    offset = spreadZeroPoint(ctx, zeroPoint, scale, getSizes(x));
  if (failed(spread) || failed(offset))
    return failure();
  Value q = b.div(b.convert(x, compute), b.convert(*spread, compute));
  if (isa<IntegerType>(to))
    return ctx.result(saturateTo(b, q, *offset, to));
  // The zero point of 8-bit floats is 0.
  if (*offset && to.getIntOrFloatBitWidth() < 8)
    q = b.add(q, b.convert(*offset, compute));
  return ctx.result(castElements(b, q, to, ctx.getInt("saturate", 1)));
}

LogicalResult dequantizeLinear(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), scale = ctx.operand(1), zeroPoint = ctx.operand(2);
  FailureOr<Type> target = elementTypeOr(ctx, "output_dtype", arithmeticType(b, b.elementOf(scale)));
  if (failed(target))
    return failure();
  const Type to = *target;
  if (!isa<FloatType>(to))
    return ctx.invalid("x_scale must have a float element type, but is " + describe(scale));
  FailureOr<Value> spread = spreadParameter(ctx, scale, getSizes(x)), offset = Value();
  if (zeroPoint && !isa<FloatType>(b.elementOf(x)))
    offset = spreadZeroPoint(ctx, zeroPoint, scale, getSizes(x));
  if (failed(spread) || failed(offset))
    return failure();
  Type compute = b.accumulatorOf(to);
  Value y = b.mul(b.convert(subtractZeroPoint(b, x, *offset), compute), b.convert(*spread, compute));
  return ctx.result(b.convert(y, to));
}

//===--- integer products -----------------------------------------------------------------------------------------===//

/// A parameter of one side of a matrix product: 1-D ones belong to the rows of the left and the columns of the right.
FailureOr<Value> spreadOverMatrix(NodeContext &ctx, Value v, SizesRef sizes, bool isLeft) {
  PrimBuilder &b = ctx.b;
  Sizes own = getSizes(v);
  if (llvm::all_of(own, [&](AffineExpr size) { return getConstantSize(size) == 1; }))
    own.clear();
  if (own.size() > sizes.size())
    return ctx.invalid("a scale or zero point " + describe(v) + " has more dims than its operand");
  if (own.size() == 1 && isLeft && sizes.size() > 1)
    own.push_back(b.size(1));
  return ctx.broadcastOnto(b.reshape(v, own), sizes);
}

/// An operand without its zero point: i32, or f32 where it is of floats, which QLinearMatMul takes.
FailureOr<Value> centred(NodeContext &ctx, size_t operand, size_t zeroPoint, bool isLeft, bool orFloat = false) {
  Value x = ctx.operand(operand), offset = ctx.operand(zeroPoint);
  if (orFloat && ctx.b.isFloat(x))
    x = ctx.b.convert(x, ctx.b.getF32Type());
  if (offset) {
    FailureOr<Value> spread = spreadOverMatrix(ctx, offset, getSizes(x), isLeft);
    if (failed(spread))
      return failure();
    offset = *spread;
  }
  return subtractZeroPoint(ctx.b, x, offset);
}

LogicalResult matMulInteger(NodeContext &ctx) {
  FailureOr<Value> lhs = centred(ctx, 0, 2, /*isLeft=*/true), rhs = centred(ctx, 1, 3, /*isLeft=*/false);
  if (failed(lhs) || failed(rhs))
    return failure();
  FailureOr<Value> result = emitMatMul(ctx, *lhs, *rhs);
  return failed(result) ? failure() : ctx.result(*result);
}

/// acc * xScale * wScale / yScale + yZero, rounded and saturated to the type of yZero. Parameters have the sizes of
/// `acc`.
LogicalResult requantize(NodeContext &ctx, Value acc, Value factors, Value yScale, Value yZero) {
  PrimBuilder &b = ctx.b;
  Value y = b.mul(b.convert(acc, b.getF32Type()), factors);
  y = b.div(y, b.convert(yScale, b.getF32Type()));
  if (Type to = b.elementOf(yZero); isa<FloatType>(to))
    return ctx.result(castElements(b, b.add(y, b.convert(yZero, b.getF32Type())), to));
  return ctx.result(saturateTo(b, y, yZero, b.elementOf(yZero)));
}

LogicalResult qLinearMatMul(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> lhs = centred(ctx, 0, 2, /*isLeft=*/true, /*orFloat=*/true),
                   rhs = centred(ctx, 3, 5, /*isLeft=*/false, /*orFloat=*/true);
  if (failed(lhs) || failed(rhs))
    return failure();
  if (b.isFloat(*lhs) != b.isFloat(*rhs)) {
    lhs = b.convert(*lhs, b.getF32Type());
    rhs = b.convert(*rhs, b.getF32Type());
  }
  FailureOr<Value> acc = emitMatMul(ctx, *lhs, *rhs);
  if (failed(acc))
    return failure();
  Sizes sizes = getSizes(*acc);
  FailureOr<Value> aScale = spreadOverMatrix(ctx, ctx.operand(1), sizes, true),
                   bScale = spreadOverMatrix(ctx, ctx.operand(4), sizes, false),
                   yScale = spreadOverMatrix(ctx, ctx.operand(6), sizes, true),
                   yZero = spreadOverMatrix(ctx, ctx.operand(7), sizes, true);
  if (failed(aScale) || failed(bScale) || failed(yScale) || failed(yZero))
    return failure();
  Type f32 = b.getF32Type();
  return requantize(ctx, *acc, b.mul(b.convert(*aScale, f32), b.convert(*bScale, f32)), *yScale, *yZero);
}

/// A parameter that is one number, or one for each index of dim `axis`.
FailureOr<Value> spreadOverChannels(NodeContext &ctx, Value v, int64_t axis, SizesRef sizes) {
  if (llvm::all_of(getSizes(v), [&](AffineExpr size) { return getConstantSize(size) == 1; }))
    return ctx.b.broadcastTo(ctx.b.reshape(v, {}), sizes);
  return broadcastAlong(ctx, v, axis, sizes);
}

/// The i32 convolution of operands whose zero points are taken off; all but `bias` are numbers of operands.
FailureOr<Value> convOfIntegers(NodeContext &ctx, size_t x, size_t xZero, size_t w, size_t wZero, Value bias) {
  PrimBuilder &b = ctx.b;
  Value input = ctx.operand(x), filter = ctx.operand(w);
  FailureOr<Value> inputZero = Value(), filterZero = Value();
  if (Value zero = ctx.operand(xZero))
    inputZero = spreadOverChannels(ctx, zero, 1, getSizes(input));
  if (Value zero = ctx.operand(wZero))
    filterZero = spreadOverChannels(ctx, zero, 0, getSizes(filter));
  if (failed(inputZero) || failed(filterZero))
    return failure();
  return emitConv(ctx, subtractZeroPoint(b, input, *inputZero), subtractZeroPoint(b, filter, *filterZero), bias);
}

LogicalResult convInteger(NodeContext &ctx) {
  FailureOr<Value> result = convOfIntegers(ctx, 0, 2, 1, 3, Value());
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult qLinearConv(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> acc = convOfIntegers(ctx, 0, 2, 3, 5, ctx.operand(8));
  if (failed(acc))
    return failure();
  Sizes sizes = getSizes(*acc);
  FailureOr<Value> xScale = spreadOverChannels(ctx, ctx.operand(1), 1, sizes),
                   wScale = spreadOverChannels(ctx, ctx.operand(4), 1, sizes),
                   yScale = spreadOverChannels(ctx, ctx.operand(6), 1, sizes),
                   yZero = spreadOverChannels(ctx, ctx.operand(7), 1, sizes);
  if (failed(xScale) || failed(wScale) || failed(yScale) || failed(yZero))
    return failure();
  return requantize(ctx, *acc, b.mul(*xScale, *wScale), *yScale, *yZero);
}

} // namespace

Value tc::castElements(PrimBuilder &b, Value x, Type to, bool saturate, StringRef roundMode) {
  Type from = b.elementOf(x);
  if (from == to)
    return x;
  auto real = dyn_cast<FloatType>(to);
  if (!real) // floats wrap to the narrow integers and saturate to the others
    return b.convert(isa<FloatType>(from) && isNarrowElement(to) ? b.convert(x, b.getI32Type()) : x, to);
  if (!isNarrowFloat(to))
    return b.convert(x, to);
  if (isa<Float8E8M0FNUType>(to))
    return castToExponent(b, x, saturate, roundMode);
  if (!isa<FloatType>(from) || isNarrowFloat(from))
    x = b.convert(x,
                  isa<IntegerType>(from) && from.getIntOrFloatBitWidth() > 16 ? b.getF64Type() : Type(b.getF32Type()));
  if (saturate) {
    double largest = APFloat::getLargest(real.getFloatSemantics()).convertToDouble();
    x = b.binary<MinOp>(b.binary<MaxOp>(x, -largest), largest);
  }
  return b.convert(x, to);
}

void tc::populateONNXQuantization(OpRegistrar &onOp) {
  onOp("Cast", 1, castNode);
  onOp("CastLike", 1, castLike, 2);
  onOp("BitCast", 26, bitCast);
  onOp("QuantizeLinear", 10, quantizeLinear, 2);
  onOp("DequantizeLinear", 10, dequantizeLinear, 2);
  onOp("MatMulInteger", 10, matMulInteger, 2);
  onOp("QLinearMatMul", 10, qLinearMatMul, 8);
  onOp("ConvInteger", 10, convInteger, 2);
  onOp("QLinearConv", 10, qLinearConv, 8);
  onOp.takeComplex(ComplexUse::Moved, {"BitCast"});
}
