//===- Link.cpp - lld in process ----------------------------------------------------------------------------------===//
//
// lld reads and writes files only, so the objects pass through a temporary folder that is removed in any case.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Internal.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

Expected<std::string> tc::target::linkObjects(ArrayRef<std::string> objects) {
  // lld keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);

  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("tc-link", folder))
    return createStringError("cannot make a temporary folder: " + error.message());
  auto removeFolder = make_scope_exit([&] { sys::fs::remove_directories(folder); });
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
                                        "-o"};
  SmallString<128> output = folder;
  sys::path::append(output, "out.so");
  arguments.push_back(output.str().str());
  for (auto [i, object] : enumerate(objects)) {
    SmallString<128> path = folder;
    sys::path::append(path, "part" + std::to_string(i) + ".o");
    std::error_code error;
    raw_fd_ostream stream(path, error);
    if (!error) {
      stream << object;
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return createStringError("cannot write a temporary object file: " + error.message());
    arguments.push_back(path.str().str());
  }
  SmallVector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages;
  raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    std::string text = StringRef(stream.str()).split('\n').first.str();
    return createStringError("the linker failed: " + text);
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(output, /*IsText=*/false, false);
  if (!linked)
    return createStringError("cannot read the linked object: " + linked.getError().message());
  return (*linked)->getBuffer().str();
}
