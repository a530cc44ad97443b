//===- Counters.cpp - events of runs, entries, and what a process counts -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"

#include "tcrt/tcrt.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tc;
using namespace tc::test;

namespace {

/// The program of basicSpec, as if n = 8 and n = 1 had code of their own.
artifact::ArtifactSpec entriesSpec() {
  artifact::ArtifactSpec spec = basicSpec();
  spec.functions[0].entries = {{{{0, 8}}}, {{{0, 1}, {1, 4}}}};
  return spec;
}

struct Model {
  std::string bytes;
  tcrt_model_t *model = nullptr;

  explicit Model(const artifact::ArtifactSpec &spec, const char *name = "m.bin") {
    llvm::Expected<std::string> written = artifact::writeArtifactToMemory(spec);
    if (!written)
      FAIL(llvm::toString(written.takeError()));
    bytes = *written;
    REQUIRE(tcrt_model_open_memory(bytes.data(), bytes.size(), name, nullptr, &model) == TCRT_OK);
  }
  ~Model() { tcrt_model_close(model); }
};

struct Context {
  tcrt_context_t *context = nullptr;
  std::vector<float> x;

  explicit Context(const Model &model, tcrt_context_options_t options = {}) {
    options.size = sizeof options;
    tcrt_status_t status = tcrt_context_create(model.model, &options, &context);
    INFO(tcrt_last_error());
    REQUIRE(status == TCRT_OK);
  }
  ~Context() { tcrt_context_destroy(context); }

  tcrt_status_t run(int64_t n) {
    x.assign(size_t(4 * n) + 4, 1);
    tcrt_tensor_t tensor = {};
    tensor.dtype = TCRT_DTYPE_F32;
    tensor.rank = 2;
    tensor.dims[0] = n;
    tensor.dims[1] = 4;
    tensor.data = x.data();
    tensor.size_bytes = uint64_t(n) * 16;
    REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
    return tcrt_context_run(context);
  }
};

std::string metrics() {
  uint64_t needed = 0;
  REQUIRE(tcrt_metrics(nullptr, 0, &needed) == TCRT_OK);
  // Numbers may grow in between.
  std::string text(needed + 4096, 'x');
  REQUIRE(tcrt_metrics(text.data(), text.size(), &needed) == TCRT_OK);
  REQUIRE(text[needed - 1] == 0);
  text.resize(needed - 1);
  return text;
}

std::string usage(const Model &model) {
  uint64_t needed = 0;
  REQUIRE(tcrt_model_usage(model.model, nullptr, 0, &needed) == TCRT_OK);
  std::string text(needed + 16384, 'x'); // there may be more sizes
  REQUIRE(tcrt_model_usage(model.model, text.data(), text.size(), &needed) == TCRT_OK);
  text.resize(needed - 1);
  return text;
}

bool holds(const std::string &text, const std::string &part) {
  if (text.find(part) == std::string::npos)
    UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

struct Events {
  std::mutex mutex;
  std::vector<tcrt_event_t> all;

  static void add(void *user, const tcrt_event_t *event) {
    auto *self = static_cast<Events *>(user);
    std::lock_guard<std::mutex> guard(self->mutex);
    self->all.push_back(*event);
  }
  size_t count(uint32_t kind, const std::string &name) const {
    return size_t(std::count_if(all.begin(), all.end(),
                                [&](const tcrt_event_t &event) { return event.kind == kind && event.name == name; }));
  }
};

} // namespace

TEST_CASE("a run tells its events, with and without a profile") {
  for (uint32_t threads : {1u, 3u})
    for (int profile : {TCRT_PROFILE_OFF, TCRT_PROFILE_KERNELS}) {
      Model model(stressSpec());
      Events events;
      tcrt_context_options_t options = {};
      options.threads = threads;
      options.profile = profile;
      options.event = Events::add;
      options.event_user = &events;
      Context context(model, options);
      int64_t tasks = 10000;
      tcrt_tensor_t input = {};
      input.dtype = TCRT_DTYPE_I64;
      input.rank = 1;
      input.dims[0] = 1;
      input.data = &tasks;
      input.size_bytes = sizeof tasks;
      REQUIRE(tcrt_context_set_input(context.context, 0, &input) == TCRT_OK);
      REQUIRE(tcrt_context_run(context.context) == TCRT_OK);
      CHECK(events.count(TCRT_EVENT_RUN, "main") == 1);
      for (const char *phase : {"sizes", "inputs", "program", "outputs"})
        CHECK(events.count(TCRT_EVENT_PHASE, phase) == 1);
      CHECK(events.count(TCRT_EVENT_KERNEL, "k_mark") >= 1);
      const tcrt_event_t run = events.all.back();
      CHECK(run.kind == TCRT_EVENT_RUN);
      int64_t done = 0;
      for (const tcrt_event_t &event : events.all) {
        CHECK(event.begin_ns <= event.end_ns);
        CHECK(event.begin_ns >= run.begin_ns);
        CHECK(event.end_ns <= run.end_ns);
        CHECK(event.worker < threads);
        if (event.kind == TCRT_EVENT_TASKS)
          done += event.task_count;
        if (event.kind == TCRT_EVENT_KERNEL)
          CHECK(std::string(event.nodes) == "Mark");
      }
      CHECK((done > 0 || threads == 1));
    }
}

TEST_CASE("the entry of a run is that of its sizes") {
  Model model(entriesSpec());
  REQUIRE(tcrt_model_entry_count(model.model, 0) == 3);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 3; ++i) {
    tcrt_entry_info_t info;
    REQUIRE(tcrt_model_entry(model.model, 0, i, &info) == TCRT_OK);
    CHECK(info.size_count == (i == 0 ? 1 : i == 1 ? 2 : 0));
    names.push_back(info.name);
  }
  CHECK(names == std::vector<std::string>{"n=8", "n=1,n4=4", "general"});
  Context context(model);
  uint32_t entry;
  CHECK(tcrt_context_entry(context.context, &entry) == TCRT_ERROR_INVALID);
  for (auto [n, expected] : {std::pair<int64_t, uint32_t>{8, 0}, {1, 1}, {7, 2}, {8, 0}, {0, 2}}) {
    REQUIRE(context.run(n) == TCRT_OK);
    REQUIRE(tcrt_context_entry(context.context, &entry) == TCRT_OK);
    CHECK(entry == expected);
  }
}

TEST_CASE("a bucket takes all sizes up to it that no entry before takes") {
  artifact::ArtifactSpec spec = basicSpec();
  spec.functions[0].entries = {{{{0, 2}}}, {{{0, 4, true}}}, {{{0, 8, true}, {1, 32, true}}}};
  Model model(spec);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 4; ++i) {
    tcrt_entry_info_t info;
    REQUIRE(tcrt_model_entry(model.model, 0, i, &info) == TCRT_OK);
    names.push_back(info.name);
  }
  CHECK(names == std::vector<std::string>{"n=2", "n<=4", "n<=8,n4<=32", "general"});
  Context context(model);
  for (auto [n, expected] : {std::pair<int64_t, uint32_t>{2, 0}, {1, 1}, {4, 1}, {5, 2}, {8, 2}, {9, 3}}) {
    uint32_t entry;
    REQUIRE(context.run(n) == TCRT_OK);
    REQUIRE(tcrt_context_entry(context.context, &entry) == TCRT_OK);
    CHECK(entry == expected);
  }
}

TEST_CASE("an artifact of before has the general entry") {
  Model model(basicSpec());
  CHECK(tcrt_model_entry_count(model.model, 0) == 1);
  Context context(model);
  REQUIRE(context.run(3) == TCRT_OK);
  uint32_t entry = 7;
  REQUIRE(tcrt_context_entry(context.context, &entry) == TCRT_OK);
  CHECK(entry == 0);
}

TEST_CASE("runs are counted for Prometheus") {
  std::string labels;
  {
    Model model(entriesSpec(), "a \"model\"\\.bin");
    {
      Context one(model), two(model);
      REQUIRE(one.run(8) == TCRT_OK);
      REQUIRE(two.run(8) == TCRT_OK);
      REQUIRE(one.run(3) == TCRT_OK);
      CHECK(one.run(65) == TCRT_ERROR_REFUSED);
      const std::string text = metrics();
      const size_t at = text.find("tcrt_runs_total{model=\"a \\\"model\\\"\\\\.bin\",opened=\"");
      REQUIRE(at != std::string::npos);
      labels = text.substr(text.find('{', at) + 1, text.find(",function", at) - text.find('{', at) - 1);
      CHECK(holds(text, "# TYPE tcrt_runs_total counter\n"));
      CHECK(holds(text, "tcrt_runs_total{" + labels + ",function=\"main\",entry=\"n=8\"} 2\n"));
      CHECK(holds(text, "tcrt_runs_total{" + labels + ",function=\"main\",entry=\"n=1,n4=4\"} 0\n"));
      CHECK(holds(text, "tcrt_runs_total{" + labels + ",function=\"main\",entry=\"general\"} 1\n"));
      CHECK(holds(text, "tcrt_run_seconds_total{" + labels + ",function=\"main\",entry=\"n=8\"} 0."));
      CHECK(holds(text, "tcrt_input_bytes_total{" + labels + ",function=\"main\",entry=\"n=8\"} 288\n"));
      CHECK(holds(text, "tcrt_refused_runs_total{" + labels + ",function=\"main\"} 1\n"));
      CHECK(holds(text, "tcrt_failed_runs_total{" + labels + ",function=\"main\"} 0\n"));
      CHECK(holds(text, "tcrt_contexts{" + labels + "} 2\n"));
      CHECK_FALSE(holds(text, "tcrt_memory_bytes{" + labels + "} 0\n"));
    }
    CHECK(holds(metrics(), "tcrt_memory_bytes{" + labels + "} 0\n"));
  }
  CHECK(metrics().find(labels) == std::string::npos);
}

TEST_CASE("counters add up over threads, and are read meanwhile") {
  Model model(entriesSpec());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      tcrt_context_options_t options = {};
      options.size = sizeof options;
      options.threads = 1;
      tcrt_context_t *context;
      if (tcrt_context_create(model.model, &options, &context) != TCRT_OK)
        return;
      std::vector<float> x(4 * 64, 1);
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t n = t + 1 + i % 3;
        tcrt_tensor_t tensor = {TCRT_DTYPE_F32, 2, {n, 4}, x.data(), uint64_t(n) * 16, TCRT_DEVICE_CPU};
        tcrt_context_set_input(context, 0, &tensor);
        tcrt_context_run(context);
      }
      tcrt_context_destroy(context);
    });
  for (int i = 0; i < 20; ++i) {
    metrics();
    usage(model);
  }
  for (std::thread &thread : threads)
    thread.join();
  const std::string text = usage(model);
  uint64_t runs = 0;
  for (size_t at = text.find("\"sizes\": ["), end; (at = text.find("\"runs\": ", at)) != std::string::npos; at = end) {
    end = at + 8;
    runs += std::stoull(text.substr(end));
  }
  CHECK(runs == 800);
}

TEST_CASE("the sizes that come most often are kept") {
  Model model(entriesSpec());
  Context context(model);
  for (int round = 0; round < 3; ++round)
    REQUIRE(context.run(5) == TCRT_OK);
  for (int64_t n = 0; n <= 60; ++n)
    REQUIRE(context.run(n) == TCRT_OK);
  const std::string text = usage(model);
  CHECK(holds(text, "\"artifact\": \"m.bin\""));
  CHECK(holds(text, "{\"name\": \"n\", \"min\": 0, \"max\": 64, \"divisor\": 1}"));
  CHECK(holds(text, "{\"sizes\": {\"n\": 5}, \"entry\": \"general\", \"runs\": 4,"));
  CHECK(holds(text, "{\"sizes\": {\"n\": 8}, \"entry\": \"n=8\", \"runs\": 1,"));
  CHECK(holds(text, "\"runs_of_other_sizes\": 0,"));
  const std::string path = "/tmp/tc-usage-" + std::to_string(::getpid()) + ".json";
  REQUIRE(tcrt_model_write_usage(model.model, path.c_str()) == TCRT_OK);
  CHECK(readFile(path) == text);
  ::unlink(path.c_str());
  CHECK(tcrt_model_write_usage(model.model, "/nowhere/usage.json") == TCRT_ERROR_INVALID);
  CHECK(holds(tcrt_last_error(), "/nowhere/usage.json: error: "));
}

TEST_CASE("sizes beyond those that are kept are counted together") {
  Model model(statesSpec());
  tcrt_context_options_t options = {};
  options.size = sizeof options;
  tcrt_context_t *context;
  REQUIRE(tcrt_context_create(model.model, &options, &context) == TCRT_OK);
  REQUIRE(tcrt_context_set_function(context, 1) == TCRT_OK);
  std::vector<float> x(200, 1);
  auto run = [&](int64_t size) {
    size = size == 13 ? 14 : size; // the program refuses it
    tcrt_tensor_t tensor = {TCRT_DTYPE_F32, 1, {size}, x.data(), uint64_t(size) * 4, TCRT_DEVICE_CPU};
    REQUIRE(tcrt_context_set_input(context, 0, &tensor) == TCRT_OK);
    REQUIRE(tcrt_context_run(context) == TCRT_OK);
  };
  for (int round = 0; round < 3; ++round)
    for (int64_t more = 0; more < 70; ++more)
      run(more % 2 ? 3 : 3 + more);
  CHECK(holds(usage(model), "\"runs_of_other_sizes\": 0,"));
  for (int64_t size = 1; size <= 100; ++size)
    run(size);
  const std::string text = usage(model);
  // The size that came in half of the runs is there still, and every run is counted once.
  CHECK(holds(text, "{\"sizes\": {\"n\": 3}, \"entry\": \"general\", \"runs\": 109,"));
  CHECK_FALSE(holds(text, "\"runs_of_other_sizes\": 0,\n     \"refused_runs\""));
  tcrt_context_destroy(context);
}
