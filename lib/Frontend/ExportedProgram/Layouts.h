//===- Layouts.h - strides of a program's example -------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_LAYOUTS_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_LAYOUTS_H

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Format/Json.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

namespace tc::exported {

/// Gives nodes the attribute of tc/Dialect/Graph/IR/Layouts.h, from the tensor_meta of their results.
class Layouts {
public:
  /// `metas`: for each result; null where it is no tensor.
  void describe(mlir::Operation *op, llvm::ArrayRef<const nlohmann::json *> metas);
  /// Of an argument.
  void describe(mlir::BlockArgument argument, const nlohmann::json *meta);
  /// When all arguments are described.
  void describe(graph::FuncOp function);

private:
  /// Those that are not in row-major order.
  llvm::DenseSet<mlir::Value> strided;
  llvm::SmallVector<int64_t> arguments;
};

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_LAYOUTS_H
