//===- BlockProducts.cpp - products with weights of bytes that a model widens itself ------------------------------===//
//
// Weights that are stored as bytes and widened by the model, times scales that each row, or each block of one, shares:
//
//   dot(x, reshape(mul(convert(q : [N, J, block] i8), broadcast(s : [N, J]))))   ->   block_dot(x, q, s)
//   dot(x, mul(convert(sub(q : [K, N], z)), broadcast(s : [N])))                 ->   block_dot(x, transpose(q), s, z)
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
// Weights that take fewer bytes as floats are widened when the model is compiled.
constexpr int64_t kLeastBytes = 65536;

/// Bytes that are widened, less what rows or blocks of them share, times what they share.
struct Widened {
  Value bytes;
  /// From the product back to the bytes.
  SmallVector<Operation *> moves;
  /// Numbers for a tensor, and how many of the moves follow it; null: 1 and 0.
  Value scale, zero;
  size_t scaleMoves = 0, zeroMoves = 0;
};

std::optional<Widened> traceWidened(Value v) {
  Widened found;
  v = walkMoves(v, found.moves);
  if (auto mul = v.getDefiningOp<MulOp>()) {
    const bool isSecond = isMadeOfConstants(mul.getRhs()) && !mul.getRhs().getDefiningOp<ConvertOp>();
    found.scale = isSecond ? mul.getRhs() : mul.getLhs();
    found.scaleMoves = found.moves.size();
    v = walkMoves(isSecond ? mul.getLhs() : mul.getRhs(), found.moves);
  }
  // Differences are taken in f32, or in i32.
  auto skipInteger = [&] {
    auto convert = v.getDefiningOp<ConvertOp>();
    if (convert && PrimBuilder::elementOf(convert.getOperand()).isSignlessInteger(32))
      v = walkMoves(convert.getOperand(), found.moves);
  };
  skipInteger();
  if (auto sub = v.getDefiningOp<SubOp>()) {
    found.zero = sub.getRhs();
    found.zeroMoves = found.moves.size();
    v = walkMoves(sub.getLhs(), found.moves);
    skipInteger();
  }
  auto widen = v.getDefiningOp<ConvertOp>();
  if (!widen || !isByte(widen.getOperand()))
    return std::nullopt;
  found.bytes = walkMoves(widen.getOperand(), found.moves);
  if (llvm::any_of(found.moves, [](Operation *op) { return isa<BroadcastOp>(op); }))
    return std::nullopt;
  for (Value value : {found.bytes, found.scale, found.zero})
    if (value && !isMadeOfConstants(value))
      return std::nullopt;
  return found;
}

/// Numbers that rows of weights [N, K], or blocks of them, share.
struct Table {
  Value numbers; // [N, K / shared] of f32
  int64_t shared;
};

/// What `v` repeats. `moves`: those from it to the weights, of which dim `row` is N.
std::optional<Table> traceTable(PrimBuilder &b, Value v, ArrayRef<Operation *> moves, int64_t row, int64_t n,
                                int64_t k) {
  auto sizes = [&](int64_t columns) { return Sizes{b.size(n), b.size(columns)}; };
  if (std::optional<Parameter> parameter = traceParameter(v);
      parameter && moveParameter(*parameter, moves) && (parameter->dim < 0 || parameter->dim == row)) {
    parameter->dim = std::min<int64_t>(parameter->dim, 0);
    return Table{parameter->spread(b, b.getF32Type(), sizes(1)), k};
  }
  // One number for each index of all dims but the last, in their order.
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast || row != 0 || !llvm::all_of(moves, [](Operation *op) { return isa<ReshapeOp>(op); }))
    return std::nullopt;
  const Sizes of = getSizes(v);
  Sizes own = getSizes(broadcast.getOperand());
  SmallVector<int64_t> dims(broadcast.getDims());
  if (!dims.empty() && dims.back() + 1 == int64_t(of.size()) && getConstantSize(own.back()) == 1) {
    dims.pop_back();
    own.pop_back();
  }
  if (of.empty() || !llvm::equal(dims, llvm::seq<int64_t>(0, int64_t(of.size()) - 1)) ||
      own != Sizes(of.begin(), of.end() - 1))
    return std::nullopt;
  const int64_t shared = getConstantSize(of.back()).value_or(0);
  if (shared == 0 || k % shared != 0)
    return std::nullopt;
  return Table{b.convert(b.reshape(broadcast.getOperand(), sizes(k / shared)), b.getF32Type()), shared};
}

/// The product as block_dot; null: it stays as it is.
Value multiply(PrimBuilder &b, DotGeneralOp op) {
  const Sizes lhs = getSizes(op.getLhs()), rhs = getSizes(op.getRhs());
  const auto last = int64_t(lhs.size()) - 1;
  if (!op.getLhsBatch().empty() || rhs.size() != 2 || op.getRhsContract().size() != 1 ||
      op.getLhsContract() != ArrayRef<int64_t>{last})
    return {};
  for (Value value : {op.getLhs(), op.getRhs(), op.getResult()})
    if (!b.elementOf(value).isF32())
      return {};
  const int64_t row = 1 - op.getRhsContract().front();
  const std::optional<int64_t> n = getConstantSize(rhs[row]), k = getConstantSize(rhs[1 - row]);
  if (!n || !k || *n * *k * 4 <= kLeastBytes)
    return {};
  std::optional<Widened> widened = traceWidened(op.getRhs());
  if (!widened)
    return {};
  auto table = [&](Value v, size_t moves, double number) -> std::optional<Table> {
    if (!v)
      return Table{b.splat(b.getF32Type(), {b.size(*n), b.size(1)}, number), *k};
    return traceTable(b, v, ArrayRef(widened->moves).take_front(moves), row, *n, *k);
  };
  std::optional<Table> scale = table(widened->scale, widened->scaleMoves, 1),
                       zero = table(widened->zero, widened->zeroMoves, 0);
  if (!scale || !zero)
    return {};
  const int64_t shared = std::gcd(scale->shared, zero->shared), block = std::min(shared & -shared, kMostBlock);
  if (block < kLeastBlock)
    return {};
  Value bytes = emitMoves(b, widened->moves, widened->bytes);
  if (row == 1)
    bytes = b.transpose(bytes, {1, 0});
  auto spread = [&](const Table &given) {
    const int64_t groups = *k / given.shared, each = given.shared / block;
    const Value numbers =
        b.broadcastInDims(given.numbers, {b.size(*n), b.size(groups), b.size(each)}, ArrayRef<int64_t>{0, 1});
    return b.reshape(numbers, {b.size(*n), b.size(*k / block)});
  };
  // What block_dot subtracts anyway.
  const double centre = b.elementOf(bytes).isUnsignedInteger(8) ? 128 : 0;
  const bool isCentred = getSplatValue(zero->numbers) == centre;
  return BlockDotOp::create(b, op.getResult().getType(), op.getLhs(), bytes, spread(*scale),
                            isCentred ? Value() : spread(*zero), /*bits=*/8, block);
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
