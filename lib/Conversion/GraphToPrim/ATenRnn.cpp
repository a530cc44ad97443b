//===- ATenRnn.cpp - recurrent layers and cells of ATen -----------------------------------------------------------===//
//
// A layer, in both directions, is ai.onnx's LSTM, GRU or RNN, whose gates stand in another order. Cells are written
// out. A packed sequence has the elements of all sequences of a batch, step by step, in a row, the longest sequence
// first, and says how many there are of each step: for a layer it is padded, and packed again.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml), and
// aten/src/ATen/native/RNN.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "Dropout.h"
#include "OpRegistry.h"
#include "Selection.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

enum class Cell { LSTM, GRU, Tanh, Relu };

/// Of PyTorch's gates (lstm: input, forget, cell, output; gru: reset, update, new) those that ai.onnx's operator has
/// first, second, ... (lstm: input, output, forget, cell; gru: update, reset, new).
ArrayRef<int64_t> gateOrder(Cell cell) {
  static const int64_t ofLSTM[] = {0, 3, 1, 2}, ofGRU[] = {1, 0, 2}, ofRNN[] = {0};
  return cell == Cell::LSTM ? ArrayRef(ofLSTM) : cell == Cell::GRU ? ArrayRef(ofGRU) : ArrayRef(ofRNN);
}

/// Blocks of `h` rows in another order.
Value reorder(PrimBuilder &b, Value rows, Cell cell, AffineExpr h) {
  if (gateOrder(cell).size() == 1)
    return rows;
  SmallVector<Value> parts;
  for (int64_t gate : gateOrder(cell))
    parts.push_back(b.sliceDim(rows, 0, simplifySize(h * gate), h));
  return b.concat(parts, 0);
}

// An LSTM whose state is projected, h = P m of m = o * tanh(c), has the gates W x + R h = W x + (R P) m: a layer on m,
// with the recurrent weights R P. The first step's R h, of a state that no m gives, comes from inputs of its own, which
// are h at that step and 0 at all others.
struct Projection {
  Value weight; ///< P [p, H]
  Value start;  ///< h [B, p] before the first step
  bool isReverse;
};

/// [T, B, p]: the state before the first step at that step.
Value startOf(PrimBuilder &b, Value x, const Projection &projected) {
  const AffineExpr steps = getSizes(x)[0];
  Sizes sizes{steps};
  llvm::append_range(sizes, getSizes(projected.start));
  Value wide = b.broadcastInDims(projected.start, sizes, {1, 2}), step = b.iota(b.getI64Type(), sizes, 0);
  Value at = b.broadcastTo(b.sizeValue(projected.isReverse ? simplifySize(steps - 1) : b.size(0)), sizes);
  return b.select(b.compare(CompareKind::EQ, step, at), wide, b.splatLike(wide, 0));
}

/// Weights for the inputs, then for the states of all directions, of which direction `d` reads its own.
Value besides(PrimBuilder &b, Value ofInput, Value ofState, int64_t d, int64_t directions) {
  SmallVector<Value> parts{ofInput};
  for (int64_t i = 0; i < directions; ++i)
    parts.push_back(i == d ? ofState : b.splatLike(ofState, 0));
  return b.concat(parts, 1);
}

/// What each direction gives, along `dim`, times its weight.
Value project(PrimBuilder &b, Value y, ArrayRef<Value> weights, int64_t dim) {
  SmallVector<Value> parts;
  for (auto [d, weight] : llvm::enumerate(weights)) {
    Value one = b.take(y, dim, int64_t(d));
    one = DotGeneralOp::create(b, one, weight, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                               ArrayRef<int64_t>{b.rankOf(one) - 1}, ArrayRef<int64_t>{1});
    parts.push_back(b.unsqueeze(one, dim));
  }
  return parts.size() == 1 ? parts[0] : Value(b.concat(parts, dim));
}

//===--- packed sequences -----------------------------------------------------------------------------------------===//

/// Where the elements of a packed sequence are among those of T steps of B sequences.
struct Packing {
  AffineExpr steps, batch;
  Value counts;  ///< [T] i64: how many sequences have a step
  Value starts;  ///< [T] i64: the first element of a step
  Value isThere; ///< [T, B]
  AffineExpr length;
};

Packing readPacking(PrimBuilder &b, Value data, Value counts, AffineExpr batch) {
  Packing p;
  p.steps = getSizes(counts)[0];
  p.batch = batch;
  p.length = getSizes(data)[0];
  p.counts = b.convert(counts, b.getI64Type());
  p.starts = ScanOp::create(b, p.counts.getType(), ReduceKind::Sum, p.counts, 0, /*exclusive=*/true, /*reverse=*/false);
  const Sizes all{p.steps, batch};
  p.isThere = b.compare(CompareKind::LT, b.iota(b.getI64Type(), all, 1), b.broadcastInDims(p.counts, all, {0}));
  return p;
}

/// [S, ..] to [T, B, ..]: beyond the end of a sequence there is any element.
Value unpack(PrimBuilder &b, const Packing &p, Value data) {
  const Sizes all{p.steps, p.batch};
  Value place = b.add(b.broadcastInDims(p.starts, all, {0}), b.iota(b.getI64Type(), all, 1));
  Value last = b.broadcastTo(b.sizeValue(simplifySize(p.length - 1)), all);
  place = b.binary<MaxOp>(b.min(place, last), 0);
  return GatherOp::create(b, data, place, 0);
}

/// [T, B, ..] to [S, ..].
Value pack(PrimBuilder &b, const Packing &p, Value padded) {
  const Sizes all{p.length, p.steps};
  // The step of an element: as many as end before it.
  Value end = b.broadcastInDims(b.add(p.starts, p.counts), all, {1}), element = b.iota(b.getI64Type(), all, 0);
  Value step = b.reduce(ReduceKind::Sum, b.convert(b.compare(CompareKind::LE, end, element), b.getI64Type()), {1});
  step = b.binary<MaxOp>(b.min(step, b.broadcastTo(b.sizeValue(simplifySize(p.steps - 1)), {p.length})), 0);
  Value sequence = b.sub(b.iota(b.getI64Type(), {p.length}, 0), GatherOp::create(b, p.starts, step, 0));
  Value row = b.add(b.mul(step, b.broadcastTo(b.sizeValue(p.batch), {p.length})), sequence);
  Sizes sizes = getSizes(padded);
  sizes.erase(sizes.begin());
  sizes[0] = simplifySize(p.steps * p.batch);
  return GatherOp::create(b, b.reshape(padded, sizes), row, 0);
}

LogicalResult packPadded(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> input = c.required("input"), given = c.required("lengths");
  if (failed(input) || failed(given))
    return failure();
  if (b.rankOf(*input) < 2 || b.rankOf(*given) != 1 || !isa<IntegerType>(b.elementOf(*given)))
    return ctx.invalid("takes a tensor of rank 2 or more and a vector of lengths, but got " + describe(*input) +
                       " and " + describe(*given));
  Value x = *input;
  if (c.flag("batch_first")) {
    SmallVector<int64_t> turned = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(x)));
    std::swap(turned[0], turned[1]);
    x = b.transpose(x, turned);
  }
  Sizes sizes = getSizes(x);
  const AffineExpr most = sizes[0], batch = sizes[1];
  FailureOr<Value> fitting = ctx.castSizes(b.convert(*given, b.getI64Type()), {batch});
  if (failed(fitting))
    return failure();
  Value lengths = *fitting;
  // As PyTorch requires: each sequence has an element, and none is longer than the one before it or the tensor.
  Value isFirst = b.compare(CompareKind::EQ, b.iota(b.getI64Type(), {batch}, 0), 0);
  Value before = b.binary<MaxOp>(b.binary<SubOp>(b.iota(b.getI64Type(), {batch}, 0), 1), 0);
  Value bound = b.select(isFirst, b.broadcastTo(b.sizeValue(most), {batch}), GatherOp::create(b, lengths, before, 0));
  Value isRight = b.binary<AndOp>(b.compare(CompareKind::GE, lengths, 1), b.compare(CompareKind::LE, lengths, bound));
  b.guard(b.reduce(ReduceKind::And, isRight, {0}), 1,
          "node \"" + ctx.node().getNodeName() + "\": lengths of sequences to be packed must fall from that of the " +
              "tensor at most to 1 at least; sort them, or pack with enforce_sorted=False");
  AffineExpr steps;
  if (std::optional<Sizes> known = ctx.intValues(lengths); known && !known->empty())
    steps = getConstantSize(known->front()) ? known->front() : AffineExpr();
  if (!steps)
    steps =
        b.bindSymbol("steps", b.reduce(ReduceKind::Max, lengths, {0}), 1, std::max<int64_t>(1, b.bounds(most).second));
  const Sizes all{most, batch};
  Value isThere = b.compare(CompareKind::LT, b.iota(b.getI64Type(), all, 0), b.broadcastInDims(lengths, all, {1}));
  Value places = emitCompact(b, flattened(b, isThere));
  sizes.erase(sizes.begin());
  sizes[0] = simplifySize(most * batch);
  if (failed(ctx.result(Value(GatherOp::create(b, b.reshape(x, sizes), places, 0)))))
    return failure();
  // All have a first step, which says how many there are.
  Value counts = b.reduce(ReduceKind::Sum, b.convert(isThere, b.getI64Type()), {1});
  counts = b.sliceDim(counts, 0, b.size(1), simplifySize(steps - 1));
  return ctx.set(1, b.concat({b.reshape(b.sizeValue(batch), {b.size(1)}), counts}, 0));
}

LogicalResult padPacked(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> data = c.required("data"), counts = c.required("batch_sizes");
  if (failed(data) || failed(counts))
    return failure();
  if (b.rankOf(*data) < 1 || b.rankOf(*counts) != 1 || !isa<IntegerType>(b.elementOf(*counts)))
    return ctx.invalid("takes packed data and a vector of batch sizes, but got " + describe(*data) + " and " +
                       describe(*counts));
  FailureOr<Value> filler = c.as("padding_value", b.elementOf(*data), 0);
  if (failed(filler))
    return failure();
  Value first = b.take(*counts, 0, 0);
  std::optional<Sizes> known = ctx.intValues(first);
  const Packing p = readPacking(b, *data, *counts,
                                known ? known->front() : b.bindSymbol("batch", b.convert(first, b.getI64Type()), 1));
  Value padded = unpack(b, p, *data);
  Sizes sizes = getSizes(padded);
  padded = b.select(b.broadcastInDims(p.isThere, sizes, {0, 1}), padded, b.broadcastTo(*filler, sizes));
  FailureOr<AffineExpr> total = c.size("total_length", 0);
  if (failed(total))
    return failure();
  // Traces and scripts name the number of steps where nothing else is wanted.
  if (*total != p.steps && getConstantSize(*total).value_or(1) > 0) {
    if (failed(ctx.require(CompareKind::LE, p.steps, *total, "a total_length of as many steps as there are")))
      return failure();
    sizes[0] = *total;
    padded = b.pad(padded, *filler, Sizes(sizes.size(), b.size(0)), sizes);
  }
  if (c.flag("batch_first")) {
    SmallVector<int64_t> turned = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(padded)));
    std::swap(turned[0], turned[1]);
    padded = b.transpose(padded, turned);
  }
  if (failed(ctx.result(padded)))
    return failure();
  return ctx.set(1, b.reduce(ReduceKind::Sum, b.convert(p.isThere, b.getI64Type()), {0}));
}

//===--- layers ---------------------------------------------------------------------------------------------------===//

LogicalResult layers(NodeContext &ctx, Cell cell, bool isPacked) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> input = c.floats(isPacked ? "data" : "input"), counts = Value();
  if (isPacked)
    counts = c.required("batch_sizes");
  if (failed(input) || failed(counts))
    return failure();
  SmallVector<Value> states = c.tensors("hx"), params = c.tensors("params");
  if (Value single = c.tensor("hx"))
    states = {single};
  const int64_t count = c.integer("num_layers", 1), directions = c.flag("bidirectional") ? 2 : 1;
  const bool hasBiases = c.flag("has_biases", true), isBatchFirst = c.flag("batch_first");
  const size_t perLayer = hasBiases ? 4 : 2, gates = gateOrder(cell).size();
  const double dropout = c.flag("train") && count > 1 ? c.number("dropout", 0) : 0;
  if (failed(checkProbability(ctx, dropout, "dropout")))
    return failure();
  if (count < 1 || states.size() != (cell == Cell::LSTM ? 2 : 1))
    return ctx.invalid("needs a layer, and the initial state");
  const bool isProjected = cell == Cell::LSTM && params.size() == size_t(count * directions) * (perLayer + 1);
  const size_t stride = perLayer + isProjected;
  if (params.size() != size_t(count * directions) * stride)
    return ctx.invalid("has " + Twine(params.size()) + " parameters, but " + Twine(count) + " layers need " +
                       Twine(count * directions * int64_t(perLayer)));
  for (Value v : states)
    if (b.rankOf(v) != 3)
      return ctx.invalid("takes initial states of rank 3, but got " + describe(v));
  if (b.rankOf(*input) != (isPacked ? 2 : 3) || (isPacked && b.rankOf(*counts) != 1))
    return ctx.invalid("takes an input of rank " + Twine(isPacked ? 2 : 3) + ", but got " + describe(*input));
  if (isPacked && isProjected && directions == 2)
    return ctx.unsupported("of a packed sequence in both directions, with projections, is not supported; pass the "
                           "padded tensor instead");
  Value x = isBatchFirst ? b.transpose(*input, {1, 0, 2}) : *input, lengths;
  Packing packing;
  if (isPacked) {
    packing = readPacking(b, *input, *counts, getSizes(states[0])[1]);
    x = unpack(b, packing, *input);
    lengths = b.reduce(ReduceKind::Sum, b.convert(packing.isThere, b.getI32Type()), {0});
  }
  SmallVector<Value> lastHidden, lastCell;
  Value kept; // by dropout, for each layer but the last
  for (int64_t layer = 0; layer < count; ++layer) {
    SmallVector<Value> input, recurrent, bias, projections, starts;
    const int64_t first = layer * directions;
    for (int64_t d = 0; d < directions; ++d) {
      const Value *from = &params[(first + d) * int64_t(stride)];
      if (b.rankOf(from[0]) != 2 || b.rankOf(from[1]) != 2 || (isProjected && b.rankOf(from[perLayer]) != 2) ||
          llvm::any_of(ArrayRef(from, perLayer).drop_front(2), [&](Value v) { return b.rankOf(v) != 1; }))
        return ctx.invalid("takes weights of rank 2 and biases of rank 1");
      const AffineExpr h = getSizes(isProjected ? from[perLayer] : from[1])[1];
      for (Value v : ArrayRef(from, perLayer))
        if (failed(ctx.requireEqual(getSizes(v)[0], simplifySize(h * int64_t(gates)),
                                    "weights and biases of " + Twine(gates) + " rows for each hidden element")))
          return failure();
      Value ofInput = from[0], ofState = from[1];
      if (isProjected) {
        Projection projected{from[perLayer], b.take(states[0], 0, first + d), d == 1};
        if (failed(ctx.requireEqual(getSizes(ofState)[1], getSizes(projected.weight)[0],
                                    "recurrent weights of as many columns as projected elements")))
          return failure();
        starts.push_back(startOf(b, x, projected));
        projections.push_back(projected.weight);
        ofInput = besides(b, ofInput, ofState, d, directions);
        ofState = DotGeneralOp::create(b, ofState, projected.weight, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                       ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0});
      }
      input.push_back(b.unsqueeze(reorder(b, ofInput, cell, h), 0));
      recurrent.push_back(b.unsqueeze(reorder(b, ofState, cell, h), 0));
      if (hasBiases)
        bias.push_back(b.unsqueeze(b.concat({reorder(b, from[2], cell, h), reorder(b, from[3], cell, h)}, 0), 0));
    }
    if (isProjected) {
      starts.insert(starts.begin(), x);
      x = b.concat(starts, 2);
    }
    auto both = [&](ArrayRef<Value> parts) { return parts.size() == 1 ? parts[0] : Value(b.concat(parts, 0)); };
    SmallVector<Value> operands{x, both(input), both(recurrent), hasBiases ? both(bias) : Value(), lengths};
    for (Value state : states)
      operands.push_back(isProjected && state == states[0] && operands.size() == 5
                             ? Value()
                             : b.sliceDim(state, 0, b.size(first), b.size(directions)));
    SmallVector<NamedAttribute> attributes{
        b.getNamedAttr("direction", b.getStringAttr(directions == 2 ? "bidirectional" : "forward")),
        b.getNamedAttr("linear_before_reset", b.getI64IntegerAttr(1))};
    if (cell == Cell::Relu)
      attributes.push_back(
          b.getNamedAttr("activations", b.getStrArrayAttr(SmallVector<StringRef>(directions, StringRef("Relu")))));
    const StringRef type = cell == Cell::LSTM ? "LSTM" : cell == Cell::GRU ? "GRU" : "RNN";
    FailureOr<SmallVector<Value>> results =
        ctx.emitOperator(type, 14, operands, attributes, cell == Cell::LSTM ? 3 : 2);
    if (failed(results))
      return failure();
    if (isProjected) {
      (*results)[0] = project(b, (*results)[0], projections, 1);
      (*results)[1] = project(b, (*results)[1], projections, 0);
    }
    // [T, D, B, H] -> [T, B, D * H]
    const Sizes sizes = getSizes((*results)[0]);
    x = b.reshape(b.transpose((*results)[0], {0, 2, 1, 3}), {sizes[0], sizes[2], simplifySize(sizes[1] * sizes[3])});
    if (dropout != 0 && layer + 1 < count) {
      // One draw for all layers, which differ by their place in it.
      Sizes all = getSizes(x);
      all.insert(all.begin(), b.size(count - 1));
      if (!kept)
        kept = emitKept(ctx, all, dropout);
      x = applyDropout(b, x, b.take(kept, 0, layer), dropout);
    }
    lastHidden.push_back((*results)[1]);
    if (cell == Cell::LSTM)
      lastCell.push_back((*results)[2]);
  }
  auto all = [&](ArrayRef<Value> parts) { return parts.size() == 1 ? parts[0] : Value(b.concat(parts, 0)); };
  (void)ctx.set(1, all(lastHidden));
  if (cell == Cell::LSTM)
    (void)ctx.set(2, all(lastCell));
  return ctx.result(isPacked ? pack(b, packing, x) : isBatchFirst ? b.transpose(x, {1, 0, 2}) : x);
}

/// x w^T + bias, for x of one or two dims.
FailureOr<Value> affine(NodeContext &ctx, Value x, Value w, Value bias) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(x);
  if (sizes.empty() || b.rankOf(w) != 2 || b.elementOf(x) != b.elementOf(w))
    return ctx.invalid("operand " + describe(x) + " does not fit the weight " + describe(w));
  sizes.back() = getSizes(w)[1];
  FailureOr<Value> fitting = ctx.castSizes(x, sizes);
  if (failed(fitting))
    return failure();
  Value y = DotGeneralOp::create(b, *fitting, w, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                 ArrayRef<int64_t>{int64_t(sizes.size()) - 1}, ArrayRef<int64_t>{1});
  if (!bias)
    return y;
  FailureOr<Value> spread = ctx.broadcastOnto(bias, getSizes(y));
  return failed(spread) ? FailureOr<Value>(failure()) : b.add(y, *spread);
}

LogicalResult oneStep(NodeContext &ctx, Cell cell) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input"), wx = c.floats("w_ih"), wh = c.floats("w_hh");
  SmallVector<Value> states = c.tensors("hx");
  if (Value single = c.tensor("hx"))
    states = {single};
  if (failed(x) || failed(wx) || failed(wh))
    return failure();
  if (states.size() != (cell == Cell::LSTM ? 2 : 1))
    return ctx.invalid("needs the state of the step before");
  FailureOr<Value> ofInput = affine(ctx, *x, *wx, c.tensor("b_ih")),
                   ofState = affine(ctx, states[0], *wh, c.tensor("b_hh"));
  if (failed(ofInput) || failed(ofState))
    return failure();
  const AffineExpr h = getSizes(states[0]).back();
  FailureOr<Value> fitting = ctx.castSizes(*ofState, getSizes(*ofInput));
  if (failed(fitting))
    return failure();
  Value fromInput = *ofInput, fromState = *fitting;
  const int64_t last = b.rankOf(fromInput) - 1;
  auto gate = [&](Value all, int64_t i) { return b.sliceDim(all, last, simplifySize(h * i), h); };
  if (cell == Cell::Tanh || cell == Cell::Relu) {
    Value sum = b.add(fromInput, fromState);
    return ctx.result(cell == Cell::Tanh ? b.unary<TanhOp>(sum) : b.binary<MaxOp>(sum, 0));
  }
  if (cell == Cell::GRU) {
    Value reset = b.unary<LogisticOp>(b.add(gate(fromInput, 0), gate(fromState, 0)));
    Value update = b.unary<LogisticOp>(b.add(gate(fromInput, 1), gate(fromState, 1)));
    Value fresh = b.unary<TanhOp>(b.add(gate(fromInput, 2), b.mul(reset, gate(fromState, 2))));
    FailureOr<Value> hidden = ctx.castSizes(states[0], getSizes(fresh));
    return failed(hidden) ? failure() : ctx.result(b.add(b.mul(b.sub(*hidden, fresh), update), fresh));
  }
  Value all = b.add(fromInput, fromState);
  FailureOr<Value> before = ctx.castSizes(states[1], getSizes(gate(all, 0)));
  if (failed(before))
    return failure();
  auto open = [&](int64_t i) { return b.unary<LogisticOp>(gate(all, i)); };
  Value state = b.add(b.mul(open(1), *before), b.mul(open(0), b.unary<TanhOp>(gate(all, 2))));
  (void)ctx.set(1, state);
  return ctx.result(b.mul(open(3), b.unary<TanhOp>(state)));
}

} // namespace

void tc::populateATenRnn(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("_pack_padded_sequence.default", packPadded, 2);
  on("_pad_packed_sequence.default", padPacked, 2);
  for (auto [name, cell] : {std::pair("lstm", Cell::LSTM), std::pair("gru", Cell::GRU),
                            std::pair("rnn_tanh", Cell::Tanh), std::pair("rnn_relu", Cell::Relu)}) {
    const std::string type = name;
    on(type + ".input", [cell = cell](NodeContext &ctx) { return layers(ctx, cell, /*isPacked=*/false); }, 3);
    on(type + ".data", [cell = cell](NodeContext &ctx) { return layers(ctx, cell, /*isPacked=*/true); }, 4);
    on(type + "_cell.default", [cell = cell](NodeContext &ctx) { return oneStep(ctx, cell); }, 4);
  }
}
