//===- ListedSizes.cpp - sizes that have code of their own --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/ListedSizes.h"

#include "tc/Dialect/Prim/IR/Prim.h"

#include <map>
#include <set>

using namespace mlir;
using namespace tc;

std::vector<llvm::StringMap<int64_t>> prim::getSizesOfCodes(func::FuncOp function) {
  std::vector<llvm::StringMap<int64_t>> all(1);
  auto codes = function->getAttrOfType<ArrayAttr>(kSpecializedAttr);
  if (!codes)
    return all;
  auto symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr).getAsRange<SymbolAttr>();
  auto symbolOf = [&](int64_t number) { return *std::next(symbols.begin(), number); };
  std::map<int64_t, std::set<int64_t>> listed;
  std::map<int64_t, int64_t> before; // the bucket before, of each symbol
  for (auto code : codes.getAsRange<DenseI64ArrayAttr>()) {
    all.emplace_back();
    for (int64_t i = 0; i + 2 < code.size(); i += 3) {
      const SymbolAttr symbol = symbolOf(code[i]);
      int64_t size = code[i + 1];
      if (code[i + 2] == 0) {
        listed[code[i]].insert(size);
      } else {
        auto [known, isFirst] = before.try_emplace(code[i], -1);
        if (size < known->second)
          known->second = -1; // from the first one on again, with another size of another symbol
        if (size - 1 > known->second && size - 1 >= symbol.getMin() && size > 1)
          --size;
        known->second = std::max(known->second, code[i + 1]);
      }
      all.back()[symbol.getName()] = size;
    }
  }
  for (const auto &[number, sizes] : listed) {
    const SymbolAttr symbol = symbolOf(number);
    // Sizes of 0 and 1 often mean something else.
    for (int64_t size : {std::max<int64_t>(2, symbol.getMin()), symbol.getMin()}) {
      while (sizes.count(size) || size % symbol.getDivisor() != 0)
        ++size;
      if (size > symbol.getMax())
        continue;
      all.front()[symbol.getName()] = size;
      break;
    }
  }
  return all;
}
