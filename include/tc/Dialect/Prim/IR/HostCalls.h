//===- HostCalls.h - what functions write in place ------------------------------------------------------*- C++ -*-===//
//
// A prim.host_call of an operator that writes operands has the attribute `prim.inits`: for each result the number of
// the operand whose elements it holds when the function is called, or -1.
//
//   %y1 = prim.host_call "my_bump"(%y, %n) words [0, 0, 0] {prim.inits = array<i64: 0>} : ...
//
// The function writes into the result; the operand stays as it is. Operand and result have one element type and rank.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_HOSTCALLS_H
#define TC_DIALECT_PRIM_IR_HOSTCALLS_H

#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc::prim {

inline constexpr llvm::StringLiteral kInitsAttr = "prim.inits";

/// The operand whose elements result `result` begins with, or null.
inline mlir::Value getInit(HostCallOp op, unsigned result) {
  auto inits = op->getAttrOfType<mlir::DenseI64ArrayAttr>(kInitsAttr);
  return inits && inits[result] >= 0 ? op.getOperand(unsigned(inits[result])) : mlir::Value();
}

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_IR_HOSTCALLS_H
