//===- Mma.cpp - the "gpu.mma" strategy: products and convolutions on tensor cores --------------------------------===//
//
// A block computes tileM x tileN results. Slices of 128 bytes of K of both operands go through a ring of `stages` tiles
// in shared memory (SharedTile.h): operands that lie in memory as they are used, and pixels of a convolution, by
// asynchronous copies, which are stages - 1 slices ahead; others are computed, with whatever stands before the product.
// On GPUs that have them warpgroups multiply (wgmma), which goes on while the threads fill the next slice; on others
// warps do (ldmatrix, mma.sync), each tileM / warpsM x tileN / warpsN. The sums go through shared memory, so that the
// epilogue computes and stores neighbours.
// Or a warp of its own copies the slices by tensor maps (TMA), which a launch before writes, and the others wait for it
// alone; then rows of TF32 are read while the slice before is multiplied.
//
// Tensor cores take 11 significant bits of f32 (TF32). `passes` = 3 gives f32's accuracy: x = high + low, and high high
// + high low + low high are added up (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores",
// section 3). They add towards zero, so that each slice is summed on its own and added to the others in f32 (section
// 4).
//
// Blocks are numbered so that `group` rows of tiles share the columns that the second-level cache holds. Where there
// are too few tiles for the GPU, K is cut into `splits`, and a second launch adds up their sums.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Mma.h"

#include "Common/EmitterHelpers.h"
#include "GPU/Ring.h"
#include "tc/Analysis/Access.h"
#include "tc/Analysis/Convolution.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

// Fewer channels or columns of a group are no work for tensor cores.
constexpr int64_t kLeastChannels = 8;
// A pixel of an image that a launch writes is at most so many times its channels.
constexpr int64_t kMostPadding = 4;
// Registers of a processor, and of a thread beside its sums; shared memory that a block takes beside its own.
constexpr int64_t kOtherRegisters = 80, kReservedBytes = 1024;
// Times in products of 16 bits, fitted to products of 1576 to 4096 rows on an H200: to write a result, to wait for a
// slice, for a tile's first slices, to launch the kernel that adds up, or that writes tensor maps. Blocks of a
// processor that hide each other's waits.
constexpr double kWrite = 150, kSlice = 1.5e6, kBegin = 12e6, kSecondLaunch = 8e6, kMapsLaunch = 30e6;
// For each step of K: what copying a row or column of a tile takes, by threads and by a warp of its own. What slices of
// TF32 take where rows are rounded between products instead of beside them.
constexpr double kCopy = 30, kTensorCopy = 26, kRoundsRows = 1.135;
// What a thread takes for an element's low part: no products of its block go on meanwhile.
constexpr double kLowPart = 45e3;
constexpr int64_t kMostResident = 4;
// Rows from which on a launch writes an rhs along K: several tiles read the same columns.
constexpr int64_t kWrittenRows = 512;
// Tensor copies take up to five dims, two of which are a tile's, and boxes of up to 256 lines.
constexpr size_t kMostBatchDims = 3;
constexpr int64_t kMostBoxLines = 256;
// Four slices of f32.
constexpr double kFreeDepth = 128;

int64_t knownMultiple(ArrayRef<AffineExpr> sizes) { return sizes.empty() ? 1 : sizes.back().getLargestKnownDivisor(); }

//===--- products
//---------------------------------------------------------------------------------------------------===//

TiledOperand operandOf(const Product *p, bool isLhs, int64_t perPiece) {
  const DimRef::Kind kind = isLhs ? DimRef::Row : DimRef::Column;
  TiledOperand operand;
  operand.tensor = isLhs ? p->lhs : p->rhs;
  operand.outer = isLhs ? p->M : p->N;
  operand.depth = p->K;
  operand.alongDepth = isLhs ? !isRowInnermost(*p) : isDepthInnermost(*p);
  operand.run = knownMultiple(operand.alongDepth ? p->depth : isLhs ? p->rows : p->columns);
  operand.place = [p, isLhs](Emitter &e, ArrayRef<Index> batch, const Index &outer, const Index &depth) {
    const SmallVector<Index> outerAt = e.delinearize(outer, isLhs ? p->rows : p->columns),
                             depthAt = e.delinearize(depth, p->depth);
    return Placed<SmallVector<Index>>{
        Product::place<Index>(isLhs ? p->lhsDims : p->rhsDims, batch, outerAt, outerAt, depthAt, e.constant(0)),
        Value()};
  };
  const std::optional<LinesInPlace> lines = linesInPlace(*p, operand.tensor, operand.alongDepth ? DimRef::Depth : kind);
  if (!lines || !(operand.alongDepth ? operand.depth : operand.outer).isMultipleOf(perPiece) ||
      !lines->stride.isMultipleOf(perPiece) ||
      llvm::any_of(lines->batchStrides, [&](AffineExpr stride) { return !stride.isMultipleOf(perPiece); }))
    return operand;
  operand.input = lines->input;
  operand.lines = TiledOperand::Lines{lines->stride, lines->batchStrides};
  operand.locate = [lines = *lines, along = operand.alongDepth](Emitter &e, ArrayRef<Index> batch, Value outer,
                                                                Value depth) {
    Value offset = e.add(e.mul(along ? outer : depth, e.size(lines.stride)), along ? depth : outer);
    for (auto [index, stride] : llvm::zip_equal(batch, lines.batchStrides))
      offset = e.add(e.mul(index.base, e.size(stride)), offset);
    return Placed<Value>{offset, Value()};
  };
  return operand;
}

MmaProblem asProblem(const Product *p) {
  MmaProblem problem;
  problem.batch = p->batch;
  problem.rows = p->rows;
  problem.columns = p->columns;
  problem.element = elementOf(p->lhs);
  const int64_t perPiece = kPieceBytes / problem.bytes();
  problem.lhs = operandOf(p, /*isLhs=*/true, perPiece);
  problem.rhs = operandOf(p, /*isLhs=*/false, perPiece);
  problem.K = p->K;
  problem.resultAt = [](Emitter &, ArrayRef<Index> batch, ArrayRef<Index> row, ArrayRef<Index> column) {
    SmallVector<Index> at(batch);
    at.append(row.begin(), row.end());
    at.append(column.begin(), column.end());
    return at;
  };
  return problem;
}

//===--- convolutions
//-----------------------------------------------------------------------------------------------===//

/// A convolution's sizes.
struct ConvSizes {
  prim::ConvOp op;
  SmallVector<AffineExpr> input, out; // with the batch and channels
  SmallVector<AffineExpr> taps;       // kernel positions, channels of a group in K
  int64_t groups, channels, columns;  // of a group
  int64_t padded;                     // channels of a group in K: those, and zeros

  size_t spatial() const { return input.size() - 2; }
};

/// Where a pixel's tap lies along the spatial dims, and whether that is in the image.
Placed<SmallVector<Value>> locateTap(const ConvSizes &c, Emitter &e, ArrayRef<Index> pixel, ArrayRef<Index> tap) {
  Placed<SmallVector<Value>> place;
  prim::ConvOp op = c.op;
  for (size_t i = 0; i < c.spatial(); ++i) {
    Value at =
        e.add(e.mul(pixel[1 + i].base, e.i64(op.getStrides()[i])), e.mul(tap[i].base, e.i64(op.getDilations()[i])));
    at = e.sub(at, e.i64(op.getPadLow()[i]));
    place.at.push_back(at);
    if (op.getPadLow()[i] <= 0 && op.getPadHigh()[i] <= 0)
      continue;
    const Value within = e.isWithin(at, c.input[1 + i]);
    place.isValid = place.isValid ? Value(arith::AndIOp::create(e.builder(), e.loc(), place.isValid, within)) : within;
  }
  return place;
}

/// `imageInput`: the kernel's input that a launch before has written; then K has whole pieces of each pixel.
MmaProblem asProblem(prim::ConvOp op, std::optional<unsigned> imageInput = {}) {
  auto c = std::make_shared<ConvSizes>();
  c->op = op;
  c->input = prim::getSizes(op.getInput());
  c->out = prim::getSizes(op.getResult());
  const SmallVector<AffineExpr> filter = prim::getSizes(op.getFilter());
  c->taps.assign(filter.begin(), filter.end() - 1);
  c->groups = op.getGroups();
  c->channels = *prim::getConstantSize(filter[filter.size() - 2]);
  c->columns = *prim::getConstantSize(filter.back()) / c->groups;
  MLIRContext *context = op.getContext();
  MmaProblem problem;
  problem.element = elementOf(op.getInput());
  const int64_t perPiece = kPieceBytes / problem.bytes();
  c->padded = imageInput ? int64_t(llvm::alignTo(uint64_t(c->channels), uint64_t(perPiece))) : c->channels;
  c->taps.back() = getAffineConstantExpr(c->padded, context);
  if (c->groups > 1)
    problem.batch = {getAffineConstantExpr(c->groups, context)};
  problem.rows.assign(c->out.begin(), c->out.end() - 1);
  problem.columns = {getAffineConstantExpr(c->columns, context)};
  problem.K = prim::product(context, c->taps);
  problem.resultAt = [c](Emitter &e, ArrayRef<Index> batch, ArrayRef<Index> row, ArrayRef<Index> column) {
    SmallVector<Index> at(row);
    at.push_back(batch.empty() ? column[0] : e.joinIndex(batch[0], column[0], c->columns));
    return at;
  };

  TiledOperand &lhs = problem.lhs, &rhs = problem.rhs;
  lhs.tensor = op.getInput();
  lhs.outer = prim::product(context, problem.rows);
  lhs.depth = rhs.depth = problem.K;
  lhs.alongDepth = true;
  lhs.run = c->channels;
  lhs.place = [c](Emitter &e, ArrayRef<Index> batch, const Index &outer, const Index &depth) {
    const SmallVector<Index> pixel = e.delinearize(outer, ArrayRef(c->out).drop_back()),
                             tap = e.delinearize(depth, c->taps);
    const Placed<SmallVector<Value>> spatial = locateTap(*c, e, pixel, tap);
    Placed<SmallVector<Index>> place{{pixel[0]}, spatial.isValid};
    for (Value at : spatial.at)
      place.at.push_back(e.uniform(at));
    place.at.push_back(batch.empty() ? tap.back() : e.joinIndex(batch[0], tap.back(), c->channels));
    return place;
  };
  lhs.input = imageInput ? imageInput : c->channels % perPiece == 0 ? inputThroughReshapes(lhs.tensor) : std::nullopt;
  lhs.locate = [c](Emitter &e, ArrayRef<Index> batch, Value outer, Value depth) {
    const SmallVector<Index> pixel = e.delinearize(e.uniform(outer), ArrayRef(c->out).drop_back()),
                             tap = e.delinearize(e.uniform(depth), c->taps);
    const Placed<SmallVector<Value>> spatial = locateTap(*c, e, pixel, tap);
    Value offset = pixel[0].base;
    for (auto [at, size] : llvm::zip_equal(spatial.at, ArrayRef(c->input).drop_front().drop_back()))
      offset = e.add(e.mul(offset, e.size(size)), at);
    offset = e.add(e.mul(offset, e.i64(c->groups * c->padded)), tap.back().base);
    if (!batch.empty())
      offset = e.add(offset, e.mul(batch[0].base, e.i64(c->padded)));
    return Placed<Value>{offset, spatial.isValid};
  };
  if (imageInput)
    problem.image = MmaProblem::Image{op.getInput(), SmallVector<AffineExpr>(ArrayRef(c->input).drop_back()), c->groups,
                                      c->channels, c->padded};

  rhs.tensor = op.getFilter();
  rhs.outer = problem.columns[0];
  rhs.alongDepth = false;
  rhs.run = c->columns;
  // Channels that are zeros have no rows in the filter.
  auto isChannel = [c](Emitter &e, const Index &channel) {
    return c->padded == c->channels
               ? Value()
               : e.isWithin(channel.base, getAffineConstantExpr(c->channels, e.builder().getContext()));
  };
  rhs.place = [c, isChannel](Emitter &e, ArrayRef<Index> batch, const Index &outer, const Index &depth) {
    Placed<SmallVector<Index>> place{e.delinearize(depth, c->taps), Value()};
    place.isValid = isChannel(e, place.at.back());
    place.at.push_back(batch.empty() ? outer : e.joinIndex(batch[0], outer, c->columns));
    return place;
  };
  rhs.input = c->columns % perPiece == 0 ? inputThroughReshapes(rhs.tensor) : std::nullopt;
  rhs.locate = [c, isChannel](Emitter &e, ArrayRef<Index> batch, Value outer, Value depth) {
    Value row = depth, isValid;
    if (c->padded != c->channels) {
      const auto [position, channel] =
          e.divide(e.uniform(depth), getAffineConstantExpr(c->padded, e.builder().getContext()));
      row = e.add(e.mul(position.base, e.i64(c->channels)), channel.base);
      isValid = isChannel(e, channel);
    }
    Value offset = e.add(e.mul(row, e.i64(c->groups * c->columns)), outer);
    if (!batch.empty())
      offset = e.add(offset, e.mul(batch[0].base, e.i64(c->columns)));
    return Placed<Value>{offset, isValid};
  };
  return problem;
}

/// A constant rhs [.., K, columns of all groups], or [columns, K], as [columns of all groups, K].
void addPacking(MmaProblem &problem, const RegionProblem &region) {
  const std::optional<unsigned> input = inputThroughReshapes(problem.rhs.tensor);
  const int64_t perPiece = kPieceBytes / problem.bytes();
  const auto depth = prim::getConstantSize(problem.K), columns = prim::getConstantSize(problem.N),
             groups = prim::getConstantSize(problem.B);
  auto conv = dyn_cast<prim::ConvOp>(region.findAnchor());
  if (!input || !region.isConstant(*input) || !depth || !columns || !groups || *depth % perPiece != 0 ||
      (!problem.batch.empty() && !conv))
    return;
  const bool alongDepth = problem.rhs.alongDepth;
  const Value constant = region.getBody().getArgument(*input);
  // A copy that is rounded, of what others read as it is, would be stored beside it.
  if (alongDepth && (!problem.rhs.input || !region.getOp().getInputs()[*input].hasOneUse()))
    return;
  const SmallVector<AffineExpr> sizes = prim::getSizes(constant);
  MLIRContext *context = region.getContext();
  const int64_t all = *groups * *columns;
  const AffineExpr line = getAffineDimExpr(0, context), inner = getAffineDimExpr(1, context);
  SmallVector<AffineExpr> at;
  if (problem.image && problem.image->padded != problem.image->channels) {
    SmallVector<AffineExpr> taps = prim::getSizes(conv.getFilter());
    if (sizes != taps)
      return;
    taps.pop_back();
    taps.back() = getAffineConstantExpr(problem.image->padded, context);
    at = delinearizeExpr(inner, taps); // past a filter's channels there are zeros
    at.push_back(line);
  } else {
    // Nothing but K and the columns.
    if (prim::getConstantSize(prim::product(context, sizes)) != all * *depth)
      return;
    at = delinearizeExpr(alongDepth ? line * *depth + inner : inner * all + line, sizes);
  }
  problem.packing =
      PackedInput{*input, AffineMap::get(2, 0, at, context), RankedTensorType::get({all, *depth}, elementOf(constant))};
  TiledOperand packed = problem.rhs;
  packed.alongDepth = true;
  packed.run = *depth;
  packed.input = *input;
  packed.lines = TiledOperand::Lines{getAffineConstantExpr(*depth, context), {}};
  if (!problem.batch.empty())
    packed.lines->batchStrides = {getAffineConstantExpr(*columns * *depth, context)};
  packed.locate = [depth = *depth, columns = *columns](Emitter &e, ArrayRef<Index> batch, Value outer, Value inner) {
    Value line = outer;
    if (!batch.empty())
      line = e.add(line, e.mul(batch[0].base, e.i64(columns)));
    return Placed<Value>{e.add(e.mul(line, e.i64(depth)), inner), Value()};
  };
  problem.packedRhs = packed;
}

/// The rhs of a product as a launch may write it.
void addWrittenRhs(MmaProblem &problem, const RegionProblem &region) {
  const int64_t perPiece = kPieceBytes / problem.bytes();
  const AffineExpr stride = prim::simplifySize(problem.K.ceilDiv(perPiece) * perPiece);
  problem.writtenType = prim::makeType(problem.element, {problem.B, problem.N, stride});
  TiledOperand written = problem.rhs;
  written.alongDepth = true;
  written.input = region.getOp().getInputs().size();
  written.lines = TiledOperand::Lines{stride, {}};
  AffineExpr batchStride = problem.N * stride;
  for (AffineExpr size : llvm::reverse(problem.batch)) {
    written.lines->batchStrides.insert(written.lines->batchStrides.begin(), prim::simplifySize(batchStride));
    batchStride = batchStride * size;
  }
  written.locate = [batchSizes = problem.batch, N = problem.N, stride](Emitter &e, ArrayRef<Index> batch, Value outer,
                                                                       Value depth) {
    Value line = outer;
    if (!batch.empty())
      line = e.add(line, e.mul(e.linearize(batch, batchSizes).base, e.size(N)));
    return Placed<Value>{e.add(e.mul(line, e.size(stride)), depth), Value()};
  };
  problem.writtenRhs = written;
}

void complete(MmaProblem &problem, const RegionProblem &region, const Epilogue *epilogue) {
  MLIRContext *context = region.getContext();
  problem.epilogue = epilogue;
  problem.B = prim::product(context, problem.batch);
  problem.M = prim::product(context, problem.rows);
  problem.N = prim::product(context, problem.columns);
  if (problem.element.isF32())
    addPacking(problem, region);
}

} // namespace

//===--- the problem
//------------------------------------------------------------------------------------------------===//

std::optional<MmaProblem> tc::codegen::gpu::asMmaProblem(const RegionProblem &region) {
  Operation *anchor = region.findAnchor();
  if (!isa_and_nonnull<prim::DotGeneralOp, prim::ConvOp>(anchor))
    return std::nullopt;
  const Value result = anchor->getResult(0);
  const Type element = elementOf(anchor->getOperand(0));
  if (element != elementOf(anchor->getOperand(1)) || !isa<Float16Type, BFloat16Type, Float32Type>(element) ||
      !isa<Float16Type, BFloat16Type, Float32Type>(elementOf(result)))
    return std::nullopt;
  const Epilogue *epilogue = region.findWholeEpilogue(result);
  if (!epilogue)
    return std::nullopt;
  MmaProblem problem;
  if (const Product *product = region.findProduct()) {
    problem = asProblem(product);
    complete(problem, region, epilogue);
    if (element.isF32() && !problem.packing)
      addWrittenRhs(problem, region);
  } else if (const Convolution *c = region.findConvolution();
             c && c->columns >= kLeastChannels && c->depth() >= kLeastChannels) {
    auto op = cast<prim::ConvOp>(anchor);
    problem = asProblem(op);
    complete(problem, region, epilogue);
    auto withImage = std::make_shared<MmaProblem>(asProblem(op, unsigned(region.getOp().getInputs().size())));
    complete(*withImage, region, epilogue);
    // The image is worth a launch where pixels are read several times or cannot be read by pieces.
    const bool isPointwise = withImage->image->padded == withImage->image->channels &&
                             prim::getConstantSize(problem.K) == withImage->image->channels;
    if (!problem.lhs.input && !isPointwise && withImage->image->padded <= kMostPadding * withImage->image->channels)
      problem.withImage = withImage;
  } else {
    return std::nullopt;
  }
  if (prim::getConstantSize(problem.K) == 0)
    return std::nullopt;
  return problem;
}

SmallVector<AffineExpr> tc::codegen::gpu::writeGrid(const MmaProblem &p) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(p.writtenType);
  return {p.B, prim::simplifySize(p.N.ceilDiv(kWriteOuter)), prim::simplifySize(sizes.back().ceilDiv(kWriteDepth))};
}

SmallVector<AffineExpr> MmaProblem::grid(MmaSchedule s) const {
  return {getAffineConstantExpr(s.getSplits(), s.getContext()), B, prim::simplifySize(M.ceilDiv(s.getTileM())),
          prim::simplifySize(N.ceilDiv(s.getTileN()))};
}

int64_t tc::codegen::gpu::countThreads(MmaSchedule s) { return s.getWarpsM() * s.getWarpsN() * machine::kWarpThreads; }

int64_t tc::codegen::gpu::lanesOf(const MmaProblem &p) { return knownMultiple(p.columns) % kLanes == 0 ? kLanes : 1; }

static SharedTile makeTile(const TiledOperand &operand, int64_t outer, int64_t bytes) {
  const int64_t perLine = kLineBytes / bytes;
  // Lines of less than 128 bytes go along K, whatever memory is like; and all of f32, which tensor cores read so alone.
  return {outer, perLine, bytes, operand.alongDepth || outer % perLine != 0 || bytes == 4};
}

MmaLayout::MmaLayout(const MmaProblem &p, MmaSchedule s)
    : lhs(makeTile(p.lhs, s.getTileM(), p.bytes())), rhs(makeTile(p.rhsOf(s), s.getTileN(), p.bytes())),
      stages(s.getStages()), stageBytes(lhs.size() + rhs.size()), lowBytes(s.getPasses() == 1 ? 0 : stageBytes),
      sumsBytes(s.getTileM() * sumRowWords(s.getTileN()) * 4),
      barrierBytes(MmaProblem::hasMaps(s) ? Ring::barrierBytes(stages) : 0) {}

bool tc::codegen::gpu::haveTensorCopies(const MmaProblem &p, MmaSchedule s) {
  const MmaLayout layout(p, s);
  const TiledOperand &rhs = p.rhsOf(s);
  auto fits = [&](const TiledOperand &operand, const SharedTile &tile) {
    return operand.lines && TileFiller::isAsync(operand, tile) && operand.lines->batchDims().size() <= kMostBatchDims &&
           tile.lines() <= kMostBoxLines;
  };
  // Of no steps at all there is no map.
  return prim::getConstantSize(p.K) && s.getPasses() == 1 && s.getTileM() % kGroupM == 0 &&
         s.getTileM() / kGroupM * kGroupThreads == countThreads(s) && fits(p.lhs, layout.lhs) && fits(rhs, layout.rhs);
}

//===--- the strategy
//-----------------------------------------------------------------------------------------------===//

namespace {

/// Whether three passes over operands of f32 cost no time, so that nothing need be left out: memory takes longer, and a
/// tile's ring holds all of K. Longer sums go on with one slice while the next is on its way, and passes show.
bool areExactForFree(const RegionProblem &region, double products, double depth, machine::GpuAttr gpu) {
  const base::CostAttr cost = region.getOp().getCostAttr();
  if (!cost || depth > kFreeDepth)
    return false;
  // TF32 goes at half the rate of 16 bits.
  const double passes = 3 * 2 * (2 * products) / double(gpu.getMmaGigaflops());
  return passes <= double(evaluateLikely(cost.getBytesExpr(), region.getOp(), usual::kExtent)) /
                       double(gpu.getGigabytesPerSecond());
}

class MmaGenerator final : public GeneratorFor<MmaSchedule, MmaProblem> {
public:
  std::optional<MmaProblem> analyze(const RegionProblem &region) const override { return asMmaProblem(region); }

  FailureOr<MmaSchedule> decide(const RegionProblem &region, const MmaProblem &given) const override {
    const SmallVector<Costed> all = listSchedules(region, given, kNarrow, kExact);
    const auto best = llvm::min_element(all, [](const Costed &a, const Costed &b) { return a.cost < b.cost; });
    return best == all.end() ? FailureOr<MmaSchedule>(failure()) : FailureOr<MmaSchedule>(best->schedule);
  }

  /// Other tiles, and the best one with another ring, other parts of K, another order of blocks, without the launch
  /// before it: what the cost model says least of.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const MmaProblem &given) const override {
    const FailureOr<MmaSchedule> best = decide(region, given);
    if (failed(best))
      return {};
    SmallVector<kernel::ScheduleAttr> others;
    auto add = [&](llvm::function_ref<bool(MmaSchedule::Params &)> change) {
      MmaSchedule::Params params = best->getParams();
      if (!change(params))
        return;
      const MmaSchedule s = params.get(region.getContext());
      const MmaProblem &p = given.of(s);
      if (MmaLayout(p, s).sharedBytes() <= region.getLimits().sharedBytes &&
          (!s.getTensorCopies() || haveTensorCopies(p, s)))
        others.push_back(s);
    };
    SmallVector<Costed> all = listSchedules(region, given, kNarrow, kExact);
    all.append(listSchedules(region, given, kMoreNarrow, kMoreExact));
    llvm::stable_sort(all, [](const Costed &a, const Costed &b) { return a.cost < b.cost; });
    size_t count = 0;
    for (const Costed &other : all)
      if (other.schedule != *best && count++ < kOtherTiles)
        others.push_back(other.schedule);
    const double depth = getLikelySize(given.K, region.findAnchor(), usual::kProductDepth);
    add([](auto &params) { return ++params.stages, true; });
    add([&](auto &params) {
      params.splits *= 2;
      return depth / double(params.splits) >= kLeastPart;
    });
    add([](auto &params) {
      params.splits /= 2;
      return params.splits >= 1;
    });
    add([&](auto &params) {
      // What is packed, or written, may be so only for an image with pixels of whole 16 bytes.
      params.packsRhs = params.packsRhs && given.packing;
      params.rhsLaunch = params.rhsLaunch && given.writtenRhs;
      return std::exchange(params.lhsLaunch, false);
    });
    add([](auto &params) { return std::exchange(params.rhsLaunch, false); });
    add([](auto &params) { return --params.stages >= 2; });
    add([](auto &params) { return params.group *= 2, true; });
    return others;
  }

  std::optional<double> compareAtSizes(const RegionProblem &region, const MmaProblem &given,
                                       MmaSchedule schedule) const override {
    return compareCosts<MmaSchedule>(listSchedules(region, given, kNarrow, kExact), schedule);
  }

  /// Of what f32's multiply-adds reach.
  Efficiency efficiency(const RegionProblem &, kernel::ScheduleAttr) const override { return {8, 1}; }

  SmallVector<PackedInput> packInputs(const MmaProblem &given, MmaSchedule s) const override {
    if (!s.getPacksRhs())
      return {};
    PackedInput packing = *given.of(s).packing;
    packing.tf32 = given.takesTf32(s);
    return {packing};
  }

private:
  struct Shape {
    int64_t tileM, tileN, warpsM, warpsN, stages;
  };
  // Warpgroups take 64 rows each. Three passes have three sets of sums in registers.
  static constexpr Shape kNarrow[] = {{128, 256, 2, 4, 3}, {128, 128, 2, 4, 3}, {64, 256, 1, 4, 3},
                                      {128, 64, 2, 4, 4},  {64, 128, 1, 4, 4},  {64, 128, 1, 4, 3},
                                      {64, 64, 1, 4, 4},   {16, 128, 1, 4, 6},  {16, 64, 1, 4, 8}};
  static constexpr Shape kExact[] = {{128, 128, 2, 4, 3}, {64, 128, 1, 4, 3}, {64, 64, 1, 4, 4}, {16, 64, 1, 4, 6}};
  // That measuring alone takes.
  static constexpr Shape kMoreNarrow[] = {{256, 128, 4, 4, 3}, {32, 128, 2, 4, 5}, {32, 64, 2, 2, 6}};
  static constexpr Shape kMoreExact[] = {{32, 64, 2, 2, 4}};
  // Other tiles than the cost model's first that are measured; the least steps of K of a part.
  static constexpr size_t kOtherTiles = 3;
  static constexpr double kLeastPart = 128;

  using Costed = CostedSchedule<MmaSchedule>;
  /// Schedules of these tiles that fit, with what they cost.
  SmallVector<Costed> listSchedules(const RegionProblem &region, const MmaProblem &given, ArrayRef<Shape> narrow,
                                    ArrayRef<Shape> exact) const {
    const MmaProblem &p = given.withImage ? *given.withImage : given;
    Operation *anchor = region.findAnchor();
    const machine::GpuAttr gpu = machine::getDefaultGpu(region.getContext());
    const double rows = getLikelySize(p.M, anchor, usual::kProductRows),
                 columns = getLikelySize(p.N, anchor, usual::kProductColumns),
                 batch = getLikelySize(p.B, anchor, usual::kBatch),
                 depth = getLikelySize(p.K, anchor, usual::kProductDepth);
    const bool isExact = p.element.isF32() && (!region.getLimits().allowsTf32 ||
                                               areExactForFree(region, batch * rows * columns * depth, depth, gpu));
    SmallVector<Costed> all;
    const double processors = double(gpu.getMultiprocessors());
    auto countTiles = [&](int64_t tileM, int64_t tileN) {
      return batch * std::ceil(rows / double(tileM)) * std::ceil(columns / double(tileN));
    };
    auto consider = [&](const MmaSchedule::Params &params) {
      const MmaSchedule s = params.get(region.getContext());
      const int64_t sharedBytes = MmaLayout(p, s).sharedBytes(), threads = countThreads(s);
      if (sharedBytes > region.getLimits().sharedBytes)
        return;
      // In the time of a product of 16 bits: what a tile's slices take, of which each waits for a barrier and its data
      // while no other block goes on; what is written; what the first slices take to come; and further launches.
      const int64_t tileM = s.getTileM(), tileN = s.getTileN();
      const double tiles = countTiles(tileM, tileN), splits = double(s.getSplits()),
                   slices = std::ceil(depth / splits * double(p.bytes()) / kLineBytes);
      const double size = double(tileM * tileN), perProduct = double(p.bytes()) / 2 * (isExact ? 3 : 1);
      const int64_t registers = tileM * tileN / threads * (isExact ? 3 : 1) + kOtherRegisters;
      const double resident = std::clamp<double>(
          std::min(gpu.getSharedBytes() / (sharedBytes + kReservedBytes), kRegisters / (registers * threads)), 1,
          kMostResident);
      const double turns = std::ceil(tiles * splits / processors);
      const double copied = double(tileM + tileN) * (p.hasMaps(s) ? kTensorCopy : kCopy);
      const double between = p.takesTf32(s) && !p.hasMaps(s) ? kRoundsRows : 1;
      // Warps split what each of them reads.
      const int64_t lines = tileM < kGroupM
                                ? (tileM / s.getWarpsM() + tileN / s.getWarpsN()) * (threads / machine::kWarpThreads)
                                : tileM + tileN;
      const double low = isExact ? kLowPart * double(lines * kLineBytes / p.bytes()) / double(threads) : 0;
      const double hidden = std::min(resident, turns); // waits of one block by products of others
      const double slice = std::max(
          (size + copied) * between * kLineBytes / double(p.bytes()) * perProduct + low / hidden, kSlice / hidden);
      const double tile = slices * slice + size * kWrite * (splits > 1 ? 2 : 1);
      const double cost = turns * tile + std::ceil(turns / resident) * kBegin + (splits > 1 ? kSecondLaunch : 0) +
                          (p.hasMaps(s) ? kMapsLaunch : 0);
      all.push_back({cost, s});
    };
    for (const Shape &s : isExact ? exact : narrow) {
      // Few rows are for warps, which take no more, many for warpgroups.
      if (s.tileM < kGroupM ? rows > double(2 * kGroupM) : rows <= double(kFragmentM))
        continue;
      const double tiles = countTiles(s.tileM, s.tileN);
      // K is cut as long as processors are idle and a part is worth a tile's sums.
      int64_t splits = 1;
      while (tiles * splits * 2 <= processors && depth / (splits * 2) >= 512)
        splits *= 2;
      MmaSchedule::Params params;
      params.tileM = s.tileM;
      params.tileN = s.tileN;
      params.warpsM = s.warpsM;
      params.warpsN = s.warpsN;
      // No more than there are slices of a part.
      const double slices = std::ceil(depth / splits * double(p.bytes()) / kLineBytes);
      params.stages = std::max<int64_t>(2, std::min<int64_t>(s.stages, int64_t(std::min(slices, 64.0))));
      params.splits = splits;
      params.passes = isExact ? 3 : 1;
      params.packsRhs = p.packing && !(isExact && p.rhs.alongDepth);
      params.lhsLaunch = p.image.has_value();
      params.rhsLaunch = p.writtenRhs && rows >= kWrittenRows && !(isExact && p.rhs.alongDepth && p.rhs.input);
      consider(params);
      if (s.tileM >= 2 * kGroupM) {
        params.tensorCopies = true;
        if (haveTensorCopies(p, params.get(region.getContext())))
          consider(params);
      }
    }
    return all;
  }

public:
  SmallVector<Launch> makeLaunches(const MmaProblem &given, MmaSchedule s) const override {
    const MmaProblem &p = given.of(s);
    MLIRContext *context = s.getContext();
    SmallVector<Launch> launches;
    if (p.image) {
      Launch image;
      image.suffix = "_image";
      SmallVector<AffineExpr> sizes(p.image->pixels);
      sizes.push_back(getAffineConstantExpr(p.image->groups * p.image->padded, context));
      const int64_t perBlock = kWriteThreads * kPieceBytes / p.bytes();
      image.tasks = prim::simplifySize(prim::product(context, sizes).ceilDiv(perBlock));
      image.device = deviceAttr(context, kWriteThreads);
      image.temporaries = {prim::makeType(p.element, sizes)};
      launches.push_back(image);
    }
    if (s.getRhsLaunch()) {
      Launch rhs;
      rhs.suffix = "_rhs";
      rhs.tasks = prim::product(context, writeGrid(p));
      rhs.device = deviceAttr(context, kWriteThreads, kWriteOuter * kLineBytes);
      rhs.temporaries = {p.writtenType};
      launches.push_back(rhs);
    }
    if (p.hasMaps(s)) {
      Launch maps;
      maps.suffix = "_maps";
      maps.tasks = getAffineConstantExpr(1, context);
      maps.device = deviceAttr(context, 2 * machine::kWarpThreads, 2 * kTensorMapBytes);
      maps.temporaries = {prim::makeType(IntegerType::get(context, 8), {getAffineConstantExpr(kMapsBytes, context)})};
      launches.push_back(maps);
    }
    Launch products;
    products.tasks = prim::product(context, p.grid(s));
    products.device = deviceAttr(context, countThreads(s) + (p.hasMaps(s) ? kGroupThreads : 0),
                                 MmaLayout(p, s).sharedBytes(), /*isAlone=*/p.hasMaps(s));
    products.doesWork = true;
    if (s.getSplits() > 1) {
      products.suffix = "_parts";
      products.temporaries.push_back(
          prim::makeType(Float32Type::get(context), {getAffineConstantExpr(s.getSplits(), context), p.B, p.M, p.N}));
    }
    launches.push_back(products);
    if (s.getSplits() > 1) {
      Launch sums;
      sums.tasks = prim::simplifySize((p.B * p.M * p.N).ceilDiv(kSumThreads * lanesOf(p)));
      sums.device = deviceAttr(context, kSumThreads);
      launches.push_back(sums);
    }
    return launches;
  }

  void emitTasks(const MmaProblem &given, MmaSchedule s, unsigned number, Emitter &e, Value begin,
                 Value) const override {
    e.alignedBuffers = true;
    const MmaProblem &p = given.of(s);
    const unsigned before = p.launchesBefore(s);
    if (number > before)
      return emitMmaSums(p, s, e, begin);
    if (number == before)
      return emitMmaBlock(p, s, e, begin);
    if (p.hasMaps(s) && number == before - 1)
      return emitMmaMaps(p, s, e);
    p.image &&number == 0 ? emitMmaImage(p, e, begin) : emitMmaRhs(p, s, e, begin);
  }
};

} // namespace

const Generator *tc::codegen::gpuMmaGenerator() {
  static const MmaGenerator generator;
  return &generator;
}
