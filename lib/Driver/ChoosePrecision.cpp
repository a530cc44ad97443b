//===- ChoosePrecision.cpp - the precision of each product, by the error of outputs -------------------------------===//
//
// --precision auto:R: compiles the model once with a switch for each product of f32 (PrecisionSwitch.h), so that a
// mixture of precisions costs a run to judge. Where not all nodes may have the fastest type, they are ranked by what it
// saves for the error that it brings alone, sets of nodes whose error is small as one; the best take it, as many as the
// budget allows, what is left the next one (BudgetSearch.h). The mixture is then compiled as the artifact will have it,
// and what it computes on this machine has to keep the budget, too.
//
// Errors of nodes add up as those of independent variables do, in squares: that decides the order alone.
//
// With --max-compile-time the search ends in time for the compile behind it. Then what no run has shown to keep the
// budget stays f32.
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
#include "tc/Support/Logging.h"
#include "tc/Support/NodePattern.h"
#include "tc/Support/OutputFile.h"
#include "tc/Target/Reference/Reference.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>

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
// What is still to be done takes so many times as long as it took before.
constexpr double kTimeMargin = 1.5;
// Of a compile that has to be over at some time, at least this much is left for what is behind the search.
constexpr double kLeastRest = 0.1;
// Of the time for the search: errors of nodes alone, before any mixture is tried.
constexpr double kShareOfAlone = 0.6;
// Of the time that is left: the search, where schedules are measured behind it.
constexpr double kShareBesideTuning = 0.5;

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
  using Time = std::optional<Clock::time_point>;
  struct Measured {
    double error;
    std::vector<Difference> outputs;
  };

  int wrong(const Twine &what) { return compiler.fail(kWrongUse, request.model + ": error: " + what); }
  int failedRun(llvm::Error error) {
    return compiler.fail(kMachine, request.model + ": error: " + name() + " runs the model on " + nameData() +
                                       ", which failed: " + llvm::toString(std::move(error)) +
                                       (isRandom() ? "; give samples of inputs by --calibrate FILE.npz, or sizes by "
                                                     "--dim"
                                                   : ""));
  }
  std::string name() const { return "--precision " + request.precision; }
  std::string timeLimit() const { return "--max-compile-time " + request.maxTime; }
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
  void planTime(double runSeconds);
  bool mayConfirm() const { return !confirmEnd || Clock::now() <= *confirmEnd; }
  /// Whether the time was over when something was to be run, from then on.
  bool hasEnded() const { return ended; }
  SmallVector<size_t> findCandidates(const Chosen &chosen, Rounding rounding) const;
  llvm::Expected<double> measure(const Chosen &chosen, size_t mostRuns, double enough = kNotKnown);
  llvm::Expected<double> measureOnce(const Chosen &chosen, size_t mostRuns, double enough);
  llvm::Expected<double> measureAlone(Rounding rounding, ArrayRef<size_t> which);
  llvm::Expected<Chosen> search(double allowed);
  llvm::Error searchOne(Chosen &chosen, Rounding rounding, double allowed);
  llvm::Error measureEach(const Chosen &chosen);
  llvm::Expected<double> confirm(const Chosen &chosen);
  ProductPrecision describe(const Chosen &chosen) const;
  /// `error`: nullopt where no run told it.
  int report(const Chosen &chosen, std::optional<double> error);
  int reportUnproven();
  void log(const Twine &line) const {
    if (log::isEnabled(log::kPrecisionChannel))
      log::write(log::kPrecisionChannel, line.str());
  }

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
  std::vector<Difference> outputs, ofReferences;          ///< of each output; of f32 with itself
  std::map<std::pair<size_t, Chosen>, Measured> measured; ///< by the number of runs
  double trialSeconds = 0;                                ///< to compile the switch
  size_t runCount = 0;                                    ///< of the model
  bool ended = false;
  Time until, searchEnd, confirmEnd; ///< of what is measured now, of all that is, of what may begin to be confirmed
  llvm::BitVector isDecided;         ///< of each group: what it got is not for lack of time
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

/// The error of outputs, the largest of all; `outputs` has each. What exceeds `enough` for sure is not measured to its
/// end. kNotKnown: the time is over.
llvm::Expected<double> Compiler::PrecisionSearch::measure(const Chosen &chosen, size_t mostRuns, double enough) {
  const auto numbers = llvm::map_to_vector(chosen, [](Rounding each) { return int64_t(each); });
  const prim::Tensor ofSwitch =
      prim::fromInts(IntegerType::get(module.getContext(), 32), {int64_t(numbers.size())}, numbers);
  outputs.assign(trial->results.size(), {});
  ofReferences.resize(outputs.size());
  for (size_t i = 0; i < std::min(mostRuns, runs.size()); ++i) {
    if (until && Clock::now() >= *until) {
      ended = true;
      return kNotKnown;
    }
    ++runCount;
    TrialInputs inputs = runs[i];
    inputs.push_back(ofSwitch);
    auto results = trial->opened->run(inputs, trial->results);
    if (!results)
      return results.takeError();
    if (references.size() == i) { // the first call is of f32
      for (auto [difference, own] : llvm::zip(ofReferences, *results))
        difference.add(own, own);
      references.push_back(std::move(*results));
      continue;
    }
    double least = 0;
    for (auto [difference, ofReference, is, should] : llvm::zip(outputs, ofReferences, *results, references[i])) {
      difference.add(is, should);
      least = std::max(least, difference.ofMost(ofReference));
    }
    if (least > enough)
      return least;
  }
  double worst = 0;
  for (const Difference &difference : outputs)
    worst = std::max(worst, difference.ofMost());
  return worst;
}

/// The same, of what was measured before by what is known of it: `enough` is never more than it was.
llvm::Expected<double> Compiler::PrecisionSearch::measureOnce(const Chosen &chosen, size_t mostRuns, double enough) {
  if (const auto known = measured.find({mostRuns, chosen}); known != measured.end()) {
    outputs = known->second.outputs;
    return known->second.error;
  }
  llvm::Expected<double> error = measure(chosen, mostRuns, enough);
  if (error && *error != kNotKnown)
    measured[{mostRuns, chosen}] = {*error, outputs};
  return error;
}

/// The error of these groups, with all else in f32.
llvm::Expected<double> Compiler::PrecisionSearch::measureAlone(Rounding rounding, ArrayRef<size_t> which) {
  Chosen chosen(groups.size(), Rounding::F32);
  for (size_t i : which)
    chosen[i] = rounding;
  llvm::Expected<double> error = measureOnce(chosen, kRankRuns, kNotKnown);
  if (!error || *error == kNotKnown)
    return error;
  if (which.size() == 1)
    alone[which.front()][unsigned(rounding)] = *error;
  const std::string more = which.size() > 1 ? " and " + std::to_string(which.size() - 1) + " more" : "";
  log("alone: " + groups[which.front()].names.front() + more + " in " + getName(rounding) + ": " + shortNumber(*error));
  return error;
}

/// What could have this type, and gains by it.
SmallVector<size_t> Compiler::PrecisionSearch::findCandidates(const Chosen &chosen, Rounding rounding) const {
  SmallVector<size_t> which;
  for (auto [i, group] : llvm::enumerate(groups))
    if (!group.isFixed && !group.names.empty() && chosen[i] == Rounding::F32 && group.can[unsigned(rounding)] &&
        speeds.getGain(group, rounding) > 0)
      which.push_back(i);
  return which;
}

/// Gives `rounding` to as many of the groups that are f32 as the budget allows.
llvm::Error Compiler::PrecisionSearch::searchOne(Chosen &chosen, Rounding rounding, double allowed) {
  const SmallVector<size_t> which = findCandidates(chosen, rounding);
  const auto gains = llvm::map_to_vector(which, [&](size_t i) { return speeds.getGain(groups[i], rounding); });
  const Chosen before = chosen;
  auto numbersOf = [&](const llvm::BitVector &set) {
    return llvm::map_to_vector(set.set_bits(), [&](unsigned i) { return which[i]; });
  };
  auto mix = [&](const llvm::BitVector &set) {
    Chosen mixture = before;
    for (size_t i : numbersOf(set))
      mixture[i] = rounding;
    return mixture;
  };
  progress::setWork(which.size(), which.size());
  Time aloneEnd;
  if (const Clock::time_point now = Clock::now(); searchEnd)
    aloneEnd = now + std::chrono::duration_cast<Clock::duration>((*searchEnd - now) * kShareOfAlone);
  auto measureSet = [&](const llvm::BitVector &set) {
    until = aloneEnd;
    llvm::Expected<double> error = measureAlone(rounding, numbersOf(set));
    if (error && (set.count() == 1 || isQuiet(*error, allowed, set.count(), set.size())))
      progress::advance(set.count(), set.count());
    return error;
  };
  auto measureMixture = [&](const llvm::BitVector &set) {
    until = searchEnd;
    llvm::Expected<double> error = measureOnce(mix(set), runs.size(), allowed);
    if (error && *error != kNotKnown)
      log("mixture: " + Twine(set.count()) + " of " + Twine(set.size()) + " in " + getName(rounding) + ": " +
          shortNumber(*error) + (*error <= allowed ? ", kept; " : ", too much; ") + shortNumber(allowed) +
          " is allowed");
    return error;
  };
  llvm::Expected<llvm::BitVector> found = findMixture(gains, allowed, measureSet, measureMixture);
  if (!found)
    return found.takeError();
  chosen = mix(*found);
  for (auto [number, i] : llvm::enumerate(which)) {
    const std::optional<double> own = alone[i][unsigned(rounding)];
    if (!hasEnded() || found->test(number) || (own && *own > allowed))
      isDecided.set(i);
    else
      isDecided.reset(i);
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

/// For --explain: what each node brings alone in its type, or in those that it could have had.
llvm::Error Compiler::PrecisionSearch::measureEach(const Chosen &chosen) {
  const bool ofSearch = ended;
  const std::vector<Difference> ofChosen = outputs;
  auto restore = llvm::make_scope_exit([&] {
    ended = ofSearch;
    outputs = ofChosen;
  });
  until = searchEnd;
  const Chosen none = startFrom();
  for (Rounding rounding : roundings)
    for (size_t i : findCandidates(none, rounding))
      if (chosen[i] == rounding || chosen[i] == Rounding::F32)
        if (llvm::Expected<double> error = measureAlone(rounding, i); !error)
          return error.takeError();
  return llvm::Error::success();
}

/// What the outputs of the mixture differ by as the artifact's kernels compute them, on this machine, and as it was
/// measured; `outputs` has each.
llvm::Expected<double> Compiler::PrecisionSearch::confirm(const Chosen &chosen) {
  until.reset();
  if (llvm::Expected<double> emulated = measureOnce(chosen, runs.size(), kNotKnown); !emulated)
    return emulated.takeError();
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

/// There was no time to show that any choice keeps the budget: all stays f32 but for what the user said.
int Compiler::PrecisionSearch::reportUnproven() {
  ended = true;
  const Chosen chosen = startFrom();
  for (Rounding rounding : roundings)
    for (size_t i : findCandidates(chosen, rounding))
      isDecided.reset(i);
  outputs.assign(trial->results.size(), {});
  return report(chosen, std::nullopt);
}

int Compiler::PrecisionSearch::report(const Chosen &chosen, std::optional<double> error) {
  llvm::json::Array nodes;
  std::vector<std::string> left;
  std::map<std::string, size_t> counts; // by type
  size_t candidates = 0, undecided = 0;
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
      const bool isUndecided = hasEnded() && !isDecided.test(i);
      undecided += isUndecided;
      if (group.names.empty())
        reason = "no node has its name";
      else if (isUndecided)
        reason = timeLimit() + " ended the search before it was decided";
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
                                                      {"error", error.value_or(0)},
                                                      {"runs", error ? int64_t(runs.size()) : 0},
                                                      {"data", isRandom() ? "random" : "calibration"},
                                                      {"nodes", std::move(nodes)},
                                                      {"outputs", describeOutputs(main, outputs)},
                                                      {"config", std::move(config)}};
  if (hasEnded())
    compiler.explanation.precision["undecided"] = int64_t(undecided);
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
                             (!error ? ""
                                     : "; in " + nameRuns() + (isRandom() ? " (there is no --calibrate)" : "") +
                                           " the outputs differ from f32 by at most " + shortNumber(*error) +
                                           " of their largest value, allowed " + shortNumber(budget)));
  }
  if (undecided > 0)
    compiler.warn(timeLimit() + " ended the search of " + name() + ": " + Twine(candidates - undecided) + " of " +
                  Twine(candidates) + (candidates == 1 ? " node is" : " nodes are") + " decided, " + Twine(undecided) +
                  (undecided == 1 ? " is left and stays" : " are left and stay") + " f32; raise --max-compile-time" +
                  (runs.size() > 1 && !isRandom() ? ", or give fewer samples of inputs" : ""));
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
  const Clock::time_point start = Clock::now();
  auto built = compiler.buildTrial(*copy, {"f32", {}}, [&](func::FuncOp function) { return prepare(function); });
  if (!built)
    return failedRun(built.takeError());
  trialSeconds = secondsSince(start);
  if (!failed.empty())
    return wrong(name() + " needs inputs to run the model on, and there are no random ones: " + failed +
                 "; give samples of them by --calibrate FILE.npz");
  if (!compiler.failures.empty())
    return kDone; // phase prim says why
  if (!*built)
    return report(startFrom(), 0);
  trial = std::move(*built);
  isDecided.resize(groups.size(), true);
  return compute();
}

/// When the search has to end, where the compile has to. The rest compiles what the switch compiled, for each machine;
/// before that the mixture is compiled and run, to confirm it.
void Compiler::PrecisionSearch::planTime(double runSeconds) {
  const Time end = compiler.limits.getEnd();
  if (!end)
    return;
  auto before = [](Clock::time_point time, double seconds) {
    return time - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const size_t machines = (compiler.isFor(machine::TargetKind::Cpu) ? compiler.cpus.size() : 0) +
                          (compiler.isFor(machine::TargetKind::Cuda) ? compiler.gpus.size() : 0);
  const double rest = std::max(kTimeMargin * trialSeconds * double(machines) * (request.verify ? 2 : 1),
                               kLeastRest * std::chrono::duration<double>(*end - compiler.start).count());
  // Runs take as long as they did, but one may have begun.
  constexpr double kRunMargin = 1.2;
  confirmEnd = before(*end, rest + trialSeconds + runSeconds);
  searchEnd = before(*end, rest + kTimeMargin * trialSeconds + kRunMargin * runSeconds);
  if (compiler.measures())
    searchEnd = std::min(*searchEnd, Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                        (*searchEnd - Clock::now()) * kShareBesideTuning));
  until = searchEnd;
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
  planTime(/*runSeconds=*/0);
  const Clock::time_point before = Clock::now();
  if (llvm::Expected<double> exact = measure(Chosen(groups.size(), Rounding::F32), runs.size()); !exact)
    return failedRun(exact.takeError());
  if (hasEnded())
    return reportUnproven();
  const double runSeconds = secondsSince(before);
  planTime(runSeconds);
  log(llvm::formatv("{0} nodes or groups of nodes, {1}, which take {2:f2} s", groups.size(), nameRuns(), runSeconds)
          .str());
  if (!llvm::any_of(references, [](auto &outputs) { return hasNumbers(outputs); }))
    return wrong(name() + " goes by the outputs, which hold no finite number on " + nameData() +
                 (isRandom() ? "; give samples of inputs by --calibrate FILE.npz" : "; give other samples"));
  const Chosen chosen = startFrom();
  llvm::Expected<double> error = measureOnce(chosen, runs.size(), budget);
  if (!error)
    return failedRun(error.takeError());
  if (hasEnded())
    return reportUnproven();
  if (*error > budget)
    return wrong(name() +
                 " cannot be kept: the nodes whose type --precision NODE=TYPE gives make the outputs differ by " +
                 shortNumber(*error) + " of their largest value; allow more, or give them f32");
  double allowed = budget;
  for (unsigned tries = 0; tries < kTries; ++tries) {
    llvm::Expected<Chosen> found = search(allowed);
    if (!found)
      return failedRun(found.takeError());
    log(Twine(runCount) + " runs of the model" + (hasEnded() ? ", until the time was over" : ""));
    if (!mayConfirm())
      return reportUnproven();
    error = confirm(*found);
    if (!error)
      return failedRun(error.takeError());
    log("as the artifact computes it: " + shortNumber(*error) + ", " + shortNumber(budget) + " is allowed");
    if (*error <= budget) {
      if (llvm::Error failed = request.explain ? measureEach(*found) : llvm::Error::success())
        return failedRun(std::move(failed));
      return report(*found, *error);
    }
    constexpr double kMargin = 0.8;
    allowed *= kMargin * budget / *error;
    if (*found == chosen)
      break;
  }
  if (!mayConfirm())
    return reportUnproven();
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
