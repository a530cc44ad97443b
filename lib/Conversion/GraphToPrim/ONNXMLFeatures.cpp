//===- ONNXMLFeatures.cpp - feature operators of ai.onnx.ml -------------------------------------------------------===//
//
// What prepares the features of a model: all elementwise or gathers, so that they fuse with it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXMLSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/TC/IR/TC.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult arrayFeatureExtractor(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), indices = ctx.operand(1);
  if (b.rankOf(x) == 1)
    x = b.unsqueeze(x, 0);
  indices = b.reshape(indices, {product(b.getContext(), getSizes(indices))});
  return ctx.result(GatherOp::create(b, x, indices, b.rankOf(x) - 1));
}

LogicalResult binarizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), wide = x;
  double threshold = ctx.getFloat("threshold", 0);
  if (!b.isFloat(x)) {
    // Integers above a fraction are those above its floor; none is above NaN.
    constexpr double kLimit = double(int64_t(1) << 62);
    wide = b.convert(x, b.getI64Type());
    threshold = std::isnan(threshold) ? kLimit : std::clamp(std::floor(threshold), -kLimit, kLimit);
  }
  return ctx.result(b.convert(b.compare(CompareKind::GT, wide, threshold), b.elementOf(x)));
}

LogicalResult featureVectorizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  std::optional<SmallVector<int64_t>> widths = ctx.getInts("inputdimensions");
  if (widths && widths->size() != ctx.numOperands())
    return ctx.invalid("inputdimensions has " + Twine(widths->size()) + " entries for " + Twine(ctx.numOperands()) +
                       " operands");
  SmallVector<Value> parts;
  AffineExpr rows;
  for (auto [i, operand] : llvm::enumerate(ctx.allOperands())) {
    Value x = operand;
    if (!x || b.rankOf(x) < 1)
      return ctx.invalid("needs operands of one dim or more");
    // [C] is one row; dims beyond the second are columns.
    Sizes sizes = getSizes(x);
    if (sizes.size() == 1)
      sizes.insert(sizes.begin(), b.size(1));
    AffineExpr columns = product(b.getContext(), SizesRef(sizes).drop_front());
    x = b.reshape(b.convert(x, b.getF32Type()), {sizes[0], columns});
    if (!rows)
      rows = sizes[0];
    FailureOr<Value> fitting = ctx.castSizes(x, {rows, columns});
    if (failed(fitting))
      return failure();
    // Wider operands are cut, narrower ones filled up with 0.
    if (widths && (*widths)[i] < 0)
      return ctx.invalid("an entry of inputdimensions is negative");
    AffineExpr width = widths ? b.size((*widths)[i]) : columns;
    parts.push_back(width == columns
                        ? *fitting
                        : b.pad(*fitting, b.scalar(b.getF32Type(), 0), {b.size(0), b.size(0)}, {rows, width}));
  }
  return ctx.result(b.concat(parts, 1));
}

LogicalResult imputer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), values, isMissing;
  Sizes sizes = getSizes(x);
  if (sizes.empty())
    return ctx.invalid("needs an operand of one dim or more");
  if (b.isFloat(x)) {
    std::optional<SmallVector<double>> list = ctx.getFloats("imputed_value_floats");
    if (!list || list->empty())
      return ctx.invalid("needs imputed_value_floats for an operand of floats");
    double replaced = ctx.getFloat("replaced_value_float", 0);
    values = makeFloats(b, b.elementOf(x), *list);
    isMissing = std::isnan(replaced) ? emitIsNan(b, x) : b.compare(CompareKind::EQ, x, replaced);
  } else {
    std::optional<SmallVector<int64_t>> list = ctx.getInts("imputed_value_int64s");
    if (!list || list->empty())
      return ctx.invalid("needs imputed_value_int64s for an operand of integers");
    values = makeInts(b, b.elementOf(x), *list);
    Value replaced = makeInts(b, b.elementOf(x), {ctx.getInt("replaced_value_int64", 0)});
    isMissing = b.compare(CompareKind::EQ, x, b.broadcastTo(replaced, sizes));
  }
  // One value for all columns, or one for each.
  FailureOr<Value> wide = getConstantSize(getSizes(values)[0]) == 1
                              ? FailureOr<Value>(b.broadcastTo(values, sizes))
                              : broadcastAlong(ctx, values, sizes.size() - 1, sizes);
  return failed(wide) ? failure() : ctx.result(b.select(isMissing, *wide, x));
}

LogicalResult normalizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  std::string norm = ctx.getString("norm", "MAX");
  int64_t rank = b.rankOf(x);
  x = b.convert(x, b.elementOf(x).isF64() ? b.getF64Type() : Type(b.getF32Type()));
  // The largest element, as the specification has it, not the largest magnitude, which ONNX's reference takes.
  Value size = norm == "MAX" ? x : norm == "L1" ? b.unary<AbsOp>(x) : b.mul(x, x);
  Value total = b.reduce(norm == "MAX" ? ReduceKind::Max : ReduceKind::Sum, size, {rank - 1}, /*keepDims=*/true);
  if (norm == "L2")
    total = b.unary<SqrtOp>(total);
  Value divisor = b.select(b.compare(CompareKind::EQ, total, 0), b.splatLike(total, 1), total);
  return ctx.result(b.convert(b.div(x, b.broadcastTo(divisor, getSizes(x))), b.getF32Type()));
}

LogicalResult scaler(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  if (sizes.empty())
    return ctx.invalid("needs an operand of one dim or more");
  x = b.convert(x, b.elementOf(x).isF64() ? b.getF64Type() : Type(b.getF32Type()));
  for (StringRef name : {"offset", "scale"}) {
    std::optional<SmallVector<double>> list = ctx.getFloats(name);
    if (!list || list->empty())
      continue;
    Value values = makeFloats(b, b.elementOf(x), *list);
    FailureOr<Value> wide = list->size() == 1 ? FailureOr<Value>(b.broadcastTo(values, sizes))
                                              : broadcastAlong(ctx, values, sizes.size() - 1, sizes);
    if (failed(wide))
      return failure();
    x = name == "offset" ? b.sub(x, *wide) : b.mul(x, *wide);
  }
  return ctx.result(b.convert(x, b.getF32Type()));
}

LogicalResult oneHotEncoder(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<Value> categories = readLabels(ctx, "cats_int64s", "cats_strings");
  if (failed(categories))
    return failure();
  if (!*categories)
    return ctx.invalid("needs cats_int64s or cats_strings");
  if (b.isString(x) != b.isString(*categories))
    return ctx.invalid("the categories' element type does not fit the operand " + describe(x));
  Sizes sizes = getSizes(x);
  sizes.push_back(getSizes(*categories)[0]);
  int64_t last = sizes.size() - 1;
  x = b.unsqueeze(b.isString(x) ? x : b.convert(x, b.getI64Type()), last);
  Value same = b.compare(CompareKind::EQ, b.broadcastTo(x, sizes), b.broadcastInDims(*categories, sizes, {last}));
  if (!ctx.getInt("zeros", 1)) {
    Value known = b.reduce(ReduceKind::Or, same, {last});
    Value all = b.reduce(ReduceKind::And, known, llvm::to_vector(llvm::seq<int64_t>(0, last)));
    b.guard(b.convert(all, b.getI64Type()), 1,
            "node \"" + graph::getNodeName(b.getLoc()) +
                "\": OneHotEncoder met a value that is no category, which zeros = 0 forbids");
  }
  return ctx.result(b.convert(same, b.getF32Type()));
}

//===--- LabelEncoder, CategoryMapper -----------------------------------------------------------------------------===//

/// What a LabelEncoder maps: keys, values or the default.
struct LabelTable {
  Type type;
  std::vector<double> floats; // of floats
  std::vector<int64_t> ints;  // of integers, or the words of strings
  size_t size() const { return isa<FloatType>(type) ? floats.size() : ints.size(); }
  Value constant(PrimBuilder &b) const {
    if (isa<FloatType>(type))
      return makeFloats(b, type, floats);
    return isa<base::StringType>(type) ? b.asWords(makeInts(b, b.getI64Type(), ints), type) : makeInts(b, type, ints);
  }
};

LabelTable makeTable(NodeContext &ctx, ArrayRef<std::string> texts) {
  LabelTable table{base::StringType::get(ctx.b.getContext()), {}, {}};
  for (const std::string &text : texts)
    table.ints.push_back(ctx.b.symbols.addString(text));
  return table;
}

/// One of `<name>_strings`, `<name>_floats`, `<name>_int64s`, `<name>_tensor`.
FailureOr<LabelTable> readTable(NodeContext &ctx, StringRef name) {
  LabelTable table;
  for (StringRef form : {"_strings", "_tensor"})
    if (auto texts = readStrings(ctx, (name + form).str()))
      return makeTable(ctx, *texts);
  if (std::optional<SmallVector<double>> floats = ctx.getFloats((name + "_floats").str())) {
    table.type = ctx.b.getF32Type();
    table.floats.assign(floats->begin(), floats->end());
  } else if (std::optional<SmallVector<int64_t>> ints = ctx.getInts((name + "_int64s").str())) {
    table.type = ctx.b.getI64Type();
    table.ints.assign(ints->begin(), ints->end());
  } else {
    FailureOr<Tensor> tensor = readTensor(ctx, (name + "_tensor").str());
    if (failed(tensor))
      return failure();
    table.type = tensor->elementType;
    if (isa<FloatType>(table.type))
      table.floats = toDoubles(*tensor);
    else
      table.ints = toInts(*tensor);
  }
  return table;
}

/// x with each element that is a key replaced by the value of the same number, all others by `other` (0-D).
Value mapKeys(PrimBuilder &b, Value x, const LabelTable &keys, const LabelTable &values, Value other) {
  Value result = b.broadcastTo(b.reshape(other, {}), getSizes(x));
  // Keys in rising order; of equal ones the first counts. A NaN equals no number and is met on its own.
  SmallVector<int64_t> order;
  std::optional<int64_t> nanKey;
  for (int64_t i = 0; i < int64_t(keys.size()); ++i) {
    if (isa<FloatType>(keys.type) && std::isnan(keys.floats[i]))
      nanKey = nanKey.value_or(i);
    else
      order.push_back(i);
  }
  bool isFloat = isa<FloatType>(keys.type);
  auto isLess = [&](int64_t i, int64_t j) {
    return isFloat ? keys.floats[i] < keys.floats[j] : keys.ints[i] < keys.ints[j];
  };
  llvm::stable_sort(order, isLess);
  order.erase(std::unique(order.begin(), order.end(), [&](int64_t i, int64_t j) { return !isLess(i, j); }),
              order.end());
  Value table = values.constant(b), words = b.isString(x) ? b.asWords(x, b.getI64Type()) : x;
  if (!order.empty()) {
    LabelTable sorted{b.elementOf(words), {}, {}};
    for (int64_t i : order) {
      if (isFloat)
        sorted.floats.push_back(keys.floats[i]);
      else
        sorted.ints.push_back(keys.ints[i]);
    }
    Value isKnown, position = searchKeys(b, words, sorted.constant(b), order.size(), isKnown);
    Value sortedValues = GatherOp::create(b, table, makeInts(b, b.getI32Type(), order), 0);
    result = b.select(isKnown, GatherOp::create(b, sortedValues, position, 0), result);
  }
  if (nanKey) {
    Value ofNan = b.broadcastTo(b.take(table, 0, *nanKey), getSizes(x));
    result = b.select(emitIsNan(b, x), ofNan, result);
  }
  return result;
}

LogicalResult labelEncoder(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<LabelTable> keys = failure(), values = failure();
  if (auto classes = readStrings(ctx, "classes_strings")) { // version 1: names to their numbers, or back
    keys = makeTable(ctx, *classes);
    values = LabelTable{b.getI64Type(), {}, {}};
    for (int64_t i = 0; i < int64_t(classes->size()); ++i)
      values->ints.push_back(i);
    if (!b.isString(x))
      std::swap(*keys, *values);
  } else {
    keys = readTable(ctx, "keys");
    values = readTable(ctx, "values");
    if (failed(keys) || failed(values))
      return failure();
  }
  if (keys->size() != values->size())
    return ctx.invalid("has " + Twine(keys->size()) + " keys and " + Twine(values->size()) + " values");
  if (keys->type != b.elementOf(x))
    return ctx.invalid("the keys' element type differs from that of the operand " + describe(x));
  // What elements that are no key become.
  Value other;
  if (isa<base::StringType>(values->type)) {
    std::vector<std::string> text = readStrings(ctx, "default_tensor").value_or(std::vector<std::string>());
    if (text.empty())
      text.push_back(ctx.getString("default_string", "_Unused"));
    other = b.string(text.front());
  } else if (ctx.hasAttr("default_tensor")) {
    FailureOr<Tensor> tensor = readTensor(ctx, "default_tensor");
    if (failed(tensor))
      return failure();
    if (tensor->elementType != values->type || tensor->numElements() != 1)
      return ctx.invalid("default_tensor must hold one element of the values' type");
    other = prim::ConstantOp::create(b, toAttribute(*tensor));
  } else if (isa<FloatType>(values->type)) {
    other = b.scalar(values->type, ctx.getFloat("default_float", -0.0));
  } else {
    other = makeInts(b, values->type, {ctx.getInt("default_int64", -1)});
  }
  return ctx.result(mapKeys(b, x, *keys, *values, other));
}

LogicalResult categoryMapper(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  std::vector<std::string> names = readStrings(ctx, "cats_strings").value_or(std::vector<std::string>());
  SmallVector<int64_t> numbers = ctx.getInts("cats_int64s").value_or(SmallVector<int64_t>());
  if (names.size() != numbers.size())
    return ctx.invalid("has " + Twine(names.size()) + " cats_strings and " + Twine(numbers.size()) + " cats_int64s");
  LabelTable ofNames = makeTable(ctx, names), ofNumbers{b.getI64Type(), {}, {}};
  ofNumbers.ints.assign(numbers.begin(), numbers.end());
  if (b.isString(x))
    return ctx.result(
        mapKeys(b, x, ofNames, ofNumbers, makeInts(b, b.getI64Type(), {ctx.getInt("default_int64", -1)})));
  if (!b.elementOf(x).isInteger(64))
    return ctx.invalid("needs strings or int64 numbers, but has " + describe(x));
  return ctx.result(mapKeys(b, x, ofNumbers, ofNames, b.string(ctx.getString("default_string", "_Unused"))));
}

} // namespace

void tc::populateONNXMLFeatures(OpRegistrar &onOp) {
  onOp("ArrayFeatureExtractor", 1, arrayFeatureExtractor, 2);
  onOp("Binarizer", 1, binarizer);
  onOp("CategoryMapper", 1, categoryMapper);
  onOp("FeatureVectorizer", 1, featureVectorizer);
  onOp("Imputer", 1, imputer);
  onOp("LabelEncoder", 1, labelEncoder);
  onOp("Normalizer", 1, normalizer);
  onOp("OneHotEncoder", 1, oneHotEncoder);
  onOp("Scaler", 1, scaler);
}
