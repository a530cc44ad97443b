//===- Machine.h - where something is measured ----------------------------------------------------------*- C++ -*-===//
//
// A machine has the same name whichever tool asks: CPUs and their features are named as LLVM names them, in tools
// without it, too, which hold that part of it (lib/Measure/CMakeLists.txt).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_MEASURE_MACHINE_H
#define TC_MEASURE_MACHINE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tc::measure {

struct Machine {
  /// In the database: made of the rest.
  std::string name;
  bool isGpu = false;
  unsigned gpuVersion = 0; ///< of describeGpu: 90 for compute capability 9.0
  std::string model, cpu, features;
  std::vector<int64_t> cacheBytes;
  unsigned threads = 1;
};

/// Whether a GPU of this version runs code of a chip, whose number is as tcrt_section_t::arch has it.
inline bool runsOn(unsigned version, uint32_t arch) {
  const unsigned own = arch / 10;
  return arch % 10 == 1 ? own == version : own / 10 == version / 10 && own <= version;
}

/// This machine, with so many threads a run; 0: one per usable core.
Machine describeMachine(unsigned threads);
/// The GPU that the runtime takes here; nullopt: `why` there is none, as the rest of a sentence.
std::optional<Machine> describeGpu(std::string &why);

} // namespace tc::measure

#endif // TC_MEASURE_MACHINE_H
