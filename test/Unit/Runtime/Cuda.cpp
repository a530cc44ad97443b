//===- Cuda.cpp - The driver for GPU variants on a driver without a GPU ---------------------------------*- C++ -*-===//
//
// Graphs, streams, memory and errors of lib/Runtime/CUDA, with the libcuda.so.1 of FakeCuda.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "FakeCuda/FakeCuda.h"
#include "Programs/Programs.h"

#include "tcrt/tcrt.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tc;
using namespace tc::test;

namespace {

bool says(const std::string &part) {
  std::string text = tcrt_last_error();
  CHECK(text.find('\n') == std::string::npos);
  if (text.find(part) == std::string::npos)
    UNSCOPED_INFO("the error is: " << text);
  return text.find(part) != std::string::npos;
}

/// An opened artifact; at the end nothing of the device may be left, and nothing may have been done wrong.
struct Model {
  std::string bytes;
  std::vector<std::string> log;
  tcrt_model_t *model = nullptr;

  explicit Model(const artifact::ArtifactSpec &spec) {
    fake::reset();
    llvm::Expected<std::string> made = artifact::writeArtifactToMemory(spec);
    if (!made)
      FAIL(llvm::toString(made.takeError()));
    bytes = *made;
    tcrt_model_options_t options = {};
    options.size = sizeof options;
    options.device = TCRT_DEVICE_CUDA;
    options.log = [](void *user, int, const char *message) {
      static_cast<std::vector<std::string> *>(user)->push_back(message);
    };
    options.log_user = &log;
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", &options, &model) == TCRT_OK);
  }
  ~Model() {
    tcrt_model_close(model);
    CHECK(fake::problems() == std::vector<std::string>());
    CHECK(fake::live() == "");
    fake::reset();
  }
  operator tcrt_model_t *() const { return model; }
};

tcrt_context_options_t withGraphs(int graphs) {
  tcrt_context_options_t options = {};
  options.size = sizeof options;
  options.threads = 1;
  options.graphs = graphs;
  return options;
}

struct Context {
  tcrt_context_t *context = nullptr;
  std::vector<float> x;

  explicit Context(tcrt_model_t *model, const tcrt_context_options_t &options = withGraphs(TCRT_GRAPHS_DEFAULT)) {
    tcrt_status_t status = tcrt_context_create(model, &options, &context);
    INFO(tcrt_last_error());
    REQUIRE(status == TCRT_OK);
  }
  ~Context() { tcrt_context_destroy(context); }
  operator tcrt_context_t *() const { return context; }

  static tcrt_tensor_t describe(void *data, int64_t n, uint32_t device = TCRT_DEVICE_CPU) {
    tcrt_tensor_t tensor = {};
    tensor.dtype = TCRT_DTYPE_F32;
    tensor.rank = 1;
    tensor.dims[0] = n;
    tensor.data = data;
    tensor.size_bytes = 4 * uint64_t(n);
    tensor.device = device;
    return tensor;
  }
  /// Binds 0, 1, 2, ... (or `first` and so on) in host memory.
  void bind(int64_t n, float first = 0) {
    x.resize(size_t(n) + 1);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = first + float(i);
    tcrt_tensor_t tensor = describe(x.data(), n);
    REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
  }
  static float factor(int64_t n) { return n % 2 ? 2187.0f : 81.0f; }
  /// Runs the chain and compares.
  void run(int64_t n, float first = 0) {
    bind(n, first);
    tcrt_status_t status = tcrt_context_run(context);
    INFO(tcrt_last_error());
    REQUIRE(status == TCRT_OK);
    check(n);
  }
  void check(int64_t n) {
    tcrt_tensor_t y;
    REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
    REQUIRE(y.dims[0] == n);
    bool same = true;
    for (int64_t i = 0; i < n; ++i)
      same = same && static_cast<float *>(y.data)[i] == factor(n) * x[size_t(i)];
    CHECK(same);
  }
  tcrt_graph_stats_t stats() const {
    tcrt_graph_stats_t stats = {};
    stats.size = sizeof stats;
    REQUIRE(tcrt_context_graph_stats(context, &stats) == TCRT_OK);
    return stats;
  }
};

/// Device memory of a context, freed with it in scope.
struct Buffer {
  tcrt_context_t *context;
  void *data = nullptr;
  uint64_t bytes;

  Buffer(tcrt_context_t *context, uint64_t bytes) : context(context), bytes(bytes) {
    REQUIRE(tcrt_context_device_allocate(context, bytes, &data) == TCRT_OK);
  }
  ~Buffer() { tcrt_context_device_free(context, data, bytes); }
  void write(const std::vector<float> &values) {
    REQUIRE(tcrt_context_device_copy(context, data, values.data(), 4 * values.size(), TCRT_COPY_HOST_TO_DEVICE) ==
            TCRT_OK);
  }
  std::vector<float> read() {
    std::vector<float> values(bytes / 4);
    REQUIRE(tcrt_context_device_copy(context, values.data(), data, bytes, TCRT_COPY_DEVICE_TO_HOST) == TCRT_OK);
    return values;
  }
};

} // namespace

TEST_CASE("a GPU variant runs through every import, within a memory limit, too") {
  Model model(deviceSpec());
  for (uint64_t limit : {uint64_t(0), uint64_t(1) << 20}) {
    tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
    options.memory_limit = limit;
    Context context(model, options);
    for (int64_t n : {1000, 0, 1, 30000, 7, 1000, 1000}) {
      context.bind(n);
      REQUIRE(tcrt_context_run(context) == TCRT_OK);
      tcrt_tensor_t y, z;
      REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
      REQUIRE(tcrt_context_get_output(context, 1, &z) == TCRT_OK);
      REQUIRE(z.dims[0] == n / 2);
      bool same = true;
      for (int64_t i = 0; i < n; ++i)
        same = same && static_cast<float *>(y.data)[i] == 3 * context.x[size_t(i)];
      for (int64_t i = 0; i < n / 2; ++i)
        same = same && static_cast<float *>(z.data)[i] == 3 * context.x[size_t(i)];
      CHECK(same);
    }
    context.bind(8, 666);
    CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
    CHECK(says("the run is refused by value"));
    context.bind(8, 1);
    CHECK(tcrt_context_run(context) == TCRT_OK);
    CHECK(context.stats().few_launches > 0);
  }
}

TEST_CASE("launches that come again are a graph") {
  Model model(chainSpec());
  Context context(model);
  context.run(1000);
  CHECK(fake::count("cuLaunchKernel scale 8x1x1 128x1x1") == 4);
  CHECK(fake::count("cuGraph") == 0);
  CHECK(context.stats().new_launches == 4);
  fake::reset();
  context.run(1000, 5);
  const std::string node = "cuGraphAddKernelNode_v2 scale 8x1x1 128x1x1 smem 0",
                    stream = " stream 2"; // 1 was the weights'
  CHECK(fake::calls() == std::vector<std::string>{"cuMemcpyHtoDAsync_v2 4000" + stream, "cuGraphCreate", node, node,
                                                  node, node, "cuGraphInstantiateWithFlags",
                                                  "cuGraphLaunch of 4" + stream, "cuMemcpyDtoHAsync_v2 4000" + stream,
                                                  "cuStreamSynchronize" + stream});
  fake::reset();
  context.run(1000, 7);
  CHECK(fake::calls() == std::vector<std::string>{"cuMemcpyHtoDAsync_v2 4000" + stream, "cuGraphLaunch of 4" + stream,
                                                  "cuMemcpyDtoHAsync_v2 4000" + stream,
                                                  "cuStreamSynchronize" + stream});
  fake::reset();
  // The same grids: only a number changes, in each launch, and the last time the addresses in the arena, too.
  context.run(900);
  context.run(1000);
  CHECK(fake::count("cuGraphLaunch") == 2);
  CHECK(fake::count("cuGraphExecKernelNodeSetParams_v2") == 8);
  CHECK(fake::count("cuLaunchKernel") == 0);
  tcrt_graph_stats_t stats = context.stats();
  CHECK(stats.built == 1);
  CHECK(stats.launched == 4);
  CHECK(stats.launches == 16);
  CHECK(stats.updated == 8);
  CHECK(stats.new_launches == 4);
  CHECK(stats.off_launches + stats.few_launches + stats.full_launches + stats.refused_launches == 0);
}

TEST_CASE("graphs take the caller's buffers without copies") {
  Model model(chainSpec());
  Context context(model);
  const int64_t n = 512;
  Buffer x[2] = {{context, 4 * n}, {context, 4 * n}}, y[2] = {{context, 4 * n}, {context, 4 * n}};
  x[0].write(std::vector<float>(n, 1));
  x[1].write(std::vector<float>(n, 2));
  for (int i = 0; i < 6; ++i) {
    tcrt_tensor_t in = Context::describe(x[i % 2].data, n, TCRT_DEVICE_CUDA),
                  out = Context::describe(y[i / 3].data, n, TCRT_DEVICE_CUDA);
    REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(context, 0, &out) == TCRT_OK);
    fake::reset();
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
    CHECK(fake::count("cuMemcpy") == 0);
    // Another x changes the first node, another y the last one.
    CHECK(fake::count("cuGraphExecKernelNodeSetParams_v2") == (i < 2 ? 0 : i == 3 ? 2 : 1));
    CHECK(y[i / 3].read() == std::vector<float>(n, i % 2 ? 162.0f : 81.0f));
  }
  CHECK(context.stats().built == 1);
}

TEST_CASE("a look at results splits what is kept, and sizes have graphs of their own") {
  Model model(chainSpec());
  Context context(model);
  for (int round = 0; round < 3; ++round)
    for (int64_t n : {1001, 5, 2000, 0, 130, 6, 14})
      context.run(n, float(round));
  context.bind(1001, 666);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_REFUSED);
  CHECK(says("the run is refused by value"));
  context.run(1001);
  tcrt_graph_stats_t stats = context.stats();
  // 1001: 4 + 3 of 8 blocks; 5 has 4 + 3 of one, 2000 4 of 16, 130 4 of 2, 6 and 14 4 of which one has a cluster.
  CHECK(stats.built == 7);
  CHECK(stats.few_launches == 0);
  CHECK(stats.new_launches == 4 * 5 + 3 * 2);
}

TEST_CASE("clusters are attributes of nodes") {
  Model model(chainSpec());
  Context context(model, withGraphs(TCRT_GRAPHS_AT_ONCE));
  context.run(6);
  CHECK(fake::count("cuGraphKernelNodeSetAttribute cluster 2x1x1") == 1);
  CHECK(fake::count("cuGraphLaunch of 4") == 1);
  Context plain(model, withGraphs(TCRT_GRAPHS_OFF));
  plain.run(6);
  CHECK(fake::count("cuLaunchKernelEx scale 2x1x1 128x1x1 cluster 2x1x1") == 1);
}

TEST_CASE("graphs are made at once, later or never, as the caller or else the model says") {
  for (uint32_t compiled : {0u, 1u, 2u, 3u, 77u})
    for (int given : {0, 1, 2, 3}) {
      artifact::ArtifactSpec spec = chainSpec();
      spec.variants[0].graphs = compiled;
      Model model(spec);
      Context context(model, withGraphs(given));
      const uint32_t mode = given ? uint32_t(given) : compiled;
      context.run(1000);
      CHECK(fake::count("cuGraphLaunch") == (mode == TCRT_GRAPHS_AT_ONCE));
      context.run(1000);
      CHECK(fake::count("cuGraphLaunch") == (mode == TCRT_GRAPHS_OFF ? 0 : mode == TCRT_GRAPHS_AT_ONCE ? 2 : 1));
      CHECK(context.stats().off_launches == (mode == TCRT_GRAPHS_OFF ? 8 : 0));
    }
  Model model(chainSpec());
  for (int graphs : {-1, 4}) {
    tcrt_context_options_t options = withGraphs(graphs);
    tcrt_context_t *context;
    CHECK(tcrt_context_create(model, &options, &context) == TCRT_ERROR_INVALID);
    CHECK(says("of the options is none of TCRT_GRAPHS_*"));
  }
}

TEST_CASE("a profile of kernels launches them alone, one of runs does not") {
  Model model(chainSpec());
  for (int profile : {TCRT_PROFILE_KERNELS, TCRT_PROFILE_RUNS}) {
    tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_AT_ONCE);
    options.profile = profile;
    Context context(model, options);
    context.run(1000);
    context.run(1000);
    tcrt_context_stats_t stats;
    tcrt_profile_entry_t entry;
    REQUIRE(tcrt_context_stats(context, &stats) == TCRT_OK);
    REQUIRE(tcrt_context_profile(context, 0, &entry) == TCRT_OK);
    CHECK(stats.device_us > 0);
    CHECK(entry.launches == (profile == TCRT_PROFILE_KERNELS ? 8 : 0));
    CHECK(context.stats().launched == (profile == TCRT_PROFILE_KERNELS ? 0 : 2));
    if (profile == TCRT_PROFILE_KERNELS)
      continue;
    // What the host does before its first launch is no time of the GPU.
    Buffer x(context, 4000), y(context, 4000);
    x.write(std::vector<float>(1000, 1));
    tcrt_tensor_t in = Context::describe(x.data, 1000, TCRT_DEVICE_CUDA),
                  out = Context::describe(y.data, 1000, TCRT_DEVICE_CUDA);
    REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(context, 0, &out) == TCRT_OK);
    fake::reset();
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
    std::vector<std::string> calls = fake::calls();
    for (std::string &call : calls)
      call = call.substr(0, call.find(' '));
    const std::string update = "cuGraphExecKernelNodeSetParams_v2";
    CHECK(calls == std::vector<std::string>{update, update, "cuEventRecord", "cuGraphLaunch", "cuEventRecord",
                                            "cuStreamSynchronize"});
  }
}

TEST_CASE("runs of a GPU are timed as the context is told") {
  Model model(chainSpec());
  for (int profile : {TCRT_PROFILE_OFF, TCRT_PROFILE_KERNELS, TCRT_PROFILE_RUNS})
    for (int are : {0, 1}) {
      tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_AT_ONCE);
      options.profile = profile;
      Context context(model, options);
      context.run(1000);
      REQUIRE(tcrt_context_time_runs(context, are) == TCRT_OK);
      tcrt_context_stats_t stats;
      REQUIRE(tcrt_context_stats(context, &stats) == TCRT_OK);
      CHECK(stats.device_us == 0);
      fake::reset();
      context.run(1000);
      REQUIRE(tcrt_context_stats(context, &stats) == TCRT_OK);
      const bool isTimed = are || profile == TCRT_PROFILE_KERNELS;
      CHECK((stats.device_us > 0) == isTimed);
      CHECK((fake::count("cuEventRecord") > 0) == isTimed);
    }
}

TEST_CASE("events of a GPU are the times in its stream") {
  Model model(chainSpec());
  std::vector<tcrt_event_t> events;
  tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_AT_ONCE);
  options.event = [](void *user, const tcrt_event_t *event) {
    static_cast<std::vector<tcrt_event_t> *>(user)->push_back(*event);
  };
  options.event_user = &events;
  Context context(model, options);
  context.bind(1000);
  REQUIRE(tcrt_context_run_async(context) == TCRT_OK);
  // It has waited.
  CHECK(context.stats().launched == 0);
  int kernels = 0;
  for (const tcrt_event_t &event : events) {
    if (event.kind != TCRT_EVENT_KERNEL)
      continue;
    ++kernels;
    CHECK(event.device == TCRT_DEVICE_CUDA);
    CHECK(event.begin_ns <= event.end_ns);
    CHECK(event.begin_ns >= events.back().begin_ns);
  }
  CHECK(kernels == 4);
  CHECK(events.back().kind == TCRT_EVENT_RUN);
  CHECK(events.back().device == TCRT_DEVICE_CPU);
}

TEST_CASE("what the driver makes no graph of is launched one by one") {
  for (const char *name : {"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                           "cuGraphKernelNodeSetAttribute"}) {
    Model model(chainSpec());
    Context context(model);
    const int64_t n = 6; // has a cluster
    context.run(n);
    fake::fail(name, 1, 2);
    for (int i = 0; i < 4; ++i)
      context.run(n, float(i));
    INFO(name);
    tcrt_graph_stats_t stats = context.stats();
    CHECK(stats.refused_launches == 16);
    CHECK(stats.launched == 0);
    // Others are tried.
    context.run(1000);
    context.run(1000);
    CHECK(context.stats().launched == 1);
    bool isSaid = false;
    for (const std::string &line : model.log)
      isSaid = isSaid || line.find("runs without a CUDA graph, as the driver does not make") != std::string::npos;
    CHECK(isSaid);
  }
  // Parameters that are not taken.
  Model model(chainSpec());
  Context context(model);
  context.run(1000);
  context.run(1000);
  fake::fail("cuGraphExecKernelNodeSetParams_v2", 3, 1);
  for (int64_t n : {900, 1000, 900})
    context.run(n);
  CHECK(context.stats().launched == 1);
  CHECK(context.stats().refused_launches == 12);
}

TEST_CASE("the cache of graphs is bounded, and what is in use stays") {
  Model model(chainSpec());
  Context context(model);
  for (int round = 0; round < 4; ++round)
    for (int64_t blocks = 1; blocks <= 50; ++blocks)
      context.run(128 * blocks);
  tcrt_graph_stats_t stats = context.stats();
  CHECK(stats.built == 32);
  CHECK(stats.full_launches == 4 * 3 * 18);
  CHECK(fake::count("cuGraphExecDestroy") == 0);
  // Others take the place of what is not used for long.
  for (int i = 0; i < 300; ++i)
    context.run(1280);
  for (int round = 0; round < 2; ++round)
    for (int64_t blocks = 41; blocks <= 50; ++blocks)
      context.run(128 * blocks);
  CHECK(context.stats().built == 42);
  CHECK(fake::count("cuGraphExecDestroy") == 10);
}

TEST_CASE("a run in the caller's stream is enqueued and not waited for") {
  Model model(chainSpec());
  void *stream = fake::makeStream();
  std::vector<float> host(256);
  {
    tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
    options.stream = stream;
    options.device_outputs = 1;
    Context context(model, options);
    CHECK(tcrt_context_stream(context) == stream);
    const int64_t n = 256;
    Buffer x(context, 4 * n), y(context, 4 * n);
    x.write(std::vector<float>(n, 1));
    y.write(std::vector<float>(n, 0));
    tcrt_tensor_t in = Context::describe(x.data, n, TCRT_DEVICE_CUDA),
                  out = Context::describe(y.data, n, TCRT_DEVICE_CUDA);
    REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
    REQUIRE(tcrt_context_set_output(context, 0, &out) == TCRT_OK);
    for (int i = 0; i < 4; ++i) {
      fake::reset();
      REQUIRE(tcrt_context_run_async(context) == TCRT_OK);
      CHECK(fake::count("cuStreamSynchronize") == 0);
      CHECK(fake::isBusy(stream));
      REQUIRE(tcrt_context_get_output(context, 0, &out) == TCRT_OK);
      CHECK(static_cast<float *>(y.data)[n - 1] == (i ? 81.0f : 0.0f));
      if (i % 2)
        REQUIRE(tcrt_context_wait(context) == TCRT_OK);
      else
        fake::waitFor(stream); // as for an event that the caller records
      CHECK(!fake::isBusy(stream));
      CHECK(y.read() == std::vector<float>(n, 81));
    }
    // Several runs follow each other; outputs in host memory are there after the wait.
    tcrt_tensor_t there = Context::describe(host.data(), n);
    REQUIRE(tcrt_context_set_output(context, 0, &there) == TCRT_OK);
    for (int i = 0; i < 3; ++i)
      REQUIRE(tcrt_context_run_async(context) == TCRT_OK);
    CHECK(host == std::vector<float>(n, 0));
    REQUIRE(tcrt_context_wait(context) == TCRT_OK);
    CHECK(host == std::vector<float>(n, 81));
    // What is enqueued when the context goes is done first.
    REQUIRE(tcrt_context_run_async(context) == TCRT_OK);
  }
  CHECK(!fake::isBusy(stream));
  CHECK(fake::count("cuStreamCreate") == 0);
  fake::destroyStream(stream);
}

TEST_CASE("outputs of the context's own grow while runs are under way") {
  Model model(chainSpec());
  std::vector<float> x(8192, 1); // read by runs until they are over
  Context context(model);
  for (int64_t n : {128, 1280, 128, 4096, 8192}) {
    tcrt_tensor_t in = Context::describe(x.data(), n), y;
    REQUIRE(tcrt_context_set_input(context, 0, &in) == TCRT_OK);
    REQUIRE(tcrt_context_run_async(context) == TCRT_OK);
    REQUIRE(tcrt_context_wait(context) == TCRT_OK);
    REQUIRE(tcrt_context_get_output(context, 0, &y) == TCRT_OK);
    CHECK(static_cast<float *>(y.data)[n - 1] == 81);
    REQUIRE(tcrt_context_run_async(context) == TCRT_OK);
  }
}

TEST_CASE("contexts share code and weights, and run at once") {
  Model model(chainSpec());
  std::atomic<int> problems{0};
  {
    Context first(model);
    first.run(1000);
    CHECK(fake::count("cuModuleLoadDataEx") == 1);
    const int copies = fake::count("cuMemcpyHtoDAsync_v2 68 stream"); // the weights
    CHECK(copies == 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
        tcrt_context_t *mine;
        if (tcrt_context_create(model, &options, &mine) != TCRT_OK) {
          ++problems;
          return;
        }
        std::vector<float> x(1000, float(t)), y(1000);
        tcrt_tensor_t in = Context::describe(x.data(), 1000), out = Context::describe(y.data(), 1000);
        tcrt_context_set_input(mine, 0, &in);
        tcrt_context_set_output(mine, 0, &out);
        for (int i = 0; i < 50; ++i)
          problems += tcrt_context_run(mine) != TCRT_OK || y != std::vector<float>(1000, 81 * float(t));
        tcrt_context_destroy(mine);
      });
    for (std::thread &thread : threads)
      thread.join();
    CHECK(fake::count("cuModuleLoadDataEx") == 1);
    CHECK(fake::count("cuMemcpyHtoDAsync_v2 68 stream") == 1);
  }
  CHECK(problems == 0);
}

// Weights of several pieces, in the end one that is not whole, come by several threads.
TEST_CASE("large weights are copied through pinned buffers") {
  artifact::ArtifactSpec spec = chainSpec();
  std::string more((size_t(70) << 20) + 12, 0);
  for (size_t i = 0; i < more.size(); i += 4093)
    more[i] = char(i / 4093);
  const uint64_t at = spec.addWeights(artifact::Segment::bytes(more));
  spec.functions[0].inputs.push_back(
      {"w", TCRT_DTYPE_U8, {artifact::Dim::fixed(int64_t(more.size()))}, TCRT_VALUE_FLAG_DEFAULT, at});
  const std::string alloc = "cuMemHostAlloc";
  for (int failing : {0, 1, 8}) {
    Model model(spec);
    for (int i = 0; i < failing; ++i)
      fake::fail(alloc, 1, 2);
    Context context(model);
    CHECK((fake::count("cuMemcpyHtoDAsync_v2 1048576") == 70) == (fake::count(alloc + " 2097152") > 0));
    context.run(1000);
    void *weights = fake::weights(more.size());
    REQUIRE(weights);
    Buffer copy(context, more.size());
    REQUIRE(tcrt_context_device_copy(context, copy.data, static_cast<char *>(weights) + at, more.size(),
                                     TCRT_COPY_DEVICE_TO_DEVICE) == TCRT_OK);
    std::string back(more.size(), 1);
    REQUIRE(tcrt_context_device_copy(context, back.data(), copy.data, back.size(), TCRT_COPY_DEVICE_TO_HOST) ==
            TCRT_OK);
    CHECK(back == more);
  }
  for (const char *name : {"cuEventSynchronize", "cuEventRecord"}) {
    Model model(spec);
    fake::fail(name, 2, 700, true);
    tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
    tcrt_context_t *context;
    CHECK(tcrt_context_create(model, &options, &context) == TCRT_ERROR_MACHINE);
    CHECK(says("the GPU is lost to this process, found at the weights"));
    fake::reset();
    fake::forget();
  }
}

namespace {

/// Memory beyond contexts.
void *allocate(uint64_t bytes, void *stream = nullptr) {
  void *data = nullptr;
  tcrt_status_t status = tcrt_gpu_allocate(0, bytes, stream, &data);
  INFO(tcrt_last_error());
  REQUIRE(status == TCRT_OK);
  return data;
}

void checkNothingIsLeft() {
  tcrt_gpu_trim();
  CHECK(fake::problems() == std::vector<std::string>());
  CHECK(fake::live() == "");
  fake::reset();
}

} // namespace

TEST_CASE("memory for callers comes again in its stream") {
  fake::reset();
  void *stream = fake::makeStream(), *first = allocate(1000, stream);
  CHECK(fake::count("cuMemAlloc_v2 1024") == 1); // of one kind: 961 to 1024
  tcrt_gpu_free(0, first, 1000, stream);
  CHECK(fake::count("cuMemFree_v2") == 0);
  void *other = allocate(1000), *larger = allocate(1025, stream), *again = allocate(970, stream);
  CHECK(again == first);
  CHECK(other != first);
  CHECK(larger != first);
  // Where other streams used it, the driver waits for them.
  tcrt_gpu_free(0, again, 970, TCRT_ANY_STREAM);
  CHECK(fake::count("cuMemFree_v2") == 1);
  tcrt_gpu_free(0, other, 1000, TCRT_DEFAULT_STREAM); // which NULL is, too
  CHECK(allocate(1000) == other);
  tcrt_gpu_free(0, other, 1000, nullptr);
  tcrt_gpu_free(0, larger, 1025, stream);
  // The oldest goes; what is too large is not kept.
  std::vector<void *> many;
  for (int i = 0; i < 300; ++i)
    many.push_back(allocate(uint64_t(1) << 20));
  for (void *data : many)
    tcrt_gpu_free(0, data, uint64_t(1) << 20, nullptr);
  CHECK(fake::count("cuMemFree_v2") == 1 + 2 + 300 - 256);
  void *large = allocate(uint64_t(257) << 20);
  tcrt_gpu_free(0, large, uint64_t(257) << 20, nullptr);
  CHECK(fake::count("cuMemFree_v2") == 1 + 2 + 300 - 256 + 1);
  fake::destroyStream(stream);
  checkNothingIsLeft();
}

TEST_CASE("memory that is kept for callers is freed where other memory runs out") {
  {
    Model model(chainSpec());
    Context context(model);
    context.run(1000);
    void *data = allocate(1 << 20);
    tcrt_gpu_free(0, data, 1 << 20, nullptr);
    fake::limitMemory(0);
    context.run(10000);
    CHECK(fake::count("cuMemFree_v2") > 0);
    fake::limitMemory(1000);
    CHECK(tcrt_gpu_allocate(0, 1 << 20, nullptr, &data) == TCRT_ERROR_MACHINE);
    CHECK(says("GPU 0: error: the GPU has no memory left for an array (1048576 bytes)"));
    CHECK(data == nullptr);
    CHECK(tcrt_gpu_allocate(0, UINT64_MAX, nullptr, &data) == TCRT_ERROR_MACHINE);
    CHECK(tcrt_gpu_allocate(1, 8, nullptr, &data) == TCRT_ERROR_MACHINE);
    CHECK(says("error: there is no GPU 1; this machine shows 1"));
    context.run(1000);
  }
  checkNothingIsLeft();
}

TEST_CASE("streams are ordered without waiting") {
  fake::reset();
  void *first = fake::makeStream(), *then = fake::makeStream(), *a = allocate(16), *b = allocate(16);
  std::vector<float> values = {1, 2, 3, 4}, read(4);
  REQUIRE(tcrt_gpu_copy(0, a, values.data(), 16, TCRT_COPY_HOST_TO_DEVICE, first) == TCRT_OK);
  CHECK(!fake::isBusy(first));
  REQUIRE(tcrt_gpu_copy(0, b, a, 16, TCRT_COPY_DEVICE_TO_DEVICE, first) == TCRT_OK);
  CHECK(tcrt_gpu_order(0, first, then) == TCRT_OK);
  CHECK(fake::isBusy(first));
  REQUIRE(tcrt_gpu_copy(0, read.data(), b, 16, TCRT_COPY_DEVICE_TO_HOST, then) == TCRT_OK);
  CHECK(read == values);
  CHECK(tcrt_gpu_wait(0, first) == TCRT_OK);
  // Nothing to do: NULL is the default stream.
  const int events = fake::count("cuEventRecord");
  CHECK(tcrt_gpu_order(0, nullptr, TCRT_DEFAULT_STREAM) == TCRT_OK);
  CHECK(fake::count("cuEventRecord") == events);
  int32_t gpu = 7;
  CHECK(tcrt_gpu_find(static_cast<char *>(a) + 3, &gpu) == TCRT_OK);
  CHECK(gpu == 0);
  CHECK(tcrt_gpu_find(values.data(), &gpu) == TCRT_OK);
  CHECK(gpu == -1);
  for (const char *name : {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"}) {
    INFO(name);
    fake::fail(name, 1, 999);
    CHECK(tcrt_gpu_order(0, first, then) == TCRT_ERROR_INTERNAL);
    CHECK(says("GPU 0: error: the GPU failed at the order of two streams: some error (CUDA error 999)"));
  }
  tcrt_gpu_free(0, a, 16, nullptr);
  tcrt_gpu_free(0, b, 16, TCRT_ANY_STREAM);
  fake::destroyStream(first);
  fake::destroyStream(then);
  checkNothingIsLeft();
  a = allocate(16);
  fake::fail("cuMemcpyDtoHAsync_v2", 1, 700, true);
  CHECK(tcrt_gpu_copy(0, read.data(), a, 16, TCRT_COPY_DEVICE_TO_HOST, nullptr) == TCRT_ERROR_MACHINE);
  CHECK(says("GPU 0: error: the GPU is lost to this process"));
  tcrt_gpu_free(0, a, 16, TCRT_ANY_STREAM); // which nobody can
  fake::reset();
  fake::forget();
}

TEST_CASE("memory of the GPU that runs out leaves everything usable") {
  SECTION("for the arena, an input, an output") {
    Model model(chainSpec());
    Context context(model);
    context.run(1000);
    context.run(1000);
    // Graphs are given up for their memory, and it is asked for once more.
    fake::fail("cuMemAlloc_v2", 1, 2);
    context.run(100000);
    CHECK(fake::count("cuGraphExecDestroy") == 1);
    Context plain(model, withGraphs(TCRT_GRAPHS_OFF));
    for (int which = 1; which <= 3; ++which) {
      fake::fail("cuMemAlloc_v2", which, 2);
      plain.bind(100000 * (which + 1));
      CHECK(tcrt_context_run(plain) == TCRT_ERROR_MACHINE);
      CHECK(says(which == 1 ? "for the arena (" : which == 2 ? "for an input on the device (" : "for an output ("));
      plain.run(1000);
    }
    fake::limitMemory(100000);
    context.bind(1000000);
    CHECK(tcrt_context_run(context) == TCRT_ERROR_MACHINE);
    CHECK(says("m.bin: error: the GPU has no memory left for the arena (8000256 bytes); use smaller inputs, or free "
               "what other contexts and programs hold"));
    tcrt_tensor_t y;
    CHECK(tcrt_context_get_output(context, 0, &y) == TCRT_ERROR_INVALID);
    context.run(1000);
    void *data;
    CHECK(tcrt_context_device_allocate(context, 64 << 20, &data) == TCRT_ERROR_MACHINE);
    CHECK(says("the GPU has no memory left for a buffer (67108864 bytes)"));
    context.run(1000);
  }
  SECTION("for values within a run") {
    Model model(deviceSpec());
    Context context(model);
    context.bind(1000);
    for (int which = 1; which < 8; ++which) {
      fake::fail("cuMemAlloc_v2", which, 2);
      tcrt_status_t status = tcrt_context_run(context);
      CHECK((status == TCRT_OK || (status == TCRT_ERROR_MACHINE && says("the GPU has no memory left for "))));
      fake::reset();
      context.bind(1000 * which);
      CHECK(tcrt_context_run(context) == TCRT_OK);
    }
  }
  SECTION("for code, weights, a stream") {
    Model model(chainSpec());
    for (const char *name :
         {"cuMemAlloc_v2", "cuModuleLoadDataEx", "cuMemcpyHtoDAsync_v2", "cuStreamCreate", "cuEventCreate"}) {
      fake::fail(name, 1, 2);
      tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
      tcrt_context_t *context;
      INFO(name);
      CHECK(tcrt_context_create(model, &options, &context) == TCRT_ERROR_MACHINE);
      CHECK(says("the GPU has no memory left for "));
      CHECK(fake::live().find("streams") == std::string::npos);
    }
    Context context(model);
    context.run(1000);
  }
}

TEST_CASE("each call of the driver may fail") {
  for (const char *name : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuLaunchKernel",
                           "cuStreamSynchronize"}) {
    Model model(deviceSpec());
    Context context(model);
    context.bind(1000);
    fake::fail(name, 1, 999);
    INFO(name);
    CHECK(tcrt_context_run(context) == TCRT_ERROR_INTERNAL);
    CHECK(says("(CUDA error 999); please report this"));
    CHECK(tcrt_context_run(context) == TCRT_OK);
  }
  Model model(chainSpec());
  Context context(model);
  fake::fail("cuLaunchKernel", 3, 701);
  context.bind(1000);
  CHECK(tcrt_context_run(context) == TCRT_ERROR_INTERNAL);
  CHECK(
      says("the GPU failed at the launch of kernel \"scale\" (grid 8 x 1 x 1, block 128 x 1 x 1, 0 bytes): some error "
           "(CUDA error 701)"));
  context.run(1000);
}

TEST_CASE("a GPU without code of its own takes PTX") {
  artifact::ArtifactSpec spec = chainSpec();
  spec.variants[0].cubins.push_back({800, "\x7f"
                                          "ELF for sm_80"});
  spec.variants[0].cubins.push_back({901, "\x7f"
                                          "ELF for sm_90a"});
  for (auto [sm, takesCubin] : {std::pair{80, true},
                                {86, true},
                                {89, true},
                                {90, true},
                                {70, false},
                                {75, false},
                                {100, false},
                                {120, false}}) {
    Model model(spec);
    fake::setVersion(sm);
    Context context(model);
    INFO(sm);
    CHECK(fake::count(takesCubin ? "cuModuleLoadDataEx cubin" : "cuModuleLoadDataEx ptx") == 1);
    context.run(1000);
  }
  {
    // A driver that does not take the cubin.
    Model model(spec);
    fake::fail("cuModuleLoadDataEx", 1, 209);
    Context context(model);
    CHECK(fake::count("cuModuleLoadDataEx ptx") == 1);
    context.run(1000);
    bool isSaid = false;
    for (const std::string &line : model.log)
      isSaid = isSaid || line.find("m.bin: uses the PTX of sm_70 on Fake GPU") != std::string::npos;
    CHECK(isSaid);
  }
  tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
  tcrt_context_t *context;
  {
    // Nor the PTX.
    Model model(spec);
    fake::fail("cuModuleLoadDataEx", 1, 209);
    fake::fail("cuModuleLoadDataEx", 1, 222);
    CHECK(tcrt_context_create(model, &options, &context) == TCRT_ERROR_MACHINE);
    CHECK(says("the GPU's driver does not load the device code: the provided PTX was compiled with an unsupported "
               "toolchain.; a newer driver may"));
  }
  Model model(spec);
  fake::setVersion(61);
  CHECK(tcrt_context_create(model, &options, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("this GPU (Fake GPU, sm_61) is older than all that there is code for; run the artifact on one of sm_80 or "
             "newer"));
  // PTX of a later GPU, and a cubin of another.
  spec.variants[0].ptx[0].arch = 900;
  Model newer(spec);
  fake::setVersion(75);
  CHECK(tcrt_context_create(newer, &options, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("is older than all that there is code for"));
  spec.variants[0].cubins.erase(spec.variants[0].cubins.begin());
  Model exact(spec);
  fake::setVersion(86);
  CHECK(tcrt_context_create(exact, &options, &context) == TCRT_ERROR_MACHINE);
  CHECK(says("the artifact has no code for this GPU (Fake GPU, sm_86); compile the model with --gpu sm_86"));
}

TEST_CASE("kernels that the driver does not find are missing only where it says so") {
  tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
  tcrt_context_t *context;
  for (auto [error, status, text] :
       {std::tuple{500, TCRT_ERROR_INVALID, "the device code has no kernel \"scale\"; compile the model again"},
        {2, TCRT_ERROR_MACHINE, "the GPU has no memory left for device code"},
        {700, TCRT_ERROR_MACHINE, "the GPU is lost to this process, found at device code"}}) {
    Model model(chainSpec());
    fake::reset();
    fake::fail("cuModuleGetFunction", 1, error);
    CHECK(tcrt_context_create(model, &options, &context) == status);
    CHECK(says(text));
  }
  fake::reset();
}

TEST_CASE("a CPU serves where the caller allows it and the GPU cannot be used") {
  struct Case {
    bool isAllowed, hasCpu, fails;
    int sm;
    uint32_t device;
    const char *warning;
  };
  for (const Case &c :
       {Case{true, true, false, 90, TCRT_DEVICE_CUDA, ""},
        {true, true, false, 61, TCRT_DEVICE_CPU,
         "m.bin: warning: this GPU (Fake GPU, sm_61) is older than all that there is code for; run the artifact on one "
         "of sm_80 or newer; code for CPUs runs instead"},
        {true, true, true, 90, TCRT_DEVICE_CPU,
         "m.bin: warning: variant \"cuda\" needs an NVIDIA GPU, and this machine shows none; code for "
         "CPUs runs instead"},
        {true, false, false, 61, TCRT_DEVICE_CUDA, ""},
        {false, true, false, 61, TCRT_DEVICE_CUDA, ""}}) {
    fake::reset();
    fake::setVersion(c.sm);
    if (c.fails)
      fake::fail("cuDeviceGetCount", 1, 100);
    artifact::ArtifactSpec spec = c.hasCpu ? basicSpec() : chainSpec();
    if (c.hasCpu)
      spec.others.push_back(chainSpec());
    llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
    if (!bytes)
      FAIL(llvm::toString(bytes.takeError()));
    std::string log;
    tcrt_model_options_t options = {};
    options.size = sizeof options;
    options.device = TCRT_DEVICE_CUDA;
    options.cpu_instead = c.isAllowed;
    options.log = [](void *user, int level, const char *message) {
      if (level == TCRT_LOG_WARNING)
        *static_cast<std::string *>(user) += message;
    };
    options.log_user = &log;
    tcrt_model_t *model;
    REQUIRE(tcrt_model_open_memory(bytes->data(), bytes->size(), "m.bin", &options, &model) == TCRT_OK);
    tcrt_variant_info_t variant;
    REQUIRE(tcrt_model_variant(model, 0, &variant) == TCRT_OK);
    CHECK(variant.device == c.device);
    CHECK(log == c.warning);
    const tcrt_context_options_t contextOptions = withGraphs(TCRT_GRAPHS_DEFAULT);
    tcrt_context_t *context;
    const bool runs = c.sm == 90 || c.device == TCRT_DEVICE_CPU;
    CHECK(tcrt_context_create(model, &contextOptions, &context) == (runs ? TCRT_OK : TCRT_ERROR_MACHINE));
    if (!runs)
      CHECK(says("this GPU (Fake GPU, sm_61) is older than all that there is code for"));
    tcrt_context_destroy(context);
    tcrt_model_close(model);
    CHECK(fake::live() == "");
  }
  fake::reset();
}

TEST_CASE("a lost GPU is said, by every call from then on") {
  Model model(chainSpec());
  {
    Context context(model), other(model);
    context.run(1000);
    context.run(1000);
    fake::fail("cuStreamSynchronize", 1, 700, true);
    context.bind(1000);
    CHECK(tcrt_context_run(context) == TCRT_ERROR_MACHINE);
    CHECK(says("m.bin: error: the GPU is lost to this process, found at the run: an illegal memory access was "
               "encountered (CUDA error 700); start a new process, and report this if it comes again"));
    for (tcrt_context_t *any : {context.context, other.context}) {
      if (any == other.context)
        other.bind(1000);
      CHECK(tcrt_context_run(any) == TCRT_ERROR_MACHINE);
      CHECK(says("the GPU is lost to this process"));
      CHECK(tcrt_context_wait(any) == TCRT_ERROR_MACHINE);
    }
    tcrt_context_options_t options = withGraphs(TCRT_GRAPHS_DEFAULT);
    tcrt_context_t *another;
    CHECK(tcrt_context_create(model, &options, &another) == TCRT_ERROR_MACHINE);
    CHECK(says("the GPU is lost to this process"));
    fake::reset(); // as a new process has it
  }
}

TEST_CASE("a forked process leaves the GPU alone") {
  Model model(chainSpec());
  Context context(model);
  context.run(1000);
  context.bind(1000);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (!child) { // whose answers are its exit status: Catch2 is the parent's
    fake::reset();
    const bool isRefused =
        tcrt_context_run(context) == TCRT_ERROR_MACHINE &&
        std::strstr(tcrt_last_error(), "m.bin: error: this process was forked from the one that") != nullptr;
    tcrt_context_destroy(context);
    tcrt_model_close(model);
    _exit(isRefused && fake::calls().empty() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  context.run(1000);
}
