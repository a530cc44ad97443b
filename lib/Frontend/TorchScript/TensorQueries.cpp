//===- TensorQueries.cpp - what TorchScript's code asks of tensors ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"
#include "ScalarTypes.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

namespace {

bool isTensor(Values args, size_t count) { return args.size() == count && args[0].isTensor(); }

Result size(Interpreter &in, Values args, Position at) {
  if (isTensor(args, 2)) {
    PyValue dim = in.resolve(args[1]);
    return dim.is(Kind::Int) ? in.sizeOf(args[0], dim.integer, at)
                             : in.refuse("size", at, "the number of a dimension is known to a run alone", dim);
  }
  if (!isTensor(args, 1))
    return in.decline();
  std::optional<RankedTensorType> type = in.typeOf(args[0], at);
  if (!type)
    return std::nullopt;
  std::vector<PyValue> sizes;
  for (int64_t i = 0; i < type->getRank(); ++i) {
    Result size = in.sizeOf(args[0], i, at);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return in.makeList(std::move(sizes), "int");
}

Result dim(Interpreter &in, Values args, Position at) {
  if (!isTensor(args, 1))
    return in.decline();
  std::optional<RankedTensorType> type = in.typeOf(args[0], at);
  return type ? Result(PyValue::ofInt(type->getRank())) : std::nullopt;
}

Result len(Interpreter &in, Values args, Position at) {
  if (args.size() != 1)
    return in.decline();
  if (args[0].isTensor())
    return in.sizeOf(args[0], 0, at);
  if (args[0].is(Kind::String))
    return PyValue::ofInt(int64_t(args[0].held->text.size()));
  if (args[0].is(Kind::List) || args[0].is(Kind::Tuple) || args[0].is(Kind::Dict))
    return PyValue::ofInt(int64_t(args[0].held->items.size()));
  return in.fail(at, "the length of " + describe(args[0]) + " is asked for, which has none");
}

Result numel(Interpreter &in, Values args, Position at) {
  if (!isTensor(args, 1))
    return in.decline();
  Result sizes = size(in, args, at);
  if (!sizes)
    return std::nullopt;
  PyValue product = PyValue::ofInt(1);
  for (const PyValue &size : sizes->held->items) {
    Result next = in.arithmetic("mul", product, size, at);
    if (!next)
      return std::nullopt;
    product = *next;
  }
  return product;
}

template <bool (*test)(Type)> Result testType(Interpreter &in, Values args, Position at) {
  if (!isTensor(args, 1))
    return in.decline();
  std::optional<RankedTensorType> type = in.typeOf(args[0], at);
  return type ? Result(PyValue::ofBool(test(type->getElementType()))) : std::nullopt;
}
bool isFloat(Type type) { return isa<FloatType>(type); }
bool isComplex(Type type) { return isa<ComplexType>(type); }
bool isSigned(Type type) { return !type.isUnsignedInteger() && !type.isInteger(1); }

Result isQuantized(Interpreter &in, Values args, Position) {
  return isTensor(args, 1) ? Result(PyValue::ofBool(in.isQuantized(args[0]))) : in.decline();
}

template <int value> Result answer(Interpreter &, Values, Position) { return PyValue::ofBool(value); }

Result stride(Interpreter &in, Values args, Position at) {
  if (args.empty() || !args[0].isTensor())
    return in.decline();
  return in.refuse("stride", at,
                   "the model asks how a tensor lies in memory, which is not known before it is compiled; use "
                   "reshape, or operators that do not depend on strides");
}

Result item(Interpreter &in, Values args, Position at) {
  if (!isTensor(args, 1))
    return in.decline();
  std::optional<RankedTensorType> type = in.typeOf(args[0], at);
  if (!type)
    return std::nullopt;
  Type element = type->getElementType();
  return in.toNumber(args[0],
                     isa<FloatType>(element) ? Kind::SymFloat
                     : element.isInteger(1)  ? Kind::SymBool
                                             : Kind::SymInt,
                     at);
}

Result isNonzero(Interpreter &in, Values args, Position at) {
  return isTensor(args, 1) ? in.toNumber(args[0], Kind::SymBool, at) : in.decline();
}

Result unwrap(Interpreter &in, Values args, Position at) {
  if (args.size() != 1)
    return in.decline();
  return args[0].isNone() ? in.raise(at, "a value is None that must not be") : Result(args[0]);
}

Result device(Interpreter &in, Values args, Position) {
  if (args.empty() || !args[0].is(Kind::String))
    return in.decline();
  return in.makeDevice(args[0].held->text);
}

Result refuseGradient(Interpreter &in, Values, Position at) {
  return in.refuse("grad", at,
                   "the model computes gradients, which is not supported here; export a training step with "
                   "torch.export");
}

/// torch.tensor of numbers and nested lists of them.
Result tensor(Interpreter &in, Values args, Position at) {
  if (args.empty())
    return in.decline();
  std::vector<PyValue> flat;
  llvm::SmallVector<int64_t> shape;
  // Level by level, so that depth needs no stack.
  std::vector<PyValue> level{args[0]};
  while (!level.empty() && level[0].is(Kind::List)) {
    int64_t count = int64_t(level[0].held->items.size());
    std::vector<PyValue> next;
    for (const PyValue &list : level) {
      if (!list.is(Kind::List) || int64_t(list.held->items.size()) != count)
        return in.raise(at, "torch.tensor of lists of several lengths");
      next.insert(next.end(), list.held->items.begin(), list.held->items.end());
    }
    shape.push_back(count);
    if (shape.size() > 16)
      return in.refuse("tensor", at, "torch.tensor of lists that nest deeper than 16");
    level = std::move(next);
  }
  flat = std::move(level);
  bool allBool = true, allInt = true, allKnown = true;
  for (PyValue &value : flat) {
    value = in.resolve(value);
    if (value.isTensor()) {
      allKnown = allBool = false;
      continue;
    }
    if (!value.isScalar())
      return in.refuse("tensor", at, "torch.tensor of " + describe(value) + " is not supported; give numbers");
    allBool &= value.is(Kind::Bool) || value.is(Kind::SymBool);
    allInt &= value.isIntLike();
    allKnown &= value.isNumber();
  }
  Builder &b = in.builder;
  Type element = flat.empty() ? Type(b.getF32Type())
                 : allBool    ? Type(b.getI1Type())
                 : allInt     ? Type(b.getI64Type())
                              : Type(b.getF32Type());
  if (flat.empty() && args[0].held && args[0].held->text == "int")
    element = b.getI64Type();
  bool hasType = args.size() > 1 && args[1].is(Kind::Int);
  if (hasType)
    element = typeOfCode(b.getContext(), args[1].integer);
  if (!element)
    return in.refuse("tensor", at, "torch.tensor of an element type that tc does not know");
  if (!allKnown) {
    std::vector<PyValue> parts;
    for (const PyValue &value : flat) {
      PyValue part = PyValue::ofGraph(Kind::Tensor, in.materialize(value));
      Result converted = in.callATen(
          "to", {part, PyValue::ofInt(*codeOfType(element)), PyValue::ofBool(false), PyValue::ofBool(false), PyValue()},
          {}, at);
      if (!converted)
        return std::nullopt;
      parts.push_back(*converted);
    }
    if (shape.empty())
      return parts[0];
    Result stacked = in.callATen("stack", {in.makeList(parts, "Tensor"), PyValue::ofInt(0)}, {}, at);
    if (!stacked || shape.size() == 1)
      return stacked;
    std::vector<PyValue> sizes;
    for (int64_t size : shape)
      sizes.push_back(PyValue::ofInt(size));
    return in.callATen("reshape", {*stacked, in.makeList(sizes, "int")}, {}, at);
  }
  auto type = RankedTensorType::get(shape, element);
  llvm::SmallVector<Attribute> elements;
  for (const PyValue &value : flat) {
    if (auto f = dyn_cast<FloatType>(element)) {
      APFloat number(value.asDouble());
      bool loses;
      number.convert(f.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
      elements.push_back(FloatAttr::get(f, number));
    } else if (auto i = dyn_cast<IntegerType>(element)) {
      int64_t number = value.is(Kind::Float) ? int64_t(value.number) : value.integer;
      if (i.getWidth() == 1)
        number = value.asDouble() != 0;
      elements.push_back(IntegerAttr::get(i, APInt(64, uint64_t(number)).zextOrTrunc(i.getWidth())));
    } else {
      return in.refuse("tensor", at, "torch.tensor of complex numbers is not supported; make them with torch.complex");
    }
  }
  auto data = base::fromDense(DenseElementsAttr::get(type, elements));
  auto made = graph::ConstantOp::create(in.builder, in.locationOf("tensor", at), type, data);
  made->setAttr(graph::kFreshAttr, in.builder.getUnitAttr());
  PyValue result = PyValue::ofGraph(Kind::Tensor, made);
  if (shape.empty() && element.isInteger(64)) {
    result.held = in.newHeld();
    result.held->items = {PyValue::ofInt(flat[0].is(Kind::Float) ? int64_t(flat[0].number) : flat[0].integer)};
  }
  return result;
}

/// The sizes as a tensor, which traces of models that ask for them while they are exported hold.
Result shapeAsTensor(Interpreter &in, Values args, Position at) {
  Result sizes = size(in, args, at);
  return sizes ? tensor(in, *sizes, at) : std::nullopt;
}

Result nothing(Interpreter &, Values, Position) { return PyValue(); }

} // namespace

void tc::torchscript::addTensorQueries(llvm::StringMap<Interpreter::HostOperator> &table) {
  table["aten::size"] = table["aten::sym_size"] = size;
  table["prim::shape"] = size;
  table["aten::dim"] = table["prim::ndim"] = dim;
  table["aten::len"] = len;
  table["aten::numel"] = numel;
  table["aten::_shape_as_tensor"] = shapeAsTensor;
  table["aten::is_floating_point"] = testType<isFloat>;
  table["aten::is_complex"] = testType<isComplex>;
  table["aten::is_signed"] = testType<isSigned>;
  table["aten::stride"] = table["aten::storage_offset"] = table["aten::data_ptr"] = stride;
  // Where values lie is no part of what they are.
  table["aten::is_contiguous"] = table["prim::is_cpu"] = table["prim::is_leaf"] = answer<1>;
  for (StringRef name : {"prim::is_cuda",
                         "prim::is_xpu",
                         "prim::is_mps",
                         "prim::is_xla",
                         "prim::is_mkldnn",
                         "prim::is_sparse",
                         "prim::is_sparse_csr",
                         "prim::is_nested",
                         "prim::is_meta",
                         "prim::is_vulkan",
                         "prim::is_ort",
                         "prim::is_ipu",
                         "prim::is_hpu",
                         "prim::is_mtia",
                         "prim::is_maia",
                         "prim::requires_grad",
                         "aten::is_grad_enabled",
                         "aten::is_autocast_enabled",
                         "aten::is_autocast_cpu_enabled",
                         "aten::is_scripting",
                         "aten::_get_tracing_state",
                         "aten::has_torch_function"})
    table[name] = answer<0>;
  table["prim::is_quantized"] = isQuantized;
  table["aten::is_scripting"] = answer<1>;
  table["aten::item"] = item;
  table["aten::ScalarImplicit"] = item;
  table["aten::is_nonzero"] = isNonzero;
  table["aten::_unwrap_optional"] = table["prim::unchecked_unwrap_optional"] = unwrap;
  table["aten::device"] = device;
  table["aten::tensor"] = table["aten::as_tensor"] = tensor;
  table["aten::backward"] = table["aten::grad"] = table["aten::autograd"] = refuseGradient;
  table["aten::set_grad_enabled"] = table["aten::manual_seed"] = table["aten::requires_grad_"] = nothing;
}

Result Interpreter::callPrim(StringRef name, Values args, NamedValues, Position at, bool &isKnown) {
  isKnown = true;
  if (name == "RaiseException") {
    std::string text = args.empty() ? "an exception" : toText(args[0]).value_or("an exception");
    return raise(at, StringRef(text).trim().empty() ? "an exception" : text);
  }
  if (args.size() == 1 && (name == "data" || name == "unchecked_cast"))
    return name == "data" ? callATen("detach", args, {}, at) : args[0];
  if (args.size() == 1 && name == "NumToTensor") {
    PyValue number = resolve(args[0]);
    if (number.isTensor())
      return number;
    if (!number.isScalar())
      return fail(at, describe(number) + " is made a tensor");
    if (number.isSymbolic())
      return PyValue::ofGraph(Kind::Tensor, number.graph);
    PyValue result = PyValue::ofHeld(Kind::Tensor, newHeld());
    result.held->items = {number};
    return result;
  }
  if (args.size() == 1 && args[0].isTensor()) {
    if (name == "device")
      return makeDevice("cpu");
    if (name == "dtype" && isQuantized(args[0]))
      return PyValue::ofInt(quantized.lookup(args[0].graph).dtype);
    if (name == "dtype" || name == "itemsize") {
      std::optional<RankedTensorType> type = typeOf(args[0], at);
      if (!type)
        return std::nullopt;
      if (name == "itemsize")
        return PyValue::ofInt(int64_t(base::getPackedBitWidth(type->getElementType()).value_or(8)) / 8);
      std::optional<int64_t> code = codeOfType(type->getElementType());
      return code ? Result(PyValue::ofInt(*code)) : fail(at, "a tensor has an element type that PyTorch has not");
    }
    if (name == "layout" || name == "grad" || name == "names" || name == "name")
      return name == "layout" ? PyValue::ofInt(0) : PyValue();
  }
  if (args.size() == 1 && args[0].is(Kind::Device) && (name == "type" || name == "index")) {
    auto [type, index] = StringRef(args[0].held->text).split(':');
    int64_t number;
    if (name == "type")
      return makeString(type);
    return index.getAsInteger(10, number) ? PyValue() : PyValue::ofInt(number);
  }
  if (name == "TupleUnpack" || name == "ListUnpack")
    return args[0];
  isKnown = false;
  return std::nullopt;
}
