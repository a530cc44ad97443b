//===- Register.h - all dialects and passes of tc -------------------------------------------------------*- C++ -*-===//
//
// The one list of what the tools know. A new dialect or pass library adds its line in Register.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_REGISTER_H
#define TC_DRIVER_REGISTER_H

namespace mlir {
class DialectRegistry;
}

namespace tc::driver {

/// Adds every dialect that some phase uses, and its translation to LLVM IR.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers the flags of all passes and phase pipelines (--tc-phase-<name>), and the MLIR passes that are useful with
/// them. Once per process.
void registerAllPasses();

} // namespace tc::driver

#endif // TC_DRIVER_REGISTER_H
