//===- SymbolNumbers.cpp - texts that do not depend on the numbers of symbols -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/SymbolNumbers.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;

/// Where the '>' stands that ends a map; the one of "->" does not.
static size_t endOfMap(StringRef map) {
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] == '>' && (i == 0 || map[i - 1] != '-'))
      return i;
  return map.size();
}

SmallVector<int64_t> tc::numberSymbols(StringRef text, raw_ostream &os) {
  SmallVector<int64_t> order;
  SmallDenseMap<int64_t, int64_t> numbers;
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
