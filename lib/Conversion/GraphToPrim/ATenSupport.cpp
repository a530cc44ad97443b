//===- ATenSupport.cpp - what the ATen handlers share -------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"

#include "tc/Dialect/Graph/Torch/Schemas.h"

#include <cmath>

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

Attribute Call::scalarArgument(StringRef name) {
  if (Attribute given = ctx.attr(name))
    return given;
  const torch::Schema *schema =
      positions.contains(name) ? nullptr : torch::findSchema(ctx.node().getDomain(), ctx.node().getOpType());
  const torch::SchemaArgument *argument = schema ? schema->find(name) : nullptr;
  std::optional<torch::SchemaValue> value = argument ? argument->defaultValue() : std::nullopt;
  if (!value)
    return {};
  if (const bool *flag = std::get_if<bool>(&*value))
    return b.getBoolAttr(*flag);
  if (const int64_t *integer = std::get_if<int64_t>(&*value))
    return b.getI64IntegerAttr(*integer);
  if (const double *number = std::get_if<double>(&*value))
    return b.getF64FloatAttr(*number);
  return {};
}

double Call::number(StringRef name, double otherwise) {
  Attribute attr = resolve(*this, scalarArgument(name));
  if (auto f = dyn_cast_or_null<FloatAttr>(attr))
    return f.getValueAsDouble();
  if (auto b = dyn_cast_or_null<BoolAttr>(attr))
    return b.getValue();
  if (auto i = dyn_cast_or_null<IntegerAttr>(attr))
    return double(i.getInt());
  return otherwise;
}

int64_t Call::integer(StringRef name, int64_t otherwise) {
  auto value = dyn_cast_or_null<IntegerAttr>(resolve(*this, scalarArgument(name)));
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
  auto parts = dyn_cast_or_null<DenseF64ArrayAttr>(ctx.attr((name + ".value").str())); // of a complex number
  if (auto complex = dyn_cast<ComplexType>(type); complex && parts && parts.size() == 2)
    return joinComplex(b, b.scalar(complex.getElementType(), parts[0]), b.scalar(complex.getElementType(), parts[1]));
  if (attr && isNumber(name))
    return ctx.unsupported("with the complex number \"" + name + "\" is not supported; make it a tensor");
  if (otherwise)
    return b.scalar(type, *otherwise);
  return ctx.invalid("argument \"" + name + "\" is missing");
}

FailureOr<Value> Call::bound(StringRef name, Type type, bool isLower, std::optional<double> otherwise) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() == 1 || integer.getWidth() > 64 || !isNumber(name))
    return as(name, type, otherwise);
  const unsigned width = integer.getWidth();
  const int64_t least = integer.isUnsigned() ? 0 : llvm::minIntN(width),
                most = integer.isUnsigned() && width == 64 ? INT64_MAX
                       : integer.isUnsigned()              ? int64_t(llvm::maxUIntN(width))
                                                           : llvm::maxIntN(width);
  if (auto number = dyn_cast_or_null<IntegerAttr>(ctx.attr(name)); number && !isa<BoolAttr>(number)) {
    const int64_t value = number.getValue().getSExtValue();
    if (isLower ? value > most : value < least)
      return ctx.invalid("argument \"" + name + "\" is " + Twine(value) + ", but elements lie between " + Twine(least) +
                         " and " + Twine(most));
    return makeNumber(b, b.getI64IntegerAttr(std::clamp(value, least, most)), type);
  }
  if (auto number = dyn_cast_or_null<FloatAttr>(ctx.attr(name)); number && !std::isnan(number.getValueAsDouble())) {
    const double value = number.getValueAsDouble();
    const int64_t whole = value >= double(most) ? most : value <= double(least) ? least : int64_t(value);
    return makeNumber(b, b.getI64IntegerAttr(whole), type);
  }
  FailureOr<Value> value = as(name, b.getI64Type(), otherwise);
  if (failed(value))
    return failure();
  auto number = [&](int64_t of) { return makeNumber(b, b.getI64IntegerAttr(of), b.getI64Type()); };
  return b.convert(b.min(b.max(*value, number(least)), number(most)), type);
}

FailureOr<Type> Call::commonType(ArrayRef<StringRef> names, Integers integers) {
  TypePromotion promotion;
  std::string given;
  bool anyFloats = false;
  for (StringRef name : names) {
    Type number = numberType(name);
    Value value = number ? Value() : tensor(name);
    if (!number && !value)
      continue;
    if (number)
      promotion.addNumber(number);
    else
      promotion.addTensor(b.elementOf(value), b.rankOf(value));
    anyFloats |= value && categoryOf(b.elementOf(value)) >= 2;
    given += (given.empty() ? "" : ", ") + (value ? describe(value) : "a number");
  }
  if (given.empty())
    return ctx.invalid("argument \"" + names.front() + "\" is missing");
  Type type = promotion.get();
  if (!type || categoryOf(type) < 0)
    return ctx.unsupported("of " + given +
                           " is not supported: they have no common type; convert them by .to(dtype) before");
  // Floats of integers, or by a number alone.
  if ((integers == Integers::Floats && categoryOf(type) < 2) || (!anyFloats && categoryOf(type) == 2))
    type = defaultFloat();
  return type;
}

/// The element that the model declares for result `i`; null: none.
static Type declaredElement(NodeContext &ctx, size_t i) {
  const auto outputs = ctx.node().getOutputs();
  auto declared = i < outputs.size() ? dyn_cast<RankedTensorType>(outputs[i].getType()) : RankedTensorType();
  return declared ? declared.getElementType() : Type();
}

Type Call::defaultFloat() {
  Type declared = declaredElement(ctx, 0);
  if (auto complex = dyn_cast_or_null<ComplexType>(declared))
    declared = complex.getElementType();
  return declared && declared.isF64() ? Type(b.getF64Type()) : Type(b.getF32Type());
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

bool Call::areOf(Type type, ArrayRef<StringRef> names) {
  return llvm::all_of(names, [&](StringRef name) {
    Value value = isNumber(name) ? Value() : tensor(name);
    return value && b.elementOf(value) == type;
  });
}

LogicalResult Call::rounded(Value value, Type type, size_t i) { return ctx.set(i, b.convert(value, type)); }

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
  if (!complex && !isa<ComplexType>(from)) {
    // PyTorch takes floats to narrow integers through wider ones, so that what does not fit wraps.
    auto integer = dyn_cast<IntegerType>(to);
    if (isa<FloatType>(from) && integer && integer.getWidth() > 1 && integer.getWidth() <= 16)
      value = b.convert(value, b.getI64Type());
    return b.convert(value, to);
  }
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

LogicalResult tc::setFloats(NodeContext &ctx, size_t i, Value value, Type otherwise) {
  Type declared = declaredElement(ctx, i);
  return ctx.set(i, ctx.b.convert(value, isa_and_present<FloatType>(declared) ? declared : otherwise));
}

FailureOr<SmallVector<Value>> tc::callATen(NodeContext &ctx, StringRef type, ArrayRef<TensorArgument> tensors,
                                           NamedAttrList attributes, size_t resultCount) {
  SmallVector<StringRef> names;
  SmallVector<Value> values;
  for (const auto &[name, value] : tensors)
    if (value) {
      names.push_back(name);
      values.push_back(value);
    }
  attributes.set("arg_names", ctx.b.getStrArrayAttr(names));
  return ctx.emitOperator(type, ctx.opset(), values, attributes.getAttrs(), resultCount, "aten");
}

std::pair<Value, Value> tc::splitComplex(PrimBuilder &b, Value value) {
  int64_t rank = b.rankOf(value);
  Value parts = b.asParts(value);
  return {b.take(parts, rank, 0), b.take(parts, rank, 1)};
}

Value tc::joinComplex(PrimBuilder &b, Value real, Value imaginary) {
  int64_t rank = b.rankOf(real);
  return b.asComplex(b.concat({b.unsqueeze(real, rank), b.unsqueeze(imaginary, rank)}, rank));
}

Value tc::isSigned(PrimBuilder &b, Value value) {
  Type type = b.elementOf(value);
  if (auto f = dyn_cast<FloatType>(type))
    value = BitcastOp::create(b, value, b.getIntegerType(f.getWidth()));
  else if (type.isInteger(1) || type.isUnsignedInteger())
    return b.splat(b.getI1Type(), getSizes(value), 0);
  return b.compare(CompareKind::LT, value, 0);
}

static Value test(PrimBuilder &b, Value value, bool forNan) {
  Type result = withElementType(value.getType(), b.getI1Type());
  if (!b.isFloat(value))
    return b.splat(b.getI1Type(), getSizes(value), 0);
  return forNan ? Value(IsNanOp::create(b, result, value)) : Value(IsInfOp::create(b, result, value));
}
Value tc::isNan(PrimBuilder &b, Value value) { return test(b, value, true); }
Value tc::isInf(PrimBuilder &b, Value value) { return test(b, value, false); }

Value tc::emitHypot(PrimBuilder &b, Value x, Value y) {
  x = b.unary<AbsOp>(x), y = b.unary<AbsOp>(y);
  Value most = b.max(x, y), quotient = b.div(b.min(x, y), most);
  Value r = b.mul(most, b.unary<SqrtOp>(b.binary<AddOp>(b.mul(quotient, quotient), 1)));
  Value isPlain = b.compare(CompareKind::EQ, most, 0); // 0 / 0
  r = b.select(isPlain, most, r);
  Value infinite = b.binary<OrOp>(isInf(b, x), isInf(b, y));
  return b.select(infinite, b.splatLike(r, INFINITY), r);
}

/// (((c[0] x + c[1]) x + ...) + c[n - 1].
static Value polynomial(PrimBuilder &b, Value x, ArrayRef<double> c) {
  Value sum = b.binary<AddOp>(b.binary<MulOp>(x, c[0]), c[1]);
  for (double next : c.drop_front(2))
    sum = b.binary<AddOp>(b.mul(sum, x), next);
  return sum;
}

// Source: W. J. Cody, "Rational Chebyshev approximations for the error function" (1969): erf to 0.46875, and then
// exp(-x^2) times a quotient of polynomials in x up to 4, in 1 / x^2 beyond. exp(-x^2) is computed of x rounded to
// sixteenths and of the rest, so that it has no more than a few roundings.
Value tc::emitErfc(PrimBuilder &b, Value x) {
  static constexpr double kMidP[] = {2.15311535474403846343e-8, .564188496988670089180, 8.88314979438837594118,
                                     66.1191906371416294775,    298.635138197400131132, 881.952221241769090411,
                                     1712.04761263407058314,    2051.07837782607146532, 1230.33935479799725272};
  static constexpr double kMidQ[] = {1,
                                     15.7449261107098347253,
                                     117.693950891312499305,
                                     537.181101862009857509,
                                     1621.38957456669018874,
                                     3290.79923573345962678,
                                     4362.61909014324715820,
                                     3439.36767414372163696,
                                     1230.33935480374942043};
  static constexpr double kFarP[] = {1.63153871373020978498e-2, 3.05326634961232344035e-1, 3.60344899949804439429e-1,
                                     1.25781726111229246204e-1, 1.60837851487422766278e-2, 6.58749161529837803157e-4};
  static constexpr double kFarQ[] = {1,
                                     2.56852019228982242072,
                                     1.87295284992346725209,
                                     5.27905102951428412248e-1,
                                     6.05183413124413191178e-2,
                                     2.33520497626869185443e-3};
  Value y = b.unary<AbsOp>(x);
  // Beyond 27.3 f64 has none; of greater numbers the polynomials would overflow.
  Value bounded = b.binary<MinOp>(y, 28);
  Value middle = b.binary<MinOp>(bounded, 4);
  Value mid = b.div(polynomial(b, middle, kMidP), polynomial(b, middle, kMidQ));
  Value beyond = b.binary<MaxOp>(bounded, 4);
  Value z = b.unary<ReciprocalOp>(b.mul(beyond, beyond));
  Value far = b.mul(z, b.div(polynomial(b, z, kFarP), polynomial(b, z, kFarQ)));
  far = b.div(b.sub(b.splatLike(far, 0.56418958354775628695), far), beyond);
  Value tail = b.select(b.compare(CompareKind::LE, y, 4), mid, far);
  Value coarse = b.binary<MulOp>(b.unary<TruncOp>(b.binary<MulOp>(bounded, 16)), 1.0 / 16);
  Value rest = b.mul(b.sub(bounded, coarse), b.add(bounded, coarse));
  auto minusExp = [&](Value v) { return b.unary<ExpOp>(b.unary<NegOp>(v)); };
  tail = b.mul(b.mul(minusExp(b.mul(coarse, coarse)), minusExp(rest)), tail);
  Value two = b.splatLike(x, 2);
  tail = b.select(b.compare(CompareKind::LT, x, 0), b.sub(two, tail), tail);
  Value near = b.sub(b.splatLike(x, 1), b.unary<ErfOp>(x));
  return b.select(b.compare(CompareKind::LE, y, 0.46875), near, tail); // NaN comes through `tail`
}
