//===- FuseJoins.cpp - which group an op joins --------------------------------------------------------------------===//
//
// In program order: each op joins a group of one of its producers or begins one of its own; then groups take in the
// transposes behind contractions.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FusePlan.h"

#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

std::string Plan::refuseCommon(int id, Operation *op) {
  Group &group = groups[id];
  if (int64_t(group.ops.size()) + group.copied >= limits.maxOps)
    return "the kernel has the most ops that it may have, " + std::to_string(limits.maxOps);
  // op brings its other producers in front of the group: none of them may come after it.
  for (int other : depsOf(op))
    if (other != id && dependsOn(other, id))
      return describe(groups[other].anchor()) + " must run between them";
  groupMap[op] = id;
  groups[id].ops.push_back(op);
  int64_t buffers = countBuffers({id});
  groups[id].ops.pop_back();
  groupMap.erase(op);
  if (buffers > limits.maxBuffers)
    return "the kernel would use " + std::to_string(buffers) + " buffers, of at most " +
           std::to_string(limits.maxBuffers);
  return {};
}

bool tc::fuse::isGathered(const Use &use) {
  return llvm::any_of(use.chain, [](Operation *op) { return prim::getAccess(op) == prim::Access::AtData; });
}

int Plan::gatherDepth(Operation *op, int id, ArrayRef<Use> uses) {
  int depth = 0;
  for (const Use &use : uses) {
    Operation *def = use.leaf.getDefiningOp();
    depth = std::max(depth, (def && groupOf(def) == id ? gatherDepths.lookup(def) : 0) + isGathered(use));
  }
  gatherDepths[op] = depth;
  return depth;
}

int Plan::mostGathers(int id) const {
  int most = 0;
  for (Operation *op : groups[id].ops)
    most = std::max(most, gatherDepths.lookup(op));
  return most;
}

bool Plan::hasFewLongRows(ArrayRef<AffineExpr> space, int rowRank, Operation *op) const {
  return prefer.leastRows && getLikelyCount(space.take_front(rowRank), op) < double(prefer.leastRows) &&
         getLikelyCount(space.drop_front(rowRank), op) >= double(prefer.longRow);
}

std::string Plan::refuse(int id, Operation *op, ArrayRef<Use> uses, int &frame) {
  Group &group = groups[id];
  if (group.kind == Group::Function)
    return "it is no kernel, but runs on the host";
  if (group.kind == Group::Alone)
    return describe(group.anchor()) + " is a kernel of its own, which takes in no nodes behind it";
  Value result = op->getResult(0);
  if (group.kind == Group::Loops) {
    Space space = getSpace(result);
    bool full = space == group.space;
    bool row =
        !full && group.rowRank >= 0 && ArrayRef<AffineExpr>(space) == ArrayRef(group.space).take_front(group.rowRank);
    if (!full && !row)
      return "it has another shape than the loops there";
    if (gatherDepth(op, id, uses) > prefer.gathersInTurn)
      return "it would look up elements by indices that are looked up themselves";
    for (const Use &use : uses) {
      Operation *def = use.leaf.getDefiningOp();
      if (!def || groupOf(def) != id)
        continue;
      bool rowValue = rowOps.contains(def);
      if (full && rowValue && hasFewLongRows(group.space, group.rowRank, op))
        return kFewLongRows.str();
      std::optional<unsigned> aligned = alignedRank(use.leaf, use.map, result);
      unsigned expected = rowValue ? unsigned(group.rowRank) : unsigned(group.space.size());
      if (!aligned || *aligned != expected || (row && !rowValue))
        return "it reads other elements than the one that is computed there";
    }
  } else {
    if (getRole(op) == Role::Movement && !isBijection(op))
      return "products and convolutions take in only elementwise nodes, transposes and reshapes";
    const bool isAlong = isWidthVectorised(group.anchor(), prefer);
    if (transposesInnermost(op) && !isAlong)
      return "neighbouring elements would be stored far apart";
    int found = -1;
    for (const Use &use : uses) {
      Operation *def = use.leaf.getDefiningOp();
      if (!def || groupOf(def) != id)
        continue;
      SmallVector<Operation *> links;
      llvm::copy_if(llvm::reverse(use.chain), std::back_inserter(links),
                    [&](Operation *link) { return !widening.contains(link); });
      if (getRole(op) == Role::Movement)
        links.push_back(op);
      if (!llvm::all_of(links, isBijection))
        return "it reads other elements than the one that is computed there";
      // Transposed once and stored by what reads it: a residual that lies in the other layout. Transposed twice, it
      // lies as it was.
      if (!isAlong && llvm::count_if(links, transposesInnermost) % 2 != 0)
        return "neighbouring elements would be stored far apart";
      // Code generation follows the very ops that move the result: two paths are two positions, even if they are equal.
      int next = frames.lookup(def);
      for (Operation *link : links)
        next = frameIds.try_emplace({next, orderMap[link]}, int(frameIds.size()) + 1).first->second;
      if (found >= 0 && next != found)
        return "it reads two different elements of it";
      found = next;
    }
    frame = found;
  }
  return refuseCommon(id, op);
}

std::string Plan::refuseReduce(int id, Operation *op, ArrayRef<Use> uses) {
  Group &group = groups[id];
  std::optional<unsigned> rowRank = getRowRank(op);
  if (group.kind == Group::Contraction)
    return "it needs whole rows of " + describe(group.anchor()) + ", which is computed in tiles";
  if (group.kind != Group::Loops)
    return describe(group.anchor()) + " is a kernel of its own, which takes in no nodes behind it";
  if (!rowRank)
    return "it reduces other dims than the last ones";
  if (group.heavy)
    return "each pass over a row would compute its elements again, which is costly";
  Value operand = op->getOperand(0);
  if (getSpace(operand) != group.space)
    return "it has another shape than the loops there";
  if (group.rowRank >= 0 && group.rowRank != int(*rowRank))
    return "the kernel reduces other dims";
  // What is computed before is computed again by whoever else reads it.
  if (hasFewLongRows(group.space, *rowRank, op))
    return kFewLongRows.str();
  for (const Use &use : uses) {
    Operation *def = use.leaf.getDefiningOp();
    if (!def || groupOf(def) != id)
      continue;
    std::optional<unsigned> aligned = alignedRank(use.leaf, use.map, operand);
    if (!aligned || *aligned != (rowOps.contains(def) ? unsigned(group.rowRank) : unsigned(group.space.size())))
      return "it reads other elements than the one that is computed there";
  }
  return refuseCommon(id, op);
}

bool Plan::tryGroups(Operation *op, ArrayRef<Use> uses) {
  SmallVector<Operation *> producers;
  for (const Use &use : uses)
    if (Operation *def = use.leaf.getDefiningOp();
        def && groupOf(def) >= 0 && getRole(def) != Role::Function && !llvm::is_contained(producers, def))
      producers.push_back(def);
  llvm::sort(producers, [&](Operation *a, Operation *b) { return orderMap[a] > orderMap[b]; });
  bool joined = false;
  for (Operation *producer : producers) {
    int id = groupOf(producer);
    if (joined) {
      if (groupOf(op) != id)
        note(producer, op, "it is in the kernel of " + describe(groups[groupOf(op)].anchor()));
      continue;
    }
    int frame = 0;
    std::string reason = getRole(op) == Role::Reduce ? refuseReduce(id, op, uses) : refuse(id, op, uses, frame);
    if (!reason.empty()) {
      note(producer, op, reason);
      continue;
    }
    Group &group = groups[id];
    if (group.kind == Group::Contraction) {
      frames[op] = frame;
    } else if (getRole(op) == Role::Reduce) {
      group.rowRank = *getRowRank(op);
      rowOps.insert(op);
    } else if (getSpace(op->getResult(0)) != group.space) {
      rowOps.insert(op);
    }
    if (getRole(op) == Role::Movement)
      group.pinned = true;
    join(id, op);
    joined = true;
  }
  return joined;
}

void Plan::assign() {
  for (Operation *op : ops) {
    Role role = getRole(op);
    if ((role == Role::Movement && !pinned.contains(op)) || widening.contains(op))
      continue;
    if (role == Role::Function) {
      makeGroup(Group::Function, op);
      continue;
    }
    if (isAlone(op)) {
      makeGroup(Group::Alone, op);
      continue;
    }
    SmallVector<Use> uses = usesOf(op);
    switch (role) {
    case Role::Pointwise:
    case Role::Movement:
      if (!tryGroups(op, uses)) {
        int id = makeGroup(Group::Loops, op);
        gatherDepth(op, id, uses);
        groups[id].pinned = role == Role::Movement;
      }
      break;
    case Role::Reduce:
      if (!tryGroups(op, uses)) {
        int id = makeGroup(Group::Loops, op);
        gatherDepth(op, id, uses);
        if (std::optional<unsigned> rowRank = getRowRank(op)) {
          groups[id].space = getSpace(op->getOperand(0));
          groups[id].rowRank = *rowRank;
          rowOps.insert(op);
        } else {
          groups[id].heavy = true;
        }
      }
      break;
    case Role::Contraction:
      frames[op] = 0;
      makeGroup(Group::Contraction, op);
      break;
    case Role::Window:
      groups[makeGroup(Group::Loops, op)].heavy = true;
      break;
    case Role::Alone:
    case Role::Function:
      makeGroup(Group::Alone, op);
      break;
    }
  }
}

//===--- transposes after a contraction ---------------------------------------------------------------------------===//

void Plan::joinEpilogueChains() {
  for (size_t id = 0; id < groups.size(); ++id) {
    if (groups[id].kind != Group::Contraction)
      continue;
    for (size_t i = 0; i < groups[id].ops.size(); ++i) {
      Operation *member = groups[id].ops[i];
      if (member->getNumResults() != 1)
        continue;
      // The chain up to its last transpose; reshapes after that are views.
      SmallVector<Operation *> chain, pending;
      for (Value value = member->getResult(0); value.hasOneUse();) {
        Operation *user = *value.getUsers().begin();
        if (!orderOf(user) || !isCopied(user) || !isBijection(user) || transposesInnermost(user))
          break;
        pending.push_back(user);
        if (isa<prim::TransposeOp>(user)) {
          chain.append(pending);
          pending.clear();
        }
        value = user->getResult(0);
      }
      for (Operation *link : chain) {
        frames[link] = -1; // nothing joins behind it
        join(id, link);
      }
    }
  }
}
