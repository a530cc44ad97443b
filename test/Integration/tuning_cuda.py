#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--mode max-autotune with --target cuda. With a GPU: every schedule that is measured computes what the CPU does. Without one, by
--fake, a driver without a GPU: all are compiled, and a database is obeyed where there is no GPU. Times are not looked at.

usage: tuning_cuda.py BIN [--fake FOLDER]
"""
import json
import os
import re
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from checks import check, main_of_cuda, run

rng = np.random.default_rng(0)
FAKE = None
ELSEWHERE = "rows", "exact", "softmax", "turn"  # all have a GPU's record or two


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def half(*shape):
    return normal(*shape, dtype=np.float16)


def models():
    """Name, nodes, inputs, constants, type of the output, more options: what each strategy of GPUs takes."""
    f, h = TensorProto.FLOAT, TensorProto.FLOAT16
    yield "gemm", [("MatMul", ["x", "w"], "t", {}), ("Relu", ["t"], "y", {})], {"x": half(512, 512)}, {"w": half(512, 768) / 16}, h, ()
    yield "rows", [("MatMul", ["x", "w"], "y", {})], {"x": half(24, 1024)}, {"w": half(1024, 512) / 32}, h, ()
    yield "exact", [("MatMul", ["x", "w"], "y", {})], {"x": normal(200, 256)}, {"w": normal(256, 192)}, f, ()
    yield "tf32", [("MatMul", ["x", "w"], "y", {})], {"x": normal(600, 512), "w": normal(512, 512)}, {}, f, ("--precision", "tf32")
    yield "conv", [("Conv", ["x", "w"], "y", {"pads": [1, 1, 1, 1]})], {"x": half(4, 32, 28, 28)}, {"w": half(64, 32, 3, 3) / 16}, h, ()
    yield "stem", [("Conv", ["x", "w"], "y", {"pads": [3, 3, 3, 3], "strides": [2, 2]})], {"x": half(4, 3, 64, 64)}, {"w": half(32, 3, 7, 7) / 8}, h, ()
    # Its image has pixels of whole 16 bytes only by a launch, without which a candidate packs no filter.
    yield "image", [("Conv", ["x", "w"], "y", {"pads": [3, 3, 3, 3], "strides": [2, 2]})], {"x": normal(16, 3, 64, 64)}, {"w": normal(64, 3, 7, 7) / 8}, f, ()
    attention = [("Transpose", ["k"], "kt", {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "kt"], "s", {}), ("Mul", ["s", "c"], "m", {}),
                 ("Softmax", ["m"], "p", {}), ("MatMul", ["p", "v"], "y", {})]
    yield "attention", attention, {n: half(2, 4, 300, 64) for n in "qkv"}, {"c": np.array(0.125, np.float16)}, h, ()
    yield "softmax", [("Softmax", ["x"], "y", {})], {"x": normal(300, 1000)}, {}, f, ()
    yield "columns", [("ReduceSum", ["x", "a"], "y", {"keepdims": 0})], {"x": normal(5000, 96)}, {"a": np.array([0])}, f, ()
    yield "all", [("ReduceMax", ["x", "a"], "y", {"keepdims": 0})], {"x": normal(40, 20000)}, {"a": np.array([1])}, f, ()
    yield "turn", [("Transpose", ["x"], "y", {"perm": [1, 0]})], {"x": normal(500, 700)}, {}, f, ()
    yield "wide", [("Exp", ["x"], "e", {}), ("Mul", ["e", "x"], "y", {})], {"x": normal(2048, 8192)}, {}, f, ()
    yield "scan", [("CumSum", ["x", "a"], "y", {})], {"x": normal(300, 40)}, {"a": np.array(1)}, f, ()


def save(path, nodes, inputs, constants, output):
    made = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    graph = helper.make_graph([helper.make_node(op, ins, [out], **attributes) for op, ins, out, attributes in nodes], "g", made,
                              [helper.make_tensor_value_info("y", output, None)],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def tool(bin_dir, name, *arguments, fake=False):
    return run(*(["env", f"LD_LIBRARY_PATH={FAKE}"] if fake else []), f"{bin_dir}/{name}", *arguments)


def outputs(bin_dir, folder, artifact, inputs):
    np.savez(f"{folder}/in.npz", **inputs)
    done = tool(bin_dir, "tc-run", artifact, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz")
    check(f"{artifact} runs", done.returncode == 0, done.stderr)
    with np.load(f"{folder}/out.npz") as f:
        return f["y"].astype(np.float64)


def check_elsewhere(bin_dir, path, database, cuda):
    """The same by a file of candidates, that is made without a GPU and measured without a compiler."""
    done = tool(bin_dir, "tc-compile", f"{path}.onnx", "--tuning-candidates", f"{path}.tune", *cuda)
    check(f"{path}: candidates", done.returncode == 0 and os.path.exists(f"{path}.tune"), done.stderr)
    done = tool(bin_dir, "tc-run", f"{path}.tune", "--tune", f"{path}-there.json", fake=FAKE)
    check(f"{path}: measured there", done.returncode == 0 and "not tuned" not in done.stdout, done.stdout + done.stderr)
    with open(f"{path}-there.json") as f:
        there = json.load(f)
    known = [[(r["kernel"], r["machine"], r["variant"], r["what"], r["default"], r["generators"]) for r in d["records"]] for d in (there, database)]
    check(f"{path}: the same kernels on the same GPU", known[0] == known[1] and there["machines"] == database["machines"], known)
    # Where no GPU is measured, no time differs.
    check(f"{path}: the same choice", not FAKE or there == database, there)
    done = tool(bin_dir, "tc-compile", f"{path}.onnx", "-o", f"{path}.bin", "--tuning-db", f"{path}-there.json", "--explain", *cuda)
    check(f"{path}: taken", done.returncode == 0 and "recorded: " in done.stdout, done.stdout + done.stderr)


def main(bin_dir, fake):
    global FAKE
    FAKE = fake
    strategies, count = set(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name, nodes, inputs, constants, output, more in models():
            model, db, forced = f"{folder}/{name}.onnx", f"{folder}/{name}.json", f"{folder}/forced.json"
            save(model, nodes, inputs, constants, output)
            cuda = "--target", "cuda", "--gpu", "sm_90a", "--jobs", "1", *more
            done = tool(bin_dir, "tc-compile", model, "-o", f"{folder}/tuned.bin", "--mode", "max-autotune", "--tuning-db", db, "--logs", "tuning", *cuda,
                        fake=FAKE)
            check(f"{name} is tuned", done.returncode == 0 and "numbers differ" not in done.stderr, done.stderr)
            schedules = re.findall(r"^tuning: measured .* us: (#kernel\.gpu\.\w+<.*>)$", done.stderr, re.M)
            refused = re.findall(r"^tuning: not measured .*", done.stderr, re.M)
            check(f"{name} has schedules to choose from", schedules and all("registers" in line for line in refused), done.stderr)
            with open(db) as f:
                database = json.load(f)
            check(f"{name}: a GPU's records", all(m["device"] == "cuda" for m in database["machines"].values()) and database["records"], database)
            if name in ELSEWHERE:
                check_elsewhere(bin_dir, f"{folder}/{name}", database, cuda)
            if not FAKE:
                tool(bin_dir, "tc-compile", model, "-o", f"{folder}/cpu.bin", *[o for o in more if o not in ("--precision", "tf32")])
                expected = outputs(bin_dir, folder, f"{folder}/cpu.bin", inputs)
            # Without a GPU all are compiled above, and one is enough to see that a record is obeyed.
            for schedule in schedules[:1] if FAKE else schedules:
                with open(forced, "w") as f:
                    json.dump(dict(database, records=[dict(r, schedule=schedule) for r in database["records"]]), f)
                done = tool(bin_dir, "tc-compile", model, "-o", f"{folder}/forced.bin", "--tuning-db", forced, "--logs", "tuning", *cuda)
                check(f"{name}: a record is obeyed", done.returncode == 0 and ": recorded: " in done.stderr and " instead of " in done.stderr,
                      f"{schedule}: {done.stderr}")
                count += 1
                if FAKE:
                    continue
                actual, largest = outputs(bin_dir, folder, f"{folder}/forced.bin", inputs), np.abs(expected).max()
                tolerance = 5e-3 if output == TensorProto.FLOAT16 or "tf32" in more else 5e-5
                check(f"{name}: numbers", np.abs(actual - expected).max() <= tolerance * largest, f"{schedule}: {np.abs(actual - expected).max() / largest}")
            strategies |= set(re.findall(r"#kernel\.gpu\.(\w+)<", done.stderr + " ".join(schedules)))
        check("all strategies offer something", strategies >= {"attention", "mma", "column_reduce", "rows", "flat", "transpose", "scan"}, strategies)
    print(f"{count} schedules obeyed")


if __name__ == "__main__":
    main_of_cuda("tuning_cuda", main)
