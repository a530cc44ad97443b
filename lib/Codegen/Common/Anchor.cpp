//===- Anchor.cpp - how kernels read what an anchor reads, and store what follows it ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Anchor.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

bool tc::codegen::isF32(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType().isF32(); }

void tc::codegen::storeEpilogue(Emitter &em, const Epilogue &epilogue, ArrayRef<Index> at, Value value) {
  const Value result = epilogue.getResult();
  em.setSource(result, [value](ArrayRef<Index>) { return value; });
  em.setPosition(result, at);
  llvm::DenseMap<Value, SmallVector<Index>> positions;
  positions[result] = SmallVector<Index>(at);
  for (auto [op, operand] : epilogue.getSteps()) {
    SmallVector<Index> position = positions[op->getOperand(operand)];
    if (op->hasTrait<prim::BijectiveTrait>())
      position = em.forward(op, position);
    em.setPosition(op->getResult(0), position);
    positions[op->getResult(0)] = std::move(position);
  }
  // All values before all stores: an output may lie on an input.
  auto yield = cast<kernel::YieldOp>(em.region().getBody().front().getTerminator());
  SmallVector<Value> values;
  for (unsigned output : epilogue.roots())
    values.push_back(em.emit(yield.getValues()[output], positions[yield.getValues()[output]]));
  for (auto [output, stored] : llvm::zip_equal(epilogue.roots(), values)) {
    Value root = yield.getValues()[output];
    em.store(stored, em.output(output), cast<RankedTensorType>(root.getType()).getElementType(), prim::getSizes(root),
             positions[root]);
  }
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
