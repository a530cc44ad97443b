//===- OpRegistry.cpp - which handler gives a node its meaning ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "OpRegistry.h"

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

using namespace mlir;
using namespace tc;

void OpRegistry::add(StringRef domain, StringRef type, int64_t sinceVersion, NodeHandler handler, size_t minOperands) {
  bool isNew = table[{domain.str(), type.str()}]
                   .try_emplace(sinceVersion, OpEntry{std::move(handler), minOperands, ComplexUse::None})
                   .second;
  if (!isNew)
    llvm::report_fatal_error("two handlers of " + domain + "." + type + ", version " + Twine(sinceVersion));
}

void OpRegistry::setComplexUse(StringRef domain, StringRef type, ComplexUse use) {
  auto versions = table.find({domain.str(), type.str()});
  assert(versions != table.end() && "an operator is registered first");
  for (auto &[version, entry] : versions->second)
    entry.complexUse = use;
}

void OpRegistry::setTakesAnyFloat(StringRef domain, StringRef type) {
  for (auto &[version, entry] : table.at({domain.str(), type.str()}))
    entry.takesAnyFloat = true;
}

void OpRegistry::setTakesAnyInteger(StringRef domain, StringRef type) {
  for (auto &[version, entry] : table.at({domain.str(), type.str()}))
    entry.takesAnyInteger = true;
}

template <typename T>
static const T *findVersion(const std::map<OpRegistry::Key, std::map<int64_t, T>> &table, StringRef domain,
                            StringRef type, int64_t opset) {
  auto versions = table.find({domain.empty() ? "ai.onnx" : domain.str(), type.str()});
  if (versions == table.end())
    return nullptr;
  auto after = versions->second.upper_bound(opset);
  return after == versions->second.begin() ? nullptr : &std::prev(after)->second;
}

const OpEntry *OpRegistry::lookup(StringRef domain, StringRef type, int64_t opset) const {
  return findVersion(table, domain, type, opset);
}

const OperandRules *OpRegistry::lookupRules(StringRef domain, StringRef type, int64_t opset) const {
  return findVersion(rules, domain, type, opset);
}

const OpRegistry &OpRegistry::get() {
  static const OpRegistry registry = [] {
    OpRegistry r;
    OpRegistrar aten(r, "aten");
    populateATenAttention(aten);
    populateATenBackward(aten);
    populateATenContraction(aten);
    populateATenCreation(aten);
    populateATenDropout(aten);
    populateATenElementwise(aten);
    populateATenFakeQuantization(aten);
    populateATenForeach(aten);
    populateATenFunctions(aten);
    populateATenIndexing(aten);
    populateATenLinalg(aten);
    populateATenLoops(aten);
    populateATenLoss(aten);
    populateATenLu(aten);
    populateATenMovement(aten);
    populateATenNorm(aten);
    populateATenOrder(aten);
    populateATenParts(aten);
    populateATenReduction(aten);
    populateATenScan(aten);
    populateATenScatterViews(aten);
    populateATenPooling(aten);
    populateATenResize(aten);
    populateATenRnn(aten);
    populateATenSpectral(aten);
    populateATenVectors(aten);
    populateATenSymbolic(aten);
    populateATenWindows(aten);
    OpRegistrar higherOrder(r, "higher_order");
    populateATenControlFlow(higherOrder);
    OpRegistrar torch(r, "torch");
    populateTorchNumbers(torch);
    OpRegistrar quantized(r, "quantized_decomposed");
    populateTorchQuantization(quantized);
    OpRegistrar vision(r, "torchvision");
    populateTorchVision(vision);
    OpRegistrar transformers(r, "transformers");
    populateTransformers(transformers);
    OpRegistrar onnx(r, "ai.onnx");
    populateONNXContraction(onnx);
    populateONNXControlFlow(onnx);
    populateONNXDeterminant(onnx);
    populateONNXEinsum(onnx);
    populateONNXElementwise(onnx);
    populateONNXImage(onnx);
    populateONNXLoss(onnx);
    populateONNXMovement(onnx);
    populateONNXNorm(onnx);
    populateONNXPooling(onnx);
    populateONNXQuantization(onnx);
    populateONNXRandom(onnx);
    populateONNXReduction(onnx);
    populateONNXResize(onnx);
    populateONNXRnn(onnx);
    populateONNXSample(onnx);
    populateONNXSelect(onnx);
    populateONNXSequence(onnx);
    populateONNXShape(onnx);
    populateONNXSpectral(onnx);
    populateONNXString(onnx);
    populateONNXTfIdf(onnx);
    OpRegistrar ml(r, "ai.onnx.ml");
    populateONNXMLFeatures(ml);
    populateONNXMLMaps(ml);
    populateONNXMLModels(ml);
    populateONNXMLTrees(ml);
    OpRegistrar microsoft(r, "com.microsoft");
    populateMicrosoftAttention(microsoft);
    populateMicrosoftFused(microsoft);
    populateMicrosoftInverse(microsoft);
    populateMicrosoftQuantization(microsoft);
    OpRegistrar training(r, "ai.onnx.preview.training");
    populateONNXTraining(training);
#define OPERANDS(domain, type, sinceVersion, text) r.rules[{domain, #type}][sinceVersion] = parseOperandRules(text);
#include "OperandRules.def"
#undef OPERANDS
    return r;
  }();
  return registry;
}

std::vector<HandledOperator> tc::getHandledOperators() {
  std::vector<HandledOperator> operators;
  for (const auto &[key, versions] : OpRegistry::get().entries()) {
    operators.push_back({key.first, key.second, {}, versions.rbegin()->second.takesAnyInteger});
    for (const auto &[version, entry] : versions)
      operators.back().sinceVersions.push_back(version);
  }
  return operators;
}

bool tc::hasHandler(StringRef domain, StringRef type, int64_t opset) {
  return OpRegistry::get().lookup(domain, type, opset) != nullptr;
}
