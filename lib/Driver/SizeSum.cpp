//===- SizeSum.cpp - sums of many size expressions ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "SizeSum.h"

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Support/Saturate.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;

/// Terms that are shown.
static constexpr size_t kMostTerms = 6;

void driver::SizeSum::add(AffineExpr expr, ArrayAttr symbols, int64_t factor) {
  if (auto sum = dyn_cast<AffineBinaryOpExpr>(expr)) {
    if (sum.getKind() == AffineExprKind::Add) {
      add(sum.getLHS(), symbols, factor);
      return add(sum.getRHS(), symbols, factor);
    }
    if (auto constant = dyn_cast<AffineConstantExpr>(sum.getRHS());
        sum.getKind() == AffineExprKind::Mul && constant && constant.getValue() != 0)
      return add(sum.getLHS(), symbols, saturatingMul(factor, constant.getValue()));
  }
  auto likely = [&](unsigned position) {
    return getLikelySize(getAffineSymbolExpr(position, expr.getContext()), symbols, usual::kSymbol);
  };
  // The names of a product in order, so that n * m is m * n.
  std::string name;
  double value = double(factor);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    factor = saturatingMul(factor, constant.getValue());
    value = double(factor);
  } else {
    SmallVector<std::string> names;
    bool isProduct = true;
    auto collect = [&](auto &self, AffineExpr part) -> void {
      if (auto product = dyn_cast<AffineBinaryOpExpr>(part); product && product.getKind() == AffineExprKind::Mul) {
        self(self, product.getLHS());
        self(self, product.getRHS());
      } else if (auto symbol = dyn_cast<AffineSymbolExpr>(part)) {
        names.push_back(prim::formatSize(symbol, symbols));
        value *= double(likely(symbol.getPosition()));
      } else {
        isProduct = false;
      }
    };
    collect(collect, expr);
    llvm::sort(names);
    name = isProduct ? llvm::join(names, " * ") : "(" + prim::formatSize(expr, symbols) + ")";
    SmallVector<AffineExpr> sizes;
    for (unsigned position : host::getSymbols(expr)) {
      likelySizes[prim::formatSize(getAffineSymbolExpr(position, expr.getContext()), symbols)] = likely(position);
      sizes.resize(std::max<size_t>(sizes.size(), position + 1), getAffineConstantExpr(0, expr.getContext()));
      sizes[position] = getAffineConstantExpr(likely(position), expr.getContext());
    }
    if (!isProduct)
      value = double(factor) * double(prim::getConstantSize(expr.replaceSymbols(sizes)).value_or(0));
  }
  Term &term = terms[name];
  term.factor = saturatingAdd(term.factor, factor);
  term.likely += value;
}

llvm::json::Value driver::SizeSum::toJson() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second.factor;
  std::string text;
  if (terms.size() <= kMostTerms) {
    for (const auto &[name, term] : llvm::reverse(terms)) { // the constant last
      if (term.factor == 0)
        continue;
      text += text.empty() ? "" : " + ";
      text += name;
      if (name.empty() || term.factor != 1)
        text += (name.empty() ? "" : " * ") + std::to_string(term.factor);
    }
    return llvm::json::fixUTF8(text.empty() ? "0" : text);
  }
  double likely = 0;
  for (const auto &[name, term] : terms)
    likely += term.likely;
  for (const auto &[name, size] : likelySizes)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(size);
  return llvm::json::fixUTF8(llvm::formatv("{0:f0} where {1}", likely, text).str());
}
