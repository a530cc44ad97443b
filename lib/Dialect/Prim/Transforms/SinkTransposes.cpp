//===- SinkTransposes.cpp - transposes towards the results --------------------------------------------------------===//
//
// Transposes sink towards the results, through everything that does not care for the order of dims: elementwise ops,
// broadcasts, reductions, pads, slices, concats, gathers, softmax, norms, reshapes of dims that stay neighbours. Where
// two meet they compose, and cancel between the convolutions of a channels-first model, which then computes
// channels-last from its first convolution to its last:
//
//   %a = prim.conv ...                               %a = prim.conv ...
//   %b = prim.transpose %a [0, 3, 1, 2]              %c = prim.max %a, %zero
//   %c = prim.max %b, %zero                    =>    %e = prim.conv %c, ...
//   %d = prim.transpose %c [0, 2, 3, 1]
//   %e = prim.conv %d, ...
//
// An elementwise op takes part if each operand is transposed alike or can be had in the other order for nothing
// (splats, broadcasts of few dims, constants, iotas).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CanonicalizePrim.h"

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"
#include "tc/Dialect/Prim/Utils/Indices.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {
/// Transposed constants fold: they give no reason to move a transpose.
bool isConstantTranspose(Value v) {
  auto transpose = v.getDefiningOp<TransposeOp>();
  return transpose && transpose.getOperand().getDefiningOp<prim::ConstantOp>();
}

/// The order in which a broadcast of a value with its dims in order `order` takes the dims of its operand.
SmallVector<int64_t> operandOrder(BroadcastOp op, ArrayRef<int64_t> order) {
  const SmallVector<int64_t> position = invert(order);
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, op.getDims().size()));
  llvm::sort(dims, [&](int64_t a, int64_t b) { return position[op.getDims()[a]] < position[op.getDims()[b]]; });
  return dims;
}

/// Whether reorderFree has a value. Patterns ask before they make anything: one that fails after it made an op runs
/// again and again.
bool canReorderFree(Value v, ArrayRef<int64_t> order) {
  Operation *op = v.getDefiningOp();
  if (!op)
    return false;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    // The operand stays, is a constant, or is what a transpose transposed the other way.
    const SmallVector<int64_t> dims = operandOrder(broadcast, order);
    const Value operand = broadcast.getOperand();
    auto transpose = operand.getDefiningOp<TransposeOp>();
    return llvm::is_sorted(dims) || operand.getDefiningOp<prim::ConstantOp>() || isConstantTranspose(operand) ||
           (transpose && transpose.getPermutation() == ArrayRef(invert(dims)));
  }
  return isa<SplatOp, IotaOp, prim::ConstantOp>(op) || isConstantTranspose(v);
}

/// `v` with its dims in another order, dim i of the new value being dim `order[i]` of v, where canReorderFree.
Value reorderFree(PrimBuilder &b, Value v, ArrayRef<int64_t> order) {
  Operation *op = v.getDefiningOp();
  Sizes sizes = permuted(getSizes(v), order);
  SmallVector<int64_t> position = invert(order);
  if (auto splat = dyn_cast<SplatOp>(op))
    return SplatOp::create(b, makeType(b.elementOf(v), sizes), splat.getValue());
  if (auto iota = dyn_cast<IotaOp>(op))
    return IotaOp::create(b, makeType(b.elementOf(v), sizes), position[iota.getAxis()]);
  if (isa<prim::ConstantOp>(op) || isConstantTranspose(v))
    return b.transpose(v, order);
  auto broadcast = cast<BroadcastOp>(op);
  SmallVector<int64_t> dims = llvm::map_to_vector(broadcast.getDims(), [&](int64_t dim) { return position[dim]; });
  llvm::sort(dims);
  return b.broadcastInDims(b.transpose(broadcast.getOperand(), operandOrder(broadcast, order)), sizes, dims);
}

/// op(transpose(a), transpose(b), free..) -> transpose(op(a, b, free'..)) for elementwise ops.
struct SinkThroughElementwise : RewritePattern {
  explicit SinkThroughElementwise(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<PointwiseTrait>() || op->getNumResults() != 1)
      return failure();
    TransposeOp first;
    for (Value operand : op->getOperands()) {
      auto transpose = operand.getDefiningOp<TransposeOp>();
      if (!transpose || isConstantTranspose(operand))
        continue;
      if (first && first.getPermutation() != transpose.getPermutation())
        return rewriter.notifyMatchFailure(op, "operands are transposed differently");
      first = transpose;
    }
    if (!first)
      return failure();
    PrimBuilder b(rewriter, op);
    SmallVector<int64_t> order = invert(first.getPermutation()), permutation(first.getPermutation());
    auto isTransposed = [](Value v) { return v.getDefiningOp<TransposeOp>() && !isConstantTranspose(v); };
    if (!llvm::all_of(op->getOperands(), [&](Value v) { return isTransposed(v) || canReorderFree(v, order); }))
      return rewriter.notifyMatchFailure(op, "an operand is not transposed");
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isTransposed(operand) ? operand.getDefiningOp<TransposeOp>().getOperand()
                                               : reorderFree(b, operand, order));
    Type element = PrimBuilder::elementOf(op->getResult(0));
    OperationState state(op->getLoc(), op->getName(), operands,
                         makeType(element, permuted(getSizes(op->getResult(0)), order)), op->getAttrs());
    Value result = b.create(state)->getResult(0);
    rewriter.replaceOp(op, b.transpose(result, permutation));
    return success();
  }
};

struct SinkThroughReduce : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    PrimBuilder b(rewriter, op);
    ArrayRef<int64_t> p = transpose.getPermutation();
    SmallVector<int64_t> dims, kept; // of the untransposed operand; kept in the result's order
    for (int64_t i = 0, e = p.size(); i < e; ++i)
      (llvm::is_contained(op.getDims(), i) ? dims : kept).push_back(p[i]);
    SmallVector<int64_t> sorted(kept), permutation;
    llvm::sort(sorted);
    for (int64_t dim : kept)
      permutation.push_back(llvm::find(sorted, dim) - sorted.begin());
    rewriter.replaceOp(op, b.transpose(b.reduce(op.getKind(), transpose.getOperand(), dims), permutation));
    return success();
  }
};

/// One operand, same layout in and out: pad, slice, softmax, norm, scan. `remap` rebuilds the op on the untransposed
/// operand.
template <typename Op> struct SinkThroughUnary : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto transpose = op->getOperand(0).template getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    PrimBuilder b(rewriter, op);
    SmallVector<int64_t> p(transpose.getPermutation()), order = invert(p);
    Value x = transpose.getOperand();
    Type element = PrimBuilder::elementOf(op->getResult(0));
    RankedTensorType type = makeType(element, permuted(getSizes(op->getResult(0)), order));
    auto reordered = [&](AffineMap map) { return makeSizeMap(b.getContext(), permuted(map.getResults(), order)); };
    Value result;
    if constexpr (std::is_same_v<Op, PadOp>) {
      result = PadOp::create(b, type, x, op.getValue(), reordered(op.getLow()));
    } else if constexpr (std::is_same_v<Op, SliceOp>) {
      SmallVector<int64_t> steps;
      for (int64_t dim : order)
        steps.push_back(op.getSteps()[dim]);
      result = SliceOp::create(b, type, x, reordered(op.getStarts()), steps);
    } else if constexpr (std::is_same_v<Op, NormOp>) {
      SmallVector<int64_t> dims;
      for (int64_t dim : op.getDims())
        dims.push_back(p[dim]);
      llvm::sort(dims);
      result = b.norm(x, dims, op.getEpsilon().convertToDouble(), op.getRms());
    } else if constexpr (std::is_same_v<Op, SoftmaxOp>) {
      result = SoftmaxOp::create(b, type, x, b.getI64IntegerAttr(p[op.getAxis()]), op.getLogAttr());
    }
    rewriter.replaceOp(op, b.transpose(result, p));
    return success();
  }
};

/// Whether something that pointwise ops and concats make of `value` is transposed by `order`.
static bool isTransposedBehind(Value value, ArrayRef<int64_t> order) {
  constexpr int kMostBetween = 6;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  for (size_t i = 0, depth = 0; depth <= kMostBetween; ++depth)
    for (const size_t end = values.size(); i < end; ++i)
      for (Operation *user : values[i].getUsers()) {
        if (auto transpose = dyn_cast<TransposeOp>(user)) {
          if (transpose.getPermutation() == order)
            return true;
        } else if ((user->hasTrait<PointwiseTrait>() || isa<ConcatOp>(user)) && user->getNumResults() == 1) {
          values.insert(user->getResult(0));
        }
      }
  return false;
}

/// concat(transpose(a), transpose(b)) -> transpose(concat(a, b)). A convolution's result and what lies channels first,
/// for further convolutions (dense blocks behind the caller's image): the latter is transposed once.
struct SinkThroughConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    // Elements of what is transposed for each element that need not be.
    constexpr double kMostTransposed = 4;
    if (op.getInputs().size() == 1) {
      rewriter.replaceOp(op, op.getInputs().front());
      return success();
    }
    TransposeOp first;
    for (Value input : op.getInputs())
      if (auto transpose = input.getDefiningOp<TransposeOp>(); transpose && !first)
        first = transpose;
    if (!first)
      return rewriter.notifyMatchFailure(op, "no input is transposed");
    SmallVector<int64_t> permutation(first.getPermutation()), order = invert(permutation);
    SmallVector<Value> inputs, transposed;
    double transposedCount = 0, count = 0;
    for (Value input : op.getInputs()) {
      auto transpose = input.getDefiningOp<TransposeOp>();
      const bool isTransposed = transpose && transpose.getPermutation() == ArrayRef<int64_t>(permutation);
      const double elements =
          double(getConstantSize(product(op.getContext(), getSizes(input))).value_or(isTransposed ? 1 : 1 << 30));
      (isTransposed ? count : transposedCount) += elements;
      if (!isTransposed)
        transposed.push_back(input);
      inputs.push_back(isTransposed ? transpose.getOperand() : input);
    }
    if (!transposed.empty() && (!isToChannelsFirst(permutation) || transposedCount > kMostTransposed * count ||
                                !isTransposedBehind(op.getResult(), order)))
      return rewriter.notifyMatchFailure(op, "inputs are not transposed alike");
    PrimBuilder b(rewriter, op);
    for (Value &input : inputs)
      if (llvm::is_contained(transposed, input))
        input = b.transpose(input, order);
    rewriter.replaceOp(op, b.transpose(b.concat(inputs, permutation[op.getAxis()]), permutation));
    return success();
  }
};

/// A list of indices along one dim.
struct SinkThroughGather : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getSource().getDefiningOp<TransposeOp>();
    if (!transpose || isConstantTranspose(op.getSource()) || PrimBuilder::rankOf(op.getIndices()) != 1)
      return failure();
    PrimBuilder b(rewriter, op);
    SmallVector<int64_t> permutation(transpose.getPermutation());
    RankedTensorType type =
        makeType(b.elementOf(op.getResult()), permuted(getSizes(op.getResult()), invert(permutation)));
    Value result = GatherOp::create(b, type, transpose.getOperand(), op.getIndices(),
                                    b.getI64IntegerAttr(permutation[op.getAxis()]));
    rewriter.replaceOp(op, b.transpose(result, permutation));
    return success();
  }
};

/// Dims of two shapes with as many elements on both sides.
struct Run {
  int64_t from, fromEnd, to, toEnd;
};
/// The shapes as runs that are as short as can be; nullopt if sizes are not known to agree or unit dims are left over.
std::optional<SmallVector<Run>> matchRuns(SizesRef from, SizesRef to) {
  SmallVector<Run> runs;
  int64_t i = 0, j = 0;
  while (i < int64_t(from.size()) && j < int64_t(to.size())) {
    Run run{i, i + 1, j, j + 1};
    AffineExpr in = from[i++], out = to[j++];
    while (in != out) {
      const auto inSize = getConstantSize(in), outSize = getConstantSize(out);
      const bool fromLess = divideSize(out, in) || (!divideSize(in, out) && inSize && outSize && *inSize < *outSize);
      if (fromLess ? i == int64_t(from.size()) : j == int64_t(to.size()))
        return std::nullopt;
      if (fromLess)
        in = simplifySize(in * from[i++]);
      else
        out = simplifySize(out * to[j++]);
    }
    run.fromEnd = i, run.toEnd = j;
    runs.push_back(run);
  }
  if (i != int64_t(from.size()) || j != int64_t(to.size()))
    return std::nullopt;
  return runs;
}

/// reshape(op(reshape(x), broadcast(c))) -> op(x, broadcast(c')) for pointwise ops, where the reshapes are each other's
/// inverse: norms of bands or groups of channels, whose factors are broadcast along dims that x has apart or joined.
struct UnwrapReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    // Unit dims keep nothing apart.
    auto longer = [](Value value) {
      Sizes sizes = getSizes(value);
      llvm::erase_if(sizes, [](AffineExpr size) { return getConstantSize(size) == 1; });
      return sizes;
    };
    if (longer(op.getOperand()) == longer(op.getResult()))
      return rewriter.notifyMatchFailure(op, "joins and splits no dims");
    bool unwraps = false;
    if (!isFree(op.getOperand(), getSizes(op.getResult()), unwraps) || !unwraps)
      return rewriter.notifyMatchFailure(op, "not between reshapes");
    PrimBuilder b(rewriter, op);
    rewriter.replaceOp(op, reshaped(b, op.getOperand(), getSizes(op.getResult())));
    return success();
  }

private:
  // Constants that repeat within a run are written out up to so many elements.
  static constexpr int64_t kMostElements = 64 * 1024;

  static Operation *pointwise(Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->hasTrait<PointwiseTrait>() && op->getNumResults() == 1 && value.hasOneUse() ? op : nullptr;
  }

  /// Whether `value` has these sizes for nothing; `unwraps`: as what a reshape takes that would else be computed.
  static bool isFree(Value value, SizesRef sizes, bool &unwraps) {
    if (value.getDefiningOp<SplatOp>())
      return true;
    if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
      const bool isInverse = getSizes(reshape.getOperand()) == sizes;
      unwraps |= isInverse;
      return isInverse;
    }
    if (auto broadcast = value.getDefiningOp<BroadcastOp>())
      return canReshape(broadcast, sizes);
    Operation *op = pointwise(value);
    return op && op->getNumOperands() > 0 &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isFree(operand, sizes, unwraps); });
  }

  /// The runs of the broadcast's result that its operand has dims of.
  static std::optional<SmallVector<Run>> touchedRuns(BroadcastOp op, SizesRef sizes) {
    std::optional<SmallVector<Run>> runs = matchRuns(getSizes(op.getResult()), sizes);
    if (runs)
      llvm::erase_if(*runs, [&](const Run &run) {
        return llvm::none_of(op.getDims(), [&](int64_t dim) { return dim >= run.from && dim < run.fromEnd; });
      });
    return runs;
  }

  static bool canReshape(BroadcastOp op, SizesRef sizes) {
    const std::optional<SmallVector<Run>> runs = touchedRuns(op, sizes);
    const Sizes in = getSizes(op.getOperand()), out = getSizes(op.getResult());
    if (!runs || llvm::any_of(in, [](AffineExpr size) { return getConstantSize(size) == 1; }))
      return false;
    AffineExpr elements = getAffineConstantExpr(1, op.getContext());
    bool repeats = false;
    for (const Run &run : *runs)
      for (int64_t dim = run.from; dim < run.fromEnd; ++dim) {
        elements = simplifySize(elements * out[dim]);
        repeats |= !llvm::is_contained(op.getDims(), dim) && getConstantSize(out[dim]) != 1;
      }
    return !repeats || (op.getOperand().getDefiningOp<ConstantOp>() &&
                        getConstantSize(elements).value_or(kMostElements + 1) <= kMostElements);
  }

  static Value reshaped(PrimBuilder &b, Value value, SizesRef sizes) {
    if (auto splat = value.getDefiningOp<SplatOp>())
      return SplatOp::create(b, makeType(b.elementOf(value), sizes), splat.getValue());
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      return reshape.getOperand();
    if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
      const Sizes out = getSizes(value);
      Sizes full, split;
      SmallVector<int64_t> dims, into; // of the operand in the runs, and of the runs in the result
      const SmallVector<Run> runs = *touchedRuns(broadcast, sizes);
      for (const Run &run : runs) {
        for (int64_t dim = run.from; dim < run.fromEnd; ++dim) {
          if (llvm::is_contained(broadcast.getDims(), dim))
            dims.push_back(full.size());
          full.push_back(out[dim]);
        }
        for (int64_t dim = run.to; dim < run.toEnd; ++dim) {
          into.push_back(dim);
          split.push_back(sizes[dim]);
        }
      }
      return b.broadcastInDims(b.reshape(b.broadcastInDims(broadcast.getOperand(), full, dims), split), sizes, into);
    }
    Operation *op = pointwise(value);
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, reshaped(b, operand, sizes));
    Operation *copy = static_cast<OpBuilder &>(b).clone(*op, mapping);
    copy->getResult(0).setType(makeType(b.elementOf(value), sizes));
    return copy->getResult(0);
  }
};

/// reshape(transpose(x)) -> transpose(reshape(x)) where the dims that the reshape joins or splits are neighbours in x,
/// too: pixels as one dim and as two, before or after channels. Unit dims, which it drops, may be anywhere.
struct SinkThroughReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<TransposeOp>();
    if (!transpose || isConstantTranspose(op.getOperand()))
      return failure();
    const Sizes to = getSizes(op.getResult());
    Sizes from = getSizes(op.getOperand()), source = getSizes(transpose.getOperand());
    SmallVector<int64_t> permutation(transpose.getPermutation());
    std::optional<SmallVector<Run>> runs = neighbours(from, to, permutation);
    if (!runs) {
      dropUnitDims(source, permutation);
      from = permuted(source, permutation);
      runs = neighbours(from, to, permutation);
    }
    if (!runs)
      return rewriter.notifyMatchFailure(op, "joined dims are no neighbours, or sizes are not known to agree");
    // The runs in the order of x.
    SmallVector<Run> inOrder(*runs);
    llvm::sort(inOrder, [&](const Run &a, const Run &b) { return permutation[a.from] < permutation[b.from]; });
    Sizes sizes;
    SmallVector<int64_t> start(to.size()), back;
    for (const Run &run : inOrder)
      for (int64_t dim = run.to; dim < run.toEnd; ++dim) {
        start[dim] = sizes.size();
        sizes.push_back(to[dim]);
      }
    for (size_t dim = 0; dim < to.size(); ++dim)
      back.push_back(start[dim]);
    PrimBuilder b(rewriter, op);
    rewriter.replaceOp(op, b.transpose(b.reshape(transpose.getOperand(), sizes), back));
    return success();
  }

private:
  /// The runs from `from` to `to`, if the dims of each are neighbours before the permutation as well.
  static std::optional<SmallVector<Run>> neighbours(SizesRef from, SizesRef to, ArrayRef<int64_t> permutation) {
    std::optional<SmallVector<Run>> runs = matchRuns(from, to);
    if (runs)
      for (const Run &run : *runs)
        for (int64_t dim = run.from + 1; dim < run.fromEnd; ++dim)
          if (permutation[dim] != permutation[dim - 1] + 1)
            return std::nullopt;
    return runs;
  }
  static void dropUnitDims(Sizes &sizes, SmallVector<int64_t> &permutation) {
    for (int64_t dim = int64_t(sizes.size()) - 1; dim >= 0; --dim) {
      if (getConstantSize(sizes[dim]) != 1)
        continue;
      sizes.erase(sizes.begin() + dim);
      llvm::erase(permutation, dim);
      for (int64_t &other : permutation)
        other -= other > dim;
    }
  }
  static Sizes permuted(SizesRef sizes, ArrayRef<int64_t> permutation) {
    return llvm::map_to_vector(permutation, [&](int64_t dim) { return sizes[dim]; });
  }
};

/// A norm over a dim that joins others which a transpose brought together (channels of a group and pixels) is one over
/// these, so that the transpose can sink: norm(reshape(transpose(x))) -> reshape(norm(reshape(transpose(x)))), the
/// inner reshape splitting dims only.
struct NormOverParts : OpRewritePattern<NormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NormOp op, PatternRewriter &rewriter) const override {
    auto reshape = op.getOperand().getDefiningOp<ReshapeOp>();
    if (!reshape || !reshape.getOperand().getDefiningOp<TransposeOp>())
      return rewriter.notifyMatchFailure(op, "no reshape of a transpose before");
    const Sizes from = getSizes(reshape.getOperand()), to = getSizes(reshape.getResult());
    // The coarsest sizes that both sides join.
    Sizes parts;
    SmallVector<int64_t> dimOf; // of the reshape's result
    bool joins = false;
    size_t i = 0, j = 0;
    AffineExpr in = from.empty() ? AffineExpr() : from[0], out = to.empty() ? AffineExpr() : to[0];
    while (i < from.size() && j < to.size()) {
      const std::optional<AffineExpr> left = divideSize(out, in), leftIn = left ? std::nullopt : divideSize(in, out);
      if (!left && !leftIn)
        return rewriter.notifyMatchFailure(op, "sizes without common parts");
      parts.push_back(left ? in : out);
      dimOf.push_back(j);
      if (in == out) {
        in = ++i < from.size() ? from[i] : AffineExpr();
        out = ++j < to.size() ? to[j] : AffineExpr();
      } else if (left) {
        out = *left;
        in = ++i < from.size() ? from[i] : AffineExpr();
        joins = true;
      } else {
        in = *leftIn;
        out = ++j < to.size() ? to[j] : AffineExpr();
      }
    }
    if (i != from.size() || j != to.size() || !joins)
      return rewriter.notifyMatchFailure(op, "no dim that joins others");
    SmallVector<int64_t> dims;
    for (auto [part, dim] : llvm::enumerate(dimOf))
      if (llvm::is_contained(op.getDims(), dim))
        dims.push_back(part);
    PrimBuilder b(rewriter, op);
    Value result = b.norm(b.reshape(reshape.getOperand(), parts), dims, op.getEpsilon().convertToDouble(), op.getRms());
    rewriter.replaceOp(op, b.reshape(result, to));
    return success();
  }
};

/// dot_general(transpose(x), ..) -> dot_general(x, ..) with other dims, where batch dims stay in front and free dims in
/// order.
struct AbsorbIntoDot : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    for (bool isRhs : {false, true}) {
      auto transpose = (isRhs ? op.getRhs() : op.getLhs()).getDefiningOp<TransposeOp>();
      if (!transpose)
        continue;
      ArrayRef<int64_t> p = transpose.getPermutation(), batch = isRhs ? op.getRhsBatch() : op.getLhsBatch(),
                        contract = isRhs ? op.getRhsContract() : op.getLhsContract();
      auto unmoved = [&](int64_t dim) { return p[dim] == dim; };
      if (!llvm::all_of(batch, unmoved))
        continue;
      int64_t last = -1;
      bool inOrder = true;
      for (int64_t i = 0, e = p.size(); i < e; ++i)
        if (!llvm::is_contained(batch, i) && !llvm::is_contained(contract, i)) {
          inOrder &= p[i] > last;
          last = p[i];
        }
      if (!inOrder)
        continue;
      SmallVector<int64_t> dims;
      for (int64_t dim : contract)
        dims.push_back(p[dim]);
      PrimBuilder b(rewriter, op);
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(isRhs ? 1 : 0, transpose.getOperand());
        if (isRhs)
          op.setRhsContract(dims);
        else
          op.setLhsContract(dims);
      });
      return success();
    }
    return failure();
  }
};
} // namespace

void tc::prim::populateSinkThroughElementwise(RewritePatternSet &patterns) {
  patterns.add<SinkThroughElementwise>(patterns.getContext());
}

void tc::prim::populateSinkTransposes(RewritePatternSet &patterns) {
  patterns.add<SinkThroughReduce, SinkThroughUnary<PadOp>, SinkThroughUnary<SliceOp>, SinkThroughUnary<NormOp>,
               SinkThroughUnary<SoftmaxOp>, SinkThroughConcat, SinkThroughGather, UnwrapReshape, SinkThroughReshape,
               NormOverParts, AbsorbIntoDot>(patterns.getContext());
  populateSinkThroughElementwise(patterns);
}
