//===- IntValues.h - integer tensors as size expressions ------------------------------------------------*- C++ -*-===//
//
// Shape arithmetic of a model runs on small integer tensors: Shape, Gather, Concat, Mul, ... This evaluates such chains
// of prim ops to one expression per element over the function's symbols. Example: concat(gather(sizes (s0, s1, 768),
// 0), constant 12) gives {s0, 12}. An element that can't be expressed (it depends on data, or on a comparison that the
// symbols' ranges leave open) makes the whole tensor unknown.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_INTVALUES_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_INTVALUES_H

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

namespace tc {

/// How many numbers, symbols and operations `expr` has.
int64_t countTerms(mlir::AffineExpr expr);

class IntValues {
public:
  explicit IntValues(SymbolTableBuilder &symbols) : symbols(symbols) {}
  /// Row-major elements of an integer or bool tensor of static shape and at most kMaxElements, or nullopt.
  std::optional<Sizes> get(mlir::Value value);
  static constexpr int64_t kMaxElements = 256;
  /// The one element of a tensor of floats towards 0 where it is known, as sizes are computed by way of: 12 * 0.5.
  std::optional<int64_t> getTruncated(mlir::Value value);
  /// From now on the one element of `value`, which depends on data, is `symbol`, which the program binds to it.
  void remember(mlir::Value value, mlir::AffineExpr symbol) { cache[value] = Sizes{symbol}; }
  /// The number of elements of a tensor, as the shortest of what it and the values say that it is made of by ops that
  /// keep the number: of x [n, m] reshaped to [-1, 24] and then to [-1, 16] it is n * m, and not 24 times a quotient.
  mlir::AffineExpr countElements(mlir::Value value);

private:
  std::optional<Sizes> compute(mlir::Value value);
  std::optional<llvm::APFloat> getFloat(mlir::Value value, int depth = 0);
  std::optional<llvm::APFloat> computeFloat(mlir::Value value, int depth);
  std::optional<mlir::AffineExpr> binary(mlir::Operation *op, mlir::AffineExpr a, mlir::AffineExpr b);
  bool fit(mlir::AffineExpr &expr, mlir::Type elementType);
  std::optional<bool> compare(prim::CompareKind kind, mlir::AffineExpr a, mlir::AffineExpr b);

  SymbolTableBuilder &symbols;
  llvm::DenseMap<mlir::Value, std::optional<Sizes>> cache;
  llvm::DenseMap<mlir::Value, std::optional<llvm::APFloat>> floats;
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> counts;
};

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_INTVALUES_H
