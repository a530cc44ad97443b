//===- Quantize.cpp - bytes instead of floats, by data ------------------------------------------------------------===//
//
// --quantize: runs the float graph on the calibration data for the ranges of values, then each product with bytes
// beside itself with floats, which tells what it costs alone, then the quantised graph beside the float one. Where the
// outputs differ by more than --quantize-budget allows, products stay in f32, those that cost most alone first.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "InnerOutputs.h"
#include "QuantizeGraph.h"
#include "Trial.h"

#include "tc/Dialect/Graph/Transforms/Passes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Support/Logging.h"
#include "tc/Support/NodePattern.h"
#include "tc/Support/Suggest.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

namespace {

ArrayRef<float> asFloats(const prim::Tensor &tensor) {
  return {reinterpret_cast<const float *>(tensor.bytes.get()), size_t(tensor.numElements())};
}

} // namespace

/// Which products patterns of --quantize-exclude name; a sentence where one names none.
static std::string exclude(ProductGraph &graph, ArrayRef<std::string> patterns, std::vector<std::string> &reasons) {
  std::vector<std::string> names;
  for (Product &product : graph.products)
    names.push_back(product.node.getNodeName());
  const NodePatterns all(patterns);
  for (const std::unique_ptr<NodePattern> &pattern : all.all()) {
    for (auto [i, name] : llvm::enumerate(names))
      if (pattern->matches(name)) {
        reasons[i] = "--quantize-exclude " + pattern->text;
        pattern->isUsed = true;
      }
    if (!pattern->isUsed)
      return "--quantize-exclude " + pattern->text + " names no product that could be quantised" +
             didYouMean(pattern->text, names) + "; --explain lists them, and * is any text";
  }
  return "";
}

int Compiler::quantize(ModuleOp module) {
  if (request.quantize.empty())
    return kDone;
  auto wrong = [&](const Twine &what) { return fail(kWrongUse, request.model + ": error: " + what); };
  auto failedTrial = [&](llvm::Error error) {
    return fail(kMachine, request.model + ": error: --quantize runs the model on the calibration data, which failed: " +
                              llvm::toString(std::move(error)));
  };
  graph::FuncOp main = findMain(module);
  if (!main)
    return wrong("--quantize needs a model or a module of phase import");
  // Values that are written in place would be others by the time that they are looked at.
  bool isOfTorch = false;
  main.walk([&](graph::NodeOp node) { isOfTorch |= node.getDomain() == "aten"; });
  if (isOfTorch) {
    quiet = true;
    const bool isFunctional = runPasses(module, [&](PassManager &manager) {
      graph::FunctionalizeGraphPassOptions functionalize;
      functionalize.customOps.assign(request.customOps.begin(), request.customOps.end());
      manager.addPass(graph::createFunctionalizeGraphPass(functionalize));
    });
    quiet = false;
    if (!isFunctional)
      return kDone; // phase prim says why
  }
  ProductGraph graph(main);
  const size_t count = graph.products.size();
  if (count == 0)
    return wrong(
        "--quantize finds nothing to quantise: no convolution, MatMul, Gemm or linear layer multiplies a value "
        "of f32 by constant weights; leave the option out");
  std::vector<std::string> reasons(count); // why a product stays in f32
  if (std::string sentence = exclude(graph, request.quantizeExclude, reasons); !sentence.empty())
    return wrong(sentence);

  // What the values are.
  const size_t values = graph.values.size();
  auto clone = [&](llvm::function_ref<void(ProductGraph &)> change) {
    OwningOpRef<ModuleOp> copy(module.clone());
    ProductGraph ofCopy(findMain(*copy));
    change(ofCopy);
    return buildTrial(*copy, {"f32", request.nodePrecisions});
  };
  auto addResults = [&](ProductGraph &copy, std::vector<Value> outputs) {
    for (Product &product : copy.products)
      outputs.push_back(product.node->getResult(0));
    setOutputs(copy.main, outputs, /*keepOwn=*/true);
  };
  const size_t own = main.getNumResults();
  auto floats = clone([&](ProductGraph &copy) { addResults(copy, copy.values); });
  if (!floats)
    return failedTrial(floats.takeError());
  if (!*floats)
    return kDone; // phase prim says why
  std::vector<prim::Tensor> defaults;
  std::vector<TrialInputs> runs;
  if (int code = readCalibration(main, (*floats)->arguments, "--quantize", defaults, runs))
    return code;
  const RangeRule rule = *parseRangeRule(request.calibrateMethod);
  std::vector<SeenRange> ranges(values);
  std::vector<bool> isFloat(values, true);
  for (bool again : {false, true}) {
    if (again && rule.kind == RangeRule::MinMax)
      break;
    llvm::Error error = forEachRun({floats->get()}, runs, [&](auto outputs) {
      for (size_t i = 0; i < values; ++i) {
        const prim::Tensor &tensor = outputs[0][own + i];
        isFloat[i] = isFloat[i] && tensor.elementType.isF32();
        if (isFloat[i])
          again ? ranges[i].count(asFloats(tensor)) : ranges[i].look(asFloats(tensor));
      }
    });
    if (error)
      return failedTrial(std::move(error));
  }
  std::vector<ByteScale> scales;
  std::vector<std::pair<double, double>> chosen;
  for (const SeenRange &range : ranges) {
    chosen.push_back(range.isFinite() ? range.getRange(rule) : std::pair(0.0, 0.0));
    scales.push_back(SeenRange::getScale(chosen.back()));
  }
  llvm::BitVector which(count);
  for (auto [i, product] : llvm::enumerate(graph.products)) {
    if (reasons[i].empty() && !isFloat[product.value])
      reasons[i] = "its input is not f32";
    else if (reasons[i].empty() && !ranges[product.value].isFinite())
      reasons[i] = "its input holds infinities or NaN";
    which[i] = reasons[i].empty();
  }
  if (which.none())
    return wrong("--quantize has nothing left to quantise; of the first product, \"" +
                 graph.products.front().node.getNodeName() + "\": " + reasons.front());

  // What each costs alone.
  std::vector<Difference> alone(count), inModel(count), ofOutputs(own);
  {
    auto twins = clone(
        [&](ProductGraph &copy) { setOutputs(copy.main, addQuantizedTwins(copy, scales, which), /*keepOwn=*/false); });
    if (!twins)
      return failedTrial(twins.takeError());
    if (!*twins)
      return failedPasses("the products with bytes are refused");
    llvm::Error error = forEachRun({floats->get(), twins->get()}, runs, [&](auto outputs) {
      for (auto [number, i] : llvm::enumerate(which.set_bits()))
        alone[i].add(outputs[1][number], outputs[0][own + values + i]);
    });
    if (error)
      return failedTrial(std::move(error));
  }

  // What they cost together.
  auto measure = [&]() -> llvm::Expected<double> {
    auto trial = clone([&](ProductGraph &copy) {
      quantizeProducts(copy, scales, which);
      addResults(copy, {});
    });
    if (!trial)
      return trial.takeError();
    if (!*trial)
      return llvm::createStringError(failures.empty() ? "the quantised graph is refused" : failures.front().second);
    inModel.assign(count, {});
    ofOutputs.assign(own, {});
    llvm::Error error = forEachRun({floats->get(), trial->get()}, runs, [&](auto outputs) {
      for (size_t i = 0; i < own; ++i)
        ofOutputs[i].add(outputs[1][i], outputs[0][i]);
      for (size_t i = 0; i < count; ++i)
        inModel[i].add(outputs[1][own + i], outputs[0][own + values + i]);
    });
    if (error)
      return std::move(error);
    double worst = 0;
    for (const Difference &difference : ofOutputs)
      worst = std::max(worst, difference.ofMost());
    return worst;
  };
  const llvm::BitVector all = which;
  SmallVector<size_t> order(which.set_bits_begin(), which.set_bits_end());
  llvm::stable_sort(order, [&](size_t a, size_t b) { return alone[a].ofMean() > alone[b].ofMean(); });
  auto leaveOut = [&](size_t most) {
    which = all;
    for (size_t i : ArrayRef(order).take_front(most))
      which.reset(i);
    return measure();
  };
  // One product at least is to be in bytes.
  const double budget = request.quantizeBudget.value_or(std::numeric_limits<double>::infinity());
  llvm::Expected<BudgetSearch> search = findFewest(order.size() - 1, budget, leaveOut);
  if (!search)
    return failedTrial(search.takeError());
  if (!search->isKept)
    return wrong("--quantize-budget " + shortNumber(budget) + " cannot be kept: the outputs differ by " +
                 shortNumber(search->ofNone) + " of their largest value with all products quantised, and by " +
                 shortNumber(search->error) + " with only the last of them, \"" +
                 graph.products[order.back()].node.getNodeName() +
                 "\"; allow more, try another --calibrate-method, or leave --quantize out");
  for (size_t i : ArrayRef(order).take_front(search->left))
    reasons[i] = "--quantize-budget " + shortNumber(budget) + ", which its error would exceed";

  // What was decided.
  llvm::json::Array nodes;
  for (auto [i, product] : llvm::enumerate(graph.products)) {
    llvm::json::Object node{{"node", llvm::json::fixUTF8(product.node.getNodeName())},
                            {"type", llvm::json::fixUTF8(product.node.getOpType())},
                            {"quantized", bool(which[i])}};
    if (!which[i])
      node["reason"] = llvm::json::fixUTF8(reasons[i]);
    if (all[i]) {
      const auto [low, high] = chosen[product.value];
      node["input"] = llvm::json::Object{{"low", low},
                                         {"high", high},
                                         {"scale", double(scales[product.value].scale)},
                                         {"zero_point", scales[product.value].zero}};
      node["channels"] = cast<RankedTensorType>(product.constant.getType()).getDimSize(product.axis);
      node["error_alone"] = alone[i].ofMean();
    }
    node["error"] = inModel[i].ofMean();
    if (log::isEnabled(log::kQuantizeChannel)) {
      std::string line = product.node.getNodeName() + ": ";
      if (all[i])
        line += llvm::formatv("{0:f4} to {1:f4}, scale {2:e3}, zero point {3}, error {4:e1} alone, ",
                              chosen[product.value].first, chosen[product.value].second,
                              double(scales[product.value].scale), scales[product.value].zero, alone[i].ofMean())
                    .str();
      log::write(log::kQuantizeChannel, line + (which[i] ? "bytes" : "f32: " + reasons[i]));
    }
    nodes.push_back(std::move(node));
  }
  explanation.quantization = llvm::json::Object{{"type", request.quantize},
                                                {"method", request.calibrateMethod},
                                                {"runs", int64_t(runs.size())},
                                                {"quantized", int64_t(which.count())},
                                                {"error", search->error},
                                                {"nodes", std::move(nodes)},
                                                {"outputs", describeOutputs(main, ofOutputs)}};
  if (request.quantizeBudget)
    explanation.quantization["budget"] = *request.quantizeBudget;
  quantizeProducts(graph, scales, which);
  for (auto constant : llvm::make_early_inc_range(main.getBody().getOps<graph::ConstantOp>()))
    if (constant->use_empty())
      constant.erase();
  if (!request.quiet)
    fail(kDone, request.model + ": note: " + Twine(which.count()) + " of " + Twine(count) + " products in bytes; in " +
                    Twine(runs.size()) + (runs.size() == 1 ? " run" : " runs") +
                    " of calibration the outputs differ from f32 by at most " + shortNumber(search->error) +
                    " of their largest value");
  if (request.quantizedModel.empty())
    return kDone;
  std::string foreign;
  module.walk([&](graph::NodeOp node) {
    if (node.getDomain() == "aten" || node.getDomain() == "prim")
      foreign = node.getNodeName();
  });
  if (!foreign.empty())
    return wrong("--quantized-model writes what an ONNX file can hold, and node \"" + foreign +
                 "\" is PyTorch's; export the model to ONNX first, with torch.onnx.export");
  if (llvm::Error failed = exportOnnx(module, request.quantizedModel))
    return fail(kWrongUse, llvm::toString(std::move(failed)));
  return kDone;
}
