//===- Runner.cpp - time two artifacts against each other ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Measure/Runner.h"

#include "tcrt/artifact_abi.h"
#include "tcrt/tcrt.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <unistd.h>

using namespace tc::measure;

namespace {

// Weights of at least so many bytes are worth several copies, of which there are at most so many, with so many bytes.
constexpr uint64_t kLeastWeights = 64 * 1024, kMostCopies = 16, kMostBytes = 128 * 1024 * 1024;
// A sample takes at least this long, so that the clock does not matter.
constexpr double kSampleSeconds = 50e-6;
// The ratio from which on B needs no more samples than so many.
constexpr double kHopeless = 1.25;
constexpr size_t kHopelessPairs = 3;
// The same of a GPU, whose caches are larger.
constexpr uint64_t kMostBytesOfGpu = 512 * 1024 * 1024;
// Elements of an output that are compared, at most.
constexpr uint64_t kMostCompared = 1 << 20;
// What the tensors' first elements are aligned to.
constexpr size_t kAlignment = 64;

/// Null: there is no memory for it. Sizes that are written somewhere may be any.
char *allocate(uint64_t bytes, size_t alignment) {
  void *data = nullptr;
  return ::posix_memalign(&data, alignment, std::max<uint64_t>(bytes, 1)) == 0 ? static_cast<char *>(data) : nullptr;
}
char *allocateZeros(uint64_t bytes) {
  char *data = allocate(bytes, kAlignment);
  if (data)
    std::memset(data, 0, bytes);
  return data;
}

uint64_t sizeOf(Elements elements) { return elements == Elements::F32 ? 4 : 2; }

float readFloat(const char *data, Elements elements) {
  uint32_t bits = 0;
  std::memcpy(&bits, data, sizeOf(elements));
  float scale = 1;
  if (elements == Elements::BF16) {
    bits <<= 16;
  } else if (elements == Elements::F16) { // the exponent begins 112 later; where it is all ones it stays so
    const uint32_t magnitude = bits & 0x7fff;
    bits = (bits & 0x8000) << 16 | magnitude << 13;
    if (magnitude >= 0x7c00)
      bits |= 0x7f800000;
    else
      scale = 0x1p112f;
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value * scale;
}

/// What rounding and the order of sums explain, of the largest value.
double toleranceOf(Elements elements) {
  return elements == Elements::F32 ? 1e-4 : elements == Elements::F16 ? 0x1p-7 : 0x1p-4;
}

/// In units of that.
double differ(const std::vector<char> &a, const std::vector<char> &b, Elements elements) {
  const uint64_t size = sizeOf(elements), count = a.size() / size, step = count / kMostCompared + 1;
  double largest = 0, difference = 0;
  for (uint64_t i = 0; i < count; i += step) {
    const float x = readFloat(&a[i * size], elements), y = readFloat(&b[i * size], elements);
    if (x == y || (x != x && y != y))
      continue;
    if (!(std::abs(x - y) <= std::numeric_limits<float>::max()))
      return std::numeric_limits<double>::infinity();
    difference = std::max(difference, double(std::abs(x - y)));
  }
  for (uint64_t i = 0; i < count; i += step)
    if (const float x = std::abs(readFloat(&a[i * size], elements)); x <= std::numeric_limits<float>::max())
      largest = std::max(largest, double(x));
  return difference == 0 ? 0 : difference / (largest * toleranceOf(elements));
}

// Of artifacts in messages of libtcrt, which ours do not repeat: kernels have names of their own.
constexpr char kName[] = "kernel", kPrefix[] = "kernel: error: ";

std::string lastError() {
  const std::string text = tcrt_last_error();
  return text.rfind(kPrefix, 0) == 0 ? text.substr(sizeof kPrefix - 1) : text;
}

} // namespace

Tensors::~Tensors() {
  for (const std::vector<Tensor> *tensors : {&inputs, &outputs})
    for (const Tensor &tensor : *tensors)
      std::free(tensor.data);
}

bool Tensors::addInput(std::vector<int64_t> shape, uint64_t bytes, Elements elements) {
  inputs.push_back({std::move(shape), bytes, elements, allocateZeros(bytes)});
  if (!inputs.back().data || elements == Elements::Other)
    return inputs.back().data;
  const uint64_t size = sizeOf(elements);
  uint32_t state = 1;
  for (uint64_t i = 0; i + size <= bytes; i += size) {
    state = state * 1664525 + 1013904223;
    const float value = float(int32_t(state) >> 8) * 0x1p-23f;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (elements == Elements::BF16)
      bits >>= 16;
    else if (elements == Elements::F16) // what it has no exponent for is 0
      bits = (bits >> 16 & 0x8000) | (bits << 1 >= 113u << 24 ? (bits >> 13 & 0x3ffff) - (112 << 10) : 0);
    std::memcpy(inputs.back().data + i, &bits, size);
  }
  return true;
}

bool Tensors::addOutput(std::vector<int64_t> shape, uint64_t bytes, Elements elements) {
  outputs.push_back({std::move(shape), bytes, elements, allocateZeros(bytes)});
  return outputs.back().data;
}

/// An artifact that is opened, and the bytes that it runs from.
struct Runner::Model {
  Model() = default;
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;
  ~Model() {
    tcrt_model_close(model);
    std::free(bytes);
  }
  char *bytes = nullptr; ///< null: they are the caller's
  tcrt_model_t *model = nullptr;
};

struct Runner::Copy {
  explicit Copy(std::shared_ptr<Model> model) : model(std::move(model)) {}
  Copy(const Copy &) = delete;
  Copy &operator=(const Copy &) = delete;
  ~Copy() { tcrt_context_destroy(context); }
  std::shared_ptr<Model> model; // closed after the context
  tcrt_context_t *context = nullptr;
};

/// Device memory of the tensors, inputs first, which are there as they are in the host's.
struct Runner::DeviceTensors {
  explicit DeviceTensors(std::shared_ptr<Copy> owner) : owner(std::move(owner)) {}
  DeviceTensors(const DeviceTensors &) = delete;
  DeviceTensors &operator=(const DeviceTensors &) = delete;
  ~DeviceTensors() {
    for (auto [data, bytes] : buffers)
      tcrt_context_device_free(owner->context, data, bytes);
  }
  std::string fill(const Tensors &tensors) {
    for (const std::vector<Tensors::Tensor> *list : {&tensors.inputs, &tensors.outputs})
      for (const Tensors::Tensor &tensor : *list) {
        void *data = nullptr;
        const uint64_t bytes = std::max<uint64_t>(tensor.bytes, 1);
        if (tcrt_context_device_allocate(owner->context, bytes, &data) != TCRT_OK)
          return lastError();
        buffers.emplace_back(data, bytes);
        if (list == &tensors.inputs && tensor.bytes &&
            tcrt_context_device_copy(owner->context, data, tensor.data, tensor.bytes, TCRT_COPY_HOST_TO_DEVICE) !=
                TCRT_OK)
          return lastError();
      }
    return "";
  }

  std::shared_ptr<Copy> owner;
  std::vector<std::pair<void *, uint64_t>> buffers;
};

/// Gives the context the tensors.
std::string Runner::bind(Copy &copy, const Tensors &tensors) const {
  size_t number = 0;
  auto bindOne = [&](const Tensors::Tensor &from, uint32_t index, auto getInfo, auto set) {
    tcrt_value_info_t info;
    if (getInfo(copy.model->model, options.function, index, &info) != TCRT_OK)
      return false;
    tcrt_tensor_t tensor = {};
    tensor.dtype = info.dtype;
    tensor.rank = uint32_t(from.shape.size());
    std::copy(from.shape.begin(), from.shape.end(), tensor.dims);
    tensor.data = onDevice ? onDevice->buffers[number].first : from.data;
    tensor.size_bytes = from.bytes;
    tensor.device = onDevice ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
    ++number;
    return set(copy.context, index, &tensor) == TCRT_OK;
  };
  for (uint32_t n = 0; n < tensors.inputs.size(); ++n)
    if (!bindOne(tensors.inputs[n], n, tcrt_model_function_input, tcrt_context_set_input))
      return lastError();
  for (uint32_t n = 0; n < tensors.outputs.size(); ++n)
    if (!bindOne(tensors.outputs[n], n, tcrt_model_function_output, tcrt_context_set_output))
      return lastError();
  return "";
}

std::string Runner::addCopy(std::shared_ptr<Model> model, const Tensors &tensors) {
  auto copy = std::make_shared<Copy>(std::move(model));
  tcrt_context_options_t ofContext = {};
  ofContext.size = sizeof ofContext;
  ofContext.threads = options.threads;
  ofContext.profile = options.onGpu ? TCRT_PROFILE_RUNS : TCRT_PROFILE_OFF;
  if (tcrt_context_create(copy->model->model, &ofContext, &copy->context) != TCRT_OK ||
      tcrt_context_set_function(copy->context, options.function) != TCRT_OK)
    return lastError();
  if (options.onGpu && !onDevice) {
    onDevice = std::make_shared<DeviceTensors>(copy);
    if (std::string error = onDevice->fill(tensors); !error.empty())
      return error;
  }
  if (std::string error = bind(*copy, tensors); !error.empty())
    return error;
  // What a first run does only once is not measured.
  if (tcrt_context_run(copy->context) != TCRT_OK)
    return lastError();
  copies.push_back(std::move(copy));
  return "";
}

std::optional<Runner> Runner::open(std::string_view artifact, const RunnerOptions &options, const Tensors &tensors,
                                   std::string &error, const Runner *other) {
  // Together the copies are twice as large as the second-level caches.
  uint64_t count = 1;
  if (options.weightBytes >= kLeastWeights) {
    const uint64_t level2 = options.onGpu
                                ? options.gpuCacheBytes
                                : uint64_t(std::max(1L << 20, ::sysconf(_SC_LEVEL2_CACHE_SIZE))) * options.threads;
    const uint64_t most = options.onGpu ? kMostBytesOfGpu : kMostBytes;
    count = std::min({kMostCopies, 1 + 2 * level2 / options.weightBytes, 1 + most / options.weightBytes});
  }
  Runner runner;
  runner.options = options;
  if (other)
    runner.onDevice = other->onDevice;
  for (uint64_t i = 0; i < count; ++i) {
    auto model = std::make_shared<Model>();
    const char *bytes = artifact.data();
    if (!options.isKept || i > 0) {
      // Where it is aligned the runtime uses it in place.
      bytes = model->bytes = allocate(artifact.size(), TCRT_SECTION_ALIGN);
      if (!bytes) {
        error = "no memory is left for a copy of the kernel to measure";
        return std::nullopt;
      }
      std::memcpy(model->bytes, artifact.data(), artifact.size());
    }
    tcrt_model_options_t ofModel = {};
    ofModel.size = sizeof ofModel;
    ofModel.variant = options.variant.empty() ? nullptr : options.variant.c_str();
    ofModel.device = options.onGpu ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
    if (tcrt_model_open_memory(bytes, artifact.size(), kName, &ofModel, &model->model) != TCRT_OK) {
      error = lastError();
      return std::nullopt;
    }
    if (error = runner.addCopy(std::move(model), tensors); !error.empty())
      return std::nullopt;
  }
  return runner;
}

std::optional<Runner> Runner::openFunction(const Runner &other, uint32_t function, const Tensors &tensors,
                                           std::string &error) {
  Runner runner;
  runner.options = other.options;
  runner.options.function = function;
  runner.onDevice = other.onDevice;
  for (const std::shared_ptr<Copy> &copy : other.copies)
    if (error = runner.addCopy(copy->model, tensors); !error.empty())
      return std::nullopt;
  return runner;
}

std::string Runner::getVariant() const { return tcrt_context_variant(copies.front()->context); }

double Runner::run(unsigned count) {
  double onGpu = 0;
  auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < count; ++i) {
    tcrt_context_t *context = copies[next++ % copies.size()]->context;
    // The first run went well, and all are alike; but a GPU may be lost.
    if (tcrt_context_run(context) != TCRT_OK) {
      failure = lastError();
      return std::numeric_limits<double>::infinity();
    }
    if (!onDevice)
      continue;
    tcrt_context_stats_t stats = {};
    (void)tcrt_context_stats(context, &stats);
    onGpu += stats.device_us * 1e-6;
  }
  const double onHost = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return (onDevice ? onGpu : onHost) / count;
}

std::vector<std::vector<char>> Runner::readOutputs(const Tensors &tensors) {
  std::vector<std::vector<char>> all;
  tcrt_context_t *context = copies.front()->context;
  if (tcrt_context_run(context) != TCRT_OK) {
    failure = lastError();
    return all;
  }
  for (size_t i = 0; i < tensors.outputs.size(); ++i) {
    all.emplace_back(tensors.outputs[i].bytes);
    const void *from = onDevice->buffers[tensors.inputs.size() + i].first;
    if (!all.back().empty() && tcrt_context_device_copy(context, all.back().data(), from, all.back().size(),
                                                        TCRT_COPY_DEVICE_TO_HOST) != TCRT_OK) {
      failure = lastError();
      return {};
    }
  }
  return all;
}

double Runner::differFrom(Runner &other, const Tensors &tensors) {
  // They write to the same memory, one after the other.
  const std::vector<std::vector<char>> expected = other.readOutputs(tensors), own = readOutputs(tensors);
  double most = 0;
  if (!failure.empty() || !other.failure.empty())
    return std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tensors.outputs.size(); ++i)
    if (const Elements elements = tensors.outputs[i].elements; elements != Elements::Other)
      most = std::max(most, differ(expected[i], own[i], elements));
  return most;
}

Comparison tc::measure::compare(Runner &a, Runner &b, double seconds, size_t pairs) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Comparison failed = {infinity, infinity, infinity, infinity, infinity};
  const double once = std::max({a.run(1), b.run(1), 1e-8});
  if (once == infinity)
    return failed;
  const auto count = unsigned(std::clamp(kSampleSeconds / once, 1.0, 1000.0));
  std::vector<double> ratios;
  auto start = std::chrono::steady_clock::now();
  Comparison result = {};
  result.leastA = result.leastB = infinity;
  for (;;) {
    // Who is first changes, as what follows finds other caches.
    const bool isFirst = ratios.size() % 2 == 0;
    double ofA = isFirst ? a.run(count) : 0, ofB = b.run(count);
    if (!isFirst)
      ofA = a.run(count);
    if (std::max(ofA, ofB) == infinity)
      return failed;
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
