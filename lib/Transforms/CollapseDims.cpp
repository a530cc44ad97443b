//===- CollapseDims.cpp - tc-collapse-dims: fewer, longer dims inside a region ------------------------------------===//
//
// Dims that every op of a region treats alike become one, so that loops are long and rows are whole:
//
//   kernel.region(%a = %x : tensor<4x128x28x28xf32>) ... reduce [2, 3], broadcast back, sub
// becomes
//   %v = prim.reshape %x : ... -> tensor<512x784xf32>
//   kernel.region(%a = %v : tensor<512x784xf32>) ... reduce [1], broadcast back, sub
//   prim.reshape %r : tensor<512x784xf32> -> tensor<4x128x28x28xf32>
//
// The dims of all values are sorted into classes: dims that an op relates are of one class (an add relates dim i of its
// operands and its result, a transpose by its permutation, ...). Classes A and B merge if B stands right behind A
// wherever one of the two occurs, unless an op moves positions along one of them: the axis of a concat, what a slice
// cuts or a pad fills. Along such a dim and a short last one behind it, positions move by whole rows of that one: the
// two become one if every step is 1. Dims of size 1 vanish. Regions with other than these ops, pointwise ones,
// reductions, broadcasts and transposes are left alone.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/Fuse.h"
#include "tc/Transforms/Passes.h"
#include "tc/Transforms/Preferences.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace tc {
#define GEN_PASS_DEF_COLLAPSEDIMSPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;

namespace {

bool isOne(AffineExpr size) { return prim::getConstantSize(size) == std::optional<int64_t>(1); }

/// The classes of the dims of one region's values.
class Classes {
public:
  /// Fails if the region holds an op that this pass knows nothing of.
  static std::optional<Classes> analyze(kernel::RegionOp region, const Preferences &prefer) {
    Classes classes(prefer.lanes);
    Block &body = region.getBody().front();
    for (BlockArgument argument : body.getArguments())
      classes.add(argument);
    for (Operation &op : body.without_terminator()) {
      for (Value result : op.getResults())
        classes.add(result);
      if (!classes.relate(&op))
        return std::nullopt;
    }
    classes.findRuns();
    return classes;
  }

  /// Per dim of the collapsed value the dims of `value` that it stands for.
  SmallVector<SmallVector<int64_t>> groups(Value value) const {
    SmallVector<SmallVector<int64_t>> result;
    for (auto [dim, id] : llvm::enumerate(ids.find(value)->second)) {
      if (id < 0)
        continue;
      // What does not lead a run stands behind the class before it wherever it occurs. A class may follow itself: one
      // value, broadcast along two dims.
      if (leaders[classOf(id)] == classOf(id) || result.empty())
        result.emplace_back();
      result.back().push_back(dim);
    }
    return result;
  }
  RankedTensorType collapsed(Value value) const {
    SmallVector<AffineExpr> sizes = prim::getSizes(value), merged;
    for (const SmallVector<int64_t> &group : groups(value)) {
      AffineExpr size = sizes[group.front()];
      for (int64_t dim : ArrayRef(group).drop_front())
        size = size * sizes[dim];
      merged.push_back(size);
    }
    return prim::makeType(cast<RankedTensorType>(value.getType()).getElementType(), merged);
  }
  /// New number of dim `dim` of `value`; nullopt if it vanishes.
  std::optional<int64_t> newDim(Value value, int64_t dim) const {
    for (auto [i, group] : llvm::enumerate(groups(value)))
      if (llvm::is_contained(group, dim))
        return i;
    return std::nullopt;
  }
  bool mergesAny() const { return merges; }

private:
  explicit Classes(int64_t lanes) : lanes(lanes) {}

  void add(Value value) {
    SmallVector<int> &list = ids[value];
    order.push_back(value);
    for (AffineExpr size : prim::getSizes(value)) {
      list.push_back(isOne(size) ? -1 : int(parent.size()));
      if (!isOne(size)) {
        kin.push_back(parent.size());
        parent.push_back(parent.size());
        extents.push_back(prim::getConstantSize(size).value_or(lanes));
      }
    }
  }
  static int rootOf(const std::vector<int> &parents, int id) {
    while (parents[id] != id)
      id = parents[id];
    return id;
  }
  int classOf(int id) const { return rootOf(parent, id); }
  void unite(int a, int b) {
    if (a >= 0 && b >= 0)
      parent[std::max(classOf(a), classOf(b))] = std::min(classOf(a), classOf(b));
  }
  void unite(Value a, int64_t i, Value b, int64_t j) { unite(ids[a][i], ids[b][j]); }
  /// Relates the dims of an op that moves positions along those that `isMoved` names, and by more than 1 along those
  /// that `isStepped` does; these lead what they are merged into, and may not vanish.
  bool relateMoved(
      Value operand, Value result, llvm::function_ref<bool(int64_t)> isMoved,
      llvm::function_ref<bool(int64_t)> isStepped = [](int64_t) { return false; }) {
    const SmallVector<AffineExpr> in = prim::getSizes(operand), out = prim::getSizes(result);
    for (int64_t i = 0, n = int64_t(out.size()); i < n; ++i) {
      if (!isMoved(i) && in[i] == out[i]) {
        unite(operand, i, result, i);
        continue;
      }
      for (int id : {ids[operand][i], ids[result][i]}) {
        if (id < 0)
          return false;
        pinned.push_back(id);
        if (isStepped(i))
          stepped.push_back(id);
      }
      kin[rootOf(kin, ids[operand][i])] = rootOf(kin, ids[result][i]);
    }
    return true;
  }

  bool relate(Operation *op) {
    Value result = op->getResult(0);
    int64_t rank = ids[result].size();
    if (op->hasTrait<prim::PointwiseTrait>()) {
      for (Value operand : op->getOperands())
        for (int64_t i = 0; i < rank; ++i)
          unite(operand, i, result, i);
      return true;
    }
    if (auto transpose = dyn_cast<prim::TransposeOp>(op)) {
      for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
        unite(transpose.getOperand(), dim, result, i);
      return true;
    }
    if (auto broadcast = dyn_cast<prim::BroadcastOp>(op)) {
      SmallVector<AffineExpr> in = prim::getSizes(broadcast.getOperand()), out = prim::getSizes(result);
      for (auto [i, dim] : llvm::enumerate(broadcast.getDims())) {
        if (!isOne(in[i]) && in[i] != out[dim])
          return false; // a size that may be 1 at run time
        unite(broadcast.getOperand(), i, result, dim);
      }
      return true;
    }
    if (auto reshape = dyn_cast<prim::ReshapeOp>(op)) {
      if (fuse::getSpace(reshape.getOperand()) != fuse::getSpace(result))
        return false;
      SmallVector<int> in, out;
      llvm::copy_if(ids[reshape.getOperand()], std::back_inserter(in), [](int id) { return id >= 0; });
      llvm::copy_if(ids[result], std::back_inserter(out), [](int id) { return id >= 0; });
      for (auto [a, b] : llvm::zip_equal(in, out))
        unite(a, b);
      return true;
    }
    if (auto reduce = dyn_cast<prim::ReduceOp>(op)) {
      int64_t next = 0;
      for (int64_t i = 0, n = ids[reduce.getOperand()].size(); i < n; ++i)
        if (!llvm::is_contained(reduce.getDims(), i))
          unite(reduce.getOperand(), i, result, next++);
      return true;
    }
    if (auto concat = dyn_cast<prim::ConcatOp>(op))
      return llvm::all_of(concat.getInputs(), [&](Value input) {
        return relateMoved(input, result, [&](int64_t dim) { return dim == int64_t(concat.getAxis()); });
      });
    if (auto slice = dyn_cast<prim::SliceOp>(op))
      return relateMoved(
          slice.getOperand(), result,
          [&](int64_t dim) {
            return slice.getSteps()[dim] != 1 || prim::getConstantSize(slice.getStarts().getResult(dim)) != 0;
          },
          [&](int64_t dim) { return slice.getSteps()[dim] != 1; });
    if (auto pad = dyn_cast<prim::PadOp>(op))
      return relateMoved(pad.getOperand(), result,
                         [&](int64_t dim) { return prim::getConstantSize(pad.getLow().getResult(dim)) != 0; });
    return isa<prim::SplatOp>(op) || (isa<prim::ConstantOp>(op) && fuse::isSmallConstant(op) &&
                                      isa<DenseElementsAttr>(cast<prim::ConstantOp>(op).getValue()));
  }

  void findRuns() {
    // What follows each class: a class, -1 for the end, kMixed if it differs between values.
    constexpr int kMixed = -2, kNone = -3;
    std::vector<int> next(parent.size(), kNone), previous(parent.size(), kNone);
    auto note = [&](int &slot, int id) { slot = slot == kNone || slot == id ? id : kMixed; };
    for (Value value : order) {
      SmallVector<int> list;
      for (int id : ids[value])
        if (id >= 0)
          list.push_back(classOf(id));
      for (size_t i = 0; i < list.size(); ++i) {
        note(previous[list[i]], i ? list[i - 1] : -1);
        note(next[list[i]], i + 1 < list.size() ? list[i + 1] : -1);
      }
    }
    llvm::SmallDenseSet<int> fixed;
    for (int id : pinned)
      fixed.insert(classOf(id));
    joinShortRows(fixed, next);
    leaders.resize(parent.size());
    for (size_t id = 0; id < parent.size(); ++id)
      leaders[id] = id;
    auto merged = [&](int a, int b) {
      return a >= 0 && b >= 0 && a != b && next[a] == b && previous[b] == a && !fixed.contains(a) && !fixed.contains(b);
    };
    for (size_t id = 0; id < parent.size(); ++id) {
      int leader = classOf(id);
      // A run is finite as no class follows itself; the bound guards against x -> y -> x over two values.
      for (size_t steps = 0; steps < parent.size() && merged(previous[leader], leader); ++steps)
        leader = previous[leader];
      leaders[id] = shortRows.contains(leader) ? shortRows.lookup(leader) : leader;
      merges |= leaders[id] != classOf(id);
    }
  }

  /// Finds the short last dims that the dims along which positions move take behind them: those dims and what they are
  /// moved to, all of them or none, and wherever one of them occurs. `next`: what follows each class.
  void joinShortRows(const llvm::SmallDenseSet<int> &moved, ArrayRef<int> next) {
    // Kinship of ids becomes that of their classes.
    for (size_t id = 0; id < parent.size(); ++id)
      kin[rootOf(kin, id)] = rootOf(kin, classOf(id));
    llvm::SmallDenseSet<int> steppedKin;
    for (int id : stepped)
      steppedKin.insert(rootOf(kin, id));
    for (size_t last = 0; last < parent.size(); ++last) {
      if (classOf(last) != int(last) || moved.contains(last) || extents[last] >= lanes || next[last] != -1)
        continue;
      // What stands before it, everywhere: dims that move, all of one kin.
      std::optional<int> before;
      bool isJoined = true;
      for (Value value : order) {
        int previous = -1;
        for (int id : ids[value]) {
          if (id < 0)
            continue;
          if (classOf(id) == int(last)) {
            isJoined &= previous >= 0 && moved.contains(previous) &&
                        before.value_or(rootOf(kin, previous)) == rootOf(kin, previous);
            if (isJoined)
              before = rootOf(kin, previous);
          }
          previous = classOf(id);
        }
      }
      if (!isJoined || !before || steppedKin.contains(*before))
        continue;
      for (size_t id = 0; id < parent.size(); ++id)
        if (rootOf(kin, id) == *before)
          isJoined &= next[classOf(id)] == int(last);
      if (isJoined)
        shortRows[last] = *before;
    }
  }

  int64_t lanes; // a last dim of fewer elements is short: it fills no vector
  llvm::DenseMap<Value, SmallVector<int>> ids;
  SmallVector<Value> order;
  std::vector<int> parent;
  std::vector<int> kin;               // by id: dims that an op moves positions between
  std::vector<int64_t> extents;       // by id; what only the run knows is not short
  SmallVector<int> pinned, stepped;   // dims along which an op moves positions; by more than 1
  llvm::DenseMap<int, int> shortRows; // by class: what it stands behind
  std::vector<int> leaders;
  bool merges = false;
};

struct CollapseDimsPass : tc::impl::CollapseDimsPassBase<CollapseDimsPass> {
  using CollapseDimsPassBase::CollapseDimsPassBase;

  void runOnOperation() override {
    SmallVector<kernel::RegionOp> regions;
    getOperation().walk([&](kernel::RegionOp region) { regions.push_back(region); });
    for (kernel::RegionOp region : regions)
      collapse(region);
    SmallVector<prim::ReshapeOp> views;
    getOperation().walk([&](prim::ReshapeOp view) { views.push_back(view); });
    for (prim::ReshapeOp view : llvm::reverse(views))
      if (view->use_empty())
        view.erase();
  }

  /// `value` under another type: a view of what it is itself a view of.
  Value view(OpBuilder &b, Location loc, Value value, RankedTensorType type) {
    while (auto reshape = value.getDefiningOp<prim::ReshapeOp>()) {
      if (value.getType() == type)
        return value;
      value = reshape.getOperand();
    }
    return value.getType() == type ? value : Value(prim::ReshapeOp::create(b, loc, type, value));
  }

  void collapse(kernel::RegionOp region) {
    std::optional<Classes> classes = Classes::analyze(region, Preferences::get(target));
    if (!classes)
      return;
    Block &body = region.getBody().front();
    ValueRange yielded = body.getTerminator()->getOperands();
    // Leading dims of size 1 are harmless, a last one makes rows of length 1; that of what is transposed hides which
    // dim lies in a row (weights of a 1x1 convolution).
    auto hasUnitRows = [](Value value) {
      SmallVector<AffineExpr> sizes = prim::getSizes(value);
      return !sizes.empty() && isOne(sizes.back()) && !fuse::getSpace(value).empty();
    };
    const bool unitRows =
        llvm::any_of(yielded, hasUnitRows) ||
        llvm::any_of(body.getOps<prim::TransposeOp>(), [&](auto op) { return hasUnitRows(op.getOperand()); });
    // Behind a reshape, rows are not known as those of what it reshapes: a norm's sum would be made again for each
    // vector.
    const bool reshapes = !body.getOps<prim::ReshapeOp>().empty();
    if (!classes->mergesAny() && !unitRows && !reshapes)
      return;

    OpBuilder b(region);
    Location loc = region.getLoc();
    SmallVector<Value> inputs;
    for (auto [input, argument] : llvm::zip_equal(region.getInputs(), body.getArguments()))
      inputs.push_back(view(b, loc, input, classes->collapsed(argument)));
    SmallVector<Type> types;
    for (Value value : yielded)
      types.push_back(classes->collapsed(value));
    auto replacement = kernel::RegionOp::create(b, loc, types, inputs, region.getScheduleAttr(), region.getCasesAttr(),
                                                region.getCostAttr(), region.getFusionAttr());
    replacement->setDiscardableAttrs(region->getDiscardableAttrDictionary());
    Block *into = b.createBlock(&replacement.getBody());
    IRMapping mapping;
    for (auto [input, argument] : llvm::zip_equal(inputs, body.getArguments()))
      mapping.map(argument, into->addArgument(input.getType(), argument.getLoc()));
    for (Operation &op : body.without_terminator())
      mapping.map(op.getResult(0), rebuild(b, &op, mapping, *classes));
    kernel::YieldOp::create(b, loc, llvm::map_to_vector(yielded, [&](Value value) { return mapping.lookup(value); }));
    b.setInsertionPointAfter(replacement);
    for (auto [old, value] : llvm::zip_equal(region.getOutputs(), replacement.getOutputs()))
      old.replaceAllUsesWith(view(b, loc, value, cast<RankedTensorType>(old.getType())));
    region.erase();
  }

  Value rebuild(OpBuilder &b, Operation *op, IRMapping &mapping, const Classes &classes) {
    Value result = op->getResult(0);
    RankedTensorType type = classes.collapsed(result);
    Location loc = op->getLoc();
    auto operand = [&](unsigned i) { return mapping.lookup(op->getOperand(i)); };
    if (isa<prim::ReshapeOp>(op))
      return operand(0);
    if (auto constant = dyn_cast<prim::ConstantOp>(op)) {
      auto value = cast<DenseElementsAttr>(constant.getValue());
      return prim::ConstantOp::create(b, loc, value.reshape(type));
    }
    if (auto transpose = dyn_cast<prim::TransposeOp>(op)) {
      SmallVector<int64_t> permutation;
      for (const SmallVector<int64_t> &group : classes.groups(result))
        permutation.push_back(*classes.newDim(transpose.getOperand(), transpose.getPermutation()[group.front()]));
      if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
        return operand(0);
      return prim::TransposeOp::create(b, loc, operand(0), permutation);
    }
    if (auto broadcast = dyn_cast<prim::BroadcastOp>(op)) {
      SmallVector<int64_t> dims;
      for (const SmallVector<int64_t> &group : classes.groups(broadcast.getOperand()))
        dims.push_back(*classes.newDim(result, broadcast.getDims()[group.front()]));
      if (operand(0).getType() == type)
        return operand(0);
      return prim::BroadcastOp::create(b, loc, type, operand(0), dims);
    }
    if (auto reduce = dyn_cast<prim::ReduceOp>(op)) {
      SmallVector<int64_t> dims;
      for (int64_t dim : reduce.getDims())
        if (std::optional<int64_t> now = classes.newDim(reduce.getOperand(), dim))
          if (!llvm::is_contained(dims, *now))
            dims.push_back(*now);
      if (dims.empty())
        return operand(0);
      return prim::ReduceOp::create(b, loc, reduce.getKind(), operand(0), dims);
    }
    // One start per new dim; merged dims are whole, but for the first of them.
    const SmallVector<AffineExpr> sizes = prim::getSizes(result);
    auto starts = [&](AffineMap map) {
      SmallVector<AffineExpr> kept;
      for (const SmallVector<int64_t> &group : classes.groups(result)) {
        AffineExpr start = map.getResult(group.front());
        for (int64_t dim : ArrayRef(group).drop_front())
          start = start * sizes[dim];
        kept.push_back(prim::simplifySize(start));
      }
      return AffineMap::get(map.getNumDims(), map.getNumSymbols(), kept, op->getContext());
    };
    Operation *copy = b.clone(*op, mapping);
    if (auto concat = dyn_cast<prim::ConcatOp>(copy))
      concat.setAxis(*classes.newDim(result, concat.getAxis()));
    else if (auto pad = dyn_cast<prim::PadOp>(copy))
      pad.setLow(starts(pad.getLow()));
    else if (auto slice = dyn_cast<prim::SliceOp>(copy)) {
      SmallVector<int64_t> steps;
      for (const SmallVector<int64_t> &group : classes.groups(result))
        steps.push_back(slice.getSteps()[group.front()]);
      slice.setStarts(starts(slice.getStarts()));
      slice.setSteps(steps);
    }
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }
};

} // namespace
