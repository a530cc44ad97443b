//===- Ring.h - slots of shared memory between warps that fill and warps that read ---------------------*- C++ -*-===//
//
// Some warps of a block fill slots, one after the other and from the first on again, while others read them. Two
// mbarriers a slot tell these that it is full, and those that it is empty; nobody else waits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_RING_H
#define TC_LIB_CODEGEN_GPU_RING_H

#include "GPU/TensorCores.h"

namespace tc::codegen::gpu {

class Ring {
public:
  /// Where a role is: number of the slot, and whether it is there an even (0) or odd (1) time. i32.
  struct Place {
    mlir::Value slot, lap;
  };

  /// Bytes of the barriers of so many slots.
  static int64_t barrierBytes(int64_t slots) { return 2 * 8 * slots; }

  /// `barriers`: in shared memory, aligned to 8 bytes. So many threads fill, so many warps read.
  Ring(Emitter &e, mlir::Value barriers, int64_t slots, int64_t fillingThreads, int64_t readingWarps)
      : e(e), w(e), barriers(barriers), slots(slots), fillingThreads(fillingThreads), readingWarps(readingWarps) {}
  /// One thread fills by tensor copies.
  static Ring ofTensorCopies(Emitter &e, mlir::Value barriers, int64_t slots, int64_t readingWarps) {
    Ring ring(e, barriers, slots, 1, readingWarps);
    ring.hasTensorCopies = true;
    return ring;
  }

  /// By one thread of the block; others behind a barrier of the block.
  void init() const;
  Place begin() const { return {w.constant(0), w.constant(0)}; }
  Place next(Place place) const;

  /// What fills: waits until the slot has been read; tells that the thread's copies to it are under way.
  void awaitEmpty(Place place) const;
  void fill(Place place) const { arriveWithCopies(e, fullBarrier(place)); }
  /// Tells, by the thread for which `condition` (i1) holds, that tensor copies of so many bytes in all (i32) fill the
  /// slot, which are given the barrier.
  mlir::Value expect(Place place, mlir::Value bytes, mlir::Value condition) const;
  /// What reads: waits until the slot is full, and its tensor cores see it; tells that the warp has read it.
  void awaitFull(Place place) const;
  /// Where `condition` (i1; null: everywhere) holds.
  void release(Place place, mlir::Value condition = {}) const;

private:
  mlir::Value barrierAt(mlir::Value number) const { return sharedAt(e, barriers, w.mul(number, 8)); }
  mlir::Value fullBarrier(Place place) const { return barrierAt(place.slot); }
  mlir::Value emptyBarrier(Place place) const { return barrierAt(w.add(place.slot, slots)); }

  Emitter &e;
  Words w;
  mlir::Value barriers;
  int64_t slots, fillingThreads, readingWarps;
  bool hasTensorCopies = false;
};

/// The code of warps with two roles: of those for which `condition` (i1) holds and of others.
void ifElse(Emitter &e, mlir::Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_RING_H
