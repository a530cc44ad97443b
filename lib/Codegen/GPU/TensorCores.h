//===- TensorCores.h - instructions that multiply matrices, and what feeds them -------------------------*- C++ -*-===//
//
// Thin wrappers of PTX instructions (PTX ISA 8.0, "Warp Level Matrix Instructions", "Asynchronous Warpgroup Level
// Matrix Instructions", "Data Movement: cp.async"). Addresses in shared memory are pointers of address space 3, numbers
// within a block are i32.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_TENSORCORES_H
#define TC_LIB_CODEGEN_GPU_TENSORCORES_H

#include "GPU/Gpu.h"

namespace tc::codegen::gpu {

/// Rows and columns of a warp's fragment, and bytes of its steps; rows and threads of a warpgroup.
inline constexpr int64_t kFragmentM = 16, kFragmentN = 8, kFragmentBytes = 32, kGroupM = 64, kGroupThreads = 128;

/// Arithmetic on i32, constants folded.
class Words {
public:
  explicit Words(Emitter &e) : e(e) {}
  mlir::Value constant(int64_t value) const;
  mlir::Value add(mlir::Value a, mlir::Value b) const;
  mlir::Value add(mlir::Value a, int64_t b) const { return b == 0 ? a : add(a, constant(b)); }
  mlir::Value mul(mlir::Value a, int64_t b) const;
  mlir::Value div(mlir::Value a, int64_t powerOfTwo) const;
  mlir::Value rem(mlir::Value a, int64_t powerOfTwo) const;
  mlir::Value bitXor(mlir::Value a, mlir::Value b) const;
  mlir::Value less(mlir::Value a, mlir::Value b) const;
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) const;
  /// Without sign, as i64.
  mlir::Value wide(mlir::Value a) const;

private:
  Emitter &e;
};

/// threadIdx.x as i32.
mlir::Value threadNumber(Emitter &e);

/// The block's dynamic shared memory, of which a launch has as many bytes as its device attribute says; 1024-byte
/// aligned.
mlir::Value dynamicShared(Emitter &e);
/// pointer + bytes, in shared memory.
mlir::Value sharedAt(Emitter &e, mlir::Value pointer, mlir::Value bytes);

/// Sixteen bytes from device memory to shared memory, not waited for; zeros where `isValid` (i1; null: it is) does not
/// hold, and then nothing is read.
void copyAsync(Emitter &e, mlir::Value shared, mlir::Value global, mlir::Value isValid);
/// What was copied since the last call is a group; waits until at most `pending` groups are under way.
void commitCopies(Emitter &e);
void waitForCopies(Emitter &e, int64_t pending);

/// Four 8x8 matrices of 16-bit elements, whose rows lie at the addresses that lanes 0-7, 8-15, 16-23 and 24-31 give; or
/// their transposes. i32 each.
llvm::SmallVector<mlir::Value> loadMatrices(Emitter &e, mlir::Value shared, bool isTransposed);

/// d += a b with fragments of mma.sync, 16 rows by 8 columns by 32 bytes: a of four words, b of two, d of four f32. Of
/// f32 the 11 significant bits of TF32 are taken.
void multiplyFragments(Emitter &e, mlir::Type element, llvm::ArrayRef<mlir::Value> a, llvm::ArrayRef<mlir::Value> b,
                       llvm::MutableArrayRef<mlir::Value> d);

/// What a warpgroup's operand in shared memory is described by: tiles of 128-byte lines, swizzled (SharedTile).
/// `pieceStride`: bytes between groups of 8 lines, `panelStride`: bytes between panels where the lines are steps of K.
mlir::Value describeTile(Emitter &e, mlir::Value shared, int64_t panelStride, int64_t pieceStride);
/// d += a b, 64 rows by `columns` columns by 32 bytes; `columns` / 2 accumulators. `adds`: else d = a b, and what d is
/// before does not matter. f32 as multiplyFragments, and lines along K only. Between beginGroup and endGroup.
void multiplyTiles(Emitter &e, mlir::Type element, int64_t columns, mlir::Value a, bool aIsTransposed, mlir::Value b,
                   bool bIsTransposed, llvm::MutableArrayRef<mlir::Value> d, bool adds = true);
/// The same with a in registers: four words, a warp's fragment of its 16 of the 64 rows.
void multiplyRows(Emitter &e, mlir::Type element, int64_t columns, llvm::ArrayRef<mlir::Value> a, mlir::Value b,
                  bool bIsTransposed, llvm::MutableArrayRef<mlir::Value> d);
/// The nearest numbers of 11 significant bits of f32 or a vector of it; infinities and what is no number stay.
mlir::Value roundToTf32(Emitter &e, mlir::Value x);
/// 2^x of f32 to 2 units in the last place; 0 where that is less than 2^-126.
mlir::Value exp2(Emitter &e, mlir::Value x);
/// Orders what a warpgroup multiplies behind its registers and shared memory.
void beginGroup(Emitter &e);
void endGroup(Emitter &e);
void waitForGroups(Emitter &e, int64_t pending);
/// What was written to shared memory by ordinary stores and copies is seen by warpgroups' products behind a barrier.
void fenceForTensorCores(Emitter &e);

/// bar.sync and bar.arrive of `threads` threads of the block at barrier `id` (i32; the whole block's is 0): arriving
/// waits for nobody.
void meetAt(Emitter &e, mlir::Value id, int64_t threads);
void arriveAt(Emitter &e, mlir::Value id, int64_t threads);
/// Registers of a thread from here on, of all warps of a warpgroup: more than the kernel's launch gave, or less.
void setRegisters(Emitter &e, int64_t count, bool more);

/// mbarriers: 8 bytes of shared memory that count arrivals. A phase ends with the `count`th; of phases the even ones
/// have parity 0. Waiting for the parity of the phase before the first one returns at once.
void initBarrier(Emitter &e, mlir::Value barrier, int64_t count);
void awaitPhase(Emitter &e, mlir::Value barrier, mlir::Value parity);
/// Where `condition` (i1) holds.
void arriveAtBarrier(Emitter &e, mlir::Value barrier, mlir::Value condition);
/// Arrives when the thread's copies so far are done.
void arriveWithCopies(Emitter &e, mlir::Value barrier);
/// Arrives where `condition` (i1) holds; the phase goes on until so many bytes (i32) have been copied, too.
void arriveExpecting(Emitter &e, mlir::Value barrier, mlir::Value bytes, mlir::Value condition);
/// Barriers that were initialised are seen by copies behind a barrier of the block.
void fenceBarriers(Emitter &e);

//===--- tensor copies (TMA), of sm_90 on -------------------------------------------------------------------------===//

/// A tensor in device memory, of up to five dims, as tensor copies take it: the innermost first. Boxes of lines of 128
/// bytes, swizzled as SharedTile has them, are copied; what is outside of the tensor is zero.
struct TensorMap {
  mlir::Value address; // of device memory, aligned to 16 bytes
  mlir::Type element;
  llvm::SmallVector<mlir::Value> sizes;   // i64
  llvm::SmallVector<mlir::Value> strides; // in elements, of all dims but the innermost; multiples of 16 bytes
  llvm::SmallVector<int64_t> box;
};
inline constexpr int64_t kTensorMapBytes = 128;
/// Writes the map to `place` (device memory, aligned to its size), for kernels that follow, from `shared`, as many
/// bytes of shared memory; by a warp.
void writeTensorMap(Emitter &e, mlir::Value place, mlir::Value shared, const TensorMap &map);
/// What an earlier kernel has written there is seen by the block's copies.
void acquireTensorMap(Emitter &e, mlir::Value place);
/// Begins to copy the box at `at` (i32, innermost first) to `shared`, of which `barrier` is told. Where `condition`.
void copyBox(Emitter &e, mlir::Value map, llvm::ArrayRef<mlir::Value> at, mlir::Value shared, mlir::Value barrier,
             mlir::Value condition);

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_TENSORCORES_H
