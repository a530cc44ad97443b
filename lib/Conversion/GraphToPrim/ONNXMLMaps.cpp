//===- ONNXMLMaps.cpp - operators of ai.onnx.ml on maps -----------------------------------------------------------===//
//
// A map is a handle to two tensors of the runtime, its keys and its values; taking them out makes ordinary 1-D tensors
// of a length that the run tells. Its elements have no order, and no key comes twice.
//
// The results are one row, [1, length], as in ONNX Runtime; where the file declares a 1-D result, as the specification
// of DictVectorizer has it, they are 1-D.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXMLSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/TC/IR/TC.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

struct MapParts {
  Value keys;   ///< words [count]
  Value values; ///< [count]
  Type keyType;
  AffineExpr count;
};

FailureOr<MapParts> takeParts(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  auto map = cast<base::MapType>(b.elementOf(x));
  auto values = dyn_cast<TensorType>(map.getValueType());
  if (!values || isNarrowElement(values.getElementType()))
    return ctx.unsupported("of a map whose values are no tensors of numbers or strings is not supported");
  auto part = [&](int64_t i, Type element) {
    Type inside = RankedTensorType::get({ShapedType::kDynamic}, element);
    return b.hostCall("map_part", {x, b.sizeValue(b.size(i))}, base::OptType::get(b.getContext(), inside), {});
  };
  MapParts parts{{}, {}, map.getKeyType(), {}};
  Value keys = part(0, parts.keyType);
  parts.count = b.bindSymbol("keys", b.hostCall("object_dims", keys, b.getI64Type(), {}));
  keys = b.hostCall("object_data", keys, parts.keyType, {parts.count});
  parts.keys = b.isString(keys) ? b.asWords(keys, b.getI64Type()) : b.convert(keys, b.getI64Type());
  Type element = values.getElementType();
  parts.values = b.hostCall("object_data", part(1, element), element, {parts.count});
  return parts;
}

/// Sets the result from `v` [length].
LogicalResult setRow(NodeContext &ctx, Value v) {
  auto declared = dyn_cast<RankedTensorType>(ctx.node()->getResult(0).getType());
  return ctx.result(declared && declared.getRank() == 1 ? v : ctx.b.unsqueeze(v, 0));
}

/// `values` [count] at the positions `at` [count], i64, of a tensor of `length` elements, all others `pad` (0-D).
Value place(PrimBuilder &b, Value values, Value at, Value pad, int64_t length) {
  Type element = b.elementOf(values);
  if (b.isString(values)) {
    values = b.asWords(values, b.getI64Type());
    pad = b.asWords(pad, b.getI64Type());
  }
  Value empty = b.broadcastTo(pad, {b.size(length)});
  Value placed = ScatterElementsOp::create(b, empty.getType(), empty, at, values, 0, ReduceKindAttr());
  return b.asWords(placed, element);
}

LogicalResult castMap(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<MapParts> parts = takeParts(ctx);
  if (failed(parts))
    return failure();
  if (!parts->keyType.isInteger(64))
    return ctx.invalid("needs a map with int64 keys");
  std::string form = ctx.getString("map_form", "DENSE"), name = ctx.getString("cast_to", "TO_FLOAT");
  if (form != "DENSE" && form != "SPARSE")
    return ctx.invalid("map_form is \"" + form + "\"; it may be DENSE or SPARSE");
  Value values = parts->values, pad;
  if (name == "TO_STRING") {
    // As ONNX Runtime writes numbers, and what stands for them.
    if (!b.isString(values)) {
      Value fixed = b.sizeValue(b.size(2));
      values = b.hostCall("print_f64", {b.convert(values, b.getF64Type()), fixed},
                          base::StringType::get(b.getContext()), {parts->count});
    }
    pad = b.string("0.f");
  } else if (name == "TO_FLOAT" || name == "TO_INT64") {
    Type to = name == "TO_FLOAT" ? Type(b.getF32Type()) : b.getI64Type();
    FailureOr<Value> cast = b.isString(values) ? castStrings(ctx, values, to) : b.convert(values, to);
    if (failed(cast))
      return failure();
    values = *cast;
    pad = b.scalar(to, 0);
  } else {
    return ctx.invalid("cast_to is \"" + name + "\"; it may be TO_FLOAT, TO_STRING or TO_INT64");
  }
  if (form == "DENSE") { // in the order of their keys
    Value order = ArgSortOp::create(b, makeType(b.getI64Type(), {parts->count}), b.unsqueeze(parts->keys, 1),
                                    /*descending=*/false, /*keyBits=*/{});
    return setRow(ctx, GatherOp::create(b, values, order, 0));
  }
  int64_t length = ctx.getInt("max_map", 1);
  if (length < 0 || length > int64_t(1) << 31)
    return ctx.invalid("max_map is " + Twine(length) + "; it may be 0 to 2^31");
  Value isIndex = b.reduce(ReduceKind::And, b.compare(CompareKind::GE, parts->keys, 0), {0});
  b.guard(b.convert(isIndex, b.getI64Type()), 1,
          "node \"" + graph::getNodeName(b.getLoc()) + "\": CastMap met a negative key, which map_form SPARSE forbids");
  // Keys beyond the end go to one more element, which is dropped.
  Value at = b.min(parts->keys, b.splatLike(parts->keys, double(length)));
  return setRow(ctx, b.sliceDim(place(b, values, at, pad, length + 1), 0, b.size(0), b.size(length)));
}

LogicalResult dictVectorizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<MapParts> parts = takeParts(ctx);
  if (failed(parts))
    return failure();
  bool isString = isa<base::StringType>(parts->keyType);
  std::vector<int64_t> words;
  if (auto names = readStrings(ctx, "string_vocabulary"); names && isString)
    for (const std::string &name : *names)
      words.push_back(b.symbols.addString(name));
  else if (std::optional<SmallVector<int64_t>> numbers = ctx.getInts("int64_vocabulary"); numbers && !isString)
    words.assign(numbers->begin(), numbers->end());
  else
    return ctx.invalid("needs " + Twine(isString ? "string_vocabulary" : "int64_vocabulary") + " for a map with " +
                       (isString ? "string" : "int64") + " keys");
  Value zero = b.scalar(b.elementOf(parts->values), 0);
  if (words.empty())
    return setRow(ctx, b.broadcastTo(zero, {b.size(0)}));
  // Values go to the place of their key among the rising vocabulary, those of unknown keys behind its end. From there
  // each entry takes its own: a word may stand in the vocabulary twice.
  SmallVector<int64_t> sorted(words.begin(), words.end()), source;
  llvm::sort(sorted);
  sorted.erase(llvm::unique(sorted), sorted.end());
  for (int64_t word : words)
    source.push_back(llvm::lower_bound(sorted, word) - sorted.begin());
  int64_t count = sorted.size();
  Value isKnown, at = searchKeys(b, parts->keys, makeInts(b, b.getI64Type(), sorted), count, isKnown);
  at = b.convert(b.select(isKnown, at, b.splatLike(at, double(count))), b.getI64Type());
  Value placed = place(b, parts->values, at, zero, count + 1);
  return setRow(ctx, GatherOp::create(b, placed, makeInts(b, b.getI64Type(), source), 0));
}

LogicalResult zipMap(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> features = readFeatures(ctx);
  if (failed(features))
    return failure();
  SmallVector<int64_t> labels = ctx.getInts("classlabels_int64s").value_or(SmallVector<int64_t>());
  Type keyType = b.getI64Type();
  if (auto names = readStrings(ctx, "classlabels_strings"); names && !names->empty()) {
    labels.clear();
    for (const std::string &name : *names)
      labels.push_back(b.symbols.addString(name));
    keyType = base::StringType::get(b.getContext());
  }
  if (labels.empty())
    return ctx.invalid("needs classlabels_int64s or classlabels_strings");
  if (failed(ctx.requireEqual(getSizes(*features)[1], b.size(labels.size()), "as many columns as there are labels")))
    return failure();
  Value x = b.convert(*features, b.getF32Type());
  // Of a label that comes twice the last column counts.
  SmallVector<int64_t> kept, columns;
  for (auto [column, label] : llvm::enumerate(labels))
    if (!llvm::is_contained(ArrayRef<int64_t>(labels).drop_front(column + 1), label)) {
      kept.push_back(label);
      columns.push_back(column);
    }
  if (kept.size() < labels.size())
    x = GatherOp::create(b, x, makeInts(b, b.getI64Type(), columns), 1);
  Value keys = b.asWords(makeInts(b, b.getI64Type(), kept), keyType);
  Type map = base::MapType::get(b.getContext(), keyType, RankedTensorType::get({}, b.getF32Type()));
  return ctx.result(b.hostCall("zip_map", {keys, x}, base::SeqType::get(b.getContext(), map), {}));
}

} // namespace

void tc::populateONNXMLMaps(OpRegistrar &onOp) {
  onOp("CastMap", 1, castMap);
  onOp("DictVectorizer", 1, dictVectorizer);
  onOp("ZipMap", 1, zipMap);
}
