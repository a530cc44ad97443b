//===- QuantizedCalls.cpp - quantised tensors of eager PyTorch ----------------------------------------------------===//
//
// A quantised tensor is the integers that it holds, of which the interpreter remembers scales and zero points.
// Operators on one become those on floats between the conversions of quantized_decomposed, which the conversion makes
// products of bytes of. What PyTorch computes of them differs between its own engines in the last step of a scale, and
// so it may here. All operators that are not listed are refused: none takes the integers for numbers.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Interpreter.h"

#include "tc/Frontend/Torch/ScalarType.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

static const char kRemedy[] =
    "quantise the model by PT2E for torch.export, or export it to ONNX with QuantizeLinear and "
    "DequantizeLinear";

/// Operators on one tensor whose result PyTorch holds by the same scale.
static const char *const kKept[] = {"relu",
                                    "relu6",
                                    "hardtanh",
                                    "clamp",
                                    "max_pool1d",
                                    "max_pool2d",
                                    "max_pool3d",
                                    "avg_pool2d",
                                    "avg_pool3d",
                                    "adaptive_avg_pool1d",
                                    "adaptive_avg_pool2d",
                                    "adaptive_avg_pool3d",
                                    "mean",
                                    "upsample_nearest2d",
                                    "upsample_bilinear2d",
                                    "flatten",
                                    "reshape",
                                    "view",
                                    "squeeze",
                                    "unsqueeze",
                                    "transpose",
                                    "permute",
                                    "select",
                                    "slice",
                                    "contiguous",
                                    "clone",
                                    "detach",
                                    "dropout"};

namespace {

/// The integers that a quantised type holds: least, largest, and PyTorch's number of their type; nullopt of others.
struct IntegerRange {
  int64_t least, most, code;
};
std::optional<IntegerRange> rangeOf(int64_t dtype) {
  switch (torch::ScalarType(dtype)) {
  case torch::ScalarType::QUInt8:
    return IntegerRange{0, 255, int64_t(torch::ScalarType::Byte)};
  case torch::ScalarType::QInt8:
    return IntegerRange{-128, 127, int64_t(torch::ScalarType::Char)};
  case torch::ScalarType::QInt32:
    return IntegerRange{INT32_MIN, INT32_MAX, int64_t(torch::ScalarType::Int)};
  default:
    return std::nullopt;
  }
}

} // namespace

bool Interpreter::isQuantized(const PyValue &value, int levels) const {
  if (value.graph)
    return quantized.count(value.graph) > 0;
  return levels > 0 && (value.is(Kind::List) || value.is(Kind::Tuple)) &&
         llvm::any_of(value.held->items, [&](const PyValue &item) { return isQuantized(item, levels - 1); });
}

PyValue Interpreter::markQuantized(PyValue integers, const Quantized &how) {
  quantized[integers.graph] = how;
  return integers;
}

Result Interpreter::dequantize(const PyValue &value, Position at) {
  const Quantized how = quantized.lookup(value.graph);
  const std::optional<IntegerRange> range = rangeOf(how.dtype);
  std::vector<PyValue> args{value, how.scale, how.zero};
  if (how.axis)
    args.push_back(PyValue::ofInt(*how.axis));
  for (int64_t number : {range->least, range->most, range->code})
    args.push_back(PyValue::ofInt(number));
  return callATen(how.axis ? "quantized_decomposed::dequantize_per_channel"
                           : "quantized_decomposed::dequantize_per_tensor",
                  args, {}, at);
}

Result Interpreter::quantize(const PyValue &value, Quantized how, Position at) {
  const std::optional<IntegerRange> range = rangeOf(how.dtype);
  if (!range || how.axis || value.graph == nullptr)
    return refuseCall("aten::quantize_per_tensor", value, at,
                      Twine("to such a type or of such a value is not supported; ") + kRemedy);
  // Numbers, or tensors of one element.
  if (!how.scale.isNumber() || !how.zero.isNumber())
    for (PyValue *number : {&how.scale, &how.zero})
      if (!number->isTensor())
        *number = PyValue::ofGraph(Kind::Tensor, materialize(*number));
  Result integers = callATen("quantized_decomposed::quantize_per_tensor",
                             {value, how.scale, how.zero, PyValue::ofInt(range->least), PyValue::ofInt(range->most),
                              PyValue::ofInt(range->code)},
                             {}, at);
  return integers && integers->graph ? Result(markQuantized(*integers, how)) : integers;
}

Result Interpreter::callQuantized(StringRef domain, StringRef name, Values args, NamedValues named, Position at) {
  const std::string full = (domain + "::" + name).str();
  auto refuseThis = [&] {
    return refuseCall(full, args, at, Twine("on quantised tensors is not supported; ") + kRemedy);
  };
  std::vector<PyValue> all(args.begin(), args.end());
  for (const NamedValue &value : named)
    all.push_back(value.value);
  auto isOne = [&](size_t i) { return i < all.size() && all[i].graph && isQuantized(all[i]); };
  if (domain == "aten") {
    if (name == "quantize_per_tensor" && all.size() == 4 && !isOne(0) && all[3].is(Kind::Int))
      return quantize(all[0], {resolve(all[1]), resolve(all[2]), {}, all[3].integer}, at);
    if (name == "dequantize" && all.size() == 1 && all[0].isTensor())
      return isOne(0) ? dequantize(all[0], at) : Result(all[0]);
    const bool isKept = llvm::is_contained(kKept, name) && isOne(0) &&
                        llvm::none_of(llvm::drop_begin(all), [&](const PyValue &v) { return isQuantized(v); });
    const Quantized how = isOne(0) ? quantized.lookup(all[0].graph) : Quantized();
    if (!isKept || how.axis)
      return refuseThis();
    Result value = dequantize(all[0], at);
    if (!value)
      return std::nullopt;
    std::vector<PyValue> given(args.begin(), args.end());
    given[0] = *value;
    Result result = callATen(name, given, named, at);
    return result && result->isTensor() ? quantize(*result, how, at) : result;
  }

  if (name == "linear_prepack" || (name.starts_with("conv") && name.ends_with("d_prepack"))) {
    Held *packed = newHeld();
    packed->text = full;
    packed->items = all;
    return PyValue::ofHeld(Kind::Object, packed);
  }
  const bool hasRelu = name.consume_back("_relu");
  Result value;
  auto relu = [&](Result x) { return x && hasRelu ? callATen("relu", *x, {}, at) : x; };
  if (name == "linear" || name == "conv1d" || name == "conv2d" || name == "conv3d") {
    const PyValue packed = all.size() == 4 ? all[1] : PyValue();
    const size_t count = name == "linear" ? 2 : 6;
    if (!isOne(0) || !packed.is(Kind::Object) || packed.held->text != ("quantized::" + name + "_prepack").str() ||
        packed.held->items.size() != count || !packed.held->items[0].graph || !isQuantized(packed.held->items[0]))
      return refuseThis();
    std::vector<PyValue> operands = packed.held->items;
    Result x = dequantize(all[0], at), weight = dequantize(operands[0], at);
    if (!x || !weight)
      return std::nullopt;
    operands[0] = *weight;
    operands.insert(operands.begin(), *x);
    value = relu(callATen(name, operands, {}, at));
  } else if (name == "add" || name == "mul") {
    if (all.size() != 4 || !isOne(0) || !isOne(1))
      return refuseThis();
    Result a = dequantize(all[0], at), b = dequantize(all[1], at);
    if (!a || !b)
      return std::nullopt;
    value = relu(callATen(name, {*a, *b}, {}, at));
  } else if (name == "cat" && all.size() == 4 && all[0].is(Kind::List) && all[2].isScalar() && all[3].isScalar()) {
    std::vector<PyValue> parts;
    for (const PyValue &part : all[0].held->items) {
      Result x = part.graph && isQuantized(part) ? dequantize(part, at) : std::nullopt;
      if (!x)
        return hasFailed() || hasRaised() ? std::nullopt : refuseThis();
      parts.push_back(*x);
    }
    value = relu(callATen("cat", {makeList(parts, "Tensor"), all[1]}, {}, at));
  } else {
    return refuseThis();
  }
  if (!value)
    return std::nullopt;
  return quantize(*value, {resolve(all[2]), resolve(all[3]), {}, int64_t(torch::ScalarType::QUInt8)}, at);
}
