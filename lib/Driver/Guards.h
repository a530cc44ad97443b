//===- Guards.h - what runs are refused for -------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_GUARDS_H
#define TC_LIB_DRIVER_GUARDS_H

#include "tc/Artifact/Writer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace tc::driver {

/// The guards of `function`, which was made of `func`: what its inputs must be, what nodes need of sizes, what they
/// check in data. Each is an object of texts, where there is something to say:
///
///   kind       fixed, range, equal: of inputs; sizes, data: of a node
///   condition  what must hold, of sizes; those of data have `what` alone
///   inputs     the dims of inputs that the sizes in it are
///   node       whose guard it is, and `source`, the line of Python that it comes from
///   what       what the node says when it refuses a run
///   from       who has asked for it: an option, the model, a node
///   costs      what a run pays for it
///   give_up    how to do without
///
/// `flags` are the options that the manifest has.
llvm::json::Array describeGuards(mlir::func::FuncOp func, const artifact::Function &function,
                                 llvm::ArrayRef<std::string> flags);

/// --no-assume: dims of inputs that the model gives one of these names, and so the same size, get sizes of their own.
/// `module` is of phase import. A sentence without a file where that cannot be; empty: it is done.
std::string giveUpNames(mlir::ModuleOp module, llvm::ArrayRef<std::string> names);

/// Writes them to log channel `guards`.
void logGuards(llvm::StringRef function, const llvm::json::Array &guards);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_GUARDS_H
