//===- Emission.h - how the values of each op are emitted -----------------------------------------------*- C++ -*-===//
//
// One entry for each op that may stand inside of a fused region, but for pointwise ops, whose code on scalars and
// vectors stands in Pointwise.cpp. Each family of ops has a file that adds its entries (EmitMovement.cpp, ...).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_EMISSION_H
#define TC_LIB_CODEGEN_EMISSION_H

#include "Common/Emitter.h"

namespace tc::codegen {

struct Emission {
  /// The element of the op's result at `at`, one lane or a vector of them, as Emitter::emit gives it.
  mlir::Value (*value)(Emitter &e, mlir::Operation *op, llvm::ArrayRef<Index> at);
  /// Of bijections: the position in the result of the operand's element at `at`; else null.
  llvm::SmallVector<Index> (*forward)(Emitter &e, mlir::Operation *op, llvm::ArrayRef<Index> at);
};

class EmissionRegistry {
public:
  static const EmissionRegistry &get();
  /// Null: the op has none.
  const Emission *find(mlir::Operation *op) const {
    const auto entry = entries.find(op->getName().getTypeID());
    return entry == entries.end() ? nullptr : &entry->second;
  }

  /// Adds the functions for ops of type OpTy, which they take instead of an Operation *.
  template <typename OpTy, mlir::Value (*value)(Emitter &, OpTy, llvm::ArrayRef<Index>),
            llvm::SmallVector<Index> (*forward)(Emitter &, OpTy, llvm::ArrayRef<Index>) = nullptr>
  void add() {
    Emission emission{
        [](Emitter &e, mlir::Operation *op, llvm::ArrayRef<Index> at) { return value(e, mlir::cast<OpTy>(op), at); },
        nullptr};
    if constexpr (forward != nullptr)
      emission.forward = [](Emitter &e, mlir::Operation *op, llvm::ArrayRef<Index> at) {
        return forward(e, mlir::cast<OpTy>(op), at);
      };
    entries[mlir::TypeID::get<OpTy>()] = emission;
  }

private:
  llvm::DenseMap<mlir::TypeID, Emission> entries;
};

void addMovementEmissions(EmissionRegistry &registry);
void addReductionEmissions(EmissionRegistry &registry);
void addProductEmissions(EmissionRegistry &registry);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_EMISSION_H
