//===- Emitter.h - scalar and vector code for the values of a fused region ------------------------------*- C++ -*-===//
//
// A kernel is written by asking for values: `emit(x, at)` gives the IR value of tensor `x` of the region at the
// position `at`, one lane or `width()` lanes at a time, by walking from x back to the region's inputs. Movement ops
// (transpose, reshape, slice, gather, ...) only change the position, pointwise ops compute, reductions become loops.
// Fusion thus costs nothing: whatever stands in the region between two memory accesses becomes registers.
//
// Hoisting. Every loop opened through `loop` is a scope. A value whose position does not depend on the inner loops is
// computed in the outermost scope that knows its position, before the loop that asks for it, and remembered there. A
// softmax written as primitives thus becomes, for each row: a loop for the maximum, a loop for the sum, a loop for the
// result.
//
// The code is arith, math, vector, scf and llvm ops over i64 sizes and !llvm.ptr buffers. bool is stored as a byte and
// computed as i1; unsigned elements are computed in signless integers. f16 and bf16 are computed in f32 and rounded
// after each pointwise op.
//
// Not thread safe; one Emitter per kernel function.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_EMITTER_H
#define TC_LIB_CODEGEN_EMITTER_H

#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Utils/Indices.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <memory>

namespace tc::codegen {

using machine::VectorUnit;

/// Positions along one dim, one per lane.
struct Index {
  /// i64: the position of lane 0.
  mlir::Value base;
  /// Lane l is at base + l / repeat * step, where `modulus` is not 0 at base + l / repeat * step % modulus. 0: the same
  /// for all lanes.
  int64_t step = 0;
  /// So many lanes beside each other share a position: a power of 2.
  int64_t repeat = 1;
  int64_t modulus = 0;
  /// Lane l is at base + offsets[l], one for each lane; then step, repeat and modulus are not set. Null: they tell.
  mlir::DenseI64ArrayAttr offsets;
  /// So many positions from base on are positions of the dim, whichever the lanes are at; 0: not known.
  int64_t block = 0;
  /// vector<width x i64>: positions that are not evenly spaced; then base is null and step is meaningless.
  mlir::Value lanes;
  /// `base` is known to be a multiple of this (1: nothing known; 0: base is the constant 0).
  int64_t multiple = 1;
  /// `base` may lie before the dim where lanes lie in it: what reads them leaves the others out.
  bool mayPrecede = false;
  /// The innermost scope that the position depends on.
  int depth = 0;
  /// If set: the position is outer * size + inner, with inner below `size`.
  struct Parts;
  std::shared_ptr<const Parts> parts;
  /// If set: the position is the quotient, or the remainder, of what was divided, and its lanes are not evenly spaced.
  struct Divided;
  std::shared_ptr<const Divided> divided;
  bool isRemainder = false;
  /// If set: `lanes` are close together, as one vector reads them.
  struct Window;
  std::shared_ptr<const Window> window;

  bool isUniform() const { return !lanes && !offsets && step == 0; }
  bool isContiguous() const { return !lanes && !offsets && step == 1 && repeat == 1 && modulus == 0; }
  /// Position of a lane, counted from `base`.
  int64_t offsetOf(int64_t lane) const {
    if (offsets)
      return offsets[lane];
    return modulus ? lane / repeat * step % modulus : lane / repeat * step;
  }
};
struct Index::Parts {
  Index outer, inner;
  int64_t size;
};
struct Index::Window {
  /// i64, and vector<width x i32>: lane l is at start + at[l]. The last of them, i64.
  mlir::Value start, at, last;
  /// At most so many positions from `start` on.
  int64_t size;
};
struct Index::Divided {
  Index index;
  mlir::AffineExpr by;
};

class Emitter {
public:
  using Source = std::function<mlir::Value(llvm::ArrayRef<Index>)>;

  /// Emits into `builder`, inside a function of type tcrt_kernel_fn whose body is open. `args` is its first argument.
  /// `symbols`: positions of the symbols whose values follow the buffers in `args` (host.launch). `hasScratch`: a
  /// scratch address stands between the two. `inputs` and `outputs`: how many buffers the launch has; a generator of
  /// several launches passes temporaries after the region's inputs.
  Emitter(kernel::RegionOp region, machine::MachineAttr machine, mlir::OpBuilder &builder, mlir::Location loc,
          mlir::Value args, unsigned inputs, unsigned outputs, llvm::ArrayRef<int64_t> symbols, bool hasScratch);

  //===--- basics -------------------------------------------------------------------------------------------------===//

  mlir::OpBuilder &builder() { return b; }
  mlir::Location loc() const { return location; }
  /// What the code is for, where that is a CPU.
  machine::CpuAttr cpu() const { return mlir::cast<machine::CpuAttr>(machine); }
  /// The same where it is a GPU.
  machine::GpuAttr gpu() const { return mlir::cast<machine::GpuAttr>(machine); }
  /// The vector registers of what the code is for.
  const VectorUnit &vectors() const { return unit; }
  int64_t width() const { return unit.width(); }
  kernel::RegionOp region() const { return regionOp; }

  mlir::Value i64(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value divUnsigned(mlir::Value a, mlir::Value b);
  mlir::Value remUnsigned(mlir::Value a, mlir::Value b);
  /// Quotient, rounded down, and remainder, which is not negative, of a base by what is positive.
  mlir::Value divFloor(const Index &a, mlir::Value b);
  mlir::Value remFloor(const Index &a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  /// i1: 0 <= position < size.
  mlir::Value isWithin(mlir::Value position, mlir::AffineExpr size);
  /// The opposite of an i1.
  mlir::Value isNot(mlir::Value condition);
  /// Value of a size expression, computed once at the start of the function.
  mlir::Value size(mlir::AffineExpr expr);
  /// What an i64 that is made of sizes, loops and constants is known to be a multiple of: 1 where nothing is, 0 of 0.
  /// Sizes are multiples of their symbols' divisors (`--dim batch=multiple-of:8`).
  int64_t multipleOf(mlir::Value value, int depth = 0) const;
  /// Product of the sizes of `tensor` from dim `from` (inclusive) to `to` (exclusive).
  mlir::Value sizeProduct(llvm::ArrayRef<mlir::AffineExpr> sizes);

  /// Address of the launch's input or output buffer, or of the calling worker's scratch (worker given to `setWorker`).
  mlir::Value input(unsigned number);
  mlir::Value output(unsigned number);
  mlir::Value scratch(int64_t byteOffset = 0);
  void setWorker(mlir::Value worker, mlir::AffineExpr scratchBytes);
  /// ptr + offset elements of `type` (memory type, see memoryType).
  mlir::Value address(mlir::Value pointer, mlir::Type type, mlir::Value elementOffset);
  /// The same pointer, of which LLVM does not know where it comes from. Addresses at constant distances from it, made
  /// in an inner loop, then stay such, which costs nothing; where it steps through outer loops, LLVM would else step
  /// each of them by itself, more than there are registers.
  mlir::Value opaque(mlir::Value pointer);
  /// The value, stored and loaded: LLVM does not see where it comes from. At the entry of the kernel.
  mlir::Value throughMemory(mlir::Value value);
  /// Fetches the line at `address` to the second-level cache, or to the first-level one. Any address will do.
  void prefetch(mlir::Value address, bool toFirstLevel = false);
  /// A buffer of `count` elements on the stack, 64-byte aligned, made at the function's entry.
  mlir::Value stackBuffer(mlir::Type type, int64_t count);

  /// Type of an element in memory (i1 -> i8, unsigned -> signless) and in registers (f16, bf16 stay; i1 stays).
  static mlir::Type memoryType(mlir::Type elementType);
  /// Bytes of such an element in memory.
  static int64_t memoryBytes(mlir::Type elementType);
  static mlir::Type valueType(mlir::Type elementType);
  mlir::VectorType vectorOf(mlir::Type type) const { return mlir::VectorType::get({width()}, type); }
  /// `value` as a vector of width() lanes.
  mlir::Value broadcast(mlir::Value value);
  /// Lane l of the result is lane lanes[l] of a vector of 4-byte elements; `lanes`: vector<width x i32>. One
  /// instruction, whose lanes are no constants: of constant lanes LLVM makes two, and keeps what they share on the
  /// stack.
  mlir::Value permute(mlir::Value vector, mlir::Value lanes);

  //===--- positions ----------------------------------------------------------------------------------------------===//

  Index constant(int64_t position);
  /// A scalar position defined in the current scope.
  Index uniform(mlir::Value position, int64_t multiple = 1);
  /// Lanes base, base + 1, ...; base's depth and multiple are kept.
  Index contiguous(Index base);
  /// Lanes base + first, base + first + 1, ... up to base + count - 1, which the lanes left over share. `block`: so
  /// many positions from base on are positions of the dim. base's depth and multiple are kept, so that dividing by what
  /// base is a multiple of leaves offsets that are known.
  Index partOf(Index base, int64_t first, int64_t count, int64_t block);
  /// Of width() rows of `part` elements from row `first` on, which lie one after another: the row and the element of
  /// each lane of the vector that is number `number` of them.
  std::pair<Index, Index> partOfRows(Index first, int64_t part, int64_t number);
  /// i64 vector of the lanes, or the scalar if uniform.
  mlir::Value materialize(const Index &index);
  Index addIndex(const Index &a, const Index &b);
  Index mulIndex(const Index &a, mlir::Value factor, std::optional<int64_t> constantFactor, int depth = 0);
  /// Quotient and remainder; `bound`: what the index is less than, if that is known.
  std::pair<Index, Index> divide(const Index &index, mlir::AffineExpr by, std::optional<int64_t> bound = {});
  /// The innermost scope that a position depends on.
  int depthOf(llvm::ArrayRef<Index> at) const;
  /// outer * size + inner with inner below `size`, which dividing by `size` takes apart again.
  Index joinIndex(const Index &outer, const Index &inner, int64_t size);
  /// A position that is data, the element of `tensor` that was emitted: negative ones count from the end of a dim of
  /// this size, what is still outside is clamped.
  Index dataIndex(mlir::Value tensor, mlir::Value position, mlir::AffineExpr size, int depth);
  /// The same of the element of `indices` at `at`, by arithmetic where they are known and run evenly: their lanes are.
  Index gatheredIndex(mlir::Value indices, mlir::AffineExpr size, llvm::ArrayRef<Index> at);
  /// Row-major linear position over `sizes`.
  Index linearize(llvm::ArrayRef<Index> at, llvm::ArrayRef<mlir::AffineExpr> sizes);
  llvm::SmallVector<Index> delinearize(const Index &linear, llvm::ArrayRef<mlir::AffineExpr> sizes);
  /// Position in a tensor of `to` sizes of the element at `at` in a tensor of `from` sizes (the same elements in
  /// row-major order).
  llvm::SmallVector<Index> reshapeIndex(llvm::ArrayRef<Index> at, llvm::ArrayRef<mlir::AffineExpr> from,
                                        llvm::ArrayRef<mlir::AffineExpr> to);

  //===--- scopes -------------------------------------------------------------------------------------------------===//

  /// for (i = lower; i < upper; i += step) body(i). `multiple`: lower is a multiple of it (0: lower is 0).
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(Index)> body,
            int64_t multiple = 1);
  /// The same with loop-carried values.
  llvm::SmallVector<mlir::Value> loop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange inits,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>(Index, mlir::ValueRange)> body,
                                      int64_t multiple = 1);
  /// Whether a reduction is made in segments, which are combined at the end: where its rounding errors would add up.
  static bool addsInSegments(prim::ReduceKind kind, mlir::Type accumulator) {
    return kind == prim::ReduceKind::Sum && accumulator.isF32();
  }
  /// loop() for a reduction: `inits` are combined by `kind`, of type `accumulator`. Sums of f32 are made in segments of
  /// about kPartialSteps steps, which are added up: rounding errors grow with the square root of a segment's length and
  /// of the number of segments instead of that of all steps. `stepsWithin`: steps that the body makes for each of its
  /// own; none: not known.
  llvm::SmallVector<mlir::Value>
  reduceLoop(prim::ReduceKind kind, mlir::Type accumulator, mlir::Value lower, mlir::Value upper, int64_t step,
             mlir::ValueRange inits, std::optional<int64_t> stepsWithin,
             llvm::function_ref<llvm::SmallVector<mlir::Value>(Index, mlir::ValueRange)> body, int64_t multiple = 1);
  /// Lanes over [0, count): full vectors, then one masked vector; each call of body sees contiguous lanes from 0.
  /// `constantCount`: the count, or any number with its remainder by width(), if that is known; no vector is masked
  /// where the count is known to be a multiple of the width. `lower` shifts the
  /// start (must be a multiple of width()).
  void laneLoop(mlir::Value count, std::optional<int64_t> constantCount, llvm::function_ref<void(Index)> body,
                mlir::Value lower = {});
  /// The same with loop-carried values.
  llvm::SmallVector<mlir::Value>
  laneLoop(mlir::Value count, std::optional<int64_t> constantCount, mlir::ValueRange inits,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(Index, mlir::ValueRange)> body, mlir::Value lower = {});
  /// The team's members take one vector of lanes over [0, count) after another: each goes on with its own values. Lanes
  /// beyond the last are masked.
  llvm::SmallVector<mlir::Value>
  teamLoop(mlir::Value count, mlir::ValueRange inits,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(Index, mlir::ValueRange)> body);
  /// laneLoop of vectors of which none reads what another one stores: several may be computed side by side.
  void independentLanes(mlir::Value count, std::optional<int64_t> constantCount, llvm::function_ref<void(Index)> body,
                        mlir::Value lower = {});
  /// Lanes over [lower, count): `vectors` full vectors at a time as long as there are so many, then as laneLoop.
  void laneBlocks(mlir::Value count, std::optional<int64_t> constantCount, int64_t vectors,
                  llvm::function_ref<void(llvm::ArrayRef<Index>)> body, mlir::Value lower = {});
  /// if (condition) then(); in a scope of its own. condition: i1.
  void ifThen(mlir::Value condition, llvm::function_ref<void()> then);
  /// Lanes are switched by `mask` (null: all are on) in what `fn` emits.
  void withMask(mlir::Value mask, llvm::function_ref<void()> fn);

  //===--- values -------------------------------------------------------------------------------------------------===//

  /// The value of `tensor` (block argument or op result of the region) at `at`: a scalar if all positions are uniform,
  /// else a vector of width() lanes. Lanes that the mask switches off are unspecified.
  mlir::Value emit(mlir::Value tensor, llvm::ArrayRef<Index> at);
  /// Makes `emit(tensor, ...)` call `source` instead of walking on; null: it walks on again.
  void setSource(mlir::Value tensor, Source source);
  /// Makes `emit(tensor, anything)` use `at`: for values on the path from an anchor to its roots, whose position is
  /// known.
  void setPosition(mlir::Value tensor, llvm::ArrayRef<Index> at);
  /// Emits `user`, a value that reads every element of `tensor` along its last dim, at `at`, and stores those elements
  /// to `buffer` on the way; until clearSources, `tensor` is read from there, whatever its other positions.
  /// `onWay`, if set, is called with the position of each vector as it is stored.
  void keepRow(mlir::Value tensor, mlir::Value user, llvm::ArrayRef<Index> at, mlir::Value buffer,
               llvm::function_ref<void(Index)> onWay = {});
  /// The region's input `number` is stored rearranged: packed[i..] = input[map(i..)], of the type `packed` (see
  /// isReadableLayout).
  void setLayout(unsigned number, mlir::AffineMap map, mlir::RankedTensorType packed);
  /// Forgets all sources and positions, and what was remembered of values.
  void clearSources();
  /// Position in the result of the movement op `op` of the element at `at` of its operand; empty if `op` is no
  /// bijection.
  llvm::SmallVector<Index> forward(mlir::Operation *op, llvm::ArrayRef<Index> at);

  /// Loads from / stores to row-major memory of `sizes` at `at`, honouring the mask.
  mlir::Value load(mlir::Value pointer, mlir::Type elementType, llvm::ArrayRef<mlir::AffineExpr> sizes,
                   llvm::ArrayRef<Index> at);
  void store(mlir::Value value, mlir::Value pointer, mlir::Type elementType, llvm::ArrayRef<mlir::AffineExpr> sizes,
             llvm::ArrayRef<Index> at);
  /// One element or width() elements at a linear element offset.
  mlir::Value loadAt(mlir::Value pointer, mlir::Type elementType, const Index &offset);
  void storeAt(mlir::Value value, mlir::Value pointer, mlir::Type elementType, const Index &offset);
  /// The mask of the lanes from `first` on and before `end`, i64 that may lie outside the vector.
  mlir::Value lanesWithin(mlir::Value first, mlir::Value end);
  /// Lanes that are on; null: all. Set for a scope with a masked tail.
  mlir::Value mask() const;

  /// Threads that compute one task together (a GPU's block): reductions at uniform positions are shared out among them.
  /// All members must reach such a reduction.
  struct Team {
    mlir::Value member; // i64 in [0, size)
    int64_t size = 1;
    /// Combines the members' values; every member gets the same result.
    std::function<mlir::Value(prim::ReduceKind, mlir::Type elementType, mlir::Value)> across;
    /// A position in a row's dims, or the first of width() neighbours, that a member takes.
    struct Share {
      llvm::SmallVector<Index, 2> at;
      mlir::Value isOwn; // i1: the member takes it; null: whatever the member. Else `at` is some position of the row.
    };
    /// Of rows whose dims have these sizes: all that a member takes, the same wherever the row is read, so that what is
    /// computed of an element once stays in a register; empty: members loop over rows.
    llvm::SmallVector<mlir::AffineExpr, 2> rowSizes;
    llvm::SmallVector<Share, 0> shares;
  };
  std::optional<Team> team;
  /// Buffers are aligned to at least 16 bytes: accesses whose position allows it claim their natural vector alignment.
  bool alignedBuffers = false;

  /// Of arg-reductions of the last dim each lane finds the best element of a part, where no lanes lie along what is
  /// kept; else elements are compared one after another.
  bool argReduceLanes = false;

  /// Whole vectors are stored past the caches, to addresses that are multiples of 64 bytes where the position is one of
  /// the width: for results that no cache holds until they are read. Whoever sets it ends with `fenceStores`.
  bool streamsStores = false;
  /// Makes streamed stores visible to other threads before what follows.
  void fenceStores();

  /// A failure to generate code: the region holds an op that has no code generator. First one wins.
  std::optional<std::string> error;
  /// Whether `error` is an operator that tc lacks.
  bool isUnsupported = false;

  /// Notes the failure, and gives a value of the type to go on with.
  mlir::Value fail(llvm::Twine message, mlir::Type elementType);
  /// What `fn` makes, at the function's entry.
  mlir::Value atEntry(llvm::function_ref<mlir::Value()> fn);
  /// Address of a table of these values in the code.
  mlir::Value constantTable(mlir::DenseElementsAttr values);

  /// The value of `inside` where `condition` (i1 or vector of i1) holds, else `otherwise`; `inside` reads no memory
  /// where it does not hold. `lanes`: the result is a vector even if the condition is not.
  mlir::Value emitGuarded(mlir::Value condition, mlir::Type elementType, mlir::Value otherwise, bool lanes,
                          llvm::function_ref<mlir::Value()> inside);

  /// The value of `then` where `condition`, an i1, holds, else that of `otherwise`: code of either is run alone.
  /// `lanes`: the result is a vector.
  mlir::Value branch(mlir::Value condition, mlir::Type elementType, bool lanes, llvm::function_ref<mlir::Value()> then,
                     llvm::function_ref<mlir::Value()> otherwise);

  /// Neutral element and combination of a reduction on the value type of `elementType`.
  mlir::Value neutral(prim::ReduceKind kind, mlir::Type elementType);
  /// `losesNan`: the largest float may leave out what is no number, which takes a third of the instructions.
  mlir::Value combine(prim::ReduceKind kind, mlir::Type elementType, mlir::Value a, mlir::Value b,
                      bool losesNan = false);
  /// The type that values of `elementType` are combined in: f32 for narrower floats.
  static mlir::Type accumulatorOf(mlir::Type elementType);
  /// A value (scalar or vector) as its accumulator, and back as an `elementType`.
  mlir::Value toAccumulator(mlir::Value value);
  mlir::Value fromAccumulator(mlir::Value value, mlir::Type elementType);
  /// Combines what `element` gives at all positions in `extents`, the innermost ones with `lanes` of a vector, which a
  /// team shares.
  mlir::Value emitReduction(prim::ReduceKind kind, mlir::Type elementType, llvm::ArrayRef<mlir::AffineExpr> extents,
                            bool lanes, llvm::function_ref<mlir::Value(llvm::ArrayRef<Index>)> element,
                            bool losesNan = false);
  /// Combines the lanes of a vector.
  mlir::Value reduceLanes(prim::ReduceKind kind, mlir::Type elementType, mlir::Value vector, bool losesNan = false);

private:
  struct Scope {
    mlir::Operation *loop = nullptr; // the op that the scope is the body of
    bool barrier = false;            // nothing may be hoisted out: the code runs under a condition
    mlir::Value mask;
    llvm::DenseMap<std::tuple<unsigned, mlir::Value, mlir::Value>, mlir::Value> arithmetic;
    llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<llvm::SmallVector<Index, 4>, mlir::Value>, 1>> known;
  };

  mlir::Value emitUncached(mlir::Value tensor, llvm::ArrayRef<Index> at);
  mlir::Value emitPointwise(mlir::Operation *op, llvm::ArrayRef<Index> at);
  mlir::Value andMask(mlir::Value a, mlir::Value b);
  /// vector<width x i32>: 0, 1, ..
  mlir::Value laneNumbers();
  /// Windows of the quotient and the remainder of `x`, whose lanes are neighbours, where they have one.
  void setWindows(const Index &x, int64_t divisor, Index &quotient, Index &remainder);
  std::shared_ptr<const Index::Window> shifted(const Index::Window &window, const Index &by, int depth);
  /// All that the lanes meet, as one vector, whose elements are permuted.
  mlir::Value loadWindow(mlir::Value pointer, mlir::Type memory, const Index::Window &window);
  /// Runs `fn` with code inserted at the end of scope `depth`, before the loop of the next inner scope.
  mlir::Value inScope(int depth, llvm::function_ref<mlir::Value()> fn);
  mlir::Value arithmetic(unsigned kind, mlir::Value a, mlir::Value b);
  mlir::Value laneOffsets(const Index &index);
  /// `index` with lanes at these offsets from its base.
  Index withOffsets(Index index, llvm::ArrayRef<int64_t> offsets);
  /// Offsets that are all the same or one after another are told by base and step.
  Index simplified(Index index);
  /// The dim of `at` along which lanes read few positions several times, all within one vector of positions that are
  /// valid, where all else is the same for all lanes.
  std::optional<size_t> sharedDim(llvm::ArrayRef<Index> at) const;
  /// Whether lanes at `offset` are read as vectors and shuffled.
  bool isShuffled(const Index &offset) const;
  mlir::Value loadShuffled(mlir::Value pointer, mlir::Type memory, const Index &offset);
  unsigned alignmentAt(mlir::Type memory, const Index &offset) const;
  /// The lanes that are on from `at` on, and zeros.
  mlir::Value loadMasked(mlir::VectorType type, mlir::Value at, mlir::Value on, int64_t align);

  kernel::RegionOp regionOp;
  machine::MachineAttr machine;
  VectorUnit unit; // of the machine
  mlir::OpBuilder &b;
  mlir::Location location;
  mlir::Value args;
  unsigned inputCount, outputCount;
  mlir::Operation *entryMark = nullptr; // sizes and addresses are inserted before it
  bool hasScratch;
  mlir::Value scratchBase;
  mlir::Value workerScratch;
  llvm::DenseMap<mlir::Value, int64_t> symbolDivisors; // of the values of symbols that have one
  llvm::DenseMap<int64_t, mlir::Value> constants;
  llvm::DenseMap<mlir::Attribute, mlir::Value> laneOffsetVectors; // by the offsets
  llvm::DenseMap<mlir::AffineExpr, mlir::Value> sizeValues;
  llvm::DenseMap<unsigned, mlir::Value> bufferValues;
  llvm::DenseMap<unsigned, std::pair<mlir::AffineMap, mlir::RankedTensorType>> layouts;
  /// A source, and the depth of the scope that it was set in: it means nothing outside.
  struct PlacedSource {
    Source function;
    int depth = 0;
  };
  /// The depth of the innermost scope that a source of `tensor`, or of what it is computed from, was set in; 0: none.
  int sourceDepthOf(mlir::Value tensor);

  llvm::DenseMap<mlir::Value, PlacedSource> sources;
  llvm::DenseMap<mlir::Value, int> sourceDepths; // remembered until sources change
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Index>> positions;
  llvm::ArrayRef<int64_t> symbolPositions;
  std::vector<Scope> scopes;
  /// What is known of the indices of gathers, by the size of the dim that they are positions of.
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineExpr>, std::optional<prim::EvenIndices>> evenIndices;
};

/// The elements of `indices`, integers of the region or one of its inputs; null: only the run knows them.
mlir::DenseIntElementsAttr findConstantIndices(kernel::RegionOp region, mlir::Value indices);

/// Attribute of loops over full vectors that Emitter::independentLanes makes.
inline constexpr llvm::StringLiteral kIndependentLanes = "tc.independent_lanes";

/// Whether an element's place in the packed form can be told from its position: every result of the map is a dim, or a
/// dim times a constant plus a dim, and each dim occurs once.
bool isReadableLayout(mlir::AffineMap map);

/// Code of one pointwise op on scalars or vectors. `elementTypes`: the operands' element types in prim, for signedness.
using PointwiseEmitter = mlir::Value (*)(mlir::OpBuilder &, mlir::Location, mlir::Operation *, mlir::ValueRange);
/// The registered emitter of a pointwise op; null if there is none.
PointwiseEmitter lookupPointwise(mlir::Operation *op);
/// Whether all uses lead through pointwise ops only: the value is read at the written position and nowhere else.
bool isPointwiseUse(mlir::Value value);

/// LLVM is not to unroll this loop.
void disableUnrolling(mlir::Operation *loop);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_EMITTER_H
