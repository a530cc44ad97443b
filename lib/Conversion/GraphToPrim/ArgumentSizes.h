//===- ArgumentSizes.h - sizes of a function's arguments, by model and options --------------------------*- C++ -*-===//
//
// Open dims become symbols: one for each name that the model gives to dims, or that its place gives (INPUT_dimN). What
// --dim and --shape say, and the ranges and maps of the model (tc/Dialect/Graph/IR/Signature.h), bounds and joins them.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ARGUMENTSIZES_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ARGUMENTSIZES_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "llvm/ADT/StringMap.h"

#include <functional>

namespace tc {

class ArgumentSizes {
public:
  using Report = std::function<void(mlir::Location, const llvm::Twine &)>;
  /// `report` takes sentences on what contradicts the model.
  ArgumentSizes(const GraphToPrimOptions &options, PrimBuilder &builder, Report report)
      : options(options), builder(builder), report(std::move(report)) {}

  /// Finds the dims that --dim means; before all others.
  void readOptions(graph::FuncOp source);
  /// The sizes of an argument, a ranked tensor; on failure the report was called.
  mlir::FailureOr<Sizes> read(graph::FuncOp source, unsigned index);
  /// Reports options that name no input and no dim; after all arguments were read.
  void checkOptions(graph::FuncOp source);
  /// The arguments of `block` with the sizes that maps of the model give them, behind guards where they may have
  /// others.
  llvm::SmallVector<mlir::Value> applyMaps(graph::FuncOp source, mlir::Block *block);

  /// prim.listed_sizes: for each symbol that --dim lists sizes of, its number and the sizes; null: for none.
  mlir::ArrayAttr getListedSizes() const;
  /// prim.buckets likewise.
  mlir::ArrayAttr getBuckets() const;

private:
  mlir::FailureOr<mlir::AffineExpr> openSize(const std::string &key, int64_t wanted, std::pair<int64_t, int64_t> range,
                                             mlir::Location loc, llvm::StringRef input);

  const GraphToPrimOptions &options;
  PrimBuilder &builder;
  Report report;
  /// options.dims by the dims' own names.
  std::map<std::string, DimSizes> givenDims;
  llvm::SmallVector<mlir::Attribute> listed, buckets;
  llvm::StringMap<mlir::AffineExpr> namedSizes;
};

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ARGUMENTSIZES_H
