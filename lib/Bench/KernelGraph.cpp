//===- KernelGraph.cpp - the kernels of a model as a picture ------------------------------------------------------===//
//
// A kernel stands one row below the last one that it reads, inputs above all, outputs below all. Within a row kernels
// stand below what they read, as far as their neighbours let them (the barycentre of Sugiyama, Tagawa, Toda, "Methods
// for visual understanding of hierarchical system structures", 1981). A line that passes rows goes round them at the
// side.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Format.h"
#include "tc/Bench/Report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

using namespace tc::bench;

namespace {

/// So much of a name as fits into a box. UTF-8 is cut between characters.
std::string shorten(const std::string &text, size_t most) {
  if (text.size() <= most)
    return text;
  size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end) + "…";
}

const char *const graphStyle = R"(<style>
.graph text { font: 12px system-ui, sans-serif; fill: var(--ink, #1b1f24); } .graph .soft { fill: var(--soft, #68707a); }
.graph rect { stroke: var(--line, #d5dae0); fill: var(--paper, #ffffff); } .graph .heat { stroke: none; fill: var(--kernel, #2f6fdb); }
.graph path { fill: none; stroke: var(--soft, #68707a); stroke-width: 1.2; stroke-opacity: .7; }
.graph .value { fill: var(--line, #d5dae0); stroke: none; }
</style>
)";

class Graph {
public:
  explicit Graph(const ModelResult &model) : model(model) {
    for (size_t i = 0; i < model.kernels.size(); ++i) {
      places[model.kernels[i].number] = i;
      total += model.kernels[i].us;
      longest = std::max(longest, model.kernels[i].us);
    }
    addNodes();
    placeRows();
    placeColumns();
  }

  std::string draw() const {
    std::string svg = format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" viewBox=\"0 0 %.0f %.0f\" "
                             "role=\"img\" aria-label=\"Graph of the kernels\">\n",
                             width, height);
    svg += graphStyle;
    for (const Node &node : nodes)
      for (size_t from : node.from)
        drawEdge(svg, nodes[from], node);
    for (const Node &node : nodes)
      drawNode(svg, node);
    return svg + "</svg>\n";
  }

private:
  static constexpr double kBoxWidth = 200, kBoxHeight = 44, kGapX = 24, kGapY = 34, kMargin = 40, kInset = 8;

  struct Node {
    std::string name;         ///< of an input or output
    int kernel = -1;          ///< its place in the model's kernels
    std::vector<size_t> from; ///< nodes that come before
    size_t row = 0;
    double x = 0, y = 0; ///< of the box's upper left corner
  };

  /// Inputs, then kernels in the program's order, then outputs: each after what it reads.
  void addNodes() {
    std::map<std::string, size_t> inputs, outputs;
    for (const auto &[number, place] : places)
      for (const std::string &name : model.kernels[place].inputs)
        if (inputs.try_emplace(name, nodes.size()).second)
          nodes.push_back({name, -1, {}});
    std::map<uint32_t, size_t> nodeOf;
    for (const auto &[number, place] : places) {
      Node node;
      node.kernel = int(place);
      for (const std::string &name : model.kernels[place].inputs)
        node.from.push_back(inputs[name]);
      for (uint32_t source : model.kernels[place].reads)
        if (nodeOf.count(source)) // one that did not run made nothing
          node.from.push_back(nodeOf[source]);
      nodeOf[number] = nodes.size();
      nodes.push_back(node);
    }
    for (const auto &[number, place] : places)
      for (const std::string &name : model.kernels[place].outputs) {
        if (outputs.try_emplace(name, nodes.size()).second)
          nodes.push_back({name, -1, {}});
        nodes[outputs[name]].from.push_back(nodeOf[number]);
      }
  }

  void placeRows() {
    for (Node &node : nodes) {
      for (size_t from : node.from)
        node.row = std::max(node.row, nodes[from].row + 1);
      rows.resize(std::max(rows.size(), node.row + 1));
    }
    // An input stands above the first that reads it.
    std::vector<size_t> first(nodes.size(), rows.size());
    for (const Node &node : nodes)
      for (size_t from : node.from)
        first[from] = std::min(first[from], node.row);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].kernel < 0 && nodes[i].from.empty() && first[i] > 0 && first[i] < rows.size())
        nodes[i].row = first[i] - 1;
      rows[nodes[i].row].push_back(i);
    }
  }

  void placeColumns() {
    size_t widest = 1;
    for (const std::vector<size_t> &row : rows)
      widest = std::max(widest, row.size());
    const double inner = double(widest) * (kBoxWidth + kGapX) - kGapX;
    for (size_t at = 0; at < rows.size(); ++at) {
      std::vector<size_t> &row = rows[at];
      // Each would stand in the middle of what it reads.
      auto wish = [&](const Node &node) {
        double sum = 0;
        for (size_t from : node.from)
          sum += nodes[from].x;
        return node.from.empty() ? (inner - kBoxWidth) / 2 : sum / double(node.from.size());
      };
      std::vector<std::pair<double, size_t>> wishes;
      for (size_t i : row)
        wishes.emplace_back(wish(nodes[i]), i);
      std::sort(wishes.begin(), wishes.end());
      // From the left, not over the one before; then from the right, within the picture.
      double least = 0, most = inner - kBoxWidth;
      row.clear();
      for (const auto &[wished, i] : wishes) {
        row.push_back(i);
        nodes[i].x = std::max(wished, least);
        nodes[i].y = kMargin + double(at) * (kBoxHeight + kGapY);
        least = nodes[i].x + kBoxWidth + kGapX;
      }
      for (size_t i = row.size(); i-- > 0;) {
        nodes[row[i]].x = std::min(nodes[row[i]].x, most);
        most = nodes[row[i]].x - kBoxWidth - kGapX;
      }
    }
    size_t longestWay = 0;
    for (const Node &node : nodes)
      for (size_t from : node.from)
        longestWay = std::max(longestWay, node.row - nodes[from].row);
    const double side = longestWay > 1 ? 120 : 0;
    for (Node &node : nodes)
      node.x += kMargin + side;
    width = inner + 2 * (kMargin + side);
    height = 2 * kMargin + double(rows.size()) * (kBoxHeight + kGapY) - kGapY;
  }

  void drawEdge(std::string &svg, const Node &from, const Node &to) const {
    // Inputs and outputs are drawn smaller than the box that they have.
    const double x1 = from.x + kBoxWidth / 2, y1 = from.y + kBoxHeight - (from.kernel < 0 ? kInset : 0);
    const double x2 = to.x + kBoxWidth / 2, y2 = to.y + (to.kernel < 0 ? kInset : 0);
    const size_t way = to.row - from.row;
    if (way <= 1) {
      svg += format("<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", x1, y1, x1, y1 + kGapY / 2, x2,
                    y2 - kGapY / 2, x2, y2);
      return;
    }
    // Round the boxes between, the further the longer the way, on the side that is nearer to both ends.
    const bool isRight = x1 + x2 >= width;
    const double out = 30 + std::min(double(way), 10.0) * 8;
    const double edge = isRight ? std::max(x1, x2) + kBoxWidth / 2 + out : std::min(x1, x2) - kBoxWidth / 2 - out;
    svg += format("<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fL%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
                  x1, y1, x1, y1 + kGapY * 0.7, edge, y1, edge, y1 + kGapY, edge, y2 - kGapY, edge, y2, x2,
                  y2 - kGapY * 0.7, x2, y2);
  }

  void drawNode(std::string &svg, const Node &node) const {
    const double middle = node.x + kBoxWidth / 2;
    if (node.kernel < 0) {
      svg += format("<g><rect class=\"value\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"14\"/>",
                    node.x + 20, node.y + kInset, kBoxWidth - 40, kBoxHeight - 2 * kInset);
      svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", middle, node.y + 26) +
             escapeHtml(shorten(node.name, 22)) + "</text><title>" + escapeHtml(node.name) + "</title></g>\n";
      return;
    }
    const KernelResult &kernel = model.kernels[size_t(node.kernel)];
    const double share = total > 0 ? kernel.us / total : 0;
    svg += format("<g class=\"node\" data-kernel=\"%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "rx=\"6\"/>",
                  node.kernel + 1, node.x, node.y, kBoxWidth, kBoxHeight);
    // The more time, the stronger the colour.
    svg += format("<rect class=\"heat\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" "
                  "fill-opacity=\"%.2f\"/>",
                  node.x, node.y, kBoxWidth, kBoxHeight, longest > 0 ? 0.6 * std::sqrt(kernel.us / longest) : 0);
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d. ", middle, node.y + 18, node.kernel + 1) +
           escapeHtml(shorten(kernel.name, 23)) + "</text>";
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.2f µs, %.1f %%</text>", middle, node.y + 35,
                  kernel.us, 100 * share);
    svg += "<title>" + escapeHtml(kernel.name) +
           format(": %.2f µs, %.1f %% of the kernels' time", kernel.us, 100 * share) +
           (kernel.strategy.empty() ? "" : "; schedule " + escapeHtml(kernel.strategy)) + "; " +
           escapeHtml(kernel.nodes) + "</title></g>\n";
  }

  const ModelResult &model;
  std::map<uint32_t, size_t> places; ///< of the kernels that ran, by number
  std::vector<Node> nodes;
  std::vector<std::vector<size_t>> rows;
  double total = 0, longest = 0, width = 0, height = 0;
};

} // namespace

std::string tc::bench::drawKernelGraph(const ModelResult &model) {
  const bool isKnown = std::any_of(model.kernels.begin(), model.kernels.end(), [](const KernelResult &kernel) {
    return !kernel.reads.empty() || !kernel.inputs.empty() || !kernel.outputs.empty();
  });
  return isKnown ? Graph(model).draw() : "";
}
