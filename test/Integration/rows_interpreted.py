#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of GPU kernels of rows (gpu.rows) without a GPU: their PTX is interpreted (ptx.py), and compared with onnx's reference in float64. Rows of few threads that
share a block, of a warp, of several warps; known sizes that are 1, odd, whole blocks and not; NaN, infinity; types of all widths.

usage: rows_interpreted.py BIN
"""
import os
import re
import tempfile

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

import ptx
from checks import check, main_of_cuda, run

SOFTMAX, NORM = [("Softmax", "x", "y", {"axis": -1})], [("LpNormalization", "x", "y", {"axis": -1, "p": 2})]
ENTROPY = [("Softmax", "x", "p", {"axis": -1}), ("Log", "p", "l", {}), ("Mul", "p l", "t", {}), ("ReduceSum", "t axes", "y", {"keepdims": 0})]
SUM, LARGEST = [("ReduceSum", "x axes", "y", {"keepdims": 0})], [("ReduceMax", "x axes", "y", {"keepdims": 0})]
BEST = [("ArgMax", "x", "y", {"axis": -1, "keepdims": 0})]
"""Nodes, shape, type, whether NaN and infinity are among the numbers."""
CASES = [
    *((SOFTMAX, shape, "float32", False) for shape in ((5, 2), (5, 3), (37, 50), (700, 8), (33, 130), (3, 200), (9, 1000))),
    *((NORM, shape, "float32", False) for shape in ((270, 48), (135, 260), (2, 33, 20))),
    *((nodes, (41, 30), name, False) for nodes in (SUM, LARGEST) for name in ("float16", "float32", "float64", "int32", "int64")),
    *((BEST, shape, "float32", False) for shape in ((9, 17), (150, 64))),
    (ENTROPY, (70, 48), "float32", False),
    *((nodes, (40, 12), "float32", True) for nodes in (SOFTMAX, SUM, LARGEST)),
] # fmt: skip
TOLERANCES = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}
RESULTS = {"ArgMax": "int64"}


def model_of(nodes, shape, name):
    kind = helper.np_dtype_to_tensor_dtype
    result = helper.make_tensor_value_info("y", kind(np.dtype(RESULTS.get(nodes[-1][0], name))), None)
    graph = helper.make_graph([helper.make_node(operator, inputs.split(), [output], **attributes) for operator, inputs, output, attributes in nodes], "rows",
                              [helper.make_tensor_value_info("x", kind(np.dtype(name)), shape)], [result],
                              [helper.make_tensor("axes", onnx.TensorProto.INT64, [1], [-1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def numbers(shape, name, special):
    rng = np.random.default_rng(7)
    x = rng.integers(-9, 9, shape) if name.startswith("int") else rng.standard_normal(shape) * 3
    if special:
        x[rng.random(shape) < 0.02] = np.nan
        x[rng.random(shape) < 0.02] = np.inf
    return x.astype(name)


def interpret(tools, path, x, result):
    """What the only kernel of the model's artifact writes of x; and the schedule."""
    words = [f"{tools}/tc-compile", path, "--target", "cuda", "--gpu", "sm_80", "--logs", "schedule"]
    host, artifact = run(*words, "--compile-to=host", "-o", f"{path}.mlir"), run(*words, "-o", f"{path}.bin")
    if host.returncode or artifact.returncode:
        raise AssertionError(host.stderr + artifact.stderr)
    with open(f"{path}.mlir") as file:
        text = file.read()
    launches = re.findall(r"host\.launch @(\w+)\(.*? tasks (\S+) .*?block = array<i64: (\d+), 1, 1>", text)
    if len(launches) != 1:
        raise AssertionError(f"{len(launches)} launches")
    kernel, tasks, threads = launches[0]
    blocks = int(re.search(rf"^{tasks} = affine_map<\(\) -> \((\d+)\)>", text, re.M)[1])
    with open(f"{path}.bin", "rb") as file:
        data = file.read()
    begin = data.index(b".version")
    memory = [bytearray(x.tobytes()), bytearray(b"\xcc" * result.nbytes)]
    ptx.Kernel(data[begin:data.index(b"\0", begin)].decode(), kernel).run([1 << 32, 2 << 32], memory, blocks, int(threads))
    return np.frombuffer(bytes(memory[1]), result.dtype).reshape(result.shape), re.search(r"#kernel\.\S+<.*>", artifact.stderr)[0]


def compare(tools, folder, nodes, shape, name, special):
    what = f"{nodes[-1][0]} of {name}{shape}{' with NaN' if special else ''}"
    path, x = os.path.join(folder, "model.onnx"), numbers(shape, name, special)
    onnx.save(model_of(nodes, shape, name), path)
    wide = name if name.startswith("int") else "float64"
    with np.errstate(invalid="ignore"):
        want = ReferenceEvaluator(model_of(nodes, shape, wide)).run(None, {"x": x.astype(wide)})[0]
    try:
        got, schedule = interpret(tools, path, x, want.astype(RESULTS.get(nodes[-1][0], name)))
    except AssertionError as error:
        return check(what, False, error)
    check(what, schedule.startswith("#kernel.gpu.rows"), schedule)
    finite = np.abs(want[np.isfinite(want)]).max(initial=0)
    same = np.allclose(got.astype(wide), want, rtol=0, atol=TOLERANCES.get(name, 0) * finite, equal_nan=True)
    check(what, same, f"{schedule}: {got.ravel()[:8]}, expected {want.ravel()[:8]}")


def main(tools, _fake):
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            compare(tools, folder, *case)


main_of_cuda("rows-interpreted", main)
