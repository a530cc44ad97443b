//===- EmitIndices.cpp - positions that are data ------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {
/// Inclusive bounds of the elements of a tensor of integers, from what computes them: enough to tell that an index
/// needs no clamping.
struct ElementRange {
  int64_t low, high;
};

ElementRange rangeOf(Value tensor, unsigned depth = 8) {
  auto type = dyn_cast<IntegerType>(cast<RankedTensorType>(tensor.getType()).getElementType());
  ElementRange all{INT64_MIN, INT64_MAX};
  if (type && type.getWidth() < 64) {
    int64_t half = int64_t(1) << (type.getWidth() - 1);
    all = type.isUnsigned() || type.getWidth() == 1 ? ElementRange{0, 2 * half - 1} : ElementRange{-half, half - 1};
  }
  Operation *op = tensor.getDefiningOp();
  if (!type || !op || depth == 0)
    return all;
  auto operand = [&](unsigned i) { return rangeOf(op->getOperand(i), depth - 1); };
  // What leaves the type's range wraps.
  auto within = [&](ElementRange range) {
    return range.low >= all.low && range.high <= all.high && range.low <= range.high ? range : all;
  };
  return TypeSwitch<Operation *, ElementRange>(op)
      .Case<prim::SplatOp>([&](auto splat) {
        auto value = dyn_cast<IntegerAttr>(splat.getValue());
        if (!value || value.getValue().getBitWidth() > 64)
          return all;
        int64_t number = all.low < 0 ? value.getValue().getSExtValue() : int64_t(value.getValue().getZExtValue());
        return within({number, number});
      })
      .Case<prim::ReshapeOp, prim::BroadcastOp, prim::TransposeOp, prim::SliceOp>([&](auto) { return operand(0); })
      .Case<prim::ConvertOp>([&](auto convert) {
        return isa<IntegerType>(elementOf(convert.getOperand())) && !type.isInteger(1) ? within(operand(0)) : all;
      })
      .Case<prim::AndOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1);
        if (x.low < 0 && y.low < 0)
          return all;
        return ElementRange{0, x.low < 0 ? y.high : y.low < 0 ? x.high : std::min(x.high, y.high)};
      })
      .Case<prim::ConvertOp>([&](prim::ConvertOp convert) {
        if (isa<IntegerType>(elementOf(convert.getOperand())))
          return within(operand(0));
        // Of a float that is held between two numbers; what is no number gives 0.
        auto bound = [](Value value) -> std::optional<double> {
          auto splat = value.getDefiningOp<prim::SplatOp>();
          auto number = splat ? dyn_cast<FloatAttr>(splat.getValue()) : FloatAttr();
          if (!number || !(std::abs(number.getValueAsDouble()) < 0x1p31))
            return std::nullopt;
          return number.getValueAsDouble();
        };
        auto min = convert.getOperand().template getDefiningOp<prim::MinOp>();
        auto max = min ? min.getLhs().template getDefiningOp<prim::MaxOp>() : prim::MaxOp();
        std::optional<double> low = max ? bound(max.getRhs()) : std::nullopt,
                              high = max ? bound(min.getRhs()) : std::nullopt;
        if (!low || !high)
          return all;
        return within({int64_t(std::min({*low, *high, 0.0})), int64_t(std::max({*low, *high, 0.0}))});
      })
      .Case<prim::AddOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1), sum = all;
        if (llvm::AddOverflow(x.low, y.low, sum.low) || llvm::AddOverflow(x.high, y.high, sum.high))
          return all;
        return within(sum);
      })
      .Case<prim::MinOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1);
        return ElementRange{std::min(x.low, y.low), std::min(x.high, y.high)};
      })
      .Case<prim::MaxOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1);
        return ElementRange{std::max(x.low, y.low), std::max(x.high, y.high)};
      })
      .Default([&](Operation *) { return all; });
}
} // namespace

DenseIntElementsAttr tc::codegen::findConstantIndices(kernel::RegionOp region, Value indices) {
  if (auto argument = dyn_cast<BlockArgument>(indices))
    indices = region.getInputs()[argument.getArgNumber()];
  return prim::getConstantIndices(indices);
}

Index Emitter::gatheredIndex(Value indices, AffineExpr sizeExpr, ArrayRef<Index> at) {
  const auto [entry, isNew] = evenIndices.try_emplace({indices, sizeExpr});
  std::optional<prim::EvenIndices> &even = entry->second;
  if (const std::optional<int64_t> size = prim::getConstantSize(sizeExpr); isNew && size)
    if (const DenseIntElementsAttr elements = findConstantIndices(regionOp, indices))
      even = prim::findEvenIndices(elements, *size);
  if (!even)
    return dataIndex(indices, emit(indices, at), sizeExpr, depthOf(at));
  Index result = constant(even->first);
  for (auto [index, step] : llvm::zip_equal(at, even->steps))
    if (step != 0)
      result = addIndex(result, mulIndex(index, i64(step), step));
  return result;
}

// What the elements' range rules out is not checked, and i32 indices into dims of a known size stay i32 up to the
// address: gathers with 32-bit indices are twice as fast.
Index Emitter::dataIndex(Value tensor, Value position, AffineExpr sizeExpr, int depth) {
  Index result;
  result.depth = depth;
  Value limit = size(sizeExpr);
  ElementRange range = rangeOf(tensor);
  auto known = prim::getConstantSize(sizeExpr);
  unsigned width = getElementTypeOrSelf(position.getType()).getIntOrFloatBitWidth();
  bool isNarrow = width == 32 && known && *known <= INT32_MAX;
  auto compute = [&]() -> Value {
    bool isVector = isa<VectorType>(position.getType());
    auto typed = [&](Type type) { return isVector ? Type(vectorOf(type)) : type; };
    Value p = position;
    if (width < 64 && !isNarrow)
      p = arith::ExtSIOp::create(b, location, typed(b.getI64Type()), p);
    auto number = [&](int64_t value) -> Value {
      Value scalar = isNarrow ? Value(arith::ConstantIntOp::create(b, location, value, 32)) : i64(value);
      return isVector ? broadcast(scalar) : scalar;
    };
    auto length = [&]() -> Value { return isNarrow ? number(*known) : isVector ? broadcast(limit) : limit; };
    if (range.low < 0) {
      Value negative = arith::CmpIOp::create(b, location, arith::CmpIPredicate::slt, p, number(0));
      p = arith::SelectOp::create(b, location, negative, arith::AddIOp::create(b, location, p, length()), p);
    }
    if (!known || range.high >= *known)
      p = arith::MinSIOp::create(b, location, p, arith::SubIOp::create(b, location, length(), number(1)));
    if (range.low < 0 || known.value_or(0) == 0)
      p = arith::MaxSIOp::create(b, location, p, number(0));
    return isNarrow ? Value(arith::ExtSIOp::create(b, location, typed(b.getI64Type()), p)) : p;
  };
  Value value = compute();
  result.depth = int(scopes.size()) - 1;
  if (isa<VectorType>(value.getType()))
    result.lanes = value;
  else
    result.base = value;
  return result;
}
