# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: refit_models.py FOLDER: a.onnx, layers that share a kernel; b.onnx with other weights; zero.onnx with a bias of zeros;
other.onnx with a row less."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

N, LAYERS = 96, 3


def write(name, seed, rows=N, zero=False):
    draw = np.random.default_rng(seed)
    nodes, weights, value = [], [], "x"
    for i in range(LAYERS):
        weight = draw.standard_normal((N, N)).astype(np.float32) / 10
        bias = draw.standard_normal(N).astype(np.float32)
        weights += [numpy_helper.from_array(weight, f"w{i}"), numpy_helper.from_array(bias * (not (zero and i == 1)), f"b{i}")]
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"p{i}"], name=f"product{i}"),
                  helper.make_node("Add", [f"p{i}", f"b{i}"], [f"s{i}"], name=f"sum{i}"),
                  helper.make_node("Relu", [f"s{i}"], [f"r{i}"], name=f"relu{i}")]
        value = f"r{i}"
    sizes = ["batch", rows, N]
    graph = helper.make_graph(nodes, "layers", [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, sizes)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, os.path.join(sys.argv[1], name))


write("a.onnx", 1)
write("b.onnx", 2)
write("zero.onnx", 2, zero=True)
write("other.onnx", 2, rows=N - 1)
