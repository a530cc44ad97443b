//===- Values.cpp - Strings, sequences, optionals and host functions ------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"
#include "tc/Functions/Store.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace tc;
using namespace tc::test;

namespace {

/// A custom operator's function: each string twice; "no" is refused.
tcrt_status_t twice(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  const int64_t *x = static_cast<const int64_t *>(call->operands[0].data);
  int64_t *y = static_cast<int64_t *>(call->results[0].data);
  for (int64_t i = 0; i < call->operands[0].dims[0]; ++i) {
    tcrt_string_t text = services->string(store, x[i]);
    std::string all(text.data ? text.data : "", text.size_bytes);
    if (all == "hm")
      services->warn(store, call, "element %d is hm", int(i));
    if (all == "no")
      return services->fail(TCRT_ERROR_REFUSED, "element %d is no", int(i));
    all += all;
    y[i] = services->intern(store, all.data(), all.size());
    if (y[i] < 0)
      return TCRT_ERROR_MACHINE;
  }
  return TCRT_OK;
}

struct Fixture {
  std::string bytes;
  tcrt_model_t *model = nullptr;
  tcrt_context_t *context = nullptr;
  std::vector<std::string> warnings;
  const tcrt_function_t functions[1] = {{"twice", twice}};

  explicit Fixture(uint64_t memoryLimit = 0) {
    llvm::Expected<std::string> written = artifact::writeArtifactToMemory(valuesSpec());
    REQUIRE(bool(written));
    bytes = *written;
    tcrt_model_options_t options = {};
    options.size = sizeof options;
    options.functions = functions;
    options.function_count = 1;
    options.log = [](void *user, int level, const char *message) {
      if (level == TCRT_LOG_WARNING)
        static_cast<Fixture *>(user)->warnings.push_back(message);
    };
    options.log_user = this;
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", &options, &model) == TCRT_OK);
    tcrt_context_options_t contextOptions = {};
    contextOptions.size = sizeof contextOptions;
    contextOptions.memory_limit = memoryLimit;
    REQUIRE(tcrt_context_create(model, &contextOptions, &context) == TCRT_OK);
  }
  ~Fixture() {
    tcrt_context_destroy(context);
    tcrt_model_close(model);
  }
};

tcrt_tensor_t stringTensor(std::vector<tcrt_string_t> &strings) {
  tcrt_tensor_t tensor = {};
  tensor.dtype = TCRT_DTYPE_STRING;
  tensor.rank = 1;
  tensor.dims[0] = int64_t(strings.size());
  tensor.data = strings.data();
  tensor.size_bytes = strings.size() * sizeof strings[0];
  return tensor;
}

tcrt_value_t floatValue(std::vector<float> &data) {
  tcrt_value_t value = {};
  value.tensor.dtype = TCRT_DTYPE_F32;
  value.tensor.rank = 1;
  value.tensor.dims[0] = int64_t(data.size());
  value.tensor.data = data.data();
  value.tensor.size_bytes = data.size() * sizeof(float);
  return value;
}

std::string textOf(const tcrt_string_t &text) { return {text.data, text.size_bytes}; }

bool says(const std::string &part) {
  INFO(tcrt_last_error());
  return std::string(tcrt_last_error()).find(part) != std::string::npos;
}

} // namespace

TEST_CASE("strings, sequences and optionals go in and out") {
  Fixture f;
  std::vector<tcrt_string_t> strings = {{"yes", 3}, {nullptr, 0}, {"a\0b", 3}, {"yes", 3}};
  tcrt_tensor_t text = stringTensor(strings);
  std::vector<float> a = {1, 2}, b = {3}, c;
  std::vector<tcrt_value_t> elements = {floatValue(a), floatValue(b), floatValue(c)};
  tcrt_value_t parts = {TCRT_VALUE_SEQUENCE, elements.size(), elements.data(), {}};
  tcrt_value_t nothing = {TCRT_VALUE_OPTIONAL, 0, nullptr, {}},
               something = {TCRT_VALUE_OPTIONAL, 1, elements.data(), {}};
  REQUIRE(tcrt_context_set_input(f.context, 0, &text) == TCRT_OK);
  REQUIRE(tcrt_context_set_input_value(f.context, 1, &parts) == TCRT_OK);
  for (const tcrt_value_t *maybe : {&nothing, &something, &nothing}) {
    REQUIRE(tcrt_context_set_input_value(f.context, 2, maybe) == TCRT_OK);
    tcrt_status_t status = tcrt_context_run(f.context);
    INFO(tcrt_last_error());
    REQUIRE(status == TCRT_OK);
    tcrt_tensor_t doubled;
    REQUIRE(tcrt_context_get_output(f.context, 0, &doubled) == TCRT_OK);
    REQUIRE((doubled.dtype == TCRT_DTYPE_STRING && doubled.dims[0] == 4 && doubled.size_bytes == 64));
    const tcrt_string_t *out = static_cast<const tcrt_string_t *>(doubled.data);
    CHECK(textOf(out[0]) == "yesyes");
    CHECK(textOf(out[1]).empty());
    CHECK(textOf(out[2]) == std::string("a\0ba\0b", 6));
    tcrt_value_t more, same;
    REQUIRE(tcrt_context_get_output_value(f.context, 1, &more) == TCRT_OK);
    REQUIRE((more.kind == TCRT_VALUE_SEQUENCE && more.count == 4));
    CHECK(more.elements[2].tensor.dims[0] == 0);
    const float *flags = static_cast<const float *>(more.elements[3].tensor.data);
    CHECK((flags[0] == 1 && flags[1] == 0 && flags[2] == 0 && flags[3] == 1));
    REQUIRE(tcrt_context_get_output_value(f.context, 2, &same) == TCRT_OK);
    REQUIRE(same.count == maybe->count);
    if (same.count)
      CHECK(static_cast<const float *>(same.elements[0].tensor.data)[1] == 2);
    tcrt_tensor_t tensor;
    CHECK(tcrt_context_get_output(f.context, 1, &tensor) == TCRT_ERROR_INVALID);
    CHECK(says("output \"more\" is a sequence"));
  }
  // A buffer of the caller for strings.
  std::vector<tcrt_string_t> buffer(4);
  tcrt_tensor_t bound = stringTensor(buffer);
  REQUIRE(tcrt_context_set_output(f.context, 0, &bound) == TCRT_OK);
  REQUIRE(tcrt_context_run(f.context) == TCRT_OK);
  CHECK(textOf(buffer[3]) == "yesyes");
}

TEST_CASE("values of another kind are refused") {
  Fixture f;
  std::vector<float> a = {1};
  std::vector<tcrt_value_t> elements = {floatValue(a), floatValue(a)};
  tcrt_value_t two = {TCRT_VALUE_OPTIONAL, 2, elements.data(), {}}, tensor = elements[0];
  CHECK(tcrt_context_set_input_value(f.context, 2, &two) == TCRT_ERROR_INVALID);
  CHECK(tcrt_context_set_input_value(f.context, 1, &tensor) == TCRT_ERROR_REFUSED);
  CHECK(says("input \"parts\": the value is a tensor, expected a sequence"));
  CHECK(tcrt_context_set_input(f.context, 1, &tensor.tensor) == TCRT_ERROR_REFUSED);
  CHECK(tcrt_context_set_input_value(f.context, 9, &tensor) == TCRT_ERROR_REFUSED);
  elements[1].tensor.dtype = TCRT_DTYPE_F64;
  tcrt_value_t mixed = {TCRT_VALUE_SEQUENCE, 2, elements.data(), {}};
  CHECK(tcrt_context_set_input_value(f.context, 1, &mixed) == TCRT_ERROR_REFUSED);
  CHECK(says("the dtype of a tensor inside is f64, expected f32"));
  elements[1] = elements[0];
  elements[1].tensor.size_bytes = 2;
  CHECK(tcrt_context_set_input_value(f.context, 1, &mixed) == TCRT_ERROR_INVALID);
}

TEST_CASE("functions may warn and refuse, and must be there") {
  Fixture f;
  std::vector<tcrt_string_t> strings = {{"hm", 2}, {"no", 2}};
  tcrt_tensor_t text = stringTensor(strings);
  tcrt_value_t empty = {TCRT_VALUE_SEQUENCE, 0, nullptr, {}}, nothing = {TCRT_VALUE_OPTIONAL, 0, nullptr, {}};
  REQUIRE(tcrt_context_set_input(f.context, 0, &text) == TCRT_OK);
  REQUIRE(tcrt_context_set_input_value(f.context, 1, &empty) == TCRT_OK);
  REQUIRE(tcrt_context_set_input_value(f.context, 2, &nothing) == TCRT_OK);
  CHECK(tcrt_context_run(f.context) == TCRT_ERROR_REFUSED);
  CHECK(says("m.bin: error: node \"node0\": element 1 is no"));
  CHECK(f.warnings == std::vector<std::string>{"m.bin: warning: node \"node0\": element 0 is hm"});
  tcrt_model_t *model;
  tcrt_context_t *context;
  REQUIRE(tcrt_model_open_memory(f.bytes.data(), f.bytes.size(), "m.bin", nullptr, &model) == TCRT_OK);
  CHECK(tcrt_context_create(model, nullptr, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("the function \"twice\""));
  tcrt_model_close(model);
}

TEST_CASE("strings and sequences count against the memory limit") {
  Fixture f(1 << 20);
  std::string large(3 << 20, 'x');
  std::vector<tcrt_string_t> strings = {{large.data(), large.size()}};
  tcrt_tensor_t text = stringTensor(strings);
  tcrt_value_t empty = {TCRT_VALUE_SEQUENCE, 0, nullptr, {}}, nothing = {TCRT_VALUE_OPTIONAL, 0, nullptr, {}};
  REQUIRE(tcrt_context_set_input(f.context, 0, &text) == TCRT_OK);
  REQUIRE(tcrt_context_set_input_value(f.context, 1, &empty) == TCRT_OK);
  REQUIRE(tcrt_context_set_input_value(f.context, 2, &nothing) == TCRT_OK);
  CHECK(tcrt_context_run(f.context) == TCRT_ERROR_MACHINE);
  CHECK(says("memory limit"));
  strings[0] = {"yes", 3};
  CHECK(tcrt_context_set_input(f.context, 0, &text) == TCRT_OK);
  CHECK(tcrt_context_run(f.context) == TCRT_OK);
}

TEST_CASE("interning") {
  // Two constants after the empty one: "b" and "abc".
  const uint64_t head[] = {3, 0, 0, 1, 4};
  std::string table(reinterpret_cast<const char *>(head), sizeof head);
  table += "babc";
  std::vector<uint64_t> aligned((table.size() + 7) / 8);
  std::memcpy(aligned.data(), table.data(), table.size());
  tcrt_store_t store;
  tcrt_store_init(&store, nullptr, reinterpret_cast<const tcrt_string_table_t *>(aligned.data()));
  for (int round = 0; round < 3; ++round) {
    CHECK(tcrt_store_intern(&store, nullptr, 0) == 0);
    CHECK(tcrt_store_intern(&store, "b", 1) == 1);
    CHECK(tcrt_store_intern(&store, "abc", 3) == 2);
    CHECK(tcrt_store_intern(&store, "abcd", 4) == 3);
    std::vector<int64_t> ids;
    for (int i = 0; i < 3000; ++i) {
      std::string text = "word" + std::to_string(i % 1500) + std::string(size_t(i % 7 * 1000), 'y');
      ids.push_back(tcrt_store_intern(&store, text.data(), text.size()));
      CHECK(textOf(tcrt_store_string(&store, ids.back())) == text);
    }
    CHECK(ids[0] == 4);
    CHECK(ids[0] == tcrt_store_intern(&store, "word0", 5));
    CHECK(tcrt_store_string(&store, -1).size_bytes == 0);
    CHECK(tcrt_store_string(&store, 1 << 30).size_bytes == 0);
    tcrt_store_reset(&store);
    CHECK(tcrt_store_string(&store, 3).size_bytes == 0);
  }
  tcrt_store_destroy(&store);
}

TEST_CASE("sequences share their elements and never change") {
  tcrt_store_t store;
  tcrt_store_init(&store, nullptr, nullptr);
  int64_t sequence, longer, other, items[2] = {7, 8};
  REQUIRE(tcrt_store_make_list(&store, TCRT_VALUE_SEQUENCE, items, 2, &sequence) == TCRT_OK);
  REQUIRE(tcrt_store_append(&store, sequence, 9, &longer) == TCRT_OK);
  REQUIRE(tcrt_store_append(&store, longer, 10, &other) == TCRT_OK);
  CHECK(tcrt_store_object(&store, longer)->list == tcrt_store_object(&store, other)->list);
  REQUIRE(tcrt_store_append(&store, longer, 11, &other) == TCRT_OK);
  CHECK(tcrt_store_object(&store, longer)->list != tcrt_store_object(&store, other)->list);
  CHECK(tcrt_store_object(&store, sequence)->count == 2);
  const tcrt_object_t *object = tcrt_store_object(&store, other);
  CHECK((object->count == 4 && object->list->items[0] == 7 && object->list->items[3] == 11));
  for (int64_t i = 0; i < 10000; ++i)
    REQUIRE(tcrt_store_append(&store, other, i, &other) == TCRT_OK);
  CHECK(tcrt_store_object(&store, other)->list->items[10003] == 9999);
  CHECK(tcrt_store_object(&store, 0) == nullptr);
  CHECK(tcrt_store_object(&store, 1 << 30) == nullptr);
  tcrt_store_destroy(&store);
}

TEST_CASE("functions keep what outlives a run, until the context ends") {
  static std::vector<int> destroyed;
  destroyed.clear();
  auto destroy = [](void *value) { destroyed.push_back(*static_cast<int *>(value)); };
  auto other = [](void *value) { destroyed.push_back(-*static_cast<int *>(value)); };
  int values[] = {1, 2};
  tcrt_store_t store;
  tcrt_store_init(&store, nullptr, nullptr);
  CHECK(tcrt_services.threads(&store) == 1);
  void **first = tcrt_services.keep(&store, &values[0], destroy);
  REQUIRE((first && !*first));
  *first = &values[0];
  void **second = tcrt_services.keep(&store, &values[1], destroy);
  REQUIRE((second && second != first && !*second));
  void **sameKey = tcrt_services.keep(&store, &values[0], other);
  REQUIRE((sameKey && sameKey != first && !*sameKey));
  *sameKey = &values[1];
  tcrt_store_reset(&store);
  CHECK(tcrt_services.keep(&store, &values[0], destroy) == first);
  CHECK(*first == &values[0]);
  CHECK(destroyed.empty());
  tcrt_store_destroy(&store);
  std::sort(destroyed.begin(), destroyed.end());
  CHECK(destroyed == std::vector<int>{-2, 1});
}
