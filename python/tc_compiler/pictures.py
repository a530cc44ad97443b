# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SVG pictures of what an artifact does, for notebooks: its kernels as a graph, and their times as bars.

The graph is that of tc-compile's debug folder (lib/Support/KernelPicture.cpp), smaller: a kernel stands one row below the last one that it reads,
inputs above all, outputs below all, and within a row below what it reads, as far as its neighbours let it (the barycentre of Sugiyama, Tagawa, Toda,
"Methods for visual understanding of hierarchical system structures", 1981). All colours are the text's own, which a page in the dark makes light.
"""
from __future__ import annotations

import dataclasses
import html
import math
import re
from typing import Any, Mapping, Sequence

from .reports import Row

MOST_BOXES = 120 # of a graph: more are neither read nor drawn quickly
MOST_BARS = 20
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 200, 44, 24, 34, 16
_CHARACTER = 6.4 # a wide guess of a letter's width
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KERNELS_COLOUR = "#2f6fdb" # which is seen on white and on black


def _escaped(text: str) -> str:
    return html.escape(_NOT_XML.sub("\ufffd", text))


def _figure(number: float) -> str:
    return f"{number:.3g}" if number < 999.5 else f"{number:.0f}"


def _microseconds(row: Row) -> str:
    """Of a launch."""
    return f"{_figure(row['time_ns'] / max(row['launches'], 1) / 1e3)} µs"


def _short(text: str, most: float) -> str:
    return text if len(text) <= most else text[: int(most) - 1] + "…"


def _svg(parts: Sequence[str], width: float, height: float, label: str, is_page: bool) -> str:
    """`is_page`: it stands alone, where nobody says what the text's colour is."""
    own = ' style="color:#1b1f24;background:#ffffff"' if is_page else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{_escaped(label)}"{own}>'
    paper = f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>' if is_page else ""
    return "\n".join([head + paper, '<g font-family="system-ui, sans-serif" font-size="12" fill="currentColor">', *parts, "</g></svg>"])


def _text(x: float, y: float, text: str, anchor: str = "start", opacity: float = 1) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill-opacity="{opacity}">{_escaped(text)}</text>'


@dataclasses.dataclass
class _Box:
    name: str
    kernel: int | None = None # its number; None: an input or output
    sources: list[int] = dataclasses.field(default_factory=list) # boxes before it
    row: int = 0
    x: float = 0
    y: float = 0


def _boxes(manifest: Mapping[str, Any], place: int) -> tuple[list[_Box], int]:
    """Those of a function, each behind its sources, and how many kernels are left out."""
    kernels, functions = manifest.get("kernels", []), manifest.get("functions", [])
    function = functions[place]
    first = function.get("first_kernel", 0)
    end = functions[place + 1].get("first_kernel", len(kernels)) if place + 1 < len(functions) else len(kernels)
    boxes: list[_Box] = []
    inputs: dict[str, int] = {}
    of_kernel: dict[int, int] = {}
    number = first
    while number < end and len(boxes) < MOST_BOXES:
        sources: dict[int, None] = {} # each once, in order
        for read in kernels[number].get("reads", []):
            if isinstance(read, int):
                if read in of_kernel: # kernels of a loop read later ones, too
                    sources[of_kernel[read]] = None
            elif read in inputs or len(boxes) < MOST_BOXES:
                if read not in inputs:
                    inputs[read] = len(boxes)
                    boxes.append(_Box(str(read)))
                sources[inputs[read]] = None
        of_kernel[number] = len(boxes)
        boxes.append(_Box(kernels[number]["name"], number, list(sources)))
        number += 1
    for output in function.get("outputs", [])[: MOST_BOXES // 2]:
        made = dict.fromkeys(of_kernel[source] for source in output.get("from", []) if source in of_kernel)
        if made:
            boxes.append(_Box(output["name"], None, list(made)))
    return boxes, end - number


def _place(boxes: list[_Box]) -> tuple[float, float]:
    """Gives each box its place; the picture's width and height."""
    for box in boxes:
        box.row = max((boxes[source].row + 1 for source in box.sources), default=0)
    nearest: dict[int, int] = {}
    for box in boxes:
        for source in box.sources:
            nearest[source] = min(nearest.get(source, box.row), box.row)
    for index, box in enumerate(boxes): # an input stands above the first that reads it
        if box.kernel is None and not box.sources and index in nearest:
            box.row = nearest[index] - 1
    rows: list[list[_Box]] = [[] for _ in range(max(box.row for box in boxes) + 1)]
    for box in boxes:
        rows[box.row].append(box)
    inner = max(map(len, rows)) * (_WIDTH + _GAP_X) - _GAP_X
    for row in rows:
        wishes = [sum(boxes[source].x for source in box.sources) / len(box.sources) if box.sources else (inner - _WIDTH) / 2 for box in row]
        row[:] = [row[index] for index in sorted(range(len(row)), key=lambda index: (wishes[index], index))]
        # From the left, not over the one before; then from the right, within the picture.
        least, most = 0.0, float(inner - _WIDTH)
        for box, wish in zip(row, sorted(wishes)):
            box.x, box.y = max(wish, least), _MARGIN + box.row * (_HEIGHT + _GAP_Y)
            least = box.x + _WIDTH + _GAP_X
        for box in reversed(row):
            box.x = min(box.x, most)
            most = box.x - _WIDTH - _GAP_X
    longest = max((box.row - boxes[source].row for box in boxes for source in box.sources), default=0)
    side = _MARGIN + (120 if longest > 1 else 0)
    for box in boxes:
        box.x += side
    return inner + 2 * side, 2 * _MARGIN + len(rows) * (_HEIGHT + _GAP_Y) - _GAP_Y


def _line(source: _Box, box: _Box, boxes: Sequence[_Box], width: float) -> str:
    x1, y1, x2, y2 = source.x + _WIDTH / 2, source.y + _HEIGHT - (0 if source.kernel is not None else 8), box.x + _WIDTH / 2, box.y + (0 if box.kernel is not None else 8)
    rows = box.row - source.row
    if rows <= 1:
        return f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + _GAP_Y / 2:.1f} {x2:.1f} {y2 - _GAP_Y / 2:.1f} {x2:.1f} {y2:.1f}"/>'
    # Round the boxes between, the further the longer the way, on the side that is nearer to both ends.
    passed = [x1 - _WIDTH / 2, x2 - _WIDTH / 2, *(other.x for other in boxes if source.row < other.row < box.row)]
    out = 20 + 8 * min(rows, 10)
    edge = max(passed) + _WIDTH + out if x1 + x2 >= width else min(passed) - out
    return f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + 24:.1f} {edge:.1f} {y1:.1f} {edge:.1f} {y1 + _GAP_Y:.1f}L{edge:.1f} {y2 - _GAP_Y:.1f}C{edge:.1f} {y2:.1f} {x2:.1f} {y2 - 24:.1f} {x2:.1f} {y2:.1f}"/>' # fmt: skip


def graph(manifest: Mapping[str, Any], function: str, profile: Sequence[Row] = (), *, is_page: bool = False) -> str:
    """The kernels of a function with what they read; the more of the time a kernel takes, the stronger its colour. The first MOST_BOXES are drawn, and
    the rest is counted. Empty where the manifest does not say what kernels read. `profile`: rows of Artifact.profile."""
    names = [entry["name"] for entry in manifest.get("functions", [])]
    boxes, left_out = _boxes(manifest, names.index(function)) if function in names else ([], 0)
    if not any(box.sources for box in boxes):
        return ""
    width, height = _place(boxes)
    kernels, rows = manifest["kernels"], {row["kernel"]: row for row in profile}
    total, longest = sum(row["time_ns"] for row in profile), max((row["time_ns"] for row in profile), default=0)
    parts = ['<g fill="none" stroke="currentColor" stroke-opacity="0.45">', *(_line(boxes[source], box, boxes, width) for box in boxes for source in box.sources), "</g>"]
    for box in boxes:
        middle = box.x + _WIDTH / 2
        if box.kernel is None:
            rect = f'<rect x="{box.x + 20:.1f}" y="{box.y + 8}" width="{_WIDTH - 40}" height="{_HEIGHT - 16}" rx="14" fill-opacity="0.12"/>'
            name = _text(middle, box.y + 26, _short(box.name, 24), "middle")
            parts.append(f"<g>{rect}{name}<title>{_escaped(box.name)}</title></g>")
            continue
        kernel, measured = kernels[box.kernel], rows.get(box.name)
        note, heat = kernel.get("strategy", ""), 0.06
        if measured is not None:
            note = f"{_microseconds(measured)}, {100 * measured['time_ns'] / max(total, 1):.1f} %"
            heat += 0.54 * math.sqrt(measured["time_ns"] / max(longest, 1))
        title = _short(f"{box.name}: {kernel.get('strategy', '')}; {kernel.get('nodes', '')}", 500)
        rect = f'<rect x="{box.x:.1f}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{_KERNELS_COLOUR}" fill-opacity="{heat:.2f}" stroke="currentColor" stroke-opacity="0.45"/>'
        first = _text(middle, box.y + 18, _short(box.name, 28), "middle")
        second = _text(middle, box.y + 35, _short(note, 32), "middle", 0.7)
        parts.append(f"<g>{rect}{first}{second}<title>{_escaped(title)}</title></g>")
    if left_out:
        parts.append(_text(_MARGIN, height + 10, f"{left_out} more kernels are not drawn; explain() lists all."))
        height += 2 * _MARGIN
    return _svg(parts, width, height, f"Graph of the kernels of {function}", is_page)


def bars(profile: Sequence[Row], *, is_page: bool = False) -> str:
    """The kernels' times with what they reached, longest first; after MOST_BARS the rest as one. Empty without runs. `profile`: rows of
    Artifact.profile."""
    total = sum(row["time_ns"] for row in profile)
    if not total:
        return ""
    shown = [dict(row) for row in profile[:MOST_BARS]]
    if rest := profile[MOST_BARS:]:
        shown.append({"kernel": f"{len(rest)} more", "time_ns": sum(row["time_ns"] for row in rest), "launches": sum(row["launches"] for row in rest)})
    longest = max(row["time_ns"] for row in shown)
    step, names_width, length = 22, 30 * _CHARACTER, 260
    parts = []
    for index, row in enumerate(shown):
        y, time = _MARGIN + index * step, row["time_ns"]
        rates = ((row.get(of, 0) * row["launches"] / max(time, 1), unit) for of, unit in (("flops", "GFLOP/s"), ("bytes", "GB/s")))
        reached = "".join(f", {_figure(rate)} {unit}" for rate, unit in rates if rate)
        figures = f"{100 * time / total:.1f} %, {_microseconds(row)} × {row['launches']}{reached}"
        parts.append(_text(_MARGIN + names_width, y + 13, _short(row["kernel"], 29), "end"))
        parts.append(f'<rect x="{_MARGIN + names_width + 8:.1f}" y="{y + 2}" width="{max(length * time / longest, 1):.1f}" height="15" rx="2" fill="{_KERNELS_COLOUR}"/>')
        parts.append(_text(_MARGIN + names_width + 16 + length, y + 13, figures))
    width = 2 * _MARGIN + names_width + 16 + length + 52 * _CHARACTER
    return _svg(parts, width, 2 * _MARGIN + len(shown) * step, "Time of the kernels", is_page)
