//===- Decompositions.cpp - operators that only traces hold, by others --------------------------------------------===//
//
// In evaluation PyTorch's modules of attention call fused operators, which torch.export takes apart and a trace keeps.
// Source: aten/src/ATen/native/transformers/attention.cpp and transformer.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"

#include <cmath>
#include <limits>

using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;

namespace {

/// Calls in a row; what follows a failure does nothing.
class Chain {
public:
  Chain(Interpreter &in, Position at) : in(in), at(at) {}

  PyValue operator()(StringRef name, Values args) {
    Result value = isFailed ? std::nullopt : in.callATen(name, args, {}, at);
    isFailed |= !value;
    return value.value_or(PyValue());
  }
  PyValue size(const PyValue &tensor, int64_t dim) {
    Result value = isFailed ? std::nullopt : in.sizeOf(tensor, dim, at);
    isFailed |= !value;
    return value.value_or(PyValue());
  }
  PyValue sizes(std::vector<PyValue> values) { return in.makeList(std::move(values), "int"); }
  bool hasFailed() const { return isFailed; }

private:
  Interpreter &in;
  Position at;
  bool isFailed = false;
};

/// Attention over [B, L, E], with the weights of the three projections in one.
struct Attention {
  PyValue width, heads, weight, bias, outWeight, outBias;
  PyValue hidden; ///< what queries do not see: bools that broadcast to [B, heads, L, L], or None

  /// The result, and what each query weighs each key with, where `weights` is given.
  PyValue operator()(Chain &call, Values qkv, PyValue *weights = nullptr) const;
};

PyValue Attention::operator()(Chain &call, Values qkv, PyValue *weights) const {
  std::vector<PyValue> parts;
  const int64_t all = width.integer, each = all / heads.integer;
  // What is projected from one tensor is one product, as it is where PyTorch writes the layer out.
  for (size_t first = 0, last = 0; first < 3 && !call.hasFailed(); first = last) {
    do
      ++last;
    while (last < 3 && qkv[last].graph && qkv[last].graph == qkv[first].graph);
    const int64_t count = int64_t(last - first);
    auto ofParts = [&](const PyValue &rows) {
      if (count == 3 || rows.isNone())
        return rows;
      return call("narrow",
                  {rows, PyValue::ofInt(0), PyValue::ofInt(int64_t(first) * all), PyValue::ofInt(count * all)});
    };
    PyValue projected = call("linear", {qkv[first], ofParts(weight), ofParts(bias)});
    PyValue split = call("reshape", {projected, call.sizes({call.size(qkv[first], 0), call.size(qkv[first], 1),
                                                            PyValue::ofInt(count), heads, PyValue::ofInt(each)})});
    for (int64_t i = 0; i < count; ++i) {
      PyValue part = call("select", {split, PyValue::ofInt(2), PyValue::ofInt(i)});
      parts.push_back(call("transpose", {part, PyValue::ofInt(1), PyValue::ofInt(2)}));
    }
  }
  if (call.hasFailed())
    return PyValue();
  // Rows that are hidden whole are NaN here, and 0 in scaled_dot_product_attention.
  PyValue shares;
  if (weights || !hidden.isNone()) {
    PyValue query = call("mul", {parts[0], PyValue::ofFloat(1 / std::sqrt(double(each)))});
    PyValue scores = call("matmul", {query, call("transpose", {parts[1], PyValue::ofInt(-2), PyValue::ofInt(-1)})});
    if (!hidden.isNone())
      scores = call("masked_fill", {scores, hidden, PyValue::ofFloat(-std::numeric_limits<double>::infinity())});
    shares = call("softmax", {scores, PyValue::ofInt(-1)});
  }
  PyValue mixed = hidden.isNone() ? call("scaled_dot_product_attention", parts) : call("matmul", {shares, parts[2]});
  if (weights)
    *weights = shares;
  PyValue moved = call("transpose", {mixed, PyValue::ofInt(1), PyValue::ofInt(2)});
  PyValue joined = call("reshape", {moved, call.sizes({call.size(qkv[0], 0), call.size(qkv[0], 1), width})});
  return call("linear", {joined, outWeight, outBias});
}

} // namespace

const Interpreter::Nested *Interpreter::findNested(const PyValue &value) const {
  auto found = value.is(Kind::Tensor) && value.graph ? nested.find(value.graph) : nested.end();
  return found == nested.end() ? nullptr : &found->second;
}

Result Interpreter::makeNested(const PyValue &padded, const PyValue &mask, Position at) {
  Result place = callATen("clone", {padded}, {}, at);
  if (place)
    nested[place->graph] = {padded, mask};
  return place;
}

/// Whether what is there in each row of `mask` stands before what is not.
PyValue Interpreter::isLeftAligned(const PyValue &mask, Position at) {
  Chain call(*this, at);
  PyValue seen = call("cumprod", {mask, PyValue::ofInt(1)});
  PyValue aligned = call("all", {call("eq", {seen, mask})});
  Result holds = call.hasFailed() ? std::nullopt : toNumber(aligned, Kind::SymBool, at);
  return holds.value_or(PyValue());
}

Result Interpreter::decompose(StringRef name, Values args, Position at) {
  auto argument = [&](size_t i, PyValue otherwise) { return i < args.size() ? args[i] : otherwise; };
  auto hasHeads = [&](const PyValue &width, const PyValue &heads) {
    return width.is(Kind::Int) && heads.is(Kind::Int) && heads.integer > 0 && width.integer % heads.integer == 0;
  };
  Chain call(*this, at);
  // A mask of floats hides where it is not 0. Kinds: 0 of queries and keys, 1 of the keys of a batch, 2 of all.
  auto hiddenBy = [&](const PyValue &mask, const PyValue &kind) {
    if (mask.isNone())
      return PyValue();
    PyValue hidden = call("ne", {mask, PyValue::ofInt(0)});
    if (kind.is(Kind::Int) && kind.integer == 1)
      for (int64_t dim : {1, 1})
        hidden = call("unsqueeze", {hidden, PyValue::ofInt(dim)});
    return hidden;
  };
  auto isMask = [&](const PyValue &mask, const PyValue &kind) {
    return mask.isNone() || (mask.isTensor() && kind.is(Kind::Int) && kind.integer >= 0 && kind.integer <= 2);
  };
  if (name == "_nested_tensor_from_mask_left_aligned" && args.size() == 2) {
    PyValue holds = isLeftAligned(args[1], at);
    if (holds.isNone())
      return std::nullopt;
    // Code that asks goes on with tensors of several lengths, which others can't be made.
    if (!holds.is(Kind::Bool))
      emitAssert(holds, "a padding mask hides what stands before what it shows; move the padding to the end", at);
    return holds.is(Kind::Bool) ? holds : PyValue::ofBool(true);
  }
  if (name == "_nested_tensor_from_mask" && args.size() >= 2) {
    PyValue holds = isLeftAligned(args[1], at);
    if (holds.isNone())
      return std::nullopt;
    if (!holds.is(Kind::Bool))
      emitAssert(holds, "a padding mask hides what stands before what it shows; move the padding to the end", at);
    else if (!holds.integer)
      return raise(at, "a padding mask hides what stands before what it shows");
    return makeNested(args[0], args[1], at);
  }
  if (name == "_native_multi_head_attention" && args.size() >= 9 && hasHeads(args[3], args[4]) &&
      isMask(argument(9, {}), argument(12, {})) &&
      !llvm::any_of(args.take_front(3), [&](const PyValue &v) { return findNested(v); })) {
    const PyValue gives = argument(10, PyValue::ofBool(true)), isMean = argument(11, PyValue::ofBool(true));
    if (!gives.is(Kind::Bool) || !isMean.is(Kind::Bool))
      return std::nullopt;
    PyValue weights;
    Attention attend{args[3], args[4], args[5], args[6], args[7], args[8], hiddenBy(argument(9, {}), argument(12, {}))};
    PyValue result = attend(call, args.take_front(3), gives.integer ? &weights : nullptr);
    if (gives.integer && isMean.integer)
      weights = call("mean", {weights, call.sizes({PyValue::ofInt(1)})});
    return call.hasFailed() ? std::nullopt : Result(makeTuple({result, weights}));
  }
  if (name == "_transformer_encoder_layer_fwd" && args.size() >= 18 && hasHeads(args[1], args[2]) &&
      args[7].is(Kind::Bool) && args[8].is(Kind::Bool) && isMask(argument(18, {}), argument(19, {}))) {
    std::optional<Nested> rows;
    if (const Nested *found = findNested(args[0]))
      rows = *found;
    bool isNormFirst = args[8].integer;
    auto norm = [&](const PyValue &x, size_t weight) {
      return call("layer_norm", {x, call.sizes({args[1]}), args[weight], args[weight + 1], args[9]});
    };
    PyValue source = rows ? rows->padded : args[0];
    PyValue hidden = hiddenBy(argument(18, {}), argument(19, {}));
    if (rows) {
      if (!hidden.isNone())
        return std::nullopt;
      hidden = hiddenBy(call("logical_not", {rows->mask}), PyValue::ofInt(1));
    }
    PyValue x = isNormFirst ? norm(source, 10) : source;
    PyValue qkv[] = {x, x, x};
    Attention attend{args[1], args[2], args[3], args[4], args[5], args[6], hidden};
    x = call("add", {attend(call, qkv), source});
    if (!isNormFirst)
      x = norm(x, 10);
    PyValue before = x;
    if (isNormFirst)
      x = norm(x, 12);
    x = call("linear", {x, args[14], args[15]});
    x = call(args[7].integer ? "gelu" : "relu", {x});
    x = call("add", {call("linear", {x, args[16], args[17]}), before});
    if (!isNormFirst)
      x = norm(x, 12);
    if (call.hasFailed())
      return std::nullopt;
    return rows ? makeNested(x, rows->mask, at) : Result(x);
  }
  return std::nullopt;
}

/// Operators on tensors whose rows have several lengths: to_padded_tensor, and a refusal of all others.
Result Interpreter::callNested(StringRef name, Values args, Position at) {
  const Nested *rows = args.empty() ? nullptr : findNested(args[0]);
  if (!rows || name != "to_padded_tensor" || args.size() < 3 || !args[2].is(Kind::List))
    return refuseCall(("aten::" + name).str(), args, at,
                      "of a nested tensor is not supported; trace the model after "
                      "torch.backends.mha.set_fastpath_enabled(False)");
  const Nested found = *rows;
  const std::vector<PyValue> wanted = args[2].held->items;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Result size = sizeOf(found.padded, int64_t(i), at);
    Result same = size ? equal(*size, wanted[i], at) : std::nullopt;
    if (!same)
      return std::nullopt;
    if (same->is(Kind::Bool) && !same->integer)
      return refuseCall("aten::to_padded_tensor", args, at,
                        "to other sizes than before is not supported; trace the model after "
                        "torch.backends.mha.set_fastpath_enabled(False)");
    if (!same->is(Kind::Bool))
      emitAssert(*same, "a nested tensor is padded to other sizes than it had", at);
  }
  Chain call(*this, at);
  PyValue absent = call("unsqueeze", {call("logical_not", {found.mask}), PyValue::ofInt(-1)});
  PyValue result = call("masked_fill", {found.padded, absent, args[1]});
  return call.hasFailed() ? std::nullopt : Result(result);
}
