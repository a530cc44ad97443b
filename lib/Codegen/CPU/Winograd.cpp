//===- Winograd.cpp - the "cpu.winograd" strategy: 3x3 convolutions with fewer multiplications -------------------===//
//
// F(4x4, 3x3): sixteen output pixels of one channel pair cost 36 multiplications instead of 144. A tile of 6 x 6 input
// pixels d and a filter g give the output pixels Y = A^T ((G g G^T) * (B^T d B)) A; the products are summed over the
// input channels, which makes 36 matrix products of [tiles, channels] x [channels, output channels]. G g G^T is made
// when the artifact is written, or of a filter that is a static input by a launch of its own. Interpolation points 0,
// +-11/16, +-3/2 and infinity: all factors are exact in f32, and the error is 2.2 times that of direct summation in the
// mean square (256 channels, normal data; behind a relu 2.4), where 0, +-3/4, +-3/2 give 2.4 (2.6) and 0, +-1, +-2
// about 4. What a convolution errs, all behind it make larger: the more products, the more it must gain to be worth it
// (leastGain).
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

#include "CPU/Winograd.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::winograd;

namespace {

// Bytes of scratch that stay in the second-level cache beside the filter that streams through.
constexpr int64_t kScratchBytes = machine::kCaches.l2 / 8 * 5;
// Bytes a cycle from the second-level and from the third-level cache, and of the two transforms, cycles for 16 channels
// of a tile: 64 channels of 56 x 56 pixels with two and with four panels a task, on Sapphire Rapids. What another
// launch costs a few threads.
constexpr double kNearBytes = 24, kFarBytes = 5, kInputCycles = 400, kOutputCycles = 400, kLaunchCycles = 10e3;
// Cycles for 3 x 3 values of a filter that only the run knows, for 16 output channels: to transform them (400 of 64
// channels, 650 of 512, on Zen 5), and to pack them for direct convolution (65, 370).
constexpr double kFilterCycles = 450, kPackCycles = 100;
// A group of panels of so many bytes stays in the first-level cache for the next rows; what a larger one costs.
constexpr int64_t kGroupBytes = machine::kCaches.l1;
constexpr double kFarGroup = 1.15;
// Share of the multiply-add peak that direct convolution of few channels reaches (0.67 of 64 channels of 56 x 56
// pixels, 0.9 of 256), and the gain that makes another algorithm worth it.
constexpr double kDirectShare = 0.65, kLeastGain = 1.15;
// The error budget: the gain that each product behind asks for beside that, and what is always taken. Two convolutions
// of 32 channels with 13 and 12 products behind (inception_v3) made two thirds of the network's error.
constexpr double kGainPerProduct = 0.13, kEnoughGain = 3;
constexpr int64_t kMostBehind = 1024;
// Cycles of a task that is worth a thread.
constexpr double kGrainCycles = 32e3;

/// Products and convolutions on the shortest way from the region's results to one of its block's: shortcuts carry what
/// is exact past them. The most of all such results, as training keeps what is on the way for its gradients; of more
/// than kMostBehind ops, the most that are met.
int64_t countProductsBehind(kernel::RegionOp region) {
  llvm::DenseMap<Value, int64_t> before;
  auto leastOf = [&](ValueRange values) {
    std::optional<int64_t> least;
    for (Value value : values)
      if (auto at = before.find(value); at != before.end())
        least = std::min(least.value_or(at->second), at->second);
    return least;
  };
  auto setResults = [&](Operation *op, int64_t count) {
    for (Value result : op->getResults())
      before[result] = count + isa<prim::ConvOp, prim::DotGeneralOp>(op);
  };
  setResults(region, 0);
  int64_t most = 0, left = kMostBehind;
  for (Operation *op = region->getNextNode(); op && left > 0; op = op->getNextNode(), --left) {
    std::optional<int64_t> least = leastOf(op->getOperands());
    if (!least)
      continue;
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      int64_t furthest = 0;
      for (Value result : op->getOperands())
        if (auto at = before.find(result); at != before.end())
          furthest = std::max(furthest, at->second);
      return furthest;
    }
    auto next = dyn_cast<kernel::RegionOp>(op);
    if (!next) {
      setResults(op, *least);
      continue;
    }
    Block &body = next.getBody().front();
    for (auto [input, argument] : llvm::zip_equal(next.getInputs(), body.getArguments()))
      if (auto at = before.find(input); at != before.end())
        before[argument] = int64_t(at->second);
    for (Operation &inner : body.without_terminator())
      if (std::optional<int64_t> here = leastOf(inner.getOperands()))
        setResults(&inner, *here);
    for (auto [yielded, result] : llvm::zip_equal(body.getTerminator()->getOperands(), next->getResults()))
      if (auto at = before.find(yielded); at != before.end()) {
        most = std::max(most, at->second);
        before[result] = int64_t(at->second);
      }
  }
  return most;
}

/// What Winograd's algorithm must gain: each layer behind it makes its error larger, so that the first convolutions of
/// deep networks have to gain more.
double leastGain(kernel::RegionOp region) {
  return std::min(kLeastGain + kGainPerProduct * double(countProductsBehind(region)), kEnoughGain);
}

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
RankedTensorType filterType(const Problem &p) {
  return RankedTensorType::get({kInPixels, p.c.outerTaps() * p.c.panels(), p.c.channels, kPanel},
                               Float32Type::get(p.c.batch.getContext()));
}

/// The same where the filter is a constant, for what writes the artifact.
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
  PackedInput packed{view->input, AffineMap::get(4, 0, view->at, context), filterType(p), {}};
  SmallVector<double> matrix;
  for (int64_t i = 0; i < kIn; ++i)
    for (int64_t j = 0; j < kIn; ++j)
      for (int64_t t = 0; t < 9; ++t)
        matrix.push_back(g[i][t / 3] * g[j][t % 3]);
  packed.transform = DenseElementsAttr::get(RankedTensorType::get({kInPixels, 9}, Float64Type::get(context)),
                                            ArrayRef<double>(matrix));
  return packed;
}

class WinogradGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override { return asProblem(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    const std::optional<PackedInput> packed = packedFilter(p, region.constants());
    if (!packed && !hasStaticFilter(region, p))
      return failure();
    Plan best;
    for (const Plan &plan : possiblePlans(p))
      if (plan.cycles < best.cycles * 0.99)
        best = plan;
    const double channels = double(p.c.channels), columns = double(p.c.panels() * kPanel);
    const double pixels = double(p.likelyPlanes() * p.likelyHeight() * p.likelyWidth());
    double direct = usedTaps(p) * pixels * 9 * channels * columns / (2 * double(widestUnit().width()) * kDirectShare);
    direct = std::max(direct, double(p.c.taps()) * channels * columns * 4 / kFarBytes);
    if (!packed) {
      const double filters = double(p.c.outerTaps() * p.c.channels * p.c.panels());
      best.cycles += filters * kFilterCycles + kLaunchCycles;
      direct += filters * kPackCycles + kLaunchCycles;
    }
    if (!best.tiles || best.cycles * leastGain(region.getOp()) > direct)
      return failure();
    return scheduleFor(p, numberOf(packed), best);
  }

  /// The cheapest tasks for different numbers of panels.
  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const Problem &p,
                                                 machine::CpuAttr) const override {
    const int64_t filter = numberOf(packedFilter(p, region.constants()));
    if (filter < 0 && !hasStaticFilter(region, p))
      return {};
    SmallVector<Plan> plans = possiblePlans(p);
    llvm::stable_sort(plans, [](const Plan &x, const Plan &y) { return x.cycles < y.cycles; });
    SmallVector<kernel::ScheduleAttr> all;
    llvm::SmallDenseSet<int64_t> panels;
    for (const Plan &plan : plans)
      if (all.size() < 3 && panels.insert(plan.panels).second)
        all.push_back(scheduleFor(p, filter, plan));
    return all;
  }

  SmallVector<PackedInput> packInputs(const Problem &p, Schedule schedule) const override {
    if (schedule.getRhs() < 0)
      return {};
    return {*packedFilter(p, [&](unsigned i) { return int64_t(i) == schedule.getRhs(); })};
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    auto scratch = [&](int64_t floats) { return scratchBytes(context, floats * 4 + 64); };
    const int64_t tiles = schedule.getTiles();
    const bool transformLaunch = schedule.getTransformLaunch();
    SmallVector<Launch> launches;
    if (transformLaunch) {
      Launch transform;
      transform.suffix = "_transform";
      transform.tasks = p.tiles();
      transform.grain = getAffineConstantExpr(
          grainFor(kGrainCycles, double(p.c.outerTaps() * ceilDiv(p.c.channels, kPanel)) * kInputCycles), context);
      transform.scratch = scratch(p.pitch());
      transform.temporaries = {
          prim::makeType(Float32Type::get(context), {prim::simplifySize(p.tiles().ceilDiv(tiles)),
                                                     getAffineConstantExpr(launchFloats(p, tiles), context)})};
      launches.push_back(transform);
    }
    if (schedule.getRhs() < 0) {
      Launch filter;
      filter.suffix = "_filter";
      filter.tasks = getAffineConstantExpr(filterTasks(p), context);
      filter.grain = getAffineConstantExpr(grainFor(kGrainCycles, kPanel * kFilterCycles), context);
      filter.temporaries = {filterType(p)};
      launches.push_back(filter);
    }
    Launch launch;
    launch.tasks = prim::product(context, grid(p, schedule));
    launch.scratch = scratch(scratchFloats(p, tiles, schedule.getTileN() / kPanel, transformLaunch));
    launch.inPlace = p.epilogue.inPlace();
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    if (schedule.getTransformLaunch() && number == 0)
      return winograd::emitTransforms(p, schedule, em, begin, end);
    if (schedule.getRhs() < 0 && number == unsigned(schedule.getTransformLaunch()))
      return winograd::emitFilter(p, em, begin, end);
    winograd::emit(p, schedule, em, begin, end);
  }

private:
  /// Whether the filter is transformed seldom, by a launch of its own. One that changes in each run is a weight in
  /// training, where steps take no less time, and at ReLUs and maxima their gradients jump for what this algorithm
  /// errs.
  static bool hasStaticFilter(const RegionProblem &region, const Problem &p) {
    return packedFilter(p, [&](unsigned input) { return region.isStatic(input); }).has_value();
  }

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

  /// The schedule's "rhs".
  static int64_t numberOf(const std::optional<PackedInput> &packed) { return packed ? int64_t(packed->input) : -1; }

  static Schedule scheduleFor(const Problem &p, int64_t filter, const Plan &plan) {
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
    params.grain = grainFor(kGrainCycles, plan.task);
    return params.get(p.c.batch.getContext());
  }

  static int64_t scratchFloats(const Problem &p, int64_t tiles, int64_t panels, bool transformLaunch) {
    const int64_t input = transformLaunch ? 0 : transformedFloats(p, tiles) + p.pitch();
    return input + kInPixels * tiles * panels * kPanel + kOutPixels * panels * kPanel;
  }

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
};

} // namespace

SmallVector<AffineExpr> winograd::grid(const Problem &p, Schedule schedule) {
  SmallVector<AffineExpr> grid{
      getAffineConstantExpr(p.c.panels() / (schedule.getTileN() / kPanel), p.c.batch.getContext()),
      prim::simplifySize(p.tiles().ceilDiv(schedule.getTiles()))};
  if (schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter)
    std::swap(grid[0], grid[1]);
  return grid;
}

const Generator *tc::codegen::winogradGenerator() {
  static const WinogradGenerator generator;
  return &generator;
}
