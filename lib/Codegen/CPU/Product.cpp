//===- Product.cpp - how the operands of matrix products are read and packed --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Product.h"

#include "Common/Anchor.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

Value tc::codegen::batchStart(Emitter &em, const LinesInPlace &lines, ArrayRef<Index> batchAt, Type element) {
  Value start = em.input(lines.input);
  for (auto [position, stride] : llvm::zip_equal(batchAt, lines.batchStrides))
    start = offsetBy(em, start, em.mul(position.base, em.size(stride)), element);
  return start;
}

std::optional<PackedInput> tc::codegen::packedRhs(const Product &p, llvm::function_ref<bool(unsigned)> isConstant,
                                                  int64_t neighbours, int64_t steps) {
  MLIRContext *context = p.lhs.getContext();
  auto batchCount = prim::getConstantSize(p.B);
  if (!p.n || !p.k || !batchCount)
    return std::nullopt;
  unsigned dim = 0;
  bool batched = *batchCount != 1;
  AffineExpr zero = getAffineConstantExpr(0, context);
  AffineExpr b = batched ? getAffineDimExpr(dim++, context) : zero;
  AffineExpr panel = getAffineDimExpr(dim++, context), k = getAffineDimExpr(dim++, context);
  AffineExpr n = panel * kPanel + getAffineDimExpr(dim++, context);
  if (neighbours > 1)
    k = k * neighbours + getAffineDimExpr(dim++, context);
  SmallVector<AffineExpr> at = Product::place<AffineExpr>(
      p.rhsDims, delinearizeExpr(b, p.batch), {}, delinearizeExpr(n, p.columns), delinearizeExpr(k, p.depth), zero);
  std::optional<ConstantView> view = traceConstant(p.rhs, isConstant, at, /*widens=*/neighbours == 1);
  if (!view)
    return std::nullopt;
  SmallVector<int64_t> shape;
  if (batched)
    shape.push_back(*batchCount);
  shape.append({ceilDiv(*p.n, kPanel), std::max(steps, ceilDiv(*p.k, neighbours)), kPanel});
  if (neighbours > 1)
    shape.push_back(neighbours);
  return PackedInput{view->input, AffineMap::get(dim, 0, view->at, context),
                     RankedTensorType::get(shape, view->element)};
}
