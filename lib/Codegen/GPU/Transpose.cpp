//===- Transpose.cpp - the "gpu.transpose" strategy: another dim becomes the last --------------------------------===//
//
// A block reads a tile of the operand with neighbouring threads along its last dim, turns it in shared memory, and goes
// on with neighbouring threads along the result's: both read and write whole lines of 128 bytes. A warp takes 8 by 4
// pieces of the tile, whose rows are one word longer than they need, so that its accesses meet all banks. All of a
// thread's loads are under way before the first is used.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Transpose.h"
#include "Common/Anchor.h"
#include "GPU/SharedTile.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

using Schedule = kernel::GpuTransposeAttr;

constexpr int64_t kThreads = 256;
// Tiles of pieces of several lanes, and of single elements: four pieces a thread.
constexpr int64_t kTile = 64, kTileOfElements = 32;
// Pieces of a line that a warp takes.
constexpr int64_t kPiecesOfLine = 8;

int64_t lanesAlong(AffineExpr size) {
  const std::optional<int64_t> known = prim::getConstantSize(size);
  return known && *known % kLanes == 0 ? kLanes : 1;
}

class TransposeGenerator final : public GeneratorFor<Schedule, TransposeProblem> {
public:
  std::optional<TransposeProblem> analyze(const RegionProblem &region) const override {
    std::optional<TransposeProblem> problem = analyzeTranspose(region);
    return problem && !problem->isNarrow ? problem : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const TransposeProblem &p) const override {
    Schedule::Params params;
    const bool hasLanes = lanesAlong(p.sizes[p.dim]) > 1 && lanesAlong(p.sizes.back()) > 1;
    params.tile = hasLanes ? kTile : kTileOfElements;
    return params.get(region.getContext());
  }

  /// The other tile.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const TransposeProblem &p) const override {
    Schedule::Params params = decide(region, p)->getParams();
    params.tile = params.tile == kTile ? kTileOfElements : kTile;
    return {params.get(region.getContext())};
  }

  SmallVector<Launch> makeLaunches(const TransposeProblem &p, Schedule s) const override {
    MLIRContext *context = s.getContext();
    Launch launch;
    launch.tasks = prim::product(context, grid(p, s));
    launch.device = deviceAttr(context, kThreads);
    launch.inPlace = p.epilogue.inPlace();
    return {launch};
  }

  void emitTasks(const TransposeProblem &p, Schedule s, unsigned, Emitter &e, Value begin, Value) const override {
    OpBuilder &b = e.builder();
    e.alignedBuffers = true;
    const int64_t tile = s.getTile(), stride = tile + 1;
    SmallVector<Index> at = e.delinearize(e.uniform(begin), grid(p, s));
    const Value column0 = e.mul(at.pop_back_val().base, e.i64(tile)), row0 = e.mul(at.pop_back_val().base, e.i64(tile));
    const AffineExpr rows = p.sizes[p.dim], columns = p.sizes.back();
    const Type element = p.element();
    const Value shared = sharedArray(e, "tile", Emitter::memoryType(element), tile * stride), thread = threadIndex(e);
    auto positionAt = [&](const Index &row, const Index &column) {
      SmallVector<Index> position(at);
      position.insert(position.begin() + p.dim, row);
      position.push_back(column);
      return position;
    };
    auto along = [&](Value first, int64_t lanes) {
      return lanes == 1 ? e.uniform(first) : e.contiguous(e.uniform(first, lanes));
    };
    // Calls fn(first of the line's elements, line) for the thread's pieces of the tile.
    auto forPieces = [&](int64_t lanes, llvm::function_ref<void(Value, Value)> fn) {
      for (int64_t first = 0; first < tile * tile / lanes; first += kThreads) {
        const Value number = e.add(thread, e.i64(first));
        const Value piece = e.remUnsigned(number, e.i64(kPiecesOfLine)),
                    rest = e.divUnsigned(number, e.i64(kPiecesOfLine));
        const Value line = e.remUnsigned(rest, e.i64(tile)), block = e.divUnsigned(rest, e.i64(tile));
        fn(e.mul(e.add(e.mul(block, e.i64(kPiecesOfLine)), piece), e.i64(lanes)), line);
      }
    };
    auto isInside = [&](Value row, Value column) {
      return andWithin(e, andWithin(e, Value(), row, rows, tile), column, columns, tile);
    };

    const int64_t readLanes = lanesAlong(rows);
    const Type valueType = Emitter::valueType(element);
    Value zero = arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(valueType));
    if (readLanes > 1)
      zero = e.broadcast(zero);
    SmallVector<Value> read;
    forPieces(readLanes, [&](Value rowInTile, Value columnInTile) {
      const Value row = e.add(row0, rowInTile), column = e.add(column0, columnInTile);
      auto value = [&] {
        const Value x = e.emit(p.op.getOperand(), p.inOperand(e, positionAt(along(row, readLanes), e.uniform(column))));
        return readLanes > 1 && !isa<VectorType>(x.getType()) ? e.broadcast(x) : x;
      };
      const Value inside = isInside(row, column);
      read.push_back(inside ? e.emitGuarded(inside, element, zero, readLanes > 1, value) : value());
    });
    size_t number = 0;
    forPieces(readLanes, [&](Value rowInTile, Value columnInTile) {
      const Value value = read[number++];
      for (int64_t i = 0; i < readLanes; ++i) {
        const Value one = readLanes == 1 ? value : vector::ExtractOp::create(b, e.loc(), value, i).getResult();
        const Value word = e.add(e.mul(e.add(rowInTile, e.i64(i)), e.i64(stride)), columnInTile);
        e.storeAt(one, shared, element, e.uniform(word));
      }
    });
    e.clearSources();
    barrier(e);
    const int64_t lanes = lanesAlong(columns);
    forPieces(lanes, [&](Value columnInTile, Value rowInTile) {
      const Value row = e.add(row0, rowInTile), column = e.add(column0, columnInTile);
      auto store = [&] {
        SmallVector<Value> elements;
        const Value first = e.add(e.mul(rowInTile, e.i64(stride)), columnInTile);
        for (int64_t i = 0; i < lanes; ++i)
          elements.push_back(e.loadAt(shared, element, e.uniform(e.add(first, e.i64(i)))));
        const Value value = lanes == 1 ? elements.front()
                                       : vector::FromElementsOp::create(
                                             b, e.loc(), VectorType::get({lanes}, elements.front().getType()), elements)
                                             .getResult();
        storeEpilogue(e, p.epilogue, p.inResult(e, positionAt(e.uniform(row), along(column, lanes))), value);
        e.clearSources();
      };
      const Value inside = isInside(row, column);
      inside ? e.ifThen(inside, store) : store();
    });
  }

private:
  /// The dims that stay outside, blocks of rows, blocks of columns.
  static SmallVector<AffineExpr> grid(const TransposeProblem &p, Schedule s) {
    SmallVector<AffineExpr> grid;
    for (size_t i = 0; i + 1 < p.sizes.size(); ++i)
      if (i != p.dim)
        grid.push_back(p.sizes[i]);
    grid.push_back(prim::simplifySize(p.sizes[p.dim].ceilDiv(s.getTile())));
    grid.push_back(prim::simplifySize(p.sizes.back().ceilDiv(s.getTile())));
    return grid;
  }
};

} // namespace

const Generator *tc::codegen::gpuTransposeGenerator() {
  static const TransposeGenerator generator;
  return &generator;
}
