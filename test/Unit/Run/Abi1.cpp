//===- Abi1.cpp - artifacts of the first ABI still run ------------------------------------------------------------===//
//
// The files in abi1/ were written while TCRT_ABI_VERSION was 1 (abi1/make.py): static.bin has fixed sizes and an input
// with a default, dynamic.bin symbolic sizes, one that the data decide and weights in a file of their own, strings.bin
// strings, a sequence and host functions.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Artifact/Reader.h"
#include "tc/Run/Compare.h"
#include "tc/Run/Npz.h"
#include "tc/Run/Session.h"

#include <catch2/catch.hpp>

using namespace tc::run;

namespace {

const std::string folder = TC_TEST_ABI1;

/// Whether this machine runs the artifacts' only variant, x86-64-v3.
bool runsHere() { return (tcrt_cpu_features() & TCRT_CPU_AVX2) != 0; }

} // namespace

TEST_CASE("artifacts of ABI 1 give what they gave") {
  for (const char *name : {"static", "dynamic", "strings"}) {
    INFO(name);
    auto reader = tc::artifact::Reader::open(folder + "/" + name + ".bin", /*verifyAll=*/true);
    REQUIRE(bool(reader));
    if (!runsHere())
      continue;
    for (uint32_t threads : {1, 3}) {
      SessionOptions options;
      options.artifact = folder + "/" + name + ".bin";
      options.verifyWeights = true;
      options.threads = threads;
      Session session(options);
      session.readInputs(folder + "/" + name + ".in.npz");
      session.firstRun();
      const NamedTensors expected = readNpz(folder + "/" + name + ".out.npz");
      const NamedTensors outputs = session.tensorOutputs("the test");
      REQUIRE(outputs.size() == expected.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        CHECK(outputs[i].first == expected[i].first);
        Tolerance tolerance;
        tolerance.maxRel = 1e-5;
        Comparison result = compare(outputs[i].second, expected[i].second, tolerance);
        INFO(outputs[i].first << ": " << result.message);
        CHECK(result.isEqual);
      }
    }
  }
}

TEST_CASE("an artifact of ABI 1 takes other sizes and refuses what it refused") {
  if (!runsHere())
    return;
  SessionOptions options;
  options.artifact = folder + "/dynamic.bin";
  Session session(options);
  session.readInputs(folder + "/dynamic.in.npz");
  session.firstRun();
  tcrt_context_t *context = session.context();
  std::vector<float> x(65 * 64, 1.0f), z(12, 2.0f);
  std::vector<uint8_t> mask(65, 1);
  auto bind = [&](int64_t n) {
    tcrt_tensor_t tensors[] = {{TCRT_DTYPE_F32, 2, {n, 64}, x.data(), uint64_t(n) * 256, TCRT_DEVICE_CPU},
                               {TCRT_DTYPE_F32, 2, {2, 6}, z.data(), 48, TCRT_DEVICE_CPU},
                               {TCRT_DTYPE_BOOL, 1, {n}, mask.data(), uint64_t(n), TCRT_DEVICE_CPU}};
    for (uint32_t i = 0; i < 3; ++i)
      REQUIRE(tcrt_context_set_input(context, i, &tensors[i]) == TCRT_OK);
  };
  bind(3);
  REQUIRE(tcrt_context_run(context) == TCRT_OK);
  tcrt_tensor_t sum, where;
  REQUIRE(tcrt_context_get_output(context, 1, &sum) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(context, 2, &where) == TCRT_OK);
  CHECK(sum.dims[0] == 5);
  CHECK(static_cast<const float *>(sum.data)[4] == 12.0f);
  CHECK(where.dims[1] == 3);
  bind(65);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  CHECK(std::string(tcrt_last_error()).find("dim 0 (n) is 65, expected 1 to 64") != std::string::npos);
}
