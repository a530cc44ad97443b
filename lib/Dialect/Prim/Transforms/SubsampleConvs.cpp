//===- SubsampleConvs.cpp - convolutions compute the pixels that are read -----------------------------------------===//
//
// A 1x1 convolution with a stride reads one pixel of several; so do slices with steps. Where all readers of an image
// leave out the same pixels, what makes the image by pointwise ops of convolutions need not compute them:
//
//   %y = prim.conv %x, %w  strides [1, 1]                      %y = prim.conv %x, %w  strides [2, 2]
//   %r = max %y, 0                                    -->      %r = max %y, 0
//   %z = prim.conv %r, %v  strides [2, 2]    (v 1x1)           %z = prim.conv %r, %v  strides [1, 1]
//
// A transpose, which copies the image (the caller's has its channels first), copies those pixels alone, too.
// (ResNets whose first 1x1 convolution of a stage has the stride: both readers of the sum before.) Values that others
// read as a whole (the shortcut of a sum) are sliced, which fusion reads through.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tc::prim {
#define GEN_PASS_DEF_SUBSAMPLECONVSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Every steps[i]-th element of dim i from the first on, up to the end.
using Steps = SmallVector<int64_t>;

bool isAll(ArrayRef<int64_t> steps) {
  return llvm::all_of(steps, [](int64_t step) { return step == 1; });
}

Sizes subsampled(SizesRef sizes, ArrayRef<int64_t> steps) {
  Sizes result;
  for (auto [size, step] : llvm::zip_equal(sizes, steps))
    result.push_back(simplifySize(size.ceilDiv(step)));
  return result;
}

/// The elements of `value` that its user reads, if they are such.
std::optional<Steps> readBy(Operation *user, Value value) {
  if (auto conv = dyn_cast<ConvOp>(user)) {
    if (conv.getInput() != value || conv.getFilter() == value)
      return std::nullopt;
    Steps steps{1};
    const Sizes filter = getSizes(conv.getFilter());
    for (size_t i = 0; i < conv.getStrides().size(); ++i) {
      const bool isPoint = getConstantSize(filter[i]) == 1 && conv.getPadLow()[i] == 0 && conv.getPadHigh()[i] == 0;
      steps.push_back(isPoint ? conv.getStrides()[i] : 1);
    }
    steps.push_back(1);
    return steps;
  }
  auto slice = dyn_cast<SliceOp>(user);
  if (!slice || llvm::any_of(slice.getSteps(), [](int64_t step) { return step < 1; }) ||
      llvm::any_of(slice.getStarts().getResults(), [](AffineExpr start) { return getConstantSize(start) != 0; }))
    return std::nullopt;
  Steps steps(slice.getSteps());
  // Of the batch and of the channels all are read.
  if (steps.size() < 3 || steps.front() != 1 || steps.back() != 1 ||
      subsampled(getSizes(value), steps) != getSizes(slice.getResult()))
    return std::nullopt;
  return steps;
}

/// The elements that all users of `value` read; nullopt if they differ or are all of them.
std::optional<Steps> readByAll(Value value) {
  std::optional<Steps> common;
  for (Operation *user : value.getUsers()) {
    std::optional<Steps> steps = readBy(user, value);
    if (!steps || isAll(*steps) || (common && *common != *steps) || user->getBlock() != value.getParentBlock())
      return std::nullopt;
    common = steps;
  }
  // Of sizes that are not known the two ways to count outputs need not be the same expression.
  if (common)
    for (auto [size, step] : llvm::zip_equal(getSizes(value), *common))
      if (step != 1 && !getConstantSize(size))
        return std::nullopt;
  return common;
}

/// The ops whose results are needed at those elements only: pointwise ones, convolutions and transposes, `root` among
/// them, in the order of the block. Empty if there is nothing to save: no convolution and no transpose.
SmallVector<Operation *> collectCone(Value root, ArrayRef<int64_t> steps) {
  llvm::SetVector<Operation *> cone;
  SmallVector<Operation *> open;
  bool saves = false;
  auto enter = [&](Operation *op) {
    const bool ends = isa_and_nonnull<ConvOp, TransposeOp>(op);
    if (!op || op->getBlock() != root.getParentBlock() || op->getNumResults() != 1 ||
        (!ends && !op->hasTrait<PointwiseTrait>()))
      return;
    cone.insert(op);
    saves |= ends;
    if (!ends)
      open.push_back(op);
  };
  enter(root.getDefiningOp());
  // Ops that several in the cone read enter with the last of them.
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands())
      if (llvm::all_of(operand.getUsers(),
                       [&](Operation *user) { return cone.contains(user) && !isa<ConvOp, TransposeOp>(user); }))
        if (Operation *op = operand.getDefiningOp(); op && !cone.contains(op))
          enter(op);
  if (!saves)
    return {};
  SmallVector<Operation *> ordered = cone.takeVector();
  llvm::sort(ordered, [](Operation *lhs, Operation *rhs) { return lhs->isBeforeInBlock(rhs); });
  return ordered;
}

struct SubsampleConvsPass : public tc::prim::impl::SubsampleConvsPassBase<SubsampleConvsPass> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) {
      // Last first: what a convolution needs of its input depends on its own stride.
      SmallVector<Operation *> ops = llvm::map_to_vector(*block, [](Operation &op) { return &op; });
      llvm::DenseSet<Operation *> erased;
      for (size_t i = ops.size(); i-- > 0;) {
        Operation *op = ops[i];
        if (erased.contains(op) || op->getNumResults() != 1 ||
            !(isa<ConvOp, TransposeOp>(op) || op->hasTrait<PointwiseTrait>()))
          continue;
        // Convolutions that are made here stand where those were that they replace: they are visited for them.
        const Value root = op->getResult(0);
        std::optional<Steps> steps = readByAll(root);
        if (!steps)
          continue;
        SmallVector<Operation *> cone = collectCone(root, *steps);
        if (cone.empty())
          continue;
        IRMapping mapping;
        for (Operation *old : cone)
          mapping.map(old->getResult(0), subsample(old, *steps, mapping)->getResult(0));
        for (Operation *user : llvm::make_early_inc_range(root.getUsers()))
          readAll(user, mapping.lookup(root));
        for (Operation *old : llvm::reverse(cone)) {
          for (size_t j = 0; j < i; ++j)
            if (ops[j] == old)
              ops[j] = mapping.lookup(old->getResult(0)).getDefiningOp();
          erased.insert(old);
          old->erase();
        }
      }
    });
  }

private:
  /// The op of the cone for every steps[i]-th element of its result.
  static Operation *subsample(Operation *op, ArrayRef<int64_t> steps, IRMapping &mapping) {
    OpBuilder builder(op);
    PrimBuilder b(builder, op);
    const Value result = op->getResult(0);
    Type type = makeType(b.elementOf(result), subsampled(getSizes(result), steps));
    if (auto conv = dyn_cast<ConvOp>(op)) {
      SmallVector<int64_t> strides(conv.getStrides());
      for (size_t i = 0; i < strides.size(); ++i)
        strides[i] *= steps[1 + i];
      return ConvOp::create(b, type, conv.getInput(), conv.getFilter(), strides, conv.getDilations(), conv.getPadLow(),
                            conv.getPadHigh(), conv.getGroups());
    }
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      SmallVector<int64_t> ofOperand(steps.size());
      for (auto [step, dim] : llvm::zip_equal(steps, transpose.getPermutation()))
        ofOperand[dim] = step;
      return b.transpose(sliced(b, transpose.getOperand(), ofOperand), transpose.getPermutation()).getDefiningOp();
    }
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, sliced(b, operand, steps));
    Operation *copy = builder.clone(*op, mapping);
    copy->getResult(0).setType(type);
    return copy;
  }

  static Value sliced(PrimBuilder &b, Value value, ArrayRef<int64_t> steps) {
    const Sizes sizes = getSizes(value), fewer = subsampled(sizes, steps);
    if (auto splat = value.getDefiningOp<SplatOp>())
      return SplatOp::create(b, makeType(b.elementOf(value), fewer), splat.getValue());
    if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
      // What repeats along the dims repeats less often.
      const Sizes from = getSizes(broadcast.getOperand());
      bool repeats = true;
      for (auto [dim, size] : llvm::zip_equal(broadcast.getDims(), from))
        repeats &= steps[dim] == 1 || getConstantSize(size) == 1;
      if (repeats)
        return b.broadcastInDims(broadcast.getOperand(), fewer, broadcast.getDims());
    }
    return b.slice(value, Sizes(sizes.size(), b.size(0)), steps, fewer);
  }

  /// Lets a reader of some elements read all of `value`, which are those.
  static void readAll(Operation *user, Value value) {
    if (auto slice = dyn_cast<SliceOp>(user)) {
      slice.getResult().replaceAllUsesWith(value);
      slice.erase();
      return;
    }
    auto conv = cast<ConvOp>(user);
    const std::optional<Steps> steps = readBy(user, conv.getInput());
    SmallVector<int64_t> strides(conv.getStrides());
    for (size_t i = 0; i < strides.size(); ++i)
      if ((*steps)[1 + i] != 1)
        strides[i] = 1;
    conv.getInputMutable().assign(value);
    conv.setStrides(strides);
  }
};

} // namespace
