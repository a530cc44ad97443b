#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model with the operators of operators.json between ones of ONNX.

usage: make_model.py MODEL.onnx
"""

import sys

import onnx
from onnx import TensorProto, helper


def make_model():
    def tensor(name, dtype, shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    nodes = [
        helper.make_node("Mul", ["x", "x"], ["squares"]),
        helper.make_node("Polynomial", ["squares"], ["y"], domain="com.example", coefficients=[1.0, -2.0, 0.5]),
        helper.make_node("Above", ["y"], ["large"], domain="com.example", limit=1.0),
        helper.make_node("Neg", ["large"], ["z"]),
        helper.make_node("Label", ["x"], ["labels"], domain="com.example", prefix="item "),
    ]
    graph = helper.make_graph(
        nodes,
        "custom",
        [tensor("x", TensorProto.FLOAT, ["rows", 3])],
        [
            tensor("y", TensorProto.FLOAT, ["rows", 3]),
            tensor("z", TensorProto.FLOAT, ["n"]),
            tensor("labels", TensorProto.STRING, ["rows"]),
        ],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(make_model(), sys.argv[1])
