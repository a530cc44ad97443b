//===- Loops.cpp - the "gpu.rows" and "gpu.flat" strategies: memory-bound GPU kernels ----------------------------===//
//
// gpu.rows: a block per row of the largest output, which may have several dims, or per several short rows. Reductions
// along the row are shared out among its threads and combined by warp shuffles and, of several warps, one exchange
// through shared memory; the row's elements are then computed 4 a thread and access. Rows of a known length stay in
// registers from their first reading on; longer ones come from L1 then. gpu.flat: no reduction along rows; a thread
// computes 4 neighbouring elements of the output.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Gpu.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen::gpu;

namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// The output with the most elements.
unsigned largestOutput(ValueRange values) {
  unsigned best = 0;
  double most = -1;
  for (unsigned i = 0; i < values.size(); ++i) {
    const double count = getLikelyCount(values[i]);
    if (count > most) {
      most = count;
      best = i;
    }
  }
  return best;
}

/// Writes outputs other than the spanning one element by element, shared out among `threads` threads of the first
/// block.
void writeOthers(Emitter &e, ValueRange values, unsigned space, Value first, Value thread, int64_t threads) {
  bool any = values.size() > 1;
  if (!any)
    return;
  e.ifThen(first, [&] {
    for (unsigned o = 0; o < values.size(); ++o) {
      Value value = values[o];
      SmallVector<AffineExpr> own = prim::getSizes(value);
      if (o == space || own == prim::getSizes(values[space]))
        continue;
      AffineExpr count = prim::product(e.builder().getContext(), own);
      e.loop(thread, e.size(count), threads, [&](Index linear) {
        SmallVector<Index> at = e.delinearize(linear, own);
        e.store(e.emit(value, at), e.output(o), elementOf(value), own, at);
      });
    }
  });
}

SmallVector<AffineExpr> withoutOnes(ArrayRef<AffineExpr> sizes) {
  return llvm::to_vector(llvm::make_filter_range(sizes, [](AffineExpr size) { return !prim::isOne(size); }));
}

/// Rows of outputs that have an element for each of a row's, or one for each row, with reductions along them. Dims of
/// size 1 don't count.
struct RowsProblem {
  ValueRange roots;
  /// Those with one element a row, though the region computes whole rows.
  SmallVector<bool> isOfRow;
  /// Length of the longest of these reductions.
  int64_t length;
  /// The output's dims that number the blocks: all but the row's where the region computes whole rows, else all.
  SmallVector<AffineExpr> rows;
  /// Those of a row that the region computes.
  SmallVector<AffineExpr> within;
  /// Dims of all rows that are reduced, where they are known and the same; else empty.
  SmallVector<AffineExpr> known;
};

/// Of elements or of their positions.
struct RowReduction {
  Value operand, result;
  SmallVector<int64_t> dims;
};

int64_t likelyLength(ArrayRef<AffineExpr> row, Operation *scope) {
  const double count =
      row.size() == 1 ? double(getLikelySize(row.front(), scope, usual::kRowLength)) : getLikelyCount(row, scope);
  return int64_t(std::clamp(count, 1.0, double(int64_t(1) << 30)));
}

/// Elements of a row that a thread can hold, beside what is computed of them.
constexpr int64_t kHeldElements = 32, kMostThreads = 1024, kUsualThreads = 256;
/// Threads of blocks of several rows.
constexpr int64_t kSharedBlock = 128;
/// Elements that give 1024 threads something to do.
constexpr int64_t kLongRow = 8192;

/// Hands out the elements of rows of these sizes, which are known, to the team, one vector after another where these
/// are whole.
void shareRow(Emitter &e, ArrayRef<AffineExpr> sizes) {
  OpBuilder &b = e.builder();
  Emitter::Team &team = *e.team;
  const int64_t length = *prim::getConstantSize(prim::product(b.getContext(), sizes));
  const int64_t lanes = *prim::getConstantSize(sizes.back()) % e.width() == 0 ? e.width() : 1,
                perTurn = lanes * team.size;
  team.rowSizes.assign(sizes.begin(), sizes.end());
  const Value first = e.mul(team.member, e.i64(lanes));
  for (int64_t turn = 0; turn < length; turn += perTurn) {
    Emitter::Team::Share share;
    Value at = e.add(first, e.i64(turn));
    if (turn + perTurn > length) {
      share.isOwn = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, at, e.i64(length));
      at = e.min(at, e.i64(length - lanes));
    }
    const Index linear = e.uniform(at, lanes);
    llvm::append_range(share.at, e.delinearize(lanes > 1 ? e.contiguous(linear) : linear, sizes));
    team.shares.push_back(share);
  }
}

class RowsGenerator final : public GeneratorFor<kernel::GpuRowsAttr, RowsProblem> {
public:
  std::optional<RowsProblem> analyze(const RegionProblem &region) const override {
    const ValueRange roots = region.getYielded();
    SmallVector<RowReduction> reductions;
    for (Operation &op : region.getBody())
      if (auto reduce = dyn_cast<prim::ReduceOp>(op))
        reductions.push_back({reduce.getOperand(), reduce.getResult(), llvm::to_vector(reduce.getDims())});
      else if (auto arg = dyn_cast<prim::ArgReduceOp>(op))
        reductions.push_back({arg.getOperand(), arg.getResult(), {int64_t(arg.getAxis())}});
    // Rows are those of a reduction of what an output has elements of, else outputs have their results.
    SmallVector<AffineExpr> sizes = prim::getSizes(roots[largestOutput(roots)]);
    const SmallVector<AffineExpr> core = withoutOnes(sizes);
    for (const RowReduction &reduce : reductions)
      if (const auto in = prim::getSizes(reduce.operand); !reduce.dims.empty() && withoutOnes(in) == core) {
        sizes = in;
        break;
      }
    int64_t length = 0;
    // Of all rows that are reduced: the dims.
    SmallVector<SmallVector<AffineExpr>> reduced;
    size_t rank = 0; // of rows that the region computes
    bool isOfPoint = false;
    for (const RowReduction &reduce : reductions) {
      const auto in = prim::getSizes(reduce.operand), out = prim::getSizes(reduce.result);
      // All threads of a block must meet in every shared reduction: each lies along the rows of the grid, or is the
      // grid's point.
      for (auto [i, dim] : llvm::enumerate(reduce.dims))
        if (dim != int64_t(in.size() - reduce.dims.size() + i))
          return std::nullopt;
      const ArrayRef<AffineExpr> along = ArrayRef(in).take_back(reduce.dims.size());
      if (in == sizes && !along.empty() && (rank == 0 || rank == along.size()))
        rank = along.size();
      else if (withoutOnes(out) == core)
        isOfPoint = true;
      else
        return std::nullopt;
      if (!along.empty()) {
        reduced.emplace_back(along);
        length = std::max(length, likelyLength(along, reduce.result.getDefiningOp()));
      }
    }
    // Threads at elements of their own must not meet: they don't where lanes lie along the row.
    if (length == 0 || (rank && isOfPoint && prim::getConstantSize(sizes.back()).value_or(1) % kLanes != 0))
      return std::nullopt;
    const ArrayRef<AffineExpr> all(sizes);
    const SmallVector<AffineExpr> rowCore = withoutOnes(all.drop_back(rank));
    SmallVector<bool> isOfRow;
    for (Value root : roots) {
      const SmallVector<AffineExpr> own = withoutOnes(prim::getSizes(root));
      isOfRow.push_back(own != core);
      if (own != core && own != rowCore)
        return std::nullopt;
    }
    const bool isKnown = llvm::all_equal(reduced) && llvm::all_of(reduced[0], [](AffineExpr size) {
                           return prim::getConstantSize(size).value_or(0) > 0;
                         });
    return RowsProblem{roots,
                       isOfRow,
                       length,
                       SmallVector<AffineExpr>(all.drop_back(rank)),
                       SmallVector<AffineExpr>(all.take_back(rank)),
                       isKnown ? reduced[0] : SmallVector<AffineExpr>{}};
  }

  FailureOr<kernel::GpuRowsAttr> decide(const RegionProblem &region, const RowsProblem &p) const override {
    auto threadsFor = [&](int64_t perThread) {
      return int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(p.length, perThread)));
    };
    kernel::GpuRowsAttr::Params params;
    params.space = largestOutput(region.getYielded());
    params.inRegisters = !p.known.empty() && threadsFor(kHeldElements) <= kMostThreads;
    const double share = getLikelyCount(p.rows, region.getYielded().front().getDefiningOp()) /
                         double(machine::getDefaultGpu(region.getContext()).getMultiprocessors());
    // Of few blocks each has a multiprocessor for itself. Else threads hold 16 elements of long rows, which meet less
    // often then, and 8 of short ones; where they read rows again, 4 at a time, more threads find them in L1.
    if (p.length >= kLongRow && share <= 1)
      params.block = std::min(threadsFor(kLanes), kMostThreads);
    else if (params.inRegisters)
      params.block = std::clamp(threadsFor(16), std::min(threadsFor(8), machine::kWarpThreads), kUsualThreads);
    else
      params.block = std::clamp(threadsFor(kLanes), machine::kWarpThreads, kUsualThreads);
    if (params.inRegisters) {
      params.block = std::max(params.block, threadsFor(kHeldElements));
      setRows(params, share);
    }
    return params.get(region.getContext());
  }

  std::optional<double> compareAtSizes(const RegionProblem &region, const RowsProblem &p,
                                       kernel::GpuRowsAttr schedule) const override {
    // More rows a block cost small sizes nothing.
    const FailureOr<kernel::GpuRowsAttr> chosen = decide(region, p);
    return succeeded(chosen) && chosen->getInRegisters() == schedule.getInRegisters() &&
                   threadsOfRow(*chosen) == threadsOfRow(schedule) && chosen->getRows() <= schedule.getRows()
               ? 1
               : kOtherSchedule;
  }

  /// More and fewer threads, and rows that are read again instead of held.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const RowsProblem &p) const override {
    const FailureOr<kernel::GpuRowsAttr> chosen = decide(region, p);
    SmallVector<kernel::ScheduleAttr> others;
    auto add = [&](int64_t ofRow, bool inRegisters) {
      kernel::GpuRowsAttr::Params params = chosen->getParams();
      params.block = ofRow;
      params.rows = 1;
      params.inRegisters = inRegisters;
      if (inRegisters && ofRow > 0)
        setRows(params, kSharedBlock);
      if (params.block >= machine::kWarpThreads && params.block <= kMostThreads &&
          (!inRegisters || int64_t(llvm::divideCeil(p.length, ofRow)) <= kHeldElements))
        others.push_back(params.get(region.getContext()));
    };
    const int64_t ofRow = threadsOfRow(*chosen);
    for (int64_t other : {ofRow * 2, ofRow / 2, ofRow * 4, ofRow / 4})
      add(other, chosen->getInRegisters());
    if (chosen->getInRegisters())
      add(std::max(ofRow, machine::kWarpThreads), false);
    return others;
  }

  SmallVector<Launch> makeLaunches(const RowsProblem &p, kernel::GpuRowsAttr schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::simplifySize(prim::product(context, p.rows).ceilDiv(schedule.getRows()));
    launch.device = deviceAttr(context, schedule.getBlock());
    return {launch};
  }

  void emitTasks(const RowsProblem &p, kernel::GpuRowsAttr schedule, unsigned, Emitter &e, Value begin,
                 Value) const override {
    OpBuilder &b = e.builder();
    const int64_t teams = schedule.getRows(), threads = threadsOfRow(schedule);
    makeTeam(e, threads, teams);
    // Beyond the last row the last one is computed, as threads of a warp meet, and not stored.
    Value number = begin, isRow;
    if (teams > 1) {
      number = e.add(e.mul(begin, e.i64(teams)), e.divUnsigned(threadIndex(e), e.i64(threads)));
      const AffineExpr count = prim::product(b.getContext(), p.rows);
      if (prim::getConstantSize(count).value_or(1) % teams != 0) {
        const Value rows = e.size(count);
        isRow = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, number, rows);
        number = e.min(number, e.sub(rows, e.i64(1)));
      }
    }
    // All are computed by all threads, as reductions lie on the way, before any is stored.
    struct Element {
      unsigned output;
      Value value;
      SmallVector<Index> at;
    };
    const SmallVector<Index> row = e.delinearize(e.uniform(number), p.rows);
    auto compute = [&](bool isOfRow, ArrayRef<Index> within) {
      SmallVector<Element> elements;
      for (auto [number, root] : llvm::enumerate(p.roots))
        if (p.isOfRow[number] == isOfRow) {
          const SmallVector<Index> at = placeOf(p, e, root, row, within);
          elements.push_back({unsigned(number), e.emit(root, at), at});
        }
      return elements;
    };
    auto storeIf = [&](Value condition, ArrayRef<Element> elements) {
      if (isRow)
        condition = condition ? arith::AndIOp::create(b, e.loc(), condition, isRow) : isRow;
      auto store = [&] {
        for (const Element &element : elements) {
          const Value root = p.roots[element.output];
          e.store(element.value, e.output(element.output), elementOf(root), prim::getSizes(root), element.at);
        }
      };
      condition ? e.ifThen(condition, store) : store();
    };
    auto storeOnce = [&](ArrayRef<Element> elements) {
      if (!elements.empty())
        storeIf(arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, e.team->member, e.i64(0)), elements);
    };
    if (schedule.getInRegisters())
      shareRow(e, p.known);
    if (p.within.empty())
      return storeOnce(compute(false, {}));
    const SmallVector<Element> ofRow = compute(true, {});
    const int64_t width = e.width(),
                  lanes = prim::getConstantSize(p.within.back()).value_or(1) % width == 0 ? width : 1;
    if (schedule.getInRegisters()) {
      for (const Emitter::Team::Share &share : e.team->shares)
        storeIf(share.isOwn, compute(false, share.at));
    } else {
      e.loop(
          e.mul(e.team->member, e.i64(lanes)), e.sizeProduct(p.within), lanes * threads,
          [&](Index iv) { storeIf({}, compute(false, e.delinearize(lanes > 1 ? e.contiguous(iv) : iv, p.within))); },
          lanes);
    }
    storeOnce(ofRow);
  }

private:
  static int64_t threadsOfRow(kernel::GpuRowsAttr schedule) { return schedule.getBlock() / schedule.getRows(); }
  /// Makes blocks of params.block threads, those of a row, blocks of several rows, where these are a warp's threads at
  /// most and each processor has `share` rows: as many blocks as rows, of few threads each, would begin one by one.
  static void setRows(kernel::GpuRowsAttr::Params &params, double share) {
    const int64_t ofRow = params.block;
    if (ofRow > machine::kWarpThreads)
      return;
    while (params.block < machine::kWarpThreads || (params.block < kSharedBlock && double(params.rows * 2) <= share)) {
      params.block *= 2;
      params.rows *= 2;
    }
  }

  /// The place in an output: of the row, or of the element `within` it.
  static SmallVector<Index> placeOf(const RowsProblem &p, Emitter &e, Value root, ArrayRef<Index> row,
                                    ArrayRef<Index> within) {
    SmallVector<Index> known;
    for (auto [sizes, at] : {std::pair(ArrayRef(p.rows), row), std::pair(ArrayRef(p.within), within)})
      for (auto [number, index] : llvm::enumerate(at))
        if (!prim::isOne(sizes[number]))
          known.push_back(index);
    SmallVector<Index> place;
    unsigned next = 0;
    for (AffineExpr size : prim::getSizes(root))
      place.push_back(prim::isOne(size) ? e.constant(0) : known[next++]);
    return place;
  }
};

/// The region's outputs.
struct FlatProblem {
  ValueRange values;
};

/// Most pieces of a thread; blocks that a processor should have in turn.
constexpr int64_t kMostPieces = 4, kBlocksPerProcessor = 16;

class FlatGenerator final : public GeneratorFor<kernel::GpuFlatAttr, FlatProblem> {
public:
  std::optional<FlatProblem> analyze(const RegionProblem &region) const override {
    return FlatProblem{region.getYielded()};
  }

  FailureOr<kernel::GpuFlatAttr> decide(const RegionProblem &region, const FlatProblem &p) const override {
    kernel::GpuFlatAttr::Params params;
    params.block = 256;
    params.space = largestOutput(p.values);
    // Several reads are under way at once where that leaves work for all processors, and no loop makes code long.
    // Pieces outside read the last one: there must be one (makeLaunches).
    const bool isPlain = p.values.size() == 1 && llvm::all_of(region.getBody().without_terminator(), [](Operation &op) {
                           return op.getNumRegions() == 0 &&
                                  !isa<prim::ReduceOp, prim::ArgReduceOp, prim::DotGeneralOp, prim::ConvOp>(op);
                         });
    const Value root = p.values[params.space];
    const double blocks = getLikelyCount(root) / double(params.block * lanesOf(root));
    const double processors = double(machine::getDefaultGpu(region.getContext()).getMultiprocessors());
    while (isPlain && params.pieces < kMostPieces &&
           blocks / double(2 * params.pieces) >= kBlocksPerProcessor * processors)
      params.pieces *= 2;
    return params.get(region.getContext());
  }

  /// More and fewer threads and, where there are several already, pieces.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const FlatProblem &p) const override {
    const kernel::GpuFlatAttr::Params chosen = decide(region, p)->getParams();
    SmallVector<kernel::ScheduleAttr> others;
    auto add = [&](int64_t block, int64_t pieces) {
      kernel::GpuFlatAttr::Params params = chosen;
      params.block = block;
      params.pieces = pieces;
      others.push_back(params.get(region.getContext()));
    };
    for (int64_t block : {chosen.block / 2, chosen.block * 2})
      add(block, chosen.pieces);
    if (chosen.pieces > 1)
      for (int64_t pieces : {chosen.pieces / 2, chosen.pieces * 2})
        add(chosen.block, pieces);
    return others;
  }

  SmallVector<Launch> makeLaunches(const FlatProblem &p, kernel::GpuFlatAttr schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    Value root = p.values[schedule.getSpace()];
    int64_t perBlock = schedule.getBlock() * lanesOf(root) * schedule.getPieces();
    AffineExpr elements = prim::product(context, prim::getSizes(root));
    // The first block writes the other outputs, also where this one has no elements.
    if (p.values.size() > 1 && prim::getConstantSize(elements).value_or(0) == 0)
      elements = elements + 1;
    launch.tasks = prim::simplifySize(elements.ceilDiv(perBlock));
    launch.device = deviceAttr(context, schedule.getBlock());
    // A thread reads of these what it writes, before it writes.
    for (auto [i, argument] : llvm::enumerate(root.getParentBlock()->getArguments()))
      for (auto [o, value] : llvm::enumerate(p.values))
        if (argument.getType() == value.getType() && prim::getSizes(value) == prim::getSizes(root) &&
            isPointwiseUse(argument))
          launch.inPlace.append({int64_t(i), int64_t(o)});
    return {launch};
  }

  void emitTasks(const FlatProblem &p, kernel::GpuFlatAttr schedule, unsigned, Emitter &e, Value begin,
                 Value) const override {
    const ValueRange values = p.values;
    const unsigned space = schedule.getSpace();
    const int64_t threads = schedule.getBlock(), lanes = lanesOf(values[space]), perPiece = threads * lanes;
    const SmallVector<AffineExpr> sizes = prim::getSizes(values[space]);
    e.alignedBuffers = true;
    e.argReduceLanes = true;
    const Value thread = threadIndex(e), count = e.sizeProduct(sizes);
    const Value start = e.add(e.mul(begin, e.i64(perPiece * schedule.getPieces())), e.mul(thread, e.i64(lanes)));
    auto positionOf = [&](Value linear) {
      const Index first = e.uniform(linear, lanes);
      return e.delinearize(lanes == 1 ? first : e.contiguous(first), sizes);
    };
    auto isSpanning = [&](Value value) { return prim::getSizes(value) == sizes; };
    auto store = [&](unsigned number, Value value, ArrayRef<Index> at) {
      e.store(value, e.output(number), elementOf(values[number]), sizes, at);
    };
    auto isInside = [&](Value at) -> Value {
      return arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::slt, at, count);
    };
    if (schedule.getPieces() == 1) {
      e.ifThen(isInside(start), [&] {
        const SmallVector<Index> at = positionOf(start);
        SmallVector<std::pair<unsigned, Value>> computed;
        for (auto [number, value] : llvm::enumerate(values))
          if (isSpanning(value))
            computed.push_back({unsigned(number), e.emit(value, at)});
        for (const auto &[number, value] : computed)
          store(number, value, at);
      });
    } else {
      // All is read before anything is stored; what lies outside is read of the last piece.
      struct Piece {
        Value start;
        SmallVector<Index> at;
        SmallVector<Value> values;
      };
      SmallVector<Piece, 0> pieces;
      for (int64_t i = 0; i < schedule.getPieces(); ++i) {
        Piece piece{e.add(start, e.i64(i * perPiece)), {}, {}};
        piece.at = positionOf(e.min(piece.start, e.sub(count, e.i64(lanes))));
        for (Value value : values)
          piece.values.push_back(isSpanning(value) ? e.emit(value, piece.at) : Value());
        pieces.push_back(piece);
      }
      for (const Piece &piece : pieces)
        e.ifThen(isInside(piece.start), [&] {
          for (auto [number, value] : llvm::enumerate(piece.values))
            if (value)
              store(number, value, piece.at);
        });
    }
    Value first = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, begin, e.i64(0));
    writeOthers(e, values, space, first, thread, threads);
  }

private:
  /// 4 where rows split into whole groups of 4, so that a group never crosses rows; else 1.
  static int64_t lanesOf(Value root) {
    SmallVector<AffineExpr> sizes = prim::getSizes(root);
    if (sizes.empty())
      return 1;
    auto last = prim::getConstantSize(sizes.back());
    return last && *last > 0 && *last % 4 == 0 ? 4 : 1;
  }
};

} // namespace

const Generator *tc::codegen::gpuRowsGenerator() {
  static const RowsGenerator generator;
  return &generator;
}
const Generator *tc::codegen::gpuFlatGenerator() {
  static const FlatGenerator generator;
  return &generator;
}
