//===- CudaGraphs.h - which launches a CUDA graph can hold ----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_HOST_IR_CUDAGRAPHS_H
#define TC_DIALECT_HOST_IR_CUDAGRAPHS_H

#include "tc/Dialect/Host/IR/Host.h"

#include "llvm/ADT/DenseSet.h"

namespace tc::host {

/// The value of a constant of one integer, or of many equal ones.
std::optional<int64_t> getKnownInteger(mlir::Value value);

/// Whether the host program knows without a look at data how often the loop runs: a graph can hold its launches.
bool isCounted(prim::WhileOp loop);

/// Of a loop on a device: the constant [n] of i64 whose elements are the numbers of the iterations, or null: the host
/// writes each number when its iteration begins.
prim::ConstantOp getIterationNumbers(prim::WhileOp loop);
inline constexpr llvm::StringLiteral kIterationNumbersAttr = "host.numbers";

/// Positions of the symbols of a function that get their values from data, when it runs.
llvm::SmallDenseSet<unsigned> getSymbolsOfData(mlir::Operation *function);

/// Why no CUDA graph can hold a launch on a device, as what stands behind "launches" in a sentence; empty: one can.
/// `symbolsOfData`: of the function that it is in.
llvm::StringRef findGraphObstacle(LaunchOp launch, mlir::Operation *function,
                                  const llvm::SmallDenseSet<unsigned> &symbolsOfData);

} // namespace tc::host

#endif // TC_DIALECT_HOST_IR_CUDAGRAPHS_H
