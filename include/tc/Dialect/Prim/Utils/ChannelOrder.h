//===- ChannelOrder.h - transposes between channels first and channels last -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_CHANNELORDER_H
#define TC_DIALECT_PRIM_UTILS_CHANNELORDER_H

#include "llvm/ADT/SmallVector.h"

namespace tc {

/// [0, 2, 3, .., 1]: channels-first to channels-last. `rank` is 2 at least.
inline llvm::SmallVector<int64_t> toChannelsLast(int64_t rank) {
  llvm::SmallVector<int64_t> permutation{0};
  for (int64_t i = 2; i < rank; ++i)
    permutation.push_back(i);
  permutation.push_back(1);
  return permutation;
}

/// [0, rank - 1, 1, 2, ..]: channels-last to channels-first. `rank` is 2 at least.
inline llvm::SmallVector<int64_t> toChannelsFirst(int64_t rank) {
  llvm::SmallVector<int64_t> permutation{0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i)
    permutation.push_back(i);
  return permutation;
}

} // namespace tc

#endif // TC_DIALECT_PRIM_UTILS_CHANNELORDER_H
