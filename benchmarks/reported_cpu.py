#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators whose order of work decides, at sizes that users of other compilers reported, beside ONNX Runtime: one table, one thread.

usage: reported_cpu.py BIN [REGEX]
  ROUNDS=5 (in turns; the least time counts)   BUDGET=0.4 (seconds of timing per engine and round)   OUT=file.json
Each case is one small model; tc's outputs are held against ONNX Runtime's, of DFT against NumPy's in float64 (ONNX Runtime's are
off by up to 1e-3 for lengths that are no power of two).  Prints microseconds of both and ONNX Runtime / tc; last
line: the least ratio, and what failed.  Needs onnx, onnxruntime, numpy.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROUNDS, BUDGET = int(os.environ.get("ROUNDS", "5")), float(os.environ.get("BUDGET", "0.4"))
RANDOM = np.random.default_rng(0)
CASES = {}


def f32(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def info(name, elem_type, shape):
    return helper.make_tensor_value_info(name, elem_type, shape)


def case(name, nodes, inputs, constants=None, outputs="y", opset=20, tolerance=1e-4, expected=None):
    """`nodes`: protos, or (op, inputs, outputs, attributes); `inputs` and `constants`: arrays by name; `expected`: a list, or ONNX Runtime's."""
    nodes = [n if isinstance(n, onnx.NodeProto) else helper.make_node(n[0], n[1].split(), n[2].split(), **n[3]) for n in nodes]
    given = [info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()]
    graph = helper.make_graph(nodes, "reported", given, [onnx.ValueInfoProto(name=o) for o in outputs.split()],
                              [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()])
    CASES[name] = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), inputs, tolerance, expected


# ---------------------------------------------------------------------------------------------------------------- the cases


def add_suppression():
    for classes, boxes, power in ((10, 8400, 20), (80, 8400, 20), (1, 1000, 1), (80, 25200, 60)):
        b = RANDOM.random((1, boxes, 4), np.float32) * 600
        b[..., 2:] = b[..., :2] + RANDOM.random((1, boxes, 2), np.float32) * 60
        scores = RANDOM.random((1, classes, boxes), np.float32) ** power
        constants = dict(m=ints(100), i=np.array([0.5], np.float32), t=np.array([0.25], np.float32))
        case(f"NonMaxSuppression {boxes} boxes, {classes} classes", [("NonMaxSuppression", "b s m i t", "y", {})], dict(b=b, s=scores), constants, opset=11, tolerance=0)


def add_spectral():
    def pairs(v):
        return [np.stack([v.real, v.imag], -1)]

    for rows, n in ((8, 256), (8, 1000), (8, 4096), (1, 65536), (1, 4093)):
        x, z = f32(rows, n, 1), f32(rows, n, 2)
        wide, complex_z = x[..., 0].astype(np.float64), z[..., 0].astype(np.float64) + 1j * z[..., 1]
        case(f"DFT {rows} x {n}, real", [("DFT", "x", "y", {})], dict(x=x), opset=17, expected=pairs(np.fft.fft(wide)))
        case(f"DFT {rows} x {n}, one-sided", [("DFT", "x", "y", dict(onesided=1))], dict(x=x), opset=17, expected=pairs(np.fft.rfft(wide)))
        case(f"DFT {rows} x {n}, inverse", [("DFT", "x", "y", dict(inverse=1))], dict(x=z), opset=17, expected=pairs(np.fft.ifft(complex_z)))
    for length, frame, hop in ((480000, 400, 160), (100000, 16384, 4096), (16000, 512, 128)):
        constants = dict(step=np.array(hop, np.int64), win=np.hanning(frame).astype(np.float32), len=np.array(frame, np.int64))
        case(f"STFT {length} by {frame}, hop {hop}", [("STFT", "x step win len", "y", dict(onesided=1))], dict(x=f32(1, length, 1)), constants, opset=17)


def add_pools():
    for window in 101, 1001:
        pads = dict(kernel_shape=[window], strides=[1], pads=[window // 2] * 2)
        case(f"MaxPool 16 x 16000, window {window}", [("MaxPool", "x", "y", pads)], dict(x=f32(1, 16, 16000)))
        case(f"AveragePool 16 x 16000, window {window}", [("AveragePool", "x", "y", pads)], dict(x=f32(1, 16, 16000)))
    pads = dict(kernel_shape=[101, 101], strides=[1, 1], pads=[50] * 4)
    case("MaxPool 8 x 128 x 128, window 101 x 101", [("MaxPool", "x", "y", pads)], dict(x=f32(1, 8, 128, 128)))
    case("AveragePool 8 x 128 x 128, window 101 x 101", [("AveragePool", "x", "y", pads)], dict(x=f32(1, 8, 128, 128)))


def add_einsums():
    for equation, *shapes in (("ii->i", (2048, 2048)), ("ii->", (2048, 2048)), ("bii->bi", (64, 256, 256)), ("bii->b", (64, 256, 256)), ("iji->j", (256, 64, 256)), ("bijj->bi", (8, 64, 64, 64)),
                              ("bii,bij->bj", (32, 128, 128), (32, 128, 128)), ("ii,jj->ij", (512, 512), (512, 512))):  # fmt: skip
        names = "abc"[:len(shapes)]  # fmt: skip
        sizes = ", ".join("x".join(map(str, s)) for s in shapes)
        case(f"Einsum {equation} of {sizes}", [("Einsum", " ".join(names), "y", dict(equation=equation))], {n: f32(*s) for n, s in zip(names, shapes)})


def add_columns():
    for channels, image, block, stride, pad in ((64, 56, 3, 1, 1), (3, 224, 16, 16, 0), (3, 224, 16, 8, 0), (32, 64, 5, 2, 2), (128, 28, 3, 2, 1)):
        count = (image + 2 * pad - block) // stride + 1
        case(f"Col2Im {channels} x {image} x {image}, block {block}, stride {stride}", [("Col2Im", "x s k", "y", dict(strides=[stride] * 2, pads=[pad] * 4))],
             dict(x=f32(1, channels * block * block, count * count)), dict(s=ints(image, image), k=ints(block, block)), opset=18)  # fmt: skip


def add_matrices():
    for batch, size in ((1000, 3), (1000, 4), (64, 16), (16, 64), (1, 256)):
        case(f"Det {batch} x {size} x {size}", [("Det", "x", "y", {})], dict(x=f32(batch, size, size) + 2 * np.eye(size, dtype=np.float32)), opset=11, tolerance=1e-3)


def add_regions():
    for channels, height, width, count, bins in ((512, 38, 50, 128, 7), (512, 38, 50, 300, 7), (256, 14, 14, 16, 6)):
        low = RANDOM.random((count, 2)) * [width * 8, height * 8]
        size = RANDOM.random((count, 2)) * [width * 8, height * 8]
        r = np.concatenate([np.zeros((count, 1)), low, np.minimum(low + size, [width * 16 - 1, height * 16 - 1])], 1).astype(np.float32)
        case(f"MaxRoiPool {channels} x {height} x {width}, {count} regions, {bins} x {bins}", [("MaxRoiPool", "x r", "y", dict(pooled_shape=[bins, bins], spatial_scale=1 / 16))],
             dict(x=f32(1, channels, height, width), r=r))  # fmt: skip


def add_loops():
    flag, number = TensorProto.BOOL, TensorProto.INT64

    def loop(name, trips, body, carried, scanned, constants, outputs):
        """`body`: tuples of nodes from c<n> to d<n>, and to s<n>, which are stacked."""
        nodes = [helper.make_node("Identity", ["on"], ["go"])] + [helper.make_node(op, i.split(), o.split(), **a) for op, i, o, a in body]
        taken = [info("i", number, []), info("on", flag, [])] + [info(f"c{n}", TensorProto.FLOAT, v.shape) for n, v in enumerate(carried)]
        given = [info("go", flag, [])] + [info(f"d{n}", TensorProto.FLOAT, v.shape) for n, v in enumerate(carried)] + [info(f"s{n}", TensorProto.FLOAT, None) for n in range(scanned)]
        node = helper.make_node("Loop", ["n", "", *(f"x{n}" for n in range(len(carried)))], outputs.split(), body=helper.make_graph(nodes, "body", taken, given))
        case(name, [node], {f"x{n}": v for n, v in enumerate(carried)}, dict(n=np.array(trips, np.int64), **constants), outputs)

    half = dict(h=np.array(0.5, np.float32))
    loop("Loop 1000 times, a scalar", 1000, [("Mul", "c0 h", "m", {}), ("Add", "m h", "d0", {})], [np.array(1, np.float32)], 0, half, "y")
    loop("Loop 1000 times, 16 elements", 1000, [("Mul", "c0 h", "m", {}), ("Tanh", "m", "d0", {})], [f32(16)], 0, half, "y")
    loop("Loop 1000 times, 16 elements stacked", 1000, [("Mul", "c0 h", "m", {}), ("Tanh", "m", "d0", {}), ("Identity", "d0", "s0", {})], [f32(16)], 1, half, "y ys")
    loop("Loop 100 times, 1 x 64 by 64 x 64", 100, [("MatMul", "c0 w", "m", {}), ("Tanh", "m", "d0", {}), ("Identity", "d0", "s0", {})], [f32(1, 64)], 1, dict(w=f32(64, 64) / 8), "y ys")
    loop("Loop 200 times, a row of a table by number", 200, [("Gather", "table i", "r", {}), ("Add", "c0 r", "d0", {})], [f32(32)], 0, dict(table=f32(200, 32)), "y")
    loop("Loop 100 times, softmax of 50", 100, [("Softmax", "c0", "p", {}), ("Add", "c0 p", "d0", {})], [f32(1, 50)], 0, {}, "y")
    body = helper.make_graph([helper.make_node("Add", ["c", "v"], ["d"]), helper.make_node("Identity", ["d"], ["s"])], "body",
                             [info("c", 1, [8]), info("v", 1, [8])], [info("d", 1, [8]), info("s", 1, [8])])
    case("Scan of 1000 x 8", [helper.make_node("Scan", ["x", "v"], ["y", "ys"], body=body, num_scan_inputs=1)], dict(x=f32(8), v=f32(1000, 8)), outputs="y ys")


# ---------------------------------------------------------------------------------------------------------------- measuring


class OnnxRuntime:
    def __init__(self, model, inputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.inputs = inputs
        self.outputs = self.run()

    def run(self):
        return self.session.run(None, self.inputs)

    def least_us(self):
        end, least = time.perf_counter() + BUDGET, float("inf")
        while True:
            start = time.perf_counter()
            self.run()
            now = time.perf_counter()
            least = min(least, now - start)
            if now > end:
                return least * 1e6


class Compiled:
    def __init__(self, bin_dir, model, inputs, folder):
        onnx.save(model, f"{folder}/model.onnx")
        start = time.perf_counter()
        subprocess.run([f"{bin_dir}/tc-compile", f"{folder}/model.onnx", "-o", f"{folder}/m.bin", "--cpu", "native"], check=True, capture_output=True, text=True)
        self.compile_s = time.perf_counter() - start
        np.savez(f"{folder}/in.npz", **inputs)
        self.command = [f"{bin_dir}/tc-run", f"{folder}/m.bin", "--inputs", f"{folder}/in.npz", "--threads", "1"]
        subprocess.run([*self.command, "--outputs", f"{folder}/out.npz"], check=True, capture_output=True, text=True)
        outputs = np.load(f"{folder}/out.npz")
        self.outputs = [outputs[o.name if o.name in outputs else f"output_{n}"] for n, o in enumerate(model.graph.output)]

    def least_us(self):
        done = subprocess.run([*self.command, f"--benchmark={BUDGET}", "--json", "-"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout[done.stdout.index("{") :])["min_us"]


def difference(expected, actual):
    """Of the largest value, or a sentence."""
    worst = 0.0
    for e, a in zip(expected, actual, strict=True):
        if e.shape != a.shape:
            return f"shape {a.shape} for {e.shape}"
        differs = e != a
        largest = max(float(np.abs(e).max(initial=0)), 1e-30)
        worst = max(worst, float(np.abs(e[differs].astype(np.float64) - a[differs]).max(initial=0)) / largest)
    return worst


def main():
    bin_dir, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for add in (add_suppression, add_spectral, add_pools, add_einsums, add_columns, add_matrices, add_regions, add_loops):
        add()
    rows, failed = {}, []
    print(f"{'case':64} {'tc us':>10} {'ORT us':>10} {'ORT / tc':>9} {'compile s':>9}")
    for name in (n for n in CASES if re.search(pattern, n)):
        model, inputs, tolerance, expected = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            try:
                peer, ours = OnnxRuntime(model, inputs), Compiled(bin_dir, model, inputs, folder)
                off = difference(expected or peer.outputs, ours.outputs)
                if isinstance(off, str) or not off <= tolerance:
                    raise ValueError(f"outputs differ: {off}")
                both = [float("inf")] * 2
                for _ in range(ROUNDS):
                    both = [min(b, e.least_us()) for b, e in zip(both, (ours, peer))]
            except (subprocess.CalledProcessError, ValueError) as error:
                failed.append(name)
                print(f"{name:64} {str(getattr(error, 'stderr', '') or error).strip()[:150]}", flush=True)
                continue
        rows[name] = dict(tc_us=both[0], ort_us=both[1], ratio=both[1] / both[0], compile_s=ours.compile_s)
        print(f"{name:64} {both[0]:10.1f} {both[1]:10.1f} {both[1] / both[0]:9.2f} {ours.compile_s:9.2f}", flush=True)
    if os.environ.get("OUT"):
        with open(os.environ["OUT"], "w") as out:
            json.dump(rows, out, indent=1)
    least = min(rows, key=lambda n: rows[n]["ratio"], default=None)
    print(f"least: {rows[least]['ratio']:.2f} ({least}); below 1: {sum(r['ratio'] < 1 for r in rows.values())} of {len(rows)}; failed: {failed}" if least else f"failed: {failed}")
    return 1 if failed or not least else 0


if __name__ == "__main__":
    sys.exit(main())
