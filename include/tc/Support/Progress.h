//===- Progress.h - a bar on a terminal for what takes over a second ------------------------------------*- C++ -*-===//
//
//   progress::Bar bar(/*wanted=*/!verbose);   // draws nothing unless standard error is a terminal
//   progress::beginStage("object", 0.2, 0.95); // from a fifth of the bar on
//   progress::setWork(operations, kernels);   // inside of the stage, may be left out: what moves the bar, what is
//   counted progress::advance(17, 1);                 // from any thread progress::setDetail("best 12.3 us");      //
//   shown behind the count
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
#include <string>

namespace tc::progress {

/// Draws while it lives; one at a time.
class Bar {
public:
  explicit Bar(bool wanted);
  ~Bar();
  Bar(const Bar &) = delete;
  Bar &operator=(const Bar &) = delete;
};

/// The stage fills the bar from the fraction `begin` to `end`. A bar never goes back.
void beginStage(llvm::StringRef name, double begin, double end);
/// Of the current stage: `work` units, of which each moves the bar as far, in `items`, which are counted for the
/// reader.
void setWork(uint64_t work, uint64_t items);
void advance(uint64_t work, uint64_t items = 0);
/// Shown behind the count; what is no printable ASCII as a question mark.
void setDetail(const std::string &text);

/// While one lives, the work of the stage stays as it is: for a compile inside of a stage, which has a count of its
/// own.
class Hold {
public:
  Hold();
  ~Hold();
  Hold(const Hold &) = delete;
  Hold &operator=(const Hold &) = delete;
};

/// Erases the bar, which comes back a second later at the earliest: what the caller writes stands alone on its line.
void clear();

} // namespace tc::progress

#endif // TC_SUPPORT_PROGRESS_H
