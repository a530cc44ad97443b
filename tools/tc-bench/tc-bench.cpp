//===- tc-bench.cpp - tc and its peers side by side ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Benchmark.h"
#include "tc/Bench/Economics.h"
#include "tc/Run/Session.h"
#include "tc/Run/StatusLine.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ToolFiles.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <new>
#include <sched.h>
#include <unistd.h>

using namespace tc::bench;
using tc::run::Failure;

namespace {

struct Options {
  std::vector<std::string> models, against, dims;
  std::optional<std::vector<std::string>> peers;
  uint32_t threads = 0;
  double seconds = 2;
  std::string cpu = "native", inputs, json, html, python = "python3";
  uint64_t seed = 0;
  std::optional<double> maxRel;
  bool isStatic = false;
  std::string function;
  bool isEconomics = false;
  std::optional<double> runsPerDay, modeSeconds;
  std::optional<std::vector<std::string>> modes;
};

/// Modes of tc-compile that --modes takes, besides its default.
std::vector<std::string> modeNames() { return {"reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}; }

[[noreturn]] void fail(const std::string &what) {
  throw Failure{1, "tc-bench: error: " + what + "; see tc-bench --help"};
}

uint32_t usableCores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? uint32_t(CPU_COUNT(&set)) : 1;
}

/// The tool beside this program, wherever it is installed.
std::string findTool(const std::string &name) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (error ? std::filesystem::path(name) : self.parent_path() / name).string();
}

/// The names of a list, "none" left out; `what` they are of stands in the error for an unknown one.
std::vector<std::string> checkNames(const std::vector<std::string> &given, const std::vector<std::string> &known,
                                    const std::string &what) {
  std::vector<std::string> names;
  for (const std::string &name : given) {
    if (name == "none")
      continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string all;
      for (const std::string &each : known)
        all += (all.empty() ? "" : ", ") + each;
      fail("there is no " + what + " \"" + name + "\"; " + what + "s are " + all + ", or none");
    }
    names.push_back(name);
  }
  return names;
}

void writeText(const std::string &path, const std::string &text) {
  if (path == "-")
    std::fputs(text.c_str(), stdout);
  else
    tc::run::writeFile(path, {text.begin(), text.end()});
}

/// A dim with the sizes that --dim gives it.
using DimSizes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

DimSizes parseDims(const std::vector<std::string> &texts) {
  DimSizes dims;
  for (const std::string &text : texts) {
    const size_t at = text.rfind('=');
    const std::string name = text.substr(0, at);
    std::vector<int64_t> sizes;
    for (size_t begin = at + 1; at != std::string::npos && begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string size = text.substr(begin, end - begin);
      if (size.empty() || size.size() > 18 || size.find_first_not_of("0123456789") != std::string::npos) {
        sizes.clear();
        break;
      }
      sizes.push_back(std::stoll(size));
      begin = end + 1;
    }
    if (at == 0 || sizes.empty())
      fail("--dim takes NAME=SIZE or NAME=SIZE,SIZE,..., not \"" + text + "\"");
    for (const auto &[known, unused] : dims)
      if (name == known)
        fail("--dim gives \"" + name + "\" twice; several sizes of a dim are one option: --dim " + name + "=1,8");
    dims.emplace_back(name, sizes);
  }
  return dims;
}

/// Each size of each dim with each of the others, the last dim's sizes changing first.
std::vector<Sizes> combine(const DimSizes &dims) {
  std::vector<Sizes> all = {{}};
  for (const auto &[name, sizes] : dims) {
    std::vector<Sizes> longer;
    for (const Sizes &begun : all)
      for (int64_t size : sizes) {
        longer.push_back(begun);
        longer.back().emplace_back(name, size);
      }
    all = longer;
  }
  return all;
}

BenchmarkOptions checkOptions(const Options &options) {
  BenchmarkOptions result;
  result.compiler = findTool("tc-compile");
  result.runner = findTool("tc-run");
  result.python = options.python;
  result.cpu = options.cpu;
  result.threads = options.threads ? options.threads : usableCores();
  result.seconds = options.seconds;
  result.inputs = options.inputs;
  result.against = options.against;
  result.seed = options.seed;
  result.isStatic = options.isStatic;
  result.function = options.function;
  if (options.models.size() > 1 && !options.inputs.empty())
    fail("--inputs is for one model, and " + std::to_string(options.models.size()) + " are given");
  if (options.models.size() > 1 && !options.against.empty())
    fail("--against is for one model, and " + std::to_string(options.models.size()) + " are given");
  const std::vector<std::string> usualPeers =
      options.isEconomics ? peerNames() : std::vector<std::string>{"ort", "openvino", "torch"};
  const std::vector<std::string> usualModes =
      options.isEconomics ? std::vector<std::string>{"reduce-overhead", "max-autotune"} : std::vector<std::string>();
  result.peers = checkNames(options.peers.value_or(usualPeers), peerNames(), "peer");
  result.modes = checkNames(options.modes.value_or(usualModes), modeNames(), "mode");
  result.modeSeconds = options.modeSeconds.value_or(result.modeSeconds);
  result.isEconomics = options.isEconomics;
  if (options.runsPerDay && !options.isEconomics)
    fail("--runs-per-day is for --economics, which is not given");
  if (options.modeSeconds && result.modes.empty())
    fail("--mode-seconds is for --modes, and there are none");
  for (const std::string &model : options.models)
    if ((options.isEconomics || !result.modes.empty()) && isArtifact(model))
      fail(std::string(options.isEconomics ? "--economics" : "--modes") + " is for models, as " + model +
           " is compiled already; give the model");
  return result;
}

/// What is written replaces nothing that is read.
void checkFiles(const Options &options) {
  std::vector<tc::ToolFile> inputs;
  for (const std::vector<std::string> &models : {options.models, options.against})
    for (const std::string &model : models)
      tc::addArtifactFiles(inputs, models == options.models ? "the model" : "the model of --against", model);
  inputs.push_back({"the file of --inputs", options.inputs});
  const std::string sentence = tc::findReplacedFile(inputs, {{"--json", options.json}, {"--html", options.html}});
  if (!sentence.empty())
    fail(sentence);
}

/// 2026-01-31 14:05:00 +0100
std::string localTime() {
  const std::time_t now = std::time(nullptr);
  std::tm fields = {};
  char text[64] = "";
  ::localtime_r(&now, &fields);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &fields);
  return text;
}

/// What a run of the tool has found, and what it says while it goes on.
class Run {
public:
  Run(const Options &options, const std::string &command)
      : options(options), dims(parseDims(options.dims)), benchmarkOptions(checkOptions(options)),
        isQuiet(options.json == "-" || options.html == "-") {
    checkFiles(options);
    std::vector<Sizes> sizes = combine(dims);
    if (sizes.size() > 1 && !options.inputs.empty())
      fail("--inputs have one size, and --dim gives several");
    benchmarkOptions.progress = [&](const std::string &text) { progress.show(text); };
    report.version = tcrt_version();
    report.machine = describeMachine();
    report.date = localTime();
    report.command = command;
    if (options.isEconomics)
      report.runsPerDay = options.runsPerDay.value_or(100000);
  }

  /// The exit code: that of the first model which failed, else 3 where outputs differ by more than --max-rel.
  int run() {
    for (const std::string &model : options.models) {
      try {
        measureModel(model);
      } catch (const Failure &failure) {
        progress.clear();
        if (!failure.message.empty())
          std::fprintf(stderr, "%s\n", failure.message.c_str());
        code = code ? code : failure.code;
      }
    }
    if (!options.json.empty() && !report.models.empty())
      writeText(options.json, toJson(report));
    if (!options.html.empty() && !report.models.empty())
      writeText(options.html, toHtml(report));
    return code ? code : differing;
  }

private:
  /// The machine is measured once a model is known to run.
  void measureMachine() {
    if (!report.rooflines.empty())
      return;
    progress.show("measuring the machine");
    if (benchmarkOptions.threads > 1)
      report.rooflines.push_back(measureRoofline(1));
    report.rooflines.push_back(measureRoofline(benchmarkOptions.threads));
    progress.clear();
    // The report goes to standard output unless that is taken.
    if (isQuiet)
      return;
    std::printf("%s\n", report.machine.c_str());
    for (const Roofline &roofline : report.rooflines)
      std::printf("machine, %s\n", rooflineText(roofline).c_str());
    std::fflush(stdout);
  }

  void measureModel(const std::string &model) {
    const size_t first = report.models.size();
    const std::vector<Sizes> all = combine(dims);
    std::unique_ptr<CompiledModel> compiled;
    for (const Sizes &sizes : all) {
      if (!compiled || options.isStatic)
        compiled = std::make_unique<CompiledModel>(model, benchmarkOptions, sizes);
      Benchmark benchmark(*compiled, benchmarkOptions, sizes);
      measureMachine();
      report.models.push_back(benchmark.measure());
      progress.clear();
      checkErrors(report.models.back());
    }
    if (isQuiet)
      return;
    if (all.size() == 1) {
      std::printf("\n%s", modelText(report, report.models.back()).c_str());
    } else {
      std::vector<std::string> listed;
      for (const auto &[name, sizes] : dims)
        if (sizes.size() > 1)
          listed.push_back(name);
      const auto begin = report.models.begin() + std::ptrdiff_t(first);
      std::printf("\n%s", sizesText({begin, report.models.end()}, listed).c_str());
    }
    if (report.runsPerDay)
      std::printf("%s",
                  economicsText(report, {report.models.begin() + std::ptrdiff_t(first), report.models.end()}).c_str());
    std::fflush(stdout);
  }

  void checkErrors(const ModelResult &result) {
    for (size_t i = 1; options.maxRel && i < result.engines.size(); ++i) {
      const EngineResult &engine = result.engines[i];
      if (!engine.problem.empty() || (engine.maxRelError && *engine.maxRelError <= *options.maxRel))
        continue;
      char error[64];
      std::snprintf(error, sizeof error, "by %.2g, allowed %.2g", engine.maxRelError.value_or(0), *options.maxRel);
      const std::string at = dims.empty() ? "" : " at " + sizesName(result.sizes);
      std::fprintf(stderr, "%s: error: the outputs of tc and %s differ%s: %s\n", result.model.c_str(),
                   engine.name.c_str(), at.c_str(), engine.maxRelError ? error : engine.difference.c_str());
      differing = 3;
    }
  }

  const Options &options;
  const DimSizes dims;
  BenchmarkOptions benchmarkOptions;
  const bool isQuiet;
  tc::run::StatusLine progress;
  Report report;
  int code = 0, differing = 0;
};

} // namespace

int main(int argc, char **argv) {
  Options options;
  tc::CommandLine app(
      "Times models with tc and, beside it, with ONNX Runtime, OpenVINO and PyTorch where they are installed for\n"
      "python3; shows each kernel of tc beside what the machine could do.",
      "tc-bench");
  app.get_formatter()->column_width(30);
  CLI::Option *models =
      app.add_option("MODEL", options.models, "models (.onnx, .pt2, .mlir), or artifacts of tc-compile");
  models->required()->type_name("");
  app.setExtensions(models, {"onnx", "pt2", "mlir", "bin"});
  auto add = [&](const char *group, const char *name, auto &value, const char *type, const char *text) {
    return app.add_option(name, value, text)->type_name(type)->group(group);
  };

  const char *group = "Inputs";
  add(group, "--dim", options.dims, "NAME=SIZE,...",
      "size of a symbolic dim, or several for a table over sizes: batch=1,8,32; can be repeated")
      ->allow_extra_args(false);
  app.add_flag("--static", options.isStatic, "compile for the sizes of --dim, so that operations and bytes are known")
      ->group(group);
  add(group, "--inputs", options.inputs, "FILE.npz", "the inputs; default: random ones");
  app.setWholeNumber(add(group, "--seed", options.seed, "N", "of the random inputs (default 0)"), 0, UINT64_MAX);

  group = "Engines";
  CLI::Option *option = add(group, "--peers", options.peers, "NAME,...", "");
  option->delimiter(',')->allow_extra_args(false);
  std::vector<std::string> peers = peerNames();
  peers.push_back("none");
  app.setChoices(option, "default: ort,openvino,torch (with --economics all); known: ", peers);
  option = add(group, "--against", options.against, "MODEL",
               "another artifact or model of the same inputs, in turns; can be repeated");
  option->allow_extra_args(false);
  app.setExtensions(option, {"onnx", "pt2", "mlir", "bin"});
  option = add(group, "--modes", options.modes, "MODE,...", "");
  option->delimiter(',')->allow_extra_args(false);
  std::vector<std::string> modes = modeNames();
  modes.push_back("none");
  app.setChoices(option, "other modes of tc-compile, in turns (with --economics the first two): ", modes);
  option = add(group, "--mode-seconds", options.modeSeconds, "SECONDS",
               "that compiling in such a mode may take (default 300)");
  app.setNumber(option, /*isPositive=*/true);
  add(group, "--python", options.python, "PROGRAM", "runs the peers (default python3)");
  add(group, "--cpu", options.cpu, "CPU", "tc-compile's --cpu (default native)");
  add(group, "--function", options.function, "NAME", "of the artifact (default: its first one)");

  group = "Measuring";
  app.setWholeNumber(add(group, "--threads", options.threads, "N", "default: one per usable core"), 1, 1024);
  app.setNumber(add(group, "--seconds", options.seconds, "SECONDS", "timing per engine, model and size (default 2)"));
  app.setNumber(add(group, "--max-rel", options.maxRel, "R", "largest error relative to a peer that is no failure"));

  app.add_flag("--economics", options.isEconomics,
               "whether compiling pays: costs before and of a run, break-even, memory, fusion, and what to do")
      ->group(group);
  option = add(group, "--runs-per-day", options.runsPerDay, "N", "for --economics (default 100000)");
  app.setNumber(option, /*isPositive=*/true);

  group = "Output";
  add(group, "--json", options.json, "FILE", "write all numbers (-: to standard output)");
  add(group, "--html", options.html, "FILE", "write a page with rooflines, kernels and times");

  app.addCommonOptions();
  app.footer("Examples:\n"
             "  tc-bench model.onnx --dim batch=8 --static           beside the peers that python3 finds\n"
             "  tc-bench model.onnx --peers none --html page.html    tc alone, with a page of rooflines\n"
             "  tc-bench model.onnx --dim batch=1,8,32               a table over sizes\n"
             "  tc-bench new.bin --against old.bin                   two artifacts in turns\n"
             "  tc-bench model.onnx --economics --runs-per-day 1e6   whether compiling pays, and when not\n\n"
             "Exit codes: 0 done; 1 wrong use or unreadable file; 2 a model needs what tc lacks; 3 outputs differ by\n"
             "more than --max-rel; 4 inputs refused; 5 this machine cannot run it; 6 internal error");
  int code;
  try {
    app.parse(argc, argv);
    code = Run(options, tc::describeCommand(argc, argv)).run();
  } catch (const CLI::Success &success) {
    std::fputs(app.describeSuccess(success).c_str(), stdout);
    if (std::fflush(stdout) == 0)
      return 0;
    std::fprintf(stderr, "tc-bench: error: standard output cannot be written\n");
    return 1;
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "tc-bench: error: %s; see tc-bench --help\n",
                 tc::describeParseError(app, error, "model").c_str());
    return 1;
  } catch (const Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
    return failure.code;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "tc-bench: error: no memory is left for the inputs and outputs\n");
    return 5;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "tc-bench: error: %s; please report this with the command line\n", problem.what());
    return 6;
  }
  if (std::fflush(stdout) != 0) {
    std::fprintf(stderr, "tc-bench: error: standard output cannot be written: %s\n", std::strerror(errno));
    return 1;
  }
  return code;
}
