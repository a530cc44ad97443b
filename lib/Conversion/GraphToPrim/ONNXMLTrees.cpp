//===- ONNXMLTrees.cpp - tree ensembles of ai.onnx.ml -------------------------------------------------------------===//
//
// All trees walk at once, without branches: position [N, T] is where row n stands in tree t, and each of D steps (the
// depth of the deepest tree) moves all of them one level down. Every kind of decision is first made one of `x <= v`,
// which needs a table of thresholds and one of features and children. The two children of a node are neighbours, so
// that a step is
//
//   position = child[position] + (x[n, feature[position]] <= threshold[position])
//
// and a leaf is its own child with a threshold of NaN, which nothing is below: it stays where it is. The steps are
// gathers and elementwise ops that fuse with the sum over the trees, so that no position reaches memory.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXMLSupport.h"
#include "OpRegistry.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

enum class Mode { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member };
enum class Aggregate { Average, Sum, Min, Max };

/// Where a decision leads: a node, or a leaf.
struct Target {
  bool isLeaf = false;
  int64_t index = 0;
};

/// A decision as the file has it.
struct Node {
  Mode mode = Mode::LessEqual;
  int64_t feature = 0;
  double value = 0;
  bool missingTracksTrue = false;
  std::vector<double> members; // of Mode::Member
  Target ifTrue, ifFalse;
};

struct Weight {
  int64_t target;
  double value;
};

/// Trees of either form of the operators.
struct Ensemble {
  std::vector<Node> nodes;
  std::vector<Target> roots;
  std::vector<SmallVector<Weight, 1>> leaves;
  int64_t targets = 0;
  Aggregate aggregate = Aggregate::Sum;
};

//===--- all decisions as x <= v ----------------------------------------------------------------------------------===//

/// x <= threshold ? ifTrue : ifFalse, a NaN going where `nanGoesTrue` says. Indices are of other decisions, or of
/// leaves, which come as numbers below 0: -1 - leaf.
struct Decision {
  double threshold = kNaN;
  int64_t feature = 0;
  bool nanGoesTrue = false;
  int64_t ifTrue = 0, ifFalse = 0;
};

/// The greatest number of the element type below `value`; NaN below the lowest.
double below(double value, bool isDouble) {
  if (value == -kInfinity)
    return kNaN;
  return isDouble ? std::nextafter(value, -kInfinity)
                  : double(std::nextafter(float(value), -std::numeric_limits<float>::infinity()));
}

/// How many decisions `x <= v` a node becomes.
int64_t countDecisions(const Node &node) {
  switch (node.mode) {
  case Mode::Equal:
  case Mode::NotEqual:
    return std::isnan(node.value) ? 1 : 2;
  case Mode::Member:
    return std::max<int64_t>(2 * node.members.size(), 1);
  default:
    return 1;
  }
}

/// Bisects the intervals that the members cut the line into, where every other one is a member: `thresholds` rise, and
/// interval i ends at thresholds[i]. Writes the decision for thresholds [from, to) at `slot` and those below it behind
/// it; returns the first free slot. A NaN is led to the interval `nanInterval`.
int64_t bisect(MutableArrayRef<Decision> out, int64_t first, int64_t slot, ArrayRef<double> thresholds, int64_t from,
               int64_t to, int64_t feature, int64_t nanInterval, int64_t ifTrue, int64_t ifFalse) {
  int64_t middle = from + (to - from) / 2, next = slot + 1;
  auto ofInterval = [&](int64_t i) { return i % 2 ? ifTrue : ifFalse; };
  Decision &decision = out[slot];
  decision.threshold = thresholds[middle];
  decision.feature = feature;
  decision.nanGoesTrue = nanInterval <= middle;
  decision.ifTrue = ofInterval(from);
  decision.ifFalse = ofInterval(to);
  if (middle > from) {
    decision.ifTrue = first + next;
    next = bisect(out, first, next, thresholds, from, middle, feature, nanInterval, ifTrue, ifFalse);
  }
  if (middle + 1 < to) {
    out[slot].ifFalse = first + next;
    next = bisect(out, first, next, thresholds, middle + 1, to, feature, nanInterval, ifTrue, ifFalse);
  }
  return next;
}

/// The decisions of one node, the first of which is `first`, in `out`.
void expandNode(const Node &node, bool isDouble, int64_t first, int64_t ifTrue, int64_t ifFalse,
                MutableArrayRef<Decision> out) {
  const double v = node.value, lower = below(v, isDouble);
  const bool track = node.missingTracksTrue;
  if (node.mode == Mode::Member) {
    // Set members that are NaN are delimiters; without members only a missing value can be led to the true side.
    if (node.members.empty()) {
      out[0] = {kNaN, node.feature, track, ifTrue, ifFalse};
      return;
    }
    std::vector<double> members(node.members), thresholds;
    llvm::sort(members);
    for (double member : members) {
      thresholds.push_back(below(member, isDouble));
      thresholds.push_back(member);
    }
    int64_t count = thresholds.size();
    bisect(out, first, 0, thresholds, 0, count, node.feature, track ? 1 : count, ifTrue, ifFalse);
    return;
  }
  if (std::isnan(v)) { // nothing compares with NaN but as unequal
    bool differs = node.mode == Mode::NotEqual;
    out[0] = {kNaN, node.feature, track && !differs, ifTrue, differs ? ifTrue : ifFalse};
    return;
  }
  switch (node.mode) {
  case Mode::LessEqual:
    out[0] = {v, node.feature, track, ifTrue, ifFalse};
    return;
  case Mode::Less:
    out[0] = {lower, node.feature, track, ifTrue, ifFalse};
    return;
  case Mode::GreaterEqual:
    out[0] = {lower, node.feature, !track, ifFalse, ifTrue};
    return;
  case Mode::Greater:
    out[0] = {v, node.feature, !track, ifFalse, ifTrue};
    return;
  case Mode::Equal: // at most v, and not below it
    out[0] = {v, node.feature, track, first + 1, ifFalse};
    out[1] = {lower, node.feature, false, ifFalse, ifTrue};
    return;
  case Mode::NotEqual: // a NaN is unequal
    out[0] = {v, node.feature, false, first + 1, ifTrue};
    out[1] = {lower, node.feature, false, ifTrue, ifFalse};
    return;
  case Mode::Member:
    break;
  }
}

//===--- tables ---------------------------------------------------------------------------------------------------===//

/// The decisions of all trees with children side by side. A leaf is its own child.
struct Tables {
  std::vector<double> threshold;
  std::vector<int64_t> feature, child, leaf;
  std::vector<bool> nanGoesTrue;
  std::vector<int64_t> roots;
  int64_t depth = 0;
  int64_t size() const { return threshold.size(); }
};

/// Steps to the farthest leaf from any of `roots`: the longest path, as decisions may be reached from several.
int64_t findDepth(ArrayRef<Decision> decisions, ArrayRef<int64_t> roots) {
  std::vector<int64_t> height(decisions.size(), -1);
  auto heightOf = [&](int64_t what) { return what < 0 ? 0 : height[what]; };
  int64_t depth = 0;
  for (int64_t root : roots) {
    SmallVector<int64_t> open{root};
    while (!open.empty()) {
      int64_t at = open.back();
      if (heightOf(at) >= 0) {
        open.pop_back();
        continue;
      }
      int64_t below[] = {decisions[at].ifTrue, decisions[at].ifFalse};
      if (heightOf(below[0]) >= 0 && heightOf(below[1]) >= 0)
        height[at] = 1 + std::max(heightOf(below[0]), heightOf(below[1]));
      else
        open.append(std::begin(below), std::end(below));
    }
    depth = std::max(depth, heightOf(root));
  }
  return depth;
}

/// Lays out the trees `roots` of decisions, level by level. What two decisions lead to stands at both places, but its
/// children stand once.
Tables layOut(ArrayRef<Decision> decisions, ArrayRef<int64_t> roots) {
  Tables tables;
  tables.depth = findDepth(decisions, roots);
  struct Place {
    int64_t what, slot;
  };
  std::vector<Place> queue;
  auto grow = [&] {
    tables.threshold.push_back(kNaN);
    tables.feature.push_back(0);
    tables.child.push_back(0);
    tables.leaf.push_back(0);
    tables.nanGoesTrue.push_back(false);
    return tables.size() - 1;
  };
  grow(); // slot 0 is of no tree, so that each slot has one below it (see Walker)
  std::vector<int64_t> childrenOf(decisions.size(), -1);
  for (int64_t root : roots) {
    queue.assign(1, {root, grow()});
    tables.roots.push_back(queue[0].slot);
    for (size_t i = 0; i < queue.size(); ++i) {
      Place place = queue[i];
      if (place.what < 0) {
        tables.child[place.slot] = place.slot;
        tables.leaf[place.slot] = -1 - place.what;
        continue;
      }
      const Decision &decision = decisions[place.what];
      tables.threshold[place.slot] = decision.threshold;
      tables.feature[place.slot] = decision.feature;
      tables.nanGoesTrue[place.slot] = decision.nanGoesTrue;
      int64_t &children = childrenOf[place.what];
      if (children < 0) {
        children = grow();
        grow();
        queue.push_back({decision.ifFalse, children});
        queue.push_back({decision.ifTrue, children + 1});
      }
      tables.child[place.slot] = children;
    }
  }
  return tables;
}

/// Refuses what are no trees: a node that is reached twice would make a loop.
LogicalResult checkTrees(NodeContext &ctx, const Ensemble &ensemble) {
  std::vector<bool> isReached(ensemble.nodes.size());
  std::vector<Target> open(ensemble.roots);
  while (!open.empty()) {
    Target at = open.back();
    open.pop_back();
    if (at.isLeaf)
      continue;
    if (isReached[at.index])
      return ctx.invalid("has a tree in which node " + Twine(at.index) + " is reached twice");
    isReached[at.index] = true;
    open.push_back(ensemble.nodes[at.index].ifTrue);
    open.push_back(ensemble.nodes[at.index].ifFalse);
  }
  return success();
}

/// The tables of an ensemble of trees.
FailureOr<Tables> makeTables(NodeContext &ctx, const Ensemble &ensemble, bool isDouble) {
  std::vector<int64_t> firstOf;
  int64_t count = 0;
  for (const Node &node : ensemble.nodes) {
    firstOf.push_back(count);
    count += countDecisions(node);
  }
  auto numberOf = [&](Target target) { return target.isLeaf ? -1 - target.index : firstOf[target.index]; };
  std::vector<Decision> decisions(count);
  for (auto [i, node] : llvm::enumerate(ensemble.nodes))
    expandNode(node, isDouble, firstOf[i], numberOf(node.ifTrue), numberOf(node.ifFalse),
               MutableArrayRef(decisions).slice(firstOf[i], countDecisions(node)));
  std::vector<int64_t> roots;
  for (Target root : ensemble.roots)
    roots.push_back(numberOf(root));
  Tables tables = layOut(decisions, roots);
  if (tables.size() > int64_t(1) << 30)
    return ctx.unsupported("with more than 2^30 nodes is not supported");
  return tables;
}

//===--- the walk -------------------------------------------------------------------------------------------------===//

/// Emits the walk of x [N, C] down the trees.
class Walker {
public:
  Walker(PrimBuilder &b, Value x, const Tables &tables);

  /// The position of each row in each tree once all are at a leaf: i32 [N, T].
  Value walk(NodeContext &ctx);

private:
  /// A node as one number: from the low bits on its child, its feature, and whether NaNs go to the true side.
  int64_t wordOf(int64_t at) const {
    return child[at] | int64_t(tables.feature[at]) << childBits |
           (missing == Missing::Mixed && tables.nanGoesTrue[at] ? int64_t(1) << (childBits + featureBits) : 0);
  }
  /// Of each element of `table` [M] those at `position` [N, T].
  Value lookUp(Value table, Value position) { return GatherOp::create(b, table, position, 0); }
  /// The next position from what the nodes at [N, T] hold.
  Value next(Value value, Value limit, Value child, Value nanGoesTrue);
  Value step(Value position);
  Value firstStep();

  PrimBuilder &b;
  Value x;
  const Tables &tables;
  std::vector<int64_t> child;
  enum class Missing { False, True, Mixed } missing = Missing::False;
  int64_t childBits = 0, featureBits = 0;
  bool isPacked = false;
  Sizes space;
  Value thresholds, words, features, children, nans;
};

Walker::Walker(PrimBuilder &b, Value x, const Tables &tables)
    : b(b), x(x), tables(tables), child(tables.child), space{getSizes(x)[0], b.size(int64_t(tables.roots.size()))} {
  int64_t featureCount = 1;
  bool some = false, all = true;
  for (int64_t i = 0; i < tables.size(); ++i) {
    featureCount = std::max(featureCount, tables.feature[i] + 1);
    if (tables.child[i] == i)
      continue;
    some |= tables.nanGoesTrue[i];
    all &= tables.nanGoesTrue[i];
  }
  missing = !some ? Missing::False : all ? Missing::True : Missing::Mixed;
  // Where all NaNs go to the true side, the test is "not greater", which is true for a leaf's threshold.
  if (missing == Missing::True)
    for (int64_t i = 1; i < tables.size(); ++i)
      if (child[i] == i)
        --child[i];
  childBits = llvm::Log2_64_Ceil(tables.size() + 1);
  featureBits = std::max<int64_t>(llvm::Log2_64_Ceil(featureCount), 1);
  isPacked = childBits + featureBits + (missing == Missing::Mixed) <= 31;
}

Value Walker::next(Value value, Value limit, Value childOf, Value nanGoesTrue) {
  Value isTrue = missing == Missing::True ? b.unary<NotOp>(b.compare(CompareKind::GT, value, limit))
                                          : b.compare(CompareKind::LE, value, limit);
  if (missing == Missing::Mixed)
    isTrue = b.binary<OrOp>(isTrue, b.binary<AndOp>(emitIsNan(b, value), nanGoesTrue));
  return b.add(childOf, b.convert(isTrue, b.getI32Type()));
}

/// All rows are at the roots: what these hold are constants.
Value Walker::firstStep() {
  std::vector<double> limits;
  std::vector<int64_t> feature, childOf, nan;
  for (int64_t root : tables.roots) {
    limits.push_back(tables.threshold[root]);
    feature.push_back(tables.feature[root]);
    childOf.push_back(child[root]);
    nan.push_back(tables.nanGoesTrue[root]);
  }
  auto spread = [&](Value v) { return b.broadcastInDims(v, space, {1}); };
  Type i32 = b.getI32Type();
  return next(GatherOp::create(b, x, makeInts(b, i32, feature), 1), spread(makeFloats(b, b.elementOf(x), limits)),
              spread(makeInts(b, i32, childOf)), spread(makeInts(b, b.getI1Type(), nan)));
}

Value Walker::step(Value position) {
  Value feature, childOf, nanGoesTrue;
  if (isPacked) {
    // Bits are masked even where there are none above them: it tells code generation that indices are not negative.
    Value word = lookUp(words, position);
    auto field = [&](int64_t from, int64_t bits) {
      Value shifted = from ? b.binary<ShrOp>(word, double(from)) : word;
      return b.binary<AndOp>(shifted, double((int64_t(1) << bits) - 1));
    };
    childOf = field(0, childBits);
    feature = field(childBits, featureBits);
    if (missing == Missing::Mixed)
      nanGoesTrue = b.convert(field(childBits + featureBits, 1), b.getI1Type());
  } else {
    feature = lookUp(features, position);
    childOf = lookUp(children, position);
    if (missing == Missing::Mixed)
      nanGoesTrue = lookUp(nans, position);
  }
  Value value =
      GatherElementsOp::create(b, makeType(b.elementOf(x), getSizes(position)), x, feature, b.getI64IntegerAttr(1));
  return next(value, lookUp(thresholds, position), childOf, nanGoesTrue);
}

Value Walker::walk(NodeContext &ctx) {
  Type i32 = b.getI32Type();
  if (tables.depth == 0)
    return b.broadcastInDims(makeInts(b, i32, tables.roots), space, {1});
  thresholds = makeFloats(b, b.elementOf(x), tables.threshold);
  if (isPacked) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < tables.size(); ++i)
      numbers.push_back(wordOf(i));
    words = makeInts(b, i32, numbers);
  } else {
    features = makeInts(b, i32, tables.feature);
    children = makeInts(b, i32, child);
    nans = makeInts(b, b.getI1Type(), std::vector<int64_t>(tables.nanGoesTrue.begin(), tables.nanGoesTrue.end()));
  }
  Value position = firstStep();
  // Steps up to this depth are written out one after the other; deeper trees loop over as many.
  constexpr int64_t kUnrolled = 16;
  if (tables.depth <= kUnrolled) {
    for (int64_t i = 1; i < tables.depth; ++i)
      position = step(position);
    return position;
  }
  Region &body = ctx.newRegion();
  {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&body);
    block->addArgument(RankedTensorType::get({}, b.getI64Type()), b.getLoc());
    Value before = block->addArgument(position.getType(), b.getLoc()), after = before;
    for (int64_t i = 0; i < kUnrolled; ++i)
      after = step(after);
    Value moved = b.reduce(ReduceKind::Or, b.compare(CompareKind::NE, before, after), {0, 1});
    prim::YieldOp::create(b, ValueRange{moved, after});
  }
  auto loop = prim::WhileOp::create(b, TypeRange{position.getType()}, b.scalar(b.getI64Type(), double(tables.depth)),
                                    b.scalar(b.getI1Type(), 1), ValueRange{position}, ArrayRef<int64_t>{});
  loop.getBody().takeBody(body);
  return loop.getResults()[0];
}

//===--- from leaves to scores ------------------------------------------------------------------------------------===//

/// The target of every weight of each tree, where a tree has only one; nullopt where a tree has several.
std::optional<std::vector<int64_t>> singleTargets(const Ensemble &ensemble) {
  std::vector<int64_t> targets;
  std::vector<Target> open;
  for (Target root : ensemble.roots) {
    int64_t target = -1;
    open.assign(1, root);
    while (!open.empty()) {
      Target at = open.back();
      open.pop_back();
      if (!at.isLeaf) {
        open.push_back(ensemble.nodes[at.index].ifTrue);
        open.push_back(ensemble.nodes[at.index].ifFalse);
        continue;
      }
      if (ensemble.leaves[at.index].size() > 1)
        return std::nullopt;
      for (const Weight &weight : ensemble.leaves[at.index]) {
        if (target >= 0 && weight.target != target)
          return std::nullopt;
        target = weight.target;
      }
    }
    targets.push_back(std::max<int64_t>(target, 0));
  }
  return targets;
}

/// Tables have a number for each leaf and target.
LogicalResult checkTargets(NodeContext &ctx, int64_t targets) {
  if (targets < 1)
    return ctx.invalid("n_targets is " + Twine(targets));
  if (targets > int64_t(1) << 24)
    return ctx.unsupported("with n_targets " + Twine(targets) + " is not supported; at most 2^24 are");
  return success();
}

/// What x [N, C] scores: [N, targets], in the element type of x.
FailureOr<Value> emitScores(NodeContext &ctx, Value x, Ensemble ensemble) {
  PrimBuilder &b = ctx.b;
  const bool isDouble = b.elementOf(x).isF64();
  const int64_t targets = ensemble.targets, trees = ensemble.roots.size();
  Sizes rows{getSizes(x)[0]}, result{rows[0], b.size(targets)};
  if (failed(checkTrees(ctx, ensemble)))
    return failure();
  int64_t features = 0;
  for (const Node &node : ensemble.nodes) {
    if (node.feature < 0)
      return ctx.invalid("an entry of nodes_featureids is negative");
    features = std::max(features, node.feature + 1);
  }
  for (const auto &leaf : ensemble.leaves)
    for (const Weight &weight : leaf)
      if (weight.target < 0 || weight.target >= targets)
        return ctx.invalid("a leaf has a weight for the target " + Twine(weight.target) + " of " + Twine(targets));
  if (trees == 0 || targets == 0)
    return b.splat(b.elementOf(x), result, 0);
  if (failed(ctx.require(CompareKind::LE, b.size(features), getSizes(x)[1],
                         "an operand with at least " + Twine(features) + " features")))
    return failure();

  // Trees with one target each, of equal numbers for each target once some that add nothing fill them up, are summed
  // as [N, targets, trees]; others have a row of weights for each leaf.
  const bool isSum = ensemble.aggregate == Aggregate::Sum || ensemble.aggregate == Aggregate::Average;
  const double neutral = isSum ? 0 : ensemble.aggregate == Aggregate::Min ? kInfinity : -kInfinity;
  bool isGrouped = false;
  int64_t perTarget = trees;
  if (std::optional<std::vector<int64_t>> ofTree = singleTargets(ensemble)) {
    std::vector<std::vector<Target>> groups(targets);
    for (auto [root, target] : llvm::zip_equal(ensemble.roots, *ofTree))
      groups[target].push_back(root);
    perTarget = 0;
    for (const auto &group : groups)
      perTarget = std::max<int64_t>(perTarget, group.size());
    isGrouped = perTarget * targets <= trees + trees / 2;
    if (isGrouped) {
      Target nothing{/*isLeaf=*/true, int64_t(ensemble.leaves.size())};
      ensemble.leaves.emplace_back();
      ensemble.roots.clear();
      for (auto &group : groups) {
        group.resize(perTarget, nothing);
        ensemble.roots.insert(ensemble.roots.end(), group.begin(), group.end());
      }
    }
  }
  FailureOr<Tables> tables = makeTables(ctx, ensemble, isDouble);
  if (failed(tables))
    return failure();
  Value position = Walker(b, x, *tables).walk(ctx);
  // A table of what each leaf adds to each target, or (`presence`) whether it does.
  auto ofLeaves = [&](bool presence) -> Value {
    auto value = [&](const Weight &weight) { return presence ? 1 : weight.value; };
    const double absent = presence ? 0 : neutral;
    std::vector<double> numbers;
    if (isGrouped) {
      for (int64_t leaf : tables->leaf)
        numbers.push_back(ensemble.leaves[leaf].empty() ? absent : value(ensemble.leaves[leaf].front()));
      Value found = GatherOp::create(b, makeFloats(b, b.elementOf(x), numbers), position, 0);
      return b.reshape(found, {rows[0], b.size(targets), b.size(perTarget)});
    }
    for (const auto &leaf : ensemble.leaves) {
      size_t start = numbers.size();
      numbers.resize(start + targets, absent);
      for (const Weight &weight : leaf) {
        double &number = numbers[start + weight.target];
        if (isSum && !presence)
          number += weight.value;
        else if (ensemble.aggregate == Aggregate::Min && !presence)
          number = std::min(number, weight.value);
        else
          number = std::max(number, value(weight));
      }
    }
    Value table = makeFloats(b, b.elementOf(x), {int64_t(ensemble.leaves.size()), targets}, numbers);
    Value leaf = GatherOp::create(b, makeInts(b, b.getI32Type(), tables->leaf), position, 0);
    return GatherOp::create(b, table, leaf, 0);
  };
  const int64_t along = isGrouped ? 2 : 1;
  ReduceKind kind = isSum ? ReduceKind::Sum : ensemble.aggregate == Aggregate::Min ? ReduceKind::Min : ReduceKind::Max;
  Value scores = b.reduce(kind, ofLeaves(/*presence=*/false), {along});
  if (ensemble.aggregate == Aggregate::Average)
    scores = b.binary<DivOp>(scores, double(trees));
  if (!isSum && targets * trees != 0) {
    // Targets that no leaf has a weight for score 0.
    Value present = b.compare(CompareKind::GT, b.reduce(ReduceKind::Max, ofLeaves(/*presence=*/true), {along}), 0);
    scores = b.select(present, scores, b.splatLike(scores, 0));
  }
  return scores;
}

//===--- the operators' attributes --------------------------------------------------------------------------------===//

FailureOr<Mode> readMode(NodeContext &ctx, StringRef name) {
  auto mode = llvm::StringSwitch<std::optional<Mode>>(name)
                  .Case("BRANCH_LEQ", Mode::LessEqual)
                  .Case("BRANCH_LT", Mode::Less)
                  .Case("BRANCH_GTE", Mode::GreaterEqual)
                  .Case("BRANCH_GT", Mode::Greater)
                  .Case("BRANCH_EQ", Mode::Equal)
                  .Case("BRANCH_NEQ", Mode::NotEqual)
                  .Default(std::nullopt);
  if (!mode)
    return ctx.invalid("an entry of nodes_modes is \"" + name +
                       "\"; it may be BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ or LEAF");
  return *mode;
}

/// TreeEnsembleClassifier and TreeEnsembleRegressor: nodes have numbers within their trees, and weights name a tree and
/// a node. `prefix` (class or target) begins the weights' attributes.
FailureOr<Ensemble> readNumberedTrees(NodeContext &ctx, StringRef prefix) {
  auto list = [&](const Twine &name) { return ctx.getInts(name.str()).value_or(SmallVector<int64_t>()); };
  SmallVector<int64_t> trees = list("nodes_treeids"), numbers = list("nodes_nodeids"),
                       features = list("nodes_featureids"), ifTrue = list("nodes_truenodeids"),
                       ifFalse = list("nodes_falsenodeids"), tracks = list("nodes_missing_value_tracks_true"),
                       weightTrees = list(prefix + "_treeids"), weightNodes = list(prefix + "_nodeids"),
                       weightTargets = list(prefix + "_ids");
  SmallVector<std::string> modes = ctx.getStrings("nodes_modes").value_or(SmallVector<std::string>());
  auto values = readNumbers(ctx, "nodes_values"), weights = readNumbers(ctx, (prefix + "_weights").str());
  if (failed(values) || failed(weights))
    return failure();
  size_t count = trees.size();
  if (numbers.size() != count || features.size() != count || ifTrue.size() != count || ifFalse.size() != count ||
      modes.size() != count || !*values || (**values).size() != count)
    return ctx.invalid("its attributes nodes_treeids, nodes_nodeids, nodes_featureids, nodes_values, nodes_modes, "
                       "nodes_truenodeids and nodes_falsenodeids differ in length");
  if (tracks.size() != count && !tracks.empty())
    return ctx.invalid("nodes_missing_value_tracks_true has " + Twine(tracks.size()) + " entries for " + Twine(count) +
                       " nodes");
  size_t weightCount = weightTrees.size();
  if (weightNodes.size() != weightCount || weightTargets.size() != weightCount || !*weights ||
      (**weights).size() != weightCount)
    return ctx.invalid("its attributes " + prefix + "_treeids, " + prefix + "_nodeids, " + prefix + "_ids and " +
                       prefix + "_weights differ in length");

  Ensemble ensemble;
  std::map<std::pair<int64_t, int64_t>, Target> byNumber; // any numbers, which a DenseMap does not take
  for (size_t i = 0; i < count; ++i) {
    bool isLeaf = modes[i] == "LEAF";
    Target target{isLeaf, int64_t(isLeaf ? ensemble.leaves.size() : ensemble.nodes.size())};
    if (!byNumber.try_emplace({trees[i], numbers[i]}, target).second)
      return ctx.invalid("tree " + Twine(trees[i]) + " has two nodes " + Twine(numbers[i]));
    if (isLeaf)
      ensemble.leaves.emplace_back();
    else
      ensemble.nodes.emplace_back();
  }
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    Target target = byNumber.find({trees[i], numbers[i]})->second;
    // The first node of a tree is its root.
    if (seen.insert(trees[i]).second)
      ensemble.roots.push_back(target);
    if (target.isLeaf)
      continue;
    FailureOr<Mode> mode = readMode(ctx, modes[i]);
    if (failed(mode))
      return failure();
    Node &node = ensemble.nodes[target.index];
    node.mode = *mode;
    node.feature = features[i];
    node.value = (**values)[i];
    node.missingTracksTrue = !tracks.empty() && tracks[i] != 0;
    for (auto [number, child] : {std::pair(ifTrue[i], &node.ifTrue), std::pair(ifFalse[i], &node.ifFalse)}) {
      auto found = byNumber.find({trees[i], number});
      if (found == byNumber.end())
        return ctx.invalid("node " + Twine(numbers[i]) + " of tree " + Twine(trees[i]) + " leads to node " +
                           Twine(number) + ", which the tree does not have");
      *child = found->second;
    }
  }
  for (size_t i = 0; i < weightCount; ++i) {
    auto found = byNumber.find({weightTrees[i], weightNodes[i]});
    if (found == byNumber.end())
      return ctx.invalid("a weight is given to node " + Twine(weightNodes[i]) + " of tree " + Twine(weightTrees[i]) +
                         ", which does not exist");
    if (found->second.isLeaf)
      ensemble.leaves[found->second.index].push_back({weightTargets[i], (**weights)[i]});
  }
  return ensemble;
}

/// scores [N, E] plus base values, one for each column or one for all.
FailureOr<Value> addBase(NodeContext &ctx, Value scores, ArrayRef<double> base) {
  FailureOr<Value> wide = ctx.broadcastOnto(makeFloats(ctx.b, ctx.b.elementOf(scores), base), getSizes(scores));
  return failed(wide) ? wide : ctx.b.add(scores, *wide);
}

LogicalResult treeEnsembleRegressor(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<ScoreModel> model = readScoreModel(ctx);
  if (failed(model))
    return failure();
  FailureOr<Ensemble> ensemble = readNumberedTrees(ctx, "target");
  auto base = readNumbers(ctx, "base_values");
  if (failed(ensemble) || failed(base))
    return failure();
  std::string aggregate = ctx.getString("aggregate_function", "SUM");
  auto known = llvm::StringSwitch<std::optional<Aggregate>>(aggregate)
                   .Case("SUM", Aggregate::Sum)
                   .Case("AVERAGE", Aggregate::Average)
                   .Case("MIN", Aggregate::Min)
                   .Case("MAX", Aggregate::Max)
                   .Default(std::nullopt);
  if (!known)
    return ctx.invalid("aggregate_function is \"" + aggregate + "\"; it may be SUM, AVERAGE, MIN or MAX");
  ensemble->aggregate = *known;
  int64_t targets = 1;
  for (const auto &leaf : ensemble->leaves)
    for (const Weight &weight : leaf)
      targets = std::max(targets, weight.target + 1);
  ensemble->targets = ctx.getInt("n_targets", targets);
  if (failed(checkTargets(ctx, ensemble->targets)))
    return failure();
  FailureOr<Value> scores = emitScores(ctx, model->x, std::move(*ensemble));
  if (failed(scores))
    return failure();
  if (*base && !(**base).empty()) {
    scores = addBase(ctx, *scores, **base);
    if (failed(scores))
      return failure();
  }
  return ctx.result(b.convert(emitPostTransform(b, *scores, model->transform), b.getF32Type()));
}

LogicalResult treeEnsembleClassifier(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<ScoreModel> model = readScoreModel(ctx, "classlabels_int64s");
  if (failed(model))
    return failure();
  auto [x, labels, transform] = *model;
  if (!labels)
    return ctx.invalid("needs classlabels_int64s or classlabels_strings");
  FailureOr<Ensemble> ensemble = readNumberedTrees(ctx, "class");
  auto base = readNumbers(ctx, "base_values");
  if (failed(ensemble) || failed(base))
    return failure();
  std::vector<double> baseValues = base->value_or(std::vector<double>());
  const int64_t classes = *getConstantSize(getSizes(labels)[0]);
  int64_t lowest = INT64_MAX, highest = 0;
  bool isPositive = true;
  for (const auto &leaf : ensemble->leaves)
    for (const Weight &weight : leaf) {
      lowest = std::min(lowest, weight.target);
      highest = std::max(highest, weight.target);
      isPositive &= weight.value >= 0;
    }
  // One score for one or two classes: that of the second, whatever the weights' class.
  const bool isSingle = classes <= 2 && lowest == highest && baseValues.size() <= 1;
  if (isSingle)
    for (auto &leaf : ensemble->leaves)
      for (Weight &weight : leaf)
        weight.target = 0;
  ensemble->targets = isSingle ? 1 : classes;
  FailureOr<Value> found = emitScores(ctx, x, std::move(*ensemble));
  if (failed(found))
    return failure();
  Value scores = *found, index;
  // Weights of class 1 alone are the second of two scores, of which the first is 0, without a base value.
  const bool isSecond = isSingle && classes == 2 && lowest == 1;
  if (!baseValues.empty() && !isSecond) {
    baseValues.resize(std::max<size_t>(baseValues.size(), ensemble->targets), 0);
    FailureOr<Value> sum = addBase(ctx, scores, baseValues);
    if (failed(sum))
      return failure();
    scores = *sum;
  }
  SecondClass second = SecondClass::None;
  Sizes rows{getSizes(scores)[0]};
  if (isSingle) {
    double limit = isPositive && classes == 2 ? 0.5 : 0;
    index = b.convert(b.compare(CompareKind::GT, b.reshape(scores, rows), limit), b.getI64Type());
    if (isSecond)
      scores = b.concat({b.splatLike(scores, 0), scores}, 1);
    else if (classes == 2)
      second = isPositive ? SecondClass::Complement : SecondClass::Negation;
  } else {
    index = ArgReduceOp::create(b, makeType(b.getI64Type(), rows), ReduceKind::Max, scores, 1, /*lastIndex=*/false);
  }
  // One label: 1 where the score is positive, else 0, whatever the label.
  Value names = classes > 1 ? labels : b.isString(labels) ? b.strings({"0", "1"}, {2}) : b.constantI64s({0, 1});
  Value label = GatherOp::create(b, names, index, 0);
  (void)ctx.set(1, b.convert(emitPostTransform(b, scores, transform, second), b.getF32Type()));
  return ctx.result(label);
}

/// TreeEnsemble-5: nodes are numbered throughout, leaves have numbers of their own.
FailureOr<Ensemble> readSharedTrees(NodeContext &ctx) {
  auto list = [&](StringRef name) { return ctx.getInts(name).value_or(SmallVector<int64_t>()); };
  SmallVector<int64_t> roots = list("tree_roots"), features = list("nodes_featureids"),
                       ifTrue = list("nodes_truenodeids"), ifFalse = list("nodes_falsenodeids"),
                       trueLeaves = list("nodes_trueleafs"), falseLeaves = list("nodes_falseleafs"),
                       tracks = list("nodes_missing_value_tracks_true"), targets = list("leaf_targetids");
  FailureOr<Tensor> modes = readTensor(ctx, "nodes_modes"), splits = readTensor(ctx, "nodes_splits"),
                    weights = readTensor(ctx, "leaf_weights");
  if (failed(modes) || failed(splits) || failed(weights))
    return failure();
  if (!isa<IntegerType>(modes->elementType))
    return ctx.invalid("nodes_modes must be integers");
  std::vector<int64_t> modeNumbers = toInts(*modes);
  std::vector<double> values = toDoubles(*splits), leafWeights = toDoubles(*weights), members;
  size_t count = features.size();
  if (modeNumbers.size() != count || values.size() != count || ifTrue.size() != count || ifFalse.size() != count ||
      trueLeaves.size() != count || falseLeaves.size() != count || (!tracks.empty() && tracks.size() != count))
    return ctx.invalid("its attributes nodes_* differ in length");
  if (targets.size() != leafWeights.size())
    return ctx.invalid("has " + Twine(targets.size()) + " entries of leaf_targetids and " + Twine(leafWeights.size()) +
                       " of leaf_weights");
  if (ctx.hasAttr("membership_values")) {
    FailureOr<Tensor> tensor = readTensor(ctx, "membership_values");
    if (failed(tensor))
      return failure();
    members = toDoubles(*tensor);
  }
  Ensemble ensemble;
  for (auto [target, weight] : llvm::zip_equal(targets, leafWeights))
    ensemble.leaves.push_back({{target, weight}});
  auto member = members.begin();
  for (size_t i = 0; i < count; ++i) {
    Node node;
    if (modeNumbers[i] < 0 || modeNumbers[i] > 6)
      return ctx.invalid("an entry of nodes_modes is " + Twine(modeNumbers[i]) + "; it may be 0 to 6");
    node.mode = Mode(modeNumbers[i]);
    node.feature = features[i];
    node.value = values[i];
    node.missingTracksTrue = !tracks.empty() && tracks[i] != 0;
    node.ifTrue = {trueLeaves[i] != 0, ifTrue[i]};
    node.ifFalse = {falseLeaves[i] != 0, ifFalse[i]};
    for (Target child : {node.ifTrue, node.ifFalse})
      if (child.index < 0 || child.index >= int64_t(child.isLeaf ? ensemble.leaves.size() : count))
        return ctx.invalid("node " + Twine(i) + " leads to a node or leaf that does not exist");
    if (node.mode == Mode::Member) { // up to the next NaN
      if (member == members.end())
        return ctx.invalid("membership_values has fewer lists than nodes_modes has set memberships");
      for (; member != members.end() && !std::isnan(*member); ++member)
        node.members.push_back(*member);
      if (member != members.end())
        ++member;
    }
    ensemble.nodes.push_back(std::move(node));
  }
  for (int64_t root : roots) {
    if (root < 0 || root >= int64_t(count))
      return ctx.invalid("an entry of tree_roots is " + Twine(root) + ", which is no node");
    ensemble.roots.push_back({/*isLeaf=*/false, root});
  }
  return ensemble;
}

LogicalResult treeEnsemble(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type type = b.elementOf(ctx.operand(0));
  FailureOr<Value> x = readFeatures(ctx);
  FailureOr<Ensemble> ensemble = readSharedTrees(ctx);
  if (failed(x) || failed(ensemble))
    return failure();
  int64_t aggregate = ctx.getInt("aggregate_function", 1), transform = ctx.getInt("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return ctx.invalid("aggregate_function may be 0 to 3 and post_transform 0 to 4, but they are " + Twine(aggregate) +
                       " and " + Twine(transform));
  ensemble->aggregate = Aggregate(aggregate);
  int64_t targets = 1;
  for (const auto &leaf : ensemble->leaves)
    targets = std::max(targets, leaf.front().target + 1);
  ensemble->targets = ctx.getInt("n_targets", targets);
  if (failed(checkTargets(ctx, ensemble->targets)))
    return failure();
  FailureOr<Value> scores = emitScores(ctx, *x, std::move(*ensemble));
  if (failed(scores))
    return failure();
  return ctx.result(b.convert(emitPostTransform(b, *scores, PostTransform(transform)), type));
}

} // namespace

void tc::populateONNXMLTrees(OpRegistrar &onOp) {
  onOp("TreeEnsemble", 5, treeEnsemble);
  onOp("TreeEnsembleClassifier", 1, treeEnsembleClassifier);
  onOp("TreeEnsembleRegressor", 1, treeEnsembleRegressor);
}
