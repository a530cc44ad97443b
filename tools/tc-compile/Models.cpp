//===- Models.cpp - the models of one command ---------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Models.h"

#include "tc/Support/ToolFiles.h"
#include "tc/Support/ToolText.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tc;
using namespace tc::driver;

static int fail(llvm::raw_ostream &errors, const llvm::Twine &sentence) {
  errors << printable(("tc-compile: error: " + sentence).str()) << "\n";
  return kWrongUse;
}

static constexpr llvm::StringLiteral kStandardInput = "/dev/stdin";

/// Front ends map files: what comes through a pipe becomes one, without a name.
static int openStandardInput(llvm::raw_ostream &errors) {
  struct stat status;
  if (fstat(STDIN_FILENO, &status) != 0)
    return fail(errors, llvm::Twine("the model is to come from standard input, which is closed: ") + strerror(errno));
  if (isatty(STDIN_FILENO))
    return fail(errors, "the model is to come from standard input, which is a terminal; give a file, or a pipe");
  if (S_ISREG(status.st_mode))
    return kDone;
  auto failed = [&](const std::error_code &error) {
    return fail(errors, "the model cannot be read from standard input: " + error.message());
  };
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> model = llvm::MemoryBuffer::getSTDIN();
  if (!model)
    return failed(model.getError());
  const int file = memfd_create("model", MFD_CLOEXEC);
  if (file < 0)
    return failed(std::error_code(errno, std::generic_category()));
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << (*model)->getBuffer();
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (!error && dup2(file, STDIN_FILENO) < 0)
    error = std::error_code(errno, std::generic_category());
  return error ? failed(error) : int(kDone);
}

/// Where each model goes, by its name without a folder and extension.
static int placeOutputs(const CompileRequest &request, llvm::ArrayRef<std::string> models,
                        std::vector<std::string> &outputs, llvm::raw_ostream &errors) {
  llvm::StringMap<std::string> known;
  for (const std::string &model : models) {
    llvm::SmallString<128> path(request.output);
    const bool isModule = request.stopAtPhase && request.compileTo != Phase::Artifact;
    llvm::sys::path::append(path, llvm::sys::path::stem(model) + (isModule ? ".mlir" : ".bin"));
    if (auto [entry, isNew] = known.try_emplace(path, model); !isNew)
      return fail(errors, entry->second + " and " + model + " would both become " + path +
                              "; compile them by two commands with an -o FILE each");
    outputs.push_back(path.str().str());
  }
  std::vector<ToolFile> read, written;
  for (size_t i = 0; i < models.size(); ++i) {
    read.push_back({"the model", models[i]});
    written.push_back({"-o", outputs[i]});
  }
  if (std::string sentence = findReplacedFile(read, written); !sentence.empty())
    return fail(errors, sentence);
  return kDone;
}

/// What has one place, and what is printed, is of one model.
static int checkSeveral(const CompileRequest &request, llvm::raw_ostream &errors) {
  if (request.output.empty() || request.output == "-")
    return fail(errors, "several models are given, which need a folder to be written to; give -o FOLDER/");
  const std::pair<const char *, bool> ofOne[] = {{"--explain", request.explain},
                                                 {"--debug-dir", !request.debugDir.empty()},
                                                 {"--quantized-model", !request.quantizedModel.empty()},
                                                 {"--chosen-precision", !request.chosenPrecision.empty()},
                                                 {"--tuning-candidates", !request.tuningCandidates.empty()},
                                                 {"--depfile", !request.depFile.empty()}};
  for (auto [option, given] : ofOne)
    if (given)
      return fail(errors, llvm::Twine(option) + " is for one model; give the models to tc-compile one by one");
  return kDone;
}

int tc::driver::compileModels(CompileRequest request, llvm::ArrayRef<std::string> given, llvm::raw_ostream &errors) {
  std::vector<std::string> models(given);
  if (auto at = llvm::find(models, "-"); at != models.end()) {
    if (int code = openStandardInput(errors))
      return code;
    std::replace(at, models.end(), std::string("-"), kStandardInput.str());
  }
  const bool isFolder = models.size() > 1 || llvm::StringRef(request.output).ends_with("/") ||
                        llvm::sys::fs::is_directory(request.output);
  if (!isFolder) {
    request.model = models.front();
    return compile(request, errors);
  }
  if (int code = models.size() > 1 ? checkSeveral(request, errors) : int(kDone))
    return code;
  std::vector<std::string> outputs;
  if (int code = placeOutputs(request, models, outputs, errors))
    return code;
  std::error_code error = llvm::sys::fs::create_directories(request.output);
  if (!error && !llvm::sys::fs::is_directory(request.output))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return fail(errors, "the folder " + request.output + " cannot be made: " + error.message());
  if (models.size() == 1) {
    request.model = models.front();
    request.output = outputs.front();
    return compile(request, errors);
  }

  const unsigned jobs = request.jobs ? request.jobs : llvm::hardware_concurrency().compute_thread_count();
  const unsigned most = unsigned(std::min<size_t>(jobs, models.size()));
  request.jobs = std::max(1u, jobs / most);
  std::vector<pid_t> children(models.size(), -1);
  std::vector<int> codes(models.size(), kInternal);
  unsigned running = 0;
  auto wait = [&] {
    int status = 0;
    const pid_t child = ::wait(&status);
    if (child < 0)
      return errno == EINTR;
    --running;
    // A crash has said so itself.
    if (auto at = llvm::find(children, child); at != children.end() && WIFEXITED(status))
      codes[at - children.begin()] = WEXITSTATUS(status);
    return true;
  };
  const pid_t parent = getpid();
  for (size_t i = 0; i < models.size(); ++i) {
    while (running == most && wait())
      ;
    errors.flush();
    children[i] = fork();
    if (children[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent)
        _exit(kInternal);
      request.model = models[i];
      request.output = outputs[i];
      // Whole sentences, as others print, too.
      std::string text;
      llvm::raw_string_ostream stream(text);
      const int code = compile(request, stream);
      llvm::outs().flush();
      errors << text;
      errors.flush();
      _exit(code);
    }
    if (children[i] < 0)
      codes[i] =
          (fail(errors, models[i] + " cannot be compiled in a process of its own: " + strerror(errno)), kMachine);
    else
      ++running;
  }
  while (running && wait())
    ;
  std::string failed;
  size_t count = 0;
  int code = kDone;
  for (size_t i = 0; i < models.size(); ++i) {
    if (codes[i] == kDone)
      continue;
    failed += (count++ ? ", " : "") + models[i];
    code = code ? code : codes[i];
  }
  if (count)
    fail(errors, llvm::Twine(count) + " of " + llvm::Twine(models.size()) + " models are not compiled: " + failed);
  return code;
}
