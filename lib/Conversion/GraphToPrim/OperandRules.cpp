//===- OperandRules.cpp - ranks, sizes and constants that operators ask of their operands -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "OperandRules.h"

#include "ConstantData.h"
#include "NodeContext.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

//===--- reading --------------------------------------------------------------------------------------------------===//

namespace {

class Parser {
public:
  explicit Parser(StringRef text) : whole(text), text(text) {}

  OperandRules parse() {
    OperandRules rules;
    while (!skipSpace().empty())
      rules.push_back(parseOperand());
    return rules;
  }

private:
  [[noreturn]] void fail() { llvm::report_fatal_error("OperandRules.def: \"" + whole + "\" at \"" + text + "\""); }
  StringRef skipSpace() { return text = text.ltrim(); }
  bool take(StringRef token) {
    skipSpace();
    return text.consume_front(token);
  }
  void expect(StringRef token) {
    if (!take(token))
      fail();
  }
  std::string parseName() {
    StringRef name = skipSpace().take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      fail();
    text = text.drop_front(name.size());
    return name.str();
  }
  int64_t parseNumber() {
    int64_t number;
    skipSpace();
    if (text.consumeInteger(10, number))
      fail();
    return number;
  }

  OperandRule parseOperand() {
    OperandRule rule;
    rule.isAttribute = take("@");
    rule.name = parseName();
    if (text.starts_with("[")) {
      do {
        expect("[");
        std::vector<DimRule> &form = rule.forms.emplace_back();
        while (!take("]")) {
          form.push_back(parseDim());
          if (!take(",") && !skipSpace().starts_with("]"))
            fail();
        }
      } while (take("|"));
    }
    if (text.consume_front("{"))
      do
        rule.checks.push_back(parseCheck());
      while (take(","));
    else
      return rule;
    expect("}");
    return rule;
  }

  SizeFactor parseFactor() {
    SizeFactor factor;
    skipSpace();
    if (llvm::isDigit(text.front())) {
      factor.value = parseNumber();
      return factor;
    }
    factor.kind = take("@") ? SizeFactor::Attribute : SizeFactor::Name;
    factor.name = parseName();
    if (factor.name == "rank" && take("(")) {
      factor.kind = SizeFactor::Rank;
      factor.name = parseName();
      expect(")");
    } else if (factor.kind == SizeFactor::Attribute && take("=")) {
      factor.value = parseNumber();
    }
    return factor;
  }

  DimRule parseDim() {
    DimRule dim;
    skipSpace();
    // A run: D* D+ K*D K+D, without spaces.
    StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    StringRef behind = text.drop_front(name.size());
    if (!name.empty() && !llvm::isDigit(name.front()) && (behind.starts_with("*") || behind.starts_with("+"))) {
      dim.kind = DimRule::Run;
      dim.name = name.str();
      dim.atLeastOne = behind.front() == '+';
      text = behind.drop_front();
      if (llvm::isAlpha(text.front()))
        dim.sameCountAs = parseName();
      return dim;
    }
    if (name == "_") {
      text = behind;
      return dim;
    }
    dim.kind = DimRule::Size;
    dim.factors.push_back(parseFactor());
    if (take("="))
      dim.otherwise = parseFactor();
    for (bool more = true; more;) {
      more = false;
      for (StringRef token : {"*", "/", "-"})
        if (take(token)) {
          dim.factors.push_back(parseFactor());
          dim.factors.back().joinedBy = token.front();
          more = true;
          break;
        }
    }
    dim.orOne = take("?");
    return dim;
  }

  ElementCheck parseCheck() {
    ElementCheck check;
    for (StringRef token : {">=", "<=", "!=", ">", "<"})
      if (take(token)) {
        check.comparison = token.str();
        check.bound = parseNumber();
        return check;
      }
    std::string word = parseName();
    if (word == "finite")
      check.kind = ElementCheck::Finite;
    else if (word == "given")
      check.kind = ElementCheck::Given;
    else if (word == "permutation")
      check.kind = ElementCheck::Permutation;
    else if (word == "in")
      for (check.kind = ElementCheck::Words; !skipSpace().starts_with("}") && !text.starts_with(",");)
        check.words.push_back(parseName());
    else
      fail();
    return check;
  }

  StringRef whole, text;
};

//===--- checking -------------------------------------------------------------------------------------------------===//

/// What names stand for; nullopt for sizes that are not known.
struct Bindings {
  llvm::StringMap<int64_t> sizes;
  llvm::StringMap<SmallVector<std::optional<int64_t>>> runs;
};

using KnownSizes = SmallVector<std::optional<int64_t>>;

/// An operand or an attribute of the node.
struct Item {
  Value value;
  Attribute attribute;
  /// "operand 1 ("W")" or "strides".
  std::string name;
  explicit operator bool() const { return value || attribute; }
};

class Checker {
public:
  Checker(NodeContext &ctx, const OperandRules &rules, bool byName) : ctx(ctx), rules(rules), byName(byName) {
    if (auto given = dyn_cast_or_null<ArrayAttr>(byName ? ctx.attr("arg_names") : Attribute()))
      for (auto [i, name] : llvm::enumerate(given.getAsRange<StringAttr>()))
        arguments[name.getValue()] = i;
    size_t position = 0;
    for (const OperandRule &rule : rules)
      items.push_back(find(rule, position));
  }

  std::string check() {
    // Forms that need a size which a later operand tells wait for it.
    SmallVector<size_t> waiting;
    for (size_t i = 0; i < rules.size(); ++i)
      if (!items[i] &&
          llvm::any_of(rules[i].checks, [](const ElementCheck &check) { return check.kind == ElementCheck::Given; }))
        return items[i].name + " is missing";
      else if (!items[i])
        bindOtherwise(rules[i]);
      else if (needsLater(rules[i]))
        waiting.push_back(i);
      else if (std::string error = checkForm(i); !error.empty())
        return error;
    for (size_t i : waiting)
      if (std::string error = checkForm(i); !error.empty())
        return error;
    for (size_t i = 0; i < rules.size(); ++i)
      for (const ElementCheck &check : rules[i].checks)
        if (std::string error = items[i] ? checkElements(items[i], check) : ""; !error.empty())
          return error;
    return "";
  }

private:
  Item find(const OperandRule &rule, size_t &position) {
    Item item;
    if (rule.isAttribute) {
      item.attribute = ctx.attr(rule.name);
      item.name = rule.name;
      return item;
    }
    if (byName) {
      auto it = arguments.find(rule.name);
      item.value = it == arguments.end() ? Value() : ctx.operand(it->second);
      item.name = "argument \"" + rule.name + "\"";
    } else {
      item.value = ctx.operand(position);
      item.name = ("operand " + Twine(position) + " (\"" + rule.name + "\")").str();
      ++position;
    }
    // Sequences and the like have no sizes.
    auto type = item.value ? dyn_cast<RankedTensorType>(item.value.getType()) : RankedTensorType();
    if (!type || base::isHandle(type.getElementType()))
      item.value = Value();
    return item;
  }

  std::optional<int64_t> rankOf(StringRef operand) {
    for (auto [rule, item] : llvm::zip_equal(rules, items))
      if (!rule.isAttribute && rule.name == operand && item.value)
        return ctx.b.rankOf(item.value);
    return std::nullopt;
  }

  std::optional<int64_t> evaluate(const SizeFactor &factor, const Bindings &bound) {
    switch (factor.kind) {
    case SizeFactor::Number:
      return factor.value;
    case SizeFactor::Rank:
      return rankOf(factor.name);
    case SizeFactor::Attribute:
      return ctx.hasAttr(factor.name) ? ctx.getInt(factor.name, 0) : factor.value;
    case SizeFactor::Name:
      auto it = bound.sizes.find(factor.name);
      return it == bound.sizes.end() ? std::nullopt : std::optional(it->second);
    }
    llvm_unreachable("all kinds are covered");
  }

  /// nullopt where a factor is not known; -1 where there is no such size.
  std::optional<int64_t> evaluate(const DimRule &dim, const Bindings &bound) {
    std::optional<int64_t> result;
    for (const SizeFactor &factor : dim.factors) {
      std::optional<int64_t> value = evaluate(factor, bound);
      if (!value)
        return std::nullopt;
      if (!result) {
        result = value;
      } else if (factor.joinedBy == '/') {
        if (*value <= 0 || *result % *value != 0)
          return -1;
        *result /= *value;
      } else if (factor.joinedBy == '-') {
        *result -= *value;
      } else {
        *result = llvm::MulOverflow(*result, *value, *result) ? -1 : *result;
      }
    }
    return result && *result >= 0 ? result : std::optional<int64_t>(-1);
  }

  void bindOtherwise(const OperandRule &rule) {
    for (const auto &form : rule.forms)
      for (const DimRule &dim : form)
        if (dim.otherwise)
          if (std::optional<int64_t> value = evaluate(*dim.otherwise, bindings))
            bindings.sizes.try_emplace(dim.factors.front().name, *value);
  }

  bool needsLater(const OperandRule &rule) {
    for (const auto &form : rule.forms)
      for (const DimRule &dim : form)
        for (const SizeFactor &factor : dim.factors)
          if (dim.factors.size() > 1 && factor.kind == SizeFactor::Name && !bindings.sizes.count(factor.name))
            return true;
    return false;
  }

  /// The sizes of an operand, or how many numbers an attribute has; nullopt where it is of another kind.
  std::optional<KnownSizes> sizesOf(const Item &item) {
    if (item.value)
      return KnownSizes(llvm::map_range(getSizes(item.value), [](AffineExpr size) { return getConstantSize(size); }));
    if (isa<IntegerAttr, FloatAttr, StringAttr>(item.attribute))
      return std::nullopt;
    if (auto ints = ctx.getInts(item.name))
      return KnownSizes{int64_t(ints->size())};
    if (auto floats = ctx.getFloats(item.name))
      return KnownSizes{int64_t(floats->size())};
    return std::nullopt;
  }

  /// Whether `sizes` have this form; binds names then.
  bool fits(ArrayRef<DimRule> form, const KnownSizes &sizes, Bindings &bound) {
    size_t fixed = llvm::count_if(form, [](const DimRule &dim) { return dim.kind != DimRule::Run; });
    if (sizes.size() < fixed || (fixed == form.size() && sizes.size() != fixed))
      return false;
    SmallVector<std::pair<const DimRule *, std::optional<int64_t>>> computed;
    size_t at = 0;
    for (const DimRule &dim : form) {
      if (dim.kind == DimRule::Run) { // a form has one
        KnownSizes run(sizes.begin() + at, sizes.begin() + at + (sizes.size() - fixed));
        at += run.size();
        if (!fitsRun(dim, run, bound))
          return false;
        continue;
      }
      std::optional<int64_t> size = sizes[at++];
      if (dim.kind == DimRule::Any)
        continue;
      const SizeFactor &first = dim.factors.front();
      if (dim.factors.size() > 1 || first.kind != SizeFactor::Name) {
        computed.push_back({&dim, size});
      } else if (size && !(dim.orOne && *size == 1)) {
        if (bound.sizes.try_emplace(first.name, *size).first->second != *size)
          return false;
      }
    }
    return llvm::all_of(computed, [&](auto &pair) {
      auto [dim, size] = pair;
      std::optional<int64_t> wanted = evaluate(*dim, bound);
      return !size || !wanted || *size == *wanted || (dim->orOne && *size == 1);
    });
  }

  bool fitsRun(const DimRule &dim, const KnownSizes &run, Bindings &bound) {
    if (dim.atLeastOne && run.empty())
      return false;
    if (!dim.sameCountAs.empty())
      if (auto other = bound.runs.find(dim.sameCountAs);
          other != bound.runs.end() && other->second.size() != run.size())
        return false;
    if (dim.name == "_")
      return true;
    auto [it, isNew] = bound.runs.try_emplace(dim.name, run);
    if (isNew)
      return true;
    if (it->second.size() != run.size())
      return false;
    for (auto [known, size] : llvm::zip_equal(it->second, run)) {
      if (known && size && *known != *size)
        return false;
      if (!known)
        known = size;
    }
    return true;
  }

  std::string checkForm(size_t i) {
    const OperandRule &rule = rules[i];
    const Item &item = items[i];
    std::optional<KnownSizes> sizes = rule.forms.empty() ? std::nullopt : sizesOf(item);
    if (!sizes)
      return "";
    for (const auto &form : rule.forms) {
      Bindings tried = bindings;
      if (fits(form, *sizes, tried)) {
        bindings = std::move(tried);
        return "";
      }
    }
    std::string text = item.value ? item.name + " is " + describe(item.value) + "; it must be "
                                  : item.name + " has " + std::to_string(*sizes->front()) + " entries; it must have ";
    llvm::StringMap<std::string> known;
    std::vector<std::string> order;
    for (auto [n, form] : llvm::enumerate(rule.forms)) {
      text += n == 0 ? "" : n + 1 == rule.forms.size() ? " or " : ", ";
      text += describeForm(form, bool(item.value), known, order);
    }
    for (auto [n, name] : llvm::enumerate(order))
      text += (n == 0 ? ", where " : n + 1 == order.size() ? " and " : ", ") + name + " = " + known[name];
    return text;
  }

  std::string describeFactor(const SizeFactor &factor, llvm::StringMap<std::string> &known,
                             std::vector<std::string> &order) {
    if (factor.kind == SizeFactor::Number)
      return std::to_string(*factor.value);
    std::string name = factor.kind == SizeFactor::Rank ? "rank(" + factor.name + ")" : factor.name;
    if (std::optional<int64_t> value = evaluate(factor, bindings); value && known.try_emplace(name, "").second) {
      known[name] = std::to_string(*value);
      order.push_back(name);
    }
    return name;
  }

  /// "[O, C / group, K..]"; what its names stand for goes to `known`.
  std::string describeForm(ArrayRef<DimRule> form, bool isTensor, llvm::StringMap<std::string> &known,
                           std::vector<std::string> &order) {
    std::vector<std::string> dims;
    for (const DimRule &dim : form) {
      if (dim.kind == DimRule::Any) {
        dims.push_back("_");
        continue;
      }
      if (dim.kind == DimRule::Run) {
        dims.push_back((dim.name == "_" ? "" : dim.name) + ".." + (dim.atLeastOne ? " (one or more)" : ""));
        StringRef counted = dim.sameCountAs.empty() ? dim.name : dim.sameCountAs;
        if (auto it = bindings.runs.find(counted); it != bindings.runs.end()) {
          std::string text = dim.sameCountAs.empty() ? "" : std::to_string(it->second.size()) + " dims";
          for (auto [i, size] : llvm::enumerate(it->second))
            if (dim.sameCountAs.empty())
              text += (i ? ", " : "") + (size ? std::to_string(*size) : std::string("?"));
          if (std::string run = dim.name + "..";
              dim.name != "_" && known.try_emplace(run, text.empty() ? "no dims" : text).second)
            order.push_back(run);
        }
        continue;
      }
      std::string text;
      for (auto [i, factor] : llvm::enumerate(dim.factors))
        text += (i ? std::string(" ") + factor.joinedBy + " " : "") + describeFactor(factor, known, order);
      dims.push_back(text + (dim.orOne ? " or 1" : ""));
    }
    return isTensor ? "[" + llvm::join(dims, ", ") + "]" : dims.front();
  }

  std::string checkElements(const Item &item, const ElementCheck &check) {
    if (check.kind == ElementCheck::Given)
      return "";
    if (check.kind == ElementCheck::Words) {
      auto text = dyn_cast_or_null<StringAttr>(item.attribute);
      if (!text || llvm::is_contained(check.words, text.getValue().str()))
        return "";
      std::string last = check.words.back();
      return item.name + " is \"" + text.getValue().str() + "\"; it may be " +
             llvm::join(llvm::make_range(check.words.begin(), check.words.end() - 1), ", ") + " or " + last;
    }
    if (std::optional<SmallVector<int64_t>> ints = knownInts(item)) {
      if (check.kind == ElementCheck::Permutation) {
        SmallVector<int64_t> sorted = *ints;
        llvm::sort(sorted);
        bool isOne = llvm::equal(sorted, llvm::seq<int64_t>(0, sorted.size()));
        return isOne ? ""
                     : item.name + " must name each of 0 to " + std::to_string(int64_t(sorted.size()) - 1) + " once";
      }
      for (int64_t value : *ints)
        if (check.kind == ElementCheck::Compare && !compare(value, check))
          return item.name + " holds " + std::to_string(value) + "; it must be " + check.comparison + " " +
                 std::to_string(check.bound);
      return "";
    }
    if (check.kind == ElementCheck::Permutation)
      return "";
    for (double value : knownFloats(item).value_or(SmallVector<double>()))
      if (check.kind == ElementCheck::Finite ? !std::isfinite(value) : !compare(value, check))
        return item.name + " holds " + llvm::formatv("{0}", value).str() + "; it must be " +
               (check.kind == ElementCheck::Finite ? "finite" : check.comparison + " " + std::to_string(check.bound));
    return "";
  }

  template <typename T> static bool compare(T value, const ElementCheck &check) {
    StringRef kind = check.comparison;
    return kind == ">"    ? value > check.bound
           : kind == ">=" ? value >= check.bound
           : kind == "<"  ? value < check.bound
           : kind == "<=" ? value <= check.bound
                          : value != check.bound;
  }

  std::optional<SmallVector<int64_t>> knownInts(const Item &item) {
    if (item.value)
      return isa<IntegerType>(ctx.b.elementOf(item.value)) ? ctx.constantInts(item.value) : std::nullopt;
    if (isa<IntegerAttr>(item.attribute))
      return SmallVector<int64_t>{ctx.getInt(item.name, 0)};
    return ctx.getInts(item.name);
  }

  std::optional<SmallVector<double>> knownFloats(const Item &item) {
    if (!item.value)
      return isa<FloatAttr>(item.attribute) ? SmallVector<double>{ctx.getFloat(item.name, 0)}
                                            : ctx.getFloats(item.name);
    if (!ctx.b.isFloat(item.value))
      return std::nullopt;
    if (auto constant = item.value.getDefiningOp<prim::ConstantOp>())
      return readFloats(constant.getValue());
    auto one = ctx.constantScalar(item.value);
    return one ? std::optional(SmallVector<double>{*one}) : std::nullopt;
  }

  NodeContext &ctx;
  const OperandRules &rules;
  SmallVector<Item> items;
  Bindings bindings;
  llvm::StringMap<size_t> arguments;
  bool byName;
};

} // namespace

OperandRules tc::parseOperandRules(StringRef text) { return Parser(text).parse(); }

std::string tc::findRuleError(NodeContext &ctx, const OperandRules &rules, bool byName) {
  return Checker(ctx, rules, byName).check();
}
