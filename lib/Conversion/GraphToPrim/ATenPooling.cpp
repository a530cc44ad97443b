//===- ATenPooling.cpp - pools of ATen ----------------------------------------------------------------------------===//
//
// Pools whose windows are alike are those of ai.onnx; what PyTorch has besides, divisors and adaptive windows, is
// written here.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml), and
// aten/src/ATen/native/{Pool,AdaptivePooling}.h.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenWindows.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

using Values = SmallVector<Value>;

/// What a pool slides along `n` dims of its operand.
struct Slide {
  Value x;
  SmallVector<int64_t> kernel;
  Window window;
};

FailureOr<Slide> readSlide(Call &c, size_t n) {
  NodeContext &ctx = c.ctx;
  FailureOr<Value> x = c.required("self");
  FailureOr<SmallVector<int64_t>> kernel = perDim(c, "kernel_size", n, 1, 1);
  if (failed(x) || failed(kernel))
    return failure();
  if (!ctx.b.isFloat(*x) && (!isa<IntegerType>(ctx.b.elementOf(*x)) || ctx.b.elementOf(*x).isInteger(1)))
    return ctx.unsupported("of " + describe(*x) + " is not supported; convert it to numbers");
  // Without strides windows lie side by side.
  auto list = c.integers("stride");
  const bool isSideBySide = list ? list->empty() : !ctx.hasAttr("stride");
  FailureOr<SmallVector<int64_t>> strides = isSideBySide ? kernel : perDim(c, "stride", n, 1, 1);
  FailureOr<Window> window = readWindow(c, n, strides);
  if (failed(window))
    return failure();
  for (size_t i = 0; i < n; ++i)
    if (window->padLow[i] * 2 > (*kernel)[i])
      return ctx.invalid("padding " + Twine(window->padLow[i]) + " is more than half of the kernel, " +
                         Twine((*kernel)[i]));
  return Slide{*x, *kernel, *window};
}

/// A number for each element of `like`.
Value wideSize(PrimBuilder &b, AffineExpr size, Value like) { return b.broadcastTo(b.sizeValue(size), getSizes(like)); }

/// Positions in a whole tensor as those in its planes, the dims behind the first two.
Value withinPlane(PrimBuilder &b, Value positions, Value of) {
  const Sizes sizes = getSizes(of);
  return b.binary<RemOp>(positions, wideSize(b, product(b.getContext(), SizesRef(sizes).drop_front(2)), positions));
}

/// max_pool; with `hasIndices`, the second result is where in its plane each maximum is.
NodeHandler maxPool(size_t n, bool hasIndices) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Slide> slide = readSlide(c, n);
    if (failed(slide))
      return failure();
    const bool needsIndices = hasIndices && ctx.isResultUsed(1);
    return withBatch(ctx, slide->x, n, [&](Value batch) -> FailureOr<Values> {
      if (!needsIndices) {
        FailureOr<Pool> pool = makePool(ctx, batch, slide->kernel, slide->window, c.flag("ceil_mode"));
        return failed(pool) ? FailureOr<Values>(failure()) : Values{emitMaxPool(ctx.b, batch, *pool)};
      }
      SmallVector<NamedAttribute> window = windowAttributes(ctx.b, slide->window, slide->kernel);
      window.push_back(ctx.b.getNamedAttr("ceil_mode", ctx.b.getI64IntegerAttr(c.flag("ceil_mode"))));
      FailureOr<Values> results = ctx.emitOperator("MaxPool", 12, {batch}, window, 2);
      if (succeeded(results))
        (*results)[1] = withinPlane(ctx.b, (*results)[1], batch);
      return results;
    });
  };
}

NodeHandler averagePool(size_t n) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Slide> slide = readSlide(c, n);
    if (failed(slide))
      return failure();
    const int64_t divisor = c.integer("divisor_override", 1);
    if (divisor == 0)
      return ctx.invalid("divisor_override is 0");
    return withBatch(ctx, slide->x, n, [&](Value batch) -> FailureOr<Values> {
      if (!ctx.hasAttr("divisor_override")) {
        SmallVector<NamedAttribute> attributes = windowAttributes(b, slide->window, slide->kernel);
        attributes.push_back(b.getNamedAttr("ceil_mode", b.getI64IntegerAttr(c.flag("ceil_mode"))));
        attributes.push_back(
            b.getNamedAttr("count_include_pad", b.getI64IntegerAttr(c.flag("count_include_pad", true))));
        return ctx.emitOperator("AveragePool", 19, {batch}, attributes);
      }
      FailureOr<Pool> pool = makePool(ctx, batch, slide->kernel, slide->window, c.flag("ceil_mode"));
      if (failed(pool))
        return failure();
      const int64_t rank = b.rankOf(batch);
      const Type type = b.elementOf(batch);
      Value last = b.convert(b.transpose(batch, toChannelsLast(rank)), b.accumulatorOf(type));
      Value sum = windowReduce(b, ReduceKind::Sum, last, *pool, slide->window.padLow);
      return Values{b.transpose(b.convert(b.binary<DivOp>(sum, double(divisor)), type), toChannelsFirst(rank))};
    });
  };
}

//===--- adaptive -------------------------------------------------------------------------------------------------===//

/// The windows of an adaptive pool along a dim: window i has elements i * in / out up to (i + 1) * in / out, the latter
/// rounded up.
struct Adaptive {
  AffineExpr in;
  int64_t out = 0;

  bool isEven() const {
    std::optional<int64_t> size = getConstantSize(in);
    return size && *size % out == 0;
  }
  /// Elements that the longest window has, or more.
  AffineExpr longest(PrimBuilder &b) const {
    std::optional<int64_t> size = getConstantSize(in);
    if (!size)
      return simplifySize(in.ceilDiv(out) + 1);
    int64_t most = 0;
    for (int64_t i = 0; i < out; ++i)
      most = std::max(most, ((i + 1) * *size + out - 1) / out - i * *size / out);
    return b.size(most);
  }
  /// The first element of each window, and how many it has, for window numbers `i` (i64).
  std::pair<Value, Value> startAndLength(PrimBuilder &b, Value i) const {
    Value size = wideSize(b, in, i), count = b.splatLike(i, double(out));
    Value start = b.div(b.mul(i, size), count);
    Value end = b.mul(b.binary<AddOp>(i, 1), size);
    end = b.div(b.binary<AddOp>(end, double(out - 1)), count);
    return {start, b.sub(end, start)};
  }
};

/// Reads output_size; a dim whose size is left open keeps it.
FailureOr<SmallVector<Adaptive>> readAdaptive(Call &c, Value x, size_t n) {
  NodeContext &ctx = c.ctx;
  const Sizes in = getSizes(x);
  FailureOr<Sizes> wanted = failure();
  if (auto one = dyn_cast_or_null<IntegerAttr>(ctx.attr("output_size")))
    wanted = Sizes{ctx.b.size(one.getInt())};
  else
    wanted = c.sizes("output_size");
  if (failed(wanted))
    return failure();
  if (wanted->size() == 1)
    wanted->resize(n, wanted->front());
  if (wanted->size() != n)
    return ctx.invalid("output_size has " + Twine(wanted->size()) + " entries for " + Twine(n) + " dims");
  SmallVector<Adaptive> all;
  for (auto [i, out] : llvm::enumerate(*wanted)) {
    Adaptive dim{in[in.size() - n + i], 0};
    if (out == dim.in) { // nothing to do
      all.push_back(dim);
      continue;
    }
    std::optional<int64_t> known = getConstantSize(out);
    if (!known)
      return ctx.unsupported("to a size that only the run knows is not supported; export the model with a static "
                             "output_size");
    dim.out = *known;
    if (dim.out < 1)
      return ctx.unsupported("to a size of 0 is not supported");
    if (failed(ctx.require(CompareKind::LE, ctx.b.size(1), dim.in, "an input of one element or more along each dim")))
      return failure();
    all.push_back(dim);
  }
  return all;
}

/// Along `dim` of x, the elements of each window as a dim behind it: [.., out, longest, ..]. Those beyond a window's
/// end stand for its last one, and `isInside` [out, longest] is false for them. `lengths` [out].
Value gatherWindows(PrimBuilder &b, Value x, int64_t dim, const Adaptive &window, Value &isInside, Value &lengths) {
  const Type i64 = b.getI64Type();
  const Sizes grid{b.size(window.out), window.longest(b)};
  auto [start, length] = window.startAndLength(b, b.iota(i64, grid, 0));
  Value k = b.iota(i64, grid, 1);
  isInside = b.compare(CompareKind::LT, k, length);
  lengths = window.startAndLength(b, b.iota(i64, {grid[0]}, 0)).second;
  Value at = b.add(start, b.min(k, b.binary<SubOp>(length, 1)));
  return GatherOp::create(b, x, at, dim);
}

NodeHandler adaptiveAverage(size_t n) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> self = c.floats("self");
    if (failed(self))
      return failure();
    const Type type = b.elementOf(*self);
    return withBatch(ctx, *self, n, [&](Value x) -> FailureOr<Values> {
      FailureOr<SmallVector<Adaptive>> windows = readAdaptive(c, x, n);
      if (failed(windows))
        return failure();
      const int64_t first = b.rankOf(x) - int64_t(n);
      SmallVector<int64_t> whole;
      for (auto [i, window] : llvm::enumerate(*windows))
        if (window.out == 1)
          whole.push_back(first + int64_t(i));
      if (whole.size() == n)
        return Values{b.mean(x, whole, /*keepDims=*/true)};
      if (llvm::all_of(*windows, [](const Adaptive &w) { return w.out == 0 || w.isEven(); })) {
        // Windows that are alike: a pool.
        SmallVector<int64_t> kernel;
        for (const Adaptive &w : *windows)
          kernel.push_back(w.out == 0 ? 1 : *getConstantSize(w.in) / w.out);
        const SmallVector<int64_t> zeros(n, 0), ones(n, 1);
        const Window window{kernel, ones, zeros, zeros, {}, {}};
        return ctx.emitOperator("AveragePool", 19, {x}, windowAttributes(b, window, kernel));
      }
      // The mean over a box is the mean of means along its dims, as all lines along a dim are equally long.
      Value y = b.convert(x, b.accumulatorOf(type));
      for (auto [i, window] : llvm::enumerate(*windows)) {
        const int64_t dim = first + int64_t(i);
        if (window.out == 0)
          continue;
        if (window.out == 1) {
          y = b.mean(y, {dim}, /*keepDims=*/true);
          continue;
        }
        Value isInside, lengths;
        Value elements = gatherWindows(b, y, dim, window, isInside, lengths);
        isInside = b.broadcastInDims(isInside, getSizes(elements), {dim, dim + 1});
        elements = b.select(isInside, elements, b.splatLike(elements, 0));
        Value sum = b.reduce(ReduceKind::Sum, elements, {dim + 1});
        y = b.div(sum, b.broadcastInDims(b.convert(lengths, b.elementOf(sum)), getSizes(sum), {dim}));
      }
      return Values{b.convert(y, type)};
    });
  };
}

NodeHandler adaptiveMax(size_t n) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> self = c.floats("self");
    if (failed(self))
      return failure();
    return withBatch(ctx, *self, n, [&](Value x) -> FailureOr<Values> {
      FailureOr<SmallVector<Adaptive>> windows = readAdaptive(c, x, n);
      if (failed(windows))
        return failure();
      const Type i64 = b.getI64Type();
      const Sizes in = getSizes(x);
      Sizes out(in.begin(), in.begin() + 2);
      // Elements of all windows: [N, C, O0, K0, O1, K1, ..]. Those beyond a window's end repeat its last one, so that
      // the first largest one is where it was.
      SmallVector<int64_t> order{0, 1};
      Value elements = x;
      Sizes longest;
      for (size_t i = 0; i < n; ++i) {
        Adaptive &window = (*windows)[i];
        if (window.out == 0) { // windows of one element
          std::optional<int64_t> known = getConstantSize(window.in);
          if (!known)
            return ctx.unsupported("that keeps a size which only the run knows is not supported; export the model with "
                                   "static sizes");
          window.out = *known;
        }
        Value isInside, lengths;
        elements = gatherWindows(b, elements, 2 + 2 * int64_t(i), window, isInside, lengths);
        order.push_back(2 + 2 * int64_t(i));
        out.push_back(b.size(window.out));
        longest.push_back(window.longest(b));
      }
      for (size_t i = 0; i < n; ++i)
        order.push_back(3 + 2 * int64_t(i));
      Sizes flat = out;
      flat.push_back(product(b.getContext(), longest));
      elements = b.reshape(b.transpose(elements, order), flat);
      const int64_t last = int64_t(n) + 2;
      Values results{b.reduce(ReduceKind::Max, elements, {last}), Value()};
      if (!ctx.isResultUsed(1))
        return results;
      Value found = ArgReduceOp::create(b, makeType(i64, out), ReduceKind::Max, elements, last, /*lastIndex=*/false);
      Value place = b.splat(i64, out, 0);
      for (size_t i = 0; i < n; ++i) {
        Value behind = wideSize(b, product(b.getContext(), SizesRef(longest).drop_front(i + 1)), found);
        Value k = b.binary<RemOp>(b.div(found, behind), wideSize(b, longest[i], found));
        auto [start, length] = (*windows)[i].startAndLength(b, b.iota(i64, out, 2 + int64_t(i)));
        Value at = b.add(start, b.min(k, b.binary<SubOp>(length, 1)));
        place = b.add(b.mul(place, wideSize(b, in[2 + i], place)), at);
      }
      results[1] = place;
      return results;
    });
  };
}

/// Elements go to the places of their planes that `indices` names, the rest is 0.
NodeHandler maxUnpool(size_t n) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> x = c.required("self"), at = c.required("indices");
    FailureOr<Sizes> wanted = c.sizes("output_size");
    if (failed(x) || failed(at) || failed(wanted))
      return failure();
    const Sizes in = getSizes(*x);
    if (wanted->size() != n || (in.size() != n + 1 && in.size() != n + 2))
      return ctx.invalid("takes an input of rank " + Twine(n + 1) + " or " + Twine(n + 2) + " and " + Twine(n) +
                         " sizes, but got " + describe(*x) + " and " + Twine(wanted->size()) + " sizes");
    FailureOr<Value> indices = ctx.castSizes(*at, in);
    if (failed(indices))
      return failure();
    MLIRContext *context = b.getContext();
    const Type type = b.elementOf(*x);
    const SizesRef outer = SizesRef(in).drop_back(n);
    const Sizes rows{product(context, outer), product(context, SizesRef(in).take_back(n))};
    const Sizes all{rows[0], product(context, *wanted)};
    Value places = b.convert(b.reshape(*indices, rows), b.getI64Type());
    Value result = ScatterElementsOp::create(b, makeType(type, all), b.splat(type, all, 0), places, b.reshape(*x, rows),
                                             1, ReduceKindAttr());
    Sizes out(outer);
    llvm::append_range(out, *wanted);
    return ctx.result(b.reshape(result, out));
  };
}

/// Where the windows of a fractional pool begin along a dim, [P, O] i64, for samples [P] in [0, 1): the last one ends
/// at the end, those before begin at whole parts of a sequence of equal steps, which the sample shifts.
Value fractionalStarts(PrimBuilder &b, Value sample, AffineExpr in, int64_t kernel, int64_t out) {
  const Type i64 = b.getI64Type(), type = b.elementOf(sample);
  const Sizes sizes{getSizes(sample)[0], b.size(out)};
  Value room = b.sizeValue(simplifySize(in - kernel)), end = b.broadcastTo(room, sizes);
  if (out == 1)
    return end;
  Value step = b.broadcastTo(b.binary<DivOp>(b.convert(room, type), double(out - 1)), sizes);
  Value shift = b.broadcastInDims(sample, sizes, {0}), i = b.iota(type, sizes, 1);
  auto whole = [&](Value v) { return b.convert(b.mul(v, step), i64); };
  Value start = b.sub(whole(b.add(i, shift)), whole(shift));
  return b.select(b.compare(CompareKind::LT, b.iota(i64, sizes, 1), double(out - 1)), start, end);
}

/// The samples name the last dim first in two dims, the first one first in three.
NodeHandler fractionalMax(size_t n) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> self = c.floats("self"), samples = c.floats("random_samples");
    FailureOr<SmallVector<int64_t>> kernel = perDim(c, "kernel_size", n, 1, 1), out = perDim(c, "output_size", n, 1, 1);
    if (failed(self) || failed(samples) || failed(kernel) || failed(out))
      return failure();
    if (b.rankOf(*samples) != 3 || b.elementOf(*samples) != b.elementOf(*self))
      return ctx.invalid("takes random_samples [N, C, " + Twine(n) + "] of the input's type, but got " +
                         describe(*samples));
    return withBatch(ctx, *self, n, [&](Value x) -> FailureOr<Values> {
      const Type i64 = b.getI64Type(), type = b.elementOf(x);
      const Sizes in = getSizes(x);
      const AffineExpr planes = simplifySize(in[0] * in[1]);
      FailureOr<Value> fitting = ctx.castSizes(*samples, {in[0], in[1], b.size(int64_t(n))});
      if (failed(fitting))
        return failure();
      Value each = b.reshape(*fitting, {planes, b.size(int64_t(n))});
      // [P, O0, .., K0, ..]: the elements of all windows.
      Sizes source{planes}, grid{planes}, result{in[0], in[1]};
      int64_t volume = 1;
      for (size_t i = 0; i < n; ++i) {
        source.push_back(in[i + 2]);
        grid.push_back(b.size((*out)[i]));
        result.push_back(b.size((*out)[i]));
        volume *= (*kernel)[i];
        if (failed(ctx.require(CompareKind::LE, b.size((*out)[i] + (*kernel)[i] - 1), in[i + 2],
                               "an input that holds the windows in dim " + Twine(i + 2))))
          return failure();
      }
      const Sizes flat = [&] {
        Sizes sizes(grid);
        sizes.push_back(b.size(volume));
        return sizes;
      }();
      for (size_t i = 0; i < n; ++i)
        grid.push_back(b.size((*kernel)[i]));
      SmallVector<Value> places;
      Value position; // in the plane
      for (size_t i = 0; i < n; ++i) {
        Value sample = b.take(each, 1, n == 2 ? 1 - int64_t(i) : int64_t(i));
        Value start = fractionalStarts(b, sample, in[i + 2], (*kernel)[i], (*out)[i]);
        Value at = b.add(b.broadcastInDims(start, grid, {0, int64_t(i) + 1}), b.iota(i64, grid, int64_t(n + i) + 1));
        position = position ? b.add(b.mul(position, wideSize(b, in[i + 2], position)), at) : at;
        places.push_back(b.unsqueeze(at, int64_t(grid.size())));
      }
      Value elements = GatherNDOp::create(b, makeType(type, grid), b.reshape(x, source),
                                          b.concat(places, int64_t(grid.size())), /*batchDims=*/1);
      elements = b.reshape(elements, flat);
      const int64_t last = int64_t(n) + 1;
      Values results{b.reshape(b.reduce(ReduceKind::Max, elements, {last}), result), Value()};
      if (ctx.isResultUsed(1)) {
        const Sizes windows(flat.begin(), flat.end() - 1);
        Value found =
            ArgReduceOp::create(b, makeType(i64, windows), ReduceKind::Max, elements, last, /*lastIndex=*/false);
        Sizes one(windows);
        one.push_back(b.size(1));
        results[1] = b.reshape(
            GatherElementsOp::create(b, makeType(i64, one), b.reshape(position, flat), b.unsqueeze(found, last), last),
            result);
      }
      return results;
    });
  };
}

} // namespace

void tc::populateATenPooling(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  for (size_t n : {1, 2, 3}) {
    const std::string dims = std::to_string(n) + "d";
    on("max_pool" + dims + ".default", maxPool(n, /*hasIndices=*/false));
    on("max_pool" + dims + "_with_indices.default", maxPool(n, /*hasIndices=*/true));
    on("avg_pool" + dims + ".default", averagePool(n));
    on("adaptive_avg_pool" + dims + ".default", adaptiveAverage(n));
    on("adaptive_max_pool" + dims + ".default", adaptiveMax(n));
    if (n > 1) {
      on("_adaptive_avg_pool" + dims + ".default", adaptiveAverage(n));
      on("max_unpool" + dims + ".default", maxUnpool(n), 2);
    }
  }
  for (size_t n : {2, 3})
    on("fractional_max_pool" + std::to_string(n) + "d.default", fractionalMax(n), 2);
}
