//===- ATenSymbolic.cpp - numbers that PyTorch's programs compute beside tensors ----------------------------------===//
//
// Sizes, and what is computed of them by Python's operators, are 0-D integers (i64), floats (f64) and bools (i1) of the
// graph. What follows from sizes alone is an expression over the symbols (IntValues), so that it costs nothing and may
// be a size again; what depends on data is computed. Assertions become guards.
//
// Source: torch/_export/serde/serialize.py, _SYM_OPS; aten/src/ATen/native/native_functions.yaml.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A Python number as a 0-D tensor: bools and integers as i64, floats as f64; with `keepBool` bools as i1.
FailureOr<Value> numberOf(Call &c, StringRef name, bool keepBool = false) {
  Type type = c.numberType(name);
  Value value = type ? Value() : c.tensor(name);
  if (value)
    type = c.b.elementOf(value);
  if (!type)
    return c.ctx.invalid("argument \"" + name + "\" is missing");
  if (!isa<IntegerType, FloatType>(type))
    return c.ctx.unsupported("of a complex number is not supported");
  Type to = isa<FloatType>(type)            ? Type(c.b.getF64Type())
            : keepBool && type.isInteger(1) ? type
                                            : Type(c.b.getI64Type());
  FailureOr<Value> number = c.as(name, to);
  return failed(number) ? number : c.ctx.scalar(*number, "argument \"" + name + "\"");
}

/// Two numbers of one type: floats where one is.
LogicalResult numbersOf(Call &c, Value &x, Value &y, bool keepBool = false) {
  FailureOr<Value> a = numberOf(c, "a", keepBool), b = numberOf(c, "b", keepBool);
  if (failed(a) || failed(b))
    return failure();
  const bool isFloat = c.b.isFloat(*a) || c.b.isFloat(*b);
  const bool isBool = c.b.elementOf(*a).isInteger(1) && c.b.elementOf(*b).isInteger(1);
  Type type = isFloat ? Type(c.b.getF64Type()) : isBool ? Type(c.b.getI1Type()) : Type(c.b.getI64Type());
  x = c.b.convert(*a, type);
  y = c.b.convert(*b, type);
  return success();
}

template <typename Op> LogicalResult binary(NodeContext &ctx) {
  Call c(ctx);
  Value x, y;
  if (failed(numbersOf(c, x, y)))
    return failure();
  return ctx.result(c.b.binary<Op>(x, y));
}

/// Of bools or integers, bit by bit.
template <typename Op> LogicalResult bitwise(NodeContext &ctx) {
  Call c(ctx);
  Value x, y;
  if (failed(numbersOf(c, x, y, /*keepBool=*/true)))
    return failure();
  if (c.b.isFloat(x))
    return ctx.invalid("takes integers or bools, but got " + describe(x));
  return ctx.result(c.b.binary<Op>(x, y));
}

LogicalResult compare(NodeContext &ctx, CompareKind kind) {
  Call c(ctx);
  Value x, y;
  return failed(numbersOf(c, x, y)) ? failure() : ctx.result(c.b.compare(kind, x, y));
}

/// The quotient as an expression, where the divisor is a positive constant.
std::optional<AffineExpr> knownQuotient(NodeContext &ctx, Value x, Value y) {
  std::optional<Sizes> a = ctx.intValues(x), b = ctx.intValues(y);
  std::optional<int64_t> divisor = b ? getConstantSize(b->front()) : std::nullopt;
  if (!a || !divisor || *divisor < 1)
    return std::nullopt;
  return simplifySize(a->front().floorDiv(*divisor));
}

/// Python's //, which rounds down.
FailureOr<Value> floorDivide(NodeContext &ctx, Value x, Value y) {
  PrimBuilder &b = ctx.b;
  if (b.isFloat(x))
    return b.unary<FloorOp>(b.div(x, y));
  if (std::optional<AffineExpr> known = knownQuotient(ctx, x, y))
    return b.sizeValue(*known);
  if (auto divisor = ctx.constantInts(y); divisor && divisor->front() == 0)
    return ctx.invalid("divides by 0");
  Value quotient = b.div(x, y);
  auto isSize = [&](Value v) {
    std::optional<Sizes> known = ctx.intValues(v);
    return known && b.bounds(known->front()).first >= 0;
  };
  if (isSize(x) && isSize(y))
    return quotient;
  Value rest = b.binary<RemOp>(x, y);
  Value signsDiffer = b.binary<XorOp>(b.compare(CompareKind::LT, rest, 0), b.compare(CompareKind::LT, y, 0));
  Value isBelow = b.binary<AndOp>(b.compare(CompareKind::NE, rest, 0), signsDiffer);
  return b.sub(quotient, b.convert(isBelow, b.getI64Type()));
}

LogicalResult floorDivision(NodeContext &ctx) {
  Call c(ctx);
  Value x, y;
  if (failed(numbersOf(c, x, y)))
    return failure();
  FailureOr<Value> quotient = floorDivide(ctx, x, y);
  return failed(quotient) ? failure() : ctx.result(*quotient);
}

/// Python's %, of the divisor's sign.
LogicalResult modulo(NodeContext &ctx) {
  Call c(ctx);
  Value x, y;
  if (failed(numbersOf(c, x, y)))
    return failure();
  if (c.b.isFloat(x))
    return ctx.result(emitRemainder(c.b, x, y));
  FailureOr<Value> quotient = floorDivide(ctx, x, y);
  if (failed(quotient))
    return failure();
  if (std::optional<AffineExpr> known = knownQuotient(ctx, x, y))
    return ctx.result(c.b.sizeValue(
        simplifySize(ctx.intValues(x)->front() - *known * getConstantSize(ctx.intValues(y)->front()).value())));
  return ctx.result(c.b.sub(x, c.b.mul(*quotient, y)));
}

LogicalResult trueDivision(NodeContext &ctx) {
  Call c(ctx);
  Value x, y;
  if (failed(numbersOf(c, x, y)))
    return failure();
  Type f64 = c.b.getF64Type();
  return ctx.result(c.b.div(c.b.convert(x, f64), c.b.convert(y, f64)));
}

LogicalResult power(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = c.b;
  Value x, y;
  if (failed(numbersOf(c, x, y)))
    return failure();
  if (b.isFloat(x))
    return ctx.result(b.binary<PowOp>(x, y));
  auto exponent = ctx.constantInts(y);
  constexpr int64_t kMaxExponent = 64;
  if (!exponent || exponent->front() > kMaxExponent)
    return ctx.unsupported("with an exponent that is not known, or above 64, is not supported; compute it of floats");
  if (exponent->front() < 0)
    return ctx.result(b.binary<PowOp>(b.convert(x, b.getF64Type()), b.convert(y, b.getF64Type())));
  Value all = b.scalar(b.getI64Type(), 1);
  for (int64_t i = 0; i < exponent->front(); ++i)
    all = i == 0 ? x : b.mul(all, x);
  return ctx.result(all);
}

template <typename Op> LogicalResult roundToInteger(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = numberOf(c, c.has("a") ? "a" : "x");
  if (failed(x) || !c.b.isFloat(*x))
    return failed(x) ? failure() : ctx.result(*x);
  return ctx.result(c.b.convert(c.b.unary<Op>(*x), c.b.getI64Type()));
}

/// One that takes a float.
template <typename Op> LogicalResult unaryFloat(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = numberOf(c, c.has("a") ? "a" : "x");
  return failed(x) ? failure() : ctx.result(c.b.unary<Op>(c.b.convert(*x, c.b.getF64Type())));
}

LogicalResult choose(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> condition = numberOf(c, "b", /*keepBool=*/true), yes = numberOf(c, "t", true),
                   no = numberOf(c, "f", true);
  if (failed(condition) || failed(yes) || failed(no))
    return failure();
  if (c.b.elementOf(*yes) != c.b.elementOf(*no))
    return ctx.invalid("chooses between " + describe(*yes) + " and " + describe(*no) + "; both must be of one type");
  return ctx.result(c.b.select(c.b.convert(*condition, c.b.getI1Type()), *yes, *no));
}

//===--- numbers of tensors ---------------------------------------------------------------------------------------===//

LogicalResult sizeOfDim(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), c.b.rankOf(*self));
  return failed(axis) ? failure() : ctx.result(c.b.sizeValue(getSizes(*self)[*axis]));
}

LogicalResult item(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  FailureOr<Value> one = failed(self) ? self : ctx.scalar(*self, "argument \"self\"");
  if (failed(one))
    return failure();
  Type element = c.b.elementOf(*one);
  if (element.isInteger(1))
    return ctx.result(*one);
  if (isa<IntegerType>(element))
    return ctx.result(c.b.convert(*one, c.b.getI64Type()));
  if (isa<FloatType>(element))
    return ctx.result(c.b.convert(*one, c.b.getF64Type()));
  return ctx.unsupported("of a complex number is not supported");
}

/// sym_storage_offset, which programs hold that check it to be 0 or more, as all are; where it is is not known.
LogicalResult storageOffset(NodeContext &ctx) {
  for (Operation *user : ctx.node()->getUsers()) {
    auto node = dyn_cast<graph::NodeOp>(user);
    auto bound = node ? dyn_cast_or_null<IntegerAttr>(node.getNodeAttr("b")) : IntegerAttr();
    if (!node || node.getOpType() != "_operator.ge" || !bound || bound.getInt() > 0)
      return ctx.unsupported("is not supported: where a tensor lies in memory is not known before it runs; call "
                             ".contiguous() on it first");
  }
  return ctx.result(ctx.b.scalar(ctx.b.getI64Type(), 0));
}

//===--- assertions -----------------------------------------------------------------------------------------------===//

/// A comparison of sizes as `first` <= `second`, or `first` = `second`.
struct SizeCondition {
  CompareKind kind;
  AffineExpr first, second;
};

/// `condition` in terms of sizes: then it is known before any kernel runs, and costs none. Nullopt where it depends on
/// data, or cannot be said so.
std::optional<SizeCondition> asSizeCondition(NodeContext &ctx, Value condition) {
  if (auto either = condition.getDefiningOp<OrOp>()) { // x = y or z = w: (x - y) (z - w) = 0
    std::optional<SizeCondition> left = asSizeCondition(ctx, either.getLhs()),
                                 right = asSizeCondition(ctx, either.getRhs());
    if (!left || !right || left->kind != CompareKind::EQ || right->kind != CompareKind::EQ)
      return std::nullopt;
    return SizeCondition{CompareKind::EQ, simplifySize((left->first - left->second) * (right->first - right->second)),
                         ctx.b.size(0)};
  }
  auto compare = condition.getDefiningOp<CompareOp>();
  std::optional<Sizes> x = compare ? ctx.intValues(compare.getLhs()) : std::nullopt;
  std::optional<Sizes> y = compare ? ctx.intValues(compare.getRhs()) : std::nullopt;
  if (!x || !y || x->size() != 1 || y->size() != 1)
    return std::nullopt;
  AffineExpr lhs = x->front(), rhs = y->front();
  CompareKind kind = compare.getKind();
  if (kind == CompareKind::NE) // the square of the difference is 1 or more
    return SizeCondition{CompareKind::LE, ctx.b.size(1), simplifySize((lhs - rhs) * (lhs - rhs))};
  if (kind == CompareKind::GE || kind == CompareKind::GT)
    std::swap(lhs, rhs);
  if (kind == CompareKind::GT || kind == CompareKind::LT)
    rhs = rhs - 1;
  return SizeCondition{kind == CompareKind::EQ ? CompareKind::EQ : CompareKind::LE, simplifySize(lhs),
                       simplifySize(rhs)};
}

/// A run where `condition`, a bool, does not hold fails with `message`; so does the compilation where it never does.
LogicalResult require(NodeContext &ctx, Value condition, const Twine &message) {
  PrimBuilder &b = ctx.b;
  if (auto known = ctx.constantInts(condition)) {
    if (known->size() == 1 && known->front() != 0)
      return success();
    return ctx.invalid("never holds: " + message);
  }
  if (auto both = condition.getDefiningOp<AndOp>())
    return failed(require(ctx, both.getLhs(), message)) ? failure() : require(ctx, both.getRhs(), message);
  if (std::optional<SizeCondition> sizes = asSizeCondition(ctx, condition)) {
    AffineMap map = makeSizeMap(b.getContext(), {sizes->first, sizes->second});
    for (Operation &earlier : *b.getInsertionBlock())
      if (auto guard = dyn_cast<GuardOp>(earlier);
          guard && guard.getKind() == sizes->kind && guard.getSizes() == map && !guard.getOrOne())
        return success();
    GuardOp::create(b, sizes->kind, map, message.str(), false);
    return success();
  }
  b.guard(condition, 1, "node \"" + ctx.node().getNodeName() + "\": " + message);
  return success();
}

LogicalResult assertNumber(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> condition = numberOf(c, "self", /*keepBool=*/true);
  if (failed(condition))
    return failure();
  Value holds = c.b.convert(*condition, c.b.getI1Type());
  std::string message = ctx.getString("assert_msg", "an assertion of the model does not hold");
  return require(ctx, holds, message);
}

/// `hasResult`: gives its token on.
LogicalResult assertTensor(NodeContext &ctx, bool hasResult) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<Value> one = ctx.scalar(*self, "argument \"self\"");
  if (failed(one) || failed(require(ctx, c.b.convert(*one, c.b.getI1Type()),
                                    ctx.getString("assert_msg", "an assertion of the model does not hold"))))
    return failure();
  if (!hasResult)
    return success();
  FailureOr<Value> token = c.required("dep_token");
  return failed(token) ? failure() : ctx.result(*token);
}

/// What PyTorch has found to hold when it made the program.
LogicalResult assertMetadata(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("a");
  if (failed(self))
    return failure();
  if (auto type = dyn_cast_or_null<TypeAttr>(ctx.attr("dtype")); type && type.getValue() != c.b.elementOf(*self)) {
    std::string text;
    llvm::raw_string_ostream(text) << type.getValue();
    return ctx.invalid("needs elements of type " + text + ", but got " + describe(*self));
  }
  if (!ctx.hasAttr("size"))
    return success();
  FailureOr<Sizes> sizes = c.sizes("size");
  if (failed(sizes))
    return failure();
  return failed(ctx.castSizes(*self, *sizes)) ? failure() : success();
}

/// `isSize`: it is a size, which is 0 or more. `hasResult`: gives its token on.
LogicalResult constrainRange(NodeContext &ctx, bool isSize, bool hasResult) {
  Call c(ctx);
  PrimBuilder &b = c.b;
  FailureOr<Value> size = numberOf(c, "size");
  if (failed(size))
    return failure();
  if (b.isFloat(*size))
    return ctx.invalid("takes an integer as its size, but got " + describe(*size));
  std::optional<int64_t> bounds[2] = {isSize ? std::optional<int64_t>(0) : std::nullopt, std::nullopt};
  for (auto [i, name] : {std::pair(0, "min"), std::pair(1, "max")})
    if (auto given = dyn_cast_or_null<IntegerAttr>(ctx.attr(name)))
      if (!isSize || i == 1 || given.getInt() > 2) // 0 and 1 are never told apart from 2 (torch/_export/utils.py)
        bounds[i] = given.getInt();
  for (int64_t i : {0, 1})
    if (bounds[i] &&
        failed(require(ctx,
                       b.compare(i == 0 ? CompareKind::GE : CompareKind::LE, *size, b.sizeValue(b.size(*bounds[i]))),
                       "a number is " + Twine(i == 0 ? "below " : "above ") + Twine(*bounds[i]))))
      return failure();
  if (!hasResult)
    return success();
  FailureOr<Value> token = c.required("dep_token");
  return failed(token) ? failure() : ctx.result(*token);
}

} // namespace

void tc::populateTorchNumbers(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler) { onOp(type, /*sinceVersion=*/1, std::move(handler), 0); };
  on("_operator.add", binary<AddOp>);
  on("_operator.sub", binary<SubOp>);
  on("_operator.mul", binary<MulOp>);
  on("_operator.floordiv", floorDivision);
  on("_operator.mod", modulo);
  on("_operator.truediv", trueDivision);
  on("_operator.pow", power);
  on("_operator.and_", bitwise<AndOp>);
  on("_operator.or_", bitwise<OrOp>);
  on("_operator.xor", bitwise<XorOp>);
  on("_operator.lshift", bitwise<ShlOp>);
  on("_operator.rshift", bitwise<ShrOp>);
  on("torch.sym_max", binary<MaxOp>);
  on("torch.sym_min", binary<MinOp>);
  for (auto [name, kind] :
       {std::pair("eq", CompareKind::EQ), std::pair("ne", CompareKind::NE), std::pair("lt", CompareKind::LT),
        std::pair("le", CompareKind::LE), std::pair("gt", CompareKind::GT), std::pair("ge", CompareKind::GE)})
    on(("_operator." + Twine(name)).str(), [kind = kind](NodeContext &ctx) { return compare(ctx, kind); });
  on("_operator.neg", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> x = numberOf(c, "a");
    return failed(x) ? failure() : ctx.result(c.b.unary<NegOp>(*x));
  });
  on("_operator.pos", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> x = numberOf(c, "a");
    return failed(x) ? failure() : ctx.result(*x);
  });
  on("torch.sym_not", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> x = numberOf(c, "a");
    return failed(x) ? failure() : ctx.result(c.b.compare(CompareKind::EQ, *x, 0));
  });
  on("torch.sym_float", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> x = numberOf(c, "a");
    return failed(x) ? failure() : ctx.result(c.b.convert(*x, c.b.getF64Type()));
  });
  on("torch.sym_ite", choose);
  for (StringRef name : {"torch.sym_int", "math.trunc"})
    on(name, roundToInteger<TruncOp>);
  on("math.ceil", roundToInteger<CeilOp>);
  on("math.floor", roundToInteger<FloorOp>);
  for (StringRef name : {"torch._sym_sqrt", "torch.sym_sqrt", "math.sqrt"})
    on(name, unaryFloat<SqrtOp>);
}

void tc::populateATenSymbolic(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler) { onOp(type, /*sinceVersion=*/1, std::move(handler), 0); };
  on("sym_size.int", sizeOfDim);
  on("sym_numel.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    return failed(self) ? failure() : ctx.result(c.b.sizeValue(ctx.countElements(*self)));
  });
  on("sym_storage_offset.default", storageOffset);
  for (StringRef name : {"item.default", "_local_scalar_dense.default"})
    on(name, item);
  on("_assert_scalar.default", assertNumber);
  for (StringRef name : {"_assert_async.default", "_assert_async.msg"})
    on(name, [](NodeContext &ctx) { return assertTensor(ctx, /*hasResult=*/false); });
  on("_functional_assert_async.msg", [](NodeContext &ctx) { return assertTensor(ctx, /*hasResult=*/true); });
  on("_functional_assert_scalar.default", [](NodeContext &ctx) -> LogicalResult {
    FailureOr<Value> token = Call(ctx).required("dep_token");
    return failed(token) || failed(assertNumber(ctx)) ? failure() : ctx.result(*token);
  });
  on("_assert_tensor_metadata.default", assertMetadata);
  onOp.takeComplex(ComplexUse::Moved, {"_assert_tensor_metadata.default"});
  on("sym_constrain_range.default", [](NodeContext &ctx) { return constrainRange(ctx, false, false); });
  on("sym_constrain_range_for_size.default", [](NodeContext &ctx) { return constrainRange(ctx, true, false); });
  on("_functional_sym_constrain_range.default", [](NodeContext &ctx) { return constrainRange(ctx, false, true); });
  on("_functional_sym_constrain_range_for_size.default",
     [](NodeContext &ctx) { return constrainRange(ctx, true, true); });
}
