//===- ONNXTfIdf.cpp - TfIdfVectorizer of ONNX --------------------------------------------------------------------===//
//
// The n-grams of the pool are constants: each position of the operand is compared with all of them at once, and the
// hits are summed along the positions.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Interpreter/Tensor.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

Value constantInts(PrimBuilder &b, ArrayRef<int64_t> values) {
  return prim::ConstantOp::create(b, toAttribute(fromInts(b.getI64Type(), {int64_t(values.size())}, values)));
}

/// How often each n-gram of `pool` (grams one after the other, `length` elements each) occurs in the rows of x [N, C],
/// with elements `distance` apart: i64 [N, grams].
Value countGrams(PrimBuilder &b, Value x, ArrayRef<int64_t> pool, int64_t length, int64_t distance) {
  int64_t grams = pool.size() / length, reach = (length - 1) * distance;
  Sizes sizes = getSizes(x), space{sizes[0], sizes[1], b.size(grams)};
  // Positions whose gram would end outside do not count; what they read is filled up.
  Value filled =
      b.pad(x, b.scalar(b.elementOf(x), 0), {b.size(0), b.size(0)}, {sizes[0], simplifySize(sizes[1] + reach)});
  Value end = b.add(b.iota(b.getI64Type(), space, 1), b.splat(b.getI64Type(), space, double(reach)));
  Value hit = b.compare(CompareKind::LT, end, b.broadcastTo(b.sizeValue(sizes[1]), space));
  for (int64_t i = 0; i < length; ++i) {
    SmallVector<int64_t> wanted;
    for (int64_t gram = 0; gram < grams; ++gram)
      wanted.push_back(pool[gram * length + i]);
    Value element = b.broadcastInDims(b.sliceDim(filled, 1, b.size(i * distance), sizes[1]), space, {0, 1});
    Value same = b.compare(CompareKind::EQ, element, b.broadcastInDims(constantInts(b, wanted), space, {2}));
    hit = b.binary<AndOp>(hit, same);
  }
  return b.reduce(ReduceKind::Sum, b.convert(hit, b.getI64Type()), {1});
}

LogicalResult tfIdfVectorizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  if (!ctx.hasAttr("pool_int64s"))
    return ctx.unsupported("with a pool of strings is not supported; supported: pool_int64s");
  int64_t rank = b.rankOf(x);
  if (rank < 1 || rank > 2 || !isa<IntegerType>(b.elementOf(x)))
    return ctx.invalid("needs an integer operand [C] or [N, C], but has " + describe(x));
  std::string mode = ctx.getString("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return ctx.invalid("mode is \"" + mode + "\"; it may be TF, IDF or TFIDF");
  SmallVector<int64_t> pool = ctx.getInts("pool_int64s").value_or(SmallVector<int64_t>());
  SmallVector<int64_t> starts = ctx.getInts("ngram_counts").value_or(SmallVector<int64_t>());
  SmallVector<int64_t> columns = ctx.getInts("ngram_indexes").value_or(SmallVector<int64_t>());
  int64_t shortest = ctx.getInt("min_gram_length", 1), longest = ctx.getInt("max_gram_length", 1);
  int64_t skips = ctx.getInt("max_skip_count", 0);
  if (shortest < 1 || longest < shortest || skips < 0 || longest > int64_t(starts.size()))
    return ctx.invalid("min_gram_length, max_gram_length, max_skip_count and ngram_counts do not fit together");

  Sizes sizes = getSizes(x);
  Sizes rows = rank == 1 ? Sizes{b.size(1), sizes[0]} : sizes;
  x = b.convert(b.reshape(x, rows), b.getI64Type());
  // Counts of all grams of the pool, in its order; lengths outside [shortest, longest] count 0.
  SmallVector<Value> counts;
  int64_t total = 0;
  for (int64_t length = 1; length <= int64_t(starts.size()); ++length) {
    int64_t from = starts[length - 1], to = length < int64_t(starts.size()) ? starts[length] : int64_t(pool.size());
    if (from < 0 || to < from || to > int64_t(pool.size()) || (to - from) % length != 0)
      return ctx.invalid("ngram_counts do not divide the pool");
    int64_t grams = (to - from) / length;
    total += grams;
    if (grams == 0)
      continue;
    Value sum = b.splat(b.getI64Type(), {rows[0], b.size(grams)}, 0);
    // Elements of a gram of one element have no distance.
    int64_t distances = length < shortest || length > longest ? 0 : length == 1 ? 1 : skips + 1;
    for (int64_t distance = 1; distance <= distances; ++distance)
      sum = b.add(sum, countGrams(b, x, ArrayRef<int64_t>(pool).slice(from, to - from), length, distance));
    counts.push_back(sum);
  }
  if (total == 0 || int64_t(columns.size()) != total)
    return ctx.invalid("ngram_indexes has " + Twine(columns.size()) + " entries for " + Twine(total) + " n-grams");
  Value all = b.convert(b.concat(counts, 1), b.getF32Type());
  Sizes table = getSizes(all);
  if (mode == "IDF")
    all = b.min(all, b.splatLike(all, 1));
  if (auto weights = ctx.getFloats("weights"); weights && mode != "TF") {
    if (int64_t(weights->size()) != total)
      return ctx.invalid("weights has " + Twine(weights->size()) + " entries for " + Twine(total) + " n-grams");
    Value factor = prim::ConstantOp::create(b, toAttribute(fromDoubles(b.getF32Type(), {total}, *weights)));
    all = b.mul(all, b.broadcastInDims(factor, table, {1}));
  }
  // Column c of the result is gram source[c]; one more column of zeros stands for those of no gram.
  int64_t width = *llvm::max_element(columns) + 1;
  if (*llvm::min_element(columns) < 0 || width > int64_t(1) << 24)
    return ctx.invalid("an entry of ngram_indexes is negative or above 2^24");
  SmallVector<int64_t> source(width, total);
  for (auto [gram, column] : llvm::enumerate(columns)) {
    if (source[column] != total)
      return ctx.invalid("ngram_indexes names " + Twine(column) + " twice");
    source[column] = gram;
  }
  all = b.concat({all, b.splat(b.getF32Type(), {table[0], b.size(1)}, 0)}, 1);
  Value result = GatherOp::create(b, all, constantInts(b, source), 1);
  return ctx.result(rank == 1 ? b.reshape(result, {b.size(width)}) : result);
}

} // namespace

void tc::populateONNXTfIdf(OpRegistrar &onOp) { onOp("TfIdfVectorizer", 9, tfIdfVectorizer); }
