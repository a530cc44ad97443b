"""A model that takes a while to compile. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write_model(path, layers):
    """A chain of products that all differ in size, which no two kernels share."""
    sizes = [16 + 3 * i for i in range(layers + 1)]
    weights = [numpy_helper.from_array(np.ones(shape, np.float32), f"w{i}") for i, shape in enumerate(zip(sizes, sizes[1:]))]
    nodes = []
    for i in range(layers):
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"m{i}"]), helper.make_node("Softmax", [f"m{i}"], [f"x{i + 1}"])]
    info = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
    graph = helper.make_graph(nodes, "g", [info("x0", sizes[0])], [info(f"x{layers}", sizes[-1])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
