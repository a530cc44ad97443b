//===- ZipArchive.cpp - the one reader of zip archives ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ZipArchive.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <zlib.h>

using namespace tc;

namespace {

using Text = std::string_view;

/// A number of the archive, which is little-endian as every machine that tc runs on is.
template <typename T> T load(Text bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool inRange(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

std::nullopt_t broken(std::string &error, const std::string &what) {
  error = "the zip archive is damaged: " + what;
  return std::nullopt;
}

/// Names are bytes that somebody else wrote, and stand in messages.
std::string quoted(Text name) {
  std::string result = "\"";
  for (char c : name.substr(0, 200))
    result += c >= 0 && (c < ' ' || c == 127) ? '?' : c;
  return result + (name.size() > 200 ? "...\"" : "\"");
}

constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint64_t kEndSize = 22, kEntrySize = 46, kHeaderSize = 30, kEnd64Size = 56, kLocatorSize = 20;
/// Deflate packs 1032 to 1 at most (a match of 258 bytes by two bits), so that a larger claim is a lie.
constexpr uint64_t kMaxRatio = 1040;

struct Directory {
  uint64_t count, offset, size;
};

std::optional<Directory> findDirectory(Text bytes, std::string &error) {
  if (bytes.size() < kEndSize || bytes.substr(0, 2) != "PK") {
    error = "not a zip archive";
    return std::nullopt;
  }
  // The end record is last, but for a comment of at most 64 KiB.
  uint64_t at = bytes.size() - kEndSize;
  const uint64_t lowest = at > 0xffff ? at - 0xffff : 0;
  while (load<uint32_t>(bytes, at) != 0x06054b50) {
    if (at == lowest)
      return broken(error, "it has no directory; the file may be cut off");
    --at;
  }
  Directory found = {load<uint16_t>(bytes, at + 10), load<uint32_t>(bytes, at + 16), load<uint32_t>(bytes, at + 12)};
  const bool isFull = found.count == 0xffff || found.size == 0xffffffff || found.offset == 0xffffffff;
  if (isFull && at >= kLocatorSize && load<uint32_t>(bytes, at - kLocatorSize) == 0x07064b50) {
    const uint64_t end = load<uint64_t>(bytes, at - kLocatorSize + 8);
    if (!inRange(end, kEnd64Size, bytes.size()) || load<uint32_t>(bytes, end) != 0x06064b50)
      return broken(error, "its zip64 directory is outside of the file");
    found = {load<uint64_t>(bytes, end + 32), load<uint64_t>(bytes, end + 48), load<uint64_t>(bytes, end + 40)};
  } else if (found.size == 0xffffffff || found.offset == 0xffffffff) {
    return broken(error, "its zip64 directory is missing");
  }
  if (!inRange(found.offset, found.size, bytes.size()))
    return broken(error, "its directory is outside of the file");
  return found;
}

/// Takes the 64-bit values of a zip64 extra field for those that are all ones in the entry, in this order.
bool applyZip64(Text extra, ZipArchive::Member &member) {
  for (uint64_t at = 0; inRange(at, 4, extra.size());) {
    const uint16_t id = load<uint16_t>(extra, at), size = load<uint16_t>(extra, at + 2);
    at += 4;
    if (!inRange(at, size, extra.size()))
      break;
    if (id == 1) {
      Text field = extra.substr(at, size);
      for (uint64_t *value : {&member.size, &member.packedSize, &member.header}) {
        if (*value != 0xffffffff)
          continue;
        if (field.size() < 8)
          return false;
        *value = load<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return true;
    }
    at += size;
  }
  return true;
}

} // namespace

uint32_t tc::zipChecksum(std::string_view bytes) {
  return uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

std::optional<ZipArchive> ZipArchive::open(std::string_view bytes, std::string &error) {
  std::optional<Directory> directory = findDirectory(bytes, error);
  if (!directory)
    return std::nullopt;
  ZipArchive archive;
  archive.bytes = bytes;
  uint64_t at = directory->offset;
  const uint64_t limit = directory->offset + directory->size;
  if (directory->count > directory->size / kEntrySize)
    return broken(error, "its directory has no room for its " + std::to_string(directory->count) + " members");
  archive.all.reserve(directory->count);
  for (uint64_t i = 0; i < directory->count; ++i) {
    if (!inRange(at, kEntrySize, limit) || load<uint32_t>(bytes, at) != 0x02014b50)
      return broken(error, "entry " + std::to_string(i) + " of its directory is not readable");
    const uint64_t nameSize = load<uint16_t>(bytes, at + 28), extraSize = load<uint16_t>(bytes, at + 30),
                   commentSize = load<uint16_t>(bytes, at + 32);
    if (!inRange(at + kEntrySize, nameSize + extraSize + commentSize, limit))
      return broken(error, "entry " + std::to_string(i) + " of its directory is cut off");
    Member member;
    member.isEncrypted = load<uint16_t>(bytes, at + 8) & (1 | 1 << 13);
    member.method = load<uint16_t>(bytes, at + 10);
    member.checksum = load<uint32_t>(bytes, at + 16);
    member.packedSize = load<uint32_t>(bytes, at + 20);
    member.size = load<uint32_t>(bytes, at + 24);
    member.header = load<uint32_t>(bytes, at + 42);
    member.name = bytes.substr(at + kEntrySize, nameSize);
    if (!applyZip64(bytes.substr(at + kEntrySize + nameSize, extraSize), member))
      return broken(error, "member " + quoted(member.name) + " lacks its zip64 size");
    at += kEntrySize + nameSize + extraSize + commentSize;
    if (!inRange(member.header, kHeaderSize, bytes.size()) || load<uint32_t>(bytes, member.header) != 0x04034b50)
      return broken(error, "member " + quoted(member.name) + " is outside of the file");
    const uint64_t ownName = load<uint16_t>(bytes, member.header + 26);
    member.offset = member.header + kHeaderSize + ownName + load<uint16_t>(bytes, member.header + 28);
    if (!inRange(member.offset, member.packedSize, bytes.size()))
      return broken(error, "member " + quoted(member.name) + " is outside of the file");
    if (bytes.substr(member.header + kHeaderSize, ownName) != member.name)
      return broken(error, "member " + quoted(member.name) + " has another name in its own header");
    if (member.isStored() && member.packedSize != member.size)
      return broken(error, "member " + quoted(member.name) + " has two sizes");
    archive.all.push_back(member);
  }
  // Members that share bytes: a small file that unpacks to any size. Nor does one lie in the directory.
  const std::vector<Member> &all = archive.all;
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a].header < all[b].header; });
  for (size_t i = 0; i < order.size(); ++i) {
    const Member &member = all[order[i]];
    const uint64_t end = member.offset + member.packedSize;
    if (i + 1 < order.size() && end > all[order[i + 1]].header)
      return broken(error, "members " + quoted(member.name) + " and " + quoted(all[order[i + 1]].name) + " overlap");
    if (member.header < limit && end > directory->offset)
      return broken(error, "member " + quoted(member.name) + " overlaps its directory");
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a].name < all[b].name; });
  for (size_t i = 1; i < order.size(); ++i)
    if (all[order[i]].name == all[order[i - 1]].name)
      return broken(error, "there are two members " + quoted(all[order[i]].name));
  archive.byName = std::move(order);
  return archive;
}

const ZipArchive::Member *ZipArchive::find(std::string_view name) const {
  auto found = std::lower_bound(byName.begin(), byName.end(), name,
                                [&](size_t number, std::string_view wanted) { return all[number].name < wanted; });
  return found == byName.end() || all[*found].name != name ? nullptr : &all[*found];
}

const ZipArchive::Member *ZipArchive::findSuffix(std::string_view suffix) const {
  for (size_t number : byName) {
    std::string_view name = all[number].name;
    if (name.size() >= suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
      return &all[number];
  }
  return nullptr;
}

bool ZipArchive::isReadable(const Member &member, std::string &error) {
  if (member.isEncrypted)
    error = "member " + quoted(member.name) +
            " is encrypted, which is not supported; write the archive without a "
            "password";
  else if (member.method != kStored && member.method != kDeflated)
    error = "member " + quoted(member.name) + " is compressed by method " + std::to_string(member.method) +
            ", which is not supported; stored and deflated members are";
  else if (member.method == kDeflated && member.size / kMaxRatio > member.packedSize)
    error = "the zip archive is damaged: member " + quoted(member.name) + " can't have the " +
            std::to_string(member.size) + " bytes that it claims";
  else
    return true;
  return false;
}

bool ZipArchive::unpack(const Member &member, char *to, uint64_t size, std::string &error) const {
  z_stream stream = {};
  int status = inflateInit2(&stream, -MAX_WBITS);
  uint64_t in = 0, out = 0;
  const bool isWhole = size == member.size;
  while (status == Z_OK && (isWhole || out < size)) {
    // zlib counts in 32 bits.
    const uInt inBefore = uInt(std::min<uint64_t>(member.packedSize - in, 1u << 30));
    const uInt outBefore = uInt(std::min<uint64_t>(size - out, 1u << 30));
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data() + member.offset + in));
    stream.avail_in = inBefore;
    Bytef none;
    stream.next_out = outBefore ? reinterpret_cast<Bytef *>(to + out) : &none;
    stream.avail_out = outBefore;
    status = inflate(&stream, Z_NO_FLUSH);
    in += inBefore - stream.avail_in;
    out += outBefore - stream.avail_out;
    if (status == Z_OK && inBefore == stream.avail_in && outBefore == stream.avail_out)
      break;
  }
  inflateEnd(&stream);
  if (status == Z_MEM_ERROR)
    error = "no memory left to unpack member " + quoted(member.name);
  else if ((isWhole && (status != Z_STREAM_END || in != member.packedSize)) || out != size)
    error = "the zip archive is damaged: member " + quoted(member.name) + " does not unpack to its " +
            std::to_string(member.size) + " bytes";
  else
    return true;
  return false;
}

std::optional<ZipArchive::Contents> ZipArchive::read(const Member &member, std::string &error, uint64_t limit) const {
  if (!isReadable(member, error))
    return std::nullopt;
  if (member.size > limit) {
    error = "member " + quoted(member.name) + " has " + std::to_string(member.size) + " bytes; at most " +
            std::to_string(limit) + " are supported";
    return std::nullopt;
  }
  Contents contents;
  if (member.isStored()) {
    contents.view = stored(member);
  } else {
    contents.owned.reset(new (std::nothrow) char[member.size + 1]);
    if (!contents.owned) {
      error = "no memory left to unpack member " + quoted(member.name);
      return std::nullopt;
    }
    if (!unpack(member, contents.owned.get(), member.size, error))
      return std::nullopt;
    contents.view = {contents.owned.get(), size_t(member.size)};
  }
  if ((!member.isStored() || member.checksum) && zipChecksum(contents.view) != member.checksum)
    return broken(error, "member " + quoted(member.name) + " has another checksum than the directory says");
  return contents;
}
