//===- Peers.cpp - other engines, each in a process of its own ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Peers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tc::bench {
extern const char peerScript[];
}

using namespace tc::bench;
using Json = nlohmann::json;

namespace {

/// What a peer reads, in the order of preference.
struct PeerKind {
  const char *name;
  std::vector<const char *> extensions;
};
const std::vector<PeerKind> &kinds() {
  static const std::vector<PeerKind> table = {
      {"ort", {".onnx"}}, {"openvino", {".onnx"}}, {"torch", {".pt2", ".pt"}}, {"inductor", {".pt2", ".pt"}}};
  return table;
}

} // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "tc-bench-XXXXXX").string();
  if (error || !::mkdtemp(pattern.data()))
    throw run::Failure{1, "tc-bench: error: a temporary folder cannot be made: " + std::string(std::strerror(errno)) +
                              "; set TMPDIR to a folder that can be written"};
  folder = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

const std::vector<std::string> &tc::bench::peerNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const PeerKind &kind : kinds())
      result.push_back(kind.name);
    return result;
  }();
  return names;
}

std::string tc::bench::peerModel(const std::string &peer, const std::string &model, std::string &why) {
  std::filesystem::path path = model;
  for (const PeerKind &kind : kinds()) {
    if (peer != kind.name)
      continue;
    std::string wanted;
    for (const char *extension : kind.extensions) {
      std::error_code error;
      std::filesystem::path candidate = path;
      candidate.replace_extension(extension);
      if (std::filesystem::is_regular_file(candidate, error))
        return candidate.string();
      wanted += (wanted.empty() ? "" : " or ") + candidate.filename().string();
    }
    why = "it does not read this model; " + wanted + " beside it would do";
  }
  return "";
}

Peer::Peer(const std::string &name, const std::string &python, const std::string &model, const std::string &inputs,
           const TemporaryFolder &folder, uint32_t threads)
    : peer(name), outputsFile(folder.path() + "/" + name + ".npz") {
  std::string script = folder.path() + "/peer.py", threadsText = std::to_string(threads);
  run::writeFile(script, {peerScript, peerScript + std::strlen(peerScript)});
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0)
    throw run::Failure{5, "tc-bench: error: no pipe can be made: " + std::string(std::strerror(errno))};
  if (::pipe2(from, O_CLOEXEC) != 0) {
    ::close(to[0]), ::close(to[1]);
    throw run::Failure{5, "tc-bench: error: no pipe can be made: " + std::string(std::strerror(errno))};
  }
  // OpenMP reads its thread count when it is loaded, before anyone can tell it otherwise. What torch.compile has kept
  // of an earlier run would make a compile look like none.
  std::vector<std::string> environment = {"OMP_NUM_THREADS=" + threadsText, "MKL_NUM_THREADS=" + threadsText,
                                          "TORCHINDUCTOR_CACHE_DIR=" + folder.path() + "/inductor"};
  const size_t own = environment.size();
  for (char **entry = environ; *entry; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('=') + 1);
    if (std::none_of(environment.begin(), environment.begin() + std::ptrdiff_t(own),
                     [&](const std::string &given) { return given.compare(0, name.size(), name) == 0; }))
      environment.push_back(text);
  }
  std::vector<std::string> words = {python, script, name, model, inputs, outputsFile, threadsText};
  std::vector<char *> arguments, variables;
  for (std::string &word : words)
    arguments.push_back(word.data());
  for (std::string &variable : environment)
    variables.push_back(variable.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  // Warnings of engines are not ours to show; what matters comes as an answer.
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  int error = ::posix_spawnp(&process, python.c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  toProcess = to[1];
  fromProcess = from[0];
  if (error) {
    process = -1;
    absent = true;
    problemText = python + " cannot be started: " + std::strerror(error);
    return;
  }
  Json answer = Json::parse(readLine(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object())
    problemText = problemText.empty() ? "it gave no answer" : problemText;
  else if (answer.contains("absent") || answer.contains("fail")) {
    absent = answer.contains("absent");
    problemText = answer.value(absent ? "absent" : "fail", "unknown");
  } else {
    versionText = answer.value("version", "");
    loadedIn = answer.value("load_s", 0.0);
    started.importSeconds = answer.value("import_s", 0.0);
    started.buildSeconds = answer.value("build_s", 0.0);
    started.firstRunUs = answer.value("first_run_s", 0.0) * 1e6;
  }
}

Peer::~Peer() {
  if (toProcess >= 0)
    ::close(toProcess); // the end of its input ends it
  if (fromProcess >= 0)
    ::close(fromProcess);
  if (process > 0) {
    int status;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
  }
}

std::string Peer::readLine() {
  for (;;) {
    size_t end = pending.find('\n');
    if (end != std::string::npos) {
      std::string line = pending.substr(0, end);
      pending.erase(0, end + 1);
      return line;
    }
    char bytes[65536];
    ssize_t got = ::read(fromProcess, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got > 0) {
      pending.append(bytes, size_t(got));
      continue;
    }
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    process = -1;
    problemText = WIFSIGNALED(status) ? "its process was ended by signal " + std::to_string(WTERMSIG(status))
                                      : "its process ended with code " + std::to_string(WEXITSTATUS(status));
    return "";
  }
}

tc::run::NamedTensors Peer::outputs() const { return run::readNpz(outputsFile); }

std::vector<double> Peer::measure(double seconds) {
  std::string line = std::to_string(seconds) + "\n";
  // A process that has died is noticed when its answer is read.
  struct sigaction ignore = {}, before;
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  ssize_t written = ::write(toProcess, line.data(), line.size());
  ::sigaction(SIGPIPE, &before, nullptr);
  (void)written;
  Json answer = Json::parse(readLine(), nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("us") && answer["us"].is_array() && !answer["us"].empty()) {
    started.peakRssBytes = answer.value("peak_rss_bytes", uint64_t(0));
    return answer["us"].get<std::vector<double>>();
  }
  if (problemText.empty())
    problemText = answer.is_object() ? answer.value("fail", "it gave no answer") : "it gave no answer";
  return {};
}
