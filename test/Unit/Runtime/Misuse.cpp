//===- Misuse.cpp - Wrong use of the C API gives a status and a sentence --------------------------------*- C++ -*-===//
//
// NULL for each address that a function of tcrt.h needs, calls in an order that makes no sense, and executors and
// allocators that do not keep to what the header asks of them.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"

#include "tcrt/tcrt.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

using namespace tc;
using namespace tc::test;

namespace {

bool says(const std::string &part) {
  std::string text = tcrt_last_error();
  if (text.find(part) == std::string::npos)
    UNSCOPED_INFO("the error is: " << text);
  return text.find(part) != std::string::npos;
}

struct Model {
  std::string bytes;
  tcrt_model_t *model = nullptr;

  explicit Model(const artifact::ArtifactSpec &spec) {
    llvm::Expected<std::string> written = artifact::writeArtifactToMemory(spec);
    if (!written)
      FAIL(llvm::toString(written.takeError()));
    bytes = *written;
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", nullptr, &model) == TCRT_OK);
  }
  ~Model() { tcrt_model_close(model); }

  tcrt_context_t *context(tcrt_context_options_t options = {}) const {
    options.size = sizeof options;
    tcrt_context_t *made = nullptr;
    tcrt_context_create(model, &options, &made);
    return made;
  }
};

tcrt_tensor_t rows(std::vector<float> &data, int64_t n) {
  tcrt_tensor_t tensor = {};
  tensor.dtype = TCRT_DTYPE_F32;
  tensor.rank = 2;
  tensor.dims[0] = n;
  tensor.dims[1] = 4;
  tensor.data = data.data();
  tensor.size_bytes = uint64_t(n) * 16;
  return tensor;
}

/// The functions that tcrt.h declares.
std::set<std::string> declaredFunctions() {
  const std::string header = readFile(TC_TEST_HEADER);
  std::set<std::string> names;
  const std::regex pattern("TCRT_API[^;(]*?(tcrt_\\w+)\\(");
  for (std::sregex_iterator i(header.begin(), header.end(), pattern), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

} // namespace

TEST_CASE("NULL is refused by every function of the API") {
  Model m(basicSpec());
  tcrt_context_t *c = m.context();
  REQUIRE(c);
  tcrt_model_t *model = nullptr;
  tcrt_context_t *context = nullptr;
  tcrt_value_info_t value;
  tcrt_symbol_info_t symbol;
  tcrt_function_info_t function;
  tcrt_state_info_t state;
  tcrt_variant_info_t variant;
  tcrt_tensor_t tensor = {};
  tcrt_value_t tree = {};
  tcrt_context_stats_t stats;
  tcrt_graph_stats_t graphs = {sizeof graphs, 0, 0, 0, 0, 0, 0, 0, 0, 0}, noSize = {};
  tcrt_profile_entry_t entry;
  tcrt_entry_info_t code;
  const char *text;
  uint64_t size;
  uint32_t index;
  void *data;
  char byte = 0;
  int64_t dims[1] = {1};
  tcrt_reader_t reader = {};
  // Each call has NULL for one address that is needed; it returns true where it was refused.
  using Call = std::function<bool()>;
#define REFUSED(call) [&] { return (call) == TCRT_ERROR_INVALID; }
#define ZERO(call) [&] { return (call) == 0; }
#define HARMLESS(call)                                                                                                 \
  [&] {                                                                                                                \
    call;                                                                                                              \
    return true;                                                                                                       \
  }
  const std::map<std::string, std::vector<Call>> calls = {
      {"tcrt_version", {[] { return tcrt_version() != nullptr; }}},
      {"tcrt_last_error", {[] { return tcrt_last_error() != nullptr; }}},
      {"tcrt_dtype_name", {[] { return std::string(tcrt_dtype_name(tcrt_dtype_t(-1))) == "invalid"; }}},
      {"tcrt_dtype_bits", {ZERO(tcrt_dtype_bits(tcrt_dtype_t(1 << 20)))}},
      {"tcrt_cpu_features", {[] { return tcrt_cpu_features() != 0; }}},
      {"tcrt_tensor_size",
       {ZERO(tcrt_tensor_size(TCRT_DTYPE_F32, 1, nullptr, &size)),
        ZERO(tcrt_tensor_size(TCRT_DTYPE_F32, 1, dims, nullptr))}},
      {"tcrt_model_open_file",
       {REFUSED(tcrt_model_open_file(nullptr, nullptr, &model)), REFUSED(tcrt_model_open_file("m", nullptr, nullptr))}},
      {"tcrt_model_open_memory",
       {REFUSED(tcrt_model_open_memory(nullptr, 100, "m", nullptr, &model)),
        REFUSED(tcrt_model_open_memory(&byte, 1, "m", nullptr, nullptr))}},
      {"tcrt_model_open_reader",
       {REFUSED(tcrt_model_open_reader(nullptr, "m", nullptr, &model)),
        REFUSED(tcrt_model_open_reader(&reader, "m", nullptr, &model)),
        REFUSED(tcrt_model_open_reader(&reader, "m", nullptr, nullptr))}},
      {"tcrt_model_close", {HARMLESS(tcrt_model_close(nullptr))}},
      {"tcrt_model_function_count", {ZERO(tcrt_model_function_count(nullptr))}},
      {"tcrt_model_input_count", {ZERO(tcrt_model_input_count(nullptr))}},
      {"tcrt_model_output_count", {ZERO(tcrt_model_output_count(nullptr))}},
      {"tcrt_model_symbol_count", {ZERO(tcrt_model_symbol_count(nullptr))}},
      {"tcrt_model_state_count", {ZERO(tcrt_model_state_count(nullptr))}},
      {"tcrt_model_variant_count", {ZERO(tcrt_model_variant_count(nullptr))}},
      {"tcrt_model_function",
       {REFUSED(tcrt_model_function(nullptr, 0, &function)), REFUSED(tcrt_model_function(m.model, 0, nullptr))}},
      {"tcrt_model_find_function",
       {REFUSED(tcrt_model_find_function(nullptr, "main", &index)),
        REFUSED(tcrt_model_find_function(m.model, nullptr, &index)),
        REFUSED(tcrt_model_find_function(m.model, "main", nullptr))}},
      {"tcrt_model_function_input",
       {REFUSED(tcrt_model_function_input(nullptr, 0, 0, &value)),
        REFUSED(tcrt_model_function_input(m.model, 0, 0, nullptr))}},
      {"tcrt_model_function_output",
       {REFUSED(tcrt_model_function_output(nullptr, 0, 0, &value)),
        REFUSED(tcrt_model_function_output(m.model, 0, 0, nullptr))}},
      {"tcrt_model_function_symbol",
       {REFUSED(tcrt_model_function_symbol(nullptr, 0, 0, &symbol)),
        REFUSED(tcrt_model_function_symbol(m.model, 0, 0, nullptr))}},
      {"tcrt_model_function_find_input",
       {REFUSED(tcrt_model_function_find_input(nullptr, 0, "x", &index)),
        [&] { return tcrt_model_function_find_input(m.model, 0, nullptr, &index) == TCRT_ERROR_REFUSED; },
        REFUSED(tcrt_model_function_find_input(m.model, 0, "x", nullptr))}},
      {"tcrt_model_function_find_output",
       {REFUSED(tcrt_model_function_find_output(nullptr, 0, "y", &index)),
        REFUSED(tcrt_model_function_find_output(m.model, 0, nullptr, &index)),
        REFUSED(tcrt_model_function_find_output(m.model, 0, "y", nullptr))}},
      {"tcrt_model_input",
       {REFUSED(tcrt_model_input(nullptr, 0, &value)), REFUSED(tcrt_model_input(m.model, 0, nullptr))}},
      {"tcrt_model_output",
       {REFUSED(tcrt_model_output(nullptr, 0, &value)), REFUSED(tcrt_model_output(m.model, 0, nullptr))}},
      {"tcrt_model_symbol",
       {REFUSED(tcrt_model_symbol(nullptr, 0, &symbol)), REFUSED(tcrt_model_symbol(m.model, 0, nullptr))}},
      {"tcrt_model_find_input",
       {REFUSED(tcrt_model_find_input(nullptr, "x", &index)), REFUSED(tcrt_model_find_input(m.model, "x", nullptr))}},
      {"tcrt_model_find_output",
       {REFUSED(tcrt_model_find_output(nullptr, "y", &index)), REFUSED(tcrt_model_find_output(m.model, "y", nullptr))}},
      {"tcrt_model_state",
       {REFUSED(tcrt_model_state(nullptr, 0, &state)), REFUSED(tcrt_model_state(m.model, 0, nullptr))}},
      {"tcrt_model_find_state",
       {REFUSED(tcrt_model_find_state(nullptr, "s", &index)), REFUSED(tcrt_model_find_state(m.model, nullptr, &index)),
        REFUSED(tcrt_model_find_state(m.model, "s", nullptr))}},
      {"tcrt_model_variant",
       {REFUSED(tcrt_model_variant(nullptr, 0, &variant)), REFUSED(tcrt_model_variant(m.model, 0, nullptr))}},
      {"tcrt_model_manifest",
       {REFUSED(tcrt_model_manifest(nullptr, &text, &size)), REFUSED(tcrt_model_manifest(m.model, nullptr, &size)),
        REFUSED(tcrt_model_manifest(m.model, &text, nullptr))}},
      {"tcrt_context_create",
       {REFUSED(tcrt_context_create(nullptr, nullptr, &context)),
        REFUSED(tcrt_context_create(m.model, nullptr, nullptr))}},
      {"tcrt_context_destroy", {HARMLESS(tcrt_context_destroy(nullptr))}},
      {"tcrt_context_variant", {[] { return std::strlen(tcrt_context_variant(nullptr)) == 0; }}},
      {"tcrt_context_threads", {ZERO(tcrt_context_threads(nullptr))}},
      {"tcrt_context_set_function", {REFUSED(tcrt_context_set_function(nullptr, 0))}},
      {"tcrt_context_function", {ZERO(tcrt_context_function(nullptr))}},
      {"tcrt_context_set_input", {REFUSED(tcrt_context_set_input(nullptr, 0, &tensor))}},
      {"tcrt_context_set_output", {REFUSED(tcrt_context_set_output(nullptr, 0, &tensor))}},
      {"tcrt_context_set_input_value", {REFUSED(tcrt_context_set_input_value(nullptr, 0, &tree))}},
      {"tcrt_context_infer", {REFUSED(tcrt_context_infer(nullptr))}},
      {"tcrt_context_output_shape",
       {REFUSED(tcrt_context_output_shape(nullptr, 0, &tensor)), REFUSED(tcrt_context_output_shape(c, 0, nullptr))}},
      {"tcrt_context_run", {REFUSED(tcrt_context_run(nullptr))}},
      {"tcrt_context_get_output",
       {REFUSED(tcrt_context_get_output(nullptr, 0, &tensor)), REFUSED(tcrt_context_get_output(c, 0, nullptr))}},
      {"tcrt_context_get_output_value",
       {REFUSED(tcrt_context_get_output_value(nullptr, 0, &tree)),
        REFUSED(tcrt_context_get_output_value(c, 0, nullptr))}},
      {"tcrt_context_reset_state", {REFUSED(tcrt_context_reset_state(nullptr, 0))}},
      {"tcrt_context_read_state",
       {REFUSED(tcrt_context_read_state(nullptr, 0, &tensor)), REFUSED(tcrt_context_read_state(c, 0, nullptr))}},
      {"tcrt_context_write_state",
       {REFUSED(tcrt_context_write_state(nullptr, 0, &tensor)), REFUSED(tcrt_context_write_state(c, 0, nullptr))}},
      {"tcrt_context_set_seed", {REFUSED(tcrt_context_set_seed(nullptr, 1))}},
      {"tcrt_context_time_runs", {REFUSED(tcrt_context_time_runs(nullptr, 1))}},
      {"tcrt_context_stats", {REFUSED(tcrt_context_stats(nullptr, &stats)), REFUSED(tcrt_context_stats(c, nullptr))}},
      {"tcrt_context_run_async", {REFUSED(tcrt_context_run_async(nullptr))}},
      {"tcrt_context_wait", {REFUSED(tcrt_context_wait(nullptr))}},
      {"tcrt_context_stream", {ZERO(tcrt_context_stream(nullptr) != nullptr)}},
      {"tcrt_context_graph_stats",
       {REFUSED(tcrt_context_graph_stats(nullptr, &graphs)), REFUSED(tcrt_context_graph_stats(c, nullptr)),
        REFUSED(tcrt_context_graph_stats(c, &noSize))}},
      {"tcrt_model_entry_count", {ZERO(tcrt_model_entry_count(nullptr, 0)), ZERO(tcrt_model_entry_count(m.model, 1))}},
      {"tcrt_model_entry",
       {REFUSED(tcrt_model_entry(nullptr, 0, 0, &code)), REFUSED(tcrt_model_entry(m.model, 0, 0, nullptr)),
        REFUSED(tcrt_model_entry(m.model, 0, 1, &code)), REFUSED(tcrt_model_entry(m.model, 1, 0, &code))}},
      {"tcrt_context_entry", {REFUSED(tcrt_context_entry(nullptr, &index)), REFUSED(tcrt_context_entry(c, nullptr))}},
      {"tcrt_metrics", {REFUSED(tcrt_metrics(&byte, 1, nullptr)), REFUSED(tcrt_metrics(&byte, 1, &size))}},
      {"tcrt_model_usage",
       {REFUSED(tcrt_model_usage(nullptr, &byte, 1, &size)), REFUSED(tcrt_model_usage(m.model, &byte, 1, nullptr)),
        REFUSED(tcrt_model_usage(m.model, &byte, 1, &size))}},
      {"tcrt_model_write_usage",
       {REFUSED(tcrt_model_write_usage(nullptr, "usage.json")), REFUSED(tcrt_model_write_usage(m.model, nullptr))}},
      {"tcrt_context_profile_count", {ZERO(tcrt_context_profile_count(nullptr))}},
      {"tcrt_context_profile",
       {REFUSED(tcrt_context_profile(nullptr, 0, &entry)), REFUSED(tcrt_context_profile(c, 0, nullptr))}},
      {"tcrt_context_profile_reset", {REFUSED(tcrt_context_profile_reset(nullptr))}},
      {"tcrt_context_device_allocate",
       {REFUSED(tcrt_context_device_allocate(nullptr, 5, &data)),
        REFUSED(tcrt_context_device_allocate(c, 5, nullptr))}},
      {"tcrt_context_device_free",
       {HARMLESS(tcrt_context_device_free(nullptr, nullptr, 5)), HARMLESS(tcrt_context_device_free(c, nullptr, 5))}},
      {"tcrt_gpu_allocate", {REFUSED(tcrt_gpu_allocate(0, 5, nullptr, nullptr))}},
      {"tcrt_gpu_free",
       {HARMLESS(tcrt_gpu_free(0, nullptr, 5, nullptr)), HARMLESS(tcrt_gpu_free(-1, nullptr, 5, TCRT_ANY_STREAM))}},
      {"tcrt_gpu_trim", {HARMLESS(tcrt_gpu_trim())}},
      {"tcrt_gpu_copy",
       {REFUSED(tcrt_gpu_copy(0, nullptr, &byte, 1, TCRT_COPY_HOST_TO_DEVICE, nullptr)),
        REFUSED(tcrt_gpu_copy(0, &byte, nullptr, 1, TCRT_COPY_HOST_TO_DEVICE, nullptr)),
        REFUSED(tcrt_gpu_copy(0, &byte, &byte, 1, 9, nullptr))}},
      {"tcrt_gpu_wait", {ZERO(tcrt_gpu_wait(-1, nullptr) != TCRT_ERROR_MACHINE)}},
      {"tcrt_gpu_order", {ZERO(tcrt_gpu_order(-1, nullptr, &byte) != TCRT_ERROR_MACHINE)}},
      {"tcrt_gpu_find", {REFUSED(tcrt_gpu_find(&byte, nullptr))}},
      {"tcrt_context_device_copy",
       {REFUSED(tcrt_context_device_copy(nullptr, &byte, &byte, 1, TCRT_COPY_HOST_TO_DEVICE)),
        REFUSED(tcrt_context_device_copy(c, nullptr, &byte, 1, TCRT_COPY_HOST_TO_DEVICE)),
        REFUSED(tcrt_context_device_copy(c, &byte, nullptr, 1, TCRT_COPY_HOST_TO_DEVICE)),
        REFUSED(tcrt_context_device_copy(c, &byte, &byte, 1, 9)),
        REFUSED(tcrt_context_device_copy(c, &byte, &byte, UINT64_MAX, TCRT_COPY_HOST_TO_DEVICE))}},
  };
  for (const std::string &name : declaredFunctions()) {
    INFO(name);
    REQUIRE(calls.count(name) == 1);
    size_t number = 0;
    for (const Call &call : calls.at(name)) {
      INFO("call " << number++);
      CHECK(call());
      CHECK(std::strlen(tcrt_last_error()) > 0);
    }
  }
  CHECK(tcrt_context_stats(nullptr, &stats) == TCRT_ERROR_INVALID);
  CHECK(says("error: tcrt_context_stats: context is NULL; give its address"));
  tcrt_context_destroy(c);
}

// A run, larger inputs, a refused infer: the outputs of the run had new dims on the old buffer.
TEST_CASE("outputs are those of the last run in its sizes, or refused") {
  Model m(basicSpec());
  tcrt_context_t *context = m.context();
  std::vector<float> x(4 * 64, 1);
  tcrt_tensor_t small = rows(x, 2), refused = rows(x, 61), large = rows(x, 50), tooLarge = rows(x, 65), y;
  REQUIRE(tcrt_context_set_input(context, 0, &small) == TCRT_OK);
  CHECK(tcrt_context_get_output(context, 0, &y) == TCRT_ERROR_INVALID);
  REQUIRE(tcrt_context_run(context) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
  CHECK(y.size_bytes == 32);
  // Other data of the same sizes: the results stay until the next run.
  std::vector<float> other(8, 3);
  tcrt_tensor_t same = rows(other, 2);
  REQUIRE(tcrt_context_set_input(context, 0, &same) == TCRT_OK);
  CHECK(tcrt_context_infer(context) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
  CHECK(static_cast<float *>(y.data)[0] == 3);
  for (const tcrt_tensor_t &next : {refused, large, tooLarge}) {
    REQUIRE(tcrt_context_set_input(context, 0, &small) == TCRT_OK);
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
    REQUIRE(tcrt_context_set_input(context, 0, &next) == TCRT_OK);
    CHECK(tcrt_context_get_output(context, 0, &y) == TCRT_ERROR_INVALID);
    CHECK(y.data == nullptr);
    CHECK(tcrt_context_output_shape(context, 0, &y) == TCRT_ERROR_INVALID);
    CHECK((tcrt_context_infer(context) == TCRT_OK) == (next.dims[0] == 50));
    for (uint32_t i = 0; i < 2; ++i) {
      CHECK(tcrt_context_get_output(context, i, &y) == TCRT_ERROR_INVALID);
      CHECK(says("there are no outputs for what is bound; run the context first"));
    }
    CHECK((tcrt_context_output_shape(context, 0, &y) == TCRT_OK) == (next.dims[0] == 50));
  }
  // A run that fails.
  REQUIRE(tcrt_context_set_input(context, 0, &small) == TCRT_OK);
  REQUIRE(tcrt_context_run(context) == TCRT_OK);
  x[0] = 666;
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  CHECK(tcrt_context_get_output(context, 0, &y) == TCRT_ERROR_INVALID);
  x[0] = 1;
  CHECK(tcrt_context_run(context) == TCRT_OK);
  // Unbound, the input is missing.
  REQUIRE(tcrt_context_set_input(context, 0, nullptr) == TCRT_OK);
  CHECK(tcrt_context_get_output(context, 0, &y) == TCRT_ERROR_INVALID);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  tcrt_context_destroy(context);
}

// Calls in any order, with any of these arguments: each gives a status, and an output that is there has all its bytes
// and the right values. Sanitizers see the rest. TC_FUZZ_ROUNDS: sequences.
TEST_CASE("any sequence of calls is answered") {
  const char *setting = std::getenv("TC_FUZZ_ROUNDS");
  const int sequences = setting ? std::atoi(setting) : 300;
  std::mt19937 random(11);
  auto pick = [&](uint32_t count) { return uint32_t(random() % count); };
  Model m(basicSpec()), states(statesSpec());
  uint64_t delivered = 0, refused = 0;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const bool hasStates = pick(4) == 0;
    tcrt_context_options_t options = {};
    options.threads = 1 + pick(3);
    options.memory_limit = pick(3) ? 0 : 64 + pick(4000);
    tcrt_context_t *context = (hasStates ? states : m).context(options);
    if (!context) {
      ++refused;
      continue;
    }
    // What is bound to x, and the values that it had in the last run; the buffers outlive the context.
    std::vector<float> x(4 * 64), y(4 * 64 + 16), expected;
    for (int call = 0; call < 24; ++call) {
      tcrt_tensor_t tensor = rows(x, pick(70)), out;
      tcrt_status_t status = TCRT_OK;
      const uint32_t index = pick(8) ? pick(2) : pick(2) ? UINT32_MAX : 2 + pick(3);
      switch (pick(hasStates ? 14 : 10)) {
      case 0:
      case 1:
        for (float &value : x)
          value = float(int(pick(9)) - 4);
        if (pick(8) == 0)
          tensor.dtype = tcrt_dtype_t(pick(40));
        if (pick(8) == 0)
          tensor.rank = pick(20);
        if (pick(8) == 0)
          tensor.size_bytes = pick(2000);
        if (tensor.dims[0] > 64 && tensor.size_bytes > x.size() * sizeof(float))
          tensor.dims[0] = 64, tensor.size_bytes = x.size() * sizeof(float);
        status = tcrt_context_set_input(context, pick(4) ? 0 : index, pick(8) ? &tensor : nullptr);
        break;
      case 2:
        tensor.data = y.data() + pick(2) * 16;
        tensor.size_bytes = pick(4) ? 4 * 60 * sizeof(float) : pick(100);
        status = tcrt_context_set_output(context, index, pick(3) ? &tensor : nullptr);
        break;
      case 3:
        status = tcrt_context_infer(context);
        break;
      case 4:
      case 5:
      case 6:
        status = tcrt_context_run(context);
        if (status == TCRT_OK)
          expected = x;
        break;
      case 7:
        status = tcrt_context_output_shape(context, index, &out);
        CHECK((status == TCRT_OK || out.rank == 0));
        break;
      case 8:
      case 9:
        status = tcrt_context_get_output(context, index, &out);
        if (status == TCRT_OK && out.size_bytes) {
          ++delivered;
          float sum = 0;
          for (uint64_t i = 0; i < out.size_bytes / sizeof(float); ++i)
            sum += static_cast<const float *>(out.data)[i];
          CHECK(sum == sum);
          if (!hasStates && index == 0 && out.size_bytes >= 16 && expected.size())
            CHECK(static_cast<const float *>(out.data)[1] == 2 * expected[1] + 2);
        }
        break;
      case 10:
        status = tcrt_context_set_function(context, index);
        break;
      case 11:
        tensor.rank = 1;
        tensor.dims[0] = pick(4) ? 2 : pick(5);
        status = pick(2) ? tcrt_context_read_state(context, index, &tensor)
                         : tcrt_context_write_state(context, index, &tensor);
        break;
      case 12:
        status = tcrt_context_reset_state(context, index);
        break;
      default:
        status = tcrt_context_set_seed(context, random());
        break;
      }
      if (status != TCRT_OK) {
        ++refused;
        CHECK(std::strlen(tcrt_last_error()) > 0);
        CHECK((status == TCRT_ERROR_INVALID || status == TCRT_ERROR_REFUSED || status == TCRT_ERROR_MACHINE));
      }
    }
    tcrt_context_destroy(context);
  }
  CHECK(delivered > uint64_t(sequences) / 10);
  CHECK(refused > uint64_t(sequences));
}

TEST_CASE("a context of a closed model refuses calls and frees the model") {
  llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(basicSpec());
  REQUIRE(bool(bytes));
  tcrt_model_t *model;
  REQUIRE(tcrt_model_open_memory(bytes->data(), bytes->size(), "m.bin", nullptr, &model) == TCRT_OK);
  tcrt_context_t *first, *second;
  REQUIRE(tcrt_context_create(model, nullptr, &first) == TCRT_OK);
  REQUIRE(tcrt_context_create(model, nullptr, &second) == TCRT_OK);
  tcrt_model_close(model);
  CHECK(tcrt_context_run(first) == TCRT_ERROR_INVALID);
  CHECK(says("m.bin: error: the model of the context is closed"));
  tcrt_context_destroy(first);
  CHECK(tcrt_context_infer(second) == TCRT_ERROR_INVALID);
  tcrt_context_destroy(second);
}

TEST_CASE("an executor that does not call each range once fails the run, and kernels keep to their memory") {
  Model m(stressSpec());
  using Task = void (*)(void *, int64_t, int64_t);
  const std::vector<void (*)(void *, int64_t, Task, void *)> wrong = {
      [](void *, int64_t, Task, void *) {},
      [](void *, int64_t ranges, Task task, void *data) {
        for (int64_t i = 1; i < ranges; ++i)
          task(data, i, 0);
      },
      [](void *, int64_t ranges, Task task, void *data) {
        for (int64_t i = -3; i < ranges + 3; ++i)
          task(data, i, 0);
      },
      [](void *, int64_t ranges, Task task, void *data) {
        for (int64_t i = 0; i < ranges; ++i)
          task(data, i / 2, 0);
      },
      [](void *, int64_t ranges, Task task, void *data) {
        for (int64_t i = 0; i < ranges; ++i)
          task(data, i, i % 2 ? 1000000 : -1);
      },
      [](void *, int64_t, Task task, void *data) {
        task(data, INT64_MAX, 0);
        task(data, INT64_MIN, 0);
      }};
  int64_t tasks = 1000;
  tcrt_tensor_t input = {TCRT_DTYPE_I64, 1, {1}, &tasks, sizeof tasks, TCRT_DEVICE_CPU}, output;
  for (auto parallelFor : wrong) {
    tcrt_executor_t executor = {nullptr, parallelFor};
    tcrt_context_options_t options = {};
    options.threads = 4;
    options.executor = &executor;
    tcrt_context_t *context = m.context(options);
    REQUIRE(tcrt_context_set_input(context, 0, &input) == TCRT_OK);
    CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
    CHECK(says("m.bin: error: the executor did not call the task once for each of"));
    CHECK(tcrt_context_get_output(context, 0, &output) == TCRT_ERROR_INVALID);
    tcrt_context_destroy(context);
  }
}

TEST_CASE("a team without member 0 fails the run") {
  Model m(stressSpec());
  tcrt_team_t team = {nullptr, [](void *, uint32_t, void (*)(void *, uint32_t), void *) {}};
  tcrt_context_options_t options = {};
  options.threads = 4;
  options.team = &team;
  tcrt_context_t *context = m.context(options);
  int64_t tasks = 1000;
  tcrt_tensor_t input = {TCRT_DTYPE_I64, 1, {1}, &tasks, sizeof tasks, TCRT_DEVICE_CPU}, output;
  REQUIRE(tcrt_context_set_input(context, 0, &input) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("m.bin: error: the team did not call its member 0; see tcrt_team_t"));
  CHECK(tcrt_context_get_output(context, 0, &output) == TCRT_ERROR_INVALID);
  tcrt_context_destroy(context);
}

TEST_CASE("an allocator without the alignment that it was asked for is refused") {
  Model m(basicSpec());
  tcrt_allocator_t allocator = {
      nullptr,
      [](void *, uint64_t bytes, uint64_t) -> void * { return static_cast<char *>(std::malloc(bytes + 8)) + 8; },
      [](void *, void *data, uint64_t) { std::free(static_cast<char *>(data) - 8); }};
  tcrt_context_options_t options = {};
  options.allocator = &allocator;
  tcrt_context_t *context = m.context(options);
  REQUIRE(context);
  std::vector<float> x(8, 1);
  tcrt_tensor_t input = rows(x, 2);
  REQUIRE(tcrt_context_set_input(context, 0, &input) == TCRT_OK);
  // malloc's addresses are multiples of 16, 8 more never is one of 64.
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("at an address that is no multiple of 64"));
  tcrt_context_destroy(context);
}

TEST_CASE("functions without an address are refused") {
  llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(valuesSpec());
  REQUIRE(bool(bytes));
  tcrt_model_options_t options = {};
  options.size = sizeof options;
  options.function_count = 3;
  tcrt_model_t *model;
  CHECK(tcrt_model_open_memory(bytes->data(), bytes->size(), "m.bin", &options, &model) == TCRT_ERROR_INVALID);
  CHECK(says("m.bin: error: 3 functions are given, but their address is NULL"));
}

// Asking for all inputs by name, checking bound outputs: in proportion to their number.
TEST_CASE("many inputs and outputs take time in proportion to their number") {
  artifact::ArtifactSpec spec = basicSpec();
  for (int i = 0; i < 20000; ++i)
    spec.functions[0].inputs.push_back({"in" + std::to_string(i), TCRT_DTYPE_F32, {}, TCRT_VALUE_FLAG_UNUSED});
  Model m(spec);
  tcrt_context_t *context = m.context();
  float number = 1;
  tcrt_tensor_t scalar = {};
  scalar.dtype = TCRT_DTYPE_F32;
  scalar.data = &number;
  scalar.size_bytes = sizeof number;
  std::vector<float> x(8, 1), y(8);
  tcrt_tensor_t rowsOfX = rows(x, 2), rowsOfY = rows(y, 2);
  REQUIRE(tcrt_context_set_input(context, 0, &rowsOfX) == TCRT_OK);
  REQUIRE(tcrt_context_set_output(context, 0, &rowsOfY) == TCRT_OK);
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 20000; ++i) {
    uint32_t index;
    REQUIRE(tcrt_model_find_input(m.model, ("in" + std::to_string(i)).c_str(), &index) == TCRT_OK);
    REQUIRE(index == uint32_t(i) + 2);
    REQUIRE(tcrt_context_set_input(context, index, &scalar) == TCRT_OK);
  }
  CHECK(tcrt_context_run(context) == TCRT_OK);
  CHECK(std::clock() - begin < CLOCKS_PER_SEC);
  scalar.data = y.data() + 7;
  REQUIRE(tcrt_context_set_input(context, 777, &scalar) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("the buffer of output \"y\" overlaps that of input \"in775\""));
  tcrt_context_destroy(context);
}
