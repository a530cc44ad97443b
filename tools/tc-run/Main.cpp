//===- Main.cpp - tc-run: runs a compiled model -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Options.h"
#include "Tune.h"
#include "Verifier.h"
#include "tc/Measure/TuneFile.h"
#include "tc/Run/Compare.h"
#include "tc/Run/Dump.h"
#include "tc/Run/Npz.h"
#include "tc/Run/Pb.h"
#include "tc/Run/Profile.h"
#include "tc/Run/Session.h"
#include "tc/Run/Tensor.h"
#include "tc/Support/ToolVersion.h"

#include "tcrt/tcrt.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <sys/stat.h>

using namespace tc::run;

namespace {

class Runner {
public:
  explicit Runner(const Options &options)
      : options(options), verifier(options.verifyKey), session(sessionOptions(options, trace, verifier)) {}

  int run() {
    if (!options.inputs.empty())
      session.readInputs(options.inputs);
    for (const std::string &text : options.input)
      session.readInput(text, "tc-run");
    if (options.randomSeed)
      session.makeRandomInputs(*options.randomSeed);
    if (options.seed)
      check(tcrt_context_set_seed(session.context(), *options.seed));
    if (!options.stateIn.empty())
      session.readStates(options.stateIn);
    session.firstRun();
    for (uint64_t i = 1; i < options.runs; ++i)
      session.runAgain();
    if (!options.stateOut.empty())
      writeNpz(options.stateOut, session.states());
    int code = options.expect.empty() ? 0 : compareOutputs();
    writeOutputs();
    if (!options.dumpDir.empty())
      dumpValues();
    if (options.benchmarkSeconds)
      benchmark();
    if (options.profile)
      profile();
    if (!options.json.empty())
      writeJson();
    if (!options.usage.empty())
      check(tcrt_model_write_usage(session.model(), options.usage.c_str()));
    if (options.expect.empty() && options.outputs.empty() && options.outputDir.empty() && options.dumpDir.empty() &&
        !options.benchmarkSeconds && !options.profile && options.json.empty())
      printOutputs();
    return code;
  }

private:
  static SessionOptions sessionOptions(const Options &options, Trace &trace, const Verifier &verifier) {
    SessionOptions result;
    result.artifact = options.artifact;
    result.variant = options.variant;
    result.function = options.function;
    result.threads = options.threads;
    result.isCuda = options.isCuda;
    result.deviceIndex = options.deviceIndex;
    result.isCpuAllowed = options.isCpuAllowed;
    result.startsDriver = options.benchmarkSeconds.has_value();
    result.verifyWeights = options.verifyWeights;
    verifier.apply(result);
    result.profile = options.profile                              ? TCRT_PROFILE_KERNELS
                     : options.isCuda && options.benchmarkSeconds ? TCRT_PROFILE_RUNS
                                                                  : TCRT_PROFILE_OFF;
    result.graphs = options.graphs;
    result.dims = options.dims;
    result.customOps = options.customOps;
    if (!options.trace.empty()) {
      result.event = Trace::add;
      result.eventUser = &trace;
    }
    return result;
  }

  const char *file() const { return options.artifact.c_str(); }

  // ---- outputs ----

  /// The first names of a file.
  static std::string list(const std::set<std::string> &names) {
    constexpr size_t kMost = 8;
    std::string text;
    size_t count = 0;
    for (const std::string &name : names) {
      if (count == kMost)
        return text + " and " + std::to_string(names.size() - kMost) + " more";
      text += (count++ ? ", \"" : "\"") + name + "\"";
    }
    return names.empty() ? "none" : text;
  }

  int compareOutputs() {
    const NamedTensors outputs = session.tensorOutputs("--expect");
    // Other arrays of the file are none of ours.
    std::map<std::string, size_t> indexOf;
    for (size_t i = 0; i < outputs.size(); ++i)
      indexOf.emplace(outputs[i].first, i);
    for (size_t i = 0; i < outputs.size(); ++i)
      indexOf.emplace("output_" + std::to_string(i), i);
    std::set<std::string> names;
    const NamedTensors expected = readNpz(options.expect, [&](const std::string &name) {
      names.insert(name);
      return indexOf.count(name) != 0;
    });
    // An output's own name counts before its number.
    std::vector<const Tensor *> matches(outputs.size());
    for (const auto &[name, tensor] : expected)
      if (size_t i = indexOf[name]; !matches[i] || name == outputs[i].first)
        matches[i] = &tensor;
    Tolerance tolerance;
    if (options.rtol || options.atol) {
      tolerance.rtol = options.rtol.value_or(0);
      tolerance.atol = options.atol.value_or(0);
    } else {
      tolerance.maxRel = options.maxRel.value_or(1e-5);
    }
    std::string worst;
    double worstBadness = -1;
    int differing = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor *match = matches[i];
      if (!match)
        throw Failure{1, options.expect + ": error: there is no array for output \"" + outputs[i].first +
                             "\", and the file has " + list(names) + "; name it so or output_" + std::to_string(i) +
                             ", and what a model writes of an input NAME.updated"};
      Comparison result = compare(outputs[i].second, *match, tolerance);
      std::string line = "output \"" + outputs[i].first + "\": " + result.message;
      if (!result.isEqual) {
        std::fprintf(stderr, "%s: error: %s differs: %s\n", file(), ("output \"" + outputs[i].first + "\"").c_str(),
                     result.message.c_str());
        ++differing;
      }
      if (result.badness > worstBadness)
        worstBadness = result.badness, worst = line;
    }
    std::printf("%s: %zu of %zu outputs as expected; worst: %s\n", differing ? "FAILED" : "ok",
                outputs.size() - size_t(differing), outputs.size(), outputs.empty() ? "none" : worst.c_str());
    return differing ? 3 : 0;
  }

  void writeOutputs() {
    if (!options.outputs.empty())
      writeNpz(options.outputs, session.tensorOutputs("--outputs"));
    if (options.outputDir.empty())
      return;
    if (::mkdir(options.outputDir.c_str(), 0777) != 0 && errno != EEXIST)
      throw Failure{1, options.outputDir + ": error: the folder cannot be made: " + std::strerror(errno)};
    const NamedValues &outputs = session.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      writeFile(options.outputDir + "/output_" + std::to_string(i) + ".pb",
                valueProto(outputs[i].first, outputs[i].second, kindsOf(session.outputInfo()[i])));
  }

  void dumpValues() {
    const size_t count = writeDump(session, options.dumpDir, options.dumpPattern);
    std::printf("%s: %zu %s\n", dumpedValuesFile(options.dumpDir).c_str(), count, count == 1 ? "value" : "values");
    if (!session.innerOutputCount())
      std::fprintf(stderr, "%s: note: it was compiled without inner values; tc-compile --outputs '*' keeps all\n",
                   file());
  }

  static void print(const Tensor &tensor) {
    std::printf("%s %s", tcrt_dtype_name(tensor.dtype), dimsText(tensor.dims).c_str());
    int64_t count = tensor.dtype == TCRT_DTYPE_C64 || tensor.dtype == TCRT_DTYPE_C128 ? 0 : tensor.count();
    for (int64_t i = 0; i < count && i < 8; ++i) {
      std::fputs(i ? ", " : " = ", stdout);
      if (tensor.dtype == TCRT_DTYPE_STRING)
        std::printf("\"%s\"", tensor.strings[size_t(i)].c_str());
      else if (isFloat(tensor.dtype))
        std::printf("%.6g", realAt(tensor, i));
      else
        std::printf("%lld", static_cast<long long>(integerAt(tensor, i)));
    }
    std::fputs(count > 8 ? ", ...\n" : "\n", stdout);
  }

  static void print(const Value &value, int depth) {
    if (value.kind == TCRT_VALUE_TENSOR)
      return print(value.tensor);
    const char *kind = value.kind == TCRT_VALUE_SEQUENCE   ? "sequence"
                       : value.kind == TCRT_VALUE_OPTIONAL ? "optional"
                                                           : "map from keys to values";
    std::printf("%s of %zu\n", kind, value.elements.size());
    for (size_t i = 0; i < value.elements.size() && i < 8; ++i) {
      std::printf("%*s", 2 * depth + 2, "");
      print(value.elements[i], depth + 1);
    }
    if (value.elements.size() > 8)
      std::printf("%*s...\n", 2 * depth + 2, "");
  }

  void printOutputs() {
    for (const auto &[name, value] : session.outputs()) {
      std::printf("%s: ", name.c_str());
      print(value, 0);
    }
  }

  // ---- measuring ----

  tcrt_graph_stats_t graphStats() const {
    tcrt_graph_stats_t stats = {};
    stats.size = sizeof stats;
    check(tcrt_context_graph_stats(session.context(), &stats));
    return stats;
  }

  static nlohmann::ordered_json graphsJson(const tcrt_graph_stats_t &stats) {
    return {{"built", stats.built},
            {"launched", stats.launched},
            {"launches", stats.launches},
            {"updated", stats.updated},
            {"launches_outside",
             {{"off", stats.off_launches},
              {"few", stats.few_launches},
              {"new", stats.new_launches},
              {"full", stats.full_launches},
              {"refused", stats.refused_launches}}}};
  }

  static void printGraphs(const tcrt_graph_stats_t &stats) {
    std::printf("cuda graphs: %llu made, launched %llu times for %llu kernels, of which %llu got new parameters\n",
                (unsigned long long)stats.built, (unsigned long long)stats.launched, (unsigned long long)stats.launches,
                (unsigned long long)stats.updated);
    const std::pair<uint64_t, const char *> outside[] = {{stats.off_launches, "graphs are off"},
                                                         {stats.few_launches, "fewer than 3 in a row"},
                                                         {stats.new_launches, "new sizes"},
                                                         {stats.full_launches, "too many other graphs"},
                                                         {stats.refused_launches, "the driver makes no graph of them"}};
    for (auto [launches, why] : outside)
      if (launches)
        std::printf("  %llu kernels outside: %s\n", (unsigned long long)launches, why);
  }

  /// The most memory that this program held. getrusage would have that of the one which started it among it.
  static uint64_t peakRssBytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("VmHWM:", 0) == 0)
        return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
    return 0;
  }

  void benchmark() {
    session.bindBuffers();
    // Copying this much within the device pushes everything else out of its L2 cache.
    const uint64_t flushBytes = uint64_t(128) << 20;
    uint8_t *flush = session.isOnGpu() ? static_cast<uint8_t *>(session.deviceBuffer(2 * flushBytes)) : nullptr;
    auto flushCache = [&] {
      if (flush)
        check(tcrt_context_device_copy(session.context(), flush, flush + flushBytes, flushBytes,
                                       TCRT_COPY_DEVICE_TO_DEVICE));
    };
    Clock::duration budget =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*options.benchmarkSeconds));
    Clock::time_point start = Clock::now();
    for (int i = 0; i < 3 || (i < 1000 && Clock::now() - start < budget / 5); ++i)
      check(tcrt_context_run(session.context()));
    std::vector<double> times, deviceTimes;
    // Events around a run take time of the host, which users of a run do not spend.
    auto timeRuns = [&](bool are) {
      if (session.isOnGpu())
        check(tcrt_context_time_runs(session.context(), are));
    };
    start = Clock::now();
    while (times.size() < 5 || (Clock::now() - start < budget && times.size() < 10000000)) {
      timeRuns(false);
      Clock::time_point before = Clock::now();
      check(tcrt_context_run(session.context()));
      times.push_back(microseconds(Clock::now() - before));
      timeRuns(true);
      // The device's own time is that of a run with nothing in its cache, enqueued while it is still busy; the time of
      // a run to its end, above, would hold the rest of that work.
      if (session.isOnGpu()) {
        flushCache();
        check(tcrt_context_run(session.context()));
        tcrt_context_stats_t stats;
        check(tcrt_context_stats(session.context(), &stats));
        deviceTimes.push_back(stats.device_us);
      }
    }
    std::sort(times.begin(), times.end());
    std::sort(deviceTimes.begin(), deviceTimes.end());
    double median = times[times.size() / 2], p90 = times[std::min(times.size() - 1, times.size() * 9 / 10)];
    json["median_us"] = median;
    json["min_us"] = times.front();
    json["p90_us"] = p90;
    json["gpu_us"] =
        deviceTimes.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(deviceTimes[deviceTimes.size() / 2]);
    json["runs"] = times.size();
    const tcrt_graph_stats_t graphs = graphStats();
    if (session.isOnGpu()) {
      json["cuda_graphs"] = graphsJson(graphs);
      json["driver_us"] = session.driverUs();
    }
    json["load_us"] = session.loadUs();
    json["first_run_us"] = session.firstRunUs();
    json["peak_rss_bytes"] = peakRssBytes();
    if (options.json == "-")
      return;
    std::printf("median %.2f us, min %.2f us, p90 %.2f us, %zu runs, %u threads, variant %s, load %.0f us\n", median,
                times.front(), p90, times.size(), tcrt_context_threads(session.context()),
                tcrt_context_variant(session.context()), session.loadUs());
    if (!deviceTimes.empty())
      std::printf("gpu median %.2f us\n", deviceTimes[deviceTimes.size() / 2]);
    if (session.isOnGpu()) {
      std::printf("the driver started in %.0f us, before the load\n", session.driverUs());
      printGraphs(graphs);
    }
  }

  /// What was measured, and which code ran.
  void writeJson() {
    tcrt_context_t *context = session.context();
    const uint32_t function = tcrt_context_function(context);
    tcrt_function_info_t info;
    check(tcrt_model_function(session.model(), function, &info));
    uint32_t index;
    check(tcrt_context_entry(context, &index));
    tcrt_entry_info_t entry;
    check(tcrt_model_entry(session.model(), function, index, &entry));
    json["threads"] = tcrt_context_threads(context);
    json["variant"] = tcrt_context_variant(context);
    json["function"] = info.name;
    json["entry"] = entry.name;
    const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (options.json == "-")
      std::fputs(text.c_str(), stdout);
    else
      writeFile(options.json, {text.begin(), text.end()});
  }

  void profile() {
    const int runs = 10;
    check(tcrt_context_run(session.context()));
    check(tcrt_context_profile_reset(session.context()));
    trace.begin();
    Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; ++i)
      check(tcrt_context_run(session.context()));
    double wall = microseconds(Clock::now() - start) / runs;
    trace.end();
    if (!options.trace.empty())
      trace.write(options.trace, options.artifact);
    std::vector<tcrt_profile_entry_t> entries(tcrt_context_profile_count(session.context()));
    double total = 0;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      check(tcrt_context_profile(session.context(), i, &entries[i]));
      total += double(entries[i].time_ns) / 1000 / runs;
    }
    std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : std::strcmp(a.kernel, b.kernel) < 0;
    });
    std::vector<KernelTime> times;
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const tcrt_profile_entry_t &entry : entries) {
      if (!entry.launches)
        continue;
      times.push_back({entry.nodes, double(entry.time_ns) / 1000 / runs});
      kernels.push_back({{"kernel", entry.kernel},
                         {"nodes", entry.nodes},
                         {"us", times.back().us},
                         {"calls", double(entry.launches) / runs},
                         {"flops", entry.flops},
                         {"bytes", entry.bytes}});
    }
    const std::vector<NodeTime> nodes = timesOfNodes(times), groups = timesOfGroups(times, 0.01);
    json["profile"] = {{"us_per_run", wall},
                       {"us_in_kernels", total},
                       {"kernels", std::move(kernels)},
                       {"nodes", timesJson(nodes)},
                       {"groups", timesJson(groups)}};
    if (options.json == "-")
      return;
    std::printf("%10s %6s %8s %10s %10s  %-28s %s\n", "us/run", "%", "calls", "GFLOP/s", "GB/s", "kernel", "nodes");
    for (const tcrt_profile_entry_t &entry : entries) {
      if (!entry.launches)
        continue;
      double us = double(entry.time_ns) / 1000 / runs, calls = double(entry.launches) / runs;
      // No number is better than a zero that stands for "not known".
      auto rate = [&](uint64_t amount) {
        char text[32] = "-";
        if (amount && us > 0)
          std::snprintf(text, sizeof text, "%.2f", double(amount) * calls / us / 1000);
        return std::string(text);
      };
      std::printf("%10.2f %6.1f %8.1f %10s %10s  %-28s %s\n", us, total > 0 ? 100 * us / total : 0, calls,
                  rate(entry.flops).c_str(), rate(entry.bytes).c_str(), entry.kernel, entry.nodes);
    }
    std::printf("%10.2f us in kernels, %.2f us per run\n", total, wall);
    printTimes("node; a kernel counts to its nodes in equal parts", nodes, total, 20);
    if (!groups.empty())
      printTimes("group of nodes, by the paths of their names", groups, total, groups.size());
  }

  static nlohmann::ordered_json timesJson(const std::vector<NodeTime> &times) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const NodeTime &time : times)
      list.push_back({{"name", time.name}, {"us", time.us}, {"kernels", time.kernels}});
    return list;
  }

  static void printTimes(const char *title, const std::vector<NodeTime> &times, double total, size_t most) {
    std::printf("\n%10s %6s %8s  %s\n", "us/run", "%", "kernels", title);
    double rest = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      const NodeTime &time = times[i];
      if (i < most)
        std::printf("%10.2f %6.1f %8zu  %*s%s\n", time.us, total > 0 ? 100 * time.us / total : 0, time.kernels,
                    int(2 * time.depth), "", time.name.c_str());
      else
        rest += time.us;
    }
    if (times.size() > most)
      std::printf("%10.2f %6.1f %8s  %zu more\n", rest, total > 0 ? 100 * rest / total : 0, "", times.size() - most);
  }

  const Options &options;
  Trace trace; ///< before the session, whose context calls it
  Verifier verifier;
  Session session;
  nlohmann::ordered_json json; ///< of --json
};

/// Whether --device cuda,cpu would run it: the GPU cannot be used, and there is code for CPUs.
bool canRunOnCpu(const Options &options) {
  tcrt_model_options_t opening = {};
  opening.size = sizeof opening;
  opening.device = TCRT_DEVICE_CUDA;
  opening.device_index = options.deviceIndex;
  opening.cpu_instead = 1;
  tcrt_model_t *model;
  if (tcrt_model_open_file(options.artifact.c_str(), &opening, &model))
    return false;
  tcrt_variant_info_t variant;
  const bool onCpu = tcrt_model_variant(model, 0, &variant) == TCRT_OK && variant.device == TCRT_DEVICE_CPU;
  tcrt_model_close(model);
  return onCpu;
}

int runModel(const Options &options) {
  try {
    return Runner(options).run();
  } catch (Failure &failure) {
    if (failure.code == TCRT_ERROR_MACHINE && options.isCuda && !options.isCpuAllowed && canRunOnCpu(options))
      failure.message += "; --device cuda,cpu takes its code for CPUs then";
    throw;
  }
}

int runTool(int argc, char **argv) {
  Options options = parseOptions(argc, argv);
  if (options.help) {
    std::fputs(tc::makeHelp(describeTool()).c_str(), stdout);
    return 0;
  }
  if (!options.generated.empty()) {
    std::fputs(options.generated.c_str(), stdout);
    return 0;
  }
  if (options.version) {
    std::printf("%s\n", tc::getVersionText("tc-run").c_str());
    return 0;
  }
  checkFiles(options);
  if (!options.tune.empty())
    return tuneHere(options);
  if (tc::measure::isTuneFile(options.artifact))
    refuseTuneFile(options.artifact);
  if (!options.isDeviceGiven)
    options.isCuda = isOnlyFor(options.artifact, TCRT_DEVICE_CUDA);
  return runModel(options);
}

} // namespace

int main(int argc, char **argv) {
  int code;
  try {
    code = runTool(argc, argv);
  } catch (const Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
    return failure.code;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "tc-run: error: no memory is left for the inputs and outputs\n");
    return 5;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "tc-run: error: %s; please report this with the command line and the files\n", problem.what());
    return 6;
  }
  if (std::fflush(stdout) != 0) {
    std::fprintf(stderr, "tc-run: error: standard output cannot be written: %s\n", std::strerror(errno));
    return 1;
  }
  return code;
}
