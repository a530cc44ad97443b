//===- Launches.cpp - launches of kernels and what they cost -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "tc/Dialect/Host/IR/CudaGraphs.h"

#include "mlir/IR/SymbolTable.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

bool tc::hosttollvm::hasDynamicCost(LaunchOp launch) {
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
  if (hosttollvm::hasDynamicCost(launch) && isCostBoundByData(launch))
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
    Value from = segment(segmentBytes.size());
    if (before = prim::simplifySize(before); prim::getConstantSize(before) != 0) {
      Value workers = load(i64, at(frame, offsetof(tcrt_frame_t, worker_count)));
      from = at(from, arithmetic(AffineExprKind::Mul, size(before), workers));
    }
    push(from);
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
  return emitDeviceLaunch(launch, words, word);
}

LogicalResult ProgramBuilder::emitDeviceLaunch(LaunchOp launch, Value words, int64_t wordCount) {
  DictionaryAttr device = launch.getDeviceAttr();
  auto grid = device ? device.getAs<AffineMapAttr>("grid") : AffineMapAttr();
  auto block = device ? device.getAs<DenseI64ArrayAttr>("block") : DenseI64ArrayAttr();
  auto cluster = device ? device.getAs<DenseI64ArrayAttr>("cluster") : DenseI64ArrayAttr();
  if (!grid || grid.getValue().getNumResults() != 3 || !block || block.size() != 3 || (cluster && cluster.size() != 3))
    return launch.emitError() << "a launch on a device needs device = {grid = map of 3 sizes, block = 3 numbers, "
                                 "cluster = 3 numbers, smem}";
  auto smem = device.getAs<IntegerAttr>("smem");
  unsigned index = tables.deviceKernels.try_emplace(launch.getKernel(), tables.deviceKernels.size()).first->second;
  const bool isRepeated = findGraphObstacle(launch, main, boundByData).empty();
  if (isRepeated && !isInGraph)
    ++graphCount;
  isInGraph = isRepeated;
  auto set = [&](size_t offset, Value value) { store(value, at(deviceRecord, int64_t(offset))); };
  set(offsetof(tcrt_device_launch_t, id), c32(launchIds.lookup(launch)));
  set(offsetof(tcrt_device_launch_t, kernel), c32(index));
  Value empty = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  for (int64_t i = 0; i < 3; ++i) {
    Value count = size(grid.getValue().getResult(i));
    empty = LLVM::OrOp::create(b, loc, empty, compare(LLVM::ICmpPredicate::sle, count, c64(0)));
    set(offsetof(tcrt_device_launch_t, grid) + 4 * i, LLVM::TruncOp::create(b, loc, i32, count));
    set(offsetof(tcrt_device_launch_t, block) + 4 * i, c32(block[i]));
    set(offsetof(tcrt_device_launch_t, cluster) + 4 * i, c32(cluster ? cluster[i] : 1));
  }
  set(offsetof(tcrt_device_launch_t, dynamic_smem), c32(smem ? smem.getInt() : 0));
  set(offsetof(tcrt_device_launch_t, graph), c32(isRepeated ? graphCount : 0));
  set(offsetof(tcrt_device_launch_t, stream), c32(0));
  set(offsetof(tcrt_device_launch_t, parameter_size), c32(8 * std::max<int64_t>(wordCount, 1)));
  set(offsetof(tcrt_device_launch_t, reserved), c32(0));
  set(offsetof(tcrt_device_launch_t, parameters), words);
  // An empty grid is no launch.
  Block *run = newBlock(), *next = newBlock();
  condBranch(empty, next, run);
  b.setInsertionPointToStart(run);
  returnIfFailed(callIndirect(i32, {ptr, ptr}, import(offsetof(tcrt_imports_t, launch_device)), {frame, deviceRecord}));
  branch(next);
  b.setInsertionPointToStart(next);
  return success();
}

uint32_t tc::hosttollvm::getNeededImports(ArrayRef<func::FuncOp> functions) {
  uint32_t bytes = offsetof(tcrt_imports_t, launch_group);
  for (func::FuncOp function : functions)
    function->walk([&](LaunchOp launch) {
      if (hasDynamicCost(launch))
        bytes = std::max<uint32_t>(bytes, offsetof(tcrt_imports_t, set_cost) + sizeof(void *));
      if (launch.getSteps())
        bytes = std::max<uint32_t>(bytes, offsetof(tcrt_imports_t, launch_steps) + sizeof(void *));
      else if (getGroupMembers(launch).size() > 1)
        bytes = std::max<uint32_t>(bytes, offsetof(tcrt_imports_t, launch_group) + sizeof(void *));
    });
  return bytes;
}
