//===- tc-bench.cpp - tc and its peers side by side ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Benchmark.h"
#include "tc/Bench/Peers.h"
#include "tc/Run/Session.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ToolVersion.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <sched.h>
#include <unistd.h>

using namespace tc::bench;
using tc::run::Failure;

namespace {

struct Options {
  std::vector<std::string> models, against, dims, peers = {"ort", "openvino", "torch"};
  uint32_t threads = 0;
  double seconds = 2;
  std::string cpu = "native", inputs, json, html, python = "python3";
  uint64_t seed = 0;
  std::optional<double> maxRel;
  bool isStatic = false;
  std::string function;
};

[[noreturn]] void fail(const std::string &what) {
  throw Failure{1, "tc-bench: error: " + what + "; see tc-bench --help"};
}

uint32_t usableCores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? uint32_t(CPU_COUNT(&set)) : 1;
}

/// The tc-compile beside this program, wherever it is installed.
std::string findCompiler() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (error ? std::filesystem::path("tc-compile") : self.parent_path() / "tc-compile").string();
}

/// One line on a terminal, written over by the next; nothing elsewhere.
class Progress {
public:
  void show(const std::string &text) const {
    if (isTerminal)
      std::fprintf(stderr, "\r%-78.78s", text.c_str());
  }
  void clear() const {
    if (isTerminal)
      std::fprintf(stderr, "\r%78s\r", "");
  }

private:
  const bool isTerminal = ::isatty(STDERR_FILENO);
};

void writeText(const std::string &path, const std::string &text) {
  if (path == "-")
    std::fputs(text.c_str(), stdout);
  else
    tc::run::writeFile(path, {text.begin(), text.end()});
}

BenchmarkOptions checkOptions(const Options &options) {
  BenchmarkOptions result;
  result.compiler = findCompiler();
  result.python = options.python;
  result.cpu = options.cpu;
  result.threads = options.threads ? options.threads : usableCores();
  result.seconds = options.seconds;
  result.inputs = options.inputs;
  result.against = options.against;
  result.seed = options.seed;
  result.isStatic = options.isStatic;
  result.function = options.function;
  if (options.models.empty())
    fail("no model is given");
  if (options.models.size() > 1 && !options.inputs.empty())
    fail("--inputs is for one model, and " + std::to_string(options.models.size()) + " are given");
  if (options.models.size() > 1 && !options.against.empty())
    fail("--against is for one model, and " + std::to_string(options.models.size()) + " are given");
  for (const std::string &name : options.peers) {
    if (name == "none")
      continue;
    const std::vector<std::string> &known = peerNames();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string names;
      for (const std::string &peer : known)
        names += (names.empty() ? "" : ", ") + peer;
      fail("there is no peer \"" + name + "\"; peers are " + names + ", or none");
    }
    result.peers.push_back(name);
  }
  for (const std::string &text : options.dims) {
    size_t at = text.rfind('=');
    std::string size = at == std::string::npos ? "" : text.substr(at + 1);
    if (at == 0 || size.empty() || size.size() > 18 || size.find_first_not_of("0123456789") != std::string::npos)
      fail("--dim takes NAME=SIZE, not \"" + text + "\"");
    for (const auto &[name, known] : result.dims)
      if (text.compare(0, at, name) == 0)
        fail("--dim gives \"" + name + "\" twice; give each dim one size");
    result.dims.emplace_back(text.substr(0, at), std::stoll(size));
  }
  return result;
}

/// The exit code: that of the first model which failed, else 3 where outputs differ by more than --max-rel.
int runTool(const Options &options) {
  BenchmarkOptions benchmarkOptions = checkOptions(options);
  Progress progress;
  benchmarkOptions.progress = [&](const std::string &text) { progress.show(text); };
  // The report goes to standard output unless that is taken.
  bool isQuiet = options.json == "-" || options.html == "-";
  Report report;
  report.version = tcrt_version();
  progress.show("measuring the machine");
  if (benchmarkOptions.threads > 1)
    report.rooflines.push_back(measureRoofline(1));
  report.rooflines.push_back(measureRoofline(benchmarkOptions.threads));
  progress.clear();
  if (!isQuiet)
    for (const Roofline &roofline : report.rooflines)
      std::printf("machine, %s\n", rooflineText(roofline).c_str());
  int code = 0, differing = 0;
  for (const std::string &model : options.models) {
    try {
      report.models.push_back(benchmark(model, benchmarkOptions));
    } catch (const Failure &failure) {
      progress.clear();
      if (!failure.message.empty())
        std::fprintf(stderr, "%s\n", failure.message.c_str());
      code = code ? code : failure.code;
      continue;
    }
    progress.clear();
    const ModelResult &result = report.models.back();
    if (!isQuiet)
      std::printf("\n%s", modelText(report, result).c_str());
    std::fflush(stdout);
    for (size_t i = 1; options.maxRel && i < result.engines.size(); ++i) {
      const EngineResult &engine = result.engines[i];
      if (!engine.problem.empty() || (engine.maxRelError && *engine.maxRelError <= *options.maxRel))
        continue;
      char error[64];
      std::snprintf(error, sizeof error, "by %.2g, allowed %.2g", engine.maxRelError.value_or(0), *options.maxRel);
      std::fprintf(stderr, "%s: error: the outputs of tc and %s differ: %s\n", model.c_str(), engine.name.c_str(),
                   engine.maxRelError ? error : engine.difference.c_str());
      differing = 3;
    }
  }
  if (!options.json.empty())
    writeText(options.json, toJson(report));
  if (!options.html.empty())
    writeText(options.html, toHtml(report));
  return code ? code : differing;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app(
      "Times models with tc and, beside it, with ONNX Runtime, OpenVINO and PyTorch where they are installed for\n"
      "python3; shows each kernel of tc beside what the machine could do.",
      "tc-bench");
  app.add_option("MODEL", options.models, "models, or artifacts of tc-compile");
  app.add_option("--threads", options.threads, "default: one per usable core")->check(CLI::Range(1, 1024));
  app.add_option("--seconds", options.seconds, "timing per engine and model (default 2)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--peers", options.peers, "ort, openvino, torch (default), inductor; or none")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--against", options.against,
                 "another artifact or model of the same inputs, in turns; can be repeated")
      ->allow_extra_args(false);
  app.add_option("--cpu", options.cpu, "tc-compile's --cpu (default native)");
  app.add_option("--function", options.function, "of the artifact (default: its first one)");
  app.add_option("--inputs", options.inputs, ".npz with the inputs; default: random ones");
  app.add_option("--seed", options.seed, "of the random inputs");
  app.add_option("--dim", options.dims, "NAME=SIZE of a symbolic dim; can be repeated")->allow_extra_args(false);
  app.add_flag("--static", options.isStatic, "compile for the sizes of --dim, so that operations and bytes are known");
  app.add_option("--max-rel", options.maxRel, "largest error relative to a peer that is no failure");
  app.add_option("--python", options.python, "runs the peers (default python3)");
  app.add_option("--json", options.json, "write all numbers (\"-\": to standard output)");
  app.add_option("--html", options.html, "write a page with roofline plots");
  app.set_help_flag("-h,--help", "this text");
  app.set_version_flag("--version", tc::getVersionText("tc-bench"), "versions of tc and LLVM, and tc's commit");
  app.footer("Examples:\n"
             "  tc-bench model.onnx --dim batch=8 --static           beside the peers that python3 finds\n"
             "  tc-bench model.onnx --peers none --html page.html    tc alone, with a page of rooflines\n"
             "  tc-bench new.bin --against old.bin                   two artifacts in turns\n\n"
             "Exit codes: 0 done; 1 wrong use or unreadable file; 2 a model needs what tc lacks; 3 outputs differ by\n"
             "more than --max-rel; 4 inputs refused; 5 this machine cannot run it; 6 internal error");
  int code;
  try {
    app.parse(argc, argv);
    code = runTool(options);
  } catch (const CLI::Success &success) {
    std::fputs(tc::describeSuccess(app, success).c_str(), stdout);
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
