//===- RoundProducts.cpp - products of f32 in less precision, as the user chose -----------------------------------===//
//
// precision bf16: both operands of matrix products and convolutions are rounded to bf16; products of bf16 are exact in
// f32, and sums stay f32:
//
//   dot(x, w) : f32   ->   dot(convert(x), convert(w)) : (bf16, bf16) -> f32
//
// precision f16: constant operands are stored in f16; arithmetic stays f32:
//
//   dot(x, w) : f32   ->   dot(x, convert(w)) : (f32, f16) -> f32
//
// Rounding stands where the value is made, in front of what only moves it, so that one rounded value serves all its
// readers, and whoever computes it writes it rounded; that of constants folds. Run tc-fold-constants after.
//
// What stays f32: attention and recurrent layers, which are composites; products whose depth is unknown or 1; for bf16
// convolutions whose filter is computed at run time, and those with few channels for each group.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dequantised.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Transforms/PrecisionSwitch.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Support/NodePattern.h"

namespace tc::prim {
#define GEN_PASS_DEF_ROUNDPRODUCTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

StringRef tc::prim::whyNotNarrow(Operation *op) {
  std::optional<int64_t> depth = 1;
  auto addSize = [&](AffineExpr size) {
    std::optional<int64_t> known = getConstantSize(size);
    depth = known && depth ? std::optional(*known * *depth) : std::nullopt;
  };
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    Sizes sizes = getSizes(dot.getLhs());
    for (int64_t dim : dot.getLhsContract())
      addSize(sizes[dim]);
  } else if (auto conv = dyn_cast<ConvOp>(op)) {
    Sizes filter = getSizes(conv.getFilter());
    for (AffineExpr size : filter)
      if (!getConstantSize(size))
        return "only the run knows the sizes of its filter";
    // Groups of fewer channels are no matrix products; in f32 they have kernels of their own.
    constexpr int64_t kLeastChannels = 16;
    const int64_t channels = *getConstantSize(filter[filter.size() - 2]), columns = *getConstantSize(filter.back());
    if (!isMadeOfConstants(conv.getFilter()))
      return "its filter is computed by the run";
    if (columns == 0 ||
        (conv.getGroups() > 1 && std::min<int64_t>(channels, columns / conv.getGroups()) < kLeastChannels))
      return "its groups have too few channels";
    filter.pop_back();
    llvm::for_each(filter, addSize);
  } else {
    return "it is no product";
  }
  return !depth ? "only the run knows how much it sums up" : *depth <= 1 ? "it sums nothing up" : "";
}

bool tc::prim::isNarrowable(Operation *op) { return whyNotNarrow(op).empty(); }

namespace {

class Rounder {
public:
  Rounder(func::FuncOp func, Type to) : rewriter(func.getContext()), to(to) {}

  void round(Operation *product) {
    const Rounding rounding = to.isBF16() ? Rounding::Bf16 : Rounding::F16;
    for (OpOperand &operand : product->getOpOperands())
      if (roundsOperand(product, operand.get(), rounding))
        operand.set(rounded(operand.get()));
  }

private:
  /// `v` with elements of `to`.
  Value rounded(Value v) {
    Value &known = values[v];
    if (known)
      return known;
    Operation *op = v.getDefiningOp();
    if (auto convert = dyn_cast_or_null<ConvertOp>(op); convert && PrimBuilder::elementOf(convert.getOperand()) == to)
      return values[v] = convert.getOperand();
    // What moves elements moves rounded ones.
    if (isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp, PadOp>(op)) {
      SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value x) { return rounded(x); });
      rewriter.setInsertionPointAfter(op);
      Operation *moved = rewriter.clone(*op);
      moved->setOperands(operands);
      moved->getResult(0).setType(withElementType(v.getType(), to));
      return values[v] = moved->getResult(0);
    }
    if (op)
      rewriter.setInsertionPointAfter(op);
    else
      rewriter.setInsertionPointToStart(v.getParentBlock());
    return values[v] = ConvertOp::create(rewriter, v.getLoc(), v, to);
  }

  IRRewriter rewriter;
  Type to;
  DenseMap<Value, Value> values; ///< rounded
};

struct RoundProductsPass : public tc::prim::impl::RoundProductsPassBase<RoundProductsPass> {
  using RoundProductsPassBase::RoundProductsPassBase;

  void runOnOperation() override {
    Builder b(&getContext());
    if (!parseRounding(precision)) {
      getOperation().emitError("precision=") << precision << " is none of f32, tf32, bf16, f16";
      return signalPassFailure();
    }
    const NodeValues ofNodes(llvm::to_vector(nodePrecisions));
    auto isF32 = [](Value v) { return PrimBuilder::elementOf(v).isF32(); };
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<DotGeneralOp, ConvOp>(op) && isF32(op->getOperand(0)) && isF32(op->getOperand(1)) &&
          isF32(op->getResult(0)))
        products.push_back(op);
    });
    Rounder toBF16(getOperation(), b.getBF16Type()), toF16(getOperation(), b.getF16Type());
    for (Operation *product : products) {
      const StringRef type = ofNodes.find(base::getNodeNames(product->getLoc()), precision);
      if (!parseRounding(type)) {
        product->emitError("node-precision=") << type << " is none of f32, tf32, bf16, f16";
        return signalPassFailure();
      }
      if (type == "bf16")
        toBF16.round(product);
      else if (type == "f16")
        toF16.round(product);
    }
  }
};

} // namespace
