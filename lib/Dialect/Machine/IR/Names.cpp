//===- Names.cpp - machines and targets by name -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Machine/IR/Machine.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Threading.h"
#include "llvm/TargetParser/Host.h"
#include <unistd.h>

using namespace mlir;
using namespace tc::machine;

namespace {

struct Vectors {
  VectorUnit unit;
  bool masks;
};
constexpr Vectors Avx2{kVectorUnits[0], false}, Avx512{kVectorUnits[1], true};

struct Cpu {
  StringRef name, cpu, features;
  Vectors vectors;
  CpuUnits units;
  bool isDefault;
};
const Cpu kCpus[] = {
#define TC_CPU(...) {__VA_ARGS__},
#include "tc/Dialect/Machine/IR/Machines.def"
};
#define TC_LAUNCHER(cpu) constexpr StringLiteral kLauncher = cpu;
#include "tc/Dialect/Machine/IR/Machines.def"

struct Mma {
  MmaKind kind;
  StringRef types;
};
struct Gpu {
  StringRef name, product;
  int64_t multiprocessors, sharedKiB, sharedKiBPerBlock, threads, l2MiB, gigabytesPerSecond, gigaflops, mmaGigaflops;
  std::vector<Mma> mma;
};
const Gpu kGpus[] = {
#define TC_GPU(name, product, multiprocessors, shared, sharedPerBlock, threads, l2, bandwidth, flops, mmaFlops, ...)   \
  {name, product, multiprocessors, shared, sharedPerBlock, threads, l2, bandwidth, flops, mmaFlops, {__VA_ARGS__}},
#include "tc/Dialect/Machine/IR/Machines.def"
};

constexpr StringLiteral kNative = "native", kDefaultGpu = "sm_90a";

CpuAttr makeCpu(MLIRContext *context, const Cpu &cpu) {
  return CpuAttr::get(context, cpu.name, cpu.cpu, cpu.features, cpu.vectors.unit.bits, cpu.vectors.unit.registers,
                      cpu.vectors.masks, cpu.units, kCaches.l1, kCaches.l2, kCaches.l3, /*cores=*/0);
}

GpuAttr makeGpu(MLIRContext *context, const Gpu &gpu, StringRef name) {
  SmallVector<Attribute> mma;
  for (const Mma &each : gpu.mma) {
    SmallVector<Type> types;
    for (StringRef type : llvm::split(each.types, ' '))
      types.push_back(parseType(type, context));
    mma.push_back(MmaAttr::get(context, each.kind, types));
  }
  constexpr int64_t kRegisters = 65536, kThreadsPerBlock = 1024; // of all of them
  return GpuAttr::get(context, name, gpu.multiprocessors, gpu.sharedKiB << 10, gpu.sharedKiBPerBlock << 10, kRegisters,
                      gpu.threads, kThreadsPerBlock, gpu.l2MiB << 20, gpu.gigabytesPerSecond, gpu.gigaflops,
                      gpu.mmaGigaflops, ArrayAttr::get(context, mma));
}

/// The CPU that this runs on.
CpuAttr makeNative(MLIRContext *context) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  // Sorted, so that the list is the same on every run.
  SmallVector<std::string> all;
  for (const auto &feature : features)
    all.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(all);
  const Vectors vectors = features.lookup("avx512f") ? Avx512 : Avx2;
  CpuUnits units = CpuUnits::None;
  auto add = [&](StringRef feature, CpuUnits unit, bool isPossible) {
    if (isPossible && features.lookup(feature))
      units = units | unit;
    return bitEnumContainsAll(units, unit);
  };
  const bool vnni = add("avx512vnni", CpuUnits::Vnni, vectors.masks);
  const bool bf16 = add("avx512bf16", CpuUnits::Bf16, vectors.masks);
  add("amx-int8", CpuUnits::AmxInt8, vnni);
  add("amx-bf16", CpuUnits::AmxBf16, bf16);
  auto bytesOf = [](int level) { return std::max<int64_t>(0, ::sysconf(level)); };
  return CpuAttr::get(context, kNative, llvm::sys::getHostCPUName(), llvm::join(all, ","), vectors.unit.bits,
                      vectors.unit.registers, vectors.masks, units, bytesOf(_SC_LEVEL1_DCACHE_SIZE),
                      bytesOf(_SC_LEVEL2_CACHE_SIZE), bytesOf(_SC_LEVEL3_CACHE_SIZE),
                      llvm::get_physical_cores() > 0 ? llvm::get_physical_cores() : 0);
}

bool isOfAArch64(StringRef name) {
  return llvm::any_of(ArrayRef<StringRef>{"aarch64", "armv", "neoverse", "apple"},
                      [&](StringRef prefix) { return name.starts_with(prefix); });
}

/// The place in Machines.def; native comes last.
size_t placeOf(CpuAttr cpu) {
  return llvm::find_if(kCpus, [&](const Cpu &each) { return each.name == cpu.getName(); }) - std::begin(kCpus);
}

} // namespace

std::string tc::machine::getCpuNames() {
  std::string names;
  for (const Cpu &cpu : kCpus)
    names += (cpu.name + ", ").str();
  return names + kNative.str();
}

llvm::Expected<TargetKind> tc::machine::parseTarget(StringRef name) {
  if (std::optional<TargetKind> target = symbolizeTargetKind(name))
    return *target;
  std::string known;
  for (unsigned i = 0; i <= getMaxEnumValForTargetKind(); ++i)
    known += ((i ? ", " : "") + stringifyTargetKind(TargetKind(i))).str();
  return llvm::createStringError(name + (isOfAArch64(name) ? " is not supported yet" : " is not supported") +
                                 "; supported: " + known);
}

llvm::Expected<CpuAttr> tc::machine::parseCpu(MLIRContext *context, StringRef name) {
  for (const Cpu &cpu : kCpus)
    if (cpu.name == name)
      return makeCpu(context, cpu);
  if (name == kNative)
    return makeNative(context);
  if (isOfAArch64(name))
    return llvm::createStringError(name + ": AArch64 is not supported yet; supported: " + getCpuNames());
  return llvm::createStringError(name + " is not known; known: " + getCpuNames());
}

llvm::Expected<GpuAttr> tc::machine::parseGpu(MLIRContext *context, StringRef name) {
  const Gpu *older = nullptr;
  unsigned arch = 0;
  StringRef digits = name;
  digits.consume_back("a");
  const bool isChip = digits.consume_front("sm_") && !digits.getAsInteger(10, arch);
  for (const Gpu &gpu : kGpus) {
    if (gpu.name == name)
      return makeGpu(context, gpu, name);
    // What is there for one chip alone says nothing of others.
    unsigned other = 0;
    if (isChip && !gpu.name.drop_front(StringRef("sm_").size()).getAsInteger(10, other) && other <= arch)
      older = &gpu;
  }
  if (older)
    return makeGpu(context, *older, name);
  return llvm::createStringError(name + " is not known; expected " + kGpus[0].name + " or newer, for instance " +
                                 kDefaultGpu);
}

std::string tc::machine::getGpuName(unsigned version) { return "sm_" + std::to_string(version); }

llvm::Expected<MachineAttr> tc::machine::parseMachine(MLIRContext *context, StringRef name) {
  if (llvm::Expected<CpuAttr> cpu = parseCpu(context, name))
    return MachineAttr(*cpu);
  else
    llvm::consumeError(cpu.takeError());
  if (llvm::Expected<GpuAttr> gpu = parseGpu(context, name))
    return MachineAttr(*gpu);
  else
    llvm::consumeError(gpu.takeError());
  return llvm::createStringError(name + " is not known; known: " + getCpuNames() + ", and " + kGpus[0].name +
                                 " or newer");
}

DeviceKind tc::machine::getDevice(TargetKind target) {
  return target == TargetKind::Cuda ? DeviceKind::Cuda : DeviceKind::Cpu;
}

TargetKind tc::machine::getTarget(DeviceKind device) {
  return device == DeviceKind::Cuda ? TargetKind::Cuda : TargetKind::Cpu;
}

llvm::cl::ValuesClass tc::machine::getTargetValues() {
  return llvm::cl::values(
      clEnumValN(TargetKind::Cpu, stringifyTargetKind(TargetKind::Cpu), "CPUs"),
      clEnumValN(TargetKind::Cuda, stringifyTargetKind(TargetKind::Cuda), "GPUs of NVIDIA"),
      clEnumValN(TargetKind::Reference, stringifyTargetKind(TargetKind::Reference), "CPUs, with plain loops"));
}

SmallVector<CpuAttr> tc::machine::getDefaultCpus(MLIRContext *context) {
  SmallVector<CpuAttr> cpus;
  for (const Cpu &cpu : kCpus)
    if (cpu.isDefault)
      cpus.push_back(makeCpu(context, cpu));
  return cpus;
}

CpuAttr tc::machine::getFirstCpuWith(MLIRContext *context, CpuUnits units) {
  return makeCpu(context, *llvm::find_if(kCpus, [&](const Cpu &cpu) { return bitEnumContainsAll(cpu.units, units); }));
}

CpuAttr tc::machine::getLauncherCpu(MLIRContext *context) {
  return CpuAttr::get(context, kLauncher, kLauncher, /*features=*/"", /*vectorBits=*/128, /*vectorRegisters=*/16,
                      /*masks=*/false, CpuUnits::None, kCaches.l1, kCaches.l2, kCaches.l3, /*cores=*/0);
}

SmallVector<GpuAttr> tc::machine::getDefaultGpus(MLIRContext *context) {
  return {getOldestGpu(context), getDefaultGpu(context)};
}

GpuAttr tc::machine::getDefaultGpu(MLIRContext *context) { return llvm::cantFail(parseGpu(context, kDefaultGpu)); }

GpuAttr tc::machine::getOldestGpu(MLIRContext *context) { return makeGpu(context, kGpus[0], kGpus[0].name); }

void tc::machine::sortCpus(SmallVectorImpl<CpuAttr> &cpus) {
  llvm::stable_sort(cpus, [](CpuAttr a, CpuAttr b) { return placeOf(a) < placeOf(b); });
  cpus.erase(llvm::unique(cpus), cpus.end());
}
