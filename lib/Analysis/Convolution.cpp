//===- Convolution.cpp - a convolution in one form for all numbers of spatial dims --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/Convolution.h"

#include "tc/Support/Saturate.h"

using namespace mlir;
using namespace tc;

bool tc::allEqual(ArrayRef<int64_t> values, int64_t what) {
  return llvm::all_of(values, [&](int64_t value) { return value == what; });
}

std::optional<Convolution> tc::asConvolution(Operation *anchor) {
  auto op = dyn_cast<prim::ConvOp>(anchor);
  if (!op)
    return std::nullopt;
  Convolution c;
  c.op = op;
  c.spatial = op.getStrides().size();
  auto input = prim::getSizes(op.getInput()), filter = prim::getSizes(op.getFilter()),
       out = prim::getSizes(op.getResult());
  SmallVector<int64_t> kernel;
  for (AffineExpr size : filter) {
    auto constant = prim::getConstantSize(size);
    if (!constant)
      return std::nullopt;
    kernel.push_back(*constant);
  }
  if (c.spatial < 1)
    return std::nullopt;
  MLIRContext *context = op.getContext();
  AffineExpr one = getAffineConstantExpr(1, context);
  c.batch = input[0];
  c.groups = op.getGroups();
  c.channels = kernel[c.spatial];
  c.columns = kernel[c.spatial + 1] / c.groups;
  unsigned last = c.spatial - 1;
  c.kernelW = kernel[last];
  c.strideW = op.getStrides()[last];
  c.dilationW = op.getDilations()[last];
  c.padW = op.getPadLow()[last];
  c.inW = input[1 + last];
  c.outW = out[1 + last];
  if (c.kernelW == 1)
    c.dilationW = 1;
  if (c.spatial >= 2) {
    c.kernelH = kernel[last - 1];
    c.strideH = op.getStrides()[last - 1];
    c.dilationH = op.getDilations()[last - 1];
    c.padH = op.getPadLow()[last - 1];
    c.inH = input[last];
    c.outH = out[last];
  } else {
    c.inH = c.outH = one;
  }
  for (unsigned i = 0; i + 2 < c.spatial; ++i) {
    c.outer.push_back(out[1 + i]);
    c.outerKernel.push_back(kernel[i]);
  }
  c.h = prim::getConstantSize(c.outH);
  c.w = prim::getConstantSize(c.outW);
  return c;
}

SpatialDim tc::dimH(const Convolution &c) { return {c.kernelH, c.strideH, c.dilationH, c.padH, c.h, c.inH}; }
SpatialDim tc::dimW(const Convolution &c) { return {c.kernelW, c.strideW, c.dilationW, c.padW, c.w, c.inW}; }
SpatialDim tc::dimOuter(const Convolution &c) {
  prim::ConvOp op = c.op;
  return {c.outerKernel[0],
          op.getStrides()[0],
          op.getDilations()[0],
          op.getPadLow()[0],
          prim::getConstantSize(c.outer[0]),
          prim::getSizes(op.getInput())[1]};
}

double tc::usedShare(const SpatialDim &dim, int64_t block) {
  const std::optional<int64_t> in = prim::getConstantSize(dim.in);
  if (!in || !dim.out || *dim.out == 0 || dim.kernel == 1)
    return 1;
  // Of so many taps at most each is looked at; of more, as many that are spread evenly.
  constexpr int64_t kMostTaps = 1024;
  const int64_t taps = std::min(dim.kernel, kMostTaps);
  double used = 0; // of all outputs
  for (int64_t i = 0; i < taps; ++i) {
    const int64_t tap = i * (dim.kernel / taps) + i * (dim.kernel % taps) / taps;
    const int64_t shift = saturatingSub(saturatingMul(tap, dim.dilation), dim.pad);
    // The first and the last output whose tap lies inside; a block is computed for all taps that one of its outputs
    // has.
    const int64_t first = shift >= 0 ? 0 : llvm::divideCeilSigned(saturatingNegate(shift), dim.stride);
    const int64_t last = std::min(llvm::divideCeilSigned(saturatingSub(*in, shift), dim.stride) - 1, *dim.out - 1);
    if (first <= last)
      used += double(std::min(saturatingMul(last / block + 1, block), *dim.out) - first / block * block);
  }
  return used / (double(*dim.out) * double(taps));
}

std::optional<PixelPad> tc::matchPixelPad(prim::ConvOp op, Value input) {
  auto pad = input.getDefiningOp<prim::PadOp>();
  if (!pad || !allEqual(op.getPadLow(), 0) || !allEqual(op.getPadHigh(), 0))
    return std::nullopt;
  SmallVector<int64_t> low;
  for (AffineExpr size : pad.getLow().getResults())
    if (auto constant = dyn_cast<AffineConstantExpr>(size))
      low.push_back(constant.getValue());
  auto from = prim::getSizes(pad.getOperand()), to = prim::getSizes(pad.getResult());
  if (low.size() != to.size() || low.front() || low.back() || from.front() != to.front() || from.back() != to.back())
    return std::nullopt;
  return PixelPad{pad.getOperand(), pad.getValue(), SmallVector<int64_t>(ArrayRef(low).drop_front().drop_back())};
}
