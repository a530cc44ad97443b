//===- FusePlan.cpp - which primitives of a block share a region --------------------------------------------------===//
//
// Greedy, in program order, so that the result is a function of the program alone. The rules stand in Fuse.h.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FusePlan.h"

#include "tc/Support/Logging.h"

#include "mlir/Transforms/RegionUtils.h"

#include <queue>

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

Plan::Plan(Block &block, const Limits &limits, bool log) : limits(limits), log(log), lines(text) {
  for (Operation &op : block) {
    orderMap[&op] = ops.size();
    ops.push_back(&op);
    for (int64_t symbol : prim::getBoundSymbols(&op))
      binders[symbol] = &op;
    if (auto guard = dyn_cast<prim::GuardOp>(op))
      guard.getSizes().walkExprs([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          guards[symbol.getPosition()].push_back(&op);
      });
  }
  pin();
  if (limits.fuse)
    findWidening();
  assign();
  if (limits.fuse) {
    joinEpilogueChains();
    copyProducers();
    mergeGroups();
  }
  findOutputs();
  sortGroups();
  for (size_t id = 0; id < groups.size(); ++id)
    stoppedOf.push_back(findStopped(int(id)));
  if (log)
    log::write("fusion", text);
}

std::optional<unsigned> Plan::orderOf(Operation *op) const {
  if (!op)
    return std::nullopt;
  auto it = orderMap.find(op);
  return it == orderMap.end() ? std::nullopt : std::optional<unsigned>(it->second);
}
int Plan::groupOf(Operation *op) const {
  auto it = groupMap.find(op);
  return it == groupMap.end() ? -1 : it->second;
}

bool Plan::isView(Value value, int reader) const {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<prim::ReshapeOp>(op) || !isCopied(op))
    return false;
  while (isa_and_nonnull<prim::ReshapeOp>(op) && isCopied(op))
    op = op->getOperand(0).getDefiningOp();
  return !op || !orderOf(op) ? !isSmallConstant(op) : groupOf(op) >= 0 && groupOf(op) != reader && !isSmallConstant(op);
}

std::string Plan::describe(Operation *op) const {
  std::string text = op->getName().stripDialect().str(), name = getNodeNames(op->getLoc());
  return name.empty() ? text : text + " \"" + name + "\"";
}

void Plan::note(Operation *producer, Operation *reader, const std::string &reason) {
  refusals.try_emplace({producer, reader}, reason);
  if (log)
    lines << describe(reader) << " does not join " << describe(producer) << ": " << reason << "\n";
}

//===--- which movement ops are needed in memory ------------------------------------------------------------------===//

void Plan::pinOperand(Operation *consumer, Value operand) {
  bool function = getRole(consumer) == Role::Function;
  Operation *op = operand.getDefiningOp();
  // Where an op on the way must be made, the ops between it and the consumer are applied there too if nobody else reads
  // in between: the consumer then reads a plain tensor. Not broadcasts, whose result is larger, and not the last
  // reshapes, which are views.
  Operation *best = nullptr;
  while (op && orderOf(op) && getRole(op) == Role::Movement && !pinned.contains(op)) {
    if (function) {
      // Views and what the host writes stay in the function.
      if (isMadeByHost(op, consumer))
        return;
      if (!isa<prim::ReshapeOp>(op)) {
        pinned.insert(op);
        return;
      }
    } else if (!isPrologue(consumer, op)) {
      pinned.insert(best && op->hasOneUse() ? best : op);
      return;
    } else if (isa<prim::BroadcastOp>(op)) {
      best = nullptr;
    } else if (best && !op->hasOneUse()) {
      best = isa<prim::ReshapeOp>(op) ? nullptr : op;
    } else if (!best && !isa<prim::ReshapeOp>(op)) {
      best = op;
    }
    op = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
  }
}

/// Whether the elements of `v`, whose neighbours along its last dim lie apart in memory, are read many times each along
/// the lanes of pointwise ops: then gathers cost more than turning it once.
static bool isGatheredOften(Value v, AffineExpr elements) {
  // Reads of one element, and reads of all, from which on a launch of its own is worth it. What only the run knows
  // counts as much.
  constexpr int64_t kReads = 8, kAllReads = 16 * 1024, kUnknown = 64;
  const SmallVector<AffineExpr> sizes = prim::getSizes(v);
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (auto reshape = dyn_cast<prim::ReshapeOp>(user))
      return !prim::getSizes(reshape.getResult()).empty() &&
             prim::getSizes(reshape.getResult()).back() == sizes.back() &&
             isGatheredOften(reshape.getResult(), elements);
    auto broadcast = dyn_cast<prim::BroadcastOp>(user);
    if (!broadcast || !llvm::any_of(broadcast->getUsers(), [](Operation *reader) {
          return getRole(reader) == Role::Pointwise || getRole(reader) == Role::Reduce;
        }))
      return false;
    const SmallVector<AffineExpr> to = prim::getSizes(broadcast.getResult());
    if (broadcast.getDims().empty() || broadcast.getDims().back() + 1 != int64_t(to.size()) ||
        to.back() != sizes.back())
      return false;
    int64_t reads = 1;
    for (auto [i, size] : llvm::enumerate(to)) {
      const auto *dim = llvm::find(broadcast.getDims(), int64_t(i));
      const bool isRepeated =
          dim == broadcast.getDims().end() ||
          (prim::getConstantSize(sizes[dim - broadcast.getDims().begin()]) == 1 && prim::getConstantSize(size) != 1);
      if (isRepeated)
        reads *= prim::getConstantSize(size).value_or(kUnknown);
    }
    return reads >= kReads && reads * prim::getConstantSize(elements).value_or(kUnknown * kUnknown) >= kAllReads;
  });
}

/// Whether a reshape of the op's result `v` with another last dim is read as isGatheredOften counts.
static bool isGatheredReshaped(Value v) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(v);
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    auto reshape = dyn_cast<prim::ReshapeOp>(user);
    return reshape && !prim::getSizes(reshape.getResult()).empty() &&
           prim::getSizes(reshape.getResult()).back() != sizes.back() &&
           isGatheredOften(reshape.getResult(), prim::product(v.getContext(), sizes));
  });
}

/// Whether `op` takes one of each row's elements (a coordinate of each box), which are then read along the lanes as
/// often as isGatheredOften counts.
static bool isColumnReadOften(Operation *op) {
  auto slice = dyn_cast<prim::SliceOp>(op);
  if (!slice)
    return false;
  const SmallVector<AffineExpr> sizes = prim::getSizes(slice.getResult());
  return !sizes.empty() && prim::getConstantSize(sizes.back()) == 1 &&
         prim::getConstantSize(prim::getSizes(slice.getOperand()).back()) != 1 && isGatheredReshaped(slice.getResult());
}

/// Elements of `v` that slices along its last dim read: of gathers, and of slices that overlap.
static double countSliced(Value v) {
  const size_t rank = prim::getSizes(v).size();
  double gathered = 0, sliced = 0;
  for (Operation *user : v.getUsers()) {
    if (auto gather = dyn_cast<prim::GatherOp>(user)) {
      if (gather.getSource() == v && gather.getAxis() + 1 < rank)
        gathered += likelyCount(gather.getResult());
    } else if (auto gather = dyn_cast<prim::GatherNDOp>(user)) {
      const int64_t numbers = prim::getConstantSize(prim::getSizes(gather.getIndices()).back()).value_or(rank);
      if (gather.getSource() == v && int64_t(gather.getBatchDims()) + numbers < int64_t(rank))
        gathered += likelyCount(gather.getResult());
    } else if (isa<prim::SliceOp>(user)) {
      sliced += likelyCount(user->getResult(0));
    } else if (isa<prim::PadOp>(user) && user->getOperand(0) == v) {
      gathered += countSliced(user->getResult(0));
    }
  }
  return gathered + (sliced > likelyCount(v) ? sliced : 0);
}

/// Whether the last dim of `v` has so many elements that lanes along it pay.
static bool hasLanes(Value v) {
  constexpr int64_t kLeastLanes = 8;
  const SmallVector<AffineExpr> sizes = prim::getSizes(v);
  return !sizes.empty() && prim::getConstantSize(sizes.back()).value_or(0) >= kLeastLanes;
}

/// Whether slices of `v` along its last dim, whose neighbours lie apart in memory, are read, and so many that lanes
/// along that dim pay for turning it once.
static bool isReadBySlices(Value v) { return hasLanes(v) && countSliced(v) >= likelyCount(v); }

/// Whether a reshape of the op's result has dims merged into its last one of which the innermost repeats elements, as
/// the values of a group of channels for each of them, and is read often.
static bool repeatsWithinLanes(prim::BroadcastOp op) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(op.getResult());
  if (sizes.empty() || prim::getConstantSize(sizes.back()) == 1 ||
      (!op.getDims().empty() && op.getDims().back() + 1 == int64_t(sizes.size())))
    return false;
  return isGatheredReshaped(op.getResult());
}

void Plan::pin() {
  // Movement ops with several operands multiply: past a bound, the value is made once.
  constexpr int kMaxReads = 32;
  // Concats within concats that several ops read (a running maximum by doubling) are chosen among again and again.
  constexpr int kMaxNested = 3;
  llvm::DenseMap<Operation *, int> reads, nested;
  for (Operation *op : ops) {
    if (getRole(op) != Role::Movement)
      continue;
    int count = 0;
    for (Value operand : op->getOperands()) {
      auto it = reads.find(operand.getDefiningOp());
      count += it == reads.end() || pinned.contains(it->first) ? 1 : it->second;
    }
    reads[op] = std::max(count, 1);
    int within = 0;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && !pinned.contains(def))
        within = std::max(within, nested.lookup(def));
    nested[op] = within + isa<prim::ConcatOp>(op);
    if ((count > kMaxReads && !isa<prim::ReshapeOp>(op)) ||
        (isa<prim::ConcatOp>(op) && nested[op] > kMaxNested && !op->hasOneUse()))
      pinned.insert(op);
  }
  for (Operation *op : ops) {
    if (turnsInnermost(op) &&
        (isGatheredOften(op->getResult(0), prim::product(op->getContext(), prim::getSizes(op->getResult(0)))) ||
         isReadBySlices(op->getResult(0))))
      pinned.insert(op);
    if (isColumnReadOften(op))
      pinned.insert(op);
    if (auto broadcast = dyn_cast<prim::BroadcastOp>(op); broadcast && repeatsWithinLanes(broadcast))
      pinned.insert(op);
  }
  for (Operation *op : ops) {
    Role role = getRole(op);
    if (!limits.fuse && role == Role::Movement && !isa<prim::ReshapeOp>(op) &&
        !llvm::all_of(op->getUsers(), [&](Operation *user) { return isMadeByHost(op, user); }))
      pinned.insert(op);
    if (role == Role::Function) {
      llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), values);
      for (Value value : values)
        pinOperand(op, value);
    } else if (role == Role::Contraction || role == Role::Window || role == Role::Alone) {
      for (Value operand : op->getOperands())
        pinOperand(op, operand);
    }
  }
}

void Plan::findWidening() {
  auto isByte = [](Value v) {
    Type type = cast<RankedTensorType>(v.getType()).getElementType();
    return type.isSignlessInteger(8) || type.isUnsignedInteger(8);
  };
  for (Operation *op : ops) {
    if (getRole(op) != Role::Pointwise || !isCheap(op) || isByte(op->getResult(0)))
      continue;
    Operation *from = op->getOperand(0).getDefiningOp();
    bool isWidening = isByte(op->getOperand(0)) ? isa<prim::ConvertOp>(op) : from && widening.contains(from);
    for (Value other : op->getOperands().drop_front())
      isWidening &= isa_and_nonnull<prim::SplatOp>(other.getDefiningOp());
    if (isWidening)
      widening.insert(op);
  }
  // Convolutions widen bytes as they load them, if they lie in memory as the convolution reads them, or padded.
  auto isLoaded = [&](Operation *op) {
    Operation *from = op->getOperand(0).getDefiningOp();
    if (isa_and_nonnull<prim::PadOp>(from))
      from = from->getOperand(0).getDefiningOp();
    return isByte(op->getOperand(0)) && (!from || getRole(from) != Role::Movement);
  };
  // Last ops first: a value that is needed in memory needs what it is computed from once only.
  for (Operation *op : llvm::reverse(ops)) {
    auto isRepeated = [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (!orderOf(user))
        return false;
      if (isa<prim::ConvOp>(user))
        return use.getOperandNumber() == 0 && isLoaded(op);
      return widening.contains(user) || getRole(user) == Role::Pointwise || getRole(user) == Role::Reduce;
    };
    if (widening.contains(op) && !llvm::all_of(op->getUses(), isRepeated))
      widening.erase(op);
  }
}

//===--- traces ---------------------------------------------------------------------------------------------------===//

void Plan::trace(Value value, Value top, const DimMap &map, SmallVectorImpl<Operation *> &chain, Trace &trace) const {
  // A value reached twice at one position through the same movement ops is one use: without this, chains of pointwise
  // ops with two equal operands would take exponential time.
  llvm::hash_code movement(0);
  for (Operation *op : chain)
    if (!op->hasTrait<prim::PointwiseTrait>())
      movement = llvm::hash_combine(movement, op);
  if (!trace.seen.insert({value.getAsOpaquePointer(), std::vector<int>(map.begin(), map.end()), size_t(movement)})
           .second)
    return;
  Operation *op = value.getDefiningOp();
  if (!op || !isCopied(op)) {
    trace.uses.push_back({value, top, map, SmallVector<Operation *, 4>(chain.begin(), chain.end())});
    return;
  }
  chain.push_back(op);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    this->trace(op->getOperand(i), top, mapOperand(op, i, map), chain, trace);
  chain.pop_back();
}

SmallVector<Use> Plan::usesOf(Operation *op) const {
  Trace state;
  SmallVector<Operation *, 4> chain;
  Role role = getRole(op);
  if (role == Role::Function) {
    llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), values);
    for (Value value : values)
      trace(value, value, isa<RankedTensorType>(value.getType()) ? identityMap(value) : DimMap(), chain, state);
    return std::move(state.uses);
  }
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    DimMap map;
    if (role == Role::Reduce)
      map = identityMap(operand);
    else if (role == Role::Pointwise || role == Role::Movement)
      map = mapOperand(op, i, identityMap(op->getResult(0)));
    else
      map.assign(cast<RankedTensorType>(operand.getType()).getRank(), kUnknown);
    trace(operand, operand, map, chain, state);
  }
  return std::move(state.uses);
}

//===--- groups ---------------------------------------------------------------------------------------------------===//

int Plan::makeGroup(Group::Kind kind, Operation *op) {
  int id = groups.size();
  groups.emplace_back();
  groups.back().kind = kind;
  if (kind == Group::Loops)
    groups.back().space = getSpace(op->getResult(0));
  join(id, op);
  return id;
}

void Plan::join(int id, Operation *op) {
  if (log && !groups[id].ops.empty())
    lines << describe(op) << " joins " << describe(groups[id].anchor()) << "\n";
  groups[id].ops.push_back(op);
  groupMap[op] = id;
  addDeps(id, op);
}

llvm::SetVector<int> Plan::depsOf(Operation *op) const {
  llvm::SetVector<int> deps;
  auto depend = [&](Operation *on) {
    if (int other = groupOf(on); other >= 0 && on != op)
      deps.insert(other);
  };
  // Symbols that this block binds: whoever's sizes use them comes after. Likewise what followed a guard.
  auto dependOnSymbols = [&](AffineExpr expr) {
    expr.walk([&](AffineExpr e) {
      auto symbol = dyn_cast<AffineSymbolExpr>(e);
      if (!symbol)
        return;
      if (Operation *binder = binders.lookup(symbol.getPosition()))
        depend(binder);
      if (auto found = guards.find(symbol.getPosition()); found != guards.end())
        for (Operation *guard : found->second)
          if (orderMap.lookup(guard) < orderMap.lookup(op))
            depend(guard);
    });
  };
  auto dependOnSizes = [&](Operation *of) {
    if (binders.empty() && guards.empty())
      return;
    of->walk([&](Operation *inner) {
      for (Type type : inner->getResultTypes())
        if (isa<RankedTensorType>(type))
          llvm::for_each(prim::getSizes(type), dependOnSymbols);
      for (NamedAttribute attr : inner->getAttrs())
        if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
          llvm::for_each(map.getValue().getResults(), dependOnSymbols);
    });
  };
  dependOnSizes(op);
  // Sources without operands, such as prim.sizes, are copied but are no uses.
  SmallVector<Operation *> work{op};
  llvm::SmallDenseSet<Operation *> seen;
  while (!binders.empty() && !work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && isCopied(def) && seen.insert(def).second) {
        dependOnSizes(def);
        work.push_back(def);
      }
  for (const Use &use : usesOf(op)) {
    if (Operation *def = use.leaf.getDefiningOp())
      depend(def);
    for (Operation *copied : use.chain)
      dependOnSizes(copied);
  }
  return deps;
}

void Plan::addDeps(int id, Operation *op) {
  for (int dep : depsOf(op))
    if (dep != id)
      groups[id].deps.insert(dep);
}

void Plan::recomputeDeps(int id) {
  groups[id].deps.clear();
  for (Operation *op : groups[id].ops)
    addDeps(id, op);
}

bool Plan::dependsOn(int id, int on) const {
  SmallVector<int> work{id};
  llvm::SmallDenseSet<int> seen;
  while (!work.empty()) {
    int next = work.pop_back_val();
    if (next == on)
      return true;
    if (seen.insert(next).second)
      work.append(groups[next].deps.begin(), groups[next].deps.end());
  }
  return false;
}

int64_t Plan::countBuffers(ArrayRef<int> ids) const {
  llvm::DenseSet<Value> inputs, results;
  auto inside = [&](Operation *op) { return op && llvm::is_contained(ids, groupOf(op)) && groupOf(op) >= 0; };
  for (int id : ids)
    for (Operation *op : groups[id].ops) {
      for (const Use &use : usesOf(op))
        if (Operation *def = use.leaf.getDefiningOp(); !inside(def) && !isSmallConstant(def))
          inputs.insert(use.leaf);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !inside(user) && (groupOf(user) >= 0 || !orderOf(user) || getRole(user) == Role::Function);
            }))
          results.insert(result);
    }
  return inputs.size() + std::max<int64_t>(1, results.size());
}

std::string Plan::refuseCommon(int id, Operation *op) {
  Group &group = groups[id];
  if (int64_t(group.ops.size()) + group.copied >= limits.maxOps)
    return "the region has " + std::to_string(limits.maxOps) + " ops";
  // op brings its other producers in front of the group: none of them may come after it.
  for (int other : depsOf(op))
    if (other != id && dependsOn(other, id))
      return "a cycle through " + describe(groups[other].anchor());
  groupMap[op] = id;
  groups[id].ops.push_back(op);
  int64_t buffers = countBuffers({id});
  groups[id].ops.pop_back();
  groupMap.erase(op);
  if (buffers > limits.maxBuffers)
    return std::to_string(buffers) + " buffers, at most " + std::to_string(limits.maxBuffers);
  return {};
}

/// Whether a gather is among the ops that lead to what is read.
static bool isGathered(const Use &use) {
  return llvm::any_of(use.chain,
                      [](Operation *op) { return isa<prim::GatherOp, prim::GatherElementsOp, prim::GatherNDOp>(op); });
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

std::string Plan::refuse(int id, Operation *op, ArrayRef<Use> uses, int &frame) {
  Group &group = groups[id];
  if (group.kind == Group::Function)
    return "it stays in the function";
  if (group.kind == Group::Alone)
    return describe(group.anchor()) + " takes no epilogue";
  Value result = op->getResult(0);
  if (group.kind == Group::Loops) {
    Space space = getSpace(result);
    bool full = space == group.space;
    bool row =
        !full && group.rowRank >= 0 && ArrayRef<AffineExpr>(space) == ArrayRef(group.space).take_front(group.rowRank);
    if (!full && !row)
      return "another space";
    if (gatherDepth(op, id, uses) > kMostGathers)
      return "gathers would wait for gathers";
    for (const Use &use : uses) {
      Operation *def = use.leaf.getDefiningOp();
      if (!def || groupOf(def) != id)
        continue;
      bool rowValue = rowOps.contains(def);
      std::optional<unsigned> aligned = alignedRank(use.leaf, use.map, result);
      unsigned expected = rowValue ? unsigned(group.rowRank) : unsigned(group.space.size());
      if (!aligned || *aligned != expected || (row && !rowValue))
        return "reads it at other positions";
    }
  } else {
    if (getRole(op) == Role::Movement && !isBijection(op))
      return "it is no transpose or reshape";
    const bool isAlong = isAlongLines(group.anchor());
    if (turnsInnermost(op) && !isAlong)
      return "its elements would be stored apart";
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
        return "reads it at other positions";
      // Turned once and stored by what reads it: a residual that lies in the other layout. Turned twice, it lies as it
      // was.
      if (!isAlong && llvm::count_if(links, turnsInnermost) % 2 != 0)
        return "its elements would be stored apart";
      // Code generation follows the very ops that move the result: two paths are two positions, even if they are equal.
      int next = frames.lookup(def);
      for (Operation *link : links)
        next = frameIds.try_emplace({next, orderMap[link]}, int(frameIds.size()) + 1).first->second;
      if (found >= 0 && next != found)
        return "reads it at two positions";
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
    return "a reduction needs whole rows of " + describe(group.anchor());
  if (group.kind != Group::Loops)
    return describe(group.anchor()) + " takes no epilogue";
  if (!rowRank)
    return "it reduces other than trailing dims";
  if (group.heavy)
    return "the region's values are costly to compute again";
  Value operand = op->getOperand(0);
  if (getSpace(operand) != group.space)
    return "another space";
  if (group.rowRank >= 0 && group.rowRank != int(*rowRank))
    return "the region reduces other dims";
  for (const Use &use : uses) {
    Operation *def = use.leaf.getDefiningOp();
    if (!def || groupOf(def) != id)
      continue;
    std::optional<unsigned> aligned = alignedRank(use.leaf, use.map, operand);
    if (!aligned || *aligned != (rowOps.contains(def) ? unsigned(group.rowRank) : unsigned(group.space.size())))
      return "reads it at other positions";
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
        note(producer, op, "it joined " + describe(groups[groupOf(op)].anchor()));
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
    if (!limits.fuse) {
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
        if (!orderOf(user) || !isCopied(user) || !isBijection(user) || turnsInnermost(user))
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

//===--- pointwise groups copied into their readers ---------------------------------------------------------------===//

/// The concat among `reader` and the ops that lead from it to `use` of which vectors would compute the read part's
/// elements though few of their lanes hold any; null: none.
static prim::ConcatOp findWideConcat(Operation *reader, const Use &use) {
  // A part of so few elements is no vector; rows of so few are written several at a time. A launch of its own is worth
  // it from so many elements of the concat on.
  constexpr int64_t kVector = 16, kShortRow = 15;
  constexpr double kLeastElements = 4096;
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
    if (countBehind(part).value_or(kVector) < kVector &&
        countBehind(concat.getResult()).value_or(kShortRow + 1) > kShortRow &&
        likelyCount(concat.getResult()) >= kLeastElements)
      return concat;
  }
  return {};
}

/// The concat whose rows run along what `reader` reads the leaf of `use` across: turned behind it. Null if there is
/// none.
static prim::ConcatOp findConcatAcross(Operation *reader, const Use &use) {
  SmallVector<Operation *> links{reader};
  llvm::append_range(links, use.chain);
  prim::ConcatOp concat;
  for (Operation *link : links) {
    if (auto outer = dyn_cast<prim::ConcatOp>(link))
      concat = outer;
    else if (concat && turnsInnermost(link))
      return concat;
  }
  return {};
}

/// Whether slices are gathered on the way to the leaf, with so many elements one behind the other that lanes pay.
static bool gathersSlices(const Use &use) {
  return llvm::any_of(use.chain, [](Operation *link) {
    return isa<prim::GatherOp, prim::GatherNDOp>(link) && hasLanes(link->getOperand(0)) &&
           countSliced(link->getOperand(0)) > 0;
  });
}

/// Whether the ops read many elements for each that they give, of slices that they, or those that will join them,
/// gather. Of two, as of neighbours of an image, concats gather as fast as they would copy.
bool Plan::gathersManySlices(ArrayRef<Operation *> members) const {
  constexpr size_t kManyReads = 16;
  size_t reads = 0;
  bool gathers = false;
  for (Operation *member : members)
    for (const Use &use : usesOf(member)) {
      ++reads;
      Operation *def = use.leaf.getDefiningOp();
      const int producer = def ? groupOf(def) : -1;
      gathers |= gathersSlices(use) || (producer >= 0 && llvm::any_of(groups[producer].ops, [&](Operation *op) {
                                          return llvm::any_of(usesOf(op), gathersSlices);
                                        }));
    }
  return gathers && reads >= kManyReads;
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
    double read = fuse::likelyCount(use.top);
    for (Operation *link : use.chain) {
      read = std::min(read, fuse::likelyCount(link->getResult(0)));
      if (!isKnown && !link->hasTrait<prim::PointwiseTrait>())
        position = llvm::hash_combine(position, link);
    }
    if (seen.insert({isKnown ? Value() : use.leaf, position}).second)
      evaluations += std::min(1.0, read / std::max(fuse::likelyCount(use.leaf), 1.0));
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
    return std::to_string(consumers.size()) + " regions read it and it is costly to compute again";
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
        gatherDepths.lookup(use.leaf.getDefiningOp()) + std::max(mostGathers(groupOf(op)), 1) > kMostGathers)
      return "gathers of " + describe(op) + " would wait for gathers";
    if (consumer.kind == Group::Function)
      return op->hasTrait<OpTrait::IsTerminator>() ? "result of the function" : describe(op) + " reads it";
    if (consumer.kind == Group::Alone)
      return describe(op) + " reads it from memory";
    if (getRole(op) == Role::Contraction || getRole(op) == Role::Window) {
      bool readable = onlyConvert && !isReadInPlace(use.top, op);
      Operation *anchor = op;
      for (Operation *member : group.ops)
        for (const Use &inner : usesOf(member))
          readable &= llvm::all_of(inner.chain, [&](Operation *link) { return isPrologue(anchor, link); });
      if (!readable)
        return describe(op) + " would compute it again and again";
      continue;
    }
    if (!llvm::all_of(group.ops, isCheap))
      if (prim::ConcatOp concat = findWideConcat(op, use))
        return "all lanes of " + describe(concat) + " would compute it for a few";
    if (prim::ConcatOp concat = findConcatAcross(op, use); concat && gathersManySlices(group.ops))
      return "lanes of " + describe(concat) + " would gather its slices element by element";
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
      return "computing it again reads more than its result";
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
    for (auto [other, reader] : llvm::enumerate(groups))
      if (int(other) != id && !reader.dead && reader.deps.contains(id))
        for (Operation *op : reader.ops)
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
          reason = "the region would have more than " + std::to_string(limits.maxOps) + " ops";
        else if (countBuffers({consumer}) > limits.maxBuffers)
          reason = "the region would have more than " + std::to_string(limits.maxBuffers) + " buffers";
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
    return "another space";
  if (first.rowRank >= 0 && second.rowRank >= 0 && first.rowRank != second.rowRank)
    return "other reduced dims";
  if (int64_t(first.ops.size() + second.ops.size()) + first.copied + second.copied > limits.maxOps)
    return "more than " + std::to_string(limits.maxOps) + " ops";
  int rowRank = std::max(first.rowRank, second.rowRank);
  for (auto [reader, producer] : {std::pair(b, a), std::pair(a, b)}) {
    for (int dep : groups[reader].deps)
      if (dep != producer && dependsOn(dep, producer))
        return "a cycle through " + describe(groups[dep].anchor());
    if (!groups[reader].deps.contains(producer))
      continue;
    for (Operation *op : groups[reader].ops)
      for (const Use &use : usesOf(op)) {
        Operation *def = use.leaf.getDefiningOp();
        if (!def || groupOf(def) != producer)
          continue;
        if (isGathered(use) && mostGathers(a) + mostGathers(b) > kMostGathers)
          return "gathers would wait for gathers";
        Value at = getRole(op) == Role::Reduce ? op->getOperand(0) : op->getResult(0);
        std::optional<unsigned> aligned = alignedRank(use.leaf, use.map, at);
        bool rowValue = rowOps.contains(def);
        if (!aligned || *aligned != (rowValue ? unsigned(rowRank) : unsigned(first.space.size())) ||
            (rowOps.contains(op) && getRole(op) != Role::Reduce && !rowValue))
          return "reads it at other positions";
      }
  }
  if (countBuffers({a, b}) > limits.maxBuffers)
    return "more than " + std::to_string(limits.maxBuffers) + " buffers";
  return {};
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
  for (size_t b = 0; b < groups.size(); ++b) {
    if (!mergeable(groups[b]))
      continue;
    for (int a = int(b) - 1; a >= 0 && mergeable(groups[b]); --a) {
      if (!mergeable(groups[a]))
        continue;
      bool reads = groups[b].deps.contains(a) || groups[a].deps.contains(int(b));
      if (!reads) {
        if (groups[a].space != groups[b].space ||
            orderMap[groups[b].ops.front()] > orderMap[groups[a].ops.back()] + kFar)
          continue;
        llvm::SetVector<Value> ours = inputsOf(groups[b]);
        if (llvm::none_of(inputsOf(groups[a]), [&](Value value) { return ours.contains(value); }))
          continue;
      }
      std::string reason = refuseMerge(a, int(b));
      if (!reason.empty()) {
        note(groups[a].ops.back(), groups[b].ops.front(), reason);
        continue;
      }
      if (log)
        lines << describe(groups[b].anchor()) << " merges with " << describe(groups[a].anchor()) << "\n";
      Group &into = groups[a], &from = groups[b];
      into.ops.append(from.ops.begin(), from.ops.end());
      llvm::sort(into.ops, [&](Operation *x, Operation *y) { return orderMap[x] < orderMap[y]; });
      into.rowRank = std::max(into.rowRank, from.rowRank);
      into.pinned |= from.pinned;
      into.copied += from.copied;
      from.dead = true;
      for (Operation *op : into.ops)
        groupMap[op] = a;
      recomputeDeps(a);
      for (Group &other : groups)
        if (other.deps.remove(int(b)) && &other != &into)
          other.deps.insert(a);
    }
  }
}

//===--- results --------------------------------------------------------------------------------------------------===//

void Plan::findOutputs() {
  llvm::DenseSet<Value> needed;
  for (auto [id, group] : llvm::enumerate(groups)) {
    if (group.dead)
      continue;
    for (Operation *op : group.ops)
      for (const Use &use : usesOf(op))
        if (Operation *def = use.leaf.getDefiningOp(); def && groupOf(def) >= 0 && groupOf(def) != int(id))
          needed.insert(use.leaf);
  }
  outputsOf.resize(groups.size());
  for (auto [id, group] : llvm::enumerate(groups))
    if (!group.dead && group.kind != Group::Function) {
      llvm::sort(group.ops, [&](Operation *x, Operation *y) { return orderMap[x] < orderMap[y]; });
      for (Operation *op : group.ops)
        for (Value result : op->getResults())
          if (needed.contains(result))
            outputsOf[id].push_back(result);
    }
}

void Plan::sortGroups() {
  // Ready groups run in the order of their last op; the block's terminator comes last.
  std::vector<unsigned> waiting(groups.size());
  std::vector<SmallVector<int>> readers(groups.size());
  using Entry = std::pair<unsigned, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  auto key = [&](int id) {
    unsigned last = 0;
    for (Operation *op : groups[id].ops)
      last = std::max(last, orderMap[op]);
    return last;
  };
  for (auto [id, group] : llvm::enumerate(groups)) {
    if (group.dead)
      continue;
    for (int dep : group.deps)
      if (!groups[dep].dead) {
        ++waiting[id];
        readers[dep].push_back(id);
      }
  }
  for (auto [id, group] : llvm::enumerate(groups))
    if (!group.dead && !waiting[id])
      ready.push({key(id), int(id)});
  while (!ready.empty()) {
    int id = ready.top().second;
    ready.pop();
    order.push_back(id);
    for (int reader : readers[id])
      if (--waiting[reader] == 0)
        ready.push({key(reader), reader});
  }
}

std::vector<std::string> Plan::findStopped(int id) const {
  std::vector<std::string> reasons;
  for (Value output : outputs(id)) {
    Operation *producer = output.getDefiningOp();
    for (auto [other, group] : llvm::enumerate(groups)) {
      if (group.dead || int(other) == id || !group.deps.contains(id))
        continue;
      for (Operation *op : group.ops) {
        if (llvm::none_of(usesOf(op), [&](const Use &use) { return use.leaf == output; }))
          continue;
        std::string reason = refusals.lookup({producer, op});
        if (reason.empty() && op->hasTrait<OpTrait::IsTerminator>())
          reason = "result of the function";
        else if (reason.empty() && group.kind == Group::Contraction && op == group.anchor())
          reason = "operand of a contraction";
        else if (reason.empty() && group.kind == Group::Alone)
          reason = "its reader takes nothing in";
        else if (reason.empty() && group.kind == Group::Function)
          reason = "its reader stays in the function";
        else if (reason.empty())
          reason = "its reader is in " + describe(group.anchor());
        reasons.push_back(describe(producer) + " -> " + describe(op) + ": " + reason);
        break;
      }
    }
  }
  return reasons;
}
