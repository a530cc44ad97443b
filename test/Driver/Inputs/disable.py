# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Without arguments: writes m.onnx. disable.py WHOLE PART ALL REFERENCE: compares explanations."""
import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write():
    rng = np.random.default_rng(0)
    constants = {name: rng.standard_normal((64, 64)).astype(np.float32) / 8 for name in ("w1", "w2")}
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 48, 64])
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a1"], name="/a/product"),
        helper.make_node("Relu", ["a1"], ["a2"], name="/a/relu"),
        helper.make_node("Tanh", ["a2"], ["a3"], name="/a/tanh"),
        helper.make_node("MatMul", ["a3", "w2"], ["b1"], name="/b/product"),
        helper.make_node("Relu", ["b1"], ["b2"], name="/b/relu"),
        helper.make_node("Tanh", ["b2"], ["b3"], name="/b/tanh"),
        helper.make_node("Transpose", ["b3"], ["b4"], perm=[0, 2, 1], name="/b/transpose"),
        helper.make_node("MatMul", ["b3", "b4"], ["b5"], name="/b/scores"),
        helper.make_node("Softmax", ["b5"], ["b6"], name="/b/softmax"),
        helper.make_node("MatMul", ["b6", "b3"], ["b7"], name="/b/values"),
        helper.make_node("Add", ["b7", "x"], ["y"], name="/c/add"),
    ]
    graph = helper.make_graph(nodes, "g", [tensor("x")], [tensor("y")], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")


if len(sys.argv) == 1:
    write()
    sys.exit()
whole, part, everything, reference = (json.load(open(name))["kernels"] for name in sys.argv[1:])
assert not any(kernel.get("disabled") for kernel in whole + reference)
for kernel in part:
    names = kernel["nodes"].split("+")
    assert kernel.get("disabled", False) == any(name.startswith("/b/") for name in names), kernel
    if kernel.get("disabled"):
        assert len(names) == 1 and kernel["schedule"]["strategy"] == "cpu.loops", kernel
# The others are as they were.
assert any(kernel["nodes"] == "/a/product+/a/relu+/a/tanh" for kernel in part), part
assert len(whole) < len(part) < len(everything), (len(whole), len(part), len(everything))
assert all(kernel["disabled"] and kernel["schedule"]["strategy"] == "cpu.loops" for kernel in everything)
assert len(everything) >= len(reference), (len(everything), len(reference))
