//===- ONNXEinsum.cpp - Einsum of ONNX ----------------------------------------------------------------------------===//
//
// Operands are multiplied from left to right, each step one dot_general: labels that nothing later needs are
// contracted, labels of both sides that are needed are batch dims. A label that one operand alone has and nobody needs
// is summed before; one that an operand has twice is its diagonal. Dims of an ellipsis are labels too, below 0.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include <map>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

using Labels = SmallVector<int>;

/// A tensor whose dims have labels.
struct Term {
  Value value;
  Labels labels;
};

/// Labels of one operand's text; the ellipsis becomes labels -count .. -1.
FailureOr<Labels> parseLabels(NodeContext &ctx, StringRef text, int64_t ellipsis) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ')
      continue;
    if (text.substr(i).starts_with("...") && !seen) {
      for (int64_t d = -ellipsis; d < 0; ++d)
        labels.push_back(int(d));
      seen = true;
      i += 2;
    } else if (llvm::isAlpha(text[i])) {
      labels.push_back(text[i]);
    } else {
      return ctx.invalid("the equation has \"" + text.substr(i, 1) + "\" at a place where a letter is expected");
    }
  }
  return labels;
}

/// Sums over the dims whose label is in none of `needed`, and takes diagonals.
void simplify(PrimBuilder &b, Term &term, llvm::function_ref<bool(int)> needed) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = term.labels.size(); j-- > i + 1;)
      if (term.labels[i] == term.labels[j]) {
        Sizes sizes = getSizes(term.value);
        Value same = b.compare(CompareKind::EQ, b.iota(b.getI64Type(), sizes, i), b.iota(b.getI64Type(), sizes, j));
        term.value = b.reduce(ReduceKind::Sum, b.select(same, term.value, b.splatLike(term.value, 0)), {int64_t(j)});
        term.labels.erase(term.labels.begin() + j);
      }
  SmallVector<int64_t> summed;
  Labels kept;
  for (auto [i, label] : llvm::enumerate(term.labels))
    if (needed(label))
      kept.push_back(label);
    else
      summed.push_back(i);
  term.value = b.reduce(ReduceKind::Sum, term.value, summed);
  term.labels = kept;
}

Term multiply(PrimBuilder &b, const Term &lhs, const Term &rhs, llvm::function_ref<bool(int)> needed) {
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  Labels batch, left, right;
  for (auto [i, label] : llvm::enumerate(lhs.labels)) {
    auto found = llvm::find(rhs.labels, label);
    if (found == rhs.labels.end()) {
      left.push_back(label);
      continue;
    }
    int64_t other = found - rhs.labels.begin();
    if (needed(label)) {
      lhsBatch.push_back(i);
      rhsBatch.push_back(other);
      batch.push_back(label);
    } else {
      lhsContract.push_back(i);
      rhsContract.push_back(other);
    }
  }
  for (int label : rhs.labels)
    if (!llvm::is_contained(lhs.labels, label))
      right.push_back(label);
  Term result;
  result.value = DotGeneralOp::create(b, lhs.value, rhs.value, lhsBatch, rhsBatch, lhsContract, rhsContract);
  for (const Labels &part : {batch, left, right})
    llvm::append_range(result.labels, part);
  return result;
}

LogicalResult einsum(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  std::string equation = ctx.getString("equation", "");
  auto [operandsText, resultText] = StringRef(equation).split("->");
  bool isExplicit = StringRef(equation).contains("->");
  SmallVector<StringRef> parts;
  operandsText.split(parts, ',');
  if (parts.size() != ctx.numOperands())
    return ctx.invalid("the equation \"" + equation + "\" has " + Twine(parts.size()) + " operands, the node " +
                       Twine(ctx.numOperands()));
  int64_t most = 0;
  SmallVector<Term> terms;
  for (auto [i, text] : llvm::enumerate(parts)) {
    int64_t letters = llvm::count_if(text, [](char c) { return llvm::isAlpha(c); }), rank = b.rankOf(ctx.operand(i));
    int64_t ellipsis = text.contains("...") ? rank - letters : 0;
    FailureOr<Labels> labels = parseLabels(ctx, text, std::max<int64_t>(ellipsis, 0));
    if (failed(labels))
      return failure();
    if (int64_t(labels->size()) != rank || b.elementOf(ctx.operand(i)) != b.elementOf(ctx.operand(0)))
      return ctx.invalid("\"" + text.trim() + "\" does not fit operand " + describe(ctx.operand(i)));
    most = std::max(most, ellipsis);
    terms.push_back({ctx.operand(i), *labels});
  }
  Labels wanted;
  if (isExplicit) {
    FailureOr<Labels> labels = parseLabels(ctx, resultText, most);
    if (failed(labels))
      return failure();
    wanted = *labels;
  } else { // the ellipsis, then the letters that stand once, sorted
    std::map<int, int> uses;
    for (const Term &term : terms)
      for (int label : term.labels)
        ++uses[label];
    for (auto [label, count] : uses)
      if (label < 0 || count == 1)
        wanted.push_back(label);
  }

  // One size for each label; sizes of 1 broadcast.
  std::map<int, AffineExpr> sizes;
  for (const Term &term : terms)
    for (auto [label, size] : llvm::zip_equal(term.labels, getSizes(term.value))) {
      auto [known, isNew] = sizes.try_emplace(label, size);
      if (isNew)
        continue;
      FailureOr<Sizes> common = ctx.broadcastSizes({{known->second}, {size}});
      if (failed(common))
        return failure();
      known->second = common->front();
    }
  for (int label : wanted)
    if (!sizes.count(label) || llvm::count(wanted, label) > 1)
      return ctx.invalid("the equation \"" + equation + "\" asks for a label that no operand has, or for one twice");
  for (Term &term : terms) {
    Sizes full = llvm::map_to_vector(term.labels, [&](int label) { return sizes[label]; });
    term.value = b.broadcastTo(term.value, full);
  }

  auto neededAfter = [&](size_t last, int label) {
    return llvm::is_contained(wanted, label) ||
           llvm::any_of(ArrayRef(terms).drop_front(last + 1),
                        [&](const Term &term) { return llvm::is_contained(term.labels, label); });
  };
  Term result = terms[0];
  simplify(b, result, [&](int label) { return neededAfter(0, label); });
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels before = result.labels;
    simplify(b, terms[i], [&](int label) { return llvm::is_contained(before, label) || neededAfter(i, label); });
    result = multiply(b, result, terms[i], [&](int label) { return neededAfter(i, label); });
  }
  SmallVector<int64_t> permutation;
  for (int label : wanted)
    permutation.push_back(llvm::find(result.labels, label) - result.labels.begin());
  return ctx.result(b.transpose(result.value, permutation));
}

} // namespace

void tc::populateONNXEinsum(OpRegistrar &onOp) { onOp("Einsum", 12, einsum); }
