//===- BlockDotTasks.cpp - code of products with weights of few bits ----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/BlockDot.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::block_dot;

namespace {
// Sums that a multiply-add every cycle or two keeps busy.
constexpr int64_t kChains = 8;
// How far ahead weights and scales are fetched, in words and blocks: 2 KiB of each panel. The hardware stops at the end
// of a page (64000 columns out of memory: 9.5 to 14 GB/s, what this machine has).
constexpr int64_t kFetchWords = 32, kFetchBlocks = 8;

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
} // namespace

void block_dot::emit(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  Task task(p, schedule, *p.epilogue, em);
  em.loop(begin, end, 1, [&](Index i) { task.run(i); });
}
