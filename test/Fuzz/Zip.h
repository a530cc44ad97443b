//===- Zip.h - archives with right checksums, for fuzzing what is inside them ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TEST_FUZZ_ZIP_H
#define TC_TEST_FUZZ_ZIP_H

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zlib.h>

namespace tc::fuzz {

using Members = std::vector<std::pair<std::string, std::string>>;

inline std::string deflate(const std::string &data) {
  z_stream stream = {};
  deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
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

/// Members of the corpus unpack.
inline std::string inflate(const std::string &packed, size_t size) {
  z_stream stream = {};
  inflateInit2(&stream, -MAX_WBITS);
  std::string data(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data()));
  stream.avail_in = uInt(packed.size());
  stream.next_out = reinterpret_cast<Bytef *>(&data[0]);
  stream.avail_out = uInt(data.size());
  inflate(&stream, Z_FINISH);
  data.resize(size);
  inflateEnd(&stream);
  return data;
}

/// Members, each at a multiple of 64 bytes as torch has it; stored, or those of `isDeflated` deflated.
inline std::string writeZip(const Members &members, const std::vector<bool> &isDeflated = {}) {
  std::string bytes, directory;
  auto number = [](std::string &to, uint64_t value, size_t width) {
    to.append(reinterpret_cast<const char *>(&value), width);
  };
  for (size_t i = 0; i < members.size(); ++i) {
    const auto &[name, data] = members[i];
    const bool isPacked = i < isDeflated.size() && isDeflated[i];
    const std::string stored = isPacked ? deflate(data) : data;
    const size_t offset = bytes.size(), padding = (64 - (offset + 30 + name.size() + 4) % 64) % 64;
    const uint32_t crc = uint32_t(crc32(0, reinterpret_cast<const Bytef *>(data.data()), uInt(data.size())));
    std::string shared; // what both headers hold
    number(shared, 20, 2);
    number(shared, 0, 2);
    number(shared, isPacked ? 8 : 0, 2);
    number(shared, 0, 4);
    number(shared, crc, 4);
    number(shared, stored.size(), 4);
    number(shared, data.size(), 4);
    number(shared, name.size(), 2);
    bytes += "PK\x03\x04" + shared;
    number(bytes, padding + 4, 2);
    bytes += name + "FB";
    number(bytes, padding, 2);
    bytes.append(padding, 'Z');
    bytes += stored;
    directory += "PK\x01\x02";
    number(directory, 20, 2);
    directory += shared;
    number(directory, 0, 2);
    number(directory, 0, 2);
    number(directory, 0, 2);
    number(directory, 0, 2);
    number(directory, 0, 4);
    number(directory, offset, 4);
    directory += name;
  }
  const size_t start = bytes.size();
  bytes += directory + "PK\x05\x06";
  number(bytes, 0, 4);
  number(bytes, members.size(), 2);
  number(bytes, members.size(), 2);
  number(bytes, directory.size(), 4);
  number(bytes, start, 4);
  number(bytes, 0, 2);
  return bytes;
}

/// The members of an archive that is whole and whose members are stored or deflated; empty for any other.
inline Members readZip(const std::string &bytes) {
  Members members;
  size_t at = 0;
  auto number = [&](size_t offset, size_t width) {
    uint64_t value = 0;
    if (offset + width <= bytes.size())
      std::memcpy(&value, &bytes[offset], width);
    return value;
  };
  const size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string::npos)
    return {};
  at = number(end + 16, 4);
  for (uint64_t n = number(end + 10, 2); n--;) {
    const size_t name = number(at + 28, 2), skip = number(at + 30, 2) + number(at + 32, 2), local = number(at + 42, 4),
                 size = number(at + 20, 4), method = number(at + 10, 2), plain = number(at + 24, 4),
                 data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    if ((method && method != 8) || plain > 64 << 20 || at + 46 + name > bytes.size() || data + size > bytes.size())
      return {};
    const std::string stored = bytes.substr(data, size);
    members.emplace_back(bytes.substr(at + 46, name), method ? inflate(stored, plain) : stored);
    at += 46 + name + skip;
  }
  return members;
}

} // namespace tc::fuzz

#endif // TC_TEST_FUZZ_ZIP_H
