//===- Recurrence.cpp - a recurrent layer as a loop ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/Recurrence.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// One step: new states from the input's part of the gates [B, G * H] and the states [B, H].
class Step {
public:
  Step(PrimBuilder &b, const Recurrence &layer, AffineExpr hidden) : b(b), layer(layer), H(hidden) {
    activations = layer.activations;
    if (!activations.empty())
      return;
    Activation sigmoid = [](PrimBuilder &b, Value v) { return b.unary<LogisticOp>(v); };
    Activation tanh = [](PrimBuilder &b, Value v) { return b.unary<TanhOp>(v); };
    if (layer.kind != RnnKind::RNN)
      activations.push_back(sigmoid);
    activations.push_back(tanh);
    if (layer.kind == RnnKind::LSTM)
      activations.push_back(tanh);
  }

  std::pair<Value, Value> run(Value gates, Value hidden, Value cell) {
    x = gates;
    switch (layer.kind) {
    case RnnKind::LSTM:
      return lstm(hidden, cell);
    case RnnKind::GRU:
      return {gru(hidden), cell};
    case RnnKind::RNN:
      return {activate(0, b.add(part(x, 0), project(hidden, 0))), cell};
    }
    return {};
  }

private:
  /// Columns of `count` gates.
  Value part(Value v, int64_t gate, int64_t count = 1) {
    return b.sliceDim(v, b.rankOf(v) - 1, simplifySize(H * gate), simplifySize(H * count));
  }
  Value along(Value row, Value like) { return b.broadcastTo(row, getSizes(like)); }
  /// Of `count` gates by one product, which is wide enough to be shared out.
  Value project(Value state, int64_t gate, int64_t count = 1) {
    Value product = DotGeneralOp::create(b, state, part(layer.recurrent, gate, count), ArrayRef<int64_t>{},
                                         ArrayRef<int64_t>{}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0});
    return b.add(product, along(part(layer.recurrentBias, gate, count), product));
  }
  Value activate(size_t i, Value v) {
    if (layer.clip > 0)
      v = b.binary<MinOp>(b.binary<MaxOp>(v, -layer.clip), layer.clip);
    return activations[i](b, v);
  }

  std::pair<Value, Value> lstm(Value hidden, Value cell) {
    const Value sums = b.add(x, project(hidden, 0, 4));
    auto sum = [&](int64_t gate) { return part(sums, gate); };
    auto peek = [&](Value state, int64_t i) { return b.mul(along(part(layer.peephole, i), state), state); };
    Value input = activate(0, b.add(sum(0), peek(cell, 0)));
    Value forget = layer.coupled ? b.sub(b.splatLike(input, 1), input) : activate(0, b.add(sum(2), peek(cell, 2)));
    Value next = b.add(b.mul(forget, cell), b.mul(input, activate(1, sum(3))));
    Value output = activate(0, b.add(sum(1), peek(next, 1)));
    return {b.mul(output, activate(2, next)), next};
  }

  Value gru(Value hidden) {
    const Value projected = project(hidden, 0, layer.linearBeforeReset ? 3 : 2);
    Value update = activate(0, b.add(part(x, 0), part(projected, 0)));
    Value reset = activate(0, b.add(part(x, 1), part(projected, 1)));
    Value state = layer.linearBeforeReset ? b.mul(reset, part(projected, 2)) : project(b.mul(reset, hidden), 2);
    Value candidate = activate(1, b.add(part(x, 2), state));
    return b.add(b.mul(b.sub(b.splatLike(update, 1), update), candidate), b.mul(update, hidden));
  }

  PrimBuilder &b;
  const Recurrence &layer;
  AffineExpr H;
  SmallVector<Activation> activations;
  Value x;
};

/// Whether no sequence is known to be shorter than `steps`.
bool isWhole(Value lengths, AffineExpr steps) {
  if (const std::optional<double> all = getSplatValue(lengths))
    if (const std::optional<int64_t> count = getConstantSize(steps))
      return *all >= double(*count);
  while (Operation *op = lengths.getDefiningOp()) {
    if (auto sizes = dyn_cast<SizesOp>(op))
      return llvm::all_of(sizes.getMap().getResults(), [&](AffineExpr size) { return size == steps; });
    if (!isa<BroadcastOp, ConvertOp, ReshapeOp>(op))
      return false;
    lengths = op->getOperand(0);
  }
  return false;
}

} // namespace

RecurrenceResults tc::emitRecurrence(PrimBuilder &b, const Recurrence &layer) {
  Type i64 = b.getI64Type(), type = b.elementOf(layer.gates);
  Sizes gates = getSizes(layer.gates), state = getSizes(layer.initialHidden), all{gates[0], state[0], state[1]};
  SmallVector<Value> inits{b.splat(type, all, 0), layer.initialHidden, layer.initialCell};
  SmallVector<Type> types(ValueRange(inits).getTypes());
  auto loop =
      prim::WhileOp::create(b, types, b.sizeValue(gates[0]), b.scalar(b.getI1Type(), 1), inits, ArrayRef<int64_t>{});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&loop.getBody());
    Value number = block->addArgument(RankedTensorType::get({}, i64), b.getLoc()), zero = b.scalar(i64, 0);
    for (Type carried : types)
      block->addArgument(carried, b.getLoc());
    Value outputs = block->getArgument(1), hidden = block->getArgument(2), cell = block->getArgument(3);
    Value t = layer.reverse ? b.sub(b.sizeValue(simplifySize(gates[0] - 1)), number) : number;
    Sizes one = gates;
    one[0] = b.size(1);
    Value slice = DynamicSliceOp::create(b, makeType(type, one), layer.gates, ValueRange{t, zero, zero});
    auto [nextHidden, nextCell] = Step(b, layer, state[1]).run(b.reshape(slice, {gates[1], gates[2]}), hidden, cell);
    Value output = nextHidden;
    if (!isWhole(layer.sequenceLengths, gates[0])) {
      // A sequence that is shorter keeps its state, and gives 0.
      Value lengths = b.convert(layer.sequenceLengths, i64);
      Value active = b.compare(CompareKind::LT, b.broadcastTo(t, getSizes(lengths)), lengths);
      active = b.broadcastInDims(active, state, {0});
      output = b.select(active, nextHidden, b.splatLike(nextHidden, 0));
      nextHidden = b.select(active, nextHidden, hidden);
      nextCell = b.select(active, nextCell, cell);
    }
    Value at = b.reshape(t, {b.size(1), b.size(1)});
    outputs = ScatterNDOp::create(b, outputs.getType(), outputs, at, b.unsqueeze(output, 0), ReduceKindAttr());
    prim::YieldOp::create(b, ValueRange{b.scalar(b.getI1Type(), 1), outputs, nextHidden, nextCell});
  }
  return {loop.getResult(0), loop.getResult(1), loop.getResult(2)};
}
