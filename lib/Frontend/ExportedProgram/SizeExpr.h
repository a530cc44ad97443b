//===- SizeExpr.h - expressions over sizes in programs of torch.export ----------------------------------*- C++ -*-===//
//
// Archives write a size that is no number as SymPy prints it, in one of two forms:
//
//   Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))    schema 8.2 and later
//   2*s77 + 1                                                                        before, and keys of
//   range_constraints
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZEEXPR_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZEEXPR_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tc::exported {

struct SizeExpr {
  enum class Kind { Integer, Symbol, Call };
  Kind kind = Kind::Integer;
  int64_t value = 0;          ///< of an integer
  std::string name;           ///< of a symbol: "s77"; of a call: "Add", "Mul", "Pow", "FloorDiv", "Mod", "Max", ...
  std::vector<SizeExpr> args; ///< of a call

  bool isSymbol() const { return kind == Kind::Symbol; }
  /// `a * s + b` of one symbol s.
  struct Linear {
    std::string symbol;
    int64_t factor, offset;
  };
  std::optional<Linear> asLinear() const;
  /// As one would write it, with `rename` for the symbols' names.
  template <typename Rename> std::string str(Rename rename) const;
};

/// Nullopt for what is no expression of integers, such as Rational(1, 2).
std::optional<SizeExpr> parseSizeExpr(llvm::StringRef text);

template <typename Rename> std::string SizeExpr::str(Rename rename) const {
  if (kind == Kind::Integer)
    return std::to_string(value);
  if (kind == Kind::Symbol)
    return rename(name);
  const bool isInfix = (name == "Add" || name == "Mul") && !args.empty();
  std::string text = isInfix ? "" : name + "(";
  for (size_t i = 0; i < args.size(); ++i) {
    const bool needsBrackets = name == "Mul" && args[i].kind == Kind::Call && args[i].name == "Add";
    const std::string inner = args[i].str(rename);
    text += (i == 0          ? ""
             : name == "Add" ? " + "
             : name == "Mul" ? " * "
                             : ", ") +
            (needsBrackets ? "(" + inner + ")" : inner);
  }
  return text + (isInfix ? "" : ")");
}

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZEEXPR_H
