//===- DebugFolder.h - what --debug-dir leaves ----------------------------------------------------------*- C++ -*-===//
//
// The module at the end of each phase, whose constants stand once in weights.data; the command line; LLVM IR and
// assembly of each part of each variant, which Target writes; and index.html, which leads to all of it and draws the
// kernels with what they read.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_DEBUGFOLDER_H
#define TC_LIB_DRIVER_DEBUGFOLDER_H

#include "tc/Dialect/TC/IR/DataFile.h"
#include "tc/Driver/Compile.h"

#include <string>
#include <vector>

namespace tc::driver {

/// Errors are sentences that name a file.
class DebugFolder {
public:
  explicit DebugFolder(const CompileRequest &request);
  /// Whether a file of this name in the folder is of --debug-dir.
  static bool isName(llvm::StringRef name);
  /// Makes the folder, takes away what an earlier compile left there, and writes the command line.
  llvm::Error begin();
  /// `target`: its name, if there are several.
  llvm::Error writeModule(Phase phase, llvm::StringRef target, mlir::ModuleOp module, double seconds);
  /// Phase artifact has no module.
  llvm::Error writeManifest(llvm::StringRef manifest, double seconds);
  /// The page, also of a compile that failed. `result`: how it ended, in a sentence.
  llvm::Error writeIndex(llvm::StringRef result);

private:
  struct Entry {
    Phase phase;
    std::string target, file;
    double seconds;
  };
  std::string pathOf(llvm::StringRef file) const;
  void printPhases(llvm::raw_ostream &html) const;
  void printKernels(llvm::raw_ostream &html) const;
  void printCode(llvm::raw_ostream &html) const;

  const CompileRequest &request;
  base::DataFile weights;
  std::vector<Entry> entries;
  std::string manifest; ///< empty where the compile did not come so far
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_DEBUGFOLDER_H
