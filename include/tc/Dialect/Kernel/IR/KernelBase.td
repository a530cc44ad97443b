//===- KernelBase.td - the kernel dialect ----------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_KERNEL_IR_KERNELBASE
#define TC_DIALECT_KERNEL_IR_KERNELBASE

include "mlir/IR/DialectBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::tc::kernel";
  let summary = "One fused region plus the schedule that says how it runs";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::tc::base::TCDialect", "::tc::machine::MachineDialect"];
}

#endif
