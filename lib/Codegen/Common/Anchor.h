//===- Anchor.h - how kernels read what an anchor reads, and store what follows it --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_ANCHOR_H
#define TC_LIB_CODEGEN_ANCHOR_H

#include "Common/Emitter.h"
#include "tc/Analysis/Anchor.h"

namespace tc::codegen {

/// Whether the elements of a tensor are f32.
bool isF32(mlir::Value tensor);

/// Computes and stores the outputs' elements that depend on `value`, the element at `at` of the epilogue's result. Call
/// clearSources on the emitter when the loops around are closed.
void storeEpilogue(Emitter &em, const Epilogue &epilogue, llvm::ArrayRef<Index> at, mlir::Value value);

/// Number of the region input behind `value` if only reshapes stand between.
std::optional<unsigned> inputThroughReshapes(mlir::Value value);

/// Whether dim `dim` of `value` is contiguous in memory, as far as movement and pointwise ops tell.
bool isInnermost(mlir::Value value, int64_t dim);

/// A constant input read through transposes, reshapes and slices of static sizes: `at` gives the position in `value` as
/// expressions over some dims, the result the input's number and the position in it. `widens`: also through one
/// conversion of f16 or bf16 to f32; then the input's elements are narrower than those of `value`.
struct ConstantView {
  unsigned input;
  mlir::Type element; // of the input
  llvm::SmallVector<mlir::AffineExpr> at;
};
std::optional<ConstantView> traceConstant(mlir::Value value, llvm::function_ref<bool(unsigned)> isConstant,
                                          llvm::SmallVector<mlir::AffineExpr> at, bool widens = false);

/// Row-major split of a linear position as expressions; sizes are static. The first position is not reduced.
llvm::SmallVector<mlir::AffineExpr> delinearizeExpr(mlir::AffineExpr linear, llvm::ArrayRef<mlir::AffineExpr> sizes);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_ANCHOR_H
