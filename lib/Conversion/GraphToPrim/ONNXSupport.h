//===- ONNXSupport.h - what the ONNX handlers share -----------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXSUPPORT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXSUPPORT_H

#include "NodeContext.h"
#include "Windows.h"
#include "tc/Dialect/Prim/Utils/ChannelOrder.h"

namespace tc {

/// The element type of a TensorProto.DataType number; null for strings and what tc does not compute with.
mlir::Type elementTypeOfONNX(mlir::MLIRContext *context, int64_t dataType);
/// The element type that attribute `name` tells (number, or name before opset 6); `defaultType` where it is absent.
mlir::FailureOr<mlir::Type> readElementType(NodeContext &ctx, llvm::StringRef name, int64_t defaultType,
                                            bool orString = false, bool orComplex = false);

/// `size`, or 0 where it is negative.
mlir::AffineExpr atLeast0(PrimBuilder &b, mlir::AffineExpr size);

/// `spatial` are the input's spatial sizes, `kernel` the window.
mlir::FailureOr<Window> readWindow(NodeContext &ctx, SizesRef kernel, SizesRef spatial);
/// The spatial sizes of the filter `w` [O, C, ..]; those that are not known are what kernel_shape says, if it is there,
/// and `w` has them then.
mlir::FailureOr<Sizes> readKernel(NodeContext &ctx, mlir::Value &w);

/// `x` as elements of type `to`, as Cast says: with `saturate`, floats beyond the range of an 8-bit float become its
/// largest number; `roundMode` (up, down, nearest) is for f8E8M0FNU.
mlir::Value castElements(PrimBuilder &b, mlir::Value x, mlir::Type to, bool saturate = true,
                         llvm::StringRef roundMode = "up");

/// What is inside of an optional (or of an element of a sequence), which must be there: a tensor, whose sizes the run
/// tells where `inside` does not, or the handle of a sequence or map.
mlir::FailureOr<mlir::Value> takeOut(NodeContext &ctx, mlir::Value handle, mlir::Type inside);

/// Cast where one of the element types is string.
mlir::FailureOr<mlir::Value> castStrings(NodeContext &ctx, mlir::Value x, mlir::Type to);

/// What is inside of a sequence that has no elements yet, of tensors of `element`: joined with a type, it is that type.
/// An unranked tensor type stands for tensors of any rank instead.
mlir::Type insideOfEmpty(mlir::Type element);
bool isInsideOfEmpty(mlir::Type inside);
/// `inside`, or tensors of any rank where it is that of an empty sequence.
mlir::Type forgetEmpty(mlir::Type inside);

/// The element type of a value that is `x` or `y`: equal ones, or sequences and optionals of tensors whose sizes and
/// ranks differ, or where one is of an empty sequence. Null where they do not fit.
mlir::Type joinElements(mlir::Type x, mlir::Type y);

/// The i32 position in `keys` [count], which rise, of the key that equals each element of x, by bisection; any
/// position, and false in `isKnown`, where none does. `count` > 0.
mlir::Value searchKeys(PrimBuilder &b, mlir::Value x, mlir::Value keys, int64_t count, mlir::Value &isKnown);

/// Complex rows `updates` [U, K] combined by product, maximum or minimum with those of `source` [N, K] that `at` [U]
/// names (i64), one after the other.
mlir::Value emitComplexScatter(NodeContext &ctx, prim::ReduceKind kind, mlir::Value source, mlir::Value at,
                               mlir::Value updates);

/// The numbers `at` as i64 indices into a dim of `size`, the nearest one inside for those outside.
mlir::Value emitClampedIndex(PrimBuilder &b, mlir::Value at, mlir::AffineExpr size);
/// Cubic convolution's weight at `distance` >= 0: in [0, 1] with `inner`, else in [1, 2]. Source: Keys, "Cubic
/// convolution interpolation for digital image processing", with the coefficient `a`.
mlir::Value emitCubicWeight(PrimBuilder &b, mlir::Value distance, double a, bool inner);

/// round(q) + zeroPoint, saturated to the integer type `to`, or to `range` within it. `zeroPoint`, of q's sizes, may be
/// null.
mlir::Value saturateTo(PrimBuilder &b, mlir::Value q, mlir::Value zeroPoint, mlir::Type to,
                       std::optional<std::pair<double, double>> range = {});
/// x - zeroPoint: exact in i32 for integers. `zeroPoint`, of x's sizes, may be null.
mlir::Value subtractZeroPoint(PrimBuilder &b, mlir::Value x, mlir::Value zeroPoint);

/// The product of quantised matrices as floats: (lhs - lhsZero)(rhs - rhsZero) lhsScale rhsScale + bias. Parameters of
/// the left side are one number, those of the right one or one for each column; zero points and `bias` may be null.
mlir::FailureOr<mlir::Value> emitScaledProduct(NodeContext &ctx, mlir::Value lhs, mlir::Value lhsScale,
                                               mlir::Value lhsZero, mlir::Value rhs, mlir::Value rhsScale,
                                               mlir::Value rhsZero, mlir::Value bias);
/// The convolution [N, C, ..] x [O, C / group, ..] that the node's attributes say; `bias` [O] may be null.
mlir::FailureOr<mlir::Value> emitConv(NodeContext &ctx, mlir::Value x, mlir::Value w, mlir::Value bias);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXSUPPORT_H
