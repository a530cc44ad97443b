//===- Operators.cpp - which operators tc takes -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Operators.h"

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Dialect/Graph/Torch/Schemas.h"
#include "tc/Frontend/ONNX.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

using namespace llvm;
using namespace tc;
using namespace tc::driver;

namespace {

/// tc's name of an element type of ONNX.
std::string getDtypeName(StringRef name) {
  return StringSwitch<std::string>(name)
      .Case("float", "f32")
      .Case("double", "f64")
      .Case("float16", "f16")
      .Case("bfloat16", "bf16")
      .Case("complex64", "c64")
      .Case("complex128", "c128")
      .Default(name.starts_with("float")  ? "f" + name.drop_front(5).str()
               : name.starts_with("uint") ? "u" + name.drop_front(4).str()
               : name.starts_with("int")  ? "i" + name.drop_front(3).str()
                                          : name.str());
}

bool isTorch(StringRef domain) {
  return domain == "aten" || domain == "prims" || domain == "quantized_decomposed" || domain == "torchvision";
}

/// Whether it is one of PyTorch's operators on tensors that a table of what there is should name.
bool isListed(const torch::Schema &schema) {
  auto hasTensor = [](ArrayRef<torch::SchemaArgument> values) {
    return any_of(values, [](const torch::SchemaArgument &value) {
      return value.type.required().kind == torch::SchemaType::Kind::Tensor ||
             value.type.isListOf(torch::SchemaType::Kind::Tensor);
    });
  };
  return torch::isCore(schema) ||
         (schema.domain == "aten" && !schema.writes() && (hasTensor(schema.arguments) || hasTensor(schema.results)));
}

class SupportFinder {
public:
  /// Adds to `missing` what keeps the operator from being supported: itself, or parts of its body.
  OperatorSupport find(const std::string &domain, const std::string &type, int64_t opset,
                       std::set<std::string> &missing) {
    if (hasHandler(domain, type, opset))
      return OperatorSupport::Handler;
    if (isTorch(domain)) {
      const torch::Schema *schema = torch::findSchema(domain, type);
      const torch::Schema *functional = schema ? torch::findFunctional(*schema) : nullptr;
      return functional && hasHandler(domain, functional->nodeType(), opset) ? OperatorSupport::Expansion
                                                                             : OperatorSupport::None;
    }
    auto [it, isNew] = known.try_emplace({domain, type, opset});
    if (isNew) { // a body that holds its own operator is not supported
      std::optional<std::vector<OnnxOperator>> body = getOnnxBodyOperators(domain, type, opset);
      Result result;
      if (!body) {
        result.missing.insert(domain == "ai.onnx" ? type : domain + "." + type);
      } else {
        result.support = OperatorSupport::Expansion;
        for (const OnnxOperator &inner : *body)
          if (find(inner.domain, inner.type, inner.sinceVersion, result.missing) == OperatorSupport::None)
            result.support = OperatorSupport::None;
      }
      known[{domain, type, opset}] = result;
      it = known.find({domain, type, opset});
    }
    missing.insert(it->second.missing.begin(), it->second.missing.end());
    return it->second.support;
  }

private:
  struct Result {
    OperatorSupport support = OperatorSupport::None;
    std::set<std::string> missing;
  };
  std::map<std::tuple<std::string, std::string, int64_t>, Result> known;
};

} // namespace

StringRef tc::driver::getName(OperatorSupport support) {
  switch (support) {
  case OperatorSupport::Handler:
    return "handler";
  case OperatorSupport::Expansion:
    return "expansion";
  case OperatorSupport::None:
    return "none";
  }
  llvm_unreachable("covered switch");
}

OperatorSupport tc::driver::findOperatorSupport(const std::string &domain, const std::string &type, int64_t opset) {
  std::set<std::string> missing;
  return SupportFinder().find(domain, type, opset, missing);
}

std::vector<OperatorEntry> tc::driver::getOperatorTable() {
  std::map<std::pair<std::string, std::string>, OperatorEntry> table;
  SupportFinder finder;
  for (const OnnxOperator &op : getOnnxOperators()) {
    OperatorEntry &entry = table[{op.domain, op.type}];
    OperatorVersion &version = entry.versions.emplace_back();
    version.version = op.sinceVersion;
    version.deprecated = op.deprecated;
    std::set<std::string> missing;
    version.support = finder.find(op.domain, op.type, op.sinceVersion, missing);
    missing.erase(op.domain == "ai.onnx" ? op.type : op.domain + "." + op.type);
    if (version.support == OperatorSupport::None)
      version.missing.assign(missing.begin(), missing.end());
    // The newest version comes last.
    entry.dtypes.clear();
    if (std::optional<OnnxSchema> schema = getOnnxSchema(op.domain, op.type, op.sinceVersion))
      for (const std::string &name : schema->elementTypes)
        entry.dtypes.push_back(getDtypeName(name));
  }
  for (const HandledOperator &op : getHandledOperators()) {
    OperatorEntry &entry = table[{op.domain, op.type}];
    if (op.takesAnyInteger)
      for (StringRef dtype : {"i16", "i32", "i64", "i8", "u16", "u32", "u64", "u8"})
        if (!is_contained(entry.dtypes, dtype))
          entry.dtypes.push_back(dtype.str());
    if (entry.versions.empty())
      for (int64_t version : op.sinceVersions)
        entry.versions.push_back({version, OperatorSupport::Handler, /*deprecated=*/false, {}});
  }
  for (const torch::Schema *schema : torch::getAllSchemas()) {
    if (!isListed(*schema))
      continue;
    OperatorEntry &entry = table[{schema->domain.str(), schema->nodeType()}];
    entry.isCore = torch::isCore(*schema);
    if (entry.versions.empty())
      entry.versions.push_back({1, OperatorSupport::None, /*deprecated=*/false, {}});
  }
  std::vector<OperatorEntry> entries;
  for (auto &[key, entry] : table) {
    entry.domain = key.first;
    entry.type = key.second;
    entries.push_back(std::move(entry));
  }
  return entries;
}

void tc::driver::printOperators(raw_ostream &stream, const std::vector<OperatorEntry> &table) {
  size_t width = 8;
  auto isShown = [](const OperatorEntry &entry) {
    return !isTorch(entry.domain) || entry.isCore || entry.versions.back().support != OperatorSupport::None;
  };
  for (const OperatorEntry &entry : table)
    if (isShown(entry))
      width = std::max(width, entry.type.size());
  std::string domain;
  // Of the operators of a domain that are not deprecated: all, and those whose newest version is supported.
  std::map<std::string, std::pair<int64_t, int64_t>> totals;
  // PyTorch's count by name, as overloads are forms of one operator: those that have a supported one.
  std::map<std::string, std::map<StringRef, bool>> names;
  for (const OperatorEntry &entry : table) {
    const bool isSupported = entry.versions.back().support != OperatorSupport::None;
    if (isTorch(entry.domain))
      names[entry.domain + ", by name"][StringRef(entry.type).split('.').first] |= isSupported;
    if (entry.isCore) {
      ++totals["Core ATen"].first;
      totals["Core ATen"].second += isSupported;
    }
    if (!isShown(entry))
      continue;
    if (entry.domain != domain) {
      domain = entry.domain;
      stream << (totals.empty() ? "" : "\n") << domain << "\n";
    }
    stream << "  " << left_justify(entry.type, width) << "  ";
    std::string versions;
    for (const OperatorVersion &version : entry.versions)
      versions += (versions.empty() ? "" : ",") + std::to_string(version.version) +
                  (version.support == OperatorSupport::None ? "-" : "");
    const OperatorVersion &newest = entry.versions.back();
    stream << left_justify(newest.deprecated ? "deprecated" : getName(newest.support), 10) << "  "
           << left_justify(versions, 24);
    if (newest.support == OperatorSupport::None && !newest.missing.empty())
      stream << "  body needs " << join(newest.missing, ", ");
    else
      stream << "  " << (entry.isCore ? "core" : join(entry.dtypes, " "));
    stream << "\n";
    if (!newest.deprecated && !isTorch(domain)) {
      ++totals[domain].first;
      totals[domain].second += newest.support != OperatorSupport::None;
    }
  }
  for (const auto &[key, supported] : names)
    totals[key] = {supported.size(), count_if(supported, [](const auto &name) { return name.second; })};
  stream << "\nVersions that are not supported are marked with a minus. Operators whose newest version is:\n";
  for (const auto &[name, count] : totals)
    stream << formatv("  {0}: {1} of {2}\n", name, count.second, count.first);
}

void tc::driver::printOperatorsJson(raw_ostream &stream, const std::vector<OperatorEntry> &table) {
  json::OStream json(stream, 2);
  json.array([&] {
    for (const OperatorEntry &entry : table)
      json.object([&] {
        json.attribute("domain", entry.domain);
        json.attribute("type", entry.type);
        if (isTorch(entry.domain))
          json.attribute("core", entry.isCore);
        json.attributeArray("dtypes", [&] {
          for (const std::string &dtype : entry.dtypes)
            json.value(dtype);
        });
        json.attributeArray("versions", [&] {
          for (const OperatorVersion &version : entry.versions)
            json.object([&] {
              json.attribute("version", version.version);
              json.attribute("support", getName(version.support));
              json.attribute("deprecated", version.deprecated);
              json.attributeArray("missing", [&] {
                for (const std::string &name : version.missing)
                  json.value(name);
              });
            });
        });
      });
  });
  stream << "\n";
}
