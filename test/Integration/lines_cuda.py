#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, positions of the largest and scattered slices with --target cuda, of all forms of gpu.scan, gpu.rows and gpu.scatter. With a GPU: numbers against NumPy's. Without
one, by --fake, a driver without a GPU: some of each form are compiled for two chips.

usage: lines_cuda.py BIN [--fake FOLDER]
"""
import concurrent.futures
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from checks import check, main_of_cuda, run

FAKE = None
JOBS = min(8, os.cpu_count() or 1)
SHAPES = [((5, n), 1) for n in (0, 1, 2, 31, 33, 64, 100, 1000, 1024, 4100, 50001)] + [((n, 40), 0) for n in (1, 63, 64, 100, 5000)] + [
    ((3, 100, 7), 1), ((300, 64), 1), ((2, 3, 256), 2), ((1, 100000), 1), ((5000, 10), 1), ((70, 300, 33), 1)]
"""Operator, attributes, shape, axis, type, whether sizes are known when compiling."""
CASES = [
    *(("CumSum", {}, shape, axis, "float32", True) for shape, axis in SHAPES),
    *(("CumSum", {"exclusive": i % 2, "reverse": i // 2}, shape, axis, "int64", i % 2 == 0) for i in range(4) for shape, axis in SHAPES[3:16:2]),
    *(("CumSum", {"exclusive": 1}, (4, 1000), 1, name, True) for name in ("float16", "float64", "int32", "uint32")),
    *(("ArgMax", {"select_last_index": i % 2}, shape, axis, "float32", i % 2 == 0) for i, (shape, axis) in enumerate(SHAPES) if shape[axis]),
    *(("ArgMin", {"select_last_index": i % 2, "keepdims": i // 2}, (6, n), 1, "float32", i > 1) for i in range(4) for n in (40, 1001, 4096, 40004)),
    *(("ArgMax", {"select_last_index": i}, (3, 1000), 1, name, True) for i in range(2) for name in ("float16", "float64", "int8", "uint8", "int32", "int64")),
    # The axis is the number of updates, of slices that as many indices name as `dims` says.
    *(("ScatterND", {"reduction": ["add", "max", "none", "mul"][i % 4], "dims": 1 + i % 2}, shape, n, name, i % 3 > 0)
      for i, (shape, n) in enumerate((shape, n) for shape in ((7, 5, 3), (1000, 128), (3000, 1), (40, 50), (2, 3, 700)) for n in (0, 1, 32, 33, 300, 5000))
      for name in (("float32", "int64") if i % 5 == 0 else ("float32",))),
    ("ScatterND", {"reduction": "add", "dims": 1}, (5000, 40), 20000, "float16", True), ("ScatterND", {"reduction": "min", "dims": 1}, (3, 4), 5000, "float64", True),
    # Vectors, and few elements of many updates each.
    *(("ScatterElements", {"reduction": kind, "dims": 1}, (n,), count, "float32", count != 300)
      for kind in ("add", "none", "max") for n, count in ((3000, 300), (3000, 20000), (7, 100000), (1, 5000), (0, 0))),
    ("ScatterND", {"reduction": "add", "dims": 1}, (9, 30), 40000, "int32", True),
    # The last of many updates wins: of slices, and of elements of lines.
    *(("ScatterND", {"reduction": "none", "dims": dims}, shape, 6000, name, name != "float16")
      for dims, shape, name in ((1, (900, 30), "float32"), (2, (30, 40, 3), "int64"), (1, (4000,), "float16"), (1, (5, 0), "float32"))),
    *(("ScatterElements", {"reduction": kind, "dims": 1}, shape, count, name, name != "float16")
      for kind, shape, count, name in (("none", (300, 64), 200, "float32"), ("none", (50, 3, 70), 90, "int32"), ("none", (1000, 33), 300, "float16"),
                                       ("add", (300, 64), 200, "float32"), ("none", (300, 64), 20, "float32"))),
] # fmt: skip


def scatter(x, indices, updates, reduction):
    """In order: of several updates of an element the last one wins."""
    combine = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}.get(reduction)
    result = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    if indices.ndim == x.ndim > 1 and indices.shape == updates.shape: # elements, along dim 0
        for index, update in zip(indices, updates):
            at = (index, *np.indices(index.shape))
            result[at] = update if combine is None else combine(result[at], update)
        return result
    for index, update in zip(indices.reshape(len(updates), -1 if len(updates) else 1), updates):
        result[tuple(index)] = update if combine is None else combine(result[tuple(index)], update)
    return result


def values(op, shape, name, way):
    """`way`: 0: any; 1: many ties; 2: what floats have beside numbers."""
    rng = np.random.default_rng([*shape, way])
    dtype = np.dtype(name)
    if op == "CumSum" and name == "float16": # whose sums stay in range
        return rng.integers(-2, 3, shape).astype(dtype)
    x = rng.integers(0, 3 if way == 1 else 100, shape).astype(dtype) if dtype.kind != "f" or way == 1 else rng.standard_normal(shape).astype(dtype)
    if way == 2 and dtype.kind == "f" and x.size > 4:
        x.flat[rng.integers(0, x.size, 3)] = [np.inf, -np.inf, np.nan]
    return x


def expected(op, x, axis, attributes):
    if op == "CumSum":
        wide = np.flip(x, axis) if attributes.get("reverse") else x
        wide = wide.astype(np.float64 if x.dtype.kind == "f" else np.int64)
        sums = np.cumsum(wide, axis)
        if attributes.get("exclusive") and x.shape[axis]:
            sums = np.roll(sums, 1, axis)
            np.moveaxis(sums, axis, 0)[0] = 0
        return np.flip(sums, axis) if attributes.get("reverse") else sums
    pick = np.argmax if op == "ArgMax" else np.argmin # which take a NaN as the best, as tc does
    found = x.shape[axis] - 1 - pick(np.flip(x, axis), axis) if attributes.get("select_last_index") else pick(x, axis)
    return np.expand_dims(found, axis) if attributes.get("keepdims", 1) else found


def try_case(bin_dir, folder, number):
    op, attributes, shape, axis, name, is_known = CASES[number]
    what = f"{op} {attributes} of {shape} along {axis}, {name}{'' if is_known else ', open sizes'}"
    of = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    names = ["x", "axis"] if op == "CumSum" else ["x"]
    node = helper.make_node(op, names, ["y"], **attributes, **({} if op == "CumSum" else {"axis": axis})) # of a scatter: below
    sizes = shape if is_known else [f"d{i}" for i in range(len(shape))]
    more = []
    if op.startswith("Scatter"):
        dims = attributes["dims"]
        node = helper.make_node(op, ["x", "i", "u"], ["y"], reduction=attributes["reduction"])
        tuples = [dims] if op == "ScatterND" else list(shape[1:])
        more = [helper.make_tensor_value_info("i", TensorProto.INT64, [axis if is_known else "n", *(tuples if op == "ScatterND" else sizes[1:])]),
                helper.make_tensor_value_info("u", of, [axis if is_known else "n", *sizes[dims:]])]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", of, sizes), *more],
                              [helper.make_tensor_value_info("y", TensorProto.INT64 if op.startswith("Arg") else of, None)],
                              [numpy_helper.from_array(np.array(axis), "axis")] if op == "CumSum" else [])
    path = f"{folder}/{number}"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path + ".onnx")
    chips = ("--gpu", "sm_80", "--gpu", "sm_90a") if FAKE else ()
    done = run(f"{bin_dir}/tc-compile", path + ".onnx", "-o", path + ".bin", "--target", "cuda", "--jobs", "1", *chips)
    if done.returncode:
        return [(f"{what} compiles", done.stderr)]
    failed = []
    for way in () if FAKE else range(3):
        x, given = values(op, shape, name, way), {}
        if op.startswith("Scatter"):
            rng = np.random.default_rng([axis, way])
            named = shape[:dims]
            each = (axis, *(() if op == "ScatterND" else shape[1:]))
            given = {"i": np.stack([rng.integers(-size if way else 0, max(size, 1) if way < 2 else 1, each) for size in named], 1).reshape(axis, *tuples),
                     "u": values(op, (axis, *shape[dims:]), name, way)}
            if attributes["reduction"] == "mul": # whose products stay in range
                given["u"] = (1 + np.nan_to_num(given["u"], posinf=0, neginf=0).astype(np.float64) % 2 / 1e4 if x.dtype.kind == "f" else 1 - 2 * (given["u"] % 2)).astype(x.dtype)
        np.savez(path + ".in.npz", x=x, **given)
        done = run(f"{bin_dir}/tc-run", path + ".bin", "--inputs", path + ".in.npz", "--outputs", path + ".out.npz")
        if done.returncode:
            failed.append((f"{what} runs", done.stderr))
            continue
        with np.errstate(all="ignore"), np.load(path + ".out.npz") as f:
            actual, wanted = f["y"], scatter(x, *given.values(), attributes["reduction"]) if given else expected(op, x, axis, attributes)
            if op.startswith("Arg") or x.dtype.kind != "f":
                is_right = np.array_equal(actual, wanted.astype(actual.dtype))
            else:
                most = np.nanmax(np.abs(np.where(np.isfinite(wanted), wanted, 0)), initial=1)
                is_right = np.array_equal(np.isnan(actual), np.isnan(wanted)) and np.array_equal(actual[np.isinf(wanted)], wanted[np.isinf(wanted)])
                same = np.isfinite(wanted)
                is_right = is_right and np.allclose(actual[same], wanted[same], rtol=0, atol=most * (1e-3 if name == "float16" else 2e-5 if name == "float32" else 1e-12))
        if not is_right:
            failed.append((f"{what}, way {way}", f"{actual} instead of {wanted}"[:300]))
    return failed


def main(bin_dir, fake):
    global FAKE
    FAKE = fake
    numbers = range(0, len(CASES), 8) if FAKE else range(len(CASES))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for failed in pool.map(lambda number: try_case(bin_dir, folder, number), numbers):
            for what, detail in failed:
                check(what, False, detail)
    print(f"{len(numbers)} cases")


if __name__ == "__main__":
    main_of_cuda("lines_cuda", main)
