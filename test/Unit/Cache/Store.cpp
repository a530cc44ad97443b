//===- Store.cpp - the compile cache keeps what it was given, and nothing else ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Cache/Store.h"

#include "llvm/Support/FileSystem.h"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tc::cache;

namespace {

/// A folder that is gone at the end.
struct Folder {
  Folder() {
    char name[] = "/tmp/tc-cache-XXXXXX";
    REQUIRE(::mkdtemp(name));
    path = name;
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string path;
};

Key keyOf(unsigned number) { return KeyBuilder().add("number", uint64_t(number)).finish(); }

bool save(Store &store, Kind kind, const Key &key, const std::string &content) {
  store.save(kind, key, llvm::StringRef(content));
  return store.getProblem().empty();
}

std::string load(Store &store, Kind kind, const Key &key) {
  std::optional<Entry> entry = store.load(kind, key);
  return entry ? entry->content.str() : "(none)";
}

std::string pathOf(const Store &store, Kind kind, const Key &key) {
  std::string text = toText(key);
  return store.getFolder() + "/" + getName(kind).str() + "/" + text.substr(0, 2) + "/" + text.substr(2);
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// The time of the last use, in seconds before now.
void setAge(const std::string &path, int64_t seconds) {
  const timespec time = {::time(nullptr) - seconds, 0}, times[] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

uint64_t total(const Store &store) {
  uint64_t bytes = 0;
  for (const EntryInfo &info : store.list())
    bytes += info.sizeBytes;
  return bytes;
}

} // namespace

TEST_CASE("keys tell names, values and order apart") {
  auto key = [](auto... values) {
    KeyBuilder builder;
    (builder.add("value", llvm::StringRef(values)), ...);
    return builder.finish();
  };
  CHECK(key("a", "b") == key("a", "b"));
  CHECK(key("a", "b") != key("b", "a"));
  CHECK(key("ab", "") != key("a", "b"));
  CHECK(key("ab") != key("ab", ""));
  CHECK(KeyBuilder().add("x", llvm::StringRef("1")).finish() != KeyBuilder().add("y", llvm::StringRef("1")).finish());
  CHECK(getProgramKey() == getProgramKey());
}

TEST_CASE("an entry is what was saved") {
  Folder folder;
  Store store(folder.path + "/below/it");
  CHECK(load(store, Kind::Kernel, keyOf(1)) == "(none)");
  const std::string zeros(3, '\0');
  REQUIRE(save(store, Kind::Kernel, keyOf(1), "object" + zeros));
  REQUIRE(save(store, Kind::Artifact, keyOf(1), ""));
  CHECK(load(store, Kind::Kernel, keyOf(1)) == "object" + zeros);
  CHECK(load(store, Kind::Artifact, keyOf(1)) == "");
  CHECK(load(store, Kind::Kernel, keyOf(2)) == "(none)");
  REQUIRE(save(store, Kind::Kernel, keyOf(1), "another"));
  CHECK(load(store, Kind::Kernel, keyOf(1)) == "another");
  CHECK(store.list().size() == 2);
  CHECK(store.getCounts().hits[unsigned(Kind::Kernel)] == 2);
  CHECK(store.getCounts().misses[unsigned(Kind::Kernel)] == 2);
  CHECK(readFile(folder.path + "/below/it/CACHEDIR.TAG").find("Signature: 8a477f597d28d172789f06886806bc55\n") == 0);
  CHECK(store.clear() == 2);
  CHECK(store.list().empty());
}

TEST_CASE("an entry that is damaged is removed") {
  Folder folder;
  Store store(folder.path);
  const Key key = keyOf(1);
  const std::string path = pathOf(store, Kind::Kernel, key);
  REQUIRE(save(store, Kind::Kernel, key, "some content"));
  const std::string sound = readFile(path);
  // Each byte of the header and of the content.
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string bytes = sound;
    bytes[i] = char(bytes[i] ^ 0x20);
    writeFile(path, bytes);
    CHECK(load(store, Kind::Kernel, key) == "(none)");
    CHECK(!llvm::sys::fs::exists(path));
  }
  for (size_t size : {size_t(0), size_t(7), size_t(63), size_t(64), sound.size() - 1}) {
    writeFile(path, sound.substr(0, size));
    CHECK(load(store, Kind::Kernel, key) == "(none)");
    CHECK(!llvm::sys::fs::exists(path));
  }
  writeFile(path, sound + "x");
  CHECK(load(store, Kind::Kernel, key) == "(none)");
  // Sound, but of another key or kind.
  REQUIRE(save(store, Kind::Artifact, key, "some content"));
  REQUIRE(save(store, Kind::Kernel, keyOf(2), "some content"));
  for (const std::string &other : {pathOf(store, Kind::Artifact, key), pathOf(store, Kind::Kernel, keyOf(2))}) {
    writeFile(path, readFile(other));
    CHECK(load(store, Kind::Kernel, key) == "(none)");
  }
  writeFile(path, sound);
  CHECK(load(store, Kind::Kernel, key) == "some content");
}

TEST_CASE("links and what is no file are no entries") {
  Folder folder;
  Store store(folder.path);
  const Key key = keyOf(1);
  const std::string path = pathOf(store, Kind::Kernel, key), other = folder.path + "/other";
  REQUIRE(save(store, Kind::Kernel, key, "content"));
  REQUIRE(::rename(path.c_str(), other.c_str()) == 0);
  REQUIRE(::symlink(other.c_str(), path.c_str()) == 0);
  CHECK(load(store, Kind::Kernel, key) == "(none)");
  CHECK(llvm::sys::fs::exists(other));
  // Saved in place of a link, not where it leads to.
  writeFile(other, "mine");
  REQUIRE(::symlink(other.c_str(), path.c_str()) == 0);
  REQUIRE(save(store, Kind::Kernel, key, "content"));
  CHECK(readFile(other) == "mine");
  CHECK(load(store, Kind::Kernel, key) == "content");
  // A pipe would wait for a writer.
  REQUIRE(::unlink(path.c_str()) == 0);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(load(store, Kind::Kernel, key) == "(none)");
  // The folder itself may be one.
  const std::string link = folder.path + "-link";
  REQUIRE(::symlink(folder.path.c_str(), link.c_str()) == 0);
  Store linked(link);
  REQUIRE(save(linked, Kind::Kernel, key, "content"));
  CHECK(load(store, Kind::Kernel, key) == "content");
  ::unlink(link.c_str());
}

TEST_CASE("what was not used for longest is removed") {
  Folder folder;
  Store store(folder.path, /*limitBytes=*/4000);
  const std::string content(1000 - 64, 'x');
  for (unsigned i = 0; i < 6; ++i) {
    REQUIRE(save(store, Kind::Kernel, keyOf(i), content));
    setAge(pathOf(store, Kind::Kernel, keyOf(i)), 100 - i);
  }
  CHECK(load(store, Kind::Kernel, keyOf(0)) == content); // used now
  store.trim();
  CHECK(total(store) == 3000);
  CHECK(load(store, Kind::Kernel, keyOf(0)) == content);
  CHECK(load(store, Kind::Kernel, keyOf(5)) == content);
  CHECK(load(store, Kind::Kernel, keyOf(4)) == content);
  CHECK(load(store, Kind::Kernel, keyOf(3)) == "(none)");
  // Larger than all may be together.
  REQUIRE(save(store, Kind::Kernel, keyOf(7), std::string(4000, 'x')));
  CHECK(load(store, Kind::Kernel, keyOf(7)) == "(none)");
  // What a crash has left, and what somebody writes.
  writeFile(folder.path + "/tmp/1-0-0", "left");
  writeFile(folder.path + "/tmp/2-0-0", "being written");
  setAge(folder.path + "/tmp/1-0-0", 4000);
  store.trim();
  CHECK(!llvm::sys::fs::exists(folder.path + "/tmp/1-0-0"));
  CHECK(llvm::sys::fs::exists(folder.path + "/tmp/2-0-0"));
}

TEST_CASE("an entry that is mapped outlives its removal") {
  Folder folder;
  Store store(folder.path);
  const std::string content(100000, 'x');
  REQUIRE(save(store, Kind::Artifact, keyOf(1), content));
  std::optional<Entry> entry = store.load(Kind::Artifact, keyOf(1));
  REQUIRE(entry);
  REQUIRE(save(store, Kind::Artifact, keyOf(1), std::string(100000, 'y')));
  CHECK(store.clear() == 1);
  CHECK(entry->content == content);
}

TEST_CASE("a folder that cannot be written is said once") {
  Folder folder;
  writeFile(folder.path + "/file", "");
  Store store(folder.path + "/file");
  CHECK(!save(store, Kind::Kernel, keyOf(1), "content"));
  CHECK(store.getProblem().find(folder.path + "/file: the cache cannot be written: ") == 0);
  CHECK(!save(store, Kind::Kernel, keyOf(2), "content"));
  CHECK(load(store, Kind::Kernel, keyOf(1)) == "(none)");
  CHECK(store.list().empty());
  store.trim();
}

TEST_CASE("processes share a folder, and may be killed") {
  Folder folder;
  constexpr unsigned kProcesses = 6, kEntries = 40;
  auto contentOf = [](unsigned i) { return std::string(2000 + 100 * i, char('a' + i % 26)); };
  std::vector<pid_t> children;
  for (unsigned process = 0; process < kProcesses; ++process) {
    pid_t child = ::fork();
    if (child == 0) {
      Store store(folder.path, /*limitBytes=*/60000);
      for (unsigned round = 0; round < 20; ++round)
        for (unsigned i = 0; i < kEntries; ++i) {
          const unsigned number = (i * 7 + process) % kEntries;
          if (!save(store, Kind::Kernel, keyOf(number), contentOf(number)))
            ::_exit(1);
          const std::string found = load(store, Kind::Kernel, keyOf(number));
          if (found != "(none)" && found != contentOf(number))
            ::_exit(2);
          if (i % 10 == 0)
            store.trim();
        }
      ::_exit(0);
    }
    REQUIRE(child > 0);
    children.push_back(child);
  }
  ::usleep(3000);
  ::kill(children.front(), SIGKILL);
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    REQUIRE(::waitpid(children[i], &status, 0) == children[i]);
    if (i > 0)
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  Store store(folder.path, /*limitBytes=*/60000);
  for (const EntryInfo &info : store.list())
    CHECK(store.load(info.kind, info.key).has_value());
  store.trim();
  CHECK(total(store) <= 60000);
}

TEST_CASE("a bundle carries entries to another folder") {
  Folder folder;
  Store from(folder.path + "/from"), to(folder.path + "/to");
  const std::string bundle = folder.path + "/bundle";
  REQUIRE(save(from, Kind::Artifact, keyOf(1), "one"));
  REQUIRE(save(from, Kind::Kernel, keyOf(2), "two"));
  REQUIRE(save(from, Kind::Kernel, keyOf(3), "three"));
  // A damaged entry stays behind.
  writeFile(pathOf(from, Kind::Kernel, keyOf(3)), "nothing");
  llvm::Expected<uint64_t> count = from.exportTo(bundle);
  REQUIRE(bool(count));
  CHECK(*count == 2);
  count = to.importFrom(bundle);
  REQUIRE(bool(count));
  CHECK(*count == 2);
  CHECK(load(to, Kind::Artifact, keyOf(1)) == "one");
  CHECK(load(to, Kind::Kernel, keyOf(2)) == "two");
  CHECK(to.list().size() == 2);
  // Each byte that differs is found, as is each end but those between entries.
  const std::string sound = readFile(bundle);
  auto isRefused = [&](const std::string &bytes) {
    writeFile(bundle, bytes);
    Store into(folder.path + "/into");
    llvm::Expected<uint64_t> added = into.importFrom(bundle);
    const bool refused = !added;
    llvm::consumeError(added.takeError());
    return refused;
  };
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string bytes = sound;
    bytes[i] = char(bytes[i] ^ 0x01);
    CHECK(isRefused(bytes));
  }
  const size_t first = 8 + 48 + 64 + 3;
  for (size_t size = 0; size < sound.size(); ++size)
    CHECK(isRefused(sound.substr(0, size)) == (size != 8 && size != first));
}

TEST_CASE("sizes are read with their units") {
  CHECK(parseSize("1000") == 1000);
  CHECK(parseSize("4K") == 4096);
  CHECK(parseSize("500M") == uint64_t(500) << 20);
  CHECK(parseSize("4GB") == uint64_t(4) << 30);
  CHECK(parseSize("2TiB") == uint64_t(2) << 40);
  for (const char *wrong : {"", "0", "G", "-1", "4X", "4Gi", "4 G", "1.5G", "99999999999T"})
    CHECK(!parseSize(wrong));
}
