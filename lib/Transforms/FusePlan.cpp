//===- FusePlan.cpp - which primitives of a block share a region --------------------------------------------------===//
//
// Greedy, in program order, so that the result is a function of the program alone. The rules stand in Fuse.h.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FusePlan.h"

#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Support/Logging.h"

#include "mlir/Transforms/RegionUtils.h"

#include <queue>

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

Plan::Plan(Block &block, const Limits &limits, bool log)
    : limits(limits), prefer(Preferences::get(limits.target)), log(log), lines(text) {
  for (Operation &op : block) {
    orderMap[&op] = ops.size();
    ops.push_back(&op);
    if (limits.isDisabled && limits.isDisabled(&op))
      disabled.insert(&op);
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
    joinSmallSlices();
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
  std::string text = op->getName().stripDialect().str(), name = llvm::join(host::getNodeNames(op->getLoc()), "+");
  return name.empty() ? text : text + " \"" + name + "\"";
}

void Plan::note(Operation *producer, Operation *reader, const std::string &reason) {
  refusals.try_emplace({producer, reader}, reason);
  if (log)
    lines << describe(reader) << " does not join " << describe(producer) << ": " << reason << "\n";
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
  onceReaders.emplace_back();
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
  groups[id].first = std::min(groups[id].first, orderMap.lookup(op));
  raise(id, orderMap.lookup(op));
  addDeps(id, op);
}

llvm::SetVector<int> Plan::depsOf(Operation *op) const {
  llvm::SetVector<int> deps;
  auto depend = [&](Operation *on) {
    if (int other = groupOf(on); other >= 0 && on != op)
      deps.insert(other);
  };
  // Symbols that this block binds: whoever's sizes use them comes after. Likewise what followed a guard. Each symbol
  // and each expression once, as sizes repeat them.
  llvm::SmallDenseSet<unsigned> symbols;
  llvm::SmallDenseSet<AffineExpr> expressions;
  auto addSymbols = [&](AffineExpr expr) {
    if (expressions.insert(expr).second)
      expr.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          symbols.insert(symbol.getPosition());
      });
  };
  auto addSizes = [&](Operation *of) {
    if (binders.empty() && guards.empty())
      return;
    of->walk([&](Operation *inner) {
      for (Type type : inner->getResultTypes())
        if (isa<RankedTensorType>(type))
          llvm::for_each(prim::getSizes(type), addSymbols);
      for (NamedAttribute attr : inner->getAttrs())
        if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
          llvm::for_each(map.getValue().getResults(), addSymbols);
    });
  };
  addSizes(op);
  // Sources without operands, such as prim.sizes, are copied but are no uses.
  SmallVector<Operation *> work{op};
  llvm::SmallDenseSet<Operation *> seen;
  while (!binders.empty() && !work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && isCopied(def) && seen.insert(def).second) {
        addSizes(def);
        work.push_back(def);
      }
  for (const Use &use : usesOf(op)) {
    if (Operation *def = use.leaf.getDefiningOp())
      depend(def);
    for (Operation *copied : use.chain)
      addSizes(copied);
  }
  SmallVector<unsigned> sorted(symbols.begin(), symbols.end());
  llvm::sort(sorted);
  for (unsigned symbol : sorted) {
    if (Operation *binder = binders.lookup(symbol))
      depend(binder);
    if (auto found = guards.find(symbol); found != guards.end())
      for (Operation *guard : found->second)
        if (orderMap.lookup(guard) < orderMap.lookup(op))
          depend(guard);
  }
  return deps;
}

void Plan::addDeps(int id, Operation *op) {
  for (int dep : depsOf(op))
    if (dep != id) {
      groups[id].deps.insert(dep);
      onceReaders[dep].insert(id);
      raise(id, groups[dep].latest);
    }
}

SmallVector<int> Plan::readersOf(int id) const {
  SmallVector<int> readers = llvm::filter_to_vector(onceReaders[id], [&](int other) {
    return other != id && !groups[other].dead && groups[other].deps.contains(id);
  });
  llvm::sort(readers);
  return readers;
}

void Plan::merge(int a, int b) {
  Group &into = groups[a], &from = groups[b];
  into.ops.append(from.ops.begin(), from.ops.end());
  llvm::sort(into.ops, [&](Operation *x, Operation *y) { return orderMap[x] < orderMap[y]; });
  into.rowRank = std::max(into.rowRank, from.rowRank);
  into.pinned |= from.pinned;
  into.copied += from.copied;
  from.dead = true;
  for (Operation *op : from.ops)
    groupMap[op] = a;
  into.first = std::min(into.first, from.first);
  raise(a, from.latest);
  recomputeDeps(a);
  for (int other : llvm::to_vector(onceReaders[b]))
    if (groups[other].deps.remove(b) && other != a) {
      groups[other].deps.insert(a);
      onceReaders[a].insert(other);
      raise(other, into.latest);
    }
}

void Plan::recomputeDeps(int id) {
  groups[id].deps.clear();
  for (Operation *op : groups[id].ops)
    addDeps(id, op);
}

void Plan::raise(int id, unsigned order) {
  SmallVector<int> work{id};
  while (!work.empty()) {
    Group &group = groups[work.pop_back_val()];
    if (group.latest >= order)
      continue;
    group.latest = order;
    const auto &readers = onceReaders[&group - groups.data()];
    work.append(readers.begin(), readers.end());
  }
}

bool Plan::dependsOn(int id, int on) const {
  SmallVector<int> work{id};
  llvm::SmallDenseSet<int> seen;
  while (!work.empty()) {
    int next = work.pop_back_val();
    if (next == on)
      return true;
    // Neither it nor what it runs after has an op behind the first one of `on`: most walks end at once.
    if (groups[next].latest >= groups[on].first && seen.insert(next).second)
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

//===--- results --------------------------------------------------------------------------------------------------===//

void Plan::findOutputs() {
  llvm::DenseSet<Value> needed;
  for (auto [id, group] : llvm::enumerate(groups)) {
    if (group.dead)
      continue;
    for (Operation *op : group.ops)
      for (const Use &use : usesOf(op))
        if (Operation *def = use.leaf.getDefiningOp(); def && groupOf(def) >= 0 && groupOf(def) != int(id)) {
          needed.insert(use.leaf);
          auto &readers = outputReaders[use.leaf];
          if (readers.empty() || readers.back().first != int(id))
            readers.push_back({int(id), op});
        }
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
    auto readers = outputReaders.find(output);
    if (readers == outputReaders.end())
      continue;
    for (auto [other, op] : readers->second) {
      const Group &group = groups[other];
      std::string reason = refusals.lookup({producer, op});
      if (reason.empty() && op->hasTrait<OpTrait::IsTerminator>())
        reason = "result of the function";
      else if (reason.empty() && group.kind == Group::Contraction && op == group.anchor())
        reason = "products and convolutions read an operand many times, from memory";
      else if (reason.empty() && group.kind == Group::Alone)
        reason = "its reader is a kernel of its own, which reads from memory";
      else if (reason.empty() && group.kind == Group::Function)
        reason = "its reader is no kernel, but runs on the host";
      else if (reason.empty())
        reason = "the kernel of " + describe(group.anchor()) + " reads it from memory";
      reasons.push_back(describe(producer) + " -> " + describe(op) + ": " + reason);
    }
  }
  return reasons;
}
