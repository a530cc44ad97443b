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

#include "CPU/NarrowKernel.h"
#include "CPU/Patches.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuNarrowGemmAttr;

// Rows of a task, fewer where they are many bytes; as few as that only where a matrix has no more.
constexpr int64_t kTaskRows = 224, kTaskRowBytes = machine::kCaches.l2 / 4, kLeastRows = 4 * kTileRows;
// Columns of a task take this many bytes of B: they stay in the second-level cache.
constexpr int64_t kPanelBytes = machine::kCaches.l2 / 4;
// How far ahead the panels are fetched that few rows read once: a page, where the hardware's prefetcher stops.
constexpr int64_t kPrefetchLines = 64;
// Products of a task below which more tasks are not worth it, and what a thread should get at least.
constexpr double kTaskProducts = 16e6, kGrainProducts = 2e6;
constexpr int64_t kTasks = 48;

/// Rows and columns of the micro-kernel that a CPU takes.
std::pair<int64_t &, int64_t &> kernelOf(Schedule::Params &params, NarrowKind kind, machine::CpuAttr cpu) {
  if (kind.hasDot(cpu))
    return {params.rowsDot, params.colsDot};
  return {params.rowsFor(cpu.getVectorBits()), params.colsFor(cpu.getVectorBits())};
}

Type elementOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// What a region's anchor computes.
struct NarrowProduct : Product {
  NarrowKind kind = kBytes;
  /// A convolution's, unless it only mixes channels.
  std::optional<Patches> patches;
  const Epilogue *epilogue = nullptr;

  /// A is a matrix in memory.
  bool isInPlace() const { return !patches && isRowMajor(*this) && inputThroughReshapes(lhs); }
  std::optional<PackedInput> packed(llvm::function_ref<bool(unsigned)> isConstant) const {
    return patches ? packedPatchFilter(*patches, kind, isConstant)
                   : packedRhs(*this, isConstant, kind.steps(), kind.lines(*k));
  }
  /// Where the result's element of these positions stands.
  SmallVector<Index> place(Emitter &em, Index group, ArrayRef<Index> batchAt, ArrayRef<Index> rowAt,
                           Index column) const {
    SmallVector<Index> at;
    if (patches) {
      at.assign(rowAt.begin(), rowAt.end());
      Index first = em.mulIndex(group, em.i64(patches->columns), patches->columns);
      at.push_back(patches->groups == 1 ? column : em.addIndex(first, column));
      return at;
    }
    at.assign(batchAt.begin(), batchAt.end());
    llvm::append_range(at, rowAt);
    llvm::append_range(at, em.delinearize(column, columns));
    return at;
  }
};

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
    if (!packed)
      params.rhsTransposed = p.depth.size() == 1 && isDepthInnermost(p);
    params.grain = std::max<int64_t>(1, int64_t(kGrainProducts / products()));
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
      params.grain = std::max<int64_t>(1, int64_t(kGrainProducts / taskProducts(p, tileM, tileN)));
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
    launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
    // Widened rows where there is no instruction for words; 64 bytes more: full vectors may be stored at the end.
    launch.scratch = getAffineConstantExpr(schedule.getTileM() * rowBytes(p, kind.wideBytes()) + 64, context);
    launch.inPlace = p.epilogue->inPlace();
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const NarrowProduct &p, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    if (number == 0 && schedule.getRhs() < 0)
      return em.loop(begin, end, 1, [&](Index task) { packPanel(p, schedule, em, task); });
    em.loop(begin, end, 1, [&](Index task) { emitTask(p, schedule, *p.epilogue, em, task); });
  }

private:
  static int64_t likelyRows(const Product &p) { return std::max<int64_t>(1, p.likelyRows(usual::kNarrowProductSide)); }
  static int64_t likelyColumns(const Product &p) {
    return std::max<int64_t>(1, p.likelyColumns(usual::kNarrowProductSide));
  }
  static double taskProducts(const Product &p, int64_t tileM, int64_t tileN) {
    return double(*p.k) * double(std::min(likelyRows(p), tileM)) * double(std::min(likelyColumns(p), tileN));
  }
  static SmallVector<AffineExpr> grid(const Product &p, Schedule schedule) {
    return {p.B, prim::simplifySize(p.N.ceilDiv(schedule.getTileN())),
            prim::simplifySize(p.M.ceilDiv(schedule.getTileM()))};
  }
  /// Between copied rows: whole vectors fit, and rows do not share the sets of the first-level cache.
  static int64_t rowBytes(const Product &p, int64_t elementBytes) { return roundUp(*p.k * elementBytes, 64) + 64; }
  static Value byteOffset(Emitter &em, Value pointer, Value bytes) {
    return em.address(pointer, em.builder().getI8Type(), bytes);
  }

  /// Task: one panel of a batch element. The steps of a word are rows of B.
  static void packPanel(const NarrowProduct &p, Schedule schedule, Emitter &em, Index task) {
    OpBuilder &b = em.builder();
    const Location loc = em.loc();
    const NarrowKind kind = p.kind;
    SmallVector<Index> at = em.delinearize(task, {p.B, panelsOf(p)});
    SmallVector<Index> batchAt = em.delinearize(at[0], p.batch);
    Index n0 = em.mulIndex(at[1], em.i64(kPanel), kPanel);
    Value to = byteOffset(em, em.output(0), em.mul(task.base, em.i64(kind.panelBytes(*p.k))));
    Value columns = em.min(em.i64(kPanel), em.sub(em.size(p.N), n0.base));
    const int64_t whole = *p.k / kind.steps(), lines = ceilDiv(*p.k, kind.steps());
    if (kind.isFloat)
      clearPanel(p, em, to, columns, whole, kind.lines(*p.k));
    VectorType lanes = em.vectorOf(b.getI32Type());
    auto element = [&](Value k, Index n) -> Value {
      SmallVector<Index> depthAt = em.delinearize(em.uniform(k), p.depth);
      Value value = em.broadcast(em.emit(
          p.rhs, Product::place<Index>(p.rhsDims, batchAt, {}, em.delinearize(n, p.columns), depthAt, em.constant(0))));
      if (kind.isFloat)
        value = arith::BitcastOp::create(b, loc, em.vectorOf(b.getI16Type()), value);
      return arith::ExtUIOp::create(b, loc, lanes, value);
    };
    auto word = [&](Value number, int64_t steps) {
      Value start = byteOffset(em, to, em.mul(number, em.i64(kLineBytes)));
      em.laneLoop(columns, std::nullopt, [&](Index lane) {
        Value word;
        for (int64_t i = 0; i < steps; ++i) {
          Value part = element(em.add(em.mul(number, em.i64(kind.steps())), em.i64(i)), em.addIndex(n0, lane));
          if (i) {
            const int32_t bits = int32_t(8 * kind.elementBytes() * i);
            Value by = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(lanes, b.getI32IntegerAttr(bits)));
            part = arith::ShLIOp::create(b, loc, part, by);
          }
          word = word ? Value(arith::OrIOp::create(b, loc, word, part)) : part;
        }
        em.storeAt(word, start, b.getI32Type(), lane);
      });
    };
    int64_t transposed = 0;
    if (schedule.getRhsTransposed()) {
      transposed = whole / em.width() * em.width();
      packTransposed(p, em, batchAt, n0, to, transposed);
    }
    em.loop(em.i64(transposed), em.i64(whole), 1, [&](Index number) { word(number.base, kind.steps()); });
    if (whole < lines)
      word(em.i64(whole), *p.k % kind.steps());
  }

  /// The first `words` lines of a panel from rows of K: a vector of words of each column, transposed in registers.
  static void packTransposed(const NarrowProduct &p, Emitter &em, ArrayRef<Index> batchAt, Index n0, Value to,
                             int64_t words) {
    OpBuilder &b = em.builder();
    const Location loc = em.loc();
    const int64_t width = em.width(), steps = p.kind.steps();
    const Type bits = b.getIntegerType(unsigned(8 * p.kind.elementBytes()));
    // Steps of a column from `k` on, as words.
    auto wordsOf = [&](Index k, Index n) -> Value {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < steps; ++i) {
        Index lanes = em.contiguous(em.addIndex(k, em.constant(i * width)));
        Value part =
            em.broadcast(em.emit(p.rhs, Product::place<Index>(p.rhsDims, batchAt, {}, em.delinearize(n, p.columns),
                                                              {lanes}, em.constant(0))));
        parts.push_back(p.kind.isFloat ? Value(arith::BitcastOp::create(b, loc, em.vectorOf(bits), part)) : part);
      }
      while (parts.size() > 1) {
        SmallVector<Value> pairs;
        for (size_t i = 0; i < parts.size(); i += 2) {
          SmallVector<int64_t> all =
              llvm::to_vector(llvm::seq<int64_t>(0, 2 * cast<VectorType>(parts[i].getType()).getNumElements()));
          pairs.push_back(vector::ShuffleOp::create(b, loc, parts[i], parts[i + 1], all));
        }
        parts = pairs;
      }
      return LLVM::BitcastOp::create(b, loc, em.vectorOf(b.getI32Type()), parts.front());
    };
    em.loop(
        em.i64(0), em.i64(words), width,
        [&](Index line) {
          Index k = em.mulIndex(line, em.i64(steps), steps);
          for (int64_t first = 0; first < kPanel; first += width) {
            SmallVector<Value> columns; // the last ones repeat: nobody reads their sums
            for (Index column : linesFrom(em, em.add(n0.base, em.i64(first)), p.N))
              columns.push_back(wordsOf(k, column));
            for (auto [i, words] : llvm::enumerate(transposeLanes(em, columns)))
              LLVM::StoreOp::create(b, loc, words,
                                    byteOffset(em, to,
                                               em.add(em.mul(em.add(line.base, em.i64(int64_t(i))), em.i64(kLineBytes)),
                                                      em.i64(first * kWordBytes))),
                                    4);
          }
        },
        0);
  }

  /// Zeros where no whole word will stand: what was there before may be no number, and a product of that and of the
  /// zeros of A none either; nor may it be denormal in columns that nobody reads.
  static void clearPanel(const NarrowProduct &p, Emitter &em, Value to, Value columns, int64_t whole, int64_t lines) {
    OpBuilder &b = em.builder();
    auto clear = [&](Value from, int64_t end) {
      em.loop(from, em.i64(end), 1, [&](Index line) {
        Value start = byteOffset(em, to, em.mul(line.base, em.i64(kLineBytes)));
        Value zeros = arith::ConstantOp::create(b, em.loc(), b.getZeroAttr(VectorType::get({kPanel}, b.getI32Type())));
        LLVM::StoreOp::create(b, em.loc(), zeros, start, 4);
      });
    };
    if (whole < lines)
      clear(em.i64(whole), lines);
    if (p.n && *p.n % kPanel == 0)
      return;
    Value ends = arith::CmpIOp::create(b, em.loc(), arith::CmpIPredicate::slt, columns, em.i64(kPanel));
    em.ifThen(ends, [&] { clear(em.i64(0), whole); });
  }

  static void emitTask(const NarrowProduct &p, Schedule schedule, const Epilogue &epilogue, Emitter &em, Index task) {
    OpBuilder &b = em.builder();
    const NarrowKind kind = p.kind;
    Schedule::Params params = schedule.getParams();
    const auto [kernelRows, kernelCols] = kernelOf(params, kind, em.cpu());
    const bool hasDot = kind.hasDot(em.cpu()), tiles = kind.hasTiles(em.cpu()) && schedule.getTiles();
    const int64_t tileM = schedule.getTileM(), tileN = schedule.getTileN();
    const int64_t rows = tiles ? kTileBlockRows : kernelRows;
    const int64_t cols = tiles ? std::min(roundUp(p.n.value_or(tileN), kPanel), 2 * kPanel) : kernelCols;
    const int64_t rhsInput = schedule.getRhs(), bytes = kind.panelBytes(*p.k), group = cols / kPanel;
    const Type sum = kind.sumType(b);
    const Value tile = em.stackBuffer(sum, rows * cols);
    SmallVector<Index> at = em.delinearize(task, grid(p, schedule));
    SmallVector<Index> batchAt = em.delinearize(at[0], p.batch);
    Index n0 = em.mulIndex(at[1], em.i64(tileN), tileN), m0 = em.mulIndex(at[2], em.i64(tileM), tileM);
    Extent count = blockExtent(em, p.M, m0.base, tileM);

    // Rows of A. Those of whole tiles may be read where they are.
    Value a;
    int64_t stride = *p.k * kind.elementBytes();
    if (schedule.getLhsCopy() || !hasDot || (tiles && *p.k % kind.tileSteps() != 0)) {
      const int64_t elementBytes = hasDot ? kind.elementBytes() : kind.wideBytes();
      a = em.scratch();
      stride = rowBytes(p, elementBytes);
      em.loop(em.i64(0), count.get(em), 1, [&](Index row) {
        SmallVector<Index> rowAt = em.delinearize(em.addIndex(m0, row), p.rows);
        Value to = byteOffset(em, a, em.mul(row.base, em.i64(stride)));
        if (p.patches)
          emitPatch(em, *p.patches, kind, at[0], rowAt, to, !hasDot);
        else
          copyRow(p, em, batchAt, rowAt, to);
        // Zeros to the end of the last step of the micro-kernel.
        const int64_t end = roundUp(*p.k, hasDot ? kind.tileSteps() : kind.steps()) * elementBytes;
        for (int64_t from = *p.k * elementBytes, size = 32; size; size /= 2)
          for (; end - from >= size; from += size) {
            Value zeros = arith::ConstantOp::create(b, em.loc(), b.getZeroAttr(VectorType::get({size}, b.getI8Type())));
            LLVM::StoreOp::create(b, em.loc(), zeros, byteOffset(em, to, em.i64(from)), 1);
          }
      });
      em.clearSources();
    } else {
      a = em.input(*inputThroughReshapes(p.lhs));
      a = byteOffset(em, a, em.mul(em.add(em.mul(at[0].base, em.size(p.M)), m0.base), em.i64(stride)));
    }

    // Panels of B.
    const Value first = em.mul(at[1].base, em.i64(tileN / kPanel));
    const Value here = em.min(em.i64(tileN / kPanel), em.sub(em.size(panelsOf(p)), first));
    Value right = em.input(rhsInput >= 0 ? rhsInput : em.region().getNumOperands());
    right = byteOffset(em, right, em.mul(em.add(em.mul(at[0].base, em.size(panelsOf(p))), first), em.i64(bytes)));

    Value configuration = tiles ? em.stackBuffer(b.getI8Type(), 64) : Value();
    auto block = [&](Index panel, int64_t panels) {
      Index n = p.n == 1 ? em.constant(0) : em.addIndex(n0, em.mulIndex(panel, em.i64(kPanel), kPanel));
      Extent columns = p.n && *p.n % kPanel == 0
                           ? Extent(panels * kPanel)
                           : Extent(em.min(em.i64(panels * kPanel), em.sub(em.size(p.N), n.base)));
      Value from = byteOffset(em, right, em.mul(panel.base, em.i64(bytes)));
      auto kernelAt = [&](Value row, int64_t height) {
        return NarrowKernel{
            kind, byteOffset(em, a, em.mul(row, em.i64(stride))), from, tile, height, panels, *p.k, stride, cols};
      };
      auto storeRows = [&](Value row, Extent height) {
        em.loop(em.i64(0), height.get(em), 1, [&](Index i) {
          SmallVector<Index> rowAt = em.delinearize(em.addIndex(m0, em.addIndex(em.uniform(row), i)), p.rows);
          Index start = em.mulIndex(i, em.i64(cols), cols);
          forColumns(em, p.n == 1, n, start, columns, [&](Index column, Index offset) {
            storeEpilogue(em, epilogue, p.place(em, at[0], batchAt, rowAt, column), em.loadAt(tile, sum, offset));
          });
        });
        em.clearSources();
      };
      if (tiles)
        return forTileBlocks(em, count, configuration, [&](Value row, int64_t height, Extent here) {
          NarrowKernel kernel = kernelAt(row, height);
          if (fitsTwice(panels * bytes)) {
            kernel.next = byteOffset(em, from, em.i64(panels * bytes));
            kernel.part = em.divUnsigned(row, em.i64(kTileBlockRows));
            kernel.parts = ceilDiv(std::max<int64_t>(1, std::min(tileM, p.m.value_or(tileM))), kTileBlockRows);
          }
          emitTileKernel(em, kernel);
          storeRows(row, here);
        });
      forRowBlocks(em, count, rows, blockRest(p.m, tileM, rows), [&](Value row, int64_t height) {
        NarrowKernel kernel = kernelAt(row, height);
        kernel.prefetchLines = rhsInput >= 0 && (p.m ? *p.m <= rows : height < rows) ? kPrefetchLines : 0;
        emitNarrowKernel(em, kernel);
        storeRows(row, Extent(height));
      });
    };
    if (group == 1) {
      em.loop(em.i64(0), here, 1, [&](Index panel) { block(panel, 1); });
    } else {
      Value main = em.mul(em.divUnsigned(here, em.i64(group)), em.i64(group));
      em.loop(em.i64(0), main, group, [&](Index panel) { block(panel, group); });
      em.loop(main, here, 1, [&](Index panel) { block(panel, 1); });
    }
    if (tiles)
      emitTileRelease(em);
  }

  /// Calls body(first row, rows of its kernel, rows that count) for blocks of two tiles, and for the rest, with the
  /// tiles configured.
  static void forTileBlocks(Emitter &em, Extent count, Value configuration,
                            llvm::function_ref<void(Value, int64_t, Extent)> body) {
    OpBuilder &b = em.builder();
    Value main = em.mul(em.divUnsigned(count.get(em), em.i64(kTileBlockRows)), em.i64(kTileBlockRows));
    if (!count.constant || *count.constant >= kTileBlockRows) {
      emitTileConfiguration(em, configuration, {});
      em.loop(em.i64(0), main, kTileBlockRows,
              [&](Index row) { body(row.base, kTileBlockRows, Extent(kTileBlockRows)); });
    }
    if (count.constant && *count.constant % kTileBlockRows == 0)
      return;
    Value rest = em.sub(count.get(em), main);
    for (int64_t height : {kTileRows, kTileBlockRows}) {
      const int64_t low = height - kTileRows, known = count.constant.value_or(0) % kTileBlockRows;
      if (count.constant && (known <= low || known > height))
        continue;
      Value fits = arith::AndIOp::create(
          b, em.loc(), arith::CmpIOp::create(b, em.loc(), arith::CmpIPredicate::sgt, rest, em.i64(low)),
          arith::CmpIOp::create(b, em.loc(), arith::CmpIPredicate::sle, rest, em.i64(height)));
      em.ifThen(fits, [&] {
        emitTileConfiguration(em, configuration, rest);
        body(main, height, Extent(rest));
      });
    }
  }

  /// A row of A, widened where there is no instruction for words.
  static void copyRow(const NarrowProduct &p, Emitter &em, ArrayRef<Index> batchAt, ArrayRef<Index> rowAt, Value to) {
    OpBuilder &b = em.builder();
    const bool isWide = !p.kind.hasDot(em.cpu());
    const Type type = isWide ? p.kind.wideType(b) : p.kind.elementType(b);
    em.laneLoop(em.i64(*p.k), *p.k, [&](Index lane) {
      SmallVector<Index> depthAt = em.delinearize(lane, p.depth);
      Value value = em.emit(p.lhs, Product::place<Index>(p.lhsDims, batchAt, rowAt, {}, depthAt, em.constant(0)));
      value = em.broadcast(value);
      em.storeAt(isWide ? p.kind.widen(b, em.loc(), value) : value, to, type, lane);
    });
  }
};

} // namespace

const Generator *tc::codegen::narrowGemmGenerator() {
  static const NarrowGemmGenerator generator;
  return &generator;
}
