//===- ChildProcess.h - work that may crash or take too much, in a process of its own -------------------*- C++ -*-===//
//
// A library that is not ours may crash, hang or take all memory on a hostile file. Its work runs in a fork, which has
// all of our memory and copies nothing; what it finds comes back as bytes through a pipe:
//
//   std::optional<std::string> hints = runInChild(ChildLimits(), [&] { return inferAndSerialise(model); });
//
// The caller must be able to go on without them.
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

namespace tc {

struct ChildLimits {
  /// Address space beyond what this process has.
  uint64_t moreBytes = uint64_t(1) << 29;
  /// Of processor time; a child that waits instead may do so for twice as long.
  unsigned seconds = 5;
};

/// What `work` returns in a child process; nullopt where the child cannot be made, dies or exceeds a limit.
std::optional<std::string> runInChild(const ChildLimits &limits, llvm::function_ref<std::string()> work);

} // namespace tc

#endif // TC_SUPPORT_CHILDPROCESS_H
