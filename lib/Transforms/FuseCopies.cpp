//===- FuseCopies.cpp - groups that are computed inside of their readers, and groups that merge -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FusePlan.h"
#include "tc/Analysis/LikelySizes.h"

#include <set>

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

/// The concat among `reader` and the ops that lead from it to `use` of which vectors would compute the read part's
/// elements though few of their lanes hold any; null: none.
static prim::ConcatOp findWideConcat(Operation *reader, const Use &use, const Preferences &prefer) {
  SmallVector<Operation *> links{reader};
  llvm::append_range(links, use.chain);
  for (auto [i, link] : llvm::enumerate(links)) {
    auto concat = dyn_cast<prim::ConcatOp>(link);
    if (!concat)
      continue;
    auto countBehind = [&](Value value) {
      const SmallVector<AffineExpr> sizes = prim::getSizes(value);
      return prim::getConstantSize(prim::product(concat.getContext(), ArrayRef(sizes).drop_front(concat.getAxis())));
    };
    Value part = i < use.chain.size() ? use.chain[i]->getResult(0) : use.leaf;
    // Rows that fill no vector are written several at a time.
    if (countBehind(part).value_or(prefer.lanes) < prefer.lanes &&
        countBehind(concat.getResult()).value_or(prefer.lanes) >= prefer.lanes &&
        getLikelyCount(concat.getResult()) >= prefer.concatElements)
      return concat;
  }
  return {};
}

/// The concat whose rows run along what `reader` reads the leaf of `use` across: transposed behind it. Null if there is
/// none.
static prim::ConcatOp findConcatAcross(Operation *reader, const Use &use) {
  SmallVector<Operation *> links{reader};
  llvm::append_range(links, use.chain);
  prim::ConcatOp concat;
  for (Operation *link : links) {
    if (auto outer = dyn_cast<prim::ConcatOp>(link))
      concat = outer;
    else if (concat && transposesInnermost(link))
      return concat;
  }
  return {};
}

/// Whether slices are gathered on the way to the leaf, with so many elements one behind the other that lanes pay.
static bool gathersSlices(const Use &use, const Preferences &prefer) {
  return llvm::any_of(use.chain, [&](Operation *link) {
    return isa<prim::GatherOp, prim::GatherNDOp>(link) && hasLanes(link->getOperand(0), prefer) &&
           countSliced(link->getOperand(0)) > 0;
  });
}

/// Whether the ops read many elements for each that they give, of slices that they, or those that will join them,
/// gather. Of two, as of neighbours of an image, concats gather as fast as they would copy.
bool Plan::gathersManySlices(ArrayRef<Operation *> members) const {
  int64_t reads = 0;
  bool gathers = false;
  for (Operation *member : members)
    for (const Use &use : usesOf(member)) {
      ++reads;
      Operation *def = use.leaf.getDefiningOp();
      const int producer = def ? groupOf(def) : -1;
      auto gathersHere = [&](const Use &read) { return gathersSlices(read, prefer); };
      gathers |= gathersHere(use) || (producer >= 0 && llvm::any_of(groups[producer].ops, [&](Operation *op) {
                                        return llvm::any_of(usesOf(op), gathersHere);
                                      }));
    }
  return gathers && reads >= prefer.sliceReads;
}

/// How often the values that are read through `uses`, all by one region, are computed there: once for each position
/// that they are read at, however many ops read them there. At a position that is not known each value counts by
/// itself.
static double countEvaluations(ArrayRef<Use> uses) {
  llvm::DenseSet<std::pair<Value, llvm::hash_code>> seen;
  double evaluations = 0;
  for (const Use &use : uses) {
    llvm::hash_code position = llvm::hash_combine_range(use.map.begin(), use.map.end());
    const bool isKnown = !llvm::is_contained(use.map, int(kUnknown));
    double read = getLikelyCount(use.top);
    for (Operation *link : use.chain) {
      read = std::min(read, getLikelyCount(link->getResult(0)));
      if (!isKnown && !link->hasTrait<prim::PointwiseTrait>())
        position = llvm::hash_combine(position, link);
    }
    if (seen.insert({isKnown ? Value() : use.leaf, position}).second)
      evaluations += std::min(1.0, read / std::max(getLikelyCount(use.leaf), 1.0));
  }
  return evaluations;
}

std::string Plan::refuseCopy(int producer, const SmallVector<std::pair<Operation *, Use>> &readers) {
  Group &group = groups[producer];
  bool cheap = group.ops.size() <= 4 && llvm::all_of(group.ops, [&](Operation *op) {
                 return isCheap(op) && llvm::all_of(usesOf(op), [](const Use &use) {
                          return llvm::all_of(use.chain, [](Operation *link) { return isCheap(link); });
                        });
               });
  bool onlyConvert = llvm::all_of(group.ops, [](Operation *op) { return isa<prim::ConvertOp>(op); });
  llvm::SetVector<int> consumers;
  for (auto &[op, use] : readers)
    consumers.insert(groupOf(op));
  if (consumers.size() > 1 && !cheap)
    return std::to_string(consumers.size()) + " kernels read it, and it is costly to compute again in each";
  // Of chains in which each value is read at two places, the first would be computed at 2^n.
  const double kMostEvaluations = cheap ? 4 : 3;
  for (int consumer : consumers) {
    SmallVector<Use> uses;
    for (auto &[op, use] : readers)
      if (groupOf(op) == consumer)
        uses.push_back(use);
    if (countEvaluations(uses) > kMostEvaluations)
      return describe(groups[consumer].anchor()) + " reads it at too many places";
  }
  for (auto &[op, use] : readers) {
    Group &consumer = groups[groupOf(op)];
    if (isGathered(use) &&
        gatherDepths.lookup(use.leaf.getDefiningOp()) + std::max(mostGathers(groupOf(op)), 1) > prefer.gathersInTurn)
      return describe(op) + " would look up elements by indices that are looked up themselves";
    if (consumer.kind == Group::Function)
      return op->hasTrait<OpTrait::IsTerminator>() ? "result of the function" : describe(op) + " reads it";
    if (consumer.kind == Group::Alone)
      return describe(op) + " reads it from memory";
    if (getRole(op) == Role::Contraction || getRole(op) == Role::Window) {
      bool readable = onlyConvert && !isReadInPlace(use.top, op);
      Operation *anchor = op;
      for (Operation *member : group.ops)
        for (const Use &inner : usesOf(member))
          readable &= llvm::all_of(inner.chain, [&](Operation *link) { return isPrologue(anchor, link, prefer); });
      if (!readable)
        return describe(op) + " would compute it again for each element that reads it";
      continue;
    }
    if (!llvm::all_of(group.ops, isCheap))
      if (prim::ConcatOp concat = findWideConcat(op, use, prefer))
        return "all vector lanes of " + describe(concat) + " would compute it for a few of them";
    if (prim::ConcatOp concat = findConcatAcross(op, use); concat && gathersManySlices(group.ops))
      return "vector lanes of " + describe(concat) + " would gather its slices element by element";
    // How often one element is computed.
    std::optional<unsigned> aligned =
        alignedRank(use.leaf, use.map, getRole(op) == Role::Reduce ? op->getOperand(0) : op->getResult(0));
    AffineExpr read = prim::product(op->getContext(), prim::getSizes(use.top));
    AffineExpr made = prim::product(op->getContext(), prim::getSizes(use.leaf));
    auto readCount = prim::getConstantSize(read), madeCount = prim::getConstantSize(made);
    bool once = read == made || aligned || (readCount && madeCount && *readCount <= *madeCount);
    if (!once && !cheap)
      return describe(op) + " would compute it several times";
  }
  if (consumers.size() > 1) {
    // Full-size tensors read by every copy, against one write and the reads of its result.
    llvm::DenseSet<Value> inputs;
    for (Operation *op : group.ops)
      for (const Use &use : usesOf(op))
        if (Operation *def = use.leaf.getDefiningOp(); !(def && groupOf(def) == producer) && !isSmallConstant(def) &&
                                                       getSpace(use.leaf).size() >= group.space.size())
          inputs.insert(use.leaf);
    size_t readersCount = consumers.size();
    if (readersCount * inputs.size() > inputs.size() + 1 + readersCount)
      return "to compute it again in each kernel that reads it takes more memory traffic than its result";
  }
  return {};
}

void Plan::copyProducers() {
  // Last groups first, so that chains collapse into their end.
  for (int id = int(groups.size()) - 1; id >= 0; --id) {
    Group &group = groups[id];
    if (group.kind != Group::Loops || group.pinned || group.heavy || group.rowRank >= 0 || group.dead)
      continue;
    SmallVector<std::pair<Operation *, Use>> readers;
    for (int other : readersOf(id))
      for (Operation *op : groups[other].ops)
        for (const Use &use : usesOf(op))
          if (Operation *def = use.leaf.getDefiningOp(); def && groupOf(def) == id)
            readers.push_back({op, use});
    if (readers.empty())
      continue;
    std::string reason = refuseCopy(id, readers);
    llvm::SetVector<int> consumers;
    for (auto &[op, use] : readers)
      consumers.insert(groupOf(op));
    if (reason.empty()) {
      // Try it, and take it back if a region gets too many buffers or ops.
      for (Operation *op : group.ops)
        groupMap.erase(op);
      for (int consumer : consumers) {
        if (int64_t(groups[consumer].ops.size() + group.ops.size()) + groups[consumer].copied + group.copied >
            limits.maxOps)
          reason = "the kernel would have more than " + std::to_string(limits.maxOps) + " ops";
        else if (countBuffers({consumer}) > limits.maxBuffers)
          reason = "the kernel would use more than " + std::to_string(limits.maxBuffers) + " buffers";
      }
      if (!reason.empty())
        for (Operation *op : group.ops)
          groupMap[op] = id;
    }
    if (!reason.empty()) {
      for (auto &[op, use] : readers)
        note(use.leaf.getDefiningOp(), op, reason);
      continue;
    }
    if (log)
      for (int consumer : consumers)
        lines << describe(group.anchor()) << " is computed inside " << describe(groups[consumer].anchor()) << "\n";
    group.dead = true;
    for (int consumer : consumers) {
      groups[consumer].copied += group.ops.size() + group.copied;
      recomputeDeps(consumer);
    }
  }
}

//===--- merging --------------------------------------------------------------------------------------------------===//

std::string Plan::refuseMerge(int a, int b) {
  Group &first = groups[a], &second = groups[b];
  if (first.space != second.space)
    return "they have different shapes";
  if (first.rowRank >= 0 && second.rowRank >= 0 && first.rowRank != second.rowRank)
    return "they reduce different dims";
  if (int64_t(first.ops.size() + second.ops.size()) + first.copied + second.copied > limits.maxOps)
    return "the kernel would have more than " + std::to_string(limits.maxOps) + " ops";
  int rowRank = std::max(first.rowRank, second.rowRank);
  for (auto [reader, producer] : {std::pair(b, a), std::pair(a, b)}) {
    for (int dep : groups[reader].deps)
      if (dep != producer && dependsOn(dep, producer))
        return describe(groups[dep].anchor()) + " must run between them";
    if (!groups[reader].deps.contains(producer))
      continue;
    for (Operation *op : groups[reader].ops)
      for (const Use &use : usesOf(op)) {
        Operation *def = use.leaf.getDefiningOp();
        if (!def || groupOf(def) != producer)
          continue;
        if (isGathered(use) && mostGathers(a) + mostGathers(b) > prefer.gathersInTurn)
          return "elements would be looked up by indices that are looked up themselves";
        Value at = getRole(op) == Role::Reduce ? op->getOperand(0) : op->getResult(0);
        std::optional<unsigned> aligned = alignedRank(use.leaf, use.map, at);
        bool rowValue = rowOps.contains(def);
        if (rowValue && (!rowOps.contains(op) || getRole(op) == Role::Reduce) &&
            hasFewLongRows(first.space, rowRank, op))
          return kFewLongRows.str();
        if (!aligned || *aligned != (rowValue ? unsigned(rowRank) : unsigned(first.space.size())) ||
            (rowOps.contains(op) && getRole(op) != Role::Reduce && !rowValue))
          return "the one reads other elements than the one that the other computes";
      }
  }
  if (countBuffers({a, b}) > limits.maxBuffers)
    return "the kernel would use more than " + std::to_string(limits.maxBuffers) + " buffers";
  return {};
}

void Plan::joinSmallSlices() {
  // So many slices of one value, of so few elements each, are not worth a launch each, nor the time to compile it.
  constexpr size_t kLeastSlices = 64;
  constexpr int64_t kMostElements = 16;
  llvm::MapVector<std::pair<Value, Type>, SmallVector<int>> siblings;
  for (auto [id, group] : llvm::enumerate(groups)) {
    auto slice = dyn_cast<prim::SliceOp>(group.ops.front());
    if (!slice || group.dead || group.kind != Group::Loops || group.ops.size() != 1)
      continue;
    auto type = cast<RankedTensorType>(slice.getType());
    if (type.hasStaticShape() && type.getNumElements() <= kMostElements)
      siblings[{slice.getOperand(), type}].push_back(int(id));
  }
  for (auto &[what, ids] : siblings)
    for (size_t i = 0; ids.size() >= kLeastSlices && i < ids.size(); ++i)
      if (const size_t first = i - i % size_t(limits.maxOps); i != first)
        merge(ids[first], ids[i]);
}

void Plan::mergeGroups() {
  // Pairs that share a tensor of their space, or where one reads the other, and that are near each other.
  constexpr unsigned kFar = 64;
  auto mergeable = [&](const Group &group) {
    return group.kind == Group::Loops && !group.heavy && !group.dead && !group.space.empty();
  };
  auto inputsOf = [&](const Group &group) {
    llvm::SetVector<Value> inputs;
    for (Operation *op : group.ops)
      for (const Use &use : usesOf(op))
        if (Operation *def = use.leaf.getDefiningOp();
            !isSmallConstant(def) && getSpace(use.leaf) == group.space &&
            alignedRank(use.leaf, use.map, getRole(op) == Role::Reduce ? op->getOperand(0) : op->getResult(0)))
          inputs.insert(use.leaf);
    return inputs;
  };
  // Groups before the one that looks for company, by the place of their last op.
  std::set<std::pair<unsigned, int>> before;
  auto lastOf = [&](int id) { return std::pair(orderMap[groups[id].ops.back()], id); };
  for (int b = 0; b < int(groups.size()); ++b) {
    if (!mergeable(groups[b]))
      continue;
    // What it reads, what reads it, and what is near.
    std::set<int, std::greater<int>> candidates;
    for (int other : groups[b].deps)
      if (other < b)
        candidates.insert(other);
    for (int other : readersOf(b))
      if (other < b)
        candidates.insert(other);
    const unsigned first = orderMap[groups[b].ops.front()];
    for (auto it = before.lower_bound({first > kFar ? first - kFar : 0, 0}); it != before.end(); ++it)
      if (groups[it->second].space == groups[b].space)
        candidates.insert(it->second);
    for (int a : candidates) {
      if (!mergeable(groups[a]))
        continue;
      bool reads = groups[b].deps.contains(a) || groups[a].deps.contains(b);
      if (!reads) {
        llvm::SetVector<Value> ours = inputsOf(groups[b]);
        if (llvm::none_of(inputsOf(groups[a]), [&](Value value) { return ours.contains(value); }))
          continue;
      }
      std::string reason = refuseMerge(a, b);
      if (!reason.empty()) {
        note(groups[a].ops.back(), groups[b].ops.front(), reason);
        continue;
      }
      if (log)
        lines << describe(groups[b].anchor()) << " merges with " << describe(groups[a].anchor()) << "\n";
      before.erase(lastOf(a));
      merge(a, b);
      before.insert(lastOf(a));
      break;
    }
    if (!groups[b].dead)
      before.insert(lastOf(b));
  }
}
