//===- NodeContext.cpp - what a handler sees of one node ----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "NodeContext.h"

#include "ConstantData.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/Admission.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

std::string tc::describe(Value v) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto type = dyn_cast<RankedTensorType>(v.getType()))
    os << RankedTensorType::get(type.getShape(), type.getElementType());
  else
    os << v.getType();
  return text;
}

Attribute NodeContext::attr(StringRef name) const {
  if (asAttributes)
    return asAttributes.get(name);
  Attribute value = graph::NodeOp(op).getNodeAttr(name);
  if (auto ref = dyn_cast_or_null<graph::RefAttr>(value))
    return parameters ? parameters.get(ref.getParam()) : Attribute();
  return value;
}

/// `value` with symbols in the place of sizes of many terms: what each node adds to would have all nodes' terms.
Value NodeContext::shortenSizes(Value value) {
  constexpr int64_t kMostTerms = 64;
  if (!value || !isa<RankedTensorType>(value.getType()))
    return value;
  Sizes sizes = getSizes(value);
  bool isShorter = false;
  for (AffineExpr &size : sizes)
    if (countTerms(size) > kMostTerms) {
      size = b.bindSymbol("size", b.sizeValue(size));
      isShorter = true;
    }
  return isShorter ? b.reshape(value, sizes) : value;
}

LogicalResult NodeContext::set(size_t i, Value value) {
  if (produced.size() <= i)
    produced.resize(i + 1);
  produced[i] = shortenSizes(value);
  return success();
}

LogicalResult NodeContext::runAs(NodeContext &other, StringRef domain, StringRef type, int64_t opset) {
  const OpEntry *entry = OpRegistry::get().lookup(domain, type, opset);
  if (!entry) // the opset may come from an attribute
    return invalid("computes as " + type + " of opset " + Twine(opset) + " does, which there is none of");
  other.asOpset = opset;
  if (const OperandRules *rules = OpRegistry::get().lookupRules(domain, type, opset))
    if (std::string error = findRuleError(other, *rules, /*byName=*/domain == "aten"); !error.empty())
      return invalid("computed as " + type + ": " + error);
  if (succeeded(entry->handler(other)))
    return success();
  unsupportedReason = other.unsupportedReason;
  invalidReason = other.invalidReason;
  return failure();
}

FailureOr<Value> NodeContext::emitAs(StringRef type, int64_t opset, ArrayRef<Value> values) {
  NodeContext other(op, b, ints, regions, values, parameters);
  other.asAttributes = asAttributes;
  return failed(runAs(other, "ai.onnx", type, opset)) ? FailureOr<Value>(failure()) : other.results().front();
}

FailureOr<SmallVector<Value>> NodeContext::emitOperator(StringRef type, int64_t opset, ArrayRef<Value> values,
                                                        ArrayRef<NamedAttribute> attributes, size_t count,
                                                        StringRef domain) {
  NodeContext other(op, b, ints, regions, values, parameters);
  other.asAttributes = DictionaryAttr::get(b.getContext(), attributes);
  other.asResults = count;
  if (failed(runAs(other, domain, type, opset)))
    return failure();
  return SmallVector<Value>(other.results().take_front(count));
}

LogicalResult NodeContext::emitByParts(llvm::function_ref<LogicalResult(NodeContext &)> handler) {
  SmallVector<Value> parts;
  for (int64_t part : {0, 1}) {
    SmallVector<Value> values(operands);
    for (Value &v : values)
      if (v && b.isComplex(v))
        v = b.take(b.asParts(v), b.rankOf(v), part);
    NodeContext other(op, b, ints, regions, values, parameters);
    other.asOpset = asOpset;
    other.asAttributes = asAttributes;
    other.asResults = asResults;
    other.imaginary = part == 1;
    FailureOr<Value> result = failure();
    if (succeeded(handler(other))) // sizes that are data have symbols of their own in each part
      result = parts.empty() ? other.results().front() : other.castSizes(other.results().front(), getSizes(parts[0]));
    unsupportedReason = other.unsupportedReason;
    invalidReason = other.invalidReason;
    if (failed(result))
      return failure();
    parts.push_back(*result);
  }
  int64_t rank = b.rankOf(parts[0]);
  return this->result(b.asComplex(b.concat({b.unsqueeze(parts[0], rank), b.unsqueeze(parts[1], rank)}, rank)));
}

LogicalResult NodeContext::unsupported(const Twine &what) {
  if (unsupportedReason.empty())
    unsupportedReason = what.str();
  return failure();
}

LogicalResult NodeContext::ranksVary(ArrayRef<unsigned> results) {
  varying.assign(results.begin(), results.end());
  return failure();
}

LogicalResult NodeContext::invalid(const Twine &what) {
  if (invalidReason.empty())
    invalidReason = what.str();
  return failure();
}

LogicalResult NodeContext::requireOperands(ArrayRef<size_t> required) {
  for (size_t i : required)
    if (!has(i))
      return invalid("operand " + Twine(i) + " is missing");
  return success();
}

int64_t NodeContext::getInt(StringRef name, int64_t defaultValue) const {
  if (auto value = dyn_cast_or_null<IntegerAttr>(attr(name)); value && value.getValue().getSignificantBits() <= 64)
    return value.getValue().getSExtValue();
  return defaultValue;
}

double NodeContext::getFloat(StringRef name, double defaultValue) const {
  if (auto value = dyn_cast_or_null<FloatAttr>(attr(name)))
    return value.getValueAsDouble();
  return defaultValue;
}

std::string NodeContext::getString(StringRef name, StringRef defaultValue) const {
  if (auto value = dyn_cast_or_null<StringAttr>(attr(name)))
    return value.getValue().str();
  return defaultValue.str();
}

std::optional<SmallVector<int64_t>> NodeContext::getInts(StringRef name) const {
  Attribute value = attr(name);
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(value))
    return SmallVector<int64_t>(dense.asArrayRef());
  if (auto array = dyn_cast_or_null<ArrayAttr>(value)) {
    SmallVector<int64_t> result;
    for (Attribute element : array) {
      auto integer = dyn_cast<IntegerAttr>(element);
      if (!integer)
        return std::nullopt;
      result.push_back(integer.getValue().getSExtValue());
    }
    return result;
  }
  return std::nullopt;
}

std::optional<SmallVector<double>> NodeContext::getFloats(StringRef name) const {
  Attribute value = attr(name);
  SmallVector<double> result;
  if (auto dense = dyn_cast_or_null<DenseF32ArrayAttr>(value)) {
    result.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
    return result;
  }
  if (auto dense = dyn_cast_or_null<DenseF64ArrayAttr>(value)) {
    result.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
    return result;
  }
  if (auto array = dyn_cast_or_null<ArrayAttr>(value)) {
    for (Attribute element : array) {
      auto number = dyn_cast<FloatAttr>(element);
      if (!number)
        return std::nullopt;
      result.push_back(number.getValueAsDouble());
    }
    return result;
  }
  return std::nullopt;
}

std::optional<SmallVector<std::string>> NodeContext::getStrings(StringRef name) const {
  auto array = dyn_cast_or_null<ArrayAttr>(attr(name));
  if (!array)
    return std::nullopt;
  SmallVector<std::string> result;
  for (Attribute element : array) {
    auto text = dyn_cast<StringAttr>(element);
    if (!text)
      return std::nullopt;
    result.push_back(text.getValue().str());
  }
  return result;
}

std::optional<SmallVector<int64_t>> NodeContext::constantInts(Value v) {
  if (auto type = dyn_cast<RankedTensorType>(v.getType());
      type && type.hasStaticShape() && type.getNumElements() == 0 && isa<IntegerType>(type.getElementType()))
    return SmallVector<int64_t>();
  std::optional<Sizes> values = ints.get(v);
  if (!values)
    return std::nullopt;
  SmallVector<int64_t> result;
  for (AffineExpr e : *values) {
    auto constant = getConstantSize(e);
    if (!constant)
      return std::nullopt;
    result.push_back(*constant);
  }
  return result;
}

std::optional<double> NodeContext::constantScalar(Value v) {
  if (auto splat = getSplatValue(v))
    return splat;
  if (auto values = constantInts(v); values && values->size() == 1)
    return double(values->front());
  if (auto constant = v.getDefiningOp<prim::ConstantOp>())
    if (std::optional<SmallVector<double>> values = readFloats(constant.getValue()); values && values->size() == 1)
      return values->front();
  return std::nullopt;
}

FailureOr<Sizes> NodeContext::requireSizes(Value v, StringRef what, int64_t min) {
  auto type = cast<RankedTensorType>(v.getType());
  if (!isa<IntegerType>(type.getElementType()) || type.getRank() > 1)
    return invalid(what + " must be a 1-D integer tensor, but is " + describe(v));
  if (!type.hasStaticShape())
    return unsupported("with " + what + " of unknown length (a result of unknown rank) is not supported");
  if (std::optional<Sizes> values = ints.get(v)) {
    for (AffineExpr e : *values)
      if (auto known = getConstantSize(e); known && min >= 0 && (*known < min || *known >> kSizeBits))
        return invalid(what + " holds " + Twine(*known) + "; it must lie in [" + Twine(min) + ", 2^" +
                       Twine(kSizeBits) + ")");
    return *values;
  }
  if (type.getNumElements() > 64)
    return invalid(what + " has " + Twine(type.getNumElements()) + " elements");
  Sizes result;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value element = type.getRank() == 0 ? v : b.take(v, 0, i);
    if (std::optional<Sizes> one = ints.get(element))
      result.push_back(one->front());
    else {
      result.push_back(b.bindSymbol("data", element, min));
      // Where the next one asks, it is the same size; but not outside of the branch or loop that binds it.
      if (element.getParentBlock() == b.getInsertionBlock())
        ints.remember(element, result.back());
    }
  }
  return result;
}

FailureOr<std::optional<SmallVector<int64_t>>> NodeContext::intsOf(StringRef name, size_t i) {
  if (std::optional<SmallVector<int64_t>> values = getInts(name))
    return std::optional(*values);
  if (auto single = dyn_cast_or_null<IntegerAttr>(attr(name)))
    return std::optional(SmallVector<int64_t>{single.getValue().getSExtValue()});
  if (!has(i))
    return std::optional<SmallVector<int64_t>>();
  std::optional<SmallVector<int64_t>> values = constantInts(operand(i));
  if (!values)
    return unsupported("with " + name + " that are not known at compile time is not supported");
  return std::optional(*values);
}

FailureOr<int64_t> NodeContext::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid("axis " + Twine(axis) + " is outside a tensor of rank " + Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> NodeContext::axes(ArrayRef<int64_t> list, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : list) {
    FailureOr<int64_t> one = axis(value, rank);
    if (failed(one))
      return failure();
    if (llvm::is_contained(result, *one))
      return invalid("axis " + Twine(value) + " is given twice");
    result.push_back(*one);
  }
  return result;
}

FailureOr<Sizes> NodeContext::broadcastSizes(ArrayRef<Sizes> all) {
  Sizes result;
  for (const Sizes &sizes : all) {
    if (sizes.size() > result.size())
      result.insert(result.begin(), sizes.size() - result.size(), b.size(1));
    for (size_t i = 0; i < sizes.size(); ++i) {
      AffineExpr &x = result[result.size() - sizes.size() + i], y = sizes[i];
      auto cx = getConstantSize(x), cy = getConstantSize(y);
      if (x == y || cy == 1)
        continue;
      if (cx == 1) {
        x = y;
        continue;
      }
      if (cx && cy)
        return invalid("sizes " + Twine(*cx) + " and " + Twine(*cy) + " can't be broadcast together");
      AffineExpr other = y; // equal to x, or 1
      if (cy || (!cx && b.bounds(x).first < 2 && b.bounds(y).first >= 2)) {
        std::swap(x, other);
      } else if (!cx && b.bounds(x).first < 2) {
        Value vx = b.sizeValue(x), vy = b.sizeValue(y);
        Value isOne = b.compare(CompareKind::EQ, vx, 1);
        x = b.bindSymbol("broadcast", b.select(isOne, vy, vx));
      }
      if (failed(require(CompareKind::EQ, other, x,
                         "sizes that are equal or 1 in dim " + Twine(result.size() - sizes.size() + i),
                         /*orOne=*/true)))
        return failure();
    }
  }
  return result;
}

LogicalResult NodeContext::require(CompareKind kind, AffineExpr x, AffineExpr y, const Twine &what, bool orOne) {
  x = simplifySize(x);
  y = simplifySize(y);
  auto [low, high] = b.bounds(simplifySize(x - y));
  bool equal = kind == CompareKind::EQ;
  if ((equal ? low == 0 && high == 0 : high <= 0) || (orOne && getConstantSize(x) == 1))
    return success();
  bool maybeOne = orOne && b.bounds(x).first <= 1 && b.bounds(x).second >= 1;
  if ((low > 0 || (equal && high < 0)) && !maybeOne) {
    auto cx = getConstantSize(x), cy = getConstantSize(y);
    std::string found;
    if (cx && cy)
      found = (" (" + Twine(*cx) + " against " + Twine(*cy) + ")").str();
    return invalid("needs " + what + found);
  }
  AffineMap map = makeSizeMap(b.getContext(), {x, y});
  for (Operation &earlier : *b.getInsertionBlock())
    if (auto guard = dyn_cast<GuardOp>(earlier);
        guard && guard.getKind() == kind && guard.getSizes() == map && guard.getOrOne() == orOne)
      return success();
  GuardOp::create(b, kind, map, (op.getOpType() + " needs " + what).str(), orOne);
  return success();
}

LogicalResult NodeContext::broadcastTogether(MutableArrayRef<Value> values) {
  SmallVector<Sizes> all = llvm::map_to_vector(values, [](Value v) { return getSizes(v); });
  FailureOr<Sizes> sizes = broadcastSizes(all);
  if (failed(sizes))
    return failure();
  for (Value &v : values)
    v = b.broadcastTo(v, *sizes);
  return success();
}

FailureOr<Value> NodeContext::castSizes(Value v, SizesRef sizes) {
  Sizes have = getSizes(v);
  if (have.size() != sizes.size())
    return invalid("a tensor of rank " + Twine(have.size()) + " stands where rank " + Twine(sizes.size()) +
                   " is needed");
  for (auto [i, x, y] : llvm::enumerate(have, sizes))
    if (failed(requireEqual(x, y, "equal sizes in dim " + Twine(i))))
      return failure();
  return b.reshape(v, sizes);
}

FailureOr<Value> NodeContext::scalar(Value v, const Twine &what) {
  Sizes ones(b.rankOf(v), b.size(1));
  if (llvm::any_of(getSizes(v), [](AffineExpr size) { return getConstantSize(size).value_or(1) != 1; }))
    return invalid(what + " must be a scalar, but is " + describe(v));
  FailureOr<Value> one = castSizes(v, ones);
  return failed(one) ? FailureOr<Value>(failure()) : b.reshape(*one, {});
}

FailureOr<Value> NodeContext::broadcastOnto(Value v, SizesRef sizes) {
  Sizes have = getSizes(v);
  if (have.size() > sizes.size())
    return invalid(describe(v) + " can't be broadcast to rank " + Twine(sizes.size()));
  for (size_t i = 0; i < have.size(); ++i)
    if (failed(require(CompareKind::EQ, have[i], sizes[sizes.size() - have.size() + i],
                       "an operand that can be broadcast to the other in dim " + Twine(i), /*orOne=*/true)))
      return failure();
  return b.broadcastTo(v, sizes);
}

FailureOr<Value> NodeContext::reshape(Value v, SizesRef sizes) {
  if (failed(requireEqual(countElements(v), product(b.getContext(), sizes), "as many elements after as before")))
    return failure();
  return b.reshape(v, sizes);
}
