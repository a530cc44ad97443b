//===- Tensor.cpp - A tensor in host memory and its element types -------------------------------------------------===//
//
// Small floats: IEEE 754 binary16, bfloat16, the 8-bit formats of the OCP 8-bit Floating Point Specification (and their
// FNUZ forms), E8M0 and E2M1 of the OCP Microscaling Formats. The 8- and 4-bit ones are converted by a table of their
// values.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Tensor.h"

#include "tc/Format/File.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace tc::run;

static bool isControl(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

Failure::Failure(int code, std::string text) : code(code), message(std::move(text)) {
  std::replace_if(message.begin(), message.end(), isControl, '?');
}

static constexpr size_t kHugePage = size_t(2) << 20;

void *tc::run::allocateBytes(size_t bytes) {
  if (bytes < kHugePage)
    return ::operator new(bytes);
  if (bytes > SIZE_MAX - kHugePage)
    throw std::bad_alloc();
  const size_t length = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void *data = std::aligned_alloc(kHugePage, length);
  if (!data)
    throw std::bad_alloc();
  madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE); // the last part of a page is not worth one
  return data;
}

void tc::run::releaseBytes(void *data, size_t bytes) {
  if (bytes < kHugePage)
    ::operator delete(data);
  else
    std::free(data);
}

int64_t Tensor::count() const {
  int64_t n = 1;
  for (int64_t dim : dims)
    n *= dim;
  return n;
}

uint64_t tc::run::sizeOf(tcrt_dtype_t dtype, const std::vector<int64_t> &dims, const std::string &where) {
  uint64_t bytes;
  if (!tcrt_tensor_size(dtype, uint32_t(dims.size()), dims.data(), &bytes))
    throw Failure{4, where + ": error: a tensor with dims " + dimsText(dims) + " is too large"};
  return bytes;
}

bool tc::run::isSmallFloat(tcrt_dtype_t dtype) {
  return dtype == TCRT_DTYPE_F16 || dtype == TCRT_DTYPE_BF16 ||
         (dtype >= TCRT_DTYPE_F8E4M3FN && dtype <= TCRT_DTYPE_F8E5M2FNUZ) || dtype == TCRT_DTYPE_F4E2M1 ||
         dtype == TCRT_DTYPE_F8E8M0 || isSixBits(dtype);
}

bool tc::run::isSixBits(tcrt_dtype_t dtype) { return dtype == TCRT_DTYPE_F6E2M3 || dtype == TCRT_DTYPE_F6E3M2; }

bool tc::run::isFloat(tcrt_dtype_t dtype) {
  return dtype == TCRT_DTYPE_F32 || dtype == TCRT_DTYPE_F64 || isSmallFloat(dtype);
}

bool tc::run::isSigned(tcrt_dtype_t dtype) {
  return dtype == TCRT_DTYPE_I8 || dtype == TCRT_DTYPE_I16 || dtype == TCRT_DTYPE_I32 || dtype == TCRT_DTYPE_I64 ||
         dtype == TCRT_DTYPE_I4 || dtype == TCRT_DTYPE_I2;
}

bool tc::run::isInteger(tcrt_dtype_t dtype) {
  return isSigned(dtype) || dtype == TCRT_DTYPE_U8 || dtype == TCRT_DTYPE_U16 || dtype == TCRT_DTYPE_U32 ||
         dtype == TCRT_DTYPE_U64 || dtype == TCRT_DTYPE_U4 || dtype == TCRT_DTYPE_U2;
}

namespace {

/// Value of a binary float with these fields, an exponent bias and IEEE subnormals.
double decodeBits(uint32_t bits, int exponentBits, int mantissaBits, int bias) {
  uint32_t mantissa = bits & ((1u << mantissaBits) - 1), exponent = bits >> mantissaBits & ((1u << exponentBits) - 1);
  double sign = bits >> (mantissaBits + exponentBits) & 1 ? -1.0 : 1.0;
  if (exponent == 0)
    return sign * std::ldexp(double(mantissa), 1 - bias - mantissaBits);
  return sign * std::ldexp(double(mantissa | 1u << mantissaBits), int(exponent) - bias - mantissaBits);
}

double decode(tcrt_dtype_t dtype, uint32_t bits) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  switch (dtype) {
  case TCRT_DTYPE_F16:
    if ((bits & 0x7c00) == 0x7c00)
      return bits & 0x3ff ? nan : bits & 0x8000 ? -inf : inf;
    return decodeBits(bits, 5, 10, 15);
  case TCRT_DTYPE_BF16: {
    uint32_t wide = bits << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  case TCRT_DTYPE_F8E4M3FN:
    return (bits & 0x7f) == 0x7f ? nan : decodeBits(bits, 4, 3, 7);
  case TCRT_DTYPE_F8E4M3FNUZ:
    return bits == 0x80 ? nan : decodeBits(bits, 4, 3, 8);
  case TCRT_DTYPE_F8E5M2:
    if ((bits & 0x7c) == 0x7c)
      return bits & 3 ? nan : bits & 0x80 ? -inf : inf;
    return decodeBits(bits, 5, 2, 15);
  case TCRT_DTYPE_F8E5M2FNUZ:
    return bits == 0x80 ? nan : decodeBits(bits, 5, 2, 16);
  case TCRT_DTYPE_F8E8M0:
    return bits == 0xff ? nan : std::ldexp(1.0, int(bits) - 127);
  case TCRT_DTYPE_F4E2M1:
    return decodeBits(bits, 2, 1, 1);
  case TCRT_DTYPE_F6E2M3:
    return decodeBits(bits, 2, 3, 1);
  case TCRT_DTYPE_F6E3M2:
    return decodeBits(bits, 3, 2, 3);
  default:
    return nan;
  }
}

/// Nearest 16-bit float, ties to even, overflow to infinity.
uint32_t encode16(double value, int exponentBits, int mantissaBits) {
  int bias = (1 << (exponentBits - 1)) - 1;
  uint32_t sign = std::signbit(value) ? 0x8000 : 0, infinity = ((1u << exponentBits) - 1) << mantissaBits;
  if (std::isnan(value))
    return sign | infinity | 1u << (mantissaBits - 1);
  value = std::fabs(value);
  if (value == 0)
    return sign;
  if (std::isinf(value))
    return sign | infinity;
  int exponent;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  // In units of the last place; the carry of rounding moves into the exponent by itself.
  double units = std::nearbyint(std::ldexp(value, mantissaBits - exponent));
  if (exponent > bias + 1)
    return sign | infinity;
  uint32_t bits = (uint32_t(exponent + bias - 1) << mantissaBits) + uint32_t(units);
  return sign | std::min(bits, infinity);
}

/// Nearest float of at most 8 bits, ties to even, saturating; the NaN of a format of numbers only is -0.
uint32_t encode8(tcrt_dtype_t dtype, double value) {
  if (dtype == TCRT_DTYPE_F8E8M0) {
    if (std::isnan(value))
      return 0xff;
    int exponent = 0;
    double fraction = std::frexp(std::fabs(value), &exponent); // in [0.5, 1)
    if (value == 0)
      return 0;
    int rounded = exponent - 1 + (fraction > 0.75 || fraction == 0.75 ? 1 : 0);
    return uint32_t(std::min(std::max(rounded + 127, 0), 254));
  }
  bool isFnuz = dtype == TCRT_DTYPE_F8E4M3FNUZ || dtype == TCRT_DTYPE_F8E5M2FNUZ;
  uint32_t signBit = dtype == TCRT_DTYPE_F4E2M1 ? 0x8 : isSixBits(dtype) ? 0x20 : 0x80;
  uint32_t sign = std::signbit(value) ? signBit : 0;
  if (std::isnan(value))
    return isFnuz || signBit != 0x80 ? signBit : 0x7f;
  double magnitude = std::fabs(value);
  uint32_t best = 0;
  for (uint32_t code = 1; code < signBit; ++code) {
    double candidate = decode(dtype, code);
    if (!std::isfinite(candidate))
      break;
    double before = std::fabs(decode(dtype, best) - magnitude), now = std::fabs(candidate - magnitude);
    if (std::isinf(magnitude) || now < before || (now == before && code % 2 == 0))
      best = code;
  }
  return best == 0 && isFnuz ? 0 : sign | best;
}

} // namespace

double tc::run::realAt(const Tensor &tensor, int64_t index) {
  const uint8_t *data = tensor.data.data();
  switch (tensor.dtype) {
  case TCRT_DTYPE_F32: {
    float value;
    std::memcpy(&value, data + 4 * index, 4);
    return value;
  }
  case TCRT_DTYPE_F64: {
    double value;
    std::memcpy(&value, data + 8 * index, 8);
    return value;
  }
  case TCRT_DTYPE_F16:
  case TCRT_DTYPE_BF16: {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * index, 2);
    return decode(tensor.dtype, bits);
  }
  case TCRT_DTYPE_F4E2M1:
    return decode(tensor.dtype, data[index / 2] >> (index % 2 * 4) & 0xf);
  default:
    if (isSmallFloat(tensor.dtype))
      return decode(tensor.dtype, data[index]);
    if (tensor.dtype == TCRT_DTYPE_U64) // values above the largest i64
      return double(uint64_t(integerAt(tensor, index)));
    return double(integerAt(tensor, index));
  }
}

int64_t tc::run::integerAt(const Tensor &tensor, int64_t index) {
  uint32_t bits = tcrt_dtype_bits(tensor.dtype);
  uint64_t raw = 0;
  if (bits >= 8)
    std::memcpy(&raw, tensor.data.data() + index * (bits / 8), std::min(bits / 8, 8u));
  else
    raw = tensor.data[size_t(index * bits / 8)] >> (uint64_t(index) * bits % 8) & ((1u << bits) - 1);
  if (isSigned(tensor.dtype) && bits < 64)
    return int64_t(raw << (64 - bits)) >> (64 - bits);
  return int64_t(raw);
}

void tc::run::setInteger(Tensor &tensor, int64_t index, int64_t value) {
  uint32_t bits = tcrt_dtype_bits(tensor.dtype);
  if (bits >= 8) {
    std::memcpy(tensor.data.data() + index * (bits / 8), &value, std::min(bits / 8, 8u));
    return;
  }
  uint8_t &byte = tensor.data[size_t(index * bits / 8)];
  uint32_t shift = uint32_t(uint64_t(index) * bits % 8), mask = (1u << bits) - 1;
  byte = uint8_t((byte & ~(mask << shift)) | (uint32_t(value) & mask) << shift);
}

void tc::run::setReal(Tensor &tensor, int64_t index, double value) {
  switch (tensor.dtype) {
  case TCRT_DTYPE_F32: {
    float narrow = float(value);
    std::memcpy(tensor.data.data() + 4 * index, &narrow, 4);
    return;
  }
  case TCRT_DTYPE_F64:
    std::memcpy(tensor.data.data() + 8 * index, &value, 8);
    return;
  case TCRT_DTYPE_F16:
  case TCRT_DTYPE_BF16: {
    uint16_t bits = uint16_t(tensor.dtype == TCRT_DTYPE_F16 ? encode16(value, 5, 10) : encode16(value, 8, 7));
    std::memcpy(tensor.data.data() + 2 * index, &bits, 2);
    return;
  }
  default:
    setInteger(tensor, index, int64_t(encode8(tensor.dtype, value)));
    return;
  }
}

Tensor tc::run::convert(const Tensor &tensor, tcrt_dtype_t dtype) {
  Tensor result;
  result.dtype = dtype;
  result.dims = tensor.dims;
  if (tensor.dtype == TCRT_DTYPE_INVALID || tensor.dtype == dtype) {
    result.data = tensor.data;
    return result;
  }
  result.data.resize(sizeOf(dtype, tensor.dims, "tc-run"));
  bool toInteger = !isFloat(dtype);
  for (int64_t i = 0, n = tensor.count(); i < n; ++i) {
    if (toInteger)
      setInteger(result, i, integerAt(tensor, i));
    else
      setReal(result, i, realAt(tensor, i));
  }
  return result;
}

std::string tc::run::dimsText(const std::vector<int64_t> &dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + ")";
}

ByteVector tc::run::readFile(const std::string &path) {
  int fd;
  uint64_t size;
  if (tcrt_file_open(path.c_str(), UINT64_MAX, nullptr, &fd, &size) != TCRT_OK)
    throw Failure{1, tcrt_last_error()};
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  ByteVector bytes(size);
  if (tcrt_file_read(fd, path.c_str(), 0, bytes.data(), size) != TCRT_OK)
    throw Failure{1, tcrt_last_error()};
  return bytes;
}

void tc::run::writeFile(const std::string &path, const ByteVector &bytes) {
  struct stat info;
  tcrt_output_t output = {-1, nullptr, nullptr, nullptr};
  tcrt_status_t status;
  // Pipes and devices are written in place.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    output.fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (output.fd < 0)
      throw Failure{1, path + ": error: the file cannot be written: " + std::strerror(errno)};
    output.path = ::strdup(path.c_str());
    status = tcrt_output_write(&output, bytes.data(), bytes.size());
  } else {
    status = tcrt_output_open(path.c_str(), &output);
    if (status == TCRT_OK)
      status = tcrt_output_write(&output, bytes.data(), bytes.size());
    if (status == TCRT_OK)
      status = tcrt_output_keep(&output);
  }
  tcrt_output_drop(&output);
  if (status != TCRT_OK)
    throw Failure{int(status), tcrt_last_error()};
}
