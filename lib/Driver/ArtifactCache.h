//===- ArtifactCache.h - artifacts of earlier compiles --------------------------------------------------*- C++ -*-===//
//
// An artifact is kept under a hash of the model's bytes, the files that it names, the options that change what is
// written, and the program (tc/Cache/Store.h). Names of files are no part of it. The answer to "which files does this
// model name" is an entry of its own, as only a compile finds out.
//
// With the artifact go the lines that its compile said, so that a hit says them again.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_ARTIFACTCACHE_H
#define TC_LIB_DRIVER_ARTIFACTCACHE_H

#include "tc/Cache/Store.h"
#include "tc/Driver/Compile.h"

#include "llvm/Support/MemoryBuffer.h"
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tc::driver {

class ArtifactCache {
public:
  ArtifactCache(const CompileRequest &request, llvm::raw_ostream &errors);

  /// Null where no folder is named.
  cache::Store *getStore() { return store ? &*store : nullptr; }
  /// Writes what an earlier compile of this request wrote, and says what it said: the exit code. Nullopt: there is
  /// none, or this request wants to see the compile. `named`: gets the files that the model names.
  std::optional<int> restore(std::set<std::string> &named);
  /// What the compile said, for people.
  void addLines(llvm::StringRef text);
  /// Keeps the artifact at `path`, which may lose its name afterwards.
  void take(llvm::StringRef path);
  /// Adds what was taken, of a model that named these files, to the cache. `summary` is what a hit says, without its
  /// end and the output's name (nameOutput).
  void add(const std::set<std::string> &files, llvm::StringRef summary);
  /// Says what was found, and keeps the folder below its limit.
  void finish();

private:
  /// The request without files that the model names; nullopt where the model cannot be read.
  std::optional<cache::Key> makeRequestKey();
  std::optional<cache::Key> makeArtifactKey(const cache::Key &request, llvm::ArrayRef<std::string> files);
  /// The path as an entry has it: below the model's folder, where it is there.
  std::string shorten(llvm::StringRef path) const;
  std::string lengthen(llvm::StringRef path) const;
  bool isOlderThanCompile(llvm::StringRef path) const;

  const CompileRequest &request;
  llvm::raw_ostream &errors;
  std::optional<cache::Store> store;
  std::string whyNot; ///< why no artifact is looked up; empty: one is
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  timespec startTime = {};
  std::optional<cache::Key> modelKey;
  std::string lines;
  std::unique_ptr<llvm::MemoryBuffer> artifact, weights;
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_ARTIFACTCACHE_H
