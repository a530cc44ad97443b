//===- PlanMemory.cpp - where every value of the host program lives -----------------------------------------------===//
//
// The host program runs in the order in which it is written, so liveness is an interval of op numbers. A buffer is a
// set of values that share memory: a value, its views, and what is computed in place of it.
//
//   %a = host.launch @k0(%x) ...              a: [0, 1]        arena + 0
//   %b = host.launch @k1(%a) in_place [0, 0]  b joins a: [0, 2]
//   %c = host.launch @k2(%b)                  c is returned: written to the caller's buffer
//
// Static buffers are placed greedily by falling size, each at the lowest gap among the placed buffers that are live at
// the same time (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", greedy by size).
// Symbolic sizes k * e with an equal expression e form a group that is planned in the same way in multiples of e: a
// transformer's activations are all multiples of batch * sequence. The groups are the segments of the arena, one after
// the other: a place names its segment and the offset in it, as where a segment begins is a sum of all before.
//
// Sizes that depend on data (getBoundSymbols) are allocated when the value is defined: of a branch's result where the
// branch ends, of a carried value in each iteration.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/CudaGraphs.h"
#include "tc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Support/Logging.h"
#include "tcrt/artifact_abi.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace tc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;
using namespace tc::host;

namespace {

constexpr int64_t kAlign = TCRT_DATA_ALIGN;

/// A set of values that share memory.
struct Buffer {
  int64_t first = 0, last = 0; ///< numbers of the first definition and the last use
  AffineExpr bytes;
  int64_t output = -1; ///< the caller's buffer that it is, or -1
  bool fixed = false;  ///< input or constant: never written
  PlaceAttr place;
};

/// Divides a size expression by a constant that is known to divide it, term by term.
AffineExpr divideExact(AffineExpr expr, int64_t divisor) {
  if (divisor == 1)
    return expr;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return getAffineConstantExpr(constant.getValue() / divisor, expr.getContext());
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    if (expr.getKind() == AffineExprKind::Add)
      return divideExact(binary.getLHS(), divisor) + divideExact(binary.getRHS(), divisor);
    if (expr.getKind() == AffineExprKind::Mul)
      if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
        if (factor.getValue() % divisor == 0)
          return binary.getLHS() * (factor.getValue() / divisor);
  }
  return expr.floorDiv(divisor);
}

/// What the functions of a module share: constants, by what they hold, and states.
struct Shared {
  llvm::MapVector<std::tuple<Attribute, Attribute, Attribute, Attribute, Type>, PlaceAttr> weights;
  int64_t weightsBytes = 0;
  llvm::StringMap<int64_t> states; ///< numbers by name
};

class Planner {
public:
  Planner(func::FuncOp func, Shared &shared) : func(func), shared(shared), context(func.getContext()) {}

  LogicalResult run();

private:
  void breakCarryHazards();
  void moveWrites();
  bool isSizedLater(Value view, Value source) const;
  void chooseOutputs();
  void number(Block &block);
  void makeBuffers();
  void computeUses();
  void shareChosen();
  void shareBranches();
  void shareCarried();
  void shareInPlace();
  void placeStates();
  void place();
  void annotate();
  void logPlaces();

  /// The value whose memory `value` is.
  Value root(Value value) const { return getMemorySource(value); }
  /// Buffers are merged by pointing to each other; the last one of the chain counts.
  unsigned bufferOf(Value value) const {
    unsigned id = ids.lookup(root(value));
    while (parent[id] != id)
      id = parent[id];
    return id;
  }
  bool dependsOnData(AffineExpr expr) const {
    return llvm::any_of(getSymbols(expr), [&](unsigned s) { return s < boundByData.size() && boundByData[s]; });
  }
  bool hasSizeOfData(Type type) const {
    return llvm::any_of(prim::getSizes(type), [&](AffineExpr size) { return dependsOnData(size); });
  }
  /// Whether the op reads nothing: its result is its operand's memory.
  bool isView(Operation *op) const {
    return op->getNumResults() == 1 && op->getNumOperands() == 1 && root(op->getResult(0)) != op->getResult(0);
  }
  bool ownsMemory(Operation *op) const {
    return isa<LaunchOp, ChooseOp, CopyOp, prim::HostCallOp, prim::IfOp, prim::WhileOp, prim::SizesOp, prim::SplatOp,
               prim::IotaOp>(op);
  }
  /// Whether the buffer's memory can only be made where the value is: its size depends on data, or the caller must be
  /// told a dim that does (of an empty output, whose size does not).
  bool isLate(const Buffer &buffer) {
    return dependsOnData(buffer.bytes) || (buffer.output >= 0 && hasSizeOfData(func.getResultTypes()[buffer.output]));
  }
  unsigned addBuffer(int64_t first, AffineExpr bytes) {
    buffers.emplace_back();
    buffers.back().first = buffers.back().last = first;
    buffers.back().bytes = bytes;
    parent.push_back(buffers.size() - 1);
    return buffers.size() - 1;
  }
  PlaceAttr makePlace(PlaceKind kind, int64_t index, AffineExpr offset) {
    return PlaceAttr::get(context, kind, index, AffineMapAttr::get(prim::makeSizeMap(context, {offset})));
  }
  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }

  func::FuncOp func;
  Shared &shared;
  MLIRContext *context;
  DenseMap<Operation *, int64_t> numbers; ///< in program order, before nested ops
  DenseMap<Operation *, int64_t> ends;    ///< greatest number inside
  int64_t count = 0;
  DenseMap<Value, unsigned> ids;
  std::vector<Buffer> buffers;
  std::vector<unsigned> parent;
  SmallVector<bool> boundByData;    ///< per symbol
  SmallVector<AffineExpr> segments; ///< bytes of each one of the arena
  int64_t liveBytes = 0;
};

/// A loop's next values are copied to their places one by one: a yielded value that is itself carried (at any place)
/// would be read after it was overwritten, so it is copied first.
void Planner::breakCarryHazards() {
  func.walk([&](prim::WhileOp loop) {
    auto yield = cast<prim::YieldOp>(loop.getBody().front().getTerminator());
    OpBuilder builder(yield);
    for (OpOperand &operand : yield->getOpOperands().drop_front()) {
      auto argument = dyn_cast<BlockArgument>(root(operand.get()));
      if (argument && argument.getOwner() == &loop.getBody().front() &&
          argument.getArgNumber() != operand.getOperandNumber())
        operand.set(CopyOp::create(builder, yield.getLoc(), operand.get().getType(), operand.get()));
    }
  });
}

/// States get their next values at the end of the function, one by one: the value of a state that is written, too, is
/// copied before it goes to another one.
void Planner::moveWrites() {
  Operation *terminator = func.front().getTerminator();
  SmallVector<prim::WriteStateOp> writes = llvm::to_vector(func.front().getOps<prim::WriteStateOp>());
  OpBuilder builder(terminator);
  for (prim::WriteStateOp write : writes) {
    auto read = root(write.getValue()).getDefiningOp<prim::ReadStateOp>();
    if (read && read.getState() != write.getState())
      write.getValueMutable().assign(
          CopyOp::create(builder, write.getLoc(), write.getValue().getType(), write.getValue()));
  }
  for (prim::WriteStateOp write : writes)
    write->moveBefore(terminator);
}

/// Whether the sizes that the result `view` of the function has by its type are known, or known to fit, only after
/// `source`, which it is a view of, was computed: the caller's buffer is asked for with these sizes.
bool Planner::isSizedLater(Value view, Value source) const {
  AffineExpr bytes = getSizeBytes(view.getType()), sourceBytes = getSizeBytes(source.getType());
  if (bytes != sourceBytes && (dependsOnData(bytes) || dependsOnData(sourceBytes)))
    return true;
  llvm::SmallDenseSet<unsigned> known;
  for (AffineExpr size : prim::getSizes(source.getType()))
    for (unsigned symbol : getSymbols(size))
      known.insert(symbol);
  return llvm::any_of(prim::getSizes(view.getType()), [&](AffineExpr size) {
    return llvm::any_of(getSymbols(size), [&](unsigned symbol) {
      return symbol < boundByData.size() && boundByData[symbol] && !known.contains(symbol);
    });
  });
}

void Planner::chooseOutputs() {
  Operation *terminator = func.front().getTerminator();
  OpBuilder builder(terminator);
  DenseSet<Value> taken;
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value value = root(operand.get());
    Operation *def = value.getDefiningOp();
    // A carried value whose size changes has new memory in each iteration, but the caller's buffer is given once.
    bool grows = isa_and_nonnull<prim::WhileOp>(def) && hasSizeOfData(value.getType());
    if (!def || !ownsMemory(def) || grows || isSizedLater(operand.get(), value) || !taken.insert(value).second) {
      auto copy = CopyOp::create(builder, operand.get().getLoc(), operand.get().getType(), operand.get());
      operand.set(copy);
      taken.insert(copy.getResult());
    }
  }
}

void Planner::number(Block &block) {
  for (Operation &op : block) {
    // Launches of a group run at the same time.
    auto launch = dyn_cast<LaunchOp>(op);
    const bool isJoining = launch && launch.joinsPrevious();
    numbers[&op] = isJoining ? count - 1 : count++;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        number(inner);
    ends[&op] = count - 1;
  }
}

void Planner::makeBuffers() {
  for (BlockArgument argument : func.getArguments()) {
    unsigned id = addBuffer(0, getSizeBytes(argument.getType()));
    buffers[id].fixed = true;
    buffers[id].place = makePlace(PlaceKind::Input, argument.getArgNumber(), constant(0));
    ids[argument] = id;
  }
  llvm::StringMap<unsigned> states;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto read = dyn_cast<prim::ReadStateOp>(op)) {
      auto [entry, isNew] = states.try_emplace(read.getState(), 0);
      if (isNew) {
        entry->second = addBuffer(0, getSizeBytes(read.getType()));
        buffers[entry->second].fixed = true;
        buffers[entry->second].place = makePlace(PlaceKind::State, shared.states.lookup(read.getState()), constant(0));
      }
      ids[read.getResult()] = entry->second;
      return;
    }
    Attribute data, map, transform, tf32;
    if (auto constantOp = dyn_cast<ConstantOp>(op)) {
      data = constantOp.getData();
      map = constantOp.getMapAttr();
      transform = constantOp.getTransformAttr();
      tf32 = constantOp.getTf32Attr();
    } else if (auto constantOp = dyn_cast<prim::ConstantOp>(op)) {
      data = constantOp.getValue();
    }
    if (data) {
      // The same content may stand at several places of the model's file.
      if (auto reference = dyn_cast<base::DataAttr>(data))
        data = StringAttr::get(reference.getHash(), reference.getType());
      Type type = op->getResult(0).getType();
      AffineExpr bytes = getSizeBytes(type);
      // Equal constants are stored once.
      PlaceAttr &place = shared.weights[{data, map, transform, tf32, type}];
      if (!place) {
        place = makePlace(PlaceKind::Weights, 0, constant(shared.weightsBytes));
        shared.weightsBytes += llvm::alignTo(cast<AffineConstantExpr>(bytes).getValue(), kAlign);
      }
      unsigned id = addBuffer(0, bytes);
      buffers[id].fixed = true;
      buffers[id].place = place;
      ids[op->getResult(0)] = id;
      return;
    }
    if (!ownsMemory(op))
      return;
    for (Value result : op->getResults())
      if (root(result) == result)
        ids[result] = addBuffer(numbers[op], getSizeBytes(result.getType()));
    if (auto loop = dyn_cast<prim::WhileOp>(op)) {
      for (BlockArgument argument : loop.getBody().getArguments()) {
        // The iteration number has memory of its own; carried values live where the results do.
        unsigned id = argument.getArgNumber() == 0 ? addBuffer(numbers[op], getSizeBytes(argument.getType()))
                                                   : ids[loop.getResult(argument.getArgNumber() - 1)];
        buffers[id].last = std::max(buffers[id].last, ends[op]);
        ids[argument] = id;
      }
    }
  });
  for (OpOperand &operand : func.front().getTerminator()->getOpOperands())
    buffers[bufferOf(operand.get())].output = operand.getOperandNumber();
}

void Planner::computeUses() {
  func.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Value value = root(operand);
      int64_t use = numbers[op];
      // A loop's body runs again: values from outside stay until it ends.
      Region *home = value.getParentRegion();
      for (Operation *parent = op->getParentOp();
           parent && parent->getParentRegion() && home->isAncestor(parent->getParentRegion());
           parent = parent->getParentOp())
        if (isa<prim::WhileOp>(parent))
          use = std::max(use, ends[parent]);
      Buffer &buffer = buffers[bufferOf(value)];
      buffer.last = std::max(buffer.last, use);
    }
    // A yielded value is copied to the results' memory, which is held from the start of the op on.
    if (isa<prim::IfOp, prim::WhileOp>(op))
      for (Value result : op->getResults()) {
        Buffer &buffer = buffers[bufferOf(result)];
        buffer.last = std::max(buffer.last, ends[op]);
      }
  });
}

/// What the regions of a choice yield lives where its results do.
void Planner::shareChosen() {
  func.walk([&](ChooseOp choice) {
    for (Region &region : choice.getCases())
      for (auto [result, yielded] :
           llvm::zip_equal(choice.getResults(), region.front().getTerminator()->getOperands())) {
        const unsigned from = bufferOf(yielded), to = bufferOf(result);
        buffers[to].last = std::max(buffers[to].last, buffers[from].last);
        parent[from] = to;
      }
  });
}

/// What a branch computes and yields lives where the result does, so that nothing is copied: an output of a function
/// with code for listed sizes is written once. What is yielded twice, or was there before, is copied.
void Planner::shareBranches() {
  func.walk([&](prim::IfOp op) {
    for (Region &region : op->getRegions()) {
      Block &body = region.front();
      DenseSet<Value> taken;
      for (auto [result, yielded] : llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands())) {
        const Value value = root(yielded);
        Operation *def = value.getDefiningOp();
        if (!def || def->getBlock() != &body || !ownsMemory(def) || !taken.insert(value).second)
          continue;
        const unsigned from = bufferOf(value), to = bufferOf(result);
        const Buffer &source = buffers[from], &target = buffers[to];
        // A view has as many bytes as its source: sizes that the branch knows may stand for symbols.
        if (from == to || source.fixed || source.first < numbers[op] || isLate(source) || isLate(target) ||
            getSizeBytes(yielded.getType()) != getSizeBytes(result.getType()))
          continue;
        parent[from] = to;
      }
    }
  });
}

/// Whether a launch's pairs of inputs and outputs in place hold this one.
bool mayOverwrite(ArrayRef<int64_t> pairs, int64_t input, int64_t output) {
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i] == input && pairs[i + 1] == output)
      return true;
  return false;
}

/// A loop's next value that a launch makes in place of the carried one, or once that one has been read, lives where
/// that one does, if nothing reads the old value afterwards: an iteration costs no copy of what it carries on.
void Planner::shareCarried() {
  func.walk([&](prim::WhileOp loop) {
    Block &body = loop.getBody().front();
    for (OpOperand &next : body.getTerminator()->getOpOperands().drop_front()) {
      const Value carried = body.getArgument(next.getOperandNumber()), result = root(next.get());
      auto launch = result.getDefiningOp<LaunchOp>();
      std::optional<ArrayRef<int64_t>> pairs = launch ? launch.getInPlace() : std::nullopt;
      if (!launch || launch->getBlock() != &body)
        continue;
      bool allowed = true;
      for (auto [number, input] : llvm::enumerate(launch.getInputs()))
        if (root(input) == carried)
          allowed &= pairs && mayOverwrite(*pairs, number, cast<OpResult>(result).getResultNumber());
      body.walk([&](Operation *op) {
        const bool readsCarried =
            llvm::any_of(op->getOperands(), [&](Value operand) { return root(operand) == carried; });
        allowed &= !readsCarried || op == launch || isView(op) ||
                   ends.lookup(body.findAncestorOpInBlock(*op)) < numbers.lookup(launch);
      });
      const unsigned from = bufferOf(result), to = bufferOf(carried);
      Buffer &target = buffers[to], &source = buffers[from];
      if (!allowed || from == to || target.fixed || source.first != numbers[launch] || source.output >= 0 ||
          target.bytes != source.bytes || isLate(target) || isLate(source))
        continue;
      parent[from] = to;
    }
  });
}

void Planner::shareInPlace() {
  func.walk<WalkOrder::PreOrder>([&](LaunchOp launch) {
    std::optional<ArrayRef<int64_t>> pairs = launch.getInPlace();
    if (!pairs)
      return;
    for (size_t i = 0; i + 1 < pairs->size(); i += 2) {
      Value in = launch.getInputs()[(*pairs)[i]], out = launch.getOutputs()[(*pairs)[i + 1]];
      unsigned from = bufferOf(out), to = bufferOf(in);
      Buffer &target = buffers[to], &source = buffers[from];
      // One input at most: two of them in one memory would overwrite each other.
      if (source.first != numbers[launch])
        continue;
      if (from == to || target.fixed || target.last != numbers[launch] || target.first == target.last)
        continue;
      if (target.bytes != source.bytes || (target.output >= 0 && source.output >= 0))
        continue;
      // Memory made at the definition belongs to one value.
      if (isLate(target) || isLate(source))
        continue;
      // Every operand in this memory must be one that this output may overwrite, and no launch of its group has any.
      bool allowed = llvm::none_of(getGroupMembers(launch), [&](LaunchOp member) {
        auto isThere = [&](Value value) { return bufferOf(value) == to; };
        return member != launch &&
               (llvm::any_of(member.getInputs(), isThere) || llvm::any_of(member.getOutputs(), isThere));
      });
      for (auto [number, input] : llvm::enumerate(launch.getInputs())) {
        if (bufferOf(input) != to)
          continue;
        allowed &= mayOverwrite(*pairs, number, (*pairs)[i + 1]);
      }
      if (!allowed)
        continue;
      target.last = std::max(target.last, source.last);
      if (source.output >= 0)
        target.output = source.output;
      parent[from] = to;
    }
  });
}

/// A state's next value is made in the state's memory where nothing reads the old value any more, but for the launch
/// that makes it and may do so in place. Other values stay where they are and are copied by the write.
void Planner::placeStates() {
  for (auto write : func.front().getOps<prim::WriteStateOp>()) {
    const Value value = root(write.getValue());
    Operation *def = value.getDefiningOp();
    auto launch = dyn_cast_or_null<LaunchOp>(def);
    if (!def || !ownsMemory(def) || def->getBlock() != &func.front())
      continue;
    Buffer &source = buffers[bufferOf(value)];
    if (source.place || source.output >= 0 || source.first != numbers[def] || isLate(source) ||
        source.bytes != getSizeBytes(value.getType()))
      continue;
    bool allowed = true;
    func.walk([&](prim::ReadStateOp read) {
      if (read.getState() != write.getState())
        return;
      const unsigned state = bufferOf(read.getResult());
      allowed &= buffers[state].last <= numbers[def];
      if (buffers[state].last < numbers[def])
        return;
      // The launch itself is among the last readers.
      std::optional<ArrayRef<int64_t>> pairs = launch ? launch.getInPlace() : std::nullopt;
      allowed &= pairs && getGroupMembers(launch).size() == 1;
      for (auto [number, input] : llvm::enumerate(launch ? ValueRange(launch.getInputs()) : ValueRange()))
        if (bufferOf(input) == state)
          allowed &= pairs && mayOverwrite(*pairs, number, cast<OpResult>(value).getResultNumber());
    });
    if (allowed)
      source.place = makePlace(PlaceKind::State, shared.states.lookup(write.getState()), constant(0));
  }
}

/// Places `items` (size, buffer) greedily; returns the peak in the unit of the sizes.
int64_t placeGreedily(SmallVectorImpl<std::pair<int64_t, Buffer *>> &items, SmallVectorImpl<int64_t> &offsets) {
  SmallVector<unsigned> order(items.size());
  for (unsigned i = 0; i < items.size(); ++i)
    order[i] = i;
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    if (items[a].first != items[b].first)
      return items[a].first > items[b].first;
    return items[a].second->first < items[b].second->first;
  });
  offsets.assign(items.size(), 0);
  SmallVector<unsigned> placed; // by rising offset
  int64_t peak = 0;
  for (unsigned item : order) {
    auto [size, buffer] = items[item];
    int64_t best = -1, bestGap = INT64_MAX, end = 0;
    for (unsigned other : placed) {
      auto [otherSize, otherBuffer] = items[other];
      if (otherBuffer->last < buffer->first || buffer->last < otherBuffer->first)
        continue;
      int64_t gap = offsets[other] - end;
      if (gap >= size && gap < bestGap) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, offsets[other] + otherSize);
    }
    offsets[item] = best >= 0 ? best : end;
    peak = std::max(peak, offsets[item] + size);
    auto position = llvm::upper_bound(placed, item, [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; });
    placed.insert(position, item);
  }
  return peak;
}

void Planner::place() {
  struct Group {
    SmallVector<std::pair<int64_t, Buffer *>> items;
  };
  llvm::MapVector<AffineExpr, Group> groups; // by the expression whose multiples the sizes are
  AffineExpr one = constant(1);
  groups[one];
  int64_t heapCount = 0;
  for (auto [id, buffer] : llvm::enumerate(buffers)) {
    if (parent[id] != id || buffer.place)
      continue;
    bool late = isLate(buffer);
    if (buffer.output >= 0) {
      buffer.place = makePlace(late ? PlaceKind::LateOutput : PlaceKind::Output, buffer.output, constant(0));
      continue;
    }
    if (late) {
      buffer.place = makePlace(PlaceKind::Heap, heapCount++, constant(0));
      continue;
    }
    if (auto bytes = prim::getConstantSize(buffer.bytes)) {
      groups[one].items.emplace_back(llvm::alignTo(std::max<int64_t>(*bytes, 1), kAlign), &buffer);
      continue;
    }
    int64_t divisor = buffer.bytes.getLargestKnownDivisor();
    if (divisor % kAlign == 0 || divisor >= 16 * kAlign)
      groups[prim::simplifySize(divideExact(buffer.bytes, divisor))].items.emplace_back(llvm::alignTo(divisor, kAlign),
                                                                                        &buffer);
    else
      groups[prim::simplifySize((buffer.bytes + (kAlign - 1)).floorDiv(kAlign))].items.emplace_back(kAlign, &buffer);
  }
  for (auto &[unit, group] : groups) {
    if (group.items.empty())
      continue;
    SmallVector<int64_t> offsets;
    const int64_t peak = placeGreedily(group.items, offsets);
    for (auto [item, offset] : llvm::zip_equal(group.items, offsets))
      item.second->place = makePlace(PlaceKind::Arena, int64_t(segments.size()), unit * offset);
    segments.push_back(prim::simplifySize(unit * peak));
  }
  if (segments.empty())
    segments.push_back(constant(0));
  SmallVector<int64_t> live(count + 1, 0);
  for (auto [size, buffer] : groups[one].items)
    for (int64_t i = buffer->first; i <= buffer->last; ++i)
      liveBytes = std::max(liveBytes, live[i] += size);
}

void Planner::annotate() {
  Builder builder(context);
  auto places = [&](ValueRange values) {
    return builder.getArrayAttr(
        llvm::map_to_vector(values, [&](Value value) -> Attribute { return buffers[bufferOf(value)].place; }));
  };
  func->setAttr(kPlacesAttr, places(func.getArguments()));
  SetVector<AffineExpr> scratch;
  func.walk([&](Operation *op) {
    if (op == func)
      return;
    if (auto loop = dyn_cast<prim::WhileOp>(op))
      op->setAttr("host.iteration", getIterationNumbers(loop)
                                        ? builder.getArrayAttr({makePlace(PlaceKind::Heap, 0, constant(0))})
                                        : places(loop.getBody().getArgument(0)));
    if (op->getNumResults() > 0)
      op->setAttr(kPlacesAttr, places(op->getResults()));
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch || launch.joinsPrevious())
      return;
    // Launches of a group have scratch one behind the other.
    AffineExpr all = constant(0);
    for (LaunchOp member : getGroupMembers(launch))
      if (member.getScratch() && !dependsOnData(member.getScratch()->getResult(0)))
        all = all + member.getScratch()->getResult(0);
    if (all = prim::simplifySize(all); prim::getConstantSize(all) != 0)
      scratch.insert(all);
  });
  if (scratch.empty())
    scratch.insert(constant(0));
  func->setAttr(kArenaAttr, AffineMapAttr::get(prim::makeSizeMap(context, segments)));
  func->setAttr(kScratchAttr, AffineMapAttr::get(prim::makeSizeMap(context, scratch.getArrayRef())));
  func->setAttr(kLiveAttr, builder.getI64IntegerAttr(liveBytes));
}

/// A line per value in program order, then the sums.
void Planner::logPlaces() {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<unsigned, std::string> owners;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value value : op == func ? ValueRange(func.getArguments()) : ValueRange(op->getResults())) {
      unsigned id = bufferOf(value);
      const Buffer &buffer = buffers[id];
      if (!buffer.place)
        continue;
      std::string name = llvm::join(getNodeNames(value.getLoc()), "+");
      if (name.empty())
        name = op->getName().getStringRef().str();
      auto [owner, isNew] = owners.try_emplace(id, name);
      if (!isNew) {
        os << name << ": shares the memory of " << owner->second << "\n";
        continue;
      }
      os << name << ": " << stringifyPlaceKind(buffer.place.getKind()) << " " << buffer.place.getIndex() << " + "
         << buffer.place.getOffset().getValue().getResult(0) << ", " << buffer.bytes << " bytes, live from "
         << buffer.first << " to " << buffer.last << "\n";
    }
  });
  os << "arena " << getArenaBytes(func) << " bytes, most live at once " << liveBytes << ", weights "
     << shared.weightsBytes << "\n";
  log::write("memory", text);
}

LogicalResult Planner::run() {
  // Planning again starts over.
  func.walk([&](CopyOp copy) {
    copy.getResult().replaceAllUsesWith(copy.getInput());
    copy.erase();
  });
  func.walk([&](Operation *op) {
    for (int64_t symbol : prim::getBoundSymbols(op)) {
      boundByData.resize(std::max<size_t>(boundByData.size(), symbol + 1), false);
      boundByData[symbol] = true;
    }
  });
  WalkResult result = func.walk([&](Operation *op) -> WalkResult {
    for (Value value : op->getResults()) {
      auto tensor = dyn_cast<RankedTensorType>(value.getType());
      if (!tensor || getElementBits(tensor.getElementType()) == 0)
        return op->emitError() << "a value of type " << value.getType() << " has no place in memory";
      if (isa<ConstantOp, prim::ConstantOp>(op) && !tensor.hasStaticShape())
        return op->emitError() << "a constant needs a static shape";
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  breakCarryHazards();
  chooseOutputs();
  moveWrites();
  number(func.front());
  makeBuffers();
  computeUses();
  shareChosen();
  shareBranches();
  shareCarried();
  shareInPlace();
  placeStates();
  place();
  annotate();
  if (log::isEnabled("memory"))
    logPlaces();
  return success();
}

struct PlanMemory : public tc::impl::PlanMemoryPassBase<PlanMemory> {
  void runOnOperation() override {
    Shared shared;
    for (auto state : getOperation().getOps<prim::StateOp>())
      shared.states.insert({state.getSymName(), int64_t(shared.states.size())});
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(Planner(func, shared).run()))
        return signalPassFailure();
    Builder builder(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        func->setAttr(kWeightsAttr, builder.getI64IntegerAttr(shared.weightsBytes));
  }
};

} // namespace
