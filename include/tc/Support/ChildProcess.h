//===- ChildProcess.h - work that may crash or take too much, in a process of its own -------------------*- C++ -*-===//
//
// A library that is not ours may crash, hang or take all memory on a hostile file. Its work runs in a fork, which has
// all of our memory and copies nothing; what it finds comes back as bytes through a pipe:
//
//   std::optional<std::string> hints = runInChild(ChildLimits(), [&] { return inferAndSerialise(model); });
//
// The caller must be able to go on without them. A program of its own, which may do the same, is run by runProgram.
//
// Thread safety: may be called from any thread. In the child only the calling thread lives on, so that work must not
// wait for another one, or for a lock that another one may hold.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_CHILDPROCESS_H
#define TC_SUPPORT_CHILDPROCESS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tc {

struct ChildLimits {
  /// Address space beyond what this process has.
  uint64_t moreBytes = uint64_t(1) << 29;
  /// Of processor time; a child that waits instead may do so for twice as long.
  unsigned seconds = 5;
};

/// What `work` returns in a child process; nullopt where the child cannot be made, dies or exceeds a limit.
std::optional<std::string> runInChild(const ChildLimits &limits, llvm::function_ref<std::string()> work);

/// How a program ended.
struct ProgramResult {
  enum class End {
    Exited,    ///< `code` is its status
    Killed,    ///< `code` is the signal
    TimedOut,  ///< it, and what it had started, was killed
    NotStarted ///< there is no such program, or no process
  };
  End end = End::NotStarted;
  int code = 0;
  /// What it printed on standard output and error, up to a megabyte.
  std::string output;
};

/// Runs `words`, the first of which is looked for in PATH, without input. It may take `seconds` by the clock, and have
/// `moreBytes` of address space in all; 0: any.
ProgramResult runProgram(const ChildLimits &limits, const std::vector<std::string> &words);

/// Kills the processes that this one has started, by whatever way, and that have not ended.
void killChildren();

} // namespace tc

#endif // TC_SUPPORT_CHILDPROCESS_H
