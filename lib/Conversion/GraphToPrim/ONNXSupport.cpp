//===- ONNXSupport.cpp - what the ONNX handlers share -------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Type tc::elementTypeOfONNX(MLIRContext *context, int64_t dataType) {
  Builder b(context);
  auto integer = [&](unsigned width) { return b.getIntegerType(width); };
  auto natural = [&](unsigned width) { return b.getIntegerType(width, /*isSigned=*/false); };
  switch (dataType) { // onnx.proto, TensorProto.DataType
  case 1:
    return b.getF32Type();
  case 2:
    return natural(8);
  case 3:
    return integer(8);
  case 4:
    return natural(16);
  case 5:
    return integer(16);
  case 6:
    return integer(32);
  case 7:
    return integer(64);
  case 9:
    return b.getI1Type();
  case 10:
    return b.getF16Type();
  case 11:
    return b.getF64Type();
  case 12:
    return natural(32);
  case 13:
    return natural(64);
  case 14:
    return ComplexType::get(b.getF32Type());
  case 15:
    return ComplexType::get(b.getF64Type());
  case 16:
    return b.getBF16Type();
  case 17:
    return Float8E4M3FNType::get(context);
  case 18:
    return Float8E4M3FNUZType::get(context);
  case 19:
    return Float8E5M2Type::get(context);
  case 20:
    return Float8E5M2FNUZType::get(context);
  case 21:
    return natural(4);
  case 22:
    return integer(4);
  case 23:
    return Float4E2M1FNType::get(context);
  case 24:
    return Float8E8M0FNUType::get(context);
  case 25:
    return natural(2);
  case 26:
    return integer(2);
  case 27:
    return Float6E2M3FNType::get(context);
  case 28:
    return Float6E3M2FNType::get(context);
  default:
    return {};
  }
}

FailureOr<Type> tc::readElementType(NodeContext &ctx, StringRef name, int64_t defaultType, bool orString,
                                    bool orComplex) {
  Attribute attr = ctx.attr(name);
  if (auto type = dyn_cast_or_null<TypeAttr>(attr))
    return type.getValue();
  int64_t number = ctx.getInt(name, defaultType);
  if (auto text = dyn_cast_or_null<StringAttr>(attr))
    number = llvm::StringSwitch<int64_t>(text.getValue())
                 .Case("FLOAT", 1)
                 .Case("UINT8", 2)
                 .Case("INT8", 3)
                 .Case("UINT16", 4)
                 .Case("INT16", 5)
                 .Case("INT32", 6)
                 .Case("INT64", 7)
                 .Case("STRING", 8)
                 .Case("BOOL", 9)
                 .Case("FLOAT16", 10)
                 .Case("DOUBLE", 11)
                 .Case("UINT32", 12)
                 .Case("UINT64", 13)
                 .Default(0);
  if (orString && number == 8)
    return Type(base::StringType::get(ctx.b.getContext()));
  Type type = elementTypeOfONNX(ctx.b.getContext(), number);
  if (!type || (isa<ComplexType>(type) && !orComplex)) {
    if (number < 1 || number > 28) // TensorProto.DataType of ONNX 1.23
      return ctx.invalid(name + " is " + Twine(number) + ", which is no data type");
    return ctx.unsupported(
        "with " + name + " of data type " + Twine(number) +
        " is not supported; supported: bool, integers of 8 to 64 bits, f16, bf16, f32, f64, f8E4M3FN, "
        "f8E5M2");
  }
  return type;
}

AffineExpr tc::atLeast0(PrimBuilder &b, AffineExpr size) {
  if (auto known = getConstantSize(size))
    return b.size(std::max<int64_t>(*known, 0));
  return b.bounds(size).first >= 0 ? size : b.bindSymbol("pads", b.binary<MaxOp>(b.sizeValue(size), 0));
}

FailureOr<Window> tc::readWindow(NodeContext &ctx, SizesRef kernel, SizesRef spatial) {
  size_t n = spatial.size();
  Window window;
  window.strides = ctx.getInts("strides").value_or(SmallVector<int64_t>(n, 1));
  window.dilations = ctx.getInts("dilations").value_or(SmallVector<int64_t>(n, 1));
  SmallVector<int64_t> pads = ctx.getInts("pads").value_or(SmallVector<int64_t>(2 * n, 0));
  for (AffineExpr size : kernel)
    if (failed(ctx.require(CompareKind::LE, ctx.b.size(1), size, "a kernel of one element or more")))
      return failure();
  window.padLow.assign(pads.begin(), pads.begin() + n);
  window.padHigh.assign(pads.begin() + n, pads.end());
  std::string autoPad = ctx.getString("auto_pad", "NOTSET");
  if (autoPad == "VALID") {
    window.padLow.assign(n, 0);
    window.padHigh.assign(n, 0);
  } else if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    // The result has ceil(size / stride) elements. Pads of sizes that only the run knows are expressions.
    bool emitted = false;
    PrimBuilder &b = ctx.b;
    for (size_t i = 0; i < n; ++i) {
      int64_t stride = window.strides[i];
      AffineExpr extent = getExtent(window, i, kernel[i]);
      AffineExpr total = simplifySize((spatial[i].ceilDiv(stride) - 1) * stride + extent - spatial[i]);
      auto knownExtent = getConstantSize(extent);
      if (stride == 1 || knownExtent == 1)
        total = simplifySize(extent - 1);
      else if (!knownExtent || *knownExtent < stride) // else it is never negative
        total = atLeast0(b, total);
      AffineExpr half = simplifySize(total.floorDiv(2)), rest = simplifySize(total - half);
      emitted |= !getConstantSize(total);
      window.emittedLow.push_back(autoPad == "SAME_UPPER" ? half : rest);
      window.emittedHigh.push_back(autoPad == "SAME_UPPER" ? rest : half);
      window.padLow[i] = getConstantSize(window.emittedLow[i]).value_or(0);
      window.padHigh[i] = getConstantSize(window.emittedHigh[i]).value_or(0);
    }
    if (emitted) {
      window.padLow.assign(n, 0);
      window.padHigh.assign(n, 0);
    } else {
      window.emittedLow.clear();
      window.emittedHigh.clear();
    }
  } else if (autoPad != "NOTSET" && !autoPad.empty()) {
    return ctx.invalid("auto_pad is \"" + autoPad + "\"; it may be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  return window;
}

FailureOr<Sizes> tc::readKernel(NodeContext &ctx, Value &w) {
  Sizes sizes = getSizes(w);
  auto given = ctx.getInts("kernel_shape");
  for (size_t i = 2; given && i < sizes.size(); ++i) {
    AffineExpr size = ctx.b.size((*given)[i - 2]);
    if (getConstantSize(sizes[i]) && sizes[i] != size)
      return ctx.invalid("kernel_shape differs from the filter " + describe(w));
    sizes[i] = size;
  }
  FailureOr<Value> same = ctx.castSizes(w, sizes);
  if (failed(same))
    return failure();
  w = *same;
  return Sizes(sizes.begin() + 2, sizes.end());
}

Value tc::emitClampedIndex(PrimBuilder &b, Value at, AffineExpr size) {
  Value index = b.convert(at, b.getI64Type());
  Value last = b.broadcastTo(b.sizeValue(simplifySize(size - 1)), getSizes(index));
  return b.min(b.binary<MaxOp>(index, 0), last);
}

Value tc::emitCubicWeight(PrimBuilder &b, Value distance, double a, bool inner) {
  const double c3 = inner ? a + 2 : a, c2 = inner ? -(a + 3) : -5 * a, c1 = inner ? 0 : 8 * a, c0 = inner ? 1 : -4 * a;
  Value v = b.binary<AddOp>(b.binary<MulOp>(distance, c3), c2);
  v = b.binary<AddOp>(b.mul(v, distance), c1);
  return b.binary<AddOp>(b.mul(v, distance), c0);
}

Type tc::insideOfEmpty(Type element) {
  return base::OptType::get(element.getContext(), UnrankedTensorType::get(element));
}

bool tc::isInsideOfEmpty(Type inside) { return isa<base::OptType>(inside); }

Type tc::forgetEmpty(Type inside) {
  return isInsideOfEmpty(inside) ? cast<base::OptType>(inside).getElementType() : inside;
}

/// What is inside of sequences: the tensor type that both are, unranked where they differ in rank.
static Type joinInner(Type x, Type y) {
  // Nothing yet takes the type of what comes.
  for (auto [empty, other] : {std::pair(x, y), std::pair(y, x)})
    if (auto inside = dyn_cast<base::OptType>(empty)) {
      auto tensor = dyn_cast<TensorType>(inside.getElementType()), with = dyn_cast<TensorType>(other);
      if (tensor && with)
        return tensor.getElementType() == with.getElementType() ? other : Type();
    }
  auto a = dyn_cast<TensorType>(x), b = dyn_cast<TensorType>(y);
  if (!a || !b)
    return joinElements(x, y);
  if (a.getElementType() != b.getElementType())
    return {};
  if (!a.hasRank() || !b.hasRank())
    return a.hasRank() ? b : a;
  if (a.getRank() != b.getRank())
    return UnrankedTensorType::get(a.getElementType());
  SmallVector<int64_t> shape(a.getShape());
  for (auto [size, other] : llvm::zip_equal(shape, b.getShape()))
    size = size == other ? size : ShapedType::kDynamic;
  return RankedTensorType::get(shape, a.getElementType());
}

Type tc::joinElements(Type x, Type y) {
  if (x == y)
    return x;
  auto xs = dyn_cast<base::SeqType>(x), ys = dyn_cast<base::SeqType>(y);
  auto xo = dyn_cast<base::OptType>(x), yo = dyn_cast<base::OptType>(y);
  auto xm = dyn_cast<base::MapType>(x), ym = dyn_cast<base::MapType>(y);
  if (xm && ym) {
    Type value = xm.getKeyType() == ym.getKeyType() ? joinInner(xm.getValueType(), ym.getValueType()) : Type();
    return value ? base::MapType::get(x.getContext(), xm.getKeyType(), value) : Type();
  }
  Type inner;
  if (xs && ys)
    inner = joinInner(xs.getElementType(), ys.getElementType());
  else if (xo || yo)
    inner = joinInner(xo ? xo.getElementType() : x, yo ? yo.getElementType() : y);
  if (!inner)
    return {};
  return xs && ys ? Type(base::SeqType::get(x.getContext(), inner)) : Type(base::OptType::get(x.getContext(), inner));
}

Value tc::searchKeys(PrimBuilder &b, Value x, Value keys, int64_t count, Value &isKnown) {
  Sizes sizes = getSizes(x);
  Value at = b.splat(b.getI32Type(), sizes, 0);
  auto keyAt = [&](Value position) -> Value { return GatherOp::create(b, keys, position, 0); };
  for (int64_t step = llvm::bit_floor(uint64_t(count)); step > 0; step /= 2) {
    Value next = b.binary<AddOp>(at, double(step));
    Value isInside = b.compare(CompareKind::LT, next, double(count));
    Value isBelow = b.compare(CompareKind::LE, keyAt(next), x);
    at = b.select(b.binary<AndOp>(isInside, isBelow), next, at);
  }
  isKnown = b.compare(CompareKind::EQ, keyAt(at), x);
  return at;
}
