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
#include <tuple>
#include <utility>
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
  /// How strongly an operator binds, from 1 on, and how it is written; 0 of a function.
  static const auto find = [](const std::string &call) -> std::pair<int, const char *> {
    static const std::tuple<const char *, int, const char *> operators[] = {
        {"Or", 1, " or "}, {"And", 2, " and "}, {"Eq", 3, " == "},       {"Ne", 3, " != "},
        {"Le", 3, " <= "}, {"Ge", 3, " >= "},   {"Lt", 3, " < "},        {"Gt", 3, " > "},
        {"Add", 4, " + "}, {"Mul", 5, " * "},   {"FloorDiv", 5, " // "}, {"Mod", 5, " % "}};
    for (auto [word, strength, sign] : operators)
      if (call == word)
        return {strength, sign};
    return {0, ", "};
  };
  const auto [strength, sign] = find(name);
  std::string text;
  for (const SizeExpr &arg : args) {
    const int inner = arg.kind == Kind::Call ? find(arg.name).first : 0;
    const bool isBracketed = strength && inner && (inner < strength || (inner == strength && arg.name != name));
    text += (text.empty() ? "" : sign) + (isBracketed ? "(" + arg.str(rename) + ")" : arg.str(rename));
  }
  return strength ? text : name + "(" + text + ")";
}

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZEEXPR_H
