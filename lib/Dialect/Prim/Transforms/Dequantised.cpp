//===- Dequantised.cpp - tensors that are bytes less a zero point, times a scale ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dequantised.h"

#include "llvm/ADT/SmallPtrSet.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

bool tc::prim::isByte(Value v) {
  Type type = PrimBuilder::elementOf(v);
  return type.isSignlessInteger(8) || type.isUnsignedInteger(8);
}

bool tc::prim::isMadeOfConstants(Value v) {
  constexpr size_t kMostOps = 64;
  SmallVector<Value> work{v};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getNumRegions() || seen.size() > kMostOps ||
        (op->getNumOperands() == 0 && !isa<prim::ConstantOp, SplatOp>(op)))
      return false;
    if (seen.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
  return true;
}

//===--- parameters -----------------------------------------------------------------------------------------------===//

Value Parameter::flat(PrimBuilder &b, Type type) const {
  if (number)
    return b.scalar(type, *number);
  Sizes sizes;
  if (dim >= 0)
    sizes.push_back(product(b.getContext(), getSizes(value)));
  return b.convert(b.reshape(value, sizes), type);
}

Value Parameter::spread(PrimBuilder &b, Type type, SizesRef sizes) const {
  if (number)
    return b.splat(type, sizes, *number);
  return b.broadcastInDims(flat(b, type), sizes, dim < 0 ? ArrayRef<int64_t>() : ArrayRef(dim));
}

bool Parameter::isLike(const Parameter &other) const {
  return number ? number == other.number : !other.number && value == other.value && dim == other.dim;
}

std::optional<Parameter> tc::prim::traceParameter(Value v) {
  auto skipWidening = [](Value x) {
    auto bits = [](Value y) { return PrimBuilder::elementOf(y).getIntOrFloatBitWidth(); };
    for (auto op = x.getDefiningOp<ConvertOp>(); op && bits(op.getOperand()) < bits(x);
         op = x.getDefiningOp<ConvertOp>())
      x = op.getOperand();
    return x;
  };
  v = skipWidening(v);
  if (auto number = getSplatValue(v))
    return Parameter{number, {}, -1};
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return std::nullopt;
  Parameter parameter;
  Sizes full = getSizes(v);
  for (auto [size, dim] : llvm::zip_equal(getSizes(broadcast.getOperand()), broadcast.getDims())) {
    if (getConstantSize(size) == 1)
      continue;
    if (parameter.dim >= 0 || size != full[dim])
      return std::nullopt;
    parameter.dim = dim;
  }
  parameter.value = skipWidening(broadcast.getOperand());
  return parameter;
}

//===--- moves ----------------------------------------------------------------------------------------------------===//

bool tc::prim::isMove(Operation *op) { return isa_and_nonnull<TransposeOp, ReshapeOp, SliceOp, BroadcastOp>(op); }

/// The dim of the result of the move `op` that dim `dim` of its operand becomes, whole and in order; -1 if none.
static int64_t moveDim(Operation *op, int64_t dim) {
  Sizes from = getSizes(op->getOperand(0)), to = getSizes(op->getResult(0));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return llvm::find(transpose.getPermutation(), dim) - transpose.getPermutation().begin();
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return broadcast.getDims()[dim];
  if (auto slice = dyn_cast<SliceOp>(op))
    return from[dim] == to[dim] && slice.getSteps()[dim] == 1 ? dim : -1;
  AffineExpr before = product(op->getContext(), SizesRef(from).take_front(dim));
  for (int64_t i = 0, e = to.size(); i < e; ++i)
    if (to[i] == from[dim] && product(op->getContext(), SizesRef(to).take_front(i)) == before)
      return i;
  return -1;
}

Value tc::prim::emitMove(PrimBuilder &b, Operation *op, Value v) {
  Sizes sizes = getSizes(op->getResult(0));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return b.transpose(v, transpose.getPermutation());
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return b.broadcastInDims(v, sizes, broadcast.getDims());
  if (auto slice = dyn_cast<SliceOp>(op))
    return SliceOp::create(b, makeType(b.elementOf(v), sizes), v, slice.getStarts(), slice.getSteps());
  return b.reshape(v, sizes);
}

Value tc::prim::emitMoves(PrimBuilder &b, ArrayRef<Operation *> moves, Value v) {
  for (Operation *op : llvm::reverse(moves))
    v = emitMove(b, op, v);
  return v;
}

//===--- dequantised tensors --------------------------------------------------------------------------------------===//

bool Dequantised::isLike(const Dequantised &other) const {
  return zero.isLike(other.zero) && scale.isLike(other.scale) &&
         PrimBuilder::elementOf(source) == PrimBuilder::elementOf(other.source);
}

void Dequantised::materialise(PrimBuilder &b) { bytes = emitMoves(b, moves, source); }

Value Dequantised::centred(PrimBuilder &b) const {
  Value wide = b.convert(bytes, b.getI32Type());
  return zero.number == 0.0 ? wide : b.sub(wide, zero.spread(b, b.getI32Type(), getSizes(bytes)));
}

Value Dequantised::emit(PrimBuilder &b) const {
  Value x = b.convert(centred(b), b.getF32Type());
  return b.mul(x, scale.spread(b, b.getF32Type(), getSizes(bytes)));
}

Value tc::prim::walkMoves(Value v, SmallVectorImpl<Operation *> &moves) {
  while (isMove(v.getDefiningOp())) {
    moves.push_back(v.getDefiningOp());
    v = moves.back()->getOperand(0);
  }
  return v;
}

bool tc::prim::moveParameter(Parameter &parameter, ArrayRef<Operation *> moves) {
  for (Operation *op : llvm::reverse(moves))
    if (parameter.dim >= 0 && (parameter.dim = moveDim(op, parameter.dim)) < 0)
      return false;
  return true;
}

std::optional<Dequantised> tc::prim::traceCentred(Value v) {
  Dequantised found;
  found.scale.number = 1;
  found.zero.number = 0;
  v = walkMoves(v, found.moves);
  if (auto sub = v.getDefiningOp<SubOp>()) {
    std::optional<Parameter> zero = traceParameter(sub.getRhs());
    if (!zero || !moveParameter(*zero, found.moves))
      return std::nullopt;
    found.zero = *zero;
    v = walkMoves(sub.getLhs(), found.moves);
  }
  auto widen = v.getDefiningOp<ConvertOp>();
  if (!widen || !PrimBuilder::elementOf(v).isSignlessInteger(32) || !isByte(widen.getOperand()))
    return std::nullopt;
  found.source = widen.getOperand();
  // A zero point is of the type of the bytes.
  if (found.zero.value ? PrimBuilder::elementOf(found.zero.value) != PrimBuilder::elementOf(found.source)
                       : !(std::abs(*found.zero.number) <= 255))
    return std::nullopt;
  return found;
}

std::optional<Dequantised> tc::prim::traceDequantised(Value v) {
  if (!PrimBuilder::elementOf(v).isF32())
    return std::nullopt;
  SmallVector<Operation *> moves;
  v = walkMoves(v, moves);
  auto mul = v.getDefiningOp<MulOp>();
  if (!mul || !isMadeOfConstants(mul.getRhs()))
    return std::nullopt;
  std::optional<Parameter> scale = traceParameter(mul.getRhs());
  if (!scale || (scale->number && !std::isfinite(*scale->number)) || !moveParameter(*scale, moves))
    return std::nullopt;
  v = walkMoves(mul.getLhs(), moves);
  auto toFloat = v.getDefiningOp<ConvertOp>();
  std::optional<Dequantised> found = toFloat ? traceCentred(toFloat.getOperand()) : std::nullopt;
  if (!found || !moveParameter(found->zero, moves))
    return std::nullopt;
  found->scale = *scale;
  moves.append(found->moves);
  found->moves = std::move(moves);
  return found;
}

//===--- convolutions ---------------------------------------------------------------------------------------------===//

Value tc::prim::emitZeroPads(PrimBuilder &b, Value input, const Parameter &zero, SmallVectorImpl<int64_t> &low,
                             SmallVectorImpl<int64_t> &high) {
  auto isNone = [](int64_t pad) { return pad == 0; };
  if (zero.number == 0.0 || (llvm::all_of(low, isNone) && llvm::all_of(high, isNone)))
    return input;
  Sizes sizes = getSizes(input), starts(sizes.size(), b.size(0));
  for (size_t i = 0; i < low.size(); ++i) {
    starts[i + 1] = b.size(low[i]);
    sizes[i + 1] = simplifySize(sizes[i + 1] + low[i] + high[i]);
    low[i] = high[i] = 0;
  }
  return b.pad(input, zero.flat(b, b.elementOf(input)), starts, sizes);
}

bool tc::prim::isExactDepthwise(ConvOp op) {
  Sizes filter = getSizes(op.getFilter());
  auto taps = getConstantSize(product(op.getContext(), SizesRef(filter).drop_back()));
  return op.getGroups() > 1 && getConstantSize(filter[filter.size() - 2]) == 1 &&
         getConstantSize(filter.back()) == int64_t(op.getGroups()) && taps && *taps < (1 << 24) / (255 * 255);
}

Value tc::prim::emitExactDepthwise(PrimBuilder &b, ConvOp op, const Dequantised &input, const Dequantised &filter) {
  const Type f32 = b.getF32Type();
  SmallVector<int64_t> low(op.getPadLow()), high(op.getPadHigh());
  Value x = emitZeroPads(b, input.bytes, input.zero, low, high), w = b.convert(filter.centred(b), f32);
  Value sums = ConvOp::create(b, b.convert(x, f32), w, op.getStrides(), op.getDilations(), low, high, op.getGroups());
  if (input.zero.number == 0.0)
    return sums;
  Sizes sizes = getSizes(sums);
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size() - 1));
  Value weights = b.reduce(ReduceKind::Sum, w, all);
  Value share = b.mul(weights, input.zero.spread(b, f32, getSizes(weights)));
  return b.sub(sums, b.broadcastInDims(share, sizes, {int64_t(sizes.size()) - 1}));
}
