//===- Optimize.h - LLVM's part of every target ---------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TARGET_OPTIMIZE_H
#define TC_TARGET_OPTIMIZE_H

#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace tc::target {

/// LLVM's O2 without its vectorisers: kernels are vectors already. `interleaves`: loops may be, as on GPUs.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, bool interleaves);

/// Loop strength reduction of the loops that gain by it, in place of the one of the code generator, which looks at all.
void reduceStrength(llvm::Module &module, llvm::TargetMachine &machine);

/// The module as assembly or as an object file. The code generator leaves nothing of use in it.
llvm::Expected<std::string> generateCode(llvm::Module &module, llvm::TargetMachine &machine,
                                         llvm::CodeGenFileType fileType);

} // namespace tc::target

#endif // TC_TARGET_OPTIMIZE_H
