//===- Roofline.h - what the machine could do at most ---------------------------------------------------*- C++ -*-===//
//
// The roofline model: a kernel of F operations on B bytes takes at least max(F / peak, B / bandwidth). Both are
// measured where the program runs, since clock rates, memory and neighbours of a machine are not to be looked up.
// Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", 2009.
//
// A kernel is held against the smallest level of memory that its bytes fit into: what its neighbours leave in a cache
// is read from there. It is an upper bound; a kernel that streams weights of a large model comes out lower than it is.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_BENCH_ROOFLINE_H
#define TC_BENCH_ROOFLINE_H

#include <cstdint>
#include <string>
#include <vector>

namespace tc::bench {

/// A level of memory, as all threads together see it.
struct MemoryLevel {
  std::string name;         ///< L2, L3, memory
  uint64_t capacityBytes;   ///< data that it holds; UINT64_MAX for memory
  uint64_t workingSetBytes; ///< what was measured with
  double readGbs = 0;       ///< 1e9 bytes per second
  double copyGbs = 0;       ///< bytes read plus bytes written
  double gbs() const { return readGbs > copyGbs ? readGbs : copyGbs; }
};

struct Roofline {
  uint32_t threads = 1;
  std::string instructions;        ///< avx512, avx2, sse2
  double peakGflops = 0;           ///< f32 multiply-add, 1e9 operations per second
  std::vector<MemoryLevel> levels; ///< smallest first; the last is memory

  /// The level that a kernel of so many bytes is held against.
  const MemoryLevel &levelFor(uint64_t bytes) const;
  /// The least microseconds that operations and bytes of a kernel take; 0 where neither is known.
  double leastUs(uint64_t flops, uint64_t bytes) const;
  /// Whether the bytes, not the operations, decide that.
  bool isMemoryBound(uint64_t flops, uint64_t bytes) const;
};

/// Measures with so many threads, for about a second.
Roofline measureRoofline(uint32_t threads);

} // namespace tc::bench

#endif // TC_BENCH_ROOFLINE_H
