//===- TuneFile.cpp - files of tuning candidates, and the rule that chooses ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Measure/TuneFile.h"
#include "Programs/Programs.h"
#include "tc/Measure/Choose.h"
#include "tcrt/artifact_abi.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <unistd.h>

using namespace tc;
using namespace tc::test;
using namespace tc::measure;

namespace {

TuneKernel basicKernel() {
  TuneKernel kernel;
  kernel.key = "0123";
  kernel.what = "mul 3x4xf32";
  kernel.nodes = "node";
  kernel.sizes = " at n = 3";
  kernel.weightBytes = 16;
  kernel.inputs = {{{3, 4}, 48, Elements::F32}};
  kernel.outputs = {{{3, 4}, 48, Elements::F32}};
  kernel.schedules = {{"#a", "a"}, {"#b", "b instead of a"}};
  kernel.variants = {{"generic", 0, {0, 1}}};
  return kernel;
}

/// A file that goes with it.
struct Path {
  Path() { ::close(::mkstemp(name)); }
  ~Path() { ::unlink(name); }
  char name[32] = "/tmp/tc-tune-XXXXXX";
};

} // namespace

TEST_CASE("a file of candidates gives back what it got, with artifacts that libtcrt uses in place") {
  const std::string artifact = llvm::cantFail(artifact::writeArtifactToMemory(basicSpec()));
  Path path;
  {
    TuneWriter writer;
    REQUIRE(writer.open(path.name) == "");
    TuneKernel other = basicKernel();
    other.onGpu = true;
    other.variants = {{"sm_90a", 901, {0, 1}}, {"sm_80", 800, {0}}};
    REQUIRE(writer.add(basicKernel(), artifact) == "");
    REQUIRE(writer.add(other, "no artifact") == "");
    CHECK(writer.countKernels() == 2);
    CHECK(writer.countSchedules() == 4);
    TuneIndex index;
    index.model = "model.onnx";
    index.machines = {"generic"};
    index.generators = 7;
    REQUIRE(writer.finish(index) == "");
  }
  CHECK(isTuneFile(path.name));
  std::string error;
  std::optional<TuneFile> file = TuneFile::open(path.name, error);
  REQUIRE(file);
  CHECK(file->describe() == "tuning candidates of model.onnx: 4 schedules of 2 kernels for generic");
  const TuneIndex &index = file->getIndex();
  CHECK(index.generators == 7);
  REQUIRE(index.kernels.size() == 2);
  const TuneKernel &kernel = index.kernels[0];
  CHECK(printTuneIndex({"", {}, 0, {kernel}}).find("\"change\": \"b instead of a\"") != std::string::npos);
  CHECK(kernel.inputs[0].shape == std::vector<int64_t>{3, 4});
  CHECK(kernel.findVariant("generic")->schedules == std::vector<uint32_t>{0, 1});
  CHECK(!kernel.findVariant("another"));
  CHECK(index.kernels[1].variants[0].arch == 901);
  CHECK(file->getArtifact(kernel) == artifact);
  CHECK(reinterpret_cast<uintptr_t>(file->getArtifact(kernel).data()) % TCRT_SECTION_ALIGN == 0);
  Tensors tensors;
  REQUIRE(kernel.makeTensors(tensors));
  RunnerOptions options;
  options.isKept = true;
  CHECK(Runner::open(file->getArtifact(kernel), options, tensors, error));
  // A function that the artifact has not is a sentence, as is what is no artifact.
  std::optional<Runner> runner = Runner::open(file->getArtifact(kernel), options, tensors, error);
  CHECK(!Runner::openFunction(*runner, 99, tensors, error));
  CHECK(error != "");
  CHECK(!Runner::open(file->getArtifact(index.kernels[1]), options, tensors, error));
  CHECK(error.find("error:") == std::string::npos); // it becomes a part of a sentence
}

TEST_CASE("tensors that no machine has the memory for are none") {
  TuneKernel kernel = basicKernel();
  kernel.inputs[0].bytes = uint64_t(1) << 60;
  Tensors tensors;
  CHECK(!kernel.makeTensors(tensors));
}

TEST_CASE("a schedule that has no code is told, and measuring can end early") {
  const std::string artifact = llvm::cantFail(artifact::writeArtifactToMemory(basicSpec()));
  Tensors tensors;
  REQUIRE(basicKernel().makeTensors(tensors));
  std::string error, told;
  std::optional<Runner> first = Runner::open(artifact, {}, tensors, error);
  REQUIRE(first);
  Contest contest;
  contest.count = 4;
  contest.open = [&](size_t number, std::string &why) {
    why = "no code";
    return number == 1 ? std::nullopt : Runner::openFunction(*first, 0, tensors, why);
  };
  contest.tell = [&](size_t number, const char *verb, const std::string &) {
    told += std::to_string(number) + " " + verb + "; ";
  };
  contest.begin = [](size_t number, double) { return number < 3; };
  const Choice choice = choose(*first, tensors, contest);
  CHECK(told == "1 not measured; 2 measured; ");
  CHECK(choice.tried == 3);
  CHECK(choice.failure == "");
  CHECK(choice.us > 0);
}
