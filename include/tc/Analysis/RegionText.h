//===- RegionText.h - regions as text, by which equal ones are known ------------------------------------*- C++ -*-===//
//
// Regions that print alike compute the same, and can share a kernel. Those that differ in the names of their sizes
// alone print alike once the symbols are numbered as they come:
//
//   tensor<?xf32, #prim.dims<affine_map<()[s0, s1, s2] -> (s2)>>>     and     ...<()[s0] -> (s0)>...
//
// become one text; the list of symbols before the arrow goes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_REGIONTEXT_H
#define TC_ANALYSIS_REGIONTEXT_H

#include "tc/Dialect/Kernel/IR/Kernel.h"

namespace tc {

/// Prints one op of a region and returns true, or leaves it to printRegion.
using PrintRegionOp = llvm::function_ref<bool(mlir::Operation *, llvm::raw_ostream &, const mlir::OpPrintingFlags &)>;

/// Types and body of a region without names and places.
std::string printRegion(kernel::RegionOp region, PrintRegionOp printOp = {});

/// Writes `text`, IR printed in local scope, with the symbols of its size maps numbered in the order in which they
/// come; returns their old numbers in that order.
llvm::SmallVector<int64_t> numberSymbols(llvm::StringRef text, llvm::raw_ostream &os);

/// The symbols that sizes anywhere in the region mention, in increasing order.
llvm::SmallVector<int64_t> getSymbols(kernel::RegionOp region);

} // namespace tc

#endif // TC_ANALYSIS_REGIONTEXT_H
