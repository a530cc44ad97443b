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

#include "CPU/MicroKernel.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Fuse.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuBlockDotAttr;

// Rows of a task that share panels in f32: making these takes 3 % of the product then.
constexpr int64_t kTaskRows = 112;
// Steps of K of a panel in f32: 64 columns of them stay in the second-level cache.
constexpr int64_t kDepth = 512;
// Columns of a task: enough to make its sums of A and its copy of rows cheap.
constexpr int64_t kTaskColumns = 128;
constexpr double kGrainFlops = 1e6;
// Sums that a multiply-add every cycle or two keeps busy.
constexpr int64_t kChains = 8;
// How far ahead weights and scales are fetched, in words and blocks: 2 KiB of each panel. The hardware stops at the end
// of a page (64000 columns out of memory: 9.5 to 14 GB/s, what this machine has).
constexpr int64_t kFetchWords = 32, kFetchBlocks = 8;

/// Most accumulators of the kernel for few rows; the rest holds decoded weights, the table and the words.
int64_t accumulators(const VectorUnit &unit) { return unit.registers == 32 ? 16 : 4; }

struct Problem {
  mutable prim::BlockDotOp op; // accessors of ops are not const
  /// Null for an op outside of a region.
  const Epilogue *epilogue = nullptr;
  AffineExpr M;
  std::optional<int64_t> m;
  int64_t n, k, bits, block, blocks;
  bool packedZeros = false, floatZeros = false;
  /// The number that all scales, or all zeros in f32, are.
  std::optional<double> scaleNumber, zeroNumber;

  int64_t panels() const { return ceilDiv(n, kPanel); }
  int64_t blockWords() const { return block * bits / 32; }
  int64_t words() const { return blocks * blockWords(); }
  int64_t wordSteps() const { return 32 / bits; }
  /// A number is a byte, and the numbers of a step lie side by side.
  bool hasBytes() const { return bits == 8; }
  int64_t zeroBytes() const { return ceilDiv(blocks * bits, 8); }
  double centre() const { return double(op.getCentre()); }
  /// Rows end within a block: the task copies them and fills the block with zeros.
  bool isPadded() const { return k % block != 0; }
  int64_t rowFloats() const { return isPadded() ? blocks * block : k; }
  /// Numbers come out of a table less the centre.
  bool hasTable(const VectorUnit &unit) const { return unit.bits == 512 && bits <= 4; }
  bool hasZeros() const { return packedZeros || floatZeros; }
  /// What the numbers are off by everywhere, as they are decoded; nullopt: a table tells.
  std::optional<double> offset(const VectorUnit &unit) const {
    if (hasZeros())
      return std::nullopt;
    return zeroNumber.value_or(centre()) - (hasTable(unit) ? centre() : 0);
  }
  bool needsSums(const VectorUnit &unit) const { return offset(unit) != 0.0; }
};

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

//===--- one task -------------------------------------------------------------------------------------------------===//

class Task {
public:
  Task(const Problem &p, Schedule schedule, const Epilogue &epilogue, Emitter &em)
      : p(p), schedule(schedule), epilogue(epilogue), em(em), b(em.builder()), loc(em.loc()), f32(b.getF32Type()),
        vector(em.vectorOf(f32)), words(em.vectorOf(b.getI32Type())), perPanel(kPanel / em.width()),
        tileM(schedule.getTileM()), tileN(schedule.getTileN()), rows(schedule.rowsFor(em.vectors().bits)),
        lhsCopy(schedule.getLhsCopy()), layout(p, schedule, em.vectors()) {
    cols = schedule.colsFor(em.vectors().bits);
    tile = em.stackBuffer(f32, rows * cols);
  }

  static SmallVector<AffineExpr> grid(const Problem &p, Schedule schedule) {
    return {getAffineConstantExpr(ceilDiv(p.n, schedule.getTileN()), p.M.getContext()),
            prim::simplifySize(p.M.ceilDiv(schedule.getTileM()))};
  }

  /// Offsets in floats of the parts of a worker's scratch.
  struct Layout {
    int64_t copy, sums, panels, result, end;
    Layout(const Problem &p, Schedule schedule, const VectorUnit &unit) {
      int64_t rows = schedule.rowsFor(unit.bits), tileM = schedule.getTileM(),
              columns = schedule.panelColsFor(unit.bits);
      int64_t copied = schedule.getLhsCopy() ? tileM : p.isPadded() ? rows : 0;
      copy = 0;
      sums = copy + copied * roundUp(p.rowFloats(), kPanel);
      panels = sums + (p.needsSums(unit) ? roundUp(rows * p.blocks, kPanel) : 0);
      bool many = tileM > rows || p.needsSums(unit);
      result = panels + (many ? columns * schedule.getDepth() : 0);
      end = result + (many ? tileM * columns : 0);
    }
  };

  void run(Index number) {
    SmallVector<Index> at = em.delinearize(number, grid(p, schedule));
    n0 = em.mulIndex(at[0], em.i64(tileN), tileN);
    m0 = em.mulIndex(at[1], em.i64(tileM), tileM);
    count = blockExtent(em, p.M, m0.base, tileM);
    if (lhsCopy) {
      copyRows();
    } else {
      stride = p.k;
      a = offsetBy(em, em.input(*inputThroughReshapes(p.op.getLhs())), em.mul(m0.base, em.i64(p.k)));
    }
    if (count.constant) {
      *count.constant <= rows ? few() : many();
    } else if (tileM <= rows) {
      few();
    } else {
      auto isFew = [&](arith::CmpIPredicate predicate) {
        return arith::CmpIOp::create(b, loc, predicate, count.value, em.i64(rows));
      };
      Value yes = isFew(arith::CmpIPredicate::sle), no = isFew(arith::CmpIPredicate::sgt);
      em.ifThen(yes, [&] { few(); });
      em.ifThen(no, [&] { many(); });
    }
  }

private:
  //===--- weights ------------------------------------------------------------------------------------------------===//

  Value splat(double value) {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, b.getF32FloatAttr(float(value))));
  }
  Value splatWord(int64_t value) {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words, b.getI32IntegerAttr(int32_t(value))));
  }
  Value loadVector(Value address, VectorType type, int64_t alignment) {
    return LLVM::LoadOp::create(b, loc, type, address, alignment);
  }

  /// Vector `part` of entry `i` of a table [panel][count][16] of elements of `type`.
  Value loadEntry(Value table, Type type, int64_t count, Value panel, Value i, int64_t part) {
    Value entry = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, panel, em.i64(count)), i);
    Value offset = arith::MulIOp::create(b, loc, entry, em.i64(kPanel));
    if (part)
      offset = arith::AddIOp::create(b, loc, offset, em.i64(part * em.width()));
    return loadVector(em.address(table, type, offset), em.vectorOf(type), type.getIntOrFloatBitWidth() / 8);
  }

  /// Fetches entry i + `distance` of such a table.
  void fetch(Value table, Type type, int64_t count, Value panel, Value i, int64_t distance) {
    Value entry = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, panel, em.i64(count)), i);
    Value offset = arith::MulIOp::create(b, loc, entry, em.i64(kPanel));
    offset = arith::AddIOp::create(b, loc, offset, em.i64(distance * kPanel));
    em.prefetch(em.address(table, type, offset), /*toFirstLevel=*/true);
  }

  Value scale(Value panel, Value of, int64_t part) {
    if (p.scaleNumber)
      return splat(*p.scaleNumber);
    Type type = cast<RankedTensorType>(p.op.getScales().getType()).getElementType();
    return toF32(loadEntry(em.input(schedule.getScales()), type, p.blocks, panel, of, part));
  }

  /// What the numbers, as `decode` gives them, are off by; null: nothing.
  Value zero(Value panel, Value of, int64_t part) {
    if (std::optional<double> offset = p.offset(em.vectors()))
      return *offset == 0 ? Value() : splat(*offset);
    const double centre = p.hasTable(em.vectors()) ? p.centre() : 0;
    Value table = em.input(schedule.getZeros());
    Value value;
    if (p.floatZeros) {
      Type type = cast<RankedTensorType>(p.op.getZeros().getType()).getElementType();
      value = toF32(loadEntry(table, type, p.blocks, panel, of, part));
    } else {
      const int64_t each = 8 / p.bits;
      Value byte = arith::DivUIOp::create(b, loc, of, em.i64(each));
      Value lanes = loadEntry(table, b.getI8Type(), p.zeroBytes(), panel, byte, part);
      lanes = arith::ExtUIOp::create(b, loc, words, lanes);
      if (each > 1) {
        Value shift = arith::MulIOp::create(b, loc, arith::RemUIOp::create(b, loc, of, em.i64(each)), em.i64(p.bits));
        shift = em.broadcast(arith::TruncIOp::create(b, loc, b.getI32Type(), shift));
        lanes =
            arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, lanes, shift), splatWord((1 << p.bits) - 1));
      }
      value = arith::SIToFPOp::create(b, loc, vector, lanes);
    }
    return centre == 0 ? value : Value(arith::SubFOp::create(b, loc, value, splat(centre)));
  }

  Value toF32(Value value) {
    return value.getType() == vector ? value : Value(arith::ExtFOp::create(b, loc, vector, value));
  }

  /// Vector `part` of word `number` of the columns of a panel; null where each step is loaded on its own.
  Value word(Value panel, Value number, int64_t part) {
    if (p.hasBytes())
      return {};
    return loadEntry(em.input(schedule.getWeights()), b.getI32Type(), p.words(), panel, number, part);
  }

  /// The number of step `step` of a word, whose vector `lanes` is, as floats: less the centre from a table, else as it
  /// is.
  Value decode(Value lanes, Value panel, Value number, int64_t part, int64_t step) {
    if (p.hasBytes()) {
      Value at = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, number, em.i64(4)), em.i64(step));
      Value bytes = loadEntry(em.input(schedule.getWeights()), b.getI8Type(), p.words() * 4, panel, at, part);
      Value numbers = p.op.isSigned() ? arith::ExtSIOp::create(b, loc, words, bytes).getResult()
                                      : arith::ExtUIOp::create(b, loc, words, bytes).getResult();
      return arith::SIToFPOp::create(b, loc, vector, numbers);
    }
    if (step)
      lanes = arith::ShRUIOp::create(b, loc, lanes, splatWord(step * p.bits));
    if (p.hasTable(em.vectors())) {
      SmallVector<float> values;
      for (int64_t i = 0; i < 16; ++i)
        values.push_back(float(i % (1 << p.bits)) - float(p.centre()));
      Value table = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, ArrayRef<float>(values)));
      return em.permute(table, lanes);
    }
    if (step + 1 < p.wordSteps())
      lanes = arith::AndIOp::create(b, loc, lanes, splatWord((1 << p.bits) - 1));
    return arith::SIToFPOp::create(b, loc, vector, lanes);
  }

  //===--- few rows -----------------------------------------------------------------------------------------------===//

  void few() {
    const Value from = a;
    const int64_t fromStride = stride;
    if (p.isPadded() && !lhsCopy)
      copyRows();
    if (p.needsSums(em.vectors())) {
      // What is no number, less itself, is no number: such rows go through the weights written out.
      Value finite = sumBlocks();
      Value on = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
      Value other = arith::XOrIOp::create(b, loc, finite, on);
      em.ifThen(finite, [&] { fewRows(); });
      em.ifThen(other, [&] { many(); });
    } else {
      fewRows();
    }
    a = from;
    stride = fromStride;
  }

  /// Copies the rows of the task to the scratch, the last block filled up with zeros.
  void copyRows() {
    Value lhs = p.op.getLhs();
    auto sizes = prim::getSizes(lhs);
    a = em.scratch(layout.copy * 4);
    stride = roundUp(p.rowFloats(), kPanel);
    em.loop(em.i64(0), count.get(em), 1, [&](Index row) {
      SmallVector<Index> rowAt = em.delinearize(em.addIndex(m0, row), ArrayRef(sizes).drop_back());
      Value target = offsetBy(em, a, em.mul(row.base, em.i64(stride)));
      em.loop(em.i64(p.k / em.width() * em.width()), em.i64(p.rowFloats()), em.width(),
              [&](Index i) { LLVM::StoreOp::create(b, loc, splat(0), offsetBy(em, target, i.base), 4); });
      em.laneLoop(em.i64(p.k), p.k, [&](Index lane) {
        SmallVector<Index> at = rowAt;
        at.push_back(lane);
        em.storeAt(em.emit(lhs, at), target, f32, lane);
      });
    });
  }

  /// Writes the sums of A over blocks, [row][block]; whether all are finite (i1).
  Value sumBlocks() {
    const Value sums = em.scratch(layout.sums * 4);
    Value yes = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
    return em.loop(em.i64(0), count.get(em), 1, ValueRange{yes}, [&](Index row, ValueRange outer) {
      Value source = offsetBy(em, a, em.mul(row.base, em.i64(stride)));
      return em.loop(em.i64(0), em.i64(p.blocks), 1, outer, [&](Index of, ValueRange carried) {
        Value start = offsetBy(em, source, em.mul(of.base, em.i64(p.block)));
        auto addUp = [&](Value sum, int64_t from, int64_t to) {
          for (int64_t i = from; i < to; i += em.width())
            sum = arith::AddFOp::create(b, loc, sum, loadVector(offsetBy(em, start, i), vector, 4));
          return sum;
        };
        constexpr int64_t kMostUnrolled = 256;
        Value sum = addUp(splat(0), 0, std::min(p.block, kMostUnrolled));
        if (p.block > kMostUnrolled)
          sum = em.loop(em.i64(kMostUnrolled), em.i64(p.block), em.width(), ValueRange{sum},
                        [&](Index i, ValueRange inner) {
                          Value next = loadVector(offsetBy(em, start, i.base), vector, 4);
                          return SmallVector<Value>{arith::AddFOp::create(b, loc, inner[0], next)};
                        })[0];
        Value total = em.reduceLanes(prim::ReduceKind::Sum, f32, sum);
        Value at = em.add(em.mul(row.base, em.i64(p.blocks)), of.base);
        LLVM::StoreOp::create(b, loc, total, offsetBy(em, sums, at), 4);
        Value rest = arith::SubFOp::create(b, loc, total, total);
        Value isFinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, rest, rest);
        return SmallVector<Value>{arith::AndIOp::create(b, loc, carried[0], isFinite)};
      });
    })[0];
  }

  void fewRows() {
    forPanels(cols / kPanel, [&](Value panel, int64_t panels, Index column, Extent columns) {
      forRowBlocks(em, count, rows, blockRest(p.m, tileM, rows), [&](Value row, int64_t height) {
        fewKernel(panel, panels, row, height);
        store(tile, cols, em.addIndex(m0, em.uniform(row)), Extent(height), column, columns);
      });
    });
  }

  /// tile[height][panels * 16] = the rows from `row` on times the panels from `panel` on.
  void fewKernel(Value panel, int64_t panels, Value row, int64_t height) {
    const int64_t vectors = panels * perPanel, sums = height * vectors;
    const int64_t ways = std::min<int64_t>(std::max<int64_t>(1, kChains / sums), p.wordSteps());
    Value aHere = offsetBy(em, a, em.mul(row, em.i64(stride)));
    auto tileAt = [&](int64_t i, int64_t j) { return offsetBy(em, tile, i * cols + j * em.width()); };
    SmallVector<Value> panelNumbers;
    for (int64_t q = 0; q < panels; ++q)
      panelNumbers.push_back(em.add(panel, em.i64(q)));
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < vectors; ++j)
        LLVM::StoreOp::create(b, loc, splat(0), tileAt(i, j), 4);
    em.loop(em.i64(0), em.i64(p.blocks), 1, [&](Index of) {
      // All products of a word; [way][row][vector].
      auto oneWord = [&](Value inBlock, SmallVector<Value> acc) {
        Value number =
            arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, of.base, em.i64(p.blockWords())), inBlock);
        Value aWord = offsetBy(em, aHere, Value(arith::MulIOp::create(b, loc, number, em.i64(p.wordSteps()))));
        SmallVector<Value> loaded;
        for (Value here : panelNumbers)
          fetch(em.input(schedule.getWeights()), b.getI32Type(), p.words(), here, number, kFetchWords);
        for (int64_t j = 0; j < vectors; ++j)
          loaded.push_back(word(panelNumbers[j / perPanel], number, j % perPanel));
        for (int64_t step = 0; step < p.wordSteps(); ++step) {
          SmallVector<Value> decoded;
          for (int64_t j = 0; j < vectors; ++j)
            decoded.push_back(decode(loaded[j], panelNumbers[j / perPanel], number, j % perPanel, step));
          for (int64_t i = 0; i < height; ++i) {
            Value x = LLVM::LoadOp::create(b, loc, f32, offsetBy(em, aWord, i * stride + step), 4);
            Value lanes = vector::BroadcastOp::create(b, loc, vector, x);
            for (int64_t j = 0; j < vectors; ++j) {
              Value &sum = acc[step % ways * sums + i * vectors + j];
              sum = vector::FMAOp::create(b, loc, lanes, decoded[j], sum);
            }
          }
        }
        return acc;
      };
      SmallVector<Value> acc(ways * sums, splat(0));
      constexpr int64_t kMostUnrolled = 4;
      if (p.blockWords() <= kMostUnrolled)
        for (int64_t i = 0; i < p.blockWords(); ++i)
          acc = oneWord(em.i64(i), acc);
      else
        acc = em.loop(em.i64(0), em.i64(p.blockWords()), 1, acc,
                      [&](Index i, ValueRange carried) { return oneWord(i.base, SmallVector<Value>(carried)); });
      if (!p.scaleNumber) {
        prim::BlockDotOp op = p.op;
        Type scaleType = cast<RankedTensorType>(op.getScales().getType()).getElementType();
        for (Value here : panelNumbers)
          fetch(em.input(schedule.getScales()), scaleType, p.blocks, here, of.base, kFetchBlocks);
      }
      for (int64_t j = 0; j < vectors; ++j) {
        Value here = panelNumbers[j / perPanel];
        Value factor = scale(here, of.base, j % perPanel), offset = zero(here, of.base, j % perPanel);
        for (int64_t i = 0; i < height; ++i) {
          Value sum = acc[i * vectors + j];
          for (int64_t way = 1; way < ways; ++way)
            sum = arith::AddFOp::create(b, loc, sum, acc[way * sums + i * vectors + j]);
          if (offset) {
            Value at = em.add(em.mul(em.add(row, em.i64(i)), em.i64(p.blocks)), of.base);
            Value x = LLVM::LoadOp::create(b, loc, f32, offsetBy(em, em.scratch(layout.sums * 4), at), 4);
            Value minus = arith::NegFOp::create(b, loc, offset);
            sum = vector::FMAOp::create(b, loc, vector::BroadcastOp::create(b, loc, vector, x), minus, sum);
          }
          Value total = loadVector(tileAt(i, j), vector, 4);
          LLVM::StoreOp::create(b, loc, vector::FMAOp::create(b, loc, factor, sum, total), tileAt(i, j), 4);
        }
      }
    });
  }

  //===--- many rows ----------------------------------------------------------------------------------------------===//

  void many() {
    const int64_t height = schedule.panelRowsFor(em.vectors().bits);
    const int64_t columnsAtOnce = schedule.panelColsFor(em.vectors().bits);
    const int64_t depth = schedule.getDepth();
    const Value f32Panels = em.scratch(layout.panels * 4), result = em.scratch(layout.result * 4);
    forPanels(columnsAtOnce / kPanel, [&](Value panel, int64_t panels, Index column, Extent columns) {
      // Steps [k0, k0 + steps) of K.
      auto chunk = [&](Value k0, int64_t steps, bool accumulate) {
        em.loop(em.i64(0), em.i64(panels), 1, [&](Index q) {
          decodePanel(em.add(panel, q.base), k0, ceilDiv(steps, p.block),
                      offsetBy(em, f32Panels, em.mul(q.base, em.i64(depth * kPanel))));
        });
        forRowBlocks(em, count, height, blockRest(p.m, tileM, height), [&](Value row, int64_t blockRows) {
          MicroKernel kernel;
          kernel.a = offsetBy(em, a, em.add(em.mul(row, em.i64(stride)), k0));
          kernel.rowOffsets = uniformRows(blockRows, stride);
          kernel.depth = Extent(steps);
          kernel.b = f32Panels;
          kernel.panels = panels;
          kernel.panelStride = Extent(depth * kPanel);
          kernel.c = offsetBy(em, result, em.mul(row, em.i64(columnsAtOnce)));
          kernel.cOffsets = uniformRows(blockRows, columnsAtOnce);
          kernel.accumulate = accumulate;
          emitMicroKernel(em, kernel);
        });
      };
      const int64_t first = std::min(p.k, depth), full = p.k / depth * depth;
      chunk(em.i64(0), first, /*accumulate=*/false);
      if (full > depth)
        em.loop(em.i64(depth), em.i64(full), depth, [&](Index k0) { chunk(k0.base, depth, true); });
      if (full && full < p.k)
        chunk(em.i64(full), p.k - full, true);
      store(result, columnsAtOnce, m0, count, column, columns);
    });
  }

  /// Writes the weights of `blocks` blocks of a panel in f32, from step k0 on: [k][16].
  void decodePanel(Value panel, Value k0, int64_t blocks, Value to) {
    Value first = em.divUnsigned(k0, em.i64(p.block));
    em.loop(em.i64(0), em.i64(blocks), 1, [&](Index i) {
      Value of = em.add(first, i.base);
      SmallVector<Value> factors, offsets;
      for (int64_t part = 0; part < perPanel; ++part) {
        factors.push_back(scale(panel, of, part));
        offsets.push_back(zero(panel, of, part));
      }
      // Steps of words at once: 16 hide what a turn of the loop costs, and every block has as many.
      const int64_t unrolled = std::min(p.blockWords(), 16 / p.wordSteps());
      em.loop(em.i64(0), em.i64(p.blockWords()), unrolled, [&](Index inBlock) {
        Value number = em.add(em.mul(of, em.i64(p.blockWords())), inBlock.base);
        Value step0 = em.add(em.mul(i.base, em.i64(p.block)), em.mul(inBlock.base, em.i64(p.wordSteps())));
        Value toHere = offsetBy(em, to, em.mul(step0, em.i64(kPanel)));
        for (int64_t w = 0; w < unrolled; ++w)
          for (int64_t part = 0; part < perPanel; ++part) {
            Value here = em.add(number, em.i64(w));
            Value lanes = word(panel, here, part);
            for (int64_t step = 0; step < p.wordSteps(); ++step) {
              Value q = decode(lanes, panel, here, part, step);
              if (offsets[part])
                q = arith::SubFOp::create(b, loc, q, offsets[part]);
              Value weight = arith::MulFOp::create(b, loc, q, factors[part]);
              const int64_t at = (w * p.wordSteps() + step) * kPanel + part * em.width();
              LLVM::StoreOp::create(b, loc, weight, offsetBy(em, toHere, at), 4);
            }
          }
      });
    });
  }

  //===--- both ---------------------------------------------------------------------------------------------------===//

  /// body(first panel, panels, first column, columns) for groups of panels of the task; the last panels of the matrix
  /// make a smaller group.
  void forPanels(int64_t group, llvm::function_ref<void(Value, int64_t, Index, Extent)> body) {
    const int64_t all = p.panels(), rest = all % group;
    Value first = em.divUnsigned(n0.base, em.i64(kPanel));
    Value here = em.min(em.i64(tileN / kPanel), em.sub(em.i64(all), first));
    auto call = [&](Index panel, int64_t panels, bool last) {
      Index column = p.n == 1 ? em.constant(0) : em.addIndex(n0, em.mulIndex(panel, em.i64(kPanel), kPanel));
      Extent columns;
      if (last)
        columns = Extent(p.n - all / group * group * kPanel);
      else if (rest || p.n % kPanel == 0)
        columns = Extent(panels * kPanel);
      else
        columns = Extent(em.min(em.i64(panels * kPanel), em.sub(em.i64(p.n), column.base)));
      body(em.add(first, panel.base), panels, column, columns);
      em.clearSources();
    };
    Value main = rest ? em.mul(em.divUnsigned(here, em.i64(group)), em.i64(group)) : here;
    if (all >= group)
      em.loop(em.i64(0), main, group, [&](Index panel) { call(panel, group, false); });
    if (rest)
      em.loop(main, here, group, [&](Index panel) { call(panel, rest, true); }, group);
  }

  /// The epilogue for `height` rows of a tile in memory.
  void store(Value from, int64_t stride, Index row0, Extent height, Index column, Extent columns) {
    auto lhs = prim::getSizes(p.op.getLhs());
    em.loop(em.i64(0), height.get(em), 1, [&](Index row) {
      SmallVector<Index> rowAt = em.delinearize(em.addIndex(row0, row), ArrayRef(lhs).drop_back());
      Index start = em.mulIndex(row, em.i64(stride), stride);
      forColumns(em, p.n == 1, column, start, columns, [&](Index n, Index offset) {
        SmallVector<Index> at = rowAt;
        at.push_back(n);
        storeEpilogue(em, epilogue, at, em.loadAt(from, f32, offset));
      });
    });
    em.clearSources();
  }

  const Problem &p;
  Schedule schedule;
  const Epilogue &epilogue;
  Emitter &em;
  OpBuilder &b;
  Location loc;
  Type f32;
  VectorType vector, words;
  int64_t perPanel, tileM, tileN, rows, cols, stride = 0; // stride: floats between rows of `a`
  bool lhsCopy;
  Layout layout;
  Value tile, a;
  Index n0, m0;
  Extent count;
};

//===--- the generator --------------------------------------------------------------------------------------------===//

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
    params.grain = std::max<int64_t>(1, int64_t(kGrainFlops / flops));
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
    launch.tasks = prim::product(context, Task::grid(p, schedule));
    launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
    int64_t floats = 0;
    for (const VectorUnit &unit : machine::kVectorUnits)
      floats = std::max(floats, Task::Layout(p, schedule, unit).end);
    if (floats)
      launch.scratch = getAffineConstantExpr(roundUp(floats * 4, 64) + 64, context);
    launch.inPlace = p.epilogue->inPlace();
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    Task task(p, schedule, *p.epilogue, em);
    em.loop(begin, end, 1, [&](Index i) { task.run(i); });
  }
};

} // namespace

const Generator *tc::codegen::blockDotGenerator() {
  static const BlockDotGenerator generator;
  return &generator;
}
