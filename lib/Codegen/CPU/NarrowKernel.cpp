//===- NarrowKernel.cpp - the innermost loops of products of bytes and of bf16 ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/NarrowKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

Type NarrowKind::elementType(OpBuilder &b) const { return isFloat ? Type(b.getBF16Type()) : b.getI8Type(); }
Type NarrowKind::wideType(OpBuilder &b) const { return isFloat ? Type(b.getF32Type()) : b.getI16Type(); }
Type NarrowKind::sumType(OpBuilder &b) const { return isFloat ? Type(b.getF32Type()) : b.getI32Type(); }

Value NarrowKind::widen(OpBuilder &b, Location loc, Value value) const {
  Type type = wideType(b);
  if (auto lanes = dyn_cast<VectorType>(value.getType()))
    type = lanes.clone(type);
  return isFloat ? Value(arith::ExtFOp::create(b, loc, type, value)) : arith::ExtUIOp::create(b, loc, type, value);
}

namespace {

class Assembler {
public:
  Assembler(Emitter &em, const NarrowKernel &kernel)
      : em(em), k(kernel), kind(kernel.kind), b(em.builder()), loc(em.loc()) {
    sums = em.vectorOf(kind.sumType(b));
    hasDot = kind.hasDot(em.cpu());
    isHalved = !hasDot && !kind.isFloat;
    // Vectors of sums of a panel: 16 columns, or 16 columns of two halves each.
    perPanel = (isHalved ? 2 * kPanel : kPanel) / em.width();
    columns = k.panels * perPanel;
    wordBytes = hasDot ? kWordBytes : kind.steps() * kind.wideBytes();
  }

  void run() {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sums));
    SmallVector<Value> acc(k.rows * columns, zero);
    const int64_t words = ceilDiv(k.depth, kind.steps()), unroll = hasDot ? 2 : 1, main = words / unroll * unroll;
    if (main) {
      auto op = scf::ForOp::create(b, loc, em.i64(0), em.i64(main), em.i64(unroll), acc);
      disableUnrolling(op);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(op.getBody());
      SmallVector<Value> next(op.getRegionIterArgs());
      Value a = at(k.a, mul(op.getInductionVar(), wordBytes)), panel = at(k.b, mul(op.getInductionVar(), kLineBytes));
      for (int64_t u = 0; u < unroll; ++u)
        step(at(a, u * wordBytes), at(panel, u * kLineBytes), next);
      scf::YieldOp::create(b, loc, next);
      acc.assign(op.getResults().begin(), op.getResults().end());
    }
    for (int64_t word = main; word < words; ++word)
      step(at(k.a, word * wordBytes), at(k.b, word * kLineBytes), acc);
    store(acc);
  }

private:
  Value mul(Value x, int64_t factor) { return arith::MulIOp::create(b, loc, x, em.i64(factor)); }
  Value at(Value pointer, int64_t bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
  }
  Value at(Value pointer, Value bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{bytes});
  }
  Value load(Value address, Type type, int64_t alignment) {
    return LLVM::LoadOp::create(b, loc, type, address, alignment);
  }
  /// One element of `type`, repeated, as a vector of other elements.
  Value repeat(Value address, Type type, VectorType as) {
    const int64_t count = as.getNumElements() * as.getElementTypeBitWidth() / type.getIntOrFloatBitWidth();
    Value lanes = vector::BroadcastOp::create(b, loc, VectorType::get({count}, type), load(address, type, 1));
    return lanes.getType() == as ? lanes : LLVM::BitcastOp::create(b, loc, as, lanes);
  }
  Value call(StringRef name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, Type(sums), b.getStringAttr(name), operands).getResult(0);
  }

  /// A word of K.
  void step(Value a, Value panel, SmallVector<Value> &acc) {
    if (k.prefetchLines)
      for (int64_t p = 0; p < k.panels; ++p)
        em.prefetch(at(panel, p * kind.panelBytes(k.depth) + k.prefetchLines * kLineBytes));
    if (kind.isFloat && !hasDot)
      return stepHalves(a, panel, acc);
    const int64_t w = em.width();
    auto words = VectorType::get({kind.steps() * w}, kind.elementType(b)),
         wide = VectorType::get({2 * w}, b.getI16Type());
    SmallVector<Value> right;
    for (int64_t j = 0; j < columns; ++j) {
      Value from = at(panel, rightOffset(j));
      if (hasDot)
        right.push_back(load(from, words, 1));
      else
        right.push_back(arith::ExtSIOp::create(b, loc, wide, load(from, VectorType::get({2 * w}, b.getI8Type()), 1)));
    }
    for (int64_t i = 0; i < k.rows; ++i) {
      Value from = at(a, i * k.rowBytes);
      Value left = hasDot ? repeat(from, b.getI32Type(), words) : repeat(from, b.getI64Type(), wide);
      for (int64_t j = 0; j < columns; ++j) {
        Value &sum = acc[i * columns + j];
        if (hasDot)
          sum = call(kind.isFloat ? "llvm.x86.avx512bf16.dpbf16ps.512" : "llvm.x86.avx512.vpdpbusd.512",
                     {sum, left, right[j]});
        else
          sum = arith::AddIOp::create(
              b, loc, sum, call(w == 16 ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd", {left, right[j]}));
      }
    }
  }

  /// The two bf16 of each word, one after the other: the lower one is the upper half of an f32 once it is moved there.
  void stepHalves(Value a, Value panel, SmallVector<Value> &acc) {
    VectorType words = em.vectorOf(b.getI32Type());
    for (int64_t half = 0; half < 2; ++half) {
      SmallVector<Value> right;
      for (int64_t j = 0; j < columns; ++j) {
        Value word = load(at(panel, rightOffset(j)), words, 4);
        auto constant = [&](int32_t value) -> Value {
          return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
        };
        word = half ? Value(arith::AndIOp::create(b, loc, word, constant(int32_t(0xffff0000))))
                    : Value(arith::ShLIOp::create(b, loc, word, constant(16)));
        right.push_back(arith::BitcastOp::create(b, loc, sums, word));
      }
      for (int64_t i = 0; i < k.rows; ++i) {
        Value left = repeat(at(a, i * k.rowBytes + half * kind.wideBytes()), b.getF32Type(), sums);
        for (int64_t j = 0; j < columns; ++j) {
          Value &sum = acc[i * columns + j];
          sum = vector::FMAOp::create(b, loc, left, right[j], sum);
        }
      }
    }
  }

  /// Of a vector of sums' columns in a line of each panel.
  int64_t rightOffset(int64_t column) const {
    return column / perPanel * kind.panelBytes(k.depth) + column % perPanel * (kLineBytes / perPanel);
  }

  void store(ArrayRef<Value> acc) {
    const int64_t w = em.width();
    SmallVector<int64_t> even, odd;
    for (int64_t lane = 0; lane < w; ++lane) {
      even.push_back(2 * lane);
      odd.push_back(2 * lane + 1);
    }
    for (int64_t i = 0; i < k.rows; ++i)
      for (int64_t j = 0; j < columns; j += isHalved ? 2 : 1) {
        Value value = acc[i * columns + j];
        if (isHalved) {
          Value other = acc[i * columns + j + 1];
          value = arith::AddIOp::create(b, loc, vector::ShuffleOp::create(b, loc, value, other, even),
                                        vector::ShuffleOp::create(b, loc, value, other, odd));
        }
        int64_t column = isHalved ? j / 2 * w : j * w;
        LLVM::StoreOp::create(b, loc, value, at(k.c, (i * k.tileColumns + column) * 4), 4);
      }
  }

  Emitter &em;
  const NarrowKernel &k;
  NarrowKind kind;
  OpBuilder &b;
  Location loc;
  VectorType sums;
  bool hasDot, isHalved;
  int64_t perPanel, columns, wordBytes;
};

} // namespace

void tc::codegen::emitNarrowKernel(Emitter &em, const NarrowKernel &kernel) { Assembler(em, kernel).run(); }

//===--- AMX ------------------------------------------------------------------------------------------------------===//

// Numbers of tiles: sums of the upper and lower rows for two panels, rows of A, panels of B.
static constexpr int64_t kSums = 0, kLeft = 4, kRight = 6;

static void callTile(Emitter &em, StringRef name, ArrayRef<int64_t> tiles, ValueRange operands = {}) {
  OpBuilder &b = em.builder();
  SmallVector<Value> all;
  for (int64_t tile : tiles)
    all.push_back(LLVM::ConstantOp::create(b, em.loc(), b.getI8IntegerAttr(tile)));
  llvm::append_range(all, operands);
  LLVM::CallIntrinsicOp::create(b, em.loc(), b.getStringAttr("llvm.x86." + name.str()), all);
}

void tc::codegen::emitTileConfiguration(Emitter &em, Value buffer, Value height) {
  // Intel SDM volume 2, LDTILECFG: palette 1; bytes of a row from byte 16 on, two bytes a tile; rows from byte 48 on.
  OpBuilder &b = em.builder();
  const Location loc = em.loc();
  constexpr int64_t kTiles = 8;
  SmallVector<int8_t> bytes(64, 0);
  bytes[0] = 1;
  for (int64_t tile = 0; tile < kTiles; ++tile) {
    bytes[16 + 2 * tile] = kTileLines * kWordBytes;
    bytes[48 + tile] = kTileRows;
  }
  auto type = VectorType::get({64}, b.getI8Type());
  LLVM::StoreOp::create(
      b, loc, arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes))), buffer, 1);
  if (height) {
    Value upper = em.min(height, em.i64(kTileRows));
    // A tile needs a row: an empty lower one computes what nobody reads.
    Value lower = arith::MaxSIOp::create(b, loc, em.sub(height, em.i64(kTileRows)), em.i64(1));
    for (int64_t tile : {0, 1, 2, 3, 4, 5}) {
      bool isLower = tile == kSums + 2 || tile == kSums + 3 || tile == kLeft + 1;
      Value rows = arith::TruncIOp::create(b, loc, b.getI8Type(), isLower ? lower : upper);
      LLVM::StoreOp::create(b, loc, rows, em.address(buffer, b.getI8Type(), em.i64(48 + tile)), 1);
    }
  }
  callTile(em, "ldtilecfg", {}, buffer);
}

void tc::codegen::emitTileRelease(Emitter &em) { callTile(em, "tilerelease", {}); }

void tc::codegen::emitTileKernel(Emitter &em, const NarrowKernel &k) {
  OpBuilder &b = em.builder();
  const Location loc = em.loc();
  const int64_t blocks = ceilDiv(k.rows, kTileRows), bytes = k.kind.panelBytes(k.depth);
  auto at = [&](Value pointer, Value offset) -> Value {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{offset});
  };
  auto advance = [&](Value pointer, int64_t offset) -> Value {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  };
  auto sum = [](int64_t i, int64_t j) { return kSums + 2 * i + j; };
  for (int64_t i = 0; i < blocks; ++i)
    for (int64_t j = 0; j < k.panels; ++j)
      callTile(em, "tilezero", {sum(i, j)});
  // What each step fetches: the panels are contiguous.
  const int64_t steps = bytes / (kTileLines * kLineBytes), lines = ceilDiv(kTileLines * k.panels, k.parts);
  Value fetched;
  if (k.next)
    fetched = at(k.next, arith::MulIOp::create(b, loc, k.part, em.i64(steps * lines * kLineBytes)));
  auto op = scf::ForOp::create(b, loc, em.i64(0), em.i64(steps), em.i64(1));
  disableUnrolling(op);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    auto scaled = [&](int64_t by) -> Value { return arith::MulIOp::create(b, loc, op.getInductionVar(), em.i64(by)); };
    Value left = at(k.a, scaled(kTileLines * kWordBytes)), right = at(k.b, scaled(kTileLines * kLineBytes));
    for (int64_t i = 0; i < blocks; ++i)
      callTile(em, "tileloadd64", {kLeft + i}, {advance(left, i * kTileRows * k.rowBytes), em.i64(k.rowBytes)});
    for (int64_t j = 0; j < k.panels; ++j)
      callTile(em, "tileloadd64", {kRight + j}, {advance(right, j * bytes), em.i64(kLineBytes)});
    for (int64_t line = 0; fetched && line < lines; ++line)
      em.prefetch(advance(at(fetched, scaled(lines * kLineBytes)), line * kLineBytes));
    for (int64_t j = 0; j < k.panels; ++j)
      for (int64_t i = 0; i < blocks; ++i)
        callTile(em, k.kind.isFloat ? "tdpbf16ps" : "tdpbusd", {sum(i, j), kLeft + i, kRight + j});
  }
  for (int64_t i = 0; i < blocks; ++i)
    for (int64_t j = 0; j < k.panels; ++j)
      callTile(em, "tilestored64", {sum(i, j)},
               {advance(k.c, (i * kTileRows * k.tileColumns + j * kPanel) * 4), em.i64(k.tileColumns * 4)});
}
