//===- Benchmark.cpp - measures one model with tc and its peers ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Benchmark.h"

#include "tc/Format/Json.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sys/stat.h>

using namespace tc::bench;
using namespace tc::run;

namespace {

constexpr int kRounds = 5;
/// Where several artifacts of tc take turns within a round.
constexpr int kRunsPerTurn = 4;

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
Failure nameModels(Failure failure, const CompiledModel &compiled) {
  for (const Build &build : compiled.builds())
    if (const size_t at = failure.message.find(build.artifact); at != std::string::npos)
      failure.message.replace(at, build.artifact.size(), build.file);
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

using Json = nlohmann::json;

/// It is of others and may say anything.
Json manifestOf(const tcrt_model_t *model) {
  const char *text;
  uint64_t size;
  check(tcrt_model_manifest(model, &text, &size));
  return tc::parseJson(text, size);
}

/// The unsigned number at `path`, 0 where there is none.
uint64_t numberAt(const Json &json, const char *path) {
  const Json::json_pointer pointer(path);
  if (!json.is_structured() || !json.contains(pointer))
    return 0;
  const Json &value = json.at(pointer);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

/// Adds what the manifest says of the kernels of a function (empty: the first one).
void readManifest(const tcrt_model_t *model, const std::string &function, std::vector<KernelResult> &kernels) {
  const Json manifest = manifestOf(model);
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
      kernel.unfusedLaunches = numberAt(entry, "/unfused/launches");
      kernel.unfusedBytes = numberAt(entry, "/unfused/bytes");
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

Benchmark::Benchmark(const CompiledModel &compiled, const BenchmarkOptions &options, Sizes sizes)
    : compiled(compiled), options(options), sizes(std::move(sizes)) {
  try {
    open();
  } catch (const Failure &failure) {
    throw nameModels(failure, compiled);
  }
}

Benchmark::~Benchmark() = default;

void Benchmark::open() {
  sessionOptions.threads = options.threads;
  sessionOptions.function = options.function;
  if (!compiled.builds()[0].seconds || !options.isStatic) // what was compiled for its sizes has no symbols
    sessionOptions.dims = sizes;
  session = openSession(compiled.builds()[0].artifact, sessionOptions);
  if (!options.inputs.empty())
    session->readInputs(options.inputs);
  session->makeRandomInputs(options.seed);
  session->firstRun();
  session->bindBuffers();
  for (const Build &build : compiled.builds()) {
    EngineResult engine;
    engine.name = build.name;
    engine.kind = build.kind;
    engine.problem = build.problem;
    engine.isAbsent = !build.problem.empty();
    engine.start.compileSeconds = build.seconds;
    if (build.kind != EngineKind::Tc)
      others.push_back(build.problem.empty() ? openOther(build, engine) : nullptr);
    const Session *opened = build.kind == EngineKind::Tc ? session.get() : others.back().get();
    if (opened) {
      engine.version = tcrt_version();
      engine.loadSeconds = opened->loadUs() * 1e-6;
    }
    engines.push_back(engine);
  }
}

std::unique_ptr<Session> Benchmark::openOther(const Build &build, EngineResult &engine) const {
  SessionOptions otherOptions = sessionOptions;
  otherOptions.dims.clear(); // its inputs are given
  std::unique_ptr<Session> other = openSession(build.artifact, otherOptions);
  if (other->inputInfo().size() != session->inputInfo().size())
    throw Failure{4, build.file + ": error: it has " + std::to_string(other->inputInfo().size()) + " inputs and " +
                         compiled.name() + " has " + std::to_string(session->inputInfo().size()) +
                         "; --against takes models of the same inputs"};
  runWithInputsOf(*session, *other);
  compareOutputs(session->tensorOutputs("tc-bench"), other->tensorOutputs("tc-bench"), engine);
  return other;
}

void Benchmark::loadPeers(const std::string &what, const std::string &inputsFile, const TemporaryFolder &folder,
                          ModelResult &result) {
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
}

void Benchmark::measureRounds(const std::string &what, ModelResult &result) {
  // Of the builds that were made; an engine's place is that of its build, peers stand behind.
  std::vector<Session *> sessions = {session.get()};
  std::vector<size_t> places = {0};
  for (size_t i = 0; i < others.size(); ++i)
    if (others[i]) {
      sessions.push_back(others[i].get());
      places.push_back(i + 1);
    }
  std::vector<Rounds> rounds(result.engines.size());
  for (int round = 0; round < kRounds; ++round) {
    options.progress(what + ": round " + std::to_string(round + 1) + " of " + std::to_string(kRounds));
    std::vector<std::vector<double>> times = measureTurns(sessions, options.seconds / kRounds);
    for (size_t i = 0; i < sessions.size(); ++i)
      rounds[places[i]].add(times[i]);
    for (size_t i = 0; i < peers.size(); ++i) {
      EngineResult &engine = result.engines[engines.size() + i];
      if (!engine.problem.empty())
        continue;
      std::vector<double> times = peers[i]->measure(options.seconds / kRounds);
      engine.problem = peers[i]->problem();
      if (engine.problem.empty())
        rounds[engines.size() + i].add(times);
    }
  }
  for (size_t i = 0; i < result.engines.size(); ++i) {
    EngineResult &engine = result.engines[i];
    if (!engine.problem.empty())
      continue;
    engine.times = Times::of(rounds[i].all);
    std::vector<double> ratios;
    ratios.reserve(kRounds);
    for (int round = 0; round < kRounds; ++round)
      ratios.push_back(rounds[i].medians[size_t(round)] / rounds[0].medians[size_t(round)]);
    engine.ratio = medianOf(ratios);
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    engine.ratioLow = *low;
    engine.ratioHigh = *high;
    const auto [least, largest] = std::minmax_element(rounds[i].medians.begin(), rounds[i].medians.end());
    engine.noise = (*largest - *least) / medianOf(rounds[i].medians);
  }
}

void Benchmark::measureStarts(const std::string &what, const std::string &inputsFile, const TemporaryFolder &folder,
                              ModelResult &result) const {
  options.progress(what + ": starting each in a process of its own");
  for (size_t i = 0; i < engines.size(); ++i) {
    EngineResult &engine = result.engines[i];
    const Session *opened = i ? others[i - 1].get() : session.get();
    if (!opened)
      continue;
    const Build &build = compiled.builds()[i];
    const bool hasSymbols = !build.seconds || !options.isStatic;
    const std::optional<double> compileSeconds = engine.start.compileSeconds;
    engine.start = measureStart(build.artifact, options, hasSymbols ? sizes : Sizes(), inputsFile, folder);
    engine.start.compileSeconds = compileSeconds;
    tcrt_context_stats_t stats;
    check(tcrt_context_stats(opened->context(), &stats));
    engine.start.arenaBytes = stats.arena_bytes;
    engine.start.weightsBytes = numberAt(manifestOf(opened->model()), "/functions/0/memory/weights_bytes");
    struct stat info;
    engine.start.artifactBytes = ::stat(build.artifact.c_str(), &info) == 0 ? uint64_t(info.st_size) : 0;
  }
  for (size_t i = 0; i < peers.size(); ++i)
    if (EngineResult &engine = result.engines[engines.size() + i]; engine.problem.empty())
      engine.start = peers[i]->start();
}

ModelResult Benchmark::measure() {
  const std::string &artifact = compiled.builds()[0].artifact;
  TemporaryFolder folder;
  ModelResult result;
  result.model = compiled.name();
  result.sizes = sizes;
  result.compileSeconds = compiled.builds()[0].seconds;
  struct stat info;
  result.artifactBytes = ::stat(artifact.c_str(), &info) == 0 ? uint64_t(info.st_size) : 0;
  result.variant = tcrt_context_variant(session->context());
  result.threads = tcrt_context_threads(session->context());
  result.inputs = inputsText(*session);
  result.loadUs = session->loadUs();
  result.engines = engines;

  const std::string inputsFile = folder.path() + "/inputs.npz";
  writeInputs(*session, inputsFile);
  const std::string what = result.model + (sizes.empty() ? "" : " (" + sizesName(sizes) + ")");
  loadPeers(what, inputsFile, folder, result);
  measureRounds(what, result);
  if (options.isEconomics)
    measureStarts(what, inputsFile, folder, result);
  peers.clear(); // their processes end, before their folder goes
  tcrt_context_stats_t stats;
  check(tcrt_context_stats(session->context(), &stats));
  result.arenaBytes = stats.arena_bytes;
  result.peakMemoryBytes = stats.peak_memory_bytes;
  options.progress(what + ": profiling");
  result.kernels = profile(artifact, *session, sessionOptions, std::min(options.seconds / kRounds, 1.0));
  return result;
}
