//===- Contract.cpp - the "cpu.contract" strategy: matrix products and convolutions ------------------------------===//
//
// Every anchor is seen as result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], in f32; products are in f64,
// too. Constant weights of f16 and bf16 that are widened to f32 are packed as they are, and widened as micro-kernels
// read them. A task is a block of rows times a block of columns of one batch element. B is read in panels of 16
// columns, packed when the artifact is made if it is constant, else by a launch of its own, or by the task itself where
// no other task reads the same panels. A is read where it lies if its rows are contiguous, else the task first copies
// its rows, evaluating whatever stands before the anchor. Micro-kernels (MicroKernel.h) write a small tile of C; the
// epilogue runs over it while it is in the first-level cache.
//
// A convolution is the same with taps: k runs over (kernel positions, input channels), channels last, so that along the
// last spatial dim the kernel positions and channels of one output pixel are contiguous in the input. The task copies
// the input rows that it needs with a halo of zeros, unless there is no padding. Its rows are patches of output pixels.
// A filter that only the run knows (modulated and generated ones, gradients) is packed by a launch of its own.
// This is the batch-reduce form of Georganas et al., "High-Performance Deep Learning via a Single Building Block",
// section 3.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Convolution.h"
#include "CPU/MicroKernel.h"
#include "CPU/Product.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuContractAttr;

// Rows of a task: enough to reuse a panel of B from the first-level cache.
constexpr int64_t kTaskRows = 112;
// As few as that only where a matrix has no more: 64 were 3 to 5 % faster than 32 with a B of 9 MB.
constexpr int64_t kLeastRows = 40;
// Columns of a task take this many bytes of B: they stay in the second-level cache.
constexpr int64_t kPanelBytes = 512 * 1024;
// How far ahead the panels are fetched that few rows read once: a page, where the hardware's prefetcher stops.
constexpr int64_t kAheadBytes = 4096;
// Work of a task below which more tasks are not worth it, where there are enough for a few threads and where there are
// not; and what a thread should get at least.
constexpr double kTaskFlops = 4e6, kFewTaskFlops = 1e6, kGrainFlops = 5e5;
constexpr int64_t kFewThreads = 4;
// Fewer rows than these take as long: their B, read once, comes from beyond the second-level cache at 10 flops a byte.
constexpr double kStreamedRows = 20;
// Sums of so few steps take less time than to store them, where results are of so many bytes: tasks are whole rows of
// tiles, which are written one after another.
constexpr int64_t kFewSteps = 16;
constexpr double kFarResult = 1024 * 1024;
// Sums of so few steps are written where they go, if nothing is to be done with them: to copy them from a tile in
// scratch takes a part of the time.
constexpr int64_t kDirectSteps = 64;
// A packed B of so many elements comes from beyond the second-level cache. So few rows read so many of its panels at a
// time: 0.92 of the time of two on Zen 5, 1.01 on Sapphire Rapids.
constexpr double kFarElements = 1024 * 1024;
constexpr int64_t kMostFarRows = 6, kFarPanels = 4;
// So few rows wait for their B: shorter sums on their own cost nothing.
constexpr int64_t kMemoryRows = 4, kMemoryPartialDepth = 256;
// Steps of a convolution's sums that are added up on their own: deep networks of them have no norms between that are
// computed in the run, and round more than those of products.
constexpr int64_t kConvolutionPartialDepth = 256;
// From so many tasks on that copy the same rows, and so many elements in all, one launch copies them for all.
constexpr double kCopiesOfTasks = 3, kCopiedFloats = 64 * 1024;
// For so few rows a B of so many bytes is not worth packing: 32 to 128 rows took 0.75 to 1.0 of the time without. More
// rows pay for loads across lines, where B is not aligned, and longer ones for pages.
constexpr int64_t kInPlaceRows = 128, kInPlaceBytes = 256 * 1024;
// A B of so many bytes stays in the second-level cache: threads then take rows, or pixels, of their own, which they
// also have in the layers around, and all columns of them. (Two threads: four convolutions side by side 0.9 of the
// time.)
constexpr int64_t kNearBytes = 1024 * 1024;
// Filters that only the run knows are packed for so many flops.
constexpr double kLeastPackedFlops = 200e3;
// So few rows side by side are not copied as they lie (600 rows of 200 columns, 2 to 6 side by side: 0.56 to 0.94 of
// the time by rows, 10 and 12 as long, 8 and 16 of few columns 1.2 of it).
constexpr int64_t kMostBeside = 7;
// What a thread should pack at least.
constexpr int64_t kPackGrainBytes = 128 * 1024;
// Tasks that keep many cores busy evenly.
constexpr int64_t kTasks = 48;
// Cycles in which a float of a convolution's input is copied: from pixels of so few channels, which are interleaved,
// and from longer ones. The share of a task's time that it should stay below, and the bytes that stay near. (Stems of
// 3 to 32 and 64 channels: 0.87 and 0.97 of the time with tasks of four rows instead of one on Zen 5.)
constexpr double kInterleaveCycles = 0.4, kCopyCycles = 0.1, kCopyShare = 0.03, kProductsPerCycle = 32;
constexpr int64_t kLeastLanes = 8;
constexpr double kCopyBytes = 64 * 1024;
// So many tasks are not split further where what each copies again, at so many cycles a float with the caches' other
// contents that it drives out, takes this share of the time.
constexpr int64_t kFewTasks = 12;
constexpr double kCopyAgainCycles = 0.35, kMostCopyShare = 0.06;
// Kernel positions that read nothing but padding are left out if no more than this share of all remains.
constexpr double kMostUsedShare = 0.85;
// Within the tasks and patches that there are, it is worth it from here on.
constexpr double kLeastSkipped = 0.96;
// Channels that are worth a loop of their own for each kernel position along the last dim.
constexpr int64_t kLeastApart = 64;
// Shorter parts of the columns are stored element by element.
constexpr int64_t kLeastRun = 2;

/// Whether the region's only result is `value`.
bool yieldsOnly(kernel::RegionOp region, Value value) {
  Operation *yield = region.getBody().front().getTerminator();
  return yield->getNumOperands() == 1 && yield->getOperand(0) == value;
}

//===--- convolutions ---------------------------------------------------------------------------------------------===//

/// The packed filter: [group][panel][k][16], without the group if it is 1. Columns of other groups fill the last panel.
std::optional<PackedInput> packedFilter(const Convolution &c, llvm::function_ref<bool(unsigned)> isConstant) {
  MLIRContext *context = c.batch.getContext();
  unsigned dim = 0;
  AffineExpr group = c.groups > 1 ? getAffineDimExpr(dim++, context) : getAffineConstantExpr(0, context);
  AffineExpr panel = getAffineDimExpr(dim++, context), k = getAffineDimExpr(dim++, context);
  AffineExpr n = group * c.columns + panel * kPanel + getAffineDimExpr(dim++, context);
  Value filter = prim::ConvOp(c.op).getFilter();
  auto sizes = prim::getSizes(filter);
  SmallVector<AffineExpr> at = delinearizeExpr(k, ArrayRef(sizes).drop_back());
  at.push_back(n);
  std::optional<ConstantView> view = traceConstant(filter, isConstant, at, /*widens=*/true);
  if (!view)
    return std::nullopt;
  SmallVector<int64_t> shape;
  if (c.groups > 1)
    shape.push_back(c.groups);
  shape.append({c.panels(), c.depth(), kPanel});
  return PackedInput{view->input, AffineMap::get(dim, 0, view->at, context),
                     RankedTensorType::get(shape, view->element)};
}

/// Of the elements of panels that were packed when the artifact was made, where it is not `element`; else null.
Type packedType(Emitter &em, int64_t rhsInput, Type element) {
  if (rhsInput < 0)
    return {};
  Type packed = cast<RankedTensorType>(em.region().getInputs()[rhsInput].getType()).getElementType();
  return packed == element ? Type() : packed;
}

/// Whether both operands and the result have the same element type, one that the micro-kernel computes in.
bool hasElements(Operation *anchor) {
  auto element = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); };
  const Type result = element(anchor->getResult(0));
  return (result.isF32() || (result.isF64() && asProduct(anchor))) && element(anchor->getOperand(0)) == result &&
         element(anchor->getOperand(1)) == result;
}

/// Whether the region computes functions, whose many constants LLVM would hold in registers through the micro-kernel.
bool hasFunctions(kernel::RegionOp region) {
  return llvm::any_of(region.getBody().front(), [](Operation &op) { return prim::isTranscendental(&op); });
}

//===--- choosing -------------------------------------------------------------------------------------------------===//

class ContractGenerator final : public GeneratorOf<Schedule> {
public:
  FailureOr<Schedule> decide(kernel::RegionOp region, llvm::function_ref<bool(unsigned)> isConstant) const override {
    Operation *anchor = findAnchor(region);
    if (!isa_and_nonnull<prim::DotGeneralOp, prim::ConvOp>(anchor) || !hasElements(anchor))
      return failure();
    FailureOr<Epilogue> epilogue = Epilogue::analyze(region, anchor->getResult(0));
    if (failed(epilogue) || !epilogue->yieldsAll(region))
      return failure();
    Schedule::Params params;
    if (std::optional<Product> p = asProduct(anchor)) {
      chooseProduct(*p, isConstant, params);
      if (p->k && p->n && *p->k <= kDirectSteps && yieldsOnly(region, p->result))
        params.direct = 1;
      if (const int64_t run = p->n ? splitColumns(region, *p->n, kLeastRun) : 0)
        params.run = run;
    } else if (std::optional<Convolution> c = asConvolution(anchor)) {
      if (failed(chooseConvolution(*c, isConstant, params)))
        return failure();
      if (const int64_t run = splitColumns(region, c->groups * c->columns, kLeastRun); run && c->columns % run == 0)
        params.run = run;
    } else
      return failure();
    return params.get(region.getContext());
  }

  SmallVector<kernel::ScheduleAttr> alternatives(kernel::RegionOp region, llvm::function_ref<bool(unsigned)> isConstant,
                                                 const CpuInfo &cpu) const override {
    FailureOr<Schedule> chosen = decide(region, isConstant);
    if (failed(chosen))
      return {};
    Operation *anchor = findAnchor(region);
    if (std::optional<Product> p = asProduct(anchor))
      return productAlternatives(*p, *chosen, cpu);
    return convolutionAlternatives(*asConvolution(anchor), *chosen, cpu);
  }

  SmallVector<PackedInput> packInputs(kernel::RegionOp region, Schedule schedule) const override {
    int64_t rhs = schedule.getRhs();
    if (rhs < 0)
      return {};
    auto isRhs = [&](unsigned i) { return int64_t(i) == rhs; };
    Operation *anchor = findAnchor(region);
    std::optional<PackedInput> packed;
    if (std::optional<Product> p = asProduct(anchor))
      packed = packedRhs(*p, isRhs);
    else if (std::optional<Convolution> c = asConvolution(anchor))
      packed = packedFilter(*c, isRhs);
    return packed ? SmallVector<PackedInput>{*packed} : SmallVector<PackedInput>{};
  }

  SmallVector<Launch> makeLaunches(kernel::RegionOp region, Schedule schedule) const override {
    MLIRContext *context = region.getContext();
    Operation *anchor = findAnchor(region);
    SmallVector<Launch> launches;
    Launch launch;
    SmallVector<AffineExpr> grid;
    AffineExpr floats; // of scratch
    int64_t bytes = 4;
    if (std::optional<Product> p = asProduct(anchor)) {
      if (schedule.getLhsLaunch())
        launches.push_back(copyingLaunch(*p, schedule));
      if (schedule.getRhsLaunch())
        launches.push_back(packingLaunch(*p, schedule));
      grid = productGrid(*p, schedule);
      bytes = p->elementBytes();
      floats = packedFloats(*p, schedule);
      if (!schedule.getLhsLaunch())
        floats = prim::simplifySize(floats + copyFloats(*p, schedule));
    } else {
      Convolution c = *asConvolution(anchor);
      if (schedule.getRhsLaunch())
        launches.push_back(packingLaunch(c));
      grid = convolutionGrid(c, schedule);
      floats = getAffineConstantExpr(convolutionFloats(c, schedule), context);
    }
    launch.tasks = prim::product(context, grid);
    launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
    if (prim::getConstantSize(floats) != 0) // 64 bytes more: full vectors may be stored at the end
      launch.scratch = prim::simplifySize((floats.ceilDiv(16) + 4) * (16 * bytes));
    launch.inPlace = Epilogue::analyze(region, anchor->getResult(0))->inPlace(region);
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(kernel::RegionOp region, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    Operation *anchor = findAnchor(region);
    if (number == 0 && schedule.getLhsLaunch())
      return emitCopying(*asProduct(anchor), schedule, em, begin, end);
    if (int64_t(number) == schedule.getLhsLaunch() && schedule.getRhsLaunch()) {
      if (std::optional<Product> p = asProduct(anchor))
        return emitPacking(*p, schedule, em, begin, end);
      return emitPacking(*asConvolution(anchor), em, begin, end);
    }
    Epilogue epilogue = *Epilogue::analyze(region, anchor->getResult(0));
    if (std::optional<Product> p = asProduct(anchor))
      emitProduct(*p, schedule, epilogue, em, begin, end);
    else
      emitConvolution(*asConvolution(anchor), schedule, epilogue, em, begin, end);
  }

private:
  //===--- products -----------------------------------------------------------------------------------------------===//

  void chooseProduct(const Product &p, llvm::function_ref<bool(unsigned)> isConstant, Schedule::Params &params) const {
    std::optional<PackedInput> packed = packedRhs(p, isConstant);
    // A is read in place if its rows are contiguous and at a fixed distance.
    const std::optional<LinesInPlace> inPlace = linesInPlace(p, p.lhs, DimRef::Depth);
    const bool copy = !inPlace;
    // Rows at a distance of 2 KiB share few sets of the first-level cache: more than 8 evict each other.
    const bool aliases = inPlace && prim::getConstantSize(inPlace->stride).value_or(1) % (2048 / p.elementBytes()) == 0;
    int64_t maxRows = p.k && !aliases ? 14 : p.k ? 8 : 6;
    std::optional<int64_t> panels;
    if (p.n)
      panels = ceilDiv(*p.n, kPanel);
    const bool isFar = packed && p.m && *p.m > 1 && *p.m <= kMostFarRows && panels && *panels >= kFarPanels &&
                       double(p.k.value_or(0)) * double(*panels * kPanel) >= kFarElements;
    Tile wide{0, 0};
    for (const CpuInfo &full : llvm::reverse(kScheduledCpus)) {
      const CpuInfo cpu = cpuFor(full, p.element());
      Tile tile = chooseTile(cpu, p.m, panels, cpu.vectorBits == 512 ? maxRows : std::min<int64_t>(maxRows, 6),
                             /*isStreamed=*/packed && p.m == 1, /*within=*/wide.panels);
      if (isFar && cpu.vectorBits == 512)
        tile = {*p.m, kFarPanels};
      params.rowsFor(cpu.vectorBits) = tile.rows;
      params.colsFor(cpu.vectorBits) = tile.panels * kPanel;
      if (cpu.vectorBits == 512)
        wide = tile;
    }
    const double depth = double(p.k.value_or(256));
    int64_t tilePanels =
        std::max<int64_t>(8, int64_t(kPanelBytes / (double(kPanel * p.elementBytes()) * std::max(depth, 1.0))));
    tilePanels = std::max<int64_t>(1, tilePanels / wide.panels) * wide.panels;
    if (panels)
      tilePanels = std::min(tilePanels, roundUp(std::max<int64_t>(1, *panels), wide.panels));
    else
      tilePanels = std::min<int64_t>(tilePanels, roundUp(8, wide.panels));
    int64_t tileM = std::max<int64_t>(1, kTaskRows / wide.rows) * wide.rows;
    if (p.m && *p.m > 0) // blocks of equal size
      tileM = std::min(tileM, roundUp(ceilDiv(*p.m, ceilDiv(*p.m, tileM)), wide.rows));
    // More tasks, as long as each is worth it.
    double batch = double(prim::getConstantSize(p.B).value_or(8)), rows = double(p.m.value_or(128)),
           columns = double(panels.value_or(16)) * kPanel;
    auto tasks = [&] { return batch * std::ceil(rows / tileM) * std::ceil(columns / double(tilePanels * kPanel)); };
    auto flops = [&] { return taskFlops(p, tileM, tilePanels * kPanel); };
    const double least = rows < kStreamedRows ? kFewTaskFlops : kTaskFlops;
    // Copied rows are worth their copy for 128 columns: then it costs 3 % of the product.
    int64_t leastPanels = copy ? std::min(tilePanels, roundUp(8, wide.panels)) : wide.panels;
    // Panels of B come from the second-level cache or beyond for each block of rows.
    const int64_t leastRows = roundUp(kLeastRows, wide.rows);
    while (isWorthSplitting(tasks(), flops(), least)) {
      int64_t fewerRows = tileM, fewer = tilePanels;
      if (tilePanels > leastPanels && (tilePanels * kPanel >= tileM || tileM <= leastRows))
        fewer = std::max(leastPanels, fewerPanels(panels, tilePanels, wide.panels));
      else if (tileM > leastRows)
        fewerRows = std::max(leastRows, roundUp(tileM / 2, wide.rows));
      else
        break;
      const Split before{batch, rows, double(tileM), columns, double(tilePanels * kPanel)},
          after{batch, rows, double(fewerRows), columns, double(fewer * kPanel)};
      if (flops() <= least && !isMoreEven(after, before))
        break;
      tileM = fewerRows;
      tilePanels = fewer;
    }
    if (p.k && *p.k <= kFewSteps && !copy && batch * rows * columns * double(p.elementBytes()) >= kFarResult)
      tileM = wide.rows;
    params.tileM = tileM;
    params.tileN = tilePanels * kPanel;
    // A constant is in the caches of all threads.
    const bool isFixed = inPlace && isConstant(inPlace->input);
    if (p.m && p.n && p.k && *p.n > tilePanels * kPanel && *p.m > tileM &&
        *p.k * *p.n <= *p.m * ((isFixed && !packed ? 0 : *p.k) + *p.n) && *p.k * *p.n * p.elementBytes() <= kNearBytes)
      params.rasterOrder = kernel::RasterOrder::RowsOuter;
    params.lhsCopy = copy;
    // Few rows side by side, as pixels of few channels have, would be fetched one by one for a tile of them.
    const bool hasFewBeside =
        p.rows.size() > 1 && prim::getConstantSize(p.rows.back()).value_or(kMostBeside + 1) <= kMostBeside;
    if (copy && isRowInnermost(p) && !hasFewBeside)
      params.lhsTransposed = 1;
    if (copy && std::ceil(columns / double(tilePanels * kPanel)) >= kCopiesOfTasks &&
        batch * rows * depth >= kCopiedFloats)
      params.lhsLaunch = 1;
    params.rhs = packed ? int64_t(packed->input) : -1;
    if (!packed && isReadInPlace(p)) {
      params.rhsInPlace = 1;
    } else if (!packed) {
      params.rhsLaunch = !p.m || *p.m > tileM;
      params.rhsTransposed = isDepthInnermost(p);
    }
    params.grain = grainFor(flops());
  }

  /// Whether B is so small, for so few rows, that it is read where it lies: steps of whole panels, one behind the
  /// other.
  static bool isReadInPlace(const Product &p) {
    if (!p.m || !p.n || !p.k || p.columns.empty() || *p.n % kPanel != 0 || *p.m > kInPlaceRows ||
        *p.k * *p.n * p.elementBytes() > kInPlaceBytes)
      return false;
    const std::optional<LinesInPlace> steps = linesInPlace(p, p.rhs, DimRef::Column);
    return steps && prim::getConstantSize(steps->stride) == *p.n;
  }

  static double taskFlops(const Product &p, int64_t tileM, int64_t tileN) {
    return 2.0 * double(p.k.value_or(256)) *
           std::max(kStreamedRows, std::min(double(p.m.value_or(128)), double(tileM))) *
           std::min(double(p.n ? roundUp(*p.n, kPanel) : 16 * kPanel), double(tileN));
  }
  /// Whether `tasks` of `flops` each may be more and smaller ones: above `least` they are; few of them, where they then
  /// are more even.
  static bool isWorthSplitting(double tasks, double flops, double least = kTaskFlops) {
    return (tasks < kTasks && flops > least) || (tasks < kFewThreads && flops > kFewTaskFlops);
  }
  /// `batch` times `rows` x `columns` in tasks of `tileRows` x `tileColumns`.
  struct Split {
    double batch, rows, tileRows, columns, tileColumns;

    /// What the busier one of two threads computes, that have a half of the tasks each, and the next one of the other's
    /// when they are done with it: as the runtime shares them.
    double busier() const {
      SmallVector<double> tasks;
      for (double b = 0; b < batch; ++b)
        for (double column = 0; column < columns; column += tileColumns)
          for (double row = 0; row < rows; row += tileRows)
            tasks.push_back(std::min(tileRows, rows - row) * std::min(tileColumns, columns - column));
      const size_t half = tasks.size() / 2, ends[2] = {half, tasks.size()};
      size_t next[2] = {0, half};
      double busy[2] = {0, 0};
      for (size_t left = tasks.size(); left > 0; --left) {
        const int thread = busy[0] > busy[1], from = next[thread] < ends[thread] ? thread : 1 - thread;
        busy[thread] += tasks[next[from]++];
      }
      return std::max(busy[0], busy[1]);
    }
  };
  /// Whether two threads are done earlier with the tasks of `after`.
  static bool isMoreEven(const Split &after, const Split &before) { return after.busier() < 0.95 * before.busier(); }
  /// A half to a quarter of `tilePanels` in groups of `wide`: so many that the last of the blocks of `panels` differs
  /// least from the others.
  static int64_t fewerPanels(std::optional<int64_t> panels, int64_t tilePanels, int64_t wide) {
    const int64_t half = roundUp(tilePanels / 2, wide);
    int64_t best = half;
    for (int64_t fewer = half; panels && fewer >= std::max(wide, half / 2); fewer -= wide)
      if (ceilDiv(*panels, fewer) * fewer < ceilDiv(*panels, best) * best)
        best = fewer;
    return best;
  }
  /// Least number of tasks of `flops` for a thread.
  static int64_t grainFor(double flops) { return std::max<int64_t>(1, int64_t(kGrainFlops / std::max(flops, 1.0))); }

  static SmallVector<kernel::ScheduleAttr> productAlternatives(const Product &p, Schedule chosen, const CpuInfo &cpu) {
    SmallVector<kernel::ScheduleAttr> all;
    // A schedule with the parameters so far and about these tiles: whole blocks of rows, whole groups of panels.
    auto add = [&](Schedule::Params params, int64_t tileM, int64_t tileN) {
      Schedule schedule = params.get(chosen.getContext());
      const int64_t rows = schedule.rowsFor(cpu.vectorBits), group = commonPanels(schedule) * kPanel;
      tileM = std::max(rows, std::min(roundUp(tileM, rows), p.m ? roundUp(*p.m, rows) : tileM));
      tileN = std::max(group, std::min(roundUp(tileN, group), p.n ? roundUp(*p.n, group) : tileN));
      params.tileM = tileM;
      params.tileN = tileN;
      params.grain = grainFor(taskFlops(p, tileM, tileN));
      all.push_back(params.get(chosen.getContext()));
    };
    const int64_t tileM = chosen.getTileM(), tileN = chosen.getTileN();
    for (auto [m, n] : {std::pair(tileM, tileN * 2), std::pair(tileM * 2, tileN), std::pair(tileM, tileN / 2),
                        std::pair(tileM / 2, tileN), std::pair(tileM / 2, tileN * 2), std::pair(tileM * 2, tileN / 2)})
      add(chosen.getParams(), m, n);
    std::optional<int64_t> panels;
    if (p.n)
      panels = ceilDiv(*p.n, kPanel);
    auto addTile = [&](Schedule::Params params, Tile tile) {
      params.rowsFor(cpu.vectorBits) = tile.rows;
      params.colsFor(cpu.vectorBits) = tile.panels * kPanel;
      add(params, tileM, tileN);
    };
    const int64_t mostRows = cpu.vectorBits == 512 ? 14 : 6;
    const CpuInfo seen = cpuFor(cpu, p.element());
    const bool copy = chosen.getLhsCopy();
    Tile tile{chosen.rowsFor(cpu.vectorBits), chosen.colsFor(cpu.vectorBits) / kPanel};
    for (Tile other : otherTiles(seen, p.m, panels, copy ? mostRows : std::max(tile.rows, mostRows / 2), tile, 2))
      addTile(chosen.getParams(), other);
    if (!copy) {
      Schedule::Params params = chosen.getParams();
      params.lhsCopy = 1;
      addTile(params, chooseTile(seen, p.m, panels, mostRows));
    }
    if (chosen.getRhs() < 0) {
      Schedule::Params params = chosen.getParams();
      params.rhsLaunch = !chosen.getRhsLaunch();
      params.rhsInPlace = 0;
      add(params, tileM, tileN);
    }
    return all;
  }

  static SmallVector<AffineExpr> productGrid(const Product &p, Schedule schedule) {
    return {p.B, prim::simplifySize(p.N.ceilDiv(schedule.getTileN())),
            prim::simplifySize(p.M.ceilDiv(schedule.getTileM()))};
  }
  /// Floats of the scratch: first the packed panels, then the copied rows.
  static AffineExpr packedFloats(const Product &p, Schedule schedule) {
    if (schedule.getRhs() >= 0 || schedule.getRhsLaunch() || schedule.getRhsInPlace())
      return getAffineConstantExpr(0, p.K.getContext());
    return prim::simplifySize(p.runtimePanelFloats() * (schedule.getTileN() / kPanel));
  }
  /// Panels of B for each batch element when a launch of its own packs them: whole blocks of `tileN` columns.
  static AffineExpr launchPanels(const Product &p, Schedule schedule) {
    int64_t tileN = schedule.getTileN();
    return prim::simplifySize(p.N.ceilDiv(tileN) * (tileN / kPanel));
  }
  static AffineExpr copyStride(const Product &p) { return prim::simplifySize(p.K.ceilDiv(16) * 16 + 16); }
  /// Of a copied tile of rows when A is transposed. Tiles are not a multiple of 4 KiB apart: they are written in turns.
  static AffineExpr copiedTileFloats(const Product &p, int64_t rows) {
    return prim::simplifySize((p.K * rows).ceilDiv(16) * 16 + 16);
  }
  static AffineExpr copyFloats(const Product &p, Schedule schedule) {
    if (!schedule.getLhsCopy())
      return getAffineConstantExpr(0, p.K.getContext());
    const int64_t tileM = schedule.getTileM();
    if (!schedule.getLhsTransposed())
      return prim::simplifySize(copyStride(p) * tileM);
    int64_t copied = 0, tiles = 0; // the most of all vector widths
    for (const CpuInfo &cpu : kScheduledCpus) {
      const int64_t rows = schedule.rowsFor(cpu.vectorBits);
      copied = std::max(copied, roundUp(tileM, rows));
      tiles = std::max(tiles, ceilDiv(tileM, rows));
    }
    return prim::simplifySize(p.K * copied + 32 * tiles);
  }

  /// Of a launch whose tasks copy so many rows of A or columns of B.
  static AffineExpr packingGrain(const Product &p, int64_t lines) {
    const int64_t bytes = p.k.value_or(256) * lines * p.elementBytes();
    return getAffineConstantExpr(std::max<int64_t>(1, kPackGrainBytes / std::max<int64_t>(bytes, 1)), p.K.getContext());
  }

  /// Tasks: blocks of `tileN` columns of a batch element.
  static Launch packingLaunch(const Product &p, Schedule schedule) {
    Launch launch;
    launch.suffix = "_pack";
    SmallVector<AffineExpr> grid = productGrid(p, schedule);
    launch.tasks = prim::product(p.K.getContext(), ArrayRef(grid).drop_back());
    launch.grain = packingGrain(p, schedule.getTileN());
    launch.temporaries = {prim::makeType(p.element(), {p.B, launchPanels(p, schedule), p.runtimePanelFloats()})};
    return launch;
  }

  /// Tasks: blocks of `tileM` rows of a batch element.
  static Launch copyingLaunch(const Product &p, Schedule schedule) {
    Launch launch;
    launch.suffix = "_copy";
    const AffineExpr blocks = productGrid(p, schedule).back();
    launch.tasks = prim::simplifySize(p.B * blocks);
    launch.grain = packingGrain(p, schedule.getTileM());
    launch.temporaries = {prim::makeType(p.element(), {p.B, blocks, copyFloats(p, schedule)})};
    return launch;
  }

  static void emitCopying(const Product &p, Schedule schedule, Emitter &em, Value begin, Value end) {
    const int64_t tileM = schedule.getTileM();
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> at = em.delinearize(task, {p.B, productGrid(p, schedule).back()});
      const Index m0 = em.mulIndex(at[1], em.i64(tileM), tileM);
      copyRows(p, schedule, em, em.delinearize(at[0], p.batch), m0, blockExtent(em, p.M, m0.base, tileM),
               offsetBy(em, em.output(0), em.mul(task.base, em.size(copyFloats(p, schedule))), p.element()));
    });
  }

  static void emitPacking(const Product &p, Schedule schedule, Emitter &em, Value begin, Value end) {
    const int64_t tileN = schedule.getTileN();
    SmallVector<AffineExpr> grid = productGrid(p, schedule);
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> at = em.delinearize(task, ArrayRef(grid).drop_back());
      Value panel =
          em.add(em.mul(at[0].base, em.size(launchPanels(p, schedule))), em.mul(at[1].base, em.i64(tileN / kPanel)));
      Value to = offsetBy(em, em.output(0), em.mul(panel, em.size(p.runtimePanelFloats())), p.element());
      packPanels(p, schedule, em, em.delinearize(at[0], p.batch), em.mulIndex(at[1], em.i64(tileN), tileN), to);
    });
  }

  /// Tasks: panels of a filter that only the run knows.
  static Launch packingLaunch(const Convolution &c) {
    Launch launch;
    launch.suffix = "_pack";
    MLIRContext *context = c.batch.getContext();
    launch.tasks = getAffineConstantExpr(c.groups * c.panels(), context);
    const int64_t bytes = c.depth() * kPanel * 4;
    launch.grain = getAffineConstantExpr(std::max<int64_t>(1, kPackGrainBytes / bytes), context);
    launch.temporaries = {RankedTensorType::get({c.groups * c.panels(), c.depth(), kPanel}, Float32Type::get(context))};
    return launch;
  }

  static void emitPacking(const Convolution &c, Emitter &em, Value begin, Value end) {
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
      Value start = offsetBy(em, to, em.mul(panel, em.size(p.runtimePanelFloats())), p.element());
      em.loop(em.i64(0), em.size(p.K), 1, [&](Index k) {
        for (int64_t lane = 0; lane < kPanel; lane += em.width())
          LLVM::StoreOp::create(b, em.loc(), zeros,
                                offsetBy(em, start, em.add(em.mul(k.base, em.i64(kPanel)), em.i64(lane)), p.element()),
                                4);
      });
    });
  }

  /// Packs the panels of up to `tileN` columns from column n0 on.
  static void packPanels(const Product &p, Schedule schedule, Emitter &em, ArrayRef<Index> batchAt, Index n0,
                         Value to) {
    const Type element = p.element();
    const int64_t tileN = schedule.getTileN(), width = em.width();
    const Value K = em.size(p.K), panelFloats = em.size(p.runtimePanelFloats());
    const Extent count = blockExtent(em, p.N, n0.base, tileN);
    // Offset of column `column` (a multiple of the width) at k = 0.
    auto columnOffset = [&](Value column) {
      return em.add(em.mul(em.divUnsigned(column, em.i64(kPanel)), panelFloats),
                    em.remUnsigned(column, em.i64(kPanel)));
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
                LLVM::StoreOp::create(em.builder(), em.loc(), row, offsetBy(em, block, int64_t(i) * kPanel, element),
                                      4);
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
  static void copyRows(const Product &p, Schedule schedule, Emitter &em, ArrayRef<Index> batchAt, Index m0,
                       Extent count, Value to) {
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
    const int64_t rows = schedule.rowsFor(em.cpu().vectorBits);
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

  static void emitProduct(const Product &p, Schedule schedule, const Epilogue &epilogue, Emitter &em, Value begin,
                          Value end) {
    const Type element = p.element();
    const int64_t tileM = schedule.getTileM(), tileN = schedule.getTileN();
    const int64_t rows = schedule.rowsFor(em.cpu().vectorBits);
    const int64_t cols = schedule.colsFor(em.cpu().vectorBits);
    const int64_t groupPanels = cols / kPanel;
    const int64_t rhsInput = schedule.getRhs(), run = schedule.getRun();
    const bool lhsCopy = schedule.getLhsCopy(), lhsTransposed = schedule.getLhsTransposed();
    const bool rhsPacked = rhsInput >= 0;
    const Type bType = packedType(em, rhsInput, element), right = bType ? bType : element;
    const bool lhsLaunch = schedule.getLhsLaunch(), rhsLaunch = schedule.getRhsLaunch();
    const bool rhsInPlace = schedule.getRhsInPlace(),
               rowsOuter = schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter;
    const bool direct = schedule.getDirect();
    const Value tile = em.stackBuffer(element, rows * cols);
    const Value N = em.size(p.N), K = em.size(p.K);
    const AffineExpr panelStride = rhsInPlace  ? getAffineConstantExpr(kPanel, p.K.getContext())
                                   : rhsPacked ? prim::simplifySize(p.K * kPanel)
                                               : p.runtimePanelFloats();
    const Value panelFloats = em.size(panelStride);
    const AffineExpr blocks = productGrid(p, schedule).back();

    em.loop(begin, end, 1, [&](Index task) {
      unsigned temporary = em.region().getNumOperands(); // of the launches before
      SmallVector<AffineExpr> sizes = productGrid(p, schedule);
      if (rowsOuter)
        std::swap(sizes[1], sizes[2]);
      SmallVector<Index> grid = em.delinearize(task, sizes);
      if (rowsOuter)
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
      Value panelsHere = em.min(blockPanels, em.sub(em.size(p.panels()), em.mul(grid[1].base, blockPanels)));
      if (rhsInPlace) {
        b = offsetBy(em, batchStart(em, *linesInPlace(p, p.rhs, DimRef::Column), batchAt, element), n0.base, element);
      } else if (rhsPacked || rhsLaunch) {
        b = em.input(rhsPacked ? rhsInput : temporary);
        Value perBatch = em.size(rhsPacked ? p.panels() : launchPanels(p, schedule));
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
            if (p.m && *p.m <= kMemoryRows)
              kernel.partialDepth = kMemoryPartialDepth;
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
              kernel.prefetchAhead = rhsPacked ? kAheadBytes / p.elementBytes() : 0;
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
                  epilogue.store(em, at, em.loadAt(tile, element, offset));
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

  /// Cuts `count` rows into tiles of `rows` and calls body(first row, rows of the tile, remainder) for each; the
  /// remainder is that of the last tile if it is known.
  static void forTiles(Emitter &em, Extent count, int64_t rows, std::optional<int64_t> rest,
                       llvm::function_ref<void(Index, Extent, std::optional<int64_t>)> body) {
    if (count.constant && *count.constant <= rows)
      return body(em.constant(0), count, std::nullopt);
    if (count.constant)
      rest = *count.constant % rows;
    em.loop(
        em.i64(0), count.get(em), rows,
        [&](Index first) {
          Extent height = rest == 0 ? Extent(rows) : Extent(em.min(em.i64(rows), em.sub(count.get(em), first.base)));
          body(first, height, rest);
        },
        0);
  }

  /// Calls body for each group of `groupPanels` panels of [0, panels), the panels of a matrix from panel `first` on,
  /// with the group's columns. The last ones of the matrix's `all` columns, if they are known and fill no group, make
  /// one of their own, so that the columns of all groups are constants: rows of a number that is not copied by loops.
  static void forGroups(Emitter &em, Value first, Value panels, int64_t groupPanels, Extent all,
                        llvm::function_ref<void(Index, int64_t, Extent)> body) {
    const int64_t cols = groupPanels * kPanel;
    if (!all.constant) {
      em.loop(em.i64(0), panels, groupPanels, [&](Index panel) {
        const Value begin = em.mul(em.add(first, panel.base), em.i64(kPanel));
        body(panel, groupPanels, Extent(em.min(em.i64(cols), em.sub(all.value, begin))));
      });
      return;
    }
    const int64_t whole = *all.constant / cols * groupPanels, rest = *all.constant % cols;
    const Value wholeHere = rest == 0 ? panels : em.min(panels, em.sub(em.i64(whole), first));
    if (whole > 0)
      em.loop(em.i64(0), wholeHere, groupPanels, [&](Index panel) { body(panel, groupPanels, Extent(cols)); });
    if (rest > 0)
      em.loop(
          wholeHere, panels, groupPanels, [&](Index panel) { body(panel, ceilDiv(rest, kPanel), Extent(rest)); },
          groupPanels);
  }

  /// Lanes along the innermost of the `depth` dims, loops over the others.
  static void copyLanes(Emitter &em, ArrayRef<AffineExpr> depth,
                        llvm::function_ref<void(Index, ArrayRef<Index>)> body) {
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

  //===--- convolutions -------------------------------------------------------------------------------------------===//

  /// Output pixels and panels of a micro-kernel, and the cycles of a task per step of K.
  struct Patch {
    int64_t height = 1, width = 1, panels = 1;
    double cost = std::numeric_limits<double>::infinity();

    void set(Schedule::Params &params, const CpuInfo &cpu) const {
      params.patchHFor(cpu.vectorBits) = height;
      params.patchWFor(cpu.vectorBits) = width;
      params.colsFor(cpu.vectorBits) = panels * kPanel;
    }
  };
  static SmallVector<Patch> possiblePatches(const Convolution &c, const CpuInfo &cpu, int64_t tileH, int64_t tileW) {
    SmallVector<Patch> patches;
    // A product of one row: nothing but the filter's panels takes time.
    const bool isOnePixel = prim::getConstantSize(c.batch) == 1 && c.h == 1 && c.w == 1 &&
                            llvm::all_of(c.outer, [](AffineExpr size) { return prim::getConstantSize(size) == 1; });
    // Unknown extents end in any number of rows: patches of one row keep the code small.
    for (int64_t h = 1; h <= (c.h && c.w ? tileH : 1); ++h)
      for (int64_t w = 1; w <= tileW && h * w <= 14; ++w)
        for (int64_t n = 1; n <= std::min<int64_t>(c.panels(), 8); ++n) {
          if (!fitsRegisters(cpu, h * w, n))
            continue;
          double cost = isOnePixel ? streamCycles(c.panels(), n) : 0;
          auto add = [&](int64_t height, int64_t width, int64_t times) {
            if (height * width * times)
              cost += times * patchCycles(c, cpu, height, width, n);
          };
          add(h, w, (tileH / h) * (tileW / w));
          add(tileH % h, w, tileW / w);
          add(h, tileW % w, tileH / h);
          add(tileH % h, tileW % w, 1);
          patches.push_back({h, w, n, cost});
        }
    return patches;
  }

  /// The share of the kernel positions of both dims that patches of so many outputs keep.
  struct Share {
    double h = 1, w = 1;
  };
  static Share patchShare(const Convolution &c, int64_t height, int64_t width) {
    if (readsInPlace(c))
      return {};
    // A patch that is a whole line has its outputs apart.
    auto share = [](const SpatialDim &dim, int64_t block) { return usedShare(dim, dim.out == block ? 1 : block); };
    const bool isApart = !c.merged() || c.channels >= kLeastApart;
    return {share(dimH(c), height), isApart ? share(dimW(c), width) : 1};
  }
  /// Cycles of a patch for all columns per step of K, on average over the kernel positions, those that are left out
  /// among them.
  static double patchCycles(const Convolution &c, const CpuInfo &cpu, int64_t height, int64_t width, int64_t panels) {
    // A vector of sums that another micro-kernel adds to is loaded and stored again.
    constexpr double kAddCycles = 1.5;
    const Share share = patchShare(c, height, width);
    const bool skipsH = share.h < kLeastSkipped, skipsW = share.w < kLeastSkipped;
    const bool wholeH = skipsH && c.h == height, wholeW = skipsW && c.w == width;
    double cycles = 0, added = 0;
    for (const PatchTap &part : patchTaps(c, height, width, wholeH, wholeW)) {
      cycles += blockCycles(cpu, part.outputs(), c.panels(), {part.outputs(), panels});
      added += double(part.outputs() * c.panels() * kPanel) / cpu.width() * kAddCycles;
    }
    cycles /= double((wholeH ? c.kernelH : 1) * (wholeW ? c.kernelW : 1));
    if (wholeH || wholeW)
      cycles += added / double(c.depth());
    return cycles * (skipsH && !wholeH ? share.h : 1) * (skipsW && !wholeW ? share.w : 1);
  }

  /// Whether the input is read where it lies.
  static bool readsInPlace(const Convolution &c) {
    prim::ConvOp op = c.op;
    return inputThroughReshapes(op.getInput()) && allEqual(op.getPadLow(), 0) && allEqual(op.getPadHigh(), 0) &&
           allEqual(c.outerKernel, 1) && (c.groups == 1 || c.kernelW == 1);
  }

  static LogicalResult chooseConvolution(const Convolution &c, llvm::function_ref<bool(unsigned)> isConstant,
                                         Schedule::Params &params) {
    std::optional<PackedInput> packed = packedFilter(c, isConstant);
    if (c.depth() == 0 || c.columns == 0 || (!packed && convolutionFlops(c) < kLeastPackedFlops))
      return failure();
    // With one channel for each group "cpu.loops" have lanes along all groups' columns, where those of a vector are of
    // one group, or of whole ones; else each lane would fetch its channel (3 to 10 times as long as products of 16
    // lanes).
    if (c.groups > 1 && c.channels == 1 && llvm::isPowerOf2_64(c.columns))
      return failure();
    const bool direct = readsInPlace(c);
    // Blocks of equal size.
    auto balanced = [](std::optional<int64_t> extent, int64_t most) {
      return extent && *extent > 0 ? ceilDiv(*extent, ceilDiv(*extent, most)) : most;
    };
    int64_t tileW = balanced(c.w, c.w || c.spatial == 1 ? kTaskRows : kTaskRows / 2);
    int64_t tileH = std::max<int64_t>(1, 128 / tileW);
    tileH = c.h ? balanced(c.h, std::min(std::max<int64_t>(1, *c.h), tileH)) : std::min<int64_t>(tileH, 4);

    auto countTasks = [&](int64_t height) {
      double tasks = double(prim::getConstantSize(c.batch).value_or(1)) * std::ceil(double(c.h.value_or(56)) / height) *
                     std::ceil(double(c.w.value_or(56)) / tileW) * c.groups;
      for (AffineExpr size : c.outer)
        tasks *= double(prim::getConstantSize(size).value_or(8));
      return tasks;
    };
    // Lower tasks, where they leave out kernel positions that read nothing but padding.
    while (!direct && tileH > 1 && usedShare(dimH(c), ceilDiv(tileH, 2)) < kMostUsedShare * usedShare(dimH(c), tileH))
      tileH = ceilDiv(tileH, 2);
    // Rows of the input that two tasks read are copied by both: taller tasks, where that takes a part of the time.
    auto copiedFloats = [&](int64_t height) {
      return double(c.outerTaps() * c.haloH(height) * c.haloW(tileW) * c.channels);
    };
    for (int64_t taller = 2 * tileH; !direct && c.h && c.spatial >= 2 && taller <= *c.h; taller *= 2) {
      const int64_t height = balanced(c.h, taller);
      const double cycles = double(c.depth()) * tileH * tileW * double(c.columns) / kProductsPerCycle;
      const double copying = copiedFloats(tileH) * (c.channels < kLeastLanes ? kInterleaveCycles : kCopyCycles);
      if (copying <= kCopyShare * cycles || copiedFloats(height) * tileH >= 0.9 * copiedFloats(tileH) * height ||
          copiedFloats(height) * 4 > kCopyBytes || countTasks(height) < kTasks / 2.)
        break;
      tileH = height;
    }
    // Lower tasks, where they are few and the filter stays near: what two of them read is copied by both, but each
    // split of the columns would copy all of it again.
    auto copyingShare = [&](int64_t height, double columns, double cyclesOfFloat) {
      return copiedFloats(height) * cyclesOfFloat * kProductsPerCycle / (double(c.depth()) * height * tileW * columns);
    };
    const int64_t allColumns = c.panels() * kPanel;
    while (!direct && c.h && tileH > 1 && c.depth() * allColumns * 4 <= kPanelBytes &&
           isWorthSplitting(countTasks(tileH), taskFlops(c, tileH, tileW, allColumns), 2 * kTaskFlops)) {
      const int64_t lower = balanced(*c.h, ceilDiv(tileH, 2));
      const double height = double(*c.h), outer = countTasks(tileH) / std::ceil(height / tileH);
      if (taskFlops(c, tileH, tileW, allColumns) <= 2 * kTaskFlops &&
          !isMoreEven({outer, height, double(lower), 1, 1}, {outer, height, double(tileH), 1, 1}))
        break;
      if (copyingShare(lower, double(c.columns), c.channels < kLeastLanes ? kInterleaveCycles : kCopyCycles) >
          kCopyShare)
        break;
      tileH = lower;
    }

    int64_t widePanels = 0;
    Share wide;
    for (const CpuInfo &cpu : llvm::reverse(kScheduledCpus)) {
      Patch best;
      for (const Patch &patch : possiblePatches(c, cpu, tileH, tileW))
        if (patch.cost < best.cost * 0.999 && widePanels % patch.panels == 0)
          best = patch;
      best.set(params, cpu);
      if (cpu.vectorBits == 512) {
        widePanels = best.panels;
        wide = patchShare(c, best.height, best.width);
      }
    }
    int64_t tilePanels = roundUp(c.panels(), widePanels);
    const double spatial = countTasks(tileH);
    auto flops = [&] { return taskFlops(c, tileH, tileW, tilePanels * kPanel); };
    auto tasks = [&] { return spatial * std::ceil(double(c.panels()) / tilePanels); };
    while (isWorthSplitting(tasks(), flops()) && roundUp(tilePanels / 2, widePanels) < tilePanels &&
           tilePanels > widePanels) {
      const int64_t fewer = std::max(widePanels, fewerPanels(c.panels(), tilePanels, widePanels));
      const double panels = double(c.panels());
      if (flops() <= kTaskFlops &&
          !isMoreEven({spatial, 1, 1, panels, double(fewer)}, {spatial, 1, 1, panels, double(tilePanels)}))
        break;
      if (!direct && tasks() >= kFewTasks &&
          copyingShare(tileH, double(fewer * kPanel), kCopyAgainCycles) > kMostCopyShare)
        break;
      tilePanels = fewer;
    }
    params.tileH = tileH;
    params.tileW = tileW;
    params.tileN = tilePanels * kPanel;
    params.lhsCopy = !direct;
    if (c.groups * ceilDiv(c.panels(), tilePanels) > 1 && c.groups * c.depth() * c.panels() * kPanel * 4 <= kNearBytes)
      params.rasterOrder = kernel::RasterOrder::RowsOuter;
    params.rhs = packed ? int64_t(packed->input) : -1;
    if (!packed)
      params.rhsLaunch = 1;
    params.grain = grainFor(flops());
    if (!direct && std::min(wide.h, usedShare(dimH(c), tileH)) < kLeastSkipped)
      params.skipH = 1;
    if (wide.w < kLeastSkipped)
      params.skipW = 1;
    return success();
  }

  /// Those of one image, roughly where its size is not known.
  static double convolutionFlops(const Convolution &c) {
    double flops = 2.0 * c.depth() * c.columns * c.groups * c.h.value_or(32) * c.w.value_or(32);
    for (AffineExpr size : c.outer)
      flops *= double(prim::getConstantSize(size).value_or(8));
    return flops * double(prim::getConstantSize(c.batch).value_or(1));
  }

  static double taskFlops(const Convolution &c, int64_t tileH, int64_t tileW, int64_t tileN) {
    return 2.0 * c.depth() * std::max(kStreamedRows, double(tileH * tileW)) *
           std::min<double>(c.columns, double(tileN));
  }

  static SmallVector<kernel::ScheduleAttr> convolutionAlternatives(const Convolution &c, Schedule chosen,
                                                                   const CpuInfo &cpu) {
    SmallVector<kernel::ScheduleAttr> all;
    auto add = [&](Schedule::Params params, int64_t tileH, int64_t tileW, int64_t tileN) {
      Schedule schedule = params.get(chosen.getContext());
      const int64_t group = commonPanels(schedule) * kPanel;
      int64_t leastH = 1, leastW = 1;
      for (const CpuInfo &each : kScheduledCpus) {
        leastH = std::max(leastH, schedule.patchHFor(each.vectorBits));
        leastW = std::max(leastW, schedule.patchWFor(each.vectorBits));
      }
      tileH = std::max(leastH, std::min(tileH, c.h.value_or(tileH)));
      tileW = std::max(leastW, std::min(tileW, c.w.value_or(tileW)));
      tileN = std::max(group, std::min(roundUp(tileN, group), roundUp(c.columns, group)));
      params.tileH = tileH;
      params.tileW = tileW;
      params.tileN = tileN;
      params.grain = grainFor(taskFlops(c, tileH, tileW, tileN));
      all.push_back(params.get(chosen.getContext()));
    };
    const int64_t tileH = chosen.getTileH(), tileW = chosen.getTileW(), tileN = chosen.getTileN();
    add(chosen.getParams(), tileH, tileW, tileN / 2);
    add(chosen.getParams(), tileH, tileW, tileN * 2);
    add(chosen.getParams(), tileH * 2, tileW, tileN);
    add(chosen.getParams(), tileH / 2, tileW, tileN);
    add(chosen.getParams(), tileH, ceilDiv(tileW, 2), tileN);
    SmallVector<Patch> patches = possiblePatches(c, cpu, tileH, tileW);
    llvm::stable_sort(patches, [](const Patch &x, const Patch &y) { return x.cost < y.cost; });
    for (const Patch &patch : ArrayRef(patches).take_front(3)) {
      Schedule::Params params = chosen.getParams();
      patch.set(params, cpu);
      add(params, tileH, tileW, tileN);
    }
    if (!chosen.getLhsCopy()) {
      Schedule::Params params = chosen.getParams();
      params.lhsCopy = 1;
      add(params, tileH, tileW, tileN);
    }
    return all;
  }

  static SmallVector<AffineExpr> convolutionGrid(const Convolution &c, Schedule schedule) {
    MLIRContext *context = c.batch.getContext();
    SmallVector<AffineExpr> grid{c.batch};
    llvm::append_range(grid, c.outer);
    SmallVector<AffineExpr> columns{getAffineConstantExpr(c.groups, context),
                                    getAffineConstantExpr(ceilDiv(c.columns, schedule.getTileN()), context)};
    SmallVector<AffineExpr> pixels{prim::simplifySize(c.outH.ceilDiv(schedule.getTileH())),
                                   prim::simplifySize(c.outW.ceilDiv(schedule.getTileW()))};
    const bool pixelsOuter = schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter;
    llvm::append_range(grid, pixelsOuter ? pixels : columns);
    llvm::append_range(grid, pixelsOuter ? columns : pixels);
    return grid;
  }
  static int64_t convolutionFloats(const Convolution &c, Schedule schedule) {
    if (!schedule.getLhsCopy())
      return 0;
    return c.outerTaps() * c.haloH(schedule.getTileH()) * c.haloW(schedule.getTileW()) * c.channels;
  }

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
      const Value most = em.i64((schedule.patchWFor(em.cpu().vectorBits) - 1) * c.strideW);
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

  /// A kernel position of a dim along which a patch is the whole line, or all of them, and the rows and columns of the
  /// patch for which it reads the input.
  struct PatchTap {
    std::optional<int64_t> tapH, tapW;
    SmallVector<int64_t> rows, columns;

    int64_t outputs() const { return int64_t(rows.size() * columns.size()); }
  };
  /// Those that have outputs, the most of them first.
  static SmallVector<PatchTap> patchTaps(const Convolution &c, int64_t height, int64_t width, bool wholeH,
                                         bool wholeW) {
    using Outputs = std::pair<std::optional<int64_t>, SmallVector<int64_t>>;
    auto along = [](const SpatialDim &dim, int64_t block, bool isWhole) {
      SmallVector<Outputs> all;
      if (!isWhole)
        return SmallVector<Outputs>{{std::nullopt, llvm::to_vector(llvm::seq<int64_t>(0, block))}};
      const int64_t in = *prim::getConstantSize(dim.in);
      for (int64_t tap = 0; tap < dim.kernel; ++tap) {
        SmallVector<int64_t> outputs;
        for (int64_t output = 0; output < block; ++output)
          if (const int64_t at = output * dim.stride + tap * dim.dilation - dim.pad; at >= 0 && at < in)
            outputs.push_back(output);
        if (!outputs.empty())
          all.push_back({tap, outputs});
      }
      return all;
    };
    SmallVector<PatchTap> taps;
    for (const auto &[tapH, rows] : along(dimH(c), height, wholeH))
      for (const auto &[tapW, columns] : along(dimW(c), width, wholeW))
        taps.push_back({tapH, tapW, rows, columns});
    llvm::stable_sort(taps, [](const PatchTap &x, const PatchTap &y) { return x.outputs() > y.outputs(); });
    return taps;
  }

  static void emitConvolution(const Convolution &c, Schedule schedule, const Epilogue &epilogue, Emitter &em,
                              Value begin, Value end) {
    prim::ConvOp op = c.op;
    Type f32 = em.builder().getF32Type();
    const int64_t tileH = schedule.getTileH(), tileW = schedule.getTileW();
    const int64_t tileN = schedule.getTileN();
    const int64_t patchH = schedule.patchHFor(em.cpu().vectorBits);
    const int64_t patchW = schedule.patchWFor(em.cpu().vectorBits);
    const int64_t cols = schedule.colsFor(em.cpu().vectorBits);
    const int64_t run = schedule.getRun();
    const bool copy = schedule.getLhsCopy(), pixelsOuter = schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter;
    const int64_t pixel = copy ? c.channels : c.channels * c.groups;
    // Distance of rows of pixels. Where it is not known, a micro-kernel's pixels are of one row.
    const AffineExpr rowFloats = copy ? getAffineConstantExpr(c.haloW(tileW) * c.channels, c.inW.getContext())
                                      : prim::simplifySize(c.inW * pixel);
    const Extent pitch(em.size(rowFloats), prim::getConstantSize(rowFloats));
    auto rowsApart = [&](int64_t rows) {
      return pitch.constant ? Extent(rows * *pitch.constant) : Extent(em.mul(pitch.value, em.i64(rows)));
    };
    const Extent outerStride = rowsApart(c.haloH(tileH)), tapStride = rowsApart(c.dilationH);
    const Value stepH = rowsApart(c.strideH).get(em);
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
      const ArrayRef<Index> columns = inner.slice(pixelsOuter ? 2 : 0, 2), pixels = inner.slice(pixelsOuter ? 0 : 2, 2);
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
      kernel.partialDepth = kConvolutionPartialDepth;
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
              kernel.prefetchAhead = 0;
              if (!fitsTwice(panels * panelFloats * 4)) {
                if (c.h && c.w && *c.h * *c.w <= 2 * patchH * patchW)
                  kernel.prefetchAhead = kAheadBytes / 4;
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
                    epilogue.store(em, at, em.loadAt(tile, f32, offset));
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
};

} // namespace

const Generator *tc::codegen::contractGenerator() {
  static const ContractGenerator generator;
  return &generator;
}
