//===- Memory.cpp - where a host program's values live -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

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
  value = getMemorySource(value);
  PlaceAttr place = placeOf(value);
  AffineExpr offset = place.getOffset().getValue().getResult(0);
  auto within = [&](Value base) {
    if (auto constant = prim::getConstantSize(offset); constant && *constant <= INT32_MAX)
      return at(base, *constant);
    return at(base, size(offset));
  };
  switch (place.getKind()) {
  case PlaceKind::Arena:
    return within(segment(place.getIndex()));
  case PlaceKind::Weights:
    return within(weights);
  case PlaceKind::Input:
    return load(ptr, at(inputs, 8 * place.getIndex()));
  case PlaceKind::Output:
    return load(ptr, at(outputs, 8 * place.getIndex()));
  case PlaceKind::State:
    return load(ptr, at(states, 8 * place.getIndex()));
  case PlaceKind::Heap:
  case PlaceKind::LateOutput:
    if (auto known = dynamicMemory.find(value); known != dynamicMemory.end())
      return known->second;
    // Made by a part before.
    return load(ptr, sharedMemoryAddress(value));
  }
  llvm_unreachable("unknown kind of place");
}

Value ProgramBuilder::segment(size_t index) {
  if (index == 0)
    return arena;
  if (!segments.empty())
    return segments[index - 1];
  return load(ptr, at(shared, 8 * int64_t(index - 1)));
}

void ProgramBuilder::emitSegments(size_t first, size_t last, Value table) {
  Value end = first == 0 || !table ? arena : load(ptr, at(table, 8 * int64_t(first - 1)));
  for (size_t i = first; i < last; ++i) {
    auto constant = prim::getConstantSize(segmentBytes[i]);
    end = constant ? at(end, *constant) : at(end, size(segmentBytes[i]));
    if (table)
      store(end, at(table, 8 * int64_t(i)));
    else
      segments.push_back(end);
  }
}

void ProgramBuilder::allocate(Value value) {
  if (!hasDynamicMemory(value) || getMemorySource(value) != value)
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

void ProgramBuilder::copy(Value to, Value from, Value bytes) {
  if (isCpu) {
    LLVM::MemcpyOp::create(b, loc, to, from, bytes, /*isVolatile=*/false);
    return;
  }
  isInGraph = false;
  returnIfFailed(callIndirect(i32, {ptr, ptr, ptr, i64, i32}, import(offsetof(tcrt_imports_t, copy)),
                              {frame, to, from, bytes, c32(TCRT_COPY_DEVICE_TO_DEVICE)}));
}

Value ProgramBuilder::hostLoad(Type type, Value address) {
  if (!isCpu) {
    isInGraph = false;
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
  isInGraph = false;
  Value slot = stack(1);
  store(value, slot);
  returnIfFailed(callIndirect(
      i32, {ptr, ptr, ptr, i64, i32}, import(offsetof(tcrt_imports_t, copy)),
      {frame, address, slot, c64(value.getType().getIntOrFloatBitWidth() / 8), c32(TCRT_COPY_HOST_TO_DEVICE)}));
}
