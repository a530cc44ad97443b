//===- Store.h - results of compiles, kept by what they were made of ------------------------------------*- C++ -*-===//
//
// A folder of entries. The name of an entry, its key, is a hash of all that its bytes depend on, so that an entry is
// never out of date, only unused:
//
//   DIR/CACHEDIR.TAG                  tells backups to leave the folder out (bford.info/cachedir)
//   DIR/<kind>/<2 digits>/<62 digits> an entry: a header with a hash of kind, key and content, then the content
//   DIR/tmp/                          entries that are being written
//   DIR/lock                          held by who removes the entries that were used the longest time ago
//
// Any number of processes use a folder at once. Entries appear by a rename, whole or not at all; who reads one has it
// mapped, so that removing it does no harm. What was read is checked: an entry that is damaged, cut off or no regular
// file is removed, and is not there. A crash leaves at most a file in DIR/tmp, which a later clean-up removes.
//
// The time of an entry's last change is the time of its last use.
//
// Hashes are BLAKE3: models may come from strangers, and none may pass for another.
//
// Thread safe. Errors are sentences that begin with the folder.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CACHE_STORE_H
#define TC_CACHE_STORE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tc::cache {

using Key = std::array<uint8_t, 32>;

/// 64 lower-case hex digits.
std::string toText(const Key &key);

/// Makes a key of named values; another name, value or order is another key.
class KeyBuilder {
public:
  KeyBuilder &add(llvm::StringRef name, llvm::StringRef value);
  KeyBuilder &add(llvm::StringRef name, const std::string &value) { return add(name, llvm::StringRef(value)); }
  KeyBuilder &add(llvm::StringRef name, const std::vector<std::string> &values);
  KeyBuilder &add(llvm::StringRef name, uint64_t value);
  KeyBuilder &add(llvm::StringRef name, const Key &key);
  Key finish() { return hasher.final<32>(); }

private:
  llvm::BLAKE3 hasher;
};

/// The hash of some bytes: of the hashes of their parts, which several threads make.
Key hashBytes(llvm::StringRef bytes);

/// Which program this is: the build ids of its own file and of all libraries that it has loaded, as constants are
/// folded by their functions; of a file without one its path, size and time.
const Key &getProgramKey();

/// What an entry is.
enum class Kind {
  Artifact, ///< what a compile wrote
  Files,    ///< which files a model names beside its own
  Kernel    ///< the object code of some kernels
};
inline constexpr unsigned kKindCount = 3;
llvm::StringRef getName(Kind kind);

/// An entry that was found, mapped.
struct Entry {
  std::unique_ptr<llvm::MemoryBuffer> file;
  llvm::StringRef content;
};

/// An entry as a list shows it.
struct EntryInfo {
  Kind kind;
  Key key;
  uint64_t sizeBytes; ///< of its file
  int64_t usedNs;     ///< since 1970
};

/// What this process found.
struct Counts {
  std::array<uint64_t, kKindCount> hits = {}, misses = {};
};

class Store {
public:
  static constexpr uint64_t kDefaultLimitBytes = uint64_t(4) << 30;

  /// Nothing is read or made before it is needed.
  explicit Store(std::string folder, uint64_t limitBytes = kDefaultLimitBytes);

  /// The entry, if there is one and it is sound; it counts as used now.
  std::optional<Entry> load(Kind kind, const Key &key);
  /// load in two steps: until check has said that an entry is sound, which may be meanwhile, its content is anybody's.
  std::optional<Entry> open(Kind kind, const Key &key);
  bool check(Kind kind, const Key &key, const Entry &entry);
  /// Adds an entry of these pieces. One that is larger than the limit is left out, as is all behind the first that
  /// cannot be written.
  void save(Kind kind, const Key &key, llvm::ArrayRef<llvm::StringRef> pieces);
  /// Why entries could not be written; empty: they were.
  std::string getProblem() const;
  /// Removes what was used the longest time ago where entries are larger than the limit together, down to nine tenths
  /// of it. Does nothing while another process does.
  void trim();

  /// All entries, in order of kind and key; what is no entry is left out.
  std::vector<EntryInfo> list() const;
  /// Removes all entries; their number. The folder stays.
  uint64_t clear();
  /// Writes all sound entries to a file; their number.
  llvm::Expected<uint64_t> exportTo(const std::string &path);
  /// Adds the entries of such a file, each of which is checked; their number. At the first that is damaged it ends.
  llvm::Expected<uint64_t> importFrom(const std::string &path);

  const std::string &getFolder() const { return folder; }
  uint64_t getLimitBytes() const { return limitBytes; }
  Counts getCounts() const;

private:
  std::string pathOf(Kind kind, const Key &key) const;
  std::optional<Entry> read(Kind kind, const Key &key) const;
  llvm::Error makeFolders(Kind kind, const Key &key);
  llvm::Error write(Kind kind, const Key &key, llvm::ArrayRef<llvm::StringRef> pieces);

  const std::string folder;
  const uint64_t limitBytes;
  mutable std::mutex mutex;
  Counts counts;
  std::string problem;
};

/// `500M`, `4GiB`, `1000000`: units of 1024, K, M, G and T, with or without B or iB; nullopt for anything else and 0.
std::optional<uint64_t> parseSize(llvm::StringRef text);

/// Whether the file is what Store::exportTo writes, as far as its first bytes say.
bool isBundle(const std::string &path);

} // namespace tc::cache

#endif // TC_CACHE_STORE_H
