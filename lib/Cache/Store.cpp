//===- Store.cpp - results of compiles, kept by what they were made of --------------------------------------------===//
//
// Files are laid out as ccache and Bazel's disk cache do: 256 folders, whose names begin the keys, times of change as
// times of use.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Cache/Store.h"

#include "Internal.h"

#include "tc/Support/Threads.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Threading.h"
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tc::cache;
using llvm::ArrayRef;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

static constexpr char kMagic[] = {'t', 'c', 'c', 'a', 'c', 'h', 'e', '1'};
/// What one thread hashes at a time, and how many do: more are as fast as memory is.
static constexpr size_t kPartBytes = size_t(4) << 20;
static constexpr unsigned kHashThreads = 4;
/// What a crash left in DIR/tmp is removed when it is so old: nobody writes an entry for so long.
static constexpr int64_t kStaleNs = int64_t(3600) * 1000000000;

namespace {

StringRef asText(ArrayRef<uint8_t> bytes) {
  return StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

int64_t toNs(const timespec &time) { return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec; }

int64_t nowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return toNs(now);
}

class File {
public:
  explicit File(int fd) : fd(fd) {}
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() {
    if (fd >= 0)
      ::close(fd);
  }
  int get() const { return fd; }

private:
  int fd;
};

bool writeAll(int fd, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t(1) << 30));
    if (written < 0 && errno != EINTR)
      return false;
    bytes = bytes.drop_front(written > 0 ? size_t(written) : 0);
  }
  return true;
}

bool makeFolder(const std::string &path) { return ::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST; }

/// Calls `visit` with the name and state of each regular file of a folder.
void visitFiles(const std::string &folder, llvm::function_ref<void(const std::string &, const struct stat &)> visit) {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error, /*follow_symlinks=*/false), end; !error && it != end;
       it.increment(error)) {
    struct stat info;
    if (::lstat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
      visit(it->path(), info);
  }
}

} // namespace

std::string tc::cache::toText(const Key &key) { return llvm::toHex(key, /*LowerCase=*/true); }

static std::optional<Key> parseKey(StringRef text) {
  std::string bytes;
  Key key;
  if (text.size() != 2 * key.size() || !llvm::tryGetFromHex(text, bytes))
    return std::nullopt;
  std::memcpy(key.data(), bytes.data(), key.size());
  return toText(key) == text ? std::optional(key) : std::nullopt;
}

KeyBuilder &KeyBuilder::add(StringRef name, StringRef value) {
  const uint64_t sizes[] = {name.size(), value.size()};
  hasher.update(StringRef(reinterpret_cast<const char *>(sizes), sizeof sizes));
  hasher.update(name);
  hasher.update(value);
  return *this;
}

KeyBuilder &KeyBuilder::add(StringRef name, const std::vector<std::string> &values) {
  add(name, uint64_t(values.size()));
  for (const std::string &value : values)
    add(name, value);
  return *this;
}

KeyBuilder &KeyBuilder::add(StringRef name, uint64_t value) { return add(name, StringRef(std::to_string(value))); }
KeyBuilder &KeyBuilder::add(StringRef name, const Key &key) { return add(name, asText(key)); }

static Key hashPart(StringRef bytes) {
  return llvm::BLAKE3::hash(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

static Key hashParts(ArrayRef<Key> parts, uint64_t sizeBytes) {
  KeyBuilder builder;
  builder.add("bytes", sizeBytes);
  for (const Key &part : parts)
    builder.add("part", part);
  return builder.finish();
}

Key tc::cache::hashBytes(StringRef bytes) {
  std::vector<Key> parts((bytes.size() + kPartBytes - 1) / kPartBytes);
  std::atomic<size_t> next = 0;
  const size_t threads =
      std::min<size_t>(parts.size(), llvm::hardware_concurrency(kHashThreads).compute_thread_count());
  runOnThreads(unsigned(threads), [&](unsigned) {
    for (size_t i = next++; i < parts.size(); i = next++)
      parts[i] = hashPart(bytes.substr(i * kPartBytes, kPartBytes));
  });
  return hashParts(parts, bytes.size());
}

/// The same of bytes that do not lie together.
static Key hashPieces(ArrayRef<StringRef> pieces) {
  if (pieces.size() == 1)
    return hashBytes(pieces.front());
  std::vector<Key> parts;
  llvm::BLAKE3 hasher;
  uint64_t size = 0;
  for (StringRef piece : pieces)
    while (!piece.empty()) {
      StringRef taken = piece.take_front(kPartBytes - size % kPartBytes);
      hasher.update(taken);
      size += taken.size();
      piece = piece.drop_front(taken.size());
      if (size % kPartBytes == 0) {
        parts.push_back(hasher.final<32>());
        hasher.init();
      }
    }
  if (size % kPartBytes != 0)
    parts.push_back(hasher.final<32>());
  return hashParts(parts, size);
}

StringRef tc::cache::getName(Kind kind) {
  constexpr StringRef names[kKindCount] = {"artifact", "files", "kernel"};
  return names[unsigned(kind)];
}

EntryHeader tc::cache::makeHeader(Kind kind, const Key &key, ArrayRef<StringRef> pieces) {
  EntryHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  for (StringRef piece : pieces)
    header.sizeBytes += piece.size();
  header.hash = KeyBuilder().add("kind", getName(kind)).add("key", key).add("content", hashPieces(pieces)).finish();
  return header;
}

StringRef tc::cache::getContent(StringRef file) { return file.drop_front(std::min(file.size(), sizeof(EntryHeader))); }

std::optional<StringRef> tc::cache::checkEntry(Kind kind, const Key &key, StringRef file) {
  if (file.size() < sizeof(EntryHeader))
    return std::nullopt;
  StringRef content = getContent(file);
  EntryHeader header = makeHeader(kind, key, content);
  return std::memcmp(&header, file.data(), sizeof header) == 0 ? std::optional(content) : std::nullopt;
}

Store::Store(std::string folder, uint64_t limitBytes) : folder(std::move(folder)), limitBytes(limitBytes) {}

std::string Store::pathOf(Kind kind, const Key &key) const {
  std::string text = toText(key);
  return (folder + "/" + getName(kind) + "/" + text.substr(0, 2) + "/" + text.substr(2)).str();
}

std::optional<Entry> Store::read(Kind kind, const Key &key) const {
  const std::string path = pathOf(kind, key);
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (file.get() < 0) {
    if (errno == ELOOP) // a link, which this store does not make
      ::unlink(path.c_str());
    return std::nullopt;
  }
  Entry entry;
  if (::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    auto buffer = llvm::MemoryBuffer::getOpenFile(file.get(), path, uint64_t(info.st_size),
                                                  /*RequiresNullTerminator=*/false);
    if (!buffer)
      return std::nullopt; // no memory, or an error of the disk: the entry may be sound
    entry.file = std::move(*buffer);
    entry.content = getContent(entry.file->getBuffer());
    return entry;
  }
  ::unlink(path.c_str());
  return std::nullopt;
}

std::optional<Entry> Store::open(Kind kind, const Key &key) {
  std::optional<Entry> entry = read(kind, key);
  if (!entry) {
    std::lock_guard<std::mutex> lock(mutex);
    ++counts.misses[unsigned(kind)];
  }
  return entry;
}

bool Store::check(Kind kind, const Key &key, const Entry &entry) {
  const bool isSound = checkEntry(kind, key, entry.file->getBuffer()).has_value();
  const std::string path = pathOf(kind, key);
  if (isSound)
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); // fails in a folder of others, which only they clean up
  else
    ::unlink(path.c_str());
  std::lock_guard<std::mutex> lock(mutex);
  ++(isSound ? counts.hits : counts.misses)[unsigned(kind)];
  return isSound;
}

std::optional<Entry> Store::load(Kind kind, const Key &key) {
  std::optional<Entry> entry = open(kind, key);
  if (entry && !check(kind, key, *entry))
    return std::nullopt;
  return entry;
}

Counts Store::getCounts() const {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

static Error cannotWrite(const Twine &folder) {
  std::error_code code(errno, std::generic_category());
  return llvm::createStringError(code, folder + ": the cache cannot be written: " + code.message());
}

Error Store::makeFolders(Kind kind, const Key &key) {
  const std::string ofKind = (folder + "/" + getName(kind)).str(), tag = folder + "/CACHEDIR.TAG";
  if (std::error_code error = llvm::sys::fs::create_directories(folder)) {
    errno = error.value();
    return cannotWrite(folder);
  }
  if (!makeFolder(folder + "/tmp") || !makeFolder(ofKind) || !makeFolder(ofKind + "/" + toText(key).substr(0, 2)))
    return cannotWrite(folder);
  File file(::open(tag.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() >= 0 && !writeAll(file.get(), "Signature: 8a477f597d28d172789f06886806bc55\n"
                                               "# A compile cache of tc; tc-cache shows what is in it.\n"))
    return cannotWrite(folder);
  return Error::success();
}

Error Store::write(Kind kind, const Key &key, ArrayRef<StringRef> pieces) {
  if (Error error = makeFolders(kind, key))
    return error;
  static std::atomic<unsigned> number = 0;
  // Processes of several machines or containers may share the folder, and then have the same numbers.
  const std::string name =
      folder + "/tmp/" + std::to_string(::getpid()) + "-" + std::to_string(number++) + "-" + std::to_string(nowNs());
  {
    File file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    EntryHeader header = {};
    auto writeHeader = [&] {
      return ::lseek(file.get(), 0, SEEK_SET) == 0 &&
             writeAll(file.get(), StringRef(reinterpret_cast<const char *>(&header), sizeof header));
    };
    bool written = file.get() >= 0 && writeHeader();
    uint64_t size = 0;
    for (StringRef piece : pieces)
      size += piece.size();
    // The header holds a hash of all, which takes about as long as to write it.
    const unsigned threads = size >= kPartBytes ? 2 : 1;
    runOnThreads(threads, [&](unsigned number) {
      if (number == 0)
        for (StringRef piece : pieces)
          written = written && writeAll(file.get(), piece);
      if (number + 1 == threads)
        header = makeHeader(kind, key, pieces);
    });
    written = written && writeHeader();
    if (!written) {
      Error error = cannotWrite(folder);
      ::unlink(name.c_str());
      return error;
    }
  }
  if (::rename(name.c_str(), pathOf(kind, key).c_str()) == 0)
    return Error::success();
  Error error = cannotWrite(folder);
  ::unlink(name.c_str());
  return error;
}

void Store::save(Kind kind, const Key &key, ArrayRef<StringRef> pieces) {
  uint64_t size = sizeof(EntryHeader);
  for (StringRef piece : pieces)
    size += piece.size();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!problem.empty() || size > limitBytes)
      return;
  }
  if (Error error = write(kind, key, pieces)) {
    std::lock_guard<std::mutex> lock(mutex);
    problem = llvm::toString(std::move(error));
  }
}

std::string Store::getProblem() const {
  std::lock_guard<std::mutex> lock(mutex);
  return problem;
}

std::vector<EntryInfo> Store::list() const {
  std::vector<EntryInfo> entries;
  constexpr char digits[] = "0123456789abcdef";
  for (unsigned i = 0; i < kKindCount; ++i)
    for (unsigned first = 0; first < 256; ++first) {
      const std::string start = {digits[first / 16], digits[first % 16]};
      visitFiles((folder + "/" + getName(Kind(i)) + "/" + start).str(),
                 [&](const std::string &path, const struct stat &info) {
                   if (std::optional<Key> key = parseKey(start + path.substr(path.rfind('/') + 1)))
                     entries.push_back({Kind(i), *key, uint64_t(info.st_size), toNs(info.st_mtim)});
                 });
    }
  llvm::sort(entries,
             [](const EntryInfo &a, const EntryInfo &b) { return std::tie(a.kind, a.key) < std::tie(b.kind, b.key); });
  return entries;
}

void Store::trim() {
  File lock(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return;
  const int64_t now = nowNs();
  visitFiles(folder + "/tmp", [&](const std::string &path, const struct stat &info) {
    if (now - toNs(info.st_mtim) > kStaleNs)
      ::unlink(path.c_str());
  });
  std::vector<EntryInfo> entries = list();
  uint64_t total = 0;
  for (const EntryInfo &entry : entries)
    total += entry.sizeBytes;
  if (total <= limitBytes)
    return;
  llvm::stable_sort(entries, [](const EntryInfo &a, const EntryInfo &b) { return a.usedNs < b.usedNs; });
  for (const EntryInfo &entry : entries) {
    if (total <= limitBytes / 10 * 9)
      return;
    if (::unlink(pathOf(entry.kind, entry.key).c_str()) == 0 || errno == ENOENT)
      total -= entry.sizeBytes;
  }
}

uint64_t Store::clear() {
  uint64_t count = 0;
  for (const EntryInfo &entry : list())
    count += ::unlink(pathOf(entry.kind, entry.key).c_str()) == 0;
  return count;
}

std::optional<uint64_t> tc::cache::parseSize(StringRef text) {
  uint64_t count = 0;
  if (text.consumeInteger(10, count) || count == 0)
    return std::nullopt;
  if (text.empty())
    return count;
  const size_t unit = StringRef("KMGT").find(text.front());
  text = text.drop_front();
  if (unit == StringRef::npos || !(text.empty() || text == "B" || text == "iB"))
    return std::nullopt;
  const unsigned shift = 10 * (unsigned(unit) + 1);
  return count > UINT64_MAX >> shift ? std::nullopt : std::optional(count << shift);
}
