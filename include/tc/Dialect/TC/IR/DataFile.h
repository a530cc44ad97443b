//===- DataFile.h - one file for the constants of several modules ---------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_DATAFILE_H
#define TC_DIALECT_TC_IR_DATAFILE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tc::base {

/// For modules that are written one after the other, as those of a debug folder: a constant that several hold stands
/// once in the file, which grows. Beside `m.mlir` the link `m.mlir.data` leads to it, so that all readers find it.
class DataFile {
public:
  /// Replaces an older file of this path with the first module that has constants.
  explicit DataFile(std::string path) : path(std::move(path)) {}
  /// Writes `module`, which is left as it is, to `modulePath`, in the folder of the data. The error is a sentence.
  llvm::Error writeModule(mlir::ModuleOp module, llvm::StringRef modulePath);
  uint64_t getSize() const { return end; }

private:
  llvm::Error add(mlir::Operation *root);

  std::string path;
  llvm::StringMap<uint64_t> offsets; ///< by content
  std::string allHashes;
  uint64_t end = 0;
};

} // namespace tc::base

#endif // TC_DIALECT_TC_IR_DATAFILE_H
