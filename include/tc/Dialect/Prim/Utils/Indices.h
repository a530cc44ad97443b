//===- Indices.h - what is known of a gather's indices before the run -----------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_INDICES_H
#define TC_DIALECT_PRIM_UTILS_INDICES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace tc::prim {

/// The elements of `indices`, integers; null: only the run knows them.
mlir::DenseIntElementsAttr getConstantIndices(mlir::Value indices);

/// Indices that run evenly along each dim of their tensor: first + i * steps[0] + j * steps[1] + .. at (i, j, ..).
struct EvenIndices {
  int64_t first = 0;
  llvm::SmallVector<int64_t> steps;
};
/// None: `indices` do not run evenly, or not all of them are positions of a dim of `size` elements. Negative ones count
/// from its end.
std::optional<EvenIndices> findEvenIndices(mlir::DenseIntElementsAttr indices, int64_t size);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_UTILS_INDICES_H
