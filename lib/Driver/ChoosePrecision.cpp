//===- ChoosePrecision.cpp - the precision of each product, by the error of outputs -------------------------------===//
//
// --precision auto:R: compiles the model once with a switch for each product of f32 (PrecisionSwitch.h), so that a
// mixture of precisions costs a run to judge. Where not all nodes may have the fastest type, they are ranked by what it
// saves for the error that it brings alone; the best take it, as many as the budget allows, what is left the next one.
// The mixture is then compiled as the artifact will have it, and what it computes on this machine has to keep the
// budget, too.
//
// Errors of nodes add up as those of independent variables do, in squares: that decides the order alone.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "InnerOutputs.h"
#include "Trial.h"

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Transforms/PrecisionSwitch.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Support/NodePattern.h"
#include "tc/Support/OutputFile.h"
#include "tc/Target/Reference/Reference.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::driver;
using prim::ProductGroup;
using prim::Rounding;

namespace {

constexpr uint64_t kSeeds = 2; // of random inputs, for each code
// What a node brings alone is measured on so many runs: the order needs no more.
constexpr size_t kRankRuns = 1;
// Of the progress bar, which goes on where phases are behind that.
constexpr double kShareOfBar = 0.3;
// So often the mixture is compiled and found to be off before all stays f32.
constexpr unsigned kTries = 3;

/// A pattern that names this node and, but for commas, which lists have between patterns, no other.
std::string patternOf(StringRef name) {
  std::string pattern;
  for (char c : name) {
    if (StringRef("*?[]{}\\").contains(c))
      pattern += '\\';
    pattern += c == ',' ? '?' : c;
  }
  return pattern;
}

/// "a, b and 3 more".
std::string listSome(ArrayRef<std::string> names) {
  constexpr size_t kMost = 3;
  const std::string text = llvm::join(names.take_front(kMost), ", ");
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more" : text;
}

/// Whether the machine waits for operands rather than computes.
bool waitsForMemory(const ProductGroup &group) { return group.flops < machine::kCpuFlopsPerByte * group.bytes; }

/// What multiplies numbers of few bits, in multiples of the speed of f32.
struct Speeds {
  double bf16 = 1, tf32 = 1;

  /// What products in this type save, in the time that a byte takes; 0: nothing.
  double getGain(const ProductGroup &group, Rounding rounding) const {
    const double compute = group.flops / machine::kCpuFlopsPerByte;
    const bool waits = waitsForMemory(group);
    switch (rounding) {
    case Rounding::F32:
      return 0;
    case Rounding::Bf16:
      return bf16 > 1 ? compute * (1 - 1 / bf16) + group.bytes / 2 : waits ? group.bytes / 2 : 0;
    case Rounding::Tf32:
      return compute * (1 - 1 / tf32);
    case Rounding::F16:
      // Only constants are stored in it, and widening them takes time: they have to be most of what is waited for.
      return waits && 2 * group.constantBytes > group.bytes ? group.constantBytes / 2 : 0;
    }
    llvm_unreachable("no rounding");
  }
};

bool hasNumbers(ArrayRef<prim::Tensor> outputs) {
  bool isAny = outputs.empty(), isFloat = false;
  for (const prim::Tensor &output : outputs) {
    if (!isa<FloatType>(output.elementType))
      continue;
    isFloat = true;
    for (double value : prim::toDoubles(output))
      isAny |= std::isfinite(value);
  }
  return isAny || !isFloat;
}

} // namespace

/// The search for one model. Errors of `llvm::Error` are those of runs.
class Compiler::PrecisionSearch {
public:
  PrecisionSearch(Compiler &compiler, ModuleOp module, graph::FuncOp main, double budget)
      : compiler(compiler), request(compiler.request), module(module), main(main), budget(budget) {}

  int run();

private:
  using Chosen = SmallVector<Rounding>;

  int wrong(const Twine &what) { return compiler.fail(kWrongUse, request.model + ": error: " + what); }
  int failedRun(llvm::Error error) {
    return compiler.fail(kMachine, request.model + ": error: " + name() + " runs the model on " + nameData() +
                                       ", which failed: " + llvm::toString(std::move(error)) +
                                       (isRandom() ? "; give samples of inputs by --calibrate FILE.npz, or sizes by "
                                                     "--dim"
                                                   : ""));
  }
  std::string name() const { return "--precision " + request.precision; }
  bool isRandom() const { return request.calibrate.empty(); }
  std::string nameData() const { return isRandom() ? "random inputs" : "the calibration data"; }
  std::string nameRuns() const {
    return std::to_string(runs.size()) + (runs.size() == 1 ? " run of " : " runs of ") + nameData();
  }

  /// All f32 but for what the user said.
  Chosen startFrom() const {
    return llvm::to_vector_of<Rounding>(
        llvm::map_range(groups, [](const ProductGroup &group) { return group.isFixed ? group.fixed : Rounding::F32; }));
  }
  bool prepare(func::FuncOp function);
  std::vector<TrialInputs> makeInputs(func::FuncOp function);
  int compute();
  llvm::Expected<double> measure(const Chosen &chosen, size_t mostRuns);
  llvm::Error rank(Rounding rounding, ArrayRef<size_t> which);
  llvm::Expected<Chosen> search(double allowed);
  llvm::Error searchOne(Chosen &chosen, Rounding rounding, double allowed);
  llvm::Expected<double> confirm(const Chosen &chosen);
  ProductPrecision describe(const Chosen &chosen) const;
  int report(const Chosen &chosen, double error);

  Compiler &compiler;
  const CompileRequest &request;
  ModuleOp module;
  graph::FuncOp main;
  const double budget;
  Speeds speeds;
  SmallVector<Rounding> roundings; ///< the fastest first
  std::unique_ptr<Trial> trial;
  std::vector<ProductGroup> groups;
  std::vector<std::array<std::optional<double>, prim::kRoundingCount>> alone; ///< of each group
  std::vector<std::pair<std::string, std::string>> others;                    ///< composites, and why they stay f32
  std::string failed;                                                         ///< why there are no random inputs
  std::vector<TrialInputs> runs;
  std::vector<std::vector<prim::Tensor>> references;
  std::vector<Difference> outputs;
};

/// Inputs by seeds, of the sizes that have code of their own; other sizes are likely ones.
std::vector<TrialInputs> Compiler::PrecisionSearch::makeInputs(func::FuncOp function) {
  std::vector<TrialInputs> all;
  auto symbols = function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (llvm::StringMap<int64_t> &sizes : prim::getSizesOfCodes(function)) {
      for (auto [i, symbol] : llvm::enumerate(symbols ? symbols.getValue() : ArrayRef<Attribute>()))
        sizes.try_emplace(cast<prim::SymbolAttr>(symbol).getName(),
                          getLikelySize(getAffineSymbolExpr(i, function.getContext()), symbols, usual::kSymbol));
      auto inputs = target::makeRandomInputs(function, sizes, seed);
      if (!inputs) {
        failed = llvm::toString(inputs.takeError());
        return {};
      }
      all.push_back(std::move(*inputs));
    }
  return all;
}

/// At the end of phase prim: finds what there is to choose, and puts the switch in.
bool Compiler::PrecisionSearch::prepare(func::FuncOp function) {
  if (isRandom())
    runs = makeInputs(function);
  if (!failed.empty())
    return false;
  function.walk([&](Operation *op) {
    const bool isAttention = isa<prim::AttentionOp>(op);
    if (!isAttention && !isa<prim::RnnOp>(op))
      return;
    SmallVector<StringRef> names = base::getNodeNames(op->getLoc());
    others.emplace_back(names.empty() ? "" : names.front().str(),
                        (isAttention ? "attention" : "a recurrent layer") + std::string(" is computed in f32"));
  });
  groups = prim::addPrecisionSwitch(function, roundings, NodeValues(request.nodePrecisions));
  alone.resize(groups.size());
  return llvm::any_of(groups, [](const ProductGroup &group) { return !group.isFixed && !group.names.empty(); });
}

/// The error of outputs, the largest of all; `outputs` has each.
llvm::Expected<double> Compiler::PrecisionSearch::measure(const Chosen &chosen, size_t mostRuns) {
  const auto numbers = llvm::map_to_vector(chosen, [](Rounding each) { return int64_t(each); });
  const prim::Tensor ofSwitch =
      prim::fromInts(IntegerType::get(module.getContext(), 32), {int64_t(numbers.size())}, numbers);
  outputs.assign(trial->results.size(), {});
  for (size_t i = 0; i < std::min(mostRuns, runs.size()); ++i) {
    TrialInputs inputs = runs[i];
    inputs.push_back(ofSwitch);
    auto results = trial->opened->run(inputs, trial->results);
    if (!results)
      return results.takeError();
    if (references.size() == i)
      references.push_back(*results); // the first call is of f32
    for (auto [difference, is, should] : llvm::zip(outputs, *results, references[i]))
      difference.add(is, should);
  }
  double worst = 0;
  for (const Difference &difference : outputs)
    worst = std::max(worst, difference.ofMost());
  return worst;
}

/// What each of these groups brings alone.
llvm::Error Compiler::PrecisionSearch::rank(Rounding rounding, ArrayRef<size_t> which) {
  progress::setWork(which.size(), which.size());
  for (size_t i : which) {
    progress::advance(1, 1);
    if (alone[i][unsigned(rounding)])
      continue;
    Chosen chosen(groups.size(), Rounding::F32);
    chosen[i] = rounding;
    llvm::Expected<double> error = measure(chosen, kRankRuns);
    if (!error)
      return error.takeError();
    alone[i][unsigned(rounding)] = *error;
  }
  return llvm::Error::success();
}

/// Gives `rounding` to as many of the groups that are f32 as the budget allows.
llvm::Error Compiler::PrecisionSearch::searchOne(Chosen &chosen, Rounding rounding, double allowed) {
  SmallVector<size_t> order;
  for (auto [i, group] : llvm::enumerate(groups))
    if (!group.isFixed && !group.names.empty() && chosen[i] == Rounding::F32 && group.can[unsigned(rounding)] &&
        speeds.getGain(group, rounding) > 0)
      order.push_back(i);
  if (order.empty())
    return llvm::Error::success();
  // Often all of them may have it.
  const Chosen before = chosen;
  for (size_t i : order)
    chosen[i] = rounding;
  llvm::Expected<double> ofAll = measure(chosen, runs.size());
  if (!ofAll)
    return ofAll.takeError();
  if (*ofAll <= allowed)
    return request.explain ? rank(rounding, order) : llvm::Error::success();
  if (llvm::Error error = rank(rounding, order))
    return error;
  auto errorOf = [&](size_t i) { return *alone[i][unsigned(rounding)]; };
  llvm::erase_if(order, [&](size_t i) { return errorOf(i) > allowed; });
  auto worth = [&](size_t i) {
    constexpr double kLeastError = 1e-9; // beside that of f32
    const double error = std::max(errorOf(i), kLeastError);
    return speeds.getGain(groups[i], rounding) / (error * error);
  };
  llvm::stable_sort(order, [&](size_t a, size_t b) { return worth(a) < worth(b); });
  auto found = findFewest(order.size(), allowed, [&](size_t left) {
    chosen = before;
    for (size_t i : ArrayRef(order).drop_front(left))
      chosen[i] = rounding;
    return measure(chosen, runs.size());
  });
  if (!found)
    return found.takeError();
  // Behind the first that is too much there may be others that are not; `before` keeps the budget.
  double reached = found->error;
  for (size_t number = found->left; number-- > 0;) {
    const size_t i = order[number];
    if (std::hypot(reached, errorOf(i)) > allowed)
      continue;
    chosen[i] = rounding;
    llvm::Expected<double> error = measure(chosen, runs.size());
    if (!error)
      return error.takeError();
    if (*error <= allowed)
      reached = *error;
    else
      chosen[i] = Rounding::F32;
  }
  return llvm::Error::success();
}

llvm::Expected<Compiler::PrecisionSearch::Chosen> Compiler::PrecisionSearch::search(double allowed) {
  Chosen chosen = startFrom();
  for (Rounding rounding : roundings)
    if (llvm::Error error = searchOne(chosen, rounding, allowed))
      return std::move(error);
  return chosen;
}

/// What the outputs of the mixture differ by as the artifact's kernels compute them, on this machine.
llvm::Expected<double> Compiler::PrecisionSearch::confirm(const Chosen &chosen) {
  OwningOpRef<ModuleOp> copy(module.clone());
  auto real = compiler.buildTrial(*copy, describe(chosen));
  if (!real)
    return real.takeError();
  if (!*real)
    return llvm::createStringError(compiler.failures.empty() ? "the model is refused"
                                                             : compiler.failures.front().second);
  std::vector<Difference> differences((*real)->results.size());
  size_t run = 0;
  llvm::Error error = compiler.forEachRun({real->get()}, runs, [&](auto results) {
    for (auto [difference, is, should] : llvm::zip(differences, results[0], references[run]))
      difference.add(is, should);
    ++run;
  });
  if (error)
    return std::move(error);
  double worst = 0;
  for (auto [own, emulated] : llvm::zip(differences, outputs)) {
    // What this machine does not multiply is in the emulation alone.
    if (own.ofMost() > emulated.ofMost())
      emulated = own;
    worst = std::max(worst, emulated.ofMost());
  }
  return worst;
}

/// The mixture as options say it: bf16 but for some, or the nodes that are not f32. What the user said comes last.
ProductPrecision Compiler::PrecisionSearch::describe(const Chosen &chosen) const {
  size_t narrow = 0, wide = 0;
  bool isNamed = true;
  for (auto [group, rounding] : llvm::zip(groups, chosen)) {
    if (group.isFixed)
      continue;
    (rounding == Rounding::Bf16 ? narrow : wide) += group.can[unsigned(Rounding::Bf16)];
    isNamed &= !group.names.empty();
  }
  const Rounding base = isNamed && narrow > wide ? Rounding::Bf16 : Rounding::F32;
  ProductPrecision products;
  products.type = getName(base).str();
  for (auto [group, rounding] : llvm::zip(groups, chosen)) {
    const bool isBase = rounding == base || (rounding == Rounding::F32 && !group.can[unsigned(base)]);
    for (const std::string &node : group.cover)
      if (!group.isFixed && !isBase)
        products.ofNodes.push_back(patternOf(node) + "=" + getName(rounding).str());
  }
  llvm::append_range(products.ofNodes, request.nodePrecisions);
  return products;
}

int Compiler::PrecisionSearch::report(const Chosen &chosen, double error) {
  llvm::json::Array nodes;
  std::vector<std::string> left;
  std::map<std::string, size_t> counts; // by type
  size_t candidates = 0;
  auto add = [&](ArrayRef<std::string> names, StringRef type, StringRef reason) -> llvm::json::Object & {
    llvm::json::Array texts;
    for (const std::string &name : names)
      texts.push_back(llvm::json::fixUTF8(name));
    nodes.push_back(llvm::json::Object{{"nodes", std::move(texts)}, {"type", type}});
    llvm::json::Object &node = *nodes.back().getAsObject();
    if (!reason.empty())
      node["reason"] = llvm::json::fixUTF8(reason);
    return node;
  };
  for (size_t i = 0; i < groups.size(); ++i) {
    const ProductGroup &group = groups[i];
    const StringRef type = prim::getName(chosen[i]);
    if (group.isFixed) {
      add(group.names, type, "--precision NODE=" + type.str());
      continue;
    }
    ++candidates;
    ++counts[type.str()];
    // Of what stays f32: in the type that is nearest to it.
    std::optional<double> ofBest;
    for (Rounding rounding : roundings)
      if (std::optional<double> own = alone[i][unsigned(rounding)];
          own && (chosen[i] == rounding || (chosen[i] == Rounding::F32 && (!ofBest || *own < *ofBest))))
        ofBest = own;
    std::string reason;
    if (chosen[i] == Rounding::F32) {
      left.push_back(group.names.empty() ? "a product without a name" : group.cover.front());
      if (group.names.empty())
        reason = "no node has its name";
      else if (ofBest)
        reason = *ofBest > budget ? "alone it exceeds " + shortNumber(budget)
                                  : "with it the error would exceed " + shortNumber(budget);
      else
        reason = !group.whyNot.empty() ? group.whyNot : "no machine of the artifact is faster at it in another type";
    }
    llvm::json::Object &node = add(group.names, type, reason);
    node["flops"] = group.flops;
    if (ofBest)
      node["error_alone"] = *ofBest;
  }
  for (const auto &[node, reason] : others)
    add(node.empty() ? ArrayRef<std::string>() : ArrayRef(node), "f32", reason);
  const ProductPrecision products = describe(chosen);
  llvm::json::Array config{products.type};
  for (const std::string &text : products.ofNodes)
    config.push_back(llvm::json::fixUTF8(text));
  const llvm::json::Object file{{"precision", llvm::json::Array(config)}};
  compiler.explanation.precision = llvm::json::Object{{"budget", budget},
                                                      {"error", error},
                                                      {"runs", int64_t(runs.size())},
                                                      {"data", isRandom() ? "random" : "calibration"},
                                                      {"nodes", std::move(nodes)},
                                                      {"outputs", describeOutputs(main, outputs)},
                                                      {"config", std::move(config)}};
  if (!request.quiet && candidates == 0)
    compiler.fail(kDone, request.model + ": note: " + name() +
                             " changes nothing: the model has no product of f32 to choose a type for");
  if (!request.quiet && candidates > 0) {
    std::vector<std::string> parts;
    for (Rounding rounding : roundings)
      if (size_t count = counts[prim::getName(rounding).str()])
        parts.push_back(std::to_string(count) + " in " + prim::getName(rounding).str());
    const std::string taken = parts.empty() ? "0 of " + std::to_string(candidates) + " nodes in less than f32"
                                            : llvm::join(parts, ", ") + " of " + std::to_string(candidates) +
                                                  (candidates == 1 ? " node" : " nodes");
    compiler.fail(kDone, request.model + ": note: " + taken +
                             (left.empty() ? ""
                                           : "; f32: " + listSome(left) +
                                                 (request.explain ? ""
                                                                  : " (--explain "
                                                                    "says why)")) +
                             "; in " + nameRuns() + (isRandom() ? " (there is no --calibrate)" : "") +
                             " the outputs differ from f32 by at most " + shortNumber(error) +
                             " of their largest value, allowed " + shortNumber(budget));
  }
  compiler.setPrecision(products);
  compiler.reproducer.setPrecision(products.type, products.ofNodes);
  if (request.chosenPrecision.empty())
    return kDone;
  if (llvm::Error failed = writeOutputFile(request.chosenPrecision, [&](raw_ostream &stream) {
        stream << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object(file)));
      }))
    return compiler.fail(kWrongUse, llvm::toString(std::move(failed)));
  return kDone;
}

int Compiler::PrecisionSearch::run() {
  const bool isOfGpu = compiler.isFor(machine::TargetKind::Cuda);
  const bool hasUnits = compiler.isFor(machine::TargetKind::Cpu) &&
                        (request.cpus.empty() || llvm::any_of(compiler.cpus, [](machine::CpuAttr cpu) {
                           return cpu.has(machine::CpuUnits::Bf16) || cpu.has(machine::CpuUnits::AmxBf16);
                         }));
  // Of a GPU: f32 takes three products of tf32, which take twice as long as one of bf16.
  speeds.bf16 = isOfGpu ? 6 : hasUnits ? 2 : 1;
  speeds.tf32 = isOfGpu ? 3 : 1;
  roundings = {Rounding::Bf16};
  if (isOfGpu)
    roundings.push_back(Rounding::Tf32);
  roundings.push_back(Rounding::F16);

  progress::beginStage("precision", 0, kShareOfBar);
  OwningOpRef<ModuleOp> copy(module.clone());
  auto built = compiler.buildTrial(*copy, {"f32", {}}, [&](func::FuncOp function) { return prepare(function); });
  if (!built)
    return failedRun(built.takeError());
  if (!failed.empty())
    return wrong(name() + " needs inputs to run the model on, and there are no random ones: " + failed +
                 "; give samples of them by --calibrate FILE.npz");
  if (!compiler.failures.empty())
    return kDone; // phase prim says why
  if (!*built)
    return report(startFrom(), 0);
  trial = std::move(*built);
  return compute();
}

int Compiler::PrecisionSearch::compute() {
  std::vector<prim::Tensor> defaults;
  if (int code =
          compiler.readCalibration(main, ArrayRef(trial->arguments).drop_back(), "--precision auto", defaults, runs))
    return code;
  if (isRandom())
    for (TrialInputs &inputs : runs)
      for (auto [input, value] : llvm::zip(inputs, defaults))
        if (value.bytes)
          input = value;
  if (llvm::Expected<double> exact = measure(Chosen(groups.size(), Rounding::F32), runs.size()); !exact)
    return failedRun(exact.takeError());
  if (!llvm::any_of(references, [](auto &outputs) { return hasNumbers(outputs); }))
    return wrong(name() + " goes by the outputs, which hold no finite number on " + nameData() +
                 (isRandom() ? "; give samples of inputs by --calibrate FILE.npz" : "; give other samples"));
  const Chosen chosen = startFrom();
  llvm::Expected<double> error = measure(chosen, runs.size());
  if (!error)
    return failedRun(error.takeError());
  if (*error > budget)
    return wrong(name() +
                 " cannot be kept: the nodes whose type --precision NODE=TYPE gives make the outputs differ by " +
                 shortNumber(*error) + " of their largest value; allow more, or give them f32");
  double allowed = budget;
  for (unsigned tries = 0; tries < kTries; ++tries) {
    llvm::Expected<Chosen> found = search(allowed);
    if (!found)
      return failedRun(found.takeError());
    if (llvm::Expected<double> emulated = measure(*found, runs.size()); !emulated)
      return failedRun(emulated.takeError());
    error = confirm(*found);
    if (!error)
      return failedRun(error.takeError());
    if (*error <= budget)
      return report(*found, *error);
    constexpr double kMargin = 0.8;
    allowed *= kMargin * budget / *error;
    if (*found == chosen)
      break;
  }
  if (llvm::Expected<double> emulated = measure(chosen, runs.size()); !emulated)
    return failedRun(emulated.takeError());
  error = confirm(chosen);
  if (!error)
    return failedRun(error.takeError());
  if (*error > budget)
    return wrong(name() + " cannot be kept: with all products in f32 the outputs already differ by " +
                 shortNumber(*error) +
                 " of their largest value, as other kernels add sums in another order; allow more");
  return report(chosen, *error);
}

int Compiler::choosePrecision(ModuleOp module) {
  const std::optional<double> budget = request.getPrecisionBudget();
  if (!budget || request.compileTo == Phase::Import)
    return kDone;
  auto wrong = [&](const Twine &what) { return fail(kWrongUse, request.model + ": error: " + what); };
  graph::FuncOp main = findMain(module);
  if (!main)
    return wrong("--precision auto needs a model or a module of phase import");
  if (llvm::count_if(module.getOps<graph::FuncOp>(), [](graph::FuncOp function) { return function.isPublic(); }) > 1)
    return wrong("--precision auto is for models of one function, and this one has several; give types by --precision "
                 "NODE=TYPE");
  return PrecisionSearch(*this, module, main, *budget).run();
}
