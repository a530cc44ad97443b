//===- ATenResize.cpp - resizing and sampling of ATen -------------------------------------------------------------===//
//
// Linear and cubic interpolation is ONNX's Resize (Resize.h). PyTorch's nearest element is found in its own way, whose
// rounding counts: by a product of floats, not by a quotient.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml), and
// aten/src/ATen/native/UpSample.h.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Resize.h"
#include "Sample.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

enum class Upsampling { Nearest, NearestExact, Linear, Cubic };

/// What an upsampling makes of a spatial dim.
struct Target {
  AffineExpr out;
  std::optional<double> scale; ///< given by the program
};

/// From output_size, and scale_factors or scales, scales_d, scales_h, scales_w.
FailureOr<SmallVector<Target>> readTargets(Call &c, SizesRef in) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = ctx.b;
  const size_t n = in.size();
  SmallVector<Target> targets(n);
  bool hasScales = false;
  if (ctx.hasAttr("scale_factors")) {
    std::optional<SmallVector<double>> factors = ctx.getFloats("scale_factors");
    if (!factors || factors->size() != n)
      return ctx.unsupported("with scale_factors that are not " + Twine(n) + " constants is not supported");
    hasScales = true;
    for (auto [target, factor] : llvm::zip(targets, *factors))
      target.scale = factor;
  } else {
    const StringRef names[] = {"scales_d", "scales_h", "scales_w"};
    for (size_t i = 0; i < n; ++i) {
      const StringRef name = n == 1 ? StringRef("scales") : names[3 - n + i];
      if (ctx.hasAttr(name) && c.number(name, 0) > 0)
        targets[i].scale = c.number(name, 0);
    }
  }
  if (ctx.hasAttr("output_size")) {
    FailureOr<Sizes> sizes = c.sizes("output_size");
    if (failed(sizes))
      return failure();
    if (sizes->size() != n)
      return ctx.invalid("output_size has " + Twine(sizes->size()) + " entries for " + Twine(n) + " dims");
    for (auto [target, size] : llvm::zip(targets, *sizes))
      target.out = size;
  } else if (hasScales) {
    for (auto [target, size] : llvm::zip(targets, in)) {
      if (!(*target.scale > 0 && std::isfinite(*target.scale)))
        return ctx.invalid("a scale factor is not positive");
      target.out = scaledSize(b, size, {*target.scale, b.scalar(b.getF64Type(), *target.scale)});
    }
  } else {
    return ctx.invalid("needs output_size or scale_factors");
  }
  for (const Target &target : targets)
    if (getConstantSize(target.out) == 0)
      return ctx.invalid("the result has no elements; sizes of it must be positive");
  return targets;
}

/// Sizes as f64; the program's numbers are rounded to f32 where PyTorch has them in floats.
Value sizeAs(PrimBuilder &b, AffineExpr size, Type type) { return b.convert(b.sizeValue(size), type); }

/// The element of the operand, i64, nearest to each one of the result.
Value nearestIndex(PrimBuilder &b, AffineExpr in, const Target &target, bool isExact) {
  const Sizes sizes{target.out};
  const Type f32 = b.getF32Type(), f64 = b.getF64Type();
  if (!isExact && target.out == simplifySize(in * 2))
    return b.binary<DivOp>(b.iota(b.getI64Type(), sizes, 0), 2);
  Value scale =
      target.scale ? b.scalar(f32, float(1 / *target.scale)) : b.div(sizeAs(b, in, f32), sizeAs(b, target.out, f32));
  if (!isExact && target.scale && !(getConstantSize(in) && getConstantSize(target.out))) {
    // A size that stays or doubles by rounding has the scale of the sizes, not the one that is given.
    auto orElse = [&](AffineExpr size, double own, Value otherwise) {
      Value isThat = b.compare(CompareKind::EQ, b.sizeValue(target.out), b.sizeValue(size));
      return b.select(isThat, b.scalar(f32, own), otherwise);
    };
    scale = orElse(in, 1, orElse(simplifySize(in * 2), 0.5, scale));
  }
  Value at;
  if (isExact) {
    Value middle = b.binary<AddOp>(b.iota(f64, sizes, 0), 0.5);
    at = b.convert(b.mul(middle, b.broadcastTo(b.convert(scale, f64), sizes)), f32);
  } else {
    at = b.mul(b.iota(f32, sizes, 0), b.broadcastTo(scale, sizes));
  }
  return emitClampedIndex(b, b.unary<FloorOp>(at), in);
}

LogicalResult upsample(NodeContext &ctx, size_t n, Upsampling kind, bool antialias) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> input = c.required(c.tensor("self") ? "self" : "input");
  if (failed(input))
    return failure();
  Value x = *input;
  const bool isNearest = kind == Upsampling::Nearest || kind == Upsampling::NearestExact;
  if (b.rankOf(x) != int64_t(n) + 2)
    return ctx.invalid("takes an input of rank " + Twine(n + 2) + ", but got " + describe(x));
  if (!isNearest && !b.isFloat(x))
    return ctx.unsupported("of " + describe(x) + " is not supported; convert it to floats");
  const Sizes sizes = getSizes(x);
  const SizesRef in = SizesRef(sizes).drop_front(2);
  FailureOr<SmallVector<Target>> targets = readTargets(c, in);
  if (failed(targets))
    return failure();
  const bool align = c.flag("align_corners");
  SmallVector<ResizedDim> dims;
  for (auto [i, target] : llvm::enumerate(*targets)) {
    const int64_t dim = 2 + int64_t(i);
    if (failed(ctx.require(CompareKind::LE, b.size(1), in[i], "an input of one element or more along each dim")))
      return failure();
    if (isNearest) {
      const bool isExact = kind == Upsampling::NearestExact;
      if (in[i] != target.out || (isExact && target.scale && *target.scale != 1))
        x = GatherOp::create(b, x, nearestIndex(b, in[i], target, isExact), dim);
      continue;
    }
    std::optional<int64_t> from = getConstantSize(in[i]), to = getConstantSize(target.out);
    const Type f64 = b.getF64Type();
    ResizedDim resized{dim, in[i], target.out, {}, {}, {}, std::nullopt};
    if (align && antialias) {
      if (!from || !to)
        return ctx.unsupported("with antialias, align_corners and sizes that only the run knows is not supported");
      resized.known = *to == 1 ? INFINITY : *from == 1 ? double(*to) : double(*to - 1) / double(*from - 1);
    } else if (target.scale && !align) {
      resized.known = target.scale;
    } else if (from && to) {
      resized.known = double(*to) / double(*from);
    }
    // Linear and antialiased interpolation to the same size is none, whatever the scale, which may then lie in [1, 2).
    const bool mayStay = kind == Upsampling::Linear || antialias;
    if (in[i] == target.out && (mayStay || resized.known.value_or(1) == 1))
      continue;
    resized.scale =
        resized.known ? b.scalar(f64, *resized.known) : b.div(sizeAs(b, target.out, f64), sizeAs(b, in[i], f64));
    if (mayStay && target.scale && !align && *target.scale > 1 && *target.scale < 2 && !(from && to)) {
      if (antialias)
        return ctx.unsupported(
            "with antialias and a scale in (1, 2) of sizes that only the run knows is not supported; "
            "give the size instead");
      Value isSame = b.compare(CompareKind::EQ, b.sizeValue(in[i]), b.sizeValue(target.out));
      resized.scale = b.select(isSame, b.scalar(f64, 1), resized.scale);
      resized.known = std::nullopt;
    }
    dims.push_back(resized);
  }
  if (isNearest)
    return ctx.result(x);
  ResizeOptions options;
  options.mode = kind == Upsampling::Linear ? "linear" : "cubic";
  // Antialiased ones take their middles from the scale of aligned corners.
  options.coordinates = align && !antialias ? "align_corners" : "half_pixel";
  options.antialias = options.excludeOutside = antialias;
  options.cubicA = antialias ? -0.5 : -0.75;
  return ctx.result(emitResize(b, x, options, dims));
}

/// An argument that is one of PyTorch's numbers for words.
FailureOr<std::string> word(Call &c, StringRef name, ArrayRef<StringRef> words) {
  const int64_t number = c.integer(name, 0);
  if (number < 0 || number >= int64_t(words.size()))
    return c.ctx.invalid(name + " is " + Twine(number) + "; it lies in [0, " + Twine(words.size()) + ")");
  return words[number].str();
}

LogicalResult gridSample(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input"), grid = c.floats("grid");
  FailureOr<std::string> mode = word(c, "interpolation_mode", {"linear", "nearest", "cubic"}),
                         padding = word(c, "padding_mode", {"zeros", "border", "reflection"});
  if (failed(x) || failed(grid) || failed(mode) || failed(padding))
    return failure();
  if (b.elementOf(*x) != b.elementOf(*grid))
    return ctx.invalid("input " + describe(*x) + " and grid " + describe(*grid) + " differ in element type");
  if (b.rankOf(*x) != 4 && b.rankOf(*x) != 5)
    return ctx.invalid("takes an input of rank 4 or 5, but got " + describe(*x));
  if (b.rankOf(*grid) != b.rankOf(*x))
    return ctx.invalid("takes a grid of as many dims as the input, but got " + describe(*grid));
  FailureOr<Value> y = emitGridSample(
      ctx, *x, *grid, {*mode, *padding, c.flag("align_corners"), /*holdsNeighboursAlone=*/true, /*isAsPyTorch=*/true});
  return failed(y) ? failure() : ctx.result(*y);
}

LogicalResult affineGrid(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> theta = c.floats("theta");
  FailureOr<Sizes> size = c.sizes("size");
  if (failed(theta) || failed(size))
    return failure();
  const bool align = c.flag("align_corners");
  NamedAttribute attribute = b.getNamedAttr("align_corners", b.getI64IntegerAttr(align));
  for (size_t i = 2; align && i < size->size(); ++i) // ai.onnx's operator has -1 there
    if (getConstantSize((*size)[i]).value_or(1) == 1)
      return ctx.unsupported("with align_corners and a size that is 1 or only known to the run is not supported");
  FailureOr<SmallVector<Value>> y = ctx.emitOperator("AffineGrid", 20, {*theta, b.sizesValue(*size)}, attribute);
  return failed(y) ? failure() : ctx.result(y->front());
}

} // namespace

void tc::populateATenResize(OpRegistrar &onOp) {
  auto on = [&](const std::string &type, Upsampling kind, size_t n, bool antialias = false) {
    for (const char *overload : {".default", ".vec"})
      onOp(type + overload, /*sinceVersion=*/1, [=](NodeContext &ctx) { return upsample(ctx, n, kind, antialias); }, 1);
  };
  for (size_t n : {1, 2, 3}) {
    const std::string dims = std::to_string(n) + "d";
    on("upsample_nearest" + dims, Upsampling::Nearest, n);
    on("_upsample_nearest_exact" + dims, Upsampling::NearestExact, n);
  }
  on("upsample_linear1d", Upsampling::Linear, 1);
  on("upsample_bilinear2d", Upsampling::Linear, 2);
  on("upsample_trilinear3d", Upsampling::Linear, 3);
  on("upsample_bicubic2d", Upsampling::Cubic, 2);
  on("_upsample_bilinear2d_aa", Upsampling::Linear, 2, /*antialias=*/true);
  on("_upsample_bicubic2d_aa", Upsampling::Cubic, 2, /*antialias=*/true);
  for (StringRef name : {"grid_sampler.default", "grid_sampler_2d.default", "grid_sampler_3d.default"})
    onOp(name, /*sinceVersion=*/1, gridSample, 2);
  onOp("affine_grid_generator.default", /*sinceVersion=*/1, affineGrid, 1);
}
