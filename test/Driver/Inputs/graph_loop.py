# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a recurrent layer of 50 steps. usage: graph_loop.py MODEL.onnx"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)
weights = {"w": rng.standard_normal((1, 32, 4)), "r": rng.standard_normal((1, 32, 8)), "b": rng.standard_normal((1, 64))}
graph = helper.make_graph(
    [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=8)], "loop", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [50, 3, 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [50, 1, 3, 8])], [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), sys.argv[1])
