//===- PrimDialect.cpp - the prim dialect and its size expressions
//---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/Prim.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::prim;

#include "tc/Dialect/Prim/IR/PrimDialect.cpp.inc"
#include "tc/Dialect/Prim/IR/PrimEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Prim/IR/PrimAttrs.cpp.inc"

void PrimDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tc/Dialect/Prim/IR/PrimOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/Prim/IR/PrimAttrs.cpp.inc"
      >();
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  AffineMap map = getMap().getValue();
  if (map.getNumDims() != 0 || map.getNumResults() != shape.size())
    return emitError() << "#prim.dims has " << map.getNumResults() << " sizes for a tensor of rank " << shape.size();
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    std::optional<int64_t> constant = getConstantSize(expr);
    if (constant ? *constant != size : size != ShapedType::kDynamic)
      return emitError() << "#prim.dims contradicts the tensor's static sizes";
  }
  return success();
}

namespace {
/// Number of symbols that `exprs` mention, counted as highest position + 1.
unsigned countSymbols(ArrayRef<AffineExpr> exprs) {
  unsigned count = 0;
  for (AffineExpr expr : exprs)
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        count = std::max(count, symbol.getPosition() + 1);
    });
  return count;
}
} // namespace

AffineExpr tc::prim::simplifySize(AffineExpr expr) {
  return simplifyAffineExpr(expr, /*numDims=*/0, countSymbols(expr));
}

AffineMap tc::prim::makeSizeMap(MLIRContext *context, ArrayRef<AffineExpr> exprs) {
  SmallVector<AffineExpr> simple = llvm::map_to_vector(exprs, simplifySize);
  return AffineMap::get(0, countSymbols(simple), simple, context);
}

SmallVector<AffineExpr> tc::prim::getSizes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto dims = dyn_cast_or_null<DimsAttr>(tensor.getEncoding()))
    return llvm::to_vector(dims.getMap().getValue().getResults());
  return llvm::map_to_vector(tensor.getShape(),
                             [&](int64_t size) { return getAffineConstantExpr(size, type.getContext()); });
}

RankedTensorType tc::prim::makeType(Type elementType, ArrayRef<AffineExpr> sizes) {
  MLIRContext *context = elementType.getContext();
  AffineMap map = makeSizeMap(context, sizes);
  SmallVector<int64_t> shape;
  bool isStatic = true;
  for (AffineExpr expr : map.getResults()) {
    std::optional<int64_t> constant = getConstantSize(expr);
    shape.push_back(constant.value_or(ShapedType::kDynamic));
    isStatic &= constant.has_value();
  }
  if (isStatic)
    return RankedTensorType::get(shape, elementType);
  return RankedTensorType::get(shape, elementType, DimsAttr::get(context, AffineMapAttr::get(map)));
}

RankedTensorType tc::prim::withElementType(Type type, Type elementType) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), elementType, tensor.getEncoding());
}

AffineExpr tc::prim::product(MLIRContext *context, ArrayRef<AffineExpr> sizes) {
  AffineExpr result = getAffineConstantExpr(1, context);
  for (AffineExpr size : sizes)
    result = result * size;
  return simplifySize(result);
}

std::optional<int64_t> tc::prim::getConstantSize(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

std::pair<int64_t, int64_t> tc::prim::getSizeBounds(AffineExpr expr, ArrayAttr symbols) {
  constexpr int64_t kMax = INT64_MAX;
  auto saturate = [](__int128 v) -> int64_t { return v > kMax ? kMax : v < INT64_MIN ? INT64_MIN : int64_t(v); };
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    if (symbols && symbol.getPosition() < symbols.size())
      if (auto attr = dyn_cast<SymbolAttr>(symbols[symbol.getPosition()]))
        return {attr.getMin(), attr.getMax()};
    return {0, kMax};
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto [a0, a1] = getSizeBounds(binary.getLHS(), symbols);
  auto [b0, b1] = getSizeBounds(binary.getRHS(), symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return {saturate(__int128(a0) + b0), saturate(__int128(a1) + b1)};
  case AffineExprKind::Mul: {
    __int128 p[4] = {__int128(a0) * b0, __int128(a0) * b1, __int128(a1) * b0, __int128(a1) * b1};
    return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
  }
  case AffineExprKind::FloorDiv:
    if (b0 > 0)
      return {a0 >= 0 ? a0 / b1 : a0, a1 == kMax ? kMax : a1 >= 0 ? a1 / b0 : a1};
    return {INT64_MIN, kMax};
  case AffineExprKind::CeilDiv:
    if (b0 > 0 && a0 >= 0)
      return {a0 / b1, a1 == kMax ? kMax : (a1 - 1) / b0 + 1};
    return {INT64_MIN, kMax};
  case AffineExprKind::Mod:
    return {0, b1 == kMax ? kMax : b1 - 1};
  default:
    return {INT64_MIN, kMax};
  }
}
