#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs between QuantizeLinear and DequantizeLinear, as quantisers write them, against NumPy.

usage: qdq.py BIN [GRAPH ...]

Each graph is compiled for each CPU variant, with the batch known and unknown, and may be off by one quantum, as a sum near a half may be
rounded either way.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from quantized import convolve

VARIANTS = ("x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-amx")
GRAPHS = {}


def graph(make):
    GRAPHS[make.__name__] = make
    return make


class Graph:
    """Nodes, beside the values that they have for the input."""

    def __init__(self, seed, shape, opset=21):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers, self.values, self.quantum, self.opset = [], [], {}, {}, opset
        self.values["x"] = self.rng.standard_normal(shape).astype(np.float32)

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        self.values[name] = np.asarray(array)
        return name

    def node(self, op, inputs, value, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        self.values[name] = value
        return name

    def quantize(self, x, scale, zero):
        info, parameters = np.iinfo(np.asarray(zero).dtype), [self.constant(np.float32(scale)), self.constant(zero)]
        q = np.clip(np.rint(self.values[x].astype(np.float64) / np.float32(scale)) + int(zero), info.min, info.max).astype(info.dtype)
        q = self.node("QuantizeLinear", [x, *parameters], q)
        return self.dequantize(q, *parameters)

    def dequantize(self, q, scale, zero, **attrs):
        values, s, z = self.values[q], self.values[scale], self.values[zero]
        along = [-1 if i == attrs.get("axis", 1) else 1 for i in range(values.ndim)] if s.ndim else []
        real = (values.astype(np.int64) - z.astype(np.int64).reshape(along)) * s.astype(np.float64).reshape(along)
        name = self.node("DequantizeLinear", [q, scale, zero], real, **attrs)
        self.quantum[name] = float(np.max(s))
        return name

    def weights(self, shape, kind="int8", axis=None):
        """Dequantised; by channels along `axis`."""
        info = np.iinfo(kind)
        q = self.rng.integers(info.min, info.max + 1, shape).astype(kind)
        count = [] if axis is None else [shape[axis]]
        scale = (self.rng.random(count) * 0.01 + 0.001).astype(np.float32)
        zero = np.zeros(count, kind) if kind == "int8" else self.rng.integers(100, 156, count).astype(kind)
        return self.dequantize(self.constant(q), self.constant(scale), self.constant(zero), **({} if axis is None else {"axis": axis}))

    def bias(self, count):
        q = self.rng.integers(-20000, 20000, count).astype(np.int32)
        return self.dequantize(self.constant(q), self.constant(np.float32(1e-4)), self.constant(np.int32(0)))

    def conv(self, x, w, bias=None, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1):
        value = convolve(self.values[x], self.values[w], strides, pads, dilations, group).astype(np.float64)
        if bias:
            value = value + self.values[bias][:, None, None]
        return self.node("Conv", [x, w] + ([bias] if bias else []), value, strides=strides, pads=pads, dilations=dilations, group=group)

    def relu(self, x):
        return self.node("Relu", [x], np.maximum(self.values[x], 0))

    def run(self, bin_dir, result, folder, variant, dynamic):
        x = self.values["x"]
        shape = ["batch", *x.shape[1:]] if dynamic else x.shape
        made = helper.make_graph(self.nodes, "qdq", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                 [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)], self.initializers)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        np.savez(os.path.join(folder, "in.npz"), x=x)
        for command in ([f"{bin_dir}/tc-compile", path, "-o", f"{folder}/model.bin", "--cpu", variant],
                        [f"{bin_dir}/tc-run", f"{folder}/model.bin", "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz"]):
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode == 5: # not a machine for it
                return None
            if ran.returncode:
                return f"{os.path.basename(command[0])} exit {ran.returncode}: {(ran.stdout + ran.stderr).strip()}"
        actual, expected = np.load(f"{folder}/out.npz")[result], self.values[result]
        if actual.shape != expected.shape:
            return f"has the shape {actual.shape}, expected {expected.shape}"
        allowed = self.quantum.get(result, 0) * 1.001 + 1e-5 * np.abs(expected).max(initial=0)
        wrong = ~(np.abs(actual - expected) <= allowed)
        off = ~(np.abs(actual - expected) <= 1e-5 * np.abs(expected).max(initial=0))
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            return f"differs in {wrong.sum()} of {wrong.size} elements, first at {list(map(int, at))}: {actual[at]}, expected {expected[at]}"
        # Few sums are near a half.
        return f"is off by a quantum in {off.sum()} of {off.size} elements" if off.sum() > 2 + off.size // 200 else None


@graph
def linear(seed=1, batch=7, kind=np.uint8, weights="int8", axis=1):
    g = Graph(seed, (batch, 50))
    x = g.quantize("x", 0.03, kind(5))
    w = g.weights((50, 33), weights, axis)
    y = g.node("MatMul", [x, w], g.values[x] @ g.values[w])
    b = g.bias(33)
    y = g.relu(g.node("Add", [y, b], g.values[y] + g.values[b]))
    return g, g.quantize(y, 0.02, kind(3))


@graph
def linear_signed():
    return linear(2, 40, np.int8, "int8", None)


@graph
def linear_asymmetric():
    return linear(3, 130, np.uint8, "uint8", 1)


@graph
def linear_none():
    return linear(4, 0)


@graph
def gemm():
    g = Graph(5, (9, 40))
    x, w, b = g.quantize("x", 0.03, np.uint8(120)), g.weights((20, 40), "int8", 0), g.bias(20)
    y = g.node("Gemm", [x, w, b], g.values[x] @ g.values[w].T + g.values[b], transB=1)
    return g, g.quantize(y, 0.05, np.uint8(128))


@graph
def gemm_float_result():
    g = Graph(6, (9, 40))
    x, w = g.quantize("x", 0.03, np.uint8(120)), g.weights((20, 40), "int8", 0)
    return g, g.node("Gemm", [x, w], g.values[x] @ g.values[w].T, transB=1)


@graph
def both_run():
    """No operand is constant, and there are batches."""
    g = Graph(7, (3, 2, 12, 20))
    x = g.quantize("x", 0.03, np.uint8(120))
    t = g.node("Transpose", [x], g.values[x].transpose(0, 1, 3, 2), perm=[0, 1, 3, 2])
    y = g.node("MatMul", [x, t], g.values[x] @ g.values[t])
    return g, g.quantize(y, 0.2, np.uint8(128))


def residual(seed, kind, shape=(2, 3, 14, 15), channels=24, weights="int8"):
    """A first layer, a maximum, two convolutions around which a sum goes, a mean."""
    g = Graph(seed, shape)
    zero = kind(110 if kind is np.uint8 else -9)
    x = g.quantize("x", 0.03, zero)
    x = g.conv(x, g.weights((channels, shape[1], 3, 3), weights, 0), g.bias(channels), strides=(2, 2), pads=(1, 1, 1, 1))
    x = g.quantize(g.relu(x), 0.01, kind(0))
    padded = np.pad(g.values[x], [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    views = [padded[:, :, i : i + g.values[x].shape[2], j : j + g.values[x].shape[3]] for i in range(3) for j in range(3)]
    x = g.node("MaxPool", [x], np.max(views, axis=0), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = skip = g.quantize(x, 0.01, kind(0))
    x = g.quantize(g.relu(g.conv(x, g.weights((channels, channels, 3, 3), weights, 0), g.bias(channels), pads=(1, 1, 1, 1))), 0.05, kind(0))
    x = g.quantize(g.conv(x, g.weights((channels, channels, 1, 1), weights, 0), g.bias(channels)), 0.08, zero)
    x = g.node("Add", [x, skip], g.values[x] + g.values[skip])
    x = g.quantize(g.relu(x), 0.0613, kind(0))
    x = g.node("ReduceMean", [x, g.constant(np.int64([2, 3]))], g.values[x].mean((2, 3)), keepdims=0)
    return g, g.quantize(x, 0.0223, kind(0))


@graph
def residual_unsigned():
    return residual(8, np.uint8)


@graph
def residual_signed():
    return residual(9, np.int8)


@graph
def residual_asymmetric():
    return residual(10, np.uint8, weights="uint8", channels=19)


@graph
def inverted(seed=11, kind=np.uint8):
    """A wider layer, one filter for each channel, a narrower layer, with Clip as a quantiser leaves it."""
    g = Graph(seed, (1, 8, 11, 12))
    x = g.quantize("x", 0.03, kind(100))
    for filters, kernel, group, strides in ((40, 1, 1, (1, 1)), (40, 3, 40, (2, 2)), (13, 1, 1, (1, 1))):
        channels = g.values[x].shape[1] // group
        pads = (kernel // 2,) * 4
        x = g.conv(x, g.weights((filters, channels, kernel, kernel), "int8", 0), g.bias(filters), strides=strides, pads=pads, group=group)
        if filters == 40:
            x = g.node("Clip", [x, g.constant(np.float32(0)), g.constant(np.float32(6))], np.clip(g.values[x], 0, 6))
        x = g.quantize(x, 0.024, kind(3))
    return g, x


@graph
def inverted_signed():
    return inverted(12, np.int8)


@graph
def joined():
    """Concat of what is quantised alike, Slice, Reshape, and quantised again otherwise."""
    g = Graph(13, (4, 6, 10))
    x = g.quantize("x", 0.03, np.uint8(100))
    starts, ends, axes = (g.constant(np.int64([i])) for i in (1, 4, 1))
    part = g.quantize(g.node("Slice", [x, starts, ends, axes], g.values[x][:, 1:4]), 0.03, np.uint8(100))
    x = g.quantize(g.node("Concat", [x, part], np.concatenate([g.values[x], g.values[part]], 1), axis=1), 0.03, np.uint8(100))
    x = g.node("Reshape", [x, g.constant(np.int64([0, -1]))], g.values[x].reshape(4, -1))
    return g, g.quantize(x, 0.07, np.uint8(90))


def main():
    bin_dir, names = sys.argv[1], sys.argv[2:] or list(GRAPHS)
    failed = 0
    for name in names:
        for variant in VARIANTS:
            for dynamic in (False, True):
                made, result = GRAPHS[name]()
                with tempfile.TemporaryDirectory() as folder:
                    reason = made.run(bin_dir, result, folder, variant, dynamic)
                if reason:
                    failed += 1
                    print(f"{name} ({variant}, batch {'unknown' if dynamic else 'known'}): {reason}", flush=True)
    print(f"{len(names)} graphs, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
