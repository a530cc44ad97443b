//===- Link.cpp - lld in process ----------------------------------------------------------------------------------===//
//
// lld knows files only, so the objects are anonymous files in memory and the result comes through a pipe: nothing
// touches a disk. A pipe, because lld writes a regular file through a temporary one beside it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Internal.h"

#include "tc/Support/Threads.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace {

/// A file descriptor that is closed at its end; lld opens it by its path.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&) = delete;
  ~Descriptor() { close(); }
  void close() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }
  int get() const { return fd; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd); }

private:
  int fd;
};

Error systemError(const Twine &what) {
  std::error_code code(errno, std::generic_category());
  return createStringError(code, what + ": " + code.message());
}

/// The bytes as an anonymous file in memory.
Expected<Descriptor> makeFile(StringRef bytes) {
  Descriptor file(memfd_create("tc-object", MFD_CLOEXEC));
  if (file.get() < 0)
    return systemError("cannot make a file in memory for the linker");
  while (!bytes.empty()) {
    ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError("cannot write a file in memory for the linker");
    bytes = bytes.drop_front(size_t(written));
  }
  return file;
}

void readAll(int fd, std::string &bytes) {
  std::vector<char> buffer(1 << 16);
  for (;;) {
    ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0)
      bytes.append(buffer.data(), size_t(got));
    else if (got == 0 || errno != EINTR)
      return;
  }
}

} // namespace

Expected<std::vector<std::string>> tc::target::getUndefinedSymbols(StringRef bytes) {
  std::vector<std::string> names;
  auto object = object::ObjectFile::createELFObjectFile(MemoryBufferRef(bytes, "part"));
  if (!object)
    return object.takeError();
  for (const object::SymbolRef &symbol : (*object)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty())
      names.push_back(name->str());
  }
  return names;
}

Expected<std::string> tc::target::linkObjects(ArrayRef<std::string> objects) {
  // lld keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return systemError("cannot make a pipe for the linker");
  Descriptor readEnd(ends[0]), writeEnd(ends[1]);
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-nostdlib",
                                        "--no-undefined",
                                        "-z",
                                        "now",
                                        "-z",
                                        "separate-code",
                                        "-z",
                                        "norelro",
                                        "--hash-style=gnu",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "--threads=1",
                                        "-e",
                                        "tc_entry",
                                        "--no-dynamic-linker",
                                        "--pack-dyn-relocs=none",
                                        "-o",
                                        writeEnd.path()};
  std::vector<Descriptor> files;
  for (const std::string &object : objects) {
    Expected<Descriptor> file = makeFile(object);
    if (!file)
      return file.takeError();
    arguments.push_back(file->path());
    files.push_back(std::move(*file));
  }
  SmallVector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages, linked;
  raw_string_ostream stream(messages);
  std::unique_ptr<Thread> reader = Thread::start([&] { readAll(readEnd.get(), linked); });
  // Without a thread that reads, the pipe would fill up: then it is a file.
  SmallString<128> plain;
  if (!reader) {
    int fd;
    if (std::error_code error = sys::fs::createTemporaryFile("tc", "so", fd, plain))
      return createStringError(error, "cannot make a file for the linker: " + error.message());
    ::close(fd);
    pointers[llvm::find(arguments, "-o") - arguments.begin() + 1] = plain.c_str();
  }
  lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  // lld has closed its own descriptor of the pipe, so this is the end of the file.
  writeEnd.close();
  reader.reset();
  if (!plain.empty()) {
    if (ErrorOr<std::unique_ptr<MemoryBuffer>> file =
            MemoryBuffer::getFile(plain, /*IsText=*/false, /*RequiresNullTerminator=*/false))
      linked = (*file)->getBuffer().str();
    sys::fs::remove(plain);
  }
  if (result.retCode != 0) {
    std::string text = StringRef(stream.str()).split('\n').first.str();
    return createStringError("the linker failed: " + text);
  }
  return linked;
}
