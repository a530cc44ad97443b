//===- Spectral.cpp - Fourier transforms for all front ends -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Spectral.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitSpectrum(PrimBuilder &b, Value x, AffineExpr outputs, AffineExpr length, Spectrum kind,
                       SpectrumScale scale) {
  Type type = b.elementOf(x);
  Sizes sizes = getSizes(x);
  x = b.convert(x, b.accumulatorOf(type));
  if (!isOne(sizes[3])) { // a part that is absent is 0
    sizes[3] = b.size(2);
    x = b.pad(x, b.scalar(b.elementOf(x), 0), Sizes(4, b.size(0)), sizes);
  }
  if (scale != SpectrumScale::None) {
    Value count = b.convert(b.sizeValue(length), b.elementOf(x));
    Value factor = scale == SpectrumScale::ByRoot ? b.unary<RsqrtOp>(count) : b.unary<ReciprocalOp>(count);
    x = b.mul(x, b.broadcastTo(factor, sizes));
  }
  const bool isHalf = kind == Spectrum::InverseOfHalf;
  Sizes result{sizes[0], outputs, sizes[2], b.size(isHalf ? 1 : 2)};
  Value y = FftOp::create(b, makeType(b.elementOf(x), result), x, makeSizeMap(b.getContext(), {length}),
                          kind != Spectrum::Forward, isHalf);
  return b.convert(y, type);
}
