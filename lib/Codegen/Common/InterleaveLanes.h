//===- InterleaveLanes.h - vectors of a loop side by side -----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_INTERLEAVELANES_H
#define TC_LIB_CODEGEN_INTERLEAVELANES_H

#include "tc/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/Operation.h"

namespace tc::codegen {
/// Computes several vectors of loops over independent lanes (Emitter::independentLanes) side by side, one instruction
/// of each after another, where an iteration is a long chain of instructions (exponentials, error functions). A core
/// overlaps iterations by itself only as far as its scheduler's queue reaches: one of silu took 11 cycles on Zen 5
/// instead of 9. As many as the registers hold; how long an iteration is, only its instructions tell. For what arith,
/// math and vector ops have been lowered to; before scf is.
void interleaveLanes(mlir::Operation *root, machine::VectorUnit vectors);
} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_INTERLEAVELANES_H
