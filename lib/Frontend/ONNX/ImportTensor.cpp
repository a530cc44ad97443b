//===- ImportTensor.cpp - ONNX types and tensors to types and constants -------------------------------------------===//
//
// Raw data in the model's file or in external files is referenced where it lies; all else becomes an owned blob in the
// layout of #tc.data.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ImportGraph.h"
#include "OnnxFile.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace mlir;
using llvm::Error;
using llvm::Twine;

namespace tc::onnxfe {

//===--- types ----------------------------------------------------------------------------------------------------===//

llvm::Expected<Type> GraphImporter::importElementType(int dataType, StringRef what) const {
  using T = onnx::TensorProto;
  OpBuilder b(context);
  switch (dataType) {
  case T::FLOAT:
    return b.getF32Type();
  case T::DOUBLE:
    return b.getF64Type();
  case T::FLOAT16:
    return b.getF16Type();
  case T::BFLOAT16:
    return b.getBF16Type();
  case T::BOOL:
    return b.getI1Type();
  case T::INT8:
    return b.getIntegerType(8);
  case T::INT16:
    return b.getIntegerType(16);
  case T::INT32:
    return b.getIntegerType(32);
  case T::INT64:
    return b.getIntegerType(64);
  case T::UINT8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case T::UINT16:
    return b.getIntegerType(16, /*isSigned=*/false);
  case T::UINT32:
    return b.getIntegerType(32, /*isSigned=*/false);
  case T::UINT64:
    return b.getIntegerType(64, /*isSigned=*/false);
  case T::INT4:
    return b.getIntegerType(4);
  case T::UINT4:
    return b.getIntegerType(4, /*isSigned=*/false);
  case T::INT2:
    return b.getIntegerType(2);
  case T::UINT2:
    return b.getIntegerType(2, /*isSigned=*/false);
  case T::STRING:
    return base::StringType::get(context);
  case T::COMPLEX64:
    return ComplexType::get(b.getF32Type());
  case T::COMPLEX128:
    return ComplexType::get(b.getF64Type());
  case T::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case T::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case T::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case T::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case T::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case T::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case T::FLOAT6E2M3:
    return Float6E2M3FNType::get(context);
  case T::FLOAT6E3M2:
    return Float6E3M2FNType::get(context);
  default:
    return error("element type " + Twine(dataType) + " of " + quote(what) + " is unknown; known are 1 to " +
                 Twine(static_cast<int>(T::DataType_MAX)));
  }
}

int getDataType(Type type) {
  using T = onnx::TensorProto;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return T::BOOL;
    case 2:
      return isUnsigned ? T::UINT2 : T::INT2;
    case 4:
      return isUnsigned ? T::UINT4 : T::INT4;
    case 8:
      return isUnsigned ? T::UINT8 : T::INT8;
    case 16:
      return isUnsigned ? T::UINT16 : T::INT16;
    case 32:
      return isUnsigned ? T::UINT32 : T::INT32;
    case 64:
      return isUnsigned ? T::UINT64 : T::INT64;
    default:
      return T::UNDEFINED;
    }
  }
  if (auto complexType = dyn_cast<ComplexType>(type))
    return complexType.getElementType().isF32() ? T::COMPLEX64 : T::COMPLEX128;
  return llvm::TypeSwitch<Type, int>(type)
      .Case([](Float32Type) { return T::FLOAT; })
      .Case([](Float64Type) { return T::DOUBLE; })
      .Case([](Float16Type) { return T::FLOAT16; })
      .Case([](BFloat16Type) { return T::BFLOAT16; })
      .Case([](base::StringType) { return T::STRING; })
      .Case([](Float8E4M3FNType) { return T::FLOAT8E4M3FN; })
      .Case([](Float8E4M3FNUZType) { return T::FLOAT8E4M3FNUZ; })
      .Case([](Float8E5M2Type) { return T::FLOAT8E5M2; })
      .Case([](Float8E5M2FNUZType) { return T::FLOAT8E5M2FNUZ; })
      .Case([](Float8E8M0FNUType) { return T::FLOAT8E8M0; })
      .Case([](Float4E2M1FNType) { return T::FLOAT4E2M1; })
      .Case([](Float6E2M3FNType) { return T::FLOAT6E2M3; })
      .Case([](Float6E3M2FNType) { return T::FLOAT6E3M2; })
      .Default([](Type) { return T::UNDEFINED; });
}

llvm::Expected<Type> GraphImporter::importType(const onnx::TypeProto &type, StringRef what) const {
  auto tensor = [&](const auto &proto) -> llvm::Expected<Type> {
    llvm::Expected<Type> element = importElementType(proto.elem_type(), what);
    if (!element)
      return element.takeError();
    if (!proto.has_shape())
      return UnrankedTensorType::get(*element);
    SmallVector<int64_t> shape;
    for (const onnx::TensorShapeProto::Dimension &dim : proto.shape().dim())
      // Exporters write -1 for unknown sizes too.
      shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : ShapedType::kDynamic);
    return RankedTensorType::get(shape, *element);
  };
  auto nested = [&](const onnx::TypeProto &inner) { return importType(inner, what); };
  switch (type.value_case()) {
  case onnx::TypeProto::kTensorType:
    // A type that says nothing at all, as some exporters write it.
    if (type.tensor_type().elem_type() == 0)
      return base::UnknownType::get(context);
    return tensor(type.tensor_type());
  case onnx::TypeProto::kSparseTensorType: {
    llvm::Expected<Type> dense = tensor(type.sparse_tensor_type());
    if (!dense)
      return dense.takeError();
    return base::SparseType::get(context, *dense);
  }
  case onnx::TypeProto::kSequenceType: {
    llvm::Expected<Type> element = nested(type.sequence_type().elem_type());
    if (!element)
      return element.takeError();
    return base::SeqType::get(context, *element);
  }
  case onnx::TypeProto::kOptionalType: {
    llvm::Expected<Type> element = nested(type.optional_type().elem_type());
    if (!element)
      return element.takeError();
    return base::OptType::get(context, *element);
  }
  case onnx::TypeProto::kMapType: {
    llvm::Expected<Type> key = importElementType(type.map_type().key_type(), what);
    if (!key)
      return key.takeError();
    llvm::Expected<Type> value = nested(type.map_type().value_type());
    if (!value)
      return value.takeError();
    return base::MapType::get(context, *key, *value);
  }
  case onnx::TypeProto::kOpaqueType:
    return error("the type of " + quote(what) + " is opaque (" + quote(type.opaque_type().name()) +
                 "), which is not supported");
  case onnx::TypeProto::VALUE_NOT_SET:
    break;
  }
  return base::UnknownType::get(context);
}

//===--- external data --------------------------------------------------------------------------------------------===//

// Six-bit floats: four to three bytes in files, one to a byte in #tc.data.
static std::vector<char> unpack6(StringRef packed, uint64_t count) {
  std::vector<char> bytes(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bit = 6 * i;
    unsigned window = static_cast<uint8_t>(packed[bit / 8]);
    if (bit / 8 + 1 < packed.size())
      window |= static_cast<unsigned>(static_cast<uint8_t>(packed[bit / 8 + 1])) << 8;
    bytes[i] = static_cast<char>((window >> (bit % 8)) & 0x3f);
  }
  return bytes;
}

// Whether `path` is inside `folder`; both real paths.
static bool isInside(StringRef path, StringRef folder) {
  if (folder == "/")
    return true;
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

llvm::Expected<Attribute> GraphImporter::importExternal(const onnx::TensorProto &tensor, RankedTensorType type,
                                                        const Twine &where) {
  std::string location, offsetText, lengthText;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      offsetText = entry.value();
    else if (entry.key() == "length")
      lengthText = entry.value();
  }
  if (StringRef(location).starts_with(kAttrLocation)) {
    size_t index = 0;
    if (StringRef(location).drop_front(kAttrLocation.size()).getAsInteger(10, index) || index >= tensorAttrs.size())
      return error(where + " refers to no attribute");
    return tensorAttrs[index];
  }
  std::string data = where.str() + " has external data in " + quote(location);
  if (location.empty())
    return error(where + " has external data, but no location of it");
  if (isa<base::StringType>(type.getElementType()))
    return error(data + ", but strings cannot be external");
  uint64_t offset = 0, size = *base::getPackedSizeBytes(type), length = size;
  bool packed6 = type.getElementType().isFloat(6);
  if (packed6)
    length = size = llvm::divideCeil(*base::getNumElements(type) * 6, 8);
  if (!offsetText.empty() && StringRef(offsetText).getAsInteger(10, offset))
    return error(data + ", whose offset " + quote(offsetText) + " is not a number");
  if (!lengthText.empty() && StringRef(lengthText).getAsInteger(10, length))
    return error(data + ", whose length " + quote(lengthText) + " is not a number");
  if (length != size) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return error((location == kSelfLocation ? where.str() + " has " + Twine(length).str() + " bytes of raw data"
                                            : data + ", of " + Twine(length).str() + " bytes") +
                 "; its type " + text + " needs " + Twine(size));
  }
  BlobStore &store = base::getBlobStore(context);
  std::string blob = modelBlob;
  if (location != kSelfLocation) {
    StringRef stop = "; external data must stay in the folder of the model";
    if (llvm::sys::path::is_absolute(location) ||
        llvm::is_contained(llvm::make_range(llvm::sys::path::begin(location), llvm::sys::path::end(location)), ".."))
      return error(data + stop);
    if (location.find('\0') != std::string::npos)
      return error(data + ", which is not a path");
    SmallString<256> file(llvm::sys::path::parent_path(path));
    llvm::sys::path::append(file, location);
    SmallString<256> realFile, realModel, realFolder;
    if (std::error_code reason = llvm::sys::fs::real_path(file, realFile))
      return error(data + ", which cannot be read: " + reason.message() + "; put it beside the model");
    // Caches of models are folders of links to files elsewhere: a link is followed where the model is one as well and
    // its target lies beside the data's.
    StringRef folder = llvm::sys::path::parent_path(path);
    if (llvm::sys::fs::real_path(folder.empty() ? "." : folder, realFolder) ||
        llvm::sys::fs::real_path(path, realModel))
      return error("cannot find the folder of the model");
    if (!isInside(realFile, realFolder) && !isInside(realFile, llvm::sys::path::parent_path(realModel)))
      return error(data + ", which is a link to elsewhere" + stop);
    if (!llvm::sys::fs::is_regular_file(Twine(file)))
      return error(data + ", which is not a file; put it beside the model");
    llvm::Expected<StringRef> key = store.addFile(file);
    if (!key) {
      llvm::consumeError(key.takeError());
      return error(data + ", which cannot be read; put it beside the model");
    }
    blob = key->str();
  }
  std::optional<ArrayRef<char>> bytes = store.bytes(blob, offset, length);
  if (!bytes)
    return error(data + ", which is too short: bytes " + Twine(offset) + " to " + Twine(offset) + " + " +
                 Twine(length) + " are needed; copy the file again");
  if (packed6)
    return base::makeData(type, unpack6(StringRef(bytes->data(), bytes->size()), *base::getNumElements(type)));
  return base::makeData(type, blob, offset, length);
}

//===--- tensors --------------------------------------------------------------------------------------------------===//

// The low `width` bytes of each number, one after the other.
template <typename Numbers> static std::vector<char> gatherLow(const Numbers &numbers, size_t width) {
  std::vector<char> bytes(numbers.size() * width);
  char *out = bytes.data();
  for (auto number : numbers) {
    std::memcpy(out, &number, width);
    out += width;
  }
  return bytes;
}

GraphImporter::AttrResult GraphImporter::importTensor(const onnx::TensorProto &tensor, StringRef node, StringRef name) {
  using T = onnx::TensorProto;
  std::string where =
      node.empty() ? "initializer " + quote(name) : "node " + quote(node) + ": attribute " + quote(name);
  llvm::Expected<Type> element = importElementType(tensor.data_type(), name);
  if (!element) {
    llvm::consumeError(element.takeError());
    return error(where + " has the element type " + Twine(tensor.data_type()) + ", which is unknown; known are 1 to " +
                 Twine(static_cast<int>(T::DataType_MAX)));
  }
  for (int64_t dim : tensor.dims())
    if (dim < 0)
      return error(where + " has a negative size " + Twine(dim));
  if (tensor.has_segment())
    return error(where + " is stored in segments, which is not supported; save the model again");
  auto type = RankedTensorType::get(SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end()), *element);
  std::optional<uint64_t> count = base::getNumElements(type);
  bool isString = isa<base::StringType>(*element);
  if (!count || (!isString && !base::getPackedSizeBytes(type)) || *count > (uint64_t(1) << 56))
    return error(where + " has more elements than a 64-bit size can count");
  bool packed6 = element->isFloat(6);

  if (tensor.data_location() == T::EXTERNAL)
    return importExternal(tensor, type, where);

  if (isString) {
    if (tensor.has_raw_data())
      return error(where + " has strings as raw data; they belong into string_data");
    if (static_cast<uint64_t>(tensor.string_data_size()) != *count)
      return error(where + " has " + Twine(tensor.string_data_size()) + " strings; its shape needs " + Twine(*count));
    SmallVector<StringRef> strings(tensor.string_data().begin(), tensor.string_data().end());
    return base::makeStringData(type, strings);
  }
  uint64_t size = *base::getPackedSizeBytes(type);
  if (tensor.has_raw_data()) {
    const std::string &raw = tensor.raw_data();
    uint64_t rawSize = packed6 ? llvm::divideCeil(*count * 6, 8) : size;
    if (raw.size() != rawSize) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      return error(where + " has " + Twine(raw.size()) + " bytes of raw data; its type " + text + " needs " +
                   Twine(rawSize));
    }
    return base::makeData(type, packed6 ? unpack6(raw, *count) : std::vector<char>(raw.begin(), raw.end()));
  }

  std::vector<char> bytes;
  uint64_t entries = 0;
  unsigned width = *base::getPackedBitWidth(*element);
  switch (tensor.data_type()) {
  case T::FLOAT:
  case T::COMPLEX64:
    entries = tensor.float_data_size();
    bytes = gatherLow(tensor.float_data(), 4);
    break;
  case T::DOUBLE:
  case T::COMPLEX128:
    entries = tensor.double_data_size();
    bytes = gatherLow(tensor.double_data(), 8);
    break;
  case T::INT64:
    entries = tensor.int64_data_size();
    bytes = gatherLow(tensor.int64_data(), 8);
    break;
  case T::UINT32:
  case T::UINT64:
    entries = tensor.uint64_data_size();
    bytes = gatherLow(tensor.uint64_data(), width / 8);
    break;
  default:
    entries = tensor.int32_data_size();
    // Types below a byte: each entry is one packed byte.
    bytes = gatherLow(tensor.int32_data(), width < 8 ? 1 : width / 8);
    if (element->isInteger(1))
      for (char &byte : bytes)
        byte = byte != 0;
    break;
  }
  if (bytes.size() != size) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return error(where + " has " + Twine(entries) + " values; its type " + text + " needs " +
                 Twine(entries && bytes.size() ? size / (bytes.size() / entries) : *count));
  }
  return base::makeData(type, std::move(bytes));
}

GraphImporter::AttrResult GraphImporter::importSparse(const onnx::SparseTensorProto &sparse, StringRef node,
                                                      StringRef name) {
  std::string where = (node.empty() ? "" : "node " + quote(node) + ": ") + "sparse tensor " + quote(name);
  AttrResult values = importTensor(sparse.values(), node, name);
  if (!values)
    return values.takeError();
  AttrResult indices = importTensor(sparse.indices(), node, name);
  if (!indices)
    return indices.takeError();
  SmallVector<int64_t> shape(sparse.dims().begin(), sparse.dims().end());
  for (int64_t dim : shape)
    if (dim < 0)
      return error(where + " has a negative size " + Twine(dim));
  auto valuesData = cast<base::DataAttr>(*values), indicesData = cast<base::DataAttr>(*indices);
  auto type = RankedTensorType::get(shape, valuesData.getType().getElementType());
  std::string problem;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    problem = diagnostic.str();
    return success();
  });
  auto attr = graph::SparseAttr::getChecked([&] { return emitError(UnknownLoc::get(context)); }, context, valuesData,
                                            indicesData, type);
  if (!attr)
    return error(where + " is not valid: " + problem);
  return attr;
}

} // namespace tc::onnxfe
