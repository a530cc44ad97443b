//===- PairGathers.cpp - tc-pair-gathers: gathers of neighbours as one of pairs -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Codegen/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tc::codegen {
#define GEN_PASS_DEF_PAIRGATHERSPASS
#include "tc/Codegen/Passes.h.inc"
} // namespace tc::codegen

using namespace mlir;
using namespace tc::codegen;

namespace {

// Bytes of elements of which a gather of pairs is one instruction.
constexpr unsigned kBytes = 4;

/// What a gather reads: at `base`, so many elements behind the sum of `terms`, which are scalars or lanes, where it is
/// not masked.
struct Gathered {
  mutable LLVM::masked_gather op; // accessors of ops are not const
  Value base;
  SmallVector<Value> terms;
  int64_t displacement = 0;
};

/// Adds what `index` is the sum of.
void addTerms(Gathered &to, Value index) {
  APInt number; // of all lanes
  if (matchPattern(index, m_ConstantInt(&number))) {
    to.displacement += number.getSExtValue();
  } else if (auto add = index.getDefiningOp<arith::AddIOp>()) {
    addTerms(to, add.getLhs());
    addTerms(to, add.getRhs());
  } else {
    to.terms.push_back(index);
  }
}

std::optional<Gathered> readGather(LLVM::masked_gather op) {
  const auto type = dyn_cast<VectorType>(op.getType());
  auto at = op.getPtrs().getDefiningOp<LLVM::GEPOp>();
  if (!type || type.getElementTypeBitWidth() != kBytes * 8 || !at || at.getDynamicIndices().size() != 1 ||
      at.getRawConstantIndices().size() != 1 || isa<VectorType>(at.getBase().getType()))
    return std::nullopt;
  const Type element = type.getElementType();
  Gathered gathered{op, at.getBase(), {}};
  auto addIndex = [&](LLVM::GEPOp gep) {
    if (gep.getDynamicIndices().empty())
      gathered.displacement += gep.getRawConstantIndices().front();
    else
      addTerms(gathered, gep.getDynamicIndices().front());
  };
  if (at.getElemType() != element)
    return std::nullopt;
  addIndex(at);
  if (auto start = gathered.base.getDefiningOp<LLVM::GEPOp>();
      start && start.getElemType() == element && start.getRawConstantIndices().size() == 1) {
    gathered.base = start.getBase();
    addIndex(start);
  }
  llvm::sort(gathered.terms, [](Value a, Value b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); });
  return gathered;
}

/// Whether `second`, behind `first` in a block, may as well be read there.
bool mayMoveUp(Operation *first, Operation *second) {
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    if (!isMemoryEffectFree(op) && !isa<LLVM::LoadOp, LLVM::MaskedLoadOp, LLVM::masked_gather>(op))
      return false;
  return true;
}

bool areNeighbours(const Gathered &low, const Gathered &high) {
  return low.base == high.base && low.terms == high.terms && low.displacement + 1 == high.displacement &&
         low.op.getMask() == high.op.getMask() && low.op.getType() == high.op.getType() &&
         low.op.getPassThru() == high.op.getPassThru();
}

/// Gathers both at `first`, which comes before the other one.
void pair(const Gathered &low, const Gathered &high, Operation *first) {
  OpBuilder b(first);
  const Location loc = first->getLoc();
  const auto type = cast<VectorType>(low.op.getType());
  const auto pairs = VectorType::get(type.getShape(), b.getIntegerType(kBytes * 16));
  const auto halves = VectorType::get({2 * type.getNumElements()}, type.getElementType());
  Value at = low.op.getPtrs();
  if (first != low.op) {
    // Where the lower one's pointers are made may be behind.
    at = high.op.getPtrs();
    auto gep = at.getDefiningOp<LLVM::GEPOp>();
    const Value start = LLVM::GEPOp::create(b, loc, gep.getBase().getType(), type.getElementType(), gep.getBase(),
                                            ArrayRef<LLVM::GEPArg>{-1});
    at = LLVM::GEPOp::create(b, loc, at.getType(), type.getElementType(), start,
                             ArrayRef<LLVM::GEPArg>{gep.getDynamicIndices().front()});
  }
  const Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(pairs));
  const Value read =
      LLVM::masked_gather::create(b, loc, pairs, at, low.op.getMask(), ValueRange{none}, low.op.getAlignment());
  const Value both = vector::BitCastOp::create(b, loc, halves, read);
  auto replace = [&](const Gathered &gathered, int64_t half) {
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
      order.push_back(2 * lane + half);
    gathered.op.getResult().replaceAllUsesWith(vector::ShuffleOp::create(b, loc, both, both, order).getResult());
  };
  replace(low, 0);
  replace(high, 1);
}

/// Whether lanes that are off give 0.
bool givesZero(LLVM::masked_gather op) {
  return op.getPassThru().size() == 1 &&
         (matchPattern(op.getPassThru().front(), m_Zero()) || matchPattern(op.getPassThru().front(), m_AnyZeroFloat()));
}

/// Whether there were any.
bool pairInBlock(Block &block) {
  SmallVector<Gathered> open;
  SmallVector<Operation *> paired;
  for (LLVM::masked_gather op : llvm::to_vector(block.getOps<LLVM::masked_gather>())) {
    std::optional<Gathered> gathered = readGather(op);
    if (!gathered || !givesZero(op))
      continue;
    auto *const other = llvm::find_if(open, [&](const Gathered &before) {
      return (areNeighbours(before, *gathered) || areNeighbours(*gathered, before)) && mayMoveUp(before.op, op);
    });
    if (other == open.end()) {
      open.push_back(*gathered);
      continue;
    }
    const bool isLow = areNeighbours(*other, *gathered);
    pair(isLow ? *other : *gathered, isLow ? *gathered : *other, other->op);
    paired.append({other->op, op});
    open.erase(other);
  }
  for (Operation *op : llvm::reverse(paired))
    op->erase();
  return !paired.empty();
}

struct PairGathersPass : public tc::codegen::impl::PairGathersPassBase<PairGathersPass> {
  void runOnOperation() override {
    bool changes = false;
    getOperation()->walk([&](Block *block) { changes |= pairInBlock(*block); });
    if (!changes)
      markAllAnalysesPreserved(); // nor is anything verified again
  }
};

} // namespace
