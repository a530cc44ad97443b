//===- Format.h - numbers of the page as text ---------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_LIB_BENCH_FORMAT_H
#define TC_LIB_BENCH_FORMAT_H

#include <cstdio>
#include <string>

namespace tc::bench {

/// What printf makes of `values`, at most 511 bytes of it.
template <typename... Values> std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

} // namespace tc::bench

#endif // TC_LIB_BENCH_FORMAT_H
