# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pictures of notebooks: what they show, that it can be read, and that they stay small."""
import os
import re
import xml.etree.ElementTree

import numpy as np
import pytest
import tc_compiler as tc
from tc_compiler import pictures

DIGITS = os.path.join(os.path.dirname(__file__), "..", "..", "models", "digits", "model.onnx")
SVG = "{http://www.w3.org/2000/svg}"


def manifest_of(reads, **function):
    """Of one function, whose kernel i reads reads[i]."""
    kernels = [{"name": f"kernel_{i}", "nodes": f"node_{i}", "strategy": "loops", "reads": read} for i, read in enumerate(reads)]
    return {"kernels": kernels, "functions": [{"name": "main", "first_kernel": 0, "outputs": [{"name": "y", "from": [len(reads) - 1]}], **function}]}


def texts_of(picture):
    return [element.text for element in xml.etree.ElementTree.fromstring(picture).iter(f"{SVG}text")]


def boxes_of(picture):
    return [tuple(float(rect.get(key)) for key in ("x", "y", "width", "height")) for rect in xml.etree.ElementTree.fromstring(picture).iter(f"{SVG}rect")]


@pytest.fixture(scope="module")
def digits():
    return tc.compile(DIGITS)


def test_graph_of_a_model(digits):
    picture = digits._repr_svg_()
    kernels = [row["kernel"] for row in digits.explain()]
    texts = texts_of(picture)
    assert set(texts) >= {"images", "logits", *(pictures._short(name, 28) for name in kernels)}
    assert picture == digits._repr_svg_() and picture.count("<title>") == len(kernels) + 2
    assert picture.count("<path") >= len(kernels) + 1 # each kernel reads something, the output comes from one
    assert "currentColor" in picture and "background:#ffffff" in picture # stands alone
    page = digits._repr_html_()
    assert page.count("<svg") == 1 and "background" not in page # in a page, with the page's colours


def test_times(tmp_path):
    tc.compile(DIGITS, output=tmp_path / "digits.bin")
    artifact = tc.load(tmp_path / "digits.bin", profile=True)
    assert artifact._repr_html_().count("<svg") == 1 # nothing ran
    artifact(images=np.zeros((3, 1, 8, 8), np.float32))
    page = artifact._repr_html_()
    assert page.count("<svg") == 2 and re.search(r"[\d.]+ %, [\d.e+]+ µs × 1, [\d.e+]+ GFLOP/s, [\d.e+]+ GB/s<", page)
    assert re.search(r"[\d.e+]+ µs, [\d.]+ %<", artifact._repr_svg_())
    artifact.close()
    assert artifact._repr_svg_() is None and "digits.bin" in artifact._repr_html_()


def test_bars():
    profile = [{"kernel": f"k{i}", "launches": 2, "time_ns": 1000 * (50 - i), "flops": 4000 if i else 0, "bytes": 1000} for i in range(50)]
    texts = texts_of(pictures.bars(profile))
    assert len(texts) == 2 * (pictures.MOST_BARS + 1) and "30 more" in texts
    assert texts[1] == "3.9 %, 25 µs × 2, 0.04 GB/s" and texts[3] == "3.8 %, 24.5 µs × 2, 0.163 GFLOP/s, 0.0408 GB/s"
    assert pictures.bars([]) == "" and pictures.bars([{**profile[0], "time_ns": 0}]) == ""


def test_boxes_stand_apart():
    picture = pictures.graph(manifest_of([["x"], [0], [0, "mask"], [1], [2, 3], [4, 0], [3], [5, 6]]), "main")
    width, height = (float(xml.etree.ElementTree.fromstring(picture).get(side)) for side in ("width", "height"))
    boxes = boxes_of(picture)
    assert len(boxes) == 11 # kernels, x, mask, y
    for index, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
        assert all(x + w <= u or u + v <= x or y + h <= t or t + s <= y for u, t, v, s in boxes[:index])
    ways = re.findall(r'<path d="M[^"]*L([\d.]+) ([\d.]+)C[^"]* ([\d.]+)"', picture)
    assert ways # those that pass rows go round what is there
    for edge, _, end in ways:
        assert 0 <= float(edge) <= width and not any(x <= float(edge) <= x + w and y < float(end) - h for x, y, w, h in boxes if y > 150)


def test_names_are_escaped():
    manifest = manifest_of([["<script>&\x01\ud800"]])
    manifest["kernels"][0].update(name='a"<b>', nodes="</title>" + "+node" * 10_000)
    picture = pictures.graph(manifest, "main")
    texts = texts_of(picture)
    assert len(picture) < 3000 and texts == ["<script>&\ufffd\ufffd", 'a"<b>', "loops", "y"]


@pytest.mark.parametrize("read", [lambda i: [i - 1] if i else ["x"], lambda i: ["x"], lambda i: [f"x{i}"], lambda i: list(range(i)) or ["x"]])
def test_large_models(read):
    picture = pictures.graph(manifest_of([read(i) for i in range(2000)]), "main", is_page=True)
    assert len(picture) < 1_500_000 and picture.count("<title>") <= pictures.MOST_BOXES + 2
    assert re.search(r"1[89]\d\d more kernels are not drawn", texts_of(picture)[-1])


def test_functions_have_their_own_kernels():
    manifest = manifest_of([["x"], [0], ["z"]])
    manifest["functions"].append({"name": "step", "first_kernel": 2, "outputs": []})
    assert texts_of(pictures.graph(manifest, "main"))[::2][:2] == ["x", "loops"] and "z" not in texts_of(pictures.graph(manifest, "main"))
    assert texts_of(pictures.graph(manifest, "step")) == ["z", "kernel_2", "loops"]


def test_without_sources():
    manifest = manifest_of([[], []], outputs=[])
    assert pictures.graph(manifest, "main") == "" and pictures.graph({}, "main") == "" and pictures.graph(manifest, "other") == ""
