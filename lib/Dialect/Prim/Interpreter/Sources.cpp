//===- Sources.cpp - constants, splat, iota, sizes ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

namespace {

llvm::Expected<Tensor> evalConstant(ConstantOp op, const Call &call) {
  std::optional<Tensor> tensor = fromAttribute(op.getValue());
  if (!tensor)
    return call.fail("the constant's bytes can't be read");
  return isa<FloatType>(tensor->elementType) ? convertFloats(*tensor, call.elementTypes[0]) : *tensor;
}

/// The elements of `from`, moved by `strides`, as the result.
Tensor repeat(const Call &call, const Tensor &from, ArrayRef<int64_t> strides) {
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  copyStrided(getElementBytes(call.elementTypes[0]), call.shapes[0], from.bytes.get(), strides, bytes,
              getStrides(call.shapes[0]));
  return result;
}

llvm::Expected<Tensor> evalSplat(SplatOp op, const Call &call) {
  Tensor one;
  if (auto value = dyn_cast<FloatAttr>(op.getValue())) {
    // The bits of the attribute, so that a NaN keeps its payload.
    auto type = RankedTensorType::get({}, value.getType());
    one = convertFloats(*fromAttribute(DenseElementsAttr::get(type, value.getValue())), call.elementTypes[0]);
  } else if (auto value = dyn_cast<IntegerAttr>(op.getValue())) {
    one = fromInts(call.elementTypes[0], {}, {value.getValue().getSExtValue()});
  } else {
    return call.fail("the value is neither a float nor an integer");
  }
  return repeat(call, one, Shape(call.shapes[0].size(), 0));
}

Tensor evalIota(IotaOp op, const Call &call) {
  const Shape &shape = call.shapes[0];
  Type type = call.elementTypes[0];
  const int64_t size = shape[op.getAxis()], elementBytes = getElementBytes(type);
  if (countElements(shape) == 0)
    return call.makeInts({});
  // Along the axis in parts, as numbers of 64 bits would take several times the memory of the result.
  char *bytes;
  Tensor line = allocateTensor(type, {size}, bytes);
  constexpr int64_t kPart = 1 << 16;
  for (int64_t at = 0; at < size; at += kPart) {
    std::vector<int64_t> values(std::min(kPart, size - at));
    std::iota(values.begin(), values.end(), at);
    const int64_t count = int64_t(values.size());
    Tensor part = isa<FloatType>(type) ? fromDoubles(type, {count}, std::vector<double>(values.begin(), values.end()))
                                       : fromInts(type, {count}, values);
    std::memcpy(bytes + at * elementBytes, part.bytes.get(), count * elementBytes);
  }
  Shape strides(shape.size(), 0);
  strides[op.getAxis()] = 1;
  return shape.size() == 1 ? line : repeat(call, line, strides);
}

llvm::Expected<Tensor> evalSizes(SizesOp op, const Call &call) {
  llvm::Expected<Shape> sizes = call.frame.evaluate(op.getMap());
  if (!sizes)
    return call.fail(llvm::toString(sizes.takeError()));
  return call.makeInts(*sizes);
}

Results evalBindSymbol(const Call &call) {
  auto bind = cast<BindSymbolOp>(call.op);
  int64_t value = toInts(call.operands[0])[0];
  auto function = bind->getParentOfType<func::FuncOp>();
  auto symbols = function ? function->getAttrOfType<ArrayAttr>(kSymbolsAttr) : ArrayAttr();
  auto [min, max] = getSizeBounds(getAffineSymbolExpr(bind.getSymbol(), bind.getContext()), symbols);
  bool isListed = symbols && uint64_t(bind.getSymbol()) < symbols.size();
  if (isListed && (value < min || value > max))
    return call.fail(bind.getMessage() ? bind.getMessage()->str()
                                       : llvm::formatv("the size {0} is not in [{1}, {2}]", value, min, max).str());
  call.frame.bindSymbol(bind.getSymbol(), value);
  return std::vector<Tensor>();
}

Results evalGuard(const Call &call) {
  auto guard = cast<GuardOp>(call.op);
  llvm::Expected<Shape> sizes = call.frame.evaluate(guard.getSizes());
  if (!sizes)
    return call.fail(llvm::toString(sizes.takeError()));
  int64_t x = (*sizes)[0], y = (*sizes)[1];
  if (!(guard.getKind() == CompareKind::EQ ? x == y : x <= y) && !(guard.getOrOne() && x == 1))
    return call.fail(guard.getWhat() + ", but they are " + Twine(x) + " and " + Twine(y));
  return std::vector<Tensor>();
}

} // namespace

void tc::prim::interpreter::addSourceHandlers(Registry &registry) {
  registry.add<ConstantOp>(evalConstant);
  registry.add<SplatOp>(evalSplat);
  registry.add<IotaOp>(evalIota);
  registry.add<SizesOp>(evalSizes);
  registry.add(BindSymbolOp::getOperationName(), evalBindSymbol);
  registry.add(GuardOp::getOperationName(), evalGuard);
}
