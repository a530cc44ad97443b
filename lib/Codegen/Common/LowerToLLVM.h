//===- LowerToLLVM.h - kernel bodies to the LLVM dialect ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_LOWERTOLLVM_H
#define TC_LIB_CODEGEN_LOWERTOLLVM_H

#include "tc/Dialect/Host/IR/Host.h"

namespace tc::codegen {
/// Lowers every function of `variant` from arith, math, scf, vector and llvm ops to the LLVM dialect alone.
llvm::LogicalResult lowerToLLVM(host::VariantOp variant);
} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_LOWERTOLLVM_H
