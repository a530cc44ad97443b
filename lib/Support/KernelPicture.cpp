//===- KernelPicture.cpp - the kernels of a model as a picture ----------------------------------------------------===//
//
// A kernel stands one row below the last one that it reads, inputs above all, outputs below all. Within a row kernels
// stand below what they read, as far as their neighbours let them (the barycentre of Sugiyama, Tagawa, Toda, "Methods
// for visual understanding of hierarchical system structures", 1981). A line that passes rows goes round them at the
// side.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Support/KernelPicture.h"
#include "tc/Support/PrintfText.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

using namespace tc;

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
  explicit Graph(const std::vector<PictureKernel> &kernels) : kernels(kernels) {
    for (size_t i = 0; i < kernels.size(); ++i)
      places[kernels[i].number] = i;
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
      for (const std::string &name : kernels[place].inputs)
        if (inputs.try_emplace(name, nodes.size()).second)
          nodes.push_back({name, -1, {}});
    std::map<uint32_t, size_t> nodeOf;
    for (const auto &[number, place] : places) {
      Node node;
      node.kernel = int(place);
      for (const std::string &name : kernels[place].inputs)
        node.from.push_back(inputs[name]);
      for (uint32_t source : kernels[place].reads)
        if (nodeOf.count(source)) // one that did not run made nothing
          node.from.push_back(nodeOf[source]);
      nodeOf[number] = nodes.size();
      nodes.push_back(node);
    }
    for (const auto &[number, place] : places)
      for (const std::string &name : kernels[place].outputs) {
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
    const PictureKernel &kernel = kernels[size_t(node.kernel)];
    svg += format("<g class=\"node\" data-kernel=\"%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "rx=\"6\"/>",
                  node.kernel + 1, node.x, node.y, kBoxWidth, kBoxHeight);
    svg += format("<rect class=\"heat\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" "
                  "fill-opacity=\"%.2f\"/>",
                  node.x, node.y, kBoxWidth, kBoxHeight, 0.6 * std::sqrt(kernel.heat));
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d. ", middle, node.y + 18, node.kernel + 1) +
           escapeHtml(shorten(kernel.name, 23)) + "</text>";
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", middle, node.y + 35) +
           escapeHtml(shorten(kernel.note, 30)) + "</text>";
    svg += "<title>" + escapeHtml(kernel.title) + "</title></g>\n";
  }

  const std::vector<PictureKernel> &kernels;
  std::map<uint32_t, size_t> places; ///< of the kernels that ran, by number
  std::vector<Node> nodes;
  std::vector<std::vector<size_t>> rows;
  double width = 0, height = 0;
};

} // namespace

const char *const tc::kKernelPictureStyle =
    R"(tr.found td { background: color-mix(in srgb, var(--kernel) 25%, transparent); }
.frame { position: relative; border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
svg.graph { display: block; width: 100%; height: min(70vh, 640px); cursor: grab; touch-action: none; }
.frame .buttons { position: absolute; top: .5rem; right: .5rem; display: flex; gap: .3rem; }
.frame button { font: 14px system-ui, sans-serif; min-width: 2rem; padding: .2rem .5rem; color: var(--ink);
  background: var(--paper); border: 1px solid var(--line); border-radius: 4px; cursor: pointer; }
.node { cursor: pointer; }
@media print { .frame .buttons { display: none; } }
)";

const char *const tc::kKernelPictureScript = R"(<script>
for (const frame of document.querySelectorAll('.frame')) {
  const svg = frame.querySelector('svg'), whole = svg.viewBox.baseVal, all = [whole.x, whole.y, whole.width, whole.height];
  let view = all.slice(), from = null, moved = false;
  const show = () => svg.setAttribute('viewBox', view.join(' '));
  const scale = () => Math.max(view[2] / svg.clientWidth, view[3] / svg.clientHeight);
  const zoom = (factor, px, py) => {
    const x = view[0] + view[2] * px, y = view[1] + view[3] * py;
    view = [x - view[2] * factor * px, y - view[3] * factor * py, view[2] * factor, view[3] * factor];
    show();
  };
  // A picture that would be too small to read begins at its top.
  const readable = () => {
    view = all.slice();
    if (scale() > 1.4) {
      const width = Math.min(all[2], svg.clientWidth * 1.4);
      view = [all[0] + (all[2] - width) / 2, all[1], width, svg.clientHeight * 1.4];
    }
    show();
  };
  const actions = { '+': () => zoom(0.7, 0.5, 0.5), '−': () => zoom(1 / 0.7, 0.5, 0.5), 'all': () => { view = all.slice(); show(); } };
  const buttons = document.createElement('div');
  buttons.className = 'buttons';
  for (const name in actions) {
    const button = document.createElement('button');
    button.textContent = name;
    button.onclick = actions[name];
    buttons.append(button);
  }
  frame.append(buttons);
  svg.addEventListener('wheel', event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }, { passive: false });
  svg.addEventListener('dblclick', actions['+']);
  svg.addEventListener('pointerdown', event => { from = [event.clientX, event.clientY]; moved = false; });
  window.addEventListener('pointermove', event => {
    if (!from) return;
    const dx = event.clientX - from[0], dy = event.clientY - from[1];
    moved = moved || Math.abs(dx) + Math.abs(dy) > 4;
    view[0] -= dx * scale(); view[1] -= dy * scale();
    from = [event.clientX, event.clientY];
    show();
  });
  window.addEventListener('pointerup', () => { from = null; });
  for (const node of svg.querySelectorAll('.node'))
    node.addEventListener('click', () => {
      const row = frame.closest('section').querySelector(`[data-row="${node.dataset.kernel}"]`);
      if (moved || !row) return;
      document.querySelectorAll('tr.found').forEach(old => old.classList.remove('found'));
      row.classList.add('found');
      row.scrollIntoView({ block: 'center' });
    });
  readable();
}
</script>
)";

std::string tc::escapeHtml(const std::string &text) {
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

std::string tc::drawKernels(const std::vector<PictureKernel> &kernels) {
  const bool isKnown = std::any_of(kernels.begin(), kernels.end(), [](const PictureKernel &kernel) {
    return !kernel.reads.empty() || !kernel.inputs.empty() || !kernel.outputs.empty();
  });
  return isKnown ? Graph(kernels).draw() : "";
}
