// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The static lld's LTO, which nothing here runs, names this function of Polly, which Debian's static LLVM lacks.
#include "llvm/Support/ErrorHandling.h"

void getPollyPluginInfo();
void getPollyPluginInfo() {
  llvm::reportFatalInternalError("objects of kernels are machine code, so that lld runs no LTO");
}
