//===- Transpose.cpp - the "cpu.transpose" strategy: another dim becomes the last --------------------------------===//
//
// Lanes along either dim would gather along the other, a cache line for each element. A task
// reads a tile with lanes along the operand's last dim instead, turns it, width() x width() elements at a time in
// registers, and goes on with lanes along the result's last dim.
//
// What is transposed goes straight from the registers to the result, a line of each of its rows, or through scratch
// where the result is stored past the caches, by longer segments of rows, or computed in another type than it is stored
// in, and within the caches where lines of its rows would drive each other out of the first. And where rows may not
// begin with a line, out of the second level: each vector would be stored to parts of two lines, one such store at a
// time where they are not in the cache. (That took 1.5 to 7 times as long out of cache on Sapphire Rapids, 150 x 150
// pixels of 130 channels most of all. In the second level straight stores take 0.6 to 0.7 of the time on Zen 4 and 0.8
// to 1.2 on Sapphire Rapids, in the third one 0.7 and 1.1 to 1.4, rows of up to 130 floats, one behind the other, 0.64
// to 0.78 and 0.87 to 1.15, with several threads 0.45 and 0.6 to 0.9.)
//
// Where the result's last dim is short, those before it up to the operand's last one count as one with it.
//
// A result whose last dim is short (pixels of three channels, the halves of a pixel shuffle) and lies beside the
// operand's last dim is written as one: a task reads vectors of each of its rows and interleaves their lanes.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Transpose.h"
#include "CPU/MicroKernel.h"
#include "CPU/Stream.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuTransposeAttr;

// Four lines of f32 are read and written at once: 16 KiB of scratch stay in the first-level cache. Through scratch,
// sixteen are written out of cache, which takes three quarters of the time, if rows are long enough for some of those;
// past the caches four, of which eight are read (0.79 of that on Zen 5, 1.0 on Sapphire Rapids).
constexpr int64_t kRows = 64, kColumns = 64, kColumnsOutOfCache = 256, kRowsPastCaches = 128, kLongRow = 512;
// Straight out of cache: a line of each row of the result, of so many rows, for which the operand is read as long.
constexpr int64_t kRowsOfLines = 256;
// Straight, in or out of cache, of rows that share a few sets of the first-level cache (0.41 to 0.88 of the time on
// Zen 5, 0.82 to 1.02 on Sapphire Rapids).
constexpr int64_t kRowsOfFewSets = 32;
// Operand and result of so many bytes stay in the second-level cache.
constexpr double kCacheBytes = machine::kCaches.l2;
// And in the third level's share of a core, or of a few.
constexpr double kThirdLevelBytes = machine::kCaches.l3 / 2;
constexpr int64_t kLineBytes = 64, kFewSetsBytes = 1024, kWayBytes = 4096;
// Rows up to so long, one behind the other, fill the lines that they share before these leave the first-level cache.
constexpr int64_t kShortRowBytes = 640;
// Rows of the operand that are interleaved, and how many elements of each a task takes.
constexpr int64_t kNarrowRows = 1024;
// What a thread should get at least, in elements.
constexpr double kGrainElements = 30000;

struct Problem : TransposeProblem {
  explicit Problem(TransposeProblem problem) : TransposeProblem(std::move(problem)) {}

  /// Whether registers hold elements as memory does, so that what is transposed can be stored as it is.
  bool isDirect() const { return Emitter::memoryType(element()) == Emitter::valueType(element()); }
  /// Whether neighbouring rows of the result are known to lie a multiple of so many bytes apart.
  bool isRowStrideMultiple(int64_t multiple) const {
    const std::optional<int64_t> distance =
        prim::getConstantSize(prim::product(op->getContext(), ArrayRef(sizes).drop_front(dim + 1)));
    return distance && *distance * bytes() % multiple == 0;
  }
  /// Whether neighbouring rows of the result are short and lie one behind the other.
  bool areRowsShort() const {
    const std::optional<int64_t> last = prim::getConstantSize(sizes.back());
    return dim + 2 == sizes.size() && last && *last * bytes() <= kShortRowBytes;
  }
  /// Of an element in memory.
  int64_t bytes() const { return Emitter::memoryBytes(element()); }
  /// The dims that stay outside, then blocks of the operand's last dim, then of the result's, or the other way round.
  SmallVector<AffineExpr> grid(Schedule schedule) const {
    SmallVector<AffineExpr> grid;
    for (size_t i = 0; i + 1 < sizes.size(); ++i)
      if (i != dim)
        grid.push_back(sizes[i]);
    grid.push_back(prim::simplifySize(sizes[dim].ceilDiv(schedule.getRows())));
    grid.push_back(prim::simplifySize(sizes.back().ceilDiv(schedule.getColumns())));
    if (schedule.getRasterOrder() == kernel::RasterOrder::ColumnsOuter)
      std::swap(grid.back(), grid[grid.size() - 2]);
    return grid;
  }
  /// Position in the result of the first element of a task.
  SmallVector<Index> firstOf(Emitter &em, Index task, Schedule schedule) const {
    SmallVector<Index> at = em.delinearize(task, grid(schedule));
    if (schedule.getRasterOrder() == kernel::RasterOrder::ColumnsOuter)
      std::swap(at.back(), at[at.size() - 2]);
    const int64_t rows = schedule.getRows(), columns = schedule.getColumns();
    at.back() = em.mulIndex(at.back(), em.i64(columns), columns);
    const Index row = em.mulIndex(at[at.size() - 2], em.i64(rows), rows);
    at.erase(at.end() - 2);
    at.insert(at.begin() + dim, row);
    return at;
  }
};

class TransposeGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    std::optional<TransposeProblem> problem = analyzeTranspose(region);
    return problem ? std::optional(Problem(std::move(*problem))) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    const double bytes = 2 * double(p.bytes()) * getLikelyCount(p.sizes, p.op);
    const bool isCached = bytes <= kCacheBytes, isInThirdLevel = bytes <= kThirdLevelBytes;
    const bool isStreaming = !p.isNarrow && llvm::all_of(region.getYielded(), isStreamed);
    // Lines of rows that are a way apart share a set of the first-level cache.
    const bool isDirect = !p.isNarrow && !isStreaming && p.isDirect() &&
                          (p.isRowStrideMultiple(kLineBytes)
                               ? !(isInThirdLevel && p.isRowStrideMultiple(kWayBytes))
                               : (isCached && p.isRowStrideMultiple(1)) || (isInThirdLevel && p.areRowsShort()));
    int64_t rows = kRows, columns = kColumns;
    if (p.isNarrow) {
      rows = kNarrowRows;
      columns = *prim::getConstantSize(p.sizes.back());
    } else if (isDirect && p.isRowStrideMultiple(kFewSetsBytes)) {
      rows = std::max<int64_t>(kRowsOfFewSets, kLineBytes / p.bytes());
    } else if (isDirect && !isCached) {
      rows = kRowsOfLines;
      columns = std::max<int64_t>(kPanel, kLineBytes / p.bytes());
    } else if (!isInThirdLevel && getLikelySize(p.sizes.back(), p.op, /*usual=*/kLongRow) >= kLongRow) {
      rows = isStreaming ? kRowsPastCaches : kRows;
      columns = isStreaming ? kColumns : kColumnsOutOfCache;
    }
    Schedule::Params params;
    if (p.isNarrow)
      params.narrow = 1;
    params.rows = rows;
    params.columns = columns;
    // Within the third level what is fetched ahead costs more than it saves (1.05 on Zen 5, 1.0 on Sapphire Rapids).
    params.fetch = !p.isNarrow && !isDirect && !isInThirdLevel && inputThroughReshapes(p.op.getOperand());
    if (isStreaming)
      params.stream = 1;
    if (isDirect)
      params.direct = 1;
    // Pixels are cut among the threads rather than channels, as in the layers around.
    const std::optional<int64_t> across = prim::getConstantSize(p.sizes[p.dim]),
                                 along = prim::getConstantSize(p.sizes.back());
    if (isInThirdLevel && across && along && ceilDiv(*across, rows) > 1 && *along > *across && *along > columns)
      params.rasterOrder = kernel::RasterOrder::ColumnsOuter;
    const int64_t filled = std::min(rows, getLikelySize(p.sizes[p.dim], p.op, /*usual=*/rows)) * columns;
    params.grain = grainFor(kGrainElements, double(p.isNarrow ? filled : rows * columns));
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    const int64_t rows = schedule.getRows(), columns = schedule.getColumns();
    Launch launch;
    launch.tasks = prim::product(context, p.grid(schedule));
    if (!schedule.getDirect())
      launch.scratch = scratchBytes(context, rows * columns * p.bytes());
    launch.inPlace = p.epilogue.inPlace();
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    if (schedule.getNarrow())
      return emitNarrow(p, schedule, em, begin, end);
    if (!schedule.getStream())
      return emitTiles(p, schedule, em, begin, end, /*isStreaming=*/false);
    SmallVector<Value> buffers;
    for (unsigned o = 0; o < em.region().getNumResults(); ++o)
      buffers.push_back(em.output(o));
    emitStreaming(em, buffers, [&](bool isStreaming) { emitTiles(p, schedule, em, begin, end, isStreaming); });
  }

private:
  static void emitTiles(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end, bool isStreaming) {
    const int64_t rowBlock = schedule.getRows(), columnBlock = schedule.getColumns();
    const AffineExpr depth = p.sizes[p.dim], last = p.sizes.back();
    // Rows of the operand to fetch for the next task with each row that this one writes.
    const int64_t fetched = ceilDiv(std::min(columnBlock, prim::getConstantSize(last).value_or(columnBlock)), rowBlock);
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> at = p.firstOf(em, task, schedule);
      const Index row0 = at[p.dim], column0 = at.back();
      const Extent rows = blockExtent(em, depth, row0.base, rowBlock);
      const Extent columns = blockExtent(em, last, column0.base, columnBlock);
      if (schedule.getDirect())
        return turnAndStore(p, em, at, rows, columns);
      Value next;
      if (schedule.getFetch())
        next = addressOf(p, em, p.firstOf(em, em.addIndex(task, em.constant(1)), schedule));
      turn(p, em, at, rows, columns, columnBlock);
      em.loop(em.i64(0), rows.get(em), 1, [&](Index row) {
        for (int64_t i = 0; next && i < fetched; ++i)
          fetch(p, em, next, em.add(em.mul(row.base, em.i64(fetched)), em.i64(i)), rowBlock);
        at[p.dim] = em.addIndex(row0, row);
        em.laneLoop(columns.get(em), prim::getConstantSize(last), [&](Index column) {
          at.back() = em.addIndex(column0, column);
          const Index offset = em.addIndex(em.mulIndex(row, em.i64(columnBlock), columnBlock), column);
          const Value element = em.loadAt(em.scratch(), p.element(), offset);
          em.streamsStores = isStreaming;
          storeEpilogue(em, p.epilogue, p.inResult(em, at), element);
          em.streamsStores = false;
        });
      });
      em.clearSources();
    });
  }

  /// Whole vectors of each row to the scratch, interleaved, and what of them is inside from there to the result.
  static void emitNarrow(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
    OpBuilder &b = em.builder();
    const int64_t rowBlock = schedule.getRows(), columns = schedule.getColumns();
    em.loop(begin, end, 1, [&](Index task) {
      const SmallVector<Index> at = p.firstOf(em, task, schedule);
      const Extent rows = blockExtent(em, p.sizes[p.dim], at[p.dim].base, rowBlock);
      em.laneLoop(rows.get(em), prim::getConstantSize(p.sizes[p.dim]), [&](Index lane) {
        SmallVector<Value> rowsHere;
        for (int64_t column = 0; column < columns; ++column) {
          SmallVector<Index> to(at);
          to[p.dim] = em.addIndex(at[p.dim], lane);
          to.back() = em.constant(column);
          rowsHere.push_back(inMemory(em, em.broadcast(em.emit(p.op.getOperand(), p.inOperand(em, to)))));
        }
        const Value all = interleaveLanes(em, rowsHere);
        const Type memory = getElementTypeOrSelf(all.getType());
        const Value start = em.address(em.scratch(), memory, em.mul(lane.base, em.i64(columns)));
        LLVM::StoreOp::create(b, em.loc(), all, start, unsigned(p.bytes()));
      });
      const Index first = em.linearize(at, p.sizes);
      const Type memory = Emitter::memoryType(p.element());
      std::optional<int64_t> count;
      if (rows.constant)
        count = *rows.constant * columns;
      em.laneLoop(em.mul(rows.get(em), em.i64(columns)), count, [&](Index lane) {
        em.storeAt(em.loadAt(em.scratch(), memory, lane), em.output(0), memory, em.addIndex(first, lane));
      });
      em.clearSources();
    });
  }

  /// A vector of each of width() lines of the operand: lanes at `lane`, lines from `column` on, both of the task at
  /// `at`.
  static SmallVector<Value> readLines(const Problem &p, Emitter &em, ArrayRef<Index> at, const Index &lane,
                                      const Index &column) {
    SmallVector<Value> vectors;
    for (Index line : linesFrom(em, em.add(at.back().base, column.base), p.sizes.back())) {
      SmallVector<Index> to(at);
      to[p.dim] = em.addIndex(at[p.dim], lane);
      to.back() = line;
      vectors.push_back(inMemory(em, em.broadcast(em.emit(p.op.getOperand(), p.inOperand(em, to)))));
    }
    return vectors;
  }

  /// The transpose's elements of `rows` x `columns` from `at` on, through the epilogue to the result.
  static void turnAndStore(const Problem &p, Emitter &em, ArrayRef<Index> at, Extent rows, Extent columns) {
    em.laneLoop(columns.get(em), prim::getConstantSize(p.sizes.back()), [&](Index column) {
      const Value inColumns = em.mask();
      em.laneLoop(rows.get(em), prim::getConstantSize(p.sizes[p.dim]), [&](Index lane) {
        const SmallVector<Value> vectors = readLines(p, em, at, lane, column);
        const bool isTail = bool(em.mask());
        for (auto [i, transposed] : llvm::enumerate(transposeLanes(em, vectors))) {
          const Index row = em.addIndex(em.uniform(lane.base, lane.multiple), em.constant(int64_t(i)));
          Value vector = transposed;
          if (const Type type = em.vectorOf(p.element()); isa<FloatType>(p.element()) && vector.getType() != type)
            vector = arith::BitcastOp::create(em.builder(), em.loc(), type, vector);
          auto store = [&] {
            SmallVector<Index> to(at);
            to[p.dim] = em.addIndex(at[p.dim], row);
            to.back() = em.addIndex(at.back(), column);
            em.withMask(inColumns, [&] { storeEpilogue(em, p.epilogue, p.inResult(em, to), vector); });
            em.clearSources();
          };
          if (isTail)
            em.ifThen(arith::CmpIOp::create(em.builder(), em.loc(), arith::CmpIPredicate::slt, row.base, rows.get(em)),
                      store);
          else
            store();
        }
      });
    });
  }

  /// The transpose's elements of `rows` x `columns` from `at` on, to the scratch: rows of `stride` elements. What lies
  /// beyond the ends is unspecified.
  static void turn(const Problem &p, Emitter &em, ArrayRef<Index> at, Extent rows, Extent columns, int64_t stride) {
    em.loop(
        em.i64(0), columns.get(em), em.width(),
        [&](Index column) {
          em.laneLoop(rows.get(em), prim::getConstantSize(p.sizes[p.dim]), [&](Index lane) {
            const SmallVector<Value> vectors = readLines(p, em, at, lane, column);
            const Index start = em.addIndex(em.mulIndex(em.uniform(lane.base), em.i64(stride), stride), column);
            const Type memory = getElementTypeOrSelf(vectors.front().getType());
            em.withMask({}, [&] {
              for (auto [i, vector] : llvm::enumerate(transposeLanes(em, vectors)))
                em.storeAt(vector, em.scratch(), memory,
                           em.contiguous(em.addIndex(start, em.constant(int64_t(i) * stride))));
            });
          });
        },
        0);
  }

  /// Address of the transpose's element at `at` in the input that it reads through reshapes.
  static Value addressOf(const Problem &p, Emitter &em, ArrayRef<Index> at) {
    return em.address(em.input(*inputThroughReshapes(p.op.getOperand())), Emitter::memoryType(p.element()),
                      em.linearize(p.inOperand(em, at), prim::getSizes(p.op.getOperand())).base);
  }
  /// Fetches `count` elements to the second-level cache from the operand's row `row` after `start` on: the rows of a
  /// task are too short for the hardware to see what comes next.
  static void fetch(const Problem &p, Emitter &em, Value start, Value row, int64_t count) {
    const Type memory = Emitter::memoryType(p.element());
    const SmallVector<AffineExpr> sizes = prim::getSizes(p.op.getOperand());
    const Value stride = em.sizeProduct(ArrayRef(sizes).drop_front(p.op.getPermutation().back() + 1));
    for (int64_t offset = 0; offset < count; offset += kLineBytes / p.bytes())
      em.prefetch(em.address(start, memory, em.add(em.mul(row, stride), em.i64(offset))));
  }

  /// Masks as bytes, and narrow floats as integers: the machine shuffles these.
  static Value inMemory(Emitter &em, Value vector) {
    OpBuilder &b = em.builder();
    const Type element = getElementTypeOrSelf(vector.getType());
    if (element.isInteger(1))
      return arith::ExtUIOp::create(b, em.loc(), em.vectorOf(b.getI8Type()), vector);
    if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
      return arith::BitcastOp::create(b, em.loc(), em.vectorOf(b.getIntegerType(element.getIntOrFloatBitWidth())),
                                      vector);
    return vector;
  }
};

} // namespace

const Generator *tc::codegen::transposeGenerator() {
  static const TransposeGenerator generator;
  return &generator;
}
