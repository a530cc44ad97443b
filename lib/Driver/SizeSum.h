//===- SizeSum.h - sums of many size expressions --------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_SIZESUM_H
#define TC_LIB_DRIVER_SIZESUM_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>

namespace tc::driver {

/// Terms that are alike are put together: batch * 20480 + batch * 593920 is batch * 614400.
class SizeSum {
public:
  /// `symbols`: prim.symbols of the function that `expr` belongs to, which name and bound its symbols.
  void add(mlir::AffineExpr expr, mlir::ArrayAttr symbols, int64_t factor = 1);
  /// A number, or the expression as text; of more terms than people read, the value for likely sizes, with these.
  llvm::json::Value toJson() const;

private:
  struct Term {
    int64_t factor = 0;
    double likely = 0; ///< the value, with `factor`, for likely sizes
  };
  std::map<std::string, Term> terms; ///< by the product of symbols, "" for the constant
  std::map<std::string, int64_t> likelySizes;
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_SIZESUM_H
