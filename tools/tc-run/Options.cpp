//===- Options.cpp - tc-run's command line ------------------------------------------------------------------------===//
//
// Written out rather than with a library, because an optional value (--benchmark, --random-inputs) is given with '='
// only and the word after such an option must not be taken for it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Options.h"

#include "tc/Format/Container.h"
#include "tc/Run/Dump.h"
#include "tc/Run/Tensor.h"
#include "tc/Support/Suggest.h"
#include "tc/Support/ToolFiles.h"
#include "tcrt/artifact_abi.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <set>

using namespace tc::run;

tc::ToolText tc::run::describeTool() {
  const std::string inputs = "Inputs", outputs = "Outputs", functions = "Functions and states", machine = "Machine",
                    measuring = "Measuring", other = "Other";
  ToolText tool;
  tool.name = "tc-run";
  tool.summary = "Runs a compiled model and compares, writes, times or profiles what it computes.";
  tool.operands = {{{"ARTIFACT"}, "ARTIFACT", "a file written by tc-compile", "", {}, {"bin", "tune"}}};
  auto add = [&](const std::string &group, const std::string &name, const std::string &value,
                 const std::string &text) -> OptionText & {
    tool.options.push_back({{name}, value, text, group});
    return tool.options.back();
  };
  add(inputs, "--inputs", "FILE.npz", "arrays named after the model's inputs, or input_0, input_1, ... by position");
  add(inputs, "--input", "NAME=FILE", "one input from a .npy file or a .pb file (ONNX TensorProto); can be repeated")
      .isRepeated = true;
  add(inputs, "--random-inputs", "SEED",
      "floats N(0,1), integers in the range that the model implies, else 0 or 1; same seed, same bytes")
      .isOptional = true;
  add(inputs, "--dim", "NAME=SIZE",
      "size of a symbolic dim for --random-inputs (default: the smallest allowed from 1 on); can be repeated")
      .isRepeated = true;
  add(outputs, "--outputs", "FILE.npz", "write the outputs under the model's names");
  add(outputs, "--output-dir", "DIR", "write output_<i>.pb (ONNX TensorProto)");
  add(outputs, "--dump-values", "DIR[=PATTERN]",
      "write outputs, and what tc-compile --outputs has made outputs, as DIR/values.npz for tc-compare; those of a "
      "pattern: conv*");
  add(outputs, "--expect", "FILE.npz", "compare all outputs; exit code 3 if they differ");
  add(outputs, "--max-rel", "R", "with --expect: max|a-b| <= R*max|b| per output (default 1e-5)");
  add(outputs, "--rtol", "R", "with --expect, instead of --max-rel: |a-b| <= A+R*|b| per element");
  add(outputs, "--atol", "A", "with --expect: the A of that");
  add(functions, "--function", "NAME", "run this function of the artifact (default: its first)");
  add(functions, "--runs", "N", "run N times in a row, which states outlive; outputs are those of the last run");
  add(functions, "--seed", "N", "of the random numbers that the model draws (default 0); each run draws others");
  add(functions, "--state-in", "FILE.npz", "give the states that it names these values before the first run");
  add(functions, "--state-out", "FILE.npz", "write all states after the last run");
  add(machine, "--threads", "N", "default: one per usable core; 1 makes no thread");
  add(machine, "--device", "NAME",
      "cpu, cuda or cuda:INDEX; cuda,cpu: a CPU where the GPU cannot be used; default: cpu, or the one that the "
      "artifact is for");
  for (uint32_t device = 0; tcrt_device_name(device); ++device)
    tool.options.back().choices.push_back(tcrt_device_name(device));
  add(machine, "--cuda-graphs", "WHEN",
      "on: launches that come again are a CUDA graph; at-once: from the first time on; off. Default: as the model was "
      "compiled, else on")
      .choices = {"on", "at-once", "off"};
  add(machine, "--variant", "NAME", "run this variant whatever the machine's best");
  add(machine, "--verify-weights", "", "check the weights' hash, too");
  add(machine, "--verify-key", "KEY.pub",
      "run only what was signed with this key, or with one of those in the file (tc-sign)");
  add(machine, "--custom-op", "FILE.so",
      "a library with functions of custom operators (tcrt/function.h); can be repeated")
      .isRepeated = true;
  add(measuring, "--benchmark", "SECONDS", "time runs for about SECONDS (default 2) after a warm-up").isOptional = true;
  add(measuring, "--json", "FILE",
      "write as JSON which code ran (function, entry, variant) and what --benchmark and --profile measure (-: to "
      "standard output)");
  add(measuring, "--profile", "FILE.json",
      "time each kernel, node and group of nodes; with FILE.json write a Chrome trace, which ui.perfetto.dev opens")
      .isOptional = true;
  add(measuring, "--tune", "FILE.json",
      "measure what tc-compile --tuning-candidates wrote, given as ARTIFACT, and keep it for tc-compile --tuning-db; "
      "with --threads, --device and --json");
  add(measuring, "--usage", "FILE.json",
      "write how often each entry ran, and with which sizes; tc-inspect --usage says what to list with --dim");
  tool.options.push_back({{"-h", "--help"}, "", "this text", other});
  tool.options.push_back({{"--version"}, "", "versions of tc and LLVM, and tc's commit", other});
  tool.options.push_back(generateOption());
  tool.readFooter(
      R"(Indices that the model computes and that are out of range are clamped to the nearest element, or refused with exit code 4
where it was compiled with --check-bounds; tc-inspect tells which.

Examples:
  tc-run model.bin --random-inputs --dim batch=8
  tc-run model.bin --inputs x.npz --outputs y.npz
  tc-run model.bin --inputs x.npz --expect y.npz --max-rel 1e-4
  tc-run model.bin --random-inputs --dim batch=8 --benchmark
  tc-run model.tune --tune tuning.json

Exit codes: 0 done; 1 wrong use, unreadable or corrupt file; 3 outputs differ from --expect; 4 inputs refused; 5 this machine
cannot run it; 6 internal error)");
  return tool;
}

namespace {

[[noreturn]] void fail(const std::string &what) { throw Failure{1, "tc-run: error: " + what + "; see tc-run --help"}; }

double parseNumber(const std::string &option, const std::string &text) {
  char *end;
  errno = 0;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || errno == ERANGE || !std::isfinite(value) || value < 0)
    fail(option + " takes a number that is not negative, not \"" + text + "\"");
  return value;
}

uint64_t parseInteger(const std::string &option, const std::string &text, uint64_t most) {
  errno = 0;
  const uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || errno == ERANGE || value > most)
    fail(option + " takes a whole number up to " + std::to_string(most) + ", not \"" + text + "\"");
  return value;
}

/// Whether there are options of what is run, which --tune has no use for.
bool isForRuns(const Options &options) {
  return !options.inputs.empty() || !options.input.empty() || options.randomSeed || !options.dims.empty() ||
         !options.outputs.empty() || !options.outputDir.empty() || !options.expect.empty() ||
         !options.dumpDir.empty() || options.graphs != TCRT_GRAPHS_DEFAULT || !options.variant.empty() ||
         !options.function.empty() || options.runs != 1 || options.seed || !options.stateIn.empty() ||
         !options.stateOut.empty() || !options.customOps.empty() || options.benchmarkSeconds || options.profile ||
         !options.usage.empty() || options.verifyWeights || !options.verifyKey.empty() || options.deviceIndex != 0;
}

/// As the help has them.
std::vector<std::string> optionNames() {
  std::vector<std::string> names;
  for (const tc::OptionText &option : describeTool().options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

} // namespace

Options tc::run::parseOptions(int argc, char **argv) {
  Options options;
  bool onlyNames = false;
  std::string valueless; // an option whose value can be left out, and was
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (onlyNames || word == "-" || word.compare(0, 1, "-") != 0) {
      if (!options.artifact.empty())
        fail("only one artifact can be run, and \"" + word + "\" is another" +
             (valueless.empty() ? "" : "; a value of " + valueless + " is given with =, as in " + valueless + "=1"));
      options.artifact = word;
      continue;
    }
    if (word == "--") {
      onlyNames = true;
      continue;
    }
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    bool hasValue = equals != std::string::npos;
    std::string inlineValue = hasValue ? word.substr(equals + 1) : "";
    auto value = [&] {
      if (hasValue)
        return inlineValue;
      if (i + 1 >= argc)
        fail(name + " needs a value");
      return std::string(argv[++i]);
    };
    auto flag = [&] {
      if (hasValue)
        fail(name + " takes no value");
      return true;
    };
    if (name == "--inputs") {
      options.inputs = value();
    } else if (name == "--input") {
      options.input.push_back(value());
    } else if (name == "--random-inputs") {
      valueless = hasValue ? valueless : name;
      options.randomSeed = hasValue ? parseInteger(name, inlineValue, uint64_t(INT64_MAX)) : 0;
    } else if (name == "--seed") {
      options.seed = parseInteger(name, value(), UINT64_MAX);
    } else if (name == "--dim") {
      std::string text = value();
      size_t at = text.rfind('=');
      if (at == std::string::npos || at == 0)
        fail("--dim takes NAME=SIZE, not \"" + text + "\"");
      for (const auto &[name, size] : options.dims)
        if (name == text.substr(0, at))
          fail("--dim gives \"" + name + "\" twice; give each dim one size");
      options.dims.emplace_back(text.substr(0, at),
                                int64_t(parseInteger(name, text.substr(at + 1), uint64_t(INT64_MAX))));
    } else if (name == "--outputs") {
      options.outputs = value();
    } else if (name == "--output-dir") {
      options.outputDir = value();
    } else if (name == "--dump-values") {
      const std::string text = value();
      const size_t at = text.find('=');
      options.dumpDir = text.substr(0, at);
      options.dumpPattern = at == std::string::npos ? "" : text.substr(at + 1);
      if (options.dumpDir.empty() || (at != std::string::npos && options.dumpPattern.empty()))
        fail("--dump-values takes DIR or DIR=PATTERN, not \"" + text + "\"");
    } else if (name == "--expect") {
      options.expect = value();
    } else if (name == "--max-rel") {
      options.maxRel = parseNumber(name, value());
    } else if (name == "--rtol") {
      options.rtol = parseNumber(name, value());
    } else if (name == "--atol") {
      options.atol = parseNumber(name, value());
    } else if (name == "--threads") {
      options.threads = uint32_t(parseInteger(name, value(), 1024));
      if (options.threads == 0)
        fail("--threads takes a number from 1 on");
    } else if (name == "--device") {
      const std::string given = value();
      std::string text = given;
      if (const size_t comma = text.rfind(",cpu"); comma != std::string::npos && comma + 4 == text.size()) {
        text.resize(comma);
        options.isCpuAllowed = true;
      }
      const size_t colon = text.find(':');
      uint32_t device = 0;
      while (tcrt_device_name(device) && text.substr(0, colon) != tcrt_device_name(device))
        ++device;
      options.isCuda = device == TCRT_DEVICE_CUDA;
      options.isDeviceGiven = true;
      if (!tcrt_device_name(device) || ((colon != std::string::npos || options.isCpuAllowed) && !options.isCuda))
        fail("--device takes cpu, cuda, cuda:INDEX or one of the last two with ,cpu behind it, not \"" + given + "\"");
      if (colon != std::string::npos)
        options.deviceIndex = int32_t(parseInteger(name, text.substr(colon + 1), 1023));
    } else if (name == "--cuda-graphs") {
      const std::string text = value();
      options.graphs = text == "on"        ? TCRT_GRAPHS_ON
                       : text == "at-once" ? TCRT_GRAPHS_AT_ONCE
                       : text == "off"     ? TCRT_GRAPHS_OFF
                                           : TCRT_GRAPHS_DEFAULT;
      if (options.graphs == TCRT_GRAPHS_DEFAULT)
        fail("--cuda-graphs takes on, at-once or off, not \"" + text + "\"");
    } else if (name == "--function") {
      options.function = value();
      if (options.function.empty())
        fail("--function takes the name of a function");
    } else if (name == "--runs") {
      options.runs = parseInteger(name, value(), uint64_t(INT64_MAX));
      if (options.runs == 0)
        fail("--runs takes a number from 1 on");
    } else if (name == "--state-in") {
      options.stateIn = value();
    } else if (name == "--state-out") {
      options.stateOut = value();
    } else if (name == "--custom-op") {
      options.customOps.push_back(value());
    } else if (name == "--variant") {
      options.variant = value();
    } else if (name == "--benchmark") {
      valueless = hasValue ? valueless : name;
      options.benchmarkSeconds = hasValue ? parseNumber(name, inlineValue) : 2.0;
    } else if (name == "--json") {
      options.json = value();
    } else if (name == "--profile") {
      valueless = hasValue ? valueless : name;
      options.profile = true;
      options.trace = inlineValue;
      if (hasValue && options.trace.empty())
        fail("--profile= takes the name of a file for the trace");
    } else if (name == "--usage") {
      options.usage = value();
    } else if (name == "--verify-weights") {
      options.verifyWeights = flag();
    } else if (name == "--verify-key") {
      options.verifyKey = value();
      if (options.verifyKey.empty())
        fail("--verify-key takes the file of a public key");
    } else if (name == "--tune") {
      options.tune = value();
      if (options.tune.empty())
        fail("--tune takes the file of a tuning database");
    } else if (name == "--generate") {
      const std::string what = value();
      options.generated = generate(describeTool(), what);
      if (options.generated.empty())
        fail("--generate takes bash, zsh, fish or man, not \"" + what + "\"");
    } else if (name == "--help" || name == "-h") {
      options.help = flag();
    } else if (name == "--version") {
      options.version = flag();
    } else {
      fail("there is no option " + name + tc::didYouMean(name, optionNames()));
    }
  }
  if (options.help || options.version || !options.generated.empty())
    return options;
  if (options.artifact.empty())
    fail("no artifact is given");
  if (!options.tune.empty() && isForRuns(options))
    fail("--tune measures kernels, each alone, and goes with --threads, --device and --json only");
  if (options.maxRel && (options.rtol || options.atol))
    fail("--max-rel and --rtol/--atol exclude each other");
  if ((options.maxRel || options.rtol || options.atol) && options.expect.empty())
    fail("--max-rel, --rtol and --atol need --expect");
  return options;
}

void tc::run::checkFiles(const Options &options) {
  std::vector<ToolFile> inputs, outputs;
  addArtifactFiles(inputs, "the artifact", options.artifact);
  inputs.push_back({"the file of --inputs", options.inputs});
  // Names of inputs may hold '=', so that each rest may be the path.
  for (const std::string &text : options.input)
    for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
      inputs.push_back({"the file of --input", text.substr(at + 1)});
  inputs.push_back({"the file of --expect", options.expect});
  inputs.push_back({"the file of --state-in", options.stateIn});
  for (const std::string &path : options.customOps)
    inputs.push_back({"the file of --custom-op", path});
  inputs.push_back({"the key", options.verifyKey});
  inputs.push_back({"the tuning database", options.tune});
  outputs.push_back({"--outputs", options.outputs});
  outputs.push_back({"--state-out", options.stateOut, "the file of --state-in"}); // to go on where it stopped
  outputs.push_back({"--json", options.json});
  outputs.push_back({"--profile", options.trace});
  outputs.push_back({"--usage", options.usage});
  outputs.push_back({"--tune", options.tune, "the tuning database"});
  if (!options.dumpDir.empty())
    for (const std::string &path : {dumpedValuesFile(options.dumpDir), dumpedInputsFile(options.dumpDir)})
      outputs.push_back({"--dump-values", path, "", true});
  // How many there are, the artifact says.
  if (!options.outputDir.empty()) {
    std::set<std::string> names;
    for (const std::vector<ToolFile> &files : {inputs, outputs})
      for (const ToolFile &file : files)
        names.insert(file.path.substr(file.path.rfind('/') + 1));
    for (const std::string &name : names)
      if (name.size() > 10 && name.compare(0, 7, "output_") == 0 && name.compare(name.size() - 3, 3, ".pb") == 0)
        outputs.push_back({"--output-dir", options.outputDir + "/" + name, "", true});
  }
  if (const std::string sentence = findReplacedFile(inputs, outputs); !sentence.empty())
    fail(sentence);
}
