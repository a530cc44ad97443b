//===- Movement.cpp - reshape, transpose, broadcast, slice, pad, concat -------------------------------------------===//
//
// All of them copy bytes, so that every bit pattern survives.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include <cstring>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

Shape tc::prim::interpreter::getStrides(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

namespace {

/// A dim of both sides of a copy: how far its elements are apart, in bytes.
struct CopiedDim {
  int64_t size, from, to;
};

/// Dims whose elements follow those of the one before on both sides are one with it; those of one element are none.
SmallVector<CopiedDim> mergeDims(int64_t elementBytes, ArrayRef<int64_t> shape, ArrayRef<int64_t> fromStrides,
                                 ArrayRef<int64_t> toStrides) {
  SmallVector<CopiedDim> dims;
  for (auto [size, from, to] : llvm::zip_equal(shape, fromStrides, toStrides)) {
    const CopiedDim dim{size, from * elementBytes, to * elementBytes};
    if (!dims.empty() && dims.back().from == size * dim.from && dims.back().to == size * dim.to)
      dims.back() = {dims.back().size * size, dim.from, dim.to};
    else if (size != 1)
      dims.push_back(dim);
  }
  return dims;
}

/// Elements of so many bytes; 0: of `elementBytes`.
template <int64_t bytes>
void copyPlane(int64_t elementBytes, const CopiedDim &rows, const CopiedDim &columns, const char *from, char *to) {
  for (int64_t row = 0; row < rows.size; ++row)
    for (int64_t column = 0; column < columns.size; ++column)
      std::memcpy(to + row * rows.to + column * columns.to, from + row * rows.from + column * columns.from,
                  bytes ? bytes : elementBytes);
}

void copyDims(int64_t elementBytes, ArrayRef<CopiedDim> dims, const char *from, char *to) {
  if (dims.size() > 2) {
    for (int64_t i = 0; i < dims[0].size; ++i)
      copyDims(elementBytes, dims.drop_front(), from + i * dims[0].from, to + i * dims[0].to);
    return;
  }
  const CopiedDim one{1, 0, 0}, &columns = dims.empty() ? one : dims.back(), &rows = dims.size() < 2 ? one : dims[0];
  if (columns.from == elementBytes && columns.to == elementBytes) {
    for (int64_t row = 0; row < rows.size; ++row)
      std::memcpy(to + row * rows.to, from + row * rows.from, columns.size * elementBytes);
    return;
  }
  switch (elementBytes) {
  case 1:
    return copyPlane<1>(elementBytes, rows, columns, from, to);
  case 2:
    return copyPlane<2>(elementBytes, rows, columns, from, to);
  case 4:
    return copyPlane<4>(elementBytes, rows, columns, from, to);
  case 8:
    return copyPlane<8>(elementBytes, rows, columns, from, to);
  default:
    return copyPlane<0>(elementBytes, rows, columns, from, to);
  }
}

} // namespace

void tc::prim::interpreter::copyStrided(int64_t elementBytes, ArrayRef<int64_t> shape, const char *from,
                                        ArrayRef<int64_t> fromStrides, char *to, ArrayRef<int64_t> toStrides) {
  if (countElements(shape) <= 0)
    return;
  SmallVector<CopiedDim> dims = mergeDims(elementBytes, shape, fromStrides, toStrides);
  if (dims.size() < 2 || (dims.back().from == elementBytes && dims.back().to == elementBytes))
    return copyDims(elementBytes, dims, from, to);
  // Elements change places. In tiles of the innermost dim written and the longest other one, with all of the dims
  // between, a line that is read or written is so while it is in the cache.
  constexpr int64_t kRows = 16, kColumns = 32;
  const auto innermost =
      llvm::min_element(dims, [](const CopiedDim &a, const CopiedDim &b) { return std::abs(a.to) < std::abs(b.to); });
  std::rotate(innermost, innermost + 1, dims.end());
  const auto longest = std::max_element(dims.begin(), dims.end() - 1,
                                        [](const CopiedDim &a, const CopiedDim &b) { return a.size < b.size; });
  std::rotate(longest, longest + 1, dims.end() - 1);
  const CopiedDim rows = dims.end()[-2], columns = dims.back();
  for (int64_t column = 0; column < columns.size; column += kColumns)
    for (int64_t row = 0; row < rows.size; row += kRows) {
      dims.end()[-2].size = std::min(kRows, rows.size - row);
      dims.back().size = std::min(kColumns, columns.size - column);
      copyDims(elementBytes, dims, from + row * rows.from + column * columns.from,
               to + row * rows.to + column * columns.to);
    }
}

namespace {

/// result[i..] = operand[offset + sum(i * strides)].
Tensor readStrided(const Call &call, int64_t offset, ArrayRef<int64_t> strides) {
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  int64_t elementBytes = getElementBytes(call.elementTypes[0]);
  copyStrided(elementBytes, call.shapes[0], call.operands[0].bytes.get() + offset * elementBytes, strides, bytes,
              getStrides(call.shapes[0]));
  return result;
}

llvm::Expected<Tensor> evalReshape(ReshapeOp op, const Call &call) {
  if (call.operands[0].numElements() != countElements(call.shapes[0]))
    return call.fail("changes the number of elements");
  return call.operands[0].withShape(call.shapes[0]);
}

Tensor evalStorage(StorageOp op, const Call &call) {
  return changeStorage(call.operands[0], call.elementTypes[0], call.shapes[0]);
}

Tensor evalTranspose(TransposeOp op, const Call &call) {
  Shape strides = getStrides(call.operands[0].shape), permuted;
  for (int64_t dim : op.getPermutation())
    permuted.push_back(strides[dim]);
  return readStrided(call, 0, permuted);
}

llvm::Expected<Tensor> evalBroadcast(BroadcastOp op, const Call &call) {
  const Shape &shape = call.shapes[0], &from = call.operands[0].shape, own = getStrides(from);
  Shape strides(shape.size(), 0);
  for (auto [i, dim] : llvm::enumerate(op.getDims())) {
    if (from[i] != 1 && from[i] != shape[dim])
      return call.fail("can't repeat size " + Twine(from[i]) + " to " + Twine(shape[dim]));
    strides[dim] = from[i] == 1 ? 0 : own[i];
  }
  return readStrided(call, 0, strides);
}

llvm::Expected<Tensor> evalSlice(SliceOp op, const Call &call) {
  llvm::Expected<Shape> starts = call.frame.evaluate(op.getStarts());
  if (!starts)
    return call.fail(llvm::toString(starts.takeError()));
  const Shape &from = call.operands[0].shape, &shape = call.shapes[0];
  Shape strides = getStrides(from);
  if (countElements(shape) == 0)
    return readStrided(call, 0, strides);
  int64_t offset = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t first = (*starts)[dim], step = op.getSteps()[dim];
    __int128 last = first + __int128(shape[dim] - 1) * step;
    if (first < 0 || first >= from[dim] || last < 0 || last >= from[dim])
      return call.fail("dim " + Twine(dim) + " reaches outside its operand");
    offset += first * strides[dim];
    strides[dim] *= step;
  }
  return readStrided(call, offset, strides);
}

llvm::Expected<Tensor> evalDynamicSlice(DynamicSliceOp op, const Call &call) {
  const Shape &from = call.operands[0].shape, &shape = call.shapes[0];
  if (call.operands.size() != from.size() + 1 || shape.size() != from.size())
    return call.fail("needs a start per dim");
  Shape strides = getStrides(from);
  int64_t offset = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] > from[dim])
      return call.fail("the window is larger than dim " + Twine(dim));
    int64_t start = toInts(call.operands[dim + 1])[0];
    offset += std::clamp<int64_t>(start, 0, from[dim] - shape[dim]) * strides[dim];
  }
  return readStrided(call, countElements(shape) ? offset : 0, strides);
}

llvm::Expected<Tensor> evalPad(PadOp op, const Call &call) {
  llvm::Expected<Shape> low = call.frame.evaluate(op.getLow());
  if (!low)
    return call.fail(llvm::toString(low.takeError()));
  const Shape &from = call.operands[0].shape, &shape = call.shapes[0];
  int64_t elementBytes = getElementBytes(call.elementTypes[0]);
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], shape, bytes);
  for (int64_t i = 0, count = result.numElements(); i < count; ++i)
    std::memcpy(bytes + i * elementBytes, call.operands[1].bytes.get(), elementBytes);
  Shape window, fromStrides = getStrides(from), toStrides = getStrides(shape);
  int64_t fromOffset = 0, toOffset = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    // Positions of the result that show the operand: [begin, end).
    int64_t begin = std::max<int64_t>((*low)[dim], 0);
    int64_t end = std::min<__int128>(shape[dim], __int128((*low)[dim]) + from[dim]);
    window.push_back(std::max<int64_t>(end - begin, 0));
    if (window.back() == 0)
      return result;
    fromOffset += (begin - (*low)[dim]) * fromStrides[dim];
    toOffset += begin * toStrides[dim];
  }
  copyStrided(elementBytes, window, call.operands[0].bytes.get() + fromOffset * elementBytes, fromStrides,
              bytes + toOffset * elementBytes, toStrides);
  return result;
}

llvm::Expected<Tensor> evalConcat(ConcatOp op, const Call &call) {
  const Shape &shape = call.shapes[0];
  int64_t elementBytes = getElementBytes(call.elementTypes[0]), offset = 0, axis = op.getAxis();
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], shape, bytes);
  Shape strides = getStrides(shape);
  for (const Tensor &input : call.operands) {
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (dim == axis ? offset + input.shape[dim] > shape[dim] : input.shape[dim] != shape[dim])
        return call.fail("an input does not fit in dim " + Twine(dim));
    copyStrided(elementBytes, input.shape, input.bytes.get(), getStrides(input.shape),
                bytes + offset * strides[axis] * elementBytes, strides);
    offset += input.shape[axis];
  }
  if (offset != shape[axis])
    return call.fail("the inputs don't fill the result");
  return result;
}

} // namespace

void tc::prim::interpreter::addMovementHandlers(Registry &registry) {
  registry.add<ReshapeOp>(evalReshape);
  registry.add<StorageOp>(evalStorage);
  registry.add<TransposeOp>(evalTranspose);
  registry.add<BroadcastOp>(evalBroadcast);
  registry.add<SliceOp>(evalSlice);
  registry.add<DynamicSliceOp>(evalDynamicSlice);
  registry.add<PadOp>(evalPad);
  registry.add<ConcatOp>(evalConcat);
}
