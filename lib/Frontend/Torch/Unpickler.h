//===- Unpickler.h - the machine that pickles are programs of -------------------------------------------*- C++ -*-===//
//
// Pickle.cpp has the instructions, PickleGlobals.cpp the names that a pickle may ask for and what they give.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCH_UNPICKLER_H
#define TC_LIB_FRONTEND_TORCH_UNPICKLER_H

#include "tc/Frontend/Torch/Pickle.h"

#include <unordered_map>

namespace tc::torch {

/// Names are bytes that somebody else wrote, and stand in messages.
std::string quoted(std::string_view name);

class Unpickler {
public:
  Unpickler(std::string_view bytes, std::string &error) : bytes(bytes), error(error) {}
  /// False: `error` says why.
  bool run();
  Pickle takeResult() { return std::move(result); }

private:
  using Value = PickledValue;
  using Kind = PickledValue::Kind;

  // What a function of the list makes of its arguments; numbers of Symbols, 0 for names that are none.
  enum Function : int64_t {
    None,
    Class,
    MakeDict,
    MakeDevice,
    GetLayout,
    MakeSize,
    Encode,
    MakeBytes,
    MakeList,
    MakeComplex,
    RestoreTag,
    BuildList,
    RebuildTensor,
    RebuildTensorV3,
    RebuildParameter,
    RebuildQuantized,
    RebuildMeta,
    RebuildFromType
  };

  //===--- instructions (Pickle.cpp)
  bool fail(const std::string &what);
  bool damaged(const std::string &what) { return fail("the pickle is damaged: " + what); }
  bool step(uint8_t opcode, bool &isAtEnd);
  bool take(uint64_t size, std::string_view &taken);
  bool number(unsigned width, uint64_t &value);
  bool line(std::string_view &text);
  bool push(Value *value);
  Value *make(Kind kind);
  bool pushText(Kind kind, unsigned width);
  bool pushInteger(int64_t value);
  bool pushLong(uint64_t size);
  bool pushTuple(uint64_t size);
  /// The values above the last mark, which go; the mark, too.
  bool popMark(std::vector<Value *> &above);
  Value *top(uint64_t below = 0);
  bool store(uint64_t slot);
  bool fetch(uint64_t slot);
  bool append(Value *list, const std::vector<Value *> &values);
  bool insert(Value *dict, const std::vector<Value *> &keysAndValues);
  bool build();
  /// Counts what is copied against one budget, so that short instructions can't ask for much.
  bool charge(uint64_t amount);
  /// No cycles, not too deep, no key twice.
  bool check();

  //===--- names (PickleGlobals.cpp)
  bool pushGlobal(std::string_view module, std::string_view name);
  bool call(Value *function, const Value *arguments);
  bool pushStorage(const Value *id);
  Value *makeTensor(Function function, const std::vector<const Value *> &arguments);
  bool readDims(const Value *value, std::vector<int64_t> &dims);
  bool isBoolOf(const Value *value, const char *key);

  std::string_view bytes;
  std::string &error;
  uint64_t at = 0;
  uint64_t spent = 0;
  Pickle result;
  std::vector<Value *> stack;
  std::vector<size_t> marks;
  std::unordered_map<uint64_t, Value *> memo;
  Value *none = nullptr, *no = nullptr, *yes = nullptr, *emptyTuple = nullptr;
  Value *small[256] = {}; // integers that are made once
};

} // namespace tc::torch

#endif // TC_LIB_FRONTEND_TORCH_UNPICKLER_H
