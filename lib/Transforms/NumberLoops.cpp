//===- NumberLoops.cpp - numbers of iterations that lie on the device ---------------------------------------------===//
//
// A host program writes the number of an iteration where kernels read it. On a device that is a copy, at which a CUDA
// graph ends. Loops that are known to run n times at most have the numbers 0 to n - 1 among the weights instead, and an
// iteration reads its own there:
//
//   prim.while %n, %true carry ..  { ^bb0(%i: tensor<i64>, ..): %t = prim.constant dense<[0, 1, ..]> {host.numbers} ..
//   }
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/CudaGraphs.h"
#include "tc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc {
#define GEN_PASS_DEF_NUMBERLOOPSPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;

namespace {

/// Numbers that are worth their 8 bytes each.
constexpr int64_t kMostNumbers = 1 << 14;

struct NumberLoopsPass : tc::impl::NumberLoopsPassBase<NumberLoopsPass> {
  void runOnOperation() override {
    getOperation().walk([](prim::WhileOp loop) {
      const std::optional<int64_t> trips = host::getKnownInteger(loop.getMaxTrips());
      Block &body = loop.getBody().front();
      if (!trips || *trips < 1 || *trips > kMostNumbers || body.getArgument(0).use_empty())
        return;
      OpBuilder builder = OpBuilder::atBlockBegin(&body);
      const auto type = RankedTensorType::get({*trips}, builder.getI64Type());
      const SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(*trips));
      auto table = prim::ConstantOp::create(builder, loop.getLoc(), type, DenseIntElementsAttr::get(type, numbers));
      table->setAttr(host::kIterationNumbersAttr, builder.getUnitAttr());
    });
  }
};

} // namespace
