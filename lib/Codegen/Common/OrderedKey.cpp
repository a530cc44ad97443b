//===- OrderedKey.cpp - elements as integers in their order -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/OrderedKey.h"

#include "Common/EmitterHelpers.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

bool tc::codegen::hasOrderedKey(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.getWidth() <= 64;
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
}

unsigned tc::codegen::orderedKeyBits(Type element) {
  return std::max<unsigned>(8, llvm::PowerOf2Ceil(element.getIntOrFloatBitWidth()));
}

Type tc::codegen::orderedKeyType(Type element) {
  return IntegerType::get(element.getContext(), orderedKeyBits(element) == 64 ? 64 : 32);
}

Value tc::codegen::orderedKey(Emitter &e, Type element, bool isDescending, Value x) {
  OpBuilder &b = e.builder();
  const Location loc = e.loc();
  const unsigned bits = orderedKeyBits(element);
  const Type result = orderedKeyType(element);
  auto typeLike = [&](Value v, Type of) { return isa<VectorType>(v.getType()) ? Type(e.vectorOf(of)) : of; };
  auto like = [&](Value v, int64_t value) {
    auto type = cast<IntegerType>(getElementTypeOrSelf(v.getType()));
    APInt number(type.getWidth(), uint64_t(value), /*isSigned=*/true, /*implicitTrunc=*/true);
    Value scalar = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, number));
    return isa<VectorType>(v.getType()) ? e.broadcast(scalar) : scalar;
  };
  auto extend = [&](Value v, bool isSigned) -> Value {
    if (getElementTypeOrSelf(v.getType()) == result)
      return v;
    if (isSigned)
      return arith::ExtSIOp::create(b, loc, typeLike(v, result), v);
    return arith::ExtUIOp::create(b, loc, typeLike(v, result), v);
  };
  Value key;
  if (auto type = dyn_cast<FloatType>(element)) {
    // Sign and magnitude to two's complement, where -0 is 0; NaN, of any sign, above infinity.
    const unsigned width = type.getWidth();
    const int64_t most = int64_t((uint64_t(1) << (width - 1)) - 1);
    const APInt infinity = APFloat::getInf(type.getFloatSemantics()).bitcastToAPInt();
    const Type integer = IntegerType::get(element.getContext(), width);
    Value pattern = arith::BitcastOp::create(b, loc, typeLike(x, integer), x);
    Value magnitude = arith::AndIOp::create(b, loc, pattern, like(pattern, most));
    Value sign = arith::ShRSIOp::create(b, loc, pattern, like(pattern, width - 1));
    Value number = arith::SubIOp::create(b, loc, arith::XOrIOp::create(b, loc, magnitude, sign), sign);
    Value isNaN = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, magnitude,
                                        like(pattern, int64_t(infinity.getZExtValue())));
    key = extend(arith::SelectOp::create(b, loc, isNaN, like(pattern, most), number).getResult(), /*isSigned=*/true);
  } else {
    const bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
    key = extend(x, !isUnsigned);
    if (isUnsigned)
      key = arith::SubIOp::create(b, loc, key, like(key, int64_t(uint64_t(1) << (bits - 1))));
  }
  return isDescending ? Value(arith::XOrIOp::create(b, loc, key, like(key, -1))) : key;
}
