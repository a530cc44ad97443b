//===- Contract.cpp - the "cpu.contract" strategy: matrix products and convolutions ------------------------------===//
//
// Every anchor is seen as result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], in f32; products are in f64,
// too. Constant weights of f16 and bf16 that are widened to f32 are packed as they are, and widened as micro-kernels
// read them. A task is a block of rows times a block of columns of one batch element. B is read in panels of 16
// columns, packed when the artifact is made if it is constant, else by a launch of its own, or by the task itself where
// no other task reads the same panels. A is read where it lies if its rows are contiguous, else the task first copies
// its rows, evaluating whatever stands before the anchor. Micro-kernels (MicroKernel.h) write a small tile of C; the
// epilogue runs over it while it is in the first-level cache.
//
// A convolution is the same with taps: k runs over (kernel positions, input channels), channels last, so that along the
// last spatial dim the kernel positions and channels of one output pixel are contiguous in the input. The task copies
// the input rows that it needs with a halo of zeros, unless there is no padding. Its rows are patches of output pixels.
// A filter that only the run knows (modulated and generated ones, gradients) is packed by a launch of its own.
// This is the batch-reduce form of Georganas et al., "High-Performance Deep Learning via a Single Building Block",
// section 3.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Contract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::contract;

namespace {
constexpr int64_t kFewThreads = 4;
// Sums of so few steps are written where they go, if nothing is to be done with them: to copy them from a tile in
// scratch takes a part of the time.
constexpr int64_t kDirectSteps = 64;
// Shorter parts of the columns are stored element by element.
constexpr int64_t kLeastRun = 2;
} // namespace

/// Whether both operands and the result have the same element type, one that the micro-kernel computes in.
static bool hasElements(Operation *anchor, const Product *product) {
  auto element = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); };
  const Type result = element(anchor->getResult(0));
  return (result.isF32() || (result.isF64() && product)) && element(anchor->getOperand(0)) == result &&
         element(anchor->getOperand(1)) == result;
}

Type contract::packedType(Emitter &em, int64_t rhsInput, Type element) {
  if (rhsInput < 0)
    return {};
  Type packed = cast<RankedTensorType>(em.region().getInputs()[rhsInput].getType()).getElementType();
  return packed == element ? Type() : packed;
}

bool contract::hasFunctions(kernel::RegionOp region) {
  return llvm::any_of(region.getBody().front(), [](Operation &op) { return prim::isTranscendental(&op); });
}

bool contract::isWorthSplitting(double tasks, double flops, double least) {
  return (tasks < kTasks && flops > least) || (tasks < kFewThreads && flops > kFewTaskFlops);
}

bool contract::isMoreEven(const Split &after, const Split &before) { return after.busier() < 0.95 * before.busier(); }

int64_t contract::fewerPanels(std::optional<int64_t> panels, int64_t tilePanels, int64_t wide) {
  const int64_t half = roundUp(tilePanels / 2, wide);
  int64_t best = half;
  for (int64_t fewer = half; panels && fewer >= std::max(wide, half / 2); fewer -= wide)
    if (ceilDiv(*panels, fewer) * fewer < ceilDiv(*panels, best) * best)
      best = fewer;
  return best;
}

int64_t contract::grainFor(double flops) { return codegen::grainFor(kGrainFlops, flops); }

void contract::forTiles(Emitter &em, Extent count, int64_t rows, std::optional<int64_t> rest,
                        llvm::function_ref<void(Index, Extent, std::optional<int64_t>)> body) {
  if (count.constant && *count.constant <= rows)
    return body(em.constant(0), count, std::nullopt);
  if (count.constant)
    rest = *count.constant % rows;
  em.loop(
      em.i64(0), count.get(em), rows,
      [&](Index first) {
        Extent height = rest == 0 ? Extent(rows) : Extent(em.min(em.i64(rows), em.sub(count.get(em), first.base)));
        body(first, height, rest);
      },
      0);
}

void contract::forGroups(Emitter &em, Value first, Value panels, int64_t groupPanels, Extent all,
                         llvm::function_ref<void(Index, int64_t, Extent)> body) {
  const int64_t cols = groupPanels * kPanel;
  if (!all.constant) {
    em.loop(em.i64(0), panels, groupPanels, [&](Index panel) {
      const Value begin = em.mul(em.add(first, panel.base), em.i64(kPanel));
      body(panel, groupPanels, Extent(em.min(em.i64(cols), em.sub(all.value, begin))));
    });
    return;
  }
  const int64_t whole = *all.constant / cols * groupPanels, rest = *all.constant % cols;
  const Value wholeHere = rest == 0 ? panels : em.min(panels, em.sub(em.i64(whole), first));
  if (whole > 0)
    em.loop(em.i64(0), wholeHere, groupPanels, [&](Index panel) { body(panel, groupPanels, Extent(cols)); });
  if (rest > 0)
    em.loop(
        wholeHere, panels, groupPanels, [&](Index panel) { body(panel, ceilDiv(rest, kPanel), Extent(rest)); },
        groupPanels);
}

namespace {
class ContractGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    Operation *anchor = region.findAnchor();
    if (!isa_and_nonnull<prim::DotGeneralOp, prim::ConvOp>(anchor))
      return std::nullopt;
    const Product *product = region.findProduct();
    const Convolution *convolution = product ? nullptr : region.findConvolution();
    if (!(product || convolution) || !hasElements(anchor, product))
      return std::nullopt;
    const Epilogue *epilogue = region.findWholeEpilogue(anchor->getResult(0));
    return epilogue ? std::optional(Problem{product, convolution, *epilogue}) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    Schedule::Params params;
    if (const Product *product = p.product) {
      chooseProduct(*product, region, params);
      const bool isOnlyOutput = llvm::equal(region.getYielded(), ValueRange(product->result));
      if (product->k && product->n && *product->k <= kDirectSteps && isOnlyOutput)
        params.direct = 1;
      if (const int64_t run = product->n ? splitColumns(region.getOp(), *product->n, kLeastRun) : 0)
        params.run = run;
    } else {
      const Convolution &c = *p.convolution;
      if (failed(chooseConvolution(c, region, params)))
        return failure();
      if (const int64_t run = splitColumns(region.getOp(), c.groups * c.columns, kLeastRun);
          run && c.columns % run == 0)
        params.run = run;
    }
    return params.get(region.getContext());
  }

  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const Problem &p,
                                                 machine::CpuAttr cpu) const override {
    FailureOr<Schedule> chosen = decide(region, p);
    if (failed(chosen))
      return {};
    return p.product ? productAlternatives(*p.product, *chosen, cpu.getVectors())
                     : convolutionAlternatives(*p.convolution, *chosen, cpu.getVectors());
  }

  SmallVector<PackedInput> packInputs(const Problem &p, Schedule schedule) const override {
    int64_t rhs = schedule.getRhs();
    if (rhs < 0)
      return {};
    auto isRhs = [&](unsigned i) { return int64_t(i) == rhs; };
    std::optional<PackedInput> packed = p.product ? packedRhs(*p.product, isRhs) : packedFilter(*p.convolution, isRhs);
    return packed ? SmallVector<PackedInput>{*packed} : SmallVector<PackedInput>{};
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    SmallVector<Launch> launches;
    Launch launch;
    SmallVector<AffineExpr> grid;
    AffineExpr floats; // of scratch
    int64_t bytes = 4;
    if (const Product *product = p.product) {
      if (schedule.getLhsLaunch())
        launches.push_back(copyingLaunch(*product, schedule));
      if (schedule.getRhsLaunch())
        launches.push_back(packingLaunch(*product, schedule));
      grid = productGrid(*product, schedule);
      bytes = product->elementBytes();
      floats = packedFloats(*product, schedule);
      if (!schedule.getLhsLaunch())
        floats = prim::simplifySize(floats + copyFloats(*product, schedule));
    } else {
      if (schedule.getRhsLaunch())
        launches.push_back(packingLaunch(*p.convolution));
      grid = convolutionGrid(*p.convolution, schedule);
      floats = getAffineConstantExpr(convolutionFloats(*p.convolution, schedule), context);
    }
    launch.tasks = prim::product(context, grid);
    if (prim::getConstantSize(floats) != 0) // 64 bytes more: full vectors may be stored at the end
      launch.scratch = prim::simplifySize((floats.ceilDiv(16) + 4) * (16 * bytes));
    launch.inPlace = p.epilogue.inPlace();
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    const bool isPacking = int64_t(number) == schedule.getLhsLaunch() && schedule.getRhsLaunch();
    if (const Product *product = p.product) {
      if (number == 0 && schedule.getLhsLaunch())
        return emitCopying(*product, schedule, em, begin, end);
      if (isPacking)
        return emitPacking(*product, schedule, em, begin, end);
      return emitProduct(*product, schedule, p.epilogue, em, begin, end);
    }
    if (isPacking)
      return emitPacking(*p.convolution, em, begin, end);
    emitConvolution(*p.convolution, schedule, p.epilogue, em, begin, end);
  }
};
} // namespace

const Generator *tc::codegen::contractGenerator() {
  static const ContractGenerator generator;
  return &generator;
}
