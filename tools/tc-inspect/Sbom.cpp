//===- Sbom.cpp - what an artifact was made of ------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Sbom.h"

#include "tc/Format/Container.h"
#include "tc/Format/Json.h"
#include "tc/Format/Sha256.h"
#include "tcrt/tcrt.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <set>

using Json = nlohmann::ordered_json;
using tc::artifact::Reader;

namespace {

std::string hexOf(llvm::ArrayRef<uint8_t> digest) { return llvm::toHex(digest, /*LowerCase=*/true); }

Json hashes(const std::string &sha256) { return Json::array({{{"alg", "SHA-256"}, {"content", sha256}}}); }

/// A string under `key` of the manifest's `object`; empty where there is none.
std::string textOf(const Json &object, const char *key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

const Json &memberOf(const Json &object, const char *key) {
  static const Json none;
  return object.is_object() && object.contains(key) ? object[key] : none;
}

Json property(const std::string &name, const std::string &value) { return {{"name", "tc:" + name}, {"value", value}}; }

/// The options that the artifact was compiled with, each value in a property of its own.
void addOptions(const Json &options, Json &properties) {
  for (const auto &[key, value] : options.items()) {
    if (value.is_array())
      for (const Json &one : value)
        properties.push_back(property("option:" + key, one.is_string() ? one.get<std::string>() : one.dump()));
    else
      properties.push_back(property("option:" + key, value.is_string() ? value.get<std::string>() : value.dump()));
  }
}

class Bill {
public:
  explicit Bill(const Reader &reader) : reader(reader) {}
  llvm::Expected<Json> make();

private:
  void add(Json component) {
    needed.push_back(component["bom-ref"]);
    components.push_back(std::move(component));
  }
  void addModel(const Json &model);
  void addWeights(const Reader &part, const std::string &device);
  void addLibraries(const Json &functions);

  const Reader &reader;
  std::set<std::string> weightsKnown;
  Json components = Json::array(), needed = Json::array();
};

void Bill::addModel(const Json &model) {
  Json component = {{"type", "machine-learning-model"}, {"bom-ref", "model"}, {"name", "model"}};
  if (const std::string sha256 = textOf(model, "sha256"); !sha256.empty())
    component["hashes"] = hashes(sha256);
  Json properties = Json::array();
  if (const std::string producer = textOf(model, "producer"); !producer.empty())
    properties.push_back(property("model:producer", producer));
  for (const auto &[key, value] : memberOf(model, "metadata").items())
    if (value.is_string())
      properties.push_back(property("model:metadata:" + key, value.get<std::string>()));
  if (!properties.empty())
    component["properties"] = properties;
  add(component);
}

/// Inside the artifact, or in a file of their own.
void Bill::addWeights(const Reader &part, const std::string &device) {
  for (const tcrt_section_t &section : part.sections()) {
    const bool isFile = section.kind == TCRT_SECTION_WEIGHTS_FILE;
    if (!isFile && section.kind != TCRT_SECTION_WEIGHTS)
      continue;
    llvm::ArrayRef<uint8_t> digest(section.sha256);
    tcrt_weights_file_t file;
    if (isFile && section.size >= sizeof file) {
      std::memcpy(&file, part.sectionBytes(section).data(), sizeof file);
      digest = file.sha256;
    }
    const std::string sha256 = hexOf(digest), ref = "weights" + (device.empty() ? "" : "-" + device);
    if (!weightsKnown.insert(sha256).second)
      continue;
    const std::string name = llvm::sys::path::filename(reader.path()).str() + ".weights";
    add({{"type", "data"},
         {"bom-ref", ref},
         {"name", isFile ? name : ref},
         {"hashes", hashes(sha256)},
         {"properties", Json::array({property("weights:bytes", std::to_string(part.weightsSize())),
                                     property("weights:place", isFile ? "beside the artifact" : "in the artifact")})}});
  }
}

/// What runs the artifact.
void Bill::addLibraries(const Json &functions) {
  const std::string abi = std::to_string(reader.abiVersion());
  add({{"type", "library"},
       {"bom-ref", "libtcrt"},
       {"name", "libtcrt"},
       {"description", "runs the artifact; of ABI " + abi + " or newer"},
       {"scope", "required"},
       {"properties", Json::array({property("abi", abi)})}});
  std::set<std::string> others, own;
  for (const Json &function : functions) {
    const std::string library = textOf(function, "library");
    (library == "custom" ? own : others).insert(library == "custom" ? textOf(function, "name") : library);
  }
  if (others.count("libtcrt-host"))
    add({{"type", "library"},
         {"bom-ref", "libtcrt-host"},
         {"name", "libtcrt-host"},
         {"description", "functions that the artifact calls; the libraries that it links are the system's"},
         {"scope", "required"}});
  if (others.count("libtcrt-ort")) {
    add({{"type", "library"},
         {"bom-ref", "libtcrt-ort"},
         {"name", "libtcrt-ort"},
         {"description", "calls ONNX Runtime, for the parts of the artifact that it computes"},
         {"scope", "required"}});
    add({{"type", "library"},
         {"bom-ref", "onnxruntime"},
         {"name", "ONNX Runtime"},
         {"description", "computes parts of the artifact; of who runs it, 1.12 or newer"},
         {"scope", "required"}});
  }
  for (const std::string &name : own)
    add({{"type", "library"},
         {"bom-ref", "function:" + name},
         {"name", name},
         {"description", "a function of a custom operator, which who runs the artifact gives"},
         {"scope", "required"}});
}

llvm::Expected<Json> Bill::make() {
  auto file = llvm::MemoryBuffer::getFile(reader.path(), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return llvm::createStringError(reader.path() + ": error: the file cannot be read: " + file.getError().message());
  uint8_t digest[32];
  tcrt_sha256((*file)->getBufferStart(), (*file)->getBufferSize(), digest);
  const Json manifest = tc::parseJson(reader.manifest().data(), reader.manifest().size());
  const Json &producer = memberOf(manifest, "producer");
  addModel(memberOf(manifest, "model"));
  addWeights(reader, "");
  for (const tcrt_section_t &section : reader.sections()) {
    if (section.kind != TCRT_SECTION_ARTIFACT)
      continue;
    llvm::Expected<std::unique_ptr<Reader>> part = reader.openPart(section);
    if (!part)
      return part.takeError();
    addWeights(**part, tcrt_device_name(section.arch));
  }
  addLibraries(memberOf(manifest, "host_functions"));

  Json tools = Json::array();
  auto addTool = [&](const char *type, const std::string &name, const std::string &version) {
    Json tool = {{"type", type}, {"name", name}};
    if (!version.empty())
      tool["version"] = version;
    tools.push_back(std::move(tool));
  };
  const std::string compiler = textOf(producer, "name");
  addTool("application", compiler.empty() ? "unknown" : compiler, textOf(producer, "version"));
  for (const auto &[name, version] : memberOf(producer, "libraries").items())
    addTool("library", name, version.is_string() ? version.get<std::string>() : "");

  Json properties = Json::array();
  properties.push_back(property("format", std::to_string(TCRT_FORMAT_VERSION)));
  properties.push_back(property("abi", std::to_string(reader.abiVersion())));
  for (const tcrt_sig_variant_t &variant : reader.variants())
    properties.push_back(property("variant", reader.name(variant.name).str()));
  addOptions(memberOf(manifest, "options"), properties);
  const Json artifact = {{"type", "file"},
                         {"bom-ref", "artifact"},
                         {"name", llvm::sys::path::filename(reader.path()).str()},
                         {"hashes", hashes(hexOf(digest))},
                         {"properties", properties}};
  Json dependencies = Json::array({{{"ref", "artifact"}, {"dependsOn", needed}}});
  return Json{{"$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json"},
              {"bomFormat", "CycloneDX"},
              {"specVersion", "1.6"},
              {"version", 1},
              {"metadata", {{"tools", {{"components", tools}}}, {"component", artifact}}},
              {"components", components},
              {"dependencies", dependencies}};
}

} // namespace

llvm::Expected<Json> tc::inspect::makeSbom(const Reader &reader) { return Bill(reader).make(); }
