//===- ContractProduct.cpp - schedules of matrix products, and what is packed for them ----------------------------===//
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

namespace {
// As few as that only where a matrix has no more: 64 were 3 to 5 % faster than 32 with a B of 9 MB.
constexpr int64_t kLeastRows = 40;
// Sums of so few steps take less time than to store them, where results are of so many bytes: tasks are whole rows of
// tiles, which are written one after another.
constexpr int64_t kFewSteps = 16;
constexpr double kFarResult = 1024 * 1024;
// A packed B of so many elements comes from beyond the second-level cache. So few rows read so many of its panels at a
// time: 0.92 of the time of two on Zen 5, 1.01 on Sapphire Rapids.
constexpr double kFarElements = 2 * machine::kCaches.l2 / sizeof(float);
constexpr int64_t kMostFarRows = 6, kFarPanels = 4;
// From so many tasks on that copy the same rows, and so many elements in all, one launch copies them for all.
constexpr double kCopiesOfTasks = 3, kCopiedFloats = 64 * 1024;
// For so few rows a B of so many bytes is not worth packing: 32 to 128 rows took 0.75 to 1.0 of the time without. More
// rows pay for loads across lines, where B is not aligned, and longer ones for pages.
constexpr int64_t kInPlaceRows = 128, kInPlaceBytes = 256 * 1024;
// So few rows side by side are not copied as they lie (600 rows of 200 columns, 2 to 6 side by side: 0.56 to 0.94 of
// the time by rows, 10 and 12 as long, 8 and 16 of few columns 1.2 of it).
constexpr int64_t kMostAdjacentRows = 7;
// So few rows wait for their B: shorter sums on their own cost nothing.
constexpr int64_t kMemoryRows = 4, kMemoryPartialDepth = 256;
} // namespace

/// Whether B is so small, for so few rows, that it is read where it lies: steps of whole panels, one behind the
/// other.
static bool isReadInPlace(const Product &p) {
  if (!p.m || !p.n || !p.k || p.columns.empty() || *p.n % kPanel != 0 || *p.m > kInPlaceRows ||
      *p.k * *p.n * p.elementBytes() > kInPlaceBytes)
    return false;
  const std::optional<LinesInPlace> steps = linesInPlace(p, p.rhs, DimRef::Column);
  return steps && prim::getConstantSize(steps->stride) == *p.n;
}

int64_t contract::prefetchBytesOf(const Product &p, int64_t rows, bool isPacked) {
  return isPacked && p.m.value_or(0) <= rows ? kPrefetchBytes : 0;
}

double contract::taskFlops(const Product &p, int64_t tileM, int64_t tileN) {
  return 2.0 * double(p.likelyDepth()) * std::max(kStreamedRows, std::min(double(p.likelyRows()), double(tileM))) *
         std::min(double(roundUp(p.likelyColumns(), kPanel)), double(tileN));
}

void contract::chooseProduct(const Product &p, const RegionProblem &region, Schedule::Params &params) {
  std::optional<PackedInput> packed = packedRhs(p, region.constants());
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
  for (const VectorUnit &full : llvm::reverse(machine::kVectorUnits)) {
    const VectorUnit unit = unitFor(full, p.element());
    Tile tile = chooseTile(unit, p.m, panels, unit.bits == 512 ? maxRows : std::min<int64_t>(maxRows, 6),
                           /*isStreamed=*/packed && p.m == 1, /*within=*/wide.panels);
    if (isFar && unit.bits == 512)
      tile = {*p.m, kFarPanels};
    params.rowsFor(unit.bits) = tile.rows;
    params.colsFor(unit.bits) = tile.panels * kPanel;
    params.prefetchBytesFor(unit.bits) = prefetchBytesOf(p, tile.rows, packed.has_value());
    if (unit.bits == 512)
      wide = tile;
  }
  const double depth = double(p.likelyDepth());
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
  double batch = double(p.likelyBatch()), rows = double(p.likelyRows()),
         columns = double(roundUp(p.likelyColumns(), kPanel));
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
  const bool isFixed = inPlace && region.isConstant(inPlace->input);
  if (p.m && p.n && p.k && *p.n > tilePanels * kPanel && *p.m > tileM &&
      *p.k * *p.n <= *p.m * ((isFixed && !packed ? 0 : *p.k) + *p.n) && *p.k * *p.n * p.elementBytes() <= kNearBytes)
    params.rasterOrder = kernel::RasterOrder::RowsOuter;
  params.lhsCopy = copy;
  // Few rows side by side, as pixels of few channels have, would be fetched one by one for a tile of them.
  const bool hasFewAdjacentRows =
      p.rows.size() > 1 && prim::getConstantSize(p.rows.back()).value_or(kMostAdjacentRows + 1) <= kMostAdjacentRows;
  if (copy && isRowInnermost(p) && !hasFewAdjacentRows)
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
  if (p.m && *p.m <= kMemoryRows)
    params.partialDepth = kMemoryPartialDepth;
  params.grain = grainFor(flops());
}

SmallVector<kernel::ScheduleAttr> contract::productAlternatives(const Product &p, Schedule chosen,
                                                                const VectorUnit &unit) {
  SmallVector<kernel::ScheduleAttr> all;
  // A schedule with the parameters so far and about these tiles: whole blocks of rows, whole groups of panels.
  auto add = [&](Schedule::Params params, int64_t tileM, int64_t tileN) {
    Schedule schedule = params.get(chosen.getContext());
    const int64_t rows = schedule.rowsFor(unit.bits), group = commonPanels(schedule) * kPanel;
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
    params.rowsFor(unit.bits) = tile.rows;
    params.colsFor(unit.bits) = tile.panels * kPanel;
    params.prefetchBytesFor(unit.bits) = prefetchBytesOf(p, tile.rows, chosen.getRhs() >= 0);
    add(params, tileM, tileN);
  };
  const int64_t mostRows = unit.bits == 512 ? 14 : 6;
  const VectorUnit seen = unitFor(unit, p.element());
  const bool copy = chosen.getLhsCopy();
  Tile tile{chosen.rowsFor(unit.bits), chosen.colsFor(unit.bits) / kPanel};
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

SmallVector<AffineExpr> contract::productGrid(const Product &p, Schedule schedule) {
  return {p.B, prim::simplifySize(p.N.ceilDiv(schedule.getTileN())),
          prim::simplifySize(p.M.ceilDiv(schedule.getTileM()))};
}

AffineExpr contract::packedFloats(const Product &p, Schedule schedule) {
  if (schedule.getRhs() >= 0 || schedule.getRhsLaunch() || schedule.getRhsInPlace())
    return getAffineConstantExpr(0, p.K.getContext());
  return prim::simplifySize(runtimePanelFloats(p) * (schedule.getTileN() / kPanel));
}

AffineExpr contract::launchPanels(const Product &p, Schedule schedule) {
  int64_t tileN = schedule.getTileN();
  return prim::simplifySize(p.N.ceilDiv(tileN) * (tileN / kPanel));
}

AffineExpr contract::copyStride(const Product &p) { return prim::simplifySize(p.K.ceilDiv(16) * 16 + 16); }

AffineExpr contract::copiedTileFloats(const Product &p, int64_t rows) {
  return prim::simplifySize((p.K * rows).ceilDiv(16) * 16 + 16);
}

AffineExpr contract::copyFloats(const Product &p, Schedule schedule) {
  if (!schedule.getLhsCopy())
    return getAffineConstantExpr(0, p.K.getContext());
  const int64_t tileM = schedule.getTileM();
  if (!schedule.getLhsTransposed())
    return prim::simplifySize(copyStride(p) * tileM);
  int64_t copied = 0, tiles = 0; // the most of all vector widths
  for (const VectorUnit &unit : machine::kVectorUnits) {
    const int64_t rows = schedule.rowsFor(unit.bits);
    copied = std::max(copied, roundUp(tileM, rows));
    tiles = std::max(tiles, ceilDiv(tileM, rows));
  }
  return prim::simplifySize(p.K * copied + 32 * tiles);
}

/// Of a launch whose tasks copy so many rows of A or columns of B.
static AffineExpr packingGrain(const Product &p, int64_t lines) {
  const int64_t bytes = p.likelyDepth() * lines * p.elementBytes();
  return getAffineConstantExpr(std::max<int64_t>(1, kPackGrainBytes / std::max<int64_t>(bytes, 1)), p.K.getContext());
}

Launch contract::packingLaunch(const Product &p, Schedule schedule) {
  Launch launch;
  launch.suffix = "_pack";
  SmallVector<AffineExpr> grid = productGrid(p, schedule);
  launch.tasks = prim::product(p.K.getContext(), ArrayRef(grid).drop_back());
  launch.grain = packingGrain(p, schedule.getTileN());
  launch.temporaries = {prim::makeType(p.element(), {p.B, launchPanels(p, schedule), runtimePanelFloats(p)})};
  return launch;
}

Launch contract::copyingLaunch(const Product &p, Schedule schedule) {
  Launch launch;
  launch.suffix = "_copy";
  const AffineExpr blocks = productGrid(p, schedule).back();
  launch.tasks = prim::simplifySize(p.B * blocks);
  launch.grain = packingGrain(p, schedule.getTileM());
  launch.temporaries = {prim::makeType(p.element(), {p.B, blocks, copyFloats(p, schedule)})};
  return launch;
}
