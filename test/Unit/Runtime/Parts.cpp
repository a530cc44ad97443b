//===- Parts.cpp - Weights in a file of their own, and artifacts inside of artifacts --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"
#include "Runtime/Internal.h"
#include "tcrt/tcrt.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace tc;
using namespace tc::test;

namespace {

/// A path that is free, and free again at the end.
struct Path {
  std::string name = "/tmp/tc-unit-parts-" + std::to_string(getpid()) + ".bin";
  std::string weights = name + ".weights";
  ~Path() {
    unlink(name.c_str());
    unlink(weights.c_str());
  }
};

void writeFile(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// Opens and closes; the status and what is said.
std::pair<tcrt_status_t, std::string> openFile(const std::string &path, bool verifyWeights = false,
                                               uint32_t device = TCRT_DEVICE_CPU) {
  tcrt_model_options_t options = {};
  options.size = sizeof options;
  options.verify_weights = verifyWeights;
  options.device = device;
  tcrt_model_t *model;
  tcrt_status_t status = tcrt_model_open_file(path.c_str(), &options, &model);
  std::string text = status == TCRT_OK ? "" : tcrt_last_error();
  tcrt_model_close(model);
  return {status, text};
}

/// The default of b is read from the weights: 2x + (1, 2, 3, 4).
float lastElement(const std::string &path) {
  tcrt_model_t *model;
  REQUIRE(tcrt_model_open_file(path.c_str(), nullptr, &model) == TCRT_OK);
  tcrt_context_t *context;
  REQUIRE(tcrt_context_create(model, nullptr, &context) == TCRT_OK);
  float x[4] = {1, 1, 1, 1};
  tcrt_tensor_t tensor = {TCRT_DTYPE_F32, 2, {1, 4}, x, sizeof x, TCRT_DEVICE_CPU}, y;
  REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
  REQUIRE(tcrt_context_run(context) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
  float last = static_cast<float *>(y.data)[3];
  tcrt_context_destroy(context);
  tcrt_model_close(model);
  return last;
}

bool cannotWrite(const artifact::ArtifactSpec &spec) {
  llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
  if (bytes)
    return false;
  llvm::consumeError(bytes.takeError());
  return true;
}

} // namespace

TEST_CASE("weights in a file of their own are mapped from it, and from no other") {
  Path path;
  artifact::ArtifactSpec spec = basicSpec();
  spec.externalWeights = true;
  REQUIRE(!artifact::writeArtifact(spec, path.name));
  CHECK(lastElement(path.name) == 6);
  CHECK(openFile(path.name, true).first == TCRT_OK);

  const std::string bytes = readFile(path.name), weights = readFile(path.weights);
  CHECK(weights.size() == TCRT_SECTION_ALIGN + spec.weightsSize());
  tcrt_model_t *model;
  CHECK(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", nullptr, &model) == TCRT_ERROR_INVALID);
  CHECK(std::string(tcrt_last_error()) ==
        "m.bin: error: the artifact's weights are in a file of their own; open the artifact by its path");

  // What is in the head tells files of different compiles apart; what comes after it costs a full check.
  std::string damaged = weights;
  for (size_t i = 0; i < sizeof(tcrt_weights_header_t); ++i) {
    damaged[i] = char(damaged[i] ^ 4);
    writeFile(path.weights, damaged);
    INFO("byte " << i);
    CHECK(openFile(path.name).second == path.weights + ": error: the file does not hold the weights of " + path.name +
                                            "; copy or compile both again");
    damaged = weights;
  }
  damaged.back() = char(damaged.back() ^ 1);
  writeFile(path.weights, damaged);
  CHECK(openFile(path.name).first == TCRT_OK);
  CHECK(openFile(path.name, true).first == TCRT_ERROR_INVALID);
  for (size_t size : {size_t(0), size_t(1), weights.size() - 1, weights.size() + 1}) {
    damaged = weights;
    damaged.resize(size);
    writeFile(path.weights, damaged);
    CHECK(openFile(path.name).first == TCRT_ERROR_INVALID);
  }
  unlink(path.weights.c_str());
  CHECK(openFile(path.name).second.find("cannot be read: No such file or directory") != std::string::npos);

  CHECK(cannotWrite(spec));
}

TEST_CASE("external weights of a model without constants need no file") {
  Path path;
  artifact::ArtifactSpec spec = stressSpec();
  spec.externalWeights = true;
  REQUIRE(!artifact::writeArtifact(spec, path.name));
  CHECK(openFile(path.name, true).first == TCRT_OK);
  CHECK(access(path.weights.c_str(), F_OK) != 0);
}

TEST_CASE("each device finds its own part of an artifact") {
  Path path;
  artifact::ArtifactSpec spec = basicSpec();
  spec.others.push_back(deviceSpec());
  REQUIRE(!artifact::writeArtifact(spec, path.name));
  CHECK(lastElement(path.name) == 6);
  const std::string bytes = readFile(path.name);
  for (uint32_t device : {TCRT_DEVICE_CPU, TCRT_DEVICE_CUDA}) {
    tcrt_model_options_t options = {};
    options.size = sizeof options;
    options.verify_weights = 1;
    options.device = device;
    tcrt_model_t *model;
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", &options, &model) == TCRT_OK);
    CHECK(tcrt_model_input_count(model) == (device == TCRT_DEVICE_CPU ? 2 : deviceSpec().functions[0].inputs.size()));
    tcrt_variant_info_t variant;
    REQUIRE(tcrt_model_variant(model, 0, &variant) == TCRT_OK);
    CHECK(variant.device == device);
    tcrt_model_close(model);
  }
  // Damage inside is found when that part is opened.
  tcrt_file_header_t header;
  std::memcpy(&header, bytes.data(), sizeof header);
  tcrt_section_t section;
  std::memcpy(&section, &bytes[header.table_offset + (header.section_count - 1) * sizeof section], sizeof section);
  REQUIRE(section.kind == TCRT_SECTION_ARTIFACT);
  std::string damaged = bytes;
  damaged[section.offset + TCRT_SECTION_ALIGN] ^= 1;
  writeFile(path.name, damaged);
  CHECK(openFile(path.name).first == TCRT_OK);
  CHECK(openFile(path.name, false, TCRT_DEVICE_CUDA).first == TCRT_ERROR_INVALID);
  // The whole file is read where that is asked for, whichever part is used; not all of it is needed to open that.
  damaged = bytes;
  damaged[section.offset + section.size - 1] ^= 1;
  writeFile(path.name, damaged);
  CHECK(openFile(path.name).first == TCRT_OK);
  CHECK(openFile(path.name, true).first == TCRT_ERROR_INVALID);

  spec.others[0].others.push_back(basicSpec());
  CHECK(cannotWrite(spec));
}
