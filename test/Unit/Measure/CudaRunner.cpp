//===- CudaRunner.cpp - what measures schedules of GPU kernels ----------------------------------------------------===//
//
// With the libcuda.so.1 of FakeCuda, whose events are a quarter of a millisecond apart.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "FakeCuda/FakeCuda.h"
#include "Programs/Programs.h"
#include "tc/Measure/Machine.h"
#include "tc/Measure/Runner.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace tc;
using namespace tc::test;
using measure::Elements;
using measure::Runner;

namespace {

constexpr int64_t kCount = 100;

std::string chain(float factor) {
  artifact::ArtifactSpec spec = chainSpec();
  static float factors[2];
  float &weight = factors[factor == 3 ? 0 : 1];
  weight = factor;
  spec.weights[1].segment = artifact::Segment::bytes({reinterpret_cast<const char *>(&weight), sizeof weight});
  return llvm::cantFail(artifact::writeArtifactToMemory(spec));
}

Runner open(const std::string &bytes, const measure::Tensors &tensors, const Runner *other = nullptr) {
  measure::RunnerOptions options;
  options.onGpu = true;
  options.gpuCacheBytes = 1 << 20;
  options.weightBytes = 1 << 20; // three copies
  std::string error;
  std::optional<Runner> runner = Runner::open(bytes, options, tensors, error, other);
  if (!runner)
    FAIL(error);
  return std::move(*runner);
}

} // namespace

TEST_CASE("on a GPU tensors stay in its memory, and its own time counts") {
  fake::reset();
  {
    measure::Tensors tensors;
    tensors.addInput({kCount}, 4 * kCount, Elements::F32);
    tensors.addOutput({kCount}, 4 * kCount, Elements::F32);
    Runner runner = open(chain(3), tensors), same = open(chain(3), tensors, &runner),
           another = open(chain(2), tensors, &runner);
    CHECK(fake::count("cuMemcpyHtoDAsync") > 0);
    const int copies = fake::count("cuMemcpy");
    const double seconds = runner.run(6);
    CHECK(std::abs(seconds - 250e-6) < 1e-9);
    CHECK(fake::count("cuMemcpy") == copies);
    CHECK(same.differFrom(runner, tensors) == 0);
    CHECK(another.differFrom(runner, tensors) > 1);
    const measure::Comparison comparison = measure::compare(runner, same, 1e-3, 5);
    CHECK(comparison.leastRatio == 1);
    // A GPU that is lost gives no times.
    fake::fail("cuStreamSynchronize", 1, 700, /*isSticky=*/true);
    CHECK(std::isinf(same.run(1)));
    CHECK(same.getFailure().find("the GPU is lost") != std::string::npos);
    CHECK(std::isinf(measure::compare(runner, same, 1e-3, 5).leastRatio));
    fake::forget();
  }
  CHECK(fake::problems() == std::vector<std::string>());
  fake::reset();
}

TEST_CASE("a GPU is described by its driver") {
  fake::reset();
  std::string why;
  std::optional<measure::Machine> gpu = measure::describeGpu(why);
  REQUIRE(gpu);
  CHECK(gpu->isGpu);
  CHECK(gpu->model == "Fake GPU");
  CHECK(gpu->gpuVersion == 90);
  CHECK(gpu->name.find("fake-gpu-1p-") == 0);
}
