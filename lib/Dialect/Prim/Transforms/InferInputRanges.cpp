//===- InferInputRanges.cpp - which values of integer inputs make sense -------------------------------------------===//
//
// An input that selects from n elements has values in [-n, n); random ones outside would all be clamped. The range that
// all readers agree on is written on the argument, as `tc.range = array<i64: low, high>`, high exclusive, for the
// artifact's manifest and --verify. A symbolic n counts as its least value, 1 where that is 0.
//
//   func @main(%ids: tensor<4xi64>) { prim.gather %table[%ids] axis = 0 : (tensor<30522x768xf32>, ...) }
//   ->  %ids: tensor<4xi64> {tc.range = array<i64: -30522, 30522>}
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "IndexedDims.h"
#include "tc/Dialect/Prim/Interpreter/Tensor.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"

namespace tc::prim {
#define GEN_PASS_DEF_INFERINPUTRANGESPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

struct InferInputRangesPass : public tc::prim::impl::InferInputRangesPassBase<InferInputRangesPass> {
  using InferInputRangesPassBase::InferInputRangesPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr);
    // Set all at once: each change of one copies the list.
    SmallVector<DictionaryAttr> attrs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      DictionaryAttr own = function.getArgAttrDict(i);
      attrs.push_back(own ? own : DictionaryAttr::get(&getContext()));
    }
    bool changed = false;
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || !isa<IntegerType>(type.getElementType()) || type.getElementTypeBitWidth() < 8)
        continue;
      bound = INT64_MAX;
      seen.clear();
      follow(argument);
      if (bound == INT64_MAX)
        continue;
      int64_t low = isUnsignedElement(type.getElementType()) ? 0 : -bound;
      // As far as the element type reaches.
      if (type.getElementTypeBitWidth() < 64) {
        unsigned bits = type.getElementTypeBitWidth() - (low < 0 ? 1 : 0);
        bound = std::min(bound, int64_t(1) << bits);
        low = std::max(low, low < 0 ? -(int64_t(1) << bits) : 0);
      }
      NamedAttrList with(attrs[argument.getArgNumber()]);
      with.set(kRangeAttr, DenseI64ArrayAttr::get(&getContext(), {low, bound}));
      attrs[argument.getArgNumber()] = with.getDictionary(&getContext());
      changed = true;
    }
    if (changed)
      function.setAllArgAttrs(attrs);
  }

  /// Lowers `bound` to the extents that the elements of `value` index.
  void follow(Value value) {
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.pop_back_val();
      if (!seen.insert(next).second)
        continue;
      for (OpOperand &use : next.getUses()) {
        Operation *op = use.getOwner();
        for (const IndexedDim &dim : getIndexedDims(op, use.getOperandNumber()))
          bound = std::min(bound, std::max<int64_t>(getSizeBounds(dim.size, symbols).first, 1));
        // Elements that stay what they are.
        const bool isSelected = op->hasTrait<SelectsTrait>() && use.getOperandNumber() == 0;
        auto convert = dyn_cast<ConvertOp>(op);
        if (isSelected || isa<ConcatOp>(op) ||
            (convert && isa<IntegerType>(getElementTypeOrSelf(convert.getResult().getType()))))
          work.push_back(op->getResult(0));
      }
    }
  }

  ArrayAttr symbols;
  int64_t bound = 0;
  llvm::DenseSet<Value> seen;
};

} // namespace
