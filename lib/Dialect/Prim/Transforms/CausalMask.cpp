//===- CausalMask.cpp - masks that hide the future ----------------------------------------------------------------===//
//
// Exporters write the causal mask of attention in many ways: a triangle of ones compared with zero, positions compared
// with positions, a constant of 0 and -infinity, with conversions and slices between. All of them are one of
//
//   Uniform    one value everywhere
//   Linear     a * t + b * s + c
//   Step       `seen` where t - s >= from, else `hidden`
//
// at every step on the way, which is followed from the positions and constants to the mask.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CausalMask.h"

#include "tc/Dialect/Prim/Utils/Compare.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/TC/IR/TC.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Ops that are looked at, each time that one is read.
constexpr int kMostSteps = 256;
// Constants of more elements are not looked through.
constexpr int64_t kMostElements = int64_t(1) << 24;
// What is added to a hidden score at most: exp(score + this - maximum) is 0 for all scores that are no infinity.
constexpr double kHides = -1e30;

struct Form {
  enum Kind { Uniform, Linear, Step } kind = Uniform;
  double seen = 0, hidden = 0; ///< Uniform: equal
  int64_t from = 0;
  int64_t a = 0, b = 0, c = 0;

  static Form uniform(double value) { return {Uniform, value, value, 0, 0, 0, 0}; }
  static Form linear(int64_t a, int64_t b, int64_t c) { return {Linear, 0, 0, 0, a, b, c}; }
  static Form step(int64_t from, double seen, double hidden) { return {Step, seen, hidden, from, 0, 0, 0}; }
  /// A Uniform whole number is a Linear one too.
  std::optional<Form> asLinear() const {
    if (kind == Linear)
      return *this;
    if (kind == Uniform && seen == std::trunc(seen) && std::fabs(seen) < 1e15)
      return linear(0, 0, int64_t(seen));
    return std::nullopt;
  }
};

/// What an index along a dim of a tensor is: t or s of the mask plus `offset`, or the same for all of them.
struct Axis {
  enum Role { None, T, S } role = None;
  int64_t offset = 0;
};

using Axes = SmallVector<Axis>;

/// Whether elements of this type hold all positions exactly: narrower ones wrap or round.
bool holdsPositions(Type element) {
  return element.isF32() || element.isF64() || element.isInteger(32) || element.isInteger(64);
}

std::optional<int64_t> sizeOf(Value v, int64_t dim) { return getConstantSize(getSizes(v)[dim]); }

/// f of the values of forms that step at the same place.
std::optional<Form> combine(ArrayRef<Form> forms, llvm::function_ref<double(ArrayRef<double>)> f) {
  std::optional<int64_t> from;
  SmallVector<double> seen, hidden;
  for (const Form &form : forms) {
    if (form.kind == Form::Linear || (form.kind == Form::Step && from && *from != form.from))
      return std::nullopt;
    if (form.kind == Form::Step)
      from = form.from;
    seen.push_back(form.seen);
    hidden.push_back(form.hidden);
  }
  return from ? Form::step(*from, f(seen), f(hidden)) : Form::uniform(f(seen));
}

/// Positions compared with positions: only t and s at a distance are a step.
std::optional<Form> compareLinear(CompareKind kind, const Form &x, const Form &y) {
  // d = x - y, as sign * (t - s) + c.
  const int64_t sign = x.a - y.a, c = x.c - y.c;
  if (sign != -(x.b - y.b) || (sign != 1 && sign != -1))
    return std::nullopt;
  switch (kind) {
  case CompareKind::GE: // d >= 0
    return sign > 0 ? Form::step(-c, 1, 0) : Form::step(c + 1, 0, 1);
  case CompareKind::LT:
    return sign > 0 ? Form::step(-c, 0, 1) : Form::step(c + 1, 1, 0);
  case CompareKind::GT:
    return sign > 0 ? Form::step(1 - c, 1, 0) : Form::step(c, 0, 1);
  case CompareKind::LE:
    return sign > 0 ? Form::step(1 - c, 0, 1) : Form::step(c, 1, 0);
  default:
    return std::nullopt;
  }
}

/// A constant matrix; `t` and `s` are its dims, the others have one element.
std::optional<Form> readConstant(ConstantOp op, const Axes &axes) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t t = -1, s = -1;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (axis.role == Axis::None && type.getDimSize(i) != 1)
      return std::nullopt;
    if (axis.role != Axis::None && axis.offset != 0)
      return std::nullopt;
    if (axis.role == Axis::T)
      t = int64_t(i);
    else if (axis.role == Axis::S)
      s = int64_t(i);
  }
  if (t < 0 || s < 0 || type.getNumElements() == 0 || type.getNumElements() > kMostElements)
    return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (auto data = dyn_cast<base::DataAttr>(op.getValue()))
    dense = base::toDense(data);
  if (!dense)
    return std::nullopt;
  const int64_t rows = type.getDimSize(t), columns = type.getDimSize(s);
  SmallVector<double> values;
  values.reserve(rows * columns);
  if (isa<FloatType>(type.getElementType()))
    for (const APFloat &value : dense.getValues<APFloat>())
      values.push_back(value.convertToDouble());
  else if (isa<IntegerType>(type.getElementType()))
    for (const APInt &value : dense.getValues<APInt>())
      values.push_back(type.getElementType().isUnsignedInteger() || type.getElementType().isInteger(1)
                           ? double(value.getZExtValue())
                           : double(value.getSExtValue()));
  else
    return std::nullopt;
  auto at = [&](int64_t row, int64_t column) { return values[t < s ? row * columns + column : column * rows + row]; };
  // The last row sees the most, the first one the least: where that one stops seeing, the triangle begins.
  const double seen = at(rows - 1, 0);
  int64_t visible = 0;
  while (visible < columns && at(0, visible) == seen)
    ++visible;
  if (visible == columns)
    return std::nullopt;
  const double hidden = at(0, columns - 1);
  const Form form = Form::step(1 - visible, seen, hidden);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (at(row, column) != (row - column >= form.from ? seen : hidden))
        return std::nullopt;
  return form;
}

std::optional<Form> evaluate(Value v, const Axes &axes, int &steps) {
  if (std::optional<double> value = getSplatValue(v))
    return Form::uniform(*value);
  Operation *op = v.getDefiningOp();
  if (!op || --steps < 0)
    return std::nullopt;
  auto operand = [&](unsigned i) { return evaluate(op->getOperand(i), axes, steps); };
  auto moved = [&](const Axes &inner) { return evaluate(op->getOperand(0), inner, steps); };
  if (auto constant = dyn_cast<ConstantOp>(op))
    return readConstant(constant, axes);
  if (auto iota = dyn_cast<IotaOp>(op)) {
    const Axis &axis = axes[iota.getAxis()];
    if (axis.role == Axis::None || !holdsPositions(PrimBuilder::elementOf(v)))
      return std::nullopt;
    return Form::linear(axis.role == Axis::T, axis.role == Axis::S, axis.offset);
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    Axes inner;
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      inner.push_back(sizeOf(broadcast.getOperand(), i) == 1 ? Axis() : axes[dim]);
    return moved(inner);
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    Axes inner(axes.size());
    for (auto [i, from] : llvm::enumerate(transpose.getPermutation()))
      inner[from] = axes[i];
    return moved(inner);
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    // Only dims of one element come and go.
    auto to = getSizes(reshape.getResult()), from = getSizes(reshape.getOperand());
    Axes inner(from.size());
    size_t i = 0;
    for (size_t j = 0; j < from.size(); ++j) {
      if (getConstantSize(from[j]) == 1)
        continue;
      while (i < to.size() && getConstantSize(to[i]) == 1)
        ++i;
      if (i == to.size() || to[i] != from[j])
        return std::nullopt;
      inner[j] = axes[i++];
    }
    return moved(inner);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    Axes inner = axes;
    for (auto [i, start] : llvm::enumerate(slice.getStarts().getResults())) {
      std::optional<int64_t> constant = getConstantSize(start);
      if (!constant || slice.getSteps()[i] != 1)
        return std::nullopt;
      if (inner[i].role != Axis::None)
        inner[i].offset += *constant;
    }
    return moved(inner);
  }
  if (isa<ConvertOp, NotOp, NegOp>(op)) {
    std::optional<Form> x = operand(0);
    if (!x)
      return std::nullopt;
    Type type = PrimBuilder::elementOf(v);
    if (x->kind == Form::Linear)
      return isa<ConvertOp>(op) && holdsPositions(type) ? x : std::nullopt;
    if (isa<NotOp>(op) && !type.isInteger(1))
      return std::nullopt;
    return combine({*x}, [&](ArrayRef<double> values) -> double {
      if (isa<NegOp>(op))
        return -values[0];
      if (isa<NotOp>(op))
        return values[0] == 0;
      return type.isInteger(1) ? values[0] != 0 : isa<IntegerType>(type) ? std::trunc(values[0]) : values[0];
    });
  }
  if (isa<SelectOp>(op)) {
    std::optional<Form> condition = operand(0), x = operand(1), y = operand(2);
    if (!condition || !x || !y)
      return std::nullopt;
    return combine({*condition, *x, *y}, [](ArrayRef<double> v) { return v[0] != 0 ? v[1] : v[2]; });
  }
  if (!isa<AddOp, SubOp, MulOp, AndOp, OrOp, MaxOp, MinOp, CompareOp>(op))
    return std::nullopt;
  std::optional<Form> x = operand(0), y = operand(1);
  if (!x || !y)
    return std::nullopt;
  auto compare = dyn_cast<CompareOp>(op);
  if (x->kind == Form::Linear || y->kind == Form::Linear) {
    std::optional<Form> p = x->asLinear(), q = y->asLinear();
    if (!p || !q)
      return std::nullopt;
    if (compare)
      return compareLinear(compare.getKind(), *p, *q);
    if (isa<AddOp>(op))
      return Form::linear(p->a + q->a, p->b + q->b, p->c + q->c);
    if (isa<SubOp>(op))
      return Form::linear(p->a - q->a, p->b - q->b, p->c - q->c);
    return std::nullopt;
  }
  const bool isBool = PrimBuilder::elementOf(op->getOperand(0)).isInteger(1);
  if (isa<AndOp, OrOp>(op) && !isBool)
    return std::nullopt;
  return combine({*x, *y}, [&](ArrayRef<double> v) -> double {
    if (compare)
      return holds(compare.getKind(), v[0], v[1]);
    if (isa<AddOp>(op))
      return v[0] + v[1];
    if (isa<SubOp>(op))
      return v[0] - v[1];
    if (isa<MulOp>(op))
      return v[0] * v[1];
    if (isa<AndOp>(op))
      return v[0] != 0 && v[1] != 0;
    if (isa<OrOp>(op))
      return v[0] != 0 || v[1] != 0;
    return isa<MaxOp>(op) ? std::max(v[0], v[1]) : std::min(v[0], v[1]);
  });
}

} // namespace

bool tc::prim::isCausalMask(Value mask) {
  const int64_t rank = PrimBuilder::rankOf(mask);
  auto sizes = getSizes(mask);
  // Position t sees s <= t + (S - T).
  std::optional<int64_t> from = getConstantSize(simplifySize(sizes[rank - 2] - sizes[rank - 1]));
  if (!from)
    return false;
  Axes axes(rank);
  axes[rank - 2].role = Axis::T;
  axes[rank - 1].role = Axis::S;
  int steps = kMostSteps;
  std::optional<Form> form = evaluate(mask, axes, steps);
  return form && form->kind == Form::Step && form->from == *from && form->seen == 0 && form->hidden <= kHides &&
         (std::isinf(form->hidden) || *from <= 0);
}
