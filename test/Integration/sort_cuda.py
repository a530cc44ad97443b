#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts and top-k with --target cuda, of all types and all forms of gpu.sort. With a GPU: numbers against NumPy's. Without one, by
--fake, a driver without a GPU: some of each form are compiled for two chips.

usage: sort_cuda.py BIN [--fake FOLDER]
"""
import concurrent.futures
import os
import re
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

from checks import check, main_of_cuda, run

FAKE = None
JOBS = min(8, os.cpu_count() or 1)
"""Length, elements asked for (0: all), lines, type, falling order, and whether the length is open: one of each form, of each type, and of
each length."""
CASES = [
    *((2048, 0, 4, t, d) for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
      for d in (False, True)),
    (1000, 0, 3, "bool", True), (1000, 0, 3, "bool", False), (1000, 7, 3, "bfloat16", True), (1000, 0, 3, "bfloat16", False),
    *((n, 0, lines, "float32", n % 2 == 0) for n in (0, 1, 2, 7, 8, 9, 31, 33, 257, 1000, 4097, 8192, 20000, 70001) for lines in (1, 5)),
    *((n, k, lines, "float32", n % 2 == 0) for n in (1000, 4097, 32000, 70001) for k in (1, 50, 700) for lines in (1, 300)),
    (8, 0, 10000, "float32", False), (100, 0, 999, "int64", True), (4096, 0, 1, "float64", False), (20000, 0, 2, "float64", True),
    (20000, 50, 3, "int64", True), (20000, 50, 3, "int8", False), (65536, 0, 2, "int16", False), (65536, 50, 2, "uint16", True),
    (70000, 0, 2, "float16", True), (70001, 50, 2, "float16", False), (32000, 5000, 2, "float32", True),
    (400000, 0, 1, "float32", True), (150001, 140000, 3, "int32", False), (2100000, 0, 1, "uint32", False), (300000, 0, 2, "int8", True),
    *((n, 0, lines, t, False, True) for n in (0, 1, 257, 2048, 70001) for lines, t in ((1, "float32"), (4, "int16"), (3, "int64"))),
]


def lines_of(n, lines, name, way):
    """`way`: 0: any; 1: many ties; 2: in order; 3: what floats have beside numbers, or the ends of integers. bfloat16: such values of
    float32."""
    rng = np.random.default_rng([n, lines, way])
    dtype = np.dtype("float32" if name == "bfloat16" else name)
    if name == "bool":
        return rng.integers(0, 2, (lines, n)).astype(bool)
    is_float = dtype.kind == "f"
    if way == 1:
        return rng.integers(0, 5, (lines, n)).astype(dtype)
    if way == 2:
        return np.tile((np.arange(n) % (120 if dtype.itemsize == 1 or name == "bfloat16" else 2000)).astype(dtype), (lines, 1))
    if is_float:
        x = rng.standard_normal((lines, n)).astype(dtype)
    else:
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (lines, n), dtype=dtype, endpoint=True)
    if name == "bfloat16":
        x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    if way == 3:
        ends = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0] if is_float else [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
        at = rng.random((lines, n)) < 0.5
        x[at] = np.array(ends, dtype)[rng.integers(0, len(ends), int(at.sum()))]
    return x


def order(x, falling):
    """The numbers in order: NaN above all numbers, equal ones by their numbers."""
    if x.dtype.kind in "iub":
        keys = x
        _, ranks = np.unique(keys, return_inverse=True)
    else:
        _, ranks = np.unique(x.astype(np.float64) + 0.0, return_inverse=True, equal_nan=True)
    ranks = ranks.reshape(x.shape).astype(np.int64)
    return np.argsort(-ranks if falling else ranks, axis=-1, kind="stable")


def save(path, n, k, lines, name, falling, is_open):
    """An open length has a name, and all elements are asked for."""
    element = TensorProto.FLOAT if name == "bfloat16" else helper.np_dtype_to_tensor_dtype(np.dtype(name))
    # What TopK does not take, or tc-run reads no files of, is made in the model.
    cast = {"bool": TensorProto.UINT8, "bfloat16": TensorProto.BFLOAT16}.get(name)
    nodes = [helper.make_node("Cast", ["x"], ["c"], to=cast)] if cast else []
    nodes.append(helper.make_node("TopK", ["c" if cast else "x", "k"], ["v", "i"], largest=int(falling)))
    if is_open:
        nodes.insert(0, helper.make_node("Shape", ["x"], ["k"], start=1, end=2))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", element, [lines, "n" if is_open else n])],
                              [helper.make_tensor_value_info("i", TensorProto.INT64, None)],
                              [] if is_open else [helper.make_tensor("k", TensorProto.INT64, [1], [k])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10), path)


def tool(bin_dir, name, *arguments):
    return run(*(["env", f"LD_LIBRARY_PATH={FAKE}"] if FAKE else []), f"{bin_dir}/{name}", *arguments)


def sort(bin_dir, case):
    """Compiles one, and with a GPU compares what it gives; the schedules."""
    n, asked, lines, name, falling, *is_open = case
    k = min(asked, n) or n
    what = f"{lines} x {n}{' (open)' if is_open else ''} {name}, {k} {'falling' if falling else 'rising'}"
    with tempfile.TemporaryDirectory() as folder:
        model, artifact = f"{folder}/m.onnx", f"{folder}/m.bin"
        save(model, n, k, lines, name, falling, bool(is_open))
        chips = ("--gpu", "sm_80,sm_90a") if FAKE else ()
        done = tool(bin_dir, "tc-compile", model, "-o", artifact, "--target", "cuda", *chips, "--jobs", "1", "--logs", "schedule")
        check(f"{what} compiles", done.returncode == 0 and ((n == 0 and not is_open) or "gpu.sort" in done.stderr), done.stderr)
        if done.returncode == 0 and not FAKE:
            # Lines of all ways at once, where there are several.
            for ways in (range(4),) if lines >= 4 else ([way] for way in range(4)):
                x = np.concatenate([lines_of(n, lines, name, way) for way in ways])[::len(ways)][:lines]
                np.savez(f"{folder}/in.npz", x=x)
                done = tool(bin_dir, "tc-run", artifact, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz")
                check(f"{what} runs", done.returncode == 0, done.stderr)
                if done.returncode == 0:
                    with np.load(f"{folder}/out.npz") as f:
                        got, expected = f["i"], order(x, falling)[:, :k]
                    check(f"{what}: numbers, ways {list(ways)}", got.shape == expected.shape and np.array_equal(got, expected),
                          f"{got.shape} for {expected.shape}" if got.shape != expected.shape else f"{int((got != expected).sum())} differ, the first at "
                          f"{np.argwhere(got != expected)[:1].tolist()}")
    return re.findall(r"#kernel\.gpu\.sort<([^>]*)>", done.stderr) if FAKE else []


def main(bin_dir, fake):
    global FAKE
    FAKE = fake
    cases = CASES[::3] if FAKE else CASES  # a compile for two chips takes seconds
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        found = " ".join(schedule for schedules in pool.map(lambda case: sort(bin_dir, case), cases) for schedule in schedules)
    check("all forms are there", not FAKE or all(form in found for form in ("items", "merges", "limit", "parts", "digits")), found)
    print(f"{len(cases)} sorts")


if __name__ == "__main__":
    main_of_cuda("sort_cuda", main)
