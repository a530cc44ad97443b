//===- Product.h - matrix products in one form ----------------------------------------------------------*- C++ -*-===//
//
// Every product is seen as result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n].
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_PRODUCT_H
#define TC_LIB_CODEGEN_CPU_PRODUCT_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"

namespace tc::codegen {

/// Position of a tensor's dim in the canonical index spaces.
struct DimRef {
  enum Kind { Batch, Row, Column, Depth, Zero } kind;
  unsigned index = 0;
};

/// The canonical form of a matrix product.
struct Product {
  mlir::Value lhs, rhs, result;
  llvm::SmallVector<mlir::AffineExpr> batch, rows, columns, depth; // sizes
  llvm::SmallVector<DimRef> lhsDims, rhsDims;
  mlir::AffineExpr B, M, N, K;
  std::optional<int64_t> m, n, k;

  void finish(mlir::MLIRContext *context) {
    B = prim::product(context, batch);
    M = prim::product(context, rows);
    N = prim::product(context, columns);
    K = prim::product(context, depth);
    m = prim::getConstantSize(M);
    n = prim::getConstantSize(N);
    k = prim::getConstantSize(K);
  }
  mlir::Type element() const { return mlir::cast<mlir::RankedTensorType>(result.getType()).getElementType(); }
  int64_t elementBytes() const { return element().getIntOrFloatBitWidth() / 8; }
  /// What to plan for; a size that is known is itself.
  int64_t likelyRows(int64_t usual = usual::kProductRows) const { return likely(M, usual); }
  int64_t likelyColumns(int64_t usual = usual::kProductColumns) const { return likely(N, usual); }
  int64_t likelyDepth() const { return likely(K, usual::kProductDepth); }
  int64_t likelyBatch(int64_t usual = usual::kBatch) const { return likely(B, usual); }
  int64_t likely(mlir::AffineExpr size, int64_t usual) const {
    return getLikelySize(size, result.getDefiningOp(), usual);
  }
  mlir::AffineExpr panels() const { return prim::simplifySize(N.ceilDiv(kPanel)); }
  /// Distance of two panels packed at run time: whole blocks of 16 steps are written, from each step on at which the
  /// last dim of K begins.
  mlir::AffineExpr runtimePanelFloats() const {
    return prim::simplifySize((depth.size() > 1 ? K + 15 : K).ceilDiv(16) * (16 * kPanel));
  }

  template <typename T>
  static llvm::SmallVector<T> place(llvm::ArrayRef<DimRef> dims, llvm::ArrayRef<T> batch, llvm::ArrayRef<T> rows,
                                    llvm::ArrayRef<T> columns, llvm::ArrayRef<T> depth, const T &zero) {
    llvm::SmallVector<T> at;
    for (DimRef dim : dims) {
      switch (dim.kind) {
      case DimRef::Batch:
        at.push_back(batch[dim.index]);
        break;
      case DimRef::Row:
        at.push_back(rows[dim.index]);
        break;
      case DimRef::Column:
        at.push_back(columns[dim.index]);
        break;
      case DimRef::Depth:
        at.push_back(depth[dim.index]);
        break;
      case DimRef::Zero:
        at.push_back(zero);
        break;
      }
    }
    return at;
  }
};

/// dot_general, or a convolution that only mixes channels.
std::optional<Product> asProduct(mlir::Operation *anchor);
/// Whether the dims of A are batch, rows, depth in order: a row-major matrix.
bool isRowMajor(const Product &p);
/// Lines of an operand that lie in memory as they are used: rows or columns with K contiguous, or steps of K with
/// columns contiguous.
struct LinesInPlace {
  unsigned input; // of the region
  mlir::AffineExpr stride;
  llvm::SmallVector<mlir::AffineExpr> batchStrides;
};
/// The operand's lines along `inner`, its other dims but those of the batch being one after the other at one distance.
std::optional<LinesInPlace> linesInPlace(const Product &p, mlir::Value operand, DimRef::Kind inner);
/// Address of an operand's first line of a batch element; `element`: of the operand, null: f32.
mlir::Value batchStart(Emitter &em, const LinesInPlace &lines, llvm::ArrayRef<Index> batchAt, mlir::Type element = {});
/// Whether the last part of K is contiguous in the memory of B, and not the columns.
bool isDepthInnermost(const Product &p);
/// Whether rows of A are contiguous in memory, and not the last part of K.
bool isRowInnermost(const Product &p);

/// The packed form of a constant B: [batch][panel][k][16], without the batch if it is 1, of f16 or bf16 if that is what
/// B is widened from; with `neighbours` > 1 steps of K side by side [batch][panel][k / neighbours][16][neighbours], at
/// least `steps` of k / neighbours.
std::optional<PackedInput> packedRhs(const Product &p, llvm::function_ref<bool(unsigned)> isConstant,
                                     int64_t neighbours = 1, int64_t steps = 0);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_PRODUCT_H
