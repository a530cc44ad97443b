//===- ONNXRnn.cpp - recurrent layers of ONNX ---------------------------------------------------------------------===//
//
// LSTM, GRU and RNN become one prim.rnn per direction. The input's part of all gates is one matrix product over all
// steps, with the biases added; what is left for prim.rnn is the recurrence. Forms that prim.rnn has not, with other
// activations, clipping or coupled gates, become loops.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/Recurrence.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Alpha and beta of ONNX's activations that have them, where a node gives none.
struct ActivationDefaults {
  StringRef name;
  std::optional<double> alpha, beta;
};
constexpr auto kNone = std::nullopt;
const ActivationDefaults kActivations[] = {
    {"sigmoid", kNone, kNone},       {"tanh", kNone, kNone},   {"relu", kNone, kNone},   {"softsign", kNone, kNone},
    {"softplus", kNone, kNone},      {"affine", 1.0, 0.0},     {"elu", 1.0, kNone},      {"leakyrelu", 0.01, kNone},
    {"thresholdedrelu", 1.0, kNone}, {"scaledtanh", 1.0, 1.0}, {"hardsigmoid", 0.2, 0.5}};

Value activate(PrimBuilder &b, StringRef name, double alpha, double beta, Value x) {
  Value zero = b.splatLike(x, 0), isPositive = b.compare(CompareKind::GT, x, 0);
  auto affine = [&](Value v, double factor, double offset) {
    return b.binary<AddOp>(b.binary<MulOp>(v, factor), offset);
  };
  if (name == "sigmoid")
    return b.unary<LogisticOp>(x);
  if (name == "tanh")
    return b.unary<TanhOp>(x);
  if (name == "relu")
    return b.max(x, zero);
  if (name == "softsign")
    return b.div(x, b.binary<AddOp>(b.unary<AbsOp>(x), 1));
  if (name == "softplus")
    return b.add(b.max(x, zero), b.unary<Log1pOp>(b.unary<ExpOp>(b.unary<NegOp>(b.unary<AbsOp>(x)))));
  if (name == "affine")
    return affine(x, alpha, beta);
  if (name == "elu")
    return b.select(isPositive, x, b.binary<MulOp>(b.unary<Expm1Op>(x), alpha));
  if (name == "leakyrelu")
    return b.select(isPositive, x, b.binary<MulOp>(x, alpha));
  if (name == "thresholdedrelu")
    return b.select(b.compare(CompareKind::GT, x, alpha), x, zero);
  if (name == "scaledtanh")
    return b.binary<MulOp>(b.unary<TanhOp>(b.binary<MulOp>(x, beta)), alpha);
  return b.binary<MinOp>(b.max(affine(x, alpha, beta), zero), 1);
}

/// The activations of each direction; empty where all are the default ones. Alphas and betas are given in order, for
/// those activations that have them.
FailureOr<SmallVector<SmallVector<Activation>>> readActivations(NodeContext &ctx, RnnKind kind, int64_t directions) {
  SmallVector<StringRef> defaults;
  if (kind == RnnKind::LSTM)
    defaults = {"sigmoid", "tanh", "tanh"};
  else if (kind == RnnKind::GRU)
    defaults = {"sigmoid", "tanh"};
  else
    defaults = {"tanh"};
  SmallVector<SmallVector<Activation>> result(directions);
  auto given = ctx.getStrings("activations");
  if (!given || given->empty())
    return result;
  if (given->size() != defaults.size() * directions)
    return ctx.invalid("has " + Twine(given->size()) + " activations; it takes " + Twine(defaults.size()) +
                       " for each direction");
  auto alphas = ctx.getFloats("activation_alpha").value_or(SmallVector<double>()),
       betas = ctx.getFloats("activation_beta").value_or(SmallVector<double>());
  size_t nextAlpha = 0, nextBeta = 0;
  bool usual = true;
  for (auto [i, text] : llvm::enumerate(*given)) {
    std::string name = StringRef(text).lower();
    const auto *entry = llvm::find_if(kActivations, [&](const ActivationDefaults &a) { return a.name == name; });
    if (entry == std::end(kActivations))
      return ctx.invalid("activation \"" + text + "\" is not one of ONNX's");
    auto take = [](std::optional<double> otherwise, ArrayRef<double> list, size_t &next) {
      return !otherwise ? 0 : next < list.size() ? list[next++] : *otherwise;
    };
    double alpha = take(entry->alpha, alphas, nextAlpha), beta = take(entry->beta, betas, nextBeta);
    usual &= name == defaults[i % defaults.size()];
    result[i / defaults.size()].push_back(
        [name = entry->name, alpha, beta](PrimBuilder &b, Value v) { return activate(b, name, alpha, beta, v); });
  }
  return usual ? SmallVector<SmallVector<Activation>>(directions) : result;
}

NodeHandler recurrent(RnnKind kind) {
  return [kind](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    int64_t gateCount = kind == RnnKind::LSTM ? 4 : kind == RnnKind::GRU ? 3 : 1;
    Value x = ctx.operand(0), w = ctx.operand(1), r = ctx.operand(2);
    Type type = b.elementOf(x);
    Sizes sizesW = getSizes(w), sizesR = getSizes(r);
    auto directions = getConstantSize(sizesW[0]), gateSize = getConstantSize(sizesW[1]),
         hiddenSize = getConstantSize(sizesR[2]);
    std::string direction = StringRef(ctx.getString("direction", "forward")).lower();
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return ctx.invalid("direction is \"" + direction + "\"; it may be forward, reverse or bidirectional");
    int64_t d = direction == "bidirectional" ? 2 : 1;
    if (!hiddenSize && ctx.hasAttr("hidden_size"))
      hiddenSize = ctx.getInt("hidden_size", 0);
    if (!hiddenSize)
      return ctx.unsupported("with weights of unknown size and without hidden_size is not supported");
    int64_t h = *hiddenSize;
    // Sizes that are not known have to be those that fit.
    if (!directions || !gateSize || !getConstantSize(sizesR[2])) {
      FailureOr<Value> fittingW = ctx.castSizes(w, {b.size(d), b.size(gateCount * h), sizesW[2]}),
                       fittingR = ctx.castSizes(r, {b.size(d), b.size(gateCount * h), b.size(h)});
      if (failed(fittingW) || failed(fittingR))
        return failure();
      w = *fittingW;
      r = *fittingR;
      directions = d;
      gateSize = gateCount * h;
      sizesW = getSizes(w);
    }
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
    FailureOr<SmallVector<SmallVector<Activation>>> activations = readActivations(ctx, kind, d);
    if (failed(activations))
      return failure();
    double clip = ctx.getFloat("clip", 0);
    bool coupled = kind == RnnKind::LSTM && ctx.getInt("input_forget", 0);
    bool linearBeforeReset = kind == RnnKind::GRU && ctx.getInt("linear_before_reset", 0);

    Value lengths;
    if (Value given = ctx.operand(4)) {
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

    Value bias = ctx.operand(3), peepholes = kind == RnnKind::LSTM ? ctx.operand(7) : Value();
    for (auto [v, count] : {std::pair(&bias, 2 * gateCount * h), std::pair(&peepholes, 3 * h)})
      if (*v) {
        FailureOr<Value> fitting = ctx.castSizes(*v, {b.size(d), b.size(count)});
        if (failed(fitting))
          return failure();
        *v = *fitting;
      }

    SmallVector<Value> hidden, finalHidden, finalCell;
    for (int64_t i = 0; i < d; ++i) {
      bool reverse = direction == "reverse" || i == 1;
      Value wi = b.take(w, 0, i), ri = b.take(r, 0, i);
      Value gates = DotGeneralOp::create(b, x, wi, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{2},
                                         ArrayRef<int64_t>{1});
      Value recurrentBias = b.splat(type, {b.size(gateCount * h)}, 0);
      if (bias) {
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
      Value peephole = peepholes ? b.take(peepholes, 0, i) : b.splat(type, {b.size(3 * h)}, 0);
      RecurrenceResults layer;
      if (clip > 0 || coupled || !(*activations)[i].empty()) {
        Type wide = b.accumulatorOf(type);
        auto widen = [&](Value v) { return b.convert(v, wide); };
        layer = emitRecurrence(b, {kind, widen(gates), widen(b.transpose(ri, {1, 0})), widen(recurrentBias),
                                   widen(startHidden), widen(startCell), widen(peephole), lengths, reverse,
                                   linearBeforeReset, coupled, clip, (*activations)[i]});
        for (Value *v : {&layer.hidden, &layer.finalHidden, &layer.finalCell})
          *v = b.convert(*v, type);
      } else {
        auto stateType = makeType(type, {batch, b.size(h)});
        auto rnn = RnnOp::create(b, makeType(type, {steps, batch, b.size(h)}), stateType, stateType, kind, gates,
                                 b.transpose(ri, {1, 0}), recurrentBias, startHidden, startCell, peephole, lengths,
                                 reverse, linearBeforeReset);
        layer = {rnn.getHidden(), rnn.getFinalHidden(), rnn.getFinalCell()};
      }
      hidden.push_back(b.unsqueeze(layer.hidden, 1));
      finalHidden.push_back(b.unsqueeze(layer.finalHidden, 0));
      finalCell.push_back(b.unsqueeze(layer.finalCell, 0));
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
  onOp("GRU", 1, recurrent(RnnKind::GRU), 3);
  onOp("RNN", 1, recurrent(RnnKind::RNN), 3);
}
