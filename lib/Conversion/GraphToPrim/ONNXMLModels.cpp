//===- ONNXMLModels.cpp - linear models and support vector machines of ai.onnx.ml ---------------------------------===//
//
// Weights are attributes; they become constants, so that all of a model is one or two matrix products and what follows.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXMLSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A list attribute, empty where it is absent.
SmallVector<double> floatsOf(NodeContext &ctx, StringRef name) {
  return ctx.getFloats(name).value_or(SmallVector<double>());
}

/// x [N, C] times the transpose of `rows` [count, C] of numbers: [N, count]. `what` names the numbers.
FailureOr<Value> timesRows(NodeContext &ctx, Value x, ArrayRef<double> rows, int64_t count, const Twine &what) {
  PrimBuilder &b = ctx.b;
  if (count < 1 || rows.empty() || rows.size() % count != 0)
    return ctx.invalid(what + " has " + Twine(rows.size()) + " entries, which are not rows for each of " +
                       Twine(count));
  int64_t columns = rows.size() / count;
  FailureOr<Value> fitting = ctx.castSizes(x, {getSizes(x)[0], b.size(columns)});
  if (failed(fitting))
    return failure();
  Value weights = makeFloats(b, b.elementOf(x), {count, columns}, rows);
  return Value(DotGeneralOp::create(b, *fitting, weights, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                    ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1}));
}

/// scores [N, E] plus a number for each column, or one for all.
FailureOr<Value> addToColumns(NodeContext &ctx, Value scores, ArrayRef<double> values, StringRef name) {
  PrimBuilder &b = ctx.b;
  if (values.empty())
    return scores;
  Sizes sizes = getSizes(scores);
  if (values.size() != 1 && getConstantSize(sizes[1]) != int64_t(values.size()))
    return ctx.invalid(name + " has " + Twine(values.size()) + " entries for " + Twine(*getConstantSize(sizes[1])) +
                       " scores");
  return b.add(scores, b.broadcastTo(makeFloats(b, b.elementOf(scores), values), sizes));
}

/// labels[index] for each row, or the index itself where there are no labels.
Value pickLabels(PrimBuilder &b, Value labels, Value index) {
  return labels ? Value(GatherOp::create(b, labels, index, 0)) : index;
}

/// Index of the highest score in each row [N, E].
Value argMax(PrimBuilder &b, Value scores) {
  return ArgReduceOp::create(b, makeType(b.getI64Type(), {getSizes(scores)[0]}), ReduceKind::Max, scores, 1,
                             /*lastIndex=*/false);
}

LogicalResult linearRegressor(NodeContext &ctx) {
  FailureOr<ScoreModel> model = readScoreModel(ctx);
  if (failed(model))
    return failure();
  FailureOr<Value> scores =
      timesRows(ctx, model->x, floatsOf(ctx, "coefficients"), ctx.getInt("targets", 1), "coefficients");
  if (failed(scores))
    return failure();
  scores = addToColumns(ctx, *scores, floatsOf(ctx, "intercepts"), "intercepts");
  if (failed(scores))
    return failure();
  return ctx.result(ctx.b.convert(emitPostTransform(ctx.b, *scores, model->transform), ctx.b.getF32Type()));
}

LogicalResult linearClassifier(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<ScoreModel> model = readScoreModel(ctx, "classlabels_ints");
  if (failed(model))
    return failure();
  auto [x, labels, transform] = *model;
  SmallVector<double> coefficients = floatsOf(ctx, "coefficients"), intercepts = floatsOf(ctx, "intercepts");
  int64_t labelCount = labels ? *getConstantSize(getSizes(labels)[0]) : 0;
  // As many rows of coefficients as intercepts; without any, as the operand's columns or the labels say.
  int64_t classes = intercepts.size();
  if (classes == 0) {
    auto columns = getConstantSize(getSizes(x)[1]);
    classes = columns && *columns > 0 ? int64_t(coefficients.size()) / *columns : labelCount;
  }
  FailureOr<Value> product = timesRows(ctx, x, coefficients, classes, "coefficients");
  if (failed(product))
    return failure();
  FailureOr<Value> scores = addToColumns(ctx, *product, intercepts, "intercepts");
  if (failed(scores))
    return failure();
  bool isBinary = classes == 1;
  if (labels && labelCount != (isBinary ? 2 : classes))
    return ctx.invalid("classlabels_ints has " + Twine(labelCount) + " entries for " + Twine(classes) +
                       " rows of coefficients");
  Value index;
  if (isBinary)
    index = b.convert(b.compare(CompareKind::GT, b.reshape(*scores, {getSizes(*scores)[0]}), 0), b.getI64Type());
  else
    index = argMax(b, *scores);
  (void)ctx.set(1, b.convert(emitPostTransform(b, *scores, transform, SecondClass::Complement), b.getF32Type()));
  return ctx.result(pickLabels(b, labels, index));
}

//===--- support vector machines ----------------------------------------------------------------------------------===//

/// The kernel of each row of x [N, C] with each of `count` support vectors: [N, count].
FailureOr<Value> emitKernel(NodeContext &ctx, Value x, ArrayRef<double> vectors, int64_t count, StringRef type) {
  PrimBuilder &b = ctx.b;
  SmallVector<double> parameters = floatsOf(ctx, "kernel_params");
  parameters.resize(3, 0);
  const double gamma = parameters[0], coef0 = parameters[1], degree = parameters[2];
  if (type == "RBF") {
    // exp(-gamma |x - v|^2), from the differences: products would cancel.
    if (count < 1 || vectors.empty() || vectors.size() % count != 0)
      return ctx.invalid("support_vectors has " + Twine(vectors.size()) + " entries for " + Twine(count) + " vectors");
    int64_t columns = vectors.size() / count;
    FailureOr<Value> fitting = ctx.castSizes(x, {getSizes(x)[0], b.size(columns)});
    if (failed(fitting))
      return failure();
    Sizes space{getSizes(x)[0], b.size(count), b.size(columns)};
    Value table = makeFloats(b, b.elementOf(x), {count, columns}, vectors);
    Value difference = b.sub(b.broadcastInDims(*fitting, space, {0, 2}), b.broadcastInDims(table, space, {1, 2}));
    Value distance = b.reduce(ReduceKind::Sum, b.mul(difference, difference), {2});
    return b.unary<ExpOp>(b.binary<MulOp>(distance, -gamma));
  }
  FailureOr<Value> product = timesRows(ctx, x, vectors, count, "support_vectors (or coefficients)");
  if (failed(product) || type == "LINEAR")
    return product;
  Value scaled = b.binary<AddOp>(b.binary<MulOp>(*product, gamma), coef0);
  if (type == "POLY")
    return b.binary<PowOp>(scaled, degree);
  if (type == "SIGMOID")
    return b.unary<TanhOp>(scaled);
  return ctx.invalid("kernel_type is \"" + type + "\"; it may be LINEAR, POLY, RBF or SIGMOID");
}

LogicalResult svmRegressor(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<ScoreModel> model = readScoreModel(ctx);
  if (failed(model))
    return failure();
  SmallVector<double> coefficients = floatsOf(ctx, "coefficients"), rho = floatsOf(ctx, "rho");
  if (rho.empty())
    return ctx.invalid("needs rho");
  int64_t supports = ctx.getInt("n_supports", 0);
  FailureOr<Value> scores = failure();
  if (supports > 0) {
    FailureOr<Value> kernel =
        emitKernel(ctx, model->x, floatsOf(ctx, "support_vectors"), supports, ctx.getString("kernel_type", "LINEAR"));
    if (failed(kernel))
      return failure();
    scores = timesRows(ctx, *kernel, coefficients, 1, "coefficients");
  } else {
    scores = emitKernel(ctx, model->x, coefficients, 1, "LINEAR");
  }
  if (failed(scores))
    return failure();
  scores = addToColumns(ctx, *scores, ArrayRef(rho).take_front(1), "rho");
  if (failed(scores))
    return failure();
  Value result = emitPostTransform(b, *scores, model->transform);
  if (ctx.getInt("one_class", 0))
    result = b.select(b.compare(CompareKind::GT, *scores, 0), b.splatLike(result, 1), b.splatLike(result, -1));
  return ctx.result(b.convert(result, b.getF32Type()));
}

/// Probabilities of `count` classes from those of each pair: `pairs[i][j]` [N] is that of i against j. Source: T.-F.
/// Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class classification by pairwise coupling", algorithm 2.
/// A row stops where its error is below 0.005 / count, at most after 100 rounds.
Value coupleProbabilities(NodeContext &ctx, ArrayRef<SmallVector<Value>> pairs) {
  PrimBuilder &b = ctx.b;
  int64_t count = pairs.size();
  Type i1 = b.getI1Type();
  // q[i][j]: the quadratic form that the probabilities minimise.
  SmallVector<SmallVector<Value>> q(count, SmallVector<Value>(count));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < count; ++j) {
      if (i == j)
        continue;
      Value square = b.mul(pairs[j][i], pairs[j][i]);
      q[i][i] = q[i][i] ? b.add(q[i][i], square) : square;
      q[i][j] = b.unary<NegOp>(b.mul(pairs[j][i], pairs[i][j]));
    }
  Value like = pairs[0][1];
  SmallVector<Value> starts(count, b.splatLike(like, 1.0 / double(count)));
  starts.push_back(b.splat(i1, getSizes(like), 0)); // rows that are done
  SmallVector<Type> types(ValueRange(starts).getTypes());
  Region &body = ctx.newRegion();
  {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&body);
    block->addArgument(RankedTensorType::get({}, b.getI64Type()), b.getLoc());
    SmallVector<Value> p;
    for (Type type : types)
      p.push_back(block->addArgument(type, b.getLoc()));
    Value done = p.pop_back_val();
    auto sum = [&](auto term) {
      Value total = term(0);
      for (int64_t i = 1; i < count; ++i)
        total = b.add(total, term(i));
      return total;
    };
    SmallVector<Value> qp, next(p);
    for (int64_t i = 0; i < count; ++i)
      qp.push_back(sum([&](int64_t j) { return b.mul(q[i][j], p[j]); }));
    Value pqp = sum([&](int64_t i) { return b.mul(p[i], qp[i]); });
    Value error = b.unary<AbsOp>(b.sub(qp[0], pqp));
    for (int64_t i = 1; i < count; ++i)
      error = b.max(error, b.unary<AbsOp>(b.sub(qp[i], pqp)));
    done = b.binary<OrOp>(done, b.compare(CompareKind::LT, error, 0.005 / double(count)));
    for (int64_t i = 0; i < count; ++i) {
      Value step = b.div(b.sub(pqp, qp[i]), q[i][i]);
      Value grown = b.binary<AddOp>(step, 1);
      Value change = b.mul(step, b.add(b.mul(step, q[i][i]), b.binary<MulOp>(qp[i], 2)));
      pqp = b.div(b.div(b.add(pqp, change), grown), grown);
      next[i] = b.add(next[i], step);
      for (int64_t j = 0; j < count; ++j) {
        qp[j] = b.div(b.add(qp[j], b.mul(step, q[i][j])), grown);
        next[j] = b.div(next[j], grown);
      }
    }
    Value allDone = b.reduce(ReduceKind::And, done, {0});
    SmallVector<Value> yields{b.unary<NotOp>(allDone)};
    for (int64_t i = 0; i < count; ++i)
      yields.push_back(b.select(done, p[i], next[i]));
    yields.push_back(done);
    prim::YieldOp::create(b, yields);
  }
  auto loop =
      prim::WhileOp::create(b, types, b.scalar(b.getI64Type(), 100), b.scalar(i1, 1), starts, ArrayRef<int64_t>{});
  loop.getBody().takeBody(body);
  SmallVector<Value> columns;
  for (Value p : loop.getResults().drop_back())
    columns.push_back(b.unsqueeze(p, 1));
  return b.concat(columns, 1);
}

/// What libsvm-like classifiers compute: a score for each pair of classes, of which each votes for one.
struct PairScores {
  Value scores; // [N, pairs]
  Value votes;  // [N, classes]
};

FailureOr<PairScores> emitPairScores(NodeContext &ctx, Value x, ArrayRef<int64_t> vectorsPerClass) {
  PrimBuilder &b = ctx.b;
  SmallVector<double> coefficients = floatsOf(ctx, "coefficients"), rho = floatsOf(ctx, "rho");
  int64_t classes = vectorsPerClass.size(), vectors = 0, pairs = classes * (classes - 1) / 2;
  SmallVector<int64_t> starts;
  for (int64_t count : vectorsPerClass) {
    if (count < 0)
      return ctx.invalid("an entry of vectors_per_class is negative");
    starts.push_back(vectors);
    vectors += count;
  }
  if (int64_t(coefficients.size()) < (classes - 1) * vectors || int64_t(rho.size()) < pairs)
    return ctx.invalid("needs " + Twine((classes - 1) * vectors) + " coefficients and " + Twine(pairs) +
                       " entries of rho, but has " + Twine(coefficients.size()) + " and " + Twine(rho.size()));
  FailureOr<Value> kernel =
      emitKernel(ctx, x, floatsOf(ctx, "support_vectors"), vectors, ctx.getString("kernel_type", "LINEAR"));
  if (failed(kernel))
    return failure();
  // Row p of `weights` holds the coefficients of pair p: those of i's vectors against j, and of j's against i.
  SmallVector<double> weights(pairs * vectors, 0), voteWeights(classes * pairs, 0), voteStart(classes, 0);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for (int64_t v = starts[i]; v < starts[i] + vectorsPerClass[i]; ++v)
        weights[pair * vectors + v] = coefficients[(j - 1) * vectors + v];
      for (int64_t v = starts[j]; v < starts[j] + vectorsPerClass[j]; ++v)
        weights[pair * vectors + v] = coefficients[i * vectors + v];
      // A positive score moves the vote from j to i.
      voteWeights[i * pairs + pair] = 1;
      voteWeights[j * pairs + pair] = -1;
      voteStart[j] += 1;
    }
  FailureOr<Value> scores = timesRows(ctx, *kernel, weights, pairs, "coefficients");
  if (failed(scores))
    return failure();
  scores = addToColumns(ctx, *scores, ArrayRef(rho).take_front(pairs), "rho");
  if (failed(scores))
    return failure();
  Value isFirst = b.convert(b.compare(CompareKind::GT, *scores, 0), b.elementOf(*scores));
  FailureOr<Value> votes = timesRows(ctx, isFirst, voteWeights, classes, "votes");
  if (failed(votes))
    return failure();
  votes = addToColumns(ctx, *votes, voteStart, "votes");
  if (failed(votes))
    return failure();
  return PairScores{*scores, *votes};
}

/// Probabilities [N, classes] from the scores of pairs.
FailureOr<Value> emitProbabilities(NodeContext &ctx, Value scores, int64_t classes) {
  PrimBuilder &b = ctx.b;
  SmallVector<double> a = floatsOf(ctx, "prob_a"), c = floatsOf(ctx, "prob_b");
  int64_t pairs = classes * (classes - 1) / 2;
  if (int64_t(a.size()) < pairs || int64_t(c.size()) < pairs)
    return ctx.invalid("needs " + Twine(pairs) + " entries of prob_a and prob_b");
  Sizes sizes = getSizes(scores);
  auto spread = [&](ArrayRef<double> values) {
    return b.broadcastInDims(makeFloats(b, b.elementOf(scores), values.take_front(pairs)), sizes, {1});
  };
  Value p = b.unary<LogisticOp>(b.unary<NegOp>(b.add(b.mul(scores, spread(a)), spread(c))));
  p = b.min(b.max(p, b.splatLike(p, 1e-7)), b.splatLike(p, 1 - 1e-7));
  SmallVector<SmallVector<Value>> ofPair(classes, SmallVector<Value>(classes));
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      ofPair[i][j] = b.take(p, 1, pair);
      ofPair[j][i] = b.sub(b.splatLike(ofPair[i][j], 1), ofPair[i][j]);
    }
  return coupleProbabilities(ctx, ofPair);
}

LogicalResult svmClassifier(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<ScoreModel> model = readScoreModel(ctx, "classlabels_ints");
  if (failed(model))
    return failure();
  auto [x, labels, transform] = *model;
  if (!labels)
    return ctx.invalid("needs classlabels_ints or classlabels_strings");
  int64_t classes = *getConstantSize(getSizes(labels)[0]);
  SmallVector<int64_t> vectorsPerClass = ctx.getInts("vectors_per_class").value_or(SmallVector<int64_t>());
  SmallVector<double> coefficients = floatsOf(ctx, "coefficients"), rho = floatsOf(ctx, "rho");
  Value scores, index;
  SecondClass second = SecondClass::None;
  if (vectorsPerClass.empty()) {
    // A linear model: one row of coefficients for each class.
    FailureOr<Value> product = emitKernel(ctx, x, coefficients, classes, "LINEAR");
    if (failed(product))
      return failure();
    if (rho.empty())
      return ctx.invalid("needs rho");
    FailureOr<Value> sum = addToColumns(ctx, *product, ArrayRef(rho).take_front(1), "rho");
    if (failed(sum))
      return failure();
    scores = *sum;
    index = argMax(b, scores);
  } else {
    if (int64_t(vectorsPerClass.size()) != classes || classes < 2)
      return ctx.invalid("has " + Twine(classes) + " labels and " + Twine(vectorsPerClass.size()) +
                         " entries of vectors_per_class; it needs as many, and at least 2");
    FailureOr<PairScores> pairs = emitPairScores(ctx, x, vectorsPerClass);
    if (failed(pairs))
      return failure();
    index = argMax(b, pairs->votes);
    scores = pairs->scores;
    second = SecondClass::Negation;
    if (ctx.hasAttr("prob_a")) {
      FailureOr<Value> probabilities = emitProbabilities(ctx, scores, classes);
      if (failed(probabilities))
        return failure();
      scores = *probabilities;
    }
  }
  (void)ctx.set(1, b.convert(emitPostTransform(b, scores, transform, second), b.getF32Type()));
  return ctx.result(pickLabels(b, labels, index));
}

} // namespace

void tc::populateONNXMLModels(OpRegistrar &onOp) {
  onOp("LinearClassifier", 1, linearClassifier);
  onOp("LinearRegressor", 1, linearRegressor);
  onOp("SVMClassifier", 1, svmClassifier);
  onOp("SVMRegressor", 1, svmRegressor);
}
