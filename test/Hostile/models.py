# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small hostile models: each names what tc-compile may answer. See hostile.py."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CASES = {}  # name: Case
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MAX, MIN = 2**63 - 1, -2**63
node = helper.make_node


class Case:
    """What writes the model, the exit codes that tc-compile may give, words that its sentence must hold, limits, and
    what tc-run may give where an artifact came out (None: it is not run)."""

    def __init__(self, write, codes, says=(), seconds=10, gigabytes=2, run=None, dims=1):
        self.write, self.codes, self.says = write, codes, says
        self.seconds, self.gigabytes, self.run, self.dims = seconds, gigabytes, run, dims


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

@case(1, says="Einsum")
def einsum_dots():
    return model([node("Einsum", ["x"], ["y"], equation="......->")], x(4, 4), Y)


@case(1, says="LayerNormalization")
def layernorm_axis_max():
    return model([node("LayerNormalization", ["x", "w"], ["y"], axis=MAX)], x(3, 4) + [value("w", [4])], Y, opset=17)


@case(0, 1)
def slice_ends_2_31_rank():
    return model([node("Slice", ["x", "a", "b"], ["y"])], x(4) + [value("a", [1], INT64), value("b", [2**31], INT64)], Y)


@case(0, 1)
def slice_ends_2_31():
    return model([node("ConstantOfShape", ["s"], ["b"], value=ints("", [0])), node("Slice", ["x", "a", "b"], ["y"])], x(4),
                 Y, [ints("s", [2**31]), ints("a", [0])])
