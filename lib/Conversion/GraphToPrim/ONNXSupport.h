//===- ONNXSupport.h - what the ONNX handlers share -----------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXSUPPORT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXSUPPORT_H

#include "NodeContext.h"

namespace tc {

/// The element type of a TensorProto.DataType number; null for strings, complex and what tc does not compute with.
mlir::Type elementTypeOfONNX(mlir::MLIRContext *context, int64_t dataType);
/// The element type that attribute `name` tells (number, or name before opset 6); `defaultType` where it is absent.
mlir::FailureOr<mlir::Type> readElementType(NodeContext &ctx, llvm::StringRef name, int64_t defaultType);

/// [0, 2, 3, .., 1]: channels-first to channels-last.
llvm::SmallVector<int64_t> toChannelsLast(int64_t rank);
/// [0, rank - 1, 1, 2, ..]: channels-last to channels-first.
llvm::SmallVector<int64_t> toChannelsFirst(int64_t rank);

/// Strides, dilations and pads of a convolution or pool, defaults and auto_pad resolved.
struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations, padLow, padHigh;
};
/// `spatial` are the input's spatial sizes, `kernel` the window.
mlir::FailureOr<Window> readWindow(NodeContext &ctx, llvm::ArrayRef<int64_t> kernel, SizesRef spatial);

/// `v` [C] added to (or multiplied with) the dim `axis` of a tensor of these sizes: broadcast there.
mlir::FailureOr<mlir::Value> broadcastAlong(NodeContext &ctx, mlir::Value v, int64_t axis, SizesRef sizes);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXSUPPORT_H
