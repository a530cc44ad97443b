//===- HtmlReport.cpp - what tc-bench found, as a page with rooflines ---------------------------------------------===//
//
// One file without outside references: style, plots (SVG) and tables. A plot's axes are logarithmic: operations per
// byte across, GFLOP/s up. Each kernel is a disc, numbered as in the table below, its area the time that it takes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace tc::bench;

namespace {

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string escape(const std::string &text) {
  std::string result;
  for (char c : text) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  }
  return result;
}

std::string cell(const std::string &text) { return "<td>" + escape(text) + "</td>"; }
std::string numberCell(double value, const char *pattern) {
  return "<td class=n>" + (value > 0 ? format(pattern, value) : std::string("–")) + "</td>";
}

const char *const pageHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tc-bench</title>
<style>
:root { --ink: #1b1f24; --soft: #68707a; --line: #d5dae0; --paper: #ffffff; --roof: #1b1f24; --kernel: #2f6fdb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa3ad; --line: #3a4149; --paper: #15181c; --roof: #e4e7eb; --kernel: #6fa3ff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1060px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .2rem; overflow-wrap: anywhere; }
p { color: var(--soft); margin: .2rem 0 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin: .8rem 0 1.2rem; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.w { overflow-wrap: anywhere; }
svg { width: 100%; height: auto; }
</style></head><body>
)";

/// The SVG's own style: it must stand when the picture is taken out of the page.
const char *const plotStyle = R"(<style>
text { font: 12px system-ui, sans-serif; fill: var(--ink, #1b1f24); } .soft { fill: var(--soft, #68707a); }
.grid { stroke: var(--line, #d5dae0); stroke-width: 1; } .roof { stroke: var(--roof, #1b1f24); stroke-width: 2; fill: none; }
.kernel { fill: var(--kernel, #2f6fdb); fill-opacity: .45; stroke: var(--kernel, #2f6fdb); }
</style>
)";

class Plot {
public:
  Plot(const Report &report, const ModelResult &model) : report(report), model(model), roofline(report.roofline()) {
    double lowest = roofline.peakGflops / 100;
    for (const KernelResult &kernel : model.kernels)
      if (isDrawn(kernel)) {
        double intensity = double(kernel.flops) / double(kernel.bytes);
        left = std::min(left, std::floor(std::log2(intensity)) - 1);
        right = std::max(right, std::ceil(std::log2(intensity)) + 1);
        lowest = std::min(lowest, kernel.gflops());
        longest = std::max(longest, kernel.us);
      }
    bottom = std::floor(std::log10(std::max(lowest, 1e-3)));
    top = std::ceil(std::log10(roofline.peakGflops) + 0.1);
  }

  std::string draw() const {
    std::string svg = format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                             "aria-label=\"Roofline of the kernels\">\n",
                             kWidth, kHeight);
    svg += plotStyle;
    drawAxes(svg);
    drawRoofs(svg);
    // Small discs last, so that none is hidden.
    for (size_t i = 0; i < model.kernels.size(); ++i)
      drawKernel(svg, i);
    return svg + "</svg>\n";
  }

  static bool isDrawn(const KernelResult &kernel) { return kernel.flops && kernel.bytes && kernel.us > 0; }

private:
  static constexpr double kWidth = 1000, kHeight = 520, kLeft = 70, kRight = 20, kTop = 20, kBottom = 55;

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

  void drawRoofs(std::string &svg) const {
    const double peak = roofline.peakGflops, edge = std::exp2(left);
    // Where the fastest level meets the peak, the flat roof begins.
    double knee = right;
    for (const MemoryLevel &level : roofline.levels) {
      double gbs = level.gbs(), meets = std::min(std::log2(peak / gbs), right);
      knee = std::min(knee, meets);
      // From the left edge, or from where the roof comes out of the plot's foot.
      double start = std::max(left, std::log2(std::pow(10, bottom) / gbs));
      svg += format("<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x(start),
                    y(std::exp2(start) * gbs), x(meets), y(std::exp2(meets) * gbs));
      // The name stands on the slope; that of memory below its line, which may be close to the one before.
      bool isLast = &level == &roofline.levels.back();
      double at = start + (meets - start) * (isLast ? 0.3 : 0.2), px = x(at), py = y(std::exp2(at) * gbs);
      double angle = std::atan2(y(edge * gbs * 2) - y(edge * gbs), x(left + 1) - x(left)) * 57.29578;
      svg += format("<text transform=\"translate(%.1f %.1f) rotate(%.1f)\">%s %.1f GB/s</text>\n", px,
                    isLast ? py + 16 : py - 5, angle, level.name.c_str(), gbs);
    }
    svg += format("<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x(knee), y(peak), x(right),
                  y(peak));
    svg += format("<text x=\"%.1f\" y=\"%.1f\">%.0f GFLOP/s, %s, %u thread%s</text>\n", x(knee), y(peak) - 7, peak,
                  roofline.instructions.c_str(), roofline.threads, roofline.threads == 1 ? "" : "s");
  }

  void drawKernel(std::string &svg, size_t index) const {
    const KernelResult &kernel = model.kernels[index];
    if (!isDrawn(kernel))
      return;
    double intensity = std::log2(double(kernel.flops) / double(kernel.bytes));
    double radius = std::max(20 * std::sqrt(kernel.us / longest), 3.0);
    std::string title = format("%zu. ", index + 1) + escape(kernel.name) +
                        format(": %.2f us, %.1f GFLOP/s, %.1f GB/s, %.0f %% of the roofline", kernel.us,
                               kernel.gflops(), kernel.gbs(), report.percentOfRoofline(kernel));
    svg += format("<circle class=\"kernel\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", x(intensity),
                  y(kernel.gflops()), radius) +
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

std::string engineTable(const ModelResult &model) {
  std::string html = "<table><tr><th>engine<th>version<th class=n>median µs<th class=n>min µs<th class=n>p90 µs"
                     "<th class=n>spread<th class=n>runs<th class=n>time / tc<th class=n>relative error</tr>\n";
  for (const EngineResult &engine : model.engines) {
    html += "<tr>" + cell(engine.name);
    if (!engine.problem.empty()) {
      html += "<td colspan=8>" + escape((engine.isAbsent ? "absent: " : "failed: ") + engine.problem) + "</td></tr>\n";
      continue;
    }
    html += cell(engine.version) + numberCell(engine.times.medianUs, "%.2f") + numberCell(engine.times.minUs, "%.2f") +
            numberCell(engine.times.p90Us, "%.2f") + numberCell(100 * engine.times.spread, "%.0f %%") +
            numberCell(double(engine.times.runs), "%.0f") + numberCell(engine.ratio, "%.2f");
    html += "<td class=n>" + (engine.maxRelError ? format("%.1e", *engine.maxRelError) : escape(engine.difference)) +
            "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string kernelTable(const Report &report, const ModelResult &model) {
  double total = 0;
  for (const KernelResult &kernel : model.kernels)
    total += kernel.us;
  std::string html =
      "<table><tr><th class=n>#<th>kernel<th class=n>µs / run<th class=n>% of time<th class=n>calls<th class=n>GFLOP/s"
      "<th class=n>GB/s<th class=n>flop / byte<th>held against<th class=n>% of roofline<th>nodes</tr>\n";
  for (size_t i = 0; i < model.kernels.size(); ++i) {
    const KernelResult &kernel = model.kernels[i];
    const Roofline &roofline = report.roofline();
    std::string held = !kernel.flops && !kernel.bytes                       ? "–"
                       : roofline.isMemoryBound(kernel.flops, kernel.bytes) ? roofline.levelFor(kernel.bytes).name
                                                                            : "peak";
    html += "<tr>" + numberCell(double(i + 1), "%.0f") + cell(kernel.name) + numberCell(kernel.us, "%.2f") +
            numberCell(total > 0 ? 100 * kernel.us / total : 0, "%.1f") + numberCell(kernel.calls, "%.1f") +
            numberCell(kernel.gflops(), "%.2f") + numberCell(kernel.gbs(), "%.2f") +
            numberCell(kernel.bytes ? double(kernel.flops) / double(kernel.bytes) : 0, "%.2f") + cell(held) +
            numberCell(report.percentOfRoofline(kernel), "%.0f") + "<td class=w>" + escape(kernel.nodes) +
            "</td></tr>\n";
  }
  return html + "</table>\n";
}

} // namespace

std::string tc::bench::toHtml(const Report &report) {
  std::string html = pageHead;
  html += "<h1>tc-bench " + escape(report.version) + "</h1>\n";
  for (const Roofline &roofline : report.rooflines)
    html += "<p>This machine, " + escape(rooflineText(roofline)) + "</p>\n";
  for (const ModelResult &model : report.models) {
    html += "<h2>" + escape(model.model) + "</h2>\n<p>" + escape(model.inputs) +
            format("; %u thread%s, variant ", model.threads, model.threads == 1 ? "" : "s") + escape(model.variant);
    if (model.compileSeconds)
      html += format("; compiled in %.2f s", *model.compileSeconds);
    html += format("; artifact %.2f MB, arena %.2f MB, ready in %.0f µs</p>\n", double(model.artifactBytes) * 1e-6,
                   double(model.arenaBytes) * 1e-6, model.loadUs);
    html += engineTable(model);
    html += Plot(report, model).draw();
    size_t hidden = size_t(std::count_if(model.kernels.begin(), model.kernels.end(),
                                         [](const KernelResult &kernel) { return !Plot::isDrawn(kernel); }));
    if (hidden)
      html += format("<p>%zu kernel%s without known operations and bytes %s not in the plot.</p>\n", hidden,
                     hidden == 1 ? "" : "s", hidden == 1 ? "is" : "are");
    html += kernelTable(report, model);
  }
  return html + "</body></html>\n";
}
