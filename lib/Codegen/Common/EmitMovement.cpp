//===- EmitMovement.cpp - values of ops that make or move elements ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emission.h"
#include "Common/EmitterHelpers.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

static Value emitSplat(Emitter &e, prim::SplatOp splat, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  const Type element = elementOf(splat.getResult());
  Attribute value = splat.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    value = IntegerAttr::get(Emitter::valueType(element), integer.getValue());
  return arith::ConstantOp::create(b, e.loc(), cast<TypedAttr>(value));
}

static Value emitConstant(Emitter &e, prim::ConstantOp constantOp, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  const Type element = elementOf(constantOp.getResult());
  const SmallVector<AffineExpr> sizes = prim::getSizes(constantOp.getResult());
  auto dense = dyn_cast<DenseElementsAttr>(constantOp.getValue());
  if (!dense)
    return e.fail("a constant inside a region must be a dense attribute", element);
  if (dense.isSplat() || dense.getNumElements() == 1) {
    Attribute value = *dense.value_begin<Attribute>();
    if (auto integer = dyn_cast<IntegerAttr>(value))
      value = IntegerAttr::get(Emitter::valueType(element), integer.getValue());
    return arith::ConstantOp::create(b, e.loc(), cast<TypedAttr>(value));
  }
  return e.load(e.constantTable(dense), element, sizes, at);
}

static Value emitIota(Emitter &e, prim::IotaOp iota, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  const Type element = elementOf(iota.getResult());
  Value position = e.materialize(at[iota.getAxis()]);
  Type type = Emitter::valueType(element);
  Type target = isa<VectorType>(position.getType()) ? Type(e.vectorOf(type)) : type;
  if (isa<FloatType>(type))
    return arith::SIToFPOp::create(b, e.loc(), target, position);
  if (type.getIntOrFloatBitWidth() == 64)
    return position;
  return arith::TruncIOp::create(b, e.loc(), target, position);
}

static Value emitSizes(Emitter &e, prim::SizesOp sizesOp, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  AffineMap map = sizesOp.getMap();
  if (at.empty() || map.getNumResults() == 1)
    return e.size(map.getResult(0));
  Value position = e.materialize(at[0]);
  bool isVector = isa<VectorType>(position.getType());
  Value result = isVector ? e.broadcast(e.size(map.getResult(0))) : e.size(map.getResult(0));
  for (unsigned i = 1; i < map.getNumResults(); ++i) {
    Value number = isVector ? e.broadcast(e.i64(i)) : e.i64(i);
    Value value = isVector ? e.broadcast(e.size(map.getResult(i))) : e.size(map.getResult(i));
    Value hit = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, position, number);
    result = arith::SelectOp::create(b, e.loc(), hit, value, result);
  }
  return result;
}

static Value emitReshape(Emitter &e, prim::ReshapeOp reshape, ArrayRef<Index> at) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(reshape.getResult());
  return e.emit(reshape.getOperand(), e.reshapeIndex(at, sizes, prim::getSizes(reshape.getOperand())));
}

static Value emitTranspose(Emitter &e, prim::TransposeOp transpose, ArrayRef<Index> at) {
  SmallVector<Index> inner(at.size());
  for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
    inner[dim] = at[i];
  return e.emit(transpose.getOperand(), inner);
}

static Value emitBroadcast(Emitter &e, prim::BroadcastOp broadcastOp, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  const SmallVector<AffineExpr> sizes = prim::getSizes(broadcastOp.getResult());
  SmallVector<Index> inner;
  for (auto [dim, expr] : llvm::zip_equal(broadcastOp.getDims(), prim::getSizes(broadcastOp.getOperand()))) {
    if (expr == sizes[dim]) {
      inner.push_back(at[dim]);
    } else if (prim::getConstantSize(expr) == 1) {
      inner.push_back(e.constant(0));
    } else if (prim::getConstantSize(expr)) {
      inner.push_back(at[dim]);
    } else { // decided at run time: factor 0 where the operand's size is 1
      Value runtime = e.size(expr);
      Value factor = e.atEntry([&]() -> Value {
        Value several = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ne, runtime, e.i64(1));
        return arith::ExtUIOp::create(b, e.loc(), b.getI64Type(), several);
      });
      inner.push_back(e.mulIndex(at[dim], factor, std::nullopt));
    }
  }
  return e.emit(broadcastOp.getOperand(), inner);
}

static Value emitSlice(Emitter &e, prim::SliceOp slice, ArrayRef<Index> at) {
  SmallVector<Index> inner;
  for (auto [i, index] : llvm::enumerate(at)) {
    AffineExpr start = slice.getStarts().getResult(i);
    int64_t step = slice.getSteps()[i];
    Index scaled = e.mulIndex(index, e.i64(step), step);
    Index offset;
    if (auto known = prim::getConstantSize(start))
      offset = e.constant(*known);
    else
      offset.base = e.size(start);
    inner.push_back(e.addIndex(scaled, offset));
  }
  return e.emit(slice.getOperand(), inner);
}

static Value emitDynamicSlice(Emitter &e, prim::DynamicSliceOp slice, ArrayRef<Index> at) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(slice.getResult());
  SmallVector<Index> inner;
  for (auto [i, index] : llvm::enumerate(at)) {
    Value start = e.emit(slice.getStarts()[i], {});
    AffineExpr room = prim::getSizes(slice.getOperand())[i] - sizes[i] + 1;
    inner.push_back(e.addIndex(index, e.dataIndex(slice.getStarts()[i], start, room, 0)));
  }
  return e.emit(slice.getOperand(), inner);
}

static Value emitGather(Emitter &e, prim::GatherOp gather, ArrayRef<Index> at) {
  unsigned axis = gather.getAxis(), rank = prim::getSizes(gather.getIndices()).size();
  SmallVector<Index> inner(at.begin(), at.begin() + axis);
  inner.push_back(e.gatheredIndex(gather.getIndices(), prim::getSizes(gather.getSource())[axis], at.slice(axis, rank)));
  inner.append(at.begin() + axis + rank, at.end());
  return e.emit(gather.getSource(), inner);
}

static Value emitGatherElements(Emitter &e, prim::GatherElementsOp gather, ArrayRef<Index> at) {
  unsigned axis = gather.getAxis();
  Value position = e.emit(gather.getIndices(), at);
  SmallVector<Index> inner(at.begin(), at.end());
  inner[axis] = e.dataIndex(gather.getIndices(), position, prim::getSizes(gather.getSource())[axis], e.depthOf(at));
  return e.emit(gather.getSource(), inner);
}

static Value emitGatherND(Emitter &e, prim::GatherNDOp gather, ArrayRef<Index> at) {
  auto of = prim::getSizes(gather.getIndices()), in = prim::getSizes(gather.getSource());
  unsigned outer = of.size() - 1, batch = gather.getBatchDims(), count = *prim::getConstantSize(of.back());
  SmallVector<Index> inner(at.begin(), at.begin() + batch);
  for (unsigned i = 0; i < count; ++i) {
    SmallVector<Index> position(at.begin(), at.begin() + outer);
    position.push_back(e.constant(i));
    Value number = e.emit(gather.getIndices(), position);
    inner.push_back(e.dataIndex(gather.getIndices(), number, in[batch + i], e.depthOf(position)));
  }
  inner.append(at.begin() + outer, at.end());
  return e.emit(gather.getSource(), inner);
}

static Value emitPad(Emitter &e, prim::PadOp op, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  auto in = prim::getSizes(op.getOperand()), out = prim::getSizes(op.getResult());
  Value otherwise = e.emit(op.getValue(), {});
  Value scalarCondition, laneCondition;
  SmallVector<Index> inner;
  for (auto [i, index] : llvm::enumerate(at)) {
    AffineExpr low = op.getLow().getResult(i);
    if (prim::getConstantSize(low) == 0 && in[i] == out[i]) {
      inner.push_back(index);
      continue;
    }
    Index offset;
    if (auto known = prim::getConstantSize(low))
      offset = e.constant(-*known);
    else
      offset.base = e.size(low * -1); // at the entry, as its depth says
    Index shifted = e.addIndex(index, offset);
    shifted.mayPrecede = true;
    inner.push_back(shifted);
    Value position = e.materialize(shifted);
    bool isVector = isa<VectorType>(position.getType());
    Value limit = isVector ? e.broadcast(e.size(in[i])) : e.size(in[i]);
    // Unsigned comparison: negative positions are huge.
    Value ok = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ult, position, limit);
    Value &condition = isVector ? laneCondition : scalarCondition;
    condition = condition ? Value(arith::AndIOp::create(b, e.loc(), condition, ok)) : ok;
  }
  Type element = elementOf(op.getResult());
  auto load = [&] { return e.emit(op.getOperand(), inner); };
  auto lanesGuarded = [&]() -> Value {
    return laneCondition ? e.emitGuarded(laneCondition, element, otherwise, true, load) : load();
  };
  if (scalarCondition)
    return e.emitGuarded(scalarCondition, element, otherwise, anyLanes(at), lanesGuarded);
  return lanesGuarded();
}

static Value emitConcat(Emitter &e, prim::ConcatOp op, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  unsigned axis = op.getAxis();
  Type element = elementOf(op.getResult());
  SmallVector<AffineExpr> starts;
  AffineExpr start = getAffineConstantExpr(0, b.getContext());
  for (Value input : op.getInputs()) {
    starts.push_back(start);
    start = prim::simplifySize(start + prim::getSizes(input)[axis]);
  }
  // A position that is known lies in a known input.
  IntegerAttr known;
  if (at[axis].isUniform() && matchPattern(at[axis].base, m_Constant(&known)))
    for (auto [input, begin] : llvm::zip_equal(op.getInputs(), starts)) {
      const std::optional<int64_t> from = prim::getConstantSize(begin),
                                   count = prim::getConstantSize(prim::getSizes(input)[axis]);
      if (!from || !count)
        break;
      if (known.getInt() >= *from + *count)
        continue;
      SmallVector<Index> inner(at.begin(), at.end());
      inner[axis] = e.constant(known.getInt() - *from);
      return e.emit(input, inner);
    }
  starts.push_back(start);
  const Value position = e.materialize(at[axis]);
  const bool isVector = isa<VectorType>(position.getType());
  auto read = [&](unsigned i) -> Value {
    SmallVector<Index> inner(at.begin(), at.end());
    Index offset;
    if (auto known = prim::getConstantSize(starts[i]))
      offset = e.constant(-*known);
    else
      offset.base = e.sub(e.i64(0), e.size(starts[i]));
    inner[axis] = e.addIndex(at[axis], offset);
    inner[axis].mayPrecede |= isVector;
    return e.emit(op.getInputs()[i], inner);
  };
  auto zero = [&]() -> Value {
    return arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(e.vectorOf(Emitter::valueType(element))));
  };
  // Which of a vector's positions lie in the inputs [first, last).
  auto isIn = [&](unsigned first, unsigned last) -> Value {
    Value begin = e.size(starts[first]), end = e.size(starts[last]);
    Value from = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sge, position, e.broadcast(begin));
    Value to = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, position, e.broadcast(end));
    return arith::AndIOp::create(b, e.loc(), from, to);
  };
  // A few inputs, from the last one to the first: value = position < end of input i ? input i : what follows.
  std::function<Value(unsigned, unsigned)> scan = [&](unsigned i, unsigned last) -> Value {
    if (i + 1 == last && !isVector)
      return read(i);
    if (isVector) {
      const Value hit = isIn(i, i + 1);
      const Value rest = i + 1 == last ? zero() : scan(i + 1, last);
      return e.emitGuarded(hit, element, rest, true, [&] { return read(i); });
    }
    Value hit = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, position, e.size(starts[i + 1]));
    return e.branch(hit, element, anyLanes(at), [&] { return read(i); }, [&] { return scan(i + 1, last); });
  };
  // Many: halves are searched, those of a vector where any of its positions lies.
  constexpr unsigned kFew = 8;
  std::function<Value(unsigned, unsigned)> search = [&](unsigned first, unsigned last) -> Value {
    if (last - first <= kFew)
      return scan(first, last);
    const unsigned middle = first + (last - first) / 2;
    if (!isVector) {
      Value before = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, position, e.size(starts[middle]));
      return e.branch(
          before, element, anyLanes(at), [&] { return search(first, middle); }, [&] { return search(middle, last); });
    }
    auto half = [&](unsigned from, unsigned to, Value otherwise) {
      const Value hit = isIn(from, to);
      const Value any = vector::ReductionOp::create(b, e.loc(), vector::CombiningKind::OR, hit);
      return e.branch(
          any, element, /*lanes=*/true,
          [&] { return e.emitGuarded(hit, element, otherwise, true, [&] { return search(from, to); }); },
          [&] { return otherwise; });
    };
    return half(first, middle, half(middle, last, zero()));
  };
  return search(0, op.getInputs().size());
}

static SmallVector<Index> forwardTranspose(Emitter &, prim::TransposeOp transpose, ArrayRef<Index> at) {
  return llvm::map_to_vector(transpose.getPermutation(), [&](int64_t dim) { return at[dim]; });
}

static SmallVector<Index> forwardReshape(Emitter &e, prim::ReshapeOp reshape, ArrayRef<Index> at) {
  return e.reshapeIndex(at, prim::getSizes(reshape.getOperand()), prim::getSizes(reshape.getResult()));
}

void tc::codegen::addMovementEmissions(EmissionRegistry &registry) {
  registry.add<prim::SplatOp, emitSplat>();
  registry.add<prim::ConstantOp, emitConstant>();
  registry.add<prim::IotaOp, emitIota>();
  registry.add<prim::SizesOp, emitSizes>();
  registry.add<prim::ReshapeOp, emitReshape, forwardReshape>();
  registry.add<prim::TransposeOp, emitTranspose, forwardTranspose>();
  registry.add<prim::BroadcastOp, emitBroadcast>();
  registry.add<prim::SliceOp, emitSlice>();
  registry.add<prim::DynamicSliceOp, emitDynamicSlice>();
  registry.add<prim::GatherOp, emitGather>();
  registry.add<prim::GatherElementsOp, emitGatherElements>();
  registry.add<prim::GatherNDOp, emitGatherND>();
  registry.add<prim::PadOp, emitPad>();
  registry.add<prim::ConcatOp, emitConcat>();
}
