# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an artifact's manifest says, as lists of dicts, one a row of a table."""
from __future__ import annotations

import html
from typing import Any, Iterable, Mapping, Sequence

Row = dict[str, Any]
MOST_ROWS = 200 # that a notebook shows
MOST_LETTERS = 60 # of a cell


def guards(manifest: Mapping[str, Any]) -> list[Row]:
    """Rows of Artifact.guards."""
    rows = []
    for function in manifest.get("functions", []):
        for guard in function.get("guards", []):
            rows.append({"function": function["name"], **{key: guard.get(key, "") for key in ("kind", "inputs", "condition", "from", "costs", "give_up")}})
    return rows


def kernels(manifest: Mapping[str, Any]) -> list[Row]:
    """Rows of Artifact.explain."""
    listed = manifest.get("kernels", [])
    # Kernels of a function follow each other.
    starts = {function.get("first_kernel", 0): function["name"] for function in manifest.get("functions", [])}
    rows, function = [], ""
    for index, kernel in enumerate(listed):
        function = starts.get(index, function)
        unfused = kernel.get("unfused", {})
        rows.append({
            "kernel": kernel["name"],
            "function": function,
            "nodes": kernel.get("nodes", ""),
            "strategy": kernel.get("strategy", ""),
            "flops": kernel.get("flops"),
            "bytes": kernel.get("bytes"),
            "unfused_bytes": unfused.get("bytes"),
            "unfused_launches": unfused.get("launches"),
            "reads": [listed[read]["name"] if isinstance(read, int) else read for read in kernel.get("reads", [])],
        }) # fmt: skip
    return rows


def scrolled(part: str) -> str:
    """A large picture or table in a part of a page."""
    return f'<div style="overflow: auto; max-height: 480px; max-width: 100%">{part}</div>'


def table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> str:
    """An HTML table of these columns of the rows, the first MOST_ROWS of them."""
    names = list(columns)

    def cell(value: Any) -> str:
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else "" if value is None else str(value)
        if len(text) <= MOST_LETTERS:
            return f"<td>{html.escape(text)}</td>"
        return f'<td title="{html.escape(text[:1000])}">{html.escape(text[: MOST_LETTERS - 1])}…</td>'

    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(cell(row.get(name)) for name in names) + "</tr>" for row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        body += f"<tr><td colspan={len(names)}>{len(rows) - MOST_ROWS} more</td></tr>"
    return f"<table style='white-space: nowrap'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
