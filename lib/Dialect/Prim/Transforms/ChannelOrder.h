//===- ChannelOrder.h - transposes between channels first and channels last -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_CHANNELORDER_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_CHANNELORDER_H

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"

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
  return permutation.size() >= 3 && permutation == llvm::ArrayRef(toChannelsLast(permutation.size()));
}

/// The opposite: whether it takes [N, S.., C] to [N, C, S..].
inline bool isToChannelsFirst(llvm::ArrayRef<int64_t> permutation) {
  return permutation.size() >= 3 && permutation == llvm::ArrayRef(toChannelsFirst(permutation.size()));
}

/// Transposes of all operands of an elementwise op move behind it.
void populateSinkThroughElementwise(mlir::RewritePatternSet &patterns);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_CHANNELORDER_H
