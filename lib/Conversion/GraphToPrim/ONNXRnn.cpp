//===- ONNXRnn.cpp - recurrent layers of ONNX ---------------------------------------------------------------------===//
//
// LSTM, GRU and RNN become one prim.rnn per direction. The input's part of all gates is one matrix product over all
// steps, with the biases added; what is left for prim.rnn is the recurrence.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult checkActivations(NodeContext &ctx, RnnKind kind, int64_t directions) {
  auto given = ctx.getStrings("activations");
  if (!given || given->empty())
    return success();
  SmallVector<StringRef> defaults;
  if (kind == RnnKind::LSTM)
    defaults = {"sigmoid", "tanh", "tanh"};
  else if (kind == RnnKind::GRU)
    defaults = {"sigmoid", "tanh"};
  else
    defaults = {"tanh"};
  for (auto [i, name] : llvm::enumerate(*given))
    if (StringRef(name).lower() != defaults[i % defaults.size()])
      return ctx.unsupported("with activation " + name + " is not supported; supported: the default activations");
  return success();
}

NodeHandler recurrent(RnnKind kind) {
  return [kind](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    int64_t gateCount = kind == RnnKind::LSTM ? 4 : kind == RnnKind::GRU ? 3 : 1;
    Value x = ctx.operand(0), w = ctx.operand(1), r = ctx.operand(2);
    Type type = b.elementOf(x);
    if (b.rankOf(x) != 3 || b.rankOf(w) != 3 || b.rankOf(r) != 3 || !isa<FloatType>(type))
      return ctx.invalid("X, W and R must be float tensors of three dims, but are " + describe(x) + ", " + describe(w) +
                         " and " + describe(r));
    Sizes sizesW = getSizes(w), sizesR = getSizes(r);
    auto directions = getConstantSize(sizesW[0]), gateSize = getConstantSize(sizesW[1]),
         hiddenSize = getConstantSize(sizesR[2]);
    if (!directions || !gateSize || !hiddenSize)
      return ctx.unsupported("with weights of unknown size is not supported");
    std::string direction = StringRef(ctx.getString("direction", "forward")).lower();
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return ctx.invalid("direction is \"" + direction + "\"; it may be forward, reverse or bidirectional");
    int64_t h = *hiddenSize, d = direction == "bidirectional" ? 2 : 1;
    auto fits = [&](Value v, SizesRef expected) {
      if (!v)
        return true;
      Sizes have = getSizes(v);
      return b.elementOf(v) == type && have.size() == expected.size() &&
             llvm::all_of(llvm::zip_equal(have, expected), [](auto pair) {
               auto [p, q] = pair;
               return p == q || !getConstantSize(p) || !getConstantSize(q);
             });
    };
    bool batchFirst = ctx.getInt("layout", 0);
    if (batchFirst)
      x = b.transpose(x, {1, 0, 2});
    AffineExpr steps = getSizes(x)[0], batch = getSizes(x)[1];
    Value initialHidden = ctx.operand(5), initialCell = kind == RnnKind::LSTM ? ctx.operand(6) : Value();
    if (batchFirst)
      for (Value *v : {&initialHidden, &initialCell})
        if (*v && b.rankOf(*v) == 3)
          *v = b.transpose(*v, {1, 0, 2});
    Sizes state{b.size(d), batch, b.size(h)};
    if (*directions != d || *gateSize != gateCount * h || h != ctx.getInt("hidden_size", h) ||
        !fits(w, {b.size(d), b.size(gateCount * h), getSizes(x)[2]}) ||
        !fits(r, {b.size(d), b.size(gateCount * h), b.size(h)}) ||
        !fits(ctx.operand(3), {b.size(d), b.size(2 * gateCount * h)}) || !fits(initialHidden, state) ||
        !fits(initialCell, state) || (kind == RnnKind::LSTM && !fits(ctx.operand(7), {b.size(d), b.size(3 * h)})))
      return ctx.invalid("the sizes of the operands do not fit X " + describe(ctx.operand(0)) + ", W " + describe(w) +
                         ", R " + describe(r) + " and direction " + direction);
    if (failed(checkActivations(ctx, kind, d)))
      return failure();
    if (ctx.hasAttr("clip"))
      return ctx.unsupported("with clip is not supported");
    if (ctx.getInt("input_forget", 0))
      return ctx.unsupported("with input_forget 1 is not supported; supported: 0");
    bool linearBeforeReset = kind == RnnKind::GRU && ctx.getInt("linear_before_reset", 0);

    Value lengths;
    if (Value given = ctx.operand(4)) {
      if (b.rankOf(given) != 1 || !isa<IntegerType>(b.elementOf(given)))
        return ctx.invalid("sequence_lens must be a 1-D integer tensor, but is " + describe(given));
      FailureOr<Value> same = ctx.castSizes(b.convert(given, b.getI32Type()), {batch});
      if (failed(same))
        return failure();
      lengths = *same;
    } else if (auto fixed = getConstantSize(steps)) {
      lengths = b.splat(b.getI32Type(), {batch}, double(*fixed));
    } else {
      lengths = b.broadcastTo(b.convert(b.sizeValue(steps), b.getI32Type()), {batch});
    }
    FailureOr<Value> sameInputs = ctx.castSizes(w, {sizesW[0], sizesW[1], getSizes(x)[2]});
    if (failed(sameInputs))
      return failure();
    w = *sameInputs;

    SmallVector<Value> hidden, finalHidden, finalCell;
    for (int64_t i = 0; i < d; ++i) {
      bool reverse = direction == "reverse" || i == 1;
      Value wi = b.take(w, 0, i), ri = b.take(r, 0, i);
      Value gates = DotGeneralOp::create(b, x, wi, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{2},
                                         ArrayRef<int64_t>{1});
      Value recurrentBias = b.splat(type, {b.size(gateCount * h)}, 0);
      if (Value bias = ctx.operand(3)) {
        Value both = b.take(bias, 0, i);
        Value inputBias = b.sliceDim(both, 0, b.size(0), b.size(gateCount * h));
        Value stateBias = b.sliceDim(both, 0, b.size(gateCount * h), b.size(gateCount * h));
        if (linearBeforeReset)
          recurrentBias = stateBias;
        else
          inputBias = b.add(inputBias, stateBias);
        gates = b.add(gates, b.broadcastTo(inputBias, getSizes(gates)));
      }
      auto initial = [&](Value given) -> Value {
        Sizes sizes{batch, b.size(h)};
        if (!given)
          return b.splat(type, sizes, 0);
        FailureOr<Value> same = ctx.castSizes(b.take(given, 0, i), sizes);
        return failed(same) ? Value() : *same;
      };
      Value startHidden = initial(initialHidden), startCell = initial(initialCell);
      if (!startHidden || !startCell)
        return failure();
      Value peephole =
          kind == RnnKind::LSTM && ctx.has(7) ? b.take(ctx.operand(7), 0, i) : b.splat(type, {b.size(3 * h)}, 0);
      auto stateType = makeType(type, {batch, b.size(h)});
      auto rnn = RnnOp::create(b, makeType(type, {steps, batch, b.size(h)}), stateType, stateType, kind, gates,
                               b.transpose(ri, {1, 0}), recurrentBias, startHidden, startCell, peephole, lengths,
                               reverse, linearBeforeReset);
      hidden.push_back(b.unsqueeze(rnn.getHidden(), 1));
      finalHidden.push_back(b.unsqueeze(rnn.getFinalHidden(), 0));
      finalCell.push_back(b.unsqueeze(rnn.getFinalCell(), 0));
    }
    // Y [T, D, B, H], Y_h and Y_c [D, B, H]; batch first with layout 1.
    auto emit = [&](size_t i, Value v, ArrayRef<int64_t> permutation) {
      if (i < ctx.numResults())
        (void)ctx.set(i, batchFirst ? b.transpose(v, permutation) : v);
    };
    emit(0, b.concat(hidden, 1), {2, 0, 1, 3});
    emit(1, b.concat(finalHidden, 0), {1, 0, 2});
    if (kind == RnnKind::LSTM)
      emit(2, b.concat(finalCell, 0), {1, 0, 2});
    return success();
  };
}

} // namespace

void tc::populateONNXRnn(OpRegistrar &onOp) {
  onOp("LSTM", 1, recurrent(RnnKind::LSTM), 3);
  onOp("GRU", 3, recurrent(RnnKind::GRU), 3);
  onOp("RNN", 1, recurrent(RnnKind::RNN), 3);
}
