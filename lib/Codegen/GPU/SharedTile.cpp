//===- SharedTile.cpp - a product's operands in shared memory -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/SharedTile.h"

#include "Common/EmitterHelpers.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

SmallVector<Value> tc::codegen::gpu::loadFragment(Emitter &e, const SharedTile &tile, Value base, Value first,
                                                  int64_t step, bool byLines) {
  const Words w(e);
  const Value lane = w.rem(threadNumber(e), machine::kWarpThreads);
  const Value inEight = w.rem(lane, 8), low = w.rem(w.div(lane, 8), 2), high = w.div(lane, 16);
  const Value outerHalf = byLines ? low : high, depthHalf = byLines ? high : low;
  // Lines begin at multiples of eight: a line's number in its eight tells how its pieces are swizzled.
  auto offsetOf = [&](Value line, Value piece) {
    return w.add(w.mul(line, kLineBytes), w.mul(w.bitXor(piece, inEight), kPieceBytes));
  };
  Value offset;
  if (tile.alongDepth) {
    constexpr int64_t perLine = kLineBytes / kFragmentBytes;
    const Value line = w.add(w.add(first, w.mul(outerHalf, 8)), inEight);
    offset = w.add(offsetOf(line, w.add(depthHalf, step % perLine * kFragmentBytes / kPieceBytes)),
                   step / perLine * tile.panelBytes());
  } else {
    const Value line = w.add(w.add(w.mul(depthHalf, 8), inEight), step * kFragmentBytes / tile.bytes);
    const Value at = w.add(first, w.mul(outerHalf, 8));
    const Value panel = w.div(at, tile.perLine()), piece = w.div(w.rem(at, tile.perLine()), tile.perPiece());
    offset = w.add(offsetOf(line, piece), w.mul(panel, tile.panelBytes()));
  }
  return loadMatrices(e, sharedAt(e, base, offset), !tile.alongDepth);
}

Value tc::codegen::gpu::describe(Emitter &e, const SharedTile &tile, Value shared) {
  return describeTile(e, shared, tile.panelBytes(), kSwizzledLines * kLineBytes);
}

Value tc::codegen::gpu::atStep(Emitter &e, const SharedTile &tile, Value description, int64_t step) {
  constexpr int64_t perLine = kLineBytes / kFragmentBytes;
  const int64_t bytes = tile.alongDepth ? step / perLine * tile.panelBytes() + step % perLine * kFragmentBytes
                                        : step * kFragmentBytes * kLineBytes / tile.bytes;
  return e.add(description, e.i64(bytes / 16));
}

void tc::codegen::gpu::storeFragments(Emitter &e, Value shared, int64_t blockColumns, Value firstRow, Value firstColumn,
                                      int64_t columns, ArrayRef<Value> sums) {
  OpBuilder &b = e.builder();
  const Words w(e);
  const int64_t across = columns / kFragmentN, rowWords = sumRowWords(blockColumns);
  const Value lane = w.rem(threadNumber(e), machine::kWarpThreads);
  const Value row = w.add(firstRow, w.div(lane, 4)), column = w.add(firstColumn, w.mul(w.rem(lane, 4), 2));
  const Value first = w.add(w.mul(row, rowWords), column);
  for (int64_t number = 0; number < int64_t(sums.size()) / 2; ++number) {
    // Two neighbours of a row, then those eight rows below.
    const int64_t half = number % 2, i = number / 2 / across, j = number / 2 % across;
    const Value two =
        vector::FromElementsOp::create(b, e.loc(), VectorType::get({2}, b.getF32Type()), sums.slice(number * 2, 2));
    const Value word = w.add(first, (i * kFragmentM + half * 8) * rowWords + j * kFragmentN);
    LLVM::StoreOp::create(b, e.loc(), two, sharedAt(e, shared, w.mul(word, 4)), 8);
  }
}

void tc::codegen::gpu::forSums(Emitter &e, const BlockSums &block, llvm::function_ref<void(ArrayRef<SumsPiece>)> fn) {
  constexpr int64_t kMostAtOnce = 4;
  const int64_t perRow = block.columns / block.lanes, all = block.rows * perRow;
  int64_t atOnce = kMostAtOnce;
  while (atOnce > 1 && all % (block.threads * atOnce) != 0)
    atOnce /= 2;
  e.loop(Words(e).wide(threadNumber(e)), e.i64(all), block.threads * atOnce, [&](Index first) {
    SmallVector<SumsPiece> pieces;
    for (int64_t i = 0; i < atOnce; ++i) {
      const Value number = e.add(first.base, e.i64(i * block.threads));
      SumsPiece piece;
      piece.row = e.divUnsigned(number, e.i64(perRow));
      piece.column = e.mul(e.remUnsigned(number, e.i64(perRow)), e.i64(block.lanes));
      const Value word = e.add(e.mul(piece.row, e.i64(sumRowWords(block.blockColumns))), piece.column);
      piece.sums = loadFloats(e, e.address(block.shared, e.builder().getF32Type(), word), block.lanes);
      pieces.push_back(piece);
    }
    fn(pieces);
  });
}

void tc::codegen::gpu::storeSums(Emitter &e, const Epilogue &epilogue, const BlockSums &block,
                                 llvm::function_ref<Placed<SmallVector<Index>>(Value, Value)> place) {
  forSums(e, block, [&](ArrayRef<SumsPiece> pieces) {
    SmallVector<std::pair<EpilogueValues, Value>> computed;
    for (const SumsPiece &piece : pieces) {
      const Placed<SmallVector<Index>> placed = place(piece.row, piece.column);
      computed.push_back({computeFromSums(e, epilogue, placed.at, piece.sums), placed.isValid});
    }
    for (const auto &[values, isValid] : computed) {
      auto store = [&, &values = values] { storeEpilogue(e, epilogue, values); };
      isValid ? e.ifThen(isValid, store) : store();
    }
  });
}

Value tc::codegen::gpu::clampTo(Emitter &e, Value condition, Value position, AffineExpr size, int64_t step) {
  return condition ? e.min(position, e.sub(e.size(size), e.i64(step))) : position;
}

TileFiller::TileFiller(Emitter &e, const TiledOperand &operand, const SharedTile &tile, ArrayRef<Index> batch,
                       Value firstOuter, int64_t threads, bool rounds, Value thread)
    : e(e), words(e), operand(operand), tile(tile), batch(batch), firstOuter(firstOuter),
      thread(thread ? thread : threadNumber(e)), threads(threads), rounds(rounds) {}

namespace {
// A warp takes 8 by 4 blocks of 4x4 elements: it reads lines of 128 bytes, and eight threads write eight pieces that
// are swizzled differently.
constexpr int64_t kBlock = 4, kBlocksOuter = 8, kBlocksDepth = 4;
} // namespace

TileFiller::Way TileFiller::way() const {
  if (operand.run % e.width() != 0)
    return Way::Elements;
  if (operand.alongDepth == tile.alongDepth)
    return Way::Pieces;
  const int64_t warpBlocks = tile.outer / (kBlock * kBlocksOuter) * (tile.depth / (kBlock * kBlocksDepth));
  const bool fits = tile.outer % (kBlock * kBlocksOuter) == 0 && warpBlocks % (threads / machine::kWarpThreads) == 0;
  return tile.alongDepth && tile.perPiece() == kBlock && e.width() == kBlock && fits ? Way::Blocks : Way::Elements;
}

void TileFiller::forBlocks(llvm::function_ref<void(Value, Value)> fn) const {
  const int64_t across = tile.outer / (kBlock * kBlocksOuter), all = across * (tile.depth / (kBlock * kBlocksDepth));
  const Value lane = words.rem(thread, machine::kWarpThreads), warp = words.div(thread, machine::kWarpThreads);
  for (int64_t i = 0; i < all; i += threads / machine::kWarpThreads) {
    const Value number = words.add(warp, i);
    const Value outer = words.add(words.mul(words.rem(number, across), kBlocksOuter), words.div(lane, kBlocksDepth));
    const Value depth = words.add(words.mul(words.div(number, across), kBlocksDepth), words.rem(lane, kBlocksDepth));
    fn(words.mul(outer, kBlock), words.mul(depth, kBlock));
  }
}

Value TileFiller::computeLanes(Value outer, Value depth) const {
  OpBuilder &b = e.builder();
  const Type element = elementOf(operand.tensor);
  const Value zero = e.broadcast(arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(Emitter::valueType(element))));
  const Index inner = e.contiguous(e.uniform(operand.alongDepth ? depth : outer, e.width()));
  const auto place = operand.alongDepth ? operand.place(e, batch, e.uniform(outer), inner)
                                        : operand.place(e, batch, inner, e.uniform(depth));
  auto lanes = [&] {
    const Value value = e.emit(operand.tensor, place.at);
    return isa<VectorType>(value.getType()) ? value : e.broadcast(value);
  };
  const Value inside = isInside(outer, depth, place.isValid);
  return inside ? e.emitGuarded(inside, element, zero, /*lanes=*/true, lanes) : lanes();
}

Value TileFiller::pieceOffset(int64_t panel, Value line, Value piece) const {
  const Value swizzled = words.bitXor(piece, words.rem(line, kSwizzledLines));
  return words.add(words.add(words.mul(line, kLineBytes), words.mul(swizzled, kPieceBytes)), panel * tile.panelBytes());
}

void TileFiller::forLines(llvm::function_ref<void(int64_t, Value)> fn) const {
  // Eight neighbours write a line.
  const Value first = words.div(thread, kPieces);
  for (int64_t panel = 0; panel < tile.panels(); ++panel)
    for (int64_t line = 0; line < tile.lines(); line += threads / kPieces)
      fn(panel, words.add(first, line));
}

void TileFiller::ifLine(Value line, llvm::function_ref<void()> fn) const {
  if (tile.lines() % (threads / kPieces) == 0)
    fn();
  else
    e.ifThen(words.less(line, words.constant(tile.lines())), fn);
}

std::pair<Value, Value> TileFiller::positionOf(int64_t panel, Value line, Value piece, int64_t first,
                                               Value firstDepth) const {
  const Value along = e.add(e.i64(panel * tile.perLine() + first), e.mul(words.wide(piece), e.i64(tile.perPiece())));
  const Value outer = e.add(firstOuter, tile.alongDepth ? words.wide(line) : along);
  return {outer, e.add(firstDepth, tile.alongDepth ? along : words.wide(line))};
}

Value tc::codegen::gpu::andWithin(Emitter &e, Value condition, Value position, AffineExpr size, int64_t tileSize) {
  if (const auto known = prim::getConstantSize(size); known && *known % tileSize == 0)
    return condition;
  OpBuilder &b = e.builder();
  const Value within = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, position, e.size(size));
  return condition ? Value(arith::AndIOp::create(b, e.loc(), condition, within)) : within;
}

Value TileFiller::isInside(Value outer, Value depth, Value isValid) const {
  const Value inside = andWithin(e, isValid, outer, operand.outer, tile.outer);
  return andWithin(e, inside, depth, operand.depth, tile.depth);
}

void TileFiller::copy(Value firstDepth, Value shared) const {
  const Value piece = pieceOfThread();
  const Type memory = Emitter::memoryType(elementOf(operand.tensor));
  const Value input = e.input(*operand.input);
  forLines([&](int64_t panel, Value line) {
    const auto [outer, depth] = positionOf(panel, line, piece, /*first=*/0, firstDepth);
    const Placed<Value> place = operand.locate(e, batch, outer, depth);
    const Value inside = isInside(outer, depth, place.isValid);
    ifLine(line, [&] {
      copyAsync(e, sharedAt(e, shared, pieceOffset(panel, line, piece)), e.address(input, memory, place.at), inside);
    });
  });
}

SmallVector<Value> TileFiller::compute(Value firstDepth) const {
  SmallVector<Value> pieces;
  OpBuilder &b = e.builder();
  const int64_t width = e.width();
  if (way() == Way::Elements)
    return pieces;
  if (way() == Way::Blocks) {
    forBlocks([&](Value outer, Value depth) {
      SmallVector<Value> steps;
      for (int64_t i = 0; i < kBlock; ++i)
        steps.push_back(
            computeLanes(e.add(firstOuter, words.wide(outer)), e.add(firstDepth, words.wide(words.add(depth, i)))));
      for (int64_t line = 0; line < kBlock; ++line) {
        SmallVector<Value> elements;
        for (Value step : steps)
          elements.push_back(vector::ExtractOp::create(b, e.loc(), step, line));
        pieces.push_back(vector::FromElementsOp::create(b, e.loc(), cast<VectorType>(steps[0].getType()), elements));
      }
    });
    return pieces;
  }
  const Value piece = pieceOfThread();
  forLines([&](int64_t panel, Value line) {
    SmallVector<Value> parts;
    for (int64_t i = 0; i < tile.perPiece(); i += width) {
      const auto [outer, depth] = positionOf(panel, line, piece, i, firstDepth);
      parts.push_back(computeLanes(outer, depth));
    }
    while (parts.size() > 1) {
      SmallVector<Value> joined;
      for (size_t i = 0; i < parts.size(); i += 2) {
        SmallVector<int64_t> order(2 * cast<VectorType>(parts[i].getType()).getNumElements());
        std::iota(order.begin(), order.end(), 0);
        joined.push_back(vector::ShuffleOp::create(b, e.loc(), parts[i], parts[i + 1], order));
      }
      parts = joined;
    }
    pieces.push_back(parts.front());
  });
  return pieces;
}

void TileFiller::store(ArrayRef<Value> pieces, Value firstDepth, Value shared) const {
  OpBuilder &b = e.builder();
  if (way() == Way::Blocks) {
    size_t number = 0;
    forBlocks([&](Value outer, Value depth) {
      for (int64_t line = 0; line < kBlock; ++line)
        LLVM::StoreOp::create(b, e.loc(), rounded(pieces[number++]),
                              sharedAt(e, shared, pieceOffset(0, words.add(outer, line), words.div(depth, kBlock))),
                              kPieceBytes);
    });
    return;
  }
  if (way() == Way::Pieces) {
    const Value piece = pieceOfThread();
    size_t number = 0;
    forLines([&](int64_t panel, Value line) {
      const Value value = rounded(pieces[number++]);
      ifLine(line, [&] {
        LLVM::StoreOp::create(b, e.loc(), value, sharedAt(e, shared, pieceOffset(panel, line, piece)), kPieceBytes);
      });
    });
    return;
  }
  // Neighbouring threads take neighbours in memory, whichever way lines go.
  const Type element = elementOf(operand.tensor);
  const Value zero = arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(Emitter::valueType(element)));
  const int64_t inner = operand.alongDepth ? tile.depth : tile.outer, count = tile.outer * tile.depth;
  e.loop(words.wide(thread), e.i64(count), threads, [&](Index number) {
    const Value innerAt = e.remUnsigned(number.base, e.i64(inner)), outerAt = e.divUnsigned(number.base, e.i64(inner));
    const Value outerInTile = operand.alongDepth ? outerAt : innerAt,
                depthInTile = operand.alongDepth ? innerAt : outerAt;
    const Value outer = e.add(firstOuter, outerInTile), depth = e.add(firstDepth, depthInTile);
    const auto place = operand.place(e, batch, e.uniform(outer), e.uniform(depth));
    auto value = [&] { return e.emit(operand.tensor, place.at); };
    const Value inside = isInside(outer, depth, place.isValid);
    const Value read = inside ? e.emitGuarded(inside, element, zero, /*lanes=*/false, value) : value();
    auto narrow = [&](Value x) -> Value { return arith::TruncIOp::create(b, e.loc(), b.getI32Type(), x); };
    const Value line = narrow(tile.alongDepth ? outerInTile : depthInTile);
    const Value along = narrow(tile.alongDepth ? depthInTile : outerInTile);
    const Value panel = words.div(along, tile.perLine()), inPanel = words.rem(along, tile.perLine());
    const Value offset = words.add(
        words.add(pieceOffset(0, line, words.div(inPanel, tile.perPiece())), words.mul(panel, tile.panelBytes())),
        words.mul(words.rem(inPanel, tile.perPiece()), tile.bytes));
    LLVM::StoreOp::create(b, e.loc(), rounded(read), sharedAt(e, shared, offset), unsigned(tile.bytes));
  });
}
