//===- Indices.h - what is known of a gather's indices before the run -----------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_INDICES_H
#define TC_LIB_CODEGEN_INDICES_H

#include "tc/Dialect/Kernel/IR/Kernel.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace tc::codegen {

/// The elements of `indices`, integers of the region or one of its inputs; null: only the run knows them.
mlir::DenseIntElementsAttr findConstantIndices(kernel::RegionOp region, mlir::Value indices);

/// Indices that run evenly along each dim of their tensor: first + i * steps[0] + j * steps[1] + .. at (i, j, ..).
struct EvenIndices {
  int64_t first = 0;
  llvm::SmallVector<int64_t> steps;
};
/// None: `indices` do not run evenly, or not all of them are positions of a dim of `size` elements. Negative ones count
/// from its end.
std::optional<EvenIndices> findEvenIndices(mlir::DenseIntElementsAttr indices, int64_t size);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_INDICES_H
