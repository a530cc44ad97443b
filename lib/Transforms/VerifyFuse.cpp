//===- VerifyFuse.cpp - what holds after the fuse phase -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/Fuse.h"
#include "tc/Transforms/Passes.h"

namespace tc {
#define GEN_PASS_DEF_VERIFYFUSEPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;

namespace {
struct VerifyFusePass : tc::impl::VerifyFusePassBase<VerifyFusePass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      if (!isa_and_nonnull<prim::PrimDialect>(op->getDialect()) || op->getParentOfType<kernel::RegionOp>())
        return WalkResult::advance();
      if (fuse::getRole(op) == fuse::Role::Function || prim::isView(op))
        return WalkResult::advance();
      // Kernels inside of a loop or branch may read what the host wrote before it, all of them sizes (tc-unify-slices).
      if (isa<prim::SizesOp, prim::SplatOp>(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
            return fuse::isMadeByHost(op, user) || isa<prim::ReshapeOp>(user) ||
                   (isa<kernel::RegionOp>(user) && (isa<prim::SizesOp>(op) || user->getBlock() != op->getBlock()));
          }))
        return WalkResult::advance();
      op->emitOpError("stands outside of a kernel.region after the fuse phase; run tc-fuse");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
