#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs examples/custom-op, and checks what is said about signatures and libraries that do not fit.

usage: custom_op.py BIN LIBRARY
"""

import copy
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from checks import check, run, verdict
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "examples", "custom-op")
sys.path.insert(0, EXAMPLE)
from make_model import make_model  # noqa: E402


def main(folder, bin_folder, library):
    compiler, runner = os.path.join(bin_folder, "tc-compile"), os.path.join(bin_folder, "tc-run")
    path = lambda name: os.path.join(folder, name)
    signatures = os.path.join(EXAMPLE, "operators.json")
    onnx.save(make_model(), path("m.onnx"))
    done = run(compiler, path("m.onnx"), "-o", path("m.bin"), "--custom-op", signatures, "--cpu", "x86-64-v3")
    check("compile", done.returncode == 0, done.stderr)

    for rows in (4, 1, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        np.save(path("x.npy"), x)
        done = run(runner, path("m.bin"), "--input", "x=" + path("x.npy"), "--output-dir", path("out"), "--custom-op", library)
        check(f"run {rows}", done.returncode == 0, done.stderr)
        if done.returncode:
            continue
        outputs = []
        for i in range(3):
            with open(os.path.join(path("out"), f"output_{i}.pb"), "rb") as file:
                outputs.append(numpy_helper.to_array(TensorProto.FromString(file.read())))
        squares = (x * x).astype(np.float64)
        y = (1 - 2 * squares + 0.5 * squares * squares).astype(np.float32)
        check(f"y {rows}", outputs[0].shape == y.shape and np.allclose(outputs[0], y, rtol=1e-6, atol=1e-6), outputs[0])
        check(f"z {rows}", np.array_equal(outputs[1], -outputs[0][outputs[0] > 1]), outputs[1])
        labels = [s.decode() if isinstance(s, bytes) else s for s in outputs[2].tolist()]
        check(f"labels {rows}", labels == [f"item {i:03d}" for i in range(rows)], labels)

    done = run(runner, path("m.bin"), "--random-inputs", "--dim", "rows=2")
    check("no library", done.returncode == 5 and "example_" in done.stderr, done.stderr)
    done = run(runner, path("m.bin"), "--random-inputs", "--custom-op", path("none.so"))
    check("missing library", done.returncode == 1 and "none.so" in done.stderr, done.stderr)
    done = run(os.path.join(bin_folder, "tc-inspect"), path("m.bin"))
    check("inspect", "example_polynomial" in done.stdout and "of custom" in done.stdout, done.stdout)

    # An empty list of coefficients: the function refuses it, and the node is named.
    model = make_model()
    model.graph.node[1].attribute[0].floats[:] = []
    onnx.save(model, path("empty.onnx"))
    done = run(compiler, path("empty.onnx"), "-o", path("empty.bin"), "--custom-op", signatures, "--cpu", "x86-64-v3")
    check("compile empty", done.returncode == 0, done.stderr)
    done = run(runner, path("empty.bin"), "--random-inputs", "--dim", "rows=2", "--custom-op", library)
    check("refusal", done.returncode == 4 and "needs a coefficient" in done.stderr and "Polynomial#1" in done.stderr, done.stderr)

    # Sizes from expressions, in every form.
    def sized(dims, rank=2):
        operator = {"domain": "com.example", "name": "Size", "function": "f", "operands": [{"name": "x", "rank": rank}], "results": [{"dtype": "f32", "dims": dims}]}
        with open(path("s.json"), "w", encoding="utf-8") as file:
            json.dump({"operators": [operator]}, file)
        graph = helper.make_graph(
            [helper.make_node("Size", ["x"], ["y"], domain="com.example")],
            "size",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("com.example", 1)], ir_version=10), path("s.onnx"))
        return run(compiler, path("s.onnx"), "--compile-to=prim", "-o", path("s.mlir"), "--custom-op", path("s.json"), "--dim", "rows=10")

    for dims, expected in (
        (["x.0", 7], "10x7"),
        (["x.0 * 2 + x.1"], "23"),
        (["x.0 + 2 * (x.1 - 1) / 3"], "11"),
        (["20 - x.0 - x.1"], "7"),
        (["(x.0)/(2*2)"], "2"),
        ([], ""),
    ):
        done = sized(dims)
        check(f"sizes {dims}", done.returncode == 0, done.stderr)
        if done.returncode == 0:
            with open(path("s.mlir"), encoding="utf-8") as file:
                text = file.read()
            check(f"sizes {dims}", f"tensor<{expected + 'x' if expected else ''}f32>" in text, text)
    for dims in (["x.2"], ["x"], ["y.0"], ["1 +"], ["(1"], ["1)"], ["1 2"], [-1], [1.5], "y", ["x.0 /"], [""]):
        done = sized(dims)
        check(f"bad sizes {dims}", done.returncode == 1 and "s.json: error: operator 0 (\"Size\")" in done.stderr, done.stderr)
    for dims in (["x.0 - 11"], ["x.0 / (x.1 - 3)"]):
        done = sized(dims)
        check(f"sizes at the node {dims}", done.returncode == 1 and "com.example.Size" in done.stderr, done.stderr)

    # Nodes and signatures that do not fit.
    with open(signatures, encoding="utf-8") as file:
        good = json.load(file)

    def altered(change):
        changed = copy.deepcopy(good)
        change(changed["operators"])
        with open(path("c.json"), "w", encoding="utf-8") as file:
            json.dump(changed, file)
        done = run(compiler, path("m.onnx"), "-o", path("c.bin"), "--custom-op", path("c.json"))
        check("no partial file", not os.path.exists(path("c.bin")))
        return done

    for what, change, part in (
        ("operand's rank", lambda ops: ops[0]["operands"][0].update(rank=3), "operand x is"),
        ("operand's dtype", lambda ops: ops[0]["operands"][0].update(dtype="f64"), "operand x is"),
        ("number of operands", lambda ops: ops[0]["operands"].append({"name": "w"}), "has 1 operands"),
        ("unknown attribute", lambda ops: ops[1].update(attributes=[]), "attribute limit"),
        ("attribute's type", lambda ops: ops[1]["attributes"][0].update(type="int"), "attribute limit"),
        ("missing attribute", lambda ops: ops[2]["attributes"].append({"name": "more", "type": "ints"}), "attribute more"),
        ("bad default", lambda ops: ops[2]["attributes"][1].update(default="x"), "\"default\""),
        ("bad dtype", lambda ops: ops[0]["operands"][0].update(dtype="float"), "\"dtype\""),
        ("bad key", lambda ops: ops[0].update(shape=[]), "\"shape\""),
        ("own function", lambda ops: ops[0].update(function="box"), "libtcrt has a function \"box\""),
        ("twice", lambda ops: ops.append(ops[0]), "two signatures"),
        ("no function", lambda ops: ops[0].pop("function"), "\"function\""),
    ):
        done = altered(change)
        check(what, done.returncode == 1 and part in done.stderr, done.stderr)
    done = altered(lambda ops: ops[0].update(since_version=2))
    check("later version", done.returncode == 2 and "Polynomial" in done.stderr, done.stderr)
    for name, data in (("x.json", b"{"), ("y.json", b"[]"), ("lib.so", b"\x7fELF")):
        with open(path(name), "wb") as file:
            file.write(data)
        done = run(compiler, path("m.onnx"), "-o", path("c.bin"), "--custom-op", path(name))
        check(name, done.returncode == 1 and name in done.stderr, done.stderr)
    return verdict("custom operators")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        sys.exit(main(work, sys.argv[1], sys.argv[2]))
