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

#include "CPU/WidthConv.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::width_conv;

namespace {

/// Most channels of a group's result.
constexpr int64_t kMostColumns = 64;
/// From so many channels on, those that lie last in memory are transposed in registers.
constexpr int64_t kLeastTransposed = 8;
/// A tile's lines stay in the second-level cache beside what else is there.
constexpr int64_t kTileBytes = machine::kCaches.l2 / 32 * 3;
constexpr int64_t kMostTileW = 256, kMostTileH = 16;
/// What a thread should get at least, in floating-point operations.
constexpr double kGrainFlops = 3e5;
/// Ours must take at most this part of the time of products by panels, by the estimate below.
constexpr double kLeastGain = 0.95;

/// Whether the lanes of other strategies are the channels of all groups: a vector of them is full.
bool hasLanesOfGroups(const WidthConvolution &c) { return c.isDepthwise() || (c.groups > 1 && c.channels == 1); }

std::optional<WidthConvolution> analyzeWidthConvolution(const RegionProblem &region) {
  Operation *anchor = region.findAnchor();
  const Convolution *convolution = region.findConvolution();
  const Epilogue *epilogue = convolution ? region.findWholeEpilogue(anchor->getResult(0)) : nullptr;
  if (!epilogue)
    return std::nullopt;
  const WidthConvolution c(*convolution, *epilogue);
  if (c.columns > kMostColumns || c.taps() < 2 || c.channels == 0 || c.columns == 0)
    return std::nullopt;
  if (hasLanesOfGroups(c) && c.groups * c.columns >= kPanel)
    return std::nullopt;
  for (Value value : {anchor->getOperand(0), anchor->getOperand(1), Value(anchor->getResult(0))})
    if (!isF32(value))
      return std::nullopt;
  return c;
}

bool isTransposed(const WidthConvolution &c) {
  return c.channels >= kLeastTransposed && !isInnermost(c.conv().getInput(), lineDim(c)) &&
         isInnermost(c.conv().getInput(), int64_t(lineDim(c)) + 1);
}

/// Rows, vectors and columns of a block.
struct Block {
  int64_t rows, vectors, columns;
};
Block chooseBlock(const WidthConvolution &c, const VectorUnit &unit, int64_t tileH, int64_t tileW) {
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

/// Floats of scratch for the sums of a block of rows and vectors, of all columns, before and after they are transposed;
/// where lines are stored as they are, none.
int64_t sumFloats(const WidthConvolution &c, Schedule schedule) {
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
Estimate estimate(const WidthConvolution &c, bool isWinograd, int64_t tileH, int64_t tileW) {
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
std::optional<Shape> chooseShape(const WidthConvolution &c) {
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

class WidthConvGenerator final : public GeneratorFor<Schedule, WidthConvolution> {
public:
  std::optional<WidthConvolution> analyze(const RegionProblem &region) const override {
    return analyzeWidthConvolution(region);
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const WidthConvolution &c) const override {
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
    params.grain = grainFor(kGrainFlops, flops);
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const WidthConvolution &c, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    const int64_t tileH = schedule.getTileH(), tileW = schedule.getTileW();
    Launch launch;
    launch.tasks = prim::product(context, grid(c, tileH, tileW));
    const int64_t floats = c.copiedFloats(tileH, tileW) + sumFloats(c, schedule);
    launch.scratch = scratchBytes(context, floats * 4);
    launch.inPlace = c.epilogue.inPlace();
    return {launch};
  }

  void emitTasks(const WidthConvolution &c, Schedule schedule, unsigned, Emitter &em, Value begin,
                 Value end) const override {
    width_conv::emit(c, schedule, em, begin, end);
  }
};

} // namespace

bool width_conv::storesLines(const WidthConvolution &c) {
  if (c.groups * c.columns == 1)
    return true;
  // Behind a transpose the channels are no longer last.
  for (Operation &op : *c.conv()->getBlock())
    if (isa<prim::TransposeOp>(op) && c.conv()->isBeforeInBlock(&op))
      return true;
  return false;
}

bool width_conv::transposesSums(const WidthConvolution &c) { return c.isBlocked() && !storesLines(c); }

int64_t width_conv::columnsOf(const WidthConvolution &c, Schedule schedule, const VectorUnit &unit) {
  const int64_t columns = schedule.colsFor(unit.bits);
  return columns ? columns : c.columns;
}

SmallVector<AffineExpr> width_conv::grid(const WidthConvolution &c, int64_t tileH, int64_t tileW) {
  SmallVector<AffineExpr> grid{c.batch};
  grid.append(c.outer.begin(), c.outer.end());
  grid.push_back(prim::simplifySize(c.outH.ceilDiv(tileH)));
  grid.push_back(prim::simplifySize(c.outW.ceilDiv(tileW)));
  return grid;
}

const Generator *tc::codegen::widthConvGenerator() {
  static const WidthConvGenerator generator;
  return &generator;
}
