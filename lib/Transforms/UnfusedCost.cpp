//===- UnfusedCost.cpp - what a region's nodes would take as kernels of their own ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/UnfusedCost.h"

#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/IR/Prim.h"

#include <set>

using namespace mlir;
using namespace tc;

namespace {

/// The nodes that an op is of, which other ops may share.
using Nodes = std::vector<StringRef>;
Nodes nodesOf(Operation *op) {
  const SmallVector<StringRef> names = host::getNodeNames(op->getLoc());
  return Nodes(names.begin(), names.end());
}

/// Not constants and what only moves elements, which a kernel behind reads where they are.
bool computes(Operation &op) {
  const prim::Role role = prim::getRole(&op);
  return op.getNumOperands() != 0 && role != prim::Role::Movement && role != prim::Role::Function;
}

} // namespace

AffineExpr tc::getSavedBytes(kernel::RegionOp region) {
  AffineExpr saved = getAffineConstantExpr(0, region.getContext());
  for (Operation &op : region.getBody().front().without_terminator()) {
    if (!computes(op))
      continue;
    const Nodes own = nodesOf(&op);
    for (Value result : op.getResults()) {
      std::set<Nodes> readers;
      bool isOutput = false;
      for (Operation *user : result.getUsers()) {
        isOutput |= isa<kernel::YieldOp>(user);
        if (Nodes names = nodesOf(user); !isa<kernel::YieldOp>(user) && names != own)
          readers.insert(std::move(names));
      }
      if (!readers.empty())
        saved = saved + host::getSizeBytes(result.getType()) * (int64_t(readers.size()) + !isOutput);
    }
  }
  return prim::simplifySize(saved);
}

DictionaryAttr tc::getUnfusedCost(kernel::RegionOp region) {
  std::set<Nodes> nodes;
  for (Operation &op : region.getBody().front().without_terminator())
    if (computes(op))
      nodes.insert(nodesOf(&op));
  MLIRContext *context = region.getContext();
  Builder b(context);
  const AffineExpr bytes = prim::simplifySize(region.getCostAttr().getBytesExpr() + getSavedBytes(region));
  return b.getDictionaryAttr(
      {b.getNamedAttr("bytes", AffineMapAttr::get(prim::makeSizeMap(context, {bytes}))),
       b.getNamedAttr("launches", b.getI64IntegerAttr(std::max<int64_t>(1, int64_t(nodes.size()))))});
}
