//===- Gpu.cpp - what the GPU generators share --------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Gpu.h"

#include "Common/Anchor.h"
#include "Common/EmitterHelpers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen::gpu;

Value tc::codegen::gpu::threadIndex(Emitter &e) {
  OpBuilder &b = e.builder();
  Value id = NVVM::ThreadIdXOp::create(b, e.loc(), b.getI32Type());
  return arith::ExtUIOp::create(b, e.loc(), b.getI64Type(), id);
}

void tc::codegen::gpu::barrier(Emitter &e) { NVVM::Barrier0Op::create(e.builder(), e.loc()); }

Value tc::codegen::gpu::sharedArray(Emitter &e, StringRef name, Type element, int64_t count) {
  OpBuilder &b = e.builder();
  Operation *function = b.getInsertionBlock()->getParentOp();
  while (!isa<LLVM::LLVMFuncOp>(function))
    function = function->getParentOp();
  std::string symbol = (cast<LLVM::LLVMFuncOp>(function).getSymName() + "_" + name).str();
  auto array = LLVM::LLVMArrayType::get(element, count);
  auto global = dyn_cast_or_null<LLVM::GlobalOp>(SymbolTable::lookupSymbolIn(function->getParentOp(), symbol));
  if (!global) {
    OpBuilder top(function);
    global = LLVM::GlobalOp::create(top, e.loc(), array, /*isConstant=*/false, LLVM::Linkage::Internal, symbol,
                                    Attribute(), /*alignment=*/16, /*addrSpace=*/3);
  }
  Value address = LLVM::AddressOfOp::create(b, e.loc(), global);
  return LLVM::AddrSpaceCastOp::create(b, e.loc(), LLVM::LLVMPointerType::get(b.getContext()), address);
}

DictionaryAttr tc::codegen::gpu::deviceAttr(MLIRContext *context, int64_t threads, int64_t sharedBytes, bool isAlone) {
  Builder b(context);
  NamedAttrList attributes;
  attributes.append("block", b.getDenseI64ArrayAttr({threads, 1, 1}));
  attributes.append("smem", b.getI64IntegerAttr(sharedBytes));
  if (isAlone)
    attributes.append("alone", b.getUnitAttr());
  return attributes.getDictionary(context);
}

Launch tc::codegen::gpu::launchOf(AffineExpr items, int64_t block) {
  Launch launch;
  launch.tasks = prim::simplifySize(items.ceilDiv(block));
  launch.device = deviceAttr(items.getContext(), block);
  return launch;
}

void tc::codegen::gpu::forItem(Emitter &e, AffineExpr items, int64_t block, Value task,
                               llvm::function_ref<void(Index)> fn) {
  const Value item = e.add(e.mul(task, e.i64(block)), threadIndex(e));
  const Value isItem = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::slt, item, e.size(items));
  e.ifThen(isItem, [&] { fn(e.uniform(item)); });
}

static Value shuffleBy(Emitter &e, Value value, NVVM::ShflKind kind, int32_t by) {
  OpBuilder &b = e.builder();
  Location loc = e.loc();
  Type i32 = b.getI32Type();
  Type type = value.getType();
  auto one = [&](Value word) -> Value {
    // The last operand is the lane at which a warp ends, or where values come from before, begins.
    const int32_t end = kind == NVVM::ShflKind::up ? 0 : machine::kWarpThreads - 1;
    Value all = arith::ConstantIntOp::create(b, loc, i32, -1), last = arith::ConstantIntOp::create(b, loc, i32, end);
    Value offset = arith::ConstantIntOp::create(b, loc, i32, by);
    return NVVM::ShflOp::create(b, loc, i32, all, word, offset, last, kind, UnitAttr());
  };
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = b.getIntegerType(bits);
  Value raw = isa<FloatType>(type) ? Value(LLVM::BitcastOp::create(b, loc, integer, value)) : value;
  if (bits <= 32) {
    if (bits < 32)
      raw = arith::ExtUIOp::create(b, loc, i32, raw);
    raw = one(raw);
    if (bits < 32)
      raw = arith::TruncIOp::create(b, loc, integer, raw);
  } else {
    Value shift = arith::ConstantIntOp::create(b, loc, integer, 32);
    Value low = one(arith::TruncIOp::create(b, loc, i32, raw));
    Value high = one(arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, raw, shift)));
    Value wideHigh = arith::ShLIOp::create(b, loc, arith::ExtUIOp::create(b, loc, integer, high), shift);
    raw = arith::OrIOp::create(b, loc, arith::ExtUIOp::create(b, loc, integer, low), wideHigh);
  }
  return isa<FloatType>(type) ? Value(LLVM::BitcastOp::create(b, loc, type, raw)) : raw;
}

Value tc::codegen::gpu::shuffle(Emitter &e, Value value, int32_t mask) {
  return shuffleBy(e, value, NVVM::ShflKind::bfly, mask);
}
Value tc::codegen::gpu::shuffleUp(Emitter &e, Value value, int32_t distance) {
  return shuffleBy(e, value, NVVM::ShflKind::up, distance);
}

Value tc::codegen::gpu::vectorOf(Emitter &e, Value value, int64_t lanes) {
  return lanes > 1 && !isa<VectorType>(value.getType()) ? e.broadcast(value) : value;
}

Value tc::codegen::gpu::loadFloats(Emitter &e, Value pointer, int64_t lanes) {
  const Type f32 = e.builder().getF32Type();
  return LLVM::LoadOp::create(e.builder(), e.loc(), lanes == 1 ? f32 : Type(VectorType::get({lanes}, f32)), pointer,
                              unsigned(4 * lanes));
}

EpilogueValues tc::codegen::gpu::computeFromSums(Emitter &e, const Epilogue &epilogue, ArrayRef<Index> at, Value sums) {
  const Type element = elementOf(epilogue.getResult());
  if (!element.isF32()) {
    auto vector = dyn_cast<VectorType>(sums.getType());
    sums = arith::TruncFOp::create(e.builder(), e.loc(), vector ? Type(vector.clone(element)) : element, sums);
  }
  EpilogueValues computed = computeEpilogue(e, epilogue, at, sums);
  e.clearSources();
  return computed;
}

void tc::codegen::gpu::makeTeam(Emitter &e, int64_t threads, int64_t teams) {
  Emitter::Team team;
  team.member = threadIndex(e);
  if (teams > 1)
    team.member = arith::AndIOp::create(e.builder(), e.loc(), team.member, e.i64(threads - 1));
  team.size = threads;
  Value member = team.member;
  team.across = [&e, member, threads](prim::ReduceKind kind, Type elementType, Value value) -> Value {
    OpBuilder &b = e.builder();
    for (int32_t mask = std::min<int32_t>(machine::kWarpThreads, threads) / 2; mask >= 1; mask /= 2)
      value = e.combine(kind, elementType, value, shuffle(e, value, mask));
    int64_t warps = threads / machine::kWarpThreads;
    if (warps <= 1)
      return value;
    // One word a warp through shared memory; everybody combines them in the same order.
    Type memory = Emitter::memoryType(elementType);
    std::string name = "across" + std::to_string(memory.getIntOrFloatBitWidth()) + (isa<FloatType>(memory) ? "f" : "i");
    Value words = sharedArray(e, name, memory, warps);
    Value warp = arith::ShRUIOp::create(b, e.loc(), member, e.i64(5));
    barrier(e); // the words of an earlier reduction have been read
    Value lane = arith::AndIOp::create(b, e.loc(), member, e.i64(31));
    Value leads = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, lane, e.i64(0));
    e.ifThen(leads, [&] { e.storeAt(value, words, elementType, e.uniform(warp)); });
    barrier(e);
    Value total = e.loadAt(words, elementType, e.constant(0));
    for (int64_t i = 1; i < warps; ++i)
      total = e.combine(kind, elementType, total, e.loadAt(words, elementType, e.constant(i)));
    return total;
  };
  e.team = team;
  e.alignedBuffers = true;
  e.argReduceLanes = true;
}
