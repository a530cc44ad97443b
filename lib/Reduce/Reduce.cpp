//===- Reduce.cpp - the search for the smallest graph -------------------------------------------------------------===//
//
// Each step is Zeller and Hildebrandt's ddmin over what the step can take away: all of it, halves, quarters and so on.
// The steps are repeated until none finds anything, as what one took away lets another go on.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Reduce/Reduce.h"

#include "Edits.h"
#include "tc/Dialect/TC/IR/DataFile.h"
#include "tc/Dialect/TC/IR/Seeded.h"
#include "tc/Support/Hash.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include <thread>

using namespace mlir;
using namespace tc;
using namespace tc::reduce;
using llvm::BitVector;

ModuleSize tc::reduce::measure(ModuleOp module) {
  ModuleSize size;
  graph::FuncOp main = getMain(module);
  if (!main)
    return size;
  size.nodes = getNodes(main).size();
  size.inputs = main.getNumArguments();
  size.outputs = main.getNumResults();
  llvm::StringSet<> counted;
  main.walk([&](graph::ConstantOp constant) {
    auto data = dyn_cast<base::DataAttr>(constant.getValue());
    if (data && !base::isSeeded(data) && counted.insert(data.getHash()).second)
      size.constantBytes += data.getLength();
  });
  return size;
}

namespace {

/// Beyond this many pieces, what is left is hardly one of them alone.
constexpr size_t kMostAlone = 8;
/// A round is a run of all steps.
constexpr unsigned kMostRounds = 16;

class Search {
public:
  Search(OwningOpRef<ModuleOp> &best, const ReduceOptions &options, const Judge &judge)
      : best(best), options(options), judge(judge), data(options.folder + "/weights.data") {
    isNew(*best);
  }
  llvm::Expected<uint64_t> run();

private:
  using Make = llvm::function_ref<OwningOpRef<ModuleOp>(size_t)>;
  std::optional<size_t> takeFirst(StringRef step, size_t count, Make make);
  bool minimize(const Step &step);
  bool refine();
  bool shrinkSizes();
  bool isNew(ModuleOp module);
  bool isOver() const { return tries >= options.maxTries || failed || (options.stop && *options.stop); }

  OwningOpRef<ModuleOp> &best;
  const ReduceOptions &options;
  const Judge &judge;
  base::DataFile data;
  llvm::StringSet<> seen; ///< hashes of what was judged
  uint64_t tries = 0, written = 0;
  llvm::Error error = llvm::Error::success();
  bool failed = false;
};

bool Search::isNew(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return seen.insert(contentHash(ArrayRef<char>(text.data(), text.size()))).second;
}

/// Judges candidates 0 to `count`, several at once; the first good one becomes the best.
std::optional<size_t> Search::takeFirst(StringRef step, size_t count, Make make) {
  struct Candidate {
    size_t index;
    OwningOpRef<ModuleOp> module;
    std::string path;
    bool isGood = false;
  };
  for (size_t next = 0; next < count && !isOver();) {
    std::vector<Candidate> batch;
    for (; next < count && batch.size() < options.jobs; ++next) {
      Candidate candidate{next, make(next), {}};
      if (!candidate.module || mlir::failed(verify(*candidate.module)) || !isNew(*candidate.module))
        continue;
      candidate.path = options.folder + "/candidate" + std::to_string(written++) + ".mlir";
      if (llvm::Error problem = data.writeModule(*candidate.module, candidate.path)) {
        llvm::consumeError(std::move(error));
        error = std::move(problem);
        failed = true;
        return std::nullopt;
      }
      if (options.alsoWrite && !options.alsoWrite(*candidate.module, candidate.path))
        continue;
      batch.push_back(std::move(candidate));
    }
    std::vector<std::thread> threads;
    for (Candidate &candidate : batch)
      threads.emplace_back([&] { candidate.isGood = judge(candidate.path); });
    for (std::thread &thread : threads)
      thread.join();
    tries += batch.size();
    std::optional<size_t> taken;
    for (Candidate &candidate : batch) {
      for (const char *suffix : {"", ".data"})
        llvm::sys::fs::remove(candidate.path + suffix);
      if (!candidate.isGood || taken)
        continue;
      taken = candidate.index;
      best = std::move(candidate.module);
      if (options.onSmaller)
        options.onSmaller(*best, step, tries);
    }
    if (taken)
      return taken;
  }
  return std::nullopt;
}

bool Search::minimize(const Step &step) {
  OwningOpRef<ModuleOp> base = best->clone();
  std::vector<unsigned> items(step.count(getMain(*base)));
  const size_t all = items.size();
  for (size_t i = 0; i < all; ++i)
    items[i] = i;
  bool changed = false;
  for (size_t pieces = 1; !items.empty();) {
    auto getPiece = [&](size_t k) {
      const size_t begin = items.size() * k / pieces, end = items.size() * (k + 1) / pieces;
      return ArrayRef<unsigned>(items).slice(begin, end - begin);
    };
    // Each piece alone, then all but one. Of two pieces both are the same.
    const size_t alone = pieces > 2 && pieces <= kMostAlone ? pieces : 0;
    auto make = [&](size_t index) -> OwningOpRef<ModuleOp> {
      BitVector dropped(all, true);
      ArrayRef<unsigned> piece = getPiece(index < alone ? index : index - alone);
      if (index < alone) {
        for (unsigned item : piece)
          dropped.reset(item);
      } else {
        for (unsigned item : items)
          dropped.reset(item);
        for (unsigned item : piece)
          dropped.set(item);
      }
      OwningOpRef<ModuleOp> module = base->clone();
      if (!step.drop(getMain(*module), dropped))
        return {};
      return module;
    };
    std::optional<size_t> taken = takeFirst(step.name, alone + pieces, make);
    if (!taken) {
      if (pieces >= items.size())
        break;
      pieces = std::min(2 * pieces, items.size());
      continue;
    }
    changed = true;
    ArrayRef<unsigned> piece = getPiece(*taken < alone ? *taken : *taken - alone);
    std::vector<unsigned> kept;
    for (unsigned item : items)
      if (llvm::is_contained(piece, item) == (*taken < alone))
        kept.push_back(item);
    items = std::move(kept);
    pieces = std::min(*taken < alone ? 2 : std::max<size_t>(pieces - 1, 2), std::max<size_t>(items.size(), 1));
  }
  return changed;
}

bool Search::refine() {
  return takeFirst("types of inner values", 1,
                   [&](size_t) {
                     OwningOpRef<ModuleOp> module = best->clone();
                     refineTypes(getMain(*module), options.sizes);
                     return module;
                   })
      .has_value();
}

bool Search::shrinkSizes() {
  bool changed = false;
  int64_t below = INT64_MAX;
  for (;;) {
    std::vector<int64_t> sizes = getStaticSizes(getMain(*best));
    auto next = llvm::find_if(sizes, [&](int64_t size) { return size < below; });
    if (next == sizes.end())
      return changed;
    below = *next;
    std::vector<SizeChange> changes;
    for (int64_t to : {int64_t(1), int64_t(2), int64_t(4), below / 2})
      for (bool forget : {false, true})
        if (to < below && (to == below / 2 || to < below / 2))
          changes.push_back({below, to, forget});
    changed |= takeFirst("smaller sizes", changes.size(), [&](size_t index) -> OwningOpRef<ModuleOp> {
                 OwningOpRef<ModuleOp> module = best->clone();
                 if (!changeSize(getMain(*module), changes[index]))
                   return {};
                 return module;
               }).has_value();
  }
}

llvm::Expected<uint64_t> Search::run() {
  // Candidates that are ill formed are none, and nothing to tell.
  ScopedDiagnosticHandler handler(best->getContext(), [](Diagnostic &) { return success(); });
  refine();
  for (unsigned round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (const Step &step : getSteps()) {
      const bool smaller = minimize(step);
      changed |= smaller;
      // What was inside of others has no sizes yet.
      if (smaller && (step.name.starts_with("functions") || step.name.starts_with("subgraphs")))
        refine();
    }
    changed |= shrinkSizes();
    if (!changed)
      break;
  }
  if (failed)
    return std::move(error);
  return tries;
}

} // namespace

llvm::Expected<uint64_t> tc::reduce::reduceModule(OwningOpRef<ModuleOp> &module, const ReduceOptions &options,
                                                  const Judge &judge) {
  return Search(module, options, judge).run();
}
