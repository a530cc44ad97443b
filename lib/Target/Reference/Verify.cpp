//===- Verify.cpp - compare what targets compute with the oracle --------------------------------------------------===//
//
// The first value that is off is found by bisection with many arms: each round exposes up to 64 values, evenly spaced
// in program order, as outputs of a copy of the function, and goes on between the last good and the first bad one. A
// model of 4000 nodes takes two rounds.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Support/Logging.h"
#include "tc/Target/Reference/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace tc;
using namespace tc::prim;
using namespace tc::target;

namespace {

constexpr size_t kProbes = 64;

/// Normally distributed numbers from two uniform ones (Box-Muller): std::normal_distribution differs between libraries.
double nextNormal(std::mt19937_64 &random) {
  auto uniform = [&] { return (double(random() >> 11) + 0.5) * std::ldexp(1.0, -53); };
  double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * M_PI * uniform());
}

int64_t chooseSize(SymbolAttr symbol) {
  int64_t divisor = std::max<int64_t>(symbol.getDivisor(), 1);
  int64_t size = std::max<int64_t>(symbol.getMin(), 2);
  size = (size + divisor - 1) / divisor * divisor;
  return std::min(size, std::max<int64_t>(symbol.getMax(), symbol.getMin()));
}

/// Name of the node that a value came from.
std::string getNodeName(Value value) {
  std::string name;
  value.getLoc()->walk([&](Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    if (named)
      name = named.getName().str();
    return named ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (name.empty() && value.getDefiningOp())
    name = value.getDefiningOp()->getName().getStringRef().str();
  return name;
}

/// Values worth comparing, in program order.
std::vector<Value> getCandidates(func::FuncOp func) {
  std::vector<Value> values;
  for (Operation &op : func.getBody().front())
    for (Value result : op.getResults())
      if (!isa<ConstantOp, SplatOp, IotaOp, SizesOp>(op) && isa<RankedTensorType>(result.getType()))
        values.push_back(result);
  return values;
}

/// A module with a copy of `func` that returns `values` only.
OwningOpRef<ModuleOp> makeProbe(func::FuncOp func, ArrayRef<Value> values) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(func.getLoc());
  IRMapping mapping;
  for (auto state : func->getParentOfType<ModuleOp>().getOps<StateOp>())
    module->push_back(state->clone());
  auto probe = cast<func::FuncOp>(func->clone(mapping));
  module->push_back(probe);
  Operation *terminator = probe.getBody().front().getTerminator();
  terminator->setOperands(llvm::map_to_vector(values, [&](Value value) { return mapping.lookup(value); }));
  // The names of the old results say nothing about the new ones.
  probe.removeResAttrsAttr();
  probe.setType(FunctionType::get(func.getContext(), func.getArgumentTypes(), TypeRange(terminator->getOperands())));
  return module;
}

/// What the interpreter computes for `values` in float64.
llvm::Expected<std::vector<Tensor>> interpretValues(func::FuncOp func, ArrayRef<Tensor> inputs,
                                                    ArrayRef<Value> values) {
  OwningOpRef<ModuleOp> probe = makeProbe(func, values);
  InterpretOptions options;
  options.evaluateInDouble = true;
  return interpret(*probe->getOps<func::FuncOp>().begin(), inputs, options);
}

/// Index of the first of `values` that is off, and why; values.size() where all agree.
llvm::Expected<std::pair<size_t, std::string>> findOff(func::FuncOp func, ArrayRef<Tensor> inputs,
                                                       ArrayRef<Value> values, double maxRel, RunModule run,
                                                       double *largest = nullptr) {
  llvm::Expected<std::vector<Tensor>> want = interpretValues(func, inputs, values);
  if (!want)
    return want.takeError();
  OwningOpRef<ModuleOp> probe = makeProbe(func, values);
  llvm::Expected<std::vector<Tensor>> got = run(*probe);
  if (!got)
    return got.takeError();
  if (got->size() != values.size())
    return llvm::createStringError("the run gave another number of outputs than the function has");
  for (size_t i = 0; i < values.size(); ++i)
    if (std::string what = compareTensors((*got)[i], (*want)[i], maxRel, largest); !what.empty())
      return std::make_pair(i, what);
  return std::make_pair(values.size(), std::string());
}

} // namespace

llvm::Expected<std::vector<Tensor>> tc::target::makeRandomInputs(func::FuncOp func,
                                                                 const llvm::StringMap<int64_t> &sizes, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto symbols = func->getAttrOfType<ArrayAttr>(kSymbolsAttr);
  SmallVector<AffineExpr> values;
  for (auto symbol :
       symbols ? symbols.getAsRange<SymbolAttr>() : ArrayAttr::get(func.getContext(), {}).getAsRange<SymbolAttr>()) {
    auto given = sizes.find(symbol.getName());
    values.push_back(
        getAffineConstantExpr(given == sizes.end() ? chooseSize(symbol) : given->second, func.getContext()));
  }
  std::vector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !isSupportedElementType(tensor.getElementType()))
      return llvm::createStringError("input " + std::to_string(i) + " has a type that can't be interpreted");
    SmallVector<int64_t> shape;
    for (AffineExpr expr : getSizes(type))
      shape.push_back(getConstantSize(simplifySize(expr.replaceSymbols(values))).value_or(-1));
    int64_t count = countElements(shape);
    if (count < 0)
      return llvm::createStringError("the sizes of input " + std::to_string(i) + " are unknown, negative or too large");
    auto complex = dyn_cast<ComplexType>(tensor.getElementType());
    if (complex || isa<FloatType>(tensor.getElementType())) {
      std::vector<double> elements(complex ? 2 * count : count);
      for (double &element : elements)
        element = nextNormal(random);
      if (complex)
        shape.push_back(2);
      Tensor floats = fromDoubles(complex ? complex.getElementType() : tensor.getElementType(), shape, elements);
      inputs.push_back(complex ? asComplex(floats) : floats);
      continue;
    }
    int64_t low = 0, high = 2;
    if (auto range = func.getArgAttrOfType<DenseI64ArrayAttr>(i, kRangeAttr); range && range.size() == 2) {
      low = range[0];
      high = std::max(range[1], low + 1);
    }
    std::vector<int64_t> elements(count);
    for (int64_t &element : elements)
      element = low + int64_t((random() >> 1) % uint64_t(high - low));
    inputs.push_back(fromInts(tensor.getElementType(), shape, elements));
  }
  return inputs;
}

std::string tc::target::compareTensors(const Tensor &got, const Tensor &want, double maxRel, double *largestError) {
  if (got.shape != want.shape)
    return llvm::formatv("the shape is [{0:$[, ]}], expected [{1:$[, ]}]",
                         llvm::make_range(got.shape.begin(), got.shape.end()),
                         llvm::make_range(want.shape.begin(), want.shape.end()));
  if (isa<ComplexType>(want.elementType) && isa<ComplexType>(got.elementType))
    return compareTensors(asParts(got), asParts(want), maxRel, largestError);
  bool isFloat = isa<FloatType>(want.elementType);
  if (isFloat != isa<FloatType>(got.elementType))
    return "floats and integers are mixed up";
  if (!isFloat) {
    std::vector<int64_t> a = toInts(got), b = toInts(want);
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i])
        return llvm::formatv("element {0} is {1}, expected {2}", i, a[i], b[i]);
    return "";
  }
  std::vector<double> a = toDoubles(got), b = toDoubles(want);
  double largest = 0, worst = 0;
  size_t at = 0;
  for (double value : b)
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < a.size(); ++i) {
    bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    double error = same ? 0 : std::fabs(a[i] - b[i]);
    // One of them NaN or infinite.
    if (!std::isfinite(error))
      return llvm::formatv("element {0} is {1}, expected {2}", i, a[i], b[i]);
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  if (largestError && worst > 0)
    *largestError = std::max(*largestError, worst / largest);
  if (worst <= maxRel * largest)
    return "";
  return llvm::formatv(
      "element {0} is {1:e9}, expected {2:e9}; the error is {3:e2} of the largest value, allowed {4:e2}", at, a[at],
      b[at], worst / largest, maxRel);
}

llvm::Expected<std::optional<Finding>> tc::target::verify(func::FuncOp func, ArrayRef<Tensor> inputs, double maxRel,
                                                          RunModule run, double *largest) {
  SmallVector<Value> outputs(func.getBody().front().getTerminator()->getOperands());
  auto atOutputs = findOff(func, inputs, outputs, maxRel, run, largest);
  if (!atOutputs)
    return atOutputs.takeError();
  if (atOutputs->first == outputs.size())
    return std::nullopt;
  Finding finding{getNodeName(outputs[atOutputs->first]), atOutputs->second};
  std::vector<Value> candidates = getCandidates(func);
  // Every value before `begin` is good as far as it was looked at; the one before `end` is bad.
  size_t begin = 0, end = candidates.size();
  while (begin < end) {
    size_t count = std::min(kProbes, end - begin);
    SmallVector<size_t> indices;
    SmallVector<Value> values;
    for (size_t i = 1; i <= count; ++i) {
      indices.push_back(begin + (end - begin) * i / count - 1);
      values.push_back(candidates[indices.back()]);
    }
    auto off = findOff(func, inputs, values, maxRel, run);
    if (!off)
      return off.takeError();
    if (log::isEnabled("verify"))
      log::write("verify", llvm::formatv("{0} values from node \"{1}\" to \"{2}\": {3}", values.size(),
                                         getNodeName(values.front()), getNodeName(values.back()),
                                         off->first == values.size() ? "none is off"
                                                                     : "the first that is off is of node \"" +
                                                                           getNodeName(values[off->first]) + "\"")
                               .str());
    if (off->first == values.size())
      break; // exposing the values changed what is computed: the best that is known stays
    finding = {getNodeName(values[off->first]), off->second};
    bool isLast = count == end - begin;
    end = indices[off->first];
    begin = off->first == 0 ? begin : indices[off->first - 1] + 1;
    if (isLast)
      break;
  }
  finding.what = "node \"" + finding.node + "\": " + finding.what;
  return finding;
}
