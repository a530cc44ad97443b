//===- SourceRanges.h - lines of Python that an archive's code was made of ------------------------------*- C++ -*-===//
//
// Beside code/NAME.py, torch.jit.save writes code/NAME.py.debug_pkl: for places in that file, the Python that they were
// compiled or traced from. It only adds to messages: one that is damaged holds no lines.
//
// Source: torch/csrc/jit/serialization/source_range_serialization.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_SOURCERANGES_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_SOURCERANGES_H

#include "Syntax.h"

#include "tc/Frontend/Torch/Pickle.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tc::torchscript {

/// A line of the user's Python.
struct SourceLine {
  llvm::StringRef file;
  uint32_t line = 0;
  bool isOfTorch = false; ///< of PyTorch's own library, where a line of the user called it
};

class SourceRanges {
public:
  /// The lines that `code`, a file of the archive, was made of.
  SourceRanges(torch::Pickle pickle, llvm::StringRef code);

  /// Nullopt where nothing is known of that place.
  std::optional<SourceLine> find(Position at);

private:
  /// The text that a range is in, read once: a function's source, or the stack of a traced operator.
  struct Text {
    std::optional<SourceLine> traced;
    llvm::StringRef file;
    int64_t firstLine = 0;
    std::vector<uint64_t> ends; ///< of its lines
  };
  const Text &textOf(const torch::PickledValue &source);
  /// A string, or its number in the table of strings; null where it is neither.
  const std::string *stringOf(const torch::PickledValue &value) const;

  torch::Pickle pickle;
  const torch::PickledValue *strings = nullptr;                         ///< null in archives before PyTorch 1.10
  std::vector<std::pair<uint64_t, const torch::PickledValue *>> ranges; ///< from an offset in the code on
  std::vector<uint64_t> lines;                                          ///< offsets at which lines of the code begin
  llvm::DenseMap<const torch::PickledValue *, Text> texts;
  uint64_t charactersRead = 0;
};

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_SOURCERANGES_H
