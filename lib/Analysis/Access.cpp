//===- Access.cpp - how values lie in memory ----------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/Access.h"

using namespace mlir;
using namespace tc;

DimMap tc::identityMap(Value value) {
  DimMap map;
  for (auto [i, size] : llvm::enumerate(prim::getSizes(value)))
    map.push_back(prim::isOne(size) ? int(prim::kOrigin) : int(i));
  return map;
}

DimMap tc::mapOperand(Operation *op, unsigned operand, ArrayRef<int> resultMap) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(op->getOperand(operand));
  DimMap map(sizes.size(), prim::kUnknown);
  if (auto primitive = dyn_cast<prim::FusionOpInterface>(op))
    primitive.mapOperand(operand, resultMap, map);
  for (auto [i, size] : llvm::enumerate(sizes))
    if (prim::isOne(size))
      map[i] = prim::kOrigin;
  return map;
}

std::optional<unsigned> tc::alignedRank(Value tensor, ArrayRef<int> map, Value spaceOf) {
  SmallVector<AffineExpr> sizes = prim::getSizes(tensor), outer = prim::getSizes(spaceOf);
  unsigned next = 0, count = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (prim::isOne(size))
      continue;
    while (next < outer.size() && prim::isOne(outer[next]))
      ++next;
    if (next >= outer.size() || map[i] != int(next))
      return std::nullopt;
    ++next;
    ++count;
  }
  return count;
}

std::optional<unsigned> tc::inputThroughReshapes(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(prim::skipReshapes(value)))
    return argument.getArgNumber();
  return std::nullopt;
}

std::optional<StridedInput> tc::inputThroughViews(Value value) {
  MLIRContext *context = value.getContext();
  const AffineExpr zero = getAffineConstantExpr(0, context);
  const SmallVector<AffineExpr> sizes = prim::getSizes(value);
  if (const std::optional<unsigned> input = inputThroughReshapes(value)) {
    StridedInput view{*input, zero, SmallVector<AffineExpr>(sizes.size())};
    AffineExpr stride = getAffineConstantExpr(1, context);
    for (size_t i = sizes.size(); i-- > 0; stride = prim::simplifySize(stride * sizes[i]))
      view.strides[i] = stride;
    return view;
  }
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<prim::TransposeOp, prim::SliceOp, prim::BroadcastOp>(op))
    return std::nullopt;
  std::optional<StridedInput> view = inputThroughViews(op->getOperand(0));
  if (!view)
    return std::nullopt;
  const SmallVector<AffineExpr> strides = std::move(view->strides);
  view->strides.assign(sizes.size(), zero);
  if (auto transpose = dyn_cast<prim::TransposeOp>(op)) {
    for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
      view->strides[i] = strides[dim];
  } else if (auto slice = dyn_cast<prim::SliceOp>(op)) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      view->offset = prim::simplifySize(view->offset + slice.getStarts().getResult(i) * strides[i]);
      view->strides[i] = prim::simplifySize(strides[i] * slice.getSteps()[i]);
    }
  } else {
    auto broadcast = cast<prim::BroadcastOp>(op);
    const SmallVector<AffineExpr> from = prim::getSizes(broadcast.getOperand());
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims())) {
      if (from[i] == sizes[dim])
        view->strides[dim] = strides[i];
      else if (prim::getConstantSize(from[i]) != 1)
        return std::nullopt; // known when it runs
    }
  }
  return view;
}

bool tc::isInnermost(Value value, int64_t dim) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return dim + 1 == cast<RankedTensorType>(value.getType()).getRank();
    if (auto concat = dyn_cast<prim::ConcatOp>(op))
      return llvm::all_of(concat.getInputs(), [&](Value input) { return isInnermost(input, dim); });
    if (op->hasTrait<prim::PointwiseTrait>() && op->getNumOperands() != 0) {
      // What is repeated along dims says nothing of how the others lie in memory.
      const auto repeats = [](Value operand) {
        return isa_and_nonnull<prim::BroadcastOp, prim::SplatOp, prim::ConstantOp>(operand.getDefiningOp());
      };
      const auto first = llvm::find_if_not(op->getOperands(), repeats);
      value = first == op->operand_end() ? op->getOperand(0) : *first;
      continue;
    }
    auto primitive = dyn_cast<prim::FusionOpInterface>(op);
    const std::optional<int64_t> source = primitive ? primitive.getSourceDim(dim) : std::nullopt;
    if (!source)
      return false;
    dim = *source;
    value = op->getOperand(0);
  }
}

bool tc::transposesInnermost(Operation *op) {
  auto transpose = dyn_cast<prim::TransposeOp>(op);
  if (!transpose)
    return false;
  auto sizes = prim::getSizes(transpose.getResult());
  for (int64_t i = int64_t(sizes.size()) - 1; i >= 0; --i) {
    if (prim::getConstantSize(sizes[i]) == 1)
      continue;
    auto from = prim::getSizes(transpose.getOperand());
    int64_t last = int64_t(from.size()) - 1;
    while (prim::getConstantSize(from[last]) == 1)
      --last;
    return transpose.getPermutation()[i] != last;
  }
  return false;
}

/// Places that a walk has been at: those read twice, one behind another, have exponentially many paths to them.
using Places = llvm::DenseSet<std::pair<Value, int64_t>>;

static bool isReadByVectors(Value value, int64_t dim, Places &seen) {
  if (!seen.insert({value, dim}).second)
    return true; // the first visit decides
  Operation *op = value.getDefiningOp();
  auto sizes = prim::getSizes(value);
  if (!op)
    return dim + 1 == int64_t(sizes.size());
  if (isa<prim::SplatOp>(op))
    return true;
  if (auto transpose = dyn_cast<prim::TransposeOp>(op))
    return isReadByVectors(transpose.getOperand(), transpose.getPermutation()[dim], seen);
  if (auto slice = dyn_cast<prim::SliceOp>(op))
    return slice.getSteps()[dim] == 1 && isReadByVectors(slice.getOperand(), dim, seen);
  if (auto broadcast = dyn_cast<prim::BroadcastOp>(op)) {
    auto from = prim::getSizes(broadcast.getOperand());
    const auto *found = llvm::find(broadcast.getDims(), dim);
    if (found == broadcast.getDims().end())
      return true;
    const int64_t inner = found - broadcast.getDims().begin();
    if (from[inner] == sizes[dim])
      return isReadByVectors(broadcast.getOperand(), inner, seen);
    return prim::getConstantSize(from[inner]) == 1;
  }
  if (auto reshape = dyn_cast<prim::ReshapeOp>(op)) {
    auto from = prim::getSizes(reshape.getOperand());
    if (dim + 1 != int64_t(sizes.size()) || from.empty())
      return false;
    auto outer = prim::getConstantSize(from.back()), inner = prim::getConstantSize(sizes.back());
    // Vectors begin at multiples of 16, so that none crosses the end of a row.
    const bool isPart = outer && inner && *inner > 0 && *inner % 16 == 0 && *outer % *inner == 0;
    return (from.back() == sizes.back() || isPart) &&
           isReadByVectors(reshape.getOperand(), int64_t(from.size()) - 1, seen);
  }
  return op->hasTrait<prim::PointwiseTrait>() && op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isReadByVectors(operand, dim, seen); });
}

bool tc::isReadByVectors(Value value, int64_t dim) {
  Places seen;
  return ::isReadByVectors(value, dim, seen);
}

static bool isReadAlong(Value mask, int64_t t, int64_t s, llvm::DenseSet<std::tuple<Value, int64_t, int64_t>> &seen) {
  if (t < 0 || s < 0 || !seen.insert({mask, t, s}).second)
    return false;
  Operation *op = mask.getDefiningOp();
  auto sizes = prim::getSizes(mask);
  if (!op || isa<prim::ConstantOp>(op))
    return prim::getConstantSize(sizes[t]) != 1 && prim::getConstantSize(sizes[s]) != 1 && t < s;
  if (op->getNumOperands() == 0) // computed from positions
    return false;
  Value operand = op->getOperand(0);
  if (auto broadcast = dyn_cast<prim::BroadcastOp>(op)) {
    auto from = [&](int64_t dim) -> int64_t {
      const auto *found = llvm::find(broadcast.getDims(), dim);
      return found == broadcast.getDims().end() ? -1 : found - broadcast.getDims().begin();
    };
    return isReadAlong(operand, from(t), from(s), seen);
  }
  if (auto transpose = dyn_cast<prim::TransposeOp>(op))
    return isReadAlong(operand, transpose.getPermutation()[t], transpose.getPermutation()[s], seen);
  if (op->hasTrait<prim::PointwiseTrait>())
    return llvm::any_of(op->getOperands(), [&](Value v) { return isReadAlong(v, t, s, seen); });
  // Of other movement the order of dims is not known; it is kept more often than not.
  return true;
}
bool tc::isReadByRows(Value mask) {
  const int64_t rank = cast<RankedTensorType>(mask.getType()).getRank();
  llvm::DenseSet<std::tuple<Value, int64_t, int64_t>> seen;
  return isReadAlong(mask, rank - 2, rank - 1, seen);
}

SmallVector<AffineExpr> tc::delinearizeExpr(AffineExpr linear, ArrayRef<AffineExpr> sizes) {
  SmallVector<AffineExpr> at(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t size = std::max<int64_t>(1, *prim::getConstantSize(sizes[i]));
    at[i] = i == 0 ? linear : linear % size;
    linear = linear.floorDiv(size);
  }
  return at;
}

std::optional<ConstantView> tc::traceConstant(Value value, llvm::function_ref<bool(unsigned)> isConstant,
                                              SmallVector<AffineExpr> at, bool widens) {
  auto elementOf = [](Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); };
  auto isStatic = [](Value tensor) {
    return llvm::all_of(prim::getSizes(tensor),
                        [](AffineExpr size) { return prim::getConstantSize(size).has_value(); });
  };
  while (true) {
    // Another reader would need the input as it is.
    if (!value.hasOneUse() || !isStatic(value))
      return std::nullopt;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (!isConstant(argument.getArgNumber()))
        return std::nullopt;
      return ConstantView{argument.getArgNumber(), elementOf(value), at};
    }
    Operation *op = value.getDefiningOp();
    if (auto transpose = dyn_cast<prim::TransposeOp>(op)) {
      SmallVector<AffineExpr> next(at.size());
      for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
        next[dim] = at[i];
      at = next;
      value = transpose.getOperand();
    } else if (auto reshape = dyn_cast<prim::ReshapeOp>(op)) {
      if (!isStatic(reshape.getOperand()))
        return std::nullopt;
      AffineExpr linear = getAffineConstantExpr(0, value.getContext());
      for (auto [position, size] : llvm::zip_equal(at, prim::getSizes(value)))
        linear = linear * size + position;
      at = delinearizeExpr(linear, prim::getSizes(reshape.getOperand()));
      value = reshape.getOperand();
    } else if (auto slice = dyn_cast<prim::SliceOp>(op)) {
      if (!llvm::all_of(slice.getStarts().getResults(), [](AffineExpr e) { return isa<AffineConstantExpr>(e); }))
        return std::nullopt;
      for (size_t i = 0; i < at.size(); ++i)
        at[i] = at[i] * slice.getSteps()[i] + slice.getStarts().getResult(i);
      value = slice.getOperand();
    } else if (auto convert = dyn_cast<prim::ConvertOp>(op);
               convert && widens && elementOf(value).isF32() &&
               (elementOf(convert.getOperand()).isF16() || elementOf(convert.getOperand()).isBF16())) {
      value = convert.getOperand();
    } else {
      return std::nullopt;
    }
  }
}

std::optional<LinesInPlace> tc::linesInPlace(const Product &p, Value operand, DimRef::Kind inner) {
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

/// Whether the dim `kind` that is last in the canonical form is contiguous in the memory of an operand with these dims.
static bool isLastInnermost(Value operand, ArrayRef<DimRef> dims, DimRef::Kind kind, size_t count) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.kind == kind && dim.index + 1 == count)
      return isInnermost(operand, i);
  return false;
}

bool tc::isDepthInnermost(const Product &p) {
  return isLastInnermost(p.rhs, p.rhsDims, DimRef::Depth, p.depth.size()) && !p.columns.empty() &&
         !isLastInnermost(p.rhs, p.rhsDims, DimRef::Column, p.columns.size());
}

bool tc::isRowInnermost(const Product &p) {
  return isLastInnermost(p.lhs, p.lhsDims, DimRef::Row, p.rows.size()) &&
         !isLastInnermost(p.lhs, p.lhsDims, DimRef::Depth, p.depth.size());
}
