//===- Rnn.h - the parts of the "cpu.rnn" strategy ------------------------------------------------------*- C++ -*-===//
//
// Rnn.cpp decides and packs, RnnTasks.cpp emits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_RNN_H
#define TC_LIB_CODEGEN_CPU_RNN_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"

namespace tc::codegen::rnn {

using Schedule = kernel::CpuRnnAttr;

struct Problem {
  mutable prim::RnnOp op; // accessors of ops are not const
  /// Of the three results; none for an op outside of a region.
  llvm::SmallVector<const Epilogue *> epilogues;
  mlir::AffineExpr T, B;
  int64_t H, gates;
  bool isGru, isLinear;

  int64_t panels() const { return roundUp(H, kPanel) / kPanel; }
  /// Distance of rows of state: whole panels fit, not a multiple of a cache way.
  int64_t stride() const { return roundUp(H, kPanel) + kPanel; }
  int64_t panelFloats() const { return H * kPanel; }
  int64_t weightFloats() const { return gates * panels() * panelFloats(); }
  bool resetsFirst() const { return isGru && !isLinear; }
  bool streams() const { return !fitsTwice(weightFloats() * 4); }
};

/// Offsets in floats of the parts of a worker's scratch or, with slices, of the shared state; then only the sums are in
/// the scratch.
struct Layout {
  int64_t rows; // of a block of state
  int64_t hidden, cell, reset, sums, weights, end;
  int64_t stateEnd = 0; // of shared state

  Layout(const Problem &p, Schedule schedule) : rows(schedule.getTileB() * schedule.getMerged() * p.stride()) {
    const bool packHere = schedule.getRhs() < 0;
    hidden = 0;
    if (schedule.getSlice() > 0) {
      cell = 2 * rows; // behind both hidden states
      reset = 3 * rows;
      stateEnd = (p.resetsFirst() ? 4 : 3) * rows;
      sums = 0;
      weights = p.gates * rows;
      end = weights + 64;
      return;
    }
    cell = rows;
    reset = 2 * rows;
    sums = 3 * rows; // one block for each gate
    weights = (3 + p.gates) * rows;
    end = weights + (packHere ? p.weightFloats() : 0) + 64;
  }
};

/// Steps of the launch with slices.
mlir::AffineExpr launchSteps(const Problem &p);

/// Code of the tasks [begin, end).
void emit(const Problem &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);

} // namespace tc::codegen::rnn

#endif // TC_LIB_CODEGEN_CPU_RNN_H
