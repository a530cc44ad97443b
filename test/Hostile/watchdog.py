#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time and memory of tc-compile are linear in the nodes of a model, whatever the shape of its graph.

usage: watchdog.py BIN [SHAPE | NODE ...] [--doublings N] [--large]

Each shape is compiled with n, 2n, 4n, ... nodes. A doubling may take at most 2.3 times the processor time (the least of
two runs; where that is too much, of more, as other work on the machine slows single runs) and as many times the memory.
Models of one node, whose sizes only the run knows, become at most 60 times the operations of a Relu, counted where LLVM
takes over: time follows them, and they are the same on each machine. --large compiles the largest
models that tc promises something about instead: each within 20 s and 2 GB (30 s in the test, the least of three runs). One line per model.
"""
import argparse
import functools
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import typing

import numpy as np

from models import floats, ints, model, node, value

MOST_PER_DOUBLING = 2.3
MORE_RUNS = 5
LARGE_RUNS = 2  # more, where other work slowed the first
LARGE_SECONDS, LARGE_GIGABYTES = 30, 2  # 20 s and less on a machine of 2026; others are slower
SHAPES = {}  # name: (function of the number of nodes, nodes)
LARGE = {}   # name: function
MOST_OF_A_RELU = 60
NODES = {}   # name: model


def shape(nodes):
    def register(function):
        SHAPES[function.__name__] = (function, nodes)
        return function
    return register


def large(function):
    LARGE[function.__name__] = function
    return function


def chained(make, count, inputs, constants=()):
    """count nodes, each of the value before it."""
    return model([make(i, f"v{i}", f"v{i + 1}") for i in range(count)], inputs, [value(f"v{count}")], constants)


@shape(250)
def chain(count):
    operators = ["Relu", "Neg", "Abs", "Sigmoid"]
    return chained(lambda i, x, y: node(operators[i % 4], [x], [y]), count, [value("v0", [64])])


@shape(125)
def products(count):
    return chained(lambda i, x, y: node("MatMul", [x, "w"], [y]), count, [value("v0", [4, 16])],
                   [floats("w", np.eye(16))])


@shape(125)
def ladder(count):
    nodes = [node("Add", [f"v{i}", f"v{max(0, i - 1)}"], [f"v{i + 1}"]) for i in range(count)]
    return model(nodes, [value("v0", [64])], [value(f"v{count}")])


@shape(100)
def diamonds(count):
    nodes = []
    for i in range(count):
        nodes += [node("Relu", [f"v{i}"], [f"a{i}"]), node("Neg", [f"v{i}"], [f"b{i}"]),
                  node("Add", [f"a{i}", f"b{i}"], [f"v{i + 1}"])]
    return model(nodes, [value("v0", [64])], [value(f"v{count}")])


@shape(50)
def fan(count):
    nodes = [node("Mul", ["x", f"c{i}"], [f"a{i}"]) for i in range(count)]
    nodes.append(node("Sum", [f"a{i}" for i in range(count)], ["y"]))
    return model(nodes, [value("x", [64])], [value("y")], [floats(f"c{i}", np.arange(64) + i) for i in range(count)])


@shape(500)
def wide_sum(count):
    return model([node("Sum", ["x"] * count, ["y"])], [value("x", [64])], [value("y")])


@shape(500)
def wide_concat(count):
    return model([node("Concat", ["x"] * count, ["y"], axis=0)], [value("x", [4])], [value("y")])


@shape(500)
def wide_split(count):
    return model([node("Split", ["x"], [f"y{i}" for i in range(count)], axis=0, num_outputs=count)], [value("x", [count])],
                 [value(f"y{i}") for i in range(count)])


@shape(500)
def inputs(count):
    return model([node("Relu", ["x0"], ["y"])], [value(f"x{i}", [4]) for i in range(count)], [value("y")])


@shape(40)
def tower(count):
    """Residual blocks."""
    nodes = []
    for i in range(count):
        nodes += [node("MatMul", [f"v{i}", "w"], [f"a{i}"]), node("Relu", [f"a{i}"], [f"b{i}"]),
                  node("MatMul", [f"b{i}", "w"], [f"c{i}"]), node("Add", [f"v{i}", f"c{i}"], [f"v{i + 1}"])]
    return model(nodes, [value("v0", [4, 16])], [value(f"v{count}")], [floats("w", np.eye(16))])


@shape(40)
def tower_of_unknown_size(count):
    nodes = []
    for i in range(count):
        nodes += [node("MatMul", [f"v{i}", "w"], [f"a{i}"]), node("Softmax", [f"a{i}"], [f"b{i}"]),
                  node("Add", [f"v{i}", f"b{i}"], [f"v{i + 1}"])]
    return model(nodes, [value("v0", ["n", 16])], [value(f"v{count}")], [floats("w", np.eye(16))])


@shape(250)
def flips(count):
    """Movement alone: along one axis and the other in turn, which nothing takes together."""
    ends = [ints("s", [-1]), ints("e", [-(2**63)]), ints("a0", [0]), ints("a1", [1])]
    return chained(lambda i, x, y: node("Slice", [x, "s", "e", f"a{i % 2}", "s"], [y]), count, [value("v0", [8, 8])], ends)


@shape(125)
def turns(count):
    """Transposes and reshapes of unknown sizes in turn, each of which divides what those before have made."""
    nodes = []
    for i in range(count):
        nodes += [node("Transpose", [f"v{i}"], [f"t{i}"], perm=[1, 0]), node("Reshape", [f"t{i}", f"s{i % 2}"], [f"v{i + 1}"])]
    return model(nodes, [value("v0", ["n", "m"])], [value(f"v{count}")], [ints("s0", [-1, 24]), ints("s1", [-1, 16])])


@shape(10)
def thirds(count):
    """Every third element behind all: sizes name each one before them twice."""
    ends = [ints("s", [0]), ints("e", [2**63 - 1]), ints("a", [0]), ints("k", [3])]
    nodes = []
    for i in range(count):
        nodes += [node("Slice", [f"v{i}", "s", "e", "a", "k"], [f"t{i}"]), node("Concat", [f"v{i}", f"t{i}"], [f"v{i + 1}"], axis=0)]
    return model(nodes, [value("v0", ["n"])], [value(f"v{count}")], ends)


@shape(12)
def windows(count):
    """Means of padded windows of so many elements along each dim."""
    pool = node("AveragePool", ["x"], ["y"], kernel_shape=[2 * count + 1] * 2, pads=[count] * 4)
    return model([pool], [value("x", [1, 1, 128, 128])], [value("y")])


@large
def flips_20000():
    return flips(20000)


@large
def products_20000():
    return products(20000)


@large
def relus_100000():
    return chained(lambda i, x, y: node("Relu", [x], [y]), 100000, [value("v0", [64])])


@large
def sum_50000():
    return wide_sum(50000)


@large
def concat_50000():
    return wide_concat(50000)


@large
def split_50000():
    return wide_split(50000)


@large
def inputs_20000():
    return inputs(20000)


def add_nodes():
    from onnx import TensorProto
    def single(name, operator, inputs, opset=21, **attributes):
        NODES[name] = model([node(operator, [given.name if given else "" for given in inputs], ["y"], **attributes)], [given for given in inputs if given], [value("y")], opset=opset)
    image, sizes, number = value("x", ["n", "c", "h", "w"]), value("s", [4], TensorProto.INT64), value("l", [], TensorProto.INT64)
    grid, signal = value("g", ["n", "p", "q", 2]), value("x", ["n", "l", 1])
    single("relu", "Relu", [image])
    for padding in "zeros", "border", "reflection":
        for mode in "linear", "cubic":
            single(f"grid_sample_{mode}_{padding}", "GridSample", [image, grid], mode=mode, padding_mode=padding)
    single("grid_sample_3d", "GridSample", [value("x", ["n", "c", "d", "h", "w"]), value("g", ["n", "p", "q", "r", 3])])
    for mode in "linear", "cubic":
        for antialias in 0, 1:
            single(f"resize_{mode}_{antialias}", "Resize", [image, None, None, sizes], mode=mode, antialias=antialias)
    single("dft", "DFT", [signal], opset=17)
    single("stft", "STFT", [signal, number, value("w", ["m"])])
    single("mean_of_101", "AveragePool", [image], kernel_shape=[101, 101], pads=[50] * 4)
    single("mean_same", "AveragePool", [image], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")


def compile_once(binaries, data, most_seconds, most_gigabytes):
    """Exit code or None where it takes too long, processor time, gigabytes."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "model.onnx"), "wb") as f:
            f.write(data)
        address_space = int((most_gigabytes + 6) * 2**30)
        child = subprocess.Popen([os.path.join(binaries, "tc-compile"), "model.onnx", "-o", "model.bin", "--jobs", "1"],
                                 cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (address_space,) * 2))
        end = time.monotonic() + most_seconds
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                os.killpg(child.pid, 9)
                done, status, usage = os.wait4(child.pid, 0)
                child.returncode = -9
                return None, most_seconds, usage.ru_maxrss / 2**20
            time.sleep(0.005)
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def count_operations(binaries, data):
    """Operations of the kernel phase. The model compiles."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "model.onnx"), "wb") as f:
            f.write(data)
        command = [os.path.join(binaries, "tc-compile"), "model.onnx", "-o", "-", "--compile-to", "kernel"]
        text = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return len(re.findall(r"^ +(?:%[\w:, %]+ = )?\w+\.\w", text, re.MULTILINE))


class Cost(typing.NamedTuple):
    code: int | None  # of tc-compile; None: it took too long
    seconds: float    # of processor time
    gigabytes: float

    def least(self, other):
        code = None if None in (self.code, other.code) else max(self.code, other.code)
        return Cost(code, min(self.seconds, other.seconds), min(self.gigabytes, other.gigabytes))

    def exceeds(self, half):
        return self.seconds > MOST_PER_DOUBLING * half.seconds or self.gigabytes > MOST_PER_DOUBLING * half.gigabytes


def measure(binaries, data, runs=2):
    return functools.reduce(Cost.least, (Cost(*compile_once(binaries, data, 60, 2)) for _ in range(runs)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--doublings", type=int, default=2)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    binaries = os.path.abspath(options.binaries)
    wrong = []
    for name in (options.shapes or LARGE) if options.large else []:
        data = LARGE[name]()
        code, seconds, gigabytes = compile_once(binaries, data, 3 * LARGE_SECONDS, LARGE_GIGABYTES)
        for _ in range(LARGE_RUNS):
            if code == 0 and seconds > LARGE_SECONDS:
                again = compile_once(binaries, data, 3 * LARGE_SECONDS, LARGE_GIGABYTES)
                code, seconds, gigabytes = again if again[1] < seconds else (code, seconds, gigabytes)
        print(f"{name:24} {seconds:7.2f} s {gigabytes:6.2f} GB  exit {code}", flush=True)
        if code != 0 or seconds > LARGE_SECONDS or gigabytes > LARGE_GIGABYTES:
            wrong.append(name)
    add_nodes()
    nodes = [] if options.large else [name for name in NODES if name in (options.shapes or NODES)]
    most = MOST_OF_A_RELU * count_operations(binaries, NODES["relu"]) if nodes else 0
    for name in nodes:
        code, seconds, _ = compile_once(binaries, NODES[name], 60, 2)
        count = count_operations(binaries, NODES[name]) if code == 0 else 0
        print(f"{name:30} {seconds:7.2f} s  exit {code}  {count} operations of {most}", flush=True)
        if code != 0 or count > most:
            wrong.append(f"{name}: more than {MOST_OF_A_RELU} times the operations of a Relu, or an error")
    for name in (options.shapes or SHAPES) if not options.large else []:
        if name in NODES:
            continue
        make, count = SHAPES[name]
        before = None
        for doubling in range(options.doublings + 1):
            data = make(count << doubling)
            cost = measure(binaries, data)
            if before and cost.code == 0 and cost.exceeds(before):
                cost = cost.least(measure(binaries, data, MORE_RUNS))
                before = before.least(measure(binaries, make(count << doubling - 1), MORE_RUNS))
            growth = "" if before is None else f"  {cost.seconds / before.seconds:.2f} times the time"
            print(f"{name:24} {count << doubling:6} {cost.seconds:7.2f} s {cost.gigabytes:6.2f} GB  exit {cost.code}{growth}",
                  flush=True)
            if cost.code != 0:
                wrong.append(f"{name} of {count << doubling}: exit code {cost.code}")
                break
            if before and cost.exceeds(before):
                wrong.append(f"{name} of {count << doubling}: more than {MOST_PER_DOUBLING} times what half of it takes")
            before = cost
    for what in wrong:
        print(f"FAILED {what}")
    print("watchdog:", "ok" if not wrong else f"{len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
