//===- Schemas.h - the signatures of PyTorch's operators ------------------------------------------------*- C++ -*-===//
//
// What PyTorch says of each operator: its arguments with types and defaults, and which of them it writes or returns
// other names of. The table is Schemas.txt beside Schemas.cpp, written by scripts/torch_schemas.py. A signature is
// parsed when it is asked for first, and lives as long as the process; all functions may be called by several threads.
//
//   const torch::Schema *add = torch::findSchema("aten", "add_.Tensor");
//   add->arguments[0].isWritten();              // true: (a!)
//   torch::findOverloads("aten", "add");        // add.Tensor, add.Scalar, ..., add.int, ...
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_TORCH_SCHEMAS_H
#define TC_DIALECT_GRAPH_TORCH_SCHEMAS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tc::torch {

/// What an argument or result may be: "Tensor?[]" is a list of optional tensors.
struct SchemaType {
  enum class Kind {
    Tensor,
    Int,
    SymInt,
    Float,
    Bool,
    Complex,
    Scalar, ///< any number
    String,
    ScalarType,
    Layout,
    Device,
    MemoryFormat,
    Generator,
    Any,
    List,     ///< of elements[0]
    Optional, ///< of elements[0]
    Dict,     ///< from elements[0] to elements[1]
    Tuple,    ///< of elements, in order
    Future,   ///< of elements[0]; RRef and Await, too: see `name`
    Variable, ///< a type that the call decides, such as t
    Class     ///< all others: see `name`
  };
  Kind kind = Kind::Any;
  /// As the signature writes it, without brackets, marks and elements.
  llvm::StringRef name;
  std::vector<SchemaType> elements;
  /// Of a list: the length that it has where one element is given for all, as in SymInt[2].
  std::optional<int64_t> length;
  /// The set of names of one memory that it belongs to, as in Tensor(a!): "a", or "" for none.
  llvm::StringRef aliasSet;
  /// Whether the call writes that memory.
  bool written = false;

  bool isOptional() const { return kind == Kind::Optional; }
  /// Without one level of Optional.
  const SchemaType &required() const { return isOptional() ? elements[0] : *this; }
  /// Whether it is a list of `element`, or None in its place.
  bool isListOf(Kind element) const {
    return required().kind == Kind::List && required().elements[0].required().kind == element;
  }
  /// Whether it, or what it holds, belongs to an alias set; the set, and whether it is written.
  const SchemaType *findAlias() const;
  /// In PyTorch's words, without the alias sets.
  std::string str() const;
};

/// A default: None, or what it says.
using SchemaValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<double>, std::vector<bool>>;

struct SchemaArgument {
  llvm::StringRef name; ///< of a result: often ""
  SchemaType type;
  bool keywordOnly = false;
  /// As the signature writes it; nullopt for arguments that every call gives.
  std::optional<llvm::StringRef> defaultText;

  bool isWritten() const { return type.findAlias() && type.findAlias()->written; }
  /// What a call that omits it means; nullopt if it must be given. A single default of a list with a length is all of
  /// its elements; names such as Mean are the numbers that PyTorch's signatures print.
  std::optional<SchemaValue> defaultValue() const;
};

struct Schema {
  llvm::StringRef text;     ///< the whole line
  llvm::StringRef domain;   ///< aten
  llvm::StringRef name;     ///< add_
  llvm::StringRef overload; ///< Tensor, or "" where archives write "default"
  std::vector<SchemaArgument> arguments, results;
  bool variadic = false; ///< takes any more arguments

  const SchemaArgument *find(llvm::StringRef argument) const;
  /// Whether a call writes memory that others may see.
  bool writes() const;
  /// "add_.Tensor", "relu.default": the type of a graph.node.
  std::string nodeType() const;
};

/// Reads one signature in the table's language, which is PyTorch's own. Its words point into `text`. Nullopt if it is
/// none, or leaves an argument without a name of its own.
std::optional<Schema> parseSchema(llvm::StringRef text);

/// `type` as nodes name it: "add_.Tensor", "relu.default", or "relu". Null if PyTorch has no such operator.
const Schema *findSchema(llvm::StringRef domain, llvm::StringRef type);

/// All overloads of a name, in the order in which TorchScript tries them. Empty if there is none.
llvm::ArrayRef<const Schema *> findOverloads(llvm::StringRef domain, llvm::StringRef name);

/// All operators, by name. Parses the whole table: for tests and listings.
std::vector<const Schema *> getAllSchemas();

/// Whether PyTorch counts the operator to Core ATen, what its decompositions end in. That list is Core.txt.
bool isCore(const Schema &schema);

/// The operator that computes what `schema` writes, and returns it instead: add.Tensor of add_.Tensor and of add.out.
/// It takes the same arguments, but for the out= ones; the first may have another name. Null if PyTorch has none.
const Schema *findFunctional(const Schema &schema);

} // namespace tc::torch

#endif // TC_DIALECT_GRAPH_TORCH_SCHEMAS_H
