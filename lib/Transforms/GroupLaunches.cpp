//===- GroupLaunches.cpp - launches that run at the same time -----------------------------------------------------===//
//
// A launch of few tasks leaves threads idle: a recurrent layer walks its steps in one task for each block of the batch.
// Launches that do not depend on each other then share one fork of the thread pool:
//
//   %a = host.launch @gates(%x)                          %a = host.launch @gates(%x)
//   %f = host.launch @forward(%a)   tasks 1      -->     %b = host.launch @gates(%x)
//   %b = host.launch @gates(%x)                          %f = host.launch @forward(%a)  {group = 0}
//   %r = host.launch @backward(%b)  tasks 1              %r = host.launch @backward(%b) {group = 0}
//
// What a later member needs is moved before the first one, over launches and views only: checks, branches and loops
// stay where they are. Launches of many tasks are left alone, for their values would live longer and nothing is idle.
//
// Launches in steps have company only of launches that take as many: a group takes them together, and its threads wait
// for each other once a step instead of once for each member.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Transforms/Passes.h"
#include "tc/Transforms/Preferences.h"

#include "llvm/ADT/SetVector.h"

namespace tc {
#define GEN_PASS_DEF_GROUPLAUNCHESPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;
using namespace tc::host;

namespace {

int64_t evaluate(AffineExpr expr, LaunchOp launch) { return evaluateLikely(expr, launch, usual::kSymbol); }

int64_t rangesOf(LaunchOp launch) {
  return evaluate(launch.getTasks().getResult(0), launch) /
         std::max<int64_t>(1, evaluate(launch.getGrain().getResult(0), launch));
}

int64_t enoughRanges(LaunchOp launch, const Preferences &prefer) {
  return launch.getSteps() ? prefer.enoughStepRanges : prefer.enoughRanges;
}

bool isMember(Operation &op, const Preferences &prefer) {
  auto launch = dyn_cast<LaunchOp>(op);
  if (!launch || launch.getDeviceAttr() || launch.getGroup() || rangesOf(launch) >= enoughRanges(launch, prefer))
    return false;
  const bool isTask = evaluate(launch.getTasks().getResult(0), launch) == 1;
  base::CostAttr cost = launch.getCostAttr();
  return cost && (evaluate(cost.getFlopsExpr(), launch) >= (isTask ? prefer.forkTaskFlops : prefer.forkFlops) ||
                  evaluate(cost.getBytesExpr(), launch) >= prefer.forkBytes);
}

/// Whether the op only depends on what it reads, so that it may run earlier.
bool isMovable(Operation &op) {
  return isa<LaunchOp, ConstantOp, prim::ConstantOp, prim::ReshapeOp>(op) && prim::getBoundSymbols(&op).empty();
}

/// Gives `first` company from the ops behind it.
void group(LaunchOp first, int64_t number, const Preferences &prefer) {
  int64_t ranges = std::max<int64_t>(1, rangesOf(first));
  LaunchOp last = first;
  llvm::SmallPtrSet<Operation *, 16> dependent{first}; // on a member
  SmallVector<Operation *> between;                    // not dependent, in order
  unsigned seen = 0;
  const int64_t enough = enoughRanges(first, prefer);
  for (Operation *op = first->getNextNode(); op && isMovable(*op) && seen < prefer.groupWindow && ranges < enough;
       ++seen) {
    Operation *next = op->getNextNode();
    if (llvm::any_of(op->getOperands(), [&](Value value) { return dependent.contains(value.getDefiningOp()); })) {
      dependent.insert(op);
    } else if (!isMember(*op, prefer) || cast<LaunchOp>(op).getStepsAttr() != first.getStepsAttr()) {
      between.push_back(op);
    } else {
      // What it needs of the ops between, in their order.
      llvm::SmallPtrSet<Operation *, 16> needed{op};
      for (Operation *candidate : llvm::reverse(between))
        if (llvm::any_of(candidate->getUsers(), [&](Operation *user) { return needed.contains(user); }))
          needed.insert(candidate);
      for (Operation *candidate : between)
        if (needed.contains(candidate))
          candidate->moveBefore(first);
      llvm::erase_if(between, [&](Operation *candidate) { return needed.contains(candidate); });
      op->moveAfter(last);
      last = cast<LaunchOp>(op);
      first.setGroup(number);
      last.setGroup(number);
      dependent.insert(op);
      ranges += std::max<int64_t>(1, rangesOf(last));
    }
    op = next;
  }
}

struct GroupLaunches : public tc::impl::GroupLaunchesPassBase<GroupLaunches> {
  void runOnOperation() override {
    getOperation().walk([](LaunchOp launch) { launch.removeGroupAttr(); });
    const Preferences prefer = Preferences::get(machine::TargetKind::Cpu); // whose threads share a fork
    int64_t number = 0;
    getOperation().walk([&](Block *block) {
      for (Operation &op : *block)
        if (isMember(op, prefer))
          group(cast<LaunchOp>(op), number++, prefer);
    });
  }
};

} // namespace
