//===- Benchmark.cpp - measures one model with tc and its peers ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Benchmark.h"

#include "tc/Format/Json.h"
#include "tcrt/artifact_abi.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tc::bench;
using namespace tc::run;

namespace {

constexpr int kRounds = 5;
/// Where several artifacts of tc take turns within a round.
constexpr int kRunsPerTurn = 4;

bool isArtifact(const std::string &path) {
  char magic[TCRT_MAGIC_SIZE] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, TCRT_MAGIC, sizeof magic) == 0;
}

void compile(const std::string &model, const std::string &artifact, const BenchmarkOptions &options,
             const Sizes &sizes) {
  // Its line about the artifact is not what a table of times begins with.
  std::vector<std::string> words = {options.compiler, model, "-o", artifact, "--cpu", options.cpu, "-q"};
  for (size_t i = 0; options.isStatic && i < sizes.size(); ++i) {
    words.push_back("--dim");
    words.push_back(sizes[i].first + "=" + std::to_string(sizes[i].second));
  }
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process;
  int error = ::posix_spawn(&process, options.compiler.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (error)
    throw Failure{1, options.compiler + ": error: tc-compile cannot be started: " + std::strerror(error) +
                         "; it belongs beside tc-bench"};
  int status;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw Failure{6, model + ": error: tc-compile was ended by signal " + std::to_string(WTERMSIG(status)) +
                         "; please report this with the model"};
  // tc-compile has said why.
  if (WEXITSTATUS(status) != 0)
    throw Failure{WEXITSTATUS(status), ""};
}

/// The session's inputs as peers take them, by position.
void writeInputs(const Session &session, const std::string &path) {
  NamedTensors inputs;
  for (size_t i = 0; i < session.inputs().size(); ++i)
    if (const std::optional<Tensor> &input = session.inputs()[i])
      inputs.emplace_back("input_" + std::to_string(i), *input);
  writeNpz(path, inputs);
}

std::string inputsText(const Session &session) {
  std::string text;
  for (size_t i = 0; i < session.inputs().size(); ++i)
    if (const auto &input = session.inputs()[i])
      text += (text.empty() ? "" : ", ") + std::string(session.inputInfo()[i].name) + " " +
              tcrt_dtype_name(input->dtype) + " " + dimsText(input->dims);
  return text;
}

/// Fills maxRelError or says why there is none.
void compareOutputs(const NamedTensors &actual, const NamedTensors &expected, EngineResult &result) {
  if (actual.size() != expected.size()) {
    result.difference = std::to_string(expected.size()) + " outputs, tc has " + std::to_string(actual.size());
    return;
  }
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor &a = actual[i].second, &b = expected[i].second;
    if (a.dims != b.dims) {
      result.difference =
          "output \"" + actual[i].first + "\" is of size " + dimsText(b.dims) + ", tc's of " + dimsText(a.dims);
      return;
    }
    auto isReal = [](const Tensor &t) { return isFloat(t.dtype) || isInteger(t.dtype) || t.dtype == TCRT_DTYPE_BOOL; };
    if (!isReal(a) || !isReal(b)) {
      result.difference = "output \"" + actual[i].first + "\" is not of real numbers";
      return;
    }
    double largest = 0, difference = 0;
    for (int64_t j = 0, n = a.count(); j < n; ++j) {
      double x = realAt(a, j), y = realAt(b, j);
      if (std::isnan(x) != std::isnan(y) || ((std::isinf(x) || std::isinf(y)) && x != y)) {
        result.difference = "output \"" + actual[i].first + "\" has NaN or infinity where tc's has not, or tc's has";
        return;
      }
      if (!std::isfinite(x))
        continue;
      largest = std::max(largest, std::fabs(y));
      difference = std::max(difference, std::fabs(x - y));
    }
    worst = std::max(worst, largest > 0 ? difference / largest : difference);
  }
  result.maxRelError = worst;
}

/// Times of the runs of each session. They take turns of a few runs, so that what slows the machine slows all alike.
std::vector<std::vector<double>> measureTurns(const std::vector<Session *> &sessions, double seconds) {
  const auto budget = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (Session *session : sessions)
    for (int i = 0; i < 3; ++i)
      check(tcrt_context_run(session->context()));
  std::vector<std::vector<double>> times(sessions.size());
  for (Clock::time_point end = Clock::now() + budget * int64_t(sessions.size());
       times[0].size() < 5 || (Clock::now() < end && times[0].size() < 1000000);) {
    for (size_t i = 0; i < sessions.size(); ++i) {
      // The first run of a turn finds the caches as another model left them, and does not count.
      const int turn = sessions.size() > 1 ? kRunsPerTurn : 1;
      for (int run = 0; run < turn; ++run) {
        Clock::time_point before = Clock::now();
        check(tcrt_context_run(sessions[i]->context()));
        if (run > 0 || turn == 1)
          times[i].push_back(microseconds(Clock::now() - before));
      }
    }
  }
  return times;
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::unique_ptr<Session> openSession(const std::string &artifact, SessionOptions options) {
  options.artifact = artifact;
  return std::make_unique<Session>(std::move(options));
}

/// `failure` with the names of models where it has those of their temporary artifacts.
Failure nameModels(Failure failure, const CompiledModel &compiled, const BenchmarkOptions &options) {
  for (size_t i = 0; i < compiled.artifacts().size(); ++i) {
    const std::string &artifact = compiled.artifacts()[i], &model = i ? options.against[i - 1] : compiled.name();
    const size_t at = failure.message.find(artifact);
    if (at != std::string::npos)
      failure.message.replace(at, artifact.size(), model);
  }
  return failure;
}

/// Runs `session` with the inputs of `timed`, which are of the same model.
void runWithInputsOf(const Session &timed, Session &session) {
  for (uint32_t i = 0; i < timed.inputs().size(); ++i)
    if (const std::optional<Tensor> &input = timed.inputs()[i])
      session.setInput(i, *input);
  session.firstRun();
  session.bindBuffers();
}

/// Adds what the manifest says of the kernels of a function (empty: the first one). It is of others and may say
/// anything.
void readManifest(const tcrt_model_t *model, const std::string &function, std::vector<KernelResult> &kernels) {
  using Json = nlohmann::json;
  const char *text;
  uint64_t size;
  check(tcrt_model_manifest(model, &text, &size));
  const Json manifest = tc::parseJson(text, size);
  auto list = [](const Json &object, const char *key) {
    return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : Json::array();
  };
  auto textOf = [](const Json &object, const char *key) {
    return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
  };
  const Json described = list(manifest, "functions"), entries = list(manifest, "kernels");
  for (const Json &each : described) {
    if (!each.is_object() || !each.contains("first_kernel") || !each["first_kernel"].is_number_unsigned() ||
        (!function.empty() && textOf(each, "name") != function))
      continue;
    const uint64_t first = each["first_kernel"].get<uint64_t>();
    auto numberOf = [&](const Json &source) -> std::optional<uint32_t> {
      if (!source.is_number_unsigned() || source.get<uint64_t>() < first ||
          source.get<uint64_t>() - first >= kernels.size())
        return std::nullopt;
      return uint32_t(source.get<uint64_t>() - first);
    };
    for (KernelResult &kernel : kernels) {
      if (kernel.number >= entries.size() || first >= entries.size() - kernel.number ||
          textOf(entries[first + kernel.number], "name") != kernel.name)
        return;
      const Json &entry = entries[first + kernel.number];
      kernel.strategy = textOf(entry, "strategy");
      for (const Json &source : list(entry, "reads")) {
        if (std::optional<uint32_t> number = numberOf(source))
          kernel.reads.push_back(*number);
        else if (source.is_string())
          kernel.inputs.push_back(source.get<std::string>());
      }
    }
    for (const Json &output : list(each, "outputs"))
      for (const Json &source : list(output, "from"))
        if (std::optional<uint32_t> number = numberOf(source))
          kernels[*number].outputs.push_back(textOf(output, "name"));
    return;
  }
}

/// The time of each kernel, from a context that measures them. It is not the one that is timed as a whole.
std::vector<KernelResult> profile(const std::string &artifact, const Session &timed, const SessionOptions &given,
                                  double seconds) {
  SessionOptions sessionOptions = given;
  sessionOptions.profile = TCRT_PROFILE_KERNELS;
  std::unique_ptr<Session> opened = openSession(artifact, sessionOptions);
  Session &session = *opened;
  runWithInputsOf(timed, session);
  measureTurns({&session}, 0);
  // The median over windows of some runs each: a mean would hold what else the machine did.
  const auto budget = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const uint32_t count = tcrt_context_profile_count(session.context());
  std::vector<std::vector<double>> windows(count);
  std::vector<KernelResult> all(count);
  Clock::time_point end = Clock::now() + budget;
  for (int window = 0; window < 5 || (window < 1000 && Clock::now() < end); ++window) {
    check(tcrt_context_profile_reset(session.context()));
    uint32_t runs = 0;
    for (Clock::time_point until = Clock::now() + budget / 50; runs < 1 || Clock::now() < until; ++runs)
      check(tcrt_context_run(session.context()));
    for (uint32_t i = 0; i < count; ++i) {
      tcrt_profile_entry_t entry;
      check(tcrt_context_profile(session.context(), i, &entry));
      windows[i].push_back(double(entry.time_ns) / 1000 / double(runs));
      KernelResult &kernel = all[i];
      kernel.name = entry.kernel;
      kernel.nodes = entry.nodes;
      kernel.calls = double(entry.launches) / double(runs);
      kernel.flops = entry.flops;
      kernel.bytes = entry.bytes;
      kernel.number = i;
    }
  }
  readManifest(session.model(), given.function, all);
  std::vector<KernelResult> kernels;
  for (uint32_t i = 0; i < count; ++i) {
    all[i].us = medianOf(windows[i]);
    if (all[i].calls > 0)
      kernels.push_back(all[i]);
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelResult &a, const KernelResult &b) { return a.us != b.us ? a.us > b.us : a.name < b.name; });
  return kernels;
}

/// Times of one engine, round by round.
struct Rounds {
  std::vector<double> all, medians;
  void add(const std::vector<double> &times) {
    all.insert(all.end(), times.begin(), times.end());
    medians.push_back(medianOf(times));
  }
};

} // namespace

CompiledModel::CompiledModel(const std::string &model, const BenchmarkOptions &options, const Sizes &sizes)
    : model(model) {
  for (size_t i = 0; i <= options.against.size(); ++i) {
    const std::string &file = i ? options.against[i - 1] : model;
    files.push_back(file);
    if (isArtifact(file))
      continue;
    options.progress(file + ": compiling");
    files.back() = folder.path() + "/model" + std::to_string(i) + ".bin";
    Clock::time_point start = Clock::now();
    compile(file, files.back(), options, sizes);
    if (i == 0)
      compileSeconds = microseconds(Clock::now() - start) * 1e-6;
  }
}

Benchmark::Benchmark(const CompiledModel &compiled, const BenchmarkOptions &options, Sizes sizes)
    : compiled(compiled), options(options), sizes(std::move(sizes)) {
  try {
    open();
  } catch (const Failure &failure) {
    throw nameModels(failure, compiled, options);
  }
}

Benchmark::~Benchmark() = default;

void Benchmark::open() {
  sessionOptions.threads = options.threads;
  sessionOptions.function = options.function;
  if (!compiled.seconds() || !options.isStatic) // what was compiled for its sizes has no symbols
    sessionOptions.dims = sizes;
  session = openSession(compiled.artifacts()[0], sessionOptions);
  if (!options.inputs.empty())
    session->readInputs(options.inputs);
  session->makeRandomInputs(options.seed);
  session->firstRun();
  session->bindBuffers();
  EngineResult own;
  own.name = "tc";
  own.version = tcrt_version();
  own.loadSeconds = session->loadUs() * 1e-6;
  engines.push_back(own);
  for (size_t i = 0; i < options.against.size(); ++i) {
    SessionOptions otherOptions = sessionOptions;
    otherOptions.dims.clear(); // its inputs are given
    others.push_back(openSession(compiled.artifacts()[i + 1], otherOptions));
    Session &other = *others.back();
    if (other.inputInfo().size() != session->inputInfo().size())
      throw Failure{4, options.against[i] + ": error: it has " + std::to_string(other.inputInfo().size()) +
                           " inputs and " + compiled.name() + " has " + std::to_string(session->inputInfo().size()) +
                           "; --against takes models of the same inputs"};
    runWithInputsOf(*session, other);
    EngineResult engine;
    engine.name = options.against[i];
    engine.version = tcrt_version();
    engine.loadSeconds = other.loadUs() * 1e-6;
    compareOutputs(session->tensorOutputs("tc-bench"), other.tensorOutputs("tc-bench"), engine);
    engines.push_back(engine);
  }
}

ModelResult Benchmark::measure() {
  const std::string &artifact = compiled.artifacts()[0];
  TemporaryFolder folder;
  ModelResult result;
  result.model = compiled.name();
  result.sizes = sizes;
  result.compileSeconds = compiled.seconds();
  struct stat info;
  result.artifactBytes = ::stat(artifact.c_str(), &info) == 0 ? uint64_t(info.st_size) : 0;
  result.variant = tcrt_context_variant(session->context());
  result.threads = tcrt_context_threads(session->context());
  result.inputs = inputsText(*session);
  result.loadUs = session->loadUs();
  result.engines = engines;

  std::vector<Session *> sessions = {session.get()};
  for (const std::unique_ptr<Session> &other : others)
    sessions.push_back(other.get());
  std::string inputsFile = folder.path() + "/inputs.npz";
  writeInputs(*session, inputsFile);
  const std::string what = result.model + (sizes.empty() ? "" : " (" + sizesName(sizes) + ")");
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string &name : options.peers) {
    options.progress(what + ": loading " + name);
    EngineResult engine;
    engine.name = name;
    std::string file = peerModel(name, result.model, engine.problem);
    peers.push_back(file.empty()
                        ? nullptr
                        : std::make_unique<Peer>(name, options.python, file, inputsFile, folder, result.threads));
    engine.isAbsent = file.empty();
    if (Peer *peer = peers.back().get()) {
      engine.version = peer->version();
      engine.problem = peer->problem();
      engine.isAbsent = peer->isAbsent();
      engine.loadSeconds = peer->loadSeconds();
      if (engine.problem.empty())
        compareOutputs(session->tensorOutputs("tc-bench"), peer->outputs(), engine);
    }
    result.engines.push_back(engine);
  }

  std::vector<Rounds> rounds(result.engines.size());
  for (int round = 0; round < kRounds; ++round) {
    options.progress(what + ": round " + std::to_string(round + 1) + " of " + std::to_string(kRounds));
    std::vector<std::vector<double>> times = measureTurns(sessions, options.seconds / kRounds);
    for (size_t i = 0; i < sessions.size(); ++i)
      rounds[i].add(times[i]);
    for (size_t i = 0; i < peers.size(); ++i) {
      EngineResult &engine = result.engines[sessions.size() + i];
      if (!engine.problem.empty())
        continue;
      std::vector<double> times = peers[i]->measure(options.seconds / kRounds);
      engine.problem = peers[i]->problem();
      if (engine.problem.empty())
        rounds[sessions.size() + i].add(times);
    }
  }
  for (size_t i = 0; i < result.engines.size(); ++i) {
    if (!result.engines[i].problem.empty())
      continue;
    result.engines[i].times = Times::of(rounds[i].all);
    std::vector<double> ratios;
    ratios.reserve(kRounds);
    for (int round = 0; round < kRounds; ++round)
      ratios.push_back(rounds[i].medians[size_t(round)] / rounds[0].medians[size_t(round)]);
    result.engines[i].ratio = medianOf(ratios);
    const auto [least, largest] = std::minmax_element(rounds[i].medians.begin(), rounds[i].medians.end());
    result.engines[i].noise = (*largest - *least) / medianOf(rounds[i].medians);
  }
  tcrt_context_stats_t stats;
  check(tcrt_context_stats(session->context(), &stats));
  result.arenaBytes = stats.arena_bytes;
  result.peakMemoryBytes = stats.peak_memory_bytes;
  options.progress(what + ": profiling");
  result.kernels = profile(artifact, *session, sessionOptions, std::min(options.seconds / kRounds, 1.0));
  return result;
}
