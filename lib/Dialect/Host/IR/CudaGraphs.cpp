//===- CudaGraphs.cpp - which launches a CUDA graph can hold ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/CudaGraphs.h"

using namespace mlir;
using namespace tc;

std::optional<int64_t> host::getKnownInteger(Value value) {
  value = prim::getViewSource(value);
  Attribute attr;
  if (auto splat = value.getDefiningOp<prim::SplatOp>())
    attr = splat.getValue();
  else if (auto constant = value.getDefiningOp<prim::ConstantOp>())
    if (auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue()); dense && dense.isSplat())
      attr = dense.getSplatValue<Attribute>();
  auto number = dyn_cast_or_null<IntegerAttr>(attr);
  if (!number || number.getValue().getBitWidth() > 64)
    return std::nullopt;
  return number.getType().isInteger(1) ? int64_t(number.getValue().getZExtValue()) : number.getValue().getSExtValue();
}

bool host::isCounted(prim::WhileOp loop) {
  const Value trips = loop.getMaxTrips(), again = loop.getBody().front().getTerminator()->getOperand(0);
  return (getKnownInteger(trips) || prim::getViewSource(trips).getDefiningOp<prim::SizesOp>()) &&
         getKnownInteger(loop.getCondition()) && getKnownInteger(again);
}

prim::ConstantOp host::getIterationNumbers(prim::WhileOp loop) {
  auto numbers = dyn_cast<prim::ConstantOp>(loop.getBody().front().front());
  return numbers && numbers->hasAttr(kIterationNumbersAttr) ? numbers : nullptr;
}

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
  for (Operation *parent = launch->getParentOp(); parent != function; parent = parent->getParentOp()) {
    if (choosesBySizes(parent))
      continue;
    if (auto loop = dyn_cast<prim::WhileOp>(parent); !loop || !isCounted(loop))
      return "in a branch, or in a loop that reads its condition";
  }
  auto grid = launch.getDeviceAttr().getAs<AffineMapAttr>("grid");
  for (AffineExpr size : grid ? grid.getValue().getResults() : ArrayRef<AffineExpr>())
    if (llvm::any_of(getSymbols(size), [&](unsigned symbol) { return symbolsOfData.contains(symbol); }))
      return "of a size that depends on data";
  return "";
}
