# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised operators, of ai.onnx and com.microsoft. A quantised result of a noisy operand is compared where no rounding is near a half."""
import ml_dtypes
import numpy as np

from generate import FIRST_OPSETS, NoFit
from operators import operator, types_of
from operators_products import SMALL, window
from opinion import between

F32 = np.dtype(np.float32)
BYTES = [np.dtype(np.uint8), np.dtype(np.int8)]
SCALES = [0.0078125, 0.02, 0.05, 0.1, 0.5, 1.0]


def scale_and_zero(g, dtype, shape=(), zero=True):
    """A scale and a zero point: names, or "" for no zero point."""
    scale = g.constant(np.asarray(g.rng.choice(SCALES, shape)).astype(np.float32))
    info = ml_dtypes.iinfo(dtype)
    low, high = max(int(info.min), -9), min(int(info.max), 9)
    if not zero:
        return scale, ""
    return scale, g.constant(np.asarray(g.rng.integers(low, high + 1, shape)).astype(dtype))


def centred(array, zero, axis=None):
    """Integers less their zero point, in float64."""
    array = np.asarray(array).astype(np.float64)
    if zero is None:
        return array
    zero = np.asarray(zero).astype(np.float64)
    return array - along(zero, array.ndim, axis)


def along(values, rank, axis):
    """A scalar, or a vector along an axis, so that it broadcasts."""
    values = np.asarray(values)
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def requantized(real, scale, zero, dtype, axis=0):
    """round(real / scale) + zero in the range of the type, halves to even."""
    info = ml_dtypes.iinfo(dtype)
    shift = 0 if zero is None else np.asarray(along(zero, real.ndim, axis)).astype(np.float64)
    return np.clip(np.rint(between(real / along(scale, real.ndim, axis))) + shift, int(info.min), int(info.max)).astype(dtype)


def convolution(x, w, strides, pads, dilations, groups):
    rank, filters, kernel = x.ndim - 2, w.shape[0], w.shape[2:]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    count = [(s - (k - 1) * d - 1) // t + 1 for s, k, d, t in zip(x.shape[2:], kernel, dilations, strides)]
    y = np.zeros((x.shape[0], filters, *count))
    fg, cg = filters // groups, x.shape[1] // groups
    for at in np.ndindex(*kernel):
        part = x[(slice(None), slice(None), *(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilations, count, strides)))]
        for i in range(groups):
            y[:, i * fg : (i + 1) * fg] += np.einsum("nc...,fc->nf...", part[:, i * cg : (i + 1) * cg], w[(slice(i * fg, (i + 1) * fg), slice(None), *at)])
    return y


@operator(since=10, weight=2)
def integer_products(g):
    op = g.choice(["QLinearMatMul", "ConvInteger", "QLinearConv"])
    x_type, w_type = g.choice(BYTES), g.choice(BYTES)
    if op == "QLinearMatMul":
        x = g.pick({x_type}, lambda v: v.array.ndim <= 3, least_rank=2)
        k, n = g[x].shape[-1], g.choice(SMALL)
        w = g.leaf(w_type, (k, n))
        y_type = g.choice(BYTES)
        inputs = [x, *scale_and_zero(g, x_type), w, *scale_and_zero(g, w_type), *scale_and_zero(g, y_type)]
        g.add(op, inputs, [y_type], lambda x, xs, xz, w, ws, wz, ys, yz: [requantized(centred(x, xz) @ centred(w, wz) * (xs * ws), ys, yz, y_type)])
        return
    rank = g.choice([1, 2, 2])
    spatial = tuple(g.integer(2, 7) for _ in range(rank))
    groups = g.choice([1, 1, 2])
    channels, filters = groups * g.integer(1, 3), groups * g.integer(1, 4)
    kernel, strides, dilations, pads = window(g, spatial)
    x, w = g.leaf(x_type, (g.integer(1, 2), channels, *spatial)), g.leaf(w_type, (filters, channels // groups, *kernel))
    attributes = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads}
    if g.chance(0.5):
        attributes["kernel_shape"] = kernel

    def convolve(x, w):
        return convolution(x, w, strides, pads, dilations, groups)

    if op == "ConvInteger":
        inputs = [x, w]
        if g.chance(0.7):
            inputs += [scale_and_zero(g, x_type)[1], scale_and_zero(g, w_type)[1]]
        g.add(op, inputs, [np.int32], lambda x, w, xz=None, wz=None: [convolve(centred(x, xz), centred(w, wz)).astype(np.int32)], **attributes)
        return
    y_type = x_type
    per_filter = (filters,) if g.chance(0.5) else ()
    bias = g.constant(np.asarray(g.rng.integers(-500, 500, filters)).astype(np.int32)) if g.chance(0.5) else ""
    inputs = [x, *scale_and_zero(g, x_type), w, *scale_and_zero(g, w_type, per_filter), *scale_and_zero(g, y_type), bias]
    if not bias:
        inputs.pop()

    def compute(x, xs, xz, w, ws, wz, ys, yz, b=None):
        total = convolve(centred(x, xz), centred(w, wz, 0))
        if b is not None:
            total = total + np.asarray(b).astype(np.float64).reshape(1, -1, *[1] * rank)
        return [requantized(total * along(xs * np.asarray(ws), total.ndim, 1), ys, yz, y_type)]

    g.add(op, inputs, [y_type], compute, **attributes)


@operator(since=11)
def dynamic_quantize(g):
    x = g.pick({F32}, lambda v: v.is_finite() and 0 not in v.shape and np.abs(v.array).max(initial=0) < 1e6)

    def compute(a):
        low, high = min(a.min(initial=0), 0), max(a.max(initial=0), 0)
        scale = (high - low) / 255
        zero = 0 if scale == 0 else np.clip(np.rint(-low / scale), 0, 255)
        if scale == 0:
            return [np.zeros(a.shape, np.uint8), np.asarray(scale), np.asarray(0, np.uint8)]
        return [np.clip(np.rint(a / scale) + zero, 0, 255).astype(np.uint8), np.asarray(scale), np.asarray(zero, np.uint8)]

    array = g[x].array
    if not array.any():
        raise NoFit  # a scale of 0 is open
    # The zero point is a rounded quotient, and the rounding of the scale decides it where that is near a half, as between -5 and 5.
    at = -255 * min(array.min(), 0) / (max(array.max(), 0) - min(array.min(), 0))
    if abs(at % 1 - 0.5) < 1e-3:
        raise NoFit
    g.add("DynamicQuantizeLinear", [x], [np.uint8, np.float32, np.uint8], compute)


@operator(since=19, weight=2)
def quantize_types(g):
    """QuantizeLinear and DequantizeLinear of all types, per tensor, axis or block."""
    types = [t for t in types_of(g, "QuantizeLinear", 2) if g.opset >= FIRST_OPSETS.get(t.type, 0)]
    to = g.choice(sorted(types, key=str))
    x = g.pick({F32}, lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    shape = g[x].shape
    axis = g.integer(0, len(shape) - 1)
    ways = ["tensor", "axis"] + (["block"] if g.opset >= 21 else [])
    way, block = g.choice(ways), 1
    if way == "block":
        block = g.integer(1, shape[axis])
        scales = tuple(-(-s // block) if i == axis else s for i, s in enumerate(shape))
    else:
        scales = (shape[axis],) if way == "axis" else ()
    narrow = ml_dtypes.finfo(to) if to.kind not in "iu" and "int" not in str(to) else None
    scale = g.constant(np.asarray(g.rng.choice(SCALES, scales)).astype(np.float32))
    if narrow:
        zero = g.constant(np.zeros(scales, to))
    else:
        zero = scale_and_zero(g, to, scales)[1]
    attributes = {} if way == "tensor" else {"axis": axis - g.integer(0, 1) * len(shape)}
    if way == "block":
        attributes["block_size"] = block

    def spread(values):
        values = np.asarray(values).astype(np.float64)
        if way == "block":
            return np.repeat(values, block, axis)[tuple(slice(s) for s in shape)]
        return along(values, len(shape), axis) if way == "axis" else values

    def quantize(a, s, z):
        if narrow:
            limit = float(narrow.max)
            return [np.clip(a / spread(s), -limit, limit).astype(np.float32).astype(to)]
        info = ml_dtypes.iinfo(to)
        return [np.clip(np.rint(a / spread(s)) + spread(z), int(info.min), int(info.max)).astype(to)]

    q = g.add("QuantizeLinear", [x, scale, zero], [to], quantize, **attributes)
    if g.chance(0.7):
        g.add("DequantizeLinear", [q, scale, zero], [np.float32], lambda a, s, z: [(np.asarray(a).astype(np.float64) - spread(z)) * spread(s)], **attributes)


@operator(since=10, weight=2)
def microsoft_quantized(g):
    """com.microsoft: QLinear elementwise, and a product with its scales."""
    dtype = g.choice(BYTES)
    op = g.choice(["QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat", "QLinearGlobalAveragePool", "MatMulIntegerToFloat"])
    if op == "QLinearGlobalAveragePool":
        x = g.leaf(dtype, (g.integer(1, 2), g.integer(1, 3), g.integer(1, 5), g.integer(1, 5)))
    else:
        x = g.pick({dtype}, lambda v: v.array.ndim <= 4 and 0 not in v.shape, least_rank=2 if op[0] == "M" else 1)
    real = lambda a, s, z: centred(a, z) * s  # noqa: E731
    sz = lambda: scale_and_zero(g, dtype)  # noqa: E731
    if op in ("QLinearAdd", "QLinearMul"):
        shape = tuple(1 if g.chance(0.2) else s for s in g[x].shape)
        y = g.leaf(dtype, shape)

        def compute(a, sa, za, b, sb, zb, sc, zc):
            a, b = real(a, sa, za), real(b, sb, zb)
            return [requantized(a + b if op == "QLinearAdd" else a * b, sc, zc, dtype)]

        g.add(op, [x, *sz(), y, *sz(), *sz()], [dtype], compute, domain="com.microsoft")
    elif op in ("QLinearSigmoid", "QLinearLeakyRelu"):
        alpha = 0.25
        function = (lambda v: 1 / (1 + np.exp(-v))) if op == "QLinearSigmoid" else (lambda v: np.where(v < 0, alpha * v, v))
        g.add(op, [x, *sz(), *sz()], [dtype], lambda a, sa, za, sb, zb: [requantized(function(real(a, sa, za)), sb, zb, dtype)], domain="com.microsoft",
              **({} if op == "QLinearSigmoid" else {"alpha": alpha}))  # fmt: skip
    elif op == "QLinearConcat":
        axis = g.integer(0, g[x].array.ndim - 1)
        y = g.leaf(dtype, g[x].shape)
        g.add(op, [*sz(), x, *sz(), y, *sz()], [dtype],
              lambda sc, zc, a, sa, za, b, sb, zb: [requantized(np.concatenate([real(a, sa, za), real(b, sb, zb)], axis), sc, zc, dtype)],
              domain="com.microsoft", axis=axis)  # fmt: skip
    elif op == "QLinearGlobalAveragePool":
        g.add(op, [x, *sz(), *sz()], [dtype], lambda a, sa, za, sb, zb: [requantized(real(a, sa, za).mean((2, 3), keepdims=True), sb, zb, dtype)],
              domain="com.microsoft", channels_last=0)  # fmt: skip
    else:
        k, n = g[x].shape[-1], g.choice([1, 2, 5, 16, 17])
        w = g.leaf(dtype, (k, n))
        (sa, za), (sb, zb) = sz(), sz()
        g.add(op, [x, w, sa, sb, za, zb], [np.float32], lambda a, b, sa, sb, za, zb: [centred(a, za) @ centred(b, zb) * (sa * sb)], domain="com.microsoft")


@operator(since=13, weight=3)
def between_quantizations(g):
    """Products, convolutions and what stands around them between QuantizeLinear and DequantizeLinear, as quantisers write them."""
    dtype, w_type = g.choice(BYTES), g.choice(BYTES)

    def dequantize(q, scale, zero, axis=None):
        attributes = {} if axis is None else {"axis": axis}
        return g.add("DequantizeLinear", [q, scale, zero], [F32],
                     lambda a, s, z: [centred(a, z, axis) * along(np.asarray(s).astype(np.float64), a.ndim, axis or 0)], **attributes)  # fmt: skip

    def through(x, parameters=None):
        scale, zero = parameters or scale_and_zero(g, dtype)
        return dequantize(g.add("QuantizeLinear", [x, scale, zero], [dtype], lambda a, s, z: [requantized(a, s, z, dtype)]), scale, zero)

    def weights(shape, axis):
        axis = axis if g.chance(0.7) else None
        info = np.iinfo(w_type)
        q = g.constant(g.rng.integers(info.min, info.max + 1, shape).astype(w_type))
        return dequantize(q, *scale_and_zero(g, w_type, () if axis is None else (shape[axis],)), axis)

    finite = lambda v: v.is_finite() and 0 not in v.shape and np.abs(v.array).max(initial=0) < 1e4  # noqa: E731
    op = g.choice(["MatMul", "MatMul", "Conv", "Conv", "Conv", "none"])
    if op == "MatMul":
        x = through(g.pick({F32}, lambda v: finite(v) and v.array.ndim <= 3, least_rank=2))
        if g.chance(0.3):
            rank = g[x].array.ndim
            order = [*range(rank - 2), rank - 1, rank - 2]
            x = g.add("Transpose", [x], [F32], lambda a: [a.transpose(order)], perm=order)
        w = weights((g[x].shape[-1], g.choice([1, 2, 7, 16, 33])), 1)
        y = g.add("MatMul", [x, w], [F32], lambda a, b: [a @ b])
    elif op == "Conv":
        rank = g.choice([1, 2, 2])
        spatial = tuple(g.integer(2, 9) for _ in range(rank))
        groups, channels = g.choice([(1, 1), (1, 3), (1, 8), (2, 2), (5, 1)])
        filters = groups * (1 if channels == 1 and groups > 1 and g.chance(0.7) else g.choice([1, 3, 17]))
        kernel, strides, dilations, pads = window(g, spatial)
        x = through(g.leaf(F32, (g.integer(1, 2), groups * channels, *spatial)))
        w = weights((filters, channels, *kernel), 0)
        y = g.add("Conv", [x, w], [F32], lambda a, b: [convolution(a, b, strides, pads, dilations, groups)],
                  group=groups, strides=strides, pads=pads, dilations=dilations)  # fmt: skip
    else:
        y = through(g.pick({F32}, finite, least_rank=1))
    if g.chance(0.4):
        bias = g.constant(g.rng.integers(-300, 300, [g[y].shape[1 if op == "Conv" else -1]] + [1] * (g[y].array.ndim - 2 if op == "Conv" else 0)).astype(np.int32))
        y = g.add("Add", [y, dequantize(bias, g.constant(np.float32(0.01)), g.constant(np.int32(0)))], [F32], lambda a, b: [a + b])
    if g.chance(0.5):
        y = g.add("Relu", [y], [F32], lambda a: [np.maximum(a, 0)])
    parameters = scale_and_zero(g, dtype)
    z = through(y, parameters)
    if g.chance(0.3):
        z = through(g.add("Add", [z, z if g.chance(0.3) else y], [F32], lambda a, b: [a + b]))
    if g.chance(0.3): # quantised again alike, which is nothing
        through(g.add("Reshape", [z, g.constant(np.int64([-1]))], [F32], lambda a, _: [a.reshape(-1)]), parameters)
