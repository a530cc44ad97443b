//===- RegisterTiles.cpp - how many rows and panels a micro-kernel takes ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/RegisterTiles.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

int64_t tc::codegen::splitColumns(kernel::RegionOp region, int64_t columns, int64_t least) {
  constexpr int64_t kWidestLanes = 16;
  int64_t run = 0;
  region.getBody().walk([&](prim::ReshapeOp reshape) {
    auto from = prim::getSizes(reshape.getOperand()), to = prim::getSizes(reshape.getResult());
    for (auto [joined, split] : {std::pair(from, to), std::pair(to, from)}) {
      if (joined.empty() || split.size() < 2 || prim::getConstantSize(joined.back()) != columns)
        continue;
      const int64_t last = prim::getConstantSize(split.back()).value_or(0);
      if (last >= least && last < columns && columns % last == 0)
        run = last;
    }
  });
  return run % kWidestLanes == 0 ? 0 : run;
}

VectorUnit tc::codegen::unitFor(const VectorUnit &unit, Type element) {
  VectorUnit seen = unit;
  if (element && element.isF64())
    seen.registers /= 2;
  return seen;
}

bool tc::codegen::fitsRegisters(const VectorUnit &unit, int64_t rows, int64_t panels) {
  int64_t vectors = panels * kPanel / unit.width();
  // Accumulators, a row of B, one broadcast; 31 of 32 at most (LLVM spills at exactly 32). A single row takes B from
  // memory.
  int64_t limit = unit.registers == 32 ? 31 : unit.registers;
  return rows * vectors + (rows == 1 ? 1 : vectors) + 1 <= limit;
}

double tc::codegen::microKernelCycles(const VectorUnit &unit, int64_t rows, int64_t panels) {
  double vectors = double(panels * kPanel) / unit.width();
  // Two multiply-adds a cycle, delayed by the loads of A and of B: fitted to what tiles of 4 to 14 rows took on a
  // Sapphire Rapids core whose other thread is at work, in units that leave 8 rows of 3 vectors without delay. One
  // register to spare is too few. A chain of multiply-adds advances every 4 cycles; B comes from the second level at 32
  // bytes a cycle.
  const bool isTight = unit.registers == 32 && rows * vectors + vectors + 1 > 30;
  double sums = (rows * vectors / 2 + 0.64 * rows + 1.43 * vectors) * (isTight ? 1.08 : 1) / 1.78;
  double second = panels * 2.0;
  return std::max({sums, 4.0, second}) + second * 0.05;
}

double tc::codegen::blockCycles(const VectorUnit &unit, int64_t rows, int64_t panels, Tile tile) {
  double cycles = 0;
  int64_t restRows = rows % tile.rows, restPanels = panels % tile.panels;
  auto addRows = [&](int64_t height, int64_t times) {
    if (!times)
      return;
    cycles += times * (panels / tile.panels) * microKernelCycles(unit, height, tile.panels);
    if (restPanels)
      cycles += times * microKernelCycles(unit, height, restPanels);
  };
  addRows(tile.rows, rows / tile.rows);
  if (restRows)
    addRows(restRows, 1);
  return cycles;
}

double tc::codegen::streamCycles(int64_t panels, int64_t group) {
  // The hardware's prefetcher follows one stream a page: 10 GB/s with one stream, 13 with two, 15.5 with four, 17 with
  // eight on a Sapphire Rapids core at 2.1 GHz.
  auto cycles = [](int64_t streams) { return streams ? 64.0 * (streams + 1) / 9 : 0; };
  return panels / group * cycles(group) + cycles(panels % group);
}

/// All tiles for so many rows and panels, with what they cost.
static SmallVector<std::pair<double, Tile>> possibleTiles(const VectorUnit &unit, std::optional<int64_t> rows,
                                                          std::optional<int64_t> panels, int64_t maxRows,
                                                          bool isStreamed) {
  SmallVector<std::pair<double, Tile>> tiles;
  const int64_t most = std::min(maxRows, std::max<int64_t>(1, rows.value_or(maxRows)));
  // All of B is read once: by few streams, unless nothing but that takes time.
  const bool isFew = rows && *rows <= maxRows && fitsRegisters(unit, most, 1);
  const int64_t mostPanels = isFew && !isStreamed ? 2 : 8;
  for (int64_t r = isFew ? most : 1; r <= most; ++r)
    for (int64_t p = 1; p <= mostPanels && (!panels || p <= std::max<int64_t>(1, *panels)); ++p) {
      if (!fitsRegisters(unit, r, p))
        continue;
      int64_t allRows = rows.value_or(8 * r), allPanels = panels.value_or(8 * p);
      double cost = blockCycles(unit, std::max<int64_t>(1, allRows), std::max<int64_t>(1, allPanels), {r, p});
      if (isStreamed)
        cost = std::max(cost, streamCycles(allPanels, p));
      cost /= double(std::max<int64_t>(1, allRows)) * std::max<int64_t>(1, allPanels);
      tiles.push_back({cost, {r, p}});
    }
  return tiles;
}

Tile tc::codegen::chooseTile(const VectorUnit &unit, std::optional<int64_t> rows, std::optional<int64_t> panels,
                             int64_t maxRows, bool isStreamed, int64_t within) {
  Tile best;
  double bestCost = std::numeric_limits<double>::infinity();
  for (auto [cost, tile] : possibleTiles(unit, rows, panels, maxRows, isStreamed))
    if (cost < bestCost * 0.999 && within % tile.panels == 0) {
      bestCost = cost;
      best = tile;
    }
  return best;
}

SmallVector<Tile> tc::codegen::otherTiles(const VectorUnit &unit, std::optional<int64_t> rows,
                                          std::optional<int64_t> panels, int64_t maxRows, Tile chosen, size_t count,
                                          bool isStreamed) {
  SmallVector<std::pair<double, Tile>> tiles = possibleTiles(unit, rows, panels, maxRows, isStreamed);
  llvm::stable_sort(tiles, [](const auto &x, const auto &y) { return x.first < y.first; });
  SmallVector<Tile> others;
  for (auto [cost, tile] : tiles)
    if (others.size() < count && (tile.rows != chosen.rows || tile.panels != chosen.panels))
      others.push_back(tile);
  return others;
}

int64_t tc::codegen::commonPanels(kernel::CpuContractAttr schedule) {
  int64_t panels = 1;
  for (const VectorUnit &unit : machine::kVectorUnits)
    panels = std::lcm(panels, std::max<int64_t>(1, schedule.colsFor(unit.bits) / kPanel));
  return panels;
}
