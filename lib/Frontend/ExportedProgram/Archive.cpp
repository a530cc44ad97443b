//===- Archive.cpp - what a torch.export archive holds ------------------------------------------------------------===//
//
// The archive is a zip: <root>/models/<name>.json has the program (torch/_export/serde/schema.py,
// schema 8), <root>/data/weights/ the parameters with a JSON index.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Archive.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tc;
using namespace tc::exported;

namespace {
constexpr int64_t kSchemaMajor = 8;
} // namespace

const json *exported::member(const json &object, const char *name) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

StringRef exported::text(const json *value) {
  return value && value->is_string() ? StringRef(value->get_ref<const std::string &>()) : StringRef();
}

std::optional<int64_t> exported::integer(const json *value) {
  if (value && value->is_number_integer())
    return value->get<int64_t>();
  return std::nullopt;
}

Type exported::elementType(MLIRContext *context, int64_t code) {
  Builder builder(context);
  switch (code) {
  case 1:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case 2:
    return builder.getI8Type();
  case 3:
    return builder.getI16Type();
  case 4:
    return builder.getI32Type();
  case 5:
    return builder.getI64Type();
  case 6:
    return builder.getF16Type();
  case 7:
    return builder.getF32Type();
  case 8:
    return builder.getF64Type();
  case 10:
    return ComplexType::get(builder.getF32Type());
  case 11:
    return ComplexType::get(builder.getF64Type());
  case 12:
    return builder.getI1Type();
  case 13:
    return builder.getBF16Type();
  case 28:
    return builder.getIntegerType(16, /*isSigned=*/false);
  case 29:
    return Float8E4M3FNType::get(context);
  case 30:
    return Float8E5M2Type::get(context);
  case 31:
    return Float8E4M3FNUZType::get(context);
  case 32:
    return Float8E5M2FNUZType::get(context);
  default:
    return {};
  }
}

/// What a zip archive is that is none of torch.export, and what to do.
static const char *describeArchive(const ZipArchive &archive) {
  const std::pair<StringRef, const char *> kinds[] = {
      {"serialized_exported_program.json",
       "this is a torch.export archive of an older PyTorch, in a format that is not read; "
       "export the model again with PyTorch 2.9 or newer"},
      {"constants.pkl", "this is a TorchScript archive, which is not read; export the model that it was made from with "
                        "torch.export.export and torch.export.save, or with torch.onnx.export"},
      {"data.pkl",
       "this is what torch.save writes, values without a graph; load it in Python and export the model with "
       "torch.export.export and torch.export.save, or with torch.onnx.export"},
      {".npy", "this is a NumPy archive of arrays, not a model; tc-run takes it with --inputs"},
  };
  for (auto [suffix, what] : kinds)
    if (archive.findSuffix(suffix))
      return what;
  return "this is a zip archive, but no torch.export archive (.pt2): it has no archive_format \"pt2\"; write it with "
         "torch.export.save";
}

llvm::Expected<json> Archive::readJson(StringRef name) {
  const ZipArchive::Member *found = archive.find(name);
  if (!found)
    return error("not a torch.export archive: member \"" + name + "\" is missing");
  std::string why;
  std::optional<ZipArchive::Contents> contents = archive.read(*found, why);
  if (!contents)
    return error(why);
  StringRef source = contents->text();
  if (isJsonTooDeep(source.data(), source.size()))
    return error("member \"" + name + "\" is nested too deeply");
  json parsed = parseJson(source.data(), source.size());
  if (parsed.is_discarded() || !parsed.is_object())
    return error("member \"" + name + "\" is not valid JSON; the archive is damaged");
  return parsed;
}

llvm::Expected<RankedTensorType> Archive::tensorType(StringRef name, const json &meta) {
  std::optional<int64_t> code = integer(member(meta, "dtype"));
  Type element = code ? elementType(context, *code) : Type();
  const json *sizes = member(meta, "sizes");
  if (!element)
    return error("tensor \"" + name + "\" has element type number " + Twine(code.value_or(-1)) +
                 ", which tc does not know; " + kKnownElementTypes);
  if (!sizes || !sizes->is_array())
    return error("tensor \"" + name + "\" has no sizes; the archive is damaged");
  SmallVector<int64_t> shape;
  for (const json &size : *sizes) {
    std::optional<int64_t> constant = integer(member(size, "as_int"));
    if (!constant || *constant < 0)
      return error("tensor \"" + name + "\" is stored with a size that is no number; the archive is damaged");
    shape.push_back(*constant);
  }
  return RankedTensorType::get(shape, element);
}

llvm::Expected<Archive::Record> Archive::readRecord(const ZipArchive::Member &member) {
  if (member.isStored())
    return Record{blob, member.offset, member.size};
  auto known = unpacked.find(member.name);
  if (known != unpacked.end())
    return Record{known->second, 0, member.size};
  std::string why;
  std::optional<ZipArchive::Contents> contents = archive.read(member, why);
  if (!contents)
    return error(why);
  StringRef text = contents->text();
  StringRef key = tc::base::getBlobStore(context).addOwned(std::vector<char>(text.begin(), text.end()));
  unpacked[member.name] = key;
  return Record{key, 0, member.size};
}

llvm::Error Archive::readWeights(const char *folder, const char *index) {
  std::string name = root + "data/" + folder + "/" + index;
  if (!archive.find(name))
    return llvm::Error::success();
  llvm::Expected<json> file = readJson(name);
  if (!file)
    return file.takeError();
  const json *config = member(*file, "config");
  if (!config || !config->is_object())
    return error("member \"" + name + "\" lists no tensors; the archive is damaged");
  for (auto entry = config->begin(); entry != config->end(); ++entry) {
    const json *meta = member(entry.value(), "tensor_meta"), *pickled = member(entry.value(), "use_pickle");
    std::string data = root + "data/" + folder + "/" + text(member(entry.value(), "path_name")).str();
    const ZipArchive::Member *found = archive.find(data);
    if (!meta || !found)
      return error("tensor \"" + entry.key() + "\": its data \"" + data + "\" is missing");
    if (pickled && pickled->is_boolean() && pickled->get<bool>())
      return error("tensor \"" + entry.key() +
                   "\" is stored as a Python pickle, which tc does not read; make it a plain dense tensor before "
                   "torch.export.save");
    llvm::Expected<RankedTensorType> type = tensorType(entry.key(), *meta);
    if (!type)
      return type.takeError();
    std::optional<uint64_t> bytes = tc::base::getPackedSizeBytes(*type);
    // Row-major and dense, from the start of the stored bytes.
    int64_t expected = 1;
    bool dense = integer(member(meta->value("storage_offset", json()), "as_int")).value_or(0) == 0;
    const json *strides = member(*meta, "strides");
    for (int64_t i = type->getRank() - 1; dense && strides && strides->is_array() && i >= 0; --i) {
      if (size_t(i) < strides->size() && type->getDimSize(i) != 1)
        dense = integer(member((*strides)[i], "as_int")).value_or(-1) == expected;
      expected *= std::max<int64_t>(1, type->getDimSize(i));
    }
    if (!dense)
      return error("tensor \"" + entry.key() +
                   "\" is stored with strides; call .contiguous() on it before torch.export.save");
    llvm::Expected<Record> record = readRecord(*found);
    if (!record)
      return record.takeError();
    if (!bytes || *bytes > record->size)
      return error("tensor \"" + entry.key() + "\" needs " + Twine(bytes.value_or(0)) + " bytes but its data has " +
                   Twine(record->size));
    constants[entry.key()] = tc::base::makeData(*type, record->blob, record->offset, *bytes);
  }
  return llvm::Error::success();
}

llvm::Error Archive::read() {
  BlobStore &store = tc::base::getBlobStore(context);
  llvm::Expected<StringRef> key = store.addFile(path);
  if (!key)
    return key.takeError();
  blob = *key;
  ArrayRef<char> bytes = *store.lookup(blob);
  std::string why;
  std::optional<ZipArchive> opened = ZipArchive::open(StringRef(bytes.data(), bytes.size()), why);
  if (!opened)
    return error(why);
  archive = std::move(*opened);
  const ZipArchive::Member *format = archive.findSuffix("archive_format");
  std::optional<ZipArchive::Contents> kind;
  if (format && !(kind = archive.read(*format, why)))
    return error(why);
  if (!kind || StringRef(kind->text()).trim() != "pt2")
    return error(describeArchive(archive));
  root = format->name.substr(0, format->name.size() - StringRef("archive_format").size());
  const ZipArchive::Member *program = archive.findSuffix("models/model.json");
  if (!program)
    return error("a torch.export archive without a program named \"model\"");
  llvm::Expected<json> file = readJson(program->name);
  if (!file)
    return file.takeError();
  programJson = std::move(*file);
  const json *version = member(programJson, "schema_version");
  int64_t major = version ? integer(member(*version, "major")).value_or(0) : 0;
  if (major != kSchemaMajor)
    return error("schema version " + Twine(major) +
                 " of the torch.export archive is not supported; supported is version " + Twine(kSchemaMajor) +
                 ": save it again with PyTorch 2.9 or later");
  if (llvm::Error e = readWeights("weights", "model_weights_config.json"))
    return e;
  return readWeights("constants", "model_constants_config.json");
}

llvm::Expected<std::unique_ptr<Archive>> Archive::open(MLIRContext *context, StringRef path) {
  std::unique_ptr<Archive> archive(new Archive(context, path));
  if (llvm::Error e = archive->read())
    return std::move(e);
  return std::move(archive);
}
