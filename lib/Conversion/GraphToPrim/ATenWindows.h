//===- ATenWindows.h - what convolutions and pools of ATen share ----------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ATENWINDOWS_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ATENWINDOWS_H

#include "ATenSupport.h"
#include "Windows.h"

namespace tc {

/// A list argument with an entry for each of `n` dims: one entry stands for all, none for `otherwise`.
mlir::FailureOr<llvm::SmallVector<int64_t>> perDim(Call &c, llvm::StringRef name, size_t n, int64_t otherwise,
                                                   int64_t least);
/// Dilations and pads of `n` spatial dims, with `strides`, whose default is the operator's.
mlir::FailureOr<Window> readWindow(Call &c, size_t n, const mlir::FailureOr<llvm::SmallVector<int64_t>> &strides);
/// `x` without or with a batch: made of rank n + 2. What is made of it by `emit` has a batch where `x` has.
mlir::LogicalResult withBatch(NodeContext &ctx, mlir::Value x, size_t n,
                              llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(mlir::Value)> emit);
/// The window as ai.onnx's operators have it in their attributes; without `kernel`, of a convolution.
llvm::SmallVector<mlir::NamedAttribute> windowAttributes(PrimBuilder &b, const Window &window,
                                                         llvm::ArrayRef<int64_t> kernel = {});

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ATENWINDOWS_H
