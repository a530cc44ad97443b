//===- Passes.h - passes on graphs ----------------------------------------------------------------------*- C++ -*-===//
//
// Constructors and registration of the passes in Passes.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_TRANSFORMS_PASSES_H
#define TC_DIALECT_GRAPH_TRANSFORMS_PASSES_H

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/Pass/Pass.h"

namespace tc::graph {

#define GEN_PASS_DECL
#include "tc/Dialect/Graph/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "tc/Dialect/Graph/Transforms/Passes.h.inc"

} // namespace tc::graph

#endif // TC_DIALECT_GRAPH_TRANSFORMS_PASSES_H
