//===- CheckBounds.cpp - refuse wild indices instead of clamping them ---------------------------------------------===//
//
// For tc-compile --check-bounds: before each op that selects by indices, counts those that are out of range, and makes
// the run fail where there are any.
//
//   %y = prim.gather %x[%i] axis = 0           %n = (number of %i outside of [-size, size))
//                                        ->    prim.bind_symbol %n to 0 {message = "..."}      a guard: s0 in [0, 0]
//                                              %y = prim.gather %x[%i] axis = 0
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "IndexedDims.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

namespace tc::prim {
#define GEN_PASS_DEF_CHECKBOUNDSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

SmallVector<IndexedDim> tc::prim::getIndexedDims(Operation *op, unsigned operand) {
  if (operand != 1)
    return {};
  SmallVector<IndexedDim> dims;
  auto tuples = [&](Value source, Value indices, int64_t batchDims) {
    std::optional<int64_t> count = getConstantSize(getSizes(indices).back());
    for (int64_t i = 0; count && i < *count; ++i)
      dims.push_back({getSizes(source)[batchDims + i], i});
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<GatherOp, GatherElementsOp, ScatterElementsOp>(
          [&](auto indexed) { dims.push_back({getSizes(indexed.getSource())[indexed.getAxis()]}); })
      .Case<GatherNDOp>(
          [&](GatherNDOp gather) { tuples(gather.getSource(), gather.getIndices(), gather.getBatchDims()); })
      .Case<ScatterNDOp>([&](ScatterNDOp scatter) { tuples(scatter.getSource(), scatter.getIndices(), 0); });
  return dims;
}

namespace {

std::string getNodeName(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  op->getLoc()->walk([&](Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    if (named)
      name = named.getName().str();
    return named ? WalkResult::interrupt() : WalkResult::advance();
  });
  return name;
}

struct CheckBoundsPass : public tc::prim::impl::CheckBoundsPassBase<CheckBoundsPass> {
  using CheckBoundsPassBase::CheckBoundsPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    SymbolTableBuilder symbols(&getContext(), function->getAttrOfType<ArrayAttr>(kSymbolsAttr));
    function.walk([&](Operation *op) {
      if (op->getNumOperands() < 2)
        return;
      PrimBuilder builder(op->getLoc(), &getContext(), symbols);
      builder.setInsertionPoint(op);
      for (const IndexedDim &dim : getIndexedDims(op, 1))
        check(builder, op, dim);
    });
    function->setAttr(kSymbolsAttr, symbols.getAttr());
  }

  void check(PrimBuilder &b, Operation *op, const IndexedDim &dim) {
    Value indices = op->getOperand(1);
    if (dim.column >= 0)
      indices = b.take(indices, b.rankOf(indices) - 1, dim.column);
    indices = b.convert(indices, b.getI64Type());
    Value size = b.broadcastInDims(b.sizeValue(dim.size), getSizes(indices), {});
    Value low = b.compare(CompareKind::LT, indices, b.sub(b.splatLike(indices, 0), size));
    Value high = b.compare(CompareKind::GE, indices, size);
    Value wild = b.add(b.convert(low, b.getI64Type()), b.convert(high, b.getI64Type()));
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(wild)));
    std::optional<int64_t> known = getConstantSize(dim.size);
    std::string range = known ? llvm::formatv("[-{0}, {0})", *known).str() : "the dim that it selects from";
    b.guard(b.reduce(ReduceKind::Sum, wild, all), 0,
            "node \"" + getNodeName(op) + "\": an index is outside of " + range);
  }
};

} // namespace
