//===- States.cpp - several functions and states of a model -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"

#include "tcrt/tcrt.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

using namespace tc;
using namespace tc::test;

namespace {

bool says(const std::string &part) {
  std::string text = tcrt_last_error();
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

struct Fixture {
  std::string bytes;
  tcrt_model_t *model = nullptr;
  tcrt_context_t *context = nullptr;

  explicit Fixture(uint64_t memoryLimit = 0) {
    llvm::Expected<std::string> written = artifact::writeArtifactToMemory(statesSpec());
    if (!written)
      FAIL(llvm::toString(written.takeError()));
    bytes = *written;
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", nullptr, &model) == TCRT_OK);
    tcrt_context_options_t options = {};
    options.size = sizeof options;
    options.threads = 1;
    options.memory_limit = memoryLimit;
    REQUIRE(tcrt_context_create(model, &options, &context) == TCRT_OK);
  }
  ~Fixture() {
    tcrt_context_destroy(context);
    tcrt_model_close(model);
  }

  std::vector<float> add(float a, float b) {
    float x[2] = {a, b};
    tcrt_tensor_t tensor = {TCRT_DTYPE_F32, 1, {2}, x, sizeof x, TCRT_DEVICE_CPU}, y;
    REQUIRE(tcrt_context_set_function(context, 0) == TCRT_OK);
    REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
    REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
    const float *data = static_cast<const float *>(y.data);
    return {data[0], data[1]};
  }

  tcrt_status_t look(std::vector<float> &x) {
    tcrt_tensor_t tensor = {TCRT_DTYPE_F32, 1, {int64_t(x.size())}, x.data(), x.size() * sizeof(float),
                            TCRT_DEVICE_CPU};
    REQUIRE(tcrt_context_set_function(context, 1) == TCRT_OK);
    REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
    return tcrt_context_run(context);
  }

  int64_t runs() {
    int64_t value = 0;
    tcrt_tensor_t tensor = {TCRT_DTYPE_I64, 0, {}, &value, sizeof value, TCRT_DEVICE_CPU};
    REQUIRE(tcrt_context_read_state(context, 1, &tensor) == TCRT_OK);
    return value;
  }
};

} // namespace

TEST_CASE("a model says which functions and states it has") {
  Fixture f;
  REQUIRE(tcrt_model_function_count(f.model) == 2);
  tcrt_function_info_t function;
  REQUIRE(tcrt_model_function(f.model, 1, &function) == TCRT_OK);
  CHECK(std::string(function.name) == "look");
  CHECK(function.input_count == 1);
  CHECK(function.output_count == 2);
  CHECK(function.symbol_count == 1);
  CHECK(tcrt_model_function(f.model, 2, &function) == TCRT_ERROR_INVALID);
  CHECK(function.name == nullptr);
  CHECK(says("there is no function 2; the model has 2"));
  uint32_t index = 7;
  CHECK(tcrt_model_find_function(f.model, "look", &index) == TCRT_OK);
  CHECK(index == 1);
  CHECK(tcrt_model_find_function(f.model, "main", &index) == TCRT_ERROR_INVALID);
  CHECK(says("m.bin: error: the model has no function \"main\"; its first function is \"add\""));
  // The calls without a function are of function 0.
  CHECK(tcrt_model_output_count(f.model) == 1);
  CHECK(tcrt_model_symbol_count(f.model) == 0);
  tcrt_value_info_t value;
  REQUIRE(tcrt_model_function_output(f.model, 1, 1, &value) == TCRT_OK);
  CHECK(std::string(value.name) == "scaled");
  CHECK(value.symbols[0] == 0);
  CHECK(value.dims[1] == 2);
  CHECK(tcrt_model_function_output(f.model, 0, 1, &value) == TCRT_ERROR_INVALID);
  CHECK(tcrt_model_function_input(f.model, 2, 0, &value) == TCRT_ERROR_INVALID);
  CHECK(tcrt_model_function_find_output(f.model, 1, "runs", &index) == TCRT_OK);
  CHECK(tcrt_model_function_find_output(f.model, 0, "runs", &index) == TCRT_ERROR_INVALID);
  tcrt_symbol_info_t symbol;
  REQUIRE(tcrt_model_function_symbol(f.model, 1, 0, &symbol) == TCRT_OK);
  CHECK(std::string(symbol.name) == "n");
  CHECK(tcrt_model_symbol(f.model, 0, &symbol) == TCRT_ERROR_INVALID);

  REQUIRE(tcrt_model_state_count(f.model) == 2);
  tcrt_state_info_t state;
  REQUIRE(tcrt_model_state(f.model, 0, &state) == TCRT_OK);
  CHECK(std::string(state.name) == "sum");
  CHECK(state.dtype == TCRT_DTYPE_F32);
  CHECK(state.rank == 1);
  CHECK(state.dims[0] == 2);
  CHECK(state.size_bytes == 8);
  CHECK(tcrt_model_state(f.model, 2, &state) == TCRT_ERROR_INVALID);
  CHECK(tcrt_model_find_state(f.model, "runs", &index) == TCRT_OK);
  CHECK(index == 1);
  CHECK(tcrt_model_find_state(f.model, "none", &index) == TCRT_ERROR_INVALID);
  CHECK(says("the model has no state \"none\""));
}

TEST_CASE("states outlive runs, belong to a context and are shared by its functions") {
  Fixture f;
  CHECK(f.add(1, 2) == std::vector<float>{11, 22});
  CHECK(f.add(1, 2) == std::vector<float>{12, 24});
  CHECK(f.runs() == 2);
  std::vector<float> x = {1, 2, 3};
  REQUIRE(f.look(x) == TCRT_OK);
  CHECK(tcrt_context_function(f.context) == 1);
  tcrt_tensor_t runs, scaled, y;
  REQUIRE(tcrt_context_get_output(f.context, 0, &runs) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(f.context, 1, &scaled) == TCRT_OK);
  CHECK(*static_cast<int64_t *>(runs.data) == 2);
  CHECK(scaled.dims[0] == 3);
  CHECK(static_cast<float *>(scaled.data)[5] == 72);
  // The other function's bindings and outputs are as they were.
  REQUIRE(tcrt_context_set_function(f.context, 0) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(f.context, 0, &y) == TCRT_OK);
  CHECK(static_cast<float *>(y.data)[1] == 24);
  CHECK(tcrt_context_get_output(f.context, 1, &y) == TCRT_ERROR_INVALID);
  // A second context begins anew.
  tcrt_context_t *other;
  REQUIRE(tcrt_context_create(f.model, nullptr, &other) == TCRT_OK);
  int64_t count = 7;
  tcrt_tensor_t tensor = {TCRT_DTYPE_I64, 0, {}, &count, sizeof count, TCRT_DEVICE_CPU};
  REQUIRE(tcrt_context_read_state(other, 1, &tensor) == TCRT_OK);
  CHECK(count == 0);
  tcrt_context_destroy(other);
  CHECK(f.runs() == 2);
}

TEST_CASE("states are reset, read and written") {
  Fixture f;
  f.add(1, 1);
  float sum[2] = {0, 0};
  tcrt_tensor_t tensor = {TCRT_DTYPE_F32, 1, {2}, sum, sizeof sum, TCRT_DEVICE_CPU};
  REQUIRE(tcrt_context_read_state(f.context, 0, &tensor) == TCRT_OK);
  CHECK(sum[0] == 11);
  CHECK(sum[1] == 21);
  sum[0] = 100;
  REQUIRE(tcrt_context_write_state(f.context, 0, &tensor) == TCRT_OK);
  CHECK(f.add(1, 1) == std::vector<float>{101, 22});
  CHECK(f.runs() == 2);
  REQUIRE(tcrt_context_reset_state(f.context, 0) == TCRT_OK);
  CHECK(f.runs() == 2);
  CHECK(f.add(0, 0) == std::vector<float>{10, 20});
  REQUIRE(tcrt_context_reset_state(f.context, TCRT_ALL_STATES) == TCRT_OK);
  CHECK(f.runs() == 0);

  CHECK(tcrt_context_reset_state(f.context, 2) == TCRT_ERROR_INVALID);
  CHECK(says("there is no state 2; the model has 2"));
  CHECK(tcrt_context_read_state(f.context, 2, &tensor) == TCRT_ERROR_INVALID);
  CHECK(tcrt_context_write_state(f.context, 0, nullptr) == TCRT_ERROR_INVALID);
  tensor.dtype = TCRT_DTYPE_I64;
  CHECK(tcrt_context_write_state(f.context, 0, &tensor) == TCRT_ERROR_REFUSED);
  CHECK(says("state \"sum\": the tensor's dtype is i64, expected f32"));
  tensor.dtype = TCRT_DTYPE_F32;
  tensor.dims[0] = 3;
  CHECK(tcrt_context_write_state(f.context, 0, &tensor) == TCRT_ERROR_REFUSED);
  CHECK(says("the tensor's dims are (3), expected (2)"));
  tensor.dims[0] = 2;
  tensor.size_bytes = 7;
  CHECK(tcrt_context_read_state(f.context, 0, &tensor) == TCRT_ERROR_INVALID);
  CHECK(says("the buffer has 7 bytes, expected 8"));
  tensor.size_bytes = 8;
  tensor.device = TCRT_DEVICE_CUDA;
  CHECK(tcrt_context_read_state(f.context, 0, &tensor) == TCRT_ERROR_INVALID);
  CHECK(tcrt_context_set_function(f.context, 2) == TCRT_ERROR_INVALID);
  CHECK(says("there is no function 2; the model has 2"));
  CHECK(tcrt_context_read_state(nullptr, 0, &tensor) == TCRT_ERROR_INVALID);
}

TEST_CASE("a seed begins the sequence of random numbers anew, where there is one") {
  Fixture f;
  CHECK(tcrt_context_set_seed(f.context, 5) == TCRT_OK); // nothing is random
  artifact::ArtifactSpec spec = statesSpec();
  spec.states.push_back({TCRT_RANDOM_STATE, TCRT_DTYPE_I64, {2}, std::nullopt});
  for (bool fits : {true, false}) {
    if (!fits)
      spec.states.back().dims = {3};
    llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
    REQUIRE(bool(bytes));
    tcrt_model_t *model;
    tcrt_context_t *context;
    REQUIRE(tcrt_model_open_memory(bytes->data(), bytes->size(), "m.bin", nullptr, &model) == TCRT_OK);
    REQUIRE(tcrt_context_create(model, nullptr, &context) == TCRT_OK);
    CHECK((tcrt_context_set_seed(context, UINT64_MAX - 1) == TCRT_OK) == fits);
    if (fits) {
      int64_t values[2] = {};
      tcrt_tensor_t state = {TCRT_DTYPE_I64, 1, {2}, values, sizeof values, TCRT_DEVICE_CPU};
      REQUIRE(tcrt_context_read_state(context, 2, &state) == TCRT_OK);
      CHECK(values[0] == -2);
      CHECK(values[1] == 0);
      REQUIRE(tcrt_context_reset_state(context, TCRT_ALL_STATES) == TCRT_OK);
      REQUIRE(tcrt_context_read_state(context, 2, &state) == TCRT_OK);
      CHECK(values[0] == 0);
    }
    tcrt_context_destroy(context);
    tcrt_model_close(model);
  }
}

TEST_CASE("a run that fails leaves in the states what it wrote") {
  Fixture f;
  f.add(1, 1);
  std::vector<float> x(13, 1.0f);
  CHECK(f.look(x) == TCRT_ERROR_REFUSED);
  CHECK(says("m.bin: error: the run is refused by size"));
  CHECK(f.runs() == -1);
  CHECK(f.add(0, 0) == std::vector<float>{11, 21});
}

TEST_CASE("functions share the arena, and a memory limit counts it and the states") {
  for (uint64_t limit : {uint64_t(0), uint64_t(1) << 14}) {
    Fixture f(limit);
    std::vector<float> big(700, 1.0f), small(2, 1.0f), tooBig(4000, 1.0f);
    for (int round = 0; round < 3; ++round) {
      REQUIRE(f.look(big) == TCRT_OK);
      f.add(1, 1);
      REQUIRE(f.look(small) == TCRT_OK);
      tcrt_tensor_t scaled;
      REQUIRE(tcrt_context_get_output(f.context, 1, &scaled) == TCRT_OK);
      CHECK(static_cast<float *>(scaled.data)[2] == 11 + float(round));
    }
    tcrt_context_stats_t stats;
    REQUIRE(tcrt_context_stats(f.context, &stats) == TCRT_OK);
    CHECK(stats.memory_bytes >= 16 + stats.arena_bytes);
    CHECK(f.look(tooBig) == (limit ? TCRT_ERROR_MACHINE : TCRT_OK));
    REQUIRE(f.look(small) == TCRT_OK);
  }
  Fixture f;
  tcrt_context_options_t options = {};
  options.size = sizeof options;
  options.memory_limit = 15;
  tcrt_context_t *context;
  CHECK(tcrt_context_create(f.model, &options, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("a state needs 8"));
}

TEST_CASE("the profile has the kernels of all functions") {
  Fixture f;
  REQUIRE(tcrt_context_profile_count(f.context) == 2);
  tcrt_profile_entry_t entry;
  REQUIRE(tcrt_context_profile(f.context, 1, &entry) == TCRT_OK);
  CHECK(std::string(entry.kernel) == "k_scale");
}

TEST_CASE("the writer refuses functions and states that cannot be told apart") {
  auto message = [](const artifact::ArtifactSpec &spec) {
    llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
    return bytes ? std::string("written") : llvm::toString(bytes.takeError());
  };
  artifact::ArtifactSpec spec = statesSpec();
  spec.functions[1].name = "add";
  CHECK(message(spec) == "(memory): error: two functions have the name \"add\"");
  spec = statesSpec();
  spec.states[1].name = "sum";
  CHECK(message(spec) == "(memory): error: two states have the name \"sum\"");
  spec = statesSpec();
  spec.states[0].dims.assign(17, 1);
  CHECK(message(spec) == "(memory): error: state \"sum\" has rank 17; at most 16 is supported");
  spec = statesSpec();
  spec.functions.clear();
  CHECK(message(spec).find("there is no function") != std::string::npos);
  spec = statesSpec();
  spec.states[0].initialOffset = 64;
  CHECK(message(spec).find("the initial value of a state is not valid") != std::string::npos);
}
