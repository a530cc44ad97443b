//===- TensorCores.cpp - instructions that multiply matrices, and what feeds them ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/TensorCores.h"

#include "Common/EmitterHelpers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

LLVM::LLVMPointerType pointerTo(MLIRContext *context, unsigned space) {
  return LLVM::LLVMPointerType::get(context, space);
}
constexpr unsigned kGlobal = 1, kShared = 3;

/// An instruction that MLIR or LLVM has no operation for; it keeps its place among others and memory accesses.
Value assemble(Emitter &e, Type result, StringRef text, StringRef constraints, ValueRange operands) {
  auto op = LLVM::InlineAsmOp::create(e.builder(), e.loc(), result ? TypeRange(result) : TypeRange(), operands, text,
                                      constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
                                      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr());
  return result ? op.getRes() : Value();
}
void assemble(Emitter &e, StringRef text) { assemble(e, Type(), text, "~{memory}", {}); }

/// Where a pointer to shared memory points, as instructions take it (i32).
Value addressOf(Emitter &e, Value shared) {
  return LLVM::PtrToIntOp::create(e.builder(), e.loc(), e.builder().getI32Type(), shared);
}

StringRef nameOf(Type element) { return element.isF32() ? "tf32" : element.isBF16() ? "bf16" : "f16"; }
/// Steps of K of an instruction, of 32 bytes.
std::string stepsOf(Type element) { return "k" + std::to_string(32 * 8 / element.getIntOrFloatBitWidth()); }

} // namespace

//===--- numbers
//----------------------------------------------------------------------------------------------------===//

Value Words::constant(int64_t value) const {
  return arith::ConstantIntOp::create(e.builder(), e.loc(), e.builder().getI32Type(), value);
}
Value Words::add(Value a, Value b) const {
  const auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x + *y);
  return arith::AddIOp::create(e.builder(), e.loc(), a, b);
}
Value Words::mul(Value a, int64_t b) const {
  if (const auto x = constantOf(a))
    return constant(*x * b);
  return b == 1 ? a : Value(arith::MulIOp::create(e.builder(), e.loc(), a, constant(b)));
}
Value Words::div(Value a, int64_t by) const {
  assert(llvm::isPowerOf2_64(by));
  return by == 1 ? a : Value(arith::ShRUIOp::create(e.builder(), e.loc(), a, constant(llvm::Log2_64(by))));
}
Value Words::rem(Value a, int64_t by) const {
  assert(llvm::isPowerOf2_64(by));
  return arith::AndIOp::create(e.builder(), e.loc(), a, constant(by - 1));
}
Value Words::bitXor(Value a, Value b) const { return arith::XOrIOp::create(e.builder(), e.loc(), a, b); }
Value Words::less(Value a, Value b) const {
  return arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::ult, a, b);
}
Value Words::select(Value condition, Value a, Value b) const {
  return arith::SelectOp::create(e.builder(), e.loc(), condition, a, b);
}
Value Words::wide(Value a) const { return arith::ExtUIOp::create(e.builder(), e.loc(), e.builder().getI64Type(), a); }

Value tc::codegen::gpu::threadNumber(Emitter &e) {
  return NVVM::ThreadIdXOp::create(e.builder(), e.loc(), e.builder().getI32Type());
}

//===--- shared memory
//----------------------------------------------------------------------------------------------===//

Value tc::codegen::gpu::dynamicShared(Emitter &e) {
  OpBuilder &b = e.builder();
  Operation *function = b.getInsertionBlock()->getParentOp();
  while (!isa<LLVM::LLVMFuncOp>(function))
    function = function->getParentOp();
  const std::string symbol = (cast<LLVM::LLVMFuncOp>(function).getSymName() + "_shared").str();
  auto global = dyn_cast_or_null<LLVM::GlobalOp>(SymbolTable::lookupSymbolIn(function->getParentOp(), symbol));
  if (!global) {
    OpBuilder top(function);
    global = LLVM::GlobalOp::create(top, e.loc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
                                    LLVM::Linkage::External, symbol, Attribute(), /*alignment=*/1024, kShared);
  }
  return LLVM::AddressOfOp::create(b, e.loc(), global);
}

Value tc::codegen::gpu::sharedAt(Emitter &e, Value pointer, Value bytes) {
  return LLVM::GEPOp::create(e.builder(), e.loc(), pointer.getType(), e.builder().getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

void tc::codegen::gpu::copyAsync(Emitter &e, Value shared, Value global, Value isValid) {
  OpBuilder &b = e.builder();
  const Words w(e);
  const Value from = LLVM::AddrSpaceCastOp::create(b, e.loc(), pointerTo(b.getContext(), kGlobal), global);
  const Value bytes = isValid ? w.select(isValid, w.constant(16), w.constant(0)) : Value();
  NVVM::CpAsyncOp::create(b, e.loc(), shared, from, b.getI32IntegerAttr(16),
                          NVVM::LoadCacheModifierKindAttr::get(b.getContext(), NVVM::LoadCacheModifierKind::CG), bytes);
}
void tc::codegen::gpu::commitCopies(Emitter &e) { NVVM::CpAsyncCommitGroupOp::create(e.builder(), e.loc()); }
void tc::codegen::gpu::waitForCopies(Emitter &e, int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(e.builder(), e.loc(), e.builder().getI32IntegerAttr(int32_t(pending)));
}

//===--- a warp's products
//------------------------------------------------------------------------------------------===//

SmallVector<Value> tc::codegen::gpu::loadMatrices(Emitter &e, Value shared, bool isTransposed) {
  OpBuilder &b = e.builder();
  auto words = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  const Value loaded = assemble(e, words,
                                std::string("ldmatrix.sync.aligned.m8n8.x4") + (isTransposed ? ".trans" : "") +
                                    ".shared.b16 {$0, $1, $2, $3}, [$4];",
                                "=r,=r,=r,=r,r,~{memory}", addressOf(e, shared));
  SmallVector<Value> matrices;
  for (int64_t i = 0; i < 4; ++i)
    matrices.push_back(LLVM::ExtractValueOp::create(b, e.loc(), loaded, ArrayRef<int64_t>{i}));
  return matrices;
}

void tc::codegen::gpu::multiplyFragments(Emitter &e, Type element, ArrayRef<Value> a, ArrayRef<Value> b,
                                         MutableArrayRef<Value> d) {
  OpBuilder &builder = e.builder();
  const Type f32 = builder.getF32Type();
  SmallVector<Value> operands(a);
  llvm::append_range(operands, b);
  llvm::append_range(operands, d);
  auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(4, f32));
  const std::string type = nameOf(element).str();
  // No side effects: the compiler may move it.
  const Value sums =
      LLVM::InlineAsmOp::create(builder, e.loc(), result, operands,
                                "mma.sync.aligned.m16n8" + stepsOf(element) + ".row.col.f32." + type + "." + type +
                                    ".f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
                                "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", /*has_side_effects=*/false,
                                /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                /*operand_attrs=*/ArrayAttr())
          .getRes();
  for (int64_t i = 0; i < 4; ++i)
    d[i] = LLVM::ExtractValueOp::create(builder, e.loc(), sums, ArrayRef<int64_t>{i});
}

//===--- a warpgroup's products
//-------------------------------------------------------------------------------------===//

Value tc::codegen::gpu::describeTile(Emitter &e, Value shared, int64_t panelStride, int64_t pieceStride) {
  // "Matrix descriptor": the address, the leading and the stride offset in 16 bytes from bits 0, 16 and 32; bits 62-63
  // are 1 for lines of 128 bytes.
  OpBuilder &b = e.builder();
  const Words w(e);
  const Value address = addressOf(e, shared);
  const Value low = w.wide(w.div(w.rem(address, 1 << 18), 16));
  const uint64_t rest = uint64_t(panelStride / 16) << 16 | uint64_t(pieceStride / 16) << 32 | uint64_t(1) << 62;
  return arith::OrIOp::create(b, e.loc(), low, arith::ConstantIntOp::create(b, e.loc(), b.getI64Type(), int64_t(rest)));
}

/// d (+)= a b, of 64 rows; `a`: operands of the instruction, `flags`: what follows the scales.
static void multiplyInGroup(Emitter &e, Type element, int64_t columns, ArrayRef<Value> a, Value b, StringRef flags,
                            MutableArrayRef<Value> d, bool adds) {
  OpBuilder &builder = e.builder();
  const size_t count = d.size();
  assert(int64_t(count) == columns / 2);
  std::string text, constraints;
  llvm::raw_string_ostream code(text), kinds(constraints);
  auto list = [&](size_t first, size_t size) {
    code << '{';
    for (size_t i = 0; i < size; ++i)
      code << (i ? ", $" : "$") << first + i;
    code << '}';
  };
  code << "{ .reg .pred adds; setp.ne.b32 adds, " << int(adds) << ", 0; wgmma.mma_async.sync.aligned.m64n" << columns
       << stepsOf(element) << ".f32." << nameOf(element) << '.' << nameOf(element) << ' ';
  list(0, count);
  code << ", ";
  if (a.size() == 1)
    code << '$' << 2 * count;
  else
    list(2 * count, a.size());
  code << ", $" << 2 * count + a.size() << ", adds, 1, 1" << flags << "; }";
  for (size_t i = 0; i < count; ++i)
    kinds << "=f,";
  for (size_t i = 0; i < count; ++i)
    kinds << i << ',';
  for (size_t i = 0; i < a.size(); ++i)
    kinds << (a.size() == 1 ? "l," : "r,");
  kinds << "l,~{memory}";
  SmallVector<Value> operands(d.begin(), d.end());
  operands.append(a.begin(), a.end());
  operands.push_back(b);
  const Value sums = assemble(
      e, LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(count, builder.getF32Type())), text,
      constraints, operands);
  for (size_t i = 0; i < count; ++i)
    d[i] = LLVM::ExtractValueOp::create(builder, e.loc(), sums, ArrayRef<int64_t>{int64_t(i)});
}

void tc::codegen::gpu::multiplyTiles(Emitter &e, Type element, int64_t columns, Value a, bool aIsTransposed, Value b,
                                     bool bIsTransposed, MutableArrayRef<Value> d, bool adds) {
  const std::string flags =
      element.isF32() ? "" : (", " + Twine(int(aIsTransposed)) + ", " + Twine(int(bIsTransposed))).str();
  multiplyInGroup(e, element, columns, a, b, flags, d, adds);
}

void tc::codegen::gpu::multiplyRows(Emitter &e, Type element, int64_t columns, ArrayRef<Value> a, Value b,
                                    bool bIsTransposed, MutableArrayRef<Value> d) {
  multiplyInGroup(e, element, columns, a, b, element.isF32() ? "" : bIsTransposed ? ", 1" : ", 0", d, /*adds=*/true);
}

Value tc::codegen::gpu::roundToTf32(Emitter &e, Value x) {
  if (auto vector = dyn_cast<VectorType>(x.getType())) {
    SmallVector<Value> rounded;
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      rounded.push_back(roundToTf32(e, vector::ExtractOp::create(e.builder(), e.loc(), x, i)));
    return vector::FromElementsOp::create(e.builder(), e.loc(), vector, rounded);
  }
  return LLVM::InlineAsmOp::create(e.builder(), e.loc(), x.getType(), x,
                                   "{ .reg .b32 r; cvt.rna.tf32.f32 r, $1; mov.b32 $0, r; }", "=f,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr())
      .getRes();
}

Value tc::codegen::gpu::exp2(Emitter &e, Value x) {
  return LLVM::InlineAsmOp::create(e.builder(), e.loc(), x.getType(), x, "ex2.approx.ftz.f32 $0, $1;", "=f,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr())
      .getRes();
}

void tc::codegen::gpu::beginGroup(Emitter &e) { assemble(e, "wgmma.fence.sync.aligned;"); }
void tc::codegen::gpu::endGroup(Emitter &e) { assemble(e, "wgmma.commit_group.sync.aligned;"); }
void tc::codegen::gpu::waitForGroups(Emitter &e, int64_t pending) {
  assemble(e, "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";");
}
void tc::codegen::gpu::fenceForTensorCores(Emitter &e) { assemble(e, "fence.proxy.async.shared::cta;"); }

//===--- warps with roles -----------------------------------------------------------------------------------------===//

void tc::codegen::gpu::meetAt(Emitter &e, Value id, int64_t threads) {
  assemble(e, Type(), "bar.sync $0, " + std::to_string(threads) + ";", "r,~{memory}", id);
}
void tc::codegen::gpu::arriveAt(Emitter &e, Value id, int64_t threads) {
  assemble(e, Type(), "bar.arrive $0, " + std::to_string(threads) + ";", "r,~{memory}", id);
}
void tc::codegen::gpu::setRegisters(Emitter &e, int64_t count, bool more) {
  assemble(e, std::string("setmaxnreg.") + (more ? "inc" : "dec") + ".sync.aligned.u32 " + std::to_string(count) + ";");
}

void tc::codegen::gpu::initBarrier(Emitter &e, Value barrier, int64_t count) {
  assemble(e, Type(), "mbarrier.init.shared.b64 [$0], " + std::to_string(count) + ";", "r,~{memory}",
           addressOf(e, barrier));
}
void tc::codegen::gpu::awaitPhase(Emitter &e, Value barrier, Value parity) {
  const Value address = addressOf(e, barrier);
  assemble(e, Type(),
           "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [$0], $1; @!done bra again; }",
           "r,r,~{memory}", {address, parity});
}
void tc::codegen::gpu::arriveAtBarrier(Emitter &e, Value barrier, Value condition) {
  OpBuilder &b = e.builder();
  const Value address = addressOf(e, barrier);
  const Value word = arith::ExtUIOp::create(b, e.loc(), b.getI32Type(), condition);
  assemble(
      e, Type(),
      "{ .reg .pred does; .reg .b64 state; setp.ne.b32 does, $1, 0; @does mbarrier.arrive.shared.b64 state, [$0]; }",
      "r,r,~{memory}", {address, word});
}
void tc::codegen::gpu::arriveWithCopies(Emitter &e, Value barrier) {
  assemble(e, Type(), "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r,~{memory}", addressOf(e, barrier));
}
void tc::codegen::gpu::arriveExpecting(Emitter &e, Value barrier, Value bytes, Value condition) {
  OpBuilder &b = e.builder();
  const Value word = arith::ExtUIOp::create(b, e.loc(), b.getI32Type(), condition);
  assemble(e, Type(),
           "{ .reg .pred does; .reg .b64 state; setp.ne.b32 does, $2, 0; @does "
           "mbarrier.arrive.expect_tx.shared.b64 state, [$0], $1; }",
           "r,r,r,~{memory}", {addressOf(e, barrier), bytes, word});
}
void tc::codegen::gpu::fenceBarriers(Emitter &e) { assemble(e, "fence.mbarrier_init.release.cluster;"); }

//===--- tensor copies --------------------------------------------------------------------------------------------===//

// PTX ISA, "Tensor-map" and "tensormap.replace": all fields of an opaque object that is zero before.
void tc::codegen::gpu::writeTensorMap(Emitter &e, Value place, Value shared, const TensorMap &map) {
  OpBuilder &b = e.builder();
  const Words w(e);
  const Value lane = w.rem(threadNumber(e), machine::kWarpThreads);
  LLVM::StoreOp::create(b, e.loc(), w.constant(0), sharedAt(e, shared, w.mul(lane, 4)), 4);
  auto meetWarp = [&] { assemble(e, "bar.warp.sync 0xffffffff;"); };
  meetWarp();
  const Value object = addressOf(e, shared);
  auto replace = [&](const Twine &field, const Twine &ordinal, StringRef type, Value value) {
    assemble(e, Type(),
             ("tensormap.replace.tile." + field + ".shared::cta.b1024." + type + " [$0], " + ordinal + "$1;").str(),
             type == "b64" ? "r,l,~{memory}" : "r,r,~{memory}", {object, value});
  };
  auto set = [&](StringRef field, int64_t value) {
    assemble(e, Type(),
             ("tensormap.replace.tile." + field + ".shared::cta.b1024.b32 [$0], " + Twine(value) + ";").str(),
             "r,~{memory}", object);
  };
  const int64_t bytes = map.element.getIntOrFloatBitWidth() / 8;
  const Value isFirst = w.less(lane, w.constant(1));
  e.ifThen(isFirst, [&] {
    replace("global_address", "", "b64", LLVM::PtrToIntOp::create(b, e.loc(), b.getI64Type(), map.address));
    set("rank", int64_t(map.sizes.size()) - 1);
    for (size_t i = 0; i < map.sizes.size(); ++i) {
      const std::string ordinal = std::to_string(i) + ", ";
      replace("box_dim", ordinal, "b32", w.constant(map.box[i]));
      replace("global_dim", ordinal, "b32", arith::TruncIOp::create(b, e.loc(), b.getI32Type(), map.sizes[i]));
      replace("element_stride", ordinal, "b32", w.constant(1));
      if (i > 0)
        replace("global_stride", std::to_string(i - 1) + ", ", "b64", e.mul(map.strides[i - 1], e.i64(bytes)));
    }
    // Elements are copied as they are, so that those of one size are alike; 16 and 32 bits have numbers 1 and 2.
    set("elemtype", bytes / 2);
    set("interleave_layout", 0);
    set("swizzle_mode", 3); // of 128 bytes
    set("fill_mode", 0);
  });
  meetWarp();
  const Value to = LLVM::AddrSpaceCastOp::create(b, e.loc(), pointerTo(b.getContext(), kGlobal), place);
  assemble(e, Type(),
           "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;",
           "l,r,~{memory}", {LLVM::PtrToIntOp::create(b, e.loc(), b.getI64Type(), to), object});
}

void tc::codegen::gpu::acquireTensorMap(Emitter &e, Value place) {
  const Value address = LLVM::PtrToIntOp::create(e.builder(), e.loc(), e.builder().getI64Type(), place);
  assemble(e, Type(), "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l,~{memory}", address);
}

void tc::codegen::gpu::copyBox(Emitter &e, Value map, ArrayRef<Value> at, Value shared, Value barrier,
                               Value condition) {
  OpBuilder &b = e.builder();
  SmallVector<Value> operands{addressOf(e, shared), LLVM::PtrToIntOp::create(b, e.loc(), b.getI64Type(), map),
                              addressOf(e, barrier), arith::ExtUIOp::create(b, e.loc(), b.getI32Type(), condition)};
  std::string text, constraints = "r,l,r,r,";
  llvm::raw_string_ostream code(text);
  code << "{ .reg .pred does; setp.ne.b32 does, $3, 0; @does cp.async.bulk.tensor." << at.size()
       << "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {";
  for (auto [i, position] : llvm::enumerate(at)) {
    code << (i ? ", $" : "$") << operands.size();
    operands.push_back(position);
    constraints += "r,";
  }
  code << "}], [$2]; }";
  assemble(e, Type(), text, constraints + "~{memory}", operands);
}
