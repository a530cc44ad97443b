//===- Sizes.h - sizes of what programs of torch.export take --------------------------------------------*- C++ -*-===//
//
// An archive has expressions over symbols where an input's size is no number, ranges of the symbols, and conditions
// that the export found. The names that a user gave to dims are not in it. A symbol is called after the first dim that
// is just that symbol: of forward(self, x) its first dim is "x.0", wherever else it stands. A dim that is an
// expression, such as one more than another, has a name of its own, and a map that says what it must be.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZES_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZES_H

#include "Archive.h"
#include "SizeExpr.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace tc::exported {

/// A tensor, or an integer that the caller gives (0-D).
struct ProgramInput {
  llvm::StringRef value; ///< in the program
  std::string name;      ///< for the caller
  mlir::RankedTensorType type;
  llvm::SmallVector<std::optional<SizeExpr>> sizes; ///< of each dim
  std::optional<SizeExpr> number;                   ///< what an integer is called in expressions
};

class ProgramSizes {
public:
  /// Reads what `program` says of these inputs' sizes; the text is what is wrong with it, or "".
  std::string read(mlir::MLIRContext *context, llvm::ArrayRef<ProgramInput> inputs, const json &program);
  /// The attributes of an argument of graph.func.
  mlir::DictionaryAttr describe(mlir::OpBuilder &builder, const ProgramInput &input, size_t index) const;
  /// The names of an output's dims.
  mlir::ArrayAttr nameDims(mlir::OpBuilder &builder, llvm::ArrayRef<std::optional<SizeExpr>> sizes) const;
  /// Nodes that refuse a run whose inputs do not meet the conditions that ranges and maps do not say.
  void emitGuards(mlir::OpBuilder &builder, mlir::ValueRange arguments, int64_t opset) const;

private:
  /// A dim of an input. Dims are numbered through all inputs.
  struct Dim {
    size_t input, dim;
    std::string name; ///< "" of a number
    int64_t min = 0, max = INT64_MAX;
    std::optional<SizeExpr> mustBe;
  };
  /// A symbol is (size of dim - offset) / factor, or the number that an input gives.
  struct Place {
    size_t at;
    int64_t factor = 1, offset = 0;
    bool isNumber = false;
  };
  struct Guard {
    SizeExpr condition;
    std::string text;
  };

  void readRanges(llvm::ArrayRef<ProgramInput> inputs, const json &program);
  std::string readGuards(llvm::ArrayRef<ProgramInput> inputs, const json &program);
  /// Whether nodes can compute it.
  bool isKnown(const SizeExpr &expr) const;
  void unify(const std::string &keep, const std::string &drop);
  void narrow(const std::string &dim, int64_t min, int64_t max);
  std::optional<mlir::AffineExpr> asAffine(const SizeExpr &expr, mlir::MLIRContext *context) const;
  std::string describeExpr(const SizeExpr &expr) const;

  std::vector<Dim> dims;
  std::vector<size_t> firstDim; ///< of each input
  llvm::StringMap<Place> symbols;
  std::vector<Guard> guards;
};

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_SIZES_H
