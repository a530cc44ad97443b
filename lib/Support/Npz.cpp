//===- Npz.cpp - read and write .npy and .npz files ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Npz.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tc::npz {
namespace {

/// Bytes being read; `get` past the end sets `ok` to false and gives 0.
struct Reader {
  const uint8_t *data;
  size_t size, at = 0;
  bool ok = true;

  Reader(const char *bytes, size_t count) : data(reinterpret_cast<const uint8_t *>(bytes)), size(count) {}
  bool has(uint64_t count) const { return ok && count <= size - at; }
  uint64_t get(int bytes) {
    if (!has(bytes))
      return ok = false, 0;
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= uint64_t(data[at + i]) << (8 * i);
    at += bytes;
    return value;
  }
  void skip(uint64_t count) { has(count) ? void(at += count) : void(ok = false); }
  void seek(uint64_t to) {
    ok &= to <= size;
    at = ok ? size_t(to) : size;
  }
};

bool readFile(const std::string &path, std::vector<char> &bytes, std::string &error) {
  FILE *file = std::fopen(path.c_str(), "rb");
  bool ok = file != nullptr;
  char chunk[65536];
  while (ok) {
    size_t count = std::fread(chunk, 1, sizeof chunk, file);
    bytes.insert(bytes.end(), chunk, chunk + count);
    if (count < sizeof chunk) {
      ok = !std::ferror(file);
      break;
    }
  }
  if (!ok)
    error = path + ": error: cannot read the file: " + std::strerror(errno);
  if (file)
    std::fclose(file);
  return ok;
}

bool writeFile(const std::string &path, const std::vector<char> &bytes, std::string &error) {
  std::string temporary = path + ".tmp";
  FILE *file = std::fopen(temporary.c_str(), "wb");
  bool ok = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int reason = errno;
  if (file && std::fclose(file) != 0 && ok) {
    ok = false;
    reason = errno;
  }
  if (ok && std::rename(temporary.c_str(), path.c_str()) != 0) {
    ok = false;
    reason = errno;
  }
  if (!ok) {
    std::remove(temporary.c_str());
    error = path + ": error: cannot write the file: " + std::strerror(reason);
  }
  return ok;
}

//===--- inflate (RFC 1951) ---------------------------------------------------------------------------------------===//

/// Canonical Huffman code, decoded bit by bit: `counts[n]` codes of n bits, `symbols` in code order.
struct Huffman {
  uint16_t counts[16] = {0};
  std::vector<uint16_t> symbols;

  explicit Huffman(const std::vector<uint8_t> &lengths) : symbols(lengths.size()) {
    for (uint8_t length : lengths)
      ++counts[length];
    counts[0] = 0;
    uint16_t offsets[16] = {0};
    for (int i = 1; i < 15; ++i)
      offsets[i + 1] = offsets[i] + counts[i];
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol])
        symbols[offsets[lengths[symbol]]++] = uint16_t(symbol);
  }
};

class Inflater {
public:
  Inflater(Reader in, uint64_t size) : in(in), limit(size) {}

  bool run(std::vector<char> &result) {
    bool last = false;
    while (!last && ok) {
      last = bits(1);
      switch (bits(2)) {
      case 0:
        stored();
        break;
      case 1:
        compressed(fixedLiterals(), Huffman(std::vector<uint8_t>(30, 5)));
        break;
      case 2:
        dynamic();
        break;
      default:
        ok = false;
      }
    }
    result = std::move(out);
    return ok && result.size() == limit;
  }

private:
  unsigned bits(int count) {
    while (held < count) {
      buffer |= uint32_t(in.get(1)) << held;
      held += 8;
      if (!in.ok)
        return ok = false, 0;
    }
    unsigned value = buffer & ((1u << count) - 1);
    buffer >>= count;
    held -= count;
    return value;
  }
  int decode(const Huffman &code) {
    int value = 0, first = 0, index = 0;
    for (int length = 1; length < 16 && ok; ++length) {
      value |= int(bits(1));
      int count = code.counts[length];
      if (value - count < first)
        return code.symbols[index + (value - first)];
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    ok = false;
    return -1;
  }
  void emit(char byte) {
    if (out.size() >= limit)
      ok = false;
    else
      out.push_back(byte);
  }
  void stored() {
    buffer = 0;
    held = 0;
    uint64_t length = in.get(2);
    in.skip(2);
    if (!in.has(length)) {
      ok = false;
      return;
    }
    for (uint64_t i = 0; i < length && ok; ++i)
      emit(char(in.get(1)));
  }
  static Huffman fixedLiterals() {
    std::vector<uint8_t> lengths(288, 8);
    std::fill(lengths.begin() + 144, lengths.begin() + 256, 9);
    std::fill(lengths.begin() + 256, lengths.begin() + 280, 7);
    return Huffman(lengths);
  }
  void dynamic() {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned literals = bits(5) + 257, distances = bits(5) + 1, count = bits(4) + 4;
    std::vector<uint8_t> lengths(19, 0);
    for (unsigned i = 0; i < count; ++i)
      lengths[order[i]] = uint8_t(bits(3));
    Huffman lengthCode(lengths);
    lengths.clear();
    while (ok && lengths.size() < literals + distances) {
      int symbol = decode(lengthCode);
      if (symbol < 16) {
        lengths.push_back(uint8_t(symbol));
        continue;
      }
      if (symbol == 16 && lengths.empty()) {
        ok = false;
        return;
      }
      uint8_t value = symbol == 16 ? lengths.back() : 0;
      unsigned repeat = symbol == 16 ? 3 + bits(2) : symbol == 17 ? 3 + bits(3) : 11 + bits(7);
      lengths.insert(lengths.end(), repeat, value);
    }
    if (!ok || lengths.size() != literals + distances) {
      ok = false;
      return;
    }
    compressed(Huffman(std::vector<uint8_t>(lengths.begin(), lengths.begin() + literals)),
               Huffman(std::vector<uint8_t>(lengths.begin() + literals, lengths.end())));
  }
  void compressed(const Huffman &literals, const Huffman &distances) {
    static const uint16_t lengthBase[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                            31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t lengthExtra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                            2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distanceBase[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                              33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                              1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distanceExtra[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                              6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    while (ok) {
      int symbol = decode(literals);
      if (symbol < 0 || symbol == 256)
        return;
      if (symbol < 256) {
        emit(char(symbol));
        continue;
      }
      if (symbol > 285) {
        ok = false;
        return;
      }
      unsigned length = lengthBase[symbol - 257] + bits(lengthExtra[symbol - 257]);
      int distanceSymbol = decode(distances);
      if (distanceSymbol < 0 || distanceSymbol > 29) {
        ok = false;
        return;
      }
      size_t distance = distanceBase[distanceSymbol] + bits(distanceExtra[distanceSymbol]);
      if (distance > out.size()) {
        ok = false;
        return;
      }
      for (unsigned i = 0; i < length && ok; ++i)
        emit(out[out.size() - distance]);
    }
  }

  Reader in;
  uint64_t limit;
  std::vector<char> out;
  uint32_t buffer = 0;
  int held = 0;
  bool ok = true;
};

//===--- npy ------------------------------------------------------------------------------------------------------===//

/// The text after `'key':` of a Python dictionary, up to its end.
std::string findValue(const std::string &header, const std::string &key) {
  size_t at = header.find("'" + key + "'");
  if (at == std::string::npos || (at = header.find(':', at)) == std::string::npos)
    return "";
  size_t begin = header.find_first_not_of(' ', at + 1);
  return begin == std::string::npos ? "" : header.substr(begin);
}

bool parseShape(const std::string &text, std::vector<int64_t> &shape) {
  size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string::npos)
    return false;
  for (size_t at = 1; at < end;) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    int64_t size = 0;
    size_t begin = at;
    for (; at < end && text[at] >= '0' && text[at] <= '9'; ++at)
      if (__builtin_mul_overflow(size, int64_t(10), &size) || __builtin_add_overflow(size, text[at] - '0', &size))
        return false;
    if (at == begin)
      return false;
    shape.push_back(size);
  }
  return true;
}

/// Row-major bytes of an array that the file holds column-major.
std::vector<char> toRowMajor(const std::vector<char> &data, const std::vector<int64_t> &shape, int64_t elementBytes) {
  std::vector<char> result(data.size());
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t to = 0; to < data.size(); to += elementBytes) {
    int64_t from = 0;
    for (size_t dim = shape.size(); dim-- > 0;)
      from = from * shape[dim] + index[dim];
    std::memcpy(&result[to], &data[from * elementBytes], elementBytes);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
  return result;
}

bool parseNpy(const std::vector<char> &bytes, Array &array, std::string &reason) {
  Reader in(bytes.data(), bytes.size());
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) {
    reason = "it is not a NumPy array";
    return false;
  }
  in.seek(6);
  uint64_t version = in.get(1);
  in.skip(1);
  uint64_t headerBytes = in.get(version == 1 ? 2 : 4);
  if (version < 1 || version > 3 || !in.has(headerBytes)) {
    reason = "the array's header is truncated or of an unknown version";
    return false;
  }
  std::string header(bytes.data() + in.at, size_t(headerBytes));
  in.seek(in.at + headerBytes);
  std::string descr = findValue(header, "descr");
  size_t end = descr.find('\'', 1);
  if (descr.empty() || descr[0] != '\'' || end == std::string::npos || end < 4) {
    reason = "arrays with fields are not supported";
    return false;
  }
  char order = descr[1];
  array.dtype = descr.substr(2, end - 2);
  int64_t elementBytes = getElementBytes(array.dtype);
  if (elementBytes == 0) {
    reason =
        "the array's dtype " + descr.substr(1, end - 1) + " is not supported; supported are bool, integers, floats";
    return false;
  }
  array.shape.clear();
  if (!parseShape(findValue(header, "shape"), array.shape)) {
    reason = "the array's shape cannot be read";
    return false;
  }
  int64_t size = elementBytes;
  for (int64_t dim : array.shape)
    if (__builtin_mul_overflow(size, dim, &size)) {
      reason = "the array's shape is too large";
      return false;
    }
  if (!in.has(uint64_t(size))) {
    reason = "the array is truncated";
    return false;
  }
  array.data.assign(bytes.begin() + in.at, bytes.begin() + in.at + size);
  int64_t swapBytes = array.dtype[0] == 'c' ? elementBytes / 2 : elementBytes;
  if (order == '>')
    for (int64_t i = 0; i < size; i += swapBytes)
      std::reverse(array.data.begin() + i, array.data.begin() + i + swapBytes);
  if (findValue(header, "fortran_order").compare(0, 4, "True") == 0)
    array.data = toRowMajor(array.data, array.shape, elementBytes);
  return true;
}

std::vector<char> formatNpy(const Array &array) {
  std::string shape = "(";
  for (size_t i = 0; i < array.shape.size(); ++i)
    shape += (i ? ", " : "") + std::to_string(array.shape[i]);
  shape += array.shape.size() == 1 ? ",)" : ")";
  std::string order = getElementBytes(array.dtype) == 1 ? "|" : "<";
  std::string header = "{'descr': '" + order + array.dtype + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size() & 0xff);
  bytes += char(header.size() >> 8);
  bytes += header;
  std::vector<char> result(bytes.begin(), bytes.end());
  result.insert(result.end(), array.data.begin(), array.data.end());
  return result;
}

//===--- zip ------------------------------------------------------------------------------------------------------===//

uint32_t crc32(const std::vector<char> &bytes) {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> t(256);
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        t[i] = t[i] & 1 ? 0xedb88320u ^ t[i] >> 1 : t[i] >> 1;
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (char byte : bytes)
    crc = table[(crc ^ uint8_t(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

/// One entry of the central directory.
struct Entry {
  std::string name;
  uint64_t method, crc, packedBytes, bytes, offset;
};

/// Reads the entry at the reader's place of the central directory.
bool parseEntry(Reader &in, Entry &entry) {
  if (in.get(4) != 0x02014b50)
    return false;
  in.skip(6);
  entry.method = in.get(2);
  in.skip(4);
  entry.crc = in.get(4);
  entry.packedBytes = in.get(4);
  entry.bytes = in.get(4);
  uint64_t nameBytes = in.get(2), extraBytes = in.get(2), commentBytes = in.get(2);
  in.skip(8);
  entry.offset = in.get(4);
  if (!in.has(nameBytes + extraBytes + commentBytes))
    return false;
  entry.name.assign(reinterpret_cast<const char *>(in.data) + in.at, size_t(nameBytes));
  in.at += size_t(nameBytes);
  Reader extra(reinterpret_cast<const char *>(in.data) + in.at, size_t(extraBytes));
  while (extra.has(4)) {
    uint64_t id = extra.get(2), size = extra.get(2), next = extra.at + size;
    for (uint64_t *field : {&entry.bytes, &entry.packedBytes, &entry.offset})
      if (id == 1 && *field == 0xffffffff)
        *field = extra.get(8);
    extra.seek(next);
  }
  in.at += size_t(extraBytes + commentBytes);
  return in.ok && extra.ok;
}

/// Finds the central directory: offset and number of entries.
bool findDirectory(const std::vector<char> &bytes, uint64_t &offset, uint64_t &count) {
  constexpr size_t kEnd = 22;
  if (bytes.size() < kEnd)
    return false;
  Reader in(bytes.data(), bytes.size());
  for (size_t at = bytes.size() - kEnd;; --at) {
    in.seek(at);
    if (in.get(4) == 0x06054b50) {
      in.skip(6);
      count = in.get(2);
      in.skip(4);
      offset = in.get(4);
      if ((offset == 0xffffffff || count == 0xffff) && at >= 20) {
        in.seek(at - 20);
        if (in.get(4) == 0x07064b50) {
          in.skip(4);
          in.seek(in.get(8));
          if (in.get(4) != 0x06064b50)
            return false;
          in.skip(28);
          count = in.get(8);
          in.skip(8);
          offset = in.get(8);
        }
      }
      return in.ok;
    }
    if (at == 0 || bytes.size() - at > kEnd + 0xffff)
      return false;
  }
}

bool extract(const std::vector<char> &file, const Entry &entry, std::vector<char> &bytes) {
  Reader in(file.data(), file.size());
  in.seek(entry.offset);
  if (in.get(4) != 0x04034b50)
    return false;
  in.skip(8);
  in.skip(14);
  uint64_t nameBytes = in.get(2), extraBytes = in.get(2);
  if (!in.has(nameBytes + extraBytes))
    return false;
  in.seek(in.at + nameBytes + extraBytes);
  if (!in.has(entry.packedBytes))
    return false;
  if (entry.method == 0)
    bytes.assign(file.begin() + in.at, file.begin() + in.at + entry.packedBytes);
  else if (entry.method != 8 ||
           !Inflater(Reader(file.data() + in.at, size_t(entry.packedBytes)), entry.bytes).run(bytes))
    return false;
  return bytes.size() == entry.bytes && crc32(bytes) == entry.crc;
}

struct Writer {
  std::vector<char> bytes;
  void put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i)
      bytes.push_back(char(value >> (8 * i)));
  }
  void put(const std::string &text) { bytes.insert(bytes.end(), text.begin(), text.end()); }
  /// Version, flags, method, time (1980-01-01), crc and sizes: what local and central headers share.
  void putCommon(uint32_t crc) {
    put(45, 2);
    put(0, 4);
    put(0x00210000, 4);
    put(crc, 4);
    put(0xffffffff, 4);
    put(0xffffffff, 4);
  }
};

} // namespace

int64_t getElementBytes(const std::string &dtype) {
  static const char *const known[] = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8"};
  for (const char *name : known)
    if (dtype == name)
      return dtype[1] - '0';
  return dtype == "c16" ? 16 : 0;
}

bool readNpy(const std::string &path, Array &array, std::string &error) {
  std::vector<char> bytes;
  if (!readFile(path, bytes, error))
    return false;
  std::string reason;
  if (!parseNpy(bytes, array, reason)) {
    error = path + ": error: cannot read the file: " + reason;
    return false;
  }
  return true;
}

bool readNpz(const std::string &path, std::vector<Array> &arrays, std::string &error) {
  std::vector<char> file;
  if (!readFile(path, file, error))
    return false;
  auto fail = [&](const std::string &reason) {
    error = path + ": error: cannot read the file: " + reason;
    return false;
  };
  uint64_t offset, count;
  if (!findDirectory(file, offset, count))
    return fail("it is not an .npz file");
  Reader directory(file.data(), file.size());
  directory.seek(offset);
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    if (!parseEntry(directory, entry))
      return fail("its directory is damaged");
    std::vector<char> bytes;
    if (!extract(file, entry, bytes))
      return fail("\"" + entry.name + "\" is damaged or compressed in an unknown way");
    Array array;
    array.name = entry.name;
    if (array.name.size() > 4 && array.name.compare(array.name.size() - 4, 4, ".npy") == 0)
      array.name.resize(array.name.size() - 4);
    std::string reason;
    if (!parseNpy(bytes, array, reason))
      return fail("\"" + entry.name + "\": " + reason);
    arrays.push_back(std::move(array));
  }
  return true;
}

bool writeNpy(const std::string &path, const Array &array, std::string &error) {
  return writeFile(path, formatNpy(array), error);
}

bool writeNpz(const std::string &path, const std::vector<Array> &arrays, std::string &error) {
  Writer file, directory;
  for (const Array &array : arrays) {
    std::vector<char> bytes = formatNpy(array);
    std::string name = array.name + ".npy";
    uint32_t crc = crc32(bytes);
    uint64_t offset = file.bytes.size();
    // Always with zip64 sizes, as NumPy does, so that large arrays need no other path.
    file.put(0x04034b50, 4);
    file.putCommon(crc);
    file.put(name.size(), 2);
    file.put(20, 2);
    file.put(name);
    file.put(1, 2);
    file.put(16, 2);
    file.put(bytes.size(), 8);
    file.put(bytes.size(), 8);
    file.bytes.insert(file.bytes.end(), bytes.begin(), bytes.end());

    directory.put(0x02014b50, 4);
    directory.put(45, 2);
    directory.putCommon(crc);
    directory.put(name.size(), 2);
    directory.put(28, 2);
    directory.put(0, 10);
    directory.put(0xffffffff, 4);
    directory.put(name);
    directory.put(1, 2);
    directory.put(24, 2);
    directory.put(bytes.size(), 8);
    directory.put(bytes.size(), 8);
    directory.put(offset, 8);
  }
  uint64_t start = file.bytes.size(), size = directory.bytes.size(), end = start + size;
  file.bytes.insert(file.bytes.end(), directory.bytes.begin(), directory.bytes.end());
  file.put(0x06064b50, 4);
  file.put(44, 8);
  file.put(45, 2);
  file.put(45, 2);
  file.put(0, 8);
  file.put(arrays.size(), 8);
  file.put(arrays.size(), 8);
  file.put(size, 8);
  file.put(start, 8);
  file.put(0x07064b50, 4);
  file.put(0, 4);
  file.put(end, 8);
  file.put(1, 4);
  file.put(0x06054b50, 4);
  file.put(0, 4);
  file.put(0xffff, 2);
  file.put(0xffff, 2);
  file.put(0xffffffff, 4);
  file.put(0xffffffff, 4);
  file.put(0, 2);
  return writeFile(path, file.bytes, error);
}

} // namespace tc::npz
