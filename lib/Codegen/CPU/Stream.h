//===- Stream.h - results that are stored past the caches -----------------------------------------------*- C++ -*-===//
//
// A plain store reads the line that it overwrites first, a third of the traffic of a copy, and leaves it in the caches.
// Results so large that no cache holds them until they are read gain from neither.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_STREAM_H
#define TC_LIB_CODEGEN_CPU_STREAM_H

#include "Common/Emitter.h"

namespace tc::codegen {

/// Whether a result of this form is better stored past the caches: large, and rows of whole vectors on every CPU.
bool isStreamed(mlir::Value result);

/// Calls body(isStreaming) twice, for code that stores `results` past the caches (Emitter::streamsStores) and for code
/// that does not: buffers of the caller may lie anywhere, and only such as begin at a multiple of 64 bytes are streamed
/// to. `buffers`: where the results begin.
void emitStreaming(Emitter &em, llvm::ArrayRef<mlir::Value> buffers, llvm::function_ref<void(bool)> body);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_STREAM_H
