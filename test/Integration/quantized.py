#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of quantised operands, in sizes that reach every kernel of every CPU variant, against NumPy.

usage: quantized.py BIN [CASE ...]
"""
import sys

import numpy as np

from one_node import CONVOLUTIONS, case, convolve, main

MS = "com.microsoft"
F, H = np.float32, np.float16


def rng(seed):
    return np.random.default_rng(seed)


def normal(seed, *shape, kind=F):
    return rng(seed).standard_normal(shape).astype(kind)


#===--- weights of few bits --------------------------------------------------------------------------------------------------===#

def pack(numbers, bits):
    """Numbers along the last dim to bytes, low bits first."""
    each = 8 // bits
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % each)])
    parts = numbers.reshape(*numbers.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(each, dtype=np.uint8) * bits).astype(np.uint8), -1).astype(np.uint8)


def few_bits():
    # Rows, K, N: none; one and few, which read the weights as they are stored; many, through panels in f32. K ends within blocks
    # and has several panels' depth; N ends within a panel; blocks of one word and of many.
    for m, k, n, bits, block, zeros, kind in (
            (1, 64, 100, 4, 16, None, F), (0, 64, 100, 4, 32, None, F), (5, 200, 37, 4, 32, "packed", F), (130, 1100, 70, 4, 64, "float", F),
            (8, 256, 33, 2, 16, "packed", F), (9, 300, 40, 8, 128, "packed", F), (1, 600, 48, 4, 512, None, F), (2, 2080, 1, 4, 32, None, F),
            (3, 100, 250, 2, 32, None, F), (1, 1024, 300, 8, 32, "float", F), (17, 1024, 16, 4, 256, None, F), (4, 128, 40, 4, 32, "packed", H)):
        blocks = -(-k // block)
        q, points = rng(1).integers(0, 2 ** bits, (n, blocks, block)), rng(2).integers(0, 2 ** bits, (n, blocks))
        scales = (np.abs(normal(3, n, blocks)) * 0.1 + 0.01).astype(kind)
        given = {None: None, "packed": pack(points, bits), "float": (points + 0.5).astype(kind)}[zeros]
        offset = {None: np.full((n, blocks), 2.0 ** (bits - 1)), "packed": points, "float": points + 0.5}[zeros]
        weights = ((q - offset[..., None]) * scales[..., None].astype(np.float64)).reshape(n, -1)[:, :k]
        x, bias = normal(4, m, k, kind=kind), normal(5, n, kind=kind)
        expected = (x.astype(np.float64) @ weights.T + bias).astype(kind)
        largest = float(np.abs(weights).max()) * k ** 0.5
        case(f"nbits_{m}x{k}x{n}_{bits}_{block}_{zeros}_{np.dtype(kind)}", MS, "MatMulNBits", [x, pack(q, bits), scales, given, None, bias], [expected],
             K=k, N=n, bits=bits, block_size=block, constants=[1, 2, 3, 5], tolerance=1e-5 if kind == F else 2e-3,
             atol=largest * (1e-6 if kind == F else 1e-3))
    # What is no number goes where it belongs.
    x = normal(6, 2, 64)
    x[0, 3], x[1, 5] = np.inf, np.nan
    q = rng(7).integers(0, 16, (80, 2, 32))
    weights = (q - 8.0).reshape(80, 64)
    with np.errstate(invalid="ignore"):
        expected = (x.astype(np.float64) @ weights.T).astype(F)
    case("nbits_no_numbers", MS, "MatMulNBits", [x, pack(q, 4), np.ones((80, 2), F) + F(0) * normal(8, 80, 2)], [expected], K=64, N=80, bits=4,
         block_size=32, constants=[1, 2], tolerance=1e-5, atol=1e-4)


#===--- 8-bit integers -------------------------------------------------------------------------------------------------------===#

def integers(seed, kind, *shape):
    info = np.iinfo(kind)
    return rng(seed).integers(info.min, info.max + 1, shape).astype(kind)


def bytes_by_bytes():
    # Rows, K, N; K and N end within blocks of 4 and 16; zero points: none, one, one a column. The largest sums of all kinds.
    for (m, k, n), left, right in (((1, 64, 48), "uint8", "int8"), ((0, 40, 20), "uint8", "uint8"), ((5, 33, 17), "int8", "int8"),
                                   ((130, 401, 70), "int8", "uint8"), ((29, 256, 200), "uint8", "int8"), ((4, 300, 1), "uint8", "uint8")):
        x, w = integers(10, left, m, k), integers(11, right, k, n)
        if m:
            x[0], w[:, 0] = np.iinfo(left).max, np.iinfo(right).max
        for zeros in ("none", "scalar", "columns"):
            xz, wz = integers(12, left), integers(13, right, *([n] if zeros == "columns" else []))
            # A matrix and one more dim; constant weights and others.
            name = f"integer_{left}_{right}_{m}x{k}x{n}_{zeros}"
            operands = [x, w] if zeros == "none" else [x, w, xz, wz]
            a, b = (x.astype(np.int64), w.astype(np.int64)) if zeros == "none" else (x.astype(np.int64) - int(xz), w.astype(np.int64) - wz)
            expected = (a @ b).astype(np.int32)
            case(name, "", "MatMulInteger", operands, [expected], constants=[1, 2, 3], version=10)
            if zeros != "columns":
                case(name + "_operands", "", "MatMulInteger", operands, [expected], version=10, ways=("static",))
        scales = [F(0.02), np.abs(normal(14, n)) * F(0.01) + F(0.001), F(m + 0.5)]
        yz = np.array(3, left)
        y = ((x.astype(np.int64) - int(xz)) @ (w.astype(np.int64) - wz)) * (scales[0] * scales[1]).astype(np.float64)
        info = np.iinfo(left)
        y = np.clip(np.rint(y / scales[2]) + 3, info.min, info.max).astype(left)
        # Rounding of a half may go either way.
        case(f"qlinear_{left}_{right}_{m}x{k}x{n}", "", "QLinearMatMul", [x, scales[0], xz, w, scales[1], wz, scales[2], yz], [y],
             constants=[1, 2, 3, 4, 5, 6, 7], atol=1)
    # Batches of both operands.
    x, w = integers(15, "uint8", 3, 2, 9, 50), integers(16, "int8", 2, 50, 33)
    case("integer_batches", "", "MatMulInteger", [x, w, np.uint8(7)], [((x.astype(np.int64) - 7) @ w.astype(np.int64)).astype(np.int32)], version=10)
    case("integer_batches_constant", "", "MatMulInteger", [x, w, np.uint8(7)], [((x.astype(np.int64) - 7) @ w.astype(np.int64)).astype(np.int32)],
         constants=[1, 2], version=10, ways=("static",))


def convolutions():
    for name, shape, filters, strides, pads, dilations, groups in CONVOLUTIONS:
        attrs = dict(strides=strides, pads=pads, dilations=dilations, group=groups)
        kinds = [("uint8", "int8")]
        if name in ("3x3", "line", "groups", "depthwise"):
            kinds += [("int8", "uint8"), ("uint8", "uint8"), ("int8", "int8")]
        for left, right in kinds:
            x, w = integers(20, left, *shape), integers(21, right, *filters)
            if x.size:
                x[:, :, 0] = np.iinfo(left).max
            xz, wz = integers(22, left), integers(23, right)
            expected = convolve(x.astype(np.int64) - int(xz), w.astype(np.int64) - int(wz), strides, pads, dilations, groups).astype(np.int32)
            # Sizes of images and batches, and the zero point, only the run knows; channels it may not change here.
            case(f"conv_{name}_{left}_{right}", "", "ConvInteger", [x, w, xz, wz], [expected], constants=[1, 3], version=10,
                 ways=("static", "dynamic") if left == "uint8" else ("static",), **attrs)
            if (left, right) == ("uint8", "int8"):
                expected = convolve(x.astype(np.int64), w.astype(np.int64), strides, pads, dilations, groups).astype(np.int32)
                case(f"conv_{name}_operands", "", "ConvInteger", [x, w], [expected], version=10, ways=("static",), **attrs)
        x, w = integers(24, "uint8", *shape), integers(25, "int8", *filters)
        scales = [F(0.02), np.abs(normal(26, filters[0])) * F(0.01) + F(0.001), F(0.9)]
        bias, xz, yz = integers(27, "int16", filters[0]).astype(np.int32), np.uint8(100), np.uint8(60)
        y = convolve(x.astype(np.int64) - 100, w.astype(np.int64), strides, pads, dilations, groups)
        spread = (slice(None),) + (None,) * (len(shape) - 2)
        y = np.rint((y + bias[spread]) * (scales[0] * scales[1]).astype(np.float64)[spread] / scales[2]) + 60
        case(f"qlinearconv_{name}", "", "QLinearConv", [x, scales[0], xz, w, scales[1], np.zeros(filters[0], np.int8), scales[2], yz, bias],
             [np.clip(y, 0, 255).astype(np.uint8)], constants=[1, 2, 3, 4, 5, 6, 7, 8], atol=1, **attrs)


few_bits()
bytes_by_bytes()
convolutions()

if __name__ == "__main__":
    sys.exit(main(variants=("x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-amx")))
