//===- Contract.cpp - the "gpu.gemm" strategy: matrix products on tensor cores, f32 in and out ----------------===//
//
// result[b, m, n] = sum over k of lhs[b, m, k] rhs[b, k, n]. A block computes tileM x tileN results: both operands'
// slices of `depth` k go through shared memory (whatever stands before the product is evaluated there, once), and each
// warp multiplies 32 x 32 with mma.sync m16n8k8. The tensor cores take TF32, 11 significant bits; f32 accuracy
// comes from splitting x = hi + lo and adding hi hi + hi lo + lo hi (Ootomo and Yokota, "Recovering single precision
// accuracy from Tensor Cores", section 3). The epilogue runs on the accumulators.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Anchor.h"
#include "GPU/Gpu.h"
#include "tc/Analysis/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen::gpu;

namespace {

using Schedule = kernel::GpuGemmAttr;

// Results of a warp: rows and columns.
constexpr int64_t kWarpTile = 32;

int64_t countThreads(Schedule schedule) {
  return schedule.getTileM() / kWarpTile * (schedule.getTileN() / kWarpTile) * machine::kWarpThreads;
}

struct Problem {
  const Product &product;
  const Epilogue &epilogue;
};

class GpuGemmGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    auto dot = region.findAnchor<prim::DotGeneralOp>();
    if (!dot || !isF32(dot.getLhs()) || !isF32(dot.getRhs()) || !isF32(dot.getResult()))
      return std::nullopt;
    const Epilogue *epilogue = region.findWholeEpilogue(dot.getResult());
    return epilogue ? std::optional(Problem{*region.findProduct(), *epilogue}) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &) const override {
    return Schedule::Params().get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &problem, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::product(context, grid(problem.product, schedule));
    launch.device = deviceAttr(context, countThreads(schedule));
    return {launch};
  }

  void emitTasks(const Problem &problem, Schedule schedule, unsigned, Emitter &e, Value begin, Value) const override {
    OpBuilder &b = e.builder();
    Location loc = e.loc();
    const Product &p = problem.product;
    const Epilogue &epilogue = problem.epilogue;
    MLIRContext *context = b.getContext();
    e.alignedBuffers = true;
    const int64_t tileM = schedule.getTileM(), tileN = schedule.getTileN(), sliceDepth = schedule.getDepth(),
                  threads = countThreads(schedule);
    // Rows of the shared slices are padded so that the fragments' accesses fall into different banks.
    const int64_t rowA = sliceDepth + 4, rowB = tileN + 8;
    Type f32 = b.getF32Type();
    SmallVector<Index> block = e.delinearize(e.uniform(begin), grid(p, schedule));
    SmallVector<Index> batch = e.delinearize(block[0], p.batch);
    Value rowBase = e.mul(block[1].base, e.i64(tileM)), columnBase = e.mul(block[2].base, e.i64(tileN));
    Value M = e.sizeProduct(p.rows), N = e.sizeProduct(p.columns), K = e.sizeProduct(p.depth);
    Value thread = threadIndex(e);
    Value a = sharedArray(e, "a", f32, tileM * rowA), w = sharedArray(e, "b", f32, sliceDepth * rowB);
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));

    Value lane = e.remUnsigned(thread, e.i64(32)), warp = e.divUnsigned(thread, e.i64(32));
    Value group = e.divUnsigned(lane, e.i64(4)), inGroup = e.remUnsigned(lane, e.i64(4));
    const Value across = e.i64(tileN / kWarpTile), warpTile = e.i64(kWarpTile);
    Value warpRow = e.mul(e.divUnsigned(warp, across), warpTile),
          warpColumn = e.mul(e.remUnsigned(warp, across), warpTile);

    auto less = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
    };
    auto at = [&](Value pointer, Value row, int64_t rowOffset, int64_t pitch, Value column,
                  int64_t columnOffset) -> Value {
      Value offset = e.add(e.mul(e.add(row, e.i64(rowOffset)), e.i64(pitch)), e.add(column, e.i64(columnOffset)));
      return e.loadAt(pointer, f32, e.uniform(offset));
    };
    // x = high + low: high has the bits that TF32 keeps, low is exact. An infinite or NaN x is all in high, and
    // `factor`, which stands for high where the other operand's low is multiplied, is 0 then: infinity times a low part
    // of 0 must not give NaN.
    struct Split {
      Value high, factor, low;
    };
    const Value zeroBits = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 0);
    auto split = [&](Value x) -> Split {
      Value bits = LLVM::BitcastOp::create(b, loc, b.getI32Type(), x);
      Value keep = arith::ConstantIntOp::create(b, loc, b.getI32Type(), int32_t(0xffffe000));
      Value masked = arith::AndIOp::create(b, loc, bits, keep);
      Value rest = arith::SubFOp::create(b, loc, x, LLVM::BitcastOp::create(b, loc, f32, masked));
      Value finite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, rest, rest);
      return {arith::SelectOp::create(b, loc, finite, masked, bits),
              arith::SelectOp::create(b, loc, finite, masked, zeroBits),
              arith::SelectOp::create(b, loc, finite, LLVM::BitcastOp::create(b, loc, b.getI32Type(), rest), zeroBits)};
    };
    auto multiply = [&](ArrayRef<Value> x, ArrayRef<Value> y, MutableArrayRef<Value> c) {
      SmallVector<Value> operands(x);
      operands.append(y.begin(), y.end());
      operands.append(c.begin(), c.end());
      auto result = LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(4, f32));
      Value d =
          LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr("llvm.nvvm.mma.m16n8k8.row.col.tf32"), operands)
              .getResult(0);
      for (int64_t i = 0; i < 4; ++i)
        c[i] = LLVM::ExtractValueOp::create(b, loc, d, ArrayRef<int64_t>{i});
    };

    SmallVector<Value> sums(2 * 4 * 4, zero);
    sums = e.loop(e.i64(0), K, sliceDepth, sums, [&](Index k0, ValueRange carried) {
      barrier(e); // the slices of the step before have been read
      for (int64_t i = 0; i < tileM * sliceDepth / threads; ++i) {
        Value linear = e.add(thread, e.i64(i * threads));
        Value row = e.divUnsigned(linear, e.i64(sliceDepth)), k = e.remUnsigned(linear, e.i64(sliceDepth));
        Value m = e.add(rowBase, row), depth = e.add(k0.base, k);
        Value inside = arith::AndIOp::create(b, loc, less(m, M), less(depth, K));
        Value value = e.emitGuarded(inside, f32, zero, /*lanes=*/false, [&]() -> Value {
          const SmallVector<Index> rowAt = e.delinearize(e.uniform(m), p.rows),
                                   depthAt = e.delinearize(e.uniform(depth), p.depth);
          return e.emit(p.lhs, Product::place<Index>(p.lhsDims, batch, rowAt, {}, depthAt, {}));
        });
        e.storeAt(value, a, f32, e.uniform(e.add(e.mul(row, e.i64(rowA)), k)));
      }
      for (int64_t i = 0; i < tileN * sliceDepth / threads; ++i) {
        Value linear = e.add(thread, e.i64(i * threads));
        Value k = e.divUnsigned(linear, e.i64(tileN)), column = e.remUnsigned(linear, e.i64(tileN));
        Value n = e.add(columnBase, column), depth = e.add(k0.base, k);
        Value inside = arith::AndIOp::create(b, loc, less(n, N), less(depth, K));
        Value value = e.emitGuarded(inside, f32, zero, /*lanes=*/false, [&]() -> Value {
          const SmallVector<Index> columnAt = e.delinearize(e.uniform(n), p.columns),
                                   depthAt = e.delinearize(e.uniform(depth), p.depth);
          return e.emit(p.rhs, Product::place<Index>(p.rhsDims, batch, {}, columnAt, depthAt, {}));
        });
        e.storeAt(value, w, f32, e.uniform(e.add(e.mul(k, e.i64(rowB)), column)));
      }
      barrier(e);
      SmallVector<Value> c(carried.begin(), carried.end());
      for (int64_t step = 0; step < sliceDepth; step += 8) {
        // Fragments as in the PTX ISA, "Matrix fragments for mma.m16n8k8": a row is group (+8), a column inGroup (+4).
        SmallVector<Value> bHigh, bFactor, bLow;
        for (int64_t j = 0; j < 4; ++j)
          for (int64_t half = 0; half < 2; ++half) {
            Split parts = split(at(w, inGroup, step + 4 * half, rowB, e.add(warpColumn, group), 8 * j));
            bHigh.push_back(parts.high);
            bFactor.push_back(parts.factor);
            bLow.push_back(parts.low);
          }
        for (int64_t i = 0; i < 2; ++i) {
          SmallVector<Value> aHigh, aFactor, aLow;
          for (int64_t part = 0; part < 4; ++part) {
            Split parts =
                split(at(a, e.add(warpRow, group), 16 * i + 8 * (part % 2), rowA, inGroup, step + 4 * (part / 2)));
            aHigh.push_back(parts.high);
            aFactor.push_back(parts.factor);
            aLow.push_back(parts.low);
          }
          for (int64_t j = 0; j < 4; ++j) {
            // Tensor cores round sums toward zero: they add up 8 products, the rest is added in f32 (Ootomo and Yokota,
            // section 4).
            SmallVector<Value> part(4, zero);
            multiply(aLow, ArrayRef(bFactor).slice(2 * j, 2), part);
            multiply(aFactor, ArrayRef(bLow).slice(2 * j, 2), part);
            multiply(aHigh, ArrayRef(bHigh).slice(2 * j, 2), part);
            for (int64_t n = 0; n < 4; ++n) {
              Value &sum = c[(i * 4 + j) * 4 + n];
              sum = arith::AddFOp::create(b, loc, sum, part[n]);
            }
          }
        }
      }
      return c;
    });

    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t part = 0; part < 4; ++part) {
          Value m = e.add(e.add(rowBase, warpRow), e.add(group, e.i64(16 * i + 8 * (part / 2))));
          Value n = e.add(e.add(columnBase, warpColumn), e.add(e.mul(inGroup, e.i64(2)), e.i64(8 * j + part % 2)));
          Value inside = arith::AndIOp::create(b, loc, less(m, M), less(n, N));
          e.ifThen(inside, [&] {
            SmallVector<Index> position(batch);
            llvm::append_range(position, e.delinearize(e.uniform(m), p.rows));
            llvm::append_range(position, e.delinearize(e.uniform(n), p.columns));
            storeEpilogue(e, epilogue, position, sums[(i * 4 + j) * 4 + part]);
          });
          e.clearSources();
        }
  }

private:
  static SmallVector<AffineExpr> grid(const Product &p, Schedule schedule) {
    return {p.B, prim::simplifySize(p.M.ceilDiv(schedule.getTileM())),
            prim::simplifySize(p.N.ceilDiv(schedule.getTileN()))};
  }
};

} // namespace

const Generator *tc::codegen::gpuGemmGenerator() {
  static const GpuGemmGenerator generator;
  return &generator;
}
