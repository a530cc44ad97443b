//===- Dequantised.h - tensors that are bytes less a zero point, times a scale --------------------------*- C++ -*-===//
//
// Finds x in (x - zero) * scale, and in x - zero of i32, where transposes, reshapes, slices and broadcasts may stand
// anywhere on the way: they are redone on the bytes. Tracing changes nothing in the IR; `materialise` makes the moved
// bytes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_DEQUANTISED_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_DEQUANTISED_H

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

namespace tc::prim {

/// Elements of ui8 or i8.
bool isByte(mlir::Value v);
/// Whether `v` is computed from constants alone.
bool isMadeOfConstants(mlir::Value v);

/// A scale or zero point of a tensor: one for all, or one for each index of `dim`.
struct Parameter {
  /// If known.
  std::optional<double> number;
  /// Else: a tensor of one element, or of as many as `dim` has.
  mlir::Value value;
  int64_t dim = -1;

  bool isUniform() const { return dim < 0; }
  /// 0-D or 1-D.
  mlir::Value flat(PrimBuilder &b, mlir::Type type) const;
  /// For a tensor of `sizes`.
  mlir::Value spread(PrimBuilder &b, mlir::Type type, SizesRef sizes) const;
  bool isLike(const Parameter &other) const;
};

struct Dequantised {
  /// What the moves start from, and the moves, from the result back.
  mlir::Value source;
  llvm::SmallVector<mlir::Operation *> moves;
  /// Of the moved bytes.
  Parameter zero, scale;
  mlir::Value bytes;

  bool isUniform() const { return zero.isUniform() && scale.isUniform(); }
  bool isLike(const Dequantised &other) const;
  /// Makes `bytes`.
  void materialise(PrimBuilder &b);
  /// bytes - zero in i32.
  mlir::Value centred(PrimBuilder &b) const;
  /// (bytes - zero) * scale in f32.
  mlir::Value emit(PrimBuilder &b) const;
};

/// `v` of i32 as bytes less a zero point, of which the scale is 1.
std::optional<Dequantised> traceCentred(mlir::Value v);
/// `v` of f32 as a dequantised tensor with constant scales.
std::optional<Dequantised> traceDequantised(mlir::Value v);

/// What `v` repeats; nullopt if it is not one number, or one for each index of one dim.
std::optional<Parameter> traceParameter(mlir::Value v);

/// Whether `op` is a transpose, reshape, slice or broadcast.
bool isMove(mlir::Operation *op);
/// What the moves that make `v` start from; appends them to `moves`, from the result back.
mlir::Value walkMoves(mlir::Value v, llvm::SmallVectorImpl<mlir::Operation *> &moves);
/// The parameter after `moves`, which are listed from the result back; false if its dim is lost.
bool moveParameter(Parameter &parameter, llvm::ArrayRef<mlir::Operation *> moves);
/// The move `op` on another tensor of the operand's sizes.
mlir::Value emitMove(PrimBuilder &b, mlir::Operation *op, mlir::Value v);

/// The moves, which are listed from the result back, on another tensor.
mlir::Value emitMoves(PrimBuilder &b, llvm::ArrayRef<mlir::Operation *> moves, mlir::Value v);

/// Whether f32 computes this convolution of bytes exactly: one input channel for each filter, few taps.
bool isExactDepthwise(ConvOp op);
/// It in f32: the input's bytes as they are, padded with their zero point, whose share is taken off the sums.
mlir::Value emitExactDepthwise(PrimBuilder &b, ConvOp op, const Dequantised &input, const Dequantised &filter);
/// `input` with the pads of a convolution, of its zero point, as a tensor of its own where that is needed. Afterwards
/// `low` and `high` are what the convolution is to pad with zeros.
mlir::Value emitZeroPads(PrimBuilder &b, mlir::Value input, const Parameter &zero, llvm::SmallVectorImpl<int64_t> &low,
                         llvm::SmallVectorImpl<int64_t> &high);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_DEQUANTISED_H
