//===- ControlFlow.cpp - prim.if, prim.while and host.choose ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "tc/Dialect/Host/IR/CudaGraphs.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

void ProgramBuilder::emitIf(prim::IfOp op, LogicalResult &result) {
  SmallVector<Value> dynamic;
  for (Value value : op.getResults())
    if (hasDynamicMemory(value))
      dynamic.push_back(value);
  auto isTrue = [&] {
    Value condition = hostLoad(i8, address(op.getCondition()));
    return compare(LLVM::ICmpPredicate::ne, condition, LLVM::ConstantOp::create(b, loc, i8, b.getI8IntegerAttr(0)));
  };
  IntegerSetAttr when = prim::getWhen(op);
  Value condition = when ? contains(when.getValue()) : isTrue();
  Block *blocks[2] = {newBlock(), newBlock()}, *next = newBlock(SmallVector<Type>(dynamic.size(), ptr));
  condBranch(condition, blocks[0], blocks[1]);
  for (int side = 0; side < 2; ++side) {
    SizeScope scope(*this);
    Block &body = op->getRegion(side).front();
    b.setInsertionPointToStart(blocks[side]);
    if (failed(emit(body)))
      result = failure();
    ValueRange yielded = body.getTerminator()->getOperands();
    bindResultSymbols(op, yielded);
    // Sizes are known only here. Each branch makes the memory of its results, or has computed them there.
    for (auto [to, from] : llvm::zip_equal(op.getResults(), yielded)) {
      if (!hasDynamicMemory(to) && !hasDynamicMemory(from) && placeOf(to) == placeOf(from))
        continue;
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

/// Whether the variant is for a machine of this name.
static bool isFor(VariantOp variant, machine::MachineAttr machine) {
  return llvm::any_of(variant.getMachines().getAsRange<machine::MachineAttr>(),
                      [&](machine::MachineAttr other) { return other.getName() == machine.getName(); });
}

Value ProgramBuilder::contains(IntegerSet set) {
  Value all;
  for (unsigned i = 0; i < set.getNumConstraints(); ++i) {
    Value holds =
        compare(set.isEq(i) ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::sge, size(set.getConstraint(i)), c64(0));
    all = all ? Value(LLVM::AndOp::create(b, loc, all, holds)) : holds;
  }
  return all ? all : Value(LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(true)));
}

void ProgramBuilder::emitChoose(ChooseOp op, LogicalResult &result) {
  // Regions for other machines are not part of this program.
  SmallVector<std::pair<IntegerSetAttr, Block *>> cases;
  for (auto [i, region] : llvm::enumerate(op.getCases())) {
    auto guard = i < op.getGuards().size() ? cast<GuardAttr>(op.getGuards()[i]) : GuardAttr();
    if (guard && guard.getMachine() && !isFor(variant, guard.getMachine()))
      continue;
    cases.push_back({guard ? guard.getSizes() : IntegerSetAttr(), &region.front()});
    if (!cases.back().first)
      break;
  }
  SmallVector<unsigned> dynamic;
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    if (hasDynamicMemory(value))
      dynamic.push_back(i);
  Block *next = newBlock(SmallVector<Type>(dynamic.size(), ptr));
  SizeScope choice(*this);
  for (const auto &[sizes, block] : cases) {
    Block *body = block, *other = nullptr;
    if (sizes) {
      Block *holds = newBlock();
      other = newBlock();
      condBranch(contains(sizes.getValue()), holds, other);
      b.setInsertionPointToStart(holds);
    }
    SizeScope scope(*this);
    if (failed(emit(*body)))
      result = failure();
    // The launches have made the results' memory.
    const SmallVector<Value> memory = llvm::map_to_vector(
        dynamic, [&](unsigned i) { return dynamicMemory.lookup(body->getTerminator()->getOperand(i)); });
    releaseMemoryOf(*body, memory);
    branch(next, memory);
    if (other)
      b.setInsertionPointToStart(other);
  }
  b.setInsertionPointToStart(next);
  for (auto [n, i] : llvm::enumerate(dynamic))
    dynamicMemory[op.getResult(i)] = next->getArgument(n);
}

Value ProgramBuilder::hostInteger(Type type, Value value) {
  if (const std::optional<int64_t> known = getKnownInteger(value))
    return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, *known));
  if (auto sizes = prim::getViewSource(value).getDefiningOp<prim::SizesOp>(); sizes && type == i64)
    return size(sizes.getMap().getResult(0));
  return hostLoad(type, address(value));
}

void ProgramBuilder::emitWhile(prim::WhileOp op, LogicalResult &result) {
  Block &body = op.getBody().front();
  // Values whose size changes: their memory is carried by the header's arguments.
  SmallVector<unsigned> dynamic;
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    if (hasDynamicMemory(value))
      dynamic.push_back(i);
  Value maxTrips = hostInteger(i64, op.getMaxTrips());
  Value condition = hostInteger(i8, op.getCondition());
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
  SizeScope scope(*this);
  if (prim::ConstantOp numbers = getIterationNumbers(op))
    dynamicMemory[body.getArgument(0)] = at(address(numbers), LLVM::MulOp::create(b, loc, trip, c64(8)));
  else
    hostStore(trip, address(body.getArgument(0)));
  if (failed(emit(body)))
    result = failure();
  ValueRange yielded = body.getTerminator()->getOperands();
  Value again = hostInteger(i8, yielded.front());
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
