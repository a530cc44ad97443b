//===- Main.cpp - tc-inspect: shows what is in an artifact --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Artifact/Reader.h"
#include "tc/Driver/Operators.h"
#include "tc/Format/Container.h"
#include "tc/Format/Json.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ToolVersion.h"
#include "tcrt/tcrt.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <string>

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

Json describe(const Reader &reader) {
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
  json["variants"] = Json::array();
  for (const tcrt_sig_variant_t &variant : reader.variants()) {
    Json entry = {{"name", text(reader.name(variant.name))},
                  {"device", tcrt_device_name(variant.device)},
                  {"cpu_features", features(variant.cpu_features)},
                  {"usable_here", (variant.cpu_features & ~tcrt_cpu_features()) == 0},
                  {"section", variant.section},
                  {"code_bytes", reader.sections()[variant.section].size},
                  {"weights_bytes", variant.weights_size}};
    if (variant.arch)
      entry["arch"] = archName(variant.arch);
    if (variant.device == TCRT_DEVICE_CUDA) {
      entry["first_device_code"] = variant.first_device_code;
      entry["device_code_count"] = variant.device_code_count;
      entry["device_kernels"] = Json::array();
      for (const tcrt_sig_device_kernel_t &kernel : reader.deviceKernels(variant))
        entry["device_kernels"].push_back({{"name", text(reader.name(kernel.name))},
                                           {"max_threads", kernel.max_threads},
                                           {"dynamic_smem", kernel.dynamic_smem}});
    }
    json["variants"].push_back(entry);
  }
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
  json["kernels"] = Json::array();
  for (const tcrt_sig_kernel_t &kernel : reader.kernels())
    json["kernels"].push_back({{"name", text(reader.name(kernel.name))},
                               {"nodes", text(reader.name(kernel.nodes))},
                               {"flops", kernel.flops},
                               {"bytes", kernel.bytes}});
  llvm::StringRef manifest = reader.manifest();
  Json parsed = tc::parseJson(manifest.data(), manifest.size());
  json["manifest"] = parsed.is_discarded() ? Json() : parsed;
  if (const char *treatment = treatmentOfIndices(parsed))
    json["indices"] = treatment;
  // The tables hold numbers; work that depends on sizes stands in the manifest as an expression.
  const Json *described = parsed.is_object() && parsed.contains("kernels") ? &parsed["kernels"] : nullptr;
  for (size_t i = 0; described && described->is_array() && i < json["kernels"].size() && i < described->size(); ++i)
    for (const char *key : {"flops", "bytes"})
      if (const Json &kernel = (*described)[i]; kernel.is_object() && kernel.contains(key) && kernel[key].is_string())
        json["kernels"][i][key] = kernel[key];
  return json;
}

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

/// One "key: value" line per leaf of a JSON object, indented.
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
    } else {
      std::printf("%*s%-24s %zu entries\n", indent, "", key.c_str(), value.size());
    }
  }
}

/// Inputs, outputs and sizes; with the name before them where there are several functions.
void printFunction(const Json &function, bool isNamed) {
  if (isNamed)
    std::printf("function %s: %" PRIu64 " kernels\n", function["name"].get<std::string>().c_str(),
                function["kernel_count"].get<uint64_t>());
  for (const char *what : {"inputs", "outputs"}) {
    std::printf("%s\n", what);
    for (const Json &value : function[what])
      std::printf("  %-24s %s\n", value["name"].get<std::string>().c_str(), shapeText(value).c_str());
  }
  if (!function["symbols"].empty())
    std::printf("symbolic sizes\n");
  for (const Json &symbol : function["symbols"]) {
    int64_t min = symbol["min"], max = symbol["max"], divisor = symbol["divisor"];
    std::string range =
        max == INT64_MAX ? "from " + std::to_string(min) : std::to_string(min) + " to " + std::to_string(max);
    if (divisor > 1)
      range += ", multiple of " + std::to_string(divisor);
    std::printf("  %-24s %s\n", symbol["name"].get<std::string>().c_str(), range.c_str());
  }
}

void printSummary(const Json &json, bool allKernels) {
  std::printf("%s: artifact of format %" PRIu64 ", ABI %" PRIu64 ", %s\n", json["file"].get<std::string>().c_str(),
              json["format_version"].get<uint64_t>(), json["abi_version"].get<uint64_t>(),
              sizeText(json["file_size"].get<uint64_t>()).c_str());
  for (const Json &function : json["functions"])
    printFunction(function, json["functions"].size() > 1);
  if (!json["states"].empty())
    std::printf("states\n");
  for (const Json &state : json["states"])
    std::printf("  %-24s %s%s\n", state["name"].get<std::string>().c_str(), shapeText(state).c_str(),
                state.contains("initial_offset") ? ", begins with a value" : "");
  std::printf("variants\n");
  for (const Json &variant : json["variants"])
    std::printf("  %-24s %s, %s of host code, needs %s%s\n", variant["name"].get<std::string>().c_str(),
                variant["device"].get<std::string>().c_str(), sizeText(variant["code_bytes"].get<uint64_t>()).c_str(),
                variant["cpu_features"] == "" ? "any x86-64" : variant["cpu_features"].get<std::string>().c_str(),
                variant["usable_here"].get<bool>() ? "" : " (not on this CPU)");
  std::printf("sections\n");
  for (const Json &section : json["sections"])
    std::printf("  %-24s %12" PRIu64 " bytes at %" PRIu64 "%s%s\n", section["kind"].get<std::string>().c_str(),
                section["size"].get<uint64_t>(), section["offset"].get<uint64_t>(),
                section.contains("arch") ? ", " : "",
                section.contains("arch") ? section["arch"].get<std::string>().c_str() : "");
  size_t count = json["kernels"].size(), shown = allKernels ? count : std::min<size_t>(count, 20);
  std::printf("kernels: %zu\n", count);
  for (size_t i = 0; i < shown; ++i) {
    const Json &kernel = json["kernels"][i];
    auto amount = [&](const char *key) {
      return kernel[key].is_string() ? kernel[key].get<std::string>() : std::to_string(kernel[key].get<uint64_t>());
    };
    std::printf("  %-24s %12s flops %12s bytes  %s\n", kernel["name"].get<std::string>().c_str(),
                amount("flops").c_str(), amount("bytes").c_str(), kernel["nodes"].get<std::string>().c_str());
  }
  if (shown < count)
    std::printf("  ... %zu more, shown with --kernels\n", count - shown);
  if (json.contains("indices"))
    std::printf("computed indices out of range\n  %s\n",
                json["indices"] == "checked"
                    ? "checked: such a run is refused"
                    : "clamped to the nearest element; tc-compile --check-bounds has such runs refused");
  const Json &manifest = json["manifest"];
  // Of ABI 1 they stand under "functions".
  const char *key = json["abi_version"] == 1 ? "functions" : "host_functions";
  if (manifest.is_object() && manifest.contains(key) && manifest[key].is_array() && !manifest[key].empty()) {
    std::printf("host functions\n");
    // The manifest is anybody's: what is no text is shown as it is.
    auto member = [](const Json &function, const char *name) {
      if (!function.is_object() || !function.contains(name))
        return std::string();
      const Json &value = function[name];
      return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    };
    for (const Json &function : manifest[key])
      std::printf("  %-24s of %s\n", member(function, "name").c_str(), member(function, "library").c_str());
  }
  if (manifest.is_object()) {
    std::printf("manifest\n");
    printObject(manifest, 2);
  }
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Shows what is in an artifact, or which operators tc takes.", "tc-inspect");
  std::string path;
  std::string operatorFormat;
  bool asJson = false, allKernels = false, verify = false;
  app.add_option("ARTIFACT", path, "a file written by tc-compile");
  app.add_flag("--json", asJson, "everything, as JSON");
  app.add_flag("--kernels", allKernels, "all kernels, not only the first 20");
  CLI::Option *operators =
      app.add_flag("--operators{text}", operatorFormat, "the operators that tc takes, instead of an artifact; =json");
  app.add_flag("--verify-weights", verify, "check the hashes of weights and device code, too");
  app.set_help_flag("-h,--help", "this text");
  app.set_version_flag("--version", tc::getVersionText("tc-inspect"), "versions of tc and LLVM, and tc's commit");
  app.footer("Examples:\n"
             "  tc-inspect model.bin             signature, variants, kernels, flags\n"
             "  tc-inspect model.bin --json      all of it, for programs\n"
             "  tc-inspect --operators           which operators tc takes\n\n"
             "Exit codes: 0 done; 1 wrong use, unreadable or corrupt file; 5 no memory is left; 6 internal error");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    std::fputs(tc::describeSuccess(app, success).c_str(), stdout);
    if (std::fflush(stdout) == 0)
      return 0;
    std::fprintf(stderr, "tc-inspect: error: standard output cannot be written\n");
    return 1;
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "tc-inspect: error: %s; see tc-inspect --help\n",
                 tc::describeParseError(app, error, "artifact").c_str());
    return 1;
  }
  if (operators->count()) {
    if (!path.empty() || (operatorFormat != "text" && operatorFormat != "json")) {
      std::fprintf(stderr, "tc-inspect: error: --operators takes no artifact, and no value but json; see tc-inspect "
                           "--help\n");
      return 1;
    }
    std::vector<tc::driver::OperatorEntry> table = tc::driver::getOperatorTable();
    if (operatorFormat == "json")
      tc::driver::printOperatorsJson(llvm::outs(), table);
    else
      tc::driver::printOperators(llvm::outs(), table);
    llvm::outs().flush();
    if (std::error_code problem = llvm::outs().error()) {
      llvm::outs().clear_error();
      std::fprintf(stderr, "tc-inspect: error: standard output cannot be written: %s\n", problem.message().c_str());
      return 1;
    }
    return 0;
  }
  if (path.empty()) {
    std::fprintf(stderr, "tc-inspect: error: no artifact is given; see tc-inspect --help\n");
    return 1;
  }
  llvm::Expected<std::unique_ptr<Reader>> reader = Reader::open(path, verify);
  if (!reader) {
    std::fprintf(stderr, "%s\n", llvm::toString(reader.takeError()).c_str());
    return TCRT_ERROR_INVALID;
  }
  try {
    Json json = describe(**reader);
    if (asJson)
      std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    else
      printSummary(json, allKernels);
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "%s: error: no memory left to show the artifact\n", path.c_str());
    return TCRT_ERROR_MACHINE;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "%s: error: %s; please report this with the file\n", path.c_str(), problem.what());
    return TCRT_ERROR_INTERNAL;
  }
  if (std::fflush(stdout) != 0) {
    std::fprintf(stderr, "tc-inspect: error: standard output cannot be written\n");
    return 1;
  }
  return 0;
}
