//===- Npz.cpp - NumPy's .npy and .npz files ----------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Npz.h"
#include "tc/Support/ZipArchive.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace tc::run;

namespace {

[[noreturn]] void corrupt(const std::string &where, const std::string &what) {
  throw Failure{1, where + ": error: " + what};
}

struct Bytes {
  const uint8_t *data;
  uint64_t size;
};

template <typename T> T load(Bytes bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data + offset, sizeof value);
  return value;
}

bool inRange(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

/// The Python literal after 'key': in a .npy header.
std::string field(const std::string &header, const std::string &key, const std::string &where) {
  size_t at = header.find("'" + key + "'");
  at = at == std::string::npos ? at : header.find(':', at);
  if (at == std::string::npos)
    corrupt(where, "the array's header has no \"" + key + "\"");
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string::npos)
    corrupt(where, "the array's header is cut off");
  char open = header[at];
  size_t end = open == '('    ? header.find(')', at)
               : open == '\'' ? header.find('\'', at + 1)
                              : header.find_first_of(",}", at);
  if (open == '[')
    corrupt(where, "arrays of records are not supported; write one array per member");
  if (end == std::string::npos)
    corrupt(where, "the array's header is cut off");
  return open == '(' || open == '\'' ? header.substr(at + 1, end - at - 1) : header.substr(at, end - at);
}

void setType(Tensor &tensor, const std::string &descr, const std::string &where) {
  static const struct {
    const char *code;
    tcrt_dtype_t dtype;
  } types[] = {{"b1", TCRT_DTYPE_BOOL}, {"i1", TCRT_DTYPE_I8},   {"u1", TCRT_DTYPE_U8},  {"i2", TCRT_DTYPE_I16},
               {"u2", TCRT_DTYPE_U16},  {"i4", TCRT_DTYPE_I32},  {"u4", TCRT_DTYPE_U32}, {"i8", TCRT_DTYPE_I64},
               {"u8", TCRT_DTYPE_U64},  {"f2", TCRT_DTYPE_F16},  {"f4", TCRT_DTYPE_F32}, {"f8", TCRT_DTYPE_F64},
               {"c8", TCRT_DTYPE_C64},  {"c16", TCRT_DTYPE_C128}};
  std::string code = descr.size() > 1 ? descr.substr(1) : "";
  for (const auto &type : types)
    if (code == type.code) {
      tensor.dtype = type.dtype;
      return;
    }
  if (code == "V1" || code == "V2") {
    tensor.rawBytes = uint32_t(code[1] - '0');
    return;
  }
  corrupt(where,
          "arrays of NumPy type \"" + descr + "\" are not supported; numbers and booleans are, and strings as .pb");
}

/// What a .npy array's head says, and where its data begin and end.
struct NpyHead {
  Tensor tensor; ///< without data
  bool isBigEndian, isFortran;
  uint32_t element;
  uint64_t start, size; ///< of the data
};

/// Bytes of a head at most, with what stands before its length. NumPy writes 128 and refuses more than 10,000.
constexpr uint64_t kMaxHead = 65536;

/// `file`: the array from its beginning, as far as its head needs.
NpyHead parseNpyHead(Bytes file, const std::string &where) {
  if (file.size < 10 || std::memcmp(file.data, "\x93NUMPY", 6) != 0)
    corrupt(where, "this is not a .npy array");
  uint8_t major = file.data[6];
  if (major < 1 || major > 3)
    corrupt(where, "version " + std::to_string(major) + " of .npy is not supported; 1 to 3 are");
  uint64_t start = major == 1 ? 10 : 12;
  if (file.size < start)
    corrupt(where, "the array is cut off");
  uint64_t length = major == 1 ? load<uint16_t>(file, 8) : load<uint32_t>(file, 8);
  if (length > kMaxHead - start)
    corrupt(where, "the array's header has " + std::to_string(length) + " bytes; this is not a .npy array");
  if (!inRange(start, length, file.size))
    corrupt(where, "the array's header is cut off");
  std::string header(reinterpret_cast<const char *>(file.data) + start, length);
  NpyHead head = {};
  Tensor &tensor = head.tensor;
  std::string descr = field(header, "descr", where);
  setType(tensor, descr, where);
  head.isBigEndian = descr[0] == '>';
  head.isFortran = field(header, "fortran_order", where).find("True") == 0;
  std::string shape = field(header, "shape", where);
  for (size_t at = 0; at < shape.size();) {
    size_t end = std::min(shape.find(',', at), shape.size());
    std::string text = shape.substr(at, end - at);
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(" L") + 1);
    at = end + 1;
    if (text.empty())
      continue;
    if (text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
      corrupt(where, "the array's shape (" + shape.substr(0, 100) + ") is not valid");
    tensor.dims.push_back(std::stoll(text));
  }
  if (tensor.dims.size() > TCRT_MAX_RANK)
    corrupt(where, "the array has rank " + std::to_string(tensor.dims.size()) + "; at most 16 is supported");
  head.element = tensor.rawBytes ? tensor.rawBytes : tcrt_dtype_bits(tensor.dtype) / 8;
  head.start = start + length;
  uint64_t end;
  if (!tcrt_tensor_size(TCRT_DTYPE_I8, uint32_t(tensor.dims.size()), tensor.dims.data(), &head.size) ||
      __builtin_mul_overflow(head.size, uint64_t(head.element), &head.size) ||
      __builtin_add_overflow(head.start, head.size, &end))
    corrupt(where, "the array's shape (" + shape + ") is too large");
  return head;
}

Tensor parseNpy(Bytes file, const std::string &where) {
  NpyHead head = parseNpyHead(file, where);
  Tensor &tensor = head.tensor;
  const uint64_t size = head.size;
  const uint32_t element = head.element;
  if (file.size - head.start < size)
    corrupt(where, "the array is cut off: it has " + std::to_string(file.size - head.start) + " of " +
                       std::to_string(size) + " bytes");
  const uint8_t *data = file.data + head.start;
  tensor.data.assign(data, data + size);
  if (head.isBigEndian) {
    uint32_t unit = tensor.dtype == TCRT_DTYPE_C64 || tensor.dtype == TCRT_DTYPE_C128 ? element / 2 : element;
    for (uint64_t i = 0; i < size; i += unit)
      std::reverse(tensor.data.begin() + long(i), tensor.data.begin() + long(i + unit));
  }
  if (head.isFortran && tensor.dims.size() > 1 && size) {
    ByteVector source = tensor.data;
    std::vector<int64_t> index(tensor.dims.size());
    for (uint64_t i = 0; i < size / element; ++i) {
      uint64_t from = 0;
      for (size_t d = tensor.dims.size(); d-- > 0;)
        from = from * uint64_t(tensor.dims[d]) + uint64_t(index[d]);
      std::memcpy(&tensor.data[i * element], &source[from * element], element);
      for (size_t d = tensor.dims.size(); d-- > 0 && ++index[d] == tensor.dims[d];)
        index[d] = 0;
    }
  }
  return std::move(head.tensor);
}

uint32_t checksum(const uint8_t *data, uint64_t size) {
  return tc::zipChecksum({reinterpret_cast<const char *>(data), size_t(size)});
}

void unpack(const tc::ZipArchive &archive, const tc::ZipArchive::Member &member, ByteVector &to,
            const std::string &where) {
  std::string why;
  if (!archive.unpack(member, reinterpret_cast<char *>(to.data()), to.size(), why))
    corrupt(where, why);
}

/// A deflated array. Its head says how much there is before memory is asked for the rest.
ByteVector inflateNpy(const tc::ZipArchive &archive, const tc::ZipArchive::Member &member, const std::string &where) {
  ByteVector bytes(std::min(member.size, kMaxHead));
  unpack(archive, member, bytes, where);
  NpyHead head = parseNpyHead({bytes.data(), bytes.size()}, where);
  if (head.start + head.size != member.size)
    corrupt(where, "the array has " + std::to_string(member.size) + " bytes, where its header says " +
                       std::to_string(head.start + head.size));
  if (bytes.size() < member.size) {
    bytes.resize(member.size);
    unpack(archive, member, bytes, where);
  }
  return bytes;
}

NamedTensors parseNpz(Bytes file, const std::string &path, const std::function<bool(const std::string &)> &wanted) {
  if (file.size < 2 || std::memcmp(file.data, "PK", 2) != 0)
    corrupt(path, file.size >= 6 && std::memcmp(file.data, "\x93NUMPY", 6) == 0
                      ? "this is one array (.npy), not a .npz archive; tc-run takes it with --input NAME=FILE"
                      : "this is not a .npz archive; numpy.savez writes one");
  std::string why;
  std::optional<tc::ZipArchive> archive =
      tc::ZipArchive::open({reinterpret_cast<const char *>(file.data), size_t(file.size)}, why);
  if (!archive)
    corrupt(path, why);
  std::vector<std::string> names;
  std::set<std::string> distinct;
  for (const tc::ZipArchive::Member &member : archive->members()) {
    std::string name(member.name);
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
      name.resize(name.size() - 4);
    if (!distinct.insert(name).second)
      corrupt(path + "(" + name + ")", "there are two arrays of this name");
    names.push_back(name);
  }
  for (const std::string &name : names)
    wanted(name);
  NamedTensors result;
  for (size_t i = 0; i < names.size(); ++i) {
    const tc::ZipArchive::Member &member = archive->members()[i];
    if (!wanted(names[i]))
      continue;
    std::string where = path + "(" + names[i] + ")";
    if (!tc::ZipArchive::isReadable(member, why))
      corrupt(where, why);
    Bytes bytes = {file.data + member.offset, member.size};
    ByteVector unpacked;
    if (!member.isStored()) {
      unpacked = inflateNpy(*archive, member, where);
      bytes.data = unpacked.data();
    }
    if (checksum(bytes.data, bytes.size) != member.checksum)
      corrupt(where, "the array is damaged: its checksum does not match");
    result.emplace_back(names[i], parseNpy(bytes, where));
  }
  return result;
}

template <typename T> void put(ByteVector &bytes, T value) {
  const uint8_t *at = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

ByteVector makeNpy(const Tensor &tensor) {
  const char *descr = "";
  switch (tensor.dtype) {
  case TCRT_DTYPE_BOOL:
    descr = "|b1";
    break;
  case TCRT_DTYPE_I8:
    descr = "|i1";
    break;
  case TCRT_DTYPE_U8:
    descr = "|u1";
    break;
  case TCRT_DTYPE_I16:
    descr = "<i2";
    break;
  case TCRT_DTYPE_U16:
    descr = "<u2";
    break;
  case TCRT_DTYPE_I32:
    descr = "<i4";
    break;
  case TCRT_DTYPE_U32:
    descr = "<u4";
    break;
  case TCRT_DTYPE_I64:
    descr = "<i8";
    break;
  case TCRT_DTYPE_U64:
    descr = "<u8";
    break;
  case TCRT_DTYPE_F16:
    descr = "<f2";
    break;
  case TCRT_DTYPE_F32:
    descr = "<f4";
    break;
  case TCRT_DTYPE_F64:
    descr = "<f8";
    break;
  case TCRT_DTYPE_C64:
    descr = "<c8";
    break;
  case TCRT_DTYPE_C128:
    descr = "<c16";
    break;
  default:
    return makeNpy(convert(tensor, numpyDtype(tensor.dtype)));
  }
  std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : tensor.dims)
    header += std::to_string(dim) + ",";
  header += "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  ByteVector bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  put(bytes, uint16_t(header.size()));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
  return bytes;
}

} // namespace

tcrt_dtype_t tc::run::numpyDtype(tcrt_dtype_t dtype) {
  if (isSmallFloat(dtype) && dtype != TCRT_DTYPE_F16)
    return TCRT_DTYPE_F32;
  if (dtype == TCRT_DTYPE_I4 || dtype == TCRT_DTYPE_I2)
    return TCRT_DTYPE_I8;
  if (dtype == TCRT_DTYPE_U4 || dtype == TCRT_DTYPE_U2)
    return TCRT_DTYPE_U8;
  return dtype;
}

Tensor tc::run::readNpy(const std::string &path) {
  ByteVector bytes = readFile(path);
  return parseNpy({bytes.data(), bytes.size()}, path);
}

NamedTensors tc::run::readNpz(const std::string &path, const std::function<bool(const std::string &)> &wanted) {
  ByteVector bytes = readFile(path);
  return parseNpz({bytes.data(), bytes.size()}, path, wanted);
}

void tc::run::writeNpz(const std::string &path, const NamedTensors &tensors) {
  ByteVector bytes, directory;
  // Date 1980-01-01: same outputs, same bytes. Sizes always in Zip64 fields, as NumPy writes them, so that archives
  // over 4 GiB need no path of their own.
  const uint16_t version = 45, utf8 = 0x800, stored = 0, time = 0, date = 0x21, zip64 = 1;
  const uint32_t inZip64 = 0xffffffff;
  for (const auto &[name, tensor] : tensors) {
    ByteVector member = makeNpy(tensor);
    std::string file = name + ".npy";
    if (file.size() > 65535)
      throw Failure{1, path + ": error: the name of output \"" + name.substr(0, 40) +
                           "...\" is too long for an .npz archive; use --output-dir"};
    uint64_t offset = bytes.size(), size = member.size();
    uint32_t crc = checksum(member.data(), member.size());
    auto common = [&](ByteVector &to, uint16_t extraSize) {
      put(to, version), put(to, utf8), put(to, stored), put(to, time), put(to, date), put(to, crc);
      put(to, inZip64), put(to, inZip64), put(to, uint16_t(file.size())), put(to, extraSize);
    };
    put(bytes, uint32_t(0x04034b50));
    common(bytes, 20);
    bytes.insert(bytes.end(), file.begin(), file.end());
    put(bytes, zip64), put(bytes, uint16_t(16)), put(bytes, size), put(bytes, size);
    bytes.insert(bytes.end(), member.begin(), member.end());
    put(directory, uint32_t(0x02014b50));
    put(directory, version);
    common(directory, 28);
    // Comment, disk, internal and external attributes.
    put(directory, uint16_t(0)), put(directory, uint16_t(0)), put(directory, uint16_t(0)), put(directory, uint32_t(0));
    put(directory, inZip64);
    directory.insert(directory.end(), file.begin(), file.end());
    put(directory, zip64), put(directory, uint16_t(24)), put(directory, size), put(directory, size);
    put(directory, offset);
  }
  uint64_t start = bytes.size(), size = directory.size(), end = start + size, count = tensors.size();
  bytes.insert(bytes.end(), directory.begin(), directory.end());
  put(bytes, uint32_t(0x06064b50));
  put(bytes, uint64_t(44)), put(bytes, version), put(bytes, version), put(bytes, uint64_t(0));
  put(bytes, count), put(bytes, count), put(bytes, size), put(bytes, start);
  put(bytes, uint32_t(0x07064b50));
  put(bytes, uint32_t(0)), put(bytes, end), put(bytes, uint32_t(1));
  put(bytes, uint32_t(0x06054b50));
  put(bytes, uint32_t(0)), put(bytes, uint16_t(0xffff)), put(bytes, uint16_t(0xffff));
  put(bytes, inZip64), put(bytes, inZip64), put(bytes, uint16_t(0));
  writeFile(path, bytes);
}
