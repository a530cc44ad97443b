//===- tc-opt.cpp - mlir-opt with the dialects and passes of tc ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tc::driver::registerAllDialects(registry);
  tc::driver::registerAllPasses();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "tc's optimizer driver\n", registry));
}
