//===- BlobStore.h - the bytes of constants ------------------------------------------------------------*- C++ -*-===//
//
// Constants of a model are hundreds of megabytes and never become attribute bytes: an attribute (#tc.data) names a
// blob, an offset and a length, and the store has the bytes. A blob is a mapped file (the model, its external data, a
// .mlir.data file) or a buffer that the compiler made (a folded constant). Blobs live as long as the store, which lives
// as long as the MLIRContext; there is no eviction. Bytes of mapped files have any alignment: read them with memcpy.
//
// Keys are deterministic and hold no path: the file's name, with "#1", "#2" appended where two files of one name are
// mapped, and "c_<content hash>" for buffers, so that equal buffers are one blob. A buffer's key never names a file.
//
// Thread safe. Files must not shrink while they are mapped.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_BLOBSTORE_H
#define TC_SUPPORT_BLOBSTORE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tc {

/// Maps a regular file. The error is "<path>: error: cannot read the file: <reason>".
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> mapFile(llvm::StringRef path);

/// Keyed byte ranges; see the head of this file. Returned StringRefs and ArrayRefs stay valid as long as the store.
class BlobStore {
public:
  BlobStore() = default;
  BlobStore(const BlobStore &) = delete;
  BlobStore &operator=(const BlobStore &) = delete;

  /// Maps the file (once per path) and returns its key.
  llvm::Expected<llvm::StringRef> addFile(llvm::StringRef path);
  /// Adds bytes already in memory under a key derived from `name` as for files, and returns the key.
  llvm::StringRef addBuffer(llvm::StringRef name, std::unique_ptr<llvm::MemoryBuffer> buffer);
  /// Takes the bytes and returns the key of an owned blob with this content.
  llvm::StringRef addOwned(std::vector<char> bytes);
  /// The same, with the content hash already known.
  llvm::StringRef addOwned(std::vector<char> bytes, llvm::StringRef hash);
  /// Adds the bytes under exactly this key. False if the key already names other bytes.
  bool addAs(llvm::StringRef key, std::unique_ptr<llvm::MemoryBuffer> buffer);

  /// A file of constants (".mlir.data") that answers for all keys "data_..." which the store does not have.
  void setDataFile(std::unique_ptr<llvm::MemoryBuffer> buffer);
  static constexpr llvm::StringLiteral kDataFilePrefix = "data_";

  bool contains(llvm::StringRef key) const;
  /// The whole blob; nullopt if there is none of this key.
  std::optional<llvm::ArrayRef<char>> lookup(llvm::StringRef key) const;
  /// A range of a blob; nullopt if there is no such blob or the range leaves it.
  std::optional<llvm::ArrayRef<char>> bytes(llvm::StringRef key, uint64_t offset, uint64_t length) const;
  /// Whether the key is of a buffer of addOwned.
  static bool isOwnedKey(llvm::StringRef key) { return key.starts_with("c_"); }

private:
  struct Blob {
    std::unique_ptr<llvm::MemoryBuffer> file;
    std::vector<char> owned;
    llvm::ArrayRef<char> bytes() const {
      return file ? llvm::ArrayRef<char>(file->getBufferStart(), file->getBufferSize()) : llvm::ArrayRef<char>(owned);
    }
  };
  llvm::StringRef insertUnique(llvm::StringRef name, Blob blob);

  mutable std::mutex mutex;
  llvm::StringMap<Blob> blobs;
  llvm::StringMap<std::string> keyOfPath;
  std::unique_ptr<llvm::MemoryBuffer> dataFile;
};

} // namespace tc

#endif // TC_SUPPORT_BLOBSTORE_H
