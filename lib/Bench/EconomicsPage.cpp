//===- EconomicsPage.cpp - whether compiling pays: plots ----------------------------------------------------------===//
//
// Four pictures (SVG) that stand side by side where there is room: how the times of runs are distributed, what engines
// cost over the number of runs, memory, and what fusion saves. Small ones, so that letters stay readable on a phone.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Economics.h"
#include "tc/Support/KernelPicture.h"
#include "tc/Support/PrintfText.h"

#include <algorithm>
#include <cmath>

using namespace tc;
using namespace tc::bench;

namespace {

constexpr double kWidth = 520, kHeight = 300, kLeft = 62, kRight = 28, kTop = 12, kBottom = 44;
constexpr size_t kColours = 7; // of .e0, .e1, ... of the page

/// An engine has one colour in all pictures.
std::string colourOf(const ModelResult &model, const std::string &name) {
  for (size_t i = 0; i < model.engines.size(); ++i)
    if (model.engines[i].name == name)
      return "e" + std::to_string(i % kColours);
  return "e0";
}

std::string svgHead(double height, const char *label) {
  return format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                "aria-label=\"%s\">\n",
                kWidth, height, label);
}

std::string text(double x, double y, const char *anchor, const std::string &words, const char *kind = "soft") {
  return format("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", kind, x, y, anchor) +
         escapeHtml(words) + "</text>\n";
}

/// 20 us, 1 ms: of a round time.
std::string timeText(double value) {
  const std::string longer = durationText(value * (1 + 1e-9));
  const size_t point = longer.find(".0 ");
  return point == std::string::npos ? longer : longer.substr(0, point) + longer.substr(point + 2);
}

/// 0.01, 1, 1000, 1e6: of a power of ten.
std::string powerText(double value) { return value < 9999 ? format("%g", value) : format("1e%.0f", std::log10(value)); }

/// The next of ..., 1, 2, 5, 10, ... that is not larger than the value, or not smaller.
double roundTo125(double value, bool isUp) {
  double best = 0;
  const int power = int(std::floor(std::log10(value)));
  for (int each = power - 1; each <= power + 1; ++each)
    for (double digit : {1, 2, 5}) {
      const double round = digit * std::pow(10, each);
      if (isUp && round >= value * (1 - 1e-9) && best == 0)
        best = round;
      if (!isUp && round <= value * (1 + 1e-9))
        best = round;
    }
  return best;
}

/// Positions on an axis between two values.
class Axis {
public:
  enum class Kind { Percent, Time, Power }; ///< the last two are logarithmic
  Axis(Kind kind, double low, double high, double begin, double end)
      : kind(kind), least(low), most(high), low(scale(low)), high(scale(high)), begin(begin), end(end) {}
  double at(double value) const {
    return begin + (std::clamp(scale(value), low, high) - low) / (high - low) * (end - begin);
  }
  std::vector<double> ticks() const {
    std::vector<double> values;
    if (kind == Kind::Percent) {
      for (int i = 0; i <= 4; ++i)
        values.push_back(least + (most - least) * i / 4);
      return values;
    }
    const int first = int(std::floor(low)), last = int(std::ceil(high)), step = (last - first) / 7 + 1;
    for (int power = first; power <= last; power += step)
      for (double digit : {1, 2, 5})
        if (const double value = digit * std::pow(10, power); value >= least * (1 - 1e-9) &&
                                                              value <= most * (1 + 1e-9) &&
                                                              (digit == 1 || (kind == Kind::Time && high - low < 1.8)))
          values.push_back(value);
    return values;
  }
  std::string label(double value) const {
    return kind == Kind::Percent ? format("%.0f %%", value) : kind == Kind::Time ? timeText(value) : powerText(value);
  }

private:
  double scale(double value) const { return kind == Kind::Percent ? value : std::log10(value); }

  Kind kind;
  double least, most, low, high, begin, end;
};

std::string axesOf(const Axis &x, const Axis &y, const std::string &name) {
  std::string svg;
  const double foot = kHeight - kBottom;
  for (double value : x.ticks()) {
    svg += format("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x.at(value), kTop,
                  x.at(value), foot);
    svg += text(x.at(value), foot + 16, "middle", x.label(value));
  }
  for (double value : y.ticks()) {
    svg += format("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", kLeft, y.at(value),
                  kWidth - kRight, y.at(value));
    svg += text(kLeft - 6, y.at(value) + 4, "end", y.label(value));
  }
  return svg + text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", name, "name");
}

/// A line through points, with its engine's name as title.
std::string curve(const ModelResult &model, const std::string &name,
                  const std::vector<std::pair<double, double>> &points) {
  std::string svg = "<g class=\"" + colourOf(model, name) + "\"><polyline class=\"curve\" points=\"";
  for (const auto &[x, y] : points)
    svg += format("%.1f,%.1f ", x, y);
  return svg + "\"/><title>" + escapeHtml(name) + "</title></g>\n";
}

/// How many percent of the runs took so long at most.
std::string drawTimes(const ModelResult &model) {
  double low = 0, high = 0;
  for (const EngineResult &engine : model.engines)
    if (engine.problem.empty() && !engine.times.percentilesUs.empty()) {
      low = low > 0 ? std::min(low, engine.times.percentilesUs.front()) : engine.times.percentilesUs.front();
      high = std::max(high, engine.times.percentilesUs[99]);
    }
  if (low <= 0)
    return "";
  low = roundTo125(1e-6 * low / 1.05, /*isUp=*/false);
  high = roundTo125(1e-6 * high * 1.05, /*isUp=*/true);
  const Axis x(Axis::Kind::Time, low, high, kLeft, kWidth - kRight);
  const Axis y(Axis::Kind::Percent, 0, 100, kHeight - kBottom, kTop);
  std::string svg = svgHead(kHeight, "Distribution of the times of runs") +
                    axesOf(x, y, "time of a run (without the slowest percent)");
  for (const EngineResult &engine : model.engines) {
    if (!engine.problem.empty())
      continue;
    std::vector<std::pair<double, double>> points;
    for (size_t percent = 0; percent + 1 < engine.times.percentilesUs.size(); ++percent)
      points.emplace_back(x.at(1e-6 * engine.times.percentilesUs[percent]), y.at(double(percent)));
    svg += curve(model, engine.name, points);
  }
  return svg + "</svg>\n";
}

/// Cost over the number of runs, with the places where tc, or a mode, begins or ends to pay.
std::string drawCosts(const ModelResult &model, const Economics &economics) {
  if (economics.costs.empty())
    return "";
  const double month = economics.runsPerDay * kHorizonDays;
  double most = std::max(month, 1000.0), low = 0, high = 0;
  for (const std::vector<Comparison> *all : {&economics.peers, &economics.modes})
    for (const Comparison &comparison : *all)
      if (comparison.breakEvenRuns && *comparison.breakEvenRuns < 1e12)
        most = std::max(most, 3 * *comparison.breakEvenRuns);
  auto costAt = [](const EngineCost &cost, double runs) { return cost.onceSeconds + runs * cost.runSeconds; };
  for (const EngineCost &cost : economics.costs) {
    low = low > 0 ? std::min(low, costAt(cost, 1)) : costAt(cost, 1);
    high = std::max(high, costAt(cost, most));
  }
  const Axis x(Axis::Kind::Power, 1, most, kLeft, kWidth - kRight);
  const Axis y(Axis::Kind::Power, std::pow(10, std::floor(std::log10(low))), std::pow(10, std::ceil(std::log10(high))),
               kHeight - kBottom, kTop);
  std::string svg = svgHead(kHeight, "Cost over the number of runs") + axesOf(x, y, "number of runs");
  svg += format("<line class=\"month\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x.at(month), kTop,
                x.at(month), kHeight - kBottom);
  for (const EngineCost &cost : economics.costs) {
    std::vector<std::pair<double, double>> points;
    for (int i = 0; i <= 80; ++i) {
      const double runs = std::pow(most, i / 80.0);
      points.emplace_back(x.at(runs), y.at(costAt(cost, runs)));
    }
    svg += curve(model, cost.name, points);
  }
  for (const std::vector<Comparison> *all : {&economics.peers, &economics.modes})
    for (const Comparison &comparison : *all) {
      if (!comparison.breakEvenRuns || *comparison.breakEvenRuns < 1 || *comparison.breakEvenRuns > most)
        continue;
      const auto cost = std::find_if(economics.costs.begin(), economics.costs.end(),
                                     [&](const EngineCost &each) { return each.name == comparison.name; });
      const std::string title = comparison.name + ": break-even at " + countText(*comparison.breakEvenRuns) + " runs";
      svg += "<g class=\"" + colourOf(model, comparison.name) + "\">" +
             format("<circle class=\"even\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>", x.at(*comparison.breakEvenRuns),
                    y.at(costAt(*cost, *comparison.breakEvenRuns))) +
             escapeHtml(title) + "</title></circle></g>\n";
    }
  return svg + "</svg>\n";
}

/// Bars with a name at the left and words behind.
struct Bar {
  std::string name, words, colour;
  double value = 0;
};

/// The longest name or words take as much of the width as they need, a letter 7 points.
std::string drawBars(const std::vector<Bar> &bars, const char *label) {
  constexpr double kRow = 22, kLetter = 7;
  double most = 0, left = 40, right = 40;
  for (const Bar &bar : bars) {
    most = std::max(most, bar.value);
    left = std::max(left, kLetter * double(bar.name.size()) + 12);
    right = std::max(right, kLetter * double(bar.words.size()) + 12);
  }
  left = std::min(left, 220.0);
  const double room = std::max(kWidth - left - right, 60.0);
  std::string svg = svgHead(double(bars.size()) * kRow + 12, label);
  for (size_t i = 0; i < bars.size(); ++i) {
    const Bar &bar = bars[i];
    const double y = 6 + double(i) * kRow, length = most > 0 ? std::max(bar.value / most * room, 1.0) : 1;
    std::string name = bar.name;
    if (const size_t letters = size_t((left - 12) / kLetter); name.size() > letters)
      name = "..." + name.substr(name.size() - (letters - 3));
    svg += text(left - 6, y + 15, "end", name, "name");
    svg += format("<rect class=\"bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", bar.colour.c_str(),
                  left, y + 3, length, kRow - 6);
    svg += text(left + length + 5, y + 15, "start", bar.words);
  }
  return svg + "</svg>\n";
}

std::string megabytes(uint64_t bytes) { return format(bytes < 9950000 ? "%.2f MB" : "%.0f MB", double(bytes) * 1e-6); }

std::string drawMemory(const ModelResult &model) {
  std::vector<Bar> bars;
  auto add = [&](const std::string &name, const std::string &colour, uint64_t bytes) {
    if (bytes)
      bars.push_back({name, megabytes(bytes), colour, double(bytes)});
  };
  for (const EngineResult &engine : model.engines)
    if (engine.problem.empty())
      add(engine.name + ": process", colourOf(model, engine.name), engine.start.peakRssBytes);
  for (const EngineResult &engine : model.engines)
    if (engine.kind == EngineKind::Tc) {
      add("tc: artifact", "part", engine.start.artifactBytes);
      add("tc: weights in it", "part", engine.start.weightsBytes);
      add("tc: arena", "part", engine.start.arenaBytes);
    }
  return bars.empty() ? "" : drawBars(bars, "Memory");
}

std::string drawFusion(const Report &report, const ModelResult &model) {
  std::vector<Bar> bars;
  for (const KernelResult &kernel : model.kernels) {
    const double unfused = report.percentUnfused(kernel);
    if (kernel.unfusedLaunches < 2 || unfused <= 0 || bars.size() >= 16)
      continue;
    const std::string name = kernel.name.size() > 20 ? kernel.name.substr(0, 18) + ".." : kernel.name;
    bars.push_back({name + ", unfused",
                    megabytes(kernel.unfusedBytes) +
                        format(", %.0f launches, <= %.0f %%", double(kernel.unfusedLaunches), unfused),
                    "part", double(kernel.unfusedBytes)});
    bars.push_back({"fused", megabytes(kernel.bytes) + format(", 1, %.0f %%", report.percentOfRoofline(kernel)), "e0",
                    double(kernel.bytes)});
  }
  return bars.empty() ? "" : drawBars(bars, "Bytes of kernels, fused and unfused");
}

std::string figure(const std::string &title, const std::string &words, const std::string &svg) {
  return svg.empty() ? ""
                     : "<figure><figcaption><b>" + title + "</b> " + words + "</figcaption>\n" + svg + "</figure>\n";
}

std::string legendOf(const ModelResult &model) {
  std::string html = "<p class=legend>";
  for (const EngineResult &engine : model.engines)
    if (engine.problem.empty())
      html += "<span class=\"" + colourOf(model, engine.name) + "\">" + escapeHtml(engine.name) + "</span> ";
  return html + "</p>\n";
}

std::string costTable(const ModelResult &model, const Economics &economics) {
  std::string html =
      "<div class=wide><table><tr><th>engine<th class=n>once s<th class=n>start s<th class=n>first run µs"
      "<th class=n>p50 µs<th class=n>mean µs<th class=n>std. dev.<th class=n>p95 µs<th class=n>p99 µs<th "
      "class=n>time / tc<th class=n>pays at runs<th class=n>gain s / day</tr>\n";
  auto number = [](double value, const char *pattern) { return "<td class=n>" + format(pattern, value) + "</td>"; };
  for (const EngineCost &cost : economics.costs) {
    const EngineResult &engine = *std::find_if(model.engines.begin(), model.engines.end(),
                                               [&](const EngineResult &each) { return each.name == cost.name; });
    html += "<tr><td>" + escapeHtml(cost.name) + "</td>" + number(cost.onceSeconds, "%.3f") +
            number(cost.startSeconds, "%.4f") + number(engine.start.firstRunUs, "%.1f") +
            number(engine.times.medianUs, "%.2f") + number(engine.times.meanUs, "%.2f") +
            number(engine.times.deviationUs, "%.2f") + number(engine.times.p95Us, "%.2f") +
            number(engine.times.p99Us, "%.2f") + "<td class=n>" +
            format("%.2f (%.2f–%.2f)", cost.ratio, cost.low, cost.high) + "</td>";
    const Comparison *found = economics.find(cost.name);
    if (found)
      html += "<td class=n>" + escapeHtml(breakEvenWord(*found)) + "</td>" +
              (found->outcome == Comparison::Outcome::Noise ? std::string("<td class=n>–</td>")
                                                            : number(found->gainSecondsPerDay, "%.3g"));
    else
      html += "<td></td><td></td>";
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

} // namespace

std::string tc::bench::economicsHtml(const Report &report, const ModelResult &model) {
  const Economics economics = assess(costsOf(model), report.runsPerDay.value_or(0));
  std::string html = "<h3>Does compiling pay?</h3>\n<ul class=advice>\n";
  for (const std::string &sentence : recommend(economics))
    html += "<li>" + escapeHtml(sentence) + "</li>\n";
  const FusionTotals fusion = fusionOf(report, model);
  if (fusion.kernels)
    html += "<li>" + escapeHtml(describeFusion(fusion)) + "</li>\n";
  html += "</ul>\n" + costTable(model, economics) + legendOf(model) + "<div class=plots>\n";
  html += figure("Times.", "How many percent of the runs took so long at most.", drawTimes(model));
  html +=
      figure("Cost.", "Seconds until the last of so many runs; a ring is a break-even point, the dashed line 30 days.",
             drawCosts(model, economics));
  html += figure("Memory.", "The most that a process held which loads the model and runs it.", drawMemory(model));
  html += figure("Fusion.",
                 "What the kernels read and write in a run, by time, and with a kernel for each node; percent of the "
                 "roofline that is reached, and at most could be.",
                 drawFusion(report, model));
  return html + "</div>\n";
}
