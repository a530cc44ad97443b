//===- Internal.h - pieces of the CPU backend -----------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_TARGET_LLVMCPU_INTERNAL_H
#define TC_LIB_TARGET_LLVMCPU_INTERNAL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tc::target {

/// LLVM IR text of the functions that compiled code may call: memory, conversions, f64 mathematics through the
/// runtime's import table. Every function is hidden.
std::string getCodeLibrary();

/// Whether `library`, the text of getCodeLibrary, defines a function of this name.
bool isInCodeLibrary(llvm::StringRef library, llvm::StringRef name);

/// Names of the symbols that a relocatable object refers to and does not define.
llvm::Expected<std::vector<std::string>> getUndefinedSymbols(llvm::StringRef object);

/// Gives symbols of a relocatable object other names. Those of its sections stay.
llvm::Error renameSymbols(std::string &object, const llvm::StringMap<std::string> &names);

/// Links relocatable objects to a shared object with entry point tc_entry. Takes no symbol from anywhere else.
/// Serialised.
llvm::Expected<std::string> linkObjects(llvm::ArrayRef<std::string> objects);

} // namespace tc::target

#endif // TC_LIB_TARGET_LLVMCPU_INTERNAL_H
