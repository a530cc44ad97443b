//===- Bundle.cpp - entries of a cache in one file ----------------------------------------------------------------===//
//
// A bundle is a head, then for each entry a record and the bytes of its file, to the end. All numbers are those of
// x86-64. What is read is checked as entries are, since it comes from elsewhere.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Internal.h"

#include "tc/Support/BlobStore.h"
#include "tc/Support/OutputFile.h"

#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace tc::cache;
using llvm::StringRef;

namespace {

constexpr char kBundleMagic[] = {'t', 'c', 'b', 'u', 'n', 'd', 'l', '1'};

struct Record {
  uint32_t kind;
  uint32_t zero;
  Key key;
  uint64_t sizeBytes; ///< of the entry's file
};
static_assert(sizeof(Record) == 48);

} // namespace

llvm::Expected<uint64_t> Store::exportTo(const std::string &path) {
  uint64_t count = 0;
  llvm::Error error = writeOutputFile(path, [&](llvm::raw_ostream &stream) {
    stream.write(kBundleMagic, sizeof kBundleMagic);
    for (const EntryInfo &info : list()) {
      std::optional<Entry> entry = read(info.kind, info.key);
      if (!entry || !checkEntry(info.kind, info.key, entry->file->getBuffer()))
        continue;
      StringRef file = entry->file->getBuffer();
      const Record record = {uint32_t(info.kind), 0, info.key, file.size()};
      stream.write(reinterpret_cast<const char *>(&record), sizeof record);
      stream << file;
      ++count;
    }
  });
  if (error)
    return std::move(error);
  return count;
}

bool tc::cache::isBundle(const std::string &path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
  if (!file)
    llvm::consumeError(file.takeError());
  return file && (*file)->getBuffer().starts_with(StringRef(kBundleMagic, sizeof kBundleMagic));
}

llvm::Expected<uint64_t> Store::importFrom(const std::string &path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
  if (!file)
    return file.takeError();
  StringRef rest = (*file)->getBuffer();
  if (!rest.consume_front(StringRef(kBundleMagic, sizeof kBundleMagic)))
    return llvm::createStringError(path + ": error: this is no bundle of a compile cache; give a file that tc-cache "
                                          "export wrote");
  uint64_t count = 0;
  while (!rest.empty()) {
    auto damaged = [&](const llvm::Twine &what) {
      return llvm::createStringError(path + ": error: " + what + " of entry " + llvm::Twine(count) +
                                     ", so that it and what follows is left out; write the bundle again");
    };
    Record record;
    if (rest.size() < sizeof record)
      return damaged("the bundle ends in the head");
    std::memcpy(&record, rest.data(), sizeof record);
    rest = rest.drop_front(sizeof record);
    if (record.kind >= kKindCount || record.zero != 0)
      return damaged("the bundle does not know the kind");
    if (record.sizeBytes > rest.size())
      return damaged("the bundle ends in the bytes");
    const Kind kind = Kind(record.kind);
    std::optional<StringRef> content = checkEntry(kind, record.key, rest.take_front(record.sizeBytes));
    if (!content)
      return damaged("the bundle does not hold the bytes");
    save(kind, record.key, *content);
    if (std::string problem = getProblem(); !problem.empty())
      return llvm::createStringError(problem);
    rest = rest.drop_front(record.sizeBytes);
    ++count;
  }
  trim();
  return count;
}
