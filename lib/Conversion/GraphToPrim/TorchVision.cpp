//===- TorchVision.cpp - operators of torchvision -----------------------------------------------------------------===//
//
// They are those that ai.onnx took over from it, in other words.
//
// Source: torchvision/csrc/ops (schemas, and cpu/*_kernel.cpp for what they compute).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Boxes [N, 4] with scores [N]: the numbers of those that are kept, the best first.
LogicalResult nms(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> boxes = c.floats("dets"), scores = c.floats("scores");
  if (failed(boxes) || failed(scores))
    return failure();
  if (b.rankOf(*boxes) != 2 || b.rankOf(*scores) != 1)
    return ctx.invalid("takes boxes [N, 4] and scores [N], but got " + describe(*boxes) + " and " + describe(*scores));
  const AffineExpr count = getSizes(*scores)[0];
  Value threshold = b.scalar(b.elementOf(*boxes), c.number("iou_threshold", 0));
  Value most = b.reshape(b.sizeValue(count), {b.size(1)});
  FailureOr<SmallVector<Value>> kept =
      ctx.emitOperator("NonMaxSuppression", 11,
                       {b.unsqueeze(*boxes, 0), b.reshape(*scores, {b.size(1), b.size(1), count}), most,
                        b.reshape(threshold, {b.size(1)})},
                       {});
  return failed(kept) ? failure() : ctx.result(b.take(kept->front(), 1, 2)); // batch, class, box
}

/// Regions [R, 5], of which the first number is that of the image; or [R, 4] of each image in a list.
FailureOr<Value> readRegions(Call &c) {
  FailureOr<Value> rois = c.floats("rois");
  if (succeeded(rois) && c.b.rankOf(*rois) != 2)
    return c.ctx.invalid("takes regions [R, 5], but got " + describe(*rois));
  return rois;
}

LogicalResult roiAlign(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input"), rois = readRegions(c);
  if (failed(x) || failed(rois))
    return failure();
  if (failed(ctx.requireEqual(getSizes(*rois)[1], b.size(5), "regions of 5 numbers")))
    return failure();
  const NamedAttribute attributes[] = {
      b.getNamedAttr("coordinate_transformation_mode",
                     b.getStringAttr(c.flag("aligned") ? "half_pixel" : "output_half_pixel")),
      b.getNamedAttr("mode", b.getStringAttr("avg")),
      b.getNamedAttr("output_height", b.getI64IntegerAttr(c.integer("pooled_height", 0))),
      b.getNamedAttr("output_width", b.getI64IntegerAttr(c.integer("pooled_width", 0))),
      b.getNamedAttr("sampling_ratio", b.getI64IntegerAttr(std::max<int64_t>(c.integer("sampling_ratio", -1), 0))),
      b.getNamedAttr("spatial_scale", b.getF64FloatAttr(c.number("spatial_scale", 1)))};
  Value image = b.convert(b.take(*rois, 1, 0), b.getI64Type());
  Value corners = b.sliceDim(*rois, 1, b.size(1), b.size(4));
  FailureOr<SmallVector<Value>> y = ctx.emitOperator("RoiAlign", 16, {*x, corners, image}, attributes);
  return failed(y) ? failure() : ctx.result(y->front());
}

LogicalResult roiPool(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input"), rois = readRegions(c);
  if (failed(x) || failed(rois))
    return failure();
  const int64_t pooled[] = {c.integer("pooled_height", 0), c.integer("pooled_width", 0)};
  const NamedAttribute attributes[] = {
      b.getNamedAttr("pooled_shape", b.getDenseI64ArrayAttr(pooled)),
      b.getNamedAttr("spatial_scale", b.getF64FloatAttr(c.number("spatial_scale", 1)))};
  FailureOr<SmallVector<Value>> y = ctx.emitOperator("MaxRoiPool", 1, {*x, *rois}, attributes);
  return failed(y) ? failure() : ctx.result(y->front()); // where the maxima are counts for gradients alone
}

LogicalResult deformConv(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input"), w = c.floats("weight"), offset = c.floats("offset"), bias = c.floats("bias");
  if (failed(x) || failed(w) || failed(offset) || failed(bias))
    return failure();
  auto pair = [&](StringRef name, const char *h, const char *v, int64_t otherwise, int64_t copies) {
    SmallVector<int64_t> values;
    for (int64_t i = 0; i < copies; ++i)
      values.append({c.integer(h, otherwise), c.integer(v, otherwise)});
    return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
  };
  const NamedAttribute attributes[] = {
      pair("dilations", "dilation_h", "dilation_w", 1, 1),
      b.getNamedAttr("group", b.getI64IntegerAttr(c.integer("groups", 1))),
      b.getNamedAttr("offset_group", b.getI64IntegerAttr(c.integer("offset_groups", 1))),
      pair("pads", "pad_h", "pad_w", 0, 2), pair("strides", "stride_h", "stride_w", 1, 1)};
  Value mask = c.flag("use_mask", true) ? c.tensor("mask") : Value();
  FailureOr<SmallVector<Value>> y = ctx.emitOperator("DeformConv", 19, {*x, *w, *offset, *bias, mask}, attributes);
  return failed(y) ? failure() : ctx.result(y->front());
}

} // namespace

void tc::populateTorchVision(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("nms.default", nms, 2);
  on("roi_align.default", roiAlign, 2);
  on("roi_pool.default", roiPool, 2);
  on("deform_conv2d.default", deformConv, 5);
}
