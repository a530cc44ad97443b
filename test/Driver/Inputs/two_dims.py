"""two_dims.py FILE: a model of two open dims. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import sys

import onnx
from onnx import TensorProto, helper

values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["height", "width"]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), sys.argv[1])
