#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile zoo graphs with tc-compile, run them with tc-run and compare with the float64 references.

usage: run.py BIN [--models NAME ...] [--graphs model model_ts] [--zoo ZOO] [--keep FOLDER]

BIN is the folder of tc-compile and tc-run. Weights come from fill.py, or with --zoo from a folder of full exports. The checks
of one graph, each of which passes or fails by itself:

  compile        tc-compile exits 0
  deterministic  a second compile gives the same bytes (models up to 64 MB)
  size           the artifact is at most 1.02 times the weights plus 1 MB per CPU variant
  outputs        tc-run with one thread agrees with the reference: max|a-b| <= 2e-5 max|b|
  threads        two threads give the same bits as one
  v3             --variant x86-64-v3 agrees with the reference
  structure      --explain reports at most as many kernels as KERNELS allows, and an arena near the largest live bytes
  dims           the same artifact serves other sizes (models with dynamic sizes, not with --zoo)

expected_failures.txt lists checks that do not pass yet, with reasons; one that passes all the same is a failure, so that the list stays
true. Exit status 0: every check did what was expected.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import fill

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_REL = "2e-5"
VARIANTS = 2  # of the default --cpu
# Kernels allowed per model, of graph model.onnx.
KERNELS = {"fusion_demo": 1, "pointwise_4096": 1, "info_scorer": 1, "reduction_2000": 2, "small_ops_b8": 20, "simple_net": 2,
           "block768": 7, "resnet18": 23}
ARENA_PER_LIVE = 1.3
OTHER_DIMS = {"minilm": [(1, 1), (1, 7), (2, 65)], "block768_dyn": [(1, 1), (1, 7), (3, 200)]}


class Failed(Exception):
    """A check that did not pass, with the reason."""


def run(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace")
    if result.returncode:
        text = (result.stderr.strip() or result.stdout.strip())[-1500:]
        raise Failed(f"{os.path.basename(command[0])} exited with {result.returncode}: {text}")


def same_bits(a, b):
    a, b = np.load(a), np.load(b)
    return a.files == b.files and all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a.files)


def weight_bytes(path):
    model = onnx.load(path)
    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField("t"))]
    return sum(len(t.raw_data) or len(t.SerializeToString()) for t in tensors)


class Graph:
    """One graph of one model, with its files in `folder`."""

    def __init__(self, tools, name, graph, folder, zoo):
        self.name, self.graph, self.folder = name, graph, folder
        self.compiler, self.runner = (os.path.join(tools, t) for t in ("tc-compile", "tc-run"))
        source = os.path.join(zoo, name) if zoo else folder
        if not zoo:
            fill.fill(folder, name, graph)
        self.model = os.path.join(source, graph + ".onnx")
        self.inputs = os.path.join(source, "inputs.npz")
        self.expected = os.path.join(source, "outputs.npz" if zoo else fill.outputs_file(graph))
        self.artifact = self.at("artifact.bin")

    def at(self, name):
        return os.path.join(self.folder, name)

    def execute(self, outputs, *options, inputs=None, expected=None):
        run(self.runner, self.artifact, "--inputs", inputs or self.inputs, "--outputs", self.at(outputs),
            "--expect", expected or self.expected, "--max-rel", MAX_REL, *options)

    def has_structure(self):
        return self.graph == "model" and self.name in KERNELS

    def compile(self):
        explain = [f"--explain={self.at('explain.json')}"] if self.has_structure() else []
        run(self.compiler, self.model, "-o", self.artifact, *explain)

    def structure(self):
        with open(self.at("explain.json")) as f:
            report = json.load(f)
        kernels, memory = report["kernel_count"], report["memory"]
        if kernels > KERNELS[self.name]:
            raise Failed(f"{kernels} kernels, {KERNELS[self.name]} are allowed")
        if memory["arena_bytes"] > ARENA_PER_LIVE * max(memory["live_bytes"], 64):
            raise Failed(f"an arena of {memory['arena_bytes']} bytes for at most {memory['live_bytes']} live ones")

    def deterministic(self):
        run(self.compiler, self.model, "-o", self.at("again.bin"))
        with open(self.artifact, "rb") as a, open(self.at("again.bin"), "rb") as b:
            if a.read() != b.read():
                raise Failed("two compiles of the same model differ")

    def size(self):
        size, weights = os.path.getsize(self.artifact), weight_bytes(self.model)
        limit = 1.02 * weights + VARIANTS * (1 << 20)
        if size > limit:
            limit += 1.02 * self.transformed_bytes()
        if size > limit:
            raise Failed(f"the artifact has {size} bytes, {weights} bytes of weights allow {limit:.0f}")

    def transformed_bytes(self):
        """What the filters that take Winograd's algorithm grow by: 36 elements for 9, output channels in panels of 16."""
        ir = subprocess.run([self.compiler, self.model, "-o", self.at("again.bin"), "--print-ir-after", "tc-choose-schedule"],
                            capture_output=True, text=True, check=True).stderr  # fmt: skip
        grown = 0
        for region in ir.split("kernel.region")[1:]:
            if "#kernel.cpu.winograd" in region:
                channels, columns = map(int, re.search(r"prim\.conv .*?, tensor<3x3x(\d+)x(\d+)xf32>\)", region).groups())
                grown += 4 * channels * (36 * (-(-columns // 16) * 16) - 9 * columns)
        return grown

    def outputs(self):
        self.execute("one.npz", "--threads", 1)

    def threads(self):
        self.execute("two.npz", "--threads", 2)
        if not same_bits(self.at("one.npz"), self.at("two.npz")):
            raise Failed("outputs with one and two threads differ")

    def v3(self):
        self.execute("v3.npz", "--variant", "x86-64-v3", "--threads", 2)

    def dims(self):
        model = fill.fill_model(fill.graph_path(self.name, self.graph))
        for batch, sequence in OTHER_DIMS[self.name]:
            inputs, expected = self.at("other_inputs.npz"), self.at("other_outputs.npz")
            arrays = fill.make_inputs(self.name, {"batch": batch, "sequence": sequence})
            np.savez(inputs, **arrays)
            fill.write_reference(model, arrays, expected)
            try:
                self.execute("other.npz", "--threads", 2, inputs=inputs, expected=expected)
            except Failed as error:
                raise Failed(f"batch={batch}, sequence={sequence}: {error}")

    def checks(self, zoo):
        names = ["compile"]
        if os.path.getsize(self.model) <= 64 << 20:
            names.append("deterministic")
        names += ["structure"] if self.has_structure() else []
        names += ["size", "outputs", "threads", "v3"]
        return names + (["dims"] if self.name in OTHER_DIMS and not zoo else [])


def expected_failures():
    """{"model/graph check": reason} from expected_failures.txt."""
    known = {}
    with open(os.path.join(HERE, "expected_failures.txt")) as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key, colon, reason = line.partition(": ")
            if not colon or len(key.split()) != 2:
                sys.exit(f'expected_failures.txt:{number}: error: expected "<model>/<graph> <check>: <reason>"')
            known[key] = reason
    return known


def test_graph(graph, known, zoo):
    """Run all checks of one graph; returns (passed, failed)."""
    counts = [0, 0]
    for check in graph.checks(zoo):
        key = f"{graph.name}/{graph.graph} {check}"
        start = time.perf_counter()
        try:
            getattr(graph, check)()
            ok, text = key not in known, "passed" if key not in known else f"passed, but is listed as failing: {known[key]}"
        except Failed as error:
            ok, text = key in known, f"fails as expected: {known[key]}" if key in known else f"FAILED: {error}"
        print(f"{key}: {text} ({time.perf_counter() - start:.2f} s)", flush=True)
        counts[0 if ok else 1] += 1
        if check == "compile" and not os.path.exists(graph.artifact):
            break
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--models", nargs="+", default=fill.all_models(), metavar="NAME")
    parser.add_argument("--graphs", nargs="+", default=["model", "model_ts"], choices=["model", "model_ts"])
    parser.add_argument("--zoo", help="folder of full exports made by make_zoo.py")
    parser.add_argument("--keep", metavar="FOLDER", help="keep models, artifacts and outputs there")
    options = parser.parse_args()
    known = expected_failures()
    passed = failed = 0
    for name in options.models:
        for graph in options.graphs:
            if not os.path.exists(fill.graph_path(name, graph)):
                continue
            with tempfile.TemporaryDirectory(prefix="tc-zoo-") as temporary:
                folder = os.path.join(options.keep, name, graph) if options.keep else temporary
                os.makedirs(folder, exist_ok=True)
                good, bad = test_graph(Graph(options.bin, name, graph, folder, options.zoo), known, options.zoo)
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
