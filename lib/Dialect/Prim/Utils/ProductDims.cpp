//===- ProductDims.cpp - dims of the operands of products ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/ProductDims.h"

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

using namespace mlir;
using namespace tc::prim;

SmallVector<int64_t> tc::prim::freeDims(Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim : llvm::seq<int64_t>(0, PrimBuilder::rankOf(operand)))
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

SmallVector<int64_t> tc::prim::memoryOrder(Value operand) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(operand)));
  auto transpose = operand.getDefiningOp<TransposeOp>();
  if (!transpose)
    return order;
  // Dim i of the result is dim permutation[i] of the operand.
  const SmallVector<int64_t> inner = memoryOrder(transpose.getOperand());
  for (auto [dim, from] : llvm::zip(order, inner))
    dim = std::distance(transpose.getPermutation().begin(), llvm::find(transpose.getPermutation(), from));
  return order;
}
