//===- TemporaryPath.h - files that must not outlive the process ----------------------------------------*- C++ -*-===//
//
// A process that ends at once, because a limit is reached or memory is used up, runs no destructors. What it must not
// leave behind is named here as long as it is there:
//
//   TemporaryPath named(path); // the owner removes the file as before
//
// Thread safety: any thread may name paths, and any may remove them.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_TEMPORARYPATH_H
#define TC_SUPPORT_TEMPORARYPATH_H

#include <cstdio>
#include <list>
#include <mutex>
#include <string>

namespace tc {

class TemporaryPath {
public:
  /// A file, or a folder that is named before what it holds.
  explicit TemporaryPath(std::string path) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    place = registry().paths.insert(registry().paths.begin(), std::move(path));
  }
  ~TemporaryPath() {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().paths.erase(place);
  }
  TemporaryPath(const TemporaryPath &) = delete;
  TemporaryPath &operator=(const TemporaryPath &) = delete;

  /// Removes all that are named, before the process ends. Allocates nothing, and does nothing where the thread that
  /// names a path now is the one that ran out of memory.
  static void removeAll() {
    std::unique_lock<std::mutex> lock(registry().mutex, std::try_to_lock);
    if (lock.owns_lock())
      for (const std::string &path : registry().paths)
        std::remove(path.c_str());
  }

private:
  struct Registry {
    std::mutex mutex;
    std::list<std::string> paths; ///< the newest first
  };
  static Registry &registry() {
    static Registry *instance = new Registry; // never destroyed: threads may outlive main
    return *instance;
  }
  std::list<std::string>::iterator place;
};

} // namespace tc

#endif // TC_SUPPORT_TEMPORARYPATH_H
