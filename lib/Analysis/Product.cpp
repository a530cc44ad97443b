//===- Product.cpp - matrix products in one form ------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/Product.h"

#include "tc/Analysis/Convolution.h"

using namespace mlir;
using namespace tc;

std::optional<Product> tc::asProduct(Operation *anchor) {
  Product p;
  if (auto dot = dyn_cast<prim::DotGeneralOp>(anchor)) {
    p.lhs = dot.getLhs();
    p.rhs = dot.getRhs();
    p.result = dot.getResult();
    auto describe = [](Value tensor, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract, DimRef::Kind freeKind,
                       SmallVector<AffineExpr> &freeSizes) {
      SmallVector<DimRef> dims;
      for (auto [i, size] : llvm::enumerate(prim::getSizes(tensor))) {
        const int64_t dim = i;
        if (const auto *found = llvm::find(batch, dim); found != batch.end()) {
          dims.push_back({DimRef::Batch, unsigned(found - batch.begin())});
        } else if (const auto *found = llvm::find(contract, dim); found != contract.end()) {
          dims.push_back({DimRef::Depth, unsigned(found - contract.begin())});
        } else {
          dims.push_back({freeKind, unsigned(freeSizes.size())});
          freeSizes.push_back(size);
        }
      }
      return dims;
    };
    p.lhsDims = describe(dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract(), DimRef::Row, p.rows);
    p.rhsDims = describe(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract(), DimRef::Column, p.columns);
    auto sizes = prim::getSizes(dot.getLhs());
    for (int64_t dim : dot.getLhsBatch())
      p.batch.push_back(sizes[dim]);
    for (int64_t dim : dot.getLhsContract())
      p.depth.push_back(sizes[dim]);
  } else if (auto conv = dyn_cast<prim::ConvOp>(anchor)) {
    auto filter = prim::getSizes(conv.getFilter());
    for (AffineExpr size : ArrayRef(filter).drop_back(2))
      if (prim::getConstantSize(size) != 1)
        return std::nullopt;
    if (conv.getGroups() != 1 || !allEqual(conv.getStrides(), 1) || !allEqual(conv.getPadLow(), 0) ||
        !allEqual(conv.getPadHigh(), 0))
      return std::nullopt;
    p.lhs = conv.getInput();
    p.rhs = conv.getFilter();
    p.result = conv.getResult();
    auto input = prim::getSizes(conv.getInput());
    p.rows.assign(input.begin(), input.end() - 1);
    p.depth = {input.back()};
    p.columns = {filter.back()};
    for (unsigned i = 0; i + 1 < input.size(); ++i)
      p.lhsDims.push_back({DimRef::Row, i});
    p.lhsDims.push_back({DimRef::Depth, 0});
    p.rhsDims.append(filter.size() - 2, {DimRef::Zero, 0});
    p.rhsDims.push_back({DimRef::Depth, 0});
    p.rhsDims.push_back({DimRef::Column, 0});
  } else {
    return std::nullopt;
  }
  p.finish(anchor->getContext());
  return p;
}

bool tc::isRowMajor(const Product &p) {
  SmallVector<DimRef> expected;
  for (unsigned i = 0; i < p.batch.size(); ++i)
    expected.push_back({DimRef::Batch, i});
  for (unsigned i = 0; i < p.rows.size(); ++i)
    expected.push_back({DimRef::Row, i});
  for (unsigned i = 0; i < p.depth.size(); ++i)
    expected.push_back({DimRef::Depth, i});
  return llvm::equal(expected, p.lhsDims, [](DimRef a, DimRef b) { return a.kind == b.kind && a.index == b.index; });
}
