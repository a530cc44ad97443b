# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""external.py MODEL WEIGHTS: a product with a constant that lies in a file of its own."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weights = numpy_helper.from_array(np.arange(4096, dtype=np.float32).reshape(64, 64), "w")
tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 64])
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [tensor("x")], [tensor("y")], [weights])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
onnx.save_model(model, sys.argv[1], save_as_external_data=True, location=sys.argv[2], size_threshold=0)
