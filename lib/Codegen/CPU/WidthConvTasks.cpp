//===- WidthConvTasks.cpp - code of convolutions along the lines of images ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/WidthConv.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::width_conv;

namespace {
/// Most multiply-adds of a block that are written out.
constexpr int64_t kMostWritten = 320;

class Task {
public:
  Task(const WidthConvolution &c, Schedule schedule, Emitter &em)
      : c(c), em(em), b(em.builder()), epilogue(c.epilogue), tileH(schedule.getTileH()), tileW(schedule.getTileW()),
        rows(schedule.rowsFor(em.vectors().bits)), vectors(schedule.vectorsFor(em.vectors().bits)),
        columns(columnsOf(c, schedule, em.vectors())), transposesBack(transposesSums(c)),
        transposed(schedule.getTransposed() != 0), f32(b.getF32Type()), pitch(c.pitch(tileW)),
        linePitch(pitch * c.strideW), channelPitch(c.lines(tileH) * linePitch) {}

  void run(Value begin, Value end) {
    em.loop(begin, end, 1, [&](Index task) {
      const SmallVector<Index> at = em.delinearize(task, grid(c, tileH, tileW));
      outside.assign(at.begin(), at.end() - 2);
      h0 = em.mulIndex(at[at.size() - 2], em.i64(tileH), tileH);
      w0 = em.mulIndex(at.back(), em.i64(tileW), tileW);
      em.loop(em.i64(0), em.i64(c.groups), 1, [&](Index group) {
        copy(group);
        compute(group);
        em.clearSources();
      });
    });
  }

private:
  //===--- step 1 -------------------------------------------------------------------------------------------------===//

  Value both(Value x, Value y) { return arith::AndIOp::create(b, em.loc(), x, y); }
  Value zeros() {
    const VectorType vector = em.vectorOf(f32);
    return arith::ConstantOp::create(b, em.loc(), vector, b.getZeroAttr(vector));
  }

  /// The kernel's sizes in the outer dims.
  SmallVector<AffineExpr> outerTaps() const {
    return llvm::map_to_vector(c.outerKernel,
                               [&](int64_t size) { return getAffineConstantExpr(size, b.getContext()); });
  }

  void copy(Index group) {
    const Value firstH = em.sub(em.mul(h0.base, em.i64(c.strideH)), em.i64(c.padH));
    const Value firstW = em.sub(em.mul(w0.base, em.i64(c.strideW)), em.i64(c.padW));
    em.loop(em.i64(0), em.i64(c.outerTaps()), 1, [&](Index tap) {
      // Where the tap's plane lies in the outer dims, and whether that is inside.
      SmallVector<Index> place{outside.front()};
      Value inside;
      const SmallVector<Index> taps = em.delinearize(tap, outerTaps());
      const SmallVector<AffineExpr> in = prim::getSizes(c.conv().getInput());
      for (size_t i = 0; i < taps.size(); ++i) {
        const Value start =
            em.sub(em.mul(outside[1 + i].base, em.i64(c.conv().getStrides()[i])), em.i64(c.conv().getPadLow()[i]));
        const Value position = em.add(start, em.mul(taps[i].base, em.i64(c.conv().getDilations()[i])));
        const Value here = em.isWithin(position, in[1 + i]);
        inside = inside ? both(inside, here) : here;
        place.push_back(em.uniform(position));
      }
      em.loop(em.i64(0), em.i64(c.haloH(tileH)), 1, [&](Index row) {
        const Value y = em.add(firstH, row.base);
        const Value isInside = inside ? both(inside, em.isWithin(y, c.inH)) : em.isWithin(y, c.inH);
        SmallVector<Index> at(place);
        if (c.spatial >= 2)
          at.push_back(em.uniform(y));
        const Value line = em.mul(em.add(em.mul(tap.base, em.i64(c.haloH(tileH))), row.base), em.i64(linePitch));
        em.ifThen(isInside,
                  [&] { transposed ? transposeLine(group, at, firstW, line) : copyLine(group, at, firstW, line); });
        em.ifThen(em.isNot(isInside), [&] {
          em.loop(em.i64(0), em.i64(c.channels), 1, [&](Index channel) {
            em.loop(
                em.i64(0), em.i64(linePitch), em.width(),
                [&](Index x) {
                  storeAt(zeros(), em.add(em.mul(channel.base, em.i64(channelPitch)), em.add(line, x.base)));
                },
                0);
          });
        });
      });
    });
  }

  void storeAt(Value vector, Value offset) {
    em.withMask({}, [&] { em.storeAt(vector, em.scratch(), f32, em.contiguous(em.uniform(offset, em.width()))); });
  }
  Value loadAt(Value offset) {
    Value vector;
    em.withMask({}, [&] { vector = em.loadAt(em.scratch(), f32, em.contiguous(em.uniform(offset, em.width()))); });
    return vector;
  }

  /// Calls `vectorAt(first, offset, isInside)` for each vector of the line's phases: position of its first lane in the
  /// input, where its place in the channel's line is, and whether all of its lanes lie in the input.
  void forVectors(Value firstW, llvm::function_ref<void(Value, Value, Value)> vectorAt) {
    for (int64_t phase = 0; phase < c.strideW; ++phase)
      em.loop(
          em.i64(0), em.i64(pitch), em.width(),
          [&](Index j) {
            const Value first = em.add(firstW, em.add(em.mul(j.base, em.i64(c.strideW)), em.i64(phase)));
            const Value last = em.add(first, em.i64((em.width() - 1) * c.strideW));
            vectorAt(first, em.add(j.base, em.i64(phase * pitch)),
                     both(em.isWithin(first, c.inW), em.isWithin(last, c.inW)));
          },
          0);
  }
  /// Lanes from `first` on, the stride apart.
  Index lanesFrom(Value first) {
    Index lanes = em.uniform(first);
    lanes.step = c.strideW;
    return lanes;
  }
  /// The lanes that lie in the input.
  Value insideOf(const Index &lanes) {
    const Value positions = em.materialize(lanes);
    return arith::CmpIOp::create(b, em.loc(), arith::CmpIPredicate::ult, positions, em.broadcast(em.size(c.inW)));
  }

  /// A line of each channel, read along the line.
  void copyLine(Index group, ArrayRef<Index> place, Value firstW, Value line) {
    em.loop(em.i64(0), em.i64(c.channels), 1, [&](Index channel) {
      const Value start = em.add(em.mul(channel.base, em.i64(channelPitch)), line);
      SmallVector<Index> at(place);
      at.push_back({});
      at.push_back(em.addIndex(em.mulIndex(group, em.i64(c.channels), c.channels), channel));
      forVectors(firstW, [&](Value first, Value offset, Value isInside) {
        const Value to = em.add(start, offset);
        at[at.size() - 2] = lanesFrom(first);
        em.ifThen(isInside, [&] { storeAt(em.broadcast(em.emit(c.conv().getInput(), at)), to); });
        em.ifThen(em.isNot(isInside), [&] {
          storeAt(em.emitGuarded(insideOf(at[at.size() - 2]), f32, zeros(), /*lanes=*/true,
                                 [&] { return em.broadcast(em.emit(c.conv().getInput(), at)); }),
                  to);
        });
      });
    });
  }

  /// A line of each channel, read along the channels and transposed.
  void transposeLine(Index group, ArrayRef<Index> place, Value firstW, Value line) {
    forVectors(firstW, [&](Value first, Value offset, Value) {
      const Value inside = insideOf(lanesFrom(first));
      const Value last = em.sub(em.size(c.inW), em.i64(1));
      SmallVector<Index> positions;
      for (int64_t lane = 0; lane < em.width(); ++lane) {
        const Value position = em.add(first, em.i64(lane * c.strideW));
        const Value least = arith::MaxSIOp::create(b, em.loc(), position, em.i64(0));
        positions.push_back(em.uniform(em.min(least, last)));
      }
      em.laneLoop(em.i64(c.channels), c.channels, [&](Index channel) {
        SmallVector<Value> pixels;
        for (const Index &position : positions) {
          SmallVector<Index> at(place);
          at.push_back(position);
          at.push_back(em.addIndex(em.mulIndex(group, em.i64(c.channels), c.channels), channel));
          pixels.push_back(em.broadcast(em.emit(c.conv().getInput(), at)));
        }
        const int64_t count = em.mask() ? c.channels % em.width() : em.width();
        const Value start = em.add(em.mul(channel.base, em.i64(channelPitch)), em.add(line, offset));
        for (auto [i, vector] : llvm::enumerate(transposeLanes(em, pixels))) {
          if (int64_t(i) == count)
            break;
          const Value padded = arith::SelectOp::create(b, em.loc(), inside, vector, zeros());
          storeAt(padded, em.add(start, em.i64(int64_t(i) * channelPitch)));
        }
      });
    });
  }

  //===--- step 2 -------------------------------------------------------------------------------------------------===//

  void compute(Index group) {
    const Extent height = blockExtent(em, c.outH, h0.base, tileH), width = blockExtent(em, c.outW, w0.base, tileW);
    const int64_t lanes = em.width();
    std::optional<int64_t> count, rest;
    if (width.constant)
      count = ceilDiv(*width.constant, lanes);
    else if (std::optional<int64_t> last = blockRest(c.w, tileW, vectors * lanes))
      rest = ceilDiv(*last, lanes);
    const Value vectorCount = em.divUnsigned(em.add(width.get(em), em.i64(lanes - 1)), em.i64(lanes));
    const std::optional<int64_t> restRows = height.constant ? std::nullopt : blockRest(c.h, tileH, rows);
    forRowBlocks(em, height, rows, restRows, [&](Value row, int64_t rowsHere) {
      forRowBlocks(em, Extent(vectorCount, count), vectors, rest, [&](Value vector, int64_t vectorsHere) {
        const Value first = em.mul(vector, em.i64(lanes));
        forRowBlocks(em, Extent(c.columns), columns, c.columns % columns, [&](Value column, int64_t columnsHere) {
          block(group, row, rowsHere, first, vectorsHere, column, columnsHere, width.get(em));
        });
        if (transposesBack)
          turnBack(group, row, rowsHere, first, vectorsHere, width.get(em));
      });
    });
  }

  /// Rows `row` and on, vectors from element `x0` of the tile's lines on, columns from `column` on.
  void block(Index group, Value row, int64_t rowsHere, Value x0, int64_t vectorsHere, Value column, int64_t columnsHere,
             Value width) {
    const Location loc = em.loc();
    const int64_t inputs = rowsHere * vectorsHere, sums = inputs * columnsHere;
    const Value start = em.add(em.mul(row, em.i64(c.strideH * linePitch)), x0);
    auto channelAt = [&](int64_t o) {
      return em.addIndex(em.mulIndex(group, em.i64(c.columns), c.columns), em.uniform(em.add(column, em.i64(o))));
    };
    // Adds the products of kernel element x of a row to the sums; `line`: where the first row's line of it begins.
    auto addProducts = [&](ArrayRef<Index> filterAt, Index x, Value line, MutableArrayRef<Value> values) {
      auto weight = [&](int64_t o) {
        SmallVector<Index> at(filterAt);
        at.insert(at.end() - 1, x);
        at.push_back(channelAt(o));
        return em.broadcast(em.emit(c.conv().getFilter(), at));
      };
      auto input = [&](int64_t i) {
        const int64_t r = i / vectorsHere, v = i % vectorsHere;
        return loadAt(em.add(line, em.i64(r * c.strideH * linePitch + v * em.width())));
      };
      // The fewer of both stay in registers.
      const bool keepsInputs = c.isBlocked();
      SmallVector<Value> kept;
      for (int64_t i = 0; i < (keepsInputs ? inputs : columnsHere); ++i)
        kept.push_back(keepsInputs ? input(i) : weight(i));
      for (int64_t j = 0; j < (keepsInputs ? columnsHere : inputs); ++j) {
        const Value other = keepsInputs ? weight(j) : input(j);
        for (auto [i, value] : llvm::enumerate(kept)) {
          Value &sum = values[keepsInputs ? j * inputs + int64_t(i) : int64_t(i) * inputs + j];
          sum = vector::FMAOp::create(b, loc, keepsInputs ? value : other, keepsInputs ? other : value, sum);
        }
      }
    };
    // Of many sums, LLVM would load the scalars of all steps ahead, and spill them.
    const bool isWritten = sums * c.kernelW <= kMostWritten && !c.isBlocked();
    auto addChannel = [&](Index channel, ValueRange before) {
      return em.loop(em.i64(0), em.i64(c.outerTaps() * c.kernelH), 1, before, [&](Index tap, ValueRange ofLines) {
        SmallVector<Value> values(ofLines);
        const Value plane = em.divUnsigned(tap.base, em.i64(c.kernelH)),
                    y = em.remUnsigned(tap.base, em.i64(c.kernelH));
        SmallVector<Index> filterAt = em.delinearize(em.uniform(plane), outerTaps());
        if (c.spatial >= 2)
          filterAt.push_back(em.uniform(y));
        filterAt.push_back(channel);
        const Value lines = em.add(em.mul(plane, em.i64(c.haloH(tileH))), em.mul(y, em.i64(c.dilationH)));
        const Value line =
            em.add(em.add(em.mul(channel.base, em.i64(channelPitch)), em.mul(lines, em.i64(linePitch))), start);
        if (isWritten) {
          for (int64_t x = 0; x < c.kernelW; ++x)
            addProducts(filterAt, em.constant(x), em.add(line, em.i64(c.phaseOf(x) * pitch + c.placeOf(x))), values);
          return values;
        }
        return em.loop(em.i64(0), em.i64(c.kernelW), 1, values, [&](Index x, ValueRange ofElements) {
          SmallVector<Value> next(ofElements);
          const Value distance = em.mul(x.base, em.i64(c.dilationW));
          const Value phase = em.remUnsigned(distance, em.i64(c.strideW)),
                      place = em.divUnsigned(distance, em.i64(c.strideW));
          addProducts(filterAt, x, em.add(line, em.add(em.mul(phase, em.i64(pitch)), place)), next);
          return next;
        });
      });
    };
    const SmallVector<Value> values = em.reduceLoop(prim::ReduceKind::Sum, f32, em.i64(0), em.i64(c.channels), 1,
                                                    SmallVector<Value>(sums, zeros()), c.taps(), addChannel);
    for (int64_t r = 0; r < rowsHere; ++r)
      for (int64_t v = 0; v < vectorsHere; ++v) {
        auto sumOf = [&](int64_t o) { return values[o * inputs + r * vectorsHere + v]; };
        if (transposesBack) {
          for (int64_t o = 0; o < columnsHere; ++o)
            storeAt(sumOf(o),
                    em.add(sumPlace(r, v, vectorsHere), em.mul(em.add(column, em.i64(o)), em.i64(em.width()))));
          continue;
        }
        const Index lane = em.contiguous(em.uniform(em.add(x0, em.i64(v * em.width())), em.width()));
        Value mask;
        if (!c.w || *c.w % em.width() != 0)
          mask = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, em.materialize(lane), em.broadcast(width));
        em.withMask(mask, [&] {
          for (int64_t o = 0; o < columnsHere; ++o) {
            SmallVector<Index> at = resultAt(em.add(row, em.i64(r)), lane);
            at.push_back(channelAt(o));
            storeEpilogue(em, epilogue, at, sumOf(o));
            em.clearSources();
          }
        });
      }
  }

  /// Where in the result row `row` and element `x` of the tile are, up to the channel.
  SmallVector<Index> resultAt(Value row, Index x) {
    SmallVector<Index> at(outside);
    if (c.spatial >= 2)
      at.push_back(em.addIndex(h0, em.uniform(row)));
    at.push_back(em.addIndex(w0, x));
    return at;
  }

  //===--- transposed sums ---------------------------------------------------------------------------------------===//

  int64_t vectorFloats() const { return c.transposedColumns() * em.width(); }
  /// Where the sums for vector v of row r of a block begin: [columns][width]. Behind those of all, they lie transposed.
  Value sumPlace(int64_t r, int64_t v, int64_t vectorsHere) {
    return em.i64(c.copiedFloats(tileH, tileW) + (r * vectorsHere + v) * vectorFloats());
  }

  /// Transposes the sums of a block's rows and vectors, and stores its pixels.
  void turnBack(Index group, Value row, int64_t rowsHere, Value x0, int64_t vectorsHere, Value width) {
    const int64_t lanes = em.width(), count = rowsHere * vectorsHere;
    const Value sums = sumPlace(0, 0, vectorsHere), transposedSums = em.add(sums, em.i64(count * vectorFloats()));
    em.loop(em.i64(0), em.i64(count), 1, [&](Index vector) {
      const Value place = em.mul(vector.base, em.i64(vectorFloats()));
      em.loop(
          em.i64(0), em.i64(c.transposedColumns()), lanes,
          [&](Index column) {
            SmallVector<Value> rowsOf;
            const Value from = em.add(em.add(sums, place), em.mul(column.base, em.i64(lanes)));
            for (int64_t i = 0; i < lanes; ++i)
              rowsOf.push_back(loadAt(em.add(from, em.i64(i * lanes))));
            const Value to = em.add(em.add(transposedSums, place), column.base);
            for (auto [i, pixel] : llvm::enumerate(transposeLanes(em, rowsOf)))
              storeAt(pixel, em.add(to, em.i64(int64_t(i) * c.transposedColumns())));
          },
          0);
      const Value x = em.add(x0, em.mul(em.remUnsigned(vector.base, em.i64(vectorsHere)), em.i64(lanes)));
      const Value rowHere = em.add(row, em.divUnsigned(vector.base, em.i64(vectorsHere)));
      em.loop(em.i64(0), em.min(em.i64(lanes), em.sub(width, x)), 1, [&](Index pixel) {
        const Index start =
            em.uniform(em.add(em.add(transposedSums, place), em.mul(pixel.base, em.i64(c.transposedColumns()))));
        forColumns(em, /*isSingle=*/false, em.mulIndex(group, em.i64(c.columns), c.columns), start, Extent(c.columns),
                   [&](Index channel, Index offset) {
                     SmallVector<Index> at = resultAt(rowHere, em.uniform(em.add(x, pixel.base)));
                     at.push_back(channel);
                     storeEpilogue(em, epilogue, at, em.loadAt(em.scratch(), f32, offset));
                   });
        em.clearSources();
      });
    });
  }

  const WidthConvolution &c;
  Emitter &em;
  OpBuilder &b;
  const Epilogue &epilogue;
  const int64_t tileH, tileW, rows, vectors, columns;
  /// The sums of blocks are transposed before they are stored; the input is before it is read.
  const bool transposesBack, transposed;
  const Type f32;
  /// Elements of scratch from a phase, line or channel to the next.
  const int64_t pitch, linePitch, channelPitch;
  /// Of the task: batch and outer dims, first row, first element of a line.
  SmallVector<Index> outside;
  Index h0, w0;
};
} // namespace

void width_conv::emit(const WidthConvolution &c, Schedule schedule, Emitter &em, Value begin, Value end) {
  Task(c, schedule, em).run(begin, end);
}
