//===- PrecisionSwitch.h - products whose precision is an input of the run ------------------------------*- C++ -*-===//
//
// What --precision auto:R decides by: one program that computes a model in any mixture of precisions. Operands of each
// product of f32 are rounded as an input says, in f32:
//
//   dot(x, w)   ->   dot(select(switch[3] == bf16, f32(bf16(x)), x), ...)
//
// Products of rounded operands are those of tc-round-products up to the order of sums, also of types that only other
// machines multiply (tf32). With a switch of zeros it is the model as it stands.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_TRANSFORMS_PRECISIONSWITCH_H
#define TC_DIALECT_PRIM_TRANSFORMS_PRECISIONSWITCH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace tc {
class NodeValues;
} // namespace tc

namespace tc::prim {

/// What operands are rounded to; the number is what an element of the switch is set to.
enum class Rounding { F32, Bf16, Tf32, F16 };
inline constexpr unsigned kRoundingCount = 4;
/// As --precision names them.
llvm::StringRef getName(Rounding rounding);
std::optional<Rounding> parseRounding(llvm::StringRef name);

/// Whether products in `rounding` round this operand of `product`: of f16 those that are made of constants.
bool roundsOperand(mlir::Operation *product, mlir::Value operand, Rounding rounding);

/// Products of f32 that have one precision, as they are of nodes that go together.
struct ProductGroup {
  std::vector<std::string> names; ///< of nodes; empty: of none that has a name
  std::vector<std::string> cover; ///< so many of these that each product is of one
  Rounding fixed = Rounding::F32; ///< where `isFixed`: what the user said
  bool isFixed = false;
  std::array<bool, kRoundingCount> can = {}; ///< whether there are operands to round
  std::string whyNot;                        ///< none of these
  double flops = 0;                          ///< at likely sizes
  double bytes = 0, constantBytes = 0;       ///< of operands
};

/// Appends an argument tensor<Nxi32> to the function, the switch: an element for each group, which takes `roundings`,
/// or what `fixed` (NODE=PRECISION) says of its nodes.
std::vector<ProductGroup> addPrecisionSwitch(mlir::func::FuncOp function, llvm::ArrayRef<Rounding> roundings,
                                             const NodeValues &fixed);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_TRANSFORMS_PRECISIONSWITCH_H
