//===- EconomicsText.cpp - whether compiling pays: words and tables -----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Economics.h"
#include "tc/Support/PrintfText.h"

#include <algorithm>
#include <cmath>

using namespace tc;
using namespace tc::bench;

namespace {

using Outcome = Comparison::Outcome;

std::string modeOf(const std::string &name) { return name.rfind("tc ", 0) == 0 ? name.substr(3) : "default"; }

/// "1.52 times (1.47 to 1.58)"
std::string ratioText(double ratio, double low, double high) {
  return format("%.2f times (%.2f to %.2f)", ratio, low, high);
}

std::string perDayText(double runsPerDay) { return countText(runsPerDay) + " runs a day"; }

/// "4,200 runs (3,900 to 4,800)", and how long these take to come.
std::string breakEvenText(const Comparison &comparison, double runsPerDay) {
  std::string text = countText(*comparison.breakEvenRuns) + " runs";
  const std::string earliest = countText(*comparison.breakEvenEarliest),
                    latest = countText(*comparison.breakEvenLatest);
  if (earliest != latest)
    text += " (" + earliest + " to " + latest + ")";
  return text + ", " + durationText(86400 * *comparison.breakEvenRuns / runsPerDay) + " at " + perDayText(runsPerDay);
}

/// Of a peer.
std::string peerSentence(const Comparison &peer, double runsPerDay) {
  const std::string took = peer.name + " takes " + ratioText(peer.ratio, peer.low, peer.high) + " as long as tc";
  const std::string more = durationText(std::fabs(peer.moreSeconds));
  const std::string perDay = durationText(std::fabs(peer.gainSecondsPerDay)) + " of each day's runs";
  switch (peer.outcome) {
  case Outcome::Noise:
    return took + ", which is no difference that can be told from noise; " +
           (peer.moreSeconds > 0 ? "it is ready " + more + " sooner, and no number of runs brings that back."
                                 : "tc is ready " + more + " sooner.");
  case Outcome::AtOnce:
    return took + " and is ready " + more + " later: tc is ahead from the first run on, and saves " + perDay + ".";
  case Outcome::Later:
    return took + "; the " + more + " that tc needs more before its first run are back after " +
           breakEvenText(peer, runsPerDay) + ". From then on tc saves " + perDay + ".";
  case Outcome::FewRuns:
    return took + ", but is ready " + more + " later: tc is ahead for less than " + breakEvenText(peer, runsPerDay) +
           ". From then on tc loses " + perDay + ".";
  case Outcome::Never:
    return took + " and is ready " + more + " sooner: compiling never pays, tc loses " + perDay + ".";
  }
  return "";
}

std::string modeSentence(const Comparison &mode, double runsPerDay) {
  const std::string took = "--mode " + modeOf(mode.name) + " takes " +
                           ratioText(1 / mode.ratio, 1 / mode.high, 1 / mode.low) + " as long as the default";
  const std::string more = durationText(std::fabs(mode.moreSeconds));
  const std::string perDay = durationText(std::fabs(mode.gainSecondsPerDay)) + " of each day's runs";
  switch (mode.outcome) {
  case Outcome::Noise:
    return took + ", which is no difference that can be told from noise" +
           (mode.moreSeconds > 0 ? ": its " + more + " more of compiling do not pay." : ".");
  case Outcome::AtOnce:
    return took + " and compiles no longer: it pays from the first run on, and saves " + perDay + ".";
  case Outcome::Later:
    return took + "; its " + more + " more of compiling are back after " + breakEvenText(mode, runsPerDay) +
           ". From then on it saves " + perDay + ".";
  case Outcome::FewRuns:
  case Outcome::Never:
    return took + ": it does not pay.";
  }
  return "";
}

const EngineCost &costOf(const Economics &economics, const std::string &name) {
  return *std::find_if(economics.costs.begin(), economics.costs.end(),
                       [&](const EngineCost &cost) { return cost.name == name; });
}

/// The engine that is the cheapest for so many runs.
const EngineCost &cheapestAt(const Economics &economics, double runs) {
  const std::string *name = &economics.cheapest.front().name;
  for (const Stretch &stretch : economics.cheapest)
    if (stretch.fromRuns <= runs)
      name = &stretch.name;
  return costOf(economics, *name);
}

std::string leadSentence(const Economics &economics) {
  const double runs = economics.runsPerDay * kHorizonDays;
  const EngineCost &best = cheapestAt(economics, runs);
  const std::string when =
      format(" At %s, the %.0f days from now cost ", perDayText(economics.runsPerDay).c_str(), kHorizonDays) +
      durationText(best.onceSeconds + runs * best.runSeconds) + " with it";
  auto costs = [&](const EngineCost &cost) { return durationText(cost.onceSeconds + runs * cost.runSeconds); };
  std::string others;
  for (const EngineCost &cost : economics.costs)
    if (&cost != &best)
      others += ", " + costs(cost) + " with " + cost.name;
  if (best.kind == EngineKind::Peer || best.kind == EngineKind::Other)
    return "Take " + best.name +
           (best.isTie() ? ", or measure for longer (--seconds): nothing says that tc is slower, or faster." : ".") +
           when + others + ".";
  return "Compile with tc, --mode " + modeOf(best.name) + "." + when + others + ".";
}

/// For how few runs something else is cheaper than tc; empty where tc is the cheapest from the first run on.
std::string fewRunsSentence(const Economics &economics) {
  std::string text;
  for (size_t i = 0; i < economics.cheapest.size(); ++i) {
    const Stretch &stretch = economics.cheapest[i];
    const EngineKind kind = costOf(economics, stretch.name).kind;
    if (kind == EngineKind::Tc || kind == EngineKind::Mode)
      break;
    text += text.empty() ? "Do not compile for few runs: the cheapest is " : ", then ";
    text += stretch.name;
    if (i + 1 < economics.cheapest.size())
      text += " up to " + countText(economics.cheapest[i + 1].fromRuns);
    else
      return ""; // at no number of runs: said of each peer
  }
  return text.empty() ? "" : text + ", then tc.";
}

std::string startSentence(const Economics &economics) {
  std::string text;
  for (const EngineCost &cost : economics.costs)
    if (cost.kind == EngineKind::Peer)
      text += ", in " + durationText(cost.startSeconds) + " with " + cost.name;
  if (text.empty())
    return "";
  return "An artifact is compiled once for all processes: each further one is ready in " +
         durationText(economics.costs.front().startSeconds) + " with tc" + text + ".";
}

std::string bytesText(uint64_t bytes) { return bytes ? format("%.3f", double(bytes) * 1e-6) : "-"; }
std::string secondsText(double seconds) { return seconds > 0 ? format("%.3f", seconds) : "-"; }

/// What stands in the last columns of an engine's line.
std::string againstText(const Comparison &comparison) {
  const std::string perDay = comparison.outcome == Outcome::Noise ? "-" : format("%.3g", comparison.gainSecondsPerDay);
  return format("%14s %12s", breakEvenWord(comparison).c_str(), perDay.c_str());
}

int widthOf(const ModelResult &model) {
  size_t width = 10;
  for (const EngineResult &engine : model.engines)
    width = std::max(width, engine.name.size());
  return int(width);
}

const char *const costHeads =
    "   once s    start s    us / run   first us     mean us  std. dev.      p95 us      p99 us"
    "   pays at runs   gain s/day";

std::string costLine(const EngineResult &engine, const Economics &economics, int width) {
  std::string text = format("%-*s ", width, engine.name.c_str());
  const auto cost = std::find_if(economics.costs.begin(), economics.costs.end(),
                                 [&](const EngineCost &each) { return each.name == engine.name; });
  if (cost == economics.costs.end())
    return text + (engine.problem.empty() ? "what it needs before a run is not known" : engine.problem) + "\n";
  text += format("%9.3f  %9.4f  %10.2f %10.1f  %10.2f %10.2f  %10.2f  %10.2f ", cost->onceSeconds, cost->startSeconds,
                 engine.times.medianUs, engine.start.firstRunUs, engine.times.meanUs, engine.times.deviationUs,
                 engine.times.p95Us, engine.times.p99Us);
  const Comparison *comparison = economics.find(engine.name);
  return text + (comparison ? againstText(*comparison) : "") + "\n";
}

std::string sentencesText(const Economics &economics) {
  std::string text;
  for (const std::string &sentence : recommend(economics))
    text += "  " + sentence + "\n";
  return text;
}

std::string memoryTable(const ModelResult &model) {
  const int width = widthOf(model);
  std::string text = format("  %-*s %11s %10s %10s %10s %13s %9s %9s %9s\n", width, "needs", "compile s", "import s",
                            "build s", "load s", "peak RSS MB", "artifact", "weights", "arena MB");
  for (const EngineResult &engine : model.engines) {
    if (!engine.problem.empty())
      continue;
    const EngineStart &start = engine.start;
    text += format("  %-*s %11s %10s %10s %10s %13s %9s %9s %9s\n", width, engine.name.c_str(),
                   secondsText(start.compileSeconds.value_or(0)).c_str(), secondsText(start.importSeconds).c_str(),
                   secondsText(start.buildSeconds).c_str(),
                   start.loadSeconds > 0 ? format("%.5f", start.loadSeconds).c_str() : "-",
                   bytesText(start.peakRssBytes).c_str(), bytesText(start.artifactBytes).c_str(),
                   bytesText(start.weightsBytes).c_str(), bytesText(start.arenaBytes).c_str());
  }
  return text;
}

std::string fusionTable(const Report &report, const ModelResult &model) {
  const FusionTotals totals = fusionOf(report, model);
  if (!totals.kernels)
    return "";
  std::string text = format("  %9s %10s %10s %12s %10s %10s  %s\n", "launches", "unfused", "MB", "unfused MB",
                            "% of roof", "unfused", "kernel: nodes, each of which would be a kernel unfused");
  size_t shown = 0;
  for (const KernelResult &kernel : model.kernels) {
    if (kernel.unfusedLaunches < 2 || shown == 10)
      continue;
    ++shown;
    const double unfused = report.percentUnfused(kernel);
    const std::string before = unfused > 0 ? format("%.0f", unfused) : "-";
    const std::string after = kernel.bytes ? format("%.0f", report.percentOfRoofline(kernel)) : "-";
    std::string nodes = kernel.nodes.substr(0, 80);
    text += format("  %9.0f %10.0f %10s %12s %10s %10s  %s: %s\n", kernel.calls,
                   kernel.calls * double(kernel.unfusedLaunches), bytesText(kernel.bytes).c_str(),
                   bytesText(kernel.unfusedBytes).c_str(), after.c_str(), before.c_str(), kernel.name.c_str(),
                   nodes.c_str());
  }
  return (shown ? text : "") + "  " + describeFusion(totals) + "\n";
}

} // namespace

std::string tc::bench::breakEvenWord(const Comparison &comparison) {
  switch (comparison.outcome) {
  case Outcome::Noise:
    return "noise";
  case Outcome::AtOnce:
    return "at once";
  case Outcome::Later:
    return "> " + countText(*comparison.breakEvenRuns);
  case Outcome::FewRuns:
    return "< " + countText(*comparison.breakEvenRuns);
  case Outcome::Never:
    return "never";
  }
  return "";
}

std::string tc::bench::describeFusion(const FusionTotals &totals) {
  std::string text = format("Fusion: %.0f launches a run instead of %.0f", totals.launches, totals.unfusedLaunches);
  if (totals.unfusedBytes > 0)
    text += format(", %.2f MB read and written instead of %.2f; with a kernel for each node at most %.0f %% of the "
                   "roofline could be reached, %.0f %% are",
                   1e-6 * totals.bytes, 1e-6 * totals.unfusedBytes, totals.percentBefore(), totals.percentAfter());
  else
    text += "; bytes are known for static sizes (--static)";
  return text + ".";
}

std::vector<std::string> tc::bench::recommend(const Economics &economics) {
  if (economics.costs.empty())
    return {"What compiling takes is not known of an artifact: give the model."};
  std::vector<std::string> sentences;
  if (economics.costs.size() > 1)
    sentences.push_back(leadSentence(economics));
  if (economics.peers.empty())
    sentences.push_back("No peer was measured, so that nothing says what compiling gains over one: --peers NAME,... "
                        "and --python PROGRAM, which can import it.");
  for (const Comparison &peer : economics.peers)
    sentences.push_back(peerSentence(peer, economics.runsPerDay));
  for (const Comparison &mode : economics.modes)
    sentences.push_back(modeSentence(mode, economics.runsPerDay));
  for (std::string sentence : {fewRunsSentence(economics), startSentence(economics)})
    if (!sentence.empty())
      sentences.push_back(std::move(sentence));
  return sentences;
}

std::string tc::bench::compareSizes(const std::vector<ModelResult> &results) {
  if (results.size() == 1 && !results.front().sizes.empty())
    return "These figures are of " + sizesName(results.front().sizes) + " alone; --dim " +
           results.front().sizes.front().first + "=SIZE,... shows how they change with it.";
  if (results.size() < 2)
    return "";
  std::string text;
  for (const ModelResult &model : results) {
    const std::vector<EngineCost> costs = costsOf(model);
    const EngineCost *best = nullptr;
    for (const EngineCost &cost : costs)
      if (!best || cost.runSeconds < best->runSeconds)
        best = &cost;
    if (!best)
      continue;
    // tc, where the rounds do not agree that another one is faster.
    if (best->isTie())
      best = &costs.front();
    text += (text.empty() ? "The fastest by size: " : ", ") + best->name + " at " + sizesName(model.sizes);
  }
  return text.empty() ? "" : text + ".";
}

namespace {
std::string textOfSize(const Report &report, const ModelResult &model) {
  const Economics economics = assess(costsOf(model), report.runsPerDay.value_or(0));
  const int width = widthOf(model);
  std::string text = format("  %-*s ", width, "economics") + costHeads + "\n";
  for (const EngineResult &engine : model.engines)
    text += "  " + costLine(engine, economics, width);
  text += memoryTable(model) + sentencesText(economics);
  return text + fusionTable(report, model);
}
} // namespace

std::string tc::bench::economicsText(const Report &report, const std::vector<ModelResult> &results) {
  std::string text;
  for (const ModelResult &model : results)
    text += (results.size() > 1 ? "  " + sizesName(model.sizes) + "\n" : "") + textOfSize(report, model);
  const std::string sizes = compareSizes(results);
  return text + (sizes.empty() ? "" : "  " + sizes + "\n");
}
