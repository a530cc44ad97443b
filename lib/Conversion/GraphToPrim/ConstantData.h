//===- ConstantData.h - reading and making constants ----------------------------------------------------*- C++ -*-===//
//
// A constant is a dense attribute (splats and up to 64 elements) or #tc.data.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_CONSTANTDATA_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_CONSTANTDATA_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tc {

class NodeContext;
class PrimBuilder;

/// Elements of an integer constant (bool: 0 or 1) of at most 4096 elements.
std::optional<llvm::SmallVector<int64_t>> readInts(mlir::TypedAttr value);
/// Elements of a float constant of at most 4096 elements.
std::optional<llvm::SmallVector<double>> readFloats(mlir::TypedAttr value);
/// prim.constant in its canonical form, a scatter for #graph.sparse; null for what is no constant of numbers.
mlir::Value makeConstant(PrimBuilder &b, mlir::TypedAttr value);
/// The same, with an error.
mlir::FailureOr<mlir::Value> makeConstant(NodeContext &ctx, mlir::TypedAttr value);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_CONSTANTDATA_H
