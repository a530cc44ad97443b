//===- CanonicalizePrim.cpp - simpler prim, transposes at the edges -----------------------------------------------===//
//
// The patterns stand in CanonicalizeArithmetic.cpp, CanonicalizeShapes.cpp and SinkTransposes.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CanonicalizePrim.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_CANONICALIZEPRIMPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc::prim;

namespace {
struct CanonicalizePrimPass : public tc::prim::impl::CanonicalizePrimPassBase<CanonicalizePrimPass> {
  using CanonicalizePrimPassBase::CanonicalizePrimPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateArithmeticPatterns(patterns);
    populateShapePatterns(patterns);
    populateSinkTransposes(patterns);
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
