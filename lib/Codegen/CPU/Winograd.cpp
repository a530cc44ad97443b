//===- Winograd.cpp - the "cpu.winograd" strategy: 3x3 convolutions with fewer multiplications -------------------===//
//
// F(4x4, 3x3): sixteen output pixels of one channel pair cost 36 multiplications instead of 144. A tile of 6 x 6 input
// pixels d and a filter g give the output pixels Y = A^T ((G g G^T) * (B^T d B)) A; the products are summed over the
// input channels, which makes 36 matrix products of [tiles, channels] x [channels, output channels]. G g G^T is made
// when the artifact is written. Interpolation points 0, +-3/4, +-3/2 and infinity: all factors are exact in f32, and
// the error is 1.8 times that of direct summation in the mean square (256 channels, normal data), where 0, +-1, +-2
// give 3.3 times.
//
// A task is a block of tiles (of all images, in row-major order) times a block of output channels: transform the tiles
// to scratch (or take them from a launch before), multiply by micro-kernels, transform back, epilogue. The transforms
// are of the last two spatial dims; kernel positions along those before are further channels to sum over, which a task
// takes one after another.
//
// Sources: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", section 4; the points are among those
// of Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks",
// section 6.
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

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuWinogradAttr;

// Output pixels of a tile along a dim, input pixels, and both of them in a plane.
constexpr int64_t kOut = 4, kIn = 6, kOutPixels = kOut * kOut, kInPixels = kIn * kIn;
// The points p and q of 0, +-p, +-q, infinity.
constexpr double kP = 0.75, kQ = 1.5;
// Bytes of scratch that stay in the second-level cache beside the filter that streams through, and of a filter that
// stays there.
constexpr int64_t kScratchBytes = machine::kCaches.l2 / 8 * 5, kFilterBytes = machine::kCaches.l2 / 8 * 3;
// Bytes a cycle from the second-level and from the third-level cache, and of the two transforms, cycles for 16 channels
// of a tile: 64 channels of 56 x 56 pixels with two and with four panels a task, on Sapphire Rapids. What another
// launch costs a few threads.
constexpr double kNearBytes = 24, kFarBytes = 5, kInputCycles = 400, kOutputCycles = 400, kLaunchCycles = 10e3;
// A group of panels of so many bytes stays in the first-level cache for the next rows; what a larger one costs.
constexpr int64_t kGroupBytes = machine::kCaches.l1;
constexpr double kFarGroup = 1.15;
// Share of the multiply-add peak that direct convolution of few channels reaches (0.67 of 64 channels of 56 x 56
// pixels, 0.9 of 256), and the gain that makes another algorithm worth it.
constexpr double kDirectShare = 0.65, kLeastGain = 1.15;
// Steps of the sums over channels that are added up on their own: what they round, the output transform makes larger.
constexpr int64_t kPartialDepth = 32;
// Cycles of a task that is worth a thread.
constexpr double kGrainCycles = 32e3;

/// What of a convolution this strategy takes.
struct Problem {
  Convolution c;
  unsigned input; // of the region, read as [N, H, W, C]
  const Epilogue &epilogue;

  AffineExpr tilesH() const { return prim::simplifySize(c.outH.ceilDiv(kOut)); }
  AffineExpr tilesW() const { return prim::simplifySize(c.outW.ceilDiv(kOut)); }
  /// Height and width to plan for, in pixels.
  int64_t likelyHeight() const { return c.likelyHeight(usualSide()); }
  int64_t likelyWidth() const { return c.likelyWidth(usualSide()); }
  int64_t usualSide() const { return std::max(kOut + 1, usual::imageSideOf(std::max(c.channels, c.columns))); }
  /// [N, outer dims, tilesH, tilesW], which number the tiles.
  SmallVector<AffineExpr> tileSpace() const {
    SmallVector<AffineExpr> space{c.batch};
    llvm::append_range(space, c.outer);
    space.append({tilesH(), tilesW()});
    return space;
  }
  AffineExpr tiles() const { return prim::product(c.batch.getContext(), tileSpace()); }
  /// The number of images, outer positions counted in, to plan for. An unknown batch counts as one where the filter
  /// streams: what is planned for that is fair for several, but a plan for 8 images of 7 x 7 x 512 takes 1.5 times as
  /// long as direct sums for one. Small filters lose little for one image and gain for several.
  int64_t likelyPlanes() const {
    const bool streams = kInPixels * c.outerTaps() * c.channels * c.panels() * kPanel * 4 > kFilterBytes;
    return c.likelyImages(streams ? usual::kImages : usual::kBatch) * int64_t(c.likelyOuter());
  }
  int64_t likelyTiles() const { return likelyPlanes() * ceilDiv(likelyHeight(), kOut) * ceilDiv(likelyWidth(), kOut); }
  /// Distance of a tile's transformed channels from the next one's, in floats: not a multiple of 2 KiB.
  int64_t pitch() const { return roundUp(c.channels, 16) + (c.channels % 512 == 0 ? 16 : 0); }
};

std::optional<Problem> asProblem(const RegionProblem &region) {
  auto op = region.findAnchor<prim::ConvOp>();
  const Convolution *c = region.findConvolution();
  if (!op || !c || !isF32(op.getInput()) || !isF32(op.getFilter()) || !isF32(op.getResult()) || c->spatial < 2 ||
      c->groups != 1 || c->kernelH != 3 || c->kernelW != 3 || !allEqual(op.getStrides().take_back(2), 1) ||
      !allEqual(op.getDilations().take_back(2), 1) || c->outerTaps() < 1)
    return std::nullopt;
  std::optional<unsigned> input = inputThroughReshapes(op.getInput());
  if (!input || c->h.value_or(1) < 1 || c->w.value_or(1) < 1 || c->channels < 1 || c->columns < 1)
    return std::nullopt;
  const Epilogue *epilogue = region.findWholeEpilogue(op.getResult());
  return epilogue ? std::optional(Problem{*c, *input, *epilogue}) : std::nullopt;
}

/// [36][outer kernel position][panel][channel][16] of G g G^T.
std::optional<PackedInput> packedFilter(const Problem &p, llvm::function_ref<bool(unsigned)> isConstant) {
  MLIRContext *context = p.c.batch.getContext();
  const int64_t panels = p.c.panels();
  AffineExpr tap = getAffineDimExpr(0, context), block = getAffineDimExpr(1, context),
             channel = getAffineDimExpr(2, context), column = getAffineDimExpr(3, context);
  AffineExpr outer = block.floorDiv(panels), panel = p.c.outerTaps() == 1 ? block : block % panels;
  SmallVector<AffineExpr> at;
  int64_t inner = p.c.outerTaps();
  for (int64_t size : p.c.outerKernel) {
    inner /= size;
    at.push_back(outer.floorDiv(inner) % size);
  }
  at.append({tap.floorDiv(3), tap % 3, channel, panel * kPanel + column});
  std::optional<ConstantView> view = traceConstant(prim::ConvOp(p.c.op).getFilter(), isConstant, at, /*widens=*/true);
  if (!view)
    return std::nullopt;
  // Rows of G: p^i / product of the differences from the other points.
  const double points[] = {0, kP, -kP, kQ, -kQ};
  double g[kIn][3] = {};
  for (int64_t i = 0; i < kIn - 1; ++i) {
    double divisor = 1;
    for (double other : points)
      if (other != points[i])
        divisor *= points[i] - other;
    g[i][0] = 1 / divisor;
    g[i][1] = points[i] / divisor;
    g[i][2] = points[i] * points[i] / divisor;
  }
  g[kIn - 1][2] = 1;
  PackedInput packed{
      view->input,
      AffineMap::get(4, 0, view->at, context),
      RankedTensorType::get({kInPixels, p.c.outerTaps() * panels, p.c.channels, kPanel}, Float32Type::get(context)),
      {}};
  SmallVector<double> matrix;
  for (int64_t i = 0; i < kIn; ++i)
    for (int64_t j = 0; j < kIn; ++j)
      for (int64_t t = 0; t < 9; ++t)
        matrix.push_back(g[i][t / 3] * g[j][t % 3]);
  packed.transform = DenseElementsAttr::get(RankedTensorType::get({kInPixels, 9}, Float64Type::get(context)),
                                            ArrayRef<double>(matrix));
  return packed;
}

/// The transforms of a plane of 6 x 6 values in f32, scalars or vectors.
class Transform {
public:
  explicit Transform(Emitter &em) : b(em.builder()), loc(em.loc()) {}

  /// B^T x B: 6 x 6 values.
  SmallVector<Value> input(ArrayRef<Value> x) {
    return plane(x, kIn, [&](ArrayRef<Value> line) { return inputLine(line); });
  }
  /// A^T x A: 4 x 4 values.
  SmallVector<Value> output(ArrayRef<Value> x) {
    return plane(x, kOut, [&](ArrayRef<Value> line) { return outputLine(line); });
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

  /// Transforms the columns, then the rows, which then have `results` values.
  static SmallVector<Value> plane(ArrayRef<Value> x, int64_t results,
                                  llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> line) {
    SmallVector<SmallVector<Value>> columns;
    for (int64_t j = 0; j < kIn; ++j) {
      SmallVector<Value> column;
      for (int64_t i = 0; i < kIn; ++i)
        column.push_back(x[i * kIn + j]);
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

class WinogradGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override { return asProblem(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    const std::optional<PackedInput> packed = packedFilter(p, region.constants());
    if (!packed)
      return failure();
    Plan best;
    for (const Plan &plan : possiblePlans(p))
      if (plan.cycles < best.cycles * 0.99)
        best = plan;
    const double channels = double(p.c.channels), columns = double(p.c.panels() * kPanel);
    const double pixels = double(p.likelyPlanes() * p.likelyHeight() * p.likelyWidth());
    double direct = usedTaps(p) * pixels * 9 * channels * columns / (2 * double(widestUnit().width()) * kDirectShare);
    direct = std::max(direct, double(p.c.taps()) * channels * columns * 4 / kFarBytes);
    if (!best.tiles || best.cycles * kLeastGain > direct)
      return failure();
    return scheduleFor(p, packed->input, best);
  }

  /// The cheapest tasks for different numbers of panels.
  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const Problem &p,
                                                 machine::CpuAttr) const override {
    const std::optional<PackedInput> packed = packedFilter(p, region.constants());
    if (!packed)
      return {};
    SmallVector<Plan> plans = possiblePlans(p);
    llvm::stable_sort(plans, [](const Plan &x, const Plan &y) { return x.cycles < y.cycles; });
    SmallVector<kernel::ScheduleAttr> all;
    llvm::SmallDenseSet<int64_t> panels;
    for (const Plan &plan : plans)
      if (all.size() < 3 && panels.insert(plan.panels).second)
        all.push_back(scheduleFor(p, packed->input, plan));
    return all;
  }

  SmallVector<PackedInput> packInputs(const Problem &p, Schedule schedule) const override {
    return {*packedFilter(p, [&](unsigned i) { return int64_t(i) == schedule.getRhs(); })};
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    auto scratch = [&](int64_t floats) { return getAffineConstantExpr(roundUp(floats * 4, 64) + 64, context); };
    const int64_t tiles = schedule.getTiles();
    const bool transformLaunch = schedule.getTransformLaunch();
    SmallVector<Launch> launches;
    if (transformLaunch) {
      Launch transform;
      transform.suffix = "_transform";
      transform.tasks = p.tiles();
      transform.grain = getAffineConstantExpr(
          std::max<int64_t>(
              1, int64_t(kGrainCycles / (double(p.c.outerTaps() * ceilDiv(p.c.channels, kPanel)) * kInputCycles))),
          context);
      transform.scratch = scratch(p.pitch());
      transform.temporaries = {
          prim::makeType(Float32Type::get(context), {prim::simplifySize(p.tiles().ceilDiv(tiles)),
                                                     getAffineConstantExpr(launchFloats(p, tiles), context)})};
      launches.push_back(transform);
    }
    Launch launch;
    launch.tasks = prim::product(context, grid(p, schedule));
    launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
    launch.scratch = scratch(scratchFloats(p, tiles, schedule.getTileN() / kPanel, transformLaunch));
    launch.inPlace = p.epilogue.inPlace();
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    const int64_t tiles = schedule.getTiles(), tileN = schedule.getTileN();
    const bool transformLaunch = schedule.getTransformLaunch();
    if (transformLaunch && number == 0)
      return emitTransformLaunch(p, schedule, em, begin, end);
    SmallVector<AffineExpr> space = grid(p, schedule);
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> at = em.delinearize(task, space);
      if (schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter)
        std::swap(at[0], at[1]);
      Task t;
      t.panel0 = em.mul(at[0].base, em.i64(tileN / kPanel));
      t.first = em.mulIndex(at[1], em.i64(tiles), tiles);
      t.count = blockExtent(em, p.tiles(), t.first.base, tiles);
      if (transformLaunch) {
        t.transformed =
            offsetBy(em, em.input(em.region().getNumOperands()), em.mul(at[1].base, em.i64(launchFloats(p, tiles))));
        t.products = em.scratch();
      } else {
        t.transformed = em.scratch();
        t.products = offsetBy(em, t.transformed, transformedFloats(p, tiles));
      }
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

private:
  /// Tiles and panels of a task, its cycles on a machine of AVX-512, and those of all tasks.
  struct Plan {
    int64_t tiles = 0, panels = 0;
    bool transformLaunch = false;
    double task = 0, cycles = std::numeric_limits<double>::infinity();
  };

  /// Outer kernel positions that direct convolution takes for an output pixel on average: of one outer dim, those that
  /// meet the input.
  static double usedTaps(const Problem &p) {
    prim::ConvOp op = p.c.op;
    if (p.c.outer.size() != 1)
      return double(p.c.outerTaps());
    const int64_t out = getLikelySize(p.c.outer[0], op, usual::kBatch);
    const int64_t size = getLikelySize(prim::getSizes(op.getInput())[1], op, usual::kBatch * op.getStrides()[0]);
    int64_t used = 0;
    for (int64_t pixel = 0; pixel < out; ++pixel)
      for (int64_t tap = 0; tap < p.c.outerTaps(); ++tap) {
        const int64_t at = pixel * op.getStrides()[0] + tap * op.getDilations()[0] - op.getPadLow()[0];
        used += at >= 0 && at < size;
      }
    return double(used) / double(std::max<int64_t>(1, out));
  }

  static SmallVector<Plan> possiblePlans(const Problem &p) {
    SmallVector<Plan> plans;
    const VectorUnit &wide = widestUnit();
    const int64_t all = p.likelyTiles(), panels = p.c.panels(), taps = p.c.outerTaps();
    const double depth = double(p.c.channels * taps), chunks = double(ceilDiv(p.c.channels, kPanel) * taps);
    for (int64_t taskPanels = 1; taskPanels <= panels; ++taskPanels) {
      if (panels % taskPanels != 0)
        continue;
      Tile tile = microTile(p, wide, all, taskPanels);
      for (int64_t tiles = tile.rows; tiles < 8 * 14; tiles += tile.rows) {
        double blocks = double(ceilDiv(all, tiles)), here = double(std::min(all, tiles));
        double product = kInPixels * depth * blockCycles(wide, int64_t(here), taskPanels, tile);
        double filter = kInPixels * depth * double(taskPanels) * kPanel * 4;
        double whole = filter * double(panels / taskPanels);
        // Each task reads its filter once from beyond the first-level cache.
        product = whole > kFilterBytes ? std::max(product, filter / kFarBytes) : product + filter / kNearBytes;
        // Sums are cleared, then read and written for each outer kernel position.
        if (taps > 1)
          product += double(2 * taps + 1) * kInPixels * here * double(taskPanels) * kPanel * 4 / kNearBytes;
        const double count = blocks * double(panels / taskPanels);
        for (bool transformLaunch : {false, true}) {
          const double before = double(all) * chunks * kInputCycles, bytes = double(launchFloats(p, all)) * 4;
          // A launch more, for what several tasks read and the second-level cache holds.
          if (transformLaunch && (taskPanels == panels || bytes > kScratchBytes))
            continue;
          double transforms = here * double(taskPanels) * kOutputCycles;
          // Half of what others made lies in their caches.
          transforms += transformLaunch ? double(launchFloats(p, int64_t(here))) * 4 / kFarBytes / 2
                                        : here * chunks * kInputCycles;
          const double scratch = double(scratchFloats(p, tiles, taskPanels, transformLaunch)) * 4;
          if (scratch > kScratchBytes)
            transforms += scratch / kFarBytes * 2;
          const double task = product + transforms;
          // A few threads should be busy to the end.
          const double cycles = task * count * (std::ceil(count / 4) * 4 / count);
          plans.push_back(
              {tiles, taskPanels, transformLaunch, task, cycles + (transformLaunch ? before + kLaunchCycles : 0)});
        }
        if (tiles >= all)
          break;
      }
    }
    return plans;
  }

  static Schedule scheduleFor(const Problem &p, unsigned filter, const Plan &plan) {
    Schedule::Params params;
    params.rhs = filter;
    params.tiles = plan.tiles;
    params.tileN = plan.panels * kPanel;
    // Threads take pixels of their own, as in the layers around, where the filter stays near.
    if (plan.panels < p.c.panels() &&
        kInPixels * p.c.outerTaps() * p.c.channels * p.c.panels() * kPanel * 4 <= kFilterBytes)
      params.rasterOrder = kernel::RasterOrder::RowsOuter;
    if (plan.transformLaunch)
      params.transformLaunch = 1;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      Tile tile = microTile(p, unit, std::min(plan.tiles, p.likelyTiles()), plan.panels);
      params.rowsFor(unit.bits) = tile.rows;
      params.colsFor(unit.bits) = tile.panels * kPanel;
    }
    params.grain = std::max<int64_t>(1, int64_t(kGrainCycles / plan.task));
    return params.get(p.c.batch.getContext());
  }

  struct Task {
    Value panel0;
    Index first; // tile
    Extent count;
    /// [36][tile][pitch] (of a launch before: for each outer kernel position), [36][tile][tileN], [16][tileN]; in the
    /// scratch a row of zeros, [pitch], follows.
    Value transformed, products, pixels;
  };

  /// The best micro-kernel whose columns divide `panels`.
  static Tile microTile(const Problem &p, const VectorUnit &unit, int64_t rows, int64_t panels) {
    Tile best;
    double bestCost = std::numeric_limits<double>::infinity();
    for (int64_t r = 1; r <= std::min<int64_t>(14, rows); ++r)
      for (int64_t n = 1; n <= std::min<int64_t>(8, panels); ++n) {
        if (panels % n != 0 || !fitsRegisters(unit, r, n))
          continue;
        double cost = blockCycles(unit, rows, panels, {r, n});
        if (rows > r && n * p.c.channels * kPanel * 4 > kGroupBytes)
          cost *= kFarGroup;
        if (cost < bestCost * 0.999) {
          bestCost = cost;
          best = {r, n};
        }
      }
    return best;
  }

  /// Of one outer kernel position, and of all of them.
  static int64_t transformedFloats(const Problem &p, int64_t tiles) { return kInPixels * tiles * p.pitch(); }
  static int64_t launchFloats(const Problem &p, int64_t tiles) { return p.c.outerTaps() * transformedFloats(p, tiles); }
  static int64_t scratchFloats(const Problem &p, int64_t tiles, int64_t panels, bool transformLaunch) {
    const int64_t input = transformLaunch ? 0 : transformedFloats(p, tiles) + p.pitch();
    return input + kInPixels * tiles * panels * kPanel + kOutPixels * panels * kPanel;
  }

  static SmallVector<AffineExpr> grid(const Problem &p, Schedule schedule) {
    SmallVector<AffineExpr> grid{
        getAffineConstantExpr(p.c.panels() / (schedule.getTileN() / kPanel), p.c.batch.getContext()),
        prim::simplifySize(p.tiles().ceilDiv(schedule.getTiles()))};
    if (schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter)
      std::swap(grid[0], grid[1]);
    return grid;
  }

  /// First output pixel of a tile: [N, outer dims, H, W].
  static SmallVector<Index> positionOf(const Problem &p, Index tile, Emitter &em) {
    SmallVector<Index> at = em.delinearize(tile, p.tileSpace());
    for (Index &pixel : MutableArrayRef(at).take_back(2))
      pixel = em.mulIndex(pixel, em.i64(kOut), kOut);
    return at;
  }

  /// A launch of its own: the tiles of all tasks, which several blocks of columns read.
  static void emitTransformLaunch(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
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
      Value position = em.sub(em.add(em.mul(at[1 + i].base, em.i64(op.getStrides()[i])),
                                     em.mul(tapAt[i].base, em.i64(op.getDilations()[i]))),
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
      Value from = offsetBy(em, em.input(schedule.getRhs()), em.mul(panel, em.i64(panelFloats)));
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
};

} // namespace

const Generator *tc::codegen::winogradGenerator() {
  static const WinogradGenerator generator;
  return &generator;
}
