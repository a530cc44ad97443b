//===- ContractProductTasks.cpp - code of matrix products ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Contract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::contract;

/// Lanes along the innermost of the `depth` dims, loops over the others.
static void copyLanes(Emitter &em, ArrayRef<AffineExpr> depth, llvm::function_ref<void(Index, ArrayRef<Index>)> body) {
  if (depth.empty()) {
    em.laneLoop(em.i64(1), 1, [&](Index lane) { body(lane, {}); });
    return;
  }
  AffineExpr last = depth.back();
  AffineExpr outer = prim::product(last.getContext(), depth.drop_back());
  auto inner = [&](Index outerIndex) {
    SmallVector<Index> at = em.delinearize(outerIndex, depth.drop_back());
    Index start = em.mulIndex(outerIndex, em.size(last), prim::getConstantSize(last));
    em.laneLoop(em.size(last), prim::getConstantSize(last), [&](Index lane) {
      SmallVector<Index> full = at;
      full.push_back(lane);
      body(em.addIndex(start, lane), full);
    });
  };
  if (prim::getConstantSize(outer) == 1)
    inner(em.constant(0));
  else
    em.loop(em.i64(0), em.size(outer), 1, inner);
}

/// Zeros where the last of the panels of `count` columns ends early. Nobody reads the products of what is there, but
/// what other values leave behind may be denormal, and a product of those takes a hundred times as long.
static void clearLastPanel(const Product &p, Emitter &em, Extent count, Value to) {
  if (p.n && *p.n % kPanel == 0)
    return;
  OpBuilder &b = em.builder();
  Value panel = em.divUnsigned(count.get(em), em.i64(kPanel));
  Value ends =
      arith::CmpIOp::create(b, em.loc(), arith::CmpIPredicate::ne, em.mul(panel, em.i64(kPanel)), count.get(em));
  em.ifThen(ends, [&] {
    Value zeros = arith::ConstantOp::create(b, em.loc(), b.getZeroAttr(em.vectorOf(p.element())));
    Value start = offsetBy(em, to, em.mul(panel, em.size(runtimePanelFloats(p))), p.element());
    em.loop(em.i64(0), em.size(p.K), 1, [&](Index k) {
      for (int64_t lane = 0; lane < kPanel; lane += em.width())
        LLVM::StoreOp::create(b, em.loc(), zeros,
                              offsetBy(em, start, em.add(em.mul(k.base, em.i64(kPanel)), em.i64(lane)), p.element()),
                              4);
    });
  });
}

/// Packs the panels of up to `tileN` columns from column n0 on.
static void packPanels(const Product &p, Schedule schedule, Emitter &em, ArrayRef<Index> batchAt, Index n0, Value to) {
  const Type element = p.element();
  const int64_t tileN = schedule.getTileN(), width = em.width();
  const Value K = em.size(p.K), panelFloats = em.size(runtimePanelFloats(p));
  const Extent count = blockExtent(em, p.N, n0.base, tileN);
  // Offset of column `column` (a multiple of the width) at k = 0.
  auto columnOffset = [&](Value column) {
    return em.add(em.mul(em.divUnsigned(column, em.i64(kPanel)), panelFloats), em.remUnsigned(column, em.i64(kPanel)));
  };
  clearLastPanel(p, em, count, to);
  auto valueAt = [&](Index k, ArrayRef<Index> depthAt, Index n) {
    SmallVector<Index> at =
        Product::place<Index>(p.rhsDims, batchAt, {}, em.delinearize(n, p.columns), depthAt, em.constant(0));
    return em.emit(p.rhs, at);
  };
  if (schedule.getRhsTransposed()) {
    em.loop(
        em.i64(0), count.get(em), width,
        [&](Index column) {
          Value toHere = offsetBy(em, to, columnOffset(column.base), element);
          const SmallVector<Index> columns = linesFrom(em, em.add(n0.base, column.base), p.N);
          copyLanes(em, p.depth, [&](Index k, ArrayRef<Index> depthAt) {
            SmallVector<Value> rows;
            for (Index n : columns)
              rows.push_back(valueAt(k, depthAt, n));
            Value block = offsetBy(em, toHere, em.mul(k.base, em.i64(kPanel)), element);
            for (auto [i, row] : llvm::enumerate(transposeLanes(em, rows)))
              LLVM::StoreOp::create(em.builder(), em.loc(), row, offsetBy(em, block, int64_t(i) * kPanel, element), 4);
          });
        },
        0);
    return;
  }
  em.loop(em.i64(0), K, 1, [&](Index k) {
    SmallVector<Index> depthAt = em.delinearize(k, p.depth);
    Value start = em.mul(k.base, em.i64(kPanel));
    if (p.columns.empty())
      return em.storeAt(valueAt(k, depthAt, em.constant(0)), to, element, em.uniform(start));
    em.laneLoop(count.get(em), count.constant, [&](Index lane) {
      Index at = em.contiguous(em.uniform(em.add(columnOffset(lane.base), start)));
      em.storeAt(valueAt(k, depthAt, em.addIndex(n0, lane)), to, element, at);
    });
  });
}

/// Copies `count` rows of A from m0 on to `to`: rows that are copyStride() apart, or, where A is transposed, tiles.
static void copyRows(const Product &p, Schedule schedule, Emitter &em, ArrayRef<Index> batchAt, Index m0, Extent count,
                     Value to) {
  const Type element = p.element();
  auto valueAt = [&](Index m, ArrayRef<Index> depthAt) {
    SmallVector<Index> at =
        Product::place<Index>(p.lhsDims, batchAt, em.delinearize(m, p.rows), {}, depthAt, em.constant(0));
    return em.emit(p.lhs, at);
  };
  if (!schedule.getLhsTransposed()) {
    em.loop(em.i64(0), count.get(em), 1, [&](Index row) {
      Index start = em.mulIndex(row, em.size(copyStride(p)), prim::getConstantSize(copyStride(p)));
      copyLanes(em, p.depth, [&](Index k, ArrayRef<Index> depthAt) {
        em.storeAt(valueAt(em.addIndex(m0, row), depthAt), to, element, em.addIndex(start, k));
      });
    });
    return;
  }
  const int64_t rows = schedule.rowsFor(em.vectors().bits);
  const Value tileFloats = em.size(copiedTileFloats(p, rows));
  // Rows of several dims lie side by side as long as the last of them is: a tile meets at most two such runs.
  const int64_t last = p.rows.size() > 1 ? prim::getConstantSize(p.rows.back()).value_or(0) : 0;
  const int64_t run = last >= rows ? last : 0;
  em.loop(em.i64(0), em.size(p.K), 1, [&](Index k) {
    const SmallVector<Index> depthAt = em.delinearize(k, p.depth);
    const Value step = em.mul(k.base, em.i64(rows));
    auto copy = [&](Index tile, Extent height) {
      const Index first = em.addIndex(m0, em.mulIndex(tile, em.i64(rows), rows));
      const Value start = em.add(em.mul(tile.base, tileFloats), step);
      if (run) {
        const Index outer = em.uniform(em.divUnsigned(first.base, em.i64(run)));
        const Index inner = em.uniform(em.remUnsigned(first.base, em.i64(run)));
        const Value cut = em.min(height.get(em), em.sub(em.i64(run), inner.base));
        auto copyPart = [&](Value count, Value place, Index outer, Index inner) {
          em.laneLoop(count, std::nullopt, [&](Index lane) {
            const Index m = em.joinIndex(outer, em.addIndex(inner, lane), run);
            em.storeAt(valueAt(m, depthAt), to, element, em.addIndex(em.uniform(place), lane));
          });
        };
        copyPart(cut, start, outer, inner);
        copyPart(em.sub(height.get(em), cut), em.add(start, cut), em.addIndex(outer, em.constant(1)), em.constant(0));
        return;
      }
      em.laneLoop(height.get(em), height.constant, [&](Index lane) {
        em.storeAt(valueAt(em.addIndex(first, lane), depthAt), to, element, em.addIndex(em.uniform(start), lane));
      });
    };
    if (count.constant && *count.constant <= rows)
      return copy(em.constant(0), count);
    const Value whole = em.divUnsigned(count.get(em), em.i64(rows));
    em.loop(em.i64(0), whole, 1, [&](Index tile) { copy(tile, Extent(rows)); });
    if (count.constant && *count.constant % rows == 0)
      return;
    copy(em.uniform(whole), Extent(em.sub(count.get(em), em.mul(whole, em.i64(rows)))));
  });
}

void contract::emitCopying(const Product &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  const int64_t tileM = schedule.getTileM();
  em.loop(begin, end, 1, [&](Index task) {
    SmallVector<Index> at = em.delinearize(task, {p.B, productGrid(p, schedule).back()});
    const Index m0 = em.mulIndex(at[1], em.i64(tileM), tileM);
    copyRows(p, schedule, em, em.delinearize(at[0], p.batch), m0, blockExtent(em, p.M, m0.base, tileM),
             offsetBy(em, em.output(0), em.mul(task.base, em.size(copyFloats(p, schedule))), p.element()));
  });
}

void contract::emitPacking(const Product &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  const int64_t tileN = schedule.getTileN();
  SmallVector<AffineExpr> grid = productGrid(p, schedule);
  em.loop(begin, end, 1, [&](Index task) {
    SmallVector<Index> at = em.delinearize(task, ArrayRef(grid).drop_back());
    Value panel =
        em.add(em.mul(at[0].base, em.size(launchPanels(p, schedule))), em.mul(at[1].base, em.i64(tileN / kPanel)));
    Value to = offsetBy(em, em.output(0), em.mul(panel, em.size(runtimePanelFloats(p))), p.element());
    packPanels(p, schedule, em, em.delinearize(at[0], p.batch), em.mulIndex(at[1], em.i64(tileN), tileN), to);
  });
}

void contract::emitProduct(const Product &p, Schedule schedule, const Epilogue &epilogue, Emitter &em, Value begin,
                           Value end) {
  const Type element = p.element();
  const int64_t tileM = schedule.getTileM(), tileN = schedule.getTileN();
  const int64_t rows = schedule.rowsFor(em.vectors().bits);
  const int64_t cols = schedule.colsFor(em.vectors().bits);
  const int64_t groupPanels = cols / kPanel;
  const int64_t rhsInput = schedule.getRhs(), run = schedule.getRun();
  const bool lhsCopy = schedule.getLhsCopy(), lhsTransposed = schedule.getLhsTransposed();
  const bool rhsPacked = rhsInput >= 0;
  const Type bType = packedType(em, rhsInput, element), right = bType ? bType : element;
  const bool lhsLaunch = schedule.getLhsLaunch(), rhsLaunch = schedule.getRhsLaunch();
  const bool rhsInPlace = schedule.getRhsInPlace(),
             isRowsOuter = schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter;
  const bool direct = schedule.getDirect();
  const int64_t prefetchBytes = schedule.prefetchBytesFor(em.vectors().bits);
  const Value tile = em.stackBuffer(element, rows * cols);
  const Value N = em.size(p.N), K = em.size(p.K);
  const AffineExpr panelStride = rhsInPlace  ? getAffineConstantExpr(kPanel, p.K.getContext())
                                 : rhsPacked ? prim::simplifySize(p.K * kPanel)
                                             : runtimePanelFloats(p);
  const Value panelFloats = em.size(panelStride);
  const AffineExpr blocks = productGrid(p, schedule).back();

  em.loop(begin, end, 1, [&](Index task) {
    unsigned temporary = em.region().getNumOperands(); // of the launches before
    SmallVector<AffineExpr> sizes = productGrid(p, schedule);
    if (isRowsOuter)
      std::swap(sizes[1], sizes[2]);
    SmallVector<Index> grid = em.delinearize(task, sizes);
    if (isRowsOuter)
      std::swap(grid[1], grid[2]);
    Index batch = grid[0];
    SmallVector<Index> batchAt = em.delinearize(batch, p.batch);
    Index m0 = em.mulIndex(grid[2], em.i64(tileM), tileM), n0 = em.mulIndex(grid[1], em.i64(tileN), tileN);
    Extent count = blockExtent(em, p.M, m0.base, tileM);
    std::optional<int64_t> rest = blockRest(p.m, tileM, rows);

    // Rows of A.
    Value a;
    Extent rowStride;
    if (lhsCopy) {
      rowStride = Extent(em.size(copyStride(p)), prim::getConstantSize(copyStride(p)));
      if (lhsLaunch) {
        const Index block = em.addIndex(em.mulIndex(batch, em.size(blocks), prim::getConstantSize(blocks)), grid[2]);
        a = offsetBy(em, em.input(temporary++), em.mul(block.base, em.size(copyFloats(p, schedule))), element);
      } else {
        a = offsetBy(em, em.scratch(), em.size(packedFloats(p, schedule)), element);
        copyRows(p, schedule, em, batchAt, m0, count, a);
      }
    } else {
      const LinesInPlace inPlace = *linesInPlace(p, p.lhs, DimRef::Depth);
      rowStride = Extent(em.size(inPlace.stride), prim::getConstantSize(inPlace.stride));
      a = offsetBy(em, batchStart(em, inPlace, batchAt, element), em.mul(m0.base, rowStride.get(em)), element);
    }

    // Panels of B.
    Value b;
    const Value blockPanels = em.i64(tileN / kPanel);
    Value panelsHere = em.min(blockPanels, em.sub(em.size(panelsOf(p)), em.mul(grid[1].base, blockPanels)));
    if (rhsInPlace) {
      b = offsetBy(em, batchStart(em, *linesInPlace(p, p.rhs, DimRef::Column), batchAt, element), n0.base, element);
    } else if (rhsPacked || rhsLaunch) {
      b = em.input(rhsPacked ? rhsInput : temporary);
      Value perBatch = em.size(rhsPacked ? panelsOf(p) : launchPanels(p, schedule));
      Value first = em.add(em.mul(batch.base, perBatch), em.mul(grid[1].base, blockPanels));
      b = offsetBy(em, b, em.mul(first, panelFloats), right);
    } else {
      b = em.scratch();
      packPanels(p, schedule, em, batchAt, n0, b);
    }

    // One group of panels. The epilogue follows each block of rows: its stores drain while the next block computes.
    auto group = [&](Index panel, int64_t panels, Extent columns) {
      Value bHere = offsetBy(em, b, em.mul(panel.base, panelFloats), right);
      Index n = p.n == 1 ? em.constant(0) : em.addIndex(n0, em.mulIndex(panel, em.i64(kPanel), kPanel));
      // Whole panels: what is behind them is not written.
      const bool isDirect = direct && columns.constant == panels * kPanel;
      forTiles(em, count, rows, rest, [&](Index first, Extent height, std::optional<int64_t> restHere) {
        forRowBlocks(em, height, rows, restHere, [&](Value row, int64_t blockRows) {
          MicroKernel kernel;
          kernel.element = element;
          if (lhsTransposed) {
            const Value tileAt = em.mul(em.divUnsigned(first.base, em.i64(rows)), em.size(copiedTileFloats(p, rows)));
            kernel.a = offsetBy(em, a, em.add(tileAt, row), element);
            kernel.rowOffsets = uniformRows(blockRows, 1);
            kernel.depthStride = rows;
          } else {
            kernel.a = offsetBy(em, a, em.mul(em.add(first.base, row), rowStride.get(em)), element);
            kernel.rowOffsets = uniformRows(blockRows, rowStride.constant.value_or(0));
            if (!rowStride.constant)
              kernel.rowStride = rowStride.value;
          }
          kernel.depth = Extent(K, p.k);
          kernel.freesRegisters = hasFunctions(em.region());
          kernel.partialDepth = schedule.getPartialDepth();
          kernel.b = bHere;
          kernel.bType = bType;
          kernel.panels = panels;
          kernel.panelStride = Extent(panelFloats, prim::getConstantSize(panelStride));
          if (rhsInPlace)
            kernel.stepStride = *p.n;
          kernel.c = offsetBy(em, tile, em.mul(row, em.i64(cols)), element);
          kernel.cOffsets = uniformRows(blockRows, cols);
          if (isDirect) {
            const Value line = em.add(em.mul(batch.base, em.size(p.M)), em.add(m0.base, em.add(first.base, row)));
            kernel.c = offsetBy(em, em.output(0), em.add(em.mul(line, N), n.base), element);
            kernel.cOffsets = uniformRows(blockRows, *p.n);
          }
          if (p.m ? *p.m <= rows : blockRows < rows) {
            kernel.prefetchDistance = prefetchBytes / p.elementBytes();
          } else if ((rhsPacked || rhsLaunch) && p.k && blockRows == rows &&
                     fitsTwice(groupPanels * kPanel * *p.k * p.elementBytes())) {
            // (Not of what the task has packed: it is near, and behind its last panels another worker packs its own.)
            kernel.prefetch = offsetBy(em, bHere, em.mul(em.i64(groupPanels), panelFloats), right);
            kernel.prefetchPart = em.divUnsigned(first.base, em.i64(rows));
            kernel.prefetchParts = std::max<int64_t>(1, std::min(tileM, p.m.value_or(tileM)) / rows);
            if ((!lhsCopy || lhsLaunch) && (!p.m || *p.m > rows)) { // else no block follows
              const Value next =
                  lhsTransposed ? em.size(copiedTileFloats(p, rows)) : em.mul(em.i64(rows), rowStride.get(em));
              kernel.nextRows = offsetBy(em, kernel.a, next, element);
            }
          }
          emitMicroKernel(em, kernel);
        });
        if (isDirect)
          return;
        em.loop(em.i64(0), height.get(em), 1, [&](Index row) {
          SmallVector<Index> rowAt = em.delinearize(em.addIndex(m0, em.addIndex(first, row)), p.rows);
          Index start = em.mulIndex(row, em.i64(cols), cols);
          forColumns(
              em, p.n == 1, n, start, columns,
              [&](Index column, Index offset) {
                SmallVector<Index> at = batchAt;
                llvm::append_range(at, rowAt);
                llvm::append_range(at, em.delinearize(column, p.columns));
                storeEpilogue(em, epilogue, at, em.loadAt(tile, element, offset));
              },
              run);
        });
        em.clearSources();
      });
    };
    const Value firstPanel = em.mul(grid[1].base, blockPanels);
    forGroups(em, firstPanel, panelsHere, groupPanels, Extent(N, p.n), group);
  });
}
