//===- ONNXTfIdf.cpp - TfIdfVectorizer of ONNX --------------------------------------------------------------------===//
//
// The elements of the pool get numbers in rising order, and so do the beginnings of its n-grams: a beginning of k
// elements is the number of the one of k - 1 elements and that of its last element. So the n-grams at all positions of
// the operand are found by a bisection for each of their elements, whatever the size of the pool; what is not in the
// pool has the number behind the last one, and no beginning goes on from there. For the pool [a b, a c, b c]:
//
//   elements    a = 0, b = 1, c = 2, others 3
//   beginnings  a b = (0, 1) = 0, a c = (0, 2) = 1, b c = (1, 2) = 2, others 3
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXMLSupport.h"
#include "OpRegistry.h"

#include <set>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

constexpr int64_t kMaxSkips = 255;

/// An n-gram of the pool and the column that counts it.
struct Gram {
  ArrayRef<int64_t> elements;
  int64_t column;
  int64_t beginning = 0; ///< number of its first elements
};

/// The keys in rising order, each once.
SmallVector<int64_t> makeTable(SmallVector<int64_t> keys) {
  llvm::sort(keys);
  keys.erase(llvm::unique(keys), keys.end());
  return keys;
}

int64_t indexIn(ArrayRef<int64_t> table, int64_t key) { return llvm::lower_bound(table, key) - table.begin(); }

/// The numbers of x's elements in `table`, which is not empty; its size for those that are not there.
Value emitFind(PrimBuilder &b, Value x, ArrayRef<int64_t> table) {
  int64_t count = table.size();
  Value isKnown, at = searchKeys(b, x, makeInts(b, b.getI64Type(), table), count, isKnown);
  return b.convert(b.select(isKnown, at, b.splatLike(at, double(count))), b.getI64Type());
}

/// The columns of the n-grams that begin at each position of x [N, C], with elements up to `skips` + 1 apart: a list of
/// i64 [N, C] with `width` where there is none. The grams have `shortest` elements or more.
SmallVector<Value> findGrams(PrimBuilder &b, Value x, MutableArrayRef<Gram> grams, int64_t shortest, int64_t skips,
                             int64_t width) {
  SmallVector<int64_t> elements;
  size_t longest = 0;
  for (const Gram &gram : grams) {
    llvm::append_range(elements, gram.elements);
    longest = std::max(longest, gram.elements.size());
  }
  elements = makeTable(std::move(elements));
  int64_t radix = elements.size() + 1;
  // Beginnings of each length, and the columns of the n-grams that are complete with them.
  SmallVector<SmallVector<int64_t>> tables, columns;
  for (size_t length = 1; length <= longest; ++length) {
    SmallVector<int64_t> keys;
    if (length == 1) // every element may begin something, so that they keep their numbers
      keys.assign(llvm::seq<int64_t>(0, elements.size()).begin(), llvm::seq<int64_t>(0, elements.size()).end());
    for (Gram &gram : grams)
      if (gram.elements.size() >= length) {
        int64_t element = indexIn(elements, gram.elements[length - 1]);
        gram.beginning = gram.beginning * radix + element;
        keys.push_back(gram.beginning);
      }
    tables.push_back(makeTable(std::move(keys)));
    columns.emplace_back(tables.back().size() + 1, width);
    for (Gram &gram : grams)
      if (gram.elements.size() >= length) {
        gram.beginning = indexIn(tables.back(), gram.beginning);
        if (gram.elements.size() == length)
          columns.back()[gram.beginning] = gram.column;
      }
  }

  Sizes sizes = getSizes(x);
  Value first = emitFind(b, x, elements);
  SmallVector<Value> found;
  for (int64_t distance = 1; distance <= skips + 1; ++distance) {
    // Grams that would end outside meet an element that is none.
    AffineExpr length = simplifySize(sizes[1] + int64_t(longest - 1) * distance);
    Value filled = b.pad(first, b.sizeValue(b.size(radix - 1)), {b.size(0), b.size(0)}, {sizes[0], length});
    Value at = first;
    for (int64_t k = 1; k <= int64_t(longest); ++k) {
      if (k > 1) {
        Value element = b.sliceDim(filled, 1, b.size((k - 1) * distance), sizes[1]);
        at = emitFind(b, b.add(b.binary<MulOp>(at, double(radix)), element), tables[k - 1]);
      }
      // A gram of one element has no distance.
      if (k >= shortest && (k > 1 || distance == 1))
        found.push_back(GatherOp::create(b, makeInts(b, b.getI64Type(), columns[k - 1]), at, 0));
    }
  }
  return found;
}

LogicalResult tfIdfVectorizer(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  int64_t rank = b.rankOf(x);
  auto texts = readStrings(ctx, "pool_strings");
  bool isString = texts && !texts->empty();
  if (b.isString(x) != isString)
    return ctx.invalid("needs " + Twine(isString ? "strings" : "integers") + " for its pool, but has " + describe(x));
  std::string mode = ctx.getString("mode", "");
  SmallVector<int64_t> pool = ctx.getInts("pool_int64s").value_or(SmallVector<int64_t>());
  if (isString) {
    pool.clear();
    for (const std::string &text : *texts)
      pool.push_back(b.symbols.addString(text));
  }
  SmallVector<int64_t> starts = ctx.getInts("ngram_counts").value_or(SmallVector<int64_t>());
  SmallVector<int64_t> columns = ctx.getInts("ngram_indexes").value_or(SmallVector<int64_t>());
  int64_t shortest = ctx.getInt("min_gram_length", 1), longest = ctx.getInt("max_gram_length", 1);
  int64_t skips = ctx.getInt("max_skip_count", 0);
  if (shortest < 1 || longest < shortest || skips < 0 || longest > int64_t(starts.size()))
    return ctx.invalid("min_gram_length, max_gram_length, max_skip_count and ngram_counts do not fit together");

  // Elements further apart than the operand is long meet nothing. Each distance is code of its own.
  Sizes sizes = getSizes(x);
  if (auto length = getConstantSize(sizes.back()))
    skips = std::min(skips, std::max<int64_t>(*length - 2, 0));
  if (skips > kMaxSkips)
    return ctx.unsupported("with max_skip_count " + Twine(skips) + " is not supported; at most " + Twine(kMaxSkips) +
                           " is");

  int64_t total = 0;
  SmallVector<Gram> grams; // of the lengths that count
  std::set<ArrayRef<int64_t>, bool (*)(ArrayRef<int64_t>, ArrayRef<int64_t>)> seen(
      [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  for (int64_t length = 1; length <= int64_t(starts.size()); ++length) {
    int64_t from = starts[length - 1], to = length < int64_t(starts.size()) ? starts[length] : int64_t(pool.size());
    if (from < 0 || to < from || to > int64_t(pool.size()) || (to - from) % length != 0)
      return ctx.invalid("ngram_counts do not divide the pool");
    for (int64_t at = from; at < to; at += length, ++total) {
      ArrayRef<int64_t> elements = ArrayRef<int64_t>(pool).slice(at, length);
      if (!seen.insert(elements).second)
        return ctx.invalid("the pool holds an n-gram of " + Twine(length) + " elements twice, at " + Twine(at));
      if (length >= shortest && length <= longest && total < int64_t(columns.size()))
        grams.push_back({elements, columns[total]});
    }
  }
  if (total == 0 || int64_t(columns.size()) != total)
    return ctx.invalid("ngram_indexes has " + Twine(columns.size()) + " entries for " + Twine(total) + " n-grams");
  int64_t width = *llvm::max_element(columns) + 1;
  if (*llvm::min_element(columns) < 0 || width > int64_t(1) << 24)
    return ctx.invalid("an entry of ngram_indexes is negative or above 2^24");

  Sizes rows = rank == 1 ? Sizes{b.size(1), sizes[0]} : sizes;
  x = b.reshape(b.isString(x) ? b.asWords(x, b.getI64Type()) : b.convert(x, b.getI64Type()), rows);
  Sizes wide{rows[0], b.size(width + 1)};
  Value counts = b.splat(b.getI64Type(), wide, 0);
  if (!grams.empty()) {
    Value found = b.concat(findGrams(b, x, grams, shortest, skips, width), 1);
    counts = ScatterElementsOp::create(b, counts.getType(), counts, found, b.splatLike(found, 1), 1,
                                       ReduceKindAttr::get(b.getContext(), ReduceKind::Sum));
  }
  Value result = b.convert(b.sliceDim(counts, 1, b.size(0), b.size(width)), b.getF32Type());
  if (mode == "IDF")
    result = b.min(result, b.splatLike(result, 1));
  if (auto weights = ctx.getFloats("weights"); weights && mode != "TF") {
    if (int64_t(weights->size()) != total)
      return ctx.invalid("weights has " + Twine(weights->size()) + " entries for " + Twine(total) + " n-grams");
    if (makeTable(columns).size() < columns.size())
      return ctx.unsupported("with weights is not supported where n-grams share an entry of ngram_indexes");
    SmallVector<double> factors(width, 0);
    for (auto [column, weight] : llvm::zip_equal(columns, *weights))
      factors[column] = weight;
    result = b.mul(result, b.broadcastInDims(makeFloats(b, b.getF32Type(), factors), getSizes(result), {1}));
  }
  return ctx.result(rank == 1 ? b.reshape(result, {b.size(width)}) : result);
}

} // namespace

void tc::populateONNXTfIdf(OpRegistrar &onOp) { onOp("TfIdfVectorizer", 9, tfIdfVectorizer); }
