//===- Report.cpp - what tc-bench found, as text and JSON ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Report.h"

#include "tc/Bench/Economics.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

using namespace tc::bench;
using Json = nlohmann::ordered_json;

namespace {

__attribute__((format(printf, 2, 3))) void append(std::string &text, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  size_t size = size_t(std::vsnprintf(nullptr, 0, format, arguments));
  va_end(arguments);
  size_t old = text.size();
  text.resize(old + size + 1);
  std::vsnprintf(&text[old], size + 1, format, again);
  va_end(again);
  text.resize(old + size);
}

/// A number that is not known is a dash, since a zero would be one.
std::string number(double value, const char *format = "%.2f") {
  std::string text;
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return value > 0 ? buffer : "-";
}

/// Roof by which a kernel is judged, empty where its operations and bytes are not known.
std::string bound(const Roofline &roofline, const KernelResult &kernel) {
  if (!kernel.flops && !kernel.bytes)
    return "";
  return roofline.isMemoryBound(kernel.flops, kernel.bytes) ? roofline.levelFor(kernel.bytes).name : "peak";
}

const char *status(const EngineResult &engine) {
  return engine.problem.empty() ? "measured" : engine.isAbsent ? "absent" : "failed";
}

Json orNull(double value) { return value > 0 ? Json(value) : Json(); }

const char *kindText(EngineKind kind) {
  return kind == EngineKind::Tc      ? "tc"
         : kind == EngineKind::Other ? "other"
         : kind == EngineKind::Mode  ? "mode"
                                     : "peer";
}

Json comparisonJson(const Comparison &comparison, double runsPerDay) {
  using Outcome = Comparison::Outcome;
  const Outcome outcome = comparison.outcome;
  auto known = [](const std::optional<double> &value) { return value ? Json(*value) : Json(); };
  return {{"name", comparison.name},
          {"outcome", outcome == Outcome::Noise     ? "noise"
                      : outcome == Outcome::AtOnce  ? "at once"
                      : outcome == Outcome::Later   ? "later"
                      : outcome == Outcome::FewRuns ? "few runs"
                                                    : "never"},
          {"time_ratio", comparison.ratio},
          {"time_ratio_low", comparison.low},
          {"time_ratio_high", comparison.high},
          {"more_s", comparison.moreSeconds},
          {"gain_s_per_run", comparison.gainSeconds},
          {"gain_s_per_day", comparison.gainSecondsPerDay},
          {"break_even_runs", known(comparison.breakEvenRuns)},
          {"break_even_runs_earliest", known(comparison.breakEvenEarliest)},
          {"break_even_runs_latest", known(comparison.breakEvenLatest)},
          {"break_even_days", comparison.breakEvenRuns ? Json(*comparison.breakEvenRuns / runsPerDay) : Json()}};
}

Json economicsJson(const Report &report, const ModelResult &model) {
  const Economics economics = assess(costsOf(model), *report.runsPerDay);
  Json engines = Json::array(), peers = Json::array(), modes = Json::array(), cheapest = Json::array();
  for (const EngineCost &cost : economics.costs) {
    const EngineStart &start = std::find_if(model.engines.begin(), model.engines.end(), [&](const EngineResult &each) {
                                 return each.name == cost.name;
                               })->start;
    engines.push_back({{"name", cost.name},
                       {"kind", kindText(cost.kind)},
                       {"once_s", cost.onceSeconds},
                       {"start_s", cost.startSeconds},
                       {"run_s", cost.runSeconds},
                       {"time_over_tc", cost.ratio},
                       {"time_over_tc_low", cost.low},
                       {"time_over_tc_high", cost.high},
                       {"compile_s", start.compileSeconds ? Json(*start.compileSeconds) : Json()},
                       {"import_s", orNull(start.importSeconds)},
                       {"build_s", orNull(start.buildSeconds)},
                       {"load_s", orNull(start.loadSeconds)},
                       {"first_run_us", orNull(start.firstRunUs)},
                       {"peak_rss_bytes", start.peakRssBytes ? Json(start.peakRssBytes) : Json()},
                       {"artifact_bytes", start.artifactBytes ? Json(start.artifactBytes) : Json()},
                       {"weights_bytes", start.artifactBytes ? Json(start.weightsBytes) : Json()},
                       {"arena_bytes", start.artifactBytes ? Json(start.arenaBytes) : Json()}});
  }
  for (const Comparison &comparison : economics.peers)
    peers.push_back(comparisonJson(comparison, economics.runsPerDay));
  for (const Comparison &comparison : economics.modes)
    modes.push_back(comparisonJson(comparison, economics.runsPerDay));
  for (const Stretch &stretch : economics.cheapest)
    cheapest.push_back({{"name", stretch.name}, {"from_runs", stretch.fromRuns}});
  const FusionTotals fusion = fusionOf(report, model);
  return {{"runs_per_day", economics.runsPerDay},
          {"horizon_days", kHorizonDays},
          {"engines", engines},
          {"peers", peers},
          {"modes", modes},
          {"cheapest", cheapest},
          {"recommendation", recommend(economics)},
          {"fusion",
           {{"launches", fusion.launches},
            {"unfused_launches", fusion.unfusedLaunches},
            {"bytes", orNull(fusion.bytes)},
            {"unfused_bytes", orNull(fusion.unfusedBytes)},
            {"percent_of_roofline_unfused", orNull(fusion.percentBefore())},
            {"percent_of_roofline", orNull(fusion.percentAfter())}}}};
}

/// Of a peer's outputs; empty for tc's own.
std::string errorText(const EngineResult &engine) {
  char text[32];
  if (!engine.maxRelError)
    return engine.difference;
  std::snprintf(text, sizeof text, "%.1e", *engine.maxRelError);
  return text;
}

} // namespace

Times Times::of(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  auto quantile = [&](size_t percent) { return us[std::min(us.size() - 1, us.size() * percent / 100)]; };
  Times times;
  times.runs = us.size();
  for (size_t percent = 0; percent <= 100; ++percent)
    times.percentilesUs.push_back(quantile(percent));
  times.minUs = us.front();
  times.medianUs = quantile(50);
  times.p90Us = quantile(90);
  times.p95Us = quantile(95);
  times.p99Us = quantile(99);
  times.meanUs = std::accumulate(us.begin(), us.end(), 0.0) / double(us.size());
  double squares = 0;
  for (double time : us)
    squares += (time - times.meanUs) * (time - times.meanUs);
  times.deviationUs = us.size() > 1 ? std::sqrt(squares / double(us.size() - 1)) : 0;
  times.spread = times.medianUs > 0 ? (times.p90Us - quantile(10)) / times.medianUs : 0;
  return times;
}

std::string tc::bench::sizesName(const Sizes &sizes) {
  std::string text;
  for (const auto &[name, size] : sizes)
    text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  return text;
}

std::string tc::bench::noiseText(const ModelResult &model) {
  std::string text;
  for (const EngineResult &engine : model.engines)
    if (engine.problem.empty())
      append(text, "%s%s %.0f %%", text.empty() ? "" : ", ", engine.name.c_str(),
             std::max(std::ceil(100 * engine.noise), 1.0));
  return "noise, how far an engine's medians of the rounds lie apart: " + text + "; smaller differences say nothing";
}

std::string tc::bench::describeMachine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, processor = "unknown processor";
  while (std::getline(file, line))
    if (line.compare(0, 10, "model name") == 0 && line.find(": ") != std::string::npos) {
      processor = line.substr(line.find(": ") + 2);
      break;
    }
  cpu_set_t set;
  const int usable = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  struct utsname system = {};
  ::uname(&system);
  std::string text;
  append(text, "%s, %d of %ld cores usable, %s %s", processor.c_str(), usable, ::sysconf(_SC_NPROCESSORS_ONLN),
         system.sysname, system.release);
  return text;
}

double Report::percentOfRoofline(const KernelResult &kernel) const {
  double least = roofline().leastUs(kernel.flops, kernel.bytes) * kernel.calls;
  return kernel.us > 0 ? 100 * least / kernel.us : 0;
}

double Report::leastUnfusedUs(const KernelResult &kernel) const {
  if (!kernel.unfusedLaunches || !kernel.unfusedBytes)
    return 0;
  const double gbs = roofline().levelFor(kernel.unfusedBytes / kernel.unfusedLaunches).gbs();
  return std::max(double(kernel.flops) / roofline().peakGflops, double(kernel.unfusedBytes) / gbs) / 1000;
}

double Report::percentUnfused(const KernelResult &kernel) const {
  const double unfused = leastUnfusedUs(kernel);
  return unfused > 0 && kernel.bytes ? 100 * roofline().leastUs(kernel.flops, kernel.bytes) / unfused : 0;
}

std::string tc::bench::rooflineText(const Roofline &roofline) {
  std::string text;
  append(text, "%u thread%s, %s: %.0f GFLOP/s", roofline.threads, roofline.threads == 1 ? "" : "s",
         roofline.instructions.c_str(), roofline.peakGflops);
  for (const MemoryLevel &level : roofline.levels)
    append(text, ", %s %.1f GB/s", level.name.c_str(), level.gbs());
  return text;
}

/// What can be the reason where a kernel is faster than its roof; empty where none is.
static std::string whyAboveRoof(const Report &report, const ModelResult &model) {
  // Less than the noise of the roofline's own measurement needs no word.
  constexpr double kNotable = 105;
  bool isFewer = false, isCached = false, isOther = false;
  for (const KernelResult &kernel : model.kernels) {
    if (report.percentOfRoofline(kernel) <= kNotable)
      continue;
    const bool ofMemory = report.roofline().isMemoryBound(kernel.flops, kernel.bytes);
    (kernel.hasFewerOperations() ? isFewer : ofMemory ? isCached : isOther) = true;
  }
  std::string why;
  auto add = [&](bool is, const char *what) { why += is ? (why.empty() ? "" : "; ") + std::string(what) : ""; };
  add(isFewer, "fewer operations than the convolution's definition has, by Winograd's algorithm");
  add(isCached, "bytes that a smaller cache still held");
  add(isOther, "products of narrower numbers than f32, whose peak is measured");
  add(isCached || isOther, "or the machine was busy while its roof was measured");
  return why.empty() ? "" : "  more than 100 % of roof: " + why + "\n";
}

std::string tc::bench::modelText(const Report &report, const ModelResult &model) {
  std::string text;
  append(text, "%s: %s; %u thread%s, variant %s", model.model.c_str(), model.inputs.c_str(), model.threads,
         model.threads == 1 ? "" : "s", model.variant.c_str());
  if (model.compileSeconds)
    append(text, "; compiled in %.2f s", *model.compileSeconds);
  append(text, "; artifact %.2f MB, arena %.2f MB\n", double(model.artifactBytes) * 1e-6,
         double(model.arenaBytes) * 1e-6);
  int width = 10;
  for (const EngineResult &engine : model.engines)
    width = std::max(width, int(engine.name.size()));
  append(text, "  %-*s %-12s %10s %10s %10s %10s %10s %9s %8s %10s %9s %10s\n", width, "engine", "version", "p50 us",
         "p90 us", "p95 us", "p99 us", "min us", "std. dev.", "runs", "runs/s", "time / tc", "rel. error");
  for (const EngineResult &engine : model.engines) {
    append(text, "  %-*s ", width, engine.name.c_str());
    if (!engine.problem.empty()) {
      append(text, "%s: %s\n", status(engine), engine.problem.c_str());
      continue;
    }
    const Times &times = engine.times;
    append(text, "%-12.12s %10.2f %10.2f %10.2f %10.2f %10.2f %9.2f %8zu %10.1f %9.2f %10s\n", engine.version.c_str(),
           times.medianUs, times.p90Us, times.p95Us, times.p99Us, times.minUs, times.deviationUs, times.runs,
           times.runsPerSecond(), engine.ratio, errorText(engine).c_str());
  }
  text += "  " + noiseText(model) + "\n";
  double total = 0;
  for (const KernelResult &kernel : model.kernels)
    total += kernel.us;
  append(text, "  %10s %6s %7s %10s %9s %7s %9s  %s\n", "us/run", "%", "calls", "GFLOP/s", "GB/s", "bound", "% of roof",
         "kernel: nodes");
  const size_t shown = std::min<size_t>(model.kernels.size(), 20);
  for (size_t i = 0; i < shown; ++i) {
    const KernelResult &kernel = model.kernels[i];
    std::string which = bound(report.roofline(), kernel), nodes = kernel.nodes;
    if (nodes.size() > 80)
      nodes = nodes.substr(0, 77) + "...";
    append(text, "  %10.2f %6.1f %7.1f %10s %9s %7s %9s  %s: %s\n", kernel.us, total > 0 ? 100 * kernel.us / total : 0,
           kernel.calls, number(kernel.gflops()).c_str(), number(kernel.gbs()).c_str(),
           which.empty() ? "-" : which.c_str(), number(report.percentOfRoofline(kernel), "%.0f").c_str(),
           kernel.name.c_str(), nodes.c_str());
  }
  if (shown < model.kernels.size())
    append(text, "  ... %zu more kernels, in --json and --html\n", model.kernels.size() - shown);
  append(text, "  %10.2f us in kernels of %.2f us per run\n", total, model.engines.front().times.medianUs);
  return text + whyAboveRoof(report, model);
}

std::string tc::bench::sizesText(const std::vector<ModelResult> &results, const std::vector<std::string> &dims) {
  std::string text;
  const ModelResult &first = results.front();
  append(text, "%s: %s at the first of %zu sizes; %u thread%s, variant %s\n", first.model.c_str(), first.inputs.c_str(),
         results.size(), first.threads, first.threads == 1 ? "" : "s", first.variant.c_str());
  int width = 10;
  for (const EngineResult &engine : first.engines)
    width = std::max(width, int(engine.name.size()));
  text += "  ";
  for (const std::string &dim : dims)
    append(text, "%*s  ", std::max(int(dim.size()), 8), dim.c_str());
  const std::string items = dims.front() + "/s";
  const int itemsWidth = std::max(int(items.size()), 10);
  append(text, "%-*s %10s %10s %10s %10s %9s %10s %*s %9s %10s\n", width, "engine", "p50 us", "p90 us", "p95 us",
         "p99 us", "std. dev.", "runs/s", itemsWidth, items.c_str(), "time / tc", "rel. error");
  for (const ModelResult &model : results)
    for (const EngineResult &engine : model.engines) {
      text += "  ";
      int64_t count = 1;
      for (const std::string &dim : dims)
        for (const auto &[name, size] : model.sizes)
          if (name == dim) {
            append(text, "%*lld  ", std::max(int(dim.size()), 8), static_cast<long long>(size));
            count = dim == dims.front() ? size : count;
          }
      append(text, "%-*s ", width, engine.name.c_str());
      const Times &times = engine.times;
      if (engine.problem.empty())
        append(text, "%10.2f %10.2f %10.2f %10.2f %9.2f %10.1f %*.1f %9.2f %10s\n", times.medianUs, times.p90Us,
               times.p95Us, times.p99Us, times.deviationUs, times.runsPerSecond(), itemsWidth,
               double(count) * times.runsPerSecond(), engine.ratio, errorText(engine).c_str());
      else
        append(text, "%s: %s\n", status(engine), engine.problem.c_str());
    }
  return text + "  kernels of each size: --json or --html\n";
}

std::string tc::bench::toJson(const Report &report) {
  Json json = {{"tool", "tc-bench"},        {"schema", 1},         {"version", report.version},
               {"machine", report.machine}, {"date", report.date}, {"command", report.command}};
  json["rooflines"] = Json::array();
  for (const Roofline &roofline : report.rooflines) {
    Json levels = Json::array();
    for (const MemoryLevel &level : roofline.levels)
      levels.push_back({{"name", level.name},
                        {"capacity_bytes", level.capacityBytes == UINT64_MAX ? Json() : Json(level.capacityBytes)},
                        {"working_set_bytes", level.workingSetBytes},
                        {"read_gbs", level.readGbs},
                        {"copy_gbs", level.copyGbs}});
    json["rooflines"].push_back({{"threads", roofline.threads},
                                 {"instructions", roofline.instructions},
                                 {"peak_gflops", roofline.peakGflops},
                                 {"levels", levels}});
  }
  json["models"] = Json::array();
  for (const ModelResult &model : report.models) {
    Json engines = Json::array(), kernels = Json::array();
    for (const EngineResult &engine : model.engines) {
      Json entry = {{"name", engine.name}, {"status", status(engine)}};
      if (!engine.problem.empty()) {
        entry["problem"] = engine.problem;
      } else {
        entry["version"] = engine.version;
        entry["load_s"] = engine.loadSeconds;
        entry["median_us"] = engine.times.medianUs;
        entry["min_us"] = engine.times.minUs;
        entry["p90_us"] = engine.times.p90Us;
        entry["p95_us"] = engine.times.p95Us;
        entry["p99_us"] = engine.times.p99Us;
        entry["mean_us"] = engine.times.meanUs;
        entry["std_dev_us"] = engine.times.deviationUs;
        entry["spread"] = engine.times.spread;
        entry["noise"] = engine.noise;
        entry["runs"] = engine.times.runs;
        entry["runs_per_s"] = engine.times.runsPerSecond();
        entry["time_over_tc"] = engine.ratio;
        if (&engine != &model.engines.front()) {
          entry["max_rel_error"] = engine.maxRelError ? Json(*engine.maxRelError) : Json();
          if (!engine.difference.empty())
            entry["difference"] = engine.difference;
        }
      }
      engines.push_back(entry);
    }
    double total = 0;
    for (const KernelResult &kernel : model.kernels)
      total += kernel.us;
    for (const KernelResult &kernel : model.kernels) {
      std::string which = bound(report.roofline(), kernel);
      kernels.push_back({{"name", kernel.name},
                         {"number", kernel.number},
                         {"strategy", kernel.strategy.empty() ? Json() : Json(kernel.strategy)},
                         {"reads", kernel.reads},
                         {"nodes", kernel.nodes},
                         {"calls_per_run", kernel.calls},
                         {"us_per_run", kernel.us},
                         {"percent_of_time", total > 0 ? 100 * kernel.us / total : 0},
                         {"flops_per_call", kernel.flops},
                         {"bytes_per_call", kernel.bytes},
                         {"unfused_launches", kernel.unfusedLaunches ? Json(kernel.unfusedLaunches) : Json()},
                         {"unfused_bytes", kernel.unfusedBytes ? Json(kernel.unfusedBytes) : Json()},
                         {"gflops", orNull(kernel.gflops())},
                         {"gbs", orNull(kernel.gbs())},
                         {"bound", which.empty() ? Json() : Json(which)},
                         {"percent_of_roofline", orNull(report.percentOfRoofline(kernel))},
                         {"percent_of_roofline_unfused", orNull(report.percentUnfused(kernel))}});
    }
    Json sizes = Json::object();
    for (const auto &[name, size] : model.sizes)
      sizes[name] = size;
    json["models"].push_back({{"model", model.model},
                              {"sizes", sizes},
                              {"inputs", model.inputs},
                              {"variant", model.variant},
                              {"threads", model.threads},
                              {"compile_s", model.compileSeconds ? Json(*model.compileSeconds) : Json()},
                              {"artifact_bytes", model.artifactBytes},
                              {"load_us", model.loadUs},
                              {"arena_bytes", model.arenaBytes},
                              {"peak_memory_bytes", model.peakMemoryBytes},
                              {"engines", engines},
                              {"kernels", kernels}});
    if (report.runsPerDay)
      json["models"].back()["economics"] = economicsJson(report, model);
  }
  // Names come from models and need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
