//===- ONNXSample.cpp - reading and adding at computed positions in ONNX ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Movement.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Sample.h"

#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Elements of so many channels, which then lie last, are read as vectors: neighbours are no pairs in memory.
constexpr int64_t kManyChannels = 8;

/// Whether elements that are neighbours along the last dim of images of so many channels are neighbours in memory.
bool isLastDimInnermost(AffineExpr channels) {
  return getConstantSize(channels).value_or(kManyChannels) < kManyChannels;
}

/// Combinations of taps at most that are read one by one in the code, which more of them make long; more are a loop.
constexpr int64_t kMostUnrolled = 4;

/// An element that a position is interpolated from, along one dim.
struct Tap {
  Value index;  // of i32 or i64, in range
  Value weight; // null: 1
  Value inside; // null: always
  // One of a pair: 0 the element of the index, which is not the last one, 1 the one behind it.
  std::optional<int64_t> ofPair = std::nullopt;
};

/// An element that a position is interpolated from: where it is, and where the nearest one lies that exists.
struct Neighbour {
  Value position, held; // whole numbers, floats
  Value weight;
};

/// A bound of the positions `x` in elements.
Value boundOf(PrimBuilder &b, Value x, AffineExpr size) {
  return b.broadcastTo(b.convert(b.sizeValue(size), b.elementOf(x)), getSizes(x));
}

/// `position` held between 0 and `extent` - `behind` - 1.
Value holdInside(PrimBuilder &b, Value position, Value extent, double behind = 0) {
  return b.min(b.binary<MaxOp>(position, 0), b.binary<SubOp>(extent, behind + 1));
}
Value holdInside(PrimBuilder &b, Value position, AffineExpr size, double behind = 0) {
  return holdInside(b, position, boundOf(b, position, size), behind);
}

/// Neighbours as taps, each by itself. `onlyInside`: those that do not exist count 0.
SmallVector<Tap> singleTapsOf(PrimBuilder &b, ArrayRef<Neighbour> neighbours, bool onlyInside) {
  SmallVector<Tap> taps;
  for (const Neighbour &at : neighbours) {
    Tap tap{b.convert(at.held, b.getI32Type()), at.weight, {}};
    if (onlyInside)
      tap.inside = b.compare(CompareKind::EQ, at.position, at.held);
    taps.push_back(tap);
  }
  return taps;
}

/// Two neighbours, which are held at one element or two next to each other, as two taps that are always next to each
/// other: what is read at each position is a pair in memory. Each tap has the weights of those that are held there.
SmallVector<Tap> tapsOfPair(PrimBuilder &b, const Neighbour &first, const Neighbour &second, AffineExpr size,
                            bool onlyInside) {
  Value start = holdInside(b, b.min(first.held, second.held), size, /*behind=*/1);
  Value index = b.convert(start, b.getI32Type());
  // Not 0 where a weight is no number.
  Value none = b.mul(b.binary<MulOp>(first.weight, 0), second.weight);
  SmallVector<Tap> taps;
  for (int64_t place : {0, 1}) {
    Value element = place ? b.binary<AddOp>(start, 1) : start;
    auto isThere = [&](const Neighbour &at) {
      return b.compare(CompareKind::EQ, onlyInside ? at.position : at.held, element);
    };
    Value isFirst = isThere(first), isSecond = isThere(second);
    Value weight = b.add(b.select(isFirst, first.weight, none), b.select(isSecond, second.weight, none));
    taps.push_back({index, weight, b.binary<OrOp>(isFirst, isSecond), place});
  }
  return taps;
}

/// Neighbours as taps: pairs, where two beside each other along the dim are neighbours in memory (`arePaired`) and the
/// dim is known to hold two.
SmallVector<Tap> tapsOf(PrimBuilder &b, ArrayRef<Neighbour> neighbours, AffineExpr size, bool onlyInside,
                        bool arePaired) {
  if (!arePaired || getConstantSize(size).value_or(0) < 2)
    return singleTapsOf(b, neighbours, onlyInside);
  SmallVector<Tap> taps;
  for (size_t i = 0; i < neighbours.size(); i += 2)
    taps.append(tapsOfPair(b, neighbours[i], neighbours[i + 1], size, onlyInside));
  return taps;
}

constexpr double kCubicA = -0.75;

/// Elements that a position is interpolated from along a dim.
int64_t countTaps(StringRef mode) { return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4; }

/// GridSample along one dim: positions (floats) become taps.
class DimSampler {
public:
  /// `sizes`: of one dim, or of several that the last dim of positions tells.
  DimSampler(PrimBuilder &b, const GridOptions &options, SizesRef sizes, bool isVolume)
      : b(b), mode(options.mode), padding(options.padding), align(options.alignCorners),
        isAsPyTorch(options.isAsPyTorch), isVolume(isVolume),
        holdsPosition(options.padding == "border" && (options.mode != "cubic" || !options.holdsNeighboursAlone)),
        sizes(sizes) {}

  /// Taps of one dim. `normalized`: in [-1, 1] where inside. `isPaired`: neighbours along the dim are neighbours in
  /// memory.
  SmallVector<Tap> run(Value normalized, bool isPaired) {
    const auto [base, ratio] = place(normalized);
    if (mode == "nearest")
      return singleTapsOf(b, {neighbourAt(base, {})}, padding == "zeros");
    SmallVector<Neighbour> neighbours;
    if (mode == "linear") {
      neighbours = {neighbourAt(base, b.sub(b.splatLike(ratio, 1), ratio)),
                    neighbourAt(b.binary<AddOp>(base, 1), ratio)};
    } else {
      for (int64_t offset = -1; offset <= 2; ++offset) {
        Value distance = b.unary<AbsOp>(b.binary<SubOp>(ratio, double(offset)));
        const bool isInner = offset == 0 || offset == 1;
        neighbours.push_back(
            neighbourAt(b.binary<AddOp>(base, double(offset)), emitCubicWeight(b, distance, kCubicA, isInner)));
      }
    }
    return tapsOf(b, neighbours, sizes.front(), padding == "zeros", isPaired);
  }

  /// The tap of each dim, [.., T], which is all neighbours, of `normalized` [.., dims].
  SmallVector<Tap> runTogether(Value normalized) {
    const auto [base, ratio] = place(normalized);
    const Tap all = singleTapsOf(b, {allNeighbours(base, ratio)}, padding == "zeros").front();
    const int64_t dim = b.rankOf(normalized) - 1;
    SmallVector<Tap> taps;
    for (size_t i = 0; i < sizes.size(); ++i) {
      auto part = [&](Value v) { return v ? b.take(v, dim, int64_t(i)) : v; };
      taps.push_back({part(all.index), part(all.weight), part(all.inside)});
    }
    return taps;
  }

private:
  /// The last element before or at a position, and how far it is behind it; with mode nearest the element alone.
  std::pair<Value, Value> place(Value normalized) {
    // ((x + 1) size - 1) / 2 or (x + 1) (size - 1) / 2.
    dimOfDims = b.rankOf(normalized) - 1;
    Value extent = extentFor(normalized), last = b.binary<SubOp>(extent, 1);
    Position at{b.mul(normalized, b.binary<MulOp>(align ? last : extent, 0.5)), b.binary<MulOp>(last, 0.5)};
    auto round = [&] { return Position{b.unary<RoundOp>(sum(at)), b.splatLike(normalized, 0)}; };
    if (mode == "nearest" && !isAsPyTorch)
      at = round();
    if (padding == "reflection")
      at = isAsPyTorch && mode != "cubic" ? settle(reflect(at), sum(at), normalized, extent) : reflect(at);
    else if (isAsPyTorch)
      at = settle(at, sum(at), normalized, extent);
    if (mode == "nearest" && isAsPyTorch)
      at = round();
    Value x = sum(at);
    if (holdsPosition)
      x = clampToBorder(x, extent);
    if (mode == "nearest")
      return {x, {}};
    Value base = b.unary<FloorOp>(x), ratio = b.add(at.varying, b.sub(at.fixed, base));
    if (padding == "border" && mode == "linear" && !isAsPyTorch) // beyond the last element both taps are that one
      ratio = b.min(b.binary<MaxOp>(ratio, 0), b.splatLike(ratio, 1));
    // The same, and for PyTorch a position has no gradient from the first and last element on.
    if (padding != "zeros" && mode == "linear" && isAsPyTorch) {
      Value isAtEnd =
          b.binary<OrOp>(b.compare(CompareKind::LE, x, 0), b.compare(CompareKind::GE, x, b.binary<SubOp>(extent, 1)));
      ratio = b.select(isAtEnd, b.splatLike(ratio, 0), ratio);
    }
    if (holdsPosition && mode == "cubic") // what is held at an element is that element, on both sides
      ratio = b.select(isBeyond(sum(at), extent), b.splatLike(ratio, 0), ratio);
    return {base, ratio};
  }

  /// The sizes of the dims that positions `x` are along: [.., dims], or [.., dims, T].
  Value extentFor(Value x) {
    if (sizes.size() == 1)
      return boundOf(b, x, sizes.front());
    return b.broadcastInDims(b.convert(b.sizesValue(sizes), b.elementOf(x)), getSizes(x), {dimOfDims});
  }

  /// The sum of two numbers. `fixed` is exact, halves, so that the distance from an element next to the position is as
  /// exact as `varying`: an error counts as often as the neighbours differ.
  struct Position {
    Value varying, fixed;
  };
  Value sum(Position at) { return b.add(at.varying, at.fixed); }

  /// The nearest element, from the border on; between the last element and the border the taps outside repeat it.
  Value clampToBorder(Value x, Value extent) {
    Value clamped = b.min(b.binary<MaxOp>(x, 0), b.binary<SubOp>(extent, 1));
    if (align || mode != "cubic") // else the same
      return clamped;
    return b.select(isBeyond(x, extent), clamped, x);
  }

  /// Whether a position lies outside of the image, whose border is that of the first and last element or half an
  /// element beyond.
  Value isBeyond(Value x, Value extent) {
    return b.binary<OrOp>(b.compare(CompareKind::LT, x, align ? 0 : -0.5),
                          b.compare(CompareKind::GT, x, b.binary<SubOp>(extent, align ? 1 : 0.5)));
  }

  /// Mirrored at the borders until it lies between them.
  Position reflect(Position at) {
    Value x = sum(at), extent = extentFor(x);
    Value low = b.splatLike(x, align ? 0 : -0.5), high = b.binary<SubOp>(extent, align ? 1 : 0.5);
    Value range = b.sub(high, low);
    Value below = b.compare(CompareKind::LT, x, low), above = b.compare(CompareKind::GT, x, high);
    Value isOutside = b.binary<OrOp>(below, above);
    Value turns = b.unary<TruncOp>(b.div(b.select(below, b.sub(low, x), b.sub(x, high)), range));
    Value pairs = b.binary<MulOp>(turns, 0.5), even = b.compare(CompareKind::EQ, b.unary<TruncOp>(pairs), pairs);
    // After an even number of turns behind the first one it runs backwards.
    Value border = b.select(below, low, high), across = b.select(below, range, b.unary<NegOp>(range));
    Value way = b.mul(turns, across), backwards = b.binary<AndOp>(isOutside, even);
    Value shift = b.select(even, b.sub(b.add(border, border), way), b.add(across, way));
    auto mirrored = [&](Value v) { return b.select(backwards, b.unary<NegOp>(v), v); };
    return {mirrored(at.varying), b.add(mirrored(at.fixed), b.select(isOutside, shift, b.splatLike(shift, 0)))};
  }

  /// Where PyTorch reads instead of at position `x` (before reflection) that no element of memory has. Source: images
  /// ComputeLocationBase (aten/src/ATen/native/cpu/GridSamplerKernel.cpp), volumes aten/src/ATen/native/GridSampler.h.
  Position settle(Position at, Value x, Value normalized, Value extent) {
    Value last = b.binary<SubOp>(extent, 1), zero = b.splatLike(x, 0);
    auto isWithin = [&](double limit) { return b.compare(CompareKind::LT, b.unary<AbsOp>(x), limit); };
    auto unless = [&](Value keeps, Value place) {
      return Position{b.select(keeps, at.varying, place), b.select(keeps, at.fixed, zero)};
    };
    Value ofNone = isVolume ? last : zero; // of what is no number
    if (padding == "zeros")                // outside
      return isVolume && mode == "linear" ? unless(isWithin(0x1p31), b.splatLike(x, -100)) : at;
    if (padding == "border")
      return mode == "cubic" ? at : unless(b.compare(CompareKind::EQ, x, x), ofNone);
    // Beyond this there are no elements between two numbers, and what is left is how PyTorch rounds.
    const double limit = b.elementOf(x).isF64() ? 0x1p51 : 0x1p22;
    Value place = b.binary<AddOp>(normalized, 1), span = align ? last : extent, reflected;
    const double low = align ? 0 : -0.5;
    if (isVolume) {
      place = align ? b.mul(b.binary<MulOp>(place, 0.5), last)
                    : b.binary<MulOp>(b.binary<SubOp>(b.mul(place, extent), 1), 0.5);
      place = b.unary<AbsOp>(b.binary<SubOp>(place, low));
      Value extra = b.binary<RemOp>(place, span), turns = b.unary<FloorOp>(b.div(place, span));
      Value pairs = b.binary<MulOp>(turns, 0.5), isEven = b.compare(CompareKind::EQ, b.unary<FloorOp>(pairs), pairs);
      reflected = b.binary<AddOp>(b.select(isEven, extra, b.sub(span, extra)), low);
    } else {
      place = b.mul(place, b.binary<MulOp>(span, 0.5));
      if (!align) // less half an element, and more half of one
        place = b.binary<AddOp>(b.binary<SubOp>(place, 0.5), 0.5);
      place = b.unary<AbsOp>(place);
      Value twice = b.binary<MulOp>(span, 2), turns = b.unary<TruncOp>(b.div(place, twice));
      Value extra = b.sub(place, b.mul(turns, twice));
      reflected = b.binary<AddOp>(b.min(extra, b.sub(twice, extra)), low);
    }
    Value isNumber = b.compare(CompareKind::EQ, reflected, reflected);
    reflected = b.select(isNumber, b.min(b.binary<MaxOp>(reflected, 0), last), ofNone);
    return unless(isWithin(limit), reflected);
  }

  /// The neighbours of `base`, along a dim of their own.
  Neighbour allNeighbours(Value base, Value ratio) {
    Sizes sizes = getSizes(base);
    const int64_t rank = sizes.size();
    const SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    sizes.push_back(b.size(countTaps(mode)));
    base = b.broadcastInDims(base, sizes, dims);
    ratio = b.broadcastInDims(ratio, sizes, dims);
    Value offset = b.iota(b.elementOf(base), sizes, rank);
    if (mode == "linear") {
      Value isFirst = b.compare(CompareKind::LT, offset, 1);
      return neighbourAt(b.add(base, offset), b.select(isFirst, b.sub(b.splatLike(ratio, 1), ratio), ratio));
    }
    offset = b.binary<SubOp>(offset, 1);
    Value isInner = b.compare(CompareKind::LT, b.unary<AbsOp>(b.binary<SubOp>(offset, 0.5)), 1);
    Value distance = b.unary<AbsOp>(b.sub(ratio, offset));
    Value inner = emitCubicWeight(b, distance, kCubicA, true), outer = emitCubicWeight(b, distance, kCubicA, false);
    return neighbourAt(b.add(base, offset), b.select(isInner, inner, outer));
  }

  // Positions are whole numbers. What is none gives no number, by its weight.
  Neighbour neighbourAt(Value position, Value weight) {
    if (padding == "reflection")
      position = sum(reflect({position, b.splatLike(position, 0)}));
    return {position, holdInside(b, position, extentFor(position)), weight};
  }

  PrimBuilder &b;
  StringRef mode, padding;
  bool align, isAsPyTorch, isVolume, holdsPosition;
  Sizes sizes;
  int64_t dimOfDims = 0; // of positions
};

/// The sum over every combination of the dims' taps (each [B.., P..]) of what `source` [B.., D.., C] holds there, times
/// its weights: [B.., P.., C].
Value sampleTaps(PrimBuilder &b, Value source, ArrayRef<SmallVector<Tap>> taps, int64_t batchDims, Type compute) {
  Sizes points = getSizes(taps.front().front().index), out = points;
  out.push_back(getSizes(source).back());
  int64_t rank = points.size(), combinations = 1;
  SmallVector<int64_t> pointDims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value sum;
  for (const auto &list : taps)
    combinations *= list.size();
  for (int64_t n = 0; n < combinations; ++n) {
    SmallVector<Value> indices;
    Value weight, inside, from = source;
    int64_t rest = n;
    // The last dim's taps in turn: those of a pair are near each other.
    for (size_t dim = taps.size(); dim-- > 0;) {
      const Tap &tap = taps[dim][rest % taps[dim].size()];
      rest /= int64_t(taps[dim].size());
      // The same size for both of a pair, so that what holds indices in it is the same.
      if (tap.ofPair)
        from =
            b.sliceDim(from, batchDims + dim, b.size(*tap.ofPair), simplifySize(getSizes(from)[batchDims + dim] - 1));
      indices.insert(indices.begin(), b.unsqueeze(tap.index, rank));
      if (tap.weight)
        weight = weight ? b.mul(weight, tap.weight) : tap.weight;
      if (tap.inside)
        inside = inside ? b.binary<AndOp>(inside, tap.inside) : tap.inside;
    }
    Value value = GatherNDOp::create(b, makeType(b.elementOf(source), out), from, b.concat(indices, rank), batchDims);
    if (inside)
      value = b.select(b.broadcastInDims(inside, out, pointDims), value, b.splatLike(value, 0));
    if (weight)
      value = b.mul(b.convert(value, compute), b.broadcastInDims(b.convert(weight, compute), out, pointDims));
    sum = sum ? b.add(sum, value) : value;
  }
  return sum;
}

/// The neighbours that a tap [.., T] is, as taps.
SmallVector<Tap> partsOf(PrimBuilder &b, const Tap &tap) {
  const int64_t dim = b.rankOf(tap.index) - 1;
  SmallVector<Tap> parts;
  for (int64_t i = 0; i < b.typeOf(tap.index).getDimSize(dim); ++i) {
    auto part = [&](Value v) { return v ? b.take(v, dim, i) : v; };
    parts.push_back({part(tap.index), part(tap.weight), part(tap.inside)});
  }
  return parts;
}

/// The same where each dim has one tap, [B.., P.., T], of all its neighbours: a sum over these.
Value sampleTogether(PrimBuilder &b, Value source, ArrayRef<Tap> taps, int64_t batchDims, Type compute) {
  Sizes points = getSizes(taps.front().index), grid;
  points.pop_back();
  grid = points;
  const int64_t rank = points.size();
  for (const Tap &tap : taps)
    grid.push_back(getSizes(tap.index).back());
  Sizes out = grid;
  out.push_back(getSizes(source).back());
  const SmallVector<int64_t> gridDims = llvm::to_vector(llvm::seq<int64_t>(0, grid.size()));
  SmallVector<int64_t> summed;
  SmallVector<Value> indices;
  Value weight, inside;
  for (auto [dim, tap] : llvm::enumerate(taps)) {
    summed.push_back(rank + int64_t(dim));
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    dims.push_back(summed.back());
    auto spread = [&, dims = dims](Value v) { return b.broadcastInDims(v, grid, dims); };
    indices.push_back(b.unsqueeze(spread(tap.index), int64_t(grid.size())));
    Value own = spread(b.convert(tap.weight, compute));
    weight = weight ? b.mul(weight, own) : own;
    if (tap.inside)
      inside = inside ? b.binary<AndOp>(inside, spread(tap.inside)) : spread(tap.inside);
  }
  Value value = GatherNDOp::create(b, makeType(b.elementOf(source), out), source,
                                   b.concat(indices, int64_t(grid.size())), batchDims);
  if (inside)
    value = b.select(b.broadcastInDims(inside, out, gridDims), value, b.splatLike(value, 0));
  value = b.mul(b.convert(value, compute), b.broadcastInDims(weight, out, gridDims));
  return b.reduce(ReduceKind::Sum, value, summed);
}

} // namespace

FailureOr<Value> tc::emitGridSample(NodeContext &ctx, Value x, Value grid, const GridOptions &options) {
  PrimBuilder &b = ctx.b;
  const StringRef mode = options.mode, padding = options.padding;
  Sizes in = getSizes(x), of = getSizes(grid);
  int64_t spatial = int64_t(in.size()) - 2;
  if (spatial > 3)
    return ctx.unsupported("with " + Twine(spatial) + " spatial dims is not supported; supported: 1 to 3");
  if (failed(ctx.requireEqual(of[0], in[0], "as many grids as operands")) ||
      failed(ctx.requireEqual(of.back(), b.size(spatial), "positions of as many numbers as dims")) ||
      failed(requireElements(ctx, SizesRef(of).drop_back(), SizesRef(in).drop_front(2))))
    return failure();
  of.back() = b.size(spatial);
  grid = b.reshape(grid, of);
  Type type = b.elementOf(x), compute = b.isFloat(x) ? b.accumulatorOf(type) : Type(b.getF32Type());
  grid = b.convert(grid, b.accumulatorOf(b.elementOf(grid)));
  int64_t combinations = 1;
  for (int64_t i = 0; i < spatial; ++i)
    combinations *= countTaps(mode);
  const bool isPaired = isLastDimInnermost(in[1]), isLong = combinations > kMostUnrolled && !isPaired;
  // Positions that are reflected are long to compute. Those of a few taps are faster by themselves, as they are not
  // written to memory (linear 0.68 of the time).
  const bool isTogether = isLong || (padding == "reflection" && mode != "nearest" && spatial > 1 && !isPaired);
  Sizes extents(llvm::drop_begin(in, 2));
  Value source = b.transpose(x, toChannelsLast(in.size())), sum;
  if (isTogether) {
    const SmallVector<Tap> taps =
        DimSampler(b, options, llvm::to_vector(llvm::reverse(extents)), spatial == 3).runTogether(grid);
    SmallVector<Tap> byDim = llvm::to_vector(llvm::reverse(taps));
    if (isLong)
      sum = sampleTogether(b, source, byDim, /*batchDims=*/1, compute);
    else
      sum = sampleTaps(b, source, llvm::map_to_vector(byDim, [&](const Tap &tap) { return partsOf(b, tap); }),
                       /*batchDims=*/1, compute);
  } else {
    SmallVector<SmallVector<Tap>> taps;
    for (int64_t i = 0; i < spatial; ++i) // the grid names the last dim first
      taps.push_back(DimSampler(b, options, extents[i], spatial == 3)
                         .run(b.take(grid, spatial + 1, spatial - 1 - i), isPaired && i + 1 == spatial));
    sum = sampleTaps(b, source, taps, /*batchDims=*/1, compute);
  }
  return b.transpose(b.convert(sum, type), toChannelsFirst(in.size()));
}

namespace {

LogicalResult gridSample(NodeContext &ctx) {
  GridOptions options{ctx.getString("mode", "linear"), ctx.getString("padding_mode", "zeros"),
                      ctx.getInt("align_corners", 0) != 0};
  if (options.mode == "bilinear" || options.mode == "bicubic") // GridSample-16
    options.mode = options.mode == "bilinear" ? "linear" : "cubic";
  FailureOr<Value> y = emitGridSample(ctx, ctx.operand(0), ctx.operand(1), options);
  return failed(y) ? failure() : ctx.result(*y);
}

/// Terms at most of which a pixel of Col2Im is summed one after another. Neighbours along a line of so many phases are
/// sums of their own, which are interleaved, where each has so many pixels: their lanes then lie in memory as they are
/// added (5x5 of stride 2 98 us instead of 258, 3x3 of 15 pixels each 90 instead of 81).
constexpr int64_t kMostTerms = 64, kMostPhases = 4, kLeastOfPhase = 32;

/// Blocks `x` [N, C, K.., L..] added up to padded images [N, C, P..], without a scatter: along a dim, element k of
/// block l lies at k * dilation + l * stride. With k * dilation = q * stride + r, pixel m * stride + r is the sum over
/// q of elements (q, r) of blocks m - q, so that the image is a sum of shifted tensors [N, C, M, stride], one for each
/// q. Null where the blocks are not known, or of too many strides each.
Value addShifted(PrimBuilder &b, Value x, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations, SizesRef padded) {
  const size_t n = strides.size();
  Sizes sizes = getSizes(x);
  SmallVector<int64_t> extents, parts; // of a block in pixels, and in strides
  int64_t terms = 1;
  for (size_t i = 0; i < n; ++i) {
    std::optional<int64_t> block = getConstantSize(sizes[2 + i]);
    if (!block || *block < 1 || *block > (1 << 20) || dilations[i] > (1 << 20))
      return {};
    extents.push_back((*block - 1) * dilations[i] + 1);
    parts.push_back(llvm::divideCeil(extents.back(), strides[i]));
    if (parts.back() > kMostTerms || (terms *= parts.back()) > kMostTerms)
      return {};
  }
  Value zero = b.scalar(b.elementOf(x), 0);
  // K elements become as many as the strides have, in their places, zeros between and behind.
  Sizes split{sizes[0], sizes[1]}, low(sizes.size(), b.size(0));
  for (size_t i = 0; i < n; ++i) {
    if (dilations[i] > 1) {
      Sizes spread = getSizes(x);
      spread.insert(spread.begin() + 3 + i, b.size(1));
      Value wide = b.reshape(x, spread);
      spread[3 + i] = b.size(dilations[i]);
      wide = b.pad(wide, zero, Sizes(spread.size(), b.size(0)), spread);
      Sizes joined = getSizes(x);
      joined[2 + i] = simplifySize(joined[2 + i] * dilations[i]);
      wide = b.reshape(wide, joined);
      joined[2 + i] = simplifySize(joined[2 + i] - (dilations[i] - 1));
      x = b.slice(wide, low, SmallVector<int64_t>(low.size(), 1), joined);
    }
    Sizes whole = getSizes(x);
    whole[2 + i] = b.size(parts[i] * strides[i]);
    x = b.pad(x, zero, low, whole);
    split.append({b.size(parts[i]), b.size(strides[i])});
  }
  llvm::append_range(split, ArrayRef(sizes).drop_front(2 + n));
  x = b.reshape(x, split); // [N, C, (Q, S).., L..]
  // [N, C, S.., M..]: for each q, blocks that are shifted by q.
  Sizes shifted{sizes[0], sizes[1]};
  for (size_t i = 0; i < n; ++i)
    shifted.push_back(b.size(strides[i]));
  for (size_t i = 0; i < n; ++i)
    shifted.push_back(simplifySize(sizes[2 + n + i] + (parts[i] - 1)));
  const int64_t lastPhase = 1 + n, last = 1 + 2 * n;
  auto sumOf = [&](int64_t phase, int64_t count) { // of these phases of the last dim
    Sizes size = shifted;
    size[lastPhase] = b.size(count);
    Value sum;
    for (int64_t term = 0; term < terms; ++term) {
      Sizes behind(size.size(), b.size(0));
      SmallVector<int64_t> at(n);
      int64_t rest = term;
      for (size_t i = n; i-- > 0; rest /= parts[i]) {
        at[i] = rest % parts[i];
        behind[2 + n + i] = b.size(at[i]);
      }
      if (at.back() * strides.back() + phase >= extents.back()) // behind the blocks
        continue;
      Value part = b.sliceDim(x, last, b.size(phase), b.size(count));
      for (size_t i = 0; i < n; ++i)
        part = b.take(part, 2 + int64_t(i), at[i]);
      part = b.pad(part, zero, behind, size);
      sum = sum ? b.add(sum, part) : part;
    }
    return sum ? sum : b.splat(b.elementOf(x), size, 0);
  };
  SmallVector<int64_t> order{0, 1};
  for (size_t i = 0; i < n; ++i)
    order.append({int64_t(2 + n + i), int64_t(2 + i)});
  Value sum;
  if (strides.back() > 1 && strides.back() <= kMostPhases &&
      getConstantSize(shifted.back()).value_or(0) >= kLeastOfPhase) {
    SmallVector<Value> phases;
    for (int64_t phase = 0; phase < strides.back(); ++phase)
      phases.push_back(b.transpose(sumOf(phase, 1), order));
    sum = b.concat(phases, last);
  } else {
    sum = b.transpose(sumOf(0, strides.back()), order);
  }
  Sizes joined{sizes[0], sizes[1]}, whole = joined;
  for (size_t i = 0; i < n; ++i)
    joined.push_back(simplifySize(shifted[2 + n + i] * strides[i]));
  llvm::append_range(whole, padded);
  return b.pad(b.reshape(sum, joined), zero, Sizes(whole.size(), b.size(0)), whole);
}

/// Blocks [N, C * K, L] added up to images [N, C, D..]: sums of shifted blocks, or every element
/// knows its place in the padded image.
LogicalResult col2Im(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  Value x = ctx.operand(0);
  Sizes in = getSizes(x);
  FailureOr<Sizes> image = ctx.requireSizes(ctx.operand(1), "image_shape"),
                   block = ctx.requireSizes(ctx.operand(2), "block_shape");
  if (failed(image) || failed(block))
    return failure();
  size_t n = image->size();
  auto strides = ctx.getInts("strides").value_or(SmallVector<int64_t>(n, 1));
  auto dilations = ctx.getInts("dilations").value_or(SmallVector<int64_t>(n, 1));
  auto pads = ctx.getInts("pads").value_or(SmallVector<int64_t>(2 * n, 0));
  if (n == 0)
    return ctx.invalid("needs an image of one dim or more");
  Sizes padded, grid(*block), starts;
  for (size_t i = 0; i < n; ++i) {
    padded.push_back(simplifySize((*image)[i] + pads[i] + pads[i + n]));
    grid.push_back(simplifySize((padded[i] - ((*block)[i] - 1) * dilations[i] - 1).floorDiv(strides[i]) + 1));
    starts.push_back(b.size(pads[i]));
  }
  MLIRContext *context = b.getContext();
  AffineExpr blocks = product(context, *block), all = product(context, grid), pixels = product(context, padded);
  AffineExpr channels = ctx.divide(in[1], blocks);
  if (failed(ctx.requireEqual(channels * blocks, in[1], "channels that the block's size divides")) ||
      failed(ctx.requireEqual(all, blocks * in[2], "as many blocks as fit into the image")))
    return failure();
  Sizes whole{in[0], channels}, from{b.size(0), b.size(0)}, out = whole;
  llvm::append_range(whole, padded);
  llvm::append_range(from, starts);
  llvm::append_range(out, *image);
  Sizes places{in[0], channels};
  llvm::append_range(places, grid);
  Value image0 = addShifted(b, b.reshape(x, places), strides, dilations, padded);
  if (!image0) {
    Value place = b.splat(i64, grid, 0);
    AffineExpr stride = b.size(1);
    for (size_t i = n; i-- > 0;) {
      Value at = b.add(b.binary<MulOp>(b.iota(i64, grid, i), double(dilations[i])),
                       b.binary<MulOp>(b.iota(i64, grid, n + i), double(strides[i])));
      place = b.add(place, b.mul(at, b.broadcastTo(b.sizeValue(stride), grid)));
      stride = simplifySize(stride * padded[i]);
    }
    Sizes columns{in[0], channels, all}, flat{in[0], channels, pixels};
    Value indices = b.broadcastInDims(b.reshape(place, {all}), columns, {2});
    image0 = ScatterElementsOp::create(b, makeType(b.elementOf(x), flat), b.splat(b.elementOf(x), flat, 0), indices,
                                       b.reshape(x, columns), 2, ReduceKindAttr::get(context, ReduceKind::Sum));
  }
  return ctx.result(b.slice(b.reshape(image0, whole), from, SmallVector<int64_t>(out.size(), 1), out));
}

/// Bilinear taps of DeformConv along one dim: the two elements around each position, weights 0 outside.
SmallVector<Tap> tapsAround(PrimBuilder &b, Value at, AffineExpr size, bool isPaired) {
  Value base = b.unary<FloorOp>(at), ratio = b.sub(at, base), next = b.binary<AddOp>(base, 1);
  const Neighbour neighbours[] = {{base, holdInside(b, base, size), b.sub(b.splatLike(ratio, 1), ratio)},
                                  {next, holdInside(b, next, size), ratio}};
  return tapsOf(b, neighbours, size, /*onlyInside=*/true, isPaired);
}

/// A convolution that reads each element of its window at a place of its own, given by offsets that are data, and
/// interpolated between neighbours. The elements read become a matrix, which is multiplied with the filter.
LogicalResult deformConv(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), w = ctx.operand(1), offset = ctx.operand(2), mask = ctx.operand(4);
  Type type = b.elementOf(x), compute = b.accumulatorOf(type);
  Sizes in = getSizes(x), filter = getSizes(w), of = getSizes(offset);
  int64_t rank = in.size(), spatial = rank - 2, groups = ctx.getInt("group", 1),
          offsetGroups = ctx.getInt("offset_group", 1);
  if (spatial > 3)
    return ctx.unsupported("with " + Twine(spatial) + " spatial dims is not supported; supported: 1 to 3");
  FailureOr<Sizes> kernelSizes = readKernel(ctx, w);
  if (failed(kernelSizes))
    return failure();
  int64_t volume = 1;
  SmallVector<int64_t> kernel;
  for (AffineExpr size : *kernelSizes) {
    auto known = getConstantSize(size);
    if (!known)
      return ctx.unsupported("with a filter of unknown size and without kernel_shape is not supported");
    kernel.push_back(*known);
    volume *= *known;
  }
  FailureOr<Window> window = readWindow(ctx, *kernelSizes, SizesRef(in).drop_front(2));
  if (failed(window) ||
      failed(ctx.requireEqual(in[1], filter[1] * groups, "the filter's channels, times group, in dim 1")) ||
      failed(ctx.requireEqual(filter[0], filter[0].floorDiv(groups) * groups, "a group that divides the filters")) ||
      failed(ctx.requireEqual(in[1], in[1].floorDiv(offsetGroups) * offsetGroups,
                              "an offset_group that divides the channels")) ||
      failed(ctx.requireEqual(of[0], in[0], "offsets for each batch")) ||
      failed(ctx.requireEqual(of[1], b.size(offsetGroups * volume * spatial), "an offset for each element and dim")))
    return failure();
  Sizes out;
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t more = window->padLow[i] + window->padHigh[i] - window->dilations[i] * (kernel[i] - 1) - 1;
    out.push_back(simplifySize((in[i + 2] + more).floorDiv(window->strides[i]) + 1));
    if (failed(ctx.requireEqual(of[i + 2], out[i], "offsets for each result in dim " + Twine(i + 2))))
      return failure();
  }
  // Positions and samples: [N, G, K, T.., ..].
  AffineExpr perGroup = ctx.divide(in[1], b.size(offsetGroups)), count = product(b.getContext(), out);
  Sizes points{in[0], b.size(offsetGroups), b.size(volume)}, source{in[0], b.size(offsetGroups), perGroup};
  Sizes offsets{in[0], b.size(offsetGroups), b.size(volume), b.size(spatial)};
  llvm::append_range(points, out);
  llvm::append_range(offsets, out);
  source.append(in.begin() + 2, in.end());
  offset = b.convert(b.reshape(offset, offsets), compute);
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t i = 0, block = volume; i < spatial; ++i) {
    block /= kernel[i];
    Value k = b.binary<RemOp>(b.binary<DivOp>(b.iota(b.getI64Type(), points, 2), double(block)), double(kernel[i]));
    Value at = b.add(b.binary<MulOp>(k, double(window->dilations[i])),
                     b.binary<MulOp>(b.iota(b.getI64Type(), points, 3 + i), double(window->strides[i])));
    at = b.convert(b.binary<SubOp>(at, double(window->padLow[i])), compute);
    taps.push_back(
        tapsAround(b, b.add(at, b.take(offset, 3, i)), in[i + 2], isLastDimInnermost(perGroup) && i + 1 == spatial));
  }
  SmallVector<int64_t> last{0, 1};
  for (int64_t i = 0; i < spatial; ++i)
    last.push_back(i + 3);
  last.push_back(2);
  Value values = sampleTaps(b, b.transpose(b.reshape(x, source), last), taps, /*batchDims=*/2, compute);
  SmallVector<int64_t> pointDims = llvm::to_vector(llvm::seq<int64_t>(0, points.size()));
  if (mask) {
    Sizes sizes{in[0], b.size(offsetGroups * volume)};
    llvm::append_range(sizes, out);
    FailureOr<Value> fitting = ctx.castSizes(mask, sizes);
    if (failed(fitting))
      return failure();
    Value factor = b.convert(b.reshape(*fitting, points), compute);
    values = b.mul(values, b.broadcastInDims(factor, getSizes(values), pointDims));
  }
  // [N, G, K, T.., C / G] -> [N, group, C / group * K, T]
  SmallVector<int64_t> channelsFirst{0, 1, spatial + 3};
  llvm::append_range(channelsFirst, llvm::seq<int64_t>(2, spatial + 3));
  AffineExpr inner = simplifySize(filter[1] * volume), filters = ctx.divide(filter[0], b.size(groups));
  Value columns = b.reshape(b.transpose(values, channelsFirst), {in[0], b.size(groups), inner, count});
  Value matrix = b.reshape(b.convert(w, compute), {b.size(groups), filters, inner});
  Value dot = DotGeneralOp::create(b, matrix, columns, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{2},
                                   ArrayRef<int64_t>{2}); // [group, O / group, N, T]
  Sizes result{in[0], filter[0]};
  llvm::append_range(result, out);
  Value y = b.reshape(b.transpose(dot, {2, 0, 1, 3}), result);
  if (Value bias = ctx.operand(3)) {
    FailureOr<Value> wide = broadcastAlong(ctx, b.convert(bias, compute), 1, result);
    if (failed(wide))
      return failure();
    y = b.add(y, *wide);
  }
  return ctx.result(b.convert(y, type));
}

/// Positions of a grid: each the product of its matrix theta [N, D, D + 1] with (x, y, .., 1), in [-1, 1] over the
/// image.
LogicalResult affineGrid(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value theta = ctx.operand(0);
  Type type = b.elementOf(theta), compute = b.accumulatorOf(type);
  FailureOr<Sizes> size = ctx.requireSizes(ctx.operand(1), "size");
  if (failed(size))
    return failure();
  int64_t spatial = int64_t(size->size()) - 2;
  FailureOr<Value> matrix = ctx.castSizes(theta, {(*size)[0], b.size(spatial), b.size(spatial + 1)});
  if (failed(matrix))
    return failure();
  Sizes out{(*size)[0]};
  llvm::append_range(out, llvm::drop_begin(*size, 2));
  out.push_back(b.size(spatial));
  // [N, D] -> [N, D.., D]: column i of the matrices
  auto column = [&](int64_t i) {
    return b.broadcastInDims(b.convert(b.take(*matrix, 2, i), compute), out, {0, spatial + 1});
  };
  Value sum = column(spatial);
  for (int64_t i = 0; i < spatial; ++i) { // x, the last dim, comes first
    int64_t dim = spatial - i;
    Value index = b.iota(compute, out, dim), extent = b.convert(b.sizeValue(out[dim]), compute), at;
    auto wide = [&](Value v) { return b.broadcastTo(v, out); };
    if (ctx.getInt("align_corners", 0))
      at = b.div(b.binary<MulOp>(index, 2), wide(b.binary<MaxOp>(b.binary<SubOp>(extent, 1), 1)));
    else
      at = b.div(b.binary<AddOp>(b.binary<MulOp>(index, 2), 1), wide(extent));
    sum = b.add(sum, b.mul(column(i), b.binary<SubOp>(at, 1)));
  }
  return ctx.result(b.convert(sum, type));
}

/// What both poolings over regions need: [R, 4] corners (x1, y1, x2, y2) and which image [R] each lies in.
struct Regions {
  Value corners, batch;

  Value corner(PrimBuilder &b, int64_t i) const { return b.take(corners, 1, i); }
};

/// Maximum over the elements of each bin of each region; bins begin and end at whole elements, and may be empty (0).
/// Each is read as often along a dim as the longest bin has elements; shorter ones repeat their last, which changes
/// nothing.
LogicalResult maxRoiPool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), rois = ctx.operand(1);
  Type type = b.elementOf(x), compute = b.accumulatorOf(type);
  Sizes in = getSizes(x), of = getSizes(rois);
  auto pooled = ctx.getInts("pooled_shape");
  if (failed(ctx.requireEqual(of[1], b.size(5), "regions of 5 numbers")))
    return failure();
  rois = b.convert(b.reshape(rois, {of[0], b.size(5)}), compute);
  Regions regions{b.sliceDim(rois, 1, b.size(1), b.size(4)), b.convert(b.take(rois, 1, 0), b.getI64Type())};
  double scale = ctx.getFloat("spatial_scale", 1);
  // Half away from zero.
  auto round = [&](Value v) {
    v = b.binary<MulOp>(v, scale);
    return b.select(b.compare(CompareKind::LT, v, 0), b.unary<CeilOp>(b.binary<SubOp>(v, 0.5)),
                    b.unary<FloorOp>(b.binary<AddOp>(v, 0.5)));
  };
  const int64_t bins[] = {(*pooled)[0], (*pooled)[1]};
  Value source = b.transpose(x, toChannelsLast(4)), filled, places[2]; // of elements [R, P, G]
  Sizes points{of[0], b.size(bins[0]), b.size(bins[1])}, out = points;
  for (int64_t dim : {0, 1}) {
    Sizes each{of[0], b.size(bins[dim])};
    Value start = round(regions.corner(b, 1 - dim)), end = round(regions.corner(b, 3 - dim));
    Value extent = b.binary<MaxOp>(b.binary<AddOp>(b.sub(end, start), 1), 1);
    Value step = b.broadcastInDims(b.binary<DivOp>(extent, double(bins[dim])), each, {0});
    Value number = b.iota(compute, each, 1), first = b.broadcastInDims(start, each, {0});
    Value limit = b.broadcastTo(b.convert(b.sizeValue(in[dim + 2]), compute), each);
    auto clamp = [&](Value v) { return b.min(b.binary<MaxOp>(b.add(v, first), 0), limit); };
    Value low = clamp(b.unary<FloorOp>(b.mul(number, step)));
    Value high = clamp(b.unary<CeilOp>(b.mul(b.binary<AddOp>(number, 1), step)));
    Value longest = b.convert(b.reduce(ReduceKind::Max, b.sub(high, low), {0, 1}), b.getI64Type());
    points.push_back(b.bindSymbol("binned", b.binary<MaxOp>(longest, 0)));
    Sizes grid{each[0], each[1], points.back()};
    Value at = b.add(b.broadcastInDims(low, grid, {0, 1}), b.iota(compute, grid, 2));
    at = b.min(at, b.broadcastInDims(b.binary<SubOp>(high, 1), grid, {0, 1}));
    places[dim] = emitClampedIndex(b, at, in[dim + 2]);
    Value some = b.broadcastInDims(b.compare(CompareKind::LT, low, high), out, {0, dim + 1});
    filled = filled ? b.binary<AndOp>(filled, some) : some;
  }
  // [R, PH, PW, GH, GW, C]
  Sizes all = points;
  all.push_back(in[1]);
  out.push_back(in[1]);
  auto spread = [&](Value v, ArrayRef<int64_t> dims) { return b.unsqueeze(b.broadcastInDims(v, points, dims), 5); };
  Value image = b.convert(regions.batch, b.elementOf(places[0]));
  Value place = b.concat({spread(image, {0}), spread(places[0], {0, 1, 3}), spread(places[1], {0, 2, 4})}, 5);
  Value values = GatherNDOp::create(b, makeType(type, all), source, place, 0);
  values = b.reduce(ReduceKind::Max, values, {3, 4});
  values = b.select(b.broadcastInDims(filled, out, {0, 1, 2}), values, b.splatLike(values, 0));
  return ctx.result(b.transpose(values, toChannelsFirst(4)));
}

/// Samples of RoiAlign along one dim, [R, P, G]: two taps each, and which of the G samples a region has.
struct Samples {
  SmallVector<Tap> taps;
  Value isSample;
  Value count; // [R] floats
};

/// `start` and `extent` [R] of the regions in elements.
Samples samplesAlong(PrimBuilder &b, Value start, Value extent, int64_t bins, int64_t ratio, AffineExpr size) {
  Type type = b.elementOf(start);
  AffineExpr regions = getSizes(start)[0], most = b.size(ratio);
  Value step = b.binary<DivOp>(extent, double(bins)), count;
  if (ratio > 0) {
    count = b.splatLike(step, double(ratio));
  } else { // about one sample for each element; the region that needs most decides for all
    count = b.binary<MaxOp>(b.unary<CeilOp>(step), 0);
    most =
        b.bindSymbol("samples", b.binary<MaxOp>(b.convert(b.reduce(ReduceKind::Max, count, {0}), b.getI64Type()), 0));
  }
  Sizes grid{regions, b.size(bins), most};
  auto wide = [&](Value v) { return b.broadcastInDims(v, grid, {0}); };
  Value number = b.iota(type, grid, 2), isSample = b.compare(CompareKind::LT, number, wide(count));
  Value inBin = b.div(b.mul(b.binary<AddOp>(number, 0.5), wide(step)), wide(count));
  Value at = b.add(b.add(wide(start), b.mul(b.iota(type, grid, 1), wide(step))), inBin);
  Value extentOf = b.broadcastTo(b.convert(b.sizeValue(size), type), grid);
  Value inside = b.binary<AndOp>(b.compare(CompareKind::GE, at, -1), b.compare(CompareKind::LE, at, extentOf));
  // Beyond the middle of the last element nothing is interpolated.
  at = b.min(b.binary<MaxOp>(at, 0), b.binary<SubOp>(extentOf, 1));
  Value base = b.unary<FloorOp>(at), ratioOf = b.sub(at, base), zero = b.splatLike(at, 0);
  auto tap = [&](double offset, Value weight) {
    return Tap{emitClampedIndex(b, b.binary<AddOp>(base, offset), size), b.select(inside, weight, zero), {}};
  };
  return {{tap(0, b.sub(b.splatLike(at, 1), ratioOf)), tap(1, ratioOf)}, isSample, count};
}

/// Mean or maximum over interpolated samples of each bin of each region. As in the operator's first implementation, the
/// maximum is over the weighted neighbours of the samples.
LogicalResult roiAlign(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), rois = ctx.operand(1), batch = ctx.operand(2);
  Type type = b.elementOf(x), compute = b.accumulatorOf(type);
  Sizes in = getSizes(x), of = getSizes(rois);
  std::string mode = StringRef(ctx.getString("mode", "avg")).lower();
  std::string transform = ctx.opset() < 16 ? std::string("output_half_pixel")
                                           : ctx.getString("coordinate_transformation_mode", "half_pixel");
  int64_t bins[] = {ctx.getInt("output_height", 1), ctx.getInt("output_width", 1)};
  int64_t ratio = ctx.getInt("sampling_ratio", 0);
  if (mode != "avg" && mode != "max")
    return ctx.invalid("mode is \"" + mode + "\"; it may be avg or max");
  FailureOr<Value> images = ctx.castSizes(batch, {of[0]});
  if (failed(images) || failed(ctx.requireEqual(of[1], b.size(4), "regions of 4 numbers")))
    return failure();
  Regions regions{b.convert(b.reshape(rois, {of[0], b.size(4)}), compute), b.convert(*images, b.getI64Type())};
  bool halfPixel = transform == "half_pixel";
  double scale = ctx.getFloat("spatial_scale", 1);
  auto corner = [&](int64_t i) {
    return b.binary<SubOp>(b.binary<MulOp>(regions.corner(b, i), scale), halfPixel ? 0.5 : 0);
  };
  SmallVector<Samples> along;
  for (int64_t dim : {0, 1}) {
    Value start = corner(1 - dim), extent = b.sub(corner(3 - dim), start);
    if (!halfPixel)
      extent = b.binary<MaxOp>(extent, 1);
    along.push_back(samplesAlong(b, start, extent, bins[dim], ratio, in[dim + 2]));
  }
  // [R, PH, PW, GH, GW]
  Sizes sizeH = getSizes(along[0].isSample), sizeW = getSizes(along[1].isSample);
  Sizes points{of[0], sizeH[1], sizeW[1], sizeH[2], sizeW[2]}, all = points;
  all.push_back(in[1]);
  SmallVector<int64_t> dims[] = {{0, 1, 3}, {0, 2, 4}}, pointDims{0, 1, 2, 3, 4};
  auto spread = [&](Value v, int64_t dim) { return b.broadcastInDims(v, points, dims[dim]); };
  Value isSample = b.binary<AndOp>(spread(along[0].isSample, 0), spread(along[1].isSample, 1));
  isSample = b.broadcastInDims(isSample, all, pointDims);
  Value source = b.transpose(x, toChannelsLast(4)), image = b.broadcastInDims(regions.batch, points, {0}), result;
  for (const Tap &row : along[0].taps)
    for (const Tap &column : along[1].taps) {
      SmallVector<Value> place{b.unsqueeze(image, 5), b.unsqueeze(spread(row.index, 0), 5),
                               b.unsqueeze(spread(column.index, 1), 5)};
      Value value = GatherNDOp::create(b, makeType(type, all), source, b.concat(place, 5), 0);
      Value weight = b.mul(spread(row.weight, 0), spread(column.weight, 1));
      value = b.mul(b.convert(value, compute), b.broadcastInDims(weight, all, pointDims));
      result = !result ? value : mode == "avg" ? b.add(result, value) : b.max(result, value);
    }
  Value count = b.broadcastInDims(b.mul(along[0].count, along[1].count), {of[0], sizeH[1], sizeW[1], in[1]}, {0});
  if (mode == "avg") {
    result = b.reduce(ReduceKind::Sum, b.select(isSample, result, b.splatLike(result, 0)), {3, 4});
    result = b.div(result, b.binary<MaxOp>(count, 1));
  } else {
    Value lowest = b.splatLike(result, -std::numeric_limits<double>::infinity());
    result = b.reduce(ReduceKind::Max, b.select(isSample, result, lowest), {3, 4});
    result = b.select(b.compare(CompareKind::GT, count, 0), result, b.splatLike(result, 0));
  }
  return ctx.result(b.convert(b.transpose(result, toChannelsFirst(4)), type));
}

} // namespace

void tc::populateONNXSample(OpRegistrar &onOp) {
  onOp("GridSample", 16, gridSample, 2);
  onOp("Col2Im", 18, col2Im, 3);
  onOp.takeComplex(ComplexUse::ByParts, {"GridSample", "Col2Im"});
  onOp("AffineGrid", 20, affineGrid, 2);
  onOp("DeformConv", 19, deformConv, 3);
  onOp("MaxRoiPool", 1, maxRoiPool, 2);
  onOp("RoiAlign", 10, roiAlign, 3);
}
