# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of kernels.py: windows, short rows, lines of images, lanes, samples."""
import numpy as np
from onnx import TensorProto, helper

from kernel_models import case, convolve, convolve_any, info, random


def pool(x, kind, window, strides, dilations, low, out):
    """Windows of x [N, C, S..]; what lies outside counts for nothing, and a mean is one of what lies inside."""
    spatial = x.shape[2:]
    best = np.full((*x.shape[:2], *out), -np.inf if kind == "max" else 0.0)
    count = np.zeros((*x.shape[:2], *out))
    for taps in np.ndindex(*window):
        places = [np.arange(t) * s + k * d - p for t, s, k, d, p in zip(out, strides, taps, dilations, low)]
        inside = np.ones(out, bool)
        for i, (place, size) in enumerate(zip(places, spatial)):
            inside &= ((place >= 0) & (place < size)).reshape([-1 if j == i else 1 for j in range(len(out))])
        part = x[(slice(None), slice(None), *np.ix_(*[np.clip(p, 0, s - 1) for p, s in zip(places, spatial)]))]
        best = np.where(inside, np.maximum(best, part), best) if kind == "max" else best + np.where(inside, part, 0)
        count += inside
    return best if kind == "max" else best / count


def window_cases():
    """Pooling of images that have their channels first."""
    for kind, window, strides, dilations, low, high, image in (
            ("max", [3, 3], [2, 2], [1, 1], [1, 1], [1, 1], (2, 3, 35, 37)), ("max", [2, 2], [2, 2], [1, 1], [0, 0], [0, 0], (1, 9, 64, 66)),
            ("mean", [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 8, 17, 33)), ("mean", [7, 7], [7, 7], [1, 1], [0, 0], [0, 0], (1, 5, 14, 14)),
            ("max", [5], [1], [1], [2], [2], (2, 3, 70)), ("mean", [4], [4], [1], [0], [0], (1, 3, 131)), ("max", [3, 2], [1, 5], [2, 3], [2, 1], [0, 2], (1, 4, 9, 61)),
            ("max", [2, 3, 2], [2, 1, 2], [1, 1, 1], [0, 1, 1], [0, 1, 0], (1, 2, 6, 7, 40)), ("mean", [1, 20], [1, 3], [1, 1], [0, 10], [0, 9], (1, 2, 3, 100)),
            ("max", [3, 3], [3, 3], [1, 1], [0, 0], [0, 0], (0, 3, 9, 9)), ("max", [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 2, 1, 1))):
        out = [(s + a + b - d * (k - 1) - 1) // t + 1 for s, a, b, d, k, t in zip(image[2:], low, high, dilations, window, strides)]
        attributes = {"kernel_shape": window, "strides": strides, "pads": low + high}
        if kind == "max":
            attributes["dilations"] = dilations
        nodes = [helper.make_node("MaxPool" if kind == "max" else "AveragePool", ["x"], ["p"], **attributes), helper.make_node("Relu", ["p"], ["r"]),
                 helper.make_node("Add", ["r", "b"], ["y"])]
        bias = random((image[1], *[1] * len(out)), 3)
        values = random(image, 4)
        if values.size > 100 and kind == "max":
            values.flat[7], values.flat[50] = np.inf, -np.inf

        def reference(v, kind=kind, window=window, strides=strides, dilations=dilations, low=low, out=out, bias=bias):
            return [np.maximum(pool(v["x"], kind, window, strides, dilations, low, out), 0) + bias]
        name = "x".join(map(str, window)) + "_of_" + "x".join(map(str, image[2:])) + ("" if image[0] == 1 else f"_b{image[0]}")
        case(f"window_{kind}_{name}", nodes, {"x": list(image)}, {"y": [*image[:2], *out]}, reference, [{"x": values}], {"b": bias})
    # Sizes that only the run knows; a largest element beside NaN.
    case("window_dynamic", [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])], {"x": ["N", 2, "H", "W"]},
         {"y": ["N", 2, "P", "Q"]}, lambda v: [pool(v["x"], "max", [3, 3], [2, 2], [1, 1], [1, 1], [(s + 1) // 2 for s in v["x"].shape[2:]])],
         [{"x": s} for s in ((1, 2, 5, 7), (2, 2, 33, 70), (1, 2, 1, 1), (0, 2, 4, 4))])


def window_last_cases():
    """Pooling of images that have their channels last: each result in two steps, or from its whole window."""
    for kind, window, strides, dilations, low, high, image in (
            ("max", [5, 5], [1, 1], [1, 1], [2, 2], [2, 2], (2, 9, 13, 24)), ("max", [9, 9], [1, 1], [1, 1], [4, 4], [4, 4], (1, 12, 7, 100)),
            ("mean", [7, 7], [1, 1], [1, 1], [3, 3], [3, 3], (1, 8, 20, 16)), ("max", [3, 3], [2, 2], [1, 1], [1, 1], [1, 1], (2, 35, 37, 17)),
            ("mean", [5, 5], [3, 3], [1, 1], [0, 0], [0, 0], (1, 23, 21, 9)), ("max", [4, 6], [2, 3], [2, 3], [3, 1], [0, 7], (1, 19, 40, 70)),
            ("max", [33], [1], [1], [16], [16], (2, 70, 40)), ("mean", [40], [7], [1], [3], [12], (1, 131, 5)), ("max", [3, 4, 5], [1, 2, 1], [1, 1, 2], [1, 0, 4], [1, 3, 0], (1, 5, 6, 11, 33)),
            ("max", [3, 3], [3, 3], [1, 1], [0, 0], [0, 0], (0, 9, 9, 8)), ("max", [5, 5], [1, 1], [1, 1], [2, 2], [2, 2], (1, 1, 1, 20)),
            ("mean", [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 6, 5, 2)), ("max", [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 30, 31, 64))):
        spatial = len(window)
        first, last = [0, spatial + 1, *range(1, spatial + 1)], [0, *range(2, spatial + 2), 1]
        out = [(s + a + b - d * (k - 1) - 1) // t + 1 for s, a, b, d, k, t in zip(image[1:], low, high, dilations, window, strides)]
        attributes = {"kernel_shape": window, "strides": strides, "pads": low + high}
        if kind == "max":
            attributes["dilations"] = dilations
        bias = random(image[-1], 3)
        nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=first), helper.make_node("MaxPool" if kind == "max" else "AveragePool", ["t"], ["p"], **attributes),
                 helper.make_node("Transpose", ["p"], ["q"], perm=last), helper.make_node("Relu", ["q"], ["r"]), helper.make_node("Add", ["r", "b"], ["y"])]
        values = random(image, 4)
        if values.size > 100 and kind == "max":
            values.flat[7], values.flat[50] = np.inf, -np.inf

        def reference(v, kind=kind, window=window, strides=strides, dilations=dilations, low=low, out=out, bias=bias, first=first, last=last):
            return [np.maximum(pool(v["x"].transpose(first), kind, window, strides, dilations, low, out).transpose(last), 0) + bias]
        # Whether the run knows the sizes or the compiler.
        for dynamic in (False, True):
            name = "x".join(map(str, window)) + "_of_" + "x".join(map(str, image)) + ("_dynamic" if dynamic else "")
            case(f"window_last_{kind}_{name}", nodes, {"x": ["N", *"DHW"[-spatial:], image[-1]] if dynamic else list(image)}, {"y": [*["N", *"PQR"[-spatial:]], image[-1]]}, reference,
                 [{"x": values}], {"b": bias})
    # Few channels of unknown number, and windows with NaN.
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), helper.make_node("MaxPool", ["t"], ["p"], kernel_shape=[5, 5], pads=[2, 2, 2, 2]),
             helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1])]
    case("window_last_channels", nodes, {"x": ["N", "H", "W", "C"]}, {"y": ["N", "H", "W", "C"]},
         lambda v: [pool(v["x"].transpose(0, 3, 1, 2), "max", [5, 5], [1, 1], [1, 1], [2, 2], v["x"].shape[1:3]).transpose(0, 2, 3, 1)],
         [{"x": s} for s in ((1, 5, 7, 1), (2, 12, 9, 33), (1, 1, 1, 16), (0, 4, 4, 8), (1, 6, 6, 0))])


def short_row_cases():
    """Last dims that fill no vector: rows joined, and reductions along them and across them."""
    def softmax(x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def normed(x, axis):
        return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)
    scale = helper.make_node("Mul", ["x", "s"], ["m"])
    for sizes in ((2000, 3), (1601, 5), (97, 7), (64, 6), (33, 2, 5), (150, 5, 3), (20, 2, 7), (300, 15), (257, 12), (17, 9), (16, 3), (3, 700, 10), (1, 5), (0, 7)):
        last, name, values = sizes[-1], "x".join(map(str, sizes)), random(sizes, 5)
        s, b, gate = random(last, 6), random(sizes[1:], 7), random((*sizes[:-1], 1), 8)
        if values.size > 1000:
            values.flat[3], values.flat[170], values.flat[-1] = np.inf, -np.inf, np.nan
        case(f"short_bias_{name}", [scale, helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node("Sigmoid", ["g"], ["t"]), helper.make_node("Mul", ["a", "t"], ["y"])],
             {"x": list(sizes), "g": [*sizes[:-1], 1]}, {"y": list(sizes)}, lambda v, s=s, b=b: [(v["x"] * s + b) / (1 + np.exp(-v["g"]))], [{"x": values, "g": gate}], {"s": s, "b": b})
        case(f"short_softmax_{name}", [scale, helper.make_node("Softmax", ["m"], ["y"], axis=-1)], {"x": list(sizes)}, {"y": list(sizes)},
             lambda v, s=s: [softmax(v["x"] * s, -1)], [{"x": random(sizes, 9)}], {"s": s})
        case(f"short_norm_{name}", [helper.make_node("ReduceMean", ["x"], ["c"], axes=[-1]), helper.make_node("Sub", ["x", "c"], ["d"]), helper.make_node("Mul", ["d", "d"], ["q"]),
                                    helper.make_node("ReduceMean", ["q"], ["v"], axes=[-1]), helper.make_node("Add", ["v", "e"], ["w"]), helper.make_node("Sqrt", ["w"], ["r"]),
                                    helper.make_node("Div", ["d", "r"], ["n"]), helper.make_node("Mul", ["n", "s"], ["y"])],
             {"x": list(sizes)}, {"y": list(sizes)}, lambda v, s=s: [normed(v["x"], -1) * s], [{"x": random(sizes, 10)}], {"s": s, "e": np.float32(1e-5)})
        case(f"short_across_{name}", [scale, helper.make_node("Softmax", ["m"], ["y"], axis=len(sizes) - 2)], {"x": list(sizes)}, {"y": list(sizes)},
             lambda v, s=s: [softmax(v["x"] * s, -2) if v["x"].size else v["x"]], [{"x": random(sizes, 11)}], {"s": s})
    # Rows that only the run counts, of an odd number of elements and of a power of two.
    for last in (4, 5):
        case(f"short_unknown_rows_{last}", [scale, helper.make_node("Softmax", ["m"], ["t"], axis=-1), helper.make_node("Sigmoid", ["m"], ["u"]), helper.make_node("Add", ["u", "b"], ["z"])],
             {"x": ["N", "T", last]}, {"t": ["N", "T", last], "z": ["N", "T", last]},
             lambda v, last=last: [softmax(v["x"] * random(last, 6), -1) if v["x"].size else v["x"], 1 / (1 + np.exp(-v["x"] * random(last, 6))) + random(last, 7)],
             [{"x": (n, t, last)} for n, t in ((1, 1), (3, 37), (0, 3), (1, 5000), (2, 16))], {"s": random(last, 6), "b": random(last, 7)})
    # Positions that move by rows of a short last dim.
    values = random((2, 9, 31, 3), 12)
    case("short_pad", [helper.make_node("Pad", ["x", "p"], ["y"])], {"x": [2, 9, 31, 3]}, {"y": [2, 12, 33, 3]}, lambda v: [np.pad(v["x"], ((0, 0), (1, 2), (0, 2), (0, 0)))],
         [{"x": values}], {"p": np.array([0, 1, 0, 0, 0, 2, 2, 0])})
    case("short_concat", [helper.make_node("Concat", ["x", "z"], ["c"], axis=2), helper.make_node("Add", ["c", "b"], ["y"])], {"x": [2, 9, 31, 3], "z": [2, 9, 14, 3]}, {"y": [2, 9, 45, 3]},
         lambda v: [np.concatenate([v["x"], v["z"]], 2) + random(3, 1)], [{"x": values, "z": random((2, 9, 14, 3), 13)}], {"b": random(3, 1)})
    case("short_concat_last", [helper.make_node("Concat", ["x", "z"], ["c"], axis=1), helper.make_node("Sigmoid", ["c"], ["y"])], {"x": [333, 2], "z": [333, 3]}, {"y": [333, 5]},
         lambda v: [1 / (1 + np.exp(-np.concatenate([v["x"], v["z"]], 1)))], [{"x": random((333, 2), 14), "z": random((333, 3), 15)}])
    for step in (1, 2):
        case(f"short_slice_{step}", [helper.make_node("Slice", ["x", "from", "to", "of", "by"], ["c"]), helper.make_node("Add", ["c", "b"], ["y"])], {"x": [2, 9, 31, 3]},
             {"y": [2, 7, len(range(3, 30, step)), 3]}, lambda v, step=step: [v["x"][:, 1:8, 3:30:step] + random(3, 1)], [{"x": values}],
             {"from": np.array([1, 3]), "to": np.array([8, 30]), "of": np.array([1, 2]), "by": np.array([1, step]), "b": random(3, 1)})
    # Reductions that leave few columns, of rows that fill vectors and others, in parts, of several dims.
    for sizes, dims in (((1000, 3), [0]), ((2, 333, 5), [1]), ((64, 2), [0]), ((1, 79, 15), [1]), ((3, 100, 9), [1]), ((224, 225, 3), [0, 1]), ((7, 3, 90, 4), [0, 2]),
                        ((1, 40000, 11), [1]), ((63, 3), [0]), ((0, 65, 3), [1]), ((65, 12), [0])):
        keep, name = [s for i, s in enumerate(sizes) if i not in dims], "x".join(map(str, sizes))
        for kind, function in (("Mean", np.mean), ("Max", np.max), ("Min", np.min), ("SumSquare", lambda x, axis: (x * x).sum(axis))):
            values = random(sizes, 16)
            if kind in ("Max", "Min") and values.size > 300:
                values.flat[200] = np.nan
            case(f"few_columns_{kind}_{name}", [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Reduce" + kind, ["a"], ["r"], axes=dims, keepdims=0),
                                                helper.make_node("Mul", ["r", "s"], ["y"])], {"x": list(sizes)}, {"y": keep},
                 lambda v, function=function, dims=dims, last=sizes[-1]: [function(v["x"] + random(last, 2), axis=tuple(dims)) * random(last, 3)],
                 [{"x": values}], {"b": random(sizes[-1], 2), "s": random(sizes[-1], 3)})
    case("few_columns_unknown", [helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], {"x": ["N", "T", 6]}, {"y": ["N", 6]}, lambda v: [v["x"].mean(1)],
         [{"x": s} for s in ((2, 700, 6), (1, 1, 6), (3, 15, 6), (1, 17, 6), (0, 5, 6))])


def line_cases():
    """Convolutions with few channels in the result: straight from the image, and from another one's result."""
    def ones(n):
        return [1] * n
    for groups, channels, columns, window, strides, dilations, low, high, image, first in (
            (3, 1, 1, [5, 5], [1, 1], [1, 1], [2, 2], [2, 2], (1, 3, 40, 50), 0), (1, 1, 2, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (2, 1, 33, 70), 0),
            (1, 64, 1, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 4, 20, 37), 64), (1, 32, 3, [9, 9], [1, 1], [1, 1], [4, 4], [4, 4], (1, 3, 24, 48), 32),
            (1, 21, 4, [3, 3], [2, 2], [1, 1], [1, 1], [1, 1], (2, 3, 31, 45), 21), (1, 9, 2, [3, 5], [1, 3], [2, 1], [2, 0], [2, 5], (1, 3, 18, 61), 9),
            (2, 3, 3, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 6, 19, 28), 0), (1, 2, 1, [7, 7], [1, 1], [1, 1], [3, 3], [3, 3], (2, 2, 40, 40), 0),
            (1, 16, 1, [7], [1], [1], [3], [3], (2, 2, 1000), 16), (8, 1, 1, [64], [1], [1], [32], [31], (3, 8, 300), 0), (1, 40, 3, [3], [2], [3], [1], [4], (1, 3, 531), 40),
            (1, 16, 2, [3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1], (1, 2, 7, 11, 33), 16), (2, 2, 1, [2, 3, 3], [2, 1, 2], [1, 2, 1], [0, 2, 1], [1, 2, 0], (2, 4, 6, 9, 40), 0),
            (1, 300, 1, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 2, 6, 65), 300), (1, 12, 1, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (0, 2, 8, 32), 12),
            (1, 12, 1, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], (1, 2, 1, 1), 12), (1, 8, 1, [3, 3], [1, 1], [1, 1], [0, 0], [0, 0], (1, 2, 30, 600), 8),
            # More columns than stay in registers at once.
            (1, 20, 9, [5, 5], [1, 1], [1, 1], [2, 2], [2, 2], (2, 3, 13, 29), 20), (1, 19, 34, [9], [1], [7], [28], [28], (2, 19, 301), 0), (1, 5, 18, [5, 5], [2, 2], [1, 1], [2, 1], [1, 2], (1, 5, 31, 67), 0),
            (1, 40, 20, [3, 3], [1, 1], [2, 2], [2, 2], [2, 2], (1, 40, 33, 45), 0), (3, 7, 19, [25], [3], [1], [12], [12], (2, 21, 400), 0), (1, 3, 17, [2, 3, 5], [1, 1, 1], [1, 1, 2], [1, 1, 4], [0, 1, 4], (1, 3, 5, 8, 64), 0),
            (1, 24, 36, [7], [1], [1], [3], [3], (0, 24, 64), 0), (1, 24, 52, [7], [1], [1], [3], [3], (1, 24, 1), 0), (1, 24, 12, [7, 7], [1, 1], [1, 1], [3, 3], [3, 3], (1, 24, 3, 16), 0)):

        spatial = len(window)
        filters, bias = random((groups * columns, channels, *window), 2) / (channels * int(np.prod(window))) ** 0.5, random(groups * columns, 3)
        nodes, constants, source = [], {"w": filters, "b": bias}, "x"
        if first:
            constants["f"] = random((first, image[1], *ones(spatial)), 4)
            nodes, source = [helper.make_node("Conv", ["x", "f"], ["a"]), helper.make_node("Relu", ["a"], ["r"])], "r"
        nodes += [helper.make_node("Conv", [source, "w", "b"], ["c"], strides=strides, dilations=dilations, pads=low + high, group=groups), helper.make_node("Tanh", ["c"], ["y"])]

        def reference(v, strides=strides, dilations=dilations, low=low, high=high, groups=groups, constants=constants):
            x = v["x"]
            if "f" in constants:
                x = np.maximum(np.einsum("nc...,oc->no...", x.astype(np.float64), constants["f"].reshape(constants["f"].shape[:2]).astype(np.float64)), 0)
            c = convolve_any(x, constants["w"], strides, dilations, low, high, groups)
            return [np.tanh(c + constants["b"].reshape(-1, *ones(c.ndim - 2)))]
        name = f"lines_{groups}x{channels}to{columns}_{'x'.join(map(str, window))}_of_{'x'.join(map(str, image))}"
        case(name, nodes, {"x": list(image)}, {"y": [image[0], groups * columns, *"DHW"[-spatial:]]}, reference, [{"x": image}], constants, tolerance=1e-5)
    # Sizes that only the run knows.
    many = random((18, 3, 5, 5), 5)
    case("lines_dynamic_of_18", [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2] * 4)], {"x": ["N", 3, "H", "W"]}, {"y": ["N", 18, "H", "W"]},
         lambda v: [convolve_any(v["x"], many, [1, 1], [1, 1], [2, 2], [2, 2], 1)], [{"x": s} for s in ((1, 3, 5, 7), (2, 3, 33, 70), (1, 3, 1, 1), (0, 3, 4, 4), (1, 3, 20, 300))], {"w": many}, tolerance=1e-5)
    filters, first = random((2, 24, 3, 3), 2), random((24, 3, 1, 1), 3)
    case("lines_dynamic", [helper.make_node("Conv", ["x", "f"], ["a"]), helper.make_node("Conv", ["a", "w"], ["y"], pads=[1] * 4)], {"x": ["N", 3, "H", "W"]}, {"y": ["N", 2, "H", "W"]},
         lambda v: [convolve_any(np.einsum("nchw,oc->nohw", v["x"].astype(np.float64), first[:, :, 0, 0].astype(np.float64)), filters, [1, 1], [1, 1], [1, 1], [1, 1], 1)],
         [{"x": s} for s in ((1, 3, 5, 7), (2, 3, 33, 70), (1, 3, 1, 1), (0, 3, 4, 4), (1, 3, 20, 300))], {"w": filters, "f": first}, tolerance=1e-5)


def lane_cases():
    """Elements that lie apart in memory, or are repeated, along the lanes."""
    def constant(*values):
        return np.array(values, np.int64)
    for step in (2, 3, 5, 8, 9, -1, -2):
        for width in (3, 16, 67, 129):
            begin, end = (0, width) if step > 0 else (-1, -width - 1)
            case(f"lanes_step{step}_of_{width}", [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])], {"x": [5, width]}, {"y": [5, -(-width // abs(step))]},
                 lambda v, step=step: [v["x"][:, ::step]], [{"x": (5, width)}], {"b": constant(begin), "e": constant(end), "a": constant(1), "s": constant(step)})
    for channels in (2, 3, 4, 5):
        case(f"lanes_pixels_{channels}", [helper.make_node("Transpose", ["x"], ["y"], perm=[0, 3, 1, 2])], {"x": [2, 7, 23, channels]}, {"y": [2, channels, 7, 23]},
             lambda v: [v["x"].transpose(0, 3, 1, 2)], [{"x": (2, 7, 23, channels)}])
    for times in (2, 3, 4, 8):
        size = [2, 3, 5, 11]
        case(f"lanes_nearest_{times}", [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
             {"x": size}, {"y": [2, 3, 5 * times, 11 * times]}, lambda v, times=times: [v["x"].repeat(times, 2).repeat(times, 3)], [{"x": tuple(size)}],
             {"s": np.array([1, 1, times, times], np.float32)})
    # Lanes that a division spreads unevenly over neighbours: read as one vector and permuted.
    for times, n in ((3, 33), (5, 1), (7, 20), (11, 3), (20, 9), (3, 5)):
        for name, shape, wide in (("each", [4, n, 1], [4, n, times]), ("all", [4, 1, n], [4, times, n])):
            for to in (np.float32, np.int32, np.float64):
                case(f"lanes_{name}_{times}_times_{n}_{np.dtype(to).name}", [helper.make_node("Reshape", ["x", "s"], ["b"]), helper.make_node("Expand", ["b", "w"], ["c"]),
                     helper.make_node("Reshape", ["c", "f"], ["d"]), helper.make_node("Mul", ["d", "k"], ["y"])], {"x": [4, n]}, {"y": [4, n * times]},
                     lambda v, times=times, name=name: [(v["x"].repeat(times, 1) if name == "each" else np.tile(v["x"], (1, times))) * np.arange(v["x"].shape[1] * times)], [{"x": (4, n)}],
                     {"s": constant(*shape), "w": constant(*wide), "f": constant(4, n * times), "k": np.arange(n * times, dtype=to)}, element=to)
    # Divided in one scope, read in another: joined dims of six behind a factor of two of them.
    factor = random((5, 1, 3), 1)
    case("lanes_permuted_six", [helper.make_node("Transpose", ["x"], ["t"], perm=[4, 1, 5, 0, 3, 2]), helper.make_node("Mul", ["t", "f"], ["y"]), helper.make_node("Transpose", ["y"], ["u"], perm=[3, 0, 5, 1, 2, 4]),
                                helper.make_node("Reshape", ["u", "s"], ["r"]), helper.make_node("ReduceSum", ["r", "a"], ["z"], keepdims=0)], {"x": [5, 22, 3, 14, 6, 10]}, {"y": [6, 22, 10, 5, 14, 3], "z": [30, 22, 140]},
         lambda v: (lambda y: [y, y.transpose(3, 0, 5, 1, 2, 4).reshape(30, 3, 22, 140).sum(1)])(v["x"].transpose(4, 1, 5, 0, 3, 2) * factor.astype(np.float64)), [{"x": (5, 22, 3, 14, 6, 10)}],
         {"f": factor, "s": constant(30, 3, 22, 140), "a": constant(1)}, tolerance=1e-6)
    for channels, times in ((28, 3), (5, 7), (13, 5)):
        weight = random((channels * times, 1, 3, 3), 1)
        case(f"lanes_depthwise_{channels}_times_{times}", [helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2], pads=[1] * 4, group=channels)], {"x": [2, channels, 9, 11]}, {"y": [2, channels * times, 5, 6]},
             lambda v, weight=weight, channels=channels: [convolve_any(v["x"], weight, [2, 2], [1, 1], [1, 1], [1, 1], channels)], [{"x": (2, channels, 9, 11)}], {"w": weight}, tolerance=1e-5)
    # Indices that run evenly are a slice, those that do not are none.
    for name, indices in (("down", [8, 6, 4, 2, 0]), ("twice", [i // 2 for i in range(18)]), ("one", [-1]), ("uneven", [0, 1, 3, 4]), ("short", [0, 0, 1, 1])):
        case(f"lanes_gather_{name}", [helper.make_node("Gather", ["x", "i"], ["y"], axis=1)], {"x": [4, 9]}, {"y": [4, len(indices)]},
             lambda v, indices=indices: [v["x"][:, indices]], [{"x": (4, 9)}], {"i": constant(*indices)})
    # Windows by tables of positions, as exporters unfold images: even ones are arithmetic.
    rows, columns = np.arange(5)[:, None] + np.arange(13) - 17, 2 * np.arange(3)[:, None] + np.arange(14)[::-1]
    uneven = columns.copy()
    uneven[1, 3] = -18
    for name, table in (("even", columns), ("constant", np.full((3, 14), 17)), ("uneven", uneven)):
        nodes = [helper.make_node("Pad", ["x", "p"], ["a"]), helper.make_node("Gather", ["a", "r"], ["b"], axis=2), helper.make_node("Gather", ["b", "c"], ["d"], axis=4),
                 helper.make_node("Transpose", ["d"], ["e"], perm=[0, 1, 2, 4, 3, 5]), helper.make_node("Reshape", ["e", "s"], ["f"]), helper.make_node("Mul", ["f", "w"], ["m"]),
                 helper.make_node("ReduceSum", ["m", "axis"], ["y"], keepdims=0)]
        case(f"lanes_gather_windows_{name}", nodes, {"x": [2, 3, 14, 17], "w": [2, 1, 15, 182]}, {"y": [2, 3, 182]},
             lambda v, rows=rows, table=table: [(np.pad(v["x"], [(0, 0), (0, 0), (1, 2), (0, 1)])[:, :, rows][..., table].transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 15, 182) * v["w"]).sum(2)],
             [{"x": (2, 3, 14, 17), "w": (2, 1, 15, 182)}], {"p": constant(0, 0, 1, 0, 0, 0, 2, 1), "r": rows, "c": table, "s": constant(2, 3, 15, 182), "axis": constant(2)}, tolerance=1e-5)
    # One table into dims of two sizes, from whose ends it counts.
    ends = -1 - np.arange(4)[:, None] - np.arange(20)
    case("lanes_gather_windows_of_two", [helper.make_node("Gather", ["x", "i"], ["a"], axis=1), helper.make_node("Gather", ["z", "i"], ["b"], axis=1), helper.make_node("Sub", ["a", "b"], ["y"])],
         {"x": [3, 40], "z": [3, 23]}, {"y": [3, 4, 20]}, lambda v, ends=ends: [v["x"][:, ends] - v["z"][:, ends]], [{"x": (3, 40), "z": (3, 23)}], {"i": ends})
    # Images that stay channels first around a convolution: its operand is turned as it is computed, its result by what adds it.
    for channels in (5, 13, 32, 72):
        scale, shift, bias = random((channels, 1, 1), 1), random((channels, 1, 1), 2), random(channels, 3)
        weight = random((channels, channels, 1, 1), 4) / channels
        nodes = [helper.make_node("Mul", ["half", "x"], ["h"]), helper.make_node("Mul", ["h", "scale"], ["m"]), helper.make_node("Add", ["m", "shift"], ["a"]),
                 helper.make_node("Conv", ["a", "weight", "bias"], ["c"]), helper.make_node("Add", ["x", "c"], ["r"]), helper.make_node("Softmax", ["r"], ["y"], axis=3)]

        def mixed(v, scale=scale, shift=shift, bias=bias, weight=weight):
            r = v["x"] + np.einsum("nchw,oc->nohw", 0.5 * v["x"] * scale + shift, weight[:, :, 0, 0]) + bias[:, None, None]
            e = np.exp(r - r.max(3, keepdims=True))
            return [e / e.sum(3, keepdims=True)]
        case(f"lanes_mixed_{channels}", nodes, {"x": [2, channels, 19, 33]}, {"y": [2, channels, 19, 33]}, mixed, [{"x": (2, channels, 19, 33)}],
             {"half": np.float32(0.5), "scale": scale, "shift": shift, "bias": bias, "weight": weight})
    # Parts side by side along the channels, and one after another, turned in one.
    for parts in ((32, 32), (5, 20), (1, 16, 3), (40, 8)):
        names = [f"x{i}" for i in range(len(parts))]
        shapes = {n: (2, 45, p) for n, p in zip(names, parts)}
        case(f"lanes_turned_parts_{'_'.join(map(str, parts))}", [helper.make_node("Concat", names, ["c"], axis=2), helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 1]), helper.make_node("Relu", ["t"], ["y"])],
             {n: list(d) for n, d in shapes.items()}, {"y": [2, sum(parts), 45]}, lambda v, names=names: [np.maximum(np.concatenate([v[n] for n in names], 2).transpose(0, 2, 1), 0)], [shapes])
        shapes = {n: (2, p, 19) for n, p in zip(names, parts)}
        case(f"lanes_turned_stack_{'_'.join(map(str, parts))}", [helper.make_node("Concat", names, ["c"], axis=1), helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 1])],
             {n: list(d) for n, d in shapes.items()}, {"y": [2, 19, sum(parts)]}, lambda v, names=names: [np.concatenate([v[n] for n in names], 1).transpose(0, 2, 1)], [shapes])
    # Lists of a few even runs: what pads repeat, halves exchanged, single elements.
    for mode in ("reflect", "edge", "wrap"):
        for width in (5, 56, 130, 300):
            case(f"lanes_pad_{mode}_{width}", [helper.make_node("Pad", ["x", "p"], ["t"], mode=mode), helper.make_node("Neg", ["t"], ["y"])], {"x": [3, 6, width]}, {"y": [3, 9, width + 7]},
                 lambda v, mode=mode: [-np.pad(v["x"], ((0, 0), (1, 2), (4, 3)), mode=mode)], [{"x": (3, 6, width)}], {"p": constant(0, 1, 4, 0, 2, 3)})
    for name, indices in (("halves", [*range(40, 80), *range(40)]), ("back", [*range(79, 39, -1), *range(40)]), ("single", [*range(30), 7, *range(30, 60), 7, 9]),
                          ("repeated", [*range(20), 5, 5, 5, *range(-20, 0)]), ("odd", [*range(1, 80, 2), *range(0, 80, 2)]), ("uneven", [i * i % 80 for i in range(50)])):
        nodes = [helper.make_node("Gather", ["x", "i"], ["g"], axis=1), helper.make_node("Gather", ["z", "i"], ["h"], axis=1), helper.make_node("Add", ["g", "h"], ["y"])]
        case(f"lanes_runs_{name}", nodes, {"x": [7, 80], "z": [7, 80]}, {"y": [7, len(indices)]}, lambda v, indices=indices: [(v["x"] + v["z"])[:, indices]],
             [{"x": (7, 80), "z": (7, 80)}], {"i": constant(*indices)})
    # Slices along channels that lie apart: the image is turned once, what is gathered turned back.
    for channels, points in ((7, (5, 7)), (8, (5, 7)), (13, (9, 31)), (33, (16, 16)), (64, (1, 40))):
        at = np.random.default_rng(channels).integers(-6, 6, (2, *points, 2))
        batch = np.arange(2)[:, None, None]
        nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), helper.make_node("GatherND", ["t", "i"], ["g"], batch_dims=1),
                 helper.make_node("Mul", ["g", "w"], ["m"]), helper.make_node("Transpose", ["m"], ["y"], perm=[0, 3, 1, 2])]
        weight = np.random.default_rng(channels + 1).standard_normal((2, *points, 1)).astype(np.float32)
        case(f"lanes_gather_nd_{channels}_{points[0]}x{points[1]}", nodes, {"x": [2, channels, 6, 6]}, {"y": [2, channels, *points]},
             lambda v, at=at, weight=weight: [(v["x"].transpose(0, 2, 3, 1)[batch, at[..., 0], at[..., 1]] * weight).transpose(0, 3, 1, 2)],
             [{"x": (2, channels, 6, 6)}], {"i": at, "w": weight})
    for columns in (9, 40):
        rows = np.random.default_rng(columns).integers(-20, 20, 50)
        nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Gather", ["t", "i"], ["g"], axis=0),
                 helper.make_node("Relu", ["g"], ["r"]), helper.make_node("Transpose", ["r"], ["y"], perm=[1, 0])]
        case(f"lanes_gather_rows_{columns}", nodes, {"x": [columns, 20]}, {"y": [columns, 50]},
             lambda v, rows=rows: [np.maximum(v["x"].T[rows], 0).T], [{"x": (columns, 20)}], {"i": rows})
    # Halves of pairs, turned and put together again.
    for heads, length in ((3, 8), (1, 34), (2, 128)):
        nodes = [helper.make_node("Slice", ["x", "zero", "e", "a", "s"], ["p"]), helper.make_node("Slice", ["x", "one", "e", "a", "s"], ["q"]), helper.make_node("Neg", ["q"], ["n"]),
                 helper.make_node("Unsqueeze", ["n", "u"], ["n1"]), helper.make_node("Unsqueeze", ["p", "u"], ["p1"]), helper.make_node("Concat", ["n1", "p1"], ["c"], axis=-1),
                 helper.make_node("Mul", ["c", "w"], ["m"]), helper.make_node("Reshape", ["m", "shape"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
        weight = random((length // 2, 2), 5)

        def turned(v, weight=weight):
            x = v["x"]
            return [(np.stack([-x[..., 1::2], x[..., ::2]], -1) * weight).reshape(x.shape) + x]
        case(f"lanes_pairs_{heads}x{length}", nodes, {"x": [heads, 5, length]}, {"y": [heads, 5, length]}, turned, [{"x": (heads, 5, length)}],
             {"zero": constant(0), "one": constant(1), "e": constant(length), "a": constant(2), "s": constant(2), "u": constant(3), "shape": constant(heads, 5, length), "w": weight})
    # Running sums of many lines at once.
    for width in (7, 64, 130, 300, 512, 700, 4100):
        for options in ({}, {"exclusive": 1, "reverse": 1}):
            def summed(v, options=options):
                x = v["x"][:, ::-1] if options else v["x"]
                y = np.cumsum(x, 1) - (x if options else 0)
                return [y[:, ::-1] if options else y]
            case(f"scan_{width}{'_back' if options else ''}", [helper.make_node("CumSum", ["x", "a"], ["y"], **options)], {"x": [3, 9, width]}, {"y": [3, 9, width]}, summed,
                 [{"x": (3, 9, width)}], {"a": np.array(1, np.int64)})
    # The best of a row, in order, with equal ones; few of long rows have a limit in advance.
    for count, length in ((2, 300), (5, 1000), (8, 257), (32, 700), (33, 700), (3, 5000), (16, 100)):
        for largest in (0, 1):
            values = np.random.default_rng(count).integers(-40, 40, (3, length)).astype(np.float32)
            values[0, 5], values[1] = np.inf, 1

            def best(v, count=count, largest=largest):
                order = np.argsort(-v["x"] if largest else v["x"], axis=1, kind="stable")[:, :count]
                return [np.take_along_axis(v["x"], order, 1), order.astype(np.float64)]
            case(f"top_{count}_of_{length}{'' if largest else '_least'}", [helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=largest), helper.make_node("Cast", ["i"], ["z"], to=1)],
                 {"x": [3, length]}, {"y": [3, count], "z": [3, count]}, best, [{"x": values}, {"x": (3, length)}], {"k": constant(count)}, tolerance=0)
    # The same for rows beside each other: their elements lie apart.
    for count, length, pixels in ((1, 60, (25, 29)), (7, 60, (5, 7)), (8, 9, (33, 3)), (3, 3, (70,)), (4, 256, (2, 9)), (6, 300, (17,)), (5, 40, (2, 3))):
        for largest in (0, 1):
            values = np.random.default_rng(count).integers(-20, 20, (2, length, *pixels)).astype(np.float32)
            values[0, 1], values[1, 0], values[1, -1] = np.inf, -np.inf, np.nan

            def best_beside(v, count=count, largest=largest):
                ranks = np.where(np.isnan(v["x"]), np.inf, v["x"]) + np.where(np.isnan(v["x"]), 1, 0)
                keys = np.stack([np.isnan(v["x"]), np.nan_to_num(ranks, posinf=1e30, neginf=-1e30)])
                order = np.lexsort((-keys[1], -keys[0]) if largest else (keys[1], keys[0]), axis=1)[:, :count]
                return [np.take_along_axis(v["x"], order, 1), order.astype(np.float64)]
            case(f"top_{count}_of_{length}_beside_{'x'.join(map(str, pixels))}{'' if largest else '_least'}",
                 [helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=largest, axis=1), helper.make_node("Cast", ["i"], ["z"], to=1)],
                 {"x": ["N", length, *pixels]}, {"y": ["N", count, *pixels], "z": ["N", count, *pixels]}, best_beside,
                 [{"x": values}, {"x": (3, length, *pixels)}, {"x": (0, length, *pixels)}], {"k": constant(count)}, tolerance=0)
    # A matrix times a vector.
    for m, k in ((1, 5), (33, 70), (130, 257)):
        matrix = random((m, k), 6)
        case(f"vector_{m}x{k}", [helper.make_node("MatMul", ["w", "x"], ["y"])], {"x": ["B", k, 1]}, {"y": ["B", m, 1]}, lambda v, matrix=matrix: [matrix @ v["x"]],
             [{"x": (b, k, 1)} for b in (1, 3, 0)], {"w": matrix})
        case(f"vector_{m}x{k}_of_run", [helper.make_node("MatMul", ["w", "x"], ["y"])], {"w": [m, k], "x": [k]}, {"y": [m]}, lambda v: [v["w"] @ v["x"]], [{"w": (m, k), "x": (k,)}])
    # Long chains of instructions: several vectors side by side, then one by one, then a part of one.
    def silu(x):
        with np.errstate(over="ignore", invalid="ignore"):
            return x / (1 + np.exp(-x))
    chain = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])]
    for width in (0, 1, 16, 17, 31, 32, 48, 63, 64, 65, 80, 129, 200):
        case(f"side_by_side_{width}", chain, {"x": [3, width]}, {"y": [3, width]}, lambda v: [silu(v["x"])], [{"x": (3, width)}])
        case(f"side_by_side_unknown_{width}", chain, {"x": ["B", "N"]}, {"y": ["B", "N"]}, lambda v: [silu(v["x"])], [{"x": (3, width)}])
    special = np.array([np.inf, np.nan, 0, -0.0, 1e30, -1e30, 1e-40, 88, -88, 104], np.float32)
    case("side_by_side_special", chain, {"x": ["B", "N"]}, {"y": ["B", "N"]}, lambda v: [silu(v["x"])], [{"x": np.resize(special, (7, 67))}])
    # The same as the end of a product, in place of its addend where that is as large.
    for columns in (5, 33, 48, 64, 100):
        weights = random((24, columns), 8)
        case(f"side_by_side_product_{columns}", [helper.make_node("MatMul", ["a", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["q"]), helper.make_node("Sigmoid", ["q"], ["s"]), helper.make_node("Mul", ["q", "s"], ["y"])],
             {"a": ["M", 24], "b": ["M", columns]}, {"y": ["M", columns]}, lambda v, weights=weights: [silu(v["a"] @ weights + v["b"])], [{"a": (m, 24), "b": (m, columns)} for m in (1, 9, 30)], {"w": weights})
    # Parts of rows one after another: in whole vectors or not, cut into chunks, beside each other, behind and before other things.
    for parts, rows in (((16, 48), 3), ((17, 16, 31), 5), ((96, 16), 70), ((4096, 8192, 64), 2), ((20000, 20001), 2), ((16,) * 16, 4), ((16,) * 17, 4), ((3, 64), 9), ((0, 32, 32), 3),
                        ((64, 2, 3), 9), ((2, 3, 64, 5, 1, 40, 7), 5), ((1,) * 20, 9), ((5, 16) * 9, 4), ((40, 1, 0, 2), 1), ((9000, 4, 2), 2)):
        names = [f"x{i}" for i in range(len(parts))]
        concat = helper.make_node("Concat", names, ["c"], axis=1)
        inputs, width = {n: [rows, w] for n, w in zip(names, parts)}, sum(parts)
        shapes = [{n: (rows, w) for n, w in zip(names, parts)}]
        case(f"concat_{len(parts)}x{parts[-1]}_of_{rows}", [helper.make_node("Neg", ["x0"], ["n0"]), helper.make_node("Concat", ["n0"] + names[1:], ["c"], axis=1), helper.make_node("Mul", ["c", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])],
             inputs, {"y": [rows, width], "c": [rows, width]},
             lambda v, names=names, width=width: [np.maximum(np.concatenate([-v["x0"]] + [v[n] for n in names[1:]], 1) * random((width,), 3), 0), np.concatenate([-v["x0"]] + [v[n] for n in names[1:]], 1)],
             shapes, {"w": random((width,), 3)})
        case(f"concat_two_{len(parts)}x{parts[-1]}_of_{rows}", [concat, helper.make_node("Concat", names[::-1], ["d"], axis=1), helper.make_node("Add", ["c", "d"], ["y"])], inputs, {"y": [rows, width]},
             lambda v, names=names: [np.concatenate([v[n] for n in names], 1) + np.concatenate([v[n] for n in names[::-1]], 1)], shapes)
        case(f"concat_sum_{len(parts)}x{parts[-1]}_of_{rows}", [concat, helper.make_node("ReduceSum", ["c", "a"], ["s"], keepdims=1), helper.make_node("Sub", ["c", "s"], ["y"])], inputs, {"y": [rows, width]},
             lambda v, names=names: [(lambda c: c - c.sum(1, keepdims=True))(np.concatenate([v[n] for n in names], 1))], shapes, {"a": constant(1)}, tolerance=4e-6)
    # Of other types, and short parts that are computed, alone and beside each other, in one region or in a launch of their own.
    for dtype in ("FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT32", "INT64", "BOOL"):
        for wide in (16, 33):
            parts = [np.float32(np.arange(29 * w).reshape(29, w) % 2) for w in (2, wide, 1, 3, 20)]
            names = [f"x{i}" for i in range(len(parts))]
            case(f"concat_short_{dtype}_{wide}", [helper.make_node("Cast", [n], ["c" + n], to=getattr(TensorProto, dtype)) for n in names] + [helper.make_node("Concat", ["c" + n for n in names], ["c"], axis=1), helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)],
                 {n: list(p.shape) for n, p in zip(names, parts)}, {"y": [29, sum(p.shape[1] for p in parts)]}, lambda v, names=names: [np.concatenate([v[n] for n in names], 1)], [dict(zip(names, parts))])
    for rows in (1, 7, 60, 400):
        case(f"concat_computed_{rows}", [helper.make_node("Exp", ["b"], ["e"]), helper.make_node("Sigmoid", ["c"], ["s"]), helper.make_node("Concat", ["e", "a", "s", "b"], ["y"], axis=1)],
             {"a": [rows, 63], "b": [rows, 2], "c": [rows, 1]}, {"y": [rows, 68]}, lambda v: [np.concatenate([np.exp(v["b"]), v["a"], 1 / (1 + np.exp(-v["c"])), v["b"]], 1)], [{"a": (rows, 63), "b": (rows, 2), "c": (rows, 1)}])
    # Small images of many groups, whose tasks can be no taller.
    for groups, per, height in ((16, 16, 7), (24, 8, 3), (32, 8, 14)):
        channels = groups * per
        filters = random((channels, per, 3, 3), 2)
        case(f"conv_groups_{groups}x{per}_at_{height}", [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4, group=groups)], {"x": [1, channels, height, height]}, {"y": [1, channels, height, height]},
             lambda v, filters=filters, groups=groups: [convolve(v["x"], filters, 1, 1, groups)], [{"x": (1, channels, height, height)}], {"w": filters})
    # Depthwise along the lines' direction only, of few channels.
    for channels, height, width, kernel, stride, dilation in ((4, 64, 64, 65, 1, 1), (1, 9, 5, 3, 1, 1), (3, 20, 7, 5, 2, 1), (5, 17, 33, 3, 1, 2), (2, 6, 1, 3, 1, 1)):
        filters, pad = random((channels, 1, kernel, 1), 2), dilation * (kernel // 2)

        def columnwise(v, filters=filters, pad=pad, stride=stride, dilation=dilation):
            x, taps = np.pad(v["x"], ((0, 0), (0, 0), (pad, pad), (0, 0))), filters.shape[2]
            rows = (x.shape[2] - dilation * (taps - 1) - 1) // stride + 1
            return [sum(x[:, :, t * dilation:][:, :, :(rows - 1) * stride + 1:stride] * filters[:, 0, t, 0][:, None, None] for t in range(taps))]
        case(f"conv_columnwise_{channels}_{kernel}_{stride}_{dilation}", [helper.make_node("Conv", ["x", "w"], ["y"], pads=[pad, 0, pad, 0], strides=[stride, 1], dilations=[dilation, 1], group=channels)],
             {"x": [2, channels, height, width]}, {"y": [2, channels, "H", width]}, columnwise, [{"x": (2, channels, height, width)}], {"w": filters})
    # Dilations beside which the image is small: most kernel positions read nothing but padding.
    for height, width, dilation, kernel, pad, stride, groups in ((14, 14, 12, 3, 12, 1, 1), (33, 33, 12, 3, 12, 1, 1), (14, 14, 6, 3, 6, 1, 2), (9, 20, 8, 3, 8, 1, 1), (20, 9, 4, 5, 8, 1, 1), (12, 12, 5, 3, 5, 2, 1), (7, 7, 1, 13, 6, 1, 1),
                                                         (6, 6, 5, 3, 9, 1, 1), (10, 10, 12, 3, 12, 1, 1)):
        filters = random((40 * groups, 24, kernel, kernel), 2)
        reach = (kernel - 1) * dilation + 1
        spread = np.zeros((40 * groups, 24, reach, reach))
        spread[:, :, ::dilation, ::dilation] = filters
        case(f"conv_dilated_{height}x{width}_{kernel}_{dilation}_{pad}", [helper.make_node("Conv", ["x", "w"], ["y"], pads=[pad] * 4, dilations=[dilation] * 2, strides=[stride] * 2, group=groups)],
             {"x": [2, 24 * groups, height, width]}, {"y": [2, 40 * groups, "H", "W"]}, lambda v, spread=spread, pad=pad, stride=stride, groups=groups: [convolve(v["x"], spread, stride, pad, groups)],
             [{"x": (2, 24 * groups, height, width)}], {"w": filters})
    # Images so small that a patch of outputs is a whole line: outputs are left out for the kernel positions that read padding for them.
    for height, width, kernel, stride, pad in ((7, 7, 3, 1, 1), (4, 4, 3, 1, 1), (2, 2, 3, 1, 1), (1, 1, 3, 1, 1), (3, 5, 5, 1, 2), (7, 3, 3, 2, 1), (14, 14, 3, 2, 1), (2, 3, 3, 1, 3), (5, 2, 7, 2, 3), (3, 3, 2, 1, 2), (1, 6, 5, 1, 4)):
        for channels, columns, groups in ((48, 40, 1), (70, 16, 2), (20, 33, 1)):
            filters = random((columns, channels // groups, kernel, kernel), 3)
            case(f"conv_small_{height}x{width}_{kernel}_{stride}_{pad}_{channels}", [helper.make_node("Conv", ["x", "w"], ["c"], pads=[pad] * 4, strides=[stride] * 2, group=groups), helper.make_node("Relu", ["c"], ["y"])],
                 {"x": ["N", channels, height, width]}, {"y": ["N", columns, "H", "W"]}, lambda v, filters=filters, a=(stride, pad, groups): [np.maximum(convolve(v["x"], filters, *a), 0)],
                 [{"x": (n, channels, height, width)} for n in (1, 3)], {"w": filters})
    # Depthwise kernels of so many taps that rows are a loop, which leaves out those that read padding alone.
    for height, width, stride in ((40, 36, 1), (5, 3, 1), (1, 1, 1), (2, 30, 2), (25, 26, 2)):
        filters = random((20, 1, 9, 9), 4) / 9
        spread = np.zeros((20, 1, 25, 25), np.float32)
        spread[:, :, ::3, ::3] = filters
        for kind, dims in (("static", [2, 20, height, width]), ("dynamic", ["N", 20, "H", "W"])):
            case(f"depthwise_rows_{height}x{width}_{stride}_{kind}", [helper.make_node("Conv", ["x", "w"], ["c"], pads=[12] * 4, dilations=[3, 3], strides=[stride] * 2, group=20), helper.make_node("Tanh", ["c"], ["y"])],
                 {"x": dims}, {"y": [dims[0], 20, "P", "Q"]}, lambda v, spread=spread, stride=stride: [np.tanh(convolve(v["x"], spread, stride, 12, 20))], [{"x": (2, 20, height, width)}], {"w": filters})
    # Depthwise along the rows alone, whose lanes are the pixels of a line, in a layer that scales bands of rows by factors of their own.
    for channels, width in ((8, 101), (5, 16), (3, 37), (6, 19)):
        filters, scale, shift = random((channels, 1, 3, 1), 4), random((1, channels * 3, 1, 1), 5), random((1, channels * 3, 1, 1), 6)
        def bands(v, filters=filters, scale=scale, shift=shift, channels=channels, width=width):
            c = convolve_any(v["x"], filters, (1, 1), (1, 1), (1, 0), (1, 0), channels)
            return [np.maximum((c.reshape(2, channels * 3, 4, width) * scale + shift).reshape(2, channels, 12, width) + v["r"], 0)]
        case(f"depthwise_bands_{channels}_{width}", [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 0, 1, 0], group=channels), helper.make_node("Reshape", ["c", "split"], ["b"]), helper.make_node("Mul", ["b", "scale"], ["m"]),
                                                     helper.make_node("Add", ["m", "shift"], ["s"]), helper.make_node("Reshape", ["s", "joined"], ["j"]), helper.make_node("Add", ["j", "r"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
             {"x": [2, channels, 12, width], "r": [2, channels, 12, width]}, {"y": [2, channels, 12, width]}, bands, [{"x": (2, channels, 12, width), "r": (2, channels, 12, width)}],
             {"w": filters, "scale": scale, "shift": shift, "split": np.array([2, channels * 3, 4, width]), "joined": np.array([2, channels, 12, width])})
    # Rows of A that lie side by side in runs, which the tiles of a copy cross or not; sums that no number of parts divides.
    for outer, depth, inner, columns in ((7, 45, 24, 9), (61, 9, 17, 40), (3, 20, 90, 33), (40, 5, 14, 20), (5, 30, 15, 8), (9, 33, 3, 20), (2, 0, 24, 5)):
        case(f"rows_in_runs_{outer}_{depth}_{inner}", [helper.make_node("Sigmoid", ["b"], ["s"]), helper.make_node("Einsum", ["a", "s"], ["p"], equation="xokc,kn->xocn"), helper.make_node("Tanh", ["p"], ["y"])],
             {"a": [2, outer, depth, inner], "b": [depth, columns]}, {"y": [2, outer, inner, columns]}, lambda v: [np.tanh(np.einsum("xokc,kn->xocn", v["a"], 1 / (1 + np.exp(-v["b"]))))],
             [{"a": (2, outer, depth, inner), "b": (depth, columns)}], tolerance=4e-6)
    for steps, rows in ((2053, 67), (4093, 40), (1031, 33), (3001, 89)):
        case(f"gram_{steps}_{rows}", [helper.make_node("Abs", ["a"], ["m"]), helper.make_node("Einsum", ["m", "a"], ["p"], equation="km,kn->mn"), helper.make_node("Neg", ["p"], ["y"])],
             {"a": [steps, rows]}, {"y": [rows, rows]}, lambda v: [-np.abs(v["a"]).T @ v["a"]], [{"a": (steps, rows)}], tolerance=4e-6)
    for power in (2, 3, 4, 5, 6, 7, 8, 9, -2, -1, 0.5):
        values = np.concatenate([random((50,), 3), np.array([0.0, -0.0, np.inf, np.nan, 1e30, 1e-30, 1e-22, -1e12, 3e-39], np.float32)])
        values = np.abs(values) if power == 0.5 else values
        case(f"power_{power}", [helper.make_node("Pow", ["x", "n"], ["y"])], {"x": ["N"]}, {"y": ["N"]},
             lambda v, power=power: [np.power(v["x"], power)], [{"x": values.astype(np.float32)}], {"n": np.array(power, np.float32)}, tolerance=(2e-6, 1e-37))
    # Loops whose next values are made in place of the carried ones: outputs grow row by row, states swap, are read after they changed, or are given out twice.
    f32 = TensorProto.FLOAT
    for name, steps, width in (("short", 1, 3), ("long", 40, 33), ("none", 0, 5)):
        info = lambda n, width=width: helper.make_tensor_value_info(n, f32, [width])
        body = helper.make_graph([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Tanh", ["sum"], ["b2"]), helper.make_node("Mul", ["b2", "x"], ["m"]), helper.make_node("Add", ["c", "m"], ["c2"]),
                                  helper.make_node("Sub", ["c2", "c"], ["step"]), helper.make_node("Neg", ["c2"], ["row"]), helper.make_node("Identity", ["b"], ["a2"]), helper.make_node("Relu", ["b2"], ["d2"])], "body",
                                 [info(n) for n in ("a", "b", "c", "d", "x")], [info(n) for n in ("a2", "b2", "c2", "d2", "step", "row", "sum")])
        def recur(v, steps=steps, width=width):
            a, b, c, d = v["a0"], v["b0"], v["c0"], v["d0"]
            rows = [[], [], []]
            for x in v["x"]:
                total = a + b
                after = np.tanh(total)
                a, b, before, c = b, after, c, c + after * x
                d = np.maximum(after, 0)
                for into, row in zip(rows, (c - before, -c, total)):
                    into.append(row)
            return [a, b, c, d, *[np.array(r).reshape(steps, width) for r in rows]]
        case(f"scan_in_place_{name}", [helper.make_node("Scan", ["a0", "b0", "c0", "d0", "x"], ["a", "b", "c", "d", "steps", "rows", "sums"], body=body, num_scan_inputs=1)],
             {"a0": [width], "b0": [width], "c0": [width], "d0": [width], "x": [steps, width]}, {**{n: [width] for n in "abcd"}, "steps": [steps, width], "rows": [steps, width], "sums": [steps, width]},
             recur, [{"a0": (width,), "b0": (width,), "c0": (width,), "d0": (width,), "x": (steps, width)}], tolerance=4e-6)
    # Depthwise in three dims: planes of the kernel that lie outside, groups of several channels, kernels whose rows are loops.
    for channels, per, kernel, stride, dilation, pad, size in ((19, 1, (5, 3, 3), (1, 1, 1), (1, 1, 1), (2, 1, 1), (4, 7, 9)), (24, 1, (3, 3, 3), (2, 1, 2), (1, 2, 1), (1, 2, 1), (5, 6, 11)), (16, 4, (2, 3, 2), (1, 2, 1), (2, 1, 1), (0, 1, 1), (5, 5, 5)),
                                                               (33, 1, (3, 9, 9), (1, 1, 1), (1, 1, 1), (1, 4, 4), (2, 3, 4)), (40, 1, (3, 1, 1), (1, 1, 1), (1, 1, 1), (1, 0, 0), (1, 4, 4)), (17, 1, (1, 5, 3), (1, 1, 1), (1, 1, 1), (0, 2, 1), (3, 1, 1))):
        filters = random((channels, per, *kernel), 5) / np.sqrt(per * np.prod(kernel)).astype(np.float32)
        for kind, dims in (("static", [2, channels, *size]), ("dynamic", ["N", channels, "D", "H", "W"])):
            case(f"depthwise3d_{channels}_{'x'.join(map(str, kernel))}_{kind}", [helper.make_node("Conv", ["x", "w"], ["c"], pads=[*pad, *pad], strides=stride, dilations=dilation, group=channels // per), helper.make_node("Sigmoid", ["c"], ["y"])],
                 {"x": dims}, {"y": [dims[0], channels, "P", "Q", "R"]}, lambda v, filters=filters, a=(stride, dilation, pad, pad, channels // per): [1 / (1 + np.exp(-convolve_any(v["x"], filters, *a)))],
                 [{"x": (2, channels, *size)}] + ([{"x": (0, channels, *size)}] if kind == "dynamic" else []), {"w": filters})
    # First layers, by tasks of several rows.
    for channels, columns, kernel, height, width in ((3, 40, 7, 47, 120), (3, 24, 3, 112, 113), (1, 16, 5, 60, 31), (4, 64, 4, 224, 224)):
        filters = random((columns, channels, kernel, kernel), 2)
        case(f"conv_stem_{channels}_{kernel}_at_{height}", [helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2], pads=[kernel // 2] * 4)], {"x": [1, channels, height, width]},
             {"y": [1, columns, "H", "W"]}, lambda v, filters=filters, kernel=kernel: [convolve(v["x"], filters, 2, kernel // 2, 1)], [{"x": (1, channels, height, width)}], {"w": filters})
    # Floats as bytes, beyond their range, too.
    for to, low, high in ((TensorProto.UINT8, 0, 255), (TensorProto.INT8, -128, 127), (TensorProto.UINT16, 0, 65535), (TensorProto.INT16, -32768, 32767)):
        values = np.concatenate([random((40,), 7) * s for s in (1, 100, 1e5)] + [np.array([np.inf, -np.inf, np.nan, 0.99, -0.99, high, low], np.float32)]).astype(np.float32)
        case(f"convert_to_{TensorProto.DataType.Name(to).lower()}", [helper.make_node("Cast", ["x"], ["c"], to=to), helper.make_node("Cast", ["c"], ["y"], to=1)],
             {"x": ["N"]}, {"y": ["N"]}, lambda v, low=low, high=high: [np.clip(np.trunc(np.nan_to_num(v["x"], nan=0.0, posinf=1e9, neginf=-1e9)), low, high)], [{"x": values}], tolerance=0)


def given_filter_cases():
    """Convolutions whose filter only the run knows."""
    for channels, filters, groups, kernel, stride, pad, size in ((16, 24, 1, 3, 1, 1, (13, 17)), (32, 48, 4, 3, 1, 1, (12, 9)), (24, 20, 1, 5, 2, 2, (21, 15)), (40, 33, 1, 1, 1, 0, (9, 30)),
                                                                  (40, 16, 2, 1, 2, 0, (12, 11)), (8, 8, 1, 7, 3, 0, (31, 29)), (16, 16, 1, 3, 1, 2, (1, 40)), (4, 64, 1, 3, 1, 1, (20, 20)), (64, 64, 64, 3, 1, 1, (16, 16))):
        for kind, image in (("static", list(size)), ("dynamic", ["H", "W"])):
            batch = 2 if kind == "static" else "N"
            x, w = (2, channels, *size), (filters, channels // groups, kernel, kernel)
            shapes = [{"x": x, "w": w}]
            if kind == "dynamic":
                shapes += [{"x": (n, channels, kernel + 4, kernel + 1), "w": w} for n in (0, 1)]
            nodes = [helper.make_node("Mul", ["w", "w"], ["v"]), helper.make_node("Conv", ["x", "v"], ["z"], strides=[stride] * 2, pads=[pad] * 4, group=groups), helper.make_node("Relu", ["z"], ["y"])]
            case(f"conv_given_{kind}_{channels}x{filters}_g{groups}_k{kernel}s{stride}p{pad}", nodes, {"x": [batch, channels, *image], "w": list(w)}, {"y": [batch, filters, "P", "Q"]},
                 lambda v, stride=stride, pad=pad, groups=groups: [np.maximum(convolve(v["x"].astype(np.float64), v["w"].astype(np.float64) ** 2, stride, pad, groups), 0)], shapes)


def sample(x, grid, padding):
    """Bilinear samples of x [N, C, H, W] at grid [N, P, Q, 2] in [-1, 1], corners not aligned."""
    (n, c, h, w), at = x.shape, []
    for number, size in ((grid[..., 0], w), (grid[..., 1], h)):
        p = ((number.astype(np.float64) + 1) * size - 1) / 2
        if padding == "reflection":
            p = np.abs(np.mod(p - size + 0.5, 2 * size) - size) - 0.5
        at.append(p if padding == "zeros" else np.clip(p, 0, size - 1))
    left, top = np.floor(at[0]), np.floor(at[1])
    total = np.zeros((n, c, *grid.shape[1:3]))
    for dy in (0, 1):
        for dx in (0, 1):
            column, row = left + dx, top + dy
            inside = (column >= 0) & (column < w) & (row >= 0) & (row < h)
            weight = (1 - np.abs(at[0] - column)) * (1 - np.abs(at[1] - row))
            j, i = np.clip(column, 0, w - 1).astype(int), np.clip(row, 0, h - 1).astype(int)
            for b in range(n):
                total[b] += np.where(inside[b], x[b][:, i[b], j[b]], 0) * weight[b]
    return total


def sample_cases():
    """Samples at positions that are given, far outside too, and sums of them; whole numbers of 64 bits from floats."""
    for channels in (1, 2, 3, 17):
        for padding in ("zeros", "border", "reflection"):
            for shape, grid in (((2, channels, 9, 13), (2, 7, 33)), ((1, channels, 1, 5), (1, 1, 1)), ((1, channels, 30, 4), (1, 40, 3)), ((1, channels, 2, 300), (1, 5, 16)),
                                ((1, channels, 5, 1), (1, 3, 20)), ((2, channels, 5, 2), (2, 3, 20))):
                g = random((*grid, 2), 3) * np.float32(1.2)
                if shape[3] == 300:  # the error of a position grows with it
                    g = np.clip(g, -1.1, 1.1)
                elif padding != "reflection":  # of so many turns nothing is left of a float
                    g[..., 0, :] *= 1e6
                nodes = [helper.make_node("GridSample", ["x", "g"], ["y"], mode="bilinear", padding_mode=padding, align_corners=0),
                         helper.make_node("ReduceSum", ["y", "two"], ["s"], keepdims=0)]
                case(f"sample_{padding}_{channels}_{'x'.join(map(str, grid))}", nodes, {"x": list(shape), "g": [*grid, 2]}, {"y": [grid[0], channels, *grid[1:]], "s": [grid[0], channels, grid[2]]},
                     lambda v, padding=padding: [(y := sample(v["x"], v["g"], padding)), y.sum(2)], [{"x": shape, "g": g}], {"two": np.array([2], np.int64)}, tolerance=1e-5)
    values = np.concatenate([random((60,), 7) * s for s in (1, 1e5, 1e12, 1e19)] + [np.array([np.inf, -np.inf, np.nan, 0.99, -0.99, 2.0**62, -2.0**63, 2.0**63, 63.5], np.float32)])
    def saturated(v, low=-2.0**63, high=2.0**63 - 1024):
        return np.clip(np.trunc(np.nan_to_num(v, nan=0.0, posinf=1e30, neginf=-1e30)), low, high)
    case("convert_to_int64", [helper.make_node("Cast", ["x"], ["c"], to=TensorProto.INT64), helper.make_node("Div", ["c", "d"], ["e"]), helper.make_node("Cast", ["e"], ["y"], to=1)],
         {"x": ["N"]}, {"y": ["N"]}, lambda v: [np.trunc(saturated(v["x"]) / 1024)], [{"x": values}], {"d": np.array(1024, np.int64)}, tolerance=0)
    # Remainders: quotients that are whole, just below, large and far too large; no numbers, infinities and zeros among others.
    x = np.concatenate([random((500,), 7) * 10, random((500,), 8) * 1e5, random((40,), 9) * 1e12, np.arange(-60, 60, dtype=np.float32) / 4, np.array([0.0, -0.0, 1e-40, 3e38], np.float32)])
    y = np.concatenate([random((x.size - 4,), 10) + np.float32(1.5), np.array([3, 3, 7, 1], np.float32)])
    y[300:340], x[340:380] = x[300:340] / np.float32(7), y[340:380] * np.float32(3)
    special = np.tile(np.array([np.nan, np.inf, -np.inf, 0, -0.0, 2.5, -7, 1e-30], np.float32), 8)
    for name, a, b in (("plain", x, y), ("of_three", x, np.full_like(x, 3)), ("special", special, np.repeat(special[:8], 8))):
        case(f"fmod_{name}", [helper.make_node("Mod", ["x", "d"], ["y"], fmod=1)], {"x": ["N"], "d": ["N"]}, {"y": ["N"]}, lambda v: [np.fmod(v["x"], v["d"])], [{"x": a, "d": b}], tolerance=0)
    case("convert_clamped", [helper.make_node("Cast", ["x"], ["c"], to=TensorProto.INT64), helper.make_node("Clip", ["c", "low", "high"], ["e"]), helper.make_node("Cast", ["e"], ["y"], to=1)],
         {"x": ["N"]}, {"y": ["N"]}, lambda v: [saturated(v["x"], -5, 63)], [{"x": values}], {"low": np.array(-5, np.int64), "high": np.array(63, np.int64)}, tolerance=0)
    # Rows of many short pieces; products of sums around their rows.
    names = [f"x{i}" for i in range(9)]
    for pieces in (30, 130):
        case(f"concat_elements_{pieces}", [helper.make_node("Concat", [names[i * 7 % 9] for i in range(pieces)], ["c"], axis=1), helper.make_node("Relu", ["c"], ["y"])],
             {n: [6, 1, 3] for n in names}, {"y": [6, pieces, 3]}, lambda v, pieces=pieces: [np.maximum(np.concatenate([v[names[i * 7 % 9]] for i in range(pieces)], 1), 0)],
             [{n: (6, 1, 3) for n in names}])
    case("product_sums_around", [helper.make_node("Einsum", ["x", "z", "y"], ["a"], equation="hkb,bm,knb->hmn")], {"x": [14, 22, 37], "z": [37, 9], "y": [22, 18, 37]}, {"a": [14, 9, 18]},
         lambda v: [np.einsum("hkb,bm,knb->hmn", v["x"], v["z"], v["y"])], [{"x": (14, 22, 37), "z": (37, 9), "y": (22, 18, 37)}])
