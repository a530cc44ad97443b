# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of kernels.py: products, convolutions, attention, recurrent layers, norms."""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from kernel_models import case, convolve, convolve_any, convolve_transposed, info, matmul, random, recurrent


def build_cases():
    # Both operands at run time: packed by the task, by a launch of its own, from rows or from columns.
    sizes = [(1, 1, 1), (3, 0, 5), (0, 4, 5), (5, 7, 0), (17, 33, 65), (130, 64, 31), (300, 100, 200), (7, 512, 40), (230, 513, 97)]
    for ta in (False, True):
        for tb in (False, True):
            nodes, reference = matmul(ta, tb)
            kind = ("t" if ta else "n") + ("t" if tb else "n")
            def shapes_of(batch, m, k, n, ta=ta, tb=tb):
                return {"a": (batch, k, m) if ta else (batch, m, k), "b": (batch, n, k) if tb else (batch, k, n)}
            dynamic = {"a": ["B", "K", "M"] if ta else ["B", "M", "K"], "b": ["B", "N", "K"] if tb else ["B", "K", "N"]}
            case(f"matmul_{kind}_dynamic", nodes, dynamic, {"y": ["B", "M", "N"]}, reference,
                 [shapes_of(2, *size) for size in sizes])
            for batch, (m, k, n) in ((1, (300, 100, 200)), (2, (17, 33, 65)), (3, (5, 7, 1)), (1, (9, 512, 70)), (1, (260, 48, 48)), (3, (205, 230, 421)), (1, (531, 300, 650))):
                shapes = shapes_of(batch, m, k, n)
                case(f"matmul_{kind}_{batch}x{m}x{k}x{n}", nodes, {name: list(s) for name, s in shapes.items()},
                     {"y": [batch, m, n]}, reference, [shapes])
    # Rows that a launch copies for all tasks: an unknown number of them, few and none; of A as it lies and with a value before it.
    for ta in (False, True):
        w = random((300, 600), 5)
        nodes = [helper.make_node("Transpose", ["a"], ["r"], perm=[1, 0] if ta else [0, 1]), helper.make_node("Transpose", ["a3"], ["r3"], perm=[2, 1, 0]),
                 helper.make_node("Reshape", ["r3", "flat"], ["r2"]), helper.make_node("MatMul", ["r", "w"], ["y"]), helper.make_node("MatMul", ["r2", "w"], ["z"])]
        case(f"matmul_copied_{'t' if ta else 'n'}", nodes, {"a": [300, "M"] if ta else ["M", 300], "a3": [12, 25, "M"]}, {"y": ["M", 600], "z": ["M", 600]},
             lambda v, w=w, ta=ta: [(v["a"].T if ta else v["a"]) @ w.astype(np.float64), v["a3"].transpose(2, 1, 0).reshape(-1, 300) @ w.astype(np.float64)],
             [{"a": (300, m) if ta else (m, 300), "a3": (12, 25, m)} for m in (0, 1, 7, 105, 333)], {"w": w, "flat": np.array([-1, 300], np.int64)})
    # Tiles of transposes, with values before and behind; sizes that only the run knows, one and none.
    for perm in ((0, 2, 1), (2, 0, 1), (2, 1, 0)):
        given = ["A", "B", "C"]
        turned = [given[p] for p in perm]
        case(f"transpose_{''.join(map(str, perm))}",
             [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Transpose", ["a"], ["t"], perm=perm), helper.make_node("Sub", ["t", "z"], ["y"])],
             {"x": given, "z": turned}, {"y": turned}, lambda v, perm=perm: [np.abs(v["x"]).transpose(perm) - v["z"]],
             [{"x": s, "z": tuple(s[p] for p in perm)} for s in ((2, 65, 300), (1, 1, 1), (2, 0, 9), (3, 64, 16), (9, 17, 31), (20, 1, 15), (150, 3, 70))])
    # Rows whose last dims are short count as one.
    for perm, last in (((0, 3, 1, 2), 3), ((3, 1, 0, 2), 5), ((1, 3, 0, 2), 2), ((2, 3, 1, 0), 9)):
        given = ["A", "B", last, "C"]
        turned = [given[p] for p in perm]
        case(f"transpose_short_{''.join(map(str, perm))}",
             [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Transpose", ["a"], ["t"], perm=perm), helper.make_node("Sub", ["t", "z"], ["y"])],
             {"x": given, "z": turned}, {"y": turned}, lambda v, perm=perm: [np.abs(v["x"]).transpose(perm) - v["z"]],
             [{"x": s, "z": tuple(s[p] for p in perm)} for s in ((2, 25, last, 100), (1, 1, last, 1), (3, 0, last, 9), (7, 16, last, 16), (5, 9, last, 31), (2, 70, last, 130))])
    # Lanes of which some lie before what is read: in a pad, and in an input of a concat, of rows that were turned.
    for d, rows in ((2, 8), (3, 3), (4, 8), (5, 3), (8, 3), (16, 8)):
        turned, flat = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), helper.make_node("Reshape", ["t", "s"], ["f"])], lambda v, size=rows * d: v.transpose(0, 2, 1).reshape(3, size)
        for step, low in ((1, 8), (1, 5), (2, 4), (3, 6), (4, 8)):
            cut, size = helper.make_node("Slice", ["q", "b", "e", "one", "step"], ["y"]), -(-(rows * d + low + 7) // step)
            given = {"s": np.array([3, rows * d], np.int64), "b": np.array([0], np.int64), "e": np.array([1 << 40], np.int64), "one": np.array([1], np.int64), "step": np.array([step], np.int64)}
            case(f"before_pad_{d}x{rows}_{low}_{step}", turned + [helper.make_node("Pad", ["f", "p"], ["q"]), cut], {"x": [3, rows, d]}, {"y": [3, size]},
                 lambda v, low=low, step=step, flat=flat: [np.pad(flat(v["x"]), ((0, 0), (low, 7)))[:, ::step]], [{"x": (3, rows, d)}], {**given, "p": np.array([0, low, 0, 7], np.int64)})
            size = -(-(rows * d + low) // step)
            case(f"before_concat_{d}x{rows}_{low}_{step}", turned + [helper.make_node("Concat", ["a", "f"], ["q"], axis=1), cut], {"x": [3, rows, d], "a": [3, low]}, {"y": [3, size]},
                 lambda v, step=step, flat=flat: [np.concatenate([v["a"], flat(v["x"])], 1)[:, ::step]], [{"x": (3, rows, d), "a": (3, low)}], given)
        pairs = []
        for u, v, out in (("a", "b", "u"), ("c", "d", "v")):
            pairs += [helper.make_node("Concat", [u, v], [out + "1"], axis=1), helper.make_node("Transpose", [out + "1"], [out + "2"], perm=[0, 2, 1, 3]), helper.make_node("Reshape", [out + "2", "s"], [out])]
        case(f"before_nested_{d}x{rows}", pairs + [helper.make_node("Concat", ["u", "v"], ["w"], axis=2), helper.make_node("Transpose", ["w"], ["y"], perm=[1, 0, 2])],
             {n: [5, 1, rows, d] for n in "abcd"}, {"y": [rows, 5, 4 * d]}, lambda v: [np.concatenate([v[n][:, 0] for n in "abcd"], 2).transpose(1, 0, 2)], [{n: (5, 1, rows, d) for n in "abcd"}], {"s": np.array([5, rows, 2 * d], np.int64)})
    # Weights of int8 that the model widens and scales, by rows and by groups of them.
    for name, rows, k, n, group in (("groups", 3, 768, 77, 64), ("rows", 5, 96, 33, 96), ("many", 150, 128, 40, 32), ("short_groups", 4, 72, 20, 24), ("unknown", None, 64, 30, 16)):
        q, scale = np.random.default_rng(3).integers(-128, 128, (n, k // group, group)).astype(np.int8), random((n, k // group, 1), 4) * np.float32(0.02)
        case(f"widened_{name}", [helper.make_node("Cast", ["q"], ["f"], to=TensorProto.FLOAT), helper.make_node("Mul", ["f", "s"], ["m"]), helper.make_node("Reshape", ["m", "shape"], ["r"]),
                                 helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["p"]), helper.make_node("Relu", ["p"], ["y"])], {"x": [rows or "M", k]}, {"y": [rows or "M", n]},
             lambda v, w=(q.astype(np.float64) * scale).reshape(n, k): [np.maximum(v["x"] @ w.T, 0)], [{"x": (m, k)} for m in ((rows,) if rows else (1, 7, 0))], {"q": q, "s": scale, "shape": np.array([n, k], np.int64)})
    # Dequantised weights that only floats multiply: along either dim, uniform parameters, differences in f32, scales of the results; bytes
    # whose row has no block of 16, small ones and those of convolutions become floats when the model is compiled.
    def dequantised(name, rows, k, n, kind, axis, scale, zero, form="node", of_results=False):
        q = np.random.default_rng(5).integers(*((0, 256) if kind == np.uint8 else (-128, 128)), (k, n) if axis == 1 else (n, k)).astype(kind)
        table = {"uniform": np.float32(0.02), "rows": np.abs(random((n,), 6)) * np.float32(0.02)}[scale]
        points = {None: None, "uniform": np.array(131 if kind == np.uint8 else 3, kind), "rows": np.random.default_rng(7).integers(90, 120, n).astype(kind)}[zero]
        if points is not None and points.ndim != np.ndim(table):
            points = np.full(np.shape(table), points, kind)
        along = (slice(None),) if axis == 1 else (slice(None), None)
        spread = lambda v: v if np.ndim(v) == 0 else v[along]
        weights = (q.astype(np.float64) - (0 if points is None else spread(points).astype(np.float64))) * (1 if of_results else spread(table).astype(np.float64))
        constants = {"q": q, "s": table if form == "node" or of_results else spread(table)}
        if points is not None:
            constants["z"] = points if form == "node" else spread(points).astype(np.float32)
        if form == "node":
            nodes = [helper.make_node("DequantizeLinear", ["q", "s"] + (["z"] if points is not None else []), ["w"], axis=axis)]
        else:
            nodes = [helper.make_node("Cast", ["q"], ["c"], to=TensorProto.FLOAT)]
            nodes += [helper.make_node("Sub", ["c", "z"], ["d"])] if points is not None else []
            last = nodes[-1].output[0]
            nodes += [] if of_results else [helper.make_node("Mul", ["s", last], ["w"])]
            if of_results:
                nodes[-1].output[0] = "w"
        nodes += [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0])] if axis == 0 else []
        nodes += [helper.make_node("MatMul", ["x", "t" if axis == 0 else "w"], ["p" if of_results else "y"])]
        nodes += [helper.make_node("Mul", ["p", "s"], ["y"])] if of_results else []
        case(f"dequantised_{name}", nodes, {"x": [rows or "M", k]}, {"y": [rows or "M", n]},
             lambda v, w=weights if axis == 1 else weights.T, f=table.astype(np.float64) if of_results else 1.0: [v["x"] @ w * f], [{"x": (m, k)} for m in ((rows,) if rows else (1, 9, 30, 0))], constants)
    dequantised("columns", 3, 256, 77, np.int8, 1, "rows", None)
    dequantised("rows", 20, 160, 130, np.int8, 0, "rows", None)
    dequantised("uniform", 1, 256, 80, np.int8, 1, "uniform", None)
    dequantised("uniform_zero", None, 256, 80, np.uint8, 1, "uniform", "uniform")
    dequantised("zeros", None, 256, 90, np.uint8, 0, "rows", "rows")
    dequantised("signed_zeros", 2, 512, 64, np.int8, 1, "rows", "uniform")
    dequantised("floats", 5, 256, 100, np.uint8, 1, "rows", "rows", form="floats")
    dequantised("floats_rows", 40, 256, 100, np.uint8, 0, "rows", "uniform", form="floats")
    dequantised("results", 2, 256, 100, np.int8, 0, "rows", None, form="floats", of_results=True)
    dequantised("odd_depth", 4, 250, 90, np.int8, 1, "rows", "rows")
    dequantised("small", 4, 32, 20, np.int8, 1, "rows", None)
    q, scale, points = np.random.default_rng(8).integers(0, 256, (40, 24, 3, 3)).astype(np.uint8), np.abs(random((40,), 9)) * np.float32(0.02), np.random.default_rng(9).integers(100, 150, 40).astype(np.uint8)
    filters = (q.astype(np.float64) - points[:, None, None, None]) * scale[:, None, None, None]
    case("dequantised_conv", [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0), helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": [2, 24, 13, 15]}, {"y": [2, 40, 13, 15]},
         lambda v, w=filters: ReferenceEvaluator(helper.make_model(helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], "g", [info("x", None, np.float64), info("w", None, np.float64)], [info("y", None, np.float64)]), opset_imports=[helper.make_opsetid("", 17)])).run(None, {"x": v["x"], "w": w}),
         [{"x": (2, 24, 13, 15)}], {"q": q, "s": scale, "z": points})
    # Few channels to many between images that lie channels first: lines are stored as they are.
    for name, x, w, stride, pad in (("signal", (4, 1, 300), (33, 1, 25), [1], [12]), ("signal_stride", (2, 2, 301), (20, 2, 9), [3], [4]), ("image", (2, 3, 21, 67), (64, 3, 3, 3), [1, 1], [1, 1]), ("stride", (1, 1, 30, 150), (24, 1, 3, 5), [2, 2], [1, 2]),
                                    ("video", (1, 2, 5, 9, 70), (17, 2, 3, 3, 3), [1, 1, 1], [1, 1, 1]), ("four", (1, 4, 8, 80), (9, 4, 2, 3), [1, 1], [0, 0])):
        out = [x[0], w[0], *[(s + 2 * p - k) // t + 1 for s, p, k, t in zip(x[2:], pad, w[2:], stride)]]
        case(f"lines_first_{name}", [helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=stride, pads=pad * 2), helper.make_node("Add", ["c", "r"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
             {"x": ["N", *x[1:]], "r": ["N", *out[1:]]}, {"y": ["N", *out[1:]]}, lambda v, w=random(w, 4), b=random(w[:1], 5), s=stride, p=pad: [np.maximum(convolve_any(v["x"], w, s, [1] * len(p), p, p, 1) + b.reshape(-1, *[1] * len(p)) + v["r"], 0)],
             [{"x": (n, *x[1:]), "r": (n, *out[1:])} for n in (x[0], 1, 0)], {"w": random(w, 4), "b": random(w[:1], 5)}, tolerance=4e-6)
    # Products of which a slice reads a part, of padded lines, with dims of 1 behind, and of rows of few channels.
    for name, start, stop, axis in (("last_row", -1, 1 << 40, 1), ("rows", 3, 20, 1), ("columns", 10, 60, 2), ("most", 0, 75, 2)):
        case(f"trimmed_{name}", [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["a"]), helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Slice", ["r", "i", "j", "k"], ["y"])],
             {"x": ["N", 40, 33], "b": [80]}, {"y": None}, lambda v, s=start, e=stop, k=axis, w=random((33, 80), 2): [np.maximum(v["x"] @ w + v["b"], 0)[(slice(None),) * k + (slice(s, e),)]], [{"x": (n, 40, 33), "b": (80,)} for n in (1, 3, 0)],
             {"w": random((33, 80), 2), "i": np.array([start], np.int64), "j": np.array([stop], np.int64), "k": np.array([axis], np.int64)})
    for low, high in ((0, 70), (70, 0), (13, 40)):
        case(f"trimmed_pad_{low}_{high}", [helper.make_node("Pad", ["x", "p"], ["q"]), helper.make_node("Unsqueeze", ["q", "two"], ["u"]), helper.make_node("Transpose", ["u"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["t", "w"], ["y"])],
             {"x": [24, 50]}, {"y": [24, 1, 65]}, lambda v, l=low, h=high, w=random((50 + low + high, 65), 2): [(np.pad(v["x"], ((0, 0), (l, h))) @ w)[:, None]], [{"x": (24, 50)}],
             {"w": random((50 + low + high, 65), 2), "p": np.array([0, low, 0, high], np.int64), "two": np.array([2], np.int64)})
    for c in (1, 2, 3, 5, 7, 8):
        case(f"rows_of_{c}_channels", [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["t", "w"], ["y"])], {"x": [2, "H", 50, c]}, {"y": [2, "H", c, 40]},
             lambda v, w=random((50, 40), 2): [v["x"].transpose(0, 1, 3, 2) @ w], [{"x": (2, h, 50, c)} for h in (1, 37, 0)], {"w": random((50, 40), 2)})
    # Sums of few steps, whose results are many.
    for name, a, w in (("few_steps", (600, 3), (3, 530)), ("few_steps_batch", (2, 301, 7), (2, 7, 512)), ("one_step", (700, 1), (1, 401))):
        case(f"matmul_{name}", [helper.make_node("MatMul", ["a", "w"], ["y"])], {"a": list(a), "w": list(w)}, {"y": [*a[:-1], w[-1]]}, lambda v: [v["a"] @ v["w"]], [{"a": a, "w": w}])
    # A depth that the data decide: the scratch of the panels and of A's copy is made when it is known.
    case("matmul_depth_of_data",
         [helper.make_node("NonZero", ["c"], ["nz"]), helper.make_node("Squeeze", ["nz", "zero"], ["i"]), helper.make_node("Gather", ["a", "i"], ["g"]),
          helper.make_node("Transpose", ["g"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["t", "g"], ["y"])],
         {"c": ["K"], "a": ["K", 20]}, {"y": [20, 20]}, lambda v: [v["a"][v["c"] != 0].T @ v["a"][v["c"] != 0]],
         [{"c": np.where(np.arange(k) % 3, np.float32(1), np.float32(0)), "a": random((k, 20), k)} for k in (1, 2, 40, 3000)], {"zero": np.array([0], np.int64)})
    # Constant weights, dynamic rows; K of multiples of 512 stays in place.
    for k, n in ((96, 200), (512, 33), (1024, 64), (1, 17), (5, 1)):
        w = random((k, n), 1)
        case(f"linear_{k}x{n}", [helper.make_node("MatMul", ["a", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"])],
             {"a": ["M", k]}, {"y": ["M", n]}, lambda v, w=w: [np.maximum(v["a"] @ w.astype(np.float64), 0)],
             [{"a": (m, k)} for m in (0, 1, 2, 7, 8, 13, 15, 100, 225)], {"w": w})
    # One column, its dim dropped before more is computed.
    last = np.array([-1], np.int64)
    case("matvec_squeezed", [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Squeeze", ["p", "last"], ["s"]),
                             helper.make_node("Sub", ["c", "s"], ["y"])],
         {"a": ["B", "M", "K"], "b": ["B", "K", 1], "c": ["B", "M"]}, {"y": ["B", "M"]},
         lambda v: [v["c"] - (v["a"] @ v["b"])[..., 0]],
         [{"a": (2, m, k), "b": (2, k, 1), "c": (2, m)} for m, k in ((8, 8), (1, 5), (33, 17))], {"last": last})
    filters = random((1, 5, 3, 3), 3)
    case("conv_to_one_channel_squeezed",
         [helper.make_node("Conv", ["x", "w"], ["p"], pads=[1] * 4), helper.make_node("Squeeze", ["p", "one"], ["s"]),
          helper.make_node("Sub", ["c", "s"], ["y"])],
         {"x": [2, 5, 9, 7], "c": [2, 9, 7]}, {"y": [2, 9, 7]},
         lambda v: [v["c"] - convolve(v["x"], filters.astype(np.float64), 1, 1, 1)[:, 0]],
         [{"x": (2, 5, 9, 7), "c": (2, 9, 7)}], {"w": filters, "one": np.array([1], np.int64)})
    # A product of vectors has no dims, and neither has what follows it.
    for name, dims in (("vectors", ([5], [5])), ("one_by_one", ([1, 5], [5, 1]))):
        case(f"product_of_{name}_leaky", [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("LeakyRelu", ["c"], ["y"], alpha=0.1)],
             {"a": dims[0], "b": dims[1]}, {"y": [1, 1] if len(dims[0]) == 2 else []},
             lambda v: [np.where(v["a"] @ v["b"] < 0, 0.1 * (v["a"] @ v["b"]), v["a"] @ v["b"])], [{"a": tuple(dims[0]), "b": tuple(dims[1])}])
    # Matrices of whole panels that only the run knows are read where they lie; others are packed by the tasks.
    for b, m, k, n in ((5, 64, 64, 64), (3, 65, 31, 48), (2, 128, 17, 112), (2, 100, 200, 256), (4, 33, 1, 16), (3, 64, 64, 72), (2, 129, 24, 32), (1, 20, 0, 16)):
        case(f"in_place_{b}x{m}x{k}x{n}", [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Abs", ["c"], ["y"])],
             {"a": [b, m, k], "b": [b, k, n]}, {"y": [b, m, n]}, lambda v: [np.abs(v["a"] @ v["b"])], [{"a": (b, m, k), "b": (b, k, n)}])
    case("in_place_shared", [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": ["B", 40, 24], "b": [24, 48]}, {"y": ["B", 40, 48]},
         lambda v: [v["a"] @ v["b"]], [{"a": (2, 40, 24), "b": (24, 48)}])
    case("in_place_sliced", [helper.make_node("Slice", ["b", "from", "to", "axis"], ["s"]), helper.make_node("MatMul", ["a", "s"], ["y"])],
         {"a": [3, 40, 24], "b": [3, 24, 64]}, {"y": [3, 40, 32]}, lambda v: [v["a"] @ v["b"][:, :, 16:48]], [{"a": (3, 40, 24), "b": (3, 24, 64)}],
         {"from": np.array([16], np.int64), "to": np.array([48], np.int64), "axis": np.array([2], np.int64)})
    # The only row of a softmax is kept for the norm behind it.
    norm = lambda s: s / np.sqrt((s * s).sum(-1, keepdims=True))  # noqa: E731
    for dims in (["N"], [40], [1, 40]):
        case(f"softmax_lp_normalization_{'x'.join(map(str, dims))}",
             [helper.make_node("Softmax", ["a"], ["s"], axis=-1), helper.make_node("LpNormalization", ["s"], ["y"], axis=-1, p=2)],
             {"a": dims}, {"y": dims},
             lambda v: [norm(np.exp(v["a"] - v["a"].max()) / np.exp(v["a"] - v["a"].max()).sum())], [{"a": (1,) * (len(dims) - 1) + (40,)}])
    # Products of one element: all positions in them are constants.
    case("product_of_ones_quantized", [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("QuantizeLinear", ["p", "s", "z"], ["q"]),
                                       helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])],
         {"a": [1], "b": [1, 1]}, {"y": [1]}, lambda v: [np.clip(np.rint(v["a"] @ v["b"] * 2), -128, 127) / 2],
         [{"a": (1,), "b": (1, 1)}], {"s": np.float32(0.5), "z": np.int8(0)})
    # Values that several passes over a row need are kept; those needed at other rows are not.
    def softmax(x, axis=-1):
        e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
        return e / e.sum(axis, keepdims=True)
    rows = [{"x": s} for s in ((3, 5), (1, 1), (4, 16), (2, 1000), (7, 33), (0, 3))]
    case("softmax", [helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {"x": ["R", "C"]}, {"y": ["R", "C"]},
         lambda v: [softmax(v["x"])], rows)
    case("softmax_max", [helper.make_node("Softmax", ["x"], ["s"], axis=-1),
                         helper.make_node("ReduceMax", ["s"], ["y"], keepdims=0, axes=[-1])],
         {"x": ["R", "C"]}, {"y": ["R"]}, lambda v: [softmax(v["x"]).max(-1)], rows)
    case("entropy", [helper.make_node("Softmax", ["x"], ["s"], axis=-1), helper.make_node("Log", ["s"], ["l"]),
                     helper.make_node("Mul", ["s", "l"], ["m"]),
                     helper.make_node("ReduceMean", ["m"], ["y"], keepdims=1, axes=[-1])],
         {"x": ["R", "C"]}, {"y": ["R", 1]},
         lambda v: [(softmax(v["x"]) * np.log(softmax(v["x"]))).mean(-1, keepdims=True)], rows[:5])
    case("sums_of_other_rows", [helper.make_node("Exp", ["x"], ["e"]),
                                helper.make_node("ReduceSum", ["e", "axis"], ["s"], keepdims=0),
                                helper.make_node("Div", ["e", "s"], ["y"])],
         {"x": [9, 9]}, {"y": [9, 9]}, lambda v: [np.exp(v["x"]) / np.exp(v["x"]).sum(-1)], [{"x": (9, 9)}],
         {"axis": np.array([-1], np.int64)})
    # A vector and a matrix that is given: one row or one column of a product, batches, rows contiguous or columns.
    for name, a, b, out, equation in (("row", ["B", 1, "K"], ["B", "K", "N"], ["B", 1, "N"], "bik,bkn->bin"), ("row_turned", ["B", 1, "K"], ["B", "N", "K"], ["B", 1, "N"], "bik,bnk->bin"),
                                      ("column", ["B", "N", "K"], ["B", "K", 1], ["B", "N", 1], "bnk,bki->bni"), ("column_turned", ["B", "K", "N"], ["B", "K", 1], ["B", "N", 1], "bkn,bki->bni"),
                                      ("alone", ["B", 1, "K"], ["B", "K", 1], ["B", 1, 1], "bik,bkj->bij")):
        sizes = [{"B": 2, "K": 33, "N": 70}, {"B": 1, "K": 600, "N": 1100}, {"B": 3, "K": 8, "N": 5}, {"B": 1, "K": 1, "N": 1}, {"B": 0, "K": 3, "N": 2}, {"B": 2, "K": 0, "N": 3}]
        shapes = [{"a": tuple(size.get(d, d) for d in a), "b": tuple(size.get(d, d) for d in b)} for size in sizes]
        case(f"vector_{name}", [helper.make_node("Einsum", ["a", "b"], ["p"], equation=equation), helper.make_node("Sigmoid", ["p"], ["y"])], {"a": a, "b": b}, {"y": out},
             lambda v, e=equation: [1 / (1 + np.exp(-np.einsum(e, v["a"], v["b"])))], shapes, tolerance=4e-6)
    # Few rows and a matrix that is given: its rows contiguous or its columns, rows copied or not, batches, sizes known or not.
    for rows in (2, 3, 8, 9, 16):
        for turned in (False, True):
            matrix = ["B", "N", "K"] if turned else ["B", "K", "N"]
            for n, k in ((5, 130), (16, 64), (100, 200), (1030, 129), (70, 1100), (33, 7)):
                def of(dims, n=n, k=k, b=2):
                    return [{"B": b, "N": n, "K": k}.get(d, d) for d in dims]
                if rows not in (3, 9) and n > 100:
                    continue
                case(f"thin_{rows}_{n}_{k}{'_turned' if turned else ''}", [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Einsum", ["r", "b"], ["p"], equation="bmk,bnk->bmn" if turned else "bmk,bkn->bmn"),
                                                                            helper.make_node("Add", ["p", "c"], ["y"])],
                     {"a": of(["B", rows, "K"]), "b": of(matrix), "c": of(["N"])}, {"y": of(["B", rows, "N"])},
                     lambda v, t=turned: [np.maximum(v["a"], 0) @ (np.swapaxes(v["b"], 1, 2) if t else v["b"]) + v["c"]], [{"a": tuple(of(["B", rows, "K"])), "b": tuple(of(matrix)), "c": (n,)}])
    # Batches in any place, several dims of rows, columns or steps.
    for name, a, b, equation in (("batch_in_rows", (3, 2, 90), (2, 90, 40), "mbk,bkn->bmn"), ("batch_in_columns", (2, 3, 130), (40, 2, 130), "bmk,nbk->bmn"), ("batch_in_steps", (2, 5, 70), (70, 2, 33), "bmk,kbn->bmn"),
                                 ("two_steps", (2, 3, 9, 20), (9, 20, 2, 21), "bmkl,klbn->bmn"), ("two_columns", (4, 100), (6, 7, 100), "mk,nok->mno"), ("steps_apart", (4, 8, 20), (8, 5, 20, 19), "mkl,kblo->mbo")):
        out = list(np.einsum(equation, np.zeros(a), np.zeros(b)).shape)
        case(f"thin_{name}", [helper.make_node("Einsum", ["a", "b"], ["p"], equation=equation), helper.make_node("Abs", ["p"], ["y"])], {"a": list(a), "b": list(b)}, {"y": out},
             lambda v, e=equation: [np.abs(np.einsum(e, v["a"], v["b"]))], [{"a": a, "b": b}])
    case("thin_dynamic", [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Transpose", ["b"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["p", "t"], ["y"])],
         {"a": [4, "K"], "b": ["K", 48]}, {"p": [4, 48], "y": [4, "K"]}, lambda v: [v["a"] @ v["b"], v["a"] @ v["b"] @ v["b"].T],
         [{"a": (4, k), "b": (k, 48)} for k in (1, 17, 64, 300, 1500)])
    # What reads every second or third pixel: 1x1 convolutions with strides of a sum with a shortcut, slices with steps behind another.
    window, point = random((24, 24, 3, 3), 5) / 10, random((10, 24, 1, 1), 6) / 10
    for height, width, stride in ((13, 10, 2), (9, 9, 3), (1, 2, 2)):
        case(f"subsampled_{height}_{width}_{stride}", [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Add", ["c", "x"], ["s"]), helper.make_node("Relu", ["s"], ["r"]),
                                                       helper.make_node("Conv", ["r", "v"], ["y"], strides=[stride, stride]), helper.make_node("Conv", ["r", "v2"], ["z"], strides=[stride, stride])],
             {"x": [2, 24, height, width]}, {"y": [2, 10, "H", "W"], "z": [2, 10, "H", "W"]},
             lambda v, t=stride, window=window, point=point: [convolve(np.maximum(convolve(v["x"], window, 1, 1, 1) + v["x"], 0), w, t, 0, 1) for w in (point, 2 * point)], [{"x": (2, 24, height, width)}],
             {"w": window, "v": point, "v2": 2 * point}, tolerance=4e-6)
        case(f"subsampled_slice_{height}_{width}_{stride}", [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1]), helper.make_node("Conv", ["c", "v"], ["d"]), helper.make_node("Sigmoid", ["d"], ["r"]),
                                                             helper.make_node("Slice", ["r", "starts", "ends", "axes", "steps"], ["y"])],
             {"x": ["N", 24, height, width]}, {"y": ["N", 10, "H", "W"]},
             lambda v, t=stride, window=window, point=point: [1 / (1 + np.exp(-convolve(convolve_any(v["x"], window, (2, 1), (1, 1), (1, 1), (1, 1), 1), point, 1, 0, 1)[:, :, ::t, ::t]))], [{"x": (n, 24, height, width)} for n in (1, 3)],
             {"w": window, "v": point, "starts": np.array([0, 0]), "ends": np.array([1 << 40, 1 << 40]), "axes": np.array([2, 3]), "steps": np.array([stride, stride])}, tolerance=4e-6)
    # Several operands, multiplied in the order that costs least: trees and rings of them, labels that one operand alone
    # has, diagonals, broadcasting, more operands than all orders are tried for, matrices that are given, dims unknown.
    chain = ",".join(chr(ord("a") + i) + chr(ord("b") + i) for i in range(12))
    for name, equation, operands, given, declared in (
            ("modes", "ai,bj,ck,ijk->abc", [(11, 9), (7, 10), (5, 8), (9, 10, 8)], 3, None), ("khatri_rao", "ijk,jr,kr->ir", [(9, 10, 11), (10, 4), (11, 4)], 0, None),
            ("ring", "ab,bc,cd,da->", [(5, 6), (6, 7), (7, 8), (8, 5)], 0, None), ("scaled", "i,ij,j->ij", [(6,), (6, 5), (5,)], 0, None), ("outer", "i,j,k,l->lkji", [(2,), (3,), (4,), (5,)], 0, None),
            ("alone", "ab,cd,bx->ac", [(3, 4), (5, 6), (4, 7)], 0, None), ("diagonal", "aab,bc,cc->ac", [(4, 4, 5), (5, 6), (6, 6)], 0, None),
            ("broadcast", "...ab,...bc,...cd->...ad", [(2, 1, 3, 4), (5, 4, 6), (6, 7)], 0, None), ("implicit", "ij,jk,kl", [(3, 4), (4, 5), (5, 6)], 0, None), ("empty", "ab,bc,cd->ad", [(3, 0), (0, 5), (5, 2)], 0, None),
            ("many", chain + "->am", [(2 + i % 3, 2 + (i + 1) % 3) for i in range(12)], 0, None), ("dynamic", "ab,bc,cd->ad", [(3, 40), (40, 5), (5, 20)], 0, [["A", "B"], ["B", 5], [5, "D"]])):
        names = [f"x{i}" for i in range(len(operands))]
        out = list(np.einsum(equation, *[np.zeros(shape) for shape in operands]).shape)
        constants = {name: np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i, (name, shape) in enumerate(zip(names[:given], operands))}
        case(f"einsum_{name}", [helper.make_node("Einsum", names, ["p"], equation=equation), helper.make_node("Neg", ["p"], ["y"])],
             {n: list(shape) for n, shape in zip(names[given:], (declared or operands)[given:])}, {"y": ["A", "D"] if declared else out},
             lambda v, e=equation, n=names, c=constants: [-np.einsum(e, *[{**v, **c}[x].astype(np.float64) for x in n], optimize=True)],
             [dict(zip(names[given:], operands[given:]))], constants, tolerance=4e-6)
    # Products for each channel, whose elements lie side by side in both operands; few rows, few columns, other batches.
    for name, a, b, equation in (("few_columns", (30, 25, 40), (3, 25, 40), "tsd,bsd->btd"), ("few_rows", (2, 25, 17), (30, 25, 17), "bsd,tsd->dbt"), ("batch", (4, 2, 9, 33), (5, 2, 9, 33), "mbkd,nbkd->bmnd"),
                                 ("two_steps", (6, 5, 9, 20), (7, 9, 5, 20), "mkld,nlkd->dmn"), ("no_rows", (11, 16), (11, 16), "kd,kd->d"), ("small", (8, 1, 130), (1, 1, 130), "mkd,nkd->dmn"),
                                 ("empty", (4, 0, 16), (3, 0, 16), "mkd,nkd->mnd"), ("many", (40, 12, 24), (50, 12, 24), "mkd,nkd->mnd")):
        out = list(np.einsum(equation, np.zeros(a), np.zeros(b)).shape)
        case(f"channels_{name}", [helper.make_node("Einsum", ["a", "b"], ["p"], equation=equation), helper.make_node("Sigmoid", ["p"], ["y"])], {"a": list(a), "b": list(b)}, {"y": out},
             lambda v, e=equation: [1 / (1 + np.exp(-np.einsum(e, v["a"], v["b"])))], [{"a": a, "b": b}], tolerance=4e-6)
    case("channels_dynamic", [helper.make_node("Einsum", ["a", "b"], ["y"], equation="tsd,bsd->btd")], {"a": ["T", "S", "D"], "b": [2, "S", "D"]}, {"y": [2, "T", "D"]},
         lambda v: [np.einsum("tsd,bsd->btd", v["a"], v["b"])], [{"a": (t, k, d), "b": (2, k, d)} for t, k, d in ((7, 5, 19), (1, 1, 1), (3, 300, 8), (0, 4, 16), (4, 0, 16))])
    # Rows that lie along the last dim of memory, but in another order than in the result.
    for name, a, b, equation in (("constant", (5, 31, 100), (31, 24), "tkb,kn->btn"), ("three", (3, 17, 4, 50), (17, 20), "tkub,kn->btun"), ("batch", (2, 3, 9, 40), (2, 9, 33), "gtkb,gkn->gbtn")):
        out = list(np.einsum(equation, np.zeros(a), np.zeros(b)).shape)
        shapes = [{"a": a}] if name == "constant" else [{"a": a, "b": b}]
        constants = {"b": random(b, 5)} if name == "constant" else {}
        case(f"row_order_{name}", [helper.make_node("Exp", ["a"], ["r"]), helper.make_node("Einsum", ["r", "b"], ["p"], equation=equation), helper.make_node("Relu", ["p"], ["y"])],
             {"a": list(a)} if name == "constant" else {"a": list(a), "b": list(b)}, {"y": out},
             lambda v, e=equation, b=random(b, 5): [np.maximum(np.einsum(e, np.exp(v["a"]), v.get("b", b)), 0)], shapes, constants)
    # Each value of a chain is read at two places: a running maximum by doubling distances.
    steps, value = [], "x"
    for i in range(9):
        steps += [helper.make_node("Slice", [value, "zero", f"stop{i}", "one"], [f"s{i}"]), helper.make_node("Pad", [f"s{i}", f"pads{i}", "low"], [f"p{i}"]), helper.make_node("Max", [value, f"p{i}"], [f"m{i}"])]
        value = f"m{i}"
    case("doubling_max", steps + [helper.make_node("Identity", [value], ["y"])], {"x": ["B", 400]}, {"y": ["B", 400]}, lambda v: [np.maximum.accumulate(v["x"], 1)], [{"x": (b, 400)} for b in (3, 1, 0)],
         {"zero": np.array([0], np.int64), "one": np.array([1], np.int64), "low": np.float32(-1e30), **{f"stop{i}": np.array([-(1 << i)], np.int64) for i in range(9)},
          **{f"pads{i}": np.array([0, 1 << i, 0, 0], np.int64) for i in range(9)}})
    # An epilogue with many constants and columns that fill no vectors.
    case("tanh_odd_columns", [helper.make_node("MatMul", ["a", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["t"]), helper.make_node("Erf", ["p"], ["e"]), helper.make_node("Mul", ["t", "e"], ["y"])], {"a": [70, 40]}, {"y": [70, 133]},
         lambda v, w=random((40, 133), 3): [np.tanh(v["a"] @ w) * np.vectorize(math.erf)(v["a"] @ w)], [{"a": (70, 40)}], {"w": random((40, 133), 3)})
    # 1x1 convolutions of images that are channels first on both sides, alone and with what follows; several images; unknown sizes.
    for name, sizes, outputs, declared in (("alone", (1, 20, 17, 19), 33, None), ("images", (3, 24, 16, 18), 20, None), ("odd_images", (3, 24, 17, 19), 20, None), ("line", (2, 9, 320), 16, None), ("volume", (1, 12, 7, 8, 9), 8, None),
                                           ("few_pixels", (1, 40, 8, 8), 24, None), ("dynamic", (1, 20, 18, 17), 24, [1, 20, "H", "W"]), ("batch", (2, 20, 18, 17), 24, ["N", 20, "H", "W"])):
        w, bias = random((outputs, sizes[1], *[1] * (len(sizes) - 2)), 7), random((outputs,), 8)
        def pointwise(v, w=w, bias=bias):
            y = np.einsum("nc...,oc->no...", v["x"], w.reshape(w.shape[:2])) + bias.reshape(-1, *[1] * (w.ndim - 2))
            return [np.maximum(y, 0) + v["r"]]
        dims = declared or list(sizes)
        residual = [dims[0], outputs, *dims[2:]]
        shapes = [{"x": sizes, "r": (sizes[0], outputs, *sizes[2:])}] + ([{"x": (1, 20, 1, 1), "r": (1, outputs, 1, 1)}] if declared else []) + ([{"x": (0, 20, 2, 3), "r": (0, outputs, 2, 3)}] if name == "batch" else [])
        case(f"pointwise_conv_{name}", [helper.make_node("Conv", ["x", "w", "b"], ["c"]), helper.make_node("Relu", ["c"], ["a"]), helper.make_node("Add", ["a", "r"], ["y"])],
             {"x": dims, "r": residual}, {"y": residual}, pointwise, shapes, {"w": w, "b": bias})
    # The same of groups and of few outputs, with filters that are constant or only the run knows; others of groups of few outputs.
    for name, sizes, outputs, groups, kernel in (("few", (1, 20, 17, 19), 3, 1, 1), ("few_images", (3, 24, 17, 19), 1, 1, 1), ("two_groups", (1, 40, 17, 19), 6, 2, 1), ("images_of_groups", (3, 40, 17, 19), 10, 2, 1),
                                                 ("many_of_groups", (3, 80, 16, 18), 66, 2, 1), ("short_groups", (1, 12, 17, 19), 4, 2, 1), ("line_of_groups", (2, 36, 300), 9, 3, 1), ("window_of_groups", (2, 24, 17, 19), 6, 3, 3),
                                                 ("window_of_few", (2, 3, 17, 19), 20, 1, 3), ("line_of_few", (3, 4, 300), 24, 1, 5)):
        x, w = random(sizes, 5), random((outputs, sizes[1] // groups, *[kernel] * (len(sizes) - 2)), 7)
        def grouped(v, w=w, groups=groups, kernel=kernel):
            w = v.get("w", w)
            x = np.pad(v["x"], [(0, 0), (0, 0)] + [(kernel // 2,) * 2] * (w.ndim - 2))
            windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], tuple(range(2, w.ndim))).reshape(x.shape[0], groups, -1, *v["x"].shape[2:], kernel ** (w.ndim - 2))
            return [np.tanh(np.einsum("ngc...k,gock->ngo...", windows, w.reshape(groups, -1, w.shape[1], kernel ** (w.ndim - 2))).reshape(x.shape[0], -1, *v["x"].shape[2:]))]
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], group=groups, pads=[kernel // 2] * 2 * (len(sizes) - 2)), helper.make_node("Tanh", ["c"], ["y"])]
        out = [sizes[0], outputs, *sizes[2:]]
        case(f"grouped_conv_{name}", nodes, {"x": list(sizes)}, {"y": out}, grouped, [{"x": sizes}], {"w": w}, tolerance=4e-6)
        case(f"grouped_conv_{name}_given", nodes, {"x": list(sizes), "w": list(w.shape)}, {"y": out}, grouped, [{"x": sizes, "w": w.shape}], tolerance=4e-6)
    # Linear layers along a dim that is not the last in memory, results turned back; two of them, other batches, few rows, unknown sizes.
    for name, x, w, equation, dims in (("tokens", (3, 20, 50), (20, 30), "btc,tu->buc", None), ("rows", (2, 18, 5, 17), (18, 7), "bhwc,hk->bkwc", None), ("middle", (2, 5, 18, 21), (18, 19), "bhwc,wk->bhkc", None),
                                       ("single", (1, 40, 35), (40, 24), "btc,tu->buc", None), ("front", (40, 9, 16), (40, 24), "tbc,tu->ubc", None), ("turned", (3, 20, 50), (30, 20), "btc,ut->buc", None),
                                       ("dynamic", (3, 20, 50), (20, 30), "btc,tu->buc", ["B", 20, "C"]), ("narrow", (3, 20, 5), (20, 30), "btc,tu->buc", None)):
        weights = random(w, 9)
        out = [{"B": "B", "C": "C"}.get(d, d) if isinstance(d, str) else d for d in (["B", 30, "C"] if dims else list(np.einsum(equation, np.zeros(x), weights).shape))]
        case(f"outer_{name}", [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Einsum", ["r", "w"], ["p"], equation=equation), helper.make_node("Tanh", ["p"], ["y"])], {"x": dims or list(x)}, {"y": out},
             lambda v, e=equation, w=weights: [np.tanh(np.einsum(e, np.maximum(v["x"], 0), w))], [{"x": x}] + ([{"x": (1, 20, 1)}, {"x": (0, 20, 7)}, {"x": (2, 20, 0)}] if dims else []), {"w": weights}, tolerance=4e-6)
    case("outer_two", [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["t", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["q"]), helper.make_node("Sigmoid", ["q"], ["s"]),
                       helper.make_node("MatMul", ["s", "v"], ["u"]), helper.make_node("Transpose", ["u"], ["z"], perm=[0, 2, 1]), helper.make_node("Add", ["z", "x"], ["y"])], {"x": [2, 21, 40]}, {"y": [2, 21, 40]},
         lambda v, w=random((21, 33), 1), b=random((33,), 2), u=random((33, 21), 3): [v["x"] + ((1 / (1 + np.exp(-(v["x"].transpose(0, 2, 1) @ w + b)))) @ u).transpose(0, 2, 1)], [{"x": (2, 21, 40)}],
         {"w": random((21, 33), 1), "b": random((33,), 2), "v": random((33, 21), 3)})
    # Depthwise convolutions with several results for each channel, in numbers that divide no vector.
    for channels, each, kernel, strides in ((7, 3, (3, 3), (1, 1)), (29, 3, (5, 5), (1, 1)), (10, 5, (3, 5), (2, 1)), (9, 2, (3, 3), (1, 2)), (5, 3, (3, 3), (1, 1)), (4, 12, (1, 3), (1, 1))):
        w = random((channels * each, 1, *kernel), 4)
        def depthwise(v, w=w, each=each, strides=strides):
            x = np.repeat(np.pad(v["x"], ((0, 0), (0, 0), *((k // 2, k // 2) for k in w.shape[2:]))), each, 1)
            windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::strides[0], ::strides[1]]
            return [np.einsum("nchwij,cij->nchw", windows, w[:, 0])]
        case(f"multiplier_{channels}_{each}", [helper.make_node("Conv", ["x", "w"], ["y"], group=channels, strides=list(strides), pads=[k // 2 for k in kernel] * 2)],
             {"x": ["N", channels, 19, 23]}, {"y": None}, depthwise, [{"x": (n, channels, 19, 23)} for n in (1, 2)], {"w": w}, tolerance=4e-6)
    # A dense block of few channels behind the caller's image: concats of concats, whose parts fill no vectors.
    dense, value, width, weights = [], "x", 11, {}
    for i in range(7):
        weights[f"w{i}"] = random((5, width, 3, 3), 20 + i) / np.float32(np.sqrt(9 * width))
        dense += [helper.make_node("Relu", [value], [f"a{i}"]), helper.make_node("Conv", [f"a{i}", f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]), helper.make_node("Concat", [f"c{i}", value], [f"d{i}"], axis=1)]
        value, width = f"d{i}", width + 5
    def dense_block(v, weights=weights):
        x = v["x"]
        for w in weights.values():
            windows = np.lib.stride_tricks.sliding_window_view(np.pad(np.maximum(x, 0), ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
            x = np.concatenate([np.einsum("nchwij,ocij->nohw", windows, w), x], 1)
        return [np.tanh(x)]
    case("dense_block_narrow", dense + [helper.make_node("Tanh", [value], ["y"])], {"x": ["N", 11, 9, 13]}, {"y": ["N", width, 9, 13]}, dense_block, [{"x": (n, 11, 9, 13)} for n in (1, 2, 0)], weights, tolerance=4e-6)
    # Parts of a row that fill no vectors, in concats of concats: more of them than one vector holds.
    case("concat_of_concats", [helper.make_node("Concat", ["a", "b"], ["p"], axis=1), helper.make_node("Concat", ["c", "p"], ["q"], axis=1), helper.make_node("Concat", ["q", "d", "a"], ["r"], axis=1), helper.make_node("Exp", ["r"], ["y"])],
         {"a": ["N", 5], "b": ["N", 9], "c": ["N", 7], "d": ["N", 33]}, {"y": ["N", 59]}, lambda v: [np.exp(np.concatenate([v["c"], v["a"], v["b"], v["d"], v["a"]], 1))],
         [{"a": (n, 5), "b": (n, 9), "c": (n, 7), "d": (n, 33)} for n in (90, 1, 0)])
    # An image that is flattened channels first for a linear layer.
    case("flatten_linear", [helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]), helper.make_node("Flatten", ["r"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])],
         {"x": ["N", 3, 6, 5]}, {"y": ["N", 17]}, lambda v, k=random((11, 3, 3, 3), 1), w=random((330, 17), 2): [np.maximum(np.einsum("nchwij,ocij->nohw", np.lib.stride_tricks.sliding_window_view(
             np.pad(v["x"], ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)), k), 0).reshape(len(v["x"]), 330) @ w], [{"x": (n, 3, 6, 5)} for n in (4, 1, 0)], {"k": random((11, 3, 3, 3), 1), "w": random((330, 17), 2)}, tolerance=4e-6)
    # A maximum over rows of several dims, of which part is read in another shape.
    case("rows_apart", [helper.make_node("ReduceMax", ["x", "axes"], ["m"], keepdims=1), helper.make_node("Sub", ["x", "m"], ["d"]), helper.make_node("Exp", ["d"], ["e"]), helper.make_node("Mul", ["e", "s"], ["y"])],
         {"x": [2, 3, 70, 53], "s": [2, 3, 1, 53]}, {"y": [2, 3, 70, 53]}, lambda v: [np.exp(v["x"] - v["x"].max((2, 3), keepdims=True)) * v["s"]], [{"x": (2, 3, 70, 53), "s": (2, 3, 1, 53)}], {"axes": np.array([2, 3], np.int64)})
    # A filter of each image, of few channels.
    # Filters that only the run knows, turned and as they are: of one channel and many taps, odd columns, groups, 1-D and 3-D, strides, dilations, unknown sizes, a filter as
    # large as the image (its gradient), and those of one position in groups, of images that nothing turns.
    for name, x, w, strides, dilations, pad, groups in (
            ("one_channel", (2, 1, 972), (32, 1, 125), [3], [1], [0], 1), ("stem", (1, 3, 40, 44), (24, 3, 7, 7), [2, 2], [1, 1], [3, 3], 1), ("odd", (2, 19, 15, 17), (37, 19, 3, 3), [1, 1], [1, 1], [1, 1], 1),
            ("groups", (1, 48, 14, 14), (60, 12, 3, 3), [1, 1], [1, 1], [1, 1], 4), ("dilated", (1, 20, 21, 23), (20, 20, 3, 3), [1, 1], [3, 2], [3, 2], 1), ("video", (1, 6, 7, 9, 11), (17, 6, 3, 3, 3), [1, 2, 1], [1, 1, 1], [1, 0, 1], 1),
            ("gradient", (16, 8, 20, 20), (12, 8, 18, 18), [1, 1], [1, 1], [0, 0], 1), ("positions", (1, 36, 20, 21), (27, 12, 1, 1), [1, 1], [1, 1], [0, 0], 3), ("positions_batch", (3, 32, 20, 21), (8, 16, 1, 1), [1, 1], [1, 1], [0, 0], 2)):
        nodes = [helper.make_node("Tanh", ["w"], ["f"]), helper.make_node("Conv", ["x", "f"], ["c"], strides=strides, dilations=dilations, pads=pad * 2, group=groups), helper.make_node("Abs", ["c"], ["y"])]
        for kind in ("static", "dynamic"):
            declared = list(x) if kind == "static" else ["N", x[1], *["S" + str(i) for i in range(len(pad))]]
            out = [None] * 2 + [None] * len(pad) if kind == "dynamic" else [x[0], w[0], *[(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(x[2:], pad, dilations, w[2:], strides)]]
            case(f"computed_filter_{name}_{kind}", nodes, {"x": declared, "w": list(w)}, {"y": out},
                 lambda v, s=strides, d=dilations, p=pad, g=groups: [np.abs(convolve_any(v["x"], np.tanh(v["w"]), s, d, p, p, g))],
                 [{"x": x, "w": w}] + ([{"x": (1, x[1], *[n + 3 for n in x[2:]]), "w": w}] if kind == "dynamic" else []), tolerance=4e-6)
        last = nodes[1:2] + [helper.make_node("Softmax", ["c"], ["y"], axis=1)]
        last[0] = helper.make_node("Conv", ["x", "w"], ["c"], strides=strides, dilations=dilations, pads=pad * 2, group=groups)
        case(f"given_filter_{name}", last, {"x": list(x), "w": list(w)}, {"y": None}, lambda v, s=strides, d=dilations, p=pad, g=groups: [(lambda c: np.exp(c - c.max(1, keepdims=True)) / np.exp(c - c.max(1, keepdims=True)).sum(1, keepdims=True))(convolve_any(v["x"], v["w"] , s, d, p, p, g))],
             [{"x": x, "w": random(w, 3) * np.float32(0.1)}], tolerance=1e-5)
    case("given_filter_few_channels", [helper.make_node("Conv", ["x", "w"], ["y"], group=2, pads=[1, 1, 1, 1])], {"x": [1, 12, 20, 22], "w": [36, 6, 3, 3]}, {"y": [1, 36, 20, 22]},
         lambda v: [np.concatenate([np.einsum("nchwij,ocij->nohw", np.lib.stride_tricks.sliding_window_view(np.pad(v["x"][:, g * 6:g * 6 + 6], ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)), v["w"][g * 18:g * 18 + 18]) for g in (0, 1)], 1)],
         [{"x": (1, 12, 20, 22), "w": (36, 6, 3, 3)}], tolerance=4e-6)
    # Two dims that are summed over, of which the last fills no blocks: a right-hand side that is packed by turning it wrote beyond its last
    # panel, into the copied rows of the left-hand side.
    for name, a, b, equation in (("apart", (3, 22, 17), (3, 18, 17), "hkb,hnb->kn"), ("beside", (3, 22, 17), (18, 3, 17), "hkb,nhb->kn"), ("launch", (3, 150, 21), (3, 70, 21), "hkb,hnb->kn"), ("short", (14, 22, 5), (14, 33, 5), "hkb,hnb->kn")):
        case(f"two_depths_{name}", [helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)], {"a": list(a), "b": list(b)}, {"y": list(np.einsum(equation, np.zeros(a), np.zeros(b)).shape)},
             lambda v, e=equation: [np.einsum(e, v["a"], v["b"])], [{"a": a, "b": b}], tolerance=4e-6)
    # Depthwise filters of many taps along the line: causal, centred, strided, dilated, of images, of lines of unknown length.
    for name, channels, taps, pads, stride, dilation in (("causal", 40, 200, (199, 0), 1, 1), ("centred", 21, 65, (32, 32), 1, 1), ("ahead", 16, 100, (0, 99), 1, 1), ("strided", 9, 77, (40, 36), 2, 1), ("dilated", 18, 71, (140, 3), 1, 2), ("inside", 33, 66, (0, 0), 1, 1)):
        w = random((channels, 1, taps), 6) / np.float32(8)
        def long_filter(v, w=w, pads=pads, stride=stride, dilation=dilation):
            x = np.pad(v["x"], ((0, 0), (0, 0), pads))
            windows = np.lib.stride_tricks.sliding_window_view(x, (w.shape[2] - 1) * dilation + 1, 2)[:, :, ::stride, ::dilation]
            return [np.einsum("nctk,ck->nct", windows, w[:, 0])]
        case(f"long_filter_{name}", [helper.make_node("Conv", ["x", "w"], ["y"], group=channels, pads=list(pads), strides=[stride], dilations=[dilation])], {"x": ["N", channels, "L"]}, {"y": None}, long_filter,
             [{"x": (n, channels, l)} for n, l in ((2, 210), (1, 97 if name != "dilated" else 150), (1, 173))], {"w": w}, tolerance=4e-6)
    w = random((12, 1, 3, 70), 6)
    case("long_filter_image", [helper.make_node("Conv", ["x", "w"], ["y"], group=12, pads=[1, 35, 1, 34])], {"x": [1, 12, 9, 83]}, {"y": None},
         lambda v, w=w: [np.einsum("nchwij,cij->nchw", np.lib.stride_tricks.sliding_window_view(np.pad(v["x"], ((0, 0), (0, 0), (1, 1), (35, 34))), (3, 70), (2, 3)), w[:, 0])], [{"x": (1, 12, 9, 83)}], {"w": w}, tolerance=4e-6)
    # Small products with long sums, in parts; rows of the left-hand side at a distance, in place and copied.
    for name, a, b, equation in (("rows", (40, 2000), (2000, 24), "mk,kn->mn"), ("gram", (3000, 33), (3000, 50), "km,kn->mn"), ("batch", (2, 20, 2048), (2048, 2, 17), "bmk,kbn->bmn"),
                                 ("apart", (18, 3, 2560), (3, 2560, 18), "mbk,bkn->bmn")):
        out = list(np.einsum(equation, np.zeros(a), np.zeros(b)).shape)
        case(f"split_depth_{name}", [helper.make_node("Einsum", ["a", "b"], ["p"], equation=equation), helper.make_node("Tanh", ["p"], ["t"]), helper.make_node("Add", ["p", "t"], ["y"])],
             {"a": list(a), "b": list(b)}, {"y": out}, lambda v, e=equation: [np.einsum(e, v["a"], v["b"]) + np.tanh(np.einsum(e, v["a"], v["b"]))], [{"a": a, "b": b}])
    case("rows_apart", [helper.make_node("Einsum", ["a", "b"], ["y"], equation="nmbk,bkc->bnmc")], {"a": ["N", 5, 3, 40], "b": [3, 40, 20]}, {"y": [3, "N", 5, 20]},
         lambda v: [np.einsum("nmbk,bkc->bnmc", v["a"], v["b"])], [{"a": (n, 5, 3, 40), "b": (3, 40, 20)} for n in (1, 7, 30)])
    case("rows_among_batches", [helper.make_node("Einsum", ["a", "b"], ["y"], equation="nbmk,bkc->bnmc")], {"a": [6, 3, 5, 40], "b": [3, 40, 20]}, {"y": [3, 6, 5, 20]},
         lambda v: [np.einsum("nbmk,bkc->bnmc", v["a"], v["b"])], [{"a": (6, 3, 5, 40), "b": (3, 40, 20)}])
    # Sums of short rows, and functions of them: the sums of 64 neighbours first.
    case("distances", [helper.make_node("Sub", ["x", "p"], ["d"]), helper.make_node("Mul", ["d", "d"], ["q"]), helper.make_node("ReduceSum", ["q", "axis"], ["s"], keepdims=0),
                       helper.make_node("Log", ["s"], ["l"]), helper.make_node("Exp", ["l"], ["e"]), helper.make_node("Sqrt", ["e"], ["y"])],
         {"x": ["N", 1, "K"], "p": ["M", "K"]}, {"l": ["N", "M"], "y": ["N", "M"]},
         lambda v: [np.log(np.square(v["x"] - v["p"]).sum(-1)), np.sqrt(np.square(v["x"] - v["p"]).sum(-1))],
         [{"x": (n, 1, k), "p": (m, k)} for n, m, k in ((2, 1, 16), (3, 64, 9), (1, 65, 33), (2, 150, 8), (0, 3, 8), (3, 0, 8), (1, 3, 1))],
         {"axis": np.array([-1], np.int64)}, tolerance=(2e-6, 2e-6))
    case("logsumexp", [helper.make_node("ReduceLogSumExp", ["x"], ["y"], keepdims=0, axes=[2])], {"x": ["B", "R", "C"]}, {"y": ["B", "R"]},
         lambda v: [np.log(np.exp(v["x"]).sum(-1))], [{"x": s} for s in ((2, 70, 20), (1, 64, 8), (3, 1, 100), (1, 5, 1), (2, 0, 4))])
    # All of erf's range, to five units in the last place; what is not a number stays so.
    erf_values = np.concatenate([np.linspace(-4.3, 4.3, 20001), 10.0 ** np.linspace(-37, 30, 500), -10.0 ** np.linspace(-37, 30, 500), [0.0, np.inf, -np.inf, np.nan]]).astype(np.float32)
    case("erf", [helper.make_node("Erf", ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]}, lambda v: [np.vectorize(math.erf)(v["x"])], [{"x": erf_values}, {"x": erf_values[:7]}], tolerance=(6e-7, 0))
    # All of exp's range: overflow, what is below the normal numbers, NaN. Maxima and minima with NaN and infinities.
    special = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e-38, 88.72283, 88.7229, 89, 89.1, 128, 3e38, -87.3, -87.33, -88, -104, -3e38], np.float32)
    wide = np.concatenate([special, np.linspace(-87.3, 88.7, 20011, dtype=np.float32), np.linspace(-1, 1, 5003, dtype=np.float32)])
    case("exp_everywhere", [helper.make_node("Exp", ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]}, lambda v: [np.exp(v["x"])],
         [{"x": wide}, {"x": special[:1]}, {"x": special[1:3]}], tolerance=(4e-7, 1.3e-38))
    case("sigmoid_everywhere", [helper.make_node("Sigmoid", ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]}, lambda v: [1 / (1 + np.exp(-v["x"]))],
         [{"x": wide}, {"x": -wide}], tolerance=(4e-7, 1.3e-38))
    case("tanh_everywhere", [helper.make_node("Tanh", ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]}, lambda v: [np.tanh(v["x"])],
         [{"x": wide}, {"x": wide / 10}], tolerance=(6e-7, 0))
    holes = random((40, 67), 7)
    holes[3, 5], holes[7, 66], holes[9, :], holes[11, 0], holes[12, 31] = np.nan, np.nan, -np.inf, np.inf, -np.inf
    for name, function in (("Max", np.max), ("Min", np.min)):
        case(f"reduce_{name.lower()}_with_nan", [helper.make_node(f"Reduce{name}", ["x"], ["y"], keepdims=0, axes=[1])],
             {"x": ["R", "C"]}, {"y": ["R"]}, lambda v, f=function: [f(v["x"], 1)], [{"x": holes}, {"x": holes[:, :5]}, {"x": holes[3:4]}])
        case(f"{name.lower()}_with_nan", [helper.make_node(name, ["x", "y"], ["z"])], {"x": ["R", "C"], "y": ["R", "C"]}, {"z": ["R", "C"]},
             lambda v, f={"Max": np.maximum, "Min": np.minimum}[name]: [f(v["x"], v["y"])], [{"x": holes, "y": holes[::-1].copy()}])
    # Columns of operands that leave the second-level cache: streamed, some rows at once.
    for shape, axes in (((37, 5, 2500), (0,)), ((37, 5, 2500), (0, 1)), ((1003, 400), (0,)), ((3, 67, 4096), (1,))):
        axes_name = "".join(map(str, axes))
        case(f"reduce_columns_{'x'.join(map(str, shape))}_{axes_name}",
             [helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0), helper.make_node("Relu", ["s"], ["y"]),
              helper.make_node("ReduceMax", ["x"], ["z"], keepdims=0, axes=list(axes))],
             {"x": list(shape)}, {"y": None, "z": None},
             lambda v, axes=axes: [np.maximum(v["x"].sum(axes), 0), v["x"].max(axes)],
             [{"x": shape}], {"axes": np.array(axes)})
    # Long sums of one sign: one chain of additions would miss by several times the tolerance.
    for shape, axes, tolerance in (((1, 56, 56, 64), (1, 2), 3e-7), ((3136, 64), (0,), 3e-7), ((20000, 3), (0,), 6e-7), ((2, 300001), (1,), 3e-7),
                                   ((3, 400, 100, 3), (1, 2), 6e-7), ((4097, 1030), (0,), 4e-7)):
        values = random(shape, 11) * np.float32(.5) + np.float32(.3)
        for kind, dims in (("", list(shape)), ("_symbolic", [f"D{i}" for i in range(len(shape))])):
            case(f"sum_{'x'.join(map(str, shape))}{kind}", [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
                 {"x": dims}, {"y": None}, lambda v, axes=axes: [v["x"].sum(axes)], [{"x": values}], {"axes": np.array(axes)}, tolerance=tolerance)
    # Results of 32 MiB and more are stored past the caches.
    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    # Parts along channels: the dims before and behind them are one, whatever their sizes.
    joined = {"x": (2, 5, 7, 9), "z": (2, 3, 7, 9), "c": (5, 1, 1)}
    for kind, dims in (("", {n: list(d) for n, d in joined.items()}), ("_symbolic", {"x": ["N", 5, "H", "W"], "z": ["N", 3, "H", "W"], "c": [5, 1, 1]}),
                       ("_unknown", {"x": ["N", "X", "H", "W"], "z": ["N", "Z", "H", "W"], "c": [5, 1, 1]})):
        shapes = [joined] if not kind else [joined, {**joined, "x": (1, 5, 1, 1), "z": (1, 3, 1, 1)}, {**joined, "x": (3, 5, 28, 1), "z": (3, 3, 28, 1)},
                                            {**joined, "x": (0, 5, 4, 4), "z": (0, 3, 4, 4)}, {**joined, "x": (2, 5, 0, 4), "z": (2, 3, 0, 4)}]
        case(f"channels_parts{kind}",
             [helper.make_node("Mul", ["x", "c"], ["m"]), helper.make_node("Concat", ["m", "z", "x"], ["t"], axis=1), helper.make_node("Relu", ["t"], ["u"]),
              helper.make_node("Slice", ["u", "from", "to", "one", "two"], ["s"]), helper.make_node("Pad", ["s", "pads"], ["y"])],
             dims, {"u": None, "y": None},
             lambda v: (lambda u: [u, np.pad(u[:, 1:11:2], ((0, 0), (1, 2), (0, 0), (0, 0)))])(
                 np.maximum(np.concatenate([v["x"] * v["c"], v["z"], v["x"]], 1), 0)),
             shapes, {"from": np.array([1]), "to": np.array([11]), "one": np.array([1]), "two": np.array([2]), "pads": np.array([0, 1, 0, 0, 0, 2, 0, 0])})
    case("parts_of_one_channel", [helper.make_node("Concat", ["x", "z", "x"], ["t"], axis=1), helper.make_node("Abs", ["t"], ["y"])],
         {"x": [2, 1, 7, 9], "z": [2, 4, 7, 9]}, {"y": None}, lambda v: [np.abs(np.concatenate([v["x"], v["z"], v["x"]], 1))], [{"x": (2, 1, 7, 9), "z": (2, 4, 7, 9)}])
    # One NaN makes a row of a softmax none, wherever it is; what is not divided by the sum is none by its largest element.
    def parts(x):
        largest = x.max(-1, keepdims=True)
        return [np.exp(x - largest), softmax(x), largest]
    for width in (5, 67, 1024):
        rows = random((6, width), 13) * np.float32(40)
        rows[0, 0] = rows[1, -1] = rows[2, width // 2] = rows[3, 2] = np.nan
        rows[4, 3] = -np.inf
        for axis in (1, 0):
            values = {"x": rows if axis else rows.T.copy()}
            along = lambda f, axis=axis: lambda v: [a if axis else a.T for a in f(v["x"] if axis else v["x"].T)]
            dims = {"x": list(values["x"].shape)}
            case(f"softmax_{width}_axis{axis}_with_nan", [helper.make_node("Softmax", ["x"], ["y"], axis=axis)], dims, {"y": None}, along(lambda x: [softmax(x)]), [values])
            case(f"logsoftmax_{width}_axis{axis}_with_nan", [helper.make_node("LogSoftmax", ["x"], ["y"], axis=axis)], dims, {"y": None},
                 along(lambda x: [(lambda d: d - np.log(np.exp(d).sum(-1, keepdims=True)))(x - x.max(-1, keepdims=True))]), [values])
            case(f"softmax_parts_{width}_axis{axis}_with_nan",
                 [helper.make_node("ReduceMax", ["x"], ["m"], axes=[axis]), helper.make_node("Sub", ["x", "m"], ["d"]), helper.make_node("Exp", ["d"], ["e"]),
                  helper.make_node("ReduceSum", ["e", "a"], ["s"]), helper.make_node("Div", ["e", "s"], ["y"]), helper.make_node("Identity", ["m"], ["z"])],
                 dims, {"e": None, "y": None, "z": None}, along(parts), [values], {"a": np.array([axis])})
    # Divided by the sums of the columns: a row is none by its own largest element.
    square = random((24, 24), 17)
    square[3, 5] = np.nan
    def crossed(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1)
    case("softmax_crossed_with_nan",
         [helper.make_node("ReduceMax", ["x"], ["m"], axes=[1]), helper.make_node("Sub", ["x", "m"], ["d"]), helper.make_node("Exp", ["d"], ["e"]),
          helper.make_node("ReduceSum", ["e", "a"], ["s"], keepdims=0), helper.make_node("Div", ["e", "s"], ["y"])],
         {"x": [24, 24]}, {"y": None}, lambda v: [crossed(v["x"])], [{"x": square}], {"a": np.array([1])})
    case("softmax_past_the_caches", [helper.make_node("Softmax", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])],
         {"x": [2048, 4096]}, {"y": [2048, 4096], "z": [2048, 4096]}, lambda v: [softmax(v["x"]), -v["x"]], [{"x": (2048, 4096)}])
    # Attention: all keys in one block, in equal blocks, in blocks with a remainder; queries that end in a panel; keys that the mask
    # hides, a row of them wholly; scores that are infinite or no number; sizes that only the run knows.
    def attend(v):
        return [softmax(v["q"] @ v["k"].transpose(0, 2, 1) * 0.3 + v["m"]) @ v["v"]]
    def attend_few(v):
        return attend(v) if v["m"].size else [np.zeros((*v["q"].shape[:2], v["v"].shape[-1]))]
    nodes = [helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["q", "t"], ["p"]),
             helper.make_node("Mul", ["p", "scale"], ["c"]), helper.make_node("Add", ["c", "m"], ["s"]),
             helper.make_node("Softmax", ["s"], ["w"], axis=-1), helper.make_node("MatMul", ["w", "v"], ["y"])]
    def attention_values(b, t, s, d, e):
        mask = np.where(random((t, s), 3) > 1, -np.inf, 0).astype(np.float32)
        mask[:, :1] = 0
        query = random((b, t, d), 1)
        if t > 1:
            mask[t // 2] = -np.inf
            query[:1, 0, :1], query[-1:, -1, -1:] = np.nan, np.inf
        return {"q": query, "k": random((b, s, d), 2), "v": random((b, s, e), 4), "m": mask}
    attention_sizes = [(2, 5, 7, 8, 8), (1, 1, 1, 1, 1), (2, 17, 113, 20, 33), (1, 100, 128, 64, 64), (1, 65, 144, 16, 16), (2, 33, 145, 32, 16),
                       (1, 70, 290, 40, 40), (1, 520, 300, 16, 24)]
    for b, t, s, d, e in attention_sizes:
        case(f"attention_{t}x{s}x{d}x{e}", nodes, {"q": [b, t, d], "k": [b, s, d], "v": [b, s, e], "m": [t, s]}, {"y": [b, t, e]}, attend,
             [attention_values(b, t, s, d, e)], {"scale": np.float32(0.3)})
    case("attention_dynamic", nodes, {"q": ["B", "T", 24], "k": ["B", "S", 24], "v": ["B", "S", 16], "m": ["T", "S"]}, {"y": ["B", "T", 16]}, attend,
         [attention_values(b, t, s, 24, 16) for b, t, s, _, _ in attention_sizes], {"scale": np.float32(0.3)})
    # A constant so small that it is part of the kernel.
    values = attention_values(2, 12, 5, 8, 8)
    small = values.pop("m")
    case("attention_small_mask", nodes, {"q": [2, 12, 8], "k": [2, 5, 8], "v": [2, 5, 8]}, {"y": [2, 12, 8]},
         lambda v, m=small.astype(np.float64): attend({**v, "m": m}), [values], {"scale": np.float32(0.3), "m": small})
    # A mask for each batch element, and one that lies the other way round.
    for b, t, s, d, e in attention_sizes[:6]:
        values = attention_values(b, t, s, d, e)
        values["m"] = np.stack([np.roll(values["m"], i, 1) for i in range(b)])
        case(f"attention_masks_{t}x{s}", nodes, {"q": [b, t, d], "k": [b, s, d], "v": [b, s, e], "m": [b, t, s]}, {"y": [b, t, e]}, attend,
             [values], {"scale": np.float32(0.3)})
        values = attention_values(b, t, s, d, e)
        values["m"] = np.ascontiguousarray(values["m"].T)
        case(f"attention_turned_mask_{t}x{s}", [helper.make_node("Transpose", ["m"], ["n"], perm=[1, 0])] + nodes[:3] +
             [helper.make_node("Add", ["c", "n"], ["s"])] + nodes[4:], {"q": [b, t, d], "k": [b, s, d], "v": [b, s, e], "m": [s, t]},
             {"y": [b, t, e]}, lambda v: attend({**v, "m": v["m"].T}), [values], {"scale": np.float32(0.3)})
    # Weights that are no numbers count as 0: of a row that the mask hides wholly, of scores that are no numbers.
    def attend_safely(v):
        w = softmax(v["q"] @ v["k"].transpose(0, 2, 1) * 0.3 + v["m"])
        return [np.where(np.isnan(w), 0, w) @ v["v"]]
    safe = nodes[:5] + [helper.make_node("IsNaN", ["w"], ["n"]), helper.make_node("Where", ["n", "nothing", "w"], ["u"]),
                        helper.make_node("MatMul", ["u", "v"], ["y"])]
    for b, t, s, d, e in attention_sizes:
        case(f"attention_safe_{t}x{s}", safe, {"q": [b, t, d], "k": [b, s, d], "v": [b, s, e], "m": [t, s]}, {"y": [b, t, e]}, attend_safely,
             [attention_values(b, t, s, d, e)], {"scale": np.float32(0.3), "nothing": np.float32(0)})
    # Masks that hide the future: constants of positions that begin at 0 or that were there before, and one made from positions.
    def triangle(t, s, hidden):
        return np.where(np.arange(s) > np.arange(t)[:, None] + (s - t), hidden, 0).astype(np.float32)
    for t, s, hidden in ((1, 1, -np.inf), (5, 5, -3.4e38), (64, 64, -np.inf), (65, 65, -np.inf), (300, 300, -3.4e38), (3, 40, -np.inf), (40, 130, -3.4e38),
                         (33, 20, -np.inf)):
        values = attention_values(2, t, s, 16, 24)
        del values["m"]
        case(f"attention_causal_{t}x{s}", nodes, {"q": [2, t, 16], "k": [2, s, 16], "v": [2, s, 24]}, {"y": [2, t, 24]},
             lambda v, m=triangle(t, s, hidden).astype(np.float64): attend({**v, "m": m}), [values], {"scale": np.float32(0.3), "m": triangle(t, s, hidden)})
    positions = [helper.make_node("Shape", ["q"], ["n"], start=1, end=2), helper.make_node("Concat", ["n", "n"], ["nn"], axis=0),
                 helper.make_node("ConstantOfShape", ["nn"], ["ones"], value=numpy_helper.from_array(np.ones(1, np.float32))),
                 helper.make_node("Trilu", ["ones"], ["low"], upper=0), helper.make_node("Equal", ["low", "nothing"], ["hidden"]),
                 helper.make_node("Where", ["hidden", "least", "nothing"], ["m"])]
    few = []
    for t in (1, 7, 64, 129):
        values = attention_values(2, t, t, 16, 24)
        del values["m"]
        few.append(values)
    case("attention_causal_dynamic", positions + nodes, {"q": [2, "T", 16], "k": [2, "T", 16], "v": [2, "T", 24]}, {"y": [2, "T", 24]},
         lambda v: attend({**v, "m": triangle(v["q"].shape[1], v["q"].shape[1], -np.inf).astype(np.float64)}), few,
         {"scale": np.float32(0.3), "nothing": np.float32(0), "least": np.float32(-3.4e38)})
    # Transposed convolutions: one window for all phases, and a convolution for each; filters that the stride divides and not.
    for c, o, h, v, kernel, stride, pad, extra, groups in ((32, 16, 16, 13, 3, 2, 1, 1, 1), (24, 20, 9, 9, 4, 2, 1, 0, 1), (24, 16, 12, 12, 2, 2, 0, 0, 1),
                                                           (32, 17, 10, 7, 5, 3, 1, 0, 1), (64, 16, 8, 8, 5, 2, 2, 1, 2), (8, 16, 31, 17, 6, 3, 2, 1, 1),
                                                           (48, 32, 8, 8, 1, 2, 0, 1, 1), (4, 3, 5, 5, 3, 2, 1, 1, 1),
                                                           (24, 12, 9, 14, 4, 2, 1, 0, 4), (20, 28, 11, 10, 3, 2, 1, 1, 4), (18, 42, 7, 9, 5, 2, 2, 1, 3), (32, 40, 6, 7, 3, 3, 0, 0, 8), (16, 2, 12, 13, 4, 2, 1, 0, 1)):
        case(f"conv_transposed_{c}_{o}_{kernel}_{stride}_{groups}",
             [helper.make_node("ConvTranspose", ["x", "w"], ["t"], strides=[stride, stride], pads=[pad] * 4, output_padding=[extra] * 2, group=groups),
              helper.make_node("Relu", ["t"], ["y"])],
             {"x": [2, c, h, v]}, {"y": None},
             lambda d, w=random((c, o // groups, kernel, kernel), 9).astype(np.float64), stride=stride, pad=pad, extra=extra, groups=groups:
             [np.maximum(convolve_transposed(d["x"], w, stride, pad, extra, groups), 0)],
             [{"x": (2, c, h, v)}], {"w": random((c, o // groups, kernel, kernel), 9)})
    # Dilated: phases of filters whose elements lie apart, with results that no product reaches, or of sizes that the stride does not divide.
    for c, o, h, v, kernel, stride, dilation, pad, extra, groups in ((36, 20, 31, 17, 5, 3, 2, 2, 0, 1), (32, 16, 21, 17, 3, 2, 3, 1, 1, 1), (32, 16, 16, 19, 3, 2, 2, 2, 0, 1), (24, 32, 15, 16, 4, 2, 4, 3, 1, 2),
                                                                     (40, 24, 12, 31, 3, 2, 1, 1, 0, 1), (16, 8, 4, 5, 3, 3, 2, 4, 0, 1), (16, 16, 41, 7, 2, 4, 3, 0, 0, 1)):
        phases = random((c, o // groups, kernel, kernel), 9) / (c * kernel) ** 0.5
        case(f"conv_transposed_{c}_{o}_{kernel}_{stride}_{groups}_dilated_{dilation}",
             [helper.make_node("ConvTranspose", ["x", "w"], ["t"], strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4, output_padding=[extra] * 2, group=groups), helper.make_node("Relu", ["t"], ["y"])],
             {"x": [2, c, h, v]}, {"y": None},
             lambda d, w=phases.astype(np.float64), stride=stride, pad=pad, extra=extra, groups=groups, dilation=dilation: [np.maximum(convolve_transposed(d["x"], w, stride, pad, extra, groups, dilation), 0)],
             [{"x": (2, c, h, v)}], {"w": phases})
    # Parts of the columns that are no whole vectors: heads of attention, with rows of several tiles and columns of several groups.
    for rows, depth, heads, size in ((197, 96, 6, 20), (33, 24, 5, 7), (1, 40, 3, 12), (50, 16, 7, 24), (20, 8, 2, 72), (64, 64, 12, 5), (31, 20, 33, 2), (18, 12, 25, 3)):
        case(f"linear_heads_{rows}_{heads}x{size}", [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Reshape", ["c", "s"], ["r"]),
                                                     helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 1, 3])], {"x": ["N", rows, depth]}, {"y": ["N", heads, rows, size]},
             lambda v, w=random((depth, heads * size), 1), b=random(heads * size, 2), heads=heads, size=size: [(v["x"] @ w.astype(np.float64) + b).reshape(*v["x"].shape[:2], heads, size).transpose(0, 2, 1, 3)],
             [{"x": (n, rows, depth)} for n in (1, 3, 0)], {"w": random((depth, heads * size), 1), "b": random(heads * size, 2), "s": np.array([0, 0, heads, size])})
    # A row for all rows, of which the neighbours lie apart: it is turned before.
    case("turned_rows", [helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0]), helper.make_node("Unsqueeze", ["t", "one"], ["u"]),
                         helper.make_node("Add", ["x", "u"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=-1)],
         {"x": [4, "N", "M"], "r": ["M", 4]}, {"y": [4, "N", "M"]}, lambda v: [softmax(v["x"] + v["r"].T[:, None])],
         [{"x": (4, 65, 67), "r": (67, 4)}, {"x": (4, 1, 1), "r": (1, 4)}, {"x": (4, 0, 3), "r": (3, 4)}], {"one": np.array([1])})
    # Few queries: lanes along rows of keys and values; rows that end in a vector, or are longer than what is unrolled; keys that end in
    # a vector, no keys, several blocks of them.
    few_sizes = [(2, 1, 7, 8, 8), (3, 1, 1, 1, 1), (1, 1, 33, 20, 33), (2, 2, 16, 64, 64), (1, 3, 300, 300, 16), (1, 4, 600, 33, 130), (2, 6, 17, 300, 47),
                 (1, 8, 1030, 24, 40), (1, 1, 1024, 64, 128), (1, 8, 8, 32, 32), (2, 1, 0, 16, 16)]
    for b, t, s, d, e in few_sizes:
        case(f"attention_few_{t}x{s}x{d}x{e}", nodes, {"q": [b, t, d], "k": [b, s, d], "v": [b, s, e], "m": [t, s]}, {"y": [b, t, e]}, attend_few,
             [attention_values(b, t, s, d, e)], {"scale": np.float32(0.3)})
    for b, t, s, d, e in few_sizes[:8]:
        case(f"attention_few_safe_{t}x{s}", safe, {"q": [b, t, d], "k": [b, s, d], "v": [b, s, e], "m": [t, s]}, {"y": [b, t, e]}, attend_safely,
             [attention_values(b, t, s, d, e)], {"scale": np.float32(0.3), "nothing": np.float32(0)})
    for t in (1, 5):
        case(f"attention_few_{t}_dynamic", nodes, {"q": ["B", t, 24], "k": ["B", "S", 24], "v": ["B", "S", 50], "m": [t, "S"]}, {"y": ["B", t, 50]},
             attend_few, [attention_values(b, t, s, 24, 50) for b, s in ((1, 1), (2, 15), (1, 16), (3, 50), (1, 600), (2, 1024), (0, 5), (2, 0))],
             {"scale": np.float32(0.3)})
    # Concats of inputs that are put together of short rows, which lie apart behind gathers and transposes.
    for rows, size, pairs in ((22, 14, 31), (5, 4, 9), (7, 33, 4), (9, 16, 6), (6, 3, 40)):
        first, second = np.arange(pairs) * 7 % rows, np.arange(pairs) * 5 % rows
        case(f"concat_of_rows_{rows}x{size}_{pairs}",
             [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), helper.make_node("Gather", ["t", "first"], ["a"], axis=0), helper.make_node("Gather", ["t", "second"], ["b"], axis=0),
              helper.make_node("Mul", ["a", "b"], ["p"]), helper.make_node("Transpose", ["p"], ["u"], perm=[1, 0, 2]), helper.make_node("Reshape", ["u", "flat"], ["f"]),
              helper.make_node("Gather", ["x", "second"], ["c"], axis=1), helper.make_node("Reshape", ["c", "flat"], ["g"]), helper.make_node("Concat", ["f", "z", "g"], ["y"], axis=1)],
             {"x": ["N", rows, size], "z": ["N", 3]}, {"y": ["N", 2 * pairs * size + 3]},
             lambda v, first=first, second=second: [np.concatenate([(v["x"][:, first] * v["x"][:, second]).reshape(len(v["x"]), first.size * v["x"].shape[2]), v["z"],
                                                                    v["x"][:, second].reshape(len(v["x"]), first.size * v["x"].shape[2])], 1)],
             [{"x": (n, rows, size), "z": (n, 3)} for n in (1, 6, 0)], {"first": first, "second": second, "flat": np.array([0, pairs * size])})
    # Keys and values that several heads share, transposed on the way.
    groups = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1, 3]), helper.make_node("Unsqueeze", ["kt", "two"], ["k5"]),
              helper.make_node("Expand", ["k5", "spread_k"], ["ke"]), helper.make_node("Reshape", ["ke", "heads_k"], ["kh"]),
              helper.make_node("Transpose", ["kh"], ["t"], perm=[0, 1, 3, 2]), helper.make_node("Transpose", ["v"], ["vt"], perm=[0, 2, 1, 3]),
              helper.make_node("Unsqueeze", ["vt", "two"], ["v5"]), helper.make_node("Expand", ["v5", "spread_v"], ["ve"]),
              helper.make_node("Reshape", ["ve", "heads_v"], ["vh"]), helper.make_node("MatMul", ["q", "t"], ["p"]),
              helper.make_node("Softmax", ["p"], ["w"], axis=-1), helper.make_node("MatMul", ["w", "vh"], ["z"]),
              helper.make_node("Transpose", ["z"], ["y"], perm=[0, 2, 1, 3])]
    def attend_groups(v):
        keys, values = (np.repeat(v[n].transpose(0, 2, 1, 3), 3, 1) for n in "kv")
        return [(softmax(v["q"] @ keys.transpose(0, 1, 3, 2)) @ values).transpose(0, 2, 1, 3)]
    for t, s, d, e in ((1, 37, 16, 48), (4, 50, 20, 12)):
        case(f"attention_groups_{t}x{s}x{d}x{e}", groups, {"q": [2, 6, t, d], "k": [2, s, 2, d], "v": [2, s, 2, e]}, {"y": [2, t, 6, e]}, attend_groups,
             [{"q": (2, 6, t, d), "k": (2, s, 2, d), "v": (2, s, 2, e)}],
             {"two": np.array([2]), "spread_k": np.array([2, 2, 3, s, d]), "spread_v": np.array([2, 2, 3, s, e]), "heads_k": np.array([2, 6, s, d]),
              "heads_v": np.array([2, 6, s, e])})
    # Convolutions: patches, remainders, strides, groups.
    for c, o, size, kernel, stride, pad, groups in ((3, 20, 19, 3, 1, 1, 1), (16, 33, 9, 1, 1, 0, 1), (8, 16, 23, 3, 2, 1, 2),
                                                    (5, 7, 8, 5, 3, 2, 1), (32, 64, 7, 1, 2, 0, 1), (4, 4, 11, 3, 1, 1, 4),
                                                    (24, 24, 37, 3, 1, 1, 6), (40, 40, 13, 3, 2, 1, 5), (6, 6, 9, 5, 1, 2, 3), (16, 16, 6, 1, 1, 0, 2),
                                                    (20, 20, 13, 9, 1, 4, 20), (33, 33, 12, 11, 2, 3, 33),
                                                    (2, 48, 14, 4, 1, 1, 2), (7, 21, 11, 3, 2, 1, 7), (5, 25, 9, 3, 1, 1, 5), (6, 24, 10, 3, 1, 1, 6), (2, 48, 8, 1, 1, 0, 2)):
        w = random((o, c // groups, kernel, kernel), 2)
        case(f"conv_{c}x{o}_{size}_k{kernel}s{stride}g{groups}",
             [helper.make_node("Conv", ["x", "w"], ["z"], strides=[stride] * 2, pads=[pad] * 4, group=groups),
              helper.make_node("Relu", ["z"], ["y"])],
             {"x": ["N", c, "H", "W"]}, {"y": ["N", o, "P", "Q"]},
             lambda v, w=w, a=(stride, pad, groups): [np.maximum(convolve(v["x"], w.astype(np.float64), *a), 0)],
             [{"x": (n, c, h, size)} for n, h in ((1, size), (2, size + 4), (0, size))], {"w": w})
    # Three spatial dims: a task skips the kernel positions that lie outside of its depth; all of some lie outside; none lies inside.
    def convolve3(x, w, stride, dilation, pad):
        stride, dilation, pad = (np.broadcast_to(a, 3) for a in (stride, dilation, pad))
        x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad)))
        out = [(x.shape[2 + i] - (w.shape[2 + i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in range(3)]
        y = np.zeros((x.shape[0], w.shape[0], *out))
        for taps in np.ndindex(*w.shape[2:]):
            part = x[(slice(None), slice(None), *[slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, s, d in zip(taps, out, stride, dilation)])]
            y += np.einsum("ncdhw,oc->nodhw", part, w[(slice(None), slice(None), *taps)])
        return y
    for c, o, size, kernel, stride, dilation, pad in ((5, 20, (1, 4, 6), (3, 3, 3), 1, 1, 1), (16, 33, (2, 7, 1), (3, 3, 3), 1, 1, 1), (8, 16, (5, 6, 7), (3, 3, 3), 2, 2, 2),
                                                      (3, 7, (4, 5, 5), (5, 3, 1), 3, 1, 2), (6, 9, (1, 1, 1), (2, 3, 4), 1, 3, 5)):
        w = random((o, c, *kernel), 6)
        for kind, declared in (("static", size), ("dynamic", ("D", "H", "W"))):
            case(f"conv3_{kind}_{c}x{o}_{'x'.join(map(str, size))}_k{'x'.join(map(str, kernel))}s{stride}d{dilation}p{pad}",
                 [helper.make_node("Conv", ["x", "w"], ["z"], strides=[stride] * 3, dilations=[dilation] * 3, pads=[pad] * 6), helper.make_node("Relu", ["z"], ["y"])],
                 {"x": ["N", c, *declared]}, {"y": ["N", o, "P", "Q", "R"]},
                 lambda v, w=w, a=(stride, dilation, pad): [np.maximum(convolve3(v["x"], w.astype(np.float64), *a), 0)],
                 [{"x": (n, c, *size)} for n in (1, 2)], {"w": w})
    # 3x3 filters by Winograd's algorithm, which reads what another convolution has made: tiles that end outside of the image, uneven
    # pads, channels that fill no vector, no images at all; a sum and a bound follow.
    # The last one has few tiles and many columns: a launch of its own transforms the tiles.
    for n, c, o, h, wd, pads in (("N", 64, 64, 24, 28, (1, 1, 1, 1)), ("N", 48, 40, 21, 18, (0, 1, 2, 0)), ("N", 128, 96, 13, 31, (1, 2, 1, 0)), (1, 250, 264, 13, 14, (1, 1, 1, 1))):
        first, second = random((c, 8, 1, 1), 4), random((o, c, 3, 3), 5) / np.float32(3 * np.sqrt(c))
        out = (h + pads[0] + pads[2] - 2, wd + pads[1] + pads[3] - 2)

        def reference(v, first=first, second=second, pads=pads):
            x = np.pad(convolve(v["x"], first.astype(np.float64), 1, 0, 1), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
            return [np.maximum(convolve(x, second.astype(np.float64), 1, 0, 1) + v["r"], 0)]

        case(f"winograd_{c}x{o}_{h}x{wd}",
             [helper.make_node("Conv", ["x", "first"], ["z"]), helper.make_node("Conv", ["z", "second"], ["s"], pads=pads),
              helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Relu", ["t"], ["y"])],
             {"x": [n, 8, h, wd], "r": [n, o, *out]}, {"y": [n, o, *out]}, reference,
             [{"x": (n, 8, h, wd), "r": (n, o, *out)} for n in ((1, 3, 0) if n == "N" else (n,))], {"first": first, "second": second},
             tolerance=2e-6 if c <= 128 else 4e-6)  # the error grows with the root of the channels

    # Filters that read images of unknown size where they lie: rows of pixels at a distance that is computed
    for name, kernel, strides, pads in (("1x1s2", (1, 1), [2, 2], None), ("2x3s2", (2, 3), [2, 1], None), ("2d3", (3, 2), [1, 1], [2, 1]), ("line", (10,), [5], None), ("line_gaps", (3,), [1], [4])):
        first, second = random((24, 8, *[1] * len(kernel)), 4), random((40, 24, *kernel), 5) / np.float32(np.sqrt(24 * np.prod(kernel)))
        nodes = [helper.make_node("Conv", ["x", "first"], ["z"]), helper.make_node("Conv", ["z", "second"], ["s"], strides=strides, **({"dilations": pads} if pads else {})), helper.make_node("Relu", ["s"], ["y"])]

        def reference(v, nodes=nodes, first=first, second=second):
            z = np.einsum("nc...,oc->no...", v["x"], first.astype(np.float64).reshape(24, 8))
            return [np.maximum(ReferenceEvaluator(nodes[1]).run(None, {"z": z, "second": second.astype(np.float64)})[0], 0)]

        sizes = ([(4, 3), (9, 31), (30, 63)] if len(kernel) == 2 else [(15,), (64,), (633,)])
        if pads:
            sizes[0] = tuple(3 * s for s in sizes[0])
        case(f"conv_unknown_{name}", nodes, {"x": ["N", 8, *"HW"[:len(kernel)]]}, {"y": ["N", 40, *"PQ"[:len(kernel)]]}, reference,
             [{"x": (n, 8, *size)} for n, size in zip((1, 2, 1), sizes)], {"first": first, "second": second})

    # The same for images whose size only the run knows, down to a pixel; the last ones have a launch for the tiles.
    for c, o, pads in ((64, 64, (1, 1, 1, 1)), (48, 40, (0, 1, 2, 0)), (250, 264, (1, 1, 1, 1))):
        first, second = random((c, 8, 1, 1), 4), random((o, c, 3, 3), 5) / np.float32(3 * np.sqrt(c))

        def reference(v, first=first, second=second, pads=pads):
            x = np.pad(convolve(v["x"], first.astype(np.float64), 1, 0, 1), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
            return [np.maximum(convolve(x, second.astype(np.float64), 1, 0, 1), 0)]

        case(f"winograd_{c}x{o}_unknown", [helper.make_node("Conv", ["x", "first"], ["z"]), helper.make_node("Conv", ["z", "second"], ["s"], pads=pads), helper.make_node("Relu", ["s"], ["y"])],
             {"x": ["N", 8, "H", "W"]}, {"y": ["N", o, "P", "Q"]}, reference,
             [{"x": (n, 8, *size)} for n, size in ((1, (2, 2)), (1, (1 if pads[0] else 2, 3)), (2, (4, 17)), (3, (13, 8)), (1, (22, 11)), (0, (9, 9)))],
             {"first": first, "second": second}, tolerance=2e-6 if c <= 128 else 4e-6)

    # The same for volumes: planes that lie outside of the input, steps and gaps between planes, an unknown number of them; the last
    # two have launches of their own for the tiles.
    for n, c, o, size, depth, stride, dilation, pads in (("N", 48, 40, (5, 13, 18), 3, 1, 1, (1, 1, 1)), ("N", 64, 64, ("D", 12, 12), 2, 2, 1, (0, 1, 0)),
                                                         (1, 80, 320, (3, 12, 9), 3, 1, 2, (2, 1, 1)), ("N", 80, 320, (1, 8, 17), 1, 1, 1, (0, 1, 1))):
        first, second = random((c, 8, 1, 1, 1), 4), random((o, c, depth, 3, 3), 5) / np.float32(3 * np.sqrt(c * depth))

        def reference(v, first=first, second=second, a=((stride, 1, 1), (dilation, 1, 1), pads)):
            return [np.maximum(convolve3(convolve3(v["x"], first.astype(np.float64), 1, 1, 0), second.astype(np.float64), *a), 0)]

        case(f"winograd3_{c}x{o}_{'x'.join(map(str, size))}_k{depth}s{stride}d{dilation}",
             [helper.make_node("Conv", ["x", "first"], ["z"]),
              helper.make_node("Conv", ["z", "second"], ["s"], pads=[*pads, *pads], strides=[stride, 1, 1], dilations=[dilation, 1, 1]),
              helper.make_node("Relu", ["s"], ["y"])],
             {"x": [n, 8, *size]}, {"y": [n, o, "P", "Q", "R"]}, reference,
             [{"x": (m, 8, *(planes if s == "D" else s for s in size))} for m in ((1, 2, 0) if n == "N" else (n,)) for planes in ((7, 2) if "D" in size else (0,))],
             {"first": first, "second": second}, tolerance=2e-6 if c * depth <= 192 else 4e-6)

    # Recurrent layers whose weights stream from beyond the second-level cache: several blocks of batch rows at once, the last one short.
    for kind, gates, hidden, batch in (("LSTM", 4, 224, 20), ("GRU", 3, 272, 29), ("RNN", 1, 448, "N")):
        w, r, bias = random((1, gates * hidden, 12), 7), random((1, gates * hidden, hidden), 8) / np.float32(2 * np.sqrt(hidden)), random((1, 2 * gates * hidden), 9)
        node = helper.make_node(kind, ["x", "w", "r", "b"], ["y", "h"], hidden_size=hidden)

        def reference(v, node=node, w=w, r=r, bias=bias):
            return ReferenceEvaluator(node).run(None, {"x": v["x"], "w": w.astype(np.float64), "r": r.astype(np.float64), "b": bias.astype(np.float64)})

        case(f"{kind.lower()}_{hidden}_{batch}", [node], {"x": [3, batch, 12]}, {"y": [3, 1, batch, hidden], "h": [1, batch, hidden]}, reference,
             [{"x": (3, n, 12)} for n in ((1, 8, 26, 50) if batch == "N" else (batch,))], {"w": w, "r": r, "b": bias})
    # Both directions run at the same time, also several times over and with a batch that only the run knows.
    for kind, gates, hidden, batch in (("LSTM", 4, 128, 3), ("GRU", 3, 160, "N")):
        w, r, bias = random((2, gates * hidden, 12), 7), random((2, gates * hidden, hidden), 8) / np.float32(2 * np.sqrt(hidden)), random((2, 2 * gates * hidden), 9)
        one = helper.make_node(kind, ["x", "w", "r", "b"], ["y", "h"], hidden_size=hidden)

        def both(v, one=one, w=w, r=r, bias=bias):
            results = []
            for way, step in ((0, 1), (1, -1)):
                weights = {n: a[way:way + 1].astype(np.float64) for n, a in (("w", w), ("r", r), ("b", bias))}
                y, h = ReferenceEvaluator(one).run(None, {"x": v["x"][::step], **weights})
                results.append((y[::step], h))
            return [np.concatenate([y for y, _ in results], 1), np.concatenate([h for _, h in results], 0)]

        case(f"{kind.lower()}_both_{hidden}_{batch}", [helper.make_node(kind, ["x", "w", "r", "b"], ["y", "h"], hidden_size=hidden, direction="bidirectional")],
             {"x": [24, batch, 12]}, {"y": [24, 2, batch, hidden], "h": [2, batch, hidden]}, both,
             [{"x": (24, n, 12)} for n in ((1, 9, 30) if batch == "N" else (batch,))], {"w": w, "r": r, "b": bias})

    # A batch of few rows, or of more where the weights are large, whose hidden dim is split: all forms, with initial states, a size that is no multiple of a slice, sequences
    # that end early, both directions at once, and a number of steps that only the run knows, also one and none.
    for kind, size, batch, direction, linear, short in (("LSTM", 256, 1, "forward", 0, False), ("LSTM", 250, 3, "reverse", 0, True), ("LSTM", 264, 1, "bidirectional", 0, False),
                                                        ("GRU", 272, 1, "forward", 0, False), ("GRU", 250, 2, "bidirectional", 0, True), ("GRU", 281, 1, "reverse", 1, True),
                                                        ("GRU", 256, 2, "forward", 1, False), ("RNN", 500, 2, "bidirectional", 0, True), ("RNN", 512, 12, "forward", 0, False),
                                                        ("LSTM", 250, 17, "bidirectional", 0, True), ("GRU", 264, 30, "reverse", 0, False), ("GRU", 296, 13, "forward", 1, True)):
        gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if direction == "bidirectional" else 1
        constants = {"w": random((ways, gates * size, 12), 7), "r": random((ways, gates * size, size), 8) / np.float32(2 * np.sqrt(size)), "b": random((ways, 2 * gates * size), 9),
                     "l": np.array([(3, 5, 2)[i % 3] if short else 100 for i in range(batch)], np.int32)}
        names, results = ["x", "w", "r", "b", "l", "h0"], ["y", "h"]
        if kind == "LSTM":
            constants["p"], names, results = random((ways, 3 * size), 10), names + ["c0", "p"], results + ["c"]

        def reference(v, kind=kind, direction=direction, linear=linear, constants=constants, ways=ways, size=size):
            k = {n: a.astype(np.float64) for n, a in constants.items()}
            out = [recurrent(kind, v["x"], v["h0"][i], v.get("c0", v["h0"])[i], k["w"][i], k["r"][i], k["b"][i], k["p"][i] if "p" in k else np.zeros(3 * size), k["l"],
                             linear, direction == "reverse" or i == 1) for i in range(ways)]
            return [np.stack([o[0] for o in out], 1), np.stack([o[1] for o in out]), np.stack([o[2] for o in out])]

        state = {"h0": [ways, batch, size], **({"c0": [ways, batch, size]} if kind == "LSTM" else {})}
        case(f"steps_{kind.lower()}{'_linear' if linear else ''}_{size}_{batch}_{direction}",
             [helper.make_node(kind, names, results, hidden_size=size, direction=direction, **({"linear_before_reset": linear} if kind == "GRU" else {}))],
             {"x": ["T", batch, 12], **state}, {"y": ["T", ways, batch, size], **{n: [ways, batch, size] for n in results[1:]}}, reference,
             [{"x": (t, batch, 12), **{n: tuple(s) for n, s in state.items()}} for t in (7, 1, 0, 24)], constants, tolerance=4e-6, threads=(1, 2, 4))

    # Branches of convolutions that run at the same time, each with more or less scratch than the others, several times over.
    for image in (12, "H"):
        sizes, nodes, constants, source = (5, 7, 3), [], {}, "x"
        for stage in range(6):
            branches = []
            for size in sizes:
                branches.append(f"b{stage}_{size}")
                constants[f"w{stage}_{size}"] = random((64, 64, size, size), (stage, size)) / np.float32(10 * size)
                nodes.append(helper.make_node("Conv", [source, f"w{stage}_{size}"], [branches[-1]], pads=[size // 2] * 4))
            source = "y" if stage == 5 else f"s{stage}"
            nodes.append(helper.make_node("Sum", branches, [source]))

        def branching(v, constants=constants, sizes=sizes):
            x = v["x"]
            for stage in range(6):
                padded = {size: np.pad(x, ((0, 0), (0, 0), (size // 2,) * 2, (size // 2,) * 2)) for size in sizes}
                windows = {size: np.lib.stride_tricks.sliding_window_view(padded[size], (size, size), (2, 3)) for size in sizes}
                x = sum(np.einsum("nchwij,ocij->nohw", windows[size], constants[f"w{stage}_{size}"].astype(np.float64)) for size in sizes)
            return [x]

        case(f"branches_{image}", nodes, {"x": [1, 64, image, image]}, {"y": [1, 64, image, image]}, branching,
             [{"x": (1, 64, n, n)} for n in ((9, 12, 14) if image == "H" else (12,))], constants, tolerance=6e-6)

    # Norms over several dims beside scales along the last one, whose tasks read what a launch before computes: one and several
    # batch elements, an unknown number, odd sizes, two results of a row, and rows that are results themselves.
    for batch in (1, 3, "N"):
        for size in ((37, 1, 131), (5, 9, 128)):
            axes, scale = list(range(1, 1 + len(size))), random(size[-1:], 3)
            eps = np.float32(1e-5).reshape(())
            nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=axes), helper.make_node("Sub", ["x", "m"], ["d"]), helper.make_node("Mul", ["d", "d"], ["dd"]),
                     helper.make_node("ReduceMean", ["dd"], ["v"], axes=axes), helper.make_node("Add", ["v", "eps"], ["ve"]), helper.make_node("Sqrt", ["ve"], ["s"]),
                     helper.make_node("Div", ["d", "s"], ["n"]), helper.make_node("Mul", ["n", "scale"], ["y0"]), helper.make_node("Relu", ["y0"], ["y"])]

            def normed(v, scale=scale, axes=tuple(axes)):
                d = v["x"] - v["x"].mean(axes, keepdims=True)
                s = np.sqrt((d * d).mean(axes, keepdims=True) + 1e-5)
                return [np.maximum(d / s * scale, 0), s]

            case(f"norm_of_rows_{batch}x{'x'.join(map(str, size))}", nodes, {"x": [batch, *size]}, {"y": [batch, *size], "s": [batch, 1, 1, 1]}, normed,
                 [{"x": (n, *size)} for n in ((1, 2, 0) if batch == "N" else (batch,))], {"scale": scale, "eps": eps})
    # A single long row.
    for length in (70001, 131072):
        case(f"softmax_of_one_{length}", [helper.make_node("Softmax", ["x"], ["y"])], {"x": [1, length]}, {"y": [1, length]},
             lambda v: [np.exp(v["x"] - v["x"].max()) / np.exp(v["x"] - v["x"].max()).sum()], [{"x": (1, length)}], {})
