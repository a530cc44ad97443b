//===- ChannelOrder.h - transposes between channels first and channels last -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_CHANNELORDER_H
#define TC_DIALECT_PRIM_UTILS_CHANNELORDER_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
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

namespace tc::prim {

inline llvm::SmallVector<int64_t> invert(llvm::ArrayRef<int64_t> permutation) {
  llvm::SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, p] : llvm::enumerate(permutation))
    inverse[p] = i;
  return inverse;
}

/// Of what a transpose by `permutation` makes.
inline llvm::SmallVector<mlir::AffineExpr> permuted(llvm::ArrayRef<mlir::AffineExpr> sizes,
                                                    llvm::ArrayRef<int64_t> permutation) {
  return llvm::map_to_vector(permutation, [&](int64_t dim) { return sizes[dim]; });
}

/// Whether a transpose by `permutation` takes [N, C, S..] to [N, S.., C].
inline bool isToChannelsLast(llvm::ArrayRef<int64_t> permutation) {
  return permutation.size() >= 3 && permutation == llvm::ArrayRef(toChannelsLast(permutation.size()));
}

/// The opposite: whether it takes [N, S.., C] to [N, C, S..].
inline bool isToChannelsFirst(llvm::ArrayRef<int64_t> permutation) {
  return permutation.size() >= 3 && permutation == llvm::ArrayRef(toChannelsFirst(permutation.size()));
}

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_UTILS_CHANNELORDER_H
