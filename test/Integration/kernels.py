#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products, convolutions and rows of odd sizes, compiled and run, against float64.

usage: kernels.py BIN [CASE ...]

Each case is a small ONNX model, compiled once and run with both CPU variants (those that this machine has) and with one and
two threads, some with four; several sizes run on one artifact where dims are dynamic. Prints a line per failure and a count.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import helper, numpy_helper

from kernel_models import CASES, case, info, random
from kernel_products import build_cases
from kernel_rows import given_filter_cases, lane_cases, line_cases, sample_cases, short_row_cases, window_cases, window_last_cases


def variants():
    with open("/proc/cpuinfo") as f:
        flags = next((line.split() for line in f if line.startswith("flags")), [])
    return ["x86-64-v3"] + (["x86-64-v4"] if "avx512vl" in flags else [])


def run_case(bin_dir, name, folder):
    nodes, inputs, outputs, reference, shapes, constants, tolerance, all_threads, element = CASES[name]
    def cast(v):
        return v.astype(element) if v.dtype == np.float32 else v
    graph = helper.make_graph(nodes, name, [info(n, d, element) for n, d in inputs.items()], [info(n, d, element) for n, d in outputs.items()],
                              [numpy_helper.from_array(cast(v), n) for n, v in constants.items()])
    model, artifact = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.bin")
    with open(model, "wb") as f:
        f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    made = subprocess.run([f"{bin_dir}/tc-compile", model, "-o", artifact], capture_output=True, text=True)
    if made.returncode:
        return [f"{name}: tc-compile exit {made.returncode}: {made.stderr.strip()}"]
    failures = []
    limits = ["--rtol", str(tolerance[0]), "--atol", str(tolerance[1])] if isinstance(tolerance, tuple) else ["--max-rel", str(tolerance)]
    for seed, shape in enumerate(shapes):
        values = {n: cast(s if isinstance(s, np.ndarray) else random(s, [seed, i])) for i, (n, s) in enumerate(shape.items())}
        shape = {n: v.shape for n, v in values.items()}
        np.savez(f"{folder}/in.npz", **values)
        with np.errstate(all="ignore"):
            expected = reference({n: v.astype(np.float64) for n, v in values.items()})
            np.savez(f"{folder}/out.npz", **{n: v.astype(element) for n, v in zip(outputs, expected)})
        for variant in variants():
            for threads in all_threads:
                ran = subprocess.run([f"{bin_dir}/tc-run", artifact, "--inputs", f"{folder}/in.npz", "--expect", f"{folder}/out.npz",
                                      *limits, "--variant", variant, "--threads", str(threads)],
                                     capture_output=True, text=True)
                if ran.returncode:
                    failures.append(f"{name} {shape} {variant} {threads} threads: exit {ran.returncode}: {(ran.stdout + ran.stderr).strip()}")
    return failures


def double_cases():
    """Products and functions of f64."""
    for name, (nodes, inputs, outputs, reference, shapes, constants, _, threads, _) in list(CASES.items()):
        if name.startswith(("matmul_", "linear_", "matvec_")):
            case(f"f64_{name}", nodes, inputs, outputs, reference, shapes, constants, 1e-14, threads, np.float64)
    nothing = [np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, -1e-310, 1e-300, 1.0, -1.0, 22.0, 1e300]
    many = np.concatenate([random((700,), 5).astype(np.float64) * s for s in (1e-12, 1e-3, 1, 10, 300, 3e5, 1e9)] + [nothing, np.arange(-400, 400) * (np.pi / 2)])
    for op, function in (("Tanh", np.tanh), ("Log", np.log), ("Sin", np.sin), ("Cos", np.cos), ("Tan", np.tan), ("Elu", lambda v: np.where(v > 0, v, np.expm1(v)))):
        case(f"f64_{op.lower()}", [helper.make_node(op, ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]}, lambda v, function=function: [function(v["x"])],
             [{"x": many}, {"x": many[4900:4907]}], tolerance=(1e-15, 2.3e-308), element=np.float64)
    far = np.array([709.782712893384, 709.79, -708.3964185322641, -745.1332191019411, -745.2, 1e4, -1e4, 1e-300, np.inf, -np.inf, np.nan, -0.0, 0.5, 2, -3])
    values = np.concatenate([np.linspace(-745, 709.7, 5001), random((3000,), 4).astype(np.float64) * 9, far])
    case("f64_exp", [helper.make_node("Exp", ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]}, lambda v: [np.exp(v["x"])],
         [{"x": values}, {"x": values[-7:]}], tolerance=(5e-16, 2.3e-308), element=np.float64)


def main():
    build_cases()
    double_cases()
    sample_cases()
    window_cases()
    window_last_cases()
    short_row_cases()
    line_cases()
    lane_cases()
    given_filter_cases()
    bin_dir, names = sys.argv[1], sys.argv[2:] or list(CASES)
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            failures = run_case(bin_dir, name, folder)
        failed += bool(failures)
        for line in failures:
            print(line, flush=True)
    print(f"{len(names) - failed} of {len(names)} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
