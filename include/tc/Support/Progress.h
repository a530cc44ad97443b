//===- Progress.h - a bar on a terminal for what takes over a second ------------------------------------*- C++ -*-===//
//
//   progress::Bar bar(/*wanted=*/!verbose);   // draws nothing unless standard error is a terminal
//   progress::beginStage("object", 6, 8);     // the seventh of eight stages
//   progress::setCount(parts);                // work inside the stage, may be left out
//   progress::advance();                      // from any thread
//
// The first line appears a second after the bar was made. With NO_COLOR set it has no colours; with TERM=dumb there is
// none. Whoever writes to standard error meanwhile calls `clear` first. All functions may be called without a bar.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_PROGRESS_H
#define TC_SUPPORT_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace tc::progress {

/// Draws while it lives; one at a time.
class Bar {
public:
  explicit Bar(bool wanted);
  ~Bar();
  Bar(const Bar &) = delete;
  Bar &operator=(const Bar &) = delete;
};

void beginStage(llvm::StringRef name, unsigned stage, unsigned stageCount);
/// Units of work of the current stage.
void setCount(uint64_t count);
void advance(uint64_t units = 1);
/// Erases the bar, which comes back a second later at the earliest: what the caller writes stands alone on its line.
void clear();

} // namespace tc::progress

#endif // TC_SUPPORT_PROGRESS_H
