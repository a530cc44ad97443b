//===- GpuLimits.h - what kernels for GPUs may use ------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_GPULIMITS_H
#define TC_ANALYSIS_GPULIMITS_H

#include <cstdint>
#include <limits>

namespace tc {

/// What kernels may use, where they are for GPUs.
struct GpuLimits {
  /// Of shared memory, what a block may have of each of them.
  int64_t sharedBytes = std::numeric_limits<int64_t>::max();
  /// Products of f32 may take the 11 significant bits of TF32.
  bool allowsTf32 = false;
  /// One of them at least has products of warpgroups.
  bool hasWarpGroups = false;
};

} // namespace tc

#endif // TC_ANALYSIS_GPULIMITS_H
