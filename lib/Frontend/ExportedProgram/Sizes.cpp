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

using namespace mlir;
using namespace tc;
using namespace tc::exported;

/// Sizes of inputs in conditions become symbols of this name and the dim's number.
static constexpr llvm::StringLiteral kDimPrefix = "__dim";

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

void ProgramSizes::readRanges(const json &program) {
  const json *ranges = member(program, "range_constraints");
  for (auto entry = ranges && ranges->is_object() ? ranges->begin() : json::const_iterator();
       ranges && ranges->is_object() && entry != ranges->end(); ++entry) {
    std::optional<SizeExpr> expr = parseSizeExpr(entry.key());
    auto place = expr && expr->isSymbol() ? symbols.find(expr->name) : symbols.end();
    if (place == symbols.end())
      continue; // of a derived dim, which follows, or of a size that depends on data, which nodes check
    // Every symbol is 2 or more while a program is exported; PyTorch itself runs it with 0 and 1, too
    // (torch/_export/utils.py, _check_input_constraints_for_graph).
    int64_t min = integer(member(entry.value(), "min_val")).value_or(0);
    int64_t max = integer(member(entry.value(), "max_val")).value_or(INT64_MAX);
    if (min <= 2)
      min = place->second.isNumber ? INT64_MIN : 0;
    const Place &at = place->second;
    if (at.isNumber) {
      for (auto [comparison, bound] : {std::pair("ge", min), std::pair("le", max)})
        if (bound != INT64_MIN && bound != INT64_MAX) {
          SizeExpr right;
          right.value = bound;
          const char *what = comparison == StringRef("ge") ? " is at least " : " is at most ";
          guards.push_back(
              {comparison, *expr, right, "the input that gives " + expr->name + what + std::to_string(bound)});
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

/// L['x']['ids'][0].size()[1] and its like become symbols; "" for what speaks of other things than sizes of inputs.
static std::string replaceSizes(StringRef code, llvm::function_ref<std::optional<size_t>(StringRef, size_t)> find) {
  std::string result;
  while (!code.empty()) {
    if (!code.consume_front("L[")) {
      result += code.front();
      code = code.drop_front();
      continue;
    }
    std::string path;
    do {
      StringRef key = code.take_until([](char c) { return c == ']'; });
      code = code.drop_front(key.size());
      if (!code.consume_front("]"))
        return "";
      path += (path.empty() ? "" : ".") + key.trim("'\"").str();
    } while (code.consume_front("["));
    size_t dim = 0;
    if (!code.consume_front(".size()[") || code.consumeInteger(10, dim) || !code.consume_front("]"))
      return "";
    std::optional<size_t> number = find(path, dim);
    if (!number)
      return "";
    result += (kDimPrefix + Twine(*number)).str();
  }
  return result;
}

void ProgramSizes::readGuards(ArrayRef<ProgramInput> inputs, const json &program) {
  const json *codes = member(program, "guards_code");
  for (size_t g = 0; codes && codes->is_array() && g < codes->size(); ++g) {
    const std::string text = exported::text(&(*codes)[g]).str();
    // The sizes are checked where operators need them, too: what cannot be read here is PyTorch's caution.
    std::string code = replaceSizes(text, [&](StringRef path, size_t dim) -> std::optional<size_t> {
      for (auto [i, input] : llvm::enumerate(inputs))
        if (input.name == path && dim < input.sizes.size())
          return firstDim[i] + dim;
      return std::nullopt;
    });
    constexpr std::pair<StringLiteral, StringLiteral> comparisons[] = {{"==", "eq"}, {"!=", "ne"}, {"<=", "le"},
                                                                       {">=", "ge"}, {"<", "lt"},  {">", "gt"}};
    for (auto [sign, name] : comparisons) {
      auto [before, after] = StringRef(code).split(sign);
      if (before.size() == code.size())
        continue;
      std::optional<SizeExpr> left = parseSizeExpr(before), right = parseSizeExpr(after);
      if (!left || !right)
        break;
      const bool isBound = left->isSymbol() && right->kind == SizeExpr::Kind::Integer;
      auto place = left->isSymbol() ? symbols.find(left->name) : symbols.end();
      if (name == "eq" && place != symbols.end() && right->isSymbol() && symbols.count(right->name)) {
        const std::string &a = dims[place->second.at].name, &b = dims[symbols[right->name].at].name;
        if (!a.empty() && !b.empty()) {
          const bool isFirst = place->second.at < symbols[right->name].at;
          unify(std::string(isFirst ? a : b), std::string(isFirst ? b : a));
          break;
        }
      }
      if (isBound && place != symbols.end() && (name == "le" || name == "ge")) {
        if (name == "le")
          narrow(dims[place->second.at].name, 0, right->value);
        else if (right->value > 2)
          narrow(dims[place->second.at].name, right->value, INT64_MAX);
        break;
      }
      guards.push_back({name.str(), *left, *right, text});
      break;
    }
  }
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
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input.number && input.number->isSymbol()) {
      auto [place, isNew] = symbols.try_emplace(input.number->name, Place{i, 1, 0, /*isNumber=*/true});
      const std::string own = (kDimPrefix + "n" + Twine(i)).str();
      if (isNew)
        continue;
      symbols[own] = Place{i, 1, 0, /*isNumber=*/true};
      guards.push_back({"eq", makeSymbol(own), *input.number,
                        "the input \"" + input.name + "\" is the size " + describeExpr(*input.number)});
    }
  for (const Dim &dim : dims)
    if (dim.mustBe && !asAffine(*dim.mustBe, context))
      return "input \"" + inputs[dim.input].name + "\": dim " + std::to_string(dim.dim) + " is " +
             describeExpr(*dim.mustBe) +
             ", which follows from no other input's size; export the model with a torch.export.Dim of its own for it";
  readRanges(program);
  readGuards(inputs, program);
  return "";
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
  Type i64 = builder.getI64Type();
  std::function<Value(const SizeExpr &)> evaluate = [&](const SizeExpr &expr) -> Value {
    if (expr.kind == SizeExpr::Kind::Integer) {
      auto number = DenseElementsAttr::get(RankedTensorType::get({}, i64), builder.getI64IntegerAttr(expr.value));
      return graph::ConstantOp::create(builder, builder.getUnknownLoc(), base::fromDense(number));
    }
    auto binary = [&](StringRef type, Value a, Value b) {
      return emit("torch", type, i64, {{"a", a}, {"b", b}}, {}, "sizes");
    };
    if (expr.isSymbol()) {
      auto found = symbols.find(expr.name);
      if (found == symbols.end())
        return {};
      const Place &place = found->second;
      if (place.isNumber)
        return arguments[place.at];
      const Dim &dim = dims[place.at];
      Value size = emit("aten", "sym_size.int", i64, {{"self", arguments[dim.input]}},
                        builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim.dim)), dim.name);
      SizeExpr offset, factor;
      offset.value = place.offset;
      factor.value = place.factor;
      if (place.offset)
        size = binary("_operator.sub", size, evaluate(offset));
      return place.factor == 1 ? size : binary("_operator.floordiv", size, evaluate(factor));
    }
    static const std::pair<StringRef, StringRef> operators[] = {
        {"Add", "_operator.add"},           {"Mul", "_operator.mul"}, {"FloorDiv", "_operator.floordiv"},
        {"CleanDiv", "_operator.floordiv"}, {"Mod", "_operator.mod"}, {"PythonMod", "_operator.mod"},
        {"Max", "torch.sym_max"},           {"Min", "torch.sym_min"}};
    for (auto [name, type] : operators) {
      if (expr.name != name || expr.args.empty())
        continue;
      Value all = evaluate(expr.args[0]);
      for (const SizeExpr &arg : llvm::drop_begin(expr.args)) {
        Value next = all ? evaluate(arg) : Value();
        all = next ? binary(type, all, next) : Value();
      }
      return all;
    }
    return {};
  };
  for (const Guard &guard : guards) {
    Value left = evaluate(guard.left), right = left ? evaluate(guard.right) : Value();
    if (!right)
      continue;
    Value holds =
        emit("torch", "_operator." + guard.comparison, builder.getI1Type(), {{"a", left}, {"b", right}}, {}, "sizes");
    emit("aten", "_assert_scalar.default", {}, {{"self", holds}},
         builder.getNamedAttr("assert_msg",
                              builder.getStringAttr("the model was exported for inputs of which " + guard.text)),
         "inputs");
  }
}
