# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc-expand-narrow-types keeps every bit: conversions to and from narrow types, before and after the pass, in the interpreter.

usage: check_narrow_types.py TC_OPT TC_INTERPRET
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

tc_opt, tc_interpret = sys.argv[1:3]
FLOATS = ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f4E2M1FN"]
INTS = ["i4", "ui4", "i2", "ui2"]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{command}: {result.stderr}")


def results(folder, text, **inputs):
    """Outputs of the function before and after the pass."""
    path = lambda name: os.path.join(folder, name)
    with open(path("before.mlir"), "w") as f:
        f.write(text)
    np.savez(path("in.npz"), **inputs)
    run(tc_opt, path("before.mlir"), "-tc-expand-narrow-types", "-o", path("after.mlir"))
    outputs = []
    for name in "before", "after":
        run(tc_interpret, path(f"{name}.mlir"), "--inputs", path("in.npz"), "--outputs", path(f"{name}.npz"))
        with np.load(path(f"{name}.npz")) as arrays:
            outputs.append(arrays["output_0"])
    return outputs


def check(folder, source, narrow, back, x):
    """source -> narrow -> back."""
    n = len(x)
    before, after = results(folder, f"""func.func @f(%x: tensor<{n}x{source}>) -> tensor<{n}x{back}> {{
  %0 = prim.convert %x : tensor<{n}x{source}> -> tensor<{n}x{narrow}>
  %1 = prim.convert %0 : tensor<{n}x{narrow}> -> tensor<{n}x{back}>
  return %1 : tensor<{n}x{back}>
}}""", input_0=x)  # fmt: skip
    same = (before == after) & (np.signbit(before) == np.signbit(after)) if before.dtype.kind == "f" else before == after
    if before.dtype.kind == "f":
        same |= np.isnan(before) & np.isnan(after)
    if not same.all():
        at = np.argmin(same)
        sys.exit(f"{source} -> {narrow} -> {back}: {x[at]!r} gives {after[at]!r}, expected {before[at]!r}")


rng = np.random.default_rng(0)
halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
bits = rng.integers(0, 1 << 32, 100000, dtype=np.uint64).astype(np.uint32).view(np.float32)
# Ties, their neighbours and powers of two around every exponent of the narrow types.
steps = (np.float32(2.0) ** np.arange(-24, 20, dtype=np.float32))[:, None] * np.arange(0, 4.01, 0.125, dtype=np.float32)
steps = np.concatenate([steps.ravel(), np.nextafter(steps, np.float32(np.inf)).ravel(), np.nextafter(steps, np.float32(0)).ravel()])
singles = np.concatenate([bits, steps, -steps]).astype(np.float32)
with np.errstate(invalid="ignore"):
    doubles = np.concatenate([singles.astype(np.float64), np.nextafter(steps.astype(np.float64), np.inf)])
with tempfile.TemporaryDirectory() as folder:
    for narrow in FLOATS:
        check(folder, "f16", narrow, "f16", halves)
        check(folder, "f32", narrow, "f32", singles)
        check(folder, "f64", narrow, "f64", doubles)
        check(folder, "i32", narrow, "f32", rng.integers(-70000, 70000, 5000, dtype=np.int32))
    for narrow in INTS:
        check(folder, "f32", narrow, "i8", np.concatenate([steps, -steps, np.float32([np.nan, np.inf, -np.inf])]))
        check(folder, "i32", narrow, "i32", np.arange(-300, 300, dtype=np.int32))
print("narrow types: all equal")
