//===- InterleaveLanes.cpp - tc-interleave-lanes: vectors of a loop side by side ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emitter.h"
#include "tc/Codegen/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace tc::codegen {
#define GEN_PASS_DEF_INTERLEAVELANESPASS
#include "tc/Codegen/Passes.h.inc"
} // namespace tc::codegen

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// An iteration of fewer floating-point instructions has company enough in a processor's window; one of more would not
// leave registers to its neighbours.
constexpr int64_t kLeastOperations = 12, kMostOperations = 160;
// Registers that an iteration has for itself.
constexpr int64_t kRegisters = 8;

/// Whether the loop's iterations may be computed side by side, and gain by it.
bool isWorthwhile(scf::ForOp loop) {
  if (!loop.getInitArgs().empty())
    return false;
  int64_t operations = 0;
  bool stored = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (op.getNumRegions())
      return false;
    const bool loads = op.getNumResults() && llvm::any_of(op.getOperandTypes(), llvm::IsaPred<LLVM::LLVMPointerType>) &&
                       !isMemoryEffectFree(&op);
    // What is loaded after a store may be what was stored.
    if (loads && stored)
      return false;
    stored |= !op.getNumResults();
    operations += op.getNumResults() == 1 && isa<VectorType>(op.getResult(0).getType()) &&
                  getElementTypeOrSelf(op.getResult(0).getType()).isF32() && !op.hasTrait<OpTrait::ConstantLike>();
  }
  return operations >= kLeastOperations && operations <= kMostOperations;
}

/// Iterations side by side: as many as leave none over, if the number is known.
int64_t countTogether(std::optional<int64_t> iterations, int64_t most) {
  if (iterations)
    for (int64_t count = most; count > 1; --count)
      if (*iterations % count == 0)
        return count;
  return most;
}

void interleave(scf::ForOp loop, int64_t count, std::optional<int64_t> iterations) {
  OpBuilder b(loop);
  const Location loc = loop.getLoc();
  const Value lower = loop.getLowerBound(), step = loop.getStep();
  const Type type = lower.getType();
  auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value)); };
  const Value block = arith::MulIOp::create(b, loc, step, constant(count));
  Value end = loop.getUpperBound();
  if (!iterations || *iterations % count != 0) {
    const Value span = arith::SubIOp::create(b, loc, end, lower);
    const Value blocks = arith::DivSIOp::create(b, loc, span, block);
    end = arith::AddIOp::create(b, loc, lower, arith::MulIOp::create(b, loc, blocks, block));
  }
  auto together = scf::ForOp::create(b, loc, lower, end, block);
  disableUnrolling(together);
  loop.setLowerBound(end);
  disableUnrolling(loop);

  b.setInsertionPoint(together.getBody()->getTerminator());
  SmallVector<IRMapping> each(count);
  for (auto [number, mapping] : llvm::enumerate(each)) {
    const Value at = number == 0 ? together.getInductionVar()
                                 : Value(arith::AddIOp::create(b, loc, together.getInductionVar(),
                                                               arith::MulIOp::create(b, loc, step, constant(number))));
    mapping.map(loop.getInductionVar(), at);
  }
  for (Operation &op : loop.getBody()->without_terminator())
    for (IRMapping &mapping : each)
      b.clone(op, mapping);
  if (iterations && *iterations % count == 0)
    loop.erase();
}

struct InterleaveLanesPass : public codegen::impl::InterleaveLanesPassBase<InterleaveLanesPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->hasAttr(codegen::kIndependentLanes) && isWorthwhile(loop))
        loops.push_back(loop);
    });
    if (loops.empty())
      return markAllAnalysesPreserved(); // nor is anything verified again
    const int64_t most = getOperation().getMachine().getVectors().registers / kRegisters;
    for (scf::ForOp loop : loops) {
      std::optional<int64_t> iterations;
      if (std::optional<llvm::APInt> known = loop.getStaticTripCount())
        iterations = known->getSExtValue();
      if (iterations && *iterations < 2)
        continue;
      interleave(loop, countTogether(iterations, most), iterations);
    }
  }
};

} // namespace
