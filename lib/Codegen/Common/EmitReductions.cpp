//===- EmitReductions.cpp - reductions of the emitter -------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emission.h"
#include "Common/EmitterHelpers.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

Type Emitter::accumulatorOf(Type elementType) {
  return isNarrowFloat(elementType) ? Type(Float32Type::get(elementType.getContext())) : elementType;
}

Value Emitter::toAccumulator(Value value) {
  Type type = value.getType();
  if (!isNarrowFloat(type))
    return value;
  Type wide = isa<VectorType>(type) ? Type(vectorOf(b.getF32Type())) : b.getF32Type();
  return arith::ExtFOp::create(b, location, wide, value);
}

Value Emitter::fromAccumulator(Value value, Type elementType) {
  if (!isNarrowFloat(elementType))
    return value;
  Type narrow = isa<VectorType>(value.getType()) ? Type(vectorOf(elementType)) : elementType;
  return arith::TruncFOp::create(b, location, narrow, value);
}

Value Emitter::neutral(prim::ReduceKind kind, Type elementType) {
  Type type = valueType(accumulatorOf(elementType));
  TypedAttr attr;
  if (auto f = dyn_cast<FloatType>(type)) {
    double value = kind == prim::ReduceKind::Sum    ? 0.0
                   : kind == prim::ReduceKind::Prod ? 1.0
                   : kind == prim::ReduceKind::Max  ? -INFINITY
                                                    : INFINITY;
    attr = b.getFloatAttr(f, value);
  } else {
    unsigned bits = type.getIntOrFloatBitWidth();
    bool isUnsigned = elementType.isUnsignedInteger() || bits == 1;
    APInt value(bits, 0);
    switch (kind) {
    case prim::ReduceKind::Sum:
    case prim::ReduceKind::Or:
      break;
    case prim::ReduceKind::Prod:
      value = APInt(bits, 1);
      break;
    case prim::ReduceKind::And:
      value = APInt::getAllOnes(bits);
      break;
    case prim::ReduceKind::Max:
      value = isUnsigned ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits);
      break;
    case prim::ReduceKind::Min:
      value = isUnsigned ? APInt::getMaxValue(bits) : APInt::getSignedMaxValue(bits);
      break;
    }
    attr = b.getIntegerAttr(type, value);
  }
  return arith::ConstantOp::create(b, location, attr);
}

Value Emitter::combine(prim::ReduceKind kind, Type elementType, Value x, Value y, bool losesNan) {
  bool isFloat = isa<FloatType>(elementType);
  bool isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
  switch (kind) {
  case prim::ReduceKind::Sum:
    return isFloat ? Value(arith::AddFOp::create(b, location, x, y)) : arith::AddIOp::create(b, location, x, y);
  case prim::ReduceKind::Prod:
    return isFloat ? Value(arith::MulFOp::create(b, location, x, y)) : arith::MulIOp::create(b, location, x, y);
  case prim::ReduceKind::Max:
    if (isFloat && losesNan) // the machine's own instruction: y where either is no number
      return arith::SelectOp::create(b, location, arith::CmpFOp::create(b, location, arith::CmpFPredicate::OGT, x, y),
                                     x, y);
    if (isFloat)
      return arith::MaximumFOp::create(b, location, x, y);
    return isUnsigned ? Value(arith::MaxUIOp::create(b, location, x, y)) : arith::MaxSIOp::create(b, location, x, y);
  case prim::ReduceKind::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, location, x, y);
    return isUnsigned ? Value(arith::MinUIOp::create(b, location, x, y)) : arith::MinSIOp::create(b, location, x, y);
  case prim::ReduceKind::And:
    return arith::AndIOp::create(b, location, x, y);
  case prim::ReduceKind::Or:
    return arith::OrIOp::create(b, location, x, y);
  }
  llvm_unreachable("all kinds are listed");
}

Value Emitter::reduceLanes(prim::ReduceKind kind, Type elementType, Value vector, bool losesNan) {
  // A fixed tree of shuffles: the same bits everywhere.
  for (int64_t half = width() / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + half);
    }
    Value a = vector::ShuffleOp::create(b, location, vector, vector, low);
    Value c = vector::ShuffleOp::create(b, location, vector, vector, high);
    vector = combine(kind, elementType, a, c, losesNan);
  }
  return vector::ExtractOp::create(b, location, vector, ArrayRef<int64_t>{0});
}

Value Emitter::emitReduction(prim::ReduceKind kind, Type elementType, ArrayRef<AffineExpr> extents, bool lanes,
                             llvm::function_ref<Value(ArrayRef<Index>)> element, bool losesNan) {
  const Value start = neutral(kind, elementType);
  const Type accumulator = accumulatorOf(elementType);
  constexpr int64_t kUnroll = 4;
  const bool isShared = team && !team->rowSizes.empty() && extents == ArrayRef(team->rowSizes) && lanes;
  // A team takes elements of several dims one after another, as if they were one.
  const bool isFlat = team && lanes && !isShared && extents.size() > 1;
  const int64_t flatLanes = prim::getConstantSize(extents.back()).value_or(1) % width() == 0 ? width() : 1;
  const bool isVector = lanes && !(isShared && team->shares[0].at.back().isUniform()) && !(isFlat && flatLanes == 1);
  auto merge = [&](Value x, Value y) { return combine(kind, accumulator, x, y, losesNan); };
  std::function<SmallVector<Value>(unsigned, SmallVector<Index>, SmallVector<Value>)> nest =
      [&](unsigned dim, SmallVector<Index> at, SmallVector<Value> acc) -> SmallVector<Value> {
    if (dim == extents.size()) {
      Value value = toAccumulator(element(at));
      if (isa<VectorType>(acc[0].getType()))
        value = broadcast(value);
      acc[0] = merge(acc[0], value);
      return acc;
    }
    if (isShared) {
      for (auto [number, share] : llvm::enumerate(team->shares)) {
        Value value = toAccumulator(element(share.at)), &sum = acc[number % kUnroll];
        if (isa<VectorType>(sum.getType()))
          value = broadcast(value);
        if (share.isOwn) {
          const Value none = isa<VectorType>(value.getType()) ? broadcast(start) : start;
          value = arith::SelectOp::create(b, location, share.isOwn, value, none);
        }
        sum = merge(sum, value);
      }
      return acc;
    }
    if (isFlat)
      return loop(
          mul(team->member, i64(flatLanes)), sizeProduct(extents), flatLanes * team->size, acc,
          [&](Index iv, ValueRange carried) {
            const SmallVector<Index> inner = delinearize(flatLanes > 1 ? contiguous(iv) : iv, extents);
            const Value value = toAccumulator(element(inner));
            SmallVector<Value> next = llvm::to_vector(carried);
            next[0] = merge(carried[0], isVector ? broadcast(value) : value);
            return next;
          },
          flatLanes);
    Value extent = size(extents[dim]);
    if (!lanes || dim + 1 != extents.size()) {
      std::optional<int64_t> within = prim::getConstantSize(prim::product(b.getContext(), extents.drop_front(dim + 1)));
      if (within && lanes)
        within = llvm::divideCeil(*within, width() * kUnroll);
      return reduceLoop(kind, accumulator, i64(0), extent, 1, acc, within, [&](Index iv, ValueRange carried) {
        SmallVector<Index> inner = at;
        inner.push_back(iv);
        return nest(dim + 1, inner, llvm::to_vector(carried));
      });
    }
    if (team)
      return teamLoop(extent, acc, [&](const Index &lane, ValueRange carried) {
        SmallVector<Index> inner = at;
        inner.push_back(lane);
        Value value = broadcast(toAccumulator(element(inner)));
        if (const Value on = mask())
          value = arith::SelectOp::create(b, location, on, value, broadcast(neutral(kind, elementType)));
        SmallVector<Value> next = llvm::to_vector(carried);
        next[0] = merge(carried[0], value);
        return next;
      });
    // Innermost, vectorised: blocks of kUnroll vectors with an accumulator each, then single masked vectors.
    int64_t w = width(), block = w * kUnroll;
    Value blocks = mul(divUnsigned(extent, i64(block)), i64(block));
    auto constantBlocks = constantOf(blocks);
    if (!constantBlocks || *constantBlocks > 0)
      acc = reduceLoop(kind, accumulator, i64(0), blocks, block, acc, 1, [&](Index iv, ValueRange carried) {
        scopes.back().mask = {};
        SmallVector<Value> next;
        for (int64_t u = 0; u < kUnroll; ++u) {
          SmallVector<Index> inner = at;
          inner.push_back(contiguous(addIndex(iv, constant(u * w))));
          next.push_back(merge(carried[u], broadcast(toAccumulator(element(inner)))));
        }
        return next;
      });
    if (multipleOf(extent) % block == 0)
      return acc;
    const bool isWhole = multipleOf(extent) % w == 0;
    return loop(
        blocks, extent, w, acc,
        [&](Index iv, ValueRange carried) {
          const Value on = isWhole ? Value() : tailMask(*this, sub(extent, iv.base));
          scopes.back().mask = on;
          SmallVector<Index> inner = at;
          inner.push_back(contiguous(iv));
          Value value = broadcast(toAccumulator(element(inner)));
          if (on)
            value = arith::SelectOp::create(b, location, on, value, broadcast(start));
          SmallVector<Value> next = llvm::to_vector(carried);
          next[0] = merge(carried[0], value);
          return next;
        },
        w);
  };
  SmallVector<Value> acc;
  if (lanes)
    acc.assign(kUnroll, isVector ? broadcast(start) : start);
  else
    acc.push_back(start);
  SmallVector<Value> result = nest(0, {}, acc);
  Value total = result[0];
  if (lanes) {
    total = merge(merge(result[0], result[1]), merge(result[2], result[3]));
    if (isVector)
      total = reduceLanes(kind, accumulator, total, losesNan);
    if (team)
      total = team->across(kind, accumulator, total);
  }
  return fromAccumulator(total, elementType);
}

//===--- ops ------------------------------------------------------------------------------------------------------===//

/// Whether a NaN that the largest element of a row loses shows all the same: whatever the region yields of it is made
/// with the row's sum of e^(x - largest), which is NaN then. Softmax and its logarithm.
static bool showsNan(prim::ReduceOp largest) {
  if (largest.getKind() != prim::ReduceKind::Max)
    return false;
  const SmallVector<AffineExpr> sizes = prim::getSizes(largest.getOperand());
  SmallVector<int64_t> kept;
  for (int64_t dim = 0, rank = int64_t(sizes.size()); dim < rank; ++dim)
    if (!llvm::is_contained(largest.getDims(), dim))
      kept.push_back(dim);
  Block &block = *largest->getBlock();
  // What is made of the largest element; of it, the differences from it, their powers, and all that is NaN everywhere
  // in a row that has one.
  llvm::SmallDenseSet<Value> dependent{largest.getResult()}, spread{largest.getResult()}, differences, powers, poisoned;
  for (Operation &op : llvm::make_range(std::next(largest->getIterator()), block.end())) {
    auto isOf = [&](const llvm::SmallDenseSet<Value> &set) {
      return llvm::any_of(op.getOperands(), [&](Value operand) { return set.contains(operand); });
    };
    if (!isOf(dependent))
      continue;
    if (op.hasTrait<OpTrait::IsTerminator>())
      return llvm::all_of(op.getOperands(),
                          [&](Value value) { return !dependent.contains(value) || poisoned.contains(value); });
    if (op.getNumResults() != 1)
      return false;
    const Value result = op.getResult(0);
    dependent.insert(result);
    auto reduce = dyn_cast<prim::ReduceOp>(op);
    // Of one element for each row: to the row's own elements, not to a column's.
    auto broadcast = dyn_cast<prim::BroadcastOp>(op);
    const bool isSpread = broadcast && broadcast.getDims() == ArrayRef(kept) && prim::getSizes(result) == sizes;
    if (isSpread && isOf(spread))
      spread.insert(result);
    else if (auto sub = dyn_cast<prim::SubOp>(op);
             sub && sub.getLhs() == largest.getOperand() && spread.contains(sub.getRhs()))
      differences.insert(result);
    else if (isa<prim::ExpOp>(op) && isOf(differences))
      powers.insert(result);
    else if (reduce && isOf(powers) && reduce.getKind() == prim::ReduceKind::Sum &&
             reduce.getDims() == largest.getDims())
      poisoned.insert(result);
    else if ((isSpread ||
              isa<prim::AddOp, prim::SubOp, prim::MulOp, prim::DivOp, prim::NegOp, prim::LogOp, prim::ExpOp,
                  prim::ReciprocalOp>(op) ||
              (isa<prim::ConvertOp>(op) && isa<FloatType>(getElementTypeOrSelf(result)))) &&
             isOf(poisoned))
      poisoned.insert(result);
  }
  return false;
}

/// Size of the last dim, if it is what `op` reduces, is short, and the lanes of `at` lie along the dim before it, whole
/// vectors of which are valid; else 0.
static int64_t shortRowOf(Emitter &e, prim::ReduceOp op, ArrayRef<Index> at) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(op.getOperand());
  const std::optional<int64_t> part = prim::getConstantSize(sizes.back());
  const bool isLast = op.getDims() == ArrayRef<int64_t>{int64_t(sizes.size()) - 1};
  if (!isLast || !part || *part < 2 || !at.back().isContiguous() || at.back().block < e.width() ||
      anyLanes(at.drop_back()) || e.mask())
    return 0;
  return *part;
}

// The rows of all lanes lie one after another: `part` vectors hold them, and what is made of the elements elsewhere is
// made of the same vectors. Each lane then takes its row's elements from these.
static Value emitShortRows(Emitter &e, prim::ReduceOp op, ArrayRef<Index> at, int64_t part, bool losesNan) {
  OpBuilder &b = e.builder();
  const Type element = elementOf(op.getResult()), accumulator = Emitter::accumulatorOf(element);
  Index first = at.back();
  first.step = 0;
  SmallVector<Value> vectors;
  for (int64_t number = 0; number < part; ++number) {
    SmallVector<Index> position(at.drop_back());
    const auto [row, column] = e.partOfRows(first, part, number);
    position.append({row, column});
    vectors.push_back(e.broadcast(e.toAccumulator(e.emit(op.getOperand(), position))));
  }
  Value result;
  for (int64_t i = 0; i < part; ++i) {
    Value elements;
    for (int64_t number = 0; number < part; ++number) {
      SmallVector<int64_t> order;
      bool isRead = false;
      for (int64_t lane = 0; lane < e.width(); ++lane) {
        const int64_t from = lane * part + i - number * e.width();
        const bool isHere = from >= 0 && from < e.width();
        isRead |= isHere;
        order.push_back(elements ? (isHere ? e.width() + from : lane) : (isHere ? from : 0));
      }
      if (isRead)
        elements = vector::ShuffleOp::create(b, e.loc(), elements ? elements : vectors[number], vectors[number], order);
    }
    result = result ? e.combine(op.getKind(), accumulator, result, elements, losesNan) : elements;
  }
  return e.fromAccumulator(result, element);
}

static Value emitReduce(Emitter &e, prim::ReduceOp op, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  auto in = prim::getSizes(op.getOperand());
  SmallVector<AffineExpr> extents;
  for (int64_t dim : op.getDims())
    extents.push_back(in[dim]);
  Type element = elementOf(op.getResult());
  auto position = [&](ArrayRef<Index> reduced) {
    SmallVector<Index> full(in.size());
    unsigned next = 0, kept = 0;
    for (size_t i = 0; i < in.size(); ++i)
      full[i] = llvm::is_contained(op.getDims(), int64_t(i)) ? reduced[next++] : at[kept++];
    return full;
  };
  const bool lanesOutside = anyLanes(at), losesNan = showsNan(op);
  if (!lanesOutside && !extents.empty())
    return e.emitReduction(
        op.getKind(), element, extents, /*lanes=*/true,
        [&](ArrayRef<Index> reduced) { return e.emit(op.getOperand(), position(reduced)); }, losesNan);
  if (const int64_t part = shortRowOf(e, op, at))
    return emitShortRows(e, op, at, part, losesNan);
  // Lanes lie along a kept dim: one accumulator vector, plain loops over the reduced dims.
  const Type accumulator = Emitter::accumulatorOf(element);
  Value start = e.neutral(op.getKind(), element);
  if (lanesOutside)
    start = e.broadcast(start);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> reduced,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      Value value = e.emit(op.getOperand(), position(reduced));
      if (lanesOutside)
        value = e.broadcast(value);
      return e.combine(op.getKind(), accumulator, acc, e.toAccumulator(value), losesNan);
    }
    const std::optional<int64_t> within =
        prim::getConstantSize(prim::product(b.getContext(), ArrayRef(extents).drop_front(dim + 1)));
    return e.reduceLoop(op.getKind(), accumulator, e.i64(0), e.size(extents[dim]), 1, ValueRange{acc}, within,
                        [&](Index iv, ValueRange carried) {
                          SmallVector<Index> inner = reduced;
                          inner.push_back(iv);
                          return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
                        })[0];
  };
  return e.fromAccumulator(nest(0, {}, start), element);
}

static Value emitArgReduce(Emitter &e, prim::ArgReduceOp op, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  auto in = prim::getSizes(op.getOperand());
  unsigned axis = op.getAxis();
  Type element = elementOf(op.getOperand());
  const bool lanesOutside = anyLanes(at), isMax = op.getKind() == prim::ReduceKind::Max, isLast = op.getLastIndex();
  // Lanes along what is kept; else along the axis if it is the last, where each lane has a best element of its own.
  const bool lanesInside = !lanesOutside && axis + 1 == in.size() && e.argReduceLanes;
  // A team shares the axis out, and then compares what its members found.
  const bool isOfTeam = lanesInside && e.team,
             isShared = isOfTeam && ArrayRef(e.team->rowSizes) == ArrayRef(in).slice(axis, 1);
  const bool lanes = lanesOutside || (lanesInside && !(isShared && e.team->shares[0].at.back().isUniform()));
  auto shape = [&](Value value) { return lanes ? e.broadcast(value) : value; };
  auto position = [&](const Index &index) {
    SmallVector<Index> full(at.begin(), at.end());
    full.insert(full.begin() + axis, index);
    return full;
  };
  auto isNaN = [&](Value v) { return arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::UNO, v, v); };
  auto isNot = [&](Value v) {
    auto type = v.getType();
    TypedAttr yes = isa<VectorType>(type) ? TypedAttr(DenseElementsAttr::get(cast<VectorType>(type), true))
                                          : TypedAttr(b.getBoolAttr(true));
    return arith::XOrIOp::create(b, e.loc(), v, arith::ConstantOp::create(b, e.loc(), yes));
  };
  auto stepWhere = [&](const Index &index, ValueRange carried, Value on) {
    Value value = e.toAccumulator(shape(e.emit(op.getOperand(), position(index))));
    Value better;
    if (isa<FloatType>(element)) {
      // An unordered comparison also replaces by a NaN; a NaN held stays unless the last index is wanted.
      auto kind = isLast ? (isMax ? arith::CmpFPredicate::UGE : arith::CmpFPredicate::ULE)
                         : (isMax ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT);
      better = arith::CmpFOp::create(b, e.loc(), kind, value, carried[0]);
      Value keep = isNaN(carried[0]);
      if (isLast)
        keep = arith::AndIOp::create(b, e.loc(), keep, isNot(isNaN(value)));
      better = arith::AndIOp::create(b, e.loc(), better, isNot(keep));
    } else {
      bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
      using P = arith::CmpIPredicate;
      P kind = isLast ? (isMax ? (isUnsigned ? P::uge : P::sge) : (isUnsigned ? P::ule : P::sle))
                      : (isMax ? (isUnsigned ? P::ugt : P::sgt) : (isUnsigned ? P::ult : P::slt));
      better = arith::CmpIOp::create(b, e.loc(), kind, value, carried[0]);
    }
    if (on)
      better = arith::AndIOp::create(b, e.loc(), better, shape(on));
    Value best = arith::SelectOp::create(b, e.loc(), better, value, carried[0]);
    Value where = arith::SelectOp::create(b, e.loc(), better, shape(e.materialize(index)), carried[1]);
    return SmallVector<Value>{best, where};
  };
  auto step = [&](const Index &index, ValueRange carried) {
    return stepWhere(index, carried, lanesInside ? e.mask() : Value());
  };
  // Every lane begins with the first element.
  Value first = e.toAccumulator(shape(e.emit(op.getOperand(), position(e.constant(0)))));
  SmallVector<Value> start{first, shape(e.i64(0))};
  if (!lanesInside)
    return e.loop(e.i64(1), e.size(in[axis]), 1, start, step)[1];
  SmallVector<Value> best = start;
  if (isShared)
    for (const Emitter::Team::Share &share : e.team->shares)
      best = stepWhere(share.at.back(), best, share.isOwn);
  else if (isOfTeam)
    best = e.teamLoop(e.size(in[axis]), start, step);
  else
    best = e.laneLoop(e.size(in[axis]), prim::getConstantSize(in[axis]), start, step);
  auto combineAll = [&](prim::ReduceKind kind, Type type, Value value) {
    if (lanes)
      value = e.reduceLanes(kind, type, value);
    return isOfTeam ? e.team->across(kind, type, value) : value;
  };
  // Of all that hold the best, the one with the first (last) position.
  const Value top = shape(combineAll(op.getKind(), Emitter::accumulatorOf(element), best[0]));
  Value hit = isa<FloatType>(element)
                  ? Value(arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::UEQ, best[0], top))
                  : arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, best[0], top);
  if (isa<FloatType>(element)) // a NaN is the best: not the numbers beside it
    hit = arith::AndIOp::create(
        b, e.loc(), hit, arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, isNaN(best[0]), isNaN(top)));
  const prim::ReduceKind choice = isLast ? prim::ReduceKind::Max : prim::ReduceKind::Min;
  const Value none = shape(e.neutral(choice, b.getI64Type()));
  return combineAll(choice, b.getI64Type(), arith::SelectOp::create(b, e.loc(), hit, best[1], none));
}

void tc::codegen::addReductionEmissions(EmissionRegistry &registry) {
  registry.add<prim::ReduceOp, emitReduce>();
  registry.add<prim::ArgReduceOp, emitArgReduce>();
}
