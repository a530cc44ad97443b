//===- tc-reduce.cpp - the smallest model that fails in the same way ----------------------------------------------===//
//
// Reads the command line, lets tc-compile import the model, and searches.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Reduce/CompilerJudge.h"
#include "tc/Reduce/Reduce.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ToolFiles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <mutex>

using namespace tc;
using namespace tc::reduce;

namespace {

enum ExitCode { kDone = 0, kWrongUse = 1, kMachine = 5 };

const char *const examplesAndCodes = R"(Examples:
  tc-reduce model.onnx -o small                            the failure of: tc-compile model.onnx -o FILE
  tc-reduce model.pt2 -o small --verify -- --cpu native    a result that differs; options of tc-compile behind --
  tc-reduce model.onnx -o small --after prim               only what fails up to phase prim
  tc-reduce model.onnx -o small --message "is not supported"
                                                           the error that counts, where there are several
  tc-reduce model.onnx -o small --command 'python3 differs.py {onnx}'
                                                           what a command of yours calls interesting: exit code 0

Exit codes: 0 done; 1 wrong use, unreadable input, or nothing fails; 5 this machine cannot do it)";

int fail(const llvm::Twine &sentence, ExitCode code = kWrongUse) {
  std::cout.flush();
  std::cerr << printable(sentence.str()) << "\n";
  return code;
}

volatile std::sig_atomic_t interrupted = 0;

/// What was found so far is written; a second signal ends it at once.
void onInterrupt(int) { interrupted = 1; }

struct Request {
  std::string model, output, after, message, command, memory = "8G";
  std::optional<int> code;
  bool verify = false, verbose = false;
  unsigned jobs = 0, seconds = 60;
  uint64_t tries = 10000;
  std::vector<std::string> options; ///< of tc-compile
};

std::string describe(const ModuleSize &size) {
  auto count = [](size_t number, const char *what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string text =
      count(size.nodes, "node") + ", " + count(size.inputs, "input") + ", " + count(size.outputs, "output");
  return size.constantBytes ? text + ", " + llvm::formatv("{0:n0} bytes of constants", size.constantBytes).str() : text;
}

class Tool {
public:
  explicit Tool(const Request &request) : request(request), start(std::chrono::steady_clock::now()) {
    // What the conversion makes to find types, too.
    context.loadDialect<base::TCDialect, graph::GraphDialect, prim::PrimDialect, mlir::func::FuncDialect>();
  }
  int run();

private:
  int prepare();
  int load();
  int judgeFirst();
  bool judge(const std::string &path);
  std::string getCommand(const std::string &path) const;
  llvm::Error write(mlir::ModuleOp module);
  std::string where() const { return request.model + ": error: "; }

  const Request &request;
  std::chrono::steady_clock::time_point start;
  CompilerJudge compiler;
  Outcome first;
  std::string stem, folder;
  bool isOnnx = false;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> optionsOf; ///< of candidates, by their path
};

int Tool::prepare() {
  const std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<256> program(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(program, "tc-compile");
  if (!llvm::sys::fs::can_execute(program))
    return fail(
        "tc-reduce: error: there is no tc-compile beside it, which judges the models; install both into one folder",
        kMachine);
  compiler.program = program.str().str();
  compiler.after = request.after;
  compiler.verify = request.verify;
  compiler.message = request.message;
  compiler.limits.seconds = request.seconds;
  llvm::StringRef memory = request.memory;
  double number = 0;
  const bool isMega = memory.ends_with("M");
  if (!(isMega || memory.ends_with("G")) || memory.drop_back().getAsDouble(number) || number <= 0)
    return fail("tc-reduce: error: --memory " + request.memory + " is no size; give one such as 500M or 8G");
  compiler.limits.moreBytes = uint64_t(number * (isMega ? 1 << 20 : 1 << 30));
  stem = request.output;
  for (llvm::StringRef extension : {".mlir", ".onnx"})
    if (llvm::StringRef(stem).ends_with(extension))
      stem.resize(stem.size() - extension.size());
  if (const std::string sentence =
          findReplacedFile({{"the model", request.model}, {"the model's constants", request.model + ".data"}},
                           {{"-o", stem + ".mlir"}, {"-o", stem + ".mlir.data"}, {"-o", stem + ".onnx"}});
      !sentence.empty())
    return fail("tc-reduce: error: " + sentence);
  llvm::SmallString<128> scratch;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("tc-reduce", scratch))
    return fail("tc-reduce: error: no folder for candidates can be made: " + error.message() + "; set TMPDIR",
                kMachine);
  folder = scratch.str().str();
  return kDone;
}

/// Options of tc-compile for the import of the model. What quantises it would be done again to each candidate, and what
/// writes more than a module wants an artifact.
std::vector<std::string> getOptionsOfImport(llvm::ArrayRef<std::string> options) {
  const llvm::StringMap<bool> left = {// whether a value follows
                                      {"--quantize", true},          {"--calibrate", true},
                                      {"--calibrate-method", true},  {"--quantize-exclude", true},
                                      {"--quantize-budget", true},   {"--quantized-model", true},
                                      {"--tuning-candidates", true}, {"--external-weights", false}};
  std::vector<std::string> result;
  for (size_t i = 0; i < options.size(); ++i) {
    auto [name, value] = llvm::StringRef(options[i]).split('=');
    const auto found = left.find(name);
    if (found == left.end())
      result.push_back(options[i]);
    else if (found->second && name.size() == options[i].size())
      ++i; // the value is the next word
  }
  return result;
}

/// The module of phase import, made by tc-compile where the model is of another form.
int Tool::load() {
  std::string path = request.model;
  if (!llvm::StringRef(path).ends_with(".mlir")) {
    isOnnx = !llvm::StringRef(path).ends_with(".pt2") && !llvm::StringRef(path).ends_with(".pt");
    path = folder + "/model.mlir";
    std::vector<std::string> words = {compiler.program, request.model, "-q", "-o", path, "--compile-to=import"};
    llvm::append_range(words, getOptionsOfImport(request.options));
    ProgramResult result = runProgram(compiler.limits, words);
    if (result.end != ProgramResult::End::Exited || result.code != 0) {
      const std::string last = llvm::StringRef(result.output).trim().rsplit('\n').second.empty()
                                   ? llvm::StringRef(result.output).trim().str()
                                   : llvm::StringRef(result.output).trim().rsplit('\n').second.str();
      if (!last.empty())
        fail(last);
      return fail(where() + "the model is not imported, and what is no graph yet cannot be reduced");
    }
  }
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> read = base::readModule(&context, path);
  if (!read)
    return fail(llvm::toString(read.takeError()));
  module = std::move(*read);
  bool isGraph = false;
  for (mlir::Operation &op : *module->getBody())
    isGraph |= llvm::isa<graph::FuncOp>(op) && llvm::cast<graph::FuncOp>(op).isPublic();
  if (!isGraph)
    return fail(where() + "the module is none of phase import; give the model, or what tc-compile "
                          "--compile-to=import makes of it");
  return kDone;
}

std::string Tool::getCommand(const std::string &path) const {
  std::string command = request.command;
  bool isNamed = false;
  auto replace = [&](llvm::StringRef what, const std::string &by) {
    for (size_t at = command.find(what); at != std::string::npos; at = command.find(what, at + by.size())) {
      command.replace(at, what.size(), by);
      isNamed = true;
    }
  };
  replace("{onnx}", path + ".onnx");
  replace("{}", path);
  return isNamed ? command : command + " " + path;
}

bool Tool::judge(const std::string &path) {
  if (!request.command.empty()) {
    ProgramResult result = runProgram(compiler.limits, {"/bin/sh", "-c", getCommand(path)});
    return result.end == ProgramResult::End::Exited && result.code == 0;
  }
  CompilerJudge judge = compiler;
  {
    std::lock_guard<std::mutex> lock(mutex);
    judge.options = optionsOf[path];
    optionsOf.erase(path);
  }
  return judge.isSame(judge.run(path), first);
}

/// Whether the model does at all what is looked for.
int Tool::judgeFirst() {
  const std::string path = folder + "/first.mlir";
  if (llvm::Error error = base::writeModule(*module, path))
    return fail(llvm::toString(std::move(error)), kMachine);
  if (!request.command.empty()) {
    if (llvm::StringRef(request.command).contains("{onnx}"))
      if (llvm::Error error = exportOnnx(*module, path + ".onnx"))
        return fail(where() + "--command asks for {onnx}, which the model cannot be written as: " +
                    llvm::toString(std::move(error)) + "; use {}, which is a .mlir file");
    ProgramResult result = runProgram(compiler.limits, {"/bin/sh", "-c", getCommand(path)});
    if (result.end == ProgramResult::End::Exited && result.code == 0)
      return kDone;
    first.result = result;
    const llvm::StringRef said = llvm::StringRef(result.output).trim();
    return fail(where() + "the command does not call the model interesting: " + first.describe(compiler.limits) +
                (said.empty() ? "" : ", and it says: " + said.rsplit('\n').second.str()) +
                "; it has to end with 0 where the model still shows what is looked for");
  }
  compiler.options = selectOptions(request.options, *module);
  first = compiler.run(path);
  const std::string how = first.describe(compiler.limits);
  if (first.isDone())
    return fail(where() + "tc-compile does not fail, and there is nothing to look for; " +
                (request.verify ? "" : "add --verify if results are wrong, or ") +
                "give what is interesting by --command");
  if (request.code && (first.result.end != ProgramResult::End::Exited || first.result.code != *request.code))
    return fail(where() + "tc-compile fails with " + how + ", not with exit code " + std::to_string(*request.code) +
                (first.errors.empty() ? "" : ": " + first.errors.front()));
  if (!request.message.empty() && !compiler.isSame(first, first))
    return fail(where() + "no error of tc-compile has \"" + request.message + "\" in it" +
                (first.errors.empty() ? "" : "; the first is: " + first.errors.front()));
  if (request.verbose)
    std::cerr << request.model << ": " << describe(measure(*module)) << ", " << how
              << (first.errors.empty() ? "" : ": " + first.errors.front()) << "\n";
  return kDone;
}

llvm::Error Tool::write(mlir::ModuleOp smaller) {
  llvm::sys::fs::remove(stem + ".mlir.data");
  if (llvm::Error error = base::writeModule(smaller, stem + ".mlir"))
    return error;
  if (!isOnnx)
    return llvm::Error::success();
  return exportOnnx(smaller, stem + ".onnx");
}

int Tool::run() {
  // What is to be said of a file, its reader says.
  mlir::ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &) { return mlir::success(); });
  if (int code = prepare())
    return code;
  auto remove = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  if (int code = load())
    return code;
  if (int code = judgeFirst())
    return code;
  const ModuleSize before = measure(*module);
  ReduceOptions options;
  options.jobs = request.jobs ? request.jobs : llvm::hardware_concurrency().compute_thread_count();
  options.maxTries = request.tries;
  options.stop = &interrupted;
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (int signal : {SIGINT, SIGTERM})
    sigaction(signal, &action, nullptr);
  options.folder = folder + "/candidates";
  llvm::sys::fs::create_directories(options.folder);
  for (size_t i = 0; i < request.options.size(); ++i) {
    llvm::StringRef word = request.options[i];
    if (word.consume_front("--dim="))
      parseDimOption(word, options.sizes);
    else if (word == "--dim" && i + 1 < request.options.size())
      parseDimOption(request.options[i + 1], options.sizes);
  }
  const bool wantsOnnx = llvm::StringRef(request.command).contains("{onnx}");
  bool hasJobs = llvm::any_of(request.options, [](llvm::StringRef word) { return word.starts_with("--jobs"); });
  options.alsoWrite = [&](mlir::ModuleOp candidate, const std::string &path) {
    if (wantsOnnx) {
      if (llvm::Error error = exportOnnx(candidate, path + ".onnx")) {
        llvm::consumeError(std::move(error));
        return false;
      }
      return true;
    }
    std::vector<std::string> words = selectOptions(request.options, candidate);
    // Several compile at once.
    if (!hasJobs)
      words.insert(words.end(), {"--jobs", "1"});
    std::lock_guard<std::mutex> lock(mutex);
    optionsOf[path] = std::move(words);
    return true;
  };
  options.onSmaller = [&](mlir::ModuleOp smaller, llvm::StringRef step, uint64_t tries) {
    if (request.verbose)
      std::cerr
          << llvm::formatv("{0,5} tries, {1,-22} {2}\n", tries, step.str() + ":", describe(measure(smaller))).str();
  };
  llvm::Expected<uint64_t> tries = reduceModule(module, options, [&](const std::string &path) {
    const bool isGood = judge(path);
    llvm::sys::fs::remove(path + ".onnx");
    return isGood;
  });
  if (!tries)
    return fail(llvm::toString(tries.takeError()), kMachine);
  std::string note;
  if (llvm::Error error = write(*module)) {
    if (!isOnnx || !llvm::sys::fs::exists(stem + ".mlir"))
      return fail(llvm::toString(std::move(error)));
    note = "; not as ONNX: " + llvm::toString(std::move(error));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cerr << stem << ".mlir" << (isOnnx && note.empty() ? ", " + stem + ".onnx" : "") << ": "
            << describe(measure(*module)) << " of " << describe(before) << "; " << *tries << " tries"
            << (interrupted               ? ", interrupted,"
                : *tries >= request.tries ? ", the most allowed,"
                                          : "")
            << llvm::formatv(" in {0:f1} s", seconds).str() << note << "\n";
  return kDone;
}

} // namespace

int main(int argc, char **argv) {
  Request request;
  // What stands behind -- is tc-compile's.
  int own = 0;
  while (own < argc && llvm::StringRef(argv[own]) != "--")
    ++own;
  for (int i = own + 1; i < argc; ++i)
    request.options.push_back(argv[i]);

  CommandLine app("Shrinks a model that tc-compile fails on to the smallest one that fails in the same way.",
                  "tc-reduce");
  app.get_formatter()->column_width(30);
  CLI::Option *option =
      app.add_option("MODEL", request.model, "ONNX file, .pt2 or .pt archive, or .mlir of phase import");
  option->required()->type_name("");
  app.setExtensions(option, {"onnx", "pt2", "pt", "mlir"});
  app.add_option("-o,--output", request.output, "writes OUT.mlir, and OUT.onnx where the model is ONNX")
      ->required()
      ->type_name("OUT")
      ->group("Output");
  app.add_flag("-v,--verbose", request.verbose, "each step that made it smaller")->group("Output");

  const char *judge = "What is interesting (default: the failure of tc-compile, by exit code and first error)";
  option = app.add_option("--after", request.after);
  option->type_name("PHASE")->group(judge);
  app.setChoices(option, "what fails up to a phase: ",
                 {"prim", "fuse", "schedule", "kernel", "host", "object", "artifact (default)"});
  app.add_flag("--verify", request.verify, "what tc-compile --verify finds, too: a result that is wrong")->group(judge);
  option = app.add_option("--code", request.code, "that exit code; others are an error");
  app.setWholeNumber(option->type_name("N")->group(judge), 0, 255);
  app.add_option("--message", request.message, "an error with this text in it")->type_name("TEXT")->group(judge);
  app.add_option("--command", request.command,
                 "what a command says, by exit code 0; {} is the model as .mlir, {onnx} as ONNX")
      ->type_name("COMMAND")
      ->group(judge);

  option = app.add_option("--jobs", request.jobs, "models judged at once (default: all cores)");
  app.setWholeNumber(option->type_name("N")->group("Limits"));
  option = app.add_option("--seconds", request.seconds, "of one model (default: 60)");
  app.setWholeNumber(option->type_name("N")->group("Limits"));
  app.add_option("--memory", request.memory, "of one model: 500M, 8G (default: 8G)")
      ->type_name("SIZE")
      ->group("Limits");
  option = app.add_option("--tries", request.tries, "models judged in all (default: 10000)");
  app.setWholeNumber(option->type_name("N")->group("Limits"), 0, UINT64_MAX);
  app.addCommonOptions();
  app.footer(examplesAndCodes);
  try {
    app.parse(own, argv);
  } catch (const CLI::Success &e) {
    std::cout << app.describeSuccess(e);
    std::cout.flush();
    return std::cout ? kDone : fail("tc-reduce: error: standard output cannot be written: it is full or closed");
  } catch (const CLI::ParseError &e) {
    if (dynamic_cast<const CLI::RequiredError *>(&e) && !request.model.empty())
      return fail("tc-reduce: error: no output is given; add -o OUT");
    return fail("tc-reduce: error: " + describeParseError(app, e, "model") + "; see tc-reduce --help");
  }
  const bool ownJudge = request.command.empty();
  if (!ownJudge && (request.verify || request.code || !request.message.empty() || !request.after.empty()))
    return fail("tc-reduce: error: --command decides alone; leave --after, --verify, --code and --message out");
  if (request.verify && !request.after.empty() && request.after != "artifact")
    return fail("tc-reduce: error: --verify runs the artifact; leave --after out");
  if (request.seconds == 0)
    return fail("tc-reduce: error: --seconds 0 leaves no time; give at least 1");
  const char *const phases[] = {"", "prim", "fuse", "schedule", "kernel", "host", "object", "artifact"};
  if (!llvm::is_contained(phases, llvm::StringRef(request.after)))
    return fail("tc-reduce: error: --after " + request.after +
                " is no phase that reads a graph; phases: prim, fuse, schedule, kernel, host, object, artifact");
  if (request.after == "artifact")
    request.after.clear();
  setFunctionExpander(expandOnnxFunction, hasOnnxFunction);
  setOperandCheck(findOnnxOperandError);
  return Tool(request).run();
}
