# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graph_breaks.py MODEL: a size that depends on data, and a branch."""
import sys

import onnx
from onnx import TensorProto, helper


def branch(op, result):
    return helper.make_graph([helper.make_node(op, ["e"], [result], name=op.lower())], op, [], [value(result, [8, 8])])


def value(name, sizes, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, sizes)


nodes = [
    helper.make_node("Relu", ["x"], ["r"], name="relu"),
    helper.make_node("NonZero", ["r"], ["y"], name="find"),
    helper.make_node("Exp", ["r"], ["e"], name="exp"),
    helper.make_node("If", ["b"], ["w"], name="choose", then_branch=branch("Sin", "s"), else_branch=branch("Cos", "c")),
]
inputs = [value("x", [8, 8]), value("b", [], TensorProto.BOOL)]
graph = helper.make_graph(nodes, "g", inputs, [value("y", [2, "found"], TensorProto.INT64), value("w", [8, 8])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), sys.argv[1])
