//===- Gpu.cpp - the GPU that measurements are made on ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Format/Container.h"
#include "tc/Measure/Machine.h"
#include "tc/Support/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <dlfcn.h>
#include <type_traits>

using namespace tc::measure;

namespace {

// Of the CUDA driver API (cuda.h), which is there only where a GPU may be.
constexpr int kMultiprocessors = 16, kL2Bytes = 38, kMajor = 75, kMinor = 76;

/// The functions that are asked, of a library that stays open: a driver does not survive being opened again.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*getCount)(int *count);
  int (*get)(int *device, int number);
  int (*getName)(char *name, int size, int device);
  int (*getAttribute)(int *value, int attribute, int device);

  /// Why it cannot be used; empty: it can.
  std::string open() {
    void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return "the NVIDIA driver (libcuda.so.1) is not installed";
    bool hasAll = true;
    auto find = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      hasAll = hasAll && function;
    };
    find(init, "cuInit");
    find(getCount, "cuDeviceGetCount");
    find(get, "cuDeviceGet");
    find(getName, "cuDeviceGetName");
    find(getAttribute, "cuDeviceGetAttribute");
    return hasAll ? "" : "the NVIDIA driver is too old";
  }
};

} // namespace

std::optional<Machine> tc::measure::describeGpu(std::string &why) {
  auto fail = [&](const std::string &what) {
    why = what;
    return std::optional<Machine>();
  };
  CudaDriver cuda;
  if (std::string problem = cuda.open(); !problem.empty())
    return fail(problem);
  int count = 0, device = 0, sm[2] = {}, multiprocessors = 0, l2Bytes = 0;
  char name[128] = "";
  if (cuda.init(0) != 0 || cuda.getCount(&count) != 0 || count < 1)
    return fail("this machine shows no NVIDIA GPU");
  if (cuda.get(&device, 0) != 0 || cuda.getName(name, sizeof name, device) != 0 ||
      cuda.getAttribute(&sm[0], kMajor, device) != 0 || cuda.getAttribute(&sm[1], kMinor, device) != 0 ||
      cuda.getAttribute(&multiprocessors, kMultiprocessors, device) != 0 ||
      cuda.getAttribute(&l2Bytes, kL2Bytes, device) != 0)
    return fail("the GPU does not say what it is");
  Machine machine;
  machine.isGpu = true;
  machine.model = name;
  machine.gpuVersion = unsigned(10 * sm[0] + sm[1]);
  char chip[32];
  tcrt_arch_name(10 * machine.gpuVersion, chip, sizeof chip);
  machine.cpu = chip;
  machine.cacheBytes = {l2Bytes};
  machine.threads = unsigned(std::max(1, multiprocessors));
  // "NVIDIA H200" is "h200".
  llvm::StringRef model = machine.model;
  model.consume_front("NVIDIA ");
  for (char c : model.lower())
    if (llvm::isAlnum(c))
      machine.name += c;
    else if (!machine.name.empty() && machine.name.back() != '-')
      machine.name += '-';
  const std::string all = machine.model + "\n" + machine.cpu + "\n" + std::to_string(l2Bytes);
  machine.name += "-" + std::to_string(machine.threads) + "p-" + tc::contentHash({all.data(), all.size()}).substr(0, 8);
  return machine;
}
