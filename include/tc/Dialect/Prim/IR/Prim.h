//===- Prim.h - the prim dialect ------------------------------------------------------------------------*- C++ -*-===//
//
// Tensor primitives (PrimOps.td) and the size expressions of their types.
//
// Size expressions, with an example. A model input x of shape [batch, 128] has the type
//   tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>>
// in a function whose prim.symbols attribute is [#prim.symbol<"batch", 0, max, 1>]. getSizes(type) gives {s0, 128};
// flattening x gives makeType(f32, {s0 * 128}). Two sizes are the same exactly when their AffineExpr pointers are, as
// makeType simplifies every expression.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_PRIM_H
#define TC_DIALECT_PRIM_IR_PRIM_H

#include "tc/Dialect/Prim/IR/PrimInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tc/Dialect/Prim/IR/PrimDialect.h.inc"
#include "tc/Dialect/Prim/IR/PrimEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Prim/IR/PrimAttrs.h.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Prim/IR/PrimOps.h.inc"

namespace tc::prim {

/// Name of the function attribute (ArrayAttr of SymbolAttr) that lists the symbols of its size expressions.
inline constexpr llvm::StringLiteral kSymbolsAttr = "prim.symbols";
/// On functions: the constant strings, by id; the first one is empty. Absent where there are none.
inline constexpr llvm::StringLiteral kStringsAttr = "prim.strings";
/// On arguments and results that are words: the type that a caller sees, such as !tc.string or !tc.seq<tensor<?xf32>>.
inline constexpr llvm::StringLiteral kValueAttr = "prim.value";
/// On arguments that seldom change (UnitAttr): what is computed from them alone may be kept from run to run.
inline constexpr llvm::StringLiteral kStaticAttr = "prim.static";

/// One size expression per dim of a ranked tensor type: constants for static dims.
llvm::SmallVector<mlir::AffineExpr> getSizes(mlir::Type type);
inline llvm::SmallVector<mlir::AffineExpr> getSizes(mlir::Value value) { return getSizes(value.getType()); }

/// The tensor type with these sizes. Expressions are simplified first; a type of constants carries no encoding.
mlir::RankedTensorType makeType(mlir::Type elementType, llvm::ArrayRef<mlir::AffineExpr> sizes);
/// The same sizes with another element type.
mlir::RankedTensorType withElementType(mlir::Type type, mlir::Type elementType);

/// Bits of an element: bool takes a byte, a complex number those of both parts, a string or handle a word.
unsigned getElementBits(mlir::Type elementType);
/// Floats of at most 8 bits and integers of 2 and 4 bits: element types that code generators see as bytes only.
bool isNarrowElement(mlir::Type elementType);
/// The type of the bytes that hold a tensor of narrow elements (prim.storage).
mlir::RankedTensorType getStorageType(mlir::Type narrow);

/// Canonical form of a size expression over any number of symbols.
mlir::AffineExpr simplifySize(mlir::AffineExpr expr);
/// The size that gives `expr` when it is multiplied by `by`, in canonical form, if there is one for all symbols'
/// values.
std::optional<mlir::AffineExpr> divideSize(mlir::AffineExpr expr, mlir::AffineExpr by);
/// Product of sizes, simplified; 1 for none.
mlir::AffineExpr product(mlir::MLIRContext *context, llvm::ArrayRef<mlir::AffineExpr> sizes);
/// The value of a constant expression.
std::optional<int64_t> getConstantSize(mlir::AffineExpr expr);
/// The value of any affine expression, of which `leaf` gives that of each dim and symbol. A division by
/// 0 is one by 1.
int64_t evaluate(mlir::AffineExpr expr, llvm::function_ref<int64_t(mlir::AffineExpr)> leaf);
/// A map without dims whose results are `exprs`, as the ops with size expressions take it.
mlir::AffineMap makeSizeMap(mlir::MLIRContext *context, llvm::ArrayRef<mlir::AffineExpr> exprs);
/// Whether all sizes of both types are provably equal.
inline bool sameSizes(mlir::Type a, mlir::Type b) { return getSizes(a) == getSizes(b); }
/// What `value` is a reshape of, or a reshape of one; else `value`.
mlir::Value skipReshapes(mlir::Value value);
/// Positions of the symbols that `op` defines by data: of prim.bind_symbol, prim.if and prim.while.
llvm::SmallVector<int64_t> getBoundSymbols(mlir::Operation *op);
/// Where `op`, a prim.if or prim.while, takes the size of its symbol from: (number of the result, dim). Any one of
/// several.
std::pair<unsigned, unsigned> getBoundDim(mlir::Operation *op, int64_t symbol);
/// Inclusive bounds of a size expression given the symbols of `func` (nullopt: none known).
std::pair<int64_t, int64_t> getSizeBounds(mlir::AffineExpr expr, mlir::ArrayAttr symbols);

/// 1 where `atLeastZero` is so, else 0; its values are smaller than 2^62. It is written (x <= 5) for 5 - x.
mlir::AffineExpr makeIndicator(mlir::AffineExpr atLeastZero);

/// "x <= 5" for 5 - x, which is at least 0, or "x = 5", where it is 0; with the names of `symbols`.
std::string formatCondition(mlir::AffineExpr difference, bool isEquality, mlir::ArrayAttr symbols);
/// `expr` as a user reads it, with the names of `symbols` (null: s0, s1, ...): "2 * batch + 1".
std::string formatSize(mlir::AffineExpr expr, mlir::ArrayAttr symbols);

/// Whether `op` only gives its operand's memory another type.
inline bool isView(mlir::Operation *op) { return mlir::isa_and_nonnull<ReshapeOp, StorageOp>(op); }
/// The value whose memory `value` is, through any number of views.
inline mlir::Value getViewSource(mlir::Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// The role of an op of any dialect: what is no primitive stays in the function.
inline Role getRole(mlir::Operation *op) {
  auto primitive = mlir::dyn_cast<FusionOpInterface>(op);
  return primitive ? primitive.getRole() : Role::Function;
}
/// Which elements of its first operand the op, of any dialect, reads.
inline Access getAccess(mlir::Operation *op) {
  auto primitive = mlir::dyn_cast<FusionOpInterface>(op);
  return primitive && op->getNumOperands() ? primitive.getAccess(0) : Access::Aligned;
}
/// Whether `op` moves elements, and no further than `most`; or is a constant.
inline bool isMovedBy(mlir::Operation *op, Addressing most) {
  return mlir::isa<ConstantOp>(op) ||
         (getRole(op) == Role::Movement && mlir::cast<FusionOpInterface>(op).getAddressing() <= most);
}
/// Whether an element of the pointwise op is a function of the operands that takes tens of instructions.
inline bool isTranscendental(mlir::Operation *op) { return op->hasTrait<TranscendentalTrait>(); }

/// Whether the size is the constant 1.
inline bool isOne(mlir::AffineExpr size) { return getConstantSize(size) == std::optional<int64_t>(1); }
/// The sizes that are not the constant 1: what spaces are compared by.
using Space = llvm::SmallVector<mlir::AffineExpr>;
Space getSpace(mlir::Type type);
inline Space getSpace(mlir::Value value) { return getSpace(value.getType()); }

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_IR_PRIM_H
