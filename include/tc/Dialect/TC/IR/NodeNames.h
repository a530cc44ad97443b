//===- NodeNames.h - which of the model's nodes an operation is of --------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_NODENAMES_H
#define TC_DIALECT_TC_IR_NODENAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"

namespace tc::base {

/// The names of the model's nodes in locations, in order, without repetition.
llvm::SmallVector<llvm::StringRef> getNodeNames(llvm::ArrayRef<mlir::Location> locs);

} // namespace tc::base

#endif // TC_DIALECT_TC_IR_NODENAMES_H
