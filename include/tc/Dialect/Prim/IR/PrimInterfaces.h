//===- PrimInterfaces.h - what passes and code generators ask a primitive -------------------------------*- C++ -*-===//
//
// The types that the interfaces of PrimInterfaces.td answer with, and traits of ops.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_PRIMINTERFACES_H
#define TC_DIALECT_PRIM_IR_PRIMINTERFACES_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace tc::prim {

/// What a primitive is to fusion.
enum class Role {
  Function,    ///< stays in the function: constants, control flow, guards, calls
  Movement,    ///< index map or generator: free inside a region
  Pointwise,   ///< element by element
  Reduce,      ///< combines the elements along dims of one operand, which the result lacks
  Contraction, ///< sums of products: takes an epilogue
  Window,      ///< combines the elements under a window: takes an epilogue
  Alone,       ///< a region of its own: recurrences, scans, sorts, scatters, composites that are not taken whole
};

/// How a movement op's position in its operand follows from that in its result, the simplest first.
enum class Addressing {
  View,    ///< the same elements in the same order, or one element everywhere
  Strided, ///< dims in another order, or repeated
  Part,    ///< and from a start on, at a distance
  Any
};

/// Which elements of an operand an op reads, and where.
enum class Access {
  Aligned,    ///< where mapOperand says
  Moved,      ///< all of them, elsewhere
  Part,       ///< some of them, at positions that sizes and attributes tell
  PartAtData, ///< a part that begins where data say
  AtData,     ///< each where data say
};

/// Where the element of a tensor lies in terms of a position in another space: per dim of the tensor the dim of that
/// space, or one of these.
enum : int {
  kOrigin = -1,  ///< always 0 (size 1)
  kUnknown = -2, ///< anything else
};

/// Gives an op its role.
template <Role role> struct HasRole {
  template <typename ConcreteType> class Impl : public mlir::OpTrait::TraitBase<ConcreteType, Impl> {
  public:
    static constexpr Role kRole = role;
  };
};

/// Marks ops whose result element depends on the operands' elements at the same index only.
template <typename ConcreteType>
class PointwiseTrait : public mlir::OpTrait::TraitBase<ConcreteType, PointwiseTrait> {};
/// Marks pointwise ops of which an element is a function that takes tens of instructions.
template <typename ConcreteType>
class TranscendentalTrait : public mlir::OpTrait::TraitBase<ConcreteType, TranscendentalTrait> {};
/// Marks other ops of which to make an element again costs more than to read it.
template <typename ConcreteType> class CostlyTrait : public mlir::OpTrait::TraitBase<ConcreteType, CostlyTrait> {};
/// Marks ops whose result has each element of the operand once.
template <typename ConcreteType>
class BijectiveTrait : public mlir::OpTrait::TraitBase<ConcreteType, BijectiveTrait> {};
/// Marks ops of whose result every element is one of the first operand.
template <typename ConcreteType> class SelectsTrait : public mlir::OpTrait::TraitBase<ConcreteType, SelectsTrait> {};

namespace detail {
/// Of an op that combines `combined` for each element of its first result.
mlir::AffineExpr getFlopsOfRole(mlir::Operation *op, Role role, llvm::ArrayRef<mlir::AffineExpr> combined);
} // namespace detail

} // namespace tc::prim

#include "tc/Dialect/Prim/IR/PrimInterfaces.h.inc"

#endif // TC_DIALECT_PRIM_IR_PRIMINTERFACES_H
