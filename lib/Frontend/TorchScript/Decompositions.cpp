//===- Decompositions.cpp - operators that only traces hold, by others --------------------------------------------===//
//
// In evaluation PyTorch's modules of attention call fused operators, which torch.export takes apart and a trace keeps.
// Source: aten/src/ATen/native/transformers/attention.cpp and transformer.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"

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

/// Attention without a mask over [B, L, E], with the weights of the three projections in one.
PyValue attend(Chain &call, Values qkv, const PyValue &width, const PyValue &heads, const PyValue &weight,
               const PyValue &bias, const PyValue &outWeight, const PyValue &outBias) {
  PyValue weights = call("chunk", {weight, PyValue::ofInt(3), PyValue::ofInt(0)});
  PyValue biases = bias.isNone() ? PyValue() : call("chunk", {bias, PyValue::ofInt(3), PyValue::ofInt(0)});
  std::vector<PyValue> parts;
  for (size_t i = 0; i < 3 && !call.hasFailed(); ++i) {
    PyValue projected =
        call("linear", {qkv[i], weights.held->items[i], bias.isNone() ? PyValue() : biases.held->items[i]});
    PyValue split = call("reshape", {projected, call.sizes({call.size(qkv[i], 0), call.size(qkv[i], 1), heads,
                                                            PyValue::ofInt(width.integer / heads.integer)})});
    parts.push_back(call("transpose", {split, PyValue::ofInt(1), PyValue::ofInt(2)}));
  }
  if (call.hasFailed())
    return PyValue();
  PyValue mixed = call("scaled_dot_product_attention", parts);
  PyValue moved = call("transpose", {mixed, PyValue::ofInt(1), PyValue::ofInt(2)});
  PyValue joined = call("reshape", {moved, call.sizes({call.size(qkv[0], 0), call.size(qkv[0], 1), width})});
  return call("linear", {joined, outWeight, outBias});
}

} // namespace

Result Interpreter::decompose(StringRef name, Values args, Position at) {
  auto isPlain = [&](size_t mask) {
    if (args.size() <= mask || args[mask].isNone())
      return true;
    fail(at, "aten::" + name +
                 " with a mask is not supported; trace the model after "
                 "torch.backends.mha.set_fastpath_enabled(False)");
    return false;
  };
  auto hasHeads = [&](const PyValue &width, const PyValue &heads) {
    return width.is(Kind::Int) && heads.is(Kind::Int) && heads.integer > 0 && width.integer % heads.integer == 0;
  };
  Chain call(*this, at);
  if (name == "_native_multi_head_attention" && args.size() >= 11 && hasHeads(args[3], args[4])) {
    if (!isPlain(9))
      return std::nullopt;
    if (!args[10].is(Kind::Bool) || args[10].integer)
      return fail(at, "aten::" + name +
                          " that gives its weights is not supported; call the module with "
                          "need_weights=False");
    PyValue result = attend(call, args.take_front(3), args[3], args[4], args[5], args[6], args[7], args[8]);
    return call.hasFailed() ? std::nullopt : Result(makeTuple({result, PyValue()}));
  }
  if (name == "_transformer_encoder_layer_fwd" && args.size() >= 18 && hasHeads(args[1], args[2]) &&
      args[7].is(Kind::Bool) && args[8].is(Kind::Bool)) {
    if (!isPlain(18))
      return std::nullopt;
    bool isNormFirst = args[8].integer;
    auto norm = [&](const PyValue &x, size_t weight) {
      return call("layer_norm", {x, call.sizes({args[1]}), args[weight], args[weight + 1], args[9]});
    };
    PyValue x = isNormFirst ? norm(args[0], 10) : args[0];
    PyValue qkv[] = {x, x, x};
    x = call("add", {attend(call, qkv, args[1], args[2], args[3], args[4], args[5], args[6]), args[0]});
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
    return call.hasFailed() ? std::nullopt : Result(x);
  }
  return std::nullopt;
}
