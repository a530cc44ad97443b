//===- Runner.cpp - what measures schedules -------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Measure/Runner.h"
#include "Programs/Programs.h"
#include "tcrt/artifact_abi.h"

#include "llvm/Support/MemoryBuffer.h"
#include <catch2/catch.hpp>

#include <cstring>

using namespace tc;
using namespace tc::test;

TEST_CASE("a runner outlives the bytes that it was opened from, wherever they lay") {
  const std::string bytes = llvm::cantFail(artifact::writeArtifactToMemory(basicSpec()));
  measure::Tensors tensors;
  tensors.addInput({3, 4}, 48, measure::Elements::F32);
  tensors.addOutput({3, 4}, 48);
  for (size_t offset : {size_t(0), size_t(64)}) {
    INFO("offset " << offset);
    auto given =
        llvm::WritableMemoryBuffer::getNewUninitMemBuffer(offset + bytes.size(), "", llvm::Align(TCRT_SECTION_ALIGN));
    char *start = given->getBufferStart() + offset;
    std::memcpy(start, bytes.data(), bytes.size());
    measure::RunnerOptions options;
    options.threads = 2;
    options.weightBytes = 1 << 20; // worth several copies
    std::string error;
    std::optional<measure::Runner> runner = measure::Runner::open({start, bytes.size()}, options, tensors, error);
    REQUIRE(runner);
    std::memset(start, 0xff, bytes.size());
    given.reset();
    std::memset(tensors.outputs[0].data, 0, 48);
    runner->run(5);
    float x[12], y[12];
    std::memcpy(x, tensors.inputs[0].data, sizeof x);
    std::memcpy(y, tensors.outputs[0].data, sizeof y);
    for (int i = 0; i < 12; ++i)
      CHECK(y[i] == 2 * x[i] + float(1 + i % 4));
  }
}
