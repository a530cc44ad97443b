//===- SpecializeSizes.cpp - code of their own for listed sizes ---------------------------------------------------===//
//
//   func(x: s0 x 3)   ->   func(x: s0 x 3) {
//     y = f(x)               if (s0 == 8) { yield reshape(f(reshape(x : 8 x 3)) : s0 x 3) }
//                            else { yield f(x) }
//
// One body per combination of the listed sizes of all symbols, in the order in which they are listed; the general one
// is the last. Each is rewritten, fused and scheduled by itself; what they read of weights is stored once.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tc::prim {
#define GEN_PASS_DEF_SPECIALIZESIZESPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A program takes as many times as long to compile.
constexpr size_t kMostBodies = 64;

using Combination = SmallVector<std::pair<int64_t, int64_t>>; // symbol, size

/// Puts numbers in place of symbols, in types and in maps of sizes.
class Substitution {
public:
  Substitution(MLIRContext *context, int64_t symbolCount, const Combination &sizes) {
    for (int64_t i = 0; i < symbolCount; ++i)
      replacements.push_back(getAffineSymbolExpr(i, context));
    for (auto [symbol, size] : sizes)
      replacements[symbol] = getAffineConstantExpr(size, context);
    replacer.addReplacement([this](RankedTensorType type) -> Type { return convert(type); });
    replacer.addReplacement([this](AffineMapAttr attr) -> Attribute {
      AffineMap map = attr.getValue();
      if (map.getNumDims() != 0)
        return attr;
      return AffineMapAttr::get(makeSizeMap(map.getContext(), convert(llvm::to_vector(map.getResults()))));
    });
  }

  RankedTensorType convert(RankedTensorType type) {
    return makeType(type.getElementType(), convert(prim::getSizes(type)));
  }
  void convert(Operation *op) { replacer.recursivelyReplaceElementsIn(op, /*replaceAttrs=*/true, false, true); }

private:
  SmallVector<AffineExpr> convert(SmallVector<AffineExpr> sizes) const {
    for (AffineExpr &size : sizes)
      size = simplifySize(size.replaceSymbols(replacements));
    return sizes;
  }

  SmallVector<AffineExpr> replacements;
  AttrTypeReplacer replacer;
};

struct SpecializeSizes : public prim::impl::SpecializeSizesPassBase<SpecializeSizes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto listed = function->getAttrOfType<ArrayAttr>(kListedSizesAttr);
    if (!listed)
      return;
    function->removeAttr(kListedSizesAttr);
    SmallVector<Combination> combinations = {{}};
    for (auto sizes : listed.getAsRange<DenseI64ArrayAttr>()) {
      SmallVector<Combination> longer;
      for (const Combination &combination : combinations)
        for (int64_t size : sizes.asArrayRef().drop_front()) {
          longer.push_back(combination);
          longer.back().push_back({sizes[0], size});
        }
      combinations = std::move(longer);
      if (combinations.size() > kMostBodies) {
        base::emitError(function.getLoc(), base::ErrorKind::Invalid)
            << "--dim lists sizes with more than " << kMostBodies
            << " combinations, each of which would be compiled; list fewer";
        return signalPassFailure();
      }
    }
    if (bindsSymbols(function)) {
      function.emitWarning()
          << "--dim lists sizes, which get no code of their own: other sizes of the model depend on its data";
      return;
    }

    Block *entry = &function.getBody().front();
    Operation *terminator = entry->getTerminator();
    Block *general = new Block();
    general->getOperations().splice(general->end(), entry->getOperations(), entry->begin(),
                                    Block::iterator(terminator));
    ImplicitLocOpBuilder b(function.getLoc(), &getContext());
    b.setInsertionPointToEnd(general);
    // States are written behind the choice.
    SmallVector<Value> yielded(terminator->getOperands());
    SmallVector<WriteStateOp> writes(general->getOps<WriteStateOp>());
    for (WriteStateOp write : writes) {
      yielded.push_back(write.getValue());
      write->moveBefore(terminator);
    }
    YieldOp::create(b, yielded);

    const unsigned symbolCount = function->getAttrOfType<ArrayAttr>(kSymbolsAttr).size();
    const SmallVector<Type> types(ValueRange(yielded).getTypes());
    Block *where = entry;
    SmallVector<Attribute> done;
    for (const Combination &combination : combinations) {
      if (where == entry)
        b.setInsertionPoint(writes.empty() ? terminator : writes.front());
      else
        b.setInsertionPointToEnd(where);
      Value always = SplatOp::create(b, RankedTensorType::get({}, b.getI1Type()), b.getBoolAttr(true));
      auto choice = IfOp::create(b, types, always, ArrayRef<int64_t>());
      choice->setAttr(kWhenAttr, makeSet(&getContext(), symbolCount, combination));
      if (where != entry)
        YieldOp::create(b, choice.getResults());
      else
        takeResults(choice.getResults(), terminator, writes);
      fill(choice.getThenRegion().emplaceBlock(), *general, Substitution(&getContext(), symbolCount, combination),
           types);
      where = &choice.getElseRegion().emplaceBlock();
      SmallVector<int64_t> numbers;
      for (auto [symbol, size] : combination)
        numbers.append({symbol, size});
      done.push_back(b.getDenseI64ArrayAttr(numbers));
    }
    where->getOperations().splice(where->end(), general->getOperations());
    delete general;
    function->setAttr(kSpecializedAttr, b.getArrayAttr(done));
  }

  /// A symbol of the function cannot have two definitions.
  static bool bindsSymbols(func::FuncOp function) {
    return function
        .walk(
            [](Operation *op) { return getBoundSymbols(op).empty() ? WalkResult::advance() : WalkResult::interrupt(); })
        .wasInterrupted();
  }

  static void takeResults(ValueRange results, Operation *terminator, MutableArrayRef<WriteStateOp> writes) {
    terminator->setOperands(results.drop_back(writes.size()));
    for (auto [write, value] : llvm::zip_equal(writes, results.take_back(writes.size())))
      write.getValueMutable().assign(value);
  }

  /// The runs that have these sizes.
  static IntegerSetAttr makeSet(MLIRContext *context, unsigned symbolCount, const Combination &combination) {
    SmallVector<AffineExpr> differences;
    for (auto [symbol, size] : combination)
      differences.push_back(getAffineSymbolExpr(symbol, context) - size);
    const SmallVector<bool> areEqual(differences.size(), true);
    return IntegerSetAttr::get(IntegerSet::get(0, symbolCount, differences, areEqual));
  }

  /// The general body with these sizes.
  void fill(Block &block, Block &general, Substitution substitution, TypeRange types) {
    func::FuncOp function = getOperation();
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    IRMapping mapping;
    for (BlockArgument argument : function.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType())) {
        const RankedTensorType fixed = substitution.convert(type);
        if (fixed != type)
          mapping.map(argument, ReshapeOp::create(b, argument.getLoc(), fixed, argument));
      }
    for (Operation &op : general)
      substitution.convert(b.clone(op, mapping));
    Operation *yield = block.getTerminator();
    b.setInsertionPoint(yield);
    for (OpOperand &operand : yield->getOpOperands())
      if (operand.get().getType() != types[operand.getOperandNumber()])
        operand.set(ReshapeOp::create(b, operand.get().getLoc(), types[operand.getOperandNumber()], operand.get()));
  }
};

} // namespace
