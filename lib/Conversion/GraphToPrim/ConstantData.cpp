//===- ConstantData.cpp - reading and making constants ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ConstantData.h"

#include "NodeContext.h"

#include "tc/Dialect/TC/IR/TC.h"

using namespace mlir;
using namespace tc;

namespace {
/// Elements up to which a constant is written into the IR.
constexpr int64_t kMaxInlineElements = 64;

DenseElementsAttr asDense(TypedAttr value, int64_t maxElements) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return {};
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (type.getNumElements() > maxElements && !(dense && dense.isSplat()))
    return {};
  if (auto data = dyn_cast<base::DataAttr>(value))
    return base::toDense(data);
  return dense;
}
} // namespace

std::optional<SmallVector<int64_t>> tc::readInts(TypedAttr value) {
  DenseElementsAttr dense = asDense(value, 4096);
  auto type = dense ? dyn_cast<IntegerType>(dense.getElementType()) : IntegerType();
  if (!type || dense.getNumElements() > 4096)
    return std::nullopt;
  SmallVector<int64_t> result;
  for (const APInt &element : dense.getValues<APInt>())
    result.push_back(type.isUnsigned() || type.getWidth() == 1 ? element.getZExtValue() : element.getSExtValue());
  return result;
}

std::optional<SmallVector<double>> tc::readFloats(TypedAttr value) {
  DenseElementsAttr dense = asDense(value, 4096);
  if (!dense || !isa<FloatType>(dense.getElementType()) || dense.getNumElements() > 4096)
    return std::nullopt;
  SmallVector<double> result;
  for (APFloat element : dense.getValues<APFloat>()) {
    bool lost = false;
    element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    result.push_back(element.convertToDouble());
  }
  return result;
}

/// The listed elements put into zeros: folded where it is worth it, as the result of any op is.
static Value makeSparse(PrimBuilder &b, graph::SparseAttr sparse) {
  auto type = sparse.getType();
  Value values = makeConstant(b, sparse.getValues()), indices = makeConstant(b, sparse.getIndices());
  if (!values || !indices)
    return {};
  Sizes sizes = b.sizes(type.getShape()), flat{b.size(type.getNumElements())};
  bool isFlat = b.rankOf(indices) == 1;
  if (isFlat)
    indices = b.unsqueeze(indices, 1);
  Value zeros = b.splat(type.getElementType(), isFlat ? flat : sizes, 0);
  Value dense = prim::ScatterNDOp::create(b, zeros.getType(), zeros, indices, values, prim::ReduceKindAttr());
  return b.reshape(dense, sizes);
}

Value tc::makeConstant(PrimBuilder &b, TypedAttr value) {
  if (auto sparse = dyn_cast<graph::SparseAttr>(value))
    return makeSparse(b, sparse);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (auto data = dyn_cast<base::DataAttr>(value); data && type && isa<base::StringType>(type.getElementType())) {
    FailureOr<SmallVector<StringRef>> texts = base::getStrings(data);
    return succeeded(texts) ? b.strings(*texts, type.getShape()) : Value();
  }
  if (auto complex = type ? dyn_cast<ComplexType>(type.getElementType()) : ComplexType()) {
    auto dense = dyn_cast<DenseElementsAttr>(value);
    auto data = dense ? base::fromDense(dense) : dyn_cast<base::DataAttr>(value);
    Value parts = data ? makeConstant(b, base::withType(data, prim::getStorageType(type))) : Value();
    return parts ? b.asComplex(parts) : Value();
  }
  if (!type || !isa<IntegerType, FloatType>(type.getElementType()))
    return {};
  if (type.getNumElements() <= kMaxInlineElements) {
    if (DenseElementsAttr dense = asDense(value, kMaxInlineElements))
      return prim::ConstantOp::create(b, cast<TypedAttr>(dense));
  } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (!dense.isSplat())
      value = base::fromDense(dense);
  }
  if (!value || !isa<base::DataAttr, DenseElementsAttr>(value))
    return {};
  return prim::ConstantOp::create(b, value);
}

FailureOr<Value> tc::makeConstant(NodeContext &ctx, TypedAttr value) {
  if (Value result = makeConstant(ctx.b, value))
    return result;
  std::string type;
  llvm::raw_string_ostream(type) << value.getType();
  return ctx.unsupported("with a constant of type " + type +
                         " is not supported; supported: integers, floats, complex numbers and strings");
}
