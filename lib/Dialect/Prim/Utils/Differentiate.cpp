//===- Differentiate.cpp - gradients of computations in prim ------------------------------------------------------===//
//
// A table of rules, keyed by op. A rule sees the op and the gradient g of its result, and adds to the gradients of its
// operands; operands that nothing asks for are skipped by add(). Pools are written as gathers and reductions, and
// differentiated through these.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/Differentiate.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The ops that `y` is computed from, each after those before it, up to `leaves`.
SmallVector<Operation *> collectOps(Value y, const llvm::DenseSet<Value> &leaves) {
  SmallVector<Operation *> order;
  llvm::DenseSet<Operation *> done;
  SmallVector<std::pair<Operation *, bool>> stack; // and whether what it reads has been visited
  auto visit = [&](Value v) {
    if (Operation *op = v.getDefiningOp(); op && !leaves.contains(v) && !done.contains(op))
      stack.push_back({op, false});
  };
  visit(y);
  while (!stack.empty()) {
    auto [op, ready] = stack.pop_back_val();
    if (done.contains(op))
      continue;
    if (ready) {
      done.insert(op);
      order.push_back(op);
      continue;
    }
    stack.push_back({op, true});
    op->walk([&, op = op](Operation *inner) { // values that regions use are read, too
      for (Value v : inner->getOperands())
        if (Operation *producer = v.getDefiningOp(); inner == op || !producer || !op->isProperAncestor(producer))
          visit(v);
    });
  }
  return order;
}

class Differentiator {
public:
  Differentiator(PrimBuilder &b, ValueRange xs) : b(b), active(xs.begin(), xs.end()) {}

  FailureOr<SmallVector<Value>> run(Value y, ValueRange xs, ValueRange constants, std::string &why);

  /// As if the op at hand were what computes y, which was written for this from `operands`: g is y's gradient.
  LogicalResult through(Value y, Value g, ValueRange operands) {
    SmallVector<Operation *> ops = collectOps(y, llvm::DenseSet<Value>(operands.begin(), operands.end()));
    activate(ops);
    gradients[y] = g;
    return propagate(ops);
  }
  bool isActive(Value v) const { return active.contains(v) && PrimBuilder::isFloat(v); }
  /// Adds g to the gradient of v.
  void add(Value v, Value g) {
    if (!isActive(v))
      return;
    Value &sum = gradients[v];
    sum = sum ? b.add(sum, g) : g;
  }
  /// A rule that fails says why; it reads on from the op's name.
  LogicalResult fail(const Twine &what) {
    reason = what.str();
    return failure();
  }
  Value zero(Value like) { return b.splatLike(like, 0); }
  /// v without dims `dims` back at its sizes.
  Value along(Value v, SizesRef sizes, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> kept;
    for (int64_t d = 0; d < int64_t(sizes.size()); ++d)
      if (!llvm::is_contained(dims, d))
        kept.push_back(d);
    return b.broadcastInDims(v, sizes, kept);
  }

  PrimBuilder &b;

private:
  void activate(ArrayRef<Operation *> ops);
  LogicalResult propagate(ArrayRef<Operation *> ops);

  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, Value> gradients;
  std::string reason, sentence;
};

using Rule = std::function<LogicalResult(Differentiator &, Operation *, Value)>;

class Rules {
public:
  static const Rules &get() {
    static const Rules rules;
    return rules;
  }
  const Rule *lookup(Operation *op) const {
    auto it = table.find(op->getName().getStringRef());
    return it == table.end() ? nullptr : &it->second;
  }

private:
  Rules();
  void addElementwise();
  void addMovement();
  void addIndexed();
  void addReductions();
  void addWindows();

  /// rule(d, op, g)
  template <typename Op> void on(std::function<LogicalResult(Differentiator &, Op, Value)> rule) {
    table[Op::getOperationName()] = [rule = std::move(rule)](Differentiator &d, Operation *op, Value g) {
      return rule(d, cast<Op>(op), g);
    };
  }
  /// derivative(b, x, y): of a function of one operand.
  template <typename Op> void onUnary(std::function<Value(PrimBuilder &, Value, Value)> derivative) {
    on<Op>([derivative = std::move(derivative)](Differentiator &d, Op op, Value g) {
      d.add(op->getOperand(0), d.b.mul(g, derivative(d.b, op->getOperand(0), op->getResult(0))));
      return success();
    });
  }
  /// Functions that are constant between their steps.
  template <typename... Ops> void onSteps() {
    (on<Ops>([](Differentiator &, Ops, Value) { return success(); }), ...);
  }

  llvm::StringMap<Rule> table;
};

Rules::Rules() {
  addElementwise();
  addMovement();
  addIndexed();
  addReductions();
  addWindows();
}

//===--- elementwise ----------------------------------------------------------------------------------------------===//

/// a * x * x + c
Value squareTerm(PrimBuilder &b, Value x, double a, double c) {
  return b.binary<AddOp>(b.binary<MulOp>(b.mul(x, x), a), c);
}

/// max and min: where both are equal the right operand has it all, so that relu(0), max(0, 0), has slope 0.
template <typename Op> LogicalResult chooseRule(Differentiator &d, Op op, Value g, CompareKind kind) {
  Value left = d.b.compare(kind, op.getLhs(), op.getRhs());
  d.add(op.getLhs(), d.b.select(left, g, d.zero(g)));
  d.add(op.getRhs(), d.b.select(left, d.zero(g), g));
  return success();
}

void Rules::addElementwise() {
  using B = PrimBuilder;
  on<AddOp>([](Differentiator &d, AddOp op, Value g) {
    d.add(op.getLhs(), g);
    d.add(op.getRhs(), g);
    return success();
  });
  on<SubOp>([](Differentiator &d, SubOp op, Value g) {
    d.add(op.getLhs(), g);
    if (d.isActive(op.getRhs()))
      d.add(op.getRhs(), d.b.unary<NegOp>(g));
    return success();
  });
  on<MulOp>([](Differentiator &d, MulOp op, Value g) {
    for (auto [v, other] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
      if (d.isActive(v))
        d.add(v, d.b.mul(g, other));
    return success();
  });
  on<DivOp>([](Differentiator &d, DivOp op, Value g) {
    Value part = d.b.div(g, op.getRhs());
    d.add(op.getLhs(), part);
    if (d.isActive(op.getRhs()))
      d.add(op.getRhs(), d.b.unary<NegOp>(d.b.mul(part, op.getResult())));
    return success();
  });
  on<RemOp>([](Differentiator &d, RemOp op, Value g) {
    d.add(op.getLhs(), g);
    if (d.isActive(op.getRhs()))
      d.add(op.getRhs(), d.b.unary<NegOp>(d.b.mul(g, d.b.unary<TruncOp>(d.b.div(op.getLhs(), op.getRhs())))));
    return success();
  });
  on<PowOp>([](Differentiator &d, PowOp op, Value g) {
    B &b = d.b;
    Value x = op.getLhs(), n = op.getRhs();
    if (d.isActive(x)) { // n x^(n - 1), and 0 for n = 0, also where x is 0
      Value slope = b.mul(n, b.binary<PowOp>(x, b.binary<SubOp>(n, 1)));
      slope = b.select(b.compare(CompareKind::EQ, n, 0), d.zero(n), slope);
      d.add(x, b.mul(g, slope));
    }
    if (d.isActive(n)) { // x^n log(x), which goes to 0 with x
      Value slope = b.mul(op.getResult(), b.unary<LogOp>(x));
      slope = b.select(b.compare(CompareKind::EQ, x, 0), d.zero(x), slope);
      d.add(n, b.mul(g, slope));
    }
    return success();
  });
  on<Atan2Op>([](Differentiator &d, Atan2Op op, Value g) {
    Value y = op.getLhs(), x = op.getRhs(), part = d.b.div(g, d.b.add(d.b.mul(x, x), d.b.mul(y, y)));
    d.add(y, d.b.mul(part, x));
    d.add(x, d.b.unary<NegOp>(d.b.mul(part, y)));
    return success();
  });
  on<MaxOp>([](Differentiator &d, MaxOp op, Value g) { return chooseRule(d, op, g, CompareKind::GT); });
  on<MinOp>([](Differentiator &d, MinOp op, Value g) { return chooseRule(d, op, g, CompareKind::LT); });
  on<SelectOp>([](Differentiator &d, SelectOp op, Value g) {
    d.add(op.getIfTrue(), d.b.select(op.getCondition(), g, d.zero(g)));
    d.add(op.getIfFalse(), d.b.select(op.getCondition(), d.zero(g), g));
    return success();
  });
  on<ConvertOp>([](Differentiator &d, ConvertOp op, Value g) {
    if (d.isActive(op.getOperand()))
      d.add(op.getOperand(), d.b.convert(g, d.b.elementOf(op.getOperand())));
    return success();
  });
  onSteps<CeilOp, FloorOp, RoundOp, TruncOp, SignOp>();
  on<NegOp>([](Differentiator &d, NegOp op, Value g) {
    d.add(op.getOperand(), d.b.unary<NegOp>(g));
    return success();
  });
  onUnary<AbsOp>([](B &b, Value x, Value) { return b.unary<SignOp>(x); });
  onUnary<SqrtOp>([](B &b, Value, Value y) { return b.div(b.splatLike(y, 0.5), y); });
  onUnary<RsqrtOp>([](B &b, Value x, Value y) { return b.binary<MulOp>(b.div(y, x), -0.5); });
  onUnary<ReciprocalOp>([](B &b, Value, Value y) { return squareTerm(b, y, -1, 0); });
  onUnary<ExpOp>([](B &, Value, Value y) { return y; });
  onUnary<Expm1Op>([](B &b, Value, Value y) { return b.binary<AddOp>(y, 1); });
  onUnary<LogOp>([](B &b, Value x, Value) { return b.unary<ReciprocalOp>(x); });
  onUnary<Log1pOp>([](B &b, Value x, Value) { return b.unary<ReciprocalOp>(b.binary<AddOp>(x, 1)); });
  onUnary<SinOp>([](B &b, Value x, Value) { return b.unary<CosOp>(x); });
  onUnary<CosOp>([](B &b, Value x, Value) { return b.unary<NegOp>(b.unary<SinOp>(x)); });
  onUnary<TanOp>([](B &b, Value, Value y) { return squareTerm(b, y, 1, 1); });
  onUnary<AsinOp>([](B &b, Value x, Value) { return b.unary<RsqrtOp>(squareTerm(b, x, -1, 1)); });
  onUnary<AcosOp>([](B &b, Value x, Value) { return b.unary<NegOp>(b.unary<RsqrtOp>(squareTerm(b, x, -1, 1))); });
  onUnary<AtanOp>([](B &b, Value x, Value) { return b.unary<ReciprocalOp>(squareTerm(b, x, 1, 1)); });
  onUnary<SinhOp>([](B &b, Value x, Value) { return b.unary<CoshOp>(x); });
  onUnary<CoshOp>([](B &b, Value x, Value) { return b.unary<SinhOp>(x); });
  onUnary<TanhOp>([](B &b, Value, Value y) { return squareTerm(b, y, -1, 1); });
  onUnary<AsinhOp>([](B &b, Value x, Value) { return b.unary<RsqrtOp>(squareTerm(b, x, 1, 1)); });
  onUnary<AcoshOp>([](B &b, Value x, Value) { return b.unary<RsqrtOp>(squareTerm(b, x, 1, -1)); });
  onUnary<AtanhOp>([](B &b, Value x, Value) { return b.unary<ReciprocalOp>(squareTerm(b, x, -1, 1)); });
  onUnary<ErfOp>([](B &b, Value x, Value) {
    return b.binary<MulOp>(b.unary<ExpOp>(squareTerm(b, x, -1, 0)), 2 / std::sqrt(M_PI));
  });
  onUnary<LogisticOp>([](B &b, Value, Value y) { return b.mul(y, b.sub(b.splatLike(y, 1), y)); });
}

//===--- movement -------------------------------------------------------------------------------------------------===//

void Rules::addMovement() {
  on<ReshapeOp>([](Differentiator &d, ReshapeOp op, Value g) {
    d.add(op.getOperand(), d.b.reshape(g, getSizes(op.getOperand())));
    return success();
  });
  on<TransposeOp>([](Differentiator &d, TransposeOp op, Value g) {
    SmallVector<int64_t> back(op.getPermutation().size());
    for (auto [i, dim] : llvm::enumerate(op.getPermutation()))
      back[dim] = i;
    d.add(op.getOperand(), d.b.transpose(g, back));
    return success();
  });
  on<BroadcastOp>([](Differentiator &d, BroadcastOp op, Value g) -> LogicalResult {
    Sizes from = getSizes(op.getOperand()), to = getSizes(op.getResult());
    SmallVector<int64_t> repeated;
    for (int64_t dim = 0; dim < int64_t(to.size()); ++dim) {
      auto it = llvm::find(op.getDims(), dim);
      AffineExpr size = it == op.getDims().end() ? AffineExpr() : from[it - op.getDims().begin()];
      if (size && size != to[dim] && getConstantSize(size) != 1)
        return d.fail("whose operand's size in dim " + Twine(dim) + " may be 1 or the result's");
      if (size != to[dim])
        repeated.push_back(dim);
    }
    d.add(op.getOperand(), d.b.reshape(d.b.reduce(ReduceKind::Sum, g, repeated), from));
    return success();
  });
  on<SliceOp>([](Differentiator &d, SliceOp op, Value g) -> LogicalResult {
    // Back to its place, dim by dim: what is not read has 0.
    PrimBuilder &b = d.b;
    Sizes sizes = getSizes(g), whole = getSizes(op.getOperand()), low;
    for (size_t dim = 0; dim < whole.size(); ++dim) {
      int64_t step = op.getSteps()[dim];
      AffineExpr start = op.getStarts().getResult(dim);
      low.push_back(step == 1 ? start : b.size(0));
      if (step == 1)
        continue;
      sizes[dim] = whole[dim];
      Value at = b.iota(b.getI64Type(), getSizes(g), dim);
      at = b.add(b.binary<MulOp>(at, double(step)), b.broadcastTo(b.sizeValue(start), getSizes(g)));
      g = ScatterElementsOp::create(b, makeType(b.elementOf(g), sizes), b.splat(b.elementOf(g), sizes, 0), at, g, dim,
                                    ReduceKindAttr());
    }
    d.add(op.getOperand(), b.pad(g, b.scalar(b.elementOf(g), 0), low, whole));
    return success();
  });
  on<PadOp>([](Differentiator &d, PadOp op, Value g) {
    PrimBuilder &b = d.b;
    Sizes back, sizes = getSizes(op.getOperand());
    for (AffineExpr low : op.getLow().getResults())
      back.push_back(simplifySize(-low));
    Value inner = b.pad(g, b.scalar(b.elementOf(g), 0), back, sizes);
    d.add(op.getOperand(), inner);
    if (d.isActive(op.getValue())) {
      auto total = [&](Value v) {
        return b.reduce(ReduceKind::Sum, v, llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(v))));
      };
      d.add(op.getValue(), b.sub(total(g), total(inner)));
    }
    return success();
  });
  on<ConcatOp>([](Differentiator &d, ConcatOp op, Value g) {
    AffineExpr start = d.b.size(0);
    for (Value v : op.getInputs()) {
      AffineExpr count = getSizes(v)[op.getAxis()];
      if (d.isActive(v))
        d.add(v, d.b.sliceDim(g, op.getAxis(), start, count));
      start = simplifySize(start + count);
    }
    return success();
  });
}

/// Indices into a dim of `size`, counted from its start.
Value countFromStart(PrimBuilder &b, Value indices, AffineExpr size) {
  indices = b.convert(indices, b.getI64Type());
  Value wrapped = b.add(indices, b.broadcastTo(b.sizeValue(size), getSizes(indices)));
  return b.select(b.compare(CompareKind::LT, indices, 0), wrapped, indices);
}

void Rules::addIndexed() {
  // An element that is read several times gets the sum.
  on<GatherOp>([](Differentiator &d, GatherOp op, Value g) {
    PrimBuilder &b = d.b;
    Value source = op.getSource(), indices = op.getIndices();
    int64_t axis = op.getAxis(), rank = b.rankOf(source), picked = b.rankOf(indices);
    // source [I.., A, K..] as [A, I.., K..], g [I.., J.., K..] as [J.., I.., K..]
    SmallVector<int64_t> axisFirst{axis}, indicesFirst, back(rank);
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis)
        axisFirst.push_back(i);
    for (int64_t j = 0; j < picked; ++j)
      indicesFirst.push_back(axis + j);
    for (int64_t i = 0; i < b.rankOf(g); ++i)
      if (i < axis || i >= axis + picked)
        indicesFirst.push_back(i);
    for (auto [i, dim] : llvm::enumerate(axisFirst))
      back[dim] = i;
    Sizes sizes;
    for (int64_t dim : axisFirst)
      sizes.push_back(getSizes(source)[dim]);
    Value at = b.unsqueeze(countFromStart(b, indices, sizes[0]), picked), zeros = b.splat(b.elementOf(g), sizes, 0);
    Value sum = ScatterNDOp::create(b, zeros.getType(), zeros, at, b.transpose(g, indicesFirst),
                                    ReduceKindAttr::get(b.getContext(), ReduceKind::Sum));
    d.add(source, b.transpose(sum, back));
    return success();
  });
  on<GatherElementsOp>([](Differentiator &d, GatherElementsOp op, Value g) {
    Value source = op.getSource(), zeros = d.zero(source);
    Value at = countFromStart(d.b, op.getIndices(), getSizes(source)[op.getAxis()]);
    d.add(source, ScatterElementsOp::create(d.b, zeros.getType(), zeros, at, g, op.getAxis(),
                                            ReduceKindAttr::get(d.b.getContext(), ReduceKind::Sum)));
    return success();
  });
  on<GatherNDOp>([](Differentiator &d, GatherNDOp op, Value g) -> LogicalResult {
    PrimBuilder &b = d.b;
    Value source = op.getSource(), indices = b.convert(op.getIndices(), b.getI64Type()), zeros = d.zero(source);
    const size_t batch = op.getBatchDims();
    Sizes at = getSizes(indices), sizes(SizesRef(getSizes(source)).drop_front(batch));
    sizes.resize(*getConstantSize(at.back()));
    Value wrapped = b.add(indices, b.broadcastTo(b.sizesValue(sizes), at));
    indices = b.select(b.compare(CompareKind::LT, indices, 0), wrapped, indices);
    // Batch dims are indices like others, each its own.
    SmallVector<Value> columns;
    at.back() = b.size(1);
    for (size_t dim = 0; dim < batch; ++dim)
      columns.push_back(b.iota(b.getI64Type(), at, dim));
    columns.push_back(indices);
    if (batch)
      indices = b.concat(columns, int64_t(at.size()) - 1);
    d.add(source, ScatterNDOp::create(b, zeros.getType(), zeros, indices, g,
                                      ReduceKindAttr::get(b.getContext(), ReduceKind::Sum)));
    return success();
  });
  // Places that updates are put to keep nothing of the source; ONNX leaves open which of several updates of a place
  // wins.
  on<ScatterNDOp>([](Differentiator &d, ScatterNDOp op, Value g) -> LogicalResult {
    if (op.getKind() && *op.getKind() != ReduceKind::Sum)
      return d.fail("of another kind than sum");
    PrimBuilder &b = d.b;
    Value kept = g;
    if (!op.getKind() && d.isActive(op.getSource()))
      kept = ScatterNDOp::create(b, g.getType(), g, op.getIndices(), d.zero(op.getUpdates()), ReduceKindAttr());
    d.add(op.getSource(), kept);
    if (d.isActive(op.getUpdates()))
      d.add(op.getUpdates(), GatherNDOp::create(b, op.getUpdates().getType(), g, op.getIndices(), 0));
    return success();
  });
  on<ScatterElementsOp>([](Differentiator &d, ScatterElementsOp op, Value g) -> LogicalResult {
    if (op.getKind() && *op.getKind() != ReduceKind::Sum)
      return d.fail("of another kind than sum");
    PrimBuilder &b = d.b;
    Value kept = g;
    if (!op.getKind() && d.isActive(op.getSource()))
      kept = ScatterElementsOp::create(b, g.getType(), g, op.getIndices(), d.zero(op.getUpdates()), op.getAxis(),
                                       ReduceKindAttr());
    d.add(op.getSource(), kept);
    if (d.isActive(op.getUpdates()))
      d.add(op.getUpdates(), GatherElementsOp::create(b, op.getUpdates().getType(), g, op.getIndices(), op.getAxis()));
    return success();
  });
  on<DotGeneralOp>([](Differentiator &d, DotGeneralOp op, Value g) -> LogicalResult {
    PrimBuilder &b = d.b;
    struct Side {
      Value v;
      SmallVector<int64_t> batch, contract, free;
    };
    auto sideOf = [&](Value v, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
      Side side{v, llvm::to_vector(batch), llvm::to_vector(contract), {}};
      for (int64_t i = 0; i < b.rankOf(v); ++i)
        if (!llvm::is_contained(batch, i) && !llvm::is_contained(contract, i))
          side.free.push_back(i);
      return side;
    };
    Side sides[] = {sideOf(op.getLhs(), op.getLhsBatch(), op.getLhsContract()),
                    sideOf(op.getRhs(), op.getRhsBatch(), op.getRhsContract())};
    // g [batch, free of lhs, free of rhs] and the other side, contracted along the other's free dims.
    int64_t batchRank = sides[0].batch.size();
    SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, batchRank));
    for (int64_t i : {0, 1}) {
      const Side &own = sides[i], &other = sides[1 - i];
      if (!d.isActive(own.v))
        continue;
      int64_t first = batchRank + (i == 0 ? own.free.size() : 0);
      SmallVector<int64_t> contract = llvm::to_vector(llvm::seq<int64_t>(first, first + int64_t(other.free.size())));
      Value factor = b.convert(other.v, b.elementOf(g));
      Value part = DotGeneralOp::create(b, g, factor, batch, other.batch, contract, other.free);
      // [batch, own free, other's contracted dims in rising order]: each to its dim of `own`.
      SmallVector<int64_t> rising(other.contract), places(own.batch), permutation(b.rankOf(own.v));
      llvm::sort(rising);
      llvm::append_range(places, own.free);
      for (int64_t dim : rising)
        places.push_back(own.contract[llvm::find(other.contract, dim) - other.contract.begin()]);
      for (auto [from, to] : llvm::enumerate(places))
        permutation[to] = from;
      d.add(own.v, b.convert(b.transpose(part, permutation), b.elementOf(own.v)));
    }
    return success();
  });
}

//===--- reductions -----------------------------------------------------------------------------------------------===//

void Rules::addReductions() {
  on<ReduceOp>([](Differentiator &d, ReduceOp op, Value g) -> LogicalResult {
    PrimBuilder &b = d.b;
    Value x = op.getOperand();
    Sizes sizes = getSizes(x);
    Value wide = d.along(g, sizes, op.getDims());
    switch (op.getKind()) {
    case ReduceKind::Sum:
      d.add(x, wide);
      return success();
    case ReduceKind::Max:
    case ReduceKind::Min: { // equal largest elements share it
      Value equal = b.compare(CompareKind::EQ, x, d.along(op.getResult(), sizes, op.getDims()));
      Value count = b.reduce(ReduceKind::Sum, b.convert(equal, b.elementOf(x)), op.getDims());
      d.add(x, b.select(equal, b.div(wide, d.along(count, sizes, op.getDims())), d.zero(x)));
      return success();
    }
    case ReduceKind::Prod: { // the product of the others: of those before and those after
      if (op.getDims().size() != 1)
        return d.fail("over more than one dim");
      auto others = [&](bool reverse) -> Value {
        return ScanOp::create(b, x.getType(), ReduceKind::Prod, x, op.getDims()[0], /*exclusive=*/true, reverse);
      };
      d.add(x, b.mul(wide, b.mul(others(false), others(true))));
      return success();
    }
    default:
      return d.fail("of this kind");
    }
  });
  on<ScanOp>([](Differentiator &d, ScanOp op, Value g) -> LogicalResult {
    if (op.getKind() != ReduceKind::Sum)
      return d.fail("of another kind than sum");
    d.add(op.getOperand(),
          ScanOp::create(d.b, g.getType(), ReduceKind::Sum, g, op.getAxis(), op.getExclusive(), !op.getReverse()));
    return success();
  });
  on<FftOp>([](Differentiator &d, FftOp op, Value g) -> LogicalResult {
    PrimBuilder &b = d.b;
    const Sizes sizes = getSizes(op.getOperand());
    const AffineExpr length = op.getLengthExpr();
    if (op.getHalf() && !isOne(getSizes(op.getResult())[3]))
      return d.fail("of complex results of half a spectrum");
    // Elements that are read, of which the operand may have fewer.
    Sizes read = sizes;
    const AffineExpr most = op.getHalf() ? simplifySize(length.floorDiv(2) + 1) : length;
    const auto extent = getConstantSize(sizes[1]), known = getConstantSize(most);
    if (sizes[1] != most && !(extent && known))
      return d.fail("of a length that may be less than the operand's");
    if (extent && known && *known < *extent)
      read[1] = most;
    // The adjoint of exp(-i a), as a map of real and imaginary parts, is exp(i a).
    Value back = FftOp::create(b, makeType(b.elementOf(g), read), g, op.getLength(), !op.getInverse());
    if (op.getHalf()) { // all but the first and the middle one stand for two
      Value k = b.iota(b.getI64Type(), read, 1), count = b.broadcastTo(b.sizeValue(length), read);
      Value isAlone =
          b.binary<OrOp>(b.compare(CompareKind::EQ, k, 0), b.compare(CompareKind::EQ, b.binary<MulOp>(k, 2), count));
      back = b.select(isAlone, back, b.add(back, back));
    }
    d.add(op.getOperand(), b.pad(back, b.scalar(b.elementOf(g), 0), Sizes(4, b.size(0)), sizes));
    return success();
  });
  on<SoftmaxOp>([](Differentiator &d, SoftmaxOp op, Value g) {
    PrimBuilder &b = d.b;
    int64_t axis = op.getAxis();
    Value y = op.getResult();
    auto total = [&](Value v) { return d.along(b.reduce(ReduceKind::Sum, v, {axis}), getSizes(y), {axis}); };
    d.add(op.getOperand(),
          op.getLog() ? b.sub(g, b.mul(b.unary<ExpOp>(y), total(g))) : b.mul(y, b.sub(g, total(b.mul(g, y)))));
    return success();
  });
  on<NormOp>([](Differentiator &d, NormOp op, Value g) {
    PrimBuilder &b = d.b;
    Type type = b.elementOf(op.getOperand());
    Value x = b.convert(op.getOperand(), b.accumulatorOf(type)), y = b.convert(op.getResult(), b.accumulatorOf(type));
    g = b.convert(g, b.accumulatorOf(type));
    auto mean = [&](Value v) { return d.along(b.mean(v, op.getDims()), getSizes(v), op.getDims()); };
    Value centred = op.getRms() ? x : b.sub(x, mean(x));
    Value factor = b.unary<RsqrtOp>(b.binary<AddOp>(mean(b.mul(centred, centred)), op.getEpsilon().convertToDouble()));
    Value rest = b.sub(g, b.mul(y, mean(b.mul(g, y))));
    if (!op.getRms())
      rest = b.sub(rest, mean(g));
    d.add(op.getOperand(), b.convert(b.mul(factor, rest), type));
    return success();
  });
}

//===--- convolutions and pools -----------------------------------------------------------------------------------===//

/// The elements of all windows of x [N, S.., C]: [N, T0, K0, T1, K1, .., C], `fill` outside.
Value windowsOf(PrimBuilder &b, Value x, double fill, ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                ArrayRef<int64_t> dilations, ArrayRef<int64_t> padLow, SizesRef out) {
  Sizes low(b.rankOf(x), b.size(0)), padded = getSizes(x);
  for (size_t i = 0; i < kernel.size(); ++i) {
    low[i + 1] = b.size(padLow[i]);
    padded[i + 1] = simplifySize((out[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1);
  }
  x = b.pad(x, b.scalar(b.elementOf(x), fill), low, padded);
  for (size_t i = 0; i < kernel.size(); ++i) {
    Sizes grid{out[i], b.size(kernel[i])};
    Value at = b.add(b.binary<MulOp>(b.iota(b.getI64Type(), grid, 0), double(strides[i])),
                     b.binary<MulOp>(b.iota(b.getI64Type(), grid, 1), double(dilations[i])));
    x = GatherOp::create(b, x, at, 2 * i + 1);
  }
  return x;
}

/// What reaches a convolution's input is g, spread out by the strides, convolved with the flipped filter.
Value gradientOfInput(PrimBuilder &b, ConvOp op, Value g) {
  Sizes input = getSizes(op.getInput()), filter = getSizes(op.getFilter()), out = getSizes(g);
  size_t n = input.size() - 2;
  int64_t groups = op.getGroups();
  AffineExpr O = filter[n + 1], perGroup = filter[n];
  Sizes split{out[0]}, spread{out[0]}, joined{out[0]}, low(n + 2, b.size(0)), padded = input, starts, window;
  SmallVector<int64_t> ones(n, 1), zeros(n, 0), steps(n, -1), order;
  padded.back() = O;
  for (size_t i = 0; i < n; ++i) {
    int64_t stride = op.getStrides()[i], kernel = *getConstantSize(filter[i]);
    int64_t reach = op.getDilations()[i] * (kernel - 1);
    split.append({out[i + 1], b.size(1)});
    spread.append({out[i + 1], b.size(stride)});
    joined.push_back(simplifySize(out[i + 1] * stride));
    low[i + 1] = b.size(reach - op.getPadLow()[i]);
    padded[i + 1] = simplifySize(input[i + 1] + reach);
    starts.push_back(b.size(std::max<int64_t>(kernel - 1, 0)));
    window.push_back(filter[i]);
    order.push_back(i);
  }
  split.push_back(O);
  spread.push_back(O);
  joined.push_back(O);
  Value zero = b.scalar(b.elementOf(g), 0);
  g = b.reshape(b.pad(b.reshape(g, split), zero, Sizes(split.size(), b.size(0)), spread), joined);
  g = b.pad(g, zero, low, padded);
  // [K.., C / G, O] -> [K.., C / G, G, O / G] -> [K.., O / G, G, C / G], flipped along K
  Sizes wide = window, flipped = window;
  AffineExpr outputs = simplifySize(O.floorDiv(groups));
  wide.append({perGroup, b.size(groups), outputs});
  flipped.append({outputs, simplifySize(perGroup * groups)});
  order.append({int64_t(n) + 2, int64_t(n) + 1, int64_t(n)});
  starts.append(2, b.size(0));
  steps.append(2, 1);
  Value w = b.reshape(b.transpose(b.reshape(op.getFilter(), wide), order), flipped);
  w = SliceOp::create(b, w.getType(), w, makeSizeMap(b.getContext(), starts), steps);
  Value x = ConvOp::create(b, g, w, ones, op.getDilations(), zeros, zeros, groups);
  return b.reshape(x, input);
}

/// The input convolved with g, whose pixels are steps apart, as images and channels change places: an element of the
/// filter sums up what its input elements brought, over all images.
///
///   input [N, S.., G, C] -> [C, S.., G, N],  g [N, T.., G, O] -> [T.., N, G, O]  ->  [C, K.., G, O]
///
/// Nothing is copied out of windows then, which overlap. All sizes are constants.
Value convolveForFilter(PrimBuilder &b, ConvOp op, Value g) {
  const Sizes input = getSizes(op.getInput()), filter = getSizes(op.getFilter()), out = getSizes(g);
  const int64_t n = int64_t(filter.size()) - 2, groups = op.getGroups();
  SmallVector<int64_t> padHigh, channelsFirst{n + 2}, imagesLast;
  for (int64_t i = 0; i < n; ++i) {
    channelsFirst.push_back(i + 1);
    imagesLast.push_back(i + 1);
    padHigh.push_back(op.getStrides()[i] * (*getConstantSize(out[i + 1]) - 1) +
                      op.getDilations()[i] * (*getConstantSize(filter[i]) - 1) + 1 - *getConstantSize(input[i + 1]) -
                      op.getPadLow()[i]);
  }
  channelsFirst.append({n + 1, 0});
  imagesLast.append({0, n + 1});
  Sizes split = input, swapped(SizesRef(input).drop_back());
  split.back() = b.size(groups);
  split.push_back(filter[n]);
  swapped.front() = filter[n];
  swapped.push_back(simplifySize(input.front() * groups));
  Value images = b.reshape(b.transpose(b.reshape(op.getInput(), split), channelsFirst), swapped);
  Value gradient = ConvOp::create(b, images, b.transpose(g, imagesLast), op.getDilations(), op.getStrides(),
                                  op.getPadLow(), padHigh, groups);
  return b.transpose(gradient, imagesLast);
}

/// The product of the windows' elements with g, over all windows.
Value multiplyForFilter(PrimBuilder &b, ConvOp op, Value g) {
  Sizes filter = getSizes(op.getFilter()), out = getSizes(g);
  int64_t n = int64_t(filter.size()) - 2, groups = op.getGroups();
  SmallVector<int64_t> kernel, all{0}, ofG{0}, order;
  for (int64_t i = 0; i < n; ++i) {
    kernel.push_back(*getConstantSize(filter[i]));
    all.push_back(2 * i + 1);
    ofG.push_back(i + 1);
    order.push_back(i + 1);
  }
  Value x = windowsOf(b, op.getInput(), 0, kernel, op.getStrides(), op.getDilations(), op.getPadLow(),
                      SizesRef(out).slice(1, n));
  // Channels as [G, C / G] and [G, O / G].
  Sizes split = getSizes(x), splitG = out;
  AffineExpr outputs = simplifySize(out.back().floorDiv(groups));
  split.back() = splitG.back() = b.size(groups);
  split.push_back(filter[n]);
  splitG.push_back(outputs);
  Value product = DotGeneralOp::create(b, b.reshape(x, split), b.reshape(g, splitG), ArrayRef<int64_t>{2 * n + 1},
                                       ArrayRef<int64_t>{n + 1}, all, ofG); // [G, K.., C / G, O / G]
  order.append({n + 1, 0, n + 2});
  return b.reshape(b.transpose(product, order), filter);
}

/// Channels of a group from which on its filter's gradient is a convolution.
constexpr int64_t kChannelsOfGroup = 16;

/// What reaches a filter.
Value gradientOfFilter(PrimBuilder &b, ConvOp op, Value g) {
  auto isConstant = [](AffineExpr size) { return getConstantSize(size).has_value(); };
  // Windows of one pixel do not overlap; of groups of few channels GPUs have better products than convolutions.
  const Sizes filter = getSizes(op.getFilter());
  const bool isPoint = llvm::all_of(SizesRef(filter).drop_back(2), [](AffineExpr size) { return size == 1; });
  auto areMany = [](AffineExpr channels) { return getConstantSize(channels).value_or(0) >= kChannelsOfGroup; };
  const bool isGrouped = op.getGroups() > 1;
  const bool hasFew = isGrouped && !(areMany(filter.end()[-2]) && areMany(filter.back().floorDiv(op.getGroups())));
  return !hasFew && !isPoint && llvm::all_of(getSizes(op.getInput()), isConstant) &&
                 llvm::all_of(getSizes(g), isConstant)
             ? convolveForFilter(b, op, g)
             : multiplyForFilter(b, op, g);
}

void Rules::addWindows() {
  on<ConvOp>([](Differentiator &d, ConvOp op, Value g) -> LogicalResult {
    for (AffineExpr size : SizesRef(getSizes(op.getFilter())).drop_back(2))
      if (!getConstantSize(size))
        return d.fail("with a filter of unknown size");
    if (d.isActive(op.getInput()))
      d.add(op.getInput(), gradientOfInput(d.b, op, g));
    if (d.isActive(op.getFilter()))
      d.add(op.getFilter(), gradientOfFilter(d.b, op, g));
    return success();
  });
  on<WindowReduceOp>([](Differentiator &d, WindowReduceOp op, Value g) -> LogicalResult {
    ReduceKind kind = op.getKind();
    if (kind != ReduceKind::Sum && kind != ReduceKind::Max && kind != ReduceKind::Min)
      return d.fail("of this kind");
    double infinity = std::numeric_limits<double>::infinity();
    double fill = kind == ReduceKind::Sum ? 0 : kind == ReduceKind::Max ? -infinity : infinity;
    Sizes out = getSizes(op.getResult());
    Value windows = windowsOf(d.b, op.getOperand(), fill, op.getWindow(), op.getStrides(), op.getDilations(),
                              op.getPadLow(), SizesRef(out).drop_front().drop_back());
    SmallVector<int64_t> dims;
    for (size_t i = 0; i < op.getWindow().size(); ++i)
      dims.push_back(2 * i + 2);
    return d.through(d.b.reduce(kind, windows, dims), g, op.getOperand());
  });
}

void Differentiator::activate(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    bool depends = false;
    op->walk([&](Operation *inner) {
      depends |= llvm::any_of(inner->getOperands(), [&](Value v) { return active.contains(v); });
    });
    if (depends)
      for (Value v : op->getResults())
        active.insert(v);
  }
}

LogicalResult Differentiator::propagate(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops)) {
    if (llvm::none_of(op->getResults(), [&](Value v) { return gradients.count(v); }))
      continue;
    const Rule *rule = Rules::get().lookup(op);
    reason.clear();
    if (rule && succeeded((*rule)(*this, op, gradients[op->getResult(0)])))
      continue;
    if (sentence.empty())
      sentence = ("through " + op->getName().getStringRef() + (reason.empty() ? "" : " " + reason)).str();
    return failure();
  }
  return success();
}

FailureOr<SmallVector<Value>> Differentiator::run(Value y, ValueRange xs, ValueRange constants, std::string &why) {
  llvm::DenseSet<Value> leaves(xs.begin(), xs.end());
  leaves.insert(constants.begin(), constants.end());
  SmallVector<Operation *> ops = collectOps(y, leaves);
  activate(ops);
  add(y, b.splatLike(y, 1));
  if (failed(propagate(ops))) {
    why = sentence;
    return failure();
  }
  return llvm::map_to_vector(xs, [&](Value x) {
    Value g = gradients.lookup(x);
    return g ? g : zero(x);
  });
}

} // namespace

FailureOr<SmallVector<Value>> tc::emitGradients(PrimBuilder &b, Value y, ValueRange xs, ValueRange constants,
                                                std::string &why) {
  return Differentiator(b, xs).run(y, xs, constants, why);
}

Value tc::emitSubstituted(PrimBuilder &b, Value y, ValueRange from, ValueRange to) {
  IRMapping mapping;
  mapping.map(from, to);
  for (Operation *op : collectOps(y, llvm::DenseSet<Value>(from.begin(), from.end()))) {
    bool changed = false;
    op->walk([&](Operation *inner) {
      changed |= llvm::any_of(inner->getOperands(), [&](Value v) { return mapping.contains(v); });
    });
    if (changed)
      b.clone(*op, mapping);
  }
  return mapping.lookupOrDefault(y);
}
