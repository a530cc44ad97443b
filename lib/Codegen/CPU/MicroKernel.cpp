//===- MicroKernel.cpp - the innermost loops of matrix products ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/MicroKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// K is unrolled so often at most: enough to hide the loop's own instructions in small kernels.
constexpr int64_t kMostUnroll = 4;

class Assembler {
public:
  Assembler(Emitter &em, const MicroKernel &kernel) : em(em), k(kernel), b(em.builder()), loc(em.loc()) {
    element = k.element ? k.element : b.getF32Type();
    right = k.bType ? k.bType : element;
    vector = em.vectorOf(element);
    vectorsPerPanel = kPanel / em.width();
    columns = k.panels * vectorsPerPanel;
    // LLVM groups the loads of all unrolled steps, and spills those that do not fit beside the accumulators: they are
    // made to keep their order. Those of a single row are part of the multiply-adds.
    isOrdered = k.rows() > 1;
    const int64_t registers = unitFor(em.vectors(), element).registers, limit = registers == 32 ? 31 : registers;
    const int64_t steps = (limit - 1 - k.rows() * columns) / columns;
    unroll = steps >= kMostUnroll || steps == 1 ? kMostUnroll : steps >= 2 ? 2 : 1;
    // A step of K has one line of 64 bytes of f32 for each panel, two of f64; panels are contiguous.
    stepsPerLine = std::max<int64_t>(1, 32 / right.getIntOrFloatBitWidth());
    linesPerStep = std::max<int64_t>(1, right.getIntOrFloatBitWidth() / 32);
    fetchedLines = k.prefetch ? ceilDiv(unroll * k.panels * linesPerStep, k.prefetchParts * stepsPerLine) : 0;
  }

  void run() {
    if (k.freesRegisters)
      freeVectorRegisters();
    if (fetchedLines) {
      int64_t depth = *k.depth.constant;
      for (const MicroKernel::Tap &tap : k.taps)
        depth *= tap.count;
      fetchFrom = offsetBy(em, k.prefetch, mul(k.prefetchPart, depth / unroll * fetchedLines * kPanel));
    }
    choosePartialSums();
    if (partialLevel && !k.accumulate)
      store(zeros(), /*adds=*/false);
    SmallVector<Value> sums = tap(0, k.a, k.b, fetchedLines ? k.prefetchFirst : Value(), zeros());
    if (!partialLevel)
      store(sums, k.accumulate);
    if (k.freesRegisters)
      freeVectorRegisters();
  }

private:
  /// An empty instruction that is said to overwrite all vector registers.
  void freeVectorRegisters() {
    std::string clobbers;
    for (int64_t i = 0; i < em.vectors().registers; ++i)
      clobbers += (i ? ",~{" : "~{") + std::string(em.vectors().bits == 512 ? "zmm" : "ymm") + std::to_string(i) + "}";
    LLVM::InlineAsmOp::create(b, loc, /*resultTypes=*/TypeRange(), /*operands=*/ValueRange(), /*asm_string=*/"",
                              /*constraints=*/clobbers, /*has_side_effects=*/true, /*is_align_stack=*/false,
                              LLVM::TailCallKind::None, /*asm_dialect=*/LLVM::AsmDialectAttr(),
                              /*operand_attrs=*/ArrayAttr());
  }

  /// Sets partialLevel: the innermost level whose positions have enough steps below them. The level behind the taps is
  /// the innermost part of K itself, taken in segments.
  void choosePartialSums() {
    int64_t steps = k.depth.constant.value_or(k.partialDepth + 1), all = steps;
    for (const MicroKernel::Tap &tap : k.taps)
      all *= tap.count;
    if (!k.partialDepth || all <= k.partialDepth)
      return;
    unsigned level = k.taps.size();
    for (; steps <= k.partialDepth && level > 0; steps *= k.taps[--level].count)
      if (steps * 4 >= k.partialDepth && k.taps[level - 1].count > 1) {
        partialLevel = level - 1;
        return;
      }
    if (steps > k.partialDepth && level == k.taps.size())
      partialLevel = level;
  }

  SmallVector<Value> zeros() {
    Value zero = arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
    return SmallVector<Value>(k.rows() * columns, zero);
  }

  void store(ArrayRef<Value> sums, bool adds) {
    for (int64_t i = 0; i < k.rows(); ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Value sum = sums[i * columns + j], address = offsetBy(em, k.c, cOffset(i, j), element);
        if (adds)
          sum = arith::AddFOp::create(b, loc, LLVM::LoadOp::create(b, loc, vector, address, 4), sum);
        LLVM::StoreOp::create(b, loc, sum, address, /*alignment=*/4);
      }
  }

  int64_t cOffset(int64_t i, int64_t j) const {
    return k.cOffsets[i] + j / vectorsPerPanel * k.cPanelStride + j % vectorsPerPanel * em.width();
  }

  Value loadRight(Value address) {
    if (!k.bType)
      return LLVM::LoadOp::create(b, loc, vector, address, 4, /*isVolatile=*/isOrdered);
    Value narrow = LLVM::LoadOp::create(b, loc, em.vectorOf(right), address, 2, /*isVolatile=*/isOrdered);
    return arith::ExtFOp::create(b, loc, vector, narrow);
  }

  // Not the emitter's arithmetic, which remembers values by scope: the loops here are no scopes.
  Value mul(Value x, int64_t factor) { return arith::MulIOp::create(b, loc, x, em.i64(factor)); }

  // scf.for without a scope of the emitter: nothing inside asks for values of the region.
  SmallVector<Value> loop(Value lower, Value upper, int64_t step, ValueRange inits, bool unrollable,
                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto op = scf::ForOp::create(b, loc, lower, upper, em.i64(step), inits);
    if (!unrollable)
      disableUnrolling(op);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
    // ForOp::create adds the terminator only where nothing is carried.
    if (!inits.empty())
      scf::YieldOp::create(b, loc, next);
    return SmallVector<Value>(op.getResults());
  }

  /// `done`: steps of K before this position, for the prefetch; null: none.
  SmallVector<Value> tap(unsigned level, Value a, Value bPtr, Value done, SmallVector<Value> accumulators) {
    if (level == k.taps.size())
      return inner(a, bPtr, done, accumulators);
    const MicroKernel::Tap &here = k.taps[level];
    if (here.count == 1 && !here.used)
      return tap(level + 1, a, bPtr, done, accumulators);
    // Depth of one position at this level.
    int64_t outer = 1;
    for (unsigned i = level + 1; i < k.taps.size(); ++i)
      outer *= k.taps[i].count;
    Value stepB = k.depth.constant ? em.i64(*k.depth.constant * outer * kPanel) : mul(k.depth.value, outer * kPanel);
    Value strideA = here.stride.get(em);
    // Down to the partial sums there is nothing to carry.
    const bool isPartial = partialLevel == level, isOutside = partialLevel && level <= *partialLevel;
    return loop(em.i64(0), here.used ? here.used : em.i64(here.count), 1,
                isOutside ? SmallVector<Value>() : accumulators,
                /*unrollable=*/false, [&](Value i, ValueRange carried) {
                  Value doneHere;
                  if (fetchedLines) {
                    doneHere = mul(i, *k.depth.constant * outer);
                    if (done)
                      doneHere = arith::AddIOp::create(b, loc, done, doneHere);
                  }
                  SmallVector<Value> sums =
                      tap(level + 1, offsetBy(em, a, Value(arith::MulIOp::create(b, loc, i, strideA)), element),
                          offsetBy(em, bPtr, Value(arith::MulIOp::create(b, loc, i, stepB)), right), doneHere,
                          isOutside ? zeros() : SmallVector<Value>(carried));
                  if (isPartial)
                    store(sums, /*adds=*/true);
                  return isOutside ? SmallVector<Value>() : sums;
                });
  }

  SmallVector<Value> inner(Value a, Value bPtr, Value done, SmallVector<Value> accumulators) {
    if (llvm::any_of(k.taps, [](const MicroKernel::Tap &tap) { return tap.count > 1 || tap.used; })) {
      a = em.opaque(a);
      bPtr = em.opaque(bPtr);
    }
    // Rows at a stride that only the run knows: one address each, made once.
    SmallVector<Value> rowPointers;
    if (k.rowStride)
      for (int64_t i = 0; i < k.rows(); ++i)
        rowPointers.push_back(i == 0 ? a : offsetBy(em, rowPointers.back(), k.rowStride, element));
    SmallVector<Value> panelPointers;
    if (!k.panelStride.constant)
      for (int64_t p = 0; p < k.panels; ++p)
        panelPointers.push_back(p == 0 ? bPtr : offsetBy(em, panelPointers.back(), k.panelStride.value, right));

    auto steps = [&](Value position, int64_t count, SmallVector<Value> acc) {
      Value positionA = k.depthStride == 1 ? position : mul(position, k.depthStride);
      Value aHere = rowPointers.empty() ? offsetBy(em, a, positionA, element) : Value();
      SmallVector<Value> rowsHere;
      for (Value row : rowPointers)
        rowsHere.push_back(offsetBy(em, row, positionA, element));
      Value positionB = mul(position, k.stepStride);
      Value bHere = panelPointers.empty() ? offsetBy(em, bPtr, positionB, right) : Value();
      SmallVector<Value> panelsHere;
      for (Value panel : panelPointers)
        panelsHere.push_back(offsetBy(em, panel, positionB, right));
      if (fetchedLines && count == unroll) {
        Value step = done ? Value(arith::AddIOp::create(b, loc, done, position)) : position;
        Value from = offsetBy(em, fetchFrom, mul(step, fetchedLines * kPanel / unroll));
        for (int64_t line = 0; line < fetchedLines; ++line)
          em.prefetch(offsetBy(em, from, line * kPanel));
      }
      if (k.nextRows && count == unroll) {
        Value from = offsetBy(em, k.nextRows, mul(position, k.rows()), element);
        for (int64_t line = 0; line < ceilDiv(unroll * k.rows() * element.getIntOrFloatBitWidth(), 32 * kPanel); ++line)
          em.prefetch(offsetBy(em, from, line * kPanel));
      }
      if (k.prefetchDistance)
        for (int64_t u = 0; u < count; u += stepsPerLine)
          for (int64_t panel = 0; panel < k.panels; ++panel) {
            const int64_t offset = u * k.stepStride + k.prefetchDistance * stepsPerLine;
            Value from = bHere ? offsetBy(em, bHere, panel * *k.panelStride.constant + offset, right)
                               : offsetBy(em, panelsHere[panel], offset, right);
            for (int64_t line = 0; line < linesPerStep; ++line)
              em.prefetch(offsetBy(em, from, line * kPanel));
          }
      for (int64_t u = 0; u < count; ++u) {
        SmallVector<Value> row;
        for (int64_t j = 0; j < columns; ++j) {
          int64_t panel = j / vectorsPerPanel, inPanel = u * k.stepStride + j % vectorsPerPanel * em.width();
          Value address = bHere ? offsetBy(em, bHere, panel * *k.panelStride.constant + inPanel, right)
                                : offsetBy(em, panelsHere[panel], inPanel, right);
          row.push_back(loadRight(address));
        }
        for (int64_t i = 0; i < k.rows(); ++i) {
          Value address = aHere ? offsetBy(em, aHere, k.rowOffsets[i] + u * k.depthStride, element)
                                : offsetBy(em, rowsHere[i], u * k.depthStride, element);
          Value scalar = LLVM::LoadOp::create(b, loc, element, address, 4);
          Value lanes = vector::BroadcastOp::create(b, loc, vector, scalar);
          for (int64_t j = 0; j < columns; ++j) {
            Value &sum = acc[i * columns + j];
            sum = vector::FMAOp::create(b, loc, lanes, row[j], sum);
          }
        }
      }
      return acc;
    };

    // The steps from `first` on, which are `count`, or as many as `limit` says.
    auto run = [&](Value first, std::optional<int64_t> count, Value limit, SmallVector<Value> acc) {
      auto from = [&](Value i) { return first ? Value(arith::AddIOp::create(b, loc, first, i)) : i; };
      auto several = [&](Value lower, Value upper, int64_t step) {
        acc = loop(lower, upper, step, acc, false,
                   [&](Value i, ValueRange carried) { return steps(from(i), step, SmallVector<Value>(carried)); });
      };
      if (!count) {
        Value main = arith::AndIOp::create(b, loc, limit, em.i64(-unroll));
        several(em.i64(0), main, unroll);
        if (unroll > 1)
          several(main, limit, 1);
        return acc;
      }
      const int64_t main = *count / unroll * unroll;
      if (main == unroll)
        acc = steps(from(em.i64(0)), unroll, acc);
      else if (main > 0)
        several(em.i64(0), em.i64(main), unroll);
      return main < *count ? steps(from(em.i64(main)), *count - main, acc) : acc;
    };
    const std::optional<int64_t> depth = k.depth.constant;
    if (partialLevel != k.taps.size())
      return run(Value(), depth, k.depth.value, accumulators);
    // In segments of about equal length where it is known.
    int64_t segment = k.partialDepth, last = 0;
    if (depth) {
      segment = roundUp(ceilDiv(*depth, ceilDiv(*depth, segment)), unroll);
      last = *depth % segment;
    }
    auto add = [&](Value first, std::optional<int64_t> count) {
      Value limit;
      if (!count)
        limit = arith::MinSIOp::create(b, loc, em.i64(segment), arith::SubIOp::create(b, loc, k.depth.value, first));
      store(run(first, count, limit, zeros()), /*adds=*/true);
    };
    loop(em.i64(0), depth ? em.i64(*depth - last) : k.depth.value, segment, {}, false, [&](Value first, ValueRange) {
      add(first, depth ? std::optional(segment) : std::nullopt);
      return SmallVector<Value>();
    });
    if (last)
      add(em.i64(*depth - last), last);
    return {};
  }

  Emitter &em;
  const MicroKernel &k;
  OpBuilder &b;
  Location loc;
  Type element, right; // of A and the sums; of B in memory
  VectorType vector;
  bool isOrdered;
  int64_t vectorsPerPanel, columns, unroll, stepsPerLine, linesPerStep, fetchedLines;
  Value fetchFrom;
  std::optional<unsigned> partialLevel; // after each position of which the sums so far are added to the result
};

} // namespace

Extent tc::codegen::blockExtent(Emitter &em, AffineExpr size, Value start, int64_t block) {
  std::optional<int64_t> constant = prim::getConstantSize(size);
  if (constant && *constant % block == 0)
    return Extent(block);
  if (constant && *constant < block)
    return Extent(*constant);
  return Extent(em.min(em.i64(block), em.sub(em.size(size), start)));
}

std::optional<int64_t> tc::codegen::blockRest(std::optional<int64_t> size, int64_t block, int64_t segment) {
  return size && block % segment == 0 ? std::optional(*size % segment) : std::nullopt;
}

Value tc::codegen::tapsBefore(Emitter &em, Value start, Value limit, int64_t dilation, int64_t kernel) {
  const Value missing = arith::MaxSIOp::create(em.builder(), em.loc(), em.sub(limit, start), em.i64(0));
  return em.min(em.divUnsigned(em.add(missing, em.i64(dilation - 1)), em.i64(dilation)), em.i64(kernel));
}

void tc::codegen::emitMicroKernel(Emitter &em, const MicroKernel &kernel) { Assembler(em, kernel).run(); }

SmallVector<int64_t> tc::codegen::uniformRows(int64_t rows, int64_t stride) {
  SmallVector<int64_t> offsets;
  for (int64_t i = 0; i < rows; ++i)
    offsets.push_back(i * stride);
  return offsets;
}

void tc::codegen::forRowBlocks(Emitter &em, Extent count, int64_t rows, std::optional<int64_t> knownRest,
                               llvm::function_ref<void(Value, int64_t)> body) {
  if (count.constant) {
    int64_t main = *count.constant / rows * rows;
    if (main == rows)
      body(em.i64(0), rows);
    else if (main > 0)
      em.loop(em.i64(0), em.i64(main), rows, [&](Index i) { body(i.base, rows); }, 0);
    if (main < *count.constant)
      body(em.i64(main), *count.constant - main);
    return;
  }
  OpBuilder &b = em.builder();
  Location loc = em.loc();
  Value main = em.mul(em.divUnsigned(count.value, em.i64(rows)), em.i64(rows));
  em.loop(em.i64(0), main, rows, [&](Index i) { body(i.base, rows); }, 0);
  const int64_t multiple = std::gcd(em.multipleOf(count.value), rows); // of what remains, too
  if (multiple == rows || (knownRest && *knownRest == 0))
    return;
  Value rest = em.sub(count.value, main);
  if (knownRest) {
    Value on = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, rest, em.i64(0));
    em.ifThen(on, [&] { body(main, *knownRest); });
    return;
  }
  // The bits of the remainder, highest first; each block starts where the higher bits end.
  int64_t highest = 1;
  while (highest * 2 < rows)
    highest *= 2;
  for (int64_t block = highest; block >= 1 && multiple % (block * 2) != 0; block /= 2) {
    if (block == rows)
      continue;
    Value bit = arith::AndIOp::create(b, loc, rest, em.i64(block));
    Value on = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, em.i64(0));
    Value above = arith::AndIOp::create(b, loc, rest, em.i64(-2 * block));
    Value start = em.add(main, above);
    em.ifThen(on, [&] { body(start, block); });
  }
}

namespace {
/// Parts of a row's vectors that are written out.
constexpr int64_t kMostSegments = 12;
/// Without masks, shorter parts are stored element by element: parts of 7 to 10 took up to 1.06 of the time, of 12 to
/// 72 0.77 to 0.91 (Zen 4).
constexpr int64_t kLeastNarrowRun = 12;

/// Whether a row of columns, constant ones, is of whole parts.
bool isOfParts(const Index &first, const Extent &columns, int64_t run) {
  return columns.constant && *columns.constant % run == 0 && first.multiple % run == 0;
}

/// forColumns in parts, whose lanes begin with the part.
void forParts(Emitter &em, const Index &first, const Index &start, const Extent &columns,
              llvm::function_ref<void(Index, Index)> store, int64_t run) {
  const Value begin = first.base, end = em.add(begin, columns.get(em)), size = em.i64(run);
  const bool isWhole = isOfParts(first, columns, run);
  em.loop(em.divUnsigned(begin, size), em.divUnsigned(em.add(end, em.i64(run - 1)), size), 1, [&](Index part) {
    const Value partBegin = em.mul(part.base, size);
    Value from = partBegin, to = em.add(partBegin, size);
    if (!isWhole) {
      from = arith::MaxSIOp::create(em.builder(), em.loc(), begin, from);
      to = em.min(end, to);
    }
    const Index inPart = isWhole ? em.constant(0) : em.uniform(em.sub(from, partBegin));
    const Index inTile = em.addIndex(start, em.uniform(em.sub(from, begin)));
    em.independentLanes(
        isWhole ? size : em.sub(to, from), isWhole ? std::optional(run) : std::nullopt,
        [&](Index lane) { store(em.joinIndex(part, em.addIndex(inPart, lane), run), em.addIndex(inTile, lane)); });
  });
}

/// forColumns in parts that take their lanes of the tile's vectors as the micro-kernel stored them: loads that cross
/// two of its stores would wait until these are in the cache. (Transposed convolutions whose phases are 2 to 16
/// channels: 0.76 to 0.99 of the time of stores of single elements on Zen 4.)
void forMaskedParts(Emitter &em, const Index &first, const Index &start, const Extent &columns,
                    llvm::function_ref<void(Index, Index)> store, int64_t run) {
  const Value size = em.i64(run), width = em.i64(em.width());
  // Columns of the tile: the vector's first, those that the part takes, and the one where it begins, or would.
  auto storePart = [&](const Index &part, Value vector, Value from, Value to, Value origin) {
    em.withMask(em.lanesWithin(em.sub(from, vector), em.sub(to, vector)), [&] {
      const Index inPart = em.contiguous(em.uniform(em.sub(vector, origin)));
      const Index inTile = em.contiguous(em.addIndex(start, em.uniform(vector, em.width())));
      store(em.joinIndex(part, inPart, run), inTile);
    });
  };
  const Value firstPart = em.divUnsigned(first.base, size);
  if (isOfParts(first, columns, run) &&
      *columns.constant / run + ceilDiv(*columns.constant, em.width()) <= kMostSegments) {
    for (int64_t from = 0; from < *columns.constant; from += run)
      for (int64_t vector = from / em.width() * em.width(); vector < from + run; vector += em.width())
        storePart(em.addIndex(em.uniform(firstPart), em.constant(from / run)), em.i64(vector), em.i64(from),
                  em.i64(from + run), em.i64(from));
    return;
  }
  const Value end = em.add(first.base, columns.get(em));
  em.loop(firstPart, em.divUnsigned(em.add(end, em.i64(run - 1)), size), 1, [&](Index part) {
    const Value origin = em.sub(em.mul(part.base, size), first.base);
    const Value from = arith::MaxSIOp::create(em.builder(), em.loc(), origin, em.i64(0));
    const Value to = em.min(em.add(origin, size), columns.get(em));
    em.loop(
        em.mul(em.divUnsigned(from, width), width), to, em.width(),
        [&](Index vector) { storePart(part, vector.base, from, to, origin); }, em.width());
  });
}
} // namespace

void tc::codegen::forColumns(Emitter &em, bool isSingle, Index first, Index start, Extent columns,
                             llvm::function_ref<void(Index, Index)> store, int64_t run) {
  if (isSingle)
    return store(first, start);
  if (run && em.vectors().bits == 512)
    return forMaskedParts(em, first, start, columns, store, run);
  if (run >= kLeastNarrowRun)
    return forParts(em, first, start, columns, store, run);
  em.independentLanes(columns.get(em), columns.constant,
                      [&](Index lane) { store(em.addIndex(first, lane), em.addIndex(start, lane)); });
}

SmallVector<Index> tc::codegen::linesFrom(Emitter &em, Value first, AffineExpr size) {
  const bool isWhole = em.multipleOf(em.size(size)) % em.width() == 0;
  const Value last = isWhole ? Value() : em.sub(em.size(size), em.i64(1));
  SmallVector<Index> lines;
  for (int64_t i = 0; i < em.width(); ++i) {
    const Value line = em.add(first, em.i64(i));
    lines.push_back(em.uniform(isWhole ? line : em.min(line, last)));
  }
  return lines;
}

SmallVector<Value> tc::codegen::transposeLanes(Emitter &em, ArrayRef<Value> rows) {
  // Butterfly: step s exchanges the lanes whose index has bit s set with those of the row whose index has it clear.
  OpBuilder &b = em.builder();
  int64_t n = em.width();
  SmallVector<Value> now(rows.begin(), rows.end());
  for (int64_t bit = n / 2; bit >= 1; bit /= 2) {
    SmallVector<Value> next(n);
    for (int64_t i = 0; i < n; ++i) {
      if (i & bit)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < n; ++lane) {
        low.push_back(lane & bit ? n + lane - bit : lane);
        high.push_back(lane & bit ? n + lane : lane + bit);
      }
      next[i] = vector::ShuffleOp::create(b, em.loc(), now[i], now[i + bit], low);
      next[i + bit] = vector::ShuffleOp::create(b, em.loc(), now[i], now[i + bit], high);
    }
    now = next;
  }
  return now;
}

Value tc::codegen::interleaveLanes(Emitter &em, ArrayRef<Value> vectors) {
  OpBuilder &b = em.builder();
  const int64_t width = em.width(), count = int64_t(vectors.size());
  Value all = vectors.front(); // one vector behind the other
  SmallVector<int64_t> lanes = llvm::to_vector(llvm::seq<int64_t>(0, width)), order;
  for (int64_t i = 1; i < count; ++i) {
    for (int64_t lane = 0; lane < width; ++lane)
      lanes.push_back(i * width + lane);
    all = vector::ShuffleOp::create(b, em.loc(), all, vectors[i], lanes);
  }
  for (int64_t i = 0; i < count * width; ++i)
    order.push_back(i % count * width + i / count);
  return vector::ShuffleOp::create(b, em.loc(), all, all, order);
}

void tc::codegen::clearFloats(Emitter &em, Value floats, int64_t count) {
  OpBuilder &b = em.builder();
  Value zero = arith::ConstantOp::create(b, em.loc(), b.getF32FloatAttr(0));
  em.laneLoop(em.i64(count), count, [&](Index lane) { em.storeAt(zero, floats, b.getF32Type(), lane); });
}

Value tc::codegen::offsetBy(Emitter &em, Value pointer, int64_t elements, Type type) {
  if (elements == 0)
    return pointer;
  OpBuilder &b = em.builder();
  return LLVM::GEPOp::create(b, em.loc(), pointer.getType(), type ? type : b.getF32Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(elements)});
}

Value tc::codegen::offsetBy(Emitter &em, Value pointer, Value elements, Type type) {
  OpBuilder &b = em.builder();
  return LLVM::GEPOp::create(b, em.loc(), pointer.getType(), type ? type : b.getF32Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{elements});
}
