//===- Elementwise.cpp - unary, binary, compare, select, convert --------------------------------------------------===//
//
// Floats are computed in double and rounded once; integers in 64 bits and wrapped to their width.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include "tc/Dialect/Prim/Utils/Compare.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

double tc::prim::interpreter::maxNaN(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a;
}
double tc::prim::interpreter::minNaN(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a;
}

namespace {

/// Width and sign of the integers that a function is computed on.
struct IntKind {
  unsigned width;
  bool isUnsigned;
};
IntKind intKind(const Tensor &tensor) {
  return {tensor.elementType.getIntOrFloatBitWidth(), isUnsignedElement(tensor.elementType)};
}

/// Marks the element class for which an op means nothing.
struct Undefined {};
constexpr Undefined undefined;

template <typename OpTy, typename FloatFn, typename IntFn>
void addUnary(Registry &registry, FloatFn onFloat, IntFn onInt) {
  registry.add<OpTy>([=](OpTy op, const Call &call) -> llvm::Expected<Tensor> {
    if (call.isFloat(0)) {
      if constexpr (!std::is_same_v<FloatFn, Undefined>) {
        std::vector<double> values = toDoubles(call.operands[0]);
        for (double &value : values)
          value = onFloat(value);
        return call.makeDoubles(values);
      }
      return call.fail("is not defined on floats");
    }
    if constexpr (!std::is_same_v<IntFn, Undefined>) {
      std::vector<int64_t> values = toInts(call.operands[0]);
      IntKind kind = intKind(call.operands[0]);
      for (int64_t &value : values)
        value = onInt(value, kind);
      return call.makeInts(values);
    }
    return call.fail("is not defined on integers");
  });
}

template <typename OpTy, typename FloatFn, typename IntFn>
void addBinary(Registry &registry, FloatFn onFloat, IntFn onInt) {
  registry.add<OpTy>([=](OpTy op, const Call &call) -> llvm::Expected<Tensor> {
    if (call.isFloat(0)) {
      if constexpr (!std::is_same_v<FloatFn, Undefined>) {
        std::vector<double> lhs = toDoubles(call.operands[0]), rhs = toDoubles(call.operands[1]);
        for (size_t i = 0; i < lhs.size(); ++i)
          lhs[i] = onFloat(lhs[i], rhs[i]);
        return call.makeDoubles(lhs);
      }
      return call.fail("is not defined on floats");
    }
    if constexpr (!std::is_same_v<IntFn, Undefined>) {
      std::vector<int64_t> lhs = toInts(call.operands[0]), rhs = toInts(call.operands[1]);
      IntKind kind = intKind(call.operands[0]);
      for (size_t i = 0; i < lhs.size(); ++i)
        lhs[i] = onInt(lhs[i], rhs[i], kind);
      return call.makeInts(lhs);
    }
    return call.fail("is not defined on integers");
  });
}

int64_t divide(int64_t a, int64_t b, IntKind kind) {
  if (b == 0)
    return 0;
  if (kind.isUnsigned)
    return int64_t(uint64_t(a) / uint64_t(b));
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b; // MIN / -1 wraps
}

int64_t remainder(int64_t a, int64_t b, IntKind kind) {
  if (b == 0 || (b == -1 && !kind.isUnsigned))
    return 0;
  return kind.isUnsigned ? int64_t(uint64_t(a) % uint64_t(b)) : a % b;
}

/// Wraps; with a negative exponent only 1 and -1 give anything but 0.
int64_t power(int64_t base, int64_t exponent, IntKind kind) {
  if (exponent < 0 && !kind.isUnsigned)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, square = uint64_t(base);
  for (uint64_t left = uint64_t(exponent); left; left >>= 1, square *= square)
    if (left & 1)
      result *= square;
  return int64_t(result);
}

int64_t shiftLeft(int64_t a, int64_t b, IntKind kind) {
  return uint64_t(b) >= kind.width ? 0 : int64_t(uint64_t(a) << b);
}
int64_t shiftRight(int64_t a, int64_t b, IntKind kind) {
  if (uint64_t(b) >= kind.width)
    return !kind.isUnsigned && a < 0 ? -1 : 0;
  return kind.isUnsigned ? int64_t(uint64_t(a) >> b) : a >> b;
}

Tensor evalCompare(CompareOp op, const Call &call) {
  std::vector<int64_t> result(call.operands[0].numElements());
  if (call.isFloat(0)) {
    std::vector<double> lhs = toDoubles(call.operands[0]), rhs = toDoubles(call.operands[1]);
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = holds(op.getKind(), lhs[i], rhs[i]);
    return call.makeInts(result);
  }
  std::vector<int64_t> lhs = toInts(call.operands[0]), rhs = toInts(call.operands[1]);
  bool isUnsigned = intKind(call.operands[0]).isUnsigned;
  for (size_t i = 0; i < result.size(); ++i)
    result[i] =
        isUnsigned ? holds(op.getKind(), uint64_t(lhs[i]), uint64_t(rhs[i])) : holds(op.getKind(), lhs[i], rhs[i]);
  return call.makeInts(result);
}

template <typename OpTy, typename Test> void addTest(Registry &registry, Test test) {
  registry.add<OpTy>([=](OpTy op, const Call &call) -> Tensor {
    std::vector<int64_t> result(call.operands[0].numElements(), 0);
    if (call.isFloat(0)) {
      std::vector<double> values = toDoubles(call.operands[0]);
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = test(values[i]);
    }
    return call.makeInts(result);
  });
}

Tensor evalSelect(SelectOp op, const Call &call) {
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  int64_t elementBytes = getElementBytes(call.elementTypes[0]);
  const char *condition = call.operands[0].bytes.get();
  for (int64_t i = 0, count = result.numElements(); i < count; ++i)
    std::memcpy(bytes + i * elementBytes, call.operands[condition[i] ? 1 : 2].bytes.get() + i * elementBytes,
                elementBytes);
  return result;
}

/// Truncates toward zero; out of range saturates, NaN gives 0.
int64_t saturate(double value, IntKind kind) {
  if (std::isnan(value))
    return 0;
  unsigned bits = kind.isUnsigned ? kind.width : kind.width - 1;
  double limit = std::ldexp(1.0, int(bits));
  if (value >= limit)
    return kind.isUnsigned ? int64_t(~uint64_t(0) >> (64 - kind.width)) : int64_t((uint64_t(1) << bits) - 1);
  if (kind.isUnsigned)
    return value <= 0 ? 0 : int64_t(uint64_t(value));
  return value < -limit ? -int64_t((uint64_t(1) << bits) - 1) - 1 : int64_t(value);
}

Tensor evalConvert(ConvertOp op, const Call &call) {
  const Tensor &operand = call.operands[0];
  Type to = call.elementTypes[0];
  if (operand.elementType == to)
    return operand;
  if (!call.isFloat(0)) {
    std::vector<int64_t> values = toInts(operand);
    if (to.isInteger(1))
      for (int64_t &value : values)
        value = value != 0;
    if (isa<IntegerType>(to))
      return call.makeInts(values);
    std::vector<double> reals(values.size());
    if (!to.isF64())
      return call.makeDoubles(toDoubles(operand)); // rounds once, as toDoubles rounds to odd
    for (size_t i = 0; i < values.size(); ++i)
      reals[i] = isUnsignedElement(operand.elementType) ? double(uint64_t(values[i])) : double(values[i]);
    return call.makeDoubles(reals);
  }
  if (isa<FloatType>(to))
    return convertFloats(operand, to);
  std::vector<double> values = toDoubles(operand);
  std::vector<int64_t> result(values.size());
  IntKind kind{to.getIntOrFloatBitWidth(), isUnsignedElement(to)};
  for (size_t i = 0; i < values.size(); ++i)
    result[i] = to.isInteger(1) ? values[i] != 0 : saturate(values[i], kind);
  return call.makeInts(result);
}

Tensor evalBitcast(BitcastOp op, const Call &call) {
  // Double evaluation holds floats in f64: the bits are those of the declared type.
  auto elementOf = [](Value v) { return cast<RankedTensorType>(v.getType()).getElementType(); };
  Tensor tensor = call.operands[0];
  if (call.isFloat(0))
    tensor = convertFloats(tensor, elementOf(op.getOperand()));
  tensor.elementType = elementOf(op.getResult());
  return isa<FloatType>(tensor.elementType) ? convertFloats(tensor, call.elementTypes[0]) : tensor;
}

void addUnaryHandlers(Registry &r) {
  auto same = [](int64_t v, IntKind) { return v; };
  addUnary<AbsOp>(
      r, [](double v) { return std::fabs(v); },
      [](int64_t v, IntKind k) { return v < 0 && !k.isUnsigned ? int64_t(0 - uint64_t(v)) : v; });
  addUnary<NegOp>(r, [](double v) { return -v; }, [](int64_t v, IntKind) { return int64_t(0 - uint64_t(v)); });
  addUnary<SignOp>(
      r, [](double v) { return v > 0   ? 1.0
                               : v < 0 ? -1.0
                                       : v; },
      [](int64_t v, IntKind k) {
        return int64_t(v == 0 ? 0 : v > 0 || k.isUnsigned ? 1 : -1);
      });
  addUnary<CeilOp>(r, [](double v) { return std::ceil(v); }, same);
  addUnary<FloorOp>(r, [](double v) { return std::floor(v); }, same);
  addUnary<RoundOp>(r, [](double v) { return std::nearbyint(v); }, same);
  addUnary<TruncOp>(r, [](double v) { return std::trunc(v); }, same);
  addUnary<SqrtOp>(r, [](double v) { return std::sqrt(v); }, undefined);
  addUnary<RsqrtOp>(r, [](double v) { return 1 / std::sqrt(v); }, undefined);
  addUnary<ReciprocalOp>(r, [](double v) { return 1 / v; }, undefined);
  addUnary<ExpOp>(r, [](double v) { return std::exp(v); }, undefined);
  addUnary<Expm1Op>(r, [](double v) { return std::expm1(v); }, undefined);
  addUnary<LogOp>(r, [](double v) { return std::log(v); }, undefined);
  addUnary<Log1pOp>(r, [](double v) { return std::log1p(v); }, undefined);
  addUnary<SinOp>(r, [](double v) { return std::sin(v); }, undefined);
  addUnary<CosOp>(r, [](double v) { return std::cos(v); }, undefined);
  addUnary<TanOp>(r, [](double v) { return std::tan(v); }, undefined);
  addUnary<AsinOp>(r, [](double v) { return std::asin(v); }, undefined);
  addUnary<AcosOp>(r, [](double v) { return std::acos(v); }, undefined);
  addUnary<AtanOp>(r, [](double v) { return std::atan(v); }, undefined);
  addUnary<SinhOp>(r, [](double v) { return std::sinh(v); }, undefined);
  addUnary<CoshOp>(r, [](double v) { return std::cosh(v); }, undefined);
  addUnary<TanhOp>(r, [](double v) { return std::tanh(v); }, undefined);
  addUnary<AsinhOp>(r, [](double v) { return std::asinh(v); }, undefined);
  addUnary<AcoshOp>(r, [](double v) { return std::acosh(v); }, undefined);
  addUnary<AtanhOp>(r, [](double v) { return std::atanh(v); }, undefined);
  addUnary<ErfOp>(r, [](double v) { return std::erf(v); }, undefined);
  addUnary<LogisticOp>(r, [](double v) { return 1 / (1 + std::exp(-v)); }, undefined);
  addUnary<NotOp>(r, undefined, [](int64_t v, IntKind) { return ~v; });
}

void addBinaryHandlers(Registry &r) {
  addBinary<AddOp>(
      r, [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b, IntKind) { return int64_t(uint64_t(a) + uint64_t(b)); });
  addBinary<SubOp>(
      r, [](double a, double b) { return a - b; },
      [](int64_t a, int64_t b, IntKind) { return int64_t(uint64_t(a) - uint64_t(b)); });
  addBinary<MulOp>(
      r, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b, IntKind) { return int64_t(uint64_t(a) * uint64_t(b)); });
  addBinary<DivOp>(r, [](double a, double b) { return a / b; }, divide);
  addBinary<RemOp>(r, [](double a, double b) { return std::fmod(a, b); }, remainder);
  addBinary<PowOp>(r, [](double a, double b) { return std::pow(a, b); }, power);
  addBinary<Atan2Op>(r, [](double a, double b) { return std::atan2(a, b); }, undefined);
  addBinary<MaxOp>(r, maxNaN, [](int64_t a, int64_t b, IntKind k) {
    return (k.isUnsigned ? uint64_t(a) < uint64_t(b) : a < b) ? b : a;
  });
  addBinary<MinOp>(r, minNaN, [](int64_t a, int64_t b, IntKind k) {
    return (k.isUnsigned ? uint64_t(b) < uint64_t(a) : b < a) ? b : a;
  });
  addBinary<AndOp>(r, undefined, [](int64_t a, int64_t b, IntKind) { return a & b; });
  addBinary<OrOp>(r, undefined, [](int64_t a, int64_t b, IntKind) { return a | b; });
  addBinary<XorOp>(r, undefined, [](int64_t a, int64_t b, IntKind) { return a ^ b; });
  addBinary<ShlOp>(r, undefined, shiftLeft);
  addBinary<ShrOp>(r, undefined, shiftRight);
}

} // namespace

void tc::prim::interpreter::addElementwiseHandlers(Registry &registry) {
  addUnaryHandlers(registry);
  addBinaryHandlers(registry);
  registry.add<CompareOp>(evalCompare);
  addTest<IsNanOp>(registry, [](double v) { return std::isnan(v); });
  addTest<IsInfOp>(registry, [](double v) { return std::isinf(v); });
  registry.add<SelectOp>(evalSelect);
  registry.add<ConvertOp>(evalConvert);
  registry.add<BitcastOp>(evalBitcast);
}
