//===- Trial.cpp - graphs that the compiler runs to decide by their errors ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Trial.h"

#include "CalibrationData.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/Dtypes.h"

#include "llvm/ADT/ScopeExit.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

//===--- errors ---------------------------------------------------------------------------------------------------===//

static std::vector<double> toNumbers(const prim::Tensor &tensor) {
  if (isa<FloatType>(tensor.elementType))
    return prim::toDoubles(tensor);
  if (isa<ComplexType>(tensor.elementType))
    return prim::toDoubles(prim::asParts(tensor));
  if (!isa<IntegerType>(tensor.elementType))
    return {};
  const std::vector<int64_t> ints = prim::toInts(tensor);
  return std::vector<double>(ints.begin(), ints.end());
}

void Difference::add(const prim::Tensor &is, const prim::Tensor &should) {
  const std::vector<double> a = toNumbers(is), b = toNumbers(should);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::isfinite(b[i])) {
      ofAll += b[i] * b[i];
      ofLargest = std::max(ofLargest, std::abs(b[i]));
    }
    // Infinities and NaN are right where they are in f32, too.
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    const double error = std::abs(a[i] - b[i]);
    if (std::isfinite(error)) {
      squares += error * error;
      largest = std::max(largest, error);
    } else {
      isLike = false;
    }
  }
  isLike &= a.size() == b.size();
}

double Difference::ofMean() const { return squares == 0 ? 0 : std::sqrt(squares / std::max(ofAll, 1e-300)); }

double Difference::ofMost() const { return ofMost(*this); }

double Difference::ofMost(const Difference &all) const {
  constexpr double kNotAlike = 1e30;
  return !isLike ? kNotAlike : largest == 0 ? 0 : std::min(largest / std::max(all.ofLargest, 1e-300), kNotAlike);
}

llvm::json::Array tc::driver::describeOutputs(graph::FuncOp main, ArrayRef<Difference> differences) {
  llvm::json::Array outputs;
  for (auto [i, difference] : llvm::enumerate(differences))
    outputs.push_back(llvm::json::Object{{"output", llvm::json::fixUTF8(main.getResultName(i))},
                                         {"error", difference.ofMost()},
                                         {"error_mean", difference.ofMean()}});
  return outputs;
}

std::string tc::driver::shortNumber(double value) { return llvm::formatv("{0:e1}", value).str(); }

//===--- trials ---------------------------------------------------------------------------------------------------===//

void Compiler::setPrecision(const ProductPrecision &products) {
  precision = products;
  options.precision = precision.type;
  options.nodePrecisions = ArrayRef<std::string>(precision.ofNodes);
}

/// The artifact of a graph for this machine; null with failures where the phases refuse it, or `atPrim`.
llvm::Expected<std::unique_ptr<Compiler::Trial>> Compiler::buildTrial(ModuleOp graph, const ProductPrecision &products,
                                                                      llvm::function_ref<bool(func::FuncOp)> atPrim) {
  auto trial = std::make_unique<Trial>();
  llvm::Expected<machine::CpuAttr> cpu = machine::parseCpu(graph.getContext(), "native");
  if (!cpu)
    return cpu.takeError();
  const std::string variant = cpu->getName().str();
  setTarget(machine::TargetKind::Cpu);
  const ProductPrecision own = precision;
  setPrecision(products);
  auto restore = llvm::make_scope_exit([&] { setPrecision(own); });
  PhaseOptions ofTrial;
  ofTrial.copyOptionValuesFrom(options);
  quiet = true;
  const bool isPrim = runPasses(graph, [&](PassManager &m) { buildPhasePipeline(Phase::Prim, m, ofTrial); });
  quiet = false;
  if (!isPrim)
    return nullptr;
  func::FuncOp main = getFunctions(graph).front();
  if (atPrim && !atPrim(main))
    return nullptr;
  llvm::append_range(trial->arguments, main.getArgumentTypes());
  llvm::append_range(trial->results, main.getResultTypes());
  llvm::Expected<std::string> bytes = buildProbe(graph, Phase::Fuse, variant);
  if (!bytes)
    return bytes.takeError();
  trial->bytes = std::move(*bytes);
  llvm::Expected<OpenedArtifact> opened = OpenedArtifact::openMemory(trial->bytes, request.model, variant, false);
  if (!opened)
    return opened.takeError();
  trial->opened.emplace(std::move(*opened));
  return std::move(trial);
}

/// Reads --calibrate for inputs of these types; `defaults`: of inputs that need not be given.
int Compiler::readCalibration(graph::FuncOp main, ArrayRef<Type> types, StringRef option,
                              std::vector<prim::Tensor> &defaults, std::vector<TrialInputs> &runs) {
  std::vector<CalibrationInput> inputs;
  for (auto [i, type] : llvm::enumerate(types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || base::getDtype(tensor.getElementType()) == TCRT_DTYPE_INVALID)
      return fail(kWrongUse, request.model + ": error: " + option +
                                 " takes models whose inputs are tensors of numbers, and input " + Twine(i) +
                                 " is none");
    CalibrationInput &input = inputs.emplace_back();
    input.name = main.getArgName(i).str();
    input.dtype = base::getDtype(tensor.getElementType());
    for (AffineExpr size : prim::getSizes(type))
      input.dims.push_back(prim::getConstantSize(size).value_or(-1));
    std::optional<prim::Tensor> value;
    if (TypedAttr attr = main.getArgDefault(i))
      value = prim::fromAttribute(attr);
    input.hasDefault = value.has_value();
    defaults.push_back(value.value_or(prim::Tensor()));
  }
  std::vector<std::vector<CalibrationArray>> arrays;
  for (const std::string &path : request.calibrate)
    if (std::string sentence = readCalibrationData(path, inputs, arrays); !sentence.empty())
      return fail(kWrongUse, sentence);
  for (const std::vector<CalibrationArray> &run : arrays) {
    TrialInputs &values = runs.emplace_back();
    for (auto [i, array] : llvm::enumerate(run))
      values.push_back(array.bytes
                           ? prim::Tensor{getElementTypeOrSelf(types[i]),
                                          SmallVector<int64_t>(array.dims.begin(), array.dims.end()), array.bytes}
                           : defaults[i]);
  }
  return kDone;
}

/// Calls `with` with the outputs of each trial for each run.
llvm::Error Compiler::forEachRun(ArrayRef<Trial *> trials, const std::vector<TrialInputs> &runs,
                                 llvm::function_ref<void(ArrayRef<std::vector<prim::Tensor>>)> with) {
  for (const TrialInputs &inputs : runs) {
    std::vector<std::vector<prim::Tensor>> outputs;
    for (Trial *trial : trials) {
      auto results = trial->opened->run(inputs, trial->results);
      if (!results)
        return results.takeError();
      outputs.push_back(std::move(*results));
    }
    with(outputs);
  }
  return llvm::Error::success();
}
