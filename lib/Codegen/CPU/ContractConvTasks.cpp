//===- ContractConvTasks.cpp - code of convolutions ---------------------------------------------------------------===//
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

/// Kernel positions along one dim that meet the input for some outputs: the first of them and how many.
struct Taps {
  Value first, used;
};

/// Positions and extents of one task of a convolution.
struct ConvolutionTask {
  Index batch, group, h0, w0; // h0, w0: first output pixel
  SmallVector<Index> outer;
  Extent countH, countW;
  Taps tapsOuter, tapsH; // of the outer dims, and of the rows; null: all
};

/// Those of `outputs` outputs from `output` on.
static Taps tapsWithin(Emitter &em, const SpatialDim &dim, Value output, Value outputs) {
  auto at = [&](Value number) { return em.sub(em.mul(number, em.i64(dim.stride)), em.i64(dim.pad)); };
  auto before = [&](Value start, Value limit) { return tapsBefore(em, start, limit, dim.dilation, dim.kernel); };
  const Value first = before(at(em.sub(em.add(output, outputs), em.i64(1))), em.i64(0));
  const Value end = before(at(output), em.size(dim.in));
  return {first, em.sub(arith::MaxSIOp::create(em.builder(), em.loc(), end, first), first)};
}

/// The outer kernel positions that meet the input: of one dim, those within; else null, all.
static Taps outerTapsWithin(const Convolution &c, const ConvolutionTask &task, Emitter &em) {
  if (c.outer.size() != 1 || c.outerTaps() == 1)
    return {};
  return tapsWithin(em, dimOuter(c), task.outer[0].base, em.i64(1));
}

/// Calls body for the rows of the halo that are read; `span`: rows that one kernel position reads.
static void forHaloRows(const Convolution &c, Schedule schedule, const ConvolutionTask &task, Emitter &em, Value span,
                        llvm::function_ref<void(Index)> body) {
  const Value dilation = em.i64(c.dilationH);
  if (!task.tapsH.used) {
    em.loop(em.i64(0), em.add(span, em.i64((c.kernelH - 1) * c.dilationH)), 1, body);
    return;
  }
  const Value end = em.add(task.tapsH.first, task.tapsH.used);
  if (c.dilationH > (schedule.getTileH() - 1) * c.strideH) {
    // Rows between those of two kernel positions are not read.
    em.loop(task.tapsH.first, end, 1, [&](Index tap) {
      const Value start = em.mul(tap.base, dilation);
      em.loop(em.i64(0), span, 1, [&](Index row) { body(em.uniform(em.add(start, row.base))); });
    });
    return;
  }
  em.loop(em.mul(task.tapsH.first, dilation), em.add(em.mul(em.sub(end, em.i64(1)), dilation), span), 1, body);
}

/// Copies the input rows that the task reads to the scratch: [outer kernel positions][halo rows][halo
/// columns][channels].
static void copyInput(const Convolution &c, Schedule schedule, const ConvolutionTask &task, Emitter &em) {
  OpBuilder &b = em.builder();
  Location loc = em.loc();
  prim::ConvOp op = c.op;
  Type f32 = b.getF32Type();
  const int64_t haloH = c.haloH(schedule.getTileH());
  const int64_t pitch = c.haloW(schedule.getTileW()) * c.channels;
  auto max = [&](Value x, Value y) -> Value { return arith::MaxSIOp::create(b, loc, x, y); };
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  auto conjunction = [&](Value x, Value y) -> Value { return arith::AndIOp::create(b, loc, x, y); };
  auto inputSizes = prim::getSizes(op.getInput());
  std::optional<unsigned> plain = c.groups == 1 ? inputThroughReshapes(op.getInput()) : std::nullopt;

  // Columns: the same for all rows.
  Value columns = em.add(em.mul(em.sub(task.countW.get(em), em.i64(1)), em.i64(c.strideW)),
                         em.i64((c.kernelW - 1) * c.dilationW + 1));
  Value first = em.sub(em.mul(task.w0.base, em.i64(c.strideW)), em.i64(c.padW));
  Value low = em.min(max(em.sub(em.i64(0), first), em.i64(0)), columns);
  Value high = max(em.min(em.sub(em.size(c.inW), first), columns), low);
  Value partial = compare(arith::CmpIPredicate::ne, em.sub(high, low), columns);
  // Patches leave out kernel positions that read nothing but padding: of that, so much is read.
  Value firstRead = em.i64(0), endRead = columns;
  if (schedule.getSkipW()) {
    const Value most = em.i64((schedule.patchWFor(em.vectors().bits) - 1) * c.strideW);
    firstRead = max(em.sub(low, most), firstRead);
    endRead = em.min(em.add(high, most), endRead);
  }
  const Value span = em.add(em.mul(em.sub(task.countH.get(em), em.i64(1)), em.i64(c.strideH)), em.i64(1));
  Value firstRow = em.sub(em.mul(task.h0.base, em.i64(c.strideH)), em.i64(c.padH));

  SmallVector<AffineExpr> outerTaps;
  for (int64_t count : c.outerKernel)
    outerTaps.push_back(getAffineConstantExpr(count, b.getContext()));
  const Taps &outer = task.tapsOuter;
  const Value firstTap = outer.used ? outer.first : em.i64(0);
  const Value endTap = outer.used ? em.add(outer.first, outer.used) : em.i64(c.outerTaps());
  em.loop(firstTap, endTap, 1, [&](Index tap) {
    SmallVector<Index> tapAt = em.delinearize(tap, outerTaps);
    SmallVector<Value> outerAt;
    Value outerInside;
    for (unsigned i = 0; i < c.outer.size(); ++i) {
      Value position = em.sub(em.add(em.mul(task.outer[i].base, em.i64(op.getStrides()[i])),
                                     em.mul(tapAt[i].base, em.i64(op.getDilations()[i]))),
                              em.i64(op.getPadLow()[i]));
      outerAt.push_back(position);
      Value ok = em.isWithin(position, inputSizes[1 + i]);
      outerInside = outerInside ? conjunction(outerInside, ok) : ok;
    }
    forHaloRows(c, schedule, task, em, span, [&](Index row) {
      Value h = em.add(firstRow, row.base);
      Value ok = em.isWithin(h, c.inH);
      if (outerInside)
        ok = conjunction(ok, outerInside);
      Value to = offsetBy(em, em.scratch(), em.mul(em.add(em.mul(tap.base, em.i64(haloH)), row.base), em.i64(pitch)));
      em.ifThen(arith::OrIOp::create(b, loc, em.isNot(ok), partial), [&] {
        Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
        const Value from = offsetBy(em, to, em.mul(firstRead, em.i64(c.channels)));
        em.laneLoop(em.mul(em.sub(endRead, firstRead), em.i64(c.channels)), std::nullopt,
                    [&](Index lane) { em.storeAt(zero, from, f32, lane); });
      });
      em.ifThen(ok, [&] {
        auto position = [&](Index column, Index channel) {
          SmallVector<Index> at{task.batch};
          for (Value outer : outerAt)
            at.push_back(em.uniform(outer));
          if (c.spatial >= 2)
            at.push_back(em.uniform(h));
          at.push_back(column);
          at.push_back(em.addIndex(em.mulIndex(task.group, em.i64(c.channels), c.channels), channel));
          return at;
        };
        if (plain) {
          // Neighbouring pixels are contiguous.
          Index from = em.linearize(position(em.uniform(em.add(first, low)), em.constant(0)), inputSizes);
          Value source = offsetBy(em, em.input(*plain), from.base);
          Value target = offsetBy(em, to, em.mul(low, em.i64(c.channels)));
          em.laneLoop(em.mul(em.sub(high, low), em.i64(c.channels)), std::nullopt,
                      [&](Index lane) { em.storeAt(em.loadAt(source, f32, lane), target, f32, lane); });
        } else if (c.channels >= kLeastLanes) {
          em.loop(low, high, 1, [&](Index column) {
            Index at = em.addIndex(em.uniform(first), column);
            Index start = em.mulIndex(column, em.i64(c.channels), c.channels);
            em.laneLoop(em.i64(c.channels), c.channels, [&](Index lane) {
              em.storeAt(em.emit(op.getInput(), position(at, lane)), to, f32, em.addIndex(start, lane));
            });
          });
        } else {
          // Lanes along the pixels; whole vectors of all channels are interleaved.
          Value source = em.add(first, low), target = em.mul(low, em.i64(c.channels));
          em.laneLoop(em.sub(high, low), std::nullopt, [&](Index lane) {
            SmallVector<Value> channels;
            for (int64_t channel = 0; channel < c.channels; ++channel)
              channels.push_back(em.broadcast(
                  em.emit(op.getInput(), position(em.addIndex(em.uniform(source), lane), em.constant(channel)))));
            const Index pixels = em.mulIndex(lane, em.i64(c.channels), c.channels);
            if (!em.mask()) {
              const Value start = offsetBy(em, to, em.add(target, pixels.base));
              LLVM::StoreOp::create(b, loc, interleaveLanes(em, channels), start, unsigned(sizeof(float)));
              return;
            }
            for (auto [channel, value] : llvm::enumerate(channels))
              em.storeAt(value, to, f32,
                         em.addIndex(em.addIndex(em.uniform(target), em.constant(int64_t(channel))), pixels));
          });
        }
      });
    });
  });
}

void contract::emitPacking(const Convolution &c, Emitter &em, Value begin, Value end) {
  const Value filter = prim::ConvOp(c.op).getFilter();
  const auto sizes = prim::getSizes(filter);
  const Type f32 = em.builder().getF32Type();
  em.loop(begin, end, 1, [&](Index panel) {
    const Value group = em.divUnsigned(panel.base, em.i64(c.panels())),
                within = em.remUnsigned(panel.base, em.i64(c.panels()));
    const Index n = em.uniform(em.add(em.mul(group, em.i64(c.columns)), em.mul(within, em.i64(kPanel))));
    const Value count = em.min(em.i64(kPanel), em.sub(em.i64(c.columns), em.mul(within, em.i64(kPanel))));
    const Value to = offsetBy(em, em.output(0), em.mul(panel.base, em.i64(c.depth() * kPanel)));
    em.loop(em.i64(0), em.i64(c.depth()), 1, [&](Index k) {
      SmallVector<Index> at = em.delinearize(k, ArrayRef(sizes).drop_back());
      at.push_back(n);
      const Value line = offsetBy(em, to, em.mul(k.base, em.i64(kPanel)));
      if (c.columns % kPanel != 0)
        clearFloats(em, line, kPanel);
      em.laneLoop(count, c.columns % kPanel == 0 ? std::optional<int64_t>(kPanel) : std::nullopt, [&](Index lane) {
        at.back() = em.addIndex(n, lane);
        em.storeAt(em.emit(filter, at), line, f32, lane);
      });
    });
  });
  em.clearSources();
}

void contract::emitConvolution(const Convolution &c, Schedule schedule, const Epilogue &epilogue, Emitter &em,
                               Value begin, Value end) {
  prim::ConvOp op = c.op;
  Type f32 = em.builder().getF32Type();
  const int64_t tileH = schedule.getTileH(), tileW = schedule.getTileW();
  const int64_t tileN = schedule.getTileN();
  const int64_t patchH = schedule.patchHFor(em.vectors().bits);
  const int64_t patchW = schedule.patchWFor(em.vectors().bits);
  const int64_t cols = schedule.colsFor(em.vectors().bits);
  const int64_t run = schedule.getRun(), prefetchBytes = schedule.prefetchBytesFor(em.vectors().bits);
  const bool copy = schedule.getLhsCopy(), isRowsOuter = schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter;
  const int64_t pixel = copy ? c.channels : c.channels * c.groups;
  // Distance of rows of pixels. Where it is not known, a micro-kernel's pixels are of one row.
  const AffineExpr rowFloats =
      copy ? getAffineConstantExpr(c.haloW(tileW) * c.channels, c.inW.getContext()) : prim::simplifySize(c.inW * pixel);
  const Extent pitch(em.size(rowFloats), prim::getConstantSize(rowFloats));
  auto rowStride = [&](int64_t rows) {
    return pitch.constant ? Extent(rows * *pitch.constant) : Extent(em.mul(pitch.value, em.i64(rows)));
  };
  const Extent outerStride = rowStride(c.haloH(tileH)), tapStride = rowStride(c.dilationH);
  const Value stepH = rowStride(c.strideH).get(em);
  const int64_t panelFloats = c.depth() * kPanel;
  const int64_t rhsInput = schedule.getRhs();
  const Type bType = packedType(em, rhsInput, em.builder().getF32Type());
  const Value tile = em.stackBuffer(f32, patchH * patchW * cols);
  auto inputSizes = prim::getSizes(op.getInput());

  em.loop(begin, end, 1, [&](Index number) {
    SmallVector<Index> grid = em.delinearize(number, convolutionGrid(c, schedule));
    unsigned outer = c.outer.size();
    ConvolutionTask task;
    task.batch = grid[0];
    task.outer.assign(grid.begin() + 1, grid.begin() + 1 + outer);
    const ArrayRef<Index> inner = ArrayRef(grid).drop_front(outer + 1);
    const ArrayRef<Index> columns = inner.slice(isRowsOuter ? 2 : 0, 2), pixels = inner.slice(isRowsOuter ? 0 : 2, 2);
    task.group = columns[0];
    Index n0 = em.mulIndex(columns[1], em.i64(tileN), tileN);
    task.h0 = em.mulIndex(pixels[0], em.i64(tileH), tileH);
    task.w0 = em.mulIndex(pixels[1], em.i64(tileW), tileW);
    task.countH = blockExtent(em, c.outH, task.h0.base, tileH);
    task.countW = blockExtent(em, c.outW, task.w0.base, tileW);

    task.tapsOuter = outerTapsWithin(c, task, em);
    if (schedule.getSkipH())
      task.tapsH = tapsWithin(em, dimH(c), task.h0.base, task.countH.get(em));
    Value a;
    if (copy) {
      copyInput(c, schedule, task, em);
      em.clearSources();
      a = em.scratch();
    } else {
      SmallVector<Index> at{task.batch};
      for (unsigned i = 0; i < outer; ++i)
        at.push_back(em.mulIndex(task.outer[i], em.i64(op.getStrides()[i]), op.getStrides()[i]));
      if (c.spatial >= 2)
        at.push_back(em.mulIndex(task.h0, em.i64(c.strideH), c.strideH));
      at.push_back(em.mulIndex(task.w0, em.i64(c.strideW), c.strideW));
      at.push_back(em.mulIndex(task.group, em.i64(c.channels), c.channels));
      a = offsetBy(em, em.input(*inputThroughReshapes(op.getInput())), em.linearize(at, inputSizes).base);
    }
    const int64_t tilePanels = tileN / kPanel;
    Value firstPanel = em.mul(columns[1].base, em.i64(tilePanels));
    Value panelsHere = em.min(em.i64(tilePanels), em.sub(em.i64(c.panels()), firstPanel));
    Value b =
        offsetBy(em, em.input(rhsInput < 0 ? em.region().getNumOperands() : rhsInput),
                 em.mul(em.add(em.mul(task.group.base, em.i64(c.panels())), firstPanel), em.i64(panelFloats)), bType);

    MicroKernel kernel;
    kernel.bType = bType;
    kernel.partialDepth = schedule.getPartialDepth();
    kernel.freesRegisters = hasFunctions(em.region());
    const int64_t outerTaps = c.outerTaps();
    kernel.taps.push_back({outerTaps, outerStride});
    Value skippedA, skippedB; // of the kernel positions before the first ones
    // The innermost of the taps so far takes these; in A and B they lie so far apart.
    auto leaveOut = [&](const Taps &taps, Value strideA, int64_t strideB) {
      if (!taps.used)
        return;
      kernel.taps.back().used = taps.used;
      const Value inA = em.mul(taps.first, strideA), inB = em.mul(taps.first, em.i64(strideB));
      skippedA = skippedA ? em.add(skippedA, inA) : inA;
      skippedB = skippedB ? em.add(skippedB, inB) : inB;
    };
    leaveOut(task.tapsOuter, outerStride.get(em), panelFloats / outerTaps);
    kernel.taps.push_back({c.kernelH, tapStride});
    const bool skipsH = schedule.getSkipH(), skipsW = schedule.getSkipW();
    const bool merged = c.merged() && pixel == c.channels && !skipsW;
    if (!merged)
      kernel.taps.push_back({c.kernelW, Extent(c.dilationW * pixel)});
    MicroKernel::Tap &tapH = kernel.taps[1], &tapW = kernel.taps.back();
    kernel.depth = Extent(merged ? c.kernelW * c.channels : c.channels);
    kernel.panelStride = Extent(panelFloats);

    auto group = [&](Index panel, int64_t panels, Extent columns) {
      const Value panelsAt = offsetBy(em, b, em.mul(panel.base, em.i64(panelFloats)), bType);
      const Value firstB = skippedB ? offsetBy(em, panelsAt, skippedB, bType) : panelsAt;
      kernel.b = firstB;
      kernel.panels = panels;
      Index n = em.addIndex(n0, em.mulIndex(panel, em.i64(kPanel), kPanel));
      Index column0 = em.addIndex(em.mulIndex(task.group, em.i64(c.columns), c.columns), n);
      // The epilogue follows each patch: its stores drain while the next one computes.
      auto patch = [&](Index row0, Extent height, std::optional<int64_t> restH, Index w0, Extent width,
                       std::optional<int64_t> restW) {
        forRowBlocks(em, height, patchH, restH, [&](Value row, int64_t blockH) {
          forRowBlocks(em, width, patchW, restW, [&](Value column, int64_t blockW) {
            Value h = em.add(row0.base, row), w = em.add(w0.base, column);
            Value firstA = offsetBy(em, a, em.add(em.mul(h, stepH), em.mul(w, em.i64(c.strideW * pixel))));
            if (skippedA)
              firstA = offsetBy(em, firstA, skippedA);
            kernel.c = offsetBy(em, tile, em.mul(em.add(em.mul(row, em.i64(patchW)), column), em.i64(cols)));
            kernel.prefetch = Value();
            kernel.prefetchDistance = 0;
            if (!fitsTwice(panels * panelFloats * 4)) {
              kernel.prefetchDistance = prefetchBytes / 4;
            } else if (blockH == patchH && blockW == patchW) {
              const int64_t across = std::max<int64_t>(1, std::min(tileW, c.w.value_or(tileW)) / patchW);
              const int64_t down = std::max<int64_t>(1, std::min(tileH, c.h.value_or(tileH)) / patchH);
              kernel.prefetch = offsetBy(em, panelsAt, panels * panelFloats, bType);
              kernel.prefetchPart = em.add(em.mul(em.divUnsigned(row0.base, em.i64(patchH)), em.i64(across)),
                                           em.divUnsigned(w0.base, em.i64(patchW)));
              kernel.prefetchParts = across * down;
            }
            // Both are whole lines where their outputs are as many as the line has.
            const bool wholeH = skipsH && c.h == blockH && prim::getConstantSize(c.inH);
            const bool wholeW = skipsW && c.w == blockW && prim::getConstantSize(c.inW);
            const SmallVector<PatchTap> parts = patchTaps(c, blockH, blockW, wholeH, wholeW);
            const bool isFull = !parts.empty() && parts.front().outputs() == blockH * blockW;
            if (!isFull)
              clearFloats(em, kernel.c, ((blockH - 1) * patchW + blockW) * cols);
            for (const PatchTap &part : parts) {
              kernel.a = firstA;
              kernel.b = firstB;
              kernel.accumulate = !isFull || &part != &parts.front();
              kernel.prefetchFirst = Value();
              // The positions `first` and after of a dim, which lie so far apart in A and B.
              auto take = [&](MicroKernel::Tap &tap, const Taps &taps, Value strideA, int64_t strideB) {
                tap.used = taps.used;
                kernel.a = offsetBy(em, kernel.a, em.mul(taps.first, strideA));
                kernel.b = offsetBy(em, kernel.b, em.mul(taps.first, em.i64(strideB)), bType);
                const Value steps = em.mul(taps.first, em.i64(strideB / kPanel));
                kernel.prefetchFirst = kernel.prefetchFirst ? em.add(kernel.prefetchFirst, steps) : steps;
              };
              if (skipsH)
                take(tapH,
                     part.tapH ? Taps{em.i64(*part.tapH), em.i64(1)}
                               : tapsWithin(em, dimH(c), em.add(task.h0.base, h), em.i64(blockH)),
                     tapStride.get(em), c.kernelW * c.channels * kPanel);
              if (skipsW)
                take(tapW,
                     part.tapW ? Taps{em.i64(*part.tapW), em.i64(1)}
                               : tapsWithin(em, dimW(c), em.add(task.w0.base, w), em.i64(blockW)),
                     em.i64(c.dilationW * pixel), c.channels * kPanel);
              kernel.rowOffsets.clear();
              kernel.cOffsets.clear();
              for (int64_t i : part.rows)
                for (int64_t j : part.columns) {
                  kernel.rowOffsets.push_back(i * c.strideH * pitch.constant.value_or(0) + j * c.strideW * pixel);
                  kernel.cOffsets.push_back((i * patchW + j) * cols);
                }
              emitMicroKernel(em, kernel);
            }
          });
        });
        em.loop(em.i64(0), height.get(em), 1, [&](Index row) {
          Index h = em.addIndex(task.h0, em.addIndex(row0, row));
          em.loop(em.i64(0), width.get(em), 1, [&](Index column) {
            Index w = em.addIndex(task.w0, em.addIndex(w0, column));
            Index start =
                em.mulIndex(em.addIndex(em.mulIndex(row, em.i64(patchW), patchW), column), em.i64(cols), cols);
            forColumns(
                em, c.columns == 1, column0, start, columns,
                [&](Index channel, Index offset) {
                  SmallVector<Index> at{task.batch};
                  llvm::append_range(at, task.outer);
                  if (c.spatial >= 2)
                    at.push_back(h);
                  at.push_back(w);
                  at.push_back(channel);
                  storeEpilogue(em, epilogue, at, em.loadAt(tile, f32, offset));
                },
                run);
          });
        });
        em.clearSources();
      };
      forTiles(em, task.countH, patchH, blockRest(c.h, tileH, patchH),
               [&](Index row0, Extent height, std::optional<int64_t> restH) {
                 forTiles(em, task.countW, patchW, blockRest(c.w, tileW, patchW),
                          [&](Index column0, Extent width, std::optional<int64_t> restW) {
                            patch(row0, height, restH, column0, width, restW);
                          });
               });
    };
    forGroups(em, firstPanel, panelsHere, cols / kPanel, Extent(c.columns), group);
  });
}
