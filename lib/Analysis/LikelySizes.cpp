//===- LikelySizes.cpp - what to plan for where only the run knows a size ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;

static prim::SymbolAttr lookup(AffineSymbolExpr symbol, ArrayAttr symbols) {
  return symbols && symbol.getPosition() < symbols.size() ? dyn_cast<prim::SymbolAttr>(symbols[symbol.getPosition()])
                                                          : prim::SymbolAttr();
}

/// Of a function for which sizes are assumed: they.
static constexpr llvm::StringLiteral kAssumedSizesAttr = "tc.assumed_sizes";

/// The function with symbols that `op` is or is in; null: none.
static Operation *functionAround(Operation *op) {
  while (op && !op->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr))
    op = op->getParentOp();
  return op;
}

/// What is assumed of `size` in the function around `op`.
static std::optional<int64_t> findAssumed(AffineExpr size, Operation *op) {
  Operation *function = functionAround(op);
  auto assumed = function ? function->getAttrOfType<DenseI64ArrayAttr>(kAssumedSizesAttr) : DenseI64ArrayAttr();
  return assumed ? std::optional(evaluateAt(size, assumed)) : std::nullopt;
}

static ArrayAttr symbolsAround(Operation *op) {
  Operation *function = functionAround(op);
  return function ? function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr) : ArrayAttr();
}

/// Whether more is known of a symbol in `size` than that it is a size.
static bool hasRange(AffineExpr size, ArrayAttr symbols) {
  bool found = false;
  size.walk([&](AffineExpr part) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      if (prim::SymbolAttr attr = lookup(symbol, symbols))
        found |= attr.getMin() > 1 || attr.getMax() < INT64_MAX || attr.getDivisor() > 1;
  });
  return found;
}

/// `usual`, or what of the range is near it.
static int64_t moveInto(int64_t usual, int64_t least, int64_t most) {
  if (usual >= least && usual <= most)
    return usual;
  if (usual < least) {
    const uint64_t power = llvm::PowerOf2Ceil(uint64_t(least));
    return power <= uint64_t(most) ? int64_t(power) : least;
  }
  const int64_t power = most > 0 ? int64_t(llvm::bit_floor(uint64_t(most))) : 0;
  return power >= least ? power : most;
}

/// The multiple of `divisor` that is nearest to `size`, of equally near ones the larger; `size` where the range has
/// none but 0.
static int64_t toMultiple(int64_t size, int64_t divisor, int64_t least, int64_t most) {
  const int64_t below = size / divisor * divisor;
  if (below == size)
    return size;
  const bool hasBelow = below > 0 && below >= least, hasAbove = below <= most - divisor;
  if (hasBelow && (!hasAbove || size - below < below + divisor - size))
    return below;
  return hasAbove ? below + divisor : size;
}

AssumedSizes::AssumedSizes(Operation *function, DenseI64ArrayAttr sizes) : function(function) {
  function->setAttr(kAssumedSizesAttr, sizes);
}
AssumedSizes::~AssumedSizes() { function->removeAttr(kAssumedSizesAttr); }

int64_t tc::evaluateAt(AffineExpr expr, ArrayRef<int64_t> sizes) {
  return prim::evaluate(expr, [&](AffineExpr symbol) {
    const size_t position = cast<AffineSymbolExpr>(symbol).getPosition();
    return position < sizes.size() ? sizes[position] : 1;
  });
}

int64_t tc::getLikelySize(AffineExpr size, ArrayAttr symbols, int64_t usual) {
  if (const std::optional<int64_t> constant = prim::getConstantSize(size))
    return *constant;
  if (!hasRange(size, symbols))
    return usual;
  const auto [least, most] = prim::getSizeBounds(size, symbols);
  const int64_t likely = moveInto(usual, least, most);
  auto symbol = dyn_cast<AffineSymbolExpr>(size);
  return symbol ? toMultiple(likely, lookup(symbol, symbols).getDivisor(), least, most) : likely;
}

int64_t tc::getLikelySize(AffineExpr size, Operation *scope, int64_t usual) {
  if (const std::optional<int64_t> constant = prim::getConstantSize(size))
    return *constant;
  if (const std::optional<int64_t> assumed = findAssumed(size, scope))
    return *assumed;
  return getLikelySize(size, symbolsAround(scope), usual);
}

int64_t tc::getLargestSize(AffineExpr size, Operation *scope) {
  return prim::getSizeBounds(size, symbolsAround(scope)).second;
}

int64_t tc::evaluateLikely(AffineExpr expr, Operation *scope, int64_t usual) {
  if (const std::optional<int64_t> assumed = findAssumed(expr, scope))
    return *assumed;
  const ArrayAttr symbols = symbolsAround(scope);
  return prim::evaluate(expr, [&](AffineExpr symbol) { return getLikelySize(symbol, symbols, usual); });
}

double tc::getLikelyCount(ArrayRef<AffineExpr> sizes, Operation *scope, int64_t usual) {
  double count = 1;
  for (AffineExpr size : sizes)
    count *= double(getLikelySize(size, scope, usual));
  return count;
}

double tc::getLikelyCount(Value value) {
  return getLikelyCount(prim::getSizes(value), value.getParentRegion()->getParentOp());
}
