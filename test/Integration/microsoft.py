#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of com.microsoft against references in NumPy, written from ONNX Runtime's docs/ContribOperators.md.

usage: microsoft.py BIN [CASE ...]
"""
import math
import sys

import numpy as np

from one_node import case, main

MS = "com.microsoft"
F = np.float32


def rng(seed):
    return np.random.default_rng(seed)


def normal(seed, *shape, kind=F, scale=1.0):
    return (rng(seed).standard_normal(shape) * scale).astype(kind)


#===--- quantised ------------------------------------------------------------------------------------------------------------===#

def quantize(y, scale, zero, kind):
    info = np.iinfo(kind)
    # As floats of one precision, so that halves round alike.
    q = np.rint((y.astype(F) / F(scale)).astype(F)) + int(zero)
    return np.clip(q, info.min, info.max).astype(kind)


def dequantize(x, scale, zero):
    return ((x.astype(np.int32) - int(zero)).astype(F) * F(scale)).astype(F)


def integers(seed, kind, *shape):
    info = np.iinfo(kind)
    return rng(seed).integers(info.min, info.max + 1, shape).astype(kind)


def quantised():
    for kind in ("uint8", "int8"):
        x, y = integers(1, kind, 3, 1, 17), integers(2, kind, 5, 17)
        zeros = [np.array(z, kind) for z in ((120, 130, 100) if kind == "uint8" else (-5, 7, 0))]
        scales = [F(0.031), F(0.017), F(0.04)]
        a, b = dequantize(x, scales[0], zeros[0]), dequantize(y, scales[1], zeros[1])
        for op, value in (("Add", a + b), ("Mul", a * b)):
            # A product is exact up to its last bit, so that a half may round either way.
            case(f"qlinear_{op}_{kind}", MS, f"QLinear{op}", [x, scales[0], zeros[0], y, scales[1], zeros[1], scales[2], zeros[2]],
                 [quantize(value, scales[2], zeros[2], kind)], atol=1)
        case(f"qlinear_add_no_zero_{kind}", MS, "QLinearAdd", [x, scales[0], None, y, scales[1], None, scales[2], None],
             [quantize(dequantize(x, scales[0], 0) + dequantize(y, scales[1], 0), scales[2], 0, kind)], atol=1)
        to = [F(1 / 256), np.array(0 if kind == "uint8" else -128, kind)]
        case(f"qlinear_sigmoid_{kind}", MS, "QLinearSigmoid", [x, scales[0], zeros[0], *to], [quantize(1 / (1 + np.exp(-a)), *to, kind)], atol=1)
        case(f"qlinear_leaky_{kind}", MS, "QLinearLeakyRelu", [x, scales[0], zeros[0], scales[2], zeros[2]],
             [quantize(np.where(a >= 0, a, a * F(0.2)), scales[2], zeros[2], kind)], atol=1, alpha=0.2)
        e = np.exp(a - a.max(-1, keepdims=True))
        case(f"qlinear_softmax_{kind}", MS, "QLinearSoftmax", [x, scales[0], zeros[0], *to],
             [quantize(e / e.sum(-1, keepdims=True), *to, kind)], atol=1, axis=-1, opset=13)
        image = integers(3, kind, 2, 3, 7, 9)
        v = dequantize(image, scales[0], zeros[0])
        case(f"qlinear_global_pool_{kind}", MS, "QLinearGlobalAveragePool", [image, scales[0], zeros[0], scales[1], zeros[1]],
             [quantize(v.mean((2, 3), keepdims=True), scales[1], zeros[1], kind)], atol=1)
        last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
        case(f"qlinear_global_pool_last_{kind}", MS, "QLinearGlobalAveragePool", [last, scales[0], zeros[0], scales[1], zeros[1]],
             [quantize(v.mean((2, 3), keepdims=True), scales[1], zeros[1], kind).transpose(0, 2, 3, 1)], atol=1, channels_last=1)
        pooled = np.stack([v[:, :, i:i + 5:2, j:j + 7:2] for i in range(3) for j in range(3)]).mean(0)
        case(f"qlinear_pool_{kind}", MS, "QLinearAveragePool", [image, scales[0], zeros[0], scales[1], zeros[1]],
             [quantize(pooled, scales[1], zeros[1], kind)], atol=1, kernel_shape=[3, 3], strides=[2, 2])
        case(f"qlinear_concat_{kind}", MS, "QLinearConcat", [scales[2], zeros[2], x, scales[0], zeros[0], x, scales[1], zeros[1]],
             [quantize(np.concatenate([a, dequantize(x, scales[1], zeros[1])], 1), scales[2], zeros[2], kind)], atol=1, axis=1)
        choice = rng(4).random((5, 17)) < 0.5
        case(f"qlinear_where_{kind}", MS, "QLinearWhere", [choice, y, scales[1], zeros[1], y, scales[0], zeros[0], scales[2], zeros[2]],
             [quantize(np.where(choice, b, dequantize(y, scales[0], zeros[0])), scales[2], zeros[2], kind)], atol=1)
        f = normal(5, 3, 11)
        case(f"quantize_{kind}", MS, "QuantizeLinear", [f, scales[0], zeros[0]], [quantize(f, scales[0], zeros[0], kind)], atol=1)
        case(f"dequantize_{kind}", MS, "DequantizeLinear", [x, scales[0], zeros[0]], [a])

        # Products.
        for m, k, n in ((5, 33, 17), (1, 64, 48)):
            w, columns, points = integers(6, "int8", k, n), np.abs(normal(7, n)) * F(0.01), integers(8, "int8", n) // 16
            lhs, bias = integers(9, kind, 2, m, k), normal(10, n)
            product = (lhs.astype(np.int64) - int(zeros[0])) @ (w.astype(np.int64) - points)
            case(f"integer_to_float_{kind}_{k}", MS, "MatMulIntegerToFloat", [lhs, w, scales[0], columns, zeros[0], points, bias],
                 [(product * (scales[0] * columns) + bias).astype(F)], fixed=[1], constants=[1], tolerance=1e-5, atol=1e-3)
            case(f"integer_to_float_{kind}_{k}_plain", MS, "MatMulIntegerToFloat", [lhs, w, scales[0], scales[1]],
                 [((lhs.astype(np.int64) @ w.astype(np.int64)) * (scales[0] * scales[1])).astype(F)], tolerance=1e-5, atol=1e-3)
            c = rng(11).integers(-500, 500, n).astype(np.int32)
            case(f"qgemm_{kind}_{k}", MS, "QGemm", [lhs[0], scales[0], zeros[0], w.T.copy(), columns, points, c, F(0.5), np.array(3, kind)],
                 [quantize((product[0] + c) * (scales[0] * columns), 0.5, 3, kind)], atol=1, transB=1)
            case(f"qgemm_{kind}_{k}_float", MS, "QGemm", [lhs[0], scales[0], zeros[0], w, columns, points, None, None, None],
                 [(product[0] * (scales[0] * columns)).astype(F)], tolerance=1e-5, atol=1e-3)
        x4, w4 = integers(12, kind, 2, 6, 5, 4), integers(13, "int8", 3, 4, 1, 1)
        acc = np.einsum("nhwc,oc->nhwo", x4.astype(np.int64) - int(zeros[0]), w4[:, :, 0, 0].astype(np.int64))
        case(f"qlinear_conv_last_{kind}", MS, "QLinearConv", [x4, scales[0], zeros[0], w4, scales[1], np.int8(0), F(0.5), zeros[2]],
             [quantize(acc * (scales[0] * scales[1]), 0.5, zeros[2], kind)], atol=1, fixed=[3], channels_last=1)
    for kind in ("int8", "uint8"):
        x, w, columns, bias = normal(14, 3, 5, 20), integers(15, kind, 20, 9), np.abs(normal(16, 9)) * F(0.01), normal(17, 9)
        points = integers(18, kind, 9)
        high, low = max(x.max(), 0), min(x.min(), 0)
        scale = F((high - low) / F(255))
        zero = int(np.clip(np.rint(-low / scale), 0, 255))
        q = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64) - zero
        case(f"dynamic_quantize_{kind}", MS, "DynamicQuantizeMatMul", [x, w, columns, points, bias],
             [((q @ (w.astype(np.int64) - points)) * (scale * columns) + bias).astype(F)], tolerance=1e-4, atol=5e-2)
    flat = np.zeros((2, 20), F)
    case("dynamic_quantize_zero", MS, "DynamicQuantizeMatMul", [flat, w, columns], [np.zeros((2, 9), F)])


def pack(numbers, bits):
    """Numbers along the last dim to bytes, low bits first."""
    each = 8 // bits
    fill = -numbers.shape[-1] % each
    numbers = np.concatenate([numbers, np.zeros((*numbers.shape[:-1], fill), numbers.dtype)], -1)
    parts = numbers.reshape(*numbers.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(each, dtype=np.uint8) * bits), -1).astype(np.uint8)


def few_bits():
    for bits in (2, 4, 8):
        for block, k, n, zeros, kind in ((32, 64, 24, None, F), (16, 50, 7, "packed", F), (32, 96, 33, "float", F), (32, 64, 16, "packed", np.float16)):
            blocks = -(-k // block)
            q = rng(20 + bits).integers(0, 2 ** bits, (n, blocks, block))
            scales = np.abs(normal(21, n, blocks, kind=kind)) * kind(0.1)
            points = rng(22).integers(0, 2 ** bits, (n, blocks)) if zeros else np.full((n, blocks), 2 ** (bits - 1))
            given = {None: None, "packed": pack(points, bits), "float": (points + 0.5).astype(kind)}[zeros]
            offset = points + 0.5 if zeros == "float" else points
            weights = ((q - offset[..., None]) * scales[..., None].astype(np.float64)).reshape(n, -1)[:, :k]
            x, bias = normal(23, 3, 5, k, kind=kind), normal(24, n, kind=kind)
            name = f"nbits_{bits}_{block}_{k}x{n}_{zeros}_{np.dtype(kind)}"
            common = dict(K=k, N=n, bits=bits, block_size=block, constants=[1, 2, 3], tolerance=1e-4 if kind == F else 5e-3,
                          atol=1e-4 if kind == F else 2e-2)
            case(name, MS, "MatMulNBits", [x, pack(q, bits), scales, given, None, bias], [(x.astype(np.float64) @ weights.T + bias).astype(kind)], **common)
        # The weights as operands, and columns whose blocks g_idx names.
        case(f"nbits_{bits}_operands", MS, "MatMulNBits", [x, pack(q, bits), scales, given], [(x.astype(np.float64) @ weights.T).astype(kind)],
             K=k, N=n, bits=bits, block_size=block, tolerance=5e-3, atol=2e-2)
        groups, x, scales = rng(25).integers(0, blocks, k).astype(np.int32), x.astype(F), scales.astype(F)
        by_group = (q.reshape(n, -1)[:, :k] - 2 ** (bits - 1)) * scales[:, groups].astype(np.float64)
        case(f"nbits_{bits}_groups", MS, "MatMulNBits", [x, pack(q, bits), scales, None, groups], [(x.astype(np.float64) @ by_group.T).astype(F)],
             K=k, N=n, bits=bits, block_size=block, constants=[1, 2, 4], tolerance=1e-4, atol=1e-4)
        # Scales and zeros that are one number, and packed zeros whose bytes are equal but not their numbers.
        q, x, half = rng(20 + bits).integers(0, 2 ** bits, (80, 4, 32)), normal(23, 3, 128), 2 ** bits - 1
        for name, scales, points in (("scale", np.full((80, 4), F(0.03)), None), ("zero", normal(21, 80, 4), np.full((80, 4), half // 2)),
                                     ("both", np.full((80, 4), F(0.03)), np.full((80, 4), half // 2)), ("uneven", normal(21, 80, 4), np.tile([1, half - 1], (80, 2)))):
            weights = ((q - (2 ** (bits - 1) if points is None else points[..., None])) * scales[..., None].astype(np.float64)).reshape(80, 128)
            case(f"nbits_{bits}_uniform_{name}", MS, "MatMulNBits", [x, pack(q, bits), scales, None if points is None else pack(points, bits)], [(x.astype(np.float64) @ weights.T).astype(F)],
                 K=128, N=80, bits=bits, block_size=32, constants=[1, 2, 3], tolerance=1e-4, atol=1e-4)
        # Weights stay packed in the artifact.
        n = k = 1024
        q = rng(29).integers(0, 2 ** bits, (n, k // 32, 32)).astype(np.uint8)
        scales, x = normal(19, n, k // 32), normal(23, 2, k)
        weights = ((q.astype(np.float64) - 2 ** (bits - 1)) * scales[..., None]).reshape(n, k)
        case(f"nbits_{bits}_packed", MS, "MatMulNBits", [x, pack(q, bits), scales], [(x.astype(np.float64) @ weights.T).astype(F)], K=k, N=n, bits=bits,
             block_size=32, constants=[1, 2], tolerance=1e-4, atol=1e-3, ways=("static",), max_bytes=n * k * bits // 8 + n * k // 32 * 4 + (1 << 18))
        # Rows of a quantised table; indices out of range give zeros.
        rows, width, block = 9, 52, 16
        blocks = -(-width // block)
        q, points = rng(26).integers(0, 2 ** bits, (rows, width)), rng(27).integers(0, 2 ** bits, (rows, blocks))
        scales = np.abs(normal(28, rows, blocks)) * F(0.1)
        indices = np.array([[0, 3, -1], [8, 9, -10]])
        spread = np.arange(width) // block
        for zeros in (False, True):
            table = ((q - (points[:, spread] if zeros else 2 ** (bits - 1))) * scales[:, spread]).astype(F)
            inside = (indices >= -rows) & (indices < rows)
            expected = np.where(inside[..., None], table[np.where(inside, indices, 0)], F(0))
            case(f"gather_block_{bits}_{zeros}", MS, "GatherBlockQuantized", [pack(q, bits), indices, scales, pack(points, bits) if zeros else None],
                 [expected], bits=bits, block_size=block, gather_axis=0, quantize_axis=1, constants=[0, 2, 3])


#===--- fused ----------------------------------------------------------------------------------------------------------------===#

erf = np.vectorize(math.erf)


def gelu(x):
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def fast_gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def norm(x, epsilon, rms=False):
    x = x - (0 if rms else x.mean(-1, keepdims=True))
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


def fused():
    for kind in (F, np.float16):
        tolerance = dict(tolerance=1e-5, atol=1e-6) if kind == F else dict(tolerance=4e-3, atol=2e-3)
        name = np.dtype(kind).name
        x, bias = normal(30, 3, 5, 34, kind=kind), normal(31, 34, kind=kind)
        wide = x.astype(np.float64)
        case(f"gelu_{name}", MS, "Gelu", [x], [gelu(wide).astype(kind)], **tolerance)
        case(f"bias_gelu_{name}", MS, "BiasGelu", [x, bias], [gelu(wide + bias).astype(kind)], **tolerance)
        case(f"fast_gelu_{name}", MS, "FastGelu", [x], [fast_gelu(wide).astype(kind)], **tolerance)
        case(f"fast_gelu_bias_{name}", MS, "FastGelu", [x, bias], [fast_gelu(wide + bias).astype(kind)], **tolerance)
        case(f"quick_gelu_{name}", MS, "QuickGelu", [x], [(wide / (1 + np.exp(-1.5 * wide))).astype(kind)], alpha=1.5, **tolerance)
        both = wide + bias
        case(f"bias_split_gelu_{name}", MS, "BiasSplitGelu", [x, bias], [(both[..., :17] * gelu(both[..., 17:])).astype(kind)], **tolerance)
        case(f"bias_add_{name}", MS, "BiasAdd", [x, bias, x[::-1].copy()], [(both + wide[::-1]).astype(kind)], **tolerance)
        gamma, beta, skip = normal(32, 34, kind=kind), normal(33, 34, kind=kind), normal(34, 3, 5, 34, kind=kind)
        for shape, other in (("whole", skip), ("rows", skip[0])):
            total = wide + other + bias
            mean, deviation = total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-3)
            case(f"skip_norm_{shape}_{name}", MS, "SkipLayerNormalization", [x, other, gamma, beta, bias],
                 [(norm(total, 1e-3) * gamma + beta).astype(kind), mean.astype(F), deviation.astype(F), total.astype(kind)],
                 epsilon=1e-3, **(tolerance if kind == F else dict(tolerance=1e-2, atol=1e-2)))
        total = wide + skip
        case(f"skip_rms_norm_{name}", MS, "SkipSimplifiedLayerNormalization", [x, skip, gamma],
             [(norm(total, 1e-5, True) * gamma).astype(kind)], epsilon=1e-5, **(tolerance if kind == F else dict(tolerance=1e-2, atol=1e-2)))
    ids, segments = rng(35).integers(0, 50, (2, 7)).astype(np.int32), rng(36).integers(0, 2, (2, 7)).astype(np.int32)
    words, places, parts = normal(37, 50, 24), normal(38, 16, 24), normal(39, 2, 24)
    gamma, beta = normal(40, 24), normal(41, 24)
    mask = np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32)
    total = words[ids] + places[:7] + parts[segments]
    result = (norm(total.astype(np.float64), 1e-6) * gamma + beta).astype(F)
    case("embed_norm", MS, "EmbedLayerNormalization", [ids, segments, words, places, parts, gamma, beta, mask],
         [result, np.array([7, 4], np.int32), total], epsilon=1e-6, atol=1e-5)
    at = rng(42).integers(0, 16, (2, 7)).astype(np.int32)
    total = words[ids] + places[at]
    case("embed_norm_positions", MS, "EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta, None, at],
         [(norm(total.astype(np.float64), 1e-6) * gamma + beta).astype(F), np.zeros(2, np.int32)], epsilon=1e-6, atol=1e-5)

    a, b = normal(43, 2, 3, 5, 7), normal(44, 2, 3, 7, 9)
    product = a.astype(np.float64) @ b
    for ta in (0, 1):
        for tb in (0, 1):
            case(f"fused_matmul_{ta}{tb}", MS, "FusedMatMul",
                 [np.ascontiguousarray(a.swapaxes(2, 3)) if ta else a, np.ascontiguousarray(b.swapaxes(2, 3)) if tb else b],
                 [(product * 0.5).astype(F)], transA=ta, transB=tb, alpha=0.5)
    # [M, B.., K]: dim 0 stands behind the batch.
    case("fused_matmul_batch", MS, "FusedMatMul", [np.ascontiguousarray(a.transpose(2, 0, 1, 3)), b], [product.astype(F)], transBatchA=1)
    case("fused_matmul_vector", MS, "FusedMatMul", [a[0, 0, 0], b[0, 0]], [(a[0, 0, 0].astype(np.float64) @ b[0, 0]).astype(F)], transA=1)
    m, n, c = normal(45, 4, 6), normal(46, 6, 5), normal(47, 5)
    case("fused_gemm", MS, "FusedGemm", [m, n, c], [np.maximum(2 * (m.astype(np.float64) @ n) + c, 0).astype(F)], alpha=2.0, activation="Relu")
    x, w, bias, z = normal(48, 2, 4, 6, 5), normal(49, 3, 4, 1, 1), normal(50, 3), normal(51, 2, 3, 6, 5)
    y = np.einsum("nchw,oc->nohw", x.astype(np.float64), w[:, :, 0, 0]) + bias[:, None, None]
    for name, attrs, result in (("relu", {}, np.maximum(y, 0)), ("sigmoid", {}, 1 / (1 + np.exp(-y))), ("tanh", {}, np.tanh(y)),
                                ("leaky_relu", dict(activation_params=[0.5]), np.where(y < 0, y / 2, y)),
                                ("clip", dict(activation_params=[-0.5, 1.0]), np.clip(y, -0.5, 1)),
                                ("hard_sigmoid", dict(activation_params=[0.25, 0.5]), np.clip(y / 4 + 0.5, 0, 1))):
        kind = "".join(part.capitalize() for part in name.split("_"))
        case(f"fused_conv_{name}", MS, "FusedConv", [x, w, bias], [result.astype(F)], fixed=[1], activation=kind, atol=1e-5, **attrs)
    case("fused_conv_add", MS, "FusedConv", [x, w, bias, z], [np.maximum(y + z, 0).astype(F)], fixed=[1], activation="Relu", atol=1e-5)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    case("nhwc_conv", MS, "NhwcConv", [last, w, bias], [y.transpose(0, 2, 3, 1).astype(F)], fixed=[1], atol=1e-5)
    x = normal(52, 2, 6, 5, 4)
    groups = x.astype(np.float64).reshape(2, 3, -1)
    y = ((groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
    gamma, beta = normal(53, 6), normal(54, 6)
    y = y * gamma[:, None, None] + beta[:, None, None]
    case("group_norm", MS, "GroupNorm", [x, gamma, beta], [y.astype(F)], groups=3, activation=0, channels_last=0, atol=1e-5)
    case("group_norm_last", MS, "GroupNorm", [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), gamma, beta],
         [(y / (1 + np.exp(-y))).transpose(0, 2, 3, 1).astype(F)], groups=3, activation=1, atol=1e-5)
    case("trilu", MS, "Trilu", [x], [np.tril(x)], upper=0)


#===--- attention ------------------------------------------------------------------------------------------------------------===#

def split(x, heads):
    b, t, h = x.shape
    return x.reshape(b, t, heads, h // heads).transpose(0, 2, 1, 3)


def merge(x):
    b, n, t, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, t, n * d)


def attend(q, k, v, scale=None, mask=0.0, causal=False, cap=0.0, sink=None, shown=None):
    """`sink` [N]: one more key of value 0 has these scores; `shown`: a list that takes the scores and the weights."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if cap:
        scores = cap * np.tanh(scores / cap)
    scores = scores + mask
    t, s = scores.shape[-2:]
    if causal:
        scores = np.where(np.arange(s) <= np.arange(t)[:, None] + (s - t), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    weights = e / (e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink[:, None, None] - top)))
    if shown is not None:
        shown += [np.where(np.isneginf(scores), 0, scores), weights]
    return weights @ v


def rotate(x, at, cos, sin, interleaved=False):
    """x [B, N, T, D]; at [B, T]."""
    half = cos.shape[1]
    c, s = cos[at][:, None].astype(np.float64), sin[at][:, None].astype(np.float64)
    y = x.astype(np.float64).copy()
    one, two = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    y[..., one] = x[..., one] * c - x[..., two] * s
    y[..., two] = x[..., two] * c + x[..., one] * s
    return y


def attention():
    tolerance = dict(tolerance=1e-4, atol=1e-5)
    batch, t, n, d = 2, 5, 3, 8
    h = n * d
    x, w, bias = normal(60, batch, t, 12), normal(61, 12, 3 * h, scale=0.3), normal(62, 3 * h)
    q, k, v = (split(p, n) for p in np.split(x.astype(np.float64) @ w + bias, 3, -1))
    common = dict(num_heads=n, fixed=[1], constants=[1], **tolerance)
    case("attention", MS, "Attention", [x, w, bias], [merge(attend(q, k, v)).astype(F)], **common)
    case("attention_no_bias", MS, "Attention", [x, w, None], [merge(attend(*(split(p, n) for p in np.split(x.astype(np.float64) @ w, 3, -1)))).astype(F)], **common)
    case("attention_causal", MS, "Attention", [x, w, bias], [merge(attend(q, k, v, causal=True)).astype(F)], unidirectional=1, **common)
    case("attention_scale", MS, "Attention", [x, w, bias], [merge(attend(q, k, v, scale=0.25)).astype(F)], scale=0.25, **common)
    keep = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], np.int32)
    masked = merge(attend(q, k, v, mask=np.where(keep, 0, -10000)[:, None, None])).astype(F)
    case("attention_mask_2d", MS, "Attention", [x, w, bias, keep], [masked], **common)
    case("attention_mask_3d", MS, "Attention", [x, w, bias, np.repeat(keep[:, None], t, 1)], [masked], **common)
    # Ends, then starts.
    case("attention_mask_ends", MS, "Attention", [x, w, bias, np.array([3, 5, 0, 1], np.int32)], [masked], ways=("static",), **common)
    lengths = np.array([3, 5], np.int32)
    case("attention_mask_lengths", MS, "Attention", [x, w, bias, lengths],
         [merge(attend(q, k, v, mask=np.where(np.arange(t) < lengths[:, None], 0, -10000)[:, None, None])).astype(F)], **common)
    square = (rng(63).random((batch, 1, 9, 9)) < 0.7).astype(np.int32)
    square[..., 0] = 1
    case("attention_mask_4d", MS, "Attention", [x, w, bias, square],
         [merge(attend(q, k, v, mask=np.where(square[:, :, :t, :t], 0, -10000))).astype(F)], **common)
    past = normal(64, 2, batch, n, 4, d)
    keys, values = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    added = normal(65, 1, n, t, 4 + t)
    case("attention_past", MS, "Attention", [x, w, bias, None, past, added],
         [merge(attend(q, keys, values, mask=added, causal=True)).astype(F), np.stack([keys, values]).astype(F)], unidirectional=1, **common)
    wv = normal(66, 12, 2 * h + n * 5, scale=0.3)
    p = x.astype(np.float64) @ wv
    case("attention_hidden", MS, "Attention", [x, wv, None],
         [merge(attend(split(p[..., :h], n), split(p[..., h:2 * h], n), split(p[..., 2 * h:], n))).astype(F)], qkv_hidden_sizes=[h, h, n * 5], **common)

    qx, qw = integers(67, "uint8", batch, t, 12), integers(68, "int8", 12, 3 * h)
    scales = [F(0.02), np.abs(normal(69, 3 * h)) * F(0.02)]
    product = ((qx.astype(np.int64) - 128) @ (qw.astype(np.int64) - 3)) * (scales[0] * scales[1].astype(np.float64)) + bias
    case("qattention", MS, "QAttention", [qx, qw, bias, *scales, keep, np.uint8(128), np.int8(3)],
         [merge(attend(*(split(p, n) for p in np.split(product, 3, -1)), mask=np.where(keep, 0, -10000)[:, None, None])).astype(F)],
         num_heads=n, constants=[1], fixed=[1], tolerance=1e-3, atol=1e-4)

    # MultiHeadAttention; hidden sizes may come at run time, and the scale with them.
    s, e = 7, 10
    Q, K, V, bias = normal(70, batch, t, h), normal(71, batch, s, h), normal(72, batch, s, n * e), normal(73, 2 * h + n * e)
    parts = [split(a.astype(np.float64), n) for a in (Q, K, V)]
    biased = [split(a.astype(np.float64) + c, n) for a, c in zip((Q, K, V), np.split(bias, [h, 2 * h]))]
    any_size = dict(num_heads=n, **tolerance)
    case("mha", MS, "MultiHeadAttention", [Q, K, V], [merge(attend(*parts)).astype(F)], **any_size)
    case("mha_bias", MS, "MultiHeadAttention", [Q, K, V, bias],
         [merge(attend(*biased)).astype(F), biased[1].astype(F), biased[2].astype(F)], **any_size)
    hidden = (rng(74).random((batch, s)) < 0.7).astype(np.int32)
    hidden[:, 0] = 1
    case("mha_mask", MS, "MultiHeadAttention", [Q, K, V, None, hidden, normal(75, batch, 1, t, s)],
         [merge(attend(*parts, mask=np.where(hidden, 0, -10000)[:, None, None] + normal(75, batch, 1, t, s))).astype(F)], **any_size)
    packed = normal(76, batch, t, n, 3, d)
    case("mha_packed", MS, "MultiHeadAttention", [packed, None, None],
         [merge(attend(*(packed[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)), causal=True)).astype(F)], unidirectional=1, **any_size)
    pair = normal(77, batch, s, n, 2, d)
    case("mha_packed_pair", MS, "MultiHeadAttention", [Q, pair, None],
         [merge(attend(parts[0], pair[:, :, :, 0].transpose(0, 2, 1, 3), pair[:, :, :, 1].transpose(0, 2, 1, 3))).astype(F)], **any_size)
    heads_k, heads_v = normal(78, batch, n, s, d), normal(79, batch, n, s, d)
    case("mha_cross", MS, "MultiHeadAttention", [Q, heads_k, heads_v], [merge(attend(parts[0], heads_k, heads_v)).astype(F)], **any_size)
    k1, v1, pk, pv = normal(80, batch, t, h), normal(81, batch, t, h), normal(82, batch, n, 4, d), normal(83, batch, n, 4, d)
    keys, values = np.concatenate([pk, split(k1, n)], 2), np.concatenate([pv, split(v1, n)], 2)
    case("mha_past", MS, "MultiHeadAttention", [Q, k1, v1, None, None, None, pk, pv],
         [merge(attend(parts[0], keys, values, causal=True)).astype(F), keys, values], unidirectional=1, **any_size)
    half = [a.astype(np.float16) for a in (Q, K, V)]
    case("mha_float16", MS, "MultiHeadAttention", half, [merge(attend(*(split(a, n) for a in half))).astype(np.float16)],
         num_heads=n, tolerance=5e-3, atol=5e-3)

    # Rotary embeddings.
    angles = rng(84).random((20, 4)) * 6
    cos, sin = np.cos(angles).astype(F), np.sin(angles).astype(F)
    at = rng(85).integers(0, 20, (batch, t))
    four = split(Q, n)
    for interleaved in (0, 1):
        case(f"rotary_4d_{interleaved}", MS, "RotaryEmbedding", [np.ascontiguousarray(four), at, cos, sin],
             [rotate(four, at, cos, sin, interleaved).astype(F)], interleaved=interleaved, **tolerance)
        case(f"rotary_3d_{interleaved}", MS, "RotaryEmbedding", [Q, np.array([3]), cos, sin],
             [merge(rotate(four, np.tile(3 + np.arange(t), (batch, 1)), cos, sin, interleaved)).astype(F)], interleaved=interleaved,
             num_heads=n, fixed=[1], **tolerance)
    narrow = cos[:, :2].copy(), sin[:, :2].copy()
    case("rotary_part", MS, "RotaryEmbedding", [Q, at, *narrow], [merge(rotate(four, at, *narrow)).astype(F)], num_heads=n, rotary_embedding_dim=4,
         **tolerance)

    # GroupQueryAttention: 6 heads in 2 groups.
    n, g, d = 6, 2, 16
    cos, sin = (np.cos(rng(86).random((32, d // 2)) * 6).astype(F), np.sin(rng(86).random((32, d // 2)) * 6).astype(F))
    for name, batch, rows, before, lengths, attrs in (
            ("prompt", 2, 5, 0, [5, 5], {}), ("ragged_prompt", 2, 5, 0, [5, 3], {}), ("step", 2, 1, 6, [7, 7], {}),
            ("ragged_step", 3, 1, 6, [7, 4, 1], {}), ("chunk", 1, 4, 6, [10], {}), ("buffer", 2, 1, 12, [7, 5], {}),
            ("rotary", 2, 5, 0, [5, 5], dict(do_rotary=1)), ("rotary_step", 2, 1, 6, [7, 3], dict(do_rotary=1, rotary_interleaved=1)),
            ("window", 1, 6, 4, [10], dict(local_window_size=3)), ("softcap", 1, 6, 4, [10], dict(softcap=2.0)),
            ("packed", 2, 5, 0, [5, 5], dict(do_rotary=1)), ("scale", 1, 6, 4, [10], dict(scale=0.5)),
            ("smooth", 2, 5, 0, [5, 3], dict(smooth_softmax=1)), ("sink", 1, 6, 4, [10], dict(local_window_size=3)),
            ("sink_cap", 2, 1, 6, [7, 4], dict(softcap=2.0)), ("scores", 1, 6, 4, [10], dict(qk_output=1, softcap=3.0, local_window_size=4)),
            ("weights", 2, 1, 6, [7, 7], dict(qk_output=2, smooth_softmax=1)),
            ("norms", 2, 5, 0, [5, 5], dict(do_rotary=1, qk_norm_epsilon=1e-3))):
        q, k, v = normal(87, batch, rows, n * d), normal(88, batch, rows, g * d), normal(89, batch, rows, g * d)
        pk, pv = normal(90, batch, g, before, d), normal(91, batch, g, before, d)
        total = max(lengths)
        counts = np.maximum(np.array(lengths) - rows, 0)
        at = counts[:, None] + np.arange(rows)
        Q, K, V = split(q, n).astype(np.float64), split(k, g).astype(np.float64), split(v, g)
        sink = normal(92, n) if "sink" in name else np.zeros(n) if "smooth_softmax" in attrs else None
        norms = [normal(93, d), normal(94, d)] if name == "norms" else []
        if norms:
            Q, K = (a / np.sqrt((a * a).mean(-1, keepdims=True) + attrs["qk_norm_epsilon"]) * w for a, w in zip((Q, K), norms))
        if "do_rotary" in attrs:
            Q, K = (rotate(a, at, cos, sin, attrs.get("rotary_interleaved", 0)) for a in (Q, K))
        size = max(before, total)
        keys, values = np.zeros((batch, g, size, d)), np.zeros((batch, g, size, d))
        for cache, past, fresh in ((keys, pk, K), (values, pv, V)):
            cache[:, :, :before] = past
            for i, count in enumerate(counts):
                cache[i, :, count:count + rows] = fresh[i]
        other = np.arange(total)
        seen = other <= at[..., None]
        if "local_window_size" in attrs:
            seen &= other > at[..., None] - attrs["local_window_size"]
        spread = [np.repeat(c[:, :, :total], n // g, 1) for c in (keys, values)]
        shown = []
        bias = normal(95, 1, n, rows, total) if name == "scores" else 0
        result = attend(Q, *spread, mask=np.where(seen, 0, -np.inf)[:, None] + bias, scale=attrs.get("scale"), cap=attrs.get("softcap", 0),
                        sink=sink, shown=shown)
        operands = [q, k, v, pk, pv]
        if name == "packed":
            operands = [np.concatenate([q, k, v], -1), None, None, None, None]
        elif before == 0:
            operands[3:5] = [None, None]
        operands += [np.array(lengths, np.int32) - 1, np.array(total, np.int32)]
        if "do_rotary" in attrs:
            operands += [cos, sin]
        for i, more in ((10, bias if name == "scores" else None), (11, sink if "sink" in name else None), *zip((14, 15), norms)):
            if more is not None:
                operands += [None] * (i - len(operands)) + [more]
        expected = [merge(result).astype(F), keys.astype(F), values.astype(F)]
        if "qk_output" in attrs:
            expected.append(shown[attrs["qk_output"] - 1].astype(F))
        # The number of positions may be known, or come at run time; so may the head size.
        for known in (True, False):
            case(f"gqa_{name}_{'known' if known else 'data'}", MS, "GroupQueryAttention", operands,
                 expected, num_heads=n, kv_num_heads=g, ways=("static",) if known else ("static", "dynamic"), constants=[6] if known else [],
                 **tolerance, **attrs)


def inverses():
    for kind, tolerance in (("float32", 1e-3), ("float64", 1e-9), ("float16", 2e-2)):
        for shape in ((3, 3), (2, 3, 5, 5), (1, 1), (4, 0, 0), (0, 3, 3), (2, 16, 16)):
            x = rng(96).standard_normal(shape)
            if shape[-1] > 1:
                x[..., 0, 0] = 0  # rows must change places
            x = (x if kind != "float16" else x + 3 * np.eye(shape[-1])[::-1]).astype(kind)
            case(f"inverse_{kind}_{'x'.join(map(str, shape))}", MS, "Inverse", [x], [np.linalg.inv(x.astype(np.float64)).astype(kind)],
                 tolerance=tolerance, atol=tolerance)


if __name__ == "__main__":
    quantised()
    few_bits()
    fused()
    attention()
    inverses()
    sys.exit(main())
