//===- ChannelOrder.h - transposes between channels first and channels last -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_CHANNELORDER_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_CHANNELORDER_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

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
  const auto rank = int64_t(permutation.size());
  return rank >= 3 && permutation.front() == 0 && permutation.back() == 1 &&
         llvm::equal(permutation.drop_front().drop_back(), llvm::seq<int64_t>(2, rank));
}

/// The opposite: whether it takes [N, S.., C] to [N, C, S..].
inline bool isToChannelsFirst(llvm::ArrayRef<int64_t> permutation) {
  const auto rank = int64_t(permutation.size());
  return rank >= 3 && permutation.front() == 0 && permutation[1] == rank - 1 &&
         llvm::equal(permutation.drop_front(2), llvm::seq<int64_t>(1, rank - 1));
}

/// Transposes of all operands of an elementwise op move behind it.
void populateSinkThroughElementwise(mlir::RewritePatternSet &patterns);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_CHANNELORDER_H
