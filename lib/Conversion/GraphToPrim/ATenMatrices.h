//===- ATenMatrices.h - what ATen's handlers of matrices share ------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ATENMATRICES_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ATENMATRICES_H

#include "ATenSupport.h"

namespace tc {

/// Matrices [.., M, N] as [B, M, N].
struct Matrices {
  mlir::Value all;
  Sizes outer; ///< the dims in front
  mlir::AffineExpr rows, columns;
};

mlir::FailureOr<Matrices> toMatrices(NodeContext &ctx, mlir::Value x);
mlir::FailureOr<Matrices> readMatrices(Call &c, llvm::StringRef name);
mlir::FailureOr<Matrices> readSquare(Call &c, llvm::StringRef name);
inline mlir::AffineExpr batchOf(const Matrices &m) { return prim::getSizes(m.all)[0]; }
inline mlir::Type typeOf(PrimBuilder &b, const Matrices &m) { return b.elementOf(m.all); }

/// [B, dims..] as [outer.., dims..].
mlir::Value spreadOuter(PrimBuilder &b, mlir::Value v, const Sizes &outer);
/// Of an operator that turns its operands over before it knows their dims.
mlir::LogicalResult requireMatrices(NodeContext &ctx, mlir::ValueRange values);
/// Matrices, which the caller knows to be such, turned over.
mlir::Value turn(PrimBuilder &b, mlir::Value v);
/// min(M, N).
mlir::FailureOr<mlir::AffineExpr> shorterSide(NodeContext &ctx, const Matrices &m);

mlir::ValueRange callOf(PrimBuilder &b, llvm::StringRef function, mlir::ValueRange operands,
                        llvm::ArrayRef<std::pair<mlir::Type, Sizes>> results);
/// A run where the numbers of `info` [B] are not all 0 fails.
void guardInfo(NodeContext &ctx, mlir::Value info, const llvm::Twine &what);
mlir::Value unitMatrices(PrimBuilder &b, mlir::Type type, const Sizes &sizes);

struct Solution {
  mlir::Value x, info;
};
/// x of a x = y, [B, n, n] and [B, n, k].
Solution emitSolve(PrimBuilder &b, mlir::Value a, mlir::Value y);

/// Two values whose dims in front of the last two are broadcast together, as [B, .., ..].
struct MatrixPair {
  Matrices a, y;
  Sizes outer;
};
mlir::FailureOr<MatrixPair> broadcastOuter(NodeContext &ctx, mlir::Value a, mlir::Value y);
/// x of a x = y with a triangular `a`.
mlir::FailureOr<mlir::Value> emitTriangular(NodeContext &ctx, mlir::Value a, mlir::Value y, bool isUpper, bool isUnit);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ATENMATRICES_H
