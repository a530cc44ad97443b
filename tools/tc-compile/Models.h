//===- Models.h - the models of one command ------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TOOLS_TC_COMPILE_MODELS_H
#define TC_TOOLS_TC_COMPILE_MODELS_H

#include "tc/Driver/Compile.h"

#include "llvm/ADT/ArrayRef.h"

namespace tc::driver {

/// Compiles one model into request.output, or, where that is a folder, each into FOLDER/NAME.bin (.mlir with
/// --compile-to), in processes of their own, as many at once as there are jobs; a model that fails stops no other. "-"
/// is standard input, of which it makes a file where it is none. Returns the exit code, with several models that of the
/// first in order that failed. The process has one thread still.
int compileModels(CompileRequest request, llvm::ArrayRef<std::string> models, llvm::raw_ostream &errors);

} // namespace tc::driver

#endif // TC_TOOLS_TC_COMPILE_MODELS_H
