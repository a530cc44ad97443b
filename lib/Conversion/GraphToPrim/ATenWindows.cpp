//===- ATenWindows.cpp - convolutions and pools of ATen -----------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Windows.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A list argument with an entry for each of `n` dims: one entry stands for all, none for `otherwise`.
FailureOr<SmallVector<int64_t>> perDim(Call &c, StringRef name, size_t n, int64_t otherwise, int64_t least) {
  SmallVector<int64_t> all = c.integers(name).value_or(SmallVector<int64_t>{});
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

/// Dilations and pads of `n` spatial dims, with `strides`, whose default is the operator's.
FailureOr<Window> readWindow(Call &c, size_t n, const FailureOr<SmallVector<int64_t>> &strides) {
  FailureOr<SmallVector<int64_t>> dilations = perDim(c, "dilation", n, 1, 1), pads = perDim(c, "padding", n, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  Window window;
  window.strides = *strides;
  window.dilations = *dilations;
  window.padLow = window.padHigh = *pads;
  return window;
}

/// `x` without or with a batch: made of rank n + 2. What is made of it by `emit` has a batch where `x` has.
LogicalResult withBatch(NodeContext &ctx, Value x, size_t n, llvm::function_ref<FailureOr<Value>(Value)> emit) {
  const int64_t rank = ctx.b.rankOf(x);
  if (rank != int64_t(n) + 2 && rank != int64_t(n) + 1)
    return ctx.invalid("takes an input of rank " + Twine(n + 1) + " or " + Twine(n + 2) + ", but got " + describe(x));
  const bool hasBatch = rank == int64_t(n) + 2;
  FailureOr<Value> y = emit(hasBatch ? x : ctx.b.unsqueeze(x, 0));
  if (failed(y))
    return failure();
  return ctx.result(hasBatch ? *y : ctx.b.take(*y, 0, 0));
}

/// conv1d, conv2d, conv3d; with `isNamed`, padding is "same" or "valid".
NodeHandler convolution(size_t n, bool isNamed) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> x = c.floats("input"), w = c.floats("weight");
    if (failed(x) || failed(w))
      return failure();
    Value bias = c.tensor("bias");
    if (ctx.b.rankOf(*w) != int64_t(n) + 2)
      return ctx.invalid("takes a weight of rank " + Twine(n + 2) + ", but got " + describe(*w));
    for (Value other : {*w, bias})
      if (other && ctx.b.elementOf(other) != ctx.b.elementOf(*x))
        return ctx.invalid("operands " + describe(*x) + " and " + describe(other) + " differ in element type");
    if (bias && ctx.b.rankOf(bias) != 1)
      return ctx.invalid("takes a bias of rank 1, but got " + describe(bias));
    const int64_t groups = c.integer("groups", 1);
    if (groups < 1)
      return ctx.invalid("groups is " + Twine(groups) + "; it must be positive");
    FailureOr<SmallVector<int64_t>> strides = perDim(c, "stride", n, 1, 1);
    const std::string padding = isNamed ? ctx.getString("padding", "valid") : "";
    if (isNamed && padding != "valid" && padding != "same")
      return ctx.invalid("padding is \"" + padding + "\"; it may be \"valid\" or \"same\"");
    FailureOr<Window> window = readWindow(c, n, strides);
    if (failed(window))
      return failure();
    const Sizes filter = getSizes(*w), kernel(filter.begin() + 2, filter.end());
    for (size_t i = 0; i < n && padding == "same"; ++i) {
      std::optional<int64_t> size = getConstantSize(kernel[i]);
      if (!size)
        return ctx.unsupported("with padding \"same\" and a kernel of unknown size is not supported");
      const int64_t total = window->dilations[i] * (*size - 1);
      window->padLow[i] = total / 2;
      window->padHigh[i] = total - total / 2;
    }
    return withBatch(ctx, *x, n, [&](Value batch) { return emitConv(ctx, batch, *w, bias, kernel, *window, groups); });
  };
}

NodeHandler maxPool(size_t n) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> x = c.required("self");
    FailureOr<SmallVector<int64_t>> kernel = perDim(c, "kernel_size", n, 1, 1);
    if (failed(x) || failed(kernel))
      return failure();
    if (!ctx.b.isFloat(*x) && (!isa<IntegerType>(ctx.b.elementOf(*x)) || ctx.b.elementOf(*x).isInteger(1)))
      return ctx.unsupported("of " + describe(*x) + " is not supported");
    // Without strides windows lie side by side.
    const bool isSideBySide = c.integers("stride").value_or(SmallVector<int64_t>{}).empty();
    FailureOr<SmallVector<int64_t>> strides = isSideBySide ? kernel : perDim(c, "stride", n, 1, 1);
    FailureOr<Window> window = readWindow(c, n, strides);
    if (failed(window))
      return failure();
    for (size_t i = 0; i < n; ++i)
      if (window->padLow[i] * 2 > (*kernel)[i])
        return ctx.invalid("padding " + Twine(window->padLow[i]) + " is more than half of the kernel, " +
                           Twine((*kernel)[i]));
    return withBatch(ctx, *x, n, [&](Value batch) -> FailureOr<Value> {
      FailureOr<Pool> pool = makePool(ctx, batch, *kernel, *window, c.flag("ceil_mode"));
      return failed(pool) ? FailureOr<Value>(failure()) : emitMaxPool(ctx.b, batch, *pool);
    });
  };
}

} // namespace

void tc::populateATenWindows(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  for (size_t n : {1, 2, 3}) {
    const std::string dims = std::to_string(n) + "d";
    on("conv" + dims + ".default", convolution(n, /*isNamed=*/false), 2);
    on("conv" + dims + ".padding", convolution(n, /*isNamed=*/true), 2);
    on("max_pool" + dims + ".default", maxPool(n));
  }
}
