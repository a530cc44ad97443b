//===- ExportedProgram.h - torch.export archives (.pt2) to graph ----------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_FRONTEND_EXPORTEDPROGRAM_H
#define TC_FRONTEND_EXPORTEDPROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace tc {

/// Reads a .pt2 archive as torch.export.save writes it (archive format pt2, schema version 8). A call of
/// torch.ops.aten.linear.default becomes `graph.node "aten":"linear.default"`; its tensor arguments are the operands,
/// named by the attribute `arg_names` (a list argument `tensors` gives tensors.0, tensors.1, ...), all other arguments
/// are attributes of their names, absent where PyTorch's None or default stands. A number that the program computes is
/// an operand, whose name the attribute holds; of a list of numbers, each entry. Parameters and buffers are mapped, not
/// copied. Errors are sentences that name file and node.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importExportedProgram(mlir::MLIRContext *context,
                                                                        llvm::StringRef path);

} // namespace tc

#endif // TC_FRONTEND_EXPORTEDPROGRAM_H
