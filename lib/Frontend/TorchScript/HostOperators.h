//===- HostOperators.h - operators that the importer evaluates ------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_HOSTOPERATORS_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_HOSTOPERATORS_H

#include "Interpreter.h"

namespace tc::torchscript {

/// Numbers, comparisons, bools.
void addNumberOperators(llvm::StringMap<Interpreter::HostOperator> &table);
/// Lists, tuples, dicts, strings.
void addContainerOperators(llvm::StringMap<Interpreter::HostOperator> &table);
/// What code asks of tensors: rank, sizes, element type, device.
void addTensorQueries(llvm::StringMap<Interpreter::HostOperator> &table);

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_HOSTOPERATORS_H
