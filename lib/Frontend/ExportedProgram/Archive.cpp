//===- Archive.cpp - what a torch.export archive holds ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Archive.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::exported;

static constexpr int64_t kSchemaMajor = 8;
static constexpr StringLiteral kOldProgram = "serialized_exported_program.json";

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

// Numbers of torch/_export/serde/schema.py, ScalarType.
static torch::ScalarType scalarTypeOf(int64_t code) {
  using torch::ScalarType;
  static constexpr ScalarType types[] = {ScalarType::Undefined,   ScalarType::Byte,         ScalarType::Char,
                                         ScalarType::Short,       ScalarType::Int,          ScalarType::Long,
                                         ScalarType::Half,        ScalarType::Float,        ScalarType::Double,
                                         ScalarType::ComplexHalf, ScalarType::ComplexFloat, ScalarType::ComplexDouble,
                                         ScalarType::Bool,        ScalarType::BFloat16};
  switch (code) {
  case 28:
    return ScalarType::UInt16;
  case 29:
    return ScalarType::Float8_e4m3fn;
  case 30:
    return ScalarType::Float8_e5m2;
  case 31:
    return ScalarType::Float8_e4m3fnuz;
  case 32:
    return ScalarType::Float8_e5m2fnuz;
  case 34: // which older versions do not write
    return ScalarType::UInt32;
  case 35:
    return ScalarType::UInt64;
  default:
    return code > 0 && code < int64_t(std::size(types)) ? types[code] : ScalarType::Undefined;
  }
}

Type exported::elementType(MLIRContext *context, int64_t code) {
  return torch::elementType(context, scalarTypeOf(code));
}

/// What a zip archive is that is none of torch.export, and what to do.
static const char *describeArchive(const ZipArchive &archive) {
  const std::pair<StringRef, const char *> kinds[] = {
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

llvm::Error Archive::error(const Twine &what) const {
  return llvm::createStringError(path + ": error: " + (name.empty() ? "" : "model \"" + name + "\": ") + what);
}

llvm::Error Archive::error(llvm::Error why) const { return error(llvm::toString(std::move(why))); }

llvm::Expected<json> Archive::readJson(StringRef name) {
  llvm::Expected<ZipArchive::Contents> contents = archive->read(name);
  if (!contents)
    return error(contents.takeError());
  StringRef source = contents->text();
  if (isJsonTooDeep(source.data(), source.size()))
    return error("member \"" + name + "\" is nested too deeply");
  json parsed = parseJson(source.data(), source.size());
  if (parsed.is_discarded() || !parsed.is_object())
    return error("member \"" + name + "\" is not valid JSON; the archive is damaged");
  return parsed;
}

llvm::Error Archive::add(StringRef name, llvm::Expected<base::DataAttr> tensor) {
  if (!tensor)
    return error("tensor \"" + name + "\": " + llvm::toString(tensor.takeError()));
  constants[name] = *tensor;
  return llvm::Error::success();
}

void Archive::addPlace(StringRef name, StringRef storage, int64_t offset, ArrayRef<int64_t> sizes,
                       ArrayRef<int64_t> strides, base::DataAttr tensor) {
  if (llvm::is_contained(sizes, 0))
    return;
  int64_t last = offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    last += (size - 1) * stride;
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  int64_t parts = 1;
  if (auto complex = dyn_cast<ComplexType>(element)) {
    element = complex.getElementType();
    parts = 2;
  }
  const int64_t bytes = parts * int64_t(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  places.push_back({name.str(), storage.str(), offset * bytes, last * bytes + bytes - 1});
}

StringRef Archive::findSharer(StringRef name) const {
  const auto own = llvm::find_if(places, [&](const Place &place) { return place.name == name; });
  if (own == places.end())
    return "";
  const auto other = llvm::find_if(places, [&](const Place &place) {
    return place.name != name && place.storage == own->storage && place.first <= own->last && own->first <= place.last;
  });
  return other == places.end() ? StringRef() : StringRef(other->name);
}

//===--- PyTorch 2.9 and later: raw storages with an index --------------------------------------------------------===//

/// Integers of a list of schema.py's SymInts; nullopt where one is none.
static std::optional<SmallVector<int64_t>> readInts(const json *list) {
  if (!list || !list->is_array())
    return std::nullopt;
  SmallVector<int64_t> ints;
  for (const json &entry : *list) {
    std::optional<int64_t> value = integer(member(entry, "as_int"));
    if (!value)
      return std::nullopt;
    ints.push_back(*value);
  }
  return ints;
}

llvm::Expected<base::DataAttr> Archive::readIndexed(StringRef key, const json &entry, StringRef folder) {
  auto fail = [](const Twine &what) { return llvm::createStringError(what); };
  StringRef path = text(member(entry, "path_name"));
  const json *pickled = member(entry, "use_pickle"), *meta = member(entry, "tensor_meta");
  if (path.starts_with("custom_obj_") || path.starts_with("opaque_obj_"))
    return fail(
        "is an object of Python or C++, not a tensor, which is not supported; keep it out of the model's graph");
  const std::string name = (folder + path).str();
  if (pickled && pickled->is_boolean() && pickled->get<bool>()) {
    llvm::Expected<torch::TorchArchive> inner = archive->openInner(name);
    if (!inner)
      return inner.takeError();
    llvm::Expected<torch::Pickle> pickle = inner->pickle("data.pkl");
    if (!pickle)
      return fail("is pickled, as tensors of a subclass are: " + llvm::toString(pickle.takeError()) +
                  "; make it a plain tensor before the model is exported");
    if (pickle->root().kind != torch::PickledValue::Kind::Tensor)
      return fail("is pickled, and is no tensor; the archive is damaged");
    return inner->tensor(*pickle->root().tensor, "data");
  }
  const json *offset = meta ? member(*meta, "storage_offset") : nullptr;
  std::optional<int64_t> code = meta ? integer(member(*meta, "dtype")) : std::nullopt;
  std::optional<SmallVector<int64_t>> sizes = meta ? readInts(member(*meta, "sizes")) : std::nullopt;
  std::optional<SmallVector<int64_t>> strides = meta ? readInts(member(*meta, "strides")) : std::nullopt;
  if (!code || !sizes || !strides)
    return fail("has no element type, sizes or strides; the archive is damaged");
  constexpr int64_t kStrided = 7;
  if (integer(member(*meta, "layout")).value_or(kStrided) != kStrided)
    return fail("is sparse or of another layout than strided, which is not supported; call .to_dense() on it before "
                "the model is exported");
  if (scalarTypeOf(*code) == torch::ScalarType::Undefined)
    return fail("has element type number " + Twine(*code) + ", which tc does not know; " + kKnownElementTypes);
  llvm::Expected<torch::ByteRange> storage = archive->record(name);
  if (!storage)
    return storage.takeError();
  const int64_t first = offset ? integer(member(*offset, "as_int")).value_or(-1) : 0;
  llvm::Expected<base::DataAttr> tensor = archive->makeTensor(scalarTypeOf(*code), *sizes, *strides, first, *storage);
  if (tensor)
    addPlace(key, name, first, *sizes, *strides, *tensor);
  return tensor;
}

llvm::Error Archive::readIndex(StringRef folder, StringRef index) {
  llvm::Expected<json> file = readJson((folder + index).str());
  if (!file)
    return file.takeError();
  const json *config = member(*file, "config");
  if (!config || !config->is_object())
    return error("member \"" + folder + index + "\" lists no tensors; the archive is damaged");
  for (auto entry = config->begin(); entry != config->end(); ++entry)
    if (llvm::Error e = add(entry.key(), readIndexed(entry.key(), entry.value(), folder)))
      return e;
  return llvm::Error::success();
}

//===--- PyTorch 2.8 and earlier: dicts that torch.save wrote -----------------------------------------------------===//

llvm::Error Archive::readSaved(StringRef name) {
  auto fail = [&](llvm::Error why) { return error("member \"" + name + "\": " + llvm::toString(std::move(why))); };
  llvm::Expected<torch::ByteRange> bytes = archive->record(name);
  if (!bytes)
    return error(bytes.takeError());
  if (bytes->size == 0) // what PyTorch writes for no dict
    return llvm::Error::success();
  llvm::Expected<torch::TorchArchive> inner = archive->openInner(name);
  if (!inner)
    return fail(inner.takeError());
  llvm::Expected<torch::Pickle> pickle = inner->pickle("data.pkl");
  if (!pickle)
    return fail(pickle.takeError());
  using Kind = torch::PickledValue::Kind;
  const torch::PickledValue &dict = pickle->root();
  if (dict.kind != Kind::Dict)
    return error("member \"" + name + "\" is no dict of tensors; the archive is damaged");
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const torch::PickledValue &key = *dict.items[i], &value = *dict.items[i + 1];
    if (!key.isString() || value.kind != Kind::Tensor)
      return error("member \"" + name + "\" has an entry " +
                   (key.isString() ? "\"" + key.text + "\" " : std::string()) +
                   "that is no tensor; supported are tensors: make it one before the model is exported");
    if (llvm::Error e = add(key.text, inner->tensor(*value.tensor, "data")))
      return e;
    if (const torch::PickledTensor &stored = *value.tensor; stored.storage)
      addPlace(key.text, (name + "/" + stored.storage->key).str(), stored.offset, stored.sizes, stored.strides,
               constants[key.text]);
  }
  return llvm::Error::success();
}

//===--- the program ----------------------------------------------------------------------------------------------===//

llvm::Error Archive::readProgram(StringRef name) {
  llvm::Expected<json> file = readJson(name);
  if (!file)
    return file.takeError();
  programJson = std::move(*file);
  const json *version = member(programJson, "schema_version");
  const int64_t major = version ? integer(member(*version, "major")).value_or(0) : 0;
  if (major == kSchemaMajor)
    return llvm::Error::success();
  const std::string what = "schema version " + std::to_string(major) +
                           " of the torch.export archive is not supported; supported is version " +
                           std::to_string(kSchemaMajor) + ", of PyTorch 2.6 to 2.15: ";
  return error(what + (major < kSchemaMajor ? "export the model again with one of these"
                                            : "save it with one of these, or take a newer tc"));
}

llvm::Error Archive::openFile() {
  llvm::Expected<StringRef> blob = tc::base::getBlobStore(context).addFile(path);
  if (!blob)
    return blob.takeError();
  llvm::Expected<torch::TorchArchive> opened = torch::TorchArchive::open(context, *blob);
  if (!opened)
    return error(opened.takeError());
  archive = std::make_shared<torch::TorchArchive>(std::move(*opened));
  return llvm::Error::success();
}

llvm::Error Archive::readOldLayout() {
  if (llvm::Error e = readProgram(kOldProgram))
    return e;
  for (const char *saved : {"serialized_state_dict.pt", "serialized_constants.pt"})
    if (archive->has(saved))
      if (llvm::Error e = readSaved(saved))
        return e;
  return llvm::Error::success();
}

llvm::Expected<std::vector<std::string>> Archive::findModels() {
  std::optional<ZipArchive::Contents> format;
  if (archive->has("archive_format")) {
    llvm::Expected<ZipArchive::Contents> found = archive->read("archive_format");
    if (!found)
      return error(found.takeError());
    format = std::move(*found);
  }
  if (!format || StringRef(format->text()).trim() != "pt2")
    return error(describeArchive(archive->zip()));
  std::vector<std::string> models;
  bool isCompiled = false;
  for (const ZipArchive::Member &entry : archive->zip().members()) {
    StringRef member = entry.name;
    member.consume_front(archive->root());
    isCompiled |= member.starts_with("data/aotinductor/");
    if (member.consume_front("models/") && member.consume_back(".json") && !member.empty())
      models.push_back(member.str());
  }
  if (models.empty())
    return error(isCompiled ? "this is a package of AOTInductor, compiled code without a graph; give the archive that "
                              "torch.export.save writes of the same exported program"
                            : "a torch.export archive without a program; the archive is damaged");
  llvm::sort(models);
  return models;
}

llvm::Error Archive::readModel(const std::string &model) {
  if (llvm::Error e = readProgram("models/" + model + ".json"))
    return e;
  for (auto [folder, index] :
       {std::pair("data/weights/", "_weights_config.json"), std::pair("data/constants/", "_constants_config.json")}) {
    if (archive->has(folder + model + ".pt")) { // PyTorch 2.8
      if (llvm::Error e = readSaved(folder + model + ".pt"))
        return e;
    } else if (archive->has(folder + model + index)) {
      if (llvm::Error e = readIndex(folder, model + index))
        return e;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Archive>> Archive::open(MLIRContext *context, StringRef path) {
  std::vector<Archive> result;
  Archive first(context, path);
  if (llvm::Error e = first.openFile())
    return std::move(e);
  if (first.archive->has(kOldProgram)) {
    if (llvm::Error e = first.readOldLayout())
      return std::move(e);
    result.push_back(std::move(first));
    return std::move(result);
  }
  llvm::Expected<std::vector<std::string>> models = first.findModels();
  if (!models)
    return models.takeError();
  for (const std::string &model : *models) {
    Archive archive(context, path);
    archive.archive = first.archive;
    if (models->size() > 1)
      archive.name = model;
    if (llvm::Error e = archive.readModel(model))
      return std::move(e);
    result.push_back(std::move(archive));
  }
  return std::move(result);
}
