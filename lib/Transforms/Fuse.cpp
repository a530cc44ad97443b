//===- Fuse.cpp - tc-fuse: prim ops become kernel.region ops ------------------------------------------------------===//
//
// FusePlan decides; this file builds the regions of a plan, block by block, inner blocks first.
//
//   %1 = prim.add %x, %y : tensor<8xf32>
//   %2 = prim.relu-like %1 ...
// becomes
//   %r = kernel.region(%a = %x : ..., %b = %y : ...) -> (tensor<8xf32>) attributes {cost = {...}, nodes = "add+relu"}
//   {...}
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FusePlan.h"

#include "tc/Analysis/RegionInfo.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Disabled.h"
#include "tc/Support/Logging.h"
#include "tc/Support/NodePattern.h"
#include "tc/Transforms/Passes.h"
#include "tc/Transforms/UnfusedCost.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

#include <map>

namespace tc {
#define GEN_PASS_DEF_FUSEPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

namespace {

/// Builds the regions of one block. Ops that stay are moved to the block's end in their new order, regions are made
/// between them, and the ops that were copied into regions are erased.
class RegionBuilder {
public:
  RegionBuilder(Block &block, const Plan &plan, llvm::function_ref<bool(Operation *)> isDisabled)
      : block(block), plan(plan), isDisabled(isDisabled) {
    for (Operation &op : block)
      originals.push_back(&op);
  }

  void run() {
    end = block.empty() ? nullptr : &block.back();
    bool terminated = end && end->hasTrait<OpTrait::IsTerminator>();
    // Constants first: they have no operands and anyone may read them.
    for (Operation *op : originals)
      if (isa<prim::ConstantOp>(op))
        place(op);
    for (int id : plan.schedule()) {
      const Group &group = plan.group(id);
      if (group.kind != Group::Function) {
        build(id);
        continue;
      }
      Operation *op = group.anchor();
      if (isa<prim::ConstantOp>(op))
        continue;
      llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), values);
      for (Value value : values)
        placeView(value);
      if (!(terminated && op == end))
        place(op);
    }
    for (Operation *op : llvm::reverse(originals))
      if (!placed.contains(op) && op != end && op->use_empty())
        op->erase();
    for (Operation *op : llvm::reverse(originals))
      if (placed.contains(op) && isa<prim::ConstantOp>(op) && op->use_empty())
        op->erase();
  }

private:
  void place(Operation *op) {
    if (!placed.insert(op).second)
      return;
    if (end)
      op->moveBefore(end);
    else
      op->moveBefore(&block, block.end());
  }

  /// Moves the reshapes (and sizes) that lead to `value` in front of what is built next.
  void placeView(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || placed.contains(op) || !plan.isCopied(op) || !isa<prim::ReshapeOp, prim::SizesOp, prim::SplatOp>(op))
      return;
    for (Value operand : op->getOperands())
      placeView(operand);
    place(op);
  }

  /// Where ops without operands stand in the program tells who read them first, maybe another group. Before their first
  /// reader here, groups that compute alike print alike, and share a kernel.
  static SmallVector<Operation *> placeAtReaders(ArrayRef<Operation *> ops) {
    const llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
    llvm::SetVector<Operation *> placed;
    for (Operation *op : ops)
      if (op->getNumOperands() != 0) {
        for (Value operand : op->getOperands())
          if (Operation *def = operand.getDefiningOp(); def && def->getNumOperands() == 0 && inside.contains(def))
            placed.insert(def);
        placed.insert(op);
      }
    placed.insert_range(ops); // what has no reader here
    return placed.takeVector();
  }

  void build(int id) {
    llvm::SetVector<Operation *> inside;
    llvm::SetVector<Value> inputs;
    SmallVector<Operation *> work(plan.group(id).ops);
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!inside.insert(op))
        continue;
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        bool copied = def && (isSmallConstant(def) || plan.groupOf(def) == id ||
                              (plan.isCopied(def) && !plan.isView(operand, id)));
        if (copied)
          work.push_back(def);
      }
    }
    SmallVector<Operation *> ops(inside.getArrayRef());
    // Constants may come from outer blocks: those first, in the order in which they were met.
    llvm::stable_sort(ops, [&](Operation *a, Operation *b) {
      auto x = plan.orderOf(a), y = plan.orderOf(b);
      return x && y ? *x < *y : bool(y) && !x;
    });
    ops = placeAtReaders(ops);
    SmallVector<Operation *> named;
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        if (!inside.contains(operand.getDefiningOp()))
          inputs.insert(operand);
      if (!isa<prim::ConstantOp, prim::SplatOp, prim::SizesOp>(op) || ops.size() == 1)
        named.push_back(op);
    }
    for (Value input : inputs)
      placeView(input);

    MLIRContext *context = block.getParentOp()->getContext();
    OpBuilder b(context);
    if (end)
      b.setInsertionPoint(end);
    else
      b.setInsertionPointToEnd(&block);
    SmallVector<Location> locations;
    for (Operation *op : named)
      if (!llvm::is_contained(locations, op->getLoc()))
        locations.push_back(op->getLoc());
    Location loc = locations.size() == 1 ? locations.front() : FusedLoc::get(context, locations);
    ArrayRef<Value> outputs = plan.outputs(id);
    auto region =
        kernel::RegionOp::create(b, loc, TypeRange(ValueRange(outputs)), inputs.getArrayRef(),
                                 /*schedule=*/nullptr, /*cases=*/nullptr, /*cost=*/nullptr, /*fusion=*/nullptr);
    Block *body = b.createBlock(&region.getBody());
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
    for (Operation *op : ops)
      b.clone(*op, mapping);
    kernel::YieldOp::create(b, loc, llvm::map_to_vector(outputs, [&](Value value) { return mapping.lookup(value); }));
    for (auto [old, result] : llvm::zip_equal(outputs, region.getOutputs())) {
      Value value = old;
      value.replaceAllUsesWith(result);
    }
    annotate(region, id, named);
  }

  void annotate(kernel::RegionOp region, int id, ArrayRef<Operation *> named) {
    OpBuilder b(region);
    RegionInfo info = RegionInfo::get(region);
    SmallVector<Attribute> stopped;
    for (const std::string &reason : plan.stopped(id))
      stopped.push_back(b.getStringAttr(reason));
    SmallVector<Attribute> reads;
    for (const RegionInput &input : info.inputs)
      reads.push_back(b.getStringAttr(stringify(input.access)));
    region.setCostAttr(base::CostAttr::get(info.flops, info.bytes));
    region->setAttr(kUnfusedAttr, getUnfusedCost(region));
    region.setFusionAttr(
        kernel::FusionAttr::get(b.getContext(), info.ops, b.getArrayAttr(reads), b.getArrayAttr(stopped)));
    if (isDisabled && llvm::any_of(plan.group(id).ops, isDisabled))
      region->setAttr(kernel::kDisabledAttr, b.getUnitAttr());
    const auto locs = llvm::map_to_vector(named, [](Operation *op) { return op->getLoc(); });
    if (const auto names = host::getNodeNames(locs); !names.empty())
      region->setAttr(host::kNodesAttr, b.getStrArrayAttr(names));
  }

  Block &block;
  const Plan &plan;
  llvm::function_ref<bool(Operation *)> isDisabled; ///< null: none is
  Operation *end = nullptr;
  SmallVector<Operation *> originals;
  llvm::DenseSet<Operation *> placed;
};

/// concat(x0 .. x9999) -> concat(concat(x0 .. x63) ..): a kernel takes time to compile that grows faster than its
/// operands, and the same parts of a concat are made once.
void splitWideConcats(IRRewriter &rewriter, Block &block) {
  constexpr size_t kWide = 128, kPart = 64;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto concat = dyn_cast<prim::ConcatOp>(op);
    if (!concat || concat.getInputs().size() <= kWide)
      continue;
    rewriter.setInsertionPoint(concat);
    SmallVector<Value> values(concat.getInputs());
    while (values.size() > kWide) {
      std::map<std::vector<void *>, Value> known;
      SmallVector<Value> parts;
      for (ArrayRef<Value> rest = values; !rest.empty(); rest = rest.drop_front(std::min(kPart, rest.size()))) {
        ArrayRef<Value> part = rest.take_front(kPart);
        std::vector<void *> key;
        for (Value value : part)
          key.push_back(value.getAsOpaquePointer());
        Value &made = known[key];
        if (!made) {
          SmallVector<AffineExpr> sizes = prim::getSizes(part.front());
          for (Value value : part.drop_front())
            sizes[concat.getAxis()] = sizes[concat.getAxis()] + prim::getSizes(value)[concat.getAxis()];
          const Type type = prim::makeType(getElementTypeOrSelf(concat.getType()), sizes);
          made = prim::ConcatOp::create(rewriter, concat.getLoc(), type, part, concat.getAxis());
        }
        parts.push_back(made);
      }
      values = std::move(parts);
    }
    rewriter.replaceOpWithNewOp<prim::ConcatOp>(concat, concat.getType(), values, concat.getAxis());
  }
}

struct FusePass : tc::impl::FusePassBase<FusePass> {
  using FusePassBase::FusePassBase;

  void runOnOperation() override {
    if (maxOps < 1 || maxBuffers < 1) {
      getOperation().emitError("max-ops and max-buffers are at least 1");
      return signalPassFailure();
    }
    const NodePatterns patterns(std::vector<std::string>(disabled.begin(), disabled.end()));
    llvm::DenseMap<Location, bool> known;
    auto matches = [&](Operation *op) {
      auto [found, isNew] = known.try_emplace(op->getLoc(), false);
      if (isNew)
        found->second = patterns.matches(host::getNodeNames(op->getLoc()));
      return found->second;
    };
    if (!patterns.empty())
      isDisabled = matches;
    IRRewriter rewriter(&getContext());
    for (Block &block : getOperation().getBody())
      run(rewriter, block);
  }

  void run(IRRewriter &rewriter, Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        rewriter.eraseOp(&op);
    for (Operation &op : block)
      if (isa<prim::IfOp, prim::WhileOp>(op))
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            run(rewriter, inner);
    splitWideConcats(rewriter, block);
    Limits limits;
    limits.fuse = this->fuse;
    limits.maxOps = this->maxOps;
    limits.maxBuffers = this->maxBuffers;
    limits.target = this->target;
    limits.isDisabled = isDisabled;
    Plan plan(block, limits, this->log || tc::log::isEnabled("fusion"));
    RegionBuilder(block, plan, isDisabled).run();
  }

private:
  llvm::function_ref<bool(Operation *)> isDisabled = nullptr;
};

} // namespace
