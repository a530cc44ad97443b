//===- Pb.cpp - ONNX TensorProto, SequenceProto, OptionalProto and MapProto files ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Pb.h"

#include <algorithm>
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

ByteVector unpackSixBits(const ByteVector &packed, uint64_t count) {
  ByteVector elements(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = 6 * i / 8;
    uint32_t window = packed[at] | (at + 1 < packed.size() ? uint32_t(packed[at + 1]) << 8 : 0);
    elements[i] = uint8_t(window >> (6 * i % 8) & 0x3f);
  }
  return elements;
}

ByteVector packSixBits(const ByteVector &elements) {
  ByteVector packed(elements.size() / 4 * 3 + elements.size() % 4, 0);
  for (uint64_t i = 0; i < elements.size(); ++i) {
    uint32_t bits = uint32_t(elements[i] & 0x3f) << (6 * i % 8);
    packed[6 * i / 8] |= uint8_t(bits);
    if (bits > 0xff)
      packed[6 * i / 8 + 1] |= uint8_t(bits >> 8);
  }
  return packed;
}

Tensor parseTensor(const uint8_t *data, uint64_t size, const std::string &path) {
  Tensor tensor;
  ByteVector raw;
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
      if (field.wire != 2)
        corrupt(path, "the tensor's data is not valid");
      tensor.strings.emplace_back(reinterpret_cast<const char *>(field.data), field.size);
      break;
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
  if (dtype <= 0 || dtype > TCRT_DTYPE_F6E3M2)
    corrupt(path, "the tensor has data type " + std::to_string(dtype) + ", which is not known");
  tensor.dtype = tcrt_dtype_t(dtype);
  if (tensor.dims.size() > TCRT_MAX_RANK)
    corrupt(path, "the tensor has rank " + std::to_string(tensor.dims.size()) + "; at most 16 is supported");
  uint64_t bytes;
  if (!tcrt_tensor_size(tensor.dtype, uint32_t(tensor.dims.size()), tensor.dims.data(), &bytes))
    corrupt(path, "the tensor's dims " + dimsText(tensor.dims) + " are not valid");
  if (tensor.dtype == TCRT_DTYPE_STRING) {
    if (int64_t(tensor.strings.size()) != tensor.count())
      corrupt(path, "the tensor has " + std::to_string(tensor.strings.size()) + " strings, which do not fit dims " +
                        dimsText(tensor.dims));
    return tensor;
  }
  tensor.strings.clear();
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
  // Raw data has four six-bit elements in three bytes, tensors one in each.
  bool isPacked = hasRaw && isSixBits(tensor.dtype);
  if (isPacked)
    bytes = bytes / 4 * 3 + bytes % 4;
  if (raw.size() != bytes)
    corrupt(path, "the tensor has " + std::to_string(raw.size()) + " bytes, expected " + std::to_string(bytes) +
                      " for dims " + dimsText(tensor.dims));
  tensor.data = isPacked ? unpackSixBits(raw, uint64_t(tensor.count())) : std::move(raw);
  return tensor;
}

void putVarint(ByteVector &bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes.push_back(uint8_t(value) | 0x80);
  bytes.push_back(uint8_t(value));
}

void putBytes(ByteVector &bytes, uint32_t number, const void *data, uint64_t size) {
  putVarint(bytes, number << 3 | 2);
  putVarint(bytes, size);
  const uint8_t *at = static_cast<const uint8_t *>(data);
  bytes.insert(bytes.end(), at, at + size);
}

void putNumber(ByteVector &bytes, uint32_t number, uint64_t value) {
  putVarint(bytes, number << 3);
  putVarint(bytes, value);
}

} // namespace

namespace {

/// Numbers of the fields with values, by kind: of a SequenceProto (repeated) or an OptionalProto.
uint32_t fieldOf(uint32_t kind) {
  return kind == TCRT_VALUE_TENSOR ? 3 : kind == TCRT_VALUE_SEQUENCE ? 5 : kind == TCRT_VALUE_MAP ? 6 : 7;
}

/// SequenceProto::DataType and OptionalProto::DataType.
uint64_t elementTypeOf(uint32_t kind) {
  return kind == TCRT_VALUE_TENSOR ? 1 : kind == TCRT_VALUE_SEQUENCE ? 3 : kind == TCRT_VALUE_MAP ? 4 : 5;
}

Value parseValue(const uint8_t *data, uint64_t size, uint32_t kinds, const std::string &path);

/// A MapProto: keys and values become two 1-D tensors.
Value parseMap(const uint8_t *data, uint64_t size, const std::string &path) {
  Value map;
  map.kind = TCRT_VALUE_MAP;
  map.elements.resize(2);
  Tensor &keys = map.elements[0].tensor, &values = map.elements[1].tensor;
  keys.dtype = TCRT_DTYPE_I64; // as the proto holds all integers
  Message message(data, size, path);
  for (Field field; message.next(field);) {
    if (field.number == 2 && field.wire == 0 && field.value == TCRT_DTYPE_STRING)
      keys.dtype = TCRT_DTYPE_STRING;
    if (field.number == 3)
      eachNumber(field, 0, path, [&](uint64_t key) {
        const uint8_t *at = reinterpret_cast<const uint8_t *>(&key);
        keys.data.insert(keys.data.end(), at, at + 8);
      });
    if (field.number == 4 && field.wire == 2)
      keys.strings.emplace_back(reinterpret_cast<const char *>(field.data), field.size);
    if (field.number == 5 && field.wire == 2)
      for (const Value &value : parseValue(field.data, field.size, TCRT_VALUE_SEQUENCE, path).elements) {
        values.dtype = value.tensor.dtype;
        values.data.insert(values.data.end(), value.tensor.data.begin(), value.tensor.data.end());
        values.strings.insert(values.strings.end(), value.tensor.strings.begin(), value.tensor.strings.end());
      }
  }
  for (Tensor *tensor : {&keys, &values})
    tensor->dims = {tensor->dtype == TCRT_DTYPE_STRING
                        ? int64_t(tensor->strings.size())
                        : int64_t(tensor->data.size() * 8 / std::max(1u, tcrt_dtype_bits(tensor->dtype)))};
  if (keys.dims != values.dims)
    corrupt(path,
            "a map has " + std::to_string(keys.dims[0]) + " keys and " + std::to_string(values.dims[0]) + " values");
  return map;
}

Value parseValue(const uint8_t *data, uint64_t size, uint32_t kinds, const std::string &path) {
  Value value;
  value.kind = kinds & 0xff;
  if (value.kind == TCRT_VALUE_TENSOR) {
    value.tensor = parseTensor(data, size, path);
    return value;
  }
  if (value.kind == TCRT_VALUE_MAP)
    return parseMap(data, size, path);
  uint32_t inner = kinds >> 8;
  Message message(data, size, path);
  for (Field field; message.next(field);) {
    if (field.number == 2 && field.wire == 0 && field.value != 0 && field.value != elementTypeOf(inner & 0xff))
      corrupt(path, "the values inside are of another kind than the model declares");
    if (field.number == fieldOf(inner & 0xff) && field.wire == 2)
      value.elements.push_back(parseValue(field.data, field.size, inner, path));
  }
  if (value.kind == TCRT_VALUE_OPTIONAL && value.elements.size() > 1)
    corrupt(path, "an optional has more than one value");
  return value;
}

} // namespace

Value tc::run::readPb(const std::string &path, uint32_t kinds) {
  ByteVector bytes = readFile(path);
  return parseValue(bytes.data(), bytes.size(), kinds, path);
}

ByteVector tc::run::tensorProto(const std::string &name, const Tensor &tensor) {
  ByteVector bytes, dims;
  for (int64_t dim : tensor.dims)
    putVarint(dims, uint64_t(dim));
  if (!dims.empty())
    putBytes(bytes, 1, dims.data(), dims.size());
  putNumber(bytes, 2, tensor.dtype);
  if (!name.empty())
    putBytes(bytes, 8, name.data(), name.size());
  for (const std::string &text : tensor.strings)
    putBytes(bytes, 6, text.data(), text.size());
  ByteVector packed = isSixBits(tensor.dtype) ? packSixBits(tensor.data) : ByteVector();
  const ByteVector &raw = isSixBits(tensor.dtype) ? packed : tensor.data;
  if (tensor.dtype != TCRT_DTYPE_STRING)
    putBytes(bytes, 9, raw.data(), raw.size());
  return bytes;
}

ByteVector tc::run::valueProto(const std::string &name, const Value &value, uint32_t kinds) {
  if (value.kind == TCRT_VALUE_TENSOR)
    return tensorProto(name, value.tensor);
  ByteVector bytes;
  putBytes(bytes, 1, name.data(), name.size());
  if (value.kind == TCRT_VALUE_MAP) {
    const Tensor &keys = value.elements[0].tensor, &values = value.elements[1].tensor;
    putNumber(bytes, 2, keys.dtype);
    for (int64_t i = 0; i < int64_t(keys.data.size() / 8); ++i)
      putNumber(bytes, 3, uint64_t(integerAt(keys, i)));
    for (const std::string &key : keys.strings)
      putBytes(bytes, 4, key.data(), key.size());
    Value list;
    list.kind = TCRT_VALUE_SEQUENCE;
    for (int64_t i = 0, unit = tcrt_dtype_bits(values.dtype) / 8; i < values.count(); ++i) {
      Tensor element;
      element.dtype = values.dtype;
      if (values.dtype == TCRT_DTYPE_STRING)
        element.strings = {values.strings[size_t(i)]};
      else
        element.data.assign(values.data.begin() + i * unit, values.data.begin() + (i + 1) * unit);
      list.elements.push_back({TCRT_VALUE_TENSOR, std::move(element), {}});
    }
    ByteVector inner = valueProto("", list, TCRT_VALUE_SEQUENCE);
    putBytes(bytes, 5, inner.data(), inner.size());
    return bytes;
  }
  uint32_t inside = kinds >> 8 & 0xff;
  // An optional without a value says so by an undefined type.
  putNumber(bytes, 2, value.kind == TCRT_VALUE_OPTIONAL && value.elements.empty() ? 0 : elementTypeOf(inside));
  for (const Value &element : value.elements) {
    ByteVector inner = valueProto("", element, kinds >> 8);
    putBytes(bytes, fieldOf(inside), inner.data(), inner.size());
  }
  return bytes;
}
