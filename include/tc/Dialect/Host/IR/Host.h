//===- Host.h - the host dialect ------------------------------------------------------------------------*- C++ -*-===//
//
// The program around the kernels (HostOps.td). At the end of the kernel phase the model's function holds host.constant,
// host.launch, prim.reshape (a view), prim.sizes, prim.bind_symbol and control flow; beside it stands one host.variant
// per target variant with the kernels.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_HOST_IR_HOST_H
#define TC_DIALECT_HOST_IR_HOST_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "tc/Dialect/Host/IR/HostDialect.h.inc"
#include "tc/Dialect/Host/IR/HostEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Host/IR/HostAttrs.h.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Host/IR/HostOps.h.inc"

namespace tc::host {

// The memory plan (tc-plan-memory) as attributes.
/// On every op of the function that has results, and on the function for its arguments: ArrayAttr of PlaceAttr.
inline constexpr llvm::StringLiteral kPlacesAttr = "host.places";
/// On the function: AffineMapAttr, bytes of each segment of the arena, multiples of 64. The segments follow one
/// another, and scratch follows them.
inline constexpr llvm::StringLiteral kArenaAttr = "host.arena";
/// On the function: AffineMapAttr, bytes of scratch per worker; the greatest result counts.
/// Scratch whose size depends on data is not among them: its launch makes it.
inline constexpr llvm::StringLiteral kScratchAttr = "host.scratch";
/// On the function: IntegerAttr i64, the most bytes of values of static size that are live at once (lower bound of the
/// arena).
inline constexpr llvm::StringLiteral kLiveAttr = "host.live";
/// On the function: IntegerAttr i64, bytes of the weights section, which all functions share.
inline constexpr llvm::StringLiteral kWeightsAttr = "host.weights";
/// On kernel.region and host.launch: ArrayAttr of StringAttr, the model's nodes that they compute.
inline constexpr llvm::StringLiteral kNodesAttr = "nodes";
/// On host.launch: StringAttr, the strategy of the schedule that its kernel obeys.
inline constexpr llvm::StringLiteral kStrategyAttr = "strategy";
/// On a module inside of a GPU variant, which holds the kernels of one chip: its #machine.gpu.
inline constexpr llvm::StringLiteral kMachineAttr = "host.machine";
/// On host.binary of a GPU variant: array of {kind = a TCRT_SECTION_*, arch = tcrt_section_t::arch, object = bytes}.
inline constexpr llvm::StringLiteral kDeviceCodeAttr = "host.device_code";

/// The launches that run at the same time as `launch`, itself among them, in order.
llvm::SmallVector<LaunchOp> getGroupMembers(LaunchOp launch);
/// Whether the host program takes one of the op's regions by sizes alone, without a look at data.
bool choosesBySizes(mlir::Operation *op);
/// Launches of the block and what is in it that one run has at most, each part as often as it is written: of what sizes
/// choose among, one part runs.
int64_t countLaunches(mlir::Block &block);
/// The value whose memory `value` is, through views and what launches tie.
mlir::Value getMemorySource(mlir::Value value);
/// Bytes of one element in memory as numerator over `elementsPerGroup`: i1 takes a byte, 4-bit and 2-bit types are
/// packed. Returns bits per element (8 for i1); 0 for types without a size.
unsigned getElementBits(mlir::Type elementType);
/// Bytes of the arena of a function that has a memory plan, without scratch; null without a plan.
mlir::AffineExpr getArenaBytes(mlir::Operation *function);
/// Bytes of a tensor, not rounded.
mlir::AffineExpr getSizeBytes(mlir::Type tensorType);
/// Positions of the symbols that `expr` mentions.
llvm::SmallVector<unsigned> getSymbols(mlir::AffineExpr expr);
/// The names of the model's nodes in locations, in order, without repetition.
llvm::SmallVector<llvm::StringRef> getNodeNames(llvm::ArrayRef<mlir::Location> locs);
/// The names of the nodes that a region or launch computes: kNodesAttr, else those of its location.
llvm::SmallVector<llvm::StringRef> getNodeNames(mlir::Operation *op);
/// The same in one line, as people read it.
std::string joinNodeNames(mlir::Operation *op);

} // namespace tc::host

#endif // TC_DIALECT_HOST_IR_HOST_H
