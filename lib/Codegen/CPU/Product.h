//===- Product.h - how the operands of matrix products are read and packed ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_PRODUCT_H
#define TC_LIB_CODEGEN_CPU_PRODUCT_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"
#include "tc/Analysis/Access.h"

namespace tc::codegen {

/// Panels of all columns.
inline mlir::AffineExpr panelsOf(const Product &p) { return prim::simplifySize(p.N.ceilDiv(kPanel)); }
/// Distance of two panels packed at run time: whole blocks of 16 steps are written, from each step on at which the last
/// dim of K begins.
inline mlir::AffineExpr runtimePanelFloats(const Product &p) {
  return prim::simplifySize((p.depth.size() > 1 ? p.K + 15 : p.K).ceilDiv(16) * (16 * kPanel));
}

/// Address of an operand's first line of a batch element; `element`: of the operand, null: f32.
mlir::Value batchStart(Emitter &em, const LinesInPlace &lines, llvm::ArrayRef<Index> batchAt, mlir::Type element = {});

/// The packed form of a constant B: [batch][panel][k][16], without the batch if it is 1, of f16 or bf16 if that is what
/// B is widened from; with `neighbours` > 1 steps of K side by side [batch][panel][k / neighbours][16][neighbours], at
/// least `steps` of k / neighbours.
std::optional<PackedInput> packedRhs(const Product &p, llvm::function_ref<bool(unsigned)> isConstant,
                                     int64_t neighbours = 1, int64_t steps = 0);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_PRODUCT_H
