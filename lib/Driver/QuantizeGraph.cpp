//===- QuantizeGraph.cpp - bytes around the products of a graph ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "QuantizeGraph.h"
#include "InnerOutputs.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

static constexpr StringLiteral kOnnx = "ai.onnx";
/// The first opset whose quantisations have an axis.
static constexpr int64_t kAxisOpset = 13;

//===--- finding products -----------------------------------------------------------------------------------------===//

/// The operand that PyTorch's schema calls `name`.
static std::optional<unsigned> findOperand(graph::NodeOp node, StringRef name) {
  auto names = dyn_cast_or_null<ArrayAttr>(node.getNodeAttr("arg_names"));
  for (auto [i, attr] : llvm::enumerate(names ? names.getValue() : ArrayRef<Attribute>()))
    if (auto text = dyn_cast<StringAttr>(attr); text && text.getValue() == name && i < node.getInputs().size())
      return i;
  return std::nullopt;
}

/// The operands of the product that `node` is: input, weight, bias, the dim of the weight's channels, counted from the
/// last if negative.
static std::optional<Product> matchProduct(graph::NodeOp node) {
  Product product;
  product.node = node;
  if (node->getNumResults() != 1 || node.getCallee())
    return std::nullopt;
  const StringRef type = node.getOpType();
  if (node.getDomain() == kOnnx) {
    if (node.getInputs().size() < 2)
      return std::nullopt;
    if (node.hasInput(2))
      product.bias = 2;
    if (type == "Conv") {
      product.isConv = true;
      return product;
    }
    if (type == "MatMul") {
      product.bias.reset();
      product.axis = -1;
      return product;
    }
    if (type != "Gemm" || node.getInt("transA", 0))
      return std::nullopt;
    product.axis = node.getInt("transB", 0) ? 0 : 1;
    if (node.getFloat("alpha", 1) != 1 || node.getFloat("beta", 1) != 1)
      product.bias.reset();
    return product;
  }
  if (node.getDomain() != "aten")
    return std::nullopt;
  const StringRef name = type.split('.').first;
  auto take = [&](StringRef input, StringRef weight) {
    std::optional<unsigned> first = findOperand(node, input), second = findOperand(node, weight);
    if (!first || !second)
      return false;
    product.input = *first;
    product.weight = *second;
    return true;
  };
  auto isTrue = [&](StringRef attr) {
    auto value = dyn_cast_or_null<BoolAttr>(node.getNodeAttr(attr));
    return value && value.getValue();
  };
  if (name == "conv1d" || name == "conv2d" || name == "conv3d" || name == "convolution" || name == "_convolution") {
    product.isConv = true;
    product.bias = findOperand(node, "bias");
    return !isTrue("transposed") && take("input", "weight") ? std::optional(product) : std::nullopt;
  }
  if (name == "linear") {
    product.bias = findOperand(node, "bias");
    return take("input", "weight") ? std::optional(product) : std::nullopt;
  }
  product.axis = -1;
  if (((name == "mm" || name == "bmm") && take("self", "mat2")) || (name == "matmul" && take("self", "other")) ||
      (name == "addmm" && take("mat1", "mat2")))
    return product;
  return std::nullopt;
}

/// Goes from the weight to its constant, through transposes of matrices.
static bool findConstant(Product &product) {
  Value weight = product.node.getInputs()[product.weight];
  unsigned swaps = 0;
  for (auto move = weight.getDefiningOp<graph::NodeOp>(); move; move = weight.getDefiningOp<graph::NodeOp>()) {
    auto type = dyn_cast<RankedTensorType>(move.getInputs().empty() ? Type() : move.getInputs()[0].getType());
    const bool isSwap = (move.getDomain() == "aten" && move.getOpType() == "t.default") ||
                        (move.getDomain() == kOnnx && move.getOpType() == "Transpose");
    if (!isSwap || !type || type.getRank() != 2)
      return false;
    if (auto perm = move.getInts("perm"); perm && *perm != ArrayRef<int64_t>{1, 0})
      return false;
    product.moves.push_back(move);
    weight = move.getInputs()[0];
    ++swaps;
  }
  std::reverse(product.moves.begin(), product.moves.end());
  product.constant = weight.getDefiningOp<graph::ConstantOp>();
  auto data = product.constant ? dyn_cast<base::DataAttr>(product.constant.getValue()) : base::DataAttr();
  if (!data || !data.getType().getElementType().isF32() || data.getType().getRank() < 2 ||
      data.getType().getNumElements() == 0 || failed(base::getBytes(data)))
    return false;
  if (product.axis < 0)
    product.axis += data.getType().getRank();
  if (swaps % 2)
    product.axis = 1 - product.axis;
  for (int64_t i = 0; i < data.getType().getNumElements(); ++i)
    if (!std::isfinite(base::readElement<float>(*base::getBytes(data), i)))
      return false;
  return true;
}

static base::DataAttr getConstant(Value value) {
  auto constant = value ? value.getDefiningOp<graph::ConstantOp>() : graph::ConstantOp();
  auto data = constant ? dyn_cast<base::DataAttr>(constant.getValue()) : base::DataAttr();
  return data && data.getType().getElementType().isF32() && succeeded(base::getBytes(data)) ? data : base::DataAttr();
}

ProductGraph::ProductGraph(graph::FuncOp main) : main(main) {
  llvm::DenseMap<Value, size_t> numbers;
  for (graph::NodeOp node : main.getBody().getOps<graph::NodeOp>()) {
    std::optional<Product> product = matchProduct(node);
    if (!product || !findConstant(*product))
      continue;
    Value input = product->getInput();
    auto type = dyn_cast<TensorType>(input.getType());
    if (input.getDefiningOp<graph::ConstantOp>() || (type && !type.getElementType().isF32()) ||
        (!type && !isa<base::UnknownType>(input.getType())))
      continue;
    if (auto maker = input.getDefiningOp<graph::NodeOp>(); maker && maker.getOpType().starts_with("Dequantize"))
      continue; // the model is quantised there
    base::DataAttr bias = product->bias ? getConstant(node.getInput(*product->bias)) : base::DataAttr();
    if (!bias || bias.getType().getRank() != 1 ||
        bias.getType().getDimSize(0) != cast<RankedTensorType>(product->constant.getType()).getDimSize(product->axis))
      product->bias.reset();
    auto [known, isNew] = numbers.try_emplace(input, values.size());
    if (isNew)
      values.push_back(input);
    product->value = known->second;
    products.push_back(*product);
  }
}

//===--- quantisations --------------------------------------------------------------------------------------------===//

namespace {

class Writer {
public:
  Writer(graph::FuncOp main) : b(main.getContext()), body(main.getBody().front()) {
    auto opset = dyn_cast_or_null<IntegerAttr>(main.getOpsets().get(kOnnx));
    bool isOnnx = false;
    main.walk([&](graph::NodeOp node) {
      if (node.getDomain() != kOnnx)
        return;
      version = std::max<int64_t>(isOnnx ? version : kAxisOpset, node.getOpset());
      isOnnx = true;
    });
    if (!isOnnx && opset)
      version = std::max(kAxisOpset, opset.getInt());
  }

  /// `v` as bytes and back.
  Value addBytes(Value v, ByteScale scale, StringRef stem) {
    const std::string name = stem.str();
    Value factor = constant({}, b.getF32Type(), std::vector<float>{scale.scale}, name + "/scale"),
          zero = constant({}, byteType(), std::vector<uint8_t>{uint8_t(scale.zero)}, name + "/zero_point");
    if (Operation *maker = v.getDefiningOp())
      b.setInsertionPointAfter(maker);
    else
      b.setInsertionPointAfter(factor.getDefiningOp()); // behind both: each constant goes to the front
    auto type = dyn_cast<RankedTensorType>(v.getType());
    Type bytes =
        type ? Type(RankedTensorType::get(type.getShape(), byteType())) : Type(base::UnknownType::get(b.getContext()));
    auto quantized = node("QuantizeLinear", bytes, {v, factor, zero}, name, {});
    return node("DequantizeLinear", v.getType(), {quantized, factor, zero}, name, {});
  }

  /// The weight and the bias of a product as bytes and back; its moves are repeated.
  void setConstants(graph::NodeOp node, Product &product, ByteScale input) {
    auto data = cast<base::DataAttr>(product.constant.getValue());
    // Beside a scale that tells nothing, rounding the bias could.
    const bool roundsBias = product.bias && input.isKnown;
    base::DataAttr bias = roundsBias ? getConstant(product.node.getInput(*product.bias)) : base::DataAttr();
    RankedTensorType type = data.getType();
    ArrayRef<char> bytes = *base::getBytes(data);
    const int64_t channels = type.getDimSize(product.axis);
    int64_t inner = 1;
    for (int64_t size : type.getShape().drop_front(product.axis + 1))
      inner *= size;
    std::vector<float> scales(channels, 0);
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      float &largest = scales[i / inner % channels];
      largest = std::max(largest, std::abs(base::readElement<float>(bytes, i)));
    }
    constexpr float kLargestWeight = 127, kLargestBias = float(1 << 30);
    for (int64_t channel = 0; channel < channels; ++channel) {
      float &scale = scales[channel];
      scale = std::max(scale / kLargestWeight, 1e-20f);
      // Of a channel of small weights the bias decides.
      if (bias)
        scale = std::max(scale, std::abs(base::readElement<float>(*base::getBytes(bias), channel)) / kLargestBias /
                                    input.scale);
    }
    std::vector<int8_t> small(type.getNumElements());
    for (size_t i = 0; i < small.size(); ++i)
      small[i] = int8_t(std::clamp(std::nearbyint(base::readElement<float>(bytes, i) / scales[i / inner % channels]),
                                   -kLargestWeight, kLargestWeight));
    const std::string name = node.getNodeName() + "/weight";
    Value weight = constant(type.getShape(), b.getIntegerType(8), small, name + "/bytes"),
          factors = constant({channels}, b.getF32Type(), scales, name + "/scale"),
          zeros = constant({channels}, b.getIntegerType(8), std::vector<int8_t>(channels), name + "/zero_point");
    b.setInsertionPoint(node);
    NamedAttribute axis = b.getNamedAttr("axis", b.getI64IntegerAttr(product.axis));
    Value dequantized = this->node("DequantizeLinear", type, {weight, factors, zeros}, name, axis);
    for (graph::NodeOp move : product.moves) {
      Operation *copy = b.clone(*move);
      copy->setOperand(0, dequantized);
      dequantized = copy->getResult(0);
    }
    node->setOperand(product.weight, dequantized);
    if (!bias)
      return;
    std::vector<float> biasScales;
    std::vector<int32_t> whole;
    for (int64_t channel = 0; channel < channels; ++channel) {
      biasScales.push_back(scales[channel] * input.scale);
      whole.push_back(
          int32_t(std::nearbyint(base::readElement<float>(*base::getBytes(bias), channel) / biasScales.back())));
    }
    const std::string ofBias = node.getNodeName() + "/bias";
    Value sums = constant({channels}, b.getI32Type(), whole, ofBias + "/integers"),
          biasFactors = constant({channels}, b.getF32Type(), biasScales, ofBias + "/scale");
    b.setInsertionPoint(node);
    NamedAttribute first = b.getNamedAttr("axis", b.getI64IntegerAttr(0));
    node->setOperand(*product.bias, this->node("DequantizeLinear", bias.getType(), {sums, biasFactors}, ofBias, first));
  }

private:
  Type byteType() { return b.getIntegerType(8, /*isSigned=*/false); }

  template <typename T>
  Value constant(ArrayRef<int64_t> shape, Type element, const std::vector<T> &values, StringRef name) {
    const char *begin = reinterpret_cast<const char *>(values.data());
    b.setInsertionPointToStart(&body);
    return graph::ConstantOp::create(
        b, place(name),
        TypedAttr(base::makeData(RankedTensorType::get(shape, element),
                                 std::vector<char>(begin, begin + values.size() * sizeof(T)))));
  }

  Value node(StringRef type, Type result, ValueRange operands, StringRef name, ArrayRef<NamedAttribute> attrs) {
    return graph::NodeOp::create(b, place((name + "/" + type).str()), kOnnx, type, version, TypeRange(result), operands,
                                 attrs)
        ->getResult(0);
  }

  Location place(StringRef name) { return NameLoc::get(b.getStringAttr(name)); }

  OpBuilder b;
  Block &body;
  int64_t version = 21;
};

bool isNode(Operation *op, StringRef onnx, StringRef aten) {
  auto node = dyn_cast_or_null<graph::NodeOp>(op);
  return node && ((node.getDomain() == kOnnx && node.getOpType() == onnx) ||
                  (node.getDomain() == "aten" && node.getOpType() == aten));
}

} // namespace

/// Of an input of the model its own name, else that of its node.
static std::string nameOf(Value v, graph::FuncOp main) {
  if (auto node = v.getDefiningOp<graph::NodeOp>())
    return node.getNodeName();
  if (auto argument = dyn_cast<BlockArgument>(v))
    return main.getArgName(argument.getArgNumber()).str();
  return "value";
}

void tc::driver::quantizeProducts(ProductGraph &graph, ArrayRef<ByteScale> scales, const llvm::BitVector &which) {
  Writer writer(graph.main);
  std::vector<std::vector<Product *>> readers(graph.values.size());
  for (unsigned i : which.set_bits())
    readers[graph.products[i].value].push_back(&graph.products[i]);
  for (auto [number, value] : llvm::enumerate(graph.values)) {
    if (readers[number].empty())
      continue;
    const ByteScale scale = scales[number];
    const bool isOfConv = llvm::any_of(readers[number], [](Product *product) { return product->isConv; });
    // The largest of a window is that of its bytes, and what made them need not write floats for it.
    if (Operation *pool = value.getDefiningOp(); isNode(pool, "MaxPool", "max_pool2d.default") &&
                                                 pool->getNumResults() == 1 && pool->getOperand(0).hasOneUse() &&
                                                 pool->getOperand(0).getDefiningOp())
      pool->setOperand(0, writer.addBytes(pool->getOperand(0), scale, nameOf(pool->getOperand(0), graph.main)));
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : value.getUses()) {
      const bool isProduct = llvm::any_of(readers[number], [&](Product *product) {
        return use.getOwner() == product->node && use.getOperandNumber() == product->input;
      });
      // Sums beside convolutions read the bytes, too: else the value is there twice. Those of transformers carry what
      // all layers behind read, and stay.
      const bool isSum = isOfConv && (isNode(use.getOwner(), "Add", "add.Tensor") ||
                                      isNode(use.getOwner(), "MaxPool", "max_pool2d.default"));
      if (isProduct || isSum)
        uses.push_back(&use);
    }
    Value bytes = writer.addBytes(value, scale, nameOf(value, graph.main));
    for (OpOperand *use : uses)
      use->set(bytes);
    for (Product *product : readers[number])
      writer.setConstants(product->node, *product, scale);
  }
}

SmallVector<Value> tc::driver::addQuantizedTwins(ProductGraph &graph, ArrayRef<ByteScale> scales,
                                                 const llvm::BitVector &which) {
  Writer writer(graph.main);
  std::vector<Value> bytes(graph.values.size());
  SmallVector<Value> twins;
  for (unsigned i : which.set_bits()) {
    Product &product = graph.products[i];
    Value &input = bytes[product.value];
    if (!input)
      input = writer.addBytes(graph.values[product.value], scales[product.value],
                              nameOf(graph.values[product.value], graph.main));
    OpBuilder b(product.node);
    b.setInsertionPointAfter(product.node);
    auto twin = cast<graph::NodeOp>(b.clone(*product.node));
    twin->setOperand(product.input, input);
    writer.setConstants(twin, product, scales[product.value]);
    twins.push_back(twin->getResult(0));
  }
  return twins;
}

void tc::driver::setOutputs(graph::FuncOp main, ArrayRef<Value> values, bool keepOwn) {
  Operation *yield = main.getBody().front().getTerminator();
  Builder b(main.getContext());
  SmallVector<Value> all;
  std::vector<Attribute> attrs;
  for (unsigned i = 0; keepOwn && i < main.getNumResults(); ++i) {
    all.push_back(yield->getOperand(i));
    DictionaryAttr ofResult = main.getResultAttrDict(i);
    attrs.push_back(ofResult ? ofResult : b.getDictionaryAttr({}));
  }
  for (auto [i, value] : llvm::enumerate(values)) {
    all.push_back(value);
    attrs.push_back(
        b.getDictionaryAttr(b.getNamedAttr(graph::kNameAttr, b.getStringAttr("quantize." + std::to_string(i)))));
  }
  setResults(main, all, attrs);
}
