//===- CustomOperator.cpp - operators of the user's own -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CustomOperator.h"

#include "ONNXSupport.h"
#include "tc/Dialect/Prim/IR/HostCalls.h"
#include "tcrt/tcrt.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

FailureOr<AffineExpr> evaluate(NodeContext &ctx, ValueRange operands, const CustomOperator::Expression &steps) {
  using Step = CustomOperator::Step;
  SmallVector<AffineExpr> stack;
  for (const Step &step : steps) {
    if (step.kind == Step::Number || step.kind == Step::Dim) {
      stack.push_back(step.kind == Step::Number ? ctx.b.size(step.number)
                                                : getSizes(operands[step.operand])[step.number]);
      continue;
    }
    AffineExpr right = stack.pop_back_val(), left = stack.pop_back_val();
    if (step.kind == Step::Divide && failed(ctx.require(CompareKind::LE, ctx.b.size(1), right, "a divisor above 0")))
      return failure();
    stack.push_back(step.kind == Step::Add        ? left + right
                    : step.kind == Step::Subtract ? left - right
                    : step.kind == Step::Multiply ? left * right
                                                  : left.floorDiv(right));
  }
  AffineExpr size = simplifySize(stack.front());
  if (failed(ctx.require(CompareKind::LE, ctx.b.size(0), size, "results of sizes that are not negative")))
    return failure();
  return size;
}

Type elementTypeOf(NodeContext &ctx, int64_t dtype) {
  return dtype == TCRT_DTYPE_STRING ? Type(base::StringType::get(ctx.b.getContext()))
                                    : elementTypeOfONNX(ctx.b.getContext(), dtype);
}

/// Where the operands of a node stand: in the order of its signature, or, where the node says which argument each one
/// is
/// (`arg_names`, as PyTorch's doors give), by name.
class Arguments {
public:
  explicit Arguments(NodeContext &ctx) : ctx(ctx), names(dyn_cast_or_null<ArrayAttr>(ctx.attr("arg_names"))) {}
  bool areNamed() const { return bool(names); }
  Value find(StringRef name, size_t position) const {
    if (!names)
      return ctx.operand(position);
    for (auto [i, known] : llvm::enumerate(names.getAsRange<StringAttr>()))
      if (known.getValue() == name)
        return ctx.operand(i);
    return {};
  }
  /// Whether a signature has none for this attribute, as it only describes the operands.
  bool describesOperands(StringRef attribute) const { return names && attribute == "arg_names"; }
  /// The first operand whose argument is neither an operand nor an attribute of the signature; empty if there is none.
  StringRef findUnknown(const CustomOperator &custom) const {
    auto knows = [&](const auto &list, StringRef name) {
      return llvm::any_of(list, [&](const auto &entry) { return entry.name == name; });
    };
    if (!names)
      return {};
    for (StringAttr known : names.getAsRange<StringAttr>()) {
      // An entry of a list is its name and its number.
      auto [list, number] = known.getValue().rsplit('.');
      if (!knows(custom.operands, known.getValue()) && !knows(custom.attributes, known.getValue()) &&
          !knows(custom.attributes, list))
        return known.getValue();
    }
    return {};
  }

private:
  NodeContext &ctx;
  ArrayAttr names;
};

/// A number, or a list, with entries that only the run knows: a tensor of i64 or f64. Null if it is none such.
Value symbolicValue(NodeContext &ctx, const Arguments &arguments, const CustomOperator::Attribute &attribute) {
  PrimBuilder &b = ctx.b;
  Attribute given = ctx.attr(attribute.name);
  if (!arguments.areNamed() || !given || attribute.kind == CustomOperator::Attribute::String)
    return {};
  const bool isFloat = attribute.kind == CustomOperator::Attribute::Float;
  auto entryValue = [&](Attribute entry) -> Value {
    if (auto name = dyn_cast<StringAttr>(entry)) {
      Value v = arguments.find(name.getValue(), 0);
      if (!v || b.rankOf(v) != 0 || !(isa<IntegerType>(b.elementOf(v)) || (isFloat && isa<FloatType>(b.elementOf(v)))))
        return {};
      return b.convert(v, isFloat ? Type(b.getF64Type()) : Type(b.getI64Type()));
    }
    auto integer = dyn_cast<IntegerAttr>(entry);
    auto number = dyn_cast<FloatAttr>(entry);
    if (auto flag = dyn_cast<BoolAttr>(entry))
      return isFloat ? Value() : b.sizeValue(b.size(flag.getValue()));
    if (isFloat && (integer || number))
      return b.scalar(b.getF64Type(), number ? number.getValueAsDouble() : double(integer.getInt()));
    return integer && !isFloat ? b.sizeValue(b.size(integer.getInt())) : Value();
  };
  if (!attribute.isList)
    return isa<StringAttr>(given) ? entryValue(given) : Value();
  auto list = dyn_cast<ArrayAttr>(given);
  if (!list || list.empty())
    return {};
  SmallVector<Value> entries;
  for (Attribute entry : list) {
    Value v = entryValue(entry);
    if (!v)
      return {};
    entries.push_back(b.unsqueeze(v, 0));
  }
  return b.concat(entries, 0);
}

/// The attribute as a constant: i64, f64 or string, 0-D or a list.
FailureOr<Value> attributeValue(NodeContext &ctx, const Arguments &arguments,
                                const CustomOperator::Attribute &attribute) {
  PrimBuilder &b = ctx.b;
  Attribute given = ctx.attr(attribute.name);
  if (Value v = symbolicValue(ctx, arguments, attribute))
    return v;
  auto wrong = [&](const Twine &what) {
    return LogicalResult(ctx.invalid("attribute " + attribute.name + " " + what));
  };
  if (!given && !attribute.hasDefault)
    return wrong("is missing, and its signature has no default");
  std::vector<int64_t> ints = attribute.ints;
  std::vector<double> floats = attribute.floats;
  std::vector<std::string> strings = attribute.strings;
  if (given) {
    bool fits = false;
    auto take = [&](auto &values, auto list, auto one) {
      values.clear();
      if (attribute.isList && list)
        values.assign(list->begin(), list->end());
      else if (!attribute.isList && one)
        values.push_back(*one);
      // An empty list has no kind of its own.
      auto array = dyn_cast<ArrayAttr>(given);
      fits = attribute.isList ? list || (array && array.empty()) : bool(one);
    };
    std::optional<SmallVector<int64_t>> flags;
    if (auto bools = dyn_cast<DenseBoolArrayAttr>(given))
      flags = llvm::map_to_vector(bools.asArrayRef(), [](bool flag) { return int64_t(flag); });
    if (attribute.kind == CustomOperator::Attribute::Int)
      take(ints, flags ? flags : ctx.getInts(attribute.name),
           isa<BoolAttr>(given)      ? std::optional<int64_t>(cast<BoolAttr>(given).getValue())
           : isa<IntegerAttr>(given) ? std::optional(ctx.getInt(attribute.name, 0))
                                     : std::nullopt);
    else if (attribute.kind == CustomOperator::Attribute::Float)
      // Where a schema says Scalar, a whole number is stored as one.
      take(floats, ctx.getFloats(attribute.name),
           isa<FloatAttr>(given) ? std::optional(ctx.getFloat(attribute.name, 0))
           : arguments.areNamed() && isa<IntegerAttr>(given)
               ? std::optional<double>(cast<IntegerAttr>(given).getValue().getSExtValue())
               : std::nullopt);
    else
      take(strings, ctx.getStrings(attribute.name),
           isa<StringAttr>(given) ? std::optional(ctx.getString(attribute.name, "")) : std::nullopt);
    if (!fits)
      return wrong("is not of the type that its signature says");
  }
  if (attribute.kind == CustomOperator::Attribute::Int)
    return attribute.isList ? b.constantI64s(ints) : b.sizeValue(b.size(ints.front()));
  if (attribute.kind == CustomOperator::Attribute::Float) {
    SmallVector<int64_t> shape;
    if (attribute.isList)
      shape.push_back(floats.size());
    auto type = RankedTensorType::get(shape, b.getF64Type());
    return Value(prim::ConstantOp::create(b, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef<double>(floats)))));
  }
  SmallVector<StringRef> texts(strings.begin(), strings.end());
  return attribute.isList ? b.strings(texts, {int64_t(texts.size())}) : b.string(texts.front());
}

/// What a node's results are, in order: of what the function makes the one of that number, or an operand in its place.
struct ResultSource {
  bool isOperand;
  size_t number;
};

/// `written`: numbers of the operands that are. Failure where the node has another form than the signature says.
FailureOr<SmallVector<ResultSource>> findResultSources(NodeContext &ctx, const CustomOperator &custom,
                                                       ArrayRef<size_t> written, bool early) {
  const bool isFunctional = ctx.node()->hasAttr(graph::kFunctionalAttr);
  SmallVector<ResultSource> sources;
  if (custom.writes() && !isFunctional) {
    if (!early)
      return LogicalResult(
          ctx.invalid("writes its arguments, of which tc-functionalize-graph makes values; programs of "
                      "PyTorch can have such operators, and others can't"));
    size_t made = 0;
    for (const torch::SchemaArgument &result : custom.schema->results) {
      const torch::SchemaType *alias = result.type.findAlias();
      if (!alias) {
        sources.push_back({false, made++});
        continue;
      }
      for (size_t operand : written)
        if (custom.schema->find(custom.operands[operand].name)->type.findAlias()->aliasSet == alias->aliasSet) {
          sources.push_back({true, operand});
          break;
        }
    }
  } else {
    for (size_t i = 0; i < custom.results.size() + (isFunctional ? written.size() : 0); ++i)
      sources.push_back({false, i});
  }
  if (ctx.numResults() > sources.size() || (custom.schema && ctx.numResults() < sources.size()))
    return LogicalResult(
        ctx.invalid("has " + Twine(ctx.numResults()) + " results, its signature " + Twine(sources.size())));
  return sources;
}

} // namespace

LogicalResult tc::convertCustomOperator(NodeContext &ctx, const CustomOperator &custom, bool early) {
  PrimBuilder &b = ctx.b;
  const Arguments arguments(ctx);
  if (StringRef unknown = arguments.findUnknown(custom); !unknown.empty())
    return ctx.invalid("has the tensor argument " + unknown + ", which its signature lacks");
  // Archives do not say which arguments an operator of torch.library writes, but one without results does nothing else.
  if (arguments.areNamed() && ctx.numResults() == 0 && !custom.writes())
    return ctx.invalid(
        "returns nothing, so that it can only write its arguments; its signature needs a \"schema\" that "
        "says which, such as \"" +
        ctx.node().getDomain() + "::" + ctx.node().getOpType().split('.').first + "(Tensor(a!) x) -> ()\"");
  if (!arguments.areNamed() && ctx.numOperands() != custom.operands.size())
    return ctx.invalid("has " + Twine(ctx.numOperands()) + " operands, its signature " + Twine(custom.operands.size()));
  for (NamedAttribute attribute : ctx.node().getAttrs()) {
    if (llvm::is_contained(custom.omitted, attribute.getName().strref()))
      return ctx.invalid("has the argument " + attribute.getName().strref() +
                         ", which is None by default, and functions are not given; leave it out");
    if (!arguments.describesOperands(attribute.getName()) &&
        llvm::none_of(custom.attributes, [&](const auto &known) { return known.name == attribute.getName().strref(); }))
      return ctx.invalid("has the attribute " + attribute.getName().strref() + ", which its signature lacks");
  }
  SmallVector<Value> operands;
  SmallVector<size_t> written;
  for (auto [i, operand] : llvm::enumerate(custom.operands)) {
    Value v = arguments.find(operand.name, i);
    // None is an optional that is empty, which the function sees as a tensor without a dtype.
    if (!v && operand.isOptional) {
      operands.push_back(b.scalar(base::OptType::get(b.getContext(), RankedTensorType::get({}, b.getF32Type())), 0));
      continue;
    }
    if (!v)
      return ctx.invalid("operand " + Twine(i) + " (" + operand.name + ") is absent");
    Type element = b.elementOf(v);
    if (base::isHandle(element) || isNarrowElement(element))
      return ctx.unsupported("with operand " + operand.name + " of type " + describe(v) +
                             " is not supported; custom operators take tensors of elements of 8 bits and more, and of "
                             "strings");
    if ((operand.dtype && element != elementTypeOf(ctx, operand.dtype)) ||
        (operand.rank >= 0 && operand.rank != b.rankOf(v)))
      return ctx.invalid("operand " + operand.name + " is " + describe(v) + ", its signature says " +
                         (operand.dtype ? tcrt_dtype_name(tcrt_dtype_t(operand.dtype)) : "any dtype") +
                         (operand.rank >= 0 ? " of rank " + Twine(operand.rank) : Twine(" of any rank")));
    if (operand.written)
      written.push_back(i);
    operands.push_back(v);
  }
  FailureOr<SmallVector<ResultSource>> sources = findResultSources(ctx, custom, written, early);
  if (failed(sources))
    return failure();
  for (const CustomOperator::Attribute &attribute : custom.attributes) {
    FailureOr<Value> value = attributeValue(ctx, arguments, attribute);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  SmallVector<Type> types;
  SmallVector<RankedTensorType> insides;
  for (const CustomOperator::Result &result : custom.results) {
    Type element = result.dtype ? elementTypeOf(ctx, result.dtype) : b.elementOf(operands[result.like]);
    insides.emplace_back();
    if (result.freeRank) {
      SmallVector<int64_t> shape(*result.freeRank, ShapedType::kDynamic);
      insides.back() = RankedTensorType::get(shape, element);
      types.push_back(makeType(base::OptType::get(b.getContext(), insides.back()), {}));
      continue;
    }
    Sizes sizes;
    if (result.dimsOf)
      sizes = getSizes(operands[*result.dimsOf]);
    for (const CustomOperator::Expression &expression : result.dims) {
      FailureOr<AffineExpr> size = evaluate(ctx, operands, expression);
      if (failed(size))
        return failure();
      sizes.push_back(*size);
    }
    types.push_back(makeType(element, sizes));
  }
  // The function writes into a tensor that has the operand's elements.
  SmallVector<int64_t> inits(types.size(), -1);
  for (size_t operand : written) {
    types.push_back(operands[operand].getType());
    insides.emplace_back();
    inits.push_back(int64_t(operand));
  }
  SmallVector<Value> results(b.hostCall(custom.function, operands, types));
  if (!written.empty())
    results.front().getDefiningOp()->setAttr(kInitsAttr, b.getDenseI64ArrayAttr(inits));
  for (size_t i = 0; i < ctx.numResults(); ++i) {
    const auto [isOperand, number] = (*sources)[i];
    FailureOr<Value> v = isOperand         ? FailureOr<Value>(operands[number])
                         : insides[number] ? takeOut(ctx, results[number], insides[number])
                                           : FailureOr<Value>(results[number]);
    if (failed(v) || failed(ctx.set(i, *v)))
      return failure();
  }
  return success();
}
