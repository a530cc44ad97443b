//===- PrimBuilder.cpp - short ways to write prim -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

AffineExpr SymbolTableBuilder::add(StringRef name, int64_t min, int64_t max, int64_t divisor) {
  std::string unique = name.str();
  auto taken = [&](StringRef candidate) {
    return llvm::any_of(symbols, [&](Attribute a) { return cast<SymbolAttr>(a).getName() == candidate; });
  };
  for (int64_t i = 1; taken(unique); ++i)
    unique = (name + "_" + Twine(i)).str();
  symbols.push_back(SymbolAttr::get(context, unique, min, max, divisor));
  return getAffineSymbolExpr(symbols.size() - 1, context);
}

void SymbolTableBuilder::refineMax(unsigned position, int64_t max) {
  auto symbol = cast<SymbolAttr>(symbols[position]);
  symbols[position] =
      SymbolAttr::get(context, symbol.getName(), symbol.getMin(), std::min(symbol.getMax(), max), symbol.getDivisor());
}

int64_t SymbolTableBuilder::addString(StringRef text) {
  if (strings.empty())
    strings.push_back(StringAttr::get(context, ""));
  auto attr = StringAttr::get(context, text);
  if (text.empty())
    return 0;
  auto [it, isNew] = stringIds.try_emplace(attr, int64_t(strings.size()));
  if (isNew)
    strings.push_back(attr);
  return it->second;
}

ArrayAttr SymbolTableBuilder::getStringsAttr() const {
  return strings.size() > 1 ? ArrayAttr::get(context, strings) : ArrayAttr();
}

Sizes PrimBuilder::sizes(ArrayRef<int64_t> ns) {
  return llvm::map_to_vector(ns, [&](int64_t n) { return size(n); });
}

Type PrimBuilder::accumulatorOf(Type type) {
  if (auto f = dyn_cast<FloatType>(type))
    if (f.getWidth() < 32)
      return getF32Type();
  return type;
}

TypedAttr PrimBuilder::scalarAttr(Type elementType, double value) {
  if (auto f = dyn_cast<FloatType>(elementType)) {
    APFloat v(value);
    bool lost = false;
    v.convert(f.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return FloatAttr::get(f, v);
  }
  int64_t integer = !(value > -0x1p63) ? INT64_MIN : value >= 0x1p63 ? INT64_MAX : int64_t(value);
  return IntegerAttr::get(elementType, APInt(64, uint64_t(integer)).zextOrTrunc(elementType.getIntOrFloatBitWidth()));
}

Value PrimBuilder::asWords(Value v, Type elementType) {
  return elementOf(v) == elementType ? v : BitcastOp::create(*this, v, elementType).getResult();
}

Value PrimBuilder::strings(ArrayRef<StringRef> texts, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> ids;
  for (StringRef text : texts)
    ids.push_back(symbols.addString(text));
  auto dense = DenseElementsAttr::get(RankedTensorType::get(shape, getI64Type()), ArrayRef<int64_t>(ids));
  TypedAttr value = dense;
  if (ids.size() > 64 && !dense.isSplat())
    value = base::fromDense(dense);
  return asWords(prim::ConstantOp::create(*this, value), base::StringType::get(getContext()));
}

ValueRange PrimBuilder::hostCall(StringRef callee, ValueRange operands, TypeRange results) {
  SmallVector<int64_t> words;
  for (TypeRange types : {TypeRange(operands), results})
    for (Type type : types) {
      Type element = cast<RankedTensorType>(type).getElementType();
      words.push_back(isa<base::StringType>(element) ? 1 : base::isHandle(element) ? 2 : 0);
    }
  return HostCallOp::create(*this, results, getStringAttr(callee), operands, words).getResults();
}

Value PrimBuilder::hostCall(StringRef callee, ValueRange operands, Type elementType, SizesRef sizes) {
  return hostCall(callee, operands, TypeRange(makeType(elementType, sizes)))[0];
}

Value PrimBuilder::asParts(Value v) {
  if (auto view = v.getDefiningOp<StorageOp>())
    return view.getOperand();
  return StorageOp::create(*this, getStorageType(v.getType()), v);
}

Value PrimBuilder::asComplex(Value parts) {
  if (auto view = parts.getDefiningOp<StorageOp>(); view && isComplex(view.getOperand()))
    return view.getOperand();
  Sizes sizes = getSizes(parts);
  sizes.pop_back();
  return StorageOp::create(*this, makeType(ComplexType::get(elementOf(parts)), sizes), parts);
}

Value PrimBuilder::scalar(Type elementType, double value) {
  if (auto complex = dyn_cast<ComplexType>(elementType)) {
    auto type = RankedTensorType::get({2}, complex.getElementType());
    Attribute pair[] = {scalarAttr(complex.getElementType(), value), scalarAttr(complex.getElementType(), 0)};
    return asComplex(prim::ConstantOp::create(*this, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef(pair)))));
  }
  if (base::isWord(elementType)) // has no constants of its own
    return asWords(scalar(getI64Type(), value), elementType);
  return prim::ConstantOp::create(
      *this, cast<TypedAttr>(DenseElementsAttr::get(RankedTensorType::get({}, elementType),
                                                    ArrayRef<Attribute>(scalarAttr(elementType, value)))));
}

Value PrimBuilder::splat(Type elementType, SizesRef sizes, double value) {
  if (isa<ComplexType>(elementType))
    return broadcastTo(scalar(elementType, value), sizes);
  if (base::isWord(elementType)) // has no constants of its own
    return asWords(splat(getI64Type(), sizes, value), elementType);
  return SplatOp::create(*this, makeType(elementType, sizes), scalarAttr(elementType, value));
}

Value PrimBuilder::constantI64s(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, getI64Type());
  return prim::ConstantOp::create(*this, cast<TypedAttr>(DenseElementsAttr::get(type, values)));
}

Value PrimBuilder::sizesValue(SizesRef exprs) {
  AffineMap map = makeSizeMap(getContext(), exprs);
  SmallVector<int64_t> constants;
  for (AffineExpr expr : map.getResults())
    if (auto constant = getConstantSize(expr))
      constants.push_back(*constant);
  if (constants.size() == exprs.size() && constants.size() <= 64)
    return constantI64s(constants);
  return SizesOp::create(*this, RankedTensorType::get({int64_t(exprs.size())}, getI64Type()), map);
}

Value PrimBuilder::sizeValue(AffineExpr expr) {
  auto type = RankedTensorType::get({}, getI64Type());
  AffineMap map = makeSizeMap(getContext(), expr);
  if (auto constant = getConstantSize(map.getResult(0)))
    return prim::ConstantOp::create(*this, cast<TypedAttr>(DenseElementsAttr::get(type, *constant)));
  return SizesOp::create(*this, type, map);
}

AffineExpr PrimBuilder::bindSymbol(StringRef name, Value value, int64_t min, int64_t max) {
  value = reshape(convert(value, getI64Type()), {});
  AffineExpr symbol = symbols.add(name, min, max);
  BindSymbolOp::create(*this, value, cast<AffineSymbolExpr>(symbol).getPosition());
  return symbol;
}

void PrimBuilder::guard(Value value, int64_t expected, const Twine &message) {
  auto symbol = cast<AffineSymbolExpr>(symbols.add("guard", expected, expected));
  auto bind = BindSymbolOp::create(*this, reshape(convert(value, getI64Type()), {}), symbol.getPosition());
  bind.setMessage(message.str());
}

Value PrimBuilder::reshape(Value v, SizesRef sizes) {
  RankedTensorType type = makeType(elementOf(v), sizes);
  if (type == v.getType())
    return v;
  if (auto splat = v.getDefiningOp<SplatOp>())
    return SplatOp::create(*this, type, splat.getValue());
  if (auto constant = v.getDefiningOp<prim::ConstantOp>())
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      if (type.hasStaticShape() && type.getNumElements() == typeOf(v).getNumElements())
        return prim::ConstantOp::create(*this, cast<TypedAttr>(dense.reshape(type)));
  return ReshapeOp::create(*this, type, v);
}

Value PrimBuilder::transpose(Value v, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return v;
  return TransposeOp::create(*this, v, permutation);
}

std::optional<double> tc::getSplatValue(Value v) {
  Attribute attr;
  if (auto splat = v.getDefiningOp<SplatOp>())
    attr = splat.getValue();
  else if (auto constant = v.getDefiningOp<prim::ConstantOp>()) {
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()); dense && dense.isSplat())
      attr = dense.getSplatValue<Attribute>();
  } else if (auto op = v.getDefiningOp(); op && isa<ReshapeOp, BroadcastOp, TransposeOp>(op))
    return getSplatValue(op->getOperand(0));
  if (auto f = dyn_cast_or_null<FloatAttr>(attr))
    return f.getValueAsDouble();
  if (auto i = dyn_cast_or_null<IntegerAttr>(attr))
    return i.getType().isUnsignedInteger() || i.getType().isInteger(1) ? double(i.getValue().getZExtValue())
                                                                       : double(i.getValue().getSExtValue());
  return std::nullopt;
}

Value PrimBuilder::broadcastInDims(Value v, SizesRef sizes, ArrayRef<int64_t> dims) {
  RankedTensorType type = makeType(elementOf(v), sizes);
  if (type == v.getType())
    return v;
  if (auto splat = v.getDefiningOp<SplatOp>())
    return SplatOp::create(*this, type, splat.getValue());
  if (auto constant = v.getDefiningOp<prim::ConstantOp>())
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()); dense && dense.isSplat())
      return SplatOp::create(*this, type, cast<TypedAttr>(dense.getSplatValue<Attribute>()));
  return BroadcastOp::create(*this, type, v, dims);
}

Value PrimBuilder::broadcastTo(Value v, SizesRef sizes) {
  int64_t offset = int64_t(sizes.size()) - rankOf(v);
  return broadcastInDims(v, sizes, llvm::to_vector(llvm::seq<int64_t>(offset, sizes.size())));
}

Value PrimBuilder::slice(Value v, SizesRef starts, ArrayRef<int64_t> steps, SizesRef sizes) {
  RankedTensorType type = makeType(elementOf(v), sizes);
  if (type == v.getType() && llvm::all_of(steps, [](int64_t s) { return s == 1; }))
    return v; // as many elements as there are: the start can only be 0
  return SliceOp::create(*this, type, v, makeSizeMap(getContext(), starts), steps);
}

Value PrimBuilder::sliceDim(Value v, int64_t axis, AffineExpr start, AffineExpr count, int64_t step) {
  Sizes all = getSizes(v), starts(all.size(), size(0));
  SmallVector<int64_t> steps(all.size(), 1);
  starts[axis] = start;
  all[axis] = count;
  steps[axis] = step;
  return slice(v, starts, steps, all);
}

Value PrimBuilder::take(Value v, int64_t axis, int64_t index) {
  Value one = sliceDim(v, axis, size(index), size(1));
  Sizes rest = getSizes(one);
  rest.erase(rest.begin() + axis);
  return reshape(one, rest);
}

Value PrimBuilder::pad(Value v, Value value, SizesRef low, SizesRef sizes) {
  RankedTensorType type = makeType(elementOf(v), sizes);
  AffineMap map = makeSizeMap(getContext(), low);
  if (type == v.getType() && llvm::all_of(map.getResults(), [](AffineExpr e) { return getConstantSize(e) == 0; }))
    return v;
  return PadOp::create(*this, type, v, value, AffineMapAttr::get(map));
}

Value PrimBuilder::concat(ValueRange inputs, int64_t axis) {
  return inputs.size() == 1 ? inputs.front() : Value(ConcatOp::create(*this, inputs, axis));
}

Value PrimBuilder::unsqueeze(Value v, int64_t axis) {
  Sizes all = getSizes(v);
  all.insert(all.begin() + axis, size(1));
  return reshape(v, all);
}

Value PrimBuilder::iota(Type elementType, SizesRef sizes, int64_t axis) {
  return IotaOp::create(*this, makeType(elementType, sizes), axis);
}

Value PrimBuilder::compare(CompareKind kind, Value a, Value b) { return CompareOp::create(*this, kind, a, b); }

Value PrimBuilder::select(Value condition, Value a, Value b) {
  return SelectOp::create(*this, a.getType(), condition, a, b);
}

Value PrimBuilder::convert(Value v, Type elementType) {
  if (elementOf(v) == elementType)
    return v;
  return ConvertOp::create(*this, v, elementType);
}

Value PrimBuilder::unpackBits(Value bytes, int64_t bits) {
  if (bits == 8)
    return bytes;
  Sizes sizes = getSizes(bytes), wide = sizes;
  int64_t last = sizes.size() - 1, each = 8 / bits;
  wide.push_back(size(each));
  sizes[last] = simplifySize(sizes[last] * each);
  Value spread = broadcastInDims(bytes, wide, llvm::to_vector(llvm::seq<int64_t>(0, last + 1)));
  Value shift = binary<MulOp>(iota(elementOf(bytes), wide, last + 1), double(bits));
  Value numbers = binary<AndOp>(binary<ShrOp>(spread, shift), double((1 << bits) - 1));
  return reshape(numbers, sizes);
}

Value PrimBuilder::norm(Value v, ArrayRef<int64_t> dims, double epsilon, bool rms) {
  return NormOp::create(*this, v.getType(), v, getDenseI64ArrayAttr(dims), getF64FloatAttr(epsilon),
                        rms ? getUnitAttr() : UnitAttr());
}

Value PrimBuilder::reduce(ReduceKind kind, Value v, ArrayRef<int64_t> dims, bool keepDims) {
  SmallVector<int64_t> sorted(dims);
  llvm::sort(sorted);
  Sizes kept = getSizes(v);
  for (int64_t dim : sorted)
    kept[dim] = size(1);
  Value result = sorted.empty() ? v : Value(ReduceOp::create(*this, kind, v, sorted));
  return keepDims ? reshape(result, kept) : result;
}

std::optional<double> PrimBuilder::getExactReciprocal(double divisor) {
  int exponent = 0;
  if (std::abs(std::frexp(divisor, &exponent)) != 0.5 || exponent < -13 || exponent > 14)
    return std::nullopt;
  return 1 / divisor;
}

Value PrimBuilder::mean(Value v, ArrayRef<int64_t> dims, bool keepDims) {
  Type type = elementOf(v), accumulator = accumulatorOf(type);
  Sizes all = getSizes(v), counted;
  for (int64_t dim : dims)
    counted.push_back(all[dim]);
  Value sum = reduce(ReduceKind::Sum, convert(v, accumulator), dims, keepDims);
  AffineExpr count = product(getContext(), counted);
  Value divisor;
  if (auto constant = getConstantSize(count)) {
    if (std::optional<double> reciprocal = getExactReciprocal(double(*constant)); reciprocal && isFloat(sum))
      return convert(binary<MulOp>(sum, *reciprocal), type);
    divisor = splatLike(sum, double(*constant));
  } else {
    divisor = broadcastTo(convert(sizeValue(count), accumulator), getSizes(sum));
  }
  return convert(div(sum, divisor), type);
}
