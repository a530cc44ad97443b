//===- tc-compare.cpp - where two runs begin to differ ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Compare.h"
#include "tc/Run/Dump.h"
#include "tc/Run/Npz.h"
#include "tc/Run/Session.h"
#include "tc/Support/CommandLine.h"

#include "tcrt/artifact_abi.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace tc::run;
using Json = nlohmann::ordered_json;

namespace {

enum ExitCode { kDone = 0, kWrongUse = 1, kDiffers = 3, kInternal = 6 };

const char *const examplesAndCodes =
    R"(B is what is expected. Values are compared by their names, in the order of A, in which a model computes them.

Examples:
  tc-compile model.onnx -o a.bin --outputs '*'             all values inside of the model are outputs, too
  tc-compile model.onnx -o b.bin --outputs '*' --target reference
  tc-compare a.bin b.bin                                   on random inputs, the same for both
  tc-run a.bin --inputs x.npz --dump-values a              a dump: values.npz and inputs.npz in a folder
  tc-compare a b.bin --max-rel 1e-3                        b.bin gets the inputs of the dump
  tc-compare a/values.npz from-numpy.npz

Exit codes: 0 the same; 1 wrong use, unreadable input; 3 they differ; 4 inputs refused; 5 this machine cannot run it;
6 internal error)";

/// Of differences that are told without --all.
constexpr size_t kMostTold = 10;

struct Request {
  std::string paths[2];
  std::string inputs;
  uint64_t seed = 0;
  std::vector<std::string> dims;
  std::optional<double> maxRel, rtol, atol;
  uint32_t threads = 0;
  bool all = false, asJson = false;
};

struct Side {
  NamedTensors values;
  size_t left = 0; ///< values that are no tensors of numbers
};

bool isFolder(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool isArtifact(const std::string &path) {
  char magic[TCRT_MAGIC_SIZE] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic, sizeof magic) && std::memcmp(magic, TCRT_MAGIC, sizeof magic) == 0;
}

SessionOptions makeOptions(const Request &request, const std::string &path) {
  SessionOptions options;
  options.artifact = path;
  options.threads = request.threads;
  options.isCuda = isOnlyFor(path, TCRT_DEVICE_CUDA);
  for (const std::string &text : request.dims) {
    const size_t at = text.rfind('=');
    char *end = nullptr;
    errno = 0;
    const long long size = at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + 1, &end, 10);
    if (at == std::string::npos || at == 0 || size < 0 || *end || errno)
      throw Failure{kWrongUse, "tc-compare: error: --dim takes NAME=SIZE, not \"" + text + "\""};
    options.dims.emplace_back(text.substr(0, at), size);
  }
  return options;
}

class Comparer {
public:
  explicit Comparer(const Request &request) : request(request) {}

  int run() {
    // The one that is expected decides about the inputs.
    for (int k : {1, 0})
      load(k);
    std::map<std::string, const Tensor *> expected;
    for (const auto &[name, tensor] : sides[1].values)
      expected.emplace(name, &tensor);
    Tolerance tolerance;
    if (request.rtol || request.atol) {
      tolerance.rtol = request.rtol.value_or(0);
      tolerance.atol = request.atol.value_or(0);
    } else {
      tolerance.maxRel = request.maxRel.value_or(1e-5);
    }
    size_t compared = 0, differing = 0, onlyInA = 0;
    std::string worst;
    double worstBadness = -1;
    Json differences = Json::array();
    for (const auto &[name, tensor] : sides[0].values) {
      auto other = expected.find(name);
      if (other == expected.end()) {
        ++onlyInA;
        continue;
      }
      const Comparison result = compare(tensor, *other->second, tolerance);
      expected.erase(other);
      ++compared;
      if (result.badness > worstBadness)
        worstBadness = result.badness, worst = "\"" + name + "\": " + result.message;
      if (result.isEqual)
        continue;
      if (request.asJson)
        differences.push_back({{"name", name}, {"what", result.message}});
      else if (differing < kMostTold || request.all)
        std::printf("%s \"%s\": %s\n", differing ? "then" : "first difference:", name.c_str(), result.message.c_str());
      ++differing;
    }
    if (!compared)
      throw Failure{kWrongUse, request.paths[0] + ": error: it has no value of a name that " + request.paths[1] +
                                   " has, too; give two dumps or artifacts of one model"};
    const std::string counts = describe(compared, differing, onlyInA, expected.size());
    if (request.asJson)
      std::printf("%s\n", Json{{"compared", compared},
                               {"differing", differing},
                               {"only_in_a", onlyInA},
                               {"only_in_b", expected.size()},
                               {"differences", differences}}
                              .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)
                              .c_str());
    else
      std::printf("%s: %s%s\n", differing ? "FAILED" : "ok", counts.c_str(),
                  differing ? "" : ("; worst: " + worst).c_str());
    return differing ? kDiffers : kDone;
  }

private:
  void load(int k) {
    const std::string &path = request.paths[k];
    if (!isArtifact(path)) {
      sides[k].values = readNpz(isFolder(path) ? dumpedValuesFile(path) : path);
      return;
    }
    const std::string &other = request.paths[1 - k];
    Session session(makeOptions(request, path));
    if (!request.inputs.empty())
      session.readInputs(request.inputs);
    else if (isFolder(other))
      session.readInputs(dumpedInputsFile(other));
    for (const auto &[name, tensor] : inputs)
      for (uint32_t i = 0; i < session.inputInfo().size(); ++i)
        if (name == session.inputInfo()[i].name && !session.inputs()[i])
          session.setInput(i, tensor);
    session.makeRandomInputs(request.seed);
    for (size_t i = 0; i < session.inputs().size(); ++i)
      if (session.inputs()[i])
        inputs.emplace_back(session.inputInfo()[i].name, *session.inputs()[i]);
    session.firstRun();
    sides[k].values = dumpedValues(session, sides[k].left);
  }

  std::string describe(size_t compared, size_t differing, size_t onlyInA, size_t onlyInB) const {
    std::string text = differing ? std::to_string(differing) + " of " + std::to_string(compared) + " values differ"
                                 : std::to_string(compared) + (compared == 1 ? " value agrees" : " values agree");
    if (differing > kMostTold && !request.all)
      text += " (--all tells each)";
    const std::pair<size_t, const std::string *> only[] = {{onlyInA, &request.paths[0]}, {onlyInB, &request.paths[1]}};
    for (auto [count, path] : only)
      if (count)
        text += ", " + std::to_string(count) + " only in " + *path;
    if (const size_t left = sides[0].left + sides[1].left)
      text += ", " + std::to_string(left) + " left out that are no tensors of numbers";
    return text;
  }

  const Request &request;
  Side sides[2];
  NamedTensors inputs; ///< of the side that ran first
};

int fail(const Failure &failure) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", failure.message.c_str());
  return failure.code;
}

int runTool(int argc, char **argv) {
  Request request;
  tc::CommandLine app("Says where two runs of a model begin to differ.", "tc-compare");
  app.get_formatter()->column_width(30);
  CLI::Option *a = app.add_option("A", request.paths[0], "a dump of tc-run (folder), an .npz file, or an artifact");
  CLI::Option *b = app.add_option("B", request.paths[1], "the same, which is expected");
  for (CLI::Option *side : {a, b}) {
    side->required()->type_name("");
    app.setExtensions(side, {"npz", "bin"});
  }
  const char *ofArtifacts = "Inputs of artifacts";
  app.add_option("--inputs", request.inputs,
                 "arrays named after the model's inputs (default: those of the other's dump)")
      ->type_name("FILE.npz")
      ->group(ofArtifacts);
  CLI::Option *option = app.add_option("--seed", request.seed, "of random inputs, where none are given (default: 0)");
  option->type_name("N")->group(ofArtifacts);
  app.setWholeNumber(option, 0, UINT64_MAX);
  app.add_option("--dim", request.dims, "size of a symbolic dim of random inputs; can be repeated")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false)
      ->group(ofArtifacts);
  option = app.add_option("--threads", request.threads, "of each run (default: one per usable core)");
  option->type_name("N")->group(ofArtifacts);
  app.setWholeNumber(option, 1, 1024);
  const char *differences = "Differences";
  option = app.add_option("--max-rel", request.maxRel, "allowed is max|a-b| <= R*max|b| per value (default 1e-5)");
  app.setNumber(option->type_name("R")->group(differences));
  option = app.add_option("--rtol", request.rtol, "instead: |a-b| <= A+R*|b| per element");
  app.setNumber(option->type_name("R")->group(differences));
  option = app.add_option("--atol", request.atol, "the A of that");
  app.setNumber(option->type_name("A")->group(differences));
  app.add_flag("--all", request.all, "tell each value that differs, not the first ten")->group(differences);
  app.add_flag("--json", request.asJson, "all of it as JSON")->group(differences);
  app.addCommonOptions();
  app.footer(examplesAndCodes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    std::cout << app.describeSuccess(e);
    std::cout.flush();
    return std::cout ? kDone
                     : fail({kWrongUse, "tc-compare: error: standard output cannot be written: it is full or closed"});
  } catch (const CLI::ParseError &e) {
    const bool isMissing = dynamic_cast<const CLI::RequiredError *>(&e);
    return fail({kWrongUse, "tc-compare: error: " +
                                (isMissing ? "two dumps or artifacts are to be given"
                                           : tc::describeParseError(app, e, "pair of dumps or artifacts")) +
                                "; see tc-compare --help"});
  }
  if (request.maxRel && (request.rtol || request.atol))
    return fail({kWrongUse, "tc-compare: error: --max-rel and --rtol/--atol exclude each other"});
  return Comparer(request).run();
}

} // namespace

int main(int argc, char **argv) {
  int code;
  try {
    code = runTool(argc, argv);
  } catch (const Failure &failure) {
    return fail(failure);
  } catch (const std::bad_alloc &) {
    return fail({5, "tc-compare: error: no memory is left for the values"});
  } catch (const std::exception &problem) {
    return fail({kInternal, std::string("tc-compare: error: ") + problem.what() +
                                "; please report this with the command line and the files"});
  }
  if (std::fflush(stdout) != 0)
    return fail({kWrongUse, "tc-compare: error: standard output cannot be written: it is full or closed"});
  return code;
}
