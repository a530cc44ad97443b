//===- TCData.cpp - making, reading and storing constants ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "tc/Dialect/TC/IR/DataFile.h"
#include "tc/Dialect/TC/IR/Seeded.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Support/Hash.h"
#include "tc/Support/OutputFile.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tc;
using namespace tc::base;

// Keys of files that writeBlobs makes; loadBlobs maps them again. Derived from the content: no path, no clash.
static constexpr llvm::StringLiteral kDataFilePrefix = BlobStore::kDataFilePrefix;

BlobStore &base::getBlobStore(MLIRContext *context) { return context->getOrLoadDialect<TCDialect>()->getBlobStore(); }

std::optional<unsigned> base::getPackedBitWidth(Type elementType) {
  if (elementType.isInteger(1))
    return 8;
  if (auto complexType = dyn_cast<ComplexType>(elementType)) {
    std::optional<unsigned> part = getPackedBitWidth(complexType.getElementType());
    if (!part || *part < 8)
      return std::nullopt;
    return 2 * *part;
  }
  if (isa<IndexType>(elementType))
    return std::nullopt;
  if (!elementType.isIntOrFloat())
    return std::nullopt;
  unsigned width = elementType.getIntOrFloatBitWidth();
  // 6-bit floats take a byte each, like every width that does not divide 8.
  return width == 2 || width == 4 ? width : static_cast<unsigned>(llvm::alignTo(width, 8));
}

std::optional<uint64_t> base::getNumElements(ShapedType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  int64_t count = 1;
  // A zero anywhere makes the tensor empty, whatever the other sizes are.
  if (llvm::is_contained(type.getShape(), 0))
    return 0;
  for (int64_t dim : type.getShape()) {
    std::optional<int64_t> product = llvm::checkedMul(count, dim);
    if (!product)
      return std::nullopt;
    count = *product;
  }
  return count;
}

std::optional<uint64_t> base::getPackedSizeBytes(RankedTensorType type) {
  std::optional<unsigned> width = getPackedBitWidth(type.getElementType());
  std::optional<uint64_t> count = getNumElements(type);
  if (!width || !count)
    return std::nullopt;
  std::optional<int64_t> bits = llvm::checkedMul<int64_t>(*count, *width);
  if (!bits)
    return std::nullopt;
  return llvm::divideCeil(static_cast<uint64_t>(*bits), 8);
}

DataAttr base::makeData(RankedTensorType type, std::vector<char> bytes) {
  std::string hash = contentHash(bytes);
  uint64_t length = bytes.size();
  StringRef key = getBlobStore(type.getContext()).addOwned(std::move(bytes), hash);
  return DataAttr::get(type.getContext(), key, 0, length, hash, type);
}

DataAttr base::makeData(RankedTensorType type, StringRef blob, uint64_t offset, uint64_t length) {
  std::optional<ArrayRef<char>> bytes = getBlobStore(type.getContext()).bytes(blob, offset, length);
  std::string hash = contentHash(bytes.value_or(ArrayRef<char>()));
  return DataAttr::get(type.getContext(), blob, offset, length, hash, type);
}

DataAttr base::makeStringData(RankedTensorType type, ArrayRef<StringRef> strings) {
  uint64_t characters = 0;
  for (StringRef string : strings)
    characters += string.size();
  std::vector<char> bytes;
  bytes.reserve(8 * (strings.size() + 1) + characters);
  auto append = [&](uint64_t offset) {
    char raw[8];
    llvm::support::endian::write64le(raw, offset);
    bytes.insert(bytes.end(), raw, raw + 8);
  };
  uint64_t offset = 0;
  append(0);
  for (StringRef string : strings)
    append(offset += string.size());
  for (StringRef string : strings)
    bytes.insert(bytes.end(), string.begin(), string.end());
  return makeData(type, std::move(bytes));
}

FailureOr<ArrayRef<char>> base::getBytes(DataAttr attr) {
  auto *dialect = static_cast<TCDialect *>(&attr.getDialect());
  std::optional<ArrayRef<char>> bytes =
      dialect->getBlobStore().bytes(attr.getBlob(), attr.getOffset(), attr.getLength());
  if (!bytes)
    return failure();
  return *bytes;
}

FailureOr<SmallVector<StringRef>> base::getStrings(DataAttr attr) {
  FailureOr<ArrayRef<char>> bytes = getBytes(attr);
  std::optional<uint64_t> count = getNumElements(attr.getType());
  if (failed(bytes) || !count || !isa<StringType>(attr.getType().getElementType()))
    return failure();
  StringRef characters(bytes->data() + 8 * (*count + 1), bytes->size() - 8 * (*count + 1));
  SmallVector<StringRef> strings;
  strings.reserve(*count);
  uint64_t begin = llvm::support::endian::read64le(bytes->data());
  for (uint64_t i = 0; i < *count; ++i) {
    uint64_t end = llvm::support::endian::read64le(bytes->data() + 8 * (i + 1));
    if (begin > end || end > characters.size())
      return failure();
    strings.push_back(characters.slice(begin, end));
    begin = end;
  }
  return strings;
}

DataAttr base::withType(DataAttr attr, RankedTensorType type) {
  return DataAttr::get(attr.getContext(), attr.getBlob(), attr.getOffset(), attr.getLength(), attr.getHash(), type);
}

//===--- builtin dense attributes ---------------------------------------------------------------------------------===//

// Whether the elements go through APInts of their bit width, byte for byte.
static bool isPlainElement(Type type) {
  std::optional<unsigned> width = getPackedBitWidth(type);
  return width && *width >= 8 && type.isIntOrFloat();
}

static APInt readInt(const char *bytes, unsigned width) {
  SmallVector<uint64_t, 2> words(llvm::divideCeil(width, 64), 0);
  unsigned size = llvm::divideCeil(width, 8);
  for (unsigned i = 0; i < size; ++i)
    words[i / 8] |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * (i % 8));
  return APInt(width, words);
}

static void writeInt(std::vector<char> &bytes, const APInt &value) {
  unsigned size = llvm::divideCeil(value.getBitWidth(), 8);
  for (unsigned i = 0; i < size; ++i)
    bytes.push_back(static_cast<char>(value.getRawData()[i / 8] >> (8 * (i % 8))));
}

DenseElementsAttr base::toDense(DataAttr attr) {
  FailureOr<ArrayRef<char>> bytes = getBytes(attr);
  RankedTensorType type = attr.getType();
  Type element = type.getElementType();
  auto complexType = dyn_cast<ComplexType>(element);
  Type part = complexType ? complexType.getElementType() : element;
  if (failed(bytes) || !isPlainElement(part) ||
      *getPackedBitWidth(part) != llvm::divideCeil(part.getIntOrFloatBitWidth(), 8) * 8)
    return {};
  unsigned width = part.getIntOrFloatBitWidth(), size = llvm::divideCeil(width, 8);
  uint64_t count = *getNumElements(type) * (complexType ? 2 : 1);
  SmallVector<APInt> ints;
  ints.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    ints.push_back(width == 1 ? APInt(1, (*bytes)[i] != 0) : readInt(bytes->data() + i * size, width));
  if (isa<IntegerType>(element))
    return DenseElementsAttr::get(type, ints);
  if (auto floatType = dyn_cast<FloatType>(part)) {
    SmallVector<APFloat> floats;
    floats.reserve(count);
    for (const APInt &value : ints)
      floats.push_back(APFloat(floatType.getFloatSemantics(), value));
    if (!complexType)
      return DenseElementsAttr::get(type, floats);
    SmallVector<std::complex<APFloat>> pairs;
    for (uint64_t i = 0; i < count; i += 2)
      pairs.push_back({floats[i], floats[i + 1]});
    return DenseElementsAttr::get(type, pairs);
  }
  return {};
}

DataAttr base::fromDense(DenseElementsAttr attr) {
  auto type = dyn_cast<RankedTensorType>(attr.getType());
  if (!type)
    return {};
  type = RankedTensorType::get(type.getShape(), type.getElementType());
  Type element = type.getElementType();
  std::optional<uint64_t> size = getPackedSizeBytes(type);
  if (!size)
    return {};
  std::vector<char> bytes;
  bytes.reserve(*size);
  if (auto complexType = dyn_cast<ComplexType>(element)) {
    if (!isa<FloatType>(complexType.getElementType()))
      return {};
    for (std::complex<APFloat> value : attr.getValues<std::complex<APFloat>>()) {
      writeInt(bytes, value.real().bitcastToAPInt());
      writeInt(bytes, value.imag().bitcastToAPInt());
    }
  } else if (!isPlainElement(element)) {
    return {};
  } else if (isa<FloatType>(element)) {
    for (APFloat value : attr.getValues<APFloat>())
      writeInt(bytes, value.bitcastToAPInt());
  } else {
    for (APInt value : attr.getValues<APInt>())
      writeInt(bytes, value);
  }
  return makeData(type, std::move(bytes));
}

//===--- files ----------------------------------------------------------------------------------------------------===//

// Calls `fn` for every constant under `root`, with the op that holds it.
static void walkData(Operation *root, llvm::function_ref<void(Operation *, DataAttr)> fn) {
  Operation *current = nullptr;
  AttrTypeWalker walker;
  walker.addWalk([&](DataAttr attr) { fn(current, attr); });
  root->walk([&](Operation *op) {
    current = op;
    walker.walk(op->getAttrDictionary());
  });
}

static void replaceData(Operation *root, llvm::function_ref<DataAttr(DataAttr)> fn) {
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](DataAttr attr) -> std::pair<Attribute, WalkResult> { return {fn(attr), WalkResult::skip()}; });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/false);
}

/// A module of a stranger may name any size.
static constexpr uint64_t kMostSeededBytes = uint64_t(1) << 33;

/// Whether the store has the bytes of a seeded constant, or they could be made.
static bool addSeeded(BlobStore &store, StringRef key, uint64_t length) {
  if (store.contains(key))
    return true;
  if (length > kMostSeededBytes)
    return false;
  std::optional<std::vector<char>> bytes = makeSeededBytes(key, length);
  return bytes && store.addAs(key, llvm::MemoryBuffer::getMemBufferCopy(StringRef(bytes->data(), bytes->size()), key));
}

DataAttr base::makeSeeded(RankedTensorType type, uint64_t seed) {
  Type element = type.getElementType();
  std::optional<uint64_t> length = getPackedSizeBytes(type);
  if (!length || !*length || !(element.isF16() || element.isBF16() || element.isF32() || element.isF64()))
    return {};
  const SeededType kind = element.isF16()    ? SeededType::F16
                          : element.isBF16() ? SeededType::BF16
                          : element.isF32()  ? SeededType::F32
                                             : SeededType::F64;
  const std::string key = getSeededKey(seed, kind, *length);
  if (!addSeeded(getBlobStore(type.getContext()), key, *length))
    return {};
  return makeData(type, key, 0, *length);
}

LogicalResult base::verifyBlobs(Operation *root, bool hashes) {
  bool ok = true;
  llvm::DenseSet<Attribute> checked;
  walkData(root, [&](Operation *op, DataAttr attr) {
    if (!checked.insert(attr).second)
      return;
    FailureOr<ArrayRef<char>> bytes = getBytes(attr);
    if (failed(bytes)) {
      op->emitError() << "the bytes [" << attr.getOffset() << ", " << attr.getOffset() << " + " << attr.getLength()
                      << ") of constant blob \"" << attr.getBlob() << "\" are missing";
      ok = false;
    } else if (hashes && contentHash(*bytes) != attr.getHash()) {
      op->emitError() << "the bytes at " << attr.getOffset() << " of constant blob \"" << attr.getBlob()
                      << "\" differ from their hash " << attr.getHash();
      ok = false;
    }
  });
  return success(ok);
}

static llvm::Error fileError(StringRef path, const Twine &what) {
  return llvm::createStringError(std::make_error_code(std::errc::io_error), path + ": error: " + what);
}

llvm::Error base::writeBlobs(Operation *root, StringRef path) {
  // Content hash -> place in the file, in order of first use.
  struct Entry {
    ArrayRef<char> bytes;
    uint64_t offset;
  };
  llvm::MapVector<StringRef, Entry> entries;
  uint64_t end = 0;
  std::string missing, allHashes;
  walkData(root, [&](Operation *, DataAttr attr) {
    if (isSeeded(attr))
      return;
    FailureOr<ArrayRef<char>> bytes = getBytes(attr);
    if (failed(bytes)) {
      missing = attr.getBlob().str();
    } else if (entries.insert({attr.getHash(), {*bytes, llvm::alignTo(end, 64)}}).second) {
      end = llvm::alignTo(end, 64) + bytes->size();
      allHashes += attr.getHash();
    }
  });
  if (!missing.empty())
    return fileError(path, "the bytes of constant blob \"" + missing + "\" are missing");
  llvm::Error error = writeOutputFile(path, [&](raw_ostream &stream) {
    uint64_t written = 0;
    for (auto &[hash, entry] : entries) {
      stream.write_zeros(entry.offset - written);
      stream.write(entry.bytes.data(), entry.bytes.size());
      written = entry.offset + entry.bytes.size();
    }
  });
  if (error)
    return error;
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
  if (!file)
    return file.takeError();
  std::string key = kDataFilePrefix.str() + contentHash(ArrayRef<char>(allHashes.data(), allHashes.size()));
  BlobStore &store = getBlobStore(root->getContext());
  // The key stands for these contents in this order: an earlier blob of this key is the same file.
  if (!store.contains(key))
    store.addAs(key, std::move(*file));
  replaceData(root, [&](DataAttr attr) {
    if (isSeeded(attr))
      return attr;
    return DataAttr::get(attr.getContext(), key, entries.find(attr.getHash())->second.offset, attr.getLength(),
                         attr.getHash(), attr.getType());
  });
  return llvm::Error::success();
}

llvm::Error base::loadBlobs(Operation *root, StringRef path) {
  BlobStore &store = getBlobStore(root->getContext());
  llvm::SetVector<StringRef> keys;
  walkData(root, [&](Operation *, DataAttr attr) {
    if (attr.getBlob().starts_with(kDataFilePrefix) && !store.contains(attr.getBlob()))
      keys.insert(attr.getBlob());
  });
  for (StringRef key : keys) {
    llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
    if (!file)
      return file.takeError();
    store.addAs(key, std::move(*file));
  }
  std::string problem;
  llvm::DenseSet<Attribute> checked;
  walkData(root, [&](Operation *, DataAttr attr) {
    if (!problem.empty() || !keys.contains(attr.getBlob()) || !checked.insert(attr).second)
      return;
    FailureOr<ArrayRef<char>> bytes = getBytes(attr);
    if (failed(bytes) || contentHash(*bytes) != attr.getHash())
      problem = ("the constant at offset " + Twine(attr.getOffset()) +
                 " is not the one that the module names; write both files again")
                    .str();
  });
  if (!problem.empty())
    return fileError(path, problem);
  return llvm::Error::success();
}

llvm::Error base::writeModule(ModuleOp module, StringRef path) {
  OwningOpRef<ModuleOp> copy = module.clone();
  bool hasData = false;
  walkData(*copy, [&](Operation *, DataAttr attr) { hasData |= !isSeeded(attr); });
  if (hasData)
    if (llvm::Error error = writeBlobs(*copy, (path + ".data").str()))
      return error;
  llvm::Error error = writeOutputFile(path, [&](raw_ostream &stream) {
    copy->print(stream, OpPrintingFlags().enableDebugInfo());
    stream << "\n";
  });
  // Constants without their module are a partial output.
  if (error && hasData)
    llvm::sys::fs::remove(path + ".data");
  return error;
}

llvm::Error base::DataFile::add(Operation *root) {
  llvm::MapVector<StringRef, ArrayRef<char>> added;
  std::string missing;
  walkData(root, [&](Operation *, DataAttr attr) {
    if (isSeeded(attr) || offsets.contains(attr.getHash()))
      return;
    FailureOr<ArrayRef<char>> bytes = getBytes(attr);
    if (failed(bytes))
      missing = attr.getBlob().str();
    else
      added.insert({attr.getHash(), *bytes});
  });
  if (!missing.empty())
    return fileError(path, "the bytes of constant blob \"" + missing + "\" are missing");
  if (!added.empty()) {
    // A file of an earlier compile may be mapped, or be a link.
    if (end == 0)
      llvm::sys::fs::remove(path);
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error, llvm::sys::fs::CD_OpenAlways, llvm::sys::fs::FA_Write,
                                llvm::sys::fs::OF_Append);
    for (auto &[hash, bytes] : added) {
      if (error)
        break;
      const uint64_t offset = llvm::alignTo(end, 64);
      stream.write_zeros(offset - end);
      stream.write(bytes.data(), bytes.size());
      end = offset + bytes.size();
      offsets[hash] = offset;
      allHashes += hash;
    }
    stream.close();
    if (!error)
      error = stream.error();
    stream.clear_error();
    if (error)
      return fileError(path, "cannot write the file: " + error.message());
  }
  std::string key = BlobStore::kDataFilePrefix.str() + contentHash(ArrayRef<char>(allHashes.data(), allHashes.size()));
  replaceData(root, [&](DataAttr attr) {
    if (isSeeded(attr))
      return attr;
    return DataAttr::get(attr.getContext(), key, offsets.lookup(attr.getHash()), attr.getLength(), attr.getHash(),
                         attr.getType());
  });
  return llvm::Error::success();
}

llvm::Error base::DataFile::writeModule(ModuleOp module, StringRef modulePath) {
  OwningOpRef<ModuleOp> copy = module.clone();
  bool hasData = false;
  walkData(*copy, [&](Operation *, DataAttr attr) { hasData |= !isSeeded(attr); });
  const std::string link = (modulePath + ".data").str();
  llvm::sys::fs::remove(link);
  if (hasData) {
    if (llvm::Error error = add(*copy))
      return error;
    if (std::error_code error = llvm::sys::fs::create_link(llvm::sys::path::filename(path), link))
      return fileError(link, "cannot make a link to the constants: " + error.message());
  }
  return writeOutputFile(modulePath, [&](raw_ostream &stream) {
    copy->print(stream, OpPrintingFlags().enableDebugInfo());
    stream << "\n";
  });
}

/// Regions, attributes and types inside of each other at most: MLIR's parser recurses.
static constexpr unsigned kMaxNesting = 500;

/// Whether brackets outside of strings and comments nest deeper.
static bool isTooDeep(StringRef text) {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"':
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
      break;
    case '/':
      if (text.substr(i).starts_with("//"))
        i = std::min(text.find('\n', i), text.size());
      break;
    case '<':
      depth += !text.substr(i).starts_with("<=");
      break;
    case '(':
    case '[':
    case '{':
      ++depth;
      break;
    case '>':
      // Of an arrow or a comparison it closes nothing.
      depth -= depth && !text.substr(i).starts_with(">=") && (i == 0 || text[i - 1] != '-');
      break;
    case ')':
    case ']':
    case '}':
      depth -= depth != 0;
      break;
    default:
      break;
    }
    if (depth > kMaxNesting)
      return true;
  }
  return false;
}

llvm::Expected<OwningOpRef<ModuleOp>> base::readModule(MLIRContext *context, StringRef path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
  if (!file)
    return file.takeError();
  if (isTooDeep((*file)->getBuffer()))
    return fileError(path, "it is nested deeper than " + Twine(kMaxNesting) + " levels");
  // The parser needs a terminating zero, which a mapped file may not have.
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy((*file)->getBuffer(), path), SMLoc());
  std::string first;
  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error) {
        llvm::raw_string_ostream stream(first);
        if (auto line = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
          stream << "line " << line.getLine() << ", column " << line.getColumn() << ": ";
        stream << diagnostic;
      }
      return failure();
    });
    module = parseSourceFile<ModuleOp>(sources, context);
  }
  if (!module)
    // Behind it MLIR names an option that tc-compile lacks.
    return fileError(path, first.empty() ? "it is not an MLIR module; give what tc-compile --compile-to wrote"
                                         : StringRef(first).split(". If this is intended").first);
  walkData(*module, [&](Operation *, DataAttr attr) {
    // One that cannot be made is missing, as verifyBlobs says.
    if (isSeeded(attr))
      addSeeded(getBlobStore(context), attr.getBlob(), attr.getLength());
  });
  std::string data = (path + ".data").str();
  if (llvm::sys::fs::exists(data))
    if (llvm::Error error = loadBlobs(*module, data))
      return std::move(error);
  return module;
}
