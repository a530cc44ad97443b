//===- ATenWindows.cpp - convolutions of ATen, and what pools share with them -------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenWindows.h"

#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

FailureOr<SmallVector<int64_t>> tc::perDim(Call &c, StringRef name, size_t n, int64_t otherwise, int64_t least) {
  SmallVector<int64_t> all = c.integers(name).value_or(SmallVector<int64_t>{});
  if (all.empty() && c.ctx.hasAttr(name)) {
    if (auto one = dyn_cast<IntegerAttr>(c.ctx.attr(name)))
      all.push_back(one.getInt());
    else if (auto list = dyn_cast<ArrayAttr>(c.ctx.attr(name)); !list || !list.empty())
      if (auto dense = dyn_cast<DenseI64ArrayAttr>(c.ctx.attr(name)); !dense || !dense.empty())
        return c.ctx.unsupported("with a " + name +
                                 " that only the run knows is not supported; export the model with "
                                 "static sizes where it computes it");
  }
  if (all.empty())
    all.push_back(otherwise);
  if (all.size() == 1)
    all.resize(n, all[0]);
  if (all.size() != n)
    return c.ctx.invalid("argument \"" + name + "\" has " + Twine(all.size()) + " entries for " + Twine(n) + " dims");
  for (int64_t value : all)
    if (value < least || value >= int64_t(1) << 31)
      return c.ctx.invalid("argument \"" + name + "\" holds " + Twine(value) + "; it must be " + Twine(least) +
                           " or more, and below 2^31");
  return all;
}

FailureOr<Window> tc::readWindow(Call &c, size_t n, const FailureOr<SmallVector<int64_t>> &strides) {
  FailureOr<SmallVector<int64_t>> dilations = perDim(c, "dilation", n, 1, 1), pads = perDim(c, "padding", n, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  Window window;
  window.strides = *strides;
  window.dilations = *dilations;
  window.padLow = window.padHigh = *pads;
  return window;
}

LogicalResult tc::withBatch(NodeContext &ctx, Value x, size_t n,
                            llvm::function_ref<FailureOr<SmallVector<Value>>(Value)> emit) {
  const int64_t rank = ctx.b.rankOf(x);
  if (rank != int64_t(n) + 2 && rank != int64_t(n) + 1)
    return ctx.invalid("takes an input of rank " + Twine(n + 1) + " or " + Twine(n + 2) + ", but got " + describe(x));
  const bool hasBatch = rank == int64_t(n) + 2;
  FailureOr<SmallVector<Value>> results = emit(hasBatch ? x : ctx.b.unsqueeze(x, 0));
  if (failed(results))
    return failure();
  for (auto [i, result] : llvm::enumerate(*results))
    (void)ctx.set(i, hasBatch || !result ? result : ctx.b.take(result, 0, 0));
  return success();
}

SmallVector<NamedAttribute> tc::windowAttributes(PrimBuilder &b, const Window &window, ArrayRef<int64_t> kernel) {
  SmallVector<int64_t> pads(window.padLow);
  llvm::append_range(pads, window.padHigh);
  SmallVector<NamedAttribute> attributes;
  auto set = [&](StringRef name, ArrayRef<int64_t> values) {
    attributes.push_back(b.getNamedAttr(name, b.getDenseI64ArrayAttr(values)));
  };
  set("strides", window.strides);
  set("dilations", window.dilations);
  set("pads", pads);
  if (!kernel.empty())
    set("kernel_shape", kernel);
  return attributes;
}

namespace {

FailureOr<SmallVector<Value>> asList(FailureOr<Value> value) {
  if (failed(value))
    return failure();
  return SmallVector<Value>{*value};
}

/// conv1d, conv2d, conv3d; with `isNamed`, padding is "same" or "valid".
LogicalResult convolve(NodeContext &ctx, size_t n, bool isNamed, bool isTransposed) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.required("input"), w = c.required("weight");
  if (failed(x) || failed(w))
    return failure();
  Value bias = c.tensor("bias");
  if (!b.isFloat(*x) && (!isa<IntegerType>(b.elementOf(*x)) || b.elementOf(*x).isInteger(1)))
    return ctx.unsupported("of " + describe(*x) + " is not supported; convert it to numbers");
  if (b.rankOf(*w) != int64_t(n) + 2)
    return ctx.invalid("takes a weight of rank " + Twine(n + 2) + ", but got " + describe(*w));
  for (Value other : {*w, bias})
    if (other && b.elementOf(other) != b.elementOf(*x))
      return ctx.invalid("operands " + describe(*x) + " and " + describe(other) + " differ in element type");
  if (bias && b.rankOf(bias) != 1)
    return ctx.invalid("takes a bias of rank 1, but got " + describe(bias));
  const int64_t groups = c.integer("groups", 1);
  if (groups < 1)
    return ctx.invalid("groups is " + Twine(groups) + "; it must be positive");
  FailureOr<SmallVector<int64_t>> strides = perDim(c, "stride", n, 1, 1);
  const std::string padding = isNamed ? ctx.getString("padding", "valid") : "";
  if (isNamed && padding != "valid" && padding != "same")
    return ctx.invalid("padding is \"" + padding + "\"; it may be \"valid\" or \"same\"");
  FailureOr<Window> window = failure();
  if (isNamed) {
    FailureOr<SmallVector<int64_t>> dilations = perDim(c, "dilation", n, 1, 1);
    if (succeeded(strides) && succeeded(dilations)) {
      const SmallVector<int64_t> zeros(n, 0);
      window = Window{*strides, *dilations, zeros, zeros, {}, {}};
    }
  } else {
    window = readWindow(c, n, strides);
  }
  if (failed(window))
    return failure();
  if (isTransposed) {
    FailureOr<SmallVector<int64_t>> extra = perDim(c, "output_padding", n, 0, 0);
    if (failed(extra))
      return failure();
    for (size_t i = 0; i < n; ++i)
      if ((*extra)[i] >= std::max(window->strides[i], window->dilations[i]))
        return ctx.invalid("output_padding " + Twine((*extra)[i]) + " is not smaller than stride or dilation");
    SmallVector<NamedAttribute> attributes = windowAttributes(b, *window);
    attributes.push_back(b.getNamedAttr("output_padding", b.getDenseI64ArrayAttr(*extra)));
    attributes.push_back(b.getNamedAttr("group", b.getI64IntegerAttr(groups)));
    return withBatch(ctx, *x, n,
                     [&](Value batch) { return ctx.emitOperator("ConvTranspose", 11, {batch, *w, bias}, attributes); });
  }
  const Sizes filter = getSizes(*w), kernel(filter.begin() + 2, filter.end());
  for (size_t i = 0; i < n && padding == "same"; ++i) {
    std::optional<int64_t> size = getConstantSize(kernel[i]);
    if (!size)
      return ctx.unsupported("with padding \"same\" and a kernel of unknown size is not supported");
    const int64_t total = window->dilations[i] * (*size - 1);
    window->padLow[i] = total / 2;
    window->padHigh[i] = total - total / 2;
  }
  return withBatch(ctx, *x, n,
                   [&](Value batch) { return asList(emitConv(ctx, batch, *w, bias, kernel, *window, groups)); });
}

/// The operators that tell by an argument what they do, for any number of dims.
LogicalResult anyConvolution(NodeContext &ctx, bool isNamed) {
  Call c(ctx);
  Value w = c.tensor("weight");
  const int64_t rank = w ? ctx.b.rankOf(w) : 0;
  if (rank < 3 || rank > 5)
    return ctx.invalid("takes a weight of rank 3 to 5" + (w ? ", but got " + describe(w) : std::string()));
  return convolve(ctx, size_t(rank - 2), isNamed, !isNamed && c.flag("transposed"));
}

} // namespace

void tc::populateATenWindows(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 2) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  for (size_t n : {1, 2, 3}) {
    const std::string dims = std::to_string(n) + "d";
    on("conv" + dims + ".default", [n](NodeContext &ctx) { return convolve(ctx, n, false, false); });
    on("conv" + dims + ".padding", [n](NodeContext &ctx) { return convolve(ctx, n, /*isNamed=*/true, false); });
    on("conv_transpose" + dims + (n == 1 ? ".default" : ".input"),
       [n](NodeContext &ctx) { return convolve(ctx, n, false, /*isTransposed=*/true); });
  }
  for (StringRef name : {"convolution.default", "_convolution.default"})
    on(name, [](NodeContext &ctx) { return anyConvolution(ctx, /*isNamed=*/false); });
  on("_convolution_mode.default", [](NodeContext &ctx) { return anyConvolution(ctx, /*isNamed=*/true); });
}
