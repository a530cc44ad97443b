//===- EmitProducts.cpp - contractions and windows, element by element: any type, any layout ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

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

Value Emitter::emitDot(prim::DotGeneralOp op, ArrayRef<Index> at) {
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
  auto widen = [&](Value value, Type element) -> Value {
    Type type = valueType(accumulator);
    Type target = isa<VectorType>(value.getType()) ? Type(vectorOf(type)) : type;
    if (value.getType() == target)
      return value;
    if (isa<FloatType>(type))
      return arith::ExtFOp::create(b, location, target, value);
    if (element.isUnsignedInteger())
      return arith::ExtUIOp::create(b, location, target, value);
    return arith::ExtSIOp::create(b, location, target, value);
  };
  Value start = neutral(prim::ReduceKind::Sum, accumulator);
  if (lanes)
    start = broadcast(start);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> reduced,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      Value x = widen(
          emit(op.getLhs(), position(lhsSizes.size(), op.getLhsBatch(), op.getLhsContract(), batch, reduced)), from);
      Value y = widen(
          emit(op.getRhs(), position(rhsSizes.size(), op.getRhsBatch(), op.getRhsContract(), batch + lhsFree, reduced)),
          elementOf(op.getRhs()));
      if (lanes) {
        x = broadcast(x);
        y = broadcast(y);
      }
      Value product = isa<FloatType>(accumulator) ? Value(arith::MulFOp::create(b, location, x, y))
                                                  : arith::MulIOp::create(b, location, x, y);
      return combine(prim::ReduceKind::Sum, accumulator, acc, product);
    }
    return loop(i64(0), size(extents[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = reduced;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  Value total = nest(0, {}, start);
  Type result = valueType(to);
  if (getElementTypeOrSelf(total.getType()) != result) {
    Type target = lanes ? Type(vectorOf(result)) : result;
    if (isa<FloatType>(result) && isa<FloatType>(accumulator))
      return result.getIntOrFloatBitWidth() < 32 ? Value(arith::TruncFOp::create(b, location, target, total))
                                                 : arith::ExtFOp::create(b, location, target, total);
    if (isa<FloatType>(result))
      return arith::SIToFPOp::create(b, location, target, total);
    if (result.getIntOrFloatBitWidth() > valueType(accumulator).getIntOrFloatBitWidth())
      return arith::ExtSIOp::create(b, location, target, total);
    return arith::TruncIOp::create(b, location, target, total);
  }
  return total;
}

Value Emitter::emitConv(prim::ConvOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getInput()), filter = prim::getSizes(op.getFilter());
  unsigned spatial = op.getStrides().size();
  Type element = elementOf(op.getResult()), accumulator = accumulatorType(elementOf(op.getInput()), element);
  bool lanes = anyLanes(at);
  AffineExpr perGroup = filter[spatial];
  AffineExpr outPerGroup = prim::simplifySize(filter.back().floorDiv(op.getGroups()));
  // Channel of the group's first input: (o / outPerGroup) * perGroup.
  Index group = op.getGroups() == 1 ? constant(0) : divide(at.back(), outPerGroup).first;
  Index firstChannel = mulIndex(group, size(perGroup), prim::getConstantSize(perGroup));
  Value start = neutral(prim::ReduceKind::Sum, accumulator);
  if (lanes)
    start = broadcast(start);
  auto widen = [&](Value value, Type from) -> Value {
    Type type = valueType(accumulator);
    Type target = isa<VectorType>(value.getType()) ? Type(vectorOf(type)) : type;
    if (value.getType() == target)
      return value;
    if (isa<FloatType>(type))
      return arith::ExtFOp::create(b, location, target, value);
    if (from.isUnsignedInteger())
      return arith::ExtUIOp::create(b, location, target, value);
    return arith::ExtSIOp::create(b, location, target, value);
  };
  SmallVector<AffineExpr> extents(filter.begin(), filter.begin() + spatial);
  extents.push_back(perGroup);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> taps,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      SmallVector<Index> source{at[0]}, weight(taps.begin(), taps.end());
      Value inside;
      for (unsigned i = 0; i < spatial; ++i) {
        Index position = addIndex(
            mulIndex(at[i + 1], i64(op.getStrides()[i]), op.getStrides()[i]),
            addIndex(mulIndex(taps[i], i64(op.getDilations()[i]), op.getDilations()[i]), constant(-op.getPadLow()[i])));
        position.mayPrecede = op.getPadLow()[i] > 0;
        if (op.getPadLow()[i] != 0 || op.getPadHigh()[i] != 0) {
          Value p = materialize(position);
          Value limit = isa<VectorType>(p.getType()) ? broadcast(size(in[i + 1])) : size(in[i + 1]);
          Value ok = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, p, limit);
          if (inside && inside.getType() != ok.getType()) {
            inside = broadcast(inside);
            ok = broadcast(ok);
          }
          inside = inside ? Value(arith::AndIOp::create(b, location, inside, ok)) : ok;
        }
        source.push_back(position);
      }
      source.push_back(addIndex(firstChannel, taps[spatial]));
      weight.push_back(at.back());
      auto product = [&]() -> Value {
        Value x = widen(emit(op.getInput(), source), elementOf(op.getInput())),
              y = widen(emit(op.getFilter(), weight), elementOf(op.getFilter()));
        if (lanes) {
          x = broadcast(x);
          y = broadcast(y);
        }
        return isa<FloatType>(accumulator) ? Value(arith::MulFOp::create(b, location, x, y))
                                           : arith::MulIOp::create(b, location, x, y);
      };
      Value zero = neutral(prim::ReduceKind::Sum, accumulator);
      Value value = inside ? emitGuarded(inside, accumulator, zero, lanes, product) : product();
      return combine(prim::ReduceKind::Sum, accumulator, acc, value);
    }
    if (auto known = prim::getConstantSize(extents[dim]); known && *known <= 7) { // small: unrolled
      for (int64_t i = 0; i < *known; ++i) {
        SmallVector<Index> inner = taps;
        inner.push_back(constant(i));
        acc = nest(dim + 1, inner, acc);
      }
      return acc;
    }
    return loop(i64(0), size(extents[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = taps;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  Value total = nest(0, {}, start);
  if (getElementTypeOrSelf(total.getType()) != valueType(element))
    total = arith::TruncFOp::create(b, location, lanes ? Type(vectorOf(element)) : element, total);
  return total;
}

Value Emitter::emitWindow(prim::WindowReduceOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getOperand());
  unsigned spatial = op.getWindow().size();
  Type element = elementOf(op.getResult());
  const bool lanes = anyLanes(at);
  const Type accumulator = accumulatorOf(element);
  Value nothing = neutral(op.getKind(), element);
  Value start = lanes ? broadcast(nothing) : nothing;
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> taps,
                                                                       Value acc) -> Value {
    if (dim == spatial) {
      SmallVector<Index> source{at[0]};
      Value inside;
      for (unsigned i = 0; i < spatial; ++i) {
        Index position = addIndex(
            mulIndex(at[i + 1], i64(op.getStrides()[i]), op.getStrides()[i]),
            addIndex(mulIndex(taps[i], i64(op.getDilations()[i]), op.getDilations()[i]), constant(-op.getPadLow()[i])));
        position.mayPrecede = op.getPadLow()[i] > 0;
        // A position can lie outside below (low pad) or above (high pad or ceil mode).
        AffineExpr last = (prim::getSizes(op.getResult())[i + 1] - 1) * op.getStrides()[i] +
                          (op.getWindow()[i] - 1) * op.getDilations()[i] - op.getPadLow()[i];
        auto slack = prim::getConstantSize(prim::simplifySize(in[i + 1] - 1 - last));
        if (op.getPadLow()[i] > 0 || !slack || *slack < 0) {
          Value p = materialize(position);
          Value limit = isa<VectorType>(p.getType()) ? broadcast(size(in[i + 1])) : size(in[i + 1]);
          Value ok = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, p, limit);
          if (inside && inside.getType() != ok.getType()) {
            inside = broadcast(inside);
            ok = broadcast(ok);
          }
          inside = inside ? Value(arith::AndIOp::create(b, location, inside, ok)) : ok;
        }
        source.push_back(position);
      }
      source.push_back(at.back());
      auto read = [&]() -> Value {
        Value value = emit(op.getOperand(), source);
        return toAccumulator(lanes ? broadcast(value) : value);
      };
      Value value = inside ? emitGuarded(inside, accumulator, nothing, lanes, read) : read();
      return combine(op.getKind(), accumulator, acc, value);
    }
    if (op.getWindow()[dim] <= 7) {
      for (int64_t i = 0; i < op.getWindow()[dim]; ++i) {
        SmallVector<Index> inner = taps;
        inner.push_back(constant(i));
        acc = nest(dim + 1, inner, acc);
      }
      return acc;
    }
    return loop(i64(0), i64(op.getWindow()[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = taps;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  return fromAccumulator(nest(0, {}, start), element);
}
