//===- Artifact.cpp - what tc-inspect shows of an artifact --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Artifact.h"

#include "tc/Format/Container.h"
#include "tc/Format/Json.h"
#include "tcrt/tcrt.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

using Json = nlohmann::ordered_json;
using tc::artifact::Reader;

namespace {

/// Strings of an artifact are valid UTF-8 except in the manifest, which is parsed leniently.
std::string text(llvm::StringRef string) { return string.str(); }

std::string hex(const uint8_t *bytes, size_t size) {
  std::string result;
  char digits[3];
  for (size_t i = 0; i < size; ++i) {
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    result += digits;
  }
  return result;
}

std::string features(uint64_t bits) {
  char names[1024];
  tcrt_cpu_feature_names(bits, names, sizeof names);
  return names;
}

std::string archName(uint32_t arch) {
  char name[16];
  tcrt_arch_name(arch, name, sizeof name);
  return name;
}

Json valueJson(const Reader &reader, const tcrt_sig_function_t &function, const tcrt_sig_value_t &value) {
  static const char *const kinds[] = {"tensor", "sequence", "optional", "map"};
  Json dims = Json::array();
  for (const tcrt_sig_dim_t &dim : reader.dims(value)) {
    if (dim.kind == TCRT_DIM_STATIC)
      dims.push_back(dim.value);
    else if (dim.kind == TCRT_DIM_SYMBOL)
      dims.push_back(text(reader.name(reader.symbols(function)[dim.symbol].name)));
    else
      dims.push_back("?");
  }
  Json json = {{"name", text(reader.name(value.name))},
               {"kind", kinds[value.kind]},
               {"dtype", tcrt_dtype_name(tcrt_dtype_t(value.dtype))},
               {"dims", dims}};
  if (value.flags & TCRT_VALUE_FLAG_UNUSED)
    json["unused"] = true;
  if (value.flags & TCRT_VALUE_FLAG_DEFAULT)
    json["default_offset"] = value.default_offset;
  return json;
}

/// What becomes of indices that a run computes and that are out of range, by the options that the manifest tells of;
/// null where it has none.
const char *treatmentOfIndices(const Json &manifest) {
  if (!manifest.is_object() || !manifest.contains("flags") || !manifest["flags"].is_array())
    return nullptr;
  for (const Json &flag : manifest["flags"])
    if (flag == "--check-bounds")
      return "checked";
  return "clamped";
}

/// The flags that the manifest tells of.
Json getFlags(const Json &manifest) {
  return manifest.is_object() && manifest.contains("flags") && manifest["flags"].is_array() ? manifest["flags"]
                                                                                            : Json::array();
}

/// What the manifest says under `key` of function `i`, of the kind that `like` is; else `like`.
Json ofFunction(const Json &manifest, size_t i, const char *key, Json like) {
  if (!manifest.is_object() || !manifest.contains("functions"))
    return like;
  const Json &functions = manifest["functions"];
  if (!functions.is_array() || i >= functions.size() || !functions[i].is_object() || !functions[i].contains(key) ||
      functions[i][key].type() != like.type())
    return like;
  return functions[i][key];
}

/// A variant with the kernels in its code.
Json variantJson(const Reader &reader, const tcrt_sig_variant_t &variant) {
  Json json = {{"name", text(reader.name(variant.name))},
               {"device", tcrt_device_name(variant.device)},
               {"cpu_features", features(variant.cpu_features)},
               {"usable_here", (variant.cpu_features & ~tcrt_cpu_features()) == 0},
               {"section", variant.section},
               {"code_bytes", reader.sections()[variant.section].size},
               {"weights_bytes", variant.weights_size}};
  if (variant.arch)
    json["arch"] = archName(variant.arch);
  llvm::StringSet<> launched;
  for (const tcrt_sig_kernel_t &kernel : reader.kernels())
    launched.insert(reader.name(kernel.name));
  if (variant.device != TCRT_DEVICE_CUDA) {
    json["kernels"] = Json::array();
    for (auto [name, bytes] : reader.codeFunctions(variant))
      if (launched.contains(name))
        json["kernels"].push_back({{"name", text(name)}, {"code_bytes", bytes}});
    return json;
  }
  json["first_device_code"] = variant.first_device_code;
  json["device_code_count"] = variant.device_code_count;
  json["device_code"] = Json::array();
  for (uint32_t i = 0; i < variant.device_code_count; ++i) {
    const tcrt_section_t &section = reader.sections()[variant.first_device_code + i];
    json["device_code"].push_back(
        {{"kind", tcrt_section_kind_name(section.kind)}, {"arch", archName(section.arch)}, {"bytes", section.size}});
  }
  json["device_kernels"] = Json::array();
  for (const tcrt_sig_device_kernel_t &kernel : reader.deviceKernels(variant))
    json["device_kernels"].push_back({{"name", text(reader.name(kernel.name))},
                                      {"max_threads", kernel.max_threads},
                                      {"dynamic_smem", kernel.dynamic_smem}});
  return json;
}

/// All but the artifacts of other devices.
Json describe(const Reader &reader) {
  llvm::StringRef manifestText = reader.manifest();
  Json manifest = tc::parseJson(manifestText.data(), manifestText.size());
  Json json;
  json["file"] = text(reader.path());
  json["file_size"] = reader.fileSize();
  json["format_version"] = TCRT_FORMAT_VERSION;
  json["abi_version"] = reader.abiVersion();
  json["functions"] = Json::array();
  for (auto [i, function] : llvm::enumerate(reader.functions())) {
    Json entry = {{"name", text(reader.functionName(i))},
                  {"inputs", Json::array()},
                  {"outputs", Json::array()},
                  {"symbols", Json::array()},
                  {"first_kernel", function.first_kernel},
                  {"kernel_count", function.kernel_count}};
    for (const tcrt_sig_value_t &value : reader.inputs(function))
      entry["inputs"].push_back(valueJson(reader, function, value));
    for (const tcrt_sig_value_t &value : reader.outputs(function))
      entry["outputs"].push_back(valueJson(reader, function, value));
    for (const tcrt_sig_symbol_t &symbol : reader.symbols(function))
      entry["symbols"].push_back({{"name", text(reader.name(symbol.name))},
                                  {"min", symbol.min},
                                  {"max", symbol.max},
                                  {"divisor", symbol.divisor}});
    entry["entries"] = Json::array();
    for (const tcrt_sig_entry_t &code : reader.entries(i)) {
      Json sizes = Json::object();
      for (const tcrt_sig_entry_size_t &size : reader.sizes(code))
        sizes[text(reader.name(reader.symbols(function)[size.symbol].name))] =
            size.compare == TCRT_ENTRY_AT_MOST ? Json({{"at_most", size.size}}) : Json(size.size);
      entry["entries"].push_back(sizes);
    }
    entry["guards"] = ofFunction(manifest, i, "guards", Json::array());
    entry["memory"] = ofFunction(manifest, i, "memory", Json::object());
    json["functions"].push_back(entry);
  }
  json["states"] = Json::array();
  for (const tcrt_sig_state_t &state : reader.states()) {
    Json dims = Json::array();
    for (const tcrt_sig_dim_t &dim : reader.dims(state))
      dims.push_back(dim.value);
    Json entry = {{"name", text(reader.name(state.name))},
                  {"kind", "tensor"},
                  {"dtype", tcrt_dtype_name(tcrt_dtype_t(state.dtype))},
                  {"dims", dims}};
    if (state.flags & TCRT_STATE_FLAG_INITIAL)
      entry["initial_offset"] = state.initial_offset;
    json["states"].push_back(entry);
  }
  json["random"] =
      llvm::any_of(reader.states(), [&](auto &state) { return reader.name(state.name) == TCRT_RANDOM_STATE; })
          ? "others in each run"
          : "the same in each run";
  if (const char *treatment = treatmentOfIndices(manifest))
    json["indices"] = treatment;
  json["flags"] = getFlags(manifest);
  json["device"] = reader.variants().empty() ? "cpu" : tcrt_device_name(reader.variants().front().device);
  json["variants"] = Json::array();
  for (const tcrt_sig_variant_t &variant : reader.variants())
    json["variants"].push_back(variantJson(reader, variant));
  json["sections"] = Json::array();
  for (const tcrt_section_t &section : reader.sections()) {
    Json entry = {{"kind", tcrt_section_kind_name(section.kind)}, {"offset", section.offset}, {"size", section.size}};
    if (section.kind == TCRT_SECTION_ARTIFACT)
      entry["device"] = tcrt_device_name(section.arch);
    else if (section.arch)
      entry["arch"] = archName(section.arch);
    entry["sha256"] = hex(section.sha256, sizeof section.sha256);
    json["sections"].push_back(entry);
  }
  llvm::StringSet<> kernels;
  for (const tcrt_sig_kernel_t &kernel : reader.kernels())
    kernels.insert(reader.name(kernel.name));
  json["kernel_count"] = kernels.size();
  json["launch_count"] = reader.kernels().size();
  json["kernels"] = Json::array();
  for (const tcrt_sig_kernel_t &kernel : reader.kernels())
    json["kernels"].push_back({{"name", text(reader.name(kernel.name))},
                               {"nodes", text(reader.name(kernel.nodes))},
                               {"flops", kernel.flops},
                               {"bytes", kernel.bytes}});
  json["manifest"] = manifest.is_discarded() ? Json() : manifest;
  // The tables hold numbers; work that depends on sizes stands in the manifest as an expression.
  const Json *described = manifest.is_object() && manifest.contains("kernels") ? &manifest["kernels"] : nullptr;
  for (size_t i = 0; described && described->is_array() && i < json["kernels"].size() && i < described->size(); ++i)
    for (const char *key : {"flops", "bytes"})
      if (const Json &kernel = (*described)[i]; kernel.is_object() && kernel.contains(key) && kernel[key].is_string())
        json["kernels"][i][key] = kernel[key];
  json["artifacts"] = Json::array();
  return json;
}

} // namespace

llvm::Expected<Json> tc::inspect::describeArtifact(const Reader &reader, bool verifyAll) {
  Json json = describe(reader);
  // One for each device, as the runtime takes them, which looks for none inside of them.
  llvm::SmallSet<uint32_t, 4> devices;
  for (const tcrt_section_t &section : reader.sections()) {
    if (section.kind != TCRT_SECTION_ARTIFACT || !devices.insert(section.arch).second)
      continue;
    llvm::Expected<std::unique_ptr<Reader>> part = reader.openPart(section, verifyAll);
    if (!part)
      return part.takeError();
    json["artifacts"].push_back(describe(**part));
  }
  return json;
}

namespace {

std::string sizeText(uint64_t bytes) {
  char result[64];
  if (bytes < 10 * 1024)
    std::snprintf(result, sizeof result, "%" PRIu64 " B", bytes);
  else if (bytes < uint64_t(10) << 20)
    std::snprintf(result, sizeof result, "%.1f KiB", double(bytes) / 1024);
  else
    std::snprintf(result, sizeof result, "%.1f MiB", double(bytes) / (1 << 20));
  return result;
}

std::string shapeText(const Json &value) {
  std::string result = value["dtype"].get<std::string>() + " (";
  for (size_t i = 0; i < value["dims"].size(); ++i) {
    const Json &dim = value["dims"][i];
    result += (i ? ", " : "") + (dim.is_string() ? dim.get<std::string>() : std::to_string(dim.get<int64_t>()));
  }
  result += ")";
  if (value["kind"] != "tensor")
    result = value["kind"].get<std::string>() + " of " + result;
  if (value.contains("unused"))
    result += ", unused";
  if (value.contains("default_offset"))
    result += ", has a default";
  return result;
}

/// Lists of the manifest that stand before it.
bool isShownAbove(const std::string &key) {
  for (const char *known : {"flags", "functions", "host_functions", "kernels", "variants"})
    if (key == known)
      return true;
  return false;
}

/// One "key: value" line per leaf of a JSON object, indented; of other lists their length.
void printObject(const Json &json, int indent) {
  for (const auto &[key, value] : json.items()) {
    if (value.is_object()) {
      std::printf("%*s%s\n", indent, "", key.c_str());
      printObject(value, indent + 2);
    } else if (value.is_string()) {
      std::printf("%*s%-24s %s\n", indent, "", key.c_str(), value.get<std::string>().c_str());
    } else if (!value.is_array()) {
      std::printf("%*s%-24s %s\n", indent, "", key.c_str(),
                  value.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    } else if (!isShownAbove(key)) {
      std::printf("%*s%-24s %zu entries\n", indent, "", key.c_str(), value.size());
    }
  }
}

/// What the manifest says, which is anybody's JSON: text as it is, else the JSON.
std::string plainText(const Json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string member(const Json &object, const char *name) {
  return object.is_object() && object.contains(name) ? plainText(object[name]) : std::string();
}

bool holds(const Json &list, const Json &value) { return std::find(list.begin(), list.end(), value) != list.end(); }

void printRow(const std::string &name, const std::string &what) {
  std::printf("  %-24s %s\n", name.c_str(), what.c_str());
}

/// Inputs, outputs, sizes, guards and memory; with the name before them where there are several functions.
void printFunction(const Json &function, bool isNamed) {
  if (isNamed)
    std::printf("function %s: %" PRIu64 " %s\n", function["name"].get<std::string>().c_str(),
                function["kernel_count"].get<uint64_t>(), function["kernel_count"] == 1 ? "launch" : "launches");
  for (const char *what : {"inputs", "outputs"}) {
    std::printf("%s\n", what);
    for (const Json &value : function[what])
      printRow(value["name"].get<std::string>(), shapeText(value));
  }
  bool hasSizes = false;
  for (const Json &symbol : function["symbols"]) {
    int64_t min = symbol["min"], max = symbol["max"], divisor = symbol["divisor"];
    auto names = [&](const Json &value) { return holds(value["dims"], symbol["name"]); };
    const bool isComputed = llvm::none_of(function["inputs"], names);
    // A check of data is a size with one value that no value has; it stands among the guards.
    if (isComputed && min == max && llvm::none_of(function["outputs"], names))
      continue;
    if (!std::exchange(hasSizes, true))
      std::printf("symbolic sizes\n");
    std::string range =
        max == INT64_MAX ? "from " + std::to_string(min) : std::to_string(min) + " to " + std::to_string(max);
    if (divisor > 1)
      range += ", multiple of " + std::to_string(divisor);
    printRow(symbol["name"].get<std::string>(), range + (isComputed ? ", computed by the run" : ""));
  }
  if (!function["entries"].empty())
    std::printf("code of its own for\n");
  for (const Json &entry : function["entries"]) {
    std::string sizes;
    for (const auto &[name, size] : entry.items())
      sizes += (sizes.empty() ? "" : ", ") + name +
               (size.is_object() ? " up to " + std::to_string(size["at_most"].get<int64_t>()) + ", padded to it"
                                 : " = " + std::to_string(size.get<int64_t>()));
    std::printf("  %s\n", sizes.c_str());
  }
  auto printGuards = [&](const char *title, bool isOfSizes) {
    for (const Json &guard : function["guards"]) {
      const std::string condition = member(guard, "condition"), node = member(guard, "node");
      // What inputs must be stands above.
      if (condition.empty() == isOfSizes ||
          (isOfSizes && !member(guard, "inputs").empty() && node.empty() && member(guard, "what").empty()))
        continue;
      if (const char *once = std::exchange(title, nullptr))
        std::printf("%s\n", once);
      if (isOfSizes)
        printRow(condition, member(guard, "what") + (node.empty() ? "" : ", node \"" + node + "\""));
      else
        std::printf("  %s\n", member(guard, "what").c_str());
    }
  };
  printGuards("a run is refused unless", true);
  printGuards("a run is refused where", false);
  if (!function["memory"].empty())
    std::printf("memory\n");
  for (auto [key, name] : {std::pair("weights_bytes", "weights"), std::pair("arena_bytes", "arena of a run")})
    if (function["memory"].contains(key))
      printRow(name, member(function["memory"], key) + " bytes");
}

std::string joined(const std::vector<std::string> &parts, const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

void printVariant(const Json &variant) {
  std::string text = variant["device"].get<std::string>() + ", " + sizeText(variant["code_bytes"]) + " of host code";
  if (variant.contains("kernels") && !variant["kernels"].empty()) {
    uint64_t bytes = 0;
    for (const Json &kernel : variant["kernels"])
      bytes += kernel["code_bytes"].get<uint64_t>();
    text += " (kernels " + sizeText(bytes) + ")";
  }
  if (variant.contains("device_code"))
    for (const Json &code : variant["device_code"])
      text += ", " + sizeText(code["bytes"]) + " of " + code["kind"].get<std::string>() + " for " +
              code["arch"].get<std::string>();
  text += ", needs " + (variant["cpu_features"] == "" ? "any x86-64" : variant["cpu_features"].get<std::string>());
  printRow(variant["name"], text + (variant["usable_here"].get<bool>() ? "" : " (not on this CPU)"));
}

/// What there is to say of the kernels' code, by their names: bytes in each of `variants`, which receives them in
/// order, or the threads and memory of a GPU's.
std::map<std::string, std::string> describeCode(const Json &artifact, std::vector<std::string> &variants) {
  std::map<std::string, std::string> texts;
  for (const Json &variant : artifact["variants"]) {
    const char *list = variant.contains("kernels") ? "kernels" : "device_kernels";
    if (!variant.contains(list) || variant[list].empty())
      continue;
    if (variant.contains("kernels"))
      variants.push_back(variant["name"]);
    for (const Json &kernel : variant[list]) {
      std::string &text = texts[kernel["name"]];
      text += text.empty() ? "" : "+";
      if (variant.contains("kernels"))
        text += std::to_string(kernel["code_bytes"].get<uint64_t>());
      else
        text += std::to_string(kernel["max_threads"].get<uint64_t>()) + " threads" +
                (kernel["dynamic_smem"] == 0 ? "" : ", " + sizeText(kernel["dynamic_smem"]) + " shared");
    }
  }
  return texts;
}

/// One line for launches that are alike: the kernel, how often, its code, work, nodes.
void printKernels(const Json &artifact, bool all) {
  struct Line {
    std::string name, size, work, nodes;
    size_t count, others;
  };
  std::vector<Line> lines;
  std::vector<std::string> variants;
  std::map<std::string, std::string> code = describeCode(artifact, variants);
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (const Json &kernel : artifact["kernels"]) {
    auto amount = [&](const char *key) {
      std::string value =
          kernel[key].is_string() ? kernel[key].get<std::string>() : std::to_string(kernel[key].get<uint64_t>());
      return std::string(value.size() < 12 ? 12 - value.size() : 0, ' ') + value + " " + key;
    };
    const std::string name = kernel["name"], nodes = kernel["nodes"], work = amount("flops") + " " + amount("bytes");
    auto [it, isNew] = known.try_emplace({name, work}, lines.size());
    if (isNew)
      lines.push_back({name, code[name], work, nodes, 0, 0});
    Line &line = lines[it->second];
    ++line.count;
    line.others += line.nodes != nodes;
  }
  const uint64_t kernels = artifact["kernel_count"], launches = artifact["launch_count"];
  std::printf("kernels: %" PRIu64 " in %" PRIu64 " %s%s%s%s\n", kernels, launches,
              launches == 1 ? "launch" : "launches",
              variants.empty() ? "" : "; bytes of code: ", joined(variants, ", ").c_str(),
              launches == kernels ? "" : "; like launches stand together");
  size_t count = lines.size(), shown = all ? count : std::min<size_t>(count, 20);
  lines.resize(shown);
  int nameWidth = 24, sizeWidth = 0;
  for (Line &line : lines) {
    if (line.count > 1)
      line.name += " x " + std::to_string(line.count);
    nameWidth = std::max<int>(nameWidth, line.name.size());
    sizeWidth = std::max<int>(sizeWidth, line.size.size());
  }
  for (const Line &line : lines)
    std::printf("  %-*s %*s  %s  %s%s\n", nameWidth, line.name.c_str(), sizeWidth, line.size.c_str(), line.work.c_str(),
                line.nodes.c_str(), line.others ? (" and " + std::to_string(line.others) + " more").c_str() : "");
  if (shown < count)
    std::printf("  ... %zu more, shown with --kernels\n", count - shown);
}

/// What there is for one device.
void printDevice(const Json &artifact, bool allKernels) {
  std::printf("variants\n");
  for (const Json &variant : artifact["variants"])
    printVariant(variant);
  printKernels(artifact, allKernels);
  std::printf("sections\n");
  for (const Json &section : artifact["sections"])
    std::printf("  %-24s %12" PRIu64 " bytes at %" PRIu64 "%s%s\n", section["kind"].get<std::string>().c_str(),
                section["size"].get<uint64_t>(), section["offset"].get<uint64_t>(),
                section.contains("arch") ? ", " : "",
                section.contains("arch") ? section["arch"].get<std::string>().c_str() : "");
}

void printManifest(const Json &artifact) {
  const Json &manifest = artifact["manifest"];
  if (!manifest.is_object())
    return;
  // Of ABI 1 they stand under "functions".
  const char *key = artifact["abi_version"] == 1 ? "functions" : "host_functions";
  if (manifest.contains(key) && manifest[key].is_array() && !manifest[key].empty()) {
    std::printf("host functions\n");
    for (const Json &function : manifest[key]) {
      const std::string library = member(function, "library");
      printRow(member(function, "name"),
               "of " + library + (library == "libtcrt-ort" ? ", which calls ONNX Runtime" : ""));
    }
  }
  std::printf("manifest\n");
  printObject(manifest, 2);
}

} // namespace

void tc::inspect::printGuards(const Json &json) {
  for (const Json &function : json["functions"]) {
    std::printf("function %s: %zu guards\n", function["name"].get<std::string>().c_str(), function["guards"].size());
    for (const Json &guard : function["guards"]) {
      const std::string condition = member(guard, "condition"), what = member(guard, "what");
      std::printf("  %s\n", condition.empty() ? what.c_str() : condition.c_str());
      if (!condition.empty() && !what.empty())
        std::printf("    %-10s %s\n", "says", what.c_str());
      for (auto [key, title] : {std::pair("inputs", "inputs"), std::pair("from", "from"), std::pair("source", "line"),
                                std::pair("costs", "costs"), std::pair("give_up", "give up")})
        if (const std::string text = member(guard, key); !text.empty())
          std::printf("    %-10s %s\n", title, text.c_str());
    }
  }
}

void tc::inspect::printArtifact(const Json &json, bool allKernels) {
  std::vector<std::string> devices{json["device"]};
  for (const Json &part : json["artifacts"])
    devices.push_back(part["device"]);
  std::printf("%s: artifact of format %" PRIu64 ", ABI %" PRIu64 ", %s, for %s\n",
              json["file"].get<std::string>().c_str(), json["format_version"].get<uint64_t>(),
              json["abi_version"].get<uint64_t>(), sizeText(json["file_size"]).c_str(),
              joined(devices, " and ").c_str());
  for (const Json &function : json["functions"])
    printFunction(function, json["functions"].size() > 1);
  if (!json["states"].empty())
    std::printf("states\n");
  for (const Json &state : json["states"])
    printRow(state["name"], shapeText(state) + (state.contains("initial_offset") ? ", begins with a value" : ""));
  std::printf("random numbers\n  %s\n", json["random"] == "others in each run"
                                            ? "others in each run; tc-run --seed or tcrt_context_set_seed begins anew"
                                            : "none, or from seeds in the model: the same in each run");
  if (json.contains("indices"))
    std::printf("computed indices out of range\n  %s\n",
                json["indices"] == "checked"
                    ? "checked: such a run is refused"
                    : "clamped to the nearest element; tc-compile --check-bounds has such runs refused");
  if (!json["flags"].empty())
    std::printf("compiled with\n");
  for (const Json &flag : json["flags"])
    std::printf("  %s\n", plainText(flag).c_str());
  if (devices.size() > 1)
    std::printf("device %s\n", devices.front().c_str());
  printDevice(json, allKernels);
  for (const Json &part : json["artifacts"]) {
    std::printf("device %s\n", part["device"].get<std::string>().c_str());
    for (const Json &flag : part["flags"])
      if (!holds(json["flags"], flag))
        std::printf("  compiled with %s\n", plainText(flag).c_str());
    printDevice(part, allKernels);
  }
  printManifest(json);
}
