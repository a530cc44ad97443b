//===- Runner.cpp - time two artifacts against each other ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Runner.h"

#include "tcrt/artifact_abi.h"
#include "tcrt/tcrt.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <unistd.h>

using namespace tc::autotune;

namespace {

// Weights of at least so many bytes are worth several copies, of which there are at most so many, with so many bytes.
constexpr uint64_t kLeastWeights = 64 * 1024, kMostCopies = 16, kMostBytes = 128 * 1024 * 1024;
// A sample takes at least this long, so that the clock does not matter.
constexpr double kSampleSeconds = 50e-6;
// The ratio from which on B needs no more samples than so many.
constexpr double kHopeless = 1.25;
constexpr size_t kHopelessPairs = 3;
// What the tensors' first elements are aligned to.
constexpr size_t kAlignment = 64;

char *allocate(uint64_t bytes) {
  auto *data = static_cast<char *>(llvm::allocate_buffer(std::max<uint64_t>(bytes, 1), kAlignment));
  std::memset(data, 0, bytes);
  return data;
}

llvm::Error lastError() { return llvm::createStringError(llvm::Twine(tcrt_last_error())); }

} // namespace

Tensors::~Tensors() {
  for (const std::vector<Tensor> *tensors : {&inputs, &outputs})
    for (const Tensor &tensor : *tensors)
      llvm::deallocate_buffer(tensor.data, std::max<uint64_t>(tensor.bytes, 1), kAlignment);
}

void Tensors::addInput(std::vector<int64_t> shape, uint64_t bytes, bool isF32) {
  inputs.push_back({std::move(shape), bytes, isF32, allocate(bytes)});
  if (!isF32)
    return;
  uint32_t state = 1;
  for (uint64_t i = 0; i + sizeof(float) <= bytes; i += sizeof(float)) {
    state = state * 1664525 + 1013904223;
    float value = float(int32_t(state) >> 8) * 0x1p-23f;
    std::memcpy(inputs.back().data + i, &value, sizeof value);
  }
}

void Tensors::addOutput(std::vector<int64_t> shape, uint64_t bytes) {
  outputs.push_back({std::move(shape), bytes, false, allocate(bytes)});
}

Runner::Copy::~Copy() {
  tcrt_context_destroy(context);
  tcrt_model_close(model);
}

llvm::Expected<Runner> Runner::open(llvm::StringRef artifact, const std::string &variant, unsigned threads,
                                    uint64_t weightBytes, const Tensors &tensors) {
  // Together the copies are twice as large as the second-level caches.
  uint64_t count = 1;
  if (weightBytes >= kLeastWeights) {
    auto level2 = uint64_t(std::max(1L << 20, ::sysconf(_SC_LEVEL2_CACHE_SIZE)));
    count = std::min({kMostCopies, 1 + 2 * level2 * threads / weightBytes, 1 + kMostBytes / weightBytes});
  }
  Runner runner;
  for (uint64_t i = 0; i < count; ++i) {
    auto copy = std::make_unique<Copy>();
    // Where it is aligned the runtime uses it in place.
    copy->artifact =
        llvm::WritableMemoryBuffer::getNewUninitMemBuffer(artifact.size(), "a kernel", llvm::Align(TCRT_SECTION_ALIGN));
    if (!copy->artifact)
      return llvm::createStringError("no memory left for a copy of the kernel to measure");
    llvm::copy(artifact, copy->artifact->getBufferStart());
    tcrt_model_options_t options = {};
    options.size = sizeof options;
    options.variant = variant.empty() ? nullptr : variant.c_str();
    if (tcrt_model_open_memory(copy->artifact->getBufferStart(), artifact.size(), "a kernel", &options, &copy->model) !=
        TCRT_OK)
      return lastError();
    tcrt_context_options_t ofContext = {};
    ofContext.size = sizeof ofContext;
    ofContext.threads = threads;
    if (tcrt_context_create(copy->model, &ofContext, &copy->context) != TCRT_OK)
      return lastError();
    auto bind = [&](const Tensors::Tensor &from, uint32_t index, auto getInfo, auto set) {
      tcrt_value_info_t info;
      if (getInfo(copy->model, index, &info) != TCRT_OK)
        return false;
      tcrt_tensor_t tensor = {};
      tensor.dtype = info.dtype;
      tensor.rank = uint32_t(from.shape.size());
      std::copy(from.shape.begin(), from.shape.end(), tensor.dims);
      tensor.data = from.data;
      tensor.size_bytes = from.bytes;
      return set(copy->context, index, &tensor) == TCRT_OK;
    };
    for (uint32_t n = 0; n < tensors.inputs.size(); ++n)
      if (!bind(tensors.inputs[n], n, tcrt_model_input, tcrt_context_set_input))
        return lastError();
    for (uint32_t n = 0; n < tensors.outputs.size(); ++n)
      if (!bind(tensors.outputs[n], n, tcrt_model_output, tcrt_context_set_output))
        return lastError();
    // What a first run does only once is not measured.
    if (tcrt_context_run(copy->context) != TCRT_OK)
      return lastError();
    runner.copies.push_back(std::move(copy));
  }
  return runner;
}

std::string Runner::getVariant() const { return tcrt_context_variant(copies.front()->context); }

double Runner::run(unsigned count) {
  auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < count; ++i) // the first run went well, and all are alike
    (void)tcrt_context_run(copies[next++ % copies.size()]->context);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
}

Comparison tc::autotune::compare(Runner &a, Runner &b, double seconds, size_t pairs) {
  const double once = std::max({a.run(1), b.run(1), 1e-8});
  const auto count = unsigned(std::clamp(kSampleSeconds / once, 1.0, 1000.0));
  std::vector<double> ratios;
  auto start = std::chrono::steady_clock::now();
  Comparison result = {};
  result.leastA = result.leastB = std::numeric_limits<double>::infinity();
  for (;;) {
    // Who is first changes, as what follows finds other caches.
    const bool isFirst = ratios.size() % 2 == 0;
    double ofA = isFirst ? a.run(count) : 0, ofB = b.run(count);
    if (!isFirst)
      ofA = a.run(count);
    ratios.push_back(ofB / ofA);
    result.leastA = std::min(result.leastA, ofA);
    result.leastB = std::min(result.leastB, ofB);
    result.leastRatio = result.leastB / result.leastA;
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if ((ratios.size() >= pairs && passed > seconds) ||
        (ratios.size() >= kHopelessPairs && result.leastRatio > kHopeless))
      break;
  }
  std::sort(ratios.begin(), ratios.end());
  result.medianRatio = ratios[ratios.size() / 2];
  result.fifthRatio = ratios[ratios.size() * 4 / 5];
  return result;
}
