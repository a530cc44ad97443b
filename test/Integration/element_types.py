#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers and six-bit floats in all operators that take them; optionals of narrow elements; operands of mixed types.

usage: element_types.py BIN [REGEX]

Each case is a small ONNX model. With its sizes it is run on .npz files, with sizes that only the run knows on .pb files, and, in one of
the types, with constants instead of inputs. Outputs are compared with ONNX's reference evaluator, or with NumPy where that one does not
take the type; what only moves elements must give the same bits, NaN included. Prints a line per failure and a count.
"""
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 28
COMPLEX = (np.complex64, np.complex128)
SIX_BITS = (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)
CASES = {}


def case(name, types, make, tolerance=0, fixed=(), opset=OPSET, ways=("static", "dynamic", "constant")):
    """`make`(dtype) gives the nodes, the inputs by name, and what y and, if there are more, y1, y2, .. must be, or None for what the reference
    evaluator says; `fixed`: inputs whose sizes stay as they are."""
    CASES[name] = (types, make, tolerance, set(fixed), opset, ways)


def numbers(dtype, *shape, seed=0):
    """Numbers with NaN, infinity and -0 among them."""
    rng = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype.kind != "c":
        return rng.standard_normal(shape).astype(np.float32).astype(dtype)
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    for i, odd in enumerate((complex(np.nan, 1), complex(2, np.nan), complex(np.inf, -0.0))):
        if x.size > 3 + i:
            x.reshape(-1)[3 + i] = odd
    return x


def tame(dtype, *shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


def on(op, *inputs, **attributes):
    """A case of one node: `inputs` are arrays, or functions of the type that give one; those that are integers or bools are x1, x2, .."""

    def make(dtype):
        given = {f"x{i}": x(dtype) if callable(x) else x for i, x in enumerate(inputs) if x is not None}
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        return [helper.make_node(op, names, ["y"], **attributes)], given, None

    return make


def x(*shape, seed=0):
    return lambda dtype: numbers(dtype, *shape, seed=seed)


def graph_value(name, dtype, shape=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


#===--- operators that move complex numbers -----------------------------------------------------------------------------===#

case("identity", COMPLEX, on("Identity", x(2, 3)))
case("identity_scalar", COMPLEX, on("Identity", x()))
case("identity_empty", COMPLEX, on("Identity", x(0, 3)))
case("concat", COMPLEX, on("Concat", x(2, 3), x(2, 1, seed=1), x(2, 0), axis=1))
case("reshape", COMPLEX, on("Reshape", x(2, 6), ints(3, -1)), fixed=["x1"])
case("flatten", COMPLEX, on("Flatten", x(2, 3, 2), axis=2))
case("squeeze", COMPLEX, on("Squeeze", x(1, 5, 1), ints(0, 2)), fixed=["x1"])
case("unsqueeze", COMPLEX, on("Unsqueeze", x(5), ints(0, 2)), fixed=["x1"])
case("transpose", COMPLEX, on("Transpose", x(2, 3, 4), perm=[2, 0, 1]))
case("slice", COMPLEX, on("Slice", x(7, 5), ints(6, 1), ints(-8, 4), ints(0, 1), ints(-2, 1)), fixed=["x1", "x2", "x3", "x4"])
case("gather", COMPLEX, on("Gather", x(5, 3), np.array([[4, -1], [0, 2]]), axis=0))
case("gather_last", COMPLEX, on("Gather", x(3, 5), ints(4, 0, -2), axis=1))
case("gather_elements", COMPLEX, on("GatherElements", x(3, 4), np.array([[0, 2, -1, 1]]), axis=0))
case("gather_nd", COMPLEX, on("GatherND", x(3, 4), np.array([[0, 1], [2, 3]])), fixed=["x1"])
case("gather_nd_rows", COMPLEX, on("GatherND", x(3, 4), np.array([[2], [0]])), fixed=["x1"])
case("expand", COMPLEX, on("Expand", x(3, 1), ints(2, 3, 4)), fixed=["x1"])
case("expand_scalar", COMPLEX, on("Expand", x(), ints(2, 0)), fixed=["x1"])
case("tile", COMPLEX, on("Tile", x(2, 3), ints(2, 2)), fixed=["x1"])
case("depth_to_space", COMPLEX, on("DepthToSpace", x(1, 8, 2, 3), blocksize=2, mode="CRD"))
case("space_to_depth", COMPLEX, on("SpaceToDepth", x(1, 2, 4, 6), blocksize=2))
for mode in ("edge", "reflect", "wrap"):
    case(f"pad_{mode}", COMPLEX, on("Pad", x(4, 5), ints(1, 2, 0, 1), mode=mode), fixed=["x1"])
case("pad_zero", COMPLEX, on("Pad", x(2, 3), ints(1, 0, 0, 2)), fixed=["x1"])
case("pad_value", COMPLEX, on("Pad", x(2, 3), ints(1, 0, 0, 2), lambda dtype: np.array(3 - 2j, dtype)), fixed=["x1"])
case("pad_equal_parts", COMPLEX, on("Pad", x(2, 3), ints(1, 0, 0, 2), lambda dtype: np.array(3 + 3j, dtype)), fixed=["x1"])
case("where", COMPLEX, on("Where", np.array([[True, False, True]]), x(2, 3), x(1, seed=1)))
case("compress", COMPLEX, on("Compress", x(3, 4), np.array([True, False, True]), axis=1))
case("compress_flat", COMPLEX, on("Compress", x(3, 4), np.array([True, False, True, True])))
case("reverse_sequence", COMPLEX, on("ReverseSequence", x(4, 3), ints(1, 4, 2), time_axis=0, batch_axis=1))
case("trilu", COMPLEX, on("Trilu", x(3, 4), np.int64(1), upper=0))
case("one_hot", COMPLEX, on("OneHot", ints(1, -1, 7), np.int64(4), lambda dtype: np.array([1j, 2 - 3j], dtype)), fixed=["x2"])
case("shape", COMPLEX, on("Shape", x(2, 3)))
case("size", COMPLEX, on("Size", x(2, 3)))
case("scatter_elements", COMPLEX, on("ScatterElements", x(3, 3), np.array([[1, 0, 2], [0, 2, 1]]), x(2, 3, seed=1), axis=0))
case("scatter_nd", COMPLEX, on("ScatterND", x(4, 3), np.array([[2], [0]]), x(2, 3, seed=1)), fixed=["x1"])
case("scatter_elements_add", COMPLEX, on("ScatterElements", lambda t: tame(t, 3), ints(1, 1, 0), lambda t: tame(t, 3, seed=1), reduction="add"), tolerance=1e-6)
for kind in ("mul", "max", "min"):
    case(f"scatter_elements_{kind}", COMPLEX, on("ScatterElements", lambda t: tame(t, 3, 2), np.array([[1, 1], [1, 0], [-2, -1]]), lambda t: tame(t, 3, 2, seed=1), axis=0,
                                                 reduction=kind), tolerance=1e-5)
    case(f"scatter_nd_{kind}", COMPLEX, on("ScatterND", lambda t: tame(t, 3, 4, 2), np.array([[1, 3], [-1, 0], [1, -1]]), lambda t: tame(t, 3, 2, seed=1), reduction=kind),
         1e-5, fixed=["x1"])
for kind in ("max", "min"):
    # Real parts that are equal, and NaN.
    values = [1 + 2j, 1 - 2j, complex(0, np.nan), 3 + 3j, 2]
    updates = [1 + 1j, 1 + 5j, 7, complex(np.nan, 1), complex(1, np.nan)]
    case(f"scatter_ties_{kind}", COMPLEX, on("ScatterND", lambda t, v=values: np.array(v, t), ints(0, 1, 2, 3, 4)[:, None], lambda t, v=updates: np.array(v, t), reduction=kind),
         fixed=["x1"])
case("scatter_nothing", COMPLEX, on("ScatterND", lambda t: tame(t, 3), np.zeros((0, 1), np.int64), lambda t: tame(t, 0), reduction="mul"), fixed=["x1"])
case("scatter_nd_add", COMPLEX, on("ScatterND", lambda t: tame(t, 3), np.array([[1], [1]]), lambda t: tame(t, 2, seed=1), reduction="add"), 1e-6, fixed=["x1"])
case("tensor_scatter", COMPLEX, on("TensorScatter", x(2, 5, 3), x(2, 2, 3, seed=1), ints(0, 3), axis=1))
case("non_zero", COMPLEX, on("NonZero", lambda t: np.array([[0, 1j, 0], [1, -0.0, complex(0, np.nan)]], t)))
case("center_crop_pad", COMPLEX, on("CenterCropPad", x(5, 2), ints(3, 4)), fixed=["x1"])


def scatter(dtype):
    value, updates = numbers(dtype, 3, 3), numbers(dtype, 1, 3, seed=1)
    expected = value.copy()
    expected[[1, 0, 2], [0, 1, 2]] = updates[0]
    return [helper.make_node("Scatter", ["x0", "x1", "x2"], ["y"], axis=0)], {"x0": value, "x1": np.array([[1, 0, 2]]), "x2": updates}, [expected]


case("scatter", COMPLEX, scatter, opset=10)


def split(dtype):
    value = numbers(dtype, 5, 2)
    return [helper.make_node("Split", ["x0", "x1"], ["y", "y1", "y2"])], {"x0": value, "x1": ints(2, 0, 3)}, None


case("split", COMPLEX, split, fixed=["x1"])


def unique(values, **attributes):
    def make(dtype):
        outputs = ["y", "y1", "y2", "y3"]
        array = np.array(values, dtype)
        expected = None
        if attributes.get("sorted", 1) and "axis" not in attributes:
            expected = list(np.unique(array, True, True, True))
        return [helper.make_node("Unique", ["x0"], outputs, **attributes)], {"x0": array}, expected

    return make


nan = float("nan")
mixed = [2 + 1j, 1 + 2j, complex(nan, 3), 2 - 1j, 1 + 2j, complex(1, nan), complex(nan, nan), 2 + 1j, -0.0, 0]
case("unique", COMPLEX, unique(mixed))
case("unique_unsorted", COMPLEX, unique([2 + 1j, 1 + 2j, 2 - 1j, 1 + 2j, 0, 2 - 1j], sorted=0))
case("unique_rows", COMPLEX, unique([[1j, 2], [1, 5], [1j, 2], [1j, 1]], axis=0))


def constant(dtype):
    value = numbers(dtype, 2, 3, seed=5)
    node = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(value, "c"))
    return [node, helper.make_node("Concat", ["x0", "c"], ["y"], axis=0)], {"x0": numbers(dtype, 1, 3)}, None


def large_constant(dtype):
    value = numbers(dtype, 40, 3, seed=5)
    node = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(value, "c"))
    return [node, helper.make_node("Gather", ["c", "x0"], ["y"])], {"x0": ints(39, 3, -2)}, None


case("constant", COMPLEX, constant)
case("large_constant", COMPLEX, large_constant)


def typed_data(dtype):
    """A constant in float_data or double_data instead of raw bytes."""
    value = numbers(dtype, 3)
    proto = onnx.TensorProto(data_type=helper.np_dtype_to_tensor_dtype(value.dtype), dims=value.shape)
    (proto.float_data if dtype == np.complex64 else proto.double_data).extend(value.view(value.real.dtype).tolist())
    node = helper.make_node("Constant", [], ["c"], value=proto)
    return [node, helper.make_node("Concat", ["x0", "c"], ["y"], axis=0)], {"x0": numbers(dtype, 2)}, [np.concatenate([numbers(dtype, 2), value])]


case("typed_data", COMPLEX, typed_data)


def bit_cast(dtype):
    value = numbers(dtype, 4, 2)
    to = np.dtype(np.int64 if dtype == np.complex64 else np.complex128)
    nodes = [helper.make_node("BitCast", ["x0"], ["y"], to=helper.np_dtype_to_tensor_dtype(to)),
             helper.make_node("BitCast", ["y"], ["y1"], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))]
    return nodes, {"x0": value}, [value.view(to), value]


case("bit_cast", COMPLEX, bit_cast)


def bit_cast_float(dtype):
    value = np.random.default_rng(1).standard_normal((3, 2))
    return [helper.make_node("BitCast", ["x0"], ["y"], to=TensorProto.COMPLEX64)], {"x0": value}, [value.view(np.complex64)]


case("bit_cast_float", (np.complex64,), bit_cast_float)


#===--- control flow, sequences, optionals ------------------------------------------------------------------------------===#


def branch(dtype):
    value = numbers(dtype, 2, 3)
    then = helper.make_graph([helper.make_node("Transpose", ["x0"], ["t"])], "then", [], [graph_value("t", dtype)])
    other = helper.make_graph([helper.make_node("Slice", ["x0", "one", "two"], ["e"])], "else", [], [graph_value("e", dtype)],
                              [numpy_helper.from_array(ints(1), "one"), numpy_helper.from_array(ints(2), "two")])
    return [helper.make_node("If", ["x1"], ["y"], then_branch=then, else_branch=other)], {"x0": value, "x1": np.array(False)}, [value[1:2]]


def loop(dtype):
    """Carries a value that grows, and collects slices."""
    value = numbers(dtype, 2)
    nodes = [helper.make_node("Concat", ["v", "v"], ["next"], axis=0), helper.make_node("Identity", ["go"], ["go_on"]),
             helper.make_node("Gather", ["x0", "i"], ["row"])]
    body = helper.make_graph(nodes, "body", [graph_value("i", np.int64, []), graph_value("go", np.bool_, []), graph_value("v", dtype, [None])],
                             [graph_value("go_on", np.bool_, []), graph_value("next", dtype, [None]), graph_value("row", dtype)])
    node = helper.make_node("Loop", ["x1", "", "x0"], ["y", "y1"], body=body)
    return [node], {"x0": value, "x1": np.int64(2)}, [np.tile(value, 4), value]


def scan(dtype):
    value = numbers(dtype, 3, 2)
    nodes = [helper.make_node("Where", ["choose", "slice", "state"], ["next"]), helper.make_node("Unsqueeze", ["next", "zero"], ["out"])]
    body = helper.make_graph(nodes, "body", [graph_value("state", dtype, [2]), graph_value("slice", dtype, [2])],
                             [graph_value("next", dtype, [2]), graph_value("out", dtype, [1, 2])])
    initial = numbers(dtype, 2, seed=7)
    node = helper.make_node("Scan", ["x1", "x0"], ["y", "y1"], body=body, num_scan_inputs=1, scan_output_directions=[1])
    choose = np.array([True, False])
    steps = [np.where(choose, value[i], initial) for i in range(3)]
    constants = [helper.make_node("Constant", [], ["choose"], value=numpy_helper.from_array(choose)),
                 helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(ints(0)))]
    return [*constants, node], {"x0": value, "x1": initial}, [steps[-1], np.stack(steps[::-1])[:, None]]


case("if", COMPLEX, branch)
case("loop", COMPLEX, loop)
case("scan", COMPLEX, scan, fixed=["x0", "x1"])


def sequence(dtype):
    """Made, split, taken from at a position that the run tells, concatenated."""
    value = numbers(dtype, 4, 3)
    nodes = [helper.make_node("SplitToSequence", ["x0", "x1"], ["s"], axis=0), helper.make_node("SequenceInsert", ["s", "x0", "x2"], ["more"]),
             helper.make_node("SequenceErase", ["more", "x2"], ["less"]), helper.make_node("SequenceAt", ["less", "x2"], ["y"]),
             helper.make_node("SequenceLength", ["less"], ["y1"]), helper.make_node("ConcatFromSequence", ["more"], ["y2"], axis=0),
             helper.make_node("SequenceEmpty", [], ["none"], dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))),
             helper.make_node("SequenceInsert", ["none", "x0"], ["only"]), helper.make_node("SequenceConstruct", ["x0", "x0"], ["two"]),
             helper.make_node("ConcatFromSequence", ["two"], ["y3"], axis=0, new_axis=1), helper.make_node("ConcatFromSequence", ["only"], ["y4"], axis=1)]
    parts = [value[:1], value[1:]]
    return nodes, {"x0": value, "x1": ints(1, 3), "x2": np.int64(1)}, [parts[1], np.int64(2), np.concatenate([parts[0], value, parts[1]]),
                                                                     np.stack([value, value]), value]


def optional(dtype):
    """An optional that a branch fills, or not: the run tells."""
    value = numbers(dtype, 5)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [None]))
    there = helper.make_graph([helper.make_node("Optional", ["x0"], ["t"])], "then", [], [helper.make_value_info("t", kind)])
    none = helper.make_graph([helper.make_node("Optional", [], ["e"], type=kind.optional_type.elem_type)], "else", [], [helper.make_value_info("e", kind)])
    nodes = [helper.make_node("If", ["x1"], ["o"], then_branch=there, else_branch=none), helper.make_node("OptionalHasElement", ["o"], ["y"]),
             helper.make_node("OptionalGetElement", ["o"], ["y1"])]
    return nodes, {"x0": value, "x1": np.array(True)}, [np.array(True), value]


case("sequence", COMPLEX, sequence, fixed=["x1"], ways=("static", "dynamic"))
# Words of the program, which constants are not made of.
NARROW = (ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn, ml_dtypes.int4, ml_dtypes.uint2)
case("optional", COMPLEX + SIX_BITS + NARROW, optional, ways=("static", "dynamic"))


#===--- operators that compute: what they do is linear ------------------------------------------------------------------===#


def by_parts(op, *inputs, **attributes):
    """What the operator gives for the real and for the imaginary part."""

    def make(dtype):
        value = tame(dtype, *inputs[0])
        rest = {f"x{i}": array for i, array in enumerate(inputs) if i and array is not None}
        names = ["x0"] + ["" if array is None else f"x{i}" for i, array in enumerate(inputs) if i]
        node = helper.make_node(op, names, ["y"], **attributes)
        model = make_model([node], {"x0": value.real, **rest}, [None], OPSET, set(rest), "static")
        real, imaginary = (ReferenceEvaluator(model).run(None, {"x0": part, **rest})[0] for part in (value.real, value.imag))
        return [node], {"x0": value, **rest}, [(real + 1j * imaginary).astype(dtype)]

    return make


def grid(*shape):
    return np.random.default_rng(3).uniform(-1.2, 1.2, shape).astype(np.float32)


scales = np.array([1, 1, 1.7, 0.6], np.float32)
case("resize_linear", COMPLEX, by_parts("Resize", (1, 2, 4, 5), None, scales, mode="linear"), tolerance=1e-5, fixed=["x2"])
case("resize_cubic", COMPLEX, by_parts("Resize", (1, 2, 4, 5), None, None, ints(1, 2, 7, 3), mode="cubic"), tolerance=1e-5, fixed=["x3"])
case("resize_nearest", COMPLEX, by_parts("Resize", (1, 2, 4, 5), None, scales, mode="nearest"), fixed=["x2"])
case("grid_sample", COMPLEX, by_parts("GridSample", (1, 2, 4, 5), grid(1, 3, 2, 2), mode="linear"), tolerance=1e-5, fixed=["x1"])
case("col2im", COMPLEX, by_parts("Col2Im", (1, 5, 5), ints(5, 5), ints(1, 5)), tolerance=1e-6, fixed=["x1", "x2"])


def cropped(dtype):
    """The number beyond the edge is real."""
    value = tame(dtype, 1, 1, 3, 4)
    roi = np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    node = helper.make_node("Resize", ["x0", "x1", "", "x3"], ["y"], mode="linear", coordinate_transformation_mode="tf_crop_and_resize",
                            extrapolation_value=10.0)
    rest = {"x1": roi, "x3": ints(1, 1, 3, 3)}
    model = make_model([node], {"x0": value.real, **rest}, [None], OPSET, set(rest), "static")
    real, imaginary = (ReferenceEvaluator(model).run(None, {"x0": part, **rest})[0] for part in (value.real, value.imag))
    return [node], {"x0": value, **rest}, [(real + 1j * np.where(real == 10, 0, imaginary)).astype(dtype)]


case("resize_crop", COMPLEX, cropped, tolerance=1e-5, fixed=["x1", "x3"])


def upsample(dtype):
    value = tame(dtype, 1, 1, 2, 3)
    node = helper.make_node("Upsample", ["x0", "x1"], ["y"], mode="nearest")
    return [node], {"x0": value, "x1": np.array([1, 1, 2, 3], np.float32)}, [value.repeat(2, 2).repeat(3, 3)]


case("upsample", COMPLEX, upsample, fixed=["x1"], opset=9)


def random_like(dtype):
    """Random numbers of the sizes of complex ones: only those are compared."""
    nodes = [helper.make_node("RandomUniformLike", ["x0"], ["r"], dtype=TensorProto.FLOAT), helper.make_node("RandomNormalLike", ["x0"], ["n"], dtype=TensorProto.FLOAT),
             helper.make_node("Shape", ["r"], ["y"]), helper.make_node("Shape", ["n"], ["y1"])]
    return nodes, {"x0": numbers(dtype, 2, 3)}, [ints(2, 3)] * 2


case("random_like", COMPLEX, random_like)


#===--- six-bit floats --------------------------------------------------------------------------------------------------===#

EVERY = np.arange(64, dtype=np.uint8)


def cast_from(dtype):
    value = EVERY.view(dtype)
    return [helper.make_node("Cast", ["x0"], ["y"], to=TensorProto.FLOAT)], {"x0": value}, [value.astype(np.float32)]


def cast_to(dtype):
    """The numbers of the format, those half-way between two, and those beyond."""
    every = EVERY[:32].view(dtype).astype(np.float32)
    value = np.concatenate([every, -every, (every[1:] + every[:-1]) / 2, np.nextafter((every[1:] + every[:-1]) / 2, 0, dtype=np.float32),
                            np.array([1000, -1000, np.inf, -np.inf, 1e-30, -1e-30, 1e-45], np.float32)])
    largest = ml_dtypes.finfo(dtype).max.astype(np.float32)
    return [helper.make_node("Cast", ["x0"], ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))], {"x0": value}, [np.clip(value, -largest, largest).astype(dtype)]


def cast_between(dtype):
    """To the other format, to 8 bits and to integers, and back."""
    value = EVERY[:63].view(dtype)
    other = SIX_BITS[dtype == SIX_BITS[0]]
    largest = ml_dtypes.finfo(other).max.astype(np.float32)
    to = {"y": np.dtype(other), "y1": np.dtype(np.int8), "y2": np.dtype(ml_dtypes.float8_e4m3fn), "y3": np.dtype(np.float16)}
    expected = [np.clip(value.astype(np.float32), -largest, largest).astype(other)] + [value.astype(np.float32).astype(t) for t in list(to.values())[1:]]
    nodes = [helper.make_node("Cast", ["x0"], [name], to=helper.np_dtype_to_tensor_dtype(t)) for name, t in to.items()]
    return nodes, {"x0": value}, expected


case("cast_from_six_bits", SIX_BITS, cast_from)
case("cast_to_six_bits", SIX_BITS, cast_to)
case("cast_between", SIX_BITS, cast_between)


def quantize(dtype):
    value, scale = numbers(np.float32, 3, 4), np.array([0.5, 0.1, 2, 0.02], np.float32)
    return [helper.make_node("QuantizeLinear", ["x0", "x1"], ["y"], axis=1, output_dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))], {"x0": value, "x1": scale}, None


def quantize_like(dtype):
    return [helper.make_node("QuantizeLinear", ["x0", "x1", "x2"], ["y"])], {"x0": numbers(np.float32, 3, 4), "x1": np.float32(0.3), "x2": np.zeros((), dtype)}, None


def dequantize(dtype):
    return [helper.make_node("DequantizeLinear", ["x0", "x1"], ["y"], axis=0)], {"x0": numbers(dtype, 3, 5), "x1": np.array([0.5, 3, 0.1], np.float32)}, None


case("quantize", SIX_BITS, quantize, fixed=["x1"])
case("quantize_like", SIX_BITS, quantize_like)
case("dequantize", SIX_BITS, dequantize, fixed=["x1"])


def six_bit_constants(form):
    """A constant of five elements, packed or as one number each."""

    def make(dtype):
        value = EVERY[7:12].view(dtype)
        proto = numpy_helper.from_array(value, "c")
        if form == "typed":
            proto = onnx.TensorProto(data_type=proto.data_type, dims=value.shape, int32_data=value.view(np.uint8).tolist())
        nodes = [helper.make_node("Constant", [], ["c"], value=proto), helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
                 helper.make_node("Add", ["x0", "f"], ["y"])]
        return nodes, {"x0": np.ones(5, np.float32)}, [value.astype(np.float32) + 1]

    return make


case("constant_packed", SIX_BITS, six_bit_constants("packed"))
case("constant_typed", SIX_BITS, six_bit_constants("typed"))


#===--- small ones ------------------------------------------------------------------------------------------------------===#


def crop_and_pad(*sizes, axes=None):
    """The shape as int32, which the operator's function body does not take."""

    def make(dtype):
        value, shape = numbers(dtype, 5, 2, 4), np.array(sizes, np.int32)
        attributes = {} if axes is None else {"axes": axes}
        return [helper.make_node("CenterCropPad", ["x0", "x1"], ["y"], **attributes)], {"x0": value, "x1": shape}, None

    return make


case("crop_and_pad", (np.float32,), crop_and_pad(2, 5, 4), fixed=["x1"])
case("crop_and_pad_axes", (np.int16,), crop_and_pad(7, 1, axes=[-1, 0]), fixed=["x1"])
case("crop_and_pad_to_nothing", (np.float64,), crop_and_pad(0, 3, 3), fixed=["x1"])


def mixed_attention(values):
    """Queries and keys of one type, values of another."""

    def make(dtype):
        rng = np.random.default_rng(4)
        q, k, past_k = (rng.standard_normal(s).astype(dtype) for s in ((2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 2, 8)))
        v, past_v = (rng.standard_normal(s).astype(values) for s in ((2, 3, 6, 4), (2, 3, 2, 4)))
        keys, all_values = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
        scores = q.astype(np.float64) @ keys.astype(np.float64).swapaxes(-1, -2) / np.sqrt(8)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True)) @ all_values.astype(np.float64)
        node = helper.make_node("Attention", ["x0", "x1", "x2", "", "x4", "x5"], ["y", "y1", "y2"])
        inputs = {"x0": q, "x1": k, "x2": v, "x4": past_k, "x5": past_v}
        return [node], inputs, [y.astype(dtype), keys, all_values]

    return make


for version in (23, 24, 25):
    case(f"attention_{version}_narrow_values", (np.float32,), mixed_attention(np.float16), tolerance=1e-5, opset=version, ways=("static", "dynamic"))
case("attention_wide_values", (np.float16,), mixed_attention(np.float64), tolerance=2e-3, ways=("static", "dynamic"))
case("attention_other_values", (np.float16,), mixed_attention(ml_dtypes.bfloat16), tolerance=2e-3, ways=("static", "dynamic"))


#===--- running ---------------------------------------------------------------------------------------------------------===#


def output_names(nodes):
    names = [name for node in nodes for name in node.output if re.fullmatch(r"y\d*", name)]
    return sorted(names, key=lambda name: int(name[1:] or 0))


def make_model(nodes, inputs, expected, opset, fixed, way):
    names = output_names(nodes)
    types = [helper.np_dtype_to_tensor_dtype(e.dtype) if e is not None else 0 for e in expected]
    outputs = [helper.make_tensor_value_info(n, t, None) if t else onnx.ValueInfoProto(name=n) for n, t in zip(names, types)]
    given = [] if way == "constant" else [graph_value(n, v.dtype, [None] * v.ndim if way == "dynamic" and n not in fixed else v.shape) for n, v in inputs.items()]
    initializers = [numpy_helper.from_array(np.asarray(v), n) for n, v in inputs.items()] if way == "constant" else []
    graph = helper.make_graph(nodes, "g", given, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def numpy_form(array):
    """As .npz files have it: small floats are f32 there, narrow integers bytes."""
    array = np.asarray(array)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float32 if "float" in array.dtype.name else np.int8 if array.dtype.name.startswith("int") else np.uint8)


def differs(actual, expected, tolerance):
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"is {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if tolerance:
        close = np.isclose(actual, expected, rtol=tolerance, atol=tolerance)
    elif actual.dtype.kind == "c":  # the bits, but for those of NaN
        close = [np.equal(a, e) & (np.signbit(a) == np.signbit(e)) | np.isnan(a) & np.isnan(e) for a, e in ((actual.real, expected.real), (actual.imag, expected.imag))]
        close = close[0] & close[1]
    else:
        close = (actual == expected) | (actual != actual) & (expected != expected)
    return None if np.all(close) else f"is\n{actual}\nexpected\n{expected}"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{command[0].split('/')[-1]} exit {done.returncode}: {(done.stdout + done.stderr).strip()}" if done.returncode else None


def run_case(bin_dir, name, dtype, way, folder):
    _, make, tolerance, fixed, opset, _ = CASES[name]
    nodes, inputs, expected = make(dtype)
    inputs = {n: np.asarray(v) for n, v in inputs.items()}
    names = output_names(nodes)
    if expected is None:
        model = make_model(nodes, inputs, [None] * len(names), opset, set(), "static")
        expected = ReferenceEvaluator(model).run(None, inputs)
    expected = [np.asarray(e) for e in expected]
    onnx.save(make_model(nodes, inputs, expected, opset, fixed, way), f"{folder}/model.onnx")
    error = run(f"{bin_dir}/tc-compile", f"{folder}/model.onnx", "-o", f"{folder}/m.bin", "--cpu", "x86-64-v3", "--jobs", "1")
    if error:
        return error
    if way == "static":
        np.savez(f"{folder}/in.npz", **{n: numpy_form(v) for n, v in inputs.items()})
        error = run(f"{bin_dir}/tc-run", f"{folder}/m.bin", "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz")
        if error:
            return error
        with np.load(f"{folder}/out.npz") as f:
            actual = [f[n] for n in names]
        expected = [numpy_form(e) for e in expected]
    else:
        given = []
        for n, v in inputs.items() if way == "dynamic" else ():
            with open(f"{folder}/{n}.pb", "wb") as f:
                f.write(numpy_helper.from_array(v, n).SerializeToString())
            given += ["--input", f"{n}={folder}/{n}.pb"]
        error = run(f"{bin_dir}/tc-run", f"{folder}/m.bin", *given, "--output-dir", folder)
        if error:
            return error
        actual = [numpy_helper.to_array(onnx.load_tensor(f"{folder}/output_{i}.pb")) for i in range(len(names))]
    for n, a, e in zip(names, actual, expected):
        error = differs(a, e, tolerance)
        if error:
            return f"{n} {error}"
    return None


def main(bin_dir, pattern=""):
    count = failed = 0
    for name, (types, *_, ways) in CASES.items():
        if not re.search(pattern, name):
            continue
        for dtype in types:
            for way in ways:
                if way == "constant" and dtype != types[0]:
                    continue
                count += 1
                with tempfile.TemporaryDirectory() as folder:
                    error = run_case(bin_dir, name, dtype, way, folder)
                if error:
                    failed += 1
                    print(f"{name} ({np.dtype(dtype).name}, {way}): {error}", flush=True)
    print(f"{count} runs, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
