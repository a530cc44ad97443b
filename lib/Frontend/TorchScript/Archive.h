//===- Archive.h - the members of a TorchScript archive -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_ARCHIVE_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_ARCHIVE_H

#include "SourceRanges.h"
#include "Syntax.h"

namespace tc::torchscript {

/// The code of an archive, parsed file by file as it is asked for.
class Archive {
public:
  virtual ~Archive() = default;
  /// The file of `__torch__.torch.nn.modules.linear`; null if there is none. The error is a sentence without the
  /// archive's name.
  llvm::Expected<const SourceFile *> findSource(llvm::StringRef qualifier);
  /// The line of Python that a place in the code was made of; nullopt where the archive does not say.
  std::optional<SourceLine> findLine(const SourceFile &file, Position at);

protected:
  /// The text of code/PATH.py; nullopt if there is none.
  virtual llvm::Expected<std::optional<std::string>> readCode(llvm::StringRef path) = 0;
  /// The pickle code/PATH.py.debug_pkl; nullopt if there is none, or a damaged one.
  virtual std::optional<torch::Pickle> readRanges(llvm::StringRef path) = 0;

private:
  llvm::StringMap<std::unique_ptr<SourceFile>> sources;
  llvm::DenseMap<const SourceFile *, std::unique_ptr<SourceRanges>> ranges; ///< null where there are none
};

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_ARCHIVE_H
