#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators in forms that the conformance cases leave out: old versions, element types, attributes, sizes that only the run knows.

usage: operators.py BIN [REGEX]

Each case is a small ONNX model, compiled with its sizes and, where it says so, with all sizes unknown, run, and compared with NumPy or
with ONNX's reference evaluator. Gradients are held against differences of the function's own values. Prints a line per failure and a count.
"""
import itertools
import math
import os
import re
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

CASES = {}
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.float16): TensorProto.FLOAT16,
         np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.uint8): TensorProto.UINT8,
         np.dtype(np.int8): TensorProto.INT8, np.dtype(np.int16): TensorProto.INT16, np.dtype(bool): TensorProto.BOOL}  # fmt: skip


def case(name, nodes, inputs, expected, opset, *, dynamic=True, constants=None, tolerance=2e-6, domains=(), types=None):
    """`inputs`: arrays by name; `expected`: by output, or None to ask the reference evaluator for y; `types`: ONNX types that NumPy lacks."""
    CASES[name] = (nodes, inputs, expected, opset, dynamic, constants or {}, tolerance, domains, types or {})


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def make_model(name, nodes, inputs, outputs, opset, constants, domains, types, dynamic):
    def info(n, v, is_input):
        dims = [None if dynamic else d for d in v.shape]
        return helper.make_tensor_value_info(n, types.get(n, TYPES[v.dtype]), dims if is_input else [None] * v.ndim)

    graph = helper.make_graph(nodes, name, [info(n, v, True) for n, v in inputs.items()], [info(n, v, False) for n, v in outputs.items()],
                              [numpy_helper.from_array(v, n) for n, v in constants.items()])
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


class Artifact:
    """A compiled model in a folder."""

    def __init__(self, bin_dir, model, folder):
        self.bin_dir, self.folder = bin_dir, folder
        onnx.save(model, f"{folder}/model.onnx")
        made = subprocess.run([f"{bin_dir}/tc-compile", f"{folder}/model.onnx", "-o", f"{folder}/m.bin", "--cpu", "x86-64-v3", "--jobs", "1"],
                              capture_output=True, text=True)
        self.error = f"tc-compile exit {made.returncode}: {made.stderr.strip()}" if made.returncode else None

    def run(self, inputs, *flags):
        np.savez(f"{self.folder}/in.npz", **inputs)
        given = ["--inputs", f"{self.folder}/in.npz"] if inputs else []
        ran = subprocess.run([f"{self.bin_dir}/tc-run", f"{self.folder}/m.bin", *given, *flags], capture_output=True, text=True)
        return f"tc-run exit {ran.returncode}: {(ran.stdout + ran.stderr).strip()}" if ran.returncode else None

    def outputs(self, inputs, *flags):
        error = self.run(inputs, "--outputs", f"{self.folder}/out.npz", *flags)
        if error:
            raise RuntimeError(error)
        with np.load(f"{self.folder}/out.npz") as f:
            return dict(f)


def run_case(bin_dir, name):
    nodes, inputs, expected, opset, dynamic, constants, tolerance, domains, types = CASES[name]
    failures = []
    for unknown in ([False, True] if dynamic else [False]):
        with tempfile.TemporaryDirectory() as folder:
            if expected is None:
                outputs = {n: np.zeros(0, np.float32) for n in nodes[-1].output}
                model = make_model(name, nodes, inputs, outputs, opset, constants, domains, types, False)
                expected = dict(zip(outputs, ReferenceEvaluator(model).run(None, inputs)))
            artifact = Artifact(bin_dir, make_model(name, nodes, inputs, expected, opset, constants, domains, types, unknown), folder)
            np.savez(f"{folder}/expected.npz", **expected)
            error = artifact.error or artifact.run(inputs, "--expect", f"{folder}/expected.npz", "--max-rel", str(tolerance))
            if error:
                failures.append(f"{name}{' with unknown sizes' if unknown else ''}: {error}")
    return failures


#===--- pools and regions -------------------------------------------------------------------------------------------===#


def pool_size(size, kernel, stride, low, high, dilation, ceil):
    extent = dilation * (kernel - 1) + 1
    count = (size + low + high - extent) / stride
    count = (math.ceil(count) if ceil else math.floor(count)) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + low else count


def max_pool(x, kernel, strides, pads, dilations, ceil, column_major):
    n = len(kernel)
    out = [pool_size(x.shape[i + 2], kernel[i], strides[i], pads[i], pads[i + n], dilations[i], ceil) for i in range(n)]
    y, found = np.zeros((*x.shape[:2], *out), x.dtype), np.zeros((*x.shape[:2], *out), np.int64)
    for at in np.ndindex(*y.shape):
        best = None
        for k in np.ndindex(*kernel):
            place = [at[i + 2] * strides[i] - pads[i] + k[i] * dilations[i] for i in range(n)]
            if all(0 <= p < s for p, s in zip(place, x.shape[2:])):
                value = x[(*at[:2], *place)]
                if best is None or value > best[0]:
                    spatial = np.ravel_multi_index(place, x.shape[2:], order="F" if column_major else "C")
                    best = value, (at[0] * x.shape[1] + at[1]) * math.prod(x.shape[2:]) + spatial
        y[at], found[at] = best
    return y, found


def add_pools():
    forms = [((9,), (3,), (2,), (1, 1), (1,), 0), ((7, 8), (2, 3), (2, 1), (0, 1, 1, 1), (1, 1), 0), ((8, 7), (3, 2), (2, 2), (1, 0, 1, 1), (2, 1), 1),
             ((5, 6, 4), (2, 2, 2), (2, 2, 1), (0,) * 6, (1, 2, 1), 1), ((4, 4), (1, 1), (1, 1), (0,) * 4, (1, 1), 0)]  # fmt: skip
    for (shape, kernel, strides, pads, dilations, ceil), order in itertools.product(forms, (0, 1)):
        for dtype in (np.float32, np.float16, np.int8) if len(shape) == 2 else (np.float32,):
            x = np.round(random(2, 3, *shape) * 3).astype(dtype)  # with ties
            y, found = max_pool(x, kernel, strides, pads, dilations, ceil, order)
            node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations, ceil_mode=ceil, storage_order=order)
            name = f"MaxPool_{'x'.join(map(str, shape))}_k{'x'.join(map(str, kernel))}_{np.dtype(dtype).name}{'_columns' if order else ''}"
            case(name, [node], {"x": x}, {"y": y, "i": found}, 12)
    x = np.full((1, 1, 4, 4), -np.inf, np.float32)
    y, found = max_pool(x, (2, 2), (1, 1), (1, 1, 1, 1), (1, 1), 0, 0)
    case("MaxPool_of_infinities", [helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], pads=[1] * 4)], {"x": x}, {"y": y, "i": found}, 12)
    for ceil_kernel, pads in (((3,), (0, 0)), ((4,), (0, 2)), ((5,), (1, 1))):
        x = random(1, 2, 11)
        y, _ = max_pool(x, ceil_kernel, (3,), pads, (1,), 1, 0)
        case(f"MaxPool_ceil_k{ceil_kernel[0]}", [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=ceil_kernel, strides=[3], pads=pads, ceil_mode=1)], {"x": x}, {"y": y}, 12)
    for (kernel, strides, pads, dilations, ceil), count in itertools.product((((3, 2), (2, 1), (1, 0, 1, 1), (1, 1), 0), ((3, 3), (2, 2), (1, 1, 1, 1), (2, 1), 0), ((3, 4), (3, 2), (0, 1, 0, 2), (1, 1), 1),
                                                                              ((5, 5), (1, 1), (4, 4, 4, 4), (1, 1), 0)), (0, 1)):  # fmt: skip
        x, padded = random(1, 2, 8, 7), np.full((1, 2, 8 + 20, 7 + 20), np.nan)
        inner = (slice(None), slice(None), *(slice(10 - l, 10 + s + h) for s, l, h in zip((8, 7), pads[:2], pads[2:])))
        if count:
            padded[inner] = 0
        padded[:, :, 10:18, 10:17] = x
        out = [(math.ceil if ceil else math.floor)((s + l + h - d * (k - 1) - 1) / t) + 1 for s, l, h, d, k, t in zip((8, 7), pads[:2], pads[2:], dilations, kernel, strides)]
        starts = [[10 - l + i * t for i in range(n)] for l, n, t in zip(pads[:2], out, strides)]
        y = np.stack([np.stack([np.nanmean(padded[:, :, h:h + dilations[0] * kernel[0]:dilations[0], w:w + dilations[1] * kernel[1]:dilations[1]], axis=(2, 3)) for w in starts[1]], -1) for h in starts[0]], -2)
        case(f"AveragePool_k{kernel[0]}x{kernel[1]}_s{strides[0]}x{strides[1]}_d{dilations[0]}_{ceil}_{count}",
             [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations, ceil_mode=ceil, count_include_pad=count)], {"x": x}, {"y": y.astype(np.float32)}, 19)
    # A window that reaches beyond all of the operand.
    for kernel, pads, dilation in ((9, (0, 0), 1), (7, (1, 2), 2), (1280, (0, 0), 1)):
        x = random(2, 3, 4)
        attributes = {"kernel_shape": [kernel], "strides": [kernel * dilation], "pads": pads, "ceil_mode": 1, "dilations": [dilation]}
        seen = np.pad(x, ((0, 0), (0, 0), pads), constant_values=np.nan)[..., ::dilation]
        case(f"MaxPool_beyond_k{kernel}", [helper.make_node("MaxPool", ["x"], ["y"], **attributes)], {"x": x}, {"y": np.nanmax(seen, -1, keepdims=True)}, 12)
        case(f"AveragePool_beyond_k{kernel}", [helper.make_node("AveragePool", ["x"], ["y"], **attributes)], {"x": x}, {"y": np.nanmean(seen, -1, keepdims=True)}, 19)
        case(f"AveragePool_beyond_with_pads_k{kernel}", [helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=1, **attributes)], {"x": x},
             {"y": np.nan_to_num(seen).mean(-1, keepdims=True)}, 19)
    # Long windows, which are made of short ones; 53 and 97 are prime, so that sums have a rest.
    for shape, kernel, strides, pads, dilations in (((130,), (53,), (1,), (20, 26), (2,)), ((260,), (97,), (2,), (48, 48), (1,)), ((40,), (71,), (1,), (35, 35), (1,)), ((45, 40), (41, 31), (1, 2), (20, 15, 20, 15), (1, 1))):
        rank = len(shape)
        for dtype in (np.float32, np.float16):
            x = random(2, 3, *shape).astype(dtype)
            x[0, 0, 7] = np.inf
            wide = np.pad(x, ((0, 0), (0, 0), *zip(pads[:rank], pads[rank:])), constant_values=np.nan)
            seen = np.lib.stride_tricks.sliding_window_view(wide, [d * (k - 1) + 1 for k, d in zip(kernel, dilations)], tuple(range(2, 2 + rank)))
            seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]
            seen = seen.reshape(*seen.shape[:2 + rank], -1)
            name, attributes = f"k{'x'.join(map(str, kernel))}_{np.dtype(dtype).name}", dict(kernel_shape=kernel, strides=strides, pads=pads)
            case(f"MaxPool_long_{name}", [helper.make_node("MaxPool", ["x"], ["y"], dilations=dilations, **attributes)], {"x": x}, {"y": np.nanmax(seen, -1)}, 12)
            mean = np.nanmean(seen.astype(np.float64), -1).astype(dtype)
            case(f"AveragePool_long_{name}", [helper.make_node("AveragePool", ["x"], ["y"], dilations=dilations, **attributes)], {"x": x}, {"y": mean}, 19, tolerance=2e-6 if dtype == np.float32 else 1e-3)
    # Pads that sizes decide, which only the run may know.
    for mode, size, kernel, stride, dilation in (("UPPER", 11, 3, 2, 1), ("LOWER", 10, 3, 2, 1), ("UPPER", 7, 2, 3, 1), ("LOWER", 9, 2, 2, 2), ("UPPER", 6, 1, 2, 1), ("UPPER", 8, 4, 3, 1)):
        x, count = random(2, 3, size), -(-size // stride)
        total = max((count - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
        pads = (total // 2, total - total // 2) if mode == "UPPER" else (total - total // 2, total // 2)
        attributes = {"auto_pad": f"SAME_{mode}", "kernel_shape": [kernel], "strides": [stride], "dilations": [dilation]}
        name = f"{mode.lower()}_{size}k{kernel}s{stride}d{dilation}"
        y, found = max_pool(x, (kernel,), (stride,), pads, (dilation,), 0, 0)
        case(f"MaxPool_same_{name}", [helper.make_node("MaxPool", ["x"], ["y", "i"], **attributes)], {"x": x}, {"y": y, "i": found}, 12)
        windows = np.stack([np.pad(x, ((0, 0), (0, 0), pads))[..., k * dilation:][..., :(count - 1) * stride + 1:stride] for k in range(kernel)], -1)
        inside = np.stack([np.pad(np.ones(size), pads)[k * dilation:][:(count - 1) * stride + 1:stride] for k in range(kernel)], -1)
        case(f"AveragePool_same_{name}", [helper.make_node("AveragePool", ["x"], ["y"], **attributes)], {"x": x}, {"y": (windows.sum(-1) / inside.sum(-1)).astype(np.float32)}, 19)
        case(f"AveragePool_same_with_pads_{name}", [helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=1, **attributes)], {"x": x}, {"y": windows.mean(-1, dtype=np.float32)}, 19)
        case(f"LpPool_same_{name}", [helper.make_node("LpPool", ["x"], ["y"], **attributes)], {"x": x}, {"y": np.sqrt((windows.astype(np.float64) ** 2).sum(-1)).astype(np.float32)}, 18)
        w = random(4, 3, kernel)
        y = np.einsum("nctk,ock->not", windows.astype(np.float64), w).astype(np.float32)
        case(f"Conv_same_{name}", [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)], {"x": x}, {"y": y}, 11, constants={"w": w})
        case(f"Conv_filter_of_unknown_size_{name}", [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)], {"x": x, "w": w}, {"y": y}, 11)
    x, w = random(1, 2, 5), random(2, 3, 3)
    full = np.zeros((1, 3, 11))
    for k, t in itertools.product(range(3), range(5)):
        full[:, :, 2 * t + k] += np.einsum("nc,co->no", x[:, :, t].astype(np.float64), w[:, :, k])
    for size, mode, cut in ((9, "SAME_UPPER", 1), (8, "NOTSET", 2), (8, "SAME_UPPER", 1), (13, "NOTSET", 0)):
        y = np.pad(full, ((0, 0), (0, 0), (0, 4)))[:, :, cut:cut + size].astype(np.float32)
        case(f"ConvTranspose_to_{size}_{mode}", [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2], output_shape=[size], auto_pad=mode)], {"x": x}, {"y": y}, 11, constants={"w": w})
    x = random(2, 3, 6, 8)
    y, found = max_pool(x, (2, 2), (2, 2), (0,) * 4, (1, 1), 0, 0)
    back = np.zeros_like(x)
    back.reshape(-1)[found.reshape(-1)] = y.reshape(-1)
    for opset in (9, 11, 22):
        case(f"MaxUnpool_{opset}", [helper.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], {"x": y, "i": found}, {"y": back}, opset)
    larger = np.pad(back, ((0, 0), (0, 0), (0, 1), (0, 2)))
    case("MaxUnpool_to_size", [helper.make_node("MaxUnpool", ["x", "i", "s"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], {"x": y, "i": found}, {"y": larger}, 11,
         constants={"s": np.array(larger.shape, np.int64)})


def max_roi_pool(x, rois, pooled, scale):
    y = np.zeros((len(rois), x.shape[1], *pooled), x.dtype)
    for r, roi in enumerate(rois):
        corners = [math.floor(abs(float(v) * scale) + 0.5) * (1 if v >= 0 else -1) for v in roi[1:]]
        start, size = (corners[1], corners[0]), (max(corners[3] - corners[1] + 1, 1), max(corners[2] - corners[0] + 1, 1))
        for c, ph, pw in np.ndindex(*y.shape[1:]):
            low, high = [], []
            for p, s, n, limit, d in zip((ph, pw), start, size, pooled, (2, 3)):
                step = np.float32(n) / np.float32(limit)
                low.append(min(max(math.floor(p * step) + s, 0), x.shape[d]))
                high.append(min(max(math.ceil((p + 1) * step) + s, 0), x.shape[d]))
            part = x[int(roi[0]), c, low[0]:high[0], low[1]:high[1]]
            y[r, c, ph, pw] = part.max() if part.size else 0
    return y


def add_regions():
    x = random(2, 3, 12, 10)
    rois = np.array([[0, 0, 0, 9, 11], [1, 2, 3, 7, 8], [1, -3, 4, 2, 30], [0, 20, 20, 25, 25], [0, 5, 5, 4, 4]], np.float32)
    for scale, pooled in ((1.0, (3, 2)), (0.5, (7, 7)), (0.25, (1, 1))):
        case(f"MaxRoiPool_{scale}", [helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=pooled, spatial_scale=scale)], {"x": x, "r": rois},
             {"y": max_roi_pool(x, rois, pooled, scale)}, 1)
    half = rois.astype(np.float16)
    case("MaxRoiPool_f16", [helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[3, 3])], {"x": x.astype(np.float16), "r": half},
         {"y": max_roi_pool(x.astype(np.float16), half, (3, 3), 1.0)}, 22)
    boxes, batch = np.array([[0, 0, 9, 11], [2.5, 3.5, 7, 8], [-3, 4, 2, 30], [20, 20, 25, 25], [5, 5, 5, 5]], np.float32), np.array([0, 1, 1, 0, 1], np.int64)
    for opset, mode, ratio, transform in itertools.product((10, 16, 22), ("avg", "max"), (0, 2), ("half_pixel", "output_half_pixel")):
        extra = {} if opset < 16 else {"coordinate_transformation_mode": transform}
        if opset < 16 and transform == "half_pixel":
            continue
        node = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], mode=mode, output_height=3, output_width=2, sampling_ratio=ratio, spatial_scale=0.7, **extra)
        inputs = {"x": x, "r": boxes, "b": batch}
        # Before opset 16 there was no shift, which the evaluator knows by the later name only.
        later = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], mode=mode, output_height=3, output_width=2, sampling_ratio=ratio, spatial_scale=0.7, coordinate_transformation_mode=transform)
        model = make_model("reference", [later], inputs, {"y": x}, 16, {}, (), {}, False)
        case(f"RoiAlign_{opset}_{mode}_{ratio}_{transform}", [node], inputs, dict(zip("y", ReferenceEvaluator(model).run(None, inputs))), opset)


#===--- sampling and matrices ---------------------------------------------------------------------------------------===#


def deform_conv(x, w, offset, mask, bias, stride, pad, dilation, groups, offset_groups):
    """Over any number of dims, stride, pad and dilation the same in all."""
    n, c = x.shape[:2]
    o, per_group, kernel = w.shape[0], w.shape[1], w.shape[2:]
    dims, volume, out = len(kernel), math.prod(kernel), offset.shape[2:]
    offset = offset.reshape(n, offset_groups, volume, dims, *out)
    mask = np.ones((n, offset_groups, volume, *out)) if mask is None else mask.reshape(n, offset_groups, volume, *out)
    y = np.zeros((n, o, *out)) + (0 if bias is None else bias.reshape(1, -1, *[1] * dims))
    for b, i, (k, place), at in itertools.product(range(n), range(c), enumerate(np.ndindex(*kernel)), np.ndindex(*out)):
        g = i // (c // offset_groups)
        p = [at[d] * stride - pad + place[d] * dilation + offset[(b, g, k, d, *at)] for d in range(dims)]
        value = 0
        for corner in itertools.product((0, 1), repeat=dims):
            q = [math.floor(v) + s for v, s in zip(p, corner)]
            if all(0 <= v < s for v, s in zip(q, x.shape[2:])):
                value += x[(b, i, *q)] * math.prod(1 - abs(v - u) for v, u in zip(p, q))
        value *= mask[(b, g, k, *at)]
        first = (i // per_group) * (o // groups)
        for j in range(first, first + o // groups):
            y[(b, j, *at)] += w[(j, i % per_group, *place)] * value
    return y


def add_sizes_in_a_row():
    """Sizes that are made of many before them."""
    x, nodes, y = random(16, 36), [], random(16, 36)
    for i in range(24):
        nodes += [helper.make_node("Transpose", [f"v{i}"], [f"t{i}"], perm=[1, 0]), helper.make_node("Reshape", [f"t{i}", f"s{i % 2}"], [f"v{i + 1}"])]
        y = y.T.reshape(-1, (24, 18)[i % 2])
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    case("Reshape_turns", nodes, {"x": x}, {"y": y}, 13, constants={"s0": np.array([-1, 24]), "s1": np.array([-1, 18])})
    x, nodes, y = random(5), [], random(5)
    for i in range(9):
        nodes += [helper.make_node("Slice", [f"v{i}", "s", "e", "a", "k"], [f"t{i}"]), helper.make_node("Concat", [f"v{i}", f"t{i}"], [f"v{i + 1}"], axis=0)]
        y = np.concatenate([y, y[::3]])
    nodes[0].input[0] = nodes[1].input[0] = "x"
    nodes[-1].output[0] = "y"
    case("Concat_of_thirds", nodes, {"x": x}, {"y": y}, 13, constants={"s": np.array([0]), "e": np.array([1 << 40]), "a": np.array([0]), "k": np.array([3])})


def add_sampling():
    # The only sample of a dim lies at 0 (ReferenceEvaluator: -0.5), which only wide kernels tell.
    x, scales = random(4, 2), np.array([1, 0.5], np.float32)
    for mode, weights in (("linear", [0.75, 0.25]), ("cubic", [1, 0])):
        y = x @ np.array(weights, np.float32)
        case(f"Resize_to_one_{mode}", [helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, antialias=int(mode == "linear"),
                                                        coordinate_transformation_mode="pytorch_half_pixel")], {"x": x}, {"y": y[:, None]}, 18, constants={"s": scales})
    # The middle of an odd result of an even line lies between two elements, whatever the scale.
    for (size, scale), mode in itertools.product(((4, 0.77), (4, 1.3), (6, 0.6), (8, 1.7), (10, 0.55)), ("floor", "ceil")):
        scale, x = np.float32(scale), random(2, size)
        out = math.floor(np.float32(size) * scale)
        at = [Fraction(size - 1, 2) + Fraction(2 * k + 1 - out, 2) / Fraction(float(scale)) for k in range(out)]
        near = [math.ceil(v - Fraction(1, 2)) if mode == "floor" else math.floor(v + Fraction(1, 2)) for v in at]
        case(f"Resize_symmetric_{size}_{out}_{mode}", [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=f"round_prefer_{mode}",
                                                                        coordinate_transformation_mode="half_pixel_symmetric")],
             {"x": x}, {"y": x[:, np.clip(near, 0, size - 1)]}, 19, constants={"s": np.array([1, scale], np.float32)})  # fmt: skip
    # What lies beyond the border is the border's element, on both sides.
    grid = np.stack(np.meshgrid(np.linspace(-1.6, 1.6, 24), np.linspace(-1.3, 1.3, 12)), axis=-1)[None].astype(np.float32)
    for align in 0, 1:
        case(f"GridSample_cubic_border_{align}", [helper.make_node("GridSample", ["x", "g"], ["y"], mode="cubic", padding_mode="border", align_corners=align)], {"x": random(1, 2, 4, 5), "g": grid}, None, 20,
             tolerance=1e-5)
    # Many channels: all neighbours of a position are a sum. Positions far outside, too.
    for mode, padding, align, spatial in itertools.product(("linear", "cubic"), ("zeros", "border", "reflection"), (0, 1), ((6, 5), (3, 4, 5))):
        if mode == "cubic" and (padding == "border" or len(spatial) == 3):
            continue  # the reference evaluator reads borders of cubic ones otherwise, and takes no volumes
        grid = np.random.default_rng(5).uniform(-1.7, 1.7, (2, *spatial[1:], 3, len(spatial))).astype(np.float32)
        case(f"GridSample_many_{mode}_{padding}_{align}_{len(spatial)}d", [helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding, align_corners=align)],
             {"x": random(2, 9, *spatial), "g": grid}, None, 20, tolerance=1e-5)
    # Scales that the run knows ask for as many taps.
    for mode, outside, shape in itertools.product(("linear", "cubic"), (0, 1), ((3, 7), (20, 40), (11, 2))):
        x, sizes = random(2, 3, 11, 17), np.array(shape, np.int64)
        case(f"Resize_antialias_{mode}_{outside}_{shape[0]}x{shape[1]}", [helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode=mode, antialias=1, axes=[2, 3], exclude_outside=outside)],
             {"x": x, "s": sizes}, None, 19, tolerance=1e-5, dynamic=False)
    for name, size, kernel, stride, pad, dilation, groups, offset_groups in (("1d", (9,), (3,), 2, 1, 1, 1, 2), ("2d", (6, 5), (3, 2), 1, 1, 1, 2, 1), ("2d_dilated", (7, 7), (2, 2), 2, 1, 2, 1, 2),
                                                                            ("3d", (3, 4, 3), (2, 1, 2), 1, 0, 1, 2, 4)):  # fmt: skip
        out = [(s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s, k in zip(size, kernel)]
        x, w = random(2, 4, *size), random(6, 4 // groups, *kernel)
        offset, mask, bias = random(2, offset_groups * math.prod(kernel) * len(size), *out), random(2, offset_groups * math.prod(kernel), *out), random(6)
        attributes = {"strides": [stride] * len(size), "pads": [pad] * 2 * len(size), "dilations": [dilation] * len(size), "group": groups, "offset_group": offset_groups}
        y = deform_conv(*(v.astype(np.float64) for v in (x, w, offset, mask, bias)), stride, pad, dilation, groups, offset_groups)
        case(f"DeformConv_{name}", [helper.make_node("DeformConv", ["x", "w", "o", "b", "m"], ["y"], **attributes)], {"x": x, "o": offset, "m": mask}, {"y": y.astype(np.float32)}, 19,
             constants={"w": w, "b": bias})
        y = deform_conv(*(v.astype(np.float64) for v in (x, w, offset)), None, None, stride, pad, dilation, groups, offset_groups)
        case(f"DeformConv_{name}_f64", [helper.make_node("DeformConv", ["x", "w", "o"], ["y"], **attributes)], {"x": x.astype(np.float64), "o": offset.astype(np.float64)},
             {"y": y}, 22, constants={"w": w.astype(np.float64)}, tolerance=1e-12)
    for image, block, strides, dilations, pads in (((9,), (3,), (2,), (1,), (1, 0)), ((7, 8), (3, 2), (1, 1), (1, 2), (0, 1, 2, 1)), ((9, 40), (5, 5), (2, 1), (1, 1), (2, 2, 2, 2)), ((8, 70), (2, 5), (3, 2), (2, 1), (1, 2, 0, 1)),
                                                   ((6, 6), (2, 2), (3, 4), (1, 1), (0, 0, 0, 0)), ((4, 5, 6), (2, 3, 2), (2, 1, 3), (1, 1, 2), (0, 1, 1, 1, 0, 1)), ((90,), (80,), (1,), (1,), (0, 0))):  # fmt: skip
        n = len(image)
        counts = [(i + pads[d] + pads[d + n] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d, i in enumerate(image)]
        x = random(2, 3 * math.prod(block), math.prod(counts))
        y = np.zeros((2, 3, *(i + pads[d] + pads[d + n] for d, i in enumerate(image))), np.float64)
        for (k, place), (l, at) in itertools.product(enumerate(np.ndindex(*block)), enumerate(np.ndindex(*counts))):
            y[(..., *(place[d] * dilations[d] + at[d] * strides[d] for d in range(n)))] += x.reshape(2, 3, math.prod(block), -1)[:, :, k, l]
        y = y[(..., *(slice(pads[d], pads[d] + image[d]) for d in range(n)))].astype(np.float32)
        case(f"Col2Im_{'x'.join(map(str, image))}_{'x'.join(map(str, block))}", [helper.make_node("Col2Im", ["x", "s", "k"], ["y"], strides=strides, dilations=dilations, pads=pads)], {"x": x},
             {"y": y}, 18, constants={"s": np.array(image, np.int64), "k": np.array(block, np.int64)})
    for equation, *sizes in (("ii->i", (6, 6)), ("ii", (17, 17)), ("bii->ib", (3, 5, 5)), ("iji->j", (4, 3, 4)), ("iijk,jk->ki", (4, 4, 5, 3), (5, 3)), ("iii->i", (4, 4, 4)), ("...ijij->...ji", (2, 3, 4, 3, 4)),
                             ("ii,jj->ij", (130, 130), (140, 140))):  # fmt: skip
        inputs = {n: random(*size) for n, size in zip("ab", sizes)}
        case(f"Einsum_{equation}", [helper.make_node("Einsum", list(inputs), ["y"], equation=equation)], inputs,
             {"y": np.einsum(equation, *(v.astype(np.float64) for v in inputs.values())).astype(np.float32)}, 12)
    for spatial, align in itertools.product(((3, 4), (1, 5), (2, 3, 4)), (0, 1)):
        d = len(spatial)
        theta, size = random(2, d, d + 1), np.array([2, 3, *spatial], np.int64)
        axes = [-1 + 2 * np.arange(s) / max(s - 1, 1) if align else (2 * np.arange(s) + 1) / s - 1 for s in spatial]
        grid = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(spatial)], axis=-1)
        y = np.einsum("nij,...j->n...i", theta.astype(np.float64), grid).astype(np.float32)
        case(f"AffineGrid_{'x'.join(map(str, spatial))}_{align}", [helper.make_node("AffineGrid", ["t", "s"], ["y"], align_corners=align)], {"t": theta, "s": size}, {"y": y}, 20, dynamic=False)
    for size, dtype in itertools.product((0, 1, 2, 4, 5, 8, 17, 24), (np.float32, np.float64)):
        x = random(2, 3, size, size, dtype=dtype)
        if size == 5:
            x[0, 0, 3] = 2 * x[0, 0, 1]  # singular
            x[0, 1, 0, 0] = 0
        case(f"Det_{size}_{np.dtype(dtype).name}", [helper.make_node("Det", ["x"], ["y"])], {"x": x}, {"y": np.linalg.det(x.astype(np.float64)).astype(dtype)}, 11,
             tolerance=1e-5 if dtype == np.float32 else 1e-12)
    x = random(4, 4).astype(np.float16)
    case("Det_f16", [helper.make_node("Det", ["x"], ["y"])], {"x": x}, {"y": np.array(np.linalg.det(x.astype(np.float64)), np.float16)}, 22, tolerance=1e-3)
    for dims, axis in (((3, 4), None), ((1, 3, 1, 4), None)):
        x = random(*dims)
        case(f"Squeeze_{len(dims)}", [helper.make_node("Squeeze", ["x"], ["y"])], {"x": x}, {"y": x.squeeze()}, 13)


#===--- loops and recurrent layers ----------------------------------------------------------------------------------===#


def add_scans():
    def body_of(dims):
        info = lambda names: [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n in names]
        return helper.make_graph([helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["o"])], "body", info("sx"), info("to"))

    s, x, lengths = random(3, 2), random(3, 5, 2), np.array([5, 2, 0], np.int64)
    for name, given, reverse in (("whole", False, 0), ("lengths", True, 0), ("reverse", True, 1)):
        y, end = np.zeros_like(x), s.copy()
        for b in range(3):
            n = lengths[b] if given else 5
            for t in reversed(range(n)) if reverse else range(n):
                end[b] = end[b] + x[b, t]
                y[b, n - 1 - t if reverse else t] = end[b]
        for kind, dims in (("", [2]), ("_body_of_unknown_size", [None])):
            node = helper.make_node("Scan", ["l" if given else "", "s", "x"], ["e", "y"], num_scan_inputs=1, body=body_of(dims), directions=[reverse])
            case(f"Scan_8_{name}{kind}", [node], {**({"l": lengths} if given else {}), "s": s, "x": x}, {"e": end, "y": y}, 8)
    y = np.cumsum(x[0][::-1], axis=0)[::-1]
    for kind, dims in (("", [2]), ("_body_of_unknown_size", [None])):
        node = helper.make_node("Scan", ["z", "x"], ["e", "y"], num_scan_inputs=1, body=body_of(dims), scan_input_directions=[1], scan_output_directions=[1])
        case(f"Scan_9_reverse{kind}", [node], {"z": np.zeros(2, np.float32), "x": x[0]}, {"e": x[0].sum(0), "y": y}, 9)


ACTIVATIONS = {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "tanh": np.tanh, "relu": lambda v: np.maximum(v, 0), "softsign": lambda v: v / (1 + abs(v)),
               "softplus": lambda v: np.log1p(np.exp(v)), "leakyrelu": lambda v: np.where(v > 0, v, 0.3 * v), "hardsigmoid": lambda v: np.clip(0.2 * v + 0.5, 0, 1),
               "elu": lambda v: np.where(v > 0, v, np.expm1(v)), "affine": lambda v: 0.5 * v + 0.1, "scaledtanh": lambda v: 0.7 * np.tanh(0.9 * v),
               "thresholdedrelu": lambda v: np.where(v > 0.2, v, 0)}  # fmt: skip


def recurrence(kind, x, w, r, bias, lengths, activations, clip=None, coupled=False, linear=False, peephole=None):
    """One forward direction in float64: all hidden states, the last one, the last cell."""
    gates, h = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], r.shape[1]
    f = [lambda v, a=ACTIVATIONS[a]: a(np.clip(v, -clip, clip) if clip else v) for a in activations]
    wb, rb = np.split(bias, 2)
    state, cell, hidden = np.zeros((x.shape[1], h)), np.zeros((x.shape[1], h)), np.zeros((*x.shape[:2], h))
    p = np.zeros((3, h)) if peephole is None else peephole.reshape(3, h)
    for t in range(len(x)):
        inputs = np.split(x[t] @ w.T + wb, gates, axis=1)
        own = np.split(state @ r.T + rb, gates, axis=1)
        if kind == "RNN":
            new, next_cell = f[0](inputs[0] + own[0]), cell
        elif kind == "GRU":
            z, reset = f[0](inputs[0] + own[0]), f[0](inputs[1] + own[1])
            part = reset * own[2] if linear else (reset * state) @ r[2 * h:].T + rb[2 * h:]
            new, next_cell = (1 - z) * f[1](inputs[2] + part) + z * state, cell
        else:
            i = f[0](inputs[0] + own[0] + p[0] * cell)
            forget = 1 - i if coupled else f[0](inputs[2] + own[2] + p[2] * cell)
            next_cell = forget * cell + i * f[1](inputs[3] + own[3])
            new = f[0](inputs[1] + own[1] + p[1] * next_cell) * f[2](next_cell)
        active = (t < lengths)[:, None]
        state, cell, hidden[t] = np.where(active, new, state), np.where(active, next_cell, cell), np.where(active, new, 0)
    return hidden, state, cell


def add_recurrent():
    defaults = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
    forms = [(kind, dtype, {}) for kind in defaults for dtype in ("f32", "f16", "bf16", "f64")]
    forms += [("GRU", dtype, {"linear_before_reset": 1}) for dtype in ("f64", "f16")]
    forms += [("RNN", "f32", {"activations": [a]}) for a in ACTIVATIONS]
    forms += [("LSTM", "f32", {"clip": 0.3}), ("LSTM", "f32", {"input_forget": 1}), ("LSTM", "f16", {"activations": ["hardsigmoid", "relu", "softsign"]}),
              ("GRU", "f32", {"activations": ["hardsigmoid", "relu"], "linear_before_reset": 1})]  # fmt: skip
    for kind, dtype, extra in forms:
        gates, h, inputs, steps, batch = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 5, 3, 4, 2
        storage = {"f32": np.float32, "f16": np.float16, "bf16": np.float32, "f64": np.float64}[dtype]

        def make(*shape, seed):
            v = (random(*shape, seed=seed) * 0.5).astype(np.float32)
            if dtype == "bf16":
                v = (v.view(np.uint32) & 0xFFFF0000).view(np.float32)
            return v.astype(storage)

        x, w, r, bias = make(steps, batch, inputs, seed=1), make(1, gates * h, inputs, seed=2), make(1, gates * h, h, seed=3), make(1, 2 * gates * h, seed=4)
        values, names = {"x": x, "w": w, "r": r, "b": bias, "l": np.array([steps, 2], np.int32)}, ["x", "w", "r", "b", "l"]
        peephole = None
        if kind == "LSTM":
            peephole = make(1, 3 * h, seed=5)
            values["p"], names = peephole, names + ["", "", "p"]
        hidden, state, cell = recurrence(kind, *(v.astype(np.float64) for v in (x, w[0], r[0], bias[0])), values["l"], extra.get("activations", defaults[kind]), extra.get("clip"),
                                         bool(extra.get("input_forget")), bool(extra.get("linear_before_reset")), None if peephole is None else peephole[0].astype(np.float64))
        expected = {"y": hidden[:, None], "h": state[None], **({"c": cell[None]} if kind == "LSTM" else {})}
        attributes = dict(extra)
        for activation in extra.get("activations", []):
            alpha, beta = {"leakyrelu": (0.3, None), "hardsigmoid": (0.2, 0.5), "elu": (1.0, None), "affine": (0.5, 0.1), "scaledtanh": (0.7, 0.9), "thresholdedrelu": (0.2, None)}.get(activation, (None, None))
            if alpha is not None:
                attributes["activation_alpha"] = [alpha]
            if beta is not None:
                attributes["activation_beta"] = [beta]
        node = helper.make_node(kind, names, list(expected), hidden_size=h, **attributes)
        floats = [n for n in (*values, *expected) if n != "l"]
        types = {n: TensorProto.BFLOAT16 for n in floats} if dtype == "bf16" else {}
        name = "_".join([kind, dtype, *(f"{k}_{'_'.join(v) if isinstance(v, list) else v}" for k, v in extra.items())])
        weights = {} if extra else {n: values.pop(n) for n in ("w", "r", "b", "p") if n in values and dtype == "f64"}
        case(name, [node], values, {n: v.astype(storage) for n, v in expected.items()}, 22, dynamic=dtype == "f64", types=types, constants=weights,
             tolerance={"f32": 2e-6, "f16": 2e-3, "bf16": 2e-2, "f64": 1e-13}[dtype])
    constant = {n: random(*s, seed=7) for n, s in (("w", (1, 6, 3)), ("r", (1, 6, 2)))}
    hidden, state, _ = recurrence("GRU", random(3, 2, 3).astype(np.float64), constant["w"][0], constant["r"][0], np.zeros(12), np.array([3, 3]), defaults["GRU"])
    case("GRU_1", [helper.make_node("GRU", ["x", "w", "r"], ["y", "h"], hidden_size=2)], {"x": random(3, 2, 3)},
         {"y": hidden[:, None].astype(np.float32), "h": state[None].astype(np.float32)}, 1, constants=constant)


def add_attention():
    for dtype, size in itertools.product((np.float64, np.float16), (4, 7)):
        q, k, v = (random(2, 3, n, size, seed=i, dtype=dtype) for i, n in enumerate((5, 6, 6)))
        scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) * 0.25
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True) @ v.astype(np.float64)).astype(dtype)
        case(f"Attention_{np.dtype(dtype).name}_{size}", [helper.make_node("Attention", ["q", "k", "v"], ["y"], scale=0.25)], {"q": q, "k": k, "v": v}, {"y": y}, 23,
             tolerance=2e-3 if dtype == np.float16 else 1e-13)


#===--- old versions ------------------------------------------------------------------------------------------------===#


def add_unknown_lengths():
    """Operands with one element, two or four, whose length the model does not say."""
    node, x, i64 = helper.make_node, random(3, 5), np.int64
    one = lambda v, t=i64: np.array([v], t)
    case("TopK_11", [node("TopK", ["x", "k"], ["y", "i"])], {"x": x, "k": one(2)}, None, 11)
    case("OneHot_11", [node("OneHot", ["i", "d", "v"], ["y"])], {"i": np.array([[1, 3], [0, -1]], i64), "d": one(4), "v": np.array([2, 5], np.float32)},
         {"y": np.where(np.eye(4)[[[1, 3], [0, 3]]], 5, 2).astype(np.float32)}, 11)
    case("Range_11", [node("Range", ["a", "b", "c"], ["y"])], {"a": np.array(2, i64), "b": np.array(9, i64), "c": np.array(3, i64)}, {"y": np.array([2, 5, 8])}, 11, dynamic=False)
    case("CumSum_14", [node("CumSum", ["x", "a"], ["y"])], {"x": x, "a": one(1)}, {"y": np.cumsum(x, 1)}, 14)
    case("Trilu_14", [node("Trilu", ["x", "k"], ["y"])], {"x": x, "k": one(1)}, {"y": np.triu(x, 1)}, 14)
    grid = random(2, 3, 4, 2) * 0.7
    case("GridSample_20", [node("GridSample", ["x", "g"], ["y"])], {"x": random(2, 3, 5, 6), "g": grid.astype(np.float32)}, None, 20, tolerance=1e-5)
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32)
    case("NonMaxSuppression_11", [node("NonMaxSuppression", ["b", "s", "m", "o"], ["y"])],
         {"b": boxes, "s": np.array([[[0.9, 0.8, 0.7]]], np.float32), "m": one(3), "o": one(0.5, np.float32)}, {"y": np.array([[0, 0, 0], [0, 0, 2]])}, 11)
    case("If_16", [node("If", ["c"], ["y"], then_branch=helper.make_graph([node("Neg", ["x"], ["t"])], "t", [], [helper.make_tensor_value_info("t", 1, None)]),
                        else_branch=helper.make_graph([node("Abs", ["x"], ["e"])], "e", [], [helper.make_tensor_value_info("e", 1, None)]))],
         {"c": one(True, bool), "x": x}, {"y": -x}, 16)


def add_bags():
    """Slices whose bounds are slices of data: EmbeddingBag as torch.export writes it, a loop over bags of a list."""
    node, info, i64, f32 = helper.make_node, helper.make_tensor_value_info, TensorProto.INT64, TensorProto.FLOAT
    for name, reduce in (("sum", "ReduceSum"), ("max", "ReduceMax")):
        empty = helper.make_graph([node("Identity", ["nothing"], ["e"])], "empty", [], [info("e", f32, None)])
        full = helper.make_graph([node("Slice", ["rows", "start", "end"], ["part"]), node(reduce, ["part", "zero"], ["r"])], "full", [], [info("r", f32, None)])
        body = [node("Reshape", ["i", "minus"], ["at"]), node("Add", ["at", "one"], ["next"]), node("Add", ["at", "two"], ["after"]), node("Slice", ["bounds", "at", "next"], ["start"]),
                node("Slice", ["bounds", "next", "after"], ["end"]), node("Equal", ["start", "end"], ["none"]), node("If", ["none"], ["row"], then_branch=empty, else_branch=full),
                node("SequenceInsert", ["s", "row"], ["t"]), node("Add", ["i", "one"], ["j"]), node("Less", ["j", "bags"], ["go"])]  # fmt: skip
        sequence = helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(f32, None)))
        result = helper.make_value_info("t", helper.make_sequence_type_proto(helper.make_tensor_type_proto(f32, None)))
        loop = helper.make_graph(body, "body", [info("trip", i64, []), info("on", TensorProto.BOOL, []), info("i", i64, []), sequence], [info("go", TensorProto.BOOL, []), info("j", i64, []), result])
        table, indices, offsets = random(20, 8), np.array([1, 2, 4, 5, 4, 3, 2, 9]), np.array([0, 3, 3, 5])
        rows = [table[indices[a:b]] for a, b in zip(offsets, [*offsets[1:], len(indices)])]
        y = np.stack([(r.sum(0) if name == "sum" else r.max(0)) if len(r) else np.zeros(8, np.float32) for r in rows])
        constants = {"table": table, "minus": np.array([-1]), "one": np.array(1), "two": np.array(2), "zero": np.array([0]), "nothing": np.zeros((1, 8), np.float32), "first": np.array(0),
                     "yes": np.array(True), "length": np.array([len(indices)]), "bags": np.array(len(offsets))}  # fmt: skip
        case(f"EmbeddingBag_{name}", [node("Gather", ["table", "x"], ["rows"]), node("Concat", ["o", "length"], ["bounds"], axis=0), node("SequenceEmpty", [], ["none0"]),
                                      node("Loop", ["", "yes", "first", "none0"], ["k", "all"], body=loop), node("ConcatFromSequence", ["all"], ["y"], axis=0)],
             {"x": indices, "o": offsets}, {"y": y}, 18, constants=constants)  # fmt: skip
    # Bounds of one dim or of two, as the run has it; with axes as many as these.
    for count, axes in itertools.product((1, 2), (False, True)):
        x, bounds = random(6, 7), np.array([[1, 2], [4, 6]])
        constants = {"zero": np.array([0]), "last": np.array([1]), **({"axes": np.arange(count)} if axes else {})}
        case(f"Slice_by_{count}_bounds_{axes}", [node("Slice", ["s", "zero", "n"], ["starts"]), node("Slice", ["e", "zero", "n"], ["ends"]), node("Slice", ["x", "starts", "ends", *(["axes"] if axes else [])], ["y"])],
             {"x": x, "s": bounds[0], "e": bounds[1], "n": np.array([count])}, {"y": x[1:4, 2:6] if count == 2 else x[1:4]}, 13, constants=constants)  # fmt: skip


def suppress(boxes, scores, most, overlap, threshold, center):
    """Non-maximum suppression one box after the other, in the numbers' own type."""
    if center:
        x, y, w, h = np.moveaxis(boxes, -1, 0)
        y1, x1, y2, x2 = y - h / 2, x - w / 2, y + h / 2, x + w / 2
    else:
        y1, x1 = np.moveaxis(np.minimum(boxes[..., :2], boxes[..., 2:]), -1, 0)
        y2, x2 = np.moveaxis(np.maximum(boxes[..., :2], boxes[..., 2:]), -1, 0)
    area, found = (y2 - y1) * (x2 - x1), []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if len(kept) == most or (threshold is not None and not scores[b, c, i] > threshold):
                break
            shared = [max(min(y2[b, i], y2[b, j]) - max(y1[b, i], y1[b, j]), 0) * max(min(x2[b, i], x2[b, j]) - max(x1[b, i], x1[b, j]), 0) for j in kept]
            if not any(s and s / (area[b, i] + area[b, j] - s) > overlap for s, j in zip(shared, kept)):
                kept.append(i)
        found += [(b, c, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def add_suppression():
    """Few and many boxes, with equal scores, above a threshold and all, by corners in any order and by centers, in three types."""
    rng = np.random.default_rng(5)
    for name, (batch, classes, count, most, overlap, threshold, center, dtype) in {
        "many": (1, 3, 700, 50, 0.4, 0.6, 0, np.float32), "all": (2, 2, 90, 1000, 0.3, None, 0, np.float32), "center": (2, 3, 60, 9, 0.5, 0.25, 1, np.float32),
        "f64": (1, 2, 80, 20, 0.5, 0.5, 0, np.float64), "f16": (1, 2, 40, 20, 0.5, 0.5, 0, np.float16), "none_wanted": (1, 2, 20, 0, 0.5, None, 0, np.float32),
        "no_boxes": (1, 2, 0, 4, 0.5, 0.1, 0, np.float32), "none_above": (1, 1, 30, 4, 0.5, 2, 0, np.float32),
        "apart": (1, 2, 600, 600, 0.2, 0.1, 0, np.float32), "endless": (1, 1, 300, 300, 0, None, 0, np.float64)}.items():  # fmt: skip
        boxes = rng.random((batch, count, 4))
        boxes[..., 2:] = boxes[..., 2:] * 0.3 + (0 if center else boxes[..., :2] - 0.1)
        if name in ("apart", "endless"):  # more boxes than one band holds: of classes that are moved apart, and with an edge at infinity
            boxes += 3 * rng.integers(0, 9, (batch, count, 1))
            boxes[0, 3, 2] = np.inf if name == "endless" else boxes[0, 3, 2] + 20
        scores = np.round(rng.random((batch, classes, count)) * 40) / 40
        boxes, scores = boxes.astype(dtype), scores.astype(dtype)
        wide = boxes.astype(np.float32) if dtype == np.float16 else boxes
        inputs = {"b": boxes, "s": scores, "m": np.array(most, np.int64), "o": np.array(overlap, np.float32)} | ({} if threshold is None else {"t": np.array(threshold, np.float32)})
        case(f"NonMaxSuppression_{name}", [helper.make_node("NonMaxSuppression", [*inputs], ["y"], center_point_box=center)], inputs,
             {"y": suppress(wide, scores, most, wide.dtype.type(np.float32(overlap)), threshold, center)}, 11)


def add_wrapping():
    """Short lists of integers may be sizes, but their sums and products wrap as all do."""
    for dtype in (np.int64, np.int32):
        big, few = np.array([np.iinfo(dtype).max // 2, -5, 7], dtype), np.array([6, 3, 3], dtype)
        for kind, op in (("Mul", np.multiply), ("Add", np.add), ("Sub", np.subtract)):
            other = big if kind == "Mul" else np.full(3, np.iinfo(dtype).min if kind == "Sub" else np.iinfo(dtype).max, dtype)
            nodes = [helper.make_node("Concat", ["a", "a"], ["b"], axis=0), helper.make_node("Concat", ["c", "c"], ["d"], axis=0), helper.make_node(kind, ["b", "d"], ["e"]),
                     helper.make_node("Add", ["e", "x"], ["y"])]  # fmt: skip
            with np.errstate(over="ignore"):
                case(f"{kind}_wraps_{np.dtype(dtype)}", nodes, {"x": np.zeros(6, dtype)}, {"y": op(np.tile(few, 2), np.tile(other, 2))}, 13, constants={"a": few, "c": other}, dynamic=False)


def add_many_sizes():
    """A program in parts, whose values have sizes of their own: what each one takes is known only when it runs."""
    x, nodes, constants, y = random(5), [], {}, 0
    for i in range(260):
        constants[f"c{i}"] = np.arange(i + 1, dtype=np.float32) / 64
        nodes += [helper.make_node("Concat", ["x", f"c{i}"], [f"t{i}"], axis=0), helper.make_node("CumSum", [f"t{i}", "axis"], [f"s{i}"]),
                  helper.make_node("Gather", [f"s{i}", "last"], [f"l{i}"]), helper.make_node("Add", [f"l{i - 1}" if i == 1 else f"y{i - 1}", f"l{i}"], [f"y{i}"])][: 4 if i else 3]
        y = y + x.sum(dtype=np.float64) + constants[f"c{i}"].sum(dtype=np.float64)
    nodes[-1].output[0] = "y"
    case("many_sizes", nodes, {"x": x}, {"y": np.array([y], np.float32)}, 14, constants={**constants, "axis": np.array(0, np.int64), "last": np.array([-1], np.int64)}, tolerance=2e-5)


def add_untyped():
    """ONNX's inference knows nothing of what a Normalizer gives, and its EyeLike asked for that without a look."""
    nodes = [helper.make_node("Normalizer", ["x"], ["n"], domain="ai.onnx.ml", norm="L2"), helper.make_node("EyeLike", ["n"], ["y"], dtype=int(TensorProto.INT64), k=1)]
    case("EyeLike_of_unknown_type", nodes, {"x": random(3, 4)}, {"y": np.eye(3, 4, 1, np.int64)}, 13, domains=["ai.onnx.ml"])


def add_far_from_zero():
    """The variance of values far from zero is not what is left of E[X^2] - E[X]^2."""
    x = (random(1, 4, 16, 16) + np.float32(4000)).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean((0, 2, 3), keepdims=True)) / np.sqrt(wide.var((0, 2, 3), keepdims=True))
    case("MeanVarianceNormalization_far_from_zero", [helper.make_node("MeanVarianceNormalization", ["x"], ["y"])], {"x": x}, {"y": expected.astype(np.float32)}, 13,
         tolerance=2e-3)


def add_sparse():
    x, values = random(3, 4), np.array([1.5, -2, 4], np.float32)
    dense = np.zeros((3, 4), np.float32)
    dense.reshape(-1)[[1, 6, 11]] = values
    for form, indices in (("flat", [1, 6, 11]), ("coordinates", [[0, 1], [1, 2], [2, 3]])):
        sparse = helper.make_sparse_tensor(numpy_helper.from_array(values, ""), numpy_helper.from_array(np.array(indices, np.int64)), [3, 4])
        case(f"Constant_sparse_{form}", [helper.make_node("Constant", [], ["c"], sparse_value=sparse), helper.make_node("Add", ["x", "c"], ["y"])], {"x": x}, {"y": x + dense}, 13)


def add_types():
    """Element types that the conformance cases leave out."""
    n = helper.make_node
    x = np.array([-7, -2, -1, 0, 1, 2, 9], np.float32)
    for kind in ("int8", "int16", "int32", "int64", "uint8", "float64"):
        v = (abs(x) if kind[0] == "u" else x).astype(kind)
        w = v.astype(np.float64)
        expected = np.where(w < -1.25, w + 0.75, np.where(w > 1.25, w - 0.75, 0)).astype(kind)
        case(f"Shrink_{kind}", [n("Shrink", ["x"], ["y"], lambd=1.25, bias=0.75)], {"x": v}, {"y": expected}, 9)
    # Reductions take integers that ONNX's definitions leave out; sums wrap as the type does.
    for kind in ("int8", "int16", "uint8"):
        v = np.array([[3, 100, 90], [7, 0, 2]], kind)
        for op, expected in (("Sum", v.sum(1, dtype=kind, keepdims=True)), ("Prod", v.prod(1, dtype=kind, keepdims=True)), ("Max", v.max(1, keepdims=True)),
                             ("L1", v.sum(1, dtype=kind, keepdims=True)), ("SumSquare", (v * v).sum(1, dtype=kind, keepdims=True)),
                             ("L2", np.sqrt((v[1:].astype(np.float64) ** 2).sum(1, keepdims=True)).astype(kind))):  # fmt: skip
            data = v[1:] if op == "L2" else v
            case(f"Reduce{op}_{kind}", [n(f"Reduce{op}", ["x", "a"], ["y"])], {"x": data}, {"y": expected}, 18, constants={"a": np.array([1])})
        case(f"CumSum_{kind}", [n("CumSum", ["x", "a"], ["y"])], {"x": v}, {"y": v.cumsum(1, dtype=kind)}, 14, constants={"a": np.array(1)})
    v = random(3, 5, dtype=np.float64)
    mean, scale = v.mean(1, keepdims=True), 1 / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    case("LayerNormalization_float64", [n("LayerNormalization", ["x", "s"], ["y", "m", "d"])], {"x": v, "s": np.ones(5)},
         {"y": (v - mean) * scale, "m": mean.astype(np.float32), "d": scale.astype(np.float32)}, 17)
    case("QuantizeLinear_int32_scale", [n("QuantizeLinear", ["x", "s", "z"], ["y"])], {"x": x, "s": np.int32(2), "z": np.int8(3)},
         {"y": (np.rint(x / 2) + 3).astype(np.int8)}, 21)
    a, b = np.array([[1, -2, 0.5], [4, 0, -1]], np.float32), np.array([[2, 1], [-1, 0.5], [8, 3]], np.float32)
    e4m3 = TensorProto.FLOAT8E4M3FN
    operands = {"a": a, "sa": np.float32(0.5), "za": np.float32(0), "b": b, "sb": np.float32(2), "zb": np.float32(0), "sy": np.float32(0.25), "zy": np.float32(0)}
    case("QLinearMatMul_float8", [n("QLinearMatMul", list(operands), ["y"])], operands, {"y": a @ b * 4}, 21,
         types={"a": e4m3, "za": e4m3, "b": e4m3, "zb": e4m3, "zy": e4m3, "y": e4m3})


def add_old_versions():
    x = random(2, 3, 4, 5)

    def one(name, op, expected, opset, inputs=("x",), constants=None, dynamic=True, **attributes):
        outputs = list(expected)
        case(f"{name}_{opset}", [helper.make_node(op, list(inputs), outputs, **attributes)], {"x": x}, expected, opset, constants=constants, dynamic=dynamic)

    scale, bias, mean, variance = (random(3, seed=i) for i in range(4))
    variance = abs(variance) + 0.5
    spread = lambda v: v.reshape(-1, 1, 1).astype(np.float64)
    normal = ((x - spread(mean)) / np.sqrt(spread(variance) + 1e-5) * spread(scale) + spread(bias)).astype(np.float32)
    statistics = {"s": scale, "b": bias, "m": mean, "v": variance}
    for opset, extra in ((1, {"is_test": 1, "consumed_inputs": [0] * 5}), (6, {"is_test": 1}), (7, {}), (9, {}), (14, {}), (15, {})):
        one("BatchNormalization", "BatchNormalization", {"y": normal}, opset, ("x", *statistics), statistics, **extra)
    own = {n: random(3, 4, 5, seed=i) for i, n in enumerate("sbmv")}
    own["v"] = abs(own["v"]) + 0.5
    each = ((x - own["m"].astype(np.float64)) / np.sqrt(own["v"] + 1e-5) * own["s"] + own["b"]).astype(np.float32)
    for opset, extra in ((1, {"is_test": 1, "consumed_inputs": [0] * 5}), (6, {"is_test": 1}), (7, {})):
        one("BatchNormalization_per_element", "BatchNormalization", {"y": each}, opset, ("x", *own), own, spatial=0, **extra)
    batch_mean, batch_variance = x.mean((0, 2, 3), dtype=np.float64), x.var((0, 2, 3), dtype=np.float64)
    trained = ((x - spread(batch_mean)) / np.sqrt(spread(batch_variance) + 1e-5) * spread(scale) + spread(bias)).astype(np.float32)
    moved = [(0.9 * old + 0.1 * new).astype(np.float32) for old, new in ((mean, batch_mean), (variance, batch_variance))]
    for opset in (7, 9):
        one("BatchNormalization_training", "BatchNormalization", {"y": trained, "nm": moved[0], "nv": moved[1]}, opset, ("x", *statistics), statistics)
    one("InstanceNormalization", "InstanceNormalization", {"y": ((x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5) * spread(scale) + spread(bias)).astype(np.float32)},
        1, ("x", "s", "b"), {"s": scale, "b": bias})
    one("Tile", "Tile", {"y": np.tile(x, (1, 1, 3, 1))}, 1, ("x", "t", "a"), {"t": np.array([3], np.float32), "a": np.array([2], np.float32)}, dynamic=False)
    one("Split", "Split", dict(zip("yz", np.split(x, [1], axis=1))), 1, axis=1, split=[1, 2])
    one("Split_operand", "Split", dict(zip("yz", np.split(x, [3], axis=3))), 1, ("x", "n"), {"n": np.array([3, 2], np.float32)}, axis=3, dynamic=False)
    one("Split", "Split", dict(zip("yz", np.split(x, 2, axis=2))), 2, axis=2, dynamic=False)
    one("Reshape", "Reshape", {"y": x.reshape(2, 12, 5)}, 1, shape=[0, -1, 5], dynamic=False)
    one("Cast", "Cast", {"y": x.astype(np.int32)}, 1, to="INT32")
    one("Cast", "Cast", {"y": x.astype(np.float64)}, 6, to=TensorProto.DOUBLE)
    one("Pad", "Pad", {"y": np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 3)), constant_values=1.5)}, 1, paddings=[0, 0, 1, 0, 0, 0, 2, 3], value=1.5)
    one("Pad", "Pad", {"y": np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 3)), mode="reflect")}, 2, pads=[0, 0, 1, 0, 0, 0, 2, 3], mode="reflect")
    doubled = x.repeat(2, axis=2).repeat(3, axis=3)
    one("Upsample", "Upsample", {"y": doubled}, 1, height_scale=2.0, width_scale=3.0, mode="nearest")
    one("Upsample", "Upsample", {"y": doubled}, 7, scales=[1.0, 1.0, 2.0, 3.0], mode="nearest")
    one("Upsample", "Upsample", {"y": doubled}, 9, ("x", "s"), {"s": np.array([1, 1, 2, 3], np.float32)}, mode="nearest")
    ones = np.ones_like(x)
    one("Dropout_test", "Dropout", {"y": x, "m": ones}, 1, is_test=1, consumed_inputs=[0])
    one("Dropout_test", "Dropout", {"y": x, "m": ones}, 6, is_test=1)
    one("Dropout", "Dropout", {"y": x, "m": ones}, 7, ratio=0.9)
    one("Dropout", "Dropout", {"y": x, "m": ones.astype(bool)}, 10, ratio=0.9)
    one("Concat", "Concat", {"y": np.concatenate([x, x], axis=1)}, 1, ("x", "x"))
    one("Clip", "Clip", {"y": np.clip(x, -0.5, 0.5)}, 1, min=-0.5, max=0.5, consumed_inputs=[0])
    one("Clip", "Clip", {"y": np.clip(x, -0.5, 0.5)}, 6, min=-0.5, max=0.5)
    row = random(5)
    one("Add_broadcast", "Add", {"y": x + scale.reshape(1, 3, 1, 1)}, 1, ("x", "s"), {"s": scale}, broadcast=1, axis=1, consumed_inputs=[0, 0])
    one("Add_broadcast", "Add", {"y": x + row}, 6, ("x", "r"), {"r": row}, broadcast=1)
    one("PRelu", "PRelu", {"y": np.where(x >= 0, x, x * scale.reshape(1, 3, 1, 1))}, 6, ("x", "s"), {"s": scale})
    one("ReduceSum", "ReduceSum", {"y": x.sum((1, 3))}, 1, axes=[1, 3], keepdims=0)
    one("Softmax", "Softmax", {"y": (lambda e: e / e.sum(-1, keepdims=True))(np.exp(x.reshape(2, -1))).reshape(x.shape)}, 1)
    one("Slice", "Slice", {"y": x[:, 1:3, :, -2:]}, 1, axes=[1, 3], starts=[1, -2], ends=[3, 100], dynamic=False)
    one("Unsqueeze", "Unsqueeze", {"y": x[:, None, ..., None]}, 1, axes=[1, 5])
    one("TopK", "TopK", {"y": -np.sort(-x, axis=1)[:, :2], "i": np.argsort(-x, axis=1, kind="stable")[:, :2]}, 1, axis=1, k=2)
    one("Gather", "Gather", {"y": x[:, [2, 0]]}, 1, ("x", "i"), {"i": np.array([2, 0], np.int64)}, axis=1)
    one("GlobalLpPool", "GlobalLpPool", {"y": np.sqrt((x.astype(np.float64) ** 2).sum((2, 3), keepdims=True)).astype(np.float32)}, 1, p=2.0)


#===--- random numbers ----------------------------------------------------------------------------------------------===#


def check_random(bin_dir):
    """Distributions by their moments, and that numbers depend on the seed and the node alone."""
    failures, rows = [], 40000
    nodes = [helper.make_node("RandomUniform", [], ["u"], shape=[rows], low=-1.0, high=3.0, seed=7.0), helper.make_node("RandomNormal", [], ["n"], shape=[rows], mean=2.0, scale=0.5, seed=7.0),
             helper.make_node("RandomNormal", [], ["d"], shape=[rows], dtype=TensorProto.DOUBLE), helper.make_node("RandomNormal", [], ["e"], shape=[rows]), helper.make_node("RandomNormal", [], ["f"], shape=[rows]),
             helper.make_node("RandomUniformLike", ["x"], ["l"]), helper.make_node("RandomUniform", [], ["h"], shape=[rows], dtype=TensorProto.FLOAT16),
             helper.make_node("Bernoulli", ["p"], ["b"], dtype=TensorProto.INT64), helper.make_node("Multinomial", ["w"], ["m"], sample_size=rows, dtype=TensorProto.INT64),
             helper.make_node("Dropout", ["x", "ratio", "training"], ["dy", "dm"], seed=3)]  # fmt: skip
    inputs = {"x": np.full((rows, 1), 2, np.float32), "p": np.full(rows, 0.3, np.float32), "w": np.log(np.array([[0.1, 0, 0.6, 0.3, 0]]) + 1e-300).astype(np.float32),
              "ratio": np.array(0.25, np.float32), "training": np.array(True)}  # fmt: skip
    outputs = {n: np.zeros(rows, t) for n, t in (("u", np.float32), ("n", np.float32), ("d", np.float64), ("e", np.float32), ("f", np.float32), ("h", np.float16), ("b", np.int64))}
    outputs |= {n: np.zeros((1, 1), t) for n, t in (("l", np.float32), ("m", np.int64), ("dy", np.float32), ("dm", bool))}
    with tempfile.TemporaryDirectory() as folder:
        artifact = Artifact(bin_dir, make_model("random", nodes, inputs, outputs, 22, {}, (), {}, True), folder)
        if artifact.error:
            return [f"random: {artifact.error}"]
        first, second = artifact.outputs(inputs, "--threads", "1"), artifact.outputs(inputs, "--threads", "2")
        other = artifact.outputs({**inputs, "training": np.array(False)})

    def check(what, holds):
        if not holds:
            failures.append(f"random: {what}")

    for n in first:
        check(f"{n} differs between runs with one and two threads", np.array_equal(first[n], second[n]))
    deviations = lambda n, mean, deviation: abs(first[n].astype(np.float64).mean() - mean) / (deviation / math.sqrt(rows))
    for n, mean, deviation in (("u", 1, 4 / math.sqrt(12)), ("n", 2, 0.5), ("d", 0, 1), ("e", 0, 1), ("l", 0.5, 1 / math.sqrt(12)), ("h", 0.5, 1 / math.sqrt(12)), ("b", 0.3, math.sqrt(0.21)),
                               ("dm", 0.75, math.sqrt(0.1875))):  # fmt: skip
        check(f"the mean of {n} is {deviations(n, mean, deviation):.1f} standard errors off", deviations(n, mean, deviation) < 5)
        spread = first[n].astype(np.float64).std()
        check(f"the deviation of {n} is {spread}, expected {deviation}", abs(spread / deviation - 1) < 0.03)
    for n, low, high in (("u", -1, 3), ("l", 0, 1), ("h", 0, 1)):
        values = first[n].astype(np.float64).reshape(-1)
        check(f"{n} leaves [{low}, {high})", values.min() >= low and values.max() < high)
        counts = np.histogram(values, 16, (low, high))[0]
        check(f"{n} is not uniform: {counts}", ((counts - rows / 16) ** 2 / (rows / 16)).sum() < 50)  # chi-square of 15 degrees of freedom
    inside = np.mean(abs(first["d"]) < 1)
    check(f"{inside} of a normal distribution lies within one deviation", abs(inside - 0.6827) < 0.01)
    for a, b in (("e", "f"), ("d", "e")):
        check(f"{a} and {b} are correlated", abs(np.corrcoef(first[a], first[b])[0, 1]) < 0.03)
    check("neighbours are correlated", abs(np.corrcoef(first["e"][:-1], first["e"][1:])[0, 1]) < 0.03)
    share = np.bincount(first["m"].reshape(-1), minlength=5) / rows
    check(f"Multinomial draws {share}", np.allclose(share, [0.1, 0, 0.6, 0.3, 0], atol=0.015) and share[1] == share[4] == 0)
    check("Dropout does not scale what it keeps", np.allclose(first["dy"], np.where(first["dm"], 2 / 0.75, 0)))
    check("Dropout drops although it is not training", other["dm"].all() and np.array_equal(other["dy"], inputs["x"]))
    return failures


#===--- gradients ---------------------------------------------------------------------------------------------------===#


def gradient_models():
    """Functions of x [3, 4] and w [4, 5], as nodes that end in y."""
    n = helper.make_node
    unary = ["Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Abs", "Neg", "Reciprocal", "Softplus", "Relu", "Gelu", "Softsign", "Elu"]
    for op in unary:
        yield op.lower(), [n("Abs", ["x"], ["p"]), n("Mul", ["p", "half"], ["q"]), n(op, ["q"], ["y"])]
    for op in ("Asin", "Acos", "Atanh"):
        yield op.lower(), [n("Tanh", ["x"], ["p"]), n("Mul", ["p", "half"], ["q"]), n(op, ["q"], ["y"])]
    yield "acosh", [n("Exp", ["x"], ["p"]), n("Add", ["p", "one"], ["q"]), n("Acosh", ["q"], ["y"])]
    yield "linear", [n("MatMul", ["x", "w"], ["p"]), n("Tanh", ["p"], ["y"])]
    yield "gemm", [n("Gemm", ["w", "x"], ["p"], transA=1, transB=1, alpha=0.5), n("Mul", ["p", "p"], ["y"])]
    yield "batched", [n("Reshape", ["x", "s34"], ["a"]), n("Transpose", ["a"], ["t"], perm=[0, 2, 1]), n("MatMul", ["a", "t"], ["p"]), n("Exp", ["p"], ["q"]), n("MatMul", ["q", "a"], ["y"])]
    yield "softmax", [n("Softmax", ["x"], ["p"], axis=1), n("MatMul", ["p", "w"], ["q"]), n("LogSoftmax", ["q"], ["y"], axis=0)]
    yield "norm", [n("LayerNormalization", ["x", "row"], ["p"]), n("Mul", ["p", "x"], ["y"])]
    yield "rms", [n("RMSNormalization", ["x", "row"], ["p"]), n("Mul", ["p", "x"], ["y"])]
    yield "reduce", [n("ReduceMean", ["x"], ["a"], keepdims=1), n("ReduceMax", ["x", "axis"], ["b"], keepdims=1), n("ReduceMin", ["x", "axis"], ["d"], keepdims=1),
                     n("ReduceProd", ["x", "axis"], ["c"], keepdims=1), n("ReduceLogSumExp", ["x", "axis"], ["e"], keepdims=1), n("Sum", ["a", "b", "c", "d", "e"], ["y"])]  # fmt: skip
    yield "movement", [n("Concat", ["x", "x"], ["a"], axis=0), n("Slice", ["a", "from", "to", "axes", "steps"], ["b"]), n("Pad", ["b", "pads"], ["c"]),
                       n("Transpose", ["c"], ["d"]), n("Expand", ["d", "wide"], ["e"]), n("Exp", ["e"], ["y"])]  # fmt: skip
    yield "gather", [n("Gather", ["x", "rows"], ["a"], axis=0), n("Gather", ["x", "columns"], ["b"], axis=1), n("GatherElements", ["x", "pick"], ["c"], axis=1),
                     n("ReduceSum", ["a"], ["d"]), n("ReduceSumSquare", ["b"], ["e"]), n("Mul", ["d", "e"], ["f"]), n("Mul", ["f", "c"], ["y"])]  # fmt: skip
    def reshape(to):
        return [n("Reshape", ["x", "x_" + to], ["a"]), n("Reshape", ["w", "w_" + to], ["b"])]

    yield "conv", [*reshape("conv"), n("Conv", ["a", "b"], ["p"], strides=[2], pads=[1, 2]), n("Tanh", ["p"], ["y"])]
    yield "conv_groups", [*reshape("groups"), n("Conv", ["a", "b"], ["p"], group=2, dilations=[2], pads=[2, 0]), n("Tanh", ["p"], ["y"])]
    yield "conv_2d", [*reshape("2d"), n("Conv", ["a", "b"], ["p"], strides=[1, 3], pads=[1, 0, 0, 1]), n("Tanh", ["p"], ["y"])]
    yield "max_pool", [*reshape("2d")[:1], n("MaxPool", ["a"], ["p"], kernel_shape=[2, 3], pads=[1, 1, 0, 1], strides=[1, 2]), n("Mul", ["p", "p"], ["y"])]
    yield "average_pool", [*reshape("2d")[:1], n("AveragePool", ["a"], ["p"], kernel_shape=[2, 2], pads=[1, 0, 0, 1], strides=[2, 1]), n("Exp", ["p"], ["y"])]
    yield "gather_nd", [n("GatherND", ["x", "places"], ["a"]), n("Exp", ["a"], ["y"])]
    yield "scatter", [n("ScatterND", ["x", "places", "three_numbers"], ["a"], reduction="add"), n("ScatterElements", ["a", "pick", "w_part"], ["b"], axis=1, reduction="add"), n("Exp", ["b"], ["y"])]
    yield "choose", [n("Max", ["x", "half"], ["a"]), n("Min", ["a", "one"], ["b"]), n("Greater", ["x", "half"], ["c"]), n("Where", ["c", "b", "x"], ["d"]), n("Pow", ["d", "three"], ["e"]), n("Div", ["e", "one_more"], ["y"])]
    yield "cumulative", [n("CumSum", ["x", "axis0"], ["a"], reverse=1, exclusive=1), n("Mul", ["a", "x"], ["y"])]
    yield "fourier", [n("Reshape", ["x", "x_parts"], ["a"]), n("DFT", ["a"], ["b"], inverse=1), n("Exp", ["b"], ["c"]), n("Reshape", ["x", "x_real"], ["d"]),
                      n("DFT", ["d", "seven"], ["e"], onesided=1), n("ReduceSumSquare", ["e"], ["f"]), n("Mul", ["c", "f"], ["y"])]  # fmt: skip
    for length in ("ten", "seven"):
        yield f"fourier_half_{length}", [n("Reshape", ["x", "x_parts"], ["a"]), n("DFT", ["a", length], ["b"], inverse=1, onesided=1), n("Exp", ["b"], ["y"])]
    yield "convert", [n("Cast", ["x"], ["a"], to=TensorProto.FLOAT), n("Cast", ["a"], ["b"], to=TensorProto.DOUBLE), n("Floor", ["b"], ["c"]), n("Add", ["b", "c"], ["d"]), n("Mul", ["d", "x"], ["y"])]


def check_gradients(bin_dir, pattern):
    f64 = np.float64
    constants = {"half": np.array(0.5), "one": np.array(1.0), "three": np.array(3.0), "one_more": np.array(2.5), "row": random(4, dtype=f64), "axis": np.array([1], np.int64), "axis0": np.array(0, np.int64),
                 "s34": np.array([3, 2, 2], np.int64), "from": np.array([5, 0], np.int64), "to": np.array([-100, 3], np.int64), "axes": np.array([0, 1], np.int64), "steps": np.array([-2, 1], np.int64),
                 "pads": np.array([0, 1, 0, -1], np.int64), "wide": np.array([2, 3, 3], np.int64), "rows": np.array([[2, 0], [-1, 2]], np.int64), "columns": np.array([1, 1, -4], np.int64),
                 "pick": np.array([[0, -1], [1, 1], [3, 0]], np.int64)}  # fmt: skip
    constants |= {"x_conv": np.array([1, 2, 6], np.int64), "w_conv": np.array([5, 2, 2], np.int64), "x_groups": np.array([1, 2, 6], np.int64), "w_groups": np.array([10, 1, 2], np.int64),
                  "x_2d": np.array([1, 1, 3, 4], np.int64), "w_2d": np.array([5, 1, 2, 2], np.int64), "places": np.array([[0, 1], [-1, -2], [0, 1]], np.int64),
                  "x_parts": np.array([1, 6, 2], np.int64), "x_real": np.array([1, 12, 1], np.int64), "seven": np.array(7, np.int64), "ten": np.array(10, np.int64),
                  "three_numbers": np.array([0.5, 1, 2]), "w_part": random(3, 2, dtype=f64)}  # fmt: skip
    failures, count, step = [], 0, 1e-5
    values = {"x": random(3, 4, dtype=f64), "w": random(4, 5, dtype=f64)}
    for name, nodes in gradient_models():
        if not re.search(pattern, "gradient_" + name):
            continue
        count += 1
        read = {i for node in nodes for i in node.input}
        xs = [v for v in "xw" if v in read]
        inputs = {v: values[v] for v in xs}
        total = helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0)
        node = helper.make_node("Gradient", xs, ["d" + v + "_" for v in xs], domain="ai.onnx.preview.training", xs=xs, y="y")
        outputs = {"total": np.zeros((), f64), **{f"d{v}_": values[v] for v in xs}}
        with tempfile.TemporaryDirectory() as folder:
            used = {n: v for n, v in constants.items() if n in read}
            artifact = Artifact(bin_dir, make_model(name, [*nodes, total, node], inputs, outputs, 23, used, ["ai.onnx.preview.training"], {}, False), folder)
            if artifact.error:
                failures.append(f"gradient_{name}: {artifact.error}")
                continue
            actual = artifact.outputs(inputs)
            tolerance, h = (2e-3, 2e-3) if name == "convert" else (1e-6, step)
            for v in xs:
                for at in np.ndindex(*values[v].shape):
                    if sum(at) % 2:  # every second element will do
                        continue
                    moved = []
                    for sign in (h, -h):
                        changed = {k: a.copy() for k, a in inputs.items()}
                        changed[v][at] += sign
                        moved.append(artifact.outputs(changed)["total"])
                    expected = (moved[0] - moved[1]) / (2 * h)
                    if abs(actual[f"d{v}_"][at] - expected) > tolerance * max(1, abs(expected)):
                        failures.append(f"gradient_{name}: d/d{v}{list(at)} is {actual[f'd{v}_'][at]}, expected {expected}")
    # At other values than those that the graph computes with, and of a gradient.
    n, domain = helper.make_node, "ai.onnx.preview.training"
    nodes = [n("Mul", ["x", "x"], ["s"]), n("Mul", ["s", "w"], ["y"]), n("Gradient", ["a", "b"], ["dx"], domain=domain, xs=["x"], zs=["w"], y="y"),
             n("Gradient", ["x"], ["g"], domain=domain, xs=["x"], y="y"), n("Gradient", ["x"], ["gg"], domain=domain, xs=["x"], y="g")]  # fmt: skip
    x, w, a, b = (random(3, seed=i) for i in range(4))
    case("gradient_elsewhere", nodes, {"x": x, "w": w, "a": a, "b": b}, {"dx": 2 * a * b, "g": 2 * x * w, "gg": 2 * w}, 13, domains=[domain], dynamic=False)
    return failures, count


def main():
    bin_dir, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for add in (add_pools, add_regions, add_sampling, add_sizes_in_a_row, add_scans, add_recurrent, add_attention, add_unknown_lengths, add_bags, add_suppression, add_wrapping, add_many_sizes, add_untyped, add_far_from_zero, add_sparse, add_types, add_old_versions):
        add()
    failures, count = check_gradients(bin_dir, pattern)
    failed = len({line.split(":")[0] for line in failures})
    if re.search(pattern, "random"):
        found = check_random(bin_dir)
        failures, failed, count = failures + found, failed + bool(found), count + 1
    names = [name for name in CASES if re.search(pattern, name)]
    for name in names:
        found = run_case(bin_dir, name)
        failures, failed = failures + found, failed + bool(found)
    for line in failures:
        print(line, flush=True)
    print(f"{count + len(names) - failed} of {count + len(names)} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
