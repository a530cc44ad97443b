//===- HtmlReport.cpp - what tc-bench found, as a page with rooflines ---------------------------------------------===//
//
// One file without outside references: style, plots (SVG) and tables. A plot's axes are logarithmic: operations per
// byte across, GFLOP/s up. Each kernel is a disc, numbered as in the table below, its area the time that it takes.
// KernelPicture draws the kernels with what they read.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Economics.h"
#include "tc/Support/KernelPicture.h"
#include "tc/Support/PrintfText.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

using namespace tc;
using namespace tc::bench;

namespace {

std::string cell(const std::string &text) { return "<td>" + escapeHtml(text) + "</td>"; }
std::string numberCell(double value, const char *pattern) {
  return "<td class=n>" + (value > 0 ? format(pattern, value) : std::string("–")) + "</td>";
}

const char *const pageHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tc-bench</title>
<style>
:root { --ink: #1b1f24; --soft: #68707a; --line: #d5dae0; --paper: #ffffff; --roof: #1b1f24; --kernel: #2f6fdb;
  --e1: #c2410c; --e2: #0f8a5f; --e3: #8b3fc0; --e4: #b38600; --e5: #c0266b; --e6: #3b7a8c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa3ad; --line: #3a4149; --paper: #15181c; --roof: #e4e7eb; --kernel: #6fa3ff;
    --e1: #ff9157; --e2: #45d09c; --e3: #c796f2; --e4: #e6bd3d; --e5: #ff7fb5; --e6: #7cc3d6; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1180px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .2rem; overflow-wrap: anywhere; }
p { color: var(--soft); margin: .2rem 0 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin: .8rem 0 1.2rem; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.w { overflow-wrap: anywhere; min-width: 15rem; }
.wide { overflow-x: auto; } .wide table { white-space: nowrap; } .wide td.w { white-space: normal; }
h3 { font-size: 1rem; margin: 1.6rem 0 .2rem; }
dl.run { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .9rem; } dl.run dt { color: var(--soft); }
dl.run dd { margin: 0; overflow-wrap: anywhere; } dl.run code { font-size: 13px; }
dl.words dt { font-weight: 600; margin-top: .5rem; } dl.words dd { margin: 0; color: var(--soft); }
svg.roofline { width: 100%; height: auto; min-width: 620px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 1rem 2rem; }
figure { margin: 0; min-width: 0; } figcaption { color: var(--soft); font-size: 13px; } figcaption b { color: var(--ink); }
svg.plot { width: 100%; height: auto; } svg.plot text { font: 13px system-ui, sans-serif; fill: var(--soft); }
svg.plot text.name { fill: var(--ink); } svg.plot .grid { stroke: var(--line); }
svg.plot .curve { fill: none; stroke: var(--e); stroke-width: 2.2; stroke-linejoin: round; }
svg.plot .even { fill: var(--paper); stroke: var(--e); stroke-width: 2.5; }
svg.plot .month { stroke: var(--soft); stroke-dasharray: 5 4; }
svg.plot .bar { fill: var(--e); } svg.plot .part { fill: var(--soft); fill-opacity: .55; }
.e0 { --e: var(--kernel); } .e1 { --e: var(--e1); } .e2 { --e: var(--e2); } .e3 { --e: var(--e3); } .e4 { --e: var(--e4); }
.e5 { --e: var(--e5); } .e6 { --e: var(--e6); }
.legend span { margin-right: 1.2rem; color: var(--ink); } .legend span::before { content: ""; display: inline-block;
  width: .8rem; height: .8rem; margin-right: .4rem; border-radius: 2px; background: var(--e); vertical-align: -1px; }
ul.advice { margin: .4rem 0 1rem; padding-left: 1.2rem; } ul.advice li { margin: .25rem 0; } ul.advice li:first-child { font-weight: 600; }
)";

/// The SVG's own style: it must stand when the picture is taken out of the page.
const char *const plotStyle = R"(<style>
text { font: 12px system-ui, sans-serif; fill: var(--ink, #1b1f24); } .soft { fill: var(--soft, #68707a); }
.grid { stroke: var(--line, #d5dae0); stroke-width: 1; } .roof { stroke: var(--roof, #1b1f24); stroke-width: 2; fill: none; }
.kernel { fill: var(--kernel, #2f6fdb); fill-opacity: .45; stroke: var(--kernel, #2f6fdb); }
.fewer { stroke-dasharray: 4 3; stroke-width: 2; }
.label { paint-order: stroke; stroke: var(--paper, #ffffff); stroke-width: 4px; stroke-linejoin: round; }
</style>
)";

class Plot {
public:
  Plot(const Report &report, const ModelResult &model) : report(report), model(model), roofline(report.roofline()) {
    double lowest = roofline.peakGflops / 100, highest = roofline.peakGflops, low = 0, high = 0;
    for (const KernelResult &kernel : model.kernels)
      if (isDrawn(kernel)) {
        const double intensity = std::log2(double(kernel.flops) / double(kernel.bytes));
        low = std::min(low, intensity);
        high = std::max(high, intensity);
        lowest = std::min(lowest, kernel.gflops());
        highest = std::max(highest, kernel.gflops()); // with fewer operations than are counted
        longest = std::max(longest, kernel.us);
      }
    bottom = std::floor(std::log10(lowest));
    top = std::ceil(std::log10(highest));
    // Whole steps of the axes, until the largest disc has room at all ends.
    const double room = kRadius + 4;
    while (x(low) - room < kLeft)
      --left;
    while (x(high) + room > kWidth - kRight)
      ++right;
    while (x(low) - room < kLeft)
      --left;
    while (y(lowest) + room > kHeight - kBottom)
      --bottom;
    while (y(highest) - room < kTop)
      ++top;
    while (y(lowest) + room > kHeight - kBottom)
      --bottom;
  }

  std::string draw() const {
    std::string svg =
        format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roofline\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
               "aria-label=\"Roofline of the kernels\">\n",
               kWidth, kHeight);
    svg += plotStyle;
    drawAxes(svg);
    std::string labels; // on top of all
    drawRoofs(svg, labels);
    // Small discs last, so that none is hidden.
    for (size_t i = 0; i < model.kernels.size(); ++i)
      drawKernel(svg, i);
    return svg + labels + "</svg>\n";
  }

  static bool isDrawn(const KernelResult &kernel) { return kernel.flops && kernel.bytes && kernel.us > 0; }

private:
  static constexpr double kRadius = 20, kWidth = 1000, kHeight = 520, kLeft = 70, kRight = 20, kTop = 20, kBottom = 55;

  double x(double log2Intensity) const {
    return kLeft + (log2Intensity - left) / (right - left) * (kWidth - kLeft - kRight);
  }
  double y(double gflops) const {
    return kHeight - kBottom - (std::log10(gflops) - bottom) / (top - bottom) * (kHeight - kTop - kBottom);
  }

  void drawAxes(std::string &svg) const {
    const double foot = kHeight - kBottom;
    const int step = right - left > 14 ? 2 : 1;
    for (int at = int(left); at <= int(right); at += step) {
      svg += format("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x(at), kTop, x(at), foot);
      svg += format("<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x(at), foot + 18,
                    at < 0 ? format("1/%.0f", std::exp2(-at)).c_str() : format("%.0f", std::exp2(at)).c_str());
    }
    for (int at = int(bottom); at <= int(top); ++at) {
      double gflops = std::pow(10, at);
      svg += format("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", kLeft, y(gflops),
                    kWidth - kRight, y(gflops));
      svg += format("<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", kLeft - 8,
                    y(gflops) + 4, gflops);
    }
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">operations per byte</text>",
                  (kLeft + kWidth - kRight) / 2, kHeight - 12);
    svg += format("<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">GFLOP/s</text>\n",
                  (kTop + foot) / 2);
  }

  void drawRoofs(std::string &svg, std::string &labels) const {
    const double peak = roofline.peakGflops;
    // Where the fastest level meets the peak, the flat roof begins.
    double knee = right;
    for (const MemoryLevel &level : roofline.levels) {
      double gbs = level.gbs(), meets = std::min(std::log2(peak / gbs), right);
      knee = std::min(knee, meets);
      // From the left edge, or from where the roof comes out of the plot's foot.
      double start = std::max(left, std::log2(std::pow(10, bottom) / gbs));
      svg += format("<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x(start),
                    y(std::exp2(start) * gbs), x(meets), y(std::exp2(meets) * gbs));
      // The name stands on the slope where that is long enough; the text above the plot has them all. That of memory is
      // below its line, which may be close to the one before.
      const double px1 = x(start), py1 = y(std::exp2(start) * gbs), px2 = x(meets), py2 = y(std::exp2(meets) * gbs);
      const std::string name = format("%s %.1f GB/s", level.name.c_str(), gbs);
      if (std::hypot(px2 - px1, py2 - py1) < 10.0 * double(name.size()))
        continue;
      const bool isLast = &level == &roofline.levels.back();
      const double angle = std::atan2(py2 - py1, px2 - px1), away = isLast ? 15 : -5;
      labels += format("<text class=\"label\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">",
                       px1 + 0.1 * (px2 - px1) - away * std::sin(angle),
                       py1 + 0.1 * (py2 - py1) + away * std::cos(angle), angle * 57.29578) +
                escapeHtml(name) + "</text>\n";
    }
    svg += format("<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x(knee), y(peak), x(right),
                  y(peak));
    labels +=
        format("<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.0f GFLOP/s, %s, %u thread%s</text>\n",
               x(right) - 6, y(peak) - 7, peak, roofline.instructions.c_str(), roofline.threads,
               roofline.threads == 1 ? "" : "s");
  }

  void drawKernel(std::string &svg, size_t index) const {
    const KernelResult &kernel = model.kernels[index];
    if (!isDrawn(kernel))
      return;
    double intensity = std::log2(double(kernel.flops) / double(kernel.bytes));
    double radius = std::max(kRadius * std::sqrt(kernel.us / longest), 3.0);
    std::string title = format("%zu. ", index + 1) + escapeHtml(kernel.name) +
                        format(": %.2f us, %.1f GFLOP/s, %.1f GB/s, %.0f %% of the roofline", kernel.us,
                               kernel.gflops(), kernel.gbs(), report.percentOfRoofline(kernel));
    svg += format("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                  kernel.hasFewerOperations() ? "kernel fewer" : "kernel", x(intensity), y(kernel.gflops()), radius) +
           title + "</title></circle>";
    if (radius >= 8)
      svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%zu</text>", x(intensity),
                    y(kernel.gflops()) + 4, index + 1);
    svg += "\n";
  }

  const Report &report;
  const ModelResult &model;
  const Roofline &roofline;
  double left = -3, right = 7, bottom, top; ///< of the plot: log2 of operations per byte, log10 of GFLOP/s
  double longest = 0;                       ///< microseconds of the largest disc
};

/// The columns that engines have in both tables: times, and what follows from them.
std::string engineCells(const EngineResult &engine) {
  const Times &times = engine.times;
  std::string html = numberCell(times.medianUs, "%.2f") + numberCell(times.p90Us, "%.2f") +
                     numberCell(times.p95Us, "%.2f") + numberCell(times.p99Us, "%.2f") +
                     numberCell(times.minUs, "%.2f") + numberCell(times.deviationUs, "%.2f") +
                     numberCell(double(times.runs), "%.0f") + numberCell(times.runsPerSecond(), "%.1f") +
                     numberCell(engine.ratio, "%.2f");
  return html + "<td class=n>" +
         (engine.maxRelError ? format("%.1e", *engine.maxRelError) : escapeHtml(engine.difference)) + "</td>";
}
const char *const engineHeads =
    "<th class=n>p50 µs<th class=n>p90 µs<th class=n>p95 µs<th class=n>p99 µs<th class=n>min µs"
    "<th class=n>std. dev.<th class=n>runs<th class=n>runs/s<th class=n>time / tc"
    "<th class=n>rel. error";

std::string problemCell(const EngineResult &engine, int columns) {
  return format("<td class=w colspan=%d>", columns) +
         escapeHtml((engine.isAbsent ? "absent: " : "failed: ") + engine.problem) + "</td>";
}

std::string engineTable(const ModelResult &model) {
  std::string html = std::string("<div class=wide><table><tr><th>engine<th>version") + engineHeads + "</tr>\n";
  for (const EngineResult &engine : model.engines)
    html += "<tr>" + cell(engine.name) +
            (engine.problem.empty() ? cell(engine.version) + engineCells(engine) : problemCell(engine, 11)) + "</tr>\n";
  return html + "</table></div>\n";
}

/// One model at several sizes.
std::string sizesTable(const Report &report, size_t first, size_t end) {
  std::string html = std::string("<div class=wide><table><tr><th>sizes<th>engine") + engineHeads + "</tr>\n";
  for (size_t i = first; i < end; ++i)
    for (const EngineResult &engine : report.models[i].engines)
      html += "<tr>" + cell(sizesName(report.models[i].sizes)) + cell(engine.name) +
              (engine.problem.empty() ? engineCells(engine) : problemCell(engine, 10)) + "</tr>\n";
  return html + "</table></div>\n";
}

/// With places where a line may end, behind each name of a node.
std::string breakable(const std::string &nodes) {
  std::string text;
  for (char c : nodes)
    text += c == '+' ? std::string("+<wbr>") : std::string(1, c);
  return text;
}

std::string kernelTable(const Report &report, const ModelResult &model) {
  double total = 0;
  for (const KernelResult &kernel : model.kernels)
    total += kernel.us;
  std::string html =
      "<div class=wide><table><tr><th class=n>#<th>kernel<th>schedule<th class=n>µs / run<th class=n>% of time<th "
      "class=n>calls<th class=n>GFLOP/s"
      "<th class=n>GB/s<th class=n>flop / byte<th>held against<th class=n>% of roofline<th class=w>nodes</tr>\n";
  for (size_t i = 0; i < model.kernels.size(); ++i) {
    const KernelResult &kernel = model.kernels[i];
    const Roofline &roofline = report.roofline();
    std::string held = !kernel.flops && !kernel.bytes                       ? "–"
                       : roofline.isMemoryBound(kernel.flops, kernel.bytes) ? roofline.levelFor(kernel.bytes).name
                                                                            : "peak";
    html += format("<tr data-row=\"%zu\">", i + 1) + numberCell(double(i + 1), "%.0f") + cell(kernel.name) +
            cell(kernel.strategy.empty() ? "–" : kernel.strategy) + numberCell(kernel.us, "%.2f") +
            numberCell(total > 0 ? 100 * kernel.us / total : 0, "%.1f") + numberCell(kernel.calls, "%.1f") +
            numberCell(kernel.gflops(), "%.2f") + numberCell(kernel.gbs(), "%.2f") +
            numberCell(kernel.bytes ? double(kernel.flops) / double(kernel.bytes) : 0, "%.2f") + cell(held) +
            numberCell(report.percentOfRoofline(kernel), "%.0f") + "<td class=w>" +
            breakable(escapeHtml(kernel.nodes)) + "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

/// What a reader of the plot must know of its discs.
std::string plotNotes(const Report &report, const ModelResult &model) {
  std::string html;
  size_t hidden = 0, fewer = 0, above = 0;
  for (const KernelResult &kernel : model.kernels) {
    const bool isFewer = kernel.hasFewerOperations();
    hidden += Plot::isDrawn(kernel) ? 0 : 1;
    fewer += Plot::isDrawn(kernel) && isFewer ? 1 : 0;
    above += Plot::isDrawn(kernel) && !isFewer && kernel.gflops() > report.roofline().peakGflops ? 1 : 0;
  }
  html += "<p>A disc is a kernel, numbered as in the table, its area the time that it takes; the lines are what this "
          "machine "
          "reaches at most. ";
  if (fewer)
    html +=
        "A dashed disc is Winograd's algorithm: F(4x4, 3x3) computes 16 points of a 3x3 convolution with 36 "
        "multiplications where the definition has 144. Operations are counted as the model defines them, so that its "
        "rate is that of the convolution, an effective rate, which can lie above what the machine computes. ";
  if (above)
    html +=
        format("%zu %skernel%s above the peak, which is that of f32. Products of narrower numbers do, and so does any "
               "kernel where the machine was busy while its peak was measured. ",
               above, fewer ? "other " : "", above == 1 ? " lies" : "s lie");
  if (hidden)
    html += format("%zu kernel%s without known operations and bytes %s not in the plot. ", hidden,
                   hidden == 1 ? "" : "s", hidden == 1 ? "is" : "are");
  return html + "</p>\n";
}

const char *const explanations = R"(<h2>What the numbers say</h2>
<dl class=words>
<dt>p50, p90, p95, p99, min<dd>Wall times of runs in microseconds: half, 90, 95, 99 % of all runs took so long at most. Engines take
turns in five rounds, so that what slows the machine slows all.
<dt>std. dev.<dd>The standard deviation of the times, in microseconds.
<dt>runs/s<dd>Runs over the time that they took, one after the other.
<dt>time / tc<dd>The median of the rounds' ratios: above 1 the engine is slower than tc.
<dt>rel. error<dd>max|tc - engine| / max|engine| of the worst output.
<dt>noise<dd>How far an engine's medians of the rounds lie apart. It is what the machine did meanwhile, and no difference that is
smaller can be told from it.
<dt>µs / run, calls<dd>Of a kernel, from runs that are measured kernel by kernel; they are slower than others, by a clock's reading a
launch.
<dt>schedule<dd>How the kernel's code was made: the strategy that the compiler chose.
<dt>GFLOP/s, GB/s<dd>Operations and bytes of the model's definition over the kernel's time, in 1e9. A dash: not known.
<dt>held against, % of roofline<dd>The least time that the operations (at the peak) or the bytes (at the bandwidth of the smallest level
of memory that holds them) take, over the time taken. More than 100 % is possible: with fewer operations than counted, or bytes that a
smaller cache still held.
</dl>
)";

const char *const economicsWords = R"(<h2>What it costs</h2>
<dl class=words>
<dt>once<dd>What an engine takes before its first run: tc compiles and loads the artifact, a peer builds its session, torch.compile
(inductor) makes its first call; what the first run takes longer than others is in it, a Python package's import is not.
<dt>start<dd>The same of each further process, which loads the artifact or builds a session again.
<dt>pays at runs<dd>From how many runs on (&gt;), or for how few (&lt;), tc costs less than the peer, or the mode less than the default.
Noise: the rounds do not agree on which is faster. The break-even is once over the difference of a run.
<dt>gain / day<dd>What tc saves, or the mode, at the runs of a day that were asked for.
<dt>fused, unfused<dd>Each node of the model as a kernel of its own would write its result, and those behind would read it. At most so
much of the roofline could be reached then, were every launch free and every byte moved at full bandwidth.
</dl>
)";

} // namespace

std::string tc::bench::drawKernelGraph(const ModelResult &model) {
  std::vector<PictureKernel> kernels;
  double total = 0, longest = 0;
  for (const KernelResult &kernel : model.kernels) {
    total += kernel.us;
    longest = std::max(longest, kernel.us);
  }
  for (const KernelResult &kernel : model.kernels) {
    const double percent = total > 0 ? 100 * kernel.us / total : 0;
    kernels.push_back({kernel.name, format("%.2f µs, %.1f %%", kernel.us, percent),
                       kernel.name + format(": %.2f µs, %.1f %% of the kernels' time", kernel.us, percent) +
                           (kernel.strategy.empty() ? "" : "; schedule " + kernel.strategy) + "; " + kernel.nodes,
                       longest > 0 ? kernel.us / longest : 0, kernel.number, kernel.reads, kernel.inputs,
                       kernel.outputs});
  }
  return drawKernels(kernels);
}

std::string tc::bench::toHtml(const Report &report) {
  std::string html = pageHead + std::string(kKernelPictureStyle) + "</style></head><body>\n";
  html += "<h1>tc-bench " + escapeHtml(report.version) + "</h1>\n<dl class=run>";
  html += "<dt>machine<dd>" + escapeHtml(report.machine) + "<dt>date<dd>" + escapeHtml(report.date) +
          "<dt>command<dd><code>" + escapeHtml(report.command) + "</code>";
  for (const Roofline &roofline : report.rooflines)
    html += "<dt>reaches<dd>" + escapeHtml(rooflineText(roofline));
  html += "</dl>\n";
  for (size_t i = 0; i < report.models.size(); ++i) {
    const ModelResult &model = report.models[i];
    const bool isFirst = i == 0 || report.models[i - 1].model != model.model || model.sizes.empty();
    size_t end = i + 1;
    while (isFirst && end < report.models.size() && report.models[end].model == model.model && !model.sizes.empty())
      ++end;
    if (end > i + 1)
      html += "<h2>" + escapeHtml(model.model) + " over its sizes</h2>\n" + sizesTable(report, i, end);
    if (const auto begin = report.models.begin() + std::ptrdiff_t(i); report.runsPerDay && isFirst && end > i + 1)
      html += "<p>" + escapeHtml(compareSizes({begin, report.models.begin() + std::ptrdiff_t(end)})) + "</p>\n";
    html += "<section><h2>" + escapeHtml(model.model + (model.sizes.empty() ? "" : ", " + sizesName(model.sizes))) +
            "</h2>\n<p>" + escapeHtml(model.inputs) +
            format("; %u thread%s, variant ", model.threads, model.threads == 1 ? "" : "s") + escapeHtml(model.variant);
    if (model.compileSeconds)
      html += format("; compiled in %.2f s", *model.compileSeconds);
    html += format("; artifact %.2f MB, arena %.2f MB, ready in %.0f µs</p>\n", double(model.artifactBytes) * 1e-6,
                   double(model.arenaBytes) * 1e-6, model.loadUs);
    html += engineTable(model) + "<p>" + escapeHtml(noiseText(model)) + ".</p>\n";
    if (report.runsPerDay)
      html += economicsHtml(report, model);
    const std::string graph = drawKernelGraph(model);
    if (!graph.empty())
      html += "<h3>Kernels, and what they read</h3>\n<p>The more time, the stronger the colour. Drag to move; zoom "
              "with the "
              "buttons, or with "
              "Ctrl and the wheel; a click shows the kernel's row.</p>\n<div class=frame>" +
              graph + "</div>\n";
    html +=
        "<h3>Roofline</h3>\n" + plotNotes(report, model) + "<div class=wide>" + Plot(report, model).draw() + "</div>\n";
    html += "<h3>Kernels by time</h3>\n" + kernelTable(report, model) + "</section>\n";
  }
  return html + explanations + (report.runsPerDay ? economicsWords : "") + kKernelPictureScript + "</body></html>\n";
}
