//===- Indices.cpp ------------------------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/Indices.h"

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/TC.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

DenseIntElementsAttr tc::prim::getConstantIndices(Value indices) {
  auto constant = indices.getDefiningOp<ConstantOp>();
  Attribute value = constant ? constant.getValue() : Attribute();
  if (auto data = dyn_cast_or_null<base::DataAttr>(value))
    value = base::toDense(data);
  return dyn_cast_or_null<DenseIntElementsAttr>(value);
}

std::optional<EvenIndices> tc::prim::findEvenIndices(DenseIntElementsAttr indices, int64_t size) {
  const ArrayRef<int64_t> sizes = indices.getType().getShape();
  if (indices.empty())
    return std::nullopt;
  const auto all = indices.getValues<APInt>();
  auto at = [&](int64_t i) {
    const int64_t index = all[i].getSExtValue();
    return index < 0 ? index + size : index;
  };
  EvenIndices even{at(0), SmallVector<int64_t>(sizes.size())};
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
    even.steps[i] = sizes[i] > 1 ? at(stride) - even.first : 0;
  for (int64_t i = 0, count = indices.getNumElements(); i < count; ++i) {
    int64_t expected = even.first, rest = i;
    for (size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim])
      expected += rest % sizes[dim] * even.steps[dim];
    if (at(i) != expected || expected < 0 || expected >= size)
      return std::nullopt;
  }
  return even;
}
