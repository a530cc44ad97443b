//===- SpecializeSizes.cpp - code of their own for listed sizes ---------------------------------------------------===//
//
//   func(x: s0 x 3)   ->   func(x: s0 x 3) {
//     y = f(x)               if (s0 == 8) { yield reshape(f(reshape(x : 8 x 3)) : s0 x 3) }
//                            else { yield f(x) }
//
// One body per combination of the listed sizes of all symbols, in the order in which they are listed; the general one
// is the last. Each is rewritten, fused and scheduled by itself; what they read of weights is stored once. Buckets give
// bodies for all sizes up to each, on padded tensors (BucketBody.h); with them there is no general one, as the largest
// bucket is the most that the function takes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BucketBody.h"

#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <set>

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

struct Combination {
  SymbolSizes fixed, buckets;
};

struct SpecializeSizes : public prim::impl::SpecializeSizesPassBase<SpecializeSizes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    const auto listed = readLists(function, kListedSizesAttr), buckets = readLists(function, kBucketsAttr);
    if (listed.empty() && buckets.empty())
      return;
    const SmallVector<Combination> kNone(1);
    SmallVector<Combination> combinations;
    if (!listed.empty())
      combinations = combine(combine(kNone, listed, &Combination::fixed), buckets, &Combination::buckets);
    if (!buckets.empty())
      llvm::append_range(combinations, combine(kNone, buckets, &Combination::buckets));
    if (combinations.size() > kMostBodies) {
      base::emitError(function.getLoc(), base::ErrorKind::Invalid)
          << "--dim lists sizes with more than " << kMostBodies
          << " combinations, each of which would be compiled; list fewer";
      return signalPassFailure();
    }
    if (bindsSymbols(function)) {
      function.emitWarning() << "--dim lists sizes" << (buckets.empty() ? "" : " or buckets")
                             << ", which get no code of their own: other sizes of the model depend on its data";
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
    std::set<std::string> exactCopies;
    for (const Combination &combination : combinations) {
      SmallVector<int64_t> numbers;
      for (auto [symbol, size] : combination.fixed)
        numbers.append({symbol, size, 0});
      for (auto [symbol, size] : combination.buckets)
        numbers.append({symbol, size, 1});
      done.push_back(b.getDenseI64ArrayAttr(numbers));
      if (where == entry)
        b.setInsertionPoint(writes.empty() ? terminator : writes.front());
      else
        b.setInsertionPointToEnd(where);
      const bool isLast = !buckets.empty() && &combination == &combinations.back();
      if (isLast) { // for what is left
        Block rest;
        Block &block = where == entry ? rest : *where;
        fill(block, *general, combination, types, exactCopies);
        if (where == entry) {
          Operation *yield = block.getTerminator();
          takeResults(yield->getOperands(), terminator, writes);
          yield->erase();
          entry->getOperations().splice(b.getInsertionPoint(), block.getOperations());
        }
        where = nullptr;
        break;
      }
      Value always = SplatOp::create(b, RankedTensorType::get({}, b.getI1Type()), b.getBoolAttr(true));
      auto choice = IfOp::create(b, types, always, ArrayRef<int64_t>());
      choice->setAttr(kWhenAttr, makeSet(&getContext(), symbolCount, combination));
      if (where != entry)
        YieldOp::create(b, choice.getResults());
      else
        takeResults(choice.getResults(), terminator, writes);
      fill(choice.getThenRegion().emplaceBlock(), *general, combination, types, exactCopies);
      where = &choice.getElseRegion().emplaceBlock();
    }
    if (where)
      where->getOperations().splice(where->end(), general->getOperations());
    else
      general->dropAllReferences();
    delete general;
    function->setAttr(kSpecializedAttr, b.getArrayAttr(done));
    if (!exactCopies.empty())
      warnOfExactCopies(exactCopies);
  }

  using Lists = SmallVector<DenseI64ArrayAttr>;
  static Lists readLists(func::FuncOp function, StringRef name) {
    auto lists = function->getAttrOfType<ArrayAttr>(name);
    function->removeAttr(name);
    return lists ? llvm::to_vector(lists.getAsRange<DenseI64ArrayAttr>()) : Lists();
  }

  /// All of `combinations` with each size of each list; not many more than kMostBodies.
  static SmallVector<Combination> combine(SmallVector<Combination> combinations, const Lists &lists,
                                          SymbolSizes Combination::*member) {
    for (DenseI64ArrayAttr list : lists) {
      SmallVector<Combination> longer;
      for (const Combination &combination : combinations)
        for (int64_t size : list.asArrayRef().drop_front()) {
          if (longer.size() > kMostBodies)
            return longer;
          longer.push_back(combination);
          (longer.back().*member).push_back({list[0], size});
        }
      combinations = std::move(longer);
    }
    return combinations;
  }

  void warnOfExactCopies(const std::set<std::string> &names) {
    constexpr size_t kMost = 8;
    auto warning = getOperation().emitWarning() << "--dim gives buckets; not padded, as padding would change results: ";
    size_t count = 0;
    for (const std::string &name : names)
      if (count++ < kMost)
        warning << (count > 1 ? ", " : "") << name;
    if (count > kMost)
      warning << " and " << count - kMost << " more";
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
    for (auto [symbol, size] : combination.fixed)
      differences.push_back(getAffineSymbolExpr(symbol, context) - size);
    SmallVector<bool> areEqual(differences.size(), true);
    for (auto [symbol, size] : combination.buckets)
      differences.push_back(size - getAffineSymbolExpr(symbol, context));
    areEqual.resize(differences.size(), false);
    return IntegerSetAttr::get(IntegerSet::get(0, symbolCount, differences, areEqual));
  }

  /// The general body for these sizes.
  void fill(Block &block, Block &general, const Combination &combination, TypeRange types,
            std::set<std::string> &exactCopies) {
    func::FuncOp function = getOperation();
    BucketBody body(function, block, combination.fixed, combination.buckets);
    for (BlockArgument argument : function.getArguments())
      body.addArgument(argument);
    for (Operation &op : general.without_terminator())
      body.add(op);
    PrimBuilder &b = body.builder();
    b.setLoc(general.getTerminator()->getLoc());
    SmallVector<Value> results;
    for (auto [value, type] : llvm::zip_equal(general.getTerminator()->getOperands(), types))
      results.push_back(b.reshape(body.getExact(value), getSizes(type)));
    YieldOp::create(b, results);
    exactCopies.insert(body.exactCopies().begin(), body.exactCopies().end());
  }
};

} // namespace
