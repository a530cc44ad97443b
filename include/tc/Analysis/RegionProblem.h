//===- RegionProblem.h - what a region computes, found out once ---------------------------------------*- C++ -*-===//
//
// Strategies ask alike: what is the region built around, what follows it, is it a product, a convolution, a reduction?
// A RegionProblem is made once for a region and asked by all of them; each answer is found when it is first asked for,
// and kept. References to answers hold as long as the RegionProblem does.
//
// Answers are about the region's body, but for isConstant and isStatic: a pass that changes the body makes another
// RegionProblem. One thread at a time.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_REGIONPROBLEM_H
#define TC_ANALYSIS_REGIONPROBLEM_H

#include "tc/Analysis/Anchor.h"
#include "tc/Analysis/Convolution.h"
#include "tc/Analysis/GpuLimits.h"
#include "tc/Analysis/Product.h"
#include "tc/Analysis/Reduction.h"

#include "llvm/ADT/MapVector.h"

#include <memory>

namespace tc {

class RegionProblem {
public:
  explicit RegionProblem(kernel::RegionOp region, GpuLimits limits = {}) : region(region), limits(limits) {}
  RegionProblem(const RegionProblem &) = delete;
  RegionProblem &operator=(const RegionProblem &) = delete;

  kernel::RegionOp getOp() const { return region; }
  mlir::MLIRContext *getContext() const { return getOp().getContext(); }
  const GpuLimits &getLimits() const { return limits; }
  mlir::Block &getBody() const { return getOp().getBody().front(); }
  /// The region's outputs in its body.
  mlir::ValueRange getYielded() const { return getBody().getTerminator()->getOperands(); }
  /// Whether input `input` is a constant.
  bool isConstant(unsigned input) const {
    return getOp().getInputs()[input].getDefiningOp<prim::ConstantOp>() != nullptr;
  }

  /// Whether input `input` is computed from static inputs (prim.static) alone, maybe with constants.
  bool isStatic(unsigned input) const;

  /// isConstant, to be handed on.
  auto constants() const {
    return [this](unsigned input) { return isConstant(input); };
  }

  /// The anchor; null if the region has none or several.
  mlir::Operation *findAnchor() const;
  template <typename OpTy> OpTy findAnchor() const { return llvm::dyn_cast_or_null<OpTy>(findAnchor()); }
  /// The one op of this type in the region's body; null if it has none, or several.
  template <typename OpTy> OpTy findOnly() const {
    auto ops = getBody().getOps<OpTy>();
    return llvm::hasSingleElement(ops) ? *ops.begin() : OpTy();
  }
  /// The op of this type whose result is the region's only output; null if there is none.
  template <typename OpTy> OpTy findYielded() const {
    return llvm::hasSingleElement(getYielded()) ? getYielded().front().getDefiningOp<OpTy>() : OpTy();
  }

  /// The anchor as a product, or as a convolution (one that only mixes channels is both); null if it is none.
  const Product *findProduct() const;
  const Convolution *findConvolution() const;
  /// The region's one prim.reduce; null if it has none, or several.
  const Reduction *findReduction() const;

  /// What the region computes from `result`; null if that is no epilogue (Epilogue::analyze).
  const Epilogue *findEpilogue(mlir::Value result) const;
  /// The same, and null if an output does not depend on `result`.
  const Epilogue *findWholeEpilogue(mlir::Value result) const;

private:
  /// An answer that was found already, or not yet.
  template <typename T> using Answer = std::optional<std::optional<T>>;
  template <typename T, typename Find> static const T *answer(Answer<T> &known, Find find) {
    if (!known)
      known.emplace(find());
    return *known ? &**known : nullptr;
  }

  mutable kernel::RegionOp region; // its accessors are not const
  GpuLimits limits;
  mutable std::optional<mlir::Operation *> anchor;
  mutable Answer<Product> product;
  mutable Answer<Convolution> convolution;
  mutable Answer<Reduction> reduction;
  /// Null: none.
  mutable llvm::SmallMapVector<mlir::Value, std::unique_ptr<Epilogue>, 4> epilogues;
};

} // namespace tc

#endif // TC_ANALYSIS_REGIONPROBLEM_H
