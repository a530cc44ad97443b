//===- ExpandNarrowTypes.cpp - 8-bit floats and 4- and 2-bit elements as bytes ------------------------------------===//
//
// Behind this pass no fused code has narrow elements (prim::isNarrowElement): floats become their bits in ui8, integers
// become i8 or ui8, one element per byte. Inputs, results and large constants keep their packed form and are taken
// apart where they are read:
//
//   %y = prim.convert %x : tensor<6xi4> -> tensor<6xf32>
// =>
//   %bytes = prim.storage %x : tensor<6xi4> -> tensor<3xui8>
//   ... two shifts per element, fused into the reader ...     : tensor<6xi8>
//   %y = prim.convert %e : tensor<6xi8> -> tensor<6xf32>
//
// A float is decoded by a table of its 2^bits values and encoded by integer arithmetic on the bits of an f32 or f64,
// to nearest even; arithmetic on narrow floats is done in f32.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Interpreter/Tensor.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/TC/IR/TC.h"

namespace tc::prim {
#define GEN_PASS_DEF_EXPANDNARROWTYPESPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

Type elementOf(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type ? type.getElementType() : Type();
}

bool isNarrow(Value v) {
  Type element = elementOf(v);
  return element && isNarrowElement(element);
}

/// The type of one element that has a byte for itself.
Type byteOf(Type narrow) {
  bool isSigned = isa<IntegerType>(narrow) && !narrow.isUnsignedInteger();
  return IntegerType::get(narrow.getContext(), 8, isSigned ? IntegerType::Signless : IntegerType::Unsigned);
}

/// A splat of unsigned integers.
Value splatBits(PrimBuilder &b, Value like, uint64_t bits) {
  Type element = elementOf(like);
  return SplatOp::create(b, like.getType(), b.getIntegerAttr(element, APInt(element.getIntOrFloatBitWidth(), bits)));
}
template <typename Op> Value withBits(PrimBuilder &b, Value v, uint64_t bits) {
  return b.binary<Op>(v, splatBits(b, v, bits));
}

//===--- packed elements ------------------------------------------------------------------------------------------===//

/// [0, width, 2 * width, ...] along the last of two dims.
Value bitPositions(PrimBuilder &b, Type element, SizesRef sizes, unsigned width) {
  Value position = b.iota(element, sizes, 1);
  return b.mul(position, b.splatLike(position, width));
}

/// One byte per element from the storage of a tensor of `sizes`.
Value unpack(PrimBuilder &b, Value storage, Type narrow, SizesRef sizes) {
  unsigned width = narrow.getIntOrFloatBitWidth();
  if (width > 4)
    return storage;
  AffineExpr bytes = getSizes(storage).front();
  Sizes split{bytes, b.size(8 / width)};
  Value v = b.convert(b.broadcastInDims(storage, split, {0}), byteOf(narrow));
  // To the top of the byte, then down, which extends the sign.
  Value above = b.sub(b.splatLike(v, 8 - width), bitPositions(b, elementOf(v), split, width));
  v = b.binary<ShlOp>(v, above);
  v = b.binary<ShrOp>(v, b.splatLike(v, 8 - width));
  v = b.reshape(v, {bytes * (8 / width)});
  return b.reshape(b.sliceDim(v, 0, b.size(0), product(b.getContext(), sizes)), sizes);
}

Value pack(PrimBuilder &b, Value v, Type narrow) {
  unsigned width = narrow.getIntOrFloatBitWidth();
  if (width > 4)
    return v;
  auto storage = getStorageType(withElementType(v.getType(), narrow));
  AffineExpr bytes = getSizes(storage).front();
  Sizes split{bytes, b.size(8 / width)};
  v = b.convert(b.reshape(v, {product(b.getContext(), getSizes(v))}), storage.getElementType());
  v = b.pad(v, b.scalar(elementOf(v), 0), {b.size(0)}, {bytes * (8 / width)});
  v = withBits<AndOp>(b, b.reshape(v, split), (1u << width) - 1);
  v = b.binary<ShlOp>(v, bitPositions(b, elementOf(v), split, width));
  Value result = b.take(v, 1, 0);
  for (unsigned i = 1; i < 8 / width; ++i)
    result = b.binary<OrOp>(result, b.take(v, 1, i));
  return result;
}

/// Integers wrapped to the width of `narrow`.
Value wrap(PrimBuilder &b, Value v, Type narrow) {
  v = b.convert(v, byteOf(narrow));
  double unused = 8 - narrow.getIntOrFloatBitWidth();
  return b.binary<ShrOp>(b.binary<ShlOp>(v, unused), unused);
}

//===--- narrow floats --------------------------------------------------------------------------------------------===//

/// f32 values of the codes `v`.
Value decode(PrimBuilder &b, Value v, FloatType type) {
  unsigned count = 1u << type.getWidth();
  std::vector<double> values(count);
  bool lost;
  for (unsigned code = 0; code < count; ++code) {
    APFloat value(type.getFloatSemantics(), APInt(type.getWidth(), code));
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    values[code] = value.convertToDouble();
  }
  if (type.getWidth() < 8) // what a caller leaves in the other bits does not count
    v = withBits<AndOp>(b, v, count - 1);
  Value table = prim::ConstantOp::create(b, toAttribute(fromDoubles(b.getF32Type(), {int64_t(count)}, values)));
  return GatherOp::create(b, table, b.convert(v, b.getI32Type()), 0);
}

/// Codes of floats or integers, to nearest even. Overflow gives infinity, or NaN where the format has none, or the
/// largest number where it has neither; the NaN of a format of numbers only is -0.
Value encode(PrimBuilder &b, Value x, FloatType type) {
  using CK = CompareKind;
  Type from = elementOf(x);
  unsigned fromBits = from.getIntOrFloatBitWidth();
  bool isDouble = isa<FloatType>(from) ? fromBits == 64 : fromBits > 16;
  x = b.convert(x, isDouble ? Type(b.getF64Type()) : b.getF32Type());
  unsigned width = isDouble ? 64 : 32, mantissa = isDouble ? 52 : 23, bias = isDouble ? 1023 : 127;
  Value bits = BitcastOp::create(b, x, IntegerType::get(b.getContext(), width, IntegerType::Unsigned)).getResult();
  Value sign = withBits<ShrOp>(b, bits, width - 1);
  Value magnitude = withBits<AndOp>(b, bits, (uint64_t(1) << (width - 1)) - 1);

  const llvm::fltSemantics &format = type.getFloatSemantics();
  auto codeOf = [](const APFloat &value) { return value.bitcastToAPInt().getZExtValue(); };
  unsigned kept = APFloat::semanticsPrecision(format) - 1;
  int minExponent = APFloat::semanticsMinExponent(format);
  // Normal numbers: half of the last place that is kept, or one less where that place is 0; then the exponent's bias.
  unsigned cut = mantissa - kept;
  Value last = withBits<AndOp>(b, withBits<ShrOp>(b, magnitude, cut), 1);
  Value rounded = b.add(withBits<AddOp>(b, magnitude, (uint64_t(1) << (cut - 1)) - 1), last);
  Value code = withBits<SubOp>(b, withBits<ShrOp>(b, rounded, cut), uint64_t(int(bias) + minExponent - 1) << kept);
  // Subnormal ones are multiples of one quantum.
  Value absolute = b.unary<AbsOp>(x);
  Value multiple = b.unary<RoundOp>(b.binary<MulOp>(absolute, std::ldexp(1.0, int(kept) - minExponent)));
  code =
      b.select(b.compare(CK::LT, absolute, std::ldexp(1.0, minExponent)), b.convert(multiple, elementOf(bits)), code);

  uint64_t largest = codeOf(APFloat::getLargest(format)), negativeZero = codeOf(APFloat::getZero(format, true));
  bool hasNaN = APFloat::semanticsHasNaN(format), signedZero = negativeZero != 0;
  uint64_t nan = hasNaN ? codeOf(APFloat::getQNaN(format)) : negativeZero;
  uint64_t beyond = APFloat::semanticsHasInf(format) ? codeOf(APFloat::getInf(format)) : hasNaN ? nan : largest;
  Value isBeyond = b.compare(CK::GT, code, splatBits(b, code, largest));
  Value isNaN = IsNanOp::create(b, withElementType(x.getType(), b.getI1Type()), x);
  code = b.select(isBeyond, splatBits(b, code, beyond), code);
  Value negative = b.binary<OrOp>(code, withBits<ShlOp>(b, sign, type.getWidth() - 1));
  if (!signedZero) // the code of -0 is that of NaN
    negative = b.select(b.compare(CK::EQ, code, splatBits(b, code, 0)), code, negative);
  code = b.select(isNaN, splatBits(b, code, nan), negative);
  return b.convert(code, byteOf(type));
}

//===--- the walk -------------------------------------------------------------------------------------------------===//

class Expander {
public:
  explicit Expander(func::FuncOp func) : func(func) {}

  LogicalResult run() {
    SmallVector<Operation *> ops;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != func)
        ops.push_back(op);
    });
    if (llvm::none_of(func.getArguments(), isNarrow) &&
        llvm::none_of(ops, [](Operation *op) { return llvm::any_of(op->getResults(), isNarrow); }))
      return success();
    expandArguments();
    for (Operation *op : ops)
      if (failed(expand(op)))
        return failure();
    return success();
  }

private:
  /// The narrow type that `v` had, or null.
  Type narrowOf(Value v) const { return narrow.lookup(v); }

  void retype(Value v) {
    if (!isNarrow(v))
      return;
    Type element = elementOf(v);
    v.setType(withElementType(v.getType(), byteOf(element)));
    narrow[v] = element;
  }

  void expandArguments() {
    Block &entry = func.front();
    if (entry.empty())
      return;
    for (BlockArgument argument : entry.getArguments())
      if (isNarrow(argument))
        replaceByBytes(argument, &entry.front());
  }

  PrimBuilder builderBefore(Operation *op) {
    rewriter.setInsertionPoint(op);
    return PrimBuilder(rewriter, op);
  }

  void replace(Operation *op, Value value, Type element) {
    // One value has one meaning: bytes that are read as something else get a name of their own.
    if (Type known = narrowOf(value); known && known != element) {
      PrimBuilder b(builderBefore(op));
      value = ConvertOp::create(b, value, elementOf(value));
    }
    if (element)
      narrow[value] = element;
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  /// A number that arithmetic can be done on: f32 for floats, the byte for integers.
  Value toNumber(PrimBuilder &b, Value v) {
    auto type = dyn_cast_or_null<FloatType>(narrowOf(v));
    return type ? decode(b, v, type) : v;
  }
  Value fromNumber(PrimBuilder &b, Value v, Type element) {
    auto type = dyn_cast<FloatType>(element);
    return type ? encode(b, v, type) : wrap(b, v, element);
  }

  LogicalResult expand(Operation *op) {
    if (isa<StorageOp>(op)) // of an earlier run of the pass
      return success();
    if (auto constant = dyn_cast<prim::ConstantOp>(op))
      return expandConstant(constant);
    if (auto splat = dyn_cast<SplatOp>(op))
      return expandSplat(splat);
    if (auto convert = dyn_cast<ConvertOp>(op))
      return expandConvert(convert);
    if (auto bitcast = dyn_cast<BitcastOp>(op))
      return expandBitcast(bitcast);
    if (isa<func::ReturnOp, HostCallOp>(op)) {
      keepPacked(op);
      return success();
    }
    bool any = llvm::any_of(op->getResults(), isNarrow) ||
               llvm::any_of(op->getOperands(), [&](Value v) { return bool(narrowOf(v)); });
    if (!any)
      return success();
    if (op->hasTrait<PointwiseTrait>() && !isa<SelectOp>(op)) {
      expandPointwise(op);
      return success();
    }
    if (isa<ReduceOp, ArgReduceOp, WindowReduceOp, ScanOp, DotGeneralOp, ConvOp, SoftmaxOp, NormOp, AttentionOp, RnnOp>(
            op))
      return op->emitError() << "element type " << narrowestOf(op) << " is not supported by " << op->getName()
                             << "; convert the operand to f32 or i8 before";
    // What moves elements does so with bytes.
    for (Value result : op->getResults())
      retype(result);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        retype(argument);
    return success();
  }

  Type narrowestOf(Operation *op) {
    for (Value v : op->getOperands())
      if (Type element = narrowOf(v))
        return element;
    return elementOf(op->getResult(0));
  }

  LogicalResult expandConstant(prim::ConstantOp op) {
    if (!isNarrow(op))
      return success();
    PrimBuilder b(builderBefore(op));
    Type element = elementOf(op);
    if (auto data = dyn_cast<base::DataAttr>(op.getValue())) {
      // Packed as it is in the file.
      Value storage = prim::ConstantOp::create(b, TypedAttr(base::withType(data, getStorageType(op.getType()))));
      replace(op, unpack(b, storage, element, getSizes(op)), element);
      return success();
    }
    std::optional<Tensor> tensor = fromAttribute(op.getValue());
    if (!tensor)
      return op.emitError() << "the bytes of a constant are missing";
    tensor->elementType = byteOf(element);
    replace(op, prim::ConstantOp::create(b, toAttribute(*tensor)), element);
    return success();
  }

  LogicalResult expandSplat(SplatOp op) {
    if (!isNarrow(op))
      return success();
    PrimBuilder b(builderBefore(op));
    Type element = elementOf(op), byte = byteOf(element);
    APInt bits = isa<FloatType>(element) ? cast<FloatAttr>(op.getValue()).getValue().bitcastToAPInt()
                                         : cast<IntegerAttr>(op.getValue()).getValue();
    bits = byte.isUnsignedInteger() ? bits.zext(8) : bits.sext(8);
    replace(op, SplatOp::create(b, withElementType(op.getType(), byte), b.getIntegerAttr(byte, bits)), element);
    return success();
  }

  LogicalResult expandConvert(ConvertOp op) {
    Type from = narrowOf(op.getOperand()), to = elementOf(op);
    if (!from && !isNarrowElement(to))
      return success();
    PrimBuilder b(builderBefore(op));
    Value x = toNumber(b, op.getOperand());
    if (!isNarrowElement(to)) {
      replace(op, b.convert(x, to), Type());
      return success();
    }
    if (isa<IntegerType>(to) && isa<FloatType>(elementOf(x))) {
      // Saturates, as to all integers.
      unsigned width = to.getIntOrFloatBitWidth();
      bool isUnsigned = to.isUnsignedInteger();
      double high = (1 << (isUnsigned ? width : width - 1)) - 1, low = isUnsigned ? 0 : -high - 1;
      x = b.binary<MinOp>(b.binary<MaxOp>(x, low), high);
    } else if (isa<FloatType>(to) && !APFloat::semanticsHasSignedRepr(cast<FloatType>(to).getFloatSemantics())) {
      return op.emitError() << "a conversion to " << to << " is not supported; read the bits of an exponent instead";
    }
    replace(op, fromNumber(b, x, to), to);
    return success();
  }

  LogicalResult expandBitcast(BitcastOp op) {
    Type from = narrowOf(op.getOperand()), to = elementOf(op);
    if (!from && !isNarrowElement(to))
      return success();
    PrimBuilder b(builderBefore(op));
    Type target = isNarrowElement(to) ? byteOf(to) : to;
    Value v = op.getOperand();
    if (to.getIntOrFloatBitWidth() < 8) {
      v = b.convert(v, target);
      double unused = 8 - to.getIntOrFloatBitWidth();
      v = b.binary<ShrOp>(b.binary<ShlOp>(v, unused), unused);
    } else if (elementOf(v) != target) {
      v = BitcastOp::create(b, v, target);
    }
    replace(op, v, isNarrowElement(to) ? to : Type());
    return success();
  }

  /// In f32, or in integers that wrap afterwards.
  void expandPointwise(Operation *op) {
    PrimBuilder b(builderBefore(op));
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(toNumber(b, operand));
    Type element = elementOf(op->getResult(0));
    bool isResultNarrow = isNarrowElement(element);
    Type made = !isResultNarrow ? element : isa<FloatType>(element) ? Type(b.getF32Type()) : byteOf(element);
    OperationState state(op->getLoc(), op->getName(), operands, withElementType(op->getResult(0).getType(), made),
                         op->getAttrs());
    Value result = b.create(state)->getResult(0);
    replace(op, isResultNarrow ? fromNumber(b, result, element) : result, isResultNarrow ? element : Type());
  }

  /// What leaves the program, and what the runtime's functions take and give, is as a caller sees it.
  void keepPacked(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Type element = narrowOf(operand.get());
      if (!element)
        continue;
      PrimBuilder b(builderBefore(op));
      Type type = withElementType(operand.get().getType(), element);
      operand.set(StorageOp::create(b, type, pack(b, operand.get(), element)));
    }
    for (Value result : op->getResults())
      if (isNarrow(result))
        replaceByBytes(result, op->getNextNode());
  }

  /// Takes a packed tensor apart before `op`.
  void replaceByBytes(Value packed, Operation *op) {
    auto readsNumbers = [](Operation *user) { return !isa<StorageOp>(user); };
    if (llvm::none_of(packed.getUsers(), readsNumbers))
      return;
    PrimBuilder b(builderBefore(op));
    auto storage = StorageOp::create(b, getStorageType(packed.getType()), packed);
    Value bytes = unpack(b, storage, elementOf(packed), getSizes(packed));
    narrow[bytes] = elementOf(packed);
    packed.replaceUsesWithIf(bytes, [&](OpOperand &use) { return readsNumbers(use.getOwner()); });
  }

  func::FuncOp func;
  IRRewriter rewriter{func.getContext()};
  llvm::DenseMap<Value, Type> narrow;
};

struct ExpandNarrowTypes : tc::prim::impl::ExpandNarrowTypesPassBase<ExpandNarrowTypes> {
  void runOnOperation() override {
    if (!getOperation().isExternal() && failed(Expander(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
