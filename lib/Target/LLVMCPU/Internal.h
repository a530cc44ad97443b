//===- Internal.h - pieces of the CPU backend -----------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_TARGET_LLVMCPU_INTERNAL_H
#define TC_LIB_TARGET_LLVMCPU_INTERNAL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tc::target {

/// LLVM IR text of the functions that compiled code may call: memory, conversions, f64 mathematics through the
/// runtime's import table. Every function is hidden; what is not used is dropped by the linker.
std::string getCodeLibrary();

/// Links relocatable objects to a shared object with entry point tc_entry. Takes no symbol from anywhere else.
/// Serialised.
llvm::Expected<std::string> linkObjects(llvm::ArrayRef<std::string> objects);

} // namespace tc::target

#endif // TC_LIB_TARGET_LLVMCPU_INTERNAL_H
