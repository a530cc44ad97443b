//===- TorchArguments.h - calls against PyTorch's signatures --------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_TORCHARGUMENTS_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_TORCHARGUMENTS_H

#include "tc/Dialect/Graph/IR/Graph.h"

namespace tc {

/// What a call of an operator of PyTorch gives in a kind that its signature does not take: "argument "dim" is
/// a string, where aten::select.int takes int". "" if nothing, or if PyTorch has no such operator.
std::string findTorchArgumentError(graph::NodeOp node);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_TORCHARGUMENTS_H
