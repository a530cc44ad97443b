//===- Json.h - The one way in which JSON of others is read ---------------------------------------------*- C++ -*-===//
//
// Manifests, tuning databases, programs of torch.export, signatures of custom operators: text that somebody else wrote.
// Readers and printers of JSON recurse, so that text which is nested too deeply ends the process. It is told before.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_FORMAT_JSON_H
#define TC_FORMAT_JSON_H

#include <nlohmann/json.hpp>

#include <cstddef>

namespace tc {

/// Arrays and objects inside of each other at most.
inline constexpr unsigned kMaxJsonDepth = 200;

/// Whether the text, be it JSON or not, nests deeper than that. Brackets in strings do not count.
inline bool isJsonTooDeep(const char *text, size_t size) {
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < size; ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth)
        return true;
    } else if ((c == '}' || c == ']') && depth) {
      --depth;
    }
  }
  return false;
}

/// The value, or a discarded one for text that is no JSON or nested too deeply. Throws nothing.
inline nlohmann::json parseJson(const char *text, size_t size) {
  if (isJsonTooDeep(text, size))
    return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, text + size, nullptr, /*allow_exceptions=*/false);
}

} // namespace tc

#endif // TC_FORMAT_JSON_H
