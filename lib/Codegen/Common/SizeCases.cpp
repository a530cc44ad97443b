//===- SizeCases.cpp - schedules by sizes that only the run knows -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/SizeCases.h"

#include "tc/Analysis/LikelySizes.h"

#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// Each symbol is 1, 2, 4 .. as far as its range goes.
constexpr unsigned kMostDoublings = 16;
// Schedules of a region: each is a kernel to compile. There are more as long as one of the sizes takes so many times as
// long as with a schedule of its own.
constexpr size_t kMostSchedules = 4;
constexpr double kWorthAKernel = 1.05;
constexpr double kNever = std::numeric_limits<double>::infinity();
// More work than any run has.
constexpr int64_t kMostWork = int64_t(1) << 58;

/// Sizes that the region is decided at.
struct Probe {
  DenseI64ArrayAttr sizes; ///< of all symbols
  int64_t work;
};

/// What grows with all sizes.
AffineExpr getWork(kernel::RegionOp region) {
  const base::CostAttr cost = region.getCostAttr();
  if (!cost)
    return {};
  for (AffineExpr expr : {cost.getFlopsExpr(), cost.getBytesExpr()})
    if (!prim::getConstantSize(expr))
      return expr;
  return {};
}

/// By rising work, in which all symbols grow together.
SmallVector<Probe> getProbes(func::FuncOp function, AffineExpr work) {
  const auto symbols = function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
  MLIRContext *context = function.getContext();
  SmallVector<Probe> probes;
  for (unsigned doublings = 0; symbols && doublings <= kMostDoublings; ++doublings) {
    SmallVector<int64_t> sizes;
    for (unsigned i = 0; i < symbols.size(); ++i) {
      const auto [least, most] = prim::getSizeBounds(getAffineSymbolExpr(i, context), symbols);
      sizes.push_back(std::clamp(int64_t(1) << doublings, least, std::max(least, most)));
    }
    const int64_t amount = evaluateAt(work, sizes);
    if (amount > (probes.empty() ? 0 : probes.back().work) && amount <= kMostWork)
      probes.push_back({DenseI64ArrayAttr::get(context, sizes), amount});
  }
  return probes;
}

/// What is at least zero for work up to between that of the two probes, by the one symbol that counts, or by the work.
AffineExpr atMostBetween(const Probe &below, const Probe &above, AffineExpr work) {
  auto between = [](int64_t x, int64_t y) { return int64_t(std::sqrt(double(x) * double(y))); };
  const SmallVector<unsigned> symbols = host::getSymbols(work);
  if (symbols.size() != 1)
    return between(below.work, above.work) - work;
  return between(below.sizes[symbols[0]], above.sizes[symbols[0]]) - getAffineSymbolExpr(symbols[0], work.getContext());
}

/// Constants lie in memory in one layout, whatever the size.
bool readAlike(const RegionProblem &problem, const Generator &generator, kernel::ScheduleAttr a,
               kernel::ScheduleAttr b) {
  const SmallVector<PackedInput> first = generator.packing(problem, a), second = generator.packing(problem, b);
  return first.size() == second.size() && llvm::all_of(llvm::zip_equal(first, second), [](const auto &pair) {
           const auto &[x, y] = pair;
           return std::tuple(x.input, x.map, Type(x.type), Attribute(x.transform), x.tf32) ==
                  std::tuple(y.input, y.map, Type(y.type), Attribute(y.transform), y.tf32);
         });
}

/// A schedule for neighbouring probes, those before `end`.
struct Segment {
  size_t schedule, end;
};

/// The best `count` segments by `times`, of each schedule at each probe: those of which the slowest probe is the
/// fastest, then the sum; `slowest`: of these.
SmallVector<Segment> cutInto(size_t count, ArrayRef<SmallVector<double>> times, double &slowest) {
  const size_t probes = times.front().size();
  struct Best {
    std::pair<double, double> time = {kNever, kNever};
    size_t schedule = 0, begin = 0;
  };
  // best[k][p]: the first p probes in k segments.
  SmallVector<SmallVector<Best>> best(count + 1, SmallVector<Best>(probes + 1));
  best[0][0].time = {0, 0};
  for (size_t k = 1; k <= count; ++k)
    for (size_t end = 1; end <= probes; ++end)
      for (auto [schedule, of] : llvm::enumerate(times)) {
        double most = 0, sum = 0;
        for (size_t begin = end; begin-- > 0;) {
          most = std::max(most, of[begin]);
          sum += of[begin];
          const auto [before, sumBefore] = best[k - 1][begin].time;
          if (const std::pair all(std::max(before, most), sumBefore + sum); all < best[k][end].time)
            best[k][end] = {all, schedule, begin};
        }
      }
  slowest = best[count][probes].time.first;
  SmallVector<Segment> segments;
  for (size_t end = probes, k = count; k > 0; end = best[k][end].begin, --k)
    segments.push_back({best[k][end].schedule, end});
  std::reverse(segments.begin(), segments.end());
  return segments;
}

} // namespace

void tc::codegen::addSizeCases(const RegionProblem &problem, const Generator &generator, DenseI64ArrayAttr tuned) {
  kernel::RegionOp region = problem.getOp();
  auto function = region->getParentOfType<func::FuncOp>();
  const AffineExpr work = getWork(region);
  if (!work || !function || !generator.compare(problem, region.getScheduleAttr()))
    return;
  const SmallVector<Probe> probes = getProbes(function, work);
  if (probes.size() < 2)
    return;
  llvm::SetVector<kernel::ScheduleAttr> schedules;
  for (const Probe &probe : probes) {
    const AssumedSizes assumed(function, probe.sizes);
    if (const FailureOr<kernel::ScheduleAttr> chosen = generator.choose(problem);
        succeeded(chosen) && readAlike(problem, generator, *chosen, region.getScheduleAttr()))
      schedules.insert(*chosen);
  }
  if (schedules.empty())
    return;
  SmallVector<SmallVector<double>> times(schedules.size());
  for (const Probe &probe : probes) {
    const AssumedSizes assumed(function, probe.sizes);
    for (auto [schedule, of] : llvm::zip_equal(schedules, times))
      of.push_back(generator.compare(problem, schedule).value_or(kUnfitSchedule));
  }
  SmallVector<Segment> segments;
  double slowest = kNever;
  for (size_t count = 1, most = std::min({kMostSchedules, schedules.size(), probes.size()});
       count <= most && slowest > kWorthAKernel; ++count)
    segments = cutInto(count, times, slowest);
  if (tuned) {
    const int64_t amount = evaluateAt(work, tuned);
    const size_t probe = llvm::count_if(probes, [&](const Probe &other) { return other.work < amount; });
    schedules.insert(region.getScheduleAttr());
    llvm::find_if(segments, [&](const Segment &segment) {
      return segment.end > std::min(probe, probes.size() - 1);
    })->schedule = llvm::find(schedules, region.getScheduleAttr()) - schedules.begin();
  }
  MLIRContext *context = region.getContext();
  const unsigned symbolCount = function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr).size();
  SmallVector<Attribute> cases;
  for (const Segment &segment : ArrayRef(segments).drop_back()) {
    const IntegerSet sizes =
        IntegerSet::get(0, symbolCount, {atMostBetween(probes[segment.end - 1], probes[segment.end], work)}, {false});
    cases.push_back(kernel::CaseAttr::get(context, IntegerSetAttr::get(sizes), machine::MachineAttr(),
                                          schedules[segment.schedule]));
  }
  region.setScheduleAttr(schedules[segments.back().schedule]);
  if (!cases.empty())
    region.setCasesAttr(ArrayAttr::get(context, cases));
}
