//===- ONNXResize.cpp - Resize and Upsample of ONNX ---------------------------------------------------------------===//
//
// Interpolation is separable: one dim after the other. Along a dim, each result position has a coordinate in the
// operand; around it stand a few taps (nearest 1, linear 2, cubic 4), each a gather and a weight. Antialiasing has as
// many taps as the scale asks for: few are gathered one by one; many, and those along the last dim, are a matrix that
// the dim is contracted with, or, where only the run knows them, a dim that is summed.
//
// Coordinates and weights are computed in f64, values in f32 (f64 stays).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ConstantData.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Resize.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Taps of antialiasing at most that are gathered one by one, by lines: along the last dim, where each lane would fetch
// its own, a product with all positions, of weights that are constants, takes a fifth of the time (160x256 to 100x160).
// Where the run computes the weights, all of them take 16 times as long as the taps.
constexpr int64_t kMostTaps = 16;

class Resizer {
public:
  Resizer(PrimBuilder &b, const ResizeOptions &options) : b(b), options(options), f64(b.getF64Type()) {}

  Value run(Value x, ArrayRef<ResizedDim> axes) {
    Type type = b.elementOf(x);
    bool nearest = options.mode == "nearest";
    Type compute = isa<FloatType>(type) ? b.accumulatorOf(type) : Type(b.getF32Type());
    if (!nearest)
      x = b.convert(x, compute);
    for (const ResizedDim &axis : axes) {
      Value at = coordinate(axis);
      if (nearest)
        x = GatherOp::create(b, x, emitClampedIndex(b, round(at), axis.in), axis.dim);
      else if (options.antialias && (reach(axis) * 2 > kMostTaps || axis.dim + 1 == b.rankOf(x)))
        x = isKnown(axis) ? contract(x, axis, matrix(at, axis)) : sumTaps(x, axis, at);
      else
        x = interpolate(x, axis, at);
      if (options.coordinates == "tf_crop_and_resize") {
        Value outside = b.binary<OrOp>(b.compare(CompareKind::LT, at, 0),
                                       b.compare(CompareKind::GT, at, wide(b.binary<SubOp>(size(axis.in), 1), axis)));
        Value all = b.broadcastInDims(outside, getSizes(x), {axis.dim});
        x = b.select(all, b.splatLike(x, options.extrapolation), x);
      }
    }
    if (!isa<FloatType>(type) && !nearest)
      x = b.unary<RoundOp>(x);
    return b.convert(x, type);
  }

private:
  Value size(AffineExpr expr) { return b.convert(b.sizeValue(expr), f64); }
  Value wide(Value scalar, const ResizedDim &axis) { return b.broadcastTo(scalar, {axis.out}); }

  /// a / b, [out] f64. Scales are rounded to f32: in f64, position 2 at a scale of 1/3 is 5.9999998, and its nearest
  /// element from below another one than what every runtime takes, which divides in f32.
  Value quotient(Value a, Value divisor) {
    Value exact = b.div(a, divisor);
    return options.mode == "nearest" ? b.convert(b.convert(exact, b.getF32Type()), f64) : exact;
  }

  /// [out] f64: where in the operand each result position lies.
  Value coordinate(const ResizedDim &axis) {
    Value position = b.iota(f64, {axis.out}, 0), in = size(axis.in), width = b.mul(axis.scale, in);
    Value one = b.compare(CompareKind::EQ, width, 1);
    auto orElse = [&](Value whenOne, Value otherwise) {
      return b.select(b.broadcastTo(one, getSizes(otherwise)), whenOne, otherwise);
    };
    const std::string &mode = options.coordinates;
    if (mode == "asymmetric")
      return quotient(position, wide(axis.scale, axis));
    if (mode == "align_corners" || mode == "tf_crop_and_resize") {
      Value inSpan = b.binary<SubOp>(in, 1), outSpan = b.binary<SubOp>(width, 1);
      if (mode == "align_corners")
        return orElse(b.splatLike(position, 0), quotient(b.mul(position, wide(inSpan, axis)), wide(outSpan, axis)));
      Value extent = b.mul(b.sub(axis.roiEnd, axis.roiStart), inSpan);
      Value step = b.div(b.mul(position, wide(extent, axis)), wide(outSpan, axis));
      step = orElse(wide(b.binary<MulOp>(extent, 0.5), axis), step);
      return b.add(step, wide(b.mul(axis.roiStart, inSpan), axis));
    }
    if (mode == "half_pixel_symmetric") {
      // in / 2 + (position + 0.5 - out / 2) / scale - 0.5: the middles lie on each other whatever the scale, so that
      // nothing but the one quotient rounds.
      Value twice = b.sub(b.binary<AddOp>(b.binary<MulOp>(position, 2), 1), wide(size(axis.out), axis));
      Value middle = b.binary<MulOp>(b.binary<SubOp>(in, 1), 0.5);
      return b.add(quotient(b.binary<MulOp>(twice, 0.5), wide(axis.scale, axis)), wide(middle, axis));
    }
    Value half = b.binary<SubOp>(quotient(b.binary<AddOp>(position, 0.5), wide(axis.scale, axis)), 0.5);
    if (mode == "tf_half_pixel_for_nn") // Resize-11
      return b.binary<AddOp>(half, 0.5);
    if (mode == "pytorch_half_pixel") { // ReferenceEvaluator gives an only sample the place -0.5, the specification 0
      Value single = b.compare(CompareKind::EQ, size(axis.out), 1);
      return b.select(b.broadcastTo(single, getSizes(half)), b.splatLike(half, 0), half);
    }
    return half;
  }

  Value round(Value at) {
    if (options.nearest == "floor")
      return b.unary<FloorOp>(at);
    if (options.nearest == "ceil")
      return b.unary<CeilOp>(at);
    if (options.nearest == "round_prefer_ceil")
      return b.unary<FloorOp>(b.binary<AddOp>(at, 0.5));
    return b.unary<CeilOp>(b.binary<SubOp>(at, 0.5));
  }

  /// The interpolation kernel at a distance.
  Value kernel(Value distance) {
    Value x = b.unary<AbsOp>(distance);
    if (options.mode == "linear")
      return b.binary<MaxOp>(b.sub(b.splatLike(x, 1), x), 0);
    Value inner = emitCubicWeight(b, x, options.cubicA, true), outer = emitCubicWeight(b, x, options.cubicA, false);
    Value rest = b.select(b.compare(CompareKind::LT, x, 2), outer, b.splatLike(x, 0));
    return b.select(b.compare(CompareKind::LE, x, 1), inner, rest);
  }

  Value isInside(Value at, const ResizedDim &axis) {
    Value in = b.broadcastTo(size(axis.in), getSizes(at));
    return b.binary<AndOp>(b.compare(CompareKind::GE, at, 0), b.compare(CompareKind::LT, at, in));
  }

  /// How far the taps of a position go to either side; where only the run knows, farther than can be gathered.
  int64_t reach(const ResizedDim &axis) {
    const int64_t own = options.mode == "linear" ? 1 : 2;
    if (!options.antialias || (axis.known && *axis.known >= 1))
      return own;
    const double most = double(own) / axis.known.value_or(0);
    return most < double(kMostTaps) ? int64_t(std::ceil(most)) : kMostTaps;
  }

  static bool isKnown(const ResizedDim &axis) {
    return axis.known && getConstantSize(axis.in) && getConstantSize(axis.out);
  }

  /// Half the number of taps of antialiasing that only the run knows.
  AffineExpr reachValue(const ResizedDim &axis) {
    const int64_t own = options.mode == "linear" ? 1 : 2;
    // A result has half an element at least, as sizes are rounded: taps go no farther than twice the kernel of it all.
    Value most = b.binary<AddOp>(b.binary<MulOp>(size(axis.in), 2.0 * double(own)), 1);
    Value reach = b.unary<CeilOp>(b.div(b.scalar(f64, double(own)), b.binary<MinOp>(axis.scale, 1)));
    reach = b.select(b.compare(CompareKind::LE, reach, most), reach, most); // no number, too
    return b.bindSymbol("reach", b.convert(reach, b.getI64Type()), own);
  }

  /// The sum over taps, which are a dim.
  Value sumTaps(Value x, const ResizedDim &axis, Value at) {
    const AffineExpr reach = reachValue(axis);
    const Sizes sizes{simplifySize(reach * 2), axis.out};
    auto wide = [&](Value v) { return b.broadcastInDims(v, sizes, {1}); };
    auto all = [&](Value scalar) { return b.broadcastTo(scalar, sizes); };
    Value first = all(b.binary<SubOp>(size(reach), 1)), offset = b.sub(b.iota(f64, sizes, 0), first);
    Value position = b.add(wide(b.unary<FloorOp>(at)), offset), distance = b.sub(wide(at), position);
    Value weight = kernel(b.mul(distance, all(b.binary<MinOp>(axis.scale, 1))));
    if (options.excludeOutside)
      weight = b.select(isInside(position, axis), weight, b.splatLike(weight, 0));
    weight = b.div(weight, wide(b.reduce(ReduceKind::Sum, weight, {0})));
    Value value = GatherOp::create(b, x, emitClampedIndex(b, position, axis.in), axis.dim);
    weight = b.broadcastInDims(b.convert(weight, b.elementOf(x)), getSizes(value), {axis.dim, axis.dim + 1});
    return b.reduce(ReduceKind::Sum, b.mul(value, weight), {axis.dim});
  }

  Value interpolate(Value x, const ResizedDim &axis, Value at) {
    Value base = b.unary<FloorOp>(at), total;
    SmallVector<std::pair<Value, Value>> taps; // position, weight
    const int64_t last = reach(axis);
    for (int64_t offset = 1 - last; offset <= last; ++offset) {
      Value position = b.binary<AddOp>(base, double(offset)), distance = b.sub(at, position);
      if (options.antialias)
        distance = b.binary<MulOp>(distance, std::min(*axis.known, 1.0));
      Value weight = kernel(distance);
      if (options.excludeOutside)
        weight = b.select(isInside(position, axis), weight, b.splatLike(weight, 0));
      if (options.excludeOutside || options.antialias)
        total = total ? b.add(total, weight) : weight;
      taps.push_back({position, weight});
    }
    Value sum;
    for (auto [position, weight] : taps) {
      if (total)
        weight = b.div(weight, total);
      Value value = GatherOp::create(b, x, emitClampedIndex(b, position, axis.in), axis.dim);
      value = b.mul(value, b.broadcastInDims(b.convert(weight, b.elementOf(x)), getSizes(value), {axis.dim}));
      sum = sum ? b.add(sum, value) : value;
    }
    return sum;
  }

  /// [out, in]: weights of all operand positions; what lies outside counts for the nearest one inside.
  Value matrix(Value at, const ResizedDim &axis) {
    AffineExpr border = simplifySize(axis.in * 2 + 2);
    Sizes sizes{axis.out, simplifySize(axis.in + border * 2)}, inner{axis.out, axis.in};
    Value shift = b.broadcastTo(size(border), sizes);
    Value position = b.sub(b.iota(f64, sizes, 1), shift);
    Value scale = b.binary<MinOp>(axis.scale, 1);
    Value distance = b.mul(b.sub(position, b.broadcastInDims(at, sizes, {0})), b.broadcastTo(scale, sizes));
    Value weight = kernel(distance);
    if (options.excludeOutside)
      weight = b.select(isInside(position, axis), weight, b.splatLike(weight, 0));
    weight = b.div(weight, b.broadcastInDims(b.reduce(ReduceKind::Sum, weight, {1}), sizes, {0}));
    auto part = [&](AffineExpr start, AffineExpr count) { return b.sliceDim(weight, 1, start, count); };
    Value middle = part(border, axis.in), column = b.iota(b.getI64Type(), inner, 1);
    auto addTo = [&](AffineExpr place, Value outside) {
      Value sum = b.broadcastInDims(b.reduce(ReduceKind::Sum, outside, {1}), inner, {0});
      Value here = b.compare(CompareKind::EQ, column, b.broadcastTo(b.sizeValue(place), inner));
      middle = b.add(middle, b.select(here, sum, b.splatLike(sum, 0)));
    };
    addTo(b.size(0), part(b.size(0), border));
    addTo(simplifySize(axis.in - 1), part(simplifySize(border + axis.in), border));
    return middle;
  }

  Value contract(Value x, const ResizedDim &axis, Value weights) {
    int64_t rank = b.rankOf(x);
    Value y = DotGeneralOp::create(b, x, b.convert(weights, b.elementOf(x)), ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                   ArrayRef<int64_t>{axis.dim}, ArrayRef<int64_t>{1});
    SmallVector<int64_t> back = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
    back.insert(back.begin() + axis.dim, rank - 1);
    return b.transpose(y, back);
  }

  PrimBuilder &b;
  ResizeOptions options;
  Type f64;
};

} // namespace

Value tc::emitResize(PrimBuilder &b, Value x, const ResizeOptions &options, ArrayRef<ResizedDim> dims) {
  return Resizer(b, options).run(x, dims);
}

/// The size that `scale` makes of `in`, rounded as `Rounding` says.
template <typename Rounding>
static AffineExpr roundedSize(PrimBuilder &b, AffineExpr in, const ResizeScale &scale, double add) {
  if (scale.known && getConstantSize(in) && double(*getConstantSize(in)) * *scale.known < 0x1p62)
    return b.size(int64_t(std::floor(double(*getConstantSize(in)) * *scale.known + add)));
  if (scale.known && add == 0 && *scale.known >= 1 && *scale.known == std::floor(*scale.known) && *scale.known < 1e6)
    return simplifySize(in * int64_t(*scale.known));
  Value size = b.mul(b.convert(b.sizeValue(in), b.getF64Type()), scale.value);
  if (add != 0)
    size = b.binary<AddOp>(size, add);
  return b.bindSymbol("resized", b.convert(b.unary<Rounding>(size), b.getI64Type()));
}

AffineExpr tc::scaledSize(PrimBuilder &b, AffineExpr in, const ResizeScale &scale) {
  return roundedSize<FloorOp>(b, in, scale, 0);
}

namespace {

/// Element i of the 1-D float tensor `v`, as a number where it is constant.
ResizeScale elementOf(NodeContext &ctx, Value v, int64_t i) {
  PrimBuilder &b = ctx.b;
  if (auto constant = v.getDefiningOp<prim::ConstantOp>())
    if (std::optional<SmallVector<double>> all = readFloats(constant.getValue()); all && i < int64_t(all->size()))
      return {(*all)[i], b.scalar(b.getF64Type(), (*all)[i])};
  return {std::nullopt, b.convert(b.take(v, 0, i), b.getF64Type())};
}

LogicalResult resizeBy(NodeContext &ctx, const ResizeOptions &options, Value scales, Value sizes, Value roi) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes in = getSizes(x);
  int64_t rank = in.size();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (auto given = ctx.getInts("axes")) {
    FailureOr<SmallVector<int64_t>> normal = ctx.axes(*given, rank);
    if (failed(normal))
      return failure();
    dims = *normal;
  }
  int64_t count = dims.size();
  Value list = scales ? scales : sizes;
  auto type = b.typeOf(list);
  if (type.getRank() != 1 || !type.hasStaticShape() || type.getDimSize(0) != count)
    return ctx.invalid("needs one scale or size for each of " + Twine(count) + " dims, but has " + describe(list));
  std::string policy = ctx.getString("keep_aspect_ratio_policy", "stretch");
  SmallVector<ResizeScale> factors;
  Sizes targets;
  if (sizes) {
    FailureOr<Sizes> given = ctx.requireSizes(sizes, "sizes");
    if (failed(given))
      return failure();
    targets = *given;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      auto out = getConstantSize(targets[i]), from = getConstantSize(in[dim]);
      auto number = [&](AffineExpr e) { return b.convert(b.sizeValue(e), b.getF64Type()); };
      if (out && from && *from > 0)
        factors.push_back({double(*out) / double(*from), b.scalar(b.getF64Type(), double(*out) / double(*from))});
      else
        factors.push_back({std::nullopt, b.div(number(targets[i]), number(in[dim]))});
    }
    if (policy != "stretch") {
      ResizeScale common = factors.front();
      for (const ResizeScale &other : llvm::drop_begin(factors)) {
        bool smaller = policy == "not_larger";
        common.value = smaller ? b.min(common.value, other.value) : b.max(common.value, other.value);
        if (common.known && other.known)
          common.known = smaller ? std::min(*common.known, *other.known) : std::max(*common.known, *other.known);
        else
          common.known = std::nullopt;
      }
      if (common.known)
        common.value = b.scalar(b.getF64Type(), *common.known);
      for (auto [i, dim] : llvm::enumerate(dims)) {
        factors[i] = common;
        targets[i] = roundedSize<FloorOp>(b, in[dim], common, 0.5);
      }
    }
  } else {
    for (auto [i, dim] : llvm::enumerate(dims)) {
      factors.push_back(elementOf(ctx, scales, i));
      // One of several, of which the others come at run time.
      if (std::optional<double> known = factors.back().known; known && !(*known > 0 && std::isfinite(*known)))
        return ctx.invalid("the scale of dim " + Twine(dim) + " is " + llvm::formatv("{0}", *known).str() +
                           "; scales are positive numbers");
      targets.push_back(scaledSize(b, in[dim], factors.back()));
    }
  }
  bool crop = options.coordinates == "tf_crop_and_resize";
  if (crop && (!roi || b.rankOf(roi) != 1 || b.typeOf(roi).getDimSize(0) != 2 * count))
    return ctx.invalid("tf_crop_and_resize needs a roi with start and end of each dim");
  SmallVector<ResizedDim> axes;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    ResizedDim axis{dim, in[dim], targets[i], factors[i].value, {}, {}, factors[i].known};
    if (crop) {
      axis.roiStart = elementOf(ctx, roi, i).value;
      axis.roiEnd = elementOf(ctx, roi, i + count).value;
    } else if (axis.in == axis.out && (!scales || factors[i].known == 1.0)) {
      continue;
    }
    axes.push_back(axis);
  }
  return ctx.result(emitResize(b, x, options, axes));
}

LogicalResult resize(NodeContext &ctx) {
  ResizeOptions options;
  options.mode = ctx.getString("mode", "nearest");
  options.coordinates = ctx.getString("coordinate_transformation_mode", "half_pixel");
  options.nearest = ctx.getString("nearest_mode", "round_prefer_floor");
  options.cubicA = ctx.getFloat("cubic_coeff_a", -0.75);
  options.extrapolation = ctx.isImaginary() ? 0 : ctx.getFloat("extrapolation_value", 0);
  options.excludeOutside = ctx.getInt("exclude_outside", 0);
  options.antialias = ctx.getInt("antialias", 0);
  auto given = [&](size_t i) -> Value { // an empty tensor stands for an absent one
    Value v = ctx.operand(i);
    return v && getConstantSize(product(ctx.b.getContext(), getSizes(v))) != 0 ? v : Value();
  };
  if (bool(given(2)) == bool(given(3)))
    return ctx.invalid("needs either scales or sizes");
  return resizeBy(ctx, options, given(2), given(3), given(1));
}

/// Resize-10 and Upsample: coordinates are position / scale, nearest is the one below.
LogicalResult upsample(NodeContext &ctx) {
  ResizeOptions options;
  options.mode = ctx.getString("mode", "nearest");
  if (options.mode == "bilinear") // Upsample-1
    options.mode = "linear";
  if (options.mode != "nearest" && options.mode != "linear")
    return ctx.invalid("mode is \"" + options.mode + "\"; it may be nearest or linear");
  options.coordinates = "asymmetric";
  options.nearest = "floor";
  PrimBuilder &b = ctx.b;
  Value scales = ctx.operand(1);
  if (ctx.opset() < 9) {
    SmallVector<double> list;
    if (ctx.hasAttr("height_scale"))
      list = {1, 1, ctx.getFloat("height_scale", 1), ctx.getFloat("width_scale", 1)};
    else
      list = ctx.getFloats("scales").value_or(SmallVector<double>());
    SmallVector<float> narrow(list.begin(), list.end());
    auto type = RankedTensorType::get({int64_t(narrow.size())}, b.getF32Type());
    scales = prim::ConstantOp::create(b, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef(narrow))));
  }
  if (!scales)
    return ctx.invalid("scales are missing");
  return resizeBy(ctx, options, scales, {}, {});
}

} // namespace

void tc::populateONNXResize(OpRegistrar &onOp) {
  onOp("Resize", 10, upsample, 2);
  onOp("Resize", 11, resize);
  onOp("Upsample", 1, upsample);
  onOp.takeComplex(ComplexUse::ByParts, {"Resize", "Upsample"});
}
