//===- Recurrence.h - a recurrent layer as a loop -------------------------------------------------------*- C++ -*-===//
//
// prim.rnn says a recurrent layer in its common form, whole. This says any form as a prim.while over the steps: what a
// target does not take whole, and what prim.rnn leaves out (other activations, clipping, coupled gates).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_RECURRENCE_H
#define TC_DIALECT_PRIM_UTILS_RECURRENCE_H

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include <functional>

namespace tc {

using Activation = std::function<mlir::Value(PrimBuilder &, mlir::Value)>;

/// One direction of a layer. Operands have the shapes that prim.rnn gives them, and floats of at least 32 bits.
struct Recurrence {
  prim::RnnKind kind = prim::RnnKind::RNN;
  mlir::Value gates, recurrent, recurrentBias, initialHidden, initialCell, peephole, sequenceLengths;
  bool reverse = false, linearBeforeReset = false;
  /// lstm: the forget gate is 1 - the input gate.
  bool coupled = false;
  /// What activations are given is held in [-clip, clip]; 0: nothing is.
  double clip = 0;
  /// In ONNX's order: lstm gates, cell, hidden; gru gates, candidate; rnn one. Empty: sigmoid and tanh.
  llvm::SmallVector<Activation> activations;
};

struct RecurrenceResults {
  mlir::Value hidden, finalHidden, finalCell;
};

RecurrenceResults emitRecurrence(PrimBuilder &b, const Recurrence &layer);

} // namespace tc

#endif // TC_DIALECT_PRIM_UTILS_RECURRENCE_H
