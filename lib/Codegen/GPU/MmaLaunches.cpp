//===- MmaLaunches.cpp - the "gpu.mma" strategy: launches that write operands -------------------------------------===//
//
// An operand that products could not copy by pieces of 16 bytes, and would compute several times, is computed once and
// written as they copy it: the image of a convolution, whatever stands before it, as pixels of whole pieces; and an rhs
// of f32 along K, turned in shared memory.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"
#include "GPU/Mma.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

// A thread's piece: some channels of a pixel, of which those past the group's are zeros.
void tc::codegen::gpu::emitMmaImage(const MmaProblem &p, Emitter &e, Value block) {
  OpBuilder &b = e.builder();
  const MmaProblem::Image &image = *p.image;
  MLIRContext *context = b.getContext();
  const int64_t perPiece = kPieceBytes / p.bytes();
  SmallVector<AffineExpr> sizes(image.pixels);
  sizes.append({getAffineConstantExpr(image.groups, context), getAffineConstantExpr(image.padded / perPiece, context)});
  const Value number = e.add(e.mul(block, e.i64(kWriteThreads)), threadIndex(e));
  const Value inside =
      arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, number, e.size(prim::product(context, sizes)));
  e.ifThen(inside, [&] {
    SmallVector<Index> at = e.delinearize(e.uniform(number), sizes);
    const Value first = e.mul(at.pop_back_val().base, e.i64(perPiece)), group = at.pop_back_val().base;
    const Type memory = Emitter::memoryType(p.element);
    const Value zero = arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(memory));
    SmallVector<Value> elements;
    for (int64_t i = 0; i < perPiece; ++i) {
      auto element = [&] {
        SmallVector<Index> position(at);
        position.push_back(e.uniform(e.add(e.add(e.mul(group, e.i64(image.channels)), first), e.i64(i))));
        return e.emit(image.tensor, position);
      };
      if (image.padded == perPiece && i >= image.channels)
        elements.push_back(zero);
      else if (image.padded == perPiece || image.padded == image.channels)
        elements.push_back(element());
      else
        elements.push_back(
            e.emitGuarded(e.isWithin(e.add(first, e.i64(i)), getAffineConstantExpr(image.channels, context)), p.element,
                          zero, /*lanes=*/false, element));
    }
    const Value piece = vector::FromElementsOp::create(b, e.loc(), VectorType::get({perPiece}, memory), elements);
    LLVM::StoreOp::create(b, e.loc(), piece, e.address(e.output(0), memory, e.mul(number, e.i64(perPiece))),
                          kPieceBytes);
  });
}

// A block's tile: computed as products compute it, and copied out line by line.
void tc::codegen::gpu::emitMmaRhs(const MmaProblem &p, MmaSchedule s, Emitter &e, Value block) {
  OpBuilder &b = e.builder();
  const Words w(e);
  const SmallVector<Index> task = e.delinearize(e.uniform(block), writeGrid(p));
  const SmallVector<Index> batch = e.delinearize(task[0], p.batch);
  const Value firstOuter = e.mul(task[1].base, e.i64(kWriteOuter)),
              firstDepth = e.mul(task[2].base, e.i64(kWriteDepth));
  const SharedTile tile{kWriteOuter, kWriteDepth, p.bytes(), /*alongDepth=*/true};
  const TileFiller filler(e, p.rhs, tile, batch, firstOuter, kWriteThreads, p.takesTf32(s));
  const Value shared = dynamicShared(e);
  filler.store(filler.compute(firstDepth), firstDepth, shared);
  barrier(e);
  const Value thread = threadNumber(e), piece = w.rem(thread, kPieces);
  const auto four = VectorType::get({tile.perPiece()}, Emitter::memoryType(p.element));
  const Value depth = e.add(firstDepth, e.mul(w.wide(piece), e.i64(tile.perPiece())));
  for (int64_t first = 0; first < tile.lines(); first += kWriteThreads / kPieces) {
    const Value line = w.add(w.div(thread, kPieces), first), outer = e.add(firstOuter, w.wide(line));
    const Value inside = andWithin(e, andWithin(e, Value(), outer, p.N, kWriteOuter), depth,
                                   prim::getSizes(p.writtenType).back(), kWriteDepth);
    auto store = [&] {
      const Value x =
          LLVM::LoadOp::create(b, e.loc(), four, sharedAt(e, shared, filler.pieceOffset(0, line, piece)), kPieceBytes);
      LLVM::StoreOp::create(
          b, e.loc(), x, e.address(e.output(0), four.getElementType(), p.writtenRhs->locate(e, batch, outer, depth).at),
          kPieceBytes);
    };
    inside ? e.ifThen(inside, store) : store();
  }
}

Value tc::codegen::gpu::firstMap(Emitter &e, Value maps) {
  OpBuilder &b = e.builder();
  const Value address = LLVM::PtrToIntOp::create(b, e.loc(), b.getI64Type(), maps);
  const Value end = e.add(address, e.i64(kTensorMapBytes - 1));
  const Value first = arith::AndIOp::create(b, e.loc(), end, e.i64(-kTensorMapBytes));
  return LLVM::IntToPtrOp::create(b, e.loc(), maps.getType(), first);
}
Value tc::codegen::gpu::nextMap(Emitter &e, Value map, int64_t count) {
  return LLVM::GEPOp::create(e.builder(), e.loc(), map.getType(), e.builder().getI8Type(), map,
                             ArrayRef<LLVM::GEPArg>{int32_t(count * kTensorMapBytes)});
}

// A warp for each map. Chips whose products take no tensor copies need nothing.
void tc::codegen::gpu::emitMmaMaps(const MmaProblem &p, MmaSchedule s, Emitter &e) {
  OpBuilder &b = e.builder();
  if (!e.gpu().hasMma(machine::MmaKind::WarpGroup))
    return;
  const Words w(e);
  const MmaLayout layout(p, s);
  const Value maps = firstMap(e, e.output(0)), shared = dynamicShared(e);
  const Value warp = w.div(threadNumber(e), machine::kWarpThreads);
  auto write = [&](int64_t number, const TiledOperand &operand, const SharedTile &tile) {
    const AffineExpr inner = operand.alongDepth ? operand.depth : operand.outer,
                     lines = operand.alongDepth ? operand.outer : operand.depth;
    TensorMap map;
    map.element = p.element;
    map.address = e.address(e.input(*operand.input), p.element, e.i64(0));
    map.sizes = {e.size(inner), e.size(lines)};
    map.strides = {e.size(operand.lines->stride)};
    map.box = {tile.perLine(), tile.lines()};
    for (size_t dim : operand.lines->batchDims()) {
      map.sizes.push_back(e.size(p.batch[dim]));
      map.strides.push_back(e.size(operand.lines->batchStrides[dim]));
      map.box.push_back(1);
    }
    const Value isMine = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, warp, w.constant(number));
    e.ifThen(isMine, [&] {
      writeTensorMap(e, nextMap(e, maps, number), sharedAt(e, shared, w.constant(number * kTensorMapBytes)), map);
    });
  };
  write(0, p.lhs, layout.lhs);
  write(1, p.rhsOf(s), layout.rhs);
}
