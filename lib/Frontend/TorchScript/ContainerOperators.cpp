//===- ContainerOperators.cpp - lists, dicts and strings of TorchScript, evaluated --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"

#include "llvm/ADT/StringExtras.h"

using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

/// The position of a key that is known; nullopt with a message where it is of a kind that is none.
static std::optional<size_t> findKey(Interpreter &in, const PyValue &dict, const PyValue &key, Position at) {
  PyValue known = in.resolve(key);
  if (known.isSymbolic() || known.isTensor()) {
    in.refuse("dict", at, "a dict is asked for a key that only a run knows; use keys that are constants", known);
    return std::nullopt;
  }
  if (!in.spendValues(dict.held->keys.size() / 16, at))
    return std::nullopt;
  for (auto [i, other] : llvm::enumerate(dict.held->keys))
    if (isSame(known, other) || (known.isNumber() && other.isNumber() && known.asDouble() == other.asDouble()))
      return i;
  return dict.held->keys.size();
}

/// A known index in [0, size), from one that may be negative.
static std::optional<int64_t> checkedIndex(Interpreter &in, const PyValue &index, int64_t size, Position at) {
  PyValue known = in.resolve(index);
  if (!known.is(Kind::Int) && !known.is(Kind::Bool)) {
    in.refuse("list", at,
              "a list is asked for a position that only a run knows; fix the size with --shape or --dim, or use a "
              "tensor",
              known);
    return std::nullopt;
  }
  int64_t i = known.integer < 0 ? known.integer + size : known.integer;
  if (i < 0 || i >= size) {
    in.raise(at, "list index out of range");
    return std::nullopt;
  }
  return i;
}

Result Interpreter::getItem(const PyValue &container, const PyValue &index, Position at) {
  if (container.is(Kind::Dict)) {
    std::optional<size_t> i = findKey(*this, container, index, at);
    if (!i)
      return std::nullopt;
    return *i < container.held->items.size() ? Result(container.held->items[*i])
                                             : raise(at, "key not found: " + toText(index).value_or("?"));
  }
  if (container.is(Kind::List) || container.is(Kind::Tuple)) {
    std::optional<int64_t> i = checkedIndex(*this, index, int64_t(container.held->items.size()), at);
    return i ? Result(container.held->items[size_t(*i)]) : std::nullopt;
  }
  if (container.is(Kind::String)) {
    std::optional<int64_t> i = checkedIndex(*this, index, int64_t(container.held->text.size()), at);
    return i ? Result(makeString(container.held->text.substr(size_t(*i), 1))) : std::nullopt;
  }
  if (container.isTensor() && index.isIntLike())
    return callATen("select", {container, PyValue::ofInt(0), index}, {}, at);
  // Modules of a ModuleList or ModuleDict, by their names.
  if (container.is(Kind::Object)) {
    std::optional<std::string> name = toText(resolve(index));
    if (name)
      return getAttribute(container, keepText(*name), at);
  }
  return fail(at, describe(container) + " is asked for an element, which it does not have");
}

bool Interpreter::setItem(const PyValue &container, const PyValue &index, const PyValue &item, Position at) {
  if (container.is(Kind::Dict)) {
    std::optional<size_t> i = findKey(*this, container, index, at);
    if (!i || !mayChange(container.held, at))
      return false;
    if (*i == container.held->keys.size()) {
      container.held->keys.push_back(resolve(index));
      container.held->items.push_back(item);
    } else {
      container.held->items[*i] = item;
    }
    return true;
  }
  if (container.is(Kind::List)) {
    std::optional<int64_t> i = checkedIndex(*this, index, int64_t(container.held->items.size()), at);
    if (!i || !mayChange(container.held, at))
      return false;
    container.held->items[size_t(*i)] = item;
    return true;
  }
  if (container.isTensor() && index.isIntLike()) {
    Result view = callATen("select", {container, PyValue::ofInt(0), index}, {}, at);
    return view && callATen(item.isTensor() ? "copy_" : "fill_", {*view, item}, {}, at);
  }
  fail(at, "an element of " + describe(container) + " is set, which it does not have");
  return false;
}

namespace {

bool isList(Values args, size_t count) { return args.size() == count && args[0].is(Kind::List); }
bool isDict(Values args, size_t count) { return args.size() == count && args[0].is(Kind::Dict); }
bool isText(Values args, size_t count) {
  return args.size() == count && llvm::all_of(args, [](const PyValue &v) { return v.is(Kind::String); });
}

Result getItem(Interpreter &in, Values args, Position at) {
  return args.size() == 2 ? in.getItem(args[0], args[1], at) : in.decline();
}
Result setItem(Interpreter &in, Values args, Position at) {
  if (args.size() != 3)
    return in.decline();
  return in.setItem(args[0], args[1], args[2], at) ? Result(args[0]) : std::nullopt;
}

Result append(Interpreter &in, Values args, Position at) {
  if (!isList(args, 2))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  args[0].held->items.push_back(args[1]);
  return args[0];
}
Result extend(Interpreter &in, Values args, Position at) {
  if (!isList(args, 2) || !args[1].is(Kind::List))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  std::vector<PyValue> items = args[1].held->items;
  args[0].held->items.insert(args[0].held->items.end(), items.begin(), items.end());
  return PyValue();
}
Result insert(Interpreter &in, Values args, Position at) {
  if (!isList(args, 3) || !args[1].is(Kind::Int))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  auto &items = args[0].held->items;
  int64_t size = int64_t(items.size()), i = args[1].integer < 0 ? args[1].integer + size : args[1].integer;
  items.insert(items.begin() + std::clamp<int64_t>(i, 0, size), args[2]);
  return PyValue();
}
Result pop(Interpreter &in, Values args, Position at) {
  if (!args.empty() && args[0].is(Kind::Dict) && (args.size() == 2 || args.size() == 3)) {
    std::optional<size_t> i = findKey(in, args[0], args[1], at);
    if (!i || !in.mayChange(args[0].held, at))
      return std::nullopt;
    if (*i == args[0].held->keys.size())
      return args.size() == 3 ? Result(args[2]) : in.raise(at, "key not found");
    PyValue item = args[0].held->items[*i];
    args[0].held->items.erase(args[0].held->items.begin() + *i);
    args[0].held->keys.erase(args[0].held->keys.begin() + *i);
    return item;
  }
  if (args.empty() || !args[0].is(Kind::List) || args.size() > 2)
    return in.decline();
  std::optional<int64_t> i =
      checkedIndex(in, args.size() == 2 ? args[1] : PyValue::ofInt(-1), int64_t(args[0].held->items.size()), at);
  if (!i || !in.mayChange(args[0].held, at))
    return std::nullopt;
  PyValue item = args[0].held->items[size_t(*i)];
  args[0].held->items.erase(args[0].held->items.begin() + *i);
  return item;
}
Result deleteAt(Interpreter &in, Values args, Position at) {
  if (args.size() != 2 || (!args[0].is(Kind::Dict) && !args[0].is(Kind::List)))
    return in.decline();
  return pop(in, args, at) ? Result(PyValue()) : std::nullopt;
}
Result clear(Interpreter &in, Values args, Position at) {
  if (!isList(args, 1) && !isDict(args, 1))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  args[0].held->items.clear();
  args[0].held->keys.clear();
  return PyValue();
}
Result copy(Interpreter &in, Values args, Position) {
  if (args.size() != 1 || (!args[0].is(Kind::List) && !args[0].is(Kind::Dict) && !args[0].is(Kind::Tuple)))
    return in.decline();
  PyValue result = in.makeList(args[0].held->items, args[0].held->text);
  result.held->keys = args[0].held->keys;
  if (args[0].is(Kind::Dict))
    result.kind = Kind::Dict;
  return result;
}
Result list(Interpreter &in, Values args, Position at) {
  if (args.size() == 1 && args[0].is(Kind::String)) {
    std::vector<PyValue> items;
    if (!in.spendValues(4 * args[0].held->text.size(), at))
      return std::nullopt;
    for (char c : args[0].held->text)
      items.push_back(in.makeString(StringRef(&c, 1)));
    return in.makeList(std::move(items), "str");
  }
  if (args.size() == 1 && args[0].is(Kind::Dict))
    return in.makeList(args[0].held->keys);
  return copy(in, args, at);
}
Result reverse(Interpreter &in, Values args, Position at) {
  if (!isList(args, 1))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  std::reverse(args[0].held->items.begin(), args[0].held->items.end());
  return PyValue();
}
bool sortValues(Interpreter &in, std::vector<PyValue> &items, bool isReverse, Position at) {
  bool numbers = llvm::all_of(items, [](const PyValue &v) { return v.isNumber(); });
  bool texts = llvm::all_of(items, [](const PyValue &v) { return v.is(Kind::String); });
  if (!numbers && !texts) {
    in.refuse("list", at, "a list of values that only a run knows is sorted; use a tensor and torch.sort", items);
    return false;
  }
  auto before = [&](const PyValue &a, const PyValue &b) {
    if (texts)
      return a.held->text < b.held->text;
    return a.is(Kind::Float) || b.is(Kind::Float) ? a.asDouble() < b.asDouble() : a.integer < b.integer;
  };
  llvm::stable_sort(items, [&](const PyValue &a, const PyValue &b) { return isReverse ? before(b, a) : before(a, b); });
  return true;
}
Result sort(Interpreter &in, Values args, Position at) {
  if (args.empty() || !args[0].is(Kind::List))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  return sortValues(in, args[0].held->items, args.size() > 1 && args[1].integer, at) ? Result(PyValue()) : std::nullopt;
}
Result sorted(Interpreter &in, Values args, Position at) {
  if (args.empty() || !args[0].is(Kind::List))
    return in.decline();
  std::vector<PyValue> items = args[0].held->items;
  if (!sortValues(in, items, false, at))
    return std::nullopt;
  return in.makeList(std::move(items), args[0].held->text);
}
Result index(Interpreter &in, Values args, Position at) {
  if (!isList(args, 2))
    return in.decline();
  for (auto [i, item] : llvm::enumerate(args[0].held->items)) {
    Result same = in.equal(item, args[1], at);
    if (!same)
      return std::nullopt;
    if (!same->is(Kind::Bool))
      return in.refuse("list", at, "a list is searched for a value that only a run knows", *same);
    if (same->integer)
      return PyValue::ofInt(int64_t(i));
  }
  return in.raise(at, "a value is not in the list");
}
Result remove(Interpreter &in, Values args, Position at) {
  Result found = index(in, args, at);
  return found ? deleteAt(in, {args[0], *found}, at) : found;
}
Result count(Interpreter &in, Values args, Position at) {
  if (!isList(args, 2))
    return in.decline();
  int64_t n = 0;
  for (const PyValue &item : args[0].held->items) {
    Result same = in.equal(item, args[1], at);
    if (!same)
      return std::nullopt;
    if (!same->is(Kind::Bool))
      return in.refuse("list", at, "a list is searched for a value that only a run knows", *same);
    n += same->integer;
  }
  return PyValue::ofInt(n);
}
Result contains(Interpreter &in, Values args, Position at) {
  if (isDict(args, 2)) {
    std::optional<size_t> i = findKey(in, args[0], args[1], at);
    return i ? Result(PyValue::ofBool(*i < args[0].held->keys.size())) : std::nullopt;
  }
  if (isText(args, 2))
    return PyValue::ofBool(StringRef(args[0].held->text).contains(args[1].held->text));
  if (args.size() != 2 || (!args[0].is(Kind::List) && !args[0].is(Kind::Tuple)))
    return in.decline();
  for (const PyValue &item : args[0].held->items) {
    Result same = in.equal(item, args[1], at);
    if (!same)
      return std::nullopt;
    if (!same->is(Kind::Bool))
      return in.refuse("list", at, "a list is searched for a value that only a run knows", *same);
    if (same->integer)
      return PyValue::ofBool(true);
  }
  return PyValue::ofBool(false);
}

Result slice(Interpreter &in, Values args, Position at) {
  if (args.empty() || args.size() > 4 ||
      (!args[0].is(Kind::List) && !args[0].is(Kind::Tuple) && !args[0].is(Kind::String)))
    return in.decline();
  int64_t size = args[0].is(Kind::String) ? int64_t(args[0].held->text.size()) : int64_t(args[0].held->items.size());
  std::optional<int64_t> bounds[3];
  for (int i = 0; i < 3; ++i) {
    PyValue bound = size_t(i) + 1 < args.size() ? in.resolve(args[size_t(i) + 1]) : PyValue();
    if (bound.isNone())
      continue;
    if (!bound.is(Kind::Int))
      return in.refuse("list", at,
                       "a list is sliced at a position that only a run knows; fix the size with --shape or --dim",
                       bound);
    bounds[i] = bound.integer;
  }
  const int64_t step = bounds[2].value_or(1);
  if (step == 0)
    return in.raise(at, "a slice of a list has a step of 0");
  // Backwards from the last element to before the first one, as in Python.
  const int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? size - 1 : size;
  auto place = [&](std::optional<int64_t> bound, int64_t otherwise) {
    return bound ? std::clamp<int64_t>(*bound < 0 ? *bound + size : *bound, lowest, highest) : otherwise;
  };
  const int64_t first = place(bounds[0], step < 0 ? highest : lowest);
  const int64_t last = place(bounds[1], step < 0 ? lowest : highest);
  const int64_t stride = std::clamp(step, -size - 1, size + 1);
  std::string text;
  std::vector<PyValue> items;
  for (int64_t i = first; step < 0 ? i > last : i < last; i += stride) {
    if (args[0].is(Kind::String))
      text += args[0].held->text[size_t(i)];
    else
      items.push_back(args[0].held->items[size_t(i)]);
  }
  if (args[0].is(Kind::String))
    return in.makeString(text);
  return args[0].is(Kind::List) ? in.makeList(std::move(items), args[0].held->text) : in.makeTuple(std::move(items));
}

Result range(Interpreter &in, Values args, Position at) {
  int64_t bounds[3] = {0, 0, 1};
  if (args.empty() || args.size() > 3)
    return in.decline();
  for (size_t i = 0; i < args.size(); ++i) {
    PyValue bound = in.resolve(args[i]);
    if (!bound.is(Kind::Int))
      return in.decline();
    bounds[args.size() == 1 ? 1 : i] = bound.integer;
  }
  std::vector<PyValue> items;
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : (bounds[2] < 0 && i > bounds[1]); i += bounds[2]) {
    if (items.size() > 1'000'000)
      return in.refuse("list", at, "a list of more than a million numbers is made; make it a tensor with torch.arange");
    items.push_back(PyValue::ofInt(i));
  }
  if (!in.spendValues(items.size(), at))
    return std::nullopt;
  return in.makeList(std::move(items), "int");
}
/// The number of turns of range(low, high, step), and the value of one turn.
Result rangeLength(Interpreter &in, Values args, Position at) {
  if (args.size() != 3)
    return in.decline();
  PyValue step = in.resolve(args[2]);
  if (!step.is(Kind::Int) || step.integer == 0)
    return in.refuse("range", at, "the step of a range is 0 or known to a run alone", step);
  // ceil((high - low) / step), at least 0.
  Result span = in.arithmetic("sub", args[1], args[0], at);
  Result more =
      span ? in.arithmetic("add", *span, PyValue::ofInt(step.integer + (step.integer > 0 ? -1 : 1)), at) : span;
  Result turns = more ? in.arithmetic("floordiv", *more, step, at) : more;
  return turns ? in.arithmetic("max", *turns, PyValue::ofInt(0), at) : turns;
}
Result deriveIndex(Interpreter &in, Values args, Position at) {
  if (args.size() != 3)
    return in.decline();
  Result product = in.arithmetic("mul", args[0], args[2], at);
  return product ? in.arithmetic("add", args[1], *product, at) : product;
}

Result keys(Interpreter &in, Values args, Position) {
  return isDict(args, 1) ? Result(in.makeList(args[0].held->keys)) : in.decline();
}
Result values(Interpreter &in, Values args, Position) {
  return isDict(args, 1) ? Result(in.makeList(args[0].held->items)) : in.decline();
}
Result items(Interpreter &in, Values args, Position) {
  if (!isDict(args, 1))
    return in.decline();
  std::vector<PyValue> pairs;
  for (auto [key, item] : llvm::zip_equal(args[0].held->keys, args[0].held->items))
    pairs.push_back(in.makeTuple({key, item}));
  return in.makeList(std::move(pairs));
}
Result get(Interpreter &in, Values args, Position at) {
  if (!isDict(args, 2) && !isDict(args, 3))
    return in.decline();
  std::optional<size_t> i = findKey(in, args[0], args[1], at);
  if (!i)
    return std::nullopt;
  return *i < args[0].held->items.size() ? args[0].held->items[*i] : args.size() == 3 ? args[2] : PyValue();
}
Result setDefault(Interpreter &in, Values args, Position at) {
  if (!isDict(args, 3))
    return in.decline();
  std::optional<size_t> i = findKey(in, args[0], args[1], at);
  if (!i)
    return std::nullopt;
  if (*i < args[0].held->items.size())
    return args[0].held->items[*i];
  return in.setItem(args[0], args[1], args[2], at) ? Result(args[2]) : std::nullopt;
}
Result update(Interpreter &in, Values args, Position at) {
  if (!isDict(args, 2) || !args[1].is(Kind::Dict))
    return in.decline();
  std::vector<PyValue> keys = args[1].held->keys, items = args[1].held->items;
  for (auto [key, item] : llvm::zip_equal(keys, items))
    if (!in.setItem(args[0], key, item, at))
      return std::nullopt;
  return PyValue();
}
Result dict(Interpreter &in, Values args, Position at) {
  if (args.empty())
    return PyValue::ofHeld(Kind::Dict, in.newHeld());
  if (!isList(args, 1))
    return copy(in, args, at);
  PyValue result = PyValue::ofHeld(Kind::Dict, in.newHeld());
  for (const PyValue &pair : args[0].held->items)
    if (!pair.is(Kind::Tuple) || pair.held->items.size() != 2 ||
        !in.setItem(result, pair.held->items[0], pair.held->items[1], at))
      return in.decline();
  return result;
}

//===--- strings --------------------------------------------------------------------------------------------------===//

Result format(Interpreter &in, Values args, Position at) {
  if (args.empty() || !args[0].is(Kind::String))
    return in.decline();
  std::string text;
  StringRef rest = args[0].held->text;
  size_t next = 1;
  for (;;) {
    auto [before, after] = rest.split("{}");
    text += before;
    if (before.size() == rest.size())
      break;
    // Messages about tensors are read by nobody before the run.
    text += next < args.size() ? toText(args[next++]).value_or("...") : "{}";
    rest = after;
  }
  return in.makeText(text, at);
}
Result percentFormat(Interpreter &in, Values args, Position at) {
  if (args.empty() || !args[0].is(Kind::String))
    return in.decline();
  std::string text;
  StringRef rest = args[0].held->text;
  std::vector<PyValue> values(args.begin() + 1, args.end());
  if (values.size() == 1 && values[0].is(Kind::Tuple))
    values = values[0].held->items;
  size_t next = 0;
  while (!rest.empty()) {
    size_t percent = rest.find('%');
    text += rest.substr(0, percent);
    if (percent == StringRef::npos || percent + 1 >= rest.size())
      break;
    char kind = rest[percent + 1];
    rest = rest.substr(percent + 2);
    if (kind == '%') {
      text += '%';
    } else if (next >= values.size()) {
      return in.raise(at, "too few values for a format");
    } else if (kind == 'd' && values[next].is(Kind::Float)) {
      text += std::to_string(int64_t(values[next++].number));
    } else {
      text += toText(values[next++]).value_or("...");
    }
  }
  return in.makeText(text, at);
}
Result str(Interpreter &in, Values args, Position at) {
  if (args.size() != 1)
    return in.decline();
  std::optional<std::string> text = args[0].isSymbolic() ? std::nullopt : toText(args[0]);
  return text ? Result(in.makeString(*text))
              : in.refuse("str", at,
                          "the text of a value that only a run knows is asked for; leave it out of the model", args);
}
Result join(Interpreter &in, Values args, Position at) {
  if (args.size() != 2 || !args[0].is(Kind::String) || !args[1].is(Kind::List))
    return in.decline();
  std::string text;
  for (auto [i, item] : llvm::enumerate(args[1].held->items)) {
    text += (i > 0 ? args[0].held->text : "") + toText(item).value_or("");
    if (text.size() > Interpreter::kMaxText)
      break;
  }
  return in.makeText(text, at);
}
Result split(Interpreter &in, Values args, Position at) {
  if (args.empty() || !args[0].is(Kind::String))
    return in.decline();
  std::vector<PyValue> parts;
  StringRef text = args[0].held->text;
  if (!in.spendValues(4 * text.size(), at)) // as many parts
    return std::nullopt;
  if (args.size() > 1 && args[1].is(Kind::String) && !args[1].held->text.empty()) {
    llvm::SmallVector<StringRef> all;
    text.split(all, args[1].held->text, args.size() > 2 && args[2].is(Kind::Int) ? int(args[2].integer) : -1);
    for (StringRef part : all)
      parts.push_back(in.makeString(part));
  } else {
    while (!(text = text.ltrim()).empty()) {
      StringRef part = text.take_until([](char c) { return llvm::isSpace(c); });
      parts.push_back(in.makeString(part));
      text = text.substr(part.size());
    }
  }
  return in.makeList(std::move(parts), "str");
}
template <typename F> Result ofText(Interpreter &in, Values args, size_t count, F function) {
  return isText(args, count) ? Result(function()) : in.decline();
}
Result startsWith(Interpreter &in, Values args, Position) {
  return ofText(in, args.take_front(2), 2,
                [&] { return PyValue::ofBool(StringRef(args[0].held->text).starts_with(args[1].held->text)); });
}
Result endsWith(Interpreter &in, Values args, Position) {
  return ofText(in, args.take_front(2), 2,
                [&] { return PyValue::ofBool(StringRef(args[0].held->text).ends_with(args[1].held->text)); });
}
Result lower(Interpreter &in, Values args, Position) {
  return ofText(in, args, 1, [&] { return in.makeString(StringRef(args[0].held->text).lower()); });
}
Result upper(Interpreter &in, Values args, Position) {
  return ofText(in, args, 1, [&] { return in.makeString(StringRef(args[0].held->text).upper()); });
}
Result strip(Interpreter &in, Values args, Position) {
  if (args.size() == 1 && args[0].is(Kind::String))
    return in.makeString(StringRef(args[0].held->text).trim());
  return ofText(in, args, 2, [&] { return in.makeString(StringRef(args[0].held->text).trim(args[1].held->text)); });
}
Result find(Interpreter &in, Values args, Position) {
  return ofText(in, args.take_front(2), 2, [&] {
    size_t at = args[0].held->text.find(args[1].held->text);
    return PyValue::ofInt(at == std::string::npos ? -1 : int64_t(at));
  });
}
Result replace(Interpreter &in, Values args, Position at) {
  return ofText(in, args.take_front(3), 3, [&] {
    std::string text, from = args[1].held->text;
    StringRef rest = args[0].held->text;
    while (!from.empty() && rest.contains(from) && text.size() <= Interpreter::kMaxText) {
      auto [before, after] = rest.split(from);
      text += before.str() + args[2].held->text;
      rest = after;
    }
    return in.makeText(text + rest.str(), at);
  });
}
template <bool (*test)(char)> Result allOf(Interpreter &in, Values args, Position) {
  return ofText(in, args, 1,
                [&] { return PyValue::ofBool(!args[0].held->text.empty() && llvm::all_of(args[0].held->text, test)); });
}
bool isDigitChar(char c) { return llvm::isDigit(c); }
bool isAlphaChar(char c) { return llvm::isAlpha(c); }
Result ord(Interpreter &in, Values args, Position) {
  if (!isText(args, 1) || args[0].held->text.size() != 1)
    return in.decline();
  return PyValue::ofInt(uint8_t(args[0].held->text[0]));
}

Result nothing(Interpreter &, Values, Position) { return PyValue(); }

} // namespace

void tc::torchscript::addContainerOperators(llvm::StringMap<Interpreter::HostOperator> &table) {
  table["aten::__getitem__"] = getItem;
  table["aten::_set_item"] = table["aten::__setitem__"] = setItem;
  table["aten::append"] = append;
  table["aten::extend"] = extend;
  table["aten::insert"] = insert;
  table["aten::pop"] = pop;
  table["aten::remove"] = remove;
  table["aten::Delete"] = deleteAt;
  table["aten::clear"] = clear;
  table["aten::copy"] = copy;
  table["aten::list"] = list;
  table["aten::reverse"] = reverse;
  table["aten::sort"] = sort;
  table["aten::sorted"] = sorted;
  table["aten::index"] = index;
  table["aten::count"] = count;
  table["aten::__contains__"] = contains;
  table["aten::slice"] = slice;
  table["aten::range"] = table["prim::rangelist"] = range;
  table["aten::__range_length"] = rangeLength;
  table["aten::__derive_index"] = deriveIndex;
  table["aten::keys"] = keys;
  table["aten::values"] = values;
  table["aten::items"] = items;
  table["aten::get"] = get;
  table["aten::setdefault"] = setDefault;
  table["aten::update"] = update;
  table["aten::dict"] = dict;
  table["aten::format"] = format;
  table["aten::percentFormat"] = percentFormat;
  table["aten::str"] = str;
  table["aten::join"] = join;
  table["aten::split"] = split;
  table["aten::startswith"] = startsWith;
  table["aten::endswith"] = endsWith;
  table["aten::lower"] = lower;
  table["aten::upper"] = upper;
  table["aten::strip"] = strip;
  table["aten::find"] = find;
  table["aten::replace"] = replace;
  table["aten::isdigit"] = allOf<isDigitChar>;
  table["aten::isalpha"] = allOf<isAlphaChar>;
  table["aten::ord"] = ord;
  // What is said to whoever watches a run in Python.
  table["prim::Print"] = table["aten::warn"] = table["aten::_record_function_enter"] = nothing;
}
