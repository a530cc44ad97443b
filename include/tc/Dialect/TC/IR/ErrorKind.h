//===- ErrorKind.h - who has to act on an error of a pass -----------------------------------------------*- C++ -*-===//
//
// Passes report through MLIR's diagnostics, which have no field that says whose fault an error is; the exit code of
// tc-compile depends on it. So an error of a pass is a defect of tc unless the pass says otherwise:
//
//   return base::emitUnsupported(loop) << "a loop that carries a value whose size depends on data is not supported";
//
// The kind travels as metadata of the diagnostic. Errors of the conversion from graph to prim are classified by its
// report instead.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_ERRORKIND_H
#define TC_DIALECT_TC_IR_ERRORKIND_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

namespace tc::base {

enum class ErrorKind {
  Internal,    ///< a defect of tc
  Unsupported, ///< a valid model needs what tc lacks
  Invalid,     ///< the model contradicts itself
  Environment  ///< a file, a tool or memory that is not there
};

inline void setErrorKind(mlir::Diagnostic &diagnostic, ErrorKind kind) {
  diagnostic.getMetadata().push_back(mlir::DiagnosticArgument(unsigned(kind)));
}

/// Internal where nothing was said.
inline ErrorKind getErrorKind(mlir::Diagnostic &diagnostic) {
  for (const mlir::DiagnosticArgument &argument : diagnostic.getMetadata())
    if (argument.getKind() == mlir::DiagnosticArgument::DiagnosticArgumentKind::Unsigned)
      return ErrorKind(argument.getAsUnsigned());
  return ErrorKind::Internal;
}

/// An error of this kind.
inline mlir::InFlightDiagnostic emitError(mlir::Location loc, ErrorKind kind) {
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(loc);
  setErrorKind(*diagnostic.getUnderlyingDiagnostic(), kind);
  return diagnostic;
}
inline mlir::InFlightDiagnostic emitUnsupported(mlir::Operation *op) {
  return emitError(op->getLoc(), ErrorKind::Unsupported);
}

} // namespace tc::base

#endif // TC_DIALECT_TC_IR_ERRORKIND_H
