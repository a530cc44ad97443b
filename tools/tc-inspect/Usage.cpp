//===- Usage.cpp - what a process ran, and which sizes would gain from code of their own --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Usage.h"

#include "tc/Format/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

using Json = nlohmann::ordered_json;

namespace {

/// Sizes that come less often, and take less of the time, are not worth a compile.
constexpr double kLeastShare = 0.05;
/// Sizes are proposed for so many combinations at most.
constexpr size_t kMostProposed = 4;
/// As tc-specialize-sizes has it.
constexpr uint64_t kMostCodes = 64;
/// A file of any size may be given.
constexpr uint64_t kMostBytes = uint64_t(256) << 20;

uint64_t number(const Json &object, const char *key) {
  return object.contains(key) && object[key].is_number_unsigned() ? object[key].get<uint64_t>() : 0;
}

/// The sum of a number over a list.
uint64_t sum(const Json &list, const char *key) {
  uint64_t all = 0;
  for (const Json &entry : list)
    all += number(entry, key);
  return all;
}

double share(uint64_t part, uint64_t whole) { return whole ? double(part) / double(whole) : 0; }

/// Sizes of an entry may be buckets: {"at_most": 64}.
bool isSizes(const Json &sizes) {
  return sizes.is_object() && llvm::all_of(sizes, [](const Json &size) {
           return size.is_number_integer() ||
                  (size.is_object() && size.contains("at_most") && size["at_most"].is_number_integer());
         });
}
int64_t sizeOf(const Json &size) { return (size.is_object() ? size["at_most"] : size).get<int64_t>(); }
bool areNumbers(const Json &sizes) {
  return isSizes(sizes) && llvm::all_of(sizes, [](const Json &size) { return size.is_number_integer(); });
}

/// Whether everything that is read below has its kind.
bool isUsage(const Json &json) {
  if (!json.is_object() || number(json, "tc_usage") != 1 || !json.contains("artifact") ||
      !json["artifact"].is_string() || !json.contains("functions") || !json["functions"].is_array())
    return false;
  for (const Json &function : json["functions"]) {
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string())
      return false;
    for (const char *key : {"symbols", "entries", "sizes"})
      if (!function.contains(key) || !function[key].is_array() ||
          !llvm::all_of(function[key], [](const Json &entry) { return entry.is_object(); }))
        return false;
    for (const Json &symbol : function["symbols"])
      if (!symbol.contains("name") || !symbol["name"].is_string())
        return false;
    for (const Json &entry : function["entries"])
      if (!entry.contains("name") || !entry["name"].is_string() || !entry.contains("sizes") || !isSizes(entry["sizes"]))
        return false;
    for (const Json &row : function["sizes"])
      if (!row.contains("entry") || !row["entry"].is_string() || !row.contains("sizes") || !areNumbers(row["sizes"]))
        return false;
  }
  return true;
}

using Listed = std::map<std::string, std::set<int64_t>>;

uint64_t countCodes(const Listed &listed) {
  uint64_t codes = 1;
  for (const auto &[name, sizes] : listed)
    codes *= std::max<size_t>(1, sizes.size());
  return codes;
}

/// `listed` with the sizes of a row; those of dims with buckets, which sizes are rounded to, are none to list.
Listed add(Listed listed, const Json &sizes, const Listed &buckets) {
  for (const auto &[name, size] : sizes.items())
    if (!buckets.count(name))
      listed[name].insert(size.get<int64_t>());
  return listed;
}

/// As tc-compile --dim takes it; empty where it would say nothing.
std::string dimText(const Json &symbol, const std::set<int64_t> &listed, const std::set<int64_t> &buckets) {
  auto join = [](const std::set<int64_t> &sizes) {
    std::string text;
    for (int64_t size : sizes)
      text += (text.empty() ? "" : ",") + std::to_string(size);
    return text;
  };
  const std::string name = symbol["name"];
  if (!buckets.empty())
    return name + "=bucket:" + join(buckets);
  const uint64_t divisor = number(symbol, "divisor"), min = number(symbol, "min");
  const bool isBounded = symbol.contains("max");
  std::string text = divisor > 1 ? "multiple-of:" + std::to_string(divisor) : "";
  text += (text.empty() || listed.empty() ? "" : ",") + join(listed);
  if (text.empty() && !isBounded && min == 0)
    return "";
  // A single size would be the only one, and others refused.
  text += (text.empty() ? "" : ",") + std::to_string(min) + "..";
  return name + "=" + text + (isBounded ? std::to_string(number(symbol, "max")) : "");
}

Json advise(const Json &function) {
  const uint64_t runs = sum(function["entries"], "runs"), time = sum(function["entries"], "time_ns");
  Listed listed, buckets, allBuckets;
  Json advice = {{"dims", Json::array()}, {"sizes", Json::array()}, {"unused", Json::array()}};
  for (const Json &entry : function["entries"]) {
    for (const auto &[name, size] : entry["sizes"].items()) {
      if (size.is_object())
        allBuckets[name].insert(sizeOf(size));
      if (!runs || number(entry, "runs") > 0)
        (size.is_object() ? buckets : listed)[name].insert(sizeOf(size));
    }
  }
  // Without the largest, runs between it and the one before would be refused.
  for (const auto &[name, sizes] : allBuckets)
    buckets[name].insert(*sizes.rbegin());
  // A code of several sizes can go where one of them never ran in any.
  for (const Json &entry : function["entries"])
    if (llvm::any_of(entry["sizes"].items(), [&](const auto &item) {
          return !(item.value().is_object() ? buckets : listed)[item.key()].count(sizeOf(item.value()));
        }))
      advice["unused"].push_back(entry["name"]);
  // What the code for all sizes ran, the longest first.
  std::vector<const Json *> rows;
  for (const Json &row : function["sizes"])
    if (row["entry"] == "general" && !row["sizes"].empty() &&
        std::max(share(number(row, "runs"), runs), share(number(row, "time_ns"), time)) >= kLeastShare)
      rows.push_back(&row);
  llvm::stable_sort(rows, [](const Json *a, const Json *b) { return number(*a, "time_ns") > number(*b, "time_ns"); });
  for (const Json *row : rows) {
    Listed more = add(listed, (*row)["sizes"], buckets);
    if (more == listed)
      continue;
    if (advice["sizes"].size() == kMostProposed || countCodes(more) > kMostCodes)
      break;
    listed = std::move(more);
    advice["sizes"].push_back(*row);
  }
  // All dims, as the command is for a compile from the start.
  for (const Json &symbol : function["symbols"])
    if (std::string text = dimText(symbol, listed[symbol["name"]], buckets[symbol["name"]]);
        !text.empty() && !advice["sizes"].empty())
      advice["dims"].push_back(text);
  return advice;
}

std::string sizesText(const Json &sizes) {
  std::string text;
  for (const auto &[name, size] : sizes.items())
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size.get<int64_t>());
  return text;
}

void printRow(const std::string &name, const Json &row, uint64_t runs, uint64_t time) {
  const uint64_t own = number(row, "runs"), ownTime = number(row, "time_ns");
  std::printf("  %-24s %10" PRIu64 " runs  %5.1f %%   %10.3f s  %5.1f %%", name.c_str(), own, 100 * share(own, runs),
              double(ownTime) * 1e-9, 100 * share(ownTime, time));
  if (own)
    std::printf("   %.1f us each", double(ownTime) / double(own) / 1000);
  std::printf("\n");
}

void printFunction(const Json &function) {
  const uint64_t runs = sum(function["entries"], "runs"), time = sum(function["entries"], "time_ns");
  std::printf("function %s: %" PRIu64 " runs in %.3f s, %" PRIu64 " refused, %" PRIu64 " failed\n",
              function["name"].get<std::string>().c_str(), runs, double(time) * 1e-9, number(function, "refused_runs"),
              number(function, "failed_runs"));
  std::printf("entries\n");
  for (const Json &entry : function["entries"])
    printRow(entry["name"], entry, runs, time);
  std::vector<const Json *> rows;
  for (const Json &row : function["sizes"])
    if (row["entry"] == "general" && !row["sizes"].empty())
      rows.push_back(&row);
  llvm::stable_sort(rows, [](const Json *a, const Json *b) { return number(*a, "runs") > number(*b, "runs"); });
  if (!rows.empty())
    std::printf("sizes that the general code ran\n");
  for (size_t i = 0; i < rows.size() && i < 10; ++i)
    printRow(sizesText((*rows[i])["sizes"]), *rows[i], runs, time);
  if (rows.size() > 10)
    std::printf("  and %zu more\n", rows.size() - 10);
  if (uint64_t others = number(function, "runs_of_other_sizes"))
    std::printf("  and others that came seldom, in %" PRIu64 " runs\n", others);
  const Json &advice = function["advice"];
  std::printf("advice\n");
  if (!runs) {
    std::printf("  none: nothing ran\n");
    return;
  }
  for (const Json &name : advice["unused"])
    std::printf("  %s has code of its own and never ran: it can be left out\n", name.get<std::string>().c_str());
  if (advice["sizes"].empty()) {
    std::printf("  list no more sizes: none that the general code ran takes %.0f %% of the runs or of the time\n",
                100 * kLeastShare);
    return;
  }
  std::string options;
  for (const Json &dim : advice["dims"])
    options += " --dim " + dim.get<std::string>();
  std::printf("  tc-compile%s\n", options.c_str());
  std::printf("  gives code of its own to %zu more of these sizes: %.1f %% of the runs, %.1f %% of the time\n",
              advice["sizes"].size(), 100 * share(sum(advice["sizes"], "runs"), runs),
              100 * share(sum(advice["sizes"], "time_ns"), time));
}

} // namespace

llvm::Expected<Json> tc::inspect::readUsage(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(path + ": error: the file cannot be read: " + file.getError().message());
  Json json;
  if ((*file)->getBufferSize() <= kMostBytes)
    json = tc::parseJson((*file)->getBufferStart(), (*file)->getBufferSize());
  if (!isUsage(json))
    return llvm::createStringError(path + ": error: the file does not say how an artifact was used; tc-run --usage and "
                                          "tcrt_model_write_usage write such files");
  for (Json &function : json["functions"])
    function["advice"] = advise(function);
  return json;
}

void tc::inspect::printUsage(const std::string &path, const Json &usage) {
  std::printf("%s: how %s was used\n", path.c_str(), usage["artifact"].get<std::string>().c_str());
  for (const Json &function : usage["functions"])
    printFunction(function);
}
