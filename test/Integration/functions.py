#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of f32 in units of the last place, over all magnitudes, at the ends of their domains, at infinity and NaN.

usage: functions.py BIN

The reference is numpy in f64. Results below the smallest normal number, or made of such, may be 0.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

from checks import check, verdict
from kernels import variants


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def mish(x):
    # tanh(log u) = (u^2 - 1) / (u^2 + 1) without what u = 1 + e^x rounds off.
    e = np.exp(np.minimum(x, 40))
    return x * (e * (e + 2)) / (e * (e + 2) + 2)


# Operator: function, most units in the last place.
FUNCTIONS = {"Exp": (np.exp, 5), "Log": (np.log, 1.5), "Elu": (lambda x: np.where(x > 0, x, np.expm1(x)), 2), "Softplus": (softplus, 2.5), "Mish": (mish, 5),
             "Tanh": (np.tanh, 6), "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 4), "Sinh": (np.sinh, 4), "Cosh": (np.cosh, 4), "Asinh": (np.arcsinh, 4),
             "Acosh": (np.arccosh, 4), "Atanh": (np.arctanh, 4)}
SMALLEST = float(np.finfo(np.float32).tiny)


def points():
    random = np.random.default_rng(1)
    ends = [0, np.inf, np.nan, SMALLEST, 3.4e38, 1, np.nextafter(np.float32(1), 2), np.nextafter(np.float32(1), 0), 88.72, 89, 17.4, 200, 0.5, 0.75, 1.5,
            2.0**24, 2.0**25, 2.0**126, 2.0**127, SMALLEST / 2, 1e-40, 2.0**-149]
    magnitudes = np.concatenate([ends, np.exp(random.uniform(-103, 88, 20000)), random.uniform(0, 1, 20000), random.uniform(0, 100, 20000)])
    return np.concatenate([magnitudes, -magnitudes]).astype(np.float32)


def main():
    bin_dir, x = sys.argv[1], points()
    graph = helper.make_graph([helper.make_node(name, ["x"], [name]) for name in FUNCTIONS], "functions",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [len(x)])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(x)]) for name in FUNCTIONS])
    with tempfile.TemporaryDirectory() as folder:
        model, artifact, given, made = (os.path.join(folder, name) for name in ("model.onnx", "model.bin", "in.npz", "out.npz"))
        with open(model, "wb") as f:
            f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())
        np.savez(given, x=x)
        subprocess.run([f"{bin_dir}/tc-compile", model, "-o", artifact], check=True)
        for variant in variants():
            subprocess.run([f"{bin_dir}/tc-run", artifact, "--inputs", given, "--outputs", made, "--variant", variant], check=True)
            results = np.load(made)
            for name, (function, limit) in FUNCTIONS.items():
                with np.errstate(all="ignore"):
                    expected, got = function(x.astype(np.float64)), results[name]
                    rounded = expected.astype(np.float32)
                same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
                unit = np.spacing(np.maximum(np.abs(rounded), np.float32(SMALLEST)), dtype=np.float32).astype(np.float64)
                with np.errstate(all="ignore"):
                    error = np.where(same, 0, np.abs(got - expected) / unit)
                least = 100 * SMALLEST if name == "Mish" else SMALLEST
                is_tiny = (np.abs(expected) < least) & (np.abs(got) <= least)
                error = np.where(is_tiny, 0, np.where(np.isnan(error), np.inf, error))
                worst = int(np.argmax(error))
                check(f"{variant} {name}", error[worst] <= limit, f"of {x[worst]!r} is {got[worst]!r} for {expected[worst]!r}, {error[worst]:.1f} units")
    return verdict("functions")


if __name__ == "__main__":
    sys.exit(main())
