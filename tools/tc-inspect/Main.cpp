//===- Main.cpp - tc-inspect: shows what is in an artifact or a model ---------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Artifact.h"
#include "Sbom.h"
#include "Usage.h"

#include "tc/Artifact/Reader.h"
#include "tc/Driver/ModelSummary.h"
#include "tc/Driver/Operators.h"
#include "tc/Measure/TuneFile.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ToolText.h"
#include "tcrt/tcrt.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <new>
#include <string>

namespace {

int fail(const std::string &sentence, int code = TCRT_ERROR_INVALID) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  return code;
}

int cannotPrint() { return fail("tc-inspect: error: standard output cannot be written"); }

/// What was printed must have arrived.
int finishOutput() {
  llvm::outs().flush();
  if (std::error_code problem = llvm::outs().error()) {
    llvm::outs().clear_error();
    return fail("tc-inspect: error: standard output cannot be written: " + problem.message());
  }
  return std::fflush(stdout) == 0 ? 0 : cannotPrint();
}

/// Whether the reader of artifacts is to say what is wrong with the file: it begins as one, or cannot be read.
bool isArtifact(const std::string &path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status) || !llvm::sys::fs::is_regular_file(status))
    return true;
  auto head = llvm::MemoryBuffer::getFileSlice(path, std::min<uint64_t>(TCRT_MAGIC_SIZE, status.getSize()), 0);
  return !head || (*head)->getBuffer() == llvm::StringRef(TCRT_MAGIC, TCRT_MAGIC_SIZE);
}

void printJson(const nlohmann::ordered_json &json) {
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

/// Also of weights in a file of their own, as who runs the artifact would.
int verifyWeights(const std::string &path) {
  tcrt_model_options_t options = {};
  options.size = sizeof options;
  options.verify_weights = 1;
  tcrt_model_t *model;
  if (const tcrt_status_t status = tcrt_model_open_file(path.c_str(), &options, &model))
    return fail(tcrt_last_error(), status);
  tcrt_model_close(model);
  return 0;
}

int showArtifact(const std::string &path, bool asJson, bool guards, bool allKernels, bool verify) {
  llvm::Expected<std::unique_ptr<tc::artifact::Reader>> reader = tc::artifact::Reader::open(path, verify);
  if (!reader)
    return fail(llvm::toString(reader.takeError()));
  if (verify)
    if (int code = verifyWeights(path))
      return code;
  auto json = tc::inspect::describeArtifact(**reader, verify);
  if (!json)
    return fail(llvm::toString(json.takeError()));
  if (guards && asJson) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const nlohmann::ordered_json &function : (*json)["functions"])
      list.push_back({{"name", function["name"]}, {"guards", function["guards"]}});
    printJson({{"file", (*json)["file"]}, {"functions", list}});
  } else if (guards)
    tc::inspect::printGuards(*json);
  else if (asJson)
    printJson(*json);
  else
    tc::inspect::printArtifact(*json, allKernels);
  return 0;
}

int showTuneFile(const std::string &path, bool asJson) {
  std::string error;
  std::optional<tc::measure::TuneFile> file = tc::measure::TuneFile::open(path, error);
  if (!file)
    return fail(error);
  const tc::measure::TuneIndex &index = file->getIndex();
  if (asJson) {
    nlohmann::ordered_json json = {{"file", path}, {"bytes", file->getBytes()}};
    json.update(nlohmann::ordered_json::parse(tc::measure::printTuneIndex(index)));
    printJson(json);
    return 0;
  }
  std::printf("%s: %s\n", path.c_str(), file->describe().c_str());
  for (const tc::measure::TuneKernel &kernel : index.kernels) {
    const std::string line = std::string(kernel.onGpu ? "GPU" : "CPU") + "  " + kernel.nodes + ": " + kernel.what +
                             ", " + std::to_string(kernel.schedules.size()) + " schedules" + kernel.sizes;
    std::printf("  %s\n", tc::printable(line).c_str());
  }
  std::printf("tc-run %s --tune FILE.json measures them on the machine where it runs\n", path.c_str());
  return 0;
}

int showSbom(const std::string &path) {
  llvm::Expected<std::unique_ptr<tc::artifact::Reader>> reader = tc::artifact::Reader::open(path);
  if (!reader)
    return fail(llvm::toString(reader.takeError()));
  llvm::Expected<nlohmann::ordered_json> sbom = tc::inspect::makeSbom(**reader);
  if (!sbom)
    return fail(llvm::toString(sbom.takeError()));
  printJson(*sbom);
  return 0;
}

int showUsage(const std::string &path, bool asJson) {
  llvm::Expected<nlohmann::ordered_json> usage = tc::inspect::readUsage(path);
  if (!usage)
    return fail(llvm::toString(usage.takeError()));
  if (asJson)
    printJson(*usage);
  else
    tc::inspect::printUsage(path, *usage);
  return 0;
}

int showModel(const std::string &path, bool asJson) {
  llvm::Expected<llvm::json::Object> model = tc::driver::summarizeModel(path);
  if (!model) {
    std::string sentence = llvm::toString(model.takeError());
    // A file of any name may have been meant as an artifact.
    llvm::StringRef why = sentence;
    if (!llvm::StringRef(path).ends_with(".onnx") && why.consume_front(path + ": error: it is no ONNX model"))
      sentence = path + ": error: the file is no artifact, no .pt2, no .pt and no ONNX model" + why.str();
    return fail(sentence);
  }
  if (asJson)
    llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*model)));
  else
    tc::driver::printModelSummary(llvm::outs(), *model);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  tc::CommandLine app("Shows what is in an artifact or a model, or which operators tc takes.", "tc-inspect");
  app.get_formatter()->column_width(30);
  std::string path;
  std::string operatorFormat;
  bool asJson = false, allKernels = false, verify = false, isUsage = false, guards = false, sbom = false;
  CLI::Option *file = app.add_option(
      "FILE", path, "an artifact or tuning candidates that tc-compile wrote, or a model: .onnx, .pt2, .pt");
  file->type_name("");
  app.setExtensions(file, {"bin", "onnx", "pt2", "pt", "tune"});
  app.add_flag("--json", asJson, "everything, as JSON");
  app.add_flag("--kernels", allKernels, "all kernels of an artifact, not only the first 20 of each device");
  CLI::Option *operators =
      app.add_flag("--operators{text}", operatorFormat, "the operators that tc takes, instead of a file");
  app.add_flag("--verify-weights", verify, "check the hashes of an artifact's weights and device code, too");
  app.add_flag(
      "--guards", guards,
      "what runs of an artifact are refused for: from which inputs, node and line, at which cost, and how to do "
      "without");
  app.add_flag(
      "--sbom", sbom,
      "a bill of materials of an artifact, as CycloneDX 1.6 JSON: compiler, libraries, model, weights, options");
  app.add_flag(
      "--usage", isUsage,
      "FILE is what tc-run --usage or tcrt_model_write_usage wrote: how often each entry ran, and which sizes to "
      "list with --dim");
  app.setOptionalValue(operators, "json", {"json"});
  app.addCommonOptions();
  app.footer("Examples:\n"
             "  tc-inspect model.bin             inputs, guards, variants, kernels and their code, flags\n"
             "  tc-inspect model.onnx            inputs, operators, parameters, opsets\n"
             "  tc-inspect model.bin --json      all of it, for programs\n"
             "  tc-inspect model.bin --sbom      what it was made of, and what it needs\n"
             "  tc-inspect --operators           which operators tc takes\n"
             "  tc-inspect --usage usage.json    which sizes ran, and which would gain from code of their own\n\n"
             "Exit codes: 0 done; 1 wrong use, unreadable or corrupt file; 5 no memory is left; 6 internal error");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    std::fputs(app.describeSuccess(success).c_str(), stdout);
    return finishOutput();
  } catch (const CLI::ParseError &error) {
    return fail("tc-inspect: error: " + tc::describeParseError(app, error, "file") + "; see tc-inspect --help");
  }
  if (operators->count()) {
    if (!path.empty() || (operatorFormat != "text" && operatorFormat != "json"))
      return fail("tc-inspect: error: --operators takes no file, and no value but json; see tc-inspect --help");
    std::vector<tc::driver::OperatorEntry> table = tc::driver::getOperatorTable();
    if (operatorFormat == "json")
      tc::driver::printOperatorsJson(llvm::outs(), table);
    else
      tc::driver::printOperators(llvm::outs(), table);
    return finishOutput();
  }
  if (path.empty())
    return fail("tc-inspect: error: no file is given; see tc-inspect --help");
  if (sbom && (asJson || allKernels || verify || guards || isUsage))
    return fail("tc-inspect: error: --sbom is alone; see tc-inspect --help");
  if (isUsage && (allKernels || verify || guards))
    return fail("tc-inspect: error: --usage is alone, or with --json; see tc-inspect --help");
  const bool artifact = !isUsage && isArtifact(path), tuneFile = !isUsage && tc::measure::isTuneFile(path);
  if (!artifact && (allKernels || verify || guards || sbom))
    return fail("tc-inspect: error: " +
                std::string(verify   ? "--verify-weights"
                            : guards ? "--guards"
                            : sbom   ? "--sbom"
                                     : "--kernels") +
                " is about artifacts, and " + path + " is none");
  try {
    if (int code = isUsage    ? showUsage(path, asJson)
                   : sbom     ? showSbom(path)
                   : tuneFile ? showTuneFile(path, asJson)
                   : artifact ? showArtifact(path, asJson, guards, allKernels, verify)
                              : showModel(path, asJson))
      return code;
  } catch (const std::bad_alloc &) {
    return fail(path + ": error: no memory left to show the file", TCRT_ERROR_MACHINE);
  } catch (const std::exception &problem) {
    return fail(path + ": error: " + problem.what() + "; please report this with the file", TCRT_ERROR_INTERNAL);
  }
  return finishOutput();
}
