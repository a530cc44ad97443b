//===- WidenProducts.cpp - products of f16 and bf16 as products with sums of f32 ----------------------------------===//
//
// Products and convolutions of f16 and bf16 are summed in f32 and rounded once, which becomes visible here. Those of
// bf16 keep their operands, if code generators take them so (isNarrowable); else operands are widened, which is exact:
//
//   dot(x, w) : bf16   ->   convert(dot(x, w) : (bf16, bf16) -> f32)
//   dot(x, w) : f16    ->   convert(dot(convert(x), convert(w)) : f32)
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dequantised.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

namespace tc::prim {
#define GEN_PASS_DEF_WIDENPRODUCTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

bool isHalf(Value v) { return PrimBuilder::elementOf(v).isF16() || PrimBuilder::elementOf(v).isBF16(); }

struct WidenProductsPass : public tc::prim::impl::WidenProductsPassBase<WidenProductsPass> {
  using WidenProductsPassBase::WidenProductsPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<DotGeneralOp, ConvOp>(op) && (isHalf(op->getOperand(0)) || isHalf(op->getOperand(1))))
        products.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : products) {
      PrimBuilder b(rewriter, op);
      const bool isNarrow =
          b.elementOf(op->getOperand(0)).isBF16() && b.elementOf(op->getOperand(1)).isBF16() && isNarrowable(op);
      if (!isNarrow)
        for (OpOperand &operand : op->getOpOperands())
          if (isHalf(operand.get()))
            operand.set(b.convert(operand.get(), b.getF32Type()));
      Value result = op->getResult(0);
      const Type element = b.elementOf(result);
      if (element.isF32())
        continue;
      result.setType(withElementType(result.getType(), b.getF32Type()));
      b.setInsertionPointAfter(op);
      Value rounded = b.convert(result, element);
      result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
    }
  }
};

} // namespace
