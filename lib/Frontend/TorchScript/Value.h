//===- Value.h - what a variable of TorchScript holds while a model is imported -------------------------*- C++ -*-===//
//
// The importer runs the code of an archive. Numbers, lists, objects are what they are in Python; tensors, and numbers
// that only a run knows (sizes of dynamic dims), are values of the graph that is made on the way.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_VALUE_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_VALUE_H

#include "Syntax.h"

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

#include <string>
#include <vector>

namespace tc::torchscript {

enum class Kind : uint8_t {
  None,
  Bool,          ///< integer: 0 or 1
  Int,           ///< integer
  Float,         ///< number
  Complex,       ///< number: the imaginary part of a literal
  String,        ///< held->text
  Device,        ///< held->text
  Tensor,        ///< graph; or held->items[0], a number that PyTorch made a tensor of and that is no value yet
  SymInt,        ///< graph: a 0-D i64 that only a run knows
  SymFloat,      ///< graph: a 0-D f64
  SymBool,       ///< graph: a 0-D i1
  List,          ///< held->items; held->text: the type of its elements where it is known
  Tuple,         ///< held->items; held->type: the NamedTuple, or null
  Dict,          ///< held->keys and held->items
  Object,        ///< held->attributes, held->type
  Enum,          ///< held->text: its name, held->items[0]: its value
  Uninitialized, ///< of a variable that its branch does not set
  Function,      ///< function, file
  Method,        ///< held: the object; function, file
  Class,         ///< type, file
  Namespace,     ///< held->text: "__torch__.torch.nn", "torch", "ops", "ops.prim", "CONSTANTS"
  Operator       ///< held->text: "aten::add", or a word of the language such as "annotate"
};

struct Held;

struct PyValue {
  Kind kind = Kind::None;
  union {
    int64_t integer = 0;
    double number;
  };
  mlir::Value graph;
  Held *held = nullptr;
  const SourceFile *file = nullptr;
  union {
    const Function *function = nullptr;
    const ClassDef *type;
  };

  bool is(Kind k) const { return kind == k; }
  bool isNone() const { return kind == Kind::None; }
  /// A number that is known; bools count as such.
  bool isNumber() const { return kind == Kind::Bool || kind == Kind::Int || kind == Kind::Float; }
  bool isSymbolic() const { return kind == Kind::SymInt || kind == Kind::SymFloat || kind == Kind::SymBool; }
  bool isScalar() const { return isNumber() || isSymbolic(); }
  bool isIntLike() const { return kind == Kind::Bool || kind == Kind::Int || kind == Kind::SymInt; }
  bool isTensor() const { return kind == Kind::Tensor; }
  double asDouble() const { return kind == Kind::Float ? number : double(integer); }

  static PyValue ofBool(bool value) {
    PyValue v;
    v.kind = Kind::Bool;
    v.integer = value;
    return v;
  }
  static PyValue ofInt(int64_t value) {
    PyValue v;
    v.kind = Kind::Int;
    v.integer = value;
    return v;
  }
  static PyValue ofFloat(double value) {
    PyValue v;
    v.kind = Kind::Float;
    v.number = value;
    return v;
  }
  static PyValue ofGraph(Kind kind, mlir::Value graph) {
    PyValue v;
    v.kind = kind;
    v.graph = graph;
    return v;
  }
  static PyValue ofHeld(Kind kind, Held *held) {
    PyValue v;
    v.kind = kind;
    v.held = held;
    return v;
  }
};

/// What is shared by those who name it. The interpreter owns all, and all of them live as long as it.
struct Held {
  /// Order of creation.
  uint64_t birth = 0;
  std::string text;
  std::vector<PyValue> items, keys;
  const ClassDef *type = nullptr;
  const SourceFile *file = nullptr;
  /// Of an object: "layer1.0.conv1", where a module first has it.
  std::string path;
  llvm::MapVector<llvm::StringRef, PyValue> attributes; // keys live as long as the archive's code
};

/// "a list", "a tensor": for messages.
llvm::StringRef describe(const PyValue &value);
/// As Python's str() and format() print it; null for what has no text that is known, and for lists that nest deeply.
std::optional<std::string> toText(const PyValue &value, bool isQuoted = false, int depth = 0);
/// Python's repr of a float.
std::string formatFloat(double value);

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_VALUE_H
