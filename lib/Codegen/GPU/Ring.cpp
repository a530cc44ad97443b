//===- Ring.cpp - slots of shared memory between warps that fill and warps that read ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Ring.h"

#include "Common/EmitterHelpers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

void Ring::init() const {
  for (int64_t slot = 0; slot < slots; ++slot) {
    initBarrier(e, barrierAt(w.constant(slot)), fillingThreads);
    initBarrier(e, barrierAt(w.constant(slots + slot)), readingWarps);
  }
}

Ring::Place Ring::next(Place place) const {
  const Value after = w.add(place.slot, 1);
  const Value wraps = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, after, w.constant(slots));
  return {w.select(wraps, w.constant(0), after), w.select(wraps, w.bitXor(place.lap, w.constant(1)), place.lap)};
}

void Ring::awaitEmpty(Place place) const { awaitPhase(e, emptyBarrier(place), w.bitXor(place.lap, w.constant(1))); }

Value Ring::expect(Place place, Value bytes, Value condition) const {
  arriveExpecting(e, fullBarrier(place), bytes, condition);
  return fullBarrier(place);
}

void Ring::awaitFull(Place place) const {
  awaitPhase(e, fullBarrier(place), place.lap);
  // Copies by threads are ordinary writes: a reader may order them behind its waiting as well as who made them.
  if (!hasTensorCopies)
    fenceForTensorCores(e);
}

void Ring::release(Place place, Value condition) const {
  const Value lane = w.rem(threadNumber(e), machine::kWarpThreads);
  const Value isFirst = w.less(lane, w.constant(1));
  arriveAtBarrier(e, emptyBarrier(place),
                  condition ? Value(arith::AndIOp::create(e.builder(), e.loc(), isFirst, condition)) : isFirst);
}

void tc::codegen::gpu::ifElse(Emitter &e, Value condition, llvm::function_ref<void()> then,
                              llvm::function_ref<void()> otherwise) {
  OpBuilder &b = e.builder();
  auto branch = scf::IfOp::create(b, e.loc(), condition, /*withElseRegion=*/true);
  auto emit = [&](Block &block, llvm::function_ref<void()> fn) {
    // A branch of its own in each: what the emitter keeps of one is not there in the other.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(block.getTerminator());
    e.ifThen(arith::ConstantIntOp::create(b, e.loc(), 1, 1), fn);
  };
  emit(branch.getThenRegion().front(), then);
  emit(branch.getElseRegion().front(), otherwise);
}
