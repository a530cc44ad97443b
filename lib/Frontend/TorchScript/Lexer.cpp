//===- Lexer.cpp - tokens of TorchScript's code -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Lexer.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tc::torchscript;

static bool isNameStart(char c) { return isAlpha(c) || c == '_'; }
static bool isNamePart(char c) { return isAlnum(c) || c == '_'; }

Token Lexer::make(TokenKind kind, StringRef spelling) const {
  Token token;
  token.kind = kind;
  token.at = start;
  token.text = spelling;
  return token;
}

Token Lexer::error(StringRef what) {
  failed = true;
  return failure = make(TokenKind::Error, what);
}

void Lexer::skipSpace() {
  for (;;) {
    char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || (c == '\n' && brackets > 0)) {
      ++at;
      if (c == '\n') {
        ++line;
        lineStart = at;
      }
    } else if (c == '\\' && peek(1) == '\n') {
      at += 2;
      ++line;
      lineStart = at;
    } else if (c == '#') {
      while (at < text.size() && text[at] != '\n')
        ++at;
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  if (failed)
    return failure;
  if (pendingDedents > 0) {
    --pendingDedents;
    return make(TokenKind::Dedent, "");
  }
  // The indentation of a line that holds something.
  while (atLineStart && brackets == 0 && at < text.size()) {
    size_t begin = at;
    while (peek() == ' ')
      ++at;
    size_t width = at - begin;
    start = {line, uint32_t(at - lineStart + 1)};
    if (peek() == '\t')
      return error("a tab indents this line; TorchScript indents by spaces");
    skipSpace();
    if (peek() == '\n') {
      ++at;
      ++line;
      lineStart = at;
      continue;
    }
    atLineStart = false;
    if (at >= text.size())
      break;
    if (width > indents.back()) {
      if (indents.size() > size_t(kMaxDepth))
        return error("blocks nest too deeply");
      indents.push_back(width);
      return make(TokenKind::Indent, "");
    }
    while (width < indents.back()) {
      indents.pop_back();
      ++pendingDedents;
    }
    if (width != indents.back())
      return error("this line is indented as no line before it");
    if (pendingDedents > 0) {
      --pendingDedents;
      return make(TokenKind::Dedent, "");
    }
  }
  skipSpace();
  start = {line, uint32_t(at - lineStart + 1)};
  if (at >= text.size()) {
    if (isAfterToken) {
      isAfterToken = false;
      return make(TokenKind::Newline, "");
    }
    if (indents.size() > 1) {
      indents.pop_back();
      return make(TokenKind::Dedent, "");
    }
    return make(TokenKind::End, "");
  }
  char c = peek();
  if (c == '\n') {
    ++at;
    ++line;
    lineStart = at;
    atLineStart = true;
    isAfterToken = false;
    return make(TokenKind::Newline, "");
  }
  isAfterToken = true;
  if (isNameStart(c)) {
    size_t begin = at;
    while (isNamePart(peek()))
      ++at;
    return make(TokenKind::Name, text.slice(begin, at));
  }
  if (isDigit(c) || (c == '.' && isDigit(peek(1))))
    return lexNumber();
  if (c == '"' || c == '\'')
    return lexString(c);
  static const StringRef kLong[] = {"**=", "//=", "->", "**", "//", "==", "!=", "<=", ">=", "<<",
                                    ">>",  "+=",  "-=", "*=", "/=", "%=", "|=", "&=", "^="};
  for (StringRef spelling : kLong)
    if (text.substr(at).starts_with(spelling)) {
      at += spelling.size();
      return make(TokenKind::Punctuation, spelling);
    }
  if (StringRef("()[]{},:.=+-*/%@<>&|^~;").contains(c)) {
    if (c == '(' || c == '[' || c == '{')
      ++brackets;
    if ((c == ')' || c == ']' || c == '}') && brackets > 0)
      --brackets;
    return make(TokenKind::Punctuation, text.substr(at++, 1));
  }
  return error("this character has no meaning in TorchScript");
}

Token Lexer::lexNumber() {
  size_t begin = at;
  bool isFloat = false;
  while (isDigit(peek()))
    ++at;
  if (peek() == '.') {
    isFloat = true;
    ++at;
    while (isDigit(peek()))
      ++at;
  }
  if ((peek() == 'e' || peek() == 'E') &&
      (isDigit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && isDigit(peek(2))))) {
    isFloat = true;
    at += 2;
    while (isDigit(peek()))
      ++at;
  }
  Token token = make(isFloat ? TokenKind::Float : TokenKind::Int, text.slice(begin, at));
  if (peek() == 'j') {
    ++at;
    token.kind = TokenKind::Complex;
    isFloat = true;
  }
  if (isNamePart(peek()))
    return error("a number ends in letters");
  // The sign is an operator: -2^63 is written as such.
  if (isFloat) {
    if (token.text.getAsDouble(token.number))
      return error("this number cannot be read");
  } else if (uint64_t magnitude; token.text.getAsInteger(10, magnitude) || magnitude > uint64_t(1) << 63) {
    return error("this number does not fit 64 bits");
  } else {
    token.integer = int64_t(magnitude);
  }
  return token;
}

Token Lexer::lexString(char quote) {
  std::string value;
  ++at;
  for (;;) {
    if (at >= text.size() || text[at] == '\n')
      return error("this string does not end");
    char c = text[at++];
    if (c == quote)
      break;
    if (c != '\\') {
      value += c;
      continue;
    }
    char e = peek();
    ++at;
    static const std::pair<char, char> kEscapes[] = {{'\\', '\\'}, {'\'', '\''}, {'"', '"'},  {'a', '\a'}, {'b', '\b'},
                                                     {'f', '\f'},  {'n', '\n'},  {'r', '\r'}, {'t', '\t'}, {'v', '\v'}};
    auto *known = llvm::find_if(kEscapes, [&](auto entry) { return entry.first == e; });
    if (known != std::end(kEscapes)) {
      value += known->second;
    } else if (e == 'x' && isHexDigit(peek()) && isHexDigit(peek(1))) {
      value += char(hexDigitValue(peek()) * 16 + hexDigitValue(peek(1)));
      at += 2;
    } else if (e >= '0' && e <= '7') {
      unsigned code = unsigned(e - '0');
      for (int digits = 1; digits < 3 && peek() >= '0' && peek() <= '7'; ++digits)
        code = code * 8 + unsigned(text[at++] - '0');
      if (code > 255)
        return error("this string holds an escape above 255");
      value += char(code);
    } else {
      return error("this string holds an escape that has no meaning");
    }
  }
  char *kept = arena.Allocate<char>(value.size());
  std::copy(value.begin(), value.end(), kept);
  return make(TokenKind::String, StringRef(kept, value.size()));
}
