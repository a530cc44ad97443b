"""cancellation.py MODEL: a model whose result in float32 is nothing but rounding errors. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4])
nodes = [helper.make_node("Exp", ["x"], ["e"], name="before"), helper.make_node("Add", ["e", "c"], ["s"], name="sum"),
         helper.make_node("Sub", ["s", "d"], ["y"], name="difference"), helper.make_node("Tanh", ["y"], ["z"], name="after")]
constants = [numpy_helper.from_array(np.full(4, value, np.float32), name) for name, value in (("c", 1e8), ("d", 1.00000008e8))]
graph = helper.make_graph(nodes, "g", [info("x")], [info("z")], constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), sys.argv[1])
