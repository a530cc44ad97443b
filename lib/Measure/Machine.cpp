//===- Machine.cpp - the machine that measurements are made on ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Measure/Machine.h"
#include "tc/Support/Hash.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include <sched.h>
#include <unistd.h>

using namespace tc::measure;

/// As /proc/cpuinfo has it; empty where there is none.
static std::string modelName() {
  auto buffer = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo");
  if (!buffer)
    return "";
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.consume_front("model name"))
      return line.split(':').second.trim().str();
  return "";
}

Machine tc::measure::describeMachine(unsigned threads) {
  Machine machine;
  machine.model = modelName();
  machine.cpu = llvm::sys::getHostCPUName().str();
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> present;
  for (const auto &feature : features)
    if (feature.second)
      present.push_back(feature.first());
  llvm::sort(present);
  machine.features = llvm::join(present, ",");
  for (int level : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE})
    machine.cacheBytes.push_back(std::max(0L, ::sysconf(level)));
  cpu_set_t usable;
  if (threads == 0) // as the runtime counts
    threads = ::sched_getaffinity(0, sizeof usable, &usable) == 0 ? unsigned(CPU_COUNT(&usable)) : 1;
  machine.threads = threads;
  std::string all = machine.model + "\n" + machine.cpu + "\n" + machine.features;
  for (int64_t bytes : machine.cacheBytes)
    all += "\n" + std::to_string(bytes);
  machine.name =
      machine.cpu + "-" + std::to_string(threads) + "t-" + tc::contentHash({all.data(), all.size()}).substr(0, 8);
  return machine;
}
