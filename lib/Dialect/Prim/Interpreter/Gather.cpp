//===- Gather.cpp - gathers and scatters --------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include <cstring>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

namespace {

/// Negative indices count from the end; what is still outside is clamped. `size` is at least 1.
int64_t wrapIndex(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 && index >= -size ? index + size : index, 0, size - 1);
}

llvm::Expected<Tensor> evalGather(GatherOp op, const Call &call) {
  const Tensor &source = call.operands[0];
  std::vector<int64_t> indices = toInts(call.operands[1]);
  int64_t axis = op.getAxis(), size = source.shape[axis];
  int64_t outer = countElements(ArrayRef(source.shape).take_front(axis));
  int64_t rowBytes = countElements(ArrayRef(source.shape).drop_front(axis + 1)) * getElementBytes(call.elementTypes[0]);
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  if (result.numElements() == 0)
    return result;
  if (size == 0)
    return call.fail("reads from a dim of size 0");
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : indices) {
      std::memcpy(bytes, source.bytes.get() + (o * size + wrapIndex(index, size)) * rowBytes, rowBytes);
      bytes += rowBytes;
    }
  return result;
}

/// Offset in a tensor of `strides` of the element that position `index` of indices names along `axis`.
llvm::Expected<std::vector<int64_t>> getElementOffsets(const Call &call, const Tensor &tensor, const Tensor &indices,
                                                       int64_t axis) {
  if (indices.shape.size() != tensor.shape.size() || axis < 0 || axis >= int64_t(tensor.shape.size()))
    return call.fail("axis is out of range or ranks differ");
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    if (int64_t(dim) != axis && indices.shape[dim] > tensor.shape[dim])
      return call.fail("indices reach outside of dim " + Twine(dim));
  if (indices.numElements() > 0 && tensor.shape[axis] == 0)
    return call.fail("reads from a dim of size 0");
  Shape strides = getStrides(tensor.shape);
  int64_t along = strides[axis];
  strides[axis] = 0;
  std::vector<int64_t> offsets = toInts(indices);
  forEachIndex(indices.shape, strides, [&](int64_t linear, int64_t base) {
    offsets[linear] = base + wrapIndex(offsets[linear], tensor.shape[axis]) * along;
  });
  return offsets;
}

llvm::Expected<Tensor> evalGatherElements(GatherElementsOp op, const Call &call) {
  auto offsets = getElementOffsets(call, call.operands[0], call.operands[1], op.getAxis());
  if (!offsets)
    return offsets.takeError();
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  int64_t elementBytes = getElementBytes(call.elementTypes[0]);
  for (size_t i = 0; i < offsets->size(); ++i)
    std::memcpy(bytes + i * elementBytes, call.operands[0].bytes.get() + (*offsets)[i] * elementBytes, elementBytes);
  return result;
}

/// Per index tuple [B.., J.., D] the offset of the slice that it names in `tensor` [B.., A1..AD, K..].
llvm::Expected<std::vector<int64_t>> getSliceOffsets(const Call &call, const Tensor &tensor, const Tensor &indices,
                                                     int64_t batchDims) {
  int64_t rank = indices.shape.size(), depth = rank ? indices.shape.back() : 0;
  if (rank < 1 || batchDims < 0 || batchDims >= rank || batchDims + depth > int64_t(tensor.shape.size()))
    return call.fail("indices name more dims than the tensor has");
  Shape strides = getStrides(tensor.shape);
  ArrayRef<int64_t> tuples = ArrayRef(indices.shape).drop_back();
  for (int64_t dim = 0; dim < batchDims; ++dim)
    if (indices.shape[dim] != tensor.shape[dim])
      return call.fail("batch dims differ in size");
  std::vector<int64_t> values = toInts(indices), offsets(countElements(tuples), 0);
  if (!offsets.empty())
    for (int64_t d = 0; d < depth; ++d)
      if (tensor.shape[batchDims + d] == 0)
        return call.fail("names an element of a dim of size 0");
  Shape batchStrides(tuples.size(), 0);
  std::copy(strides.begin(), strides.begin() + batchDims, batchStrides.begin());
  forEachIndex(tuples, batchStrides, [&](int64_t linear, int64_t base) {
    for (int64_t d = 0; d < depth; ++d)
      base += wrapIndex(values[linear * depth + d], tensor.shape[batchDims + d]) * strides[batchDims + d];
    offsets[linear] = base;
  });
  return offsets;
}

llvm::Expected<Tensor> evalGatherND(GatherNDOp op, const Call &call) {
  const Tensor &source = call.operands[0], &indices = call.operands[1];
  auto offsets = getSliceOffsets(call, source, indices, op.getBatchDims());
  if (!offsets)
    return offsets.takeError();
  int64_t elementBytes = getElementBytes(call.elementTypes[0]);
  int64_t slice = countElements(ArrayRef(source.shape).drop_front(op.getBatchDims() + indices.shape.back()));
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  for (size_t i = 0; i < offsets->size(); ++i)
    std::memcpy(bytes + i * slice * elementBytes, source.bytes.get() + (*offsets)[i] * elementBytes,
                slice * elementBytes);
  return result;
}

/// A copy of operand 0 where updates[i * slice ..] replace or are combined with the `slice` elements at offsets[i], in
/// order.
llvm::Expected<Tensor> scatter(const Call &call, ArrayRef<int64_t> offsets, int64_t slice,
                               std::optional<ReduceKind> kind) {
  const Tensor &source = call.operands[0], &updates = call.operands[2];
  if (updates.numElements() != int64_t(offsets.size()) * slice || updates.elementType != source.elementType)
    return call.fail("updates don't match the indices");
  if (kind && call.isFloat(0)) {
    std::vector<double> values = toDoubles(source), more = toDoubles(updates);
    for (size_t i = 0; i < more.size(); ++i) {
      double &value = values[offsets[i / slice] + i % slice];
      value = combine(*kind, value, more[i]);
    }
    return call.makeDoubles(values);
  }
  if (kind) {
    std::vector<int64_t> values = toInts(source), more = toInts(updates);
    for (size_t i = 0; i < more.size(); ++i) {
      int64_t &value = values[offsets[i / slice] + i % slice];
      value = combine(*kind, value, more[i], isUnsignedElement(source.elementType));
    }
    return call.makeInts(values);
  }
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  int64_t elementBytes = getElementBytes(call.elementTypes[0]);
  std::memcpy(bytes, source.bytes.get(), source.sizeBytes());
  for (size_t i = 0; i < offsets.size(); ++i)
    std::memcpy(bytes + offsets[i] * elementBytes, updates.bytes.get() + i * slice * elementBytes,
                slice * elementBytes);
  return result;
}

llvm::Expected<Tensor> evalScatterND(ScatterNDOp op, const Call &call) {
  const Tensor &source = call.operands[0], &indices = call.operands[1];
  if (source.shape != call.shapes[0])
    return call.fail("result and source differ in sizes");
  auto offsets = getSliceOffsets(call, source, indices, 0);
  if (!offsets)
    return offsets.takeError();
  return scatter(call, *offsets, countElements(ArrayRef(source.shape).drop_front(indices.shape.back())), op.getKind());
}

llvm::Expected<Tensor> evalScatterElements(ScatterElementsOp op, const Call &call) {
  if (call.operands[0].shape != call.shapes[0])
    return call.fail("result and source differ in sizes");
  auto offsets = getElementOffsets(call, call.operands[0], call.operands[1], op.getAxis());
  if (!offsets)
    return offsets.takeError();
  return scatter(call, *offsets, 1, op.getKind());
}

} // namespace

void tc::prim::interpreter::addGatherHandlers(Registry &registry) {
  registry.add<GatherOp>(evalGather);
  registry.add<GatherElementsOp>(evalGatherElements);
  registry.add<GatherNDOp>(evalGatherND);
  registry.add<ScatterNDOp>(evalScatterND);
  registry.add<ScatterElementsOp>(evalScatterElements);
}
