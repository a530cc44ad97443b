//===- Generate.h - tc-opt's manual page and completion -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TOOLS_TC_OPT_GENERATE_H
#define TC_TOOLS_TC_OPT_GENERATE_H

#include "tc/Support/ToolText.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace tc::opt {

/// Options and passes as LLVM's help shows them. It is the only place where MLIR tells the passes' texts.
ToolText readHelp(llvm::StringRef help);

/// Prints what --generate `what` asks for; `printHelp` is run in a process of its own, which it may end. The exit code.
int generate(llvm::StringRef what, llvm::function_ref<void()> printHelp);

} // namespace tc::opt

#endif // TC_TOOLS_TC_OPT_GENERATE_H
