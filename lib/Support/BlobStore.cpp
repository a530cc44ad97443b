//===- BlobStore.cpp - the bytes of constants ---------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/BlobStore.h"
#include "tc/Support/Hash.h"
#include "tc/Support/MappedFiles.h"
#include "tc/Support/SeededBlob.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

static std::mutex recorderMutex;
static tc::MappedFiles *recorder = nullptr;

tc::MappedFiles::MappedFiles() {
  std::lock_guard<std::mutex> lock(recorderMutex);
  recorder = this;
}

tc::MappedFiles::~MappedFiles() {
  std::lock_guard<std::mutex> lock(recorderMutex);
  recorder = nullptr;
}

Expected<std::unique_ptr<MemoryBuffer>> tc::mapFile(StringRef path) {
  auto fail = [&](const Twine &reason) {
    return createStringError(std::make_error_code(std::errc::io_error),
                             path + ": error: cannot read the file: " + reason);
  };
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status))
    return fail(error.message());
  // Devices and pipes have no size, and reading them may not end.
  if (!sys::fs::is_regular_file(status))
    return fail(sys::fs::is_directory(status) ? "it is a directory" : "it is not a regular file");
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(buffer.getError().message());
  std::lock_guard<std::mutex> lock(recorderMutex);
  if (recorder)
    recorder->paths.insert(path.str());
  return std::move(*buffer);
}

namespace tc {

StringRef BlobStore::insertUnique(StringRef name, Blob blob) {
  // Names that look like the key of an owned buffer would let a file pass for one.
  std::string key = isOwnedKey(name) || isSeededKey(name) ? ("file_" + name).str() : name.str();
  for (unsigned suffix = 1;; ++suffix) {
    auto [it, isNew] = blobs.try_emplace(key);
    if (isNew) {
      it->second = std::move(blob);
      return it->first();
    }
    key = (name + "#" + Twine(suffix)).str();
  }
}

Expected<StringRef> BlobStore::addFile(StringRef path) {
  SmallString<256> real;
  if (sys::fs::real_path(path, real))
    real = path;
  std::lock_guard<std::mutex> lock(mutex);
  auto known = keyOfPath.find(real);
  if (known != keyOfPath.end())
    return blobs.find(known->second)->first();
  Expected<std::unique_ptr<MemoryBuffer>> buffer = mapFile(path);
  if (!buffer)
    return buffer.takeError();
  Blob blob;
  blob.file = std::move(*buffer);
  StringRef key = insertUnique(sys::path::filename(path), std::move(blob));
  keyOfPath[real] = key.str();
  return key;
}

StringRef BlobStore::addBuffer(StringRef name, std::unique_ptr<MemoryBuffer> buffer) {
  std::lock_guard<std::mutex> lock(mutex);
  Blob blob;
  blob.file = std::move(buffer);
  return insertUnique(name, std::move(blob));
}

StringRef BlobStore::addOwned(std::vector<char> bytes) {
  std::string hash = contentHash(bytes);
  return addOwned(std::move(bytes), hash);
}

StringRef BlobStore::addOwned(std::vector<char> bytes, StringRef hash) {
  std::lock_guard<std::mutex> lock(mutex);
  auto [it, isNew] = blobs.try_emplace(("c_" + hash).str());
  if (isNew)
    it->second.owned = std::move(bytes);
  return it->first();
}

bool BlobStore::addAs(StringRef key, std::unique_ptr<MemoryBuffer> buffer) {
  std::lock_guard<std::mutex> lock(mutex);
  auto [it, isNew] = blobs.try_emplace(key);
  if (!isNew)
    return it->second.bytes() == ArrayRef<char>(buffer->getBufferStart(), buffer->getBufferSize());
  it->second.file = std::move(buffer);
  return true;
}

void BlobStore::setDataFile(std::unique_ptr<MemoryBuffer> buffer) {
  std::lock_guard<std::mutex> lock(mutex);
  dataFile = std::move(buffer);
}

bool BlobStore::contains(StringRef key) const {
  std::lock_guard<std::mutex> lock(mutex);
  return blobs.contains(key);
}

std::optional<ArrayRef<char>> BlobStore::lookup(StringRef key) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = blobs.find(key);
  if (it == blobs.end()) {
    if (dataFile && key.starts_with(kDataFilePrefix))
      return ArrayRef<char>(dataFile->getBufferStart(), dataFile->getBufferSize());
    return std::nullopt;
  }
  return it->second.bytes();
}

std::optional<ArrayRef<char>> BlobStore::bytes(StringRef key, uint64_t offset, uint64_t length) const {
  std::optional<ArrayRef<char>> blob = lookup(key);
  if (!blob || offset > blob->size() || length > blob->size() - offset)
    return std::nullopt;
  return blob->slice(offset, length);
}

} // namespace tc
