# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, convolutions, pools, norms, quantisation, resizing."""
import functools

import numpy as np

from generate import NoFit
from operators import FLOAT_TYPES, operator, types_of


@operator(weight=5, repeatable=True)
def mat_mul(g):
    types = types_of(g, "MatMul", among=FLOAT_TYPES | {np.dtype(np.int32), np.dtype(np.int64)})
    x = g.pick(types, least_rank=1)
    shape = g[x].shape
    k, n = shape[-1], g.choice(SMALL)

    def fits(v):
        if v.array.ndim == 0:
            return False
        try:
            np.broadcast_shapes(shape[:-2], v.shape[:-2])
        except ValueError:
            return False
        return v.shape[-2 if v.array.ndim > 1 else -1] == k

    def make():
        batch = tuple(1 if g.chance(0.3) else s for s in shape[:-2])[g.integer(0, max(len(shape) - 2, 0)):] if len(shape) > 2 else ()
        return g.leaf(g[x].dtype, (*batch, k, n) if g.chance(0.85) else (k,))

    y = g.pick({g[x].dtype}, fits, make, p_new=0.6)
    g.add("MatMul", [x, y], [g[x].dtype])


SMALL = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33]


@operator(weight=3, repeatable=True)
def gemm(g):
    x = g.pick(types_of(g, "Gemm", among=FLOAT_TYPES), rank=2)
    ta, tb = g.integer(0, 1), g.integer(0, 1)
    m, k = g[x].shape[::-1] if ta else g[x].shape
    n = g.choice(SMALL)
    inputs = [x, g.leaf(g[x].dtype, (n, k) if tb else (k, n))]
    if g.opset < 11 or g.chance(0.7):
        inputs.append(g.leaf(g[x].dtype, g.choice([(n,), (m, n), (1, n), (m, 1), (1,), ()])))
    attributes = {"transA": ta, "transB": tb}
    for name in "alpha", "beta":
        if g.chance(0.4):
            attributes[name] = g.choice([0.5, 2.0, -1.0, 1.0])
    g.add("Gemm", inputs, [g[x].dtype], **attributes)


@operator(since=10, repeatable=True)
def mat_mul_integer(g):
    x = g.pick({np.dtype(np.uint8), np.dtype(np.int8)}, least_rank=2)
    k, n = g[x].shape[-1], g.choice(SMALL)
    dtype = g.choice([np.dtype(np.int8), np.dtype(np.uint8)])
    inputs = [x, g.leaf(dtype, (k, n))]
    if g.chance(0.6):
        inputs += [g.constant(np.asarray(3, g[x].dtype)), g.constant(np.asarray(2, dtype))]
    g.add("MatMulInteger", inputs, [np.int32])


def window(g, spatial):
    """Kernel, strides, dilations and pads that give at least one place in each dim."""
    kernel = [g.integer(1, min(3, s)) for s in spatial]
    dilations = [g.choice([1, 1, 2]) if (k - 1) * 2 + 1 <= s else 1 for k, s in zip(kernel, spatial)]
    pads = [g.integer(0, min(1, k - 1)) for k in kernel * 2]
    strides = [g.choice([1, 1, 2, 3]) for _ in spatial]
    return kernel, strides, dilations, pads


def transposed_convolution(groups, strides, dilations, pads, output_padding):
    """ConvTranspose. ReferenceEvaluator adds the first group's bias to all groups, and takes one spatial dim for two."""
    def compute(array, weights, bias=None):
        n, rank = array.shape[0], array.ndim - 2
        kernel, per_group = weights.shape[2:], weights.shape[1]
        full = [(s - 1) * t + (k - 1) * d + 1 + o for s, t, k, d, o in zip(array.shape[2:], strides, kernel, dilations, output_padding)]
        result = np.zeros((n, groups * per_group, *full))
        channels = array.shape[1] // groups
        for at in np.ndindex(*kernel):
            to = tuple(slice(a * d, a * d + (s - 1) * t + 1, t) for a, d, s, t in zip(at, dilations, array.shape[2:], strides))
            for i in range(groups):
                part = np.einsum("nc...,cf->nf...", array[:, i * channels : (i + 1) * channels], weights[(slice(i * channels, (i + 1) * channels), slice(None), *at)])
                result[(slice(None), slice(i * per_group, (i + 1) * per_group), *to)] += part
        result = result[(..., *(slice(pads[i], f - pads[i + rank]) for i, f in enumerate(full)))]
        return [result if bias is None else result + bias.reshape(1, -1, *[1] * rank)]

    return compute


@operator(weight=3, repeatable=True)
def conv(g):
    op = g.choice(["Conv", "Conv", "ConvTranspose"])
    types = types_of(g, op, among=FLOAT_TYPES)
    rank = g.choice([3, 4, 4, 4, 5])
    x = g.pick(types, lambda v: 3 <= v.array.ndim <= 5 and 0 not in v.shape and v.is_finite(),
               lambda: g.leaf(g.dtype(types), (g.integer(1, 2), g.choice([1, 2, 3, 4, 8]), *[g.integer(1, 9) for _ in range(rank - 2)]), "normal"), p_new=0.5)  # fmt: skip
    channels, spatial = g[x].shape[1], g[x].shape[2:]
    kernel, strides, dilations, pads = window(g, spatial)
    groups = g.choice([d for d in range(1, channels + 1) if channels % d == 0]) if g.chance(0.4) else 1
    filters = groups * g.choice([1, 1, 2, 3, 5]) if groups > 1 else g.choice([1, 2, 3, 5, 16, 17])
    attributes = {"group": groups, "strides": strides, "dilations": dilations}
    if g.chance(0.15):
        attributes["auto_pad"] = g.choice(["VALID", "SAME_UPPER", "SAME_LOWER"])
        attributes["dilations"] = [1] * len(kernel)
    else:
        attributes["pads"] = pads
    if g.chance(0.5):
        attributes["kernel_shape"] = kernel
    if op == "Conv":
        w = g.leaf(g[x].dtype, (filters, channels // groups, *kernel), "normal")
    else:
        w = g.leaf(g[x].dtype, (channels, max(filters // groups, 1), *kernel), "normal")
        filters = max(filters // groups, 1) * groups
        if "auto_pad" in attributes:
            raise NoFit
        if g.chance(0.3):
            attributes["output_padding"] = [g.integer(0, max(s, d) - 1) for s, d in zip(strides, dilations)]
    inputs = [x, w] + ([g.leaf(g[x].dtype, (filters,), "normal")] if g.chance(0.6) else [])
    function = None
    if op == "ConvTranspose":
        function = transposed_convolution(groups, strides, dilations, pads, attributes.get("output_padding", [0] * len(kernel)))
    g.add(op, inputs, [g[x].dtype], function, **attributes)


@operator(weight=2, repeatable=True)
def pool(g):
    op = g.choice(["MaxPool", "AveragePool", "LpPool"])
    types = types_of(g, op, among=FLOAT_TYPES)
    rank = g.choice([3, 4, 4, 5])
    x = g.pick(types, lambda v: 3 <= v.array.ndim <= 5 and 0 not in v.shape and v.is_finite(),
               lambda: g.leaf(g.dtype(types), (g.integer(1, 2), g.choice([1, 2, 3]), *[g.integer(1, 9) for _ in range(rank - 2)]), "normal"), p_new=0.5)  # fmt: skip
    kernel, strides, dilations, pads = window(g, g[x].shape[2:])
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if g.opset >= (10 if op == "MaxPool" else 19 if op == "AveragePool" else 18):
        attributes["dilations"] = dilations
    if op == "AveragePool" and g.chance(0.4):
        attributes["count_include_pad"] = 1
    if op == "LpPool":
        attributes["p"] = g.integer(1, 2)
    count_pads, p = attributes.get("count_include_pad"), attributes.get("p")
    dilations = attributes.get("dilations", [1] * len(kernel))

    def reduce_windows(array):
        n = len(kernel)
        around = [(0, 0), (0, 0), *zip(pads[:n], pads[n:])]
        sizes = [(s + pads[i] + pads[n + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, s in enumerate(array.shape[2:])]

        def windows(padded):
            for at in np.ndindex(*kernel):
                yield padded[(slice(None), slice(None), *(slice(a * d, a * d + (s - 1) * t + 1, t) for a, d, s, t in zip(at, dilations, sizes, strides)))]

        if op == "MaxPool":
            return [functools.reduce(np.maximum, windows(np.pad(array, around, constant_values=-np.inf)))]
        if op == "LpPool":
            return [sum(np.abs(w) ** p for w in windows(np.pad(array, around))) ** (1 / p)]
        counts = sum(windows(np.pad(np.ones_like(array), around, constant_values=1 if count_pads else 0)))
        return [sum(windows(np.pad(array, around))) / counts]

    g.add(op, [x], [g[x].dtype], reduce_windows, **attributes)


@operator(repeatable=True)
def global_pool(g):
    op = g.choice(["GlobalMaxPool", "GlobalAveragePool"])
    x = g.pick(types_of(g, op, among=FLOAT_TYPES), lambda v: v.array.ndim >= 3 and 0 not in v.shape and not v.has_nan(),
               lambda: g.leaf(np.float32, g.shape(4, 1)))  # fmt: skip
    reduce = np.max if op == "GlobalMaxPool" else np.mean
    g.add(op, [x], [g[x].dtype], lambda a: [reduce(a, axis=tuple(range(2, a.ndim)), keepdims=True)])


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "i,i->", "i,j->ij", "bij,bkj->bik", "...ij,...jk->...ik", "ijk->kj", "ij,ij->ij", "ii->i", "bhqd,bhkd->bhqk"]


@operator(since=12)
def einsum(g):
    equation = g.choice(EQUATIONS)
    dtype = g.dtype({np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)})
    sizes = {c: g.integer(1, 5) for c in "ijkbhqd"}
    terms = [t.replace("...", "b") for t in equation.split("->")[0].split(",")]
    shapes = [tuple(sizes[c] for c in t) for t in terms]
    names = [g.pick({dtype}, lambda v, s=s: v.shape == s, lambda s=s: g.leaf(dtype, s)) for s in shapes]
    g.add("Einsum", names, [dtype], equation=equation)


# --- norms

@operator(weight=3, repeatable=True)
def softmax(g):
    op = g.choice(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    x = g.pick(types_of(g, op, among=FLOAT_TYPES), lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    rank = g[x].array.ndim
    axis = g.integer(-rank if g.opset >= 11 else 0, rank - 1)
    if op == "Hardmax" and g.opset < 13:
        raise NoFit

    def normalize_rows(array):
        # Up to opset 12 all dims from the axis on are one. ReferenceEvaluator's LogSoftmax is the logarithm of what may be 0.
        at = axis % rank
        rows = np.moveaxis(array, at, -1) if g.opset >= 13 else array.reshape(int(np.prod(array.shape[:at])), -1)
        shifted = rows - rows.max(-1, keepdims=True)
        sums = np.exp(shifted).sum(-1, keepdims=True)
        result = np.exp(shifted) / sums if op == "Softmax" else shifted - np.log(sums)
        return [np.moveaxis(result, -1, at) if g.opset >= 13 else result.reshape(array.shape)]

    g.add(op, [x], [g[x].dtype], None if op == "Hardmax" else normalize_rows, axis=axis)


def normalize(array, axes, epsilon, center=True):
    if center:
        array = array - array.mean(axes, keepdims=True)
    return array / np.sqrt((array * array).mean(axes, keepdims=True) + epsilon)


@operator(since=17, weight=3, repeatable=True)
def layer_normalization(g):
    op = g.choice(["LayerNormalization", "RMSNormalization"]) if g.opset >= 23 else "LayerNormalization"
    x = g.pick(types_of(g, op, among=FLOAT_TYPES), lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    rank = g[x].array.ndim
    axis = g.integer(-rank, -1)
    inner = g[x].shape[axis:]
    center = op[0] == "L"
    inputs = [x, g.leaf(g[x].dtype, inner, "normal")] + ([g.leaf(g[x].dtype, inner, "normal")] if center and g.chance(0.6) else [])
    epsilon = float(np.float32(g.choice([1e-5, 1e-3, 1.0])))

    def norm(array, scale, bias=0.0):
        return [normalize(array, tuple(range(axis, 0)), epsilon, center) * scale + bias]

    # In 16-bit types the normalised value is rounded before it is scaled: that noise is that of one more operand.
    g.add(op, inputs, [g[x].dtype], norm, axis=axis, epsilon=epsilon)


@operator(weight=2)
def channel_normalization(g):
    op = g.choice(["BatchNormalization", "InstanceNormalization"] + (["GroupNormalization"] if g.opset >= 21 else []))
    types = types_of(g, op, among=FLOAT_TYPES)
    x = g.pick(types, lambda v: v.is_finite() and 3 <= v.array.ndim <= 5 and 0 not in v.shape, lambda: g.leaf(g.dtype(types), g.shape(4, 1), "normal"))
    channels, dtype = g[x].shape[1], g[x].dtype
    epsilon = float(np.float32(g.choice([1e-5, 1e-3])))
    column = (1, channels) + (1,) * (g[x].array.ndim - 2)
    if op == "BatchNormalization":
        inputs = [x, g.leaf(dtype, (channels,), "normal"), g.leaf(dtype, (channels,), "normal"), g.leaf(dtype, (channels,), "normal"),
                  g.leaf(dtype, (channels,), "positive")]  # fmt: skip

        def norm(array, scale, bias, mean, variance):
            return [(array - mean.reshape(column)) / np.sqrt(variance.reshape(column) + epsilon) * scale.reshape(column) + bias.reshape(column)]

        g.add(op, inputs, [dtype], norm, epsilon=epsilon)
        return
    inputs = [x, g.leaf(dtype, (channels,), "normal"), g.leaf(dtype, (channels,), "normal")]
    groups = g.choice([d for d in range(1, channels + 1) if channels % d == 0]) if op[0] == "G" else channels

    def group_norm(array, scale, bias):
        rows = array.reshape(array.shape[0], groups, -1)
        return [normalize(rows, (2,), epsilon).reshape(array.shape) * scale.reshape(column) + bias.reshape(column)]

    g.add(op, inputs, [dtype], group_norm, epsilon=epsilon, **({"num_groups": groups} if op[0] == "G" else {}))


@operator()
def lp_normalization(g):
    x = g.pick(types_of(g, "LpNormalization", among=FLOAT_TYPES), lambda v: v.is_finite() and 0 not in v.shape, least_rank=1)
    axis, p = g.integer(0, g[x].array.ndim - 1), g.integer(1, 2)

    def norm(array):
        length = np.abs(array).sum(axis, keepdims=True) if p == 1 else np.sqrt((array * array).sum(axis, keepdims=True))
        return [np.where(length == 0, 0, array / np.where(length == 0, 1, length))]

    g.add("LpNormalization", [x], [g[x].dtype], norm, axis=axis, p=p)


@operator()
def lrn(g):
    x = g.pick(types_of(g, "LRN", among=FLOAT_TYPES), lambda v: v.array.ndim == 4 and v.is_finite() and 0 not in v.shape, lambda: g.leaf(np.float32, g.shape(4, 1), "normal"))
    size = g.choice([1, 2, 3, 5])

    def norm(array):
        # ReferenceEvaluator takes the batch for the channels.
        squares = np.pad(array * array, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        sums = sum(squares[:, i : i + array.shape[1]] for i in range(size))
        return [array / (1.5 + 0.5 / size * sums) ** 0.75]

    g.add("LRN", [x], [g[x].dtype], norm, size=size, alpha=0.5, beta=0.75, bias=1.5)


# --- quantisation, resizing

@operator(since=10, weight=2)
def quantize(g):
    x = g.pick({np.dtype(np.float32)}, lambda v: v.is_finite())
    dtype = g.choice([np.dtype(np.uint8), np.dtype(np.int8)])
    info = np.iinfo(dtype)
    scale = np.float32(g.choice([0.05, 0.1, 0.5, 1.0]))
    zero = g.integer(0, 9)
    inputs = [x, g.constant(np.asarray(scale)), g.constant(np.asarray(zero, dtype))]

    def round_and_clip(array, s, z):
        return [np.clip(np.rint(array / s) + z, info.min, info.max).astype(dtype)]

    q = g.add("QuantizeLinear", inputs, [dtype], round_and_clip)
    if g.chance(0.5):
        g.add("DequantizeLinear", [q, *inputs[1:]], [np.float32], lambda a, s, z: [(a.astype(np.float64) - float(z)) * s])


@operator(since=10)
def dequantize(g):
    x = g.pick({np.dtype(np.uint8), np.dtype(np.int8)}, least_rank=1)
    axis = g.integer(0, g[x].array.ndim - 1)
    per_axis = g.opset >= 13 and g.chance(0.5)
    shape = (g[x].shape[axis],) if per_axis else ()
    scale = g.leaf(np.float32, shape, "positive", True)
    zero = g.leaf(g[x].dtype, shape, None, True)
    column = [1] * g[x].array.ndim
    if per_axis:
        column[axis] = -1

    def scale_up(a, s, z):
        return [(a.astype(np.float64) - z.astype(np.float64).reshape(column)) * s.reshape(column)] if per_axis else [(a.astype(np.float64) - float(z)) * s]

    g.add("DequantizeLinear", [x, scale, zero], [np.float32], scale_up, **({"axis": axis} if per_axis else {}))


def resize_function(mode, transform, target, scales, axes, a=-0.75, exclude_outside=0, antialias=0):
    """Resize with linear or cubic weights, one axis after the other. ReferenceEvaluator's cubic weights are f32 and do not add up to 1."""
    def kernel(x):
        x = np.abs(x)
        if mode == "linear":
            return np.maximum(1 - x, 0)
        return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))

    def weights(n, count, scale):
        """A matrix from n elements to `count`."""
        i = np.arange(count)
        if transform == "align_corners":
            x = i * (n - 1) / (count - 1) if count > 1 else i * 0.0
        elif transform == "asymmetric":
            x = i / scale
        else:
            x = (i + 0.5) / scale - 0.5
            if transform == "pytorch_half_pixel" and count == 1:
                x = i * 0.0
            if transform == "half_pixel_symmetric":
                x = x + n / 2 * (1 - count / (scale * n))
        stretch = min(scale, 1.0) if antialias else 1.0
        reach = (1 if mode == "linear" else 2) / stretch
        result = np.zeros((count, n))
        for row, center in enumerate(x):
            for tap in range(int(np.floor(center - reach)), int(np.ceil(center + reach)) + 1):
                if not exclude_outside or 0 <= tap < n:
                    result[row, min(max(tap, 0), n - 1)] += kernel((tap - center) * stretch)
        if exclude_outside or antialias:
            result /= result.sum(1, keepdims=True)
        return result

    def compute(array, *_):
        for axis, count, scale in zip(axes, target, scales):
            if scale != 1 or count != array.shape[axis]:
                array = np.moveaxis(np.tensordot(weights(array.shape[axis], count, scale), array, (1, axis)), 0, axis)
        return [array]

    return compute


@operator(since=13)
def resize(g):
    # Numbers of one magnitude: the weights have rounding errors, too, those of f32 whatever the type.
    x = g.leaf(np.float32, g.shape(4, 1, 400), "normal")
    shape = g[x].shape
    mode = g.choice(["nearest", "linear", "cubic"])
    target = [shape[0], shape[1], g.integer(1, 9), g.integer(1, 9)]
    attributes = {"mode": mode, "coordinate_transformation_mode": g.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        attributes["nearest_mode"] = g.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
        # The place of a source element is computed in f32 by most: only such as hit no boundary.
        target = [shape[0], shape[1], shape[2] * g.choice([1, 2, 4]), shape[3] * g.choice([1, 2, 4])]
        attributes["coordinate_transformation_mode"] = "asymmetric"
        if attributes["nearest_mode"].startswith("round"):
            attributes["nearest_mode"] = "floor"
        function = None
    else:
        function = resize_function(mode, attributes["coordinate_transformation_mode"], target, [t / s for t, s in zip(target, shape)], range(4))
    g.add("Resize", [x, "", "", g.ints(target, 0)], [g[x].dtype], function, **attributes)
