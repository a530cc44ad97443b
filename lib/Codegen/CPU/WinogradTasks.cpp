//===- WinogradTasks.cpp - code of 3x3 convolutions with fewer multiplications ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Winograd.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::winograd;

namespace {
// Steps of the sums over channels that are added up on their own: what they round, the output transform makes larger.
constexpr int64_t kPartialDepth = 32;

/// The transforms of planes of values in f32, scalars or vectors.
class Transform {
public:
  explicit Transform(Emitter &em) : b(em.builder()), loc(em.loc()) {}

  /// B^T x B: 6 x 6 values of as many.
  SmallVector<Value> input(ArrayRef<Value> x) {
    return plane(x, kIn, kIn, [&](ArrayRef<Value> line) { return inputLine(line); });
  }
  /// A^T x A: 4 x 4 values of 6 x 6.
  SmallVector<Value> output(ArrayRef<Value> x) {
    return plane(x, kIn, kOut, [&](ArrayRef<Value> line) { return outputLine(line); });
  }
  /// G x G^T: 6 x 6 values of 3 x 3.
  SmallVector<Value> filter(ArrayRef<Value> x) {
    return plane(x, kTaps, kIn, [&](ArrayRef<Value> line) { return filterLine(line); });
  }

private:
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value scaled(Value x, double factor) {
    TypedAttr attr = b.getF32FloatAttr(float(factor));
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      attr = DenseElementsAttr::get(vector, float(factor));
    return arith::MulFOp::create(b, loc, x, arith::ConstantOp::create(b, loc, attr));
  }

  /// B^T x for six values.
  SmallVector<Value> inputLine(ArrayRef<Value> x) {
    const double pp = kP * kP, qq = kQ * kQ;
    // (x^2 - p^2)(x^2 - q^2) at both ends; (x +- p)(x^2 - q^2) x and (x +- q)(x^2 - p^2) x between.
    auto outer = [&](Value low, Value middle, Value high) {
      return add(sub(scaled(low, pp * qq), scaled(middle, pp + qq)), high);
    };
    Value evenP = sub(x[4], scaled(x[2], qq)), oddP = scaled(sub(x[3], scaled(x[1], qq)), kP);
    Value evenQ = sub(x[4], scaled(x[2], pp)), oddQ = scaled(sub(x[3], scaled(x[1], pp)), kQ);
    return {outer(x[0], x[2], x[4]), add(evenP, oddP), sub(evenP, oddP),
            add(evenQ, oddQ),        sub(evenQ, oddQ), outer(x[1], x[3], x[5])};
  }

  /// A^T x for six values.
  SmallVector<Value> outputLine(ArrayRef<Value> x) {
    Value sumP = add(x[1], x[2]), sumQ = add(x[3], x[4]);
    Value differenceP = sub(x[1], x[2]), differenceQ = sub(x[3], x[4]);
    return {add(add(x[0], sumP), sumQ), add(scaled(differenceP, kP), scaled(differenceQ, kQ)),
            add(scaled(sumP, kP * kP), scaled(sumQ, kQ * kQ)),
            add(add(scaled(differenceP, kP * kP * kP), scaled(differenceQ, kQ * kQ * kQ)), x[5])};
  }

  /// G x for three values: p^i / product of the differences from the other points.
  SmallVector<Value> filterLine(ArrayRef<Value> x) {
    const double pp = kP * kP, qq = kQ * kQ, ofP = 2 * pp * (pp - qq), ofQ = 2 * qq * (qq - pp);
    Value evenP = add(scaled(x[0], 1 / ofP), scaled(x[2], pp / ofP)), oddP = scaled(x[1], kP / ofP);
    Value evenQ = add(scaled(x[0], 1 / ofQ), scaled(x[2], qq / ofQ)), oddQ = scaled(x[1], kQ / ofQ);
    return {scaled(x[0], 1 / (pp * qq)), add(evenP, oddP), sub(evenP, oddP), add(evenQ, oddQ), sub(evenQ, oddQ), x[2]};
  }

  /// Transforms the columns of a square of `side`, then the rows, which then have `results` values.
  static SmallVector<Value> plane(ArrayRef<Value> x, int64_t side, int64_t results,
                                  llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> line) {
    SmallVector<SmallVector<Value>> columns;
    for (int64_t j = 0; j < side; ++j) {
      SmallVector<Value> column;
      for (int64_t i = 0; i < side; ++i)
        column.push_back(x[i * side + j]);
      columns.push_back(line(column));
    }
    SmallVector<Value> all;
    for (int64_t i = 0; i < results; ++i)
      llvm::append_range(all, line(llvm::map_to_vector(columns, [&](ArrayRef<Value> column) { return column[i]; })));
    return all;
  }

  OpBuilder &b;
  Location loc;
};

struct Task {
  Value panel0;
  Index first; // tile
  Extent count;
  /// [36][tile][pitch] (of a launch before: for each outer kernel position), [36][tile][tileN], [16][tileN]; in the
  /// scratch a row of zeros, [pitch], follows.
  Value transformed, products, pixels;
  Value filter; ///< [36][outer kernel position][panel][channel][16]
};
} // namespace

/// First output pixel of a tile: [N, outer dims, H, W].
static SmallVector<Index> positionOf(const Problem &p, Index tile, Emitter &em) {
  SmallVector<Index> at = em.delinearize(tile, p.tileSpace());
  for (Index &pixel : MutableArrayRef(at).take_back(2))
    pixel = em.mulIndex(pixel, em.i64(kOut), kOut);
  return at;
}

/// The transform of what a tile reads at an outer kernel position, to `to`, where its channels begin; `zeros`: a
/// pixel outside of the image.
static void transformTile(const Problem &p, Schedule schedule, Index tile, Index tap, Value zeros, Value to,
                          Emitter &em) {
  OpBuilder &b = em.builder();
  Location loc = em.loc();
  const Type f32 = b.getF32Type();
  const int64_t plane = schedule.getTiles() * p.pitch();
  SmallVector<Index> at = positionOf(p, tile, em);
  prim::ConvOp op = p.c.op;
  SmallVector<AffineExpr> sizes = prim::getSizes(op.getInput()), taps;
  for (int64_t size : p.c.outerKernel)
    taps.push_back(getAffineConstantExpr(size, b.getContext()));
  SmallVector<Index> tapAt = em.delinearize(tap, taps);
  Value image = at[0].base, isImage;
  for (unsigned i = 0; i < p.c.outer.size(); ++i) {
    Value position = em.sub(
        em.add(em.mul(at[1 + i].base, em.i64(op.getStrides()[i])), em.mul(tapAt[i].base, em.i64(op.getDilations()[i]))),
        em.i64(op.getPadLow()[i]));
    Value size = em.size(sizes[1 + i]);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, position, size);
    isImage = isImage ? arith::AndIOp::create(b, loc, isImage, inside).getResult() : inside;
    image = em.add(em.mul(image, size), position);
  }
  image = em.mul(image, em.size(prim::simplifySize(p.c.inH * p.c.inW * p.c.channels)));
  Value base = offsetBy(em, em.input(p.input), image);
  // Pixels outside of the image are read from the zeros.
  auto positions = [&](Value first, int64_t pad, AffineExpr size, SmallVectorImpl<Value> &inside) {
    SmallVector<Value> all;
    for (int64_t i = 0; i < kIn; ++i) {
      all.push_back(em.add(first, em.i64(i - pad)));
      inside.push_back(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, all.back(), em.size(size)));
    }
    return all;
  };
  SmallVector<Value> rowInside, columnInside;
  SmallVector<Value> rows = positions(at.end()[-2].base, p.c.padH, p.c.inH, rowInside);
  SmallVector<Value> columns = positions(at.back().base, p.c.padW, p.c.inW, columnInside);
  if (isImage)
    for (Value &inside : rowInside)
      inside = arith::AndIOp::create(b, loc, inside, isImage);
  SmallVector<Value> pixels;
  for (int64_t i = 0; i < kIn; ++i)
    for (int64_t j = 0; j < kIn; ++j) {
      Value offset = em.mul(em.add(em.mul(rows[i], em.size(p.c.inW)), columns[j]), em.i64(p.c.channels));
      Value inside = arith::AndIOp::create(b, loc, rowInside[i], columnInside[j]);
      pixels.push_back(LLVM::SelectOp::create(b, loc, inside, offsetBy(em, base, offset), zeros));
    }
  em.laneLoop(em.i64(p.c.channels), p.c.channels, [&](Index lane) {
    SmallVector<Value> values = llvm::map_to_vector(pixels, [&](Value pixel) { return em.loadAt(pixel, f32, lane); });
    for (auto [i, value] : llvm::enumerate(Transform(em).input(values)))
      em.storeAt(value, offsetBy(em, to, int64_t(i) * plane), f32, lane);
  });
}

/// The products of the tiles at an outer kernel position.
static void multiply(const Problem &p, Schedule schedule, const Task &t, Index tap, Emitter &em) {
  const int64_t tiles = schedule.getTiles(), tileN = schedule.getTileN(), taskPanels = tileN / kPanel;
  const int64_t rows = schedule.rowsFor(em.vectors().bits);
  const int64_t panels = schedule.colsFor(em.vectors().bits) / kPanel;
  const int64_t panelFloats = p.c.channels * kPanel, taps = p.c.outerTaps();
  std::optional<int64_t> all = prim::getConstantSize(p.tiles()), rest = blockRest(all, tiles, rows);
  Value transformed = t.transformed;
  if (schedule.getTransformLaunch())
    transformed = offsetBy(em, transformed, em.mul(tap.base, em.i64(transformedFloats(p, tiles))));
  em.loop(em.i64(0), em.i64(kInPixels), 1, [&](Index pixel) {
    Value a = offsetBy(em, transformed, em.mul(pixel.base, em.i64(tiles * p.pitch())));
    Value c = offsetBy(em, t.products, em.mul(pixel.base, em.i64(tiles * tileN)));
    Value block = em.add(em.mul(pixel.base, em.i64(taps)), tap.base);
    Value panel = em.add(em.mul(block, em.i64(p.c.panels())), t.panel0);
    Value from = offsetBy(em, t.filter, em.mul(panel, em.i64(panelFloats)));
    // The task's panels at the next pixel lie behind those of other tasks.
    Value beyond = offsetBy(em, from, taps * p.c.panels() * panelFloats);
    em.loop(em.i64(0), em.i64(taskPanels), panels, [&](Index group) {
      Value isEnd = arith::CmpIOp::create(em.builder(), em.loc(), arith::CmpIPredicate::eq, group.base,
                                          em.i64(taskPanels - panels));
      Value nextGroup = arith::SelectOp::create(
          em.builder(), em.loc(), isEnd, beyond,
          offsetBy(em, from, em.add(em.mul(group.base, em.i64(panelFloats)), em.i64(panels * panelFloats))));
      forRowBlocks(em, t.count, rows, rest, [&](Value row, int64_t height) {
        MicroKernel kernel;
        kernel.a = offsetBy(em, a, em.mul(row, em.i64(p.pitch())));
        kernel.rowOffsets = uniformRows(height, p.pitch());
        kernel.depth = Extent(p.c.channels);
        kernel.partialDepth = kPartialDepth;
        kernel.b = offsetBy(em, from, em.mul(group.base, em.i64(panelFloats)));
        kernel.panels = panels;
        kernel.panelStride = Extent(panelFloats);
        kernel.c = offsetBy(em, c, em.add(em.mul(row, em.i64(tileN)), em.mul(group.base, em.i64(kPanel))));
        kernel.cOffsets = uniformRows(height, tileN);
        kernel.accumulate = taps > 1;
        if (height == rows || tiles < rows) {
          kernel.prefetch = nextGroup;
          kernel.prefetchPart = em.divUnsigned(row, em.i64(rows));
          kernel.prefetchParts = std::max<int64_t>(1, std::min(tiles, all.value_or(tiles)) / rows);
        }
        emitMicroKernel(em, kernel);
      });
    });
  });
}

static void transformBack(const Problem &p, Schedule schedule, const Task &t, const Epilogue &epilogue, Emitter &em) {
  const Type f32 = em.builder().getF32Type();
  const int64_t tileN = schedule.getTileN(), plane = schedule.getTiles() * tileN;
  Value n0 = em.mul(t.panel0, em.i64(kPanel));
  Extent columns = blockExtent(em, getAffineConstantExpr(p.c.columns, p.c.batch.getContext()), n0, tileN);
  Index column0 = em.uniform(n0, kPanel);
  em.loop(em.i64(0), t.count.get(em), 1, [&](Index tile) {
    SmallVector<Index> at = positionOf(p, em.addIndex(t.first, tile), em);
    Value from = offsetBy(em, t.products, em.mul(tile.base, em.i64(tileN)));
    em.laneLoop(columns.get(em), columns.constant, [&](Index lane) {
      SmallVector<Value> values;
      for (int64_t i = 0; i < kInPixels; ++i)
        values.push_back(em.loadAt(offsetBy(em, from, i * plane), f32, lane));
      for (auto [i, value] : llvm::enumerate(Transform(em).output(values)))
        em.storeAt(value, offsetBy(em, t.pixels, int64_t(i) * tileN), f32, lane);
    });
    auto extent = [&](AffineExpr size, Index first) { return blockExtent(em, size, first.base, kOut).get(em); };
    const Index top = at.end()[-2], left = at.back();
    em.loop(em.i64(0), extent(p.c.outH, top), 1, [&](Index row) {
      em.loop(em.i64(0), extent(p.c.outW, left), 1, [&](Index column) {
        Index start = em.mulIndex(em.addIndex(em.mulIndex(row, em.i64(kOut), kOut), column), em.i64(tileN), tileN);
        forColumns(em, p.c.columns == 1, column0, start, columns, [&](Index channel, Index offset) {
          SmallVector<Index> pixel(ArrayRef(at).drop_back(2));
          pixel.append({em.addIndex(top, row), em.addIndex(left, column), channel});
          storeEpilogue(em, epilogue, pixel, em.loadAt(t.pixels, f32, offset));
        });
      });
    });
    em.clearSources();
  });
}

void winograd::emitTransforms(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  const int64_t tiles = schedule.getTiles();
  clearFloats(em, em.scratch(), p.c.channels);
  em.loop(begin, end, 1, [&](Index tile) {
    Value block = em.mul(em.divUnsigned(tile.base, em.i64(tiles)), em.i64(launchFloats(p, tiles)));
    Value row = em.mul(em.remUnsigned(tile.base, em.i64(tiles)), em.i64(p.pitch()));
    Value first = offsetBy(em, em.output(0), em.add(block, row));
    em.loop(em.i64(0), em.i64(p.c.outerTaps()), 1, [&](Index tap) {
      transformTile(p, schedule, tile, tap, em.scratch(),
                    offsetBy(em, first, em.mul(tap.base, em.i64(transformedFloats(p, tiles)))), em);
    });
  });
}

void winograd::emitFilter(const Problem &p, Emitter &em, Value begin, Value end) {
  const Value filter = prim::ConvOp(p.c.op).getFilter();
  const Type f32 = em.builder().getF32Type();
  const int64_t blocks = p.c.outerTaps() * p.c.panels(), chunks = ceilDiv(p.c.channels, kPanel);
  const bool isWhole = p.c.columns % kPanel == 0;
  SmallVector<AffineExpr> taps;
  for (int64_t size : p.c.outerKernel)
    taps.push_back(getAffineConstantExpr(size, em.builder().getContext()));
  em.loop(begin, end, 1, [&](Index task) {
    const Value block = em.divUnsigned(task.base, em.i64(chunks)), chunk = em.remUnsigned(task.base, em.i64(chunks));
    const Value panel = em.remUnsigned(block, em.i64(p.c.panels()));
    const Index n = em.uniform(em.mul(panel, em.i64(kPanel)), kPanel);
    const Value count = em.min(em.i64(kPanel), em.sub(em.i64(p.c.columns), n.base));
    const SmallVector<Index> outer = em.delinearize(em.uniform(em.divUnsigned(block, em.i64(p.c.panels()))), taps);
    const Value first = em.mul(chunk, em.i64(kPanel));
    em.loop(first, em.min(em.add(first, em.i64(kPanel)), em.i64(p.c.channels)), 1, [&](Index channel) {
      const Value row = em.add(em.mul(block, em.i64(p.c.channels)), channel.base);
      const Value to = offsetBy(em, em.output(0), em.mul(row, em.i64(kPanel)));
      auto line = [&](int64_t pixel) { return offsetBy(em, to, pixel * blocks * p.c.channels * kPanel); };
      if (!isWhole)
        for (int64_t i = 0; i < kInPixels; ++i)
          clearFloats(em, line(i), kPanel);
      em.laneLoop(count, isWhole ? std::optional<int64_t>(kPanel) : std::nullopt, [&](Index lane) {
        SmallVector<Value> values;
        for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
          SmallVector<Index> at = outer;
          at.append({em.constant(tap / kTaps), em.constant(tap % kTaps), channel, em.addIndex(n, lane)});
          values.push_back(em.emit(filter, at));
        }
        for (auto [i, value] : llvm::enumerate(Transform(em).filter(values)))
          em.storeAt(value, line(int64_t(i)), f32, lane);
      });
    });
  });
  em.clearSources();
}

void winograd::emit(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  const int64_t tiles = schedule.getTiles(), tileN = schedule.getTileN();
  const bool transformLaunch = schedule.getTransformLaunch();
  SmallVector<AffineExpr> space = grid(p, schedule);
  em.loop(begin, end, 1, [&](Index task) {
    SmallVector<Index> at = em.delinearize(task, space);
    if (schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter)
      std::swap(at[0], at[1]);
    Task t;
    t.panel0 = em.mul(at[0].base, em.i64(tileN / kPanel));
    t.first = em.mulIndex(at[1], em.i64(tiles), tiles);
    t.count = blockExtent(em, p.tiles(), t.first.base, tiles);
    unsigned temporary = em.region().getNumOperands(); // of the launches before
    if (transformLaunch) {
      t.transformed = offsetBy(em, em.input(temporary++), em.mul(at[1].base, em.i64(launchFloats(p, tiles))));
      t.products = em.scratch();
    } else {
      t.transformed = em.scratch();
      t.products = offsetBy(em, t.transformed, transformedFloats(p, tiles));
    }
    t.filter = em.input(schedule.getRhs() < 0 ? temporary : unsigned(schedule.getRhs()));
    t.pixels = offsetBy(em, t.products, kInPixels * tiles * tileN);
    const Value zeros = offsetBy(em, t.pixels, kOutPixels * tileN);
    if (!transformLaunch)
      clearFloats(em, zeros, p.c.channels);
    auto takeTap = [&](Index tap) {
      if (!transformLaunch)
        em.loop(em.i64(0), t.count.get(em), 1, [&](Index tile) {
          transformTile(p, schedule, em.addIndex(t.first, tile), tap, zeros,
                        offsetBy(em, t.transformed, em.mul(tile.base, em.i64(p.pitch()))), em);
        });
      multiply(p, schedule, t, tap, em);
    };
    if (p.c.outerTaps() == 1) {
      takeTap(em.uniform(em.i64(0)));
    } else {
      clearFloats(em, t.products, kInPixels * tiles * tileN);
      em.loop(em.i64(0), em.i64(p.c.outerTaps()), 1, takeTap);
    }
    transformBack(p, schedule, t, p.epilogue, em);
  });
}
