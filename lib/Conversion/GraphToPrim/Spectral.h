//===- Spectral.h - Fourier transforms for all front ends -----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_SPECTRAL_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_SPECTRAL_H

#include "NodeContext.h"

namespace tc {

enum class Spectrum {
  Forward,
  Inverse,
  InverseOfHalf ///< to real numbers, from the first half of a spectrum that mirrors itself
};

/// What a transform of n elements is multiplied by: 1, 1 / n or 1 / sqrt(n).
enum class SpectrumScale { None, ByLength, ByRoot };

/// The transform of x [P, L, Q, 1 or 2] along L, of `length` elements, to [P, outputs, Q, 2], or [P, outputs, Q, 1] for
/// InverseOfHalf. Elements from L on are 0, those from `length` on are left out.
mlir::Value emitSpectrum(PrimBuilder &b, mlir::Value x, mlir::AffineExpr outputs, mlir::AffineExpr length,
                         Spectrum kind, SpectrumScale scale);

/// How many numbers tell the spectrum of so many real elements.
inline mlir::AffineExpr halfSpectrum(mlir::AffineExpr length) { return prim::simplifySize(length.floorDiv(2) + 1); }

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_SPECTRAL_H
