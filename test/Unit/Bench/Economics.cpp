//===- Economics.cpp - from figures to advice ---------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Economics.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace tc::bench;
using Outcome = Comparison::Outcome;

namespace {

/// tc compiles for 2 s and runs for 100 us.
EngineCost makeTc() { return {"tc", EngineKind::Tc, 2, 0.001, 1e-4, 1, 1, 1}; }

EngineCost makePeer(const std::string &name, double once, double ratio, double low, double high) {
  return {name, EngineKind::Peer, once, once, 1e-4 * ratio, ratio, low, high};
}

EngineCost makeMode(double once, double ratio, double low, double high) {
  return {"tc max-autotune", EngineKind::Mode, once, 0.001, 1e-4 * ratio, ratio, low, high};
}

std::string adviceOf(const std::vector<EngineCost> &costs, double runsPerDay = 1e6) {
  std::string text;
  for (const std::string &sentence : recommend(assess(costs, runsPerDay)))
    text += sentence + "\n";
  return text;
}

bool holds(const std::string &text, const std::string &part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

EngineResult makeEngine(const std::string &name, EngineKind kind, double us, double ratio) {
  EngineResult engine;
  engine.name = name;
  engine.kind = kind;
  engine.times = Times::of({us, us, us});
  engine.ratio = engine.ratioLow = engine.ratioHigh = ratio;
  return engine;
}

ModelResult makeModel(double ratio) {
  ModelResult model;
  model.sizes = {{"batch", 8}};
  EngineResult own = makeEngine("tc", EngineKind::Tc, 100, 1),
               peer = makeEngine("ort", EngineKind::Peer, 100 * ratio, ratio);
  own.start.compileSeconds = 2;
  own.start.loadSeconds = 0.001;
  own.start.firstRunUs = 300;
  peer.start.importSeconds = 9;
  peer.start.buildSeconds = 0.5;
  peer.start.firstRunUs = 50; // less than a run
  model.engines = {own, peer};
  return model;
}

} // namespace

TEST_CASE("tc is faster: break-even, its range, and the gain of a day", "[economics]") {
  const std::vector<EngineCost> costs = {makeTc(), makePeer("ort", 0.5, 1.5, 1.25, 1.6)};
  const Economics economics = assess(costs, 1e6);
  REQUIRE(economics.peers.size() == 1);
  const Comparison &ort = economics.peers[0];
  CHECK(ort.outcome == Outcome::Later);
  CHECK(ort.moreSeconds == Approx(1.5));
  CHECK(ort.gainSeconds == Approx(5e-5));
  CHECK(ort.gainSecondsPerDay == Approx(50));
  CHECK(*ort.breakEvenRuns == Approx(30000));
  CHECK(*ort.breakEvenEarliest == Approx(25000));
  CHECK(*ort.breakEvenLatest == Approx(60000));
  REQUIRE(economics.cheapest.size() == 2);
  CHECK(economics.cheapest[0].name == "ort");
  CHECK(economics.cheapest[1].name == "tc");
  CHECK(economics.cheapest[1].fromRuns == Approx(30000));
  const std::string advice = adviceOf(costs);
  CHECK(advice.rfind(
            "Compile with tc, --mode default. At 1,000,000 runs a day, the 30 days from now cost 50 min with it, "
            "75 min with ort.\n",
            0) == 0);
  CHECK(holds(advice,
              "ort takes 1.50 times (1.25 to 1.60) as long as tc; the 1.5 s that tc needs more before its first run "
              "are back after 30,000 runs (25,000 to 60,000), 43 min at 1,000,000 runs a day. From then on tc "
              "saves 50 s of each day's runs."));
  CHECK(holds(advice, "Do not compile for few runs: the cheapest is ort up to 30,000, then tc."));
  CHECK(holds(advice, "each further one is ready in 1.0 ms with tc, in 500 ms with ort."));
  // So few runs that a month does not bring it back.
  CHECK(holds(adviceOf(costs, 100), "Take ort. At 100 runs a day,"));
}

TEST_CASE("tc is faster and sooner ready", "[economics]") {
  const std::vector<EngineCost> costs = {makeTc(), makePeer("inductor", 30, 1.5, 1.4, 1.6)};
  const Economics economics = assess(costs, 1e6);
  CHECK(economics.peers[0].outcome == Outcome::AtOnce);
  CHECK_FALSE(economics.peers[0].breakEvenRuns);
  REQUIRE(economics.cheapest.size() == 1);
  CHECK(economics.cheapest[0].name == "tc");
  const std::string advice = adviceOf(costs);
  CHECK(
      holds(advice, "and is ready 28 s later: tc is ahead from the first run on, and saves 50 s of each day's runs."));
  CHECK_FALSE(holds(advice, "Do not compile"));
}

TEST_CASE("tc is slower: it never pays, or only for few runs", "[economics]") {
  const std::vector<EngineCost> costs = {makeTc(), makePeer("ort", 0.5, 0.8, 0.75, 0.9)};
  CHECK(assess(costs, 1e6).peers[0].outcome == Outcome::Never);
  CHECK_FALSE(assess(costs, 1e6).peers[0].breakEvenRuns);
  std::string advice = adviceOf(costs);
  CHECK(advice.rfind("Take ort. ", 0) == 0);
  CHECK(holds(advice,
              "ort takes 0.80 times (0.75 to 0.90) as long as tc and is ready 1.5 s sooner: compiling never pays, tc "
              "loses 20 s of each day's runs."));
  CHECK_FALSE(holds(advice, "then tc"));
  // One that takes long to build its session is behind at first.
  const std::vector<EngineCost> later = {makeTc(), makePeer("inductor", 30, 0.8, 0.75, 0.9)};
  const Economics economics = assess(later, 1e6);
  CHECK(economics.peers[0].outcome == Outcome::FewRuns);
  CHECK(*economics.peers[0].breakEvenRuns == Approx(1.4e6));
  CHECK(*economics.peers[0].breakEvenEarliest == Approx(1.12e6));
  CHECK(*economics.peers[0].breakEvenLatest == Approx(2.8e6));
  advice = adviceOf(later);
  CHECK(holds(advice,
              "tc is ahead for less than 1,400,000 runs (1,120,000 to 2,800,000), 34 h at 1,000,000 runs a day. From "
              "then on tc loses 20 s of each day's runs."));
  CHECK(advice.rfind("Take inductor. ", 0) == 0);
  CHECK(adviceOf(later, 1000).rfind("Compile with tc, --mode default. ", 0) == 0);
}

TEST_CASE("a difference that the rounds do not agree on is none", "[economics]") {
  const std::vector<EngineCost> costs = {makeTc(), makePeer("ort", 0.5, 1.2, 0.98, 1.4)};
  const Economics economics = assess(costs, 1e6);
  CHECK(economics.peers[0].outcome == Outcome::Noise);
  CHECK_FALSE(economics.peers[0].breakEvenRuns);
  // At no number of runs is speed a reason to compile.
  REQUIRE(economics.cheapest.size() == 1);
  CHECK(economics.cheapest[0].name == "ort");
  const std::string advice = adviceOf(costs, 1e9);
  CHECK(advice.rfind("Take ort, or measure for longer (--seconds): nothing says that tc is slower, or faster. At ",
                     0) == 0);
  CHECK(holds(advice,
              "which is no difference that can be told from noise; it is ready 1.5 s sooner, and no number of runs "
              "brings that back."));
  CHECK_FALSE(holds(advice, "are back after"));
  CHECK(holds(adviceOf({makeTc(), makePeer("inductor", 30, 1.2, 0.98, 1.4)}), "tc is ready 28 s sooner."));
}

TEST_CASE("a difference below a percent is none, however often it is seen", "[economics]") {
  const Economics economics =
      assess({makeTc(), makePeer("ort", 0.5, 1.009, 1.008, 1.01), makeMode(2, 0.995, 0.99, 0.999)}, 1e6);
  CHECK(economics.peers[0].outcome == Outcome::Noise);
  CHECK(economics.modes[0].outcome == Outcome::Noise);
  CHECK(economics.cheapest.size() == 1);
  CHECK(assess({makeTc(), makePeer("ort", 0.5, 1.02, 1.001, 1.03)}, 1e6).peers[0].outcome == Outcome::Later);
}

TEST_CASE("whether another mode pays", "[economics]") {
  // 10 us a run for 40 s of compiling: 4 million runs, four days.
  std::vector<EngineCost> costs = {makeTc(), makeMode(42, 0.9, 0.88, 0.92)};
  Economics economics = assess(costs, 1e6);
  REQUIRE(economics.modes.size() == 1);
  CHECK(economics.modes[0].name == "tc max-autotune");
  CHECK(economics.modes[0].outcome == Outcome::Later);
  CHECK(*economics.modes[0].breakEvenRuns == Approx(4e6));
  CHECK(*economics.modes[0].breakEvenLatest == Approx(40 / (1e-4 * 0.9 * (1 / 0.92 - 1))));
  CHECK(economics.modes[0].gainSecondsPerDay == Approx(10));
  std::string advice = adviceOf(costs);
  CHECK(advice.rfind("Compile with tc, --mode max-autotune. ", 0) == 0);
  CHECK(holds(advice,
              "--mode max-autotune takes 0.90 times (0.88 to 0.92) as long as the default; its 40 s more of compiling "
              "are back after 4,000,000 runs (3,260,000 to 5,110,000), 4.0 days at 1,000,000 runs a day."));
  CHECK(adviceOf(costs, 1e5).rfind("Compile with tc, --mode default. ", 0) == 0);
  CHECK(holds(adviceOf({makeTc(), makeMode(42, 0.99, 0.97, 1.01)}), "its 40 s more of compiling do not pay."));
  CHECK(adviceOf({makeTc(), makeMode(1.9, 0.99, 0.97, 1.01)}).rfind("Compile with tc, --mode default. ", 0) == 0);
  CHECK(holds(adviceOf({makeTc(), makeMode(42, 1.1, 1.05, 1.2)}), "as long as the default: it does not pay."));
  CHECK(holds(adviceOf({makeTc(), makeMode(2, 0.9, 0.88, 0.92)}), "it pays from the first run on"));
}

TEST_CASE("no peers, no figures, one size", "[economics]") {
  const std::string advice = adviceOf({makeTc()});
  CHECK(advice.rfind("No peer was measured, so that nothing says what compiling gains over one", 0) == 0);
  CHECK(advice.find('\n') == advice.size() - 1);
  CHECK(holds(adviceOf({}), "give the model."));
  CHECK(compareSizes({makeModel(1.5)}) ==
        "These figures are of batch=8 alone; --dim batch=SIZE,... shows how they change "
        "with it.");
  ModelResult other = makeModel(0.5);
  other.sizes[0].second = 32;
  CHECK(compareSizes({makeModel(1.5), other}) == "The fastest by size: tc at batch=8, ort at batch=32.");
  CHECK(compareSizes({ModelResult()}).empty());
}

TEST_CASE("several peers: the cheapest by number of runs", "[economics]") {
  const Economics economics = assess({makeTc(), makePeer("torch", 0.1, 5, 4.9, 5.1), makePeer("ort", 0.5, 2, 1.9, 2.1),
                                      makePeer("slow", 1, 6, 5.9, 6.1), makeMode(1000, 0.5, 0.4, 0.6)},
                                     1e6);
  std::string order;
  for (const Stretch &stretch : economics.cheapest)
    order += stretch.name + " ";
  CHECK(order == "torch ort tc tc max-autotune ");
  CHECK(economics.cheapest[1].fromRuns == Approx(0.4 / 3e-4));
}

TEST_CASE("costs of engines: what is before the first run, and what is in it", "[economics]") {
  ModelResult model = makeModel(1.5);
  const std::vector<EngineCost> costs = costsOf(model);
  REQUIRE(costs.size() == 2);
  CHECK(costs[0].startSeconds == Approx(0.001 + 200e-6));
  CHECK(costs[0].onceSeconds == Approx(2.0012));
  CHECK(costs[1].startSeconds == Approx(0.5));
  CHECK(costs[1].onceSeconds == Approx(0.5)); // Python's import is none of a peer's costs
  CHECK(costs[1].runSeconds == Approx(1.5e-4));
  model.engines[1].problem = "it failed";
  CHECK(costsOf(model).size() == 1);
  model.engines[0].start.compileSeconds.reset();
  CHECK(costsOf(model).empty());
}

TEST_CASE("fused against unfused", "[economics]") {
  Report report;
  report.rooflines.push_back(
      {1, "avx2", 100, {{"L2", 1000000, 500000, 50, 50}, {"memory", UINT64_MAX, 1 << 28, 10, 10}}});
  KernelResult kernel;
  kernel.calls = 2;
  kernel.us = 100;
  kernel.flops = 1000;
  kernel.bytes = 400000;
  kernel.unfusedLaunches = 3;
  kernel.unfusedBytes = 1200000; // each launch within L2
  ModelResult model;
  model.kernels = {kernel, KernelResult()};
  const FusionTotals totals = fusionOf(report, model);
  CHECK(totals.launches == 2);
  CHECK(totals.unfusedLaunches == 6);
  CHECK(totals.bytes == 800000);
  CHECK(totals.unfusedBytes == 2400000);
  CHECK(totals.percentBefore() == Approx(100.0 / 3));
  CHECK(totals.percentAfter() == Approx(16));
  CHECK(report.percentUnfused(kernel) == Approx(100.0 / 3));
  CHECK(describeFusion(totals) ==
        "Fusion: 2 launches a run instead of 6, 0.80 MB read and written instead of 2.40; with a "
        "kernel for each node at most 33 % of the roofline could be reached, 16 % are.");
  model.kernels[0].bytes = model.kernels[0].unfusedBytes = 0;
  CHECK(describeFusion(fusionOf(report, model)) ==
        "Fusion: 2 launches a run instead of 6; bytes are known for static sizes (--static).");
}

TEST_CASE("durations and counts as people read them", "[economics]") {
  CHECK(durationText(0) == "0.0 us");
  CHECK(durationText(2.5e-6) == "2.5 us");
  CHECK(durationText(0.0123) == "12 ms");
  CHECK(durationText(90) == "90 s");
  CHECK(durationText(121) == "2.0 min");
  CHECK(durationText(86400) == "24 h");
  CHECK(durationText(-86400 * 20) == "-20 days");
  CHECK(countText(0) == "0");
  CHECK(countText(0.2) == "1");
  CHECK(countText(999) == "999");
  CHECK(countText(1234) == "1,230");
  CHECK(countText(1234567) == "1,230,000");
  CHECK(countText(1e18) == "1.0e+18");
}

TEST_CASE("the page shows what is recommended, with pictures", "[economics]") {
  Report report;
  report.runsPerDay = 1e6;
  report.rooflines.push_back(
      {1, "avx2", 100, {{"L2", 1000000, 500000, 50, 50}, {"memory", UINT64_MAX, 1 << 28, 10, 10}}});
  ModelResult model = makeModel(1.5);
  model.engines[0].start.peakRssBytes = 5000000;
  model.engines[1].name = "a<b";
  report.models.push_back(model);
  const std::string html = toHtml(report);
  for (const char *text : {"Does compiling pay?", "<li>Compile with tc, --mode default.", "Distribution of the times",
                           "Cost over the number of runs", "aria-label=\"Memory\"", "a&lt;b: break-even at 30,000 runs",
                           "class=\"month\""})
    CHECK(holds(html, text));
  CHECK_FALSE(holds(html, "a<b"));
  CHECK_FALSE(holds(html, "\"nan"));
  report.runsPerDay.reset();
  CHECK_FALSE(holds(toHtml(report), "Does compiling pay?"));
}
