//===- TorchArchive.cpp - archives of PyTorch, and tensors as views of their bytes --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Frontend/Torch/TorchArchive.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/CheckedArithmetic.h"

#include <algorithm>

using namespace mlir;
using namespace tc;
using namespace tc::torch;

/// A tensor may repeat its elements, by strides of 0. What that may make of a small storage.
static constexpr uint64_t kMaxRepeated = uint64_t(1) << 28;
/// What all members of an archive may unpack to, and its tensors be copied to: bytes for each of the file, and more.
static constexpr uint64_t kMaxFactor = 8, kMaxCopied = uint64_t(1) << 30;

Type torch::elementType(MLIRContext *context, ScalarType type) {
  Builder builder(context);
  switch (type) {
  case ScalarType::Byte:
  case ScalarType::QUInt8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case ScalarType::Char:
  case ScalarType::QInt8:
    return builder.getI8Type();
  case ScalarType::Short:
    return builder.getI16Type();
  case ScalarType::Int:
  case ScalarType::QInt32:
    return builder.getI32Type();
  case ScalarType::Long:
    return builder.getI64Type();
  case ScalarType::Half:
    return builder.getF16Type();
  case ScalarType::Float:
    return builder.getF32Type();
  case ScalarType::Double:
    return builder.getF64Type();
  case ScalarType::ComplexFloat:
    return ComplexType::get(builder.getF32Type());
  case ScalarType::ComplexDouble:
    return ComplexType::get(builder.getF64Type());
  case ScalarType::Bool:
    return builder.getI1Type();
  case ScalarType::BFloat16:
    return builder.getBF16Type();
  case ScalarType::Float8_e4m3fn:
    return Float8E4M3FNType::get(context);
  case ScalarType::Float8_e5m2:
    return Float8E5M2Type::get(context);
  case ScalarType::Float8_e4m3fnuz:
    return Float8E4M3FNUZType::get(context);
  case ScalarType::Float8_e5m2fnuz:
    return Float8E5M2FNUZType::get(context);
  case ScalarType::UInt16:
    return builder.getIntegerType(16, /*isSigned=*/false);
  case ScalarType::UInt32:
    return builder.getIntegerType(32, /*isSigned=*/false);
  case ScalarType::UInt64:
    return builder.getIntegerType(64, /*isSigned=*/false);
  default:
    return {};
  }
}

llvm::Expected<base::DataAttr> TorchArchive::makeTensor(ScalarType type, ArrayRef<int64_t> sizes,
                                                        ArrayRef<int64_t> strides, int64_t offset, ByteRange storage) {
  auto fail = [](const Twine &what) { return llvm::createStringError(what); };
  Type element = elementType(context, type);
  if (!element)
    return fail("has elements of type " + StringRef(pythonName(type)) +
                ", which is not supported; supported are integers, bool, float8, float16, bfloat16, float32, float64, "
                "complex64 and complex128");
  const uint64_t width = sizeInBytes(type);
  if (sizes.size() != strides.size() || offset < 0 || llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return fail("has sizes, strides or an offset that no tensor has; the archive is damaged");
  auto shape = RankedTensorType::get(sizes, element);
  std::optional<uint64_t> bytes = base::getPackedSizeBytes(shape);
  if (!bytes)
    return fail("has more elements than a tensor can have; the archive is damaged");
  if (*bytes == 0)
    return base::makeData(shape, std::vector<char>());
  if (storage.size == 0)
    return fail("has no numbers in the archive: its data has 0 bytes, as that of fake tensors has; save the model with "
                "real weights");
  // The last element, in checked arithmetic; elements in a row are a range.
  int64_t last = offset, row = 1;
  bool isRow = true, isOverflow = false;
  SmallVector<int64_t> steps(strides);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) { // whose stride says nothing
      steps[i] = 0;
      continue;
    }
    int64_t reach;
    if (strides[i] < 0)
      return fail("has a negative stride, which no tensor has; the archive is damaged");
    isOverflow |=
        __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last);
    isRow &= strides[i] == row;
    row *= sizes[i]; // at most the elements of the tensor
  }
  const uint64_t available = storage.size / width;
  if (isOverflow || uint64_t(last) >= available)
    return fail("reads element " + (isOverflow ? std::string("2^63") : std::to_string(last)) +
                " of its data, which has " + Twine(available) + "; the archive is damaged");
  if (isRow && (!bigEndian || width == 1))
    return base::makeData(shape, storage.blob, storage.offset + uint64_t(offset) * width, *bytes);
  if (*bytes > storage.size && *bytes > kMaxRepeated)
    return fail("repeats " + Twine(storage.size) + " bytes of data to " + Twine(*bytes) +
                "; keep the small tensor in the model and expand it in forward()");
  if (llvm::Error e = charge(*bytes))
    return std::move(e);
  ArrayRef<char> from = *base::getBlobStore(context).bytes(storage.blob, storage.offset, storage.size);
  std::vector<char> to(*bytes);
  // Row by row: the last dim by its stride, the others as digits of a counter.
  const size_t rank = sizes.size();
  const int64_t rowSize = rank ? sizes.back() : 1, rowStride = rank ? steps.back() : 1;
  SmallVector<int64_t> index(rank, 0);
  int64_t place = offset;
  for (char *out = to.data(), *end = out + to.size(); out != end;) {
    const char *in = from.data() + uint64_t(place) * width;
    if (rowStride == 1) {
      std::memcpy(out, in, uint64_t(rowSize) * width);
      out += uint64_t(rowSize) * width;
    } else {
      for (int64_t i = 0; i < rowSize; ++i, out += width)
        std::memcpy(out, in + uint64_t(i) * uint64_t(rowStride) * width, width);
    }
    for (size_t d = rank ? rank - 1 : 0; d-- > 0;) {
      place += steps[d];
      if (++index[d] < sizes[d])
        break;
      place -= steps[d] * sizes[d];
      index[d] = 0;
    }
  }
  if (const unsigned part = sizeOfPart(type); bigEndian && part > 1)
    for (size_t i = 0; i < to.size(); i += part)
      std::reverse(to.begin() + long(i), to.begin() + long(i + part));
  return base::makeData(shape, std::move(to));
}

llvm::Expected<TorchArchive> TorchArchive::open(MLIRContext *context, StringRef blob) {
  std::optional<ArrayRef<char>> bytes = base::getBlobStore(context).lookup(blob);
  const uint64_t size = bytes ? bytes->size() : 0;
  return open(context, {blob, 0, size}, std::make_shared<uint64_t>(kMaxFactor * size + kMaxCopied));
}

llvm::Expected<TorchArchive> TorchArchive::openInner(StringRef name) {
  llvm::Expected<ByteRange> bytes = record(name);
  if (!bytes)
    return bytes.takeError();
  if (llvm::Error e = charge(bytes->size))
    return std::move(e);
  return open(context, *bytes, budget);
}

llvm::Error TorchArchive::charge(uint64_t bytes) {
  if (bytes > *budget)
    return llvm::createStringError("the archive's tensors and members repeat its bytes more often than a model's do");
  *budget -= bytes;
  return llvm::Error::success();
}

llvm::Expected<TorchArchive> TorchArchive::open(MLIRContext *context, ByteRange range,
                                                std::shared_ptr<uint64_t> budget) {
  TorchArchive result;
  result.budget = std::move(budget);
  result.context = context;
  result.range = range;
  ArrayRef<char> bytes =
      base::getBlobStore(context).bytes(range.blob, range.offset, range.size).value_or(ArrayRef<char>());
  std::string why;
  std::optional<ZipArchive> archive = ZipArchive::open(StringRef(bytes.data(), bytes.size()), why);
  if (!archive)
    return llvm::createStringError(why);
  result.archive = std::move(*archive);
  // A folder that all members share.
  const std::vector<ZipArchive::Member> &members = result.archive.members();
  if (!members.empty()) {
    StringRef folder = StringRef(members.front().name).take_front(StringRef(members.front().name).find('/') + 1);
    if (llvm::all_of(members, [&](const auto &member) { return StringRef(member.name).starts_with(folder); }))
      result.folder = folder.str();
  }
  if (result.has("byteorder")) {
    llvm::Expected<ZipArchive::Contents> order = result.read("byteorder");
    if (!order)
      return order.takeError();
    StringRef name = order->text();
    if (name != "little" && name != "big")
      return llvm::createStringError(
          "member \"byteorder\" says neither \"little\" nor \"big\"; the archive is damaged");
    result.bigEndian = name == "big";
  }
  return result;
}

const ZipArchive::Member *TorchArchive::find(StringRef name) const { return archive.find(folder + name.str()); }

llvm::Expected<ZipArchive::Contents> TorchArchive::read(StringRef name) const {
  const ZipArchive::Member *member = find(name);
  if (!member)
    return llvm::createStringError("member \"" + name + "\" is missing; the archive is damaged");
  std::string why;
  std::optional<ZipArchive::Contents> contents = archive.read(*member, why);
  if (!contents)
    return llvm::createStringError(why);
  return std::move(*contents);
}

llvm::Expected<Pickle> TorchArchive::pickle(StringRef name) const {
  llvm::Expected<ZipArchive::Contents> contents = read(name);
  if (!contents)
    return contents.takeError();
  std::string why;
  std::optional<Pickle> pickle = Pickle::parse(contents->text(), why);
  if (!pickle)
    return llvm::createStringError("member \"" + name + "\": " + why);
  return std::move(*pickle);
}

llvm::Expected<ByteRange> TorchArchive::record(StringRef name) {
  auto [known, isNew] = records.try_emplace(name);
  if (!isNew)
    return known->second;
  auto fail = [&](const Twine &what) {
    records.erase(name);
    return llvm::createStringError(what);
  };
  const ZipArchive::Member *member = find(name);
  if (!member)
    return fail("member \"" + name + "\", its data, is missing; the archive is damaged");
  std::string why;
  if (!member->isStored())
    if (llvm::Error e = charge(member->size))
      return fail(llvm::toString(std::move(e)));
  std::optional<ZipArchive::Contents> contents = archive.read(*member, why);
  if (!contents)
    return fail(why);
  if (member->isStored()) {
    known->second = {range.blob, range.offset + member->offset, member->size};
  } else {
    StringRef text = contents->text();
    known->second = {base::getBlobStore(context).addOwned(std::vector<char>(text.begin(), text.end())), 0, text.size()};
  }
  return known->second;
}

llvm::Expected<base::DataAttr> TorchArchive::tensor(const PickledTensor &tensor, StringRef storages) {
  if (tensor.quantization)
    return llvm::createStringError("is quantized, which is not supported; call .dequantize() on it before the model is "
                                   "exported");
  if (tensor.isConjugated || tensor.isNegated)
    return llvm::createStringError(
        Twine("is stored ") + (tensor.isConjugated ? "conjugated" : "negated") + ", which is not supported; call ." +
        (tensor.isConjugated ? "resolve_conj()" : "resolve_neg()") + " on it before the model is exported");
  return integers(tensor, storages);
}

llvm::Expected<base::DataAttr> TorchArchive::integers(const PickledTensor &tensor, StringRef storages) {
  ByteRange bytes;
  const bool isEmpty = llvm::is_contained(tensor.sizes, 0);
  if (tensor.storage && !isEmpty) {
    llvm::Expected<ByteRange> found = record((storages + "/" + tensor.storage->key).str());
    if (!found)
      return found.takeError();
    bytes = *found;
  }
  return makeTensor(tensor.dtype, tensor.sizes, tensor.strides, tensor.offset, bytes);
}
