//===- OnnxFile.cpp - a bounded look at an ONNX file before protobuf parses it ------------------------------------===//
//
// Field numbers: onnx/onnx-ml.proto of ONNX 1.23. Wire format: protobuf's encoding guide.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "OnnxFile.h"
#include "llvm/ADT/Twine.h"
#include <limits>

using namespace llvm;

namespace tc::onnxfe {
namespace {

enum class Message {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  SparseTensor,
  Function,
  Training,
  ValueInfo,
  Type,
  Nested,
  Leaf
};

// The message that a field holds; Leaf for those that pass through.
Message getChild(Message parent, uint32_t field) {
  switch (parent) {
  case Message::Model:
    return field == 7    ? Message::Graph
           : field == 20 ? Message::Training
           : field == 25 ? Message::Function
                         : Message::Leaf;
  case Message::Graph:
    return field == 1                     ? Message::Node
           : field == 5                   ? Message::Tensor
           : field == 15                  ? Message::SparseTensor
           : (field >= 11 && field <= 13) ? Message::ValueInfo
                                          : Message::Leaf;
  case Message::Node:
    return field == 5 ? Message::Attribute : Message::Leaf;
  case Message::Attribute:
    return field == 5 || field == 10    ? Message::Tensor
           : field == 6 || field == 11  ? Message::Graph
           : field == 22 || field == 23 ? Message::SparseTensor
           : field == 14 || field == 15 ? Message::Type
                                        : Message::Leaf;
  case Message::SparseTensor:
    return field == 1 || field == 2 ? Message::Tensor : Message::Leaf;
  case Message::Function:
    return field == 7    ? Message::Node
           : field == 11 ? Message::Attribute
           : field == 12 ? Message::ValueInfo
                         : Message::Leaf;
  case Message::Training:
    return field == 1 || field == 2 ? Message::Graph : Message::Leaf;
  case Message::ValueInfo:
    return field == 2 ? Message::Type : Message::Leaf;
  case Message::Type:
    // Sequence, map and optional hold a type again, one message further in.
    return field == 4 || field == 5 || field == 9 ? Message::Nested : Message::Leaf;
  case Message::Nested:
    return field == 1 || field == 2 ? Message::Type : Message::Leaf;
  case Message::Tensor:
  case Message::Leaf:
    return Message::Leaf;
  }
  return Message::Leaf;
}

struct Field {
  uint32_t number = 0;
  unsigned wire = 0;
  uint64_t value = 0;     // varint
  ArrayRef<char> whole;   // with tag
  ArrayRef<char> payload; // of a length-delimited field
};

void appendVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void appendBytes(std::string &out, uint32_t field, StringRef bytes) {
  appendVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  appendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

class Walker {
public:
  Walker(ArrayRef<char> file, const WireLimits &limits) : file(file), limits(limits) {}

  // False where something is wrong; `problem` says what.
  bool walk(Message message, ArrayRef<char> bytes, unsigned depth, std::string &out) {
    if (depth > limits.maxDepth) {
      problem =
          "its graphs or types are nested more than " + std::to_string(limits.maxDepth) + " deep; flatten the model";
      return false;
    }
    if (message == Message::Tensor)
      return walkTensor(bytes, out);
    size_t position = 0;
    while (position < bytes.size()) {
      Field field;
      if (!next(bytes, position, field))
        return false;
      Message child = field.wire == 2 ? getChild(message, field.number) : Message::Leaf;
      if (child == Message::Node && ++nodes > limits.maxNodes) {
        problem = "it has more than " + std::to_string(limits.maxNodes) + " nodes, which is not supported";
        return false;
      }
      if (child == Message::Leaf) {
        out.append(field.whole.data(), field.whole.size());
        continue;
      }
      std::string inner;
      // Depth counts what a user nests: graphs in graphs, types in types.
      if (!walk(child, field.payload, depth + (child == Message::Graph || child == Message::Nested), inner))
        return false;
      appendBytes(out, field.number, inner);
    }
    return true;
  }

  std::string problem;

private:
  bool fail(size_t at) {
    problem = "it is no ONNX model, or is damaged or cut off (byte " + std::to_string(at) + " of " +
              std::to_string(file.size()) + " cannot be read); export or copy it again";
    return false;
  }

  bool varint(ArrayRef<char> bytes, size_t &position, uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (position >= bytes.size())
        return false;
      uint8_t byte = static_cast<uint8_t>(bytes[position++]);
      if (shift < 64)
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }

  bool next(ArrayRef<char> bytes, size_t &position, Field &field) {
    size_t begin = position, base = bytes.data() - file.data();
    uint64_t tag = 0;
    if (!varint(bytes, position, tag) || tag >> 3 == 0 || tag >> 32)
      return fail(base + begin);
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire = tag & 7;
    uint64_t length = 0;
    switch (field.wire) {
    case 0:
      if (!varint(bytes, position, field.value))
        return fail(base + begin);
      break;
    case 1:
    case 5:
      length = field.wire == 1 ? 8 : 4;
      break;
    case 2:
      if (!varint(bytes, position, length))
        return fail(base + begin);
      break;
    default:
      // Groups: ONNX has none.
      return fail(base + begin);
    }
    if (length > bytes.size() - position)
      return fail(base + begin);
    field.payload = bytes.slice(position, length);
    position += length;
    field.whole = bytes.slice(begin, position - begin);
    return true;
  }

  // Leaves large data of fixed-width elements out, where it is one run of bytes in the layout of raw_data.
  bool walkTensor(ArrayRef<char> bytes, std::string &out) {
    enum : uint32_t { DataType = 2, FloatData = 4, Raw = 9, DoubleData = 10, External = 13, DataLocation = 14 };
    enum : uint64_t { Float = 1, Double = 11, Float6E2M3 = 27, Float6E3M2 = 28 };
    uint64_t type = 0;
    bool external = false;
    unsigned dataFields = 0;
    Field data;
    for (size_t position = 0; position < bytes.size();) {
      Field field;
      if (!next(bytes, position, field))
        return false;
      if (field.number == DataType)
        type = field.value;
      external |= field.number == External || (field.number == DataLocation && field.value != 0);
      if ((field.number >= FloatData && field.number <= 7 && field.number != 6) ||
          (field.number >= Raw && field.number <= 11) || field.number == 6) {
        ++dataFields;
        data = field;
      }
    }
    bool movable = dataFields == 1 && !external && data.wire == 2 && data.payload.size() > kMaxSkeletonTensor &&
                   type != Float6E2M3 && type != Float6E3M2 &&
                   (data.number == Raw || (data.number == FloatData && type == Float) ||
                    (data.number == DoubleData && type == Double));
    if (!movable) {
      out.append(bytes.data(), bytes.size());
      return true;
    }
    for (size_t position = 0; position < bytes.size();) {
      Field field;
      if (!next(bytes, position, field))
        return false;
      if (field.number != data.number)
        out.append(field.whole.data(), field.whole.size());
    }
    auto entry = [&](StringRef key, const Twine &value) {
      std::string pair;
      appendBytes(pair, 1, key);
      appendBytes(pair, 2, value.str());
      appendBytes(out, External, pair);
    };
    entry("location", kSelfLocation);
    entry("offset", Twine(static_cast<uint64_t>(data.payload.data() - file.data())));
    entry("length", Twine(static_cast<uint64_t>(data.payload.size())));
    appendVarint(out, DataLocation << 3);
    appendVarint(out, 1);
    return true;
  }

  ArrayRef<char> file;
  const WireLimits &limits;
  uint64_t nodes = 0;
};

} // namespace

Expected<std::string> makeSkeleton(ArrayRef<char> file, const WireLimits &limits) {
  std::string skeleton;
  Walker walker(file, limits);
  if (!walker.walk(Message::Model, file, 0, skeleton))
    return createStringError(std::make_error_code(std::errc::invalid_argument), walker.problem);
  if (skeleton.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return createStringError(std::make_error_code(std::errc::file_too_large),
                             "it has more than 2 GB apart from its raw tensor data, which protobuf cannot read; save "
                             "it with external data");
  return skeleton;
}

} // namespace tc::onnxfe
