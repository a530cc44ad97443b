//===- NarrowGemm.h - the parts of the "cpu.narrow_gemm" strategy ---------------------------------------*- C++ -*-===//
//
// NarrowGemm.cpp decides, NarrowGemmTasks.cpp emits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_NARROWGEMM_H
#define TC_LIB_CODEGEN_CPU_NARROWGEMM_H

#include "CPU/NarrowKernel.h"
#include "CPU/Patches.h"
#include "Common/Generators.h"

namespace tc::codegen::narrow_gemm {

using Schedule = kernel::CpuNarrowGemmAttr;

/// What a region's anchor computes.
struct NarrowProduct : Product {
  NarrowKind kind = kBytes;
  /// A convolution's, unless it only mixes channels.
  std::optional<Patches> patches;
  const Epilogue *epilogue = nullptr;

  /// A is a matrix in memory.
  bool isInPlace() const { return !patches && isRowMajor(*this) && inputThroughReshapes(lhs); }
  std::optional<PackedInput> packed(llvm::function_ref<bool(unsigned)> isConstant) const;
  /// Where the result's element of these positions stands.
  llvm::SmallVector<Index> place(Emitter &em, Index group, llvm::ArrayRef<Index> batchAt, llvm::ArrayRef<Index> rowAt,
                                 Index column) const;
};

/// Rows and columns of the micro-kernel that a CPU takes.
std::pair<int64_t &, int64_t &> kernelOf(Schedule::Params &params, NarrowKind kind, machine::CpuAttr cpu);
/// Between copied rows: whole vectors fit, and rows do not share the sets of the first-level cache.
inline int64_t rowBytes(const Product &p, int64_t elementBytes) { return roundUp(*p.k * elementBytes, 64) + 64; }

/// Tasks: batch elements, blocks of columns, blocks of rows.
llvm::SmallVector<mlir::AffineExpr> grid(const Product &p, Schedule schedule);

/// Code of the tasks [begin, end) of the launch that packs B, a panel each, and of the product.
void emitPacking(const NarrowProduct &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);
void emit(const NarrowProduct &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);

} // namespace tc::codegen::narrow_gemm

#endif // TC_LIB_CODEGEN_CPU_NARROWGEMM_H
