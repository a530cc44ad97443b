//===- Layouts.cpp - how the elements of a graph's tensors lay in memory ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Graph/IR/Layouts.h"

using namespace mlir;
using namespace tc;

bool graph::isRowMajor(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (llvm::is_contained(sizes, 0))
    return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0; expected *= sizes[i])
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
  return true;
}

ArrayAttr graph::makeLayoutEntry(Builder b, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  return b.getArrayAttr({b.getDenseI64ArrayAttr(sizes), b.getDenseI64ArrayAttr(strides)});
}
