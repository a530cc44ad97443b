//===- ONNXMovement.cpp - reshapes, slices, gathers and scatters of ONNX ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "AxisList.h"
#include "Movement.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/Admission.h"
#include "tc/Dialect/Prim/Utils/Indices.h"
#include "tc/Support/Saturate.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult reshape(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes in = getSizes(x), out;
  AffineExpr total = ctx.countElements(x);
  SmallVector<Value> data; // elements that are not expressions
  if (ctx.opset() < 5) {
    out = b.sizes(ctx.getInts("shape").value_or(SmallVector<int64_t>()));
  } else if (!ctx.has(1)) {
    return ctx.invalid("the shape is missing");
  } else if (std::optional<Sizes> values = ctx.intValues(ctx.operand(1))) {
    out = *values;
  } else {
    auto type = b.typeOf(ctx.operand(1));
    if (type.getRank() != 1 || !type.hasStaticShape() || type.getDimSize(0) > 16)
      return ctx.unsupported("to a shape of unknown length is not supported");
    for (int64_t i = 0; i < type.getDimSize(0); ++i) {
      Value element = b.take(ctx.operand(1), 0, i);
      std::optional<Sizes> known = ctx.intValues(element);
      if (!known) { // 0 copies the operand's size
        Value zero = b.compare(CompareKind::EQ, element, 0);
        element = b.convert(element, b.getI64Type());
        Value copied = i < int64_t(in.size()) ? b.sizeValue(in[i]) : b.scalar(b.getI64Type(), 0);
        data.push_back(ctx.getInt("allowzero", 0) ? element : Value(b.select(zero, copied, element)));
      } else {
        AffineExpr size = known->front();
        if (getConstantSize(size) == 0 && !ctx.getInt("allowzero", 0) && i < int64_t(in.size()))
          size = in[i];
        data.push_back(b.sizeValue(size));
      }
    }
    // -1 is what the others leave of the operand.
    Value others = b.scalar(b.getI64Type(), 1);
    for (Value v : data)
      others = b.mul(others, b.select(b.compare(CompareKind::EQ, v, -1), b.splatLike(v, 1), v));
    Value rest = b.div(b.sizeValue(total), others);
    for (Value v : data)
      if (std::optional<Sizes> known = ctx.intValues(v); known && getConstantSize(known->front()) != -1)
        out.push_back(known->front());
      else
        out.push_back(b.bindSymbol("reshape", b.select(b.compare(CompareKind::EQ, v, -1), rest, v)));
    FailureOr<Value> result = ctx.reshape(x, out);
    return failed(result) ? failure() : ctx.result(*result);
  }
  bool allowZero = ctx.getInt("allowzero", 0);
  std::optional<size_t> inferred;
  AffineExpr known = b.size(1);
  for (size_t i = 0; i < out.size(); ++i) {
    auto constant = getConstantSize(out[i]);
    if (constant == -1) {
      if (inferred)
        return ctx.invalid("the shape has -1 twice");
      inferred = i;
      continue;
    }
    if (constant == 0 && !allowZero) {
      if (i >= in.size())
        return ctx.invalid("the shape copies size " + Twine(i) + " of an operand of rank " + Twine(in.size()));
      out[i] = in[i];
    } else if (constant && *constant < 0) {
      return ctx.invalid("the shape has the size " + Twine(*constant));
    }
    known = simplifySize(known * out[i]);
  }
  auto totalConstant = getConstantSize(total), knownConstant = getConstantSize(known);
  if (inferred) {
    if (totalConstant && knownConstant && *knownConstant != 0 && *totalConstant % *knownConstant != 0)
      return ctx.invalid("the operand " + describe(x) + " can't be divided into blocks of " + Twine(*knownConstant));
    out[*inferred] = knownConstant == 0 ? b.size(0) : ctx.divide(total, known);
  } else if (totalConstant && knownConstant && *totalConstant != *knownConstant) {
    return ctx.invalid("the shape has " + Twine(*knownConstant) + " elements, the operand " + describe(x) + " has " +
                       Twine(*totalConstant));
  }
  FailureOr<Value> result = ctx.reshape(x, out);
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult flatten(NodeContext &ctx) {
  Value x = ctx.operand(0);
  Sizes in = getSizes(x);
  int64_t rank = in.size(), axis = ctx.getInt("axis", 1);
  if (axis < -rank || axis > rank)
    return ctx.invalid("axis " + Twine(axis) + " is outside a tensor of rank " + Twine(rank));
  if (axis < 0)
    axis += rank;
  MLIRContext *context = ctx.b.getContext();
  return ctx.result(ctx.b.reshape(
      x, {product(context, SizesRef(in).take_front(axis)), product(context, SizesRef(in).drop_front(axis))}));
}

/// Whether operand i is a list of axes that only the run knows.
bool hasUnknownAxes(NodeContext &ctx, size_t i) { return ctx.has(i) && !ctx.constantInts(ctx.operand(i)); }

/// The `count` of sizes that are not 1, in order; a run in which they are more or fewer is refused.
Sizes sizesOtherThanOne(NodeContext &ctx, SizesRef sizes, int64_t count) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  Value extents = b.sizesValue(sizes), kept = b.compare(CompareKind::NE, extents, 1), ones = b.convert(kept, i64);
  b.guard(b.reduce(ReduceKind::Sum, ones, {0}), count,
          "node \"" + ctx.node().getNodeName() + "\": Squeeze without axes does not give the declared rank " +
              Twine(count) + "; give axes, or fix sizes by --dim or --shape");
  if (count == 0)
    return {};
  Value before = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/true, /*reverse=*/false);
  Sizes grid{b.size(count), b.size(sizes.size())};
  auto wide = [&](Value v) { return b.broadcastTo(v, grid); };
  Value here = b.binary<AndOp>(wide(kept), b.compare(CompareKind::EQ, b.iota(i64, grid, 0), wide(before)));
  Value found = b.select(here, wide(extents), b.splat(i64, grid, 0));
  return bindSizes(b, "kept", b.reduce(ReduceKind::Sum, found, {1}), {0, INT64_MAX});
}

LogicalResult squeeze(NodeContext &ctx) {
  Value x = ctx.operand(0);
  Sizes in = getSizes(x), out;
  if (hasUnknownAxes(ctx, 1)) {
    FailureOr<AxisList> list = AxisList::get(ctx, ctx.operand(1), in.size());
    if (failed(list))
      return failure();
    if (int64_t(in.size()) > list->count())
      out = bindSizes(ctx.b, "kept", list->dropListed(ctx.b.sizesValue(in)), {0, INT64_MAX});
    FailureOr<Value> result = ctx.reshape(x, out);
    return failed(result) ? failure() : ctx.result(*result);
  }
  auto given = ctx.intsOf("axes", 1);
  if (failed(given))
    return failure();
  SmallVector<int64_t> axes;
  if (*given) {
    FailureOr<SmallVector<int64_t>> normal = ctx.axes(**given, in.size());
    if (failed(normal))
      return failure();
    axes = *normal;
    for (int64_t axis : axes)
      if (auto size = getConstantSize(in[axis]); size && *size != 1)
        return ctx.invalid("dim " + Twine(axis) + " of the operand " + describe(x) + " is not 1");
    for (int64_t axis : axes)
      if (failed(ctx.requireEqual(in[axis], ctx.b.size(1), "size 1 in dim " + Twine(axis))))
        return failure();
  } else {
    // The result's rank is fixed here. What the model declares decides; else a size that only the run knows stays, and
    // a run in which it is 1 is refused.
    SmallVector<int64_t> open;
    for (auto [i, size] : llvm::enumerate(in)) {
      auto [low, high] = ctx.b.bounds(size);
      if (low == 1 && high == 1)
        axes.push_back(i);
      else if (low <= 1 && high >= 1)
        open.push_back(i);
    }
    auto declared = dyn_cast<RankedTensorType>(ctx.node().getOutputs()[0].getType());
    int64_t toDrop = declared ? int64_t(in.size()) - declared.getRank() - int64_t(axes.size()) : 0;
    if (toDrop < 0 || toDrop > int64_t(open.size()))
      return ctx.invalid("the model declares a result of rank " + Twine(declared.getRank()) + " for the operand " +
                         describe(x));
    if (toDrop > 0 && toDrop < int64_t(open.size()))
      return ctx.result(ctx.b.reshape(x, sizesOtherThanOne(ctx, in, declared.getRank())));
    for (int64_t axis : open) {
      if (toDrop == 0) {
        ctx.b.guard(ctx.b.compare(CompareKind::EQ, ctx.b.sizeValue(in[axis]), 1), 0,
                    "node \"" + ctx.node().getNodeName() +
                        "\": Squeeze without axes was compiled for sizes other than 1 in dim " + Twine(axis) +
                        "; give axes, or fix the size by --dim or --shape");
        continue;
      }
      if (failed(ctx.requireEqual(in[axis], ctx.b.size(1), "size 1 in dim " + Twine(axis))))
        return failure();
      axes.push_back(axis);
    }
  }
  for (auto [i, size] : llvm::enumerate(in))
    if (!llvm::is_contained(axes, int64_t(i)))
      out.push_back(size);
  return ctx.result(ctx.b.reshape(x, out));
}

LogicalResult unsqueeze(NodeContext &ctx) {
  Value x = ctx.operand(0);
  Sizes in = getSizes(x), out;
  // Before anything is made for each dim: the length of a list may be any number.
  auto refuseRank = [&](int64_t added) {
    return ctx.unsupported("to " + Twine(saturatingAdd(added, in.size())) + " dims is not supported; at most " +
                           Twine(kMaxRank) + " are");
  };
  if (hasUnknownAxes(ctx, 1)) {
    auto type = ctx.b.typeOf(ctx.operand(1));
    int64_t added = type.getRank() == 1 && type.hasStaticShape() ? type.getDimSize(0) : 0;
    if (added > kMaxRank)
      return refuseRank(added);
    FailureOr<AxisList> list = AxisList::get(ctx, ctx.operand(1), in.size() + added);
    if (failed(list))
      return failure();
    Value extents = in.empty() ? Value() : ctx.b.sizesValue(in);
    out = extents ? bindSizes(ctx.b, "size", list->insertOnes(extents), {0, INT64_MAX}) : Sizes(added, ctx.b.size(1));
    return ctx.result(ctx.b.reshape(x, out));
  }
  auto given = ctx.intsOf("axes", 1);
  if (failed(given))
    return failure();
  if (!*given)
    return ctx.invalid("axes are missing");
  if ((*given)->size() > kMaxRank)
    return refuseRank((*given)->size());
  int64_t rank = in.size() + (*given)->size();
  FailureOr<SmallVector<int64_t>> axes = ctx.axes(**given, rank);
  if (failed(axes))
    return failure();
  for (int64_t i = 0, next = 0; i < rank; ++i)
    out.push_back(llvm::is_contained(*axes, i) ? ctx.b.size(1) : in[next++]);
  return ctx.result(ctx.b.reshape(x, out));
}

LogicalResult transpose(NodeContext &ctx) {
  Value x = ctx.operand(0);
  int64_t rank = ctx.b.rankOf(x);
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto given = ctx.getInts("perm"))
    permutation = *given;
  return ctx.result(ctx.b.transpose(x, permutation));
}

LogicalResult concat(NodeContext &ctx) {
  SmallVector<Value> inputs(ctx.allOperands());
  for (Value v : inputs)
    if (!v || ctx.b.rankOf(v) != ctx.b.rankOf(inputs.front()) || ctx.b.elementOf(v) != ctx.b.elementOf(inputs.front()))
      return ctx.invalid("operands differ in rank or element type");
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 1), ctx.b.rankOf(inputs.front()));
  if (failed(axis))
    return failure();
  FailureOr<Value> all = emitConcat(ctx, inputs, *axis);
  return failed(all) ? failure() : ctx.result(*all);
}

LogicalResult split(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), b.rankOf(x));
  if (failed(axis))
    return failure();
  AffineExpr extent = getSizes(x)[*axis];
  Sizes parts;
  if (auto given = ctx.getInts("split")) {
    parts = b.sizes(*given);
  } else if (ctx.has(1)) {
    Value given = ctx.operand(1);
    if (b.isFloat(given)) // Split-1
      given = b.convert(given, b.getI64Type());
    FailureOr<Sizes> sizes = ctx.requireSizes(given, "split");
    if (failed(sizes))
      return failure();
    parts = *sizes;
  } else {
    int64_t count = ctx.numResults();
    if (int64_t outputs = ctx.getInt("num_outputs", count); outputs != count)
      return ctx.invalid("num_outputs is " + Twine(outputs) + ", but the node has " + Twine(count) + " results");
    AffineExpr chunk = simplifySize(extent.ceilDiv(count));
    parts.assign(count, chunk);
    parts.back() = simplifySize(extent - chunk * (count - 1));
    if (auto last = getConstantSize(parts.back()); last && *last < 0)
      return ctx.invalid("dim " + Twine(*axis) + " of " + describe(x) + " can't be split in " + Twine(count));
  }
  if (parts.size() != ctx.numResults())
    return ctx.invalid("split has " + Twine(parts.size()) + " sizes for " + Twine(ctx.numResults()) + " results");
  AffineExpr start = b.size(0), sum = b.size(0);
  for (AffineExpr part : parts) {
    if (getConstantSize(part).value_or(0) < 0)
      return ctx.invalid("a split size is negative");
    sum = simplifySize(sum + part);
  }
  if (getConstantSize(sum) && getConstantSize(extent) && sum != extent)
    return ctx.invalid("the split sizes do not add up to dim " + Twine(*axis) + " of " + describe(x));
  if (failed(ctx.requireEqual(sum, extent, "parts that add up to dim " + Twine(*axis))))
    return failure();
  for (auto [i, part] : llvm::enumerate(parts)) {
    (void)ctx.set(i, b.sliceDim(x, *axis, start, part));
    start = simplifySize(start + part);
  }
  return success();
}

/// `v` as a value and what is added to it: a constant, the same for all elements.
std::pair<Value, int64_t> baseOf(Value v) {
  auto add = v.getDefiningOp<AddOp>();
  if (!add)
    return {v, 0};
  for (unsigned i : {0, 1}) {
    Value constant = add->getOperand(i);
    while (constant.getDefiningOp() && isa<BroadcastOp, ReshapeOp>(constant.getDefiningOp()))
      constant = constant.getDefiningOp()->getOperand(0);
    if (DenseIntElementsAttr number = getConstantIndices(constant); number && number.isSplat())
      return {add->getOperand(1 - i), number.getSplatValue<APInt>().getSExtValue()};
  }
  return {v, 0};
}

/// How far all ends lie behind their starts, if that is one number: slices of a loop that begin at data often have a
/// fixed length.
std::optional<int64_t> lengthOf(Value starts, Value ends) {
  auto [from, first] = baseOf(starts);
  auto [to, last] = baseOf(ends);
  int64_t length;
  if (from != to || llvm::SubOverflow(last, first, length) || length < 0)
    return std::nullopt;
  return length;
}

/// Starts or ends whose number only the run knows as a list of known length: of the axes or steps, if the node has
/// them, else of `most`, where those that are not given take the dim `whole`.
FailureOr<Value> castBounds(NodeContext &ctx, Value v, int64_t most, int64_t whole) {
  PrimBuilder &b = ctx.b;
  if (b.rankOf(v) != 1 || b.typeOf(v).hasStaticShape())
    return v;
  for (size_t i : {3, 4})
    if (ctx.has(i) && b.rankOf(ctx.operand(i)) == 1 && b.typeOf(ctx.operand(i)).hasStaticShape())
      return ctx.castSizes(v, getSizes(ctx.operand(i)));
  const bool isNarrow = b.elementOf(v).isInteger(32);
  Value beyond = b.convert(b.sizeValue(b.size(isNarrow ? std::min<int64_t>(whole, INT32_MAX) : whole)), b.elementOf(v));
  return b.pad(v, beyond, Sizes{b.size(0)}, Sizes{b.size(most)});
}

/// Slice with axes or steps that only the run knows: each dim is read at start + i * step, whatever they are.
LogicalResult sliceByData(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  int64_t rank = sizes.size();
  auto type = b.typeOf(ctx.operand(1));
  if (rank == 0 || type.getRank() != 1 || !type.hasStaticShape() || type.getDimSize(0) > rank)
    return ctx.invalid("starts must be a 1-D tensor with one element for each axis, but is " +
                       describe(ctx.operand(1)));
  Value axes = ctx.has(3) ? ctx.operand(3) : b.constantI64s(llvm::to_vector(llvm::seq<int64_t>(0, type.getDimSize(0))));
  FailureOr<AxisList> list = AxisList::get(ctx, axes, rank);
  if (failed(list))
    return failure();
  for (size_t i : {1, 2, 4})
    if (ctx.has(i) && b.typeOf(ctx.operand(i)).getShape() != ArrayRef<int64_t>{list->count()})
      return ctx.invalid("starts, ends, axes and steps differ in length");
  Value extent = b.sizesValue(sizes), zero = b.splatLike(extent, 0), one = b.splatLike(extent, 1);
  Value step = ctx.has(4) ? list->spread(ctx.operand(4), one) : one;
  // Steps as long as the dim, or longer, take one element; arithmetic with the longest ones would wrap.
  Value longest = b.max(extent, one);
  step = b.min(b.max(step, b.sub(zero, longest)), longest);
  Value isBackward = b.compare(CompareKind::LT, step, 0), minusOne = b.splatLike(extent, -1);
  Value last = b.add(extent, b.select(isBackward, minusOne, zero));
  auto clamp = [&](Value v, Value low) {
    v = b.select(b.compare(CompareKind::LT, v, 0), b.add(v, extent), v);
    return b.min(b.max(v, low), last);
  };
  Value start = clamp(list->spread(ctx.operand(1), zero), zero);
  Value end = clamp(list->spread(ctx.operand(2), extent), b.select(isBackward, minusOne, zero));
  Value sign = b.select(isBackward, minusOne, one);
  Value count = b.max(b.div(b.sub(b.add(b.sub(end, start), step), sign), step), zero);
  for (int64_t i = 0; i < rank; ++i) {
    AffineExpr size = b.bindSymbol("slice", b.take(count, 0, i), 0, b.bounds(sizes[i]).second);
    auto all = [&](Value v) { return b.broadcastTo(b.take(v, 0, i), {size}); };
    x = GatherOp::create(b, x, b.add(all(start), b.mul(b.iota(b.getI64Type(), {size}, 0), all(step))), i);
  }
  return ctx.result(x);
}

LogicalResult slice(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  int64_t rank = sizes.size();
  if (ctx.opset() >= 10 && ctx.has(2) && (hasUnknownAxes(ctx, 3) || hasUnknownAxes(ctx, 4)))
    return sliceByData(ctx);
  SmallVector<SliceBound> starts, ends;
  SmallVector<int64_t> axes, steps;
  std::optional<int64_t> length;
  if (ctx.opset() < 10) {
    for (int64_t v : ctx.getInts("starts").value_or(SmallVector<int64_t>()))
      starts.push_back({b.size(v), {}});
    for (int64_t v : ctx.getInts("ends").value_or(SmallVector<int64_t>()))
      ends.push_back({b.size(v), {}});
    axes = ctx.getInts("axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, starts.size())));
    steps.assign(starts.size(), 1);
  } else {
    length = lengthOf(ctx.operand(1), ctx.operand(2));
    int64_t most = rank;
    for (size_t i : {1, 2})
      if (b.rankOf(ctx.operand(i)) == 1)
        most = std::min(most, b.bounds(getSizes(ctx.operand(i))[0]).second);
    for (auto [i, bounds] : {std::pair(1, &starts), std::pair(2, &ends)}) {
      FailureOr<Value> cast = castBounds(ctx, ctx.operand(i), most, i == 1 ? 0 : INT64_MAX);
      if (failed(cast))
        return failure();
      Value operand = *cast;
      auto type = b.typeOf(operand);
      if (type.getRank() != 1 || !type.hasStaticShape() || !isa<IntegerType>(type.getElementType()) ||
          type.getDimSize(0) > rank)
        return ctx.invalid("starts and ends must be 1-D integer tensors with one element for each axis");
      for (int64_t i = 0; i < type.getDimSize(0); ++i) {
        Value element = b.take(operand, 0, i);
        std::optional<Sizes> known = ctx.intValues(element);
        bounds->push_back({known ? known->front() : AffineExpr(), element});
      }
    }
    auto givenAxes = ctx.intsOf("axes", 3), givenSteps = ctx.intsOf("steps", 4);
    if (failed(givenAxes) || failed(givenSteps))
      return failure();
    axes = givenAxes->value_or(llvm::to_vector(llvm::seq<int64_t>(0, starts.size())));
    steps = givenSteps->value_or(SmallVector<int64_t>(starts.size(), 1));
  }
  FailureOr<SmallVector<int64_t>> normal = ctx.axes(axes, rank);
  if (failed(normal))
    return failure();
  if (starts.size() != ends.size() || starts.size() != normal->size() || starts.size() != steps.size())
    return ctx.invalid("starts, ends, axes and steps differ in length");
  Sizes from(rank, b.size(0));
  SmallVector<int64_t> by(rank, 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0)
      return ctx.invalid("a step is 0");
    int64_t axis = (*normal)[i];
    FailureOr<SliceDim> dim = resolveSlice(ctx, x, sizes[axis], starts[i], ends[i], steps[i], length);
    if (failed(dim))
      return failure();
    from[axis] = dim->start;
    sizes[axis] = dim->count;
    // One element, or none, is taken whatever the step is.
    const bool takesOne = saturatingAbs(steps[i]) >= kLongestStep || b.bounds(dim->count).second <= 1;
    by[axis] = takesOne ? 1 : steps[i];
  }
  return ctx.result(b.slice(x, from, by, sizes));
}

LogicalResult gather(NodeContext &ctx) {
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), ctx.b.rankOf(ctx.operand(0)));
  if (failed(axis))
    return failure();
  // One known index is a slice, which later passes see through.
  if (auto index = ctx.constantInts(ctx.operand(1)); index && index->size() == 1 && ctx.b.rankOf(ctx.operand(1)) == 0) {
    AffineExpr extent = getSizes(ctx.operand(0))[*axis];
    if (auto size = getConstantSize(extent)) {
      int64_t i = index->front() < 0 ? index->front() + *size : index->front();
      if (i < 0 || i >= *size)
        return ctx.invalid("index " + Twine(index->front()) + " is outside dim " + Twine(*axis) + " of " +
                           describe(ctx.operand(0)));
      return ctx.result(ctx.b.take(ctx.operand(0), *axis, i));
    }
  }
  if (failed(requireInside(ctx, ctx.operand(1), getSizes(ctx.operand(0))[*axis])))
    return failure();
  return ctx.result(GatherOp::create(ctx.b, ctx.operand(0), ctx.operand(1), *axis));
}

LogicalResult gatherElements(NodeContext &ctx) {
  Value source = ctx.operand(0), indices = ctx.operand(1);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), ctx.b.rankOf(source));
  if (failed(axis))
    return failure();
  Sizes in = getSizes(source), of = getSizes(indices);
  for (size_t i = 0; i < in.size(); ++i)
    if (int64_t(i) != *axis &&
        failed(ctx.require(CompareKind::LE, of[i], in[i], "indices that are no larger in dim " + Twine(i))))
      return failure();
  if (failed(requireInside(ctx, indices, in[*axis])))
    return failure();
  return ctx.result(GatherElementsOp::create(ctx.b, withElementType(indices.getType(), ctx.b.elementOf(source)), source,
                                             indices, *axis));
}

LogicalResult gatherND(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value source = ctx.operand(0), indices = ctx.operand(1);
  int64_t batch = ctx.getInt("batch_dims", 0), rank = b.rankOf(indices);
  auto depth = getConstantSize(getSizes(indices).back());
  if (!depth)
    return ctx.unsupported("with indices whose last size is unknown is not supported");
  if (batch < 0 || batch >= rank || batch + *depth > b.rankOf(source))
    return ctx.invalid("indices " + describe(indices) + " name more dims than the operand " + describe(source) +
                       " has");
  Sizes in = getSizes(source), of = getSizes(indices), out(of.begin(), of.end() - 1);
  for (int64_t i = 0; i < batch; ++i)
    if (failed(ctx.requireEqual(of[i], in[i], "equal sizes in batch dim " + Twine(i))))
      return failure();
  out.append(in.begin() + batch + *depth, in.end());
  if (*depth > 0 && failed(requireInside(ctx, indices, SizesRef(in).slice(batch, *depth))))
    return failure();
  return ctx.result(GatherNDOp::create(b, makeType(b.elementOf(source), out), source, indices, batch));
}

/// `reduction` of the scatters; nullopt is "none".
std::optional<ReduceKind> readReduction(NodeContext &ctx) {
  return llvm::StringSwitch<std::optional<ReduceKind>>(ctx.getString("reduction", "none"))
      .Case("add", ReduceKind::Sum)
      .Case("mul", ReduceKind::Prod)
      .Case("max", ReduceKind::Max)
      .Case("min", ReduceKind::Min)
      .Default(std::nullopt);
}

/// Whether a scatter of complex numbers is more than one of their parts.
bool mixesParts(NodeContext &ctx, std::optional<ReduceKind> kind) {
  return kind && *kind != ReduceKind::Sum && ctx.b.isComplex(ctx.operand(0));
}

ReduceKindAttr asAttr(NodeContext &ctx, std::optional<ReduceKind> kind) {
  return kind ? ReduceKindAttr::get(ctx.b.getContext(), *kind) : ReduceKindAttr();
}

LogicalResult scatterND(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value source = ctx.operand(0), indices = ctx.operand(1), updates = ctx.operand(2);
  const std::optional<ReduceKind> kind = readReduction(ctx);
  const int64_t rank = b.rankOf(indices);
  auto depth = getConstantSize(getSizes(indices).back());
  if (!depth)
    return ctx.unsupported("with indices whose last size is unknown is not supported");
  if (*depth > b.rankOf(source))
    return ctx.invalid("indices " + describe(indices) + " name more dims than the operand has");
  Sizes expected = getSizes(indices), in = getSizes(source);
  expected.pop_back();
  expected.append(in.begin() + *depth, in.end());
  FailureOr<Value> same = ctx.castSizes(updates, expected);
  if (failed(same) || (*depth > 0 && failed(requireInside(ctx, indices, SizesRef(in).take_front(*depth)))))
    return failure();
  if (mixesParts(ctx, kind)) {
    MLIRContext *context = b.getContext();
    AffineExpr count = product(context, SizesRef(expected).take_front(rank - 1));
    AffineExpr length = product(context, SizesRef(in).drop_front(*depth));
    Value list = b.reshape(indices, {count, b.size(*depth)});
    SmallVector<Value> parts;
    for (int64_t i = 0; i < *depth; ++i)
      parts.push_back(b.take(list, 1, i));
    SizesRef named = SizesRef(in).take_front(*depth);
    Value result = emitComplexScatter(ctx, *kind, b.reshape(source, {product(context, named), length}),
                                      emitPlaces(b, parts, named, {count}), b.reshape(*same, {count, length}));
    return ctx.result(b.reshape(result, in));
  }
  return ctx.result(ScatterNDOp::create(b, source.getType(), source, indices, *same, asAttr(ctx, kind)));
}

LogicalResult scatterElements(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value source = ctx.operand(0), indices = ctx.operand(1), updates = ctx.operand(2);
  const std::optional<ReduceKind> kind = readReduction(ctx);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), b.rankOf(source));
  if (failed(axis))
    return failure();
  Sizes in = getSizes(source), of = getSizes(indices);
  for (size_t i = 0; i < in.size(); ++i)
    if (int64_t(i) != *axis &&
        failed(ctx.require(CompareKind::LE, of[i], in[i], "indices that are no larger in dim " + Twine(i))))
      return failure();
  FailureOr<Value> same = ctx.castSizes(updates, of);
  if (failed(same) || failed(requireInside(ctx, indices, in[*axis])))
    return failure();
  if (mixesParts(ctx, kind)) {
    SmallVector<Value> parts;
    for (int64_t i = 0; i < int64_t(in.size()); ++i)
      parts.push_back(i == *axis ? indices : b.iota(b.getI64Type(), of, i));
    AffineExpr count = product(b.getContext(), of), all = product(b.getContext(), in);
    Value places = b.reshape(emitPlaces(b, parts, in, of), {count});
    Value result = emitComplexScatter(ctx, *kind, b.reshape(source, {all, b.size(1)}), places,
                                      b.reshape(*same, {count, b.size(1)}));
    return ctx.result(b.reshape(result, in));
  }
  return ctx.result(ScatterElementsOp::create(b, source.getType(), source, indices, *same, *axis, asAttr(ctx, kind)));
}

LogicalResult expand(NodeContext &ctx) {
  FailureOr<Sizes> target = ctx.requireSizes(ctx.operand(1), "the shape");
  if (failed(target))
    return failure();
  Sizes in = getSizes(ctx.operand(0));
  FailureOr<Sizes> sizes = ctx.broadcastSizes({in, *target});
  if (failed(sizes))
    return failure();
  return ctx.result(ctx.b.broadcastTo(ctx.operand(0), *sizes));
}

LogicalResult tile(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes in = getSizes(x);
  Value counts = ctx.operand(1);
  if (ctx.opset() < 6) { // a number of copies, and the axis along which they stand
    Type i64 = b.getI64Type();
    Value axis = ctx.operand(2);
    for (Value *v : {&counts, &axis}) {
      if (!*v || in.empty())
        return ctx.invalid("needs an operand with a dim, and tiles and axis of one element each");
      FailureOr<Value> one = ctx.scalar(*v, "tiles and axis");
      if (failed(one))
        return failure();
      *v = b.broadcastTo(b.convert(*one, i64), {b.size(in.size())});
    }
    axis = b.select(b.compare(CompareKind::LT, axis, 0), b.binary<AddOp>(axis, double(in.size())), axis);
    Value isAxis = b.compare(CompareKind::EQ, b.iota(i64, getSizes(axis), 0), axis);
    counts = b.select(isAxis, counts, b.splatLike(counts, 1));
  }
  FailureOr<Sizes> repeats = ctx.requireSizes(counts, "repeats");
  if (failed(repeats))
    return failure();
  // [d] as [1, d], repeated to [r, d], read as [r * d].
  Sizes split, repeated, joined;
  for (auto [r, d] : llvm::zip_equal(*repeats, in)) {
    if (getConstantSize(r) != 1) {
      split.push_back(b.size(1));
      repeated.push_back(r);
    }
    split.push_back(d);
    repeated.push_back(d);
    joined.push_back(simplifySize(r * d));
  }
  return ctx.result(b.reshape(b.broadcastTo(b.reshape(x, split), repeated), joined));
}

/// The pad value of Pad-11 and later, a 0-D tensor.
FailureOr<Value> padValue(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type type = b.elementOf(ctx.operand(0));
  Value value = ctx.has(2) ? ctx.operand(2) : b.scalar(type, 0);
  return ctx.scalar(value, "the pad value");
}

LogicalResult pad(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), value;
  Sizes pads;
  int64_t rank = b.rankOf(x);
  std::string mode = ctx.getString("mode", "constant");
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (ctx.opset() < 11) {
    pads = b.sizes(*ctx.getInts(ctx.opset() < 2 ? "paddings" : "pads"));
    value = b.scalar(b.elementOf(x), ctx.getFloat("value", 0));
  } else {
    Value amounts = ctx.operand(1);
    if (hasUnknownAxes(ctx, 3) && rank > 0) {
      FailureOr<AxisList> list = AxisList::get(ctx, ctx.operand(3), rank);
      if (failed(list))
        return failure();
      if (b.typeOf(amounts).getShape() != ArrayRef<int64_t>{2 * list->count()})
        return ctx.invalid("pads must have two elements for each axis, but are " + describe(amounts));
      Value none = b.constantI64s(SmallVector<int64_t>(rank, 0));
      auto half = [&](int64_t from) {
        return list->spread(b.sliceDim(amounts, 0, b.size(from), b.size(list->count())), none);
      };
      amounts = b.concat({half(0), half(list->count())}, 0);
    } else if (ctx.has(3)) {
      auto given = ctx.intsOf("axes", 3);
      if (failed(given))
        return failure();
      FailureOr<SmallVector<int64_t>> normal = ctx.axes(**given, rank);
      if (failed(normal))
        return failure();
      axes = *normal;
    }
    FailureOr<Sizes> given = ctx.requireSizes(amounts, "pads", INT32_MIN);
    FailureOr<Value> scalar = padValue(ctx);
    if (failed(given) || failed(scalar))
      return failure();
    pads = *given;
    value = *scalar;
  }
  if (pads.size() != 2 * axes.size())
    return ctx.invalid("pads has " + Twine(pads.size()) + " elements for " + Twine(axes.size()) + " axes");
  Sizes low(rank, b.size(0)), high(rank, b.size(0));
  for (auto [i, axis] : llvm::enumerate(axes)) {
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
  }
  FailureOr<Value> result = emitPad(ctx, x, low, high, value, mode);
  return failed(result) ? failure() : ctx.result(*result);
}

/// The middle of the operand, or the operand in the middle of zeros, in each of the axes.
LogicalResult centerCropPad(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x), low(sizes.size(), b.size(0));
  FailureOr<Sizes> targets = ctx.requireSizes(ctx.operand(1), "the shape");
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
  FailureOr<SmallVector<int64_t>> axes = ctx.axes(ctx.getInts("axes").value_or(all), sizes.size());
  if (failed(targets) || failed(axes))
    return failure();
  if (targets->size() != axes->size())
    return ctx.invalid("the shape has " + Twine(targets->size()) + " elements for " + Twine(axes->size()) + " axes");
  for (auto [axis, target] : llvm::zip_equal(*axes, *targets)) {
    // Half of what is added or cut, rounded towards zero.
    AffineExpr more = simplifySize(target - sizes[axis]), fewer = simplifySize(sizes[axis] - target);
    if (b.bounds(more).first >= 0)
      low[axis] = simplifySize(more.floorDiv(2));
    else if (b.bounds(fewer).first >= 0)
      low[axis] = simplifySize(-fewer.floorDiv(2));
    else
      low[axis] =
          b.bindSymbol("pad", b.binary<DivOp>(b.sub(b.sizeValue(target), b.sizeValue(sizes[axis])), 2), INT64_MIN);
    sizes[axis] = target;
  }
  return ctx.result(b.pad(x, b.scalar(b.elementOf(x), 0), low, sizes));
}

LogicalResult depthToSpace(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes s = getSizes(x);
  int64_t block = ctx.getInt("blocksize", 0);
  auto channels = getConstantSize(s[1]);
  if (channels && *channels % (block * block) != 0)
    return ctx.invalid("blocksize does not divide the " + Twine(*channels) + " channels");
  AffineExpr c = simplifySize(s[1].floorDiv(block * block)), k = b.size(block);
  std::string mode = ctx.getString("mode", "DCR");
  bool dcr = mode == "DCR";
  FailureOr<Value> split = ctx.reshape(x, dcr ? Sizes{s[0], k, k, c, s[2], s[3]} : Sizes{s[0], c, k, k, s[2], s[3]});
  if (failed(split))
    return failure();
  Value moved = b.transpose(*split, dcr ? ArrayRef<int64_t>{0, 3, 4, 1, 5, 2} : ArrayRef<int64_t>{0, 1, 4, 2, 5, 3});
  return ctx.result(b.reshape(moved, {s[0], c, s[2] * block, s[3] * block}));
}

LogicalResult spaceToDepth(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes s = getSizes(x);
  int64_t block = ctx.getInt("blocksize", 0);
  for (int64_t i : {2, 3})
    if (auto size = getConstantSize(s[i]); size && *size % block != 0)
      return ctx.invalid("blocksize does not divide dim " + Twine(i) + " of " + describe(x));
  AffineExpr h = simplifySize(s[2].floorDiv(block)), w = simplifySize(s[3].floorDiv(block)), k = b.size(block);
  for (auto [i, part] : {std::pair(2, h), std::pair(3, w)})
    if (failed(ctx.requireEqual(part * block, s[i], "a blocksize that divides dim " + Twine(i))))
      return failure();
  Value split = b.reshape(x, {s[0], s[1], h, k, w, k});
  // DCR: the block's offset varies slowest in the channels. CRD: fastest.
  std::string mode = ctx.getString("mode", "DCR");
  Value moved =
      b.transpose(split, mode == "DCR" ? ArrayRef<int64_t>{0, 3, 5, 1, 2, 4} : ArrayRef<int64_t>{0, 1, 3, 5, 2, 4});
  return ctx.result(b.reshape(moved, {s[0], s[1] * (block * block), h, w}));
}

} // namespace

void tc::populateONNXMovement(OpRegistrar &onOp) {
  onOp("Reshape", 1, reshape);
  onOp("Flatten", 1, flatten);
  onOp("Squeeze", 1, squeeze);
  onOp("Unsqueeze", 1, unsqueeze);
  onOp("Transpose", 1, transpose);
  onOp("Concat", 1, concat);
  onOp("Split", 1, split);
  onOp("Slice", 1, slice);
  onOp("Gather", 1, gather, 2);
  onOp("GatherElements", 11, gatherElements, 2);
  onOp("GatherND", 11, gatherND, 2);
  onOp("Scatter", 9, scatterElements, 3);
  onOp("ScatterElements", 11, scatterElements, 3);
  onOp("ScatterND", 11, scatterND, 3);
  onOp("Expand", 8, expand, 2);
  onOp("Tile", 1, tile, 2);
  onOp("Pad", 1, pad);
  onOp("CenterCropPad", 18, centerCropPad, 2);
  onOp("DepthToSpace", 1, depthToSpace);
  onOp("SpaceToDepth", 1, spaceToDepth);
  onOp.takeComplex(ComplexUse::Moved, {"Reshape",  "Flatten", "Squeeze",         "Unsqueeze",    "Transpose",
                                       "Concat",   "Split",   "Slice",           "Gather",       "GatherElements",
                                       "GatherND", "Scatter", "ScatterElements", "ScatterND",    "Expand",
                                       "Tile",     "Pad",     "CenterCropPad",   "DepthToSpace", "SpaceToDepth"});
}
