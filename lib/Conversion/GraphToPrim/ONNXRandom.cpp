//===- ONNXRandom.cpp - random numbers of ONNX --------------------------------------------------------------------===//
//
// Numbers come from Philox 4x32-10, a function of a key and of the element's position, written in integer arithmetic:
// it fuses like any elementwise op, and gives the same numbers for any number of threads. A node's seed is the key, and
// gives the same numbers in each run. Nodes without one draw from a sequence of the context: its state "tc.random"
// holds a seed, the key, and the number of the run, which stands in the counter beside the element's position and the
// node's number among the random nodes of the model. So runs and nodes differ, and two processes with one seed agree.
// In the body of a loop the iteration's number stands in the counter, too. ONNX leaves open what a seed stands for, so
// that no other runtime's numbers are to be expected.
//
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Random.h"
#include "tcrt/artifact_abi.h"

#include <array>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The key, and the upper half of the counter: constants, or scalars of u32 that the state holds.
struct Key {
  uint32_t low = 0, high = 0;
  Value state; ///< if not null: [seed, run]
  uint32_t stream = 0;
};

/// Seeds are floats but for Dropout's.
Key keyOf(NodeContext &ctx) {
  Attribute seed = ctx.attr("seed");
  if (isa_and_nonnull<IntegerAttr>(seed)) {
    uint64_t bits = uint64_t(ctx.getInt("seed", 0));
    return {uint32_t(bits), uint32_t(bits >> 32), {}, 0};
  }
  if (isa_and_nonnull<FloatAttr>(seed))
    return {uint32_t(APFloat(float(ctx.getFloat("seed", 0))).bitcastToAPInt().getZExtValue()), 0, {}, 0};
  auto type = RankedTensorType::get({2}, ctx.b.getI64Type());
  // From 1 on: the counter of nodes with a seed has 0 there.
  return {0, 0, ReadStateOp::create(ctx.b, type, TCRT_RANDOM_STATE), uint32_t(ctx.takeStream() + 1)};
}

class Philox {
public:
  Philox(NodeContext &ctx) : b(ctx.b), key(keyOf(ctx)), u32(natural(32)), u64(natural(64)) {
    // Of nested loops, the outer ones' numbers times an odd constant, so that small numbers differ.
    for (Value outer : ctx.getIterations()) {
      Value number = b.convert(b.reshape(outer, {}), u64);
      iteration = iteration ? b.binary<AddOp>(b.binary<MulOp>(iteration, double(0x9E3779B1u)), number) : number;
    }
    if (key.state) {
      seed = b.convert(b.take(key.state, 0, 0), u64);
      run = b.convert(b.take(key.state, 0, 1), u64);
    }
  }

  /// Four random words of 32 bits for each of `count` positions, each [count] of ui32.
  std::array<Value, 4> words(AffineExpr count) {
    Value position = b.convert(b.iota(b.getI64Type(), {count}, 0), u64);
    Value zero = b.splat(u32, {count}, 0);
    std::array<Value, 4> c{low(position), high(position), zero, zero};
    if (iteration)
      c[1] = b.binary<XorOp>(c[1], b.broadcastInDims(low(iteration), {count}, {}));
    if (key.state) {
      c[2] = b.broadcastInDims(low(run), {count}, {});
      c[3] = b.splat(u32, {count}, key.stream);
    }
    for (uint32_t round = 0; round < 10; ++round) {
      Value x = product(c[0], 0xD2511F53u), y = product(c[2], 0xCD9E8D57u);
      Value upper = withKey(b.binary<XorOp>(high(y), c[1]), /*isHigh=*/false, round * 0x9E3779B9u);
      c = {upper, low(y), withKey(b.binary<XorOp>(high(x), c[3]), /*isHigh=*/true, round * 0xBB67AE85u), low(x)};
    }
    return c;
  }

  /// Two numbers for each of `count` positions, uniform in [0, 1): multiples of 2^-53 for f64, else of 2^-24, or of
  /// what the narrower `type` can tell from 1. Of type f64 or f32.
  std::pair<Value, Value> uniform(AffineExpr count, FloatType type) {
    std::array<Value, 4> w = words(count);
    int64_t digits = type.getFPMantissaWidth();
    auto number = [&](Value bits, int64_t width) {
      Value v = b.binary<ShrOp>(bits, double(width - digits));
      return b.binary<MulOp>(b.convert(v, b.accumulatorOf(type)), std::ldexp(1.0, -int(digits)));
    };
    if (digits <= 32)
      return {number(w[0], 32), number(w[1], 32)};
    auto join = [&](Value upper, Value lower) {
      return b.binary<OrOp>(b.binary<ShlOp>(b.convert(upper, u64), 32), b.convert(lower, u64));
    };
    return {number(join(w[0], w[1]), 64), number(join(w[2], w[3]), 64)};
  }

  /// Box and Muller's method.
  Value normal(AffineExpr count, FloatType type) {
    auto [u, v] = uniform(count, type.getWidth() < 32 ? FloatType(b.getF32Type()) : type);
    Value radius = b.unary<SqrtOp>(b.binary<MulOp>(b.unary<LogOp>(b.sub(b.splatLike(u, 1), u)), -2));
    return b.mul(radius, b.unary<CosOp>(b.binary<MulOp>(v, 2 * M_PI)));
  }

private:
  Type natural(unsigned width) { return b.getIntegerType(width, /*isSigned=*/false); }
  Value low(Value v) { return b.convert(v, u32); }
  Value high(Value v) { return b.convert(b.binary<ShrOp>(v, 32), u32); }
  Value product(Value v, uint32_t factor) { return b.binary<MulOp>(b.convert(v, u64), double(factor)); }
  /// x xor a word of the key plus `weyl`, modulo 2^32.
  Value withKey(Value x, bool isHigh, uint32_t weyl) {
    if (!key.state)
      return b.binary<XorOp>(x, double((isHigh ? key.high : key.low) + weyl));
    Value word = b.convert(isHigh ? high(seed) : low(seed), u64);
    Value sum = low(b.binary<AddOp>(word, double(weyl)));
    return b.binary<XorOp>(x, b.broadcastInDims(sum, getSizes(x), {}));
  }

  PrimBuilder &b;
  Key key;
  Type u32, u64;
  Value seed, run; ///< scalars of u64, with a state
  Value iteration; ///< of u64, in a loop
};

FailureOr<FloatType> floatOf(NodeContext &ctx, Type type) {
  auto f = dyn_cast<FloatType>(type);
  if (!f || f.getWidth() < 16)
    return ctx.invalid("dtype must be one of f16, bf16, f32 and f64");
  return f;
}

/// Numbers of `sizes` from the node's distribution.
LogicalResult emitRandom(NodeContext &ctx, SizesRef sizes, Type type, bool isNormal) {
  FailureOr<FloatType> element = floatOf(ctx, type);
  if (failed(element))
    return failure();
  return ctx.result(isNormal ? emitNormal(ctx, sizes, *element, ctx.getFloat("mean", 0), ctx.getFloat("scale", 1))
                             : emitUniform(ctx, sizes, *element, ctx.getFloat("low", 0), ctx.getFloat("high", 1)));
}

NodeHandler random(bool isNormal) {
  return [isNormal](NodeContext &ctx) -> LogicalResult {
    FailureOr<Type> type = readElementType(ctx, "dtype", /*defaultType=*/1);
    auto shape = ctx.getInts("shape");
    if (failed(type))
      return failure();
    if (!shape || llvm::any_of(*shape, [](int64_t n) { return n < 0; }))
      return ctx.invalid("shape is missing or has a negative size");
    return emitRandom(ctx, ctx.b.sizes(*shape), *type, isNormal);
  };
}

NodeHandler randomLike(bool isNormal) {
  return [isNormal](NodeContext &ctx) -> LogicalResult {
    Value x = ctx.operand(0);
    Type type = ctx.b.elementOf(x);
    if (ctx.hasAttr("dtype")) {
      FailureOr<Type> given = readElementType(ctx, "dtype", 1);
      if (failed(given))
        return failure();
      type = *given;
    }
    if (!isa<FloatType>(type))
      return ctx.invalid("needs a dtype for the operand " + describe(x) + ": random numbers are floats");
    return emitRandom(ctx, getSizes(x), type, isNormal);
  };
}

/// 1 with the probability that the operand says. (The function body in ONNX's schema gives 1 minus that.)
LogicalResult bernoulli(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Type type = b.elementOf(x), compute = b.accumulatorOf(type);
  if (ctx.hasAttr("dtype")) {
    FailureOr<Type> given = readElementType(ctx, "dtype", 1);
    if (failed(given))
      return failure();
    type = *given;
  }
  Sizes sizes = getSizes(x);
  Value number = Philox(ctx).uniform(product(b.getContext(), sizes), cast<FloatType>(compute)).first;
  Value hit = b.compare(CompareKind::LT, b.reshape(number, sizes), b.convert(x, compute));
  return ctx.result(b.convert(hit, type));
}

/// Row i of the result holds numbers of classes; class j comes with a probability proportional to exp(input[i, j]).
/// A number in [0, 1) selects the class in whose part of the cumulative sum it falls.
LogicalResult multinomial(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Type compute = b.accumulatorOf(b.elementOf(x));
  FailureOr<Type> type = readElementType(ctx, "dtype", /*defaultType=*/6);
  int64_t samples = ctx.getInt("sample_size", 1);
  if (failed(type))
    return failure();
  if (!isa<IntegerType>(*type))
    return ctx.invalid("needs an integer dtype");
  Sizes sizes = getSizes(x), out{sizes[0], b.size(samples)}, wide{sizes[0], b.size(samples), sizes[1]};
  Value logits = b.convert(x, compute);
  Value most = b.broadcastTo(b.reduce(ReduceKind::Max, logits, {1}, /*keepDims=*/true), sizes);
  Value weights = b.unary<ExpOp>(b.sub(logits, most));
  Value sums =
      ScanOp::create(b, weights.getType(), ReduceKind::Sum, weights, 1, /*exclusive=*/false, /*reverse=*/false);
  Value total = b.reduce(ReduceKind::Max, sums, {1});
  Value number = b.reshape(Philox(ctx).uniform(product(b.getContext(), out), cast<FloatType>(compute)).first, out);
  Value target = b.mul(number, b.broadcastInDims(total, out, {0}));
  // The classes before: those whose sum is not above the target, though below the total, so that a class of weight 0 is
  // never selected by rounding.
  Value passed = b.broadcastInDims(sums, wide, {0, 2});
  Value before = b.binary<AndOp>(b.compare(CompareKind::LE, passed, b.broadcastInDims(target, wide, {0, 1})),
                                 b.compare(CompareKind::LT, passed, b.broadcastInDims(total, wide, {0})));
  return ctx.result(b.convert(b.reduce(ReduceKind::Sum, b.convert(before, b.getI64Type()), {2}), *type));
}

/// A 0-D tensor of `type` from operand i, or `otherwise`.
FailureOr<Value> scalarOperand(NodeContext &ctx, size_t i, Type type, double otherwise) {
  PrimBuilder &b = ctx.b;
  if (!ctx.has(i))
    return b.scalar(type, otherwise);
  return ctx.scalar(b.convert(ctx.operand(i), type), "operand " + Twine(i));
}

/// In training an element is dropped with probability `ratio`; what is left is scaled by 1 / (1 - ratio). Whether it is
/// training is an attribute before opset 7, never so up to 11, and an operand since 12.
LogicalResult dropout(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type i1 = b.getI1Type();
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  Type compute = b.accumulatorOf(b.elementOf(x)), maskType = ctx.opset() < 10 ? b.elementOf(x) : Type(i1);
  Value training = b.scalar(i1, ctx.opset() < 7 && !ctx.getInt("is_test", 0));
  Value ratio = b.scalar(compute, ctx.getFloat("ratio", 0.5));
  if (ctx.opset() >= 12) {
    FailureOr<Value> givenRatio = scalarOperand(ctx, 1, compute, 0.5), givenMode = scalarOperand(ctx, 2, i1, 0);
    if (failed(givenRatio) || failed(givenMode))
      return failure();
    ratio = *givenRatio;
    training = *givenMode;
  }
  std::optional<double> mode = ctx.constantScalar(training), known = ctx.constantScalar(ratio);
  if (mode == 0 || known == 0) {
    (void)ctx.set(1, b.splat(maskType, sizes, 1));
    return ctx.result(x);
  }
  Value number = Philox(ctx).uniform(product(b.getContext(), sizes), cast<FloatType>(compute)).first;
  auto all = [&](Value v) { return b.broadcastTo(v, sizes); };
  Value kept = b.compare(CompareKind::GE, b.reshape(number, sizes), all(ratio));
  kept = b.binary<OrOp>(kept, all(b.unary<NotOp>(training)));
  Value scale = b.unary<ReciprocalOp>(b.sub(b.splatLike(ratio, 1), ratio));
  scale = b.select(training, scale, b.splatLike(scale, 1));
  Value scaled = b.convert(b.mul(b.convert(x, compute), all(scale)), b.elementOf(x));
  (void)ctx.set(1, b.convert(kept, maskType));
  return ctx.result(b.select(kept, scaled, b.splatLike(x, 0)));
}

} // namespace

Value tc::emitUniform(NodeContext &ctx, SizesRef sizes, FloatType type, double low, double high) {
  PrimBuilder &b = ctx.b;
  Value v = Philox(ctx).uniform(product(b.getContext(), sizes), type).first;
  v = b.binary<AddOp>(b.binary<MulOp>(v, high - low), low);
  return b.reshape(b.convert(v, type), sizes);
}

Value tc::emitNormal(NodeContext &ctx, SizesRef sizes, FloatType type, double mean, double scale) {
  PrimBuilder &b = ctx.b;
  Value v = Philox(ctx).normal(product(b.getContext(), sizes), type);
  v = b.binary<AddOp>(b.binary<MulOp>(v, scale), mean);
  return b.reshape(b.convert(v, type), sizes);
}

void tc::populateONNXRandom(OpRegistrar &onOp) {
  onOp("RandomNormal", 1, random(/*isNormal=*/true), 0);
  onOp("RandomNormalLike", 1, randomLike(/*isNormal=*/true));
  onOp("RandomUniform", 1, random(/*isNormal=*/false), 0);
  onOp("RandomUniformLike", 1, randomLike(/*isNormal=*/false));
  onOp.takeComplex(ComplexUse::Moved, {"RandomNormalLike", "RandomUniformLike"});
  onOp("Bernoulli", 15, bernoulli);
  onOp("Multinomial", 7, multinomial);
  onOp("Dropout", 1, dropout);
}
