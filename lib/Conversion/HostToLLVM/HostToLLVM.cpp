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

#include "ProgramBuilder.h"

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

namespace {
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
