//===- CompiledModel.cpp - the artifacts that take part, and how they start ---------------------------------------===//
//
// tc-compile and tc-run are processes of their own, as they are for a user: what they take is wall time from outside,
// and the memory of the one that runs holds no compiler.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Benchmark.h"
#include "tc/Format/Json.h"
#include "tc/Support/PrintfText.h"
#include "tcrt/artifact_abi.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tc;
using namespace tc::bench;
using namespace tc::run;

namespace {

/// The status that a program ends with; nothing where it took longer than `mostSeconds` (0: any time) and was killed.
std::optional<int> runProgram(std::vector<std::string> words, bool isSilent, double mostSeconds) {
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int file = 1; isSilent && file <= 2; ++file)
    posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_WRONLY, 0);
  pid_t process;
  const int error = ::posix_spawn(&process, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    throw Failure{1, words[0] + ": error: the program cannot be started: " + std::strerror(error) +
                         "; it belongs beside tc-bench"};
  const auto most = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(mostSeconds));
  const Clock::time_point start = Clock::now();
  for (int status, ended;;) {
    while ((ended = ::waitpid(process, &status, mostSeconds > 0 ? WNOHANG : 0)) < 0 && errno == EINTR) {
    }
    if (ended != 0)
      return status;
    if (Clock::now() - start > most) {
      ::kill(process, SIGKILL);
      while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
      }
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Makes `build.artifact`, or says in `build.problem` why a mode has none.
void compile(Build &build, const std::string &mode, const BenchmarkOptions &options, const Sizes &sizes) {
  // Its line about the artifact is not what a table of times begins with.
  std::vector<std::string> words = {options.compiler, build.file, "-o", build.artifact, "--cpu", options.cpu, "-q"};
  auto add = [&](const std::string &name, const std::string &value) {
    words.push_back(name);
    words.push_back(value);
  };
  for (size_t i = 0; options.isStatic && i < sizes.size(); ++i)
    add("--dim", sizes[i].first + "=" + std::to_string(sizes[i].second));
  if (options.isEconomics) // an earlier result would make a compile look like none
    add("--cache-dir", "");
  if (!mode.empty())
    add("--mode", mode);
  if (mode.rfind("max-autotune", 0) == 0) // others measure nothing, and say so
    add("--tuning-threads", std::to_string(options.threads));
  const Clock::time_point start = Clock::now();
  const std::optional<int> status = runProgram(std::move(words), !mode.empty(), mode.empty() ? 0 : options.modeSeconds);
  build.seconds = microseconds(Clock::now() - start) * 1e-6;
  if (!mode.empty()) {
    if (!status)
      build.problem = format("compiling took more than %g s; --mode-seconds allows more", options.modeSeconds);
    else if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
      build.problem = "tc-compile --mode " + mode + " fails; it says why by itself";
    return;
  }
  if (WIFSIGNALED(*status))
    throw Failure{6, build.file + ": error: tc-compile was ended by signal " + std::to_string(WTERMSIG(*status)) +
                         "; please report this with the model"};
  // tc-compile has said why.
  if (WEXITSTATUS(*status) != 0)
    throw Failure{WEXITSTATUS(*status), ""};
}

} // namespace

bool tc::bench::isArtifact(const std::string &path) {
  char magic[TCRT_MAGIC_SIZE] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, TCRT_MAGIC, sizeof magic) == 0;
}

CompiledModel::CompiledModel(const std::string &model, const BenchmarkOptions &options, const Sizes &sizes) {
  all.push_back({"tc", EngineKind::Tc, model, model, {}, ""});
  for (const std::string &other : options.against)
    all.push_back({other, EngineKind::Other, other, other, {}, ""});
  for (const std::string &mode : options.modes)
    all.push_back({"tc " + mode, EngineKind::Mode, model, model, {}, ""});
  for (size_t i = 0; i < all.size(); ++i) {
    Build &build = all[i];
    if (build.kind != EngineKind::Mode && isArtifact(build.file))
      continue;
    const std::string mode = build.kind == EngineKind::Mode ? build.name.substr(3) : "";
    options.progress(build.file + ": compiling" + (mode.empty() ? "" : " with --mode " + mode));
    build.artifact = folder.path() + "/model" + std::to_string(i) + ".bin";
    compile(build, mode, options, sizes);
  }
}

EngineStart tc::bench::measureStart(const std::string &artifact, const BenchmarkOptions &options, const Sizes &sizes,
                                    const std::string &inputsFile, const TemporaryFolder &folder) {
  const std::string file = folder.path() + "/start.json";
  std::vector<std::string> words = {options.runner,
                                    artifact,
                                    "--inputs",
                                    inputsFile,
                                    "--threads",
                                    std::to_string(options.threads),
                                    "--benchmark=0",
                                    "--json",
                                    file,
                                    "--random-inputs=" + std::to_string(options.seed)};
  for (const auto &[name, size] : sizes) {
    words.push_back("--dim");
    words.push_back(name + "=" + std::to_string(size));
  }
  if (!options.function.empty()) {
    words.push_back("--function");
    words.push_back(options.function);
  }
  EngineStart start;
  const std::optional<int> status = runProgram(std::move(words), /*isSilent=*/true, /*mostSeconds=*/0);
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return start;
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const nlohmann::json answer = tc::parseJson(text.data(), text.size());
  auto numberOf = [&](const char *key) {
    return answer.is_object() && answer.contains(key) && answer[key].is_number() ? answer[key].get<double>() : 0.0;
  };
  start.loadSeconds = numberOf("load_us") * 1e-6;
  start.firstRunUs = numberOf("first_run_us");
  start.peakRssBytes = uint64_t(numberOf("peak_rss_bytes"));
  return start;
}
