//===- DepFile.h - what an artifact was made of, for build systems --------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_DEPFILE_H
#define TC_LIB_DRIVER_DEPFILE_H

#include "tc/Driver/Compile.h"

#include "llvm/Support/raw_ostream.h"
#include <set>
#include <string>

namespace tc::driver {

/// Why a depfile cannot be written for the request, as a sentence's end; empty: it can be, or none is wanted.
std::string findDepFileError(const CompileRequest &request);

/// Writes the depfile that the request wants, if it does: a rule of make for its output, with the model, the files that
/// the model named and those of options. Says what failed, and returns the exit code.
int writeDepFile(const CompileRequest &request, std::set<std::string> files, llvm::raw_ostream &errors);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_DEPFILE_H
