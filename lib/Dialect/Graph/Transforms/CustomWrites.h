//===- CustomWrites.h - custom operators that write their operands --------------------------------------*- C++ -*-===//
//
// What the pass that makes values of writes asks of operators of the user's own (CustomOperator.h).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_GRAPH_TRANSFORMS_CUSTOMWRITES_H
#define TC_LIB_DIALECT_GRAPH_TRANSFORMS_CUSTOMWRITES_H

#include "tc/Dialect/Graph/Custom/CustomOperator.h"

#include "mlir/IR/Builders.h"

namespace tc::graph {

/// The operands that a call writes, in the order of its schema. Nullopt where the call has another form than that: the
/// conversion says what is wrong.
std::optional<llvm::SmallVector<unsigned>> findWrittenOperands(NodeOp node, const torch::Schema &schema);

/// The node that returns, behind what the operator makes, the new values of `written`; it takes the uses of the former.
/// `node` stays, with uses only of the results that are names of what it writes.
NodeOp makeFunctional(mlir::OpBuilder &builder, NodeOp node, const torch::Schema &schema,
                      llvm::ArrayRef<unsigned> written);

/// What torch.export's run_decompositions makes of calls that write (auto_functionalized, auto_functionalized_v2) as
/// such calls again, on copies of what they write: views of these are then those of any program.
void expandAutoFunctionalized(FuncOp function, const CustomOperators &customs);

} // namespace tc::graph

#endif // TC_LIB_DIALECT_GRAPH_TRANSFORMS_CUSTOMWRITES_H
