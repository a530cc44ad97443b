//===- NarrowGemm.cpp - the "cpu.narrow_gemm" strategy: products of bytes and of bf16 -----------------------------===//
//----------------------------------------------===//
//
// result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], either with lhs of ui8, rhs of i8 and sums of i32 that
// wrap, what tc-narrow-products makes of quantised products, or with operands of bf16 and sums of f32, what
// tc-round-products makes of products of floats. The layout of B and the micro-kernels: NarrowKernel.h. B is packed
// when the artifact is made if it is constant, else by a launch of its own. A task is a block of rows times a block of
// columns of a batch element; the epilogue runs over the micro-kernel's tile. Of a convolution, A are the patches
// (Patches.h) that the task copies, and the batch elements are the groups.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/NarrowGemm.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::narrow_gemm;

namespace {

// Rows of a task, fewer where they are many bytes; as few as that only where a matrix has no more.
constexpr int64_t kTaskRows = 224, kTaskRowBytes = machine::kCaches.l2 / 4, kLeastRows = 4 * kTileRows;
// Columns of a task take this many bytes of B: they stay in the second-level cache.
constexpr int64_t kPanelBytes = machine::kCaches.l2 / 4;
// How far ahead the panels are fetched that few rows read once: a page, where the hardware's prefetcher stops.
constexpr int64_t kPrefetchLines = 64;
// Products of a task below which more tasks are not worth it, and what a thread should get at least.
constexpr double kTaskProducts = 16e6, kGrainProducts = 2e6;
constexpr int64_t kTasks = 48;

Type elementOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

constexpr NarrowKind kKinds[] = {kBytes, kBfloats};

bool isNarrow(NarrowKind kind, Operation *anchor) {
  Type lhs = elementOf(anchor->getOperand(0)), rhs = elementOf(anchor->getOperand(1)),
       sum = elementOf(anchor->getResult(0));
  return kind.isFloat ? lhs.isBF16() && rhs.isBF16() && sum.isF32()
                      : lhs.isUnsignedInteger(8) && rhs.isSignlessInteger(8) && sum.isSignlessInteger(32);
}

/// The product of a region's anchor; nullopt if it is none of bytes or bf16, or K is not known.
std::optional<NarrowProduct> asNarrowProduct(const RegionProblem &region) {
  Operation *anchor = region.findAnchor();
  if (!isa_and_nonnull<prim::DotGeneralOp, prim::ConvOp>(anchor))
    return std::nullopt;
  const NarrowKind *kind = llvm::find_if(kKinds, [&](const NarrowKind &each) { return isNarrow(each, anchor); });
  if (kind == std::end(kKinds))
    return std::nullopt;
  NarrowProduct product;
  product.kind = *kind;
  if (const Product *p = region.findProduct()) {
    static_cast<Product &>(product) = *p;
  } else {
    product.patches = asPatches(anchor);
    if (!product.patches)
      return std::nullopt;
    static_cast<Product &>(product) = product.patches->product;
  }
  product.epilogue = region.findWholeEpilogue(product.result);
  return product.epilogue && product.k && *product.k > 0 ? std::optional(product) : std::nullopt;
}

//===--- the generator --------------------------------------------------------------------------------------------===//

class NarrowGemmGenerator final : public GeneratorFor<Schedule, NarrowProduct> {
public:
  std::optional<NarrowProduct> analyze(const RegionProblem &region) const override { return asNarrowProduct(region); }

  SmallVector<machine::CpuUnits> gainsFrom() const override {
    return {machine::CpuUnits::Vnni, machine::CpuUnits::Bf16, machine::CpuUnits::AmxInt8, machine::CpuUnits::AmxBf16};
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const NarrowProduct &p) const override {
    const NarrowKind kind = p.kind;
    Schedule::Params params;
    std::optional<PackedInput> packed = p.packed(region.constants());
    if (p.patches && (!packed || p.patches->columns == 0))
      return failure();
    const bool copy = !p.isInPlace() || *p.k % kind.steps() != 0;
    const int64_t m = likelyRows(p), n = likelyColumns(p);
    const int64_t allPanels = ceilDiv(n, kPanel);
    // Accumulators, a row of B and a broadcast: 31 registers of 32 or 16 (a panel has 1, 2 and 4 vectors of sums; of
    // f32 1, 1 and 2).
    Tile wide{14, 2};
    if (m == 1 && allPanels >= 8)
      wide = {1, 8}; // as many streams of memory as the hardware follows
    else if (m <= 6 && allPanels >= 4)
      wide = {std::min<int64_t>(m, 5), 4};
    else if (m < 14 || m % 14 > 0) // blocks of equal size
      wide.rows = ceilDiv(m, ceilDiv(m, 14));
    Tile narrow256{std::min<int64_t>(m, 3), 1}, narrow512{std::min<int64_t>(m, 6), 2};
    if (kind.isFloat) {
      narrow256 = m == 1 ? Tile{1, 4} : Tile{std::min<int64_t>(m, 5), 1};
      narrow512 = m == 1 ? Tile{1, 8} : Tile{std::min<int64_t>(m, 12), 2};
    }
    auto colsOf = [&](Tile tile) {
      return std::min<int64_t>(tile.panels, int64_t(llvm::bit_floor(uint64_t(allPanels)))) * kPanel;
    };
    params.rows256 = narrow256.rows, params.cols256 = colsOf(narrow256);
    params.rows512 = narrow512.rows, params.cols512 = colsOf(narrow512);
    params.rowsDot = wide.rows, params.colsDot = colsOf(wide);
    const int64_t unit = std::max<int64_t>(4, wide.panels); // whole groups on every CPU
    const int64_t depthBytes = *p.k * kind.elementBytes();
    int64_t tilePanels = std::max<int64_t>(8, kPanelBytes / kind.panelBytes(*p.k)) / unit * unit;
    tilePanels = std::min(tilePanels, roundUp(allPanels, unit));
    // Blocks of equal size, of whole AMX tiles.
    const int64_t rowsStep = m < kTileRows ? wide.rows : kTileRows;
    int64_t tileM = std::clamp<int64_t>(kTaskRowBytes / depthBytes, kLeastRows, kTaskRows) / rowsStep * rowsStep;
    tileM = std::min(tileM, roundUp(ceilDiv(m, ceilDiv(m, tileM)), rowsStep));
    auto tasks = [&] {
      return double(p.likelyBatch()) * double(ceilDiv(m, tileM)) * double(ceilDiv(allPanels, tilePanels));
    };
    auto products = [&] { return taskProducts(p, tileM, tilePanels * kPanel); };
    // Copied rows are worth their copy for 128 columns.
    const int64_t leastPanels = std::min<int64_t>(tilePanels, copy ? 8 : unit);
    while (tasks() < kTasks && products() > kTaskProducts) {
      if (tilePanels > leastPanels && (tilePanels * kPanel >= tileM || tileM <= kLeastRows))
        tilePanels = std::max(leastPanels, roundUp(tilePanels / 2, unit));
      else if (tileM > kLeastRows)
        tileM = std::max(kLeastRows, roundUp(tileM / 2, rowsStep));
      else
        break;
    }
    params.tileM = tileM;
    params.tileN = tilePanels * kPanel;
    params.lhsCopy = copy;
    params.tiles = !p.m || *p.m >= kTileRows;
    params.rhs = packed ? int64_t(packed->input) : -1;
    params.prefetchLines = packed ? kPrefetchLines : 0;
    if (!packed)
      params.rhsTransposed = p.depth.size() == 1 && isDepthInnermost(p);
    params.grain = grainFor(kGrainProducts, products());
    return params.get(region.getContext());
  }

  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const NarrowProduct &p,
                                                 machine::CpuAttr cpu) const override {
    FailureOr<Schedule> chosen = decide(region, p);
    if (failed(chosen))
      return {};
    const NarrowKind kind = p.kind;
    SmallVector<kernel::ScheduleAttr> all;
    auto add = [&](Schedule::Params params, int64_t tileM, int64_t tileN) {
      const bool tiles = kind.hasTiles(cpu) && params.tiles;
      const int64_t block = tiles ? kTileBlockRows : kernelOf(params, kind, cpu).first, group = 4 * kPanel;
      tileM = std::max(block, std::min(roundUp(tileM, block), p.m ? roundUp(*p.m, block) : tileM));
      tileN = std::max(group, std::min(roundUp(tileN, group), p.n ? roundUp(*p.n, group) : tileN));
      params.tileM = tileM;
      params.tileN = tileN;
      params.grain = grainFor(kGrainProducts, taskProducts(p, tileM, tileN));
      all.push_back(params.get(region.getContext()));
    };
    const int64_t tileM = chosen->getTileM(), tileN = chosen->getTileN();
    for (auto [m, n] : {std::pair(tileM, tileN * 2), std::pair(tileM * 2, tileN), std::pair(tileM, tileN / 2),
                        std::pair(tileM / 2, tileN)})
      add(chosen->getParams(), m, n);
    if (kind.hasTiles(cpu)) {
      Schedule::Params params = chosen->getParams();
      params.tiles = !chosen->getTiles();
      add(params, tileM, tileN);
    }
    if (kind.hasDot(cpu) && !(kind.hasTiles(cpu) && chosen->getTiles()))
      for (Tile tile : {Tile{14, 2}, Tile{12, 2}, Tile{6, 4}, Tile{5, 4}})
        if ((!p.m || tile.rows <= *p.m) && (!p.n || tile.panels * kPanel <= roundUp(*p.n, kPanel))) {
          Schedule::Params params = chosen->getParams();
          kernelOf(params, kind, cpu) = std::pair(tile.rows, tile.panels * kPanel);
          add(params, tileM, tileN);
        }
    return all;
  }

  SmallVector<PackedInput> packInputs(const NarrowProduct &p, Schedule schedule) const override {
    int64_t rhs = schedule.getRhs();
    if (rhs < 0)
      return {};
    return {*p.packed([&](unsigned i) { return int64_t(i) == rhs; })};
  }

  SmallVector<Launch> makeLaunches(const NarrowProduct &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    const NarrowKind kind = p.kind;
    SmallVector<Launch> launches;
    if (schedule.getRhs() < 0) {
      Launch packing;
      packing.suffix = "_pack";
      packing.tasks = prim::product(context, {p.B, panelsOf(p)});
      packing.grain = getAffineConstantExpr(std::max<int64_t>(1, 4096 / ceilDiv(*p.k, kind.steps())), context);
      AffineExpr bytes = getAffineConstantExpr(kind.panelBytes(*p.k), context);
      packing.temporaries = {prim::makeType(IntegerType::get(context, 8), {p.B, panelsOf(p), bytes})};
      launches.push_back(packing);
    }
    Launch launch;
    launch.tasks = prim::product(context, grid(p, schedule));
    // Widened rows where there is no instruction for words; 64 bytes more: full vectors may be stored at the end.
    launch.scratch = scratchBytes(context, schedule.getTileM() * rowBytes(p, kind.wideBytes()) + 64);
    launch.inPlace = p.epilogue->inPlace();
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const NarrowProduct &p, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    if (number == 0 && schedule.getRhs() < 0)
      return narrow_gemm::emitPacking(p, schedule, em, begin, end);
    narrow_gemm::emit(p, schedule, em, begin, end);
  }

private:
  static int64_t likelyRows(const Product &p) { return std::max<int64_t>(1, p.likelyRows(usual::kNarrowProductSide)); }
  static int64_t likelyColumns(const Product &p) {
    return std::max<int64_t>(1, p.likelyColumns(usual::kNarrowProductSide));
  }
  static double taskProducts(const Product &p, int64_t tileM, int64_t tileN) {
    return double(*p.k) * double(std::min(likelyRows(p), tileM)) * double(std::min(likelyColumns(p), tileN));
  }
};

} // namespace

std::pair<int64_t &, int64_t &> narrow_gemm::kernelOf(Schedule::Params &params, NarrowKind kind, machine::CpuAttr cpu) {
  if (kind.hasDot(cpu))
    return {params.rowsDot, params.colsDot};
  return {params.rowsFor(cpu.getVectorBits()), params.colsFor(cpu.getVectorBits())};
}

std::optional<PackedInput> NarrowProduct::packed(llvm::function_ref<bool(unsigned)> isConstant) const {
  return patches ? packedPatchFilter(*patches, kind, isConstant)
                 : packedRhs(*this, isConstant, kind.steps(), kind.lines(*k));
}

SmallVector<AffineExpr> narrow_gemm::grid(const Product &p, Schedule schedule) {
  return {p.B, prim::simplifySize(p.N.ceilDiv(schedule.getTileN())),
          prim::simplifySize(p.M.ceilDiv(schedule.getTileM()))};
}

const Generator *tc::codegen::narrowGemmGenerator() {
  static const NarrowGemmGenerator generator;
  return &generator;
}
