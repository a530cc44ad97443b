//===- SkinnyGemm.cpp - the "cpu.skinny_gemm" strategy: products of few rows and a matrix that only the run knows -===//
//
// result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n] in f32, with so few rows m that packing the matrix would
// take longer than the product. It is read once, where and as it lies, in the order in which it lies:
//
// - Its rows, n contiguous: some steps of k at a time, all columns of the task with a tile of results that stays in the
//   first-level cache, by the micro-kernel of packed products. The last columns, fewer than a panel, are copied.
// - Its columns, k contiguous: dot products of several rows and columns at once, with lanes along k, whose accumulators
//   are added across their lanes all together. As many steps of k at a time as leave the rows in the first-level cache.
//
// The epilogue runs over the tile of results.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Product.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuSkinnyGemmAttr;

// More rows are worth packed panels.
constexpr int64_t kMostRows = 16;
// Most rows at once; with 16 registers; transposed (8 x 2 accumulators take 1.4 of the time of 4 x 4).
constexpr int64_t kRowsAtOnce = 8, kFewRegistersRows = 6, kTransposedRows = 4;
// Steps of k for which all columns of a task are visited: whose lines of columns at once, each of another page, are
// fetched ahead; transposed, so many that rows at once take half of the first-level cache.
constexpr int64_t kSteps = 64, kTransposedFloats = 4096;
// Columns of a task: the most, and so few, which take 1.05 of the time, for tasks that keep many cores busy.
constexpr int64_t kMostColumns = 1024, kLeastColumns = 256, kTasks = 16;
constexpr int64_t kMostTransposedColumns = 128, kLeastTransposedColumns = 64;
// Transposed, so many steps of k for each row are worth it: with fewer the lanes' sums take longer than packing.
constexpr int64_t kStepsPerRow = 8;
// Fewer rows than these take as long: the matrix comes from beyond the second-level cache at 10 flops a byte.
constexpr double kStreamedRows = 20;
// What a thread should get at least.
constexpr double kGrainFlops = 1e6;

struct SkinnyProduct : Product {
  bool transposed = false;
  LinesInPlace matrix;
  std::optional<LinesInPlace> few; // the left-hand side's rows, where they need no copy
  const Epilogue *epilogue = nullptr;
};

std::optional<SkinnyProduct> analyzeSkinny(const RegionProblem &region) {
  Operation *anchor = region.findAnchor();
  if (!isa_and_nonnull<prim::DotGeneralOp>(anchor) || !isF32(anchor->getOperand(0)) || !isF32(anchor->getOperand(1)) ||
      !isF32(anchor->getResult(0)))
    return std::nullopt;
  const Product *product = region.findProduct();
  if (!product || !product->m || *product->m < 1 || *product->m > kMostRows)
    return std::nullopt;
  SkinnyProduct p{*product, false, {}, {}, region.findWholeEpilogue(product->result)};
  if (!p.epilogue)
    return std::nullopt;
  p.few = linesInPlace(p, p.lhs, DimRef::Depth);
  std::optional<LinesInPlace> columns, steps;
  if (!p.columns.empty())
    columns = linesInPlace(p, p.rhs, DimRef::Depth);
  if (p.n && *p.n >= kPanel && !columns)
    steps = linesInPlace(p, p.rhs, DimRef::Column);
  if (!columns && (!steps || !prim::getConstantSize(steps->stride)))
    return std::nullopt;
  p.transposed = columns.has_value();
  p.matrix = columns ? *columns : *steps;
  return p;
}

/// Blocks of about equal size.
int64_t rowsAtOnce(const SkinnyProduct &p, const VectorUnit &unit) {
  const int64_t most = p.transposed ? kTransposedRows : unit.registers == 32 ? kRowsAtOnce : kFewRegistersRows;
  return ceilDiv(*p.m, ceilDiv(*p.m, most));
}

class SkinnyGemmGenerator final : public GeneratorFor<Schedule, SkinnyProduct> {
public:
  std::optional<SkinnyProduct> analyze(const RegionProblem &region) const override { return analyzeSkinny(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const SkinnyProduct &p) const override {
    if (packedRhs(p, region.constants()) || (p.transposed && p.k && *p.k < kStepsPerRow * *p.m))
      return failure();
    Schedule::Params params;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      const int64_t rows = rowsAtOnce(p, unit);
      // Accumulators in half of the registers, or as many as fit with what they are made of.
      int64_t columns = 1;
      if (p.transposed)
        while (columns < 8 && 2 * columns * rows <= unit.registers / 2)
          columns *= 2;
      else
        for (int64_t panels = 1; panels <= 8 && fitsRegisters(unit, rows, panels); ++panels)
          columns = panels * kPanel;
      params.rowsFor(unit.bits) = rows;
      params.colsFor(unit.bits) = columns;
    }
    const int64_t most = p.transposed ? kMostTransposedColumns : kMostColumns;
    const int64_t least = p.transposed ? kLeastTransposedColumns : kLeastColumns;
    int64_t tileN = most;
    if (p.n && *p.n > 0) {
      const int64_t batch = std::max<int64_t>(1, p.likelyBatch(/*usual=*/kTasks));
      const int64_t wanted = std::min(ceilDiv(kTasks, batch), ceilDiv(*p.n, least));
      tileN = roundUp(ceilDiv(*p.n, std::max(wanted, ceilDiv(*p.n, most))), kPanel);
    }
    params.tileN = tileN;
    if (p.transposed)
      params.transposed = 1;
    // Transposed, rows of segments lie one behind the other: at a power of two apart they would evict each other.
    const int64_t steps = p.transposed ? kTransposedFloats / rowsAtOnce(p, widestUnit()) / kPanel * kPanel : kSteps;
    const bool isWhole = p.transposed && p.k && *p.k <= steps;
    params.steps = isWhole ? 0 : steps;
    params.lhsCopy = !p.few || (p.transposed && !isWhole);
    const double flops = 2.0 * double(p.likelyDepth()) * std::max(kStreamedRows, double(*p.m)) * double(tileN);
    params.grain = grainFor(kGrainFlops, flops);
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const SkinnyProduct &p, Schedule schedule) const override {
    Launch launch;
    launch.tasks = prim::product(schedule.getContext(), grid(p, schedule));
    launch.scratch =
        prim::simplifySize((lhsFloats(p, schedule) + tileFloats(p, schedule) + schedule.getSteps() * kPanel) * 4);
    launch.inPlace = p.epilogue->inPlace();
    return {launch};
  }

  void emitTasks(const SkinnyProduct &p, Schedule schedule, unsigned, Emitter &em, Value begin,
                 Value end) const override {
    em.loop(begin, end, 1, [&](Index task) { Task(p, schedule, em).run(task, *p.epilogue); });
  }

private:
  static SmallVector<AffineExpr> grid(const SkinnyProduct &p, Schedule schedule) {
    return {p.B, prim::simplifySize(p.N.ceilDiv(schedule.getTileN()))};
  }
  /// Scratch: copied rows, the tile of results, the last columns of some steps.
  static AffineExpr lhsFloats(const SkinnyProduct &p, Schedule schedule) {
    if (!schedule.getLhsCopy())
      return getAffineConstantExpr(0, p.K.getContext());
    const int64_t steps = std::max<int64_t>(kPanel, schedule.getSteps());
    return prim::simplifySize(p.K.ceilDiv(steps) * (steps * *p.m));
  }
  static int64_t tileFloats(const SkinnyProduct &p, Schedule schedule) { return *p.m * schedule.getTileN(); }

  class Task {
  public:
    Task(const SkinnyProduct &p, Schedule schedule, Emitter &em)
        : p(p), em(em), b(em.builder()), loc(em.loc()), f32(b.getF32Type()), vector(em.vectorOf(f32)),
          tileN(schedule.getTileN()), rowsAtOnce(schedule.rowsFor(em.vectors().bits)),
          columns(schedule.colsFor(em.vectors().bits)), lhsCopy(schedule.getLhsCopy()), steps(schedule.getSteps()),
          schedule(schedule) {
      const AffineExpr stride = lhsCopy ? p.K : p.few->stride;
      lhsRow = lhsCopy && steps ? Extent(steps) : Extent(em.size(stride), prim::getConstantSize(stride));
    }

    void run(Index task, const Epilogue &epilogue) {
      const SmallVector<Index> at = em.delinearize(task, grid(p, schedule));
      n0 = em.mulIndex(at[1], em.i64(tileN), tileN);
      count = blockExtent(em, p.N, n0.base, tileN);
      const SmallVector<Index> batchAt = em.delinearize(at[0], p.batch);
      tile = offsetBy(em, em.scratch(), em.size(lhsFloats(p, schedule)));
      last = offsetBy(em, tile, tileFloats(p, schedule));
      lhs = lhsCopy ? em.scratch() : batchStart(em, *p.few, batchAt);
      if (lhsCopy)
        copyRows(batchAt);
      rhs = batchStart(em, p.matrix, batchAt);
      if (p.transposed)
        dots();
      else
        updates();
      em.loop(em.i64(0), em.i64(*p.m), 1, [&](Index row) {
        const SmallVector<Index> rowAt = em.delinearize(row, p.rows);
        const Index start = em.mulIndex(row, em.i64(tileN), tileN);
        forColumns(em, p.n == 1, p.n == 1 ? em.constant(0) : n0, start, count, [&](Index column, Index offset) {
          SmallVector<Index> full(batchAt);
          llvm::append_range(full, rowAt);
          llvm::append_range(full, em.delinearize(column, p.columns));
          storeEpilogue(em, epilogue, full, em.loadAt(tile, f32, offset));
        });
      });
      em.clearSources();
    }

  private:
    /// Calls body(first step, steps) for each segment of k.
    void forSegments(llvm::function_ref<void(Index, Extent)> body) {
      if (!steps)
        return body(em.constant(0), Extent(em.size(p.K), p.k));
      em.loop(em.i64(0), em.size(p.K), steps, [&](Index k) { body(k, blockExtent(em, p.K, k.base, steps)); }, 0);
    }

    /// Copied rows lie by segments of k: [segment][row][steps].
    void copyRows(ArrayRef<Index> batchAt) {
      forSegments([&](Index k0, Extent here) {
        em.loop(em.i64(0), em.i64(*p.m), 1, [&](Index row) {
          const SmallVector<Index> rowAt = em.delinearize(row, p.rows);
          em.laneLoop(here.get(em), here.constant, [&](Index lane) {
            const SmallVector<Index> at = Product::place<Index>(
                p.lhsDims, batchAt, rowAt, {}, em.delinearize(em.addIndex(k0, lane), p.depth), em.constant(0));
            em.storeAt(em.emit(p.lhs, at), lhsAt(row.base, k0.base), f32, lane);
          });
        });
      });
    }

    /// Address of row `row` of the left-hand side in the segment that begins at step `k`.
    Value lhsAt(Value row, Value k) {
      const Value segment = lhsCopy ? em.mul(k, em.i64(*p.m)) : k;
      return offsetBy(em, lhs, em.add(em.mul(row, lhsRow.get(em)), segment));
    }

    //===--- n contiguous
    //-------------------------------------------------------------------------------------------===//

    void updates() {
      clearFloats(em, tile, tileFloats(p, schedule));
      const Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
      const int64_t stride = *prim::getConstantSize(p.matrix.stride);
      forSegments([&](Index k, Extent steps) {
        const Value from = offsetBy(em, rhs, em.add(em.mul(k.base, em.i64(stride)), n0.base));
        const Value full = count.constant ? em.i64(*count.constant / kPanel * kPanel)
                                          : em.mul(em.divUnsigned(count.get(em), em.i64(kPanel)), em.i64(kPanel));
        const Value whole = em.mul(em.divUnsigned(full, em.i64(columns)), em.i64(columns));
        em.loop(em.i64(0), whole, columns,
                [&](Index n) { update(k.base, steps, offsetBy(em, from, n.base), stride, n.base, columns); });
        if (columns > kPanel)
          em.loop(whole, full, kPanel,
                  [&](Index n) { update(k.base, steps, offsetBy(em, from, n.base), stride, n.base, kPanel); });
        if (*p.n % kPanel == 0)
          return;
        const Value rest = em.sub(count.get(em), full);
        em.ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, rest, em.i64(0)), [&] {
          em.loop(em.i64(0), steps.get(em), 1, [&](Index step) {
            const Value row = offsetBy(em, from, em.add(em.mul(step.base, em.i64(stride)), full));
            const Value to = offsetBy(em, last, em.mul(step.base, em.i64(kPanel)));
            for (int64_t lane = 0; lane < kPanel; lane += em.width())
              LLVM::StoreOp::create(b, loc, em.broadcast(zero), offsetBy(em, to, lane), 4);
            em.laneLoop(rest, *p.n % kPanel, [&](Index lane) { em.storeAt(em.loadAt(row, f32, lane), to, f32, lane); });
          });
          update(k.base, steps, last, kPanel, full, kPanel);
        });
      });
    }

    /// Adds the products of `steps` steps from `k` on to `here` columns of the tile from `n` on.
    void update(Value k, Extent steps, Value from, int64_t stride, Value n, int64_t here) {
      forRowBlocks(em, Extent(*p.m), rowsAtOnce, std::nullopt, [&](Value row, int64_t rows) {
        MicroKernel kernel;
        kernel.a = lhsAt(row, k);
        kernel.rowOffsets = uniformRows(rows, lhsRow.constant.value_or(0));
        if (!lhsRow.constant)
          kernel.rowStride = lhsRow.value;
        kernel.depth = steps;
        kernel.b = from;
        kernel.panels = here / kPanel;
        kernel.panelStride = Extent(kPanel);
        kernel.stepStride = stride;
        kernel.c = offsetBy(em, tile, em.add(em.mul(row, em.i64(tileN)), n));
        kernel.cOffsets = uniformRows(rows, tileN);
        kernel.accumulate = true;
        if (stride != kPanel)
          kernel.prefetchDistance = here;
        emitMicroKernel(em, kernel);
      });
    }

    //===--- k contiguous
    //-------------------------------------------------------------------------------------------===//

    void dots() {
      if (steps)
        clearFloats(em, tile, tileFloats(p, schedule));
      const Value lastColumn = em.sub(em.size(p.N), em.i64(1));
      forSegments([&](Index k0, Extent here) {
        forRowBlocks(em, Extent(*p.m), rowsAtOnce, std::nullopt, [&](Value row, int64_t rows) {
          SmallVector<Value> lhsRows;
          for (int64_t i = 0; i < rows; ++i)
            lhsRows.push_back(lhsAt(em.add(row, em.i64(i)), k0.base));
          em.loop(em.i64(0), count.get(em), columns, [&](Index n) {
            SmallVector<Value> lines; // of the matrix; the last one again beyond the end
            for (int64_t j = 0; j < columns; ++j) {
              const Value column = em.min(em.add(em.add(n0.base, n.base), em.i64(j)), lastColumn);
              lines.push_back(offsetBy(em, rhs, em.add(em.mul(column, em.size(p.matrix.stride)), k0.base)));
            }
            addSums(dotProducts(lhsRows, lines, here), [&](int64_t number) {
              const Value at = em.add(em.mul(em.add(row, em.i64(number / columns)), em.i64(tileN)), n.base);
              return offsetBy(em, tile, at);
            });
          });
        });
      });
    }

    /// A vector of partial sums for each row and each line.
    SmallVector<Value> dotProducts(ArrayRef<Value> rows, ArrayRef<Value> lines, Extent steps) {
      const Value zero = arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
      return em.laneLoop(steps.get(em), steps.constant, SmallVector<Value>(rows.size() * lines.size(), zero),
                         [&](Index k, ValueRange carried) {
                           auto load = [&](Value line) { return em.broadcast(em.loadAt(line, f32, k)); };
                           const SmallVector<Value> xs = llvm::map_to_vector(rows, load),
                                                    ys = llvm::map_to_vector(lines, load);
                           SmallVector<Value> sums;
                           for (Value x : xs)
                             for (Value y : ys) {
                               const Value old = carried[sums.size()];
                               Value sum = vector::FMAOp::create(b, loc, x, y, old);
                               if (Value on = em.mask())
                                 sum = arith::SelectOp::create(b, loc, on, sum, old);
                               sums.push_back(sum);
                             }
                           return sums;
                         });
    }

    /// Adds up the lanes of each vector; runs of `columns` sums from number i on are added to address(i).
    void addSums(ArrayRef<Value> vectors, llvm::function_ref<Value(int64_t)> address) {
      const Value zero = arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
      for (int64_t first = 0; first < int64_t(vectors.size()); first += em.width()) {
        SmallVector<Value> group(vectors.slice(first).take_front(em.width()));
        group.resize(em.width(), zero);
        const Value sums = addLanes(group);
        for (int64_t i = 0; i < em.width() && first + i < int64_t(vectors.size()); i += columns) {
          Value run = sums;
          if (columns < em.width())
            run = vector::ShuffleOp::create(b, loc, sums, sums, llvm::to_vector(llvm::seq(i, i + columns)));
          const Value to = address(first + i);
          if (steps)
            run = arith::AddFOp::create(b, loc, run, LLVM::LoadOp::create(b, loc, run.getType(), to, 4));
          LLVM::StoreOp::create(b, loc, run, to, 4);
        }
      }
    }

    /// A vector of the sums of the lanes of width() vectors: each step adds the halves of all parts of two vectors,
    /// which leaves one vector of twice as many parts.
    Value addLanes(SmallVector<Value> vectors) {
      for (int64_t part = em.width(); part > 1; part /= 2) {
        SmallVector<int64_t> low, high;
        for (int64_t start = 0; start < 2 * em.width(); start += part)
          for (int64_t i = 0; i < part / 2; ++i) {
            low.push_back(start + i);
            high.push_back(start + part / 2 + i);
          }
        SmallVector<Value> next;
        for (size_t i = 0; i < vectors.size(); i += 2)
          next.push_back(arith::AddFOp::create(b, loc,
                                               vector::ShuffleOp::create(b, loc, vectors[i], vectors[i + 1], low),
                                               vector::ShuffleOp::create(b, loc, vectors[i], vectors[i + 1], high)));
        vectors = std::move(next);
      }
      return vectors.front();
    }

    const SkinnyProduct &p;
    Emitter &em;
    OpBuilder &b;
    Location loc;
    Type f32;
    VectorType vector;
    int64_t tileN, rowsAtOnce, columns;
    bool lhsCopy;
    int64_t steps;
    Schedule schedule;
    Index n0;     // first column of the task
    Extent count; // its columns
    Value lhs, rhs, tile, last;
    Extent lhsRow;
  };
};

} // namespace

const Generator *tc::codegen::skinnyGemmGenerator() {
  static const SkinnyGemmGenerator generator;
  return &generator;
}
