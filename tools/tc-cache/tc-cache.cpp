//===- tc-cache.cpp - what is in a compile cache ------------------------------------------------------------------===//
//
// Reads the command line and calls the store.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Cache/Store.h"
#include "tc/Support/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace tc::cache;
using Json = nlohmann::ordered_json;

namespace {

enum ExitCode { kDone = 0, kWrongUse = 1 };

const char *const examplesAndCodes = R"(Examples:
  tc-compile model.onnx -o model.bin --cache-dir DIR       fills a cache, or takes the artifact from it
  tc-cache stats --cache-dir DIR                           how much is in it
  tc-cache export bundle --cache-dir DIR                   all entries in one file
  tc-cache import bundle                                   into the folder that TC_CACHE_DIR names

Exit codes: 0 done; 1 wrong use, unreadable or damaged input)";

int fail(const std::string &sentence) {
  std::cout.flush();
  std::cerr << sentence << "\n";
  return kWrongUse;
}

/// `2026-01-31 12:00:00` in UTC.
std::string describeTime(int64_t ns) {
  const time_t seconds = time_t(ns / 1000000000);
  tm parts = {};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts))
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string describeSize(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", double(bytes) / 1e6);
  return text;
}

/// Schedules that --mode max-autotune has measured; 0 where the folder has none, or no file that can be read.
uint64_t countTuned(const Store &store) {
  std::ifstream file(store.getFolder() + "/tuning.json");
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("records") ? json["records"].size() : 0;
}

int showStats(const Store &store, bool asJson) {
  std::array<uint64_t, kKindCount> counts = {}, sizes = {};
  uint64_t count = 0, total = 0;
  int64_t oldest = INT64_MAX, newest = 0;
  for (const EntryInfo &entry : store.list()) {
    ++counts[unsigned(entry.kind)];
    sizes[unsigned(entry.kind)] += entry.sizeBytes;
    ++count;
    total += entry.sizeBytes;
    oldest = std::min(oldest, entry.usedNs);
    newest = std::max(newest, entry.usedNs);
  }
  if (asJson) {
    Json kinds = Json::object();
    for (unsigned i = 0; i < kKindCount; ++i)
      kinds[getName(Kind(i)).str()] = {{"entries", counts[i]}, {"bytes", sizes[i]}};
    Json json = {{"folder", store.getFolder()},          {"entries", count}, {"bytes", total},
                 {"limit_bytes", store.getLimitBytes()}, {"kinds", kinds},   {"tuned_kernels", countTuned(store)}};
    std::cout << json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) << "\n";
    return kDone;
  }
  std::cout << store.getFolder() << ": " << count << (count == 1 ? " entry, " : " entries, ") << describeSize(total)
            << " of at most " << describeSize(store.getLimitBytes()) << "\n";
  for (unsigned i = 0; i < kKindCount; ++i)
    std::printf("%-10s %8llu %12s\n", getName(Kind(i)).str().c_str(), (unsigned long long)counts[i],
                describeSize(sizes[i]).c_str());
  if (const uint64_t tuned = countTuned(store))
    std::cout << "tuning.json: " << tuned << " measured kernels, which clear and the limit leave alone\n";
  if (count)
    std::cout << "used       " << describeTime(oldest) << " to " << describeTime(newest) << " UTC\n";
  return kDone;
}

int showList(const Store &store, bool asJson) {
  Json list = Json::array();
  for (const EntryInfo &entry : store.list()) {
    if (asJson)
      list.push_back({{"kind", getName(entry.kind).str()},
                      {"key", toText(entry.key)},
                      {"bytes", entry.sizeBytes},
                      {"used", describeTime(entry.usedNs)}});
    else
      std::printf("%-10s %s %12llu  %s\n", getName(entry.kind).str().c_str(), toText(entry.key).c_str(),
                  (unsigned long long)entry.sizeBytes, describeTime(entry.usedNs).c_str());
  }
  if (asJson)
    std::cout << list.dump(2) << "\n";
  return kDone;
}

int run(Store &store, const std::string &command, const std::string &file, bool asJson) {
  const bool takesFile = command == "export" || command == "import";
  if (takesFile && file.empty())
    return fail("tc-cache: error: no file is given to " + command + "; give its name behind " + command);
  if (!takesFile && !file.empty())
    return fail("tc-cache: error: " + command + " takes no file, and \"" + file + "\" is one");
  if (asJson && command != "stats" && command != "list")
    return fail("tc-cache: error: --json belongs to stats and list");
  if (command == "stats")
    return showStats(store, asJson);
  if (command == "list")
    return showList(store, asJson);
  auto say = [&](uint64_t count, const char *what) {
    std::cout << store.getFolder() << ": " << count << (count == 1 ? " entry " : " entries ") << what << "\n";
    return kDone;
  };
  if (command == "clear")
    return say(store.clear(), "removed");
  if (command == "export" && llvm::sys::fs::is_regular_file(file) && !isBundle(file))
    return fail("tc-cache: error: export " + file +
                " would replace a file that is no bundle of a compile cache; give another file, or remove it");
  llvm::Expected<uint64_t> count = command == "export" ? store.exportTo(file) : store.importFrom(file);
  if (!count)
    return fail(llvm::toString(count.takeError()));
  return say(*count, ((command == "export" ? "written to " : "added from ") + file).c_str());
}

} // namespace

int main(int argc, char **argv) {
  const char *environment = std::getenv("TC_CACHE_DIR"), *limit = std::getenv("TC_CACHE_SIZE");
  std::string command, file, folder = environment ? environment : "", size = limit ? limit : "";
  bool asJson = false;
  tc::CommandLine app("Shows, empties and moves what tc-compile has kept in a cache.", "tc-cache");
  app.get_formatter()->column_width(30);
  CLI::Option *option = app.add_option("COMMAND", command);
  option->required()->type_name("");
  const std::vector<std::string> commands = {"stats", "list", "clear", "export", "import"};
  app.setChoices(option, "", commands);
  app.add_option("FILE", file, "the bundle that export writes and import reads")->type_name("");
  app.add_option("--cache-dir", folder, "the cache's folder (default: $TC_CACHE_DIR)")
      ->type_name("DIR")
      ->group("Cache");
  app.add_option("--cache-size", size, "what it may hold: 500M, 4G (default: $TC_CACHE_SIZE, then 4G)")
      ->type_name("SIZE")
      ->group("Cache");
  app.add_flag("--json", asJson, "stats and list as JSON")->group("Cache");
  app.addCommonOptions();
  app.footer(examplesAndCodes);
  int code = kDone;
  try {
    app.parse(argc, argv);
    if (std::find(commands.begin(), commands.end(), command) == commands.end())
      return fail("tc-cache: error: there is no command " + command + tc::didYouMean(command, commands) +
                  "; see tc-cache --help");
    std::optional<uint64_t> bytes = size.empty() ? Store::kDefaultLimitBytes : parseSize(size);
    if (!bytes)
      return fail("tc-cache: error: --cache-size " + size + " is no size; give one such as 500M or 4G");
    if (folder.empty())
      return fail("tc-cache: error: no folder is given; add --cache-dir DIR, or set TC_CACHE_DIR");
    if (command != "import" && !llvm::sys::fs::is_directory(folder))
      return fail(folder + ": error: there is no such folder; tc-compile --cache-dir makes one");
    Store store(folder, *bytes);
    code = run(store, command, file, asJson);
  } catch (const CLI::Success &e) {
    std::cout << app.describeSuccess(e);
  } catch (const CLI::ParseError &e) {
    return fail("tc-cache: error: " + tc::describeParseError(app, e, "command") + "; see tc-cache --help");
  }
  std::fflush(stdout);
  std::cout.flush();
  return std::cout && !std::ferror(stdout)
             ? code
             : fail("tc-cache: error: standard output cannot be written: it is full or closed");
}
