//===- Syntax.h - the serialised code of a TorchScript archive, as a tree -------------------------------*- C++ -*-===//
//
// TorchScript's code is a small part of Python: what torch/csrc/jit/serialization/python_print.cpp writes. Trees live
// in an arena that the parsed file owns; names and literals point into the source or the arena. Any text is safe to
// parse: nesting is limited, so that whoever walks a tree by recursion has a bounded stack.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_SYNTAX_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_SYNTAX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace tc::torchscript {

/// Expressions and statements nest at most so deep; PyTorch breaks its lines long before.
constexpr int kMaxDepth = 500;

/// Where something stands in its file, both from 1 on.
struct Position {
  uint32_t line = 0, column = 0;
};

enum class ExprKind : uint8_t {
  Name,      ///< text
  Int,       ///< integer
  Float,     ///< number
  Complex,   ///< number: the imaginary part
  String,    ///< text, unescaped
  List,      ///< operands
  Tuple,     ///< operands
  Dict,      ///< operands: key, value, key, value, ...
  Attribute, ///< operands[0] . text
  Subscript, ///< operands[0] [ operands[1], ... ]
  Slice,     ///< operands: start, end, step, each null where absent
  Call,      ///< operands[0] ( operands[1], ..., ); the last keywords.size() of them are named
  Unary,     ///< text operands[0]
  Binary,    ///< operands[0] text operands[1]; `and` and `or` too
  Ternary    ///< operands[1] if operands[0] else operands[2]
};

struct Expr {
  ExprKind kind;
  Position at;
  /// Of this tree, at most kMaxDepth.
  int depth = 1;
  llvm::StringRef text;
  union {
    int64_t integer = 0;
    double number;
  };
  llvm::ArrayRef<const Expr *> operands;
  llvm::ArrayRef<llvm::StringRef> keywords;
};

struct Stmt;
using Body = llvm::ArrayRef<const Stmt *>;

struct Parameter {
  llvm::StringRef name;
  const Expr *type = nullptr;         ///< null where it has none
  const Expr *defaultValue = nullptr; ///< null where it has none
};

struct Function {
  llvm::StringRef name;
  Position at;
  llvm::ArrayRef<Parameter> parameters;
  const Expr *returnType = nullptr;
  Body body;
};

enum class StmtKind : uint8_t {
  Assign,     ///< targets = value; or a declaration where value is null
  Augmented,  ///< targets[0] text value, such as "+="
  Expression, ///< value
  If,         ///< value: body, otherwise
  For,        ///< targets in value: body
  While,      ///< value: body
  Return,     ///< value may be null
  Raise,      ///< value may be null
  Assert,     ///< value, message (may be null)
  With,       ///< value as targets[0] (may be absent): body
  Define,     ///< a function inside of a function
  Pass,
  Break,
  Continue,
  Delete ///< targets
};

struct Stmt {
  StmtKind kind;
  Position at;
  llvm::StringRef text;
  /// Of an assignment to several names, `a, b = x` or `a, = x`; `isUnpacking` tells the latter from `a = x`.
  llvm::ArrayRef<const Expr *> targets;
  bool isUnpacking = false;
  const Expr *type = nullptr;
  const Expr *value = nullptr, *message = nullptr;
  Body body, otherwise;
  const Function *function = nullptr;
};

struct ClassDef {
  llvm::StringRef name;
  /// Module, NamedTuple, Interface, ModuleInterface, Enum; empty of a plain class.
  llvm::StringRef base;
  Position at;
  struct Field {
    llvm::StringRef name;
    const Expr *type = nullptr;
    const Expr *value = nullptr; ///< of a constant
  };
  /// In order, without __parameters__, __buffers__ and the like.
  llvm::ArrayRef<Field> fields;
  llvm::ArrayRef<const Function *> methods;
  /// Names of methods that run around forward.
  llvm::ArrayRef<llvm::StringRef> preHooks, hooks;

  const Function *findMethod(llvm::StringRef method) const {
    for (const Function *function : methods)
      if (function->name == method)
        return function;
    return nullptr;
  }
};

/// One file of code. Owns its trees.
struct SourceFile {
  std::string path; ///< in the archive, for messages
  std::string text;
  llvm::BumpPtrAllocator arena;
  llvm::StringMap<const ClassDef *> classes;
  llvm::StringMap<const Function *> functions;
};

/// Parses a file. The error is "PATH:LINE:COLUMN: what", without the archive's name.
llvm::Expected<std::unique_ptr<SourceFile>> parseSource(std::string path, std::string text);

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_SYNTAX_H
