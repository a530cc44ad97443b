//===- WidthConv.cpp - the "cpu.width_conv" strategy: convolutions with few channels in the result ---------------===//
//
// Lanes run along the lines of the image (the last spatial dim), where many lanes along the result's channels would be
// empty: the last convolution of an autoencoder or of a denoiser, a blur of each of three colours, edges of a grey
// image; 34 channels, which take three panels of 16. A task is a tile of the result, and takes each group's channels in
// two steps:
//
//   1. the lines of the input that the tile's windows meet go to scratch with their padding, channels first; elements
//      that lie the stride apart become neighbours. Channels that are last in memory are transposed in registers.
//   2. blocks of rows x vectors of a line, for several channels of the group's result at once, stay in registers, while
//      each vector from scratch is multiplied by the filter's scalars. Where there are more than a few, the sums of all
//      go to scratch and are transposed, too: such channels are last in memory.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/MicroKernel.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/Convolution.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuWidthConvAttr;

/// Most channels of a group's result whose sums for one vector stay in registers of every CPU, and most at all.
constexpr int64_t kMostWhole = 8, kMostColumns = 64;
/// From so many channels on, those that lie last in memory are transposed in registers.
constexpr int64_t kLeastTransposed = 8;
/// Most multiply-adds of a block that are written out.
constexpr int64_t kMostWritten = 320;
/// A tile's lines stay in the second-level cache beside what else is there.
constexpr int64_t kTileBytes = machine::kCaches.l2 / 32 * 3;
constexpr int64_t kMostTileW = 256, kMostTileH = 16;
/// What a thread should get at least, in floating-point operations.
constexpr double kGrainFlops = 3e5;
/// Ours must take at most this part of the time of products by panels, by the estimate below.
constexpr double kLeastGain = 0.95;

struct Lines : Convolution {
  Lines(const Convolution &convolution, const Epilogue &epilogue) : Convolution(convolution), epilogue(epilogue) {}

  const Epilogue &epilogue;

  /// The op: accessors of ops are not const.
  prim::ConvOp conv() const { return op; }
  /// Where tap `tap` of a kernel row finds the element for the line's first result: in which phase (elements that lie
  /// the stride apart are neighbours in one), and at which place of that.
  int64_t phaseOf(int64_t tap) const { return tap * dilationW % strideW; }
  int64_t placeOf(int64_t tap) const { return tap * dilationW / strideW; }
  /// Elements of one phase of a line in scratch, all of which are set: whole vectors of the result read them.
  int64_t pitch(int64_t tileW) const { return roundUp(tileW + placeOf(kernelW - 1) + strideW, kPanel); }
  /// Lines of a channel in scratch: those of each tap of the outer dims.
  int64_t lines(int64_t tileH) const { return outerTaps() * haloH(tileH); }
  /// What is copied to scratch.
  int64_t copiedFloats(int64_t tileH, int64_t tileW) const { return channels * lines(tileH) * strideW * pitch(tileW); }
  /// Columns in blocks, and those that are transposed back as whole vectors.
  bool isBlocked() const { return columns > kMostWhole; }
  int64_t transposedColumns() const { return roundUp(columns, kPanel); }
};

/// Whether the lanes of other strategies are the channels of all groups: a vector of them is full.
bool hasLanesOfGroups(const Lines &c) { return c.isDepthwise() || (c.groups > 1 && c.channels == 1); }

std::optional<Lines> analyzeLines(const RegionProblem &region) {
  Operation *anchor = region.findAnchor();
  const Convolution *convolution = region.findConvolution();
  const Epilogue *epilogue = convolution ? region.findWholeEpilogue(anchor->getResult(0)) : nullptr;
  if (!epilogue)
    return std::nullopt;
  const Lines c(*convolution, *epilogue);
  if (c.columns > kMostColumns || c.taps() < 2 || c.channels == 0 || c.columns == 0)
    return std::nullopt;
  if (hasLanesOfGroups(c) && c.groups * c.columns >= kPanel)
    return std::nullopt;
  for (Value value : {anchor->getOperand(0), anchor->getOperand(1), Value(anchor->getResult(0))})
    if (!isF32(value))
      return std::nullopt;
  return c;
}

/// The dim of the input that the lines run along.
unsigned lineDim(const Lines &c) { return c.spatial; }

bool isTransposed(const Lines &c) {
  return c.channels >= kLeastTransposed && !isInnermost(c.conv().getInput(), lineDim(c)) &&
         isInnermost(c.conv().getInput(), int64_t(lineDim(c)) + 1);
}

/// Whether neighbours in a line are neighbours in the region's results, too.
bool storesLines(const Lines &c) {
  if (c.groups * c.columns == 1)
    return true;
  // Behind a transpose the channels are no longer last.
  for (Operation &op : *c.conv()->getBlock())
    if (isa<prim::TransposeOp>(op) && c.conv()->isBeforeInBlock(&op))
      return true;
  return false;
}

/// Whether the sums of blocks are transposed before they are stored.
bool transposesSums(const Lines &c) { return c.isBlocked() && !storesLines(c); }

/// Rows, vectors and columns of a block.
struct Block {
  int64_t rows, vectors, columns;
};
Block chooseBlock(const Lines &c, const VectorUnit &unit, int64_t tileH, int64_t tileW) {
  const int64_t inLine = ceilDiv(std::min(tileW, c.w.value_or(tileW)), unit.width());
  if (!c.isBlocked()) {
    // Sums, a vector of each line, and the scalars of the filter.
    const int64_t most = std::max<int64_t>(1, (unit.registers - 4 - c.columns) / c.columns);
    const int64_t blocks = ceilDiv(inLine, std::min<int64_t>(most, 8));
    const int64_t vectors = ceilDiv(inLine, blocks);
    // Enough sums to hide a multiply-add's latency.
    const int64_t rows = std::max<int64_t>(1, std::min(most / vectors, 12 / (vectors * c.columns)));
    return {std::min(rows, tileH), vectors, c.columns};
  }
  // Sums, two vectors of lines, one scalar of the filter, and one register that LLVM takes.
  const int64_t vectors = std::min<int64_t>(2, inLine), rows = std::min(2 / vectors, tileH);
  const int64_t most = (unit.registers - 2 - vectors * rows) / (vectors * rows);
  return {rows, vectors, ceilDiv(c.columns, ceilDiv(c.columns, most))};
}

/// Columns of a block; all, where the schedule has none.
int64_t columnsOf(const Lines &c, Schedule schedule, const VectorUnit &unit) {
  const int64_t columns = schedule.colsFor(unit.bits);
  return columns ? columns : c.columns;
}

/// Floats of scratch for the sums of a block of rows and vectors, of all columns, before and after they are transposed;
/// where lines are stored as they are, none.
int64_t sumFloats(const Lines &c, Schedule schedule) {
  int64_t most = 0;
  if (transposesSums(c))
    for (const VectorUnit &unit : machine::kVectorUnits)
      most = std::max(most, 2 * schedule.rowsFor(unit.bits) * schedule.vectorsFor(unit.bits) * unit.width() *
                                c.transposedColumns());
  return most;
}

/// Cycles for 16 neighbouring elements of all channels of the result, and those of the strategies whose lanes are the
/// channels, among them Winograd's algorithm if that takes them. Two multiply-adds or loads a cycle; a load from
/// scratch mostly meets two lines of the cache.
struct Estimate {
  double ours, theirs;
};
Estimate estimate(const Lines &c, bool isWinograd, int64_t tileH, int64_t tileW) {
  const double taps = double(c.taps()), columns = double(c.columns), channels = double(c.channels);
  const double width = double(c.likelyWidth(/*usual=*/tileW));
  const double filled = width / double(roundUp(int64_t(std::max(1.0, width)), kPanel));
  const double copied = double(c.lines(tileH)) / double(tileH) * double(c.strideW) * double(c.pitch(tileW)) /
                        double(tileW) * (isTransposed(c) ? 5.0 : 2.5);
  // Both vectors of a line are multiplied by each scalar of a block of columns.
  const double blocks = std::ceil(columns / 13);
  const double products = taps * (c.isBlocked() ? 0.5 * columns + 0.4 * blocks : 1 + 0.4 * (columns - 1));
  const bool isStraight = storesLines(c);
  const double stored = isStraight      ? double(c.groups * c.columns)
                        : c.isBlocked() ? double(c.groups * c.transposedColumns()) * 6.0
                                        : double(c.groups * c.columns) * 16.0;
  const double ours = double(c.groups) * channels * (products + copied) / filled + stored;
  const double panels = double(hasLanesOfGroups(c) ? 1 : c.groups * c.panels());
  // Winograd's algorithm takes half of the products. A single panel takes a load for each multiply-add; several of
  // whole blocks took 1.13 of this (60 convolutions on Zen 4).
  double share = isWinograd ? 0.5 : !c.isBlocked() ? 1.0 : c.panels() == 1 ? 1.25 : 1.13;
  // They leave out kernel positions that read nothing but padding.
  if (!isWinograd) {
    share *= usedShare(dimH(c), 1);
    if (!c.merged())
      share *= usedShare(dimW(c), kPanel);
  }
  if (!c.outer.empty())
    share *= usedShare(dimOuter(c), 1);
  double theirs = panels * channels * taps * 8 * share;
  // Channels that lie apart are gathered; depthwise, all that the windows of a few pixels meet is copied.
  const bool isDirect = inputThroughReshapes(c.conv().getInput()).has_value();
  if (c.isDepthwise() && !isDirect)
    theirs += 16 * panels * double(c.kernelH) * 15;
  else if (!isDirect && isInnermost(c.conv().getInput(), lineDim(c)))
    theirs += 16 * double(c.groups) * channels * 2;
  // They would store element by element.
  if (isStraight && c.isBlocked())
    theirs += double(c.groups * c.columns) * 16.0;
  return {ours, theirs};
}

struct Shape {
  int64_t tileH, tileW;
};
std::optional<Shape> chooseShape(const Lines &c) {
  const int64_t width = std::max<int64_t>(1, c.likelyWidth(/*usual=*/kMostTileW)),
                height = std::max<int64_t>(1, c.likelyHeight(usual::kLineImageHeight));
  // Tiles of a line are about equal.
  Shape shape{1, roundUp(ceilDiv(width, ceilDiv(width, kMostTileW)), kPanel)};
  auto fits = [&](int64_t tileH) { return c.copiedFloats(tileH, shape.tileW) * 4 <= kTileBytes; };
  while (!fits(1) && shape.tileW > kPanel)
    shape.tileW = roundUp(shape.tileW / 2, kPanel);
  if (!fits(1))
    return std::nullopt;
  // Rows share input rows; several tasks for each of many cores.
  const int64_t most = std::min(kMostTileH, std::max<int64_t>(ceilDiv(height, 8), std::min<int64_t>(4, height)));
  while (shape.tileH < most && fits(shape.tileH + 1))
    ++shape.tileH;
  return shape;
}

class Task {
public:
  Task(const Lines &c, Schedule schedule, Emitter &em)
      : c(c), em(em), b(em.builder()), epilogue(c.epilogue), tileH(schedule.getTileH()), tileW(schedule.getTileW()),
        rows(schedule.rowsFor(em.vectors().bits)), vectors(schedule.vectorsFor(em.vectors().bits)),
        columns(columnsOf(c, schedule, em.vectors())), transposesBack(transposesSums(c)),
        transposed(schedule.getTransposed() != 0), f32(b.getF32Type()), pitch(c.pitch(tileW)),
        linePitch(pitch * c.strideW), channelPitch(c.lines(tileH) * linePitch) {}

  static SmallVector<AffineExpr> grid(const Lines &c, int64_t tileH, int64_t tileW) {
    SmallVector<AffineExpr> grid{c.batch};
    grid.append(c.outer.begin(), c.outer.end());
    grid.push_back(prim::simplifySize(c.outH.ceilDiv(tileH)));
    grid.push_back(prim::simplifySize(c.outW.ceilDiv(tileW)));
    return grid;
  }

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

  const Lines &c;
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

class WidthConvGenerator final : public GeneratorFor<Schedule, Lines> {
public:
  std::optional<Lines> analyze(const RegionProblem &region) const override { return analyzeLines(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Lines &c) const override {
    const std::optional<Shape> shape = chooseShape(c);
    if (!shape)
      return failure();
    const bool isWinograd = succeeded(winogradGenerator()->choose(region));
    const Estimate cycles = estimate(c, isWinograd, shape->tileH, shape->tileW);
    if (cycles.ours > kLeastGain * cycles.theirs)
      return failure();
    Schedule::Params params;
    params.tileH = shape->tileH;
    params.tileW = shape->tileW;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      const Block block = chooseBlock(c, unit, shape->tileH, shape->tileW);
      params.rowsFor(unit.bits) = block.rows;
      params.vectorsFor(unit.bits) = block.vectors;
      if (block.columns < c.columns)
        params.colsFor(unit.bits) = block.columns;
    }
    if (isTransposed(c))
      params.transposed = 1;
    const double flops = 2.0 * double(shape->tileH) *
                         double(std::min(shape->tileW, c.likelyWidth(/*usual=*/shape->tileW))) *
                         double(c.groups * c.columns) * double(c.depth());
    params.grain = std::max<int64_t>(1, int64_t(kGrainFlops / std::max(1.0, flops)));
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Lines &c, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    const int64_t tileH = schedule.getTileH(), tileW = schedule.getTileW();
    Launch launch;
    launch.tasks = prim::product(context, Task::grid(c, tileH, tileW));
    launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
    const int64_t floats = c.copiedFloats(tileH, tileW) + sumFloats(c, schedule);
    launch.scratch = getAffineConstantExpr(roundUp(floats * 4, 64), context);
    launch.inPlace = c.epilogue.inPlace();
    return {launch};
  }

  void emitTasks(const Lines &c, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    Task(c, schedule, em).run(begin, end);
  }
};

} // namespace

const Generator *tc::codegen::widthConvGenerator() {
  static const WidthConvGenerator generator;
  return &generator;
}
