//===- BlockDot.cpp - the "cpu.block_dot" strategy: products with weights of few bits ----------------------------===//
//
// prim.block_dot: result[m, n] = sum over k of lhs[m, k] * (number[n, k] - zero[n, k / block]) * scale[n, k / block].
// The weights are read as they are stored and become floats in registers. When the artifact is made, they are packed in
// panels of 16 columns, [panel][word][16]: a word is 32 bits of a column, 8 numbers of 4 bits, so that one vector load
// brings the same steps of K of all columns; numbers of 8 bits are [panel][word][4 steps][16], for loads that widen
// them. Scales and zeros become [panel][block][16].
//
// Few rows read memory at its speed: a word's numbers are shifted down, looked up in a table of 16 floats (AVX-512:
// vpermps, which sees the low 4 bits of a lane only), and multiplied with the broadcast elements of A. The sum of a
// block is scaled once: scale * (sum of a * (q - centre) - (zero - centre) * sum of a). The sums of A over blocks are
// made once a task, and not at all where numbers are off by nothing. Where one is not finite, rows go the way of many
// rows.
//
// More rows than `rows`: the task makes f32 panels of some depth in its scratch, once for all its rows, and the
// micro-kernel of f32 (MicroKernel.h) adds their product to a tile of the result.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/BlockDot.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Fuse.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::block_dot;

namespace {

// Rows of a task that share panels in f32: making these takes 3 % of the product then.
constexpr int64_t kTaskRows = 112;
// Steps of K of a panel in f32: 64 columns of them stay in the second-level cache.
constexpr int64_t kDepth = 512;
// Columns of a task: enough to make its sums of A and its copy of rows cheap.
constexpr int64_t kTaskColumns = 128;
constexpr double kGrainFlops = 1e6;
/// Most accumulators of the kernel for few rows; the rest holds decoded weights, the table and the words.
int64_t accumulators(const VectorUnit &unit) { return unit.registers == 32 ? 16 : 4; }

std::optional<Problem> analyzeBlockDot(Operation *anchor) {
  auto op = dyn_cast_or_null<prim::BlockDotOp>(anchor);
  if (!op || !isF32(op.getLhs()) || !isF32(op.getResult()))
    return std::nullopt;
  auto lhs = prim::getSizes(op.getLhs());
  auto k = prim::getConstantSize(lhs.back()), n = prim::getConstantSize(prim::getSizes(op.getPacked())[0]);
  if (!k || !n || *k == 0 || *n == 0)
    return std::nullopt;
  Problem p;
  p.op = op;
  p.M = prim::product(op.getContext(), ArrayRef(lhs).drop_back());
  p.m = prim::getConstantSize(p.M);
  p.n = *n;
  p.k = *k;
  p.bits = op.getBits();
  p.block = op.getBlock();
  p.blocks = ceilDiv(*k, p.block);
  p.scaleNumber = getSplatValue(prim::skipReshapes(op.getScales()));
  if (Value zeros = op.getZeros()) {
    const bool isPacked = cast<RankedTensorType>(zeros.getType()).getElementType().isInteger();
    p.zeroNumber = getSplatValue(prim::skipReshapes(zeros));
    if (isPacked && p.zeroNumber) {
      // The numbers of such a byte, where they are equal.
      const auto byte = uint64_t(*p.zeroNumber), number = byte & ((uint64_t(1) << p.bits) - 1);
      if (byte != number * (255 / ((uint64_t(1) << p.bits) - 1)))
        return std::nullopt;
      p.zeroNumber = double(number);
    }
    p.packedZeros = isPacked && !p.zeroNumber;
    p.floatZeros = !isPacked && !p.zeroNumber;
  }
  return p;
}

std::optional<Problem> analyzeBlockDot(const RegionProblem &region) {
  std::optional<Problem> p = analyzeBlockDot(region.findAnchor());
  if (p)
    p->epilogue = region.findWholeEpilogue(p->op.getResult());
  return p && p->epilogue ? p : std::nullopt;
}

/// How a table [N, i * bytes] is packed.
enum class Packing {
  Words, // [panel][i][16 columns][bytes]; without the last dim if bytes is 1
  Steps, // [panel][i][bytes][16 columns]
};

std::optional<PackedInput> packedTable(const Problem &p, Value table, int64_t count, int64_t bytes, Packing packing,
                                       llvm::function_ref<bool(unsigned)> isConstant) {
  MLIRContext *context = table.getContext();
  const unsigned columnDim = packing == Packing::Steps ? 3 : 2, byteDim = 5 - columnDim;
  AffineExpr row = getAffineDimExpr(0, context) * kPanel + getAffineDimExpr(columnDim, context),
             i = getAffineDimExpr(1, context);
  SmallVector<int64_t> shape{p.panels(), count, kPanel};
  if (bytes > 1) {
    i = i * bytes + getAffineDimExpr(byteDim, context);
    shape.insert(shape.begin() + byteDim, bytes);
  }
  std::optional<ConstantView> view = traceConstant(table, isConstant, {row, i});
  if (!view)
    return std::nullopt;
  return PackedInput{view->input, AffineMap::get(shape.size(), 0, view->at, context),
                     RankedTensorType::get(shape, cast<RankedTensorType>(table.getType()).getElementType())};
}

/// Weights, scales and zeros, where there are tables of them; nullopt if one is no constant.
using PackedInputs = SmallVector<std::pair<int64_t Schedule::Params::*, PackedInput>, 3>;
std::optional<PackedInputs> packedInputs(const Problem &p, llvm::function_ref<bool(unsigned)> isConstant) {
  prim::BlockDotOp op = p.op;
  PackedInputs inputs;
  auto add = [&](int64_t Schedule::Params::*number, Value table, int64_t count, int64_t bytes,
                 Packing packing = Packing::Words) {
    std::optional<PackedInput> packed = packedTable(p, table, count, bytes, packing, isConstant);
    if (packed)
      inputs.push_back({number, *packed});
    return packed.has_value();
  };
  if (!add(&Schedule::Params::weights, op.getPacked(), p.words(), 4, p.hasBytes() ? Packing::Steps : Packing::Words) ||
      (!p.scaleNumber && !add(&Schedule::Params::scales, op.getScales(), p.blocks, 1)) ||
      (p.hasZeros() && !add(&Schedule::Params::zeros, op.getZeros(), p.packedZeros ? p.zeroBytes() : p.blocks, 1)))
    return std::nullopt;
  return inputs;
}

class BlockDotGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  /// Weights that are constants of their own: packing needs the whole matrix.
  bool takesWhole(Operation *composite) const override {
    if (!analyzeBlockDot(composite))
      return false;
    return llvm::all_of(llvm::enumerate(composite->getOperands().drop_front()), [](auto table) {
      const Value made = prim::skipReshapes(table.value());
      Operation *op = made.getDefiningOp();
      if (table.index() > 0 && getSplatValue(made))
        return true;
      return isa_and_nonnull<prim::ConstantOp>(op) && !fuse::isSmallConstant(op);
    });
  }

  std::optional<Problem> analyze(const RegionProblem &region) const override { return analyzeBlockDot(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    std::optional<PackedInputs> packed = packedInputs(p, region.constants());
    if (!packed)
      return failure();
    Schedule::Params params;
    params.lhsCopy = !inputThroughReshapes(p.op.getLhs());
    for (const auto &[table, input] : *packed)
      params.*table = input.input;
    const int64_t m = std::max<int64_t>(1, getLikelySize(p.M, p.op, /*usual=*/kTaskRows));
    int64_t mostRows = 1;
    Tile wide;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      // Beyond these rows the multiply-adds of the f32 micro-kernel make up for writing the panels.
      int64_t rows = std::min<int64_t>(m, unit.bits == 512 ? 8 : 4);
      mostRows = std::max(mostRows, rows);
      int64_t panels = std::clamp<int64_t>(accumulators(unit) / (rows * kPanel / unit.width()), 1, 4);
      params.rowsFor(unit.bits) = rows;
      // Groups of columns end where tasks do.
      params.colsFor(unit.bits) = int64_t(llvm::bit_floor(uint64_t(std::min(panels, p.panels())))) * kPanel;
      const Tile tile = chooseTile(unit, p.m, p.panels(), unit.bits == 512 ? 14 : 6, /*isStreamed=*/false,
                                   /*within=*/8);
      params.panelRowsFor(unit.bits) = tile.rows;
      params.panelColsFor(unit.bits) = tile.panels * kPanel;
      if (unit.bits == 512)
        wide = tile;
    }
    int64_t tileM = std::max<int64_t>(1, kTaskRows / wide.rows) * wide.rows;
    if (p.m) // blocks of equal size
      tileM = std::min(tileM, m <= mostRows ? m : roundUp(ceilDiv(m, ceilDiv(m, tileM)), wide.rows));
    const int64_t tileN = kTaskColumns;
    params.tileM = tileM;
    params.tileN = tileN;
    params.depth = std::max(kDepth, p.block);
    const double flops = 2.0 * double(p.k) * double(std::min(tileN, p.n)) * double(std::min(tileM, m));
    params.grain = grainFor(kGrainFlops, flops);
    return params.get(region.getContext());
  }

  SmallVector<PackedInput> packInputs(const Problem &p, Schedule schedule) const override {
    auto isPacked = [&](unsigned i) {
      return llvm::is_contained({schedule.getWeights(), schedule.getScales(), schedule.getZeros()}, int64_t(i));
    };
    return llvm::map_to_vector(*packedInputs(p, isPacked), [](const auto &entry) { return entry.second; });
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::product(context, grid(p, schedule));
    int64_t floats = 0;
    for (const VectorUnit &unit : machine::kVectorUnits)
      floats = std::max(floats, Layout(p, schedule, unit).end);
    if (floats)
      launch.scratch = scratchBytes(context, floats * 4 + 64);
    launch.inPlace = p.epilogue->inPlace();
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    block_dot::emit(p, schedule, em, begin, end);
  }
};

} // namespace

SmallVector<AffineExpr> block_dot::grid(const Problem &p, Schedule schedule) {
  return {getAffineConstantExpr(ceilDiv(p.n, schedule.getTileN()), p.M.getContext()),
          prim::simplifySize(p.M.ceilDiv(schedule.getTileM()))};
}

const Generator *tc::codegen::blockDotGenerator() {
  static const BlockDotGenerator generator;
  return &generator;
}
