//===- ONNXImage.cpp - images from their files' bytes -------------------------------------------------------------===//
//
// libtcrt-host decodes (lib/RuntimeHost).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult imageDecoder(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value bytes = ctx.operand(0);
  Type element = b.elementOf(bytes);
  if (!element.isUnsignedInteger(8) || b.rankOf(bytes) != 1)
    return ctx.invalid("needs the bytes of an image, a 1-D tensor of ui8, but has " + describe(bytes));
  std::string format = ctx.getString("pixel_format", "RGB");
  // The numbers are those of lib/RuntimeHost/Image.h.
  int64_t number = llvm::StringSwitch<int64_t>(format).Case("RGB", 0).Case("BGR", 1).Case("Grayscale", 2).Default(-1);
  if (number < 0)
    return ctx.invalid("pixel_format is \"" + format + "\"; it may be RGB, BGR or Grayscale");
  auto inside = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic, number == 2 ? 1 : 3}, element);
  Value image =
      b.hostCall("image_decode", {bytes, b.sizeValue(b.size(number))}, base::OptType::get(b.getContext(), inside), {});
  FailureOr<Value> result = takeOut(ctx, image, inside);
  return failed(result) ? failure() : ctx.result(*result);
}

} // namespace

void tc::populateONNXImage(OpRegistrar &onOp) { onOp("ImageDecoder", 20, imageDecoder); }
