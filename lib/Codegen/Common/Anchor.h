//===- Anchor.h - how kernels read what an anchor reads, and store what follows it --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_ANCHOR_H
#define TC_LIB_CODEGEN_ANCHOR_H

#include "Common/Emitter.h"
#include "tc/Analysis/Access.h"
#include "tc/Analysis/Anchor.h"

namespace tc::codegen {

/// Whether the elements of a tensor are f32.
bool isF32(mlir::Value tensor);

/// Outputs' elements, in the order of the epilogue's roots.
struct EpilogueValues {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<llvm::SmallVector<Index>> positions;
};
/// Computes the outputs' elements that depend on `value`, the element at `at` of the epilogue's result. Call
/// clearSources on the emitter when the loops around are closed.
EpilogueValues computeEpilogue(Emitter &em, const Epilogue &epilogue, llvm::ArrayRef<Index> at, mlir::Value value);
void storeEpilogue(Emitter &em, const Epilogue &epilogue, const EpilogueValues &computed);
/// Both.
void storeEpilogue(Emitter &em, const Epilogue &epilogue, llvm::ArrayRef<Index> at, mlir::Value value);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_ANCHOR_H
