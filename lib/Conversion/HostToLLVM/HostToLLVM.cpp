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
// A long tc_run is a list of calls of functions of bounded size, which share words: where the arena's segments end, the
// addresses of values that are allocated as the program runs, and sizes, each of which is computed once.
//
// Memory of GPU variants is not the host's: what the host reads or writes goes through imports->copy.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "tc/Dialect/Host/IR/CudaGraphs.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace tc {
#define GEN_PASS_DEF_CONVERTHOSTTOLLVMPASS
#include "tc/Conversion/HostToLLVM/Passes.h.inc"
} // namespace tc

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

/// LLVM's work on a function grows faster than the function: longer programs are split. In words that ops store, about.
static constexpr int64_t kMostWords = 256, kMostWordsAlone = 512;

static int64_t countWords(Operation &op) {
  constexpr int64_t kLeast = 4;
  if (isa<ConstantOp, prim::ConstantOp, prim::ReshapeOp, func::ReturnOp>(op))
    return 0;
  return std::max<int64_t>(kLeast, op.getNumOperands() + op.getNumResults());
}

SmallVector<func::FuncOp> tc::getFunctions(ModuleOp module) {
  return llvm::filter_to_vector(module.getOps<func::FuncOp>(), [](func::FuncOp func) { return !func.isExternal(); });
}

SmallVector<StringRef> tc::getHostFunctions(ArrayRef<func::FuncOp> functions) {
  llvm::SetVector<StringRef> names;
  for (func::FuncOp function : functions)
    function->walk<WalkOrder::PreOrder>([&](prim::HostCallOp call) { names.insert(call.getCallee()); });
  return names.takeVector();
}

LLVM::LLVMFuncOp ProgramBuilder::beginFunction(StringRef name, Type result, ArrayRef<Type> arguments) {
  b.setInsertionPointToEnd(&variant.getBody().front());
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, LLVM::LLVMFunctionType::get(result, arguments));
  function.setVisibility_(LLVM::Visibility::Hidden);
  b.setInsertionPointToStart(function.addEntryBlock(b));
  knownSizes.clear();
  knownSizes.emplace_back();
  segments.clear();
  shared = Value();
  return function;
}

void ProgramBuilder::loadFrame(Value value) {
  frame = value;
  imports = load(ptr, at(frame, offsetof(tcrt_frame_t, imports)));
  frameSymbols = load(ptr, at(frame, offsetof(tcrt_frame_t, symbols)));
  overflow = Value();
}

LogicalResult ProgramBuilder::emit(Block &block) {
  for (Operation &op : block)
    if (failed(emit(op)))
      return failure();
  return success();
}

LogicalResult ProgramBuilder::emit(Operation &op) {
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
  } else if (auto write = dyn_cast<prim::WriteStateOp>(op)) {
    emitWriteState(write);
  } else if (auto branchOp = dyn_cast<prim::IfOp>(op)) {
    emitIf(branchOp, result);
  } else if (auto choice = dyn_cast<ChooseOp>(op)) {
    emitChoose(choice, result);
  } else if (auto loop = dyn_cast<prim::WhileOp>(op)) {
    emitWhile(loop, result);
  } else if (isa<prim::SizesOp, prim::SplatOp, prim::IotaOp>(op)) {
    result = emitFill(&op);
  } else if (!isa<ConstantOp, prim::ConstantOp, prim::ReshapeOp, prim::StorageOp, prim::ReadStateOp, prim::YieldOp,
                  YieldOp, func::ReturnOp>(op)) {
    return op.emitError() << "op is not allowed in the host program";
  }
  return result;
}

LLVM::LLVMFuncOp ProgramBuilder::beginRun(StringRef name, ArrayRef<Type> arguments) {
  auto function = beginFunction(name, i32, arguments);
  loadFrame(function.getArgument(0));
  inputs = load(ptr, at(frame, offsetof(tcrt_frame_t, inputs)));
  outputs = load(ptr, at(frame, offsetof(tcrt_frame_t, outputs)));
  arena = load(ptr, at(frame, offsetof(tcrt_frame_t, arena)));
  weights = load(ptr, at(frame, offsetof(tcrt_frame_t, weights)));
  if (room.states)
    states = load(ptr, at(frame, offsetof(tcrt_frame_t, states)));
  args = stack(room.words * room.members, isCpu ? 16 : TCRT_PARAMETER_ALIGN);
  argsBytes = room.words * 8;
  if (!isCpu)
    deviceRecord = stack(sizeof(tcrt_device_launch_t) / 8);
  if (room.records > 0)
    groupRecords = stack(room.records * sizeof(tcrt_launch_t) / 8);
  if (room.call > 0)
    callRecord = stack(room.call);
  return function;
}

void ProgramBuilder::callParts(ArrayRef<std::string> names, ArrayRef<Value> arguments) {
  for (const std::string &name : names) {
    auto call = LLVM::CallOp::create(b, loc, TypeRange{i32}, StringRef(name), ValueRange(arguments));
    returnIfFailed(call.getResult());
  }
}

FailureOr<SmallVector<std::string>> ProgramBuilder::buildParts() {
  Block &block = main.front();
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (hasDynamicMemory(result))
        sharedMemory.insert({result, int64_t(sharedMemory.size())});
  SmallVector<std::string> names;
  int64_t count = kMostWords;
  for (Operation &op : block) {
    auto launch = dyn_cast<LaunchOp>(op);
    // A group is one call of the runtime.
    if (count >= kMostWords && !(launch && launch.joinsPrevious())) {
      if (!names.empty())
        LLVM::ReturnOp::create(b, loc, c32(0));
      loc = variant.getLoc();
      names.push_back("tc_run" + suffix.str() + ".part" + std::to_string(names.size()));
      auto function = beginRun(names.back(), {ptr, ptr});
      markPart(function);
      shared = function.getArgument(1);
      dynamicMemory.clear();
      count = 0;
    }
    if (failed(emit(op)))
      return failure();
    count += countWords(op);
    for (Value result : op.getResults())
      if (auto memory = dynamicMemory.find(result); memory != dynamicMemory.end())
        store(memory->second, sharedMemoryAddress(result));
  }
  LLVM::ReturnOp::create(b, loc, c32(0));
  dynamicMemory.clear();
  loc = variant.getLoc();
  return names;
}

SmallVector<std::string> ProgramBuilder::buildSegments() {
  constexpr size_t kMost = 32;
  SmallVector<std::string> names;
  for (size_t first = 0; first < segmentBytes.size(); first += kMost) {
    names.push_back("tc_run" + suffix.str() + ".segments" + std::to_string(names.size()));
    auto function = beginFunction(names.back(), i32, {ptr, ptr});
    markPart(function);
    loadFrame(function.getArgument(0));
    arena = load(ptr, at(frame, offsetof(tcrt_frame_t, arena)));
    emitSegments(first, std::min(first + kMost, segmentBytes.size()), function.getArgument(1));
    LLVM::ReturnOp::create(b, loc, c32(0));
  }
  return names;
}

LogicalResult ProgramBuilder::buildRun() {
  for (auto &[op, id] : launchIds) {
    auto launch = cast<LaunchOp>(op);
    room.words = std::max<int64_t>(room.words, launch.getInputs().size() + launch.getOutputs().size() +
                                                   launch.getSymbols().size() + 1);
    const int64_t members = launch.joinsPrevious() ? 1 : int64_t(getGroupMembers(launch).size());
    room.members = std::max(room.members, members);
    if (members > 1 || launch.getSteps())
      room.records = std::max(room.records, members);
  }
  main.walk([&](Operation *op) { room.states |= isa<prim::ReadStateOp, prim::WriteStateOp>(op); });
  main.walk([&](prim::HostCallOp call) { room.call = std::max(room.call, countRecordWords(call)); });
  const std::string name = "tc_run" + suffix.str();
  int64_t words = 0;
  for (Operation &op : main.front())
    words += countWords(op);
  if (words <= kMostWordsAlone) {
    beginRun(name, {ptr});
    emitSegments(0, segmentBytes.size(), Value());
    if (failed(emit(main.front())))
      return failure();
  } else {
    FailureOr<SmallVector<std::string>> parts = buildParts();
    if (failed(parts))
      return failure();
    SmallVector<std::string> names = buildSegments();
    llvm::append_range(names, *parts);
    Value argument = beginFunction(name, i32, {ptr}).getArgument(0);
    callParts(names, {argument, stack(int64_t(segmentBytes.size() + sharedMemory.size() + sharedSizes.size()))});
  }
  loc = variant.getLoc();
  LLVM::ReturnOp::create(b, loc, c32(0));
  return success();
}

void ProgramBuilder::buildEntry(ArrayRef<std::string> suffixes, uint32_t neededImports) {
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
  auto constant = [&](StringRef name, Type type, llvm::function_ref<Value(Value)> fill) {
    auto global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, Attribute());
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&global.getInitializerRegion());
    LLVM::ReturnOp::create(b, loc, fill(LLVM::UndefOp::create(b, loc, type)));
  };
  auto insert = [&](Value value, Value field, ArrayRef<int64_t> position) {
    return Value(LLVM::InsertValueOp::create(b, loc, value, field, position));
  };
  // tcrt_routine_t, tcrt_program_t
  auto routine = LLVM::LLVMStructType::getLiteral(context, {ptr, ptr});
  constant("tc_routines", LLVM::LLVMArrayType::get(routine, suffixes.size()), [&](Value value) {
    for (auto [i, suffix] : llvm::enumerate(suffixes)) {
      value = insert(value, LLVM::AddressOfOp::create(b, loc, ptr, "tc_infer" + suffix), {int64_t(i), 0});
      value = insert(value, LLVM::AddressOfOp::create(b, loc, ptr, "tc_run" + suffix), {int64_t(i), 1});
    }
    return value;
  });
  constant("tc_program", LLVM::LLVMStructType::getLiteral(context, {i32, i32, i32, i32, ptr}), [&](Value value) {
    Value fields[] = {c32(TCRT_ABI_VERSION), c32(sizeof(tcrt_program_t)), c32(suffixes.size()), c32(0),
                      LLVM::AddressOfOp::create(b, loc, ptr, "tc_routines")};
    for (auto [i, field] : llvm::enumerate(fields))
      value = insert(value, field, {int64_t(i)});
    return value;
  });
  auto function = beginFunction("tc_entry", ptr, {ptr});
  function.setVisibility_(LLVM::Visibility::Default);
  Value given = function.getArgument(0);
  Value version = load(i32, at(given, offsetof(tcrt_imports_t, abi_version)));
  Value bytes = load(i32, at(given, offsetof(tcrt_imports_t, size)));
  Value bad = LLVM::OrOp::create(b, loc, compare(LLVM::ICmpPredicate::ne, version, c32(TCRT_ABI_VERSION)),
                                 compare(LLVM::ICmpPredicate::ult, bytes, c32(neededImports)));
  store(given, LLVM::AddressOfOp::create(b, loc, ptr, "tc_imports"));
  LLVM::ReturnOp::create(b, loc, select(bad, null(), LLVM::AddressOfOp::create(b, loc, ptr, "tc_program")));
}

LogicalResult ProgramBuilder::build() {
  boundByData = getSymbolsOfData(main);
  main.walk([&](prim::WhileOp op) {
    for (int64_t symbol : prim::getBoundSymbols(op))
      boundByLoop.insert(symbol);
  });
  segmentBytes = llvm::to_vector(main->getAttrOfType<AffineMapAttr>(kArenaAttr).getValue().getResults());
  main.walk<WalkOrder::PreOrder>([&](LaunchOp launch) { launchIds.insert({launch, tables.launchCount++}); });
  if (failed(buildInfer()))
    return failure();
  return buildRun();
}

namespace {

struct ConvertHostToLLVM : public tc::impl::ConvertHostToLLVMPassBase<ConvertHostToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions = getFunctions(module);
    if (functions.empty()) {
      module.emitError() << "the module has no function @main";
      return signalPassFailure();
    }
    for (func::FuncOp function : functions)
      if (!function->hasAttr(kArenaAttr) || !function->hasAttr(kScratchAttr) || !function->hasAttr(kPlacesAttr)) {
        function.emitError() << "the function has no memory plan; run tc-plan-memory first";
        return signalPassFailure();
      }
    for (VariantOp variant : llvm::to_vector(module.getOps<VariantOp>()))
      if (failed(build(functions, variant)))
        return signalPassFailure();
  }

  LogicalResult build(ArrayRef<func::FuncOp> functions, VariantOp variant) {
    if (SymbolTable::lookupSymbolIn(variant, "tc_run"))
      return variant.emitError() << "variant has a host program already";
    for (auto function : variant.getBody().getOps<LLVM::LLVMFuncOp>())
      function.setVisibility_(LLVM::Visibility::Hidden);
    hosttollvm::ProgramTables tables;
    for (StringRef name : getHostFunctions(functions))
      tables.hostFunctions.insert({name, tables.hostFunctions.size()});
    for (auto state : getOperation().getOps<prim::StateOp>())
      tables.states.insert({state.getSymName(), tables.states.size()});
    SmallVector<std::string> suffixes;
    for (func::FuncOp function : functions)
      suffixes.push_back(suffixes.empty() ? "" : "." + function.getSymName().str());
    for (auto [i, function] : llvm::enumerate(functions)) {
      ProgramBuilder builder(function, variant, suffixes[i], tables);
      if (i == 0)
        builder.buildEntry(suffixes, hosttollvm::getNeededImports(functions));
      if (failed(builder.build()))
        return failure();
    }
    return success();
  }
};

} // namespace
