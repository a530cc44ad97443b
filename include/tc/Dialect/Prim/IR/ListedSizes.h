//===- ListedSizes.h - sizes that have code of their own ------------------------------------------------*- C++ -*-===//
//
// What `--dim batch=1,8,1..64` and `--dim batch=bucket:8,64` leave on a function, for tc-specialize-sizes, and what
// that leaves.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_LISTEDSIZES_H
#define TC_DIALECT_PRIM_IR_LISTEDSIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace tc::prim {

/// Sizes that are to have code of their own, a list per symbol: its number, then the sizes.
inline constexpr llvm::StringLiteral kListedSizesAttr = "prim.listed_sizes";
/// Buckets, a list per symbol in the same form, rising: sizes up to each run padded to it. The last is the symbol's
/// max.
inline constexpr llvm::StringLiteral kBucketsAttr = "prim.buckets";
/// That there is such code: for each piece, in the order in which it is chosen, its symbols, their sizes, and 1 where
/// these are buckets, else 0, in turn.
inline constexpr llvm::StringLiteral kSpecializedAttr = "prim.specialized";

/// Of a prim.if: the sizes for which its first region runs, an integer set over the function's symbols. Its condition
/// is not read then; the host needs no kernel to decide.
inline constexpr llvm::StringLiteral kWhenAttr = "prim.when";
inline mlir::IntegerSetAttr getWhen(mlir::Operation *op) { return op->getAttrOfType<mlir::IntegerSetAttr>(kWhenAttr); }

/// Sizes of symbols by name that lead to each code of a function: first those for the general one, of symbols that have
/// listed sizes (none where all that they take are listed), then those of each piece of kSpecializedAttr; of buckets
/// sizes that are padded.
std::vector<llvm::StringMap<int64_t>> getSizesOfCodes(mlir::func::FuncOp function);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_IR_LISTEDSIZES_H
