//===- SymbolNumbers.h - texts that do not depend on the numbers of symbols -------------------------------*- C++
//-*-===//
//
// Regions that differ in the names of their sizes alone print alike once the symbols are numbered as they come:
//
//   tensor<?xf32, #prim.dims<affine_map<()[s0, s1, s2] -> (s2)>>>     and     ...<()[s0] -> (s0)>...
//
// become one text; the list of symbols before the arrow goes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_SYMBOLNUMBERS_H
#define TC_ANALYSIS_SYMBOLNUMBERS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace tc {

/// Writes `text`, IR printed in local scope, with the symbols of its size maps numbered in the order in which they
/// come; returns their old numbers in that order.
llvm::SmallVector<int64_t> numberSymbols(llvm::StringRef text, llvm::raw_ostream &os);

} // namespace tc

#endif // TC_ANALYSIS_SYMBOLNUMBERS_H
