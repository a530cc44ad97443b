//===- BlockWeights.cpp - matrices of numbers of few bits as floats -----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/BlockWeights.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitBlockWeights(PrimBuilder &b, const BlockWeights &weights, AffineExpr k,
                           llvm::function_ref<Value(Value)> spread) {
  Type f32 = b.getF32Type();
  Sizes table = getSizes(weights.scales), space = table, flat = table;
  space.push_back(b.size(weights.block));
  flat[1] = simplifySize(table[1] * weights.block);
  auto cut = [&](Value v) { return b.sliceDim(v, 1, b.size(0), k); };
  auto along = [&](Value v) {
    v = b.convert(v, f32);
    return spread ? spread(v) : cut(b.reshape(b.broadcastInDims(v, space, {0, 1}), flat));
  };
  const bool isSigned = b.elementOf(weights.packed).isSignlessInteger(8);
  Value numbers = isSigned ? weights.packed : b.unpackBits(weights.packed, weights.bits);
  numbers = cut(b.convert(numbers, f32));
  Value zeros = weights.zeros;
  if (zeros && !b.isFloat(zeros))
    zeros = b.sliceDim(b.unpackBits(zeros, weights.bits), 1, b.size(0), table[1]);
  if (zeros)
    numbers = b.sub(numbers, along(zeros));
  else if (!isSigned)
    numbers = b.sub(numbers, b.splatLike(numbers, double(1 << (weights.bits - 1))));
  return b.mul(numbers, along(weights.scales));
}
