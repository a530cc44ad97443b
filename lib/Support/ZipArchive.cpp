//===- ZipArchive.cpp - read-only view of a stored zip archive ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ZipArchive.h"

#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace tc;

namespace {
uint16_t read16(StringRef bytes, uint64_t at) { return support::endian::read16le(bytes.data() + at); }
uint32_t read32(StringRef bytes, uint64_t at) { return support::endian::read32le(bytes.data() + at); }
uint64_t read64(StringRef bytes, uint64_t at) { return support::endian::read64le(bytes.data() + at); }
Error broken(const Twine &what) { return createStringError("the zip archive is damaged: " + what); }
} // namespace

Expected<ZipArchive> ZipArchive::open(StringRef bytes) {
  constexpr uint64_t kEnd = 22;
  if (bytes.size() < kEnd || !bytes.starts_with("PK"))
    return createStringError("not a zip archive");
  // The end record is last, but for a comment of at most 64 KiB.
  uint64_t at = bytes.size() - kEnd;
  uint64_t lowest = at > 0xffff ? at - 0xffff : 0;
  while (read32(bytes, at) != 0x06054b50) {
    if (at == lowest)
      return broken("it has no directory; the file may be truncated");
    --at;
  }
  uint64_t count = read16(bytes, at + 10), size = read32(bytes, at + 12), offset = read32(bytes, at + 16);
  if (count == 0xffff || size == 0xffffffff || offset == 0xffffffff) {
    if (at < 20 || read32(bytes, at - 20) != 0x07064b50)
      return broken("the zip64 locator is missing");
    uint64_t end = read64(bytes, at - 20 + 8);
    if (end > bytes.size() || bytes.size() - end < 56 || read32(bytes, end) != 0x06064b50)
      return broken("the zip64 directory is outside of the file");
    count = read64(bytes, end + 32);
    size = read64(bytes, end + 40);
    offset = read64(bytes, end + 48);
  }
  if (offset > bytes.size() || size > bytes.size() - offset)
    return broken("its directory is outside of the file");
  ZipArchive archive;
  archive.bytes = bytes;
  uint64_t limit = offset + size;
  for (uint64_t i = 0; i < count; ++i) {
    if (limit - offset < 46 || read32(bytes, offset) != 0x02014b50)
      return broken("entry " + Twine(i) + " of its directory is not readable");
    uint16_t flags = read16(bytes, offset + 8), method = read16(bytes, offset + 10);
    uint64_t packed = read32(bytes, offset + 20), plain = read32(bytes, offset + 24);
    uint64_t nameSize = read16(bytes, offset + 28), extraSize = read16(bytes, offset + 30);
    uint64_t commentSize = read16(bytes, offset + 32), header = read32(bytes, offset + 42);
    if (limit - offset - 46 < nameSize + extraSize + commentSize)
      return broken("entry " + Twine(i) + " of its directory is cut off");
    StringRef name = bytes.substr(offset + 46, nameSize);
    StringRef extra = bytes.substr(offset + 46 + nameSize, extraSize);
    while (extra.size() >= 4) { // zip64 sizes, in this order, only where the short field is full
      uint64_t fieldSize = read16(extra, 2);
      if (fieldSize > extra.size() - 4)
        break;
      if (read16(extra, 0) == 1) {
        StringRef field = extra.substr(4, fieldSize);
        for (uint64_t *value : {&plain, &packed, &header}) {
          if (*value != 0xffffffff)
            continue;
          if (field.size() < 8)
            return broken("entry \"" + name + "\" lacks its zip64 size");
          *value = read64(field, 0);
          field = field.drop_front(8);
        }
      }
      extra = extra.drop_front(4 + fieldSize);
    }
    if (method != 0 || packed != plain || (flags & 1)) {
      // Its name still tells what the archive is.
      if (archive.packedName.empty())
        archive.packedName = name;
      archive.members[name] = {};
      offset += 46 + nameSize + extraSize + commentSize;
      continue;
    }
    if (header > bytes.size() || bytes.size() - header < 30 || read32(bytes, header) != 0x04034b50)
      return broken("member \"" + name + "\" is outside of the file");
    uint64_t data = header + 30 + read16(bytes, header + 26) + read16(bytes, header + 28);
    if (data > bytes.size() || plain > bytes.size() - data)
      return broken("member \"" + name + "\" is outside of the file");
    archive.members[name] = {data, plain};
    offset += 46 + nameSize + extraSize + commentSize;
  }
  return archive;
}

const ZipArchive::Member *ZipArchive::find(StringRef name) const {
  auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}

StringRef ZipArchive::findSuffix(StringRef suffix) const {
  StringRef best;
  for (const auto &entry : members)
    if (entry.first().ends_with(suffix) && (best.empty() || entry.first() < best))
      best = entry.first();
  return best;
}
