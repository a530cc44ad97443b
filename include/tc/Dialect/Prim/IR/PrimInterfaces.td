//===- PrimInterfaces.td - what passes and code generators ask a primitive ------------------------------*- tablegen -*-===//
//
// Every op of prim has these interfaces. What most ops answer is the default; an op that answers otherwise says so in
// PrimOps.td, and in IR/Interfaces.cpp where it takes more than a word. No pass lists primitives for what stands here.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_PRIMINTERFACES
#define TC_DIALECT_PRIM_IR_PRIMINTERFACES

include "mlir/IR/OpBase.td"

def Prim_FusionOpInterface : OpInterface<"FusionOpInterface"> {
  let cppNamespace = "::tc::prim";
  let description = [{
    What a primitive is to fusion, and how its elements depend on those of its operands. Queries are made often: none but those
    of lists allocates.
  }];
  let methods = [
    InterfaceMethod<"What the op is to fusion; Prim_Op's parameter.", "::tc::prim::Role", "getRole", (ins), [{}],
                    [{ return ConcreteOp::kRole; }]>,
    InterfaceMethod<"Of movement ops: how positions in the operand follow from those in the result.",
                    "::tc::prim::Addressing", "getAddressing", (ins), [{}], [{ return ::tc::prim::Addressing::Any; }]>,
    InterfaceMethod<"Of ops that read elements again and again: the movement ops that they read through, up to this one; what lies "
                    "behind others is made in memory.",
                    "::tc::prim::Addressing", "readsThrough", (ins), [{}], [{ return ::tc::prim::Addressing::Any; }]>,
    InterfaceMethod<"Which elements of operand number `operand` the op reads.",
                    "::tc::prim::Access", "getAccess", (ins "unsigned":$operand), [{}], [{
      const bool isMoved = ConcreteOp::kRole == ::tc::prim::Role::Movement && operand == 0 &&
                           $_op.getAddressing() != ::tc::prim::Addressing::Strided;
      return isMoved ? ::tc::prim::Access::Moved : ::tc::prim::Access::Aligned;
    }]>,
    InterfaceMethod<"Where the element of operand number `operand` lies that an element of the result is made of: sets map[i] for "
                    "those of the operand's dims whose position is that along a dim of the result, which `result` tells.",
                    "void", "mapOperand",
                    (ins "unsigned":$operand, "::llvm::ArrayRef<int>":$result, "::llvm::MutableArrayRef<int>":$map), [{}], [{
      if (ConcreteOp::kRole == ::tc::prim::Role::Pointwise)
        ::llvm::copy(result, map.begin());
    }]>,
    InterfaceMethod<"Of movement ops: the dim of the first operand along which neighbours along dim `dim` of the result are "
                    "neighbours; none: they lie apart, or their distance is data.",
                    "::std::optional<int64_t>", "getSourceDim", (ins "int64_t":$dim), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<"Of reductions: the dims of the first operand that the result lacks.",
                    "::llvm::SmallVector<int64_t>", "getReducedDims", (ins), [{}], [{ return {}; }]>
  ];
}

def Prim_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::tc::prim";
  let description = "What a primitive costs, as size expressions over the function's symbols.";
  let methods = [
    InterfaceMethod<"The extents of what one element of the result is combined of; none: of one element of each operand.",
                    "::llvm::SmallVector<::mlir::AffineExpr>", "getCombinedSizes", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"Floating-point operations, a function counting as one, in canonical form; movement takes none.",
                    "::mlir::AffineExpr", "getFlops", (ins), [{}], [{
      return ::tc::prim::detail::getFlopsOfRole($_op, ConcreteOp::kRole, $_op.getCombinedSizes());
    }]>
  ];
}

#endif
