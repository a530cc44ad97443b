//===- ArtifactCache.cpp - artifacts of earlier compiles ----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ArtifactCache.h"

#include "CheckFiles.h"
#include "SummaryText.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Format/Error.h"
#include "tc/Format/File.h"
#include "tc/Measure/Machine.h"
#include "tc/Support/BlobStore.h"
#include "tc/Support/Logging.h"
#include "tc/Support/Threads.h"
#include "tc/Target/Target.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <sys/stat.h>

using namespace tc;
using namespace tc::driver;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// In front of an artifact's entry: how long what follows is.
struct ArtifactSizes {
  uint64_t lines, summary, artifact, weights;
};

StringRef asText(const ArtifactSizes &sizes) { return StringRef(reinterpret_cast<const char *>(&sizes), sizeof sizes); }

/// A file that gets its name when that is known to be right; the runtime's last error says what failed.
class UnnamedFile {
public:
  ~UnnamedFile() { tcrt_output_drop(&output); }
  bool write(const std::string &path, StringRef bytes) {
    return tcrt_output_open(path.c_str(), &output) == TCRT_OK &&
           tcrt_output_write(&output, bytes.data(), bytes.size()) == TCRT_OK;
  }
  bool keep() { return tcrt_output_keep(&output) == TCRT_OK; }

private:
  tcrt_output_t output = {-1, nullptr, nullptr, nullptr};
};

/// A machine that the options name by `native` or another name, as passes see it.
std::string describeCpu(mlir::MLIRContext &context, const std::string &name) {
  std::string text;
  llvm::Expected<machine::CpuAttr> cpu = machine::parseCpu(&context, name);
  if (cpu)
    llvm::raw_string_ostream(text) << *cpu;
  else
    llvm::consumeError(cpu.takeError()); // the request is refused for it
  return text;
}

std::unique_ptr<llvm::MemoryBuffer> tryToMap(const std::string &path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
  if (file)
    return std::move(*file);
  llvm::consumeError(file.takeError());
  return nullptr;
}

/// Why an artifact would not do for the request.
std::string findWhyNot(const CompileRequest &request) {
  const std::pair<const char *, bool> lookInside[] = {{"--verify", request.verify},
                                                      {"--explain", request.explain},
                                                      {"--compile-to", request.stopAtPhase},
                                                      {"--debug-dir", !request.debugDir.empty()},
                                                      {"--print-ir-after", !request.printIrAfter.empty()},
                                                      {"--quantized-model", !request.quantizedModel.empty()},
                                                      {"--chosen-precision", !request.chosenPrecision.empty()},
                                                      {"--tuning-candidates", !request.tuningCandidates.empty()},
                                                      {"no -o", request.output.empty()}};
  for (auto [option, given] : lookInside)
    if (given)
      return option;
  for (StringRef channel : log::getChannels())
    if (channel != log::kCacheChannel && log::isEnabled(channel))
      return "--logs " + request.logs;
  return "";
}

} // namespace

ArtifactCache::ArtifactCache(const CompileRequest &request, llvm::raw_ostream &errors)
    : request(request), errors(errors) {
  ::clock_gettime(CLOCK_REALTIME, &startTime);
  if (request.cacheDir.empty())
    return;
  store.emplace(request.cacheDir, request.cacheSizeBytes);
  whyNot = findWhyNot(request);
}

/// Every option is named here, so that a new one has to be thought of: those that change what is written, or what is
/// said with it, are part of the key.
std::optional<cache::Key> ArtifactCache::makeRequestKey() {
  const auto &[model, output, targets, cpus, gpus, dims, shapes, customOps, noAssume, staticInputs, innerOutputs,
               disabled, backendFor, stopAfter, mode, tuningDb, tuningCandidates, tuningMachine, tuningThreads,
               precision, nodePrecisions, quantize, calibrate, calibrateMethod, quantizeExclude, quantizeBudget,
               quantizedModel, chosenPrecision, compileTo, stopAtPhase, explain, explainFile, debugDir, logs, depFile,
               configFile, printIrAfter, fullGraph, verify, externalWeights, allowLibs, checkBounds, allowHostOps,
               verbose, quiet, jobs, refit, isRefitRead, maxMemory, maxMemoryBytes, maxTime, maxSeconds, cacheDir,
               cacheSizeBytes, commandLine, executable] = request;
  if (!modelKey) {
    std::unique_ptr<llvm::MemoryBuffer> file = tryToMap(model);
    if (!file)
      return std::nullopt;
    modelKey = cache::hashBytes(file->getBuffer());
  }
  cache::KeyBuilder builder;
  builder.add("program", cache::getProgramKey()).add("model", *modelKey);
  // Text is known by its name, other models by their content.
  builder.add("extension", llvm::sys::path::extension(model));
  builder.add("targets", targets)
      .add("cpus", cpus)
      .add("gpus", gpus)
      .add("dims", dims)
      .add("shapes", shapes)
      .add("no-assume", noAssume)
      .add("static inputs", staticInputs)
      .add("inner outputs", innerOutputs)
      .add("disabled", disabled)
      .add("backend for", backendFor)
      .add("stop", stopAfter);
  for (const std::string &path : customOps)
    if (std::unique_ptr<llvm::MemoryBuffer> file = tryToMap(path))
      builder.add("custom operators", file->getBuffer());
  builder.add("quantize", quantize).add("calibrate method", calibrateMethod).add("exclude", quantizeExclude);
  builder.add("budget", quantizeBudget ? llvm::formatv("{0:e15}", *quantizeBudget).str() : "");
  for (const std::string &path : calibrate) {
    std::unique_ptr<llvm::MemoryBuffer> file = tryToMap(path);
    if (!file)
      return std::nullopt; // the compile says so
    builder.add("calibrate", cache::hashBytes(file->getBuffer()));
  }
  builder.add("mode", mode)
      .add("precision", precision)
      .add("node precisions", nodePrecisions)
      .add("external weights", externalWeights);
  builder.add("bounds", checkBounds).add("host", allowHostOps).add("graph", fullGraph).add("libs", allowLibs);
  if (!cpus.empty()) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.getOrLoadDialect<machine::MachineDialect>();
    for (const std::string &name : cpus)
      builder.add("cpu", describeCpu(context, name));
  }
  const bool measures = StringRef(mode).starts_with("max-autotune");
  // What is found by measuring depends on the time for it.
  if (measures || request.choosesPrecision())
    builder.add("time", StringRef(maxTime));
  const bool usesTuning = measures || !tuningDb.empty();
  if (usesTuning) {
    const std::string machine = tuningMachine.empty() ? measure::describeMachine(tuningThreads).name : tuningMachine;
    builder.add("machine", machine).add("threads", tuningThreads);
    const std::string database = request.getTuningDatabase();
    std::unique_ptr<llvm::MemoryBuffer> file = database.empty() ? nullptr : tryToMap(database);
    builder.add("database", file ? file->getBuffer() : StringRef()).add("has database", !database.empty());
  }
  for (const std::string &name : targets) {
    llvm::Expected<machine::TargetKind> target = machine::parseTarget(name);
    if (!target) {
      llvm::consumeError(target.takeError());
      return std::nullopt;
    }
    if (target::TargetBackend *backend = target::lookupBackend(machine::getDevice(*target)))
      builder.add("tools", backend->describeTools());
    if (usesTuning && machine::getDevice(*target) == machine::DeviceKind::Cuda) {
      std::string why;
      std::optional<measure::Machine> gpu = measure::describeGpu(why);
      builder.add("tuned on", gpu ? gpu->name : "");
    }
  }
  return builder.finish();
}

std::optional<cache::Key> ArtifactCache::makeArtifactKey(const cache::Key &key, ArrayRef<std::string> files) {
  cache::KeyBuilder builder;
  builder.add("request", key);
  for (const std::string &path : files) {
    std::unique_ptr<llvm::MemoryBuffer> file = tryToMap(lengthen(path));
    if (!file)
      return std::nullopt;
    builder.add("path", StringRef(path)).add("file", cache::hashBytes(file->getBuffer()));
  }
  return builder.finish();
}

std::string ArtifactCache::shorten(StringRef path) const {
  StringRef folder = llvm::sys::path::parent_path(request.model), rest = path;
  if (folder.empty())
    return llvm::sys::path::is_absolute(path) ? path.str() : "./" + path.str();
  return rest.consume_front(folder) && rest.consume_front("/") ? "./" + rest.str() : path.str();
}

std::string ArtifactCache::lengthen(StringRef path) const {
  if (!path.consume_front("./"))
    return path.str();
  StringRef folder = llvm::sys::path::parent_path(request.model);
  return folder.empty() ? path.str() : (folder + "/" + path).str();
}

/// What changed while the compile read it may not be what its hash says.
bool ArtifactCache::isOlderThanCompile(StringRef path) const {
  struct stat info;
  return ::stat(path.str().c_str(), &info) == 0 && std::make_pair(info.st_ctim.tv_sec, info.st_ctim.tv_nsec) <
                                                       std::make_pair(startTime.tv_sec, startTime.tv_nsec);
}

std::optional<int> ArtifactCache::restore(std::set<std::string> &named) {
  if (!store)
    return std::nullopt;
  auto note = [&](const Twine &what) {
    if (log::isEnabled(log::kCacheChannel))
      log::write(log::kCacheChannel, what.str());
  };
  if (!whyNot.empty()) {
    note("artifact: not looked up, because of " + whyNot);
    return std::nullopt;
  }
  std::optional<cache::Key> key = makeRequestKey();
  std::optional<cache::Entry> files = key ? store->load(cache::Kind::Files, *key) : std::nullopt;
  std::vector<std::string> paths;
  if (files) {
    for (StringRef rest = files->content; !rest.empty();) {
      auto [path, others] = rest.split('\0');
      paths.push_back(path.str());
      rest = others;
    }
    key = makeArtifactKey(*key, paths);
    if (!findReplacedFile(request, {paths.begin(), paths.end()}).empty())
      return std::nullopt; // refused once the model is read
  }
  std::optional<cache::Entry> entry = files && key ? store->open(cache::Kind::Artifact, *key) : std::nullopt;
  if (!entry) {
    note(key ? "artifact " + cache::toText(*key).substr(0, 16) + ": not there" : "artifact: the model cannot be read");
    return std::nullopt;
  }
  // The files are written while the entry is checked, and get their names when it is sound.
  bool isSound = false;
  std::unique_ptr<Thread> checks = Thread::start([&] { isSound = store->check(cache::Kind::Artifact, *key, *entry); });
  ArtifactSizes sizes = {};
  StringRef rest = entry->content;
  std::memcpy(&sizes, rest.data(), std::min(rest.size(), sizeof sizes));
  rest = rest.drop_front(std::min(rest.size(), sizeof sizes));
  auto next = [&](uint64_t size) {
    StringRef piece = rest.take_front(size);
    rest = rest.drop_front(piece.size());
    return piece;
  };
  const StringRef lines = next(sizes.lines), summary = next(sizes.summary), bytes = next(sizes.artifact),
                  weights = next(sizes.weights);
  UnnamedFile artifactFile, weightsFile;
  bool written = (weights.empty() || weightsFile.write(request.output + ".weights", weights)) &&
                 artifactFile.write(request.output, bytes);
  if (!checks)
    isSound = store->check(cache::Kind::Artifact, *key, *entry);
  checks.reset();
  note("artifact " + cache::toText(*key).substr(0, 16) + (isSound ? ": found" : ": damaged"));
  if (!isSound)
    return std::nullopt;
  // In the order of the writer: an artifact never stands beside the weights of another for longer than it must.
  if (!written || !(weights.empty() || weightsFile.keep()) || !artifactFile.keep()) {
    errors << tcrt_last_error() << "\n";
    return kWrongUse;
  }
  for (StringRef others = lines; !others.empty();) {
    auto [line, behind] = others.split('\n');
    others = behind;
    errors << (line.front() == 'm'   ? request.model
               : line.front() == 'o' ? request.output
                                     : "")
           << line.drop_front() << "\n";
  }
  for (const std::string &path : paths)
    named.insert(lengthen(path));
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (request.verbose)
    errors << llvm::formatv("{0,-10} {1,8:f1} ms, the artifact was found\n", log::kCacheChannel, 1e3 * seconds.count());
  if (!request.quiet)
    errors << nameOutput(summary, request.output) << llvm::formatv(", from the cache in {0:f1} s\n", seconds.count());
  return kDone;
}

void ArtifactCache::addLines(StringRef text) {
  if (!store)
    return;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    auto begins = [line = line](StringRef path) {
      return line.starts_with(path) && line.drop_front(path.size()).starts_with(":");
    };
    const bool ofModel = begins(request.model), ofOutput = !ofModel && begins(request.output);
    lines += ofModel ? 'm' : ofOutput ? 'o' : ' ';
    lines += line.drop_front(ofModel ? request.model.size() : ofOutput ? request.output.size() : 0).str() + "\n";
  }
}

void ArtifactCache::take(StringRef path) {
  if (!store || !whyNot.empty())
    return;
  artifact = tryToMap(path.str());
  weights = request.externalWeights ? tryToMap((path + ".weights").str()) : nullptr;
}

void ArtifactCache::add(const std::set<std::string> &files, StringRef summary) {
  if (!artifact)
    return;
  std::vector<std::string> names;
  bool isSettled = isOlderThanCompile(request.model);
  for (const std::string &path : files) {
    if (path == request.model)
      continue;
    names.push_back(shorten(path));
    isSettled = isSettled && isOlderThanCompile(path);
  }
  for (const std::string &path : request.calibrate)
    isSettled = isSettled && isOlderThanCompile(path);
  for (const std::string &path : request.customOps)
    isSettled = isSettled && isOlderThanCompile(path);
  // Measuring may have extended the database: what was written is what another compile makes of it as it is now.
  std::optional<cache::Key> key = isSettled ? makeRequestKey() : std::nullopt;
  std::optional<cache::Key> ofArtifact = key ? makeArtifactKey(*key, names) : std::nullopt;
  if (!ofArtifact)
    return;
  std::string list;
  for (const std::string &name : names)
    list += name + '\0';
  StringRef bytes = artifact->getBuffer(), others = weights ? weights->getBuffer() : StringRef();
  const ArtifactSizes sizes = {lines.size(), summary.size(), bytes.size(), others.size()};
  store->save(cache::Kind::Artifact, *ofArtifact, {asText(sizes), lines, summary, bytes, others});
  store->save(cache::Kind::Files, *key, StringRef(list));
}

void ArtifactCache::finish() {
  if (!store)
    return;
  if (std::string problem = store->getProblem(); !problem.empty())
    errors << "tc-compile: warning: " << problem << "\n";
  store->trim();
  const cache::Counts counts = store->getCounts();
  const uint64_t hits = counts.hits[unsigned(cache::Kind::Kernel)],
                 misses = counts.misses[unsigned(cache::Kind::Kernel)];
  if (request.verbose && hits + misses)
    errors << llvm::formatv("{0,-10} {1} of {2} pieces of code were found\n", log::kCacheChannel, hits, hits + misses);
}
