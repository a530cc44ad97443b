#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of bf16 and f16, by --precision and as the model's own element type, in sizes that reach every kernel of every CPU
variant, against float64 sums of the rounded operands.

usage: halves.py BIN [CASE ...]
"""
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from one_node import CONVOLUTIONS, case, convolve, main

F, B, H, D = np.float32, ml_dtypes.bfloat16, np.float16, np.float64
# Sums of f32 differ from exact ones by less than this times the sum of the products' magnitudes; rounding to a result of 8 or 11
# bits may then go the other way.
SUMS, QUANTUM = 1e-6, {F: 1e-6, B: 2.0**-7, H: 2.0**-10}


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def largest(product, *operands):
    sums = product(*(np.nan_to_num(np.abs(x.astype(D)), posinf=0) for x in operands))
    return float(sums.max()) if sums.size else 0.0


def product_case(name, op, product, operands, kind, precision=None, bias=None, rounds=True, **kw):
    """`kind`: of the operands and the result; `precision`: what the option makes of f32 ones, of f16 only constants, if it
    `rounds` them."""
    constants = kw.get("constants", ())
    operands = [x.astype(kind) for x in operands]
    rounds &= precision == "f16" or operands[1].ndim > 2 or operands[1].shape[-2] > 1 # one step is no sum
    rounded = [x.astype({"bf16": B, "f16": H if i in constants else F, None: kind}[precision if rounds else None]).astype(D) for i, x in enumerate(operands)]
    with np.errstate(invalid="ignore"):
        expected = product(*rounded)
    atol = largest(product, *rounded) * SUMS * (1 if kind == F else 4)
    if bias is not None:
        bias = bias.astype(kind)
        if kind != F: # the product is rounded, and may have been the other way
            atol += QUANTUM[kind] * float(np.abs(expected).max())
            expected = expected.astype(kind).astype(D)
        expected = expected + bias
    case(name, "", op, operands + ([] if bias is None else [bias]), [expected.astype(kind)], tolerance=QUANTUM[kind], atol=atol, options=["--precision", precision] if precision else [], **kw)


# Rows, K, N: none and one; few, many and tiles' ends; K and N that end within words, lines and blocks; one step, which is no sum.
SIZES = ((0, 64, 48), (1, 64, 48), (1, 300, 130), (5, 33, 17), (7, 2, 1), (3, 1, 8), (4, 0, 5), (130, 401, 70), (29, 256, 200), (40, 1024, 90), (16, 31, 16),
         (65, 96, 0))
FEW = ((1, 300, 130), (5, 33, 17), (130, 401, 70))
WIDE = ("x86-64-v3", "x86-64-v4")


def products(form, kind, precision):
    isOption = precision is not None
    # Kernels of f16 are those of f32.
    variants = WIDE if H in (kind, {"f16": H}.get(precision)) else None
    # Products of a depth that only the run knows stay in f32.
    known = dict(ways=("static",)) if precision == "bf16" else {}

    def add(name, *args, **kw):
        product_case(f"{form}_{name}", *args, kind=kind, precision=precision, variants=variants, **kw)

    for m, k, n in SIZES if isOption else FEW:
        x, w = normal(1, m, k), normal(2, k, n)
        add(f"{m}x{k}x{n}", "MatMul", np.matmul, [x, w], constants=[1], ways=("static", "dynamic") if (m, k, n) in FEW else ("static",))
        if (m, k, n) in FEW or form == "bf16":
            add(f"{m}x{k}x{n}_operands", "MatMul", np.matmul, [x, w], **known)
    x, w = normal(3, 3, 2, 9, 50), normal(4, 2, 50, 33)
    add("batches", "MatMul", np.matmul, [x, w], **known)
    add("batches_constant", "MatMul", np.matmul, [x, w], constants=[1], ways=("static",))
    # From the right side's transpose, K lies along rows.
    x, w, bias = normal(5, 70, 37), normal(6, 48, 70), normal(7, 48)
    for constants in ([1, 2], []):
        add(f"gemm_{len(constants)}", "Gemm", lambda x, w: x.T @ w.T, [x, w], bias=bias, constants=constants, transA=1, transB=1, **known)
    # What is no number stays in its row or column, whatever stands behind the last step.
    x, w = normal(8, 33, 45), normal(9, 45, 50)
    x[3, 44], x[20, 0], w[44, 7], w[1, 30] = np.inf, np.nan, -np.inf, np.nan
    add("no_numbers", "MatMul", np.matmul, [x, w], constants=[1], ways=("static",))
    add("no_numbers_operands", "MatMul", np.matmul, [x, w], ways=("static",))
    for name, shape, filters, strides, pads, dilations, groups in CONVOLUTIONS:
        if not isOption and name not in ("3x3", "1x1", "groups", "wide_groups", "depthwise"):
            continue
        def apply(x, w, strides=strides, pads=pads, dilations=dilations, groups=groups):
            return convolve(x, w, strides, pads, dilations, groups)
        attrs = dict(strides=strides, pads=pads, dilations=dilations, group=groups)
        x, w = normal(10, *shape), normal(11, *filters)
        # Those with few channels for each group stay as they are, and one pixel of one channel, which one tap of the filter meets: that
        # is no sum.
        isKept = precision == "bf16" and (name == "one" or (groups > 1 and min(filters[1], filters[0] // groups) < 16))
        product_case(f"{form}_conv_{name}", "Conv", apply, [x, w], kind, precision, rounds=not isKept, constants=[1], variants=variants,
                     ways=("static", "dynamic") if name in ("3x3", "wide_groups") else ("static",), **attrs)
        if form == "bfloat16":
            add(f"conv_{name}_operands", "Conv", apply, [x, w], ways=("static",), **attrs)


def same_with_threads(bin_dir):
    """Whether one thread and two give the same bytes, and constants take half of their bytes."""
    failed = 0
    weights = [normal(20, 512, 1024), normal(21, 1024, 300)]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["r"]), helper.make_node("MatMul", ["r", "w1"], ["y"])], "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", 512])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), at("model.onnx"))
        x = normal(22, 333, 512)
        np.savez(at("inputs.npz"), x=x)
        sizes = {}
        for precision, kind in (("f32", F), ("bf16", B), ("f16", H)):
            subprocess.run([f"{bin_dir}/tc-compile", at("model.onnx"), "-o", at("model.bin"), "--precision", precision], check=True)
            sizes[precision] = os.path.getsize(at("model.bin"))
            results = []
            for threads in ("1", "2"):
                subprocess.run([f"{bin_dir}/tc-run", at("model.bin"), "--inputs", at("inputs.npz"), "--outputs", at("outputs.npz"), "--threads", threads],
                               check=True, stdout=subprocess.DEVNULL)
                results.append(np.load(at("outputs.npz"))["y"])
            if results[0].tobytes() != results[1].tobytes():
                print(f"{precision}: two threads compute something else than one")
                failed += 1
            rounded = [w.astype(kind).astype(D) for w in weights]
            left = kind if precision == "bf16" else F
            hidden = np.maximum(x.astype(left).astype(D) @ rounded[0], 0).astype(F).astype(left).astype(D)
            expected = hidden @ rounded[1]
            # Where a hidden value lies by a half of its type, it may be rounded the other way.
            error = np.abs(results[0] - expected).max() / np.abs(expected).max()
            if error > (1e-3 if precision == "bf16" else 2e-6):
                print(f"{precision}: differs by {error} of the largest value")
                failed += 1
        saved = 2 * sum(w.size for w in weights)
        for precision in ("bf16", "f16"):
            if sizes["f32"] - sizes[precision] < 0.8 * saved:
                print(f"{precision}: the artifact has {sizes[precision]} bytes, that of f32 {sizes['f32']}")
                failed += 1
    return failed


for form in (("bf16", F, "bf16"), ("f16", F, "f16"), ("bfloat16", B, None), ("float16", H, None)):
    products(*form)
case("tf32", "", "MatMul", [normal(1, 30, 64), normal(2, 64, 40)], [normal(1, 30, 64) @ normal(2, 64, 40)], atol=2e-5, options=["--precision", "tf32"],
     constants=[1])

if __name__ == "__main__":
    code = main(variants=("x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-amx"))
    if not sys.argv[2:]:
        code |= bool(same_with_threads(sys.argv[1]))
    sys.exit(code)
