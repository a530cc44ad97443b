//===- ONNXString.cpp - tensors of strings ------------------------------------------------------------------------===//
//
// Elements of string tensors are ids, equal for equal strings, so that all operators that move or compare elements work
// on them as they are. What looks into strings calls the runtime.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult requireStrings(NodeContext &ctx, Value v) {
  return ctx.b.isString(v) ? success() : LogicalResult(ctx.invalid("needs strings, but has " + describe(v)));
}

LogicalResult stringConcat(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value operands[] = {ctx.operand(0), ctx.operand(1)};
  for (Value v : operands)
    if (failed(requireStrings(ctx, v)))
      return failure();
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  return ctx.result(b.hostCall("string_concat", operands, b.elementOf(operands[0]), getSizes(operands[0])));
}

LogicalResult stringSplit(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  if (failed(requireStrings(ctx, x)))
    return failure();
  int64_t rank = b.rankOf(x), most = ctx.getInt("maxsplit", INT64_MAX);
  Type string = b.elementOf(x), scalar = RankedTensorType::get({}, b.getI64Type());
  auto inside = RankedTensorType::get(SmallVector<int64_t>(rank + 1, ShapedType::kDynamic), string);
  ValueRange results = b.hostCall(
      "string_split", {x, b.string(ctx.getString("delimiter", "")), b.sizeValue(b.size(most))},
      TypeRange{makeType(base::OptType::get(b.getContext(), inside), {}), makeType(b.getI64Type(), getSizes(x))});
  Value parts = results[0], counts = results[1];
  ValueRange dims = b.hostCall("object_dims", parts, SmallVector<Type>(rank + 1, scalar));
  Sizes sizes = getSizes(x);
  sizes.push_back(b.bindSymbol("parts", dims.back()));
  (void)ctx.set(1, counts);
  return ctx.set(0, b.hostCall("object_data", parts, string, sizes));
}

LogicalResult stringNormalizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  if (failed(requireStrings(ctx, x)))
    return failure();
  int64_t rank = b.rankOf(x);
  if (rank == 2 && failed(ctx.requireEqual(getSizes(x)[0], b.size(1), "an operand [C] or [1, C]")))
    return failure();
  std::string change = ctx.getString("case_change_action", "NONE");
  int64_t mode = change == "LOWER" ? 1 : change == "UPPER" ? 2 : 0;
  std::vector<std::string> words;
  if (auto given = ctx.getStrings("stopwords"))
    words.assign(given->begin(), given->end());
  SmallVector<StringRef> texts(words.begin(), words.end());
  Type string = b.elementOf(x), scalar = RankedTensorType::get({}, b.getI64Type());
  auto number = [&](int64_t value) { return b.sizeValue(b.size(value)); };
  auto inside = RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic), string);
  Value kept = b.hostCall("string_normalize",
                          {x, number(mode), b.string(ctx.getString("locale", "")),
                           number(ctx.getInt("is_case_sensitive", 0)), b.strings(texts, {int64_t(texts.size())})},
                          base::OptType::get(b.getContext(), inside), {});
  ValueRange dims = b.hostCall("object_dims", kept, SmallVector<Type>(rank, scalar));
  Sizes sizes(rank, b.size(1));
  sizes.back() = b.bindSymbol("kept", dims.back());
  return ctx.result(b.hostCall("object_data", kept, string, sizes));
}

LogicalResult regexFullMatch(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  if (failed(requireStrings(ctx, x)))
    return failure();
  return ctx.result(
      b.hostCall("regex_full_match", {x, b.string(ctx.getString("pattern", ""))}, b.getI1Type(), getSizes(x)));
}

} // namespace

FailureOr<Value> tc::castStrings(NodeContext &ctx, Value x, Type to) {
  PrimBuilder &b = ctx.b;
  Type from = b.elementOf(x), i64 = b.getI64Type(), f64 = b.getF64Type();
  if (from == to)
    return x;
  if (isa<base::StringType>(to)) {
    if (isa<FloatType>(from)) {
      Value flag = b.sizeValue(b.size(from.isF64() ? 0 : 1));
      return b.hostCall("print_f64", {b.convert(x, f64), flag}, to, getSizes(x));
    }
    Value flag = b.sizeValue(b.size(from.isUnsignedInteger(64)));
    return b.hostCall("print_i64", {b.convert(x, i64), flag}, to, getSizes(x));
  }
  if (isa<FloatType>(to))
    return castElements(b, b.hostCall("parse_f64", x, f64, getSizes(x)), to);
  return castElements(b, b.hostCall("parse_i64", x, i64, getSizes(x)), to);
}

void tc::populateONNXString(OpRegistrar &onOp) {
  onOp("StringConcat", 20, stringConcat, 2);
  onOp("StringSplit", 20, stringSplit);
  onOp("StringNormalizer", 10, stringNormalizer);
  onOp("RegexFullMatch", 20, regexFullMatch);
}
