//===- Pb.cpp - ONNX TensorProto, SequenceProto and OptionalProto files -------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Pb.h"

#include <cstring>
#include <functional>

using namespace tc::run;

namespace {

[[noreturn]] void corrupt(const std::string &path, const std::string &what) {
  throw Failure{1, path + ": error: " + what};
}

/// One field of a message.
struct Field {
  uint32_t number;
  uint32_t wire; ///< 0 varint, 1 fixed64, 2 bytes, 5 fixed32
  uint64_t value;
  const uint8_t *data;
  uint64_t size;
};

class Message {
public:
  Message(const uint8_t *data, uint64_t size, const std::string &path) : at(data), end(data + size), path(path) {}

  bool next(Field &field) {
    if (at == end)
      return false;
    uint64_t key = varint();
    field = {uint32_t(key >> 3), uint32_t(key & 7), 0, nullptr, 0};
    if (field.number == 0 || key >> 32)
      corrupt(path, "this is not an ONNX tensor: a field number is not valid");
    switch (field.wire) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.value = fixed(8);
      break;
    case 2:
      field.size = varint();
      if (field.size > uint64_t(end - at))
        corrupt(path, "this is not an ONNX tensor, or it is cut off");
      field.data = at;
      at += field.size;
      break;
    case 5:
      field.value = fixed(4);
      break;
    default:
      corrupt(path, "this is not an ONNX tensor: a field has an unknown wire type");
    }
    return true;
  }

private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at == end)
        break;
      uint8_t byte = *at++;
      if (shift < 64)
        value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    corrupt(path, "this is not an ONNX tensor, or it is cut off");
  }

  uint64_t fixed(uint32_t bytes) {
    if (uint64_t(end - at) < bytes)
      corrupt(path, "this is not an ONNX tensor, or it is cut off");
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    at += bytes;
    return value;
  }

  const uint8_t *at, *end;
  const std::string &path;
};

/// Calls `each` for the elements of a repeated number, packed or not.
void eachNumber(const Field &field, uint32_t wire, const std::string &path, const std::function<void(uint64_t)> &each) {
  if (field.wire != 2) {
    each(field.value);
    return;
  }
  if (wire == 0) {
    // A packed field looks like a message without keys.
    for (uint64_t i = 0; i < field.size;) {
      uint64_t value = 0;
      int shift = 0;
      uint8_t byte;
      do {
        if (i == field.size || shift > 63)
          corrupt(path, "a list of numbers is not valid");
        byte = field.data[i++];
        value |= uint64_t(byte & 0x7f) << shift;
        shift += 7;
      } while (byte & 0x80);
      each(value);
    }
    return;
  }
  uint32_t bytes = wire == 1 ? 8 : 4;
  if (field.size % bytes)
    corrupt(path, "a list of numbers is not valid");
  for (uint64_t i = 0; i < field.size; i += bytes) {
    uint64_t value = 0;
    std::memcpy(&value, field.data + i, bytes);
    each(value);
  }
}

Tensor parseTensor(const uint8_t *data, uint64_t size, const std::string &path) {
  Tensor tensor;
  std::vector<uint8_t> raw;
  std::vector<uint64_t> numbers; // of the typed fields, as bits
  bool hasRaw = false, isFloatData = false, isDoubleData = false;
  int64_t dtype = 0;
  Message message(data, size, path);
  for (Field field; message.next(field);) {
    auto append = [&](uint64_t value) { numbers.push_back(value); };
    switch (field.number) {
    case 1:
      eachNumber(field, 0, path, [&](uint64_t dim) { tensor.dims.push_back(int64_t(dim)); });
      break;
    case 2:
      dtype = int64_t(field.value);
      break;
    case 4:
      isFloatData = true;
      eachNumber(field, 5, path, append);
      break;
    case 5:
    case 7:
    case 11:
      eachNumber(field, 0, path, append);
      break;
    case 10:
      isDoubleData = true;
      eachNumber(field, 1, path, append);
      break;
    case 6:
      corrupt(path, "tensors of strings are not supported here; this libtcrt passes numbers only");
    case 9:
      if (field.wire != 2)
        corrupt(path, "the tensor's data is not valid");
      hasRaw = true;
      raw.assign(field.data, field.data + field.size);
      break;
    case 14:
      if (field.value == 1)
        corrupt(path, "the tensor's data is in another file; store it in the .pb itself");
      break;
    default:
      break;
    }
  }
  if (dtype <= 0 || dtype > TCRT_DTYPE_I2 || !tcrt_dtype_bits(tcrt_dtype_t(dtype)))
    corrupt(path, "the tensor has data type " + std::to_string(dtype) + ", which is not a type of numbers");
  tensor.dtype = tcrt_dtype_t(dtype);
  if (tensor.dims.size() > TCRT_MAX_RANK)
    corrupt(path, "the tensor has rank " + std::to_string(tensor.dims.size()) + "; at most 16 is supported");
  uint64_t bytes;
  if (!tcrt_tensor_size(tensor.dtype, uint32_t(tensor.dims.size()), tensor.dims.data(), &bytes))
    corrupt(path, "the tensor's dims " + dimsText(tensor.dims) + " are not valid");
  if (!hasRaw) {
    // Every element of a typed field is one unit: an f32, an f64, or the low bits of an integer; complex numbers take
    // two.
    uint32_t bits = tcrt_dtype_bits(tensor.dtype);
    uint32_t unit = isFloatData ? 4 : isDoubleData ? 8 : bits >= 8 ? bits / 8 : 1;
    if (numbers.size() != (bytes + unit - 1) / unit || bytes % unit)
      corrupt(path, "the tensor has " + std::to_string(numbers.size()) + " numbers, which do not fit dims " +
                        dimsText(tensor.dims));
    for (uint64_t number : numbers) {
      const uint8_t *at = reinterpret_cast<const uint8_t *>(&number);
      raw.insert(raw.end(), at, at + std::min(unit, 8u));
    }
  }
  if (raw.size() != bytes)
    corrupt(path, "the tensor has " + std::to_string(raw.size()) + " bytes, expected " + std::to_string(bytes) +
                      " for dims " + dimsText(tensor.dims));
  tensor.data = std::move(raw);
  return tensor;
}

void putVarint(std::vector<uint8_t> &bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes.push_back(uint8_t(value) | 0x80);
  bytes.push_back(uint8_t(value));
}

void putBytes(std::vector<uint8_t> &bytes, uint32_t number, const void *data, uint64_t size) {
  putVarint(bytes, number << 3 | 2);
  putVarint(bytes, size);
  const uint8_t *at = static_cast<const uint8_t *>(data);
  bytes.insert(bytes.end(), at, at + size);
}

void putNumber(std::vector<uint8_t> &bytes, uint32_t number, uint64_t value) {
  putVarint(bytes, number << 3);
  putVarint(bytes, value);
}

} // namespace

PbValue tc::run::readPb(const std::string &path) {
  std::vector<uint8_t> bytes = readFile(path);
  bool hasInner = false, hasData = false;
  Message scan(bytes.data(), bytes.size(), path);
  for (Field field; scan.next(field);) {
    hasInner |= field.number == 3 && field.wire == 2;
    hasData |= field.number >= 4 && field.number <= 11 && field.number != 8;
  }
  PbValue value;
  if (!hasInner || hasData) {
    value.tensors.push_back(parseTensor(bytes.data(), bytes.size(), path));
    return value;
  }
  value.isTensor = false;
  Message message(bytes.data(), bytes.size(), path);
  for (Field field; message.next(field);) {
    if (field.number == 2 && field.wire == 0 && field.value != 1)
      corrupt(path, "only sequences and optionals of tensors are supported");
    if (field.number == 3 && field.wire == 2)
      value.tensors.push_back(parseTensor(field.data, field.size, path));
  }
  return value;
}

std::vector<uint8_t> tc::run::tensorProto(const std::string &name, const Tensor &tensor) {
  std::vector<uint8_t> bytes, dims;
  for (int64_t dim : tensor.dims)
    putVarint(dims, uint64_t(dim));
  if (!dims.empty())
    putBytes(bytes, 1, dims.data(), dims.size());
  putNumber(bytes, 2, tensor.dtype);
  if (!name.empty())
    putBytes(bytes, 8, name.data(), name.size());
  putBytes(bytes, 9, tensor.data.data(), tensor.data.size());
  return bytes;
}

std::vector<uint8_t> tc::run::sequenceProto(const std::string &name, const std::vector<Tensor> &tensors) {
  std::vector<uint8_t> bytes;
  putBytes(bytes, 1, name.data(), name.size());
  putNumber(bytes, 2, 1);
  for (const Tensor &tensor : tensors) {
    std::vector<uint8_t> inner = tensorProto("", tensor);
    putBytes(bytes, 3, inner.data(), inner.size());
  }
  return bytes;
}

std::vector<uint8_t> tc::run::optionalProto(const std::string &name, const Tensor *tensor) {
  std::vector<uint8_t> bytes;
  putBytes(bytes, 1, name.data(), name.size());
  putNumber(bytes, 2, tensor ? 1 : 0);
  if (tensor) {
    std::vector<uint8_t> inner = tensorProto("", *tensor);
    putBytes(bytes, 3, inner.data(), inner.size());
  }
  return bytes;
}
