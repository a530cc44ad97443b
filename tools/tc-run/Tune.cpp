//===- Tune.cpp - tc-run --tune -----------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Tune.h"

#include "tc/Format/Container.h"
#include "tc/Measure/TuneThere.h"
#include "tc/Run/Session.h"
#include "tc/Run/StatusLine.h"
#include "tc/Run/Tensor.h"
#include "tc/Support/ToolText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace tc::run;
using namespace tc::measure;

namespace {

TuneFile open(const std::string &path) {
  std::string error;
  std::optional<TuneFile> file = TuneFile::open(path, error);
  if (!file)
    throw Failure{1, error};
  return std::move(*file);
}

std::string countKernels(size_t count) { return std::to_string(count) + (count == 1 ? " kernel" : " kernels"); }

class TuneSession {
public:
  explicit TuneSession(const Options &options) : options(options), file(open(options.artifact)) {}

  int run() {
    findMachines();
    const Clock::time_point start = Clock::now();
    what.database = options.tune;
    what.begin = [&](size_t number) { show(number); };
    what.end = [&](size_t number, const TuneResult &result) { add(file.getIndex().kernels[number], result); };
    if (std::string error = tuneThere(file, what); !error.empty())
      throw Failure{1, error};
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!options.json.empty())
      writeJson(seconds);
    if (!measured && !recorded)
      throw Failure{5, options.artifact + ": error: no kernel can be measured here: " + firstFailure};
    if (options.json != "-")
      summarize(seconds);
    return 0;
  }

private:
  /// Whose kernels are measured: those that the file has code for, that are here, and that --device does not leave out.
  void findMachines() {
    size_t ofGpu = 0;
    const std::vector<TuneKernel> &kernels = file.getIndex().kernels;
    for (const TuneKernel &kernel : kernels)
      ofGpu += kernel.onGpu;
    const bool wantsGpu = options.isCuda || !options.isDeviceGiven,
               wantsCpu = !options.isCuda || !options.isDeviceGiven || options.isCpuAllowed;
    if (wantsCpu && ofGpu < kernels.size())
      what.cpu = describeMachine(options.threads);
    std::string why;
    if (wantsGpu && ofGpu > 0)
      what.gpu = describeGpu(why);
    if (!why.empty() && what.cpu)
      std::fprintf(stderr, "%s: note: %s for GPUs %s left alone, as %s\n", options.artifact.c_str(),
                   countKernels(ofGpu).c_str(), ofGpu == 1 ? "is" : "are", why.c_str());
    else if (!why.empty())
      throw Failure{5, options.artifact + ": error: the candidates are for GPUs, and " + why};
    if (!what.cpu && !what.gpu)
      throw Failure{1, options.artifact + ": error: the file has no candidates for --device " +
                           tcrt_device_name(options.isCuda ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU) +
                           "; write it by tc-compile with that --target"};
  }

  /// A kernel takes seconds, and a file may have hundreds.
  void show(size_t number) {
    const std::vector<TuneKernel> &kernels = file.getIndex().kernels;
    size_t all = 0, done = measured + recorded + failed;
    for (const TuneKernel &kernel : kernels)
      all += bool(kernel.onGpu ? what.gpu : what.cpu);
    status.show(tc::printable("measuring " + std::to_string(done + 1) + " of " + countKernels(all) + ", " +
                              std::to_string(kernels[number].schedules.size()) +
                              " schedules: " + kernels[number].nodes));
  }

  void add(const TuneKernel &kernel, const TuneResult &result) {
    const char *states[] = {"measured", "recorded", "failed"};
    status.clear();
    if (options.json != "-") {
      std::printf("%s\n", tc::printable(kernel.nodes + ": " + result.text).c_str());
      std::fflush(stdout); // a kernel takes seconds
    }
    list.push_back({{"nodes", kernel.nodes},
                    {"what", kernel.what},
                    {"state", states[int(result.state)]},
                    {"text", result.text},
                    {"machine", result.machine},
                    {"variant", result.variant},
                    {"schedule", result.schedule},
                    {"us", result.us},
                    {"default_us", result.defaultUs}});
    if (result.state == TuneResult::State::Failed) {
      ++failed;
      if (firstFailure.empty())
        firstFailure = result.text.substr(result.text.find(": ") + 2);
      return;
    }
    if (result.state == TuneResult::State::Recorded) {
      ++recorded;
      return;
    }
    ++measured;
    gain.add(result.us, result.defaultUs);
  }

  std::string machineNames() const {
    return (what.cpu ? what.cpu->name : "") + (what.cpu && what.gpu ? "," : "") + (what.gpu ? what.gpu->name : "");
  }

  void summarize(double seconds) const {
    std::string text = options.tune + ": ";
    if (measured)
      text += gain.describe(seconds) + (recorded ? "; " + countKernels(recorded) + " had records" : "");
    else
      text += "nothing is left to measure, as " + countKernels(recorded) + (recorded == 1 ? " has" : " have") +
              (recorded == 1 ? " a record" : " records");
    if (failed)
      text += "; " + countKernels(failed) + " could not be measured";
    std::printf("%s; tc-compile --tuning-db %s --tuning-machine %s takes them\n", tc::printable(text).c_str(),
                options.tune.c_str(), machineNames().c_str());
  }

  void writeJson(double seconds) const {
    const nlohmann::ordered_json json = {{"candidates", options.artifact},
                                         {"database", options.tune},
                                         {"machine", machineNames()},
                                         {"seconds", seconds},
                                         {"us", gain.us},
                                         {"default_us", gain.defaultUs},
                                         {"kernels", list}};
    const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (options.json == "-")
      std::fputs(text.c_str(), stdout);
    else
      writeFile(options.json, {text.begin(), text.end()});
  }

  const Options &options;
  TuneFile file;
  TuneThereOptions what;
  StatusLine status;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Gain gain;
  size_t measured = 0, recorded = 0, failed = 0;
  std::string firstFailure;
};

} // namespace

int tc::run::tuneHere(const Options &options) { return TuneSession(options).run(); }

void tc::run::refuseTuneFile(const std::string &path) {
  throw Failure{1, path + ": error: this is no artifact but " + open(path).describe() + "; tc-run " + path +
                       " --tune FILE.json measures them"};
}
