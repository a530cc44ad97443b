//===- CustomOperator.h - nodes of operators of the user's own ------------------------------------------*- C++ -*-===//
//
// They become prim.host_call of a function that the runtime is given. Attributes follow the operands as constants; what
// the operator writes follows its results.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_CUSTOMOPERATOR_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_CUSTOMOPERATOR_H

#include "tc/Dialect/Graph/Custom/CustomOperator.h"

#include "NodeContext.h"

namespace tc {

/// Sets the results of the node of `ctx`. `early`: only their types matter, and no pass has made values of writes.
mlir::LogicalResult convertCustomOperator(NodeContext &ctx, const CustomOperator &custom, bool early);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_CUSTOMOPERATOR_H
