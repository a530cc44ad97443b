//===- Fft.cpp - the "cpu.fft" strategy: prim.fft -----------------------------------------------------------------===//
//
// A task is one transform, with lanes along its elements, or (parameter `batch`) as many as lie beside each other, with
// lanes along these: columns of the operand's inner dim, or short rows. The operand is read through the emitter in the
// first pass (FftPasses.h), once; the last pass writes the result.
//
// Real elements (`packed`): x[2 n] + i x[2 n + 1] is transformed, with Z the result of M = N / 2 elements
//
//   X[k] = (Z[k] + conj Z[M - k]) / 2 - i/2 exp(-2 pi i k / N) (Z[k] - conj Z[M - k])
//
// and back likewise. Lengths with large prime factors (`bluestein`): with c[n] = exp(-pi i n^2 / N), n k = (n^2 + k^2 -
// (k - n)^2) / 2 makes X[k] = c[k] sum of x[n] c[n] conj c[k - n], a convolution, by two transforms of another length.
// The inverse transform is the one forward with real and imaginary parts swapped on both sides.
//
// Lengths that only the run knows, or of large tables (`twiddleLaunch`): a launch computes the factors; the other one
// is of two steps, of which the first computes the spectrum of the chirp c. Smooth lengths of whole vectors, from 16
// on, are transformed directly, all others by a convolution.
//
// Short transforms, and those of lengths that the run knows, are computed in f64: rounding errors of a convolution are
// several times those of the passes, and short sums are expected to be exact to the last bit.
//
// Source of the convolution: Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
// 1970.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/FftPasses.h"
#include "Common/EmitterHelpers.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuFftAttr;

/// Transforms of a task that lanes run along, a multiple of all vector widths.
constexpr int64_t kBatch = 16;
/// Inner dims from here on, and rows up to this length, leave no better use of lanes.
constexpr int64_t kLeastColumns = 8, kShortRow = 32;
/// Elements of tables in the code, of all kinds.
constexpr int64_t kMostTableElements = 1 << 17;
/// What a thread should get, in flops.
constexpr double kGrainFlops = 6e5;
/// Tasks of the launch that computes factors.
constexpr int64_t kTableTasks = 16;

struct Problem {
  mutable prim::FftOp op; // accessors of ops are not const
  SmallVector<AffineExpr> in, out;
  AffineExpr length;
  /// N and K, where they are known.
  std::optional<int64_t> count, outputs;

  Type element() const { return cast<RankedTensorType>(op.getType()).getElementType(); }
  /// What it is computed in.
  Type computed(Schedule schedule) const {
    const bool inDouble = schedule.getTwiddleLaunch() || (schedule.getBatch() && *count < kShortRow);
    return inDouble ? Type(Float64Type::get(op->getContext())) : element();
  }
  int64_t bytes(Schedule schedule) const { return Emitter::memoryBytes(computed(schedule)); }
  bool isReal() const { return prim::isOne(in[3]); }
  bool givesReal() const { return prim::isOne(out[3]); }
  bool isSingleColumn() const { return prim::isOne(in[2]); }
  /// Whether real elements, or those of half a spectrum, can be taken in pairs.
  bool canPack() const {
    if (!count || !outputs || *count % 2 || !isSingleColumn())
      return false;
    return op.getHalf() ? !isReal() && givesReal() && *outputs == *count : isReal() && !givesReal();
  }
  AffineExpr scalar(int64_t value) const { return getAffineConstantExpr(value, op->getContext()); }
};

/// Elements of each of the complex transforms that a schedule asks for, and of their planes.
struct Lengths {
  Lengths(const Problem &p, Schedule schedule)
      : elements(schedule.getPacked() ? *p.count / 2 : *p.count),
        transformed(schedule.getBluestein() ? schedule.getBluestein() : elements) {}
  int64_t elements, transformed;

  int64_t planeElements(Schedule schedule) const {
    return roundUp(transformed * std::max<int64_t>(1, schedule.getBatch()) + FftPasses::kSlack, 16);
  }
};
/// Planes of a task: two buffers, and for packed real elements the result of the transform.
int64_t countPlanes(Schedule schedule) { return schedule.getPacked() ? 6 : 4; }
constexpr int64_t kRunTimePlanes = 4;
/// Elements before a plane, which are read and not used.
constexpr int64_t kMargin = 16;

/// Most elements of the run-time tables and planes of a transform by convolution.
AffineExpr runTimeElements(const Problem &p) {
  return prim::simplifySize(p.length * 4 + 2 * kMargin + FftPasses::kSlack);
}

/// Transforms by one task each.
AffineExpr tasksOf(const Problem &p) { return prim::simplifySize(p.in[0] * p.in[2]); }

/// Code of a task, or of the launch before.
class FftKernel {
public:
  FftKernel(const Problem &p, Schedule schedule, Emitter &e)
      : p(p), schedule(schedule), e(e), b(e.builder()), element(p.computed(schedule)),
        passes(e, element, schedule.getBatch()) {}

  void emitTasks(unsigned number, unsigned inputs, Value begin, Value end) {
    if (!schedule.getTwiddleLaunch()) {
      prepareTables();
      return e.loop(begin, end, 1, [&](Index task) { emitTransform(task); });
    }
    prepareRunTime();
    if (number == 0)
      return e.loop(begin, end, 1, [&](Index task) { emitTables(task, e.output(0), e.output(1)); });
    twiddles = planesAt(e.input(inputs), runTimeSize);
    chirp = planesAt(e.input(inputs + 1), runTimeSize);
    spectrum = planesAt(e.output(1), runTimeSize);
    e.loop(begin, end, 1, [&](Index task) { emitRunTimeTask(task); });
  }

private:
  //===--- reading and writing
  //--------------------------------------------------------------------------------------===//

  /// Finds the transforms of a task.
  void place(Index task) {
    remaining = {};
    const int64_t batch = schedule.getBatch();
    if (!batch) {
      const SmallVector<AffineExpr> grid{p.in[0], p.in[2]};
      const SmallVector<Index> at = e.delinearize(task, grid);
      outer = at[0];
      inner = at[1];
      return;
    }
    const bool alongRows = p.isSingleColumn();
    const AffineExpr along = alongRows ? p.in[0] : p.in[2], blocks = prim::simplifySize(along.ceilDiv(batch));
    const SmallVector<AffineExpr> grid{alongRows ? p.scalar(1) : p.in[0], blocks};
    const SmallVector<Index> at = e.delinearize(task, grid);
    outer = at[0];
    inner = e.constant(0);
    (alongRows ? outer : inner) = e.mulIndex(at[1], e.i64(batch), batch);
    const std::optional<int64_t> known = prim::getConstantSize(along);
    if (!known || *known % batch)
      remaining = e.sub(e.size(along), (alongRows ? outer : inner).base);
  }
  /// The position of the transforms of a lane.
  std::pair<Index, Index> transformsOf(const FftElements &at) const {
    if (!schedule.getBatch())
      return {outer, inner};
    return p.isSingleColumn() ? std::pair(e.addIndex(outer, at.lane), inner)
                              : std::pair(outer, e.addIndex(inner, at.lane));
  }
  /// So many lanes hold transforms; null: all.
  Value validLanes(const FftElements &at) const {
    return schedule.getBatch() && remaining ? e.sub(remaining, at.lane.base) : Value();
  }
  void withValid(Value valid, llvm::function_ref<void()> fn) { e.withMask(valid ? tailMask(e, valid) : Value(), fn); }

  /// `inside` where elements of `at` are before `limit`, else zeros.
  ComplexVector before(AffineExpr limit, const FftElements &at, llvm::function_ref<ComplexVector()> inside) {
    const std::optional<int64_t> known = prim::getConstantSize(limit);
    const Value zero = passes.constant(0);
    if (known && at.begin >= *known)
      return {zero, zero};
    if (known && at.end <= *known)
      return inside();
    const Value position = e.materialize(at.index);
    const Value isWithin =
        arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, position,
                              isa<VectorType>(position.getType()) ? e.broadcast(e.size(limit)) : e.size(limit));
    if (isa<VectorType>(isWithin.getType())) {
      const Value outside = e.mask();
      const Value on = outside ? Value(arith::AndIOp::create(b, e.loc(), outside, isWithin)) : isWithin;
      ComplexVector x;
      e.withMask(on, [&] { x = inside(); });
      return {arith::SelectOp::create(b, e.loc(), isWithin, x.re, zero),
              arith::SelectOp::create(b, e.loc(), isWithin, x.im, zero)};
    }
    auto part = [&](Value ComplexVector::*which) {
      return e.emitGuarded(isWithin, element, zero, /*lanes=*/true, [&] { return inside().*which; });
    };
    return {part(&ComplexVector::re), part(&ComplexVector::im)};
  }

  /// Elements of the operand.
  ComplexVector read(const FftElements &at) {
    return before(p.in[1], at, [&] {
      const auto [row, column] = transformsOf(at);
      auto part = [&, row = row, column = column](int64_t number) {
        const SmallVector<Index> position{row, at.index, column, e.constant(number)};
        const Value value = e.broadcast(e.emit(p.op.getOperand(), position));
        return p.element() == element ? value : Value(arith::ExtFOp::create(b, e.loc(), e.vectorOf(element), value));
      };
      ComplexVector x{{}, passes.constant(0)};
      auto readParts = [&] {
        x.re = part(0);
        if (!p.isReal())
          x.im = part(1);
      };
      if (schedule.getBatch())
        withValid(validLanes(at), readParts);
      else
        readParts();
      return x;
    });
  }
  /// The same at positions that only the run knows: `positions` for each lane, or for all.
  ComplexVector readAt(const FftElements &at, Value positions) {
    FftElements there = at;
    there.begin = 0;
    there.end = INT64_MAX;
    if (isa<VectorType>(positions.getType())) {
      Index index;
      index.lanes = positions;
      index.depth = e.depthOf({at.index, at.lane});
      there.index = index;
    } else {
      there.index = e.uniform(positions);
    }
    return read(there);
  }
  /// Elements of the transform that `op` names, forward.
  ComplexVector readElement(const FftElements &at) {
    auto directed = [&](ComplexVector x) { return p.op.getInverse() ? x.swapped() : x; };
    if (!p.op.getHalf())
      return directed(read(at));
    // Beyond the middle the conjugates of what lies before it.
    const Value position = e.materialize(at.index);
    auto like = [&](Value scalar) { return isa<VectorType>(position.getType()) ? e.broadcast(scalar) : scalar; };
    const Value count = e.size(p.length), middle = e.divUnsigned(count, e.i64(2));
    const Value isMirrored = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sgt, position, like(middle));
    const Value mirrored = arith::SubIOp::create(b, e.loc(), like(count), position);
    ComplexVector x = readAt(at, arith::SelectOp::create(b, e.loc(), isMirrored, mirrored, position));
    x.im = arith::SelectOp::create(b, e.loc(), isMirrored, passes.negate(x.im), x.im);
    return directed(x);
  }

  /// Imaginary parts of a transform of real elements: that of the first one and of the middle one are 0, whatever is
  /// rounded.
  Value withoutRealOnes(const FftElements &at, Value imaginary) {
    const Value position = e.materialize(at.index);
    auto isAt = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, x,
                                   isa<VectorType>(x.getType()) ? e.broadcast(y) : y);
    };
    const Value twice = arith::AddIOp::create(b, e.loc(), position, position);
    const Value isReal = arith::OrIOp::create(b, e.loc(), isAt(position, e.i64(0)), isAt(twice, e.size(p.length)));
    return arith::SelectOp::create(b, e.loc(), isReal, passes.constant(0), imaginary);
  }
  /// Writes elements of the transform that `op` names.
  void writeElement(const FftElements &at, ComplexVector x) {
    if (p.op.getInverse())
      x = x.swapped();
    const std::optional<int64_t> limit = p.outputs;
    if (limit && at.begin >= *limit)
      return;
    if (p.isReal() && !p.op.getHalf())
      x.im = withoutRealOnes(at, x.im);
    const bool isWhole = limit && at.end <= *limit;
    const auto [row, column] = transformsOf(at);
    SmallVector<Index> position{row, at.index, column, e.constant(0)};
    Value valid = schedule.getBatch() ? validLanes(at) : at.valid;
    if (schedule.getBatch() && !isWhole) { // one condition for all lanes
      e.ifThen(e.isWithin(at.index.base, p.out[1]), [&] { writeValid(position, valid, x); });
      return;
    }
    if (!isWhole) {
      const Value left = e.sub(e.size(p.out[1]), at.index.base);
      valid = valid ? e.min(valid, left) : left;
    }
    writeValid(position, valid, x);
  }
  void writeValid(SmallVector<Index> position, Value valid, ComplexVector x) {
    if (p.element() != element) {
      const Type narrow = e.vectorOf(p.element());
      x = {arith::TruncFOp::create(b, e.loc(), narrow, x.re), arith::TruncFOp::create(b, e.loc(), narrow, x.im)};
    }
    const bool alongRows = schedule.getBatch() && p.isSingleColumn();
    const bool adjacent = schedule.getBatch() ? !alongRows : p.isSingleColumn();
    if (adjacent && !p.givesReal())
      return passes.storePairs(x, e.output(0), e.linearize(position, p.out).base, valid);
    withValid(valid, [&] {
      e.store(x.re, e.output(0), p.element(), p.out, position);
      if (p.givesReal())
        return;
      position.back() = e.constant(1);
      e.store(x.im, e.output(0), p.element(), p.out, position);
    });
  }

  //===--- lengths that are known
  //-----------------------------------------------------------------------------------===//

  void prepareTables() {
    const Lengths lengths(p, schedule);
    elements = lengths.elements;
    const int64_t radix = schedule.getParams().radixFor(e.vectors().bits);
    plan = planFft(lengths.transformed, e.width(), !schedule.getBatch(), radix);
    twiddles = tableOf(makeTwiddles(plan));
    if (schedule.getBluestein()) {
      std::vector<HostComplex> padded = makeChirp(elements);
      padded.resize(lengths.transformed);
      chirp = tableOf(padded);
      spectrum = tableOf(makeChirpSpectrum(elements, lengths.transformed));
    }
    if (schedule.getPacked()) {
      std::vector<HostComplex> list;
      for (int64_t k = 0; k < roundUp(elements, kMargin); ++k)
        list.push_back(rootOfUnity(k, 2 * elements) * (p.op.getHalf() ? 1.0L : 0.5L));
      roots = tableOf(list);
    }
    const int64_t bytes = p.bytes(schedule);
    const int64_t planeBytes = (lengths.planeElements(schedule) + kMargin) * bytes;
    auto planesFrom = [&](int64_t number) {
      return Planes{e.scratch(number * planeBytes + kMargin * bytes),
                    e.scratch((number + 1) * planeBytes + kMargin * bytes)};
    };
    buffers[0] = planesFrom(0);
    buffers[1] = planesFrom(2);
    if (schedule.getPacked())
      packedResult = planesFrom(4);
  }
  Planes tableOf(const std::vector<HostComplex> &values) {
    const int64_t count = int64_t(values.size());
    const auto type = RankedTensorType::get({2, std::max<int64_t>(count, 1)}, element);
    auto make = [&](auto number) {
      using T = decltype(number);
      std::vector<T> numbers(2 * std::max<int64_t>(count, 1));
      for (int64_t i = 0; i < count; ++i) {
        numbers[i] = T(values[i].real());
        numbers[count + i] = T(values[i].imag());
      }
      return DenseElementsAttr::get(type, ArrayRef<T>(numbers));
    };
    const Value table = e.constantTable(element.isF64() ? make(double()) : make(float()));
    return {table, offsetBy(e, table, count, element)};
  }

  void emitTransform(Index task) {
    place(task);
    if (!schedule.getPacked())
      return emitComplex([this](const FftElements &at) { return readElement(at); },
                         [this](const FftElements &at, ComplexVector x) { writeElement(at, x); });
    if (p.op.getHalf())
      return emitComplex([this](const FftElements &at) { return readPacked(at).swapped(); },
                         [this](const FftElements &at, ComplexVector x) { writePacked(at, x.swapped()); });
    emitComplex([this](const FftElements &at) { return readPairs(at); }, passes.to(packedResult));
    emitUnpacked();
  }

  /// The complex transform of `elements` elements.
  void emitComplex(const FftPasses::Load &load, const FftPasses::Store &store) {
    if (!schedule.getBluestein())
      return passes.emit(plan, twiddles, load, store, buffers);
    const AffineExpr count = p.scalar(elements);
    // The last pass writes the buffer that it does not read.
    const unsigned last = (plan.passes.size() - 1) % 2;
    passes.emit(
        plan, twiddles,
        [&](const FftElements &at) {
          return before(count, at, [&] { return passes.mul(load(at), passes.loadTable(chirp, at.index)); });
        },
        [&](const FftElements &at, ComplexVector x) {
          passes.to(buffers[last])(at, passes.mul(x, passes.loadTable(spectrum, at.index)));
        },
        buffers);
    passes.emit(
        plan, twiddles, [&](const FftElements &at) { return passes.from(buffers[last])(at).swapped(); },
        [&](const FftElements &at, ComplexVector x) {
          if (at.begin >= elements)
            return;
          store(at, passes.mul(x.swapped(), passes.loadTable(chirp, at.index)));
        },
        buffers, 1 - last);
  }

  /// Positions `count` - n of neighbours n.
  Index mirror(const Index &index, Value count) {
    Index mirrored;
    mirrored.base = e.sub(count, index.base);
    mirrored.step = -index.step;
    mirrored.depth = index.depth;
    return mirrored;
  }
  /// x[2 n] + i x[2 n + 1].
  ComplexVector readPairs(const FftElements &at) {
    // Two vectors of neighbours, of which every second lane is taken.
    const int64_t width = e.width();
    auto half = [&](int64_t number) {
      FftElements there;
      const Value first = e.add(e.mul(at.index.base, e.i64(2)), e.i64(number * width));
      there.index = e.contiguous(e.uniform(first, 2));
      there.begin = 2 * at.begin;
      there.end = at.end == INT64_MAX ? INT64_MAX : 2 * at.end;
      const Value on =
          at.valid ? e.lanesWithin(e.i64(0), e.sub(e.add(at.valid, at.valid), e.i64(number * width))) : Value();
      Value x;
      e.withMask(on, [&] { x = read(there).re; });
      return x;
    };
    const Value low = half(0), high = half(1);
    auto lanesFrom = [&](int64_t first) -> Value {
      SmallVector<int64_t> lanes;
      for (int64_t lane = 0; lane < width; ++lane)
        lanes.push_back(2 * lane + first);
      return vector::ShuffleOp::create(b, e.loc(), low, high, lanes);
    };
    return {lanesFrom(0), lanesFrom(1)};
  }
  /// The spectrum of real elements from that of their pairs.
  void emitUnpacked() {
    // Z[M] is Z[0].
    for (Value plane : {packedResult.re, packedResult.im})
      e.storeAt(e.loadAt(plane, element, e.constant(0)), plane, element, e.constant(elements));
    const int64_t outputs = *p.outputs, width = e.width();
    for (const bool isUpper : {false, true}) {
      const int64_t first = isUpper ? elements : 0, count = std::min(outputs, first + elements) - first;
      if (count <= 0)
        break;
      e.laneLoop(e.i64(count), count, [&](Index k) {
        const Value valid = e.mask() ? e.sub(e.i64(count), k.base) : Value();
        const Index mirrored = e.contiguous(e.uniform(e.sub(e.i64(elements - width + 1), k.base)));
        ComplexVector x, y;
        e.withMask({}, [&] {
          const ComplexVector z = {e.loadAt(packedResult.re, element, k), e.loadAt(packedResult.im, element, k)};
          const ComplexVector other = {passes.reverse(e.loadAt(packedResult.re, element, mirrored)),
                                       passes.reverse(e.loadAt(packedResult.im, element, mirrored))};
          // Twice the transforms of the even and of the odd elements.
          const ComplexVector even{passes.add(z.re, other.re), passes.sub(z.im, other.im)};
          const ComplexVector odd{passes.add(z.im, other.im), passes.sub(other.re, z.re)};
          const Value half = passes.constant(0.5);
          x = {passes.mul(even.re, half), passes.mul(even.im, half)};
          y = passes.mul(odd, passes.loadTable(roots, k));
        });
        x = isUpper ? ComplexVector{passes.sub(x.re, y.re), passes.sub(x.im, y.im)}
                    : ComplexVector{passes.add(x.re, y.re), passes.add(x.im, y.im)};
        if (p.op.getInverse())
          x = passes.conjugate(x);
        const SmallVector<Index> at{outer, e.addIndex(e.uniform(k.base), e.constant(first)), inner, e.constant(0)};
        passes.storePairs(x, e.output(0), e.linearize(at, p.out).base, valid);
      });
    }
  }
  /// Z[n] of half a spectrum X: what x[2 n] + i x[2 n + 1] is the inverse transform of.
  ComplexVector readPacked(const FftElements &at) {
    FftElements mirrored;
    mirrored.index = mirror(at.index, e.i64(elements));
    mirrored.begin = at.end == INT64_MAX ? 0 : elements + 1 - at.end;
    mirrored.end = elements + 1 - at.begin;
    ComplexVector x = read(at), y = read(mirrored);
    if (!p.op.getInverse()) {
      x = passes.conjugate(x);
      y = passes.conjugate(y);
    }
    // The first and the middle one are real.
    const Value zero = passes.constant(0), first = e.materialize(at.index);
    const Value isFirst = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, first,
                                                isa<VectorType>(first.getType()) ? e.broadcast(e.i64(0)) : e.i64(0));
    x.im = arith::SelectOp::create(b, e.loc(), isFirst, zero, x.im);
    y.im = arith::SelectOp::create(b, e.loc(), isFirst, zero, y.im);
    const ComplexVector even{passes.add(x.re, y.re), passes.sub(x.im, y.im)};
    const ComplexVector difference{passes.sub(x.re, y.re), passes.add(x.im, y.im)};
    const ComplexVector odd = passes.mul(difference, passes.conjugate(passes.loadTable(roots, at.index)));
    return {passes.sub(even.re, odd.im), passes.add(even.im, odd.re)};
  }
  void writePacked(const FftElements &at, ComplexVector x) {
    if (at.begin >= elements)
      return;
    Value valid = at.valid;
    if (at.end > elements) {
      const Value left = e.sub(e.i64(elements), at.index.base);
      valid = valid ? e.min(valid, left) : left;
    }
    const SmallVector<Index> position{outer, e.uniform(e.mul(at.index.base, e.i64(2))), inner, e.constant(0)};
    passes.storePairs(x, e.output(0), e.linearize(position, p.out).base, valid);
  }

  //===--- lengths that the run knows
  //-------------------------------------------------------------------------------===//

  void prepareRunTime() {
    runTimeSize = e.size(runTimeElements(p));
    count = arith::MaxSIOp::create(b, e.loc(), e.size(p.length), e.i64(1));
    const auto [direct, isSmooth] = passes.factorize(count);
    isDirect = isSmooth;
    // 2^t from 2 N - 1 on.
    const Value zeros = math::CountLeadingZerosOp::create(b, e.loc(), e.sub(e.add(count, count), e.i64(2)));
    const Value power = arith::ShLIOp::create(b, e.loc(), e.i64(1), e.sub(e.i64(64), zeros));
    // The chirp and its mirror image are whole vectors each.
    const Value convolution = arith::MaxSIOp::create(b, e.loc(), power, e.i64(2 * kMargin));
    transformed = arith::SelectOp::create(b, e.loc(), isDirect, count, convolution);
    length = {transformed, arith::SelectOp::create(b, e.loc(), isDirect, direct.oddFactors, e.i64(0))};
  }
  Planes planesAt(Value start, Value size) { return {start, e.address(start, element, size)}; }
  Planes runTimePlanes(int64_t number) {
    auto plane = [&](int64_t at) { return e.address(e.scratch(), element, e.mul(e.i64(at), runTimeSize)); };
    return {plane(2 * number), plane(2 * number + 1)};
  }

  /// exp(-2 pi i fraction), in f64, of a fraction from 0 to 1. Polynomials: fdlibm, k_sin.c and k_cos.c.
  ComplexVector rootAt(Value fraction) {
    const VectorType f64 = e.vectorOf(b.getF64Type()), i64 = e.vectorOf(b.getI64Type());
    auto constant = [&](double value) -> Value {
      return arith::ConstantOp::create(b, e.loc(), DenseElementsAttr::get(f64, value));
    };
    auto fma = [&](Value x, Value y, Value z) -> Value { return vector::FMAOp::create(b, e.loc(), x, y, z); };
    auto polynomial = [&](Value x, ArrayRef<double> coefficients) {
      Value sum = constant(coefficients.front());
      for (double coefficient : coefficients.drop_front())
        sum = fma(sum, x, constant(coefficient));
      return sum;
    };
    // A quarter, and what is left of it, which is exact: at most an eighth.
    const Value quarters = math::RoundEvenOp::create(b, e.loc(), passes.mul(fraction, constant(4)));
    const Value rest = fma(quarters, constant(-0.25), fraction);
    const Value angle = passes.mul(rest, constant(6.283185307179586477)), z = passes.mul(angle, angle);
    Value sine = polynomial(z, {1.58969099521155010221e-10, -2.50507602534068634195e-8, 2.75573137070700676789e-6,
                                -1.98412698298579493134e-4, 8.33333333332248946124e-3, -1.66666666666666324348e-1});
    sine = fma(passes.mul(sine, z), angle, angle);
    Value cosine = polynomial(z, {-1.13596475577881948265e-11, 2.08757232129817482790e-9, -2.75573143513906633035e-7,
                                  2.48015872894767294178e-5, -1.38888888888741095749e-3, 4.16666666666666019037e-2});
    cosine = fma(passes.mul(z, z), cosine, fma(z, constant(-0.5), constant(1)));
    const Value quarter = arith::FPToSIOp::create(b, e.loc(), i64, quarters);
    auto isSet = [&](Value number, int64_t bit) -> Value {
      const Value mask = arith::ConstantOp::create(b, e.loc(), DenseElementsAttr::get(i64, bit));
      const Value zero = arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(i64));
      return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ne,
                                   arith::AndIOp::create(b, e.loc(), number, mask), zero);
    };
    auto select = [&](Value condition, Value x, Value y) -> Value {
      return arith::SelectOp::create(b, e.loc(), condition, x, y);
    };
    const Value isOdd = isSet(quarter, 1), next = arith::AddIOp::create(b, e.loc(), quarter, e.broadcast(e.i64(1)));
    Value re = select(isOdd, sine, cosine), im = select(isOdd, cosine, sine);
    re = select(isSet(next, 2), passes.negate(re), re);
    im = select(isSet(quarter, 2), im, passes.negate(im));
    if (element.isF64())
      return {re, im};
    auto narrow = [&](Value x) -> Value { return arith::TruncFOp::create(b, e.loc(), e.vectorOf(element), x); };
    return {narrow(re), narrow(im)};
  }
  /// numerator / denominator, of integers; the first ones in lanes.
  Value fractionOf(Value numerators, Value denominator) {
    const Type f64 = e.vectorOf(b.getF64Type());
    auto convert = [&](Value x) -> Value { return arith::SIToFPOp::create(b, e.loc(), f64, x); };
    return arith::DivFOp::create(b, e.loc(), convert(numerators), convert(e.broadcast(denominator)));
  }
  /// A task's part of the tables of factors and of the chirp.
  void emitTables(Index task, Value twiddleTable, Value chirpTable) {
    const Planes factors = planesAt(twiddleTable, runTimeSize), chirps = planesAt(chirpTable, runTimeSize);
    // The elements that this task has of `all`, by vectors of which the last ones are off in part.
    auto share = [&](Value all, llvm::function_ref<ComplexVector(Value)> element, Planes table, Value start) {
      const Value part =
          e.mul(e.divUnsigned(e.add(all, e.i64(kTableTasks * 16 - 1)), e.i64(kTableTasks * 16)), e.i64(16));
      const Value from = e.min(e.mul(task.base, part), all), to = e.min(e.add(from, part), all);
      e.loop(from, to, e.width(), [&](Index first) {
        passes.keepRolled();
        const Index at = e.contiguous(first);
        const ComplexVector x = element(e.materialize(at));
        FftElements place;
        place.index = e.addIndex(at, e.uniform(start));
        e.withMask(tailMask(e, e.sub(to, first.base)), [&] { passes.to(table)(place, x); });
      });
    };
    passes.forRunTimePasses(length, [&](Value radix, Value m, Value start) {
      // Behind the factors of each k the roots of unity of the radix, which are found as those are.
      e.loop(e.i64(1), e.add(radix, e.i64(1)), 1, [&](Index k) {
        const Value isRoots = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, k.base, radix);
        auto choose = [&](Value roots, Value other) -> Value {
          return arith::SelectOp::create(b, e.loc(), isRoots, roots, other);
        };
        const Value times = choose(e.i64(1), k.base);
        share(
            choose(radix, m),
            [&](Value p) {
              const Value numerators = arith::MulIOp::create(b, e.loc(), p, e.broadcast(times));
              return rootAt(fractionOf(numerators, choose(radix, e.mul(m, radix))));
            },
            factors, choose(passes.rootsOf(transformed, radix), e.add(start, e.mul(e.sub(k.base, e.i64(1)), m))));
      });
    });
    // Zeros behind the chirp fill the last vector.
    e.ifThen(e.isNot(isDirect), [&] {
      const Value whole = e.mul(e.divUnsigned(e.add(count, e.i64(kMargin - 1)), e.i64(kMargin)), e.i64(kMargin));
      share(
          whole,
          [&](Value n) {
            const Value twice = e.add(count, count), square = arith::MulIOp::create(b, e.loc(), n, n);
            const Value phase = arith::RemUIOp::create(b, e.loc(), square, e.broadcast(twice));
            const Value isWithin = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, n, e.broadcast(count));
            const ComplexVector x = rootAt(fractionOf(phase, twice));
            auto within = [&](Value part) -> Value {
              return arith::SelectOp::create(b, e.loc(), isWithin, part, passes.constant(0));
            };
            return ComplexVector{within(x.re), within(x.im)};
          },
          chirps, e.i64(0));
    });
  }
  /// Calls body for `all` elements of a run-time transform, a multiple of all widths, or (`isAny`) any number, whose
  /// last vector is off in part: one loop for all vectors is less code than two.
  void forElements(Value all, bool isAny, llvm::function_ref<void(const FftElements &)> body) {
    e.loop(e.i64(0), all, e.width(), [&](Index first) {
      passes.keepRolled();
      FftElements at;
      at.index = e.contiguous(first);
      if (isAny)
        at.valid = e.sub(all, first.base);
      e.withMask(isAny ? tailMask(e, at.valid) : Value(), [&] { body(at); });
    });
  }
  /// Zeros from element `from` on, a multiple of the width.
  void clearElements(Planes planes, Value from) {
    e.laneLoop(
        transformed, kMargin,
        [&](Index lane) {
          for (Value plane : {planes.re, planes.im})
            e.storeAt(passes.constant(0), plane, element, lane);
        },
        from);
  }
  /// A task of either step. Code of a transform takes long to compile, and stands here once: task 0 of the first step
  /// transforms the chirp's mirror image, each one of the second step reads elements, with the factors of the chirp,
  /// transforms them, once or, by the convolution, twice, and writes the result.
  void emitRunTimeTask(Index task) {
    const Value all = e.size(tasksOf(p));
    auto test = [&](arith::CmpIPredicate kind, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, e.loc(), kind, x, y);
    };
    auto either = [&](Value x, Value y) -> Value { return arith::OrIOp::create(b, e.loc(), x, y); };
    const Value isOfChirp = test(arith::CmpIPredicate::slt, task.base, all);
    const Value isNeeded =
        arith::AndIOp::create(b, e.loc(), e.isNot(isDirect), test(arith::CmpIPredicate::eq, task.base, e.i64(0)));
    Index transform = task; // in range in the first step, too: what is read of it may be hoisted
    transform.base = arith::MaxSIOp::create(b, e.loc(), e.sub(task.base, all), e.i64(0));
    place(transform);
    e.ifThen(either(e.isNot(isOfChirp), isNeeded), [&] {
      Planes buffers[2] = {runTimePlanes(0), runTimePlanes(1)};
      const Value isSingle = either(isDirect, isOfChirp), direct = e.broadcast(isDirect);
      auto times = [&](ComplexVector x, Planes table, const FftElements &at) {
        const ComplexVector product = passes.mul(x, passes.loadTable(table, at.index));
        return ComplexVector{arith::SelectOp::create(b, e.loc(), direct, x.re, product.re),
                             arith::SelectOp::create(b, e.loc(), direct, x.im, product.im)};
      };
      // Beyond the elements nothing is read: a lane that is off of a page that was never touched takes very long.
      const Value vectors = e.mul(e.divUnsigned(count, e.i64(kMargin)), e.i64(kMargin));
      clearElements(buffers[0], arith::SelectOp::create(b, e.loc(), isOfChirp, e.i64(0), vectors));
      e.ifThen(isOfChirp, [&] { mirrorChirp(buffers[0]); });
      e.ifThen(e.isNot(isOfChirp), [&] {
        forElements(count, /*isAny=*/true,
                    [&](const FftElements &at) { passes.to(buffers[0])(at, times(readElement(at), chirp, at)); });
      });
      const Value rounds = arith::SelectOp::create(b, e.loc(), isSingle, e.i64(1), e.i64(2));
      const SmallVector<Value> result =
          e.loop(e.i64(0), rounds, 1, {buffers[0].re, buffers[0].im, buffers[1].re, buffers[1].im},
                 [&](Index round, ValueRange state) {
                   passes.keepRolled();
                   Planes now[2] = {{state[0], state[1]}, {state[2], state[3]}};
                   passes.emitRunTime(length, twiddles, now);
                   // The second one is an inverse one: parts are swapped before and behind.
                   const Value isMiddle = test(arith::CmpIPredicate::slt, e.add(round.base, e.i64(1)), rounds);
                   e.ifThen(isMiddle, [&] {
                     forElements(transformed, /*isAny=*/false, [&](const FftElements &at) {
                       passes.to(now[0])(at, passes.mul(passes.from(now[0])(at), passes.loadTable(spectrum, at.index)));
                     });
                   });
                   return SmallVector<Value>{now[0].im, now[0].re, now[1].re, now[1].im};
                 });
      const Planes last{arith::SelectOp::create(b, e.loc(), isSingle, result[1], result[0]),
                        arith::SelectOp::create(b, e.loc(), isSingle, result[0], result[1])};
      e.ifThen(isOfChirp, [&] { writeSpectrum(last); });
      e.ifThen(e.isNot(isOfChirp), [&] {
        forElements(e.size(p.out[1]), /*isAny=*/true,
                    [&](const FftElements &at) { writeElement(at, times(passes.from(last)(at), chirp, at)); });
      });
    });
  }
  /// What the chirp is convolved with, in a buffer of zeros: elements n and M - n are the conjugate of c[n].
  void mirrorChirp(Planes buffer) {
    const Value whole = e.mul(e.divUnsigned(e.add(count, e.i64(kMargin - 1)), e.i64(kMargin)), e.i64(kMargin));
    forElements(whole, /*isAny=*/false, [&](const FftElements &at) {
      const ComplexVector x = passes.conjugate(passes.loadTable(chirp, at.index));
      passes.to(buffer)(at, x);
      FftElements mirrored;
      mirrored.index = e.contiguous(e.uniform(e.sub(e.sub(transformed, e.i64(e.width() - 1)), at.index.base)));
      passes.to(buffer)(mirrored, {passes.reverse(x.re), passes.reverse(x.im)});
    });
  }
  /// What data are multiplied with between the two transforms of a convolution.
  void writeSpectrum(Planes transform) {
    const Value all = arith::SIToFPOp::create(b, e.loc(), element, transformed);
    const Value one = arith::ConstantOp::create(b, e.loc(), b.getFloatAttr(element, 1));
    const Value scale = arith::DivFOp::create(b, e.loc(), one, all);
    forElements(transformed, /*isAny=*/false, [&](const FftElements &at) {
      const ComplexVector x = passes.from(transform)(at);
      const Value factor = e.broadcast(scale);
      passes.to(spectrum)(at, {passes.mul(x.re, factor), passes.mul(x.im, factor)});
    });
  }

  const Problem &p;
  Schedule schedule;
  Emitter &e;
  OpBuilder &b;
  Type element;
  FftPasses passes;
  FftPlan plan;
  int64_t elements = 0;
  Planes twiddles, chirp, spectrum, roots, buffers[2], packedResult;
  // Of lengths that the run knows: elements of a table and of a plane, N, whether no convolution is needed, and the
  // length of the transforms.
  Value runTimeSize, count, isDirect, transformed;
  FftPasses::RunTimeLength length; // transformed
  // Of the task.
  Index outer, inner;
  Value remaining;
};

class FftGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  bool takesWhole(Operation *composite) const override { return isa<prim::FftOp>(composite); }

  std::optional<Problem> analyze(const RegionProblem &region) const override {
    auto op = region.findYielded<prim::FftOp>();
    if (!op)
      return std::nullopt;
    Problem p{op, prim::getSizes(op.getOperand()), prim::getSizes(op.getResult()), op.getLengthExpr(), {}, {}};
    p.count = prim::getConstantSize(p.length);
    p.outputs = prim::getConstantSize(p.out[1]);
    return p;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    Schedule::Params params;
    params.radix256 = 8;
    params.radix512 = 16;
    const double length = double(getLikelySize(p.length, p.op, usual::kRowLength));
    double flops = 5 * length * std::log2(std::max(2.0, length));
    if (p.count && *p.count >= 1)
      decideKnown(p, params);
    else
      params.twiddleLaunch = true;
    if (params.bluestein || (params.twiddleLaunch && !p.count))
      flops *= 5;
    if (params.batch)
      flops *= double(params.batch);
    if (params.packed)
      flops /= 2;
    params.grain = grainFor(kGrainFlops, flops);
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    Launch main;
    main.tasks = tasksOf(p);
    if (schedule.getTwiddleLaunch()) {
      const AffineExpr size = runTimeElements(p), two = p.scalar(2);
      const Type type = p.computed(schedule);
      Launch tables;
      tables.suffix = "_twiddles";
      tables.tasks = p.scalar(kTableTasks);
      tables.grain = p.scalar(1);
      tables.temporaries = {prim::makeType(type, {two, size}), prim::makeType(type, {two, size})};
      main.steps = two;
      main.scratch = prim::simplifySize((size * (kRunTimePlanes * p.bytes(schedule))).ceilDiv(64) * 64);
      main.temporaries = {prim::makeType(type, {two, size})}; // the spectrum of the chirp
      return {tables, main};
    }
    if (const int64_t batch = schedule.getBatch())
      main.tasks = p.isSingleColumn() ? prim::simplifySize(p.in[0].ceilDiv(batch))
                                      : prim::simplifySize(p.in[0] * p.in[2].ceilDiv(batch));
    const int64_t plane = (Lengths(p, schedule).planeElements(schedule) + kMargin) * p.bytes(schedule);
    main.scratch = scratchBytes(schedule.getContext(), countPlanes(schedule) * plane);
    return {main};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &e, Value begin,
                 Value end) const override {
    FftKernel(p, schedule, e).emitTasks(number, e.region().getInputs().size(), begin, end);
  }

private:
  static void decideKnown(const Problem &p, Schedule::Params &params) {
    const int64_t width = widestUnit().width(), radix = params.radix512, count = *p.count;
    const double columns = double(getLikelySize(p.in[2], p.op));
    auto fits = [&](int64_t length) { // with lanes along elements
      return !isSmooth(length) || !planFft(length, width, /*alongElements=*/true, radix).passes.empty();
    };
    params.packed = p.canPack() && count >= 2 * kShortRow && fits(count / 2);
    const int64_t elements = params.packed ? count / 2 : count;
    if ((!p.isSingleColumn() && columns >= kLeastColumns) || count < kShortRow || !fits(elements))
      params.batch = kBatch;
    params.bluestein = isSmooth(elements) ? 0 : chooseConvolution(elements, width, radix);
    if (elements + 3 * params.bluestein > kMostTableElements) {
      params.batch = params.bluestein = 0;
      params.packed = false;
      params.twiddleLaunch = true;
    }
  }
};

} // namespace

const Generator *tc::codegen::fftGenerator() {
  static const FftGenerator generator;
  return &generator;
}
