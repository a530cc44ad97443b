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

std::optional<LinesInPlace> tc::codegen::linesInPlace(const Product &p, Value operand, DimRef::Kind inner) {
  // An operand that is the same for all of the batch may be spread over it.
  auto broadcast = operand.getDefiningOp<prim::BroadcastOp>();
  const std::optional<unsigned> input = inputThroughReshapes(broadcast ? broadcast.getOperand() : operand);
  if (!input)
    return std::nullopt;
  MLIRContext *context = operand.getContext();
  const bool isLhs = operand == p.lhs;
  const ArrayRef<DimRef> dims = isLhs ? p.lhsDims : p.rhsDims;
  const SmallVector<AffineExpr> sizes = prim::getSizes(operand);
  auto isSpread = [&](size_t dim) { return broadcast && !llvm::is_contained(broadcast.getDims(), int64_t(dim)); };
  for (size_t dim = 0; broadcast && dim < dims.size(); ++dim) {
    const auto *kept = llvm::find(broadcast.getDims(), int64_t(dim));
    if (isSpread(dim) ? dims[dim].kind != DimRef::Batch
                      : prim::getSizes(broadcast.getOperand())[kept - broadcast.getDims().begin()] != sizes[dim])
      return std::nullopt;
  }
  const DimRef::Kind other = isLhs ? DimRef::Row : DimRef::Column;
  ArrayRef<AffineExpr> others = isLhs ? p.rows : p.columns;
  ArrayRef<AffineExpr> inners = inner == DimRef::Depth ? ArrayRef(p.depth) : others;
  ArrayRef<AffineExpr> outers = inner == DimRef::Depth ? others : ArrayRef(p.depth);
  const DimRef::Kind outer = inner == DimRef::Depth ? other : DimRef::Depth;
  const AffineExpr zero = getAffineConstantExpr(0, context);
  LinesInPlace place{*input, zero, SmallVector<AffineExpr>(p.batch.size(), zero)};
  AffineExpr stride = getAffineConstantExpr(1, context);
  size_t innerLeft = inners.size(), outerLeft = outers.size();
  bool isAmongOuter = false;
  for (size_t i = dims.size(); i-- > 0;) {
    if (isSpread(i))
      continue;
    const DimRef dim = dims[i];
    const AffineExpr size = sizes[i];
    if (innerLeft > 0 && (dim.kind != inner || dim.index != --innerLeft))
      return std::nullopt;
    if (dim.kind == outer) {
      // Those before the last lie as far apart as all of those behind: nothing stands between.
      if (dim.index != --outerLeft || (outerLeft + 1 < outers.size() && !isAmongOuter))
        return std::nullopt;
      if (outerLeft + 1 == outers.size())
        place.stride = prim::simplifySize(stride);
    } else if (dim.kind == DimRef::Batch) {
      place.batchStrides[dim.index] = prim::simplifySize(stride);
    } else if (dim.kind != inner) {
      return std::nullopt;
    }
    isAmongOuter = dim.kind == outer;
    stride = stride * size;
  }
  if (outers.empty()) // a single line
    place.stride = prim::product(context, inners);
  return place;
}

Value tc::codegen::batchStart(Emitter &em, const LinesInPlace &lines, ArrayRef<Index> batchAt, Type element) {
  Value start = em.input(lines.input);
  for (auto [position, stride] : llvm::zip_equal(batchAt, lines.batchStrides))
    start = offsetBy(em, start, em.mul(position.base, em.size(stride)), element);
  return start;
}

/// Whether the dim `kind` that is last in the canonical form is contiguous in the memory of an operand with these dims.
static bool isLastInnermost(Value operand, ArrayRef<DimRef> dims, DimRef::Kind kind, size_t count) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.kind == kind && dim.index + 1 == count)
      return isInnermost(operand, i);
  return false;
}

bool tc::codegen::isDepthInnermost(const Product &p) {
  return isLastInnermost(p.rhs, p.rhsDims, DimRef::Depth, p.depth.size()) && !p.columns.empty() &&
         !isLastInnermost(p.rhs, p.rhsDims, DimRef::Column, p.columns.size());
}

bool tc::codegen::isRowInnermost(const Product &p) {
  return isLastInnermost(p.lhs, p.lhsDims, DimRef::Row, p.rows.size()) &&
         !isLastInnermost(p.lhs, p.lhsDims, DimRef::Depth, p.depth.size());
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
