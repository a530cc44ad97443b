//===- Graph.h - the graph dialect ----------------------------------------------------------------------*- C++ -*-===//
//
// A model as its file says it, and the contract between front ends and the conversion to `prim`. GraphOps.td has the
// meaning of ops and attributes. Every op has the location NameLoc("<node name>") around a line of the model's file,
// where the line is the index of the node in its graph, counted from 1.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_IR_GRAPH_H
#define TC_DIALECT_GRAPH_IR_GRAPH_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tc/Dialect/TC/IR/TC.h"
#include <optional>
#include <string>

#include "tc/Dialect/Graph/IR/GraphDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Graph/IR/GraphAttrs.h.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Graph/IR/GraphOps.h.inc"

namespace tc::graph {

/// Attributes of arguments and results of graph.func; Graph_Dialect in GraphOps.td says what they hold.
inline constexpr llvm::StringLiteral kNameAttr = "graph.name";
inline constexpr llvm::StringLiteral kDimsAttr = "graph.dims";
inline constexpr llvm::StringLiteral kDefaultAttr = "graph.default";
inline constexpr llvm::StringLiteral kDenotationAttr = "graph.denotation";
inline constexpr llvm::StringLiteral kDeclaredTypeAttr = "graph.declared_type";
/// Attribute of a node that a front end or a pass on graphs refuses: a sentence, which reads on from the node's type,
/// or stands alone where the domain is `prim`, whose nodes are constructs of code; "": nothing is known of the
/// operator.
inline constexpr llvm::StringLiteral kRefusedAttr = "graph.refused";
/// Attribute of a node that moves what another computed into memory that it writes: the other's type, such as
/// "add_.Tensor". As PyTorch does, the memory's type must then be able to hold the kind of numbers that were computed.
inline constexpr llvm::StringLiteral kComputedByAttr = "graph.computed_by";
/// Attribute of a node that stands for what a front end does not know any more: why, which is said only of a graph
/// where nothing else is refused. A graph with either attribute is not complete.
inline constexpr llvm::StringLiteral kUnknownAttr = "graph.unknown";
/// Attributes of the module.
inline constexpr llvm::StringLiteral kProducerAttr = "graph.producer";
inline constexpr llvm::StringLiteral kGraphNameAttr = "graph.name";
inline constexpr llvm::StringLiteral kIrVersionAttr = "graph.ir_version";
inline constexpr llvm::StringLiteral kMetadataAttr = "graph.metadata";

/// Whether values of the graph dialect may have this type: a tensor (ranked or not), a type of `tc`, or none.
bool isGraphType(mlir::Type type);

/// The name that a front end gave to an op, for messages: from the location's NameLoc, or "" where it has none.
llvm::StringRef getNodeName(mlir::Location loc);

} // namespace tc::graph

#endif // TC_DIALECT_GRAPH_IR_GRAPH_H
