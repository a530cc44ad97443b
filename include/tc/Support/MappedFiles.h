//===- MappedFiles.h - which files are read -------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_MAPPEDFILES_H
#define TC_SUPPORT_MAPPEDFILES_H

#include <set>
#include <string>

namespace tc {

/// The paths of the files that mapFile maps while this lives, by any thread. One at a time.
class MappedFiles {
public:
  MappedFiles();
  MappedFiles(const MappedFiles &) = delete;
  MappedFiles &operator=(const MappedFiles &) = delete;
  ~MappedFiles();

  std::set<std::string> paths;
};

} // namespace tc

#endif // TC_SUPPORT_MAPPEDFILES_H
