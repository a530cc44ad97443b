# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an artifact says of itself: guards, kernels, the page of a notebook."""
import html.parser
import os

import numpy as np
import pytest
import tc_compiler as tc

DIGITS = os.path.join(os.path.dirname(__file__), "..", "..", "models", "digits", "model.onnx")


@pytest.fixture(scope="module")
def digits():
    return tc.compile(DIGITS, dims={"batch": "1..64"}) # in memory: no file of its own


def test_guards(digits):
    rows = digits.guards()
    assert all(row.keys() == rows[0].keys() and row["function"] == "main" for row in rows)
    (batch,) = [row for row in rows if row["kind"] == "range"]
    assert batch["condition"] == "1 <= batch <= 64" and "images" in batch["inputs"] and "--dim" in batch["from"]
    with pytest.raises(tc.RefusedError): # which is what it says
        digits(images=np.zeros((65, 1, 8, 8), np.float32))


def test_explain(digits):
    rows = digits.explain()
    names = {row["kernel"] for row in rows} | {value.name for value in digits.inputs}
    assert len(names) == len(rows) + 1
    for row in rows:
        assert row["nodes"] and row["strategy"] and row["function"] == "main" and set(row["reads"]) <= names
    assert rows[0]["reads"] == ["images"] and any("batch" in str(row["flops"]) for row in rows)
    assert any(row["unfused_launches"] > 1 for row in rows) # a relu is in a convolution's kernel


class Tables(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def test_notebook(digits):
    page = Tables()
    page.feed(digits._repr_html_())
    assert not page.open
    assert {"images", "logits", "1 <= batch <= 64", "['batch', 1, 8, 8]"} | {row["kernel"] for row in digits.explain()} <= set(page.cells)


def test_long_tables_end():
    table = tc.reports.table([{"name": f"k{i}"} for i in range(5000)], ("name",))
    assert table.count("<tr>") == tc.reports.MOST_ROWS + 2 and "4800 more" in table


def test_long_cells_end():
    table = tc.reports.table([{"nodes": "+".join(f'"node_{i}"' for i in range(5000))}], ("nodes",))
    assert len(table) < 20_000 and "…</td>" in table and 'title="&quot;node_0&quot;+' in table


def test_names_are_escaped():
    table = tc.reports.table([{"name": "<script>", "list": ["a&b", "c"], "none": None}], ("name", "list", "none"))
    assert "<script>" not in table and "&lt;script&gt;" in table and "a&amp;b, c" in table
