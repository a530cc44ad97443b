//===- CudaGraphs.cpp - which launches a CUDA graph can hold ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/CudaGraphs.h"

using namespace mlir;
using namespace tc;

llvm::SmallDenseSet<unsigned> host::getSymbolsOfData(Operation *function) {
  llvm::SmallDenseSet<unsigned> symbols;
  function->walk([&](Operation *op) {
    for (int64_t symbol : prim::getBoundSymbols(op))
      symbols.insert(unsigned(symbol));
  });
  return symbols;
}

StringRef host::findGraphObstacle(LaunchOp launch, Operation *function,
                                  const llvm::SmallDenseSet<unsigned> &symbolsOfData) {
  if (launch->getParentOp() != function)
    return "in a branch or loop";
  auto grid = launch.getDeviceAttr().getAs<AffineMapAttr>("grid");
  for (AffineExpr size : grid ? grid.getValue().getResults() : ArrayRef<AffineExpr>())
    if (llvm::any_of(getSymbols(size), [&](unsigned symbol) { return symbolsOfData.contains(symbol); }))
      return "of a size that depends on data";
  return "";
}
