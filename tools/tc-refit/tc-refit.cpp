//===- tc-refit.cpp - an artifact with other weights --------------------------------------------------------------===//
//
// Reads the command line and calls tc-compile --refit, which stands beside it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/CommandLine.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

const char *const examplesAndCodes =
    R"(What is written is what tc-compile would write from MODEL with the options of ARTIFACT, byte for byte, without a compile: the
phases that fold and place weights run, and the code is taken where it would be the same. Where it would not be (other sizes, the
bias of a kernel that no other node shares, which is in its code, schedules that were measured), the message says so, and nothing is
written.

Examples:
  tc-refit model.bin new.onnx -o new.bin        model.bin with the weights of new.onnx

Exit codes: 0 done; 1 wrong use, unreadable or ill-formed input, another model; 2 the model needs what tc lacks; 5 this machine
cannot do it, or no memory is left; 6 internal error)";

int fail(const std::string &sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  return 1;
}

/// tc-compile beside this program, else the one that PATH finds.
std::string findCompiler() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length > 0 && length < ssize_t(sizeof path)) {
    std::string beside(path, size_t(length));
    beside = beside.substr(0, beside.rfind('/') + 1) + "tc-compile";
    if (::access(beside.c_str(), X_OK) == 0)
      return beside;
  }
  return "tc-compile";
}

} // namespace

int main(int argc, char **argv) {
  std::string artifact, model, output, jobs;
  bool isQuiet = false, isVerbose = false, verifies = false;
  tc::CommandLine app("Puts the weights of a model into an artifact of the same model, without compiling it anew.",
                      "tc-refit");
  app.get_formatter()->column_width(30);
  CLI::Option *option = app.add_option("ARTIFACT", artifact, "what tc-compile wrote from the model with other weights");
  option->required()->type_name("");
  app.setExtensions(option, {"bin"});
  option = app.add_option("MODEL", model, "the model with the weights to take: .onnx, .pt2, .pt");
  option->required()->type_name("");
  app.setExtensions(option, {"onnx", "pt2", "pt"});
  app.add_option("-o,--output", output, "the artifact to write, which may be ARTIFACT")->type_name("OUT")->required();
  option = app.add_option("--jobs", jobs, "threads that arrange weights (default: all cores)");
  app.setWholeNumber(option->type_name("N"));
  app.add_flag("--verify", verifies, "compare what is written with the model in float64, on this machine");
  app.add_flag("-q,--quiet", isQuiet, "print no summary");
  app.add_flag("-v,--verbose", isVerbose, "print the time of each phase");
  app.addCommonOptions();
  app.footer(examplesAndCodes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    std::fputs(app.describeSuccess(success).c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : fail("tc-refit: error: standard output cannot be written");
  } catch (const CLI::ParseError &error) {
    const char *missing = artifact.empty() ? "artifact" : model.empty() ? "model" : "output (-o OUT)";
    return fail("tc-refit: error: " + tc::describeParseError(app, error, missing) + "; see tc-refit --help");
  }
  std::vector<std::string> words = {"tc-compile", "--refit", artifact, "-o", output};
  if (!jobs.empty())
    words.insert(words.end(), {"--jobs", jobs});
  for (auto [flag, given] :
       {std::pair("--verify", verifies), std::pair("-q", isQuiet), std::pair("--verbose", isVerbose)})
    if (given)
      words.push_back(flag);
  // A name that begins with a dash is no option.
  words.insert(words.end(), {"--", model});
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string compiler = findCompiler();
  ::execvp(compiler.c_str(), arguments.data());
  return fail("tc-refit: error: " + compiler + " cannot be started: " + std::strerror(errno));
}
