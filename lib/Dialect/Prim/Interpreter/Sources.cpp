//===- Sources.cpp - constants, splat, iota, sizes ----------------------------------------------------------------===//
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

llvm::Expected<Tensor> evalConstant(ConstantOp op, const Call &call) {
  std::optional<Tensor> tensor = fromAttribute(op.getValue());
  if (!tensor)
    return call.fail("the constant's bytes can't be read");
  return isa<FloatType>(tensor->elementType) ? convertFloats(*tensor, call.elementTypes[0]) : *tensor;
}

llvm::Expected<Tensor> evalSplat(SplatOp op, const Call &call) {
  int64_t count = countElements(call.shapes[0]);
  if (auto value = dyn_cast<FloatAttr>(op.getValue())) {
    // The bits of the attribute, so that a NaN keeps its payload.
    auto type = RankedTensorType::get({}, value.getType());
    Tensor one = convertFloats(*fromAttribute(DenseElementsAttr::get(type, value.getValue())), call.elementTypes[0]);
    char *bytes;
    Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
    int64_t elementBytes = getElementBytes(one.elementType);
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(bytes + i * elementBytes, one.bytes.get(), elementBytes);
    return result;
  }
  if (auto value = dyn_cast<IntegerAttr>(op.getValue()))
    return call.makeInts(std::vector<int64_t>(count, value.getValue().getSExtValue()));
  return call.fail("the value is neither a float nor an integer");
}

Tensor evalIota(IotaOp op, const Call &call) {
  const Shape &shape = call.shapes[0];
  std::vector<int64_t> values(countElements(shape));
  Shape strides(shape.size(), 0);
  strides[op.getAxis()] = 1;
  forEachIndex(shape, strides, [&](int64_t linear, int64_t index) { values[linear] = index; });
  if (isa<FloatType>(call.elementTypes[0]))
    return call.makeDoubles(std::vector<double>(values.begin(), values.end()));
  return call.makeInts(values);
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
