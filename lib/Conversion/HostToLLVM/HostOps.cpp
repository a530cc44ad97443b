//===- HostOps.cpp - what a host program computes itself, and calls of host functions ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "tc/Dialect/Host/IR/CudaGraphs.h"
#include "tc/Dialect/Prim/IR/HostCalls.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

/// Whether anything reads the value from memory: conditions and counts that are known, or that sizes decide, are not.
static bool isRead(Value value) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (prim::isView(user))
      return isRead(user->getResult(0));
    if (isa<prim::IfOp>(user))
      return !choosesBySizes(user);
    const bool isKnown = getKnownInteger(value).has_value();
    if (isa<prim::WhileOp>(user) && use.getOperandNumber() < 2)
      return !isKnown && !(use.getOperandNumber() == 0 && prim::getViewSource(value).getDefiningOp<prim::SizesOp>());
    if (isa<prim::YieldOp>(user) && isa<prim::WhileOp>(user->getParentOp()) && use.getOperandNumber() == 0)
      return !isKnown;
    return true;
  });
}

/// prim.sizes, prim.splat and prim.iota as results of the function: small, written by the host.
LogicalResult ProgramBuilder::emitFill(Operation *op) {
  Value result = op->getResult(0);
  if (!isRead(result))
    return success();
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

int64_t tc::hosttollvm::countRecordWords(prim::HostCallOp op) {
  int64_t words = sizeof(tcrt_call_t) / 8;
  for (TypeRange types : {TypeRange(op.getOperandTypes()), TypeRange(op.getResultTypes())})
    for (Type type : types)
      words += sizeof(tcrt_operand_t) / 8 + cast<RankedTensorType>(type).getRank();
  return words;
}

LogicalResult ProgramBuilder::emitHostCall(prim::HostCallOp op) {
  // On a device the runtime copies operands and results (Runtime/Imports.c), which no graph of launches holds.
  if (!isCpu)
    isInGraph = false;
  for (Value result : op.getResults())
    allocate(result);
  for (OpResult result : op->getResults())
    if (Value init = prim::getInit(op, result.getResultNumber()))
      copy(address(result), address(init), size(getSizeBytes(result.getType())));
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
  set(c32(tables.hostFunctions.lookup(op.getCallee())), offsetof(tcrt_call_t, function));
  set(c32(op.getNumOperands()), offsetof(tcrt_call_t, operand_count));
  set(c32(op.getNumResults()), offsetof(tcrt_call_t, result_count));
  set(c32(node.size()), offsetof(tcrt_call_t, node_length));
  set(text(node), offsetof(tcrt_call_t, node));
  set(operands, offsetof(tcrt_call_t, operands));
  set(results, offsetof(tcrt_call_t, results));
  returnIfFailed(callIndirect(i32, {ptr, ptr}, import(offsetof(tcrt_imports_t, call)), {frame, callRecord}));
  return success();
}

void ProgramBuilder::emitWriteState(prim::WriteStateOp op) {
  const unsigned number = tables.states.lookup(op.getState());
  PlaceAttr place = placeOf(prim::getViewSource(op.getValue()));
  // Made there, or never changed.
  if (place.getKind() == PlaceKind::State && place.getIndex() == int64_t(number))
    return;
  copy(load(ptr, at(states, 8 * int64_t(number))), address(op.getValue()), size(getSizeBytes(op.getValue().getType())));
}
