//===- Host.cpp - the host dialect
//-----------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace tc::host;

#include "tc/Dialect/Host/IR/HostDialect.cpp.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Host/IR/HostOps.cpp.inc"

void HostDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tc/Dialect/Host/IR/HostOps.cpp.inc"
      >();
}
