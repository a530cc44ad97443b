//===- Product.h - matrix products in one form --------------------------------------------------------*- C++ -*-===//
//
// Every product is seen as result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n].
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_PRODUCT_H
#define TC_ANALYSIS_PRODUCT_H

#include "tc/Analysis/LikelySizes.h"

namespace tc {

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

} // namespace tc

#endif // TC_ANALYSIS_PRODUCT_H
