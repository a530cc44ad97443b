//===- Report.cpp - what tc-bench found, as text and JSON ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

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

} // namespace

Times Times::of(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  auto quantile = [&](size_t tenths) { return us[std::min(us.size() - 1, us.size() * tenths / 10)]; };
  Times times;
  times.runs = us.size();
  times.medianUs = quantile(5);
  times.minUs = us.front();
  times.p90Us = quantile(9);
  times.spread = times.medianUs > 0 ? (times.p90Us - quantile(1)) / times.medianUs : 0;
  return times;
}

double Report::percentOfRoofline(const KernelResult &kernel) const {
  double least = roofline().leastUs(kernel.flops, kernel.bytes) * kernel.calls;
  return kernel.us > 0 ? 100 * least / kernel.us : 0;
}

std::string tc::bench::rooflineText(const Roofline &roofline) {
  std::string text;
  append(text, "%u thread%s, %s: %.0f GFLOP/s", roofline.threads, roofline.threads == 1 ? "" : "s",
         roofline.instructions.c_str(), roofline.peakGflops);
  for (const MemoryLevel &level : roofline.levels)
    append(text, ", %s %.1f GB/s", level.name.c_str(), level.gbs());
  return text;
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
  append(text, "  %-*s %-14s %12s %12s %12s %7s %8s %10s %10s\n", width, "engine", "version", "median us", "min us",
         "p90 us", "spread", "runs", "time / tc", "rel. error");
  for (const EngineResult &engine : model.engines) {
    append(text, "  %-*s ", width, engine.name.c_str());
    if (!engine.problem.empty()) {
      append(text, "%s: %s\n", status(engine), engine.problem.c_str());
      continue;
    }
    append(text, "%-14.14s %12.2f %12.2f %12.2f %6.0f%% %8zu %10.2f ", engine.version.c_str(), engine.times.medianUs,
           engine.times.minUs, engine.times.p90Us, 100 * engine.times.spread, engine.times.runs, engine.ratio);
    if (engine.maxRelError)
      append(text, "%10.1e\n", *engine.maxRelError);
    else
      append(text, "%10s\n", engine.difference.empty() ? "" : engine.difference.c_str());
  }
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
  return text;
}

std::string tc::bench::toJson(const Report &report) {
  Json json = {{"tool", "tc-bench"}, {"schema", 1}, {"version", report.version}};
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
        entry["spread"] = engine.times.spread;
        entry["runs"] = engine.times.runs;
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
                         {"nodes", kernel.nodes},
                         {"calls_per_run", kernel.calls},
                         {"us_per_run", kernel.us},
                         {"percent_of_time", total > 0 ? 100 * kernel.us / total : 0},
                         {"flops_per_call", kernel.flops},
                         {"bytes_per_call", kernel.bytes},
                         {"gflops", orNull(kernel.gflops())},
                         {"gbs", orNull(kernel.gbs())},
                         {"bound", which.empty() ? Json() : Json(which)},
                         {"percent_of_roofline", orNull(report.percentOfRoofline(kernel))}});
    }
    json["models"].push_back({{"model", model.model},
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
  }
  // Names come from models and need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
