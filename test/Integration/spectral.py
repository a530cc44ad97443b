#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms of many lengths, compiled and run, against NumPy in float64.

usage: spectral.py BIN [CASE ...]

A case is a list of DFT and STFT nodes. They are compiled as one model with the sizes of their inputs, for the CPU and for the target
reference, and one model each where only the run knows sizes, for all nodes that differ in sizes alone. Models run with both CPU variants
(those that this machine has) and with one and two threads. The error of a transform of N elements, relative to the spectrum's norm, is of
the order of sqrt(log N) roundings.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from kernels import variants

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
EPSILON = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11}
CASES = {}


def random(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


def pairs(z):
    return np.stack([z.real, z.imag], -1)


class Model:
    """Nodes with an input and an output each."""

    def __init__(self, kind="f32", opset=20, dynamic=True, reference=False):
        self.kind, self.opset, self.dynamic, self.reference = kind, opset, dynamic, reference
        self.nodes, self.arrays, self.expected = [], {}, {}

    def add(self, op, x, others, expected, length, **attrs):
        """`others`: further operands; None where one is absent, arrays stay constants where only the run knows sizes."""
        number = len(self.nodes)
        names = [f"x{number}", *("" if v is None else f"c{number}_{i}" for i, v in enumerate(others))]
        self.arrays |= {n: np.asarray(v) for n, v in zip(names, [x, *others]) if n}
        self.nodes.append((op, names, f"y{number}", attrs, length))
        self.expected[f"y{number}"] = expected

    def random(self, shape):
        return random(shape, len(self.nodes)).astype(TYPES[self.kind])

    def dft(self, shape, axis=-2, length=None, inverse=0, onesided=0):
        """`shape`: of the operand, with the dim of parts; `length`: dft_length."""
        operand = self.random(shape)
        x = operand.astype(np.float64)
        z = x[..., 0] + (1j * x[..., 1] if shape[-1] == 2 else 0)
        at = axis % len(shape)
        if onesided and inverse:
            count = length or 2 * (shape[at] - 1)
            expected = np.fft.irfft(z, count, at)[..., None]
        else:
            count = length or shape[at]
            expected = (np.fft.ifft if inverse else np.fft.fft)(z, count, at)
            expected = pairs(expected.take(range(count // 2 + 1), at) if onesided else expected)
        self.add("DFT", operand, [length and np.int64(length), np.int64(axis)], expected, count, inverse=inverse, onesided=onesided)

    def stft(self, signal, frame, step, window=True, onesided=1, parts=1):
        operand = self.random((2, signal, parts))
        x = operand.astype(np.float64)
        z = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
        weights = np.hanning(frame).astype(TYPES[self.kind])
        frames = np.stack([z[:, s:s + frame] for s in range(0, signal - frame + 1, step)], 1)
        spectrum = np.fft.fft(frames * (weights.astype(np.float64) if window else 1), axis=-1)
        expected = pairs(spectrum[..., :frame // 2 + 1] if onesided else spectrum)
        self.add("STFT", operand, [np.int64(step), weights if window else None, np.int64(frame)], expected, frame, onesided=onesided)

    def static(self):
        """One model of all nodes, and the inputs to run it on."""
        nodes = [helper.make_node(op, names, [y], name=y, **attrs) for op, names, y, attrs, _ in self.nodes]
        inputs = {names[0]: self.arrays[names[0]] for _, names, _, _, _ in self.nodes}
        constants = {n: v for n, v in self.arrays.items() if n not in inputs}
        return self.proto(nodes, {n: v.shape for n, v in inputs.items()}, {y: v.shape for y, v in self.expected.items()}, constants), [(inputs, {})]

    def unknown(self):
        """Models of one node, and the inputs of all nodes of which it is one."""
        alike = {}
        for number, (op, names, y, attrs, _) in enumerate(self.nodes):
            x = self.arrays[names[0]]
            axis = None if op == "STFT" else int(self.arrays[names[2]])
            alike.setdefault((op, x.ndim, x.shape[-1], axis, *attrs.items(), *(bool(n) for n in names)), []).append(number)
        for numbers in alike.values():
            op, names, y, attrs, _ = self.nodes[numbers[0]]
            rank = self.arrays[names[0]].ndim
            # The length, or the window and the length of a frame, is given.
            given = [n for n in names[1:] if n and not (op == "DFT" and n is names[2])]
            sizes = {names[0]: [*(f"n{i}" for i in range(rank - 1)), self.arrays[names[0]].shape[-1]],
                     **{n: ["w"] if self.arrays[n].ndim else [] for n in given}}
            constants = {names[2]: self.arrays[names[2]]} if op == "DFT" else {}
            model = self.proto([helper.make_node(op, names, [y], name=op, **attrs)], sizes, {y: [None] * self.expected[y].ndim}, constants)
            runs = []
            for number in numbers:
                own = self.nodes[number]
                runs.append(({n: self.arrays[o] for n, o in zip(names, own[1]) if n in sizes}, {own[2]: y}))
            yield model, runs

    def proto(self, nodes, inputs, outputs, constants):
        info = lambda n, dims: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(self.arrays.get(n, self.arrays["x0"]).dtype), dims)
        graph = helper.make_graph(nodes, "spectral", [info(n, d) for n, d in inputs.items()], [info(n, d) for n, d in outputs.items()],
                                  [numpy_helper.from_array(v, n) for n, v in constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def case(make):
    CASES[make.__name__] = make
    return make


# Of every kind: smooth, even and odd, primes and their products, with one factor that has no radix.
SHORT = [*range(1, 71), 97, 101, 128]
LENGTHS = [*range(1, 34), 61, 64, 67, 97, 101, 128, 194, 202, 210, 243, 343, 400, 480, 512, 1000, 1001, 1024, 1584, 2310, 4096]


@case
def real():
    model = Model()
    for n in SHORT:
        model.dft((3, n, 1))
    return model


@case
def one_sided():
    model = Model()
    for n in LENGTHS:
        model.dft((2, n, 1), onesided=1)
    return model


@case
def inverse():
    model = Model()
    for n in LENGTHS:
        model.dft((2, n, 2), inverse=1)
    return model


@case
def real_again():
    """Half a spectrum back to real elements, an even number and an odd one."""
    model = Model()
    for n in LENGTHS[1:]:
        model.dft((2, n // 2 + 1, 2), inverse=1, onesided=1, length=n)
    return model


@case
def long():
    model = Model()
    for n, batch in ((16384, 2), (65536, 1), (19683, 1), (10007, 1), (30030, 1)):
        model.dft((batch, n, 1))
        model.dft((batch, n, 2), inverse=1)
    return model


@case
def inner_axes():
    model = Model(reference=True)
    for n in (1, 5, 13, 16, 30, 64, 97):
        for columns in (2, 8, 37):
            model.dft((2, n, columns, 1), axis=1)
            model.dft((n, columns, 2), axis=0, inverse=1)
        model.dft((n, 9, 3, 1), axis=-4, onesided=1)
    return model


@case
def other_lengths():
    """Fewer elements than the operand has, and more."""
    model = Model(reference=True)
    for n, length in ((9, 16), (9, 7), (100, 64), (50, 128), (64, 101), (200, 97), (33, 1000), (1000, 66)):
        model.dft((2, n, 1), length=length)
        model.dft((2, n, 5, 2), axis=1, length=length, onesided=1)
        model.dft((2, n, 2), length=length, inverse=1)
        model.dft((2, n, 2), length=length, inverse=1, onesided=1)
    return model


@case
def many_rows():
    model = Model(reference=True)
    for rows, n in ((70, 8), (33, 16), (40, 31), (100, 25), (19, 400), (17, 101), (0, 64)):
        model.dft((rows, n, 1))
        model.dft((rows, n, 2), inverse=1)
    return model


@case
def double():
    model = Model("f64")
    for n in (1, 2, 7, 13, 16, 17, 30, 64, 97, 100, 210, 243, 1001, 1024, 4096, 65536):
        model.dft((2, n, 1))
        model.dft((2, n, 2), inverse=1)
    for n in (7, 100, 1024):
        model.dft((2, n // 2 + 1, 2), inverse=1, onesided=1, length=n)
    return model


@case
def half():
    model = Model("f16", dynamic=False)
    for n in (3, 16, 31, 64, 97, 100, 256):
        model.dft((2, n, 1))
        model.dft((2, n, 2), inverse=1)
    return model


@case
def frames():
    model = Model(opset=17)
    for signal, frame, step in ((400, 16, 8), (1000, 64, 16), (4000, 400, 160), (4000, 512, 128), (1500, 101, 50), (100000, 16384, 4096)):
        model.stft(signal, frame, step)
    model.stft(1000, 64, 16, window=False)
    model.stft(1000, 64, 32, onesided=0)
    model.stft(1000, 60, 20, onesided=0, parts=2)
    return model


def difference(actual, expected, length, kind):
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if not expected.size:
        return None
    norm = np.linalg.norm(expected)
    error = np.linalg.norm(actual.astype(np.float64) - expected) / norm if norm else np.abs(actual).max()
    limit = EPSILON[kind] * (1 + 2 * np.sqrt(np.log2(length + 1)))
    return None if error <= limit else f"error {error:.2e}, at most {limit:.2e}"


def check(bin_dir, folder, label, model, proto, runs, options, all_variants):
    """Compiles a model and runs it; what is wrong."""
    path, artifact, given, out = (f"{folder}/{name}" for name in ("model.onnx", "model.bin", "in.npz", "out.npz"))
    with open(path, "wb") as f:
        f.write(proto.SerializeToString())
    made = subprocess.run([f"{bin_dir}/tc-compile", path, "-o", artifact, *options], capture_output=True, text=True)
    if made.returncode:
        return [f"{label}: tc-compile exit {made.returncode}: {made.stderr.strip()}"]
    failures = []
    nodes = {y: (op, names, attrs, length) for op, names, y, attrs, length in model.nodes}
    for inputs, outputs in runs: # outputs: of which node they are, where that is not their own name
        np.savez(given, **inputs)
        for variant in all_variants:
            for threads in (1, 2):
                ran = subprocess.run([f"{bin_dir}/tc-run", artifact, "--inputs", given, "--outputs", out, "--threads", str(threads),
                                      *(["--variant", variant] if variant else [])], capture_output=True, text=True)
                where = f"{label} {variant or ''} {threads} threads"
                if ran.returncode:
                    shapes = [v.shape for v in inputs.values()]
                    failures.append(f"{where}: {shapes}: exit {ran.returncode}: {(ran.stdout + ran.stderr).strip()}")
                    continue
                with np.load(out) as results:
                    for y in outputs or model.expected:
                        op, names, attrs, length = nodes[y]
                        wrong = difference(results[outputs.get(y, y)], model.expected[y], length, model.kind)
                        if wrong:
                            failures.append(f"{where}: {op} of {length} from {model.arrays[names[0]].shape}, {attrs}: {wrong}")
    return failures


def run_case(bin_dir, name, folder):
    model = CASES[name]()
    failures = check(bin_dir, folder, name, model, *model.static(), [], variants())
    if model.reference:
        failures += check(bin_dir, folder, f"{name} reference", model, *model.static(), ["--target", "reference"], [None])
    if model.dynamic:
        for proto, runs in model.unknown():
            failures += check(bin_dir, folder, f"{name} dynamic", model, proto, runs, [], variants())
    return failures


def main():
    bin_dir, names = sys.argv[1], sys.argv[2:] or list(CASES)
    failures = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            failures += run_case(bin_dir, name, folder)
    print("\n".join(failures[:60]))
    print(f"{len(names)} cases, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
