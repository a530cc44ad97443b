//===- CheckFiles.cpp - files that a compile reads and writes -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CheckFiles.h"

#include "DebugFolder.h"
#include "tc/Support/ToolFiles.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace tc;
using namespace tc::driver;
using llvm::StringRef;

/// Without their folders.
static std::set<std::string> namesOf(llvm::ArrayRef<std::vector<ToolFile>> lists) {
  std::set<std::string> names;
  for (const std::vector<ToolFile> &files : lists)
    for (const ToolFile &file : files)
      names.insert(llvm::sys::path::filename(file.path).str());
  return names;
}

std::string tc::driver::findReplacedFile(const CompileRequest &request, const std::set<std::string> &ofModel) {
  const std::string artifact = "the artifact", database = "the tuning database";
  std::vector<ToolFile> inputs = {{"the model", request.model}}, outputs;
  if (StringRef(request.model).ends_with(".mlir"))
    inputs.push_back({"the model's constants", request.model + ".data"});
  for (const std::string &path : ofModel)
    inputs.push_back({"a file of the model", path});
  addArtifactFiles(inputs, artifact, request.refit);
  for (const std::string &path : request.customOps)
    inputs.push_back({"the file of --custom-op", path});
  for (const std::string &path : request.calibrate)
    inputs.push_back({"the file of --calibrate", path});
  inputs.push_back({"the file of --config", request.configFile});
  inputs.push_back({database, request.tuningDb});

  const bool isModule = request.stopAtPhase && request.compileTo < Phase::Artifact;
  if (!isModule) {
    outputs.push_back({"-o", request.output, artifact});
    if (request.externalWeights)
      outputs.push_back({"-o", request.output + ".weights", "the weights of " + request.refit});
  } else if (request.output != "-" && !request.output.empty()) {
    const std::string path = request.output + (StringRef(request.output).ends_with(".mlir") ? "" : ".mlir");
    outputs.push_back({"-o", path});
    outputs.push_back({"-o", path + ".data"});
  }
  if (request.explainFile != "json")
    outputs.push_back({"--explain", request.explainFile});
  outputs.push_back({"--depfile", request.depFile});
  outputs.push_back({"--chosen-precision", request.chosenPrecision});
  outputs.push_back({"--quantized-model", request.quantizedModel});
  outputs.push_back({"--tuning-candidates", request.tuningCandidates});
  // One that is there is extended, and refused where it is something else.
  if (StringRef(request.mode).starts_with("max-autotune") && !llvm::sys::fs::exists(request.tuningDb))
    outputs.push_back({"--tuning-db", request.tuningDb});
  // The folder takes files away, too, that an earlier compile left.
  if (!request.debugDir.empty())
    for (const std::string &name : namesOf({inputs, outputs}))
      if (DebugFolder::isName(name))
        outputs.push_back({"--debug-dir", pathInFolder(request.debugDir, name), "", true});
  return tc::findReplacedFile(inputs, outputs);
}
