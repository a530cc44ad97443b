//===- Main.cpp - tc-run: runs a compiled model -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Compare.h"
#include "Npz.h"
#include "Options.h"
#include "Pb.h"
#include "Tensor.h"

#include "tcrt/tcrt.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace tc::run;

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

void check(tcrt_status_t status) {
  if (status != TCRT_OK)
    throw Failure{int(status), tcrt_last_error()};
}

struct CloseModel {
  void operator()(tcrt_model_t *model) const { tcrt_model_close(model); }
};
struct DestroyContext {
  void operator()(tcrt_context_t *context) const { tcrt_context_destroy(context); }
};

bool endsWith(const std::string &text, const char *end) {
  size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

/// Small, fast and the same everywhere (Steele et al., "Fast splittable pseudorandom number generators", SplitMix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// In (0, 1].
  double uniform() { return double((next() >> 11) + 1) * 0x1p-53; }
  /// N(0, 1) after Box and Muller.
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); }

private:
  uint64_t state;
};

class Runner {
public:
  explicit Runner(const Options &options) : options(options) {}

  int run() {
    open();
    readInputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i])
        bindInput(uint32_t(i));
    Clock::time_point start = Clock::now();
    check(tcrt_context_infer(context.get()));
    loadUs += microseconds(Clock::now() - start);
    checkDims();
    check(tcrt_context_run(context.get()));
    readOutputs();
    int code = options.expect.empty() ? 0 : compareOutputs();
    writeOutputs();
    if (options.benchmarkSeconds)
      benchmark();
    if (options.profile)
      profile();
    if (options.expect.empty() && options.outputs.empty() && options.outputDir.empty() && !options.benchmarkSeconds &&
        !options.profile)
      printOutputs();
    return code;
  }

private:
  const char *file() const { return options.artifact.c_str(); }

  void open() {
    tcrt_model_options_t modelOptions = {};
    modelOptions.size = sizeof modelOptions;
    modelOptions.verify_weights = options.verifyWeights;
    modelOptions.device = options.isCuda ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
    modelOptions.device_index = options.deviceIndex;
    modelOptions.variant = options.variant.empty() ? nullptr : options.variant.c_str();
    Clock::time_point start = Clock::now();
    tcrt_model_t *opened;
    check(tcrt_model_open_file(file(), &modelOptions, &opened));
    model.reset(opened);
    tcrt_context_options_t contextOptions = {};
    contextOptions.size = sizeof contextOptions;
    contextOptions.threads = options.threads;
    contextOptions.profile = options.profile || (options.isCuda && options.benchmarkSeconds);
    tcrt_context_t *created;
    check(tcrt_context_create(model.get(), &contextOptions, &created));
    context.reset(created);
    loadUs = microseconds(Clock::now() - start);
    inputs.resize(tcrt_model_input_count(model.get()));
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      inputInfo.emplace_back();
      check(tcrt_model_input(model.get(), i, &inputInfo.back()));
    }
    for (uint32_t i = 0; i < tcrt_model_output_count(model.get()); ++i) {
      outputInfo.emplace_back();
      check(tcrt_model_output(model.get(), i, &outputInfo.back()));
    }
  }

  // ---- inputs ----

  /// Index of the value that an array's name means: its name, or <prefix>_<index>.
  static std::optional<uint32_t> find(const std::vector<tcrt_value_info_t> &values, const char *prefix,
                                      const std::string &name) {
    for (uint32_t i = 0; i < values.size(); ++i)
      if (name == values[i].name)
        return i;
    for (uint32_t i = 0; i < values.size(); ++i)
      if (name == prefix + std::to_string(i))
        return i;
    return std::nullopt;
  }

  uint32_t findInput(const std::string &name) const {
    if (std::optional<uint32_t> index = find(inputInfo, "input_", name))
      return *index;
    std::string names;
    for (size_t i = 0; i < inputInfo.size() && i < 8; ++i)
      names += (i ? ", \"" : "\"") + std::string(inputInfo[i].name) + "\"";
    throw Failure{4, options.artifact + ": error: the model has no input \"" + name + "\"; its inputs are " + names +
                         (inputInfo.size() > 8 ? ", ..." : "")};
  }

  void setInput(uint32_t index, const Tensor &tensor) {
    const tcrt_value_info_t &info = inputInfo[index];
    Tensor &target = inputs[index].emplace();
    bool convertible = tensor.dtype == TCRT_DTYPE_F32 && isSmallFloat(info.dtype);
    bool isRaw = tensor.dtype == TCRT_DTYPE_INVALID && tcrt_dtype_bits(info.dtype) == 8 * tensor.rawBytes;
    // NumPy has no integers below a byte.
    bool isPacked = tcrt_dtype_bits(info.dtype) < 8 && isInteger(info.dtype) &&
                    tensor.dtype == (isSigned(info.dtype) ? TCRT_DTYPE_I8 : TCRT_DTYPE_U8);
    target = convertible || isRaw || isPacked ? convert(tensor, info.dtype) : tensor;
    if (target.dtype == TCRT_DTYPE_INVALID)
      throw Failure{4, options.artifact + ": error: input \"" + info.name + "\": its elements are " +
                           std::to_string(tensor.rawBytes) + " raw bytes, expected " + tcrt_dtype_name(info.dtype)};
  }

  void readNamedInput(const std::string &text) {
    // NAME=FILE, where names may hold '=': the longest prefix that is an input wins.
    std::optional<uint32_t> index;
    std::string path;
    for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
      if (std::optional<uint32_t> found = find(inputInfo, "input_", text.substr(0, at))) {
        index = found;
        path = text.substr(at + 1);
      }
    }
    if (!index) {
      size_t at = text.find('=');
      if (at == std::string::npos)
        throw Failure{1, "tc-run: error: --input takes NAME=FILE, not \"" + text + "\"; see tc-run --help"};
      findInput(text.substr(0, at));
    }
    if (endsWith(path, ".pb")) {
      PbValue value = readPb(path);
      if (value.tensors.size() != 1)
        throw Failure{4, options.artifact + ": error: input \"" + inputInfo[*index].name + "\": " + path +
                             " holds a sequence or an optional, expected a tensor"};
      setInput(*index, value.tensors[0]);
    } else if (endsWith(path, ".npy")) {
      setInput(*index, readNpy(path));
    } else {
      throw Failure{1, path + ": error: the file's kind is not known by its name; .npy and .pb are"};
    }
  }

  /// What the manifest says about the values of integer inputs: [low, high) by input.
  std::vector<std::optional<std::pair<int64_t, int64_t>>> inputRanges() const {
    std::vector<std::optional<std::pair<int64_t, int64_t>>> ranges(inputInfo.size());
    const char *text;
    uint64_t size;
    check(tcrt_model_manifest(model.get(), &text, &size));
    auto manifest = nlohmann::json::parse(text, text + size, nullptr, /*allow_exceptions=*/false);
    if (!manifest.is_object() || !manifest.contains("inputs") || !manifest["inputs"].is_array())
      return ranges;
    for (const auto &entry : manifest["inputs"]) {
      if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("range"))
        continue;
      const auto &range = entry["range"];
      if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() || !range[1].is_number_integer())
        continue;
      for (size_t i = 0; i < inputInfo.size(); ++i)
        if (entry["name"].get<std::string>() == inputInfo[i].name && range[0].get<int64_t>() < range[1].get<int64_t>())
          ranges[i] = std::make_pair(range[0].get<int64_t>(), range[1].get<int64_t>());
    }
    return ranges;
  }

  void makeRandomInputs() {
    std::vector<int64_t> symbols(tcrt_model_symbol_count(model.get()));
    for (uint32_t i = 0; i < symbols.size(); ++i) {
      tcrt_symbol_info_t info;
      check(tcrt_model_symbol(model.get(), i, &info));
      // The smallest size from 1 on that the guard allows.
      int64_t size = std::max<int64_t>(info.min, 1);
      symbols[i] = size > INT64_MAX - info.divisor ? size : (size + info.divisor - 1) / info.divisor * info.divisor;
      for (const auto &[name, value] : options.dims)
        if (name == info.name)
          symbols[i] = value;
    }
    auto ranges = inputRanges();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const tcrt_value_info_t &info = inputInfo[i];
      if (inputs[i] || (info.flags & TCRT_VALUE_FLAG_DEFAULT))
        continue;
      Tensor &tensor = inputs[i].emplace();
      tensor.dtype = info.dtype;
      for (uint32_t d = 0; d < info.rank; ++d)
        tensor.dims.push_back(info.symbols[d] >= 0 ? symbols[size_t(info.symbols[d])]
                              : info.dims[d] >= 0  ? info.dims[d]
                                                   : 1);
      tensor.data.resize(sizeOf(tensor.dtype, tensor.dims, options.artifact));
      Random random(*options.randomSeed * 0x2545f4914f6cdd1du + i);
      int64_t low = ranges[i] ? ranges[i]->first : 0, high = ranges[i] ? ranges[i]->second : 2;
      int64_t count = tensor.count();
      if (tensor.dtype == TCRT_DTYPE_C64 || tensor.dtype == TCRT_DTYPE_C128) {
        Tensor parts;
        parts.dtype = tensor.dtype == TCRT_DTYPE_C64 ? TCRT_DTYPE_F32 : TCRT_DTYPE_F64;
        parts.data.resize(tensor.data.size());
        for (int64_t j = 0; j < 2 * count; ++j)
          setReal(parts, j, random.normal());
        tensor.data = parts.data;
      } else if (isFloat(tensor.dtype)) {
        for (int64_t j = 0; j < count; ++j)
          setReal(tensor, j, random.normal());
      } else {
        uint64_t span = tensor.dtype == TCRT_DTYPE_BOOL ? 2 : uint64_t(high) - uint64_t(low);
        for (int64_t j = 0; j < count; ++j)
          setInteger(tensor, j, (tensor.dtype == TCRT_DTYPE_BOOL ? 0 : low) + int64_t(random.next() % span));
      }
    }
  }

  void readInputs() {
    for (const auto &[name, value] : options.dims) {
      bool known = false;
      for (uint32_t i = 0; i < tcrt_model_symbol_count(model.get()); ++i) {
        tcrt_symbol_info_t info;
        check(tcrt_model_symbol(model.get(), i, &info));
        known |= name == info.name;
      }
      if (!known)
        throw Failure{4, options.artifact + ": error: the model has no symbolic dim \"" + name + "\""};
    }
    if (!options.inputs.empty())
      for (const auto &[name, tensor] : readNpz(options.inputs))
        setInput(findInput(name), tensor);
    for (const std::string &text : options.input)
      readNamedInput(text);
    if (options.randomSeed)
      makeRandomInputs();
  }

  tcrt_tensor_t describe(Tensor &tensor) const {
    tcrt_tensor_t result = {};
    result.dtype = tensor.dtype;
    result.rank = uint32_t(tensor.dims.size());
    std::copy(tensor.dims.begin(), tensor.dims.end(), result.dims);
    result.data = tensor.data.data();
    result.size_bytes = tensor.data.size();
    return result;
  }

  void bindInput(uint32_t index) {
    tcrt_tensor_t tensor = describe(*inputs[index]);
    check(tcrt_context_set_input(context.get(), index, &tensor));
  }

  /// --dim must not contradict the inputs' sizes.
  void checkDims() const {
    for (const auto &[name, value] : options.dims)
      for (size_t i = 0; i < inputInfo.size(); ++i)
        for (uint32_t d = 0; inputs[i] && d < inputInfo[i].rank; ++d) {
          tcrt_symbol_info_t info;
          if (inputInfo[i].symbols[d] < 0)
            continue;
          check(tcrt_model_symbol(model.get(), uint32_t(inputInfo[i].symbols[d]), &info));
          if (name == info.name && inputs[i]->dims[d] != value)
            throw Failure{4, options.artifact + ": error: input \"" + inputInfo[i].name + "\": dim " +
                                 std::to_string(d) + " (" + name + ") is " + std::to_string(inputs[i]->dims[d]) +
                                 ", expected " + std::to_string(value) + " as given by --dim"};
        }
  }

  // ---- outputs ----

  void readOutputs() {
    for (uint32_t i = 0; i < outputInfo.size(); ++i) {
      tcrt_tensor_t tensor;
      check(tcrt_context_get_output(context.get(), i, &tensor));
      Tensor output;
      output.dtype = tensor.dtype;
      output.dims.assign(tensor.dims, tensor.dims + tensor.rank);
      const uint8_t *data = static_cast<const uint8_t *>(tensor.data);
      if (tensor.size_bytes)
        output.data.assign(data, data + tensor.size_bytes);
      outputs.emplace_back(outputInfo[i].name, std::move(output));
    }
  }

  int compareOutputs() {
    NamedTensors expected = readNpz(options.expect);
    Tolerance tolerance;
    if (options.rtol || options.atol) {
      tolerance.rtol = options.rtol.value_or(0);
      tolerance.atol = options.atol.value_or(0);
    } else {
      tolerance.maxRel = options.maxRel.value_or(1e-5);
    }
    std::string worst;
    double worstBadness = -1;
    int differing = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor *match = nullptr;
      for (const std::string &name : {outputs[i].first, "output_" + std::to_string(i)})
        for (const auto &[key, tensor] : expected)
          if (!match && key == name)
            match = &tensor;
      if (!match)
        throw Failure{1, options.expect + ": error: there is no array for output \"" + outputs[i].first +
                             "\"; name it so or output_" + std::to_string(i)};
      Comparison result = compare(outputs[i].second, *match, tolerance);
      std::string line = "output \"" + outputs[i].first + "\": " + result.message;
      if (!result.isEqual) {
        std::fprintf(stderr, "%s: error: %s differs: %s\n", file(), ("output \"" + outputs[i].first + "\"").c_str(),
                     result.message.c_str());
        ++differing;
      }
      if (result.badness > worstBadness)
        worstBadness = result.badness, worst = line;
    }
    std::printf("%s: %zu of %zu outputs as expected; worst: %s\n", differing ? "FAILED" : "ok",
                outputs.size() - size_t(differing), outputs.size(), outputs.empty() ? "none" : worst.c_str());
    return differing ? 3 : 0;
  }

  void writeOutputs() {
    if (!options.outputs.empty())
      writeNpz(options.outputs, outputs);
    if (options.outputDir.empty())
      return;
    if (::mkdir(options.outputDir.c_str(), 0777) != 0 && errno != EEXIST)
      throw Failure{1, options.outputDir + ": error: the folder cannot be made: " + std::strerror(errno)};
    for (size_t i = 0; i < outputs.size(); ++i)
      writeFile(options.outputDir + "/output_" + std::to_string(i) + ".pb",
                tensorProto(outputs[i].first, outputs[i].second));
  }

  void printOutputs() {
    for (const auto &[name, tensor] : outputs) {
      std::printf("%s: %s %s", name.c_str(), tcrt_dtype_name(tensor.dtype), dimsText(tensor.dims).c_str());
      int64_t count = tensor.dtype == TCRT_DTYPE_C64 || tensor.dtype == TCRT_DTYPE_C128 ? 0 : tensor.count();
      for (int64_t i = 0; i < count && i < 8; ++i) {
        if (isFloat(tensor.dtype))
          std::printf("%s%.6g", i ? ", " : " = ", realAt(tensor, i));
        else
          std::printf("%s%lld", i ? ", " : " = ", static_cast<long long>(integerAt(tensor, i)));
      }
      std::printf(count > 8 ? ", ...\n" : "\n");
    }
  }

  // ---- measuring ----

  /// Memory of the context's device, freed with the Runner.
  void *deviceBuffer(uint64_t bytes) {
    void *data;
    check(tcrt_context_device_allocate(context.get(), bytes, &data));
    deviceBuffers.push_back({context.get(), data, bytes});
    return data;
  }

  /// Binds buffers of our own, on the device that computes, so that a run copies nothing.
  void bindBuffers() {
    for (uint32_t i = 0; options.isCuda && i < inputs.size(); ++i) {
      if (!inputs[i])
        continue;
      tcrt_tensor_t tensor = describe(*inputs[i]);
      tensor.data = deviceBuffer(tensor.size_bytes);
      check(tcrt_context_device_copy(context.get(), tensor.data, inputs[i]->data.data(), tensor.size_bytes,
                                     TCRT_COPY_HOST_TO_DEVICE));
      tensor.device = TCRT_DEVICE_CUDA;
      check(tcrt_context_set_input(context.get(), i, &tensor));
    }
    outputBuffers.resize(outputs.size());
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      tcrt_tensor_t tensor = describe(outputs[i].second);
      if (options.isCuda) {
        tensor.data = deviceBuffer(tensor.size_bytes);
        tensor.device = TCRT_DEVICE_CUDA;
      } else {
        outputBuffers[i].resize(outputs[i].second.data.size());
        tensor.data = outputBuffers[i].data();
      }
      check(tcrt_context_set_output(context.get(), i, &tensor));
    }
  }

  void benchmark() {
    bindBuffers();
    // Copying this much within the device pushes everything else out of its L2 cache.
    const uint64_t flushBytes = uint64_t(128) << 20;
    uint8_t *flush = options.isCuda ? static_cast<uint8_t *>(deviceBuffer(2 * flushBytes)) : nullptr;
    auto flushCache = [&] {
      if (flush)
        check(
            tcrt_context_device_copy(context.get(), flush, flush + flushBytes, flushBytes, TCRT_COPY_DEVICE_TO_DEVICE));
    };
    Clock::duration budget =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*options.benchmarkSeconds));
    Clock::time_point start = Clock::now();
    for (int i = 0; i < 3 || (i < 1000 && Clock::now() - start < budget / 5); ++i)
      check(tcrt_context_run(context.get()));
    std::vector<double> times, deviceTimes;
    start = Clock::now();
    while (times.size() < 5 || (Clock::now() - start < budget && times.size() < 10000000)) {
      flushCache();
      Clock::time_point before = Clock::now();
      check(tcrt_context_run(context.get()));
      times.push_back(microseconds(Clock::now() - before));
      if (options.isCuda) {
        tcrt_context_stats_t stats;
        check(tcrt_context_stats(context.get(), &stats));
        deviceTimes.push_back(stats.device_us);
      }
    }
    std::sort(times.begin(), times.end());
    std::sort(deviceTimes.begin(), deviceTimes.end());
    struct rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    double median = times[times.size() / 2], p90 = times[std::min(times.size() - 1, times.size() * 9 / 10)];
    nlohmann::ordered_json json;
    json["median_us"] = median;
    json["min_us"] = times.front();
    json["p90_us"] = p90;
    json["gpu_us"] =
        deviceTimes.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(deviceTimes[deviceTimes.size() / 2]);
    json["runs"] = times.size();
    json["load_us"] = loadUs;
    json["peak_rss_bytes"] = uint64_t(usage.ru_maxrss) * 1024;
    json["threads"] = tcrt_context_threads(context.get());
    json["variant"] = tcrt_context_variant(context.get());
    if (options.json == "-") {
      std::printf("%s\n", json.dump(2).c_str());
      return;
    }
    std::printf("median %.2f us, min %.2f us, p90 %.2f us, %zu runs, %u threads, variant %s, load %.0f us\n", median,
                times.front(), p90, times.size(), tcrt_context_threads(context.get()),
                tcrt_context_variant(context.get()), loadUs);
    if (!deviceTimes.empty())
      std::printf("gpu median %.2f us\n", deviceTimes[deviceTimes.size() / 2]);
    if (!options.json.empty()) {
      std::string text = json.dump(2) + "\n";
      writeFile(options.json, {text.begin(), text.end()});
    }
  }

  void profile() {
    const int runs = 10;
    check(tcrt_context_run(context.get()));
    check(tcrt_context_profile_reset(context.get()));
    Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; ++i)
      check(tcrt_context_run(context.get()));
    double wall = microseconds(Clock::now() - start) / runs;
    std::vector<tcrt_profile_entry_t> entries(tcrt_context_profile_count(context.get()));
    double total = 0;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      check(tcrt_context_profile(context.get(), i, &entries[i]));
      total += double(entries[i].time_ns) / 1000 / runs;
    }
    std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : std::strcmp(a.kernel, b.kernel) < 0;
    });
    std::printf("%10s %6s %8s %10s %10s  %-28s %s\n", "us/run", "%", "calls", "GFLOP/s", "GB/s", "kernel", "nodes");
    for (const tcrt_profile_entry_t &entry : entries) {
      if (!entry.launches)
        continue;
      double us = double(entry.time_ns) / 1000 / runs, calls = double(entry.launches) / runs;
      // No number is better than a zero that stands for "not known".
      auto rate = [&](uint64_t amount) {
        char text[32] = "-";
        if (amount && us > 0)
          std::snprintf(text, sizeof text, "%.2f", double(amount) * calls / us / 1000);
        return std::string(text);
      };
      std::printf("%10.2f %6.1f %8.1f %10s %10s  %-28s %s\n", us, total > 0 ? 100 * us / total : 0, calls,
                  rate(entry.flops).c_str(), rate(entry.bytes).c_str(), entry.kernel, entry.nodes);
    }
    std::printf("%10.2f us in kernels, %.2f us per run\n", total, wall);
  }

  struct DeviceBuffer {
    tcrt_context_t *context;
    void *data;
    uint64_t bytes;
    DeviceBuffer(tcrt_context_t *context, void *data, uint64_t bytes) : context(context), data(data), bytes(bytes) {}
    DeviceBuffer(DeviceBuffer &&other) noexcept : context(other.context), data(other.data), bytes(other.bytes) {
      other.data = nullptr;
    }
    DeviceBuffer &operator=(DeviceBuffer &&) = delete;
    ~DeviceBuffer() { tcrt_context_device_free(context, data, bytes); }
  };

  const Options &options;
  std::unique_ptr<tcrt_model_t, CloseModel> model;
  std::unique_ptr<tcrt_context_t, DestroyContext> context;
  double loadUs = 0;
  std::vector<tcrt_value_info_t> inputInfo, outputInfo;
  std::vector<std::optional<Tensor>> inputs;
  NamedTensors outputs;
  std::vector<std::vector<uint8_t>> outputBuffers;
  std::vector<DeviceBuffer> deviceBuffers;
};

int runTool(int argc, char **argv) {
  Options options = parseOptions(argc, argv);
  if (options.help) {
    std::fputs(usage, stdout);
    return 0;
  }
  if (options.version) {
    std::printf("tc-run %s\n", tcrt_version());
    return 0;
  }
  return Runner(options).run();
}

} // namespace

int main(int argc, char **argv) {
  int code;
  try {
    code = runTool(argc, argv);
  } catch (const Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
    return failure.code;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "tc-run: error: no memory is left for the inputs and outputs\n");
    return 5;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "tc-run: error: %s; please report this with the command line and the files\n", problem.what());
    return 6;
  }
  if (std::fflush(stdout) != 0) {
    std::fprintf(stderr, "tc-run: error: standard output cannot be written: %s\n", std::strerror(errno));
    return 1;
  }
  return code;
}
