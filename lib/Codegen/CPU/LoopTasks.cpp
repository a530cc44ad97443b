//===- LoopTasks.cpp - code of the "cpu.loops" strategy -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Loops.h"
#include "CPU/MicroKernel.h"
#include "CPU/Stream.h"
#include "Common/Anchor.h"
#include "tc/Transforms/Fuse.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::loops;

void loops::emitRowResults(ArrayRef<Value> results, Emitter &e, Value begin, Value end) {
  e.loop(begin, end, 1, [&](Index row) {
    for (auto [i, value] : llvm::enumerate(results)) {
      const SmallVector<AffineExpr> sizes = prim::getSizes(value);
      const SmallVector<Index> at = e.delinearize(row, sizes);
      e.storeAt(e.emit(value, at), e.output(i), cast<RankedTensorType>(value.getType()).getElementType(), row);
    }
  });
}

/// Calls `write` with lanes over [from, to) of the joined dims `sizes`, of which those behind the first hold `part`
/// elements, and with where the lanes are in each: `part` vectors at a time, then a part at a time.
static void emitOddParts(ArrayRef<AffineExpr> sizes, int64_t part, Emitter &e, Value from, Value to,
                         llvm::function_ref<void(Index, ArrayRef<Index>)> write) {
  const int64_t block = part * e.width();
  const Value whole = e.add(from, e.mul(e.divUnsigned(e.sub(to, from), e.i64(block)), e.i64(block)));
  e.loop(
      from, whole, block,
      [&](Index first) {
        for (int64_t i = 0; i < part; ++i)
          write(e.contiguous(e.addIndex(first, e.constant(i * e.width()))),
                e.delinearize(e.partOf(first, i * e.width(), block, block), sizes));
      },
      block);
  e.loop(
      whole, to, part,
      [&](Index first) {
        for (int64_t from = 0; from < part; from += e.width()) {
          const int64_t end = std::min(part, from + e.width());
          e.laneLoop(
              e.i64(end), end,
              [&](Index lane) {
                write(e.addIndex(first, lane), e.delinearize(e.partOf(first, from, part, part), sizes));
              },
              e.i64(from));
        }
      },
      part);
}

/// Calls `write` with lanes over [from, to) of a row, segment by segment: what the concats read is known in each, but
/// for segments of several short inputs.
static void emitSegments(const Segments &segments, Emitter &e, Value from, Value to, bool isCut,
                         llvm::function_ref<void(Index)> write) {
  for (size_t i = 0; i + 1 < segments.bounds.size(); ++i) {
    const int64_t begin = segments.bounds[i], end = segments.bounds[i + 1];
    int64_t row = 0; // of an input that is put together of such, which is the segment
    Index inSegment; // of the lanes, where it is
    for (const PlacedConcat &concat : segments.concats) {
      auto [input, start] = inputAt(concat, begin, end);
      if (!input) {
        e.setSource(concat.op.getResult(), {});
        continue;
      }
      const bool isSegment =
          !isCut && concat.begin + start == begin && prim::getConstantSize(prim::getSizes(input).back()) == end - begin;
      if (const int64_t stride = isSegment ? segmentStride(input) : 0)
        row = stride;
      e.setSource(concat.op.getResult(), [&, input = input, start = start, isSegment](ArrayRef<Index> at) {
        SmallVector<Index> inner(at);
        inner.back() = isSegment && row ? inSegment : e.addIndex(at.back(), e.constant(-start));
        return e.emit(input, inner);
      });
    }
    for (const GatherRuns &gather : segments.gathers) {
      const Run run = *std::prev(llvm::find_if(gather.runs, [&](const Run &other) { return other.begin > begin; }));
      e.setSource(gather.op.getResult(), [&e, gather = gather.op, run](ArrayRef<Index> at) mutable {
        SmallVector<Index> inner(at);
        const Index number = e.addIndex(at.back(), e.constant(-run.begin));
        inner.back() = e.addIndex(e.mulIndex(number, e.i64(run.step), run.step), e.constant(run.first));
        return e.emit(gather.getSource(), inner);
      });
    }
    if (row) {
      e.loop(e.i64(0), e.i64((end - begin) / row), 1, [&](Index number) {
        e.independentLanes(e.i64(row), row, [&](Index lane) {
          inSegment = e.joinIndex(number, lane, row);
          write(e.addIndex(inSegment, e.constant(begin)));
        });
      });
      continue;
    }
    Value first = e.i64(0), last = e.i64(end - begin);
    if (isCut) {
      OpBuilder &b = e.builder();
      first = arith::MaxSIOp::create(b, e.loc(), e.sub(from, e.i64(begin)), first);
      last = arith::MaxSIOp::create(b, e.loc(), e.min(e.sub(to, e.i64(begin)), last), first);
    }
    e.independentLanes(last, end - begin, [&](Index lane) { write(e.addIndex(lane, e.constant(begin))); }, first);
  }
  for (const PlacedConcat &concat : segments.concats)
    e.setSource(concat.op.getResult(), {});
}

/// Calls `write` with lanes over [from, to) of the row `at`, `block` elements after those of `reductions`, each made
/// by itself, are in a buffer.
static void emitBlocks(ArrayRef<Value> reductions, int64_t block, Emitter &e, ArrayRef<Index> at, Value from, Value to,
                       llvm::function_ref<void(Index)> write) {
  SmallVector<Value> buffers;
  for (Value reduction : reductions)
    buffers.push_back(e.stackBuffer(Emitter::memoryType(getElementTypeOrSelf(reduction.getType())), block));
  e.loop(from, to, block, [&](Index first) {
    const Value count = e.min(e.sub(to, first.base), e.i64(block));
    e.loop(e.i64(0), count, 1, [&](Index number) {
      SmallVector<Index> full(at);
      full.push_back(e.addIndex(first, number));
      for (auto [reduction, buffer] : llvm::zip(reductions, buffers))
        e.storeAt(e.emit(reduction, full), buffer, getElementTypeOrSelf(reduction.getType()), number);
    });
    e.laneLoop(count, std::nullopt, [&](Index lane) {
      for (auto [reduction, buffer] : llvm::zip(reductions, buffers))
        e.setSource(reduction, [&e, lane, buffer = buffer, type = getElementTypeOrSelf(reduction.getType())](
                                   ArrayRef<Index>) { return e.loadAt(buffer, type, lane); });
      write(e.addIndex(first, lane));
    });
  });
}

/// Fetches, to the second-level cache, what the row of that number reads at `position` of inputs that come from
/// beyond it: the pass that computes most leaves memory idle.
static void fetchRow(kernel::RegionOp region, ArrayRef<AffineExpr> sizes, Emitter &e, Value row, Index position) {
  for (auto [i, argument] : llvm::enumerate(region.getBody().getArguments()))
    if (isFetched(argument, sizes))
      e.prefetch(e.address(e.input(i), Emitter::memoryType(getElementTypeOrSelf(argument.getType())),
                           e.add(e.mul(row, e.size(sizes.back())), position.base)));
}

Kept loops::getKept(kernel::RegionOp region, Schedule schedule) {
  int64_t number = schedule.getKeep();
  if (number < 0)
    return {};
  Value value = std::next(region.getBody().front().begin(), number)->getResult(0);
  return {value, RowUses(value).firstReduction()};
}

/// Position of a row's element in an output whose sizes are the rows' outer dims, with 1s anywhere; nullopt: other
/// sizes.
static std::optional<SmallVector<Index>> rowPosition(Emitter &e, ArrayRef<Index> at, ArrayRef<AffineExpr> sizes,
                                                     ArrayRef<AffineExpr> own) {
  SmallVector<Index> position;
  size_t next = 0;
  for (AffineExpr size : own) {
    while (next + 1 < sizes.size() && sizes[next] != size && prim::getConstantSize(sizes[next]) == 1)
      ++next;
    if (next + 1 < sizes.size() && sizes[next] == size)
      position.push_back(at[next++]);
    else if (prim::getConstantSize(size) == 1)
      position.push_back(e.constant(0));
    else
      return std::nullopt;
  }
  while (next + 1 < sizes.size() && prim::getConstantSize(sizes[next]) == 1)
    ++next;
  if (next + 1 != sizes.size())
    return std::nullopt;
  return position;
}

void loops::emitRows(kernel::RegionOp region, Schedule schedule, Emitter &e, Value begin, Value end, bool isStreaming) {
  auto yield = cast<kernel::YieldOp>(region.getBody().front().getTerminator());
  const bool lanes = schedule.getLanes();
  const int64_t chunk = schedule.getChunk(), joined = schedule.getJoined();
  const Value root = yield.getValues()[schedule.getSpace()];
  const SmallVector<AffineExpr> own = prim::getSizes(root);
  const SmallVector<AffineExpr> sizes = joinLast(own, joined);
  const Kept kept = getKept(region, schedule);
  AffineExpr last = sizes.back();
  SmallVector<AffineExpr> outer(sizes.begin(), sizes.end() - 1);
  e.loop(begin, end, 1, [&](Index task) {
    Index row = task;
    Value from = e.i64(0), to = e.size(last);
    std::optional<int64_t> constantTo = prim::getConstantSize(last);
    if (chunk) {
      SmallVector<AffineExpr> grid{prim::product(e.builder().getContext(), outer), last.ceilDiv(chunk)};
      grid[1] = prim::simplifySize(grid[1]);
      SmallVector<Index> at = e.delinearize(task, grid);
      row = at[0];
      from = e.mul(at[1].base, e.i64(chunk));
      if (!constantTo || *constantTo % chunk != 0) {
        to = e.min(e.add(from, e.i64(chunk)), to);
        constantTo = std::nullopt;
      } else {
        to = e.add(from, e.i64(chunk));
      }
    }
    SmallVector<Index> at = outer.empty() ? SmallVector<Index>{} : e.delinearize(row, outer);
    auto prefetchRow = [&](Index position) {
      if (const int64_t rows = schedule.getFetch())
        fetchRow(region, sizes, e, e.add(row.base, e.i64(rows)), position);
    };
    if (kept.value && lanes)
      e.keepRow(kept.value, kept.reduction, at, e.scratch(), prefetchRow);
    // `parts`: where the lanes of `position` are in the joined dims.
    auto writeAt = [&](Index position, ArrayRef<Index> parts) {
      SmallVector<Index> full = at;
      full.push_back(position);
      if (kept.value && !lanes)
        e.keepRow(kept.value, kept.reduction, full, e.scratch());
      // All values before all stores: an output may lie on an input.
      SmallVector<std::pair<unsigned, Value>> values;
      SmallVector<Index> split = at;
      llvm::append_range(split, parts);
      for (auto [o, value] : llvm::enumerate(yield.getValues()))
        if (prim::getSizes(value) == own)
          values.emplace_back(o, e.emit(value, split));
      e.streamsStores = isStreaming;
      for (auto [o, value] : values)
        e.store(value, e.output(o), getElementTypeOrSelf(yield.getValues()[o].getType()), sizes, full);
      e.streamsStores = false;
    };
    const ArrayRef<AffineExpr> joinedDims = ArrayRef(own).take_back(joined);
    auto write = [&](Index position) {
      writeAt(position, joined ? e.delinearize(position, joinedDims) : SmallVector<Index>{position});
    };
    if (schedule.getElements())
      for (int64_t i = 0; i < *constantTo; ++i)
        write(e.constant(i));
    else if (const int64_t odd = oddPart(own, joined))
      emitOddParts(joinedDims, odd, e, from, to, writeAt);
    else if (schedule.getSegments())
      emitSegments(segmentsOf(region, root), e, from, to, /*isCut=*/chunk != 0, write);
    else if (lanes)
      e.independentLanes(
          to, constantTo,
          [&](Index position) {
            if (!kept.value)
              prefetchRow(position);
            write(position);
          },
          from);
    else if (const int64_t block = schedule.getBlock())
      emitBlocks(finishOf(region, root).reductions.getArrayRef(), block, e, at, from, to, write);
    else
      e.loop(from, to, 1, [&](Index position) { write(position); });
    // Results in other spaces: the row space (once per row), or, if small, everything by the first task.
    for (unsigned o = 0; o < yield.getValues().size(); ++o) {
      Value value = yield.getValues()[o];
      const SmallVector<AffineExpr> others = prim::getSizes(value);
      if (others == own)
        continue;
      Type element = cast<RankedTensorType>(value.getType()).getElementType();
      Value first = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, from, e.i64(0));
      std::optional<SmallVector<Index>> position = rowPosition(e, at, sizes, others);
      if (position) {
        e.ifThen(first, [&] { e.store(e.emit(value, *position), e.output(o), element, others, *position); });
      } else {
        Value isFirst = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, task.base, e.i64(0));
        e.ifThen(isFirst, [&] {
          AffineExpr count = prim::product(e.builder().getContext(), others);
          e.loop(e.i64(0), e.size(count), 1, [&](Index linear) {
            SmallVector<Index> full = e.delinearize(linear, others);
            e.store(e.emit(value, full), e.output(o), element, others, full);
          });
        });
      }
    }
  });
}
