#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of quantised operands, in sizes that reach every kernel of every CPU variant, against NumPy.

usage: quantized.py BIN [CASE ...]
"""
import sys

import numpy as np

from one_node import case, main

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


few_bits()

if __name__ == "__main__":
    sys.exit(main(variants=("x86-64-v3", "x86-64-v4")))
