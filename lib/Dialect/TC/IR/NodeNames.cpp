//===- NodeNames.cpp - which of the model's nodes an operation is of ----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/TC/IR/NodeNames.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

SmallVector<StringRef> tc::base::getNodeNames(ArrayRef<Location> locs) {
  llvm::SmallSetVector<StringRef, 4> names;
  for (Location loc : locs)
    loc->walk([&](Location inner) {
      auto name = dyn_cast<NameLoc>(inner);
      if (name && !name.getName().empty())
        names.insert(name.getName().strref());
      return name ? WalkResult::skip() : WalkResult::advance();
    });
  return names.takeVector();
}
