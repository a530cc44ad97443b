//===- Convolution.h - a convolution in one form for all numbers of spatial dims ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_CONVOLUTION_H
#define TC_ANALYSIS_CONVOLUTION_H

#include "tc/Analysis/LikelySizes.h"

namespace tc {

/// A convolution with at least two spatial dims (a 1-D one gets a dim of 1 in front). `outer` are the spatial dims
/// before the last two.
struct Convolution {
  prim::ConvOp op;
  unsigned spatial;                          // of the op
  mlir::AffineExpr batch;                    // N
  llvm::SmallVector<mlir::AffineExpr> outer; // output sizes
  llvm::SmallVector<int64_t> outerKernel;
  mlir::AffineExpr outH, outW, inH, inW;
  int64_t kernelH = 1, kernelW = 1, strideH = 1, strideW, dilationH = 1, dilationW, padH = 0, padW;
  int64_t groups, channels, columns; // channels and columns of a group
  std::optional<int64_t> h, w;       // outH, outW

  /// What to plan for; a size that is known is itself.
  int64_t likelyHeight(int64_t usual = usual::kImageSide) const { return getLikelySize(outH, op, usual); }
  int64_t likelyWidth(int64_t usual = usual::kImageSide) const { return getLikelySize(outW, op, usual); }
  /// Of images, and of positions in the outer dims.
  int64_t likelyImages(int64_t usual = usual::kImages) const { return getLikelySize(batch, op, usual); }
  double likelyOuter() const { return getLikelyCount(outer, op, usual::kBatch); }

  int64_t outerTaps() const {
    int64_t count = 1;
    for (int64_t size : outerKernel)
      count *= size;
    return count;
  }
  int64_t taps() const { return outerTaps() * kernelH * kernelW; }
  int64_t depth() const { return taps() * channels; }
  /// As many output as input channels in each of several groups: 1, 2, 4 or 8, which divide the lanes of all vectors.
  bool isDepthwise() const {
    return groups > 1 && channels == columns && channels <= 8 && llvm::isPowerOf2_64(channels);
  }
  /// Of 16 columns, in a group.
  int64_t panels() const { return (columns + 15) / 16; }
  /// Whether kernel positions along the last dim and channels are contiguous in the copied rows.
  bool merged() const { return dilationW == 1; }
  /// Input rows and columns that a block of output pixels reads.
  int64_t haloW(int64_t tileW) const { return (tileW - 1) * strideW + (kernelW - 1) * dilationW + 1; }
  int64_t haloH(int64_t tileH) const { return (tileH - 1) * strideH + (kernelH - 1) * dilationH + 1; }
};

/// One spatial dim of a convolution; `out`: null where only the run knows it.
struct SpatialDim {
  int64_t kernel, stride, dilation, pad;
  std::optional<int64_t> out;
  mlir::AffineExpr in;
};
SpatialDim dimH(const Convolution &c);
SpatialDim dimW(const Convolution &c);
/// The first of the dims before these two.
SpatialDim dimOuter(const Convolution &c);

/// The share of the kernel positions along a dim that meet the input, on average over outputs in blocks of `block`: of
/// a large dilation on a small image most read nothing but padding. 1 where sizes are not known.
double usedShare(const SpatialDim &dim, int64_t block);

/// Whether all strides, dilations or pads are `what`.
bool allEqual(llvm::ArrayRef<int64_t> values, int64_t what);

/// A pad that stands before a convolution without pads of its own and surrounds pixels only, by numbers that are known.
struct PixelPad {
  mlir::Value source, value;      // what is padded; with what
  llvm::SmallVector<int64_t> low; // by spatial dim
};
std::optional<PixelPad> matchPixelPad(prim::ConvOp op, mlir::Value input);

/// The convolution that `anchor` is; nullopt if it is none or its filter has unknown sizes.
std::optional<Convolution> asConvolution(mlir::Operation *anchor);

} // namespace tc

#endif // TC_ANALYSIS_CONVOLUTION_H
