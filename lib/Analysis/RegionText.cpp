//===- RegionText.cpp - regions as text, by which equal ones are known --------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/RegionText.h"
#include "tc/Dialect/Prim/IR/Prim.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace tc;

std::string tc::printRegion(kernel::RegionOp region, PrintRegionOp printOp) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (Type type : region.getOperandTypes())
    os << type << ',';
  OpPrintingFlags flags;
  flags.useLocalScope().elideLargeElementsAttrs(1 << 20);
  for (Operation &op : region.getBody().front()) {
    if (!printOp || !printOp(&op, os, flags))
      op.print(os, flags);
    os << '\n';
  }
  return text;
}

/// Where the '>' stands that ends a map; the one of "->" does not.
static size_t endOfMap(StringRef map) {
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] == '>' && (i == 0 || map[i - 1] != '-'))
      return i;
  return map.size();
}

SmallVector<int64_t> tc::numberSymbols(StringRef text, llvm::raw_ostream &os) {
  SmallVector<int64_t> order;
  llvm::SmallDenseMap<int64_t, int64_t> numbers;
  constexpr StringLiteral kMap = "affine_map<()";
  while (true) {
    auto [before, rest] = text.split(kMap);
    os << before;
    if (before.size() == text.size())
      return order;
    os << kMap;
    if (rest.consume_front("[")) // lists the symbols, used or not
      rest = rest.drop_front(rest.find(']') + 1);
    StringRef map = rest.take_front(endOfMap(rest));
    text = rest.drop_front(map.size());
    while (!map.empty()) {
      const size_t at = std::min(map.find('s'), map.size());
      os << map.take_front(at);
      map = map.drop_front(at);
      int64_t symbol;
      if (!map.consume_front("s"))
        continue;
      if (map.consumeInteger(10, symbol)) {
        os << 's';
        continue;
      }
      auto [entry, isNew] = numbers.try_emplace(symbol, order.size());
      if (isNew)
        order.push_back(symbol);
      os << 's' << entry->second;
    }
  }
}

SmallVector<int64_t> tc::getSymbols(kernel::RegionOp region) {
  llvm::SmallDenseSet<int64_t> found;
  auto addExpr = [&](AffineExpr expr) {
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        found.insert(symbol.getPosition());
    });
  };
  auto addType = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (AffineExpr expr : prim::getSizes(tensor))
        addExpr(expr);
  };
  for (Type type : region.getOperandTypes())
    addType(type);
  region.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      addType(type);
    for (NamedAttribute attr : op->getAttrs())
      if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
        for (AffineExpr expr : map.getValue().getResults())
          addExpr(expr);
  });
  SmallVector<int64_t> sorted(found.begin(), found.end());
  llvm::sort(sorted);
  return sorted;
}
