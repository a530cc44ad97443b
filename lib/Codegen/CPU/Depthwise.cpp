//===- Depthwise.cpp - the "cpu.depthwise" strategy: convolutions with few channels for each group ---------------===//
//
// Groups have as many input as output channels: 1, 2, 4 or 8. Lanes run along the channels, so that a vector holds
// whole groups, and each input channel of a group in turn is spread over the lanes of its group by one shuffle, where a
// product of each group's own would leave lanes empty. A block of neighbouring output pixels of a row keeps one
// accumulator a pixel; each input vector is loaded (and shuffled) once for each kernel row and used for all kernel
// columns, and the epilogue takes the accumulators as they are. Blocks whose window lies inside the input read it where
// it is, and those at the borders too, with a row of zeros for pixels outside; if something stands before the anchor,
// the task first copies the block's window with its padding. Bytes that are converted before the anchor are converted
// as they are loaded; at the borders they are copied. Long rows of a kernel (filters of sequences) are loops over
// segments. Of three spatial dims the planes of the kernel that lie inside the input are the outermost loop.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/MicroKernel.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/Convolution.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuDepthwiseAttr;

/// Most taps that are written out. Of longer rows of a kernel so many at once.
constexpr int64_t kMostTaps = 64, kSegmentTaps = 8;
/// Shorter parts of the channels leave too many lanes empty where no vector may hold channels of two of them.
constexpr int64_t kLeastRun = 16;

/// The convolution, beside where its input comes from: bytes that are converted to f32 on loading, if that is what
/// stands before it, with what they are padded with (null: 0).
struct Depthwise : Convolution {
  Value source, padding;
  const Epilogue *epilogue = nullptr;
  int64_t run = 0; // the parameter

  /// Lanes along all channels.
  void forLanes(Emitter &em, llvm::function_ref<void(Index)> body) const {
    if (!run)
      return em.laneLoop(em.i64(allChannels()), allChannels(), body);
    em.loop(em.i64(0), em.i64(allChannels() / run), 1, [&](Index part) {
      em.laneLoop(em.i64(run), run, [&](Index lane) { body(em.joinIndex(part, lane, run)); });
    });
  }

  Type element() const { return cast<RankedTensorType>(source.getType()).getElementType(); }
  bool isBytes() const { return element().isInteger(8); }
  int64_t allChannels() const { return groups * channels; }
  /// Whether rows of the kernel are a loop: where there are several channels, or too many taps to write them all out.
  bool isLooped() const { return channels > 1 || kernelW * kernelH > kMostTaps; }
  /// Whether rows of the kernel that read nothing but padding are left out: the loop has no steps for them.
  bool skipsRows() const { return isLooped() && !padding; }
  /// Whether a row of the kernel is a loop over segments.
  bool hasSegments() const { return kernelW > kMostTaps; }
  /// Multiply-adds of a pixel that are written out.
  int64_t writtenTaps() const { return hasSegments() ? kSegmentTaps : isLooped() ? kernelW : kernelW * kernelH; }
};

std::optional<Depthwise> analyzeDepthwise(const RegionProblem &region) {
  Operation *anchor = region.findAnchor();
  const Convolution *convolution = region.findConvolution();
  if (!convolution)
    return std::nullopt;
  std::optional<Depthwise> c = Depthwise{*convolution, {}, {}};
  if (!c->isDepthwise() || c->outer.size() > 1 || (c->hasSegments() && c->channels > 1) || c->kernelH * c->kernelW == 0)
    return std::nullopt;
  for (Value value : {anchor->getOperand(0), anchor->getOperand(1), Value(anchor->getResult(0))})
    if (!isF32(value))
      return std::nullopt;
  c->epilogue = region.findWholeEpilogue(anchor->getResult(0));
  if (!c->epilogue)
    return std::nullopt;
  c->source = anchor->getOperand(0);
  if (!c->outer.empty())
    return inputThroughReshapes(c->source) ? c : std::nullopt;
  auto convert = c->source.getDefiningOp<prim::ConvertOp>();
  if (!convert || !cast<RankedTensorType>(convert.getOperand().getType()).getElementType().isInteger(8))
    return c;
  c->source = convert.getOperand();
  std::optional<PixelPad> pad = matchPixelPad(c->op, c->source);
  if (!pad)
    return c;
  auto from = prim::getSizes(pad->source);
  c->source = pad->source;
  c->padding = pad->value;
  const unsigned last = c->spatial; // dim of the tensor
  c->padW = pad->low.back();
  c->inW = from[last];
  if (c->spatial >= 2) {
    c->padH = pad->low[last - 2];
    c->inH = from[last - 1];
  }
  return c;
}

class DepthwiseGenerator final : public GeneratorFor<Schedule, Depthwise> {
public:
  std::optional<Depthwise> analyze(const RegionProblem &region) const override { return analyzeDepthwise(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Depthwise &c) const override {
    Schedule::Params params;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      // Accumulators and the input vectors of one kernel row stay in registers, blocks of a row are equal.
      const bool isGrouped = c.channels > 1;
      int64_t most = unit.registers == 32 ? (isGrouped ? 14 : 8) : (isGrouped ? 8 : 4);
      while (most > 1 && most * c.writtenTaps() > 256)
        --most;
      int64_t width = c.likelyWidth(), best = 1;
      double bestCost = std::numeric_limits<double>::infinity();
      for (int64_t pixels = 1; pixels <= std::min<int64_t>(most, std::max<int64_t>(1, width)); ++pixels) {
        double cost = 0;
        auto add = [&](int64_t count, int64_t times) {
          if (count == 0)
            return;
          // Loads of inputs and weights, multiply-adds; shuffles take the units of these. Two a cycle.
          double loads = double(c.haloW(count) + c.kernelW) * c.kernelH;
          double products = double(count * c.kernelW * c.kernelH);
          double operations = isGrouped ? double(c.channels) * (products + double(c.haloW(count)) * c.kernelH)
                                        : std::max(loads, products);
          cost += times * (operations + 8);
        };
        add(pixels, width / pixels);
        add(width % pixels, 1);
        if (cost < bestCost) {
          bestCost = cost;
          best = pixels;
        }
      }
      params.pixelsFor(unit.bits) = best;
    }
    double rowFlops = 2.0 * double(c.likelyWidth()) * double(c.allChannels() * c.channels) * double(c.taps());
    // Rows of a task share input rows; several tasks for each of many cores.
    int64_t tileH = std::max<int64_t>(1, std::min<int64_t>(8, c.likelyHeight() / 16));
    params.tileH = tileH;
    if (const int64_t run = splitColumns(region.getOp(), c.allChannels(), kLeastRun); run && run % c.channels == 0)
      params.run = run;
    // Memory moves more slowly than the arithmetic: threads are worth it for less work.
    params.grain = grainFor(3e5, rowFlops * double(tileH));
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Depthwise &c, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::product(context, grid(c, schedule));
    int64_t pixels = std::max(schedule.getPixels256(), schedule.getPixels512());
    int64_t floats = (readsZeros(c) ? 1 : c.kernelH * c.haloW(pixels)) * c.allChannels() + 64;
    launch.scratch = scratchBytes(context, floats * 4);
    launch.inPlace = c.epilogue->inPlace();
    return {launch};
  }

  void emitTasks(const Depthwise &problem, Schedule schedule, unsigned, Emitter &em, Value begin,
                 Value end) const override {
    Depthwise c = problem;
    c.run = schedule.getRun();
    const Epilogue &epilogue = *c.epilogue;
    const int64_t tileH = schedule.getTileH();
    const int64_t pixels = schedule.pixelsFor(em.vectors().bits);
    std::optional<unsigned> direct = inputThroughReshapes(c.source);
    if (readsZeros(c))
      clearFloats(em, em.scratch(), c.allChannels());

    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> at = em.delinearize(task, grid(c, schedule));
      Index h0 = em.mulIndex(at.back(), em.i64(tileH), tileH);
      Value rows = em.min(em.i64(tileH), em.sub(em.size(c.outH), h0.base));
      em.loop(em.i64(0), rows, 1, [&](Index row) {
        Index h = em.addIndex(h0, row);
        forRowBlocks(em, Extent(em.size(c.outW), c.w), pixels, std::nullopt, [&](Value column, int64_t count) {
          block(c, direct, em, ArrayRef(at).drop_back(), h, em.uniform(column), count, epilogue);
        });
      });
      em.clearSources();
    });
  }

private:
  static SmallVector<AffineExpr> grid(const Convolution &c, Schedule schedule) {
    SmallVector<AffineExpr> grid{c.batch};
    llvm::append_range(grid, c.outer);
    grid.push_back(prim::simplifySize(c.outH.ceilDiv(schedule.getTileH())));
    return grid;
  }

  static Value load(const Depthwise &c, Emitter &em, Value pointer, Index lane) {
    Value value = em.loadAt(pointer, c.element(), lane);
    if (!c.isBytes())
      return value;
    OpBuilder &b = em.builder();
    VectorType wide = em.vectorOf(b.getI32Type());
    value = c.element().isUnsignedInteger() ? Value(arith::ExtUIOp::create(b, em.loc(), wide, value))
                                            : arith::ExtSIOp::create(b, em.loc(), wide, value);
    return arith::SIToFPOp::create(b, em.loc(), em.vectorOf(b.getF32Type()), value);
  }

  /// For each lane, the lane that holds channel i of its group, as i32.
  static Value lanesOfChannel(const Depthwise &c, Emitter &em, Index i) {
    OpBuilder &b = em.builder();
    SmallVector<int32_t> first;
    for (int64_t lane = 0; lane < em.width(); ++lane)
      first.push_back(int32_t(lane / c.channels * c.channels));
    auto type = em.vectorOf(b.getI32Type());
    Value starts = arith::ConstantOp::create(b, em.loc(), DenseElementsAttr::get(type, ArrayRef<int32_t>(first)));
    Value number = em.broadcast(arith::TruncIOp::create(b, em.loc(), b.getI32Type(), i.base));
    return arith::AddIOp::create(b, em.loc(), starts, number);
  }
  /// Output pixels of a row: `count` from `w` on, and the input pixel where their window begins, maybe outside.
  /// `place`: image, and plane of three dims.
  struct Block {
    ArrayRef<Index> place;
    Index h, w;
    int64_t count;
    Value firstH, firstW;
  };
  /// Address of the first channel of the window's pixel in kernel row y and input column `column`, counted from column
  /// `from` of the window on (null: 0). `plane`: elements from the image's first plane to that of the kernel's (null:
  /// 0).
  using PixelAddress = llvm::function_ref<Value(Value plane, Index y, Value from, int64_t column)>;

  /// The positions along a dim, `dilation` apart from `first` on, that lie within `size`: their numbers.
  static std::pair<Value, Value> positionsWithin(Emitter &em, Value first, int64_t dilation, int64_t kernel,
                                                 AffineExpr size) {
    return {tapsBefore(em, first, em.i64(0), dilation, kernel), tapsBefore(em, first, em.size(size), dilation, kernel)};
  }

  /// Whether windows at the border are read where they are, with a row of zeros for what lies outside.
  static bool readsZeros(const Depthwise &c) { return inputThroughReshapes(c.source) && !c.isBytes(); }

  static void block(const Depthwise &c, std::optional<unsigned> direct, Emitter &em, ArrayRef<Index> place, Index h,
                    Index w, int64_t count, const Epilogue &epilogue) {
    OpBuilder &b = em.builder();
    Location loc = em.loc();
    const Type memory = Emitter::memoryType(c.element());
    const int64_t channels = c.allChannels(), columns = c.haloW(count);
    const int64_t windowRows = (c.kernelH - 1) * c.dilationH + 1;
    const Block at{place,
                   h,
                   w,
                   count,
                   em.sub(em.mul(h.base, em.i64(c.strideH)), em.i64(c.padH)),
                   em.sub(em.mul(w.base, em.i64(c.strideW)), em.i64(c.padW))};
    auto advance = [&](Value pointer, Value elements) { return em.address(pointer, memory, elements); };
    Value base = em.scratch(), pitch = em.i64(columns * channels); // pitch: from one kernel row to the next
    auto pixel = [&](Value plane, Index y, Value from, int64_t column) {
      const Value row = advance(plane ? advance(base, plane) : base, em.mul(y.base, pitch));
      return advance(from ? advance(row, em.mul(from, em.i64(channels))) : row, em.i64(column * channels));
    };
    if (!direct) {
      copyWindow(c, em, at, columns);
      return compute(c, em, at, epilogue, pixel);
    }
    auto within = [&](Value first, int64_t extent, AffineExpr size) -> Value {
      Value low = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, first, em.i64(0));
      Value high =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, em.add(first, em.i64(extent)), em.size(size));
      return arith::AndIOp::create(b, loc, low, high);
    };
    Value inside = within(at.firstW, columns, c.inW);
    if (!c.skipsRows())
      inside = arith::AndIOp::create(b, loc, within(at.firstH, windowRows, c.inH), inside);
    Value outside = em.isNot(inside);
    Value line = em.mul(em.size(c.inW), em.i64(channels));
    Value planes = place.front().base;
    if (!c.outer.empty())
      planes = em.mul(planes, em.size(prim::getSizes(prim::ConvOp(c.op).getInput())[1]));
    Value image = em.add(em.mul(em.mul(planes, em.size(c.inH)), line), em.mul(at.firstH, line));
    Value inPlace = advance(em.input(*direct), em.add(image, em.mul(at.firstW, em.i64(channels))));
    Value linePitch = em.mul(line, em.i64(c.dilationH));
    if (!readsZeros(c)) {
      em.ifThen(outside, [&] { copyWindow(c, em, at, columns); });
      base = arith::SelectOp::create(b, loc, inside, inPlace, base);
      pitch = arith::SelectOp::create(b, loc, inside, linePitch, pitch);
      return compute(c, em, at, epilogue, pixel);
    }
    const Value zeros = em.scratch();
    base = inPlace;
    pitch = linePitch;
    em.ifThen(inside, [&] { compute(c, em, at, epilogue, pixel); });
    em.ifThen(outside, [&] {
      SmallVector<Value> columnIn;
      for (int64_t column = 0; column < columns && !c.hasSegments(); ++column)
        columnIn.push_back(em.isWithin(em.add(at.firstW, em.i64(column)), c.inW));
      compute(c, em, at, epilogue, [&](Value plane, Index y, Value from, int64_t column) -> Value {
        Value on =
            c.hasSegments() ? em.isWithin(em.add(em.add(at.firstW, from), em.i64(column)), c.inW) : columnIn[column];
        if (!c.skipsRows()) {
          Value rowIn = em.isWithin(em.add(at.firstH, em.mul(y.base, em.i64(c.dilationH))), c.inH);
          on = arith::AndIOp::create(b, loc, rowIn, on);
        }
        return LLVM::SelectOp::create(b, loc, on, pixel(plane, y, from, column), zeros);
      });
    });
  }

  /// The window with its padding to the scratch: the kernel's rows only, [kernelH][columns][channels].
  static void copyWindow(const Depthwise &c, Emitter &em, const Block &block, int64_t columns) {
    OpBuilder &b = em.builder();
    Location loc = em.loc();
    const int64_t channels = c.allChannels();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(Emitter::memoryType(c.element())));
    if (c.padding)
      zero = em.emit(c.padding, {});
    em.loop(em.i64(0), em.i64(c.kernelH), 1, [&](Index row) {
      Value y = em.add(block.firstH, em.mul(row.base, em.i64(c.dilationH)));
      em.loop(em.i64(0), em.i64(columns), 1, [&](Index column) {
        Value x = em.add(block.firstW, column.base);
        Index pixel = em.addIndex(em.mulIndex(row, em.i64(columns), columns), column);
        Index start = em.mulIndex(pixel, em.i64(channels), channels);
        Value on = arith::AndIOp::create(b, loc, em.isWithin(y, c.inH), em.isWithin(x, c.inW));
        Value off = em.isNot(on);
        em.ifThen(on, [&] {
          c.forLanes(em, [&](Index lane) {
            SmallVector<Index> at(block.place);
            if (c.spatial >= 2)
              at.push_back(em.uniform(y));
            at.append({em.uniform(x), lane});
            em.storeAt(em.emit(c.source, at), em.scratch(), c.element(), em.addIndex(start, lane));
          });
        });
        em.ifThen(off, [&] {
          em.laneLoop(em.i64(channels), channels,
                      [&](Index lane) { em.storeAt(zero, em.scratch(), c.element(), em.addIndex(start, lane)); });
        });
      });
    });
  }

  /// The block's output pixels from the window's.
  static void compute(const Depthwise &c, Emitter &em, const Block &block, const Epilogue &epilogue,
                      PixelAddress pixelAt) {
    OpBuilder &b = em.builder();
    Location loc = em.loc();
    prim::ConvOp op = c.op;
    const int64_t count = block.count;
    Value firstRow = em.i64(0), endRow = em.i64(c.kernelH);
    if (c.skipsRows())
      std::tie(firstRow, endRow) = positionsWithin(em, block.firstH, c.dilationH, c.kernelH, c.inH);
    Value firstPlane, endPlane, inPlane, planeFloats; // inPlane: where the first plane of the window lies
    if (!c.outer.empty()) {
      const AffineExpr planes = prim::getSizes(op.getInput())[1];
      inPlane = em.sub(em.mul(block.place[1].base, em.i64(op.getStrides()[0])), em.i64(op.getPadLow()[0]));
      std::tie(firstPlane, endPlane) = positionsWithin(em, inPlane, op.getDilations()[0], c.outerKernel[0], planes);
      planeFloats = em.mul(em.mul(em.size(c.inH), em.size(c.inW)), em.i64(c.allChannels()));
    }
    c.forLanes(em, [&](Index lane) {
      auto vector = em.vectorOf(b.getF32Type());
      // Adds the products with channel i of each group and `taps` taps of kernel row y from `first` on, whose columns
      // begin at `from` in the window (null: 0).
      auto addTaps = [&](std::optional<Index> plane, Index y, Index i, Index first, Value from, int64_t taps,
                         SmallVector<Value> &sums) {
        Value lanes = c.channels > 1 ? lanesOfChannel(c, em, i) : Value();
        SmallVector<Value> weights;
        for (int64_t x = 0; x < taps; ++x) {
          SmallVector<Index> at;
          if (plane)
            at.push_back(*plane);
          if (c.spatial >= 2)
            at.push_back(y);
          at.append({em.addIndex(first, em.constant(x)), i, lane});
          Value weight = em.emit(op.getFilter(), at);
          // One value for all channels comes as a scalar.
          weights.push_back(isa<VectorType>(weight.getType()) ? weight : em.broadcast(weight));
        }
        Value planeAt;
        if (plane)
          planeAt = em.mul(em.add(inPlane, em.mul(plane->base, em.i64(op.getDilations()[0]))), planeFloats);
        // Each input column once, for all pixels that it counts for.
        const int64_t columns = (count - 1) * c.strideW + (taps - 1) * c.dilationW + 1;
        for (int64_t column = 0; column < columns; ++column) {
          Value input;
          for (int64_t pixel = 0; pixel < count; ++pixel) {
            int64_t offset = column - pixel * c.strideW;
            if (offset < 0 || offset % c.dilationW != 0 || offset / c.dilationW >= taps)
              continue;
            if (!input) {
              input = load(c, em, pixelAt(planeAt, y, from, column), lane);
              if (lanes)
                input = em.permute(input, lanes);
            }
            sums[pixel] = vector::FMAOp::create(b, loc, input, weights[offset / c.dilationW], sums[pixel]);
          }
        }
      };
      auto addRow = [&](std::optional<Index> plane, Index y, Index i, SmallVector<Value> &sums) {
        if (!c.hasSegments())
          return addTaps(plane, y, i, em.constant(0), Value(), c.kernelW, sums);
        // Segments that meet nothing but padding with zeros are left out: half of those of a causal filter.
        const int64_t segments = c.kernelW / kSegmentTaps, step = kSegmentTaps * c.dilationW;
        auto clamp = [&](Value value, Value upper) {
          return em.min(arith::MaxSIOp::create(b, loc, value, em.i64(0)), upper);
        };
        const Value reach = em.i64((kSegmentTaps - 1) * c.dilationW + (count - 1) * c.strideW);
        const Value before = clamp(em.sub(em.sub(em.i64(0), block.firstW), reach), em.i64(segments * step));
        const Value within = clamp(em.sub(em.size(c.inW), block.firstW), em.i64(segments * step));
        const Value begin = c.padding ? em.i64(0) : em.divUnsigned(em.add(before, em.i64(step - 1)), em.i64(step));
        const Value end = c.padding ? em.i64(segments) : em.divUnsigned(em.add(within, em.i64(step - 1)), em.i64(step));
        sums = em.loop(begin, end, 1, sums, [&](Index segment, ValueRange ofSegments) {
          SmallVector<Value> next(ofSegments);
          addTaps(plane, y, i, em.mulIndex(segment, em.i64(kSegmentTaps), kSegmentTaps),
                  em.mul(segment.base, em.i64(step)), kSegmentTaps, next);
          return next;
        });
        if (const int64_t left = c.kernelW % kSegmentTaps)
          addTaps(plane, y, i, em.constant(segments * kSegmentTaps), em.i64(segments * step), left, sums);
      };
      SmallVector<Value> sums(count, arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector)));
      auto addPlane = [&](std::optional<Index> plane, SmallVector<Value> sums) {
        if (!c.isLooped()) {
          for (int64_t y = 0; y < c.kernelH; ++y)
            addRow(plane, em.constant(y), em.constant(0), sums);
          return sums;
        }
        return em.loop(firstRow, endRow, 1, sums, [&](Index y, ValueRange ofRows) {
          if (c.channels == 1) {
            SmallVector<Value> next(ofRows);
            addRow(plane, y, em.constant(0), next);
            return next;
          }
          return em.loop(em.i64(0), em.i64(c.channels), 1, ofRows, [&](Index i, ValueRange ofChannels) {
            SmallVector<Value> next(ofChannels);
            addRow(plane, y, i, next);
            return next;
          });
        });
      };
      if (c.outer.empty())
        sums = addPlane(std::nullopt, sums);
      else
        sums = em.loop(firstPlane, endPlane, 1, sums,
                       [&](Index plane, ValueRange ofPlanes) { return addPlane(plane, SmallVector<Value>(ofPlanes)); });
      for (int64_t pixel = 0; pixel < count; ++pixel) {
        SmallVector<Index> at(block.place);
        if (c.spatial >= 2)
          at.push_back(block.h);
        at.append({em.addIndex(block.w, em.constant(pixel)), lane});
        storeEpilogue(em, epilogue, at, sums[pixel]);
      }
    });
  }
};

} // namespace

const Generator *tc::codegen::depthwiseGenerator() {
  static const DepthwiseGenerator generator;
  return &generator;
}
