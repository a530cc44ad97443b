//===- Patches.cpp - the rows of a convolution of bytes or bf16 as a matrix product -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Patches.h"

#include "Common/Anchor.h"
#include "tc/Analysis/Convolution.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

std::optional<Patches> tc::codegen::asPatches(Operation *anchor) {
  auto op = dyn_cast_or_null<prim::ConvOp>(anchor);
  if (!op)
    return std::nullopt;
  Patches patches;
  patches.op = op;
  patches.source = op.getInput();
  patches.low.assign(op.getPadLow().begin(), op.getPadLow().end());
  SmallVector<int64_t> filter;
  for (AffineExpr size : prim::getSizes(op.getFilter())) {
    auto constant = prim::getConstantSize(size);
    if (!constant)
      return std::nullopt;
    filter.push_back(*constant);
  }
  const size_t spatial = op.getStrides().size();
  patches.kernel.assign(filter.begin(), filter.begin() + spatial);
  patches.groups = op.getGroups();
  patches.channels = filter[spatial];
  patches.columns = filter[spatial + 1] / patches.groups;
  if (std::optional<PixelPad> pad = matchPixelPad(op, op.getInput())) {
    patches.source = pad->source;
    patches.padding = pad->value;
    patches.low = pad->low;
  }
  MLIRContext *context = op.getContext();
  auto size = [&](int64_t n) { return getAffineConstantExpr(n, context); };
  Product &p = patches.product;
  p.lhs = op.getInput();
  p.rhs = op.getFilter();
  p.result = op.getResult();
  auto out = prim::getSizes(op.getResult());
  p.batch = {size(patches.groups)};
  p.rows.assign(out.begin(), out.end() - 1);
  p.columns = {size(patches.columns)};
  for (int64_t count : patches.kernel)
    p.depth.push_back(size(count));
  p.depth.push_back(size(patches.channels));
  p.finish(context);
  return patches;
}

std::optional<PackedInput> tc::codegen::packedPatchFilter(const Patches &patches, NarrowKind kind,
                                                          llvm::function_ref<bool(unsigned)> isConstant) {
  const Product &p = patches.product;
  MLIRContext *context = p.K.getContext();
  unsigned dim = 0;
  AffineExpr group = patches.groups > 1 ? getAffineDimExpr(dim++, context) : getAffineConstantExpr(0, context);
  AffineExpr panel = getAffineDimExpr(dim++, context), word = getAffineDimExpr(dim++, context);
  AffineExpr n = group * patches.columns + panel * kPanel + getAffineDimExpr(dim++, context);
  SmallVector<AffineExpr> at = delinearizeExpr(word * kind.steps() + getAffineDimExpr(dim++, context), p.depth);
  at.push_back(n);
  std::optional<ConstantView> view = traceConstant(p.rhs, isConstant, at);
  if (!view)
    return std::nullopt;
  SmallVector<int64_t> shape;
  if (patches.groups > 1)
    shape.push_back(patches.groups);
  shape.append({ceilDiv(patches.columns, kPanel), kind.lines(*p.k), kPanel, kind.steps()});
  return PackedInput{view->input, AffineMap::get(dim, 0, view->at, context),
                     cast<RankedTensorType>(p.rhs.getType()).clone(shape)};
}

//===--- rows -----------------------------------------------------------------------------------------------------===//

namespace {

class PatchWriter {
public:
  PatchWriter(Emitter &em, const Patches &patches, NarrowKind kind, bool widen)
      : em(em), p(patches), kind(kind), b(em.builder()), loc(em.loc()), widen(widen), from(kind.elementType(b)),
        to(widen ? kind.wideType(b) : from), fromBytes(kind.elementBytes()),
        toBytes(widen ? kind.wideBytes() : fromBytes) {}

  void run(Index group, ArrayRef<Index> row, Value target) {
    prim::ConvOp op = p.op;
    const unsigned spatial = p.kernel.size(), last = spatial - 1;
    auto sizes = prim::getSizes(p.source);
    const int64_t line = p.kernel[last] * p.channels;
    std::optional<unsigned> plain = inputThroughReshapes(p.source);
    const bool merged = plain && p.groups == 1 && (op.getDilations()[last] == 1 || p.kernel[last] == 1);
    Value firstChannel = em.mul(group.base, em.i64(p.channels));
    // The first input position of the patch, maybe outside.
    SmallVector<Value> first;
    for (unsigned i = 0; i < spatial; ++i)
      first.push_back(em.sub(em.mul(row[1 + i].base, em.i64(op.getStrides()[i])), em.i64(p.low[i])));
    SmallVector<AffineExpr> outerTaps;
    int64_t outerCount = 1;
    for (unsigned i = 0; i < last; ++i) {
      outerTaps.push_back(getAffineConstantExpr(p.kernel[i], b.getContext()));
      outerCount *= p.kernel[i];
    }
    auto lineAt = [&](Index tap) {
      SmallVector<Index> tapAt = em.delinearize(tap, outerTaps);
      SmallVector<Index> position{row[0]};
      Value inside = yes();
      for (unsigned i = 0; i < last; ++i) {
        Value at = em.add(first[i], em.mul(tapAt[i].base, em.i64(op.getDilations()[i])));
        inside = conjunction(inside, em.isWithin(at, sizes[1 + i]));
        position.push_back(em.uniform(at));
      }
      Value lineHere = at(target, em.mul(tap.base, em.i64(line)));
      auto offset = [&](Value x) { // of the group's first channel in the source
        SmallVector<Index> full = position;
        full.push_back(em.uniform(x));
        full.push_back(em.uniform(firstChannel));
        return em.linearize(full, sizes).base;
      };
      auto pixels = [&] {
        em.loop(em.i64(0), em.i64(p.kernel[last]), 1, [&](Index k) {
          Value x = em.add(first[last], em.mul(k.base, em.i64(op.getDilations()[last])));
          Value ok = conjunction(inside, em.isWithin(x, sizes[spatial]));
          Value pixel = at(lineHere, em.mul(k.base, em.i64(p.channels)));
          em.ifThen(ok, [&] {
            if (plain)
              return copy(source(*plain, offset(x)), pixel, p.channels);
            em.laneLoop(em.i64(p.channels), p.channels, [&](Index lane) {
              SmallVector<Index> full = position;
              full.push_back(em.uniform(x));
              full.push_back(em.addIndex(em.uniform(firstChannel), lane));
              em.storeAt(widened(em.broadcast(em.emit(p.source, full))), pixel, to, lane);
            });
          });
          em.ifThen(em.isNot(ok), [&] { fill(pixel, p.channels); });
        });
      };
      if (!merged)
        return pixels();
      Value full = conjunction(inside, conjunction(notNegative(first[last]),
                                                   arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                                                         em.add(first[last], em.i64(p.kernel[last])),
                                                                         em.size(sizes[spatial]))));
      em.ifThen(full, [&] { copy(source(*plain, offset(first[last])), lineHere, line); });
      em.ifThen(em.isNot(full), pixels);
    };
    if (outerCount == 1)
      return lineAt(em.constant(0));
    em.loop(em.i64(0), em.i64(outerCount), 1, lineAt);
  }

private:
  Value yes() { return arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1); }
  Value conjunction(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value notNegative(Value x) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x, em.i64(0)); }
  Value source(unsigned input, Value offset) { return em.address(em.input(input), from, offset); }
  Value at(Value row, Value element) { return em.address(row, to, element); }
  Value widened(Value value) { return widen ? kind.widen(b, loc, value) : value; }
  Value advance(Value pointer, int64_t elements, int64_t bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(elements * bytes)});
  }

  /// Calls body(first element, elements) for vectors that cover `count` elements, none of them more.
  void cover(int64_t count, llvm::function_ref<void(Value, int64_t, int64_t)> body) {
    const int64_t most = em.vectors().bits / 8 / toBytes;
    constexpr int64_t kMostVectors = 16;
    int64_t done = 0;
    if (count > kMostVectors * most) {
      const int64_t step = 4 * most;
      done = count / step * step;
      em.loop(em.i64(0), em.i64(done), step, [&](Index start) {
        for (int64_t i = 0; i < step; i += most)
          body(start.base, i, most);
      });
    }
    for (int64_t size = most; size; size /= 2)
      for (; count - done >= size; done += size)
        body(Value(), done, size);
  }
  void copy(Value source, Value target, int64_t count) {
    cover(count, [&](Value start, int64_t offset, int64_t size) {
      Value sourceHere = start ? em.address(source, from, start) : source,
            targetHere = start ? at(target, start) : target;
      Value value =
          LLVM::LoadOp::create(b, loc, VectorType::get({size}, from), advance(sourceHere, offset, fromBytes), 1);
      LLVM::StoreOp::create(b, loc, widened(value), advance(targetHere, offset, toBytes), 1);
    });
  }
  void fill(Value target, int64_t count) {
    Value element = p.padding ? em.emit(p.padding, {}) : Value(arith::ConstantOp::create(b, loc, b.getZeroAttr(from)));
    element = widened(element);
    cover(count, [&](Value start, int64_t offset, int64_t size) {
      Value value = vector::BroadcastOp::create(b, loc, VectorType::get({size}, to), element);
      LLVM::StoreOp::create(b, loc, value, advance(start ? at(target, start) : target, offset, toBytes), 1);
    });
  }

  Emitter &em;
  const Patches &p;
  NarrowKind kind;
  OpBuilder &b;
  Location loc;
  bool widen;
  Type from, to; // of the elements that are read and written
  int64_t fromBytes, toBytes;
};

} // namespace

void tc::codegen::emitPatch(Emitter &em, const Patches &patches, NarrowKind kind, Index group, ArrayRef<Index> row,
                            Value to, bool widen) {
  PatchWriter(em, patches, kind, widen).run(group, row, to);
}
