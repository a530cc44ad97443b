//===- Patches.h - the rows of a convolution of bytes or bf16 as a matrix product -----------------------*- C++ -*-===//
//
// Row m of A is what output pixel m sees: [kernel positions][channels of the group], m running over batch and output
// positions. A task writes the rows that it needs to scratch: where neighbouring kernel positions are neighbours in the
// input, a line of the kernel is copied at once. Outside of the input stands one number, 0 or a zero point.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_PATCHES_H
#define TC_LIB_CODEGEN_CPU_PATCHES_H

#include "CPU/NarrowKernel.h"
#include "CPU/Product.h"

namespace tc::codegen {

/// A convolution as result[group, m, n] = sum over k of patches[group, m, k] * filter[group, k, n].
struct Patches {
  prim::ConvOp op;
  /// The convolution's input, or what is padded to become it, with `low` elements in front and `padding` around (null:
  /// 0).
  mlir::Value source, padding;
  llvm::SmallVector<int64_t> low, kernel;
  int64_t groups, channels, columns; // channels and columns of a group
  /// Rows: batch and output positions; `batch`: the groups; `depth`: kernel and channels.
  Product product;
};

/// Nullopt if `anchor` is no convolution with a filter of known sizes.
std::optional<Patches> asPatches(mlir::Operation *anchor);

/// The packed filter, [group][panel][lines][16][steps of a word] without the group if it is 1.
std::optional<PackedInput> packedPatchFilter(const Patches &patches, NarrowKind kind,
                                             llvm::function_ref<bool(unsigned)> isConstant);

/// Writes row `row` (a position in product.rows) of `group` to `to`, its elements widened if `widen`.
void emitPatch(Emitter &em, const Patches &patches, NarrowKind kind, Index group, llvm::ArrayRef<Index> row,
               mlir::Value to, bool widen);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_PATCHES_H
