//===- ZipWriter.h - archives of every kind, and ones that lie ------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TEST_UNIT_SUPPORT_ZIPWRITER_H
#define TC_TEST_UNIT_SUPPORT_ZIPWRITER_H

#include <cstdint>
#include <string>
#include <vector>
#include <zlib.h>

namespace tc::test {

struct ZipEntry {
  std::string name, data;
  bool isDeflated = false, hasDescriptor = false, isZip64 = false;
  uint16_t method = 0, flags = 0;
  std::string headerName = name; ///< in the member's own header
  int64_t claimedSize = -1;      ///< instead of the data's
  int64_t headerAt = -1;         ///< instead of where it is
  uint32_t crc = zipCrc(data);

  static uint32_t zipCrc(const std::string &data) {
    return uint32_t(crc32(0, reinterpret_cast<const Bytef *>(data.data()), uInt(data.size())));
  }
};

inline std::string deflated(const std::string &data) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data.data()));
  stream.avail_in = uInt(data.size());
  stream.next_out = reinterpret_cast<Bytef *>(&packed[0]);
  stream.avail_out = uInt(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// Members begin at multiples of 64 bytes by an "FB" extra field, as PyTorch has it.
inline std::string makeZip(const std::vector<ZipEntry> &entries, bool isZip64 = false,
                           const std::string &comment = "") {
  std::string bytes, directory;
  auto put = [](std::string &to, uint64_t value, size_t width) {
    to.append(reinterpret_cast<const char *>(&value), width);
  };
  const uint32_t full = 0xffffffff;
  for (const ZipEntry &entry : entries) {
    const std::string packed = entry.isDeflated ? deflated(entry.data) : entry.data;
    const uint64_t offset = entry.headerAt < 0 ? bytes.size() : uint64_t(entry.headerAt);
    const uint64_t size = entry.claimedSize < 0 ? entry.data.size() : uint64_t(entry.claimedSize);
    const uint16_t flags = uint16_t(entry.flags | (entry.hasDescriptor ? 8 : 0));
    const uint16_t method = entry.isDeflated ? 8 : entry.method;
    std::string padding((64 - (bytes.size() + 30 + entry.headerName.size() + 4) % 64) % 64, 'Z');
    put(bytes, 0x04034b50, 4), put(bytes, 20, 2), put(bytes, flags, 2), put(bytes, method, 2), put(bytes, 0, 4);
    put(bytes, entry.hasDescriptor ? 0 : entry.crc, 4);
    put(bytes, entry.hasDescriptor ? 0 : packed.size(), 4), put(bytes, entry.hasDescriptor ? 0 : size, 4);
    put(bytes, entry.headerName.size(), 2), put(bytes, padding.size() + 4, 2);
    bytes += entry.headerName + "FB";
    put(bytes, padding.size(), 2);
    bytes += padding + packed;
    if (entry.hasDescriptor) {
      bytes += "PK\x07\x08";
      put(bytes, entry.crc, 4), put(bytes, packed.size(), 4), put(bytes, size, 4);
    }
    std::string extra;
    if (entry.isZip64) {
      put(extra, 0x4246, 2), put(extra, 0, 2), put(extra, 1, 2), put(extra, 24, 2);
      put(extra, size, 8), put(extra, packed.size(), 8), put(extra, offset, 8);
    }
    put(directory, 0x02014b50, 4), put(directory, 20, 2), put(directory, 20, 2), put(directory, flags, 2);
    put(directory, method, 2), put(directory, 0, 4), put(directory, entry.crc, 4);
    put(directory, entry.isZip64 ? full : packed.size(), 4), put(directory, entry.isZip64 ? full : size, 4);
    put(directory, entry.name.size(), 2), put(directory, extra.size(), 2), put(directory, 0, 2), put(directory, 0, 2);
    put(directory, 0, 2), put(directory, 0, 4), put(directory, entry.isZip64 ? full : offset, 4);
    directory += entry.name + extra;
  }
  const uint64_t start = bytes.size();
  bytes += directory;
  if (isZip64) {
    const uint64_t end = bytes.size();
    put(bytes, 0x06064b50, 4), put(bytes, 44, 8), put(bytes, 45, 2), put(bytes, 45, 2), put(bytes, 0, 8);
    put(bytes, entries.size(), 8), put(bytes, entries.size(), 8), put(bytes, directory.size(), 8), put(bytes, start, 8);
    put(bytes, 0x07064b50, 4), put(bytes, 0, 4), put(bytes, end, 8), put(bytes, 1, 4);
  }
  put(bytes, 0x06054b50, 4), put(bytes, 0, 4), put(bytes, isZip64 ? 0xffff : entries.size(), 2);
  put(bytes, isZip64 ? 0xffff : entries.size(), 2), put(bytes, isZip64 ? full : directory.size(), 4);
  put(bytes, isZip64 ? full : start, 4), put(bytes, comment.size(), 2);
  return bytes + comment;
}

} // namespace tc::test

#endif // TC_TEST_UNIT_SUPPORT_ZIPWRITER_H
