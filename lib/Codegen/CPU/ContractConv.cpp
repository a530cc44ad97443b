//===- ContractConv.cpp - schedules of convolutions, and what is packed for them ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Contract.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::contract;

namespace {
// Filters that only the run knows are packed for so many flops.
constexpr double kLeastPackedFlops = 200e3;
// Cycles in which a float of a convolution's input is copied: from pixels of so few channels, which are interleaved,
// and from longer ones. The share of a task's time that it should stay below, and the bytes that stay near. (Stems of
// 3 to 32 and 64 channels: 0.87 and 0.97 of the time with tasks of four rows instead of one on Zen 5.)
constexpr double kInterleaveCycles = 0.4, kCopyCycles = 0.1, kCopyShare = 0.03, kProductsPerCycle = 32;
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
constexpr int64_t kLeastByOutput = 64;
// Steps of a convolution's sums that are added up on their own: deep networks of them have no norms between that are
// computed in the run, and round more than those of products.
constexpr int64_t kConvolutionPartialDepth = 256;
} // namespace

std::optional<PackedInput> contract::packedFilter(const Convolution &c, llvm::function_ref<bool(unsigned)> isConstant) {
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

/// Whether the input is read where it lies.
static bool readsInPlace(const Convolution &c) {
  prim::ConvOp op = c.op;
  return inputThroughReshapes(op.getInput()) && allEqual(op.getPadLow(), 0) && allEqual(op.getPadHigh(), 0) &&
         allEqual(c.outerKernel, 1) && (c.groups == 1 || c.kernelW == 1);
}

/// Output pixels and panels of a micro-kernel, and the cycles of a task per step of K.
struct Patch {
  int64_t height = 1, width = 1, panels = 1;
  double cost = std::numeric_limits<double>::infinity();

  void set(const Convolution &c, const VectorUnit &unit, Schedule::Params &params) const {
    params.patchHFor(unit.bits) = height;
    params.patchWFor(unit.bits) = width;
    params.colsFor(unit.bits) = panels * kPanel;
    const bool isFew = c.h && c.w && *c.h * *c.w <= 2 * height * width;
    params.prefetchBytesFor(unit.bits) = isFew ? kPrefetchBytes : 0;
  }
};

/// The share of the kernel positions of both dims that patches of so many outputs keep.
struct Share {
  double h = 1, w = 1;
};

SmallVector<PatchTap> contract::patchTaps(const Convolution &c, int64_t height, int64_t width, bool wholeH,
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

static Share patchShare(const Convolution &c, int64_t height, int64_t width) {
  if (readsInPlace(c))
    return {};
  // A patch that is a whole line has a step of K for each output.
  auto share = [](const SpatialDim &dim, int64_t block) { return usedShare(dim, dim.out == block ? 1 : block); };
  const bool isByOutput = !c.merged() || c.channels >= kLeastByOutput;
  return {share(dimH(c), height), isByOutput ? share(dimW(c), width) : 1};
}

/// Cycles of a patch for all columns per step of K, on average over the kernel positions, those that are left out
/// among them.
static double patchCycles(const Convolution &c, const VectorUnit &unit, int64_t height, int64_t width, int64_t panels) {
  // A vector of sums that another micro-kernel adds to is loaded and stored again.
  constexpr double kAddCycles = 1.5;
  const Share share = patchShare(c, height, width);
  const bool skipsH = share.h < kLeastSkipped, skipsW = share.w < kLeastSkipped;
  const bool wholeH = skipsH && c.h == height, wholeW = skipsW && c.w == width;
  double cycles = 0, added = 0;
  for (const PatchTap &part : patchTaps(c, height, width, wholeH, wholeW)) {
    cycles += blockCycles(unit, part.outputs(), c.panels(), {part.outputs(), panels});
    added += double(part.outputs() * c.panels() * kPanel) / unit.width() * kAddCycles;
  }
  cycles /= double((wholeH ? c.kernelH : 1) * (wholeW ? c.kernelW : 1));
  if (wholeH || wholeW)
    cycles += added / double(c.depth());
  return cycles * (skipsH && !wholeH ? share.h : 1) * (skipsW && !wholeW ? share.w : 1);
}

static SmallVector<Patch> possiblePatches(const Convolution &c, const VectorUnit &unit, int64_t tileH, int64_t tileW) {
  SmallVector<Patch> patches;
  // A product of one row: nothing but the filter's panels takes time.
  const bool isOnePixel = prim::getConstantSize(c.batch) == 1 && c.h == 1 && c.w == 1 &&
                          llvm::all_of(c.outer, [](AffineExpr size) { return prim::getConstantSize(size) == 1; });
  // Unknown extents end in any number of rows: patches of one row keep the code small.
  for (int64_t h = 1; h <= (c.h && c.w ? tileH : 1); ++h)
    for (int64_t w = 1; w <= tileW && h * w <= 14; ++w)
      for (int64_t n = 1; n <= std::min<int64_t>(c.panels(), 8); ++n) {
        if (!fitsRegisters(unit, h * w, n))
          continue;
        double cost = isOnePixel ? streamCycles(c.panels(), n) : 0;
        auto add = [&](int64_t height, int64_t width, int64_t times) {
          if (height * width * times)
            cost += times * patchCycles(c, unit, height, width, n);
        };
        add(h, w, (tileH / h) * (tileW / w));
        add(tileH % h, w, tileW / w);
        add(h, tileW % w, tileH / h);
        add(tileH % h, tileW % w, 1);
        patches.push_back({h, w, n, cost});
      }
  return patches;
}

/// Those of one image, roughly where its size is not known.
static double convolutionFlops(const Convolution &c) {
  const double pixels = double(c.likelyHeight(usual::kSmallImageSide)) * double(c.likelyWidth(usual::kSmallImageSide));
  return 2.0 * c.depth() * c.columns * c.groups * pixels * c.likelyOuter() * double(c.likelyImages());
}

double contract::taskFlops(const Convolution &c, int64_t tileH, int64_t tileW, int64_t tileN) {
  return 2.0 * c.depth() * std::max(kStreamedRows, double(tileH * tileW)) * std::min<double>(c.columns, double(tileN));
}

LogicalResult contract::chooseConvolution(const Convolution &c, const RegionProblem &region, Schedule::Params &params) {
  std::optional<PackedInput> packed = packedFilter(c, region.constants());
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
    return double(c.likelyImages()) * std::ceil(double(c.likelyHeight()) / height) *
           std::ceil(double(c.likelyWidth()) / tileW) * c.groups * c.likelyOuter();
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
    if (copyingShare(lower, double(c.columns), c.channels < kLeastLanes ? kInterleaveCycles : kCopyCycles) > kCopyShare)
      break;
    tileH = lower;
  }

  int64_t widePanels = 0;
  Share wide;
  for (const VectorUnit &unit : llvm::reverse(machine::kVectorUnits)) {
    Patch best;
    for (const Patch &patch : possiblePatches(c, unit, tileH, tileW))
      if (patch.cost < best.cost * 0.999 && widePanels % patch.panels == 0)
        best = patch;
    best.set(c, unit, params);
    if (unit.bits == 512) {
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
  params.partialDepth = kConvolutionPartialDepth;
  params.grain = grainFor(flops());
  if (!direct && std::min(wide.h, usedShare(dimH(c), tileH)) < kLeastSkipped)
    params.skipH = 1;
  if (wide.w < kLeastSkipped)
    params.skipW = 1;
  return success();
}

SmallVector<kernel::ScheduleAttr> contract::convolutionAlternatives(const Convolution &c, Schedule chosen,
                                                                    const VectorUnit &unit) {
  SmallVector<kernel::ScheduleAttr> all;
  auto add = [&](Schedule::Params params, int64_t tileH, int64_t tileW, int64_t tileN) {
    Schedule schedule = params.get(chosen.getContext());
    const int64_t group = commonPanels(schedule) * kPanel;
    int64_t leastH = 1, leastW = 1;
    for (const VectorUnit &each : machine::kVectorUnits) {
      leastH = std::max(leastH, schedule.patchHFor(each.bits));
      leastW = std::max(leastW, schedule.patchWFor(each.bits));
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
  SmallVector<Patch> patches = possiblePatches(c, unit, tileH, tileW);
  llvm::stable_sort(patches, [](const Patch &x, const Patch &y) { return x.cost < y.cost; });
  for (const Patch &patch : ArrayRef(patches).take_front(3)) {
    Schedule::Params params = chosen.getParams();
    patch.set(c, unit, params);
    add(params, tileH, tileW, tileN);
  }
  if (!chosen.getLhsCopy()) {
    Schedule::Params params = chosen.getParams();
    params.lhsCopy = 1;
    add(params, tileH, tileW, tileN);
  }
  return all;
}

SmallVector<AffineExpr> contract::convolutionGrid(const Convolution &c, Schedule schedule) {
  MLIRContext *context = c.batch.getContext();
  SmallVector<AffineExpr> grid{c.batch};
  llvm::append_range(grid, c.outer);
  SmallVector<AffineExpr> columns{getAffineConstantExpr(c.groups, context),
                                  getAffineConstantExpr(ceilDiv(c.columns, schedule.getTileN()), context)};
  SmallVector<AffineExpr> pixels{prim::simplifySize(c.outH.ceilDiv(schedule.getTileH())),
                                 prim::simplifySize(c.outW.ceilDiv(schedule.getTileW()))};
  const bool isRowsOuter = schedule.getRasterOrder() == kernel::RasterOrder::RowsOuter;
  llvm::append_range(grid, isRowsOuter ? pixels : columns);
  llvm::append_range(grid, isRowsOuter ? columns : pixels);
  return grid;
}

int64_t contract::convolutionFloats(const Convolution &c, Schedule schedule) {
  if (!schedule.getLhsCopy())
    return 0;
  return c.outerTaps() * c.haloH(schedule.getTileH()) * c.haloW(schedule.getTileW()) * c.channels;
}

Launch contract::packingLaunch(const Convolution &c) {
  Launch launch;
  launch.suffix = "_pack";
  MLIRContext *context = c.batch.getContext();
  launch.tasks = getAffineConstantExpr(c.groups * c.panels(), context);
  const int64_t bytes = c.depth() * kPanel * 4;
  launch.grain = getAffineConstantExpr(std::max<int64_t>(1, kPackGrainBytes / bytes), context);
  launch.temporaries = {RankedTensorType::get({c.groups * c.panels(), c.depth(), kPanel}, Float32Type::get(context))};
  return launch;
}
