//===- EmitMemory.cpp - loads and stores of the emitter -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

unsigned Emitter::alignmentAt(Type memory, const Index &offset) const {
  unsigned natural = memoryBytes(memory);
  if (!alignedBuffers || !offset.isContiguous() || offset.multiple % width() != 0)
    return natural;
  return std::min<unsigned>(16, natural * width());
}

std::pair<int64_t, int64_t> tc::codegen::boundsOf(const Index &offset, int64_t width) {
  std::pair<int64_t, int64_t> bounds{offset.offsetOf(0), offset.offsetOf(0)};
  for (int64_t lane = 1; lane < width; ++lane) {
    bounds.first = std::min(bounds.first, offset.offsetOf(lane));
    bounds.second = std::max(bounds.second, offset.offsetOf(lane));
  }
  return bounds;
}

// A gather takes as long as a load for each lane: vectors of what lies between the lanes are cheaper as long as there
// are half as many.
bool Emitter::isShuffled(const Index &offset) const {
  if (offset.lanes || offset.isUniform() || offset.isContiguous() || alignedBuffers) // a GPU's lanes have no shuffles
    return false;
  const auto [first, last] = boundsOf(offset, width());
  int64_t distinct = width() / offset.repeat;
  if (offset.offsets) {
    llvm::SmallDenseSet<int64_t> positions(offset.offsets.asArrayRef().begin(), offset.offsets.asArrayRef().end());
    distinct = int64_t(positions.size());
  }
  return last - first < width() * std::max<int64_t>(1, distinct / 2);
}

Value Emitter::loadShuffled(Value pointer, Type memory, const Index &offset) {
  const int64_t width = this->width();
  const auto [first, last] = boundsOf(offset, width);
  const int64_t span = last - first + 1, size = std::min(width, span);
  const Value start = add(offset.base, i64(first)), on = mask();
  Value result;
  SmallVector<int64_t> order(width, 0);
  for (int64_t done = 0; done < span;) {
    // The last vector ends where the span ends: what lies behind may be no memory.
    const int64_t from = std::min(done, span - size);
    auto inVector = [&, first = first](int64_t lane) { return offset.offsetOf(lane) - first - from; };
    auto type = VectorType::get({size}, memory);
    const Value at = address(pointer, memory, add(start, i64(from)));
    Value vector;
    if (on) {
      // An element is on if one of its lanes is.
      SmallVector<SmallVector<int64_t>> readers(size);
      for (int64_t lane = 0; lane < width; ++lane)
        if (const int64_t element = inVector(lane); element >= 0 && element < size)
          readers[element].push_back(lane);
      const Value off = arith::ConstantOp::create(b, location, DenseElementsAttr::get(vectorOf(b.getI1Type()), false));
      Value needed;
      for (size_t number = 0;; ++number) {
        SmallVector<int64_t> lanes;
        bool isRead = false;
        for (ArrayRef<int64_t> of : readers) {
          isRead |= number < of.size();
          lanes.push_back(number < of.size() ? of[number] : width);
        }
        if (!isRead && needed)
          break;
        Value some = vector::ShuffleOp::create(b, location, on, off, lanes);
        needed = needed ? Value(arith::OrIOp::create(b, location, needed, some)) : some;
      }
      vector = loadMasked(type, at, needed, memoryBytes(memory));
    } else {
      vector = LLVM::LoadOp::create(b, location, type, at, memoryBytes(memory));
    }
    // Later vectors take their lanes from those before, which have the other ones.
    for (int64_t lane = 0; lane < width; ++lane) {
      const int64_t element = inVector(lane);
      if (element >= 0 && element < size && (element + from >= done || !result))
        order[lane] = element + (result ? width : 0);
      else if (result)
        order[lane] = lane;
    }
    result = vector::ShuffleOp::create(b, location, result ? result : vector, vector, order);
    done = from + size;
  }
  return result;
}

Value Emitter::permute(Value vector, Value lanes) {
  StringRef name = width() == 16 ? "llvm.x86.avx512.permvar.sf.512" : "llvm.x86.avx2.permps";
  const Type type = vector.getType(), floats = vectorOf(b.getF32Type());
  const Value words = type == floats ? vector : Value(LLVM::BitcastOp::create(b, location, floats, vector));
  const Value result =
      LLVM::CallIntrinsicOp::create(b, location, floats, b.getStringAttr(name), ValueRange{words, lanes}).getResult(0);
  return type == floats ? result : Value(LLVM::BitcastOp::create(b, location, type, result));
}

Value Emitter::loadWindow(Value pointer, Type memory, const Index::Window &window) {
  const auto positions = vectorOf(b.getI32Type()), type = vectorOf(memory);
  Value last = arith::TruncIOp::create(b, location, b.getI32Type(), window.last);
  if (Value on = mask()) {
    // Of the lanes that are on.
    const Value none = arith::ConstantOp::create(b, location, b.getZeroAttr(positions));
    last = vector::ReductionOp::create(b, location, vector::CombiningKind::MAXSI,
                                       arith::SelectOp::create(b, location, on, window.at, none));
  }
  const Value needed = arith::CmpIOp::create(b, location, arith::CmpIPredicate::sle, laneNumbers(), broadcast(last));
  return permute(loadMasked(type, address(pointer, memory, window.start), needed, memoryBytes(memory)), window.at);
}

// LLVM 22's masked loads of GPUs read lanes that are off, too, where the mask is constant, and lose what these are to
// be: there each lane is a load of its own.
Value Emitter::loadMasked(VectorType type, Value at, Value on, int64_t align) {
  const Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(type));
  if (!isa<machine::GpuAttr>(machine))
    return LLVM::MaskedLoadOp::create(b, location, type, at, on, zero, unsigned(align));
  const Type element = type.getElementType();
  const Value none = arith::ConstantOp::create(b, location, b.getZeroAttr(element));
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
    auto choice = scf::IfOp::create(b, location, TypeRange(element), vector::ExtractOp::create(b, location, on, lane),
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    const Value place =
        LLVM::GEPOp::create(b, location, at.getType(), element, at, ArrayRef<LLVM::GEPArg>{int32_t(lane)});
    scf::YieldOp::create(b, location,
                         LLVM::LoadOp::create(b, location, element, place, unsigned(memoryBytes(element))).getResult());
    b.setInsertionPointToStart(choice.elseBlock());
    scf::YieldOp::create(b, location, none);
    lanes.push_back(choice.getResult(0));
  }
  return vector::FromElementsOp::create(b, location, type, lanes);
}

Value Emitter::loadAt(Value pointer, Type elementType, const Index &position) {
  const Index offset = simplified(position);
  Type memory = memoryType(elementType);
  unsigned align = alignmentAt(memory, offset);
  Value result;
  if (offset.isUniform()) {
    result = LLVM::LoadOp::create(b, location, memory, address(pointer, memory, offset.base), align);
  } else if (isShuffled(offset)) {
    result = loadShuffled(pointer, memory, offset);
  } else if (offset.window && memoryBytes(memory) == 4) {
    result = loadWindow(pointer, memory, *offset.window);
  } else if (offset.isContiguous()) {
    auto type = vectorOf(memory);
    Value at = address(pointer, memory, offset.base);
    if (Value on = mask()) {
      result = loadMasked(type, at, on, align);
    } else {
      result = LLVM::LoadOp::create(b, location, type, at, align);
    }
  } else {
    auto type = vectorOf(memory);
    auto pointers = VectorType::get({width()}, pointer.getType());
    Value at = LLVM::GEPOp::create(b, location, pointers, memory, pointer, ArrayRef<LLVM::GEPArg>{materialize(offset)});
    Value on = mask();
    if (!on)
      on = arith::ConstantOp::create(b, location, DenseElementsAttr::get(vectorOf(b.getI1Type()), true));
    Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(type));
    result = LLVM::masked_gather::create(b, location, type, at, on, zero, align);
  }
  if (elementType.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(result.getType()));
    result = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ne, result, zero);
  }
  return result;
}

void Emitter::storeAt(Value value, Value pointer, Type elementType, const Index &position) {
  const Index offset = simplified(position);
  Type memory = memoryType(elementType);
  unsigned align = alignmentAt(memory, offset);
  if (!offset.isUniform())
    value = broadcast(value);
  if (elementType.isInteger(1)) {
    Type wide = isa<VectorType>(value.getType()) ? Type(vectorOf(memory)) : memory;
    value = arith::ExtUIOp::create(b, location, wide, value);
  }
  if (offset.isUniform()) {
    LLVM::StoreOp::create(b, location, value, address(pointer, memory, offset.base), align);
  } else if (offset.isContiguous()) {
    Value at = address(pointer, memory, offset.base);
    const unsigned bytes = unsigned(width()) * memoryBytes(memory);
    if (Value on = mask())
      LLVM::MaskedStoreOp::create(b, location, value, at, on, align);
    else if (streamsStores && offset.multiple % width() == 0)
      LLVM::StoreOp::create(b, location, value, at, std::min(64u, bytes), /*isVolatile=*/false,
                            /*isNonTemporal=*/true);
    else
      LLVM::StoreOp::create(b, location, value, at, align);
  } else {
    auto pointers = VectorType::get({width()}, pointer.getType());
    Value at = LLVM::GEPOp::create(b, location, pointers, memory, pointer, ArrayRef<LLVM::GEPArg>{materialize(offset)});
    Value on = mask();
    if (!on)
      on = arith::ConstantOp::create(b, location, DenseElementsAttr::get(vectorOf(b.getI1Type()), true));
    LLVM::masked_scatter::create(b, location, value, at, on, align);
  }
}

void Emitter::fenceStores() { LLVM::FenceOp::create(b, location, LLVM::AtomicOrdering::seq_cst, StringRef()); }

Value Emitter::load(Value pointer, Type elementType, ArrayRef<AffineExpr> sizes, ArrayRef<Index> at) {
  if (llvm::none_of(at, [](const Index &index) { return bool(index.lanes); }))
    return loadAt(pointer, elementType, linearize(at, sizes));
  // A gather: what all lanes share goes into the address, so that 32-bit indices of the others stay such.
  SmallVector<Index> shared(at), own(at);
  for (auto [index, common, rest] : llvm::zip_equal(at, shared, own))
    (index.isUniform() ? rest : common) = constant(0);
  Value start = address(pointer, memoryType(elementType), linearize(shared, sizes).base);
  return loadAt(start, elementType, linearize(own, sizes));
}
void Emitter::store(Value value, Value pointer, Type elementType, ArrayRef<AffineExpr> sizes, ArrayRef<Index> at) {
  // Lanes along a dim of size 1 that a reshape dropped: the first one is on.
  if (isa<VectorType>(value.getType()) && llvm::all_of(at, [](const Index &index) { return index.isUniform(); }))
    value = vector::ExtractOp::create(b, location, value, 0);
  storeAt(value, pointer, elementType, linearize(at, sizes));
}
