//===- Stream.cpp - results that are stored past the caches -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Stream.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

// From this size on nothing of a result is in a cache any more when it is read.
static constexpr int64_t kStreamedBytes = machine::kCaches.l3;

bool tc::codegen::isStreamed(Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  const int64_t bits = type.getElementTypeBitWidth();
  return type.hasStaticShape() && type.getRank() > 0 && bits >= 8 && type.getShape().back() % 64 == 0 &&
         type.getNumElements() * bits / 8 >= kStreamedBytes;
}

void tc::codegen::emitStreaming(Emitter &em, ArrayRef<Value> buffers, llvm::function_ref<void(bool)> body) {
  OpBuilder &b = em.builder();
  Value all = em.i64(0);
  for (Value buffer : buffers)
    all = arith::OrIOp::create(b, em.loc(), all, LLVM::PtrToIntOp::create(b, em.loc(), b.getI64Type(), buffer));
  Value odd = arith::AndIOp::create(b, em.loc(), all, em.i64(63));
  auto test = [&](arith::CmpIPredicate kind) { return arith::CmpIOp::create(b, em.loc(), kind, odd, em.i64(0)); };
  em.ifThen(test(arith::CmpIPredicate::eq), [&] {
    body(/*isStreaming=*/true);
    em.fenceStores();
  });
  em.ifThen(test(arith::CmpIPredicate::ne), [&] { body(/*isStreaming=*/false); });
}
