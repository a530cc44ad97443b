//===- ONNXSequence.cpp - sequences and optionals -----------------------------------------------------------------===//
//
// A sequence or an optional is a handle to an object of the runtime: a 0-D tensor whose element type says what is
// inside, until the end of the conversion makes words of all of them. Tensors go in by value; taking one out asks the
// runtime for its sizes first, which become symbols, then for its data.
//
// Where the elements of a sequence are known when the model is compiled (SequenceConstruct, a split into parts of known
// lengths), taking one out, counting and concatenating need no sequence: so exported models with Split and Concat in
// this dress cost what those do.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

//===--- types ----------------------------------------------------------------------------------------------------===//

/// The type of `v` as the inside of a sequence or optional: sizes that are no numbers are forgotten.
Type insideOf(Value v) {
  Type element = PrimBuilder::elementOf(v);
  if (base::isHandle(element))
    return element;
  return RankedTensorType::get(PrimBuilder::typeOf(v).getShape(), element);
}

Type sequenceOf(Type inside) { return base::SeqType::get(inside.getContext(), inside); }
Type optionalOf(Type inside) { return base::OptType::get(inside.getContext(), inside); }

/// What is inside of a sequence operand.
FailureOr<Type> sequenceElement(NodeContext &ctx, Value v) {
  if (auto sequence = dyn_cast<base::SeqType>(PrimBuilder::elementOf(v)))
    return sequence.getElementType();
  // An optional that holds a sequence has its handle.
  if (auto optional = dyn_cast<base::OptType>(PrimBuilder::elementOf(v)))
    if (auto sequence = dyn_cast<base::SeqType>(optional.getElementType()))
      return sequence.getElementType();
  return ctx.invalid("needs a sequence, but its operand is " + describe(v));
}

FailureOr<Value> position(NodeContext &ctx, Value v) {
  auto type = PrimBuilder::typeOf(v);
  if (!isa<IntegerType>(type.getElementType()) || (type.hasStaticShape() && type.getNumElements() != 1))
    return ctx.invalid("the position must be one integer, but is " + describe(v));
  FailureOr<Value> scalar = ctx.reshape(v, {});
  return failed(scalar) ? scalar : ctx.b.convert(*scalar, ctx.b.getI64Type());
}

/// Adds operand i, a position, to a call's operands, if it is there.
LogicalResult appendPosition(NodeContext &ctx, size_t i, SmallVectorImpl<Value> &operands) {
  if (!ctx.has(i))
    return success();
  FailureOr<Value> at = position(ctx, ctx.operand(i));
  if (succeeded(at))
    operands.push_back(*at);
  return at;
}

LogicalResult checkInside(NodeContext &ctx, Type inside) {
  auto tensor = dyn_cast<TensorType>(inside);
  if (tensor && isNarrowElement(tensor.getElementType()))
    return ctx.unsupported("of elements with fewer than 8 bits, or of 8-bit floats, is not supported");
  return success();
}

/// The number of elements, where it is known, and they.
std::optional<SmallVector<Value>> knownElements(Value sequence) {
  auto call = sequence.getDefiningOp<HostCallOp>();
  if (!call || call.getCallee() != "seq_construct")
    return std::nullopt;
  return SmallVector<Value>(call.getInputs());
}

Value construct(PrimBuilder &b, ValueRange elements, Type inside) {
  return b.hostCall("seq_construct", elements, sequenceOf(inside), {});
}

/// A sequence of these elements, of which there is one at least; null if they differ in element type.
Value construct(PrimBuilder &b, ArrayRef<Value> elements) {
  Type inside = insideOf(elements.front());
  for (Value element : elements.drop_front()) {
    Type joined = joinElements(sequenceOf(inside), sequenceOf(insideOf(element)));
    if (!joined)
      return {};
    inside = cast<base::SeqType>(joined).getElementType();
  }
  return construct(b, elements, inside);
}

/// A known position among `count` elements, from the front.
std::optional<int64_t> knownPosition(NodeContext &ctx, Value v, int64_t count, int64_t last) {
  std::optional<SmallVector<int64_t>> given = ctx.constantInts(v);
  if (!given || given->size() != 1)
    return std::nullopt;
  int64_t at = given->front() < 0 ? given->front() + count : given->front();
  return at >= 0 && at <= last ? std::optional(at) : std::nullopt;
}

} // namespace

FailureOr<Value> tc::takeOut(NodeContext &ctx, Value handle, Type inside) {
  PrimBuilder &b = ctx.b;
  auto tensor = dyn_cast<TensorType>(inside);
  if (!tensor) // a sequence or map: the same handle
    return b.asWords(b.asWords(handle, b.getI64Type()), inside);
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  if (!ranked)
    return ctx.unsupported("of tensors whose rank the model does not tell is not supported; declare their shape");
  Type scalar = RankedTensorType::get({}, b.getI64Type());
  Sizes sizes;
  if (ranked.hasStaticShape()) {
    sizes = b.sizes(ranked.getShape());
  } else {
    ValueRange dims = b.hostCall("object_dims", handle, SmallVector<Type>(ranked.getRank(), scalar));
    for (auto [i, size] : llvm::enumerate(ranked.getShape()))
      sizes.push_back(ShapedType::isDynamic(size) ? b.bindSymbol("size", dims[i]) : b.size(size));
  }
  return b.hostCall("object_data", handle, ranked.getElementType(), sizes);
}

namespace {

//===--- sequences ------------------------------------------------------------------------------------------------===//

LogicalResult sequenceEmpty(NodeContext &ctx) {
  FailureOr<Type> element = readElementType(ctx, "dtype", /*defaultType=*/1, /*orString=*/true, /*orComplex=*/true);
  if (failed(element))
    return failure();
  return ctx.result(construct(ctx.b, {}, insideOfEmpty(*element)));
}

LogicalResult sequenceConstruct(NodeContext &ctx) {
  SmallVector<Value> elements(ctx.allOperands());
  if (elements.empty() || llvm::is_contained(elements, Value()))
    return ctx.invalid("has an absent operand");
  if (failed(checkInside(ctx, insideOf(elements.front()))))
    return failure();
  Value sequence = construct(ctx.b, elements);
  return sequence ? ctx.result(sequence) : ctx.invalid("its operands differ in element type");
}

LogicalResult sequenceInsert(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value sequence = ctx.operand(0), x = ctx.operand(1);
  FailureOr<Type> inside = sequenceElement(ctx, sequence);
  if (failed(inside) || failed(checkInside(ctx, insideOf(x))))
    return failure();
  Type joined = joinElements(sequenceOf(*inside), sequenceOf(insideOf(x)));
  if (!joined)
    return ctx.invalid("inserts " + describe(x) + " into " + describe(sequence));
  if (auto known = knownElements(sequence); known && known->size() < 256) {
    std::optional<int64_t> at = ctx.has(2) ? knownPosition(ctx, ctx.operand(2), known->size(), known->size())
                                           : std::optional<int64_t>(known->size());
    if (at) {
      known->insert(known->begin() + *at, x);
      return ctx.result(construct(b, *known, cast<base::SeqType>(joined).getElementType()));
    }
  }
  SmallVector<Value> operands{sequence, x};
  if (failed(appendPosition(ctx, 2, operands)))
    return failure();
  return ctx.result(b.hostCall("seq_insert", operands, joined, {}));
}

LogicalResult sequenceErase(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value sequence = ctx.operand(0);
  FailureOr<Type> inside = sequenceElement(ctx, sequence);
  if (failed(inside))
    return failure();
  if (auto known = knownElements(sequence); known && !known->empty()) {
    int64_t last = known->size() - 1;
    std::optional<int64_t> at = ctx.has(1) ? knownPosition(ctx, ctx.operand(1), known->size(), last) : last;
    if (at) {
      known->erase(known->begin() + *at);
      auto tensor = dyn_cast<TensorType>(*inside);
      if (known->empty()) // what comes into it says what it holds
        return ctx.result(construct(b, {}, tensor ? insideOfEmpty(tensor.getElementType()) : *inside));
      return ctx.result(construct(b, *known));
    }
  }
  SmallVector<Value> operands{sequence};
  if (failed(appendPosition(ctx, 1, operands)))
    return failure();
  return ctx.result(b.hostCall("seq_erase", operands, b.elementOf(sequence), {}));
}

LogicalResult sequenceAt(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value sequence = ctx.operand(0);
  FailureOr<Type> inside = sequenceElement(ctx, sequence);
  if (failed(inside))
    return failure();
  if (auto known = knownElements(sequence); known && !known->empty())
    if (auto at = knownPosition(ctx, ctx.operand(1), known->size(), known->size() - 1))
      return ctx.result((*known)[*at]);
  inside = forgetEmpty(*inside); // in the first conversion of a loop's body
  // The front end may know more than the sequence's type.
  if (auto declared = dyn_cast<RankedTensorType>(ctx.node()->getResult(0).getType()))
    if (isa<UnrankedTensorType>(*inside))
      inside = declared;
  FailureOr<Value> at = position(ctx, ctx.operand(1));
  if (failed(at))
    return failure();
  FailureOr<Value> result = takeOut(ctx, b.hostCall("seq_at", {sequence, *at}, optionalOf(*inside), {}), *inside);
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult sequenceLength(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  if (auto known = knownElements(ctx.operand(0)))
    return ctx.result(b.sizeValue(b.size(known->size())));
  if (failed(sequenceElement(ctx, ctx.operand(0))))
    return failure();
  return ctx.result(b.hostCall("seq_length", ctx.operand(0), b.getI64Type(), {}));
}

/// Whether all readers of the node's result do without the sequence if its elements are known.
bool areElementsEnough(NodeContext &ctx) {
  return llvm::all_of(ctx.node()->getResult(0).getUsers(), [](Operation *user) {
    auto node = dyn_cast<graph::NodeOp>(user);
    return node && (node.getOpType() == "SequenceAt" || node.getOpType() == "SequenceLength" ||
                    node.getOpType() == "ConcatFromSequence");
  });
}

LogicalResult splitToSequence(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), b.rankOf(x));
  if (failed(axis) || failed(checkInside(ctx, insideOf(x))))
    return failure();
  bool keep = ctx.has(1) || ctx.getInt("keepdims", 1) != 0;
  Value lengths = ctx.has(1) ? ctx.operand(1) : b.sizeValue(b.size(1));
  auto type = b.typeOf(lengths);
  if (!isa<IntegerType>(type.getElementType()) || type.getRank() > 1)
    return ctx.invalid("split must be an integer or a list of integers, but is " + describe(lengths));
  SmallVector<int64_t> shape(b.typeOf(x).getShape());
  auto drop = [&](auto list) {
    if (!keep)
      list.erase(list.begin() + *axis);
    return list;
  };
  auto known = ctx.constantInts(lengths);
  auto total = getConstantSize(getSizes(x)[*axis]);
  if (known && total && areElementsEnough(ctx)) {
    SmallVector<int64_t> parts = *known;
    if (type.getRank() == 0) {
      if (known->front() <= 0)
        return ctx.invalid("split must be positive, but is " + Twine(known->front()));
      parts.assign(*total / known->front(), known->front());
      if (*total % known->front())
        parts.push_back(*total % known->front());
    }
    int64_t sum = 0;
    for (int64_t part : parts)
      sum = part < 0 ? INT64_MIN / 2 : sum + part;
    if (sum != *total)
      return ctx.invalid("the lengths in split do not add up to the axis, which has " + Twine(*total));
    if (parts.size() < 256) {
      SmallVector<Value> elements;
      int64_t at = 0;
      for (int64_t part : parts) {
        Value element = b.sliceDim(x, *axis, b.size(at), b.size(part));
        elements.push_back(keep ? element : b.reshape(element, drop(getSizes(element))));
        at += part;
      }
      if (!elements.empty()) {
        shape[*axis] = llvm::all_equal(parts) ? parts.front() : ShapedType::kDynamic;
        return ctx.result(construct(b, elements, RankedTensorType::get(drop(shape), b.elementOf(x))));
      }
    }
  }
  shape[*axis] = ctx.has(1) ? ShapedType::kDynamic : 1;
  Value wide = b.convert(lengths, b.getI64Type());
  Type inside = RankedTensorType::get(drop(shape), b.elementOf(x));
  return ctx.result(b.hostCall("seq_split", {x, wide, b.sizeValue(b.size(*axis)), b.sizeValue(b.size(keep))},
                               sequenceOf(inside), {}));
}

LogicalResult concatFromSequence(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value sequence = ctx.operand(0);
  FailureOr<Type> inside = sequenceElement(ctx, sequence);
  if (failed(inside))
    return failure();
  bool isNew = ctx.getInt("new_axis", 0) != 0;
  auto known = knownElements(sequence);
  if (known && !known->empty() && llvm::all_equal(llvm::map_range(*known, [&](Value v) { return b.rankOf(v); }))) {
    int64_t rank = b.rankOf(known->front()) + isNew;
    FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), rank);
    if (failed(axis))
      return failure();
    SmallVector<Value> parts;
    Sizes sizes;
    for (Value v : *known) {
      Value part = isNew ? b.unsqueeze(v, *axis) : v;
      Sizes own = getSizes(part);
      if (sizes.empty())
        sizes = own;
      for (int64_t d = 0; d < rank; ++d)
        if (d != *axis && failed(ctx.requireEqual(own[d], sizes[d], "elements of equal sizes")))
          return failure();
      Sizes cast = sizes;
      cast[*axis] = own[*axis];
      parts.push_back(b.reshape(part, cast));
    }
    return ctx.result(b.concat(parts, *axis));
  }
  auto ranked = dyn_cast<RankedTensorType>(*inside);
  if (!ranked)
    return ctx.unsupported("of tensors whose rank the model does not tell is not supported; declare their shape");
  if (failed(checkInside(ctx, *inside)))
    return failure();
  int64_t rank = ranked.getRank() + isNew;
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), rank);
  if (failed(axis))
    return failure();
  Value where = b.sizeValue(b.size(*axis)), flag = b.sizeValue(b.size(isNew));
  Type scalar = RankedTensorType::get({}, b.getI64Type());
  Sizes sizes;
  for (Value dim : b.hostCall("seq_concat_dims", {sequence, where, flag}, SmallVector<Type>(rank, scalar)))
    sizes.push_back(b.bindSymbol("size", dim));
  return ctx.result(b.hostCall("seq_concat", {sequence, where, flag}, ranked.getElementType(), sizes));
}

//===--- optionals ------------------------------------------------------------------------------------------------===//

LogicalResult optional(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  if (!ctx.has(0)) {
    auto type = dyn_cast_or_null<TypeAttr>(ctx.attr("type"));
    if (!type)
      return ctx.invalid("has neither an operand nor the attribute type");
    return ctx.result(b.scalar(optionalOf(type.getValue()), 0));
  }
  Value x = ctx.operand(0);
  if (isa<base::SeqType, base::MapType>(b.elementOf(x)))
    return ctx.result(b.asWords(x, optionalOf(b.elementOf(x))));
  return ctx.result(b.hostCall("box", x, optionalOf(insideOf(x)), {}));
}

LogicalResult optionalHasElement(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  if (x && isa<base::OptType>(b.elementOf(x)))
    return ctx.result(b.hostCall("has_value", x, b.getI1Type(), {}));
  return ctx.result(b.scalar(b.getI1Type(), x ? 1 : 0));
}

LogicalResult optionalGetElement(NodeContext &ctx) {
  Value x = ctx.operand(0);
  auto type = dyn_cast<base::OptType>(ctx.b.elementOf(x));
  if (!type)
    return ctx.result(x); // since version 18: a value that is there for certain
  Type inside = type.getElementType();
  if (auto declared = dyn_cast<RankedTensorType>(ctx.node()->getResult(0).getType()))
    if (isa<UnrankedTensorType>(inside))
      inside = declared;
  // What was put in just before.
  if (auto call = x.getDefiningOp<HostCallOp>(); call && call.getCallee() == "box")
    return ctx.result(call.getInputs()[0]);
  FailureOr<Value> result = takeOut(ctx, x, inside);
  return failed(result) ? failure() : ctx.result(*result);
}

} // namespace

void tc::populateONNXSequence(OpRegistrar &onOp) {
  onOp("SequenceEmpty", 11, sequenceEmpty, 0);
  onOp("SequenceConstruct", 11, sequenceConstruct);
  onOp("SequenceInsert", 11, sequenceInsert, 2);
  onOp("SequenceErase", 11, sequenceErase);
  onOp("SequenceAt", 11, sequenceAt, 2);
  onOp("SequenceLength", 11, sequenceLength);
  onOp("SplitToSequence", 11, splitToSequence);
  onOp("ConcatFromSequence", 11, concatFromSequence);
  onOp("Optional", 15, optional, 0);
  onOp("OptionalHasElement", 15, optionalHasElement, 0);
  onOp("OptionalGetElement", 15, optionalGetElement);
  onOp.takeComplex(ComplexUse::Moved, {"SequenceConstruct", "SequenceInsert", "SplitToSequence", "Optional",
                                       "OptionalHasElement", "OptionalGetElement"});
}
