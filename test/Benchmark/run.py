#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regression benchmark: products, convolutions and memory-bound operators in percent of what the machine can do.

usage: run.py BIN [--threads N] [--seconds S] [--filter REGEX] [--update] [--markdown]

Makes one small ONNX model for each case, runs them all through BIN/tc-bench (one measurement of peak and bandwidths for all), and
prints the percentage of the roofline that each reaches: the least time that its operations (at the f32 peak) or its bytes (at
the bandwidth of the smallest level of memory that holds them) take, over its median time. Compares with expected.json, which holds
the percentages by processor, vector instructions and threads: a case fails where it reaches less than four fifths of them. Absolute times
are not compared, so that the machine's clock does not matter; run it on an idle machine. On a processor that expected.json lacks, run it with
--update before the change that is looked at, and without it behind.

--update writes what was measured; --markdown prints tables for docs/performance.md. Exit status 1: a case fell behind.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
TOLERATED = 0.8


def model(nodes, inputs, outputs, constants):
    rng = np.random.default_rng(0)
    data = [numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(np.float32), name) if isinstance(shape, tuple)
            else numpy_helper.from_array(shape, name) for name, shape in constants.items()]
    graph = helper.make_graph(nodes, "benchmark", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs], data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def one(op, inputs, constants=None, **attributes):
    """A model of one operator; its operands are the inputs, then the constants."""
    constants = constants or {}
    node = helper.make_node(op, [*inputs, *constants], ["y"], **attributes)
    return model([node], inputs, ["y"], constants)


def gemm(m, n, k, **attributes):
    a = (k, m) if attributes.get("transA") else (m, k)
    b = (n, k) if attributes.get("transB") else (k, n)
    return one("Gemm", {"a": a}, {"b": b}, **attributes)


def conv(channels, filters, sizes, kernel, op="Conv", group=1, **attributes):
    """Channels-last outside, as between the layers of a model: the transposes are the convolution's own layout."""
    rank = len(sizes)
    shape = (channels, filters // group, *kernel) if op == "ConvTranspose" else (filters, channels // group, *kernel)
    nodes = [helper.make_node("Transpose", ["x"], ["first"], perm=[0, rank + 1, *range(1, rank + 1)]),
             helper.make_node(op, ["first", "w"], ["c"], group=group, **attributes),
             helper.make_node("Transpose", ["c"], ["y"], perm=[0, *range(2, rank + 2), 1])]
    return model(nodes, {"x": (1, *sizes, channels)}, ["y"], {"w": shape})


def cases():
    yield from ((f"gemm/{n}x{n}x{n}", gemm(n, n, n)) for n in (512, 1024, 2048))
    yield "gemm/1024 transA", gemm(1024, 1024, 1024, transA=1)
    yield "gemm/1024 transB", gemm(1024, 1024, 1024, transB=1)
    yield "gemm/1024 B at run time", one("MatMul", {"a": (1024, 1024), "b": (1024, 1024)})
    yield "gemm/12 x 128x128x64", one("MatMul", {"a": (12, 128, 64), "b": (12, 64, 128)})
    yield "gemm/333x257x111", gemm(333, 257, 111)
    yield "gemm/128x3072x768", gemm(128, 3072, 768)
    yield "gemm/128x768x3072", gemm(128, 768, 3072)
    yield from ((f"gemm/{m}x2048x2048", gemm(m, 2048, 2048)) for m in (1, 4, 8, 16))
    yield "gemm/1x4096x4096", gemm(1, 4096, 4096)
    for m in (1, 4, 16):
        yield f"gemm/{m}x2048x2048 B at run time", one("MatMul", {"a": (m, 2048), "b": (2048, 2048)})
        yield f"gemm/{m}x2048x2048 transB at run time", one("Gemm", {"a": (m, 2048), "b": (2048, 2048)}, transB=1)
    yield "gemm/64x64x4096 B at run time", one("MatMul", {"a": (64, 4096), "b": (4096, 64)})
    for channels, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        yield f"conv/3x3 {channels} at {size}", conv(channels, channels, (size, size), (3, 3), pads=[1] * 4)
    for channels, filters, size in ((64, 256, 56), (256, 128, 28), (512, 2048, 7)):
        yield f"conv/1x1 {channels} to {filters} at {size}", conv(channels, filters, (size, size), (1, 1))
    yield "conv/7x7 stride 2, 3 channels at 224", conv(3, 64, (224, 224), (7, 7), strides=[2, 2], pads=[3] * 4)
    yield "conv/3x3 stride 2 128 at 56", conv(128, 128, (56, 56), (3, 3), strides=[2, 2], pads=[1] * 4)
    yield "conv/3x3 dilation 2 128 at 28", conv(128, 128, (28, 28), (3, 3), dilations=[2, 2], pads=[2] * 4)
    yield "conv/3x3 32 groups 256 at 28", conv(256, 256, (28, 28), (3, 3), group=32, pads=[1] * 4)
    yield "conv/3x3 depthwise 144 at 56", conv(144, 144, (56, 56), (3, 3), group=144, pads=[1] * 4)
    yield "conv/3x3 depthwise 3 at 224", conv(3, 3, (224, 224), (3, 3), group=3, pads=[1] * 4)
    yield "conv/5x5 32 to 1 at 96", conv(32, 1, (96, 96), (5, 5), pads=[2] * 4)
    yield "conv/5x5 64 at 28", conv(64, 64, (28, 28), (5, 5), pads=[2] * 4)
    yield "conv/transposed 4x4 stride 2 128 to 64 at 32", conv(128, 64, (32, 32), (4, 4), op="ConvTranspose", strides=[2, 2], pads=[1] * 4)
    yield "conv/1-D 9 128 at 400", conv(128, 128, (400,), (9,), pads=[4] * 2)
    yield "conv/3-D 3x3x3 64 at 8x28x28", conv(64, 64, (8, 28, 28), (3, 3, 3), pads=[1] * 6)
    big, small = (4096, 4096), (256, 256)
    for where, (rows, columns) in (("memory", big), ("cache", small)):
        shape = {"x": (rows, columns)}
        yield f"{where}/relu", one("Relu", shape)
        yield f"{where}/add", one("Add", {**shape, "z": (rows, columns)})
        yield f"{where}/softmax", one("Softmax", shape)
        yield f"{where}/layer norm", one("LayerNormalization", shape, {"s": (columns,)})
        yield f"{where}/sum of rows", one("ReduceSum", shape, {"axes": np.array([1])})
        yield f"{where}/sum of columns", one("ReduceSum", shape, {"axes": np.array([0])})
        yield f"{where}/transpose", one("Transpose", shape)
        yield f"{where}/concat", one("Concat", {**shape, "z": (rows, columns)}, axis=1)
        rng = np.random.default_rng(0)
        yield f"{where}/gather", model([helper.make_node("Gather", ["x", "i"], ["y"])], shape, ["y"], {"i": rng.permutation(rows)})


def measure(bin, folder, chosen, threads, seconds):
    paths = []
    for i, (name, made) in enumerate(chosen):
        paths.append(os.path.join(folder, f"{i}.onnx"))
        onnx.save(made, paths[-1])
    report = os.path.join(folder, "report.json")
    subprocess.run([os.path.join(bin, "tc-bench"), *paths, "--peers", "none", "--threads", str(threads), "--seconds", str(seconds),
                    "--json", report], check=True, stdout=subprocess.DEVNULL)
    with open(report, encoding="utf-8") as file:
        read = json.load(file)
    roofline = read["rooflines"][-1]
    rows = []
    for (name, _), result in zip(chosen, read["models"], strict=True):
        median = next(e["median_us"] for e in result["engines"] if e["name"] == "tc")
        known = [k for k in result["kernels"] if k["percent_of_roofline"] is not None]
        least = sum(k["us_per_run"] * k["percent_of_roofline"] / 100 for k in known)
        flops = sum(k["flops_per_call"] * k["calls_per_run"] for k in known)
        moved = sum(k["bytes_per_call"] * k["calls_per_run"] for k in known)
        total = sum(k["us_per_run"] for k in known) or median
        rows.append({"name": name, "us": median, "percent": 100 * least / total, "gflops": flops / total / 1e3, "gbs": moved / total / 1e3})
    return roofline, rows


def processor():
    """Vendor, family and model: what processors share decides what they reach, not their names and clocks."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    return f"{fields.get('vendor_id', '?')} family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder with tc-bench")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each case")
    parser.add_argument("--filter", default="", help="regular expression: only these cases")
    parser.add_argument("--update", action="store_true", help="write expected.json")
    parser.add_argument("--markdown", action="store_true", help="print tables")
    args = parser.parse_args()
    chosen = [case for case in cases() if re.search(args.filter, case[0])]
    if not chosen:
        parser.error(f"no case matches {args.filter}")
    with tempfile.TemporaryDirectory() as folder:
        roofline, rows = measure(args.bin, folder, chosen, args.threads, args.seconds)
    path = os.path.join(HERE, "expected.json")
    with open(path, encoding="utf-8") as file:
        stored = json.load(file)
    key = f"{processor()}, {roofline['instructions']}, {args.threads} threads"
    if key not in stored and not args.update:
        print(f"expected.json has nothing of {key}; --update stores what this run measures", file=sys.stderr)
    expected = stored.setdefault(key, {})
    levels = ", ".join(f"{level['name']} {level['read_gbs']:.0f} GB/s" for level in roofline["levels"])
    print(f"{key}: peak {roofline['peak_gflops']:.0f} GFLOP/s, read {levels}")
    if args.markdown:
        print("\n| case | time, us | GFLOP/s | GB/s | percent of roofline |\n|---|---|---|---|---|")
    behind = 0
    for row in rows:
        before = expected.get(row["name"])
        slow = before is not None and row["percent"] < TOLERATED * before
        behind += slow
        if args.markdown:
            print(f"| {row['name']} | {row['us']:.0f} | {row['gflops']:.1f} | {row['gbs']:.1f} | {row['percent']:.0f} |")
        else:
            print(f"{row['name']:46s} {row['us']:9.0f} us {row['gflops']:7.1f} GFLOP/s {row['gbs']:7.1f} GB/s {row['percent']:5.0f} %"
                  + (f"  expected {before:.0f} %" if before is not None else "") + ("  BEHIND" if slow else ""))
        if args.update:
            expected[row["name"]] = round(row["percent"], 1)
    if args.update:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(stored, file, indent=1, sort_keys=True)
            file.write("\n")
        return 0
    print(f"{len(rows)} cases, {behind} behind")
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
