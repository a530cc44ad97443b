//===- Anchor.cpp - what stands around the op that a kernel is built for ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Anchor.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

static bool isPointwise(Operation *op) { return op->hasTrait<prim::PointwiseTrait>(); }
static bool isBijection(Operation *op) { return op->hasTrait<prim::BijectiveTrait>(); }
static kernel::YieldOp yieldOf(kernel::RegionOp region) {
  return cast<kernel::YieldOp>(region.getBody().front().getTerminator());
}

Operation *tc::codegen::findAnchor(kernel::RegionOp region) {
  Operation *anchor = nullptr;
  for (Operation &op : region.getBody().front()) {
    if (prim::getRole(&op) != prim::Role::Contraction && !isa<prim::RnnOp>(op))
      continue;
    if (anchor)
      return nullptr;
    anchor = &op;
  }
  return anchor;
}

bool tc::codegen::isF32(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType().isF32(); }

FailureOr<Epilogue> Epilogue::analyze(kernel::RegionOp region, Value result) {
  Epilogue epilogue;
  epilogue.result = result;
  // Two values stand at the same position of the result when the same movements lead to them.
  llvm::DenseMap<Value, SmallVector<Operation *, 2>> moves;
  moves[result] = {};
  for (Operation &op : region.getBody().front().without_terminator()) { // outputs may stand at positions of their own
    std::optional<unsigned> first;
    for (OpOperand &operand : op.getOpOperands()) {
      if (!moves.contains(operand.get()))
        continue;
      if (first && moves[op.getOperand(*first)] != moves[operand.get()])
        return failure();
      if (!first)
        first = operand.getOperandNumber();
    }
    if (!first)
      continue;
    if (isPointwise(&op)) {
      SmallVector<Operation *, 2> path = moves[op.getOperand(*first)];
      moves[op.getResult(0)] = path;
    } else if (isBijection(&op)) {
      SmallVector<Operation *, 2> path = moves[op.getOperand(*first)];
      path.push_back(&op);
      moves[op.getResult(0)] = path;
    } else {
      return failure();
    }
    epilogue.steps.push_back({&op, *first});
  }
  for (auto [number, value] : llvm::enumerate(yieldOf(region).getValues()))
    if (moves.contains(value))
      epilogue.outputs.push_back(number);
  return epilogue;
}

void Epilogue::store(Emitter &em, ArrayRef<Index> at, Value value) const {
  em.setSource(result, [value](ArrayRef<Index>) { return value; });
  em.setPosition(result, at);
  llvm::DenseMap<Value, SmallVector<Index>> positions;
  positions[result] = SmallVector<Index>(at);
  for (auto [op, operand] : steps) {
    SmallVector<Index> position = positions[op->getOperand(operand)];
    if (isBijection(op))
      position = em.forward(op, position);
    em.setPosition(op->getResult(0), position);
    positions[op->getResult(0)] = std::move(position);
  }
  // All values before all stores: an output may lie on an input.
  auto yield = yieldOf(em.region());
  SmallVector<Value> values;
  for (unsigned output : outputs)
    values.push_back(em.emit(yield.getValues()[output], positions[yield.getValues()[output]]));
  for (auto [output, stored] : llvm::zip_equal(outputs, values)) {
    Value root = yield.getValues()[output];
    em.store(stored, em.output(output), cast<RankedTensorType>(root.getType()).getElementType(), prim::getSizes(root),
             positions[root]);
  }
}

SmallVector<int64_t> Epilogue::inPlace(kernel::RegionOp region) const {
  llvm::SmallPtrSet<Operation *, 8> onTheWay;
  bool moved = false;
  for (auto [op, operand] : steps) {
    onTheWay.insert(op);
    moved |= isBijection(op);
  }
  SmallVector<int64_t> pairs;
  if (moved)
    return pairs;
  llvm::SmallDenseSet<unsigned> taken;
  auto elementBits = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType().getIntOrFloatBitWidth();
  };
  for (BlockArgument argument : region.getBody().getArguments()) {
    // Every reader is a pointwise op of the epilogue, so each element is read where the outputs' elements are written.
    bool onlyHere = llvm::all_of(argument.getUsers(), [&](Operation *user) { return onTheWay.contains(user); });
    if (!onlyHere || argument.use_empty())
      continue;
    for (unsigned output : outputs) {
      Value root = yieldOf(region).getValues()[output];
      if (taken.contains(output) || !prim::sameSizes(root.getType(), argument.getType()) ||
          elementBits(root) != elementBits(argument))
        continue;
      taken.insert(output);
      pairs.append({int64_t(argument.getArgNumber()), int64_t(output)});
      break;
    }
  }
  return pairs;
}

std::optional<unsigned> tc::codegen::inputThroughReshapes(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(prim::skipReshapes(value)))
    return argument.getArgNumber();
  return std::nullopt;
}

bool tc::codegen::isInnermost(Value value, int64_t dim) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return dim + 1 == cast<RankedTensorType>(value.getType()).getRank();
    if (auto concat = dyn_cast<prim::ConcatOp>(op))
      return llvm::all_of(concat.getInputs(), [&](Value input) { return isInnermost(input, dim); });
    if (isPointwise(op) && op->getNumOperands() != 0) {
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

SmallVector<AffineExpr> tc::codegen::delinearizeExpr(AffineExpr linear, ArrayRef<AffineExpr> sizes) {
  SmallVector<AffineExpr> at(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t size = std::max<int64_t>(1, *prim::getConstantSize(sizes[i]));
    at[i] = i == 0 ? linear : linear % size;
    linear = linear.floorDiv(size);
  }
  return at;
}

std::optional<ConstantView> tc::codegen::traceConstant(Value value, llvm::function_ref<bool(unsigned)> isConstant,
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
               convert && widens && isF32(value) &&
               (elementOf(convert.getOperand()).isF16() || elementOf(convert.getOperand()).isBF16())) {
      value = convert.getOperand();
    } else {
      return std::nullopt;
    }
  }
}
