//===- Reduction.cpp - reduce, arg_reduce, scan -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

double tc::prim::interpreter::combine(ReduceKind kind, double a, double b) {
  switch (kind) {
  case ReduceKind::Sum:
    return a + b;
  case ReduceKind::Prod:
    return a * b;
  case ReduceKind::Max:
    return maxNaN(a, b);
  case ReduceKind::Min:
    return minNaN(a, b);
  case ReduceKind::And:
    return a != 0 && b != 0;
  case ReduceKind::Or:
    return a != 0 || b != 0;
  }
  return a;
}

int64_t tc::prim::interpreter::combine(ReduceKind kind, int64_t a, int64_t b, bool isUnsigned) {
  switch (kind) {
  case ReduceKind::Sum:
    return int64_t(uint64_t(a) + uint64_t(b));
  case ReduceKind::Prod:
    return int64_t(uint64_t(a) * uint64_t(b));
  case ReduceKind::Max:
    return (isUnsigned ? uint64_t(a) < uint64_t(b) : a < b) ? b : a;
  case ReduceKind::Min:
    return (isUnsigned ? uint64_t(b) < uint64_t(a) : b < a) ? b : a;
  case ReduceKind::And:
    return a & b;
  case ReduceKind::Or:
    return a | b;
  }
  return a;
}

double tc::prim::interpreter::neutralDouble(ReduceKind kind) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  switch (kind) {
  case ReduceKind::Prod:
  case ReduceKind::And:
    return 1;
  case ReduceKind::Max:
    return -inf;
  case ReduceKind::Min:
    return inf;
  default:
    return 0;
  }
}

int64_t tc::prim::interpreter::neutralInt(ReduceKind kind, Type elementType) {
  unsigned width = elementType.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedElement(elementType);
  uint64_t highest = ~uint64_t(0) >> (64 - width + !isUnsigned);
  switch (kind) {
  case ReduceKind::Prod:
    return 1;
  case ReduceKind::And:
    return -1;
  case ReduceKind::Max:
    return isUnsigned ? 0 : -int64_t(highest) - 1;
  case ReduceKind::Min:
    return int64_t(highest);
  default:
    return 0;
  }
}

Shape tc::prim::interpreter::getKeptStrides(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;)
    if (!llvm::is_contained(dims, int64_t(dim))) {
      strides[dim] = stride;
      stride *= shape[dim];
    }
  return strides;
}

namespace {

Tensor evalReduce(ReduceOp op, const Call &call) {
  const Tensor &operand = call.operands[0];
  Shape strides = getKeptStrides(operand.shape, op.getDims());
  int64_t count = countElements(call.shapes[0]);
  ReduceKind kind = op.getKind();
  if (call.isFloat(0)) {
    std::vector<double> from = toDoubles(operand), result(count, neutralDouble(kind));
    forEachIndex(operand.shape, strides,
                 [&](int64_t i, int64_t to) { result[to] = combine(kind, result[to], from[i]); });
    return call.makeDoubles(result);
  }
  bool isUnsigned = isUnsignedElement(operand.elementType);
  std::vector<int64_t> from = toInts(operand), result(count, neutralInt(kind, operand.elementType));
  forEachIndex(operand.shape, strides,
               [&](int64_t i, int64_t to) { result[to] = combine(kind, result[to], from[i], isUnsigned); });
  return call.makeInts(result);
}

/// Sizes before, along and after an axis.
struct AxisView {
  int64_t outer, size, inner;
  AxisView(ArrayRef<int64_t> shape, int64_t axis)
      : outer(countElements(shape.take_front(axis))), size(shape[axis]),
        inner(countElements(shape.drop_front(axis + 1))) {}
};

bool hasAxis(const Call &call, int64_t axis) { return axis >= 0 && axis < int64_t(call.operands[0].shape.size()); }

/// The index of the best of `size` values that lie `stride` apart. `better(a, b)`: a is to be preferred to b.
template <typename T, typename Better>
int64_t findBest(const T *values, int64_t size, int64_t stride, bool last, Better better) {
  int64_t best = 0;
  for (int64_t i = 1; i < size; ++i)
    if (last ? !better(values[best * stride], values[i * stride]) : better(values[i * stride], values[best * stride]))
      best = i;
  return best;
}

template <typename T, typename Better>
Tensor argReduce(const Call &call, const std::vector<T> &values, AxisView view, bool last, Better better) {
  std::vector<int64_t> result;
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i)
      result.push_back(findBest(values.data() + o * view.size * view.inner + i, view.size, view.inner, last, better));
  return call.makeInts(result);
}

llvm::Expected<Tensor> evalArgReduce(ArgReduceOp op, const Call &call) {
  if (!hasAxis(call, op.getAxis()))
    return call.fail("axis is out of range");
  if (op.getKind() != ReduceKind::Max && op.getKind() != ReduceKind::Min)
    return call.fail("kind must be max or min");
  AxisView view(call.operands[0].shape, op.getAxis());
  if (view.size == 0 && view.outer * view.inner != 0)
    return call.fail("has no elements to choose from");
  bool max = op.getKind() == ReduceKind::Max, last = op.getLastIndex();
  if (call.isFloat(0))
    return argReduce(call, toDoubles(call.operands[0]), view, last, [max](double a, double b) {
      if (std::isnan(a) || std::isnan(b))
        return std::isnan(a) && !std::isnan(b);
      return max ? a > b : a < b;
    });
  bool isUnsigned = isUnsignedElement(call.operands[0].elementType);
  return argReduce(call, toInts(call.operands[0]), view, last, [=](int64_t a, int64_t b) {
    if (isUnsigned)
      return max ? uint64_t(a) > uint64_t(b) : uint64_t(a) < uint64_t(b);
    return max ? a > b : a < b;
  });
}

template <typename T, typename Combine>
void scanAlong(std::vector<T> &values, AxisView view, ScanOp op, T neutral, Combine combine) {
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      T sum = neutral;
      for (int64_t k = 0; k < view.size; ++k) {
        T &value = values[(o * view.size + (op.getReverse() ? view.size - 1 - k : k)) * view.inner + i];
        T next = combine(sum, value);
        value = op.getExclusive() ? sum : next;
        sum = next;
      }
    }
}

llvm::Expected<Tensor> evalScan(ScanOp op, const Call &call) {
  if (!hasAxis(call, op.getAxis()))
    return call.fail("axis is out of range");
  const Tensor &operand = call.operands[0];
  AxisView view(operand.shape, op.getAxis());
  ReduceKind kind = op.getKind();
  if (call.isFloat(0)) {
    std::vector<double> values = toDoubles(operand);
    scanAlong(values, view, op, neutralDouble(kind), [kind](double a, double b) { return combine(kind, a, b); });
    return call.makeDoubles(values);
  }
  bool isUnsigned = isUnsignedElement(operand.elementType);
  std::vector<int64_t> values = toInts(operand);
  scanAlong(values, view, op, neutralInt(kind, operand.elementType),
            [=](int64_t a, int64_t b) { return combine(kind, a, b, isUnsigned); });
  return call.makeInts(values);
}

/// Whether key a stands before key b in rising order, NaN last.
bool isBelow(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

template <typename T, typename Below>
Tensor argSort(const Call &call, ArgSortOp op, const std::vector<T> &keys, Below below) {
  const Shape &shape = call.operands[0].shape;
  int64_t columns = shape.back(), rows = shape[shape.size() - 2], count = call.shapes[0].back();
  int64_t batches = countElements(ArrayRef(shape).drop_back(2));
  std::vector<int64_t> result, order(rows);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const T *base = keys.data() + batch * rows * columns;
    for (int64_t i = 0; i < rows; ++i)
      order[i] = i;
    llvm::stable_sort(order, [&](int64_t x, int64_t y) {
      if (op.getDescending())
        std::swap(x, y);
      return std::lexicographical_compare(base + x * columns, base + (x + 1) * columns, base + y * columns,
                                          base + (y + 1) * columns, below);
    });
    result.insert(result.end(), order.begin(), order.begin() + count);
  }
  return call.makeInts(result);
}

llvm::Expected<Tensor> evalArgSort(ArgSortOp op, const Call &call) {
  const Shape &shape = call.operands[0].shape;
  if (call.shapes[0].back() > shape[shape.size() - 2])
    return call.fail("asks for more rows than there are");
  if (call.isFloat(0))
    return argSort(call, op, toDoubles(call.operands[0]), isBelow);
  if (isUnsignedElement(call.operands[0].elementType))
    return argSort(call, op, toInts(call.operands[0]), [](int64_t a, int64_t b) { return uint64_t(a) < uint64_t(b); });
  return argSort(call, op, toInts(call.operands[0]), std::less<int64_t>());
}

} // namespace

void tc::prim::interpreter::addReductionHandlers(Registry &registry) {
  registry.add<ArgSortOp>(evalArgSort);
  registry.add<ReduceOp>(evalReduce);
  registry.add<ArgReduceOp>(evalArgReduce);
  registry.add<ScanOp>(evalScan);
}
