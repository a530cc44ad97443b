//===- Pickle.cpp - the instructions of pickles -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Unpickler.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

using namespace tc::torch;

namespace {

/// Bounds for files that lie; those of models stay far below.
constexpr uint64_t kMaxValues = 4'000'000, kMaxStack = 16'000'000, kMaxCopied = uint64_t(1) << 26;

// Python's Lib/pickle.py names them so.
enum Opcode : uint8_t {
  MARK = '(',
  STOP = '.',
  POP = '0',
  POP_MARK = '1',
  DUP = '2',
  BINBYTES = 'B',
  SHORT_BINBYTES = 'C',
  BINFLOAT = 'G',
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  NONE = 'N',
  BINPERSID = 'Q',
  REDUCE = 'R',
  BINSTRING = 'T',
  SHORT_BINSTRING = 'U',
  BINUNICODE = 'X',
  EMPTY_LIST = ']',
  APPEND = 'a',
  BUILD = 'b',
  GLOBAL = 'c',
  DICT = 'd',
  APPENDS = 'e',
  BINGET = 'h',
  LONG_BINGET = 'j',
  LIST = 'l',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  SETITEM = 's',
  TUPLE = 't',
  EMPTY_TUPLE = ')',
  SETITEMS = 'u',
  EMPTY_DICT = '}',
  PROTO = 0x80,
  NEWOBJ = 0x81,
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  LONG1 = 0x8a,
  LONG4 = 0x8b,
  SHORT_BINUNICODE = 0x8c,
  BINUNICODE8 = 0x8d,
  BINBYTES8 = 0x8e,
  EMPTY_SET = 0x8f,
  ADDITEMS = 0x90,
  FROZENSET = 0x91,
  STACK_GLOBAL = 0x93,
  MEMOIZE = 0x94,
  FRAME = 0x95,
  BYTEARRAY8 = 0x96
};

constexpr uint32_t kBeingChecked = UINT32_MAX;

} // namespace

const PickledValue *PickledValue::find(std::string_view key) const {
  const PickledValue *dict = kind == Kind::Object ? state : this;
  if (!dict || dict->kind != Kind::Dict)
    return nullptr;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2)
    if (dict->items[i]->isString() && dict->items[i]->text == key)
      return dict->items[i + 1];
  return nullptr;
}

bool Unpickler::fail(const std::string &what) {
  if (error.empty())
    error = what;
  return false;
}

bool Unpickler::charge(uint64_t amount) {
  spent += amount; // each amount is below 2^32
  return spent <= kMaxCopied || fail("the pickle repeats itself too often to be one of a model");
}

bool Unpickler::take(uint64_t size, std::string_view &taken) {
  if (size > bytes.size() - at)
    return damaged("it is cut off");
  taken = bytes.substr(at, size);
  at += size;
  return true;
}

bool Unpickler::number(unsigned width, uint64_t &value) {
  std::string_view text;
  value = 0;
  if (!take(width, text))
    return false;
  for (unsigned i = 0; i < width; ++i)
    value |= uint64_t(uint8_t(text[i])) << 8 * i;
  return true;
}

bool Unpickler::line(std::string_view &text) {
  const size_t end = bytes.find('\n', at);
  if (end == std::string_view::npos)
    return damaged("it is cut off");
  text = bytes.substr(at, end - at);
  at = end + 1;
  return true;
}

Unpickler::Value *Unpickler::make(Kind kind) {
  if (result.values.size() >= kMaxValues) {
    fail("the pickle has more than " + std::to_string(kMaxValues) + " values, which no model's has");
    return nullptr;
  }
  Value &value = result.values.emplace_back();
  value.kind = kind;
  return &value;
}

bool Unpickler::push(Value *value) {
  if (!value)
    return false;
  if (stack.size() >= kMaxStack)
    return fail("the pickle is nested too deeply to be one of a model");
  stack.push_back(value);
  return true;
}

Unpickler::Value *Unpickler::top(uint64_t below) {
  // What stands under the last mark belongs to somebody else.
  const size_t floor = marks.empty() ? 0 : marks.back();
  if (stack.size() - floor <= below) {
    damaged("an instruction lacks its operand");
    return nullptr;
  }
  return stack[stack.size() - 1 - below];
}

bool Unpickler::popMark(std::vector<Value *> &above) {
  if (marks.empty())
    return damaged("an instruction lacks its mark");
  above.assign(stack.begin() + long(marks.back()), stack.end());
  stack.resize(marks.back());
  marks.pop_back();
  return true;
}

bool Unpickler::pushText(Kind kind, unsigned width) {
  uint64_t size;
  std::string_view text;
  if (!number(width, size) || !take(size, text))
    return false;
  Value *value = make(kind);
  if (!value)
    return false;
  value->text = text;
  return push(value);
}

bool Unpickler::pushInteger(int64_t integer) {
  Value *&known = small[integer & 255];
  if (integer >= 0 && integer < 256 && known)
    return push(known);
  Value *value = make(Kind::Int);
  if (!value)
    return false;
  value->integer = integer;
  if (integer >= 0 && integer < 256)
    known = value;
  return push(value);
}

bool Unpickler::pushLong(uint64_t size) {
  std::string_view text;
  if (!take(size, text))
    return false;
  // Two's complement, least significant byte first; more than eight bytes hold only the sign.
  const uint8_t sign = size && (text[size - 1] & 0x80) ? 0xff : 0;
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i)
    value |= uint64_t(i < size ? uint8_t(text[i]) : sign) << 8 * i;
  for (uint64_t i = 8; i < size; ++i)
    if (uint8_t(text[i]) != sign)
      return fail("the pickle has an integer of more than 64 bits, which is not supported");
  if (size > 8 && (value >> 63 != 0) != (sign != 0))
    return fail("the pickle has an integer of more than 64 bits, which is not supported");
  return pushInteger(int64_t(value));
}

bool Unpickler::pushTuple(uint64_t size) {
  if (size && !top(size - 1))
    return false;
  Value *tuple = make(Kind::Tuple);
  if (!tuple)
    return false;
  tuple->items.assign(stack.end() - long(size), stack.end());
  stack.resize(stack.size() - size);
  return push(tuple);
}

bool Unpickler::store(uint64_t slot) {
  Value *value = top();
  if (!value)
    return false;
  memo[slot] = value;
  return true;
}

bool Unpickler::fetch(uint64_t slot) {
  auto found = memo.find(slot);
  return found == memo.end() ? damaged("it names a value that it does not have") : push(found->second);
}

bool Unpickler::append(Value *list, const std::vector<Value *> &values) {
  if (!list)
    return false;
  if (list->kind != Kind::List)
    return damaged("it appends to what is no list");
  list->items.insert(list->items.end(), values.begin(), values.end());
  return true;
}

bool Unpickler::insert(Value *dict, const std::vector<Value *> &keysAndValues) {
  if (!dict)
    return false;
  if (dict->kind != Kind::Dict || keysAndValues.size() % 2)
    return damaged("it sets an item of what is no dict");
  dict->items.insert(dict->items.end(), keysAndValues.begin(), keysAndValues.end());
  return true;
}

bool Unpickler::build() {
  Value *state = top(), *object = state ? top(1) : nullptr;
  if (!object)
    return false;
  stack.pop_back();
  switch (object->kind) {
  case Kind::Object:
    if (object->state)
      return damaged("an object gets its state twice");
    object->state = state;
    return true;
  case Kind::Dict: // attributes of an OrderedDict, such as a state_dict's _metadata: none of its items
    return true;
  default:
    return damaged("it gives a state to what has none");
  }
}

bool Unpickler::step(uint8_t opcode, bool &isAtEnd) {
  uint64_t value;
  std::vector<Value *> above;
  switch (opcode) {
  case PROTO:
    if (!number(1, value))
      return false;
    return (value >= 2 && value <= 5) ||
           fail("the pickle has protocol " + std::to_string(value) + ", which is not supported; 2 to 5 are");
  case FRAME:
    return number(8, value);
  case STOP:
    isAtEnd = true;
    return true;
  case MARK:
    if (marks.size() >= kMaxStack)
      return fail("the pickle is nested too deeply to be one of a model");
    marks.push_back(stack.size());
    return true;
  case POP:
    if (!marks.empty() && marks.back() == stack.size())
      marks.pop_back();
    else if (top())
      stack.pop_back();
    else
      return false;
    return true;
  case POP_MARK:
    return popMark(above);
  case DUP:
    return push(top());
  case NONE:
    return push(none);
  case NEWTRUE:
    return push(yes);
  case NEWFALSE:
    return push(no);
  case BININT1:
    return number(1, value) && pushInteger(int64_t(value));
  case BININT2:
    return number(2, value) && pushInteger(int64_t(value));
  case BININT:
    return number(4, value) && pushInteger(int32_t(uint32_t(value)));
  case LONG1:
    return number(1, value) && pushLong(value);
  case LONG4:
    return number(4, value) && pushLong(value);
  case BINFLOAT: {
    if (!number(8, value))
      return false;
    Value *real = make(Kind::Float);
    if (!real)
      return false;
    value = __builtin_bswap64(value); // the one number of pickles that is big-endian
    std::memcpy(&real->real, &value, sizeof value);
    return push(real);
  }
  case SHORT_BINUNICODE:
  case SHORT_BINSTRING:
    return pushText(Kind::String, 1);
  case BINUNICODE:
  case BINSTRING:
    return pushText(Kind::String, 4);
  case BINUNICODE8:
    return pushText(Kind::String, 8);
  case SHORT_BINBYTES:
    return pushText(Kind::Bytes, 1);
  case BINBYTES:
    return pushText(Kind::Bytes, 4);
  case BINBYTES8:
  case BYTEARRAY8:
    return pushText(Kind::Bytes, 8);
  case EMPTY_TUPLE:
    return push(emptyTuple);
  case TUPLE1:
  case TUPLE2:
  case TUPLE3:
    return pushTuple(opcode - TUPLE1 + 1);
  case TUPLE:
  case LIST:
  case FROZENSET: {
    if (!popMark(above))
      return false;
    Value *items = make(opcode == TUPLE ? Kind::Tuple : Kind::List);
    if (!items)
      return false;
    items->items.assign(above.begin(), above.end());
    return push(items);
  }
  case DICT: {
    if (!popMark(above))
      return false;
    Value *dict = make(Kind::Dict);
    return dict && insert(dict, above) && push(dict);
  }
  case EMPTY_LIST:
  case EMPTY_SET:
    return push(make(Kind::List));
  case EMPTY_DICT:
    return push(make(Kind::Dict));
  case APPEND: {
    Value *item = top();
    if (!item || !append(top(1), {item}))
      return false;
    stack.pop_back();
    return true;
  }
  case APPENDS:
  case ADDITEMS:
    return popMark(above) && append(top(), above);
  case SETITEM: {
    Value *item = top(), *key = item ? top(1) : nullptr;
    if (!key || !insert(top(2), {key, item}))
      return false;
    stack.resize(stack.size() - 2);
    return true;
  }
  case SETITEMS:
    return popMark(above) && insert(top(), above);
  case BINPUT:
    return number(1, value) && store(value);
  case LONG_BINPUT:
    return number(4, value) && store(value);
  case MEMOIZE:
    return store(memo.size());
  case BINGET:
    return number(1, value) && fetch(value);
  case LONG_BINGET:
    return number(4, value) && fetch(value);
  case GLOBAL: {
    std::string_view module, name;
    return line(module) && line(name) && pushGlobal(module, name);
  }
  case STACK_GLOBAL: {
    Value *name = top(), *module = name ? top(1) : nullptr;
    if (!module)
      return false;
    if (!name->isString() || !module->isString())
      return damaged("it asks for a name that is no string");
    stack.resize(stack.size() - 2);
    return pushGlobal(module->text, name->text);
  }
  case NEWOBJ:
  case REDUCE: {
    Value *arguments = top(), *function = arguments ? top(1) : nullptr;
    if (!function)
      return false;
    // Values of enums: TorchScript calls their class with the value itself.
    const bool isEnum = opcode == REDUCE && function->kind == Kind::Symbol && function->integer == Class &&
                        (arguments->kind == Kind::Int || arguments->kind == Kind::Float || arguments->isString());
    if (arguments->kind != Kind::Tuple && !isEnum)
      return damaged("it calls with what is no tuple");
    stack.resize(stack.size() - 2);
    return call(function, arguments);
  }
  case BUILD:
    return build();
  case BINPERSID: {
    Value *id = top();
    if (!id)
      return false;
    stack.pop_back();
    return pushStorage(id);
  }
  default:
    return damaged("instruction " + std::to_string(opcode) + " at byte " + std::to_string(at - 1) +
                   " is none that PyTorch writes");
  }
}

bool Unpickler::run() {
  none = make(Kind::None);
  no = make(Kind::Bool);
  yes = make(Kind::Bool);
  yes->integer = 1;
  emptyTuple = make(Kind::Tuple);
  for (bool isAtEnd = false; !isAtEnd;) {
    if (at >= bytes.size())
      return damaged("it is cut off");
    if (!step(uint8_t(bytes[at++]), isAtEnd))
      return false;
  }
  if (stack.size() != 1 || !marks.empty())
    return damaged("it ends with another number of values than one");
  result.top = stack.front();
  return check();
}

bool Unpickler::check() {
  struct Visit {
    const Value *value;
    size_t next = 0;
    uint32_t depth = 0;
  };
  auto inner = [](const Value &value, size_t number) -> const Value * {
    if (number < value.items.size())
      return value.items[number];
    const PickledTensor::Quantization *quantization =
        value.tensor && value.tensor->quantization ? &*value.tensor->quantization : nullptr;
    const Value *others[] = {value.arguments, value.state, quantization ? quantization->scales : nullptr,
                             quantization ? quantization->zeroPoints : nullptr};
    return others[number - value.items.size()];
  };
  std::vector<Visit> path = {{result.top}};
  result.top->depth = kBeingChecked;
  while (!path.empty()) {
    Visit &visit = path.back();
    if (visit.next < visit.value->items.size() + 4) {
      const Value *next = inner(*visit.value, visit.next++);
      if (!next)
        continue;
      if (next->depth == kBeingChecked)
        return fail("the pickle has a value that contains itself, which is not supported");
      if (next->depth) {
        visit.depth = std::max(visit.depth, next->depth);
        continue;
      }
      if (path.size() >= kMaxPickleDepth)
        return fail("the pickle is nested more than " + std::to_string(kMaxPickleDepth) + " deep");
      next->depth = kBeingChecked;
      path.push_back({next});
      continue;
    }
    const Value &value = *visit.value;
    const uint32_t depth = visit.depth + 1;
    if (depth > kMaxPickleDepth)
      return fail("the pickle is nested more than " + std::to_string(kMaxPickleDepth) + " deep");
    if (value.kind == Kind::Dict) {
      std::unordered_set<std::string_view> keys;
      for (size_t i = 0; i < value.items.size(); i += 2)
        if (value.items[i]->isString() && !keys.insert(value.items[i]->text).second)
          return damaged("a dict has the key " + quoted(value.items[i]->text) + " twice");
    }
    value.depth = depth;
    path.pop_back();
    if (!path.empty())
      path.back().depth = std::max(path.back().depth, depth);
  }
  return true;
}

std::optional<Pickle> Pickle::parse(std::string_view bytes, std::string &error) {
  error.clear();
  Unpickler machine(bytes, error);
  if (!machine.run())
    return std::nullopt;
  return machine.takeResult();
}
