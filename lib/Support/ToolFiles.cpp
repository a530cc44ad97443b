//===- ToolFiles.cpp - the files of a command, none of which may replace another ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ToolFiles.h"

#include <filesystem>
#include <optional>
#include <sys/stat.h>

using namespace tc;

namespace {

/// Where a file lies, or will.
class Place {
public:
  explicit Place(const std::string &path) {
    struct stat status;
    if (path.empty() || path == "-")
      return;
    if (::stat(path.c_str(), &status) == 0) {
      isFile = S_ISREG(status.st_mode);
      isThere = isFile;
      device = status.st_dev;
      inode = status.st_ino;
      return;
    }
    std::error_code error;
    // Of a relative path none of whose parts is there, it would stay relative.
    canonical = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error).string();
    isFile = !error;
  }
  bool operator==(const Place &other) const {
    if (!isFile || !other.isFile || isThere != other.isThere)
      return false;
    return isThere ? device == other.device && inode == other.inode : canonical == other.canonical;
  }

  bool isThere = false;

private:
  bool isFile = false;
  dev_t device = 0;
  ino_t inode = 0;
  std::string canonical;
};

} // namespace

std::string tc::findReplacedFile(const std::vector<ToolFile> &inputs, const std::vector<ToolFile> &outputs) {
  auto describe = [](const ToolFile &output, const std::string &what) {
    return output.name + " " + output.path + " would replace " + what + "; give another " +
           (output.isInFolder ? "folder" : "file");
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Place place(outputs[i].path);
    for (const ToolFile &input : inputs)
      if (place.isThere && Place(input.path) == place && (input.name.empty() || input.name != outputs[i].updates))
        return describe(outputs[i], input.name);
    for (size_t k = 0; k < i; ++k)
      if (Place(outputs[k].path) == place)
        return describe(outputs[i], "what " + outputs[k].name + " writes");
  }
  return "";
}

void tc::addArtifactFiles(std::vector<ToolFile> &inputs, const std::string &name, const std::string &path) {
  if (path.empty())
    return;
  inputs.push_back({name, path});
  inputs.push_back({"the weights of " + path, path + ".weights"});
  inputs.push_back({"the signature of " + path, path + ".sig"});
}

std::string tc::pathInFolder(const std::string &folder, const std::string &path) {
  return folder + "/" + std::filesystem::path(path).filename().string();
}
