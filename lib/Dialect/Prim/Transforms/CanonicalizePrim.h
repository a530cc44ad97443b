//===- CanonicalizePrim.h - the patterns of tc-canonicalize-prim ----------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_CANONICALIZEPRIM_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_CANONICALIZEPRIM_H

#include "tc/Dialect/Prim/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"

namespace tc::prim {

/// Identities of arithmetic that lose nothing, powers by small constants, gathers whose indices are even.
void populateArithmeticPatterns(mlir::RewritePatternSet &patterns);
/// Broadcasts without unit dims, reshapes around transposes of unit dims, scatters of slices, convolutions without the
/// taps that meet nothing but padding.
void populateShapePatterns(mlir::RewritePatternSet &patterns);
/// Transposes towards the results, where they cancel.
void populateSinkTransposes(mlir::RewritePatternSet &patterns);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_CANONICALIZEPRIM_H
