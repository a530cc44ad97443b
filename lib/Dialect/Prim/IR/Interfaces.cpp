//===- Interfaces.cpp - what passes and code generators ask a primitive -------------------------------------------===//
//
// PrimInterfaces.td says what each method answers.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/Prim.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc::prim;

#include "tc/Dialect/Prim/IR/PrimInterfaces.cpp.inc"

Space tc::prim::getSpace(Type type) {
  Space space;
  for (AffineExpr size : getSizes(type))
    if (!isOne(size))
      space.push_back(size);
  return space;
}

//===--- costs ----------------------------------------------------------------------------------------------------===//

static AffineExpr elementsOf(Value value) { return product(value.getContext(), getSizes(value)); }

AffineExpr tc::prim::detail::getFlopsOfRole(Operation *op, Role role, ArrayRef<AffineExpr> combined) {
  AffineExpr flops = getAffineConstantExpr(0, op->getContext());
  switch (role) {
  case Role::Function:
  case Role::Movement:
    return flops;
  case Role::Reduce:
    flops = elementsOf(op->getOperand(0));
    break;
  case Role::Pointwise:
  case Role::Window:
  case Role::Alone:
    flops = elementsOf(op->getResult(0));
    break;
  case Role::Contraction:
    flops = elementsOf(op->getResult(0)) * 2;
    break;
  }
  if (role != Role::Reduce)
    for (AffineExpr size : combined)
      flops = flops * size;
  return simplifySize(flops);
}

SmallVector<AffineExpr> ReduceOp::getCombinedSizes() {
  const auto sizes = getSizes(getOperand());
  return llvm::map_to_vector(getDims(), [&](int64_t dim) { return sizes[dim]; });
}
SmallVector<AffineExpr> ArgReduceOp::getCombinedSizes() { return {getSizes(getOperand())[getAxis()]}; }
SmallVector<AffineExpr> DotGeneralOp::getCombinedSizes() {
  const auto sizes = getSizes(getLhs());
  return llvm::map_to_vector(getLhsContract(), [&](int64_t dim) { return sizes[dim]; });
}
SmallVector<AffineExpr> BlockDotOp::getCombinedSizes() { return {getSizes(getLhs()).back()}; }
SmallVector<AffineExpr> ConvOp::getCombinedSizes() {
  auto sizes = getSizes(getFilter());
  sizes.pop_back();
  return SmallVector<AffineExpr>(sizes);
}
SmallVector<AffineExpr> WindowReduceOp::getCombinedSizes() {
  return llvm::map_to_vector(getWindow(), [&](int64_t size) { return getAffineConstantExpr(size, getContext()); });
}

AffineExpr AttentionOp::getFlops() {
  // Two products and five operations per score.
  const auto query = getSizes(getQuery()), value = getSizes(getValue());
  const AffineExpr scores = product(getContext(), ArrayRef(query).drop_back()) * value[value.size() - 2];
  return simplifySize(scores * ((query.back() + value.back()) * 2 + 5));
}
AffineExpr RnnOp::getFlops() { return simplifySize(elementsOf(getGates()) * getSizes(getRecurrent())[0] * 2); }

AffineExpr FftOp::getFlops() {
  // Five for each element and each power of two of the length; 12 of these where only the run knows.
  const auto sizes = getSizes(getOperand());
  const std::optional<int64_t> length = getConstantSize(getLengthExpr());
  const int64_t steps = length ? std::max<int64_t>(1, llvm::Log2_64_Ceil(std::max<int64_t>(*length, 1))) : 12;
  return simplifySize(sizes[0] * sizes[2] * getLengthExpr() * (5 * steps));
}

//===--- reductions -----------------------------------------------------------------------------------------------===//

SmallVector<int64_t> ReduceOp::getReducedDims() { return SmallVector<int64_t>(getDims()); }
SmallVector<int64_t> ArgReduceOp::getReducedDims() { return {int64_t(getAxis())}; }

//===--- movement -------------------------------------------------------------------------------------------------===//

Access ReshapeOp::getAccess(unsigned operand) {
  return getSpace(getOperand()) == getSpace(getResult()) ? Access::Aligned : Access::Moved;
}
void ReshapeOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  const auto from = getSizes(getOperand()), to = getSizes(getResult());
  if (getSpace(getOperand()) != getSpace(getResult()))
    return;
  unsigned next = 0;
  for (auto [i, size] : llvm::enumerate(from)) {
    if (isOne(size))
      continue;
    while (isOne(to[next]))
      ++next;
    map[i] = result[next++];
  }
}
std::optional<int64_t> ReshapeOp::getSourceDim(int64_t dim) {
  const auto to = getSizes(getResult()), from = getSizes(getOperand());
  if (dim + 1 == int64_t(to.size()) && !from.empty() && to.back() == from.back())
    return int64_t(from.size()) - 1;
  const AffineExpr before = product(getContext(), ArrayRef(to).take_front(dim));
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] == to[dim] && product(getContext(), ArrayRef(from).take_front(i)) == before)
      return int64_t(i);
  return std::nullopt;
}

void TransposeOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  for (auto [i, dim] : llvm::enumerate(getPermutation()))
    map[dim] = result[i];
}
std::optional<int64_t> TransposeOp::getSourceDim(int64_t dim) { return getPermutation()[dim]; }

void BroadcastOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  const auto from = getSizes(getOperand()), to = getSizes(getResult());
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (from[i] == to[dim])
      map[i] = result[dim];
}
std::optional<int64_t> BroadcastOp::getSourceDim(int64_t dim) {
  const auto place = llvm::find(getDims(), dim);
  if (place == getDims().end())
    return std::nullopt;
  return std::distance(getDims().begin(), place);
}

Access SliceOp::getAccess(unsigned operand) { return Access::Part; }
std::optional<int64_t> SliceOp::getSourceDim(int64_t dim) {
  // A single one has its neighbours along another dim.
  if (getSteps()[dim] != 1 || (isOne(getSizes(getResult())[dim]) && !isOne(getSizes(getOperand())[dim])))
    return std::nullopt;
  return dim;
}

Access DynamicSliceOp::getAccess(unsigned operand) { return operand == 0 ? Access::PartAtData : Access::Aligned; }

// Its value is no neighbour of anything.
std::optional<int64_t> PadOp::getSourceDim(int64_t dim) { return dim; }

Access ConcatOp::getAccess(unsigned operand) { return Access::Moved; }
void ConcatOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  // The numbers of indices, which are read one after another: each input at its only position.
  if (result[getAxis()] != kUnknown)
    return;
  for (size_t i = 0; i < map.size(); ++i)
    if (i != getAxis())
      map[i] = result[i];
}

Access GatherOp::getAccess(unsigned operand) { return operand == 0 ? Access::AtData : Access::Aligned; }
void GatherOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  if (operand == 1)
    llvm::copy(result.slice(getAxis(), map.size()), map.begin());
}
std::optional<int64_t> GatherOp::getSourceDim(int64_t dim) {
  const int64_t rank = int64_t(getSizes(getIndices()).size()), axis = int64_t(getAxis());
  if (dim >= axis && dim < axis + rank)
    return std::nullopt;
  return dim < axis ? dim : dim - rank + 1;
}

Access GatherElementsOp::getAccess(unsigned operand) { return operand == 0 ? Access::AtData : Access::Aligned; }
void GatherElementsOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  if (operand == 1)
    llvm::copy(result, map.begin());
}

Access GatherNDOp::getAccess(unsigned operand) { return operand == 0 ? Access::AtData : Access::Aligned; }
void GatherNDOp::mapOperand(unsigned operand, ArrayRef<int> result, MutableArrayRef<int> map) {
  // The last dim holds the numbers of one index. Indices of slices have no lanes where their slices have them: made
  // there they would be made one at a time.
  if (operand != 1 || !llvm::all_of(ArrayRef(getSizes(getResult())).drop_front(map.size() - 1), isOne))
    return;
  llvm::copy(result.take_front(map.size() - 1), map.begin());
}
std::optional<int64_t> GatherNDOp::getSourceDim(int64_t dim) {
  const auto of = getSizes(getIndices());
  const int64_t outer = int64_t(of.size()) - 1;
  if (dim < outer)
    return std::nullopt;
  return dim + int64_t(getBatchDims()) + *getConstantSize(of.back()) - outer;
}
