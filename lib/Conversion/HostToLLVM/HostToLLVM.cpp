//===- HostToLLVM.cpp - the host program in the LLVM dialect ------------------------------------------------------===//
//
// For each host.variant: tc_entry, tc_infer and tc_run as artifact_abi.h (part 2) wants them. All decisions stand in
// the IR already: the memory plan says where values live, launches say how much work there is. What is emitted here is
// loads of the frame, size arithmetic, stores of argument words, calls and control flow.
//
//   %y = host.launch @k(%x) symbols [0] tasks (s0) ...        args[0] = inputs[0]; args[1] = arena + 64; args[2] =
//   symbols[0];
//        {host.places = [arena + 64]}                   -->   imports->launch(frame, 0, &k, args, symbols[0], 1)
//
// Size arithmetic in tc_infer is checked for overflow; tc_run evaluates the same expressions, or parts of them, for the
// same symbols, and does not check again. Values that only exist once the program runs (prim.bind_symbol) are checked
// there.
//
// Memory of GPU variants is not the host's: what the host reads or writes goes through imports->copy.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Conversion/HostToLLVM/HostToLLVM.h"

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tcrt/artifact_abi.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace tc {
#define GEN_PASS_DEF_CONVERTHOSTTOLLVMPASS
#include "tc/Conversion/HostToLLVM/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;
using namespace tc::host;

func::FuncOp tc::getMainFunction(ModuleOp module) {
  if (auto main = module.lookupSymbol<func::FuncOp>("main"))
    return main;
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  return functions.size() == 1 ? functions.front() : func::FuncOp();
}

SmallVector<StringRef> tc::getHostFunctions(func::FuncOp main) {
  llvm::SetVector<StringRef> names;
  main.walk<WalkOrder::PreOrder>([&](prim::HostCallOp call) { names.insert(call.getCallee()); });
  return names.takeVector();
}

namespace {

class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp main, VariantOp variant)
      : main(main), variant(variant), context(main.getContext()), b(context), loc(variant.getLoc()),
        symbols(main->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr)), isCpu(variant.getDevice() == "cpu") {
    ptr = LLVM::LLVMPointerType::get(context);
    i1 = b.getI1Type();
    i8 = b.getI8Type();
    i32 = b.getI32Type();
    i64 = b.getI64Type();
    i64Checked = LLVM::LLVMStructType::getLiteral(context, {i64, i1});
  }

  LogicalResult build();

private:
  //===--- small helpers ------------------------------------------------------------------------------------------===//
  Value c64(int64_t value) { return LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(value)); }
  Value c32(int64_t value) { return LLVM::ConstantOp::create(b, loc, i32, b.getI32IntegerAttr(value)); }
  Value null() { return LLVM::ZeroOp::create(b, loc, ptr); }
  Value at(Value base, int64_t offset) {
    if (offset == 0)
      return base;
    // A constant index of a GEPArg has 29 bits and wraps silently beyond them: weights are larger than that.
    if (!llvm::isInt<28>(offset))
      return at(base, LLVM::ConstantOp::create(b, loc, b.getI64Type(), offset));
    return LLVM::GEPOp::create(b, loc, ptr, i8, base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  }
  Value at(Value base, Value offset) {
    return LLVM::GEPOp::create(b, loc, ptr, i8, base, ArrayRef<LLVM::GEPArg>{offset});
  }
  Value load(Type type, Value address) { return LLVM::LoadOp::create(b, loc, type, address); }
  void store(Value value, Value address) { LLVM::StoreOp::create(b, loc, value, address); }
  Value compare(LLVM::ICmpPredicate predicate, Value x, Value y) {
    return LLVM::ICmpOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) { return LLVM::SelectOp::create(b, loc, condition, x, y); }
  Block *newBlock(TypeRange arguments = {}) {
    OpBuilder::InsertionGuard guard(b);
    Region *region = b.getInsertionBlock()->getParent();
    SmallVector<Location> locations(arguments.size(), loc);
    return b.createBlock(region, region->end(), arguments, locations);
  }
  void branch(Block *to, ValueRange arguments = {}) { LLVM::BrOp::create(b, loc, arguments, to); }
  void condBranch(Value condition, Block *yes, Block *no) { LLVM::CondBrOp::create(b, loc, condition, yes, no); }
  Value import(size_t offset) { return load(ptr, at(imports, int64_t(offset))); }
  Value callIndirect(Type result, ArrayRef<Type> argumentTypes, Value callee, ArrayRef<Value> arguments) {
    auto type = LLVM::LLVMFunctionType::get(result, argumentTypes);
    SmallVector<Value> operands{callee};
    llvm::append_range(operands, arguments);
    auto call = LLVM::CallOp::create(b, loc, type, operands);
    return call->getNumResults() ? call.getResult() : Value();
  }
  /// An address on the stack, allocated in the function's entry block.
  Value stack(int64_t words) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&b.getInsertionBlock()->getParent()->front());
    return LLVM::AllocaOp::create(b, loc, ptr, i64, c64(words), /*alignment=*/16);
  }
  /// The address of a constant text.
  Value text(const std::string &message);
  /// Returns `code` with a message if `bad` holds, else goes on.
  void failIf(Value bad, int32_t code, const std::string &message);
  /// Returns the non-zero `code` of a call, else goes on.
  void returnIfFailed(Value code);

  //===--- size expressions ---------------------------------------------------------------------------------------===//
  Value size(AffineExpr expr);
  Value size(AffineMap map) { return size(map.getResult(0)); }
  Value arithmetic(AffineExprKind kind, Value x, Value y);
  Value floorDiv(Value x, Value y);
  bool isBoundByData(AffineExpr expr) {
    return llvm::any_of(getSymbols(expr), [&](unsigned s) { return boundByData.contains(s); });
  }
  StringRef symbolName(unsigned symbol) {
    return symbols && symbol < symbols.size() ? cast<prim::SymbolAttr>(symbols[symbol]).getName() : "?";
  }
  void checkSymbol(unsigned symbol, Value value, std::optional<StringRef> message = std::nullopt);

  //===--- memory -------------------------------------------------------------------------------------------------===//
  Value address(Value value);
  /// Makes the memory of values whose size depends on data. Called where they are defined.
  void allocate(Value value);
  bool hasDynamicMemory(Value value) {
    PlaceAttr place = placeOf(value);
    return place && (place.getKind() == PlaceKind::Heap || place.getKind() == PlaceKind::LateOutput);
  }
  Value allocateBytes(Value bytes);
  /// The same; sizes that overflow end the run with the sentence.
  Value allocateBytes(llvm::function_ref<Value()> size, const std::string &tooLarge);
  void returnIfNull(Value memory);
  void release(Value memory);
  /// Releases what the ops of a block allocated, but not `kept`.
  void releaseMemoryOf(Block &block, ArrayRef<Value> kept);
  /// Gives the symbols that `op` binds the sizes of `values`, which become its results.
  void bindResultSymbols(Operation *op, ValueRange values);
  void emitGuard(prim::GuardOp guard);
  /// Whether a guard always runs and depends on the inputs' sizes alone: tc_infer checks it, before any kernel.
  bool isCheckedByInfer(prim::GuardOp guard) {
    return guard->getParentOp() == main &&
           !llvm::any_of(guard.getSizes().getResults(), [&](AffineExpr e) { return isBoundByData(e); });
  }
  PlaceAttr placeOf(Value value);
  Value hostLoad(Type type, Value address);
  void hostStore(Value value, Value address);
  void copy(Value to, Value from, Value bytes);

  //===--- the functions ------------------------------------------------------------------------------------------===//
  LLVM::LLVMFuncOp beginFunction(StringRef name, Type result, ArrayRef<Type> arguments);
  void loadFrame(Value frame);
  LogicalResult buildInfer();
  LogicalResult buildRun();
  void buildEntry();
  LogicalResult emit(Block &block);
  LogicalResult emitLaunch(LaunchOp launch);
  bool hasDynamicCost(LaunchOp launch);
  bool isCostBoundByData(LaunchOp launch) {
    return isBoundByData(launch.getCostAttr().getFlopsExpr()) || isBoundByData(launch.getCostAttr().getBytesExpr());
  }
  /// Tells the runtime what a launch costs, for the sizes of this run.
  void emitCost(LaunchOp launch);
  uint32_t neededImports();
  LogicalResult emitFill(Operation *op);
  LogicalResult emitHostCall(prim::HostCallOp op);
  void emitIf(prim::IfOp op, LogicalResult &result);
  void emitWhile(prim::WhileOp op, LogicalResult &result);

  func::FuncOp main;
  VariantOp variant;
  MLIRContext *context;
  OpBuilder b;
  Location loc;
  ArrayAttr symbols;
  bool isCpu;
  Type ptr, i1, i8, i32, i64, i64Checked;
  llvm::SmallDenseSet<unsigned> boundByData;

  // Of the function being built.
  Value frame, imports, frameSymbols, inputs, outputs, arena, weights, args;
  Value overflow; ///< if set, size arithmetic is checked and or-ed to it
  DenseMap<Value, Value> dynamicMemory;
  llvm::MapVector<Operation *, unsigned> launchIds;
  llvm::StringMap<unsigned> functions; ///< numbers of host functions
  llvm::StringMap<unsigned> deviceKernels;
  int64_t argsBytes = 0;         ///< of a launch's words
  Value groupRecords;            ///< room for the largest group's tcrt_launch_t, or that of a launch in steps
  SmallVector<Value> ownScratch; ///< of the group or launch being built, of sizes that the data decide
  unsigned messageCount = 0;
  Value callRecord; ///< room for the largest host call's record
};

Value ProgramBuilder::text(const std::string &message) {
  std::string name = "tc_message_" + std::to_string(messageCount++);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&variant.getBody().front());
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(i8, message.size()), /*isConstant=*/true,
                           LLVM::Linkage::Internal, name, b.getStringAttr(message));
  }
  return LLVM::AddressOfOp::create(b, loc, ptr, name);
}

void ProgramBuilder::failIf(Value bad, int32_t code, const std::string &message) {
  Block *failing = newBlock(), *next = newBlock();
  condBranch(bad, failing, next);
  b.setInsertionPointToStart(failing);
  Value result = callIndirect(i32, {ptr, i32, ptr, i64}, import(offsetof(tcrt_imports_t, fail)),
                              {frame, c32(code), text(message), c64(message.size())});
  LLVM::ReturnOp::create(b, loc, result);
  b.setInsertionPointToStart(next);
}

void ProgramBuilder::returnIfFailed(Value code) {
  Block *failing = newBlock(), *next = newBlock();
  condBranch(compare(LLVM::ICmpPredicate::ne, code, c32(0)), failing, next);
  b.setInsertionPointToStart(failing);
  LLVM::ReturnOp::create(b, loc, code);
  b.setInsertionPointToStart(next);
}

Value ProgramBuilder::floorDiv(Value x, Value y) {
  Value quotient = LLVM::SDivOp::create(b, loc, x, y), rest = LLVM::SRemOp::create(b, loc, x, y);
  Value inexact = compare(LLVM::ICmpPredicate::ne, rest, c64(0));
  Value opposite = compare(LLVM::ICmpPredicate::slt, LLVM::XOrOp::create(b, loc, rest, y), c64(0));
  Value down = LLVM::AndOp::create(b, loc, inexact, opposite);
  return LLVM::SubOp::create(b, loc, quotient, LLVM::ZExtOp::create(b, loc, i64, down));
}

Value ProgramBuilder::arithmetic(AffineExprKind kind, Value x, Value y) {
  auto checked = [&](Value pair) -> Value {
    Value bad = LLVM::ExtractValueOp::create(b, loc, pair, ArrayRef<int64_t>{1});
    overflow = LLVM::OrOp::create(b, loc, overflow, bad);
    return LLVM::ExtractValueOp::create(b, loc, pair, ArrayRef<int64_t>{0});
  };
  switch (kind) {
  case AffineExprKind::Add:
    return overflow ? checked(LLVM::SAddWithOverflowOp::create(b, loc, i64Checked, x, y))
                    : Value(LLVM::AddOp::create(b, loc, x, y));
  case AffineExprKind::Mul:
    return overflow ? checked(LLVM::SMulWithOverflowOp::create(b, loc, i64Checked, x, y))
                    : Value(LLVM::MulOp::create(b, loc, x, y));
  default:
    break;
  }
  // A division by a symbol that is 0 gives something, but no trap.
  Value divisor = select(compare(LLVM::ICmpPredicate::eq, y, c64(0)), c64(1), y);
  if (kind == AffineExprKind::FloorDiv)
    return floorDiv(x, divisor);
  if (kind == AffineExprKind::CeilDiv) {
    Value negated = LLVM::SubOp::create(b, loc, c64(0), x);
    return LLVM::SubOp::create(b, loc, c64(0), floorDiv(negated, divisor));
  }
  Value product = LLVM::MulOp::create(b, loc, floorDiv(x, divisor), divisor);
  return LLVM::SubOp::create(b, loc, x, product);
}

Value ProgramBuilder::size(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return c64(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return load(i64, at(frameSymbols, 8 * int64_t(symbol.getPosition())));
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = size(binary.getLHS());
  return arithmetic(expr.getKind(), lhs, size(binary.getRHS()));
}

/// The guards of a symbol that the runtime does not bind.
void ProgramBuilder::checkSymbol(unsigned symbol, Value value, std::optional<StringRef> message) {
  int64_t min = 0, max = INT64_MAX, divisor = 1;
  if (symbols && symbol < symbols.size()) {
    auto attr = cast<prim::SymbolAttr>(symbols[symbol]);
    min = attr.getMin();
    max = attr.getMax();
    divisor = attr.getDivisor();
  }
  Value bad = LLVM::OrOp::create(b, loc, compare(LLVM::ICmpPredicate::slt, value, c64(min)),
                                 compare(LLVM::ICmpPredicate::sgt, value, c64(max)));
  std::string range = max == INT64_MAX ? llvm::formatv("at least {0}", min).str()
                      : min == max     ? std::to_string(min)
                                       : llvm::formatv("in [{0}, {1}]", min, max).str();
  if (divisor > 1) {
    Value rest = LLVM::SRemOp::create(b, loc, value, c64(divisor));
    bad = LLVM::OrOp::create(b, loc, bad, compare(LLVM::ICmpPredicate::ne, rest, c64(0)));
    range += llvm::formatv(" and a multiple of {0}", divisor);
  }
  failIf(bad, TCRT_CODE_REFUSED,
         message ? message->str() : llvm::formatv("the size \"{0}\" must be {1}", symbolName(symbol), range).str());
}

PlaceAttr ProgramBuilder::placeOf(Value value) {
  ArrayAttr places;
  unsigned number;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    number = argument.getArgNumber();
    if (isa<prim::WhileOp>(parent)) {
      places = parent->getAttrOfType<ArrayAttr>(number == 0 ? "host.iteration" : kPlacesAttr);
      number = number == 0 ? 0 : number - 1;
    } else {
      places = parent->getAttrOfType<ArrayAttr>(kPlacesAttr);
    }
  } else {
    number = cast<OpResult>(value).getResultNumber();
    places = value.getDefiningOp()->getAttrOfType<ArrayAttr>(kPlacesAttr);
  }
  return places && number < places.size() ? dyn_cast<PlaceAttr>(places[number]) : PlaceAttr();
}

Value ProgramBuilder::address(Value value) {
  value = prim::getViewSource(value);
  PlaceAttr place = placeOf(value);
  Value base;
  switch (place.getKind()) {
  case PlaceKind::Arena:
    base = arena;
    break;
  case PlaceKind::Weights:
    base = weights;
    break;
  case PlaceKind::Input:
    return load(ptr, at(inputs, 8 * place.getIndex()));
  case PlaceKind::Output:
    return load(ptr, at(outputs, 8 * place.getIndex()));
  case PlaceKind::Heap:
  case PlaceKind::LateOutput:
    return dynamicMemory.lookup(value);
  }
  AffineExpr offset = place.getOffset().getValue().getResult(0);
  if (auto constant = prim::getConstantSize(offset); constant && *constant <= INT32_MAX)
    return at(base, *constant);
  return at(base, size(offset));
}

void ProgramBuilder::allocate(Value value) {
  if (!hasDynamicMemory(value))
    return;
  PlaceAttr place = placeOf(value);
  Value memory;
  if (place.getKind() == PlaceKind::Heap) {
    memory = allocateBytes([&] { return size(getSizeBytes(value.getType())); },
                           "a value whose size depends on data is too large");
  } else {
    SmallVector<AffineExpr> sizes = prim::getSizes(main.getResultTypes()[place.getIndex()]);
    Value dims = stack(std::max<int64_t>(sizes.size(), 1));
    for (auto [i, expr] : llvm::enumerate(sizes))
      store(size(expr), at(dims, 8 * int64_t(i)));
    memory = callIndirect(ptr, {ptr, i32, ptr}, import(offsetof(tcrt_imports_t, output)),
                          {frame, c32(place.getIndex()), dims});
    returnIfNull(memory);
  }
  dynamicMemory[value] = memory;
}

Value ProgramBuilder::allocateBytes(llvm::function_ref<Value()> size, const std::string &tooLarge) {
  overflow = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  Value bytes = size();
  Value bad = LLVM::OrOp::create(b, loc, overflow, compare(LLVM::ICmpPredicate::slt, bytes, c64(0)));
  overflow = Value();
  failIf(bad, TCRT_CODE_NO_MEMORY, tooLarge);
  return allocateBytes(bytes);
}

Value ProgramBuilder::allocateBytes(Value bytes) {
  // An empty value has an address too.
  bytes = select(compare(LLVM::ICmpPredicate::eq, bytes, c64(0)), c64(1), bytes);
  Value memory = callIndirect(ptr, {ptr, i64}, import(offsetof(tcrt_imports_t, allocate)), {frame, bytes});
  returnIfNull(memory);
  return memory;
}

void ProgramBuilder::returnIfNull(Value memory) {
  Block *failing = newBlock(), *next = newBlock();
  condBranch(compare(LLVM::ICmpPredicate::eq, memory, null()), failing, next);
  b.setInsertionPointToStart(failing);
  LLVM::ReturnOp::create(b, loc, c32(TCRT_CODE_NO_MEMORY));
  b.setInsertionPointToStart(next);
}

void ProgramBuilder::release(Value memory) {
  callIndirect(LLVM::LLVMVoidType::get(context), {ptr, ptr}, import(offsetof(tcrt_imports_t, release)),
               {frame, memory});
}

void ProgramBuilder::releaseMemoryOf(Block &block, ArrayRef<Value> kept) {
  for (Operation &op : block)
    for (Value value : op.getResults())
      if (auto memory = dynamicMemory.find(value); memory != dynamicMemory.end())
        if (placeOf(value).getKind() == PlaceKind::Heap && !llvm::is_contained(kept, memory->second))
          release(memory->second);
}

void ProgramBuilder::bindResultSymbols(Operation *op, ValueRange values) {
  // All sizes first: those of one value may be computed from a symbol that another value changes.
  SmallVector<std::pair<int64_t, Value>> sizes;
  for (int64_t symbol : prim::getBoundSymbols(op)) {
    auto [result, dim] = prim::getBoundDim(op, symbol);
    sizes.push_back({symbol, size(prim::getSizes(values[result])[dim])});
  }
  for (auto [symbol, value] : sizes)
    store(value, at(frameSymbols, 8 * symbol));
}

void ProgramBuilder::emitGuard(prim::GuardOp guard) {
  AffineExpr x = guard.getSizes().getResult(0), y = guard.getSizes().getResult(1);
  Value first = size(x);
  bool equal = guard.getKind() == prim::CompareKind::EQ;
  Value bad = compare(equal ? LLVM::ICmpPredicate::ne : LLVM::ICmpPredicate::sgt, first, size(y));
  if (guard.getOrOne())
    bad = LLVM::AndOp::create(b, loc, bad, compare(LLVM::ICmpPredicate::ne, first, c64(1)));
  std::string node = llvm::join(getNodeNames(guard.getLoc()), "+");
  if (!node.empty())
    node = "node \"" + node + "\": ";
  failIf(bad, TCRT_CODE_REFUSED,
         llvm::formatv("{0}{1}; {2} {3} {4} for these inputs", node, guard.getWhat(), prim::formatSize(x, symbols),
                       equal ? "is not" : "is greater than", prim::formatSize(y, symbols)));
}

void ProgramBuilder::copy(Value to, Value from, Value bytes) {
  if (isCpu) {
    LLVM::MemcpyOp::create(b, loc, to, from, bytes, /*isVolatile=*/false);
    return;
  }
  returnIfFailed(callIndirect(i32, {ptr, ptr, ptr, i64, i32}, import(offsetof(tcrt_imports_t, copy)),
                              {frame, to, from, bytes, c32(TCRT_COPY_DEVICE_TO_DEVICE)}));
}

Value ProgramBuilder::hostLoad(Type type, Value address) {
  if (!isCpu) {
    Value slot = stack(1);
    returnIfFailed(
        callIndirect(i32, {ptr, ptr, ptr, i64, i32}, import(offsetof(tcrt_imports_t, copy)),
                     {frame, slot, address, c64(type.getIntOrFloatBitWidth() / 8), c32(TCRT_COPY_DEVICE_TO_HOST)}));
    address = slot;
  }
  return load(type, address);
}

void ProgramBuilder::hostStore(Value value, Value address) {
  if (isCpu)
    return store(value, address);
  Value slot = stack(1);
  store(value, slot);
  returnIfFailed(callIndirect(
      i32, {ptr, ptr, ptr, i64, i32}, import(offsetof(tcrt_imports_t, copy)),
      {frame, address, slot, c64(value.getType().getIntOrFloatBitWidth() / 8), c32(TCRT_COPY_HOST_TO_DEVICE)}));
}

//===--- the functions --------------------------------------------------------------------------------------------===//

LLVM::LLVMFuncOp ProgramBuilder::beginFunction(StringRef name, Type result, ArrayRef<Type> arguments) {
  b.setInsertionPointToEnd(&variant.getBody().front());
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, LLVM::LLVMFunctionType::get(result, arguments));
  function.setVisibility_(LLVM::Visibility::Hidden);
  b.setInsertionPointToStart(function.addEntryBlock(b));
  return function;
}

void ProgramBuilder::loadFrame(Value value) {
  frame = value;
  imports = load(ptr, at(frame, offsetof(tcrt_frame_t, imports)));
  frameSymbols = load(ptr, at(frame, offsetof(tcrt_frame_t, symbols)));
  overflow = Value();
}

LogicalResult ProgramBuilder::buildInfer() {
  auto function = beginFunction("tc_infer", i32, {ptr});
  loadFrame(function.getArgument(0));
  Value inputDims = load(ptr, at(frame, offsetof(tcrt_frame_t, input_dims)));
  Value outputDims = load(ptr, at(frame, offsetof(tcrt_frame_t, output_dims)));

  // Which symbols the runtime binds, and which dims are left.
  llvm::SmallDenseSet<unsigned> known;
  struct Derived {
    AffineExpr expr;
    int64_t number;
    unsigned input, dim;
  };
  SmallVector<Derived> expressions;
  int64_t number = 0;
  for (auto [i, type] : llvm::enumerate(main.getArgumentTypes()))
    for (auto [d, expr] : llvm::enumerate(prim::getSizes(type))) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
        known.insert(symbol.getPosition());
      else if (!prim::getConstantSize(expr))
        expressions.push_back({expr, number, unsigned(i), unsigned(d)});
      ++number;
    }
  // Solve a * s + b for the one unknown s, as often as that tells something new.
  for (bool changed = true; changed;) {
    changed = false;
    for (Derived &derived : expressions) {
      SmallVector<unsigned> unknown =
          llvm::filter_to_vector(getSymbols(derived.expr), [&](unsigned s) { return !known.contains(s); });
      if (unknown.size() != 1)
        continue;
      unsigned symbol = unknown.front();
      auto evaluateAt = [&](int64_t value) {
        return prim::simplifySize(
            derived.expr.replace(getAffineSymbolExpr(symbol, context), getAffineConstantExpr(value, context)));
      };
      auto slope = prim::getConstantSize(prim::simplifySize(evaluateAt(1) - evaluateAt(0)));
      auto next = prim::getConstantSize(prim::simplifySize(evaluateAt(3) - evaluateAt(2)));
      if (!slope || *slope <= 0 || slope != next)
        continue;
      Value dim = load(i64, at(inputDims, 8 * derived.number));
      Value solved = floorDiv(LLVM::SubOp::create(b, loc, dim, size(evaluateAt(0))), c64(*slope));
      store(solved, at(frameSymbols, 8 * int64_t(symbol)));
      checkSymbol(symbol, solved);
      known.insert(symbol);
      changed = true;
    }
  }
  // Symbols that no input and no op defines are mentioned nowhere, or the module is wrong.
  WalkResult walk = main.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        for (AffineExpr expr : prim::getSizes(tensor))
          for (unsigned symbol : getSymbols(expr))
            if (!known.contains(symbol) && !boundByData.contains(symbol))
              return op->emitError() << "the size \"" << symbolName(symbol) << "\" is defined by no input and no op";
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();

  overflow = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  auto checkOverflow = [&] {
    failIf(overflow, TCRT_CODE_NO_MEMORY, "the memory needed for these input sizes exceeds what can be addressed");
    overflow = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  };
  for (const Derived &derived : expressions) {
    Value expected = size(derived.expr);
    Value dim = load(i64, at(inputDims, 8 * derived.number));
    auto name = main.getArgAttrOfType<StringAttr>(derived.input, "tc.name");
    failIf(compare(LLVM::ICmpPredicate::ne, dim, expected), TCRT_CODE_REFUSED,
           llvm::formatv("input \"{0}\": dim {1} must be {2}", name ? name.getValue() : "?", derived.dim,
                         prim::formatSize(derived.expr, symbols)));
  }
  for (auto guard : main.getOps<prim::GuardOp>())
    if (isCheckedByInfer(guard))
      emitGuard(guard);
  // Sizes that can become negative for some inputs.
  llvm::SetVector<AffineExpr> sizes;
  auto addSizes = [&](TypeRange types) {
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        for (AffineExpr expr : prim::getSizes(tensor))
          if (!isBoundByData(expr) && prim::getSizeBounds(expr, symbols).first < 0)
            sizes.insert(expr);
  };
  main.walk([&](Operation *op) { addSizes(op->getResultTypes()); });
  for (AffineExpr expr : sizes)
    failIf(
        compare(LLVM::ICmpPredicate::slt, size(expr), c64(0)), TCRT_CODE_REFUSED,
        llvm::formatv("these input sizes give a negative size {0} inside the model", prim::formatSize(expr, symbols)));

  number = 0;
  for (Type type : main.getResultTypes()) {
    for (AffineExpr expr : prim::getSizes(type)) {
      store(isBoundByData(expr) ? c64(-1) : size(expr), at(outputDims, 8 * number));
      ++number;
    }
    AffineExpr bytes = getSizeBytes(type);
    if (!isBoundByData(bytes))
      size(bytes); // for its overflow
  }
  Value scratch = c64(0);
  for (AffineExpr expr : main->getAttrOfType<AffineMapAttr>(kScratchAttr).getValue().getResults()) {
    Value bytes = size(expr);
    scratch = select(compare(LLVM::ICmpPredicate::sgt, bytes, scratch), bytes, scratch);
  }
  Value workers = load(i64, at(frame, offsetof(tcrt_frame_t, worker_count)));
  scratch = arithmetic(AffineExprKind::Mul, scratch, workers);
  Value bytes = size(main->getAttrOfType<AffineMapAttr>(kArenaAttr).getValue());
  bytes = arithmetic(AffineExprKind::Add, bytes, scratch);
  checkOverflow();
  store(bytes, at(frame, offsetof(tcrt_frame_t, arena_size)));
  overflow = Value();
  for (auto &[op, id] : launchIds)
    if (auto launch = cast<LaunchOp>(op); hasDynamicCost(launch) && !isCostBoundByData(launch))
      emitCost(launch);
  LLVM::ReturnOp::create(b, loc, c32(0));
  return success();
}

bool ProgramBuilder::hasDynamicCost(LaunchOp launch) {
  base::CostAttr cost = launch.getCostAttr();
  return cost && !(prim::getConstantSize(cost.getFlopsExpr()) && prim::getConstantSize(cost.getBytesExpr()));
}

void ProgramBuilder::emitCost(LaunchOp launch) {
  base::CostAttr cost = launch.getCostAttr();
  callIndirect(LLVM::LLVMVoidType::get(context), {ptr, i32, i64, i64}, import(offsetof(tcrt_imports_t, set_cost)),
               {frame, c32(launchIds.lookup(launch)), size(cost.getFlopsExpr()), size(cost.getBytesExpr())});
}

LogicalResult ProgramBuilder::emitLaunch(LaunchOp launch) {
  unsigned id = launchIds.lookup(launch);
  if (hasDynamicCost(launch) && isCostBoundByData(launch))
    emitCost(launch);
  for (Value output : launch.getOutputs())
    allocate(output);
  // Each member of a group has its own words.
  SmallVector<LaunchOp> members = getGroupMembers(launch);
  const int64_t place = std::distance(members.begin(), llvm::find(members, launch));
  Value words = at(args, place * argsBytes);
  int64_t word = 0;
  auto push = [&](Value value) { store(value, at(words, 8 * word++)); };
  for (Value input : launch.getInputs())
    push(address(input));
  for (Value output : launch.getOutputs())
    push(address(output));
  if (launch.getScratch() && isBoundByData(launch.getScratch()->getResult(0))) {
    Value workers = load(i64, at(frame, offsetof(tcrt_frame_t, worker_count)));
    ownScratch.push_back(
        allocateBytes([&] { return arithmetic(AffineExprKind::Mul, size(*launch.getScratch()), workers); },
                      "the scratch of a kernel whose sizes depend on data is too large"));
    push(ownScratch.back());
  } else if (launch.getScratch()) {
    // Behind that of the members before, for each worker of them.
    AffineExpr before = getAffineConstantExpr(0, context);
    for (LaunchOp member : ArrayRef(members).take_front(place))
      if (member.getScratch() && !isBoundByData(member.getScratch()->getResult(0)))
        before = before + member.getScratch()->getResult(0);
    Value from = size(main->getAttrOfType<AffineMapAttr>(kArenaAttr).getValue());
    if (before = prim::simplifySize(before); prim::getConstantSize(before) != 0) {
      Value workers = load(i64, at(frame, offsetof(tcrt_frame_t, worker_count)));
      from = arithmetic(AffineExprKind::Add, from, arithmetic(AffineExprKind::Mul, size(before), workers));
    }
    push(at(arena, from));
  }
  for (int64_t symbol : launch.getSymbols())
    push(load(i64, at(frameSymbols, 8 * symbol)));
  if (isCpu) {
    auto kernel = dyn_cast_or_null<LLVM::LLVMFuncOp>(SymbolTable::lookupSymbolIn(variant, launch.getKernel()));
    if (!kernel)
      return launch.emitError() << "variant @" << variant.getSymName() << " has no kernel @" << launch.getKernel();
    Value function = LLVM::AddressOfOp::create(b, loc, ptr, launch.getKernel());
    if (members.size() == 1 && !launch.getSteps()) {
      callIndirect(LLVM::LLVMVoidType::get(context), {ptr, i32, ptr, ptr, i64, i64},
                   import(offsetof(tcrt_imports_t, launch)),
                   {frame, c32(id), function, words, size(launch.getTasks()), size(launch.getGrain())});
    } else {
      const int64_t record = place * sizeof(tcrt_launch_t);
      auto set = [&](size_t offset, Value value) { store(value, at(groupRecords, record + int64_t(offset))); };
      set(offsetof(tcrt_launch_t, fn), function);
      set(offsetof(tcrt_launch_t, args), words);
      set(offsetof(tcrt_launch_t, tasks), size(launch.getTasks()));
      set(offsetof(tcrt_launch_t, grain), size(launch.getGrain()));
      set(offsetof(tcrt_launch_t, id), c32(id));
      if (launch != members.back())
        return success();
      if (launch.getSteps())
        callIndirect(LLVM::LLVMVoidType::get(context), {ptr, i32, ptr, i64},
                     import(offsetof(tcrt_imports_t, launch_steps)),
                     {frame, c32(members.size()), groupRecords, size(*launch.getSteps())});
      else
        callIndirect(LLVM::LLVMVoidType::get(context), {ptr, i32, ptr}, import(offsetof(tcrt_imports_t, launch_group)),
                     {frame, c32(members.size()), groupRecords});
    }
    for (Value scratch : ownScratch)
      release(scratch);
    ownScratch.clear();
    return success();
  }
  DictionaryAttr device = launch.getDeviceAttr();
  auto grid = device ? device.getAs<AffineMapAttr>("grid") : AffineMapAttr();
  auto block = device ? device.getAs<DenseI64ArrayAttr>("block") : DenseI64ArrayAttr();
  if (!grid || grid.getValue().getNumResults() != 3 || !block || block.size() != 3)
    return launch.emitError() << "a launch on a device needs device = {grid = map of 3 sizes, block = 3 numbers, smem}";
  auto smem = device.getAs<IntegerAttr>("smem");
  unsigned index = deviceKernels.try_emplace(launch.getKernel(), deviceKernels.size()).first->second;
  // cuLaunchKernel takes an array of the parameters' addresses; there is one parameter, the argument words by value. An
  // empty grid is no launch.
  Value parameters = stack(1), gridWords = stack(2), blockWords = stack(2);
  store(words, parameters);
  Value empty = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  for (int64_t i = 0; i < 3; ++i) {
    Value count = size(grid.getValue().getResult(i));
    empty = LLVM::OrOp::create(b, loc, empty, compare(LLVM::ICmpPredicate::sle, count, c64(0)));
    store(LLVM::TruncOp::create(b, loc, i32, count), at(gridWords, 4 * i));
    store(c32(block[i]), at(blockWords, 4 * i));
  }
  Block *run = newBlock(), *next = newBlock();
  condBranch(empty, next, run);
  b.setInsertionPointToStart(run);
  returnIfFailed(
      callIndirect(i32, {ptr, i32, i32, ptr, ptr, i32, ptr}, import(offsetof(tcrt_imports_t, launch_device)),
                   {frame, c32(id), c32(index), gridWords, blockWords, c32(smem ? smem.getInt() : 0), parameters}));
  branch(next);
  b.setInsertionPointToStart(next);
  return success();
}

/// prim.sizes, prim.splat and prim.iota as results of the function: small, written by the host.
LogicalResult ProgramBuilder::emitFill(Operation *op) {
  Value result = op->getResult(0);
  allocate(result);
  Value to = address(result);
  auto type = cast<RankedTensorType>(result.getType());
  Type element = type.getElementType();
  unsigned bits = getElementBits(element);
  if (bits % 8 != 0 || bits > 64)
    return base::emitUnsupported(op) << "filling a tensor of " << element << " on the host is not supported";
  Type word = b.getIntegerType(bits);
  auto convert = [&](Value value) -> Value {
    if (isa<FloatType>(element)) {
      Value number = LLVM::SIToFPOp::create(b, loc, element, value);
      return LLVM::BitcastOp::create(b, loc, word, number);
    }
    return bits == 64 ? value : Value(LLVM::TruncOp::create(b, loc, word, value));
  };
  if (auto sizes = dyn_cast<prim::SizesOp>(op)) {
    for (auto [i, expr] : llvm::enumerate(sizes.getMap().getResults()))
      hostStore(convert(size(expr)), at(to, int64_t(i) * (bits / 8)));
    return success();
  }
  Value constant, inner, extent;
  if (auto splat = dyn_cast<prim::SplatOp>(op)) {
    APInt value(bits, 0);
    if (auto number = dyn_cast<FloatAttr>(splat.getValue()))
      value = number.getValue().bitcastToAPInt();
    else if (auto number = dyn_cast<IntegerAttr>(splat.getValue()))
      value = number.getValue().zextOrTrunc(bits);
    else
      return base::emitUnsupported(op) << "filling a tensor of " << element << " on the host is not supported";
    constant = LLVM::ConstantOp::create(b, loc, word, b.getIntegerAttr(word, value));
  } else {
    auto iota = cast<prim::IotaOp>(op);
    SmallVector<AffineExpr> dims = prim::getSizes(type);
    inner = size(prim::product(context, ArrayRef(dims).drop_front(iota.getAxis() + 1)));
    extent = size(dims[iota.getAxis()]);
  }
  Value count = size(prim::product(context, prim::getSizes(type)));
  Block *header = newBlock({i64}), *body = newBlock(), *exit = newBlock();
  branch(header, c64(0));
  b.setInsertionPointToStart(header);
  Value i = header->getArgument(0);
  condBranch(compare(LLVM::ICmpPredicate::slt, i, count), body, exit);
  b.setInsertionPointToStart(body);
  Value value = constant;
  if (!value)
    value = convert(LLVM::SRemOp::create(b, loc, LLVM::SDivOp::create(b, loc, i, inner), extent));
  Value offset = LLVM::MulOp::create(b, loc, i, c64(bits / 8));
  hostStore(value, at(to, offset));
  branch(header, Value(LLVM::AddOp::create(b, loc, i, c64(1))));
  b.setInsertionPointToStart(exit);
  return success();
}

/// Words that the record of a call takes: its head, operands and results, and their dims.
static int64_t countRecordWords(prim::HostCallOp op) {
  int64_t words = sizeof(tcrt_call_t) / 8;
  for (TypeRange types : {TypeRange(op.getOperandTypes()), TypeRange(op.getResultTypes())})
    for (Type type : types)
      words += sizeof(tcrt_operand_t) / 8 + cast<RankedTensorType>(type).getRank();
  return words;
}

LogicalResult ProgramBuilder::emitHostCall(prim::HostCallOp op) {
  if (!isCpu)
    return base::emitUnsupported(op) << "calling the function \"" << op.getCallee()
                                     << "\" is not supported for this device; compile for the CPU";
  for (Value result : op.getResults())
    allocate(result);
  SmallVector<Value> values(op.getOperands());
  llvm::append_range(values, op.getResults());
  constexpr int64_t kHead = sizeof(tcrt_call_t), kOperand = sizeof(tcrt_operand_t);
  int64_t place = kHead, dimsPlace = kHead + int64_t(values.size()) * kOperand;
  Value operands = at(callRecord, kHead), results = at(callRecord, kHead + int64_t(op.getNumOperands()) * kOperand);
  for (auto [value, word] : llvm::zip_equal(values, op.getWords())) {
    auto type = cast<RankedTensorType>(value.getType());
    tcrt_dtype_t dtype = base::getOperandDtype(type.getElementType(), word);
    store(address(value), at(callRecord, place + int64_t(offsetof(tcrt_operand_t, data))));
    store(at(callRecord, dimsPlace), at(callRecord, place + int64_t(offsetof(tcrt_operand_t, dims))));
    store(c32(dtype), at(callRecord, place + int64_t(offsetof(tcrt_operand_t, dtype))));
    store(c32(type.getRank()), at(callRecord, place + int64_t(offsetof(tcrt_operand_t, rank))));
    for (AffineExpr expr : prim::getSizes(type)) {
      store(size(expr), at(callRecord, dimsPlace));
      dimsPlace += 8;
    }
    place += kOperand;
  }
  std::string node = llvm::join(getNodeNames(op.getLoc()), "+");
  auto set = [&](Value value, size_t offset) { store(value, at(callRecord, int64_t(offset))); };
  set(c32(functions.lookup(op.getCallee())), offsetof(tcrt_call_t, function));
  set(c32(op.getNumOperands()), offsetof(tcrt_call_t, operand_count));
  set(c32(op.getNumResults()), offsetof(tcrt_call_t, result_count));
  set(c32(node.size()), offsetof(tcrt_call_t, node_length));
  set(text(node), offsetof(tcrt_call_t, node));
  set(operands, offsetof(tcrt_call_t, operands));
  set(results, offsetof(tcrt_call_t, results));
  returnIfFailed(callIndirect(i32, {ptr, ptr}, import(offsetof(tcrt_imports_t, call)), {frame, callRecord}));
  return success();
}

void ProgramBuilder::emitIf(prim::IfOp op, LogicalResult &result) {
  SmallVector<Value> dynamic;
  for (Value value : op.getResults())
    if (hasDynamicMemory(value))
      dynamic.push_back(value);
  Value condition = hostLoad(i8, address(op.getCondition()));
  Block *blocks[2] = {newBlock(), newBlock()}, *next = newBlock(SmallVector<Type>(dynamic.size(), ptr));
  condBranch(compare(LLVM::ICmpPredicate::ne, condition, LLVM::ConstantOp::create(b, loc, i8, b.getI8IntegerAttr(0))),
             blocks[0], blocks[1]);
  for (int side = 0; side < 2; ++side) {
    Block &body = op->getRegion(side).front();
    b.setInsertionPointToStart(blocks[side]);
    if (failed(emit(body)))
      result = failure();
    ValueRange yielded = body.getTerminator()->getOperands();
    bindResultSymbols(op, yielded);
    // Sizes are known only here. Each branch makes the memory of its results.
    for (auto [to, from] : llvm::zip_equal(op.getResults(), yielded)) {
      allocate(to);
      copy(address(to), address(from), size(getSizeBytes(to.getType())));
    }
    releaseMemoryOf(body, {});
    branch(next, llvm::map_to_vector(dynamic, [&](Value value) { return dynamicMemory.lookup(value); }));
  }
  b.setInsertionPointToStart(next);
  for (auto [i, value] : llvm::enumerate(dynamic))
    dynamicMemory[value] = next->getArgument(i);
}

void ProgramBuilder::emitWhile(prim::WhileOp op, LogicalResult &result) {
  Block &body = op.getBody().front();
  // Values whose size changes: their memory is carried by the header's arguments.
  SmallVector<unsigned> dynamic;
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    if (hasDynamicMemory(value))
      dynamic.push_back(i);
  Value maxTrips = hostLoad(i64, address(op.getMaxTrips()));
  Value condition = hostLoad(i8, address(op.getCondition()));
  bindResultSymbols(op, op.getInits());
  for (auto [to, from] : llvm::zip_equal(op.getResults(), op.getInits())) {
    allocate(to);
    copy(address(to), address(from), size(getSizeBytes(to.getType())));
  }
  SmallVector<Type> carried{i64, i8};
  carried.append(dynamic.size(), ptr);
  Block *header = newBlock(carried), *loop = newBlock(), *next = newBlock();
  SmallVector<Value> initial{c64(0), condition};
  for (unsigned i : dynamic)
    initial.push_back(dynamicMemory.lookup(op.getResult(i)));
  branch(header, initial);
  b.setInsertionPointToStart(header);
  Value trip = header->getArgument(0);
  for (auto [n, i] : llvm::enumerate(dynamic))
    dynamicMemory[op.getResult(i)] = dynamicMemory[body.getArgument(i + 1)] = header->getArgument(n + 2);
  Value go = LLVM::AndOp::create(b, loc, compare(LLVM::ICmpPredicate::slt, trip, maxTrips),
                                 compare(LLVM::ICmpPredicate::ne, header->getArgument(1),
                                         LLVM::ConstantOp::create(b, loc, i8, b.getI8IntegerAttr(0))));
  condBranch(go, loop, next);
  b.setInsertionPointToStart(loop);
  hostStore(trip, address(body.getArgument(0)));
  if (failed(emit(body)))
    result = failure();
  ValueRange yielded = body.getTerminator()->getOperands();
  Value again = hostLoad(i8, address(yielded.front()));
  yielded = yielded.drop_front();
  for (auto [to, from] : llvm::zip_equal(op.getResults(), yielded))
    // A value that is carried on unchanged, or was made in place, is there already.
    if (!hasDynamicMemory(to) && (placeOf(to) != placeOf(from) || hasDynamicMemory(from)))
      copy(address(to), address(from), size(getSizeBytes(to.getType())));
  SmallVector<Value> memory;
  for (unsigned i : dynamic) {
    Value from = prim::getViewSource(yielded[i]);
    bool local = from.getParentBlock() == &body && (isa<OpResult>(from) || from == body.getArgument(i + 1));
    Value own = local ? dynamicMemory.lookup(from) : Value();
    // What the iteration made for this value alone is handed on; anything else is copied.
    if (own && hasDynamicMemory(from) && placeOf(from).getKind() == PlaceKind::Heap &&
        !llvm::is_contained(memory, own)) {
      memory.push_back(own);
      continue;
    }
    Value source = address(from), bytes = size(getSizeBytes(yielded[i].getType()));
    memory.push_back(allocateBytes(bytes));
    copy(memory.back(), source, bytes);
  }
  bindResultSymbols(op, yielded);
  // What the iteration allocated ends with it.
  releaseMemoryOf(body, memory);
  for (auto [n, i] : llvm::enumerate(dynamic))
    if (Value old = header->getArgument(n + 2); !llvm::is_contained(memory, old))
      release(old);
  SmallVector<Value> following{LLVM::AddOp::create(b, loc, trip, c64(1)), again};
  llvm::append_range(following, memory);
  branch(header, following);
  b.setInsertionPointToStart(next);
}

LogicalResult ProgramBuilder::emit(Block &block) {
  for (Operation &op : block) {
    loc = op.getLoc();
    LogicalResult result = success();
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      result = emitLaunch(launch);
    } else if (auto copyOp = dyn_cast<CopyOp>(op)) {
      allocate(copyOp.getResult());
      copy(address(copyOp.getResult()), address(copyOp.getInput()), size(getSizeBytes(copyOp.getResult().getType())));
    } else if (auto bind = dyn_cast<prim::BindSymbolOp>(op)) {
      Value value = hostLoad(i64, address(bind.getValue()));
      checkSymbol(bind.getSymbol(), value, bind.getMessage());
      store(value, at(frameSymbols, 8 * bind.getSymbol()));
    } else if (auto guard = dyn_cast<prim::GuardOp>(op)) {
      if (!isCheckedByInfer(guard))
        emitGuard(guard);
    } else if (auto call = dyn_cast<prim::HostCallOp>(op)) {
      result = emitHostCall(call);
    } else if (auto branchOp = dyn_cast<prim::IfOp>(op)) {
      emitIf(branchOp, result);
    } else if (auto loop = dyn_cast<prim::WhileOp>(op)) {
      emitWhile(loop, result);
    } else if (isa<prim::SizesOp, prim::SplatOp, prim::IotaOp>(op)) {
      result = emitFill(&op);
    } else if (!isa<ConstantOp, prim::ConstantOp, prim::ReshapeOp, prim::StorageOp, prim::YieldOp, func::ReturnOp>(
                   op)) {
      return op.emitError() << "op is not allowed in the host program";
    }
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult ProgramBuilder::buildRun() {
  auto function = beginFunction("tc_run", i32, {ptr});
  loadFrame(function.getArgument(0));
  inputs = load(ptr, at(frame, offsetof(tcrt_frame_t, inputs)));
  outputs = load(ptr, at(frame, offsetof(tcrt_frame_t, outputs)));
  arena = load(ptr, at(frame, offsetof(tcrt_frame_t, arena)));
  weights = load(ptr, at(frame, offsetof(tcrt_frame_t, weights)));
  int64_t words = 1, most = 1, records = 0;
  for (auto &[op, id] : launchIds) {
    auto launch = cast<LaunchOp>(op);
    words = std::max<int64_t>(words,
                              launch.getInputs().size() + launch.getOutputs().size() + launch.getSymbols().size() + 1);
    const int64_t members = getGroupMembers(launch).size();
    most = std::max(most, members);
    if (members > 1 || launch.getSteps())
      records = std::max(records, members);
  }
  args = stack(words * most);
  argsBytes = words * 8;
  if (records > 0)
    groupRecords = stack(records * sizeof(tcrt_launch_t) / 8);
  int64_t recordWords = 0;
  main.walk([&](prim::HostCallOp call) { recordWords = std::max(recordWords, countRecordWords(call)); });
  if (recordWords > 0)
    callRecord = stack(recordWords);
  if (failed(emit(main.front())))
    return failure();
  loc = variant.getLoc();
  LLVM::ReturnOp::create(b, loc, c32(0));
  return success();
}

void ProgramBuilder::buildEntry() {
  b.setInsertionPointToStart(&variant.getBody().front());
  // Read by the code library; hidden, so that it is addressed without a table.
  auto table =
      LLVM::GlobalOp::create(b, loc, ptr, /*isConstant=*/false, LLVM::Linkage::External, "tc_imports", Attribute());
  table.setVisibility_(LLVM::Visibility::Hidden);
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&table.getInitializerRegion());
    LLVM::ReturnOp::create(b, loc, null());
  }
  auto type = LLVM::LLVMStructType::getLiteral(context, {i32, i32, ptr, ptr});
  auto program =
      LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, "tc_program", Attribute());
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&program.getInitializerRegion());
    Value value = LLVM::UndefOp::create(b, loc, type);
    Value fields[] = {c32(TCRT_ABI_VERSION), c32(sizeof(tcrt_program_t)),
                      LLVM::AddressOfOp::create(b, loc, ptr, "tc_infer"),
                      LLVM::AddressOfOp::create(b, loc, ptr, "tc_run")};
    for (auto [i, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(b, loc, value, field, ArrayRef<int64_t>{int64_t(i)});
    LLVM::ReturnOp::create(b, loc, value);
  }
  auto function = beginFunction("tc_entry", ptr, {ptr});
  function.setVisibility_(LLVM::Visibility::Default);
  Value given = function.getArgument(0);
  Value version = load(i32, at(given, offsetof(tcrt_imports_t, abi_version)));
  Value bytes = load(i32, at(given, offsetof(tcrt_imports_t, size)));
  Value bad = LLVM::OrOp::create(b, loc, compare(LLVM::ICmpPredicate::ne, version, c32(TCRT_ABI_VERSION)),
                                 compare(LLVM::ICmpPredicate::ult, bytes, c32(neededImports())));
  store(given, LLVM::AddressOfOp::create(b, loc, ptr, "tc_imports"));
  LLVM::ReturnOp::create(b, loc, select(bad, null(), LLVM::AddressOfOp::create(b, loc, ptr, "tc_program")));
}

/// Bytes of the runtime's table up to the last entry that the program calls: an older runtime may have no more.
uint32_t ProgramBuilder::neededImports() {
  uint32_t bytes = offsetof(tcrt_imports_t, launch_group);
  for (auto &[op, id] : launchIds) {
    auto launch = cast<LaunchOp>(op);
    if (hasDynamicCost(launch))
      bytes = std::max<uint32_t>(bytes, offsetof(tcrt_imports_t, set_cost) + sizeof(void *));
    if (launch.getSteps())
      bytes = std::max<uint32_t>(bytes, offsetof(tcrt_imports_t, launch_steps) + sizeof(void *));
    else if (getGroupMembers(launch).size() > 1)
      bytes = std::max<uint32_t>(bytes, offsetof(tcrt_imports_t, launch_group) + sizeof(void *));
  }
  return bytes;
}

LogicalResult ProgramBuilder::build() {
  if (SymbolTable::lookupSymbolIn(variant, "tc_run"))
    return variant.emitError() << "variant has a host program already";
  for (auto function : variant.getBody().getOps<LLVM::LLVMFuncOp>())
    function.setVisibility_(LLVM::Visibility::Hidden);
  main.walk([&](Operation *op) {
    for (int64_t symbol : prim::getBoundSymbols(op))
      boundByData.insert(symbol);
  });
  main.walk<WalkOrder::PreOrder>([&](LaunchOp launch) { launchIds.insert({launch, launchIds.size()}); });
  for (auto [i, name] : llvm::enumerate(getHostFunctions(main)))
    functions[name] = i;
  buildEntry();
  if (failed(buildInfer()))
    return failure();
  return buildRun();
}

struct ConvertHostToLLVM : public tc::impl::ConvertHostToLLVMPassBase<ConvertHostToLLVM> {
  void runOnOperation() override {
    func::FuncOp main = getMainFunction(getOperation());
    if (!main || main.isExternal()) {
      getOperation().emitError() << "the module has no function @main";
      return signalPassFailure();
    }
    if (!main->hasAttr(kArenaAttr) || !main->hasAttr(kScratchAttr) || !main->hasAttr(kPlacesAttr)) {
      main.emitError() << "the function has no memory plan; run tc-plan-memory first";
      return signalPassFailure();
    }
    for (VariantOp variant : llvm::to_vector(getOperation().getOps<VariantOp>()))
      if (failed(ProgramBuilder(main, variant).build()))
        return signalPassFailure();
  }
};

} // namespace
