//===- FakeCuda.cpp - A libcuda.so.1 without a GPU ----------------------------------------------------------------===//
//
// FAKE_CUDA in the environment, words with a comma between: "devices=0", "sm=80", "memory=BYTES", "fail=NAME:N:ERROR",
// "lose=NAME:N:ERROR" (sticky), "time=threads" (a launch takes a microsecond for each thread of a block, else none).
//
// Built with FAKE_CUDA_OLD it has no graphs and no cuLaunchKernelEx, with FAKE_CUDA_TOO_OLD it lacks a function that
// libtcrt needs.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "FakeCuda.h"

#include "Runtime/CUDA/Cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>

namespace {

constexpr CUresult kInvalidValue = 1, kNoBinary = 209, kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500;

struct Kernel {
  const char *name;
  std::vector<size_t> parameters; // sizes, as cuLaunchKernel's addresses do not tell
  std::function<void(const uint8_t *block, const unsigned grid[3], const unsigned threads[3])> run;
};

struct Function {
  const Kernel *kernel;
  std::string name;
};

struct Launch {
  const Function *function;
  unsigned grid[3], block[3], cluster[3] = {1, 1, 1}, smem;
  std::vector<uint8_t> parameters;
};

struct Module {
  std::string text; // PTX; empty: a cubin, which has any kernel
  std::map<std::string, std::unique_ptr<Function>> functions;
};

struct Stream {
  int number;
  std::deque<std::function<void()>> work;
};

/// One time that an event was recorded.
struct Record {
  Stream *stream = nullptr;
  double ms = -1;
};

struct Event {
  std::shared_ptr<Record> last = std::make_shared<Record>();
};

struct Graph {
  std::vector<std::unique_ptr<Launch>> nodes;
};

struct Exec {
  const Graph *graph;
  std::map<const void *, Launch> launches;
};

struct Failure {
  int left;
  CUresult error;
  bool isSticky;
};

struct Fake {
  std::recursive_mutex mutex;
  std::vector<std::string> calls, problems;
  std::map<std::string, std::deque<Failure>> failures;
  CUresult lost = CUDA_SUCCESS;
  int devices = 1, sm = 90, nextStream = 1, retained = 0;
  bool timesThreads = false;
  double now = 0;
  uint64_t memory = 0, mostMemory = UINT64_MAX;
  Stream theDefault = {0, {}};
  std::map<uint64_t, std::pair<std::unique_ptr<uint8_t[]>, uint64_t>> allocations;
  std::map<void *, std::unique_ptr<uint8_t[]>> pinned;
  std::map<void *, std::unique_ptr<Module>> modules;
  std::map<void *, std::unique_ptr<Stream>> streams;
  std::map<void *, std::unique_ptr<Event>> events;
  std::map<void *, std::unique_ptr<Graph>> graphs;
  std::map<void *, std::unique_ptr<Exec>> execs;

  Fake();

  void fail(const std::string &name, int n, CUresult error, bool isSticky) {
    failures[name].push_back({n, error, isSticky});
  }
  CUresult misuse(const std::string &text, CUresult error = kInvalidValue) {
    problems.push_back(text);
    return error;
  }
  bool owns(uint64_t address, uint64_t bytes) {
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin())
      return false;
    --next;
    return address - next->first <= next->second.second && bytes <= next->second.second - (address - next->first);
  }
  Stream *find(CUstream handle) {
    if (uintptr_t(handle) <= 1) // the default stream
      return &theDefault;
    auto it = streams.find(handle);
    return it == streams.end() ? nullptr : it->second.get();
  }
  void run(Stream &stream) {
    while (!stream.work.empty()) {
      auto work = std::move(stream.work.front());
      stream.work.pop_front();
      work();
    }
  }
  /// Runs the stream as far as the event.
  void runTo(const Record &record) {
    while (record.stream && record.ms < 0 && !record.stream->work.empty()) {
      auto work = std::move(record.stream->work.front());
      record.stream->work.pop_front();
      work();
    }
  }
  void runAll() {
    run(theDefault);
    for (auto &[handle, stream] : streams)
      run(*stream);
  }
};

/// Never destroyed: libtcrt may call it at the end of the process.
Fake &fake() {
  static Fake *fake = new Fake;
  return *fake;
}

thread_local std::vector<CUcontext> current;
char theContext;
CUcontext context() { return reinterpret_cast<CUcontext>(&theContext); }

/// y[i] = *factor * x[i] for i < n.
void scale(const uint8_t *block, const unsigned grid[3], const unsigned threads[3]) {
  struct {
    const float *x;
    float *y;
    const float *factor;
    int64_t n;
  } p;
  std::memcpy(&p, block, sizeof p);
  const int64_t n = std::min<int64_t>(p.n, int64_t(grid[0]) * threads[0]);
  auto inside = [](const void *address, int64_t bytes) {
    return fake().owns(uint64_t(uintptr_t(address)), uint64_t(bytes));
  };
  if (n <= 0)
    return;
  if (!inside(p.x, 4 * n) || !inside(p.y, 4 * n) || !inside(p.factor, 4)) {
    fake().misuse("kernel scale: an address is not of the device");
    fake().lost = 700;
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    p.y[i] = *p.factor * p.x[i];
}

const std::vector<Kernel> &kernels() {
  static const auto *all = new std::vector<Kernel>{{"scale", {8, 8, 8, 8}, scale}};
  return *all;
}

Fake::Fake() {
  const char *given = std::getenv("FAKE_CUDA");
  std::istringstream words(given ? given : "");
  for (std::string word; std::getline(words, word, ',');) {
    char name[128];
    int n, error;
    unsigned long long number;
    if (std::sscanf(word.c_str(), "devices=%d", &n) == 1)
      devices = n;
    else if (std::sscanf(word.c_str(), "sm=%d", &n) == 1)
      sm = n;
    else if (word == "time=threads")
      timesThreads = true;
    else if (std::sscanf(word.c_str(), "memory=%llu", &number) == 1)
      mostMemory = number;
    else if (std::sscanf(word.c_str(), "fail=%127[^:]:%d:%d", name, &n, &error) == 3)
      fail(name, n, error, false);
    else if (std::sscanf(word.c_str(), "lose=%127[^:]:%d:%d", name, &n, &error) == 3)
      fail(name, n, error, true);
    else
      std::fprintf(stderr, "FAKE_CUDA: \"%s\" is not known\n", word.c_str());
  }
}

std::string text(const unsigned size[3]) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

std::string text(const Launch &launch) {
  std::string result = launch.function->name + " " + text(launch.grid) + " " + text(launch.block);
  if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] != 1)
    result += " cluster " + text(launch.cluster);
  return result + " smem " + std::to_string(launch.smem);
}

/// Counts the call; what it has to return at once.
CUresult enter(const char *name, bool needsContext = true) {
  Fake &f = fake();
  auto it = f.failures.find(name);
  if (f.lost != CUDA_SUCCESS)
    return f.lost;
  if (it != f.failures.end() && !it->second.empty() && --it->second.front().left <= 0) {
    Failure failure = it->second.front();
    it->second.pop_front();
    if (failure.isSticky)
      f.lost = failure.error;
    f.calls.push_back(std::string(name) + " fails");
    // A wait that fails has ended, too: what was enqueued writes nobody's memory any more.
    f.runAll();
    return failure.error;
  }
  if (needsContext && (current.empty() || !current.back()))
    return f.misuse(std::string(name) + ": no context is current", kInvalidContext);
  return CUDA_SUCCESS;
}

#define ENTER(...)                                                                                                     \
  std::lock_guard<std::recursive_mutex> lock(fake().mutex);                                                            \
  Fake &f = fake();                                                                                                    \
  (void)f;                                                                                                             \
  if (CUresult error = enter(__VA_ARGS__))                                                                             \
  return error

void note(const std::string &text) { fake().calls.push_back(text); }
std::string number(const Stream &stream) { return " stream " + std::to_string(stream.number); }

/// The block of parameters that a launch or a node is given.
CUresult takeParameters(Launch &launch, void **params, void **extra) {
  launch.parameters.clear();
  if (params) {
    if (!launch.function->kernel)
      return CUDA_SUCCESS;
    for (size_t i = 0; i < launch.function->kernel->parameters.size(); ++i) {
      auto *bytes = static_cast<const uint8_t *>(params[i]);
      launch.parameters.insert(launch.parameters.end(), bytes, bytes + launch.function->kernel->parameters[i]);
    }
    return CUDA_SUCCESS;
  }
  if (!extra || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != CU_LAUNCH_PARAM_END)
    return fake().misuse("a launch without parameters");
  auto *bytes = static_cast<const uint8_t *>(extra[1]);
  launch.parameters.assign(bytes, bytes + *static_cast<const size_t *>(extra[3]));
  return CUDA_SUCCESS;
}

bool isFunction(const void *handle) {
  for (auto &[module, owned] : fake().modules)
    for (auto &[name, function] : owned->functions)
      if (function.get() == handle)
        return true;
  return false;
}

CUresult makeLaunch(Launch &launch, CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned smem,
                    void **params, void **extra) {
  if (!isFunction(function))
    return fake().misuse("a launch of no function", kInvalidHandle);
  launch.function = reinterpret_cast<const Function *>(function);
  std::copy(grid, grid + 3, launch.grid);
  std::copy(block, block + 3, launch.block);
  launch.smem = smem;
  if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2])
    return fake().misuse("a launch of an empty grid or block");
  return takeParameters(launch, params, extra);
}

void execute(const Launch &launch) {
  if (fake().timesThreads)
    fake().now += 1e-3 * launch.block[0];
  if (launch.function->kernel && fake().lost == CUDA_SUCCESS)
    launch.function->kernel->run(launch.parameters.data(), launch.grid, launch.block);
}

CUresult enqueue(CUstream handle, const std::string &name, std::function<void()> work) {
  Stream *stream = fake().find(handle);
  if (!stream)
    return fake().misuse(name + ": no such stream", kInvalidHandle);
  note(name + number(*stream));
  stream->work.push_back(std::move(work));
  return CUDA_SUCCESS;
}

} // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuInit(unsigned) {
  ENTER("cuInit", false);
  return f.devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
          : error == CUDA_ERROR_NO_DEVICE   ? "no CUDA-capable device is detected"
          : error == kNoBinary              ? "no kernel image is available for execution on the device"
          : error == 222                    ? "the provided PTX was compiled with an unsupported toolchain."
          : error == 700                    ? "an illegal memory access was encountered"
          : error == 803                    ? "system has unsupported display driver / cuda driver combination"
                                            : "some error";
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount", false);
  *count = f.devices;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER("cuDeviceGet", false);
  *device = ordinal;
  return ordinal < f.devices ? CUDA_SUCCESS : 101;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  ENTER("cuDeviceGetName", false);
  std::snprintf(name, size_t(size), "Fake GPU");
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  ENTER("cuDeviceGetAttribute", false);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? f.sm / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? f.sm % 10
                                                                       : 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *result, CUdevice) {
  ENTER("cuDevicePrimaryCtxRetain", false);
  ++f.retained;
  *result = context();
  return CUDA_SUCCESS;
}

#ifndef FAKE_CUDA_TOO_OLD
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  ENTER("cuDevicePrimaryCtxRelease_v2", false);
  --f.retained;
  return CUDA_SUCCESS;
}
#endif

// Ready to be called with a lost context, too: libtcrt pairs them.
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext given) {
  current.push_back(given);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *popped) {
  std::lock_guard<std::recursive_mutex> lock(fake().mutex);
  if (current.empty())
    return fake().misuse("cuCtxPopCurrent: no context is current", kInvalidContext);
  *popped = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *result, const void *image, unsigned, int *, void **) {
  ENTER("cuModuleLoadDataEx");
  auto module = std::make_unique<Module>();
  const bool isCubin = std::memcmp(image,
                                   "\x7f"
                                   "ELF",
                                   4) == 0;
  if (!isCubin)
    module->text = static_cast<const char *>(image);
  note(std::string("cuModuleLoadDataEx ") + (isCubin ? "cubin" : "ptx"));
  void *handle = module.get();
  f.modules[handle] = std::move(module);
  *result = static_cast<CUmodule>(handle);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  ENTER("cuModuleUnload");
  f.runAll();
  return f.modules.erase(module) ? CUDA_SUCCESS : f.misuse("cuModuleUnload: no such module", kInvalidHandle);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *result, CUmodule handle, const char *name) {
  ENTER("cuModuleGetFunction");
  auto it = f.modules.find(handle);
  if (it == f.modules.end())
    return f.misuse("cuModuleGetFunction: no such module", kInvalidHandle);
  Module &module = *it->second;
  if (!module.text.empty() && module.text.find(std::string(".entry ") + name + "(") == std::string::npos)
    return kNotFound;
  auto &function = module.functions[name];
  if (!function) {
    function = std::make_unique<Function>(Function{nullptr, name});
    for (const Kernel &kernel : kernels())
      if (function->name == kernel.name)
        function->kernel = &kernel;
  }
  *result = reinterpret_cast<CUfunction>(function.get());
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction, int, int) {
  ENTER("cuFuncSetAttribute");
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *result, size_t bytes) {
  ENTER("cuMemAlloc_v2");
  constexpr uint64_t kAll = uint64_t(1) << 37; // of a machine that has it
  if (bytes > kAll || bytes > f.mostMemory || f.memory > f.mostMemory - bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  // As the driver does, from a multiple of 256 on.
  auto data = std::make_unique<uint8_t[]>(bytes + 256);
  const uint64_t address = (uint64_t(uintptr_t(data.get())) + 255) / 256 * 256;
  std::memset(reinterpret_cast<void *>(uintptr_t(address)), 0xcc, bytes);
  note("cuMemAlloc_v2 " + std::to_string(bytes));
  f.allocations[address] = {std::move(data), bytes};
  f.memory += bytes;
  *result = address;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  ENTER("cuMemFree_v2");
  f.runAll();
  auto it = f.allocations.find(pointer);
  if (it == f.allocations.end())
    return f.misuse("cuMemFree: no such memory");
  f.memory -= it->second.second;
  f.allocations.erase(it);
  note("cuMemFree_v2");
  return CUDA_SUCCESS;
}

static CUresult copy(const char *name, uint64_t dst, uint64_t src, size_t bytes, bool toDevice, bool fromDevice,
                     CUstream stream) {
  Fake &f = fake();
  if ((toDevice && !f.owns(dst, bytes)) || (fromDevice && !f.owns(src, bytes)))
    return f.misuse(std::string(name) + ": an address is not of the device");
  auto work = [dst, src, bytes] {
    std::memmove(reinterpret_cast<void *>(uintptr_t(dst)), reinterpret_cast<const void *>(uintptr_t(src)), bytes);
  };
  return enqueue(stream, std::string(name) + " " + std::to_string(bytes), work);
}

EXPORT CUresult cuMemHostAlloc(void **result, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc");
  auto data = std::make_unique<uint8_t[]>(bytes);
  *result = data.get();
  f.pinned[*result] = std::move(data);
  note("cuMemHostAlloc " + std::to_string(bytes));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *pointer) {
  ENTER("cuMemFreeHost");
  f.runAll();
  return f.pinned.erase(pointer) ? CUDA_SUCCESS : f.misuse("cuMemFreeHost: no such memory");
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  return copy("cuMemcpyHtoDAsync_v2", dst, uint64_t(uintptr_t(src)), bytes, true, false, stream);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  return copy("cuMemcpyDtoHAsync_v2", uint64_t(uintptr_t(dst)), src, bytes, false, true, stream);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  ENTER("cuMemcpyDtoDAsync_v2");
  return copy("cuMemcpyDtoDAsync_v2", dst, src, bytes, true, true, stream);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream) {
  ENTER("cuMemsetD8Async");
  if (!f.owns(dst, bytes))
    return f.misuse("cuMemsetD8Async: an address is not of the device");
  return enqueue(stream, "cuMemsetD8Async " + std::to_string(bytes),
                 [=] { std::memset(reinterpret_cast<void *>(uintptr_t(dst)), value, bytes); });
}

EXPORT CUresult cuStreamCreate(CUstream *result, unsigned) {
  ENTER("cuStreamCreate");
  auto stream = std::make_unique<Stream>();
  stream->number = f.nextStream++;
  note("cuStreamCreate" + number(*stream));
  void *handle = stream.get();
  f.streams[handle] = std::move(stream);
  *result = static_cast<CUstream>(handle);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  ENTER("cuStreamDestroy_v2");
  if (!f.find(stream))
    return f.misuse("cuStreamDestroy: no such stream", kInvalidHandle);
  f.run(*f.find(stream));
  f.streams.erase(stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  ENTER("cuStreamSynchronize");
  if (!f.find(stream))
    return f.misuse("cuStreamSynchronize: no such stream", kInvalidHandle);
  note("cuStreamSynchronize" + number(*f.find(stream)));
  f.run(*f.find(stream));
  return f.lost;
}

EXPORT CUresult cuEventCreate(CUevent *result, unsigned) {
  ENTER("cuEventCreate");
  auto event = std::make_unique<Event>();
  void *handle = event.get();
  f.events[handle] = std::move(event);
  *result = static_cast<CUevent>(handle);
  return CUDA_SUCCESS;
}

// What waits for it goes on doing so.
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  ENTER("cuEventDestroy_v2");
  return f.events.erase(event) ? CUDA_SUCCESS : f.misuse("cuEventDestroy: no such event", kInvalidHandle);
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER("cuEventRecord");
  auto it = f.events.find(event);
  if (it == f.events.end())
    return f.misuse("cuEventRecord: no such event", kInvalidHandle);
  auto record = std::make_shared<Record>();
  record->stream = f.find(stream);
  it->second->last = record;
  return enqueue(stream, "cuEventRecord", [record] { record->ms = fake().now += 0.25; });
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER("cuStreamWaitEvent");
  auto it = f.events.find(event);
  if (it == f.events.end())
    return f.misuse("cuStreamWaitEvent: no such event", kInvalidHandle);
  return enqueue(stream, "cuStreamWaitEvent", [record = it->second->last] { fake().runTo(*record); });
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  ENTER("cuEventSynchronize");
  auto it = f.events.find(event);
  if (it == f.events.end())
    return f.misuse("cuEventSynchronize: no such event", kInvalidHandle);
  f.runTo(*it->second->last);
  return f.lost;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  ENTER("cuEventElapsedTime");
  auto from = f.events.find(start), to = f.events.find(end);
  if (from == f.events.end() || to == f.events.end() || from->second->last->ms < 0 || to->second->last->ms < 0)
    return f.misuse("cuEventElapsedTime: an event that is not there or not over", kInvalidHandle);
  *ms = float(to->second->last->ms - from->second->last->ms);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer) {
  ENTER("cuPointerGetAttribute", false);
  if (!f.owns(pointer, 1))
    return kInvalidValue;
  const int value = attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? CU_MEMORYTYPE_DEVICE : 0;
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned smem, CUstream stream, void **params, void **extra) {
  ENTER("cuLaunchKernel");
  Launch launch;
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  if (CUresult error = makeLaunch(launch, function, grid, block, smem, params, extra))
    return error;
  return enqueue(stream, "cuLaunchKernel " + text(launch), [launch] { execute(launch); });
}

#ifndef FAKE_CUDA_OLD
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  ENTER("cuLaunchKernelEx");
  Launch launch;
  if (CUresult error = makeLaunch(launch, function, config->grid, config->block, config->smem, params, extra))
    return error;
  for (unsigned i = 0; i < config->attribute_count; ++i)
    if (config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      std::copy(config->attributes[i].value.cluster, config->attributes[i].value.cluster + 3, launch.cluster);
  if (launch.grid[0] % launch.cluster[0])
    return f.misuse("cuLaunchKernelEx: the grid is no multiple of the cluster");
  return enqueue(config->stream, "cuLaunchKernelEx " + text(launch), [launch] { execute(launch); });
}

EXPORT CUresult cuGraphCreate(CUgraph *result, unsigned) {
  ENTER("cuGraphCreate");
  auto graph = std::make_unique<Graph>();
  void *handle = graph.get();
  f.graphs[handle] = std::move(graph);
  note("cuGraphCreate");
  *result = static_cast<CUgraph>(handle);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  ENTER("cuGraphDestroy");
  return f.graphs.erase(graph) ? CUDA_SUCCESS : f.misuse("cuGraphDestroy: no such graph", kInvalidHandle);
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t afterCount,
                                        const CUDA_KERNEL_NODE_PARAMS *params) {
  ENTER("cuGraphAddKernelNode_v2");
  auto it = f.graphs.find(handle);
  if (it == f.graphs.end())
    return f.misuse("cuGraphAddKernelNode: no such graph", kInvalidHandle);
  Graph &graph = *it->second;
  // What the tests rely on: launches of a graph run in the order in which they were added.
  const size_t expected = graph.nodes.empty() ? 0 : 1;
  if (afterCount != expected || (expected && static_cast<const void *>(*after) != graph.nodes.back().get()))
    return f.misuse("cuGraphAddKernelNode: the nodes are no chain");
  auto launch = std::make_unique<Launch>();
  if (CUresult error = makeLaunch(*launch, params->function, params->grid, params->block, params->smem, params->params,
                                  params->extra))
    return error;
  note("cuGraphAddKernelNode_v2 " + text(*launch));
  *node = reinterpret_cast<CUgraphNode>(launch.get());
  graph.nodes.push_back(std::move(launch));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const CUlaunchAttributeValue *value) {
  ENTER("cuGraphKernelNodeSetAttribute");
  auto *launch = reinterpret_cast<Launch *>(node);
  if (attribute != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    return kInvalidValue;
  std::copy(value->cluster, value->cluster + 3, launch->cluster);
  note("cuGraphKernelNodeSetAttribute cluster " + text(launch->cluster));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *result, CUgraph handle, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags");
  auto it = f.graphs.find(handle);
  if (it == f.graphs.end())
    return f.misuse("cuGraphInstantiate: no such graph", kInvalidHandle);
  auto exec = std::make_unique<Exec>();
  exec->graph = it->second.get();
  for (auto &node : it->second->nodes)
    exec->launches[node.get()] = *node;
  void *made = exec.get();
  f.execs[made] = std::move(exec);
  note("cuGraphInstantiateWithFlags");
  *result = static_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  ENTER("cuGraphExecDestroy");
  note("cuGraphExecDestroy");
  return f.execs.erase(exec) ? CUDA_SUCCESS : f.misuse("cuGraphExecDestroy: no such graph", kInvalidHandle);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS *params) {
  ENTER("cuGraphExecKernelNodeSetParams_v2");
  auto it = f.execs.find(handle);
  if (it == f.execs.end() || !it->second->launches.count(node))
    return f.misuse("cuGraphExecKernelNodeSetParams: no such node", kInvalidHandle);
  Launch &launch = it->second->launches[node];
  if (reinterpret_cast<const Function *>(params->function) != launch.function)
    return f.misuse("cuGraphExecKernelNodeSetParams: another function");
  note("cuGraphExecKernelNodeSetParams_v2");
  return takeParameters(launch, params->params, params->extra);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  ENTER("cuGraphLaunch");
  auto it = f.execs.find(handle);
  if (it == f.execs.end())
    return f.misuse("cuGraphLaunch: no such graph", kInvalidHandle);
  // Later changes are for later launches.
  std::vector<Launch> launches;
  for (auto &node : it->second->graph->nodes)
    launches.push_back(it->second->launches[node.get()]);
  return enqueue(stream, "cuGraphLaunch of " + std::to_string(launches.size()), [launches] {
    for (const Launch &launch : launches)
      execute(launch);
  });
}
#endif

} // extern "C"

// ---- what tests call ----

namespace tc::fake {

#define LOCK                                                                                                           \
  Fake &f = ::fake();                                                                                                  \
  std::lock_guard<std::recursive_mutex> lock(f.mutex)

EXPORT void reset() {
  LOCK;
  f.lost = CUDA_SUCCESS;
  f.runAll();
  f.calls.clear();
  f.problems.clear();
  f.failures.clear();
  f.mostMemory = UINT64_MAX;
  f.sm = 90;
  if (f.streams.empty())
    f.nextStream = 1;
}

EXPORT std::vector<std::string> calls() {
  LOCK;
  return f.calls;
}

EXPORT int count(const std::string &name) {
  LOCK;
  return int(std::count_if(f.calls.begin(), f.calls.end(),
                           [&](const std::string &call) { return call.compare(0, name.size(), name) == 0; }));
}

EXPORT void fail(const std::string &name, int n, int error, bool isSticky) {
  LOCK;
  f.fail(name, n, error, isSticky);
}

EXPORT void limitMemory(uint64_t bytes) {
  LOCK;
  f.mostMemory = f.memory + bytes;
}

EXPORT void setVersion(int sm) {
  LOCK;
  f.sm = sm;
}

EXPORT std::string live() {
  LOCK;
  std::string text;
  auto add = [&](const char *what, size_t count) {
    if (count)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add("allocations", f.allocations.size());
  add("pinned buffers", f.pinned.size());
  add("modules", f.modules.size());
  add("streams", f.streams.size());
  add("events", f.events.size());
  add("graphs", f.graphs.size());
  add("instances", f.execs.size());
  add("contexts", size_t(f.retained));
  return text;
}

EXPORT std::vector<std::string> problems() {
  LOCK;
  return f.problems;
}

/// For tests in other languages: "calls", "problems" or "live", in lines. Returns the bytes of all of it with a NUL.
extern "C" EXPORT size_t fakeCudaReport(const char *what, char *text, size_t size) {
  std::string all = std::strcmp(what, "live") == 0 ? live() : "";
  for (const std::string &line : std::strcmp(what, "calls") == 0      ? calls()
                                 : std::strcmp(what, "problems") == 0 ? problems()
                                                                      : std::vector<std::string>())
    all += line + "\n";
  if (text && size)
    std::snprintf(text, size, "%s", all.c_str());
  return all.size() + 1;
}

EXPORT void *weights(uint64_t bytes) {
  LOCK;
  uint64_t best = UINT64_MAX, address = 0;
  for (auto &[start, allocation] : f.allocations)
    if (allocation.second >= bytes && allocation.second < best)
      best = allocation.second, address = start;
  return reinterpret_cast<void *>(uintptr_t(address));
}

EXPORT void forget() {
  LOCK;
  f.runAll();
  f.allocations.clear();
  f.pinned.clear();
  f.modules.clear();
  f.streams.clear();
  f.events.clear();
  f.graphs.clear();
  f.execs.clear();
  f.memory = 0;
  f.retained = 0;
}

EXPORT void *makeStream() {
  CUstream stream = nullptr;
  current.push_back(context());
  cuStreamCreate(&stream, 0);
  current.pop_back();
  return stream;
}

EXPORT void destroyStream(void *stream) {
  current.push_back(context());
  cuStreamDestroy_v2(static_cast<CUstream>(stream));
  current.pop_back();
}

EXPORT bool isBusy(void *stream) {
  LOCK;
  return !f.find(static_cast<CUstream>(stream))->work.empty();
}

EXPORT void waitFor(void *stream) {
  LOCK;
  f.run(*f.find(static_cast<CUstream>(stream)));
}

} // namespace tc::fake
