//===- SizeSubstitution.h - numbers in place of symbols -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_SIZESUBSTITUTION_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_SIZESUBSTITUTION_H

#include "tc/Dialect/Prim/IR/Prim.h"

#include "mlir/IR/AttrTypeSubElements.h"

namespace tc::prim {

using SymbolSizes = llvm::SmallVector<std::pair<int64_t, int64_t>>; // symbol, size

/// Puts numbers in place of symbols, in types and in maps of sizes.
class SizeSubstitution {
public:
  SizeSubstitution(mlir::MLIRContext *context, int64_t symbolCount, const SymbolSizes &sizes) {
    for (int64_t i = 0; i < symbolCount; ++i)
      replacements.push_back(mlir::getAffineSymbolExpr(i, context));
    for (auto [symbol, size] : sizes)
      replacements[symbol] = mlir::getAffineConstantExpr(size, context);
    replacer.addReplacement([this](mlir::RankedTensorType type) -> mlir::Type { return convert(type); });
    replacer.addReplacement([this](mlir::AffineMapAttr attr) -> mlir::Attribute {
      mlir::AffineMap map = attr.getValue();
      if (map.getNumDims() != 0)
        return attr;
      llvm::SmallVector<mlir::AffineExpr> sizes(map.getResults());
      for (mlir::AffineExpr &size : sizes)
        size = convert(size);
      return mlir::AffineMapAttr::get(makeSizeMap(map.getContext(), sizes));
    });
  }
  SizeSubstitution(const SizeSubstitution &) = delete; // the replacer refers to it

  mlir::AffineExpr convert(mlir::AffineExpr size) const { return simplifySize(size.replaceSymbols(replacements)); }
  mlir::RankedTensorType convert(mlir::RankedTensorType type) const {
    llvm::SmallVector<mlir::AffineExpr> sizes = prim::getSizes(type);
    for (mlir::AffineExpr &size : sizes)
      size = convert(size);
    return makeType(type.getElementType(), sizes);
  }
  void convert(mlir::Operation *op) { replacer.recursivelyReplaceElementsIn(op, /*replaceAttrs=*/true, false, true); }

private:
  llvm::SmallVector<mlir::AffineExpr> replacements;
  mlir::AttrTypeReplacer replacer;
};

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_SIZESUBSTITUTION_H
