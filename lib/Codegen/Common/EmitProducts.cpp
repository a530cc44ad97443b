//===- EmitProducts.cpp - contractions and windows, element by element: any type, any layout ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emission.h"
#include "Common/EmitterHelpers.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {
/// Type in which products of `element` accumulate, as a prim element type.
Type accumulatorType(Type element, Type result) {
  MLIRContext *context = element.getContext();
  if (isNarrowFloat(element))
    return Float32Type::get(context);
  if (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() < 32)
    return isa<FloatType>(result) ? Type(IntegerType::get(context, 32)) : result;
  return element;
}
} // namespace

/// `value`, of `element`s, as a number of the type that products accumulate in.
static Value widen(Emitter &e, Value value, Type element, Type accumulator) {
  OpBuilder &b = e.builder();
  const Type type = Emitter::valueType(accumulator);
  const Type target = isa<VectorType>(value.getType()) ? Type(e.vectorOf(type)) : type;
  if (value.getType() == target)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, e.loc(), target, value);
  if (element.isUnsignedInteger())
    return arith::ExtUIOp::create(b, e.loc(), target, value);
  return arith::ExtSIOp::create(b, e.loc(), target, value);
}

static Value emitDot(Emitter &e, prim::DotGeneralOp op, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  auto lhsSizes = prim::getSizes(op.getLhs()), rhsSizes = prim::getSizes(op.getRhs());
  SmallVector<AffineExpr> extents;
  for (int64_t dim : op.getLhsContract())
    extents.push_back(lhsSizes[dim]);
  unsigned batch = op.getLhsBatch().size();
  unsigned lhsFree = lhsSizes.size() - batch - op.getLhsContract().size();
  auto position = [&](unsigned rank, ArrayRef<int64_t> batchDims, ArrayRef<int64_t> contractDims, unsigned freeFrom,
                      ArrayRef<Index> reduced) {
    SmallVector<Index> full(rank);
    unsigned free = freeFrom;
    for (unsigned i = 0; i < rank; ++i) {
      const auto *inBatch = llvm::find(batchDims, int64_t(i));
      const auto *inContract = llvm::find(contractDims, int64_t(i));
      if (inBatch != batchDims.end())
        full[i] = at[inBatch - batchDims.begin()];
      else if (inContract != contractDims.end())
        full[i] = reduced[inContract - contractDims.begin()];
      else
        full[i] = at[free++];
    }
    return full;
  };
  Type from = elementOf(op.getLhs()), to = elementOf(op.getResult());
  Type accumulator = accumulatorType(from, to);
  bool lanes = anyLanes(at);
  Value start = e.neutral(prim::ReduceKind::Sum, accumulator);
  if (lanes)
    start = e.broadcast(start);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> reduced,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      Value x = widen(
          e, e.emit(op.getLhs(), position(lhsSizes.size(), op.getLhsBatch(), op.getLhsContract(), batch, reduced)),
          from, accumulator);
      Value y = widen(e,
                      e.emit(op.getRhs(), position(rhsSizes.size(), op.getRhsBatch(), op.getRhsContract(),
                                                   batch + lhsFree, reduced)),
                      elementOf(op.getRhs()), accumulator);
      if (lanes) {
        x = e.broadcast(x);
        y = e.broadcast(y);
      }
      Value product = isa<FloatType>(accumulator) ? Value(arith::MulFOp::create(b, e.loc(), x, y))
                                                  : arith::MulIOp::create(b, e.loc(), x, y);
      return e.combine(prim::ReduceKind::Sum, accumulator, acc, product);
    }
    return e.loop(e.i64(0), e.size(extents[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = reduced;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  Value total = nest(0, {}, start);
  Type result = Emitter::valueType(to);
  if (getElementTypeOrSelf(total.getType()) != result) {
    Type target = lanes ? Type(e.vectorOf(result)) : result;
    if (isa<FloatType>(result) && isa<FloatType>(accumulator))
      return result.getIntOrFloatBitWidth() < 32 ? Value(arith::TruncFOp::create(b, e.loc(), target, total))
                                                 : arith::ExtFOp::create(b, e.loc(), target, total);
    if (isa<FloatType>(result))
      return arith::SIToFPOp::create(b, e.loc(), target, total);
    if (result.getIntOrFloatBitWidth() > Emitter::valueType(accumulator).getIntOrFloatBitWidth())
      return arith::ExtSIOp::create(b, e.loc(), target, total);
    return arith::TruncIOp::create(b, e.loc(), target, total);
  }
  return total;
}

/// Where tap `tap` of a window reads for the result at `at`, along one dim.
static Index tapPosition(Emitter &e, const Index &at, const Index &tap, int64_t stride, int64_t dilation,
                         int64_t padLow) {
  const Index start = e.mulIndex(at, e.i64(stride), stride);
  Index position = e.addIndex(start, e.addIndex(e.mulIndex(tap, e.i64(dilation), dilation), e.constant(-padLow)));
  position.mayPrecede = padLow > 0;
  return position;
}

/// `inside` (null: always) where `position` lies in a dim of `size`, too.
static Value andWithin(Emitter &e, Value inside, const Index &position, AffineExpr size) {
  OpBuilder &b = e.builder();
  Value p = e.materialize(position);
  Value limit = isa<VectorType>(p.getType()) ? e.broadcast(e.size(size)) : e.size(size);
  Value ok = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ult, p, limit);
  if (inside && inside.getType() != ok.getType()) {
    inside = e.broadcast(inside);
    ok = e.broadcast(ok);
  }
  return inside ? Value(arith::AndIOp::create(b, e.loc(), inside, ok)) : ok;
}

static Value emitConv(Emitter &e, prim::ConvOp op, ArrayRef<Index> at) {
  OpBuilder &b = e.builder();
  auto in = prim::getSizes(op.getInput()), filter = prim::getSizes(op.getFilter());
  unsigned spatial = op.getStrides().size();
  Type element = elementOf(op.getResult()), accumulator = accumulatorType(elementOf(op.getInput()), element);
  bool lanes = anyLanes(at);
  AffineExpr perGroup = filter[spatial];
  AffineExpr outPerGroup = prim::simplifySize(filter.back().floorDiv(op.getGroups()));
  // Channel of the group's first input: (o / outPerGroup) * perGroup.
  Index group = op.getGroups() == 1 ? e.constant(0) : e.divide(at.back(), outPerGroup).first;
  Index firstChannel = e.mulIndex(group, e.size(perGroup), prim::getConstantSize(perGroup));
  Value start = e.neutral(prim::ReduceKind::Sum, accumulator);
  if (lanes)
    start = e.broadcast(start);
  SmallVector<AffineExpr> extents(filter.begin(), filter.begin() + spatial);
  extents.push_back(perGroup);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> taps,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      SmallVector<Index> source{at[0]}, weight(taps.begin(), taps.end());
      Value inside;
      for (unsigned i = 0; i < spatial; ++i) {
        const Index position =
            tapPosition(e, at[i + 1], taps[i], op.getStrides()[i], op.getDilations()[i], op.getPadLow()[i]);
        if (op.getPadLow()[i] != 0 || op.getPadHigh()[i] != 0)
          inside = andWithin(e, inside, position, in[i + 1]);
        source.push_back(position);
      }
      source.push_back(e.addIndex(firstChannel, taps[spatial]));
      weight.push_back(at.back());
      auto product = [&]() -> Value {
        Value x = widen(e, e.emit(op.getInput(), source), elementOf(op.getInput()), accumulator),
              y = widen(e, e.emit(op.getFilter(), weight), elementOf(op.getFilter()), accumulator);
        if (lanes) {
          x = e.broadcast(x);
          y = e.broadcast(y);
        }
        return isa<FloatType>(accumulator) ? Value(arith::MulFOp::create(b, e.loc(), x, y))
                                           : arith::MulIOp::create(b, e.loc(), x, y);
      };
      Value zero = e.neutral(prim::ReduceKind::Sum, accumulator);
      Value value = inside ? e.emitGuarded(inside, accumulator, zero, lanes, product) : product();
      return e.combine(prim::ReduceKind::Sum, accumulator, acc, value);
    }
    if (auto known = prim::getConstantSize(extents[dim]); known && *known <= 7) { // small: unrolled
      for (int64_t i = 0; i < *known; ++i) {
        SmallVector<Index> inner = taps;
        inner.push_back(e.constant(i));
        acc = nest(dim + 1, inner, acc);
      }
      return acc;
    }
    return e.loop(e.i64(0), e.size(extents[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = taps;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  Value total = nest(0, {}, start);
  if (getElementTypeOrSelf(total.getType()) != Emitter::valueType(element))
    total = arith::TruncFOp::create(b, e.loc(), lanes ? Type(e.vectorOf(element)) : element, total);
  return total;
}

static Value emitWindow(Emitter &e, prim::WindowReduceOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getOperand());
  unsigned spatial = op.getWindow().size();
  Type element = elementOf(op.getResult());
  const bool lanes = anyLanes(at);
  const Type accumulator = Emitter::accumulatorOf(element);
  Value nothing = e.neutral(op.getKind(), element);
  Value start = lanes ? e.broadcast(nothing) : nothing;
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> taps,
                                                                       Value acc) -> Value {
    if (dim == spatial) {
      SmallVector<Index> source{at[0]};
      Value inside;
      for (unsigned i = 0; i < spatial; ++i) {
        const Index position =
            tapPosition(e, at[i + 1], taps[i], op.getStrides()[i], op.getDilations()[i], op.getPadLow()[i]);
        // A position can lie outside below (low pad) or above (high pad or ceil mode).
        AffineExpr last = (prim::getSizes(op.getResult())[i + 1] - 1) * op.getStrides()[i] +
                          (op.getWindow()[i] - 1) * op.getDilations()[i] - op.getPadLow()[i];
        auto slack = prim::getConstantSize(prim::simplifySize(in[i + 1] - 1 - last));
        if (op.getPadLow()[i] > 0 || !slack || *slack < 0)
          inside = andWithin(e, inside, position, in[i + 1]);
        source.push_back(position);
      }
      source.push_back(at.back());
      auto read = [&]() -> Value {
        Value value = e.emit(op.getOperand(), source);
        return e.toAccumulator(lanes ? e.broadcast(value) : value);
      };
      Value value = inside ? e.emitGuarded(inside, accumulator, nothing, lanes, read) : read();
      return e.combine(op.getKind(), accumulator, acc, value);
    }
    if (op.getWindow()[dim] <= 7) {
      for (int64_t i = 0; i < op.getWindow()[dim]; ++i) {
        SmallVector<Index> inner = taps;
        inner.push_back(e.constant(i));
        acc = nest(dim + 1, inner, acc);
      }
      return acc;
    }
    return e.loop(e.i64(0), e.i64(op.getWindow()[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = taps;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  return e.fromAccumulator(nest(0, {}, start), element);
}

void tc::codegen::addProductEmissions(EmissionRegistry &registry) {
  registry.add<prim::DotGeneralOp, emitDot>();
  registry.add<prim::ConvOp, emitConv>();
  registry.add<prim::WindowReduceOp, emitWindow>();
}
