//===- UnfusedCost.h - what a region's nodes would take as kernels of their own -------------------------*- C++ -*-===//
//
// For reports alone: tc-compile --explain sums it up, and tc-bench sets it beside what was measured. Example: matmul,
// add and relu of 64 rows of 100 in one region are three launches unfused, and move two values of 25.6 kB twice more.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_UNFUSEDCOST_H
#define TC_TRANSFORMS_UNFUSEDCOST_H

#include "tc/Dialect/Kernel/IR/Kernel.h"

namespace tc {

/// On kernel.region and on the host.launch that has its cost: DictionaryAttr of `launches` (i64) and `bytes`
/// (AffineMap of one size), inputs and outputs of each node counted.
inline constexpr llvm::StringLiteral kUnfusedAttr = "unfused";

/// Bytes that a region need not move as nodes that read each other's results share it: each result would be written,
/// and read by each node behind. Constants and what only moves elements are not counted.
mlir::AffineExpr getSavedBytes(kernel::RegionOp region);
/// kUnfusedAttr of a region that has its cost. Its launches are one for each node that computes, at least one.
mlir::DictionaryAttr getUnfusedCost(kernel::RegionOp region);

} // namespace tc

#endif // TC_TRANSFORMS_UNFUSEDCOST_H
