//===- PrimOps.cpp - builders, verifiers and folds of prim --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/HostCalls.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tc::prim;

#define GET_OP_CLASSES
#include "tc/Dialect/Prim/IR/PrimOps.cpp.inc"

namespace {

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

bool inRange(ArrayRef<int64_t> dims, int64_t rank) {
  return llvm::all_of(dims, [&](int64_t d) { return d >= 0 && d < rank; });
}

bool strictlyIncreasing(ArrayRef<int64_t> dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i - 1] >= dims[i])
      return false;
  return true;
}

/// Verifies the type of the only result against the one that the op's operands imply.
LogicalResult checkResult(Operation *op, RankedTensorType expected) {
  if (op->getResult(0).getType() != expected)
    return op->emitOpError() << "result has type " << op->getResult(0).getType() << ", expected " << expected;
  return success();
}

LogicalResult checkSizes(Operation *op, Value value, ArrayRef<AffineExpr> expected) {
  if (getSizes(value) != expected)
    return op->emitOpError() << "result has sizes that its operands do not imply: " << value.getType() << ", expected "
                             << makeType(tensorType(value).getElementType(), expected);
  return success();
}

} // namespace

//===--- constants and sizes --------------------------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult SplatOp::verify() {
  if (getValue().getType() != tensorType(getResult()).getElementType())
    return emitOpError("value and result differ in element type");
  return success();
}

LogicalResult IotaOp::verify() {
  if (!inRange(getAxis(), tensorType(getResult()).getRank()))
    return emitOpError("axis is out of range");
  return success();
}

LogicalResult SizesOp::verify() {
  auto type = tensorType(getResult());
  if (type.getRank() > 1 || !type.hasStaticShape() || !type.getElementType().isInteger(64) ||
      type.getNumElements() != int64_t(getMap().getNumResults()) || getMap().getNumDims() != 0)
    return emitOpError("(C1) needs as many expressions as the 0-D or 1-D i64 result has elements");
  return success();
}

//===--- elementwise ----------------------------------------------------------------------------------------------===//

void CompareOp::build(OpBuilder &builder, OperationState &state, CompareKind kind, Value lhs, Value rhs) {
  build(builder, state, withElementType(lhs.getType(), builder.getI1Type()), kind, lhs, rhs);
}
LogicalResult CompareOp::verify() {
  return checkResult(*this, withElementType(getLhs().getType(), IntegerType::get(getContext(), 1)));
}
LogicalResult IsNanOp::verify() {
  return checkResult(*this, withElementType(getOperand().getType(), IntegerType::get(getContext(), 1)));
}
LogicalResult IsInfOp::verify() {
  return checkResult(*this, withElementType(getOperand().getType(), IntegerType::get(getContext(), 1)));
}
LogicalResult SelectOp::verify() {
  if (getCondition().getType() != withElementType(getResult().getType(), IntegerType::get(getContext(), 1)))
    return emitOpError("condition must be i1 of the result's sizes");
  return success();
}
void ConvertOp::build(OpBuilder &builder, OperationState &state, Value operand, Type elementType) {
  build(builder, state, withElementType(operand.getType(), elementType), operand);
}
LogicalResult ConvertOp::verify() {
  if (!sameSizes(getOperand().getType(), getResult().getType()))
    return emitOpError("operand and result differ in sizes");
  return success();
}
void BitcastOp::build(OpBuilder &builder, OperationState &state, Value operand, Type elementType) {
  build(builder, state, withElementType(operand.getType(), elementType), operand);
}
LogicalResult BitcastOp::verify() {
  Type from = tensorType(getOperand()).getElementType(), to = tensorType(getResult()).getElementType();
  if (!sameSizes(getOperand().getType(), getResult().getType()))
    return emitOpError("operand and result differ in sizes");
  if (from.isInteger(1) || to.isInteger(1) || getElementBits(from) != getElementBits(to))
    return emitOpError("(C1) needs element types of the same number of bits");
  return success();
}

//===--- movement -------------------------------------------------------------------------------------------------===//

LogicalResult StorageOp::verify() {
  auto narrow = tensorType(getOperand()), bytes = tensorType(getResult());
  auto isHeld = [](RankedTensorType type) {
    return isNarrowElement(type.getElementType()) || isa<ComplexType>(type.getElementType());
  };
  if (!isHeld(narrow))
    std::swap(narrow, bytes);
  if (auto complex = dyn_cast<ComplexType>(narrow.getElementType())) {
    if (bytes.getElementType() != complex.getElementType())
      return emitOpError("(C1) needs a tensor of complex elements and one of their floats");
    if (bytes != getStorageType(narrow))
      return emitOpError("(C2) the sizes of the floats must be those of ") << getStorageType(narrow);
    return success();
  }
  if (!isNarrowElement(narrow.getElementType()) || !bytes.getElementType().isUnsignedInteger(8))
    return emitOpError("(C1) needs a tensor of narrow elements and one of ui8");
  if (bytes != getStorageType(narrow))
    return emitOpError("(C2) the sizes of the ui8 tensor must be those of ") << getStorageType(narrow);
  return success();
}

LogicalResult ReshapeOp::verify() {
  if (tensorType(getOperand()).getElementType() != tensorType(getResult()).getElementType())
    return emitOpError("operand and result differ in element type");
  auto in = tensorType(getOperand()), out = tensorType(getResult());
  if (in.hasStaticShape() && out.hasStaticShape() && in.getNumElements() != out.getNumElements())
    return emitOpError() << "changes the number of elements from " << in.getNumElements() << " to "
                         << out.getNumElements();
  return success();
}
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  if (auto producer = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(producer.getOperand());
    return getResult();
  }
  return {};
}

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value operand, ArrayRef<int64_t> permutation) {
  SmallVector<AffineExpr> sizes = getSizes(operand), permuted;
  for (int64_t dim : permutation)
    permuted.push_back(sizes[dim]);
  build(builder, state, makeType(tensorType(operand).getElementType(), permuted), operand, permutation);
}
LogicalResult TransposeOp::verify() {
  int64_t rank = tensorType(getOperand()).getRank();
  SmallVector<int64_t> sorted(getPermutation());
  llvm::sort(sorted);
  if (int64_t(sorted.size()) != rank || !llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return emitOpError("permutation must name each dim once");
  SmallVector<AffineExpr> sizes = getSizes(getOperand()), permuted;
  for (int64_t dim : getPermutation())
    permuted.push_back(sizes[dim]);
  return checkResult(*this, makeType(tensorType(getOperand()).getElementType(), permuted));
}
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getOperand();
  if (auto producer = getOperand().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : getPermutation())
      composed.push_back(producer.getPermutation()[dim]);
    setPermutation(composed);
    getOperandMutable().assign(producer.getOperand());
    return getResult();
  }
  return {};
}

LogicalResult BroadcastOp::verify() {
  SmallVector<AffineExpr> in = getSizes(getOperand()), out = getSizes(getResult());
  if (getDims().size() != in.size() || !strictlyIncreasing(getDims()) || !inRange(getDims(), out.size()))
    return emitOpError("(C1) dims must be strictly increasing, in range, one per operand dim");
  for (auto [dim, size] : llvm::zip_equal(getDims(), in)) {
    auto a = getConstantSize(size), b = getConstantSize(out[dim]);
    if (a && b && *a != 1 && *a != *b)
      return emitOpError() << "(C1) can't repeat size " << *a << " to " << *b;
  }
  if (tensorType(getOperand()).getElementType() != tensorType(getResult()).getElementType())
    return emitOpError("operand and result differ in element type");
  return success();
}
OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  if (auto producer = getOperand().getDefiningOp<BroadcastOp>()) {
    SmallVector<int64_t> dims;
    for (int64_t dim : producer.getDims())
      dims.push_back(getDims()[dim]);
    getOperandMutable().assign(producer.getOperand());
    setDims(dims);
    return getResult();
  }
  return {};
}

LogicalResult SliceOp::verify() {
  int64_t rank = tensorType(getOperand()).getRank();
  if (int64_t(getStarts().getNumResults()) != rank || int64_t(getSteps().size()) != rank ||
      tensorType(getResult()).getRank() != rank)
    return emitOpError("needs a start and a step per dim");
  if (llvm::is_contained(getSteps(), 0))
    return emitOpError("step is 0");
  SmallVector<AffineExpr> in = getSizes(getOperand()), out = getSizes(getResult());
  for (int64_t i = 0; i < rank; ++i) {
    auto start = getConstantSize(getStarts().getResult(i)), size = getConstantSize(in[i]),
         count = getConstantSize(out[i]);
    if (start && size && count && *count > 0) {
      int64_t last = *start + (*count - 1) * getSteps()[i];
      if (*start < 0 || *start >= *size || last < 0 || last >= *size)
        return emitOpError() << "dim " << i << " reaches outside its operand";
    }
  }
  return success();
}

LogicalResult PadOp::verify() {
  int64_t rank = tensorType(getOperand()).getRank();
  if (int64_t(getLow().getNumResults()) != rank || tensorType(getResult()).getRank() != rank)
    return emitOpError("needs a low pad per dim");
  if (tensorType(getValue()).getRank() != 0 ||
      tensorType(getValue()).getElementType() != tensorType(getResult()).getElementType())
    return emitOpError("value must be 0-D of the operand's element type");
  return success();
}

void ConcatOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs, int64_t axis) {
  SmallVector<AffineExpr> sizes = getSizes(inputs.front());
  for (Value input : inputs.drop_front())
    sizes[axis] = sizes[axis] + getSizes(input)[axis];
  build(builder, state, makeType(tensorType(inputs.front()).getElementType(), sizes), inputs, axis);
}
LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an input");
  auto type = tensorType(getInputs().front());
  if (!inRange(getAxis(), type.getRank()))
    return emitOpError("axis is out of range");
  SmallVector<AffineExpr> sizes = getSizes(getInputs().front());
  for (Value input : getInputs().drop_front()) {
    SmallVector<AffineExpr> more = getSizes(input);
    if (more.size() != sizes.size() || tensorType(input).getElementType() != type.getElementType())
      return emitOpError("inputs differ in rank or element type");
    for (size_t i = 0; i < sizes.size(); ++i)
      if (int64_t(i) == int64_t(getAxis()))
        sizes[i] = sizes[i] + more[i];
      else if (sizes[i] != more[i])
        return emitOpError() << "inputs differ in dim " << i;
  }
  return checkResult(*this, makeType(type.getElementType(), sizes));
}

void GatherOp::build(OpBuilder &builder, OperationState &state, Value source, Value indices, int64_t axis) {
  SmallVector<AffineExpr> in = getSizes(source), sizes(in.begin(), in.begin() + axis);
  llvm::append_range(sizes, getSizes(indices));
  sizes.append(in.begin() + axis + 1, in.end());
  build(builder, state, makeType(tensorType(source).getElementType(), sizes), source, indices, axis);
}
LogicalResult GatherOp::verify() {
  SmallVector<AffineExpr> in = getSizes(getSource());
  if (!inRange(getAxis(), in.size()))
    return emitOpError("(C1) axis is out of range");
  SmallVector<AffineExpr> sizes(in.begin(), in.begin() + getAxis());
  llvm::append_range(sizes, getSizes(getIndices()));
  sizes.append(in.begin() + getAxis() + 1, in.end());
  return checkResult(*this, makeType(tensorType(getSource()).getElementType(), sizes)); // (C2) too
}
LogicalResult GatherElementsOp::verify() {
  if (!inRange(getAxis(), tensorType(getSource()).getRank()) ||
      tensorType(getSource()).getRank() != tensorType(getIndices()).getRank())
    return emitOpError("axis is out of range or ranks differ");
  return checkResult(*this, withElementType(getIndices().getType(), tensorType(getSource()).getElementType()));
}
LogicalResult GatherNDOp::verify() {
  auto indices = tensorType(getIndices());
  int64_t rank = indices.getRank();
  if (rank < 1 || indices.isDynamicDim(rank - 1))
    return emitOpError("(C1) the last dim of indices must be static");
  int64_t depth = indices.getDimSize(rank - 1), batch = getBatchDims();
  SmallVector<AffineExpr> in = getSizes(getSource()), of = getSizes(getIndices());
  if (batch < 0 || batch >= rank || batch + depth > int64_t(in.size()))
    return emitOpError("indices name more dims than the source has");
  SmallVector<AffineExpr> sizes(of.begin(), of.end() - 1);
  sizes.append(in.begin() + batch + depth, in.end());
  return checkResult(*this, makeType(tensorType(getSource()).getElementType(), sizes));
}

//===--- reductions -----------------------------------------------------------------------------------------------===//

namespace {
SmallVector<AffineExpr> dropDims(ArrayRef<AffineExpr> sizes, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> kept;
  for (auto [i, size] : llvm::enumerate(sizes))
    if (!llvm::is_contained(dims, int64_t(i)))
      kept.push_back(size);
  return kept;
}
} // namespace

void ReduceOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind, Value operand,
                     ArrayRef<int64_t> dims) {
  build(builder, state, makeType(tensorType(operand).getElementType(), dropDims(getSizes(operand), dims)), kind,
        operand, dims);
}
LogicalResult ReduceOp::verify() {
  if (!strictlyIncreasing(getDims()) || !inRange(getDims(), tensorType(getOperand()).getRank()))
    return emitOpError("(C1) dims must be strictly increasing and in range");
  return checkResult(*this,
                     makeType(tensorType(getOperand()).getElementType(), dropDims(getSizes(getOperand()), getDims())));
}

//===--- contractions and windows ---------------------------------------------------------------------------------===//

namespace {
SmallVector<AffineExpr> dotSizes(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch, ArrayRef<int64_t> rhsBatch,
                                 ArrayRef<int64_t> lhsContract, ArrayRef<int64_t> rhsContract) {
  SmallVector<AffineExpr> a = getSizes(lhs), b = getSizes(rhs), sizes;
  for (int64_t dim : lhsBatch)
    sizes.push_back(a[dim]);
  for (size_t i = 0; i < a.size(); ++i)
    if (!llvm::is_contained(lhsBatch, int64_t(i)) && !llvm::is_contained(lhsContract, int64_t(i)))
      sizes.push_back(a[i]);
  for (size_t i = 0; i < b.size(); ++i)
    if (!llvm::is_contained(rhsBatch, int64_t(i)) && !llvm::is_contained(rhsContract, int64_t(i)))
      sizes.push_back(b[i]);
  return sizes;
}
} // namespace

void DotGeneralOp::build(OpBuilder &builder, OperationState &state, Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                         ArrayRef<int64_t> rhsBatch, ArrayRef<int64_t> lhsContract, ArrayRef<int64_t> rhsContract) {
  build(builder, state,
        makeType(tensorType(lhs).getElementType(), dotSizes(lhs, rhs, lhsBatch, rhsBatch, lhsContract, rhsContract)),
        lhs, rhs, lhsBatch, rhsBatch, lhsContract, rhsContract);
}
LogicalResult DotGeneralOp::verify() {
  SmallVector<AffineExpr> a = getSizes(getLhs()), b = getSizes(getRhs());
  auto valid = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract, int64_t rank) {
    SmallVector<int64_t> all(batch);
    llvm::append_range(all, contract);
    llvm::sort(all);
    return inRange(all, rank) && strictlyIncreasing(all);
  };
  if (!valid(getLhsBatch(), getLhsContract(), a.size()) || !valid(getRhsBatch(), getRhsContract(), b.size()) ||
      getLhsBatch().size() != getRhsBatch().size() || getLhsContract().size() != getRhsContract().size())
    return emitOpError("(C1) batch and contracting dims must be disjoint, in range and equally many on both sides");
  for (auto [l, r] : llvm::zip(getLhsBatch(), getRhsBatch()))
    if (a[l] != b[r])
      return emitOpError("(C1) batch dims differ in size");
  for (auto [l, r] : llvm::zip(getLhsContract(), getRhsContract()))
    if (a[l] != b[r])
      return emitOpError("(C1) contracting dims differ in size");
  return checkSizes(*this, getResult(),
                    dotSizes(getLhs(), getRhs(), getLhsBatch(), getRhsBatch(), getLhsContract(), getRhsContract()));
}

namespace {
SmallVector<AffineExpr> convSizes(Value input, Value filter, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                                  ArrayRef<int64_t> padLow, ArrayRef<int64_t> padHigh) {
  SmallVector<AffineExpr> in = getSizes(input), kernel = getSizes(filter), sizes{in[0]};
  for (size_t i = 0; i < strides.size(); ++i)
    sizes.push_back((in[i + 1] + (padLow[i] + padHigh[i] - 1) - (kernel[i] - 1) * dilations[i]).floorDiv(strides[i]) +
                    1);
  sizes.push_back(kernel.back());
  return sizes;
}
} // namespace

void ConvOp::build(OpBuilder &builder, OperationState &state, Value input, Value filter, ArrayRef<int64_t> strides,
                   ArrayRef<int64_t> dilations, ArrayRef<int64_t> padLow, ArrayRef<int64_t> padHigh, int64_t groups) {
  build(builder, state,
        makeType(tensorType(input).getElementType(), convSizes(input, filter, strides, dilations, padLow, padHigh)),
        input, filter, strides, dilations, padLow, padHigh, groups);
}
LogicalResult ConvOp::verify() {
  size_t spatial = getStrides().size();
  if (getDilations().size() != spatial || getPadLow().size() != spatial || getPadHigh().size() != spatial ||
      tensorType(getInput()).getRank() != int64_t(spatial) + 2 ||
      tensorType(getFilter()).getRank() != int64_t(spatial) + 2)
    return emitOpError("(C1) needs a stride, dilation and pad per spatial dim");
  auto channels = getConstantSize(getSizes(getInput()).back()), outputs = getConstantSize(getSizes(getFilter()).back());
  auto perGroup = getConstantSize(getSizes(getFilter())[spatial]);
  if (int64_t(getGroups()) < 1 || (channels && perGroup && *channels != *perGroup * int64_t(getGroups())) ||
      (outputs && *outputs % int64_t(getGroups()) != 0))
    return emitOpError("(C2) groups must divide input and output channels");
  if (llvm::any_of(getStrides(), [](int64_t s) { return s < 1; }) ||
      llvm::any_of(getDilations(), [](int64_t d) { return d < 1; }))
    return emitOpError("strides and dilations must be positive");
  return checkSizes(*this, getResult(),
                    makeSizeMap(getContext(), convSizes(getInput(), getFilter(), getStrides(), getDilations(),
                                                        getPadLow(), getPadHigh()))
                        .getResults());
}

bool BlockDotOp::isSigned() { return tensorType(getPacked()).getElementType().isSignlessInteger(8); }
LogicalResult BlockDotOp::verify() {
  if ((getBits() != 2 && getBits() != 4 && getBits() != 8) || getBlock() < 16 || !llvm::isPowerOf2_64(getBlock()))
    return emitOpError("(C1) bits must be 2, 4 or 8, and block a power of 2 of at least 16");
  if (isSigned() && getBits() != 8)
    return emitOpError("(C1) numbers with a sign have 8 bits");
  SmallVector<AffineExpr> lhs = getSizes(getLhs()), packed = getSizes(getPacked()), scales = getSizes(getScales());
  if (lhs.empty() || packed.size() != 2 || scales.size() != 2)
    return emitOpError("(C2) lhs needs a dim, packed and scales two");
  const int64_t bits = getBits(), block = getBlock();
  AffineExpr n = packed[0], blocks = simplifySize(lhs.back().ceilDiv(block));
  bool fits = packed[1] == simplifySize(blocks * (block * bits / 8)) && scales[0] == n && scales[1] == blocks;
  if (Value zeros = getZeros()) {
    bool isPacked = tensorType(zeros).getElementType().isUnsignedInteger(8);
    SmallVector<AffineExpr> sizes = getSizes(zeros);
    fits &= sizes.size() == 2 && sizes[0] == n &&
            sizes[1] == (isPacked ? simplifySize((blocks * bits).ceilDiv(8)) : blocks);
  }
  if (!fits)
    return emitOpError("(C2) the operands' sizes do not fit each other");
  lhs.back() = n;
  return checkSizes(*this, getResult(), lhs);
}
LogicalResult WindowReduceOp::verify() {
  size_t spatial = getWindow().size();
  if (getStrides().size() != spatial || getDilations().size() != spatial || getPadLow().size() != spatial ||
      tensorType(getOperand()).getRank() != int64_t(spatial) + 2 ||
      tensorType(getResult()).getRank() != int64_t(spatial) + 2)
    return emitOpError("needs a window, stride, dilation and pad per spatial dim");
  return success();
}

LogicalResult ScatterNDOp::verify() {
  if (!getOrder())
    return success();
  const SmallVector<AffineExpr> tuples = getSizes(getIndices()), order = getSizes(getOrder());
  if (tuples.size() != 2 || !isOne(tuples[1]) || order.size() != 1 || order[0] != tuples[0] ||
      !tensorType(getOrder()).getElementType().isSignlessInteger(64))
    return emitOpError("(C1) an order of i64 has an element for each of the indices [N, 1]");
  return success();
}

LogicalResult ArgSortOp::verify() {
  SmallVector<AffineExpr> in = getSizes(getOperand()), out = getSizes(getResult());
  if (in.size() < 2 || out.size() + 1 != in.size() || !tensorType(getResult()).getElementType().isSignlessInteger(64))
    return emitOpError("needs an operand [B.., N, M] and a result [B.., K] of i64");
  if (ArrayRef(in).drop_back(2) != ArrayRef(out).drop_back(1))
    return emitOpError("operand and result differ in their leading sizes");
  if (const std::optional<int64_t> bits = getKeyBits()) {
    const auto integer = dyn_cast<IntegerType>(tensorType(getOperand()).getElementType());
    if (!integer || *bits < 1 || *bits >= integer.getWidth() || getDescending())
      return emitOpError("(C2) key_bits stand with integers of more bits, in rising order");
  }
  return success();
}

LogicalResult FftOp::verify() {
  const auto from = tensorType(getOperand()), to = tensorType(getResult());
  const Type element = from.getElementType();
  if (to.getElementType() != element || !(element.isF32() || element.isF64()))
    return emitOpError("(C1) operand and result are of f32, or both of f64");
  const SmallVector<AffineExpr> in = getSizes(getOperand()), out = getSizes(getResult());
  const auto isPart = [](AffineExpr size) { return isOne(size) || getConstantSize(size) == 2; };
  if (in.size() != 4 || out.size() != 4 || in[0] != out[0] || in[2] != out[2] || !isPart(in[3]) || !isPart(out[3]))
    return emitOpError("(C2) needs an operand [P, L, Q, 1 or 2] and a result [P, K, Q, 1 or 2]");
  if (getLength().getNumResults() != 1)
    return emitOpError("(C3) needs one length");
  const std::optional<int64_t> length = getConstantSize(getLengthExpr()), outputs = getConstantSize(out[1]);
  if (length && outputs && *outputs > *length)
    return emitOpError("(C3) a transform of ") << *length << " elements has no " << *outputs;
  return success();
}

//===--- states ---------------------------------------------------------------------------------------------------===//

LogicalResult StateOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  Type element = type.getElementType();
  bool isHeld = element.isInteger(1) ||
                (element.isIntOrFloat() && !isNarrowElement(element) && element.getIntOrFloatBitWidth() % 8 == 0);
  if (!type.hasStaticShape() || !isHeld)
    return emitOpError("(C1) a state cannot be of type ") << type;
  if (getInitial() && getInitial()->getType() != type)
    return emitOpError("(C2) the initial value has the type ") << getInitial()->getType() << ", expected " << type;
  return success();
}

/// The state that an op names, which must be of the type of `value`.
static LogicalResult verifyState(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &tables) {
  auto state = tables.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError("(C1) there is no prim.state ") << name;
  if (state.getType() != type)
    return op->emitOpError("(C1) the state ") << name << " is of type " << state.getType();
  return success();
}

LogicalResult ReadStateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyState(*this, getStateAttr(), getType(), tables);
}

LogicalResult WriteStateOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyState(*this, getStateAttr(), getValue().getType(), tables)))
    return failure();
  if (!isa<FunctionOpInterface>((*this)->getParentOp()))
    return emitOpError("(C2) stands in a loop or branch");
  for (auto other : (*this)->getBlock()->getOps<WriteStateOp>())
    if (other != *this && other.getState() == getState() && other->isBeforeInBlock(*this))
      return emitOpError("(C2) the function writes the state ") << getStateAttr() << " twice";
  return success();
}

//===--- host values ----------------------------------------------------------------------------------------------===//

LogicalResult HostCallOp::verify() {
  SmallVector<Type> types(getOperandTypes());
  llvm::append_range(types, getResultTypes());
  if (getWords().size() != types.size())
    return emitOpError("(C1) has ") << getWords().size() << " words for " << types.size() << " operands and results";
  for (auto [word, type] : llvm::zip_equal(getWords(), types)) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    bool isWord =
        element.isSignlessInteger(64) || (word == 1 ? isa<tc::base::StringType>(element) : tc::base::isHandle(element));
    if (word < 0 || word > 2 || (word && !isWord) || (word == 2 && tensor.getRank() != 0))
      return emitOpError("(C1) word ") << word << " does not fit the type " << type;
  }
  Attribute given = (*this)->getAttr(kInitsAttr);
  auto inits = dyn_cast_or_null<DenseI64ArrayAttr>(given);
  if (given && (!inits || inits.size() != int64_t(getNumResults())))
    return emitOpError("has ") << kInitsAttr << " that are no numbers of an operand for each of " << getNumResults()
                               << " results";
  for (unsigned i = 0; given && i < getNumResults(); ++i) {
    if (inits[i] < -1 || inits[i] >= int64_t(getNumOperands()))
      return emitOpError("has no operand ") << inits[i] << ", which " << kInitsAttr << " names";
    auto result = cast<RankedTensorType>(getResult(i).getType());
    Value init = getInit(*this, i);
    auto from = init ? cast<RankedTensorType>(init.getType()) : result;
    if (from.getElementType() != result.getElementType() || from.getRank() != result.getRank())
      return emitOpError("has a result of type ") << result << ", which cannot begin as operand " << inits[i];
  }
  return success();
}

//===--- control flow ---------------------------------------------------------------------------------------------===//

LogicalResult GuardOp::verify() {
  if (getSizes().getNumResults() != 2)
    return emitOpError("sizes must be a map with two results");
  if (getKind() != CompareKind::EQ && getKind() != CompareKind::LE)
    return emitOpError("kind must be eq or le");
  return success();
}

namespace {

LogicalResult checkBinds(Operation *op, ArrayRef<int64_t> binds) {
  for (int64_t symbol : binds) {
    bool found = false;
    for (Type type : op->getResultTypes())
      for (AffineExpr size : getSizes(type))
        if (auto alone = dyn_cast<AffineSymbolExpr>(size))
          found |= int64_t(alone.getPosition()) == symbol;
    if (!found)
      return op->emitOpError() << "binds symbol " << symbol << ", which is no dim of a result";
  }
  return success();
}

/// Values that become results: as many, of their element types and ranks.
LogicalResult checkValues(Operation *op, ValueRange values, StringRef what) {
  if (values.size() != op->getNumResults())
    return op->emitOpError() << what << " are " << values.size() << ", results " << op->getNumResults();
  for (auto [value, type] : llvm::zip_equal(values, op->getResultTypes())) {
    auto from = tensorType(value), to = cast<RankedTensorType>(type);
    if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
      return op->emitOpError() << what << " have type " << from << " where a result has " << to;
  }
  return success();
}

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// Symbols that other sizes may be made of: an effect, by which the op outlives its results.
void addBindEffects(ArrayRef<int64_t> binds, Effects &effects) {
  if (!binds.empty())
    effects.emplace_back(MemoryEffects::Write::get());
}

ValueRange yieldedBy(Region &region) { return region.front().getTerminator()->getOperands(); }

} // namespace

void IfOp::getEffects(Effects &effects) { addBindEffects(getBinds(), effects); }
void WhileOp::getEffects(Effects &effects) { addBindEffects(getBinds(), effects); }

LogicalResult IfOp::verify() {
  for (Region &region : (*this)->getRegions())
    if (failed(checkValues(*this, yieldedBy(region), "yielded values")))
      return failure();
  return checkBinds(*this, getBinds());
}

LogicalResult WhileOp::verify() {
  Block &body = getBody().front();
  ValueRange yielded = yieldedBy(getBody());
  if (body.getNumArguments() != getNumResults() + 1 || yielded.empty())
    return emitOpError(
        "the body must take the iteration number and the carried values, and yield a condition and them");
  if (TypeRange(body.getArgumentTypes()).drop_front() != (*this)->getResultTypes())
    return emitOpError("carried arguments of the body and results differ in type");
  if (failed(checkValues(*this, getInits(), "initial values")) ||
      failed(checkValues(*this, yielded.drop_front(), "yielded values")))
    return failure();
  return checkBinds(*this, getBinds());
}
