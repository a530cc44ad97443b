//===- PrimBuilder.h - short ways to write prim ---------------------------------------------------------*- C++ -*-===//
//
// An op builder with the idioms that conversions and patterns need: broadcasting elementwise ops, constants, sizes,
// reductions that keep dims. It folds nothing but reshapes and broadcasts of splats and small constants. Callers pass
// operands that fit. In a pattern: PrimBuilder b(rewriter, op) builds before `op`, with its location, and tells the
// rewriter.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_PRIMBUILDER_H
#define TC_DIALECT_PRIM_UTILS_PRIMBUILDER_H

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace tc {

using Sizes = llvm::SmallVector<mlir::AffineExpr>;
using SizesRef = llvm::ArrayRef<mlir::AffineExpr>;

/// The symbols, and the constant strings, of the function under construction.
class SymbolTableBuilder {
public:
  explicit SymbolTableBuilder(mlir::MLIRContext *context) : context(context) {}
  /// Goes on with the symbols of a function; `known` may be null.
  SymbolTableBuilder(mlir::MLIRContext *context, mlir::ArrayAttr known) : context(context) {
    if (known)
      symbols.append(known.begin(), known.end());
  }
  /// A new symbol; the name is made unique.
  mlir::AffineExpr add(llvm::StringRef name, int64_t min = 0, int64_t max = INT64_MAX, int64_t divisor = 1);
  /// Lowers the upper bound of a symbol.
  void refineMax(unsigned position, int64_t max);
  unsigned size() const { return symbols.size(); }
  mlir::ArrayAttr getAttr() const { return mlir::ArrayAttr::get(context, symbols); }
  /// The id of a constant string; 0 is the empty one.
  int64_t addString(llvm::StringRef text);
  /// By id; null where there is none but the empty one.
  mlir::ArrayAttr getStringsAttr() const;

private:
  mlir::MLIRContext *context;
  llvm::SmallVector<mlir::Attribute> symbols;
  llvm::SmallVector<mlir::Attribute> strings;
  llvm::DenseMap<mlir::Attribute, int64_t> stringIds;
};

class PrimBuilder : public mlir::ImplicitLocOpBuilder {
public:
  PrimBuilder(mlir::Location loc, mlir::MLIRContext *context, SymbolTableBuilder &symbols)
      : ImplicitLocOpBuilder(loc, context), symbols(symbols) {}
  /// Builds before `op`. New symbols can't be made.
  PrimBuilder(mlir::OpBuilder &rewriter, mlir::Operation *op)
      : ImplicitLocOpBuilder(op->getLoc(), op->getContext(), rewriter.getListener()), ownSymbols(op->getContext()),
        symbols(ownSymbols) {
    setInsertionPoint(op);
  }

  // --- types ---
  static mlir::RankedTensorType typeOf(mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()); }
  static mlir::Type elementOf(mlir::Value v) { return typeOf(v).getElementType(); }
  static int64_t rankOf(mlir::Value v) { return typeOf(v).getRank(); }
  mlir::AffineExpr size(int64_t n) { return getAffineConstantExpr(n); }
  Sizes sizes(llvm::ArrayRef<int64_t> ns);
  static bool isFloat(mlir::Value v) { return mlir::isa<mlir::FloatType>(elementOf(v)); }
  /// f32 for narrower floats, else the type itself.
  mlir::Type accumulatorOf(mlir::Type type);
  /// Inclusive bounds by the symbols' ranges.
  std::pair<int64_t, int64_t> bounds(mlir::AffineExpr expr) { return prim::getSizeBounds(expr, symbols.getAttr()); }

  // --- constants and sizes ---
  mlir::TypedAttr scalarAttr(mlir::Type elementType, double value);
  /// 0-D constant.
  mlir::Value scalar(mlir::Type elementType, double value);
  mlir::Value splat(mlir::Type elementType, SizesRef sizes, double value);
  /// A splat of the type of `v`.
  mlir::Value splatLike(mlir::Value v, double value) { return splat(elementOf(v), prim::getSizes(v), value); }
  /// 1-D i64 constant.
  mlir::Value constantI64s(llvm::ArrayRef<int64_t> values);
  /// 1-D or 0-D i64 tensor of expressions; a constant where all are.
  mlir::Value sizesValue(SizesRef exprs);
  mlir::Value sizeValue(mlir::AffineExpr expr);
  /// A fresh symbol whose value is computed from data: `value` is a tensor of one i64 element.
  mlir::AffineExpr bindSymbol(llvm::StringRef name, mlir::Value value, int64_t min = 0, int64_t max = INT64_MAX);
  /// A run where the element of `value`, an integer, is not `expected` fails with the sentence.
  void guard(mlir::Value value, int64_t expected, const llvm::Twine &message);

  // --- movement ---
  mlir::Value reshape(mlir::Value v, SizesRef sizes);
  mlir::Value transpose(mlir::Value v, llvm::ArrayRef<int64_t> permutation);
  /// Operand dim i goes to result dim dims[i].
  mlir::Value broadcastInDims(mlir::Value v, SizesRef sizes, llvm::ArrayRef<int64_t> dims);
  /// Right-aligned.
  mlir::Value broadcastTo(mlir::Value v, SizesRef sizes);
  mlir::Value slice(mlir::Value v, SizesRef starts, llvm::ArrayRef<int64_t> steps, SizesRef sizes);
  /// One index of a dim, dropped.
  mlir::Value take(mlir::Value v, int64_t axis, int64_t index);
  /// `count` elements of a dim from `start`.
  mlir::Value sliceDim(mlir::Value v, int64_t axis, mlir::AffineExpr start, mlir::AffineExpr count, int64_t step = 1);
  mlir::Value pad(mlir::Value v, mlir::Value value, SizesRef low, SizesRef sizes);
  mlir::Value concat(mlir::ValueRange inputs, int64_t axis);
  mlir::Value unsqueeze(mlir::Value v, int64_t axis);
  mlir::Value iota(mlir::Type elementType, SizesRef sizes, int64_t axis);

  // --- elementwise; operands of equal types ---
  template <typename Op> mlir::Value unary(mlir::Value v) { return Op::create(*this, v); }
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) { return Op::create(*this, a, b); }
  /// With a splat of `b`.
  template <typename Op> mlir::Value binary(mlir::Value a, double b) { return Op::create(*this, a, splatLike(a, b)); }
  mlir::Value add(mlir::Value a, mlir::Value b) { return binary<prim::AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return binary<prim::SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return binary<prim::MulOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return binary<prim::DivOp>(a, b); }
  /// 1 / `divisor` where it is exact in all float types: of a power of two that is neither large nor small.
  static std::optional<double> getExactReciprocal(double divisor);
  mlir::Value max(mlir::Value a, mlir::Value b) { return binary<prim::MaxOp>(a, b); }
  mlir::Value min(mlir::Value a, mlir::Value b) { return binary<prim::MinOp>(a, b); }
  mlir::Value compare(prim::CompareKind kind, mlir::Value a, mlir::Value b);
  mlir::Value compare(prim::CompareKind kind, mlir::Value a, double b) { return compare(kind, a, splatLike(a, b)); }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value convert(mlir::Value v, mlir::Type elementType);
  /// Bytes [.., n] as their numbers of `bits` bits [.., n * 8 / bits], from the low bits of each byte on.
  mlir::Value unpackBits(mlir::Value bytes, int64_t bits);

  // --- complex elements; they have no constants of their own ---
  static bool isComplex(mlir::Value v) { return mlir::isa<mlir::ComplexType>(getElementTypeOrSelf(v)); }
  /// A complex tensor as floats with a last dim of 2, real and imaginary part, and back.
  mlir::Value asParts(mlir::Value v);
  mlir::Value asComplex(mlir::Value parts);

  // --- words: strings and handles (prim.host_call) ---
  /// i64 words as strings or handles, and back.
  mlir::Value asWords(mlir::Value v, mlir::Type elementType);
  /// Constant strings of these sizes.
  mlir::Value strings(llvm::ArrayRef<llvm::StringRef> texts, llvm::ArrayRef<int64_t> shape);
  mlir::Value string(llvm::StringRef text) { return strings(text, {}); }
  static bool isString(mlir::Value v) { return mlir::isa<base::StringType>(elementOf(v)); }
  /// Calls a function of the runtime.
  mlir::ValueRange hostCall(llvm::StringRef callee, mlir::ValueRange operands, mlir::TypeRange results);
  /// With one result.
  mlir::Value hostCall(llvm::StringRef callee, mlir::ValueRange operands, mlir::Type elementType, SizesRef sizes);

  // --- reductions ---
  /// Drops `dims` (any order), or keeps them as 1.
  mlir::Value reduce(prim::ReduceKind kind, mlir::Value v, llvm::ArrayRef<int64_t> dims, bool keepDims = false);
  mlir::Value norm(mlir::Value v, llvm::ArrayRef<int64_t> dims, double epsilon, bool rms);
  mlir::Value mean(mlir::Value v, llvm::ArrayRef<int64_t> dims, bool keepDims = false);

private:
  SymbolTableBuilder ownSymbols{getContext()};

public:
  SymbolTableBuilder &symbols;
};

/// The value of one element of a constant splat or 0-D/1-element constant, as double.
std::optional<double> getSplatValue(mlir::Value v);

} // namespace tc

#endif // TC_DIALECT_PRIM_UTILS_PRIMBUILDER_H
