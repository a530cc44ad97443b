//===- BucketBody.h - a function's body on padded tensors -----------------------------------------------*- C++ -*-===//
//
// For `--dim s=bucket:64,128`: a copy of a body for runs with s <= 64, in which tensors have 64 elements along s. A
// value of the body has up to two forms there: its exact one, and a padded one, of which the elements whose positions
// lie within the exact sizes are the value's, and the others may be anything. Every op is copied either
//
//   - on padded operands, where each element of the exact result is then computed from the same elements as before:
//   those
//     of the padding that it would also read, in a sum or a maximum, are set to what does not count; or
//   - on exact operands, as it stood. That is right for any op, and slower: its sizes are known by the run alone.
//
// A form that is missing is made of the other by a pad or a slice. Rules for padded copies are those of `kRules` and of
// pointwise ops; an op without a rule, or whose rule declines, is copied exactly.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_BUCKETBODY_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_BUCKETBODY_H

#include "SizeSubstitution.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace tc::prim {

class BucketBody {
public:
  /// Builds at the end of `block`. `fixed`: symbols with one size; `buckets`: those with at most one.
  BucketBody(mlir::func::FuncOp function, mlir::Block &block, const SymbolSizes &fixed, const SymbolSizes &buckets);

  /// An argument of the function, or a value that stands before the body.
  void addArgument(mlir::Value value);
  void add(mlir::Operation &op);
  mlir::Value getExact(mlir::Value value);

  /// Ops that were copied exactly though their sizes vary, by what they are called in messages.
  llvm::ArrayRef<std::string> exactCopies() const { return exact_; }

  // --- for rules; values are those of the body that is copied ---
  mlir::Value getPadded(mlir::Value value);
  /// Sizes of the exact and of the padded form.
  Sizes exactSizes(mlir::Value value) const;
  Sizes paddedSizes(mlir::Value value) const;
  /// Whether the padded form is longer along `dim`.
  bool varies(mlir::Value value, int64_t dim) const;
  bool varies(mlir::Value value, llvm::ArrayRef<int64_t> dims) const {
    return llvm::any_of(dims, [&](int64_t dim) { return varies(value, dim); });
  }
  /// Whether a size mentions a symbol with buckets.
  bool isOfBuckets(mlir::AffineExpr size) const;
  /// The padded form, with `fill`, a scalar's attribute or a 0-D value, in the padding along `dims`.
  mlir::Value mask(mlir::Value value, llvm::ArrayRef<int64_t> dims, mlir::TypedAttr fill);
  mlir::Value mask(mlir::Value value, llvm::ArrayRef<int64_t> dims, mlir::Value fill);
  mlir::Value maskByZeros(mlir::Value value, llvm::ArrayRef<int64_t> dims);
  /// i1, 1-D of `to` elements: the position is less than `size`.
  mlir::Value isWithin(mlir::AffineExpr size, mlir::AffineExpr to);
  /// Copies `op` on these operands, with padded results.
  mlir::Operation *copy(mlir::Operation *op, mlir::ValueRange operands);
  /// On its operands' padded forms.
  mlir::Operation *copy(mlir::Operation *op);
  /// Another way to make the padded form of a result that varies.
  void setPadded(mlir::Value result, mlir::Value x) { forms[result].padded = x; }
  /// The padding of a padded form along `dim` is zeros.
  void setZeros(mlir::Value padded, int64_t dim) { zeros.insert({padded, dim}); }
  bool hasZeros(mlir::Value padded, int64_t dim) const { return zeros.contains({padded, dim}); }

  PrimBuilder &builder() { return b; }
  const SizeSubstitution &toExact() const { return exact; }
  const SizeSubstitution &toPadded() const { return padded; }

private:
  struct Forms {
    mlir::Value exact, padded;
  };
  mlir::RankedTensorType exactType(mlir::Value value) const;
  mlir::RankedTensorType paddedType(mlir::Value value) const;
  bool varies(mlir::Type type) const;
  bool varies(mlir::Operation &op) const;
  bool canPad(mlir::Type type) const;
  bool grows(mlir::AffineExpr size) const;
  bool pad(mlir::Operation &op);
  void copyExactly(mlir::Operation &op);
  mlir::Value select(mlir::Value value, mlir::Value x, int64_t dim, mlir::Value fill);

  mlir::ArrayAttr symbols;
  llvm::SmallDenseSet<int64_t> bucketed;
  SymbolTableBuilder symbolTable;
  PrimBuilder b;
  SizeSubstitution exact, padded;
  llvm::DenseMap<mlir::Value, Forms> forms;
  llvm::DenseMap<std::pair<mlir::AffineExpr, mlir::AffineExpr>, mlir::Value> bounds; // 1-D, by exact and padded size
  llvm::DenseSet<std::pair<mlir::Value, int64_t>> zeros;
  llvm::SmallVector<std::string> exact_;
};

/// Makes the padded results of `op`, or declines: false, and then it has built nothing that is used.
bool padByRule(BucketBody &body, mlir::Operation *op);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_BUCKETBODY_H
