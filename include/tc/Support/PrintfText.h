//===- PrintfText.h - numbers as text -----------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_SUPPORT_PRINTFTEXT_H
#define TC_SUPPORT_PRINTFTEXT_H

#include <cstdio>
#include <string>

namespace tc {

/// What printf makes of `values`, at most 511 bytes of it.
template <typename... Values> std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

} // namespace tc

#endif // TC_SUPPORT_PRINTFTEXT_H
