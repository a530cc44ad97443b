//===- ONNXEinsum.cpp - Einsum of ONNX ----------------------------------------------------------------------------===//
//
// Operands are multiplied in pairs, each step one dot_general: labels that nothing else needs are contracted, labels of
// both sides that are needed are batch dims. A label that one operand alone has and nobody needs is summed before; one
// that an operand has twice is its diagonal. Dims of an ellipsis are labels too, below 0. Which pairs come first is
// the cheapest of all orders for up to `kExhaustiveOperands` operands, the cheapest next step beyond.
// Source: R. N. C. Pfeifer, J. Haegeman, F. Verstraete, "Faster identification of optimal contraction sequences for
// tensor networks", 2014 (dynamic programming over sets of operands).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

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

/// The elements at equal positions along dims `i` < `j`, of equal sizes, in the place of dim i. In the plane of both,
/// in row-major order, each diagonal element is the size of a row and one behind the one before.
Value takeDiagonal(PrimBuilder &b, Value v, int64_t i, int64_t j) {
  Sizes sizes = getSizes(v);
  const AffineExpr n = sizes[i];
  const int64_t rank = sizes.size();
  SmallVector<int64_t> planeFirst{i, j}, back;
  for (int64_t d = 0; d < rank; ++d)
    if (d != i && d != j)
      planeFirst.push_back(d);
  if (std::optional<int64_t> known = getConstantSize(n); !known || *known < 1 || *known > (1 << 30)) {
    Value row = b.unsqueeze(b.iota(b.getI64Type(), {n}, 0), 1);
    Sizes out(sizes);
    out.erase(out.begin() + j);
    out.erase(out.begin() + i);
    out.insert(out.begin(), n);
    v = GatherNDOp::create(b, makeType(b.elementOf(v), out), b.transpose(v, planeFirst), b.concat({row, row}, 1), 0);
    for (int64_t d = 0; d < rank - 1; ++d)
      back.push_back(d < i ? d + 1 : d == i ? 0 : d);
    return b.transpose(v, back);
  }
  const int64_t size = *getConstantSize(n);
  std::rotate(planeFirst.begin(), planeFirst.begin() + 2, planeFirst.end());
  Sizes flat;
  for (int64_t d : ArrayRef(planeFirst).drop_back(2))
    flat.push_back(sizes[d]);
  flat.push_back(b.size(size * size));
  v = b.sliceDim(b.reshape(b.transpose(v, planeFirst), flat), rank - 2, b.size(0), n, size + 1);
  for (int64_t d = 0; d < rank - 1; ++d)
    back.push_back(d < i ? d : d == i ? rank - 2 : d - 1);
  return b.transpose(v, back);
}

/// Sums over the dims whose label is in none of `needed`, and takes diagonals.
void simplify(PrimBuilder &b, Term &term, llvm::function_ref<bool(int)> needed) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = term.labels.size(); j-- > i + 1;)
      if (term.labels[i] == term.labels[j]) {
        term.value = takeDiagonal(b, term.value, i, j);
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

/// From here on orders are chosen step by step: 3^n splits of sets are too many.
constexpr size_t kExhaustiveOperands = 9;
/// What a dim of unknown size counts as.
constexpr double kUnknownSize = 64;
/// An element of a result that is written and read again costs as much as so many multiply-adds.
constexpr double kElementCost = 8;
/// Products of constants up to so many elements are computed by the compiler: free.
constexpr double kFreeConstant = 1 << 20;

/// Finds the order in which the operands of one einsum are multiplied. Sets of operands are bit masks.
class Order {
public:
  Order(ArrayRef<Term> terms, ArrayRef<int> wanted, const std::map<int, AffineExpr> &sizes)
      : terms(terms), wanted(wanted), sizes(sizes) {}

  /// Does the result or an operand outside of `set` have the label?
  bool isNeeded(uint64_t set, int label) const {
    if (llvm::is_contained(wanted, label))
      return true;
    for (auto [i, term] : llvm::enumerate(terms))
      if (!(set >> i & 1) && llvm::is_contained(term.labels, label))
        return true;
    return false;
  }

  /// Cost of multiplying the products of two disjoint sets.
  double costOf(uint64_t lhs, uint64_t rhs) const {
    std::set<int> both = labelsOf(lhs), right = labelsOf(rhs);
    both.insert(right.begin(), right.end());
    const double result = elementsOf(labelsOf(lhs | rhs));
    if (isConstant(lhs | rhs) && result <= kFreeConstant)
      return 0;
    return elementsOf(both) + kElementCost * result;
  }

  /// The best split of each set of two and more operands that the product of all of them comes from.
  std::map<uint64_t, uint64_t> choose() const {
    return terms.size() <= kExhaustiveOperands ? chooseExhaustively() : chooseGreedily();
  }

private:
  std::map<uint64_t, uint64_t> chooseExhaustively() const {
    const uint64_t end = uint64_t(1) << terms.size();
    std::vector<double> cost(end, 0);
    std::map<uint64_t, uint64_t> split;
    for (uint64_t set = 1; set < end; ++set) {
      if (llvm::isPowerOf2_64(set))
        continue;
      double best = std::numeric_limits<double>::infinity();
      const uint64_t lowest = set & -set;
      // Parts that hold the lowest operand; among equals the one of the most operands, which goes from left to right.
      for (uint64_t part = (set - 1) & set; part; part = (part - 1) & set)
        if (part & lowest) {
          const double here = cost[part] + cost[set & ~part] + costOf(part, set & ~part);
          const bool isLess = here < best, isEqual = here == best;
          if (isLess || (isEqual && isSmallerRest(set, part, split[set])))
            best = here, split[set] = part;
        }
      cost[set] = best;
    }
    return split;
  }

  /// Is what `part` leaves of `set` fewer operands than what `other` leaves, or a later one?
  static bool isSmallerRest(uint64_t set, uint64_t part, uint64_t other) {
    const int left = llvm::popcount(set & ~part), otherLeft = llvm::popcount(set & ~other);
    return left < otherLeft || (left == otherLeft && (set & ~part) > (set & ~other));
  }

  std::map<uint64_t, uint64_t> chooseGreedily() const {
    SmallVector<uint64_t> open;
    for (size_t i = 0; i < terms.size(); ++i)
      open.push_back(uint64_t(1) << i);
    std::map<uint64_t, uint64_t> split;
    while (open.size() > 1) {
      size_t lhs = 0, rhs = 1;
      double best = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < open.size(); ++i)
        for (size_t j = i + 1; j < open.size(); ++j)
          if (double cost = costOf(open[i], open[j]); cost < best)
            best = cost, lhs = i, rhs = j;
      split[open[lhs] | open[rhs]] = open[lhs];
      open[lhs] |= open[rhs];
      open.erase(open.begin() + rhs);
    }
    return split;
  }

  /// Labels of the product of a set that something outside needs.
  std::set<int> labelsOf(uint64_t set) const {
    std::set<int> labels;
    for (auto [i, term] : llvm::enumerate(terms))
      if (set >> i & 1)
        for (int label : term.labels)
          if (isNeeded(set, label))
            labels.insert(label);
    return labels;
  }

  double elementsOf(const std::set<int> &labels) const {
    double elements = 1;
    for (int label : labels) {
      auto constant = dyn_cast<AffineConstantExpr>(sizes.at(label));
      elements *= constant ? double(constant.getValue()) : kUnknownSize;
    }
    return elements;
  }

  bool isConstant(uint64_t set) const {
    for (auto [i, term] : llvm::enumerate(terms))
      if (set >> i & 1 && !term.value.getDefiningOp<ConstantOp>())
        return false;
    return true;
  }

  ArrayRef<Term> terms;
  ArrayRef<int> wanted;
  const std::map<int, AffineExpr> &sizes;
};

/// The product of a set of operands.
Term product(PrimBuilder &b, ArrayRef<Term> terms, const Order &order, const std::map<uint64_t, uint64_t> &split,
             uint64_t set) {
  auto needed = [&](int label) { return order.isNeeded(set, label); };
  if (llvm::isPowerOf2_64(set)) {
    Term term = terms[llvm::countr_zero(set)];
    simplify(b, term, needed);
    return term;
  }
  const uint64_t part = split.at(set);
  Term lhs = product(b, terms, order, split, part), rhs = product(b, terms, order, split, set & ~part);
  return multiply(b, lhs, rhs, needed);
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

  if (terms.size() > 64)
    return ctx.invalid("an einsum of more than 64 operands is not supported");
  const Order order(terms, wanted, sizes);
  const uint64_t all = ~uint64_t(0) >> (64 - terms.size());
  const Term result = product(b, terms, order, order.choose(), all);
  SmallVector<int64_t> permutation;
  for (int label : wanted)
    permutation.push_back(llvm::find(result.labels, label) - result.labels.begin());
  return ctx.result(b.transpose(result.value, permutation));
}

} // namespace

void tc::populateONNXEinsum(OpRegistrar &onOp) { onOp("Einsum", 12, einsum); }
