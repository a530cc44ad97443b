//===- UnifySlices.cpp - regions that differ in where they read are one kernel ------------------------------------===//
//
// A model that takes a tensor apart in hundreds of slices computes the same of each, at another place. Regions that are
// equal but for the starts of their slices read them as data, so that phase kernel makes one kernel of all:
//
//   kernel.region(%a = %x) {                         %c = prim.constant dense<[17]>
//     %s = prim.slice %a from (17, 0)           -->  kernel.region(%a = %x, %b = %c) {
//     ..                                               %i = prim.reshape (prim.slice %b from (0))
//                                                      %s = prim.dynamic_slice %a from (%i, 0)
//
// Only where many regions gain, and not with products, windows and recurrent layers, whose code is planned around what
// they read.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/RegionInfo.h"
#include "tc/Analysis/RegionText.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace tc {
#define GEN_PASS_DEF_UNIFYSLICESPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;

namespace {

// From so many regions on, their kernels' compile time is worth what a load and a clamp of the start cost in each.
constexpr size_t kLeastRegions = 8;

using Starts = SmallVector<AffineExpr>; // of all slices in a region, dim by dim

/// The slices of a region whose starts may become data, in order.
SmallVector<prim::SliceOp> findSlices(kernel::RegionOp region) {
  SmallVector<prim::SliceOp> slices;
  for (auto slice : region.getBody().front().getOps<prim::SliceOp>()) {
    const SmallVector<AffineExpr> sizes = prim::getSizes(slice.getResult());
    if (llvm::all_of(llvm::zip_equal(slice.getSteps(), sizes), [](auto dim) {
          auto [step, size] = dim;
          return step > 0 && (step == 1 || prim::getConstantSize(size).value_or(0) > 0);
        }))
      slices.push_back(slice);
  }
  return slices;
}

/// Whether code for a region does not depend much on where its slices begin.
bool isPlain(kernel::RegionOp region) {
  return llvm::none_of(region.getBody().front().without_terminator(), [](Operation &op) {
    const prim::Role role = prim::getRole(&op);
    return role == prim::Role::Contraction || role == prim::Role::Window || isa<prim::RnnOp>(op);
  });
}

/// The region's text without the starts of `slices`, and whatever its symbols' numbers.
std::string describe(kernel::RegionOp region, ArrayRef<prim::SliceOp> slices) {
  const llvm::SmallPtrSet<Operation *, 8> cut(slices.begin(), slices.end());
  const std::string text = printRegion(region, [&](Operation *op, llvm::raw_ostream &os, const OpPrintingFlags &flags) {
    if (!cut.contains(op))
      return false;
    auto slice = cast<prim::SliceOp>(op);
    slice.getResult().printAsOperand(os, flags);
    os << "slice ";
    slice.getOperand().printAsOperand(os, flags);
    os << ' ' << slice.getResult().getType();
    llvm::interleaveComma(slice.getSteps(), os << ' ');
    return true;
  });
  std::string numbered;
  llvm::raw_string_ostream out(numbered);
  numberSymbols(text, out);
  return numbered;
}

Starts startsOf(ArrayRef<prim::SliceOp> slices) {
  Starts starts;
  for (prim::SliceOp slice : slices)
    llvm::append_range(starts, slice.getStarts().getResults());
  return starts;
}

/// The region with those of its `starts` that `varies` names as one more input.
void readStarts(kernel::RegionOp region, ArrayRef<AffineExpr> starts, ArrayRef<bool> varies) {
  OpBuilder b(region);
  const Location loc = region.getLoc();
  const SmallVector<prim::SliceOp> slices = findSlices(region);
  Starts data;
  for (auto [start, isData] : llvm::zip_equal(starts, varies))
    if (isData)
      data.push_back(start);
  Value given = PrimBuilder(b, region).sizesValue(data);

  SmallVector<Value> inputs(region.getInputs());
  inputs.push_back(given);
  kernel::FusionAttr fusion = region.getFusionAttr();
  if (fusion) {
    SmallVector<Attribute> reads(fusion.getReads().getValue());
    reads.push_back(b.getStringAttr(stringify(AccessClass::Scalar)));
    fusion = kernel::FusionAttr::get(b.getContext(), fusion.getOps(), b.getArrayAttr(reads), fusion.getStopped());
  }
  auto replacement = kernel::RegionOp::create(b, loc, region.getResultTypes(), inputs, region.getScheduleAttr(),
                                              region.getCasesAttr(), region.getCostAttr(), fusion);
  replacement->setDiscardableAttrs(region->getDiscardableAttrDictionary());
  replacement.getBody().takeBody(region.getBody());
  const Value argument = replacement.getBody().front().addArgument(given.getType(), loc);
  region.replaceAllUsesWith(replacement.getOutputs());
  region.erase();

  int64_t number = 0, place = 0;
  for (prim::SliceOp slice : slices) {
    OpBuilder before(slice);
    PrimBuilder inner(before, slice);
    SmallVector<Value> at;
    bool isData = false;
    for (AffineExpr start : slice.getStarts().getResults()) {
      if (varies[place++]) {
        at.push_back(inner.take(argument, 0, number++));
        isData = true;
      } else {
        at.push_back(inner.sizeValue(start));
      }
    }
    if (!isData)
      continue;
    // From the first to the last element, and of these every step-th.
    SmallVector<AffineExpr> sizes = prim::getSizes(slice.getResult()), spans;
    for (auto [size, step] : llvm::zip_equal(sizes, slice.getSteps()))
      spans.push_back(step == 1 ? size : inner.size((*prim::getConstantSize(size) - 1) * step + 1));
    Value part = prim::DynamicSliceOp::create(inner, prim::makeType(inner.elementOf(slice.getResult()), spans),
                                              slice.getOperand(), at);
    part = inner.slice(part, SmallVector<AffineExpr>(sizes.size(), inner.size(0)), slice.getSteps(), sizes);
    slice.getResult().replaceAllUsesWith(part);
    slice.erase();
  }
}

struct UnifySlicesPass : tc::impl::UnifySlicesPassBase<UnifySlicesPass> {
  void runOnOperation() override {
    llvm::StringMap<size_t> numbers; // of groups, by what their regions have in common
    SmallVector<SmallVector<std::pair<kernel::RegionOp, Starts>>> groups;
    getOperation().walk([&](kernel::RegionOp region) {
      const SmallVector<prim::SliceOp> slices = findSlices(region);
      if (slices.empty() || !isPlain(region))
        return;
      const size_t number = numbers.try_emplace(describe(region, slices), groups.size()).first->second;
      if (number == groups.size())
        groups.emplace_back();
      groups[number].emplace_back(region, startsOf(slices));
    });
    for (const auto &regions : groups) {
      llvm::SetVector<AffineMap> different;
      for (auto &[region, starts] : regions)
        different.insert(prim::makeSizeMap(&getContext(), starts));
      if (different.size() < kLeastRegions)
        continue;
      const ArrayRef<AffineExpr> first = different.front().getResults();
      SmallVector<bool> varies(first.size(), false);
      for (AffineMap starts : different)
        for (auto [here, there, isData] : llvm::zip_equal(starts.getResults(), first, varies))
          isData |= here != there;
      for (auto &[region, starts] : regions)
        readStarts(region, starts, varies);
    }
  }
};

} // namespace
