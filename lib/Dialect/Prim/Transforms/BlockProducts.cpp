//===- BlockProducts.cpp - products with weights of bytes that a model widens itself ------------------------------===//
//
// Weights that are stored as bytes and widened by the model, times scales that each row, or each block of one, shares:
//
//   dot(x, reshape(mul(convert(q : [N, J, block] i8), broadcast(s : [N, J]))))   ->   block_dot(x, q, s)
//
// which reads them as they are stored, as it does those of MatMulNBits. To widen them when the model is compiled would
// make the artifact four times as large, and at run time each run would write and read them as floats.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dequantised.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prim {
#define GEN_PASS_DEF_BLOCKPRODUCTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Elements of a block, a power of 2: what prim.block_dot takes at least, and more than which share no work.
constexpr int64_t kLeastBlock = 16, kMostBlock = 128;

/// The product as block_dot; null: it stays as it is.
Value multiply(PrimBuilder &b, DotGeneralOp op) {
  const Sizes lhs = getSizes(op.getLhs()), rhs = getSizes(op.getRhs());
  const auto last = int64_t(lhs.size()) - 1;
  if (!op.getLhsBatch().empty() || rhs.size() != 2 || op.getRhsContract() != ArrayRef<int64_t>{1} ||
      op.getLhsContract() != ArrayRef<int64_t>{last})
    return {};
  for (Value value : {op.getLhs(), op.getRhs(), op.getResult()})
    if (!b.elementOf(value).isF32())
      return {};
  const std::optional<int64_t> n = getConstantSize(rhs[0]), k = getConstantSize(rhs[1]);
  auto scaled = skipReshapes(op.getRhs()).getDefiningOp<MulOp>();
  if (!n || !k || !scaled)
    return {};
  auto bytes = skipReshapes(scaled.getLhs()).getDefiningOp<ConvertOp>();
  auto scales = scaled.getRhs().getDefiningOp<BroadcastOp>();
  if (!bytes || !scales) {
    bytes = skipReshapes(scaled.getRhs()).getDefiningOp<ConvertOp>();
    scales = scaled.getLhs().getDefiningOp<BroadcastOp>();
  }
  if (!bytes || !scales || !b.elementOf(bytes.getOperand()).isSignlessInteger(8) ||
      !isMadeOfConstants(bytes.getOperand()) || !isMadeOfConstants(scales.getOperand()))
    return {};
  // One scale for each index of all dims but the last, in their order.
  const Sizes of = getSizes(scaled.getResult());
  Sizes own = getSizes(scales.getOperand());
  SmallVector<int64_t> dims(scales.getDims());
  if (!dims.empty() && dims.back() + 1 == int64_t(of.size()) && getConstantSize(own.back()) == 1) {
    dims.pop_back();
    own.pop_back();
  }
  if (of.empty() || !llvm::equal(dims, llvm::seq<int64_t>(0, int64_t(of.size()) - 1)) ||
      own != Sizes(of.begin(), of.end() - 1))
    return {};
  const int64_t shared = getConstantSize(of.back()).value_or(0);
  if (shared == 0 || *k % shared != 0)
    return {};
  const int64_t block = std::min<int64_t>(shared & -shared, kMostBlock);
  if (block < kLeastBlock)
    return {};
  // Numbers of block_dot are not negative, and 128 is taken from them.
  Value numbers = b.convert(b.reshape(bytes.getOperand(), rhs), b.getI32Type());
  numbers = b.convert(b.binary<AddOp>(numbers, 128), IntegerType::get(b.getContext(), 8, IntegerType::Unsigned));
  const int64_t groups = *k / shared, blocks = *k / block;
  const Value factors = b.broadcastInDims(b.reshape(scales.getOperand(), {rhs[0], b.size(groups)}),
                                          {rhs[0], b.size(groups), b.size(shared / block)}, {0, 1});
  return BlockDotOp::create(b, op.getResult().getType(), op.getLhs(), numbers,
                            b.reshape(factors, {rhs[0], b.size(blocks)}), Value(), /*bits=*/8, block);
}

struct BlockProductsPass : public tc::prim::impl::BlockProductsPassBase<BlockProductsPass> {
  void runOnOperation() override {
    SmallVector<DotGeneralOp> products;
    getOperation().walk([&](DotGeneralOp dot) { products.push_back(dot); });
    for (DotGeneralOp dot : products) {
      OpBuilder builder(dot);
      PrimBuilder b(builder, dot);
      if (Value result = multiply(b, dot)) {
        dot.getResult().replaceAllUsesWith(result);
        dot.erase();
      }
    }
  }
};

} // namespace
