//===- Sizes.cpp - sizes of what programs of torch.export take ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Sizes.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Signature.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <functional>

using namespace mlir;
using namespace tc;
using namespace tc::exported;

/// Sizes of inputs in conditions become symbols of this name and the dim's number.
static constexpr llvm::StringLiteral kDimPrefix = "__dim";

/// And integers that are inputs, of this one.
static constexpr llvm::StringLiteral kNumberPrefix = "__number";

static SizeExpr makeCall(StringRef name, SizeExpr left, SizeExpr right) {
  SizeExpr call;
  call.kind = SizeExpr::Kind::Call;
  call.name = name.str();
  call.args = {std::move(left), std::move(right)};
  return call;
}

static SizeExpr makeSymbol(std::string name) {
  SizeExpr symbol;
  symbol.kind = SizeExpr::Kind::Symbol;
  symbol.name = std::move(name);
  return symbol;
}

std::string ProgramSizes::describeExpr(const SizeExpr &expr) const {
  return expr.str([&](const std::string &symbol) {
    auto found = symbols.find(symbol);
    if (found == symbols.end() || found->second.isNumber || found->second.factor != 1 || found->second.offset != 0)
      return symbol;
    return dims[found->second.at].name;
  });
}

void ProgramSizes::unify(const std::string &keep, const std::string &drop) {
  for (Dim &dim : dims)
    if (dim.name == drop)
      dim.name = keep;
}

void ProgramSizes::narrow(const std::string &name, int64_t min, int64_t max) {
  for (Dim &dim : dims)
    if (dim.name == name) {
      dim.min = std::max(dim.min, min);
      dim.max = std::min(dim.max, max);
    }
}

std::optional<AffineExpr> ProgramSizes::asAffine(const SizeExpr &expr, MLIRContext *context) const {
  if (expr.kind == SizeExpr::Kind::Integer)
    return getAffineConstantExpr(expr.value, context);
  if (expr.isSymbol()) {
    auto found = symbols.find(expr.name);
    if (found == symbols.end() || found->second.isNumber)
      return std::nullopt;
    const Place &place = found->second;
    AffineExpr size = getAffineSymbolExpr(place.at, context);
    return place.factor == 1 ? size - place.offset : (size - place.offset).floorDiv(place.factor);
  }
  SmallVector<AffineExpr> args;
  for (const SizeExpr &arg : expr.args) {
    std::optional<AffineExpr> one = asAffine(arg, context);
    if (!one)
      return std::nullopt;
    args.push_back(*one);
  }
  const bool isSum = expr.name == "Add";
  if ((isSum || expr.name == "Mul") && !args.empty()) {
    AffineExpr all = args[0];
    for (AffineExpr arg : llvm::drop_begin(args))
      all = isSum ? all + arg : all * arg;
    return all;
  }
  if (args.size() != 2)
    return std::nullopt;
  auto constant = dyn_cast<AffineConstantExpr>(args[1]);
  const int64_t number = constant ? constant.getValue() : 0;
  constexpr int64_t kMaxPower = 8;
  if (expr.name == "Pow" && number >= 1 && number <= kMaxPower) {
    AffineExpr all = args[0];
    for (int64_t i = 1; i < number; ++i)
      all = all * args[0];
    return all;
  }
  if (number < 1)
    return std::nullopt;
  if (expr.name == "FloorDiv" || expr.name == "CleanDiv")
    return args[0].floorDiv(number);
  if (expr.name == "Mod" || expr.name == "PythonMod")
    return args[0] % number;
  return std::nullopt;
}

void ProgramSizes::readRanges(ArrayRef<ProgramInput> inputs, const json &program) {
  const json *ranges = member(program, "range_constraints");
  for (auto entry = ranges && ranges->is_object() ? ranges->begin() : json::const_iterator();
       ranges && ranges->is_object() && entry != ranges->end(); ++entry) {
    std::optional<SizeExpr> expr = parseSizeExpr(entry.key());
    auto place = expr && expr->isSymbol() ? symbols.find(expr->name) : symbols.end();
    if (place == symbols.end())
      continue; // of a derived dim, which follows, or of a size that depends on data, which nodes check
    // Every symbol is 2 or more while a program is exported; PyTorch itself runs it with 0 and 1, too
    // (torch/_export/utils.py, _check_input_constraints_for_graph). Below 0 is a number that derived dims alone hold.
    int64_t min = integer(member(entry.value(), "min_val")).value_or(0);
    int64_t max = integer(member(entry.value(), "max_val")).value_or(INT64_MAX);
    if (min <= 2 && (min >= 0 || place->second.isNumber))
      min = place->second.isNumber ? INT64_MIN : 0;
    const Place &at = place->second;
    if (at.isNumber) {
      for (auto [comparison, bound] : {std::pair("Ge", min), std::pair("Le", max)})
        if (bound != INT64_MIN && bound != INT64_MAX) {
          SizeExpr number;
          number.value = bound;
          guards.push_back({makeCall(comparison, *expr, number),
                            "the number \"" + inputs[at.at].name + "\" is " +
                                (comparison == StringRef("Ge") ? "at least " : "at most ") + std::to_string(bound)});
        }
      continue;
    }
    int64_t low = 0, high = INT64_MAX;
    if (!llvm::MulOverflow(min, at.factor, low) && !llvm::AddOverflow(low, at.offset, low))
      narrow(dims[at.at].name, low, INT64_MAX);
    if (max != INT64_MAX && !llvm::MulOverflow(max, at.factor, high) && !llvm::AddOverflow(high, at.offset, high))
      narrow(dims[at.at].name, 0, high);
  }
}

/// L['x']['ids'][0].mask.size()[1] and its like become symbols; "" for what speaks of other things than sizes of
/// inputs.
static std::string replaceSizes(StringRef code,
                                llvm::function_ref<std::string(StringRef, std::optional<size_t>)> find) {
  std::string result;
  while (!code.empty()) {
    if (!code.consume_front("L[")) {
      result += code.front();
      code = code.drop_front();
      continue;
    }
    std::string path;
    auto isEnd = [](char c) { return c == ']'; };
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    StringRef key = code.take_until(isEnd);
    while (true) {
      path += (path.empty() ? "" : ".") + key.trim("'\"").str();
      code = code.drop_front(key.size());
      code.consume_front("]");
      if (code.consume_front("["))
        key = code.take_until(isEnd);
      else if (!code.starts_with(".size()") && code.consume_front("."))
        key = code.take_while(isWord);
      else
        break;
    }
    std::optional<size_t> dim;
    if (code.consume_front(".size()[")) {
      dim = 0;
      if (code.consumeInteger(10, *dim) || !code.consume_front("]"))
        return "";
    }
    std::string symbol = find(path, dim);
    if (symbol.empty())
      return "";
    result += symbol;
  }
  return result;
}

std::string ProgramSizes::readGuards(ArrayRef<ProgramInput> inputs, const json &program) {
  const json *codes = member(program, "guards_code");
  for (size_t g = 0; codes && codes->is_array() && g < codes->size(); ++g) {
    StringRef text = exported::text(&(*codes)[g]);
    const bool ofNumber = llvm::any_of(inputs, [](const ProgramInput &input) { return input.number.has_value(); });
    if (!text.contains(".size()") && !ofNumber)
      continue; // of what is known of the program, such as element types
    std::string code = replaceSizes(text, [&](StringRef path, std::optional<size_t> dim) -> std::string {
      // The entries of *args and **kwargs have names of their own.
      auto flatten = [](StringRef name) { return llvm::join(llvm::split(name, '.'), "_"); };
      for (StringRef name : {path, path.split('.').second})
        for (auto [i, input] : llvm::enumerate(inputs)) {
          if (flatten(input.name) != flatten(name))
            continue;
          if (dim && *dim < input.sizes.size())
            return (kDimPrefix + Twine(firstDim[i] + *dim)).str();
          if (!dim && input.number)
            return (kNumberPrefix + Twine(i)).str();
        }
      return "";
    });
    std::optional<SizeExpr> condition = parseSizeExpr(code);
    if (!condition || !isKnown(*condition))
      return "the model was exported under the condition " + text.str() +
             ", which tc cannot check; export it with fixed sizes, or with a torch.export.Dim for each open one";
    // Two sizes that are equal are one; a bound is a range.
    auto isDim = [&](const SizeExpr &expr) { return expr.isSymbol() && !symbols[expr.name].isNumber; };
    if (condition->kind == SizeExpr::Kind::Call && condition->args.size() == 2 && isDim(condition->args[0])) {
      const SizeExpr &other = condition->args[1];
      const Dim &left = dims[symbols[condition->args[0].name].at];
      if (condition->name == "Eq" && isDim(other)) {
        const Dim &right = dims[symbols[other.name].at];
        if (!left.name.empty() && !right.name.empty()) {
          const bool isFirst = &left < &right;
          unify(std::string(isFirst ? left.name : right.name), std::string(isFirst ? right.name : left.name));
          continue;
        }
      }
      if (condition->name == "Le" && other.kind == SizeExpr::Kind::Integer) {
        narrow(left.name, 0, other.value);
        continue;
      }
      if (condition->name == "Ge" && other.kind == SizeExpr::Kind::Integer) {
        narrow(left.name, other.value <= 2 ? 0 : other.value, INT64_MAX);
        continue;
      }
    }
    std::string words = condition->str([&](const std::string &symbol) {
      const Place &place = symbols[symbol];
      return place.isNumber ? inputs[place.at].name
                            : inputs[dims[place.at].input].name + "." + std::to_string(dims[place.at].dim);
    });
    guards.push_back({std::move(*condition), std::move(words)});
  }
  return "";
}

std::string ProgramSizes::read(MLIRContext *context, ArrayRef<ProgramInput> inputs, const json &program) {
  for (auto [i, input] : llvm::enumerate(inputs)) {
    firstDim.push_back(dims.size());
    for (auto [d, size] : llvm::enumerate(input.sizes)) {
      Dim dim{i, d, "", 0, INT64_MAX, std::nullopt};
      symbols[(kDimPrefix + Twine(dims.size())).str()] = Place{dims.size()};
      if (input.type.isDynamicDim(d)) {
        if (!size)
          return "input \"" + input.name + "\": the size of dim " + std::to_string(d) +
                 " cannot be read; supported are integer expressions of other sizes";
        dim.name = input.name + "." + std::to_string(d);
        if (size->isSymbol()) {
          auto [place, isNew] = symbols.try_emplace(size->name, Place{dims.size()});
          if (!isNew)
            dim.name = dims[place->second.at].name;
        } else {
          dim.mustBe = *size;
        }
      }
      dims.push_back(std::move(dim));
    }
  }
  // A symbol that no dim is alone, as where a size is a multiple of a number.
  for (auto [number, dim] : llvm::enumerate(dims))
    if (std::optional<SizeExpr::Linear> linear = dim.mustBe ? dim.mustBe->asLinear() : std::nullopt;
        linear && linear->factor > 0 && !linear->symbol.empty())
      symbols.try_emplace(linear->symbol, Place{number, linear->factor, linear->offset});
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!input.number)
      continue;
    const Place place{i, 1, 0, /*isNumber=*/true};
    const std::string own = (kNumberPrefix + Twine(i)).str();
    symbols[own] = place;
    if (input.number->isSymbol() && !symbols.try_emplace(input.number->name, place).second)
      guards.push_back({makeCall("Eq", makeSymbol(own), *input.number),
                        "the number \"" + input.name + "\" is the size " + describeExpr(*input.number)});
  }
  for (const Dim &dim : dims)
    if (dim.mustBe && !asAffine(*dim.mustBe, context))
      return "input \"" + inputs[dim.input].name + "\": dim " + std::to_string(dim.dim) + " is " +
             describeExpr(*dim.mustBe) +
             ", which follows from no other input's size; export the model with a torch.export.Dim of its own for it";
  readRanges(inputs, program);
  return readGuards(inputs, program);
}

DictionaryAttr ProgramSizes::describe(OpBuilder &builder, const ProgramInput &input, size_t index) const {
  SmallVector<StringRef> names;
  SmallVector<int64_t> ranges;
  SmallVector<AffineExpr> sizes;
  bool hasRange = false, hasMap = false;
  for (size_t d = 0; d < input.sizes.size(); ++d) {
    const size_t number = firstDim[index] + d;
    const Dim &dim = dims[number];
    names.push_back(dim.name);
    ranges.append({dim.min, dim.max});
    hasRange |= dim.min > 0 || dim.max < INT64_MAX;
    hasMap |= dim.mustBe.has_value();
    AffineExpr own = dim.name.empty() ? builder.getAffineConstantExpr(input.type.getDimSize(d))
                                      : builder.getAffineSymbolExpr(number);
    sizes.push_back(dim.mustBe ? *asAffine(*dim.mustBe, builder.getContext()) : own);
  }
  NamedAttrList attributes;
  attributes.set(graph::kNameAttr, builder.getStringAttr(input.name));
  attributes.set(graph::kDimsAttr, builder.getStrArrayAttr(names));
  if (hasRange)
    attributes.set(graph::kRangesAttr, builder.getDenseI64ArrayAttr(ranges));
  if (hasMap)
    attributes.set(graph::kSizesAttr, AffineMapAttr::get(AffineMap::get(0, dims.size(), sizes, builder.getContext())));
  return attributes.getDictionary(builder.getContext());
}

ArrayAttr ProgramSizes::nameDims(OpBuilder &builder, ArrayRef<std::optional<SizeExpr>> sizes) const {
  SmallVector<StringRef> names;
  for (const std::optional<SizeExpr> &size : sizes) {
    auto found = size && size->isSymbol() ? symbols.find(size->name) : symbols.end();
    const bool isDim =
        found != symbols.end() && !found->second.isNumber && found->second.factor == 1 && found->second.offset == 0;
    names.push_back(isDim ? StringRef(dims[found->second.at].name) : StringRef());
  }
  return builder.getStrArrayAttr(names);
}

/// Operators of expressions as nodes of PyTorch's programs.
static StringRef findOperator(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("Add", "_operator.add")
      .Case("Mul", "_operator.mul")
      .Case("Pow", "_operator.pow")
      .Cases({"FloorDiv", "CleanDiv"}, "_operator.floordiv")
      .Cases({"Mod", "PythonMod"}, "_operator.mod")
      .Cases({"Max", "max", "sym_max"}, "torch.sym_max")
      .Cases({"Min", "min", "sym_min"}, "torch.sym_min")
      .Case("Eq", "_operator.eq")
      .Case("Ne", "_operator.ne")
      .Case("Le", "_operator.le")
      .Case("Ge", "_operator.ge")
      .Case("Lt", "_operator.lt")
      .Case("Gt", "_operator.gt")
      .Case("Or", "_operator.or_")
      .Case("And", "_operator.and_")
      .Case("Not", "torch.sym_not")
      .Default("");
}

bool ProgramSizes::isKnown(const SizeExpr &expr) const {
  if (expr.kind == SizeExpr::Kind::Integer)
    return true;
  if (expr.isSymbol())
    return symbols.count(expr.name);
  return !findOperator(expr.name).empty() && !expr.args.empty() &&
         llvm::all_of(expr.args, [&](const SizeExpr &arg) { return isKnown(arg); });
}

void ProgramSizes::emitGuards(OpBuilder &builder, ValueRange arguments, int64_t opset) const {
  auto emit = [&](StringRef domain, StringRef type, Type result, ArrayRef<std::pair<StringRef, Value>> operands,
                  ArrayRef<NamedAttribute> attributes, StringRef name) -> Value {
    NamedAttrList all(attributes);
    SmallVector<Value> values;
    SmallVector<StringRef> names;
    for (auto [operandName, value] : operands) {
      values.push_back(value);
      names.push_back(operandName);
    }
    all.set("arg_names", builder.getStrArrayAttr(names));
    SmallVector<Type> types;
    if (result)
      types.push_back(RankedTensorType::get({}, result));
    auto node = graph::NodeOp::create(builder, NameLoc::get(builder.getStringAttr(name)), domain, type, opset, types,
                                      values, all);
    return result ? node.getOutputs()[0] : Value();
  };
  Type i64 = builder.getI64Type(), i1 = builder.getI1Type();
  auto number = [&](int64_t value) -> Value {
    auto dense = DenseElementsAttr::get(RankedTensorType::get({}, i64), builder.getI64IntegerAttr(value));
    return graph::ConstantOp::create(builder, builder.getUnknownLoc(), base::fromDense(dense));
  };
  auto binary = [&](StringRef type, Type result, Value a, Value b) {
    return emit("torch", type, result, {{"a", a}, {"b", b}}, {}, "inputs");
  };
  std::function<Value(const SizeExpr &)> evaluate = [&](const SizeExpr &expr) -> Value {
    if (expr.kind == SizeExpr::Kind::Integer)
      return number(expr.value);
    if (expr.isSymbol()) {
      const Place &place = symbols.find(expr.name)->second;
      if (place.isNumber)
        return arguments[place.at];
      const Dim &dim = dims[place.at];
      Value size = emit("aten", "sym_size.int", i64, {{"self", arguments[dim.input]}},
                        builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim.dim)), "inputs");
      if (place.offset)
        size = binary("_operator.sub", i64, size, number(place.offset));
      return place.factor == 1 ? size : binary("_operator.floordiv", i64, size, number(place.factor));
    }
    StringRef type = findOperator(expr.name);
    const bool isArithmetic =
        llvm::is_contained({"_operator.add", "_operator.mul", "_operator.pow", "_operator.floordiv", "_operator.mod",
                            "torch.sym_max", "torch.sym_min"},
                           type);
    Value all = evaluate(expr.args[0]);
    if (expr.name == "Not")
      return emit("torch", type, i1, {{"a", all}}, {}, "inputs");
    for (const SizeExpr &arg : llvm::drop_begin(expr.args))
      all = binary(type, isArithmetic ? i64 : i1, all, evaluate(arg));
    return all;
  };
  for (const Guard &guard : guards)
    emit("aten", "_assert_scalar.default", {}, {{"self", evaluate(guard.condition)}},
         builder.getNamedAttr("assert_msg",
                              builder.getStringAttr("the model was exported for inputs where " + guard.text)),
         "inputs");
}
