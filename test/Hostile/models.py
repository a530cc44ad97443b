# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small hostile models: each names what tc-compile may answer. See hostile.py."""
import io
import json
import os
import zipfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CASES = {}  # name: Case
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MAX, MIN = 2**63 - 1, -2**63
node = helper.make_node


class Case:
    """What writes the model, the exit codes that tc-compile may give, words that its sentence must hold, limits, and
    what tc-run with these arguments may give where an artifact came out (None: it is not run)."""

    def __init__(self, write, codes, says=(), seconds=10, gigabytes=2, run=None, arguments=(), flags=()):
        self.write, self.codes, self.says = write, codes, says
        self.seconds, self.gigabytes, self.run, self.arguments = seconds, gigabytes, run, arguments
        self.flags = flags  # of tc-compile


def case(*codes, says=(), name=None, **limits):
    def register(function):
        CASES[name or function.__name__] = Case(function, codes, (says,) if isinstance(says, str) else says, **limits)
        return function
    return register


def value(name, dims=None, element=FLOAT):
    return helper.make_tensor_value_info(name, element, dims)


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def floats(name, values):
    return numpy_helper.from_array(np.array(values, np.float32), name)


def model(nodes, inputs, outputs, constants=(), opset=21):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


Y = [value("y")]


def x(*dims):
    return [value("x", list(dims))]


# --- what ONNX's own inference crashes or drowns in --------------------------------------------------------------------

@case(0, run=(0,))
def slice_extreme():
    return model([node("Slice", ["x", "a", "b", "c", "d"], ["y"])], x(4), Y,
                 [ints("a", [MIN]), ints("b", [MAX]), ints("c", [0]), ints("d", [MAX])])


@case(0, run=(0,), arguments=("--dim", "n=3"))
def slice_step_min():
    return model([node("Slice", ["x", "a", "b", "c", "d"], ["y"])], x("n"), Y,
                 [ints("a", [MAX]), ints("b", [MIN]), ints("c", [0]), ints("d", [MIN])])


@case(1, says="Einsum")
def einsum_dots():
    return model([node("Einsum", ["x"], ["y"], equation="......->")], x(4, 4), Y)


@case(1, says="LayerNormalization")
def layernorm_axis_max():
    return model([node("LayerNormalization", ["x", "w"], ["y"], axis=MAX)], x(3, 4) + [value("w", [4])], Y, opset=17)


@case(1, says="Split")
def split_1e9_outputs():
    return model([node("Split", ["x"], ["y"], num_outputs=10**9)], x(8), Y)


@case(0, 1)
def slice_ends_2_31_rank():
    return model([node("Slice", ["x", "a", "b"], ["y"])], x(4) + [value("a", [1], INT64), value("b", [2**31], INT64)], Y)


@case(0, 1)
def slice_ends_2_31():
    return model([node("ConstantOfShape", ["s"], ["b"], value=ints("", [0])), node("Slice", ["x", "a", "b"], ["y"])], x(4),
                 Y, [ints("s", [2**31]), ints("a", [0])])


# --- constants that do not fit into memory -----------------------------------------------------------------------------

@case(0, run=(0, 5))
def fold_tile_1e9():
    return model([node("Tile", ["w", "r"], ["y"])], [], Y, [ints("r", [5 * 10**9]), floats("w", [1, 2])])


@case(0)
def fold_expand_1e10():
    return model([node("Expand", ["w", "s"], ["t"]), node("ReduceSum", ["t"], ["y"], keepdims=0)], [], Y,
                 [ints("s", [10**5, 10**5]), floats("w", [1])])


@case(0)
def fold_range_1e12():
    return model([node("Range", ["a", "b", "c"], ["t"]), node("ReduceSum", ["t"], ["y"], keepdims=0)], [],
                 [value("y", None, INT64)], [ints("a", 0), ints("b", 10**12), ints("c", 1)])


@case(0, gigabytes=1)
def fold_range_1e8():
    return model([node("Range", ["a", "b", "c"], ["t"]), node("Gather", ["t", "i"], ["y"])], [value("i", ["n"], INT64)],
                 [value("y", None, INT64)], [ints("a", 0), ints("b", 10**8), ints("c", 1)])


@case(0, gigabytes=1)
def fold_constant_of_shape_1e8():
    return model([node("ConstantOfShape", ["s"], ["t"], value=floats("", [2])), node("Add", ["t", "x"], ["y"])], x(1), Y,
                 [ints("s", [10**8])])


@case(0, gigabytes=1)
def fold_one_hot_1e10():
    return model([node("OneHot", ["i", "d", "v"], ["t"]), node("ReduceSum", ["t"], ["y"], keepdims=0)], [], Y,
                 [ints("i", list(range(10))), ints("d", 10**9), floats("v", [0, 1])])


@case(0, gigabytes=1)
def fold_pad_1e10():
    return model([node("Pad", ["w", "p"], ["t"]), node("ReduceSum", ["t"], ["y"], keepdims=0)], [], Y,
                 [ints("p", [10**10, 0]), floats("w", [1, 2])])


def loop_of(trips):
    body = helper.make_graph([node("Add", ["a", "a"], ["b"]), node("Identity", ["cond"], ["co"])], "body",
                             [value("i", [], INT64), value("cond", [], TensorProto.BOOL), value("a")],
                             [value("co", [], TensorProto.BOOL), value("b")])
    return model([node("Loop", ["t", "", "one"], ["y"], body=body)], [], Y, [ints("t", trips), floats("one", 1)])


@case(0)
def fold_loop_2_62():
    return loop_of(2**62)


@case(0)
def fold_loop_1e7():
    return loop_of(10**7)


# --- sizes and names that no artifact can hold -------------------------------------------------------------------------

@case(1, says="dim 0")
def size_overflow_2_62():
    return model([node("Relu", ["x"], ["y"])], x(2**62), Y)


@case(1, says="dim 0")
def size_overflow_max():
    return model([node("Relu", ["x"], ["y"])], x(MAX), Y)


@case(1, says="elements")
def size_product():
    return model([node("Relu", ["x"], ["y"])], x(2**31, 2**31), Y)


@case(1, says="Concat")
def concat_overflow():
    return model([node("Concat", ["x"] * 8, ["y"], axis=0, name="Concat#0")], x(2**58), Y)


@case(1)
def nonzero_huge_dim():
    return model([node("NonZero", ["x"], ["z"])], x("n", "m", MAX), [value("z", None, INT64)])


@case(2, says="16")
def rank_17():
    return model([node("Relu", ["x"], ["y"])], x(*[1] * 17), Y)


@case(2, says="16")
def rank_17_inside():
    return model([node("Reshape", ["x", "s"], ["t"]), node("Relu", ["t"], ["u"]), node("Reshape", ["u", "r"], ["y"])],
                 x(4), Y, [ints("s", [1] * 16 + [4]), ints("r", [4])])


@case(2, says="16")
def rank_5000():
    return model([node("Relu", ["x"], ["y"])], x(*[1] * 5000), Y)


@case(1, says="UTF-8")
def name_bad_utf8():
    return model([node("Relu", ["x"], ["y"])], x(4), Y).replace(b"\x01x", b"\x01\xff")


@case(1, says="NUL")
def name_nul():
    return model([node("Relu", ["x"], ["y"])], x(4), Y).replace(b"\x01x", b"\x01\0")


@case(1, says="bytes")
def name_2mb():
    name = "n" * 2000000
    return model([node("Relu", [name], ["y"])], [value(name, [4])], Y)


@case(1, says="bytes")
def dim_name_2mb():
    return model([node("Relu", ["x"], ["y"])], x("d" * 2000000), Y)


@case(0, 1)
def node_name_2mb():
    return model([node("Relu", ["x"], ["y"], name="n" * 2000000)], x(4), Y)


@case(1, says="UTF-8")
def output_name_bad_utf8():
    return model([node("Relu", ["x"], ["y"])], x(4), Y).replace(b"\x01y", b"\x01\xff")


@case(0, 1, run=(4,))
def reshape_declared_type_lies():
    return model([node("Reshape", ["x", "s"], ["y"])], x(2, 3, 4) + [value("s", [3], INT64)], [value("y", [3, 4, 3])])


# --- operands that an operator does not take ---------------------------------------------------------------------------

@case(1, says="And")
def and_of_floats():
    return model([node("And", ["x", "x"], ["y"])], x(8), [value("y", None, TensorProto.BOOL)])


@case(1, says="QLinearMatMul")
def qlinearmatmul_zero_point_size():
    u8 = TensorProto.UINT8
    return model([node("QLinearMatMul", ["a", "s", "z", "b", "s", "z", "s", "zz"], ["y"])],
                 [value("a", [2, 4], u8), value("b", [4, 3], u8), value("s", [1]), value("z", [1], u8),
                  value("zz", [5], u8)], [value("y", None, u8)])


@case(1, says="Resize")
def resize_nan_scale():
    return model([node("Resize", ["x", "", "s"], ["y"])], x(1, 1, 4, 4), Y, [floats("s", [1, 1, np.nan, 1])])


@case(1, says="Resize")
def resize_negative_scale():
    return model([node("Resize", ["x", "", "s"], ["y"], antialias=1, mode="cubic")], x(1, 1, 4, 4), Y,
                 [floats("s", [7, -1, 1, 3])], 19)


@case(1, says="Resize")
def resize_negative_size():
    return model([node("Resize", ["x", "", "", "s"], ["y"])], x(1, 1, 4, 4), Y, [ints("s", [1, 1, -4, 4])])


# --- many of something -------------------------------------------------------------------------------------------------

def fibonacci(count):
    nodes = [node("Add", [f"v{i}", f"v{max(0, i - 1)}"], [f"v{i + 1}"]) for i in range(count)]
    return model(nodes, [value("v0", [4])], [value(f"v{count}")])


@case(0, seconds=4)
def fibonacci_36():
    return fibonacci(36)


@case(0, seconds=4)
def fibonacci_100():
    return fibonacci(100)


@case(0, seconds=5)
def conv_2_31():
    return model([node("Conv", ["x", "w"], ["y"])], x(1, 1, 2**31, 8), Y, [floats("w", np.ones((1, 1, 3, 3)))])


# --- constant indices that are nowhere ---------------------------------------------------------------------------------

@case(1, says="Gather")
def gather_index_outside():
    return model([node("Gather", ["x", "i"], ["y"])], x(4, 3), Y, [ints("i", [0, 4])])


@case(1, says="GatherElements")
def gather_elements_index_outside():
    return model([node("GatherElements", ["x", "i"], ["y"], axis=1)], x(2, 3), Y, [ints("i", [[0, -4]])])


@case(1, says="ScatterND")
def scatter_nd_index_outside():
    return model([node("ScatterND", ["x", "i", "u"], ["y"])], x(4, 3), Y, [ints("i", [[3, 3]]), floats("u", [1])])


@case(0, run=(0,), arguments=())
def gather_last():
    return model([node("Gather", ["x", "i"], ["y"])], x(4, 3), Y, [ints("i", [3, -4])])


# --- reductions of nothing, and archives that contradict themselves ----------------------------------------------------

def reduce_nothing():
    return model([node("ReduceSum", ["x", "a"], ["y"]), node("ReduceMax", ["x", "a"], ["z"])], x(2, 3, 0, 4),
                 Y + [value("z")], [ints("a", [2])])


case(0, run=(0,), name="reduce_nothing")(reduce_nothing)
case(0, run=(0,), flags=("--target", "reference"), name="reduce_nothing_reference")(reduce_nothing)


@case(1, says="declares it as")
def pt2_weight_of_another_size():
    """The digits' archive with a bias of 17 elements for 16."""
    archive = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "digits", "model.pt2")
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for item in source.infolist():
            data = source.read(item)
            if item.filename.endswith("model_weights_config.json"):
                config = json.loads(data)
                config["config"]["features.0.bias"]["tensor_meta"]["sizes"] = [{"as_int": 17}]
                data = json.dumps(config).encode()
            if item.filename.endswith("weights/weight_1"):
                data += b"\0" * 4
            target.writestr(item.filename, data)
    return out.getvalue()


@case(1, says="names no operator")
def pt2_target_without_overload():
    archive = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Fuzz", "pt2", "mlp.pt2")
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for item in source.infolist():
            target.writestr(item.filename, source.read(item).replace(b"torch.ops.aten.linear.default", b"torch.ops.aten"))
    return out.getvalue()
