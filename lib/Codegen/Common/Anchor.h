//===- Anchor.h - what stands around the op that a kernel is built for ----------------------------------*- C++ -*-===//
//
// The anchor of a region is its one op that is worth a generator of its own: dot_general, block_dot, conv, attention,
// rnn. What it reads is asked from the emitter; what follows it, the epilogue, is computed where its result is at hand:
// pointwise ops, transposes and reshapes, up to the region's outputs.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_ANCHOR_H
#define TC_LIB_CODEGEN_ANCHOR_H

#include "Common/Emitter.h"

namespace tc::codegen {

/// The anchor; null if the region has none or several.
mlir::Operation *findAnchor(kernel::RegionOp region);

/// Whether the elements of a tensor are f32.
bool isF32(mlir::Value tensor);

/// What the region computes from one result of its anchor.
class Epilogue {
public:
  /// Fails if a value that depends on `result` is neither pointwise nor moved by a bijection, or is needed at two
  /// positions at once. Without any dependent output the epilogue is empty.
  static mlir::FailureOr<Epilogue> analyze(kernel::RegionOp region, mlir::Value result);

  /// Numbers of the outputs that depend on the result.
  llvm::ArrayRef<unsigned> roots() const { return outputs; }
  /// Whether every output of `region` depends on the result.
  bool yieldsAll(kernel::RegionOp region) const { return outputs.size() == region.getNumResults(); }
  /// Computes and stores the outputs' elements that depend on `value`, the result's element at `at`. Call clearSources
  /// on the emitter when the loops around are closed.
  void store(Emitter &em, llvm::ArrayRef<Index> at, mlir::Value value) const;
  /// (input, output) pairs that may share memory: inputs that only the epilogue reads, each element just before the
  /// output's element at the same place is written.
  llvm::SmallVector<int64_t> inPlace(kernel::RegionOp region) const;

private:
  mlir::Value result;
  llvm::SmallVector<std::pair<mlir::Operation *, unsigned>> steps; // ops on the way, number of the operand on the way
  llvm::SmallVector<unsigned> outputs;
};

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
