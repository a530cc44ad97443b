//===- Lexer.h - tokens of TorchScript's code -----------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_LEXER_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_LEXER_H

#include "Syntax.h"

#include "llvm/ADT/SmallVector.h"

namespace tc::torchscript {

enum class TokenKind : uint8_t { End, Newline, Indent, Dedent, Name, Int, Float, Complex, String, Punctuation, Error };

struct Token {
  TokenKind kind = TokenKind::End;
  Position at;
  llvm::StringRef text; ///< of a string: unescaped; of an error: what is wrong
  int64_t integer = 0;
  double number = 0;
};

/// Line ends inside of brackets are space, and lines of space or comments are none. After an error or the end, next()
/// gives the same again.
class Lexer {
public:
  /// `text` and `arena` outlive the tokens.
  Lexer(llvm::StringRef text, llvm::BumpPtrAllocator &arena) : text(text), arena(arena) {}

  Token next();

private:
  Token make(TokenKind kind, llvm::StringRef spelling) const;
  Token error(llvm::StringRef what);
  Token lexString(char quote);
  Token lexNumber();
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  void skipSpace();

  llvm::StringRef text;
  llvm::BumpPtrAllocator &arena;
  size_t at = 0, lineStart = 0;
  uint32_t line = 1;
  Position start;
  int brackets = 0;
  bool atLineStart = true, isAfterToken = false;
  llvm::SmallVector<size_t> indents{0};
  size_t pendingDedents = 0;
  bool failed = false;
  Token failure;
};

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_LEXER_H
