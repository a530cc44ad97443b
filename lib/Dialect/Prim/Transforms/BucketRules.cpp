//===- BucketRules.cpp - which ops compute the same on padded tensors ---------------------------------------------===//
//
// A rule makes the padded result of an op, whose exact part must be what the op computes of the exact parts of its
// operands, whatever stands in their padding. It declines what it cannot show that for.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BucketBody.h"

#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

SmallVector<int64_t> range(int64_t from, int64_t to) { return llvm::to_vector(llvm::seq<int64_t>(from, to)); }

SmallVector<int64_t> allDims(Value value) { return range(0, PrimBuilder::rankOf(value)); }

/// What changes no combination of this kind.
TypedAttr neutral(PrimBuilder &b, ReduceKind kind, Type type) {
  if (isa<FloatType>(type)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return b.scalarAttr(type, kind == ReduceKind::Max    ? -kInfinity
                              : kind == ReduceKind::Min  ? kInfinity
                              : kind == ReduceKind::Prod ? 1
                                                         : 0);
  }
  const unsigned width = type.getIntOrFloatBitWidth();
  const bool isUnsigned = width == 1 || type.isUnsignedInteger();
  APInt value(width, 0);
  switch (kind) {
  case ReduceKind::Prod:
    value = APInt(width, 1);
    break;
  case ReduceKind::Max:
    value = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
    break;
  case ReduceKind::Min:
    value = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
    break;
  case ReduceKind::And:
    value = APInt::getAllOnes(width);
    break;
  case ReduceKind::Sum:
  case ReduceKind::Or:
    break;
  }
  return b.getIntegerAttr(type, value);
}

/// Elements are made of their positions, or of nothing.
bool copyAny(BucketBody &body, Operation *op) { return body.copy(op); }

bool padTranspose(BucketBody &body, TransposeOp op) {
  const Value x = body.getPadded(op.getOperand()), result = body.copy(op)->getResult(0);
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    if (body.hasZeros(x, from))
      body.setZeros(result, int64_t(to));
  return true;
}

/// An operand's dim of one element, which only the run knows to be such, has more of them when padded.
bool padBroadcast(BucketBody &body, BroadcastOp op) {
  const Sizes from = body.exactSizes(op.getOperand()), to = body.exactSizes(op.getResult());
  for (auto [dim, at] : llvm::enumerate(op.getDims()))
    if (from[dim] != to[at] && (body.varies(op.getOperand(), int64_t(dim)) ||
                                (body.varies(op.getResult(), at) && getConstantSize(from[dim]) != 1)))
      return false;
  const Value x = body.getPadded(op.getOperand()), result = body.copy(op)->getResult(0);
  for (auto [dim, at] : llvm::enumerate(op.getDims()))
    if (body.hasZeros(x, int64_t(dim)) && from[dim] == to[at])
      body.setZeros(result, at);
  return true;
}

/// Whether of dims that hold the same elements, in row-major order, the first alone varies: elements then have the same
/// positions in the padded form.
bool isLedBy(BucketBody &body, ArrayRef<AffineExpr> sizes) {
  bool isFirst = true;
  for (AffineExpr size : sizes) {
    if (getConstantSize(size) == 1)
      continue;
    if (!isFirst && body.isOfBuckets(size))
      return false;
    isFirst = false;
  }
  return true;
}

/// Dims fall into groups that hold the same elements before and after.
bool padReshape(BucketBody &body, ReshapeOp op) {
  MLIRContext *context = op.getContext();
  const Sizes from = body.exactSizes(op.getOperand()), to = body.exactSizes(op.getResult());
  const Sizes longFrom = body.paddedSizes(op.getOperand()), longTo = body.paddedSizes(op.getResult());
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // The shortest next group.
    std::optional<std::pair<size_t, size_t>> end;
    for (size_t length = 1; !end && length <= from.size() - i + to.size() - j; ++length)
      for (size_t m = 0; !end && m <= std::min(length, from.size() - i); ++m) {
        const size_t n = length - m;
        if (n <= to.size() - j &&
            product(context, ArrayRef(from).slice(i, m)) == product(context, ArrayRef(to).slice(j, n)))
          end = {i + m, j + n};
      }
    if (!end)
      return false;
    const size_t m = end->first - i, n = end->second - j;
    if (!isLedBy(body, ArrayRef(from).slice(i, m)) || !isLedBy(body, ArrayRef(to).slice(j, n)) ||
        product(context, ArrayRef(longFrom).slice(i, m)) != product(context, ArrayRef(longTo).slice(j, n)))
      return false;
    std::tie(i, j) = *end;
  }
  body.copy(op);
  return true;
}

bool padSlice(BucketBody &body, SliceOp op) {
  const Sizes sizes = body.paddedSizes(op.getOperand()), counts = body.paddedSizes(op.getResult());
  for (auto [dim, start] : llvm::enumerate(op.getStarts().getResults())) {
    // What is read of a dim that varies lies in its exact part, unless as many elements are read as vary.
    if (!body.varies(op.getResult(), int64_t(dim)))
      continue;
    const auto first = getConstantSize(body.toExact().convert(start)), size = getConstantSize(sizes[dim]),
               count = getConstantSize(counts[dim]);
    const int64_t step = op.getSteps()[dim];
    if (!first || !size || !count || step < 1 || *first < 0 ||
        (*count > 0 && (*count - 1) > (*size - 1 - *first) / step) || (*count > 0 && *first >= *size))
      return false;
  }
  body.copy(op);
  return true;
}

bool padPad(BucketBody &body, PadOp op) {
  const Value value = body.getExact(op.getValue());
  const Value x = body.mask(op.getOperand(), allDims(op.getOperand()), value);
  body.copy(op, {x, value});
  return true;
}

/// Where an input but the last one is padded, those behind it are moved to where it ends, which the run knows, and put
/// over its padding.
bool padConcat(BucketBody &body, ConcatOp op) {
  PrimBuilder &b = body.builder();
  const int64_t axis = int64_t(op.getAxis());
  const Sizes all = body.paddedSizes(op.getResult());
  SmallVector<Value> inputs;
  for (Value input : op.getInputs())
    if (getConstantSize(body.exactSizes(input)[axis]) != 0)
      inputs.push_back(input);
  if (inputs.empty())
    return false;
  if (llvm::none_of(ArrayRef(inputs).drop_back(), [&](Value input) { return body.varies(input, axis); })) {
    body.copy(op);
    return true;
  }
  for (Value input : inputs)
    for (auto [dim, pair] : llvm::enumerate(llvm::zip_equal(body.paddedSizes(input), all)))
      if (int64_t(dim) != axis && std::get<0>(pair) != std::get<1>(pair))
        return false;
  const Value zero = b.scalar(b.elementOf(op.getResult()), 0);
  Value result;
  AffineExpr begin = b.size(0);
  for (Value input : inputs) {
    Sizes low(all.size(), b.size(0));
    low[axis] = begin;
    const Value moved = b.pad(body.getPadded(input), zero, low, all);
    result = result ? b.select(b.broadcastInDims(body.isWithin(begin, all[axis]), all, {axis}), result, moved) : moved;
    begin = simplifySize(begin + body.exactSizes(input)[axis]);
  }
  body.setPadded(op.getResult(), result);
  return true;
}

/// Indices into dims of `sizes` as positions within them: negative ones count from the end, what is still outside is
/// clamped, as a gather has it of a source that is not padded. `sizes`: i64, of one size or of one for each index of
/// the last dim. Those in the padding are 0, which needs no check.
Value toPositions(BucketBody &body, Value indices, Value sizes) {
  PrimBuilder &b = body.builder();
  const Value x = body.maskByZeros(indices, allDims(indices));
  const Value size = b.broadcastTo(b.convert(sizes, b.elementOf(x)), getSizes(x));
  const Value zero = b.splatLike(x, 0);
  const Value positive = b.select(b.compare(CompareKind::LT, x, zero), b.add(x, size), x);
  return b.max(b.min(positive, b.sub(size, b.splatLike(x, 1))), zero);
}

bool padGather(BucketBody &body, GatherOp op) {
  const Value source = body.getPadded(op.getSource()), indices = op.getIndices();
  const int64_t axis = int64_t(op.getAxis());
  const bool isExact = !body.varies(op.getSource(), axis);
  body.copy(op, {source, isExact ? body.maskByZeros(indices, allDims(indices))
                                 : toPositions(body, indices,
                                               body.builder().sizeValue(body.exactSizes(op.getSource())[axis]))});
  return true;
}

bool padGatherND(BucketBody &body, GatherNDOp op) {
  const Value indices = op.getIndices();
  const Sizes source = body.exactSizes(op.getSource());
  const auto count = getConstantSize(body.exactSizes(indices).back());
  if (!count)
    return false;
  const ArrayRef<AffineExpr> sizes = ArrayRef(source).slice(op.getBatchDims(), *count);
  const bool isExact = llvm::none_of(sizes, [&](AffineExpr size) { return body.isOfBuckets(size); });
  body.copy(op,
            {body.getPadded(op.getSource()), isExact ? body.maskByZeros(indices, allDims(indices))
                                                     : toPositions(body, indices, body.builder().sizesValue(sizes))});
  return true;
}

bool padGatherElements(BucketBody &body, GatherElementsOp op) {
  const Value indices = op.getIndices();
  const int64_t axis = int64_t(op.getAxis());
  // Other dims of the indices may be shorter than the source's, which must hold them when both are padded.
  const Sizes longSource = body.paddedSizes(op.getSource()), longIndices = body.paddedSizes(indices);
  for (int64_t dim : allDims(indices))
    if (dim != axis && longSource[dim] != longIndices[dim] &&
        (body.varies(op.getSource(), dim) || body.varies(indices, dim)))
      return false;
  const Value source = body.getPadded(op.getSource());
  body.copy(op,
            {source, body.varies(op.getSource(), axis)
                         ? toPositions(body, indices, body.builder().sizeValue(body.exactSizes(op.getSource())[axis]))
                         : body.maskByZeros(indices, allDims(indices))});
  return true;
}

bool padReduce(BucketBody &body, ReduceOp op) {
  PrimBuilder &b = body.builder();
  const TypedAttr fill = neutral(b, op.getKind(), b.elementOf(op.getOperand()));
  body.copy(op, op.getKind() == ReduceKind::Sum ? body.maskByZeros(op.getOperand(), op.getDims())
                                                : body.mask(op.getOperand(), op.getDims(), fill));
  return true;
}

/// The first of equal elements is not of the padding; the last one may be.
bool padArgReduce(BucketBody &body, ArgReduceOp op) {
  PrimBuilder &b = body.builder();
  const int64_t axis = int64_t(op.getAxis());
  if (op.getLastIndex() && body.varies(op.getOperand(), axis))
    return false;
  body.copy(op, body.mask(op.getOperand(), {axis}, neutral(b, op.getKind(), b.elementOf(op.getOperand()))));
  return true;
}

/// Forwards, no element is made of those behind it.
bool padScan(BucketBody &body, ScanOp op) {
  PrimBuilder &b = body.builder();
  const Value x = op.getReverse() ? body.mask(op.getOperand(), {int64_t(op.getAxis())},
                                              neutral(b, op.getKind(), b.elementOf(op.getOperand())))
                                  : body.getPadded(op.getOperand());
  body.copy(op, x);
  return true;
}

/// Rows are sorted by themselves.
bool padArgSort(BucketBody &body, ArgSortOp op) {
  const int64_t rank = PrimBuilder::rankOf(op.getOperand());
  if (body.varies(op.getOperand(), {rank - 1, rank - 2}) ||
      body.varies(op.getResult(), PrimBuilder::rankOf(op.getResult()) - 1))
    return false;
  return body.copy(op);
}

bool padFft(BucketBody &body, FftOp op) {
  if (body.varies(op.getOperand(), {1, 3}) || body.varies(op.getResult(), {1, 3}) ||
      body.isOfBuckets(body.toExact().convert(op.getLengthExpr())))
    return false;
  return body.copy(op);
}

bool padDotGeneral(BucketBody &body, DotGeneralOp op) {
  const Sizes lhs = body.paddedSizes(op.getLhs()), rhs = body.paddedSizes(op.getRhs());
  for (auto [x, y] :
       {std::pair(op.getLhsBatch(), op.getRhsBatch()), std::pair(op.getLhsContract(), op.getRhsContract())})
    for (auto [i, j] : llvm::zip_equal(x, y))
      if (lhs[i] != rhs[j])
        return false;
  // Both: zero times what is no number is no zero.
  body.copy(op,
            {body.maskByZeros(op.getLhs(), op.getLhsContract()), body.maskByZeros(op.getRhs(), op.getRhsContract())});
  return true;
}

bool padConv(BucketBody &body, ConvOp op) {
  const int64_t last = PrimBuilder::rankOf(op.getInput()) - 1;
  if (body.varies(op.getInput(), last) || body.varies(op.getFilter(), allDims(op.getFilter())))
    return false;
  body.copy(op, {body.maskByZeros(op.getInput(), range(1, last)), body.getPadded(op.getFilter())});
  return true;
}

bool padWindowReduce(BucketBody &body, WindowReduceOp op) {
  PrimBuilder &b = body.builder();
  const Value x = op.getOperand();
  body.copy(op, body.mask(x, range(1, b.rankOf(x) - 1), neutral(b, op.getKind(), b.elementOf(x))));
  return true;
}

/// The lowest value, which hides a score.
TypedAttr lowest(PrimBuilder &b, Value value) {
  return b.scalarAttr(b.elementOf(value), -std::numeric_limits<double>::infinity());
}

/// What is added to scores of these sizes to hide those from `size` on along `dim`.
Value makeMask(BucketBody &body, Value like, AffineExpr size, SizesRef all, int64_t dim) {
  PrimBuilder &b = body.builder();
  const Type type = b.elementOf(like);
  const Value mask = b.select(body.isWithin(size, all[dim]), b.splat(type, all[dim], 0),
                              SplatOp::create(b, makeType(type, all[dim]), lowest(b, like)));
  return b.broadcastInDims(mask, all, {dim});
}

/// The product with one other dim on the right that scores are, where `axis` is that dim; else null. `ops`: from the
/// scores back to it, factors and, first, a mask that is added.
DotGeneralOp findProduct(Value scores, int64_t axis, SmallVector<Operation *> &ops) {
  Value x = scores;
  while (Operation *op = x.getDefiningOp()) {
    if (!x.hasOneUse())
      return {};
    if (auto dot = dyn_cast<DotGeneralOp>(op)) {
      const bool isLast = axis == PrimBuilder::rankOf(scores) - 1;
      return isLast && int64_t(dot.getRhsBatch().size() + dot.getRhsContract().size()) + 1 ==
                           PrimBuilder::rankOf(dot.getRhs())
                 ? dot
                 : DotGeneralOp();
    }
    if (!(isa<AddOp>(op) && ops.empty()) && !(isa<MulOp, DivOp>(op) && getSplatValue(op->getOperand(1))))
      return {};
    ops.push_back(op);
    x = op->getOperand(0);
  }
  return {};
}

/// Scores of which those in the padding are -infinity. Where they are products with keys, these become zeros there, and
/// what hides their scores is added, which attention takes as its mask. (A query that is no number makes NaN of its
/// row, with such keys or without.)
Value maskScores(BucketBody &body, Value scores, int64_t axis) {
  PrimBuilder &b = body.builder();
  SmallVector<Operation *> ops;
  DotGeneralOp dot = findProduct(scores, axis, ops);
  if (!dot)
    return body.mask(scores, {axis}, lowest(b, scores));
  SmallVector<int64_t> dims(dot.getRhsContract());
  for (int64_t dim : allDims(dot.getRhs()))
    if (!llvm::is_contained(dot.getRhsBatch(), dim) && !llvm::is_contained(dot.getRhsContract(), dim))
      dims.push_back(dim);
  // Again: nothing reads the first one.
  Value x = body.copy(dot, {body.maskByZeros(dot.getLhs(), dot.getLhsContract()), body.maskByZeros(dot.getRhs(), dims)})
                ->getResult(0);
  const bool isMasked = !ops.empty() && isa<AddOp>(ops.front());
  for (Operation *op : llvm::reverse(ops)) {
    const Value other =
        isa<AddOp>(op) ? body.mask(op->getOperand(1), {axis}, lowest(b, scores)) : body.getPadded(op->getOperand(1));
    x = body.copy(op, {x, other})->getResult(0);
  }
  return isMasked ? x : b.add(x, makeMask(body, x, body.exactSizes(scores)[axis], body.paddedSizes(scores), axis));
}

bool padSoftmax(BucketBody &body, SoftmaxOp op) {
  const int64_t axis = int64_t(op.getAxis());
  if (!body.varies(op.getOperand(), axis))
    return body.copy(op);
  const Value result = body.copy(op, maskScores(body, op.getOperand(), axis))->getResult(0);
  if (!op.getLog())
    body.setZeros(result, axis);
  return true;
}

bool padNorm(BucketBody &body, NormOp op) { return !body.varies(op.getOperand(), op.getDims()) && body.copy(op); }

bool padAttention(BucketBody &body, AttentionOp op) {
  PrimBuilder &b = body.builder();
  const int64_t rank = b.rankOf(op.getQuery()), last = rank - 1, row = rank - 2;
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue()})
    if (body.varies(operand, last))
      return false;
  const Sizes query = body.exactSizes(op.getQuery()), key = body.exactSizes(op.getKey());
  if (op.getCausal() && body.isOfBuckets(simplifySize(key[row] - query[row])))
    return false;
  if (!body.varies(op.getKey(), row))
    return body.copy(op);
  const Value mask = op.getMask();
  if (mask && body.exactSizes(mask)[last] != key[row])
    return false;
  SmallVector<Value> operands = {body.getPadded(op.getQuery()), body.maskByZeros(op.getKey(), {row}),
                                 body.maskByZeros(op.getValue(), {row})};
  if (mask) {
    operands.push_back(body.mask(mask, {last}, lowest(b, mask)));
  } else {
    Sizes sizes = body.paddedSizes(op.getQuery());
    sizes[last] = body.paddedSizes(op.getKey())[row];
    operands.push_back(makeMask(body, operands.front(), key[row], sizes, last));
  }
  body.copy(op, operands);
  return true;
}

bool padBlockDot(BucketBody &body, BlockDotOp op) {
  if (body.varies(op.getLhs(), PrimBuilder::rankOf(op.getLhs()) - 1))
    return false;
  return body.copy(op);
}

/// Rows of the batch are independent; steps of time are not.
bool padRnn(BucketBody &body, RnnOp op) {
  if (body.varies(op.getGates(), {0, 2}) || body.varies(op.getRecurrent(), {0, 1}))
    return false;
  return body.copy(op);
}

using Rule = bool (*)(BucketBody &, Operation *);

template <typename Op, bool (*rule)(BucketBody &, Op)> std::pair<StringRef, Rule> on() {
  return {Op::getOperationName(), [](BucketBody &body, Operation *op) { return rule(body, cast<Op>(op)); }};
}

} // namespace

bool tc::prim::padByRule(BucketBody &body, Operation *op) {
  static const llvm::StringMap<Rule> rules = [] {
    llvm::StringMap<Rule> all;
    for (auto [name, rule] : {std::pair<StringRef, Rule>(SplatOp::getOperationName(), copyAny),
                              {IotaOp::getOperationName(), copyAny},
                              on<TransposeOp, padTranspose>(),
                              on<BroadcastOp, padBroadcast>(),
                              on<ReshapeOp, padReshape>(),
                              on<SliceOp, padSlice>(),
                              on<PadOp, padPad>(),
                              on<ConcatOp, padConcat>(),
                              on<GatherOp, padGather>(),
                              on<GatherElementsOp, padGatherElements>(),
                              on<GatherNDOp, padGatherND>(),
                              on<ReduceOp, padReduce>(),
                              on<ArgReduceOp, padArgReduce>(),
                              on<ScanOp, padScan>(),
                              on<ArgSortOp, padArgSort>(),
                              on<FftOp, padFft>(),
                              on<DotGeneralOp, padDotGeneral>(),
                              on<ConvOp, padConv>(),
                              on<WindowReduceOp, padWindowReduce>(),
                              on<SoftmaxOp, padSoftmax>(),
                              on<NormOp, padNorm>(),
                              on<AttentionOp, padAttention>(),
                              on<BlockDotOp, padBlockDot>(),
                              on<RnnOp, padRnn>()})
      all[name] = rule;
    return all;
  }();
  const auto rule = rules.find(op->getName().getStringRef());
  return rule != rules.end() && rule->second(body, op);
}
