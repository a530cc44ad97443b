//===- ToolFiles.h - the files of a command, none of which may replace another --------------------------*- C++ -*-===//
//
// C++ alone, for all tools.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_TOOLFILES_H
#define TC_SUPPORT_TOOLFILES_H

#include <string>
#include <vector>

namespace tc {

struct ToolFile {
  std::string name; ///< in sentences: an output's option; of an input what it is, "the model", "the file of --inputs"
  std::string path; ///< empty or "-": none
  std::string updates = ""; ///< the name of the input that an output may be, as it is there to be replaced
  bool isInFolder = false;  ///< the option names the folder of an output
};

/// The first output that would replace an input or another output, which lie at one place whatever their paths are:
/// "--html a.onnx would replace the model; give another file". Empty: none does. Devices and pipes are no such files.
std::string findReplacedFile(const std::vector<ToolFile> &inputs, const std::vector<ToolFile> &outputs);

/// Adds an artifact that is read, with the files that lie beside it: its weights and its signature.
void addArtifactFiles(std::vector<ToolFile> &inputs, const std::string &name, const std::string &path);

/// The path in `folder`, which an option writes files to, of a file that has the name of `path`.
std::string pathInFolder(const std::string &folder, const std::string &path);

} // namespace tc

#endif // TC_SUPPORT_TOOLFILES_H
