//===- ATenSupport.cpp - what the ATen handlers share -------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

int tc::categoryOf(Type element) {
  if (isa<ComplexType>(element))
    return 3;
  if (isa<FloatType>(element))
    return 2;
  return isa<IntegerType>(element) ? !element.isInteger(1) : -1;
}

Type tc::promoteTypes(Type a, Type b) {
  if (a == b)
    return a;
  int ca = categoryOf(a), cb = categoryOf(b);
  if (ca < 0 || cb < 0)
    return {};
  if (ca < cb)
    std::swap(a, b), std::swap(ca, cb);
  if (ca == 3) {
    Type part = cast<ComplexType>(a).getElementType();
    if (auto other = dyn_cast<ComplexType>(b))
      b = other.getElementType();
    if (!isa<FloatType>(b))
      return a;
    Type wide = promoteTypes(part, b);
    return wide ? ComplexType::get(wide) : Type();
  }
  unsigned wa = a.getIntOrFloatBitWidth(), wb = b.getIntOrFloatBitWidth();
  if (ca == 2) {
    if (cb < 2)
      return a;
    if (wa < 16 || wb < 16) // of 8 bits: none, but with themselves
      return {};
    if (wa == wb) // f16 and bf16
      return Float32Type::get(a.getContext());
    return wa > wb ? a : b;
  }
  if (cb == 0)
    return a;
  if (a.isUnsignedInteger() == b.isUnsignedInteger())
    return wa > wb ? a : b;
  // Of unsigned integers PyTorch joins those of 8 bits alone with signed ones.
  Type natural = a.isUnsignedInteger() ? a : b, integer = a.isUnsignedInteger() ? b : a;
  if (natural.getIntOrFloatBitWidth() > 8)
    return {};
  return integer.getIntOrFloatBitWidth() > 8 ? integer : IntegerType::get(a.getContext(), 16);
}

void TypePromotion::join(Type &into, Type element) {
  into = into ? promoteTypes(into, element) : element;
  isImpossible |= !into;
}

void TypePromotion::addNumber(Type type) {
  if (isa<FloatType>(type))
    type = Float32Type::get(type.getContext());
  else if (isa<ComplexType>(type))
    type = ComplexType::get(Float32Type::get(type.getContext()));
  join(ofNumbers, type);
}

Type TypePromotion::get() const {
  if (isImpossible)
    return {};
  auto combine = [](Type higher, Type lower) -> Type {
    if (!higher || !lower)
      return higher ? higher : lower;
    int h = categoryOf(higher), l = categoryOf(lower);
    if (h == 3)
      return higher;
    if (h == 2)
      return l == 3 ? Type(ComplexType::get(higher)) : higher;
    return h == 0 || l >= 2 ? promoteTypes(higher, lower) : higher;
  };
  return combine(ofDims, combine(ofNone, ofNumbers));
}

Value tc::makeNumber(PrimBuilder &b, Attribute attr, Type type) {
  if (auto f = dyn_cast_or_null<FloatAttr>(attr)) {
    // bool is whether it is not 0, as of a tensor.
    return b.scalar(type, type.isInteger(1) ? f.getValueAsDouble() != 0 : f.getValueAsDouble());
  }
  auto integer = dyn_cast_or_null<IntegerAttr>(attr);
  if (!integer)
    return {};
  int64_t value = isa<BoolAttr>(attr) ? cast<BoolAttr>(attr).getValue() : integer.getValue().getSExtValue();
  auto to = dyn_cast<IntegerType>(type);
  if (!to)
    return b.scalar(type, double(value));
  APInt bits = to.isInteger(1) ? APInt(1, value != 0) : APInt(64, uint64_t(value)).zextOrTrunc(to.getWidth());
  auto tensor = RankedTensorType::get({}, type);
  return prim::ConstantOp::create(b, cast<TypedAttr>(DenseElementsAttr::get(tensor, ArrayRef<APInt>(bits))));
}

/// `attr` itself, or the constant that it stands for: where it names an operand whose integer is known.
static Attribute resolve(Call &c, Attribute attr) {
  auto operand = dyn_cast_or_null<StringAttr>(attr);
  Value value = operand ? c.tensor(operand.getValue()) : Value();
  if (!value)
    return attr;
  if (auto known = c.ctx.constantInts(value); known && known->size() == 1)
    return c.b.getI64IntegerAttr(known->front());
  (void)c.ctx.unsupported("with argument \"" + operand.getValue() +
                          "\" that the program computes is not supported; make it a constant of the model");
  return {};
}

double Call::number(StringRef name, double otherwise) {
  Attribute attr = resolve(*this, ctx.attr(name));
  if (auto f = dyn_cast_or_null<FloatAttr>(attr))
    return f.getValueAsDouble();
  if (auto b = dyn_cast_or_null<BoolAttr>(attr))
    return b.getValue();
  if (auto i = dyn_cast_or_null<IntegerAttr>(attr))
    return double(i.getInt());
  return otherwise;
}

int64_t Call::integer(StringRef name, int64_t otherwise) {
  auto value = dyn_cast_or_null<IntegerAttr>(resolve(*this, ctx.attr(name)));
  return value ? ctx.getInt(name, value.getValue().getSExtValue()) : otherwise;
}

std::optional<SmallVector<int64_t>> Call::integers(StringRef name) {
  Attribute attr = ctx.attr(name);
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(attr))
    return SmallVector<int64_t>(dense.asArrayRef());
  auto array = dyn_cast_or_null<ArrayAttr>(attr);
  if (!array)
    return std::nullopt;
  SmallVector<int64_t> all;
  for (Attribute entry : array) {
    auto constant = dyn_cast_or_null<IntegerAttr>(resolve(*this, entry));
    if (!constant)
      return std::nullopt;
    all.push_back(constant.getInt());
  }
  return all;
}

Type Call::numberType(StringRef name) {
  Attribute attr = ctx.attr(name);
  if (isa_and_nonnull<BoolAttr>(attr))
    return b.getI1Type();
  if (isa_and_nonnull<IntegerAttr>(attr))
    return b.getI64Type();
  if (isa_and_nonnull<FloatAttr>(attr))
    return b.getF64Type();
  auto operand = dyn_cast_or_null<StringAttr>(attr);
  if (!operand)
    return {};
  if (Value value = tensor(operand.getValue()))
    return b.elementOf(value);
  return operand.getValue() == "as_complex" ? Type(ComplexType::get(b.getF64Type())) : Type();
}

FailureOr<Value> Call::as(StringRef name, Type type, std::optional<double> otherwise) {
  Attribute attr = ctx.attr(name);
  if (Value value = makeNumber(b, attr, type))
    return value;
  Value value = tensor(name);
  if (auto operand = dyn_cast_or_null<StringAttr>(attr))
    value = tensor(operand.getValue());
  if (value)
    return convert(value, type);
  if (attr && isNumber(name))
    return ctx.unsupported("with the complex number \"" + name + "\" is not supported; make it a tensor");
  if (otherwise)
    return b.scalar(type, *otherwise);
  return ctx.invalid("argument \"" + name + "\" is missing");
}

FailureOr<Type> Call::commonType(ArrayRef<StringRef> names, Integers integers) {
  TypePromotion promotion;
  std::string given;
  for (StringRef name : names) {
    Type number = numberType(name);
    Value value = number ? Value() : tensor(name);
    if (!number && !value)
      continue;
    if (number)
      promotion.addNumber(number);
    else
      promotion.addTensor(b.elementOf(value), b.rankOf(value));
    given += (given.empty() ? "" : ", ") + (value ? describe(value) : "a number");
  }
  if (given.empty())
    return ctx.invalid("argument \"" + names.front() + "\" is missing");
  Type type = promotion.get();
  if (!type || categoryOf(type) < 0)
    return ctx.unsupported("of " + given +
                           " is not supported: they have no common type; convert them by .to(dtype) before");
  if (integers == Integers::Floats && categoryOf(type) < 2)
    type = b.getF32Type();
  return type;
}

FailureOr<SmallVector<Value>> Call::promoted(ArrayRef<StringRef> names, Integers integers, bool inAccumulator,
                                             Type type) {
  if (!type) {
    FailureOr<Type> common = commonType(names, integers);
    if (failed(common))
      return failure();
    type = *common;
  }
  SmallVector<Value> values;
  for (StringRef name : names) {
    FailureOr<Value> value = as(name, inAccumulator ? b.accumulatorOf(type) : type);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  if (failed(ctx.broadcastTogether(values)))
    return failure();
  return values;
}

FailureOr<Type> Call::dtype(Type otherwise, StringRef name) {
  auto type = dyn_cast_or_null<TypeAttr>(ctx.attr(name));
  if (!type)
    return otherwise;
  if (!isa<FloatType, IntegerType, ComplexType>(type.getValue()))
    return ctx.unsupported("with argument \"" + name + "\" of this type is not supported; use a type of numbers");
  return type.getValue();
}

FailureOr<Value> Call::convert(Value value, Type to) {
  Type from = b.elementOf(value);
  if (from == to)
    return value;
  auto complex = dyn_cast<ComplexType>(to);
  if (!complex && !isa<ComplexType>(from))
    return b.convert(value, to);
  int64_t rank = b.rankOf(value);
  if (isa<ComplexType>(from)) {
    Value parts = b.asParts(value);
    if (complex)
      return b.asComplex(b.convert(parts, complex.getElementType()));
    if (to.isInteger(1)) // whether either part is not 0
      return b.reduce(ReduceKind::Or, b.convert(parts, to), {rank});
    return b.convert(b.take(parts, rank, 0), to);
  }
  Value real = b.convert(value, complex.getElementType());
  return b.asComplex(b.concat({b.unsqueeze(real, rank), b.unsqueeze(b.splatLike(real, 0), rank)}, rank));
}

FailureOr<SmallVector<int64_t>> Call::dims(StringRef name, int64_t rank, bool emptyIsNone) {
  std::optional<SmallVector<int64_t>> given = integers(name);
  if (auto one = dyn_cast_or_null<IntegerAttr>(ctx.attr(name)))
    given = SmallVector<int64_t>{one.getInt()};
  if (!given && ctx.hasAttr(name))
    return ctx.unsupported("with dims in \"" + name + "\" that the program computes is not supported");
  if (!given || (given->empty() && !emptyIsNone))
    return llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank == 0) {
    for (int64_t dim : *given)
      if (dim != 0 && dim != -1)
        return ctx.invalid("argument \"" + name + "\" names dim " + Twine(dim) + " of a tensor without dims");
    return SmallVector<int64_t>{};
  }
  return ctx.axes(*given, rank);
}

FailureOr<std::optional<int64_t>> Call::dim(StringRef name, int64_t rank, std::optional<int64_t> otherwise) {
  auto given = dyn_cast_or_null<IntegerAttr>(ctx.attr(name));
  if (!given && ctx.hasAttr(name))
    return ctx.unsupported("with a dim that the program computes is not supported");
  if (!given && !otherwise)
    return ctx.invalid("argument \"" + name + "\" is missing");
  int64_t value = given ? given.getInt() : *otherwise;
  if (rank == 0 && (value == 0 || value == -1))
    return std::optional<int64_t>();
  FailureOr<int64_t> axis = ctx.axis(value, rank);
  if (failed(axis))
    return failure();
  return std::optional<int64_t>(*axis);
}

FailureOr<AffineExpr> Call::sizeOf(Value value, StringRef argument) {
  if (std::optional<Sizes> known = ctx.intValues(value); known && known->size() == 1)
    return known->front();
  FailureOr<Sizes> one = ctx.requireSizes(value, ("argument \"" + argument + "\"").str(), /*min=*/0);
  if (failed(one))
    return failure();
  if (one->size() != 1)
    return ctx.invalid("argument \"" + argument + "\" holds " + describe(value) + " where an integer is needed");
  return one->front();
}

FailureOr<AffineExpr> Call::size(StringRef name, std::optional<int64_t> otherwise) {
  Attribute attr = ctx.attr(name);
  if (auto constant = dyn_cast_or_null<IntegerAttr>(attr))
    return b.size(constant.getInt());
  if (auto operand = dyn_cast_or_null<StringAttr>(attr))
    if (Value value = tensor(operand.getValue()))
      return sizeOf(value, name);
  if (!attr && otherwise)
    return b.size(*otherwise);
  return ctx.invalid("argument \"" + name + "\" is " + (attr ? "no integer" : "missing"));
}
