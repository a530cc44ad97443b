#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers drawn in loops within loops: each iteration draws others, and so does each run; nodes with a seed differ from
iteration to iteration and are the same in each run.

usage: random_loop.py FOLDER
"""
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OUTER, INNER, COUNT = 4, 5, 3


def value(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def loop(trips, inner, depth, results):
    """A Loop of the nodes `inner`, whose `results` it stacks."""
    nodes = inner + [helper.make_node("Identity", [f"go{depth}"], [f"on{depth}"])]
    body = helper.make_graph(
        nodes,
        f"body{depth}",
        [value(f"i{depth}", TensorProto.INT64, []), value(f"go{depth}", TensorProto.BOOL, [])],
        [value(f"on{depth}", TensorProto.BOOL, [])] + [value(r, TensorProto.FLOAT, None) for r in results],
    )
    return helper.make_node("Loop", [trips, ""], [f"{r}_{depth}" for r in results], body=body)


draws = [
    helper.make_node("RandomUniform", [], ["free"], shape=[COUNT]),
    helper.make_node("RandomNormal", [], ["seeded"], shape=[COUNT], seed=3.0),
]
inner = loop("inner", draws, 1, ["free", "seeded"])
outer = loop("outer", [inner], 2, ["free_1", "seeded_1"])
names = ["free_1_2", "seeded_1_2"]
trips = [numpy_helper.from_array(np.array(n, np.int64), name) for n, name in ((OUTER, "outer"), (INNER, "inner"))]
graph = helper.make_graph([outer], "g", [], [value(n, TensorProto.FLOAT, [OUTER, INNER, COUNT]) for n in names], trips)
folder = sys.argv[1]
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), f"{folder}/m.onnx")
subprocess.run(["tc-compile", f"{folder}/m.onnx", "-o", f"{folder}/m.bin", "--cpu", "x86-64-v3"], check=True)
runs = []
for count in (1, 2):
    subprocess.run(["tc-run", f"{folder}/m.bin", "--runs", str(count), "--outputs", f"{folder}/o.npz"], check=True)
    runs.append(dict(np.load(f"{folder}/o.npz")))
for name in names:
    assert runs[0][name].shape == (OUTER, INNER, COUNT), runs[0][name].shape
    assert len(np.unique(runs[0][name])) == OUTER * INNER * COUNT, (name, runs[0][name])
assert not np.isin(runs[0]["free_1_2"], runs[1]["free_1_2"]).any()
assert np.array_equal(runs[0]["seeded_1_2"], runs[1]["seeded_1_2"])
