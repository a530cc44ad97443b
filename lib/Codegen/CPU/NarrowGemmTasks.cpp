//===- NarrowGemmTasks.cpp - code of products of bytes and of bf16 ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/NarrowGemm.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::narrow_gemm;

static Value byteOffset(Emitter &em, Value pointer, Value bytes) {
  return em.address(pointer, em.builder().getI8Type(), bytes);
}

SmallVector<Index> NarrowProduct::place(Emitter &em, Index group, ArrayRef<Index> batchAt, ArrayRef<Index> rowAt,
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
      Value part = em.broadcast(em.emit(
          p.rhs, Product::place<Index>(p.rhsDims, batchAt, {}, em.delinearize(n, p.columns), {lanes}, em.constant(0))));
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
    Extent columns = p.n && *p.n % kPanel == 0 ? Extent(panels * kPanel)
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
      kernel.prefetchLines = (p.m ? *p.m <= rows : height < rows) ? schedule.getPrefetchLines() : 0;
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

void narrow_gemm::emitPacking(const NarrowProduct &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  em.loop(begin, end, 1, [&](Index task) { packPanel(p, schedule, em, task); });
}

void narrow_gemm::emit(const NarrowProduct &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  em.loop(begin, end, 1, [&](Index task) { emitTask(p, schedule, *p.epilogue, em, task); });
}
