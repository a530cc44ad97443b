//===- Database.cpp - what measurements said, in a file -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Measure/Database.h"

#include "tc/Format/Container.h"
#include "tc/Format/File.h"
#include "tc/Format/Json.h"
#include "tc/Support/TemporaryPath.h"
#include "tcrt/artifact_abi.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tc::measure;
using Json = nlohmann::json;

namespace {

constexpr const char *kFormat = "tc-tuning";
constexpr int64_t kVersion = 1;
// Of a file that is read into memory: records of a million kernels.
constexpr uint64_t kMostBytes = 1 << 30;

std::string wrong(const std::string &path, const std::string &what) { return path + ": error: " + what; }
std::string failedFile(const std::string &path, const std::string &what) {
  return wrong(path, what + ": " + std::strerror(errno));
}
const char *deviceName() { return tcrt_device_name(TCRT_DEVICE_CUDA); }

/// Closes a file where the scope ends.
struct File {
  ~File() { close(); }
  void close() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }
  int fd = -1;
};

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

std::optional<Database> Database::parse(const std::string &text, const std::string &path, std::string &error) {
  auto refuse = [&](const std::string &what) {
    error = wrong(path, what);
    return std::nullopt;
  };
  Database database;
  if (text.find_first_not_of(" \t\r\n\v\f") == std::string::npos)
    return database;
  Json json = parseJson(text.data(), text.size());
  std::string format;
  int64_t version;
  if (!json.is_object() || !get(json, "format", format) || format != kFormat || !get(json, "version", version))
    return refuse("this is no tuning database, or a damaged one; give the file that --mode max-autotune --tuning-db "
                  "wrote, or another name to begin a new one");
  if (version != kVersion)
    return refuse("the tuning database has version " + std::to_string(version) + ", and this tc reads version " +
                  std::to_string(kVersion) + "; tune anew, into another file");
  auto machines = json.find("machines"), records = json.find("records");
  if (machines == json.end() || !machines->is_object() || records == json.end() || !records->is_array())
    return refuse("the tuning database is damaged: it has no machines or no records; tune anew, into another file");
  for (const auto &[name, value] : machines->items()) {
    Machine machine;
    machine.name = name;
    int64_t threads = 0;
    bool good = value.is_object() && get(value, "model", machine.model) && get(value, "cpu", machine.cpu) &&
                get(value, "features", machine.features) && get(value, "threads", threads) && threads > 0 &&
                value.contains("cache_bytes") && value["cache_bytes"].is_array();
    machine.threads = unsigned(threads);
    std::string device;
    machine.isGpu = value.is_object() && get(value, "device", device) && device == deviceName();
    if (good)
      for (const Json &bytes : value["cache_bytes"]) {
        good &= bytes.is_number_integer();
        machine.cacheBytes.push_back(bytes.is_number_integer() ? bytes.get<int64_t>() : 0);
      }
    if (!good)
      return refuse("the tuning database is damaged: machine \"" + name +
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
      return refuse("the tuning database is damaged: record " + std::to_string(number) +
                    " lacks something; tune anew, into another file");
    ++number;
    auto key = std::make_tuple(record.kernel, record.machine, record.variant);
    database.records[key] = std::move(record);
  }
  return database;
}

std::optional<Database> Database::read(const std::string &path, bool mayLack, std::string &error) {
  struct stat status;
  if (mayLack && ::stat(path.c_str(), &status) != 0 && errno == ENOENT)
    return Database();
  File file;
  uint64_t bytes = 0;
  std::string text;
  if (tcrt_file_open(path.c_str(), kMostBytes, nullptr, &file.fd, &bytes) == TCRT_OK) {
    text.resize(bytes);
    if (tcrt_file_read(file.fd, path.c_str(), 0, text.data(), bytes) == TCRT_OK)
      return parse(text, path, error);
  }
  error = tcrt_last_error();
  return std::nullopt;
}

const Record *Database::find(const std::string &kernel, const std::string &machine, const std::string &variant) const {
  auto found = records.find({kernel, machine, variant});
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
      all[name]["device"] = deviceName();
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

std::string Database::addToFile(const std::string &path, const Machine &machine, std::optional<Record> record) {
  // The lock is on the file itself: who gets it looks whether the name still means that file.
  File file;
  for (;;) {
    file.fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file.fd < 0)
      return failedFile(path, "cannot open the tuning database to extend it");
    struct stat locked, named;
    if (::flock(file.fd, LOCK_EX) != 0 || ::fstat(file.fd, &locked) != 0)
      return failedFile(path, "cannot lock the tuning database");
    if (::stat(path.c_str(), &named) == 0 && named.st_ino == locked.st_ino && named.st_dev == locked.st_dev)
      break;
    file.close();
  }
  std::string error;
  std::optional<Database> database = read(path, /*mayLack=*/true, error);
  if (!database)
    return error;
  database->machines[machine.name] = machine;
  if (record) {
    auto key = std::make_tuple(record->kernel, record->machine, record->variant);
    database->records[key] = std::move(*record);
  }
  const std::string text = database->toJson();
  tcrt_output_t output;
  if (tcrt_output_open(path.c_str(), &output) != TCRT_OK)
    return tcrt_last_error();
  std::optional<tc::TemporaryPath> named;
  if (output.temporary)
    named.emplace(output.temporary);
  if (tcrt_output_write(&output, text.data(), text.size()) != TCRT_OK) {
    error = tcrt_last_error();
    tcrt_output_drop(&output);
    return error;
  }
  return tcrt_output_keep(&output) == TCRT_OK ? "" : tcrt_last_error();
}
