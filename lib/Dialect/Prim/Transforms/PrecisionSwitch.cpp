//===- PrecisionSwitch.cpp - products whose precision is an input of the run --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/PrecisionSwitch.h"

#include "Dequantised.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Support/NodePattern.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

static constexpr Rounding kRoundings[] = {Rounding::Bf16, Rounding::Tf32, Rounding::F16};

static constexpr StringRef kNames[kRoundingCount] = {"f32", "bf16", "tf32", "f16"};

StringRef tc::prim::getName(Rounding rounding) { return kNames[unsigned(rounding)]; }

std::optional<Rounding> tc::prim::parseRounding(StringRef name) {
  const auto *found = llvm::find(kNames, name);
  return found == std::end(kNames) ? std::nullopt : std::optional(Rounding(found - std::begin(kNames)));
}

bool tc::prim::roundsOperand(Operation *product, Value operand, Rounding rounding) {
  switch (rounding) {
  case Rounding::F32:
    return false;
  case Rounding::Bf16:
    return isNarrowable(product);
  case Rounding::Tf32:
    return true;
  case Rounding::F16:
    return isMadeOfConstants(operand);
  }
  llvm_unreachable("no rounding");
}

namespace {

/// `v` of f32 rounded, as f32.
Value emitRounded(PrimBuilder &b, Value v, Rounding rounding) {
  if (rounding != Rounding::Tf32)
    return b.convert(b.convert(v, rounding == Rounding::Bf16 ? Type(b.getBF16Type()) : b.getF16Type()), b.getF32Type());
  // To 11 significant bits, halves away from zero, as cvt.rna.tf32: the other 13 are cut off.
  constexpr int64_t kHalf = 1 << 12, kCut = -(1 << 13);
  Value bits = BitcastOp::create(b, v, b.getI32Type());
  bits = b.binary<AndOp>(b.binary<AddOp>(bits, kHalf), kCut);
  return BitcastOp::create(b, bits, b.getF32Type());
}

struct SwitchedProduct {
  Operation *op;
  SmallVector<StringRef> names;
  size_t group = 0;
  std::array<SmallVector<bool, 2>, kRoundingCount> rounds; ///< each operand
};

class Switcher {
public:
  Switcher(func::FuncOp function, ArrayRef<Rounding> roundings, const NodeValues &fixed)
      : function(function), roundings(roundings), fixed(fixed) {}

  std::vector<ProductGroup> run() {
    function.walk([&](Operation *op) {
      auto isF32 = [](Value v) { return PrimBuilder::elementOf(v).isF32(); };
      if (isa<DotGeneralOp, ConvOp>(op) && llvm::all_of(op->getOperands(), isF32) && isF32(op->getResult(0)))
        products.push_back({op, base::getNodeNames(op->getLoc()), 0, {}});
    });
    group();
    for (SwitchedProduct &product : products)
      describe(product);
    Builder attrs(function.getContext());
    auto type = RankedTensorType::get({int64_t(groups.size())}, attrs.getI32Type());
    auto ofArgument = attrs.getDictionaryAttr(attrs.getNamedAttr("tc.name", attrs.getStringAttr("precision_switch")));
    const unsigned number = function.getNumArguments();
    if (failed(function.insertArgument(number, type, ofArgument, function.getLoc())))
      llvm_unreachable("an argument can be added at the end");
    for (SwitchedProduct &product : products)
      rewrite(product, function.getArgument(number));
    return std::move(groups);
  }

private:
  /// Nodes whose products another's name names, too, cannot have precisions of their own.
  void group() {
    llvm::EquivalenceClasses<StringRef> together;
    auto isFixed = [&](SwitchedProduct &product) { return !fixed.find(product.names, "").empty(); };
    for (SwitchedProduct &product : products)
      if (!isFixed(product))
        for (StringRef name : product.names)
          together.unionSets(product.names.front(), name);
    llvm::MapVector<StringRef, size_t> known;
    std::vector<llvm::SetVector<StringRef>> names, cover;
    for (SwitchedProduct &product : products) {
      const StringRef rounding = fixed.find(product.names, "");
      const StringRef key = !rounding.empty()       ? rounding
                            : product.names.empty() ? StringRef()
                                                    : together.getLeaderValue(product.names.front());
      // Of those whose precision is given there is a group for each: nobody chooses.
      auto [found, isNew] = rounding.empty() ? known.try_emplace(key, groups.size()) : std::pair(known.end(), true);
      product.group = isNew ? groups.size() : found->second;
      if (isNew) {
        groups.emplace_back();
        names.emplace_back();
        cover.emplace_back();
        groups.back().isFixed = !rounding.empty();
        groups.back().fixed = parseRounding(rounding).value_or(Rounding::F32);
      }
      names[product.group].insert_range(product.names);
      if (!product.names.empty() &&
          llvm::none_of(product.names, [&](StringRef name) { return cover[product.group].contains(name); }))
        cover[product.group].insert(product.names.front());
    }
    for (auto [i, group] : llvm::enumerate(groups)) {
      group.names.assign(names[i].begin(), names[i].end());
      group.cover.assign(cover[i].begin(), cover[i].end());
    }
  }

  /// Before anything changes: what is made of constants is no longer once it is switched.
  void describe(SwitchedProduct &product) {
    ProductGroup &group = groups[product.group];
    for (Rounding rounding : kRoundings)
      for (Value operand : product.op->getOperands()) {
        const bool rounds = roundsOperand(product.op, operand, rounding);
        product.rounds[unsigned(rounding)].push_back(rounds);
        group.can[unsigned(rounding)] |= rounds;
      }
    if (!group.can[unsigned(Rounding::Bf16)] && group.whyNot.empty())
      group.whyNot = whyNotNarrow(product.op).str();
    constexpr double kBytes = 4;
    group.flops += double(evaluateLikely(cast<CostOpInterface>(product.op).getFlops(), product.op, usual::kSymbol));
    for (Value operand : product.op->getOperands()) {
      const double bytes = kBytes * getLikelyCount(getSizes(operand), product.op, usual::kSymbol);
      group.bytes += bytes;
      group.constantBytes += isMadeOfConstants(operand) ? bytes : 0;
    }
  }

  void rewrite(const SwitchedProduct &product, Value all) {
    OpBuilder before(product.op);
    PrimBuilder b(before, product.op);
    const Value own = b.take(all, /*axis=*/0, int64_t(product.group));
    for (OpOperand &operand : product.op->getOpOperands()) {
      const Value exact = operand.get();
      Value chosen = exact;
      const ProductGroup &group = groups[product.group];
      for (Rounding rounding : group.isFixed ? ArrayRef(group.fixed) : roundings) {
        if (rounding == Rounding::F32 || !product.rounds[unsigned(rounding)][operand.getOperandNumber()])
          continue;
        const Value isChosen = b.compare(CompareKind::EQ, own, double(rounding));
        chosen = b.select(b.broadcastTo(isChosen, getSizes(exact)), emitRounded(b, exact, rounding), chosen);
      }
      operand.set(chosen);
    }
  }

  func::FuncOp function;
  ArrayRef<Rounding> roundings;
  const NodeValues &fixed;
  std::vector<SwitchedProduct> products;
  std::vector<ProductGroup> groups;
};

} // namespace

std::vector<ProductGroup> tc::prim::addPrecisionSwitch(func::FuncOp function, ArrayRef<Rounding> roundings,
                                                       const NodeValues &fixed) {
  return Switcher(function, roundings, fixed).run();
}
