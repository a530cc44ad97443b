//===- EmitterHelpers.h - what the parts of the emitter share ------------------------------------------*- C++ -*-===//
//
// The emitter (Emitter.h) is written in parts: basics and values, loops, positions, memory, and the families of ops.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_EMITTERHELPERS_H
#define TC_LIB_CODEGEN_EMITTERHELPERS_H

#include "Common/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tc::codegen {

inline mlir::Type elementOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
}

/// Floats that are computed in f32, and vectors of them.
inline bool isNarrowFloat(mlir::Type type) {
  auto f = mlir::dyn_cast<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
  return f && f.getWidth() < 32;
}

/// The number that `value` is, if it is a constant; `value` may be null.
inline std::optional<int64_t> constantOf(mlir::Value value) {
  mlir::IntegerAttr attr;
  if (value && mlir::matchPattern(value, mlir::m_Constant(&attr)))
    return attr.getInt();
  return std::nullopt;
}

inline bool anyLanes(llvm::ArrayRef<Index> at) {
  return llvm::any_of(at, [](const Index &index) { return !index.isUniform(); });
}

/// Of lanes at offsets that are known: the first and the last position in memory, counted from the base.
std::pair<int64_t, int64_t> boundsOf(const Index &offset, int64_t width);

/// vector<width x i1>: lane < remaining.
mlir::Value tailMask(Emitter &e, mlir::Value remaining);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_EMITTERHELPERS_H
