//===- Api.cpp - The C API of libtcrt on a program written by hand --------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"

#include "tcrt/tcrt.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tc;
using namespace tc::test;

namespace {

std::string makeArtifact(const artifact::ArtifactSpec &spec) {
  llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
  if (!bytes)
    FAIL(llvm::toString(bytes.takeError()));
  return *bytes;
}

tcrt_tensor_t floats(std::vector<float> &data, std::vector<int64_t> dims) {
  tcrt_tensor_t tensor = {};
  tensor.dtype = TCRT_DTYPE_F32;
  tensor.rank = uint32_t(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    tensor.dims[i] = dims[i];
  tensor.data = data.data();
  tensor.size_bytes = data.size() * sizeof(float);
  return tensor;
}

bool says(const std::string &part) {
  std::string text = tcrt_last_error();
  INFO(text);
  CHECK(text.find('\n') == std::string::npos);
  if (text.find(part) == std::string::npos)
    UNSCOPED_INFO("the error is: " << text);
  return text.find(part) != std::string::npos;
}

struct Model {
  std::string bytes;
  tcrt_model_t *model = nullptr;

  explicit Model(const artifact::ArtifactSpec &spec) : bytes(makeArtifact(spec)) {
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", nullptr, &model) == TCRT_OK);
  }
  ~Model() { tcrt_model_close(model); }
};

struct Context {
  tcrt_context_t *context = nullptr;

  explicit Context(tcrt_model_t *model, tcrt_context_options_t options = {}) {
    options.size = sizeof options;
    tcrt_status_t status = tcrt_context_create(model, &options, &context);
    INFO(tcrt_last_error());
    REQUIRE(status == TCRT_OK);
  }
  ~Context() { tcrt_context_destroy(context); }
  operator tcrt_context_t *() const { return context; }
};

tcrt_context_options_t withThreads(uint32_t threads) {
  tcrt_context_options_t options = {};
  options.threads = threads;
  return options;
}

} // namespace

TEST_CASE("the signature can be queried") {
  Model m(basicSpec());
  CHECK(tcrt_model_input_count(m.model) == 2);
  CHECK(tcrt_model_output_count(m.model) == 2);
  tcrt_value_info_t info;
  REQUIRE(tcrt_model_input(m.model, 0, &info) == TCRT_OK);
  CHECK(std::string(info.name) == "x");
  CHECK(info.dtype == TCRT_DTYPE_F32);
  CHECK(info.rank == 2);
  CHECK(info.dims[0] == -1);
  CHECK(info.symbols[0] == 0);
  CHECK(info.dims[1] == 4);
  CHECK(info.symbols[1] == -1);
  tcrt_symbol_info_t symbol;
  REQUIRE(tcrt_model_symbol(m.model, 0, &symbol) == TCRT_OK);
  CHECK(symbol.max == 64);
  tcrt_variant_info_t variant;
  REQUIRE(tcrt_model_variant(m.model, 0, &variant) == TCRT_OK);
  CHECK(!variant.usable);
  CHECK(tcrt_model_variant(m.model, 2, &variant) == TCRT_ERROR_INVALID);
  CHECK(says("m.bin: error: there is no variant 2; the model has 2"));
  uint32_t index = 9;
  CHECK(tcrt_model_find_input(m.model, "b", &index) == TCRT_OK);
  CHECK(index == 1);
  CHECK(tcrt_model_find_input(m.model, "z", &index) == TCRT_ERROR_REFUSED);
  const char *text;
  uint64_t size;
  CHECK(tcrt_model_manifest(m.model, &text, &size) == TCRT_OK);
  CHECK(std::string(text, size) == "{\"producer\": \"test\"}");
}

TEST_CASE("a model runs with several sizes, defaults, bound and own outputs") {
  Model m(basicSpec());
  for (uint32_t threads : {1u, 2u, 5u}) {
    Context context(m.model, withThreads(threads));
    CHECK(std::string(tcrt_context_variant(context)) == "x86-64-v2");
    for (int64_t n : {3, 0, 1, 60, 7, 7}) {
      std::vector<float> x(size_t(4 * n));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i % 9) - 4;
      tcrt_tensor_t tensor = floats(x, {n, 4});
      REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      tcrt_tensor_t y, p;
      REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(context, 1, &p) == TCRT_OK);
      CHECK(y.dims[0] == n);
      CHECK(y.dims[1] == 4);
      std::vector<float> positive;
      bool same = true;
      for (size_t i = 0; i < x.size(); ++i) {
        float expected = 2 * x[i] + float(i % 4 + 1);
        same = same && static_cast<float *>(y.data)[i] == expected;
        if (expected > 0)
          positive.push_back(expected);
      }
      CHECK(same);
      REQUIRE(p.dims[0] == int64_t(positive.size()));
      CHECK((positive.empty() || std::memcmp(p.data, positive.data(), positive.size() * 4) == 0));
    }
    std::vector<float> x(8, 1), b(4, -10), y(8), p(8);
    tcrt_tensor_t tx = floats(x, {2, 4}), tb = floats(b, {4}), ty = floats(y, {}), tp = floats(p, {});
    REQUIRE(tcrt_context_set_input(context, 0, &tx) == TCRT_OK);
    REQUIRE(tcrt_context_set_input(context, 1, &tb) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(context, 0, &ty) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(context, 1, &tp) == TCRT_OK);
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
    CHECK(y[7] == -8);
    tcrt_tensor_t out;
    REQUIRE(tcrt_context_get_output(context, 1, &out) == TCRT_OK);
    CHECK(out.dims[0] == 0);
  }
}

TEST_CASE("inputs that do not fit are refused with a sentence") {
  Model m(basicSpec());
  Context context(m.model, withThreads(1));
  std::vector<float> x(512, 1);
  tcrt_tensor_t t = floats(x, {2, 5});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_REFUSED);
  CHECK(says("m.bin: error: input \"x\": its dims are (2, 5), expected (n, 4)"));
  t = floats(x, {2});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_REFUSED);
  CHECK(says("input \"x\": its rank is 1, expected 2 with dims (n, 4)"));
  t = floats(x, {2, 4});
  t.dtype = TCRT_DTYPE_I32;
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_REFUSED);
  CHECK(says("input \"x\": its dtype is i32, expected f32"));
  t = floats(x, {2, 4});
  t.size_bytes = 31;
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_INVALID);
  CHECK(says("input \"x\": its buffer has 31 bytes, expected 32 for dims (2, 4)"));
  t = floats(x, {INT64_MAX, 4});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_REFUSED);
  t = floats(x, {-1, 4});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_REFUSED);
  t = floats(x, {2, 4});
  CHECK(tcrt_context_set_input(context, 7, &t) == TCRT_ERROR_REFUSED);
  t.device = TCRT_DEVICE_CUDA;
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_ERROR_INVALID);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  CHECK(says("input \"x\" is not given; expected f32 (n, 4)"));
  t = floats(x, {65, 4});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  CHECK(says("input \"x\": dim 0 (n) is 65, expected 0 to 64"));
  t = floats(x, {61, 4});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  CHECK(tcrt_context_infer(context) == TCRT_ERROR_REFUSED);
  CHECK(says("m.bin: error: input \"x\": n is above 60"));
  x[0] = 666;
  t = floats(x, {6, 4});
  CHECK(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  CHECK(says("m.bin: error: the run is refused by value"));
  tcrt_tensor_t out;
  CHECK(tcrt_context_get_output(context, 0, &out) == TCRT_ERROR_INVALID);
  x[0] = 1;
  CHECK(tcrt_context_run(context) == TCRT_OK);
}

TEST_CASE("output buffers that are too small or overlap are refused") {
  Model m(basicSpec());
  Context context(m.model, withThreads(1));
  std::vector<float> x(64, 1), y(64);
  tcrt_tensor_t tx = floats(x, {4, 4}), ty = floats(y, {});
  REQUIRE(tcrt_context_set_input(context, 0, &tx) == TCRT_OK);
  ty.size_bytes = 63;
  REQUIRE(tcrt_context_set_output(context, 0, &ty) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("output \"y\": its buffer has 63 bytes and needs 64; bind a larger one"));
  tcrt_tensor_t shape;
  REQUIRE(tcrt_context_output_shape(context, 0, &shape) == TCRT_OK);
  CHECK(shape.size_bytes == 64);
  REQUIRE(tcrt_context_output_shape(context, 1, &shape) == TCRT_OK);
  CHECK(shape.dims[0] == -1);
  CHECK(shape.size_bytes == 0);
  // The size of p is only known inside the run.
  ty.size_bytes = 64;
  REQUIRE(tcrt_context_set_output(context, 0, &ty) == TCRT_OK);
  tcrt_tensor_t tp = floats(y, {});
  tp.data = y.data() + 16;
  tp.size_bytes = 12;
  REQUIRE(tcrt_context_set_output(context, 1, &tp) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("output \"p\": its buffer has 12 bytes and needs 64"));
  REQUIRE(tcrt_context_output_shape(context, 1, &shape) == TCRT_OK);
  CHECK(shape.dims[0] == 16);
  tp.size_bytes = 64;
  tp.data = y.data() + 15;
  REQUIRE(tcrt_context_set_output(context, 1, &tp) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("the buffer of output \"p\" overlaps that of output \"y\""));
  tp.data = x.data() + 15;
  REQUIRE(tcrt_context_set_output(context, 1, &tp) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INVALID);
  CHECK(says("the buffer of output \"p\" overlaps that of input \"x\""));
  tp.data = y.data() + 16;
  REQUIRE(tcrt_context_set_output(context, 1, &tp) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_OK);
}

TEST_CASE("a memory limit holds and leaves the context usable") {
  Model m(basicSpec());
  tcrt_context_options_t options = withThreads(1);
  options.memory_limit = 1000;
  Context context(m.model, options);
  std::vector<float> x(240, 1);
  tcrt_tensor_t t = floats(x, {60, 4});
  REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_MACHINE);
  CHECK(says("memory limit of 1000 bytes"));
  t = floats(x, {10, 4});
  REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_OK);
  tcrt_context_stats_t stats;
  REQUIRE(tcrt_context_stats(context, &stats) == TCRT_OK);
  CHECK(stats.runs == 1);
  CHECK(stats.memory_bytes <= 1000);
  CHECK(stats.peak_memory_bytes <= 1000);
}

TEST_CASE("memory of values whose size depends on data is kept, and never more than was in use at a time") {
  Model m(basicSpec());
  // The same run after run, and what limits or gives memory gets all of it back.
  for (const bool isLimited : {false, true}) {
    tcrt_context_options_t options = withThreads(1);
    options.memory_limit = isLimited ? UINT64_C(1) << 30 : 0;
    Context context(m.model, options);
    std::vector<float> x(4 * 60, 555);
    tcrt_context_stats_t stats;
    uint64_t first = 0, largest = 0;
    auto run = [&](int64_t rows) {
      tcrt_tensor_t t = floats(x, {rows, 4});
      REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      REQUIRE(tcrt_context_stats(context, &stats) == TCRT_OK);
      CHECK(stats.memory_bytes <= stats.peak_memory_bytes);
    };
    run(60);
    first = stats.memory_bytes;
    largest = stats.peak_memory_bytes;
    for (int64_t rows : {60, 59, 5, 40, 17, 50, 60})
      run(rows);
    CHECK(stats.memory_bytes == first);
    CHECK(stats.peak_memory_bytes == largest);
    // The program asks for 64 KiB a row while it runs: 4 MB.
    CHECK((largest - first < 1 << 20) == !isLimited);
  }
}

TEST_CASE("variants are chosen by the machine or by name") {
  Model m(basicSpec());
  tcrt_context_t *context;
  tcrt_context_options_t options = withThreads(1);
  options.size = sizeof options;
  options.variant = "future";
  CHECK(tcrt_context_create(m.model, &options, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("variant \"future\" does not run on this machine; it needs CPU features that are missing: feature 63"));
  CHECK(context == nullptr);
  options.variant = "none";
  CHECK(tcrt_context_create(m.model, &options, &context) == TCRT_ERROR_INVALID);
  CHECK(says("the artifact has no variant \"none\"; it has future, x86-64-v2"));

  artifact::ArtifactSpec spec = basicSpec();
  spec.variants.pop_back();
  Model future(spec);
  CHECK(tcrt_context_create(future.model, nullptr, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("no variant of the artifact runs on this CPU"));

  spec = basicSpec();
  spec.variants[0].elf = programElf("old");
  spec.variants[0].cpuFeatures = 0;
  Model old(spec);
  CHECK(tcrt_context_create(old.model, nullptr, &context) == TCRT_ERROR_INVALID);
  CHECK(says("needs another libtcrt"));

  tcrt_model_options_t cuda = {};
  cuda.size = sizeof cuda;
  cuda.device = TCRT_DEVICE_CUDA;
  std::string bytes = makeArtifact(basicSpec());
  tcrt_model_t *model;
  REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", &cuda, &model) == TCRT_OK);
  CHECK(tcrt_context_create(model, nullptr, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("the artifact has no code for device cuda"));
  tcrt_model_close(model);
}

TEST_CASE("a GPU variant runs on a GPU, and says so without one") {
  std::string bytes = makeArtifact(deviceSpec());
  tcrt_model_options_t modelOptions = {};
  modelOptions.size = sizeof modelOptions;
  modelOptions.device = TCRT_DEVICE_CUDA;
  tcrt_model_t *model;
  REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", &modelOptions, &model) == TCRT_OK);
  tcrt_context_options_t options = withThreads(1);
  options.size = sizeof options;
  options.profile = 1;
  tcrt_context_t *context;
  if (access("/dev/nvidiactl", F_OK) != 0) {
    CHECK(tcrt_context_create(model, &options, &context) == TCRT_ERROR_MACHINE);
    CHECK(says("variant \"cuda\" needs an NVIDIA GPU"));
    tcrt_model_close(model);
    return;
  }
  {
    Context own(model, options);
    for (int64_t n : {1000, 0, 1, 100000, 7}) {
      std::vector<float> x(size_t(n) + 1);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i) - 3;
      tcrt_tensor_t t = floats(x, {n}), y, z;
      REQUIRE(tcrt_context_set_input(own, 0, &t) == TCRT_OK);
      tcrt_status_t status = tcrt_context_run(own);
      INFO(tcrt_last_error());
      REQUIRE(status == TCRT_OK);
      REQUIRE(tcrt_context_get_output(own, 0, &y) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(own, 1, &z) == TCRT_OK);
      CHECK(y.device == TCRT_DEVICE_CPU);
      REQUIRE(y.dims[0] == n);
      REQUIRE(z.dims[0] == n / 2);
      bool same = true;
      for (int64_t i = 0; i < n; ++i)
        same = same && static_cast<float *>(y.data)[i] == 3 * x[size_t(i)];
      for (int64_t i = 0; i < n / 2; ++i)
        same = same && static_cast<float *>(z.data)[i] == 3 * x[size_t(i)];
      CHECK(same);
    }
    std::vector<float> x(8, 666);
    tcrt_tensor_t t = floats(x, {8});
    REQUIRE(tcrt_context_set_input(own, 0, &t) == TCRT_OK);
    CHECK(tcrt_context_run(own) == TCRT_ERROR_REFUSED);
    CHECK(says("the run is refused by value"));
    // Buffers on the device, in and out, and a bound buffer on the host.
    x.assign(8, 2);
    void *deviceX, *deviceY;
    REQUIRE(tcrt_context_device_allocate(own, 32, &deviceX) == TCRT_OK);
    REQUIRE(tcrt_context_device_allocate(own, 32, &deviceY) == TCRT_OK);
    REQUIRE(tcrt_context_device_copy(own, deviceX, x.data(), 32, TCRT_COPY_HOST_TO_DEVICE) == TCRT_OK);
    tcrt_tensor_t tx = floats(x, {8}), ty = floats(x, {8});
    tx.data = deviceX, ty.data = deviceY;
    tx.device = ty.device = TCRT_DEVICE_CUDA;
    std::vector<float> y(8), z(8);
    tcrt_tensor_t tz = floats(z, {});
    REQUIRE(tcrt_context_set_input(own, 0, &tx) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(own, 0, &ty) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(own, 1, &tz) == TCRT_OK);
    REQUIRE(tcrt_context_run(own) == TCRT_OK);
    REQUIRE(tcrt_context_device_copy(own, y.data(), deviceY, 32, TCRT_COPY_DEVICE_TO_HOST) == TCRT_OK);
    CHECK(y == std::vector<float>(8, 6));
    CHECK(z[3] == 6);
    CHECK(z[4] == 0);
    tcrt_profile_entry_t entry;
    tcrt_context_stats_t stats;
    REQUIRE(tcrt_context_profile(own, 0, &entry) == TCRT_OK);
    REQUIRE(tcrt_context_stats(own, &stats) == TCRT_OK);
    CHECK(entry.launches > 0);
    CHECK(entry.time_ns > 0);
    CHECK(stats.device_us > 0);
    tcrt_context_device_free(own, deviceX, 32);
    tcrt_context_device_free(own, deviceY, 32);
  }
  // Contexts at once, each with its stream.
  std::atomic<int> problems{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      tcrt_context_t *mine;
      if (tcrt_context_create(model, &options, &mine) != TCRT_OK) {
        ++problems;
        return;
      }
      std::vector<float> x(1000, float(t)), y(1000);
      tcrt_tensor_t tx = floats(x, {1000}), ty = floats(y, {});
      tcrt_context_set_input(mine, 0, &tx);
      tcrt_context_set_output(mine, 0, &ty);
      for (int i = 0; i < 20; ++i)
        problems += tcrt_context_run(mine) != TCRT_OK || y != std::vector<float>(1000, 3 * float(t));
      tcrt_context_destroy(mine);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(problems == 0);
  tcrt_model_close(model);
}

TEST_CASE("each range runs once, from many contexts at a time") {
  Model m(stressSpec());
  std::atomic<int64_t> problems{0}, runs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      tcrt_context_options_t options = withThreads(uint32_t(1 + t));
      options.size = sizeof options;
      tcrt_context_t *context;
      if (tcrt_context_create(m.model, &options, &context) != TCRT_OK) {
        ++problems;
        return;
      }
      int64_t tasks = 5000, result = 0;
      tcrt_tensor_t in = {TCRT_DTYPE_I64, 1, {1}, &tasks, 8, 0};
      tcrt_tensor_t out = {TCRT_DTYPE_I64, 1, {1}, &result, 8, 0};
      if (tcrt_context_set_input(context, 0, &in) != TCRT_OK || tcrt_context_set_output(context, 0, &out) != TCRT_OK)
        ++problems;
      for (int i = 0; i < 20; ++i) {
        if (tcrt_context_run(context) != TCRT_OK)
          ++problems;
        problems += result;
        ++runs;
      }
      tcrt_context_destroy(context);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(problems == 0);
  CHECK(runs == 120);
}

TEST_CASE("more contexts than the pool has slots still run") {
  Model m(stressSpec());
  std::atomic<int64_t> problems{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 80; ++t) {
    threads.emplace_back([&] {
      tcrt_context_options_t options = withThreads(2);
      options.size = sizeof options;
      tcrt_context_t *context;
      if (tcrt_context_create(m.model, &options, &context) != TCRT_OK) {
        ++problems;
        return;
      }
      int64_t tasks = 300;
      tcrt_tensor_t in = {TCRT_DTYPE_I64, 1, {1}, &tasks, 8, 0}, out;
      tcrt_context_set_input(context, 0, &in);
      for (int i = 0; i < 3; ++i) {
        if (tcrt_context_run(context) != TCRT_OK || tcrt_context_get_output(context, 0, &out) != TCRT_OK)
          ++problems;
        else
          problems += *static_cast<int64_t *>(out.data);
      }
      tcrt_context_destroy(context);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(problems == 0);
}

TEST_CASE("a context that is in use refuses other calls") {
  Model m(stressSpec());
  struct State {
    tcrt_context_t *context = nullptr;
    int busy = 0, calls = 0;
  } state;
  tcrt_executor_t executor = {
      &state, [](void *user, int64_t ranges, void (*task)(void *, int64_t, int64_t), void *data) {
        State &s = *static_cast<State *>(user);
        ++s.calls;
        std::thread([&] { s.busy += tcrt_context_run(s.context) == TCRT_ERROR_INVALID; }).join();
        for (int64_t i = 0; i < ranges; ++i)
          task(data, i, i % 3);
      }};
  tcrt_context_options_t options = withThreads(3);
  options.executor = &executor;
  Context context(m.model, options);
  state.context = context;
  int64_t tasks = 100;
  tcrt_tensor_t in = {TCRT_DTYPE_I64, 1, {1}, &tasks, 8, 0}, out;
  REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
  REQUIRE(tcrt_context_run(context) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(context, 0, &out) == TCRT_OK);
  CHECK(*static_cast<int64_t *>(out.data) == 0);
  CHECK(state.calls > 5);
  CHECK(state.busy == state.calls);
}

// Threads of the caller for a whole run; `calls`: how many runs had them.
struct Team {
  std::atomic<int64_t> calls{0};
  uint32_t missing = 0; // members that do not come
  tcrt_team_t team = {this, [](void *user, uint32_t members, void (*member)(void *, uint32_t), void *data) {
                        Team &self = *static_cast<Team *>(user);
                        ++self.calls;
                        std::vector<std::thread> threads;
                        for (uint32_t i = 1; i + self.missing < members; ++i)
                          threads.emplace_back([=] { member(data, i); });
                        member(data, 0);
                        for (std::thread &thread : threads)
                          thread.join();
                      }};
};

TEST_CASE("a caller's team runs launches, and is not called behind short runs") {
  Model m(basicSpec());
  std::vector<float> x(240);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i);
  for (uint32_t missing : {0u, 1u, 3u}) {
    Team team;
    team.missing = missing;
    tcrt_context_options_t options = withThreads(4);
    options.team = &team.team;
    Context context(m.model, options);
    for (int64_t rows : {60, 7, 1, 1, 1, 50, 50}) {
      tcrt_tensor_t in = floats(x, {rows, 4}), y;
      REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
      for (int64_t i = 0; i < 4 * rows; ++i)
        REQUIRE(static_cast<float *>(y.data)[i] == 2 * x[i] + float(i % 4 + 1));
    }
    CHECK(team.calls >= 1);
    CHECK(team.calls < 7); // a run takes microseconds
  }
  Model stress(stressSpec());
  for (uint32_t missing : {0u, 1u, 3u}) {
    Team team;
    team.missing = missing;
    tcrt_context_options_t options = withThreads(4);
    options.team = &team.team;
    Context context(stress.model, options);
    for (int64_t tasks : {1000, 77, 1, 500}) {
      tcrt_tensor_t in = {TCRT_DTYPE_I64, 1, {1}, &tasks, 8, 0}, out;
      REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(context, 0, &out) == TCRT_OK);
      CHECK(*static_cast<int64_t *>(out.data) == 0);
    }
    CHECK(team.calls >= 1);
  }
}

TEST_CASE("teams of several contexts run at the same time") {
  Model m(stressSpec());
  std::atomic<int64_t> problems{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Team team;
      tcrt_context_options_t options = withThreads(3);
      options.size = sizeof options;
      options.team = t == 3 ? nullptr : &team.team; // one has the pool's helpers
      tcrt_context_t *context;
      if (tcrt_context_create(m.model, &options, &context) != TCRT_OK) {
        ++problems;
        return;
      }
      for (int64_t tasks = 1; tasks < 60; ++tasks) {
        tcrt_tensor_t in = {TCRT_DTYPE_I64, 1, {1}, &tasks, 8, 0}, out;
        tcrt_context_set_input(context, 0, &in);
        if (tcrt_context_run(context) != TCRT_OK || tcrt_context_get_output(context, 0, &out) != TCRT_OK)
          ++problems;
        else
          problems += *static_cast<int64_t *>(out.data);
      }
      tcrt_context_destroy(context);
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(problems == 0);
}

TEST_CASE("a caller's allocator gets back what it gave") {
  Model m(basicSpec());
  int64_t held = 0;
  tcrt_allocator_t allocator = {&held,
                                [](void *user, uint64_t bytes, uint64_t alignment) -> void * {
                                  *static_cast<int64_t *>(user) += int64_t(bytes);
                                  void *data = nullptr;
                                  return posix_memalign(&data, alignment, bytes) ? nullptr : data;
                                },
                                [](void *user, void *data, uint64_t bytes) {
                                  *static_cast<int64_t *>(user) -= int64_t(bytes);
                                  free(data);
                                }};
  {
    tcrt_context_options_t options = withThreads(1);
    options.allocator = &allocator;
    Context context(m.model, options);
    std::vector<float> x(40, 1);
    for (int64_t n : {3, 10, 1}) {
      tcrt_tensor_t t = floats(x, {n, 4});
      REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
    }
    CHECK(held > 0);
  }
  CHECK(held == 0);
}

TEST_CASE("a caller's allocator is asked once") {
  Model m(basicSpec());
  int64_t refused = 0;
  tcrt_allocator_t allocator = {&refused,
                                [](void *user, uint64_t bytes, uint64_t alignment) -> void * {
                                  void *data = nullptr;
                                  if (bytes > 1 << 20)
                                    ++*static_cast<int64_t *>(user);
                                  else if (posix_memalign(&data, alignment, bytes))
                                    return nullptr;
                                  return data;
                                },
                                [](void *, void *data, uint64_t) { free(data); }};
  tcrt_context_options_t options = withThreads(1);
  options.allocator = &allocator;
  Context context(m.model, options);
  std::vector<float> x(4 * 60, 555); // the program asks for 4 MB
  tcrt_tensor_t t = floats(x, {60, 4});
  REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_MACHINE);
  CHECK(says("no memory left for a value"));
  CHECK(refused == 1);
}

TEST_CASE("kernels are profiled") {
  Model m(basicSpec());
  tcrt_context_options_t options = withThreads(2);
  options.profile = 1;
  Context context(m.model, options);
  std::vector<float> x(40, 1);
  tcrt_tensor_t t = floats(x, {10, 4});
  REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  for (int i = 0; i < 3; ++i)
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
  REQUIRE(tcrt_context_profile_count(context) == 1);
  tcrt_profile_entry_t entry;
  REQUIRE(tcrt_context_profile(context, 0, &entry) == TCRT_OK);
  CHECK(std::string(entry.kernel) == "k_axpb");
  CHECK(std::string(entry.nodes) == "Mul#0+Add#1");
  CHECK(entry.launches == 3);
  REQUIRE(tcrt_context_profile_reset(context) == TCRT_OK);
  REQUIRE(tcrt_context_profile(context, 0, &entry) == TCRT_OK);
  CHECK(entry.launches == 0);
}

TEST_CASE("the maths of the import table") {
  artifact::ArtifactSpec spec;
  spec.functions.emplace_back().name = "main";
  spec.functions[0].inputs.push_back({"x", TCRT_DTYPE_F64, {artifact::Dim::fixed(21)}});
  spec.functions[0].outputs.push_back({"y", TCRT_DTYPE_F64, {artifact::Dim::fixed(21)}});
  spec.variants.push_back({"any", TCRT_DEVICE_CPU, 0, programElf("maths")});
  Model m(spec);
  Context context(m.model, withThreads(1));
  std::vector<double> x(21, 0.5);
  x[12] = 1.5;
  tcrt_tensor_t t = {TCRT_DTYPE_F64, 1, {21}, x.data(), 168, 0}, y;
  REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
  REQUIRE(tcrt_context_run(context) == TCRT_OK);
  REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
  // Of libm, as in the table: a compiler that computes them itself may round otherwise.
  volatile double h = 0.5, above = 1.5;
  double expected[21] = {exp(h),  log(h),   sin(h),   cos(h),  tan(h),      asin(h),      acos(h),
                         atan(h), sinh(h),  cosh(h),  tanh(h), asinh(h),    acosh(above), atanh(h),
                         erf(h),  log1p(h), expm1(h), cbrt(h), pow(h, 2.5), fmod(h, 2.5), atan2(h, 2.5)};
  for (int i = 0; i < 21; ++i)
    CHECK(static_cast<double *>(y.data)[i] == expected[i]);
}

TEST_CASE("artifacts open from files and callbacks") {
  std::string path = "/tmp/tc-unit-" + std::to_string(getpid()) + ".bin";
  artifact::ArtifactSpec spec = basicSpec();
  llvm::Error error = artifact::writeArtifact(spec, path);
  REQUIRE(!error);
  std::string bytes = readFile(path);
  CHECK(bytes == makeArtifact(spec));
  tcrt_model_options_t options = {};
  options.size = sizeof options;
  options.verify_weights = 1;
  std::vector<float> x(40, 1);
  tcrt_tensor_t t = floats(x, {10, 4}), y;
  for (int kind = 0; kind < 2; ++kind) {
    tcrt_model_t *model;
    if (kind == 0) {
      REQUIRE(tcrt_model_open_file(path.c_str(), &options, &model) == TCRT_OK);
    } else {
      tcrt_reader_t reader = {&bytes, bytes.size(), [](void *user, uint64_t offset, void *data, uint64_t size) {
                                std::memcpy(data, static_cast<std::string *>(user)->data() + offset, size);
                                return 0;
                              }};
      REQUIRE(tcrt_model_open_reader(&reader, "callback", &options, &model) == TCRT_OK);
    }
    {
      Context context(model, withThreads(2));
      REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
      CHECK(static_cast<float *>(y.data)[39] == 6);
    }
    tcrt_model_close(model);
  }
  unlink(path.c_str());
  tcrt_model_t *model;
  CHECK(tcrt_model_open_file(path.c_str(), nullptr, &model) == TCRT_ERROR_INVALID);
  CHECK(says("the file cannot be read: No such file or directory"));
  CHECK(tcrt_model_open_file("/tmp", nullptr, &model) == TCRT_ERROR_INVALID);
  CHECK(tcrt_model_open_memory("", 0, nullptr, nullptr, &model) == TCRT_ERROR_INVALID);
  CHECK(says("the file is empty"));
  CHECK(tcrt_model_open_memory("hello, world", 12, nullptr, nullptr, &model) == TCRT_ERROR_INVALID);
  CHECK(says("is not an artifact"));
}

TEST_CASE("a caller decides whether an artifact is accepted, and what it saw is what runs") {
  struct Judge {
    std::string path, whole, why;
    tcrt_status_t status;
    int calls;
    static tcrt_status_t judge(void *user, const char *name, const void *data, uint64_t size, char *why,
                               uint64_t whyBytes) {
      Judge &self = *static_cast<Judge *>(user);
      ++self.calls;
      CHECK(std::string(name) == self.path);
      CHECK(std::string(static_cast<const char *>(data), size) == self.whole);
      if (!self.why.empty())
        std::snprintf(why, whyBytes, "%s", self.why.c_str());
      // Who writes to the file now changes nothing of what was accepted, code that is loaded later included.
      if (FILE *file = std::fopen(name, "r+b")) {
        std::fwrite(std::string(size, 'X').data(), 1, size, file);
        std::fclose(file);
      }
      return self.status;
    }
  };
  const std::string path = "/tmp/tc-unit-judge-" + std::to_string(getpid()) + ".bin", bytes = makeArtifact(basicSpec());
  auto write = [&] {
    FILE *file = std::fopen(path.c_str(), "wb");
    REQUIRE(file);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    REQUIRE(std::fclose(file) == 0);
  };
  Judge judge = {path, bytes, "", TCRT_OK, 0};
  tcrt_model_options_t options = {};
  options.size = sizeof options;
  options.verify = Judge::judge;
  options.verify_user = &judge;
  std::vector<float> x(40, 1);
  tcrt_tensor_t t = floats(x, {10, 4}), y;
  for (bool fromFile : {true, false}) {
    write();
    tcrt_model_t *model;
    REQUIRE((fromFile ? tcrt_model_open_file(path.c_str(), &options, &model)
                      : tcrt_model_open_memory(bytes.data(), bytes.size(), path.c_str(), &options, &model)) == TCRT_OK);
    CHECK(readFile(path) != bytes);
    {
      Context context(model, withThreads(2));
      REQUIRE(tcrt_context_set_input(context, 0, &t) == TCRT_OK);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
      CHECK(static_cast<float *>(y.data)[39] == 6);
    }
    tcrt_model_close(model);
  }
  CHECK(judge.calls == 2);
  for (const char *why : {"", "not today"}) {
    write();
    judge.status = TCRT_ERROR_MACHINE;
    judge.why = why;
    tcrt_model_t *model;
    CHECK(tcrt_model_open_file(path.c_str(), &options, &model) == TCRT_ERROR_MACHINE);
    CHECK(model == nullptr);
    CHECK(says(path + ": error: " + (*why ? why : "it is not accepted")));
  }
  // Bytes that are no artifact are shown, too, and nothing is read of them before.
  judge.whole = "hello, world";
  judge.status = TCRT_OK;
  judge.why.clear();
  tcrt_model_t *model;
  CHECK(tcrt_model_open_memory("hello, world", 12, path.c_str(), &options, &model) == TCRT_ERROR_INVALID);
  CHECK(says("is not an artifact"));
  CHECK(judge.calls == 5);
  unlink(path.c_str());
}
