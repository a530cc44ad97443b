# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles functions of prim and compares what they compute with the interpreter.

native.py FILE: each function of FILE that follows lines of the form

    // CASE: f32[3,5] i64[4]<3 i1[]

is compiled on its own (by the tools in PATH) and run with 1 and 2 threads, and as x86-64-v3, on such inputs: random values, integers below the
number; `=0` after the sizes gives zeros, `!` some NaN and infinities. What stands before the first such line (type aliases)
goes with every function. Several CASE lines are several runs.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8,
         "ui8": np.uint8, "i1": np.bool_}


def make(spec, rng):
    kind, shape, rest = re.fullmatch(r"(\w+)\[([\d,]*)\](.*)", spec).groups()
    shape = [int(n) for n in shape.split(",") if n]
    if rest == "=0":
        return np.zeros(shape, TYPES[kind])
    if kind.startswith("f"):
        values = np.asarray(rng.standard_normal(shape))
        if rest == "!" and values.size:
            flat = values.reshape(-1)
            flat[::5], flat[1::7], flat[2::7] = np.nan, np.inf, -np.inf
        return values.astype(TYPES[kind])
    low, high = (0, 2) if kind in ("i1", "ui8") else (-4, 4)
    if rest.startswith("<"):
        low, high = 0, int(rest[1:])
    return rng.integers(low, high, shape).astype(TYPES[kind])


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def main(file):
    text = pathlib.Path(file).read_text()
    functions = re.findall(r"((?:^// CASE:[^\n]*\n)+)(^func\.func .*?^}\n)", text, re.MULTILINE | re.DOTALL)
    if not functions:
        sys.exit(f"{file} has no cases")
    aliases = text[:text.index("// CASE:")]
    for cases, function in functions:
        with tempfile.TemporaryDirectory() as folder:
            model, artifact, given, expected = (pathlib.Path(folder) / name
                                                for name in ("f.mlir", "f.bin", "in.npz", "out.npz"))
            model.write_text(aliases + function)
            run("tc-compile", model, "-o", artifact)
            for number, line in enumerate(cases.splitlines()):
                rng = np.random.default_rng(number)
                arrays = [make(spec, rng) for spec in line.removeprefix("// CASE:").split()]
                np.savez(given, **{f"input_{i}": array for i, array in enumerate(arrays)})
                run("tc-interpret", model, "--inputs", given, "--outputs", expected)
                for options in (["--threads", 1], ["--threads", 2], ["--variant", "x86-64-v3"]):
                    run("tc-run", artifact, "--inputs", given, "--expect", expected, "--rtol", "2e-5", "--atol",
                        "2e-5", *options)
        print(function.split("(")[0].removeprefix("func.func @") + ": ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
