//===- HoistStatic.cpp - tc-hoist-static: what depends on static inputs alone is computed once --------------------===//
//
// Weights that are inputs, as they are where a framework owns them, are transposed and packed for their kernels in each
// run, which takes longer than the kernels where the batch is small. Their caller knows when they change:
//
//   func @main(%x, %w) {                       prim.state @main.static0 : tensor<1x8x1024xf32>
//     %p = host.launch @k_pack(%w)             prim.state @main.prepared : tensor<i64>
//     %y = host.launch @k(%x, %p)              func @main(%x, %w) {
//     return %y                                  %p = prim.read_state @main.static0
//   }                                            %ready = prim.read_state @main.prepared
// becomes                                        prim.bind_symbol %ready to 0       (refuses the run unless it is 1)
//                                                %y = host.launch @k(%x, %p)
//                                                return %y
//                                              }
//                                              func @main.prepare(%w) {
//                                                %p = host.launch @k_pack(%w)
//                                                prim.write_state @main.static0, %p
//                                                prim.write_state @main.prepared, 1
//                                              }
//
// States belong to a context: calls at the same time have their own. After tc-lower-kernels, as packing is a launch
// there; before the memory plan. Launches whose sizes only the run knows stay.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Support/NodePattern.h"
#include "tc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tc {
#define GEN_PASS_DEF_HOISTSTATICPASS
#define GEN_PASS_DEF_MARKSTATICPASS
#include "tc/Transforms/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;
using namespace tc::host;

namespace {

/// Whether a state can hold values of this type.
bool canOutliveRun(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  const Type element = tensor.getElementType();
  return tensor.hasStaticShape() &&
         (element.isInteger(1) ||
          (element.isIntOrFloat() && !prim::isNarrowElement(element) && element.getIntOrFloatBitWidth() % 8 == 0));
}

/// What is the same in each run, whatever the inputs.
bool isConstant(Operation *op) {
  return isa<ConstantOp, prim::ConstantOp>(op) || (isa<prim::SplatOp>(op) && op->getNumOperands() == 0 &&
                                                   cast<RankedTensorType>(op->getResult(0).getType()).hasStaticShape());
}

/// What a value shows, maybe under another shape.
Value getSource(Value value) {
  while (auto view = value.getDefiningOp<prim::ReshapeOp>())
    value = view.getOperand();
  return value;
}

/// Which of its inputs each kernel reads: the words of its arguments that it loads, in some variant. A region's
/// launches are all given its inputs, of which packing reads one.
class KernelReads {
public:
  explicit KernelReads(ModuleOp module) {
    for (auto variant : module.getOps<VariantOp>())
      for (auto kernel : variant.getBody().getOps<LLVM::LLVMFuncOp>())
        if (!kernel.isExternal())
          add(kernel);
  }

  /// The numbers of the operands that are read; of what is no launch, or not understood, all.
  SmallVector<int64_t> of(Operation *op) const {
    auto launch = dyn_cast<LaunchOp>(op);
    const auto found = launch ? words.find(launch.getKernel()) : words.end();
    SmallVector<int64_t> numbers;
    for (int64_t number = 0; number < int64_t(op->getNumOperands()); ++number)
      if (found == words.end() || !found->second || found->second->contains(number))
        numbers.push_back(number);
    return numbers;
  }

private:
  void add(LLVM::LLVMFuncOp kernel) {
    std::optional<llvm::SmallDenseSet<int64_t>> &loaded =
        words.try_emplace(kernel.getSymName(), llvm::SmallDenseSet<int64_t>()).first->second;
    for (Operation *user : kernel.getArgument(0).getUsers()) {
      auto address = dyn_cast<LLVM::GEPOp>(user);
      const ArrayRef<int32_t> indices = address ? address.getRawConstantIndices() : ArrayRef<int32_t>();
      if (indices.size() != 1 || indices.front() < 0 || !address.getElemType().isInteger(64)) {
        loaded.reset();
        return;
      }
      if (loaded)
        loaded->insert(indices.front());
    }
  }

  llvm::StringMap<std::optional<llvm::SmallDenseSet<int64_t>>> words; // none: anything
};

class Hoisting {
public:
  Hoisting(func::FuncOp func, const KernelReads &kernels) : func(func), kernels(kernels) {}

  /// Finds the launches that depend on static inputs alone.
  void analyze() {
    for (BlockArgument argument : func.getArguments())
      if (func.getArgAttr(argument.getArgNumber(), prim::kStaticAttr))
        fixed.insert(argument);
    for (Operation &op : func.front()) {
      auto launch = dyn_cast<LaunchOp>(op);
      auto isKnown = [&](int64_t number) {
        Operation *def = op.getOperand(number).getDefiningOp();
        return fixed.contains(op.getOperand(number)) || (def && isConstant(def));
      };
      auto isFixed = [&](int64_t number) { return fixed.contains(op.getOperand(number)); };
      const SmallVector<int64_t> reads = kernels.of(&op);
      if ((!launch && !isa<prim::ReshapeOp>(op)) || !llvm::all_of(op.getResultTypes(), canOutliveRun) ||
          !llvm::all_of(reads, isKnown) || !llvm::any_of(reads, isFixed) || (launch && !launch.getSymbols().empty()))
        continue;
      fixed.insert_range(op.getResults());
      if (launch)
        hoisted.insert(launch);
    }
  }

  bool findsAny() const { return !hoisted.empty(); }

  void apply() {
    OpBuilder module(func);
    states = module.saveInsertionPoint();
    readStates();
    makePrepare();
    // Bottom up: their results are read by each other alone.
    for (Operation *op : llvm::reverse(hoisted.getArrayRef())) {
      for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
        eraseView(user);
      op->erase();
    }
  }

private:
  static void eraseView(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      eraseView(user);
    op->erase();
  }

  /// A new state of this type.
  StringAttr addState(Twine name, RankedTensorType type) {
    OpBuilder builder(func.getContext());
    builder.restoreInsertionPoint(states);
    const std::string text = (func.getSymName() + "." + name).str();
    prim::StateOp::create(builder, func.getLoc(), text, type, TypedAttr());
    return builder.getStringAttr(text);
  }

  /// The rest of the function reads what the hoisted launches compute from states.
  void readStates() {
    OpBuilder builder = OpBuilder::atBlockBegin(&func.front());
    ready = addState("prepared", RankedTensorType::get({}, builder.getI64Type()));
    auto stateOf = [&](Value source) -> Value {
      auto [entry, isNew] = kept.try_emplace(source);
      if (isNew) {
        auto type = cast<RankedTensorType>(source.getType());
        entry->second.first = addState("static" + Twine(kept.size() - 1), type);
        entry->second.second =
            prim::ReadStateOp::create(builder, source.getLoc(), type, entry->second.first.getValue());
      }
      return entry->second.second;
    };
    // Only what is read is kept: views follow what they show.
    func.walk([&](Operation *op) {
      if (hoisted.contains(op) || isa<prim::ReshapeOp>(op))
        return;
      SmallVector<bool> isRead(op->getNumOperands(), false);
      for (int64_t number : kernels.of(op))
        isRead[number] = true;
      for (OpOperand &operand : op->getOpOperands())
        if (isRead[operand.getOperandNumber()])
          replace(operand, stateOf);
      // Any address will do for what the kernel does not read; one of a state lets others die.
      for (OpOperand &operand : op->getOpOperands())
        if (!isRead[operand.getOperandNumber()] && isHoisted(getSource(operand.get())))
          operand.set(findStandIn(op));
    });
    const auto old = func->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
    SmallVector<Attribute> symbols;
    if (old)
      llvm::append_range(symbols, old);
    const std::string prepare = (func.getSymName() + ".prepare").str();
    auto value = prim::ReadStateOp::create(builder, func.getLoc(), RankedTensorType::get({}, builder.getI64Type()),
                                           ready.getValue());
    auto bind = prim::BindSymbolOp::create(builder, func.getLoc(), value, int64_t(symbols.size()));
    bind.setMessage("what depends on static inputs alone was not computed; run the function \"" + prepare +
                    "\" before");
    symbols.push_back(prim::SymbolAttr::get(func.getContext(), "prepared", 1, 1, 1));
    func->setAttr(prim::kSymbolsAttr, builder.getArrayAttr(symbols));
  }

  bool isHoisted(Value value) const {
    Operation *def = value.getDefiningOp();
    return def && hoisted.contains(def);
  }

  /// `operand` shows a result of a hoisted launch: it shows the state instead, under the same type.
  void replace(OpOperand &operand, llvm::function_ref<Value(Value)> stateOf) {
    const Value value = operand.get(), source = getSource(value);
    if (!isHoisted(source))
      return;
    Value state = stateOf(source);
    if (state.getType() != value.getType()) {
      Value &view = views[value];
      if (!view) {
        OpBuilder builder(func.getContext());
        builder.setInsertionPointAfterValue(state);
        view = prim::ReshapeOp::create(builder, value.getLoc(), cast<RankedTensorType>(value.getType()), state);
      }
      state = view;
    }
    operand.set(state);
  }

  Value findStandIn(Operation *op) {
    const SmallVector<int64_t> reads = kernels.of(op);
    for (int64_t number : reads)
      if (getSource(op->getOperand(number)).getDefiningOp<prim::ReadStateOp>())
        return op->getOperand(number);
    return reads.empty() ? Value(func.getArgument(0)) : op->getOperand(reads.front());
  }

  /// The function that computes the states.
  void makePrepare() {
    SetVector<Value> needed; // the inputs, and constants
    auto need = [&](Value value) {
      value = getSource(value);
      if (!isHoisted(value))
        needed.insert(value);
    };
    for (Operation *launch : hoisted)
      for (int64_t number : kernels.of(launch))
        need(launch->getOperand(number));
    SmallVector<BlockArgument> arguments;
    for (BlockArgument argument : func.getArguments())
      if (needed.contains(argument))
        arguments.push_back(argument);
    OpBuilder builder(func.getContext());
    // Functions keep their numbers.
    builder.setInsertionPointToEnd(func->getBlock());
    const SmallVector<Type> types = llvm::map_to_vector(arguments, [](BlockArgument a) { return a.getType(); });
    auto prepare = func::FuncOp::create(builder, func.getLoc(), (func.getSymName() + ".prepare").str(),
                                        builder.getFunctionType(types, {}));
    prepare->setAttr(prim::kSymbolsAttr, builder.getArrayAttr({}));
    Block *block = prepare.addEntryBlock();
    builder.setInsertionPointToStart(block);
    IRMapping mapping;
    for (auto [to, from] : llvm::zip_equal(block->getArguments(), arguments)) {
      mapping.map(from, to);
      prepare.setArgAttrs(to.getArgNumber(), mlir::function_interface_impl::getArgAttrs(func, from.getArgNumber()));
    }
    for (Value value : needed)
      if (Operation *def = value.getDefiningOp())
        builder.clone(*def, mapping);
    // The value in the new function, with the views on the way.
    auto mapped = [&](Value value) {
      const Value source = mapping.lookup(getSource(value));
      return value.getType() == source.getType()
                 ? source
                 : Value(prim::ReshapeOp::create(builder, value.getLoc(), cast<RankedTensorType>(value.getType()),
                                                 source));
    };
    for (Operation *launch : hoisted) {
      const SmallVector<int64_t> reads = kernels.of(launch);
      const Value standIn = mapped(launch->getOperand(reads.front()));
      SmallVector<Value> operands(launch->getNumOperands(), standIn);
      for (int64_t number : reads)
        operands[number] = mapped(launch->getOperand(number));
      Operation *copy = builder.cloneWithoutRegions(*launch);
      copy->setOperands(operands);
      mapping.map(launch->getResults(), copy->getResults());
    }
    for (auto &[source, state] : kept)
      prim::WriteStateOp::create(builder, source.getLoc(), state.first.getValue(), mapping.lookup(source));
    const auto number = RankedTensorType::get({}, builder.getI64Type());
    auto one = prim::ConstantOp::create(builder, func.getLoc(), number,
                                        DenseElementsAttr::get(number, builder.getI64IntegerAttr(1)));
    prim::WriteStateOp::create(builder, func.getLoc(), ready.getValue(), one);
    func::ReturnOp::create(builder, func.getLoc());
  }

  func::FuncOp func;
  const KernelReads &kernels;
  DenseSet<Value> fixed; ///< static inputs, and what depends on them alone
  SetVector<Operation *> hoisted;
  OpBuilder::InsertPoint states; ///< where they are declared
  StringAttr ready;
  llvm::MapVector<Value, std::pair<StringAttr, Value>> kept; ///< results of hoisted launches: the state, and its value
  DenseMap<Value, Value> views;                              ///< of states, for those of hoisted launches' results
};

struct MarkStaticPass : tc::impl::MarkStaticPassBase<MarkStaticPass> {
  using MarkStaticPassBase::MarkStaticPassBase;

  void runOnOperation() override {
    const NodePatterns patterns(SmallVector<std::string>(inputs.begin(), inputs.end()));
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      for (auto [number, type] : llvm::enumerate(func.getArgumentTypes())) {
        auto name = func.getArgAttrOfType<StringAttr>(number, "tc.name");
        // A default takes the place of an input that is not given, of which the caller need not know.
        if (name && patterns.matches({name.getValue()}) && !func.getArgAttr(number, prim::kValueAttr) &&
            !func.getArgAttr(number, "tc.default") && canOutliveRun(type))
          func.setArgAttr(number, prim::kStaticAttr, UnitAttr::get(func.getContext()));
      }
  }
};

struct HoistStaticPass : tc::impl::HoistStaticPassBase<HoistStaticPass> {
  using HoistStaticPassBase::HoistStaticPassBase;

  void runOnOperation() override {
    const KernelReads kernels(getOperation());
    for (func::FuncOp func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (func.isExternal())
        continue;
      Hoisting hoisting(func, kernels);
      hoisting.analyze();
      if (hoisting.findsAny())
        hoisting.apply();
    }
  }
};

} // namespace
