//===- ONNXSample.cpp - reading and adding at computed positions in ONNX ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// An element that a position is interpolated from, along one dim.
struct Tap {
  Value index;  // i64, in range
  Value weight; // null: 1
  Value inside; // null: always
};

/// GridSample along one dim: positions (floats) become taps.
class DimSampler {
public:
  DimSampler(PrimBuilder &b, StringRef mode, StringRef padding, bool alignCorners, AffineExpr size)
      : b(b), mode(mode), padding(padding), align(alignCorners), size(size) {}

  /// `normalized`: in [-1, 1] where inside.
  SmallVector<Tap> run(Value normalized) {
    Value extent = like(normalized, size), one = b.binary<AddOp>(normalized, 1);
    Value x = align ? b.mul(b.binary<MulOp>(one, 0.5), b.binary<SubOp>(extent, 1))
                    : b.binary<MulOp>(b.binary<SubOp>(b.mul(one, extent), 1), 0.5);
    if (mode == "nearest")
      x = b.unary<RoundOp>(x);
    if (padding == "border")
      x = b.min(b.binary<MaxOp>(x, 0), b.binary<SubOp>(extent, 1));
    else if (padding == "reflection")
      x = reflect(x);
    if (mode == "nearest")
      return {tapAt(x, {})};
    Value base = b.unary<FloorOp>(x), ratio = b.sub(x, base);
    SmallVector<Tap> taps;
    int64_t last = mode == "linear" ? 1 : 2;
    for (int64_t offset = 1 - last; offset <= last; ++offset) {
      Value distance = b.unary<AbsOp>(b.binary<SubOp>(ratio, double(offset)));
      taps.push_back(tapAt(b.binary<AddOp>(base, double(offset)), kernel(distance, offset)));
    }
    return taps;
  }

private:
  Value like(Value v, AffineExpr expr) {
    return b.broadcastTo(b.convert(b.sizeValue(expr), b.elementOf(v)), getSizes(v));
  }

  Value kernel(Value x, int64_t offset) {
    if (mode == "linear")
      return b.sub(b.splatLike(x, 1), x);
    return emitCubicWeight(b, x, /*a=*/-0.75, /*inner=*/offset == 0 || offset == 1);
  }

  /// Mirrored at the borders until it lies between them.
  Value reflect(Value x) {
    Value extent = like(x, size);
    Value low = b.splatLike(x, align ? 0 : -0.5), high = b.binary<SubOp>(extent, align ? 1 : 0.5);
    Value range = b.sub(high, low);
    Value below = b.compare(CompareKind::LT, x, low), above = b.compare(CompareKind::GT, x, high);
    Value distance = b.select(below, b.sub(low, x), b.sub(x, high));
    Value turns = b.unary<TruncOp>(b.div(distance, range)), rest = b.sub(distance, b.mul(turns, range));
    Value even = b.compare(CompareKind::EQ, b.binary<RemOp>(turns, 2), 0);
    Value fromLow = b.add(low, rest), fromHigh = b.sub(high, rest);
    Value ifBelow = b.select(even, fromLow, fromHigh), ifAbove = b.select(even, fromHigh, fromLow);
    return b.select(below, ifBelow, b.select(above, ifAbove, x));
  }

  Tap tapAt(Value position, Value weight) {
    Tap tap{{}, weight, {}};
    if (padding == "reflection")
      position = reflect(position);
    if (padding == "zeros")
      tap.inside = b.binary<AndOp>(b.compare(CompareKind::GE, position, 0),
                                   b.compare(CompareKind::LT, position, like(position, size)));
    tap.index = emitClampedIndex(b, position, size);
    return tap;
  }

  PrimBuilder &b;
  StringRef mode, padding;
  bool align;
  AffineExpr size;
};

LogicalResult gridSample(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), grid = ctx.operand(1);
  Sizes in = getSizes(x), of = getSizes(grid);
  int64_t spatial = int64_t(in.size()) - 2;
  std::string mode = ctx.getString("mode", "linear"), padding = ctx.getString("padding_mode", "zeros");
  if (mode == "bilinear" || mode == "bicubic") // GridSample-16
    mode = mode == "bilinear" ? "linear" : "cubic";
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    return ctx.invalid("mode is \"" + mode + "\"; it may be linear, nearest or cubic");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return ctx.invalid("padding_mode is \"" + padding + "\"; it may be zeros, border or reflection");
  if (spatial < 1 || int64_t(of.size()) != spatial + 2 || !b.isFloat(grid) || getConstantSize(of.back()) != spatial)
    return ctx.invalid("needs an operand [N, C, D..] and a grid [N, O.., number of D], but has " + describe(x) +
                       " and " + describe(grid));
  if (spatial > 3)
    return ctx.unsupported("with " + Twine(spatial) + " spatial dims is not supported; supported: 1 to 3");
  if (failed(ctx.requireEqual(of[0], in[0], "as many grids as operands")))
    return failure();
  Type type = b.elementOf(x), compute = b.isFloat(x) ? b.accumulatorOf(type) : Type(b.getF32Type());
  grid = b.convert(grid, b.accumulatorOf(b.elementOf(grid)));
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t i = 0; i < spatial; ++i) // the grid names the last dim first
    taps.push_back(DimSampler(b, mode, padding, ctx.getInt("align_corners", 0), in[i + 2])
                       .run(b.take(grid, spatial + 1, spatial - 1 - i)));
  Value source = b.transpose(x, toChannelsLast(in.size()));
  Sizes points(of.begin(), of.end() - 1), out = points;
  out.push_back(in[1]);
  SmallVector<int64_t> pointDims = llvm::to_vector(llvm::seq<int64_t>(0, points.size()));
  // Every combination of the dims' taps.
  Value sum;
  int64_t combinations = 1;
  for (const auto &list : taps)
    combinations *= list.size();
  for (int64_t n = 0; n < combinations; ++n) {
    SmallVector<Value> indices;
    Value weight, inside;
    int64_t rest = n;
    for (const auto &list : taps) {
      const Tap &tap = list[rest % list.size()];
      rest /= list.size();
      indices.push_back(b.unsqueeze(tap.index, points.size()));
      if (tap.weight)
        weight = weight ? b.mul(weight, tap.weight) : tap.weight;
      if (tap.inside)
        inside = inside ? b.binary<AndOp>(inside, tap.inside) : tap.inside;
    }
    Value value = GatherNDOp::create(b, makeType(type, out), source, b.concat(indices, points.size()), 1);
    if (inside)
      value = b.select(b.broadcastInDims(inside, out, pointDims), value, b.splatLike(value, 0));
    if (weight)
      value = b.mul(b.convert(value, compute), b.broadcastInDims(b.convert(weight, compute), out, pointDims));
    sum = sum ? b.add(sum, value) : value;
  }
  return ctx.result(b.transpose(b.convert(sum, type), toChannelsFirst(in.size())));
}

/// Blocks [N, C * K, L] added up to images [N, C, D..]: every element knows its place in the padded image.
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
  auto positive = [](int64_t v) { return v >= 1 && v <= INT32_MAX; };
  if (in.size() != 3 || n == 0 || block->size() != n || strides.size() != n || dilations.size() != n ||
      pads.size() != 2 * n || !llvm::all_of(strides, positive) || !llvm::all_of(dilations, positive))
    return ctx.invalid(
        "needs an operand [N, C * block, L], and a size, block, stride and dilation (pads: two) for each "
        "dim of the image");
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
  Value sum = ScatterElementsOp::create(b, makeType(b.elementOf(x), flat), b.splat(b.elementOf(x), flat, 0), indices,
                                        b.reshape(x, columns), 2, ReduceKindAttr::get(context, ReduceKind::Sum));
  Sizes whole{in[0], channels}, from{b.size(0), b.size(0)}, out = whole;
  llvm::append_range(whole, padded);
  llvm::append_range(from, starts);
  llvm::append_range(out, *image);
  return ctx.result(b.slice(b.reshape(sum, whole), from, SmallVector<int64_t>(out.size(), 1), out));
}

} // namespace

void tc::populateONNXSample(OpRegistrar &onOp) {
  onOp("GridSample", 16, gridSample, 2);
  onOp("Col2Im", 18, col2Im, 3);
}
