//===- BucketBody.cpp - a function's body on padded tensors -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BucketBody.h"

#include "tc/Dialect/TC/IR/NodeNames.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

static SymbolSizes joined(SymbolSizes sizes, const SymbolSizes &more) {
  llvm::append_range(sizes, more);
  return sizes;
}

BucketBody::BucketBody(func::FuncOp function, Block &block, const SymbolSizes &fixed, const SymbolSizes &buckets)
    : symbols(function->getAttrOfType<ArrayAttr>(kSymbolsAttr)), symbolTable(function.getContext(), symbols),
      b(function.getLoc(), function.getContext(), symbolTable),
      exact(function.getContext(), int64_t(symbols.size()), fixed),
      padded(function.getContext(), int64_t(symbols.size()), joined(fixed, buckets)) {
  for (auto [symbol, size] : buckets)
    bucketed.insert(symbol);
  b.setInsertionPointToEnd(&block);
}

RankedTensorType BucketBody::exactType(Value value) const {
  return exact.convert(cast<RankedTensorType>(value.getType()));
}
RankedTensorType BucketBody::paddedType(Value value) const {
  return padded.convert(cast<RankedTensorType>(value.getType()));
}
Sizes BucketBody::exactSizes(Value value) const { return getSizes(exactType(value)); }
Sizes BucketBody::paddedSizes(Value value) const { return getSizes(paddedType(value)); }

bool BucketBody::isOfBuckets(AffineExpr size) const {
  return llvm::any_of(bucketed, [&](int64_t symbol) { return size.isFunctionOfSymbol(unsigned(symbol)); });
}
bool BucketBody::varies(Value value, int64_t dim) const { return isOfBuckets(exactSizes(value)[dim]); }
bool BucketBody::varies(Type type) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && llvm::any_of(getSizes(tensor), [&](AffineExpr size) { return isOfBuckets(size); });
}
bool BucketBody::varies(Operation &op) const {
  return op
      .walk([&](Operation *inner) {
        auto any = [&](auto types) { return llvm::any_of(types, [&](Type type) { return varies(type); }); };
        return any(inner->getOperandTypes()) || any(inner->getResultTypes()) ? WalkResult::interrupt()
                                                                             : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a size is never less where the buckets' symbols are greater: else the exact form would not lie in the padded
/// one.
bool BucketBody::grows(AffineExpr size) const {
  if (!isOfBuckets(size) || isa<AffineSymbolExpr>(size))
    return true;
  auto binary = cast<AffineBinaryOpExpr>(size);
  const AffineExpr x = binary.getLHS(), y = binary.getRHS();
  auto least = [&](AffineExpr expr) { return getSizeBounds(expr, symbols).first; };
  switch (size.getKind()) {
  case AffineExprKind::Add:
    return grows(x) && grows(y);
  case AffineExprKind::Mul:
    return grows(x) && grows(y) && least(x) >= 0 && least(y) >= 0;
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv:
    return grows(x) && !isOfBuckets(y) && least(y) >= 1;
  default:
    return false;
  }
}

/// Element types that have constants and kernels, and sizes that grow and stay.
bool BucketBody::canPad(Type type) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return false;
  if (!varies(type))
    return true;
  const Type element = tensor.getElementType();
  if (!element.isInteger(1) && (!element.isIntOrFloat() || isNarrowElement(element)))
    return false;
  return llvm::all_of(getSizes(exact.convert(tensor)), [&](AffineExpr size) {
    return grows(size) && getConstantSize(padded.convert(size)).value_or(0) >= 0;
  });
}

void BucketBody::addArgument(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  forms[value].exact = tensor ? b.reshape(value, exactSizes(value)) : value;
}

Value BucketBody::getExact(Value value) {
  auto found = forms.find(value);
  if (found == forms.end()) {
    addArgument(value); // stands outside
    return forms[value].exact;
  }
  if (!found->second.exact) {
    const Sizes sizes = exactSizes(value);
    found->second.exact =
        b.slice(found->second.padded, Sizes(sizes.size(), b.size(0)), SmallVector<int64_t>(sizes.size(), 1), sizes);
  }
  return found->second.exact;
}

Value BucketBody::getPadded(Value value) {
  if (!varies(value.getType()))
    return getExact(value);
  if (Value known = forms[value].padded)
    return known;
  const Value x = getExact(value);
  const Sizes sizes = paddedSizes(value);
  const Value result = b.pad(x, b.scalar(b.elementOf(x), 0), Sizes(sizes.size(), b.size(0)), sizes);
  for (int64_t dim = 0; dim < int64_t(sizes.size()); ++dim)
    if (varies(value, dim))
      setZeros(result, dim);
  return forms[value].padded = result;
}

Value BucketBody::isWithin(AffineExpr size, AffineExpr to) {
  Value &known = bounds[{size, to}];
  if (!known) {
    // Lanes of 32 bits are as many as those of floats.
    const int64_t most = getConstantSize(to).value_or(INT64_MAX);
    const Type type = most < INT32_MAX ? b.getI32Type() : b.getI64Type();
    const Value limit = b.broadcastTo(b.convert(b.sizeValue(size), type), {to});
    known = b.compare(CompareKind::LT, b.iota(type, {to}, 0), limit);
  }
  return known;
}

Value BucketBody::select(Value value, Value x, int64_t dim, Value fill) {
  const Sizes sizes = getSizes(x);
  const Value result = b.select(b.broadcastInDims(isWithin(exactSizes(value)[dim], sizes[dim]), sizes, {dim}), x, fill);
  for (int64_t other = 0; other < b.rankOf(x); ++other)
    if (hasZeros(x, other) && getSplatValue(fill) == 0.0)
      setZeros(result, other);
  return result;
}

Value BucketBody::mask(Value value, ArrayRef<int64_t> dims, TypedAttr fill) {
  Value x = getPadded(value);
  for (int64_t dim : dims)
    if (varies(value, dim))
      x = select(value, x, dim, SplatOp::create(b, x.getType(), fill));
  return x;
}

Value BucketBody::mask(Value value, ArrayRef<int64_t> dims, Value fill) {
  Value x = getPadded(value);
  for (int64_t dim : dims)
    if (varies(value, dim))
      x = select(value, x, dim, b.broadcastTo(fill, getSizes(x)));
  return x;
}

Value BucketBody::maskByZeros(Value value, ArrayRef<int64_t> dims) {
  Value x = getPadded(value);
  for (int64_t dim : dims)
    if (varies(value, dim) && !hasZeros(x, dim)) {
      x = select(value, x, dim, b.splatLike(x, 0));
      setZeros(x, dim);
    }
  return x;
}

Operation *BucketBody::copy(Operation *op, ValueRange operands) {
  Operation *result = b.clone(*op);
  result->setOperands(operands);
  exact.convert(result);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), result->getResults())) {
    to.setType(paddedType(from));
    forms[from].padded = to;
    if (!varies(from.getType()))
      forms[from].exact = to;
  }
  return result;
}

Operation *BucketBody::copy(Operation *op) {
  return copy(op, llvm::map_to_vector(op->getOperands(), [&](Value operand) { return getPadded(operand); }));
}

void BucketBody::copyExactly(Operation &op) {
  IRMapping mapping;
  // What regions read from outside, too.
  op.walk([&](Operation *inner) {
    for (Value value : inner->getOperands()) {
      Operation *owner = value.getDefiningOp() ? value.getDefiningOp() : value.getParentBlock()->getParentOp();
      if (!mapping.contains(value) && !(owner && op.isAncestor(owner)))
        mapping.map(value, getExact(value));
    }
  });
  Operation *result = b.clone(op, mapping);
  exact.convert(result);
  for (auto [from, to] : llvm::zip_equal(op.getResults(), result->getResults()))
    forms[from].exact = to;
}

bool BucketBody::pad(Operation &op) {
  if (op.getNumRegions() != 0 || op.getNumResults() == 0 ||
      !llvm::all_of(op.getOperandTypes(), [&](Type type) { return canPad(type); }) ||
      !llvm::all_of(op.getResultTypes(), [&](Type type) { return canPad(type); }))
    return false;
  if (op.hasTrait<PointwiseTrait>())
    return copy(&op);
  return padByRule(*this, &op);
}

void BucketBody::add(Operation &op) {
  b.setLoc(op.getLoc());
  if (varies(op)) {
    if (pad(op))
      return;
    std::string name = op.getName().stripDialect().str();
    if (const auto nodes = base::getNodeNames(op.getLoc()); !nodes.empty())
      name += " of \"" + nodes.front().str() + "\"";
    exact_.push_back(std::move(name));
  }
  copyExactly(op);
}
