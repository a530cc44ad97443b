//===- EmitLoops.cpp - scopes, loops and masks of the emitter -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

int Emitter::depthOf(ArrayRef<Index> at) const {
  int depth = 0;
  for (const Index &index : at)
    depth = std::max(depth, index.depth);
  return depth;
}

Value Emitter::inScope(int depth, llvm::function_ref<Value()> fn) {
  int current = int(scopes.size()) - 1;
  for (int i = current; i > depth; --i)
    if (scopes[i].barrier)
      depth = i;
  if (depth >= current)
    return fn();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(scopes[depth + 1].loop);
  std::vector<Scope> inner(std::make_move_iterator(scopes.begin() + depth + 1), std::make_move_iterator(scopes.end()));
  scopes.resize(depth + 1);
  Value result = fn();
  for (Scope &scope : inner)
    scopes.push_back(std::move(scope));
  return result;
}

Value Emitter::mask() const { return scopes.back().mask; }

SmallVector<Value> Emitter::loop(Value lower, Value upper, int64_t step, ValueRange inits,
                                 llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body, int64_t multiple) {
  auto forOp = scf::ForOp::create(b, location, lower, upper, i64(step), inits);
  OpBuilder::InsertionGuard guard(b);
  if (inits.empty())
    b.setInsertionPoint(forOp.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(forOp.getBody());
  Scope scope;
  scope.loop = forOp;
  scope.mask = mask();
  scopes.push_back(std::move(scope));
  Index iv;
  iv.base = forOp.getInductionVar();
  iv.depth = int(scopes.size()) - 1;
  auto constantLower = constantOf(lower);
  iv.multiple = std::gcd(constantLower ? *constantLower : multiple, step);
  SmallVector<Value> results = body(iv, forOp.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, location, results);
  scopes.pop_back();
  return llvm::to_vector(ValueRange(forOp.getResults()));
}

SmallVector<Value> Emitter::reduceLoop(prim::ReduceKind kind, Type accumulator, Value lower, Value upper, int64_t step,
                                       ValueRange inits, std::optional<int64_t> stepsWithin,
                                       llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body,
                                       int64_t multiple) {
  // A segment costs the start of a loop and a mispredicted end: little beside so many steps. Where the body is a loop
  // already it costs an addition, and equal elements (squares of what a relu made 0, less its mean) err all one way.
  constexpr int64_t kPartialSteps = 128, kLeastWithin = 8, kShortWithin = 32;
  // Of reductions of nothing, too.
  const int64_t within = std::max<int64_t>(1, stepsWithin.value_or(kPartialSteps)),
                most = std::max<int64_t>(1, kPartialSteps / within);
  const std::optional<int64_t> from = constantOf(lower), to = constantOf(upper);
  const std::optional<int64_t> turns = from && to ? std::optional(llvm::divideCeil(*to - *from, step)) : std::nullopt;
  const bool isShort = turns && *turns * within <= (within >= kLeastWithin ? kShortWithin : 2 * kPartialSteps);
  if (!addsInSegments(kind, accumulator) || team || isShort)
    return loop(lower, upper, step, inits, body, multiple);
  auto addTo = [&](ValueRange sums, ValueRange part) {
    return llvm::map_to_vector(llvm::zip_equal(sums, part), [&](auto pair) {
      return combine(kind, accumulator, std::get<0>(pair), std::get<1>(pair));
    });
  };
  const Value zero = neutral(kind, accumulator);
  SmallVector<Value> start;
  for (Value init : inits)
    start.push_back(isa<VectorType>(init.getType()) ? broadcast(zero) : zero);
  // What the body does is a segment.
  if (within >= kLeastWithin)
    return loop(
        lower, upper, step, inits,
        [&](Index at, ValueRange sums) { return SmallVector<Value>(addTo(sums, body(at, start))); }, multiple);
  const bool isWhole = turns && *turns % most == 0;
  return loop(
      lower, upper, step * most, inits,
      [&](Index first, ValueRange sums) {
        const Value end = add(first.base, i64(step * most));
        return SmallVector<Value>(
            addTo(sums, loop(first.base, isWhole ? end : min(end, upper), step, start, body, first.multiple)));
      },
      multiple);
}

void Emitter::loop(Value lower, Value upper, int64_t step, llvm::function_ref<void(Index)> body, int64_t multiple) {
  loop(
      lower, upper, step, ValueRange{},
      [&](Index iv, ValueRange) {
        body(iv);
        return SmallVector<Value>{};
      },
      multiple);
}

Value tc::codegen::tailMask(Emitter &e, Value remaining) {
  OpBuilder &b = e.builder();
  SmallVector<int32_t> lanes(e.width());
  std::iota(lanes.begin(), lanes.end(), 0);
  auto type = e.vectorOf(b.getI32Type());
  Value iota = arith::ConstantOp::create(b, e.loc(), DenseElementsAttr::get(type, ArrayRef<int32_t>(lanes)));
  Value limit = arith::TruncIOp::create(b, e.loc(), b.getI32Type(), e.min(remaining, e.i64(e.width())));
  return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, iota, e.broadcast(limit));
}

Value Emitter::lanesWithin(Value first, Value end) {
  auto bit = [&](Value lane) -> Value {
    const Value within = min(arith::MaxSIOp::create(b, location, lane, i64(0)), i64(width()));
    return arith::ShLIOp::create(b, location, i64(1), within);
  };
  const Value on = arith::TruncIOp::create(b, location, b.getIntegerType(width()), sub(bit(end), bit(first)));
  return LLVM::BitcastOp::create(b, location, vectorOf(b.getI1Type()), on);
}

SmallVector<Value> Emitter::laneLoop(Value count, std::optional<int64_t> constantCount, ValueRange inits,
                                     llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body, Value lower) {
  Value zero = lower ? lower : i64(0);
  int64_t w = width();
  Value span = sub(count, zero);
  const bool aligned = (constantCount && *constantCount % w == 0) || multipleOf(span) % w == 0;
  Value full = aligned ? count : add(zero, mul(divUnsigned(span, i64(w)), i64(w)));
  auto constantLower = constantOf(zero), constantFull = constantOf(full);
  SmallVector<Value> carried(inits);
  if (!(constantFull && constantLower && *constantFull <= *constantLower))
    carried = loop(
        zero, full, w, carried,
        [&](Index iv, ValueRange values) {
          scopes.back().mask = {};
          return body(contiguous(iv), values);
        },
        w);
  if (aligned)
    return carried;
  return loop(
      full, count, w, carried,
      [&](Index iv, ValueRange values) {
        scopes.back().mask = tailMask(*this, sub(count, iv.base));
        return body(contiguous(iv), values);
      },
      w);
}

SmallVector<Value> Emitter::teamLoop(Value count, ValueRange inits,
                                     llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body) {
  const int64_t w = width();
  const bool isWhole = multipleOf(count) % w == 0;
  return loop(
      mul(team->member, i64(w)), count, w * team->size, inits,
      [&](Index iv, ValueRange values) {
        scopes.back().mask = isWhole ? Value() : tailMask(*this, sub(count, iv.base));
        return body(contiguous(iv), values);
      },
      w);
}

void Emitter::laneLoop(Value count, std::optional<int64_t> constantCount, llvm::function_ref<void(Index)> body,
                       Value lower) {
  laneLoop(
      count, constantCount, ValueRange{},
      [&](Index at, ValueRange) {
        body(at);
        return SmallVector<Value>{};
      },
      lower);
}

void Emitter::independentLanes(Value count, std::optional<int64_t> constantCount, llvm::function_ref<void(Index)> body,
                               Value lower) {
  laneLoop(
      count, constantCount,
      [&](Index lane) {
        if (!mask())
          scopes.back().loop->setAttr(kIndependentLanes, b.getUnitAttr());
        body(lane);
      },
      lower);
}

void Emitter::laneBlocks(Value count, std::optional<int64_t> constantCount, int64_t vectors,
                         llvm::function_ref<void(ArrayRef<Index>)> body, Value lower) {
  Value from = lower ? lower : i64(0);
  if (vectors > 1) {
    const Value block = i64(vectors * width());
    const Value whole = add(from, mul(divUnsigned(sub(count, from), block), block));
    loop(
        from, whole, vectors * width(),
        [&](Index first) {
          SmallVector<Index> lanes;
          for (int64_t i = 0; i < vectors; ++i)
            lanes.push_back(contiguous(addIndex(first, constant(i * width()))));
          body(lanes);
        },
        width());
    from = whole;
  }
  laneLoop(count, constantCount, [&](Index lane) { body(lane); }, from);
}

void Emitter::ifThen(Value condition, llvm::function_ref<void()> then) {
  auto ifOp = scf::IfOp::create(b, location, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  Scope scope;
  scope.loop = ifOp;
  scope.barrier = true;
  scope.mask = mask();
  scopes.push_back(std::move(scope));
  then();
  scopes.pop_back();
}

void Emitter::withMask(Value mask, llvm::function_ref<void()> fn) {
  const Value before = scopes.back().mask;
  scopes.back().mask = mask;
  fn();
  scopes.back().mask = before;
}

void tc::codegen::disableUnrolling(Operation *loop) {
  MLIRContext *context = loop->getContext();
  auto disable = LLVM::LoopUnrollAttr::get(context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation", LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, disable, {}, {}, {}, {}, {},
                                                                      {}, {}, {}, {}, {}, {}));
}
