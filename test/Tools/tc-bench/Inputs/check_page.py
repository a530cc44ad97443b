#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Open tc-bench's page in a headless browser, measure what it shows, use its graph, and take a screenshot.

usage: check_page.py PAGE.html SCREENSHOT.png [WIDTH]

WIDTH: of the window (1250).
"""
import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

# Runs in the page after its own script. Rectangles are those that the browser has drawn.
PROBE = """<script>
const result = {errors: []};
window.addEventListener('error', event => result.errors.push(event.message));
const rect = element => { const r = element.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const inside = (a, b) => a[0] >= b[0] - 0.5 && a[1] >= b[1] - 0.5 && a[2] <= b[2] + 0.5 && a[3] <= b[3] + 0.5;
const overlap = (a, b) => Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1 && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 1;
try {
  const plots = [...document.querySelectorAll('svg.roofline')], graphs = [...document.querySelectorAll('svg.graph')];
  result.plots = plots.length;
  result.discs = document.querySelectorAll('.kernel').length;
  result.dashed = document.querySelectorAll('.fewer').length;
  for (const plot of plots)
    for (const shape of plot.querySelectorAll('circle, line, text'))
      if (!inside(rect(shape), rect(plot))) result.errors.push('outside of the roofline: ' + shape.outerHTML);
  // Plots of costs: nothing leaves its frame, and no text stands on another one.
  const pictures = [...document.querySelectorAll('svg.plot')];
  result.pictures = pictures.length;
  result.curves = document.querySelectorAll('.curve').length;
  result.bars = document.querySelectorAll('.bar').length;
  for (const picture of pictures) {
    for (const shape of picture.querySelectorAll('circle, line, text, polyline, rect'))
      if (!inside(rect(shape), rect(picture))) result.errors.push('outside of its picture: ' + shape.outerHTML.slice(0, 200));
    const texts = [...picture.querySelectorAll('text')];
    texts.forEach((text, i) => texts.slice(0, i).forEach(other => {
      if (overlap(rect(text), rect(other))) result.errors.push('two texts in one place: ' + text.outerHTML + other.outerHTML);
    }));
  }
  for (const picture of pictures)
    for (const other of pictures)
      if (picture !== other && overlap(rect(picture), rect(other))) result.errors.push('two pictures in one place');
  result.graphs = graphs.length;
  result.nodes = document.querySelectorAll('.node').length;
  for (const graph of graphs) {
    const buttons = [...graph.parentNode.querySelectorAll('button')];
    buttons.find(b => b.textContent === 'all').click();
    const nodes = [...graph.querySelectorAll('.node, .value')];
    nodes.forEach((node, i) => {
      if (!inside(rect(node), rect(graph))) result.errors.push('outside of the graph: ' + node.outerHTML);
      nodes.slice(0, i).forEach(other => {
        if (overlap(rect(node), rect(other))) result.errors.push('two nodes in one place: ' + node.outerHTML);
      });
      // A text is within its box.
      for (const text of node.querySelectorAll('text'))
        if (!inside(rect(text), rect(node.querySelector('rect')))) result.errors.push('the text leaves its box: ' + text.outerHTML);
    });
  }
  const graph = graphs[0], buttons = [...graph.parentNode.querySelectorAll('button')];
  const view = () => graph.getAttribute('viewBox').split(' ').map(Number), whole = view();
  buttons.find(b => b.textContent === '+').click();
  const near = view();
  result.zoomed = near[2] < whole[2] && near[3] < whole[3];
  const point = (type, x, y) => new PointerEvent(type, {clientX: x, clientY: y, bubbles: true});
  graph.dispatchEvent(point('pointerdown', 300, 300));
  window.dispatchEvent(point('pointermove', 340, 320));
  window.dispatchEvent(point('pointerup', 340, 320));
  const moved = view();
  result.moved = moved[0] < near[0] && moved[1] < near[1] && moved[2] === near[2];
  buttons.find(b => b.textContent === 'all').click();
  result.whole = view().join() === whole.join();
  const node = graph.querySelector('.node');
  graph.dispatchEvent(point('pointerdown', 10, 10));
  window.dispatchEvent(point('pointerup', 10, 10));
  node.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  const row = document.querySelector('tr.found');
  result.found = row !== null && row.dataset.row === node.dataset.kernel && row.closest('section') === graph.closest('section');
  result.width = document.documentElement.scrollWidth - window.innerWidth;
} catch (error) { result.errors.push(String(error)); }
const answer = document.createElement('pre');
answer.id = 'answer';
answer.textContent = JSON.stringify(result);
document.body.append(answer);
</script>"""


def browse(page, size, *words):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory(prefix="tc-browser-") as profile:
        return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
                               f"--window-size={size}", *words, "file://" + os.path.abspath(page)],
                              capture_output=True, text=True, timeout=120, check=True).stdout


def read_png(path):
    """Width, height, and the number of different colours in every fifth row."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += size + 12
    assert depth == 8 and colour in (2, 6), (depth, colour)
    channels = 3 if colour == 2 else 4
    raw, stride, before, colours = zlib.decompress(packed), width * channels + 1, bytes(width * channels), set()
    for y in range(height):
        kind, line = raw[y * stride], bytearray(raw[y * stride + 1:(y + 1) * stride])
        for i in range(len(line) if kind else 0):
            left = line[i - channels] if i >= channels else 0
            corner = before[i - channels] if i >= channels else 0
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + before[i]) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + before[i]) // 2) & 255
            elif kind == 4:
                p = left + before[i] - corner
                best = min((abs(p - left), 0, left), (abs(p - before[i]), 1, before[i]), (abs(p - corner), 2, corner))
                line[i] = (line[i] + best[2]) & 255
        before = bytes(line)
        if y % 5 == 0:
            colours.update(before[i:i + 3] for i in range(0, len(before), channels))
    return width, height, len(colours)


def main(page, screenshot, width=1250):
    size = f"{width},{4200 * 1250 // int(width)}"
    with open(page) as f:
        text = f.read()
    with tempfile.NamedTemporaryFile("w", suffix=".html") as probed:
        probed.write(text.replace("</body>", PROBE + "</body>"))
        probed.flush()
        dom = browse(probed.name, size, "--dump-dom")
    result = json.loads(html.unescape(re.search(r'<pre id="answer">(.*?)</pre>', dom, re.DOTALL).group(1)))
    for error in result["errors"]:
        print(error)
    print(f"{result['graphs']} graphs with {result['nodes']} kernels, {result['plots']} rooflines with {result['discs']} discs, "
          f"{result['dashed']} of them dashed")
    assert result["zoomed"] and result["moved"] and result["whole"] and result["found"] and result["width"] <= 0, result
    print("zoomed, moved, and shown whole again; the row of a kernel was found")
    if result["pictures"]:
        print(f"{result['pictures']} pictures with {result['curves']} curves and {result['bars']} bars")
    browse(page, size, f"--screenshot={os.path.abspath(screenshot)}")
    width, height, colours = read_png(screenshot)
    print(f"screenshot of {width} x {height} points in {colours} colours")
    return 1 if result["errors"] or colours < 50 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
