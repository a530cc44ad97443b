//===- StatusLine.h - what a tool is doing, on a terminal -----------------------------------------------*- C++ -*-===//
//
// For tools without LLVM; those with it have tc/Support/Progress.h.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_STATUSLINE_H
#define TC_RUN_STATUSLINE_H

#include <cstdio>
#include <string>
#include <unistd.h>

namespace tc::run {

/// One line of standard error where that is a terminal, written over by the next, and gone at the end; nothing
/// elsewhere. Who writes to the terminal meanwhile calls `clear` first.
class StatusLine {
public:
  StatusLine() = default;
  StatusLine(const StatusLine &) = delete;
  StatusLine &operator=(const StatusLine &) = delete;
  ~StatusLine() { clear(); }

  void show(const std::string &text) {
    if (isTerminal)
      std::fprintf(stderr, "\r%-78.78s", text.c_str());
    isShown = isTerminal;
  }
  void clear() {
    if (isShown)
      std::fprintf(stderr, "\r%78s\r", "");
    isShown = false;
  }

private:
  const bool isTerminal = ::isatty(STDERR_FILENO);
  bool isShown = false;
};

} // namespace tc::run

#endif // TC_RUN_STATUSLINE_H
