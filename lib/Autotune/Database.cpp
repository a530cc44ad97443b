//===- Database.cpp - what measurements said, in a file -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Autotune/Database.h"

#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Format/Json.h"
#include "tc/Support/BlobStore.h"
#include "tc/Support/OutputFile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tc::autotune;
using Json = nlohmann::json;

namespace {

constexpr const char *kFormat = "tc-tuning";
constexpr int64_t kVersion = 1;
const llvm::StringRef kCuda = tc::machine::stringifyDeviceKind(tc::machine::DeviceKind::Cuda);

llvm::Error wrong(const std::string &path, const llvm::Twine &what) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), path + ": error: " + what);
}
llvm::Error failedFile(const std::string &path, const llvm::Twine &what) {
  return wrong(path, what + ": " + std::strerror(errno));
}

/// What `object` has under `name`, if it is of this type.
bool get(const Json &object, const char *name, std::string &to) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_string())
    return false;
  to = found->get<std::string>();
  return true;
}
bool get(const Json &object, const char *name, int64_t &to) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer())
    return false;
  to = found->get<int64_t>();
  return true;
}
bool get(const Json &object, const char *name, double &to) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_number())
    return false;
  to = found->get<double>();
  return std::isfinite(to) && to >= 0;
}

/// Tenths are more than a clock tells.
double rounded(double us) { return std::round(us * 10) / 10; }

} // namespace

llvm::Expected<Database> Database::parse(llvm::StringRef text, const std::string &path) {
  Database database;
  if (text.trim().empty())
    return database;
  Json json = parseJson(text.data(), text.size());
  std::string format;
  int64_t version;
  if (!json.is_object() || !get(json, "format", format) || format != kFormat || !get(json, "version", version))
    return wrong(path, "this is no tuning database, or a damaged one; give the file that --mode max-autotune "
                       "--tuning-db wrote, or another name to begin a new one");
  if (version != kVersion)
    return wrong(path, "the tuning database has version " + llvm::Twine(version) +
                           ", and this tc-compile reads version " + llvm::Twine(kVersion) +
                           "; tune anew, into another file");
  auto machines = json.find("machines"), records = json.find("records");
  if (machines == json.end() || !machines->is_object() || records == json.end() || !records->is_array())
    return wrong(path,
                 "the tuning database is damaged: it has no machines or no records; tune anew, into another file");
  for (const auto &[name, value] : machines->items()) {
    Machine machine;
    machine.name = name;
    int64_t threads = 0;
    bool good = value.is_object() && get(value, "model", machine.model) && get(value, "cpu", machine.cpu) &&
                get(value, "features", machine.features) && get(value, "threads", threads) && threads > 0 &&
                value.contains("cache_bytes") && value["cache_bytes"].is_array();
    machine.threads = unsigned(threads);
    std::string device;
    machine.isGpu = value.is_object() && get(value, "device", device) && device == kCuda;
    if (good)
      for (const Json &bytes : value["cache_bytes"]) {
        good &= bytes.is_number_integer();
        machine.cacheBytes.push_back(bytes.is_number_integer() ? bytes.get<int64_t>() : 0);
      }
    if (!good)
      return wrong(path, "the tuning database is damaged: machine \"" + name +
                             "\" lacks something; tune anew, into another file");
    database.machines[name] = std::move(machine);
  }
  size_t number = 0;
  for (const Json &value : *records) {
    Record record;
    if (!value.is_object() || !get(value, "kernel", record.kernel) || !get(value, "machine", record.machine) ||
        !get(value, "variant", record.variant) || !get(value, "what", record.what) ||
        !get(value, "schedule", record.schedule) || !get(value, "default", record.defaultSchedule) ||
        !get(value, "us", record.us) || !get(value, "default_us", record.defaultUs) ||
        !get(value, "generators", record.generators) || !database.has(record.machine))
      return wrong(path, "the tuning database is damaged: record " + llvm::Twine(number) +
                             " lacks something; tune anew, into another file");
    ++number;
    auto key = std::make_tuple(record.kernel, record.machine, record.variant);
    database.records[key] = std::move(record);
  }
  return database;
}

llvm::Expected<Database> Database::read(const std::string &path, bool mayLack) {
  if (mayLack && !llvm::sys::fs::exists(path))
    return Database();
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> buffer = mapFile(path);
  if (!buffer)
    return buffer.takeError();
  return parse((*buffer)->getBuffer(), path);
}

const Record *Database::find(llvm::StringRef kernel, llvm::StringRef machine, llvm::StringRef variant) const {
  auto found = records.find({kernel.str(), machine.str(), variant.str()});
  return found == records.end() ? nullptr : &found->second;
}

std::vector<std::string> Database::getMachines(bool gpus) const {
  std::vector<std::string> names;
  for (const auto &[name, machine] : machines)
    if (machine.isGpu == gpus)
      names.push_back(name);
  return names;
}

std::string Database::toJson() const {
  Json all = Json::object();
  for (const auto &[name, machine] : machines) {
    all[name] = {{"model", machine.model},
                 {"cpu", machine.cpu},
                 {"features", machine.features},
                 {"cache_bytes", machine.cacheBytes},
                 {"threads", machine.threads}};
    if (machine.isGpu)
      all[name]["device"] = kCuda.str();
  }
  Json list = Json::array();
  for (const auto &[key, record] : records)
    list.push_back({{"kernel", record.kernel},
                    {"machine", record.machine},
                    {"variant", record.variant},
                    {"generators", record.generators},
                    {"what", record.what},
                    {"schedule", record.schedule},
                    {"default", record.defaultSchedule},
                    {"us", rounded(record.us)},
                    {"default_us", rounded(record.defaultUs)}});
  Json json = {{"format", kFormat}, {"version", kVersion}, {"machines", all}, {"records", list}};
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

llvm::Error Database::addToFile(const std::string &path, const Machine &machine, std::optional<Record> record) {
  // The lock is on the file itself: who gets it looks whether the name still means that file.
  int file = -1;
  auto close = llvm::make_scope_exit([&] {
    if (file >= 0)
      ::close(file);
  });
  for (;;) {
    file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return failedFile(path, "cannot open the tuning database to extend it");
    struct stat locked, named;
    if (::flock(file, LOCK_EX) != 0 || ::fstat(file, &locked) != 0)
      return failedFile(path, "cannot lock the tuning database");
    if (::stat(path.c_str(), &named) == 0 && named.st_ino == locked.st_ino && named.st_dev == locked.st_dev)
      break;
    ::close(file);
  }
  llvm::Expected<Database> database = read(path, /*mayLack=*/true);
  if (!database)
    return database.takeError();
  database->machines[machine.name] = machine;
  if (record) {
    auto key = std::make_tuple(record->kernel, record->machine, record->variant);
    database->records[key] = std::move(*record);
  }
  const std::string text = database->toJson();
  return writeOutputFile(path, [&](llvm::raw_ostream &stream) { stream << text; });
}
